"""The subproblem of Benders' decomposition as `mipfs.models.benders` declares it, by Clarabel: ``subproblem="conic"``.

    v(σ) = min over w, b, ξ   ½ ‖w‖² + L(ξ)   s.t.   y_i (Σ_j √σ_j w_j x_ij + b) + ξ_i ≥ target,   (Aytug 2015, SUB)

The multipliers of the rows are α. They are rounded into the dual set before they become a cut, and both values are
computed anew, so neither is Clarabel's word.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mipfs.errors import UsageError
from mipfs.formulation.program import check_size
from mipfs.inner.subproblem import Subproblem
from mipfs.models.benders import sub_of_columns
from mipfs.plumbing.arrays import Array, Integers
from mipfs.problem import Problem
from mipfs.proof.cuts import decode_dual
from mipfs.solvers.cones import REPEATED_WORK, Canonical
from mipfs.svm.solver import SVM


class ConicSubproblem(Subproblem):
    """v(σ) of one problem by Clarabel.

    Parameters
    ----------
    problem : Problem with a pointwise loss
    must_stop : asked in the middle of a solve
    deadline : callable, when the time limit passes, on the clock of ``time.monotonic``, or None

    Raises
    ------
    UsageError
        A structural loss, or data too large for a conic program.
    """

    def __init__(self, problem: Problem, must_stop: Callable[[], bool], deadline: Callable[[], float | None]) -> None:
        if problem.is_joint:
            raise UsageError("subproblem = 'conic' does not take the structural loss; leave it at 'newton'")
        check_size(problem.data, "CVXPY program")
        super().__init__(problem)
        self._stop = must_stop
        self._deadline = deadline

    def _solve_svm(
        self, ids: Integers, part: Array, tol: float, start: tuple[Array, float, Array, float] | None
    ) -> SVM:
        """The SVM by Clarabel, as tight as that goes; by Newton's steps where it was stopped or failed."""
        problem = self.problem
        root = np.sqrt(part)
        block = problem.data.block(ids)
        declared = sub_of_columns(problem, ids, part)
        program, found = declared.cvxpy, declared.variables
        if Canonical(program).solve(deadline=self._deadline(), stop=self._stop, in_process=REPEATED_WORK) != "solved":
            return super()._solve_svm(ids, part, tol, start)
        dual = self.loss.feasible_dual(np.asarray(found["alpha"].value), problem.c_i, problem.data.y, problem.bias)
        alpha = decode_dual(dual)
        inner = np.asarray(found["w"].value, dtype=float)[: ids.size]
        weights = root * inner
        intercept = float(found["b"].value) if problem.bias else 0.0
        values = block.scores(weights, intercept)
        primal = 0.5 * float(inner @ inner) + float(self.loss.value(problem.data.y * values, problem.c_i))
        omega = root * block.pull(alpha * problem.data.y)
        below = float(self.loss.dual_value(alpha, problem.c_i)) - 0.5 * float(omega @ omega)
        return SVM(weights, intercept, alpha, primal, below, 1.0, 0, int(dual[1]))
