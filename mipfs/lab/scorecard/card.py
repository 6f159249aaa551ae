"""A scorecard: points for features, what a total says, and how good the points are."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.data.recipe import MISSING_LEVEL
from mipfs.data.unknown_words import Unknown
from mipfs.errors import UsageError
from mipfs.lab.scorecard.columns import PRINTED_DIGITS, TOTAL_DIGITS, Column, to_digits, totals
from mipfs.lab.scorecard.within import CardRows
from mipfs.losses import says_odds
from mipfs.measures import value as measure_value
from mipfs.plumbing import output_file
from mipfs.plumbing.arrays import Array
from mipfs.proof import pair
from mipfs.report.blocks import Alarm, NamedValues, ReportBlock, Reported, Sentence, Table
from mipfs.report.frame import pandas_for
from mipfs.report.numbers import family_words, many, number, percent
from mipfs.report.visible import as_json, finite_or_none
from mipfs.result import sidecar
from mipfs.result.documents import CARD
from mipfs.result.gap import relative_gap
from mipfs.result.prediction import CUT, user_columns
from mipfs.result.probability import probabilities
from mipfs.result.result import Result, Status, StopReason, Trace
from mipfs.result.saved_card import exact, sign_document
from mipfs.result.summary import BECAUSE
from mipfs.result.tables import PrintedTable

EVERY_DIGIT = 17
"""Significant digits that tell all doubles apart."""
MOST_ROWS = 16
"""Rows of the table of totals; more totals are put together."""
SCHEMA = 1
VERSION = 2
"""The rule by which a card is scored; the JSON of a card of the first has no version."""
FIRST_DECIMALS = 9
"""Decimals of a total that count by the first rule."""


@dataclass(frozen=True)
class ListedCard:
    """The card of a near-optimal set.

    Attributes
    ----------
    selected : tuple of str
    lines : tuple of str, a feature, a condition and its points each
    objective, bound : float, of its points
    real : float, the objective of the set for real weights
    error : float, of the training data
    """

    selected: tuple[str, ...]
    lines: tuple[str, ...]
    objective: float
    bound: float
    real: float
    error: float

    @classmethod
    def of(cls, card: Scorecard) -> ListedCard:
        """What is listed of a card."""
        lines = (
            f"{column.feature} {column.condition} {_points_text(points)}"
            for column, points in zip(card.columns, card.points, strict=True)
        )
        real = float(card.result.objective)
        return cls(tuple(card.result.selected), tuple(lines), card.objective, card.bound, real, card.error)


@dataclass(frozen=True)
class CardComparison:
    """The cards of near-optimal sets, from the best on, of how many sets there are, and that of the optimum's card."""

    cards: tuple[ListedCard, ...]
    sets: int
    first: float

    @property
    def tried(self) -> int:
        """Of how many sets cards were made."""
        return len(self.cards)

    def table(self) -> PrintedTable:
        """The cards as a table for a paper: CSV, LaTeX or a data frame."""
        head = ("rank", "objective", "bound", "with real weights", "error", "features", "lines")
        rows = (
            (place, one.objective, one.bound, one.real, one.error, ", ".join(one.selected), "; ".join(one.lines))
            for place, one in enumerate(self.cards, 1)
        )
        return PrintedTable(head, tuple(rows))

    def blocks(self) -> list[ReportBlock]:
        """Of the report: what tells the cards apart."""
        rows = [
            (", ".join(one.selected), number(one.objective), number(one.bound), number(one.real), f"{one.error:.2%}")
            for one in self.cards[:MOST_ROWS]
        ]
        head = ("features", "objective", "bound", "with real weights", "error")
        blocks: list[ReportBlock] = [Table(head, rows, title="Cards of the near-optimal sets, the best first")]
        if more := self.tried - len(rows):
            blocks.append(Sentence(f"and {many(more, 'more card', 'more cards')}"))
        return [*blocks, Sentence("--cards FILE writes them all with their points; the JSON has the best alone")]


@dataclass(frozen=True)
class OddsScale:
    """Totals as a bank writes them: `score` at odds of `odds` to 1 for the positive class, `double` more double them.

    Attributes
    ----------
    score, odds, double : float, odds above 0, double not 0: below 0 the score falls where the odds rise
    origin, per_point : float, the score of a total t is origin + per_point · t
    """

    score: float
    odds: float
    double: float
    origin: float
    per_point: float


@dataclass(frozen=True, eq=False)
class CardFamily:
    """The cards that the bound of one is proven for: those of at most M features, none of them of `out`.

    Attributes
    ----------
    M : int
    out : tuple of str
    arrays : mapping, the proof as the sidecar has it; empty of a card whose sidecar is missing
    first : float, objective of the card that it began with, of the features of the result; no file has it
    supports : int, sets of features whose points were looked at; no file has it
    within : CardRows or None, of a table that was cut: how many of its columns, and thresholds of each
    """

    M: int
    out: tuple[str, ...] = ()
    arrays: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict, repr=False)
    first: float = math.nan
    supports: int = 0
    within: CardRows | None = None

    def document(self) -> dict[str, Any]:
        """As the JSON has it."""
        within = {} if self.within is None else {"within": self.within.document()}
        return {"M": self.M, "out": [*self.out], **within}

    @property
    def words(self) -> str:
        """Of which cards."""
        rows = {} if self.within is None else self.within.document()
        return f"cards of {family_words(self.M, rows)}"


@dataclass(frozen=True, eq=False)
class Scorecard(Reported):
    """Whole points for the features of a result.

    Attributes
    ----------
    result : Result, whose features they are
    columns : tuple of Column, what points are given for
    points : tuple of int, of every column
    most_points : int, K
    scale, intercept : float
        The decision value is scale · total + intercept, for the total Σ points · column.
    objective : float, ½ Σ (size · scale · points)² + Σ c_i ℓ, recomputed from all samples
    bound : float, below the objective of all points in −K … K with every scale and intercept
    status, stop_reason : Status, StopReason
    unrounded : float, the objective of the best real numbers in place of the points
    asked : float, the gap that was asked for
    nodes : int
    seconds : float
    truth : (n,) labels of the training data, -1.0 or +1.0
    totals_in_training : (n,) ndarray
    stated : mapping or None
        Of a card that was read from a file: what its totals, error and area were.
    version : int, the rule that it is scored by (docs/scorecard.md)
    bins : int, ranges that columns were cut into; 0 where they were not
    among : CardComparison or None, the cards of near-optimal sets, of which it is the best; no JSON has it
    joint : CardFamily or None, what the bound is proven for, if features and points were chosen together
    odds : OddsScale or None, how totals are scores of odds
    """

    result: Result
    columns: tuple[Column, ...]
    points: tuple[int, ...]
    most_points: int
    scale: float
    intercept: float
    objective: float
    bound: float
    status: Status
    stop_reason: StopReason
    unrounded: float
    asked: float
    nodes: int
    seconds: float
    truth: npt.NDArray[np.float64] = field(repr=False)
    totals_in_training: npt.NDArray[np.float64] = field(repr=False)
    stated: Mapping[str, Any] | None = field(default=None, repr=False)
    version: int = VERSION
    bins: int = 0
    among: CardComparison | None = None
    joint: CardFamily | None = None
    odds: OddsScale | None = None

    @property
    def gap(self) -> float:
        return relative_gap(self.objective, self.bound)

    @property
    def is_whole(self) -> bool:
        """Whether every total is a whole number."""
        return all(column.kind != "scaled" for column in self.columns)

    def totals(self, X: Any, unknown: Unknown = "refuse") -> npt.NDArray[np.float64]:
        """Σ points · column of every row of an Instance, a data frame or an (n, p) array, shape (n,).

        Where `unknown` is "none" a word that training did not see has no points.
        """
        return self.totals_of(user_columns(self.result, X, unknown))

    def totals_of(self, values: Mapping[str, Array]) -> npt.NDArray[np.float64]:
        """The totals (n,) of the user's values (n,) of every feature: two are the same where these numbers are."""
        found, sizes = totals(self.columns, self.points, values)
        return found if self.version == 1 else to_digits(found, sizes + abs(self.threshold), TOTAL_DIGITS)

    def compared(self, totals: Array) -> npt.NDArray[np.float64]:
        """Totals (n,) as they are compared and shown: by the first rule to 9 decimals, whatever their size."""
        return np.round(totals, FIRST_DECIMALS) if self.version == 1 else totals

    def decision_function(self, X: Any, unknown: Unknown = "refuse") -> npt.NDArray[np.float64]:
        """scale · total + intercept of every row, shape (n,); see `totals`."""
        return self.scores(self.totals(X, unknown))

    def scores(self, totals: Array) -> npt.NDArray[np.float64]:
        """scale · total + intercept of totals (n,), above 0 where the card says the positive class."""
        found = self.scale * totals + self.intercept
        least = np.finfo(float).tiny
        return np.where(self.speaks_for(totals), np.maximum(found, least), np.minimum(found, 0.0))

    @property
    def has_probabilities(self) -> bool:
        """Whether its scores say probabilities: the logistic loss does, of the card's own scores."""
        return says_odds(self.result.params.get("loss"))

    def probabilities(self, totals: Array) -> npt.NDArray[np.float64]:
        """The probability of the positive class for totals of any shape: an estimate, which no proof covers.

        Raises
        ------
        UsageError
            The loss of the result says none.
        """
        if not self.has_probabilities:
            raise UsageError(
                f"the loss {self.result.params.get('loss')!r} says no probabilities; make the card of a result with "
                "loss=logistic"
            )
        own = replace(self.result, calibration=None)  # which is about the scores of the result
        return np.asarray(probabilities(own, self.scores(totals)))

    def scaled_to_odds(self, double: float, score: float = 600.0, odds: float = 50.0) -> Scorecard:
        """The card with scores of odds: `score` at odds of `odds` to 1, and `double` more where they are doubled.

        With the log-odds a·t + b − log(k₊/k₋) of a total t, classes weighed by k, the score is
        score + double·(log-odds − log odds)/log 2.

        Raises
        ------
        UsageError
            The loss of the result says no odds, or a number is out of its range.
        """
        if not self.has_probabilities:
            raise UsageError("scores of odds are for cards of the logistic loss; solve with loss=logistic")
        if not (math.isfinite(double) and double and math.isfinite(score) and 0.0 < odds < math.inf):
            raise UsageError(
                f"pdo = {double:g}, base score {score:g}, base odds {odds:g}: numbers, pdo not 0, odds > 0"
            )
        weights, labels = self.result.params.get("class_weight"), self.result.labels
        ratio = 1.0 if not weights else weights[str(labels["positive"])] / weights[str(labels["negative"])]
        factor = double / math.log(2.0)
        origin = score + factor * (self.intercept - math.log(ratio) - math.log(odds))
        return replace(self, odds=OddsScale(score, odds, double, origin, factor * self.scale))

    def odds_scores(self, totals: Array) -> npt.NDArray[np.float64]:
        """The scores of odds of totals of any shape.

        Raises
        ------
        UsageError
            The card has none: make it with pdo.
        """
        if self.odds is None:
            raise UsageError("the card has no scores of odds; make it with pdo=20 (--pdo 20)")
        return np.asarray(self.odds.origin + self.odds.per_point * np.asarray(totals, dtype=float))

    def predict_proba(self, X: Any, unknown: Unknown = "refuse") -> npt.NDArray[np.float64]:
        """The probabilities of both classes, negative first, (n, 2); see `probabilities` and `totals`."""
        positive = self.probabilities(self.totals(X, unknown))
        return np.column_stack([1.0 - positive, positive])

    def predict(self, X: Any, unknown: Unknown = "refuse") -> npt.NDArray[Any]:
        """The predicted labels, as the user called them, shape (n,); see `totals`."""
        positive, negative = (np.asarray(self.result.labels[name]) for name in ("positive", "negative"))
        return np.where(self.speaks_for(self.totals(X, unknown)), positive, negative)

    def speaks_for(self, totals: Array) -> npt.NDArray[np.bool_]:
        """Whether totals (n,) are those of the positive class, as the card says it: above `threshold`."""
        return np.asarray(self.compared(totals) > self.threshold)

    def to_frame(self) -> Any:
        """The card as a pandas data frame with the columns ``feature, condition, points``.

        Raises
        ------
        UsageError
            pandas is not installed.
        """
        pandas = pandas_for("scorecard.to_frame()")
        return pandas.DataFrame(
            {
                "feature": [column.feature for column in self.columns],
                "condition": [column.condition for column in self.columns],
                "points": list(self.points),
            }
        )

    @property
    def threshold(self) -> float:
        """The total above which the class is the positive one."""
        return -self.intercept / self.scale

    @property
    def error(self) -> float:
        """The share of the training data on the wrong side."""
        if self.stated is not None:
            return float(self.stated["error"])
        return float(np.mean(self.speaks_for(self.totals_in_training) != (self.truth > 0)))

    @property
    def auc(self) -> float:
        """The area under the ROC curve on the training data."""
        if self.stated is not None:
            return float(self.stated["roc_auc"])
        return float(measure_value("roc-auc", self.truth, self.totals_in_training))

    @property
    def always(self) -> Any | None:
        """The label that all of the training data are given; None where the card tells them apart."""
        decisions = {row["decision"] for row in self.rates()}
        return decisions.pop() if len(decisions) == 1 else None

    def rates(self) -> list[dict[str, Any]]:
        """Of the totals in training, ascending: {"from", "to", "samples", "positives", "decision"}."""
        if self.stated is not None:
            return [dict(row) for row in self.stated["totals"]]
        return self.rates_of(self.totals_in_training, self.truth)

    def rates_of(self, totals: Array, signs: Array) -> list[dict[str, Any]]:
        """As `rates`, of any totals (n,) and labels as signs (n,)."""
        totals = self.compared(totals)
        each = np.unique(totals)
        parts = np.array_split(each, min(MOST_ROWS, each.size)) if each.size else []
        sides = [one for part in parts for one in (part[part <= self.threshold], part[part > self.threshold])]
        labels = self.result.labels
        rows = []
        for part in (side for side in sides if side.size):
            inside = (totals >= part[0]) & (totals <= part[-1])
            decision = labels["positive" if part[0] > self.threshold else "negative"]
            count, positives = int(inside.sum()), int((signs[inside] > 0).sum())
            ends = {"from": float(part[0]), "to": float(part[-1])}
            rows.append({**ends, "samples": count, "positives": positives, "decision": decision})
        return rows

    def save(self, path: str | Path) -> None:
        """Write the card as JSON, and beside it as ``CARD.cert.npz`` the certificate of its result.

        `mipfs.read_scorecard`, ``mipfs predict`` and ``mipfs verify`` take it from there. A pipe or a device gets the
        JSON alone, as a card of the first version is.

        Parameters
        ----------
        path : path-like
        """
        path = Path(path)
        if self.version == 1 or output_file.is_stream(path):
            output_file.save([(path, _document_bytes(self.document()))])
            return
        more = {} if self.joint is None else self.joint.arrays
        content, entry = sidecar.pack_sidecar(self.result, pair.sidecar_of(path).name, more=more)
        document = replace(self, result=replace(self.result, certificate=entry)).document()
        pair.save(path, _document_bytes(document), content)

    def document(self) -> dict[str, Any]:
        """What ``--json`` writes."""
        found = self._fields_without_digest()
        return found if self.version == 1 else sign_document(json.loads(json.dumps(found, allow_nan=False)))

    def _fields_without_digest(self) -> dict[str, Any]:
        """All of it but the digest."""
        return {
            "schema": SCHEMA,
            "kind": CARD,
            **({} if self.version == 1 else {"version": self.version, "bins": self.bins}),
            "status": self.status.name,
            "stop_reason": self.stop_reason.name,
            "objective": self.objective,
            "bound": self.bound,
            "gap": self.gap,
            "unrounded": finite_or_none(self.unrounded),
            "asked": self.asked,
            "most_points": self.most_points,
            "scale": self.scale,
            "intercept": self.intercept,
            "card": [
                {
                    "feature": column.feature,
                    "kind": column.kind,
                    "origin": column.origin,
                    "unit": column.unit,
                    "threshold": column.threshold,
                    "points": points,
                }
                for column, points in zip(self.columns, self.points, strict=True)
            ],
            "totals": self.rates(),
            "error": self.error,
            "roc_auc": self.auc if math.isfinite(self.auc) else None,
            "labels": dict(self.result.labels),
            "result": replace(self.result, trace=Trace(())).document(),  # without its history
            "data_sha256": self.result.data_sha256,
            **({} if self.joint is None else {"joint": self.joint.document()}),
            **({} if self.odds is None else {"odds": dict(vars(self.odds))}),
            "nodes": self.nodes,
            "seconds": self.seconds,
        }

    def blocks(self) -> list[ReportBlock]:
        """Of the report: the card, what a total says, and how good the points are."""
        return _report_blocks(self)

    def lead(self) -> str:
        """How the card is used, and what is proven."""
        return _lead_sentences(self)


def _document_bytes(document: Mapping[str, Any]) -> bytes:
    return f"{as_json(document)}\n".encode()


def _report_blocks(card: Scorecard) -> list[ReportBlock]:
    """Of the report: the card, what a total says, and how good the points are."""
    positive, negative = (str(card.result.labels[side]) for side in ("positive", "negative"))
    rows = [
        (column.feature, column.condition, _points_text(points))
        for column, points in zip(card.columns, card.points, strict=True)
    ]
    found: list[ReportBlock] = [
        Table(("feature", "condition", "points"), rows, title="Scorecard", left=2),
        Sentence(f"\nadd the points up: {_rule_in_words(card, positive, negative)}"),
        *map(Sentence, _reading_notes(card)),
        *([NamedValues([("scorecard", Alarm(constant))])] if (constant := constant_words(card)) else []),
        *_ranges_blocks(card),
        _totals_table(card, positive),
        Sentence(""),
        NamedValues(_key_figures(card)),
        Sentence(f"\n{words(card)}"),
        Sentence(describe_unproven(card)),
    ]
    if not card.is_whole:
        found.append(Sentence("columns of more than two values count by their size; --bins 4 cuts them into ranges"))
    return found + ([] if card.among is None else card.among.blocks())


def _reading_notes(card: Scorecard) -> list[str]:
    """What a reader of the card alone has to know: which lines count, and what a missing value is."""
    said = []
    if _thresholds_by_feature(card):
        said.append("every line that holds counts: of a feature with several lines their points are added up")
    filled = (card.result.recipe or {}).get("filled", {})
    cut = {column.feature for column in card.columns if _cut_of(column) is not None}
    words = (card.result.read or {}).get("words") or {}
    homes = {**filled, **words}
    columns = dict.fromkeys(column_of(one.feature, homes) for one in card.columns if one.feature not in cut)
    # A level of missing values that training did not see is refused like any word of that kind.
    counted = [name for name in columns if name in filled and (name not in words or filled[name] in words[name])]
    known = [f"a missing {name} counts as {_value_text(filled[name])}" for name in counted]
    # Of a cut table an empty cell is a word of its own: it counts as others do where training had it.
    as_word = {name for name in words if MISSING_LEVEL in words[name]} if cut else set()
    needed = [name for name in columns if name not in counted and name not in as_word]
    if known:
        said.append("; ".join(known))
    if cut:
        said.append(
            "of a table that mipfs bins cut: a missing cell or a special code counts in its own line alone, and "
            "without one in none; a missing cell is refused where training had none"
        )
    if needed:
        which = " or ".join([", ".join(needed[:-1]), needed[-1]] if len(needed) > 1 else needed)
        said.append(f"a missing value of {which} has no points: the card needs it")
    return said


def column_of(feature: str, filled: Mapping[str, Any]) -> str:
    """The column of the table that a feature is of: of a word the column of words."""
    if feature in filled:
        return feature
    return next((name for name in filled if feature.startswith(f"{name}=")), feature)


def _points_text(points: int) -> str:
    return f"{points:+d}" if points else "0"


def _value_text(value: Any) -> str:
    return exact(value) if isinstance(value, (int, float)) else repr(value)


def _cut_of(column: Column) -> tuple[str, str, str] | None:
    """Column of the table, "from" or "is", and its number or "missing", of a feature that `mipfs bins` made."""
    found = CUT.fullmatch(column.feature)
    is_flag = column.kind == "two values" and (column.origin, column.unit) == (0.0, 1.0)
    return (found[1], found[2], found[3]) if found and is_flag else None


def _thresholds_by_feature(card: Scorecard, least: int = 2) -> dict[str, list[tuple[float, int]]]:
    """The thresholds of each feature that has several, or `least`, ascending, with the points of their lines."""
    found: dict[str, list[tuple[float, int]]] = {}
    for column, points in zip(card.columns, card.points, strict=True):
        cut = _cut_of(column)
        if column.threshold is not None:
            found.setdefault(column.feature, []).append((column.threshold, points))
        elif cut is not None and cut[1] == "from" and cut[2] != MISSING_LEVEL:
            found.setdefault(cut[0], []).append((float(cut[2]), points))
    return {feature: sorted(ends) for feature, ends in found.items() if len(ends) >= least}


def _ranges_blocks(card: Scorecard) -> list[ReportBlock]:
    """The features of several lines once more, so that one line holds for each of them."""
    rows = []
    flags = [(_cut_of(column), points) for column, points in zip(card.columns, card.points, strict=True)]
    several = False
    for feature, ends in _thresholds_by_feature(card, 1).items():
        own = {cut[2]: points for cut, points in flags if cut is not None and cut[:2] == (feature, "is")}
        codes = _codes(card, feature)
        several |= len(ends) > 1 or bool(own or codes)
        steps = [(-math.inf, 0), *((threshold, points) for threshold, points in ends if points), (math.inf, 0)]
        total = 0
        for (low, points), (high, _) in itertools.pairwise(steps):
            total += points
            said = [f"from {exact(low)}"] * math.isfinite(low) + [f"below {exact(high)}"] * math.isfinite(high)
            but = " or ".join(text for text in codes if low <= float(text) < high)
            rows.append((feature, (", ".join(said) or "any") + (f" but not {but}" if but else ""), _points_text(total)))
        rows += [(feature, f"is {text}", _points_text(own.get(text, 0))) for text in dict.fromkeys([*codes, *own])]
    if not several:
        return []
    return [Table(("feature", "range", "points"), rows, title="The same by ranges, of which one holds", left=2)]


def _codes(card: Scorecard, feature: str) -> list[str]:
    """The special codes of a column that was cut, as its features name them."""
    found = dict[str, None]()
    for column in card.columns:
        named = CUT.fullmatch(column.feature)
        if named and named[1] == feature and _cut_of(column) is not None:
            found |= dict.fromkeys((named[4] or "").split(" or ") if named[4] else [named[3]] * (named[2] == "is"))
    return sorted(set(found) - {MISSING_LEVEL}, key=float)


def _totals_table(card: Scorecard, positive: str) -> Table:
    """What the totals say of the training data, and where the loss says it the probability of each."""
    head: tuple[str, ...] = ("total", "decision", "samples", f"labelled {positive}")
    rows: list[tuple[str, ...]] = [*rate_cells(card.rates())]
    if card.odds is not None:
        head = (*head, "score")
        scores = [[f"{v:.0f}" for v in card.odds_scores(np.array([one["from"], one["to"]]))] for one in card.rates()]
        rows = [(*row, a if a == b else f"{a} to {b}") for row, (a, b) in zip(rows, scores, strict=True)]
    if not card.has_probabilities:
        return Table(head, rows, title="Totals in the training data", left=2)
    ends = np.array([[row["from"], row["to"]] for row in card.rates()])
    sure = card.probabilities(ends)
    cells = [f"{low:.1%}" if f"{low:.1%}" == f"{high:.1%}" else f"{low:.1%} to {high:.1%}" for low, high in sure]
    told = [(*row, cell) for row, cell in zip(rows, cells, strict=True)]
    return Table((*head, f"probability of {positive}"), told, title="Totals in the training data", left=2)


def _odds_words(card: Scorecard) -> list[tuple[str, str]]:
    """How a total becomes a score of odds."""
    if card.odds is None:
        return []
    at, positive = card.odds, card.result.labels["positive"]
    first = f"{number(at.origin)} {'-' if at.per_point < 0 else '+'} {number(abs(at.per_point))} · total"
    return [
        ("score of odds", f"{first}: {at.score:g} at odds of {at.odds:g} to 1 for {positive}"),
        ("", f"{abs(at.double):g} {'less' if at.double < 0 else 'more'} where the odds are doubled"),
    ]


def constant_words(card: Scorecard) -> str:
    """That a card gives all of the training data one label, and what to try; "" where it tells them apart."""
    if card.always is None:
        return ""
    ways = ["solve with -p class_weight=balanced"] if not card.result.params.get("class_weight") else []
    ways.append("other --bins, or none" if any(column.kind == "threshold" for column in card.columns) else "--bins 4")
    return f"constant: every sample is called {card.always}; to try: {'; '.join(ways)}"


def _lead_sentences(card: Scorecard) -> str:
    """How the card is used, and what is proven, in two sentences."""
    positive, negative = (str(card.result.labels[side]) for side in ("positive", "negative"))
    proven = words(card)
    if constant := constant_words(card):
        return f"{constant[0].upper()}{constant[1:]}. {proven[0].upper()}{proven[1:]}."
    added = "Add up the points of every line that holds" if _thresholds_by_feature(card) else "Add the points up"
    rest = describe_unproven(card)
    return f"{added}: {_rule_in_words(card, positive, negative)}. {proven[0].upper()}{proven[1:]}; {rest}."


def words(card: Scorecard) -> str:
    """What is proven of what."""
    if card.joint is not None:
        return _joint_proof_in_words(card)
    params, chosen = card.result.params, {*card.result.selected}
    is_given = {*params.get("forced_in", ())} == chosen and params.get("M") == len(chosen)
    features = "the features were given" if is_given else _proven_features(card)
    if card.among is not None:
        of = f"{card.among.tried} of {card.among.sets}" if card.among.tried < card.among.sets else f"{card.among.sets}"
        features += f", those of the best card of {of} near-optimal sets"
        if card.objective < card.among.first:
            features += f" (that of the proven features has an objective of {number(card.among.first)})"
    if card.status is Status.OPTIMAL:
        return f"{features}; the points are the best for these features (gap {percent(card.gap)})"
    return f"{features}; the points are the best found for these features (gap {percent(card.gap)})"


def _joint_proof_in_words(card: Scorecard) -> str:
    """What is proven of a card whose features and points were chosen together."""
    assert card.joint is not None
    said = f"of all {card.joint.words} this is"
    if card.status is Status.OPTIMAL:
        return f"features and points are proven together (gap {percent(card.gap)}): {said} the best"
    return (
        f"features and points are not proven to be the best together: {said} the best found (gap {percent(card.gap)})"
    )


def _proven_features(card: Scorecard) -> str:
    """What the proof of the result says of its features."""
    return {
        Status.OPTIMAL: f"the features are proven (gap {percent(card.result.gap)})",
        Status.FEASIBLE: f"the features are the best found (gap {percent(card.result.gap)})",
    }.get(card.result.status, "the features are not proven to be the best")


def describe_unproven(card: Scorecard) -> str:
    """What is not proven of the card, which a reader may take for granted."""
    if card.joint is not None:
        first = card.joint.first
        if card.objective < first:
            return f"the card of the features that are the best for real weights has an objective of {number(first)}"
        return (
            "the thresholds that could be chosen are quantiles of these data"
            if _thresholds_by_feature(card)
            else "what it says of rows that it has not seen is not proven"
        )
    return "other features may have a better card: that these are the best for points, too, is not proven"


def _rule_in_words(card: Scorecard, positive: str, negative: str) -> str:
    if not any(card.points):
        return f"no points help; everybody is {positive if card.intercept > 0 else negative}"
    if card.always is not None:
        return f"no total in these data is on the other side; everybody is {card.always}"
    at = card.threshold
    if card.is_whole:
        return f"a total of {math.floor(at) + 1} or more is {positive}, a lower one {negative}"
    return f"a total above {_deciding_digits(card, (at,), lambda at: at)[0]} is {positive}, a lower one {negative}"


def _deciding_digits(card: Scorecard, numbers: tuple[float, ...], threshold: Callable[..., float]) -> list[str]:
    """Numbers to the digits, six at least, by which their threshold decides the training data as the card does."""
    ends = np.array([row[end] for row in card.rates() for end in ("from", "to")])
    for digits in range(PRINTED_DIGITS, EVERY_DIGIT):
        texts = [f"{value:.{digits}g}" for value in numbers]
        if np.array_equal(ends > threshold(*map(float, texts)), card.speaks_for(ends)):
            return texts
    return [exact(value) for value in numbers]


def rate_cells(totals: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, str, str]]:
    """Ranges of totals as cells: the range, its decision, samples, and the share of positive ones."""
    ends = _told_apart([row[end] for row in totals for end in ("from", "to")])
    rows = []
    for row, low, high in zip(totals, ends[::2], ends[1::2], strict=True):
        rate = f"{row['positives'] / row['samples']:.1%}"
        rows.append((low if low == high else f"{low} to {high}", str(row["decision"]), str(row["samples"]), rate))
    return rows


def _told_apart(totals: list[float]) -> list[str]:
    """Totals to the digits, four at least, by which they differ."""
    for digits in range(4, EVERY_DIGIT):
        texts = [f"{value:.{digits}g}" for value in totals]
        if len(set(map(float, texts))) == len(set(totals)):
            return texts
    return [exact(value) for value in totals]


def _key_figures(card: Scorecard) -> list[tuple[str, str]]:
    scale, intercept = _deciding_digits(card, (card.scale, card.intercept), lambda scale, intercept: -intercept / scale)
    pairs = [
        ("status", f"{card.status.name} ({BECAUSE[card.stop_reason]})"),
        ("objective", f"{number(card.objective)}, with real numbers for points {number(card.unrounded)}"),
        ("bound", number(card.bound)),
        ("gap", f"{percent(card.gap)}, asked: {percent(card.asked)}"),
        ("score", f"{scale} · total {'' if intercept.startswith('-') else '+'}{intercept}"),
        *_odds_words(card),
        ("error", f"{card.error:.2%} of these data"),
        ("area under ROC", f"{card.auc:.4f} on these data"),
        ("search", f"{many(card.nodes, 'node', 'nodes')}, {card.seconds:.2f} s"),
    ]
    if card.is_whole and any(column.kind == "threshold" for column in card.columns):
        return pairs
    return [*pairs[:2], ("of the result", f"objective {number(card.result.objective)}"), *pairs[2:]]
