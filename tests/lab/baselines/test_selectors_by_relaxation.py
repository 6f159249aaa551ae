"""NMMKL and QCQP-SSVM as selectors against their programs in CVXPY, and Rinaldi and Sciandrone's turns step by step."""

from __future__ import annotations

import itertools
from typing import Any

import cvxpy as cp
import numpy as np
import pytest

from mipfs.data.instance import Instance, Row, SelectDefaults
from mipfs.errors import UsageError
from mipfs.lab.baselines import linear, nmmkl, one_norm, qcqp_ssvm, rinaldi
from mipfs.lab.baselines.rfe import rfe


def draw(seed: int, n: int = 40, p: int = 12, **given: Any) -> Instance:
    r = np.random.default_rng(seed)
    X = r.standard_normal((n, p)) * r.uniform(0.5, 2.0, p)
    y = np.where(X[:, 0] + X[:, 3] - X[:, 5] + r.standard_normal(n) > 0.3, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return Instance.from_arrays(X, y, **given)


def losses(slack: Any, c: np.ndarray, loss: str) -> Any:
    return c @ slack if loss == "hinge" else 0.5 * cp.sum(cp.multiply(c, cp.square(slack)))


def plain(Z: np.ndarray, y: np.ndarray, c: np.ndarray, loss: str, bias: bool) -> np.ndarray:
    """Scores of the SVM on the columns, by Clarabel."""
    w, b = cp.Variable(Z.shape[1]), cp.Variable()
    slack = cp.pos(1 - cp.multiply(y, Z @ w + (b if bias else 0.0)))
    cp.Problem(cp.Minimize(0.5 * cp.sum_squares(w) + losses(slack, c, loss))).solve(solver=cp.CLARABEL)
    return np.asarray(Z @ w.value + (b.value if bias else 0.0))


@pytest.mark.sampled(13)
@pytest.mark.parametrize("loss", ["hinge", "squared-hinge"])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_nmmkl_ranks_by_the_multipliers_of_its_qcqp(seed: int, bias: bool, loss: Any) -> None:
    """The QCQP of Xu et al. as it stands: max g(α) − ½ (Mδ + Σq), ω_j² ≤ δ + q_j."""
    data, M, C = draw(seed), 3, 0.3
    c = np.full(40, C)
    alpha, q, delta = cp.Variable(40, nonneg=True), cp.Variable(12, nonneg=True), cp.Variable(nonneg=True)
    quadratic = cp.square(data.X.T @ cp.multiply(alpha, data.y)) <= delta + q
    rows = [quadratic] + ([data.y @ alpha == 0] if bias else []) + ([alpha <= C] if loss == "hinge" else [])
    g = cp.sum(alpha) - (0.0 if loss == "hinge" else cp.sum_squares(alpha) / (2 * C))
    cp.Problem(cp.Maximize(g - 0.5 * (M * delta + cp.sum(q))), rows).solve(solver=cp.CLARABEL)
    expected = 2.0 * quadratic.dual_value  # σ_j / 2 is the multiplier
    for solver in ("interior", "qcqp"):
        sigma, _ = nmmkl.kernel_weights(data, M, C, bias=bias, loss=loss, solver=solver)  # type: ignore[arg-type]
        np.testing.assert_allclose(sigma, expected, atol=5e-3)
        found = nmmkl.nmmkl(data, M, C, bias=bias, loss=loss, solver=solver)  # type: ignore[arg-type]
        assert found.ids.size == M
        left = np.delete(expected, found.ids)
        assert left.max() <= expected[found.ids].min() + 5e-3
        np.testing.assert_allclose(found.scores(data), plain(data.X[:, found.ids], data.y, c, loss, bias), atol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["hinge", "squared-hinge"])
@pytest.mark.parametrize("bias", [False, True])
def test_qcqp_ssvm_is_that_of_its_program_on_all_features(
    bias: bool, loss: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(qcqp_ssvm, "FIRST_FEATURES", 5)
    monkeypatch.setattr(qcqp_ssvm, "MOST_ENTERING", 4)
    for seed, M, C in ((0, 1, 1.0), (1, 3, 0.1), (2, 20, 1.0), (3, 2, 0.02)):
        data = draw(seed, 25, 40, sample_weight=np.random.default_rng(seed).uniform(0.5, 2.0, 25))
        c = C * data.sample_weight
        w, b, t = cp.Variable(40), cp.Variable(), cp.Variable()
        slack = cp.pos(1 - cp.multiply(data.y, data.X @ w + (b if bias else 0.0)))
        norms = [cp.sum_squares(w) <= t, cp.square(cp.norm1(w)) <= M * t]
        value = cp.Problem(cp.Minimize(0.5 * t + losses(slack, c, loss)), norms).solve(solver=cp.CLARABEL)
        found = qcqp_ssvm.qcqp_weights(data, M, C, bias=bias, loss=loss)
        assert found.objective == pytest.approx(value, rel=1e-5)
        mine = np.zeros(40)
        mine[found.ids] = found.w
        np.testing.assert_allclose(mine, w.value, atol=2e-3 * np.abs(w.value).max())
        chosen = qcqp_ssvm.qcqp_ssvm(data, M, C, bias=bias, loss=loss)
        assert chosen.ids.size == M
        assert np.delete(np.abs(w.value), chosen.ids).max() <= np.abs(w.value)[chosen.ids].min() + 1e-3
        expected = plain(data.X[:, chosen.ids], data.y, c, loss, bias)
        np.testing.assert_allclose(chosen.scores(data), expected, atol=1e-3)


def test_rows_and_penalties_are_not_theirs() -> None:
    data = draw(4)
    given = Instance.from_arrays(
        data.X, data.y, penalty={"x1": 9.0}, rows=[Row("none", {"x1": 1.0}, 0.0, 0.0)], select=SelectDefaults(2)
    )
    for method in (nmmkl.nmmkl, qcqp_ssvm.qcqp_ssvm):
        np.testing.assert_array_equal(method(given, 3).ids, method(data, 3).ids)


def separated(data: Instance, left: np.ndarray, kept: np.ndarray, r: np.ndarray, bias: bool) -> float:
    """The least Σ r_j |w_j| with margins of 1 on the kept samples, by a linear program of CVXPY."""
    w, b = cp.Variable(left.size), cp.Variable()
    margins = cp.multiply(data.y, data.X[:, left] @ w + (b if bias else 0.0))
    return float(cp.Problem(cp.Minimize(r @ cp.abs(w)), [margins[np.flatnonzero(kept)] >= 1]).solve(solver=cp.HIGHS))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("concave", ["log", "exp"])
@pytest.mark.parametrize("bias", [False, True])
def test_a_turn_is_a_step_of_frank_and_wolfe(bias: bool, concave: Any) -> None:
    for seed in range(3):
        data = draw(seed, 40, 25)
        program = one_norm.OneNorm(data, bias, "test")
        sets = rinaldi.turns(data, 2, 1.0, bias=bias, concave=concave)
        assert sets[0].size == 25
        for left, after in itertools.pairwise(sets):
            f = plain(data.X[:, left], data.y, np.ones(40), "hinge", bias)
            kept = data.y * f > 0.0
            w, _ = rinaldi._hinge_svm(data, left, 1.0, bias)
            slopes = rinaldi.slopes(np.abs(w), concave)
            share = np.abs(w) / np.abs(w).max()
            expected = 1 / (share + rinaldi.OFFSET_SHARE) if concave == "log" else np.exp(-5.0 * share)
            np.testing.assert_allclose(slopes, expected / expected.max(), rtol=1e-12)
            r = np.full(25, np.inf)
            r[left] = slopes
            vertex = rinaldi.separating(program, kept, r, data)
            assert set(after) <= set(left)
            np.testing.assert_array_equal(after, vertex.ids)
            margins = data.y * (data.X[:, vertex.ids] @ vertex.w + vertex.b)
            assert margins[kept].min() >= 1 - 1e-6
            value = separated(data, left, kept, slopes, bias)
            assert float(r[vertex.ids] @ np.abs(vertex.w)) == pytest.approx(value, rel=1e-6)


@pytest.mark.slow
def test_the_variants_of_rinaldi() -> None:
    for seed in range(4):
        data = draw(seed, 40, 25)
        for M in (1, 3, 6, 25):
            sets = rinaldi.turns(data, M, 1.0, bias=True)
            turned, mixed = (rinaldi.rinaldi(data, M, variant=variant) for variant in ("concave", "rfe"))  # type: ignore[arg-type]
            assert mixed.ids.size == M
            last = sets[-1]
            if last.size <= M:
                np.testing.assert_array_equal(turned.ids, last)
            else:
                assert turned.ids.size == M
            start = [ids for ids in sets if ids.size >= M][-1]
            expected = start[rfe(data.only(start), M, loss="hinge").ids]
            np.testing.assert_array_equal(mixed.ids, expected)


def test_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    data = draw(0)
    for call, message in (
        (lambda: nmmkl.nmmkl(data, 2, solver="mosek"), "solver = 'mosek' is unknown; it is 'interior' or 'qcqp'"),  # type: ignore[arg-type]
        (lambda: nmmkl.nmmkl(data, 13), "M = 13 must be an integer from 1 to 12"),
        (lambda: rinaldi.rinaldi(data, 2, variant="both"), "variant = 'both' is unknown"),  # type: ignore[arg-type]
        (lambda: rinaldi.rinaldi(data, 2, concave="sqrt"), "concave = 'sqrt' is unknown"),  # type: ignore[arg-type]
        (lambda: qcqp_ssvm.qcqp_ssvm(data, 2, C=-1.0), r"C = -1\.0 must be a positive number"),
    ):
        with pytest.raises(UsageError, match=message):
            call()
    monkeypatch.setattr(nmmkl, "MAX_WORK", 10.0)
    with pytest.raises(UsageError, match=r"NMMKL as a QCQP has .* nonzeros, about 0 s a step of Clarabel's"):
        nmmkl.nmmkl(data, 2, solver="qcqp")
    monkeypatch.setattr(linear, "MOST_ORDER", 10)
    monkeypatch.setattr(nmmkl, "MAX_ORDER", 10)
    for method, name in ((nmmkl.nmmkl, "NMMKL"), (qcqp_ssvm.qcqp_ssvm, "QCQP-SSVM"), (rinaldi.rinaldi, "Rinaldi")):
        with pytest.raises(UsageError, match=f"{name}.* solves dense systems of order 12: 0.0 GB"):
            method(data, 2)
