"""How many sets of features are as good: all supports within 1% of the optimum, per data set, M and C."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from mipfs.lab.experiments import sets
from mipfs.lab.experiments.fits import solve_by
from mipfs.lab.experiments.study import PaperClaim, Row, Study, Unit
from mipfs.lab.experiments.tables import Heading, across, count, curves, group_rows, mean, percent, tabulate, values
from mipfs.lab.experiments.verdicts import above, judge_claim
from mipfs.lab.studies.folds import fold
from mipfs.plumbing.clock import cpu_clock
from mipfs.problem import Problem
from mipfs.report.blocks import ReportBlock

SIZES, GRID = (1, 2, 3, 5, 8), (0.1, 1.0)
ENOUGH = 4
"""Sets from which on the claim is judged."""
WITHIN, NODES, MOST = 0.01, 5000, 1000
FOLDS, SEED = 5, 1
DESIGN = (
    f"FSP-M with the hinge and a free intercept on the training part of the first of {FOLDS} folds: all supports whose "
    f"objective is at most 1% above the optimum (`--pool-gap 0.01`, the best {MOST} of them), by at most {NODES} "
    "nodes; a list is complete where every other support is proven to be worse. `kept` is the number of features that "
    "stand in all of them, `used` of those that stand in some. The test error is that of the SVM on each support, on "
    f"the held-out fold. The rows of {', '.join(sets.UNIT)} have length one: C = 0.1 leaves w close to 0 there, so "
    "that most supports are within 1%."
)


def units() -> list[Unit]:
    """Set by set, the small ones first."""
    return [
        Unit({"data": name, "M": M, "C": C}, quick=(name, M) == ("heart_statlog", 3), needs=name)
        for name in sets.SMALL
        for C in GRID
        for M in SIZES
    ]


def measure(unit: Unit) -> list[Row]:
    """One list."""
    asked = unit.params
    part = fold(sets.read(asked["data"]), FOLDS, SEED, 0)
    data = part.train
    if data.n_features <= asked["M"]:
        return []
    problem = Problem(data, M=asked["M"], C=asked["C"])
    began = cpu_clock()
    result = solve_by(problem, "branch", pool_gap=WITHIN, pool_size=MOST, iteration_limit=NODES)
    spent = cpu_clock() - began
    near = result.near_optimal
    supports = () if near is None else near["supports"]
    share = {} if near is None else near["share"]
    found = []
    for one in supports:
        names = tuple(one["weights"])
        ids = data.columns_of(names)
        w = np.array(list(one["weights"].values()), dtype=float)
        found.append(float(np.mean(part.y * (np.asarray(part.X[:, ids] @ w).ravel() + one["intercept"]) <= 0.0)))
    return [
        {
            "p": data.n_features,
            "proven": result.status.name == "OPTIMAL",
            "complete": bool(near and near["complete"]) and len(supports) < MOST,
            "supports": len(supports),
            "kept": sum(value == 1.0 for value in share.values()),
            "used": sum(value > 0.0 for value in share.values()),
            "least_error": min(found, default=None),
            "optimum_error": found[0] if found else None,
            "largest_error": max(found, default=None),
            "seconds": spent,
        }
    ]


def report(rows: Sequence[Row]) -> list[ReportBlock]:
    """Counts by set and by M."""
    columns = across("M", SIZES, lambda mine: _support_counts_cell(mine[0]), "M = {}")
    title = "Supports within 1% of the optimum (features in all of them / in some); ≥: the list is not complete"
    lists = tabulate(group_rows(rows, "data", "p", "C").items(), ["data", "p", "C"], columns, title)
    blocks: list[ReportBlock] = [Heading("How many"), lists]
    drawn = [{**row, "C": f"C = {row['C']:g}"} for row in rows if row["complete"]]
    if drawn:
        labels = ("M", "supports, median over sets")
        title, note = "Supports within 1 percent", "Complete lists alone: those that were cut off are the long ones."
        blocks.append(
            curves(title, drawn, "M", "supports", "C", labels=labels, spread=False, of=_median_of_column, note=note)
        )
    many = [row for row in rows if row["complete"] and row["supports"] > 1]
    if many:
        errors = {"best of them": "least_error", "the optimum": "optimum_error", "worst of them": "largest_error"}
        columns = [count("lists"), *((head, _percent_of(name)) for head, name in errors.items())]
        matters = tabulate(group_rows(many, "data").items(), ["data"], columns, "Mean test error over complete lists")
        blocks += [Heading("Does it matter which"), matters]
    return blocks


def _median_of_column(rows: Sequence[Row], name: str) -> float:
    """Of a column: a list of a thousand supports would hide the others in a mean."""
    found = values(rows, name)
    return float(np.median(found)) if found else math.nan


def _percent_of(name: str) -> Callable[[Sequence[Row]], str]:
    return lambda rows: percent(mean(rows, name), 1)


def _support_counts_cell(row: Row) -> str:
    return f"{'' if row['complete'] else '≥ '}{row['supports']} ({row['kept']} / {row['used']})"


def _is_alone(row: Row) -> bool:
    """Whether the optimum is proven to be the only support within 1%."""
    return bool(row["complete"]) and row["supports"] == 1


def claims(rows: Sequence[Row]) -> list[PaperClaim]:
    """That a best set is the answer, by set."""
    some = [row for row in rows if row["complete"]]
    if len(group_rows(some, "data")) < ENOUGH:
        return []
    alone = [float(np.mean([row["supports"] == 1 for row in mine])) for mine in group_rows(some, "data").values()]
    spread = [row["largest_error"] - row["least_error"] for row in some if row["supports"] > 1]
    least = [float(np.mean([_is_alone(row) for row in mine])) for mine in group_rows(rows, "data").values()]
    details = (
        f"{len(some)} complete lists: the optimum stands alone in "
        f"{percent(float(np.mean([row['supports'] == 1 for row in some])), 0)}, the median list holds "
        f"{np.median(values(some, 'supports')):.0f}, the longest {max(row['supports'] for row in some)}; the test "
        f"errors within a list of several differ by {percent(float(np.mean(spread)), 1)} on average; where lists that "
        f"were cut off count as lists of several, the mean share of a set is {percent(float(np.mean(least)), 0)}"
    )
    said = "The best set of M features is the answer: hardly another is within 1% (ours)"
    cut = len(rows) - len(some)
    words = f"share of a set's complete lists that hold the optimum alone ({cut} of {len(rows)} lists were cut off)"
    return [judge_claim(said, [above(words, alone, 0.5)], details)]


STUDY = Study("as-good", "How many sets are as good?", "ours", DESIGN, units, measure, report, claims)
