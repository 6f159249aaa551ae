"""What a run proves: dual vectors, and a binary tree over the features whose leaves they bound.

    bound of a leaf = g(α) + y'(row bounds) + min over {σ of the leaf, Σσ ≤ M} of (c − ½ s(α) − A'y)'σ

Together the leaves cover {0, 1}^p ∩ S; a refuted leaf holds no selection of S, by multipliers of the rows or because no
whole numbers satisfy them there (`mipfs.selection.lattice`). A node may also be split on an extra
variable that is a whole number: z ≤ value, or z ≥ value + 1. And it may be screened: every feature is fixed whose other
value lifts the bound of the node's dual vector to the bound that the certificate claims. Nothing is stored of that: the
checker finds them anew.
"""

from __future__ import annotations

import copy
from array import array
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.plumbing.arrays import Array, Integers, scatter
from mipfs.proof.duals import DualStore, Whole
from mipfs.proof.labelled import LabelledStore

Multipliers = Array | tuple[Fraction, ...]
"""y (r,) of the user's rows: floats, or rational numbers where an extra variable needs its reduced cost to vanish."""

Combination = tuple[tuple[int, Fraction], ...]
"""Rows with their multipliers, as `mipfs.selection.lattice` numbers them."""

Store = DualStore | LabelledStore

VERSION = 2
"""Version of the sidecar."""
OPEN, REFUTED, WITHOUT = -1, -2, -3
"""In place of a dual vector's position: of a node that is open, of a leaf without any selection, or whole numbers."""
NODE_BYTES = 20
"""Of a node in the sidecar, before it is compressed."""
GROWTH = 1.25  # room for this multiple of the nodes is made at a time: more would be memory that nobody uses
SCREENED = 1 << 30
"""In place of the feature of a split: the node is screened, and goes on in its first child."""


class Proof:
    """Dual vectors and the tree; a node costs 28 bytes, a dual vector what its store says.

    Parameters
    ----------
    n_samples, n_features : int
    top : (n,) float, optional
        The weights c_i, where they differ from sample to sample: keeps hinge duals small, see `DualStore`.
    duals : DualStore or LabelledStore, optional
        An empty store for the dual vectors; by default a `DualStore` in memory.

    Attributes
    ----------
    duals : DualStore or LabelledStore
    root : int, the root of the tree
    bound : float or None
        What the leaves prove where that is less than the bound of the run; None when they prove all of it.
    outside : int or None
        The dual vector that bounds every selection with an atom that is none of the features here.
    beside : sequence of Dual
        Dual vectors that are stored beside those that the tree refers to: they bound listed supports.
    """

    root: int = 0

    def __init__(self, n_samples: int, n_features: int, top: Array | None = None, duals: Store | None = None) -> None:
        self.n_features = n_features
        self.duals: Store = DualStore(n_samples, top) if duals is None else duals
        self.bound: float | None = None
        self.outside: int | None = None
        self.beside: Sequence[tuple[Any, ...]] = ()
        self._size = 1
        self._feature = np.full(64, -1, dtype=np.int32)
        self._children = np.full((64, 2), -1, dtype=np.int32)
        self._dual = np.full(64, OPEN, dtype=np.int32)
        self._multiplier = np.full(64, -1, dtype=np.int32)
        self._value = np.full(64, -np.inf)
        self._whole: dict[int, int] = {}
        self._multipliers: list[Multipliers] = []
        self._known: dict[int, int] = {}
        self._combinations: list[Combination] = []

    @property
    def n_nodes(self) -> int:
        """The nodes of the tree, inner ones and leaves."""
        return self._size

    @property
    def n_leaves(self) -> int:
        """The nodes that are not split."""
        return int((self._feature[: self._size] < 0).sum())

    def add_dual(self, k: Integers, q: int) -> int:
        """Store α = k·2^−q, k (n,) of 0 … 2^53, y'k = 0 with a free bias; returns its position."""
        assert isinstance(self.duals, DualStore)
        return self.duals.add(k, q)

    def dual(self, index: int) -> tuple[Integers, int]:
        """k (n,) and q of a stored dual vector."""
        assert isinstance(self.duals, DualStore)
        return self.duals.get(index)

    def split(self, node: int, feature: int) -> tuple[int, int]:
        """Children σ_feature = 0 and σ_feature = 1 of an open node."""
        self._check_open(node)
        assert 0 <= feature < self.n_features
        first = self._append_nodes(2)
        self._feature[node] = feature
        self._children[node] = first, first + 1
        return first, first + 1

    def split_whole(self, node: int, k: int, value: int) -> tuple[int, int]:
        """Children z ≤ value and z ≥ value + 1 of an open node, z the k-th extra variable, a whole number."""
        self._check_open(node)
        assert abs(value) < 2**53
        first = self._append_nodes(2)
        self._feature[node], self._whole[node] = self.n_features + k, value
        self._children[node] = first, first + 1
        return first, first + 1

    def close(self, node: int, dual: int, multipliers: Multipliers | None = None) -> None:
        """Make an open node a leaf that this dual vector bounds.

        Parameters
        ----------
        node : int
        dual : int, position of the dual vector, which may be added later
        multipliers : (r,) float or rational numbers, optional
            y of the problem's rows, in their order, without the cardinality row; zeros by default.
        """
        self._check_open(node)
        self._dual[node], self._multiplier[node] = dual, self.keep(multipliers)

    def close_all(self, nodes: Integers, duals: Integers, numbers: Integers) -> None:
        """Close open nodes, all different, as `close` does, with multipliers as `keep` numbers them."""
        self._check_all_open(nodes)
        self._dual[nodes], self._multiplier[nodes] = duals, numbers

    def refute(self, node: int, multipliers: Multipliers | None = None) -> None:
        """Make an open node a leaf without a selection: by cardinality and forced features, or a Farkas ray y (r,)."""
        self._check_open(node)
        self._dual[node], self._multiplier[node] = REFUTED, self.keep(multipliers)

    def refute_all(self, nodes: Integers, numbers: Integers) -> None:
        """Make open nodes, all different, leaves without a selection, as `refute` does."""
        self._check_all_open(nodes)
        self._dual[nodes], self._multiplier[nodes] = REFUTED, numbers

    def rule_out(self, node: int, combination: Mapping[int, Fraction]) -> None:
        """Make an open node a leaf without whole numbers, as a combination of rows shows."""
        self._check_open(node)
        kept = tuple(sorted(combination.items()))
        if kept not in self._combinations[-1:]:
            self._combinations.append(kept)
        self._dual[node], self._multiplier[node] = WITHOUT, len(self._combinations) - 1

    def reopen(self, node: int, count: int) -> None:
        """Make a node open again, below which are all nodes but the first `count`."""
        assert node < count
        self._whole = {place: value for place, value in self._whole.items() if place < count and place != node}
        self._size = count
        self._feature[node], self._dual[node], self._multiplier[node], self._value[node] = -1, OPEN, -1, -np.inf
        self._children[node] = -1

    def fix(
        self,
        node: int,
        features: npt.NDArray[np.integer[Any]],
        values: npt.NDArray[Any],
        dual: int,
        multipliers: Multipliers | None = None,
    ) -> int:
        """Fix features: a chain of splits, the other side of each closed by `dual`.

        Parameters
        ----------
        node : int, open
        features : (m,) int, distinct and not fixed above
        values : (m,) of 0 and 1, what they are fixed to
        dual, multipliers
            As for `close`; they hold for every closed side.

        Returns
        -------
        int, the open node with all of them fixed; `node` itself when there are none
        """
        self._check_open(node)
        fixed, kept = np.asarray(features).astype(np.int64), np.asarray(values).astype(np.int64)
        m = fixed.size
        if m == 0:
            return node
        assert kept.shape == (m,)
        assert set(np.unique(kept)) <= {0, 1}
        assert 0 <= fixed.min() <= fixed.max() < self.n_features
        rows = np.zeros(m, dtype=np.int64)
        return int(self._fix_all(np.array([node]), rows, fixed, kept, dual, self.keep(multipliers))[0])

    def refute_sides(
        self, nodes: Integers, rows: Integers, features: Integers, values: npt.NDArray[Any], number: int
    ) -> Integers:
        """Fix features in many nodes, as `fix` does in one, by multipliers that refute the other side of each.

        Parameters
        ----------
        nodes : (m,) open, all different
        rows, features, values : (f,) the positions of the nodes, in order, what is fixed in them, and to 0 or 1
        number : of the multipliers, as `keep` numbers them

        Returns
        -------
        (m,), the open nodes with all of them fixed
        """
        self._check_all_open(nodes)
        return self._fix_all(nodes, rows, features, values.astype(np.int64), REFUTED, number)

    def _fix_all(
        self, nodes: Integers, rows: Integers, features: Integers, kept: Integers, dual: int, number: int
    ) -> Integers:
        """A chain below each of many nodes: a feature goes on at what it is fixed to, and its other side is shown."""
        ids = self._append_nodes(2 * rows.size) + 2 * np.arange(rows.size)
        is_first = np.append(True, rows[1:] != rows[:-1])
        chain = np.where(is_first, nodes[rows], np.append(-1, ids[:-1]))
        self._feature[chain] = features
        self._children[chain, kept], self._children[chain, 1 - kept] = ids, ids + 1
        self._dual[ids + 1], self._multiplier[ids + 1] = dual, number
        after = nodes.copy()
        after[rows] = ids  # of equal rows the last one counts
        return after

    def screen(self, node: int, dual: int, multipliers: Multipliers | None = None) -> int:
        """Fix what a dual vector rules out in an open node, at the bound that will be claimed; returns its child."""
        self._check_open(node)
        child = self._append_nodes(1)
        self._feature[node], self._children[node, 0] = SCREENED, child
        self._dual[node], self._multiplier[node] = dual, self.keep(multipliers)
        return child

    def split_all(self, nodes: Integers, features: Integers) -> Integers:
        """Children σ_feature = 0 and σ_feature = 1 (m, 2) of open nodes, all different."""
        self._check_all_open(nodes)
        children = self._append_nodes(2 * nodes.size) + np.arange(2 * nodes.size).reshape(-1, 2)
        self._feature[nodes], self._children[nodes] = features, children
        return children

    def screen_all(self, nodes: Integers, duals: Integers, numbers: Integers) -> Integers:
        """Screen open nodes, all different, as `screen` does, with multipliers as `keep` numbers them."""
        self._check_all_open(nodes)
        children = self._append_nodes(nodes.size) + np.arange(nodes.size)
        self._feature[nodes], self._children[nodes, 0] = SCREENED, children
        self._dual[nodes], self._multiplier[nodes] = duals, numbers
        return children

    def keep_bound(self, node: int, dual: int, value: float, multipliers: Multipliers | None = None) -> None:
        """Keep the bound that a node that was split proves as a whole, should the proof end there (`trim`)."""
        assert 0 <= self._feature[node] < SCREENED
        self._dual[node], self._value[node], self._multiplier[node] = dual, value, self.keep(multipliers)

    def attach(self, node: int, feature: Whole, children: Whole, dual: Whole, values: Array) -> int:
        """Attach a piece of tree in the place of an open node; returns where its places but the first begin.

        Parameters
        ----------
        node : int, open: place 0 of the piece
        feature : (m,) that a place is split on, `SCREENED`, or −1 where it is neither
        children : (m, 2) places of the children within the piece
        dual : (m,) position of the dual vector that closes a place, or that bounds one which is split; else `OPEN`
        values : (m,) what that dual vector proves of a place that is split
        """
        self._check_open(node)
        first, is_split = self._append_nodes(feature.size - 1) - 1, feature >= 0
        places = np.append(node, first + np.arange(1, feature.size))
        self._feature[places], self._dual[places] = feature, dual
        self._children[places] = np.where((children >= 0) & is_split[:, None], children + first, -1)
        self._value[places] = np.where(is_split, values, -np.inf)
        return first

    def places_below(self, nodes: Integers, count: int) -> tuple[int, tuple[npt.NDArray[Any], ...]]:
        """The first of `count` new places below open nodes, all different, and all features, children, dual vectors,
        multipliers and values, to be written to."""
        self._check_all_open(nodes)
        first = self._append_nodes(count)
        return first, (self._feature, self._children, self._dual, self._multiplier, self._value)

    def take_over(self, node: int, other: Proof, ids: Integers) -> None:
        """Attach the tree of the same problem over the features `ids` alone in the place of an open node.

        Above it all other features must be fixed to 0, by screening.
        """
        self._check_open(node)
        assert isinstance(self.duals, DualStore)
        assert isinstance(other.duals, DualStore)
        used = slice(0, other._size)
        first_multiplier, first_combination = len(self._multipliers), len(self._combinations)
        first_dual = self.duals.append(other.duals)
        dual, feature, multiplier = (held[used] for held in (other._dual, other._feature, other._multiplier))
        whole = np.where(feature >= other.n_features, feature - other.n_features + self.n_features, -1)
        mapped = np.where(feature < other.n_features, np.append(ids, -1)[np.minimum(feature, ids.size)], whole)
        mapped = np.where(feature == SCREENED, SCREENED, np.where(feature < 0, -1, mapped))
        dual = np.where(dual >= 0, dual + first_dual, dual)
        places = self.attach(node, mapped, other._children[used], dual, other._value[used]) + np.arange(other._size)
        places[other.root] = node
        moved = np.where(other._dual[used] == WITHOUT, first_combination, first_multiplier)
        self._multiplier[places] = np.where(multiplier >= 0, multiplier + moved, -1)
        self._whole |= {int(places[k]): value for k, value in other._whole.items()}
        self._multipliers += other._multipliers
        self._combinations += other._combinations

    def over_rows(self, rows: Sequence[str], wanted: Sequence[str]) -> Proof:
        """A copy of the proof over more rows, by name: those that are new have the multiplier 0."""
        if not (self._multipliers or self._combinations) or tuple(rows) == tuple(wanted):
            return self
        places, other = np.array([wanted.index(name) for name in rows], dtype=np.int64), copy.copy(self)
        other._multipliers = [scatter(len(wanted), places, np.array(y, dtype=float)) for y in self._multipliers]
        other._combinations = [
            tuple((int(places[r]) if r >= 0 else r, value) for r, value in one) for one in self._combinations
        ]
        return other

    def widen(self, count: int) -> None:
        """Let multipliers be about `count` rows: those that are new have the multiplier 0."""
        if any(len(y) < count for y in self._multipliers):
            self.hold([np.append(np.array(y, dtype=float), np.zeros(count - len(y))) for y in self._multipliers])

    def trim(self, bound: float) -> None:
        """Drop what lies below nodes whose own dual vector proves the bound: a limit left it far below the leaves'."""
        used = slice(0, self._size)
        ends = np.flatnonzero(self._value[used] >= bound)
        if not ends.size:
            return
        feature, children = self._feature[used].copy(), self._children[used]
        feature[ends] = -1
        kept, level = np.ones(self._size, dtype=bool), children[ends].ravel()
        while level.size:  # down to the leaves, or to another such node, from which it goes on by itself
            level = level[level >= 0]
            kept[level] = False
            level = children[level[feature[level] >= 0]].ravel()
        place = np.cumsum(kept, dtype=np.int32) - 1
        self._size = int(np.count_nonzero(kept))
        self._feature = feature[kept]
        for name in ("_dual", "_multiplier", "_value"):
            setattr(self, name, getattr(self, name)[used][kept])
        links = children[kept]
        links[self._feature < 0] = -1
        self._children = np.where(links >= 0, place[links], -1).astype(np.int32)
        self._whole = {
            int(place[node]): value for node, value in self._whole.items() if kept[node] and feature[node] >= 0
        }

    def above(self) -> Array:
        """The best bound that a node above proves as a whole, (n_nodes,); −inf at the root."""
        used = slice(0, self._size)
        feature, children, value = self._feature[used], self._children[used], self._value[used]
        best, level = np.full(self._size, np.inf), np.array([self.root])
        best[self.root] = -np.inf
        while level.size:
            level = level[feature[level] >= 0]
            for side in (0, 1):
                there = children[level, side]
                best[there[there >= 0]] = np.maximum(best[level], value[level])[there >= 0]
            level = children[level].ravel()
            level = level[level >= 0]
        return best

    def size(self, of_duals: npt.NDArray[Any]) -> Callable[[float], float]:
        """About how many bytes, uncompressed, the proof has once it is trimmed at a bound.

        Parameters
        ----------
        of_duals : (n_duals,) bytes of every dual vector
        """
        used, above = slice(0, self._size), self.above()
        feature, value, dual, multiplier = (
            array[used] for array in (self._feature, self._value, self._dual, self._multiplier)
        )
        row = 8.0 * max((len(y) for y in self._multipliers), default=0)

        def size(bound: float) -> float:
            kept = above < bound
            shows = kept & ((feature < 0) | (feature == SCREENED) | (value >= bound))
            duals, rows = np.zeros(of_duals.size, dtype=bool), np.zeros(len(self._multipliers), dtype=bool)
            duals[dual[shows & (dual >= 0)]] = True
            rows[multiplier[shows & (multiplier >= 0) & (dual != WITHOUT)]] = True
            return NODE_BYTES * np.count_nonzero(kept) + float(of_duals[duals].sum()) + row * np.count_nonzero(rows)

        return size

    def copy_trimmed(self, bound: float) -> Proof:
        """A copy of the proof trimmed to a bound; this one stays as it is."""
        other = copy.copy(self)
        other.trim(bound)
        return other

    @property
    def values(self) -> Array:
        """What nodes prove as a whole, of those that are split: different ones, in order."""
        found = np.unique(self._value[: self._size][self._feature[: self._size] >= 0])
        return np.asarray(found[np.isfinite(found)])

    def open_nodes(self) -> Integers:
        """Nodes that are neither split nor closed nor refuted."""
        used = slice(0, self._size)
        return np.flatnonzero((self._feature[used] < 0) & (self._dual[used] == OPEN)).astype(np.int64)

    @property
    def _refers_to_dual(self) -> npt.NDArray[np.bool_]:
        """Which nodes show something by their dual vector: leaves, and those that are screened."""
        feature, dual = self._feature[: self._size], self._dual[: self._size]
        return np.asarray(((feature < 0) | (feature == SCREENED)) & (dual >= 0))

    @property
    def needed(self) -> Integers:
        """Positions of the dual vectors that the tree refers to, in the order in which a walk through it meets them."""
        found, stack = array("q", () if self.outside is None else (self.outside,)), [self.root]
        fresh = np.ones(1 + max(int(self._dual.max()), *found, 0), dtype=bool)
        fresh[found] = False
        dual, refers, children, is_new = (a.data for a in (self._dual, self._refers_to_dual, self._children, fresh))
        while stack:
            node = stack.pop()
            if refers[node] and is_new[d := dual[node]]:
                found.append(d)
                is_new[d] = False
            stack += [child for side in (1, 0) if (child := children[node, side]) >= 0]
        return np.array(found)

    @property
    def referred(self) -> Integers:
        """Positions of the dual vectors that the tree refers to, in the order in which they were found."""
        used = np.zeros(int(self._dual[: self._size].max()) + 1, dtype=bool)
        used[self._dual[: self._size][self._refers_to_dual]] = True
        return np.flatnonzero(used)

    def number_duals(self, needed: Integers) -> npt.NDArray[np.int32]:
        """The position in `needed` of the dual vector that a node refers to, (n_nodes,); `OPEN` or `REFUTED` else."""
        place = np.full(max(int(self._dual[: self._size].max()), int(needed.max(initial=0))) + 2, OPEN, dtype=np.int32)
        place[needed] = np.arange(needed.size)
        dual = self._dual[: self._size]
        return np.where(self._refers_to_dual, place[np.maximum(dual, OPEN)], np.minimum(dual, OPEN)).astype(np.int32)

    def referring(self, needed: Integers, duals: DualStore | LabelledStore) -> Proof:
        """A copy of the tree that refers to other dual vectors: those of `needed`, in that order."""
        other = copy.copy(self)
        other.duals, other._dual = duals, self.number_duals(needed)
        return other

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The proof as plain arrays, for the sidecar; every node must be split, closed or refuted.

        Dual vectors that nothing refers to are left out: half of them, where a limit ended the search.
        """
        assert self.open_nodes().size == 0, f"{self.open_nodes().size} nodes are open"
        used, rows = slice(0, self._size), {len(y) for y in self._multipliers}
        assert self._dual[used].max() < len(self.duals)
        assert len(rows) <= 1
        feature, dual, duals = self._feature[used], self._dual[used], self.duals
        outside = {} if self.outside is None else {"outside": np.array([0])}  # the first that is needed
        if isinstance(duals, DualStore):
            needed = self.needed
            dual, duals = self.number_duals(needed), duals.part(needed)
        elif self.beside:
            duals = copy.deepcopy(duals)
        for one in self.beside:
            duals.add(*one)
        shows = self._refers_to_dual | (dual == REFUTED)
        found, place = np.unique(np.where(shows, self._multiplier[used], -1), return_inverse=True)
        named, multiplier = found[found >= 0], (place - int(found[0] < 0)).astype(np.int32)
        combined = stored_combinations(self._combinations, dual == WITHOUT, self._multiplier[used], multiplier)
        return {
            "version": np.array([VERSION]),
            "feature": feature,
            "children": self._children[used],
            "dual": dual,
            "multiplier": multiplier,
            "whole": np.array(sorted(self._whole.items()), dtype=np.int64).reshape(-1, 2),
            "multipliers": stored_multipliers([self._multipliers[i] for i in named], max(rows, default=0)),
            **outside,
            **combined,
        } | duals.arrays()

    def _check_open(self, node: int) -> None:
        assert 0 <= node < self._size
        assert self._feature[node] < 0, f"node {node} is split already"
        assert self._dual[node] == OPEN, f"node {node} is closed already"

    def _check_all_open(self, nodes: Integers) -> None:
        ordered = np.sort(nodes)
        assert np.all(ordered[1:] > ordered[:-1])
        assert np.all(self._feature[nodes] < 0)
        assert np.all(self._dual[nodes] == OPEN)

    def keep(self, multipliers: Multipliers | None) -> int:
        """Position of the multipliers, -1 for none; what is there already is not stored again."""
        if multipliers is None:
            return -1
        kept = multipliers if isinstance(multipliers, tuple) else np.array(multipliers, dtype=float)
        key = _multipliers_key(kept)
        place = self._known.get(key, -1)
        if place < 0 or tuple(kept) != tuple(self._multipliers[place]):
            place = self._known[key] = len(self._multipliers)
            self._multipliers.append(kept)
        return place

    def hold(self, multipliers: Sequence[Multipliers]) -> None:
        """Take over multipliers that were numbered before, in place of those that are here."""
        self._multipliers = list(multipliers)
        self._known = {_multipliers_key(kept): place for place, kept in enumerate(multipliers)}

    def _append_nodes(self, count: int) -> int:
        """Make room for `count` more nodes; returns the position of the first."""
        first, self._size = self._size, self._size + count
        if self._size > self._feature.size:
            capacity = max(int(GROWTH * self._feature.size), self._size)
            empties = {"_feature": -1, "_children": -1, "_dual": OPEN, "_multiplier": -1, "_value": -np.inf}
            for name, empty in empties.items():
                self._grow(name, capacity, empty)
        return first

    def _grow(self, name: str, count: int, empty: float) -> None:
        """Give an array `count` entries, those beyond its own `empty`: moved as whole pages, if nothing else has it."""
        before, *rest = getattr(self, name).shape
        try:
            getattr(self, name).resize((count, *rest))
        except ValueError:  # another proof has it too, or there is a view of it
            more = np.empty((count - before, *rest), dtype=getattr(self, name).dtype)
            setattr(self, name, np.concatenate([getattr(self, name), more]))
        getattr(self, name)[before:] = empty


def _multipliers_key(multipliers: Multipliers) -> int:
    return hash(multipliers if isinstance(multipliers, tuple) else multipliers.tobytes())


def stored_combinations(
    combinations: Sequence[Combination],
    without: npt.NDArray[np.bool_],
    place: npt.NDArray[np.int32],
    multiplier: npt.NDArray[np.int32],
) -> dict[str, npt.NDArray[Any]]:
    """The combinations that leaves without whole numbers have, whose new places are entered in `multiplier`."""
    used = np.unique(place[without])
    if not used.size:
        return {}
    multiplier[without] = np.searchsorted(used, place[without])
    parts = [combinations[k] for k in used.tolist()]
    start = np.cumsum([0, *(len(part) for part in parts)])
    row = np.array([r for part in parts for r, _ in part], dtype=np.int64)
    value = np.array([str(value).encode() for part in parts for _, value in part])
    return {"integer_start": start.astype(np.int64), "integer_row": row, "integer_value": value}


def stored_multipliers(multipliers: Sequence[Multipliers], r: int) -> npt.NDArray[Any]:
    """Multipliers (m, r) as floats, or all as text "p/q" where some are rational numbers."""
    if any(isinstance(y, tuple) for y in multipliers):
        return np.array([[str(Fraction(v)).encode() for v in y] for y in multipliers]).reshape(-1, r)
    return np.array(multipliers, dtype=float).reshape(len(multipliers), r)
