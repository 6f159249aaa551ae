"""Units of an enumeration: a node with one free place, or some columns of a node with two, and all their completions.

A node with two free places, of selection S, is split on one column after the other. The SVM on S gives a dual vector α,
whose gains γ = ½ s(α) − c order the columns, the largest first, and bound what is left behind the first t of them:

    g(α) − Σ over S of γ_i − γ_t − γ_{t+1}

It rises with t, and where it reaches the target the rest is closed. A unit has the columns from `begin` to `end` in
this order. Each is put in, which leaves one place, and its completions by later columns are ruled out (`complete`).
Whoever has another part of the same node comes to the same α and the same order; the pieces are put one behind the
other.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mipfs.compiled import compiled
from mipfs.kernels.completions import (
    ABOVE,
    DONE,
    RuledOut,
    advance_to_end,
    complete,
    evaluate_rounded_dual,
    keep,
    place_of,
    write_rows,
)
from mipfs.kernels.earned import earned, gains, scores_above, value_below
from mipfs.kernels.order import sort_up
from mipfs.kernels.propagation import FREE, INSIDE, OUTSIDE
from mipfs.kernels.subtree import GIVEN_BACK, LEAF, OPEN, REST, open_place, propagate_at_place
from mipfs.kernels.units import pack_node, unpack_node
from mipfs.kernels.vectors import copy_to

NOTHING, OPEN_NODES = 1, 2
"""How a unit gives up before it has begun: it finds nothing, or splits its node and leaves open nodes, as those of
the same node that come behind need it."""


class EnumerationRequest(NamedTuple):
    """A part of an enumeration.

    M : the most columns that may be selected
    begin, end : which columns of a node with two free places, by their order
    target : what is to be proven
    leaves : completions of a node with one free place that may be looked at one by one
    """

    M: int
    begin: int
    end: int
    target: float
    leaves: int


class UnitPieces(NamedTuple):
    """What a unit leaves: a piece of the proof for every node, with the nodes that are open still.

    places : PLACE;  totals : (1,) TOTALS, whose `nodes` counts `heads`, and whose `places` is 0 where nothing was to do
    heads : OPEN_NODE;  words : of these nodes;  used : (1,) how many of the words
    atoms, behind, states, now, child : (k,) scratch;  weights : (k,) float32 zeros
    """

    places: npt.NDArray[Any]
    totals: npt.NDArray[Any]
    heads: npt.NDArray[Any]
    words: npt.NDArray[Any]
    used: npt.NDArray[Any]
    atoms: npt.NDArray[Any]
    behind: npt.NDArray[Any]
    states: npt.NDArray[Any]
    now: npt.NDArray[Any]
    child: npt.NDArray[Any]
    weights: npt.NDArray[Any]


class CandidateOrder(NamedTuple):
    """The columns of a node with two free places, by the dual vector of the SVM on what is inside.

    g : its value;  held : gains of what is inside;  ids, gains : (m,) the free columns, and theirs, falling
    dual : its number among those that are kept, −1 where it is not
    """

    g: float
    held: npt.NDArray[Any]
    ids: npt.NDArray[Any]
    gains: npt.NDArray[Any]
    dual: npt.NDArray[Any]


@compiled(nogil=True)
def _of_state(states, state):  # type: ignore[no-untyped-def]
    """The columns of a state."""
    found = np.empty(states.size, np.int64)
    count = 0
    for j in range(states.size):
        if states[j] == state:
            found[count] = j
            count += 1
    return found[:count].copy()


@compiled(nogil=True)
def _give_back(left, states, node):  # type: ignore[no-untyped-def]
    """Leave an open node; node : its place, why, bound, dual vector and age."""
    place, why, bound, dual, age = node
    total = left.totals[0]
    head = left.heads[total.nodes]
    total.nodes += 1
    head.bound = bound
    head.intercept = 0.0
    head.rho = 0.5
    head.place = place
    head.dual = dual
    head.prices = dual
    head.order = 0
    head.start = left.used[0]
    head.age = age
    head.why = why
    head.atom = 0
    head.share = 0.0
    left.used[0] = pack_node(states, left.weights, left.words, head)


@compiled(nogil=True)
def _close(left, place, dual, target):  # type: ignore[no-untyped-def]
    """Close a place with a dual vector."""
    left.places[place].dual = dual
    left.totals[0].floor = min(left.totals[0].floor, target)


@compiled(nogil=True)
def _screen_place(left, place, dual, target):  # type: ignore[no-untyped-def]
    """Screen a place by a dual vector; returns the one below it."""
    here = left.places[place]
    here.feature = left.weights.size
    here.dual = dual
    here.outside = open_place(left)
    left.totals[0].floor = min(left.totals[0].floor, target)
    return here.outside


@compiled(nogil=True)
def _split_place(left, place, j, bound, dual):  # type: ignore[no-untyped-def]
    """Split a place, whose bound a dual vector earned, on a column; returns both places below, the column out first."""
    here = left.places[place]
    here.feature = j
    here.dual = dual
    here.value = bound
    here.outside, here.inside = open_place(left), open_place(left)
    return here.outside, here.inside


@compiled(nogil=True)
def _finish_last_place(given, asked, left, ruled, node, stop):  # type: ignore[no-untyped-def]
    """Rule out all completions of ``left.child``, a selection with one free place; node as of `_give_back`."""
    place, _, bound, dual, age = node
    states = left.child
    inside = _of_state(states, INSIDE)
    free = _of_state(states, FREE)
    if free.size == 0 or inside.size >= asked.M:
        _give_back(left, states, (place, LEAF, bound, dual, age))
        return
    total = left.totals[0]
    of = ruled.totals[0]
    copy_to(free, ruled.left)
    of.left = free.size
    of.solved = 0
    of.steps = 0
    complete(given, inside, asked.target, ruled, stop)
    total.solved += 1
    total.steps += of.steps
    total.svms += of.solved
    for t in range(of.used):
        place = _screen_place(left, place, ruled.used[t] + 1, asked.target)
    for j in free:
        states[j] = OUTSIDE
    for t in range(of.above):
        j = ruled.above[t]
        place, alone = _split_place(left, place, j, bound, dual)
        states[j] = INSIDE
        _give_back(left, states, (alone, LEAF, bound, dual, 0))
        states[j] = OUTSIDE
    if of.why == DONE and of.empty >= 0:
        _close(left, place, of.empty + 1, asked.target)
        return
    for t in range(of.left):
        states[ruled.left[t]] = FREE
    age += of.above
    is_many = of.why == ABOVE and age >= asked.leaves
    why = LEAF if of.why == DONE else (GIVEN_BACK if is_many else OPEN)
    _give_back(left, states, (place, why, bound, dual, age))


@compiled(nogil=True)
def _order_columns(given, inside, free, ruled):  # type: ignore[no-untyped-def]
    """Solve the SVM on what is inside, and order the free columns; its dual vector is the next to be kept."""
    _, columns, samples, grid, steering = given
    at = place_of(samples, inside.size, max(free.size, inside.size))
    write_rows(columns, inside, samples, grid.size, at)
    at.state[0] = steering.rho
    advance_to_end(given, at)
    ruled.totals[0].steps = np.int64(at.state[2])
    evaluate_rounded_dual(given, inside, at, grid.bits)
    g = value_below(at.dual, grid.c, samples.loss)
    held = np.empty(inside.size)
    for t in range(inside.size):
        held[t] = gains(at.s[t], columns.penalty[inside[t]])
    scores_above(columns.X, columns.center, columns.norms, free, at.v, at.s)
    keys = np.empty(free.size)
    for t in range(free.size):
        keys[t] = -gains(at.s[t], columns.penalty[free[t]])
    sort_up(keys, free)
    return CandidateOrder(g, held, free, -keys, np.full(1, -1)), at


@compiled(nogil=True)
def _bound_behind(order, t, target):  # type: ignore[no-untyped-def]
    """The bound of what is left behind the first t columns, and which of these columns cannot be in: from where on."""
    bound, _, outside = earned(order.g, order.held, order.gains[t:], 2, target)
    return bound, t + outside


@compiled(nogil=True)
def _keep_dual(given, order, at, ruled):  # type: ignore[no-untyped-def]
    """The number of the order's dual vector, which is kept when it is first asked for."""
    if order.dual[0] < 0:
        order.dual[0] = keep(given.grid, at, ruled) + 1
    return order.dual[0]


@compiled(nogil=True)
def _enumerate_part(given, sides, asked, left, ruled, of, stop):  # type: ignore[no-untyped-def]
    """Put the columns of a part in one after the other, and leave what is behind them to the next part."""
    total = left.totals[0]
    now = left.now
    inside = _of_state(left.states, INSIDE)
    order, at = _order_columns(given, inside, _of_state(left.states, FREE), ruled)
    whole, last = _bound_behind(order, 0, asked.target)
    here, _ = _bound_behind(order, asked.begin, asked.target)
    if asked.begin > 0 and (asked.begin >= last or whole >= asked.target or here >= asked.target):
        # The part before has closed what there is.
        return
    place = open_place(left)
    total.steps += ruled.totals[0].steps
    copy_to(left.states, now)
    if last < order.ids.size and whole < asked.target:
        if asked.begin == 0:
            place = _screen_place(left, place, _keep_dual(given, order, at, ruled), asked.target)
        for t in range(last, order.ids.size):
            now[order.ids[t]] = OUTSIDE
    for t in range(asked.begin):
        now[order.ids[t]] = OUTSIDE
    bound = of.bound
    dual = 0
    t = asked.begin
    while t <= min(asked.end, last):
        rest = _bound_behind(order, t, asked.target)[0]
        if rest > bound and (t == asked.begin or rest >= asked.target or t == asked.end):
            bound, dual = rest, _keep_dual(given, order, at, ruled)
        if rest >= asked.target:
            _close(left, place, dual, asked.target)
            return
        if t == min(asked.end, last):
            break
        j = order.ids[t]
        place, below = _split_place(left, place, j, bound, dual)
        copy_to(now, left.child)
        left.child[j] = INSIDE
        now[j] = OUTSIDE
        t += 1
        below = propagate_at_place(sides, asked.M, left, left.child, below, left)
        if below < 0:
            continue
        node = below, OPEN, bound, dual, 0
        if stop[0] != 0 or not _has_room(sides, left, ruled):
            _give_back(left, left.child, node)
        else:
            _finish_last_place(given, asked, left, ruled, node, stop)
    is_empty = _of_state(now, FREE).size == 0
    _give_back(left, now, (place, LEAF if is_empty else REST, bound, dual, of.age + 1))


@compiled(nogil=True)
def _has_room(sides, left, ruled):  # type: ignore[no-untyped-def]
    """Whether the completions of one more selection fit: their dual vectors and places, and what the rows fix."""
    k = left.weights.size
    total = left.totals[0]
    of = ruled.totals[0]
    chains = 0 if sides.indptr.size == 1 else 2 * k
    fits = total.places + ruled.used.size + 2 * ruled.above.size + chains + 4 <= left.places.size
    return fits and of.duals + 2 < ruled.duals.size


@compiled(nogil=True)
def _own_room(left, ruled, at, of):  # type: ignore[no-untyped-def]
    """What is left of the room for the piece of node `of`; at : places, nodes, dual vectors and bytes so far."""
    places, nodes, duals, n_bytes = at
    total = left.totals[of : of + 1]
    counts = ruled.totals[0]
    counts.duals = 0
    counts.bytes = 0
    total[0].floor = np.inf
    mine = UnitPieces(
        left.places[places:], total, left.heads[nodes:], left.words, left.used, left.atoms, left.behind, left.states,
        left.now, left.child, left.weights,
    )  # fmt: skip
    vectors = RuledOut(ruled.left, ruled.used, ruled.above, ruled.packed[n_bytes:], ruled.duals[duals:], ruled.totals)
    return mine, vectors


@compiled(nogil=True)
def enumerate_nodes(given, sides, nodes, asked, left, ruled, stop):  # type: ignore[no-untyped-def]
    """Enumerate nodes with one free place, or a part of one with two; whether they are nodes over these columns.

    Parameters
    ----------
    given : CompletionProblem
    sides : RowSides, the user's rows
    nodes : OpenNodes
    asked : EnumerationRequest
    left : UnitPieces, empty
    ruled : RuledOut, with no dual vectors, for as many candidates as there are columns
    stop : (1,) int8, set from outside to give up: `NOTHING` is begun any more, or all is left as `OPEN_NODES`
    """
    places = 0
    count = 0
    duals = 0
    n_bytes = 0
    for of in range(nodes.heads.size):
        head = nodes.heads[of]
        if not unpack_node(head, nodes.words, left.states, left.weights):
            return False
        left.weights[:] = 0.0
        mine, vectors = _own_room(left, ruled, (places, count, duals, n_bytes), of)
        if head.inside + 2 == asked.M:
            if stop[0] != NOTHING:
                _enumerate_part(given, sides, asked, mine, vectors, head, stop)
        else:
            copy_to(left.states, left.child)
            node = open_place(mine), OPEN, head.bound, 0, np.int64(head.age)
            if stop[0] != 0 or not _has_room(sides, mine, vectors):
                _give_back(mine, left.child, node)
            else:
                _finish_last_place(given, asked, mine, vectors, node, stop)
        total = left.totals[of]
        total.duals = ruled.totals[0].duals + 1
        total.bytes = ruled.totals[0].bytes
        places += total.places
        count += total.nodes
        duals += total.duals - 1
        n_bytes += total.bytes
    return True
