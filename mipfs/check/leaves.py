"""The tree of fixings, and the least bound of its leaves: together they cover {0, 1}^p ∩ S.

A node is split on an atom, σ_j = 0 or 1, or on an extra variable that is a whole number, z ≤ value or z ≥ value + 1.
Or it is screened: its dual vector fixes every atom whose other value alone lifts what it proves to the claimed bound.
"""

from __future__ import annotations

import itertools
import math
from collections import OrderedDict
from collections.abc import Callable
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from mipfs.check.completions import Completions
from mipfs.check.dual_vectors import NUMBERS_PER_BLOCK
from mipfs.check.integers import Combinations
from mipfs.check.rounding import Array, Arrays, Integers, U, rational, require, sum_below
from mipfs.check.statement import Statement
from mipfs.check.steps import Steps, numbers

REFUTED, WITHOUT, SCREENED = -2, -3, 1 << 30
"""In place of a leaf's dual vector: no selection is left, as multipliers show, or no whole numbers are. In place of a
split: the node is screened."""
LEAF, RELEASE, SCREEN, RESTORE = -1, -2, -3, -4
"""In place of an atom in the steps through a tree."""
_NONE = np.empty(0, dtype=np.int64)
CACHED_BLOCKS = 8
"""Blocks of costs that are kept."""

Visitor = Callable[["Fixings", float], None]
"""Sees what every leaf that may hold a selection has fixed, and its bound."""


class Proven(Protocol):
    """What dual vectors prove."""

    per_block: int

    def costs(self, number: int) -> tuple[range, list[float], Array]:
        """Positions, g and the costs of the atoms (B, p) of a block."""


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


def _whole(arrays: Arrays, feature: memoryview, p: int) -> dict[int, int]:
    """The values of the splits on extra variables, by node."""
    at: dict[int, int] = dict(arrays["whole"].tolist()) if "whole" in arrays else {}
    pairs = "whole" not in arrays or arrays["whole"].shape == (len(at), 2)
    require(pairs, "splits on extra variables are not one number each")
    require(all(0 <= node < len(feature) and p <= feature[node] < SCREENED for node in at), "a value of no split")
    return at


class Tree:
    """The tree: every node reached once, two children on an atom that is not fixed above or on a whole variable.

    Parameters
    ----------
    arrays : mapping of the sidecar
    p : int, atoms
    whole : (e,) bool, which extra variables are whole numbers

    Attributes
    ----------
    steps : Steps, pairs (j, code), the way through the tree
        j < p: atom j is fixed to code 0 or 1, and released with -2 or -1. j ≥ p: extra variable j − p is at most code/2
        for an even code, at least (code − 1)/2 for an odd one; (RELEASE, 0) takes that back. (LEAF, node) is a leaf.
        (SCREEN, node) screens, (RESTORE, 0) takes that back.
    n_leaves : int
    has_one_dual : bool, whether all leaves that are not refuted have the same dual vector
    """

    def __init__(self, arrays: Arrays, p: int, whole: npt.NDArray[np.bool_]) -> None:
        _check_arrays(arrays)
        n = arrays["feature"].size
        self.feature = feature = numbers(arrays["feature"], (n,))
        children = numbers(arrays["children"], (n, 2))
        self.dual, self.multiplier = (numbers(arrays[name], (n,)) for name in ("dual", "multiplier"))
        n_duals, n_multipliers = len(arrays["dual_q"]), len(arrays["multipliers"])
        n_combined = len(arrays["integer_start"]) - 1 if "integer_start" in arrays else 0
        at = _whole(arrays, feature, p)
        require(all(abs(value) < 2**52 for value in at.values()), "a split on a number that floats do not hold")
        self.steps = steps = Steps()
        # Depth first, without recursion; a release undoes a fixing on the way back.
        reached = bytearray(n)
        on_path = set[int]()
        stack = [(LEAF, 0, 0, False)]
        hole = "the leaves do not cover all selections: node"
        while stack:
            j, code, node, is_release = stack.pop()
            if is_release:
                on_path.discard(j)
                steps.append(j, code)
                continue
            require(0 <= node < len(feature) and not reached[node], f"{hole} {node} is absent or reached twice")
            reached[node] = 1
            if j != LEAF:
                require(j not in on_path, f"a split on feature {j}, which is fixed above")
                if j < p:
                    on_path.add(j)
                steps.append(j, code)
                stack.append((j, code - 2, -1, True) if j < p else (RELEASE, 0, -1, True))
            on = feature[node]
            if on == SCREENED:
                require(0 <= self.dual[node] < n_duals, f"{hole} {node} is screened by no dual vector")
                require(-1 <= self.multiplier[node] < n_multipliers, f"node {node} has multipliers that do not exist")
                require(children[node, 1] == -1, f"node {node} is screened and goes on in two")
                steps.append(SCREEN, node)
                stack += [(RESTORE, 0, -1, True), (LEAF, 0, children[node, 0], False)]
                continue
            if on >= 0:
                known = on < p or (on < p + whole.size and bool(whole[on - p]))
                require(known, f"a split on feature {on}, which does not exist or is no whole number")
                codes = (0, 1) if on < p else (2 * at[node], 2 * (at[node] + 1) + 1)
                stack += [(on, codes[side], children[node, side], False) for side in (1, 0)]
                continue
            require(on == -1 and children[node, 0] == -1 == children[node, 1], f"leaf {node} has children, or is none")
            if self.dual[node] == WITHOUT:
                combined = 0 <= self.multiplier[node] < n_combined
                require(combined, f"{hole} {node} has no combination of rows")
                steps.append(LEAF, node)
                continue
            require(self.dual[node] == REFUTED or 0 <= self.dual[node] < n_duals, f"{hole} {node} has no dual vector")
            require(-1 <= self.multiplier[node] < n_multipliers, f"leaf {node} has multipliers that do not exist")
            steps.append(LEAF, node)
        require(all(reached), "a node is not part of the tree")
        self.n_leaves = sum(on < 0 for on in feature)
        shown = (self.dual[node] for j, node in steps if j in (LEAF, SCREEN) and self.dual[node] >= 0)
        first = next(shown, REFUTED)
        self.has_one_dual = all(dual == first for dual in shown)

    @cached_property
    def has_chains(self) -> bool:
        """Whether a node that is screened goes on in one that is screened again."""
        return any(one[0] == SCREEN == other[0] for one, other in itertools.pairwise(self.steps))

    def chain(self, at: int) -> list[int]:
        """The dual vectors of the nodes that are screened one after the other from a step on, without multipliers."""
        numbers = list[int]()
        while self.steps[at][0] == SCREEN and self.multiplier[self.steps[at][1]] < 0:
            numbers.append(self.dual[self.steps[at][1]])
            at += 1
        return numbers


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
        """Go one step of a `Tree`."""
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
        self._take(ids, count)

    def _take(self, ids: Integers, count: int) -> None:
        """Fix atoms until they are restored, the first `count` to 1 and the others to 0."""
        self._screened.append((ids, count, False))
        self.state[ids] = np.arange(ids.size) < count
        for j, value in zip(ids.tolist(), self.state[ids].tolist(), strict=True):
            self.forced[j] = value
        self.inside[self.n_inside : self.n_inside + count] = ids[:count]
        self.n_inside, self.n_free = self.n_inside + count, self.n_free - ids.size

    def screen_completions(self, numbers: list[int], completions: Completions, level: float) -> None:
        """Screen by several dual vectors where one place is left: as one after the other, in any order.

        Of these the last restores what all of them fix.
        """
        inside = self.inside[: self.n_inside].copy()
        left, is_open = completions.left(numbers, inside, np.flatnonzero(self.state < 0), level)
        self._screened += [(_NONE, 0, False)] * (len(numbers) - 1)
        if not left.size and not is_open:
            self._screened.append((_NONE, 0, True))
            self.conflicts += 1
            return
        free = self.state < 0
        free[left] = False
        ids = np.flatnonzero(free)
        count = int(left.size == 1 and not is_open)  # one selection is left: the other one has it in
        self._take(np.concatenate([left[:count], ids]), count)

    def restore(self) -> None:
        """Take the last screening back."""
        ids, count, is_closed = self._screened.pop()
        self.conflicts -= is_closed
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

    def __init__(self, statement: Statement, duals: Proven, multipliers: Array) -> None:
        self.statement = statement
        self.duals = duals
        self.multipliers = multipliers
        self._blocks: OrderedDict[int, tuple[range, list[float], Array]] = OrderedDict()
        self._sorted: dict[tuple[int, int, bytes], tuple[list[float], Array, Integers]] = {}
        self._refuted = 0.0, np.zeros(statement.p)  # a Farkas ray bounds no cost at all

    def of(self, dual: int, multiplier: int, ends: tuple[Array, Array]) -> tuple[list[float], Array, Integers]:
        """Constants that add up to the bound's, costs (p,), and the order of the negative ones."""
        key = dual, multiplier, ends[0].tobytes() + ends[1].tobytes()
        if key not in self._sorted:
            if len(self._sorted) * self.statement.p > NUMBERS_PER_BLOCK:
                self._sorted.clear()
            g, row = self._row(dual)
            constants = [g]
            if multiplier >= 0:
                more, row = self.statement.reduced(row, self.multipliers[multiplier].tolist(), ends)
                constants += more
            row = np.where(np.isnan(row), -np.inf, row)  # of forged multipliers, of columns beyond floating point
            negative = np.flatnonzero(row < 0)
            self._sorted[key] = constants, row, negative[np.argsort(row[negative], kind="stable")]
        return self._sorted[key]

    def _row(self, dual: int) -> tuple[float, Array]:
        if dual == REFUTED:
            return self._refuted
        number = dual // self.duals.per_block
        if number not in self._blocks:
            self._blocks[number] = self.duals.costs(number)
            if len(self._blocks) > CACHED_BLOCKS:
                self._blocks.popitem(last=False)
        self._blocks.move_to_end(number)
        ids, g, cost = self._blocks[number]
        return g[dual - ids.start], cost[dual - ids.start]


def check_multipliers(stored: Array, n_rows: int) -> None:
    """One finite number for every row, whether a leaf uses it or not."""
    fits = stored.ndim == 2 and (stored.shape[0] == 0 or stored.shape[1] == n_rows)
    require(fits, "the multipliers are not one for every row")
    for value in stored.ravel().tolist() if stored.dtype.kind == "S" else ():
        rational(value, "a multiplier")
    require(stored.dtype.kind == "S" or np.all(np.isfinite(stored)), "a multiplier is not finite")


def least_bound(
    statement: Statement,
    duals: Proven,
    tree: Tree,
    arrays: Arrays,
    visit: Visitor | None = None,
    told: Callable[[int, int], object] | None = None,
    level: float = math.inf,
) -> tuple[float, int]:
    """The least bound of all leaves (unit margin), and its leaf; inf when no leaf holds a selection.

    Screening fixes up to the level, which is then all that is proven at most. `told` hears how many of how many leaves
    are done.
    """
    least = math.inf
    where = -1
    done = 0
    check_multipliers(arrays["multipliers"], statement.lb.size)
    costs = Costs(statement, duals, arrays["multipliers"])
    combinations = Combinations(statement, arrays)
    fixed = Fixings(statement)
    completions = Completions.of(statement, duals) if tree.has_chains else None
    ahead = 0
    for at, (j, value) in enumerate(tree.steps):
        if ahead:  # screened together with the one before
            ahead -= 1
            continue
        if j == SCREEN and completions is not None and fixed.n_inside == fixed.M - 1 and not fixed.is_empty:
            chain = tree.chain(at)
            if chain:
                fixed.screen_completions(chain, completions, level)
                least = min(least, level)
                ahead = len(chain) - 1
                continue
        if j == RESTORE:
            fixed.restore()
            continue
        if j not in (LEAF, SCREEN):
            fixed.step(j, value)
            continue
        dual = tree.dual[value]
        bound = math.inf
        if dual == WITHOUT and j == LEAF and not fixed.is_empty:
            shown = combinations.show_empty(tree.multiplier[value], fixed)
            require(shown, f"nothing shows that no whole numbers fit leaf {value}, as it says")
        if fixed.is_empty or dual == WITHOUT:
            terms, reduced, order = [math.inf], _NONE.astype(float), _NONE
        else:
            constants, reduced, order = costs.of(dual, tree.multiplier[value], fixed.ends)
            terms = [*constants, *fixed.terms(reduced, order).tolist()]
            bound = sum_below(terms)
        if j == SCREEN:
            fixed.screen(terms, reduced, order, level)
            least = min(least, level)
            continue
        done += 1
        if told is not None:
            told(done, tree.n_leaves)
        if bound == math.inf:
            continue
        # A refuted leaf has the costs of its rows alone: where these are above 0 they are a Farkas ray.
        require(dual != REFUTED or bound > 0.0, f"nothing shows that leaf {value} holds no selection, as it says")
        if dual == REFUTED:
            continue
        if visit is not None:
            visit(fixed, bound)
        if bound < least:
            least = bound
            where = value
    return least, where
