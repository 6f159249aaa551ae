"""Paths, ladders and benchmarks read back from their JSON: what is left out or odd is named."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from mipfs.errors import DataError
from mipfs.lab.classes.one_vs_rest import OneVsRest, classes_or_none
from mipfs.lab.scorecard import Scorecard, read_scorecard
from mipfs.lab.studies import bench_reading
from mipfs.lab.studies.bench import Bench
from mipfs.lab.studies.between import Between
from mipfs.lab.studies.ladder import Comparison, ComparisonDocument
from mipfs.lab.studies.point_files import attach_certificates
from mipfs.lab.studies.selection_stability import SelectionStability, StabilityDocument
from mipfs.lab.studies.solution_path import PathPoint, SolutionPath, Value
from mipfs.lab.studies.steps import MovedRow
from mipfs.plumbing import strict_json, typed_json
from mipfs.proof import pair
from mipfs.readers.files import opened
from mipfs.result import documents
from mipfs.result.documents import CARD, read_contents
from mipfs.result.result import SCHEMA, Result

Study = Result | SolutionPath | Comparison | OneVsRest | Bench | Scorecard | SelectionStability
"""What `mipfs solve`, `path`, `compare`, `bench`, `scorecard` and `stability` write."""
REMEDY = "give a file written by `mipfs solve`, `compare`, `path`, `bench`, `scorecard` or `stability` with --json"
NUMBERS = ("intercept", "objective", "bound")
"""What is said of a set between two points of a path beside its weights."""
Kind = TypeVar("Kind", SolutionPath, Comparison)


def load(path: str | Path) -> Study:
    """Read a JSON file that `mipfs solve`, `path`, `compare`, `bench`, `scorecard` or `stability` wrote.

    Raises
    ------
    DataError
        No such JSON, or a field that is missing or of the wrong kind.
    """
    path = Path(path)
    if (several := classes_or_none(path)) is not None:
        return several
    if read_contents(path).kind == CARD:
        return read_scorecard(path)

    def parsed() -> tuple[Study, Mapping[str, Any] | None]:
        found = _read_study(path)
        return found, found.certificate if isinstance(found, SolutionPath) else None

    found, sidecar = pair.read(path, parsed)
    if not isinstance(found, SolutionPath):
        return found
    content = None
    if sidecar is not None and sidecar.found:
        content = sidecar.path.read_bytes() if sidecar.content is None else sidecar.content
    return attach_certificates(found, path, content)


def _read_study(path: Path) -> Study:
    """What a JSON holds, without the certificates beside it."""
    with opened(path) as stream:
        content = stream.read()
    try:
        text = content.decode("utf-8")
        document = strict_json.parse_json(text)
    except UnicodeDecodeError:
        raise DataError("not a text file", REMEDY, path=path) from None
    except ValueError as error:
        line = error.lineno if isinstance(error, json.JSONDecodeError) else None
        raise DataError(f"not a JSON document ({error})", REMEDY, path=path, line=line) from None
    if isinstance(document, dict) and document.get("kind") == bench_reading.KIND:
        setting, names, records, complete = bench_reading.load_with_names(path)
        return Bench(setting, names, records, not complete)
    if isinstance(document, dict) and "ladder" in document:
        return comparison_of(path, document)
    if isinstance(document, dict) and "points" in document:
        found = read_solution_path(path, document)
        documents.require_consistent(path, document)
        return found
    if isinstance(document, dict) and {"draws", "sets", "features"} <= document.keys():
        return stability_of(path, document)
    if isinstance(document, dict) and documents.kind_of(document) == documents.SKETCH:
        raise DataError(f"this is {documents.UNPROVEN[documents.SKETCH]}, of which there is no page", REMEDY, path=path)
    return Result.from_json(text, path=path)


def load_kind(path: str | Path, kind: type[Kind]) -> Kind:
    """`load` of a file that must hold one kind of study."""
    found = load(path)
    if not isinstance(found, kind):
        raise DataError(f"a {type(found).__name__}, and not a {kind.__name__}", REMEDY, path=path)
    return found


def comparison_of(path: Path, document: Mapping[str, Any]) -> Comparison:
    """The ladder in a file, of its JSON.

    Raises
    ------
    DataError
        A field is missing or of the wrong kind.
    """
    if not strict_json.is_schema(document.get("schema"), SCHEMA):
        raise DataError(f"not a comparison of schema {SCHEMA}", REMEDY, path=path)
    try:
        found = typed_json.read(document, ComparisonDocument)
    except typed_json.FieldError as error:
        raise DataError(f"not complete: {error}", REMEDY, path=path) from None
    lists = found.get("selected", ()), found["ladder"], found.get("conflict", ())
    return Comparison(found["params"], found["incumbent"], *lists, found.get("command"))


def stability_of(path: Path, document: Mapping[str, Any]) -> SelectionStability:
    """The stability report in a file, of its JSON.

    Raises
    ------
    DataError
        A field is missing or of the wrong kind.
    """
    try:
        found = typed_json.read(document, StabilityDocument)
    except typed_json.FieldError as error:
        raise DataError(f"not complete: {error}", REMEDY, path=path) from None
    return SelectionStability.of(found)


def read_solution_path(path: Path, document: Mapping[str, Any]) -> SolutionPath:
    """The path in a file, of its JSON; the cold solves, of which it has the seconds alone, are left out.

    Raises
    ------
    DataError
        A field is missing or of the wrong kind.
    """
    saved = documents.path_of(path, document)
    found = saved.document
    points = tuple(_read_point(line, place, path) for line, place in zip(found["points"], saved.places, strict=True))
    return SolutionPath(
        found["axis"],
        found["params"],
        found["driver"],
        points,
        found["interrupted"],
        found["folds"],
        found["seed"],
        _read_place(saved.chosen["best"]),
        _read_place(saved.chosen["least-error"]),
        _read_place(saved.chosen["one-se"]),
        "one-se" if found.get("rule") == "one-se" else "least-error",
        found.get("command"),
        found.get("certificate"),
        row=None if found.get("row") is None else MovedRow(**found["row"]),
        between=tuple(_read_between(one) for one in found.get("between", ())),
        by=found.get("by"),
        folds_by=found.get("folds_by"),
    )


def _read_between(entry: Mapping[str, Any]) -> Between:
    """A set at a C between two points."""
    place = {axis: entry[axis] for axis in ("C", "M") if axis in entry}
    return Between(place, tuple(entry["selected"]), dict(entry["weights"]), *map(entry.__getitem__, NUMBERS))


def _read_point(line: Mapping[str, Any], place: documents.Place, path: Path) -> PathPoint:
    result = Result.from_json(json.dumps(line["result"]), path=path)
    carried = line["cuts_carried"], line["cuts"], line["start"], line.get("added", "")
    classifiers = line.get("fold_classifiers", ())
    gap = result.params.get("gap")
    if gap is None:
        raise DataError("not complete: the result of a point has no 'params.gap'", REMEDY, path=path)
    return PathPoint(
        place, result, line["bound"], gap, line["seconds"], *carried,
        errors=line["errors"], fold_classifiers=classifiers,
    )  # fmt: skip


def _read_place(place: documents.Place | None) -> Value | None:
    """The value on the only axis, or those on all axes, of a point that was chosen."""
    values = () if place is None else tuple(place.values())
    return None if not values else values[0] if len(values) == 1 else values
