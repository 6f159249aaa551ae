"""A saved benchmark read back: its setting and its records, every field of the kind that `mipfs bench` writes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict

from mipfs.data.names import Numbered
from mipfs.errors import DataError, UsageError
from mipfs.lab.studies.bench_methods import get_method
from mipfs.lab.studies.bench_rows import rows_of
from mipfs.lab.studies.bench_unit import DONE, Record, Setting
from mipfs.plumbing import strict_json, typed_json
from mipfs.plumbing.typed_json import FieldError, Numbers, Sizes, Whole

SCHEMA = 1
KIND = "bench"
REMEDY = "give what `mipfs bench -o FILE` wrote"


class UnitEntry(TypedDict):
    """What became of a unit."""

    method: str
    M: Whole | None
    fold: Whole
    status: str
    message: str


class FailedEntry(UnitEntry):
    """What a unit has that is not done."""

    seconds: NotRequired[float]


class DoneEntry(UnitEntry):
    """What a unit that is done has beside that; `selected` are positions."""

    value: float
    n_features: Whole
    selected: list[Whole] | None
    C: float
    seconds: float
    cpu_seconds: NotRequired[float | None]
    choice_seconds: float
    memory_bytes: float | None
    proof: str | None
    gap: float | None
    stopped: str | None


class BenchRowEntry(TypedDict):
    """A line of the table, which follows from the records; but for the names of the features in it."""

    method: NotRequired[str]
    M: NotRequired[Whole | None]
    folds: NotRequired[Whole]
    done: NotRequired[Whole]
    value: NotRequired[float | None]
    deviation: NotRequired[float | None]
    standard_error: NotRequired[float | None]
    values: NotRequired[list[float | None]]
    n_features: NotRequired[float | None]
    sparsity: NotRequired[float | None]
    C: NotRequired[list[float | None]]
    seconds: NotRequired[float | None]
    choice_seconds: NotRequired[float | None]
    memory_bytes: NotRequired[float | None]
    stability: NotRequired[dict[str, float | None] | None]
    shares: Numbers
    proofs: NotRequired[Sizes]
    notes: NotRequired[dict[str, Any]]


class BenchDocument(TypedDict):
    """What mipfs bench --json writes."""

    schema: Literal[1]
    kind: Literal["bench"]
    complete: bool
    params: Setting
    n_features: Whole
    rows: list[BenchRowEntry]
    records: tuple[FailedEntry | DoneEntry, ...]


class ChosenNames(Numbered):
    """The names of the features that were chosen in any fold, which the JSON has; the others are numbered."""

    def __init__(self, count: int, known: Mapping[int, str]) -> None:
        super().__init__(count)
        self._known = dict(known)

    def made(self, j: int) -> str:
        """Name j."""
        return self._known.get(j) or super().made(j)


def load(path: str | Path, p: int | None = None) -> tuple[Setting, tuple[Record, ...], bool]:
    """Setting and records of a saved benchmark, and whether it was complete.

    Parameters
    ----------
    path : path-like
    p : int, optional, the features of its data; those of the document by default

    Raises
    ------
    DataError
        No such file, or no benchmark.
    """
    found = _read(path, p)
    return found["params"], found["records"], found["complete"]


def load_with_names(path: str | Path) -> tuple[Setting, ChosenNames, tuple[Record, ...], bool]:
    """What `load` says of a benchmark, and the names of its features.

    Raises
    ------
    DataError
        No such file, or no benchmark.
    """
    found = _read(path, None)
    setting, records, p = found["params"], found["records"], found["n_features"]
    try:  # the names of a line stand in the order of their positions
        pairs = zip(rows_of(setting, records, p), found["rows"], strict=True)
        known = {j: name for row, said in pairs for (j, _), name in zip(row.shares, said["shares"], strict=True)}
    except ValueError as error:
        raise DataError(f"is no benchmark ({error})", REMEDY, path=path) from None
    return setting, ChosenNames(p, known), records, found["complete"]


def _read(path: str | Path, p: int | None) -> Any:
    try:
        document = strict_json.parse_json(Path(path).read_text(encoding="utf-8"))
        if not isinstance(document, dict) or document.get("kind") != KIND:
            raise ValueError("another kind of document")
        found = typed_json.read(document, BenchDocument)
        for k, one in enumerate(found["records"]):
            _check_record(one, found["n_features"] if p is None else p, k)
        for name in found["params"].methods:
            get_method(name)
        return found
    except OSError as error:
        raise DataError("cannot be read", (error.strerror or str(error)).lower(), path=path) from None
    except (ValueError, UsageError) as error:
        raise DataError(f"is no benchmark ({error})", REMEDY, path=path) from None


def _check_record(one: Mapping[str, Any], p: int, k: int) -> None:
    """Refuse a record that is done and lacks a field, or selects what is no feature of the data."""
    if one["status"] != DONE:
        return
    try:
        chosen = typed_json.read(one, DoneEntry)["selected"] or []
    except FieldError as error:
        raise error.inside(k).inside("records") from None
    if max(chosen, default=-1) >= p or len(set(chosen)) < len(chosen):
        raise FieldError(chosen, ("records", k, "selected"))
