"""The sidecar `RESULT.cert.npz` beside a result, what the JSON says of it, and `mipfs.verify`."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable, Mapping
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

NONE = (
    "the result has no certificate: they are written for problems over single features with the unit margin, by the "
    "drivers branch, gbd, kelley and two_layer, together with --json FILE"
)


@dataclass(frozen=True, eq=False)
class Claim:
    """What a run claims to prove.

    Attributes
    ----------
    source : Proof, or what makes it when it is asked for
    kind : {"tree", "relaxation"}
        "relaxation": one dual vector, whose certified bound may lie below the result's where S has rows.
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
        return {"kind": self.kind, "bound": self.bound, "gap": self.gap}

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


def verify(result: Result, data: Instance) -> Report:
    """Check what a result claims against the raw data: objective, selection, and the certificate of its bound.

    Parameters
    ----------
    result : Result, of `mipfs.solve` or `Result.load`
    data : Instance, the same data, scaled as it was

    Returns
    -------
    Report
        ``accepted``, ``reason``, the certified ``bound``, ``objective``, ``gap``, and more.

    Raises
    ------
    UsageError
        The result has no certificate.
    DataError
        The sidecar is missing or cannot be read.
    """
    from mipfs.certificate.check import Report
    from mipfs.certificate.check_joint import JointStatement

    document = json.loads(result.to_json())
    reading = JointStatement if document["params"].get("loss") == "structural" else None
    if result.claim is not None:
        document["certificate"] = result.claim.entry()
        return _checked(document, result.claim.proof.arrays(), data, reading)
    if result.certificate is None or result.path is None:
        raise UsageError(NONE)
    path = result.path.with_name(Path(str(result.certificate.get("file"))).name)
    if not path.is_file():
        raise DataError("the sidecar of the result is missing", "keep it beside the JSON", path=path)
    if _sha256(path) != result.certificate.get("sha256"):
        return Report(False, f"{path.name} is not the file that the result was written with: its SHA-256 differs")
    return _checked(document, _read(path), data, reading)


def _checked(document: dict[str, Any], arrays: Mapping[str, npt.NDArray[Any]], data: Instance, reading: Any) -> Report:
    """What the checker says; a forger's numbers beyond floating point are its business, not a warning's."""
    from mipfs.certificate.check import check

    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return check(document, arrays, data, reading)


def _read(path: Path) -> Mapping[str, npt.NDArray[Any]]:
    """The arrays of a sidecar."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise DataError(
            f"not a certificate ({error})", "give the file that `mipfs solve --json` wrote", path=path
        ) from None


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
