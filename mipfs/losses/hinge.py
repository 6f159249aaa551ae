"""The hinge loss L(m) = Σ c_i max(0, 1 − m_i): value, dual set and the SVM on selected columns.

Dual set A = {0 ≤ α ≤ c} (and y'α = 0 with a free bias), g(α) = Σ α_i (Aytug 2015, SVM dual (5)–(7)).
α cannot be recovered from the primal: at a margin of 1 it is anything in the box.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.losses import solver
from mipfs.losses.dyadic import Integers, balanced

Array = npt.NDArray[np.float64]

GROWTH, CAREFUL_GROWTH = 5.0, 2.0
"""Factor of ρ between minimisations; 3 to 10 cost about the same, 20 costs twice as much."""
SLICE = 50
"""Newton steps per call of the kernel, so that Ctrl-C is heard between calls."""
MAX_STEPS = 400
"""Newton steps before an attempt is given up."""


def value(margins: Array, c: Array) -> float:
    """L(m) for margins (n,) and loss weights c (n,)."""
    return float(c @ np.maximum(0.0, 1.0 - margins))


def dual_value(alpha: Array, c: Array) -> float:
    """g(α) = Σ α_i."""
    return float(alpha.sum())


def dual_magnitude(alpha: Array, c: Array) -> float:
    """Sum of the absolute terms of g(α), which bounds its rounding error."""
    return float(alpha.sum())


def feasible_dual(alpha: Array, c: Array, y: Array, bias: bool) -> tuple[Integers, int]:
    """α on a grid on which 0 ≤ α ≤ c and y'α = 0 are integer identities; see `mipfs.losses.dyadic`."""
    return balanced(alpha, c, y, bias)


class Solver(solver.Solver):
    """The hinge SVM by semismooth Newton on the augmented Lagrangian (`mipfs.kernels.newton`)."""

    def start(self) -> tuple[Array, float]:
        """α = 0, and a hinge smoothed over a width of 2."""
        return np.zeros(self.data.n_samples), 0.5

    def minimise(
        self, A: Any, c: Array, k: int, u: Array, alpha: Array, rho: float, tol: float, warm: bool, careful: bool
    ) -> tuple[float, int]:
        """Minimise over u = (w, b), in place."""
        from mipfs.kernels.newton import augmented_lagrangian

        np.minimum(alpha, c, out=alpha)
        if u.size == 0:
            alpha[:] = c
            return rho, 0
        growth = CAREFUL_GROWTH if careful else GROWTH
        state = np.array([rho, 0.0, 0.0])
        while state[1] == 0.0 and state[2] < MAX_STEPS and not self.must_stop():
            augmented_lagrangian(A, c, k, u, alpha, state, tol, SLICE, growth, warm, self._work)
            warm = True
        return float(state[0]), int(state[2])
