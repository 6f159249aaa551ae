"""The best of the equally good: of the near-optimal sets the cheapest, the most stable, or that of the best AUC.

The list is proven (`near_optimal`), what is chosen among it is not: costs are those of the data, an area under the ROC
curve is that on rows that were held back, and how often draws of the samples select its features is counted
(`mipfs.stability`). Whatever was chosen is judged on rows that neither the list nor the choice has seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from mipfs import drivers
from mipfs.data.instance import Instance
from mipfs.errors import StoppedError, UsageError
from mipfs.lab.studies.selection_stability import Draws, stability
from mipfs.measures import value as measure_value
from mipfs.plumbing.arrays import Array, Integers
from mipfs.plumbing.declared import Count, Seed, check_arguments
from mipfs.problem import Problem
from mipfs.report.blocks import ReportBlock, Reported, Sentence, Table
from mipfs.report.numbers import list_names, many, number, percent
from mipfs.result.prediction import user_columns, using
from mipfs.result.result import Result
from mipfs.result.score import signs_of
from mipfs.run.parameters import check_result_of

Wish = Literal["cost", "auc", "stability"]
WORDS: dict[str, tuple[str, str]] = {
    "cost": ("cost", "the cheapest one"),
    "auc": ("area under ROC", "the one of the largest area under the ROC curve on held-out rows"),
    "stability": ("stability", "the one whose features most draws of the samples select"),
}
"""What is compared, and what the set is that is chosen by it."""
DRAWS = 20
MOST_SHOWN = 20
"""Sets that a report lists."""
COUNTED_DIGITS = 12
"""Significant digits of a value that count: below them sums of the same costs or shares differ by their order."""


@dataclass(frozen=True)
class Preferred:
    """A near-optimal set by the second wish.

    Attributes
    ----------
    selected : tuple of str
    weights, intercept : of its classifier, on the user's scale
    objective, gap : float, as in the list
    value : float, its cost, area or stability, to `COUNTED_DIGITS`
    """

    selected: tuple[str, ...]
    weights: Mapping[str, float]
    intercept: float
    objective: float
    gap: float
    value: float


@dataclass(frozen=True)
class Judgement:
    """How a classifier does on rows that no choice has seen: area under the ROC curve and share of wrong labels."""

    auc: float
    error: float


@dataclass(frozen=True, eq=False)
class Preference(Reported):
    """What `prefer` returns.

    Attributes
    ----------
    by : {"cost", "auc", "stability"}
    sets : tuple of Preferred, the best by the wish first; of equal ones that of the smaller objective
    optimum : Preferred, that of the least objective
    complete : bool, whether the list has every set within its gap
    rows : int, held-out rows of the judgement; 0 without any
    judged : tuple of Judgement, of the optimum and of the chosen set; empty without held-out rows
    draws, asked : int, by "stability", the draws that were done, and those that were asked for: Ctrl-C leaves fewer
    """

    by: str
    sets: tuple[Preferred, ...]
    optimum: Preferred
    complete: bool
    rows: int = 0
    judged: tuple[Judgement, ...] = ()
    draws: int = 0
    asked: int = 0

    @property
    def chosen(self) -> Preferred:
        """The best set by the wish."""
        return self.sets[0]

    def solve(self, problem: Problem, **options: Any) -> Result:
        """The result of exactly the chosen features, with its own certificate: they stand in it as given."""
        names = self.chosen.selected
        return drivers.solve(problem.replace(forced_in=names, forced_out=(), M=len(names)), **options)

    def blocks(self) -> list[ReportBlock]:
        """Of the report: the sets by the wish, and how the chosen one does on rows that no choice has seen."""
        what, which = WORDS[self.by]
        rows = [
            (list_names(one.selected) if one.selected else "(none)", f"{one.value:.6g}", number(one.objective),
             percent(one.gap))
            for one in self.sets[:MOST_SHOWN]
        ]  # fmt: skip
        same = " (which is the optimum)" if self.chosen.selected == self.optimum.selected else ""
        tied = sum(one.value == self.chosen.value for one in self.sets)
        by_objective = "" if tied == 1 else f"; {tied} sets are equal in that, and of these it has the least objective"
        found = f"of {many(len(self.sets), 'near-optimal set', 'near-optimal sets')} {which}{same}{by_objective}"
        blocks: list[ReportBlock] = [
            Sentence(f"\n{found}: {list_names(self.chosen.selected)}"),
            Table(("features", what, "objective", "above"), rows, title="The second wish, the best first"),
        ]
        if more := len(self.sets) - len(rows):
            blocks.append(Sentence(f"and {many(more, 'more set', 'more sets')}, which the JSON has"))
        if self.draws < self.asked:
            blocks.append(Sentence(f"stopped after {self.draws} of {self.asked} draws: more may favour another set"))
        if not self.complete:
            blocks.append(Sentence("the list of sets is not complete: there may be better ones by the wish, too"))
        if not self.judged:
            return [*blocks, Sentence("how it does on new rows was not measured; give --held-out FILE (held_out=)")]
        lines = [
            (name, f"{one.auc:.4f}", f"{one.error:.2%}")
            for name, one in zip(("the optimum", "the chosen set"), self.judged, strict=True)
        ]
        title = f"On {many(self.rows, 'row', 'rows')} that neither choice has seen"
        return [*blocks, Table(("", "area under ROC", "error"), lines, title=title)]

    def document(self) -> dict[str, Any]:
        """``{by, complete, sets, rows, judged, draws, asked}``."""
        return {
            "by": self.by,
            "complete": self.complete,
            "sets": [{**vars(one), "selected": [*one.selected], "weights": {**one.weights}} for one in self.sets],
            "rows": self.rows,
            "judged": dict(zip(("optimum", "chosen"), map(vars, self.judged), strict=False)),
            "draws": self.draws,
            "asked": self.asked,
        }


@check_arguments
def prefer(
    problem: Problem,
    result: Result,
    by: Wish,
    *,
    held_out: Instance | None = None,
    draws: Draws = DRAWS,
    seed: Seed = 0,
    jobs: Count | None = None,
) -> Preference:
    """Of the near-optimal sets of a result the best one by a second wish.

    Parameters
    ----------
    problem : Problem, over single features
    result : Result of it that was asked for its near-optimal sets (`pool_gap`, `pool_size`)
    by : {"cost", "auc", "stability"}
        Costs are those of the data (`cost`, 0 where none is given; a group's once for all of its features); the area
        under the ROC curve is that on a half of `held_out`; stability is the share of draws of the samples that select
        a feature, its mean over the set.
    held_out : Instance, optional
        Rows that were not trained on. With `by="auc"` one half of each class chooses, and the other half judges;
        otherwise all of them judge.
    draws : int >= 2, of "stability" (`mipfs.stability`)
    seed : int, of the halves and the draws
    jobs : int >= 1, optional, of the draws

    Returns
    -------
    Preference

    Raises
    ------
    UsageError
        No list of near-optimal sets, atoms that are no single features, another problem, "cost" of data without costs,
        "auc" without held-out rows, held-out rows that are those of the problem, or a class without rows in a half.
    StoppedError
        Ctrl-C, or a limit of the whole command, before the first draw of "stability" was done.
    """
    _check_result(problem, result)
    check_wish(problem, by, held_out)
    assert result.near_optimal is not None
    supports = result.near_optimal["supports"]
    scores, y = (None, np.zeros(0)) if held_out is None else _held_out_scores(problem.data, result, held_out)
    chooses, judges = _stratified_halves(y, np.random.default_rng(seed)) if by == "auc" else (None, np.arange(y.size))
    done = 0
    if by == "cost":
        values = [problem.data.cost_of(one["selected"]) for one in supports]
    elif by == "auc":
        assert scores is not None
        values = [_roc_auc(scores[k], y, chooses) for k in range(len(supports))]
    else:
        share, done = _drawn_shares(problem, draws, seed, jobs)
        values = [float(np.mean([share.get(name, 0.0) for name in one["selected"]] or [0.0])) for one in supports]
    counted = (float(f"{value:.{COUNTED_DIGITS}g}") for value in values)
    sets = [
        Preferred(tuple(one["selected"]), dict(one["weights"]), one["intercept"], one["objective"], one["gap"], value)
        for one, value in zip(supports, counted, strict=True)
    ]
    sign = 1.0 if by == "cost" else -1.0
    order = sorted(range(len(sets)), key=lambda k: (sign * sets[k].value, sets[k].objective))
    least = min(range(len(sets)), key=lambda k: sets[k].objective)
    judged = () if scores is None else tuple(_judge_scores(scores[k], y, judges) for k in (least, order[0]))
    ranked, complete = tuple(sets[k] for k in order), bool(result.near_optimal["complete"])
    asked = draws if by == "stability" else 0
    return Preference(by, ranked, sets[least], complete, judges.size, judged, done, asked)


def check_wish(problem: Problem, by: str, held_out: Instance | None) -> None:
    """Refuse what no result of the problem could be chosen by.

    Raises
    ------
    UsageError
        "cost" of data without costs, "auc" without held-out rows, or held-out rows that are those of the problem.
    """
    if problem.atoms.kind != "features":
        raise UsageError("a second wish is for single features, and this problem selects others")
    if by == "auc" and held_out is None:
        raise UsageError("the area under the ROC curve needs rows that were not trained on; give held_out")
    if held_out is not None and held_out.sha256 == problem.data.sha256:
        raise UsageError("the held-out rows are those that were trained on (their digest is the same); give others")
    if by == "cost" and not any(problem.data.given_costs.values()):
        raise UsageError("the features of the data cost nothing; give them costs, by [cost] in its .toml or cost=")


def _check_result(problem: Problem, result: Result) -> None:
    """Refuse a result that has no list of sets of features, or is of another problem."""
    if result.near_optimal is None or not result.near_optimal["supports"]:
        raise UsageError("the result has no near-optimal sets to choose among; solve with pool_gap=0.01")
    check_result_of(problem, result)


def _drawn_shares(problem: Problem, draws: int, seed: int, jobs: int | None) -> tuple[Mapping[str, float], int]:
    """The share of the draws of the samples that select a feature, and how many draws were done."""
    try:
        found = stability(problem, draws=draws, seed=seed, jobs=jobs)
    except KeyboardInterrupt:
        found = None
    if found is None or not found.sets:
        raise StoppedError("stopped before any draw of the samples: which near-optimal set is most stable is not known")
    return {one.name: one.frequency for one in found.features}, len(found.sets)


def _held_out_scores(data: Instance, result: Result, held_out: Instance) -> tuple[Array, Array]:
    """The decision values (S, n) of the S listed classifiers on held-out rows, and their labels (n,) as signs."""
    assert result.near_optimal is not None
    supports = result.near_optimal["supports"]
    names = [*dict.fromkeys(name for one in supports for name in one["weights"])]
    y = signs_of(result, held_out)
    if not names:
        return np.array([np.full(y.size, one["intercept"]) for one in supports]), y
    values = user_columns(using(result, data, names), held_out)
    scores = [sum((w * values[name] for name, w in one["weights"].items()), np.zeros(y.size)) for one in supports]
    return np.array([own + one["intercept"] for own, one in zip(scores, supports, strict=True)]), y


def _stratified_halves(y: Array, rng: np.random.Generator) -> tuple[Integers, Integers]:
    """Two halves of the rows, of each class as many in both, the first one more where they are odd."""
    parts: tuple[list[npt.NDArray[np.int64]], list[npt.NDArray[np.int64]]] = ([], [])
    for side in (-1.0, 1.0):
        rows = rng.permutation(np.flatnonzero(y == side))
        if rows.size < 2:
            raise UsageError("the held-out rows have fewer than two of a class: one to choose by, and one to judge by")
        middle = (rows.size + 1) // 2
        parts[0].append(rows[:middle])
        parts[1].append(rows[middle:])
    return np.sort(np.concatenate(parts[0])), np.sort(np.concatenate(parts[1]))


def _roc_auc(scores: Array, y: Array, rows: Integers | None) -> float:
    """The area under the ROC curve on some rows."""
    return float(measure_value("roc-auc", y[rows], scores[rows]))


def _judge_scores(scores: Array, y: Array, rows: Integers) -> Judgement:
    """How scores do on some rows."""
    return Judgement(_roc_auc(scores, y, rows), float(np.mean((scores[rows] > 0) != (y[rows] > 0))))
