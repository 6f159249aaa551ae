"""A plain proof over many atoms is checked on the few that its bound rests on: with the bound of all costs."""

from __future__ import annotations

import itertools
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import sparse

import mipfs
from mipfs.check import dual_vectors, few
from mipfs.check.dual_vectors import Duals
from mipfs.check.few import FewAtomsBound, over_few
from mipfs.check.leaves import CoverTree, least_bound
from mipfs.check.statement import Statement
from mipfs.data.blocked import Blocked, split_in_memory
from mipfs.data.instance import Instance
from mipfs.problem import Problem
from mipfs.proof.proof import Proof
from mipfs.result.result import Result
from tests.certificate.trees import checked

Array = npt.NDArray[np.float64]
N, P = 12, 400


def made(rng: np.random.Generator, kind: str) -> Instance:
    """Data with equal, zero, tiny and huge columns, dense, sparse and centred, or in blocks of columns."""
    X: Any = rng.normal(size=(N, P)) * 10.0 ** rng.choice([-150, -3, 0, 2], P, p=[0.02, 0.3, 0.48, 0.2])
    X[:, 7] = X[:, 5]
    X[:, 11] = 0.0
    y = np.where(np.arange(N) % 2 == 0, 1.0, -1.0)
    if kind in ("sparse", "centred", "blocks"):
        X = sparse.csc_array(np.where(rng.random((N, P)) < 0.4, X, 0.0))
    if kind == "blocks":
        X = split_in_memory(X, 37)
    return Instance.from_arrays(X, y, scale="standard" if kind == "centred" else "none")


def chain(rng: np.random.Generator, depth: int) -> Proof:
    """A tree that splits on atoms, forced and costly ones too, with dual vectors on its leaves."""
    proof = Proof(N, P)
    duals = [proof.add_dual(rng.integers(0, 1 << 20, N), int(q)) for q in rng.integers(19, 23, int(rng.integers(1, 4)))]
    open_nodes = [(proof.root, frozenset[int]())]
    for _ in range(depth):
        node, above = open_nodes.pop(int(rng.integers(len(open_nodes))))
        j = int(rng.choice([k for k in range(P) if k not in above]))
        open_nodes += [(child, above | {j}) for child in proof.split(node, j)]
    for node, _ in open_nodes:
        proof.close(node, int(rng.choice(duals)))
    return proof


def stated(data: Instance, **given: Any) -> Statement:
    params = {"M": 5, "C": 1.0, "lambda": 0.0, "loss": "squared-hinge", "bias": False} | given
    return Statement({"params": params, "rows": []}, data)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", ["dense", "sparse", "centred", "blocks"])
@pytest.mark.parametrize("seed", range(8))
def test_the_bound_is_that_of_all_costs(kind: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng([seed, len(kind)])
    data, proof = made(rng, kind), chain(rng, seed % 4)
    names = [data.feature_names[j] for j in rng.choice(P, 4, replace=False)]
    lam: Any = 0.25 if seed % 2 else rng.uniform(0, 3, P).tolist()
    forced = {"forced_in": names[: seed % 3], "forced_out": names[2 : 2 + seed % 2]}
    statement = stated(data, M=int(rng.integers(0, 7)), **{"lambda": lam}, **forced)
    monkeypatch.setattr(few, "NUMBERS_PER_BLOCK", 2 * P)  # two dual vectors at a time
    monkeypatch.setattr(dual_vectors, "NUMBERS_PER_BLOCK", 64)  # and many blocks of columns
    arrays = proof.arrays()
    monkeypatch.setattr(dual_vectors, "COLUMNS_PER_BLOCK", 29)
    duals, steps = Duals(statement, arrays), CoverTree(arrays, P, statement.whole)
    over, source, renamed = over_few(statement, duals, steps)
    assert isinstance(source, FewAtomsBound)
    assert over.p < P / 3
    found = least_bound(over, source, renamed, arrays)
    whole = least_bound(statement, duals, steps, arrays)
    assert found == (pytest.approx(whole[0], rel=1e-13), whole[1])  # a product of BLAS depends on its shape
    # by hand, of all costs: the least of every leaf
    g, cost = zip(*map(duals.block_of, range(duals.n_blocks)), strict=True)
    constants, costs = list(itertools.chain(*g)), np.concatenate(cost)
    least, fixed = np.inf, dict[int, int]()
    on = {j: value for j, value in enumerate(statement.forced.tolist()) if value >= 0}
    for j, code in steps.steps:
        if j >= 0:
            fixed = {**fixed, j: code} if code >= 0 else {k: v for k, v in fixed.items() if k != j}
            continue
        both = {**on, **fixed}
        room = statement.M - sum(both.values())
        if room < 0 or any(on.get(k, v) != v for k, v in fixed.items()):
            continue
        row = costs[steps.dual[code]]
        inside = [k for k, value in both.items() if value]
        rest = np.sort(np.minimum(np.delete(row, [*both]), 0.0))[:room]
        least = min(least, constants[steps.dual[code]] + row[inside].sum() + rest.sum())
    assert found[0] == pytest.approx(least, rel=1e-12)


def test_other_proofs_are_checked_over_all_atoms() -> None:
    rng = np.random.default_rng(0)
    data, proof = made(rng, "dense"), chain(rng, 2)
    arrays = proof.arrays()

    def is_few(statement: Statement, arrays: Any = arrays) -> bool:
        tree = CoverTree(arrays, P, statement.whole)
        return isinstance(over_few(statement, Duals(statement, arrays), tree)[1], FewAtomsBound)

    params = {"M": 5, "C": 1.0, "lambda": 0.0, "loss": "squared-hinge", "bias": False}
    row = {"name": "r", "terms": {"x1": 1.0, "x2": 1.0}, "lb": None, "ub": 1.0, "origin": ""}
    assert is_few(stated(data))
    assert not is_few(stated(data, M=None))
    assert not is_few(Statement({"params": params, "rows": [row]}, data))
    scaled = {"params": params, "rows": [], "atoms": {"scale": [2.0] * P}}
    assert not is_few(Statement(scaled, data))
    root = Proof(N, P)
    d = root.add_dual(np.ones(N, dtype=np.int64), 2)
    nodes = np.array([1 << 30, -1]), np.array([[1, -1], [0, 0]]), np.array([d, d]), np.array([0.0, np.nan])
    root.attach(root.root, *nodes)  # the root is screened
    assert not is_few(stated(data), root.arrays())


def wide(p: int, blocks: int | None) -> tuple[Instance, Problem]:
    """Sparse data of very many columns, in blocks of them or as one matrix."""
    rng, n, count = np.random.default_rng(3), 60, 40_000
    at = np.sort(rng.choice(p, count, replace=False))
    X: Any = sparse.csc_array((rng.random(count), (rng.integers(0, n, count), at)), shape=(n, p))
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    data = Instance.from_arrays(X if blocks is None else split_in_memory(X, blocks), y)
    return data, Problem(data, loss="squared-hinge", bias=False, M=5, C=1.0)


@pytest.mark.slow
@pytest.mark.parametrize("blocks", [1 << 17, None])
def test_nothing_of_the_check_is_as_long_as_the_features_are_many(
    blocks: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    p = 3_000_000
    data, problem = wide(p, blocks)
    result = mipfs.solve(problem, "kelley", T=2)
    saved = result.save(tmp_path / "r.json")
    _ = data.sha256
    result = Result.load(tmp_path / "r.json")
    monkeypatch.setattr(dual_vectors, "COLUMNS_PER_BLOCK", 1 << 17)
    monkeypatch.setattr(few, "COLUMNS_PER_BLOCK", 1 << 17)
    tracemalloc.start()
    report = mipfs.verify(result, data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert report.accepted, (report.reason, saved)
    assert peak < 5 * p, f"{peak / p:.1f} bytes a feature"


def test_columns_that_are_left_out_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, problem = wide(60_000, 5000)
    result = mipfs.solve(problem, "kelley", T=2)
    whole = Blocked.pieces
    monkeypatch.setattr(Blocked, "pieces", lambda X: itertools.islice(whole(X), 7))
    assert checked(result, data, tmp_path).reason == "the blocks of the columns are not all columns"
    monkeypatch.setattr(Blocked, "pieces", lambda X: itertools.islice(whole(X), 1, None))
    assert checked(result, data, tmp_path).reason == "the blocks of the columns are not one after the other"


def test_a_claim_above_what_is_proven_is_refused(tmp_path: Path) -> None:
    data, problem = wide(20_000 * 3, 5000)
    result = mipfs.solve(problem, "kelley", T=2)
    assert checked(result, data, tmp_path).accepted
    bound = result.bound

    def higher(document: dict[str, Any]) -> None:
        document["certificate"]["bound"] = bound * (1 + 1e-6)

    report = checked(result, data, tmp_path, edit=higher)
    assert not report.accepted
    assert "proves only" in report.reason
