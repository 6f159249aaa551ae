"""The problems of a path, in the order in which they are walked."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mipfs.data.checks import as_float
from mipfs.data.instance import Instance
from mipfs.data.over_weights import WeightRow
from mipfs.errors import UsageError
from mipfs.plumbing.declared import show_value
from mipfs.problem import Problem
from mipfs.selection.selection import Rows

Place = Mapping[str, int | float]
"""Where a point of a path is: axis to value."""


def place_text(place: Place) -> str:
    """A place in words: ``C = 0.1, M = 5``."""
    return ", ".join(f"{axis} = {value:g}" for axis, value in place.items())


END = "end"
"""The axis of a frontier: the end of one row."""
PARITY = "parity"
"""What the rows over the weights with the ends −ε and ε are called (`mipfs.weight_rows.parity`)."""


@dataclass(frozen=True)
class MovedRow:
    """The row of a frontier.

    Attributes
    ----------
    name : str
    side : {"ub", "lb", "both"}
        The end that moves: of "at most" and of "at least", or both, −ε and ε, of rows over the weights.
    """

    name: str
    side: str

    def looser(self, value: float) -> float:
        """What grows as the row forbids less."""
        return -value if self.side == "lb" else value


def is_optimum_falling(axis: str, row: MovedRow | None) -> bool:
    """Whether the optimum falls where the value on an axis grows; it rises on the others."""
    return axis == "M" or (axis == END and row is not None and row.side != "lb")


@dataclass(frozen=True, eq=False)
class PathSteps:
    """The problems of a path.

    Attributes
    ----------
    asked : mapping of axis to its values, in the order that was asked; the last axis is walked for each value before it
    places : tuple of mappings of axis to value, from the easy end on
    problems : tuple of Problem, in the order of `places`
    added : tuple of str, the names of the rows that each step added
    row : MovedRow or None, whose end the axis `END` goes over
    """

    asked: dict[str, tuple[int | float, ...]]
    places: tuple[Place, ...]
    problems: tuple[Problem, ...]
    added: tuple[str, ...]
    row: MovedRow | None = None

    @property
    def leg(self) -> int:
        """How many steps in a row differ in the last axis only."""
        return len(self.places) // math.prod(len(values) for values in list(self.asked.values())[:-1])

    @property
    def legs(self) -> int:
        """How many walks along the last axis there are."""
        return len(self.places) // self.leg

    def turn(self, place: Place) -> tuple[int, ...]:
        """What sorts places into the order that was asked."""
        return tuple(values.index(place[axis]) for axis, values in self.asked.items())

    def on(self, data: Instance) -> PathSteps:
        """A copy of the steps on a part of the data."""
        return dataclasses.replace(self, problems=tuple(problem.on_part(data) for problem in self.problems))


def steps_of(
    base: Problem,
    M: Iterable[int] | None,
    C: Iterable[float] | None,
    lam: Iterable[float] | None,
    rows: Rows | Sequence[Any] | None,
) -> PathSteps:
    """The steps over one of M, C, lambda and rows, or over C and M: for every C a walk along M. See `mipfs.path`.

    Raises
    ------
    UsageError
        None or others together, no values, a value twice or out of its range.
    """
    given = [name for name, values in (("M", M), ("C", C), ("lam", lam), ("rows", rows)) if values is not None]
    if len(given) != 1 and given != ["M", "C"]:
        said = " and ".join(given) if given else "nothing"
        raise UsageError(
            f"a path goes over one of M, C, lam and rows, or over M and C, and {said} is given; give one of them"
        )
    if rows is not None:
        return _over_rows(base, rows)
    of_axis = {
        "C": None if C is None else _check_values("C", C),
        "M": None if M is None else _check_values("M", M, base.atoms.count),
        "lambda": None if lam is None else _check_values("lambda", lam),
    }
    asked = {axis: values for axis, values in of_axis.items() if values is not None}
    walked = [sorted(values, reverse=axis == "lambda") for axis, values in asked.items()]
    places = tuple(dict(zip(asked, place, strict=True)) for place in itertools.product(*walked))
    return PathSteps(asked, places, tuple(_problem_at(base, place) for place in places), ("",) * len(places))


def _problem_at(base: Problem, place: Place) -> Problem:
    """The problem with the values of a place; an M brings the cardinality row with it, even one that was dropped."""
    names = {"lambda": "lam"}
    changes: dict[str, Any] = {names.get(axis, axis): value for axis, value in place.items()}
    return base.replace(**changes, **({"cardinality": True} if "M" in place else {}))


def _check_values(name: str, values: Iterable[Any], most: float = math.inf) -> tuple[int | float, ...]:
    """The values as Python's own numbers; M stays whole, and the first beyond `most` ends even an endless range."""
    if isinstance(values, (int, float, np.number, str)):
        raise UsageError(f"{name} = {values!r}: give a list of values, such as [{values!r}]")
    numbers: dict[int | float, None] = {}
    for value in values:
        plain = value.item() if isinstance(value, np.generic) else value
        if isinstance(plain, bool) or not isinstance(plain, (int, float)):
            raise UsageError(f"{name} = {plain!r} must be a number")
        if plain > most:
            raise UsageError(
                f"{name} = {show_value(plain)} must lie between 0 and {most}, what there is to select from"
            )
        plain = plain if name == "M" else as_float(plain, name)
        if plain in numbers:
            raise UsageError(f"{name} = {plain:g} is given twice; give every value once")
        numbers[plain] = None
    if not numbers:
        raise UsageError(f"a path over {name} needs at least one value")
    return tuple(numbers)


def _over_rows(base: Problem, rows: Rows | Sequence[Any]) -> PathSteps:
    """The problem as it is, then with rows added one after the other."""
    problems = [base]
    added = [""]
    if isinstance(rows, Rows):
        held = base.rows
        assert held is not None
        # Taken together from the start, so that rows share their extra variables.
        problems += [base.replace(rows=held.stack(rows.take(range(k + 1)))) for k in range(len(rows))]
        added += rows.names
    else:
        for step in rows:
            last = problems[-1]
            assert last.rows is not None
            if isinstance(step, Rows):
                problems.append(last.replace(rows=last.rows.stack(step)))
            elif isinstance(step, (tuple, list)) and len(step) == 3:
                problems.append(last.with_rows(*step))
            else:
                raise UsageError("rows of a path are a Rows, or a list of Rows or of (A, lb, ub)")
            now = problems[-1].rows
            assert now is not None
            added.append(", ".join(now.names[len(last.rows) :]))
    values = tuple(range(len(problems)))
    return PathSteps({"rows": values}, tuple({"rows": value} for value in values), tuple(problems), tuple(added))


def over_end(base: Problem, name: str, values: Iterable[float]) -> PathSteps:
    """The problems in which one row has other ends, from the tightest on; see `mipfs.frontier`.

    Raises
    ------
    UsageError
        No such row, or several, one with two ends; no values, or one twice.
    """
    rows = base.rows
    assert rows is not None
    found = [r for r, one in enumerate(rows.names) if one == name]
    if name == PARITY and not found:
        return _over_parity(base, values)
    if len(found) != 1:
        there = ", ".join(repr(one) for one in rows.names) or "none"
        said = "there is no row" if not found else f"{len(found)} rows are called"
        more = "'M' is the number of features, and 'parity' the rows over the weights with ends −ε and ε"
        raise UsageError(f"row = {name!r}: {said} {name!r}; the rows are {there}, {more}")
    r = found[0]
    bounded = [side for side, end in (("lb", rows.lb[r]), ("ub", rows.ub[r])) if math.isfinite(end)]
    if len(bounded) != 1:
        raise UsageError(f"row = {name!r} has two ends, and one of them is to move; state it as two rows")
    row = MovedRow(name, bounded[0])
    asked = _check_values(END, values)
    walked = sorted(asked, key=row.looser)

    def at(value: float) -> Problem:
        lb, ub = rows.lb.copy(), rows.ub.copy()
        (ub if row.side == "ub" else lb)[r] = value
        return base.replace(rows=dataclasses.replace(rows, lb=lb, ub=ub), derived=())

    places = tuple({END: value} for value in walked)
    return PathSteps({END: asked}, places, tuple(at(value) for value in walked), ("",) * len(walked), row)


def _over_parity(base: Problem, values: Iterable[float]) -> PathSteps:
    """The problems in which rows over the weights with the ends −ε and ε, ε > 0, have others, from the tightest on."""
    rows = base.rows_over_weights
    if not any(is_moved(one) for one in rows):
        raise UsageError("row = 'parity': no row over the weights has the ends −ε and ε with ε > 0")
    asked = _check_values(END, values)
    for value in asked:
        if not 0.0 <= value < math.inf:
            raise UsageError(f"parity: ε = {value:g} must be 0 or more")

    def at(value: float) -> Problem:
        moved = [dataclasses.replace(one, lower=-value, upper=value) if is_moved(one) else one for one in rows]
        return base.replace(weight_rows=moved)

    walked = sorted(asked)
    places = tuple({END: value} for value in walked)
    row = MovedRow(PARITY, "both")
    return PathSteps({END: asked}, places, tuple(at(value) for value in walked), ("",) * len(walked), row)


def is_moved(row: WeightRow) -> bool:
    """Whether a row over the weights is one of parity: −ε ≤ Σ a_j w_j ≤ ε."""
    return 0.0 < row.upper == -row.lower < math.inf
