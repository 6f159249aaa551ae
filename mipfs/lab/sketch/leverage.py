"""Leverage-score sampling (Paul 2016, section 3; Dasgupta et al. 2007): r draws with probability ‖v_j‖²/κ.

What r draws leave of ‖I − V'DD'V‖₂ follows from the matrix Bernstein inequality (Tropp 2015, Theorem 6.1.1): a draw is
I + a matrix of mean 0, norm at most κ − 1 and variance κ − 1, so with probability 1 − η

    ε² / 2 ≤ ln(2κ/η) · (κ − 1)/r · (1 + ε/3)

(the paper's Lemma 3 has the same order, r ~ κ ln κ / ε², with a constant that it does not give).
"""

from __future__ import annotations

import math

import numpy as np

from mipfs.lab.sketch.picks import Picks, Progress, Promise, gathered
from mipfs.lab.sketch.source import Source
from mipfs.plumbing.arrays import Array

FAILURE = 0.01
"""η of Paul 2016, Lemma 3."""


def probabilities(V: Array) -> Array:
    """‖v_j‖²/κ of every row, shape (p,), summing to 1."""
    scores: Array = np.einsum("ij,ij->i", V, V)
    chances: Array = scores / scores.sum()
    return chances


def error_bound(rank: int, r: int) -> float:
    """ε that r draws exceed with probability 1% at most."""
    level = math.log(2.0 * rank / FAILURE) * (rank - 1) / r
    return level / 3.0 + math.sqrt(level * level / 9.0 + 2.0 * level)


def picks_for(rank: int, epsilon: float) -> int:
    """The fewest draws of which `error_bound` promises ε with probability 99%."""
    level = epsilon * epsilon / (2.0 * (1.0 + epsilon / 3.0))
    r = max(1, math.ceil(math.log(2.0 * rank / FAILURE) * (rank - 1) / level))
    return r + 1 if error_bound(rank, r) > epsilon else r


def pick(source: Source, r: int, *, seed: int, projections: int | None, progress: Progress | None) -> Picks:
    """r independent draws; a column that is drawn c times has weight c/(r·probability)."""
    basis = source.basis
    chances = probabilities(basis.V)
    order = np.random.default_rng(seed).choice(chances.size, size=r, p=chances)
    epsilon = error_bound(basis.rank, r)
    promise = Promise(
        max(0.0, 1.0 - epsilon), 1.0 + epsilon, 1.0 - FAILURE, "matrix Bernstein (Tropp 2015, Theorem 6.1.1)", math.inf
    )
    return gathered(order.astype(np.int64), 1.0 / (r * chances[order]), promise, rank=basis.rank)
