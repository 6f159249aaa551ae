"""What proofs rest on, tried on a few samples before a measure of one's own is first used.

    violated(f) has the largest Δ(ȳ) − w'a(ȳ) at scores f:   of all that it returns at other scores none has more at f

That is no proof: a labelling that it returns nowhere is not met. The package's own are tested against all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from mipfs.errors import UsageError
from mipfs.measures.base import Measure, Violated
from mipfs.plumbing.arrays import Array
from mipfs.plumbing.extension import file_of, is_own, told_by_name

LABELS = (1.0, 1.0, 1.0, -1.0, -1.0, -1.0), (1.0, -1.0, -1.0, -1.0, -1.0), (1.0, 1.0, 1.0, 1.0, -1.0)
DRAWS = 200
"""Scores of each of `LABELS` that are tried."""
AGREEMENT = 1e-9
"""What rounding may change, relative to the terms."""


@cache
def check(create: Callable[..., Any], name: str) -> None:
    """Refuse a measure whose `violated` fails, or contradicts itself, once a process.

    Raises
    ------
    UsageError
    """
    if is_own(create.__module__):
        return
    random = np.random.default_rng(0)
    for labels in LABELS:
        y = np.array(labels)
        with told_by_name(f"the measure {name!r}: create", create):
            measure = create(name, y)
        if not isinstance(measure, Measure):
            raise UsageError(
                f"the measure {name!r}: create of {file_of(create)} returns {type(measure).__name__}, which is no "
                "object of a class of mipfs.measures.base.Measure"
            )
        scores = random.normal(size=(DRAWS, y.size)) * 10.0 ** random.uniform(-1.5, 1.0, (DRAWS, 1))
        _compare(f"the measure {name!r}", measure, scores)


def _compare(said: str, measure: Measure, scores: Array) -> None:
    """Compare what is returned at each of the scores (k, n) with what is returned at the others."""
    found = [_asked(said, measure, row) for row in scores]
    loss = np.array([one.loss for one in found])
    slopes = np.array([measure.direction(one.counts) for one in found])
    violation = loss[None, :] - scores @ slopes.T  # of what row j returned, at the scores of row i
    size = 1.0 + np.abs(scores).sum(axis=1)
    own, most = np.maximum(np.diagonal(violation), 0.0), np.maximum(violation.max(axis=1), 0.0)
    for i in np.flatnonzero(own < most - AGREEMENT * size)[:1]:
        raise UsageError(
            f"{said}: violated at the scores {np.round(scores[i], 3).tolist()} of labels {measure.y.tolist()} has "
            f"Δ − w'a = {own[i]:.6g}, and what it returns elsewhere has {most[i]:.6g} there: it is not the most "
            "violated one, and no bound would hold"
        )
    told = np.array([one.value for one in found])
    for i in np.flatnonzero(~(np.abs(told - np.diagonal(violation)) <= AGREEMENT * size))[:1]:
        raise UsageError(
            f"{said}: violated says a value of {told[i]:.6g} where its loss less its counts' share is "
            f"{violation[i, i]:.6g}: return self.made(counts, loss, scores)"
        )


def _asked(said: str, measure: Measure, scores: Array) -> Violated:
    """What `violated` returns, if it is a labelling with a loss."""
    with told_by_name(f"{said}: violated", type(measure)):
        found = measure.violated(scores)
    counts = np.asarray(getattr(found, "counts", None))
    if not isinstance(found, Violated) or counts.shape != (measure.n,) or counts.dtype.kind not in "biu":
        raise UsageError(f"{said}: violated returns no Violated with a whole number for every sample")
    if np.any(counts < 0) or np.any(counts > measure.largest):
        raise UsageError(f"{said}: violated counts {counts.tolist()}, and counts are from 0 to {measure.largest}")
    if not 0.0 <= found.loss <= 1.0:
        raise UsageError(f"{said}: violated says a loss of {found.loss:.6g}, and a loss is from 0 to 1")
    if not counts.any() and found.loss != 0.0:
        raise UsageError(f"{said}: the loss of the true labels is {found.loss:.6g}, and must be 0")
    return found
