"""Restricted problems of the Kelley driver by accelerated proximal gradient, for smooth losses without penalties.

`Proximal` is Tan 2014's, over the hull of a pool of selections, where the problem is min ½(Σ‖w_t‖)² + L and
μ_t = ‖w_t‖ / Σ‖w_t‖. `FaceProximal` is over a face of S, as `mipfs.inner.face_interior` is:

    min over w, b and 0 ≤ σ ≤ 1, Σσ ≤ M, σ = 0 off F   ½ Σ_g ‖w_g‖²/σ_g + L
  = max over α ∈ A of  g(α) − ½ (sum of the M largest s_g(α), g ∈ F)

F is what the selections found so far are made of. A mixture of selections takes about as many of them as σ has
fractional entries, a face takes them all at once: on text a tenth of the rounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.data.instance import Instance
from mipfs.errors import NumericalError
from mipfs.inner.alike import group_alike_samples
from mipfs.inner.face_layer import FacePool
from mipfs.inner.restricted import RestrictedSolution, SelectionPool, feasible
from mipfs.losses import get_loss
from mipfs.plumbing.arrays import Array, Arrays, Integers
from mipfs.problem import Problem
from mipfs.settings import ProximalSettings
from mipfs.svm.projection import project
from mipfs.svm.solver import ColumnShift, kernel_columns

MIXTURE = -1.0
"""In place of M in the kernel: the groups are selections, of which one is mixed."""


class Proximal:
    """Accelerated proximal gradient on the primal (Tan 2014, Algorithms 3 and 4), for smooth losses.

    After k steps F(ω) − F(ω*) ≤ 2 L ‖ω⁰ − ω*‖² / (η (k + 1)²), L the Lipschitz constant of the loss's gradient and
    η the factor of the line search (Theorem 5 there); no bound rests on it, for a dual vector measures the gap.

    Parameters
    ----------
    problem : Problem
    change : float, optional
        Stop where a step changes the objective by no more than this share (Tan 2014, (43)), whatever the gap is.
    settings : ProximalSettings, optional
    """

    def __init__(
        self, problem: Problem, change: float | None = None, settings: ProximalSettings = ProximalSettings()
    ) -> None:
        self.problem = problem
        self.settings = settings
        self._change = change
        self._loss = get_loss(problem.loss)
        self._alike = group_alike_samples(problem, np.empty(0, dtype=np.int64))
        self._y, self._c = problem.data.y, problem.c_i
        self._off: ColumnShift | None = None
        self._columns: Integers = np.empty(0, dtype=np.int64)
        self._held: Any = None
        self._shift = np.empty(0)
        self._x = np.zeros(1)
        self._unit = 1.0
        self._step = 0.0
        self._ids: Integers = np.empty(0, dtype=np.int64)
        self._scale = np.empty(0)
        self._pointer = np.zeros(1, dtype=np.int64)
        self._taken: list[int] = []

    def solve(self, pool: SelectionPool, tol: float, must_stop: Callable[[], bool]) -> RestrictedSolution:
        """Solve to an absolute gap `tol`, warm from the last call on a smaller pool."""
        from mipfs.kernels.proximal import Iterates, Smooth, WeightGroups, run_accelerated
        from mipfs.kernels.structures import only_read

        problem = self.problem
        self._extend_to_pool(pool)
        n = self._y.size
        places = np.searchsorted(self._columns, self._ids)
        alpha = np.empty(n)
        exact = np.empty(n)
        state = np.array([self._step, 0.0, 0.0, math.inf, 1.0])
        old = self._x.copy()
        kept = np.empty((2, n))
        loss = Smooth(self._held, self._y, only_read(self._c), self._loss.kernels.made, problem.bias, self._unit)
        groups = WeightGroups(self._pointer, places, self._scale, self._cardinality_room())
        at = Iterates(self._x, old, kept, state, alpha)
        change = -1.0 if self._change is None else self._change
        for _ in range(self.settings.slices):
            state[1] = 0.0
            run_accelerated(loss, groups, at, 1e-15, change, self.settings.steps)
            dual, exact = self._restricted_dual(alpha, places)
            closed = self._change is None and state[3] - dual <= tol
            if closed or state[1] == 1.0 or must_stop():
                break
        self._step = float(state[0])
        weights = self._x[:-1]
        mu = self._mixture_shares(np.sqrt(_segment_sums(np.square(weights), self._pointer)))
        w = self._scale * weights
        if not np.all(np.isfinite(self._x)):
            raise NumericalError("a restricted problem leaves floating point: C times the squares is too large")
        b = float(self._unit * self._x[-1] + self._shift[places] @ w) if problem.bias else 0.0
        if self._alike is not None:
            exact = feasible(problem, self._alike.spread(exact, problem.c_i), in_place=True)
        return RestrictedSolution(float(state[3]), exact, mu, self._ids, w, b)

    def kept(self) -> Callable[[], Arrays]:
        """What makes arrays of the point, the step length, and how many groups there were at every solve."""
        x, numbers, taken = self._x, np.array([self._unit, self._step]), tuple(self._taken)
        return lambda: {"point": x, "point_numbers": numbers, "point_taken": np.array(taken, dtype=np.int64)}

    def take_up(self, kept: Mapping[str, npt.NDArray[Any]], pool: SelectionPool) -> None:
        """Go on from what `kept` made: columns and kinds of samples are made again, in the order of the time."""
        (unit, step), taken = kept["point_numbers"].tolist(), kept["point_taken"]
        x = np.array(kept["point"], dtype=float)
        if not (0.0 < unit < math.inf and 0.0 <= step < math.inf) or not np.isfinite(x).all():
            raise ValueError("the point of the proximal gradient is not finite")
        if taken.ndim != 1 or not taken.size:
            return
        ids, factors, sizes = self._columns_of_new_groups(pool)
        if np.any(np.diff(taken, prepend=0) < 0) or taken[-1] > sizes.size:
            raise ValueError("the point of the proximal gradient has more groups than its pool")
        self._pointer = np.concatenate([[0], np.cumsum(sizes[: taken[-1]])])
        if x.shape != (self._pointer[-1] + 1,):
            raise ValueError("the point of the proximal gradient is over other columns")
        self._ids, self._scale = ids[: self._pointer[-1]], factors[: self._pointer[-1]]
        for count in self._pointer[taken].tolist():
            # Samples that are alike on the columns so far may differ on the next ones.
            held = np.unique(self._ids[:count])
            if self._alike is not None and not self._alike.take(held):
                self._alike = None
        self._columns = np.unique(self._ids)
        self._held, self._shift = self._gather_columns(self._columns)
        self._x, self._unit, self._step, self._taken = x, unit, step, taken.tolist()

    def _cardinality_room(self) -> float:
        """M of the face, or that the groups are mixed."""
        return MIXTURE

    def _mixture_shares(self, norms: Array) -> Array:
        """μ (t,) by the norms (t,) of the groups."""
        total = norms.sum()
        return norms / total if total > 0 else np.full(norms.size, 1.0 / norms.size)

    def _best_score_sum(self, squares: Array) -> float:
        """The largest σ's'σ by the scores (t,) of the groups."""
        return float(squares.max())

    def _columns_of_new_groups(self, pool: SelectionPool) -> tuple[Integers, Array, Integers]:
        """Of the groups that are new: columns (k,), factors (k,), sizes (t,)."""
        columns = []
        factors = []
        sizes = []
        for atoms, sigma in pool.members[self._pointer.size - 1 :]:
            found = self.problem.atoms.columns(atoms)
            columns.append(found.ids)
            factors.append(np.sqrt(sigma[found.atom]) * found.scale)
            sizes.append(found.ids.size)
        none = np.empty(0, dtype=np.int64)
        return np.concatenate([none, *columns]), np.concatenate([none, *factors]), np.array(sizes, dtype=np.int64)

    def _extend_to_pool(self, pool: SelectionPool) -> None:
        """Take in the groups that are new: their columns, and zero weights for them."""
        ids, factors, sizes = self._columns_of_new_groups(pool)
        self._ids = np.concatenate([self._ids, ids])
        self._scale = np.concatenate([self._scale, factors])
        self._pointer = np.concatenate([self._pointer, self._pointer[-1] + np.cumsum(sizes)])
        self._taken.append(self._pointer.size - 1)
        held = np.union1d(self._columns, ids)
        if self._held is None or held.size > self._columns.size:
            self._columns = held
            self._held, self._shift = self._gather_columns(held)
        b = self._unit * self._x[-1]
        self._unit = _largest_spread(self._held, self._c)
        self._x = np.concatenate([self._x[:-1], np.zeros(ids.size), [b / self._unit]])
        if self._step == 0.0:
            self._step = 0.05 * float(self.problem.c_i.sum())

    def _restricted_dual(self, alpha: Array, places: Integers) -> tuple[float, Array]:
        """Value of the restricted dual at a feasible vector made from −L', and that vector."""
        from mipfs.kernels.proximal import pull

        y = self._y
        c = self._c
        bias = self.problem.bias
        near = project(alpha, self._loss.top(c), y, bias, c)
        pulled = np.empty(self._columns.size)
        pull(self._held, near, pulled)
        level = self._best_score_sum(_segment_sums(np.square(self._scale * pulled[places]), self._pointer))
        # With an upper end the box is in the way of a multiple.
        if not self._loss.has_top:
            factor = self._loss.best_multiple(near, c, level)
            if factor is not None:
                near = factor * near
                level = factor * factor * level
        whole, q = self._loss.feasible_dual(near, c, y, bias)
        exact = np.ldexp(whole.astype(float), -q)
        return self._loss.dual_value(exact, c) - 0.5 * level, exact

    def _gather_columns(self, held: Integers) -> tuple[Any, Array]:
        """The columns `held` as the kernels take them, of one sample of every kind where many are alike."""
        problem = self.problem
        merged = self._alike
        if merged is not None and not merged.take(held):
            merged = self._alike = None
        if merged is None:
            self._y, self._c = problem.data.y, np.ascontiguousarray(problem.c_i)
            if self._off is None:
                self._off = _weighted_means(problem.data, self._c, problem.bias)
            return kernel_columns(problem.data, held, self._off, problem.bias)
        data = merged.instance(problem.data.sample_weight)
        self._c = merged.sum_weights(problem.c_i)
        self._y = data.y
        off = _weighted_means(data, self._c, problem.bias)
        return kernel_columns(data, np.arange(held.size), off, problem.bias)


class FaceProximal(Proximal):
    """The proximal gradient over a `FacePool`, where S is a cardinality row alone; μ of the solution is σ of its atoms.

    Parameters
    ----------
    problem : Problem, its S plain and nothing forced in
    """

    def _cardinality_room(self) -> float:
        return float(self.problem.atoms.count if self.problem.M is None else self.problem.M)

    def _mixture_shares(self, norms: Array) -> Array:
        from mipfs.kernels.proximal import filling_level

        level = filling_level(norms, 0.0, self._cardinality_room())
        return np.minimum(norms * level, 1.0) if math.isfinite(level) else (norms > 0.0).astype(float)

    def _best_score_sum(self, squares: Array) -> float:
        room = min(int(self._cardinality_room()), squares.size)
        return float(np.partition(squares, squares.size - room)[squares.size - room :].sum())

    def _columns_of_new_groups(self, pool: SelectionPool) -> tuple[Integers, Array, Integers]:
        assert isinstance(pool, FacePool)
        atoms = pool.atoms[self._pointer.size - 1 :]
        found = self.problem.atoms.columns(atoms)
        return found.ids, found.scale, np.bincount(found.atom, minlength=atoms.size)


def _weighted_means(data: Instance, c: Array, bias: bool) -> ColumnShift:
    """The means by the weights: a sample of weight two counts as two samples do."""
    return ColumnShift(data, bias, c / c.sum() if bias else None)


def _largest_spread(columns: Any, c: Array) -> float:
    """√(Σ_i c_i z_ij² / Σ c_i) of the kernels' column with the largest; 1 where all are zero.

    By the weights, so that a sample of weight two counts as two samples do.
    """
    if isinstance(columns, tuple):
        data, rows, pointer = columns
        squares = _segment_sums(c[rows] * np.square(data), pointer)
    else:
        squares = np.einsum("i,ij,ij->j", c, columns, columns)
    return math.sqrt(float(squares.max(initial=0.0)) / float(c.sum())) or 1.0


def _segment_sums(values: Array, pointer: Integers) -> Array:
    """Sums over the pieces pointer[t] : pointer[t + 1], which may be empty."""
    owner = np.repeat(np.arange(pointer.size - 1), np.diff(pointer))
    return np.bincount(owner, values, pointer.size - 1).astype(float)
