"""AROM by its fixed point, R²W² by finite differences and its two programs in CVXPY, and both against enumeration."""

from __future__ import annotations

import itertools
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse

from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.lab.baselines import linear, r2w2
from mipfs.lab.baselines.arom import arom, factors
from mipfs.lab.baselines.r2w2 import RadiusMargin, descend_scales
from mipfs.losses import get_loss


def draw(seed: int, n: int = 30, p: int = 8, noise: float = 1.0, **given: Any) -> Instance:
    r = np.random.default_rng(seed)
    X = r.standard_normal((n, p))
    y = np.where(X[:, 0] + X[:, 3] - X[:, 5] + noise * r.standard_normal(n) > 0.1, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return Instance.from_arrays(X, y, sample_weight=r.uniform(0.5, 2.0, n), **given)


@pytest.mark.parametrize("loss", ["hinge", "squared-hinge"])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_the_first_update_is_the_svm_on_scaled_columns(seed: int, bias: bool, loss: Any) -> None:
    """Two turns by Clarabel, as the paper has them: w on the columns z∘x, z ← z∘w."""
    data, C, z = draw(seed), 0.5, np.ones(8)
    c = C * data.sample_weight
    for turn in (1, 2):
        w, b = cp.Variable(8), cp.Variable()
        slack = cp.pos(1 - cp.multiply(data.y, (data.X * z) @ w + (b if bias else 0.0)))
        value = c @ slack if loss == "hinge" else 0.5 * c @ cp.square(slack)
        cp.Problem(cp.Minimize(0.5 * cp.sum_squares(w) + value)).solve(solver=cp.CLARABEL)
        z = z * w.value
        found, _ = factors(data, 0, C, bias=bias, loss=loss, turns=turn)
        np.testing.assert_allclose(found, np.abs(z), atol=2e-4 * np.abs(z).max())


@pytest.mark.sampled(5)
@pytest.mark.parametrize("loss", ["hinge", "squared-hinge"])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("shape", [(30, 8), (20, 60)])
def test_a_fixed_point_balances_every_weight(shape: tuple[int, int], bias: bool, loss: Any) -> None:
    """u_j ω_j(α) = 1 on the features of a fixed point, with α of an independent solve on the scaled columns."""
    for seed in range(3):
        data, C = draw(seed, *shape), 5.0
        z, last = factors(data, 0, C, bias=bias, loss=loss)
        assert np.abs(z - last).max() <= 1e-8 * z.max()
        ids = np.flatnonzero(z)
        assert 0 < ids.size < shape[1]
        Z, c = data.X[:, ids] * z[ids], C * data.sample_weight
        alpha = cp.Variable(shape[0], nonneg=True)
        rows = ([data.y @ alpha == 0] if bias else []) + ([alpha <= c] if loss == "hinge" else [])
        g = cp.sum(alpha) - (0.0 if loss == "hinge" else cp.sum(cp.multiply(0.5 / c, cp.square(alpha))))
        pull = Z.T @ cp.multiply(data.y, alpha)
        cp.Problem(cp.Maximize(g - 0.5 * cp.sum_squares(pull)), rows).solve(solver=cp.CLARABEL)
        u = z[ids] * pull.value  # = z_j² ω_j, the weights of x itself
        np.testing.assert_allclose(np.abs(u), z[ids], rtol=1e-3)
        np.testing.assert_allclose(u * (pull.value / z[ids]), 1.0, rtol=2e-3)


def test_l1_arom_is_a_sequence_of_linear_programs() -> None:
    data, C, z = draw(1), 2.0, np.ones(8)
    for turn in (1, 2):
        w, b = cp.Variable(8), cp.Variable()
        slack = cp.pos(1 - cp.multiply(data.y, (data.X * z) @ w + b))
        cp.Problem(cp.Minimize(cp.norm1(w) + C * data.sample_weight @ slack)).solve(solver=cp.CLARABEL)
        z = np.abs(z * w.value)
        found, _ = factors(data, 0, C, norm="l1", turns=turn)
        np.testing.assert_allclose(found, z, atol=1e-5)
    assert arom(data, 2, C, norm="l1").ids.size == 2


def test_how_arom_gets_to_M() -> None:
    for seed in range(4):
        data = draw(seed, 30, 20)
        for M in (1, 2, 5, 20):
            found = arom(data, M, 2.0)
            z, last = factors(data, M, 2.0)
            left = np.count_nonzero(z)
            assert found.ids.size == M
            if left <= M:  # what the last update took away comes back by its size before
                assert set(np.flatnonzero(z)) <= set(found.ids.tolist())
                others = np.setdiff1d(np.flatnonzero(last), found.ids)
                back = np.setdiff1d(found.ids, np.flatnonzero(z))
                assert not back.size or last[others].max(initial=0.0) <= last[back].min()
            else:
                assert z[found.ids].min() >= np.delete(z, found.ids).max()


def test_arom_finds_what_separates() -> None:
    """Three features make the labels: they have the smallest SVM value of all supports."""
    data = draw(7, 60, 8, noise=0.2)
    C = 10.0
    solver = get_loss("squared-hinge").Solver(data, C * data.sample_weight, True)
    best = min(itertools.combinations(range(8), 3), key=lambda ids: solver.solve(np.array(ids)).primal)
    assert arom(data, 3, C).ids.tolist() == list(best) == [0, 3, 5]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_r2w2_on_westons_linear_problem(seed: int) -> None:
    """Weston 2000: three of the features say y on 70% of the samples, three on the others, and the rest is noise."""
    r = np.random.default_rng(seed)
    y, first = np.where(r.random(60) < 0.5, 1.0, -1.0), r.random(60) < 0.7
    X = r.normal(0.0, 20.0, (60, 42))
    X[:, :6] = r.standard_normal((60, 6))
    X[:, :3] += np.where(first, y, 0.0)[:, None] * np.arange(1, 4)
    X[:, 3:6] += np.where(first, 0.0, y)[:, None] * np.arange(1, 4)
    data = Instance.from_arrays(X, y)
    for M, drop in ((2, 0.5), (5, 0.5), (5, 0.2)):
        assert set(r2w2.r2w2(data, M, drop=drop).ids.tolist()) <= set(range(6))


@pytest.mark.sampled(5)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("shape", [(25, 6), (10, 30)])
def test_the_bound_is_that_of_two_quadratic_programs(shape: tuple[int, int], bias: bool) -> None:
    for seed, thin in ((0, False), (1, True)):
        data, C = draw(seed, *shape), 0.7
        if thin:
            X = np.where(np.abs(data.X) > 0.5, data.X, 0.0)
            data = Instance.from_arrays(sparse.csc_array(X), data.y, scale="standard")
        r = np.random.default_rng(seed)
        ids, s = np.arange(shape[1]), r.uniform(0.0, 1.0, shape[1])
        s[1] = 0.0
        Z = ((data.X.toarray() - data.center) if data.is_sparse else data.X) * s
        c, n = C * data.sample_weight, shape[0]
        alpha = cp.Variable(n, nonneg=True)
        squares = cp.sum_squares(Z.T @ cp.multiply(data.y, alpha)) + cp.sum(cp.multiply(1 / c, cp.square(alpha)))
        rows = [data.y @ alpha == 0] if bias else []
        margin = cp.Problem(cp.Maximize(2 * cp.sum(alpha) - squares), rows).solve(solver=cp.CLARABEL)
        K = Z @ Z.T + np.diag(1 / c)
        points = np.linalg.cholesky(K)  # rows with these inner products
        centre, top = cp.Variable(n), cp.Variable()
        inside = [cp.sum_squares(points[i] - centre) <= top for i in range(n)]
        radius = cp.Problem(cp.Minimize(top), inside).solve(solver=cp.CLARABEL)  # the ball itself, not its dual
        found = RadiusMargin(data, ids, C, bias).at(s)
        assert found.margin == pytest.approx(margin, rel=1e-6)
        assert found.radius == pytest.approx(radius, rel=1e-6)
        assert found.value == pytest.approx(margin * radius, rel=1e-6)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("shape", [(25, 6), (10, 30)])
def test_the_gradient_by_finite_differences(shape: tuple[int, int], bias: bool) -> None:
    data = draw(2, *shape)
    bound = RadiusMargin(data, np.arange(shape[1]), 0.7, bias)
    s, h = np.random.default_rng(3).uniform(0.3, 1.0, shape[1]), 1e-4
    gradient = bound.at(s).gradient
    for j in range(0, shape[1], 3):
        step = np.zeros(shape[1])
        step[j] = h
        difference = (bound.at(s + step).value - bound.at(s - step).value) / (2 * h)
        assert gradient[j] == pytest.approx(difference, rel=1e-3, abs=1e-3 * np.abs(gradient).max())


@pytest.mark.slow
def test_the_descent_descends() -> None:
    for seed in range(3):
        data = draw(seed)
        begin = RadiusMargin(data, np.arange(8), 1.0, True).at(np.ones(8)).value
        before = begin
        for steps in (1, 4, 30):
            s, found = descend_scales(data, np.arange(8), 1.0, steps=steps)
            assert np.all(s >= 0.0)
            assert np.square(s).sum() == pytest.approx(8.0)
            assert found.value <= before * (1 + 1e-9)
            before = found.value
        assert before < begin
        # at the end no scale can move to a lower value: a projected gradient of zero
        s, found = descend_scales(data, np.arange(8), 1.0, steps=500)
        along = found.gradient - s * float(found.gradient @ s) / 8.0
        move = np.maximum(s - along / found.value, 0.0) - s
        assert np.abs(move).max() <= 2e-2


def test_the_rounds_of_r2w2(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    own = r2w2.descend_scales

    def counted(data: Instance, ids: Any, C: float, **given: Any) -> Any:
        sizes.append(ids.size)
        scales, bound = own(data, ids, C, **given)
        return np.maximum(scales, 1e-6), bound  # nothing is dropped for a scale of zero

    monkeypatch.setattr(r2w2, "descend_scales", counted)
    data = draw(1, 20, 23)
    assert r2w2.r2w2(data, 2, steps=2).ids.size == 2
    assert sizes == [23, 11, 5]
    sizes.clear()
    assert r2w2.r2w2(data, 20, drop=0.0, steps=1).ids.size == 20
    assert sizes == [23, 22, 21]


@pytest.mark.slow
def test_sparse_columns_centred_implicitly() -> None:
    X = np.where(np.abs(draw(1, 30, 20).X) > 0.7, draw(1, 30, 20).X, 0.0)
    y = draw(1, 30, 20).y
    thick, thin = (Instance.from_arrays(Z, y, scale="standard") for Z in (X, sparse.csc_array(X)))
    for method in (arom, r2w2.r2w2):
        for bias in (False, True):
            a, b = method(thick, 4, 0.5, bias=bias), method(thin, 4, 0.5, bias=bias)
            np.testing.assert_array_equal(a.ids, b.ids)
            np.testing.assert_allclose(a.w, b.w, rtol=1e-5)


def test_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    data = draw(0)
    for call, message in (
        (lambda: arom(data, 2, norm="l0"), "norm = 'l0' is unknown; it is 'l2' or 'l1'"),  # type: ignore[arg-type]
        (lambda: arom(data, 2, loss="logistic"), "loss = 'logistic': AROM fits by"),  # type: ignore[arg-type]
        (lambda: arom(data, 2, turns=0), "turns = 0 must be an integer from 1 on"),
        (lambda: arom(data, 9), "M = 9 must be an integer from 1 to 8"),
        (lambda: r2w2.r2w2(data, 2, drop=1.0), r"drop = 1\.0 must lie in \[0, 1\)"),
        (lambda: r2w2.r2w2(data, 2, steps=0.5), r"steps = 0\.5 must be an integer from 1 on"),  # type: ignore[arg-type]
        (lambda: r2w2.r2w2(data, 2, np.inf), "C = inf must be a positive number"),
    ):
        with pytest.raises(UsageError, match=message):
            call()
    monkeypatch.setattr(r2w2, "MOST_SECONDS", 1e-9)
    with pytest.raises(UsageError, match=r"R²W² on 30 samples would take about .* h; a larger drop"):
        r2w2.r2w2(data, 2)
    monkeypatch.setattr(linear, "MOST_ORDER", 7)
    for method, name in ((arom, "AROM"), (r2w2.r2w2, "R²W²")):
        with pytest.raises(UsageError, match=f"{name} solves dense systems of order 8: 0.0 GB"):
            method(data, 2)
