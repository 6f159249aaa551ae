"""`mipfs.stability`: how often a feature is selected when the problem is solved on parts of its samples.

Every draw is a part of the samples of both classes, without replacement (subsampling, Meinshausen and Bühlmann 2010),
or as many as there are with replacement (the bootstrap). Missing values are filled in and columns scaled by the draw
alone, and the problem is solved on it, with its proof. The frequency of a feature has Wilson's interval: what that of
all possible draws may be, seen from those that were made. Draws share samples: it says nothing of other populations.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from statistics import NormalDist
from typing import Annotated, Any, Literal, TypedDict

import numpy as np

from mipfs import drivers
from mipfs.data.instance import Instance
from mipfs.data.split import Split
from mipfs.errors import UsageError
from mipfs.lab.studies.folds import require_columns
from mipfs.lab.studies.stability import LEVEL, Stability
from mipfs.lab.studies.stability import stability as index_of
from mipfs.plumbing.arrays import Integers
from mipfs.plumbing.declared import Count, NumberRange, Seed, check_arguments
from mipfs.plumbing.typed_json import Sha256, Whole
from mipfs.problem import Problem
from mipfs.report.blocks import Bar, Bars, NamedValues, ReportBlock, Reported, Table
from mipfs.report.frame import pandas_for
from mipfs.report.numbers import list_names, many, state_parameters
from mipfs.report.visible import as_json, finite_or_none
from mipfs.result.advice import ends_all
from mipfs.result.result import SCHEMA, Result, Status
from mipfs.result.result_document import Bound, Objective
from mipfs.run.parameters import parameters
from mipfs.run.side_by_side import in_order, jobs_of, limits_of

MOST_SHOWN = 30
"""Features that a report lists; the JSON has all that were ever selected."""
Draws = Annotated[int, NumberRange(2, 100_000)]


@dataclass(frozen=True)
class Frequency:
    """How often a feature was selected.

    Attributes
    ----------
    name : str
    count : int, draws that selected it
    frequency, lower, upper : float, its share of the draws, and the ends of Wilson's interval at 95%
    selected : bool, whether the whole data selects it
    """

    name: str
    count: int
    frequency: float
    lower: float
    upper: float
    selected: bool


class WholeEntry(TypedDict):
    """What is selected of all samples."""

    status: Status
    selected: list[str]
    objective: Objective
    bound: Bound


class StabilityDocument(TypedDict):
    """What mipfs stability --json writes."""

    schema: Literal[1]
    params: dict[str, Any]
    kind: Literal["subsampling", "bootstrap"]
    share: Annotated[float, NumberRange(0, 1)]
    draws: Whole
    seed: Whole
    proven: Whole
    data_sha256: Sha256
    whole: WholeEntry
    index: Stability | None
    features: list[Frequency]
    sets: list[list[str]]


@dataclass(frozen=True, eq=False)
class WholeSelection:
    """What a file says of the result of all samples."""

    status: Status
    selected: tuple[str, ...]
    objective: float
    bound: float
    data_sha256: str
    conflict: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class SelectionStability(Reported):
    """What `mipfs.stability` returns.

    Attributes
    ----------
    params : mapping, of the problem
    kind : "subsampling" or "bootstrap"
    share : float, of the samples that a draw has; 1 for the bootstrap
    seed : int
    whole : Result, of all samples, or WholeSelection, of a report that was read from a file
    sets : tuple of the features of every draw, each a tuple of str
    proven : int, draws whose selection was proven to be the best
    features : tuple of Frequency, those that were selected by some draw or by the whole data, the most frequent first
    index : Stability or None, Nogueira's index of all sets; None where it is not defined
    asked : int, draws that were asked for; Ctrl-C leaves fewer
    """

    params: Mapping[str, Any]
    kind: str
    share: float
    seed: int
    whole: Result | WholeSelection
    sets: tuple[tuple[str, ...], ...]
    proven: int
    features: tuple[Frequency, ...]
    index: Stability | None
    asked: int

    @classmethod
    def of(cls, document: StabilityDocument) -> SelectionStability:
        """The report that `document` wrote."""
        whole, index = document["whole"], document["index"]
        return cls(
            params=document["params"],
            kind=document["kind"],
            share=document["share"],
            seed=document["seed"],
            whole=WholeSelection(
                whole["status"],
                tuple(whole["selected"]),
                whole["objective"],
                whole["bound"],
                document["data_sha256"],
            ),
            sets=tuple(map(tuple, document["sets"])),
            proven=document["proven"],
            features=tuple(document["features"]),
            index=index,
            asked=document["draws"],
        )

    def __repr__(self) -> str:
        index = "undefined" if self.index is None else f"{self.index.index:.3f}"
        return f"<SelectionStability of {len(self.sets)} draws by {self.kind}, index {index}>"

    def blocks(self) -> list[ReportBlock]:
        """Of the report: what was drawn, the index, and the frequencies."""
        how = f"{len(self.sets)} of {self.asked} draws" if len(self.sets) < self.asked else f"{len(self.sets)} draws"
        about = (
            "bootstrap" if self.kind == "bootstrap" else f"{self.share:.0%} of the samples each, without replacement"
        )
        pairs = [
            ("problem", state_parameters(self.params)),
            ("draws", f"{how}, {about}; {self.proven} proven to be the best of their draw"),
            ("whole data", f"{self.whole.status.name}, {len(self.whole.selected)} selected"),
            ("stability", "undefined" if self.index is None else _index_in_words(self.index)),
        ]
        rows = [
            (one.name, "yes" if one.selected else "", f"{one.frequency:.2f}", f"{one.lower:.2f} to {one.upper:.2f}")
            for one in self.features[:MOST_SHOWN]
        ]
        title = "How often a draw selects it, with the 95% interval for all possible draws"
        blocks: list[ReportBlock] = [
            NamedValues(pairs),
            Table(("feature", "whole data", "share", "interval"), rows, title, 2),
        ]
        if len(self.features) > MOST_SHOWN:
            blocks.append(NamedValues([("beside them", f"{len(self.features) - MOST_SHOWN} features, less often")]))
        return blocks

    def lead(self) -> str:
        """Which features all draws select, and how many differ."""
        if not self.sets:
            return ""
        every = [one.name for one in self.features if one.count == len(self.sets)]
        rest = len(self.features) - len(every)
        named = f"All {len(self.sets)} draws select {list_names(every)}" if every else "No feature is in every draw"
        others = f"; {many(rest, 'other one is', 'others are')} in some of them, or in the selection of all data"
        return f"{named}{others if rest else ''}."

    def shown(self) -> list[ReportBlock]:
        """The report with a bar for every share, whose table has the intervals."""
        pairs, table, *rest = self.blocks()
        bars = [
            Bar(one.name, one.frequency, f"{one.frequency:.2f}", "first" if one.selected else "second",
                f"{one.name}: {one.count} of {len(self.sets)} draws, from {one.lower:.2f} to {one.upper:.2f}")
            for one in self.features[:MOST_SHOWN]
        ]  # fmt: skip
        note = "Blue: selected by the whole data, too. The table has the 95% interval for all possible draws."
        assert isinstance(table, Table)
        return (
            [pairs, Bars("How often a draw selects it", bars, note=note, table=table), *rest] if bars else self.blocks()
        )

    def document(self) -> dict[str, Any]:
        """``{schema, params, kind, share, draws, seed, whole, index, features, sets}``, schema 1."""
        index = None if self.index is None else {name: float(v) for name, v in vars(self.index).items()}
        whole = self.whole
        return {
            "schema": SCHEMA,
            "params": dict(self.params),
            "kind": self.kind,
            "share": self.share,
            "draws": len(self.sets),
            "seed": self.seed,
            "proven": self.proven,
            "data_sha256": whole.data_sha256,
            "whole": {
                "status": whole.status.name,
                "selected": list(whole.selected),
                "objective": finite_or_none(whole.objective),
                "bound": finite_or_none(whole.bound),
            },
            "index": index,
            "features": [vars(one) for one in self.features],
            "sets": [list(one) for one in self.sets],
        }

    def to_json(self) -> str:
        """`document` as JSON."""
        return as_json(self.document())

    def to_frame(self) -> Any:
        """The frequencies as a pandas data frame, a row for each feature.

        Raises
        ------
        UsageError
            pandas is not installed.
        """
        return pandas_for("stability.to_frame()").DataFrame([vars(one) for one in self.features])


@check_arguments
def stability(
    model: Any,
    *,
    draws: Draws = 50,
    share: Annotated[float, NumberRange(above=0, most=1)] = 0.5,
    bootstrap: bool = False,
    driver: str | None = None,
    seed: Seed = 0,
    on_draw: Callable[[int, int], object] | None = None,
    jobs: Count | None = None,
    **options: Any,
) -> SelectionStability:
    """Solve a problem on many parts of its samples, and count how often each feature is selected.

    Parameters
    ----------
    model : Problem, Pyomo model of a formulation, or Formulation
    draws : int >= 2
    share : float in (0, 1), default 0.5
        Of the samples of each class that a draw has, without replacement.
    bootstrap : bool, default False
        Draw as many samples as each class has, with replacement, instead; a sample that is drawn twice counts twice.
    driver : str, optional
        As for `mipfs.solve`.
    seed : int
        Of the draws and of the driver.
    on_draw : callable, optional
        Hears how many of how many draws are done.
    jobs : int >= 1, optional
        Draws that are solved side by side, by default as many as there are cores; the numbers do not depend on it.
    **options
        Options of the driver; ``time_limit`` is in seconds for every draw.

    Returns
    -------
    SelectionStability
        After Ctrl-C too, with the draws that were done.

    Raises
    ------
    UsageError
        A value out of its range, a class of fewer than two samples in a draw, or a draw without a classifier.
    """
    from mipfs.formulation import compile as compile_model

    problem = compile_model(model)
    require_columns(problem, "draws of the samples are", "give features or groups")
    if not bootstrap and not 0.0 < share < 1.0:
        raise UsageError(f"share = {share:g} must lie between 0 and 1; for draws with replacement give bootstrap")
    rng = np.random.default_rng(seed)
    parts = [draw_rows(problem.data, None if bootstrap else share, rng) for _ in range(draws)]
    found: list[Result] = []
    tell = on_draw or (lambda done, total: None)
    side = jobs_of(jobs, draws + 1)
    given = problem, driver, {**limits_of(options, side), "seed": seed}
    whole: Result | None = None
    try:
        with closing(in_order(_solve_draw, given, [None, *parts], side)) as results:
            for number, result in enumerate(results):
                if whole is None:
                    whole = result
                elif not ends_all(result) and not result.has_classifier:
                    raise UsageError(f"draw {number} has no classifier: {result.status.name}; give it more time")
                if ends_all(result):
                    break
                if number:
                    found.append(result)
                    tell(number, draws)
    except KeyboardInterrupt:
        if whole is None:
            raise
    assert whole is not None
    return _count_frequencies(
        problem, whole, found, ("bootstrap", 1.0) if bootstrap else ("subsampling", share), seed, draws
    )


def _solve_draw(given: tuple[Problem, str | None, dict[str, Any]], rows: Integers | None) -> Result:
    """The problem on a draw, or on all samples."""
    problem, driver, options = given
    if rows is not None:
        problem = problem.on_part(problem.data.part(rows))
    return dataclasses.replace(drivers.solve(problem, driver, **options), pool=None)


def draw_rows(data: Instance, share: float | None, rng: np.random.Generator) -> Integers:
    """The rows of a draw, ascending: a share of each class without replacement; None: as many with replacement.

    Samples that belong together (`mipfs.data.split`) are drawn together, whatever their classes.

    Raises
    ------
    UsageError
        A class would have no sample in it.
    """
    if data.split is not None and data.split.of is not None:
        return _drawn_together(data, data.split, share, rng)
    rows = []
    for sign in (-1.0, 1.0):
        own = np.flatnonzero(data.y == sign)
        size = own.size if share is None else int(share * own.size)
        if size < 1:
            raise UsageError(f"share = {share:g} leaves no sample of a class of {own.size}; give a larger share")
        rows.append(rng.choice(own, size, replace=share is None))
    return np.sort(np.concatenate(rows))


def _drawn_together(data: Instance, split: Split, share: float | None, rng: np.random.Generator) -> Integers:
    """The rows of a draw of what belongs together."""
    of = np.asarray(split.of)
    known = np.unique(of)
    size = known.size if share is None else int(share * known.size)
    chosen = rng.choice(known, size, replace=share is None)
    rows = np.sort(np.concatenate([np.flatnonzero(of == one) for one in chosen] or [np.empty(0, np.int64)]))
    for sign in (-1, 1):
        if not np.any(np.sign(data.y[rows]) == sign):
            raise UsageError(
                f"a draw of {size} of the {known.size} values of {split.by!r} has no sample of class "
                f"{data.labels.of(sign)!s}; give a larger share, or another seed"
            )
    return rows


def _count_frequencies(
    problem: Any, whole: Result, found: list[Result], kind: tuple[str, float], seed: int, asked: int
) -> SelectionStability:
    """The frequencies of all that was selected."""
    sets = tuple(result.selected for result in found)
    names = [name for one in sets for name in one]
    counts = {name: names.count(name) for name in dict.fromkeys([*whole.selected, *names])}
    order = {name: k for k, name in enumerate(problem.atoms.names)}
    chosen = sorted(counts, key=lambda name: (-counts[name], order[name]))
    features = tuple(
        Frequency(name, counts[name], *wilson_interval(counts[name], len(sets)), name in whole.selected)
        for name in chosen
    )
    proven = sum(result.status is Status.OPTIMAL for result in found)
    index = None
    if len(sets) > 1:
        index = index_of([[order[name] for name in one] for one in sets], problem.atoms.count)
    return SelectionStability(parameters(problem), *kind, seed, whole, sets, proven, features, index, asked)


def wilson_interval(count: int, n: int, level: float = LEVEL) -> tuple[float, float, float]:
    """The share of `count` in `n`, and the ends of Wilson's interval; 0, 0 and 1 where `n` is 0."""
    if n == 0:
        return 0.0, 0.0, 1.0
    z = NormalDist().inv_cdf(0.5 + 0.5 * level)
    p = count / n
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    reach = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return p, (0.0 if count == 0 else middle - reach), (1.0 if count == n else middle + reach)


def _index_in_words(found: Stability) -> str:
    """Nogueira's index in words."""
    return (
        f"{found.index:.3f}, from {found.lower:.3f} to {found.upper:.3f} (Nogueira's index: 1 where all draws select "
        "the same, 0 where they select at random)"
    )
