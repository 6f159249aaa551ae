"""All supports within a relative gap of the optimum, or the best K: is this set the answer, or one of forty?

A driver that is asked for them goes on when the gap has closed. It closes a node only once its bound reaches

    L = min(best · (1 + pool_gap), value of the K-th best support found so far),

so no support of a value below L is lost, and when no node is open all of them have been evaluated.
"""

from __future__ import annotations

import math
import numbers
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mipfs.errors import UsageError
from mipfs.run.listed import shown, values_by_name
from mipfs.run.stored import as_stored

if TYPE_CHECKING:
    from mipfs.run.run import Run

NEAR = 1e-7
"""Relative allowance on the limit: a support is evaluated to that accuracy."""


def is_asked(run: Run) -> bool:
    """Whether the options of the run ask for near-optimal supports.

    Raises
    ------
    UsageError
        A gap or a size out of its range.
    """
    gap, size = run.options.pool_gap, run.options.pool_size
    if gap is not None:
        below = math.inf if run.problem.margin == "unit" else 1.0
        if not (isinstance(gap, (int, float, np.number)) and 0 <= gap < below):
            of = "a finite number >= 0" if math.isinf(below) else "in [0, 1) for the ρ-form"
            raise UsageError(f"pool gap = {gap!r} must be {of}, for example 0.01")
    if size is not None and (isinstance(size, bool) or not isinstance(size, numbers.Integral) or size < 1):
        raise UsageError(f"pool size = {size!r} must be a whole number >= 1")
    return gap is not None or size is not None


def wanted_up_to(run: Run, values: Sequence[float]) -> float:
    """The largest value (unit margin) of a wanted support, allowance included; -inf when none is asked for.

    Parameters
    ----------
    run : Run
    values : those of the supports evaluated so far, ascending
    """
    gap, size = run.options.pool_gap, run.options.pool_size
    if gap is None and size is None:
        return -math.inf
    limit = math.inf
    if gap is not None and values:  # the ρ-form reports −1/(4v)
        limit = values[0] * (1.0 + gap) if run.problem.margin == "unit" else values[0] / (1.0 - gap)
    if size is not None and len(values) >= size:
        limit = min(limit, values[size - 1])
    return limit * (1.0 + NEAR)


def near_optimal(run: Run) -> Mapping[str, Any] | None:
    """What the run found, for its result; None when it was not asked for.

    The dual vectors that show the objectives from below are left in ``run.outcome.beside``.

    Returns
    -------
    mapping or None
        ``complete``: whether no other support belongs to the list (False when a limit stopped the run); ``gap`` and
        ``size``, as asked; ``supports``: best first, each with ``objective``, ``gap`` above the best one (relative),
        ``selected``, its names, ``weights`` and ``intercept`` on the user's scale, and ``extra``, values of the extra
        variables at which the rows hold, where there are any; ``share``: name to the share of these supports in which
        it stands, largest first. Supports that differ only in a useless feature are different supports. Values are
        exact to 1e-6.
    """
    found = run.outcome.found
    if found is None:
        return None
    problem, options, names = run.problem, run.options, run.problem.atoms.names
    ranked = sorted(found.items(), key=lambda item: item[1])
    limit = wanted_up_to(run, [value for _, value in ranked])
    wanted = [_unpacked(key, problem.atoms.count) for key, value in ranked if value <= limit][: options.pool_size]
    shows = [(*as_stored(problem, one), dual) for one, dual in shown(run, wanted)]
    listed = sorted(shows, key=lambda one: one[0].objective)
    run.outcome.beside = [dual for *_, dual in listed]
    best = problem.reported(listed[0][0].objective) if listed else math.nan
    supports, times = [], Counter[str]()
    for one, weights, intercept, _ in listed:
        objective, selected = problem.reported(one.objective), [names[int(j)] for j in one.selected]
        entry: dict[str, Any] = {"objective": objective, "gap": gap_above(objective, best), "selected": selected}
        values = values_by_name(run, one.sigma(problem.atoms.count))
        supports.append(
            entry | {"weights": weights, "intercept": intercept} | ({} if values is None else {"extra": values})
        )
        times.update(selected)
    return {
        "complete": run.closed and len(listed) == len(wanted),
        "gap": options.pool_gap,
        "size": options.pool_size,
        "supports": supports,
        "share": {name: count / len(listed) for name, count in times.most_common()},
    }


def gap_above(objective: float, best: float) -> float:
    """(objective − best)/|best|: 0 where they are equal, inf at a best one of 0 otherwise."""
    return 0.0 if objective == best else (objective - best) / abs(best) if best else math.inf


def _unpacked(key: bytes, count: int) -> npt.NDArray[np.bool_]:
    """The selection of a key of ``run.outcome.found``."""
    return np.unpackbits(np.frombuffer(key, dtype=np.uint8), count=count).astype(bool)
