"""The SVM of any regulariser against Clarabel, by the interior point and by what takes over where that circles."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import pytest

from mipfs.data.instance import Instance
from mipfs.inner import regularised
from mipfs.inner.regularised import RegularisedSolver
from mipfs.problem import Problem
from mipfs.regularisers.box import Box

LOSSES = ("hinge", "squared-hinge", "logistic")


def clarabel(problem: Problem, ids: Any, sigma: Any) -> float:
    """v(σ) on a box, w between σ·low and σ·high, declared."""
    data = problem.data
    low, high = (np.broadcast_to(end, data.n_features) for end in problem.regulariser.ends)
    moves = (low[ids] < 0.0) | (high[ids] > 0.0)  # Clarabel fails at some columns that 0 ≤ w ≤ 0 holds
    ids, sigma = ids[moves], np.asarray(sigma)[moves]
    low, high, k = low[ids], high[ids], ids.size
    w, b = cp.Variable(max(1, k)), cp.Variable() if problem.bias else 0.0
    m = cp.multiply(data.y, (data.block(ids).dense() @ w if k else np.zeros(data.n_samples)) + b)
    losses = {
        "hinge": problem.c_i @ cp.pos(1 - m),
        "squared-hinge": 0.5 * cp.sum_squares(cp.multiply(np.sqrt(problem.c_i), cp.pos(1 - m))),
        "logistic": problem.c_i @ cp.logistic(-m),
    }
    ends = [w[j] >= sigma[j] * low[j] for j in range(k) if np.isfinite(low[j])]
    ends += [w[j] <= sigma[j] * high[j] for j in range(k) if np.isfinite(high[j])]
    term = 0.5 * cp.sum_squares(cp.multiply(1 / np.sqrt(sigma), w)) if k else 0.5 * cp.sum_squares(w)
    program = cp.Problem(cp.Minimize(term + losses[problem.loss]), ends)
    return float(program.solve(solver="CLARABEL", tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9))


def case(seed: int) -> tuple[Problem, Any, Any]:
    """A problem on a box that binds at many columns, and columns with σ."""
    r = np.random.default_rng(seed)
    n, p = int(r.integers(10, 50)), 6
    X = r.normal(size=(n, p)) * 10.0 ** r.uniform(-1, 1, p) + r.normal(size=p)
    y = np.where(X @ r.normal(size=p) + r.normal(size=n) > 0, 1, -1)
    y[:2] = 1, -1
    data = Instance.from_arrays(X, y, scale=("none", "standard")[seed % 2], sample_weight=r.uniform(0.5, 2.0, n))
    low = tuple(None if r.random() < 0.3 else -float(10 ** r.uniform(-3, 1)) * (r.random() < 0.6) for _ in range(p))
    high = tuple(None if r.random() < 0.3 else float(10 ** r.uniform(-3, 1)) * (r.random() < 0.6) for _ in range(p))
    C = float(10 ** r.uniform(-2, 2))
    problem = Problem(data, loss=LOSSES[seed % 3], bias=bool(seed // 3 % 2), C=C, regulariser=Box(low, high))
    ids = np.sort(r.permutation(p)[: int(r.integers(1, p + 1))])
    return problem, ids, r.uniform(0.05, 1.0, ids.size)


@pytest.mark.parametrize("patience", [60, 0])
@pytest.mark.parametrize("seed", range(12))
def test_the_svm(seed: int, patience: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regularised, "PATIENCE", patience)  # 0: the barrier does all of it
    problem, ids, sigma = case(seed)
    value = clarabel(problem, ids, sigma)
    svm = RegularisedSolver(problem).solve(ids, sigma, tol=1e-8)
    assert svm.gap <= 1e-7
    assert svm.dual <= value * (1 + 1e-7)
    assert svm.primal == pytest.approx(value, rel=1e-6)
    low, high = problem.regulariser.at(ids).ends
    assert np.all((svm.w >= sigma * low * (1 + 1e-12)) & (svm.w <= sigma * high * (1 + 1e-12)))
    exact, margins = svm.alpha, problem.data.y * (problem.data.block(ids).dense() @ svm.w + svm.b)
    omega = problem.data.block(ids).dense().T @ (exact * problem.data.y)
    found = float(sigma @ problem.regulariser.at(ids).conjugate(omega))
    loss = RegularisedSolver(problem).loss
    assert svm.dual == pytest.approx(loss.dual_value(exact, problem.c_i) - found, rel=1e-9)
    term = float(problem.regulariser.at(ids).perspective(svm.w, sigma).sum())
    assert svm.primal == pytest.approx(loss.value(margins, problem.c_i) + term, rel=1e-9)


def test_no_column() -> None:
    problem, _, _ = case(3)
    plain = RegularisedSolver(problem).solve(np.empty(0, dtype=np.int64))
    ridge = Problem(problem.data, loss=problem.loss, bias=problem.bias, C=problem.C)
    from mipfs.inner.subproblem import Subproblem

    wanted = Subproblem(ridge).solve(np.zeros(6), 1e-8)
    assert plain.primal == pytest.approx(wanted.value, rel=1e-6)
