"""From a result and its training data to a scorecard."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Any

import numpy as np

from mipfs import drivers
from mipfs.data.bounds import excluding_0, settle_bounds
from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.lab.scorecard.card import CardComparison, ListedCard, Scorecard
from mipfs.lab.scorecard.columns import Column, columns_of
from mipfs.lab.scorecard.cone import Ground
from mipfs.lab.scorecard.search import BoxSearch
from mipfs.losses import get_loss, is_joint
from mipfs.plumbing.arrays import Array
from mipfs.plumbing.declared import Count, Gap, Natural, Seconds, check_arguments
from mipfs.plumbing.signals import hearing_signals, hold_signals
from mipfs.problem import Problem
from mipfs.result.advice import ends_all
from mipfs.result.posed import posed_again, why_other_data
from mipfs.result.prediction import user_columns
from mipfs.result.result import Result
from mipfs.selection.rows import Rows

MOST_POINTS = 1000
"""More points for a feature are no card."""
MOST_BINS = 1000
"""Nor are more ranges of one."""


MOST_SETS = 100
"""Near-optimal sets, the best first, of which cards are made."""


@check_arguments
def scorecard(
    result: Result,
    data: Instance,
    *,
    points: Count = 5,
    bins: Natural = 0,
    time_limit: Seconds = 60.0,
    gap: Gap = 1e-3,
    near_optimal: bool = True,
    joint: bool = False,
    pdo: float | None = None,
    base_score: float = 600.0,
    base_odds: float = 50.0,
) -> Scorecard:
    """Whole points for the features of a result: the best for these features, by branch and bound with its own gap.

    min over λ ∈ {−K … K}^k, a > 0 and b of ½ Σ (a λ_j)² + Σ c_i ℓ(y_i (a λ'x_i + b)), with the loss and the weights
    of the samples of the result, on the columns of the card (RiskSLIM, Ustun and Rudin 2019, has no scale a).

    Parameters
    ----------
    result : Result over single features or groups of them, such as columns of words, with a classifier
        A card of groups is that of their features, with every one of them in it.
    data : Instance, the data that it was solved on
    points : int >= 1, K
    bins : int
        Ranges that a column of more than two values is cut into at its quantiles, each threshold with points of its
        own; 0 gives points to its values on the scale of the data.
    time_limit : float, in seconds
    gap : float, relative gap at which the search ends
    near_optimal : bool
        Whether cards of all near-optimal sets of the result (`pool_gap`, `pool_size`), if it has a list, are made, of
        up to 100, and the best one is returned: the best features for real weights need not be the best for points.
    joint : bool
        Whether features and points are chosen together: the best of the cards of at most M features, M that of the
        result, begun from the card that there is without it, with a certificate of its own
        (`mipfs.lab.scorecard.together`).
    pdo, base_score, base_odds : float
        Of a result with the logistic loss: totals are also scores, `base_score` at odds of `base_odds` to 1 for the
        positive class, and `pdo` more where they are doubled (`Scorecard.scaled_to_odds`).

    Returns
    -------
    Scorecard
        Its result is that of its features, which a set that is not the optimum was given: see `Scorecard.among`.

    Raises
    ------
    UsageError
        A result without a classifier, over other things than features and disjoint groups, or of other data. With
        `joint` also one over groups, or with rows, penalties or forced features.
    """
    asked = points, bins, gap
    if joint:
        if result.atoms is not None:
            raise UsageError("joint counts single features, and this result selects groups; leave joint out")
        from mipfs.lab.scorecard.together import together

        card = together(result, data, asked, time_limit)
    else:
        card = _best_card(result, data, asked, time_limit, near_optimal)
    return card if pdo is None else card.scaled_to_odds(pdo, base_score, base_odds)


def _best_card(
    result: Result, data: Instance, asked: tuple[int, int, float], time_limit: float, near_optimal: bool
) -> Scorecard:
    """The card of the features of a result, or the best of those of its near-optimal sets; a signal ends it."""
    end = time.monotonic() + time_limit
    own = frozenset(result.selected)
    with hearing_signals() as strike, hold_signals(deliver=False):  # what searches hears by itself: no card is lost
        best = card_of(result if result.atoms is None else of_set(result, data, own), data, asked, end)
        others = [names for names in (_near_optimal_sets(result) if near_optimal else []) if names != own]
        if not others:
            return best
        made = [best]
        for names in others:
            if strike.has_been or time.monotonic() >= end:
                break
            inside = of_set(result, data, names)
            if strike.has_been or ends_all(inside):
                break
            made.append(card_of(inside, data, asked, end))
        least = min(made, key=lambda one: one.objective)
        ordered = tuple(sorted(map(ListedCard.of, made), key=lambda one: one.objective))
        return replace(least, among=CardComparison(ordered, len(others) + 1, best.objective))


def _near_optimal_sets(result: Result) -> list[frozenset[str]]:
    """The near-optimal sets of a result, the best first."""
    supports = [] if result.near_optimal is None else result.near_optimal["supports"]
    ordered = sorted(supports, key=lambda one: float(one["objective"]))
    return [frozenset(one["selected"]) for one in ordered[:MOST_SETS] if one["selected"]]


def of_set(result: Result, data: Instance, names: frozenset[str]) -> Result:
    """The result of the same problem where exactly these features, or the features of these groups, are selected."""
    columns = names if result.atoms is None else _columns_of(result, names)
    inside = tuple(name for name in data.feature_names if name in columns)
    given: dict[str, Any] = {"forced_in": inside, "forced_out": (), "M": len(inside), "lam": 0.0}
    if result.atoms is not None:  # the data's rows are about the groups, which keep them
        given["rows"] = Rows.empty(data.n_features)
    return drivers.solve(posed_again(replace(result, atoms=None), data, "a scorecard", **given))


def _columns_of(result: Result, names: frozenset[str]) -> frozenset[str]:
    """The features of groups of a result, which are selected as they would be one by one.

    Raises
    ------
    UsageError
        No groups, groups that share a feature, or whose weights are scaled: their objective is another one.
    """
    atoms: Any = result.atoms
    if "made" in atoms:
        raise UsageError("a scorecard is for features or groups of them, and this result selects functions of features")
    places = [g for g, name in enumerate(atoms["names"]) if name in names]
    columns = [name for g in places for name in atoms["columns"][g]]
    if len({*columns}) < len(columns) or any(atoms["scale"][g] != 1.0 for g in places):
        raise UsageError("a scorecard is for groups that share no feature and are not scaled; solve it without atoms")
    return frozenset(columns)


def card_of(result: Result, data: Instance, asked: tuple[int, int, float], end: float) -> Scorecard:
    """The best card of the features of one result."""
    started, (points, bins, gap) = time.monotonic(), asked
    problem = problem_of(result, data, points, bins)
    values = user_columns(result, data)
    columns = tuple(columns_of(values, _feature_scales(result, tuple(values)), bins))
    if not columns:
        raise UsageError("the classifier of the result uses no feature: there is nothing to give points to")
    whole = ground_of(problem, columns, values)
    ground = whole.alike()[0]
    low, high = ends_of(columns, result.params.get("weight_bounds") or {}, points)
    found = BoxSearch(ground, low, high, points, data.n_samples, gap, end).run()
    objective = whole.value(found.scale * found.points.astype(float), found.intercept)
    shift = float(found.points @ np.array([column.center for column in columns]))
    card = Scorecard(
        result=result,
        columns=columns,
        points=tuple(found.points.tolist()),
        most_points=points,
        scale=found.scale,
        intercept=found.intercept - found.scale * shift,
        objective=objective,
        bound=min(found.bound, objective),
        status=found.status,
        stop_reason=found.stop_reason,
        unrounded=found.real,
        asked=gap,
        nodes=found.nodes,
        seconds=time.monotonic() - started,
        truth=data.y.copy(),
        totals_in_training=np.zeros(0),
        bins=bins,
    )
    return replace(card, totals_in_training=card.totals_of(values))


def _feature_scales(result: Result, names: tuple[str, ...]) -> dict[str, tuple[float, float]]:
    """Shift and scale of every feature in the data that was solved."""
    shift, scale = (result.scaling[key] for key in ("shift", "scale"))
    return {name: (float(shift.get(name, 0.0)), float(scale.get(name, 1.0))) for name in names}


def ground_of(problem: Problem, columns: tuple[Column, ...], values: dict[str, Array]) -> Ground:
    """All samples, in the columns of the card."""
    Z = np.column_stack([column.of(values[column.feature]) - column.center for column in columns])
    sizes = np.array([column.size for column in columns])
    c = np.array(problem.c_i, dtype=float)
    return Ground(Z, sizes, problem.data.y, c, get_loss(problem.loss), problem.bias)


def problem_of(result: Result, data: Instance, points: int, bins: int) -> Problem:
    """The problem of the result, on its data, where a card can be made of it."""
    if not result.has_classifier:
        raise UsageError(f"the result has no classifier to give points to: its status is {result.status.name}")
    params = result.params
    if is_joint(params["loss"]) or params.get("margin") == "rho":
        raise UsageError(
            "a scorecard is for a loss that is a sum over the samples, and the unit margin; "
            "solve fsp-m with one of the losses hinge, squared-hinge and logistic"
        )
    if points > MOST_POINTS:
        raise UsageError(f"points = {points} is no card to add up by hand; give {MOST_POINTS} at most")
    if why := why_other_data(result, data):
        raise UsageError(
            f"{data.source or 'the data'} is other data than the result was solved on ({why}); give "
            "the training data, and the card to new data by predict"
        )
    if result.params.get("weight_rows"):
        raise UsageError("points keep no rows over the weights; solve without weight_rows for a scorecard")
    if held := excluding_0(settle_bounds(result.params.get("weight_bounds") or {}, data.index, data.like)):
        raise UsageError(f"points keep no weight_bounds that exclude 0, as those of {held[0]!r} do; solve without them")
    free: dict[str, Any] = {"cardinality": False, "lam": 0.0, "forced_in": (), "forced_out": (), "weight_bounds": {}}
    problem = posed_again(result, data, "a scorecard", **free)
    if bins == 1:
        raise UsageError("bins = 1: one range has no threshold; give 2 or more, or 0 for columns as they are")
    if bins > MOST_BINS:
        raise UsageError(f"bins = {bins} is no card to add up by hand; give {MOST_BINS} at most")
    if bins:  # thresholds are 0 and 1, in no unit of the columns
        problem.require_near("a card of thresholds")
    return problem


def ends_of(columns: tuple[Column, ...], bounds: Any, points: int) -> tuple[Any, Any]:
    """The ends of the points: none below 0 where no weight is, none above 0 likewise."""
    low, high = (np.full(len(columns), end, dtype=np.int64) for end in (-points, points))
    for j, column in enumerate(columns):
        ends = bounds.get(column.feature)
        if ends is not None:
            least, largest = (-math.inf if ends[0] is None else ends[0], math.inf if ends[1] is None else ends[1])
            low[j] = 0 if least >= 0 else low[j]
            high[j] = 0 if largest <= 0 else high[j]
    return low, high
