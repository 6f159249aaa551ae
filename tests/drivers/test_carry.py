"""What is carried from one solve to the next: cuts that keep the relaxation's bound, supports that are allowed."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

from mipfs.drivers import solve
from mipfs.drivers.carry import carry, support
from mipfs.drivers.cuts import CutPool
from mipfs.instance import Instance
from mipfs.problem import Problem

P = 9


def draw(seed: int, n: int = 60) -> Instance:
    r = np.random.default_rng(seed)
    X = r.standard_normal((n, P))
    return Instance.from_arrays(X, np.where(X @ r.standard_normal(P) + 2 * r.standard_normal(n) > 0, 1.0, -1.0))


def relaxed_bound(pool: CutPool, problem: Problem) -> float:
    """min c'σ + η over all cuts of the pool and Σσ ≤ M, by SciPy."""
    k = len(pool)
    cuts = np.hstack([-0.5 * pool.slopes, -np.ones((k, 1))])
    budget = np.append(np.ones(P), 0.0)[None, :]
    answer = linprog(
        np.append(problem.penalty, 1.0),
        A_ub=np.vstack([cuts, budget]),
        b_ub=np.append(-pool.constants, float(P if problem.M is None else problem.M)),
        bounds=[(0.0, 1.0)] * P + [(None, None)],
    )
    assert answer.status == 0
    return float(answer.fun)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("M", "lam"), [(2, 0.0), (4, 0.0), (None, 0.7)])
def test_the_cuts_that_are_carried_keep_the_bound_of_the_relaxation(seed: int, M: int | None, lam: float) -> None:
    pool, data = CutPool(P), draw(seed)
    solve(Problem(data, M=3, C=0.5), "gbd", gap=1e-6, pool=pool)
    after = Problem(data, M=M, C=0.5, lam=lam)
    carried = carry(pool, after)
    assert 0 < len(carried) < len(pool)
    assert relaxed_bound(carried, after) == pytest.approx(relaxed_bound(pool, after), rel=1e-5)
    rows = {slopes.tobytes() for slopes in pool.slopes}
    assert all(slopes.tobytes() in rows for slopes in carried.slopes), "no cut is made up"


def test_nothing_is_carried_from_nothing() -> None:
    problem = Problem(draw(0), M=2)
    assert len(carry(CutPool(P), problem)) == 0
    assert support(CutPool(P), problem, ("x3", "x1")) == ("x1", "x3")


@pytest.mark.parametrize("seed", range(4))
def test_a_support_grows_and_shrinks_to_the_next_problem(seed: int) -> None:
    pool, data = CutPool(P), draw(seed)
    result = solve(Problem(data, M=3, C=0.5), "gbd", pool=pool)
    larger = support(pool, Problem(data, M=5, C=0.5), result.selected)
    assert larger is not None
    assert set(result.selected) < set(larger)
    assert len(larger) == 5
    smaller = support(pool, Problem(data, M=1, C=0.5), result.selected)
    assert smaller is not None
    assert len(smaller) == 1
    assert set(smaller) < set(result.selected)
    free = support(pool, Problem(data, C=0.5, lam=1.0), result.selected)
    assert free == result.selected, "without a cardinality row nothing is added"


@pytest.mark.parametrize("seed", range(4))
def test_a_support_is_repaired_for_rows(seed: int) -> None:
    pool, data = CutPool(P), draw(seed)
    problem = Problem(data, M=3, C=0.5)
    result = solve(problem, "gbd", pool=pool)
    chosen = [data.index[name] for name in result.selected]
    A = np.zeros((1, P))
    A[0, chosen[:2]] = 1.0
    apart = problem.with_rows(A, -np.inf, 1.0)
    found = support(pool, apart, result.selected)
    assert found is not None
    held = {data.index[name] for name in found}
    allowed = [set(ids) for size in range(4) for ids in itertools.combinations(range(P), size)]
    allowed = [ids for ids in allowed if len(ids & set(chosen[:2])) <= 1]
    assert held in allowed
    assert len(held & set(chosen)) == max(len(ids & set(chosen)) for ids in allowed)
    impossible = problem.with_rows(np.ones((1, P)), P, np.inf)
    assert support(pool, impossible, result.selected) is None
