"""A multivariate measure by its definition: Δ of labellings and rankings, and the worst of them at given scores."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.check.rounding import Array, Integers, U, require

TABLES = ("error", "f1", "fbeta", "precision-at-k", "recall-at-k", "prbep")
RANKINGS = ("roc-auc", "average-precision")
LEAST_STRETCH, MOST_STRETCHES = 64, 256
"""Values of b that are bounded together, at least; how many stretches of them there are at most, about."""


class StatedMeasure:
    """A multivariate measure by its definition.

    `counts` of a labelling or ranking ȳ hold what it gets wrong about every sample: whether it is mislabelled, or for
    a measure of a ranking how many samples of the other class are on its wrong side. w'a(ȳ) = (2/D) Σ y_i counts_i f_i.
    """

    def __init__(self, params: Mapping[str, Any], y: Array) -> None:
        self.name = params["measure"]
        self.positive = y > 0
        require(self.name in TABLES + RANKINGS, f"no certificate is known for the measure {self.name!r}")
        self.P, self.N = int(self.positive.sum()), int((~self.positive).sum())
        beta = params.get("beta")
        k = params.get("k")
        at_k = self.name in ("precision-at-k", "recall-at-k")
        fits = ("beta" in params) == (self.name == "fbeta") == (beta is not None) and ("k" not in params or at_k)
        require(fits, f"the measure {self.name!r} has other parameters")
        require(type(k) in (int, type(None)) and type(beta) in (int, float, type(None)), "k or beta is no number")
        require(beta is None or 0 < beta < 1e100, f"beta = {beta!r} is out of its range")
        self.weight = 1.0 if beta is None else float(beta) ** 2
        self.k = self.P if k is None else k
        self.whole = self.k if self.name == "precision-at-k" else self.P
        self.D = float(self.P) * float(self.N) if self.name in RANKINGS else float(y.size)
        both = self.P > 0 and (self.N > 0 or self.name in TABLES)
        defined = self.name == "error" or (both and 1 <= self.k <= y.size)
        require(defined, f"the measure {self.name!r} is not defined on these labels")

    def delta(self, a: Any, b: Any) -> Array:
        """Δ with a positives and b negatives labelled +1, off by 8 ulp of 1 at most; NaN where that is not allowed."""
        if self.name == "error":
            return np.asarray((self.P - a + b) / self.D)
        if self.name in ("f1", "fbeta"):
            return np.asarray(1.0 - (1.0 + self.weight) * a / (a + b + self.weight * self.P))
        return np.where(a + b == self.k, 1.0 - a / self.whole, np.nan)

    def losses(self, counts: npt.NDArray[Any]) -> Array:
        """Δ of m labellings, counts (m, n), rounded down; they are checked to be labellings, or rankings."""
        wrong = counts[:, self.positive]
        lifted = counts[:, ~self.positive]
        if self.name in TABLES:
            require(np.all((counts == 0) | (counts == 1)), "a sample is mislabelled or not; a labelling says otherwise")
            found = self.delta(self.P - wrong.sum(axis=1, dtype=np.int64), lifted.sum(axis=1, dtype=np.int64))
            require(not np.any(np.isnan(found)), f"a labelling does not label {self.k} samples +1")
            return np.asarray(np.maximum(found - 16 * U, 0.0))
        require(
            np.all((counts >= 0) & (counts <= max(self.P, self.N))),
            "what a ranking gets wrong does not fit together with the samples",
        )
        wrong = np.sort(wrong.astype(np.int64), axis=1)
        lifted = np.sort(lifted.astype(np.int64), axis=1)[:, ::-1]
        for row, other in zip(wrong, lifted, strict=True):  # the r-th negative passes those that r negatives pass
            passed = self.P - np.searchsorted(row, np.arange(self.N), side="right")
            fits = row[0] >= 0 and row[-1] <= self.N and np.array_equal(passed, other)
            require(fits, "what a ranking gets wrong about its positives and its negatives does not fit together")
        terms = wrong / self.D if self.name == "roc-auc" else wrong / (np.arange(1, self.P + 1) + wrong) / self.P
        return np.array([max(0.0, math.fsum(row) * (1.0 - 8 * U)) for row in terms.tolist()])

    def worst(self, f: Array, off: float = 0.0) -> tuple[float, float]:
        """The largest Δ(ȳ) − w'a(ȳ) at scores f (n,), at least 0, and how far it is off when each f_i is by `off`.

        ȳ = y yields 0, exactly. So the maximum is 0 without any error where no other one comes near it.
        """
        top = np.sort(f[self.positive])
        others = np.sort(f[~self.positive])[::-1]
        off += (f.size + 16) * U * float(np.abs(f).max())  # of the sums below
        if self.name == "roc-auc":
            return self._worst_pairs(top, others, off)
        if self.name == "average-precision":
            return self._worst_places(top, others, off)
        found = self._worst_labelling(top, others)
        most = self._worst_labelling(top - 2.0 * off, others + 2.0 * off, 16 * U)
        return max(0.0, found), max(0.0, most) - max(0.0, found)

    def _worst_labelling(self, top: Array, others: Array, more: float = 0.0) -> float:
        """Over all labellings but that of the samples themselves; with more for Δ, which is off by 8 ulp or is 0."""
        missed, lifted = (np.concatenate([[0.0], np.cumsum(part)]) * (2.0 / self.D) for part in (top, others))
        if self.name in ("error", "f1", "fbeta"):
            return self._worst_table(missed, lifted) + more
        a = np.arange(max(0, self.k - self.N), min(self.P, self.k) + 1)
        deltas = self._losses_of_others(a, self.k - a)
        return float((deltas + np.where(deltas == 0.0, 0.0, more) + lifted[self.k - a] - missed[self.P - a]).max())

    def _worst_pairs(self, top: Array, others: Array, off: float) -> tuple[float, float]:
        """Every pair decides for itself: it is swapped where f_i < f_j + ½."""
        swapped, near = (np.searchsorted(-others, end - top, side="left") for end in (0.5, 0.5 + 2.0 * off))
        sums = np.concatenate([[0.0], np.cumsum(others)])[swapped]
        found = math.fsum(swapped * (1.0 - 2.0 * top) + 2.0 * sums) / self.D
        return max(0.0, found), 8.0 * off * float(near.sum()) / self.D + 8 * U * abs(found)

    def _worst_places(self, top: Array, others: Array, off: float) -> tuple[float, float]:
        """Every negative goes where it adds most."""
        i = np.arange(self.P, 0, -1)
        gains = []
        errors = []
        for j, one in enumerate(others, 1):
            lost = i / ((i + j) * (i + j - 1.0) * self.P)
            gain = lost - 2.0 * (top - one) / self.D
            doubt = 8.0 * off / self.D + (8 * self.P + 16) * U * lost
            sums = np.cumsum(gain)
            doubts = np.cumsum(doubt)
            gains.append(max(0.0, float(sums.max())))
            errors.append(float(doubts[-1]) if np.any(sums + doubts > 0.0) else 0.0)
        return math.fsum(gains), 1.01 * math.fsum(errors)

    def _losses_of_others(self, a: Any, b: Any) -> Array:
        """Δ of all labellings but that of the samples themselves."""
        a, b = np.broadcast_arrays(a, b)
        return np.where((a == self.P) & (b == 0), -math.inf, self.delta(a, b))

    def _worst_table(self, missed: Array, lifted: Array) -> float:
        """The maximum over all (a, b). Δ rises with b, so its end and the largest sum bound a stretch of b at once."""
        best = [-math.inf]
        for base, a, b in self._candidate_stretches(missed, lifted, best):
            best[0] = max(best[0], float((self._losses_of_others(a, b) + lifted[b]).max()) - base)
        return best[0]

    def _candidate_stretches(
        self, missed: Array, lifted: Array, least: Sequence[float]
    ) -> Iterator[tuple[float, int, Integers]]:
        """Of every a, the best first, the stretches of b that may exceed least[0], which may rise meanwhile."""
        starts = np.arange(0, self.N + 1, max(LEAST_STRETCH, (self.N + 1) // MOST_STRETCHES))
        ends = np.append(starts[1:], self.N + 1)
        tops = np.maximum.reduceat(lifted, starts)
        hopes = np.array(
            [float((self.delta(a, ends - 1) + tops).max()) - missed[self.P - a] for a in range(self.P + 1)]
        )
        for a in np.argsort(-hopes, kind="stable").tolist():
            if hopes[a] <= least[0]:
                break
            base = missed[self.P - a]
            for c in np.flatnonzero(self.delta(a, ends - 1) + tops - base > least[0]):
                yield float(base), a, np.arange(starts[c], ends[c])

    def near(self, missed: Array, lifted: Array, off: float) -> Iterator[tuple[int, int]]:
        """The (a, b), but those of the samples themselves, whose values are the maximum if all are off by `off`."""
        if self.name in ("error", "f1", "fbeta"):
            level = max(0.0, self._worst_table(missed, lifted)) - 2.0 * off
            for base, a, stretch in self._candidate_stretches(missed, lifted, [level - off]):
                values = self._losses_of_others(a, stretch) + lifted[stretch] - base
                yield from ((a, b) for b in stretch[values >= level].tolist())
            return
        firsts = np.arange(max(0, self.k - self.N), min(self.P, self.k) + 1)
        values = self._losses_of_others(firsts, self.k - firsts) + lifted[self.k - firsts] - missed[self.P - firsts]
        level = max(0.0, float(values.max())) - 2.0 * off
        yield from ((a, self.k - a) for a in firsts[values >= level].tolist())
