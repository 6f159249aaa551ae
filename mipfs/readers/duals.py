"""Dual vectors as the sidecar of a certificate holds them, compressed: what comes out is integers, and no proof yet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

WIDEST = 2**53
"""Largest k: up to here k·2^−q is a float64, exactly."""


def decode_dual(arrays: Mapping[str, npt.NDArray[Any]], d: int, n: int) -> npt.NDArray[np.int64]:
    """k (n,) of dual vector d of a sidecar."""
    data = arrays["dual_bytes"][arrays["dual_start"][d] : arrays["dual_start"][d + 1]]
    q, level, width = (arrays[name][d] for name in ("dual_q", "dual_level", "dual_width"))
    return unpack_dual(data, n, q, level, int(width), arrays["dual_top"] if arrays["dual_top"].size else None)


def unpack_dual(
    data: npt.NDArray[np.uint8], n: int, q: Any, level: Any, width: int, top: npt.NDArray[np.float64] | None
) -> npt.NDArray[np.int64]:
    """k (n,) of a dual vector: a bit for every non-zero, one for every entry at the top, then the other ones.

    The top is the level of the vector, or where the weights c_i differ (`top`) floor(c_i·2^q).
    """
    held = np.unpackbits(data[: (n + 7) // 8], count=n).view(bool)
    rest = data[(n + 7) // 8 :]
    count = int(np.count_nonzero(held))
    at_top = np.unpackbits(rest[: (count + 7) // 8], count=count).view(bool)
    below = ~at_top
    size = (n + 7) // 8 + (count + 7) // 8 + width * int(np.count_nonzero(below))
    if data.size != size:
        raise ValueError(f"a dual vector has {data.size} bytes in place of {size}")
    values = np.zeros((np.count_nonzero(below), 8), dtype=np.uint8)
    values[:, :width] = rest[(count + 7) // 8 :].reshape(values.shape[0], width)
    found = np.empty(count, dtype=np.int64)
    found[at_top] = level if top is None else np.minimum(np.floor(np.ldexp(top, q)), float(WIDEST))[held][at_top]
    found[below] = values.view("<i8").ravel()
    k = np.zeros(n, dtype=np.int64)
    k[held] = found
    return k


def decoded_rows(arrays: Mapping[str, npt.NDArray[Any]], ids: npt.NDArray[np.int64], n: int) -> npt.NDArray[np.int64]:
    """k (B, n) of several dual vectors of a sidecar, as `decode_dual` has each; `dual_start` does not fall."""
    data = arrays["dual_bytes"]
    begin, end = (arrays["dual_start"][ids + k].astype(np.int64) for k in (0, 1))
    q, level, width = (arrays[name][ids] for name in ("dual_q", "dual_level", "dual_width"))
    width = width.astype(np.int64)
    held = _read_bits(data, begin, np.minimum(end - begin, (n + 7) // 8), n)
    count = held.sum(axis=1)
    begin = begin + (n + 7) // 8
    bits = _read_bits(data, begin, np.clip(end - begin, 0, (count + 7) // 8), int(count.max(initial=0)))
    at_top = bits[np.arange(bits.shape[1]) < count[:, None]]
    row, column = np.nonzero(held)
    below = ~at_top
    own = row[below]
    others = np.bincount(own, minlength=ids.size)
    begin += (count + 7) // 8
    if np.any(end - begin != width * others):  # said as of one vector
        for d in ids.tolist():
            decode_dual(arrays, d, n)
    top = arrays["dual_top"]
    found = np.empty(row.size, dtype=np.int64)
    r, i = row[at_top], column[at_top]
    found[at_top] = level[r] if not top.size else np.minimum(np.floor(np.ldexp(top[i], q[r])), float(WIDEST))
    place = np.arange(own.size) - (np.cumsum(others) - others)[own]
    found[below] = _read_integers(data, begin[own] + place * width[own], width[own])
    k = np.zeros((ids.size, n), dtype=np.int64)
    k[held] = found
    return k


def _read_bits(
    data: npt.NDArray[np.uint8], begin: npt.NDArray[np.int64], size: npt.NDArray[np.int64], count: int
) -> npt.NDArray[np.bool_]:
    """The first bits (B, count) of stretches of bytes, zeros after the end of one."""
    place = np.arange((count + 7) // 8)
    inside = place < size[:, None]
    held = np.zeros(inside.shape, dtype=data.dtype)
    held[inside] = data[(begin[:, None] + place)[inside]]
    return np.unpackbits(held, axis=1, count=count).view(bool)


def _read_integers(
    data: npt.NDArray[np.uint8], begin: npt.NDArray[np.int64], width: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Whole numbers, each of as many bytes as its width, the lowest one first."""
    found = np.zeros(begin.size, dtype=np.int64)
    for byte in range(int(width.max(initial=0))):
        longer = width > byte
        found[longer] |= data[begin[longer] + byte].astype(np.int64) << (8 * byte)
    return found
