"""The steps of one node, and what an exploration does with it, each alone beside plain Python and exact arithmetic.

What is inlined into its one caller runs as the Python that it is written in; a relaxation that is called is scripted.
"""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mipfs.kernels import boolean_newton, node, subtree
from mipfs.kernels.boolean_newton import CLEAR, PRUNED, SOLVED, STALLED
from mipfs.kernels.propagation import FREE, INSIDE, OUTSIDE
from mipfs.kernels.structures import Goal, InPlay, steering_of
from mipfs.settings import NodeSettings
from tests.kernels.test_boolean_newton import case
from tests.kernels.test_node import K, N, Ready, ready
from tests.record_cases import named

SEEDS = range(8)


def begun(seed: int, *, has_rows: bool = False, states: Any = None) -> Ready:
    """An open node that is planted; settings, too, are read by name."""
    at = ready(seed, has_rows=has_rows, states=states)
    steering = named(np.array([steering_of(NodeSettings())]))[0]
    subtree.plant_piece.py_func(at.piece)
    return at._replace(work=at.work._replace(steering=steering))


def laid_out(seed: int, *, forced: int = 1, out: int = 1) -> Ready:
    """A node in the middle of its solve: some columns forced in, some out, weights and σ of a relaxation."""
    r = np.random.default_rng(seed)
    states = np.full(K, FREE, np.int8)
    order = r.permutation(K)
    states[order[:forced]] = INSIDE
    states[order[forced : forced + out]] = OUTSIDE
    at = begun(seed, states=states)
    now = at.work.now[0]
    now.node = 0
    now.forced, now.count = node.in_play_of.py_func(states, at.alive.M, at.work.columns)
    now.room, now.is_leaf = at.alive.M - forced, 0
    now.lower, now.upper, now.edge, now.sum, now.undecided = 1.0, 2.0, 3.0, 1.5, 1
    at.work.w[:], at.work.sigma[:] = r.normal(size=K), r.random(K)
    at.work.fixed[:] = FREE
    return at


@pytest.mark.parametrize("has_rows", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_node_is_laid_out_at_its_prices(seed: int, has_rows: bool) -> None:
    r = np.random.default_rng(seed)
    states = r.choice([FREE, FREE, INSIDE, OUTSIDE], K).astype(np.int8)
    if has_rows:
        states[:2] = FREE
        states[2:] = OUTSIDE
    at = begun(seed, has_rows=has_rows, states=states)
    now, newton, M = at.work.now[0], at.work.newton[0], at.alive.M
    at.piece.nodes[0].rho, at.piece.nodes[0].intercept = 0.7, 0.3
    at.piece.weights[0] = r.normal(size=K)
    at.piece.prices[0] = -0.3
    node.lay_out_node.py_func(at.alive, at.grid, at.sides, at.piece, at.work, 0)
    inside, free = np.flatnonzero(states == INSIDE), np.flatnonzero(states == FREE)
    free = free if inside.size < M else free[:0]
    columns = np.append(inside, free)
    assert at.work.columns[: now.count].tolist() == columns.tolist()
    assert (now.forced, now.room) == (inside.size, min(free.size, M - inside.size) if free.size else 0)
    assert bool(now.is_leaf) == (free.size == 0)
    root = float(np.sqrt(at.grid.size))
    np.testing.assert_allclose(at.work.w[: now.count] * root, at.piece.weights[0, columns], rtol=1e-6)
    assert (newton.rho, newton.intercept, newton.prox) == (0.7, 0.3, NodeSettings().proximal)
    # The row is σ_0 + σ_1 ≤ 1 at a multiplier of −0.3: both atoms cost 0.3 more; the constant is −0.3 times its end.
    priced = [Fraction(c) + (Fraction(0.3) if has_rows and j < 2 else 0) for j, c in enumerate(at.alive.penalty)]
    for found, exact in zip(at.work.priced, priced, strict=True):
        assert exact * (1 - Fraction(1, 10**14)) <= Fraction(found) <= exact
    exact = -Fraction(0.3) * Fraction(float(at.sides.ends[0])) if has_rows else Fraction(0)
    assert exact - Fraction(1, 10**14) <= Fraction(float(now.constant)) <= exact


@pytest.mark.parametrize("seed", SEEDS)
def test_slices_keep_the_best_of_what_was_seen(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    r = np.random.default_rng(seed)
    at = begun(seed)
    now, slices = at.work.now[0], at.work.steering.slices
    full = int(at.work.steering.slice)
    script = [(*r.normal(size=2), STALLED, full) for _ in range(slices + 1)]
    last = int(r.integers(0, slices + 1))
    if last < slices:
        script[last] = (*script[last][:2], *[(SOLVED, full), (PRUNED, 3), (STALLED, 3), (CLEAR, 1)][seed % 4])
    asked = []

    def relax(step: Any, minimise: Any, Z: Any, samples: Any, in_play: Any, goal: Any, point: Any, state: Any) -> None:
        state.lower, state.upper, state.why, state.steps = script[len(asked)]
        point.best[:] = len(asked)
        asked.append(step)

    monkeypatch.setattr(node, "call_step", relax)
    now.lower, now.upper = -np.inf, np.inf
    cols = np.arange(K)
    in_play = InPlay(cols, 0, 2, np.zeros(K))
    goal = Goal(np.inf, 1e-6, 0.0, -np.inf, np.zeros(1, np.int8), at.work.steering)
    node.relax_in_slices.py_func(at.steps, at.alive.Z, at.samples, in_play, goal, at.work, np.zeros(N))
    seen = script[: min(last + 1, slices)]
    assert len(asked) == len(seen)
    assert asked == [at.steps.relax] * len(seen)
    lowers = [lower for lower, *_ in seen]
    assert (now.lower, now.upper) == (max(lowers), min(upper for _, upper, *_ in seen))
    assert now.steps == sum(steps for *_, steps in seen)
    assert np.all(at.work.best == int(np.argmax(lowers)))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_node_earns_what_its_dual_vector_proves(seed: int) -> None:
    at = laid_out(seed, forced=seed % 2)
    now, columns = at.work.now[0], at.work.columns
    at.work.priced[:] = at.alive.penalty + 0.05 * np.random.default_rng(seed).random(K)
    at.work.best[:] = np.random.default_rng([seed, 1]).random(N)
    now.constant, now.edge, now.lower = -0.1, np.inf, 0.0
    bound = node.earn_bound.py_func(at.alive, at.samples, at.grid, np.inf, at.work, 1)
    scale = Fraction(1, 2 ** int(now.exponent))
    alpha = [int(k) * scale for k in at.work.wholes[1]]
    assert [Fraction(a) for a in at.work.alphas[1]] == alpha
    y = [int(label) for label in at.samples.y]
    assert sum((a * label for a, label in zip(alpha, y, strict=True)), Fraction(0)) == 0
    gains = []
    for j in columns[: now.count]:
        X = [Fraction(x) for x in at.problem.data.block().dense()[:, j]]
        omega = sum((a * label * x for a, label, x in zip(alpha, y, X, strict=True)), Fraction(0))
        gains.append(omega * omega / 2 - Fraction(at.work.priced[j]))
    free = sorted((gain for gain in gains[now.forced :] if gain > 0), reverse=True)[: now.room]
    exact = sum(alpha) + Fraction(now.constant) - sum(gains[: now.forced]) - sum(free)
    assert Fraction(float(bound)) <= exact
    assert float(bound) == pytest.approx(float(exact), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("solved", [0, 3, 8])
@pytest.mark.parametrize("places", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("has_rows", [False, True])
def test_whether_one_more_node_fits(solved: int, places: int, has_rows: bool) -> None:
    """A node takes three places, and with rows two for every atom that they fix, in it and in both children."""
    at = begun(0, has_rows=has_rows)
    total, room = at.piece.totals[0], at.piece.places.size
    total.solved = min(solved, at.piece.nodes.size - 1)
    total.places = room - places - (3 * 2 * K if has_rows else 0)
    wanted = total.solved + 1 < at.piece.nodes.size and places >= 3
    assert bool(subtree.has_room.py_func(at.sides, at.piece, total)) == wanted


def test_a_new_place_shows_nothing_yet() -> None:
    at = begun(0)
    at.piece.places[1] = (3, 3, 3, 3, 3, 3.0)
    assert subtree.open_place.py_func(at.piece) == 1
    assert at.piece.totals[0].places == 2
    assert tuple(at.piece.places[1]) == (-1, -1, -1, -1, -1, -np.inf)


@pytest.mark.parametrize("rises", [False, True])
@pytest.mark.parametrize("fixes", [0, 2])
def test_a_dual_vector_is_kept_where_it_shows_something(rises: bool, fixes: int) -> None:
    at = laid_out(1)
    now, total, opened, work = at.work.now[0], at.piece.totals[0], at.piece.nodes[0], at.work
    opened.bound, now.bound, now.exponent = 1.0, 1.0 + rises, 4
    work.newton[0].why = STALLED
    work.fixed[now.forced : now.forced + fixes] = OUTSIDE
    work.wholes[1] = np.arange(N) % 7
    subtree.keep_dual.py_func(at.grid, at.piece, work)
    assert (total.solved, total.stalled, now.fixes, bool(now.is_better)) == (1, 1, fixes, rises)
    assert (opened.bound, opened.parent) == ((2.0, 1) if rises else (1.0, 0))
    if not (rises or fixes):
        assert (total.duals, total.bytes) == (1, 0)
        return
    dual = at.piece.duals[1]
    assert (total.duals, total.bytes, dual.grid) == (2, dual.end, 4)
    # Bits say who is not zero, and of these who is at the top; then a byte each for the others.
    whole, flags = np.arange(N) % 7, -(-N // 8)
    there = whole[whole > 0]
    assert np.unpackbits(at.piece.packed[:flags])[:N].tolist() == (whole > 0).tolist()
    assert np.unpackbits(at.piece.packed[flags:])[: there.size].tolist() == (there == dual.top).tolist()
    others = there[there != dual.top]
    assert at.piece.packed[dual.end - others.size : dual.end].tolist() == others.tolist()


@pytest.mark.parametrize("is_first", [False, True])
@pytest.mark.parametrize("undecided", [0, 2])
@pytest.mark.parametrize("upper", [1.0, 1e9])
def test_what_is_offered_to_be_rounded(is_first: bool, undecided: int, upper: float) -> None:
    at = laid_out(2)
    now, total, work = at.work.now[0], at.piece.totals[0], at.work
    total.solved, now.undecided, now.upper = 1 if is_first else 5, undecided, upper
    at.piece.offers[:] = -1.0
    subtree.offer.py_func(at.grid, at.piece, work)
    is_offered = is_first or (undecided == 0 and upper * at.grid.size < now.edge)
    row = 0 if is_first else 1
    assert total.offers == 1 + (is_offered and not is_first)
    if not is_offered:
        assert np.all(at.piece.offers == -1.0)
        return
    wanted = np.zeros(K)
    columns = work.columns[: now.count]
    size = np.abs(work.w[: now.count]) * np.sqrt(at.grid.size) + NodeSettings().dust * work.sigma[: now.count]
    wanted[columns] = np.where(np.arange(now.count) < now.forced, np.inf, size)
    np.testing.assert_allclose(at.piece.offers[row], wanted, rtol=1e-6)
    assert at.piece.sums[row] == now.sum


@pytest.mark.parametrize("gap", [0.1, 10.0])
@pytest.mark.parametrize("why", [SOLVED, STALLED])
@pytest.mark.parametrize("is_leaf", [0, 1])
def test_what_becomes_of_a_node(gap: float, why: int, is_leaf: int) -> None:
    """One that stalled is for another where its gap is more than a share of the way to the cutoff."""
    at = laid_out(3)
    now = at.work.now[0]
    now.is_leaf, at.work.newton[0].why = is_leaf, why
    now.upper, now.edge = now.lower + gap, at.grid.size * (now.lower + 2.0)
    far = gap > NodeSettings().far * 2.0
    wanted = subtree.LEAF if is_leaf else subtree.STUCK if far and why == STALLED else subtree.OPEN
    assert subtree.node_fate.py_func(at.grid, at.limit, at.work) == wanted


@pytest.mark.parametrize("is_leaf", [0, 1])
@pytest.mark.parametrize("rho", [0.1, 40.0])
def test_children_begin_where_their_parent_ended(is_leaf: int, rho: float) -> None:
    at = laid_out(4)
    now, newton, opened = at.work.now[0], at.work.newton[0], at.piece.nodes[0]
    newton.rho, newton.intercept, now.is_leaf, opened.rho = rho, 0.25, is_leaf, 7.0
    at.piece.weights[0] = -5.0
    subtree.hand_down.py_func(at.grid, at.piece, at.work)
    columns = at.work.columns[: now.count]
    wanted = np.full(K, -5.0)
    wanted[columns] = at.work.w[: now.count] * np.sqrt(at.grid.size)
    np.testing.assert_allclose(at.piece.weights[0], wanted, rtol=1e-6)
    steering = NodeSettings()
    assert opened.intercept == 0.25
    assert opened.rho == (7.0 if is_leaf else max(steering.rho_least, steering.back * rho))


@pytest.mark.parametrize("is_better", [0, 1])
@pytest.mark.parametrize("seed", SEEDS)
def test_what_a_dual_vector_fixes_is_a_place_of_the_proof(seed: int, is_better: int) -> None:
    at = laid_out(seed)
    r = np.random.default_rng(seed)
    now, opened, states = at.work.now[0], at.piece.nodes[0], at.piece.states[0].copy()
    opened.bound, now.dual, now.is_better = 2.5, 3, is_better
    fixed = r.choice([FREE, INSIDE, OUTSIDE], K)
    at.work.fixed[:] = fixed
    assert subtree.fix.py_func(at.alive, at.sides, at.limit, at.piece, at.work)
    for t in range(now.forced, now.count):
        if fixed[t] != FREE:
            states[at.work.columns[t]] = fixed[t]
    np.testing.assert_array_equal(at.piece.states[0], states)
    screened = at.piece.places[0]
    assert (screened.feature, screened.dual, screened.outside, opened.place) == (K, 3, 1, 1)
    assert screened.value == (2.5 if is_better else -np.inf)
    assert at.piece.totals[0].floor == at.limit.cutoff


@pytest.mark.parametrize("seed", range(20))
def test_how_many_atoms_may_still_be_put_in(seed: int) -> None:
    r = np.random.default_rng(seed)
    at = laid_out(seed, forced=seed % 2)
    states = at.piece.states[0]
    for j in np.flatnonzero(states == FREE):
        states[j] = r.choice([FREE, INSIDE, OUTSIDE, OUTSIDE])
    inside, free = np.count_nonzero(states == INSIDE), np.count_nonzero(states == FREE)
    assert subtree.count_places.py_func(at.alive, at.piece, at.work) == min(free, max(0, at.alive.M - inside))
    assert subtree.count_places.py_func(at.alive._replace(M=-1), at.piece, at.work) == free


@pytest.mark.parametrize("seed", SEEDS)
def test_a_split_has_both_values_of_one_atom(seed: int) -> None:
    at = laid_out(seed)
    now, opened, before = at.work.now[0], at.piece.nodes[0], at.piece.states[0].copy()
    opened.bound, opened.parent, opened.age = 2.0, 5, 1
    at.piece.weights[0] = np.arange(K)
    subtree.split_node.py_func(at.steps.branch, at.alive, at.sides, at.limit, at.piece, at.work)
    # The rule that is there by default takes the largest weight of the free fractional atoms.
    free = [t for t in range(now.forced, now.count) if 1e-6 < at.work.sigma[t] < 1.0 - 1e-6]
    j = at.work.columns[max(free, key=lambda t: abs(at.work.w[t]))]
    child = at.piece.nodes[1]
    assert at.piece.totals[0].nodes == 2
    for t, state in ((0, OUTSIDE), (1, INSIDE)):
        wanted = before.copy()
        wanted[j] = state
        np.testing.assert_array_equal(at.piece.states[t], wanted)
        np.testing.assert_array_equal(at.piece.weights[t], np.arange(K))
    place = at.piece.places[0]
    assert (place.feature, place.dual, place.value) == (j, 5, 2.0)
    assert (place.outside, place.inside) == (opened.place, child.place) == (1, 2)
    assert (opened.age, child.age, child.bound, child.parent) == (2, 2, 2.0, 5)


@pytest.mark.parametrize("seed", SEEDS)
def test_atoms_put_in_by_one_relaxation_cover_the_node(seed: int) -> None:
    """Every selection lies in one node alone: where its first atom in their order is in, or where none of them is."""
    at = laid_out(seed, forced=0, out=0)
    at = at._replace(alive=at.alive._replace(M=3))
    at.work.now[0].room, before = 3, at.piece.states[0].copy()
    subtree.split_apart.py_func(3, at.steps.branch, at.alive, at.sides, at.limit, at.piece, at.work)
    total, nodes = at.piece.totals[0], at.piece.nodes
    assert total.nodes == 4
    assert [int(nodes[t].why) for t in range(4)] == [subtree.OPEN, *[subtree.APART] * 3]
    free = np.flatnonzero(before == FREE)
    for chosen in itertools.product((False, True), repeat=free.size):
        here = 0
        while at.piece.places[here].feature >= 0:
            place = at.piece.places[here]
            here = int(place.inside if chosen[free.tolist().index(place.feature)] else place.outside)
        (t,) = [t for t in range(4) if nodes[t].place == here]
        states = at.piece.states[t][free]
        assert not np.any((states == INSIDE) & ~np.array(chosen))
        assert not np.any((states == OUTSIDE) & np.array(chosen))
        assert np.count_nonzero(states == INSIDE) == (t > 0)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_completion_that_gains_most_comes_first(seed: int) -> None:
    at = laid_out(seed)
    now, work = at.work.now[0], at.work
    alpha = np.abs(np.random.default_rng(seed).normal(size=N))
    at.piece.nodes[0].start, work.alphas[1], work.priced[:] = 1, alpha, at.alive.penalty
    columns, w = work.columns[: now.count].copy(), work.w.copy()
    node.put_in_front.py_func(at.alive, at.samples, at.piece, at.work)
    X = at.alive.X.data.reshape(at.alive.X.number, N)
    omega = (X - at.alive.center[:, None]) @ (alpha * at.samples.y)
    gain = {j: 0.5 * omega[j] ** 2 - at.alive.penalty[j] for j in columns[now.forced :].tolist()}
    first = int(work.columns[now.forced])
    assert first == max(gain, key=lambda j: gain[j])
    assert sorted(work.columns[: now.count]) == sorted(columns)
    np.testing.assert_array_equal(work.columns[: now.forced], columns[: now.forced])
    assert work.w[now.forced] == w[columns.tolist().index(first)]
    assert not work.w[now.forced + 1 : now.count].any()


def test_a_completion_whose_svm_stalls_is_not_stuck() -> None:
    """It is split off: handed back, its node would begin again without an end."""
    at = laid_out(0)
    now = at.work.now[0]
    at.work.newton[0].why, now.upper, at.limit.cutoff = STALLED, 1e9, 3.0
    for completes, wanted in ((0, subtree.STUCK), (1, subtree.OPEN)):
        now.completes = completes
        assert subtree.node_fate.py_func(at.grid, at.limit, at.work) == wanted


@pytest.mark.parametrize(("completes", "is_out", "fixes", "room", "wanted"), [
    (0, False, 3, 1, (True, node.COMPLETE)),  # a relaxation with one place left: its completions come
    (0, False, 3, 2, (False, node.RELAX)),
    (1, True, 1, 1, (True, node.RELAX)),  # the completion alone was ruled out
    (1, True, 2, 1, (True, node.COMPLETE)),
    (1, False, 2, 1, (False, node.COMPLETE)),  # it was not: it is split off
])  # fmt: skip
def test_a_node_with_one_free_place_goes_on(
    completes: int, is_out: bool, fixes: int, room: int, wanted: tuple[bool, int]
) -> None:
    at = laid_out(0)
    now = at.work.now[0]
    now.completes, now.fixes, now.room = completes, fixes, room
    at.piece.states[0, at.work.columns[now.forced]] = OUTSIDE if is_out else FREE
    goes_on = subtree.choose_next_solve.py_func(at.alive, at.sides, at.piece, at.work)
    assert (bool(goes_on), at.piece.nodes[0].next) == wanted


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("seed", range(4))
def test_a_point_on_the_way_decides_or_goes_on(seed: int) -> None:
    """A bound above the cutoff ends a minimisation, a gap that is closed too; a fate that is merely clear does not."""
    at = case(seed, 0)
    Z, samples, in_play, goal, point, state = at.Z, at.samples, at.in_play, at.goal, at.point, at.state
    path = boolean_newton.begin(Z, samples, in_play, goal, point, state)
    boolean_newton.evaluate_bounds(Z, samples, in_play, goal, point, path, state)
    face = boolean_newton.make_working_set(at.step, in_play, point, np.arange(in_play.cols.size), True)
    face.w[:] = point.w
    for other, why in (
        (goal._replace(cutoff=state.lower - 1.0), PRUNED),
        (goal._replace(tol=1e9), SOLVED),
        (goal._replace(cutoff=state.upper + 1.0, share=1e9, known=state.lower - 1e9), 0),
        (goal, 0),
    ):
        state.why = 0
        point.w[:] = -1.0
        assert boolean_newton.judge_midway(samples, in_play, other, point, path, face, state) == (why > 0)
        assert state.why == why
        np.testing.assert_array_equal(point.w, face.w)


@pytest.mark.parametrize("M", [-1, 1])
def test_a_place_stays_where_the_rows_fix_nothing(M: int) -> None:
    states = np.full(K, FREE, np.int8)
    states[0] = INSIDE
    at = begun(0, states=states)
    place = at.piece.nodes[0].place
    found = subtree.propagate_at_place.py_func(at.sides, M, at.piece, at.piece.states[0], place, at.work)
    assert found == place
    assert at.piece.states[0].tolist() == states.tolist()
