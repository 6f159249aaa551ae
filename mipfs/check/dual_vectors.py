"""The dual vectors of a certificate: feasible as integers, and what they prove before anything is fixed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import xlogy

from mipfs.check.made import MadeAtoms
from mipfs.check.rounding import Array, Arrays, Integers, Rejected, U, down, require
from mipfs.check.statement import Statement
from mipfs.readers import duals as stored

BLOCK = 1 << 22
"""Numbers in a block of dual vectors."""


class Duals:
    """Checks the dual vectors block after block; a subclass knows other dual sets."""

    def __init__(self, statement: Statement, arrays: Arrays) -> None:
        self.statement, self.arrays, self.count = statement, arrays, len(arrays["dual_q"])
        X, self.y, self.n = statement.data.block().values, statement.data.y, statement.data.n_samples
        step, self.gamma = max(1, BLOCK // self.n), 1.01 * (self.n + 8) * U
        atoms, self.norms = statement.atoms, np.empty(0)
        self.widths: tuple[int, ...] = (statement.p,)
        if not isinstance(atoms, MadeAtoms):
            blocked = hasattr(X, "pieces")  # columns that lie in files: all of a block, then the next
            pieces = (Z for _, Z in X.pieces()) if blocked else (X[:, j : j + step] for j in range(0, X.shape[1], step))
            self.norms = np.concatenate([_norms(Z) for Z in pieces])
            self.widths += (X.shape[1], 0 if atoms.members is None else atoms.members.size)
        self.transposed = X.T.tocsr() if sparse.issparse(X) else None
        self.per_block = max(1, BLOCK // max(self.n, *self.widths))

    def blocks(self) -> Iterator[tuple[range, list[float], Array]]:
        """`costs` of block after block."""
        for number in range(-(-self.count // self.per_block)):
            yield self.costs(number)

    def costs(self, number: int) -> tuple[range, list[float], Array]:
        """Positions, g(α) rounded down and c − ½ s(α) rounded down (B, p) of a block."""
        start = number * self.per_block
        ids = range(start, min(start + self.per_block, self.count))
        q = self.arrays["dual_q"][ids.start : ids.stop].astype(np.int64)
        require(np.all(np.abs(q) <= 900), "a dual vector lies on a grid that floating point does not reach")
        g, v, total = self.block(ids, q)
        return ids, [down(value) for value in g.tolist()], self._costs(v, total)

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
        """c − ½ s of every atom, rounded down, (B, p): |computed ω − exact ω| ≤ γ_n ‖v‖ ‖x_j‖, and of the centre."""
        X, center, atoms = self.statement.data.block().values, self.statement.data.center, self.statement.atoms
        if isinstance(atoms, MadeAtoms):
            return self._lifted(atoms.scores_of(v, _norms(v.T), self.gamma))
        if hasattr(X, "pieces"):
            omega = np.concatenate([np.ascontiguousarray((Z.T @ v.T).T) for _, Z in X.pieces()], axis=1)
        else:
            omega = v @ X if self.transposed is None else np.ascontiguousarray((self.transposed @ v.T).T)
        radius = self.gamma * np.outer(_norms(v.T), self.norms) + self.n * 2.0**-1074
        if np.any(center) and not self.statement.bias:  # with a bias the total is zero
            shift, most = np.outer(total, center), np.outer(np.abs(v).sum(axis=1), np.abs(center))
            radius += 4 * U * (np.abs(omega) + np.abs(shift)) + self.gamma * most
            omega -= shift
        return self._lifted(atoms.scores(np.abs(omega) + radius))

    def _lifted(self, scores: Array) -> Array:
        """c − ½ s, rounded down."""
        lifted = 0.5 * scores * (1.0 + 10 * U) + self.statement.atoms.sizes.max() * 2.0**-1060  # the last: underflow
        return np.asarray(np.nextafter(self.statement.penalty - lifted, -math.inf))


def _norms(X: Any) -> Array:
    """Euclidean norms of the columns, not too small by more than the 1% that γ leaves for it, even with underflow."""
    largest = float(np.abs(X.data if sparse.issparse(X) else X).max(initial=0.0)) or 1.0
    squares = np.asarray((abs(X / largest) ** 2).sum(axis=0), dtype=float).ravel()
    return np.asarray(largest * (np.sqrt(squares) + math.sqrt(X.shape[0]) * 2.0**-500))
