"""Both values of an iterate of the interior point, on the columns in play: what tells when it is enough."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from mipfs.inner.designs import Dense, Sparse
from mipfs.inner.end_terms import RowSidesTerms
from mipfs.inner.interior import InteriorIterate
from mipfs.inner.reduced_system import RowPolytope
from mipfs.kernels.bound import gains, largest
from mipfs.kernels.perspective import phi
from mipfs.losses import get_loss
from mipfs.plumbing.arrays import Array, Integers
from mipfs.problem import Problem
from mipfs.regularisers.base import Regulariser

FEASIBLE_VIOLATION = 1e-6
"""Violation of a row, relative to its largest coefficient, up to which a point's objective is an upper bound."""
EXTRA_RANGE = 100.0
"""An extra variable without a bound is taken to be at most this multiple of where it is: no bound rests on that."""


@dataclass(frozen=True, eq=False)
class ColumnsInPlay:
    """The columns of atoms in play: positions in X, the atom and the σ of each (-1: fixed at 1), factors, the atoms."""

    ids: Integers
    owner: Integers
    atom: Integers
    scale: Array
    movable: Integers
    inside: Integers

    def among(self, others: ColumnsInPlay, size: int) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Which columns, and which of `size` entries of x, belong to fixed atoms, to others' atoms or to no atom."""
        places = np.ones(size, bool)
        places[: self.movable.size] = np.isin(self.movable, others.movable, assume_unique=True)
        # −1: fixed at 1, in play as before.
        return np.append(places, True)[self.atom], places


class Watch:
    """Looks at the iterates: both values on the columns in play, the best point so far, and whether it is enough."""

    def __init__(
        self,
        problem: Problem,
        Z: Dense | Sparse,
        y: Array,
        c: Array,
        columns: ColumnsInPlay,
        penalty: Array,
        polytope: RowPolytope,
        *,
        regulariser: Regulariser,
        goal: float,
        enough: Callable[[float, float], bool],
        sides: RowSidesTerms,
    ) -> None:
        self.problem = problem
        self.Z = Z
        self.y = y
        self.c = c
        self.columns = columns
        self.penalty = penalty
        self.polytope = polytope
        self.goal = goal
        self.enough = enough
        self.sides = sides
        self.loss = get_loss(problem.loss)
        self.regulariser = regulariser
        self.lower, self.upper = -np.inf, np.inf
        self.best: InteriorIterate | None = None
        self.primal: InteriorIterate | None = None
        self.movable = columns.atom >= 0

    def __call__(self, point: InteriorIterate) -> bool:
        lower = self._lower_bound(point)
        point = self._clip_to_ends(point)
        upper = self._upper_bound(point)
        if lower > self.lower:
            self.lower = lower
            self.best = point
        if upper < self.upper:
            self.upper = upper
            self.primal = point
        return self.closed or self.enough(self.lower, self.upper)

    @property
    def closed(self) -> bool:
        """Whether both values meet."""
        return bool(np.isfinite(self.upper) and self.upper - self.lower <= self.goal * abs(self.upper))

    def _taken_scores(self, squares: Array) -> Array:
        """What the inner minimum takes, twice: the gains of the best movable atoms, and what is fixed at 1."""
        count = self.columns.movable.size
        rows = self.polytope.u.size
        scores = np.bincount(self.columns.atom[self.movable], squares[self.movable], minlength=count)[:count]
        room = round(float(self.polytope.u[0])) if rows else count
        gain = gains(scores, self.penalty[:count])
        return np.append(2.0 * largest(gain, room), float(squares[~self.movable].sum()))

    def _lower_bound(self, point: InteriorIterate) -> float:
        c = self.c
        alpha = np.clip(point.alpha[: c.size], 0.0, self.loss.top(c))
        if self.problem.bias:
            alpha = balance_classes(alpha, self.y[: c.size])
        nu = self.sides.allowed(point.alpha[c.size :])
        whole = np.append(alpha, nu) if nu.size else alpha
        # For the ridge these are ω².
        squares = 2.0 * self.regulariser.conjugate(self.Z.pull(whole))
        return self._lower_of(point, alpha, squares) - (self.sides.cost(nu) if nu.size else 0.0)

    def _lower_of(self, point: InteriorIterate, alpha: Array, squares: Array) -> float:
        """The bound of what the samples have of a dual vector, and of the scores of the columns."""
        c = self.c
        if self.problem.selection.is_plain:
            taken = self._taken_scores(squares)
            scales = self.regulariser.is_homogeneous and not np.any(self.penalty) and not len(self.sides)
            t = self.loss.best_multiple(alpha, c, float(taken.sum())) if scales else None
            # The value at tα is g(tα) − t²·½Σs, and t is the best one.
            if t is not None:
                return float(self.loss.dual_value(t * alpha, c) - 0.5 * t * t * taken.sum())
            return float(self.loss.dual_value(alpha, c)) - 0.5 * float(taken.sum())
        count = self.columns.movable.size
        polytope = self.polytope
        scores = np.bincount(self.columns.atom[self.movable], squares[self.movable], minlength=count)[:count]
        reduced = self.penalty + polytope.A.T @ point.multipliers
        reduced[:count] -= 0.5 * scores
        ends = np.where(reduced > 0, polytope.low, polytope.high)
        bounded = np.isfinite(ends)
        box = float(np.sum(reduced[bounded] * ends[bounded]))
        box -= EXTRA_RANGE * float(np.sum(np.abs(reduced[~bounded]) * (1.0 + np.abs(point.x[~bounded]))))
        g = float(self.loss.dual_value(alpha, c)) - 0.5 * float(squares[~self.movable].sum())
        return g + box - float(polytope.u @ point.multipliers)

    def _clip_to_ends(self, point: InteriorIterate) -> InteriorIterate:
        """The point with its weights between the ends that the regulariser has, of their σ."""
        if self.regulariser.is_ridge:
            return point
        own = np.ones(point.w.size)
        (low, high) = self.regulariser.ends
        own[self.movable] = np.clip(point.x, 1e-12, 1.0)[self.columns.atom[self.movable]]
        return replace(point, w=np.clip(point.w, low * own, high * own))

    def _upper_bound(self, point: InteriorIterate) -> float:
        w = point.w
        sigma = np.clip(point.x, 1e-12, 1.0)
        count = self.columns.movable.size
        plain = self.problem.selection.is_plain
        value = self._loss_and_violation(point)
        if value == np.inf:
            return value
        if count == 0:
            return value + float(self.regulariser.value(w).sum())
        if self.regulariser.is_ridge and plain and self.columns.ids.size == count + self.columns.inside.size:
            forced = self.columns.inside.size
            costs = np.concatenate([np.zeros(forced), self.penalty])
            room = count if self.polytope.u.size == 0 else round(float(self.polytope.u[0]))
            classes = np.empty(costs.size, np.int64)
            return value + float(phi(w, costs, forced, room, classes, np.empty(costs.size)))
        if plain and self.polytope.u.size:
            # A σ that is too large for the row is scaled down: then it is allowed, and its value an upper bound.
            sigma = sigma * min(1.0, float(self.polytope.u[0]) / float(sigma.sum()))
        else:
            over = self._row_violations(point.x)
            if over.max(initial=0.0) > FEASIBLE_VIOLATION:
                return np.inf
            value += 2.0 * float(np.abs(point.multipliers) @ over)
        own = np.ones(w.size)
        own[self.movable] = sigma[self.columns.atom[self.movable]]
        return value + float(self.regulariser.perspective(w, own).sum()) + float(self.penalty[:count] @ sigma[:count])

    def _loss_and_violation(self, point: InteriorIterate) -> float:
        """L, and what the rows over the weights that are broken by a little would cost; inf where it is much."""
        n = self.c.size
        margins = self.Z.times(point.w) + (self.y * point.b if self.problem.bias else 0.0)
        value = float(self.loss.value(margins[:n], self.c))
        if not len(self.sides):
            return value
        broken = self.sides.broken(margins[n:])
        if broken.max() > FEASIBLE_VIOLATION * max(1.0, float(np.abs(margins[n:]).max())):
            return np.inf
        return value + 2.0 * float(np.abs(point.alpha[n:]) @ broken)

    def _row_violations(self, x: Array) -> Array:
        """How far a point is outside of every row, (r,)."""
        short = self.polytope.A @ x - self.polytope.u
        return np.asarray(np.where(self.polytope.equal, np.abs(short), np.maximum(short, 0.0)))


def balance_classes(alpha: Array, y: Array) -> Array:
    """α with the heavier class scaled down to the weight of the other."""
    positive = y > 0
    up, down = float(alpha[positive].sum()), float(alpha[~positive].sum())
    least = min(up, down)
    return alpha * np.where(positive, least / max(up, 1e-300), least / max(down, 1e-300))
