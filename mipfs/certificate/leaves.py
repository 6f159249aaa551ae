"""The tree of fixings, and the least bound of its leaves: together they cover {0, 1}^p ∩ S."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np

from mipfs.certificate.dual_vectors import BLOCK, Duals
from mipfs.certificate.rounding import Array, Arrays, Integers, down, require
from mipfs.certificate.statement import Statement

REFUTED = -2

Visitor = Callable[["Fixings", float], None]
"""Sees what every leaf that may hold a selection has fixed, and its bound."""


class Tree:
    """The tree of fixings: every node reached once, two children on an atom that is not fixed above."""

    def __init__(self, arrays: Arrays, p: int) -> None:
        require(int(arrays["version"][0]) == 1, "a certificate of another version; this checks version 1")
        for name, array in arrays.items():
            kinds = {"multipliers": "fS", "dual_top": "f"}.get(name, "iu")
            require(array.dtype.kind in kinds, f"{name!r} holds values of type {array.dtype}")
        feature, children = arrays["feature"].tolist(), arrays["children"].tolist()
        self.dual, self.multiplier = arrays["dual"].tolist(), arrays["multiplier"].tolist()
        require({*map(len, (children, self.dual, self.multiplier))} == {len(feature)}, "a node is incomplete")
        n_duals, n_multipliers = len(arrays["dual_q"]), len(arrays["multipliers"])
        self.steps: list[tuple[int, int]] = []  # (feature, value) fixes, (feature, value - 2) undoes, (-1, node): leaf
        reached, on_path, stack = [False] * len(feature), [False] * p, [(-1, 0, 0)]
        hole = "the leaves do not cover all selections: node"
        while stack:
            j, value, node = stack.pop()
            if value < 0:
                on_path[j] = False
                self.steps.append((j, value))
                continue
            require(0 <= node < len(feature) and not reached[node], f"{hole} {node} is absent or reached twice")
            reached[node] = True
            if j >= 0:
                require(j < p and not on_path[j], f"a split on feature {j}, which does not exist or is fixed above")
                on_path[j] = True
                self.steps.append((j, value))
                stack.append((j, value - 2, -1))
            if feature[node] >= 0:
                stack += [(feature[node], 1, children[node][1]), (feature[node], 0, children[node][0])]
                continue
            require(self.dual[node] == REFUTED or 0 <= self.dual[node] < n_duals, f"{hole} {node} has no dual vector")
            require(-1 <= self.multiplier[node] < n_multipliers, f"leaf {node} has multipliers that do not exist")
            self.steps.append((-1, node))
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

    def step(self, j: int, code: int) -> None:
        """Fix atom j to 0 or 1, or undo that: -2 or -1."""
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
        """Whether forced atoms or the cardinality row alone rule out every selection."""
        return bool(self.conflicts) or self.n_inside > self.M

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
    statement: Statement, duals: Duals, tree: Tree, arrays: Arrays, visit: Visitor | None = None
) -> tuple[float, int]:
    """The least bound of all leaves (unit margin), and its leaf; inf when no leaf holds a selection."""
    least, where = math.inf, -1
    refuted = range(REFUTED, REFUTED + 1), [0.0], np.zeros((1, statement.p))  # a Farkas ray bounds no cost at all
    for ids, g, cost in itertools.chain([refuted], duals.blocks()):
        fixed = Fixings(statement)
        sorted_once: dict[tuple[int, int], tuple[list[float], Array, Integers]] = {}
        for j, value in tree.steps:
            if j >= 0:
                fixed.step(j, value)
                continue
            key = dual, multiplier = tree.dual[value], tree.multiplier[value]
            if dual not in ids or fixed.is_empty:
                continue
            if key not in sorted_once:
                if len(sorted_once) * statement.p > BLOCK:
                    sorted_once.clear()
                row, y = cost[dual - ids.start], arrays["multipliers"]
                constants, row = statement.reduced(row, y[multiplier].tolist()) if multiplier >= 0 else ([], row)
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
    return least, where
