"""Completions of a selection against SVMs by an oracle of the tests, and what their dual vectors prove anew."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from mipfs import Instance, Problem
from mipfs.inner.completions import Completions, Found
from mipfs.kernels.completions import ABOVE, DONE, FULL, STOPPED, complete
from mipfs.losses import get_loss
from mipfs.proof.cuts import dual_value_below
from mipfs.proof.duals import DualStore
from mipfs.settings import CompletionSettings
from tests import oracles
from tests.kernels.loss_cases import NAMES

N, P = 16, 30
GOES_ON = np.zeros(1, dtype=np.int8)


def drawn(loss: str, bias: bool, kind: str) -> tuple[Problem, np.ndarray[Any, Any]]:
    r = np.random.default_rng([NAMES.index(loss), bias, len(kind)])
    X = r.standard_normal((N, P)) * (r.random((N, P)) < (0.2 if kind == "sparse" else 1.0))
    y = np.where(X[:, 0] - X[:, 1] + r.standard_normal(N) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    data = Instance.from_arrays(sparse.csc_array(X) if kind == "sparse" else X, y)
    lam = dict(zip(data.feature_names, r.uniform(0.0, 0.5, P).tolist(), strict=True)) if kind == "penalties" else 0.0
    return Problem(data, loss=loss, bias=bias, M=2, C=2.0, lam=lam), X  # type: ignore[arg-type]


def values_of(problem: Problem, X: np.ndarray[Any, Any], inside: list[int]) -> tuple[float, np.ndarray[Any, Any]]:
    """The value of a selection, and of it with each other feature."""
    y, c = problem.data.y, problem.c_i

    def of(ids: list[int]) -> float:
        return oracles.svm_value(X[:, ids], y, c, problem.bias, problem.loss).upper + float(problem.penalty[ids].sum())

    return of(inside), np.array([np.inf if j in inside else of([*inside, j]) for j in range(P)])


def proven(problem: Problem, X: np.ndarray[Any, Any], found: Found, inside: list[int]) -> Any:
    """What the dual vectors prove of the selection, (D,), and of each completion, (D, p), with NumPy."""
    c, loss = problem.c_i, get_loss(problem.loss)
    store = DualStore(N, None if np.all(c == c[0]) else c)
    store.extend(*found.duals)
    alone, with_one = [], []
    for d in range(len(store)):
        whole, q = store.get(d)
        alpha = np.ldexp(whole.astype(float), -q)
        assert np.all(alpha >= 0.0)
        assert np.all(alpha <= loss.top(c))
        assert not problem.bias or whole[problem.data.y > 0].sum() == whole[problem.data.y < 0].sum()
        cost = problem.penalty - 0.5 * np.square(X.T @ (alpha * problem.data.y))
        alone.append(dual_value_below(loss, alpha, c) + cost[inside].sum())
        with_one.append(alone[-1] + cost)
    return np.array(alone), np.array(with_one).reshape(-1, P)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("inside", [[], [3]])
@pytest.mark.parametrize("kind", ["dense", "sparse", "penalties"])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("loss", NAMES)
def test_what_is_ruled_out_is_worth_that(loss: str, bias: bool, kind: str, inside: list[int]) -> None:
    problem, X = drawn(loss, bias, kind)
    alone, each = values_of(problem, X, inside)
    completions = Completions(problem, np.arange(P), GOES_ON)
    left = np.setdiff1d(np.arange(P), inside)
    for share in (0.0, 0.3, 0.9):
        ranked = np.sort(each[left])
        at = int(share * (left.size - 1))
        target = ranked[0] * (1 - 1e-4) if share == 0.0 else 0.5 * (ranked[at] + ranked[at + 1])
        found = completions.of(np.array(inside, dtype=np.int64), left, target)
        gone = np.setdiff1d(left, found.left)
        assert np.all(each[gone] >= target)
        by_alone, by_each = proven(problem, X, found, inside)
        assert np.all(by_each[:, gone].max(axis=0, initial=-np.inf) >= target)
        if found.empty >= 0:
            assert alone >= target
            assert by_alone[found.empty] >= target
        else:
            assert alone <= target * (1 + 1e-6)
        if share == 0.0:
            assert found.why == DONE
            assert found.left.size == 0
        else:
            assert found.why == ABOVE
            assert each[found.left[0]] < target


def test_it_stops_and_it_is_gone_on_with() -> None:
    problem, X = drawn("hinge", True, "dense")
    target = values_of(problem, X, [])[1].min() * (1 - 1e-4)
    nothing = np.empty(0, dtype=np.int64)
    told = Completions(problem, np.arange(P), np.ones(1, dtype=np.int8)).of(nothing, np.arange(P), target)
    assert told.why in (STOPPED, DONE)
    few = CompletionSettings(bytes=1)
    found = Completions(problem, np.arange(P), GOES_ON, few).of(nothing, np.arange(P), target)
    calls = 1
    while found.why == FULL:
        assert found.count == 2
        found = Completions(problem, np.arange(P), GOES_ON, few).of(nothing, found.left, target)
        calls += 1
    assert found.why == DONE
    assert calls > 1


def test_it_is_called_with_what_python_hands_it() -> None:
    problem, _ = drawn("hinge", True, "dense")
    completions = Completions(problem, np.arange(P), GOES_ON)
    completions.of(np.empty(0, dtype=np.int64), np.arange(P), 1.0)
    assert completions.kernels()[0].type.arguments in complete.overloads
    with pytest.raises(TypeError):
        complete(1)
