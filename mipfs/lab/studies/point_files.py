"""The points of a path as results of their own, with their certificates: ``path.json#M=4,C=0.1``, ``path.json#best``.

Beside path.json stands path.cert.npz, which holds the certificate of its k-th point as ``k.cert.npz``, the file that
would stand beside that point's own JSON. Both are written together, as a result and its certificate are.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from mipfs.errors import DataError, UsageError
from mipfs.lab.studies.steps import place_text
from mipfs.proof import pair
from mipfs.readers.arrays import load_arrays, npz_bytes
from mipfs.report.numbers import first_of
from mipfs.result import archive
from mipfs.result.result import Result

if TYPE_CHECKING:
    from mipfs.lab.studies.solution_path import Point, SolutionPath

FOLDS = "folds.npz"
"""The member of the archive that says in which fold every sample is (`mipfs.check.folds`)."""
CHOSEN = {"best": "chosen", "one-se": "one_se", "least-error": "least_error"}
"""What a point that folds chose is called, and where a path has its value."""
MOST_NAMED = 12
"""Points that a message names."""


def certified(path: SolutionPath, file: Path, content: bytes | None) -> SolutionPath:
    """A path that was read from a file, each point's result with its certificate out of the contents beside it."""
    results = archive.certified((point.result for point in path.points), content)
    pairs = zip(path.points, results, strict=True)
    points = tuple(replace(point, result=replace(result, path=file)) for point, result in pairs)
    return replace(path, points=points, file=str(file), fold=_fold(file, archive.members(content).get(FOLDS)))


def _fold(file: Path, content: bytes | None) -> npt.NDArray[np.int32] | None:
    """The fold of every sample, as the archive has it; `mipfs verify` says what is wrong with it."""
    try:
        found = {} if content is None else load_arrays(file, content)
    except DataError:
        return None
    return found.get("fold")


def split(text: str) -> tuple[str, str | None]:
    """The file and the name of the point in ``path.json#M=4``; a file that is called so is one."""
    file, mark, name = text.rpartition("#")
    return (text, None) if not mark or os.path.exists(text) else (file, name)


def load(text: str) -> Result:
    """The result in a file, a point of a path in one, or a class: ``path.json#M=4,C=0.1``, ``#best``, ``#setosa``.

    Raises
    ------
    DataError
        No such file, or no result or path in it.
    UsageError
        No such point or class, or the file holds a path or several classes, and none is named.
    """
    from mipfs.lab.classes.one_vs_rest import classes_or_none
    from mipfs.lab.studies import reading
    from mipfs.lab.studies.solution_path import SolutionPath

    file, name = split(text)
    several = classes_or_none(file)
    if several is not None and name is None:
        names = ", ".join(f"{file}#{label}" for label in several.classes)
        raise UsageError(f"{file} holds a classifier of each of several classes; name one of them: {names}")
    if name is not None:
        return several.named(name) if several is not None else named(SolutionPath.load(file), name, file).result
    try:
        return Result.load(file)
    except DataError as error:
        study = reading.path_or_none(file)
        if study is None:
            raise error
    raise UsageError(f"{file} holds a path, not a result; name one of its points: {_points(study, file)}")


def named(path: SolutionPath, name: str, file: str = "the path") -> Point:
    """A point by its name, "best", "one-se", "least-error" or its place, such as "M=4,C=0.1".

    Raises
    ------
    UsageError
        No such point.
    """
    if name in CHOSEN:
        value = getattr(path, CHOSEN[name])
        if value is None:
            raise UsageError(f"{file}#{name}: folds chose nothing there (`--folds k`); name {_points(path, file)}")
        return path[value]
    asked = _place(name, path.axes)
    found = [point for point in path.points if asked is not None and dict(point.place) == asked]
    if not found:
        raise UsageError(f"{file}#{name}: the path has no such point; name {_points(path, file)}")
    return found[0]


def _place(name: str, axes: Sequence[str]) -> dict[str, float] | None:
    """Axis to value, None where that is not said of every axis once."""
    asked: dict[str, float] = {}
    for part in name.split(","):
        axis, _, value = part.partition("=")
        try:
            asked[axis.strip()] = float(value)
        except ValueError:
            return None
    return asked if asked.keys() == set(axes) and len(name.split(",")) == len(axes) else None


def _points(path: SolutionPath, file: str) -> str:
    """Names of points, for a message."""
    chosen = [name for name, kept in CHOSEN.items() if getattr(path, kept) is not None and name != "least-error"]
    names = [*chosen, *(name_of(point) for point in path.points)]
    return first_of(names, MOST_NAMED, lambda name: f"{file}#{name}") or "none: it has no points"


def name_of(point: Point) -> str:
    """The name of a point: M=4,C=0.1."""
    return place_text(point.place).replace(" = ", "=").replace(", ", ",")


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
    folds = {} if path.fold is None else {FOLDS: npz_bytes({"fold": path.fold})}
    content, entries = archive.packed_together((point.result for point in path.points), name, limit, folds)
    points = [
        replace(point, result=point.result._claiming(entry)) for point, entry in zip(path.points, entries, strict=True)
    ]
    beside = None if content is None else {"file": name, "sha256": hashlib.sha256(content).hexdigest()}
    written = replace(path, points=tuple(points), certificate=beside)
    pair.save(file, f"{written.to_json()}\n".encode(), content)
    object.__setattr__(path, "file", str(file))
