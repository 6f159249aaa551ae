"""The dual vectors of a certificate: feasible as integers, and what they prove before anything is fixed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from mipfs.check.bounded import BoundedRidge
from mipfs.check.made import MadeAtoms
from mipfs.check.regulariser import twice_above
from mipfs.check.rounding import Array, Arrays, CertificateError, Integers, U, below, require
from mipfs.check.statement import StatedAtoms, Statement
from mipfs.check.workers import ALONE, LeafWorkers
from mipfs.readers import duals as stored

NUMBERS_PER_BLOCK, COLUMNS_PER_BLOCK = 1 << 22, 1 << 20
"""Numbers in a block of a few dual vectors, or of columns; columns of a block at most, as in a column store."""
MANY, NUMBERS_OF_MANY = 64, 1 << 18
"""The dual vectors from which on blocks are small, and the numbers of such a block, which lie in a cache."""
FAR_MEAN_SHARE = 0.99
"""Share of a column's squares that its mean accounts for from which on ω is summed of what is left without the mean:
the rounding of ω, which grows with the length of the column, is a tenth then or less."""
ARRAYS_AT_ONCE = 16
"""Arrays as large as a block that are held while it is evaluated, about."""
_NONE = np.empty(0, dtype=np.int64)
SAFE_SIZES = 1e-100, 1e140
"""Largest values of columns whose squares are summed as they are."""


class Duals:
    """Checks the dual vectors block after block; a subclass knows other dual sets.

    Attributes
    ----------
    is_exact : bool, whether v is exact and Σ v rounded once, not computed: then a constant that is taken off a column
        changes ω by no more than the rounding of its product with Σ v
    """

    is_exact = True

    def __init__(self, statement: Statement, arrays: Arrays) -> None:
        self.statement = statement
        self.arrays = arrays
        self.count = len(arrays["dual_q"])
        self.y, self.n, atoms = statement.data.y, statement.data.n_samples, statement.atoms
        self.ends = statement.ends
        self.width = self.n + (0 if self.ends is None else self.ends.count)
        self._check_stored()
        self._seen = np.zeros(self.count, dtype=bool)
        self._new: list[Integers] = []
        # γ_n of sums over the samples, and what underflows in squares of ω.
        self.gamma, self.least = 1.01 * (self.n + 8) * U, float(atoms.sizes.max()) * 2.0**-1060
        widths: tuple[int, ...] = (statement.p,)
        if not isinstance(atoms, MadeAtoms):
            widths += (statement.data.n_features, 0 if atoms.members is None else atoms.members.size)
        widest = max(self.n, *widths)
        self.per_block = max(1, min(MANY, NUMBERS_PER_BLOCK // widest), NUMBERS_OF_MANY // widest)
        self._columns: dict[int, ColumnBlock] = {}

    def _check_stored(self) -> None:
        """The bytes of the dual vectors lie one behind the other, and numbers fit into theirs."""
        size, start = (self.arrays[name] for name in ("dual_bytes", "dual_start"))
        ends = start.size and start[0] == 0 and start[-1] == size.size and size.ndim == 1
        require(ends and np.all(start[1:] >= start[:-1]), "the bytes of the dual vectors do not add up")
        for name in ("dual_level", "dual_width"):
            require(self.arrays[name].shape == (self.count,), f"{name!r} is not one number for every dual vector")
        require(np.all((self.arrays["dual_width"] >= 0) & (self.arrays["dual_width"] <= 7)), "a number is too wide")
        require(self.arrays["dual_top"].shape in ((0,), (self.width,)), "'dual_top' is not one number for every sample")

    @cached_property
    def top(self) -> Array | None:
        """The upper ends of the box, (n,), None where it is open: k·2^−q ≤ tc exactly, for k·2^−q is a float."""
        slope = self.statement.stated.max_slope
        if slope == math.inf:
            return None
        weights, kind = np.unique(self.statement.c, return_inverse=True)
        return np.array([below(Fraction(slope) * Fraction(one)) for one in weights.tolist()])[kind]

    def take_seen(self) -> Integers:
        """The vectors that were found to be feasible since this was asked for: a process tells another one."""
        found = np.unique(np.concatenate([_NONE, *self._new]))
        self._new.clear()
        return found

    def mark(self, ids: Integers) -> None:
        """Vectors that were found to be feasible elsewhere."""
        self._seen[ids] = True

    def check_rest(self, workers: LeafWorkers = ALONE) -> None:
        """The vectors that nothing refers to are feasible too."""
        rest = np.flatnonzero(~self._seen)
        step = self.per_block

        def check(k: int) -> None:
            self.feasible(rest[k * step : (k + 1) * step])

        for _ in workers.each(check, -(-rest.size // step), self.bytes_at_once):
            pass

    @property
    def bytes_at_once(self) -> int:
        """What evaluating a block takes, about, of whoever does."""
        return ARRAYS_AT_ONCE * 8 * max(NUMBERS_OF_MANY, self.per_block * max(self.n, self.statement.p))

    @property
    def n_blocks(self) -> int:
        """Blocks of all dual vectors."""
        return -(-self.count // self.per_block)

    def block_of(self, number: int) -> tuple[list[float], Array]:
        """`rows` of a block."""
        start = number * self.per_block
        return self.rows(np.arange(start, min(start + self.per_block, self.count)))

    def rows(self, ids: Integers) -> tuple[list[float], Array]:
        """g(α) rounded down and c − ½ s(α) rounded down (B, p) of dual vectors."""
        g, v, total = self.feasible(ids)
        return g, self._reduced_costs(v, total)

    def in_blocks(self, ids: Integers) -> tuple[list[float], Iterator[tuple[int, Array]]]:
        """g(α) of dual vectors, and c − ½ s(α) of single features block by block: the first one's place and (B, k)."""
        g, v, total = self.feasible(ids)
        penalty = self.statement.penalty
        atoms = self.statement.atoms
        assert isinstance(atoms, StatedAtoms)
        blocks = (
            (at, self._costs_rounded_down(self._of_features(at, *ends), penalty[at : at + ends[0].shape[1]], v))
            for at, *ends in self._omega_blocks(v, total, False)
        )
        return g, blocks

    def _of_features(self, first: int, omega: Array, radius: Array) -> Array:
        """s (B, k) of single features from the first one on, or 2h of a regulariser, not too small."""
        regulariser = self.statement.regulariser
        atoms = self.statement.atoms
        assert isinstance(atoms, StatedAtoms)
        if isinstance(regulariser, BoundedRidge):
            return regulariser.twice_above(first, omega, radius)
        if regulariser is not None:
            return twice_above(regulariser, first, omega, radius)
        return atoms.scores(np.abs(omega) + radius)

    def feasible(self, ids: Integers) -> tuple[list[float], Array, Array]:
        """`block`, with g(α) rounded down."""
        q = self.arrays["dual_q"][ids].astype(np.int64)
        require(np.all(np.abs(q) <= 900), "a dual vector lies on a grid that floating point does not reach")
        g, v, total = self.block(ids, q)
        self._seen[ids] = True
        self._new.append(ids)
        nothing = ~v.any(axis=1)  # α = 0, or over labellings one whose Δ ≥ 0 adds up: nothing is rounded there
        return np.where(nothing, 0.0, np.nextafter(g, -math.inf)).tolist(), v, total

    def block(self, ids: Integers, q: Integers) -> tuple[Array, Array, Array]:
        """g(α), not too large by more than an ulp, v (B, n) up to 4 ulp, and Σ_i v_i of the samples.

        With rows over the weights g is that of their multipliers too, which stand behind v: (B, n + count).
        """
        try:
            whole = stored.decoded_rows(self.arrays, ids, self.width)
        except ValueError as error:
            raise CertificateError(f"the bytes of a dual vector are not what they say: {error}") from None
        k, nu = whole[:, : self.n], whole[:, self.n :]
        require(np.all((nu >= 0) & (nu <= 2**53)), "a multiplier of a row over the weights is negative, or too wide")
        # Entries that a float holds, and n of which add up in 64 bits.
        wide = np.any((k < 0) | (k > min(2**53, 2**62 // self.n)), axis=1)
        require(not wide.any(), f"dual vector {ids[wide.argmax()]} is negative somewhere, or too wide for exact sums")
        if self.top is not None:
            for row, i in np.argwhere(k > np.floor(np.ldexp(self.top, q[:, None])))[:1]:
                times = "" if self.statement.stated.max_slope == 1 else f"{self.statement.stated.max_slope!r} times "
                raise CertificateError(
                    f"dual vector {ids[row]} leaves its box at sample {i + 1}: it exceeds {times}C times the weight"
                )
        balance = k @ self.y.astype(np.int64)
        off = int(np.argmax(balance != 0))
        feasible = not (self.statement.bias and balance.any())
        require(feasible, f"dual vector {ids[off]} does not satisfy y'alpha = 0: it is {balance[off]}·2^-{q[off]}")
        alpha = np.ldexp(k.astype(float), -q[:, None])
        sums = np.ldexp(k.sum(axis=1).astype(float), -q)
        g = self.statement.stated.dual_below(alpha, sums, self.statement.c)
        v, total = alpha * self.y, np.ldexp(balance.astype(float), -q)
        if self.ends is None:
            return g, v, total
        multipliers = np.ldexp(nu.astype(float), -q[:, None])
        return self.ends.g_below(g, multipliers), np.hstack([v, multipliers]), total

    def _reduced_costs(self, v: Array, total: Array) -> Array:
        """c − ½ s of every atom, rounded down, (B, p)."""
        atoms = self.statement.atoms
        penalty = self.statement.penalty
        if isinstance(atoms, MadeAtoms):
            return self._costs_rounded_down(atoms.scores_of(v, _column_norms(v.T), self.gamma), penalty, v)
        blocks = self._omega_blocks(v, total, True)
        if self.statement.regulariser is not None:
            scores = atoms.sums(np.concatenate([self._of_features(at, *ends) for at, *ends in blocks], axis=1))
        else:
            scores = atoms.scores(np.concatenate([np.abs(omega) + radius for _, omega, radius in blocks], axis=1))
        return self._costs_rounded_down(scores, penalty, v)

    def _omega_blocks(self, v: Array, total: Array, keep: bool) -> Iterator[tuple[int, Array, Array]]:
        """ω (B, k) and how far it may be off, block by block: by γ_n ‖v‖ ‖x_j‖, and what the centre is off.

        A sparse column with implicit zeros holds fl(d + center) of the stated value d
        (`mipfs.data.matrix.place_columns`): each entry is off by u of itself, which makes γ_(n+1) of γ_n; n + 8 has
        room for it beside the 4 ulp of v.


        `keep` holds what is known of the columns for the next dual vectors.
        """
        nu, v = v[:, self.n :], v[:, : self.n]
        lengths = _column_norms(v.T)
        weight = np.abs(v).sum(axis=1)
        for at, X in _in_blocks(self.statement.data.block().values):
            columns = self._columns[at] if at in self._columns else self.columns(at, X)
            if keep:
                self._columns[at] = columns
            center = self.statement.data.center[at : at + columns.norms.size] - columns.off
            omega = columns.pulled(X, v)
            radius = self.gamma * np.outer(lengths, columns.norms) + self.n * 2.0**-1074
            if np.any(center) and not self.statement.is_balanced:
                shift = np.outer(total, center)
                most = np.outer(weight, np.abs(center))
                radius += 4 * U * (np.abs(omega) + np.abs(shift)) + (0.0 if self.is_exact else self.gamma * most)
                omega -= shift
            yield at, *((omega, radius) if self.ends is None else self.ends.added(at, omega, radius, nu))

    def columns(self, at: int, X: Any) -> ColumnBlock:
        """What is known of the columns X, the first of which is the one at `at`.

        What they are off the stated scale takes ‖v‖ times its length off ω; it is in the norms, which γ_n multiplies.
        """
        found = ColumnBlock(X, self.is_exact)
        scaled = self.statement.scaled
        if scaled is not None and scaled.lengths is not None:
            found.norms = found.norms + scaled.lengths[at : at + found.norms.size] / self.gamma
        return found

    def _costs_rounded_down(self, scores: Array, penalty: Array, v: Array) -> Array:
        """c − ½ s (B, p), rounded down."""
        return self.lift(scores.T, penalty[:, None], ~v.any(axis=1)).T

    def lift(self, scores: Array, penalty: Array, nothing: Any) -> Array:
        """c − ½ s, rounded down, of scores (p, B); `least` is for what underflows. A v of zeros leaves c, exactly.

        Where bounds exclude 0 a score may be below 0: there a v of zeros leaves c + ½l².
        """
        may_cost = bool(self.statement.excluding)
        wider = np.where(scores < 0.0, 1.0 - 10 * U, 1.0 + 10 * U) if may_cost else 1.0 + 10 * U
        lifted = 0.5 * scores * wider + self.least
        found = np.nextafter(penalty - lifted, -math.inf)
        found[:, nothing] = np.where(scores[:, nothing] < 0.0, found[:, nothing], penalty) if may_cost else penalty
        return np.asarray(found)

    @staticmethod
    def lengths(v: Array) -> Array:
        """Norms of dual vectors v (B, n), not too small, as those of columns."""
        return _column_norms(v.T)


class ColumnBlock:
    """What is known of a block of columns X.

    Parameters
    ----------
    X : (n, k) array or sparse matrix
    may_move : bool, whether a constant may be taken off a column

    Attributes
    ----------
    off : (k,) what is taken off: about the mean where that is far from zero, else 0
    norms : (k,) lengths of the columns without it
    """

    def __init__(self, X: Any, may_move: bool) -> None:
        self.norms = _column_norms(X)
        self.off = np.zeros(self.norms.size)
        self.far = np.empty(0, dtype=np.int64)
        if sparse.issparse(X) or not may_move:
            return
        mean = np.full(X.shape[0], 1.0 / X.shape[0]) @ X
        self.far = np.flatnonzero(X.shape[0] * mean * mean > FAR_MEAN_SHARE * self.norms * self.norms)
        self.off[self.far] = mean[self.far]
        self.norms[self.far] = _column_norms(self._centred_columns(X))

    def _centred_columns(self, X: Array) -> Array:
        """x_ij − off_j of the columns that are far; it is rounded by an ulp of itself, which γ_n has room for."""
        return X[:, self.far] - self.off[self.far]

    def pulled(self, X: Any, v: Array) -> Array:
        """v'(x_j − off_j) of rows v (B, n), shape (B, k)."""
        if sparse.issparse(X):
            return np.ascontiguousarray((X.T @ v.T).T)
        if self.far.size == X.shape[1]:
            return np.asarray(v @ self._centred_columns(X))
        found = np.asarray(v @ X)
        if self.far.size:
            found[:, self.far] = v @ self._centred_columns(X)
        return found


def _in_blocks(X: Any) -> Iterator[tuple[int, Any]]:
    """All columns, some after the others and without a copy: the place of the first one, and the columns."""
    if hasattr(X, "pieces"):  # they lie in files
        yield from X.pieces()
        return
    (n, p), start = X.shape, 0
    if not sparse.issparse(X):
        step = max(1, NUMBERS_PER_BLOCK // n)
        yield from ((j, X[:, j : j + step]) for j in range(0, p, step))
        return
    X = sparse.csc_array(X)
    while start < p:
        # Of the type of indptr, so that the search makes no copy of it.
        most = X.indptr.dtype.type(min(int(X.indptr[start]) + NUMBERS_PER_BLOCK, X.nnz))
        end = min(max(start + 1, int(np.searchsorted(X.indptr, most, "right")) - 1), start + COLUMNS_PER_BLOCK, p)
        ends = X.indptr[start : end + 1]
        part = slice(X.indptr[start], X.indptr[end])
        yield start, sparse.csc_array((X.data[part], X.indices[part], ends - ends[0]), shape=(n, end - start))
        start = end


def _column_norms(X: Any) -> Array:
    """Euclidean norms of the columns, not too small by more than the 1% that γ leaves for it, even with underflow."""
    values = X.data if sparse.issparse(X) else X
    largest = max(float(values.max(initial=0.0)), -float(values.min(initial=0.0))) or 1.0
    unit = 1.0 if SAFE_SIZES[0] < largest < SAFE_SIZES[1] else largest
    if sparse.issparse(X):
        squares = np.asarray((abs(X / unit) ** 2).sum(axis=0), dtype=float).ravel()
    else:
        scaled = X if unit == 1.0 else X / unit
        squares = np.einsum("ij,ij->j", scaled, scaled)
    return np.asarray(unit * (np.sqrt(squares) + math.sqrt(X.shape[0]) * 2.0**-500))
