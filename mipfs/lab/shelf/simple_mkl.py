"""SimpleMKL (Rakotomamonjy, Bach, Canu, Grandvalet 2008, Algorithm 1) over a pool of linear kernels.

    min over μ ∈ simplex of J(μ) = v(Σ_t μ_t σᵗ) = max over α ≥ 0 of g(α) − ½ Σ_t μ_t ‖ω_t(α)‖²,
    ∂J/∂μ_t = −½ ‖ω_t(α)‖²

The solver of the restricted problem in Tan 2010, section 2.3: a reduced gradient on μ with an SVM by LIBLINEAR
(squared hinge, no bias) for every value of J. It is kept as the peer of 2010, in a strong form: the line search
follows the slope of J, which every SVM gives away, where golden sections took three to five times as many SVMs.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from mipfs.atoms import AtomColumns
from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.plumbing.arrays import Array, Integers

FLAT_SLOPE_SHARE = 0.1
"""A line search ends where the slope is this share of the first one."""
LINE_STEPS = 40
"""SVMs of one line search at most: by then the step is as short as rounding."""
ROUNDING_SHARE = 1e-13
"""A component of the direction below this share of the slope is rounding, not descent."""
TIGHTEST_TOLERANCE = 1e-12
"""LIBLINEAR's tolerance is lowered to this, tenfold at a time, where the descent stalls for want of accuracy."""


@dataclass(frozen=True, eq=False)
class Mixture:
    """What SimpleMKL found.

    Attributes
    ----------
    mu : (T,) ndarray, in the simplex
    columns : (k,) ndarray of int64, the columns that some kernel of the pool holds
    w : (k,) ndarray, their weights in the predictor x ↦ w'x
    alpha : (n,) ndarray >= 0, a dual vector
    objective : float, ½(Σ_t ‖w_t‖)² + L at w (Tan 2014, (31))
    bound : float, g(α) − ½ max_t ‖ω_t(α)‖² (Tan 2014, (35) corrected): no mixture is better
    svms : int, SVMs that LIBLINEAR solved
    seconds : float
    """

    mu: Array
    columns: Integers
    w: Array
    alpha: Array
    objective: float
    bound: float
    svms: int
    seconds: float

    @property
    def gap(self) -> float:
        """(objective − bound) / max(1e-10, |objective|)."""
        return (self.objective - self.bound) / max(1e-10, abs(self.objective))


def simple_mkl(
    data: Instance,
    pool: Sequence[Sequence[int] | Integers | AtomColumns],
    C: float,
    *,
    gap: float = 1e-4,
    svm_limit: int | None = None,
    time_limit: float | None = None,
    svm_tol: float = 1e-3,
    newton: bool = False,
    start: Array | None = None,
    seed: int = 0,
    stop: Callable[[], bool] | None = None,
) -> Mixture:
    """Mix the kernels of a pool of selections: squared hinge (C/2) Σ max(0, 1 − m_i)², no bias.

    Parameters
    ----------
    data : Instance
    pool : sequence of T selections
        Each the positions of its columns, or the `AtomColumns` of its atoms (with their scales).
    C : float > 0
        Sample i has C_i = C * sample_weight_i.
    gap : float
        Relative duality gap at which to stop.
    svm_limit : int, optional
    time_limit : float, optional, in seconds
    svm_tol : float
        First tolerance of LIBLINEAR; it is tightened where the descent stalls.
    newton : bool, default False
        False: LIBLINEAR's dual coordinate descent, that of the paper. True: its Newton method on the primal, by far
        the faster one where there are more samples than columns.
    start : (T,) array of numbers >= 0, not all zero, optional
        μ to begin with, divided by its sum; default 1/T each.
    seed : int
        Of LIBLINEAR's coordinate order.
    stop : callable, optional, asked between descents whether to stop

    Returns
    -------
    Mixture
        Of the smallest objective and the largest bound met.

    Raises
    ------
    UsageError
        An empty pool, C that is not positive, or a start that is no mixture.
    """
    if not len(pool) or not (np.isfinite(C) and C > 0):
        raise UsageError(f"{len(pool)} kernels and C = {C!r}; give at least one kernel and a positive number")
    run = _Run(data, pool, C, svm_tol, newton, seed)
    first = np.ones(len(pool)) if start is None else np.asarray(start, dtype=float)
    if first.shape != (len(pool),) or not np.all(np.isfinite(first) & (first >= 0)) or not first.sum() > 0:
        raise UsageError(f"start of shape {first.shape}; give {len(pool)} numbers >= 0 that are not all zero")
    at = run.solve(first / first.sum())
    while run.best.gap > gap and not run.spent(svm_limit, time_limit) and not (stop is not None and stop()):
        step = _descend_once(run, at)
        if step is not None:
            at = step
        elif run.svm_tol > TIGHTEST_TOLERANCE:
            run.svm_tol *= 0.1
            at = run.solve(at.mu)
        else:
            break
    return run.best


@dataclass(frozen=True, eq=False)
class _Point:
    """μ, J(μ) and its gradient."""

    mu: Array
    value: float
    slope: Array


def _reduced_gradient(at: _Point) -> Array:
    """The steepest descent direction that keeps Σμ = 1 and lowers no μ_t that is zero (their section 3.2)."""
    largest = int(np.argmax(at.mu))
    direction: Array = at.slope[largest] - at.slope
    direction[(at.mu <= 0.0) & (direction < 0.0)] = 0.0
    direction[largest] = 0.0
    direction[largest] = -direction.sum()
    return direction


def _descend_once(run: _Run, start: _Point) -> _Point | None:
    """One iteration: to the boundary as long as J falls there, then a line search; None where J does not fall."""
    at = start
    direction = _reduced_gradient(start)
    noise = ROUNDING_SHARE * float(np.abs(start.slope).max())
    while np.any(direction < -noise):
        falling = np.flatnonzero(direction < -noise)
        ratios = -at.mu[falling] / direction[falling]
        first = int(falling[np.argmin(ratios)])
        longest = float(ratios.min())
        corner = run.solve(_move_on_simplex(at.mu, direction, longest, first))
        if corner.value >= at.value:
            return _line_search(run, at, direction, longest) or (at if at is not start else None)
        at = corner
        direction[int(np.argmax(at.mu))] += direction[first]
        direction[first] = 0.0
    return at if at is not start else None


def _line_search(run: _Run, start: _Point, direction: Array, longest: float) -> _Point | None:
    """A point short of the boundary where the convex J is lower and nearly flat; None where it falls nowhere."""
    slope = first = float(start.slope @ direction)
    low = 0.0
    high = longest
    slope_high = 0.0
    best = None
    for _ in range(LINE_STEPS if first < 0.0 else 0):
        share = 0.5 if slope_high <= 0.0 else min(max(slope / (slope - slope_high), 0.05), 0.95)
        step = low + share * (high - low)
        at = run.solve(_move_on_simplex(start.mu, direction, step))
        slope_at = float(at.slope @ direction)
        if at.value < (start if best is None else best).value:
            best = at
        if best is not None and abs(slope_at) <= FLAT_SLOPE_SHARE * -first:
            break
        if slope_at < 0.0:
            low = step
            slope = slope_at
        else:
            high = step
            slope_high = slope_at
    return best


def _move_on_simplex(mu: Array, direction: Array, step: float, zero: int | None = None) -> Array:
    """μ + step·direction, back in the simplex after rounding; component `zero` has reached the boundary."""
    moved = np.maximum(mu + step * direction, 0.0)
    if zero is not None:
        moved[zero] = 0.0
    return np.asarray(moved / moved.sum())


class _Run:
    """The SVMs of one run. Σ_t μ_t K_t is the kernel of √σ∘x with σ = P'μ, over the columns that the pool holds."""

    def __init__(
        self,
        data: Instance,
        pool: Sequence[Sequence[int] | Integers | AtomColumns],
        C: float,
        svm_tol: float,
        newton: bool,
        seed: int,
    ) -> None:
        self.began = time.perf_counter()
        self.svm_tol = svm_tol
        self.newton = newton
        self.seed = seed
        self.svms = 0
        self.y = data.y
        self.c = C * data.sample_weight
        parts = [one if isinstance(one, AtomColumns) else _unscaled_columns(one) for one in pool]
        self.columns, place = np.unique(np.concatenate([part.ids for part in parts]), return_inverse=True)
        kernel = np.repeat(np.arange(len(parts)), [part.ids.size for part in parts])
        shares = np.square(np.concatenate([part.scale for part in parts]))
        self.shares = sparse.csr_array((shares, (kernel, place)), shape=(len(parts), self.columns.size))
        block = data.block(self.columns)
        stays = block.is_sparse and not block.is_centred
        self.X: Any = sparse.csr_array(block.values) if stays else np.ascontiguousarray(block.dense())
        nothing = np.zeros(self.columns.size)
        zero = np.zeros(self.y.size)
        worst = 0.5 * float(self.c.sum())  # w = 0 and α = 0
        self.best = Mixture(np.full(len(parts), 1.0 / len(parts)), self.columns, nothing, zero, worst, 0.0, 0, 0.0)

    def spent(self, svm_limit: int | None, time_limit: float | None) -> bool:
        """Whether a limit stops the run."""
        late = time_limit is not None and time.perf_counter() - self.began >= time_limit
        return bool(late or (svm_limit is not None and self.svms >= svm_limit))

    def solve(self, mu: Array) -> _Point:
        """J and its gradient at μ by one SVM; keeps the best objective and bound."""
        sigma = np.asarray(self.shares.T @ mu)
        root = np.sqrt(sigma)
        w = root * self._weights_of_svm(root)
        hinge = np.maximum(0.0, 1.0 - self.y * (self.X @ w))
        alpha = self.c * hinge
        loss = 0.5 * float(self.c @ np.square(hinge))
        ratio = np.divide(w, sigma, out=np.zeros(w.size), where=sigma > 0.0)
        norms = mu * np.sqrt(self.shares @ np.square(ratio))
        squares = np.asarray(self.shares @ np.square(self.X.T @ (alpha * self.y)))
        bound = float(np.sum(alpha - alpha * hinge / 2.0)) - 0.5 * float(squares.max())
        objective = 0.5 * float(norms.sum()) ** 2 + loss
        best = self.best
        self.svms = self.svms + 1
        if objective < best.objective:
            best = replace(best, mu=mu, w=w, objective=objective)
        if bound > best.bound:
            best = replace(best, alpha=alpha, bound=bound)
        self.best = replace(best, svms=self.svms, seconds=time.perf_counter() - self.began)
        return _Point(mu, 0.5 * float(ratio @ w) + loss, -0.5 * squares)

    def _weights_of_svm(self, root: Array) -> Array:
        """The weights of LIBLINEAR's SVM on √σ∘x, shape (k,)."""
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.svm import LinearSVC

        svm = LinearSVC(
            loss="squared_hinge",
            dual=not self.newton,
            fit_intercept=False,
            C=0.5,  # LIBLINEAR's loss is C Σ ξ², ours (C/2) Σ ξ²
            tol=self.svm_tol,
            max_iter=100_000,
            random_state=self.seed,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the gap says how far it came
            svm.fit(self.X * root[None, :], self.y, sample_weight=self.c)
        return np.asarray(svm.coef_[0])


def _unscaled_columns(ids: Sequence[int] | Integers) -> AtomColumns:
    """Columns with the scale 1."""
    chosen = np.asarray(ids, dtype=np.int64)
    return AtomColumns(chosen, np.zeros(chosen.size, dtype=np.int64), np.ones(chosen.size))
