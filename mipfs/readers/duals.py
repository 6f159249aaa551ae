"""Dual vectors as the sidecar of a certificate holds them, compressed: what comes out is integers, and no proof yet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt


def decoded(arrays: Mapping[str, npt.NDArray[Any]], d: int, n: int) -> npt.NDArray[np.int64]:
    """k (n,) of dual vector d: a bit for every non-zero, one for every entry at the top, then the other ones.

    The top is the level of the vector, or where the weights c_i differ (``dual_top``) floor(c_i·2^q).
    """
    rest, width = (
        arrays["dual_bytes"][arrays["dual_start"][d] : arrays["dual_start"][d + 1]],
        int(arrays["dual_width"][d]),
    )
    held = np.unpackbits(rest[: (n + 7) // 8], count=n).view(bool)
    rest, count = rest[(n + 7) // 8 :], int(held.sum())
    at_top = np.unpackbits(rest[: (count + 7) // 8], count=count).view(bool)
    values = np.zeros((count - int(at_top.sum()), 8), dtype=np.uint8)
    values[:, :width] = rest[(count + 7) // 8 :].reshape(values.shape[0], width)
    k, at, top = np.zeros(n, dtype=np.int64), np.flatnonzero(held), arrays["dual_level"][d]
    if arrays["dual_top"].size:
        top = np.minimum(np.floor(np.ldexp(arrays["dual_top"], arrays["dual_q"][d])), 2.0**62)[at[at_top]]
    k[at[at_top]], k[at[~at_top]] = top, values.view("<i8").ravel()
    return k
