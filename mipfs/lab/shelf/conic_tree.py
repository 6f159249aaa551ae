"""The tree of `branch` with every node's relaxation declared in CVXPY and solved by Clarabel: ``nodes="conic"``.

    min over σ, w, b, t   c'σ + ½ Σ_{S₁} ‖w_g‖² + ½ Σ_{free} t_g + L(y∘(Xw + b))
    s.t.                  ‖w_g‖² ≤ σ_g t_g,   σ = 1 on S₁,   0 ≤ σ ≤ 1,   Σσ ≤ M,   lb ≤ A [σ; u] ≤ ub

What is fixed to 0 is not in the program. The tree, its screening and its proof are those of `mipfs.drivers.tree`:
of Clarabel's answer only the multipliers count, α of the margins and y of the rows. α is rounded into the dual set, and
what the two then prove is summed again, so a node's bound never is Clarabel's word.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.drivers.tree import SearchTree
from mipfs.formulation.conic import bias_of, cp, design_of, loss_of
from mipfs.inner.boolean import Boolean, KnownClassifier, SolvedRelaxation
from mipfs.inner.rows_node import RowsRelaxation
from mipfs.plumbing.arrays import Array, Integers
from mipfs.plumbing.locks import ProcessLock
from mipfs.problem import Problem
from mipfs.solvers.cones import REPEATED_WORK, Canonical

ONE_BY_ONE = ProcessLock()
"""CVXPY makes its programs in one thread at a time."""


class ConicTree(SearchTree):
    """The tree of `branch`; only the solver of its nodes is another."""

    def relaxed(self, alive: Integers) -> RowsRelaxation:
        """The node solver on some of the atoms."""
        run = self.run
        relaxation = super().relaxed(alive)
        relaxation.kernel = None
        relaxation.boolean = ConicBoolean(run.problem, lambda: run.must_stop, lambda: run.deadline)
        return relaxation


class ConicBoolean(Boolean):
    """The Boolean relaxation of (P) with some atoms fixed, by Clarabel.

    Parameters
    ----------
    problem : Problem with a pointwise loss
    must_stop : asked in the middle of a solve
    deadline : callable, when the time limit passes, on the clock of ``time.monotonic``, or None
    """

    def __init__(self, problem: Problem, must_stop: Callable[[], bool], deadline: Callable[[], float | None]) -> None:
        super().__init__(problem, must_stop)
        self._stop = must_stop
        self._deadline = deadline

    def solve(
        self,
        low: npt.NDArray[Any],
        high: npt.NDArray[Any],
        tol: float,
        enough: Callable[[float, float], bool] = lambda lower, upper: False,
        known: KnownClassifier | None = None,
    ) -> SolvedRelaxation:
        """Solve with σ between `low` and `high`, 0 or 1 each; where Clarabel fails, by our own interior point."""
        with ONE_BY_ONE:
            node = ConicNode(self.problem, low > 0.5, high > 0.5)
            status = Canonical(node.cvxpy).solve(deadline=self._deadline(), stop=self._stop, in_process=REPEATED_WORK)
        if status != "solved":
            return super().solve(low, high, tol, enough, known)
        self.low = np.asarray(low, dtype=float)
        self.high = np.asarray(high, dtype=float)
        self.enough = enough
        of_kinds = np.bincount(self.kind, np.asarray(node.loss.alpha.value, dtype=float)) / self.size
        y = node.rows.multipliers()
        earned = self._earned_bound(of_kinds, y if self.problem.M is None else np.append(0.0, y))
        sigma, sizes = node.point()
        none: Array = np.empty(0)
        return SolvedRelaxation(
            earned.lower, float(node.cvxpy.value), earned.cut, earned.prices.y, np.empty(0, dtype=np.int64), none,
            float(node.b.value), sigma, sizes, 0, True,
        )  # fmt: skip


class ConicNode:
    """The program of one node.

    Parameters
    ----------
    problem : Problem
    inside : (count,) bool, σ = 1
    open_ : (count,) bool, σ may be 1
    """

    def __init__(self, problem: Problem, inside: npt.NDArray[np.bool_], open_: npt.NDArray[np.bool_]) -> None:
        self.problem = problem
        self.chosen = np.flatnonzero(open_)
        self.free, self.inside = np.flatnonzero(open_ & ~inside), np.flatnonzero(inside)
        self.design = design_of(problem, self.chosen)
        atom = self.chosen[self.design.atom]
        self.w, self.b = cp.Variable(max(1, atom.size), name="w"), bias_of(problem)
        # Without atoms one weight stays that nothing uses.
        scores = self.design.scores(self.w, self.b) if atom.size else self.b + np.zeros(problem.c_i.size)
        self.loss = loss_of(problem, scores)
        self.sigma, t = cp.Variable(max(1, self.free.size), name="sigma"), cp.Variable(max(1, self.free.size), name="t")

        # ‖w_g‖² ≤ σ_g t_g  ⇔  ‖(2 w_g, σ_g − t_g)‖ ≤ σ_g + t_g
        columns = [np.flatnonzero(atom == g) for g in self.free]
        cones = [
            cp.SOC(self.sigma[k] + t[k], cp.hstack([2 * self.w[own], self.sigma[k] - t[k]]))
            for k, own in enumerate(columns)
        ]
        idle = [*([] if self.free.size else [t == 0]), *([] if atom.size else [self.w == 0])]
        box = [self.sigma >= 0, self.sigma <= 1, *idle]
        self.rows = _Rows(problem, self.sigma[: self.free.size], self.free, self.inside)

        fixed = np.flatnonzero(np.isin(atom, self.inside))
        size = 0.5 * cp.sum(t) + (0.5 * cp.sum_squares(self.w[fixed]) if fixed.size else 0.0)
        cost = problem.penalty[self.free] @ self.sigma if self.free.size else 0.0
        program = cp.Minimize(cost + float(problem.penalty[self.inside].sum()) + size + self.loss.value)
        self.cvxpy = cp.Problem(program, [*cones, *box, *self.rows.constraints, *self.loss.rows])

    def point(self) -> tuple[Array, Array]:
        """σ and ‖w_g‖ of every atom, each (count,), as Clarabel has them."""
        sigma = np.zeros(self.problem.atoms.count)
        sizes = np.zeros(self.problem.atoms.count)
        sigma[self.free] = np.clip(self.sigma.value[: self.free.size], 0.0, 1.0)
        sigma[self.inside] = 1.0
        w = np.asarray(self.w.value, dtype=float)[: self.design.atom.size]
        sizes[self.chosen] = np.sqrt(np.bincount(self.design.atom, np.square(w), self.chosen.size))
        return sigma, sizes


class _Rows:
    """The cardinality row and the user's rows over the free atoms, extra variables relaxed."""

    def __init__(self, problem: Problem, sigma: Any, free: Integers, inside: Integers) -> None:
        selection = problem.selection
        rows = problem.selection.rows
        self.count = len(rows)
        self.constraints = list[Any]()
        self._pairs = list[tuple[Any, Integers, float]]()
        if selection.M is not None and free.size:
            self.constraints.append(cp.sum(sigma) <= selection.M - inside.size)
        if not self.count:
            return
        p = selection.n_features
        activity = np.asarray(rows.matrix[:, inside].sum(axis=1), dtype=float).ravel()
        if free.size:
            activity = activity + rows.matrix[:, free] @ sigma
        if len(rows.extra):
            u = cp.Variable(len(rows.extra), name="u")
            activity = activity + rows.matrix[:, p:] @ u
            self.constraints += _interval_constraints(u, *rows.extra.box)[0]
        if free.size or len(rows.extra):
            made, self._pairs = _interval_constraints(activity, rows.low, rows.high)
            self.constraints += made

    def multipliers(self) -> Array:
        """y (r,) of the user's rows: positive where the lower end holds, negative where the upper one does."""
        y = np.zeros(self.count)
        for constraint, places, sign in self._pairs:
            y[places] += sign * np.asarray(constraint.dual_value, dtype=float).ravel()
        return y


def _interval_constraints(
    expression: Any, low: Array, high: Array
) -> tuple[list[Any], list[tuple[Any, Integers, float]]]:
    """low ≤ expression ≤ high, where the ends are finite, and which rows each constraint is about."""
    pairs = []
    for end, sign in ((low, 1.0), (high, -1.0)):
        places = np.flatnonzero(np.isfinite(end))
        if places.size:
            made = expression[places] >= end[places] if sign > 0 else expression[places] <= end[places]
            pairs.append((made, places, sign))
    return [made for made, _, _ in pairs], pairs
