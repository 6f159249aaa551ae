"""Proof and its dual vectors: read back bit for bit, small, and fast to check."""

from __future__ import annotations

import copy
import itertools
import time
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from mipfs.check.leaves import Fixings
from mipfs.check.tree import Report, check
from mipfs.data.instance import Instance
from mipfs.drivers.pieces import ProofPieces
from mipfs.kernels.structures import DUAL, PLACE, TOTALS
from mipfs.kernels.units import OPEN_NODE, ExploredPieces, OpenNodes
from mipfs.proof.duals import DualStore
from mipfs.proof.proof import OPEN, REFUTED, SCREENED, Proof
from mipfs.result.sidecar import ProofClaim

Array = npt.NDArray[np.float64]


@pytest.mark.parametrize("n", [1, 7, 8, 9, 1000])
@pytest.mark.parametrize("weighted", [False, True])
def test_dual_vectors_come_back_bit_for_bit(n: int, weighted: bool) -> None:
    rng = np.random.default_rng(n)
    top = rng.uniform(0.5, 2.0, n) if weighted else None
    store, vectors = DualStore(n, top), []
    for q in (-3, 0, 40):
        high = np.full(n, 2**42) if top is None else np.floor(np.ldexp(top, q)).astype(np.int64)
        kind = rng.integers(0, 4, n)
        inside = (high * rng.random(n)).astype(np.int64)
        for k in (np.where(kind == 0, 0, np.where(kind == 1, inside, high)), np.zeros(n, np.int64), high, inside):
            vectors.append((k, q))
    vectors.append((np.full(n, 2**53), 5))
    for place, (k, q) in enumerate(vectors):
        assert store.add(k, q) == place
    for place, (k, q) in enumerate(vectors):
        back, grid = store.get(place)
        assert grid == q
        np.testing.assert_array_equal(back, k)
    ids = np.arange(len(vectors))[::-1]
    whole, grids = store.get_all(ids)
    assert grids.tolist() == [vectors[place][1] for place in ids]
    np.testing.assert_array_equal(whole, [vectors[place][0] for place in ids])


def test_varying_weights_cost_no_more_than_equal_ones_when_they_are_known() -> None:
    rng = np.random.default_rng(0)
    n, q = 4000, 40
    c = rng.uniform(0.5, 2.0, n)
    k = np.where(rng.random(n) < 0.4, np.floor(np.ldexp(c, q)), 0.0).astype(np.int64)
    sizes = []
    for top in (c, None):
        store = DualStore(n, top)
        store.add(k, q)
        sizes.append(store.n_bytes)
    assert sizes[0] <= n // 8 + n // 16
    assert sizes[1] > 6 * sizes[0]


def test_features_are_fixed_in_many_nodes_as_in_one() -> None:
    one, many = Proof(4, 300), Proof(4, 300)
    fixed = {1: ([7, 3, 9], [0, 1, 0]), 2: ([5], [1]), 3: ([], [])}
    ray = np.array([1.0, 0.0])
    for proof in (one, many):
        proof.split_all(np.array([proof.root]), np.array([0]))
        proof.split_all(np.array([1]), np.array([1]))
    nodes = np.array([3, 4, 2])
    parts = [fixed[k] for k in (1, 2, 3)]
    ends = [
        one.fix(int(node), np.array(f, int), np.array(v), REFUTED, ray)
        for node, (f, v) in zip(nodes, parts, strict=True)
    ]
    rows, features, values = (np.concatenate(part).astype(int) for part in zip(
        *((np.full(len(f), t), f, v) for t, (f, v) in enumerate(parts)), strict=True))  # fmt: skip
    after = many.refute_sides(nodes, rows, features, values, many.keep(ray))
    assert after.tolist() == ends
    assert many.n_nodes == one.n_nodes
    for name in ("_feature", "_children", "_dual", "_multiplier"):
        held = [getattr(proof, name)[: one.n_nodes] for proof in (one, many)]
        np.testing.assert_array_equal(*held)


def test_a_tree_has_the_nodes_that_were_asked_for() -> None:
    proof = Proof(4, 300)
    dual = proof.add_dual(np.zeros(4, np.int64), 10)
    left, right = proof.split(proof.root, 7)
    proof.refute(right)
    features, values = np.arange(10, 210), np.arange(200) % 2
    last = proof.fix(left, features, values, dual)
    assert proof.open_nodes().tolist() == [last]
    assert proof.fix(last, features[:0], values[:0], dual) == last
    with pytest.raises(AssertionError, match="1 nodes are open"):
        proof.arrays()
    with pytest.raises(AssertionError, match="closed already"):
        proof.close(right, dual)
    with pytest.raises(AssertionError, match="split already"):
        proof.split(proof.root, 8)
    proof.close(last, dual, np.ones(3))
    arrays = proof.arrays()
    assert proof.n_leaves == 202
    node, path = left, []
    while arrays["feature"][node] >= 0:
        value = int(arrays["feature"][arrays["children"][node, 0]] < 0 and arrays["children"][node, 0] != last)
        path.append((int(arrays["feature"][node]), value))
        other = arrays["children"][node, 1 - value]
        assert arrays["dual"][other] == dual
        node = int(arrays["children"][node, value])
    assert path == list(zip(features.tolist(), values.tolist(), strict=True))
    assert node == last
    assert not np.any(arrays["dual"][arrays["feature"] < 0] == OPEN)
    assert arrays["multipliers"].tolist() == [[1.0, 1.0, 1.0]]


def claim_all(proof: Proof, data: Instance, M: int, C: float = 1.0) -> Report:
    """Check a proof without an incumbent, of a bound that every dual vector reaches."""
    document = {
        "data_sha256": data.sha256, "scaling": {"kind": data.scaling, "shift": {}, "scale": {}}, "bound": None,
        "schema": 1, "status": "NO_SOLUTION", "objective": None, "gap": None, "selected": [], "weights": {},
        "columns": {}, "intercept": None,
        "n_features": data.n_features, "labels": {"negative": -1, "positive": 1}, "rows": [],
        "certificate": {"kind": "tree", "bound": -1e30, "gap": 1e-4},
        "params": {"M": M, "C": C, "lambda": 0.0, "loss": "hinge", "bias": True, "gap": 1e-4},
    }  # fmt: skip
    return check(document, proof.arrays(), data)


def hinge_dual(rng: np.random.Generator, y: Array, q: int) -> npt.NDArray[np.int64]:
    """40% at the top, 3% inside, y'k = 0."""
    n = y.size
    k = np.zeros(n, dtype=np.int64)
    for sign in (1.0, -1.0):
        side = rng.permutation(np.flatnonzero(y == sign))
        k[side[: n // 5]] = 2**q
        k[side[n // 5 : n // 5 + n // 66]] = rng.integers(1, 2**q, n // 66)
    inside = np.flatnonzero((k > 0) & (k < 2**q))
    surplus = int((k * y.astype(np.int64)).sum())
    for i in inside:
        if surplus and np.sign(y[i]) == np.sign(surplus):
            step = min(int(k[i]), abs(surplus))
            k[i] -= step
            surplus -= int(np.sign(surplus)) * step
    assert surplus == 0
    return k


@pytest.mark.every
@pytest.mark.slow
def test_ten_thousand_leaves_at_five_thousand_samples(tmp_path: Path) -> None:
    n, p, leaves, q = 5000, 100, 10_000, 42
    rng = np.random.default_rng(0)
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    data = Instance.from_arrays(rng.normal(size=(n, p)) + 0.1 * y[:, None], y)
    proof, some = Proof(n, p), [hinge_dual(rng, y, q) for _ in range(50)]
    stack: list[tuple[int, list[int]]] = [(proof.root, [])]
    while proof.n_leaves < leaves:
        node, path = stack.pop(0)
        feature = int(rng.choice(np.setdiff1d(np.arange(p), path)))
        stack += [(child, [*path, feature]) for child in proof.split(node, feature)]
    begin = time.process_time()
    turns = rng.integers(0, n // 2, leaves)
    for turn, (node, _) in zip(turns, stack, strict=True):
        proof.close(node, proof.add_dual(np.roll(some[turn % 50], 2 * turn), q))
    stored = time.process_time() - begin
    assert len(ProofClaim(proof, "tree", 0.0, 1e-4).packed()) < 50e6
    assert proof.duals.n_bytes < 50e6
    begin = time.perf_counter()
    report = claim_all(proof, data, 10)
    seconds = time.perf_counter() - begin
    assert report.accepted, report.reason
    assert (report.n_leaves, report.n_duals) == (leaves, leaves)
    # finding it takes milliseconds per leaf; the bounds are loose, for this machine may be busy
    assert stored < 10e-3 * leaves / 10
    assert seconds < 60.0


def test_screening_leaves_share_one_sort() -> None:
    n, p, M = 60, 7000, 20
    rng = np.random.default_rng(1)
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    data = Instance.from_arrays(rng.normal(size=(n, p)), y)
    k = np.full(n, 2**30)
    proof = Proof(n, p)
    dual = proof.add_dual(k, 30)
    scores = np.square(data.X.T @ (np.ldexp(k.astype(float), -30) * y))
    order = np.argsort(-scores)
    features, values = order[5 : p - 30], np.zeros(p - 35, dtype=np.int64)
    last = proof.fix(proof.root, features, values, dual)
    proof.close(last, dual)
    begin = time.process_time()
    report = claim_all(proof, data, M)
    assert time.process_time() - begin < 10.0
    assert report.accepted, report.reason
    # the least bound by hand: the chain's last features are fixed out, so the first leaf of the best features is least
    arrays, kept = proof.arrays(), np.ones(p, dtype=bool)
    least = np.inf
    for j in features[:50]:
        best = np.sort(np.where(kept, scores, 0.0) * (np.arange(p) != j))[::-1][: M - 1]
        least = min(least, 60.0 - 0.5 * (scores[j] + best.sum()))
        kept[j] = False
    document_bound = least
    assert_least(arrays, data, M, document_bound)


def assert_least(arrays: dict[str, npt.NDArray[np.int64]], data: Instance, M: int, least: float) -> None:
    from mipfs.check.dual_vectors import Duals
    from mipfs.check.leaves import CoverTree, least_bound
    from mipfs.check.statement import Statement

    params = {"M": M, "C": 1.0, "lambda": 0.0, "loss": "hinge", "bias": True}
    statement = Statement({"params": params, "rows": []}, data)
    found, _ = least_bound(
        statement, Duals(statement, arrays), CoverTree(arrays, data.n_features, statement.whole), arrays
    )
    assert found == pytest.approx(least, rel=1e-12)
    assert found <= least * (1 + 1e-15) + 1e-9


def chain(rng: np.random.Generator, count: int) -> npt.NDArray[Any]:
    """A piece of tree whose splits each split the second child of the one above, with `count` dual vectors."""
    depth = int(rng.integers(0, 4))
    places = np.zeros(2 * depth + 1, PLACE)
    for name, least, end in (("dual", OPEN, count), ("outside", -5, 5), ("inside", -5, 5), ("value", 0, 9)):
        places[name] = rng.integers(least, end, places.size)
    places["feature"], places["cause"] = -1, -1
    for t in range(depth):
        for name, value in (("feature", rng.integers(0, 10)), ("outside", 2 * t + 1), ("inside", 2 * t + 2)):
            places[name][2 * t] = value
    return places


def test_units_are_merged_as_their_pieces_are_attached_one_by_one() -> None:
    rng, alive = np.random.default_rng(0), np.array([7, 2, 0, 3, 11, 5, 6, 1, 9])
    for _ in range(30):
        one, other = Proof(2, 12), Proof(2, 12)
        for proof in (one, other):
            low, high = proof.split(proof.root, 4)
            leaves = [low, *proof.split(high, 5)]
        heads, found, wanted, stored = [], [], [], 0
        for node in rng.permutation(leaves)[: rng.integers(1, 4)]:
            fresh, left = int(rng.integers(0, 3)), int(rng.integers(0, 3))
            places, back, head = chain(rng, fresh + 1), np.zeros(left, OPEN_NODE), np.zeros(1, OPEN_NODE)
            head["place"], head["dual"] = node, rng.integers(50, 60)
            back["place"], back["dual"] = rng.integers(0, places.size, left), rng.integers(0, fresh + 1, left)
            totals = np.zeros(1, TOTALS)
            for name, value in (("places", places.size), ("duals", fresh + 1), ("bytes", fresh)):
                totals[name] = value
            duals = np.zeros(fresh, DUAL)
            duals["end"] = np.arange(fresh) + 1
            none = np.zeros(0)
            parts = totals, places, duals, np.zeros(fresh, np.uint8), np.zeros((fresh, 0))
            rest = np.zeros((0, 9), np.float32), none, np.zeros(1, np.int64), np.zeros(1, bool)
            found.append(ExploredPieces(*parts, OpenNodes(back, np.zeros(3, np.int32)), np.array([left]), *rest))
            heads.append(head)
            position = np.append(head["dual"], stored + np.arange(fresh))
            feature = np.append(alive, [SCREENED, -1])[places["feature"]]
            dual = np.where(places["dual"] >= 0, position[places["dual"]], OPEN)
            children = np.stack((places["outside"], places["inside"]), axis=1)
            first = one.attach(int(node), feature, children, dual, places["value"])
            place = np.where(back["place"] > 0, first + back["place"], node)
            wanted += [*zip(place, position[back["dual"]], [3 * (len(heads) - 1)] * left, strict=True)]
            stored += fresh
        merged = ProofPieces(found, heads, [False] * len(found)).merge(other, alive)
        assert merged.heads[["place", "dual", "start"]].tolist() == wanted
        assert one.n_nodes == other.n_nodes
        assert len(other.duals) == stored
        for name in ("_feature", "_children", "_dual", "_value"):
            assert getattr(one, name)[: one.n_nodes].tobytes() == getattr(other, name)[: one.n_nodes].tobytes(), name


def test_trimming_keeps_what_the_bound_needs() -> None:
    proof = Proof(2, 9)
    weak, middle, strong = (proof.add_dual(np.array([k, k]), 4) for k in (1, 2, 3))
    left, right = proof.split(proof.root, 4)
    # the right child is screened and then split on feature 1, and bounded by `middle` as a whole
    feature, children = np.array([SCREENED, 1, -1, -1]), np.array([[1, -1], [2, 3], [0, 0], [0, 0]])
    dual, values = np.array([middle, OPEN, weak, strong]), np.array([5.0, -np.inf, np.nan, np.nan])
    proof.attach(right, feature, children, dual, values)
    below, above = proof.split_whole(left, 0, 3)
    proof.close(below, weak)
    proof.close(above, middle)
    for bound, nodes, leaves, duals in ((5.5, 8, 4, [weak, middle, strong]), (5.0, 5, 3, [weak, middle])):
        proof.trim(bound)
        assert (proof.n_nodes, proof.n_leaves, proof.needed.tolist()) == (nodes, leaves, duals)
    arrays = proof.arrays()
    np.testing.assert_array_equal(arrays["feature"], [4, 9, -1, -1, -1])
    np.testing.assert_array_equal(arrays["children"][:2], [[1, 2], [3, 4]])
    np.testing.assert_array_equal(arrays["dual"], [OPEN, OPEN, 1, 0, 1])
    np.testing.assert_array_equal(arrays["whole"], [[1, 3]])


@pytest.mark.parametrize("room", [1, 2])
def test_screening_tells_values_below_costs_that_swallow_them(room: int) -> None:
    """A cost of 2^110 leaves no digit of a level of 2^48 in a float: the exact values of all say what is fixed."""
    cost = np.array([-(2.0**110), -(2.0**47), 2.0**33, -(2.0**30), 2.0**44])
    p, constant, level = cost.size, 2.0**49, 2.0**48 + 2.0**46
    every = [s for s in itertools.product((0, 1), repeat=p) if sum(s) <= room]
    exact = {s: Fraction(constant) + sum(Fraction(cost[j]) for j in range(p) if s[j]) for s in every}
    statement = SimpleNamespace(forced=np.full(p, -1, dtype=np.int8), M=room, p=p, low=np.empty(0), high=np.empty(0))
    fixed = Fixings(statement)  # type: ignore[arg-type]
    order = np.array([0, 1, 3])
    fixed.screen([constant, *fixed.terms(cost, order).tolist()], cost, order, level)
    least = {j: [min(v for s, v in exact.items() if s[j] == side) for side in (0, 1)] for j in range(p)}
    due = [1 if least[j][0] >= level else 0 if least[j][1] >= level else -1 for j in range(p)]
    np.testing.assert_array_equal(fixed.state, due)
    assert 0 in due or 1 in due


@pytest.mark.parametrize("seed", range(30))
def test_screening_fixes_what_enumeration_says(seed: int) -> None:
    """Every selection that screening leaves out is worth the level, and whoever alone cannot be worth less is fixed."""
    r = np.random.default_rng(seed)
    p, M = 7, int(r.integers(0, 8))
    statement = SimpleNamespace(forced=np.full(p, -1, dtype=np.int8), M=M, p=p, low=np.empty(0), high=np.empty(0))
    statement.forced[0] = r.integers(-1, 2)
    fixed = Fixings(statement)  # type: ignore[arg-type]
    before = [(int(j), int(r.integers(0, 2))) for j in r.permutation(np.arange(1, p))[: r.integers(0, 4)]]
    for step in before:
        fixed.step(*step)
    cost = np.round(r.normal(size=p), 1)
    negative = np.flatnonzero(cost < 0)
    order = negative[np.argsort(cost[negative], kind="stable")]
    held = {0: int(statement.forced[0])} if statement.forced[0] >= 0 else {}
    held |= dict(before)
    every = [s for s in itertools.product((0, 1), repeat=p) if sum(s) <= M and all(s[j] == v for j, v in held.items())]
    if not every:
        assert fixed.is_empty
        return
    values = {s: float(cost @ s) for s in every}
    bound = min(values.values())
    level = max(bound + 0.01, float(np.median([*values.values()])) + 0.05)
    assert np.sum(fixed.terms(cost, order)) == pytest.approx(bound, abs=1e-12)
    state, counts = fixed.state.copy(), (fixed.n_inside, fixed.n_free)
    fixed.screen([bound], cost, order, level)
    for j in range(p):
        other = [value for s, value in values.items() if s[j] != fixed.state[j]]
        if state[j] < 0 <= fixed.state[j]:
            assert min(other, default=np.inf) >= level - 1e-12
        elif state[j] < 0:
            for side in (0, 1):
                there = [value for s, value in values.items() if s[j] == side]
                assert min(there, default=-np.inf) < level + 1e-12
    kept = frozenset(np.flatnonzero(fixed.state == 1).tolist())
    assert set(fixed.inside[: fixed.n_inside].tolist()) == kept
    assert fixed.n_free == np.count_nonzero(fixed.state < 0)
    taken = [j for j in range(1, p) if state[j] < 0 <= fixed.state[j]][:1]
    for j in taken:  # a split on what was screened: one side as before, the other one empty
        for side in (0, 1):
            fixed.step(j, side)
            assert fixed.is_empty == (side != fixed.state[j])
            fixed.step(j, side - 2)
    assert not fixed.is_empty
    fixed.screen([level], cost, order, level)
    assert fixed.is_empty, "what reaches the level as a whole is closed"
    fixed.restore()
    assert not fixed.is_empty
    fixed.restore()
    np.testing.assert_array_equal(fixed.state, state)
    assert (fixed.n_inside, fixed.n_free) == counts


def test_a_tree_grows_and_leaves_alone_a_copy_of_it_and_what_is_being_read() -> None:
    proof = Proof(3, 400)
    node, high = proof.split(proof.root, 0)
    proof.close(high, 0)
    kept, room = copy.copy(proof), proof._children.shape[0]
    seen = memoryview(proof._dual)
    for feature in range(1, 400):
        node, high = proof.split(node, feature)
        proof.refute(high)
    assert (proof.n_nodes, proof.open_nodes().tolist()) == (801, [node])
    assert np.count_nonzero(proof._dual[:801] == REFUTED) == 399
    assert kept._children.shape[0] == room < 801
    assert len(seen) == room
    assert seen[proof.root] == OPEN
