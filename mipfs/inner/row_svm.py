"""v(σ) at a selection with ends and with rows over the weights, by projected Newton steps: a row has a multiplier.

v(σ) = min over w, b of ½ Σ w_j²/(λ_j² σ_j) + L(y∘(Xw + b)),   low σ ≤ w ≤ high σ,  l ≤ Σ a_j w_j ≤ u

with λ the factors of the columns. A fractional σ is one of a cut, which any dual vector earns.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import sparse

from mipfs.inner.end_terms import EQUAL_WIDTH
from mipfs.kernels.newton import Ends, NewtonPace, SvmRows, minimise
from mipfs.kernels.structures import only_read
from mipfs.losses import get_loss
from mipfs.plumbing.arrays import Array, Integers
from mipfs.problem import Problem
from mipfs.proof.cuts import dual_value_of, feasible_dual
from mipfs.regularisers.box import Box
from mipfs.svm.solver import SVM, WARM_RHO_SHARE, ColumnShift, kernel_rows

FEW, MOST_ROWS = 64, 2**25
"""Columns, and samples times columns, up to which projected Newton steps come first."""
FIRST_RHO, GROWTH, STEPS, ATTEMPTS = 0.5, 4.0, 300, 3
"""Of these the first smoothing and its growth, the steps of an attempt, and attempts, each ten times as tight."""
NEARER = 0.3
"""The iteration ends at this share of the asked gap: rounding to a feasible dual vector costs a little of it."""
Start = tuple[Array, float, Array, float]
"""Where to begin: weights (k,), intercept, dual vector and ρ of an SVM on these columns."""
Valued = Callable[[Array, float], tuple[Array, float]]
"""Weights in the rows, and what these and an intercept cost."""


class RowSolver:
    """The SVM on some columns with ends and rows over the weights, where projected Newton steps bring it home.

    Parameters
    ----------
    problem : Problem

    Attributes
    ----------
    must_stop : asked between attempts
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.loss = get_loss(problem.loss)
        self.size = float(problem.c_i.max())
        self.c = problem.c_i / self.size
        self.must_stop: Callable[[], bool] = bool  # never
        self._off = ColumnShift(problem.data, problem.bias)
        self._is_known = problem.regulariser.is_ridge or isinstance(problem.regulariser, Box)

    @cached_property
    def _end_positions(self) -> npt.NDArray[np.int64]:
        """The lower and the upper end of every row, (rows, 2), −1 where it has none."""
        found = np.full((len(self.problem.ends.rows), 2), -1)
        for k, (r, sign) in enumerate(self.problem.ends.of):
            found[r, 0 if sign > 0.0 else 1] = k
        return found

    @cached_property
    def _row_ends(self) -> tuple[Array, Array]:
        """How little and how much every row may be, (rows,), without the allowance: both 0 of an equation."""
        offsets = np.append(self.problem.ends.plain, math.inf)  # which −1 finds
        least, most = -offsets[self._end_positions[:, 0]], offsets[self._end_positions[:, 1]]
        is_equal = most - least <= EQUAL_WIDTH
        return np.where(is_equal, 0.0, least), np.where(is_equal, 0.0, most)

    def by_newton(
        self,
        columns: tuple[Integers, Array, Array],
        tol: float,
        enough: float,
        start: Start | None,
        valued: Valued | None = None,
        *,
        is_only: bool = False,
    ) -> SVM | None:
        """Solve on some columns to a relative gap `tol`, or to a dual value of `enough`.

        Parameters
        ----------
        columns : ids (k,), λ√σ (k,) and σ (k,) of them
        start : optional, where to begin
        valued : brings weights (k,) into the rows, and says what they cost; without rows they lie between their ends
        is_only : whether no other way follows, so that what these steps come to is what there is

        Returns
        -------
        SVM, whose weights keep the rows; None where these steps do not take it, or do not bring it home
        """
        problem, kernels = self.problem, self.loss.kernels
        ids, scale, share = columns
        n, k = problem.data.n_samples, ids.size
        root = math.sqrt(self.size) * scale
        is_large = (k > FEW or n * k > MOST_ROWS) and not is_only
        if not self._is_known or kernels is None or is_large or not np.all(root > 0.0):
            return None
        rows, shift = kernel_rows(problem.data, ids, root, self._off, problem.bias, problem.bias)
        A = sparse.csr_array(rows, shape=(n, k + problem.bias)).toarray() if isinstance(rows, tuple) else rows
        over = problem.ends.on(ids) * root
        first = np.max(self._end_positions, axis=1)
        signs = np.where(self._end_positions[:, 1] == first, -1.0, 1.0)[:, None]
        D = signs * over[first]
        lengths = np.linalg.norm(D, axis=1)
        there = np.flatnonzero(lengths > 0.0)
        lengths, D = lengths[there], D[there] / lengths[there, None]
        least, most = (end[there] / lengths for end in self._row_ends)
        low, high = (np.broadcast_to(end, k) * share / root for end in problem.regulariser.at(ids).ends)
        bend = float(np.square(A[:, :k] @ D.T).sum(axis=0).max(initial=0.0))
        posed = (
            SvmRows(A, only_read(self.c), k, kernels.made),
            Ends(low, high, np.ascontiguousarray(D), least, most, bend),
        )
        u, alpha, own = np.zeros(A.shape[1]), np.zeros(n), np.zeros(there.size)
        state = np.array([FIRST_RHO, 0.0, 0.0])  # ρ, whether it has converged, and the steps that were taken
        u[:k] = np.clip(0.0, low, high)
        if start is not None:
            w, b, last, rho = start
            u[:k] = np.clip(w / root, low, high)
            u[k:] = b - float(shift @ w)
            alpha[:] = np.minimum(last[:n] / self.size, self.loss.top(self.c))
            own[:] = self._row_multipliers(last[n:], there) * lengths / self.size
            state[0] = max(WARM_RHO_SHARE * rho, min(FIRST_RHO, rho))
        for attempt in range(ATTEMPTS):
            until = enough / self.size if attempt == 0 else math.inf
            state[1] = 0.0
            pace = NewtonPace(max(NEARER * tol * 0.1**attempt, 1e-15), until, STEPS, GROWTH)
            minimise(*posed, u, alpha, own, state, pace)
            if not all(np.all(np.isfinite(one)) for one in (u, alpha, own)):
                return None
            dual = np.append(self.size * alpha, self._of_ends(self.size * own / lengths, there))
            whole, q = feasible_dual(problem, dual)
            exact = np.ldexp(whole.astype(float), -q)
            omega = ((exact[:n] @ A)[:k] + exact[n:] @ over) / self.size
            t = np.clip(omega, low, high)
            lower = dual_value_of(problem, exact) - self.size * float(t @ (omega - 0.5 * t))
            w = u[:k] * root
            if valued is None:
                w = np.clip(w, *(end * share for end in problem.regulariser.at(ids).ends))
                value = self.size * (0.5 * float(u[:k] @ u[:k]) + float(self.loss.value(A @ u, self.c)))
            b = float(u[k:].sum()) + float(shift @ w) if problem.bias else 0.0
            if valued is not None:
                w, value = valued(w, b)
            found = SVM(w, b, exact, value, lower, float(state[0]), int(state[2]), q)
            # The bound allows the rows' allowances, which weights do not take.
            forgiven = float(exact[n:] @ problem.ends.allowances)
            if value - lower <= tol * abs(value) + forgiven or lower >= enough or self.must_stop():
                return found
        return found if is_only else None

    def _row_multipliers(self, nu: Array, there: Integers) -> Array:
        """λ of some rows, of ν of all ends: of the lower one less of the upper one."""
        padded = np.append(nu, 0.0)  # which −1 finds
        return np.asarray(padded[self._end_positions[there, 0]] - padded[self._end_positions[there, 1]])

    def _of_ends(self, own: Array, there: Integers) -> Array:
        """ν ≥ 0 of all ends, of λ of some rows."""
        found = np.zeros(self.problem.ends.count + 1)  # the last one is that of −1
        found[self._end_positions[there, 0]] = np.maximum(own, 0.0)
        found[self._end_positions[there, 1]] = np.maximum(-own, 0.0)
        return found[:-1]
