"""What every measure has, and the contingency table that several share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.errors import DataError, UsageError
from mipfs.plumbing.arrays import Array


@dataclass(frozen=True, eq=False)
class Violated:
    """A labelling or ranking ȳ.

    Attributes
    ----------
    counts : (n,) integers >= 0, what ȳ gets wrong about every sample
    loss : float, Δ(ȳ) in [0, 1]
    value : float, Δ(ȳ) − w'a(ȳ) at the scores that it was found for
    """

    counts: npt.NDArray[Any]
    loss: float
    value: float


class Measure(ABC):
    """A measure on the labels of one data set.

    Parameters
    ----------
    name : str
    y : (n,) labels, -1.0 or +1.0

    Attributes
    ----------
    divisor : float, D of v_i = (2/D) y_i k_i
    count_type : NumPy integer type that holds every k_i
    largest : int, the largest k_i that there can be
    """

    needs_negatives = False

    def __init__(self, name: str, y: Array) -> None:
        if y.ndim != 1 or y.size == 0 or np.any(np.abs(y) != 1.0):
            raise DataError("labels of a measure must be a vector of -1 and +1", "map the labels to -1 and +1")
        self.name, self.y, self.n = name, y, y.size
        self.positive = np.flatnonzero(y > 0)
        self.negative = np.flatnonzero(y < 0)
        self.P, self.N = self.positive.size, self.negative.size
        missing = "positive" if self.P == 0 and name != "error" else ""
        missing = "negative" if self.N == 0 and self.needs_negatives else missing
        if missing:
            raise DataError(f"measure {name!r} is not defined without a {missing} sample", "give both classes")
        self.divisor = float(self.n)
        self.largest = 1
        self.count_type: np.dtype[Any] = np.dtype(np.uint8)

    @abstractmethod
    def value(self, scores: Array) -> float:
        """The value as scikit-learn has it, where it has it (for ``error`` it is the share of wrong labels).

        Parameters
        ----------
        scores : (n,) f(x_i), or labels -1 and +1
            Samples above 0 are labelled positive; measures at k take the k largest, of equal ones the first.
        """

    @abstractmethod
    def violated(self, scores: Array) -> Violated:
        """The admissible ȳ of largest Δ(ȳ) − w'a(ȳ) at w'x_i = scores_i, shape (n,); ties are always broken alike."""

    def excess(self, scores: Sequence[Fraction]) -> Fraction | None:
        """The value at `violated`, or 0 where that is more, in rational arithmetic; None where nothing computes it."""
        return None

    def direction(self, counts: npt.ArrayLike) -> Array:
        """v with v_i = (2/D) y_i k_i of counts k (n,), or of sums of them."""
        return np.asarray(self.y * (np.asarray(counts, dtype=float) * (2.0 / self.divisor)))

    def made(self, counts: npt.NDArray[Any], loss: float, scores: Array) -> Violated:
        """A `Violated` with its value."""
        return Violated(counts, loss, loss - float(self.direction(counts) @ scores))


class Table(Measure):
    """A measure of the contingency table, with the scores of both classes sorted as values.

    With a positives and b negatives labelled +1, always those with the largest scores, −w'a(ȳ) is up[a] + down[b].
    """

    def sorted(self, scores: Array) -> tuple[Array, Array, Array, Array]:
        """Scores of positives and negatives, largest first, and the sums up (P + 1,) and down (N + 1,)."""
        top = np.sort(scores[self.positive])[::-1]
        others = np.sort(scores[self.negative])[::-1]
        up, down = np.zeros(self.P + 1), np.zeros(self.N + 1)
        np.cumsum(top[::-1], out=up[1:])
        np.cumsum(others, out=down[1:])
        return top, others, (-2.0 / self.n) * up[::-1], (2.0 / self.n) * down

    def sums(self, scores: Sequence[Fraction]) -> tuple[list[Fraction], list[Fraction]]:
        """up (P + 1,) and down (N + 1,) in rational arithmetic."""
        share = Fraction(2, self.n)
        zero = Fraction(0)
        top, others = ([scores[int(i)] for i in part] for part in (self.positive, self.negative))
        up, down = accumulate(sorted(top), initial=zero), accumulate(sorted(others, reverse=True), initial=zero)
        return [-share * one for one in up][::-1], [share * one for one in down]

    def labelled(self, top: Array, others: Array, a: int, b: int, loss: float, scores: Array) -> Violated:
        """The labelling with a of the positives and b of the negatives on top."""
        counts = np.zeros(self.n, dtype=self.count_type)
        counts[self.positive] = ~_mark_largest(scores[self.positive], top, a)
        counts[self.negative] = _mark_largest(scores[self.negative], others, b)
        return self.made(counts, loss, scores)


def _mark_largest(values: Array, ordered: Array, count: int) -> npt.NDArray[np.bool_]:
    """Which are the `count` largest, of equal ones the first; sorting values is faster than sorting positions."""
    if count == 0:
        return np.zeros(values.size, dtype=bool)
    last = ordered[count - 1]
    chosen = np.asarray(values > last)
    chosen[np.flatnonzero(values == last)[: count - int(np.count_nonzero(chosen))]] = True
    return chosen


class Ranking(Measure):
    """A measure of a ranking: k_i counts the samples of the other class on the wrong side of sample i."""

    needs_negatives = True

    def __init__(self, name: str, y: Array) -> None:
        super().__init__(name, y)
        self.divisor = float(self.P) * float(self.N)
        self.count_type = np.dtype(np.int32)
        self.largest = max(self.P, self.N)
        if self.largest > np.iinfo(np.int32).max:
            raise UsageError(f"measure {name!r} takes at most {np.iinfo(np.int32).max} samples of a class")
