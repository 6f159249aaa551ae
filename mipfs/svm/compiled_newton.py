"""The inner solver of losses that the kernels know: Newton's method (`mipfs.kernels.newton`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from mipfs.plumbing.arrays import Array
from mipfs.svm import solver

RHO_GROWTH, CAREFUL_RHO_GROWTH = 5.0, 2.0
"""Factor of ρ between minimisations; 3 to 10 cost about the same, 20 costs twice as much."""
STEPS_PER_CALL = 50
"""Newton steps per call of the kernel at most, so that Ctrl-C and limits are heard between calls."""
LEAST_STEPS, SQUARE = 2, 1000.0
"""And at least, since a call begins with a step; samples or columns, whichever are fewer, whose system takes as long as
the passes over the rows, and grows by their square beside them."""
MAX_STEPS = 400
"""Newton steps before an attempt is given up."""


class NewtonSolver(solver.SvmSolver):
    """Newton's method; a loss whose slope jumps is smoothed, over a width of 2 at first."""

    def minimise(
        self, A: Any, c: Array, k: int, u: Array, alpha: Array, *, rho: float, tol: float, careful: bool
    ) -> tuple[float, int]:
        """Minimise over u = (w, b), in place."""
        from mipfs.kernels.newton import NewtonPace, SvmRows, newton
        from mipfs.kernels.structures import only_read

        assert self.loss.kernels is not None
        rows = SvmRows(A, only_read(c), k, self.loss.kernels.made)
        np.minimum(alpha, self.loss.top(c), out=alpha)
        dear = c.size * u.size * (1.0 + (min(c.size, u.size) / SQUARE) ** 2)
        steps = max(LEAST_STEPS, solver.steps_per_call(STEPS_PER_CALL, int(dear)))
        pace = NewtonPace(tol, float(self.until), steps, CAREFUL_RHO_GROWTH if careful else RHO_GROWTH)
        state = np.array([rho, 0.0, 0.0])
        while state[1] == 0.0 and state[2] < MAX_STEPS and not self.must_stop():
            newton(rows, u, alpha, state, pace)
        return float(state[0]), int(state[2])
