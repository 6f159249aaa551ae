"""A scorecard: points for features, what a total says, and how good the points are."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.errors import UsageError
from mipfs.lab.scorecard.columns import TOTAL_DIGITS, Column, to_digits, totals
from mipfs.losses import says_odds
from mipfs.measures import value as measure_value
from mipfs.plumbing import output_file
from mipfs.plumbing.arrays import Array
from mipfs.proof import pair
from mipfs.report.blocks import Block, Reported
from mipfs.report.frame import pandas_for
from mipfs.report.visible import as_json, finite_or_none
from mipfs.result import sidecar
from mipfs.result.documents import CARD
from mipfs.result.gap import relative_gap
from mipfs.result.prediction import user_columns
from mipfs.result.probability import probabilities
from mipfs.result.result import Result, Status, StopReason, Trace
from mipfs.result.saved_card import signed

MOST_ROWS = 16
"""Rows of the table of totals; more totals are put together."""
SCHEMA = 1
VERSION = 2
"""The rule by which a card is scored; the JSON of a card of the first has no version."""
FIRST_DECIMALS = 9
"""Decimals of a total that count by the first rule."""


@dataclass(frozen=True)
class Among:
    """Of how many near-optimal sets cards were made, of how many there are, and the objective of the optimum's card."""

    tried: int
    sets: int
    first: float


@dataclass(frozen=True, eq=False)
class Joint:
    """The cards that the bound of one is proven for: those of at most M features, none of them of `out`.

    Attributes
    ----------
    M : int
    out : tuple of str
    arrays : mapping, the proof as the sidecar has it; empty of a card that was read, whose result has the sidecar
    first : float, objective of the card that it began with, of the features of the result; no file has it
    supports : int, sets of features whose points were looked at; no file has it
    """

    M: int
    out: tuple[str, ...] = ()
    arrays: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict, repr=False)
    first: float = math.nan
    supports: int = 0


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
    among : Among or None, near-optimal sets whose cards it is the best of; no file has it
    joint : Joint or None, what the bound is proven for, if features and points were chosen together
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
    among: Among | None = None
    joint: Joint | None = None

    @property
    def gap(self) -> float:
        return relative_gap(self.objective, self.bound)

    @property
    def is_whole(self) -> bool:
        """Whether every total is a whole number."""
        return all(column.kind != "scaled" for column in self.columns)

    def totals(self, X: Any) -> npt.NDArray[np.float64]:
        """Σ points · column of every row of an Instance, a data frame or an (n, p) array, shape (n,)."""
        return self.totals_of(user_columns(self.result, X))

    def totals_of(self, values: Mapping[str, Array]) -> npt.NDArray[np.float64]:
        """The totals (n,) of the user's values (n,) of every feature: two are the same where these numbers are."""
        found, sizes = totals(self.columns, self.points, values)
        return found if self.version == 1 else to_digits(found, sizes + abs(self.threshold), TOTAL_DIGITS)

    def compared(self, totals: Array) -> npt.NDArray[np.float64]:
        """Totals (n,) as they are compared and shown: by the first rule to 9 decimals, whatever their size."""
        return np.round(totals, FIRST_DECIMALS) if self.version == 1 else totals

    def decision_function(self, X: Any) -> npt.NDArray[np.float64]:
        """scale · total + intercept of every row, shape (n,)."""
        return self.scores(self.totals(X))

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

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """The probabilities of both classes, negative first, (n, 2); see `probabilities`."""
        positive = self.probabilities(self.totals(X))
        return np.column_stack([1.0 - positive, positive])

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The predicted labels, as the user called them, shape (n,)."""
        labels = self.result.labels
        return np.where(self.speaks_for(self.totals(X)), np.asarray(labels["positive"]), np.asarray(labels["negative"]))

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
        totals = self.compared(self.totals_in_training)
        each = np.unique(totals)
        parts = np.array_split(each, min(MOST_ROWS, each.size))
        sides = [one for part in parts for one in (part[part <= self.threshold], part[part > self.threshold])]
        labels = self.result.labels
        rows = []
        for part in (side for side in sides if side.size):
            inside = (totals >= part[0]) & (totals <= part[-1])
            decision = labels["positive" if part[0] > self.threshold else "negative"]
            count, positives = int(inside.sum()), int((self.truth[inside] > 0).sum())
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
            output_file.save([(path, _text(self.document()))])
            return
        more = {} if self.joint is None else self.joint.arrays
        content, entry = sidecar.packed(self.result, pair.sidecar_of(path).name, more=more)
        document = replace(self, result=replace(self.result, certificate=entry)).document()
        pair.save(path, _text(document), content)

    def document(self) -> dict[str, Any]:
        """What ``--json`` writes."""
        found = self._fields()
        return found if self.version == 1 else signed(json.loads(json.dumps(found, allow_nan=False)))

    def _fields(self) -> dict[str, Any]:
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
            **({} if self.joint is None else {"joint": {"M": self.joint.M, "out": [*self.joint.out]}}),
            "nodes": self.nodes,
            "seconds": self.seconds,
        }

    def blocks(self) -> list[Block]:
        """Of the report: the card, what a total says, and how good the points are."""
        from mipfs.lab.scorecard.shown import blocks

        return blocks(self)

    def lead(self) -> str:
        """How the card is used, and what is proven."""
        from mipfs.lab.scorecard.shown import lead

        return lead(self)


def _text(document: Mapping[str, Any]) -> bytes:
    return f"{as_json(document)}\n".encode()
