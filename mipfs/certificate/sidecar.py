"""The sidecar `RESULT.cert.npz` beside a result, what the JSON says of it, and `mipfs.verify`."""

from __future__ import annotations

import hashlib
import json
import math
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mipfs.certificate.proof import Proof
from mipfs.errors import DataError, UsageError

if TYPE_CHECKING:
    from mipfs.certificate.check import Report
    from mipfs.instance import Instance
    from mipfs.result import Result
    from mipfs.selection import Rows

MISSING = (
    "the result stands alone: its certificate is a second file, written where the result is saved to a file; "
    "solve it again with --json FILE, or result.save(FILE)"
)
NOTHING = "there is nothing to verify: the run found neither a selection nor a bound"


@dataclass(frozen=True, eq=False)
class Claim:
    """What a run claims to prove.

    Attributes
    ----------
    source : Proof, or what makes it when it is asked for
    kind : {"tree", "relaxation"}
        "relaxation": one dual vector at all leaves.
    bound : float or None, every leaf reaches it; None when no leaf holds a selection
    gap : float, the asked gap
    """

    source: Proof | Callable[[], Proof]
    kind: str
    bound: float | None
    gap: float

    @cached_property
    def proof(self) -> Proof:
        """The proof, whole."""
        return self.source if isinstance(self.source, Proof) else self.source()

    def entry(self) -> dict[str, Any]:
        """The entry "certificate" of the JSON, but for the file."""
        return {"kind": self.kind, "bound": None if self.bound is None else float(self.bound), "gap": self.gap}

    def write(self, path: Path) -> dict[str, Any]:
        """Write the sidecar; returns the entry "certificate".

        Raises
        ------
        UsageError
            The file cannot be written.
        """
        try:
            with path.open("wb") as file:
                np.savez_compressed(file, **self.proof.arrays())  # type: ignore[arg-type]
        except OSError as error:
            raise UsageError(f"{path}: cannot be written: {error.strerror}") from None
        return self.entry() | {"file": path.name, "sha256": _sha256(path)}


def sidecar_of(path: Path) -> Path:
    """RESULT.cert.npz beside RESULT.json."""
    return path.with_name(path.name.removesuffix(".json") + ".cert.npz")


def verify(result: Result, data: Instance, rows: Rows | None = None) -> Report:
    """Check what a result claims against the raw data: status, objective, bound, and what `predict` uses.

    Parameters
    ----------
    result : Result, of `mipfs.solve` or `Result.load`
    data : Instance, the same data, scaled as it was
    rows : Rows, optional
        The rows that the problem must have beside those of the data, and no others (`mipfs solve --subject-to`).

    Returns
    -------
    Report
        ``accepted``, ``reason``, the certified ``bound``, ``objective``, ``gap``, the ``statement`` in words, and more.

    Raises
    ------
    UsageError
        The result was not saved with its certificate, or there is nothing to verify.
    DataError
        The sidecar is missing or cannot be read.
    """
    from mipfs.certificate.check import Report

    document = json.loads(result.to_json())
    given = None if rows is None else stated(rows, data.feature_names)
    if result.claim is not None:
        document["certificate"] = result.claim.entry()
        return _checked(document, result.claim.proof.arrays(), data, given)
    if result.certificate is None or result.path is None:
        unearned = not (math.isfinite(result.objective) or math.isfinite(result.bound))
        raise UsageError(NOTHING if unearned and result.status.name != "INFEASIBLE" else MISSING)
    name = Path(str(result.certificate.get("file"))).name
    if not name:
        return Report(False, "the certificate names no file")
    path = result.path.with_name(name)
    if not path.is_file():
        raise DataError("the sidecar of the result is missing", "keep it beside the JSON", path=path)
    if _sha256(path) != result.certificate.get("sha256"):
        return Report(False, f"{path.name} is not the file that the result was written with: its SHA-256 differs")
    return _checked(document, _read(path), data, given)


def stated(rows: Rows, names: Sequence[str]) -> dict[str, Any]:
    """Rows and extra variables as the JSON has them; infinite bounds are None."""
    places, extra, described = (*names, *rows.extra.names), rows.extra, []
    for r, name in enumerate(rows.names):
        part = slice(rows.matrix.indptr[r], rows.matrix.indptr[r + 1])
        pairs = zip(rows.matrix.indices[part], rows.matrix.data[part], strict=True)
        terms = {places[j]: float(a) for j, a in pairs}
        ends = {"lb": _finite(rows.lb[r]), "ub": _finite(rows.ub[r])}
        described.append({"name": name, "terms": terms} | ends | {"origin": rows.origins[r]})
    variables = {
        name: {"lb": _finite(extra.lb[k]), "ub": _finite(extra.ub[k]), "integer": bool(extra.integer[k])}
        for k, name in enumerate(extra.names)
    }
    return {"rows": described, "extra": variables}


def _finite(end: float) -> float | None:
    return float(end) if math.isfinite(end) else None


def _checked(
    document: dict[str, Any], arrays: Mapping[str, npt.NDArray[Any]], data: Instance, given: dict[str, Any] | None
) -> Report:
    """What the checker says."""
    from mipfs.certificate.check import check
    from mipfs.certificate.check_joint import JOINT

    reading = {"reading": JOINT} if document["params"].get("loss") == "structural" else {}
    return check(document, arrays, data, given=given, **reading)


def _read(path: Path) -> Mapping[str, npt.NDArray[Any]]:
    """The arrays of a sidecar."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError, MemoryError, AttributeError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(
            f"not a certificate ({error})", "give the file that `mipfs solve --json` wrote", path=path
        ) from None


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
