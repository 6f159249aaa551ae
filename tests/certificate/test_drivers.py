"""The certificates of the drivers: accepted, and as strong as what the drivers say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

import mipfs
from mipfs.problem import Problem
from mipfs.proof.cuts import CutPool
from mipfs.result.result import Status
from mipfs.selection.selection import Extras, Rows
from tests.certificate.trees import LOSSES, make_data

DRIVERS = ("branch", "gbd", "kelley")
CASES = [
    pytest.param(driver, seed, marks=() if seed // 6 == k else pytest.mark.slow)
    for k, driver in enumerate(DRIVERS)
    for seed in range(30)
]
"""Six in a row are each loss with rows and without; of each driver six of their own are fast."""


def drawn(seed: int) -> Problem:
    """A small problem of any kind."""
    rng, p = np.random.default_rng(seed), 8
    weights = rng.uniform(0.5, 2.0, 30) if seed % 3 == 0 else None
    X: Any = rng.normal(size=(30, p)) + (1e4 if seed % 14 == 7 else 0.0)
    if seed % 4 == 1:
        X = sparse.csc_array(np.where(rng.random((30, p)) < 0.4, X, 0.0))
    data = make_data(rng, X=X, scale=rng.choice(["none", "standard", "unit"]), sample_weight=weights)
    problem = Problem(
        data, loss=LOSSES[seed % 3], bias=bool(seed % 2), M=int(rng.integers(1, 6)) if seed % 4 else None,
        C=10.0 ** rng.uniform(-1.0, 1.0), lam=float(rng.choice([0.0, 0.1])),
        forced_out=("x8",) if seed % 5 == 2 else (),
    )  # fmt: skip
    if seed % 2 == 0:
        problem = problem.with_rows(rng.integers(-2, 3, (3, p)), -np.inf, rng.integers(0, 2, 3))
    if seed % 5 == 0:
        extra = Extras(
            ("extra_a", "extra_b"), np.array([0.0, -np.inf]), np.array([np.inf, np.inf]), np.array([True, False])
        )
        matrix = sparse.csr_array(np.hstack([rng.integers(-1, 2, (2, p)), rng.integers(-2, 3, (2, 2))]).astype(float))
        rows = Rows(matrix, np.array([-1.0, 0.0]), np.array([1.0, 2.0]), ("e1", "e2"), ("", ""), extra)
        assert problem.rows is not None
        problem = problem.replace(rows=problem.rows.stack(rows))
    return problem


@pytest.mark.sampled(7)
@pytest.mark.parametrize(("driver", "seed"), CASES)
def test_every_kind_of_problem_leaves_a_certificate_that_bears_its_bound(driver: str, seed: int) -> None:
    problem = drawn(seed)
    result = mipfs.solve(problem, driver, gap=1e-6)
    report = mipfs.verify(result, problem.data)
    assert report.accepted, report.reason
    assert report.bound == pytest.approx(result.bound, rel=1e-6, abs=1e-6 * float(problem.c_i.sum()))
    assert report.bound <= result.bound
    if driver != "kelley":
        assert result.status is Status.OPTIMAL
        assert report.gap <= 1e-6 + 1e-9


@pytest.mark.parametrize("driver", ["branch", "gbd"])
def test_a_run_that_was_stopped_closes_its_open_nodes(driver: str) -> None:
    data = mipfs.read("instances/wdbc.svm", scale="standard")
    result = mipfs.solve(Problem(data, M=5), driver, iteration_limit=60)
    assert result.status is Status.FEASIBLE
    report = mipfs.verify(result, data)
    assert report.accepted, report.reason
    assert report.bound == pytest.approx(result.bound, rel=1e-9)
    assert report.gap > 1e-4


@pytest.mark.slow
def test_the_leaves_of_gbd_are_not_all_alike() -> None:
    """Rows that make branches empty: rays, cardinality, reduced costs and closed leaves stand in one tree."""
    data = mipfs.read("instances/wdbc.svm", scale="standard")
    rng = np.random.default_rng(0)
    A = np.zeros((3, 30))
    A[0, :10], A[1, 5:20] = 1.0, rng.uniform(0.5, 2.0, 15)
    A[2, 2], A[2, 3] = 1.0, -1.0
    problem = Problem(data, M=4, C=0.1).with_rows(A, [-np.inf, 1.0, -np.inf], [2.0, 3.0, 0.0])
    result = mipfs.solve(problem, "gbd")
    report = mipfs.verify(result, data)
    assert report.accepted, report.reason
    assert result.claim is not None
    arrays = result.claim.proof.arrays()
    assert (arrays["dual"] == -2).any()
    assert (arrays["multiplier"] >= 0).any()
    assert report.n_leaves > 100


def pool_of(problem: Problem) -> CutPool:
    from mipfs.drivers import gbd
    from mipfs.run.run import Run

    run = Run(problem, gbd.Options())
    for _ in gbd.run(run):
        pass
    assert run.outcome.pool is not None
    return run.outcome.pool


@pytest.mark.sampled(2)
@pytest.mark.parametrize("loss", LOSSES)
def test_cuts_of_a_smaller_C_certify_at_a_larger_one(loss: str) -> None:
    data = make_data(np.random.default_rng(3), n=60, p=8)
    small = Problem(data, loss=loss, M=3, C=0.2)
    large = small.replace(C=1.0)
    pool = pool_of(small)
    before = len(pool)
    result = mipfs.solve(large, "gbd", pool=pool, gap=1e-6)
    assert len(pool) >= before
    report = mipfs.verify(result, data)
    assert report.accepted, report.reason


@pytest.mark.sampled(2)
@pytest.mark.parametrize("loss", LOSSES)
def test_cuts_of_a_larger_C_certify_at_a_smaller_one(loss: str) -> None:
    data = make_data(np.random.default_rng(3), n=60, p=8)
    small = Problem(data, loss=loss, M=3, C=0.2)
    pool = pool_of(small.replace(C=1.0))
    result = mipfs.solve(small, "gbd", pool=pool, gap=1e-6)
    report = mipfs.verify(result, data)
    assert report.accepted, report.reason


@pytest.mark.slow
def test_the_search_is_the_same_with_and_without_a_record(monkeypatch: pytest.MonkeyPatch) -> None:
    from mipfs.drivers import gbd

    data = mipfs.read("instances/wdbc.svm", scale="standard")
    problem = Problem(data, M=3, C=0.1)
    kept = mipfs.solve(problem, "gbd")

    class Blind(gbd.EvidenceTree):
        """Keeps nothing."""

        def finish(self, _: Any) -> None:
            return None

    monkeypatch.setattr(gbd, "EvidenceTree", Blind)
    plain = mipfs.solve(problem, "gbd")
    assert mipfs.verify(plain, data).accepted
    assert (kept.counters, kept.objective) == (plain.counters, plain.objective)
    assert plain.bound < kept.bound  # what no record shows is not reported


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("case", ["rows", "cardinality", "forced"])
def test_an_empty_selection_set_is_certified(driver: str, case: str) -> None:
    data = make_data(np.random.default_rng(2), n=20, p=5)
    problem = Problem(data, M=2, forced_in=("x1", "x2", "x3") if case == "cardinality" else ())
    if case == "forced":
        problem = problem.replace(forced_in=("x1",), forced_out=("x1",))
    if case == "rows":  # the relaxation is not empty: the tree must branch
        problem = problem.with_rows([[2.0, 2.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0, 1.0]], [1.0, 2.0], [1.0, 2.0])
    result = mipfs.solve(problem, driver)
    assert result.status is Status.INFEASIBLE
    report = mipfs.verify(result, data)
    assert report.accepted, report.reason
    assert report.bound == np.inf
    assert report.n_leaves == (1 if case != "rows" else report.n_leaves)
