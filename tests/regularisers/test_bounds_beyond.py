"""Bounds on the weights beside what tests/regularisers/test_bounds.py has: paths, many features, refusals, files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import mipfs
from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.problem import Problem
from mipfs.proof.cuts import CutPool
from mipfs.result.state import stamp_of
from mipfs.run.carry import adapt_cuts
from tests.bounded_cases import case


@pytest.mark.sampled(7)
@pytest.mark.parametrize("seed", [2, 7, 11, 14])
def test_a_path_is_its_points(seed: int) -> None:
    """What is carried over from one C, or one M, to the next changes no optimum."""
    one = case(seed)
    problem = one.problem()
    for axis in ({"C": [0.1, 1.0, 3.0]}, {"M": [1, 2]}):
        walk = mipfs.path(problem, **axis)
        for value in next(iter(axis.values())):
            found = walk[value].result
            alone = mipfs.solve(problem.replace(**{next(iter(axis)): value}), gap=1e-6)
            assert found.objective == pytest.approx(alone.objective, rel=2e-4)
            assert found.bound <= alone.objective * (1 + 1e-9)
            assert mipfs.verify(found, problem.data).accepted
            assert found.params["weight_bounds"] == problem_bounds(problem)


def problem_bounds(problem: Problem) -> dict[str, list[float | None]]:
    """As a document states them."""
    given = problem.weight_bounds or {}
    return {name: [None if np.isinf(end) else end for end in ends] for name, ends in given.items()}


def test_nothing_is_carried_to_other_bounds() -> None:
    one = case(7)
    problem = one.problem()
    for bounds in ({}, {"x1": (0.0, 1.0)}, {"x1": (0.0, 1.5)}):
        other = problem.replace(weight_bounds=bounds)
        with pytest.raises(UsageError, match="pool: its cuts are of regulariser"):
            adapt_cuts(CutPool(problem), other)
        assert stamp_of(other) != stamp_of(problem)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["hinge", "squared-hinge", "logistic"])
def test_many_features(loss: Any) -> None:
    """Feature generation over 20,000 sparse columns, all of which can only help."""
    r = np.random.default_rng(0)
    X = sparse.random(150, 20_000, density=0.01, random_state=1, format="csr")
    w = np.zeros(20_000)
    w[:40] = 6.0 * r.normal(size=40)
    y = np.where(X @ w + 0.1 * r.normal(size=150) > 0, 1.0, -1.0)
    data = Instance.from_arrays(X, y, scale="none")
    signs = dict.fromkeys(data.feature_names, (0.0, None))
    found = mipfs.solve(Problem(data, M=10, C=10.0, loss=loss, weight_bounds=signs), "kelley", gap=1e-3)
    free = mipfs.solve(Problem(data, M=10, C=10.0, loss=loss), "kelley", gap=1e-3)
    assert min(found.weights.values()) >= 0.0
    assert found.relaxed is not None
    assert free.relaxed is not None
    assert found.relaxed["upper"] >= free.relaxed["lower"] * (1 - 1e-9)
    assert mipfs.verify(found, data).accepted


def test_what_is_neither_feature_nor_group_refuses_them() -> None:
    r = np.random.default_rng(1)
    data = Instance.from_arrays(np.abs(r.normal(size=(30, 4))), np.resize([1.0, -1.0], 30))
    two = {"a": ["x1", "x2"], "b": ["x3", "x4"]}
    kinds: list[tuple[str, dict[str, Any]]] = [
        ("groups", {"groups": two, "scaling": [2.0, 1.0]}),
        ("additive-hik", {}),
        ("splines", {}),
        ("pairs", {}),
    ]
    for name, options in kinds:
        atoms = mipfs.atoms.make(name, data, **options)
        with pytest.raises(UsageError, match=r"weight_bounds are about (single features|groups without)"):
            Problem(data, M=1, atoms=atoms, weight_bounds={"x1": (0.0, None)})


def test_saved_and_predicted(tmp_path: Path) -> None:
    one = case(6)
    data = one.problem().data
    found = mipfs.solve(one.problem())
    found.save(tmp_path / "r.json")
    again = mipfs.Result.load(tmp_path / "r.json")
    assert again.params["weight_bounds"] == found.params["weight_bounds"]
    report = mipfs.verify(again, data)
    assert report.accepted, report.reason
    assert np.array_equal(again.predict(one.X), found.predict(one.X))
