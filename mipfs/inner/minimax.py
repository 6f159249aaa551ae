"""The saddle of Mao 2013, (16), over labellings and selections, by Clarabel.

max over α in {α ≥ 0, Σα ≤ C}, θ   Δᵀα − θ   s.t.   ½ ‖A_t α‖² − cᵀσᵗ ≤ θ   for every selection t
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from mipfs.plumbing.arrays import Array
from mipfs.solvers.cones import conic_solution


def solve(blocks: Sequence[Array], losses: Array, costs: Array, C: float) -> tuple[Array, Array] | None:
    """Solve (16) by Clarabel.

    Parameters
    ----------
    blocks : A_t of every selection, each of shape (m_t, K)
    losses : (K,) Δ of every labelling
    costs : (T,) cᵀσᵗ
    C : float > 0

    Returns
    -------
    alpha : (K,) >= 0, Σα ≤ C up to the solver's tolerance
    mu : (T,) in the simplex
        None instead of both where the numbers are too hard for Clarabel.
    """
    # In units of C: α = Cβ, θ = Cτ, x = (β, τ). With r = τ + cᵀσᵗ/C:  ½ C ‖A_t β‖² ≤ r  ⇔  ‖(√C A_t β, r − ½)‖ ≤ r + ½
    K = losses.size
    T = len(blocks)
    parts = [np.zeros((K + 1, K + 1))]
    parts[0][:K, :K], parts[0][K, :K] = -np.eye(K), 1.0
    right = [np.append(np.zeros(K), 1.0)]
    sizes = []
    for A_t, cost in zip(blocks, costs / C, strict=True):
        # ‖A_t β‖ = ‖R β‖.
        R = A_t if A_t.shape[0] <= K else np.asarray(np.linalg.qr(A_t, mode="r"))
        cone = np.zeros((R.shape[0] + 2, K + 1))
        cone[:2, K], cone[2:, :K] = -1.0, -np.sqrt(C) * R
        parts.append(cone)
        right.append(np.concatenate([[cost + 0.5, cost - 0.5], np.zeros(R.shape[0])]))
        sizes.append(R.shape[0] + 2)
    A, b = sparse.csc_matrix(np.vstack(parts)), np.concatenate(right)
    P, q = sparse.csc_matrix((K + 1, K + 1)), np.append(-losses, 1.0)
    found = conic_solution(P, q, A, b, {"zero": 0, "nonneg": K + 1, "soc": sizes, "psd": [], "exp": 0})
    if found is None:
        return None
    x, z = found
    heads = K + 1 + np.concatenate([[0], np.cumsum(sizes[:-1])]).astype(int)
    mu = np.maximum(z[heads] + z[heads + 1], 0.0)
    if not mu.sum() > 0.5:
        return None
    return C * np.maximum(x[:K], 0.0), (mu / mu.sum())[:T]
