"""The best classifier of a run so far."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mipfs.plumbing.arrays import Array, mask_of


@dataclass(frozen=True, eq=False)
class Incumbent:
    """The best classifier so far: atoms with σ = 1, weights of their columns, intercept (scaled data), its value."""

    selected: npt.NDArray[np.int64]
    w: Array
    b: float
    objective: float

    def sigma(self, count: int) -> npt.NDArray[np.bool_]:
        """σ over `count` atoms, (count,) of bool."""
        return mask_of(count, self.selected)
