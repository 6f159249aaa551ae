"""Additive models: one group of columns for every feature, made on the fly (Tan 2014, sections 4.4 and 7.3).

    f(x) = b + Σ_j f_j(x_j),  f_j = w_j'φ_j(x_j);  K = Σ_j K_j,  K_j = Φ_j Φ_j';  score s_j(v) = λ_j² v'K_j v

Selecting feature j selects its whole function f_j. Φ_j exists while j is selected or being scored, and not longer.
What φ_j is, a subclass says: `mipfs.atoms.intersection` (the histogram intersection kernel, exactly),
`mipfs.atoms.homogeneous` (maps of Vedaldi and Zisserman), `mipfs.atoms.splines`.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from mipfs.atoms import AtomColumns, Atoms, Ids, check_features, stamp_of
from mipfs.atoms.features import Scaling, atom_scales, kept_scaling, omega_radius, sum_error, times_squares
from mipfs.atoms.groups import columns_at
from mipfs.data.instance import Instance
from mipfs.data.linear import combine_columns
from mipfs.data.made import NUMBERS_PER_BLOCK, GroupNames, MadeMatrix
from mipfs.data.matrix import scaled_user_values
from mipfs.errors import DataError, UsageError
from mipfs.plumbing.arrays import Array, Integers


class Additive(Atoms, ABC):
    """One atom for every feature of an instance: the columns that a map makes of it.

    ``Problem(data, atoms=Splines(data))`` is the problem over an instance whose features are these columns (`data`),
    none of them stored. M, rows and forced names are about the features; those that came with the data hold.

    Parameters
    ----------
    raw : Instance
        Its values as they are stored: scaled, if it was read so.
    scaling : {"none", "norm"} or (p,) array-like of finite numbers >= 0
        λ_j: 1, or 1/√(trace of K_j) (0 for a feature without a function, which is never selected), or as given.

    Attributes
    ----------
    data : Instance, the columns of all features, made when they are asked for
    sizes : (p,) ndarray of int64, columns of every feature
    scale : (p,) ndarray, λ
    """

    name: ClassVar[str]
    """What the registry, the command line and a result call it."""
    kind = "made groups"
    overlapping = False

    def __init__(self, raw: Instance, scaling: Scaling = "none") -> None:
        if raw.n_features == 0:
            raise UsageError("there is no feature to make functions of")
        self._raw = raw
        self.sizes = self._columns_per_feature()
        self.starts = np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)
        self._last: tuple[Array, Array] | None = None
        self.data = self._expanded_instance()
        self._fit()
        self.scale = atom_scales(scaling, lambda: self._root_traces, self.count)

    @property
    @abstractmethod
    def options(self) -> dict[str, Any]:
        """What it was made with, but for the scaling, as the JSON of a result states it."""

    @abstractmethod
    def _columns_per_feature(self) -> Integers:
        """Columns of every feature, (p,), each at least 1."""

    @abstractmethod
    def expand(self, features: Integers) -> Any:
        """The columns of the features (k,), feature by feature, as (n, Σ sizes) ndarray or csc_array."""

    @abstractmethod
    def stated(self, feature: int) -> dict[str, Any]:
        """What `mapped` needs of a feature, plain numbers and lists."""

    @staticmethod
    @abstractmethod
    def mapped(options: Mapping[str, Any], stated: Mapping[str, Any], x: Array) -> Any:
        """The columns (m, d) of new values (m,) of a feature, from what `options` and `stated` gave."""

    def _fit(self) -> None:
        """What needs the columns of all features, once."""

    def _squared_scores(self, v: Array) -> Array:
        """‖Φ_j'v‖² of every feature, (p,)."""
        parts = []
        for features in self._feature_blocks():
            omega = np.asarray(v @ self.expand(features), dtype=float)
            first = self.starts[features] - self.starts[features[0]]
            parts.append(np.add.reduceat(np.square(omega), first))
        return np.concatenate(parts)

    def _kernel_traces(self) -> Array:
        """Σ_i ‖φ_j(x_ij)‖² of every feature, (p,)."""
        parts = []
        for features in self._feature_blocks():
            part = self.expand(features)
            squares = part.power(2).sum(axis=0) if sparse.issparse(part) else np.square(part).sum(axis=0)
            first = self.starts[features] - self.starts[features[0]]
            parts.append(np.add.reduceat(np.asarray(squares, dtype=float).ravel(), first))
        return np.concatenate(parts)

    def _feature_blocks(self) -> list[Integers]:
        """All features, in blocks of about `NUMBERS_PER_BLOCK` numbers or one feature."""
        most = max(1, NUMBERS_PER_BLOCK // max(1, self.raw.n_samples))
        return np.split(np.arange(self.count, dtype=np.int64), np.flatnonzero(np.diff(self.starts[1:] // most)) + 1)

    @property
    def raw(self) -> Instance:
        """What the columns are made of."""
        return self._raw

    def document(self, ids: Integers) -> dict[str, Any] | None:
        """How the columns of the atoms `ids` are made, and λ."""
        scale = None if isinstance(kept_scaling(self.scale), str) else self.scale.tolist()
        return {"names": None, "columns": None, "scale": scale, "made": self.made(ids)}

    @property
    def count(self) -> int:
        """Number of atoms: the features of the data."""
        return self.raw.n_features

    @property
    def names(self) -> Sequence[str]:
        """The names of the features."""
        return self.raw.feature_names

    @property
    def is_sparse(self) -> bool:
        """Whether the columns are made as sparse ones."""
        return self.raw.is_sparse

    @property
    def declared(self) -> dict[str, Any]:
        """What says which columns these are, on the data of a digest."""
        raw = {"data_sha256": self.raw.sha256, "n_features": self.raw.n_features, "scaling": self.raw.scaling}
        return {"name": self.name, "options": self.options, **raw}

    def made(self, chosen: Ids) -> dict[str, Any]:
        """The entry ``made`` of a result: `declared`, and how new values of the chosen features become columns."""
        raw = self.raw
        features = {}
        for j in map(int, chosen):
            place = {"column": j, "shift": float(raw.shift[j]), "scale": float(raw.scale[j])}
            features[raw.feature_names[j]] = {**place, "map": self.stated(j)}
        return {**self.declared, "features": features}

    def _expanded_instance(self) -> Instance:
        raw = self.raw
        K = int(self.starts[-1])
        none, one = np.broadcast_to(0.0, K), np.broadcast_to(1.0, K)
        return raw.over(
            MadeMatrix((raw.n_samples, K), self._make, self.is_sparse, raw),
            GroupNames(raw.feature_names, self.starts),
            center=none,
            shift=none,
            scale=one,
            scaling="none",
            values_sha256=hashlib.sha256(json.dumps(self.declared, sort_keys=True).encode()).hexdigest(),
        )

    def _make(self, ids: Integers) -> Any:
        """Any columns of `data`."""
        if not ids.size:
            return sparse.csc_array((self.raw.n_samples, 0)) if self.is_sparse else np.empty((self.raw.n_samples, 0))
        owner = np.searchsorted(self.starts, ids, "right") - 1
        features, place = np.unique(owner, return_inverse=True)
        part = self.expand(features)
        sizes = self.sizes[features]
        first = np.cumsum(sizes) - sizes
        at = first[place] + ids - self.starts[owner]
        return part if np.array_equal(at, np.arange(part.shape[1])) else part[:, at]

    @cached_property
    def stamp(self) -> str:
        """SHA-256 of the data, the maps and the scales; see `mipfs.atoms.Atoms`."""
        return stamp_of(self.raw, json.dumps(self.declared, sort_keys=True), self.names, self.scale)

    def on(self, data: Instance) -> Additive:
        """Maps of this kind, made anew of other data with the same features, with these scales."""
        check_features(self.raw, data)
        return type(self)(data, scaling=kept_scaling(self.scale), **self.options)

    def scores(self, v: Array) -> Array:
        """s_j = λ_j² v'K_j v, shape (p,). Those of the last v are kept."""
        last = self._last
        if last is None or not np.array_equal(last[0], v):
            last = v.copy(), times_squares(self.scale, self._squared_scores(np.ascontiguousarray(v, dtype=float)))
            self._last = last
        return last[1].copy()

    def score_error(self, v: Array, scores: Array | None = None) -> Array:
        """A bound on |computed − exact| of every score, shape (p,); see `mipfs.atoms.features.sum_error`.

        Also for sums of v over the samples with x_ij >= u_k: of m terms each is off by γ ‖v‖ √m at most, and
        Σ_k (u_k − u_{k−1}) m_k is the trace of K_j.
        """
        found = self.scores(v) if scores is None else scores
        return sum_error(found, self.scale * omega_radius(v, self._root_traces, np.zeros(1)), self.sizes)

    def columns(self, ids: Ids) -> AtomColumns:
        """The columns of `data` that the features `ids` have, feature by feature."""
        return columns_at(ids, self.starts, self.sizes, self.scale)

    @cached_property
    def _root_traces(self) -> Array:
        """√(trace of K_j), (p,)."""
        return np.sqrt(self._kernel_traces())


def decision(made: Mapping[str, Any], weights: Mapping[str, float], values: Mapping[str, Array], kind: Any) -> Array:
    """Σ_j f_j of new rows, from what a result says.

    Parameters
    ----------
    made : the entry ``made`` of its atoms
    weights : by name of column
    values : (m,) values of every feature of ``made["features"]``, as the scaled training data has them
    kind : the class of the atoms
    """
    total = np.zeros(next(iter(values.values()), np.empty(0)).size)
    for name, one in made["features"].items():
        part = kind.mapped(made["options"], one["map"], values[name])
        total += combine_columns(part, np.array([weights.get(f"{name}[{k}]", 0.0) for k in range(part.shape[1])]))
    return total


def scaled_by(place: Mapping[str, Any], x: Array) -> Array:
    """User's values of a feature as the scaled training data has them, from what ``made["features"]`` says of it."""
    center = float(place.get("center", 0.0))
    return scaled_user_values(x, place["shift"] if center == 0.0 else 0.0, place["scale"]) - center


def not_negative(raw: Instance, shift: bool, what: str) -> Array:
    """What is taken off every feature, (p,): 0, or its least value where `shift` says so.

    Raises
    ------
    DataError
        A value below 0, without `shift`.
    """
    least = feature_minima(raw)
    if shift:
        return least
    below = np.flatnonzero(least < 0.0)
    if below.size:
        j = int(below[0])
        raise DataError(
            f"Negative values in data: feature {raw.feature_names[j]!r} has {least[j]:g}, {what} is for values >= 0",
            "give data with scale 'none' or 'unit', or shift=True (-p shift=true)",
        )
    return np.zeros(least.size)


def feature_minima(raw: Instance) -> Array:
    """The least value of every feature, (p,)."""
    if raw.unscaled is not None:  # what scales values keeps their order
        return scaled_user_values(raw.unscaled.min(axis=0).toarray().ravel(), raw.shift, raw.scale)
    least = raw.X.min(axis=0)
    return np.asarray(least.toarray() if sparse.issparse(least) else least, dtype=float).ravel() - raw.center


def dense_part(raw: Instance, features: Any) -> Array:
    """Some features, (n, k), as the data stands for them."""
    return raw.stated(np.arange(raw.n_features)[features])


def counted_from(x: Array, least: float, what: str) -> Array:
    """New values on the scale of a map: from the least value that training had, or from 0.

    Raises
    ------
    DataError
        A value below 0, where nothing was taken off.
    """
    if least == 0.0 and np.any(x < 0.0):
        raise DataError(
            f"Negative values in data: {what} is for values >= 0, and there is {x.min():g}",
            "give data like that of training",
        )
    return np.maximum(x - least, 0.0)
