"""The SVM of a loss that the kernels do not know: a damped Newton method on its derivatives, in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve

from mipfs.plumbing.arrays import Array
from mipfs.svm import solver

MAX_STEPS, MOST_HALVINGS = 200, 40
"""Newton steps, and halvings of one of them, before an attempt is given up."""
DIAGONAL_LIFT = 1e-12
"""Relative lift of the Hessian's diagonal: an intercept alone may have no curvature."""
DECREASE_SHARE = 1e-4
"""Share of the decrease that the slope promises which a step must bring."""


class PlainSolver(solver.SvmSolver):
    """Newton's method on ½‖w‖² + L(Au) with `Loss.derivatives`."""

    def minimise(
        self, A: Any, c: Array, k: int, u: Array, alpha: Array, *, rho: float, tol: float, careful: bool
    ) -> tuple[float, int]:
        """Minimise over u = (w, b), in place; alpha receives −L'."""
        rows = sparse.csr_array(A, shape=(c.size, u.size)) if isinstance(A, tuple) else A
        ridge = np.arange(u.size) < k
        steps = 0
        m = np.asarray(rows @ u)
        value = 0.5 * float(u[:k] @ u[:k]) + self.loss.value(m, c)
        alpha[:], curve = self.loss.derivatives(m, c)
        while steps < MAX_STEPS and not self.must_stop():
            steps += 1
            slope = ridge * u - rows.T @ alpha
            H = rows.T @ (rows * curve[:, None] if not sparse.issparse(rows) else sparse.diags_array(curve) @ rows)
            H = np.asarray(H.toarray() if sparse.issparse(H) else H)
            H[np.diag_indices_from(H)] += ridge + DIAGONAL_LIFT * (1.0 + float(np.trace(H)))
            step = -cho_solve(cho_factor(H), slope) if u.size else np.zeros(0)
            falls = float(slope @ step)
            length = 1.0
            if -falls <= 0.1 * tol * max(abs(value), 1e-300):
                break
            for _ in range(MOST_HALVINGS):
                trial = u + length * step
                moved = np.asarray(rows @ trial)
                found = 0.5 * float(trial[:k] @ trial[:k]) + self.loss.value(moved, c)
                if found <= value + DECREASE_SHARE * length * falls:
                    break
                length *= 0.5
            else:
                break
            u[:], m, value = trial, moved, found
            alpha[:], curve = self.loss.derivatives(m, c)
        return rho, steps
