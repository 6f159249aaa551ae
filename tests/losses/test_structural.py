"""The structural loss: its inner solver, its exact dual vectors, and its bundle, against enumerated labellings."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import sparse

from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.inner.subproblem import Subproblem
from mipfs.kernels.simplex_qp import PROXIMAL_WEIGHT, maximise_on_simplex
from mipfs.losses.hinge import LOSS as hinge
from mipfs.losses.structural import StructuralSolver
from mipfs.measures import get_measure
from mipfs.problem import Problem
from mipfs.svm.labellings import Labellings, feasible
from tests.structural_oracles import cases, labellings, structural_svm

Array = npt.NDArray[np.float64]


def draw(seed: int, n: int = 7, p: int = 4) -> tuple[Array, Array]:
    r = np.random.default_rng(seed)
    X = r.standard_normal((n, p))
    y = np.where(X[:, 0] + r.standard_normal(n) > 0.3, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return X, y


def problem(data: Instance, name: str = "f1", **given: Any) -> Problem:
    return Problem(data, loss="structural", bias=False, measure=name, **given)


def exact_loss(problem: Problem, counts: npt.NDArray[Any]) -> Fraction:
    """Δ of F1 or the error rate as a fraction."""
    wrong = counts > 0
    b, c = int(np.sum(wrong & (problem.data.y < 0))), int(np.sum(wrong & (problem.data.y > 0)))
    P = int(np.sum(problem.data.y > 0))
    return (
        Fraction(b + c, problem.data.n_samples)
        if problem.measure == "error"
        else 1 - Fraction(2 * (P - c), 2 * P - c + b)
    )


@pytest.mark.sampled(29)
@pytest.mark.parametrize("C", [0.1, 3.0, 200.0])
@pytest.mark.parametrize(("name", "given"), cases())
def test_value_equals_all_labellings(name: str, given: dict[str, Any], C: float) -> None:
    n = 6 if name in ("roc-auc", "average-precision") else 7
    for seed in range(3):
        X, y = draw(seed, n)
        losses, V = labellings(name, y, given.get("beta", 1.0), given.get("k"))
        subproblem = Subproblem(problem(Instance.from_arrays(X, y), name, C=C, **given))
        for sigma in (np.ones(4), np.array([1.0, 0, 1, 0]), np.array([0.3, 0.5, 0.01, 1.0]), np.zeros(4)):
            value, w = structural_svm(X * np.sqrt(sigma), losses, V, C)
            solved = subproblem.solve(sigma, 1e-9)
            assert solved.value == pytest.approx(value, rel=2e-8)
            assert solved.svm.dual <= value * (1 + 1e-12)
            assert solved.svm.dual == pytest.approx(value, rel=2e-8)
            np.testing.assert_allclose(solved.svm.w, (np.sqrt(sigma) * w)[solved.ids] if w.size else [], atol=1e-3)
            assert solved.cut(sigma) == pytest.approx(value, rel=2e-8)
            other = np.random.default_rng(seed).random(4)
            assert solved.cut(other) <= structural_svm(X * np.sqrt(other), losses, V, C)[0] * (1 + 1e-9)


@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_what_it_leaves_when_it_must_stop_holds_and_the_next_solve_goes_on(rounds: int) -> None:
    X, y = draw(5, 40)
    asked = problem(Instance.from_arrays(X, y), C=30.0)
    value = Subproblem(asked).solve(np.ones(4), 1e-9).value
    left = [rounds]

    def must_stop() -> bool:
        left[0] -= 1
        return left[0] < 0

    subproblem = Subproblem(asked, must_stop)
    cut_short = subproblem.solve(np.ones(4), 1e-9)
    assert left[0] == -2, "it ends at the first time that it is told to, and the subproblem asks too"
    assert cut_short.lower < value * (1 - 1e-6)
    assert value * (1 - 1e-9) <= cut_short.value < np.inf
    left[0] = 10**6
    assert subproblem.solve(np.ones(4), 1e-9).value == pytest.approx(value, rel=2e-8)


def test_error_rate_is_a_hinge_svm() -> None:
    for seed, C in ((0, 1.0), (1, 30.0), (2, 1000.0)):
        X, y = draw(seed, 60, 6)
        data, ids = Instance.from_arrays(X, y), np.arange(6)
        found = Subproblem(problem(data, "error", C=C)).solve(np.ones(6), 1e-9)
        svm = hinge.Solver(data, np.full(60, 4 * C / 60), False).solve(ids, tol=1e-10)
        assert found.value == pytest.approx(0.25 * svm.primal, rel=1e-6)
        assert found.svm.dual == pytest.approx(0.25 * svm.dual, rel=1e-6)


def test_roc_area_is_a_hinge_svm_on_pairs() -> None:
    for seed, C in ((0, 1.0), (1, 50.0)):
        X, y = draw(seed, 30, 5)
        pairs = (X[y > 0][:, None, :] - X[y < 0][None, :, :]).reshape(-1, 5)
        signs = np.where(np.arange(len(pairs)) % 2 == 0, 1.0, -1.0)
        found = Subproblem(problem(Instance.from_arrays(X, y), "roc-auc", C=C)).solve(np.ones(5), 1e-9)
        of_pairs = Instance.from_arrays(pairs * signs[:, None], signs)
        svm = hinge.Solver(of_pairs, np.full(len(pairs), 4 * C / len(pairs)), False).solve(np.arange(5), tol=1e-10)
        assert found.value == pytest.approx(0.25 * svm.primal, rel=1e-6)


@pytest.mark.parametrize("name", ["error", "f1"])
@pytest.mark.parametrize("C", [1e-3, 0.7, 1.0, 12345.678])
def test_dual_vectors_are_feasible_as_integers(name: str, C: float) -> None:
    X, y = draw(4, 40, 5)
    asked = problem(Instance.from_arrays(X, y), name, C=C)
    found = Subproblem(asked).solve(np.ones(5), 1e-8).svm.combination
    assert found is not None
    unit = Fraction(1, 2**found.q) if found.q >= 0 else Fraction(2**-found.q)
    alpha = [int(k) * unit for k in found.whole]
    assert min(alpha) > 0
    assert sum(alpha) <= Fraction(C)
    assert sum(alpha) > Fraction(C) * Fraction(999, 1000)
    g = sum(a * exact_loss(asked, counts) for a, counts in zip(alpha, found.counts, strict=True))
    assert Fraction(found.value_below) <= g
    assert float(g) == pytest.approx(found.value_below, rel=1e-12)
    for i in range(40):
        v = sum(a * int(counts[i]) for a, counts in zip(alpha, found.counts, strict=True)) * Fraction(int(2 * y[i]), 40)
        assert abs(Fraction(found.v[i]) - v) <= 3 * abs(v) * Fraction(1, 2**53)


def test_rounding_keeps_the_sum() -> None:
    for C, largest in ((1.0, 1), (1.0, 10**6), (0.3, 1), (7e8, 3), (1e-9, 2**31 - 1)):
        whole, q = feasible(np.array([0.4, 0.7, -1e-9, 0.0, 2.0]) * C, C, largest)
        assert np.all(whole >= 0)
        assert sum(int(k) for k in whole) * Fraction(2) ** -q <= Fraction(C)
        assert int(whole.sum()) * largest < 2**63


@pytest.mark.parametrize("scale", ["none", "standard"])
def test_sparse_data_is_centred_without_being_filled(scale: str) -> None:
    X, y = draw(6, 30, 5)
    X = np.where(np.abs(X) < 1.0, 0.0, X + 3.0)
    dense, thin = (Instance.from_arrays(Z, y, scale=scale) for Z in (X, sparse.csc_array(X)))
    for sigma in (np.ones(5), np.array([0.5, 0, 0.2, 1.0, 0])):
        one, two = (Subproblem(problem(data, "f1", C=5.0)).solve(sigma, 1e-9) for data in (dense, thin))
        assert two.value == pytest.approx(one.value, rel=1e-8)
        assert two.svm.dual == pytest.approx(one.svm.dual, rel=1e-8)


def test_evaluate_is_the_objective() -> None:
    X, y = draw(1)
    losses, V = labellings("f1", y)
    w = np.array([0.3, -1.2])
    expected = 0.5 * w @ w + 2.5 + 3.0 * max(0.0, np.max(losses - (V @ X[:, [0, 2]]) @ w))
    asked = problem(Instance.from_arrays(X, y), C=3.0, lam=1.25)
    assert asked.evaluate([0, 2], w, 0.0) == pytest.approx(expected, rel=1e-13)


def test_the_bundle_is_filled_as_needed_and_forgets() -> None:
    r = np.random.default_rng(0)
    X, y = draw(0, 50, 9)
    data = Instance.from_arrays(sparse.csc_array(X), y, scale="standard")
    Z = (X - X.mean(0)) / X.std(0)
    measure = get_measure("f1", y)
    pool = Labellings(data, measure)
    for step in range(60):
        pool.add(measure.violated(r.standard_normal(50)))
        ids = r.permutation(9)[: int(r.integers(1, 9))]
        expected = Z[:, ids].T @ measure.direction(pool.counts).T
        np.testing.assert_allclose(pool.block(ids), expected, atol=1e-12)
        pool.mark(r.random(len(pool)) < 0.7)
        if step % 7 == 0:
            before, kept = pool.losses.copy(), pool.drop(3, 5)
            np.testing.assert_array_equal(pool.losses, before[kept])
            assert len(pool) >= min(5, before.size)
    violated = measure.violated(np.full(50, 0.1))
    assert pool.add(violated)
    assert not pool.add(violated)
    ids = np.arange(9)
    np.testing.assert_allclose(pool.last(ids, data.X), pool.block(ids)[:, -1], atol=1e-12)


def test_the_small_quadratic_program_equals_clarabel() -> None:
    import cvxpy as cp

    for seed in range(40):
        r = np.random.default_rng(seed)
        k, K = int(r.integers(1, 8)), int(r.integers(2, 30))
        B = r.standard_normal((k, K)) * 10.0 ** r.uniform(-2, 2)
        B[:, K // 2] = B[:, 0]  # two of the same
        d = np.round(r.random(K), 1)
        beta = np.zeros(K)
        beta[int(r.integers(K))] = 1.0
        maximise_on_simplex(B.T @ B, d, beta, PROXIMAL_WEIGHT)
        x = cp.Variable(K, nonneg=True)
        program = cp.Problem(cp.Maximize(d @ x - 0.5 * cp.sum_squares(B @ x)), [cp.sum(x) == 1])
        program.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
        assert np.all(beta >= 0.0)
        assert beta.sum() == pytest.approx(1.0, abs=1e-12)
        found = d @ beta - 0.5 * np.sum(np.square(B @ beta))
        assert found == pytest.approx(program.value, abs=1e-8 * max(1.0, abs(program.value)))


def test_long_runs_forget_labellings_and_stay_right() -> None:
    X, y = draw(3, 80, 10)
    asked = problem(Instance.from_arrays(X, y), "f1", C=50.0)
    warm, r = Subproblem(asked), np.random.default_rng(0)
    solver = warm._solver
    assert isinstance(solver, StructuralSolver)
    for step in range(30):
        sigma = np.round(r.random(10) * (r.random(10) < 0.6), 2)
        value = warm.solve(sigma, 1e-8).value
        if step % 6 == 5:
            assert value == pytest.approx(Subproblem(asked).solve(sigma, 1e-8).value, rel=1e-7)
    assert len(solver.labellings) < 600


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"bias": True, "measure": "f1", "intercept_scaling": 0.0}, "intercept_scaling = 0.0 must be a number > 0"),
        ({}, "needs a measure: one of error, f1"),
        ({"measure": "f3"}, "measure 'f3' is not known"),
        ({"measure": "fbeta"}, "needs beta"),
        ({"measure": "fbeta", "beta": -2.0}, "beta = -2.0 must be a positive number"),
        ({"measure": "precision-at-k", "k": 8}, "k = 8 must lie between 1 and 7, the number of samples"),
        ({"measure": "f1", "k": 2}, "has no k"),
        ({"loss": "hinge", "measure": "f1"}, "belong to the loss 'structural', not to 'hinge'"),
        ({"measure": "f1", "margin": "rho"}, "margin = 'rho'"),
    ],
)
def test_what_a_problem_refuses(given: dict[str, Any], message: str) -> None:
    data = Instance.from_arrays(*draw(0))
    with pytest.raises(UsageError, match=message) as caught:
        Problem(data, **{"loss": "structural", "bias": False, **given})
    assert "\n" not in str(caught.value)


def test_sample_weights_are_refused() -> None:
    X, y = draw(0)
    data = Instance.from_arrays(X, y, sample_weight=np.linspace(1, 2, 7))
    with pytest.raises(UsageError, match="no sample weights"):
        problem(data)
