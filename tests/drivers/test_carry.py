"""What is carried from one solve to the next: cuts that keep the relaxation's bound, supports that are allowed."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from mipfs.atoms.features import Features
from mipfs.data.instance import Instance
from mipfs.drivers import solve
from mipfs.errors import UsageError
from mipfs.inner.subproblem import Subproblem
from mipfs.problem import Problem
from mipfs.proof.cuts import CutPool
from mipfs.run.carry import adapt_cuts, carry_cuts, support

P = 9


def draw(seed: int, n: int = 60, weights: Any = None, scale: Any = "none") -> Instance:
    r = np.random.default_rng(seed)
    X = r.standard_normal((n, P))
    y = np.where(X @ r.standard_normal(P) + 2 * r.standard_normal(n) > 0, 1.0, -1.0)
    return Instance.from_arrays(X, y, sample_weight=weights, scale=scale)


def pool_of(problem: Problem, driver: str = "gbd") -> CutPool:
    pool = solve(problem, driver, gap=1e-6, pool=CutPool(problem)).pool
    assert pool is not None
    return pool


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


@pytest.mark.sampled(5)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("M", "lam"), [(2, 0.0), (4, 0.0), (None, 0.7)])
def test_the_cuts_that_are_carried_keep_the_bound_of_the_relaxation(seed: int, M: int | None, lam: float) -> None:
    data = draw(seed)
    pool = pool_of(Problem(data, M=3, C=0.5))
    after = Problem(data, M=M, C=0.5, lam=lam)
    carried = carry_cuts(pool, after)
    assert 0 < len(carried) < len(pool)
    assert relaxed_bound(carried, after) == pytest.approx(relaxed_bound(pool, after), rel=1e-5)
    rows = {slopes.tobytes() for slopes in pool.slopes}
    assert all(slopes.tobytes() in rows for slopes in carried.slopes), "no cut is made up"


def test_nothing_is_carried_from_nothing() -> None:
    problem = Problem(draw(0), M=2)
    assert len(carry_cuts(CutPool(problem), problem)) == 0
    assert support(CutPool(problem), problem, ("x3", "x1")) == ("x1", "x3")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(4))
def test_a_support_grows_and_shrinks_to_the_next_problem(seed: int) -> None:
    data = draw(seed)
    problem = Problem(data, M=3, C=0.5)
    result = solve(problem, "gbd", pool=CutPool(problem))
    pool = result.pool
    assert pool is not None
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


@pytest.mark.sampled(5)
@pytest.mark.parametrize("seed", range(4))
def test_a_support_is_repaired_for_rows(seed: int) -> None:
    data = draw(seed)
    problem = Problem(data, M=3, C=0.5)
    result = solve(problem, "gbd", pool=CutPool(problem))
    pool = result.pool
    assert pool is not None
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


def kinds(loss: str) -> dict[str, Any]:
    return {"loss": loss} | ({"bias": False, "measure": "f1"} if loss == "structural" else {})


@pytest.mark.sampled(17)
@pytest.mark.parametrize("loss", ["hinge", "squared-hinge", "logistic", "structural"])
@pytest.mark.parametrize("driver", ["branch", "gbd"])
@pytest.mark.parametrize(("before", "now"), [(8.0, 0.5), (0.5, 8.0), (2.0, 2.0), (1e3, 1e-2)])
def test_cuts_of_another_C_are_below_v_everywhere(loss: str, driver: str, before: float, now: float) -> None:
    """Every cut against v(σ) of every support, solved on its own; and the answer with and without them."""
    weights = np.random.default_rng(0).uniform(0.3, 3.0, 60) if loss != "structural" else None
    data = draw(5, weights=weights)
    factor = 30.0 if loss == "structural" else 1.0
    first = Problem(data, M=3, C=factor * before, forced_out=("x2",), **kinds(loss))
    then = Problem(data, M=2, C=factor * now, **kinds(loss))
    pool = pool_of(first, driver)
    held = pool.constants.copy(), pool.slopes.copy()
    taken, subproblem = adapt_cuts(pool, then), Subproblem(then)
    assert len(taken) == len(pool)
    for size in range(3):
        for ids in itertools.combinations(range(P), size):
            sigma = np.zeros(P)
            sigma[list(ids)] = 1.0
            assert taken.values(sigma).max() <= subproblem.solve(sigma, 1e-9).value * (1 + 1e-9)
    result, cold = solve(then, driver, gap=1e-6, pool=pool), solve(then, driver, gap=1e-6)
    assert result.objective == pytest.approx(cold.objective, rel=2e-6)
    assert result.bound <= cold.objective * (1 + 1e-9)
    assert len(pool) == len(held[0]), "a run leaves the pool that it is given as it was"
    assert np.array_equal(pool.constants, held[0])
    assert np.array_equal(pool.slopes, held[1])
    assert result.pool is not None
    assert len(result.pool) > len(taken)
    assert cold.pool is None


@pytest.mark.slow
def test_a_pool_of_another_problem_is_refused() -> None:
    data = draw(1)
    problem = Problem(data, M=2)
    pool = pool_of(problem)
    others = [
        ("of other data", Problem(draw(2), M=2)),
        ("of other data", Problem(draw(1, weights=np.linspace(1.0, 2.0, 60)), M=2)),
        ("of other data", Problem(draw(1, scale="standard"), M=2)),
        ("of other atoms", problem.replace(atoms=Features(data, "norm"))),
        ("loss = 'hinge', the problem has 'logistic'", problem.replace(loss="logistic")),
        ("bias = True, the problem has False", problem.replace(bias=False)),
    ]
    for (said, other), driver in itertools.product(others, ("branch", "gbd")):
        with pytest.raises(UsageError, match=said):
            solve(other, driver, pool=pool)
    again = Problem(draw(1), M=3)  # the same data, read twice
    assert solve(again, "gbd", pool=pool).objective == pytest.approx(solve(again, "gbd").objective, rel=1e-6)
    joint = Problem(data, M=2, C=30.0, **kinds("structural"))
    with pytest.raises(UsageError, match="measure = 'f1'"):
        solve(joint.replace(measure="error"), "gbd", pool=pool_of(joint))
