"""FGMClassifier and FGMSelector: the relaxation's bound, what is kept of it, and the refits."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.svm import LinearSVC

from mipfs import FGMClassifier, FGMSelector, FSPClassifier, GroupFGMClassifier

Array = npt.NDArray[np.float64]
RNG = np.random.default_rng(14)
PLANTED = np.array([7, 19, 33, 50])
X = RNG.standard_normal((120, 60))
Y = np.where(X[:, PLANTED] @ [1.5, -1.0, 1.0, -1.0] + 0.4 * RNG.standard_normal(120) > 0, 1, -1)


def linear_svc(Z: Array, C: float) -> Array:
    """The squared-hinge SVM without bias by LIBLINEAR, whose loss is C Σ max(0, 1 − m)²."""
    model = LinearSVC(C=C / 2, dual=False, fit_intercept=False, tol=1e-12, max_iter=10_000)
    return np.asarray(model.fit(Z, Y).coef_[0])


def value(model: FGMClassifier, C: float) -> float:
    """½ Σ w²/σ + (C/2) Σ max(0, 1 − m)² of the classifier that the estimator keeps."""
    w, sigma = model.coef_[0][model.support_], model.sigma_[0][model.support_]
    loss = np.maximum(0.0, 1.0 - Y * (X @ model.coef_[0] + model.intercept_[0]))
    return float(0.5 * (w * w / sigma).sum() + 0.5 * C * loss @ loss)


def test_the_planted_features_are_found() -> None:
    model = FGMClassifier(4, C=0.1, bias=False).fit(X, Y)
    assert model.get_support(indices=True).tolist() == PLANTED.tolist()
    assert model.score(X, Y) > 0.9


@pytest.mark.sampled(3)
@pytest.mark.parametrize("loss", ["hinge", "squared-hinge", "logistic"])
@pytest.mark.parametrize("bias", [True, False])
def test_the_relaxation_bounds_the_exact_optimum(loss: str, bias: bool) -> None:
    Z = X[:60, 5:15]
    exact = FSPClassifier(3, C=0.2, loss=loss, bias=bias).fit(Z, Y[:60]).result_
    relaxed = FGMClassifier(3, C=0.2, loss=loss, bias=bias, gap=1e-4).fit(Z, Y[:60]).result_
    assert relaxed.bound <= exact.objective * (1 + 1e-9)
    assert relaxed.objective >= exact.bound * (1 - 1e-9)
    assert relaxed.relaxed is not None
    assert relaxed.relaxed["lower"] <= relaxed.relaxed["upper"] <= relaxed.relaxed["lower"] * (1 + 1.1e-4)


def test_the_published_set_and_the_published_stops() -> None:
    """keep="scores": the M largest |X'(α∘y)| at the final α; eps_c and eps_apg end earlier, without a warning."""
    model = FGMClassifier(5, C=0.3, bias=False, keep="scores").fit(X, Y)
    omega = np.abs(X.T @ (model.result_.alpha * Y))
    assert set(model.get_support(indices=True)) == set(np.argsort(-omega)[:5])
    np.testing.assert_allclose(model.coef_[0][model.support_], linear_svc(X[:, model.support_], 0.3), rtol=1e-5)
    np.testing.assert_array_equal(FGMSelector(5, C=0.3, bias=False, keep="scores").fit(X, Y).support_, model.support_)
    whole = FGMClassifier(5, C=0.3, bias=False, T=50, gap=1e-8).fit(X, Y)
    early = FGMClassifier(5, C=0.3, bias=False, T=15, eps_c=1e-2, eps_apg=1e-4, gap=1e-8).fit(X, Y)
    assert early.n_iter_ < whole.n_iter_
    alone = GroupFGMClassifier(M=5, C=0.3, bias=False, T=15, eps_c=1e-2, eps_apg=1e-4, gap=1e-8).fit(X, Y)
    np.testing.assert_allclose(alone.coef_, early.coef_)  # every feature a group
    with pytest.raises(ValueError, match=r"eps_c = 2.0 must be a number in \[0, 1\)"):
        FGMClassifier(5, eps_c=2.0).fit(X, Y)


def test_m_features_are_fitted_at_c_and_debiased_at_another() -> None:
    model = FGMClassifier(5, C=0.3, bias=False).fit(X, Y)
    ids = model.get_support(indices=True)
    assert ids.size == 5
    assert set(model.result_.selected) == {f"x{j + 1}" for j in ids}
    np.testing.assert_allclose(model.coef_[0][ids], linear_svc(X[:, ids], 0.3), rtol=1e-5)
    assert value(model, 0.3) == pytest.approx(model.result_.objective, rel=1e-5)
    debiased = clone(model).set_params(debias=20.0).fit(X, Y)
    np.testing.assert_array_equal(debiased.support_, model.support_)
    np.testing.assert_allclose(debiased.coef_[0][ids], linear_svc(X[:, ids], 20.0), rtol=1e-5)
    assert debiased.result_.objective == model.result_.objective


def test_all_features_of_the_relaxation_reach_its_value() -> None:
    model = FGMClassifier(3, C=0.3, keep="all", gap=1e-5).fit(X, Y)
    relaxed = model.result_.relaxed
    assert model.support_.sum() >= 3
    assert np.all(model.sigma_ <= 1 + 1e-9)
    assert model.sigma_.sum() <= 3 + 1e-6
    assert relaxed["lower"] <= value(model, 0.3) * (1 + 1e-9)
    assert value(model, 0.3) <= relaxed["upper"] * (1 + 1e-5)
    debiased = clone(model).set_params(debias=5.0, bias=False).fit(X, Y)
    ids = debiased.get_support(indices=True)
    np.testing.assert_allclose(debiased.coef_[0][ids], linear_svc(X[:, ids], 5.0), rtol=1e-5)


def test_t_iterations_are_a_stop_without_a_warning(recwarn: pytest.WarningsRecorder) -> None:
    model = FGMClassifier(3, C=5.0, T=2, keep="all", gap=1e-9).fit(X, Y)
    assert not recwarn.list
    assert model.n_iter_ <= 2
    assert 3 <= model.support_.sum() <= 6
    assert model.result_.bound <= model.result_.objective


def test_the_rho_form_selects_the_same_features() -> None:
    unit = FGMClassifier(4, C=0.1, gap=1e-6).fit(X, Y)
    rho = FGMClassifier(4, C=0.1, gap=1e-6, margin="rho").fit(X, Y)
    np.testing.assert_array_equal(unit.support_, rho.support_)
    assert rho.result_.objective == pytest.approx(-0.25 / unit.result_.objective, rel=1e-6)
    np.testing.assert_array_equal(unit.predict(X), rho.predict(X))


@pytest.mark.parametrize("keep", ["M", "all"])
def test_the_selector_keeps_what_the_classifier_keeps(keep: str) -> None:
    for storage in (np.asarray, sparse.csr_array):
        Z = storage(np.where(np.abs(X) > 1, X, 0.0))
        classifier = FGMClassifier(4, C=0.3, keep=keep, scale="unit").fit(Z, Y)
        selector = FGMSelector(4, C=0.3, keep=keep, scale="unit").fit(Z, Y)
        np.testing.assert_array_equal(selector.get_support(), classifier.get_support())
        np.testing.assert_array_equal(selector.sigma_, classifier.sigma_)
        assert not hasattr(selector, "coef_")
        assert not hasattr(selector, "predict")


@pytest.mark.parametrize("loss", ["hinge", "squared-hinge", "logistic"])
@pytest.mark.parametrize(("Z", "parameters"), [(np.zeros((120, 4)), {"M": 3}), (X, {"M": 0}), (X, {"C": 1e-9})])
@pytest.mark.parametrize("keep", ["M", "all"])
def test_where_nothing_helps_the_classifier_is_the_intercept(
    loss: str, Z: Array, parameters: dict[str, Any], keep: str
) -> None:
    model = FGMClassifier(loss=loss, keep=keep, **parameters).fit(Z, Y)
    np.testing.assert_allclose(model.coef_, 0.0, atol=1e-6)
    assert np.all(np.isfinite(model.intercept_))
    assert model.result_.objective == pytest.approx(model.result_.bound, rel=1e-3)
    if "M" in parameters:
        assert not model.coef_.any()


@pytest.mark.parametrize("column", [0.0, 3.0])
def test_constant_and_duplicate_columns_and_m_beyond_p(column: float) -> None:
    Z = np.column_stack([np.full(120, column), X[:, 7], X[:, 7], X[:, 19]])
    model = FGMClassifier(10, C=0.5).fit(Z, Y)
    assert np.all(np.isfinite(model.coef_))
    assert model.coef_[0][0] == 0.0
    assert model.coef_[0][1] == pytest.approx(model.coef_[0][2], rel=1e-6)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"keep": "some"}, "keep = 'some' is unknown; it is 'M', 'all' or 'scores'"),
        ({"debias": 0.0}, "debias = 0.0 must be a positive number"),
        ({"margin": "soft"}, "margin = 'soft' is unknown"),
        ({"margin": "rho", "loss": "hinge"}, "margin = 'rho' is an option of the squared hinge"),
        ({"M": -2}, "M = -2 must lie between 0 and 60"),
        ({"C": -1.0}, "C = -1.0 must be a positive number"),
        ({"T": 0}, "T = 0"),
        ({"loss": "hinged"}, "loss 'hinged' is not known"),
    ],
)
def test_a_bad_parameter_is_one_line(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        FGMClassifier(**parameters).fit(X, Y)
    assert "\n" not in str(caught.value)
