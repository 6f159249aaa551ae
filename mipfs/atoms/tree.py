"""Tree-structured groups as atoms (Tan 2014, Definition 1), searched from the roots by Proposition 2."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.atoms import AtomColumns, Atoms, Ids, ScoreSearch, check_features, stamp_of
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
from mipfs.atoms.groups import columns_at, concatenate_ranges, group_columns
from mipfs.atoms.parts import largest
from mipfs.data.instance import Instance, misspelling_hint
from mipfs.errors import UsageError
from mipfs.plumbing.arrays import Array, Arrays, Integers, mask_of, scatter

MOST_READ_SHARE = 0.5
"""With a larger share of the features to read, all are, and v becomes the one to compare with."""
ROUNDING_FACTOR = 1.0 + 1e-9
"""What distances are multiplied by, for the rounding of norms and differences."""


class Tree(Atoms):
    """A forest over the features: every node stands for the group of all features below it.

    Atoms 0 … p−1 are the features, the leaves; the inner nodes follow. Two groups are disjoint or one holds the
    other; a node and one below it may both be selected, and then share columns as in `mipfs.atoms.groups.Groups`.

    Parameters
    ----------
    data : Instance
    parents : mapping of str to str, or (p + k,) array-like of int
        The parent of every node by name: a key is a feature or an inner node, a value is an inner node. What is
        no key is a root, also a feature. Or by position: the parent of every feature, then of the k inner
        nodes, all numbered from 0 in that order; −1 for a root.
    names : sequence of k str, optional
        Of the inner nodes where `parents` is an array; default node1 … nodek.
    scaling : {"none", "norm"} or (p + k,) array-like of finite numbers >= 0
        λ_g: 1, or 1/‖X_g‖_F (of centred columns; 0 where the columns below are zero), or as given.

    Attributes
    ----------
    scale : (p + k,) ndarray, λ
    sizes : (p + k,) ndarray of int64, features below every node
    visited, pruned : int
        Nodes that all calls of `best` together looked at and passed over.
    last_pruned : int
        Nodes that the last call of `best` passed over.

    Raises
    ------
    UsageError
        A parent that is a feature, a node that is its own ancestor or has no feature below it, names that
        clash or are unknown, an array of another shape.
    """

    def __init__(
        self,
        data: Instance,
        parents: Mapping[str, str] | npt.ArrayLike,
        *,
        names: Sequence[str] | None = None,
        scaling: Scaling = "none",
    ) -> None:
        self.data = data
        if isinstance(parents, Mapping):
            self._parent, inner = _by_name(data, parents)
        else:
            self._parent, inner = _by_position(data, parents, names)
        self._names = (*data.feature_names, *inner)
        if len(set(self.names)) < len(self.names):
            taken = set(data.feature_names)
            clash = next(name for k, name in enumerate(inner) if name in taken or name in inner[:k])
            raise UsageError(f"node {clash!r} has the name of a feature or of another node")
        by_parent = np.argsort(self._parent, kind="stable").astype(np.int64)
        self._children_count = np.bincount(self._parent + 1, minlength=self.count + 1)
        self._children = by_parent
        self._first_child = np.cumsum(self._children_count) - self._children_count
        self._levels = self._by_depth()
        self.sizes = self.sums_below(np.ones(data.n_features)).astype(np.int64)
        if np.any(self.sizes == 0):
            raise UsageError(f"node {self.names[int(np.argmin(self.sizes))]!r} has no feature below it")
        self._leaves, self._first_leaf = self._in_order()
        self._features = Features(data)
        self.scale = atom_scales(scaling, lambda: np.sqrt(self.sums_below(centred_squares(data))), self.count)
        self.visited = self.pruned = self.last_pruned = 0

    @property
    def names(self) -> tuple[str, ...]:
        """A name for every atom."""
        return self._names

    @property
    def count(self) -> int:
        """Number of atoms: features and inner nodes."""
        return self._parent.size

    @property
    def overlapping(self) -> bool:
        """Whether a column stands in two groups: where there is an inner node."""
        return self.count > self.data.n_features

    @property
    def kind(self) -> str:
        """What `mipfs.capability` calls them."""
        return "trees"

    @cached_property
    def stamp(self) -> str:
        """SHA-256 of the data, the tree and the scales; see `mipfs.atoms.Atoms`."""
        return stamp_of(self.data, "tree", self.names, self._parent, self.scale)

    def on(self, data: Instance) -> Tree:
        """The tree over other data with the same features, with these scales."""
        check_features(self.data, data)
        return Tree(data, self._parent, names=self.names[self.data.n_features :], scaling=kept_scaling(self.scale))

    def scores(self, v: Array) -> Array:
        """s_g = λ_g² ‖ω_g‖² of every node, shape (count,)."""
        return times_squares(self.scale, self.squares(v))

    def score_error(self, v: Array, scores: Array | None = None) -> Array:
        """A bound on |computed − exact| of every score, shape (count,); see `mipfs.atoms.features.sum_error`."""
        found = self.scores(v) if scores is None else scores
        return sum_error(found, self.scale * omega_radius(v, *self.radii), self.sizes)

    def best(self, v: Array, B: int) -> Integers:
        """At most B nodes of largest positive score, best first, of equal ones the lowest id first.

        All scores are computed here; `TreeSearch` leaves most of them out when it is asked again and
        again. Level by level from the roots. A node h below g has s_h ≤ λ_max² ‖ω_g‖², λ_max the largest λ below g:
        where that is less than the B-th best score so far, or zero, nothing below g is looked at (Tan 2014,
        Proposition 2). Sums of squares that are rounded stay ordered, so this returns what a full search does.
        """
        squares = self.squares(v)
        kept = np.empty(0, dtype=np.int64)
        scores = np.empty(0)
        level = self._levels[0]
        looked_at = 0
        while level.size and B > 0:
            looked_at += level.size
            ids = np.concatenate([kept, level])
            both = np.concatenate([scores, times_squares(self.scale[level], squares[level])])
            order = np.argsort(ids)
            order = order[largest(both[order], B)]
            kept = ids[order]
            scores = both[order]
            least = float(scores[-1]) if scores.size == B else 0.0
            bound = np.square(self._scale_below[level]) * squares[level]
            level = self._children_of(level[(bound >= least) & (bound > 0.0)])
        self.last_pruned = self.count - looked_at
        self.visited += looked_at
        self.pruned += self.last_pruned
        return kept

    def score_search(self) -> ScoreSearch | None:
        """Without the scores below nodes that a bound rules out."""
        return TreeSearch(self)

    def columns(self, ids: Ids) -> AtomColumns:
        """The columns of the nodes `ids`, node by node: the features below each, in the order of the tree."""
        return columns_at(ids, self._first_leaf, self.sizes, self.scale, self._leaves)

    def squares(self, v: Array, features: Integers | None = None) -> Array:
        """‖ω_g‖² of every node, shape (count,); of ω only these features are read where they are given, 0 elsewhere."""
        if features is None:
            omega = self._features.omega(v)
            return self.sums_below(np.square(omega, out=omega))
        part = np.asarray(self.data.X[:, features].T @ v, dtype=float) - self.data.center[features] * float(v.sum())
        squares = scatter(self.data.n_features, features, np.square(part))
        return self.sums_below(squares)

    def features_below(self, nodes: Ids) -> Integers:
        """The features below any of the nodes, ascending."""
        chosen = np.asarray(nodes, dtype=np.int64)
        first = self._first_leaf[chosen]
        covers = np.bincount(first, minlength=self._leaves.size + 1)
        covers = covers - np.bincount(first + self.sizes[chosen], minlength=self._leaves.size + 1)
        return np.sort(self._leaves[np.cumsum(covers)[:-1] > 0])

    def sums_below(self, values: Array) -> Array:
        """The sum over the features below every node of one number >= 0 per feature, from the leaves up."""
        sums = scatter(self.count, slice(values.size), values)
        for level, starts, parents in reversed(self._levels_below_root):
            sums[parents] = np.add.reduceat(sums[level], starts)
        return sums

    def _children_of(self, nodes: Integers) -> Integers:
        """The children of the nodes, siblings together; of −1, the roots."""
        return self._children[concatenate_ranges(self._first_child[nodes + 1], self._children_count[nodes + 1])]

    def _by_depth(self) -> list[Integers]:
        """The nodes of every depth, siblings together."""
        levels = [self._children_of(np.array([-1]))]
        while levels[-1].size:
            levels.append(self._children_of(levels[-1]))
        levels.pop()
        if sum(level.size for level in levels) < self.count:
            reached = mask_of(self.count, np.concatenate([np.empty(0, dtype=np.int64), *levels]))
            node = int(np.argmin(reached))
            for _ in range(self.count):  # up to the circle
                node = int(self._parent[node])
            raise UsageError(f"node {self.names[node]!r} is its own ancestor")
        return levels

    @cached_property
    def _levels_below_root(self) -> list[tuple[Integers, Integers, Integers]]:
        """For every depth but the first: its nodes, where the siblings begin, and their parents."""
        steps = []
        for level in self._levels[1:]:
            parents = self._parent[level]
            starts = np.flatnonzero(np.diff(parents, prepend=-2))
            steps.append((level, starts, parents[starts]))
        return steps

    def _in_order(self) -> tuple[Integers, Integers]:
        """The features in an order in which those below any node stand together, and the place of its first."""
        first = np.zeros(self.count, dtype=np.int64)
        roots = self._levels[0]
        first[roots] = np.cumsum(self.sizes[roots]) - self.sizes[roots]
        for level, starts, parents in self._levels_below_root:
            before = np.cumsum(self.sizes[level]) - self.sizes[level]
            siblings = np.diff(np.append(starts, level.size))
            first[level] = before + np.repeat(first[parents] - before[starts], siblings)
        leaves = np.empty(self.data.n_features, dtype=np.int64)
        leaves[first[: leaves.size]] = np.arange(leaves.size)
        return leaves, first

    @cached_property
    def _scale_below(self) -> Array:
        """The largest λ among the nodes strictly below every node; 0 for a leaf."""
        below = np.zeros(self.count)
        for level, starts, parents in reversed(self._levels_below_root):
            below[parents] = np.maximum.reduceat(np.maximum(self.scale[level], below[level]), starts)
        return below

    @cached_property
    def radii(self) -> tuple[Array, Array]:
        """‖X_g‖_F of the stored columns and the norm of their centres, for every node."""
        centers = np.square(self.data.center)
        return np.sqrt(self.sums_below(np.square(self._features.norms))), np.sqrt(self.sums_below(centers))


def nested(data: Instance, groups: Mapping[str, Sequence[str | int]] | None = None, scaling: Scaling = "none") -> Tree:
    """The tree of nested groups (Tan 2014, Definition 1): any two are disjoint, or one holds the other.

    Parameters
    ----------
    data : Instance
    groups : mapping of name to features, by name or by position (0-based), optional
        The inner nodes; those of the data by default. Of equal ones the later is above the earlier.
    scaling : {"none", "norm"} or (p + k,) array-like
        As of `Tree`.

    Raises
    ------
    UsageError
        No groups, or two that share features and of which none holds the other.
    """
    given: Mapping[str, Sequence[str | int]] = data.groups if groups is None else groups
    if not given:
        raise UsageError("a tree is made of nested groups, and the data has none; list them under [groups]")
    members = {name: group_columns(data, name, listed) for name, listed in given.items()}
    p, inner = data.n_features, list(members)
    order = sorted(range(len(inner)), key=lambda k: members[inner[k]].size)
    top, parents = np.arange(p), np.full(p + len(inner), -1)
    below = np.concatenate([np.ones(p, dtype=np.int64), [members[name].size for name in inner]])
    for k in order:
        ids = members[inner[k]]
        children = np.unique(top[ids])
        if below[children].sum() != ids.size:
            child = next(int(c) for c in children if not np.all(np.isin(np.flatnonzero(top == c), ids)))
            raise UsageError(
                f"the groups {inner[child - p]!r} and {inner[k]!r} share features, and none holds the other, "
                "which is no tree; give atoms=groups, which may overlap"
            )
        parents[children] = p + k
        top[ids] = p + k
    return Tree(data, parents, names=inner, scaling=scaling)


def _by_name(data: Instance, parents: Mapping[str, str]) -> tuple[Integers, tuple[str, ...]]:
    """The parent of every node by position (−1: a root) and the names of the inner nodes."""
    p = data.n_features
    inner = {name: p + k for k, name in enumerate(dict.fromkeys(parents.values()))}
    parent = np.full(p + len(inner), -1, dtype=np.int64)
    for child, name in parents.items():
        if name in data.index:
            raise UsageError(f"{name!r} is a feature and cannot be the parent of {child!r}; features are leaves")
        node = data.index.get(child, inner.get(child, -1))
        if node < 0:
            hint = misspelling_hint(child, data.feature_names)
            raise UsageError(f"{child!r} is neither a feature nor the parent of one; {hint}")
        parent[node] = inner[name]
    return parent, tuple(inner)


def _by_position(
    data: Instance, parents: npt.ArrayLike, names: Sequence[str] | None
) -> tuple[Integers, tuple[str, ...]]:
    """The parent of every node from an array of positions, checked, and the names of the inner nodes."""
    p = data.n_features
    parent = np.asarray(parents)
    if parent.ndim != 1 or parent.dtype.kind not in "iu" or parent.size < p:
        raise UsageError(f"parents must be integers, one for each of the {p} features and then of the inner nodes")
    wrong = np.flatnonzero((parent < -1) | ((parent >= 0) & (parent < p)) | (parent >= parent.size))
    if wrong.size:
        k = int(wrong[0])
        raise UsageError(f"the parent of node {k} is {parent[k]}; it is -1 or from {p} to {parent.size - 1}")
    inner = tuple(names) if names is not None else tuple(f"node{k + 1}" for k in range(parent.size - p))
    if len(inner) != parent.size - p:
        raise UsageError(f"{len(inner)} names for {parent.size - p} inner nodes")
    return parent.astype(np.int64), inner


class TreeSearch:
    """Finds the best nodes of a tree again and again, without the scores that a bound shows to be too small.

    Below a node g every score is at most λ_max² ‖ω_g‖² (Tan 2014, Proposition 2). To have ‖ω_g‖ one must read every
    feature below g, and then all scores there are known: nothing is saved. What is known without reading comes from an
    earlier v₀,

        |‖ω_g(v)‖ − ‖ω_g(v₀)‖| ≤ ‖X_g‖_F ‖v − v₀‖,

    from both sides and for every node alone: the B-th largest lower end is a level that the B best reach, and only
    features below nodes whose upper end reaches it are read. From one iteration of a cutting-plane method to the next v
    moves less and less.

    One object for every run.

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
        needed = self._candidate_nodes(v, B)
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

    def _candidate_nodes(self, v: Array, B: int) -> Integers | None:
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
