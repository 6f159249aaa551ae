"""`branch` with rows, groups, trees and scaled features against enumeration; its proofs against the checker."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import mipfs
from mipfs.data.instance import Instance, Row
from mipfs.drivers import solve
from mipfs.generators import aytug_one
from mipfs.inner.propagation import Propagation
from mipfs.kernels.prices import drop_idle
from mipfs.kernels.propagation import FREE, INSIDE, OUTSIDE
from mipfs.problem import Problem
from mipfs.result.result import Status
from mipfs.selection.selection import Extras, Rows
from tests import oracles
from tests.inner.test_boolean import ATOMS, LOSSES, atoms_of, draw

KINDS = ("conflict", "implication", "budget", "at least", "two sides")


def rows_of(names: Any, r: np.random.Generator, kinds: Any) -> Rows:
    """Rows of the given kinds; the two-sided ones hold at a selection that was drawn first."""
    m, rows = len(names), []
    drawn = (r.random(m) < 0.4).astype(float)
    for k, kind in enumerate(kinds):
        a, lb, ub = np.zeros(m), -np.inf, np.inf
        i, j = r.choice(m, 2, replace=False)
        if kind == "conflict":
            a[[i, j]], ub = 1.0, 1.0
        elif kind == "implication":
            a[i], a[j], ub = 1.0, -1.0, 0.0
        elif kind == "budget":
            a = r.integers(1, 20, m) / 10
            ub = float(a.sum() * r.uniform(0.2, 0.8))
        elif kind == "at least":
            a[r.random(m) < 0.5] = 1.0
            lb = min(float(a.sum()), 1.0)
        else:
            a = r.integers(-4, 5, m) / 2.0
            lb, ub = float(a @ drawn) - r.integers(0, 3) / 2, float(a @ drawn) + r.integers(0, 3) / 2
        rows.append(Row(f"r{k}", {name: float(v) for name, v in zip(names, a, strict=True) if v}, lb, ub, ""))
    return Rows.of([row for row in rows if row.terms], {name: j for j, name in enumerate(names)})


def allowed(problem: Problem) -> list[np.ndarray]:
    assert problem.rows is not None
    A, count = problem.rows.matrix.toarray(), problem.atoms.count
    every = [np.array(bits, dtype=bool) for bits in itertools.product((0, 1), repeat=count)]
    fits = [s for s in every if problem.M is None or s.sum() <= problem.M]
    return [s for s in fits if np.all(A @ s <= problem.rows.ub + 1e-9) and np.all(A @ s >= problem.rows.lb - 1e-9)]


def enumerated(problem: Problem) -> float:
    data = problem.data
    X = (data.X.toarray() if data.is_sparse else data.X) - data.center
    values = []
    for s in allowed(problem):
        columns = problem.atoms.columns(np.flatnonzero(s))
        Z = X[:, columns.ids] * columns.scale
        value = oracles.svm_value(Z, data.y, problem.c_i, problem.bias, problem.loss).upper
        values.append(value + float(problem.penalty[s].sum()))
    return min(values, default=np.inf)


@pytest.mark.sampled(17)
@pytest.mark.parametrize("kind", ATOMS)
@pytest.mark.parametrize("loss", LOSSES)
def test_equals_enumeration(loss: str, kind: str) -> None:
    r = np.random.default_rng([5, LOSSES.index(loss), ATOMS.index(kind)])
    data = draw(int(r.integers(100)), int(r.choice([8, 40])), 6, str(r.choice(["dense", "csc"])))
    atoms = atoms_of(data, kind, r)
    lam = [0.0, tuple(r.uniform(0, 1.0, atoms.count))][int(r.integers(2))]
    problem = Problem(
        data, loss=loss, bias=bool(r.integers(2)), M=max(1, atoms.count // 2), C=2.0, lam=lam, atoms=atoms
    )
    problem = problem.replace(rows=rows_of(atoms.names, r, r.permutation(KINDS)[:3]))
    value, result = enumerated(problem), solve(problem, "branch", gap=1e-7)
    if not np.isfinite(value):
        assert result.status is Status.INFEASIBLE
        return
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(value, rel=1e-6)
    assert result.bound <= value * (1 + 1e-9)
    if kind == "features":
        report = mipfs.verify(result, data)
        assert report.accepted, report.reason


@pytest.mark.slow
def test_rows_that_bind_at_many_nodes() -> None:
    """A tree of some size: the answer of gbd, a certificate, and the same tree on one thread and on two."""
    X, y = aytug_one(200, 30, 8, seed=3)["train"]
    r = np.random.default_rng(0)
    problem = Problem(Instance.from_arrays(X, y), M=8, C=4.0)
    problem = problem.replace(rows=rows_of(problem.atoms.names, r, ["conflict"] * 8 + ["implication"] * 8 + ["budget"]))
    results = [solve(problem, "branch", threads=threads) for threads in (1, 2)]
    assert len({(one.objective, one.bound, one.counters["nodes"]) for one in results}) == 1
    assert results[0].counters["nodes"] > 20
    assert results[0].objective == pytest.approx(solve(problem, "gbd").objective, rel=2e-4)
    report = mipfs.verify(results[0], problem.data)
    assert report.accepted, report.reason


def test_a_limit_leaves_a_certified_bound() -> None:
    X, y = aytug_one(300, 40, 10, seed=1)["train"]
    r = np.random.default_rng(1)
    problem = Problem(Instance.from_arrays(X, y), M=10, C=32.0)
    problem = problem.replace(rows=rows_of(problem.atoms.names, r, ["conflict"] * 10 + ["budget"]))
    result = solve(problem, "branch", iteration_limit=30)
    assert result.status is Status.FEASIBLE
    report = mipfs.verify(result, problem.data)
    assert report.accepted, report.reason
    assert report.bound == pytest.approx(result.bound, rel=1e-9)


def test_extra_variables_leave_nothing_out() -> None:
    """Modules: a feature needs its module, of which one may be bought; two features of different modules exclude."""
    data = draw(4, 40, 6, "dense")
    extra = Extras(("extra_a", "extra_b"), np.zeros(2), np.ones(2), np.ones(2, bool))
    names = data.feature_names
    rows = [Row(f"m{j}", {name: 1.0, extra.names[j % 2]: -1.0}, -np.inf, 0.0, "") for j, name in enumerate(names)]
    rows.append(Row("one", dict.fromkeys(extra.names, 1.0), -np.inf, 1.0, ""))
    problem = Problem(data, M=3, C=3.0, rows=Rows.of(rows, data.index, extra))
    plain = Problem(data, M=3, C=3.0)
    values = [solve(plain.replace(forced_out=tuple(names[side::2])), "branch", gap=1e-8).objective for side in (0, 1)]
    result = solve(problem, "branch", gap=1e-7)
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(min(values), rel=1e-6)
    report = mipfs.verify(result, data)
    assert report.accepted, report.reason


@pytest.mark.parametrize("seed", range(30))
def test_propagation_keeps_every_selection(seed: int) -> None:
    """No allowed selection of a node contradicts what is fixed, none is left where a row breaks, and a dive is one."""
    r = np.random.default_rng(seed)
    data = draw(seed, 8, 7, "dense")
    problem = Problem(data, M=int(r.integers(1, 8)))
    problem = problem.replace(rows=rows_of(data.feature_names, r, r.choice(KINDS, 4)))
    propagation = Propagation(problem.selection, np.arange(7))
    states = np.full(7, FREE, dtype=np.int8)
    fixed = r.permutation(7)[: r.integers(0, 4)]
    states[fixed] = r.choice([INSIDE, OUTSIDE], fixed.size)
    fits = [s for s in allowed(problem) if np.all(s[states == INSIDE]) and not np.any(s[states == OUTSIDE])]
    after = propagation(states)
    if after.broken is not None:
        assert not fits
    for s in fits:
        assert np.all(s[after.states == INSIDE])
        assert not np.any(s[after.states == OUTSIDE])
    dived = propagation.dive(r.permutation(7))
    if dived is not None:
        assert any(np.array_equal(s, dived == INSIDE) for s in allowed(problem))


def test_an_idle_row_has_no_multiplier() -> None:
    data = draw(1, 8, 4, "dense")
    problem = Problem(data, M=2).with_rows(np.array([[1.0, 1.0, 0, 0], [1, 1, 1, 0]]), -np.inf, [1.0, 2.0])
    sides, idle = Propagation(problem.selection, np.arange(4)).sides, np.empty(4, dtype=np.bool_)
    for states, left in (([FREE, FREE, FREE, FREE], [-0.5, 0.0]), ([OUTSIDE, FREE, FREE, FREE], [0.0, 0.0])):
        y = np.array([-0.5, -0.5])
        drop_idle(sides, 2, np.array(states, dtype=np.int8), y, idle)
        assert y.tolist() == left
