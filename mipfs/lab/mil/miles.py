"""The MILES embedding: a bag becomes its similarities to concepts, which are the training rows (Chen 2006; Mao 2013).

    s(z_k, B_i) = max over x in B_i of exp(−‖x − z_k‖²/width²)                                     Mao 2013, (26), (27)

Distances are found in blocks of rows and concepts, from ‖x‖² + ‖z‖² − 2x'z; dense data are centred first, so that a
squared distance is right to a few units of round-off of the data's spread. Beside the result, only a block is held.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from mipfs.errors import UsageError
from mipfs.lab.mil.bags import Bags
from mipfs.plumbing.arrays import Array, Integers
from mipfs.plumbing.declared import Positive, check_value

NUMBERS_PER_BLOCK = 1 << 21
"""Numbers in a block of distances, of rows or of dense concepts: 16 MiB."""
CONCEPTS_PER_BLOCK = 1 << 10
"""Concepts in a block, at most."""
ROUND_OFF = 1e-11
"""Squared distances that differ by this share of themselves and of the concepts' spread count as equal."""


class Miles:
    """The embedding into similarities to given concepts.

    Parameters
    ----------
    concepts : (K, p) ndarray or SciPy sparse matrix, the z_k, on the user's scale
    width : float > 0, on the scale of the divided columns
    scale : (p,) numbers > 0, optional
        Columns are divided by these before distances are taken.
    nearest : int >= 1, optional
        Keep a bag's similarities to that many concepts only, the nearest (of equal ones the first); the others are 0
        and the result is sparse.

    Raises
    ------
    UsageError
        A width or a number of concepts out of its range.
    """

    def __init__(self, concepts: Any, width: float, scale: Array | None = None, nearest: int | None = None) -> None:
        check_nearest(nearest)
        self.width = checked_width(width)
        self.nearest = nearest
        K, p = concepts.shape
        self.concepts = sparse.csr_array(concepts) if sparse.issparse(concepts) else np.asarray(concepts, dtype=float)
        self.scale = np.ones(p) if scale is None else np.asarray(scale, dtype=float)
        self._sparse = sparse.issparse(concepts)
        self._center = np.zeros(p) if self._sparse or K == 0 else self.concepts.mean(axis=0)

    def __call__(self, X: Any, bags: Bags) -> Any:
        """Embed bags.

        Parameters
        ----------
        X : (n, p) ndarray or SciPy sparse matrix, on the user's scale
        bags : Bags of the n rows

        Returns
        -------
        (B, K) ndarray in Fortran order of numbers in [0, 1]; with `nearest` a csc_array, B·nearest entries at most.

        Raises
        ------
        UsageError
            Other columns than the concepts have.
        """
        X = X.tocsr() if sparse.issparse(X) else np.asarray(X, dtype=float)
        if X.ndim != 2 or X.shape[1] != self.concepts.shape[1]:
            raise UsageError(f"X has shape {X.shape}; the concepts need (n, {self.concepts.shape[1]})")
        B = len(bags)
        K = self.concepts.shape[0]
        if self.nearest is None or self.nearest >= K:
            return self._similarities(self._least_squared_distances(X, bags, 0, B))
        parts = []
        spread = self._mean_concept_norm()
        for first, last in _row_blocks(B, max(1, NUMBERS_PER_BLOCK // K)):
            squares = self._least_squared_distances(X, bags, first, last)
            near = smallest(squares, self.nearest, spread)
            parts.append(sparse.csr_array(np.where(near, self._similarities(squares), 0.0)))
        return sparse.vstack(parts, format="csc")

    def _similarities(self, squares: Array) -> Array:
        with np.errstate(over="ignore"):  # a similarity of 0 is what is meant
            return np.asarray(np.exp(-(squares / self.width) / self.width))

    def _least_squared_distances(self, X: Any, bags: Bags, first: int, last: int) -> Array:
        """The least ‖x − z_k‖² of the bags first … last − 1, shape (last − first, K)."""
        K = self.concepts.shape[0]
        wide = self._block_width
        out = np.full((last - first, K), np.inf, order="F")
        begin = int(bags.starts[first])
        end = int(bags.starts[last]) if last < len(bags) else bags.n_rows
        tall = max(1, NUMBERS_PER_BLOCK // max(wide, 1 if self._sparse else self.concepts.shape[1]))
        for low, high in _row_blocks(end - begin, tall):
            rows = self._scale_columns(X[bags.order[begin + low : begin + high]])
            bag, cuts = _bags_of_rows(bags.starts[first:last] - begin, low, high)
            sizes = _squared_norms(rows)[:, None]
            for start, stop in _row_blocks(K, wide):
                concepts = self._scale_columns(self.concepts[start:stop])
                squares = rows @ concepts.T
                squares = squares.toarray() if self._sparse else squares
                squares *= -2.0
                squares += sizes
                squares += _squared_norms(concepts)
                target = out[bag : bag + cuts.size, start:stop]
                np.minimum(target, np.minimum.reduceat(squares, cuts, axis=0), out=target)
        return np.maximum(out, 0.0, out=out)

    @property
    def _block_width(self) -> int:
        """Concepts in a block."""
        K, p = self.concepts.shape
        return max(
            1, min(int(K), CONCEPTS_PER_BLOCK, NUMBERS_PER_BLOCK if self._sparse else NUMBERS_PER_BLOCK // int(p))
        )

    def _mean_concept_norm(self) -> float:
        """The mean ‖z_k‖² of the concepts as distances see them."""
        K = int(self.concepts.shape[0])
        parts = (
            _squared_norms(self._scale_columns(self.concepts[start:stop]))
            for start, stop in _row_blocks(K, self._block_width)
        )
        return sum(float(part.sum()) for part in parts) / K

    def _scale_columns(self, rows: Any) -> Any:
        """Rows, stored as the concepts are, centred where these are dense, and divided by the scale."""
        if self._sparse:
            return sparse.csr_array(rows) @ sparse.diags_array(1.0 / self.scale, format="csr")
        dense = rows.toarray() if sparse.issparse(rows) else rows
        return (dense - self._center) / self.scale


def mean_distance(X: Any, scale: Array | None = None) -> float:
    """The root of the mean squared distance between two rows, √(2 Σ_j var_j): the width where none is given.

    Parameters
    ----------
    X : (n, p) ndarray or SciPy sparse matrix
    scale : (p,) numbers > 0, optional
        Columns are divided by these.

    Raises
    ------
    UsageError
        All rows are the same.
    """
    divisor = np.ones(X.shape[1]) if scale is None else scale
    low, high = X.min(axis=0), X.max(axis=0)
    if sparse.issparse(X):
        low, high = low.toarray().ravel(), high.toarray().ravel()
        mean = np.asarray(X.mean(axis=0)).ravel()
        variances = np.asarray(X.multiply(X).mean(axis=0)).ravel() - mean * mean
    else:
        variances = np.var(X, axis=0)
    variances = np.where(low < high, np.maximum(variances, 0.0), 0.0)  # no round-off in place of a zero
    total = 2.0 * float(np.sum(variances / np.square(divisor)))
    if not total > 0.0:
        raise UsageError("all rows are the same, so that their distances say nothing of a width; give width")
    return math.sqrt(total)


def smallest(values: Array, k: int, spread: float = 0.0) -> npt.NDArray[np.bool_]:
    """Where the k smallest of every row stand, of equal ones the first; k is below the number of columns.

    Values that differ by `ROUND_OFF` times the k-th and `spread` are equal: a block must not decide between the same
    concept twice.
    """
    bound = np.partition(values, k - 1, axis=1)[:, k - 1 : k]
    slack = ROUND_OFF * (bound + spread)
    below = values < bound - slack
    level = np.abs(values - bound) <= slack
    room = k - np.count_nonzero(below, axis=1)[:, None]
    return np.asarray(below | (level & (np.cumsum(level, axis=1) <= room)))


def checked_width(width: Any) -> float:
    """The width as a float.

    Raises
    ------
    UsageError
        It is no finite number above 0.
    """
    return float(check_value("width", width, Positive))


def check_nearest(nearest: Any) -> None:
    """Refuse a number of nearest concepts that is none.

    Raises
    ------
    UsageError
    """
    if nearest is None:
        return
    if isinstance(nearest, bool) or not isinstance(nearest, (int, np.integer)) or nearest < 1:
        raise UsageError(f"nearest = {nearest!r} must be an integer >= 1, or None for all concepts")


def _row_blocks(n: int, size: int) -> Iterator[tuple[int, int]]:
    return ((start, min(start + size, n)) for start in range(0, n, size))


def _bags_of_rows(starts: Integers, low: int, high: int) -> tuple[int, Integers]:
    """The bag of row `low`, and where the bags of the rows low … high − 1 begin, counted from there."""
    bag = int(np.searchsorted(starts, low, side="right")) - 1
    inside = starts[bag + 1 : np.searchsorted(starts, high)]
    return bag, np.append(0, inside - low)


def _squared_norms(rows: Any) -> Array:
    """‖x‖² of every row."""
    if sparse.issparse(rows):
        return np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
    return np.asarray(np.einsum("ij,ij->i", rows, rows))
