"""The steps of an exploration, one by one, beside plain Python."""

from __future__ import annotations

import numpy as np
import pytest

from mipfs.kernels import node, subtree
from mipfs.kernels.propagation import FREE, INSIDE, OUTSIDE
from mipfs.kernels.structures import Piece

K = 6


def planted(rows: int = 0) -> Piece:
    """A piece of its open node alone, with room for nine nodes."""
    pieces = Piece.of(1, 9, K, rows, 40, 100)
    piece = Piece(*(array[0] for array in pieces))
    piece.states[0] = FREE
    piece.nodes[0] = (3.0, 0.5, 2.0, 0, 0, subtree.OPEN, 0)
    subtree.plant(piece)
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
        piece.nodes[t] = (float(r.integers(0, 5)), 0.0, 1.0, 0, place, why, 0)
    level = float(r.integers(0, 5))
    waiting = [t for t in range(8) if piece.nodes[t]["place"] >= 0 and piece.nodes[t]["why"] == subtree.OPEN]
    least = min(waiting, key=lambda t: piece.nodes[t]["bound"], default=-1)
    if least >= 0 and piece.nodes[least]["bound"] > level and total["solved"] > 0:
        least = -1
    assert subtree.choose(piece, total, level) == least


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
def test_relaxed_sigma_and_the_feature_to_split_on(seed: int) -> None:
    r = np.random.default_rng(seed)
    forced, room = int(r.integers(0, 3)), int(r.integers(1, 4))
    w = r.choice([0.0, 0.3, -1.0, 2.0], K) * r.random(K)
    sigma, classes, tau = np.empty(K), np.empty(K, np.int64), np.empty(K)
    undecided, chosen, total = node.relaxed_of(w, np.zeros(K), forced, room, sigma, classes, tau)
    assert np.all(sigma[:forced] == 1.0)
    assert total == pytest.approx(sigma.sum())
    assert sigma[forced:].sum() <= room + 1e-9
    unclear = [t for t in range(forced, K) if min(sigma[t], 1 - sigma[t]) > 1e-6]
    assert undecided == len(unclear)
    among = unclear or range(forced, K)
    assert abs(w[chosen]) == max(abs(w[t]) for t in among)


def test_what_was_fixed_since_is_not_split_on() -> None:
    columns, states = np.array([2, 0, 5, 3]), np.zeros(K, np.int8)
    w = np.array([9.0, -2.0, 1.0, 3.0])
    assert subtree.largest_free(w, columns, states, 1, 2) == 2
    states[5] = OUTSIDE
    assert subtree.largest_free(w, columns, states, 1, 2) == 3
    states[3] = INSIDE
    assert subtree.largest_free(w, columns, states, 1, 2) == 1
