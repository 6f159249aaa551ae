"""Rows that name a group of features, such as a column of words: the name stands for 1 where some of them is selected.

What a row says of σ_g = max over j of group g of σ_j, rows over σ say too, in one of three ways for ``Σ a x ≤ u``:

    a_g > 0    σ_g ≤ t holds where σ_j ≤ t does for every j of g: a row for each of them
    a_g < 0    where the row holds whatever else is selected as soon as σ_g = 1, Σ_j σ_j says the same as σ_g
    else       a whole variable z_g with σ_j ≤ z_g ≤ Σ_j σ_j stands for σ_g

so that "home implies income" and "one of these three columns" need no variable, and a budget over many columns has one
for each of them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass

from mipfs.data.instance import Row

MOST_ROWS = 16
"""Rows that one row may become; more words in more columns are counted by variables."""


@dataclass(frozen=True)
class RowsOverFeatures:
    """What rows over features and groups say, over features and variables.

    Attributes
    ----------
    written : sequence of list of Row, for every row what stands for it
    counted : tuple of str, the groups that a whole variable of the same name, 0 or 1, stands for
    ties : list of Row, what these variables are
    """

    written: Sequence[list[Row]]
    counted: tuple[str, ...]
    ties: list[Row]

    @property
    def rows(self) -> list[Row]:
        """All of them."""
        return [*itertools.chain.from_iterable(self.written), *self.ties]


def over_features(rows: Sequence[Row], known: Container[str], groups: Mapping[str, Sequence[str]]) -> RowsOverFeatures:
    """Rows whose names are `known` or, where they are not, groups of what is known."""
    named = {name: tuple(members) for name, members in groups.items() if name not in known}
    written, counted = list[list[Row]](), dict[str, None]()
    for row in rows:
        found = _without_variables(row, named)
        if not found:
            counted |= dict.fromkeys(name for name in row.terms if name in named)
        written.append(found or [row])
    ties = [one for name in counted for one in _group_link_rows(name, named[name])]
    return RowsOverFeatures(written, tuple(counted), ties)


def _without_variables(row: Row, groups: Mapping[str, Sequence[str]]) -> list[Row]:
    """Rows over features that say what a row over groups does; none where that takes a variable."""
    named = [name for name in row.terms if name in groups]
    if not named:
        return [row]
    sides = [(1.0, row.ub), (-1.0, -row.lb)]
    found = []
    for sign, end in sides:
        if end == math.inf:
            continue
        terms = {name: sign * value for name, value in row.terms.items()}
        each = [name for name in named if terms[name] > 0]
        most = sum(value for value in terms.values() if value > 0)
        summed = all(most + terms[name] <= end for name in named if terms[name] < 0)
        if not summed or math.prod(len(groups[name]) for name in each) > MOST_ROWS:
            return []
        found += list(_write_sides(row, sign, each, groups))
    return found


def _write_sides(row: Row, sign: float, each: Sequence[str], groups: Mapping[str, Sequence[str]]) -> Iterator[Row]:
    """One side of a row, once for every choice of a feature from each group of `each`, all of the others."""
    lb, ub = (-math.inf, row.ub) if sign > 0 else (row.lb, math.inf)
    for chosen in itertools.product(*(groups[name] for name in each)):
        stands = dict(zip(each, ([one] for one in chosen), strict=True))
        terms = dict[str, float]()
        for name, value in row.terms.items():
            for member in stands.get(name) or groups.get(name, [name]):
                terms[member] = terms.get(member, 0.0) + value
        yield Row(f"{row.name} ({', '.join(chosen)})" if chosen else row.name, terms, lb, ub, row.origin)


def _group_link_rows(name: str, members: Sequence[str]) -> list[Row]:
    """σ_j ≤ z ≤ Σ_j σ_j."""
    each = [Row(f"{name} has {one}", {one: 1.0, name: -1.0}, -math.inf, 0.0) for one in members]
    return [*each, Row(f"{name} is one of its own", {name: 1.0} | dict.fromkeys(members, -1.0), -math.inf, 0.0)]
