"""The inner solver of the smooth losses: Newton's method on the primal (`mipfs.kernels.newton.newton`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from mipfs.plumbing.arrays import Array
from mipfs.svm import solver

STEPS_PER_CALL = 20
"""Newton steps per call of the kernel at most, so that Ctrl-C and limits are heard between calls."""
MAX_STEPS = 200
"""Newton steps before an attempt is given up."""


class SmoothSolver(solver.SvmSolver):
    """Newton's method for a twice (or once, piecewise) differentiable loss that the kernels know."""

    def minimise(
        self, A: Any, c: Array, k: int, u: Array, alpha: Array, *, rho: float, tol: float, warm: bool, careful: bool
    ) -> tuple[float, int]:
        """Minimise over u = (w, b), in place; alpha receives −L'."""
        from mipfs.kernels.newton import SvmRows, newton
        from mipfs.kernels.structures import only_read

        state = np.zeros(3)
        kernels = self.loss.kernels
        assert kernels is not None
        steps = solver.steps_per_call(STEPS_PER_CALL, c.size * u.size)
        while state[1] == 0.0 and state[2] < MAX_STEPS and not self.must_stop():
            newton(SvmRows(A, only_read(c), k), kernels.made, u, alpha, state, tol, steps, self._work)
        return rho, int(state[2])
