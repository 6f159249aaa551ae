"""The matrix that columns are chosen from, and its right singular vectors.

X, the rows of the training data or of its support vectors, is U S V' with V of shape (p, rank); its rows v_j are the
features (Paul 2016, section 2; mathematics.md, section 8). Columns of a sparse matrix are centred without being stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from scipy import linalg, sparse
from scipy.sparse.linalg import LinearOperator, svds

from mipfs.data.checks import memory
from mipfs.data.instance import Instance
from mipfs.errors import DataError, NumericalError
from mipfs.lab.sketch.margin import rows_of, store_columns
from mipfs.plumbing.arrays import Array, Integers

SPARSE_RATIO = 8
"""Singular directions are found by `svds` where a sparse matrix has more rows and columns than this multiple
of them."""
TINY_ROW = 1e-140
"""A row of V below this is taken for zero: its square is no normal number."""
UNEXPLAINED = 1e-10
"""Share of ‖X‖² that may lie outside V where V is called whole."""
SECONDS_PER_WORK, MOST_SECONDS = 6e-10, 300.0
"""Seconds of a decomposition on one core, over the square of the smaller side times the larger; and how many are waited
for, as LAPACK can neither be interrupted nor say how far it is."""
REMEDY = "choose by approx-bss with fewer projections, by fewer rows (supervised), or ask for the leading ones by rank"


@dataclass(frozen=True, eq=False)
class Basis:
    """Right singular vectors above the rank threshold.

    Attributes
    ----------
    V : (p, rank) with orthonormal columns; a column of X below the rank threshold has a zero row
    values : (rank,) singular values of X / 2**exponent, falling
    left_out : float in [0, 1], share of ‖X‖² outside V, where `rank` asked for the leading directions only
    """

    V: Array
    values: Array
    left_out: float

    @property
    def rank(self) -> int:
        """The number of singular directions at hand."""
        return int(self.values.size)


class Source:
    """The rows of an instance that columns are chosen from.

    Parameters
    ----------
    data : Instance
    rows : (m,) positions of the rows, ascending; None for all
    rank : int >= 1, the leading singular directions only; None for all
    """

    def __init__(self, data: Instance, rows: Integers | None = None, rank: int | None = None) -> None:
        self.rows = rows
        self.limit = rank
        block = store_columns(data if rows is None else rows_of(data, rows))
        top = float(abs(block.values).max())
        if top == 0.0 and not block.is_centred:
            raise DataError("every value of the matrix is zero", "there is nothing to choose columns by")
        # A power of two brings the values near 1: exact, and no square over- or underflows.
        self.exponent = int(np.frexp(max(top, float(np.abs(block.center).max())))[1])
        self.shape, self.is_sparse, self._values = block.shape, block.is_sparse, block.values
        self._center = np.ldexp(block.center, -self.exponent)

    @cached_property
    def norms(self) -> Array:
        """Euclidean norm of every column over 2**exponent, shape (p,)."""
        if not self.is_sparse:
            return column_norms(self._scaled_matrix)
        X = self._scaled_matrix
        n = self.shape[0]
        squares = np.asarray(X.multiply(X).sum(axis=0)).ravel()
        sums = np.asarray(X.sum(axis=0)).ravel()
        center = self._center
        return cast(Array, np.sqrt(np.maximum(squares - 2.0 * center * sums + n * center**2, 0.0)))

    @cached_property
    def basis(self) -> Basis:
        """V, by LAPACK, or by ARPACK where few directions of a sparse matrix are wanted.

        Raises
        ------
        DataError
            The decomposition does not fit into memory; what fits is named. A matrix of rank 0.
        """
        few = self.limit is not None and SPARSE_RATIO * self.limit < min(self.shape)
        if self.is_sparse and few:
            assert self.limit is not None
            return _leading_directions(self._centred_operator(), self.limit, self.norms)
        n, p = self.shape
        self._require_memory(8 * (2 * n * p + p * min(n, p)), "its singular vectors")
        seconds = SECONDS_PER_WORK * min(n, p) ** 2 * max(n, p)
        if seconds > MOST_SECONDS:
            raise DataError(
                f"{n} rows of {p} columns: its singular vectors would take about {seconds / 3600:.1f} hours", REMEDY
            )
        return right_vectors(self.dense(), self.norms, self.limit)

    def dense(self) -> Array:
        """X / 2**exponent with its columns centred, shape (m, p).

        Raises
        ------
        DataError
            It does not fit into memory.
        """
        if not self.is_sparse:
            return np.asarray(self._scaled_matrix)
        self._require_memory(16 * self.shape[0] * self.shape[1], "its dense form")
        return np.asarray(self._scaled_matrix.toarray(order="F") - self._center)

    def project(self, G: Array) -> Array:
        """G X / 2**exponent, shape (t, p), for G of shape (t, m); a sparse X stays so."""
        self._require_memory(24 * G.shape[0] * self.shape[1], f"{G.shape[0]} projections of it")
        if not self.is_sparse:
            return np.asarray(G @ self._scaled_matrix)
        image: Array = np.asarray((self._scaled_matrix.T @ G.T).T)
        return image - np.outer(G.sum(axis=1), self._center)

    def times(self, S: Any) -> Array:
        """X S / 2**exponent, shape (m, t), for a sparse S of shape (p, t); a sparse X stays so."""
        self._require_memory(24 * self.shape[0] * S.shape[1], f"its product with {S.shape[1]} columns")
        if not self.is_sparse:
            return np.asarray((S.T @ self._scaled_matrix.T).T)
        image: Array = (self._scaled_matrix @ S).toarray() - np.asarray(self._center @ S)[None, :]
        return image

    @cached_property
    def _scaled_matrix(self) -> Any:
        """X / 2**exponent, not centred where it is sparse."""
        values = self._values
        if not self.is_sparse:
            return np.ldexp(values, -self.exponent) - self._center
        return sparse.csc_array((np.ldexp(values.data, -self.exponent), values.indices, values.indptr), self.shape)

    def _centred_operator(self) -> LinearOperator:
        """The centred matrix as products with it."""
        X, center = self._scaled_matrix, self._center
        return LinearOperator(
            self.shape,
            matvec=lambda v: X @ np.ravel(v) - float(center @ np.ravel(v)),
            rmatvec=lambda u: X.T @ np.ravel(u) - center * float(np.sum(u)),
            dtype=np.float64,
        )

    def _require_memory(self, needed: int, what: str) -> None:
        have = memory()
        if needed > have:
            n, p = self.shape
            raise DataError(
                f"{n} rows of {p} columns: {what} would take {needed / 1e9:.0f} GB of memory, and there are "
                f"{have / 1e9:.0f}",
                REMEDY,
            )


def column_norms(Z: Array) -> Array:
    """Euclidean norm of every column of a dense matrix, shape (p,)."""
    return cast(Array, np.sqrt(np.einsum("ij,ij->j", Z, Z)))


def right_vectors(Z: Array, norms: Array, limit: int | None) -> Basis:
    """V of a dense matrix (m, p): the singular values above max(m, p)·ε·s₁, and at most `limit` of them.

    Rows are Z'U/S, orthonormalised by a triangular factor from the right: row j keeps the relative accuracy of column
    j, where LAPACK's own V has an error of ε in all of them, which for columns of small scale is much.
    """
    m, p = Z.shape
    if m > p:
        Z = np.asarray(
            np.linalg.qr(Z, mode="r")
        )  # columns keep their relative accuracy, and as many rows as columns are left
    try:
        U, s, _ = linalg.svd(Z, full_matrices=False, check_finite=False)
    except linalg.LinAlgError:
        raise NumericalError("the singular value decomposition did not converge; scale the columns") from None
    least = max(m, p) * np.finfo(float).eps * s[0]
    found = int(np.count_nonzero(s > least))
    if found == 0:
        raise DataError("every column is constant, so that nothing is left of them", "there is nothing to choose by")
    rank = found if limit is None else min(limit, found)
    V = Z.T @ (U[:, :rank] / s[:rank])
    left_out = float(np.sum(s[rank:found] ** 2) / np.sum(s**2))
    return Basis(_orthonormalise(V, norms > least), s[:rank], left_out)


def _leading_directions(operator: LinearOperator, limit: int, norms: Array) -> Basis:
    """The leading `limit` directions of a sparse matrix by ARPACK, from a start that is always the same."""
    n, p = operator.shape
    start = np.random.default_rng(0).standard_normal(min(n, p))
    _, s, Vt = svds(operator, k=limit, v0=start, return_singular_vectors="vh")
    order = np.argsort(-s, kind="stable")
    least = max(n, p) * np.finfo(float).eps * s[order[0]]
    order = order[s[order] > least]
    if order.size == 0:
        raise DataError("every column is constant, so that nothing is left of them", "there is nothing to choose by")
    whole = float(np.sum(norms**2))
    left_out = max(0.0, 1.0 - float(np.sum(s[order] ** 2)) / whole)
    return Basis(_orthonormalise(Vt[order].T, norms > least), s[order], left_out if left_out > UNEXPLAINED else 0.0)


def _orthonormalise(V: Array, filled: npt.NDArray[np.bool_]) -> Array:
    """V times a triangular matrix from the right, so that its columns are orthonormal; rows that are not filled are 0.

    A column below the rank threshold counts as zero: rescaled, it would blow up directions that were left out.
    """
    V[~filled] = 0.0
    for _ in range(2):  # once more takes off what the first left of columns that were far from orthogonal
        try:
            L = linalg.cholesky(V.T @ V, lower=True, check_finite=False)
        except linalg.LinAlgError:
            raise NumericalError(
                "the singular vectors are not independent in floating point; scale the columns"
            ) from None
        V = linalg.solve_triangular(L, V.T, lower=True, check_finite=False).T
    V[np.einsum("ij,ij->i", V, V) < TINY_ROW**2] = 0.0
    return np.ascontiguousarray(V)
