"""What exactness is good for where a selection must obey.

Directions, columns that are alike, cards of few points, parity of two groups, two budgets at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.data.instance import Instance
from mipfs.data.instance import Row as Inequality
from mipfs.data.weight_rows import parity
from mipfs.lab.baselines.linear import Linear, plain_svm
from mipfs.lab.experiments import sets
from mipfs.lab.experiments.fits import error, objective, scores, select_greedily, solve_by
from mipfs.lab.experiments.prices import COUNTS, prices
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
GROUPS = (
    ("heart_statlog", "sex"), ("heart_statlog", "age"), ("german", "Age"), ("german", "Personal-status"),
    ("pima", "Age"), ("pima", "Pregnant"), ("australian", "A1"), ("australian", "A2"),
)  # fmt: skip
"""Columns that part people into two groups, those above its mean and the others."""
PARITY_M, CLOSER, SHARE = 5, 0.5, 0.2
"""Features under parity, the share that is allowed of how far apart the groups are without it, and that of all prices
which is each of two budgets."""
CELL, WHERE = ("data", "by", "fold"), ("data", "by")
ENOUGH = 5
TITLES = {
    "directions": "Weights of known direction",
    "alike": "At most one of two columns that say the same",
    "cards": "Cards of few points",
    "parity": "Mean scores of two groups that must be alike",
    "budgets": "Two budgets at once",
}
CLAIMS = {
    "directions": "Where directions are known, the exact choice under signs has smaller test errors than dropping what "
    "comes out against them (ours)",
    "alike": "Where columns that say the same exclude each other, the exact choice has smaller test errors than a "
    "greedy one, and than a filter before (ours)",
    "cards": "A card of few points whose features and points are proven together has smaller test errors than one in "
    "two steps (ours)",
    "parity": "Where the mean scores of two groups must be alike, the exact choice has smaller test errors than parity "
    "on features chosen without it, and than dropping what tells the groups apart (ours)",
    "budgets": "Under two budgets at once the exact choice has smaller test errors than gain per share of the budgets, "
    "and than counting (ours)",
}
RIVALS = {
    "directions": ("dropped",),
    "alike": ("greedy", "filtered"),
    "cards": ("two steps", "rounded"),
    "parity": ("fitted after", "dropped"),
    "budgets": ("greedy", "counted"),
}
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
    f"intercept. *Parity* (with *budgets*, added on 29 November 2026): {len(GROUPS)} columns of four sets part people "
    "into those above its mean on the training rows and the others, and are no features; of the others at most "
    f"{PARITY_M} are selected, so that the mean scores of both on the training rows are at most {CLOSER:g} times as "
    "far apart as those of the best choice without parity (`free`, no rival). `exact` has parity as a row over the "
    "weights, `fitted after` keeps the features of `free` and fits them under that row, `dropped` drops what moves the "
    "means apart the most until they are near enough. *Budgets*: made prices and minutes of every feature, as in the "
    f"study `prices` those of its two draws, and of each {SHARE:.0%} of what all features cost; `exact` has two rows, "
    "`greedy` adds the affordable feature of the steepest gradient squared per share of the budgets that it takes, "
    "`counted` is the best support of M features for the largest M whose support is affordable."
)


def units() -> list[Unit]:
    """Fold by fold, set by set, of each part in turn."""
    return [
        Unit({"part": part, "data": name, "fold": k}, (part, name, k) == ("alike", "heart_statlog", 0), needs=name)
        for k in range(FOLDS)
        for part in TITLES
        for name in sets.FEW_FEATURES
        if part != "parity"
    ] + [
        Unit({"part": "parity", "data": name, "by": by, "fold": k}, needs=name)
        for k in range(FOLDS)
        for name, by in GROUPS
    ]


def measure(unit: Unit) -> list[Row]:
    """Every method of a part on one fold."""
    asked = unit.params
    part = fold(sets.read(asked["data"]), FOLDS, SEED, asked["fold"])
    if asked["part"] == "parity":
        part = GroupedFold.of(part, sets.feature_names(asked["data"]).index(asked["by"]))
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
    apart : float or None, how far the mean scores of two groups are apart on the test rows
    """

    error: float
    size: int
    objective: float
    proven: bool | None = None
    apart: float | None = None

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


def _select_exactly(data: Instance, within: Integers | None = None, most: int = M, **more: Any) -> tuple[Linear, bool]:
    """The SVM on the best M (or `most`) of some columns, and whether these are proven.

    Where bounds on the weights bind it is the solver's classifier. Else it is the plain SVM, as for whatever chooses:
    the intercept of a hinge SVM is often not unique.
    """
    within = np.arange(data.n_features) if within is None else within
    problem = Problem(data.only(within), M=min(most, within.size), C=C, **more)
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


@dataclass(frozen=True, eq=False)
class GroupedFold(Fold):
    """A fold whose people are of two groups.

    Attributes
    ----------
    of_one, of_one_tested : (n,) and (m,) of bool, who is of the one among the training and the test rows
    """

    of_one: npt.NDArray[np.bool_]
    of_one_tested: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, part: Fold, place: int) -> GroupedFold:
        """Parted by the column at a place, which is no feature any more."""
        at = [place]
        kept = np.setdiff1d(np.arange(part.train.n_features), at)
        column = (part.train.stated(np.array(at)) * part.train.scale[at] + part.train.shift[at]).ravel()
        train = part.train.only(kept)
        who = column > column.mean(), part.X[:, place] > column.mean()
        return cls(train, part.X[:, kept], part.y, part.rows, part.shift[kept], part.scale[kept], *who)

    def judge(self, fitted: Linear, proven: bool | None = None) -> Judged:
        """With how far the groups are apart."""
        found = scores(fitted, self.X)
        apart = abs(float(found[self.of_one_tested].mean() - found[~self.of_one_tested].mean()))
        return replace(Judged.of_linear(self, fitted, proven), apart=apart)

    def shares(self, fitted: Linear) -> Array:
        """What every feature adds to the distance of the mean scores on the training rows."""
        X = self.train.stated(fitted.ids) * self.train.scale[fitted.ids]
        return np.asarray(fitted.w * (X[self.of_one].mean(axis=0) - X[~self.of_one].mean(axis=0)))

    @cached_property
    def free(self) -> Linear:
        """The best choice without parity."""
        return _select_exactly(self.train, most=PARITY_M)[0]

    @property
    def within(self) -> float:
        """How far apart the means may be."""
        return CLOSER * abs(float(self.shares(self.free).sum()))

    def obey(self, ids: Integers) -> tuple[Linear, bool]:
        """The best choice of some columns under parity."""
        rows = parity(self.train.only(ids), self.of_one, self.within)
        return _select_exactly(self.train, ids, PARITY_M, weight_rows=rows)


def _obey_parity(part: GroupedFold) -> Judged:
    return part.judge(*part.obey(np.arange(part.train.n_features)))


def _fit_parity_after(part: GroupedFold) -> Judged:
    return part.judge(part.obey(part.free.ids)[0])


def _drop_what_parts(part: GroupedFold) -> Judged:
    """Select without parity, drop what moves the means apart the most, until they are near enough."""
    left, fitted = np.arange(part.train.n_features), part.free
    while abs(float(part.shares(fitted).sum())) > part.within:
        left = np.setdiff1d(left, fitted.ids[[int(np.argmax(np.abs(part.shares(fitted))))]])
        fitted = _select_exactly(part.train, left, PARITY_M)[0]
    return part.judge(fitted)


def _ignore_parity(part: GroupedFold) -> Judged:
    return part.judge(part.free)


def _spend_budgets(part: Fold) -> tuple[Array, Array]:
    """Money and minutes of every feature (2, p), and what there is of both (2,)."""
    costs = np.array([prices(part.train.n_features, draw) for draw in (1, 2)])
    return costs, np.floor(SHARE * costs.sum(axis=1))


def _obey_budgets(part: Fold) -> Judged:
    costs, budgets = _spend_budgets(part)
    names = part.train.feature_names
    given = [
        Inequality(what, dict(zip(names, cost.tolist(), strict=True)), -math.inf, float(budget))
        for what, cost, budget in zip(("money", "minutes"), costs, budgets, strict=True)
    ]
    rows = Rows.of(given, {name: j for j, name in enumerate(names)})
    return Judged.of_linear(part, *_select_exactly(part.train, most=len(names), rows=rows))


def _add_per_share(part: Fold) -> Judged:
    """The affordable column of the steepest gradient squared for what it takes of both budgets."""
    costs, budgets = _spend_budgets(part)

    def worth(steep: Array, ids: Integers) -> Array:
        fits = np.all(costs <= (budgets - costs[:, ids].sum(axis=1))[:, None], axis=0)
        return np.where(fits, steep / (costs / budgets[:, None]).sum(axis=0), 0.0)

    return Judged.of_linear(part, plain_svm(part.train, select_greedily(part.train, C, worth), C, True, "hinge"))


def _count_affordable(part: Fold) -> Judged:
    """The best M features, whatever they cost, for the largest M that can be paid."""
    costs, budgets = _spend_budgets(part)
    ids = np.empty(0, dtype=np.int64)
    for M in (M for M in COUNTS if part.train.n_features > M):
        best = _select_exactly(part.train, most=M)[0].ids
        ids = best if np.all(costs[:, best].sum(axis=1) <= budgets) else ids
    return Judged.of_linear(part, plain_svm(part.train, ids, C, True, "hinge"))


METHODS: dict[str, dict[str, Callable[[Any], Judged]]] = {
    "directions": {"exact": _obey_directions, "dropped": _drop_against, "free": _ignore_directions},
    "alike": {"exact": _exclude_alike, "greedy": _add_steepest, "filtered": _filter_alike},
    "cards": {"joint": _prove_card, "two steps": _point_selected, "rounded": _round_weights},
    "parity": {
        "exact": _obey_parity, "fitted after": _fit_parity_after, "dropped": _drop_what_parts, "free": _ignore_parity,
    },
    "budgets": {"exact": _obey_budgets, "greedy": _add_per_share, "counted": _count_affordable},
}  # fmt: skip
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
    groups = [
        ((str(data) if by is None else f"{data}, by {by}",), some)
        for (data, by), some in group_rows(rows, *WHERE).items()
    ]
    columns = [
        ("folds", lambda some: str(len(group_rows(some, "fold")))),
        ("proven", lambda some: out_of(of(some, method=methods[0]))),
        *across("method", methods, lambda mine: with_error(mine, "error", 1)),
    ]
    return tabulate(groups, ["data"], columns, "Mean test error in % ± one standard error")


def _pair_sets(rows: Sequence[Row], exact: str, other: str) -> list[tuple[float, float]]:
    """Mean errors of the exact method and of another one on every set, over folds."""
    return average_pairs(rows, exact, other, "error", CELL, WHERE)


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
        if len(group_rows(some, *WHERE)) < ENOUGH:
            continue
        exact, by = next(iter(METHODS[part])), "by set and group" if part == "parity" else "by set"
        parts = [
            lower(f"mean test error of {exact} less that of {rival}, {by}", _pair_sets(some, exact, rival))
            for rival in rivals
        ]
        excess = ", ".join(f"{rival} {percent(mean(of(some, method=rival), 'excess'), 1)}" for rival in rivals)
        proven = percent(mean(of(some, method=exact), "proven"), 0)
        details = f"training objectives above the exact one: {excess}; {proven} of the exact ones are proven"
        if part == "parity":
            apart = [f"{method} {mean(of(some, method=method), 'apart'):.2f}" for method in METHODS[part]]
            details += f"; how far the mean scores are apart on test rows: {', '.join(apart)}"
        found.append(judge_claim(CLAIMS[part], parts, details))
    return found


STUDY = Study(
    "rules",
    "What exactness is good for under rules",
    "ours; signs, conflicts, cards of points, parity and budgets",
    DESIGN,
    units,
    measure,
    report,
    claims,
)
