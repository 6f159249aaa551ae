"""JSON read by annotations: every kind by hand, places in messages, and the schemas made of the same classes."""

from __future__ import annotations

import enum
import importlib.util
import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import pytest

from mipfs.plumbing.declared import NumberRange
from mipfs.plumbing.typed_json import JUDGED, FieldError, FileName, Null, Numbers, Such, Whole, Written, plain, read
from mipfs.result.result_document import ResultDocument
from tests.schemas import FOLDER, broken

spec = importlib.util.spec_from_file_location("schemas_page", FOLDER.parent / "schemas.py")
assert spec is not None
assert spec.loader is not None
schemas = importlib.util.module_from_spec(spec)
spec.loader.exec_module(schemas)
KEPT = Path(__file__).parent / "kept_results"
KINDS = {
    "classes": {"kind": "one-vs-rest"}, "card": {"kind": "scorecard", "version": 2}, "bench": {"kind": "bench"},
    "path": {"axis": None}, "compare": {"ladder": None}, "result": {"driver": None}, "stability": {"draws": None},
}  # fmt: skip


class Colour(enum.Enum):
    RED = "r"


KNOWN = ("a", "b")


class LineEntry(TypedDict):
    name: Annotated[str, Such(lambda name: name in KNOWN)]
    lb: float | None
    origin: NotRequired[str]
    own: Annotated[int, JUDGED]


@dataclass
class Rung:
    name: str
    value: Annotated[float, Null(-math.inf)]
    size: int = 3


@pytest.mark.parametrize(
    ("kind", "takes", "refuses"),
    [
        (str, ["", "a"], [None, 1, ["a"]]),
        (int, [0, -3], [True, 1.0, "1", None]),
        (float, [0, 1.5, -2], [True, "1", None, []]),
        (bool, [True, False], [0, 1, None, "true"]),
        (Whole, [0, 7], [-1, 1.0, True]),
        (Annotated[float, NumberRange(above=0)], [1e-300, 3], [0, 0.0, -1, True]),
        (Annotated[list[int], NumberRange(1, 2)], [[1], [1, 2]], [[], [1, 2, 3], ["a"], 1]),
        (Literal[1, "a"], [1, "a"], [True, 1.0, "b", None, [1]]),
        (tuple[str, float], [["a", 1]], [["a"], ["a", 1, 2], ["a", "b"], "ab", {"a": 1}]),
        (list[str] | None, [None, [], ["a"]], [[1], "a", {}]),
        (Numbers, [{}, {"a": 1}], [{"a": None}, [], None]),
        (str | int | float, ["a", 1, 1.5], [None, True, []]),
        (Annotated[str, Such(lambda value: value != "x")], ["a"], ["x", 1]),
        (Annotated[dict[str, Any], Such(lambda value: value["a"] > 0)], [{"a": 1}], [{}, {"a": "b"}, {"a": 0}]),
        (Annotated[str, Written(Literal["a"])], ["a", "b"], [1]),
        (FileName, ["a.npz"], ["", "..", "a/b", "a\0", 1]),
    ],
)
def test_what_a_kind_takes(kind: Any, takes: list[Any], refuses: list[Any]) -> None:
    for value in takes:
        found = read(value, kind)
        assert plain(found) == value
        assert type(plain(found)) is type(value), "whole numbers stay whole"
    for value in refuses:
        with pytest.raises(FieldError):
            read(value, kind)


def test_tables_keep_what_they_do_not_know_and_objects_leave_it() -> None:
    stated = {"name": "a", "lb": None, "strange": [1], "own": "anything"}
    assert read(stated, LineEntry) == stated
    assert read({"name": "a", "lb": 1}, LineEntry) == {"name": "a", "lb": 1}
    assert read({"name": "a", "value": None, "strange": 1}, Rung) == Rung("a", -math.inf)
    assert read(["RED"], list[Colour]) == [Colour.RED]
    assert plain({"c": Colour.RED, "of": (Rung("a", math.nan),)}) == {
        "c": "RED", "of": [{"name": "a", "value": None, "size": 3}],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("value", "kind", "said"),
    [
        ([{"name": "a", "lb": "x"}], list[LineEntry], "'[0].lb' cannot be \"x\""),
        ({"rows": {"a b": [{"lb": 1}]}}, dict[str, dict[str, list[LineEntry]]], "it has no 'rows[\"a b\"][0].name'"),
        ({"a": ["x" * 200]}, dict[str, list[int]], "'a[0]' cannot be \"" + "x" * 59 + "..."),
        ({"c": "BLUE"}, dict[str, Colour], "'c' cannot be \"BLUE\""),
        ({"a": 1}, Rung, "it has no 'name'"),
    ],
)
def test_messages_name_the_place_and_the_value(value: Any, kind: Any, said: str) -> None:
    with pytest.raises(FieldError, match=f"^{re.escape(said)}$"):
        read(value, kind)


@pytest.mark.parametrize("name", schemas.FILES)
def test_schemas_in_the_repository_are_those_of_the_classes(name: str) -> None:
    assert (FOLDER / name).read_text(encoding="utf-8") == schemas.text(name), "run: python docs/schemas.py"


def kept() -> Iterator[tuple[Path, str, Any]]:
    """Documents of every kind that earlier versions wrote, and the file of their schema; of results every 61st."""
    files = sorted(path for folder in KEPT.iterdir() if folder.name[0].isdigit() for path in folder.glob("*.json"))
    for path in files[::61] + [path for path in files if path.stem in ("path-one-se", "shared", "card", "stability")]:
        found = json.loads(path.read_text(encoding="utf-8"))
        for kind, said in KINDS.items():
            if all(name in found and value in (None, found[name]) for name, value in said.items()):
                yield path, f"{kind}-1.json", found
                break


def mutants(value: Any) -> Iterator[Any]:
    """The value with another one in one of its places, down to four levels; of long lists in the first two."""
    yield from (3, -1.5, True, None, "w", [], {}, [2], {"a": 1.0})
    places = [*value] if isinstance(value, dict) else range(min(2, len(value))) if isinstance(value, list) else []
    for place in places:
        for other in mutants(value[place]):
            changed = value.copy()
            changed[place] = other
            yield changed
        if isinstance(value, dict):
            yield {name: one for name, one in value.items() if name != place}


@pytest.mark.slow
def test_what_a_schema_allows_is_read() -> None:
    """A schema is narrower than the reader, never wider: by a validator that knows nothing of the classes."""
    taken = refused = 0
    for path, name, found in kept():
        schema = json.loads((FOLDER / name).read_text(encoding="utf-8"))
        assert not broken(found, schema), path
        document = {one: found[one] for one in found if one not in ("trace", "result", "results", "settings")}
        if "points" in document:  # a stub stands for the result of a point, which is read by itself
            document["points"] = [{**found["points"][0], "result": {"schema": 1}}]
        apart = {one: found[one] for one in ("trace", "result", "results", "settings") if one in found}
        for changed in mutants(document):
            whole = changed | apart if isinstance(changed, dict) else changed
            try:
                read(whole, schemas.FILES[name])
                taken += 1
            except FieldError:
                refused += 1
                wrong = [
                    line for line in broken(whole, schema) if not re.match("/points/0/result: .* is missing", line)
                ]
                assert wrong, (path, name, changed)
    assert min(taken, refused) > 500


def test_a_forged_entry_inside_a_table_reaches_the_checker() -> None:
    found = json.loads((KEPT / "0.1.0" / "hinge.json").read_text(encoding="utf-8"))
    found["params"]["forged"] = 1
    found["rows"] = [{"name": "r", "terms": {}, "lb": None, "ub": 1, "origin": "", "forged": 2}]
    again = read(found, ResultDocument)
    assert (again["params"]["forged"], again["rows"][0]["forged"]) == (1, 2)
