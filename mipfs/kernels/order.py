"""Order in compiled code: what a node needs of it, in less code to compile than numpy's sorts become."""

from __future__ import annotations

import numpy as np

from mipfs.compiled import compiled


@compiled(nogil=True)
def sift_down(keys, items, root, end):  # type: ignore[no-untyped-def]
    """Move an entry down a heap whose parents are the larger ones."""
    while 2 * root + 1 < end:
        child = 2 * root + 1
        if child + 1 < end and keys[child] < keys[child + 1]:
            child += 1
        if keys[root] >= keys[child]:
            return
        keys[root], keys[child] = keys[child], keys[root]
        items[root], items[child] = items[child], items[root]
        root = child


@compiled(nogil=True)
def sort_up(keys, items):  # type: ignore[no-untyped-def]
    """Sort keys (n,) in place, the least first, and `items` with them (Williams's heap sort, 1964)."""
    n = keys.size
    for root in range(n // 2 - 1, -1, -1):
        sift_down(keys, items, root, n)
    for end in range(n - 1, 0, -1):
        keys[0], keys[end] = keys[end], keys[0]
        items[0], items[end] = items[end], items[0]
        sift_down(keys, items, 0, end)


@compiled(nogil=True)
def kth_largest(values, K):  # type: ignore[no-untyped-def]
    """The K-th largest of values (n,), 1 ≤ K ≤ n, which are moved about (Hoare's selection, 1961)."""
    low = 0
    high = values.size - 1
    at = K - 1
    while low < high:
        pivot = values[(low + high) // 2]
        i = low
        j = high
        while i <= j:
            while values[i] > pivot:
                i += 1
            while values[j] < pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if at <= j:
            high = j
        elif at >= i:
            low = i
        else:
            break
    return values[at]


@compiled(nogil=True)
def sum_of_largest(values, K):  # type: ignore[no-untyped-def]
    """The sum of the K largest of values (n,), all of them where K ≥ n; the values are moved about."""
    if K <= 0:
        return 0.0
    if values.size > K:
        # The K largest stand in front then.
        kth_largest(values, K)
    return values[: min(K, values.size)].sum()


@compiled(nogil=True)
def falling(values):  # type: ignore[no-untyped-def]
    """Positions of values (n,), the largest first."""
    keys = -values
    order = np.arange(values.size)
    sort_up(keys, order)
    return order


@compiled(nogil=True)
def first_up(keys, items, K):  # type: ignore[no-untyped-def]
    """Bring the K least keys to the front, 1 ≤ K ≤ n, in order, and `items` with them."""
    n = keys.size
    if n > K:
        limit = -kth_largest(-keys, K)
        at = 0
        for t in range(n):
            if keys[t] < limit:
                keys[t], keys[at], items[t], items[at] = keys[at], keys[t], items[at], items[t]
                at += 1
        for t in range(at, n):
            if at == K:
                break
            if keys[t] == limit:
                keys[t], keys[at], items[t], items[at] = keys[at], keys[t], items[at], items[t]
                at += 1
    sort_up(keys[:K], items[:K])
