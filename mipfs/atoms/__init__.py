"""What can be selected. Drivers see atoms only through v in R^n (ω = X'v), never X itself.

    (P) for atoms:  ½ Σ_g ‖w_g‖²/σ_g,  w_g the weights of λ_g X_g,  score s_g(v) = λ_g² ‖X_g'v‖²

An atom is a set of columns with one scale λ_g (Tan 2014, section 4): a feature, a group, a node of a tree.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from mipfs.atoms.parts import largest
from mipfs.data.instance import Instance
from mipfs.data.names import Unstored
from mipfs.errors import UsageError
from mipfs.plumbing.arrays import Array, Arrays, Integers, scatter
from mipfs.plumbing.digest import digest

Ids = Sequence[int] | Integers

_PUBLIC = ("groups", "homogeneous", "intersection", "made", "pairs", "registry", "splines", "tree")


def __getattr__(name: str) -> Any:
    """The files that the reference names, each loaded when it is first used: ``mipfs.atoms.tree.Tree``."""
    if name in _PUBLIC:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@dataclass(frozen=True, eq=False)
class AtomColumns:
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


def merge_columns(ids: Integers, w: Array) -> tuple[Integers, Array]:
    """Columns (k,) of which some may stand twice, each once, with the sums of their weights; else as they are."""
    if np.all(ids[1:] > ids[:-1]):
        return ids, w
    distinct, place = np.unique(ids, return_inverse=True)
    if distinct.size == ids.size:
        return ids, w
    return distinct, np.bincount(place, w, distinct.size).astype(float)


def split_squares(columns: AtomColumns, ids: Integers, w: Array, part: Array) -> float:
    """Σ_j w_j²/(Σ λ_g² σ_g) over the atoms g that use column j: what is least of all ways to split w.

    Parameters
    ----------
    columns : AtomColumns of some atoms
    ids, w : (k,) columns, all different, and their weights
    part : σ of these atoms
    """
    largest = float(columns.scale.max(initial=0.0)) or 1.0
    shares = np.square(columns.scale / largest) * part[columns.atom]
    alone = columns.ids.size == ids.size  # no column stands twice
    room = shares if alone else np.bincount(np.searchsorted(ids, columns.ids), shares, ids.size)
    each = np.divide(w, largest * np.sqrt(room), out=np.zeros_like(w), where=room > 0)
    return float(each @ each)


def column_shares(columns: AtomColumns, ids: Integers, part: Array) -> Array:
    """Σ σ_g of every column, (k,), over the atoms g of scale 1 that use it, of which one alone has it mostly.

    Parameters
    ----------
    columns : AtomColumns of some atoms
    ids : (k,) columns, all different
    part : σ of these atoms
    """
    order = np.argsort(ids)
    place = order[np.searchsorted(ids, columns.ids, sorter=order)]
    return np.bincount(place, part[columns.atom], ids.size).astype(float)


class BestSearch(Protocol):
    """Finds the best atoms of one column each again and again, for changing v."""

    largest_norm: float | None
    """The largest norm of a column, where it is known; else None."""
    largest_center: float
    """The largest |center| of a column."""

    def best(self, v: Array, B: int, must_stop: Callable[[], bool] = bool) -> tuple[Integers, Array]:
        """At most B atoms of largest positive score, and their |λω|; of equal ones the lowest id first."""

    def radius(self, v: Array) -> float:
        """A bound on |computed − exact| of every |λω|."""


class ScoreSearch(Protocol):
    """Finds the best atoms of several columns each again and again, without the scores that a bound shows too small."""

    scored: int
    """Scores that were computed."""
    saved: int
    """Scores that a bound saved."""

    def best(self, v: Array, B: int) -> tuple[Integers, Array]:
        """At most B atoms of largest positive score, best first, of equal ones the lowest id first; their scores."""

    def error(self, v: Array, best: float) -> float:
        """A bound on |computed − exact| of every score, where `best` is the largest one."""

    def kept(self) -> Callable[[], Arrays]:
        """What makes arrays of what the next call goes on from, as it is now."""

    def take_up(self, kept: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go on from what `kept` made."""


class Atoms(ABC):
    """What a driver may ask of the things to be selected; defaults are for atoms that are held.

    Attributes
    ----------
    data : Instance, whose columns the atoms are made of
    is_held : bool, whether vectors with an entry for every atom are held; else the best are found by a search
    is_checkable : bool, whether a certificate over them can be checked: the checker makes anew what is made
    are_features : bool, whether atom j is column j of the data
    called : str, what messages call them
    heredity : {"weak", "strong"} or None, whether an atom asks for some, or all, of the features that it is made of
    """

    data: Instance
    is_held = True
    is_checkable = True
    are_features = False
    called = "atoms"
    heredity: Literal["weak", "strong"] | None = None

    @property
    @abstractmethod
    def count(self) -> int:
        """Number of atoms, the length of σ."""

    @property
    @abstractmethod
    def names(self) -> Sequence[str]:
        """A name for every atom."""

    @property
    @abstractmethod
    def kind(self) -> str:
        """What `mipfs.capability` calls them."""

    @property
    @abstractmethod
    def stamp(self) -> str:
        """SHA-256 of the data and of what the atoms are: equal for atoms that are the same on the same data."""

    @abstractmethod
    def on(self, data: Instance) -> Atoms:
        """These atoms on other data with the same features: a column for each of theirs, with the λ that it has here.

        Raises
        ------
        UsageError
            The data has other features.
        """

    @abstractmethod
    def scores(self, v: Array) -> Array:
        """s_g(v) = λ_g² ‖X_g'v‖² of every atom, shape (count,); v has shape (n,)."""

    @abstractmethod
    def score_error(self, v: Array, scores: Array | None = None) -> Array:
        """A bound on |computed − exact| of every score, shape (count,).

        `scores` are those of v where they are at hand: no pass over the data is needed then.
        """

    def best(self, v: Array, B: int) -> Integers:
        """At most B atoms of largest positive score, best first, of equal ones the lowest id first."""
        return largest(self.scores(v), B)

    @abstractmethod
    def columns(self, ids: Ids) -> AtomColumns:
        """The columns of X that the atoms `ids` use."""

    @property
    def raw(self) -> Instance:
        """The user's own data, which rows, predictions and certificates are about."""
        return self.data

    @property
    def settled(self) -> Atoms:
        """The atoms that a problem works on in their place."""
        return self

    def restricted(self, ids: Integers, data: Instance | None = None) -> Atoms:
        """The atoms `ids` alone, ascending, with their columns, scales and names, on data of these columns alone.

        They are groups; a column that two atoms hold is shared there too. Features take `data` that has these columns.
        """
        from mipfs.atoms.features import Features
        from mipfs.atoms.groups import Groups

        if not ids.size:  # which may be of any kind
            return Features(self.data.only(ids))
        columns = self.columns(ids)
        used, place = np.unique(columns.ids, return_inverse=True)
        parts = np.split(place, np.cumsum(np.bincount(columns.atom, minlength=ids.size)))[:-1]
        scale = scatter(ids.size, columns.atom, columns.scale)
        members = dict(zip((self.names[g] for g in ids), parts, strict=True))
        return Groups(self.data.only(used), members, scale)

    def best_search(self, client: Any, must_stop: Callable[[], bool]) -> BestSearch | None:
        """A search for the best ones where that saves looking at every column; `client`: Dask's, of features."""
        return None

    def score_search(self) -> ScoreSearch | None:
        """A search for the best ones where that saves scores."""
        return None

    def closed(self, ids: Integers) -> Integers:
        """These atoms with those that heredity asks for beside them, ascending."""
        return ids

    def parts(self, ids: Integers) -> list[list[str]]:
        """The names of the features that atoms are made of, where they have heredity."""
        return [[] for _ in ids]

    def document(self, ids: Integers) -> dict[str, Any] | None:
        """What is selected, for the JSON of a result with the atoms `ids`: names, columns by name, and λ."""
        columns = self.columns(np.arange(self.count))
        scale = scatter(self.count, columns.atom, columns.scale)
        names = self.data.feature_names
        ends = np.cumsum(np.bincount(columns.atom, minlength=self.count))
        parts = np.split(columns.ids, ends[:-1])
        listed = [[names[j] for j in part] for part in parts]
        return {"names": list(self.names), "columns": listed, "scale": scale.tolist()}


def stamp_of(data: Instance, kind: str, names: Sequence[str], *arrays: npt.NDArray[Any]) -> str:
    """The stamp of atoms: the data with its scaling, and what says which columns and scales they are."""
    stated: list[Any] = [data.sha256, data.scaling, kind, None if isinstance(names, Unstored) else list(names)]
    stated += [data.exponent] if data.exponent else []
    parts = [json.dumps(stated, ensure_ascii=False).encode(), *(np.ascontiguousarray(a).tobytes() for a in arrays)]
    return digest(parts)


def same_data(one: Instance, other: Instance) -> bool:
    """Whether two instances hold the same values, labels and weights, on the same scale."""
    return one is other or ((one.sha256, one.scaling, one.exponent) == (other.sha256, other.scaling, other.exponent))


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
