"""Parts of the tree of `branch`, explored in compiled code: nodes are relaxed, pruned, screened and split.

From an open node on, best bound first, until the budget of nodes is spent. What is left open goes back to the caller,
with a warm start and the dual vector that earned its bound; what is done is a piece of the proof, in its own numbering.
A problem without rows is one with no rows: its nodes have no prices, and propagation fixes nothing in them.

What becomes of a node that is relaxed (`fathom`, then `split_node`) does not depend on who relaxed it: Newton's steps
here, ADMM (`mipfs.kernels.batch`), or the interior point, of whose nodes each is a piece of its own (`settle_relaxed`).
"""

from __future__ import annotations

import numpy as np

from mipfs.compiled import compiled
from mipfs.compiled.lent import lend_arrays
from mipfs.kernels.boolean_newton import STALLED
from mipfs.kernels.earned import pack_dual
from mipfs.kernels.node import COMPLETE, RELAX, lay_out_node, place_to_split, solve
from mipfs.kernels.prices import measure_missed
from mipfs.kernels.propagation import FREE, INSIDE, OUTSIDE, propagate_rows
from mipfs.kernels.structures import NO_DUAL, NO_PLACE, NO_TOTALS, ExploredPiece, RelaxedNode
from mipfs.kernels.vectors import copy_to

OPEN, LEAF, STUCK, DEAR, GIVEN_BACK, REST, BARREN, APART = 0, 1, 2, 3, 4, 5, 6, 7
"""Why a node goes back: it waits; one selection is left and not ruled out; its relaxation stalled far from solved, and
another relaxes it; the prices of its rows are others' and seem to lose much; it was enumerated, and holds too much for
that; it is enumerated next, or what a unit of an enumeration leaves to the next one; an LP over its rows is empty; it
is to be enumerated, once it is relaxed."""
REFUTED = -2
"""In place of a dual vector: the rows leave a place no selection."""


@compiled(nogil=True)
def explore(steps, alive, samples, grid, sides, limits, pieces, work):  # type: ignore[no-untyped-def]
    """Explore from several open nodes, one after the other; each is in place 0 of a piece of its own.

    Parameters
    ----------
    steps, alive, samples, grid, sides, limits, pieces, work : as in `mipfs.kernels.structures`
        limits (B,), and the arrays of `pieces` have a leading axis
    """
    alive, samples, grid, sides, pieces, work = lend_arrays((alive, samples, grid, sides, pieces, work))
    for of in range(limits.size):
        copy_to(work.first[of], work.alphas[0])
        explore_below(steps, alive, samples, grid, sides, limits[of], lend_arrays(piece_of(pieces, of)), work)


@compiled(nogil=True, inline="always")
def explore_below(steps, alive, samples, grid, sides, limit, piece, work):  # type: ignore[no-untyped-def]
    """Explore from the open node of one piece: choose, relax, earn, prune, offer, fix, split."""
    total = piece.totals[0]
    now = work.now[0]
    plant_piece(piece)
    while has_room(sides, piece, total) and work.stop[0] == 0:
        chosen = choose(piece, total, limit.level)
        if chosen < 0:
            break
        node = piece.nodes[chosen]
        if node.bound >= limit.cutoff:
            prune(piece, node)
            continue
        lay_out_node(alive, grid, sides, piece, work, chosen)
        solve(steps, alive, samples, grid, sides, limit, piece, work)
        if work.stop[0] != 0 and not now.bound > -np.inf:
            break
        is_split = fathom(alive, grid, sides, limit, piece, work, node_fate(grid, limit, work))
        apart = min(int(limit.apart), now.undecided) if is_split else 0
        places = count_places(alive, piece, work) if apart > 1 else 0
        if places == 3:
            split_apart(apart, steps.branch, alive, sides, limit, piece, work)
        elif places == 2:
            node.why = REST
        elif is_split and not choose_next_solve(alive, sides, piece, work):
            split_node(steps.branch, alive, sides, limit, piece, work)


@compiled(nogil=True, inline="always")
def fathom(alive, grid, sides, limit, piece, work, why):  # type: ignore[no-untyped-def]
    """Prune a node that is relaxed, or offer it, fix what its dual vector and the rows fix; whether it is to be split.

    why : what becomes of it where it is not pruned: STUCK, LEAF, or OPEN, which is split unless it is decided
    """
    now = work.now[0]
    node = piece.nodes[now.node]
    keep_dual(grid, piece, work)
    if node.bound >= limit.cutoff:
        prune(piece, node)
        return False
    offer(grid, piece, work)
    node.why = why
    if why == STUCK:
        return False
    hand_down(grid, piece, work)
    if why == LEAF or (now.fixes > 0 and not fix(alive, sides, limit, piece, work)):
        return False
    return count_places(alive, piece, work) > 0


@compiled(nogil=True)
def settle_relaxed(branch, alive, grid, sides, limits, pieces, work, of):  # type: ignore[no-untyped-def]
    """What becomes of the node that a piece was planted with, once it is relaxed: `work` has its relaxation.

    One that is decided is a leaf: nothing is left to relax.
    """
    alive, grid, sides, pieces, work = lend_arrays((alive, grid, sides, pieces, work))
    piece = lend_arrays(piece_of(pieces, of))
    node = piece.nodes[0]
    if fathom(alive, grid, sides, limits[of], piece, work, OPEN):
        split_node(branch, alive, sides, limits[of], piece, work)
    elif node.place >= 0:
        node.why = LEAF


@compiled(nogil=True)
def plant_all(pieces):  # type: ignore[no-untyped-def]
    """Every piece is its open node alone."""
    pieces = lend_arrays(pieces)
    for i in range(pieces.totals.shape[0]):
        plant_piece(lend_arrays(piece_of(pieces, i)))


@compiled(nogil=True, inline="always")
def piece_of(pieces, of):  # type: ignore[no-untyped-def]
    """The piece at position `of` of pieces whose arrays have a leading axis."""
    return ExploredPiece(
        pieces.nodes[of], pieces.states[of], pieces.weights[of], pieces.places[of], pieces.duals[of],
        pieces.prices[of], pieces.packed[of], pieces.offers[of], pieces.sums[of], pieces.splits[of], pieces.totals[of],
    )  # fmt: skip


@compiled(nogil=True, inline="always")
def plant_piece(piece):  # type: ignore[no-untyped-def]
    """A piece that is its open node alone; one whose prices seem to lose much is for another, who finds them anew."""
    node = piece.nodes[0]
    piece.totals[0] = NO_TOTALS[0]
    node.place = open_place(piece)
    node.why = STUCK if node.why == DEAR else OPEN
    node.next = RELAX
    node.parent = 0
    node.start = 0
    # The dual vector of the first node, which the caller has.
    piece.duals[0] = NO_DUAL[0]
    piece.sums[0] = -1.0


@compiled(nogil=True)
def open_place(piece):  # type: ignore[no-untyped-def]
    """A new place of the proof, of which nothing is shown yet; returns its number."""
    total = piece.totals[0]
    piece.places[total.places] = NO_PLACE[0]
    total.places += 1
    return total.places - 1


@compiled(nogil=True, inline="always")
def has_room(sides, piece, total):  # type: ignore[no-untyped-def]
    """Whether one more node fits: into the budget, and its places into the proof (three, and what the rows fix)."""
    chains = 0 if sides.indptr.size == 1 else 6 * piece.states.shape[1]
    fits = max(total.solved + 1, total.nodes) < piece.nodes.size
    return fits and total.places <= piece.places.size - 3 - chains


@compiled(nogil=True, inline="always")
def choose(piece, total, level):  # type: ignore[no-untyped-def]
    """The node that goes on, or the open one of least bound; −1 where none is left below the exploration's level."""
    chosen = -1
    for t in range(total.nodes):
        node = piece.nodes[t]
        if node.place < 0 or node.why != OPEN:
            continue
        if node.next == COMPLETE:
            return t
        if chosen < 0 or node.bound < piece.nodes[chosen].bound:
            chosen = t
    if chosen >= 0 and piece.nodes[chosen].bound > level and total.solved > 0:
        return -1
    return chosen


@compiled(nogil=True)
def prune(piece, node):  # type: ignore[no-untyped-def]
    """Close a node with the dual vector that earned its bound."""
    total = piece.totals[0]
    piece.places[node.place].dual = node.parent
    node.place = -1
    total.floor = min(total.floor, node.bound)


@compiled(nogil=True, inline="always")
def keep_dual(grid, piece, work):  # type: ignore[no-untyped-def]
    """Count a solved node; keep its dual vector where that lifts its bound or fixes something."""
    now = work.now[0]
    total = piece.totals[0]
    node = piece.nodes[work.now[0].node]
    total.solved += 1
    total.stalled += work.newton[0].why == STALLED
    if node.atom != 0:
        learn(piece, node, now.bound)
    now.fixes = 0
    for t in range(now.forced, now.count):
        now.fixes += work.fixed[t] != FREE
    now.is_better = now.bound > node.bound
    now.dual = total.duals
    if not now.is_better and now.fixes == 0:
        return
    dual = piece.duals[now.dual]
    dual.grid = now.exponent
    dual.end, dual.top, dual.width = pack_dual(
        work.wholes[now.dual], grid.c, now.exponent, grid.weighted, piece.packed, total.bytes
    )
    total.bytes = dual.end
    copy_to(work.y, piece.prices[now.dual])
    total.duals += 1
    node.start = now.dual
    if now.is_better:
        node.bound = now.bound
        node.parent = now.dual


@compiled(nogil=True, inline="always")
def learn(piece, node, bound):  # type: ignore[no-untyped-def]
    """Keep what the split that made a node was worth on its side, once its first bound is earned."""
    total = piece.totals[0]
    one = piece.splits[total.splits]
    one.atom = abs(node.atom) - 1
    one.inside = node.atom > 0
    one.share = node.share
    one.gain = max(0.0, bound - node.bound)
    total.splits += 1
    node.atom = 0


@compiled(nogil=True, inline="always")
def offer(grid, piece, work):  # type: ignore[no-untyped-def]
    """Keep the weights of the first node, and of every integral one below the cutoff, to be rounded to a selection."""
    now = work.now[0]
    total = piece.totals[0]
    is_first = total.solved == 1
    if now.is_leaf or not (is_first or (now.undecided == 0 and now.upper * grid.size < now.edge)):
        return
    at = 0 if is_first else total.offers
    total.offers += not is_first
    piece.offers[at] = 0.0
    root = np.sqrt(grid.size)
    for t in range(now.count):
        size = np.inf if t < now.forced else abs(work.w[t]) * root + work.steering.dust * work.sigma[t]
        piece.offers[at, work.columns[t]] = size
    piece.sums[at] = now.sum


@compiled(nogil=True, inline="always")
def node_fate(grid, limit, work):  # type: ignore[no-untyped-def]
    """What becomes of a node that is not pruned: STUCK, LEAF, or OPEN, which is split."""
    now = work.now[0]
    if now.is_leaf:
        return LEAF
    # A completion whose SVM stalls is split off.
    if now.completes:
        return OPEN
    stalled = work.newton[0].why == STALLED and np.isfinite(limit.cutoff)
    return STUCK if stalled and now.upper - now.lower > work.steering.far * (now.edge / grid.size - now.lower) else OPEN


@compiled(nogil=True, inline="always")
def hand_down(grid, piece, work):  # type: ignore[no-untyped-def]
    """Leave the weights with the node: its children, or who closes it, begin there."""
    now = work.now[0]
    newton = work.newton[0]
    node = piece.nodes[work.now[0].node]
    root = np.sqrt(grid.size)
    for t in range(now.count):
        piece.weights[now.node, work.columns[t]] = work.w[t] * root
    node.intercept = newton.intercept
    if not now.is_leaf:
        node.rho = max(work.steering.rho_least, work.steering.back * newton.rho)


@compiled(nogil=True, inline="always")
def fix(alive, sides, limit, piece, work):  # type: ignore[no-untyped-def]
    """Fix what the dual vector fixes, then what the rows do; whether the node holds a selection still."""
    now = work.now[0]
    node = piece.nodes[work.now[0].node]
    states = piece.states[work.now[0].node]
    screened = piece.places[node.place]
    # A screened place has the feature k, which is none: its dual vector shows all that is fixed below it.
    screened.feature = states.size
    screened.dual = now.dual
    if now.is_better:
        screened.value = node.bound
    node.place = open_place(piece)
    screened.outside = node.place
    total = piece.totals[0]
    total.floor = min(total.floor, limit.cutoff)
    for t in range(now.forced, now.count):
        if work.fixed[t] != FREE:
            states[work.columns[t]] = work.fixed[t]
    return fix_by_rows(sides, alive.M, piece, work, now.node)


@compiled(nogil=True)
def fix_by_rows(sides, M, piece, work, t):  # type: ignore[no-untyped-def]
    """Fix what the rows fix in a node: a chain of places, the other side of each refuted; whether anything is left."""
    node = piece.nodes[t]
    node.place = propagate_at_place(sides, M, piece, piece.states[t], node.place, work)
    return node.place >= 0


@compiled(nogil=True)
def propagate_at_place(sides, M, piece, states, at, work):  # type: ignore[no-untyped-def]
    """Fix what the rows fix at a place of a piece; returns the place where that is done, −1 where nothing is left."""
    found, broken = propagate_rows(sides, states.size if M < 0 else M, states, work.atoms, work.behind)
    for f in range(found):
        j = work.atoms[f]
        here = piece.places[at]
        here.feature = j
        # The other value of the atom is refuted by the side behind it; the node goes on at this one.
        goes_on = open_place(piece)
        other = open_place(piece)
        if states[j] == INSIDE:
            here.inside = goes_on
            here.outside = other
        else:
            here.outside = goes_on
            here.inside = other
        piece.places[other].dual = REFUTED
        piece.places[other].cause = work.behind[f]
        at = goes_on
    # A side that no selection of the node meets refutes the node itself.
    if broken >= 0:
        piece.places[at].dual = REFUTED
        piece.places[at].cause = broken
        return -1
    return at


@compiled(nogil=True, inline="always")
def count_places(alive, piece, work):  # type: ignore[no-untyped-def]
    """How many atoms may still be put in; where none, one selection is left, and the node comes again, as a leaf."""
    now = work.now[0]
    inside = now.forced
    free = 0
    for t in range(now.forced, now.count):
        state = piece.states[now.node, work.columns[t]]
        inside += state == INSIDE
        free += state == FREE
    return free if alive.M < 0 else min(free, max(0, alive.M - inside))


@compiled(nogil=True, inline="always")
def choose_next_solve(alive, sides, piece, work):  # type: ignore[no-untyped-def]
    """Whether a node with one free place is solved again as it stands, and how; not where a completion is split off.

    After its relaxation come SVMs on its completions, each of whose dual vectors is tried on all of them. Where one
    rules out its own column alone, the relaxation of what is left says more.
    """
    now = work.now[0]
    node = piece.nodes[work.now[0].node]
    if now.completes:
        is_out = piece.states[now.node, work.columns[now.forced]] != FREE
        node.next = RELAX if is_out and now.fixes < 2 else COMPLETE
        return is_out
    # Completed here only where that fits: a node given back for want of room is relaxed a second time.
    is_last = sides.indptr.size == 1 and alive.M >= 0 and now.room == 1 and has_room(sides, piece, piece.totals[0])
    node.next = COMPLETE if is_last else RELAX
    return node.next == COMPLETE


@compiled(nogil=True, inline="always")
def split_apart(count, branch, alive, sides, limit, piece, work):  # type: ignore[no-untyped-def]
    """Put atoms of a node with three free places in, by one relaxation; what each leaves goes back: work for others."""
    now = work.now[0]
    node = piece.nodes[now.node]
    total = piece.totals[0]
    for _ in range(count):
        before = total.nodes
        split_node(branch, alive, sides, limit, piece, work)
        if total.nodes > before:
            piece.nodes[before].why = APART
        is_left = node.place >= 0 and node.why == OPEN and count_places(alive, piece, work) == 3
        if not is_left or not has_room(sides, piece, total):
            break


@compiled(nogil=True, inline="always")
def split_node(branch, alive, sides, limit, piece, work):  # type: ignore[no-untyped-def]
    """Open both children of a node; one whose prices seem to lose much goes back, for others to be found."""
    now = work.now[0]
    total = piece.totals[0]
    node = piece.nodes[work.now[0].node]
    columns = work.columns[: now.count]
    if sides.indptr.size > 1 and node.age >= work.steering.aged:
        # What new prices could gain: what the last step of them fell short of, or complementarity misses.
        lost = max(now.missing, measure_missed(sides, work.y, columns, work.sigma, work.dense))
        if lost > work.steering.lost * (limit.cutoff - node.bound):
            node.why = DEAR
            return
    w = work.w[: now.count]
    sigma = work.sigma[: now.count]
    relaxed = RelaxedNode(columns, w, sigma, node.bound, limit.cutoff, work.memory)
    t = now.forced if now.completes else place_to_split(branch, relaxed, piece.states[now.node])
    j = columns[t]
    node.age += 1
    node.share = sigma[t]
    node.atom = 0 if now.completes else -(j + 1)
    child = total.nodes
    total.nodes += 1
    piece.nodes[child] = node
    piece.nodes[child].next = RELAX
    piece.nodes[child].atom = -node.atom
    copy_to(piece.states[now.node], piece.states[child])
    copy_to(piece.weights[now.node], piece.weights[child])
    piece.states[now.node, j] = OUTSIDE
    piece.states[child, j] = INSIDE
    here = piece.places[node.place]
    here.feature = j
    here.dual = node.parent
    here.value = node.bound
    here.outside, here.inside = open_place(piece), open_place(piece)
    node.place = here.outside
    piece.nodes[child].place = here.inside
    fix_by_rows(sides, alive.M, piece, work, now.node)
    fix_by_rows(sides, alive.M, piece, work, child)
