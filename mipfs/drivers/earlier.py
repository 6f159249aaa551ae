"""What the run proved that a resumed one goes on after, where its tree cannot be gone on with.

A run that is asked for more than the one before it, for a smaller gap or a longer list, begins its tree anew: nodes
were closed that it needs. But the bound of a run never falls, so the earlier proof is kept until the new tree proves
more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.plumbing.arrays import Arrays
from mipfs.run.run import Run

PREFIX = "earlier_"
"""What names of arrays begin with that are an earlier tree's, in the state of a run."""
SAME_CUTOFF = 1e-12
"""Cutoffs that differ by less than this, relative, are one."""


def is_asked_for_more(cutoff: float, closed_at: float) -> bool:
    """Whether nodes were closed below the present cutoff of which more could be said."""
    return cutoff > closed_at + SAME_CUTOFF * abs(closed_at)


@dataclass(frozen=True, eq=False)
class EarlierTree:
    """An earlier tree.

    Attributes
    ----------
    bound : float
    proof : what proves it; None where that was lost
    arrays : of its state, without those of a tree before it
    """

    bound: float
    proof: Any
    arrays: Arrays

    @classmethod
    def among(cls, kept: Mapping[str, npt.NDArray[Any]], proof_of: Callable[[Arrays], Any]) -> EarlierTree | None:
        """The one that stands in a state, if any; `proof_of` makes the proof of its arrays."""
        if f"{PREFIX}bound" not in kept:
            return None
        arrays = split_by_prefix(kept, PREFIX)[0]
        bound = float(arrays.pop("bound"))
        return cls(bound, proof_of(arrays), arrays)

    def outlives(self, bound: float, run: Run) -> bool:
        """Whether it still proves more than the present tree, of that bound.

        That a list of near-optimal supports is complete, the present tree alone shows: this one closed nodes that hold
        some of them.
        """
        has_whole_list = run.wants_all and run.closed
        return bound < self.bound and not has_whole_list

    @property
    def kept(self) -> Arrays:
        """The earlier tree as arrays, by names that begin with `PREFIX`, for the state of a run."""
        return {f"{PREFIX}{name}": array for name, array in {**self.arrays, "bound": np.array(self.bound)}.items()}


def own_arrays(kept: Mapping[str, npt.NDArray[Any]]) -> Arrays:
    """The arrays of a state without those of an earlier tree."""
    return split_by_prefix(kept, PREFIX)[1]


def split_by_prefix(kept: Mapping[str, npt.NDArray[Any]], prefix: str) -> tuple[Arrays, Arrays]:
    """The arrays whose names begin with a prefix, by the rest of their names, and the others."""
    inside = {name.removeprefix(prefix): array for name, array in kept.items() if name.startswith(prefix)}
    return inside, {name: array for name, array in kept.items() if not name.startswith(prefix)}


def better(one: EarlierTree | None, other: EarlierTree) -> EarlierTree:
    """The earlier tree of the larger bound, of two of which one may be missing."""
    return other if one is None or other.bound > one.bound else one
