"""A run in slices keeps what every slice learned, also where a slice ended before it learned anything."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import mipfs
from mipfs.atoms.groups import Groups
from mipfs.atoms.tree import Tree
from mipfs.data.instance import Instance
from mipfs.problem import Problem
from mipfs.result.result import Result, Status, StopReason


def correlated(seed: int) -> Instance:
    """Nine columns of three factors and noise, which keep Benders' master busy."""
    r = np.random.default_rng([35, seed])
    X = r.normal(size=(40, 3)) @ r.normal(size=(3, 9)) + 0.5 * r.normal(size=(40, 9))
    return Instance.from_arrays(X, np.where(X @ r.normal(size=9) + 2.0 * r.normal(size=40) > 0, 1.0, -1.0))


@pytest.mark.slow
@pytest.mark.parametrize("step", [5, 10, 40])
@pytest.mark.parametrize("seed", range(2))
def test_benders_in_slices_ends_and_its_bound_never_falls(seed: int, step: int) -> None:
    problem = Problem(correlated(seed), M=3, C=10.0)
    whole = mipfs.solve(problem, "gbd", gap=1e-5)
    needed = whole.trace[-1].iteration
    state, bounds = None, [-np.inf]
    for limit in itertools.count(step, step):
        result = mipfs.solve(problem, "gbd", gap=1e-5, iteration_limit=limit, checkpoint=True, resume=state)
        bounds.append(result.bound)
        if result.status is Status.OPTIMAL:
            break
        assert result.stop_reason is StopReason.ITERATION_LIMIT
        assert limit < 2 * needed + step, "it learns nothing that lasts"
        state = result.state
    assert all(one <= other for one, other in itertools.pairwise(bounds))
    assert result.objective == pytest.approx(whole.objective, rel=1e-5)
    assert result.selected == whole.selected


def must_have_a_poor_one(seed: int, loss: str) -> Problem:
    """A row wants the third feature, which says nothing: no selection that was tried is at hand at first."""
    r = np.random.default_rng([36, seed])
    X = r.normal(size=(25, 5))
    y = np.where(X @ [1.0, 0.7, 0.0, 0.0, 0.3] + 0.5 * r.normal(size=25) > 0, 1.0, -1.0)
    problem = Problem(Instance.from_arrays(X, y), M=2, lam=[1.0, 2.0, 0.5, 1.5, 0.7], loss=loss, C=0.3)
    return problem.with_rows([[0, 0, 1, 0, 0]], 1, np.inf)


def measured(margin: float) -> Problem:
    """A measure, a forced atom and a budget on three samples."""
    data = Instance.from_arrays(np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]]), [-1, 1, -1])
    made: dict[str, Any] = {"loss": "structural", "measure": "prbep", "bias": False, "M": 2, "forced_in": ("x1",)}
    return Problem(data, C=1.0, lam=[margin, 0.0], **made).with_rows([[5, 2]], -np.inf, 5)


def is_the_same(result: Result, whole: Result, problem: Problem) -> None:
    """A resumed relaxation has two sides that do not cross, those of one run, and a certificate of them."""
    assert result.status is whole.status
    assert result.relaxed is not None
    assert whole.relaxed is not None
    for side in ("lower", "upper"):
        assert result.relaxed[side] == pytest.approx(whole.relaxed[side], rel=1e-5)
    assert result.relaxed["lower"] <= result.relaxed["upper"]
    report = mipfs.verify(result, problem.data)
    assert report.accepted, report.reason


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("driver", "problem"),
    [("kelley", must_have_a_poor_one(seed, loss)) for seed in range(4) for loss in ("hinge", "logistic")]
    + [("two_layer", measured(margin)) for margin in (0.013, 0.1)],
)
def test_a_relaxation_goes_on_from_a_state_without_a_selection(driver: str, problem: Problem) -> None:
    whole = mipfs.solve(problem, driver, gap=1e-6)
    first = mipfs.solve(problem, driver, gap=1e-6, time_limit=0, checkpoint=True)
    assert first.stop_reason is StopReason.TIME_LIMIT
    is_the_same(mipfs.solve(problem, driver, gap=1e-6, resume=first.state), whole, problem)


@pytest.mark.parametrize("kind", ["groups", "tree"])
@pytest.mark.parametrize(
    ("driver", "more"),
    [
        ("kelley", {}),
        ("kelley", {"loss": "squared-hinge", "bias": False}),
        ("two_layer", {"loss": "structural", "measure": "prbep", "bias": False}),
        ("branch", {}),
    ],
)
def test_where_every_atom_costs_more_than_it_brings(driver: str, more: dict[str, Any], kind: str) -> None:
    """The relaxation uses no atom at all, which is one empty selection and not a list of none."""
    r = np.random.default_rng(37)
    X = r.normal(size=(12, 3))
    data = Instance.from_arrays(X, np.where(X[:, 0] + r.normal(size=12) > 0, 1.0, -1.0))
    groups, tree = {"a": [0, 1], "b": [2], "c": [1, 2]}, {"x1": "a", "x2": "a", "x3": "b"}
    atoms: Any = Groups(data, groups) if kind == "groups" else Tree(data, tree)
    row = [[-3, -1, 3, *[0] * (atoms.count - 3)]]
    problem = Problem(data, atoms=atoms, lam=5.0, C=0.01, M=2, **more).with_rows(row, -np.inf, 0.0)
    result = mipfs.solve(problem, driver)
    assert (result.status, result.selected, result.weights) == (Status.OPTIMAL, (), {})
    assert result.objective == pytest.approx(problem.evaluate([], np.empty(0), result.intercept))
    assert mipfs.verify(result, data).accepted
