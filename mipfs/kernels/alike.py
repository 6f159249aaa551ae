"""Samples that are alike on some columns, exactly: the numba kernel."""

from __future__ import annotations

import numpy as np

from mipfs.compiled import compiled
from mipfs.kernels.vectors import copy_to


@compiled(nogil=True)
def split_kinds(bits, indices, indptr, kind, sizes, most):  # type: ignore[no-untyped-def]
    """Split kinds of samples by the columns of a CSC matrix: those stay together that agree on every column.

    Column by column, samples with a stored number move to the kind of (their kind, that number); who has none stays.
    A table over these pairs says which kind that is, so nothing rests on hashes being different.

    Parameters
    ----------
    bits : stored numbers as uint64; no zeros
    indices, indptr : of the columns
    kind : (n,) int32, in and out: the kind of every sample; afterwards kinds are numbered by their first samples
    sizes : (k,) samples of every kind
    most : kinds from which on it is given up

    Returns
    -------
    first : (m,) the first sample of every kind; empty where it was given up, and `kind` is of no use then
    parent : (m,) the kind before
    """
    count = sizes.size
    live = sizes.size
    room = 2 * sizes.size + 64
    parent = np.empty(room, np.int32)
    held = np.zeros(room, np.int64)
    for k in range(count):
        parent[k] = k
        held[k] = sizes[k]
    size = 1024
    of = np.empty(size, np.int32)
    what = np.empty(size, np.uint64)
    when = np.zeros(size, np.int64)
    to = np.empty(size, np.int32)
    nobody = np.empty(0, np.int64), np.empty(0, np.int32)
    for j in range(indptr.size - 1):
        used = 0
        for s in range(indptr[j], indptr[j + 1]):
            i = indices[s]
            k = kind[i]
            x = bits[s]
            # Open addressing; a slot whose `when` is not this column counts as empty, so no column clears the table.
            at = _hash_slot(k, x, size)
            while when[at] == j + 1 and not (of[at] == k and what[at] == x):
                at = (at + 1) & (size - 1)
            if when[at] != j + 1:
                if count == room:
                    more = np.zeros(2 * room, np.int64)
                    parent_more = np.empty(2 * room, np.int32)
                    copy_to(held, more)
                    copy_to(parent, parent_more)
                    held = more
                    parent = parent_more
                    room = 2 * room
                parent[count] = parent[k]
                of[at] = k
                what[at] = x
                when[at] = j + 1
                to[at] = count
                count = count + 1
                live = live + 1
                used = used + 1
            new = to[at]
            kind[i] = new
            held[k] -= 1
            held[new] += 1
            live -= held[k] == 0
            if 2 * used > size:
                # The table is kept at most half full: the entries of this column move to one of twice the size.
                of_old = of
                what_old = what
                when_old = when
                to_old = to
                size *= 2
                of = np.empty(size, np.int32)
                what = np.empty(size, np.uint64)
                when = np.zeros(size, np.int64)
                to = np.empty(size, np.int32)
                for old in range(size // 2):
                    if when_old[old] == j + 1:
                        at = _hash_slot(of_old[old], what_old[old], size)
                        while when[at] == j + 1:
                            at = (at + 1) & (size - 1)
                        of[at] = of_old[old]
                        what[at] = what_old[old]
                        when[at] = j + 1
                        to[at] = to_old[old]
        if live > most:
            return nobody
    # Kinds are numbered by their first samples; those that lost all samples get no number.
    number = np.full(count, -1, np.int32)
    found = 0
    first = np.empty(live, np.int64)
    before = np.empty(live, np.int32)
    for i in range(kind.size):
        k = kind[i]
        if number[k] < 0:
            number[k] = found
            first[found] = i
            before[found] = parent[k]
            found += 1
        kind[i] = number[k]
    return first, before


@compiled(inline="always")
def _hash_slot(k, x, size):  # type: ignore[no-untyped-def]
    mixed = (x ^ (np.uint64(k) * np.uint64(0x9E3779B97F4A7C15))) * np.uint64(0xD6E8FEB86659FD93)
    mixed = (mixed ^ (mixed >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return np.int64((mixed >> np.uint64(33)) & np.uint64(size - 1))
