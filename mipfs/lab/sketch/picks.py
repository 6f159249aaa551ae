"""What a method leaves: columns, how often each was taken, and the weights of D D'; and what it promises of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mipfs.plumbing.arrays import Array, Integers

Progress = Callable[[int, int], None]
"""Told how many of how many picks are made."""


@dataclass(frozen=True)
class Promise:
    """What a theorem says before anything is measured: the eigenvalues of V'DD'V lie in [low, high].

    Attributes
    ----------
    low, high : float
        Also of γ̃²/γ²; of R̃²/R² too where columns were chosen from all rows.
    probability : float in (0, 1], of the draws
    source : str, the theorem
    paper : float, the paper's own bound on ε, which is never below the sharp one; inf where its constant is not given
    """

    low: float
    high: float
    probability: float
    source: str
    paper: float

    @property
    def epsilon(self) -> float:
        """The promised bound on ‖I − V'DD'V‖₂."""
        return max(1.0 - self.low, self.high - 1.0)


@dataclass(frozen=True, eq=False)
class Picks:
    """The columns that a method takes.

    Attributes
    ----------
    order : (draws,) positions in the order in which they were taken, repeats included
    ids : (k,) the different ones, ascending
    repeats : (k,) how often each was taken
    weight : (k,) diagonal of DD': column j is multiplied by √weight_j
    promise : Promise, or None where nothing is proven
    remarks : tuple of str, what a user should know of this choice
    rank : int, of the matrix whose singular vectors were used; 0 where none was decomposed
    sure : bool, whether that is the rank of the rows themselves: only then the promise is about them
    """

    order: Integers
    ids: Integers
    repeats: Integers
    weight: Array
    promise: Promise | None = None
    remarks: tuple[str, ...] = ()
    rank: int = 0
    sure: bool = True


def gathered(
    order: Integers,
    weights: Array,
    promise: Promise | None = None,
    remarks: tuple[str, ...] = (),
    rank: int = 0,
    sure: bool = True,
) -> Picks:
    """`Picks` of draws (draws,) with a weight (draws,) each; those of a column that was taken again are added."""
    ids, place, repeats = np.unique(order, return_inverse=True, return_counts=True)
    weight = np.bincount(place, weights, ids.size).astype(float)
    return Picks(order, ids, repeats.astype(np.int64), weight, promise, remarks, rank, sure)
