"""Error against the price of the features: what an exact budget buys, against greedy choices and against counting."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mipfs.data.instance import Instance
from mipfs.data.instance import Row as Inequality
from mipfs.lab.baselines.linear import plain_svm
from mipfs.lab.experiments import sets
from mipfs.lab.experiments.fits import error, f1, facts_of, ids_of, objective, select_greedily, solve_by
from mipfs.lab.experiments.study import PaperClaim, Row, Study, Unit
from mipfs.lab.experiments.tables import (
    STANDING,
    Heading,
    across,
    average_pairs,
    curves,
    difference,
    group_rows,
    mean,
    of,
    out_of,
    pairs,
    percent,
    show_number,
    standing,
    tabulate,
    values,
    with_error,
)
from mipfs.lab.experiments.verdicts import judge_claim, lower
from mipfs.lab.studies.folds import Fold, fold
from mipfs.plumbing.arrays import Array, Integers
from mipfs.plumbing.clock import cpu_clock
from mipfs.problem import Problem
from mipfs.report.blocks import ReportBlock, Table
from mipfs.selection.rows import Rows

SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4)
"""Budgets, as shares of the price of all features."""
C, NODES, FOLDS, SEED = 1.0, 3000, 5, 1
DEAREST = 100.0
COUNTS = (1, 2, 3, 4, 5, 6, 8, 10, 12)
"""Values of M of the one who counts."""
CELL = ("data", "draw", "fold", "share")
METHODS = ("exact", "fgm", "greedy", "elimination", "counted", "cheapest")
ENOUGH = 5

DESIGN = (
    "The shared sets of at most 60 features, five folds, two draws of prices: no set has prices of its own, so that "
    f"these are made, whole numbers from 1 to {DEAREST:g} whose logarithms are uniform. Budgets are shares of the "
    f"price of all features. Whatever chooses, the classifier is the hinge SVM on the choice, C = {C:g}, free "
    f"intercept. `exact` is branch and bound with the budget as a row (at most {NODES} nodes); `fgm` the relaxation "
    "with the same row, squared hinge, rounded; `greedy` adds the affordable feature of the steepest gradient squared "
    "per price; `elimination` drops the least w² per price until the rest is affordable, and fills up by the last ones "
    "that were dropped; `counted` is blind to prices until the end: the best support of M features, for the largest M "
    "whose support is affordable; `cheapest` takes features by ascending price."
)


def units() -> list[Unit]:
    """Fold by fold, set by set, of a draw of prices and then of the next."""
    quick = {("heart_statlog", 1, 0)}
    return [
        Unit({"data": name, "draw": draw, "fold": k}, (name, draw, k) in quick, needs=name)
        for draw in (1, 2)
        for k in range(FOLDS)
        for name in sets.FEW_FEATURES
    ]


def prices(p: int, draw: int) -> Array:
    """Whole numbers from 1 to `DEAREST`, log-uniform."""
    return np.round(DEAREST ** np.random.default_rng([draw, p]).random(p))


@dataclass(frozen=True, eq=False)
class Shop:
    """Training rows, and what their features cost."""

    data: Instance
    price: Array

    def affordable(self, order: Sequence[int] | Integers, budget: float) -> Integers:
        """Features in an order, without those that do not fit any more."""
        found, left = [], budget
        for j in order:
            if self.price[j] <= left:
                found.append(int(j))
                left -= self.price[j]
        return np.array(sorted(found), dtype=np.int64)

    @cached_property
    def dropped(self) -> Integers:
        """Features from the one that elimination keeps longest to the one that it drops first."""
        left, order = np.arange(self.price.size), []
        while left.size:
            w = plain_svm(self.data, left, C, True, "hinge")
            worth = np.zeros(self.price.size)
            worth[w.ids] = (w.w * self.data.scale[w.ids]) ** 2
            least = left[int(np.argmin(worth[left] / self.price[left]))]
            order.append(int(least))
            left = left[left != least]
        return np.array(order[::-1])

    @cached_property
    def counted(self) -> list[Integers]:
        """The best supports of M features, whatever they cost."""
        sizes = [M for M in COUNTS if self.price.size > M]
        return [ids_of(Problem(self.data, M=M, C=C), "branch", iteration_limit=NODES) for M in sizes]

    def row(self, budget: float) -> Rows:
        """The budget as a row over the features."""
        names = self.data.feature_names
        terms = dict(zip(names, self.price.tolist(), strict=True))
        return Rows.of([Inequality("budget", terms, -math.inf, budget)], {name: j for j, name in enumerate(names)})


Chosen = tuple[Integers, dict[str, Any]]


def _select_exactly(shop: Shop, budget: float) -> Chosen:
    problem = Problem(shop.data, C=C, rows=shop.row(budget), cardinality=False)
    result = solve_by(problem, "branch", iteration_limit=NODES)
    return np.sort(shop.data.columns_of(result.selected)), facts_of(result)


def _choose_relaxed(shop: Shop, budget: float) -> Chosen:
    problem = Problem(shop.data, loss="squared-hinge", C=C, rows=shop.row(budget), cardinality=False)
    return ids_of(problem, "kelley", gap=1e-3), {}


def _select_greedily(shop: Shop, budget: float) -> Chosen:
    def worth(steep: Array, ids: Integers) -> Array:
        return np.where(shop.price <= budget - shop.price[ids].sum(), steep / shop.price, 0.0)

    return select_greedily(shop.data, C, worth), {}


def _select_by_elimination(shop: Shop, budget: float) -> Chosen:
    return shop.affordable(shop.dropped, budget), {}


def _choose_counted(shop: Shop, budget: float) -> Chosen:
    fitting = [ids for ids in shop.counted if shop.price[ids].sum() <= budget]
    return fitting[-1] if fitting else np.empty(0, dtype=np.int64), {}


def _select_cheapest(shop: Shop, budget: float) -> Chosen:
    return shop.affordable(np.argsort(shop.price, kind="stable"), budget), {}


CHOICES: dict[str, Callable[[Shop, float], Chosen]] = {
    "exact": _select_exactly,
    "fgm": _choose_relaxed,
    "greedy": _select_greedily,
    "elimination": _select_by_elimination,
    "counted": _choose_counted,
    "cheapest": _select_cheapest,
}


def measure(unit: Unit) -> list[Row]:
    """Every method at every budget, on one fold."""
    asked = unit.params
    part = fold(sets.read(asked["data"]), FOLDS, SEED, asked["fold"])
    shop = Shop(part.train, prices(part.train.n_features, asked["draw"]))
    rows: list[Row] = []
    for share in SHARES:
        budget = max(math.floor(share * float(shop.price.sum())), float(shop.price.min()))
        found = [_judge_method(part, shop, name, budget) for name in METHODS]
        exact = found[0]["objective"]
        rows += [{"share": share, **row, "excess": row["objective"] / exact - 1.0} for row in found]
    return rows


def _judge_method(part: Fold, shop: Shop, name: str, budget: float) -> Row:
    """A method at a budget, on the test rows."""
    began = cpu_clock()
    ids, facts = CHOICES[name](shop, budget)
    spent = cpu_clock() - began
    fitted = plain_svm(part.train, ids, C, True, "hinge")
    return {
        "method": name,
        "budget": budget,
        "price": float(shop.price[ids].sum()),
        "whole": float(shop.price.sum()),
        "size": int(ids.size),
        "error": error(fitted, part.X, part.y),
        "f1": f1(fitted, part.X, part.y),
        "objective": objective(part.train, fitted, C),
        "proven": facts.get("proven"),
        "gap": facts.get("gap"),
        "seconds": spent,
    }


def report(rows: Sequence[Row]) -> list[ReportBlock]:
    """Error against the budget, set by set and over all, and how far the others' objectives are above."""
    found: list[ReportBlock] = [
        Heading("Error against the price of the features"),
        _by_share(rows),
        _totals_block(rows),
    ]
    labels = ("budget, share of the price of all features", "test error")
    found.append(curves("Test error against the budget", rows, "share", "error", labels=labels, is_log=True))
    found += [Heading("Set by set"), _by_set(rows)]
    for (data,), some in group_rows(rows, "data").items():
        found.append(curves(f"{data}: test error", some, "share", "error", labels=labels, is_log=True, spread=False))
    return found


def _by_share(rows: Sequence[Row]) -> ReportBlock:
    groups = [((percent(share, 0),), some) for (share,), some in sorted(group_rows(rows, "share").items())]
    columns = [
        ("exact proven", lambda some: out_of(of(some, method="exact"))),
        *across("method", METHODS, lambda mine: f"{100 * mean(mine, 'error'):.2f} ({mean(mine, 'size'):.1f})"),
    ]
    title = "Mean test error in % over sets, draws and folds (in parentheses the number of features)"
    return tabulate(groups, ["budget"], columns, title)


def by_set(rows: Sequence[Row], other: str) -> list[tuple[float, float]]:
    """The mean errors of the exact method and of another one on every set, over draws, folds and budgets."""
    return average_pairs(rows, "exact", other, "error", CELL, ("data",))


def _totals_block(rows: Sequence[Row]) -> ReportBlock:
    lines = []
    for method in METHODS[1:]:
        mine = of(rows, method=method)
        cells = [method, percent(mean(mine, "excess"), 1), percent(max(values(mine, "excess")), 0)]
        cells.append(f"{sum(row['excess'] <= 2e-4 for row in mine)} of {len(mine)}")
        lines.append([*cells, *standing(by_set(rows, method)), show_number(mean(mine, "seconds"), "{:.2f}")])
    head = ["method", "mean excess", "largest", "as good as exact", *STANDING, "CPU s"]
    return Table(head, lines, "Excess: the training objective above that of the exact choice")


def _by_set(rows: Sequence[Row]) -> ReportBlock:
    groups = [((data, percent(share, 0)), some) for (data, share), some in group_rows(rows, "data", "share").items()]
    columns = [
        ("folds", lambda some: str(len(group_rows(some, "draw", "fold")))),
        *across("method", METHODS, lambda mine: with_error(mine, "error", 1)),
    ]
    return tabulate(groups, ["data", "budget"], columns, "Mean test error in % ± one standard error")


def claims(rows: Sequence[Row]) -> list[PaperClaim]:
    """Whether an exact budget pays, and whether counting does as well."""
    if len(group_rows(rows, "data")) < ENOUGH:
        return []
    said = {
        "greedy": "Under a budget of prices the exact choice has smaller test errors than gain per price (ours)",
        "counted": "Whoever counts features where they have prices pays for it in test error (ours)",
    }
    return [_claim_of_method(rows, method, words) for method, words in said.items()]


def _claim_of_method(rows: Sequence[Row], method: str, said: str) -> PaperClaim:
    """By set: two draws of prices on one set are no independent observations."""
    exact = of(rows, method="exact")
    theirs = of(rows, method=method)
    points = {s: 100 * difference(pairs(of(rows, share=s), "exact", method, "error", CELL)) for s in SHARES}
    gaps = [f"{percent(share, 0)}: {value:+.1f}" for share, value in points.items()]
    details = (
        f"points by budget, as a share of the whole price, {', '.join(gaps)}; the training "
        f"objective of {method} is {percent(mean(theirs, 'excess'), 1)} above that of exact on average; "
        f"{percent(mean(exact, 'proven'), 0)} of the exact choices are proven"
    )
    part = lower(f"mean test error of exact less that of {method}, by set, over budgets", by_set(rows, method))
    return judge_claim(said, [part], details)


STUDY = Study(
    "prices",
    "Error against the price of the features",
    "ours; the budget of Aytug 2015, section 2",
    DESIGN,
    units,
    measure,
    report,
    claims,
)
