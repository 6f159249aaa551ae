"""The steps of an exploration, one by one, beside plain Python."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from mipfs.branching import RULES, get_rule
from mipfs.branching.reliability import RELIABLE
from mipfs.compiled import compiled
from mipfs.errors import UsageError
from mipfs.inner.boolean_node import branching
from mipfs.kernels import node, subtree
from mipfs.kernels.node import RELAX
from mipfs.kernels.propagation import FREE, INSIDE, OUTSIDE, propagate_rows
from mipfs.kernels.structures import LIMITS, ExplorationScratch, ExploredPiece, RelaxedNode, steering_of
from mipfs.pointers import Step
from mipfs.settings import NodeSettings
from tests.kernels.test_node import K as N_COLUMNS
from tests.kernels.test_node import Ready, ready
from tests.kernels.test_propagation import drawn as drawn_rows

Array = npt.NDArray[np.float64]

K = 6


def planted(rows: int = 0) -> ExploredPiece:
    """A piece of its open node alone, with room for nine nodes."""
    pieces = ExploredPiece.of(1, 9, K, rows, 40, 100)
    piece = ExploredPiece(*(array[0] for array in pieces))
    piece.states[0] = FREE
    piece.nodes[0] = (3.0, 0.5, 2.0, 0, 0, 0, subtree.OPEN, RELAX, 0, 0, 0.0)
    subtree.plant_piece(piece)
    return piece


def test_a_piece_begins_as_its_open_node() -> None:
    piece = planted()
    total = piece.totals[0]
    assert (total["places"], total["nodes"], total["duals"], total["offers"], total["solved"]) == (1, 1, 1, 1, 0)
    assert total["floor"] == np.inf
    assert piece.nodes[0]["bound"] == 3.0
    assert [piece.places[0][name] for name in ("feature", "outside", "inside", "dual", "cause")] == [-1] * 5


@pytest.mark.parametrize("seed", range(20))
def test_the_open_node_of_least_bound_is_chosen_below_the_level(seed: int) -> None:
    r, piece = np.random.default_rng(seed), planted()
    total = piece.totals[0]
    total["nodes"], total["solved"] = 8, seed % 2
    for t in range(8):
        why, place = int(r.choice([subtree.OPEN, subtree.OPEN, subtree.STUCK])), int(r.choice([-1, t, t]))
        piece.nodes[t] = (float(r.integers(0, 5)), 0.0, 1.0, 0, 0, place, why, RELAX, 0, 0, 0.0)
    level = float(r.integers(0, 5))
    waiting = [t for t in range(8) if piece.nodes[t]["place"] >= 0 and piece.nodes[t]["why"] == subtree.OPEN]
    least = min(waiting, key=lambda t: piece.nodes[t]["bound"], default=-1)
    if least >= 0 and piece.nodes[least]["bound"] > level and total["solved"] > 0:
        least = -1
    assert subtree.choose(piece, total, level) == least


@pytest.mark.slow
def test_a_pruned_node_keeps_its_dual_vector_and_lowers_the_floor() -> None:
    piece = planted()
    piece.nodes[0]["parent"] = 4
    subtree.prune(piece, piece.nodes[0])
    assert (piece.places[0]["dual"], piece.nodes[0]["place"], piece.totals[0]["floor"]) == (4, -1, 3.0)


@pytest.mark.parametrize("M", [-1, 2, 3])
@pytest.mark.parametrize("seed", range(5))
def test_columns_in_play_have_the_forced_ones_first(M: int, seed: int) -> None:
    states = np.random.default_rng(seed).choice([FREE, FREE, INSIDE, OUTSIDE], K).astype(np.int8)
    columns = np.empty(K, np.int64)
    forced, count = node.in_play_of(states, M, columns)
    inside, free = np.flatnonzero(states == INSIDE), np.flatnonzero(states == FREE)
    if 0 <= M <= inside.size:
        free = free[:0]
    assert (forced, count) == (inside.size, inside.size + free.size)
    assert columns[:count].tolist() == [*inside.tolist(), *free.tolist()]


@pytest.mark.parametrize("seed", range(20))
def test_relaxed_sigma(seed: int) -> None:
    r = np.random.default_rng(seed)
    forced, room = int(r.integers(0, 3)), int(r.integers(1, 4))
    w = r.choice([0.0, 0.3, -1.0, 2.0], K) * r.random(K)
    sigma, classes, tau = np.empty(K), np.empty(K, np.int64), np.empty(K)
    undecided, total = node.relaxed_of(w, np.zeros(K), forced, room, sigma, classes, tau)
    assert np.all(sigma[:forced] == 1.0)
    assert total == pytest.approx(sigma.sum())
    assert sigma[forced:].sum() <= room + 1e-9
    assert undecided == np.count_nonzero(np.minimum(sigma[forced:], 1.0 - sigma[forced:]) > 1e-6)


@compiled(nogil=True)
def wrong(relaxed, places):  # type: ignore[no-untyped-def]
    """A rule that knows what it was not given."""
    return relaxed.atoms.size - 1 + 0 * places.size


def rule_of(rule: Any, w: Array, sigma: Array) -> tuple[RelaxedNode, Step]:
    """A node whose atoms are numbered from 10 on, backwards, and a rule as a step."""
    columns = getattr(importlib.import_module(rule.py_func.__module__), "MEMORY", 0)
    memory = np.random.default_rng(w.size).integers(1, 9, (11 + w.size, columns)).astype(float)
    relaxed, step = branching(rule, np.arange(10 + w.size, 10, -1), w, sigma, memory=memory)
    return relaxed, step.made()


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("seed", range(30))
def test_rules_choose_among_the_free_fractional_or_all_free(name: str, seed: int) -> None:
    r = np.random.default_rng(seed)
    w, sigma = np.round(r.normal(size=K), 1), r.choice([0.0, 1.0, 0.2, 0.5, 0.7, 0.9], K)
    relaxed, step = rule_of(get_rule(name), w, sigma)
    states = r.choice([FREE, FREE, INSIDE, OUTSIDE], K + 11).astype(np.int8)
    states[10 + seed % K + 1] = FREE
    free = [t for t in range(K) if states[relaxed.atoms[t]] == FREE]
    among = [t for t in free if 0.0 < sigma[t] < 1.0] or free
    at = node.place_to_split(step, relaxed, states)
    assert at in among
    closeness, size = np.minimum(sigma, 1.0 - sigma), np.abs(w)
    if name == "largest-weight":
        assert size[at] == max(size[t] for t in among)
    elif name == "most-fractional":
        assert (closeness[at], size[at]) == max((closeness[t], size[t]) for t in among)
    elif name in ("pseudo-costs", "reliability"):
        tries_out, out, tries_in, inside = relaxed.memory[relaxed.atoms].T
        score = out / tries_out * sigma * (inside / tries_in) * (1.0 - sigma)
        reliable = [t for t in among if name == "pseudo-costs" or min(tries_out[t], tries_in[t]) >= RELIABLE]
        first = max(among, key=lambda t: (size[t], -t))
        if name == "reliability" and not min(tries_out[first], tries_in[first]) >= RELIABLE:
            assert size[at] == size[first]
        else:
            assert score[at] >= (1 - 1e-9) * max(score[t] for t in reliable) - 1e-9


def test_a_rule_cannot_choose_what_is_fixed() -> None:
    relaxed, step = rule_of(wrong, np.ones(2), np.full(2, 0.5))
    states = np.full(20, OUTSIDE)
    states[relaxed.atoms[0]] = FREE
    with pytest.raises(UsageError, match="one of the places that it is given"):
        node.place_to_split(step, relaxed, states.astype(np.int8))


def plain(at: Ready) -> tuple[ExploredPiece, ExplorationScratch]:
    """The piece and the scratch as compiled code takes them: records of numpy's own kind, with a leading axis."""

    def own(array: Any) -> Any:
        return array.view(np.dtype(array.dtype.descr)) if array.dtype.names else array

    return ExploredPiece(*(own(one)[None] for one in at.piece)), at.work._replace(
        now=own(at.work.now), newton=own(at.work.newton), steering=steering_of(NodeSettings())
    )


@pytest.mark.parametrize("apart", [0, 2, 4])
@pytest.mark.parametrize("has_rows", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_an_exploration_loses_no_selection_below_the_cutoff(seed: int, has_rows: bool, apart: int) -> None:
    """Every selection better than the cutoff is in a node that goes back; bounds are below what nodes hold."""
    at = ready(seed, has_rows=has_rows, factor=1.3)
    pieces, work = plain(at)
    limits = np.zeros(1, LIMITS)
    limits[0] = tuple(at.limit)
    limits["apart"] = apart
    subtree.explore(at.steps, at.alive, at.samples, at.grid, at.sides, limits, pieces, work)
    piece = subtree.piece_of.py_func(pieces, 0)
    total = piece.totals[0]
    assert total["solved"] > 0
    back = [piece.states[t] for t in range(total["nodes"]) if piece.nodes[t]["place"] >= 0]
    for t in range(total["nodes"]):
        if piece.nodes[t]["place"] >= 0:
            assert piece.nodes[t]["bound"] <= at.least(piece.states[t]) * (1 + 1e-12)
    cutoff = float(at.limit.cutoff)
    for chosen, value in at.best.items():
        inside = np.isin(np.arange(N_COLUMNS), list(chosen))
        held = [s for s in back if inside[s == INSIDE].all() and not inside[s == OUTSIDE].any()]
        assert held or value >= cutoff * (1 - 1e-12), chosen
    assert total["floor"] >= cutoff * (1 - 1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_what_rows_fix_is_a_chain_of_refuted_places(seed: int) -> None:
    A, sides, states, M = drawn_rows(seed)
    piece = planted(A.shape[0])
    piece.states[0] = states
    work = ExplorationScratch.of(3, K, A.shape[0], 9, 1, np.zeros(1, np.int8), steering_of(NodeSettings()))
    atoms, causes, after = np.empty(K, np.int64), np.empty(K, np.int64), states.copy()
    found, broken = propagate_rows(sides, M, after, atoms, causes)
    assert subtree.fix_by_rows(sides, M, piece, work, 0) == (broken < 0)
    np.testing.assert_array_equal(piece.states[0], after)
    at = 0
    for j, cause in zip(atoms[:found], causes[:found], strict=True):
        place, side = piece.places[at], "inside" if after[j] == INSIDE else "outside"
        other = piece.places[place["outside" if side == "inside" else "inside"]]
        assert (place["feature"], other["dual"], other["cause"]) == (j, subtree.REFUTED, cause)
        at = int(place[side])
    assert piece.nodes[0]["place"] == (at if broken < 0 else -1)


@pytest.mark.parametrize("atom", [3, -3])
@pytest.mark.parametrize("bound", [2.0, 3.0, 4.5, -np.inf])
def test_what_a_split_was_worth_is_kept_once(atom: int, bound: float) -> None:
    """The atom is 2; a child whose first bound is no better than its parent's gained nothing."""
    piece = planted()
    piece.nodes[0]["atom"], piece.nodes[0]["share"] = atom, 0.25
    nodes, total = piece.nodes.view(np.recarray), piece.totals.view(np.recarray)
    named = piece._replace(nodes=nodes, totals=total, splits=piece.splits.view(np.recarray))
    subtree.learn(named, nodes[0], bound)
    assert piece.totals[0]["splits"] == 1
    assert piece.splits[0].tolist() == (2, int(atom > 0), 0.25, max(0.0, bound - 3.0))
    assert piece.nodes[0]["atom"] == 0
