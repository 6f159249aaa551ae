"""Completions of a selection against SVMs by an oracle of the tests, and what their dual vectors prove anew."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from mipfs import Instance, Problem
from mipfs.drivers.waiting import pack_open_node, unpack_open_node
from mipfs.inner.boolean_node import FREE, INSIDE, NO_ROWS, OUTSIDE, WarmStart
from mipfs.inner.completions import NodeEnumerator
from mipfs.inner.unit import ColumnOrder, NodeUnit
from mipfs.kernels.enumeration import enumerate_nodes
from mipfs.kernels.structures import LIMITS
from mipfs.kernels.subtree import LEAF, OPEN, REST
from mipfs.kernels.units import ExploredPieces, FirstDuals
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


def explored(
    problem: Problem, states: Any, target: float, turn: ColumnOrder | None = None, stop: Any = GOES_ON, **settings: int
) -> ExploredPieces | None:
    """What is left of a node once it is enumerated."""
    completions = NodeEnumerator(problem, np.arange(P), CompletionSettings(**settings))
    limits = np.zeros(1, LIMITS)
    limits["cutoff"] = target
    node = pack_open_node(
        np.array(states, dtype=np.int8), WarmStart(np.zeros(P, dtype=np.float32), 0.0, 0.5), -np.inf, 7, 3
    )
    unit = NodeUnit(node, FirstDuals.none(), limits, np.zeros((1, 0)), True, turn)
    return completions.explore(unit, NO_ROWS, stop).found


def left_of(found: ExploredPieces, why: int) -> list[tuple[list[int], list[int]]]:
    """What is inside and what is free in the open nodes that are left for a reason."""
    heads = found.back.heads
    nodes = [unpack_open_node(found.back, at, P)[0] for at in np.flatnonzero(heads["why"] == why).tolist()]
    return [(np.flatnonzero(one == INSIDE).tolist(), np.flatnonzero(one == FREE).tolist()) for one in nodes]


def states_of(inside: list[int], out: Any = ()) -> Any:
    states = np.zeros(P, dtype=np.int8)
    states[inside], states[list(out)] = INSIDE, OUTSIDE
    return states


def proven(problem: Problem, X: np.ndarray[Any, Any], found: ExploredPieces, inside: list[int]) -> Any:
    """What the dual vectors prove of the selection, (D,), and of each completion, (D, p), with NumPy."""
    c, loss = problem.c_i, get_loss(problem.loss)
    store = DualStore(N, None if np.all(c == c[0]) else c)
    duals = found.duals
    store.extend(found.packed, duals["end"], duals["grid"], duals["top"], duals["width"])
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
    problem = problem.replace(M=len(inside) + 1)
    left = np.setdiff1d(np.arange(P), inside)
    for share in (0.0, 0.3, 0.9):
        ranked = np.sort(each[left])
        at = int(share * (left.size - 1))
        target = ranked[0] * (1 - 1e-4) if share == 0.0 else 0.5 * (ranked[at] + ranked[at + 1])
        found = explored(problem, states_of(inside), target)
        assert found is not None
        ends = left_of(found, LEAF)
        apart = [j for ids, _ in ends for j in ids if len(ids) > len(inside)]
        apart = [j for j in apart if j not in inside]
        open_ones = [j for _, free in left_of(found, OPEN) for j in free]
        gone = np.setdiff1d(left, apart + open_ones)
        assert np.all(each[gone] >= target)
        assert np.all(each[apart] < target * (1 + 1e-6))
        by_alone, by_each = proven(problem, X, found, inside)
        assert np.all(by_each[:, gone].max(axis=0, initial=-np.inf) >= target)
        last = found.places[(found.places["feature"] < 0) & (found.places["dual"] > 0)]
        if last.size:
            assert alone >= target
            assert by_alone[last["dual"][0] - 1] >= target
        else:
            assert alone <= target * (1 + 1e-6) or open_ones
        if share == 0.0:
            assert not apart
            assert not open_ones


@pytest.mark.parametrize("begin", [0, 4])
def test_a_turn_puts_its_columns_in_by_their_order(begin: int) -> None:
    """Each with all that come later; what is behind them is left to the next turn, with a bound of its own."""
    problem, X = drawn("hinge", True, "dense")
    values = {(i, j): oracles.svm_value(X[:, [i, j]], problem.data.y, problem.c_i, True, "hinge").upper
              for i in range(P) for j in range(i)}  # fmt: skip
    target = min(values.values()) * (1 - 1e-4)
    found = explored(problem, states_of([]), target, ColumnOrder(begin, begin + 6, begin == 0))
    assert found is not None
    anchors = found.places["feature"][(found.places["feature"] >= 0) & (found.places["feature"] < P)].tolist()
    assert len(anchors) == 6
    ((inside, behind),) = left_of(found, REST)
    assert not inside
    assert not set(anchors) & set(behind)
    assert len(found.back.heads) == 1
    rest = found.back.heads["bound"][0]
    assert rest <= min(value for pair, value in values.items() if set(pair) <= set(behind)) * (1 + 1e-9)
    before = explored(problem, states_of([]), target, ColumnOrder(0, begin, True)) if begin else None
    if before is not None:
        assert set(left_of(before, REST)[0][1]) == {*anchors, *behind}
        assert before.back.heads["bound"][0] < rest


def test_it_stops_and_it_is_gone_on_with() -> None:
    problem, X = drawn("hinge", True, "dense")
    problem = problem.replace(M=1)
    target = values_of(problem, X, [])[1].min() * (1 - 1e-4)
    told = explored(problem, states_of([]), target, stop=np.ones(1, dtype=np.int8))
    assert told is not None
    assert left_of(told, OPEN) == [([], list(range(P)))]
    ranked = np.sort(values_of(problem, X, [])[1])
    above = float(0.5 * (ranked[9] + ranked[10]))
    left, calls, seen = list(range(P)), 0, 0
    while left:
        found = explored(problem, states_of([], set(range(P)) - set(left)), above, apart=2)
        assert found is not None
        apart = [ids for ids, _ in left_of(found, LEAF) if ids]
        assert len(apart) <= 2
        left = [j for _, free in left_of(found, OPEN) for j in free]
        calls += 1
        seen += len(apart)
    assert calls > 2
    assert seen == 10


def test_it_is_called_with_what_python_hands_it() -> None:
    problem, _ = drawn("hinge", True, "dense")
    explored(problem, states_of([]), 1.0, ColumnOrder(0, 1, True))
    assert NodeEnumerator(problem, np.arange(P)).kernels()[0].type.arguments in enumerate_nodes.overloads
    with pytest.raises(TypeError):
        enumerate_nodes(1)
