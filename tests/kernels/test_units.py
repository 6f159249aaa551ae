"""Units of work: open nodes as words, laid out, and what explorations leave, gathered; beside plain Python."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from mipfs.kernels import units
from mipfs.kernels.propagation import FREE, INSIDE, OUTSIDE
from mipfs.kernels.structures import DUAL, PLACE, SPLIT, TOTALS, ExploredPiece, only_read
from mipfs.kernels.subtree import OPEN
from mipfs.kernels.units import OPEN_NODE, FirstDuals, OpenNodes, gather, gather_pieces, lay_out, pack_node, unpack_node
from mipfs.proof.duals import DualStore

States = npt.NDArray[np.int8]
Weights = npt.NDArray[np.float32]
SIZES = (*range(6), 31, 32, 33, 63, 64, 65, 96, 100)


def node_of(r: np.random.Generator, k: int) -> tuple[States, Weights]:
    """States and weights of a node over k atoms, of every share of atoms that are fixed, and of weights that are 0."""
    shares = r.dirichlet(np.full(3, 0.5))
    states = r.choice([FREE, INSIDE, OUTSIDE], k, p=shares).astype(np.int8)
    weights = (r.normal(size=k) * 10.0 ** r.integers(-30, 30, k) * (r.random(k) < r.random())).astype(np.float32)
    return states, weights


def words_of(states: States, weights: Weights) -> list[int]:
    """The words of a node, by Python's own integers."""
    bits = sum(1 << j for j, state in enumerate(states.tolist()) if state == OUTSIDE)
    words = [bits >> 32 * t & 0xFFFFFFFF for t in range(-(-states.size // 32))]
    words += [j for j, state in enumerate(states.tolist()) if state == INSIDE]
    held = [j for j, weight in enumerate(weights.tolist()) if weight != 0.0]
    words += held + [struct.unpack("<I", struct.pack("<f", weights[j]))[0] for j in held]
    return [word - (word >> 31 << 32) for word in words]


def head_of(start: int, inside: int, weights: int) -> Any:
    """A record that says no more than where its words are."""
    head = np.zeros(1, OPEN_NODE)[0]
    head["start"], head["inside"], head["weights"] = start, inside, weights
    return head


def opened(each: list[tuple[States, Weights]], r: np.random.Generator) -> OpenNodes:
    """Open nodes as arrays, with words of others between their own; their numbers are drawn."""
    heads, words = np.zeros(len(each), OPEN_NODE), list[int]()
    for at, (states, weights) in enumerate(each):
        words += r.integers(-9, 9, int(r.integers(0, 3))).tolist()
        head = heads[at]
        for name in ("bound", "intercept", "rho"):
            head[name] = r.normal()
        head["start"], head["age"], head["why"] = len(words), r.integers(0, 9), OPEN
        head["atom"], head["share"] = r.integers(-9, 9), r.uniform()
        head["inside"], head["weights"] = np.count_nonzero(states == INSIDE), np.count_nonzero(weights)
        words += words_of(states, weights)
    return OpenNodes(heads, np.array(words, dtype=np.int32))


@pytest.mark.parametrize("k", SIZES)
def test_a_node_is_packed_as_plain_python_does_it_and_read_back(k: int) -> None:
    r = np.random.default_rng(k)
    for _ in range(20):
        states, weights = node_of(r, k)
        wanted, start = words_of(states, weights), int(r.integers(0, 4))
        words = np.full(start + len(wanted) + 3, -77, np.int32)
        head = head_of(start, 9, 9)
        assert pack_node(states, weights, words, head) == start + len(wanted)
        assert words.tolist() == [-77] * start + wanted + [-77] * 3
        assert (head["inside"], head["weights"]) == (np.count_nonzero(states == INSIDE), np.count_nonzero(weights))
        read = np.full(k, 7, np.int8), np.full(k, np.nan, np.float32)
        assert unpack_node(head, words[: start + len(wanted)], *read)
        assert (read[0].tolist(), read[1].tobytes()) == (states.tolist(), (weights + np.float32(0.0)).tobytes())


@pytest.mark.parametrize("k", [1, 32, 40])
def test_words_that_are_too_short_are_refused(k: int) -> None:
    r = np.random.default_rng(k)
    for _ in range(20):
        states, weights = node_of(r, k)
        words = np.array(words_of(states, weights), np.int32)
        head = head_of(0, np.count_nonzero(states == INSIDE), np.count_nonzero(weights))
        read = np.empty(k, np.int8), np.empty(k, np.float32)
        assert unpack_node(head, words, *read)
        assert not any(unpack_node(head, words[:size], *read) for size in range(words.size))
        head["start"] = 1
        assert not unpack_node(head, words, *read)


@pytest.mark.parametrize(
    ("start", "inside", "weights"),
    [
        (-1, 0, 0),
        (0, -1, 0),
        (0, 0, -1),
        (0, -4, 2),
        (0, 4, -2),
        (-(2**63), 0, 0),
        (2**63 - 1, 0, 0),
        (2**63 - 3, 1, 1),
        (0, 2**31 - 1, 0),
        (0, 0, 2**31 - 1),
        (0, 2**31 - 1, 2**31 - 1),
    ],
)
def test_counts_and_places_that_none_has_are_refused(start: int, inside: int, weights: int) -> None:
    """Also where their sum is more than 64 bits hold."""
    read = np.full(40, 7, np.int8), np.full(40, 7, np.float32)
    assert not unpack_node(head_of(start, inside, weights), np.zeros(9, np.int32), *read)
    assert (read[0] == 7).all(), "nothing is read of such a node"


@pytest.mark.parametrize("wrong", [-1, -(2**31), 40, 2**31 - 1])
@pytest.mark.parametrize("place", ["inside", "weight"])
def test_atoms_that_there_are_not_are_refused(place: str, wrong: int) -> None:
    atoms = [3, wrong] if place == "inside" else [wrong, 0]
    words = np.array([0, 0, *atoms], np.int32)
    read = np.empty(42, np.int8), np.empty(42, np.float32)
    head = head_of(0, *((2, 0) if place == "inside" else (0, 1)))
    beside = [one[1:41] for one in read]  # what is beside them would be written to
    read[0][:], read[1][:] = 7, 7.0
    assert not unpack_node(head, words, *beside)
    assert [one[[0, 41]].tolist() for one in read] == [[7, 7], [7.0, 7.0]]
    words[3 if place == "inside" else 2] = 39
    assert unpack_node(head, words, *beside)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_nodes_are_laid_out_with_the_dual_vectors_of_the_store(seed: int, weighted: bool) -> None:
    r = np.random.default_rng([seed, weighted])
    n, k, count = int(r.integers(1, 30)), int(r.integers(1, 70)), int(r.integers(1, 6))
    c = r.uniform(0.1, 9.0, n) if weighted and n > 1 else np.full(n, 0.7)
    is_weighted = bool(np.any(c != c[0]))
    store = DualStore(n, c if is_weighted else None)
    for q in r.integers(0, 52, 9).tolist():
        top = np.minimum(np.floor(np.ldexp(c, q)), 2.0**53).astype(np.int64)
        share = r.choice([0.0, 1.0, 0.3], n)
        store.add(np.where(share == 0.3, r.integers(0, top + 1), (share * top).astype(np.int64)), q)
    each = [node_of(r, k) for _ in range(count)]
    nodes, ids = opened(each, r), r.integers(0, 9, count)
    duals = FirstDuals.of_store(*store.packed(ids))
    pieces, first = ExploredPiece.of(count, 3, k, 0, 4, 8), np.full((count, n), np.nan)
    assert lay_out(nodes, duals, is_weighted, only_read(c), pieces, first)
    for at, (states, weights) in enumerate(each):
        assert pieces.states[at, 0].tolist() == states.tolist()
        assert pieces.weights[at, 0].tolist() == weights.tolist()
        whole, q = store.get(int(ids[at]))
        assert first[at].tolist() == [one * 2.0**-q for one in whole.tolist()]
        node, head = pieces.nodes[at, 0], nodes.heads[at]
        for name in ("bound", "intercept", "rho", "age", "why", "atom", "share"):
            assert node[name] == head[name]
    some = r.permutation(count)[: 1 + seed % count]
    part, again = duals.part(some), np.full((some.size, n), np.nan)
    assert lay_out(nodes._replace(heads=nodes.heads[some]), part, is_weighted, only_read(c), pieces, again)
    assert again.tolist() == first[some].tolist()
    short = duals._replace(packed=duals.packed[:-1])
    assert not lay_out(nodes, short, is_weighted, only_read(c), pieces, first)
    assert not lay_out(nodes._replace(words=nodes.words[:-1]), duals, is_weighted, only_read(c), pieces, first)


def explored(r: np.random.Generator, count: int, k: int, rows: int, first: float) -> ExploredPiece:
    """Pieces as explorations leave them, of drawn numbers; `first`: how often the first node has an offer."""
    m, places, size = 7, 20, 60
    pieces = ExploredPiece.of(count, m, k, rows, places, size)
    for array in pieces:
        if array.dtype.names is None:
            array[...] = r.integers(0, 100, array.shape)
        for name in array.dtype.names or ():
            array[name] = r.integers(-5, 1000, array.shape)
    for of in range(count):
        total = pieces.totals[of, 0]
        for name, most in (("places", places), ("nodes", m), ("duals", m), ("offers", m)):
            total[name] = r.integers(1, most + 1)
        total["bytes"], total["splits"] = r.integers(0, size + 1), r.integers(0, m + 1)
        pieces.sums[of, 0] = r.uniform(0.0, 3.0) if r.random() < first else -1.0
        pieces.nodes["place"][of] = r.integers(-1, 4, m)
        for t in range(m):
            pieces.states[of, t], pieces.weights[of, t] = node_of(r, k)
    return pieces


@pytest.mark.parametrize(("rows", "first"), [(0, 0.0), (0, 1.0), (3, 0.5), (1, 0.5)])
@pytest.mark.parametrize("seed", range(5))
def test_what_explorations_leave_is_gathered_as_plain_python_takes_it(seed: int, rows: int, first: float) -> None:
    r = np.random.default_rng([seed, rows, int(2 * first)])
    count, k = int(r.integers(1, 6)), int(r.integers(1, 70))
    pieces = explored(r, count, k, rows, first)
    found = gather_pieces(pieces)
    places, duals, packed, prices, offers, sums, offered, counts, back, splits = [list[Any]() for _ in range(10)]
    words = list[int]()
    for of in range(count):
        total = {name: int(pieces.totals[of, 0][name]) for name in ("places", "nodes", "duals", "bytes", "offers")}
        places += pieces.places[of, : total["places"]].tolist()
        duals += pieces.duals[of, 1 : total["duals"]].tolist()
        prices += pieces.prices[of, 1 : total["duals"]].tolist()
        packed += pieces.packed[of, : total["bytes"]].tolist()
        splits += pieces.splits[of, : pieces.totals[of, 0]["splits"]].tolist()
        own = [t for t in range(total["offers"]) if t > 0 or pieces.sums[of, 0] >= 0.0]
        offers += pieces.offers[of, own].tolist()
        sums += pieces.sums[of, own].tolist()
        offered.append(len(own))
        left = [t for t in range(total["nodes"]) if pieces.nodes[of, t]["place"] >= 0]
        counts.append(len(left))
        for t in left:
            node, states, weights = pieces.nodes[of, t], pieces.states[of, t], pieces.weights[of, t]
            numbers = [node[name] for name in ("bound", "intercept", "rho", "place", "parent", "parent")]
            sizes = [np.count_nonzero(states == INSIDE), np.count_nonzero(weights)]
            back.append((*numbers, 0, len(words), node["age"], node["why"], *sizes, node["atom"], node["share"]))
            words += words_of(states, weights)
    assert found.totals.tolist() == pieces.totals[:, 0].tolist()
    assert (found.places.tolist(), found.duals.tolist(), found.packed.tolist()) == (places, duals, packed)
    assert found.prices.tolist() == prices
    assert found.prices.shape == (len(duals), rows)
    assert (found.offers.tolist(), found.sums.tolist(), found.offered.tolist()) == (offers, sums, offered)
    assert found.is_first.tolist() == (pieces.sums[:, 0] >= 0.0).tolist()
    assert found.counts.tolist() == counts
    assert found.back.heads.tolist() == back
    assert found.back.words.tolist() == words
    assert units.sizes(pieces) == (len(back), len(words))
    again = found._replace(counts=7 * found.counts)
    gather(pieces, again)
    assert again.counts.tolist() == counts, "what was there before does not matter"
    assert found.splits.tolist() == splits
    kinds = found.totals.dtype, found.places.dtype, found.duals.dtype, found.back.heads.dtype, found.splits.dtype
    assert kinds == (TOTALS, PLACE, DUAL, OPEN_NODE, SPLIT)


def test_a_part_of_open_nodes_has_the_words_from_its_first_to_its_last() -> None:
    r = np.random.default_rng(3)
    each = [node_of(r, 33) for _ in range(7)]
    nodes = opened(each, r)
    for begin in range(7):
        for end in range(begin + 1, 9):
            part = nodes.part(slice(begin, end))
            for at, (states, weights) in enumerate(each[begin:end]):
                read = np.empty(33, np.int8), np.empty(33, np.float32)
                assert unpack_node(part.heads[at], part.words, *read)
                assert (read[0].tolist(), read[1].tolist()) == (states.tolist(), weights.tolist())
            last = nodes.heads["start"][end] if end < 7 else nodes.words.size
            assert part.words.tolist() == nodes.words[nodes.heads["start"][begin] : last].tolist()
