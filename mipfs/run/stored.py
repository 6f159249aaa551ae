"""The classifier of a run as its result stores it: in the user's units, and worth what these very numbers are worth.

Weights and an intercept on the user's scale are rounded once more. On columns of mean 1e5 that moves every margin by
some 1e-11, which at C = 1e8 and more costs as much as the weights: so the objective of the result is that of the stored
numbers, which a checker recomputes, and a classifier that loses by it is made a few ulp longer, where that pays.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from mipfs.atoms import merged
from mipfs.losses.evaluated import Weights
from mipfs.result.prediction import weights_by_name
from mipfs.run.run import Incumbent, Run

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

LOST = 1e-12
"""What storing, and the rounding of the value, may cost, relative to it, before longer weights are tried."""
LONGER = tuple(1.0 + 2.0**-50 * 4.0**k for k in range(14))
"""How much longer: from a few ulp to 1e-7, ever more while it pays."""


def stored(run: Run) -> tuple[dict[str, float], float]:
    """Weights by name and intercept on the user's scale; the incumbent's objective becomes what they are worth."""
    incumbent = run.incumbent
    if incumbent is None:
        return {}, float("nan")
    problem, data = run.problem, run.problem.data
    ids, w = merged(problem.atoms.columns(incumbent.selected).ids, incumbent.w)
    # the ρ-form's solution is ρ times the unit margin's, ρ = 1/(2v)
    rho = 0.5 / incumbent.objective if problem.margin == "rho" else 1.0
    above, found = np.inf, (incumbent.objective, w, incumbent.b)
    for factor in (1.0, *LONGER):
        weights = rho * factor * w / data.scale[ids]
        intercept = _intercept(run, ids, weights, rho * factor * incumbent.b)
        objective, error = _value(run, incumbent, ids, weights, intercept, rho)
        if objective + error >= above:
            break
        above, found = objective + error, (objective, weights, intercept)
        if above <= incumbent.objective * (1.0 + LOST):
            break
    objective, weights, intercept = found
    run.incumbent, run.bound = replace(incumbent, objective=objective), min(run.bound, objective)
    return weights_by_name(data, ids, weights), intercept


def _moved(run: Run, ids: Integers, weights: Array) -> Fraction:
    """Σ w_j shift_j, exactly."""
    terms = zip(weights.tolist(), run.problem.data.shift[ids].tolist(), strict=True)
    return sum((Fraction(w) * Fraction(shift) for w, shift in terms if shift), Fraction(0))


def _intercept(run: Run, ids: Integers, weights: Array, b: float) -> float:
    """The intercept on the user's scale of b on the scaled data."""
    return float(Fraction(b) - _moved(run, ids, weights))


def _value(
    run: Run, incumbent: Incumbent, ids: Integers, weights: Array, intercept: float, rho: float
) -> tuple[float, float]:
    """The objective (unit margin) at weights and an intercept on the user's scale, and what it may be too small by."""
    problem = run.problem
    scale = problem.data.scale[ids].tolist()
    unit = Fraction(rho)
    w = [Fraction(w) * Fraction(s) / unit for w, s in zip(weights.tolist(), scale, strict=True)]
    b = (Fraction(intercept) + _moved(run, ids, weights)) / unit if problem.bias else Fraction(0)
    return problem.value_at(incumbent.selected, ids, Weights.exactly(w, b))
