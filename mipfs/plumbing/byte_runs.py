# mypy: disable-error-code="call-arg"
"""Runs of bytes out of many parts of memory, in compiled code: thousands at once."""

from __future__ import annotations

import numpy as np

from mipfs.compiled import compiled
from mipfs.pointers import copy_memory


@compiled(nogil=True)
def copy_runs(addresses, begins, lows, highs, found):  # type: ignore[no-untyped-def]
    """Copy runs of bytes, from `lows` up to `highs`, one behind the other to `found`, which has room for them.

    The bytes lie in P parts, one behind the other from `begins` on, each at an address.

    addresses : (P,);  begins : (P + 1,), where the last part ends at last
    """
    at = 0
    for run in range(lows.size):
        low = lows[run]
        part = np.searchsorted(begins, low, side="right") - 1
        while low < highs[run]:
            count = min(highs[run], begins[part + 1]) - low
            copy_memory(addresses[part] + low - begins[part], found, at, count)
            at += count
            low += count
            part += 1
