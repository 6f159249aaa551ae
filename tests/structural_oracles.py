"""References for the structural loss that share no code with it: all labellings written out, and Clarabel on them.

Labellings are rows (Δ, v): Δ from the definition of the measure by precision, recall and pairs, v_i = (y_i − ȳ_i)/n,
or (1/(PN)) Σ over swapped pairs of 2(e_i − e_j) for measures of a ranking.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from sklearn.metrics import average_precision_score

Array = npt.NDArray[np.float64]

MEASURES = ("error", "f1", "fbeta", "precision-at-k", "recall-at-k", "prbep", "roc-auc", "average-precision")
PARAMETERS: dict[str, tuple[dict[str, float], ...]] = {
    "fbeta": ({"beta": 0.25}, {"beta": 0.7}, {"beta": 2.0}, {"beta": 3.5}),
    "precision-at-k": ({}, {"k": 1}, {"k": 3}, {"k": 5}),
    "recall-at-k": ({}, {"k": 1}, {"k": 4}, {"k": 5}),
}


def cases() -> list[tuple[str, dict[str, float]]]:
    """Every measure with every set of parameters."""
    return [(name, given) for name in MEASURES for given in PARAMETERS.get(name, ({},))]


def loss(name: str, y: Array, labels: Array, beta: float = 1.0) -> float:
    """Δ of a labelling, from the counts of its hits and errors."""
    hits = float(np.sum((labels > 0) & (y > 0)))
    named, true = float(np.sum(labels > 0)), float(np.sum(y > 0))
    if name == "error":
        return float(np.mean(labels != y))
    if name in ("f1", "fbeta"):
        precision, recall = hits / named if named else 0.0, hits / true
        if hits == 0:
            return 1.0
        return 1.0 - (1 + beta**2) * precision * recall / (beta**2 * precision + recall)
    return 1.0 - hits / (named if name == "precision-at-k" else true)


def labellings(name: str, y: Array, beta: float = 1.0, k: int | None = None) -> tuple[Array, Array]:
    """All admissible ȳ: Δ of shape (K,) and v of shape (K, n)."""
    if name in ("roc-auc", "average-precision"):
        return _rankings(name, y)
    wanted = int(np.sum(y > 0)) if k is None else k
    found = []
    for signs in itertools.product((1.0, -1.0), repeat=y.size):
        labels = np.array(signs)
        if name in ("precision-at-k", "recall-at-k", "prbep") and np.sum(labels > 0) != wanted:
            continue
        found.append((loss(name, y, labels, beta), (y - labels) / y.size))
    return np.array([d for d, _ in found]), np.array([v for _, v in found])


def _rankings(name: str, y: Array) -> tuple[Array, Array]:
    pairs = list(itertools.product(np.flatnonzero(y > 0), np.flatnonzero(y < 0)))
    found: dict[bytes, tuple[float, Array]] = {}
    if name == "roc-auc":
        for swapped in itertools.product((0, 1), repeat=len(pairs)):
            v = _of_pairs([pair for pair, z in zip(pairs, swapped, strict=True) if z], len(pairs), y.size)
            found[np.round(v, 9).tobytes()] = (sum(swapped) / len(pairs), v)
    else:
        for order in itertools.permutations(range(y.size)):
            rank = np.argsort(order)
            v = _of_pairs([(i, j) for i, j in pairs if rank[i] > rank[j]], len(pairs), y.size)
            found[np.round(v, 9).tobytes()] = (1.0 - average_precision_score(y > 0, -rank.astype(float)), v)
    return np.array([d for d, _ in found.values()]), np.array([v for _, v in found.values()])


def _of_pairs(swapped: Sequence[tuple[int, int]], count: int, n: int) -> Array:
    v = np.zeros(n)
    for i, j in swapped:
        v[i] += 2.0 / count
        v[j] -= 2.0 / count
    return v


def structural_svm(Z: Array, losses: Array, V: Array, C: float) -> tuple[float, Array]:
    """min ½‖w‖² + C ξ, ξ ≥ Δ_k − w'Z'v_k, ξ ≥ 0 over all labellings, by Clarabel through CVXPY: its value and w."""
    import cvxpy as cp

    if Z.shape[1] == 0:
        return C * max(0.0, float(losses.max())), np.empty(0)
    w, xi = cp.Variable(Z.shape[1]), cp.Variable(nonneg=True)
    program = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(w) + C * xi), [xi >= losses - (V @ Z) @ w])
    program.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    assert program.status == "optimal"
    found = np.asarray(w.value)
    return 0.5 * float(found @ found) + C * max(0.0, float(np.max(losses - (V @ Z) @ found))), found


def relaxation(X: Array, losses: Array, V: Array, C: float, sigmas: Array, costs: Array | None = None) -> float:
    """The dual (6): max Σ α Δ − max over all selections of ½ Σ σ_j ω_j(α)² − c'σ, everything enumerated, in CVXPY.

    Where Clarabel does not call it optimal, the primal is solved too, and the value is what both have shown: that of a
    feasible α, summed here, and that of a feasible mixture and its weights, which agree to 1e-7.
    """
    import cvxpy as cp

    alpha, theta = cp.Variable(losses.size, nonneg=True), cp.Variable()
    omega = (V @ X).T @ alpha
    paid = np.zeros(len(sigmas)) if costs is None else sigmas @ costs
    rows = [0.5 * cp.sum_squares(omega[np.flatnonzero(s)]) - c <= theta for s, c in zip(sigmas, paid, strict=True)]
    program = cp.Problem(cp.Maximize(losses @ alpha - theta), [*rows, cp.sum(alpha) <= C])
    program.solve(solver="CLARABEL", tol_gap_abs=1e-8, tol_gap_rel=1e-8, tol_feas=1e-8)
    if program.status == "optimal":
        return float(program.value)
    found = np.maximum(np.asarray(alpha.value), 0.0)
    found *= min(1.0, C / found.sum())
    lower = float(losses @ found - np.max(0.5 * sigmas @ np.square((V @ X).T @ found) - paid))
    upper = _mixed(X, losses, V, C, sigmas, paid)
    assert lower - 1e-9 * abs(upper) <= upper <= lower + 1e-7 * abs(upper), (lower, upper)
    return upper


def _mixed(X: Array, losses: Array, V: Array, C: float, sigmas: Array, paid: Array) -> float:
    """The primal over mixtures, min ½ Σ_t ‖w_t‖²/μ_t + Σ_t μ_t c_t + C ξ: its value at the point found, summed here."""
    import cvxpy as cp

    mu, xi = cp.Variable(len(sigmas), nonneg=True), cp.Variable(nonneg=True)
    parts = [(t, np.flatnonzero(s), cp.Variable(int(s.sum()))) for t, s in enumerate(sigmas) if s.any()]
    scores = sum((V @ X[:, ids] @ w for _, ids, w in parts), np.zeros(len(V)))
    size = 0.5 * sum((cp.quad_over_lin(w, mu[t]) for t, _, w in parts), 0.0)
    program = cp.Problem(cp.Minimize(size + paid @ mu + C * xi), [xi >= losses - scores, cp.sum(mu) == 1])
    program.solve(solver="CLARABEL", tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
    w = np.zeros(X.shape[1])
    for _, ids, part in parts:
        w[ids] += np.asarray(part.value)
    shares = np.maximum(np.asarray(mu.value), 0.0)
    shares /= shares.sum()
    sigma = shares @ sigmas
    held = np.flatnonzero(np.abs(w) > 1e-9)
    w = np.where(np.abs(w) > 1e-9, w, 0.0)
    value = 0.5 * float(np.sum(w[held] ** 2 / sigma[held])) + float(shares @ paid)
    return value + C * max(0.0, float(np.max(losses - V @ X @ w)))


def selections(p: int, M: int) -> Array:
    """All σ with exactly M ones (fewer are never better without penalties), shape (count, p)."""
    return np.array([[float(j in chosen) for j in range(p)] for chosen in itertools.combinations(range(p), M)])
