"""Groups of features as atoms, disjoint or overlapping (Tan 2014, sections 2.4 and 4.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from mipfs.atoms import AtomColumns, Atoms, Ids, check_features, stamp_of
from mipfs.atoms.features import (
    Features,
    Scaling,
    atom_scales,
    centred_squares,
    kept_scaling,
    omega_radius,
    sum_error,
    times_squares,
)
from mipfs.data.instance import Instance, misspelling_hint
from mipfs.errors import UsageError
from mipfs.plumbing.arrays import Array, Integers
from mipfs.plumbing.declared import check_arguments


class Groups(Atoms):
    """Groups of the columns of one instance: s_g(v) = λ_g² Σ_{j in g} ω_j².

    Groups may overlap: a column is duplicated when two groups that hold it are selected, and only then. Its
    weight is then the sum of two halves, each penalised on its own: ½(½w)² + ½(½w)² = ¼w² instead of ½w². So
    v(σ) of overlapping groups is lower than that of the same columns taken once, see `overlapping`.

    Parameters
    ----------
    data : Instance
    groups : mapping of name to features, by name or by position (0-based), optional
        Default: the groups of the data, and every feature that is in none of them as a group of its own, by its name.
        Of groups that are given, a feature in none cannot be selected.
    scaling : {"none", "norm"} or (count,) array-like of finite numbers >= 0
        λ_g: 1, or 1/‖X_g‖_F (of centred columns; 0 for a group of zero columns, which is never selected), or
        as given.

    Attributes
    ----------
    scale : (count,) ndarray, λ
    sizes : (count,) ndarray of int64, columns of every group
    overlapping : bool
        Whether a column stands in two groups.

    Raises
    ------
    UsageError
        No groups, an empty one, one that names a feature twice or one that is not there, an unknown scaling.
    """

    @check_arguments
    def __init__(
        self,
        data: Instance,
        groups: Mapping[str, Sequence[str | int]] | None = None,
        scaling: Scaling = "none",
    ) -> None:
        given: Mapping[str, Sequence[str | int]] = (
            _with_single_features(data, data.groups) if groups is None else groups
        )
        if not given:
            raise UsageError("no groups are given, and the data has none; list them under [groups] or pass groups=")
        self.data = data
        self._names = tuple(given)
        members = [group_columns(data, name, given[name]) for name in given]
        self.sizes = np.array([ids.size for ids in members], dtype=np.int64)
        self._members = np.concatenate(members)
        self._starts = np.cumsum(self.sizes) - self.sizes
        self._features = Features(data)
        self.overlapping = bool(np.any(np.bincount(self._members, minlength=1) > 1))
        self.scale = atom_scales(scaling, lambda: np.sqrt(self.sums(centred_squares(data))), self.count)

    @property
    def names(self) -> tuple[str, ...]:
        """A name for every atom."""
        return self._names

    @property
    def count(self) -> int:
        """Number of atoms."""
        return len(self.names)

    @property
    def kind(self) -> str:
        """What `mipfs.capability` calls them."""
        return "groups"

    @property
    def features(self) -> Features:
        """The columns, one by one."""
        return self._features

    @cached_property
    def shared(self) -> tuple[str, ...]:
        """The columns that stand in several groups, by name."""
        twice = np.flatnonzero(np.bincount(self._members, minlength=1) > 1)
        return tuple(self.data.feature_names[j] for j in twice.tolist())

    @cached_property
    def stamp(self) -> str:
        """SHA-256 of the data, the groups and the scales; see `mipfs.atoms.Atoms`."""
        return stamp_of(self.data, "groups", self.names, self._members, self.sizes, self.scale)

    def on(self, data: Instance) -> Groups:
        """The groups of other data with the same features, with these scales."""
        check_features(self.data, data)
        members: Any = zip(self.names, np.split(self._members, self._starts[1:]), strict=True)
        return Groups(data, dict(members), kept_scaling(self.scale))

    def scores(self, v: Array) -> Array:
        """s_g = λ_g² ‖ω_g‖², shape (count,): one X'v and a segmented sum."""
        omega = self._features.omega(v)
        return times_squares(self.scale, self.sums(np.square(omega, out=omega)))

    def score_error(self, v: Array, scores: Array | None = None) -> Array:
        """A bound on |computed − exact| of every score, shape (count,); see `mipfs.atoms.features.sum_error`."""
        found = self.scores(v) if scores is None else scores
        return sum_error(found, self.scale * omega_radius(v, *self._norms_and_centre_norms), self.sizes)

    def columns(self, ids: Ids) -> AtomColumns:
        """The columns of the groups `ids`, group by group, each in the order in which it was given."""
        return columns_at(ids, self._starts, self.sizes, self.scale, self._members)

    @cached_property
    def _norms_and_centre_norms(self) -> tuple[Array, Array]:
        """‖X_g‖_F of the stored columns and the norm of their centres, for every group."""
        return np.sqrt(self.sums(np.square(self._features.norms))), np.sqrt(self.sums(np.square(self.data.center)))

    def sums(self, values: Array) -> Array:
        """Σ_{j in g} of one number per feature."""
        return np.add.reduceat(values[self._members], self._starts)


def words_whole(data: Instance) -> Groups | None:
    """Every column of words as one atom, and every other feature as one; None where there are no columns of words."""
    words = {name: data.groups[name] for name in data.words if name in data.groups}
    return Groups(data, _with_single_features(data, words)) if words else None


def _with_single_features(data: Instance, groups: Mapping[str, Sequence[str]]) -> Mapping[str, Sequence[str]]:
    """Groups of the data, if there are any, and a group for every feature in none of them: numbers beside words."""
    inside = {name for members in groups.values() for name in members}
    alone = [name for name in data.feature_names if name not in inside] if groups else []
    for name in alone:
        if name in groups:
            raise UsageError(
                f"a group and a feature in no group are both called {name!r}; give the group another name or list the "
                "feature in a group"
            )
    return {**groups, **{name: (name,) for name in alone}}


def columns_at(ids: Ids, starts: Integers, sizes: Integers, scale: Array, among: Integers | None = None) -> AtomColumns:
    """The columns of the atoms `ids`, of which each has `sizes` from `starts` on (of `among`), and one λ for all."""
    chosen = np.asarray(ids, dtype=np.int64)
    places = concatenate_ranges(starts[chosen], sizes[chosen])
    atom = np.repeat(np.arange(chosen.size, dtype=np.int64), sizes[chosen])
    return AtomColumns(places if among is None else among[places], atom, scale[chosen][atom])


def concatenate_ranges(starts: Integers, sizes: Integers) -> Integers:
    """The positions start, start + 1, …, start + size − 1 of every span, one after another."""
    ends = np.cumsum(sizes)
    return np.asarray(np.arange(ends[-1] if ends.size else 0) + np.repeat(starts - ends + sizes, sizes))


def group_columns(data: Instance, name: str, members: Sequence[str | int]) -> Integers:
    """The columns of one group, checked."""
    if not isinstance(members, (Sequence, np.ndarray)) or isinstance(members, str) or not len(members):
        raise UsageError(f"group {name!r} is {members!r}; give a list of one or more features")
    given = isinstance(members, np.ndarray) and members.dtype.kind in "iu" and members.ndim == 1
    ids = np.asarray(members if given else [_member_position(data, name, member) for member in members])
    wrong = ids[(ids < 0) | (ids >= data.n_features)]
    if wrong.size:
        raise UsageError(f"group {name!r} holds position {wrong[0]}; positions are from 0 to {data.n_features - 1}")
    order = np.sort(ids)
    twice = order[1:][order[1:] == order[:-1]]
    if twice.size:
        raise UsageError(f"group {name!r} names {data.feature_names[twice[0]]!r} twice; list each feature once")
    return ids.astype(np.int64)


def _member_position(data: Instance, name: str, member: str | int) -> int:
    """One member of a group: a name, or an integer that `group_columns` checks."""
    if isinstance(member, str):
        if member not in data.index:
            hint = misspelling_hint(member, data.feature_names)
            raise UsageError(f"group {name!r}: no feature is called {member!r}; {hint}")
        return data.index[member]
    if isinstance(member, bool) or not isinstance(member, (int, np.integer)):
        raise UsageError(f"group {name!r} holds {member!r}; a feature is a name or a position")
    return int(member)
