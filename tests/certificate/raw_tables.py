"""How a raw table becomes columns, once more, and what classifiers do on its rows: an oracle of the attack's own.

It takes the tables that `tests.certificate.documents` writes: comma-separated numbers, words, keys and percents, with
gaps. Nothing of the package is imported; it was written from docs/certificate.md.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import statistics
import struct
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
MISSING = {"", "?", "na", "n/a", "nan", "null"}
ROLES = ("sample_weight",)


class Unreadable(Exception):
    """What a result states of its table is nothing that this table can be read by."""


@dataclass
class Table:
    """A table as it was read, and what follows of it.

    Attributes
    ----------
    names : of the features
    raw : (n, p), the user's values
    labels : of the rows, as JSON has them
    y : (n,) of +1 and -1
    weight : (n,) of the samples
    words : for columns of words that are features
    left_out : columns of words that are none, in order
    filled, missing : as in a recipe
    gaps : for every column with missing cells, where these are
    recipe : mapping or None
    """

    names: list[str]
    raw: Array
    labels: list[Any]
    y: Array
    weight: Array
    words: dict[str, list[str]]
    left_out: list[str]
    filled: dict[str, Any]
    missing: dict[str, int]
    gaps: dict[str, list[int]] = field(default_factory=dict)
    recipe: Mapping[str, Any] | None = None
    rules: int = 1

    def digest(self) -> str:
        """The digest of the data, as the page states it."""
        n, p = self.raw.shape
        given = None if self.names == [f"x{j + 1}" for j in range(p)] else self.names
        rows = [np.flatnonzero(self.raw[:, j]) for j in range(p)]
        counts = struct.pack(f"<{p}q", *map(len, rows))
        places = b"".join(struct.pack(f"<{len(one)}q", *one.tolist()) for one in rows)
        values = b"".join(self.raw[one, j].astype("<f8").tobytes() for j, one in enumerate(rows))
        inner = b"".join(_sha(f"({n}, {p})".encode() + one) for one in (counts, places, values))
        parts = [json.dumps([[n, p], given], ensure_ascii=False).encode(), _sha(inner).hex().encode()]
        parts += [self.y.astype("<f8").tobytes(), self.weight.astype("<f8").tobytes()]
        if self.recipe is not None:
            stated = {
                name: self.recipe[name] for name in ("drop", "impute", "marks", "types", "use") if name in self.recipe
            }
            parts.append(json.dumps([stated, [*map(list, self.missing.items())]], sort_keys=True).encode())
            parts += [struct.pack(f"<{len(one)}q", *one) for one in self.gaps.values()]
        return _sha(b"".join(map(_sha, parts))).hex()

    def scaling(self, kind: str) -> tuple[Array, Array]:
        """Shift and scale of the columns."""
        p = self.raw.shape[1]
        shift, scale = np.zeros(p), np.ones(p)
        counts = self.weight if self.rules >= 5 else np.ones(len(self.weight))
        for j in range(p):
            column = self.raw[:, j]
            if kind == "standard" and np.ptp(column) > 0:
                shift[j] = np.average(column, weights=counts)
                scale[j] = np.sqrt(np.average((column - shift[j]) ** 2, weights=counts))
            elif kind == "unit" and np.any(column):
                scale[j] = np.linalg.norm(column)
        return shift, scale

    def scores(self, classifier: Mapping[str, Any]) -> Array:
        """What a classifier with weights on the user's scale makes of the rows."""
        found = np.full(len(self.raw), float(classifier["intercept"]))
        for name, w in classifier["weights"].items():
            found = found + w * self.raw[:, self.names.index(name)]
        return found


def _sha(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()


def is_label(cell: str, label: Any) -> bool:
    """Whether a cell of the labels' column is that label of the JSON."""
    if isinstance(label, str):
        return cell.strip() == label
    return not isinstance(label, bool) and isinstance(label, (int, float)) and float(cell) == label


def is_left_out(words: Collection[str], n: int) -> bool:
    """Whether the rule leaves a column of words out; none of the tables here looks like a type."""
    d = len(words)
    return (d > 20 and n < 2 * d) or (d > 50 and n < 5 * d)


def read(text: str, result: Mapping[str, Any], rest: Sequence[int] | None = None, of: Any = None) -> Table:
    """The table by what a result states of it.

    Parameters
    ----------
    text : the CSV
    result : the JSON of a result
    rest : the rows that say what missing cells are filled with; all by default
    of : a class, which stands against the others; by default the result's labels are the two
    """
    stated = result.get("read") or {}
    header, *rows = csv.reader(io.StringIO(text), strict=True)
    cells = {name: [row[j] for row in rows] for j, name in enumerate(header)}
    label = "label" if stated.get("label") is None else stated["label"]
    recipe = stated.get("recipe")
    table = Table([], np.empty((len(rows), 0)), [], np.empty(0), np.ones(len(rows)), {}, [], {}, {}, {}, recipe)
    table.rules = result.get("rules") or 1
    if label not in cells:
        raise Unreadable(f"there is no column {label!r}")
    _labels(table, cells[label], result["labels"] if of is None else {"positive": of, "negative": None})
    if "sample_weight" in cells and label != "sample_weight":
        table.weight = np.array([float(v) for v in cells["sample_weight"]])
    asked = recipe or {"drop": [], "use": None, "impute": {}, "types": {}}
    _known(asked, header, label)
    known = result.get("rules") in (2, 3, 4, 5, 6)
    gone = stated.get("left_out")
    for name in header:
        if name == label or name in ROLES or name in asked["drop"]:
            continue
        if asked["use"] is not None and name not in asked["use"]:
            continue
        free = name in (stated.get("kept") or ()) if known else gone is not None and name not in gone
        _column(table, name, cells[name], asked, free or name in (asked["use"] or ()), rest)
    return table


def _known(asked: Mapping[str, Any], header: list[str], label: str) -> None:
    named = [*asked["drop"], *(asked["use"] or ()), *(one for one in asked["impute"] if one != "*"), *asked["types"]]
    strangers = [name for name in named if name not in header or name == label or name in ROLES]
    if strangers:
        raise Unreadable(f"the recipe names {strangers}")


def _labels(table: Table, cells: list[str], labels: Mapping[str, Any]) -> None:
    positive, negative = labels["positive"], labels["negative"]
    try:
        at = [is_label(cell, positive) for cell in cells]
        other = [not one if negative is None else is_label(cell, negative) for cell, one in zip(cells, at, strict=True)]
    except ValueError as error:
        raise Unreadable(f"the labels are {labels}: {error}") from None
    against = isinstance(positive, (str, int, float)) and negative == f"not {positive}"
    if against:
        other = [not one for one in at]
    if not (any(at) and any(other)) or any(one == two for one, two in zip(at, other, strict=True)):
        raise Unreadable(f"the labels are {labels}")
    table.labels = [positive if one else negative for one in at]
    table.y = np.where(at, 1.0, -1.0)


def _is_missing(cell: str, marks: Sequence[str]) -> bool:
    if cell in MISSING or cell in [one.lower() for one in marks]:
        return True
    try:
        return float(cell) in [float(one) for one in marks if one.lstrip("+-")[:1].isdigit()]
    except ValueError:
        return False


def _column(
    table: Table, name: str, cells: list[str], asked: Mapping[str, Any], kept: bool, rest: Sequence[int] | None
) -> None:
    gaps = [i for i, cell in enumerate(cells) if _is_missing(cell.strip().lower(), asked.get("marks", ()))]
    how = asked["impute"].get(name, asked["impute"].get("*"))
    kind = asked["types"].get(name)
    if (gaps and how is None) or (how is not None and how not in ("median", "most frequent", "level")):
        raise Unreadable(f"missing values of {name}")
    there = [cell.strip() for i, cell in enumerate(cells) if i not in gaps]
    try:
        if kind not in (None, "percent"):
            raise Unreadable(f"the type of {name}")
        numbers = [float(cell.removesuffix("%").rstrip() if kind else cell) for cell in there]
    except ValueError:
        if kind is not None:
            raise Unreadable(f"{name} is no percent") from None
        _of_words(table, name, [cell.strip() for cell in cells], gaps, how, kept, rest)
        return
    taken = [v for i, v in zip((i for i in range(len(cells)) if i not in gaps), numbers, strict=True) if _in(i, rest)]
    value = _stand_in(taken, how) if how is not None else 0.0
    _note(table, name, value, gaps, how)
    given = iter(numbers)
    table.names.append(name)
    columns = [[value if i in gaps else next(given) for i in range(len(cells))]]
    if how == "level" and gaps:
        table.names.append(f"{name}=missing")
        columns.append([float(i in gaps) for i in range(len(cells))])
    table.raw = np.column_stack([table.raw, *columns])


def _in(i: int, rest: Sequence[int] | None) -> bool:
    return rest is None or i in rest


def _stand_in(taken: list[float], how: str) -> float:
    if how == "most frequent":
        counts = Counter(taken)
        most = max(counts.values())
        return min(v for v in counts if counts[v] == most)
    return float(statistics.median(taken))


def _of_words(
    table: Table, name: str, cells: list[str], gaps: list[int], how: str | None, kept: bool, rest: Sequence[int] | None
) -> None:
    counts = Counter(cell for i, cell in enumerate(cells) if i not in gaps and _in(i, rest))
    most = max(counts.values())
    value = "missing" if how == "level" else min(word for word in counts if counts[word] == most)
    filled = [value if i in gaps else cell for i, cell in enumerate(cells)]
    whole = Counter(cell for i, cell in enumerate(cells) if i not in gaps)
    own = "missing" if how == "level" else min(word for word in whole if whole[word] == max(whole.values()))
    words = sorted({own if i in gaps else cell for i, cell in enumerate(cells)})
    if is_left_out(words, len(cells)) and not kept:
        table.left_out.append(name)
        return
    _note(table, name, value, gaps, how)
    table.words[name] = words
    made = words[1:] if table.rules >= 5 and len(words) == 2 else words
    table.names += [f"{name}={word}" for word in made]
    table.raw = np.column_stack([table.raw, *([float(cell == word) for cell in filled] for word in made)])


def _note(table: Table, name: str, value: Any, gaps: list[int], how: str | None) -> None:
    if how is not None:
        table.filled[name] = value
    if gaps and how is not None:
        table.missing[name] = len(gaps)
        table.gaps[name] = gaps
