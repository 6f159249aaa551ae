"""How `kelley` rounds at the papers' stop: by σ, by |w| and by the score (FGM-B), and the best of them stays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

import mipfs
from mipfs import Problem
from mipfs.atoms.groups import Groups
from mipfs.data.instance import Instance
from mipfs.drivers import kelley, rounding
from mipfs.generators.synthetic import tan_2014
from mipfs.inner.restricted import RestrictedSolution, SelectionPool
from mipfs.inner.subproblem import Subproblem
from mipfs.run.run import Run


def dense() -> Instance:
    return Instance.from_arrays(*tan_2014(200, 200, 20, seed=0)["train"])


def text() -> Instance:
    """Word counts of rows of unit length: few words decide, and many others go with them."""
    rng = np.random.default_rng(4)
    y = np.where(rng.random(250) < 0.5, 1.0, -1.0)
    rates = rng.gamma(0.3, 0.3, 600)
    lift = np.where(np.arange(600) < 40, 2.5, 1.0)
    X = rng.poisson(rates * np.where(y[:, None] > 0, lift, 1.0 / lift)).astype(float)
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12)
    return Instance.from_arrays(sparse.csc_array(X), y)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("T", [10, 15])
@pytest.mark.parametrize("make", [dense, text])
def test_the_rounded_objective_is_never_worse_than_by_sigma_by_weight_or_by_score(
    make: Any, T: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = Problem(make(), loss="squared-hinge", bias=False, M=20, C=10.0)
    by, wanted = list[Any](), problem

    def seen(problem: Problem, pool: SelectionPool, last: RestrictedSolution, among: Any = None) -> Any:
        w = np.zeros(problem.data.n_features)
        np.add.at(w, last.ids, last.w)
        omega = problem.data.X.T @ (last.alpha * problem.data.y)
        inside = np.unique(np.concatenate([ids for ids, _ in pool.members]))
        score = np.zeros(w.size)
        score[inside] = np.square(omega[inside])
        if problem is wanted and not by:  # a tiny problem comes before it
            by.extend([pool.mixture(last.mu, w.size), np.abs(w), score])
        return ranked(problem, pool, last, among)

    ranked = rounding.rounding_rankings
    monkeypatch.setattr(rounding, "rounding_rankings", seen)
    plain = mipfs.solve(problem, "kelley", T=T, polish=False)
    polished = mipfs.solve(problem, "kelley", T=T)
    subproblem = Subproblem(problem)
    values = []
    for scores in by[:3]:
        sigma = np.zeros(scores.size)
        sigma[np.argsort(-scores, kind="stable")[:20]] = 1.0
        values.append(subproblem.solve(sigma, 1e-8).value)
    assert plain.objective <= min(values) * (1 + 1e-6)
    assert polished.objective <= plain.objective


@pytest.mark.slow
def test_groups_and_penalties_are_ranked_by_what_they_gain() -> None:
    rng = np.random.default_rng(2)
    X, y = rng.standard_normal((40, 9)), np.where(rng.random(40) < 0.5, 1.0, -1.0)
    data = Instance.from_arrays(X, y)
    groups = Groups(data, {"a": [0, 1, 2], "b": [2, 3], "c": [4, 5, 6, 7], "d": [8]})
    for problem in (
        Problem(data, loss="squared-hinge", atoms=groups, M=2, C=5.0),
        Problem(data, loss="squared-hinge", lam=0.5, C=5.0),
        Problem(data, loss="hinge", lam=0.5, M=4, C=5.0),
    ):
        exact = mipfs.solve(problem, "branch")
        rounded = mipfs.solve(problem, "kelley")
        assert rounded.bound <= exact.objective * (1 + 1e-9)
        assert exact.objective * (1 - 1e-6) <= rounded.objective <= 1.05 * exact.objective


def test_an_optimal_incumbent_is_left_alone() -> None:
    run = Run(Problem(dense(), loss="squared-hinge", bias=False, M=200, C=1.0), kelley.Options())
    for _ in kelley.run(run):
        pass
    assert run.is_optimal


def test_a_run_that_must_stop_refits_once(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = Problem(dense(), loss="squared-hinge", bias=False, M=20, C=10.0)
    run, count = Run(problem, kelley.Options()), np.zeros(1, dtype=int)
    solved = Subproblem.solve

    def counted(self: Subproblem, *given: Any) -> Any:
        count[0] += 1
        return solved(self, *given)

    monkeypatch.setattr(Subproblem, "solve", counted)
    run.interrupted = True
    rounding.round_to(run, list(np.random.default_rng(0).random((3, 200))), None)
    assert count[0] == 1
    run.interrupted = False
    rounding.round_to(run, list(np.random.default_rng(0).random((3, 200))))
    assert count[0] == 4
