"""The dual vectors of a certificate: feasible as integers, and what they prove before anything is fixed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import xlogy

from mipfs.check.made import MadeAtoms
from mipfs.check.rounding import Array, Arrays, Integers, Rejected, U, require
from mipfs.check.statement import Atoms, Statement
from mipfs.readers import duals as stored

BLOCK, WIDE = 1 << 22, 1 << 20
"""Numbers in a block of dual vectors, or of columns; columns of a block at most, as in a column store."""


class Duals:
    """Checks the dual vectors block after block; a subclass knows other dual sets."""

    def __init__(self, statement: Statement, arrays: Arrays) -> None:
        self.statement, self.arrays, self.count = statement, arrays, len(arrays["dual_q"])
        self.y, self.n, atoms = statement.data.y, statement.data.n_samples, statement.atoms
        self.gamma, self.least = 1.01 * (self.n + 8) * U, float(atoms.sizes.max()) * 2.0**-1060
        widths: tuple[int, ...] = (statement.p,)
        if not isinstance(atoms, MadeAtoms):
            widths += (statement.data.n_features, 0 if atoms.members is None else atoms.members.size)
        self.per_block = max(1, BLOCK // max(self.n, *widths))
        self._norms: dict[int, Array] = {}

    def blocks(self) -> Iterator[tuple[range, list[float], Array]]:
        """`costs` of block after block."""
        for number in range(-(-self.count // self.per_block)):
            yield self.costs(number)

    def costs(self, number: int) -> tuple[range, list[float], Array]:
        """Positions, g(α) rounded down and c − ½ s(α) rounded down (B, p) of a block."""
        start = number * self.per_block
        ids = range(start, min(start + self.per_block, self.count))
        g, v, total = self._feasible(ids)
        return ids, g, self._costs(v, total)

    def in_blocks(self, ids: range) -> tuple[list[float], Iterator[tuple[int, Array]]]:
        """g(α) of dual vectors, and c − ½ s(α) of single features block by block: the first one's place and (B, k)."""
        g, v, total = self._feasible(ids)
        penalty, atoms = self.statement.penalty, self.statement.atoms
        assert isinstance(atoms, Atoms)
        blocks = (
            (at, self._lifted(atoms.scores(size), penalty[at : at + size.shape[1]], v))
            for at, size in self._sizes(v, total, False)
        )
        return g, blocks

    def _feasible(self, ids: range) -> tuple[list[float], Array, Array]:
        """`block`, with g(α) rounded down."""
        q = self.arrays["dual_q"][ids.start : ids.stop].astype(np.int64)
        require(np.all(np.abs(q) <= 900), "a dual vector lies on a grid that floating point does not reach")
        g, v, total = self.block(ids, q)
        nothing = ~v.any(axis=1)  # α = 0, or over labellings one whose Δ ≥ 0 adds up: nothing is rounded there
        return np.where(nothing, 0.0, np.nextafter(g, -math.inf)).tolist(), v, total

    def block(self, ids: range, q: Integers) -> tuple[Array, Array, Array]:
        """g(α), not too large by more than an ulp, v (B, n) up to 4 ulp, and Σ_i v_i."""
        k = np.array([stored.decoded(self.arrays, d, self.n) for d in ids])
        wide = np.any((k < 0) | (k > min(2**53, 2**62 // self.n)), axis=1)
        require(not wide.any(), f"dual vector {ids[wide.argmax()]} is negative somewhere, or too wide for exact sums")
        if self.statement.loss != "squared-hinge":
            for row, i in np.argwhere(k > np.floor(np.ldexp(self.statement.c, q[:, None])))[:1]:
                raise Rejected(
                    f"dual vector {ids[row]} leaves its box at sample {i + 1}: it exceeds C times the weight"
                )
        balance = k @ self.y.astype(np.int64)
        off = int(np.argmax(balance != 0))
        feasible = not (self.statement.bias and balance.any())
        require(feasible, f"dual vector {ids[off]} does not satisfy y'alpha = 0: it is {balance[off]}·2^-{q[off]}")
        alpha, sums = np.ldexp(k.astype(float), -q[:, None]), np.ldexp(k.sum(axis=1).astype(float), -q)
        return self._values(alpha, sums), alpha * self.y, np.ldexp(balance.astype(float), -q)

    def _values(self, alpha: Array, sums: Array) -> Array:
        """g(α), less its rounding error; `sums` is Σα, correctly rounded."""
        c, n = self.statement.c, self.n
        if self.statement.loss == "hinge":
            return sums
        if self.statement.loss == "squared-hinge":  # Σα − Σα²/(2c)
            squares = np.sum(alpha * alpha / (2.0 * c), axis=1)
            return np.asarray(sums - squares - 1.01 * (n + 8) * U * (sums + squares))
        rest = c - alpha  # c·(entropy of α/c): c − α, both quotients and both logs are off by a few ulp each
        terms = -xlogy(alpha, alpha / c), -xlogy(rest, rest / c)
        size = (np.abs(terms[0]) + np.abs(terms[1])).sum(axis=1)
        return np.asarray((terms[0] + terms[1]).sum(axis=1) - 1.01 * (n + 16) * U * size - 8 * U * c.sum())

    def _costs(self, v: Array, total: Array) -> Array:
        """c − ½ s of every atom, rounded down, (B, p)."""
        atoms, penalty = self.statement.atoms, self.statement.penalty
        if isinstance(atoms, MadeAtoms):
            return self._lifted(atoms.scores_of(v, _lengths(v.T), self.gamma), penalty, v)
        sizes = np.concatenate([size for _, size in self._sizes(v, total, True)], axis=1)
        return self._lifted(atoms.scores(sizes), penalty, v)

    def _sizes(self, v: Array, total: Array, keep: bool) -> Iterator[tuple[int, Array]]:
        """Bounds (B, k) on |ω|, block by block: |computed ω − exact ω| ≤ γ_n ‖v‖ ‖x_j‖, and of the centre.

        `keep` holds the norms of the columns for the next dual vectors.
        """
        lengths, weight = _lengths(v.T), np.abs(v).sum(axis=1)
        for at, X in _in_blocks(self.statement.data.block().values):
            norms = self._norms[at] if at in self._norms else _lengths(X)
            if keep:
                self._norms[at] = norms
            center = self.statement.data.center[at : at + norms.size]
            omega = np.ascontiguousarray((X.T @ v.T).T) if sparse.issparse(X) else v @ X
            radius = self.gamma * np.outer(lengths, norms) + self.n * 2.0**-1074
            if np.any(center) and not self.statement.bias:  # with a bias the total is zero
                shift, most = np.outer(total, center), np.outer(weight, np.abs(center))
                radius += 4 * U * (np.abs(omega) + np.abs(shift)) + self.gamma * most
                omega -= shift
            yield at, np.abs(omega) + radius

    def _lifted(self, scores: Array, penalty: Array, v: Array) -> Array:
        """c − ½ s, rounded down; `least` is for what underflows. A v of zeros leaves c, exactly."""
        lifted = 0.5 * scores * (1.0 + 10 * U) + self.least
        found = np.nextafter(penalty - lifted, -math.inf)
        found[~v.any(axis=1)] = penalty
        return np.asarray(found)


def _in_blocks(X: Any) -> Iterator[tuple[int, Any]]:
    """All columns, some after the others and without a copy: the place of the first one, and the columns."""
    if hasattr(X, "pieces"):  # they lie in files
        yield from X.pieces()
        return
    (n, p), start = X.shape, 0
    if not sparse.issparse(X):
        step = max(1, BLOCK // n)
        yield from ((j, X[:, j : j + step]) for j in range(0, p, step))
        return
    X = sparse.csc_array(X)
    while start < p:
        most = X.indptr.dtype.type(min(int(X.indptr[start]) + BLOCK, X.nnz))  # of the same type: no copy is made
        end = min(max(start + 1, int(np.searchsorted(X.indptr, most, "right")) - 1), start + WIDE, p)
        ends, part = X.indptr[start : end + 1], slice(X.indptr[start], X.indptr[end])
        yield start, sparse.csc_array((X.data[part], X.indices[part], ends - ends[0]), shape=(n, end - start))
        start = end


def _lengths(X: Any) -> Array:
    """Euclidean norms of the columns, not too small by more than the 1% that γ leaves for it, even with underflow."""
    largest = float(np.abs(X.data if sparse.issparse(X) else X).max(initial=0.0)) or 1.0
    squares = np.asarray((abs(X / largest) ** 2).sum(axis=0), dtype=float).ravel()
    return np.asarray(largest * (np.sqrt(squares) + math.sqrt(X.shape[0]) * 2.0**-500))
