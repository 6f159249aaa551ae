"""The ρ-form is judged on the values that it reports, −1/(4v), and not on v, which may be far below every allowance."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import mipfs
from mipfs.data.instance import Instance
from mipfs.inner.subproblem import Subproblem
from mipfs.problem import Problem
from mipfs.result.result import Result, Status


def closes(problem: Problem, result: Result, gap: float) -> bool:
    """The contract's OPTIMAL: by the result's own numbers."""
    return result.gap <= gap and result.objective - result.bound <= gap * abs(result.objective)


def large(seed: int) -> Problem:
    """Columns of 1e2 to 1e5 that separate: v is about 1e-9, far below 1e-12 Σ c_i."""
    r = np.random.default_rng(seed)
    n = int(r.integers(6, 14))
    X = r.integers(-3, 4, (n, 4)) * 10.0 ** r.integers(2, 6, 4)
    y = np.where(X @ (10.0 ** -r.integers(2, 6, 4)) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    weights = 10.0 ** r.uniform(-2, 3, n) if seed % 2 else None
    data = Instance.from_arrays(X, y, sample_weight=weights)
    return Problem(data, loss="squared-hinge", margin="rho", bias=bool(seed % 3), M=1 + seed % 3, C=10.0 ** (seed % 5))


def enumerated(problem: Problem) -> float:
    """The least reported value over all supports, each solved on its own and evaluated on the raw data."""
    p, subproblem, values = problem.data.n_features, Subproblem(problem), []
    for chosen in itertools.product((0.0, 1.0), repeat=p):
        if problem.M is None or sum(chosen) <= problem.M:
            solved = subproblem.solve(np.array(chosen), 1e-11)
            values.append(problem.reported(problem.evaluate(solved.ids, solved.svm.w, solved.svm.b)))
    return min(values)


@pytest.mark.sampled(11)
@pytest.mark.parametrize("driver", ["branch", "gbd", "kelley"])
@pytest.mark.parametrize("seed", [0, 2, 4, 5, 7])
def test_optimal_means_the_asked_gap_in_the_reported_values(driver: str, seed: int) -> None:
    problem, gap = large(seed), 10.0 ** -(2 + seed % 4)
    result = mipfs.solve(problem, driver, gap=gap)
    assert (result.status is Status.OPTIMAL) == closes(problem, result, gap)
    best = enumerated(problem)
    assert result.bound <= best + 1e-7 * abs(best)
    if result.status is Status.OPTIMAL:
        assert result.objective <= best + (gap + 1e-7) * abs(best)


@pytest.mark.parametrize("driver", ["branch", "gbd"])
@pytest.mark.parametrize("start", [None, ("x1",), ("x2",), ("x3",)])
def test_the_better_column_wins_from_every_start(driver: str, start: tuple[str, ...] | None) -> None:
    """x2 = 10 x1 separates with a margin ten times as large: v is 1/(2·1e10)-like, its value 100 times better."""
    y = np.array([1.0, -1.0] * 5)
    X = np.column_stack([y * 1e4, y * 1e5, np.random.default_rng(3).standard_normal(10)])
    problem = Problem(Instance.from_arrays(X, y), loss="squared-hinge", margin="rho", C=1e4, M=1)
    result = mipfs.solve(problem, driver, start=start)
    assert result.status is Status.OPTIMAL
    assert result.selected == ("x2",)
    assert result.objective == pytest.approx(-5e9, rel=1e-6)  # v = ½ w², w = 1e-5: −1/(4v) = −½·1e10
    assert result.bound <= result.objective
    assert result.gap <= 1e-4


def test_the_inverse_of_what_is_reported() -> None:
    problem = large(1)
    unit = problem.replace(margin="unit")
    for v in (1e-300, 3e-9, 1.0, 7e12):
        assert problem.unit_margin(problem.reported(v)) == pytest.approx(v, rel=1e-15)
        assert unit.unit_margin(unit.reported(v)) == v
    assert problem.unit_margin(0.0) == problem.unit_margin(np.inf) == np.inf
    assert problem.unit_margin(-np.inf) == -np.inf
