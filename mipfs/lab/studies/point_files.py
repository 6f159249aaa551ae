"""The points of a path as results of their own, with their certificates, in the files of a path.

Beside path.json stands path.cert.npz, which holds the certificate of its k-th point as ``k.cert.npz``, the file that
would stand beside that point's own JSON. Both are written together, as a result and its certificate are.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from mipfs.check.folds import FOLD, FOLDS, PART
from mipfs.errors import DataError
from mipfs.proof import pair
from mipfs.readers.arrays import load_arrays, npz_bytes
from mipfs.readers.room import PROOF_TIMES
from mipfs.result import archive

if TYPE_CHECKING:
    from mipfs.lab.studies.solution_path import SolutionPath


def attach_certificates(path: SolutionPath, file: Path, content: bytes | None) -> SolutionPath:
    """A path that was read from a file, each point's result with its certificate out of the contents beside it."""
    results = archive.attach_certificates((point.result for point in path.points), content)
    pairs = zip(path.points, results, strict=True)
    points = tuple(replace(point, result=replace(result, path=file)) for point, result in pairs)
    return replace(path, points=points, file=str(file), fold=fold_in(file, content))


def fold_in(file: Path, content: bytes | None) -> npt.NDArray[Any] | None:
    """The fold of every sample, as the archive has it; `mipfs verify` says what is wrong with it."""
    member = archive.members(content).get(FOLDS)
    try:
        found = {} if member is None else load_arrays(file, member, known=(FOLD, PART), times=PROOF_TIMES)
    except DataError:
        return None
    return found.get(FOLD, found.get(PART))


def use_of(path: SolutionPath) -> str:
    """The commands that use the chosen point of a path; "" where nothing was chosen."""
    if path.best is None:
        return ""
    file = "PATH.json" if path.file is None else Path(path.file).name
    return f"mipfs verify '{file}#best' DATA\nmipfs predict '{file}#best' NEW"


def save(path: SolutionPath, file: Path, limit: float) -> None:
    """Write the JSON of a path and the certificates of its points beside it."""
    from mipfs.plumbing import output_file

    if output_file.is_stream(file):
        output_file.save([(file, f"{path.to_json()}\n".encode())])
        return
    name = pair.sidecar_of(file).name
    folds = {} if path.fold is None else {FOLDS: npz_bytes({FOLD if path.fold.ndim == 1 else PART: path.fold})}
    content, entries = archive.packed_together((point.result for point in path.points), name, limit, folds)
    points = [
        replace(point, result=point.result._with_certified_bound(entry))
        for point, entry in zip(path.points, entries, strict=True)
    ]
    beside = None if content is None else {"file": name, "sha256": hashlib.sha256(content).hexdigest()}
    written = replace(path, points=tuple(points), certificate=beside)
    pair.save(file, f"{written.to_json()}\n".encode(), content)
    object.__setattr__(path, "file", str(file))
