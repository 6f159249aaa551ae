"""Sums of products of two columns, Σ_i v_i x_ij x_ik, over the rows that two columns share: the numba kernels.

Every sum is taken in the order of the rows, of v_i·(x_ij·x_ik): it does not depend on which column came first, nor on
what else is looked for, so pairs of equal columns have equal sums.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mipfs.compiled import compiled


class StoredColumns(NamedTuple):
    """A CSC matrix.

    data, indices : the stored numbers and their rows;  indptr : (p + 1,) where columns begin
    """

    data: npt.NDArray[Any]
    indices: npt.NDArray[Any]
    indptr: npt.NDArray[Any]


class ChosenColumns(NamedTuple):
    """Chosen columns in order of falling q.

    columns : (m,) positions;  q : (m,) with |Σ_i v_i x_ij x_ik| ≤ q_j q_k
    """

    columns: npt.NDArray[Any]
    q: npt.NDArray[Any]


class ChosenRows(NamedTuple):
    """The rows of the chosen columns, as `rows_of` makes them.

    starts : (n + 1,) row i has the entries starts[i] … starts[i + 1];  ranks, values : places of columns, and numbers
    """

    starts: npt.NDArray[Any]
    ranks: npt.NDArray[Any]
    values: npt.NDArray[Any]


class PairScratch(NamedTuple):
    """Where pairs are summed, and where those that are found are left.

    sums : (m,) scratch;  mark : (m,) of −1 at first: the column that a partner was met with last
    found : (c, 2) out, places among the chosen columns, c ≥ m;  sizes : (c,) out
    """

    sums: npt.NDArray[Any]
    mark: npt.NDArray[Any]
    found: npt.NDArray[Any]
    sizes: npt.NDArray[Any]


@compiled(nogil=True)
def column_weights(data, indices, indptr, v, linear, squares, plus, minus):  # type: ignore[no-untyped-def]
    """Σ v x, Σ v x², and the two parts of Σ |v| x² where v > 0 and where v < 0, of every column of a CSC matrix."""
    for j in range(indptr.size - 1):
        one = 0.0
        two = 0.0
        above = 0.0
        below = 0.0
        for s in range(indptr[j], indptr[j + 1]):
            x = data[s]
            weight = v[indices[s]]
            one += weight * x
            two += weight * (x * x)
            if weight > 0.0:
                above += weight * (x * x)
            else:
                below -= weight * (x * x)
        linear[j] = one
        squares[j] = two
        plus[j] = above
        minus[j] = below


@compiled(nogil=True)
def rows_of(stored, columns, v, rows):  # type: ignore[no-untyped-def]
    """The rows of chosen columns: entries in the order of `columns`, named by their place there; v_i = 0 is left out.

    Parameters
    ----------
    stored : StoredColumns
    columns : (m,) positions
    v : (n,)
    rows : ChosenRows, out, with room for as many entries as the columns have
    """
    data, indices, indptr = stored
    starts, ranks, values = rows
    starts[:] = 0
    for t in range(columns.size):
        for s in range(indptr[columns[t]], indptr[columns[t] + 1]):
            if v[indices[s]] != 0.0:
                starts[indices[s] + 1] += 1
    for i in range(v.size):
        starts[i + 1] += starts[i]
    for t in range(columns.size):
        for s in range(indptr[columns[t]], indptr[columns[t] + 1]):
            i = indices[s]
            if v[i] != 0.0:
                ranks[starts[i]] = t
                values[starts[i]] = data[s]
                starts[i] += 1
    for i in range(v.size, 0, -1):
        starts[i] = starts[i - 1]
    starts[0] = 0


@compiled(nogil=True)
def pairs_above(stored, chosen, rows, v, least, begin, budget, room):  # type: ignore[no-untyped-def]
    """Pairs of chosen columns whose |Σ_i v_i x_ij x_ik| reaches `least`, from the column `begin` on.

    |Σ| ≤ q_j q_k (Cauchy and Schwarz), and q falls: of a column only the partners before it are looked at with
    q_j q_k ≥ least, which are the first ones of every row.

    Parameters
    ----------
    stored, chosen, rows : StoredColumns, ChosenColumns, ChosenRows
    v : (n,)
    least : float
    begin : int
    budget : int, products after which it returns
    room : PairScratch

    Returns
    -------
    int, int, int
        The column to go on with (m: done), how many pairs were found, and how many products were made.
    """
    data, indices, indptr = stored
    columns, q = chosen
    starts, ranks, values = rows
    sums, mark, found, sizes = room
    m = columns.size
    count = 0
    work = 0
    met = np.empty(m, np.int32)
    for t in range(begin, m):
        if q[0] * q[t] < least:
            return m, count, work
        # the partners: the first `low` columns
        low = 0
        high = t
        while low < high:
            middle = (low + high) // 2
            if q[middle] * q[t] >= least:
                low = middle + 1
            else:
                high = middle
        if count + low > sizes.size or work > budget:
            return t, count, work
        k = 0
        for s in range(indptr[columns[t]], indptr[columns[t] + 1]):
            i = indices[s]
            x = data[s]
            weight = v[i]
            if weight == 0.0:
                continue
            for u in range(starts[i], starts[i + 1]):
                other = ranks[u]
                if other >= low:
                    break
                if mark[other] != t:
                    mark[other] = t
                    met[k] = other
                    sums[other] = 0.0
                    k += 1
                sums[other] += weight * (x * values[u])
                work += 1
        for a in range(k):
            if abs(sums[met[a]]) >= least:
                found[count, 0] = met[a]
                found[count, 1] = t
                sizes[count] = abs(sums[met[a]])
                count += 1
    return m, count, work


@compiled(nogil=True)
def products(X, variables, v, sums):  # type: ignore[no-untyped-def]
    """Σ_i v_i (x_ij · x_ik · …) of given products of dense columns; variable −1 is the number 1.

    Parameters
    ----------
    X : (n, p)
    variables : (k, d) positions of columns, −1 first
    v : (n,)
    sums : (k,) out
    """
    for a in range(variables.shape[0]):
        total = 0.0
        for i in range(v.size):
            x = 1.0
            for d in range(variables.shape[1]):
                if variables[a, d] >= 0:
                    x = x * X[i, variables[a, d]]
            total += v[i] * x
        sums[a] = total
