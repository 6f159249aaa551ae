"""LPSVM by the Newton method of Fung and Mangasarian (2004): the ℓ1 SVM for far more features than samples.

The linear program is ONSVM's, min ‖w‖₁ + Σ_i C_i ξ_i with y_i (w'x_i + b) + ξ_i ≥ 1, ξ ≥ 0 (theirs writes ν for C and
−γ for b). Its dual, max Σα with |ω_j(α)| ≤ 1, y'α = 0, 0 ≤ α ≤ C, ω = X'(α∘y), becomes one unconstrained problem by a
quadratic penalty on every constraint:

    min over α   φ(α) = −ε Σα + ½ ‖(|ω(α)| − 1)₊‖² + ½ (y'α)² + ½ ‖(α − C)₊‖² + ½ ‖(−α)₊‖²

For all ε up to some ε̄ > 0 the minimiser gives a solution of the program itself, and exactly, the one of least 2-norm
(here of the columns of norm 1):

    w = sign(ω) (|ω| − 1)₊ / ε,   b = y'α / ε,   ξ = (α − C)₊ / ε

φ is piecewise quadratic and has one matrix of n × n: generalised Newton steps end after finitely many.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.data.block import Block
from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.inner.watch import balance_classes
from mipfs.lab.baselines.linear import BaselineDescription, Linear, check_size, check_weight, linear, plain_svm
from mipfs.lab.baselines.one_norm import first_weight, hinge_value, of_size
from mipfs.lab.baselines.onsvm import onsvm_of_size
from mipfs.plumbing.arrays import Array
from mipfs.plumbing.machine import one_blas_thread

ABOUT = BaselineDescription(
    what="the ℓ1-norm SVM by Newton's method, its weight searched for M, and the SVM on its features",
    source="Fung and Mangasarian 2004; Paul 2016",
    sparse="yes",
    limits="a matrix of samples by samples; with more samples than features HiGHS",
    library="own, NumPy; HiGHS",
    uses_c=False,
)
EPSILON, EPSILON_FACTOR, LEAST_EPSILON = 0.1, 0.1, 1e-9
"""The first ε, its factor from one minimisation to the next, and the smallest one that is tried."""
MOST_STEPS = 200
"""Newton steps of one minimisation at most."""
RELATIVE_RIDGE = 1e-12
"""Added to the diagonal of Newton's matrix, as a share of its largest entry, from which it grows where it fails."""
STILL_RESIDUAL, POLISH_STEPS = 1e-9, 2
"""Largest residual of the program's rows, ‖∇φ‖∞/ε, at which a minimisation ends, and further steps that then take off
its round-off."""
NOISE_SHARE = 1e-12
"""A column whose variance is below this share of its mean square is constant but for round-off."""
ZERO_SHARE = 1e-7
"""A weight below this share of the largest is a zero."""
MAX_SAMPLES, SEARCHED_SAMPLES = 8_000, 500
"""The most samples, of which Newton's matrix takes half a gigabyte and some seconds a step; and the most in a search,
which takes some thousands of steps, each a hundredth of a second."""


def lpsvm(data: Instance, C: float, *, bias: bool = True, tol: float = 1e-6) -> Linear:
    """Solve at one C by Newton's steps, ε falling until the duality gap of the linear program closes.

    Parameters
    ----------
    data : Instance
    C : float > 0
        Sample i has C_i = C * sample_weight_i.
    bias : bool, default True
        Whether b is free; without it f(x) = w'x, and φ has no (y'α)².
    tol : float > 0
        Relative gap between the program's value at (w, b) and that of a dual vector, at which ε is small enough. Below
        ε̄ the minimiser is linear in ε, so that the dual vector at ε = 0 is the line through the last two.

    Returns
    -------
    Linear
        With the program's objective, and no bound.

    Raises
    ------
    UsageError
        C out of its range, or too many samples.

    Warns
    -----
    ConvergenceWarning
        The gap did not close.

    Source: Fung and Mangasarian 2004, sections 3 and 4. ε falls from one minimisation to the next, where they choose
    it once, and an exact line search replaces Armijo's.
    """
    from sklearn.exceptions import ConvergenceWarning

    check_weight(C)
    penalty = _Penalty(data, float(C) * data.sample_weight, bias)
    last = alpha = np.zeros(data.n_samples)
    epsilon = EPSILON
    best = penalty.at_zero()
    done = True
    with one_blas_thread():  # the matrices are small: threads would wait for each other
        while best.gap > tol and epsilon >= LEAST_EPSILON and done:
            last = alpha
            (alpha, done) = penalty.minimise(alpha, epsilon)
            best = min(best, penalty.solution(alpha, last, epsilon), key=lambda found: found.gap)
            epsilon *= EPSILON_FACTOR
    if best.gap > tol:
        warnings.warn(f"LPSVM stopped at a gap of {best.gap:.1e}", ConvergenceWarning, stacklevel=2)
    ids = np.flatnonzero(best.w)
    return linear(data, ids, best.w[ids], best.b, float(C), objective=best.value)


@dataclass(frozen=True, eq=False)
class _Solution:
    w: Array
    b: float
    value: float
    gap: float


class _Penalty:
    """φ of one program in units of its own: columns of norm 1, α = t / (the largest norm), |ω_j(t)| ≤ end_j."""

    def __init__(self, data: Instance, c: Array, bias: bool) -> None:
        n = data.n_samples
        if n > MAX_SAMPLES:
            raise UsageError(
                f"LPSVM by Newton's method factors a matrix of {n} x {n}, {8e-9 * n * n:.0f} GB; "
                f"beyond {MAX_SAMPLES} samples take the baseline onsvm, the same program by HiGHS"
            )
        self.data = data
        self.bias = bias
        self.c = c
        Z = data.block().values
        means = data.block().means()
        squares = np.asarray(Z.power(2).sum(axis=0) if data.is_sparse else np.einsum("ij,ij->j", Z, Z))
        # A free b carries the means; taken off, they cannot drown the columns (and sparse ones stay sparse).
        self.off = means if bias else data.center
        squares = np.maximum(squares + n * self.off * (self.off - 2.0 * means), NOISE_SHARE * squares)
        self.block = Block(Z, self.off)
        self.norms = np.sqrt(np.where(squares > 0.0, squares, 1.0))
        self.size = 1.0 / float(self.norms.max())
        self.box, self.end = c / self.size, 1.0 / (self.norms * self.size)

    def omega(self, t: Array) -> Array:
        """ω(t) of the columns of norm 1, (p,)."""
        return np.asarray(self.block.pull(t * self.data.y) / self.norms)

    def _signed_scores(self, u: Array) -> Array:
        """y∘(X u) of the columns of norm 1, (n,)."""
        return np.asarray(self.data.y * self.block.scores(u / self.norms))

    def gradient(self, t: Array, omega: Array, epsilon: float) -> Array:
        """∇φ(t)."""
        excess = np.sign(omega) * np.maximum(np.abs(omega) - self.end, 0.0)
        g = self._signed_scores(excess) + np.maximum(t - self.box, 0.0) - np.maximum(-t, 0.0) - epsilon
        return np.asarray(g + self.data.y * float(self.data.y @ t) if self.bias else g)

    def minimise(self, alpha: Array, epsilon: float) -> tuple[Array, bool]:
        """Generalised Newton steps from α; whether they came to an end before `MOST_STEPS`."""
        t = alpha / self.size
        omega = self.omega(t)
        polished = 0
        for _ in range(MOST_STEPS):
            g = self.gradient(t, omega, epsilon)
            polished += float(np.abs(g).max()) <= STILL_RESIDUAL * epsilon
            if polished > POLISH_STEPS:
                return t * self.size, True
            step = -self._solve(t, omega, g)
            along = self.omega(step)
            length = self._exact_step_length(t, omega, step, along, epsilon)
            if length <= 0.0:  # as far as round-off lets it
                return t * self.size, True
            t = t + length * step
            omega = omega + length * along
        return t * self.size, False

    def _solve(self, t: Array, omega: Array, g: Array) -> Array:
        """Newton's direction: Z_A Z_A' + yy' + diag(outside the box) + ridge, A the features with |ω| > 1."""
        from scipy.linalg import LinAlgError, cho_factor, cho_solve

        y = self.data.y
        H = self._active_gram(np.flatnonzero(np.abs(omega) > self.end))
        H *= np.outer(y, y)
        if self.bias:
            H += np.outer(y, y)
        H[np.diag_indices_from(H)] += ((t > self.box) | (t < 0.0)).astype(float)
        top = float(H.diagonal().max(initial=0.0)) or 1.0
        ridge = RELATIVE_RIDGE
        while True:
            H[np.diag_indices_from(H)] += ridge * top
            try:
                return np.asarray(cho_solve(cho_factor(H), g))
            except LinAlgError:
                ridge *= 100.0

    def _active_gram(self, ids: npt.NDArray[np.int64]) -> Array:
        """Z_A Z_A' of the columns of norm 1, (n, n)."""
        Z: Any = self.data.block(ids).values
        off = self.off[ids] / self.norms[ids]
        norms = self.norms[ids]
        if not self.data.is_sparse:
            Z = Z / norms - off
            return np.asarray(Z @ Z.T)
        Z = Z / norms[None, :]
        one = np.asarray(Z @ off)
        return np.asarray((Z @ Z.T).toarray() + (float(off @ off) - one[:, None] - one[None, :]))

    def _exact_step_length(self, t: Array, omega: Array, step: Array, along: Array, epsilon: float) -> float:
        """The minimiser of φ along a step: its slope is increasing and piecewise linear in the length."""
        end, bent = self.end, self.bias * float(self.data.y @ step)
        base = self.bias * float(self.data.y @ t)

        def slope(length: float) -> tuple[float, float]:
            x = t + length * step
            o = omega + length * along
            over = np.abs(o) > end
            above = x > self.box
            below = x < 0.0
            value = float(along[over] @ (o[over] - np.sign(o[over]) * end[over])) + bent * (base + length * bent)
            value += float(step[above] @ (x - self.box)[above]) + float(step[below] @ x[below])
            curve = float(along[over] @ along[over]) + bent * bent + float(step[above | below] @ step[above | below])
            return value - epsilon * float(step.sum()), curve

        low = 0.0
        high = np.inf
        length = 1.0
        first = slope(0.0)[0]
        if first >= 0.0:
            return 0.0
        for _ in range(60):
            value, curve = slope(length)
            if abs(value) <= 1e-14 * abs(first):
                break
            low, high = (length, high) if value < 0.0 else (low, length)
            new = length - value / curve if curve > 0.0 else np.inf
            inside = low < new < high
            length = new if inside else (0.5 * (low + high) if np.isfinite(high) else 4.0 * length)
        return length

    def at_zero(self) -> _Solution:
        """w = 0, which the balanced multiple of C proves where C is small."""
        alpha = balance_classes(self.c, self.data.y) if self.bias else self.c
        return self._evaluate_solution(
            np.zeros(self.data.n_features), self._central_intercept(np.zeros(self.data.n_samples)), alpha
        )

    def solution(self, alpha: Array, last: Array, epsilon: float) -> _Solution:
        """The solution of the program that α gives, and its gap; `last` is the α of the ε before."""
        t = alpha / self.size
        omega = self.omega(t)
        w = np.sign(omega) * np.maximum(np.abs(omega) - self.end, 0.0) / (epsilon * self.norms)
        sizes = np.abs(w) * self.norms
        w[sizes <= ZERO_SHARE * sizes.max(initial=0.0)] = 0.0
        b = float(self.data.y @ t) / epsilon + float((self.data.center - self.off) @ w) if self.bias else 0.0
        ends = alpha if epsilon == EPSILON else (alpha - EPSILON_FACTOR * last) / (1.0 - EPSILON_FACTOR)
        return self._evaluate_solution(w, b, np.clip(ends, 0.0, self.c))

    def _central_intercept(self, f: Array) -> float:
        from mipfs.losses.hinge import central_intercept

        return central_intercept(f, self.data.y, self.c) if self.bias else 0.0

    def _evaluate_solution(self, w: Array, b: float, alpha: Array) -> _Solution:
        ids = np.flatnonzero(w)
        value = float(np.abs(w).sum()) + hinge_value(self.data, self.c, ids, w[ids], b)
        dual = balance_classes(alpha, self.data.y) if self.bias else alpha
        omega = self.data.block().pull(dual * self.data.y)
        proven = float(dual.sum()) / max(1.0, float(np.abs(omega).max()))
        return _Solution(w, b, value, (value - proven) / max(1e-300, abs(value)))


def lpsvm_of_size(data: Instance, M: int, *, bias: bool = True, tol: float = 1e-6) -> Linear:
    """The LPSVM with M features, by bisection of C.

    Paul 2016 cannot control their number and takes what comes out; Tan 2010 counts what is left at each C.

    Parameters
    ----------
    data, bias, tol : as in `lpsvm`
    M : int in 1 … p

    Returns
    -------
    Linear
        On M features; the search and its exceptions are those of `mipfs.lab.baselines.onsvm.onsvm_of_size`. With more
        samples than features, or than 500, it is that function's, whose program is the same: Newton's matrix, of the
        samples' order, is for few samples of many features.

    Raises
    ------
    UsageError
        M out of its range.
    """
    from sklearn.exceptions import ConvergenceWarning

    check_size(M, data.n_features)
    if data.n_samples > min(data.n_features, SEARCHED_SAMPLES):
        return onsvm_of_size(data, M, bias=bias)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a count of features needs no more
        return of_size(lambda C: lpsvm(data, C, bias=bias, tol=tol), int(M), 2.0 * first_weight(data), data.scale)


def fit(data: Instance, M: int, C: float = 1.0, *, bias: bool = True, seed: int = 0) -> Linear:
    """The features of `lpsvm_of_size`, and the hinge SVM of weight C on them: Paul 2016, too, fits anew."""
    check_weight(C)
    return plain_svm(data, lpsvm_of_size(data, M, bias=bias).ids, C, bias, "hinge")
