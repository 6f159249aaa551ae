"""Paths, ladders and benchmarks read back from their JSON: what is left out or odd is named."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

from mipfs.errors import DataError
from mipfs.lab.classes.one_vs_rest import OneVsRest, classes_or_none
from mipfs.lab.scorecard import Scorecard, read_scorecard
from mipfs.lab.studies.bench import Bench
from mipfs.lab.studies.bench_shown import bench_of, is_bench
from mipfs.lab.studies.ladder import Comparison, Rung
from mipfs.lab.studies.point_files import certified
from mipfs.lab.studies.solution_path import Point, SolutionPath
from mipfs.plumbing import strict_json
from mipfs.proof import pair
from mipfs.readers.files import opened
from mipfs.result import documents
from mipfs.result.documents import AXES, CARD, held
from mipfs.result.result import SCHEMA, Result

Study = Result | SolutionPath | Comparison | OneVsRest | Bench | Scorecard
"""What `mipfs solve`, `path`, `compare`, `bench` and `scorecard` write."""
REMEDY = "give a file written by `mipfs solve`, `compare`, `path` or `bench` with --json"
STABILITY = "its page is made with it: `mipfs stability DATA --report page.html`"
Kind = TypeVar("Kind", SolutionPath, Comparison)


def load(path: str | Path) -> Study:
    """Read a JSON file that `mipfs solve`, `path`, `compare`, `bench` or `scorecard` wrote.

    Raises
    ------
    DataError
        No such JSON, or a field that is missing or of the wrong kind.
    """
    path = Path(path)
    if (several := classes_or_none(path)) is not None:
        return several
    if held(path).kind == CARD:
        return read_scorecard(path)

    def parsed() -> tuple[Study, Mapping[str, Any] | None]:
        found = _study(path)
        return found, found.certificate if isinstance(found, SolutionPath) else None

    found, sidecar = pair.read(path, parsed)
    if not isinstance(found, SolutionPath):
        return found
    content = None
    if sidecar is not None and sidecar.found:
        content = sidecar.path.read_bytes() if sidecar.content is None else sidecar.content
    return certified(found, path, content)


def _study(path: Path) -> Study:
    """What a JSON holds, without the certificates beside it."""
    with opened(path) as stream:
        content = stream.read()
    try:
        text = content.decode("utf-8")
        document = strict_json.parsed(text)
    except UnicodeDecodeError:
        raise DataError("not a text file", REMEDY, path=path) from None
    except ValueError as error:
        line = error.lineno if isinstance(error, json.JSONDecodeError) else None
        raise DataError(f"not a JSON document ({error})", REMEDY, path=path, line=line) from None
    if is_bench(document):
        return bench_of(path)
    if isinstance(document, dict) and "ladder" in document:
        return _read(comparison_of, document, path)
    if isinstance(document, dict) and "points" in document:
        found = _read(path_of, document, path)
        documents.require_consistent(path, document)
        return found
    if isinstance(document, dict) and {"draws", "sets", "features"} <= document.keys():
        raise DataError("a stability report, which is not read again", STABILITY, path=path)
    return Result.from_json(text, path=path)


def loaded(path: str | Path, kind: type[Kind]) -> Kind:
    """`load` of a file that must hold one kind of study."""
    found = load(path)
    if not isinstance(found, kind):
        raise DataError(f"a {type(found).__name__}, and not a {kind.__name__}", REMEDY, path=path)
    return found


def _read(read: Callable[[Mapping[str, Any]], Study], document: Mapping[str, Any], path: Path) -> Study:
    try:
        return read(document)
    except DataError as error:  # of the result of a point
        raise DataError(error.message, REMEDY, path=path) from None
    except ValueError as error:
        raise DataError(str(error), REMEDY, path=path) from None


def comparison_of(document: Mapping[str, Any]) -> Comparison:
    """A ladder from its `document`.

    Raises
    ------
    ValueError
        A field is missing or of the wrong kind.
    """
    _schema(document, "comparison")
    rungs = []
    for line in _list(document, "ladder"):
        size = _get(line, "size", (dict, type(None)))
        if size is not None:
            size = {name: int(_number(size, name)) for name in size}
            _known(size.keys() >= {"constraints", "variables"}, "size", size)
        rungs.append(
            Rung(
                _get(line, "name", (str,)),
                _get(line, "is_bound", (bool,)),
                _number(line, "value", -math.inf),
                _number(line, "gap", math.inf),
                _number(line, "seconds"),
                size,
                _get(line, "status", (str,)),
            )
        )
    return Comparison(
        _get(document, "params", (dict,)),
        _number(document, "incumbent", math.inf),
        _names(document, "selected") if "selected" in document else (),
        tuple(rungs),
        _names(document, "conflict") if "conflict" in document else (),
        _command(document),
    )


def path_of(document: Mapping[str, Any]) -> SolutionPath:
    """A path from its `document`; the cold solves, of which it has the seconds alone, are left out.

    Raises
    ------
    ValueError
        A field is missing or of the wrong kind.
    """
    _schema(document, "path")
    axis = _get(document, "axis", (str,))
    _known(axis in AXES, "axis", axis)
    axes = axis.split(",")
    rule = document.get("rule", "least-error")
    points = tuple(_point(line, axes) for line in _list(document, "points"))
    places = {point.value for point in points}
    chosen, least, one_se = (_value(document, name, axes, places) for name in ("chosen", "least_error", "one_se"))
    folds = _get(document, "folds", (int, type(None)))
    return SolutionPath(
        axis,
        _get(document, "params", (dict,)),
        _get(document, "driver", (str,)),
        points,
        _get(document, "interrupted", (bool,)),
        folds,
        _get(document, "seed", (int,)),
        chosen,
        chosen if rule == "least-error" else least,
        one_se,
        "one-se" if rule == "one-se" else "least-error",
        _command(document),
        _get(document, "certificate", (dict,)) if document.get("certificate") is not None else None,
    )


def _point(line: Mapping[str, Any], axes: list[str]) -> Point:
    result = Result.from_json(json.dumps(_get(line, "result", (dict,))))
    return Point(
        {axis: _number(line, axis) for axis in axes},
        result,
        _number(line, "bound", -math.inf),
        _number(result.params, "gap"),
        _number(line, "seconds"),
        int(_number(line, "cuts_carried")),
        int(_number(line, "cuts")),
        _names(line, "start"),
        _get(line, "added", (str,)) if "added" in line else "",
        errors=tuple(_number({"errors": one}, "errors") for one in _list(line, "errors", (int, float))),
        fold_classifiers=tuple(map(_classifier, _list(line, "fold_classifiers") if "fold_classifiers" in line else ())),
    )


def _classifier(stated: Any) -> dict[str, Any]:
    """A classifier of a fold."""
    weights = _get(stated, "weights", (dict,))
    return {"weights": {name: _number(weights, name) for name in weights}, "intercept": _number(stated, "intercept")}


def _value(document: Mapping[str, Any], name: str, axes: list[str], places: set[Any]) -> Any:
    """The value of a point that is named in the document, such as the chosen one."""
    given = document.get(name)
    if given is None:
        return None
    value = tuple(_number(given, axis) for axis in axes) if isinstance(given, dict) else given
    _known(not isinstance(value, (list, dict)) and value in places, name, given)
    return value


def _schema(document: Mapping[str, Any], what: str) -> None:
    if not strict_json.is_schema(document.get("schema"), SCHEMA):
        raise ValueError(f"not a {what} of schema {SCHEMA}")


def _get(line: Any, name: str, kinds: tuple[type, ...]) -> Any:
    if not isinstance(line, dict) or name not in line:
        raise ValueError(f"not complete: it has no {name!r}")
    value = line[name]
    _known(isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool)), name, value)
    return value


def _number(line: Any, name: str, unearned: float | None = None) -> Any:
    """A number; `unearned` where null stands and may stand."""
    value = _get(line, name, (int, float, type(None)))
    _known(value is not None or unearned is not None, name, value)
    return unearned if value is None else value


def _list(line: Any, name: str, kinds: tuple[type, ...] = (dict,)) -> list[Any]:
    values = _get(line, name, (list,))
    for value in values:
        _known(isinstance(value, kinds) and not isinstance(value, bool), name, value)
    return list(values)


def _names(line: Any, name: str) -> tuple[str, ...]:
    return tuple(_list(line, name, (str,)))


def _command(document: Mapping[str, Any]) -> str | None:
    return cast(str | None, _get(document, "command", (str, type(None))) if "command" in document else None)


def _known(holds: bool, name: str, value: Any) -> None:
    if not holds:
        text = json.dumps(value)
        raise ValueError(f"not complete: {name!r} cannot be {text if len(text) <= 60 else text[:60] + '...'}")
