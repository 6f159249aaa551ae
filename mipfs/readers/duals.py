"""Dual vectors as the sidecar of a certificate holds them, compressed: what comes out is integers, and no proof yet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

WIDEST = 2**53
"""Largest k: up to here k·2^−q is a float64, exactly."""


def decoded(arrays: Mapping[str, npt.NDArray[Any]], d: int, n: int) -> npt.NDArray[np.int64]:
    """k (n,) of dual vector d of a sidecar."""
    data = arrays["dual_bytes"][arrays["dual_start"][d] : arrays["dual_start"][d + 1]]
    q, level, width = (arrays[name][d] for name in ("dual_q", "dual_level", "dual_width"))
    return unpacked(data, n, q, level, int(width), arrays["dual_top"] if arrays["dual_top"].size else None)


def unpacked(
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
