"""The restricted dual (16): CVXPY, Clarabel by hand, and the reference program on the same labellings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mipfs import models
from mipfs.atoms.groups import Groups
from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.formulation import load, problem_of
from mipfs.inner import minimax
from mipfs.models import structural_dual
from mipfs.problem import Problem
from mipfs.solvers.cones import Canonical
from tests import structural_oracles
from tests.structural_oracles import MEASURES, labellings, relaxation, selections

EXTRA: dict[str, dict[str, Any]] = {"fbeta": {"beta": 2.0}, "precision-at-k": {"k": 2}}


def draw(seed: int, n: int = 6, p: int = 4) -> Instance:
    r = np.random.default_rng(seed)
    X = r.standard_normal((n, p))
    y = np.where(X[:, 0] + r.standard_normal(n) > 0.3, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return Instance.from_arrays(X, y, penalty={"x2": 0.05} if seed % 2 else None)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", MEASURES)
def test_both_doors_equal_the_reference(name: str) -> None:
    for seed in range(4):
        data, r = draw(seed), np.random.default_rng(seed)
        problem = structural_dual.build(data, measure=name, M=2, C=5.0, bias=False, **EXTRA.get(name, {}))
        losses, V = labellings(name, data.y, problem.beta or 1.0, problem.k)
        some = r.choice(losses.size, min(12, losses.size), replace=False)
        losses, V = losses[some], V[some]
        counts = np.rint(V * data.y * problem.measured.divisor / 2).astype(int)
        pool = selections(4, 2)[r.choice(6, 3, replace=False)]
        value = relaxation(data.X, losses, V, 5.0, pool, problem.penalty)

        declared = structural_dual.declare(problem, counts, losses, list(pool))
        assert Canonical(declared.cvxpy).solve() == "solved"
        assert declared.cvxpy.value == pytest.approx(value, abs=1e-7)

        A = structural_dual.columns(problem, counts)
        np.testing.assert_allclose(A, data.X.T @ V.T, atol=1e-12)
        blocks = [np.sqrt(sigma[sigma > 0])[:, None] * A[sigma > 0] for sigma in pool]
        costs = pool @ problem.penalty
        found = minimax.solve(blocks, losses, costs, 5.0)
        assert found is not None
        alpha, mu = found
        assert np.all(alpha >= 0)
        assert alpha.sum() <= 5.0 * (1 + 1e-8)
        assert np.all(mu >= 0)
        assert mu.sum() == pytest.approx(1.0)
        dual = losses @ alpha - max(0.5 * np.sum((A_t @ alpha) ** 2) - c for A_t, c in zip(blocks, costs, strict=True))
        assert dual == pytest.approx(value, abs=1e-7)
        # the mixture is optimal too: at σ = Σ μ_t σᵗ the same labellings give the same value
        sigma = mu @ pool
        mixed = structural_oracles.structural_svm(data.X * np.sqrt(sigma), losses, V, 5.0)[0] + sigma @ problem.penalty
        assert mixed == pytest.approx(value, abs=1e-6)
        assert declared.sigma.value @ problem.penalty == pytest.approx(sigma @ problem.penalty, abs=1e-3)


def test_one_selection_and_an_empty_one() -> None:
    found = minimax.solve([np.empty((0, 2))], np.array([0.5, 0.75]), np.zeros(1), 4.0)
    assert found is not None
    np.testing.assert_allclose(found[0], [0.0, 4.0], atol=1e-6)
    np.testing.assert_allclose(found[1], [1.0])


def test_size_depends_on_labellings_and_selections_only() -> None:
    sizes = []
    for n in (30, 300):
        r = np.random.default_rng(0)
        data = Instance.from_arrays(r.standard_normal((n, 4)), np.where(np.arange(n) % 3 == 0, 1.0, -1.0))
        problem = structural_dual.build(data, measure="f1", M=2, bias=False)
        found = [problem.measured.violated(r.standard_normal(n)) for _ in range(5)]
        counts, losses = np.array([v.counts for v in found]), [v.loss for v in found]
        sizes.append(Canonical(structural_dual.declare(problem, counts, losses, "x1, x2; x3").cvxpy).size)
    assert sizes[0] == sizes[1]


def test_by_name_and_by_call() -> None:
    data = draw(0)
    built = models.structural_dual(data, measure="fbeta", M=2, C=3.0, beta=0.5)
    assert isinstance(built, Problem)
    assert problem_of(built) is built
    again = load("structural")(data, {"measure": "fbeta", "B": 2, "C": 3.0, "beta": 0.5})
    for made in (built, again):
        assert (made.loss, made.bias, made.measure, made.beta, made.M, made.C) == (
            "structural",
            True,
            "fbeta",
            0.5,
            2,
            3,
        )
    with pytest.raises(UsageError, match="structural needs a value for measure"):
        load("structural")(data, {"M": 2})
    assert not load("structural")(data, {"measure": "f1", "bias": False}).bias
    with pytest.raises(UsageError, match="no parameter 'loss'; it takes measure, M, C, beta, k, bias"):
        load("structural")(data, {"measure": "f1", "loss": "hinge"})
    with pytest.raises(UsageError, match="measure = 1 must be text"):
        load("structural")(data, {"measure": 1})
    grouped = built.replace(atoms=Groups(data, {"a": ["x1", "x2"], "b": ["x3", "x4"]}), rows=None, M=1)
    with pytest.raises(UsageError, match="cannot carry groups"):
        structural_dual.declare(grouped, np.ones((1, 6)), [1.0], [[0]])
