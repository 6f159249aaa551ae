"""The classifier of a run as its result stores it: in the user's units, and worth what these very numbers are worth.

Weights and an intercept on the user's scale are rounded once more. On columns of mean 1e5 that moves every margin by
some 1e-11, which at C = 1e8 and more costs as much as the weights: so the objective of the result is that of the stored
numbers, which a checker recomputes, and a classifier that loses by it is made a few ulp longer, where that pays. No
weight leaves the bounds that the user gave it, on the user's scale, and none break a row over the weights.

Where the optimum has w_j = 0, a solver leaves what its accuracy leaves: a weight of 1e-16, after whose sign a feature
would be said to speak for a class. Such a weight is 0, if it is worth nothing. What has no weight is not selected
either (a constant column beside a free bias, say), unless the rows ask for it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from mipfs.atoms import merge_columns
from mipfs.data.bounds import clip_weights
from mipfs.losses.evaluated import CompensatedWeights
from mipfs.plumbing.arrays import Array, Integers, mask_of, replace_at
from mipfs.problem import Problem
from mipfs.result.prediction import weights_by_name
from mipfs.run.incumbent import Incumbent
from mipfs.run.run import Run

STORING_LOSS = 1e-12
"""What storing, and the rounding of the value, may cost, relative to it, before longer weights are tried."""
LEAST_EXACT, MOST_EXACT = 1e-250, 1e250
"""Products between them are exact in two floats."""
LENGTHENINGS = tuple(1.0 + 2.0**-50 * 4.0**k for k in range(14))
"""How much longer: from a few ulp to 1e-7, ever more while it pays."""
IDLE_SHARE = 2.0**-27
"""Share |w_j|·‖x_j‖ of the scores, whose margin is 1, up to which a weight may be rounding.

The objective is stationary at its optimum, so that a share counts by its square, 2⁻⁵⁴: less than the rounding u = 2⁻⁵³
that every objective has at least. By the share and not by the weight, for which a column of 1e12 makes up; and whether
it counts is not concluded from its size, but from the objective without it.
"""


@dataclass(frozen=True, eq=False)
class StoredClassifier:
    """A classifier as a result states it.

    Attributes
    ----------
    weights, intercept : by name, on the user's scale; without a classifier none, and NaN
    objective : float, what these numbers are worth
    weightless : names of the columns whose weight is 0, or was no more than rounding and became 0
    """

    weights: dict[str, float] = field(default_factory=dict)
    intercept: float = math.nan
    objective: float = math.inf
    weightless: tuple[str, ...] | None = None


def store_classifier(run: Run) -> StoredClassifier:
    """The incumbent as it is stored; its objective becomes what that is worth."""
    if run.incumbent is None:
        return StoredClassifier()
    found = as_stored(run.problem, run.incumbent)
    if found.weightless and run.problem.atoms.is_held and not run.wants_all:  # of a list `reduce` has seen to it
        run.incumbent, found = _without_weightless(run, run.incumbent, found)
    run.incumbent = replace(run.incumbent, objective=found.objective)
    run.bound = min(run.bound, run.incumbent.objective)
    return found


def _without_weightless(run: Run, incumbent: Incumbent, found: StoredClassifier) -> tuple[Incumbent, StoredClassifier]:
    """The incumbent without what has no weight, taken out one by one in the order of the names.

    Each goes as long as the rest is in S; what a row, `forced_in` or "exactly" asks for stays, and is named as
    weightless. All of them go together, or where the objective were larger then, those without which it is not.
    """
    atoms, names = run.problem.atoms, run.problem.data.feature_names
    idle = {*(found.weightless or ())}
    free = [
        g
        for g in sorted(incumbent.selected.tolist(), key=lambda g: atoms.names[g])
        if all(names[j] in idle for j in atoms.columns(np.array([g])).ids)
    ]
    gone = _find_spared(run, incumbent.selected, free)
    for some in [gone, *([g] for g in gone)] if gone else []:
        rest = np.setdiff1d(incumbent.selected, some)
        if not run.oracle.surely_contains(mask_of(atoms.count, rest)):
            continue
        smaller = replace(incumbent, selected=rest, w=_weights_of(run.problem, incumbent, rest))
        tried = as_stored(run.problem, smaller)
        # The same numbers are worth the same: what sums over fewer columns round otherwise is none of their worth.
        # Extra variables may cost more beside fewer features.
        is_same = (tried.weights, tried.intercept) == (found.weights, found.intercept)
        is_same = is_same and not run.problem.has_extra_costs
        if is_same or tried.objective <= found.objective:
            incumbent, found = smaller, tried
            if len(some) == len(gone):
                break
    return incumbent, found


def _find_spared(run: Run, selected: Integers, free: list[int]) -> list[int]:
    """Which of some atoms S does without: all of them where it may, else one after the other."""
    sigma = mask_of(run.problem.atoms.count, selected)
    sigma[free] = False
    if run.oracle.surely_contains(sigma):
        return free
    sigma[free] = True
    gone = []
    for g in free:
        sigma[g] = False
        if run.oracle.surely_contains(sigma):
            gone.append(g)
        else:
            sigma[g] = True
    return gone


def _weights_of(problem: Problem, incumbent: Incumbent, rest: Integers) -> Array:
    """The weights of the columns of some of the atoms; of a column that several have, at the first of these."""
    ids, w = merge_columns(problem.atoms.columns(incumbent.selected).ids, incumbent.w)
    places = problem.atoms.columns(rest).ids
    found = np.zeros(places.size)
    own, first = np.unique(places, return_index=True)
    order = np.argsort(ids)
    found[first] = w[order[np.searchsorted(ids, own, sorter=order)]]
    return found


def as_stored(problem: Problem, found: Incumbent) -> StoredClassifier:
    """A classifier as it is stored, without weights that are no more than rounding, and its objective as such.

    σ stays here: a feature of weight 0 is selected as before, so what is in S remains in it.
    """
    data = problem.data
    ids, w = merge_columns(problem.atoms.columns(found.selected).ids, found.w)
    objective, weights, intercept = _lengthen_weights(problem, found, ids, w)
    idle = _negligible_weights(problem, ids, w)
    while idle.size:
        without = _lengthen_weights(problem, found, ids, replace_at(w, idle, 0.0))
        if without[0] <= objective:
            objective, weights, intercept = without
            break
        idle = idle[: idle.size // 2]
    weightless = tuple(data.feature_names[j] for j in np.sort(ids[weights == 0.0]))
    return StoredClassifier(weights_by_name(data, ids, weights), intercept, objective, weightless)


def _negligible_weights(problem: Problem, ids: Integers, w: Array) -> Integers:
    """Which weights may be no more than rounding, the least share of the scores first; ‖x_j‖ ≤ √n max |x_ij|."""
    block = problem.data.block(ids)
    share = np.abs(w) * (block.largest() + np.abs(block.center)) * np.sqrt(problem.data.n_samples)
    small = np.flatnonzero((w != 0.0) & (share <= IDLE_SHARE))
    return small[np.argsort(share[small], kind="stable")]


def _lengthen_weights(problem: Problem, found: Incumbent, ids: Integers, w: Array) -> tuple[float, Array, float]:
    """Objective, weights and intercept, on the user's scale, of weights that are as long as it pays."""
    data = problem.data
    # the ρ-form's solution is ρ times the unit margin's, ρ = 1/(2v)
    rho = 0.5 / found.objective if problem.margin == "rho" else 1.0
    above = np.inf
    best = (np.inf if problem.weight_rows else found.objective, w, found.b)
    names = [data.feature_names[j] for j in ids] if problem.weight_bounds else ()
    for factor in (1.0, *LENGTHENINGS):
        weights = clip_weights(names, rho * factor * w / data.scale[ids], problem.weight_bounds or {})
        intercept = on_users_scale(problem, ids, weights, rho * factor * found.b)
        at = on_the_data(problem, ids, weights, intercept, rho)
        if problem.weight_rows and not problem.ends.hold(ids, weights):
            break
        objective, error = problem.value_at(found.selected, ids, at)
        if objective + error >= above:
            break
        above = objective + error
        best = (objective, weights, intercept)
        if above <= found.objective + abs(found.objective) * STORING_LOSS:
            break
    return best


def _sum_shifts(problem: Problem, ids: Integers, weights: Array) -> Fraction:
    """Σ w_j shift_j, exactly."""
    terms = zip(weights.tolist(), problem.data.shift[ids].tolist(), strict=True)
    return sum((Fraction(w) * Fraction(shift) for w, shift in terms if shift), Fraction(0))


def on_users_scale(problem: Problem, ids: Integers, weights: Array, b: float) -> float:
    """The intercept on the user's scale of b on the scaled data, with weights on the user's scale."""
    return float(Fraction(b) + _of_constant(problem, ids, weights) - _sum_shifts(problem, ids, weights))


def _of_constant(problem: Problem, ids: Integers, weights: Array) -> Fraction:
    """What the weight of a constant column adds to every score, exactly."""
    data = problem.data
    at = np.flatnonzero(ids == data.n_features - 1) if data.constant else np.empty(0, dtype=np.int64)
    return sum((Fraction(w) * Fraction(data.constant) for w in weights[at].tolist()), Fraction(0))


def _is_apart(weights: Array, scale: Array) -> bool:
    """Whether no product, nor half of a factor, is near what overflows or underflows."""
    size = np.abs(weights * scale)
    fits = np.maximum(size, np.maximum(np.abs(weights), scale)) < MOST_EXACT
    return bool(np.all(fits & ((weights == 0.0) | (size > LEAST_EXACT))))


def on_the_data(problem: Problem, ids: Integers, weights: Array, intercept: float, rho: float) -> CompensatedWeights:
    """Weights and intercept on the user's scale, of a margin ρ, on the scaled data and of margin 1."""
    unit = Fraction(rho)
    scale = problem.data.scale[ids]
    b = (Fraction(intercept) + _sum_shifts(problem, ids, weights)) / unit if problem.bias else Fraction(0)
    constant = problem.data.constant
    if rho == 1.0 and not constant and _is_apart(weights, scale):
        return CompensatedWeights.products(weights, scale, b)
    w = [Fraction(w) * Fraction(s) / unit for w, s in zip(weights.tolist(), scale.tolist(), strict=True)]
    for place in np.flatnonzero(ids == problem.data.n_features - 1) if constant else ():  # stored as an intercept
        w[place] = (Fraction(intercept) + _sum_shifts(problem, ids, weights)) / Fraction(constant)
    return CompensatedWeights.exactly(w, b)
