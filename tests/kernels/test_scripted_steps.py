"""The steps that only call other steps, run as the Python that they are written in, with scripted steps below them."""

from __future__ import annotations

import itertools
from collections import Counter
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mipfs.kernels import boolean_newton, node, subtree
from mipfs.kernels.boolean_newton import CLEAR, PRUNED
from mipfs.kernels.prices import PricedRelaxation
from mipfs.kernels.prices import newton_step_of_multipliers as price_step
from mipfs.kernels.propagation import FREE, INSIDE, OUTSIDE
from mipfs.kernels.structures import (
    NEWTON,
    Goal,
    InPlay,
    LossSamples,
    NewtonPath,
    RelaxationPoint,
    WorkingSet,
    only_read,
    steering_of,
)
from mipfs.settings import NodeSettings
from tests.kernels.loss_cases import HINGE, LOGISTIC, SQUARED_HINGE, made
from tests.kernels.test_node import K, N, Ready
from tests.kernels.test_node_steps import begun
from tests.record_cases import named


def nothing(*_: Any) -> None:
    """A step that is not looked at."""


def entered(seed: int, *, has_rows: bool) -> Ready:
    """A node that is laid out, with a limit that can be set."""
    at = begun(seed, has_rows=has_rows)
    node.lay_out_node.py_func(at.alive, at.grid, at.sides, at.piece, at.work, 0)
    return at


# Every case: whether there are rows, the two bounds, what the prices promise, and how often the node is then relaxed.
SOLVES = [
    ("no rows", False, (1.0, 2.0), 9.0, 1),
    ("pruned at once", True, (12.0, 2.0), 9.0, 1),
    ("nothing is promised", True, (1.0, 2.0), 0.0, 1),
    ("better", True, (1.0, 2.0), 9.0, 2),
    ("worse", True, (1.0, 0.5), 9.0, 2),
]


@pytest.mark.parametrize(("name", "has_rows", "bounds", "gain", "times"), SOLVES, ids=[one[0] for one in SOLVES])
def test_the_better_of_two_prices_is_kept(
    name: str, has_rows: bool, bounds: tuple[float, float], gain: float, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = entered(1, has_rows=has_rows)
    now, work, limit = at.work.now[0], at.work, at.limit
    limit.cutoff = 10.0
    relaxed: list[Any] = []
    earned: list[int] = []

    def relax_node(*given: Any) -> None:
        relaxed.append(given[-1])
        now.lower, now.sum = 0.0, 0.0

    def earn(*given: Any) -> float:
        slot = given[-1]
        earned.append(slot)
        work.alphas[slot], work.wholes[slot] = len(earned), len(earned)
        work.fixed[:], now.exponent = len(earned), 40 + len(earned)
        return bounds[len(earned) - 1]

    def price_further(*_: Any) -> None:
        now.gain = gain
        work.y_next[:] = -7.0

    monkeypatch.setattr(node, "relax_node", relax_node)
    monkeypatch.setattr(node, "earn_bound", earn)
    monkeypatch.setattr(node, "call_step", price_further)
    slot = int(at.piece.totals[0].duals)
    before = work.y.copy()
    node.solve.py_func(at.steps, at.alive, at.samples, at.grid, at.sides, limit, at.piece, work)
    assert relaxed == [0, slot][:times]  # from the parent's dual vector, then from the node's own
    assert earned == [slot, slot + 1][:times]
    better = times - 1 if bounds[times - 1] == max(bounds[:times]) else 0
    assert now.bound == bounds[better]
    assert now.exponent == 41 + better
    assert (work.alphas[slot] == 1 + better).all()
    assert (work.wholes[slot] == 1 + better).all()
    assert (work.fixed[: now.count] == 1 + better).all()
    np.testing.assert_array_equal(work.y, np.full_like(before, -7.0) if better else before)
    if times == 2:
        assert now.missing == gain - max(0.0, bounds[1] - bounds[0])


@pytest.mark.parametrize("lower", [-np.inf, 0.5])
def test_a_node_that_is_given_up_early_earns_what_it_can(lower: float, monkeypatch: pytest.MonkeyPatch) -> None:
    at = entered(1, has_rows=True)
    now = at.work.now[0]

    def relax_node(*_: Any) -> None:
        now.lower = lower
        at.work.stop[0] = 1

    monkeypatch.setattr(node, "relax_node", relax_node)
    monkeypatch.setattr(node, "earn_bound", lambda *_: 0.25)
    monkeypatch.setattr(node, "call_step", lambda *_: pytest.fail("prices go no further once it is given up"))
    node.solve.py_func(at.steps, at.alive, at.samples, at.grid, at.sides, at.limit, at.piece, at.work)
    assert now.bound == (0.25 if lower > -np.inf else -np.inf)


# Whether it is a leaf, σ that are fractional, whether it is pruned: the gaps that it is solved to.
RELAXED = [
    ("fractional", 0, 1, False, ["tol"]),
    ("integral and open", 0, 0, False, ["tol", "exact"]),
    ("integral and pruned", 0, 0, True, ["tol"]),
    ("a leaf", 1, 0, False, ["leaf"]),
]


@pytest.mark.parametrize(("name", "is_leaf", "undecided", "pruned", "solved"), RELAXED, ids=[one[0] for one in RELAXED])
def test_a_node_is_relaxed_until_its_fate_is_clear(
    name: str,
    is_leaf: int,
    undecided: int,
    pruned: bool,
    solved: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at = entered(2, has_rows=False)
    now, work, limit, steering = at.work.now[0], at.work, at.limit, at.work.steering
    now.is_leaf, limit.tol, limit.share, limit.rises = is_leaf, 0.03, 0.2, 1.0
    work.alphas[0] = np.arange(N)
    goals: list[Any] = []

    def relax(steps: Any, Z: Any, samples: Any, in_play: Any, goal: Any, work: Any, alpha: Any) -> None:
        goals.append(goal)
        np.testing.assert_array_equal(alpha, np.arange(N) / at.grid.size)
        np.testing.assert_array_equal(in_play.penalty, work.priced[in_play.cols] / at.grid.size)
        work.w[: in_play.cols.size] = np.nan if len(goals) == 1 else 0.5
        now.steps, now.lower = 5, 2.0 * now.edge / at.grid.size if pruned else 0.0

    monkeypatch.setattr(node, "relax_in_slices", relax)
    monkeypatch.setattr(node, "relaxed_of", lambda *_: (undecided, 1.5))
    steps = int(at.piece.totals[0].steps)
    node.relax_node.py_func(at.steps, at.alive, at.samples, at.grid, limit, at.piece, work, 0)
    expected = {"tol": (0.03, 0.2), "exact": (steering.exact, 0.0), "leaf": (0.1 * steering.exact, 0.0)}
    assert [(goal.tol, goal.share) for goal in goals] == [expected[one] for one in solved]
    assert at.piece.totals[0].steps == steps + 5 * len(solved)
    for goal in goals:
        assert goal.cutoff >= now.edge / at.grid.size  # by what rounding may take off
        assert goal.known == (at.piece.nodes[0].bound - now.constant) / at.grid.size
    # Weights that overflowed are nothing to go on from.
    assert np.isfinite(work.w[: now.count]).all()
    assert (now.undecided, now.sum) == (undecided, 1.5)


def test_prices_go_further_from_the_node_in_the_kernels_units() -> None:
    at = entered(3, has_rows=True)
    now, work = at.work.now[0], at.work
    r = np.random.default_rng(3)
    size, count = at.grid.size, int(now.count)
    work.w[:count], work.sigma[:count] = r.normal(size=count), [1.0, 0.4, 0.0, 1.0, 0.7][:count]
    work.alphas[1], work.newton[0].rho, work.y[:] = r.random(N), 0.8, -0.2
    prices = steering_of(NodeSettings())["prices"]
    plain = work._replace(steering=SimpleNamespace(prices=prices))
    node.price_further.py_func(at.alive.Z, at.samples, at.sides, plain, count, True, 1, size)
    relaxed = PricedRelaxation(
        work.columns[:count], int(now.forced), True, work.w[:count], work.sigma[:count],
        work.alphas[1] / size, 0.8, size,
    )  # fmt: skip
    after = np.empty_like(work.y)
    gain = price_step(at.alive.Z, at.samples, at.sides, relaxed, work.y, prices, np.empty(K, np.int64), after)
    assert now.gain == gain
    np.testing.assert_array_equal(work.y_next, after)


def minimising(kind: int) -> tuple[tuple[Any, ...], Any]:
    """What `minimise` is handed, over one column and two samples, and the state in it."""
    state = named(np.zeros(1, NEWTON))[0]
    state.seen_upper, state.seen_lower, state.aim = 2.0, 1.0, 0.1
    steering = named(np.array([steering_of(NodeSettings())]))[0]
    path = NewtonPath.of(2, 1, 1)
    one, two = np.ones(1), np.zeros((2, 2))
    places = np.zeros(1, np.int64)
    face = WorkingSet(None, places, places, one, one, one, two, two, np.zeros(2), np.zeros(2), places, one, one)  # type: ignore[arg-type]
    samples = LossSamples(only_read(np.array([1.0, -1.0])), only_read(np.ones(2)), made(kind), True)
    goal = Goal(5.0, 1e-6, 0.0, -np.inf, np.zeros(1, np.int8), steering)
    in_play, point = InPlay(places, 0, 1, np.zeros(1)), RelaxationPoint(one, np.zeros(2), np.zeros(2))
    return (None, samples, in_play, goal, point, path, face, state), state


# The errors of the gradient, slopes along the steps (1 for one that does not descend), after which step it is decided.
MINIMISES = [
    ("to a share of the gap", HINGE, [5.0, 0.5, 0.09], [-1.0, -1.0], None, 2, 2),
    ("decided on the way", HINGE, [5.0, 0.5, 0.4], [-1.0, -1.0, -1.0], 1, 1, 1),
    ("smooth losses take few steps", SQUARED_HINGE, [5.0] * 90, [-1.0] * 90, None, "smooth", "smooth"),
    ("damped, then no descent", LOGISTIC, [5.0, 5.0, 5.0], [-1.0, 0.0], None, 2, 1),
    ("until the slice ends", HINGE, [5.0] * 900, [-1.0] * 900, None, "slice", "slice"),
]


@pytest.mark.parametrize(
    ("name", "kind", "errors", "slopes", "decided", "steps", "advances"), MINIMISES, ids=[one[0] for one in MINIMISES]
)
def test_a_working_set_is_minimised(
    name: str, kind: int, errors: list[float], slopes: list[float], decided: int | None, steps: Any, advances: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    handed, state = minimising(kind)
    steering = handed[3].steering
    limits = {"smooth": int(steering.smooth_steps), "slice": int(steering.slice)}
    steps, advances = limits.get(steps, steps), limits.get(advances, advances)
    seen: list[str] = []

    def slope_at_zero(*_: Any) -> None:
        state.first = slopes[int(state.steps) - 1]

    monkeypatch.setattr(boolean_newton, "values", nothing)
    monkeypatch.setattr(boolean_newton, "update_scores", nothing)
    monkeypatch.setattr(boolean_newton, "build_newton_matrix", nothing)
    monkeypatch.setattr(boolean_newton, "judge_midway", lambda *_: decided is not None and state.moved >= decided)
    monkeypatch.setattr(boolean_newton, "face_gradient", lambda *_: errors[int(state.moved)])
    monkeypatch.setattr(boolean_newton, "call_step", lambda step, local, tol, inner, d: seen.append(f"to {tol:.2f}"))
    monkeypatch.setattr(boolean_newton, "slope_at_zero", slope_at_zero)
    monkeypatch.setattr(boolean_newton, "advance", lambda *_: seen.append("advance"))
    boolean_newton.minimise.py_func(*handed)
    assert state.steps == steps
    assert state.moved == steps
    assert seen.count("advance") == advances
    assert state.stalls == int(advances < steps)  # a step that does not descend ends it
    assert [one for one in seen if one != "advance"] == [f"to {0.3 * error:.2f}" for error in errors[:steps]]


def test_a_model_that_does_not_descend_is_damped_until_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    handed, state = minimising(HINGE)
    damped: list[float] = []

    def slope_at_zero(*_: Any) -> None:
        damped.append(float(state.damping))
        state.first = 1.0

    for step in ("values", "update_scores", "build_newton_matrix", "call_step"):
        monkeypatch.setattr(boolean_newton, step, nothing)
    monkeypatch.setattr(boolean_newton, "judge_midway", lambda *_: False)
    monkeypatch.setattr(boolean_newton, "face_gradient", lambda *_: 5.0)
    monkeypatch.setattr(boolean_newton, "slope_at_zero", slope_at_zero)
    monkeypatch.setattr(boolean_newton, "advance", lambda *_: pytest.fail("it does not descend"))
    boolean_newton.minimise.py_func(*handed)
    assert damped == pytest.approx([0.0, 1e-8, 1e-6, 1e-4, 1e-2])
    assert state.stalls == 1


@pytest.mark.parametrize("fixes", [0, 1])
def test_below_a_node_every_selection_is_pruned_or_given_back(fixes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds grow by one with every fixed atom, and from 3 on nodes are pruned: a binary tree of known size."""
    at = begun(4)
    work, piece = at.work, at.piece
    now = work.now[0]
    at.limit.cutoff = 3.0
    relaxed: list[tuple[int, ...]] = []

    def solve(*_: Any) -> None:
        states = piece.states[now.node]
        relaxed.append(tuple(states))
        now.bound, now.exponent = float((states != FREE).sum()), 10
        now.undecided, now.upper, now.lower, now.edge = 1, now.bound, now.bound, 3.0
        work.newton[0].why = PRUNED if now.bound >= 3.0 else CLEAR
        work.fixed[:] = FREE
        if fixes and now.bound < 3.0:  # the last column in play is ruled out by every dual vector
            work.fixed[now.count - 1] = OUTSIDE
        work.wholes[piece.totals[0].duals] = 1
        work.sigma[: now.count], work.w[: now.count] = 0.5, np.arange(now.count)

    def first(branch: Any, relaxed: Any, states: Any) -> Any:
        return np.flatnonzero(states[relaxed.atoms] == FREE)[0]

    for module in (subtree, node):  # all that it calls as the Python that it is written in
        for name in set(dir(module)) - {"explore_below"}:
            monkeypatch.setattr(module, name, getattr(getattr(module, name), "py_func", getattr(module, name)))
    monkeypatch.setattr(subtree, "solve", solve)
    monkeypatch.setattr(subtree, "place_to_split", first)
    subtree.explore_below.py_func(at.steps, at.alive, at.samples, at.grid, at.sides, at.limit, piece, work)
    total = piece.totals[0]
    assert len(relaxed) == total.solved
    for states, times in Counter(relaxed).items():  # where one place is free, a completion after the relaxation
        assert times <= 1 + (states.count(INSIDE) == at.alive.M - 1)
    assert total.floor >= 3.0
    back = {int(piece.nodes[t].place): piece.states[t] for t in range(total.nodes) if piece.nodes[t].place >= 0}
    ends = set()
    for size in range(at.alive.M + 1):
        for chosen in itertools.combinations(range(K), size):
            here = 0
            while piece.places[here].feature >= 0:
                place = piece.places[here]
                here = int(place.inside if place.feature in chosen else place.outside)
            ends.add(here)
            if here in back:
                assert set(np.flatnonzero(back[here] == INSIDE).tolist()) <= set(chosen)
                assert fixes or not set(np.flatnonzero(back[here] == OUTSIDE).tolist()) & set(chosen)
            else:
                assert 0 <= piece.places[here].dual < total.duals  # closed by a dual vector of the piece
    assert any(here not in back for here in ends)
    assert set(back) <= ends


@pytest.mark.parametrize(
    ("bound", "why", "holds", "decided", "steps", "is_split"),
    [
        (3.0, subtree.OPEN, True, False, ["keep_dual", "prune"], False),
        (1.0, subtree.STUCK, True, False, ["keep_dual", "offer"], False),
        (1.0, subtree.LEAF, True, False, ["keep_dual", "offer", "hand_down"], False),
        (1.0, subtree.OPEN, False, False, ["keep_dual", "offer", "hand_down", "fix"], False),
        (1.0, subtree.OPEN, True, True, ["keep_dual", "offer", "hand_down", "fix", "count_places"], False),
        (1.0, subtree.OPEN, True, False, ["keep_dual", "offer", "hand_down", "fix", "count_places"], True),
    ],
)
def test_what_becomes_of_a_relaxed_node(
    bound: float,
    why: int,
    holds: bool,
    decided: bool,
    steps: list[str],
    is_split: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Pruned, stuck, a leaf, emptied by the rows, decided, or split: the steps until then, in order."""
    at = begun(4)
    at.limit.cutoff, at.work.now[0].fixes, at.work.now[0].node = 3.0, 1, 0
    done: list[str] = []
    for name, answer in (
        ("prune", None),
        ("offer", None),
        ("hand_down", None),
        ("fix", holds),
        ("count_places", 0 if decided else 2),
    ):
        monkeypatch.setattr(subtree, name, lambda *_, name=name, answer=answer: (done.append(name), answer)[1])

    def keep_dual(*_: Any) -> None:
        done.append("keep_dual")
        at.piece.nodes[0].bound = bound

    monkeypatch.setattr(subtree, "keep_dual", keep_dual)
    found = subtree.fathom.py_func(at.alive, at.grid, at.sides, at.limit, at.piece, at.work, why)
    assert (found, done) == (is_split, steps)
    assert bound >= 3.0 or at.piece.nodes[0].why == why


@pytest.mark.parametrize(("is_split", "place", "ends"), [(True, 0, "split"), (False, 0, "leaf"), (False, -1, "done")])
def test_a_node_that_another_relaxed_is_split_or_a_leaf(
    is_split: bool, place: int, ends: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A decided node has nothing left to relax: it is a leaf; one that is closed is left as it is."""
    at = begun(4)
    node = at.piece.nodes[0]
    node.place, node.why = place, subtree.OPEN
    split: list[int] = []
    monkeypatch.setattr(subtree, "lend_arrays", lambda given: given)
    monkeypatch.setattr(subtree, "piece_of", lambda pieces, of: at.piece)
    monkeypatch.setattr(subtree, "fathom", lambda *_: is_split)
    monkeypatch.setattr(subtree, "split_node", lambda *_: split.append(1))
    subtree.settle_relaxed.py_func(None, at.alive, at.grid, at.sides, [at.limit], at.piece, at.work, 0)
    assert bool(split) == (ends == "split")
    assert (node.why == subtree.LEAF) == (ends == "leaf")
