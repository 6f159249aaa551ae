"""Atoms of one column each that is computed when somebody asks for it: squares, products, splines of features."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from mipfs.atoms import AtomColumns, Atoms, Ids
from mipfs.atoms.features import Features
from mipfs.data.checks import feature_names
from mipfs.data.instance import Instance
from mipfs.data.made import MadeMatrix, checked
from mipfs.plumbing.arrays import Array, Integers


class Made(Atoms, ABC):
    """Columns that are made from those of an instance. A subclass says their number, their names, and how.

    ``Problem(data, atoms=Squares(data))`` is the problem over `view`, an instance whose features are the atoms: drivers
    take columns of it as of any other, certificates are about it (``mipfs.verify(result, problem.data)``), and
    ``result.predict(Squares(new).view)`` takes new data.

    Parameters
    ----------
    data : Instance
        Its values as they are stored: scaled, if it was read so.
    """

    def __init__(self, data: Instance) -> None:
        self.data = data

    @property
    @abstractmethod
    def names(self) -> Sequence[str]:
        """A name for every atom, all different."""

    @abstractmethod
    def make(self, ids: Integers) -> Array:
        """The columns of the atoms `ids`, (n, k): finite, and always the same."""

    @cached_property
    def view(self) -> Instance:
        """The instance whose features are the atoms; no column of it is stored."""
        data = self.data
        names = feature_names(self.names, len(self.names), None)
        p = len(names)
        none, one = np.broadcast_to(0.0, p), np.broadcast_to(1.0, p)
        stated = f"{type(self).__module__}.{type(self).__qualname__} {data.sha256} {data.scaling} {p}"
        return data.over(
            MadeMatrix((data.n_samples, p), checked(f"{type(self).__name__}.make", self.make, data.n_samples)),
            names,
            center=none,
            shift=none,
            scale=one,
            scaling="none",
            values_sha256=hashlib.sha256(stated.encode()).hexdigest(),
        )

    @cached_property
    def features(self) -> Features:
        """The atoms as the features of `view`, which a `Problem` takes in their place."""
        return Features(self.view)

    @property
    def raw(self) -> Instance:
        """What certificates and rows are about."""
        return self.view

    @property
    def settled(self) -> Features:
        """The features of `view`."""
        return self.features

    @property
    def count(self) -> int:
        """Number of atoms."""
        return len(self.names)

    @property
    def kind(self) -> str:
        """What `mipfs.capability` calls them."""
        return self.features.kind

    @property
    def stamp(self) -> str:
        """See `mipfs.atoms.Atoms`."""
        return self.features.stamp

    def on(self, data: Instance) -> Made:
        """The atoms of other data with the same features."""
        return type(self)(data)

    def scores(self, v: Array) -> Array:
        """ω_j², (count,)."""
        return self.features.scores(v)

    def score_error(self, v: Array, scores: Array | None = None) -> Array:
        """A bound on |computed − exact| of every score."""
        return self.features.score_error(v, scores)

    def best(self, v: Array, B: int) -> Integers:
        """At most B atoms of largest positive score, best first."""
        return self.features.best(v, B)

    def columns(self, ids: Ids) -> AtomColumns:
        """The columns of `view` that the atoms `ids` use: themselves."""
        return self.features.columns(ids)
