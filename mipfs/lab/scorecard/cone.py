"""The relaxation of a node of points: weights w = aλ with λ in a box, for some scale a ≥ 0, and what it proves.

    K = {w : l_j a ≤ w_j ≤ u_j a for some a ≥ 0},   F(w, b) = ½ Σ (d_j w_j)² + L(y∘(Zw + b))

For α in the dual set of the loss (0 ≤ α ≤ top, y'α = 0 with an intercept) L(m) ≥ g(α) − α'm, so that with q = Z'(y∘α)/d

    min over K of F  ≥  g(α) + min over v in dK of ½‖v‖² − q'v  ≥  g(α) − ½‖q − p‖²

for every p with p'v ≤ 0 on dK, that is Σ max(d_j l_j p_j, d_j u_j p_j) ≤ 0; the best is q less its projection on dK. α
is on the dyadic grid, p is moved until that holds of sums that are rounded up, and what is left is rounded down.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from mipfs.errors import NumericalError
from mipfs.kernels.bound import U, rounded_down
from mipfs.losses.base import Loss
from mipfs.plumbing.arrays import Array
from mipfs.solvers import cones

Whole = npt.NDArray[np.int64]
Ends = Whole | Array

NEWTON_STEPS = 60
"""Of a smooth loss; a handful suffice."""
NEWTON_GAIN = 1e-13
"""Relative decrease below which Newton's method ends."""
ALIKE = 40
"""Binary digits of the largest total that tell totals apart where a scale is found for points."""
ORDINARY = 14
"""Numbers up to 2^±ORDINARY are given to the solver as they are, which it does not equilibrate beyond."""
LARGEST_NUMBER = 2**62
"""Of a row of columns."""
HALVINGS = 30
"""Of a Newton step."""


@dataclass(frozen=True, eq=False)
class Ground:
    """The samples and the columns that get points.

    Attributes
    ----------
    Z : (n, k) columns
    d : (k,) > 0, the term of the weight w_j is ½ (d_j w_j)²
    y : (n,) labels, -1.0 or +1.0
    c : (n,) weights of the samples in the loss
    loss : Loss
    bias : bool, whether there is an intercept
    """

    Z: Array
    d: Array
    y: Array
    c: Array
    loss: Loss
    bias: bool

    @classmethod
    def gather(cls, Z: Array, d: Array, y: Array, c: Array, loss: Loss, bias: bool) -> Ground:
        """Samples that are alike, with the sum of their weights."""
        return cls(Z, d, y, c, loss, bias).alike()[0]

    def alike(self) -> tuple[Ground, Whole]:
        """Samples that are alike, with the sum of their weights, and the place (n,) of every sample among them."""
        _, first, place = np.unique(
            numbered_rows(np.column_stack([self.Z, self.y])), return_index=True, return_inverse=True
        )
        sums = np.asarray(np.bincount(place, self.c, first.size), dtype=float)
        return Ground(np.ascontiguousarray(self.Z[first]), self.d, self.y[first], sums, self.loss, self.bias), place

    def over(self, columns: Whole) -> Ground:
        """These samples, in some of the columns."""
        return replace(self, Z=np.ascontiguousarray(self.Z[:, columns]), d=self.d[columns])

    def value(self, w: Array, b: float) -> float:
        """F(w, b)."""
        v = self.d * w
        return float(0.5 * (v @ v)) + self.loss.value(self.y * (self.Z @ w + b), self.c)

    def constant(self) -> Ground:
        """A column of zeros, alike samples gathered."""
        return self.gather(np.zeros((len(self.y), 1)), np.ones(1), self.y, self.c, self.loss, self.bias)

    def along(self, points: Whole) -> Ground:
        """The one column of totals of some points, alike samples gathered."""
        length = float(np.linalg.norm(self.d * points))
        totals = self.Z @ points
        # Totals that differ by rounding are alike: the objective is computed anew from the data.
        step = np.ldexp(1.0, int(np.frexp(np.abs(self.Z) @ np.abs(points))[1].max()) - ALIKE)
        totals = np.rint(totals / step) * step
        return self.gather(totals[:, None], np.array([length]), self.y, self.c, self.loss, self.bias)


def numbered_rows(rows: Array) -> Whole:
    """A number (n,) for every row (n, k), the same for rows that are the same, in the order of the rows."""
    found, count = np.zeros(len(rows), dtype=np.int64), 1
    for column in rows.T:
        ends = np.array([column.min(), column.max()])
        code = (column == ends[1]).astype(np.int64)
        if not np.all(code | (column == ends[0])):
            ends, code = np.unique(column, return_inverse=True)
        if count * ends.size > LARGEST_NUMBER:
            held, found = np.unique(found, return_inverse=True)
            count = held.size
        found, count = found * ends.size + code, count * ends.size
    return found


@dataclass(frozen=True, eq=False)
class ConeProof:
    """What a dual vector proves of every box: g(α) rounded down, q (k,), and how far off q may be (k,).

    `whole` (n,) and `shift` are the vector itself, α = whole · 2^−shift.
    """

    g: float
    q: Array
    off: Array
    shrink: float
    whole: Whole
    shift: int

    @classmethod
    def of(cls, ground: Ground, alpha: Array, gathered: int) -> ConeProof:
        """That of an approximate dual vector (n,); `gathered` samples stand behind the ground."""
        loss, c = ground.loss, ground.c
        top = loss.top(c)
        alpha = np.clip(alpha, 0.0, top)
        whole, shift = loss.feasible_dual(alpha, c, ground.y, ground.bias)
        alpha = np.ldexp(whole.astype(float), -shift)
        g = rounded_down(loss.dual_value(alpha, c), loss.dual_magnitude(alpha, c), alpha.size)
        signed = ground.y * alpha
        off = 2.0 * (alpha.size + 8) * U * (np.abs(ground.Z).T @ alpha) / ground.d
        q, shrink = ground.Z.T @ signed / ground.d, 4.0 * (gathered + 8) * U
        return cls(float(g) - loss.assumed_error(c), q, off, shrink, whole, shift)

    def over(self, columns: Whole) -> ConeProof:
        """What it proves over some of the columns."""
        return replace(self, q=self.q[columns], off=self.off[columns])

    def bound(self, d: Array, low: Whole, high: Whole) -> float:
        """A number below F on the cone of a box of points, which is never negative."""
        v = project_on_cone(self.q, d * low, d * high)
        p = in_polar(self.q - v, d, low, high)
        left = np.abs(self.q - p)
        left += self.off + 4.0 * U * (np.abs(self.q) + np.abs(p))
        squares = 0.5 * float(left @ left) * (1.0 + 4.0 * (left.size + 8) * U)
        bound = rounded_down(self.g - squares, abs(self.g) + squares, 2)
        return max(0.0, float(bound) * (1.0 - self.shrink)) if np.isfinite(bound) else 0.0


def is_free(low: Ends, high: Ends) -> bool:
    """Whether 0 is in the box: then the cone has no more than signs."""
    return bool(np.all((low <= 0) & (high >= 0)))


def project_on_cone(q: Array, low: Array, high: Array) -> Array:
    """The nearest v to q (k,) with low·a ≤ v ≤ high·a for some a ≥ 0."""
    if np.all((low <= 0) & (high >= 0)):
        return np.clip(q, np.where(low < 0, -np.inf, 0.0), np.where(high > 0, np.inf, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        turns = np.concatenate([q / low, q / high])
    turns = np.unique(np.append(turns[np.isfinite(turns) & (turns > 0.0)], 0.0))
    below, above = low * turns[:, None] - q, q - high * turns[:, None]
    slopes = np.maximum(below, 0.0) @ low - np.maximum(above, 0.0) @ high
    k = int(np.searchsorted(slopes, 0.0))  # of a convex function: they rise
    if k == 0:
        return np.zeros(q.size)
    a = turns[k - 1]
    if k < turns.size:
        rise = slopes[k] - slopes[k - 1]
        a += (turns[k] - a) * (-slopes[k - 1] / rise) if rise > 0.0 else 0.0
    else:  # behind the last turn the slope goes on as it does there
        beyond = a + 1.0
        steep = np.maximum(low * beyond - q, 0.0) @ low - np.maximum(q - high * beyond, 0.0) @ high - slopes[-1]
        a += -slopes[-1] / steep if steep > 0.0 else 0.0
    return np.clip(q, low * a, high * a)


def in_polar(p: Array, d: Array, low: Whole, high: Whole) -> Array:
    """A vector near p (k,) that has p'v ≤ 0 on the cone, for sure."""
    if is_free(low, high):
        return np.clip(p, np.where(low < 0, 0.0, -np.inf), np.where(high > 0, 0.0, np.inf))
    terms = d * np.maximum(low * p, high * p)
    most = float(terms.sum()) + 4.0 * (p.size + 8) * U * float(np.abs(terms).sum())
    if most <= 0.0:
        return p
    away = np.where(low > 0, low, np.where(high < 0, -high, 0)) * d
    j = int(np.argmax(away))
    moved = p.copy()
    # Every unit that p_j goes against the sign of the box takes at least away_j off the sum; twice covers all rounding.
    moved[j] -= np.sign(low[j] + high[j]) * 2.0 * (most / away[j] + 4.0 * U * abs(p[j]))
    return moved


def solve_cone(ground: Ground, low: Whole, high: Whole) -> tuple[Array, float, Array]:
    """w (k,), b and an approximate α (n,) of the least F on the cone of a box.

    Raises
    ------
    NumericalError
        The solver gave up.
    """
    method = _by_slacks if ground.loss.slack_degree else _by_newton
    z, unit = _column_scales_and_unit(ground)
    if max(abs(math.frexp(one)[1]) for one in (*z.tolist(), unit)) <= ORDINARY:
        return method(ground, low, high)
    # Over z_j w_j, of the objective divided by the unit: powers of two, so that it is the same program.
    near = replace(ground, Z=ground.Z / z, d=ground.d / z / math.sqrt(unit), c=ground.c / unit)
    share = z / z.max()
    w, b, alpha = method(near, low * share, high * share)
    return w / z, b, alpha * unit


def _column_scales_and_unit(ground: Ground) -> tuple[Array, float]:
    """Sizes z (k,) of the columns and a unit of the objective, powers of two (four) with which all numbers are near 1.

    Columns are at most about 1 and the terms of the weights no larger than the c_i, and the largest term is about 1.
    """
    own = np.maximum(np.abs(ground.Z).max(axis=0), ground.d / math.sqrt(float(ground.c.max())))
    z = np.ldexp(1.0, np.frexp(own)[1])
    return z, 4.0 ** math.frexp(float((ground.d / z).max()))[1]


def _box_rows(low: Ends, high: Ends) -> tuple[Any, int]:
    """Rows R with R(w, a) = 0, as many as is said, and R(w, a) ≤ 0 below them, (m, k + 1)."""
    k, free = low.size, is_free(low, high)
    one = sparse.eye_array(k, format="csr")
    same = low == high
    under, over = ((low == 0), (high == 0)) if free else (np.ones(k, bool), np.ones(k, bool))
    left = sparse.hstack([-one, sparse.csr_array(low[:, None].astype(float))], format="csr")
    right = sparse.hstack([one, sparse.csr_array(-high[:, None].astype(float))], format="csr")
    last = sparse.csr_array(([-1.0], ([0], [k])), shape=(1, k + 1))
    rows = sparse.vstack([left[same], left[under & ~same], right[over & ~same], last], format="csc")
    return rows, int(same.sum())


def _by_slacks(ground: Ground, low: Ends, high: Ends) -> tuple[Array, float, Array]:
    """The hinge losses as a quadratic program in (w, a, b, ξ)."""
    n, k = ground.Z.shape
    box, equal = _box_rows(low, high)
    m = box.shape[0]
    slack = sparse.eye_array(n, format="csc")
    signed = sparse.csc_array(np.column_stack([ground.y[:, None] * ground.Z, np.zeros(n), ground.y * ground.bias]))
    top = sparse.hstack([box, sparse.csc_array((m, 1 + n))])
    middle = sparse.hstack([-signed, -slack])
    bottom = sparse.hstack([sparse.csc_array((n, k + 2)), -slack])
    rows = sparse.csc_matrix(sparse.vstack([top, middle, bottom]))
    right = np.concatenate([np.zeros(m), -np.ones(n), np.zeros(n)])
    squared = ground.loss.slack_degree == 2
    idle = [float(is_free(low, high)), float(not ground.bias)]  # variables that say nothing stay at 0
    diagonal = np.concatenate([ground.d**2, idle, ground.c if squared else np.zeros(n)])
    costs = np.concatenate([np.zeros(k + 2), np.zeros(n) if squared else ground.c])
    answer = cones.conic_solution(
        sparse.csc_matrix(sparse.diags_array(diagonal)), costs, rows, right, _cone_dimensions(equal, rows.shape[0])
    )
    if answer is None:
        raise NumericalError("the relaxation of a node could not be solved; take a smaller C, or --scale standard")
    x, z = answer
    return x[:k], float(x[k + 1]) if ground.bias else 0.0, z[m : m + n]


def _cone_dimensions(equal: int, rows: int) -> dict[str, Any]:
    return {"zero": equal, "nonneg": rows - equal, "soc": [], "psd": [], "exp": 0}


def _by_newton(ground: Ground, low: Ends, high: Ends) -> tuple[Array, float, Array]:
    """A smooth loss: quadratic models, each minimised on the cone."""
    k = ground.d.size
    box, equal = _box_rows(low, high)
    rows = sparse.csc_matrix(sparse.hstack([box, sparse.csc_array((box.shape[0], 1))]))
    columns = np.column_stack([ground.Z, np.zeros(len(ground.y)), np.full(len(ground.y), float(ground.bias))])
    square = np.concatenate([ground.d**2, [float(is_free(low, high)), float(not ground.bias)]])
    u = np.zeros(k + 2)

    def value(u: Array) -> float:
        return ground.value(u[:k], float(u[k + 1]))

    now = value(u)
    alpha, curve = ground.loss.derivatives(ground.y * (columns @ u), ground.c)
    for _ in range(NEWTON_STEPS):
        model = (columns.T * curve) @ columns + np.diag(square)
        linear = -columns.T @ (ground.y * alpha) + square * u - model @ u
        answer = cones.conic_solution(
            sparse.csc_matrix(sparse.triu(model)),
            linear,
            rows,
            np.zeros(rows.shape[0]),
            _cone_dimensions(equal, rows.shape[0]),
        )
        if answer is None:
            break
        step = answer[0] - u
        for halving in range(HALVINGS):
            tried = u + step * 0.5**halving
            found = value(tried)
            if found < now:
                break
        else:
            break
        gain, u, now = now - found, tried, found
        alpha, curve = ground.loss.derivatives(ground.y * (columns @ u), ground.c)
        if gain <= NEWTON_GAIN * abs(now):
            break
    return u[:k], float(u[k + 1]) * ground.bias, alpha
