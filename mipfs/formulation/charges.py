"""Fixed charges of features in the objective of a declared model, as costs of its problem."""

from __future__ import annotations

import math
from collections.abc import Mapping

from mipfs.errors import RowError, UsageError
from mipfs.problem import Problem

REMEDY = (
    "only fixed charges of features may be added to an objective: c*sigma[name] with c >= 0, which is what [penalty] "
    "of the .toml and lam= of Problem say"
)


def with_charges(problem: Problem, totals: Mapping[str, float], said: str) -> Problem:
    """The problem where selecting the atoms that are named costs what is said, whatever it cost before.

    Raises
    ------
    RowError
        A charge below 0, or a problem that takes none.
    """
    if not totals:
        return problem
    for name, cost in totals.items():
        if not 0 <= cost < math.inf:
            raise RowError(f"{said} has the coefficient {cost:g} of sigma[{name!r}]; a fixed charge is finite and >= 0")
    costs = dict(zip(problem.atoms.names, problem.penalty.tolist(), strict=True)) | dict(totals)
    own = problem.data.penalty
    try:
        return problem.replace(
            lam={
                name: _penalty_completing_cost(cost, own.get(name, 0.0))
                for name, cost in costs.items()
                if cost or own.get(name)
            }
        )
    except RowError:
        raise
    except UsageError as error:
        raise RowError(f"{said} has fixed charges of features: {error}") from None


def _penalty_completing_cost(cost: float, own: float) -> float:
    """The λ with which the rounded sum λ + own is the cost, or next to it."""
    found = cost - own
    near = (found, math.nextafter(found, math.inf), math.nextafter(found, -math.inf))
    return min(near, key=lambda value: abs((value + own) - cost))
