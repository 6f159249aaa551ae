"""The tree of `branch` does not depend on who explores its units: result and certificate are the same bytes."""

from __future__ import annotations

import itertools
import pickle
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import mipfs
from mipfs.atoms.groups import Groups
from mipfs.branching import pseudo_costs
from mipfs.data.instance import Instance
from mipfs.drivers.executor import Executor, Lost
from mipfs.drivers.tree import SearchTree
from mipfs.inner.unit import NodeUnit, UnitResult
from mipfs.kernels.structures import SPLIT
from mipfs.kernels.units import OpenNodes
from mipfs.plumbing import machine
from mipfs.problem import Problem
from mipfs.result.result import Result, Status
from mipfs.selection.selection import Extras, Rows
from mipfs.settings import BranchSettings, TreeSettings
from tests.drivers.test_resumed import written

LARGE = BranchSettings(tree=TreeSettings(least_units=2))
"""Units of as many nodes as one compiled call takes."""
KINDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "hinge": ({}, {}),
    "squared hinge": ({"loss": "squared-hinge"}, {}),
    "logistic": ({"loss": "logistic", "noise": 4.0}, {}),
    "class weights": ({"class_weight": {"1": 3.0, "-1": 0.5}}, {}),
    "sample weights": ({"weights": True}, {}),
    "rows": ({"rows": True, "C": 10.0}, {}),
    "rows, logistic": ({"rows": True, "loss": "logistic"}, {}),
    "penalties": ({"lam": 0.3, "M": None, "p": 16}, {}),
    "no limit": ({"M": None, "p": 12}, {}),
    "list by gap": ({"p": 16, "M": 4}, {"pool_gap": 0.1}),
    "list by size": ({"p": 14, "M": 4, "rows": True}, {"pool_size": 5}),
    "groups": ({"groups": True, "p": 12, "n": 40, "M": 4}, {}),
    "rows, an extra variable": ({"extra": True, "n": 40, "p": 14, "M": 5}, {}),
    "groups, rows": ({"groups": True, "p": 10, "n": 40, "rows": True}, {}),
    "one of many": ({"p": 90, "M": 1, "n": 30}, {}),
    "two of many": ({"p": 90, "M": 2, "n": 30}, {}),
    "three of many": ({"p": 50, "M": 3, "n": 30}, {}),
    "three of many, rows": ({"p": 40, "M": 3, "n": 30, "rows": True}, {}),
    "no bias": ({"bias": False}, {}),
    "large units": ({"noise": 4.0}, {"batch": 40, "settings": LARGE}),
    "large units, rows": ({"noise": 4.0, "rows": True}, {"batch": 40, "settings": LARGE}),
    "another rule": ({}, {"branching": "most-fractional"}),
    "a rule that learns": ({}, {"branching": "pseudo-costs"}),
    "a rule that learns, with rows": ({"rows": True}, {"branching": "reliability"}),
    "rows that are separated": ({"budget": True}, {"separate": "covers"}),
    "rows that are separated, a rule that learns": (
        {"budget": True, "noise": 4.0},
        {"separate": "covers", "branching": "pseudo-costs", "batch": 8},
    ),
}


def made(
    seed: int, n: int = 60, p: int = 20, M: int | None = 6, noise: float = 2.0, rows: bool = False,
    groups: bool = False, weights: bool = False, extra: bool = False, budget: bool = False, **more: Any,
) -> Problem:  # fmt: skip
    """A problem of some tens or hundreds of nodes."""
    r = np.random.default_rng([n, p, seed])
    X = r.normal(size=(n, p)) * r.uniform(0.3, 2.0, p)
    y = np.where(X[:, :8] @ r.normal(size=8) + noise * r.normal(size=n) > 0.0, 1, -1)
    data = Instance.from_arrays(X, y, sample_weight=r.uniform(0.5, 2.0, n) if weights else None)
    atoms = Groups(data, {f"g{k}": [k, (k + 5) % p] for k in range(p)}, scaling="norm") if groups else None
    problem = Problem(data, M=M, atoms=atoms, **({"C": 1.0} | more))
    if budget:
        return problem.with_rows(r.integers(2, 12, size=(2, p)).astype(float), -np.inf, [17.0, 23.0])
    if extra:
        A = np.hstack([r.integers(0, 3, (2, p)), [[-1.0], [1.0]]])
        z = Extras(("z",), np.array([0.0]), np.array([2.0]), np.array([False]))
        return problem.replace(
            rows=Rows(sparse.csr_array(A), np.full(2, -np.inf), np.array([1.0, 5.0]), ("a", "b"), ("", ""), z)
        )
    return problem.with_rows(r.integers(0, 2, size=(2, p)).astype(float), -np.inf, [3.0, 2.0]) if rows else problem


class Scattered(Executor):
    """Gives units back in an order that is drawn, late, and loses some; units and what is found travel as bytes.

    Parameters
    ----------
    seed : int
    losing : float, share of the units that are lost
    """

    def __init__(self, seed: int, losing: float = 0.1) -> None:
        self.random = random.Random(seed)
        self.losing = losing
        self.handles = itertools.count()
        self.lost = 0
        self.is_open = False

    def open(self, tree: SearchTree) -> None:
        assert not self.is_open
        self.is_open = True
        self.solver = pickle.loads(pickle.dumps(tree.solver()))
        self.waiting, self.found = dict[int, bytes](), dict[int, bytes]()

    def submit(self, unit: NodeUnit, seconds: float | None) -> int:
        handle = next(self.handles)
        self.waiting[handle] = pickle.dumps(unit)
        return handle

    def result(self, handle: int, seconds: float) -> UnitResult | None:
        if self.random.random() < self.losing and handle in self.waiting:
            del self.waiting[handle]
            self.lost += 1
            raise Lost
        for chosen in self.random.sample(sorted(self.waiting), min(len(self.waiting), self.random.randint(0, 3))):
            explored = self.solver.explore(pickle.loads(self.waiting.pop(chosen)), None)
            self.found[chosen] = pickle.dumps(explored)
        return pickle.loads(self.found.pop(handle)) if handle in self.found else None

    def withdraw(self, handle: int) -> UnitResult | None:
        self.waiting.pop(handle, None)
        return None

    def close(self) -> None:
        self.is_open = False


def bytes_of(unit: NodeUnit) -> bytes:
    """All arrays of a unit."""
    arrays = *unit.nodes, *unit.duals, unit.limits, unit.prices
    return b"".join(array.tobytes() for array in arrays)


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> list[list[NodeUnit]]:
    """The units of every batch of the trees of a test; eight threads may work."""
    seen, before = list[list[NodeUnit]](), SearchTree.units

    def units(tree: SearchTree, nodes: OpenNodes, cutoff: float) -> list[NodeUnit]:
        found = before(tree, nodes, cutoff)
        if tree.run.problem.data.n_samples >= 30:  # smaller ones only warm kernels up
            seen.append(found)
        return found

    monkeypatch.setattr(SearchTree, "units", units)
    monkeypatch.setattr(machine, "cores", lambda: 8)
    return seen


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kind", KINDS)
def test_the_bytes_do_not_depend_on_who_explores(
    kind: str, seed: int, batches: list[list[NodeUnit]], tmp_path: Path
) -> None:
    drawn, options = KINDS[kind]
    problem = made(seed, **drawn)
    runs: list[dict[str, Any]] = [{"threads": count} for count in (1, 2, 3, 8)]
    runs += [{"executor": Scattered(k), "threads": 2} for k in (2 * seed, 2 * seed + 1)]
    wanted = None
    for number, run in enumerate(runs):
        batches.clear()
        result = mipfs.solve(problem, "branch", gap=1e-6, **options, **run)
        assert result.status is Status.OPTIMAL
        found = written(result, tmp_path / str(number)), [[bytes_of(unit) for unit in units] for units in batches]
        wanted = found if wanted is None else wanted
        assert found[0][0] == wanted[0][0], f"other JSON: {run}"
        assert found[0][1] == wanted[0][1], f"another certificate: {run}"
        assert found[1] == wanted[1], f"other units: {run}"
    report = mipfs.verify(result, problem.data)
    assert report.accepted, report.reason


@pytest.mark.slow
def test_what_splits_are_worth_is_learnt_in_the_order_of_units(
    batches: list[list[NodeUnit]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what all units of a batch are told is fixed when it is handed out."""
    learnt = list[list[bytes]]()

    def kept(memory: Any, splits: Any, before: Any = pseudo_costs.learn) -> None:
        learnt[-1].append(splits.tobytes())
        assert np.all(splits["gain"] >= 0.0)
        assert np.all((splits["share"] >= 0.0) & (splits["share"] <= 1.0))
        assert np.all(np.isin(splits["inside"], (0, 1)))
        before(memory, splits)

    monkeypatch.setattr(pseudo_costs, "learn", kept)
    told = list[list[bytes]]()
    for run in ({"threads": 1}, {"threads": 8}, {"executor": Scattered(3), "threads": 2}):
        batches.clear()
        learnt.append([])
        asked = made(1, noise=4.0, p=60, M=10)
        mipfs.solve(asked, "branch", batch=8, iteration_limit=2000, branching="pseudo-costs", **run)
        for units in batches:
            assert all(unit.told is units[0].told for unit in units)
        told.append([units[0].told.memory.tobytes() for units in batches])
        assert len(set(told[-1])) > 5
        assert sum(map(len, learnt[-1])) > 100 * SPLIT.itemsize
    assert told[1:] == told[:-1]
    assert learnt[1:] == learnt[:-1]


def test_units_are_lost_given_back_late_and_of_several_nodes(batches: list[list[NodeUnit]]) -> None:
    """What the test above rests on."""
    executor = Scattered(0)
    sizes = set[int]()
    for seed in range(3):
        mipfs.solve(made(seed, noise=4.0), "branch", gap=1e-6, batch=40, settings=LARGE, executor=executor)
        sizes |= {len(unit) for units in batches for unit in units}
    assert executor.lost > 2
    assert not executor.is_open
    assert len(sizes) > 5
    assert max(map(len, batches)) > 2


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", ["hinge", "rows"])
def test_an_executor_that_loses_everything_is_none(kind: str, tmp_path: Path) -> None:
    problem = made(0, **KINDS[kind][0])
    usual = written(mipfs.solve(problem, "branch", gap=1e-6), tmp_path / "usual")
    executor = Scattered(0, losing=1.0)
    assert written(mipfs.solve(problem, "branch", gap=1e-6, executor=executor), tmp_path / "lost") == usual
    assert executor.lost > 5


@pytest.mark.slow
@pytest.mark.parametrize("limit", [1, 40, 300, 1200])
@pytest.mark.parametrize("kind", ["hinge", "rows", "groups, rows"])
def test_a_limit_of_nodes_is_overshot_by_one_batch_at_most(
    kind: str, limit: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A batch may find no more nodes than the limit leaves, unless it is a smallest one; no matter who explores."""
    size = {"hinge": {"p": 60, "M": 10}, "rows": {"n": 40, "p": 60, "M": 8, "C": 1.0}}.get(kind, {})
    problem = made(1, noise=3.0, **KINDS[kind][0] | size)
    begun, before = list[tuple[int, int, int]](), SearchTree.units

    def units(tree: SearchTree, nodes: OpenNodes, cutoff: float) -> list[NodeUnit]:
        if tree.run.problem.data.n_samples >= 30:
            begun.append((nodes.heads.size, tree.n_nodes, tree.relaxation.budget))
        return before(tree, nodes, cutoff)

    monkeypatch.setattr(machine, "cores", lambda: 8)
    monkeypatch.setattr(SearchTree, "units", units)
    found, least = set[tuple[str, bytes]](), TreeSettings().batch
    for number, run in enumerate(({"threads": 1}, {"threads": 8}, {"executor": Scattered(limit)})):
        begun.clear()
        result: Result = mipfs.solve(problem, "branch", gap=1e-9, iteration_limit=limit, **run)
        found.add(written(result, tmp_path / str(number)))
        for count, n_nodes, budget in begun:
            assert n_nodes < limit
            assert count <= max(least, (limit - n_nodes) // budget)
        assert result.counters["nodes"] <= limit + max((count * budget for count, _, budget in begun), default=0)
        assert (kind == "groups, rows" or limit < 1200) or max(count for count, *_ in begun) > least
    assert mipfs.verify(result, problem.data).accepted
    assert len(found) == 1
