"""Paul 2016 written down as it stands, with dense linear algebra; nothing of it is shared with `mipfs.lab.sketch`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog

Array = npt.NDArray[np.float64]


def potentials(V: Array, A: Array, low: float, high: float, rise: float) -> tuple[Array, Array]:
    """ℒ and 𝒰 of every row of V (p, κ) at A (κ, κ), as section 8 of the mathematics has them; δ_L = 1."""
    eye, values = np.eye(A.shape[0]), np.linalg.eigvalsh(A)
    below, above = np.linalg.inv(A - (low + 1.0) * eye), np.linalg.inv((high + rise) * eye - A)
    gain = np.sum(1.0 / (values - low - 1.0)) - np.sum(1.0 / (values - low))
    loss = np.sum(1.0 / (high - values)) - np.sum(1.0 / (high + rise - values))
    pulled, pushed = V @ below, V @ above
    lower = np.sum(pulled**2, axis=1) / gain - np.sum(pulled * V, axis=1)
    upper = np.sum(pushed**2, axis=1) / loss + np.sum(pushed * V, axis=1)
    return lower, upper


def bss(V: Array, first: npt.ArrayLike, r: int, steps: int | None = None) -> tuple[list[int], Array]:
    """The picks of single-set sparsification and the weights (p,) of DD', all potentials at every step.

    `first` lists the rows in the order in which candidates are taken.
    With `steps` it stops after so many, and the weights are those so far.
    """
    p, rank = V.shape
    place = np.argsort(np.asarray(first))
    q = np.sqrt(rank / r)
    rise, A, weights, order = (1.0 + q) / (1.0 - q), np.zeros((rank, rank)), np.zeros(p), []
    for tau in range(r if steps is None else steps):
        low, high = tau - np.sqrt(r * rank), rise * (tau + np.sqrt(r * rank))
        lower, upper = potentials(V, A, low, high, rise)
        candidates = np.flatnonzero((upper <= lower) & np.any(V != 0.0, axis=1))
        if candidates.size == 0:
            candidates = np.array([int(np.argmax(lower - upper))])
        fresh = candidates[weights[candidates] == 0.0]
        among = fresh if fresh.size else candidates
        j = int(among[np.argmin(place[among])])
        t = 2.0 / (lower[j] + upper[j])
        A += t * np.outer(V[j], V[j])
        weights[j] += t
        order.append(j)
    return order, weights * (1.0 - q) / r


def right_vectors(X: Array) -> Array:
    """V above the rank threshold, by NumPy's SVD."""
    _, s, Vt = np.linalg.svd(X, full_matrices=False)
    return Vt[s > max(X.shape) * np.finfo(float).eps * s[0]].T


def epsilon(X: Array, ids: npt.ArrayLike, weight: npt.ArrayLike) -> float:
    """‖I − V'DD'V‖₂."""
    V, weights = right_vectors(X), np.zeros(X.shape[1])
    weights[np.asarray(ids)] = weight
    return float(np.linalg.norm(np.eye(V.shape[1]) - (V.T * weights) @ V, 2))


def separable(X: Array, y: Array) -> bool:
    """Whether a hyperplane with an intercept separates the classes: one linear program."""
    rows = -y[:, None] * np.column_stack([X, np.ones(y.size)])
    found = linprog(np.zeros(X.shape[1] + 1), A_ub=rows, b_ub=-np.ones(y.size), bounds=(None, None), method="highs")
    return bool(found.status == 0)
