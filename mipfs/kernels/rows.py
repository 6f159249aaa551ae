"""Rows of sparse columns as the solvers' kernels take them."""

from __future__ import annotations

from typing import Any

import numpy as np

from mipfs.compiled import compiled
from mipfs.plumbing.arrays import Integers


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


def rows_at(A: Any, rows: Integers) -> tuple[Any, Any, Any]:
    """Some rows of a CSR triple, as a triple."""
    values, columns, pointer = A
    sizes = pointer[rows + 1] - pointer[rows]
    ends = np.append(0, np.cumsum(sizes))
    places = np.repeat(pointer[rows] - ends[:-1], sizes) + np.arange(ends[-1])
    return values[places], columns[places], ends
