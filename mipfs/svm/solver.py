"""The SVM on selected columns of one instance, for every pointwise loss: buffers, warm starts, both values.

    v(σ) = min over w, b of ½ Σ w_j²/σ_j + L(y∘(Xw + b)) = max over α ∈ A of g(α) − ½ Σ σ_j ω_j(α)²

A loss adds the minimisation itself (`SvmSolver.minimise`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from mipfs.data.block import Block
from mipfs.data.instance import Instance
from mipfs.data.matrix import by_label, refine_kinds
from mipfs.plumbing.arrays import Array, Integers
from mipfs.svm.projection import project

if TYPE_CHECKING:
    from mipfs.svm.labellings import LabellingsDual


U = 2.0**-53
"""Unit roundoff."""

DENSE_ROWS_ABOVE = 0.3
"""Share of stored entries above which selected sparse columns are worked on as dense ones."""
MERGE_ABOVE, MERGE_BELOW = 500, 0.5
"""Sparse samples from which on equal ones are looked for, and the share of kinds that is worth it: a few 0/1 columns
leave some dozens of kinds."""
WARM_RHO_SHARE = 1e-3
"""A warm start begins at this share of the last step ρ, which was made for the end: at 1e-2 an SVM beside the last one
takes up to three times the steps (w8a 32 for 11, usps 60 for 37), at 0.1 up to ten times, at 1e-4 as many."""
FIRST_RHO_OF_ROWS = 100.0
"""ρ of a cold start through the mean of ‖a_i‖² where there are as many weights as samples: those are separable mostly,
and their multipliers are like 1/‖a_i‖², however large C."""
MOST_ATTEMPTS, RESTART_ATTEMPT = 6, 3
"""Attempts at the asked gap, each ten times tighter; at number RESTART_ATTEMPT the warm start is thrown away."""


CALL_NUMBERS = 5e7
"""Numbers of the data, times steps, that a call of a kernel may take: a tenth of a second or two."""


def steps_per_call(most: int, numbers: int) -> int:
    """Newton steps of one call of a kernel on data of `numbers` numbers: limits are heard between two calls."""
    return int(max(1, min(most, CALL_NUMBERS // max(1, numbers))))


@dataclass(frozen=True, eq=False)
class SVM:
    """A solved SVM on selected columns.

    Attributes
    ----------
    w : (k,) weights of the selected columns (of the predictor, on the scaled data)
    b : float, the intercept (on centred columns)
    alpha : (n,) dual vector, feasible exactly (see `mipfs.svm.dyadic`)
    primal, dual : float, values recomputed from w, b and from alpha
    rho : float, last step of the method (a warm start begins near it)
    steps : int, Newton steps
    q : int, of the grid 2^−q of alpha
    combination : LabellingsDual, optional
        Of the structural loss: the labellings that `alpha` = y∘v was made of, and g, which alpha does not tell.
    """

    w: Array
    b: float
    alpha: Array
    primal: float
    dual: float
    rho: float
    steps: int
    q: int = 0
    combination: LabellingsDual | None = None

    @property
    def gap(self) -> float:
        """(primal − dual) / |primal|; 0 where the dual value is no less."""
        return (self.primal - self.dual) / abs(self.primal) if self.primal > self.dual else 0.0


class SvmSolver(ABC):
    """The SVM on any columns of one instance.

    Parameters
    ----------
    loss : mipfs.losses.base.Loss, which knows the solver that takes it
    data : Instance
    c : (n,) loss weights
    bias : bool, whether b is free (else b = 0)

    Notes
    -----
    Dense columns are gathered row by row into a buffer that is kept; a call allocates vectors of
    n and of the support's size only. They are centred there when the bias is free: that only shifts b,
    and keeps columns of large mean well-conditioned. Sparse columns are read as CSR and stay sparse,
    except where most of their entries are stored anyway, and where a centre must be taken off without a
    bias to carry it.
    """

    def __init__(self, loss: Any, data: Instance, c: Array, bias: bool) -> None:
        self.loss = loss
        self.data = data
        self.c = np.ascontiguousarray(c, dtype=float)
        self.bias = bias
        self._buffer = np.empty(0)
        self._taken_off = ColumnShift(data, bias)
        self._classes = [np.flatnonzero(data.y == sign) for sign in (1.0, -1.0)]
        # The kernels see weights c/‖c‖∞ and columns √‖c‖∞ x: the same problem divided by ‖c‖∞, whatever its size.
        self.size = float(self.c.max())
        self.unit_c = self.c / self.size
        self.must_stop: Callable[[], bool] = bool  # never
        self.enough = np.inf  # a dual value from which on the caller asks for no more
        self.until = np.inf  # the same for the kernels, in their units

    @abstractmethod
    def minimise(
        self, A: Any, c: Array, k: int, u: Array, alpha: Array, *, rho: float, tol: float, careful: bool
    ) -> tuple[float, int]:
        """Minimise ½‖u_w‖² + L(Au) with weights c over u, in place; returns the last step and the steps.

        It may end where the dual value reaches `until`.
        """

    def start(self) -> tuple[Array, float]:
        """α (for the weights `unit_c`) and ρ of a cold start: what is smoothed, over a width of 2."""
        return np.zeros(self.data.n_samples), 0.5

    def solve(
        self,
        ids: Integers,
        sigma: Array | None = None,
        *,
        tol: float = 1e-7,
        start: tuple[Array, float, Array, float] | None = None,
    ) -> SVM:
        """Solve on the columns `ids`.

        Parameters
        ----------
        ids : (k,) positions of the columns
        sigma : (k,) weights in (0, 1] of the perspective form; ones by default
        tol : relative gap to reach, between the recomputed values
        start : (w, b, alpha, rho), optional
            Warm start: weights of `ids`, intercept, dual vector and step of an earlier solve.

        Returns
        -------
        SVM
        """
        ids = np.asarray(ids, dtype=np.int64)
        # The kernels see columns √σ∘x, so that ½‖u‖² is ½ Σ w_j²/σ_j.
        root = np.full(ids.size, np.sqrt(self.size)) if sigma is None else np.sqrt(self.size * sigma)
        A, shift = kernel_rows(self.data, ids, root, self._taken_off, self.bias, self.bias, self._row_buffer)
        k = ids.size
        rows, c, kind, signs = self._distinct_rows(A, ids)
        cold = rows, c.size, k
        u, alpha, rho = self._cold_start(*cold) if start is None else self._warm_start(root, shift, start)
        best = None
        steps = 0
        for attempt in range(MOST_ATTEMPTS):
            if attempt == RESTART_ATTEMPT:
                u, alpha, rho = self._cold_start(*cold)
            goal = max(tol * 0.1**attempt, 1e-15)
            self.until = self.enough / self.size if attempt == 0 else np.inf
            own = alpha if kind is None else np.bincount(kind, alpha).astype(float)
            careful = attempt >= RESTART_ATTEMPT
            rho, taken = self.minimise(rows, c, k, u, own, rho=rho, tol=goal, careful=careful)
            if kind is not None:  # shared out by the weights, which is optimal
                if self.bias:  # of the kinds, which are few, not of all samples (`feasible_dual`)
                    own = project(own, self.loss.top(c), signs, True, c)
                alpha[:] = self.unit_c * (own / c)[kind]
            steps = steps + taken
            if not (np.all(np.isfinite(u)) and np.all(np.isfinite(alpha))):
                u, alpha, rho = self._cold_start(*cold)
            found = self._evaluate_rounded(A, ids, u, alpha, root, shift, rho, steps)
            if best is None or found.gap < best.gap:
                best = found
            if best.gap <= tol or best.dual >= self.enough or self.must_stop():
                break
        assert best is not None
        return best

    def _distinct_rows(self, A: Any, ids: Integers) -> tuple[Any, Array, Integers | None, Array]:
        """Rows and weights to minimise over, one row of every kind where sparse samples are alike on the columns.

        Returns
        -------
        rows : as A, with m rows
        c : (m,) weights, sums over the samples of a kind
        kind : (n,) the kind of every sample, or None where every sample is on its own
        signs : (m,) labels; samples of both are never alike
        """
        from mipfs.kernels.rows import rows_at

        data = self.data
        if not data.is_sparse or data.n_samples < MERGE_ABOVE or ids.size == 0:
            return A, self.unit_c, None, data.y
        kind: npt.NDArray[Any] = np.empty(data.n_samples, np.int32)
        part = data.block(ids).values
        first, _ = refine_kinds(part, kind, by_label(data.y, kind), int(MERGE_BELOW * data.n_samples))
        if first.size == 0:
            return A, self.unit_c, None, data.y
        c = np.bincount(kind, self.unit_c).astype(float)
        return rows_at(A, first) if isinstance(A, tuple) else A[first], c, kind, data.y[first]

    def _row_buffer(self, size: int) -> Array:
        """The buffer of dense rows, grown where it is too small."""
        if self._buffer.size < size:
            self._buffer = np.empty(size)
        return self._buffer

    def _cold_start(self, rows: Any, n: int, k: int) -> tuple[Array, Array, float]:
        """u, α and ρ of n rows of k weights, from nothing."""
        alpha, rho = self.start()
        return np.zeros(k + int(self.bias)), alpha, min(rho, _gentle_rho(rows, n, k))

    def _warm_start(
        self, root: Array, shift: Array, start: tuple[Array, float, Array, float]
    ) -> tuple[Array, Array, float]:
        w, b, alpha, last = start
        u = np.zeros(w.size + int(self.bias))
        np.divide(w, root, out=u[: w.size], where=root > 0.0)  # a column of scale 0 has no weight
        if self.bias:
            u[-1] = b - float(shift @ w)
        return u, alpha / self.size, max(WARM_RHO_SHARE * last, min(self.start()[1], last))

    def _evaluate_rounded(
        self, A: Any, ids: Integers, u: Array, alpha: Array, root: Array, shift: Array, rho: float, steps: int
    ) -> SVM:
        """Round the dual vector to a feasible one and evaluate both sides."""
        from mipfs.kernels.newton import combine_rows, margins

        n, k = self.data.n_samples, ids.size
        whole, q = self.loss.feasible_dual(self.size * alpha, self.c, self.data.y, self.bias)
        exact = whole.astype(float)
        del whole
        np.ldexp(exact, -q, out=exact)
        m = np.empty(n)
        pulled = np.empty(u.size)
        margins(A, u, m)
        combine_rows(A, np.arange(n), exact, pulled)
        with np.errstate(over="ignore"):  # what overflows proves nothing
            length = float(pulled[:k] @ pulled[:k])
        dual = self.loss.dual_value(exact, self.c) - 0.5 / self.size * length
        w = u[:k] * root
        b = float(u[k]) + float(shift @ w) if self.bias else 0.0
        squares = 0.5 * self.size * float(u[:k] @ u[:k])
        loss = self.loss.value(m, self.c)
        if self.loss.vanishes and n:
            least, move = self._central_margin(m)
            factor, doubt = self._margin_lifting_factor(ids, w, b + move, least)
            if squares * factor * factor < squares + loss + doubt * float(self.c.max()):
                w = factor * w
                b = factor * (b + move)
                squares = squares * factor * factor
                loss = 0.0
        return SVM(w, b, exact, squares + loss, dual, rho, steps, q)

    def _central_margin(self, m: Array) -> tuple[float, float]:
        """The least margin once both classes have the same, of margins m (n,), and how far b moves for that."""
        first, second = (float(np.minimum.reduce(m[members], initial=np.inf)) for members in self._classes)
        if self.bias and math.isfinite(first) and math.isfinite(second):
            return 0.5 * (first + second), 0.5 * (second - first)
        return float(m.min()), 0.0

    def _margin_lifting_factor(self, ids: Integers, w: Array, b: float, least: float) -> tuple[float, float]:
        """The factor that lifts all margins of (w, b), of which `least` is the least, to 1, and what they are off by.

        At C = 1e8 a margin of 1 − 1e-16 costs as much as a weight of 1e-4. So it is as much more as rounding can take
        off any margin, on the user's scale too, where columns of large mean are multiplied and the intercept moves.
        It is inf where nothing lifts them all.
        """
        if least <= 0.0:
            return np.inf, 0.0
        data = self.data
        block = data.block(ids)
        moved = np.abs(block.center) + np.abs(data.shift[ids]) / data.scale[ids]
        doubt = 4.0 * (ids.size + 8) * U * (abs(b) + float((block.largest() + moved) @ np.abs(w)))
        return (1.0 / (least - doubt) + 4.0 * U if least > doubt else np.inf), doubt


def _gentle_rho(rows: Any, n: int, k: int) -> float:
    """The step ρ that n samples with at least as many weights k start with at most; see `FIRST_RHO_OF_ROWS`."""
    if k < n:
        return math.inf
    numbers = rows[0] if isinstance(rows, tuple) else rows
    return FIRST_RHO_OF_ROWS * n / max(float(np.vdot(numbers, numbers)), 1e-300)


class ColumnShift:
    """What is subtracted from dense columns: their mean when a free bias can carry it, else the centre.

    Parameters
    ----------
    data : Instance
    bias : bool, whether the bias is free
    share : (n,) weights of the mean, which add up to 1; by default all samples count alike

    Notes
    -----
    Means of stored dense columns are computed once, others for the columns that are asked for: sparse ones mostly stay
    as they are, and nothing is as long as all features.
    """

    def __init__(self, data: Instance, bias: bool, share: Array | None = None) -> None:
        self._data = data
        self._bias = bias
        self._share = share
        whole = data.block()
        self._all = self._column_means(whole) if bias and whole.is_stored and not whole.is_sparse else None

    def __getitem__(self, ids: Integers) -> Array:
        """Of the columns `ids` (k,), shape (k,)."""
        if not self._bias:
            return np.asarray(self._data.center[ids])
        return self._column_means(self._data.block(ids)) if self._all is None else self._all[ids]

    def _column_means(self, block: Block) -> Array:
        return block.means() if self._share is None else np.asarray(block.values.T @ self._share)


def kernel_rows(
    data: Instance,
    ids: Integers,
    root: Array | None,
    off: ColumnShift,
    bias: bool,
    ones: bool,
    room: Callable[[int], Array] = np.empty,
) -> tuple[Any, Array]:
    """The rows y_i (√σ∘(x_i − z), 1) of the kernels.

    Parameters
    ----------
    data : Instance
    ids : (k,) positions of the columns
    root : (k,) factors √σ, or None
    off : ColumnShift, z
    bias : whether the bias is free
    ones : whether the rows end with y_i·1
    room : gives an array of at least the number of floats asked for, for dense rows; sparse ones do not ask

    Returns
    -------
    A : (n, d) ndarray on what `room` gave, or a CSR triple
    shift : (k,) ndarray, center − z: the intercept is the rows' own plus shift'w
    """
    from mipfs.kernels.newton import gather
    from mipfs.kernels.rows import signed_rows

    y = data.y
    n = data.n_samples
    k = ids.size
    whole = data.block()
    center = data.center[ids]
    X = whole.values
    places = ids
    scale = np.ones(k) if root is None else root
    if not whole.is_stored:  # in files, or made: these columns alone
        X = data.block(ids).values
        places = np.arange(k)
    if sparse.issparse(X):
        stored = int((X.indptr[places + 1].astype(np.int64) - X.indptr[places]).sum())
        if stored <= DENSE_ROWS_ABOVE * n * k and (bias or not np.any(center)):
            return signed_rows(X.data, X.indices, X.indptr, places, y, scale, ones, stored), center
    away = off[ids]
    d = k + int(ones)
    A = room(n * d)[: n * d].reshape(n, d)
    if not data.is_sparse and whole.is_stored:
        gather(X, ids, y, away, scale, A)
    else:
        part = X[:, places].toarray() if sparse.issparse(X) else X
        A[:, :k] = (part - away) * scale * y[:, None]
        A[:, k:] = y[:, None]
    return A, center - away


def kernel_columns(data: Instance, ids: Integers, off: ColumnShift, bias: bool) -> tuple[Any, Array]:
    """The columns y∘(x_j − z_j) of the kernels; see `kernel_rows`.

    Returns
    -------
    Z : (n, k) ndarray in Fortran order, or a CSC triple
    shift : (k,) ndarray, center − z
    """
    part = data.block(ids)
    center = data.center[ids]
    if part.stays_sparse(DENSE_ROWS_ABOVE) and (bias or not part.is_centred):
        X = sparse.csc_array(part.values)
        return (X.data * data.y[X.indices], X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int64)), center
    away = off[ids]
    return np.asfortranarray(part.dense(away) * data.y[:, None]), center - away
