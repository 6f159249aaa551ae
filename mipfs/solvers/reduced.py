"""A conic program with variables fixed, reduced by what the fixings leave constant, and what its value lies between.

    min ½ x'Px + q'x + offset,   Ax + s = b,   s in a product of cones

An interior point method needs an interior, and the perspective cones (w, σ + t, σ − t) of a fixed σ have none where
σ = 0: Clarabel then drifts along t and loses digits, or all of them. Here every rotated cone with a constant side is
written as what it is: w = 0 and t ≥ 0 at σ = 0, t ≥ w²/σ where w is constant too, and ½t as a quadratic term where t
stands nowhere else. Equations with one variable, and variables that cost alone bounds, are solved. What is left is well
conditioned, and of many programs nothing is left. All of it is exact but for rounding.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from scipy import sparse

from mipfs.plumbing.arrays import Array, Integers, mask_of, scatter

ROUNDED = 1e-9
"""How far, relative to its terms, a row of constants may be off: points are rounded, and lie on rows."""


class NoSolutionError(Exception):
    """A row of constants does not hold: the program has no solution."""


class Reduction:
    """A program that is reduced when it is made.

    Parameters
    ----------
    P : (n, n) sparse matrix, symmetric
    q : (n,) ndarray
    A : (m, n) sparse matrix
    b : (m,) ndarray
    cones : as in `mipfs.solvers.cones.Canonical`

    Raises
    ------
    NoSolutionError
    """

    def __init__(self, P: Any, q: Array, A: Any, b: Array, cones: dict[str, Any]) -> None:
        self.P = sparse.csc_array(P)
        self.q = np.array(q, dtype=float)
        self.A = sparse.csr_array(A)
        self.A.sum_duplicates()
        self.A.eliminate_zeros()
        self.b = np.array(b, dtype=float)
        self.offset = 0.0
        self._size = np.abs(self.b)
        self._cones = cones
        self._left = np.ones(self.q.size, dtype=bool)
        first, second = cones["zero"], cones["zero"] + cones["nonneg"]
        self._kind = np.full(self.b.size, -1)  # 0 an equation, 1 an inequality, 2 dropped, -1 of a cone
        self._kind[:first], self._kind[first:second] = 0, 1
        ends = second + np.cumsum([0, *cones["soc"]])
        self._socs = [np.arange(a, e) for a, e in itertools.pairwise(ends.tolist())]
        self._others = int(ends[-1])
        changed = True
        while changed:
            found = [self._solve_equations(), self._rotate_cones(), self._drop_dominated(), self._apply_bounds()]
            changed = any(found)

    def request(self) -> tuple[Any, Array, Any, Array, dict[str, Any]]:
        """P (its upper triangle), q, A, b and cones of what is left, for Clarabel."""
        rows = [np.flatnonzero(self._kind == 0), np.flatnonzero(self._kind == 1), *self._socs]
        order = np.concatenate([*rows, np.arange(self._others, self.b.size)]).astype(int)
        ids = np.flatnonzero(self._left)
        sizes = {"zero": rows[0].size, "nonneg": rows[1].size, "soc": [one.size for one in self._socs]}
        A = sparse.csc_matrix(self.A[order][:, ids])
        upper = sparse.csc_matrix(sparse.triu(self.P[ids][:, ids]))
        return upper, self.q[ids], A, self.b[order], {**self._cones, **sizes}

    def _fix_variables(self, ids: Integers, values: Array) -> None:
        """Put values in place of variables."""
        x = scatter(self.q.size, ids, values)
        self.offset += float(self.q @ x + 0.5 * x @ (self.P @ x))
        self.q = self.q + self.P @ x
        self.b = self.b - self.A @ x
        self._size = self._size + abs(self.A) @ np.abs(x)
        self._left[ids] = False
        self._drop_variables(ids)

    def _drop_variables(self, ids: Integers) -> None:
        """Drop variables that stand nowhere any more, or whose values are in b and q already."""
        gone = mask_of(self.q.size, ids)
        self.q[gone] = 0.0
        self.A.data[gone[self.A.indices]] = 0.0
        self.A.eliminate_zeros()
        keep = sparse.diags_array((~gone).astype(float), format="csc")
        self.P = sparse.csc_array(keep @ self.P @ keep)
        self.P.eliminate_zeros()

    def _count_entries(self) -> tuple[Integers, Integers]:
        """Of every row how many variables it has; of every variable in how many rows it is."""
        at = self._kind != 2
        return np.diff(self.A.indptr), np.bincount(
            self.A.indices, np.repeat(at, np.diff(self.A.indptr)), minlength=self.q.size
        ).astype(np.int64)

    def _solve_equations(self) -> bool:
        """Solve equations with one variable; look at rows with none."""
        ever = False
        while True:
            terms = np.diff(self.A.indptr)
            empty = (terms == 0) & (self._kind >= 0) & (self._kind < 2)
            off = np.where(self._kind == 0, np.abs(self.b), -self.b)
            if np.any(empty & (off > ROUNDED * self._size)):
                raise NoSolutionError
            self._kind[empty] = 2
            rows = np.flatnonzero((self._kind == 0) & (terms == 1))
            if not rows.size:
                return ever or bool(empty.any())
            ids, first = np.unique(self.A.indices[self.A.indptr[rows]], return_index=True)
            rows = rows[first]
            factors = self.A.data[self.A.indptr[rows]]
            self._kind[rows] = 2
            self._fix_variables(ids, self.b[rows] / factors)
            ever = True

    def _row_entries(self, r: int) -> tuple[Integers, Array]:
        place = slice(self.A.indptr[r], self.A.indptr[r + 1])
        return self.A.indices[place], self.A.data[place]

    def _constant_side(self, cone: Integers) -> tuple[int, float] | None:
        """The place k and the sign with s_0 + sign s_k constant in a second-order cone, if there is one."""
        ids, head = self._row_entries(cone[0])
        for k in range(1, cone.size):
            others, values = self._row_entries(cone[k])
            if np.array_equal(ids, others):
                for sign in (1.0, -1.0):
                    if np.array_equal(head, -sign * values):
                        return k, sign
        return None

    def _rotate_cones(self) -> bool:
        """Write (s_0 + s_k)(s_0 − s_k) ≥ ‖rest‖² with a constant first factor c as what it says."""
        kept, squares = [], []
        taken = np.diff(self.P.indptr) > 0
        count = self._count_entries()[1]
        before = len(self._socs)
        for cone in self._socs:
            side = self._constant_side(cone)
            if side is None:
                kept.append(cone)
                continue
            k, sign = side
            c, other = self.b[cone[0]] + sign * self.b[cone[k]], self.b[cone[0]] - sign * self.b[cone[k]]
            rest = np.delete(cone, [0, k])
            ids, head = self._row_entries(cone[0])
            if c < -ROUNDED * self._size[cone[0]]:
                raise NoSolutionError
            if c <= 0.0:
                self._kind[rest] = 0
            elif all(not self._row_entries(r)[0].size for r in rest):
                other -= float(np.sum(np.square(self.b[rest]))) / c
                self._kind[rest] = 2
            elif ids.size == 1 and count[ids[0]] == 2 and not taken[ids[0]] and head[0] < 0.0 < self.q[ids[0]]:
                squares.append((cone, self.q[ids[0]] / (-2.0 * head[0]), other, c, rest))
                continue
            else:
                kept.append(cone)
                continue
            self._kind[cone[0]], self._kind[cone[k]] = 1, 2  # s_0 − s_k ≥ 0 or what is left of it
            self.A.data[self.A.indptr[cone[0]] : self.A.indptr[cone[0] + 1]] *= 2.0
            self.b[cone[0]] = other
        if squares:
            self._replace_by_square(squares)
        self._socs = kept
        return len(kept) < before

    def _replace_by_square(self, found: list[tuple[Integers, float, float, float, Integers]]) -> None:
        """A cost f v of v ≥ ‖t − Tx‖²/c, in a cone that alone is about v, as a quadratic term."""
        ids = np.array([self._row_entries(cone[0])[0][0] for cone, *_ in found])
        self._kind[np.concatenate([cone for cone, *_ in found])] = 2
        self.offset -= sum(f * other for _, f, other, _, _ in found)
        rows = np.concatenate([rest for *_, rest in found])
        weights = np.concatenate([np.full(rest.size, f / c) for _, f, _, c, rest in found])
        T, t = self.A[rows], self.b[rows]
        self.P = sparse.csc_array(self.P + 2.0 * (T.T @ sparse.diags_array(weights) @ T))
        self.q = self.q - 2.0 * (T.T @ (weights * t))
        self.offset += float(weights @ np.square(t))
        self._left[ids] = False
        self._drop_variables(ids)

    def _drop_dominated(self) -> bool:
        """Where a variable stands in one inequality alone, against which its cost pushes it, that is an equation."""
        terms, count = self._count_entries()
        columns = sparse.csc_array(self.A)
        single = np.flatnonzero(
            (count == 1) & (np.diff(columns.indptr) >= 1) & (np.diff(self.P.indptr) == 0) & (self.q != 0.0)
        )
        found: dict[int, tuple[int, float]] = {}
        for j in single.tolist():
            place = slice(columns.indptr[j], columns.indptr[j + 1])
            here = self._kind[columns.indices[place]]
            r, a = (part[place][here != 2][0] for part in (columns.indices, columns.data))
            if self._kind[r] == 1 and terms[r] > 1 and self.q[j] * a < 0.0:
                found.setdefault(int(r), (j, float(self.q[j] / a)))
        if not found:
            return False
        rows, ids = np.array(list(found)), np.array([j for j, _ in found.values()])
        prices = np.array([f for _, f in found.values()])
        self.offset += float(prices @ self.b[rows])
        self.q = self.q - self.A[rows].T @ prices
        self._kind[rows] = 2
        self._left[ids] = False
        self._drop_variables(ids)
        return True

    def _apply_bounds(self) -> bool:
        """Fix variables whose bounds leave one value, and those that cost alone pulls to a bound."""
        terms, count = self._count_entries()
        rows = np.flatnonzero((self._kind == 1) & (terms == 1))
        if not rows.size:
            return False
        ids, a = self.A.indices[self.A.indptr[rows]], self.A.data[self.A.indptr[rows]]
        ends = self.b[rows] / a
        room = ROUNDED * self._size[rows] / np.abs(a)
        low, high = np.full(self.q.size, -np.inf), np.full(self.q.size, np.inf)
        near, number = np.zeros(self.q.size), np.bincount(ids, minlength=self.q.size)
        np.minimum.at(high, ids[a > 0], ends[a > 0])
        np.maximum.at(low, ids[a < 0], ends[a < 0])
        np.maximum.at(near, ids, room)
        if np.any(low > high + near):
            raise NoSolutionError
        curved, others = self.P.diagonal(), np.diff(self.P.indptr) - (self.P.diagonal() != 0.0)
        free = (number > 0) & (number == count) & (others == 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            best = np.where(curved > 0.0, -self.q / curved, np.where(self.q > 0.0, -np.inf, np.inf))
        at = np.where(low >= high, high, np.minimum(np.maximum(best, low), high))
        still = free & (curved == 0.0) & (self.q == 0.0)
        at[still] = np.where(np.isfinite(low[still]), low[still], high[still])
        fixed = np.flatnonzero(((number > 0) & (low >= high)) | (free & np.isfinite(at)))
        if not fixed.size:
            return False
        self._kind[rows[np.isin(ids, fixed)]] = 2
        self._fix_variables(fixed, at[fixed])
        return True


def ends_of(request: tuple[Any, Array, Any, Array, dict[str, Any]], x: Array, z: Array) -> tuple[float, float]:
    """What the value of a program lies between, by vectors x and z that nearly solve it and its dual.

    z is moved into the dual cone. What then is missing of Px + q + A'z = 0, and of b − Ax in the cone, is charged at x
    and z themselves: by the duality of the program that they do solve, in first order.
    """
    P, q, A, b, cones = request
    whole = P + sparse.triu(P, 1).T
    off, z = _cone_shortfalls(b - A @ x, z.copy(), cones)
    residual = np.abs(whole @ x + q + A.T @ z)
    curved = 0.5 * float(x @ (whole @ x))
    return float(-curved - b @ z - 2.0 * residual @ np.abs(x)), float(curved + q @ x + 2.0 * np.abs(z) @ off)


def _cone_shortfalls(s: Array, z: Array, cones: dict[str, Any]) -> tuple[Array, Array]:
    """By how much every entry of s must be raised to lie in the cones; and z, raised into the dual ones."""
    off = np.zeros(s.size)
    first, place = cones["zero"], cones["zero"] + cones["nonneg"]
    off[:first] = np.abs(s[:first])
    off[first:place] = np.maximum(0.0, -s[first:place])
    z[first:place] = np.maximum(0.0, z[first:place])
    for size in cones["soc"]:
        rest = slice(place + 1, place + size)
        off[place] = max(0.0, float(np.linalg.norm(s[rest])) - s[place])
        z[place] = max(z[place], float(np.linalg.norm(z[rest])))
        place += size
    for order in cones["psd"]:
        diagonal = place + np.cumsum(np.arange(1, order + 1)) - 1
        for vector, raised in ((s, off), (z, z)):
            raised[diagonal] += max(0.0, -_least_eigenvalue(vector[place : place + order * (order + 1) // 2], order))
        place += order * (order + 1) // 2
    a, y, t = s[place::3], s[place + 1 :: 3], s[place + 2 :: 3]
    u, v, w = z[place::3], z[place + 1 :: 3], z[place + 2 :: 3]  # y e^(a/y) ≤ t; −u e^(v/u − 1) ≤ w, u ≤ 0
    with np.errstate(all="ignore"):
        off[place + 2 :: 3] = np.where(y > 0.0, np.maximum(0.0, y * np.exp(a / y) - t), np.inf)
        least = np.where(u < 0.0, -u * np.exp(v / u - 1.0), 0.0)
    z[place::3] = np.minimum(u, 0.0)
    z[place + 1 :: 3] = np.where(u < 0.0, v, np.maximum(v, 0.0))
    z[place + 2 :: 3] = np.maximum(w, least)
    return off, z


def _least_eigenvalue(triangle: Array, order: int) -> float:
    """The least eigenvalue of a matrix by its upper triangle, column by column, off the diagonal times √2."""
    full = np.zeros((order, order))
    rows, columns = np.triu_indices(order)
    by_column = np.lexsort((rows, columns))
    rows, columns = rows[by_column], columns[by_column]
    full[rows, columns] = full[columns, rows] = np.where(rows == columns, triangle, triangle / np.sqrt(2.0))
    return float(np.linalg.eigvalsh(full)[0])
