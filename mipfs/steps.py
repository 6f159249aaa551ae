"""The problems of a path, in the order in which they are walked."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mipfs.checks import as_float, shown
from mipfs.errors import UsageError
from mipfs.instance import Instance
from mipfs.problem import Problem
from mipfs.selection import Rows


@dataclass(frozen=True, eq=False)
class Steps:
    """The problems of a path.

    Attributes
    ----------
    axis : {"M", "C", "lambda", "rows"}
    asked : tuple of numbers, the values in the order that was asked
    walked : tuple of numbers, the same from the easy end on
    problems : tuple of Problem, in the order of `walked`
    added : tuple of str, the names of the rows that each step added
    falls : bool, whether the optimum falls along the walk; otherwise it rises
    """

    axis: str
    asked: tuple[int | float, ...]
    walked: tuple[int | float, ...]
    problems: tuple[Problem, ...]
    added: tuple[str, ...]
    falls: bool

    def on(self, data: Instance) -> Steps:
        """The same steps on other data with the same features."""
        return dataclasses.replace(self, problems=tuple(problem.replace(data=data) for problem in self.problems))


def steps_of(
    base: Problem,
    M: Iterable[int] | None,
    C: Iterable[float] | None,
    lam: Iterable[float] | None,
    rows: Rows | Sequence[Any] | None,
) -> Steps:
    """The steps over just one of M, C, lambda and rows; see `mipfs.path`.

    Raises
    ------
    UsageError
        None or several of them, no values, a value twice or out of its range.
    """
    given = [name for name, values in (("M", M), ("C", C), ("lam", lam), ("rows", rows)) if values is not None]
    if len(given) != 1:
        said = " and ".join(given) if given else "nothing"
        raise UsageError(f"a path goes over one of M, C, lam and rows, and {said} is given; give one of them")
    if rows is not None:
        return _over_rows(base, rows)
    if M is not None:
        values = _checked("M", M, base.atoms.count)
        walked = tuple(sorted(values))
        problems = tuple(base.replace(M=value, cardinality=True) for value in walked)
        return Steps("M", values, walked, problems, ("",) * len(walked), True)
    if C is not None:
        values = _checked("C", C)
        walked = tuple(sorted(values))
        return Steps("C", values, walked, tuple(base.replace(C=v) for v in walked), ("",) * len(walked), False)
    assert lam is not None
    values = _checked("lambda", lam)
    walked = tuple(sorted(values, reverse=True))
    return Steps("lambda", values, walked, tuple(base.replace(lam=v) for v in walked), ("",) * len(walked), True)


def _checked(name: str, values: Iterable[Any], most: float = math.inf) -> tuple[int | float, ...]:
    """The values as Python's own numbers; M stays whole, and the first beyond `most` ends even an endless range."""
    if isinstance(values, (int, float, np.number, str)):
        raise UsageError(f"{name} = {values!r}: give a list of values, such as [{values!r}]")
    numbers: dict[int | float, None] = {}
    for value in values:
        plain = value.item() if isinstance(value, np.generic) else value
        if isinstance(plain, bool) or not isinstance(plain, (int, float)):
            raise UsageError(f"{name} = {plain!r} must be a number")
        if plain > most:
            raise UsageError(f"{name} = {shown(plain)} must lie between 0 and {most}, what there is to select from")
        plain = plain if name == "M" else as_float(plain, name)
        if plain in numbers:
            raise UsageError(f"{name} = {plain:g} is given twice; give every value once")
        numbers[plain] = None
    if not numbers:
        raise UsageError(f"a path over {name} needs at least one value")
    return tuple(numbers)


def _over_rows(base: Problem, rows: Rows | Sequence[Any]) -> Steps:
    """The problem as it is, then with rows added one after the other."""
    problems, added = [base], [""]
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
    return Steps("rows", values, values, tuple(problems), tuple(added), False)
