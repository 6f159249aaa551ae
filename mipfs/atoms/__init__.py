"""What can be selected. Drivers see atoms only through v in R^n (ω = X'v), never X itself.

    (P) for atoms:  ½ Σ_g ‖w_g‖²/σ_g,  w_g the weights of λ_g X_g,  score s_g(v) = λ_g² ‖X_g'v‖²

An atom is a set of columns with one scale λ_g (Tan 2014, section 4): a feature, a group, a node of a tree.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from mipfs.data.instance import Instance
from mipfs.data.names import Unstored
from mipfs.errors import UsageError
from mipfs.plumbing.digest import digest

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Ids = Sequence[int] | Integers


@dataclass(frozen=True, eq=False)
class Columns:
    """The columns of X that chosen atoms use, atom by atom; one that two atoms share stands there twice.

    An SVM on ``scale * X[:, ids]`` with ½ Σ_k w_k²/σ[atom_k] is v(σ); its weights times `scale`, added up over
    equal `ids`, are the weights of the predictor. With perspective weights ``sigma[atom] * scale**2`` on the
    unscaled columns the same SVM yields the predictor's weights themselves.

    Attributes
    ----------
    ids : (k,) ndarray of int64, positions of columns of X
    atom : (k,) ndarray of int64, position in the chosen atoms of the one that the column belongs to
    scale : (k,) ndarray, λ of that atom
    """

    ids: Integers
    atom: Integers
    scale: Array


def merged(ids: Integers, w: Array) -> tuple[Integers, Array]:
    """Columns (k,) of which some may stand twice, each once, with the sums of their weights; else as they are."""
    distinct, place = np.unique(ids, return_inverse=True)
    if distinct.size == ids.size:
        return ids, w
    return distinct, np.bincount(place, w, distinct.size).astype(float)


def split_squares(columns: Columns, ids: Integers, w: Array, part: Array) -> float:
    """Σ_j w_j²/(Σ λ_g² σ_g) over the atoms g that use column j: what is least of all ways to split w.

    Parameters
    ----------
    columns : Columns of some atoms
    ids, w : (k,) columns, all different, and their weights
    part : σ of these atoms
    """
    largest = float(columns.scale.max(initial=0.0)) or 1.0
    shares = np.square(columns.scale / largest) * part[columns.atom]
    alone = columns.ids.size == ids.size  # no column stands twice
    room = shares if alone else np.bincount(np.searchsorted(ids, columns.ids), shares, ids.size)
    each = np.divide(w, largest * np.sqrt(room), out=np.zeros_like(w), where=room > 0)
    return float(each @ each)


class Atoms(Protocol):
    """What a driver may ask of the things to be selected."""

    @property
    def data(self) -> Instance:
        """The instance whose columns the atoms are made of."""

    @property
    def count(self) -> int:
        """Number of atoms, the length of σ."""

    @property
    def names(self) -> Sequence[str]:
        """A name for every atom."""

    @property
    def kind(self) -> str:
        """What `mipfs.capability` calls them."""

    @property
    def stamp(self) -> str:
        """SHA-256 of the data and of what the atoms are: equal for atoms that are the same on the same data."""

    def on(self, data: Instance) -> Atoms:
        """These atoms on other data with the same features: a column for each of theirs, with the λ that it has here.

        Raises
        ------
        UsageError
            The data has other features.
        """

    def scores(self, v: Array) -> Array:
        """s_g(v) = λ_g² ‖X_g'v‖² of every atom, shape (count,); v has shape (n,)."""

    def score_error(self, v: Array, scores: Array | None = None) -> Array:
        """A bound on |computed − exact| of every score, shape (count,).

        `scores` are those of v where they are at hand: no pass over the data is needed then.
        """

    def best(self, v: Array, B: int) -> Integers:
        """At most B atoms of largest positive score, best first, of equal ones the lowest id first."""

    def columns(self, ids: Ids) -> Columns:
        """The columns of X that the atoms `ids` use."""


def stamp_of(data: Instance, kind: str, names: Sequence[str], *arrays: npt.NDArray[Any]) -> str:
    """The stamp of atoms: the data with its scaling, and what says which columns and scales they are."""
    stated = [data.sha256, data.scaling, kind, None if isinstance(names, Unstored) else list(names)]
    parts = [json.dumps(stated, ensure_ascii=False).encode(), *(np.ascontiguousarray(a).tobytes() for a in arrays)]
    return digest(parts)


def same_data(one: Instance, other: Instance) -> bool:
    """Whether two instances hold the same values, labels and weights, on the same scale."""
    return one is other or (one.sha256, one.scaling) == (other.sha256, other.scaling)


def check_features(old: Instance, new: Instance) -> None:
    """Refuse data whose features are not those that the atoms are made of.

    Raises
    ------
    UsageError
    """
    same = old.feature_names == new.feature_names or tuple(old.feature_names) == tuple(new.feature_names)
    if not same:
        raise UsageError("the atoms are made of other features than this data has; make them anew on it")


def make(name: str, data: Instance, /, **options: Any) -> Atoms:
    """What can be selected, by its name: see `mipfs.atoms.registry.make`."""
    from mipfs.atoms.registry import make as made

    return made(name, data, **options)
