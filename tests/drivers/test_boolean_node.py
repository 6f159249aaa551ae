"""A node of `branch` against the declared relaxation in CVXPY, and its screening against enumeration."""

from __future__ import annotations

import itertools
import math
from typing import Any

import cvxpy as cp
import numba
import numpy as np
import pytest
from scipy import sparse

from mipfs.data.instance import Instance
from mipfs.inner.boolean_node import FREE, INSIDE, OUTSIDE, BooleanRelaxation, NodeOutcome, WarmStart, carries
from mipfs.losses import get_loss
from mipfs.problem import Problem
from tests.node_cases import solve

LOSSES = ("hinge", "squared-hinge", "logistic")


def draw(seed: int, n: int = 40, p: int = 9, density: float = 1.0) -> Instance:
    r = np.random.default_rng(seed)
    X: Any = r.standard_normal((n, p)) * (r.random((n, p)) < density) + 0.3 * (density == 1.0)
    y = np.where(X @ r.standard_normal(p) + r.standard_normal(n) > 0, 1.0, -1.0)
    weights = r.uniform(0.5, 2.0, n)
    return Instance.from_arrays(sparse.csc_array(X) if density < 1 else X, y, sample_weight=weights)


def declared(problem: Problem, states: Any) -> float:
    """The node's relaxation, written down in CVXPY and solved by Clarabel."""
    data, p = problem.data, problem.data.n_features
    X = data.X.toarray() if data.is_sparse else data.X
    w, sigma, b = cp.Variable(p), cp.Variable(p), cp.Variable()
    margins = cp.multiply(data.y, (X - data.center) @ w + (b if problem.bias else 0.0))
    loss = {
        "hinge": problem.c_i @ cp.pos(1 - margins),
        "squared-hinge": 0.5 * problem.c_i @ cp.square(cp.pos(1 - margins)),
        "logistic": problem.c_i @ cp.logistic(-margins),
    }[problem.loss]
    norm = cp.sum([0.5 * cp.quad_over_lin(w[j], sigma[j]) for j in range(p)])
    rows = [sigma >= (states == INSIDE), sigma <= (states != OUTSIDE)]
    rows += [] if problem.M is None else [cp.sum(sigma) <= problem.M]
    program = cp.Problem(cp.Minimize(problem.penalty @ sigma + norm + loss), rows)
    return float(program.solve(solver="CLARABEL", tol_gap_rel=1e-9, tol_gap_abs=1e-9, tol_feas=1e-9))


def solved(problem: Problem, states: Any, cutoff: float = math.inf, share: float = 0.0) -> NodeOutcome:
    p = problem.data.n_features
    relaxation = BooleanRelaxation(problem, np.arange(p), np.zeros(1, np.int8))
    start, zero = WarmStart(np.zeros(p, dtype=np.float32), 0.0, 0.5), np.zeros(problem.data.n_samples)
    return solve(relaxation, states, start, zero, cutoff, 1e-8, share, -math.inf)


@pytest.mark.sampled(13)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(4))
def test_a_node_equals_the_declared_relaxation(seed: int, loss: str, bias: bool) -> None:
    r = np.random.default_rng(100 + seed)
    data = draw(seed, density=0.25 if seed == 3 else 1.0)
    lam = [0.0, 0.4, tuple(r.uniform(0, 1.5, 9)), 0.0][seed]
    problem = Problem(data, loss=loss, bias=bias, M=[3, 4, None, 5][seed], C=float(r.choice([0.3, 2.0, 20.0])), lam=lam)
    assert carries(problem)
    for fixings in range(4):
        states = np.full(9, FREE, dtype=np.int8)
        states[r.choice(9, fixings, replace=False)] = r.choice([INSIDE, OUTSIDE], fixings)
        value, outcome = declared(problem, states), solved(problem, states)
        assert outcome.bound <= value * (1 + 1e-7)
        assert outcome.bound == pytest.approx(value, rel=2e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_dual_vector_is_feasible_as_integers(loss: str) -> None:
    problem = Problem(draw(5), loss=loss, M=3, C=3.0)
    outcome = solved(problem, np.full(9, FREE, dtype=np.int8))
    signs = problem.data.y.astype(int)
    assert sum(int(k) * int(s) for k, s in zip(outcome.whole, signs, strict=True)) == 0
    assert outcome.whole.min() >= 0
    if loss != "squared-hinge":
        assert np.all(np.ldexp(outcome.whole.astype(float), -outcome.q) <= problem.c_i)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("M", [2, 4, None])
def test_screening_keeps_every_selection_below_the_cutoff(loss: str, M: int | None) -> None:
    """Whatever a node fixes, no selection of smaller value than the cutoff contradicts it."""
    problem = Problem(draw(8, p=6), loss=loss, M=M, C=0.02, lam=0.0 if M else 0.02)
    solver = get_loss(loss).Solver(problem.data, problem.c_i, True)
    values = {}
    for size in range(7 if M is None else M + 1):
        for ids in itertools.combinations(range(6), size):
            value = solver.solve(np.array(ids, dtype=np.int64), tol=1e-10).primal
            values[ids] = value + float(problem.penalty[list(ids)].sum())
    ordered = sorted(values.values())
    fixed = 0
    for cutoff in (ordered[0] * (1 + 1e-6), ordered[1] * (1 + 1e-6), ordered[len(ordered) // 3]):
        outcome = solved(problem, np.full(6, FREE, dtype=np.int8), cutoff)
        fixed += outcome.fixed_in.size + outcome.fixed_out.size
        for ids, value in values.items():
            if value < cutoff * (1 - 1e-9):
                assert set(outcome.fixed_in) <= set(ids)
                assert not set(outcome.fixed_out) & set(ids)
    assert fixed > 0


def test_a_node_stops_early_but_its_bound_stays_one() -> None:
    problem = Problem(draw(11, n=200), M=3, C=2.0)
    states = np.full(9, FREE, dtype=np.int8)
    value = declared(problem, states)
    above = solved(problem, states, cutoff=value * 0.9, share=1.0)
    below = solved(problem, states, cutoff=value * 1.5, share=1.0)
    full = solved(problem, states)
    assert value * 0.9 <= above.bound <= value * (1 + 1e-7)
    assert below.bound <= value * (1 + 1e-7)
    assert max(above.steps, below.steps) < full.steps


def test_what_the_kernel_cannot_take() -> None:
    X = sparse.random_array((60, 40), density=0.1, rng=np.random.default_rng(0), format="csc")
    y = np.where(np.arange(60) % 2 > 0, 1.0, -1.0)
    centred = Instance.from_arrays(X, y, scale="standard")
    assert carries(Problem(centred, M=3))
    assert not carries(Problem(centred, M=3, bias=False))  # the centre of a sparse column has nowhere to go
    assert not carries(Problem(centred, M=3).with_rows(np.ones((1, 40)), 0, 2))


def test_few_columns_are_handed_over_as_many_are() -> None:
    """numba types one column, or none, as stored by rows: the kernels would be compiled anew after the clock began."""
    data = Instance.from_arrays(np.random.default_rng(0).standard_normal((20, 4)), np.tile([1.0, -1.0], 10))
    relaxed = [BooleanRelaxation(Problem(data, M=1), np.arange(k), np.zeros(1, dtype=np.int8)) for k in (0, 1, 2, 4)]
    assert len({tuple(map(numba.typeof, one._in_play())) for one in relaxed}) == 1
