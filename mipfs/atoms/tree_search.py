"""The B best nodes of a tree for changing v, without the scores that a bound shows to be too small.

Below a node g every score is at most λ_max² ‖ω_g‖² (Tan 2014, Proposition 2). To have ‖ω_g‖ one must read every feature
below g, and then all scores there are known: nothing is saved. What is known without reading comes from an earlier v₀,

    |‖ω_g(v)‖ − ‖ω_g(v₀)‖| ≤ ‖X_g‖_F ‖v − v₀‖,

from both sides and for every node alone: the B-th largest lower end is a level that the B best reach, and only features
below nodes whose upper end reaches it are read. From one iteration of a cutting-plane method to the next v moves less
and less.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.atoms.features import centred_squares, omega_radius, sum_error, times_squares
from mipfs.atoms.parts import largest
from mipfs.atoms.tree import Tree
from mipfs.plumbing.arrays import Array, Arrays, Integers

MOST_READ_SHARE = 0.5
"""With a larger share of the features to read, all are, and v becomes the one to compare with."""
ROUNDING_FACTOR = 1.0 + 1e-9
"""What distances are multiplied by, for the rounding of norms and differences."""


class TreeSearch:
    """Finds the best nodes of a tree again and again, one object for every run.

    Parameters
    ----------
    tree : Tree

    Attributes
    ----------
    scored, saved : int
        Nodes whose score was computed, and whose score was not, in all calls together.
    """

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.scored = 0
        self.saved = 0
        self._norms = np.sqrt(tree.sums_below(centred_squares(tree.data)))
        self._before: tuple[Array, Array] | None = None

    def best(self, v: Array, B: int) -> tuple[Integers, Array]:
        """At most B nodes of largest positive score, best first, of equal ones the lowest id first; their scores.

        Parameters
        ----------
        v : (n,) ndarray
        B : int
        """
        tree = self.tree
        needed = self._needed(v, B)
        features = None if needed is None else tree.features_below(needed)
        if needed is None or features is None or features.size > MOST_READ_SHARE * tree.data.n_features:
            needed = np.arange(tree.count)
            squares = tree.squares(v)
            self._before = v.copy(), np.sqrt(squares)
        else:
            squares = tree.squares(v, features)
        scores = times_squares(tree.scale, squares)[needed]
        self.scored, self.saved = self.scored + needed.size, self.saved + tree.count - needed.size
        found = largest(scores, B)
        return needed[found], scores[found]

    def kept(self) -> Callable[[], Arrays]:
        """What makes arrays of the vector to compare with, and of the counts, as they are now."""
        numbers = np.array([self.scored, self.saved], dtype=np.int64)
        before = None if self._before is None else self._before[0]
        return lambda: {"search_counts": numbers, **({} if before is None else {"search_before": before})}

    def take_up(self, kept: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go on from what `kept` made.

        Raises
        ------
        ValueError
            It is of other samples.
        """
        self.scored, self.saved = map(int, kept["search_counts"].tolist())
        self._before = None
        if "search_before" in kept:
            v = np.array(kept["search_before"], dtype=float)
            if v.shape != (self.tree.data.n_samples,) or not np.isfinite(v).all():
                raise ValueError("the vector that the search compares with is of other samples")
            self._before = v, np.sqrt(self.tree.squares(v))

    def error(self, v: Array, best: float) -> float:
        """A bound on |computed − exact| of every score, where `best` is the largest one."""
        tree = self.tree
        radius = float(np.max(tree.scale * omega_radius(v, *tree.radii), initial=0.0))
        return float(sum_error(np.array([best]), np.array([radius]), np.array([tree.sizes.max(initial=0)]))[0])

    def _needed(self, v: Array, B: int) -> Integers | None:
        """The nodes that may be among the B best, ascending; None where there is nothing to compare with."""
        if self._before is None:
            return None
        tree = self.tree
        (v_before, sizes) = self._before
        # ‖X_g'v‖ changes by at most ‖X_g‖_F ‖v − v_before‖, beside what both were rounded by.
        away = self._norms * (float(np.linalg.norm(v - v_before)) * ROUNDING_FACTOR)
        away = away + omega_radius(v, *tree.radii) + omega_radius(v_before, *tree.radii)
        low = tree.scale * np.maximum(sizes / ROUNDING_FACTOR - away, 0.0)
        high = tree.scale * (sizes * ROUNDING_FACTOR + away) * ROUNDING_FACTOR
        level = float(np.partition(low, -B)[-B]) / ROUNDING_FACTOR if 0 < B <= low.size else 0.0
        return np.flatnonzero((high >= level) & (high > 0.0)).astype(np.int64)
