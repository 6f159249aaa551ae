"""What exactness is good for where a selection must obey: directions, columns that are alike, cards of few points."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.data.instance import Instance
from mipfs.data.instance import Row as Inequality
from mipfs.lab.baselines.linear import Linear, plain_svm
from mipfs.lab.experiments import sets
from mipfs.lab.experiments.fits import error, objective, select_greedily, solve_by
from mipfs.lab.experiments.study import PaperClaim, Row, Study, Unit
from mipfs.lab.experiments.tables import (
    STANDING,
    Heading,
    across,
    average_pairs,
    group_rows,
    mean,
    of,
    out_of,
    percent,
    show_number,
    standing,
    tabulate,
    values,
    with_error,
)
from mipfs.lab.experiments.verdicts import judge_claim, lower
from mipfs.lab.scorecard.card import Scorecard
from mipfs.lab.scorecard.make import scorecard
from mipfs.lab.studies.folds import Fold, fold
from mipfs.losses import get_loss
from mipfs.plumbing.arrays import Array, Integers
from mipfs.plumbing.clock import cpu_clock
from mipfs.problem import Problem
from mipfs.report.blocks import ReportBlock, Table
from mipfs.result.result import Result
from mipfs.selection.rows import Rows

C, M, NODES, FOLDS, SEED = 1.0, 8, 3000, 5, 2
SAME = 1e-6
"""By how much, relatively, an objective may be less before bounds bind."""
ALIKE = 0.5
"""Columns of at least this correlation, in size, say the same."""
POINTS, CARD_M, CARD_SECONDS = 2, 5, 60.0
CELL = ("data", "fold")
ENOUGH = 5
TITLES = {
    "directions": "Weights of known direction",
    "alike": "At most one of two columns that say the same",
    "cards": "Cards of few points",
}
CLAIMS = {
    "directions": "Where directions are known, the exact choice under signs has smaller test errors than dropping what "
    "comes out against them (ours)",
    "alike": "Where columns that say the same exclude each other, the exact choice has smaller test errors than a "
    "greedy one, and than a filter before (ours)",
    "cards": "A card of few points whose features and points are proven together has smaller test errors than one in "
    "two steps (ours)",
}
RIVALS = {"directions": ("dropped",), "alike": ("greedy", "filtered"), "cards": ("two steps", "rounded")}
"""What the exact method of a part is judged against."""

DESIGN = (
    f"The shared sets of at most 60 features, five folds, M = {M}, C = {C:g}, standardised on all rows, hinge but for "
    f"cards; exact runs have at most {NODES} nodes. *Directions*: every weight must have the sign of its column's "
    "correlation with the label on the training rows, as where a field knows what raises a risk; `exact` is branch and "
    "bound under these signs, `dropped` what people do: select without them, drop what came out against its direction, "
    "select again among the rest until nothing does; `free` knows no signs and is no rival. *Alike*: of two columns "
    f"whose correlation on the training rows is {ALIKE:g} or more in size at most one may be selected; `exact` has a "
    "row for each pair, `greedy` adds the column of the steepest gradient that is allowed, `filtered` first keeps, by "
    "falling correlation with the label, what is like nothing kept before, and is exact on what is left. *Cards*: "
    f"{CARD_M} features, points from -{POINTS} to {POINTS}, logistic loss; `joint` proves features and points together "
    f"(at most {CARD_SECONDS:g} s), `two steps` are the best points for the proven features, `rounded` the weights of "
    "these features, in the units of the card's columns, as shares of the largest, rounded, with the best scale and "
    "intercept."
)


def units() -> list[Unit]:
    """Fold by fold, set by set, of each part in turn."""
    return [
        Unit({"part": part, "data": name, "fold": k}, (part, name, k) == ("alike", "heart_statlog", 0), needs=name)
        for k in range(FOLDS)
        for part in TITLES
        for name in sets.FEW_FEATURES
    ]


def measure(unit: Unit) -> list[Row]:
    """Every method of a part on one fold."""
    asked = unit.params
    part = fold(sets.read(asked["data"]), FOLDS, SEED, asked["fold"])
    rows: list[Row] = []
    for method, judge in METHODS[asked["part"]].items():
        began = cpu_clock()
        rows.append({"method": method, **vars(judge(part)), "seconds": cpu_clock() - began})
    for row in rows:
        row["excess"] = row["objective"] / rows[0]["objective"] - 1.0
    return rows


@dataclass(frozen=True, eq=False)
class Judged:
    """A classifier as it is judged.

    Attributes
    ----------
    error : float, on the test rows
    size : int, features in it
    objective : float, on the training rows
    proven : bool or None, where its objective is claimed to be the best
    """

    error: float
    size: int
    objective: float
    proven: bool | None = None

    @classmethod
    def of_linear(cls, part: Fold, fitted: Linear, proven: bool | None = None) -> Judged:
        """A linear classifier, by the hinge."""
        size = int(np.count_nonzero(fitted.w))
        return cls(error(fitted, part.X, part.y), size, objective(part.train, fitted, C), proven)


def _correlations(data: Instance) -> Array:
    """Of the columns with one another and, last, with the labels."""
    table = np.column_stack([data.block().values, data.y])
    table = table - table.mean(axis=0)
    norms = np.linalg.norm(table, axis=0)
    return np.asarray(table.T @ table / np.outer(norms, norms).clip(1e-300))


def _select_exactly(data: Instance, within: Integers | None = None, **more: Any) -> tuple[Linear, bool]:
    """The SVM on the best M of some columns, and whether these are proven.

    Where bounds on the weights bind it is the solver's classifier. Else it is the plain SVM, as for whatever chooses:
    the intercept of a hinge SVM is often not unique.
    """
    within = np.arange(data.n_features) if within is None else within
    problem = Problem(data.only(within), M=min(M, within.size), C=C, **more)
    result = solve_by(problem, "branch", iteration_limit=NODES)
    ids = np.sort(data.columns_of(result.selected))
    fitted = plain_svm(data, ids, C, True, "hinge")
    if objective(data, fitted, C) < result.objective * (1.0 - SAME):
        w = np.array([result.weights[data.feature_names[j]] for j in ids])
        fitted = Linear(ids, w, float(result.intercept), C)
    return fitted, result.status.name == "OPTIMAL"


def _known_signs(data: Instance) -> Array:
    return np.sign(_correlations(data)[-1, :-1])


def _obey_directions(part: Fold) -> Judged:
    known = _known_signs(part.train)
    ends = {1.0: (0.0, None), -1.0: (None, 0.0), 0.0: (None, None)}
    bounds = {name: ends[float(sign)] for name, sign in zip(part.train.feature_names, known, strict=True)}
    fitted, proven = _select_exactly(part.train, weight_bounds=bounds)
    return Judged.of_linear(part, fitted, proven)


def _drop_against(part: Fold) -> Judged:
    """Select without directions, drop what came out against its own, until nothing does."""
    known, left = _known_signs(part.train), np.arange(part.train.n_features)
    while True:
        fitted, _ = _select_exactly(part.train, left)
        against = fitted.ids[np.sign(fitted.w) * known[fitted.ids] < 0]
        if not against.size:
            return Judged.of_linear(part, fitted)
        left = np.setdiff1d(left, against)


def _ignore_directions(part: Fold) -> Judged:
    return Judged.of_linear(part, _select_exactly(part.train)[0])


def _find_alike(data: Instance) -> tuple[npt.NDArray[np.bool_], Array]:
    """Which columns (p, p) say the same, and the size of their correlation with the label (p,)."""
    size = np.abs(_correlations(data))
    alike = size[:-1, :-1] >= ALIKE
    np.fill_diagonal(alike, False)
    return alike, size[-1, :-1]


def _exclude_alike(part: Fold) -> Judged:
    names = part.train.feature_names
    pairs = np.argwhere(np.triu(_find_alike(part.train)[0])).tolist()
    given = [Inequality(f"alike{k}", {names[i]: 1.0, names[j]: 1.0}, -math.inf, 1.0) for k, (i, j) in enumerate(pairs)]
    rows = Rows.of(given, {name: j for j, name in enumerate(names)})
    fitted, proven = _select_exactly(part.train, rows=rows)
    return Judged.of_linear(part, fitted, proven)


def _add_steepest(part: Fold) -> Judged:
    """The allowed column of the steepest gradient, one after the other."""
    alike, _ = _find_alike(part.train)

    def worth(steep: Array, ids: Integers) -> Array:
        return np.where(alike[:, ids].any(axis=1) | (ids.size == M), 0.0, steep)

    ids = select_greedily(part.train, C, worth)
    return Judged.of_linear(part, plain_svm(part.train, ids, C, True, "hinge"))


def _filter_alike(part: Fold) -> Judged:
    """Exact on what a filter leaves."""
    alike, worth = _find_alike(part.train)
    kept: list[int] = []
    for j in np.argsort(-worth, kind="stable").tolist():
        if not alike[j, kept].any():
            kept.append(j)
    return Judged.of_linear(part, _select_exactly(part.train, np.sort(np.array(kept)))[0])


@lru_cache(maxsize=1)
def _solve_for_card(part: Fold) -> Result:
    return solve_by(Problem(part.train, loss="logistic", M=CARD_M, C=C), "branch", iteration_limit=NODES)


@lru_cache(maxsize=1)
def _point_features(part: Fold) -> Scorecard:
    """The best points for the proven features."""
    return _make_card(part, False)


def _make_card(part: Fold, joint: bool) -> Scorecard:
    result, limit = _solve_for_card(part), CARD_SECONDS
    return scorecard(result, part.train, points=POINTS, joint=joint, time_limit=limit, near_optimal=False)


def _judge_card(part: Fold, card: Scorecard, proven: bool | None = None) -> Judged:
    said = np.where(card.decision_function(part.X) > 0.0, 1.0, -1.0)
    size = len({column.feature for column, points in zip(card.columns, card.points, strict=True) if points})
    return Judged(float(np.mean(said != part.y)), size, card.objective, proven)


def _prove_card(part: Fold) -> Judged:
    card = _make_card(part, True)
    return _judge_card(part, card, card.status.name == "OPTIMAL")


def _point_selected(part: Fold) -> Judged:
    return _judge_card(part, _point_features(part))


def _round_weights(part: Fold) -> Judged:
    """Weights of the card's columns as shares of the largest, rounded; scale and intercept are the best for these."""
    data, card = part.train, _point_features(part)
    w = np.array([card.result.weights[column.feature] * column.unit for column in card.columns])
    points = np.round(POINTS * w / np.abs(w).max())
    length = float(np.linalg.norm(points * [column.size for column in card.columns]))
    rounded = replace(card, points=tuple(points.astype(int).tolist()))
    totals = Instance.from_arrays(rounded.totals(data)[:, None] / length, data.y)
    solved = get_loss("logistic").Solver(totals, C * totals.sample_weight, True).solve(np.arange(1), tol=1e-8)
    scale = float(solved.w[0]) / length
    return _judge_card(part, replace(rounded, scale=scale, intercept=float(solved.b), objective=float(solved.primal)))


METHODS: dict[str, dict[str, Callable[[Fold], Judged]]] = {
    "directions": {"exact": _obey_directions, "dropped": _drop_against, "free": _ignore_directions},
    "alike": {"exact": _exclude_alike, "greedy": _add_steepest, "filtered": _filter_alike},
    "cards": {"joint": _prove_card, "two steps": _point_selected, "rounded": _round_weights},
}
"""The first of each part is the exact one."""


def report(rows: Sequence[Row]) -> list[ReportBlock]:
    """Part by part: the methods over all sets, and set by set."""
    found: list[ReportBlock] = []
    for part, methods in METHODS.items():
        some = of(rows, part=part)
        if some:
            found += [Heading(TITLES[part]), _totals_block(some, part), _by_set(some, tuple(methods))]
    return found


def _by_set(rows: Sequence[Row], methods: Sequence[str]) -> ReportBlock:
    groups = [((str(data),), some) for (data,), some in group_rows(rows, "data").items()]
    columns = [
        ("folds", lambda some: str(len(group_rows(some, "fold")))),
        ("proven", lambda some: out_of(of(some, method=methods[0]))),
        *across("method", methods, lambda mine: with_error(mine, "error", 1)),
    ]
    return tabulate(groups, ["data"], columns, "Mean test error in % ± one standard error")


def _pair_sets(rows: Sequence[Row], exact: str, other: str) -> list[tuple[float, float]]:
    """Mean errors of the exact method and of another one on every set, over folds."""
    return average_pairs(rows, exact, other, "error", CELL, ("data",))


def _totals_block(rows: Sequence[Row], part: str) -> ReportBlock:
    exact, *others = METHODS[part]
    lines = []
    for method in others:
        mine = of(rows, method=method)
        cells = [method, percent(mean(mine, "excess"), 1), percent(max(values(mine, "excess")), 0)]
        cells += [*standing(_pair_sets(rows, exact, method)), show_number(mean(mine, "seconds"), "{:.2f}")]
        lines.append(cells)
    seconds = show_number(mean(of(rows, method=exact), "seconds"), "{:.2f}")
    title = f"Excess: the training objective above that of {exact}, which takes {seconds} CPU s"
    return Table(["method", "mean excess", "largest", *STANDING, "CPU s"], lines, title)


def claims(rows: Sequence[Row]) -> list[PaperClaim]:
    """Whether the exact choice pays in each part, against what is nearest to it."""
    found = []
    for part, rivals in RIVALS.items():
        some = of(rows, part=part)
        if len(group_rows(some, "data")) < ENOUGH:
            continue
        exact = next(iter(METHODS[part]))
        parts = [
            lower(f"mean test error of {exact} less that of {rival}, by set", _pair_sets(some, exact, rival))
            for rival in rivals
        ]
        excess = ", ".join(f"{rival} {percent(mean(of(some, method=rival), 'excess'), 1)}" for rival in rivals)
        proven = percent(mean(of(some, method=exact), "proven"), 0)
        details = f"training objectives above the exact one: {excess}; {proven} of the exact ones are proven"
        found.append(judge_claim(CLAIMS[part], parts, details))
    return found


STUDY = Study(
    "rules",
    "What exactness is good for under rules",
    "ours; signs, conflicts and cards of points",
    DESIGN,
    units,
    measure,
    report,
    claims,
)
