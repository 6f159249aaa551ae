"""A node over rows: the Newton kernel at any prices, and steps of the prices, against the declared program."""

from __future__ import annotations

import copy
import itertools
import math
from typing import Any

import numpy as np
import pytest

from mipfs.inner.boolean import Boolean
from mipfs.inner.boolean_node import FREE, INSIDE, OUTSIDE, NodeOutcome, WarmStart
from mipfs.inner.footpath import NodeTolerances
from mipfs.inner.rows_node import RowsRelaxation, prices_suffice
from mipfs.kernels.prices import PricedRelaxation, newton_step_of_multipliers, price
from mipfs.kernels.structures import steering_of
from mipfs.problem import Problem
from mipfs.selection.selection import Rows
from mipfs.settings import NodeSettings
from tests.drivers.test_rows_tree import KINDS, rows_of
from tests.inner.test_boolean import LOSSES, atoms_of, declared, draw
from tests.node_cases import solve

P = 9


def made(seed: int, loss: str) -> tuple[Problem, RowsRelaxation, Any]:
    r = np.random.default_rng([11, seed])
    data = draw(seed, 40, P, "csc" if seed % 4 == 3 else "dense")
    lam = [0.0, 0.3, tuple(r.uniform(0, 1, P))][seed % 3]
    problem = Problem(
        data, loss=loss, bias=bool(seed % 2), M=[3, 5, None][seed % 3], C=[0.3, 2.0, 20.0][seed % 3], lam=lam
    )
    problem = problem.replace(rows=rows_of(data.feature_names, r, r.choice(KINDS[:4], 4)))
    states = np.full(P, FREE, dtype=np.int8)
    states[r.choice(P, 2, replace=False)] = r.choice([INSIDE, OUTSIDE], 2)
    return problem, RowsRelaxation(problem, np.arange(P), lambda: False, np.zeros(1, np.int8)), states


def at(relaxation: RowsRelaxation, y: Any, states: Any) -> tuple[float, NodeOutcome]:
    """What the rows at multipliers y add to a node's bound, and the plain node that they make of it, solved."""
    kernel = copy.copy(relaxation.kernel)
    assert kernel is not None
    kernel.penalty = np.empty(P)
    constant = price(relaxation.propagation.sides, y.copy(), relaxation.kernel.penalty, kernel.penalty, np.empty(P))
    warm, n = WarmStart(np.zeros(P, dtype=np.float32), 0.0, 0.5), relaxation.problem.data.n_samples
    return constant, solve(kernel, states, warm, np.zeros(n), math.inf, 1e-9, 0.0, -math.inf)


def stepped(relaxation: RowsRelaxation, y: Any, states: Any, outcome: NodeOutcome) -> Any:
    """The multipliers after a step from the solution of the node at y."""
    kernel, after = relaxation.kernel, np.empty(y.size)
    assert kernel is not None
    inside, free = np.flatnonzero(states == INSIDE), np.flatnonzero(states == FREE)
    cols = np.concatenate([inside, free])
    w = outcome.warm.w[cols].astype(float) / np.sqrt(kernel.size)
    beta = np.ldexp(outcome.whole.astype(float), -outcome.q) / kernel.size
    full = kernel.M is not None and outcome.sigma.sum() >= kernel.M - 1e-6
    relaxed = PricedRelaxation(
        cols, inside.size, bool(full), w, outcome.sigma[cols], beta, outcome.warm.rho, float(kernel.size)
    )
    steering = steering_of(NodeSettings())["prices"]
    sides, places = relaxation.propagation.sides, np.empty(P, dtype=np.int64)
    newton_step_of_multipliers(kernel._in_play()[0], kernel.samples, sides, relaxed, y, steering, places, after)
    return after


@pytest.mark.sampled(5)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(6))
def test_prices_of_either_sign_make_a_plain_node(seed: int, loss: str) -> None:
    """At multipliers y: y'(row bounds) + the relaxation without rows, with the penalties c − A'y."""
    problem, relaxation, states = made(seed, loss)
    assert problem.rows is not None
    assert prices_suffice(problem)
    A, r = problem.rows.matrix.toarray(), np.random.default_rng(seed)
    y = np.where(np.isfinite(problem.rows.ub), -1.0, 1.0) * r.uniform(0, 3.0, len(problem.rows)) * (seed % 3 + 0.1)
    constant = float(np.where(y > 0, y * problem.rows.lb, 0.0).sum() + np.where(y < 0, y * problem.rows.ub, 0.0).sum())
    bare = problem.replace(rows=Rows.empty(P))
    costs = problem.penalty - A.T @ y
    low, high = (states == INSIDE).astype(float), (states != OUTSIDE).astype(float)
    object.__setattr__(bare, "penalty", costs)  # a Problem has none below zero
    value, (added, outcome) = constant + declared(bare, low, high), at(relaxation, y, states)
    size = abs(constant) + abs(value)
    assert added <= constant
    assert added == pytest.approx(constant, rel=1e-9)
    assert added + outcome.bound <= value + 1e-7 * size
    assert added + outcome.bound == pytest.approx(value, abs=1e-5 * size)


@pytest.mark.slow
def test_a_step_of_the_prices_mends_most_of_what_they_lost() -> None:
    """From prices a fifth off the best, as a child inherits them; every bound holds on the way."""
    left = []
    for loss, seed in itertools.product(LOSSES, range(8)):
        problem, relaxation, states = made(seed, loss)
        assert problem.rows is not None
        low, high = (states == INSIDE).astype(float), (states != OUTSIDE).astype(float)
        if relaxation.pricing.by_lp(np.zeros(P), low, high)[1] is not None:
            continue
        value = declared(problem, low, high)
        best = Boolean(problem, lambda: False).solve(low, high, 1e-8).multipliers
        y = best * np.random.default_rng(seed).uniform(0.8, 1.2, best.size)
        y = np.where(np.isfinite(np.where(y > 0, relaxation.pricing.low, relaxation.pricing.high)), y, 0.0)
        added, outcome = at(relaxation, y, states)
        constant, second = at(relaxation, stepped(relaxation, y, states, outcome), states)
        bounds = added + outcome.bound, constant + second.bound
        assert max(bounds) <= value + 1e-6 * abs(value)
        if value - bounds[0] > 1e-6 * abs(value):
            left.append((value - max(bounds)) / (value - bounds[0]))
    assert len(left) > 5
    assert np.median(left) < 0.4


@pytest.mark.parametrize("kind", ["features", "groups", "tree"])
def test_a_node_by_the_interior_point_equals_the_declared_relaxation(kind: str) -> None:
    r = np.random.default_rng(5)
    data = draw(9, 30, 8, "dense")
    atoms = atoms_of(data, kind, r)
    problem = Problem(data, M=2, C=2.0, atoms=atoms)
    problem = problem.replace(rows=rows_of(atoms.names, r, ["conflict", "implication", "at least"]))
    relaxation = RowsRelaxation(problem, np.arange(atoms.count), lambda: False, np.zeros(1, np.int8))
    states = np.full(atoms.count, FREE, dtype=np.int8)
    states[0] = OUTSIDE
    warm = WarmStart(np.zeros(atoms.count, dtype=np.float32), 0.0, 0.5)
    outcome = relaxation.explore(states, warm, np.zeros(30), NodeTolerances(math.inf, 1e-8, 0.0))
    value = declared(problem, (states == INSIDE).astype(float), (states != OUTSIDE).astype(float))
    assert outcome.bound <= value * (1 + 1e-8)
    assert outcome.bound == pytest.approx(value, rel=1e-6)


def test_a_node_whose_relaxation_is_empty_shows_it() -> None:
    """Three features of which two are wanted and every two exclude each other: no row alone says so."""
    data = draw(2, 20, 3, "dense")
    A = np.array([[1.0, 1, 0], [0, 1, 1], [1, 0, 1], [1, 1, 1]])
    problem = Problem(data, M=3).with_rows(A, [-np.inf] * 3 + [1.9], [1.0, 1.0, 1.0, np.inf])
    relaxation = RowsRelaxation(problem, np.arange(3), lambda: False, np.zeros(1, np.int8))
    warm = WarmStart(np.zeros(3, dtype=np.float32), 0.0, 0.5)
    outcome = relaxation.explore(
        np.full(3, FREE, dtype=np.int8), warm, np.zeros(20), NodeTolerances(math.inf, 1e-6, 0.0)
    )
    assert outcome.ray is not None
    least = outcome.ray @ np.where(outcome.ray > 0, problem.rows.lb, problem.rows.ub)  # type: ignore[union-attr]
    assert least - np.maximum(A.T @ outcome.ray, 0.0).sum() > 0.0
