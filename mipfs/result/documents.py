"""What a JSON file holds, and a result out of it: ``r.json``, a point ``path.json#M=4``, a class ``c.json#setosa``.

Every command that reads what was written asks here, and loads the laboratory where it needs more of a path, several
classes or a card than one result. Files hold values that others may have changed: what is left out or odd is named.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from mipfs.check.classes import check_summary
from mipfs.check.paths import check_stated
from mipfs.check.rounding import CertificateError
from mipfs.errors import DataError, UsageError
from mipfs.plumbing import strict_json, typed_json
from mipfs.proof import pair
from mipfs.report.numbers import first_of
from mipfs.result import archive, result_json
from mipfs.result.class_results import ClassResults
from mipfs.result.path_document import ClassesDocument, PathDocument
from mipfs.result.result import SCHEMA, Result

RESULT, PATH, LADDER, CLASSES, CARD, SKETCH = "result", "path", "ladder", "one-vs-rest", "scorecard", "sketch"
UNPROVEN = {
    LADDER: "a ladder of relaxations",
    "bench": "a benchmark",
    "subsampling": "a stability report",
    "bootstrap": "a stability report",
    SKETCH: "a choice of columns by `mipfs sketch`",
}
"""Kinds of documents in which nothing carries a proof, in words."""
CHOSEN = {"best": "chosen", "one-se": "one_se", "least-error": "least_error"}
"""What a point that folds chose is called, and where a path has its value."""
MOST_NAMED = 12
"""Points that a message names."""
NO_CLASSES = "give what `mipfs solve --json` wrote of data with more than two classes"
NO_PATH = "give a file written by `mipfs path --json`"

Place = Mapping[str, float]
"""Where a point of a path is: axis to value."""


class FileContents(NamedTuple):
    """What a file holds: the kind of document, and its JSON; of what cannot be read a result without anything."""

    kind: str
    document: Mapping[str, Any]


def split_point(text: str) -> tuple[str, str | None]:
    """The file and the name of the point or class in ``path.json#M=4``; a file that is called so is one."""
    file, mark, name = text.rpartition("#")
    return (text, None) if not mark or os.path.exists(text) else (file, name)


def read_contents(path: str | Path) -> FileContents:
    """What a file holds; what cannot be read is a result, whose reader says why it cannot."""
    try:
        document = strict_json.parse_json(result_json.read(path))
    except (DataError, ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        return FileContents(RESULT, {})
    return FileContents(kind_of(document), document)


def kind_of(document: Mapping[str, Any]) -> str:
    """The kind of a document: the one that it states, or what it has inside tells."""
    if "kind" in document:
        return str(document["kind"])
    inside = {"ladder": LADDER, "points": PATH, "guarantee": SKETCH}
    return next((kind for name, kind in inside.items() if name in document), RESULT)


def load(text: str) -> Result:
    """The result in a file, a point of a path in one, or a class: ``path.json#M=4,C=0.1``, ``#best``, ``#setosa``.

    Raises
    ------
    DataError
        No such file, or no result or path in it.
    UsageError
        No such point or class, or the file holds a path or several classes, and none is named.
    """
    file, name = split_point(text)
    found = read_contents(file)
    if found.kind == CLASSES:
        require_consistent(file, found.document)
        classes = classes_of(file, found.document)
        if name is not None:
            return classes.named(name)
        names = ", ".join(f"{file}#{label}" for label in classes.classes)
        raise UsageError(f"{file} holds a classifier of each of several classes; name one of them: {names}")
    if found.kind in UNPROVEN:
        raise UsageError(
            f"{file} holds {UNPROVEN[found.kind]}, not a result; solve the problem with "
            "`mipfs solve MODEL DATA --json r.json` and give that"
        )
    if name is not None:
        return point_of(file, name)
    if found.kind == PATH:
        saved = path_of(file, found.document)
        raise UsageError(f"{file} holds a path, not a result; name one of its points: {saved.names}")
    if found.kind == CARD:
        raise UsageError(f"{file} holds a scorecard, not a result; give the file of the result that it was made of")
    return Result.load(file)


def load_to_pose(text: str) -> Result:
    """The result in a file as `load` has it, for a problem that is posed again from it and the data alone.

    Raises
    ------
    UsageError
        A class of several whose samples were weighed by their classes: the result of one class has the weights of none.
    """
    file, name = split_point(text)
    found = read_contents(file)
    if found.kind == CLASSES and name is not None and found.document.get("class_weight"):
        raise UsageError(
            f"{text}: its samples were weighed by all classes (class_weight), which the result of one class does not "
            "say; write the labels of the data as that class and the rest, and solve those"
        )
    return load(text)


def require_consistent(file: str | Path, document: Mapping[str, Any]) -> None:
    """Refuse a path or several classes whose summary contradicts the results that stand in it.

    Raises
    ------
    DataError
    """
    check = check_summary if document.get("kind") == CLASSES else check_stated
    try:
        check(document)
    except CertificateError as error:
        reason = str(error)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        reason = f"{type(error).__name__}: {error}"
    else:
        return
    raise DataError(f"it contradicts itself: {reason}", "give the file as mipfs wrote it", path=Path(file))


# --- Paths ---


@dataclass(frozen=True, eq=False)
class SavedPath:
    """A path in a file: where its points are.

    Attributes
    ----------
    file : str
    places : tuple of mappings of axis to value
    chosen : mapping of "best", "one-se" and "least-error" to a place, None where folds chose nothing
    results : tuple of mappings, the JSON of the result of every point
    document : mapping, a `PathDocument`
    """

    file: str
    places: tuple[Place, ...]
    chosen: Mapping[str, Place | None]
    results: tuple[Mapping[str, Any], ...]
    document: Mapping[str, Any]

    @property
    def names(self) -> str:
        """Names of points, for a message."""
        chosen = [name for name, place in self.chosen.items() if place is not None and name != "least-error"]
        names = [*chosen, *map(name_of, self.places)]
        return first_of(names, MOST_NAMED, lambda name: f"{self.file}#{name}") or "none: it has no points"

    def number_of(self, name: str) -> int:
        """Which point a name is of: "best", "one-se", "least-error" or a place, such as "M=4,C=0.1".

        Raises
        ------
        UsageError
            No such point.
        """
        if name in CHOSEN:
            place = self.chosen[name]
            if place is None:
                raise UsageError(f"{self.file}#{name}: folds chose nothing there (`--folds k`); name {self.names}")
        else:
            place = _parse_place(name)
        if place is None or place not in self.places:
            raise UsageError(f"{self.file}#{name}: the path has no such point; name {self.names}")
        return self.places.index(place)


def point_of(file: str, name: str) -> Result:
    """The result of a point of the path in a file, with its certificate out of the file beside that.

    Raises
    ------
    DataError
        No such file, or no path in it.
    UsageError
        No such point.
    """
    path = Path(file)

    def parsed() -> tuple[SavedPath, Mapping[str, Any] | None]:
        document = _read_document(path)
        found = path_of(file, document)
        require_consistent(file, document)
        return found, document.get("certificate")

    saved, sidecar = pair.read(path, parsed)
    k = saved.number_of(name)
    result = Result.from_json(json.dumps(saved.results[k]), path=path)
    content = None
    if sidecar is not None and sidecar.found:
        content = sidecar.path.read_bytes() if sidecar.content is None else sidecar.content
    return archive.with_certificate(result, k, content)


def path_of(file: str | Path, document: Mapping[str, Any]) -> SavedPath:
    """The path in a file, of its JSON.

    Raises
    ------
    DataError
        It holds something else, or a field is missing or of the wrong kind.
    """
    if not strict_json.is_schema(document.get("schema"), SCHEMA) or "points" not in document:
        raise DataError(f"not a path of schema {SCHEMA}", NO_PATH, path=file)
    try:
        found = typed_json.read(document, PathDocument)
        axes = found["axis"].split(",")
        places = [_place_in(point, axes, ("points", k)) for k, point in enumerate(found["points"])]
        values = {name: _choose_place(found, name, axes) for name in CHOSEN.values()}
    except typed_json.FieldError as error:
        raise DataError(f"not complete: {error}", NO_PATH, path=file) from None
    if found.get("rule", "least-error") == "least-error":
        values["least_error"] = values["chosen"]
    for name, place in values.items():
        if place is not None and place not in places:
            raise DataError(f"not complete: {name!r} is none of its points", NO_PATH, path=file)
    chosen = {name: values[field] for name, field in CHOSEN.items()}
    results = tuple(point["result"] for point in found["points"])
    return SavedPath(str(file), tuple(places), chosen, results, found)


def beside(file: str, field: str) -> tuple[Mapping[str, Any], Path, bytes | None]:
    """The JSON of a document of several results, and where its archive lies, with its contents.

    Parameters
    ----------
    field : the entry that is about the archive as a whole, and not about one of its members

    Raises
    ------
    DataError
        The JSON cannot be read.
    """
    path = Path(file)

    def parsed() -> tuple[Mapping[str, Any], Mapping[str, Any] | None]:
        document = _read_document(path)
        entry = document.get(field)
        return document, entry if isinstance(entry, dict) else None

    document, sidecar = pair.read(path, parsed)
    place = pair.sidecar_of(path) if sidecar is None else sidecar.path
    if sidecar is not None and sidecar.content is not None:
        return document, place, sidecar.content
    try:
        return document, place, place.read_bytes()
    except (OSError, ValueError):
        return document, place, None


def _place_in(entry: Mapping[str, Any], axes: list[str], inside: tuple[str | int, ...]) -> Place:
    """The value of every axis."""
    missing = [axis for axis in axes if axis not in entry]
    if missing:
        raise typed_json.FieldError(None, (*inside, missing[0]), is_missing=True)
    return {axis: entry[axis] for axis in axes}


def _choose_place(document: Mapping[str, Any], name: str, axes: list[str]) -> Place | None:
    """The place that a field names: of several axes a table, of one its value."""
    value = document.get(name)
    if isinstance(value, dict):
        return _place_in(value, axes, (name,))
    if value is not None and len(axes) > 1:
        raise typed_json.FieldError(value, (name,))
    return None if value is None else {axes[0]: value}


def _read_document(path: Path) -> Mapping[str, Any]:
    try:
        document = strict_json.parse_json(result_json.read(path))
    except ValueError as error:
        line = error.lineno if isinstance(error, json.JSONDecodeError) else None
        raise DataError(f"not a JSON document ({error})", NO_PATH, path=path, line=line) from None
    if not isinstance(document, dict):
        raise DataError(f"not a path of schema {SCHEMA}", NO_PATH, path=path)
    return document


def _parse_place(name: str) -> Place | None:
    """Axis to value; None where the name does not say that, each once."""
    parts = name.split(",")
    place = {}
    for part in parts:
        axis, _, value = part.partition("=")
        try:
            place[axis.strip()] = float(value)
        except ValueError:
            return None
    return place if len(place) == len(parts) else None


def name_of(place: Place) -> str:
    """The name of a point: M=4,C=0.1."""
    return ",".join(f"{axis}={value:g}" for axis, value in place.items())


# --- Several classes ---


def classes_of(file: str | Path, document: Mapping[str, Any]) -> ClassResults:
    """The classifiers in a file, of its JSON, with their certificates; `verify` says where one is missing or another.

    Raises
    ------
    DataError
        They are not complete.
    """
    path = Path(file)
    try:
        found = _read_classes(path, document)
    except ValueError as error:
        raise DataError(f"not complete: {error}", NO_CLASSES, path=path) from None
    try:
        content = _archive_of(path, document).read_bytes()
    except (OSError, ValueError):
        content = None
    proofs = tuple(archive.attach_certificates(found.proofs, content))
    return replace(found, classifiers=proofs) if found.together is None else replace(found, together=proofs[0])


def _archive_of(path: Path, document: Mapping[str, Any]) -> Path:
    """Where the archive of a document lies, by the digest that it has of it."""
    entry = document.get("archive")
    return pair.find(path, entry).path if isinstance(entry, dict) else pair.sidecar_of(path)


def _read_classes(path: Path, document: Mapping[str, Any]) -> ClassResults:
    stated = typed_json.read(document, ClassesDocument)
    classes, shared = stated["classes"], stated["together"]
    results = tuple(Result.from_json(json.dumps(one), path=path) for one in stated["results"])
    names = [str(label) for label in classes]
    if len(results) != len(classes) or len(set(names)) < len(names):
        raise ValueError("one result for each of three classes or more is needed")
    if [str(one.labels["positive"]) for one in results] != names:
        raise ValueError("the results are those of other classes")
    together = None if shared is None else Result.from_json(json.dumps(shared), path=path)
    weights = stated.get("class_weight") or {}
    if weights and weights.keys() != set(names):
        raise ValueError("class_weight is no positive number for every class")
    said = stated.get("command")
    command = said if isinstance(said, str) else None
    return ClassResults(classes, results, together, stated.get("bias") is True, weights, command, str(path))
