"""Cards of a table that was cut: at most K of its columns, and T thresholds of each (`mipfs.lab.scorecard.indicators`).

What a dual vector proves of the features that are open is the largest sum of its costs over all that these rows allow,
which is found by sorting: of each column the T largest of its thresholds and all else, of columns the K largest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from mipfs.plumbing.arrays import Array
from mipfs.selection.rows import Extras, Rows

OPEN, OUT, IN = -1, 0, 1
States = npt.NDArray[np.int8]
Whole = npt.NDArray[np.int64]
INSERTED, ROWS = 8, 100
"""Largest costs up to `INSERTED`, of `ROWS` rows or more, are found by insertion: 2 to 4 times as fast as partition."""


@dataclass(frozen=True)
class CardRows:
    """At most `columns` of the parts have points, and at most `each` of the thresholds of every part; None is no limit.

    Attributes
    ----------
    columns, each : int or None
    parts : tuple of pairs (thresholds, others) of names of features, no name twice
    """

    columns: int | None
    each: int | None
    parts: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, Any]], extra: Mapping[str, Mapping[str, Any]]) -> CardRows | None:
        """Those of the rows of a result, with one variable of 0 and 1 for every part; None of other rows."""
        if not all(
            one["integer"] and one["lb"] == 0 and one["ub"] == 1 and not one.get("cost") for one in extra.values()
        ):
            return None
        lines: dict[str, list[str]] = {use: [] for use in extra}
        limited: dict[str, list[str]] = {}
        most, each = None, None
        for row in rows:
            terms = row["terms"]
            uses, names = [name for name in terms if name in extra], [name for name in terms if name not in extra]
            if row["lb"] is not None or any(terms[name] != 1.0 for name in names):
                return None
            if not names and {*uses} == {*extra} and all(terms[use] == 1.0 for use in uses) and most is None:
                most = int(row["ub"])
                continue
            if len(uses) != 1 or row["ub"] != 0.0 or not names or not (-terms[uses[0]]).is_integer():
                return None
            lines[uses[0]] += names
            limit = int(-terms[uses[0]])
            if limit < len(names):
                if limit < 1 or each not in (None, limit) or uses[0] in limited:
                    return None
                each, limited[uses[0]] = limit, names
        parts = []
        for use, names in lines.items():
            steps = tuple(limited.get(use, ()))
            parts.append((steps, tuple(name for name in dict.fromkeys(names) if name not in {*steps})))
        every = [name for part in parts for names in part for name in names]
        return cls(most, each, tuple(parts)) if len({*every}) == len(every) else None

    def document(self) -> dict[str, Any]:
        """As the JSON has it."""
        return {"columns": self.columns, "each": self.each, "parts": [[[*one], [*other]] for one, other in self.parts]}

    @classmethod
    def read(cls, found: Mapping[str, Any]) -> CardRows:
        """That of its JSON."""
        parts = tuple((tuple(one), tuple(other)) for one, other in found["parts"])
        return cls(found["columns"], found["each"], parts)


class PlacedRows:
    """These rows over the features of a search, by their places."""

    def __init__(self, rows: CardRows, names: Sequence[str]) -> None:
        place = {name: f for f, name in enumerate(names)}
        self.parts = [
            tuple(np.array([place[name] for name in one if name in place], dtype=np.int64) for one in part)
            for part in rows.parts
        ]
        self.columns = len(self.parts) if rows.columns is None else rows.columns
        self.each = len(names) if rows.each is None else rows.each
        self.of_part = [np.concatenate(part) for part in self.parts]
        self.free = np.setdiff1d(np.arange(len(names)), np.concatenate([*self.of_part, np.zeros(0, dtype=np.int64)]))

    def closed(self, state: States) -> States:
        """Those that are open and may not come in any more are out."""
        state = state.copy()
        used = [bool(np.any(state[own] == IN)) for own in self.of_part]
        for (steps, _), own, is_used in zip(self.parts, self.of_part, used, strict=True):
            if not is_used and sum(used) >= self.columns:
                state[own] = OUT
            elif np.count_nonzero(state[steps] == IN) >= self.each:
                state[steps] = np.where(state[steps] == OPEN, OUT, state[steps])
        return state

    def largest(self, costs: Array, state: States) -> Array:
        """The largest sum of costs (D, F) over open features that may come in together, (D,)."""
        total, others = costs[:, self.free[state[self.free] == OPEN]].sum(axis=1), []
        for (steps, more), own in zip(self.parts, self.of_part, strict=True):
            left = self.each - int(np.count_nonzero(state[steps] == IN))
            value = largest_sum(costs[:, steps[state[steps] == OPEN]], left)
            value = value + costs[:, more[state[more] == OPEN]].sum(axis=1)
            if np.any(state[own] == IN):
                total = total + value
            else:
                others.append(value)
        if others:
            unused = self.columns - (len(self.parts) - len(others))
            total = total + largest_sum(np.column_stack(others), unused)
        return np.asarray(total)

    def rows(self, count: int) -> Rows:
        """As linear rows over `count` features and a whole variable for every part."""
        entries: list[tuple[int, int, float]] = []
        ends: list[float] = []
        for g, ((steps, _), own) in enumerate(zip(self.parts, self.of_part, strict=True)):
            for members, most in [(own[k : k + 1], 1) for k in range(own.size)] + [(steps, self.each)] * (
                steps.size > 0
            ):
                entries += [(len(ends), int(f), 1.0) for f in members] + [(len(ends), count + g, -float(most))]
                ends.append(0.0)
        entries += [(len(ends), count + g, 1.0) for g in range(len(self.parts))]
        ends.append(float(self.columns))
        i, j, values = zip(*entries, strict=True)
        G, r = len(self.parts), len(ends)
        extra = Extras(tuple(f"extra_{g}" for g in range(G)), np.zeros(G), np.ones(G), np.ones(G, dtype=bool))
        names = tuple(f"row{k}" for k in range(r))
        matrix = sparse.csr_array((values, (i, j)), shape=(r, count + G))
        return Rows(matrix, np.full(r, -np.inf), np.array(ends), names, names, extra)


def largest_sum(costs: Array, most: int) -> Array:
    """The sum of the `most` largest costs (D, F), none of them negative, of every row."""
    if most <= 0 or not costs.shape[1]:
        return np.zeros(costs.shape[0])
    if most >= costs.shape[1]:
        return np.asarray(costs.sum(axis=1))
    if most > INSERTED or costs.shape[0] < ROWS:
        return np.asarray(np.partition(costs, costs.shape[1] - most, axis=1)[:, -most:].sum(axis=1))
    largest = np.zeros((most, costs.shape[0]))
    for cost in costs.T:
        for place in largest:
            less = np.minimum(place, cost)
            np.maximum(place, cost, out=place)
            cost = less
    return np.asarray(largest.sum(axis=0))
