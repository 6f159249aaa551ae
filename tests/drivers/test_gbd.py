"""GBD against enumeration, its limits, and what carries over from run to run."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from mipfs.data.instance import Instance
from mipfs.drivers import gbd, solve
from mipfs.drivers.gbd import Options
from mipfs.drivers.master import Master
from mipfs.errors import UsageError
from mipfs.generators import aytug_one
from mipfs.inner.subproblem import Subproblem
from mipfs.losses.hinge import LOSS
from mipfs.problem import Problem
from mipfs.proof.cuts import CutPool
from mipfs.proof.single import cut_of
from mipfs.result.result import Record, Status, StopReason
from mipfs.result.verification import verify
from mipfs.run.run import Run
from mipfs.settings import GbdSettings, MasterSettings


def draw(seed: int, n: int = 50, p: int = 8) -> Instance:
    r = np.random.default_rng(seed)
    X = r.standard_normal((n, p))
    y = np.where(X @ r.standard_normal(p) + r.standard_normal(n) > 0, 1.0, -1.0)
    return Instance.from_arrays(X, y)


def best(problem: Problem) -> tuple[float, tuple[int, ...]]:
    """The optimum by enumeration of the selections that the set allows."""
    solver, values = LOSS.Solver(problem.data, problem.c_i, problem.bias), []
    p = problem.data.n_features
    for size in range(p + 1):
        for ids in itertools.combinations(range(p), size):
            sigma = np.zeros(p, dtype=bool)
            sigma[list(ids)] = True
            if problem.selection.contains(sigma):
                value = solver.solve(np.array(ids, dtype=np.int64), tol=1e-9).primal
                values.append((value + float(problem.penalty[sigma].sum()), ids))
    return min(values)


@pytest.mark.sampled(11)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("lam", [0.0, 1.5])
@pytest.mark.parametrize("M", [0, 3, None])
def test_equals_enumeration(M: int | None, lam: float, bias: bool) -> None:
    problem = Problem(draw(3), M=M, lam=lam, C=2.0, bias=bias)
    value, _ = best(problem)
    result = solve(problem, "gbd", gap=1e-7)
    assert result.status is Status.OPTIMAL
    assert result.stop_reason is StopReason.GAP_CLOSED
    assert result.objective == pytest.approx(value, rel=1e-6)
    assert result.bound <= value * (1 + 1e-9)
    assert result.bound == pytest.approx(value, rel=1e-6)


def test_published_optima() -> None:
    for (n, p, M, C), optimum in {
        (500, 20, 5, 1.0): 172.176,
        (500, 20, 10, 1.0): 174.809,
        (500, 20, 5, 32.0): 1614.20,
    }.items():
        X, y = aytug_one(n, p, M, seed=1)["train"]
        result = solve(Problem(Instance.from_arrays(X, y), M=M, C=C), "gbd")
        assert result.status is Status.OPTIMAL
        assert result.objective == pytest.approx(optimum, rel=1e-4)
        assert result.bound <= result.objective


def test_bound_rises_and_objective_falls() -> None:
    X, y = aytug_one(300, 15, 5, seed=2)["train"]
    result = solve(Problem(Instance.from_arrays(X, y), M=5, C=8.0), "gbd")
    trace = result.trace
    assert all(a.bound <= b.bound and a.objective >= b.objective for a, b in itertools.pairwise(trace))
    assert all(record.bound <= result.objective for record in trace)
    assert (trace[-1].objective, trace[-1].bound) == (result.objective, result.bound)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("stop_at", [0, 1, 3, 10])
def test_interrupting_leaves_a_valid_gap(stop_at: int) -> None:
    problem = Problem(draw(5, n=60, p=10), M=4, C=4.0)
    optimum = solve(problem, "gbd", gap=1e-8).objective

    def callback(record: Record) -> bool:
        return record.iteration >= stop_at

    result = solve(problem, "gbd", gap=1e-8, callback=callback)
    assert result.stop_reason is StopReason.INTERRUPTED
    assert result.status is Status.FEASIBLE
    assert result.bound <= optimum * (1 + 1e-9)
    assert result.objective >= optimum * (1 - 1e-9)


@pytest.mark.slow
def test_limits() -> None:
    X, y = aytug_one(500, 60, 20, seed=1)["train"]
    problem = Problem(Instance.from_arrays(X, y), M=20, C=32.0)
    solve(problem, "gbd", iteration_limit=1)
    begin = time.monotonic()
    result = solve(problem, "gbd", time_limit=1.0)
    assert time.monotonic() - begin < 2.0
    assert (result.status, result.stop_reason) == (Status.FEASIBLE, StopReason.TIME_LIMIT)
    assert -np.inf < result.bound < result.objective < np.inf
    result = solve(problem, "gbd", iteration_limit=7)
    assert (result.status, result.stop_reason) == (Status.FEASIBLE, StopReason.ITERATION_LIMIT)
    result = solve(problem, "gbd", time_limit=0.0)
    assert result.stop_reason is StopReason.TIME_LIMIT
    assert result.status in (Status.FEASIBLE, Status.NO_SOLUTION)


def test_infeasible_rows_are_named() -> None:
    problem = Problem(draw(1), M=2).with_rows(np.ones((1, 8)), 3, np.inf, names=["three"])
    result = solve(problem, "gbd")
    assert (result.status, result.stop_reason) == (Status.INFEASIBLE, StopReason.INFEASIBLE)
    assert set(result.conflict) == {"cardinality", "three"}
    assert result.selected == ()


@pytest.mark.slow
def test_cuts_carry_over() -> None:
    data = draw(7, n=80, p=12)
    cold = solve(Problem(data, M=4, C=1.0), "gbd", gap=1e-6)
    first = Problem(data, M=3, C=1.0)
    pool = solve(first, "gbd", gap=1e-6, pool=CutPool(first)).pool
    assert pool is not None
    warm = solve(Problem(data, M=4, C=1.0), "gbd", gap=1e-6, pool=pool)
    assert warm.objective == pytest.approx(cold.objective, rel=1e-6)
    assert warm.counters["cuts"] - len(pool) < cold.counters["cuts"]
    larger = solve(Problem(data, M=4, C=3.0), "gbd", gap=1e-6, pool=pool)
    assert larger.objective == pytest.approx(solve(Problem(data, M=4, C=3.0), "gbd", gap=1e-6).objective, rel=1e-6)
    value = solve(Problem(data, M=4, C=0.5), "gbd", gap=1e-6)
    again = solve(Problem(data, M=4, C=0.5), "gbd", gap=1e-6, pool=larger.pool)
    assert again.objective == pytest.approx(value.objective, rel=1e-6)
    assert again.bound <= value.objective * (1 + 1e-9)


def test_start_and_its_refusal() -> None:
    problem = Problem(draw(2), M=2, C=1.0)
    assert solve(problem, "gbd", start=["x1", "x2"]).status is Status.OPTIMAL
    run = Run(problem, Options(start=("x3", "x4"), iteration_limit=0))
    for _ in gbd.run(run):
        pass
    assert run.incumbent is not None
    with pytest.raises(UsageError, match="does not satisfy the rows"):
        solve(problem, "gbd", start=["x1", "x2", "x3"])
    with pytest.raises(UsageError, match="no feature is called 'y1'"):
        solve(problem, "gbd", start=["y1"])


def test_validation_stop() -> None:
    drawn = aytug_one(200, 15, 5, seed=3)
    train, validation = (Instance.from_arrays(*drawn[part]) for part in ("train", "validation"))
    result = solve(Problem(train, M=5, C=32.0), "gbd", validation=validation, patience=3)
    assert result.stop_reason is StopReason.VALIDATION
    assert result.validated is not None
    weights, names = result.validated["weights"], list(result.validated["weights"])
    columns = [int(name[1:]) - 1 for name in names]
    X, y = drawn["validation"]
    scores = X[:, columns] @ np.array([weights[name] for name in names]) + result.validated["intercept"]
    assert result.validated["error"] == pytest.approx(np.mean((scores > 0) != (y > 0)))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("driver", ["gbd", "branch"])
def test_the_validation_of_a_measure_is_by_it(driver: str) -> None:
    """What is kept is best in F1, as scikit-learn has it, though its share of wrong labels be larger."""
    from sklearn.metrics import f1_score

    drawn = aytug_one(200, 15, 5, seed=3)
    parts = []
    for part in ("train", "validation"):
        X, y = drawn[part]
        X = X + 0.8
        parts.append((X, np.where(X[:, 0] + X[:, 3] > np.quantile(X[:, 0] + X[:, 3], 0.85), 1.0, y * 0 - 1.0)))
    (X, y), (X_new, y_new) = parts
    problem = Problem(Instance.from_arrays(X, y), loss="structural", measure="f1", bias=False, M=3, C=30.0)
    result = solve(problem, driver, validation=Instance.from_arrays(X_new, y_new), patience=3)
    assert result.validated is not None
    weights = result.validated["weights"]
    columns = [int(name[1:]) - 1 for name in weights]
    scores = X_new[:, columns] @ np.array(list(weights.values())) + result.validated["intercept"]
    assert result.validated["error"] == pytest.approx(1 - f1_score(y_new, np.where(scores > 0, 1.0, -1.0)))
    assert result.validated["error"] < 1.0


def test_options_are_checked() -> None:
    problem = Problem(draw(2), M=2)
    for options, message in (
        ({"gap": -1.0}, "gap"),
        ({"time_limit": -1.0}, "time_limit"),
        ({"time": 1.0}, "no option 'time'"),
        ({"patience": 0, "validation": draw(3)}, "patience"),
    ):
        with pytest.raises(UsageError, match=message):
            solve(problem, "gbd", **options)
    with pytest.raises(UsageError, match="did you mean 'gbd'"):
        solve(problem, "gdb")


@pytest.mark.slow
def test_the_same_run_twice_is_the_same() -> None:
    problem = Problem(draw(9, n=100, p=14), M=5, C=4.0)
    one, two = (solve(problem, "gbd") for _ in range(2))
    assert (one.objective, one.bound, one.selected, one.weights) == (
        two.objective,
        two.bound,
        two.selected,
        two.weights,
    )
    assert one.counters == two.counters


def test_a_step_on_sparse_data_counts_its_dense_system() -> None:
    """Of 5,574 texts with 8,890 words each factorisation took seconds, and a limit of 5 s ended after a minute."""
    r = np.random.default_rng(0)
    X = sparse.random_array((6000, 7000), density=1e-3, format="csr", rng=r)
    problem = Problem(Instance.from_arrays(X, np.where(np.arange(6000) % 2 > 0, 1.0, -1.0)), M=3)
    most = MasterSettings().largest_step
    assert gbd._is_large(problem, np.full(7000, 0.5), most)
    assert not gbd._is_large(problem, np.r_[np.ones(2000), np.zeros(5000)], most)


def test_large_data_begin_with_what_the_relaxation_uses_and_end_with_the_same_answer() -> None:
    r = np.random.default_rng(3)
    X = r.standard_normal((80, 30))
    y = np.where(X[:, 0] + X[:, 1] + r.standard_normal(80) > 0, 1.0, -1.0)
    problem = Problem(Instance.from_arrays(X, y), M=2, C=0.1)
    usual = solve(problem, "gbd")
    large = solve(problem, "gbd", settings=GbdSettings(master=MasterSettings(largest_step=1.0)))
    assert large.status is usual.status is Status.OPTIMAL
    assert large.selected == usual.selected
    assert large.objective == pytest.approx(usual.objective, rel=1e-9)
    assert verify(large, problem.data).accepted


def test_a_selection_whose_svm_is_rough_is_asked_for_once_at_a_node(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = Problem(draw(3, n=30, p=6), M=3, C=1.0)
    optimum = solve(problem, "gbd", gap=1e-6).objective
    asked: list[bytes] = []
    before = Subproblem.solve

    def rough(self: Subproblem, sigma: np.ndarray, tol: float, enough: float = np.inf) -> Any:
        solved = before(self, sigma, tol, enough)
        if not np.all((sigma == 0.0) | (sigma == 1.0)):
            return solved
        asked.append(sigma.astype(np.int8).tobytes())
        weak = cut_of(problem, 0.5 * solved.svm.alpha)  # what a stalled SVM leaves: its dual side far below its primal
        return replace(solved, lower=0.5 * solved.lower, earn=lambda: weak)

    monkeypatch.setattr(Subproblem, "solve", rough)
    result = solve(problem, "gbd", gap=1e-6, iteration_limit=2000)
    assert result.bound <= optimum * (1 + 1e-9)
    assert result.objective == pytest.approx(optimum, rel=1e-9)
    assert max(Counter(asked).values()) < 30, "a selection is asked for round after round"


def test_a_proof_has_the_multipliers_that_its_bound_rests_on(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.array([[1.0, 1.0, 0.0, 1.0], [2.0, 0.0, 1.0, -1.0]])
    problem = Problem(draw(1, n=20, p=4), C=1.0).with_rows(rows, [1.0, -np.inf], [np.inf, 2.0])
    pool = CutPool(problem)
    pool.add(cut_of(problem, np.full(20, 0.5)))
    master = Master(problem.selection, 1e13 * np.ones(4), pool, 1.0, np.zeros(4), settings=MasterSettings())
    told = np.array([0.07, -4.3, master._row_scales[0]])  # of both rows round-off beside the costs, and of the cut
    monkeypatch.setattr(master._lp, "multipliers", lambda: told)
    node = master._heap[0][2]
    bound, _, evidence = master._safe_bound(node)
    assert evidence is not None
    assert evidence.multipliers is not None
    y = [Fraction(v) for v in np.array(evidence.multipliers, dtype=float).tolist()]
    cost = [Fraction(1e13) - Fraction(v) / 2 for v in pool.slopes[0].tolist()]
    reduced = [c - sum(Fraction(a) * v for a, v in zip(rows[:, j], y, strict=True)) for j, c in enumerate(cost)]
    ends = (Fraction(1) if y[0] > 0 else 0), (Fraction(2) if y[1] < 0 else 0)
    of_rows = sum(v * end for v, end in zip(y, ends, strict=True))
    assert bound <= Fraction(pool.constants[0]) + of_rows + sum(min(v, Fraction(0)) for v in reduced)
