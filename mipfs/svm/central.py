"""The master of the structural SVM by an interior point in its primal, for columns of very different sizes.

    min over u, t   ½‖u‖² + t   s.t.   t ≥ d_k − b_k'u,   t ≥ 0          (dual: max d'β − ½‖Bβ‖² over β ≥ 0, Σβ ≤ 1)

The active set of `mipfs.kernels.simplex_qp` works on B'B. Where B is large, the entries of β at the optimum are about
as large as one another and cancel in Bβ: in B'B nothing is left of the difference, and u = Bβ is round-off. Here u is a
variable of its own, in units in which the rows of B have entries up to 1, and a Newton step is one Cholesky
factorisation of the order of u.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from mipfs.plumbing.arrays import Array, scatter

MOST_STEPS = 100
"""Newton steps at most: twenty are usual."""
BOUNDARY_SHARE = 0.995
"""Share of the way to the boundary that a step may go."""
LEAST_STEP = 1e-10
"""A step as short as this is round-off."""
LEAST_RIDGE = 1e-16
"""Relative ridge that makes the matrix of a step positive definite in floating point; tenfold until it is."""
MOST_TRIES = 4
"""Factorisations of one matrix at most."""


def solve(B: Array, d: Array, gap: float) -> tuple[Array, Array]:
    """Solve to a relative gap, or as far as round-off lets it.

    Parameters
    ----------
    B : (m, K), a column for every labelling
    d : (K,)
    gap : float > 0

    Returns
    -------
    beta : (K + 1,) > 0 with sum 1, the first of the slack of Σβ ≤ 1
    u : (m,)
    """
    basis, R = (None, B) if B.shape[0] <= B.shape[1] else np.linalg.qr(B)  # ‖Bβ‖ = ‖Rβ‖
    size = np.abs(R).max(axis=1, initial=0.0)
    used = np.flatnonzero(size > 0.0)
    beta, x = _Iterate(R[used] / size[used, None], d, size[used]).run(gap)
    u = scatter(R.shape[0], used, x / size[used])
    return beta, u if basis is None else np.asarray(basis @ u)


class _Iterate:
    """The iterate of one solve: u in units of 1/size, t, the slacks s and β.

    Parameters
    ----------
    A : (m, K) with entries in [−1, 1]
    d : (K,)
    size : (m,) > 0, by what the rows were divided
    """

    def __init__(self, A: Array, d: Array, size: Array) -> None:
        self.A = np.column_stack([np.zeros(A.shape[0]), A])
        self.d = np.append(0.0, d)
        self.size = size
        self.h = 1.0 / np.square(size)
        self.u, self.t = np.zeros(size.size), 1.0 + float(self.d.max())
        self.s, self.beta = self.t - self.d, np.full(self.d.size, 1.0 / self.d.size)

    def run(self, gap: float) -> tuple[Array, Array]:
        """β and u of the least gap on the way."""
        best = np.inf, self.beta, self.u
        for _ in range(MOST_STEPS):
            share = self.beta / self.beta.sum()
            primal = 0.5 * float(self.h @ np.square(self.u)) + max(0.0, float((self.d - self.A.T @ self.u).max()))
            left = primal - float(self.d @ share) + 0.5 * float(np.square(self.size * (self.A @ share)).sum())
            best = (left, share, self.u) if left < best[0] else best
            if left <= gap * abs(primal) or not self._take_step():
                break
        return best[1], best[2]

    def _take_step(self) -> bool:
        """One step of Mehrotra's predictor and corrector; False where round-off leaves none."""
        A, s, beta = self.A, self.s, self.beta
        # Slacks and β leave by D = β/s; what is left is one system in u and t.
        D, mu = beta / s, float(s @ beta) / s.size
        AD = A * D
        matrix = np.block([[np.diag(self.h) + AD @ A.T, AD.sum(axis=1)[:, None]], [AD.sum(axis=1)[None], D.sum()]])
        factor = regularised_cholesky(matrix, LEAST_RIDGE * np.diag(matrix), MOST_TRIES)
        if factor is None:
            return False
        off_u, off_t = A @ beta - self.h * self.u, 1.0 - float(beta.sum())
        off_s = self.t + A.T @ self.u - self.d - s

        def towards(products: Array) -> tuple[Array, float, Array, Array]:
            q = products / s - beta - D * off_s
            step = cho_solve(factor, np.append(off_u + A @ q, float(q.sum()) - off_t))
            s_step = step[-1] + A.T @ step[:-1] + off_s
            return step[:-1], float(step[-1]), s_step, (products - beta * s_step) / s - beta

        _, _, s_step, beta_step = towards(np.zeros(s.size))
        first = min(longest_step(s, s_step), longest_step(beta, beta_step))
        after = float((s + first * s_step) @ (beta + first * beta_step)) / s.size
        # Corrector: Mehrotra's centring (after/μ)³, and his second-order term.
        u_step, t_step, s_step, beta_step = towards(mu * (after / mu) ** 3 - s_step * beta_step)
        step = min(1.0, BOUNDARY_SHARE * min(longest_step(s, s_step), longest_step(beta, beta_step)))
        if not step > LEAST_STEP:
            return False
        self.u, self.t = self.u + step * u_step, self.t + step * t_step
        self.s = s + step * s_step
        self.beta = beta + step * beta_step
        return bool(np.all(np.isfinite(self.u)) and min(self.s.min(), self.beta.min()) > 0.0)


def longest_step(value: Array, change: Array, share: float = 1.0) -> float:
    """A share of the longest step that leaves the values non-negative; 1 at most."""
    falling = change < 0.0
    return min(1.0, share * float(np.min(-value[falling] / change[falling], initial=np.inf)))


def regularised_cholesky(matrix: Array, ridge: Array | float, tries: int) -> tuple[Array, bool] | None:
    """Cholesky's factor of a matrix that is positive definite but for round-off; None where none is found.

    `ridge` is added to the diagonal, in place, after a try that fails, and ten times as much after the next one.
    """
    diagonal = matrix.ravel()[:: matrix.shape[0] + 1]
    for _ in range(tries):
        try:
            found: tuple[Array, bool] = cho_factor(matrix)
            return found
        except (LinAlgError, ValueError):  # ValueError: not all entries are finite
            diagonal += ridge
            ridge = 10.0 * ridge
    return None
