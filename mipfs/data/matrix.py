"""The data matrix: dense Fortran or CSC columns of float64, checked, scaled and hashed.

Dense columns are worked on in blocks, so that no step needs a second copy of a large matrix.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from mipfs.data import checks
from mipfs.data.checks import as_array
from mipfs.errors import DataError
from mipfs.plumbing.arrays import Array, Integers

DENSE_ABOVE = 0.25
"""Share of non-zeros above which a reader stores a matrix dense: CSC needs 12 to 16 bytes per entry."""

_BLOCK = 1 << 20
_PIECE = 1 << 17
LARGEST = 1e100
"""Largest absolute value of a scaled column."""
SMALLEST = 1e-290
"""Smallest scale of a column: weights on the user's scale are divided by it, and must stay below 1.8e308."""
_TINY = float(np.finfo(np.float64).tiny)
_INT32 = np.iinfo(np.int32).max
_PLAIN = 1000
"""Powers of two up to this exponent, and their inverses, are ordinary floats."""


class StoredMatrix(ABC):
    """A matrix that is not in memory; it was checked when it was written.

    Attributes
    ----------
    sha256 : `digest` of the values as they are stored
    """

    sha256: str

    @abstractmethod
    def scaled(self, kind: str, weights: Array | None = None) -> tuple[Any, Array, Array, Array]:
        """What `scale_columns` returns."""

    @abstractmethod
    def too_large(self) -> int | None:
        """What `too_large` returns."""

    @abstractmethod
    def too_small(self, kind: str, shift: Array, scale: Array) -> int | None:
        """What `too_small` returns."""


class ByColumns:
    """An (n, p) matrix of float64 whose columns are read or made when they are asked for; v X is its `__rmatmul__`."""

    __array_ufunc__ = None  # an array times this is `__rmatmul__`
    ndim = 2
    dtype = np.dtype(np.float64)
    shape: tuple[int, int]

    @property
    def size(self) -> int:
        """n·p."""
        return self.shape[0] * self.shape[1]

    @property
    def T(self) -> Transposed:
        """X', to be multiplied by vectors."""
        return Transposed(self)


class Transposed:
    """X' of a matrix by columns."""

    __array_ufunc__ = None

    def __init__(self, X: Any) -> None:
        self.X = X

    def __matmul__(self, v: Array) -> Array:
        return np.asarray((v.T @ self.X).T)


def too_wide(n: int, p: int, path: str | None = None) -> DataError:
    """What is said of a matrix that does not fit into memory by its columns, of which every one takes 8 bytes."""
    remedy = "leave out columns without an entry: X[:, X.count_nonzero(axis=0) > 0]"
    return DataError(f"a matrix of shape ({n}, {p}) takes more memory than there is", remedy, path=path)


def refuse_wide(X: Any, path: str | None = None) -> None:
    """Refuse a sparse matrix whose pointers to columns, which are held twice while it is converted, do not fit.

    A system that promises more memory than there is ends the process in place of a `MemoryError`.
    """
    if sparse.issparse(X) and X.ndim == 2 and 2 * 8 * X.shape[1] > checks.memory():
        n, p = X.shape
        raise too_wide(n, p, path)


def as_matrix(X: Any, *, path: str | None = None) -> Any:
    """Check a matrix and bring it into Fortran order or canonical CSC (sorted, no duplicates, no stored zeros,
    indices of 32 bits where they fit).

    Parameters
    ----------
    X : (n, p) array-like or SciPy sparse matrix
    path : str, optional
        Named in the messages.

    Returns
    -------
    (n, p) ndarray in Fortran order or csc_array, float64; it may share memory with `X`.

    Raises
    ------
    DataError
        Not a matrix of real numbers, no rows or columns, NaN or infinity, a masked value.
    """
    if isinstance(X, StoredMatrix):
        return X
    refuse_wide(X, path)
    real = "give real numbers" + ("; mipfs.read(frame, label=...) reads words" if hasattr(X, "columns") else "")
    if not sparse.issparse(X):
        X = as_array(X, path)
    if X.ndim != 2:
        raise DataError(f"X has {X.ndim} dimensions", "give a matrix of samples by features", path=path)
    if X.dtype.kind not in "biufO":
        raise DataError(f"X holds values of type {X.dtype}", real, path=path)
    n, p = X.shape
    if n == 0:
        raise DataError("no samples", "give at least one sample of each class", path=path)
    if p == 0:
        raise DataError("no features", "give at least one column beside the labels", path=path)
    try:
        if sparse.issparse(X):
            X = _canonical_csc(sparse.csc_array(X, dtype=np.float64))
        else:
            X = np.asarray(X, dtype=np.float64, order="F")
    except (TypeError, ValueError) as error:
        raise DataError(f"X holds a value that is no number ({error})", real, path=path) from None
    except MemoryError:
        raise too_wide(n, p, path) from None
    _check_finite(X, path)
    return X


def compact_storage(X: sparse.csc_array) -> Any:
    """The matrix, dense in Fortran order when more than `DENSE_ABOVE` of it is non-zero."""
    n, p = X.shape
    X = _canonical_csc(X)
    return X.toarray(order="F") if X.nnz > DENSE_ABOVE * n * p else X


def uneven_weights(weights: Array) -> Array | None:
    """Weights of samples, (n,), for means and deviations; None where all are equal, which weigh nothing.

    They are divided by a power of two, exactly, so that no sum of them leaves floating point.
    """
    if weights.strides == (0,) or np.all(weights == weights[0]):
        return None
    return np.asarray(np.ldexp(weights, -int(np.frexp(weights.max())[1])))


def scale_columns(X: Any, kind: str, weights: Array | None = None) -> tuple[Any, Array, Array, Array]:
    """Scale the columns.

    Parameters
    ----------
    X : (n, p) ndarray in Fortran order or canonical csc_array
    kind : {"none", "standard", "unit"}
        ``standard``: mean 0 and variance 1 with divisor n; ``unit``: Euclidean norm 1. A column that is
        constant (zero, for ``unit``), or too small or large to be divided by, stays as it is (`too_small` and
        `too_large` find those).
    weights : (n,) ndarray > 0, optional
        How often each sample counts in means and variances, as of `uneven_weights`; norms are of the columns as they
        stand.

    Returns
    -------
    scaled : (n, p) matrix of the same kind; `place_columns` says what a CSC matrix holds
    center : (p,), column j stands for ``scale_columns[:, j] - center[j]``; zero where no entry is an implicit zero
    shift, scale : (p,), user's value = scaled value * scale + shift
    """
    p = X.shape[1]
    if isinstance(X, StoredMatrix):
        return X.scaled(kind, weights)
    if kind == "none":
        zero, one = np.broadcast_to(0.0, (p,)), np.broadcast_to(1.0, (p,))  # these cost no memory
        return X, zero, zero, one
    if sparse.issparse(X):
        return _scaled_csc(X, kind, weights)
    out = np.empty_like(X, order="F")
    shift, scale = np.zeros(p), np.ones(p)
    for part in _column_blocks(X):
        out[:, part], shift[part], scale[part] = _scaled_dense(X[:, part], kind, weights)
    return out, np.zeros(p), shift, scale


def scaled_user_values(x: Array, shift: Array | float, scale: Array | float) -> Array:
    """What the scaled data has for the user's values: (x − shift)/scale, each rounded once.

    Columns are scaled by it for training, and the values of new rows for prediction: the same value is the same
    number, bit for bit, on the same side of every knot.

    Parameters
    ----------
    x : any shape
    shift, scale : numbers, or arrays of the shape of the last axis
    """
    with np.errstate(over="ignore", invalid="ignore"):
        found = np.asarray(np.subtract(x, shift, dtype=float))
        found /= scale
        far = ~np.isfinite(found)
        if np.any(far):  # a difference that floating point does not hold, halved: its quotient may be held
            parts = (np.broadcast_to(one, found.shape)[far] for one in (x, shift, scale))
            value, less, divisor = (0.5 * np.asarray(part, dtype=float) for part in parts)
            found[far] = (value - less) / divisor
    return found


def digest(X: Any) -> str:
    """SHA-256 of the non-zeros, column by column: the same for a matrix however it is stored."""
    if isinstance(X, StoredMatrix):
        return X.sha256
    found = Digest(X.shape)
    found.add(X)
    return found.hexdigest()


class Digest:
    """The digest of a matrix whose columns come piece after piece.

    Parameters
    ----------
    shape : (n, p) of the whole
    """

    def __init__(self, shape: tuple[int, int]) -> None:
        stated = str((int(shape[0]), int(shape[1]))).encode()
        self._counts, self._rows, self._values = (hashlib.sha256(stated) for _ in range(3))

    def add(self, X: Any) -> None:
        """Take in the next columns."""
        counts = self._counts
        rows = self._rows
        values = self._values
        if sparse.issparse(X):
            for start in range(0, X.shape[1], _PIECE):
                counts.update(np.diff(X.indptr[start : start + _PIECE + 1]).astype("<i8"))
            for start in range(0, X.nnz, _PIECE):
                rows.update(X.indices[start : start + _PIECE].astype("<i8"))
                values.update(X.data[start : start + _PIECE].astype("<f8"))
            return
        for part in _column_blocks(X):
            block = X[:, part].T
            if np.all(block):  # most dense data, without a look for the places of zeros
                counts.update(np.full(block.shape[0], block.shape[1], dtype="<i8").data)
                rows.update(np.tile(np.arange(block.shape[1], dtype="<i8"), block.shape[0]).data)
                values.update(np.ascontiguousarray(block, dtype="<f8").data)
                continue
            columns, ids = np.nonzero(block)
            counts.update(np.bincount(columns, minlength=block.shape[0]).astype("<i8").tobytes())
            rows.update(ids.astype("<i8").tobytes())
            values.update(block[columns, ids].astype("<f8").tobytes())

    def hexdigest(self) -> str:
        """Of all that was added."""
        return hashlib.sha256(self._counts.digest() + self._rows.digest() + self._values.digest()).hexdigest()


def _column_blocks(X: Any) -> Iterator[slice]:
    n, p = X.shape
    width = max(1, _BLOCK // n)
    return (slice(start, min(start + width, p)) for start in range(0, p, width))


def _canonical_csc(X: sparse.csc_array) -> sparse.csc_array:
    if not X.has_canonical_format or not np.all(X.data):
        X = X.copy()  # the arrays may be the user's
        X.sum_duplicates()
        X.eliminate_zeros()
    return _with_32_bit_indices(X)


def _with_32_bit_indices(X: sparse.csc_array) -> sparse.csc_array:
    """With indices of 32 bits where they fit: LIBLINEAR takes no others, and they are half as long."""
    if X.indices.dtype == np.int32 == X.indptr.dtype or max(X.nnz, *X.shape) > _INT32:
        return X
    narrow = sparse.csc_array((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)
    narrow.has_canonical_format = True
    return narrow


def _check_finite(X: Any, path: str | None) -> None:
    if sparse.issparse(X):
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(X.data.sum()):  # in one pass and no memory: what is not finite would not vanish in a sum
                return
        bad = np.flatnonzero(~np.isfinite(X.data))
        where = [(int(X.indices[k]), int(np.searchsorted(X.indptr, k, "right")) - 1, X.data[k]) for k in bad[:1]]
    else:
        where = []
        for part in _column_blocks(X):
            cells = np.argwhere(~np.isfinite(X[:, part].T))
            if cells.size:
                j, i = (int(v) for v in cells[0])
                where = [(i, part.start + j, X[i, part.start + j])]
                break
    for i, j, value in where:
        raise DataError(f"row {i + 1}, column {j + 1} is {value}", "every value must be a finite number", path=path)


def largest(X: Any) -> float:
    """The largest |value| of a matrix in memory, in one pass."""
    if sparse.issparse(X):
        return max(float(X.data.max(initial=0.0)), -float(X.data.min(initial=0.0)))
    blocks = (X[:, part] for part in _column_blocks(X))
    return max((max(float(block.max()), -float(block.min())) for block in blocks), default=0.0)


def too_large(X: Any, most: float | None = None) -> int | None:
    """The first column with a value beyond ±`LARGEST`, too large for sums of products; None without one.

    `most` is `largest` of it where that is known.
    """
    if isinstance(X, StoredMatrix):
        return X.too_large()
    if (largest(X) if most is None else most) <= LARGEST:
        return None
    if sparse.issparse(X):
        first = np.flatnonzero(np.abs(X.data) > LARGEST)[0]
        return int(np.searchsorted(X.indptr, first, "right")) - 1
    return next(
        int(part.start + far.argmax())
        for part in _column_blocks(X)
        if (far := np.abs(X[:, part]).max(axis=0) > LARGEST).any()
    )


def too_small(X: Any, kind: str, shift: Array, scale: Array) -> int | None:
    """The first column with values, and for "standard" different ones, that are too small to be scaled; or None.

    Parameters
    ----------
    X : the matrix before it was scaled
    kind, shift, scale : how it was, as `scale_columns` has it: such a column stays as it is, or has a scale below
    `SMALLEST`
    """
    if kind == "none":
        return None
    if isinstance(X, StoredMatrix):
        return X.too_small(kind, shift, scale)
    small = scale < SMALLEST
    stays = np.flatnonzero((scale == 1.0) & (shift == 0.0))
    step = max(1, _BLOCK // X.shape[0])
    for ids in (stays[start : start + step] for start in range(0, stays.size, step)):
        small[ids[is_lost(X[:, ids], kind)]] = True
    return int(small.argmax()) if small.any() else None


def is_lost(X: Any, kind: str) -> npt.NDArray[np.bool_]:
    """Which columns hold nothing but values below `SMALLEST` though they are not constant; for "unit", not zero."""
    if X.shape[1] == 0:
        return np.zeros(0, dtype=bool)
    ends = X.min(axis=0), X.max(axis=0)
    low, high = (np.asarray(end.toarray() if sparse.issparse(end) else end).ravel() for end in ends)
    return np.asarray((np.maximum(-low, high) < SMALLEST) & ~_constant_columns(low, high, kind))


def _spread_from_squares(squares: Array, total: float, kind: str) -> Array:
    """Standard deviation with the total of the weights as divisor, or Euclidean norm, from sums of squares."""
    return np.sqrt(squares / total if kind == "standard" else squares)


def _find_unscaled(low: Array, high: Array, scale: Array, kind: str) -> npt.NDArray[np.bool_]:
    """The columns that stay as they are."""
    return np.asarray(_constant_columns(low, high, kind) | ~(scale >= _TINY) | ~np.isfinite(scale))


def _constant_columns(low: Array, high: Array, kind: str) -> npt.NDArray[np.bool_]:
    """The columns that cannot be scaled, whatever their size."""
    return np.asarray((low == high) if kind == "standard" else (low == 0) & (high == 0))


def _scaled_dense(X: Array, kind: str, weights: Array | None) -> tuple[Array, Array, Array]:
    shift, scale = column_moments(X, kind, weights)
    return scaled_user_values(X, shift, scale), shift, scale


def column_moments(X: Array, kind: str, weights: Array | None = None) -> tuple[Array, Array]:
    """Shift and scale of the columns of an array in Fortran order, of samples by their weights (`uneven_weights`)."""
    if weights is not None and kind == "standard":
        return _weighted_moments(X, weights)
    n = X.shape[0]
    low, high = X.min(axis=0), X.max(axis=0)
    # A power of two brings every column into [-1, 1]: exact, and no square over- or underflows.
    exponent = np.frexp(np.maximum(-low, high))[1]
    z = np.ldexp(X, -exponent)
    mean = np.zeros(X.shape[1])
    for _ in range(2 if kind == "standard" else 0):  # the second pass removes what the first one rounded off
        rest = z.mean(axis=0)
        z -= rest
        mean += rest
    spread = _spread_from_squares(np.square(z).sum(axis=0), n, kind)
    with np.errstate(over="ignore"):  # an infinite scale is refused by `_find_unscaled`
        shift, scale = np.ldexp(mean, exponent), np.ldexp(spread, exponent)
    kept = _find_unscaled(low, high, scale, kind)
    return np.where(kept, 0.0, shift), np.where(kept, 1.0, scale)


def _weighted_moments(X: Array, weights: Array) -> tuple[Array, Array]:
    """`column_moments` under "standard": Σ w_i x_ij/W and √(Σ w_i (x_ij − shift_j)²/W), W = Σ w_i."""
    low, high = X.min(axis=0), X.max(axis=0)
    exponent = np.frexp(np.maximum(-low, high))[1]
    z, by_row, total = np.ldexp(X, -exponent), weights[:, None], float(weights.sum())
    mean = np.zeros(X.shape[1])
    for _ in range(2):
        rest = (by_row * z).sum(axis=0) / total
        z -= rest
        mean += rest
    spread = _spread_from_squares((by_row * np.square(z)).sum(axis=0), total, "standard")
    with np.errstate(over="ignore"):
        shift, scale = np.ldexp(mean, exponent), np.ldexp(spread, exponent)
    kept = _find_unscaled(low, high, scale, "standard")
    return np.where(kept, 0.0, shift), np.where(kept, 1.0, scale)


def _scaled_csc(X: sparse.csc_array, kind: str, weights: Array | None) -> tuple[sparse.csc_array, Array, Array, Array]:
    """By the sums of the stored values, but a column without implicit zeros as a dense one, to the bit.

    What CSC cannot hold is the centred value of a column whose spread is tiny beside its size. No column with a zero
    is such: n·deviation² ≥ mean² there, so that |mean|/scale ≤ √n and |d| ≤ √n of the scaled values d, and the stored
    fl(d + center) is off by no more than 2u√n: of a column of deviation 1 less than 2⁻²⁶ up to n = 2⁵². The objective
    and the checker take even that into account (`scaling_remainders`).
    """
    shift, scale = moments_csc(X, kind, weights)
    center = center_of(full_columns(X.indptr, X.shape[0]), shift, scale)
    return _place_centred(X, center, shift, scale), center, shift, scale


def moments_csc(X: sparse.csc_array, kind: str, weights: Array | None = None) -> tuple[Array, Array]:
    """Shift and scale of sparse columns, (p,) each; of samples by their weights (`uneven_weights`), where there are
    some.
    """
    n, p = X.shape
    if weights is None or kind != "standard":
        _, shift, scale = _moments_csc(X, np.repeat(np.arange(p), np.diff(X.indptr)), kind)
        dense = full_columns(X.indptr, n)
    else:
        shift, scale, zeros = _weighed_csc(X, weights)
        dense = np.flatnonzero(zeros < LEAST_ZEROS)
    step = max(1, _BLOCK // n)
    for ids in (dense[start : start + step] for start in range(0, dense.size, step)):
        shift[ids], scale[ids] = column_moments(np.asfortranarray(X[:, ids].toarray()), kind, weights)
    return shift, scale


LEAST_ZEROS = 2.0**-10
"""The share of the weight on zeros up to which a sparse column is summed as a dense one: it is a difference of sums."""


def _weighed_csc(X: sparse.csc_array, weights: Array) -> tuple[Array, Array, Array]:
    """Shift and scale of sparse columns under "standard" by weights of samples, and the share of these on their zeros.

    Of the stored values v and the weight 1 − s on zeros, with weights that sum up to 1, the mean is m = Σ w v and the
    variance Σ w (v − m)² + (1 − s) m².
    """
    p = X.shape[1]
    columns, total = np.repeat(np.arange(p), np.diff(X.indptr)), float(weights.sum())
    own = weights[X.indices]
    zeros = 1.0 - np.bincount(columns, own, p) / total
    low, high = X.min(axis=0).toarray(), X.max(axis=0).toarray()
    exponent = np.frexp(np.maximum(-low, high))[1]
    z = np.ldexp(X.data, -exponent[columns])
    mean = np.bincount(columns, own * z, p) / total
    mean = mean + (np.bincount(columns, own * (z - mean[columns]), p) / total - zeros * mean)
    squares = np.bincount(columns, own * np.square(z - mean[columns]), p) / total + zeros * np.square(mean)
    with np.errstate(over="ignore", invalid="ignore"):
        shift, scale = np.ldexp(mean, exponent), np.ldexp(np.sqrt(np.maximum(squares, 0.0)), exponent)
    kept = _find_unscaled(low, high, scale, "standard")
    return np.where(kept, 0.0, shift), np.where(kept, 1.0, scale), zeros


def first_scaled(X: sparse.csc_array, kind: str) -> tuple[sparse.csc_array, Array, Array, Array]:
    """`scale_columns` of sparse columns by the first rules (`mipfs.data.rules`): divided, and centred implicitly."""
    columns = np.repeat(np.arange(X.shape[1]), np.diff(X.indptr))
    center, shift, scale = _moments_csc(X, columns, kind)
    out = sparse.csc_array((scaled_user_values(X.data, 0.0, scale[columns]), X.indices, X.indptr), shape=X.shape)
    return out, center, shift, scale


def place_columns(X: sparse.csc_array, shift: Array, scale: Array) -> tuple[sparse.csc_array, Array]:
    """Sparse columns on a given scale, as they are stored, fl(fl(fl(x − shift)/scale) + center), and their center.

    Implicit zeros stand for fl(fl(0 − shift)/scale), which is −center, exactly. A column without any has the center 0,
    and nothing is rounded off.
    """
    center = center_of(full_columns(X.indptr, X.shape[0]), shift, scale)
    return _place_centred(X, center, shift, scale), center


def scaling_remainders(
    X: sparse.csc_array, Z: sparse.csc_array, center: Array, shift: Array, scale: Array
) -> sparse.csc_array:
    """What was rounded off stored values: fl(fl(x − shift)/scale) = Z − center + this, exactly.

    Parameters
    ----------
    X, Z : columns as the user has them, and as `place_columns` makes them
    """
    columns = np.repeat(np.arange(X.shape[1]), np.diff(X.indptr))
    off = center[columns]
    d = scaled_user_values(X.data, shift[columns], scale[columns])
    part = Z.data - d  # both parts of what a sum loses (Knuth 1969)
    return sparse.csc_array(((d - (Z.data - part)) + (off - part), X.indices, X.indptr), shape=X.shape)


def full_columns(indptr: npt.NDArray[Any], n: int) -> Integers:
    """The columns without implicit zeros."""
    return np.flatnonzero(np.diff(indptr) == n)


def center_of(full: Integers, shift: Array, scale: Array) -> Array:
    """What is taken off sparse columns: what their implicit zeros stand for, and nothing off the columns `full`."""
    center = 0.0 - scaled_user_values(np.zeros(shift.size), shift, scale)
    center[full] = 0.0
    return np.asarray(center)


def _place_centred(X: sparse.csc_array, center: Array, shift: Array, scale: Array) -> sparse.csc_array:
    """`place_columns`, with the center."""
    moved = bool(np.any(shift))
    counts = np.diff(X.indptr)
    values = scaled_user_values(X.data, np.repeat(shift, counts) if moved else 0.0, np.repeat(scale, counts))
    if moved:
        values += np.repeat(center, counts)
    return sparse.csc_array((values, X.indices, X.indptr), shape=X.shape)


def _moments_csc(X: sparse.csc_array, columns: Integers, kind: str) -> tuple[Array, Array, Array]:
    """Shift/scale, shift and scale, by sums over the stored values, of which `columns` has the columns."""
    n, p = X.shape
    low, high = X.min(axis=0).toarray(), X.max(axis=0).toarray()
    exponent = np.frexp(np.maximum(-low, high))[1]
    stored = np.diff(X.indptr)
    if exponent.size and exponent.min() > -_PLAIN and exponent.max() < _PLAIN:
        z = X.data * np.repeat(np.ldexp(1.0, -exponent), stored)  # the same bits, in a fraction of the time
    else:
        z = np.ldexp(X.data, -exponent[columns])
    mean = np.zeros(p)
    squares = np.square(z) if kind == "unit" else z
    if kind == "standard":
        mean = mean + np.bincount(columns, z, p) / n
        deviations = np.bincount(
            columns, z - np.repeat(mean, stored), p
        )  # the second pass removes what the first rounded off
        mean = mean + (deviations - (n - stored) * mean) / n
        z -= np.repeat(mean, stored)
        squares = np.square(z, out=z)
    spread = _spread_from_squares(np.bincount(columns, squares, p) + (n - stored) * np.square(mean), n, kind)
    with np.errstate(over="ignore"):  # an infinite scale is refused by `_find_unscaled`
        shift, scale = np.ldexp(mean, exponent), np.ldexp(spread, exponent)
    kept = _find_unscaled(low, high, scale, kind)
    center = np.where(kept, 0.0, mean / np.where(kept, 1.0, spread))
    return center, np.where(kept, 0.0, shift), np.where(kept, 1.0, scale)


def equal_rows(X: Any, y: Array) -> tuple[Integers, Integers]:
    """Samples with the same values and label.

    Parameters
    ----------
    X : (n, p) ndarray or csc_array
    y : (n,) labels

    Returns
    -------
    first : (m,) a sample of every kind
    kind : (n,) the kind of every sample
    """
    from mipfs.kernels.gram import hash_dense_rows

    n = y.size
    if not (sparse.issparse(X) or isinstance(X, np.ndarray)):  # columns that are made: two rows are not looked at
        return np.arange(n), np.arange(n)
    if sparse.issparse(X):
        own = np.zeros(n, dtype=np.int32)
        found, _ = refine_kinds(X, own, by_label(y, own))
        return found, own.astype(np.int64)
    keys = np.where(y > 0, np.uint64(1), np.uint64(2))
    hash_dense_rows(np.asarray(X, dtype=float).view(np.uint64), keys)
    _, first, kind = np.unique(keys, return_index=True, return_inverse=True)
    if first.size == n:
        return np.arange(n), np.arange(n)
    others = np.setdiff1d(np.arange(n), first)
    differ = np.abs(X[others] - X[first[kind[others]]]).max(axis=1)
    if np.any(differ) or np.any(y[others] != y[first[kind[others]]]):  # two rows share a hash
        return np.arange(n), np.arange(n)
    return first.astype(np.int64), kind.astype(np.int64)


def by_label(y: Array, kind: npt.NDArray[np.int32]) -> Integers:
    """Set `kind` (n,) so that every label is a kind; how many samples each has."""
    np.not_equal(y, y[0], out=kind, casting="unsafe")
    others = int(kind.sum())
    return np.array([kind.size - others, others] if others else [kind.size])


def refine_kinds(
    X: sparse.csc_array, kind: npt.NDArray[np.int32], sizes: Integers, most: int | None = None
) -> tuple[Integers, npt.NDArray[np.int32]]:
    """Split kinds of samples by their values in some columns.

    Parameters
    ----------
    X : (n, k) csc_array of float64 in canonical form, without stored zeros
    kind : (n,) the kind of every sample, which changes
    sizes : samples of every kind
    most : kinds from which on it is given up; by default as many as samples

    Returns
    -------
    first, parent : (m,) of every kind its first sample, and the kind before; empty where it was given up
    """
    from mipfs.kernels.alike import split_kinds

    bits = np.ascontiguousarray(X.data, dtype=float).view(np.uint64)
    first, parent = split_kinds(bits, X.indices, X.indptr, kind, sizes, kind.size if most is None else most)
    return first, parent
