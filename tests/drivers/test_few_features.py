"""Few of many features: nodes that are closed by enumeration, against every selection by an oracle of the tests."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import mipfs
from mipfs import Instance, Problem
from mipfs.drivers.branch import Options, search
from mipfs.result.result import Result, Status
from mipfs.run.run import Run
from mipfs.settings import BranchSettings, CompletionSettings
from tests import oracles

LOSSES = ("hinge", "squared-hinge", "logistic")
KINDS = ("plain", "penalties", "rows", "forced", "weights", "sparse", "alike", "unscaled")
N, P = 14, 20
Support = frozenset[int]


@functools.cache
def drawn(kind: str, loss: str, bias: bool, M: int, C: float) -> tuple[Problem, dict[Support, float]]:
    """A problem of more features than samples, and the value of every allowed selection."""
    r = np.random.default_rng([KINDS.index(kind), LOSSES.index(loss), bias, M])
    X = r.standard_normal((N, P))
    if kind == "unscaled":
        X = X * np.exp(r.uniform(-2.0, 4.0, P)) + r.uniform(-30.0, 30.0, P)
    if kind == "sparse":
        X *= r.random((N, P)) < 0.2
    if kind == "alike":
        X[:, 5], X[:, 6], X[:, 7] = X[:, 0], 0.0, -X[:, 1]
    y = np.where(X[:, :3] @ [1.0, -1.0, 0.5] + 0.5 * np.std(X) * r.standard_normal(N) > np.mean(X), 1.0, -1.0)
    y[:2] = 1.0, -1.0
    names = tuple(f"f{j}" for j in range(P))
    given: dict[str, Any] = {"sample_weight": r.uniform(0.5, 2.0, N)} if kind == "weights" else {}
    data = Instance.from_arrays(sparse.csc_array(X) if kind == "sparse" else X, y, feature_names=names, **given)
    penalty = r.uniform(0.0, 0.3 * C, P) if kind == "penalties" else np.zeros(P)
    M += kind == "forced"  # places that are left
    made: dict[str, Any] = {"loss": loss, "bias": bias, "M": M, "C": C}
    if kind == "penalties":
        made["lam"] = dict(zip(names, penalty.tolist(), strict=True))
    if kind == "forced":
        made |= {"forced_in": ("f4",), "forced_out": ("f0", "f9")}
    problem = Problem(data, **made)
    cost = r.integers(1, 4, P)
    pairs = [(int(a), int(b)) for a, b in r.integers(0, P, (12, 2)) if a != b]
    if kind == "rows":
        rows = [cost.tolist(), *[[float(j == a) - float(j == b) for j in range(P)] for a, b in pairs[:4]]]
        rows += [[float(j in pair) for j in range(P)] for pair in pairs[4:]]
        ends = [2 * M + 1, *[0] * 4, *[1] * (len(pairs) - 4)]
        problem = problem.with_rows(rows, [-np.inf] * len(ends), ends)
    values = {}
    for size in range(M + 1):
        for chosen in itertools.combinations(range(P), size):
            inside = set(chosen)
            if kind == "forced" and (4 not in inside or inside & {0, 9}):
                continue
            if kind == "rows":
                if cost[list(chosen)].sum() > 2 * M + 1 or any(a in inside and b not in inside for a, b in pairs[:4]):
                    continue
                if any(a in inside and b in inside for a, b in pairs[4:]):
                    continue
            value = oracles.LOSSES[loss](X[:, list(chosen)], y, problem.c_i, bias, "clarabel")
            assert value.width < 1e-6
            values[frozenset(chosen)] = value.upper + float(penalty[list(chosen)].sum())
    return problem, values


def ids(result: Result) -> Support:
    return frozenset(int(name[1:]) for name in result.selected)


def is_right(result: Result, problem: Problem, values: dict[Support, float]) -> None:
    least = min(values.values())
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(values[ids(result)], rel=1e-6)
    assert least * (1 - 1e-7) <= result.objective <= least * (1 + 1.1e-4)
    assert result.bound <= least * (1 + 1e-7)
    report = mipfs.verify(result, problem.data)
    assert report.accepted, report.reason


CASES = [
    *itertools.product(KINDS, LOSSES, (True, False), (1, 2), (0.1, 10.0)),
    *itertools.product(("plain", "penalties", "rows"), LOSSES, (True, False), (3,), (1.0,)),
]


@pytest.mark.sampled(97)
@pytest.mark.parametrize(("kind", "loss", "bias", "M", "C"), CASES)
def test_the_best_of_all(kind: str, loss: str, bias: bool, M: int, C: float) -> None:
    problem, values = drawn(kind, loss, bias, M, C)
    is_right(mipfs.solve(problem, "branch"), problem, values)


@pytest.mark.sampled(37)
@pytest.mark.parametrize("M", [1, 2])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", ["plain", "penalties", "rows", "forced", "alike"])
def test_all_within_a_gap(kind: str, loss: str, bias: bool, M: int) -> None:
    problem, values = drawn(kind, loss, bias, M, 1.0)
    ranked = np.sort(list(values.values()))
    k = next(k for k in range(4, ranked.size) if ranked[k] - ranked[k - 1] > 1e-4 * ranked[0])
    gap = float(0.5 * (ranked[k] + ranked[k - 1]) / ranked[0] - 1.0)
    result = mipfs.solve(problem, "branch", pool_gap=gap)
    assert result.near_optimal is not None
    assert result.near_optimal["complete"]
    found = {frozenset(int(name[1:]) for name in one["selected"]) for one in result.near_optimal["supports"]}
    wanted = {one for one, value in values.items() if value <= ranked[0] * (1.0 + gap)}
    same = {one for one in wanted if any(other < one and values[other] <= values[one] * (1 + 1e-7) for other in wanted)}
    assert found == wanted - same
    report = mipfs.verify(result, problem.data)
    assert report.accepted, report.reason


@pytest.mark.parametrize("M", [1, 2])
def test_the_best_so_many(M: int) -> None:
    problem, values = drawn("plain", "hinge", True, M, 1.0)
    result = mipfs.solve(problem, "branch", pool_size=7)
    assert result.near_optimal is not None
    found = [one["objective"] for one in result.near_optimal["supports"]]
    count = len(found)  # fewer than asked for where others only add features of weight 0
    assert count == 7 or M == 1
    assert found == pytest.approx(np.sort(list(values.values()))[:count], rel=1e-6)
    assert mipfs.verify(result, problem.data).accepted


def test_no_gap_at_all() -> None:
    for loss, M in itertools.product(LOSSES, (1, 2)):
        problem, values = drawn("plain", loss, True, M, 1.0)
        result = mipfs.solve(problem, "branch", gap=0.0)
        assert result.objective == pytest.approx(min(values.values()), rel=1e-7)
        assert result.bound == pytest.approx(result.objective, rel=1e-9)


def counted(problem: Problem, **options: Any) -> tuple[Run, int]:
    """A run, and how many selections it enumerated the completions of."""
    settings = BranchSettings(completions=options.pop("completions", CompletionSettings()))
    run = Run(problem, Options(**options), settings=settings)
    for _ in search(run):
        pass
    return run, run.counters["enumerated"]


def test_it_is_enumerated_where_few_of_many_are_selected() -> None:
    problem, _ = drawn("plain", "hinge", True, 2, 10.0)
    run, count = counted(problem)
    assert count > 0
    assert counted(problem.replace(M=1))[1] == 1
    without, none = counted(problem, completions=CompletionSettings(most=0))
    assert none == 0
    assert without.objective == pytest.approx(run.objective, rel=1e-4)
    assert counted(problem.replace(M=4))[1] == 0


def test_the_tree_does_not_depend_on_the_threads() -> None:
    problem, _ = drawn("plain", "squared-hinge", True, 2, 10.0)
    seen = []
    for threads in (1, 3):
        run, _ = counted(problem, threads=threads, completions=CompletionSettings(block=100, many=1.0))
        seen.append((run.objective, run.bound, run.counters["nodes"], run.outcome.proof.n_nodes))
    assert seen[0] == seen[1]


@pytest.mark.parametrize("M", [1, 2])
def test_too_many_leaves_go_back_to_the_tree(M: int) -> None:
    problem, values = drawn("plain", "hinge", True, M, 1.0)
    result = mipfs.solve(
        problem, "branch", pool_size=30, settings=BranchSettings(completions=CompletionSettings(leaves=2))
    )
    assert result.near_optimal is not None
    found = [one["objective"] for one in result.near_optimal["supports"]]
    count = min(30, len(found))
    assert found == pytest.approx(np.sort(list(values.values()))[:count], rel=1e-6)
    assert mipfs.verify(result, problem.data).accepted


def test_a_limit_leaves_what_is_proven() -> None:
    problem, values = drawn("plain", "hinge", True, 2, 10.0)
    settings = BranchSettings(completions=CompletionSettings(block=1))
    result = mipfs.solve(problem, "branch", iteration_limit=3, settings=settings)
    assert result.bound <= min(values.values()) * (1 + 1e-9)
    assert mipfs.verify(result, problem.data).accepted


@pytest.mark.slow
def test_a_path_over_few() -> None:
    problem, values = drawn("plain", "hinge", True, 3, 1.0)
    points = mipfs.path(problem, M=[1, 2, 3]).points
    for point, M in zip(points, (1, 2, 3), strict=True):
        least = min(value for one, value in values.items() if len(one) <= M)
        assert point.objective == pytest.approx(least, rel=2e-4)
