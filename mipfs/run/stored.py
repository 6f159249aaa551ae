"""The classifier of a run as its result stores it: in the user's units, and worth what these very numbers are worth.

Weights and an intercept on the user's scale are rounded once more. On columns of mean 1e5 that moves every margin by
some 1e-11, which at C = 1e8 and more costs as much as the weights: so the objective of the result is that of the stored
numbers, which a checker recomputes, and a classifier that loses by it is made a few ulp longer, where that pays.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from mipfs.atoms import merged
from mipfs.losses.evaluated import Weights
from mipfs.problem import Problem
from mipfs.result.prediction import weights_by_name
from mipfs.run.run import Incumbent

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

LOST = 1e-12
"""What storing may cost, relative to the objective, before longer weights are tried."""
LONGER = [2.0**-50 * 4.0**k for k in range(14)]
"""How much longer: from a few ulp to 1e-7, ever more while it pays."""


@dataclass(frozen=True, eq=False)
class Stored:
    """A classifier in the user's units: weights by name, intercept, and what these numbers are worth (unit margin)."""

    weights: dict[str, float]
    intercept: float
    objective: float


def stored(problem: Problem, found: Incumbent) -> Stored:
    """A classifier as its result stores it."""
    data = problem.data
    ids, w = merged(problem.atoms.columns(found.selected).ids, found.w)
    # the ρ-form's solution is ρ times the unit margin's, ρ = 1/(2v)
    rho = 0.5 / found.objective if problem.margin == "rho" else 1.0
    best: tuple[float, Array, float] | None = None
    for factor in _factors():
        weights = rho * factor * w / data.scale[ids]
        intercept = float(Fraction(rho * factor * found.b) - _moved(problem, ids, weights))
        objective = _value(problem, found, ids, weights, intercept, rho)
        if best is not None and objective >= best[0]:
            break
        best = objective, weights, intercept
        if objective <= found.objective * (1.0 + LOST):
            break
    assert best is not None
    return Stored(weights_by_name(data, ids, best[1]), best[2], best[0])


def _factors() -> Iterator[float]:
    yield 1.0
    yield from (1.0 + more for more in LONGER)


def _moved(problem: Problem, ids: Integers, weights: Array) -> Fraction:
    """Σ w_j shift_j, exactly."""
    terms = zip(weights.tolist(), problem.data.shift[ids].tolist(), strict=True)
    return sum((Fraction(w) * Fraction(shift) for w, shift in terms if shift), Fraction(0))


def _value(problem: Problem, found: Incumbent, ids: Integers, weights: Array, intercept: float, rho: float) -> float:
    """The objective (unit margin) at weights and an intercept on the user's scale."""
    scale, unit = problem.data.scale[ids].tolist(), Fraction(rho)
    w = [Fraction(w) * Fraction(s) / unit for w, s in zip(weights.tolist(), scale, strict=True)]
    b = (Fraction(intercept) + _moved(problem, ids, weights)) / unit if problem.bias else Fraction(0)
    return problem.value_at(found.selected, ids, Weights.exactly(w, b))[0]
