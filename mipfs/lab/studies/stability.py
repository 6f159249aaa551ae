"""How alike the sets are that a method chooses on different folds: Nogueira's index (Nogueira, Sechidis, Brown 2018).

With m sets among p features, p̂_j the share of sets that hold j, k_i the size of set i and k̄ their mean,

    Φ  =  1 − [ (1/p) Σ_j m/(m−1) p̂_j (1 − p̂_j) ] / [ (k̄/p)(1 − k̄/p) ]                                  (Definition 4)

It is 1 where all sets are the same, and 0 on average where sets of one size are drawn at random. Its variance is
(4/m²) Σ (φ_i − φ̄)² with

    φ_i  =  [ (1/p) Σ_{j in i} p̂_j − k_i k̄/p² + ½ Φ (2 k_i k̄/p² − k_i/p − k̄/p + 1) ] / [ (k̄/p)(1 − k̄/p) ]  (Theorem 7)

The interval is that of sets drawn independently. Folds share most of their samples, so that the sets of a
cross-validation are alike for that reason too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from mipfs.errors import UsageError
from mipfs.plumbing.arrays import Array, Integers

LEVEL = 0.95


@dataclass(frozen=True)
class Stability:
    """The index with its interval.

    Attributes
    ----------
    index : float in [-1/(m − 1), 1]
    lower, upper : float, the ends of the interval
    level : float in (0, 1), of the interval
    """

    index: float
    lower: float
    upper: float
    level: float = LEVEL


def selection_shares(sets: Sequence[npt.ArrayLike]) -> tuple[Integers, Array]:
    """The features that some set holds, and the share of the sets that hold each.

    Parameters
    ----------
    sets : sequence of m >= 1 lists of different positions

    Returns
    -------
    ids : (q,) positions, those in most sets first, of equal ones the first
    share : (q,) in (0, 1]
    """
    ids, counts = np.unique(np.concatenate([_as_ids(one) for one in sets]), return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return ids[order], counts[order] / len(sets)


def _as_ids(one: npt.ArrayLike) -> Integers:
    return np.asarray(one, dtype=np.int64).ravel()


def stability(sets: Sequence[npt.ArrayLike], p: int, level: float = LEVEL) -> Stability | None:
    """Nogueira's index of sets of features.

    Parameters
    ----------
    sets : sequence of lists of different positions in 0 … p − 1
    p : int >= 1
    level : float in (0, 1)

    Returns
    -------
    Stability, or None where it is not defined: fewer than two sets, or all sets empty or of all features.

    Raises
    ------
    UsageError
        A position out of range or twice in a set, or a level that is none.

    Source: Nogueira, Sechidis, Brown 2018, Definition 4 and Theorem 7.
    """
    if not 0.0 < level < 1.0:
        raise UsageError(f"level = {level!r} must lie between 0 and 1")
    chosen = [_as_ids(one) for one in sets]
    for one in chosen:
        if np.unique(one).size < one.size or np.any((one < 0) | (one >= p)):
            raise UsageError(f"a set of features must hold different positions from 0 to {p - 1}")
    m = len(chosen)
    sizes = np.array([one.size for one in chosen], dtype=float)
    if m < 2 or sizes.sum() in (0.0, float(m) * p):
        return None
    held, share = selection_shares(chosen)
    of = dict(zip(held.tolist(), share.tolist(), strict=True))
    mean = float(sizes.mean()) / p
    spread = mean * (1.0 - mean)
    index = 1.0 - m / (m - 1) * float((share * (1.0 - share)).sum()) / p / spread
    overlap = np.array([sum(of[j] for j in one.tolist()) for one in chosen]) / p
    parts = sizes / p
    phi = (overlap - parts * mean + 0.5 * index * (2.0 * parts * mean - parts - mean + 1.0)) / spread
    deviation = 2.0 / m * math.sqrt(float(np.square(phi - phi.mean()).sum()))
    reach = NormalDist().inv_cdf(0.5 + 0.5 * level) * deviation
    return Stability(index, index - reach, index + reach, level)
