"""The ℓ1 logistic regression and the references on all features against their programs in CVXPY; uniform choice."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.lab import baselines
from mipfs.lab.baselines.dual_descent import dual_descent
from mipfs.lab.baselines.l1_logistic import _largest_null_C, l1_logistic, l1_logistic_of_size
from mipfs.lab.baselines.linear import plain_svm
from mipfs.lab.baselines.logistic_regression import logistic_regression


def draw(seed: int, n: int = 60, p: int = 14) -> Instance:
    r = np.random.default_rng(seed)
    X = r.standard_normal((n, p))
    y = np.where(X[:, :3].sum(axis=1) + r.standard_normal(n) > 0.5, 1.0, -1.0)
    return Instance.from_arrays(X, y, sample_weight=r.uniform(0.5, 2.0, n))


def least(data: Instance, norm: Any, loss: str, C: float, bias: bool) -> float:
    w, b = cp.Variable(data.n_features), cp.Variable()
    margins = cp.multiply(data.y, data.X @ w + (b if bias else 0.0))
    one = cp.logistic(-margins) if loss == "logistic" else 0.5 * cp.square(cp.pos(1 - margins))
    whole = norm(cp.hstack([w, b])) if bias else norm(w)
    return float(cp.Problem(cp.Minimize(whole + C * data.sample_weight @ one)).solve(solver=cp.CLARABEL))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("C", [0.05, 0.8])
def test_values_are_those_of_clarabel(C: float, bias: bool) -> None:
    data = draw(1)
    sparse_one = l1_logistic(data, C, bias=bias, tol=1e-9)
    assert sparse_one.objective == pytest.approx(least(data, cp.norm1, "logistic", C, bias), rel=1e-6)
    assert np.all(sparse_one.w != 0)
    for loss in ("squared-hinge", "logistic"):
        found = dual_descent(data, C, loss=loss, bias=bias, tol=1e-9)
        value = least(data, lambda u: 0.5 * cp.sum_squares(u), loss, C, bias)
        assert found.objective == pytest.approx(value, rel=1e-6)
        assert found.ids.tolist() == list(range(14))
        assert bias or found.b == 0.0
    with pytest.raises(UsageError, match="'squared-hinge' or 'logistic'"):
        dual_descent(data, C, loss="hinge")  # type: ignore[arg-type]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("bias", [False, True])
def test_the_wanted_number_of_features(bias: bool) -> None:
    data = draw(2)
    sizes = {l1_logistic(data, C, bias=bias, tol=1e-6).ids.size for C in np.geomspace(0.01, 5.0, 60)}
    for M in (1, 3, 6, 10):
        found = l1_logistic_of_size(data, M, bias=bias, tol=1e-6)
        assert max(size for size in sizes if size <= M) <= found.ids.size <= M
    chosen = baselines.get_baseline("l1-logistic")(data, 3, 0.7, bias=bias)
    again = plain_svm(data, chosen.ids, 0.7, bias)
    np.testing.assert_array_equal(chosen.w, again.w)


@pytest.mark.parametrize(("name", "loss"), [("l1-svm-own", "squared"), ("l1-logistic-own", "logistic")])
def test_without_a_refit_the_weights_are_those_of_the_program(name: str, loss: str) -> None:
    """At the C that was found, Clarabel's weights of the ℓ1 program; the C that is given does not matter."""
    data = draw(6)
    found = baselines.get_baseline(name)(data, 4, 0.7)
    w, b = cp.Variable(14), cp.Variable()
    margins = cp.multiply(data.y, data.X @ w + b)
    one = cp.logistic(-margins) if loss == "logistic" else cp.square(cp.pos(1 - margins))
    cp.Problem(cp.Minimize(cp.norm1(w) + cp.abs(b) + found.C * data.sample_weight @ one)).solve(solver=cp.CLARABEL)
    assert 1 <= found.ids.size <= 4
    np.testing.assert_allclose(np.bincount(found.ids, found.w, 14), w.value, atol=5e-3)
    np.testing.assert_array_equal(found.w, baselines.get_baseline(name)(data, 4, 70.0).w)
    refitted = baselines.get_baseline(name.removesuffix("-own"))(data, 4, 0.7)
    np.testing.assert_array_equal(refitted.ids, found.ids)


def test_where_the_first_feature_enters() -> None:
    data = draw(5)
    for bias in (True, False):
        first = _largest_null_C(data, bias)
        below, above = (l1_logistic(data, C, bias=bias, tol=1e-9) for C in (0.999 * first, 1.01 * first))
        assert below.ids.size == 0
        assert above.ids.size + (above.b != 0) > 0
    nothing = Instance.from_arrays(np.zeros((8, 2)), np.resize([1.0, -1.0], 8))
    assert l1_logistic_of_size(nothing, 1).ids.size == 0


def test_older_and_newer_names_of_the_penalty_are_one_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    class Older:
        def __init__(self, penalty: str = "l2", **given: Any) -> None:
            self.penalty, self.given = penalty, given

    monkeypatch.setattr("sklearn.linear_model.LogisticRegression", Older)
    assert logistic_regression(1.0, l1=True, bias=True).penalty == "l1"
    assert logistic_regression(1.0, l1=False, bias=True).given["dual"]
    monkeypatch.undo()
    model = logistic_regression(1.0, l1=True, bias=True)
    assert isinstance(model, LogisticRegression)
    assert model.l1_ratio == 1.0 or model.penalty == "l1"


def test_a_reference_takes_all_features_or_says_no() -> None:
    data = replace(draw(3), sample_weight=np.ones(60))
    for name in baselines.references():
        fit = baselines.get_baseline(name)
        assert fit(data, 14, 0.3).ids.size == 14
        with pytest.raises(UsageError, match=rf"{name} selects nothing: it uses all 14 features, and M = 5 is fewer"):
            fit(data, 5, 0.3)
        assert name not in baselines.available()
        if baselines.about(name).sparse != "yes, not centred":
            continue
        centred = Instance.from_arrays(sparse.csc_array(np.maximum(data.X, 0.0)), data.y, scale="standard")
        with pytest.raises(UsageError, match="cannot centre sparse columns"):
            fit(centred, 14)


@pytest.mark.slow
def test_uniform_draws_are_nested_and_uniform() -> None:
    data, fit = draw(4, 20, 5), baselines.get_baseline("uniform")
    counts = np.zeros(5)
    for seed in range(400):
        few, more = fit(data, 2, seed=seed).ids, fit(data, 3, seed=seed).ids
        assert set(few) < set(more)
        counts[few] += 1
    # 400 draws of 2 of 5: each 160 times, with a deviation of 10.
    assert np.all(np.abs(counts - 160) < 45)
    np.testing.assert_array_equal(fit(data, 3, seed=7).w, fit(data, 3, seed=7).w)


def test_what_is_said_of_every_baseline() -> None:
    for name in (*baselines.available(), *baselines.references()):
        about = baselines.about(name)
        assert about.what
        assert about.source
        assert "\n" not in about.what
    with pytest.raises(UsageError, match="did you mean 'uniform'"):
        baselines.about("unifrom")
