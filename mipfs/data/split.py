"""How samples are split into folds where chance alone does not say it: some belong together, or the parts are given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mipfs.plumbing.arrays import Integers

Pair = tuple[Integers, Integers]
"""The samples of a training part, and of the test part that it is judged on."""


@dataclass(frozen=True, eq=False)
class Split:
    """What folds and draws of samples keep to; it is no part of the data's digest.

    Attributes
    ----------
    by : str, the column that says which samples belong together, or the splitter that gave the pairs
    of : (n,) ndarray of int, or None: samples of the same number are never on both sides of a fold
    pairs : sequence of (training, test), the folds where they are given
    splitter : the splitter of scikit-learn that gave the pairs, or None
    """

    by: str
    of: Integers | None = None
    pairs: Sequence[Pair] = ()
    splitter: Any = None

    @property
    def count(self) -> int:
        """How many folds there are at most: the pairs, or the different numbers; 0 where nothing is said."""
        return len(self.pairs) or (0 if self.of is None else int(np.unique(self.of).size))

    def part(self, rows: Integers) -> Split | None:
        """What it says of some samples; pairs are of all of them."""
        return None if self.of is None else Split(self.by, self.of[rows])
