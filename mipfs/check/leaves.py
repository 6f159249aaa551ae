"""The tree of fixings, and the least bound of its leaves: together they cover {0, 1}^p ∩ S.

A node is split on an atom, σ_j = 0 or 1, or on an extra variable that is a whole number, z ≤ value or z ≥ value + 1.
Or it is screened: its dual vector fixes every atom whose other value alone lifts what it proves to the claimed bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from mipfs.check.completions import CompletionCheck, OpenCompletions, Vectors
from mipfs.check.dual_vectors import NUMBERS_PER_BLOCK
from mipfs.check.integers import Combinations
from mipfs.check.rounding import Array, Arrays, CertificateError, Integers, U, read_rational, require, sum_below
from mipfs.check.statement import Statement
from mipfs.check.steps import LEAF, RELEASE, RESTORE, SCREEN, TreePieces, TreeSteps, numbers
from mipfs.check.workers import ALONE, LeafWorkers

REFUTED, WITHOUT, SCREENED = -2, -3, 1 << 30
"""In place of a leaf's dual vector: no selection is left, as multipliers show, or no whole numbers are. In place of a
split: the node is screened."""
_NONE = np.empty(0, dtype=np.int64)
LEAST_NODES, MOST_NODES = 128, 1024
"""Leaves and screened nodes of a piece of the tree."""
NUMBERS_OF_A_NODE = 1 << 17
"""Numbers of the data up to which a node takes about as long as one without any, a fifth of a millisecond."""

Visitor = Callable[["Fixings", float], None]
"""Sees what every leaf that may hold a selection has fixed, and its bound."""


class ProvenBounds(Protocol):
    """What dual vectors prove."""

    per_block: int

    @property
    def bytes_at_once(self) -> int:
        """Memory that evaluating `per_block` of them takes."""

    def rows(self, ids: Integers) -> tuple[list[float], Array]:
        """g and the costs of the atoms (B, p) of some dual vectors, `per_block` of them at most."""

    def take_seen(self) -> Integers:
        """The dual vectors that were found to be feasible since this was asked for."""

    def mark(self, ids: Integers) -> None:
        """Dual vectors that were found to be feasible elsewhere."""


def _check_arrays(arrays: Arrays) -> None:
    """Types, and sizes that belong together."""
    n_duals = len(arrays["dual_q"])
    for name, held in arrays.items():
        scaling = name.startswith("column_")  # `mipfs.check.scaling` looks at these
        kinds = {"multipliers": "fS", "dual_top": "f", "integer_value": "S"}.get(name, "S" if scaling else "iu")
        require(held.dtype.kind in kinds, f"{name!r} holds values of type {held.dtype}")
    for name, size in (
        ("version", 1),
        ("outside", 1),
        ("dual_q", n_duals),
        ("dual_start", n_duals + 1),
        ("dual_level", n_duals),
        ("dual_width", n_duals),
    ):
        require(name not in arrays or arrays[name].shape == (size,), f"{name!r} does not belong to the dual vectors")
    require(int(arrays["version"][0]) in (1, 2), "a certificate of another version; this checks 1 and 2")


def _whole_splits(arrays: Arrays, feature: memoryview, p: int) -> dict[int, int]:
    """The values of the splits on extra variables, by node."""
    at: dict[int, int] = dict(arrays["whole"].tolist()) if "whole" in arrays else {}
    pairs = "whole" not in arrays or arrays["whole"].shape == (len(at), 2)
    require(pairs, "splits on extra variables are not one number each")
    require(all(0 <= node < len(feature) and p <= feature[node] < SCREENED for node in at), "a value of no split")
    require(all(abs(value) < 2**52 for value in at.values()), "a split on a number that floats do not hold")
    return at


class CoverTree:
    """The tree: every node reached once, two children on an atom that is not fixed above or on a whole variable.

    Parameters
    ----------
    arrays : mapping of the sidecar
    p : int, atoms
    whole : (e,) bool, which extra variables are whole numbers

    Attributes
    ----------
    steps : TreeSteps, pairs (j, code), the way through the tree
        j < p: atom j is fixed to code 0 or 1, and released with -2 or -1. j ≥ p: extra variable j − p is at most code/2
        for an even code, at least (code − 1)/2 for an odd one; (RELEASE, 0) takes that back. (LEAF, node) is a leaf.
        (SCREEN, node) screens, (RESTORE, 0) takes that back.
    n_leaves : int
    """

    def __init__(self, arrays: Arrays, p: int, whole: npt.NDArray[np.bool_]) -> None:
        _check_arrays(arrays)
        n = arrays["feature"].size
        self.feature = feature = numbers(arrays["feature"], (n,))
        children = numbers(arrays["children"], (n, 2))
        self.dual, self.multiplier = (numbers(arrays[name], (n,)) for name in ("dual", "multiplier"))
        n_duals, n_multipliers = len(arrays["dual_q"]), len(arrays["multipliers"])
        n_combined = len(arrays["integer_start"]) - 1 if "integer_start" in arrays else 0
        at = _whole_splits(arrays, feature, p)
        self.steps = steps = TreeSteps()
        run_ends = self._run_ends(np.asarray(children), n_duals, n_multipliers)
        # Depth first, without recursion; a release undoes a fixing on the way back.
        reached, on_path = bytearray(n), set[int]()
        stack = [(LEAF, 0, 0, False)]
        hole = "the leaves do not cover all selections: node"
        while stack:
            j, code, node, is_release = stack.pop()
            if j == RESTORE:
                steps.extend(RESTORE, np.zeros(code, dtype=np.int64))
                continue
            if is_release:
                on_path.discard(j)
                steps.append(j, code)
                continue
            if not 0 <= node < n or reached[node]:
                raise CertificateError(f"{hole} {node} is absent or reached twice")
            reached[node] = 1
            if j != LEAF:
                if j in on_path:
                    raise CertificateError(f"a split on feature {j}, which is fixed above")
                if j < p:
                    on_path.add(j)
                steps.append(j, code)
                stack.append((j, code - 2, -1, True) if j < p else (RELEASE, 0, -1, True))
            on = feature[node]
            if on == SCREENED:
                self._check_node(node, n_duals, n_multipliers)
                if children[node, 1] != -1:
                    raise CertificateError(f"node {node} is screened and goes on in two")
                # A run of nodes that are screened, each the child of the one before: all of it that is not yet reached.
                end = int(run_ends[np.searchsorted(run_ends, node)])
                end = node + 1 if end <= node else end if (twice := reached.find(1, node + 1, end)) < 0 else twice
                reached[node:end] = b"\1" * (end - node)
                steps.extend(SCREEN, np.arange(node, end))
                stack += [(RESTORE, end - node, -1, True), (LEAF, 0, children[end - 1, 0], False)]
            elif on >= 0:
                if on >= p and not (on < p + whole.size and whole[on - p]):
                    raise CertificateError(f"a split on feature {on}, which does not exist or is no whole number")
                low, high = (0, 1) if on < p else (2 * at[node], 2 * (at[node] + 1) + 1)
                stack.append((on, high, children[node, 1], False))
                stack.append((on, low, children[node, 0], False))
            else:
                if not on == -1 == children[node, 0] == children[node, 1]:
                    raise CertificateError(f"leaf {node} has children, or is none")
                if self.dual[node] != WITHOUT:
                    self._check_node(node, n_duals, n_multipliers)
                elif not 0 <= self.multiplier[node] < n_combined:
                    raise CertificateError(f"{hole} {node} has no combination of rows")
                steps.append(LEAF, node)
        require(all(reached), "a node is not part of the tree")
        self.n_leaves = int(np.count_nonzero(np.asarray(feature) < 0))

    @property
    def has_one_dual(self) -> bool:
        """Whether all leaves that are not refuted have the same dual vector."""
        j, node = self.steps.arrays
        shown = np.asarray(self.dual)[node[(j == LEAF) | (j == SCREEN)]]
        shown = shown[shown >= 0]
        return bool(np.all(shown == shown[:1]))

    def _check_node(self, node: int, n_duals: int, n_multipliers: int) -> None:
        """A leaf or a screened node has a dual vector, or is a leaf that is refuted; its multipliers exist."""
        dual = self.dual[node]
        is_leaf = self.feature[node] != SCREENED
        if not (0 <= dual < n_duals or (is_leaf and dual == REFUTED)):
            what = "has" if is_leaf else "is screened by"
            raise CertificateError(f"the leaves do not cover all selections: node {node} {what} no dual vector")
        if not -1 <= self.multiplier[node] < n_multipliers:
            raise CertificateError(f"{'leaf' if is_leaf else 'node'} {node} has multipliers that do not exist")

    def _run_ends(self, children: Integers, n_duals: int, n_multipliers: int) -> Integers:
        """The nodes that are not screened, rightly, with the next node as the only child; one behind the last one."""
        node = np.arange(len(self.feature))
        feature, dual, multiplier = (np.asarray(held) for held in (self.feature, self.dual, self.multiplier))
        inside = (dual >= 0) & (dual < n_duals) & (multiplier >= -1) & (multiplier < n_multipliers)
        goes_on = (feature == SCREENED) & inside & (children[:, 0] == node + 1) & (children[:, 1] == -1)
        return np.append(np.flatnonzero(~goes_on), node.size)

    @cached_property
    def has_chains(self) -> bool:
        """Whether a node that is screened goes on in one that is screened again."""
        screens = self.steps.arrays[0] == SCREEN
        return bool(np.any(screens[1:] & screens[:-1]))

    @cached_property
    def _chain_ends(self) -> Integers:
        """Steps that do not screen without multipliers: where chains end."""
        j, node = self.steps.arrays
        screens = j == SCREEN
        screens[screens] = np.asarray(self.multiplier)[node[screens]] < 0
        return np.flatnonzero(~screens)

    def chain(self, at: int) -> int:
        """How many nodes are screened one after the other from a step on, without multipliers."""
        ends = self._chain_ends
        return int(ends[np.searchsorted(ends, at)]) - at  # the last step screens nothing


class Fixings:
    """The atoms fixed on the way to a leaf, and the minimum over what they leave."""

    def __init__(self, statement: Statement) -> None:
        self.forced, self.state, self.M = statement.forced.tolist(), statement.forced.copy(), statement.M
        self.inside = np.concatenate([np.flatnonzero(self.state == 1), np.zeros(statement.p + 1, dtype=np.int64)])
        self.n_inside = int((self.state == 1).sum())
        self.conflicts = 0
        self.n_free = int((self.state < 0).sum())
        self.ends = (statement.low, statement.high)
        self._before = list[tuple[Array, Array]]()
        self._screened: list[tuple[Integers, int, bool]] = []

    def step(self, j: int, code: int) -> None:
        """Go one step of a `CoverTree`."""
        if j == RELEASE:
            self.ends = self._before.pop()
            return
        if j >= self.state.size:
            self._before.append(self.ends)
            low, high = self.ends[0].copy(), self.ends[1].copy()
            k = j - self.state.size
            side = code % 2
            end = float(code // 2)
            if side:
                low[k] = max(low[k], end)
            else:
                high[k] = min(high[k], end)
            self.ends = low, high
            return
        change = -1 if code < 0 else 1
        value = code % 2
        if self.forced[j] >= 0:  # by the statement, or by screening
            self.conflicts += change * (self.forced[j] != value)
            return
        self.state[j] = value if change > 0 else -1
        self.inside[self.n_inside] = j
        self.n_inside += change * value
        self.n_free -= change

    def screen(self, terms: list[float], cost: Array, order: Integers, level: float) -> None:
        """Fix every free atom whose other value lifts the sum of `terms`, the minimum over what is left, to the level.

        `order` sorts the negative costs. What leaves is taken out of an exact sum, since a cost may be larger than the
        level by more than a float has digits; the addition of what comes is rounded, and its error taken off. A sum
        that reaches the level itself leaves nothing.
        """
        bound = sum_below(terms)
        if bound >= level:
            self._screened.append((_NONE, 0, True))
            self.conflicts += 1
            return
        # The minimum takes the most negative free costs, as many as there is room for.
        room = self.M - self.n_inside
        free = self.state < 0
        gains = order[free[order]]
        taken = gains[: max(room, 0)]
        rest = gains[max(room, 0) :]
        last = float(cost[taken[-1]]) if taken.size and taken.size == room else 0.0  # what leaves for another one
        following = float(cost[rest[0]]) if rest.size else 0.0  # what comes for one that leaves
        # The sum at the other value: an atom in for the last that is taken, or the next in its place.
        other = np.full(cost.size, math.inf if room <= 0 and math.isfinite(bound) else -math.inf)
        if room > 0 and math.isfinite(bound):
            without = sum_below([*terms, -last])
            other = without + cost - 2.0 * U * (abs(without) + np.abs(cost))
        if math.isfinite(bound):
            other[taken] = [sum_below([*terms, -float(cost[j]), following]) for j in taken]
        free[free] = other[free] >= level
        ids = np.concatenate([taken[free[taken]], np.setdiff1d(np.flatnonzero(free), taken)])
        count = int(np.count_nonzero(free[taken]))
        self._fix_atoms(ids, count)

    def _fix_atoms(self, ids: Integers, count: int) -> None:
        """Fix atoms until they are restored, the first `count` to 1 and the others to 0."""
        self._screened.append((ids, count, False))
        self.state[ids] = np.arange(ids.size) < count
        for j, value in zip(ids.tolist(), self.state[ids].tolist(), strict=True):
            self.forced[j] = value
        self.inside[self.n_inside : self.n_inside + count] = ids[:count]
        self.n_inside, self.n_free = self.n_inside + count, self.n_free - ids.size

    def screen_completions(self, of: CompletionCheck, vectors: Vectors, first: int, last: int, level: float) -> None:
        """Screen by several dual vectors where one place is left: as one after the other.

        Of these the last restores what all of them fix.
        """
        inside = self.inside[: self.n_inside].copy()
        found = OpenCompletions(level, np.flatnonzero(self.state < 0))
        of.rule_out(vectors, first, last, inside, [found])
        self._screened += [(_NONE, 0, False)] * (last - first - 1)
        if not found.free.size and not found.is_open:
            self._screened.append((_NONE, 0, True))
            self.conflicts += 1
            return
        free = self.state < 0
        free[found.free] = False
        only = [] if found.only is None else [found.only]
        self._fix_atoms(np.concatenate([np.array(only, dtype=np.int64), np.flatnonzero(free)]), len(only))

    def restore(self) -> None:
        """Take the last screening back."""
        ids, count, is_closed = self._screened.pop()
        self.conflicts -= is_closed
        if not ids.size:
            return
        self.state[ids] = -1
        for j in ids.tolist():
            self.forced[j] = -1
        self.n_inside, self.n_free = self.n_inside - count, self.n_free + ids.size

    @property
    def is_empty(self) -> bool:
        """Whether forced atoms, the cardinality row or the ends of an extra variable rule out every selection."""
        return bool(self.conflicts) or self.n_inside > self.M or bool(np.any(self.ends[0] > self.ends[1]))

    @property
    def taken(self) -> frozenset[int]:
        """The atoms that are in every selection left."""
        return frozenset(self.inside[: self.n_inside].tolist())

    @property
    def only(self) -> frozenset[int] | None:
        """The one selection that is left, None where there may be more."""
        return None if self.n_free and self.n_inside < self.M else self.taken

    def terms(self, cost: Array, order: Integers) -> Array:
        """Terms of min over the selections left, Σσ ≤ M, of cost'σ; `order` sorts the negative costs."""
        free = order[self.state[order] < 0][: self.M - self.n_inside]
        return np.concatenate([cost[self.inside[: self.n_inside]], cost[free]])


class Costs:
    """What dual vectors prove: g and the costs c − ½ s − A'y of the atoms, with the negative ones in order."""

    def __init__(self, statement: Statement, duals: ProvenBounds, multipliers: Array) -> None:
        self.statement = statement
        self.duals = duals
        self.multipliers = multipliers
        self._rows: dict[int, tuple[float, Array]] = {}
        self._sorted: dict[tuple[int, int, bytes], tuple[list[float], Array, Integers]] = {}
        self._refuted = 0.0, np.zeros(statement.p)  # a Farkas ray bounds no cost at all
        self.begin(_NONE)

    def begin(self, ahead: Integers) -> None:
        """Begin a piece, in which dual vectors are asked for in about this order: these are evaluated together.

        Nothing is kept of what was there before: a product of matrices depends on its shape, in its last digits.
        """
        ahead = ahead[ahead >= 0]
        self._ahead = ahead[np.sort(np.unique(ahead, return_index=True)[1])]
        self._place = {d: k for k, d in enumerate(self._ahead.tolist())}
        self._rows.clear()
        self._sorted.clear()

    def costs_of_dual(
        self, dual: int, multiplier: int, ends: tuple[Array, Array]
    ) -> tuple[list[float], Array, Integers]:
        """Constants that add up to the bound's, costs (p,), and the order of the negative ones."""
        key = dual, multiplier, ends[0].tobytes() + ends[1].tobytes()
        if key not in self._sorted:
            if len(self._sorted) * self.statement.p > NUMBERS_PER_BLOCK:
                self._sorted.clear()
            g, row = self._row_of_dual(dual)
            constants = [g]
            is_ray = dual == REFUTED
            if multiplier >= 0 or (self.statement.has_extra_costs and not is_ray):
                held = self.multipliers[multiplier].tolist() if multiplier >= 0 else [0.0] * self.statement.lb.size
                more, row = self.statement.reduced(row, held, ends, is_ray=is_ray)
                constants += more
            row = np.where(np.isnan(row), -np.inf, row)  # of forged multipliers, of columns beyond floating point
            negative = np.flatnonzero(row < 0)
            self._sorted[key] = constants, row, negative[np.argsort(row[negative], kind="stable")]
        return self._sorted[key]

    def _row_of_dual(self, dual: int) -> tuple[float, Array]:
        if dual == REFUTED:
            return self._refuted
        if dual not in self._rows:
            self._evaluate(dual)
        return self._rows[dual]

    def _evaluate(self, dual: int) -> None:
        """Evaluate a dual vector, and those that will be asked for next."""
        at = self._place.get(dual)
        ids = np.array([dual]) if at is None else self._ahead[at : at + self.duals.per_block]
        if (len(self._rows) + ids.size) * self.statement.p > NUMBERS_PER_BLOCK:
            self._rows.clear()
        self._rows |= zip(ids.tolist(), zip(*self.duals.rows(ids), strict=True), strict=True)


def check_multipliers(stored: Array, n_rows: int) -> None:
    """One finite number for every row, whether a leaf uses it or not."""
    fits = stored.ndim == 2 and (stored.shape[0] == 0 or stored.shape[1] == n_rows)
    require(fits, "the multipliers are not one for every row")
    for value in stored.ravel().tolist() if stored.dtype.kind == "S" else ():
        read_rational(value, "a multiplier")
    require(stored.dtype.kind == "S" or np.all(np.isfinite(stored)), "a multiplier is not finite")


class PieceFindings(NamedTuple):
    """What is found in a piece of a tree.

    Attributes
    ----------
    least : float, what all of it proves
    bound : float, the least bound of a leaf, where one is less than what is proven before it, and leaf : int, which
    n_leaves : int
    seen : dual vectors that were found to be feasible
    """

    least: float
    bound: float
    leaf: int
    n_leaves: int
    seen: Integers


class TreeWalk:
    """Goes through a tree piece by piece, in any order: what is found in one does not depend on the pieces before it.

    From the root to where a piece begins every screening vector is evaluated by itself, or as the one chain that it is
    in; what is kept of these for the next piece was found in the same way.

    Parameters
    ----------
    statement, duals, tree, arrays, visit, level : as of `least_bound`
    """

    def __init__(
        self,
        statement: Statement,
        duals: ProvenBounds,
        tree: CoverTree,
        arrays: Arrays,
        visit: Visitor | None,
        level: float,
    ) -> None:
        self.tree, self.duals, self.visit, self.level = tree, duals, visit, level
        n_numbers = statement.data.n_samples * statement.p
        size = min(MOST_NODES, max(LEAST_NODES, MOST_NODES * NUMBERS_OF_A_NODE // max(1, n_numbers)))
        self.pieces = TreePieces(tree.steps, statement.p, size)
        self._costs = Costs(statement, duals, arrays["multipliers"])
        self._combinations = Combinations(statement, arrays)
        self._fixed = Fixings(statement)
        many = tree.has_chains and not statement.has_extra_costs  # of which chains know nothing
        self._completions = CompletionCheck.of(statement, duals) if many else None
        self._known: Integers = _NONE
        self._since = 0

    def __call__(self, k: int) -> PieceFindings:
        """Go through a piece."""
        start, end = self.pieces.ends[k : k + 2].tolist()
        self._look_ahead(start, start)
        self._go_to(start)
        self._look_ahead(start, end)
        found = self._walk_piece(start, end)
        self._known, self._since = self.pieces.path(end), start
        return found

    def _go_to(self, start: int) -> None:
        """Take back what the last piece was at the end of, as far as it is not above, and take the steps to here."""
        before, after = self._known, self.pieces.path(start)
        both = min(before.size, after.size)
        same = (before[:both] == after[:both]) & (before[:both] < self._since)
        n_same = int(np.argmin(np.append(same, False)))
        fixed, steps = self._fixed, self.tree.steps
        self._known = _NONE
        for at in before[n_same:][::-1].tolist():
            j, code = steps[at]
            if j == SCREEN:
                fixed.restore()
            elif j < fixed.state.size:
                fixed.step(j, code - 2)
            else:
                fixed.step(RELEASE, 0)
        ahead = 0
        for at in after[n_same:].tolist():
            if ahead:
                ahead -= 1
            elif steps[at][0] == SCREEN:
                ahead = self._screen_chain(at)
            else:
                fixed.step(*steps[at])

    def _look_ahead(self, start: int, end: int) -> None:
        """Look at which dual vectors the steps to come ask for, so that many are read or evaluated at a time."""
        j, node = (part[start:end] for part in self.tree.steps.arrays)
        dual = np.asarray(self.tree.dual, dtype=np.int64)
        screens = j == SCREEN
        self._screens = start + np.flatnonzero(screens)
        if self._completions is None:
            self._costs.begin(dual[node[screens | (j == LEAF)]])
            return
        self._costs.begin(dual[node[j == LEAF]])
        self._vectors = self._completions.vectors(dual[node[screens]])

    def _screen_chain(self, at: int) -> int:
        """Screen by all vectors of a chain together where they are about completions; how many more than one."""
        fixed, tree = self._fixed, self.tree
        if self._completions is not None and fixed.n_inside == fixed.M - 1 and not fixed.is_empty:
            size = tree.chain(at)
            if size:
                first = int(np.searchsorted(self._screens, at))
                vectors = self._vectors
                if not self._screens.size:  # on the way to a piece
                    nodes = tree.steps.arrays[1][at : at + size]
                    vectors = self._completions.vectors(np.asarray(tree.dual)[nodes])
                fixed.screen_completions(self._completions, vectors, first, first + size, self.level)
                return size - 1
        terms, reduced, order = self._bound_terms(tree.steps[at][1])
        fixed.screen(terms, reduced, order, self.level)
        return 0

    def _bound_terms(self, node: int) -> tuple[list[float], Array, Integers]:
        """The terms of a node's bound, the costs of the atoms and the order of the negative ones."""
        fixed = self._fixed
        if fixed.is_empty:
            return [math.inf], _NONE.astype(float), _NONE
        tree = self.tree
        constants, reduced, order = self._costs.costs_of_dual(tree.dual[node], tree.multiplier[node], fixed.ends)
        return [*constants, *fixed.terms(reduced, order).tolist()], reduced, order

    def _walk_piece(self, start: int, end: int) -> PieceFindings:
        """Take the steps of a piece."""
        least = best = math.inf
        where, n_leaves, ahead = -1, 0, 0
        fixed, steps = self._fixed, self.tree.steps
        for at in range(start, end):
            if ahead:  # screened together with the one before
                ahead -= 1
                continue
            j, value = steps[at]
            if j == RESTORE:
                fixed.restore()
            elif j == SCREEN:
                ahead = self._screen_chain(at)
                least = min(least, self.level)
            elif j != LEAF:
                fixed.step(j, value)
            else:
                n_leaves += 1
                bound = self._leaf_bound(value)
                if bound < least:
                    least = best = bound
                    where = value
        return PieceFindings(least, best, where, n_leaves, self.duals.take_seen())

    def _leaf_bound(self, node: int) -> float:
        """The bound of a leaf; inf where it holds no selection."""
        fixed, tree = self._fixed, self.tree
        if tree.dual[node] == WITHOUT:
            shown = fixed.is_empty or self._combinations.show_empty(tree.multiplier[node], fixed)
            require(shown, f"nothing shows that no whole numbers fit leaf {node}, as it says")
            return math.inf
        bound = sum_below(self._bound_terms(node)[0])
        if bound == math.inf:
            return bound
        # A refuted leaf has the costs of its rows alone: where these are above 0 they are a Farkas ray.
        is_refuted = tree.dual[node] == REFUTED
        require(not is_refuted or bound > 0.0, f"nothing shows that leaf {node} holds no selection, as it says")
        if is_refuted:
            return math.inf
        if self.visit is not None:
            self.visit(fixed, bound)
        return bound


def least_bound(
    statement: Statement,
    duals: ProvenBounds,
    tree: CoverTree,
    arrays: Arrays,
    visit: Visitor | None = None,
    workers: LeafWorkers = ALONE,
    level: float = math.inf,
) -> tuple[float, int]:
    """The least bound of all leaves (unit margin), and its leaf; inf when no leaf holds a selection.

    Screening fixes up to the level, which is then all that is proven at most.
    """
    check_multipliers(arrays["multipliers"], statement.lb.size)
    walk = TreeWalk(statement, duals, tree, arrays, visit, level)
    least = math.inf
    where, done = -1, 0
    for part in workers.each(walk, len(walk.pieces), duals.bytes_at_once):
        if part.leaf >= 0 and part.bound < least:
            where = part.leaf
        least = min(least, part.least)
        duals.mark(part.seen)
        done += part.n_leaves
        workers.told(done, tree.n_leaves)
    return least, where
