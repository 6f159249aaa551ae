"""Atoms of one column each that are too many to hold: a column is made when it is selected, the best ones are searched.

`mipfs.drivers.searched` solves the relaxation over them and `mipfs.drivers.growing` the problem, over some of them that
grow until one dual vector rules out the rest.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mipfs.atoms import BestSearch
from mipfs.atoms.features import Features
from mipfs.data.checks import feature_names
from mipfs.data.instance import Instance, SelectDefaults
from mipfs.data.made import MadeMatrix, checked
from mipfs.data.names import Unstored
from mipfs.errors import UsageError
from mipfs.plumbing.arrays import Array, Integers

MOST = 1 << 24
"""Scores of all atoms are computed up to this number of them."""


class Search(ABC):
    """Finds the best of all atoms again and again, for changing v; for one thread."""

    largest_norm: float | None = None
    largest_center = 0.0

    def best(self, v: Array, B: int, must_stop: Callable[[], bool] = bool) -> tuple[Integers, Array]:
        """At most B atoms of largest positive score, and their |ω|; of equal ones the lowest number first."""
        return self.search(v, B, must_stop=must_stop)

    @abstractmethod
    def radius(self, v: Array) -> float:
        """A bound on |computed − exact| of every |ω|, of columns as `Implicit.made` rounds them."""

    @abstractmethod
    def search(
        self, v: Array, B: int, least: float = 0.0, must_stop: Callable[[], bool] = bool
    ) -> tuple[Integers, Array]:
        """At most B atoms of largest positive |ω| ≥ `least`, best first, of equal ones the lowest number first; |ω|.

        Every other one has a |ω| below the last, or below `least`, as it is computed.

        Raises
        ------
        StoppedError
            `must_stop` said so before it was done.
        """


class Implicit(Features, ABC):
    """Atoms that nobody holds all of: a subclass says how columns are made, and finds the best ones.

    ``Problem(data, atoms=Mine(data), M=3)``. Drivers `branch` and `kelley` carry them, with M as the only condition.

    Parameters
    ----------
    base : Instance
        What columns are made of, as its values are stored.
    names : sequence of str
        A name for every atom, all different; made when they are asked for (`mipfs.data.names.Unstored`).
    stated : str
        What tells these columns from others that are made of the same data.
    """

    is_held = False
    is_checkable = False
    called = "atoms that are searched"

    def __init__(self, base: Instance, names: Sequence[str], stated: str) -> None:
        self.base = base
        count = len(names)
        none, one = np.broadcast_to(0.0, count), np.broadcast_to(1.0, count)
        names = names if isinstance(names, Unstored) else feature_names(names, count, None)
        make = checked(f"{type(self).__name__}.made", self.made, base.n_samples)
        X = MadeMatrix((base.n_samples, count), make)
        sha256 = hashlib.sha256(stated.encode()).hexdigest()
        view = base.over(X, names, center=none, shift=none, scale=one, scaling="none", values_sha256=sha256)
        object.__setattr__(view, "select", SelectDefaults(M=base.select.M))
        super().__init__(view)

    @abstractmethod
    def made(self, ids: Integers) -> Array:
        """The columns of the atoms `ids`, (n, k): finite, and always the same."""

    @abstractmethod
    def search(self) -> Search:
        """Finds the best of them; for one thread."""

    @property
    def kind(self) -> str:
        """What `mipfs.capability` calls them."""
        return "searched atoms"

    @property
    def raw(self) -> Instance:
        """What the columns are made of."""
        return self.base

    def scores(self, v: Array) -> Array:
        """ω² of every one of them, (count,), where that fits into memory."""
        if self.count > MOST:
            raise UsageError(f"{self.count:.3g} scores do not fit into memory; `search` finds the best of them")
        return super().scores(v)

    def best(self, v: Array, B: int) -> Integers:
        """At most B of largest positive score, best first, of equal ones the lowest number first."""
        return self.search().best(v, B)[0]

    def best_search(self, client: Any, must_stop: Callable[[], bool]) -> BestSearch:
        """That of all atoms."""
        return self.search()


def ensure_one(ids: Integers) -> Integers:
    """These atoms, or the first one where there are none: a proof is over at least one."""
    return ids if ids.size else np.zeros(1, dtype=np.int64)
