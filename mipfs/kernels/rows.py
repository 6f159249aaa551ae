"""Rows of sparse columns as the solvers' kernels take them, and which of them are alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.compiled import compiled

Integers = npt.NDArray[np.int64]


@compiled(nogil=True)
def signed_rows(data, indices, indptr, ids, y, scale, ones, stored):  # type: ignore[no-untyped-def]
    """The CSR triple of the rows y_i (λ∘x_i, 1) over the CSC columns `ids`.

    Parameters
    ----------
    data, indices, indptr : the CSC matrix
    ids : (k,) positions of columns
    y : (n,)
    scale : (k,) λ
    ones : whether the rows end with y_i·1, their entry k
    stored : int, entries of these columns

    Returns
    -------
    values : (stored (+ n),)
    columns : (stored (+ n),) int32, ascending in every row
    pointer : (n + 1,) int64
    """
    n = y.size
    k = ids.size
    more = int(ones)
    values = np.empty(stored + n * more)
    columns = np.empty(stored + n * more, np.int32)
    pointer = np.zeros(n + 1, np.int64)
    # Counting sort: how many entries every row has, where it begins, then the entries in order of the columns.
    for t in range(k):
        for s in range(indptr[ids[t]], indptr[ids[t] + 1]):
            pointer[indices[s] + 1] += 1
    for i in range(n):
        pointer[i + 1] += pointer[i] + more
    place = pointer[:n].copy()
    for t in range(k):
        for s in range(indptr[ids[t]], indptr[ids[t] + 1]):
            i = indices[s]
            values[place[i]] = data[s] * scale[t] * y[i]
            columns[place[i]] = t
            place[i] += 1
    if ones:
        for i in range(n):
            values[place[i]] = y[i]
            columns[place[i]] = k
    return values, columns, pointer


def kinds(A: Any, most: int) -> tuple[Integers, Integers]:
    """Which rows are alike: the margins of such rows are the same, whatever the weights.

    Parameters
    ----------
    A : (n, d) row-major array, or a CSR triple
    most : kinds up to which it is worth knowing

    Returns
    -------
    first : (m,) a row of every kind; empty where there are more than `most`
    kind : (n,) the kind of every row
    """
    values, columns, pointer = A if isinstance(A, tuple) else _as_triple(A)
    first = np.empty(most, np.int64)
    kind = np.empty(pointer.size - 1, np.int64)
    count = _classify_rows(values.view(np.uint64), values, columns, pointer, first, kind)
    return first[:count], kind


def rows_at(A: Any, rows: Integers) -> tuple[Any, Any, Any]:
    """Some rows of a CSR triple, as a triple."""
    values, columns, pointer = A
    sizes = pointer[rows + 1] - pointer[rows]
    ends = np.append(0, np.cumsum(sizes))
    places = np.repeat(pointer[rows] - ends[:-1], sizes) + np.arange(ends[-1])
    return values[places], columns[places], ends


def _as_triple(A: npt.NDArray[np.float64]) -> tuple[Any, Any, Any]:
    """The triple of a dense array, all entries stored."""
    n, d = A.shape
    return np.ascontiguousarray(A).reshape(-1), np.tile(np.arange(d, dtype=np.int32), n), np.arange(n + 1) * d


@compiled(nogil=True)
def _classify_rows(bits, values, columns, pointer, first, kind):  # type: ignore[no-untyped-def]
    """Fill `first` and `kind`; the number of kinds, 0 where there are more than `first` has room for."""
    n = pointer.size - 1
    count = 0
    size = 16
    # Open addressing in a table that is at most a quarter full.
    while size < 4 * first.size:
        size *= 2
    table = np.full(size, -1, np.int64)
    for i in range(n):
        key = np.uint64(0)
        for s in range(pointer[i], pointer[i + 1]):
            if values[s] != 0.0:
                key += mix_hash(bits[s], columns[s])
        slot = np.int64(key & np.uint64(size - 1))
        while True:
            t = table[slot]
            if t < 0:
                if count == first.size:
                    return 0
                table[slot] = count
                first[count] = i
                kind[i] = count
                count += 1
                break
            if _equal_rows(values, columns, pointer, i, first[t]):
                kind[i] = t
                break
            slot = (slot + 1) % size
    return count


@compiled(nogil=True)
def _equal_rows(values, columns, pointer, i, j):  # type: ignore[no-untyped-def]
    """Whether two rows hold the same numbers other than zero."""
    a = pointer[i]
    b = pointer[j]
    while True:
        while a < pointer[i + 1] and values[a] == 0.0:
            a += 1
        while b < pointer[j + 1] and values[b] == 0.0:
            b += 1
        if a == pointer[i + 1] or b == pointer[j + 1]:
            return a == pointer[i + 1] and b == pointer[j + 1]
        if columns[a] != columns[b] or values[a] != values[b]:
            return False
        a += 1
        b += 1


@compiled(nogil=True)
def mix_hash(bits, j):  # type: ignore[no-untyped-def]
    """A hash of an entry and its column; those of a row are added up."""
    x = bits ^ (np.uint64(j + 1) * np.uint64(0x9E3779B97F4A7C15))
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
