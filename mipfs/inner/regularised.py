"""v(σ) of a regulariser that is not the ridge: an interior point on the selected columns, σ fixed.

    v(σ) = min over w, b of Σ σ_j r(w_j/σ_j) + L(y∘(Xw + b)) = max over α ∈ A of g(α) − Σ σ_j h(ω_j(α))

It asks of the loss its `Terms`, and of the regulariser h, h' and h'': a file of either is enough.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import numpy as np
from scipy import sparse

from mipfs.inner.barrier import BarrierDual, descend
from mipfs.inner.designs import Dense, Interrupted
from mipfs.inner.interior import InteriorIterate, InteriorPoint, iterate
from mipfs.inner.reduced_system import cardinality
from mipfs.inner.watch import balance_classes
from mipfs.kernels.boxed import BoxedPace, BoxedProgram, minimise_boxed
from mipfs.kernels.structures import only_read
from mipfs.losses import get_loss
from mipfs.plumbing.arrays import Array, Integers
from mipfs.problem import Problem
from mipfs.regularisers.base import Regulariser
from mipfs.regularisers.box import Box
from mipfs.svm.solver import SVM, WARM_RHO_SHARE, ColumnShift, kernel_rows

PATIENCE = 60
"""Steps of an interior point, which takes 10 to 30, before it is taken to circle."""
FEW, MOST_ROWS = 64, 2**25
"""Columns, and samples times columns, up to which projected Newton steps come first."""
FIRST_RHO, GROWTH, STEPS, ATTEMPTS = 0.5, 4.0, 300, 3
"""Of these the first smoothing and its growth, the steps of an attempt, and attempts, each ten times as tight."""
NEARER = 0.3
"""The iteration ends at this share of the asked gap: rounding to a feasible dual vector costs a little of it."""


class RegularisedSolver:
    """The SVM on any columns, as `mipfs.svm.solver.SvmSolver` is for the ridge.

    Parameters
    ----------
    problem : Problem with a pointwise loss, over features or groups as they are
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.loss = get_loss(problem.loss)
        self.size = float(problem.c_i.max())
        self.c = problem.c_i / self.size
        self.y = np.ascontiguousarray(problem.data.y, dtype=float)
        self._off = ColumnShift(problem.data, problem.bias)
        self.must_stop: Callable[[], bool] = bool  # never
        # From this dual value on the caller asks for no more.
        self.enough = np.inf

    def solve(
        self,
        ids: Integers,
        sigma: Array | None = None,
        *,
        tol: float = 1e-7,
        start: tuple[Array, float, Array, float] | None = None,
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

    def _by_newton(
        self, ids: Integers, share: Array, tol: float, start: tuple[Array, float, Array, float] | None
    ) -> SVM | None:
        """The SVM by projected Newton steps; None where these do not take it, or do not bring it home."""
        problem, kernels = self.problem, self.loss.kernels
        n, k = problem.data.n_samples, ids.size
        if not isinstance(problem.regulariser, Box) or kernels is None or k > FEW or n * k > MOST_ROWS:
            return None
        # The columns are √σ∘x, so that ½‖u‖² is ½ Σ w_j²/σ_j.
        root = np.sqrt(self.size * share)
        rows, shift = kernel_rows(problem.data, ids, root, self._off, problem.bias, problem.bias)
        A = sparse.csr_array(rows, shape=(n, k + problem.bias)).toarray() if isinstance(rows, tuple) else rows
        low, high = (np.broadcast_to(end, k) * share / root for end in problem.regulariser.at(ids).ends)
        u, alpha, state = np.zeros(A.shape[1]), np.zeros(n), np.array([FIRST_RHO, 0.0, 0.0])
        u[:k] = np.clip(0.0, low, high)
        if start is not None:
            w, b, last, rho = start
            u[:k] = np.clip(w / root, low, high)
            u[k:] = b - float(shift @ w)
            alpha[:] = np.minimum(last / self.size, self.loss.top(self.c))
            state[0] = max(FIRST_RHO, WARM_RHO_SHARE * rho)
        ends = low, high
        nothing = only_read(np.zeros((0, k))), only_read(np.zeros(0)), only_read(np.zeros(0))
        posed = BoxedProgram(
            only_read(A), only_read(self.c), only_read(low), only_read(high), kernels.made, *nothing, 0.0
        )
        for attempt in range(ATTEMPTS):
            until = self.enough / self.size if attempt == 0 else np.inf
            pace = BoxedPace(max(NEARER * tol * 0.1**attempt, 1e-15), until, STEPS, GROWTH)
            state[1] = 0.0
            minimise_boxed(posed, u, alpha, np.zeros(0), state, pace)
            if not (np.all(np.isfinite(u)) and np.all(np.isfinite(alpha))):
                return None
            found = self._boxed_svm(A, (u, alpha), ends, state)
            if found.gap <= tol or found.dual >= self.enough or self.must_stop():
                w = np.clip(u[:k] * root, *(end * share for end in problem.regulariser.at(ids).ends))
                return replace(found, w=w, b=float(u[k:].sum()) + float(shift @ w) if problem.bias else 0.0)
        return None

    def _boxed_svm(self, A: Array, at: tuple[Array, Array], ends: tuple[Array, Array], state: Array) -> SVM:
        """Both values at u and a dual vector, which is rounded to a feasible one; the weights are u's."""
        problem, size, k = self.problem, self.size, ends[0].size
        u, alpha = at
        whole, q = self.loss.feasible_dual(size * alpha, problem.c_i, problem.data.y, problem.bias)
        exact = np.ldexp(whole.astype(float), -q)
        omega = (exact @ A)[:k] / size
        t = np.clip(omega, *ends)
        dual = float(self.loss.dual_value(exact, problem.c_i)) - size * float(t @ (omega - 0.5 * t))
        primal = size * (0.5 * float(u[:k] @ u[:k]) + float(self.loss.value(A @ u, self.c)))
        return SVM(u[:k], 0.0, exact, primal, dual, float(state[0]), int(state[2]), q)

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
