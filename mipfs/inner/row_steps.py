"""A Newton step for the prices of the rows, from the solution that a node has at the prices it was given.

    D(λ) = max over α of the node's bound with rows ã'σ ≤ u at multipliers λ ≥ 0 is concave, ∇D = Ãσ − u

On fixed classes (in, fractional, out; `mipfs.kernels.perspective`) the node's optimality conditions are smooth: with
G = Ã diag(sign w/τ) and W = Ã diag(|w|/τ³) Ã' over the fractional features, τ² twice their price, and H the loss's
curvature over the features that are not out, one symmetric system gives the step,

    [H + I_in  G'] [dw]   [   0   ]
    [   G     −W ] [dλ] = [u − Ãσ ]

with the cardinality row among the rows, and the intercept among the weights. A row that no fractional feature meets is
held by what it would take to move its inner ones. Any step is allowed, for any prices bound: it only has to be good.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from mipfs.inner.boolean_node import FREE, INSIDE, Outcome, Relaxation, States
from mipfs.kernels.kinds import HINGE, SQUARED_HINGE

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

WHOLE = 1e-6
"""Distance from 0 or 1 up to which σ_j counts as integral, and of a row from its end up to which it binds."""
HELD, INNER = 0.2, 0.3
"""Shares of a row's curvature, over its fractional features and over its inner ones, that damp its multiplier."""
TURNS = 3
"""Solves at most to find the rows whose multipliers stay positive."""


def step(
    kernel: Relaxation, rows: Any, ends: tuple[Array, Array], y: Array, states: States, outcome: Outcome
) -> tuple[Array, float]:
    """Multipliers (r,) of the rows after a Newton step, and by how much the bound should rise.

    Parameters
    ----------
    kernel : Relaxation at the prices of y
    rows : (r, k) csr_array over the alive features, ends : their lower and upper ends (r,)
    y : (r,) multipliers, positive at the lower end
    states : (k,) of the node
    outcome : its solution at y
    """
    activity = rows @ outcome.sigma
    low, high = ends
    room = WHOLE * (1.0 + np.abs(activity))
    lower, upper = (y > 0) | (activity < low - room), (y < 0) | (activity > high + room)
    active = np.flatnonzero(lower | upper)
    if active.size == 0:
        return y, 0.0
    side = np.where(upper[active], 1.0, -1.0)
    target = np.where(upper[active], high[active], low[active])
    A, short = rows[active].toarray() * side[:, None], side * (target - activity[active])
    equal, multipliers = (low == high)[active], -side * y[active] / kernel.size
    system = _System(kernel, states, outcome, A, short)
    kept = np.ones(active.size, dtype=bool)
    change = -multipliers
    for _ in range(TURNS):
        found = system.solve(kept)
        if found is None:
            return y, 0.0
        change = np.where(kept, found, -multipliers)
        negative = kept & ~equal & (multipliers + change < 0.0)
        if not negative.any():
            break
        kept &= ~negative
    else:
        change = np.where(equal, change, np.maximum(change, -multipliers))
    after = y.copy()
    after[active] = -side * kernel.size * (multipliers + change)
    return after, -0.5 * kernel.size * float(change @ short)


class _System:
    """The symmetric system of a node, in the kernel's units."""

    def __init__(self, kernel: Relaxation, states: States, outcome: Outcome, A: Array, short: Array) -> None:
        sigma, w = outcome.sigma, outcome.warm.w.astype(float) / np.sqrt(kernel.size)
        free = states == FREE
        part = free & (sigma > WHOLE) & (sigma < 1.0 - WHOLE) & (w != 0.0)
        inner = (states == INSIDE) | (free & (sigma >= 1.0 - WHOLE))
        J = np.flatnonzero(part | inner)
        fractional = part[J]
        size = np.abs(w[J])
        tau = np.where(fractional, size / np.where(fractional, sigma[J], 1.0), 1.0)
        if kernel.M is not None and sigma.sum() >= kernel.M - WHOLE:
            A, short = np.vstack([np.ones(sigma.size), A]), np.append(0.0, short)
            self.first = 1
        else:
            self.first = 0
        on = A[:, J]
        bend = np.where(fractional, size / tau**3, 0.0)
        G = on * np.where(fractional, np.sign(w[J]) / tau, 0.0)
        W = (on * bend) @ on.T
        loose = free[J] & ~fractional
        damping = HELD * np.diag(W) + INNER * np.square(on) @ np.where(loose, 1.0 / np.maximum(size, 1e-12) ** 2, 0.0)
        W[np.diag_indices_from(W)] += np.where(damping > 0.0, damping, 1.0)
        H = _curvature(kernel, J, outcome)
        H[np.arange(J.size), np.arange(J.size)] += ~fractional + 1e-9
        self.G, self.W, self.H, self.short = np.zeros((len(A), len(H))), W, H, short
        self.G[:, : J.size] = G

    def solve(self, kept: npt.NDArray[np.bool_]) -> Array | None:
        """Changes of the multipliers of the kept rows (r,), zero for the others; None where there are no numbers."""
        rows = np.concatenate([np.arange(self.first), self.first + np.flatnonzero(kept)])
        size = len(self.H)
        K = np.zeros((size + rows.size, size + rows.size))
        K[:size, :size], K[:size, size:] = self.H, self.G[rows].T
        K[size:, :size], K[size:, size:] = self.G[rows], -self.W[np.ix_(rows, rows)]
        root = 1.0 / np.sqrt(np.maximum(np.abs(np.diag(K)), 1e-300))
        right = np.concatenate([np.zeros(size), self.short[rows]])
        try:
            found = root * np.linalg.solve(root[:, None] * K * root, root * right)
        except np.linalg.LinAlgError:
            return None
        change = np.zeros(kept.size)
        change[kept] = found[size + self.first :]
        return change if np.all(np.isfinite(change)) else None


def _curvature(kernel: Relaxation, J: Integers, outcome: Outcome) -> Array:
    """Z'DZ over the features J and, with a bias, the intercept."""
    problem, c = kernel.problem, kernel._c
    beta = np.ldexp(outcome.whole.astype(float), -outcome.q) / kernel.size
    if kernel.kind == HINGE:
        weights = np.where((beta > 1e-9 * c) & (beta < (1.0 - 1e-9) * c), outcome.warm.rho, 0.0)
    elif kernel.kind == SQUARED_HINGE:
        weights = np.where(beta > 0.0, c, 0.0)
    else:
        weights = beta * (c - beta) / c
    E = np.flatnonzero(weights)
    if len(kernel._Z) > 2:
        data, indices, indptr = kernel._Z[:3]
        whole = sparse.csc_array((data, indices, indptr), shape=(beta.size, kernel.alive.size))
        Z = sparse.csr_array(whole[:, J])[E].toarray()
    else:
        Z = kernel._Z[0][np.ix_(E, J)]
    if problem.bias:
        Z = np.column_stack([Z, problem.data.y[E]])
    Z = Z * np.sqrt(weights[E])[:, None]
    H: Array = Z.T @ Z
    if problem.bias and H[-1, -1] == 0.0:
        H[-1, -1] = 1.0
    return H
