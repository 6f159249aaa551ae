"""The sidecar `RESULT.cert.npz` beside a result, and what the JSON says of it."""

from __future__ import annotations

import hashlib
import io
import math
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mipfs.data.instance import Instance
from mipfs.data.unit import in_unit
from mipfs.plumbing.arrays import terms_of
from mipfs.proof import pair
from mipfs.readers.arrays import write_arrays
from mipfs.report.visible import finite_or_none

if TYPE_CHECKING:
    from mipfs.proof.evidence import CombinedProof
    from mipfs.proof.proof import Proof
    from mipfs.result.result import Result
    from mipfs.selection.rows import Extras, Rows

SMALL = 1 << 23
"""Bytes up to which a sidecar is made in memory."""
MOST_SCALED = 1 << 15
"""Columns at most of which shift and scale stand in the sidecar: of more they would be most of it."""


@dataclass(frozen=True, eq=False)
class ProofClaim:
    """What a run claims to prove.

    Attributes
    ----------
    source : Proof, or what makes it when it is asked for
    kind : {"tree", "relaxation"}
        "relaxation": one dual vector at all leaves.
    bound : float or None, every leaf reaches it; None when no leaf holds a selection, -inf when nothing is claimed
    gap : float, the asked gap
    less : callable, optional
        What is claimed where the leaves prove a bound (unit margin): it leaves room for rounding. Without it no weaker
        bound can be claimed (`mipfs.result.fitted`).
    derived : rows that multipliers are about beside the user's, with their derivations (`mipfs.selection.derived`)
    scaling : arrays, shift and scale of every column, as the sidecar has them (`hexadecimal_scaling`)
    exponent : int, of the unit of the columns that the proof is about; what is stated is in the user's
    """

    source: Proof | CombinedProof
    kind: str
    bound: float | None
    gap: float
    less: Callable[[float], float] | None = None
    derived: Sequence[Mapping[str, Any]] = ()
    scaling: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    exponent: int = 0

    @cached_property
    def proof(self) -> Proof:
        """The proof, whole."""
        return self.source() if callable(self.source) else self.source

    def entry(self) -> dict[str, Any]:
        """The entry "certificate" of the JSON, but for the file."""
        claimed = {"kind": self.kind, "bound": finite_or_none(self.bound), "gap": self.gap}
        return claimed | ({"derived": [*self.derived]} if self.derived else {})

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """What stands in the sidecar."""
        return in_unit(self.proof.arrays(), -self.exponent) | dict(self.scaling)

    def packed(self) -> bytes:
        """The contents of the sidecar."""
        stream = io.BytesIO()
        write_arrays(self.arrays(), stream, zipfile.ZIP_DEFLATED)
        return stream.getvalue()


class SpooledSidecar:
    """A sidecar that is made in a file without a name, in the folder where it will be: it need not stand in memory.

    Parameters
    ----------
    claim : ProofClaim
    room : Path, the folder

    Attributes
    ----------
    sha256 : str

    Raises
    ------
    OSError
        The folder takes no file, or the disk is full.
    """

    def __init__(self, claim: ProofClaim, room: Path) -> None:
        self._file = tempfile.SpooledTemporaryFile(SMALL, dir=str(room))  # noqa: SIM115 (closed by `close`)
        try:
            write_arrays(claim.arrays(), self._file, zipfile.ZIP_DEFLATED)
        except OSError:
            self.close()
            raise
        self._file.seek(0)
        self.sha256 = hashlib.file_digest(self._file, "sha256").hexdigest()

    def __call__(self, stream: IO[bytes]) -> None:
        """Write it to a stream."""
        self._file.seek(0)
        shutil.copyfileobj(self._file, stream)

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


def hexadecimal_scaling(data: Instance) -> dict[str, npt.NDArray[Any]]:
    """Shift and scale of the features as hexadecimal floats, so that a checker needs no sums of ours.

    Nothing of data that is not scaled, nor of more than `MOST_SCALED` features. The constant column of an intercept,
    the last one where there is one, is no feature.
    """
    p = data.n_features - (data.constant != 0.0)
    if data.scaling == "none" or p > MOST_SCALED:
        return {}
    stated = {"shift": data.shift[:p], "scale": np.ldexp(data.scale[:p], -data.exponent)}
    return {f"column_{name}": np.array([float(v).hex().encode() for v in one]) for name, one in stated.items()}


def pack_sidecar(
    result: Result, name: str, limit: float = math.inf, more: Mapping[str, npt.NDArray[Any]] | None = None
) -> tuple[bytes | None, Mapping[str, Any] | None]:
    """The contents of the sidecar called `name`, and the entry "certificate" about it.

    `more` are arrays that stand there beside those of the result: a card's own proof.

    A result that was loaded brings along the sidecar that it was loaded with; there are no contents where that is
    missing or another file. What was not proven to the asked gap may be cut to `limit` bytes: the entry then has the
    bound that the run itself found as "found".
    """
    claim = result.claim
    if claim is None:
        content = held_sidecar(result)
        if result.certificate is None or content is None:
            return None, result.certificate
        if not more:
            return content, {**result.certificate, "file": name}
        content = with_arrays(content, more)
        return content, {**result.certificate, "file": name, "sha256": hashlib.sha256(content).hexdigest()}
    if may_be_cut(result) and math.isfinite(limit):
        from mipfs.result.fitted import fit_claim  # with the dual vectors, the problem and its solvers

        claim, content = fit_claim(claim, limit)
    else:
        content = claim.packed()
    content = with_arrays(content, more) if more else content
    sha256 = hashlib.sha256(content).hexdigest()
    found = {} if claim is result.claim else {"found": float(result.bound)}
    if found and result.deciding is not None:
        result.deciding.note(result, claim, sha256)
    return content, claim.entry() | found | {"file": name, "sha256": sha256}


def with_arrays(content: bytes, more: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """The contents of a sidecar with more arrays behind those that are there."""
    stream = io.BytesIO()
    stream.write(content)
    write_arrays(more, stream, zipfile.ZIP_DEFLATED, mode="a")
    return stream.getvalue()


def spool_sidecar(
    result: Result, name: str, limit: float, room: Path
) -> tuple[bytes | SpooledSidecar | None, Mapping[str, Any] | None]:
    """As `pack_sidecar`, but a sidecar that is not cut is made in a file of the folder `room`."""
    claim = result.claim
    if claim is not None and not (may_be_cut(result) and math.isfinite(limit)):
        with suppress(OSError):  # whoever writes it says so
            content = SpooledSidecar(claim, room)
            return content, claim.entry() | {"file": name, "sha256": content.sha256}
    return pack_sidecar(result, name, limit)


def held_sidecar(result: Result) -> bytes | None:
    """The contents of the sidecar that a result was loaded with; None where that is missing or another file."""
    if result.sidecar is not None or result.certificate is None or result.path is None:
        return result.sidecar
    found = pair.find(result.path, result.certificate, exactly=True)
    return found.path.read_bytes() if found.found else None


def may_be_cut(result: Result) -> bool:
    """Whether a weaker bound may be certified: a limit ended the run, and no list rests on all of its leaves."""
    listed = result.near_optimal is not None and result.near_optimal["complete"]
    return result.status.name not in ("OPTIMAL", "RELAXED", "INFEASIBLE") and not listed


def state_rows(rows: Rows, names: Sequence[str]) -> dict[str, Any]:
    """Rows and extra variables as the JSON has them; infinite bounds are None."""
    extra = rows.extra
    described = []
    p = len(names)
    for r, name in enumerate(rows.names):
        terms = {names[j] if j < p else extra.names[j - p]: a for j, a in terms_of(rows.matrix, r)}
        ends = {"lb": finite_or_none(float(rows.lb[r])), "ub": finite_or_none(float(rows.ub[r]))}
        described.append({"name": name, "terms": terms} | ends | {"origin": rows.origins[r]})
    return {"rows": described, "extra": stated_extra(extra)}


def stated_extra(extra: Extras) -> dict[str, dict[str, Any]]:
    """Extra variables by name as the JSON has them."""
    return {
        name: {
            "lb": finite_or_none(float(extra.lb[k])),
            "ub": finite_or_none(float(extra.ub[k])),
            "integer": bool(extra.integer[k]),
            **({"cost": float(extra.cost[k])} if extra.cost[k] else {}),
        }
        for k, name in enumerate(extra.names)
    }
