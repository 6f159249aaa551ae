"""The open nodes of a tree beside Python's own heap of tuples; forged nodes are refused; multipliers by number."""

from __future__ import annotations

import heapq
import math
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mipfs.data.instance import Instance
from mipfs.drivers import waiting
from mipfs.drivers.pieces import one_after_the_other
from mipfs.drivers.tree import SearchTree
from mipfs.drivers.tree_proof import MultiplierStore
from mipfs.drivers.waiting import NodeQueue, of_arrays, pack_open_node, unpack_open_node
from mipfs.inner.boolean_node import FREE, INSIDE, OUTSIDE, WarmStart
from mipfs.kernels.units import OpenNodes
from mipfs.problem import Problem
from mipfs.proof.evidence import empty_proof
from mipfs.proof.saved import check_open
from mipfs.settings import TreeSettings

K = 37
SHARES = {"push": 0.35, "pop": 0.3, "give back": 0.15, "first": 0.1, "clear": 0.02, "keep": 0.08}
"""How often open nodes are pushed, taken, and so on."""
Told = tuple[Any, ...]


def drawn(r: np.random.Generator, place: int) -> tuple[OpenNodes, Told]:
    """An open node, of one of few bounds, and what it is in plain Python."""
    states = r.choice([FREE, INSIDE, OUTSIDE], K).astype(np.int8)
    weights = np.where(r.random(K) < 0.3, r.normal(size=K), 0.0).astype(np.float32)
    bound = float(r.choice([-math.inf, 0.0, 1.0, 2.0, 2.0 + 1e-15, r.normal()]))
    warm = WarmStart(weights, float(r.normal()), float(r.normal()))
    told = bound, place, place + 5, states.tobytes(), weights.tobytes(), warm.b, warm.rho
    return pack_open_node(states, warm, bound, place, place + 5), told


def said(nodes: OpenNodes) -> list[Told]:
    """What open nodes are in plain Python."""
    found = list[Told]()
    for at, head in enumerate(nodes.heads):
        states, warm = unpack_open_node(nodes, at, K)
        numbers = float(head["bound"]), int(head["place"]), int(head["dual"])
        found.append((*numbers, states.tobytes(), warm.w.tobytes(), warm.b, warm.rho))
    return found


def joined(parts: list[OpenNodes]) -> OpenNodes:
    """Open nodes, one after the other."""
    if not parts:
        return OpenNodes.empty()
    heads = one_after_the_other([part.heads for part in parts])
    sizes = [part.words.size for part in parts]
    heads["start"] += np.repeat(np.cumsum(sizes) - sizes, [part.heads.size for part in parts])
    return OpenNodes(heads, np.concatenate([part.words for part in parts]))


class Oracle:
    """Open nodes in a heap: by bound, then by who came first."""

    def __init__(self) -> None:
        self.heap = list[tuple[float, int, Told]]()
        self.count = 0

    def extend(self, each: list[Told]) -> None:
        for told in each:
            heapq.heappush(self.heap, (told[0], self.count, told))
            self.count += 1

    def pop(self, count: int) -> list[tuple[float, int, Told]]:
        return [heapq.heappop(self.heap) for _ in range(min(count, len(self.heap)))]


@pytest.mark.sampled(13)
@pytest.mark.parametrize("in_file", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_nodes_come_as_from_a_heap(seed: int, in_file: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pushed, taken, given back whole or less those that were closed, kept and taken up: in any order of these."""
    monkeypatch.setattr(waiting, "LEAST_LITTER", 0)
    monkeypatch.setattr(waiting, "MOVED", 3)
    r, place, tidied = np.random.default_rng(seed), 0, 0
    open_nodes, oracle = NodeQueue(tmp_path if in_file else None), Oracle()
    for _ in range(150):
        what = r.choice(list(SHARES), p=list(SHARES.values()))
        if what == "push":
            some = [drawn(r, place + k) for k in range(int(r.integers(0, 9)))]
            place += len(some)
            open_nodes.extend(joined([nodes for nodes, _ in some]))
            oracle.extend([told for _, told in some])
        elif what in ("pop", "give back"):
            count, before = int(r.integers(1, 12)), len(open_nodes._tape)
            taken, wanted = open_nodes.pop(count, K), oracle.pop(count)
            tidied += len(open_nodes._tape) < before
            assert said(taken) == [told for *_, told in wanted]
            if what == "give back" and wanted:
                left = r.random(len(wanted)) < 0.7  # as a unit is, of whose neighbours some were closed
                open_nodes.extend(taken._replace(heads=taken.heads[left]), in_order=True)
                for one, is_left in zip(wanted, left.tolist(), strict=True):
                    if is_left:
                        heapq.heappush(oracle.heap, one)
        elif what == "first" and oracle.heap:
            assert said(open_nodes.first(K)) == [oracle.heap[0][2]]
        elif what == "clear":
            heads, wanted = open_nodes.clear(), [told for *_, told in oracle.heap]
            assert sorted(heads["place"].tolist()) == sorted(told[1] for told in wanted)
            oracle.heap.clear()
            assert len(open_nodes._tape) == 0
        elif what == "keep":
            kept = {name: np.array(array) for name, array in open_nodes.arrays([], K).items()}
            open_nodes = NodeQueue(tmp_path if in_file else None)
            open_nodes.extend(of_arrays(kept, K), in_order=True)
        assert len(open_nodes) == open_nodes.heads.size == len(oracle.heap)
        assert open_nodes.least == min((bound for bound, *_ in oracle.heap), default=math.inf)
        assert sorted(open_nodes.heads["place"].tolist()) == sorted(told[1] for *_, told in oracle.heap)
    assert said(open_nodes.pop(10**6, K)) == [told for *_, told in oracle.pop(10**6)]
    assert tidied, "no words were ever written anew"


@pytest.mark.parametrize(
    ("bounds", "cutoff", "per_node", "work", "count"),
    [
        ([0.0, 0.05, 0.1, 0.2, 0.9], 1.0, 0.2, 9.0, 3),
        ([0.0, 0.05, 0.1, 0.2, 0.9], 1.0, 0.2, 0.5, 4),
        ([0.0, 0.05, 0.1, 0.2, 0.9], 1.0, 0.8, 9.0, 2),
        ([10.0, 10.05, 10.1, 10.2, 10.9], 11.0, 0.0, 9.0, 5),
        ([-math.inf, 0.0, 1.0], 2.0, 0.0, 9.0, 3),
        ([0.0, 1.0], math.inf, 0.0, 9.0, 2),
        ([], 1.0, 0.0, 9.0, 0),
    ],
    ids=[
        "the least is far",
        "and the tree has just begun",
        "and nodes are dear",
        "the least is near",
        "no bound yet",
        "no incumbent yet",
        "nothing is open",
    ],
)
def test_nodes_are_within_reach_where_they_lift_the_least_bound_or_it_is_near(
    bounds: list[float], cutoff: float, per_node: float, work: float, count: int
) -> None:
    warm, open_nodes = WarmStart(np.zeros(K, np.float32), 0.0, 0.0), NodeQueue()
    for place, bound in enumerate(bounds):
        open_nodes.extend(pack_open_node(np.full(K, FREE, np.int8), warm, bound, place, place))
    settings = TreeSettings(level=0.1, early=1.0, level_early=0.2, near=0.1, dear=0.5, steps=20)
    tree = SimpleNamespace(waiting=open_nodes, cutoff=cutoff, settings=settings, per_node=per_node, relaxed_work=work)
    tree.lifted_to = partial(SearchTree.lifted_to, tree)
    assert SearchTree.within_reach.fget(tree) == count  # type: ignore[attr-defined]


@pytest.mark.parametrize("in_file", [False, True])
def test_what_is_kept_has_the_nodes_that_were_taken_before_the_others_in_the_order_in_which_they_came(
    in_file: bool, tmp_path: Path
) -> None:
    r = np.random.default_rng(8)
    each = [drawn(r, place) for place in range(30)]
    open_nodes = NodeQueue(tmp_path if in_file else None)
    open_nodes.extend(joined([nodes for nodes, _ in each]))
    taken = [open_nodes.pop(4, K), open_nodes.pop(5, K)]
    taken[1] = taken[1]._replace(heads=taken[1].heads[[0, 3]])  # the others were closed
    there = [told for part in taken for told in said(part)]
    gone = 3
    kept = open_nodes.arrays(taken, K)
    again = of_arrays(kept, K)
    assert said(again)[: len(there)] == there
    rest = said(again)[len(there) :]
    assert [told[1] for told in rest] == sorted(told[1] for told in rest)
    assert len(rest) + len(there) == 30 - gone
    assert len(open_nodes) == 21, "what is kept goes on waiting"
    resumed = NodeQueue()
    resumed.extend(again, in_order=True)
    wanted = sorted(there + rest, key=lambda told: told[:2])
    assert said(resumed.pop(99, K)) == wanted
    new, told = drawn(r, 99)
    for one in (resumed, open_nodes):
        one.extend(new)
    assert resumed.heads["order"].tolist() == [30]
    assert said(resumed.pop(1, K)) == [told]
    assert open_nodes.heads["order"].max() == 30


def test_words_are_written_anew_once_most_are_of_nodes_that_were_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "LEAST_LITTER", 0)
    r, open_nodes = np.random.default_rng(4), NodeQueue()
    open_nodes.extend(joined([drawn(r, place)[0] for place in range(40)]))
    open_nodes.clear()
    open_nodes.extend(joined([drawn(r, place)[0] for place in range(40)]))
    written, was_anew = len(open_nodes._tape), 0
    for _ in range(40):
        open_nodes.pop(1, K)
        live = 4 * int(waiting.words_of(open_nodes.heads, K).sum())
        is_anew = written > waiting.LITTER * live
        assert len(open_nodes._tape) == (live if is_anew else written)
        written, was_anew = len(open_nodes._tape), was_anew + is_anew
    assert 3 <= was_anew <= 10


def kept_nodes() -> dict[str, Any]:
    """What is kept of five nodes."""
    open_nodes = NodeQueue()
    open_nodes.extend(joined([drawn(np.random.default_rng(5), place)[0] for place in range(5)]))
    kept = {name: np.array(array) for name, array in open_nodes.arrays([], K).items()}
    assert len(said(of_arrays(kept, K))) == 5
    return kept


FORGED: dict[str, Any] = {
    "a record less": {"node_bound": lambda a: a[1:]},
    "a number more": {"node_dual": lambda a: np.append(a, 0)},
    "records in a table": {"node_bound": lambda a: a.reshape(1, -1)},
    "words in a table": {"node_words": lambda a: a.reshape(1, -1)},
    "words less": {"node_words": lambda a: a[:-1]},
    "no words": {"node_words": lambda a: a[:0]},
    "words of 64 bits": {"node_words": lambda a: a.astype(np.int64)},
    "words that are fractions": {"node_words": lambda a: a.view(np.float32)},
    "words without a sign": {"node_words": lambda a: a.view(np.uint32)},
    "a place of words that is far": {"node_start": lambda a: np.append(a[:-1], 2**63 - 1)},
    "a place of words before all": {"node_start": lambda a: a - 1},
    "fewer than no atoms inside": {"node_inside": lambda a: -a - 1},
    "more weights": {"node_weights": lambda a: a + 2**30},
    "an atom inside that is none": {"node_words": lambda a: np.append(a[:2], np.append(np.int32(K), a[3:]))},
    "an atom inside below all": {"node_words": lambda a: np.append(a[:2], np.append(np.int32(-1), a[3:]))},
    "bounds that are names": {"node_bound": lambda a: np.array(["x"] * a.size)},
    "a bound that is no number": {"node_bound": lambda a: np.append(a[:-1], np.nan)},
    "an order that counts no further": {"node_order": lambda a: np.append(a[:-1], 2**63 - 1)},
    "an order before the first": {"node_order": lambda a: a - 1},
    "places that are no whole numbers": {"node_place": lambda a: a + 0.5},
    "places of more bits": {"node_age": lambda a: a.astype(np.int64) + 2**40},
    "complex bounds": {"node_bound": lambda a: a + 1j},
}


@pytest.mark.parametrize("forged", FORGED)
def test_forged_nodes_are_refused(forged: str) -> None:
    kept = kept_nodes()
    for name, forge in FORGED[forged].items():
        kept[name] = forge(kept[name])
    with pytest.raises(ValueError, match="node"):
        of_arrays(kept, K)


@pytest.mark.parametrize("size", [0, 1, K - 6, K + 32])
def test_nodes_of_other_atoms_are_refused(size: int) -> None:
    with pytest.raises(ValueError, match="other atoms"):
        of_arrays(kept_nodes(), size)


def test_open_nodes_that_are_closed_absent_or_doubled_are_refused() -> None:
    data = Instance.from_arrays(np.eye(4), [1, -1, 1, -1])
    proof = empty_proof(Problem(data, M=2))
    dual = proof.add_dual(np.array([1, 1, 1, 1]), 2)
    out, inside = proof.split(proof.root, 1)
    below = proof.split(inside, 0)
    proof.close(below[0], dual)
    check_open(proof, [])
    check_open(proof, [below[1], out])
    for places in ([proof.root], [inside], [below[0]], [out, below[0]], [out, out], [-1], [proof.n_nodes], [2**62]):
        with pytest.raises(ValueError, match="open"):
            check_open(proof, places)


@pytest.mark.parametrize("seed", range(5))
def test_multipliers_have_one_number_each(seed: int) -> None:
    r = np.random.default_rng(seed)
    rows = 1 + seed % 3
    prices, oracle = MultiplierStore(rows), list[list[float]]()
    for _ in range(60):
        ys = r.choice([0.0, 0.0, 1.5, -2.0], (int(r.integers(0, 5)), rows))
        numbers = prices.add_all(ys) if r.random() < 0.5 else np.array([prices.add(y) for y in ys], dtype=np.int64)
        for y, number in zip(ys.tolist(), numbers.tolist(), strict=True):
            if not any(y):
                assert number == -1
                continue
            if y not in oracle:
                oracle.append(y)
            assert number == oracle.index(y)
        asked = r.integers(-1, len(oracle), 4) if oracle else np.full(4, -1)
        assert prices.of(asked).tolist() == [oracle[k] if k >= 0 else [0.0] * rows for k in asked.tolist()]
        assert prices.of(np.empty(0, dtype=np.int64)).shape == (0, rows)
        if oracle and r.random() < 0.2:
            held = r.integers(-1, len(oracle), 3)
            renumbered = prices.only(held)
            left = sorted({k for k in held.tolist() if k >= 0})
            assert renumbered.tolist() == [left.index(k) if k >= 0 else -1 for k in held.tolist()]
            oracle = [oracle[k] for k in left]
        assert len(prices) == len(oracle)
        assert prices.array().tolist() == oracle
        assert prices.array().shape == (len(oracle), rows)


def test_what_multipliers_are_made_of_may_change_afterwards() -> None:
    y, prices = np.array([1.0, 2.0]), MultiplierStore(2)
    number = prices.add(y)
    y[:] = 0.0
    assert prices[number].tolist() == [1.0, 2.0]


def test_without_rows_there_are_no_multipliers() -> None:
    prices = MultiplierStore(0)
    assert prices.add_all(np.empty((3, 0))).tolist() == [-1] * 3
    assert prices.of(np.array([-1, -1])).shape == (2, 0)
