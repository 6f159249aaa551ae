"""Which point of a path cross-validation chooses: the one of least error, or the simplest that is hardly worse.

The one-standard-error rule (Breiman et al. 1984, section 3.4.3; Hastie et al. 2009, section 7.10): of the points whose
error is at most the least one plus its standard error, s/√k over k folds, take the simplest. Differences below that are
noise of the folds, and the simpler problem is the one whose proof closes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from mipfs.lab.studies.solution_path import PathPoint

COUNTED_DIGITS = 12
"""Decimals of an error that count: below them means of the same shares differ by the order of their sum."""


def least_error(points: Sequence[PathPoint]) -> PathPoint | None:
    """The point of least validation error, of equal ones the first.

    Parameters
    ----------
    points : sequence of PathPoint, from the simplest on; those without errors or without a classifier are left out

    Returns
    -------
    Point, or None when no point can be compared
    """
    return min(_comparable_points(points), key=lambda point: round(point.error, COUNTED_DIGITS), default=None)


def one_standard_error(points: Sequence[PathPoint]) -> PathPoint | None:
    """The first point whose error is at most that of `least_error` plus its standard error; otherwise the same."""
    best = least_error(points)
    most = math.nan if best is None else round(best.error + best.standard_error, COUNTED_DIGITS)
    return next((point for point in _comparable_points(points) if round(point.error, COUNTED_DIGITS) <= most), None)


def _comparable_points(points: Sequence[PathPoint]) -> list[PathPoint]:
    return [point for point in points if point.errors and point.result.has_classifier]
