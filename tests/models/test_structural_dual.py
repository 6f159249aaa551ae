"""The restricted dual (16): CVXPY, Clarabel by hand, and the reference program on the same labellings."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import pytest

import mipfs
from mipfs import models
from mipfs.atoms.groups import Groups
from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.formulation import load, problem_of
from mipfs.formulation.program import Formulation
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


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", MEASURES)
def test_both_doors_equal_the_reference(name: str) -> None:
    for seed in range(4):
        data, r = draw(seed), np.random.default_rng(seed)
        problem = structural_dual.problem(data, measure=name, M=2, C=5.0, bias=False, **EXTRA.get(name, {}))
        losses, V = labellings(name, data.y, problem.beta or 1.0, problem.k)
        some = r.choice(losses.size, min(12, losses.size), replace=False)
        losses, V = losses[some], V[some]
        counts = np.rint(V * data.y * problem.measured.divisor / 2).astype(int)
        pool = selections(4, 2)[r.choice(6, 3, replace=False)]
        value = relaxation(data.X, losses, V, 5.0, pool, problem.penalty)

        declared = structural_dual.declare(problem, counts, losses, list(pool))
        assert Canonical(declared.cvxpy).solve() == "solved"
        assert declared.cvxpy.value == pytest.approx(value, abs=1e-7)

        A = structural_dual.labelling_columns(problem, counts)
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
        problem = structural_dual.problem(data, measure="f1", M=2, bias=False)
        found = [problem.measured.violated(r.standard_normal(n)) for _ in range(5)]
        counts, losses = np.array([v.counts for v in found]), [v.loss for v in found]
        sizes.append(Canonical(structural_dual.declare(problem, counts, losses, "x1, x2; x3").cvxpy).size)
    assert sizes[0] == sizes[1]


def test_by_name_and_by_call() -> None:
    data = draw(0)
    built = models.structural_dual(data, measure="fbeta", M=2, C=3.0, beta=0.5)
    assert isinstance(built, Formulation)
    again = load("structural")(data, {"measure": "fbeta", "B": 2, "C": 3.0, "beta": 0.5})
    assert isinstance(again, Problem)
    for made in (problem_of(built), again):
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
    with pytest.raises(UsageError, match="form = 'both' is unknown; it is one of dual, primal"):
        structural_dual.declare(again, form="both")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"is \(15\), which has no penalties"):
        structural_dual.declare(structural_dual.problem(draw(1), measure="f1", M=2), form="primal")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("bias", [False, True])
def test_the_program_of_the_data_is_the_relaxation_over_all_labellings(bias: bool) -> None:
    """(16) and (15) over what is generated, against all labellings and selections in CVXPY; sigma is that of S."""
    data = draw(2, 8, 4)
    losses, V = labellings("f1", data.y)
    wide = np.column_stack([data.X, np.ones(8)]) if bias else data.X
    pool = selections(4, 2)
    value = relaxation(
        wide, losses, V, 9.0, np.column_stack([pool, np.ones(len(pool))]) if bias else pool, np.zeros(4 + bias)
    )
    problem = structural_dual.problem(data, measure="f1", M=2, C=9.0, bias=bias)
    for form in ("dual", "primal"):
        declared = structural_dual.declare(problem, form=form)
        assert Canonical(declared.cvxpy).solve() == "solved"
        assert declared.cvxpy.value == pytest.approx(value, rel=2e-6)
        assert declared.sigma.value.shape == (4,)
        assert declared.sigma.value.sum() <= 2 + 1e-6
        result = mipfs.solve(declared, gap=1e-7)
        assert (result.driver, result.params["bias"]) == ("two_layer", bias)
        assert result.bound == pytest.approx(value, rel=2e-6)
        ruled = declared.with_constraints([declared.sigma["x1"] == 0])
        assert "x1" not in mipfs.solve(ruled, "branch").selected


def test_groups_are_declared_too() -> None:
    """(16) of two groups that share a column, against the same program over columns that stand twice."""
    data = draw(4, 8, 4)
    groups = Groups(data, {"a": ["x1", "x2"], "b": ["x2", "x3"], "c": ["x4"]})
    problem = structural_dual.problem(data, measure="f1", M=1, C=9.0, bias=False, atoms=groups)
    losses, V = labellings("f1", data.y)
    twice = data.X[:, [0, 1, 1, 2, 3]]
    pool = np.array([[1.0, 1, 0, 0, 0], [0, 0, 1, 1, 0], [0, 0, 0, 0, 1]])
    value = relaxation(twice, losses, V, 9.0, pool, np.zeros(5))
    for form in ("dual", "primal"):
        declared = structural_dual.declare(problem, form=form)
        assert Canonical(declared.cvxpy).solve() == "solved"
        assert declared.cvxpy.value == pytest.approx(value, rel=2e-6)
        assert declared.sigma.value.sum() == pytest.approx(1.0, abs=1e-5)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["f1", "error", "prbep"])
def test_one_feature_is_the_squared_l1_norm(name: str) -> None:
    """Mao 2013, 6.1: with B = 1 the relaxation is min ½ ‖w‖₁² + C max over ȳ of [Δ(ȳ) − wᵀa(ȳ)]₊."""
    for seed in (0, 2):
        data = draw(seed, 8, 5)
        losses, V = labellings(name, data.y)
        for C in (2.0, 20.0):
            w, xi = cp.Variable(5), cp.Variable(nonneg=True)
            squared = 0.5 * cp.square(cp.norm1(w))
            value = cp.Problem(cp.Minimize(squared + C * xi), [xi >= losses - (V @ data.X) @ w]).solve(
                solver=cp.CLARABEL
            )
            problem = structural_dual.problem(data, measure=name, M=1, C=C, bias=False)
            result = mipfs.solve(problem, "two_layer", gap=1e-8)
            assert result.bound == pytest.approx(value, rel=1e-6, abs=1e-7)
            if C == 2.0:
                declared = structural_dual.declare(problem)
                assert Canonical(declared.cvxpy).solve() == "solved"
                assert declared.cvxpy.value == pytest.approx(value, rel=3e-6, abs=1e-7)
