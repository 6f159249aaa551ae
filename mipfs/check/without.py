"""What the leaves of a proof show of the same problem without the bounds on its weights.

That no weight of an optimum reaches its bound says nothing about the problem without the bounds: another selection may
need larger weights. Its bound is that of the same dual vectors with ½ω² in the place of h(ω) ≤ ½ω², which is no larger.
A node that is screened up to a level proves that level at most; the level at which both meet is searched.
"""

from __future__ import annotations

import math

from mipfs.check import derived
from mipfs.check.bounded import BoundedRidge
from mipfs.check.dual_vectors import Duals
from mipfs.check.few import over_few
from mipfs.check.leaves import CoverTree, least_bound
from mipfs.check.rounding import Arrays, CertificateError, Document
from mipfs.check.scaling import ScaledData
from mipfs.check.statement import Statement
from mipfs.check.steps import SCREEN
from mipfs.check.workers import ALONE, LeafWorkers
from mipfs.data.instance import Instance

STEPS = 12
"""Levels that are tried, each a pass over the leaves: the bound is found to 1/4096 of the one with bounds."""


def beside(
    statement: Statement,
    document: Document,
    arrays: Arrays,
    data: Instance,
    reading: tuple[type[Statement], type[Duals]],
    level: float,
    workers: LeafWorkers = ALONE,
) -> dict[str, float]:
    """What a report says of it, of weights with other bounds than signs."""
    term = statement.regulariser
    if not isinstance(term, BoundedRidge) or term.is_homogeneous or not math.isfinite(level):
        return {}
    return {"bound_without_box": bound_without(document, arrays, data, reading, level, statement.scaled, workers)}


def bound_without(
    document: Document,
    arrays: Arrays,
    data: Instance,
    reading: tuple[type[Statement], type[Duals]],
    level: float,
    scaled: ScaledData | None = None,
    workers: LeafWorkers = ALONE,
) -> float:
    """A lower bound of the problem without bounds on its weights, of the unit margin.

    Parameters
    ----------
    document, arrays, data, reading : as those of `check`, with which they were accepted
    level : float, the bound that the leaves prove with the bounds on the weights
    scaled : ScaledData, of the data, where it was put on another scale
    """
    params = {name: value for name, value in document["params"].items() if name != "weight_bounds"}
    statement = reading[0]({**document, "params": params}, data)
    statement.scaled = scaled
    derived.append(statement, document["certificate"].get("derived", ()))
    tree = CoverTree(arrays, statement.p, statement.whole)
    quiet = LeafWorkers(workers.each)
    what = over_few(statement, reading[1](statement, arrays), tree)

    def proven(asked: float) -> float:
        try:
            return min(asked, least_bound(*what, arrays, None, quiet, asked)[0])
        except (
            CertificateError
        ):  # a leaf that holds nothing within the bounds on weights, by what screening fixed above it
            return -math.inf

    best = proven(level)
    floor = -math.inf if statement.has_extra_costs else 0.0
    if best >= level or statement.has_extra_costs or not any(step == SCREEN for step, _ in tree.steps):
        return max(best, floor)
    low, high = max(best, 0.0), level
    for _ in range(STEPS):
        middle = 0.5 * (low + high)
        found = proven(middle)
        best = max(best, found)
        low, high = (middle, high) if found >= middle else (low, middle)
    return max(best, 0.0)
