"""The proof that no card of at most M features is better: docs/certificate.md, *Features and points together*.

    leaf = g(α) − ½ (the R largest sums over an open candidate of (q_j/s_j)²) + min over a ≥ 0, l a ≤ w ≤ u a of
           Σ ½ (s_j w_j)² − q_j w_j,     which is at least −½ Σ ((q_j − π_j)/s_j)² where Σ max(l_j π_j, u_j π_j) ≤ 0

or 0 where that is below 0. With rows over the columns of a table that was cut the open candidates are those that they
allow together (`CheckedRows`).
q is summed in doubles with a bound on its rounding. The best π is looked for in doubles too; that it is one, and what
it proves, is computed in rational numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from mipfs.check.dual_vectors import Duals
from mipfs.check.points import PREFIX, CardLine, due_lines, ends_of
from mipfs.check.rounding import NEAR, TINY, Array, Arrays, Document, Integers, States, U, require
from mipfs.check.statement import Statement
from mipfs.data.instance import Instance

VECTORS = {f"dual_{name}" for name in ("q", "start", "bytes", "level", "width", "top")}
TREE = {"split", "value", "children", "leaf"}
NAMES = frozenset(f"{PREFIX}{name}" for name in VECTORS | TREE)
"""The arrays of the proof."""
LEAF, DOUBLED = -1, -2
OPEN, OUT, IN = -1, 0, 1
HALVINGS = 80
"""Of the scale a where π is looked for: more digits than doubles have are not to be had."""
LARGEST_VALUE = 1 << 20
"""Of a split on a column: points are at most 1000."""


def split_arrays(arrays: Arrays) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arrays of the result inside, and those of the card's own proof by their names without the prefix."""
    own = {name.removeprefix(PREFIX): held for name, held in arrays.items() if name in NAMES}
    return {name: held for name, held in arrays.items() if name not in NAMES}, own


@dataclass(frozen=True, eq=False)
class CheckedCandidates:
    """The candidates on the data.

    Attributes
    ----------
    lines : list of k CardLine, without points
    owner : (k,) the candidate of each, 0 … F − 1
    count : int, F
    low, high : (k,) ends of the points
    squares : list of k Fraction, s²
    M, most : int
    within : CheckedRows or None
    """

    lines: list[CardLine]
    owner: Integers
    count: int
    low: Integers
    high: Integers
    squares: list[Fraction]
    M: int
    most: int
    within: CheckedRows | None

    def closed(self, state: States) -> States:
        """States where those that are open and may not come in any more are out."""
        if np.count_nonzero(state == IN) >= self.M:
            return np.where(state == OPEN, OUT, state)
        return state if self.within is None else self.within.closed(state)

    def holds(self, state: States) -> bool:
        """Whether cards are left, by what is in."""
        is_few = np.count_nonzero(state == IN) <= self.M
        return bool(is_few and (self.within is None or self.within.holds(state)))

    def largest(self, cost: Array, state: States) -> Fraction:
        """The largest sum of costs that open candidates have together, by the number of them and by the rows."""
        rest = self.M - int(np.count_nonzero(state == IN))
        found = _top(cost[state == OPEN].tolist(), rest)
        return found if self.within is None else min(found, self.within.largest(cost, state))


@dataclass(frozen=True, eq=False)
class CheckedRows:
    """At most `columns` of the parts, and at most `each` of the thresholds of a part; parts by places of candidates."""

    columns: int
    each: int
    parts: list[tuple[Integers, Integers]]
    alone: Integers

    @classmethod
    def of(cls, said: Any, names: list[str]) -> CheckedRows:
        """Those that the card states."""
        fields = isinstance(said, Mapping) and said.keys() == {"columns", "each", "parts"}
        require(fields, "'within' of the card has other fields than columns, each and parts")
        for name in ("columns", "each"):
            one = said[name]
            require(one is None or (type(one) is int and one >= 1), f"{name} of 'within' is {one!r}, no whole number")
        given = said["parts"]
        pairs = isinstance(given, list) and all(
            isinstance(part, list) and len(part) == 2 and all(isinstance(half, list) for half in part) for part in given
        )
        require(pairs, "parts of 'within' are no pairs of lists")
        every = [name for part in given for half in part for name in half]
        known = all(isinstance(name, str) for name in every) and len({*every}) == len(every) and {*every} <= {*names}
        require(known, "'within' names no candidate, or one twice")
        place = {name: f for f, name in enumerate(names)}
        steps, others = (
            [np.array([place[name] for name in part[side]], dtype=np.int64) for part in given] for side in (0, 1)
        )
        alone = np.array([f for f, name in enumerate(names) if name not in {*every}], dtype=np.int64)
        columns = len(given) if said["columns"] is None else said["columns"]
        each = len(names) if said["each"] is None else said["each"]
        return cls(columns, each, list(zip(steps, others, strict=True)), alone)

    def _used(self, state: States) -> list[bool]:
        return [bool(np.any(state[np.concatenate(part)] == IN)) for part in self.parts]

    def holds(self, state: States) -> bool:
        """Whether what is in keeps the rows."""
        few = all(np.count_nonzero(state[steps] == IN) <= self.each for steps, _ in self.parts)
        return few and sum(self._used(state)) <= self.columns

    def closed(self, state: States) -> States:
        """States where those that are open and may not come in any more are out."""
        found, used = state.copy(), self._used(state)
        for (steps, others), is_used in zip(self.parts, used, strict=True):
            if not is_used and sum(used) >= self.columns:
                found[np.concatenate([steps, others])] = OUT
            elif np.count_nonzero(state[steps] == IN) >= self.each:
                found[steps[state[steps] == OPEN]] = OUT
        return found

    def largest(self, cost: Array, state: States) -> Fraction:
        """The largest sum of costs of open candidates that may come in together."""
        total, others = _top(cost[self.alone[state[self.alone] == OPEN]].tolist(), self.alone.size), []
        for (steps, more), is_used in zip(self.parts, self._used(state), strict=True):
            left = self.each - int(np.count_nonzero(state[steps] == IN))
            value = _top(cost[steps[state[steps] == OPEN]].tolist(), left)
            value += _top(cost[more[state[more] == OPEN]].tolist(), more.size)
            if is_used:
                total += value
            else:
                others.append(value)
        return total + _top(others, self.columns - len(self.parts) + len(others))


def _top(costs: list[Any], most: int) -> Fraction:
    """The sum of the largest ones."""
    return sum(map(Fraction, sorted(costs, reverse=True)[: max(most, 0)]), Fraction(0))


def check_joint(document: Document, arrays: Mapping[str, Any], data: Instance, statement: Statement) -> int:
    """Check the proof of a card whose bound is about all cards of at most M features; returns M."""
    require({*arrays} == VECTORS | TREE, "the card has no proof of its features and points beside it, or a part of one")
    require(statement.data.exponent == 0, "features and points together are not of data that are far from 1")
    among = _read_candidates(document, data)
    _check_card(document, among, data)
    duals = Duals(statement, arrays)
    vectors = _Vectors(among, duals, data)
    least = math.inf
    claimed = Fraction(document["bound"])
    enough = claimed - abs(claimed) * Fraction(NEAR)
    for node, d, state, low, high in _iterate_leaves(arrays, among):
        found = max(Fraction(0), vectors.bound(d, state, low, high))  # no card has an objective below 0
        require(
            found >= enough,
            f"leaf {node} of the card's proof proves {float(found)!r}, and {float(claimed)!r} is claimed",
        )
        least = min(least, float(found))
    duals.check_rest()
    return among.M


def _read_candidates(document: Document, data: Instance) -> CheckedCandidates:
    """Which features and columns a card may have."""
    said = document["joint"]
    fields = isinstance(said, Mapping) and said.keys() - {"within"} == {"M", "out"}
    require(fields, "'joint' has other fields than M, out and within")
    M, out, most = said["M"], said["out"], document["most_points"]
    require(type(M) is int and M >= 1, f"M of the card is {M!r}, no whole number of 1 or more")
    require(
        isinstance(out, list) and all(isinstance(name, str) for name in out), "'out' of the card is no list of names"
    )
    require(
        len({*out}) == len(out) and {*out} <= {*data.feature_names}, "'out' of the card names no feature, or one twice"
    )
    names = [name for name in data.feature_names if name not in {*out}]
    parts = [due_lines(name, document["bins"], data) for name in names]
    lines = [line for part in parts for line, _ in part]
    ends = [ends_of(line.feature, document) for line in lines]
    return CheckedCandidates(
        lines=lines,
        owner=np.repeat(np.arange(len(names)), [len(part) for part in parts]),
        count=len(names),
        low=np.array([low for low, _ in ends], dtype=np.int64),
        high=np.array([high for _, high in ends], dtype=np.int64),
        squares=[square for part in parts for _, square in part],
        M=min(M, len(names)),
        most=most,
        within=CheckedRows.of(said["within"], names) if "within" in said else None,
    )


def _check_card(document: Document, among: CheckedCandidates, data: Instance) -> None:
    """The card itself is one of those that the bound is about."""
    used = {one["feature"] for one in document["card"] if one["points"]}
    require(len(used) <= document["joint"]["M"], f"the card gives points to {len(used)} features, more than M")
    left = used & {*document["joint"]["out"]}
    require(not left, f"the card gives points to {sorted(left)[:1]}, which 'out' leaves out")
    names = [name for name in data.feature_names if name not in {*document["joint"]["out"]}]
    state = np.array([IN if name in used else OUT for name in names], dtype=np.int8)
    require(among.within is None or among.within.holds(state), "the card does not keep the rows of 'within'")


class _Vectors:
    """What dual vectors prove of nodes."""

    def __init__(self, among: CheckedCandidates, duals: Duals, data: Instance) -> None:
        self.among, self.duals = among, duals
        counts = np.column_stack([line.counts() for line in among.lines])
        moved = np.array([line.moved for line in among.lines])
        self.columns = counts - moved
        # Entries are off by some units of round-off of these, and sums of n products by n more.
        self.sizes = (np.abs(counts) + np.abs(moved)) * (1.01 * (data.n_samples + 32) * U)
        self.above = np.array([1.0 / float(square) for square in among.squares]) * (1.0 + 8 * U)
        self.starts = np.searchsorted(among.owner, np.arange(among.count))
        self._known: dict[int, tuple[float, Array, Array, Array]] = {}

    def _value_of_dual(self, d: int) -> tuple[float, Array, Array, Array]:
        """g, q (k,), how far that is off (k,), and ½ Σ (q/s)² of every candidate (F,), not too small."""
        if d not in self._known:
            require(0 <= d < self.duals.count, f"dual vector {d} of the card's proof is not there")
            (g,), v, _ = self.duals.feasible(np.array([d]))
            v = v[0]
            q, off = v @ self.columns, np.abs(v) @ self.sizes + v.size * TINY * 4
            up = np.where(self.among.high > 0, q + off, 0.0)
            most = np.maximum(np.maximum(up, np.where(self.among.low < 0, off - q, 0.0)), 0.0)
            terms = np.add.reduceat(most * most * self.above, self.starts)
            cost = 0.5 * terms * (1.0 + 4.0 * (self.among.owner.size + 8) * U)
            require(
                math.isfinite(g) and np.all(np.isfinite(cost)), "a dual vector of the card is beyond floating point"
            )
            self._known[d] = g, q, off, cost
        return self._known[d]

    def bound(self, d: int, state: States, low: Integers, high: Integers) -> Fraction:
        """The bound of a leaf, or less."""
        among = self.among
        g, q, off, cost = self._value_of_dual(d)
        found = Fraction(g) - among.largest(cost, state)
        inside = state[among.owner] == IN
        is_whole = inside & (low == among.low) & (high == among.high)
        whole = [f for f in np.flatnonzero(state == IN) if np.all(is_whole[among.owner == f])]
        ids = np.flatnonzero(inside)
        if len(whole) == np.count_nonzero(state == IN):  # then no box binds but by its signs
            return found - sum(map(Fraction, cost[whole].tolist()), Fraction(0))
        return found - self._conic_minimum(
            q[ids], off[ids], [among.squares[j] for j in ids.tolist()], low[ids], high[ids]
        )

    @staticmethod
    def _conic_minimum(q: Array, off: Array, squares: list[Fraction], low: Integers, high: Integers) -> Fraction:
        """½ Σ ((|q − π| + off)/s)² for a π that proves it."""
        pi = _best_dual_direction(q, np.array([float(one) for one in squares]), low, high)
        exact = [Fraction(one) for one in pi.tolist()]
        ends = [(int(a), int(b)) for a, b in zip(low, high, strict=True)]
        if all(a <= 0 <= b for a, b in ends):
            exact = [_clip_sign(one, *end) for one, end in zip(exact, ends, strict=True)]
        else:
            most = sum((max(a * one, b * one) for one, (a, b) in zip(exact, ends, strict=True)), Fraction(0))
            j = max(range(len(ends)), key=lambda j: max(ends[j][0], -ends[j][1]))
            exact[j] -= max(most, Fraction(0)) / (ends[j][0] if ends[j][0] > 0 else ends[j][1])
        most = sum((max(a * one, b * one) for one, (a, b) in zip(exact, ends, strict=True)), Fraction(0))
        assert most <= 0
        terms = zip(q.tolist(), off.tolist(), exact, squares, strict=True)
        return sum(((abs(Fraction(at) - one) + Fraction(room)) ** 2 / s for at, room, one, s in terms), Fraction(0)) / 2


def _clip_sign(pi: Fraction, low: int, high: int) -> Fraction:
    """The nearest π_j with max(l π, u π) ≤ 0 where l ≤ 0 ≤ u."""
    if low < 0 < high:
        return Fraction(0)
    return min(pi, Fraction(0)) if high > 0 else max(pi, Fraction(0)) if low < 0 else pi


def _best_dual_direction(q: Array, squares: Array, low: Integers, high: Integers) -> Array:
    """About the best π (k,): q less s² w at the minimum, where the scale a is found by halving."""
    nearest = q / squares
    if np.all((low <= 0) & (high >= 0)):
        return q - squares * np.clip(nearest, np.where(low < 0, -np.inf, 0.0), np.where(high > 0, np.inf, 0.0))
    first, last = 0.0, 1.0 + float(np.abs(nearest).max())
    for _ in range(HALVINGS):
        a = 0.5 * (first + last)
        pi = q - squares * np.clip(nearest, low * a, high * a)
        # The slope of the minimum in a.
        if np.maximum(low * pi, high * pi).sum() < 0.0:
            last = a
        else:
            first = a
    return np.asarray(q - squares * np.clip(nearest, low * last, high * last))


def _iterate_leaves(
    arrays: Mapping[str, Any], among: CheckedCandidates
) -> Iterator[tuple[int, int, States, Integers, Integers]]:
    """The leaves that hold cards: node, dual vector, states (F,) and boxes (k,), after their tree was looked at."""
    split, value, children, leaf = (np.asarray(arrays[name]) for name in ("split", "value", "children", "leaf"))
    N = split.size
    shapes = N >= 1 and split.shape == value.shape == leaf.shape == (N,) and children.shape == (N, 2)
    kinds = all(held.dtype.kind == "i" for held in (split, value, children, leaf))
    require(shapes and kinds, "the tree of the card's proof is malformed")
    require(
        np.all((split >= DOUBLED) & (split < among.count + among.owner.size)),
        "a split of the card's proof is on nothing",
    )
    require(
        np.all(np.abs(value.astype(np.int64)) <= LARGEST_VALUE), "a value in the card's proof is no number of points"
    )
    below = children[split >= 0].ravel()
    once = np.array_equal(np.sort(below), np.arange(1, N)) and np.all(children[split < 0] == -1)
    require(once, "the nodes of the card's proof are not each the child of one")
    root = np.full(among.count, OPEN, dtype=np.int8)
    stack = [(0, root, among.low, among.high)]
    seen = 0
    while stack:
        node, state, low, high = stack.pop()
        seen += 1
        s = int(split[node])
        is_left = among.holds(state) and bool(np.all(low <= high))
        if s >= among.count:
            j, at = s - among.count, int(value[node])
            require(state[among.owner[j]] == IN, "the card's proof splits on points of a candidate that is not in")
            for side, child in enumerate(children[node].tolist()):
                ends = low.copy(), high.copy()
                ends[1 - side][j] = max(int(low[j]), at + 1) if side else min(int(high[j]), at)
                stack.append((child, state, *ends))
        elif s >= 0:
            require(state[s] == OPEN, "the card's proof splits on a candidate twice")
            for side, child in zip((OUT, IN), children[node].tolist(), strict=True):
                other = state.copy()
                other[s] = side
                stack.append((child, other, low, high))
        elif s == DOUBLED:
            require(not is_left or _may_be_doubled(among, state, low, high), f"leaf {node} may not be doubled")
        elif is_left:
            require(leaf[node] >= 0, f"leaf {node} of the card's proof has no dual vector, and holds cards")
            yield node, int(leaf[node]), among.closed(state), low, high
    require(seen == N, "the nodes of the card's proof are not one tree")


def _may_be_doubled(among: CheckedCandidates, state: States, low: Integers, high: Integers) -> bool:
    inside = int(np.count_nonzero(state == IN))
    own = state[among.owner] == IN
    half = among.most // 2
    is_whole = not np.any(among.closed(state) == OPEN)
    return bool(inside and is_whole and np.all(low[own] >= -half) and np.all(high[own] <= half))
