"""The tree of fixings, and the least bound of its leaves: together they cover {0, 1}^p ∩ S.

A node is split on an atom, σ_j = 0 or 1, or on an extra variable that is a whole number, z ≤ value or z ≥ value + 1.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from mipfs.check.dual_vectors import BLOCK, Duals
from mipfs.check.rounding import Array, Arrays, Integers, down, require
from mipfs.check.statement import Statement

REFUTED = -2
LEAF, RELEASE = -1, -2
"""In place of an atom in the steps through a tree."""

Visitor = Callable[["Fixings", float], None]
"""Sees what every leaf that may hold a selection has fixed, and its bound."""


class Tree:
    """The tree: every node reached once, two children on an atom that is not fixed above or on a whole variable.

    Parameters
    ----------
    arrays : mapping of the sidecar
    p : int, atoms
    whole : (e,) bool, which extra variables are whole numbers

    Attributes
    ----------
    steps : list of (j, code), the way through the tree
        j < p: atom j is fixed to code 0 or 1, and released with -2 or -1. j ≥ p: extra variable j − p is at most code/2
        for an even code, at least (code − 1)/2 for an odd one; (RELEASE, 0) takes that back. (LEAF, node) is a leaf.
    """

    def __init__(self, arrays: Arrays, p: int, whole: npt.NDArray[np.bool_]) -> None:
        require(int(arrays["version"][0]) == 1, "a certificate of another version; this checks version 1")
        for name, array in arrays.items():
            kinds = {"multipliers": "fS", "dual_top": "f"}.get(name, "iu")
            require(array.dtype.kind in kinds, f"{name!r} holds values of type {array.dtype}")
        feature, children = arrays["feature"].tolist(), arrays["children"].tolist()
        self.dual, self.multiplier = arrays["dual"].tolist(), arrays["multiplier"].tolist()
        require({*map(len, (children, self.dual, self.multiplier))} == {len(feature)}, "a node is incomplete")
        n_duals, n_multipliers = len(arrays["dual_q"]), len(arrays["multipliers"])
        at = dict(arrays["whole"].tolist()) if "whole" in arrays else {}
        require(all(abs(value) < 2**52 for value in at.values()), "a split on a number that floats do not hold")
        self.steps: list[tuple[int, int]] = []
        reached, on_path, stack = [False] * len(feature), [False] * p, [(LEAF, 0, 0, False)]
        hole = "the leaves do not cover all selections: node"
        while stack:
            j, code, node, is_release = stack.pop()
            if is_release:
                if 0 <= j < p:
                    on_path[j] = False
                self.steps.append((j, code))
                continue
            require(0 <= node < len(feature) and not reached[node], f"{hole} {node} is absent or reached twice")
            reached[node] = True
            if j != LEAF:
                require(j >= p or not on_path[j], f"a split on feature {j}, which is fixed above")
                if j < p:
                    on_path[j] = True
                self.steps.append((j, code))
                stack.append((j, code - 2, -1, True) if j < p else (RELEASE, 0, -1, True))
            on = feature[node]
            if on >= 0:
                known = on < p or (on < p + whole.size and bool(whole[on - p]))
                require(known, f"a split on feature {on}, which does not exist or is no whole number")
                codes = (0, 1) if on < p else (2 * at[node], 2 * (at[node] + 1) + 1)
                stack += [(on, codes[side], children[node][side], False) for side in (1, 0)]
                continue
            require(self.dual[node] == REFUTED or 0 <= self.dual[node] < n_duals, f"{hole} {node} has no dual vector")
            require(-1 <= self.multiplier[node] < n_multipliers, f"leaf {node} has multipliers that do not exist")
            self.steps.append((LEAF, node))
        require(all(reached), "a node is not part of the tree")

    @property
    def n_leaves(self) -> int:
        return (len(self.dual) + 1) // 2


class Fixings:
    """The atoms fixed on the way to a leaf, and the minimum over what they leave."""

    def __init__(self, statement: Statement) -> None:
        self.forced, self.state, self.M = statement.forced.tolist(), statement.forced.copy(), statement.M
        self.inside = np.concatenate([np.flatnonzero(self.state == 1), np.zeros(statement.p + 1, dtype=np.int64)])
        self.n_inside, self.conflicts = int((self.state == 1).sum()), 0
        self.n_free = int((self.state < 0).sum())
        self.ends, self._before = (statement.low, statement.high), list[tuple[Array, Array]]()

    def step(self, j: int, code: int) -> None:
        """Go one step of a `Tree`."""
        if j == RELEASE:
            self.ends = self._before.pop()
            return
        if j >= self.state.size:
            self._before.append(self.ends)
            low, high = self.ends[0].copy(), self.ends[1].copy()
            k, side, end = j - self.state.size, code % 2, float(code // 2)
            if side:
                low[k] = max(low[k], end)
            else:
                high[k] = min(high[k], end)
            self.ends = low, high
            return
        change, value = -1 if code < 0 else 1, code % 2
        if self.forced[j] >= 0:
            self.conflicts += change * (self.forced[j] != value)
            return
        self.state[j] = value if change > 0 else -1
        self.inside[self.n_inside] = j
        self.n_inside += change * value
        self.n_free -= change

    @property
    def is_empty(self) -> bool:
        """Whether forced atoms, the cardinality row or the ends of an extra variable rule out every selection."""
        return bool(self.conflicts) or self.n_inside > self.M or bool(np.any(self.ends[0] > self.ends[1]))

    @property
    def only(self) -> frozenset[int] | None:
        """The one selection that is left, None where there may be more."""
        if self.n_free and self.n_inside < self.M:
            return None
        return frozenset(self.inside[: self.n_inside].tolist())

    def terms(self, cost: Array, order: Integers) -> Array:
        """Terms of min over the selections left, Σσ ≤ M, of cost'σ; `order` sorts the negative costs."""
        free = order[self.state[order] < 0][: self.M - self.n_inside]
        return np.concatenate([cost[self.inside[: self.n_inside]], cost[free]])


def least_bound(
    statement: Statement,
    duals: Duals,
    tree: Tree,
    arrays: Arrays,
    visit: Visitor | None = None,
    told: Callable[[int, int], object] | None = None,
) -> tuple[float, int]:
    """The least bound of all leaves (unit margin), and its leaf; inf when no leaf holds a selection.

    `told` hears how many of how many dual vectors are done.
    """
    least, where = math.inf, -1
    refuted = range(REFUTED, REFUTED + 1), [0.0], np.zeros((1, statement.p))  # a Farkas ray bounds no cost at all
    for ids, g, cost in itertools.chain([refuted], duals.blocks()):
        fixed = Fixings(statement)
        sorted_once: dict[tuple[int, int, bytes], tuple[list[float], Array, Integers]] = {}
        for j, value in tree.steps:
            if j != LEAF:
                fixed.step(j, value)
                continue
            dual, multiplier = tree.dual[value], tree.multiplier[value]
            if dual not in ids or fixed.is_empty:
                continue
            key = dual, multiplier, fixed.ends[0].tobytes() + fixed.ends[1].tobytes()
            if key not in sorted_once:
                if len(sorted_once) * statement.p > BLOCK:
                    sorted_once.clear()
                constants, row, y = list[float](), cost[dual - ids.start], arrays["multipliers"]
                if multiplier >= 0:
                    constants, row = statement.reduced(row, y[multiplier].tolist(), fixed.ends)
                row = np.where(np.isnan(row), -np.inf, row)  # of forged multipliers, of columns beyond floating point
                negative = np.flatnonzero(row < 0)
                sorted_once[key] = constants, row, negative[np.argsort(row[negative], kind="stable")]
            constants, reduced, order = sorted_once[key]
            bound = down(math.fsum([g[dual - ids.start], *constants, *fixed.terms(reduced, order).tolist()]))
            require(dual != REFUTED or bound > 0.0, f"nothing shows that leaf {value} holds no selection, as it says")
            if dual == REFUTED:
                continue
            if visit is not None:
                visit(fixed, bound)
            if bound < least:
                least, where = bound, value
        if told is not None and ids.start >= 0:
            told(ids.stop, duals.count)
    return least, where
