"""v(σ) of a regulariser that is not the ridge: an interior point on the selected columns, σ fixed.

    v(σ) = min over w, b of Σ σ_j r(w_j/σ_j) + L(y∘(Xw + b)) = max over α ∈ A of g(α) − Σ σ_j h(ω_j(α))

It asks of the loss its `Terms`, and of the regulariser h, h' and h'': a file of either is enough.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from mipfs.inner.barrier import BarrierDual, descend
from mipfs.inner.designs import Dense, Interrupted
from mipfs.inner.interior import InteriorIterate, InteriorPoint, iterate
from mipfs.inner.reduced_system import cardinality
from mipfs.inner.row_svm import NEARER, RowSolver, Start
from mipfs.inner.watch import balance_classes
from mipfs.plumbing.arrays import Array, Integers
from mipfs.problem import Problem
from mipfs.regularisers.base import Regulariser
from mipfs.regularisers.box import Box
from mipfs.svm.solver import SVM

PATIENCE = 60
"""Steps of an interior point, which takes 10 to 30, before it is taken to circle."""


class RegularisedSolver(RowSolver):
    """The SVM on any columns, as `mipfs.svm.solver.SvmSolver` is for the ridge.

    Parameters
    ----------
    problem : Problem with a pointwise loss, over features or groups as they are
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.y = np.ascontiguousarray(problem.data.y, dtype=float)
        # From this dual value on the caller asks for no more.
        self.enough = np.inf

    def solve(
        self,
        ids: Integers,
        sigma: Array | None = None,
        *,
        tol: float = 1e-7,
        start: Start | None = None,
    ) -> SVM:
        """Solve on the columns `ids` (k,), with σ (k,) in (0, 1], 1 by default, to a relative gap `tol`.

        An interior point begins anew wherever another solve ended: `start` is not used.
        """
        data = self.problem.data
        ids = np.asarray(ids, dtype=np.int64)
        # Without columns the regulariser is 0, and only the intercept is left.
        if ids.size == 0:
            svm: SVM = self.loss.Solver(data, self.problem.c_i, self.problem.bias).solve(ids, tol=tol)
            return svm
        share = np.ones(ids.size) if sigma is None else sigma
        quick = self._by_newton(ids, share, tol, start)
        if quick is not None:
            return quick
        away = self._off[ids]
        Z = np.asfortranarray((data.block(ids).dense(away)) * (np.sqrt(self.size) * self.y[:, None]))
        regulariser = self.problem.regulariser.at(ids).scaled(self.size)
        seen = BestIterates(self, Dense(Z, self.must_stop), regulariser, share, NEARER * tol)
        method = InteriorPoint(
            seen.Z, self.y, self.loss.terms_at(self.c), self.problem.bias, np.full(ids.size, -1),
            np.zeros(0), cardinality(0, None), regulariser=regulariser, share=share,
        )  # fmt: skip
        with suppress(Interrupted):
            iterate(method, lambda point: seen(point) or point.steps >= PATIENCE)
        steps = method.steps
        if not seen.met and not seen.is_enough:
            steps += self._descend_further(seen)
        return self._evaluate_rounded(seen, np.sqrt(self.size), data.center[ids] - away, steps)

    def _by_newton(self, ids: Integers, share: Array, tol: float, start: Start | None) -> SVM | None:
        """The SVM by projected Newton steps; None where these do not take it, or do not bring it home."""
        if not isinstance(self.problem.regulariser, Box):
            return None
        return self.by_newton((ids, np.sqrt(share), share), tol, self.enough, start)

    def _descend_further(self, seen: BestIterates) -> int:
        """Go on by steps that descend, where the interior point's led nowhere; their number."""
        share = self.loss.middle(self.c)
        if self.problem.bias:
            share = balance_classes(share, self.y)
        dual = BarrierDual(seen.Z.Z, self.y, self.c, self.loss, seen.regulariser, seen.share, self.problem.bias)
        steps = 0
        for alpha, w, b in descend(dual, share):
            steps += 1
            if seen(InteriorIterate(w, b, np.zeros(0), alpha, np.zeros(0), steps)):
                break
        return steps

    def _evaluate_rounded(self, seen: BestIterates, root: float, shift: Array, steps: int) -> SVM:
        """Round the best dual vector to a feasible one and evaluate both sides."""
        problem = self.problem
        size = self.size
        whole, q = self.loss.feasible_dual(size * seen.alpha, problem.c_i, problem.data.y, problem.bias)
        exact = np.ldexp(whole.astype(float), -q)
        dual = size * seen.lower_of(exact / size)
        w = root * seen.w
        b = seen.b + float(shift @ w) if problem.bias else 0.0
        return SVM(w, b, exact, size * seen.upper, dual, 1.0, steps, q)


class BestIterates:
    """Looks at the iterates: the best point and the best dual vector so far, and whether they meet.

    Parameters
    ----------
    solver : RegularisedSolver
    Z : Dense columns y∘x, scaled
    regulariser : Regulariser of these, scaled too
    share : (k,) σ
    goal : relative gap
    """

    def __init__(
        self, solver: RegularisedSolver, Z: Dense, regulariser: Regulariser, share: Array, goal: float
    ) -> None:
        self.solver = solver
        self.Z = Z
        self.regulariser = regulariser
        self.share = share
        self.goal = goal
        self.lower, self.upper = -np.inf, np.inf
        self.alpha, self.w, self.b = np.zeros(Z.shape[0]), np.zeros(Z.shape[1]), 0.0

    def __call__(self, point: InteriorIterate) -> bool:
        """Take in an iterate; whether that is enough."""
        solver, low, high = self.solver, *self.regulariser.ends
        alpha = np.clip(point.alpha, 0.0, solver.loss.top(solver.c))
        alpha = balance_classes(alpha, solver.y) if solver.problem.bias else alpha
        lower = self.lower_of(alpha)
        if lower > self.lower:
            self.lower = lower
            self.alpha = alpha
        w = np.clip(point.w, low * self.share, high * self.share)
        margins = self.Z.times(w) + (solver.y * point.b if solver.problem.bias else 0.0)
        upper = float(self.regulariser.perspective(w, self.share).sum()) + float(solver.loss.value(margins, solver.c))
        if upper < self.upper:
            self.upper = upper
            self.w = w
            self.b = point.b
        return self.met or self.is_enough

    @property
    def met(self) -> bool:
        """Whether both values meet."""
        return self.upper - self.lower <= self.goal * abs(self.upper)

    @property
    def is_enough(self) -> bool:
        """Whether the caller asks for no more."""
        return self.solver.size * self.lower >= self.solver.enough or self.solver.must_stop()

    def lower_of(self, alpha: Array) -> float:
        """g(α) − Σ σ h(ω), as floats have it."""
        worth = float(self.share @ self.regulariser.conjugate(self.Z.pull(alpha)))
        return float(self.solver.loss.dual_value(alpha, self.solver.c)) - worth
