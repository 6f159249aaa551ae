"""MeasureClassifier against its definition, and what scikit-learn's users rely on beyond check_estimator."""

from __future__ import annotations

import itertools
import pickle
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import average_precision_score, f1_score, fbeta_score, roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mipfs
from mipfs import MeasureClassifier
from tests.structural_oracles import labellings, structural_svm

X, Y = make_classification(60, 8, n_informative=3, n_redundant=1, weights=[0.7], random_state=3)
X3, Y3 = make_classification(60, 8, n_informative=4, n_redundant=0, n_classes=3, n_clusters_per_class=1, random_state=3)


def small(seed: int) -> tuple[np.ndarray, np.ndarray]:
    r = np.random.default_rng(seed)
    Z = r.standard_normal((7, 4))
    y = (Z[:, 0] - Z[:, 2] + 0.5 * r.standard_normal(7) > 0.3).astype(int)
    y[:2] = 1, 0
    return Z, y


@pytest.mark.slow
def test_weights_are_those_of_the_enumerated_problem() -> None:
    for seed, name in enumerate(("f1", "recall-at-k", "roc-auc")):
        Z, y = small(seed)
        losses, V = labellings(name, 2.0 * y - 1.0)
        values = {ids: structural_svm(Z[:, ids], losses, V, 20.0) for ids in itertools.combinations(range(4), 2)}
        best = min(values, key=lambda ids: values[ids][0])
        fitted = MeasureClassifier(name, M=2, C=20.0, driver="branch", gap=1e-8, fit_intercept=False).fit(Z, y)
        assert tuple(np.flatnonzero(fitted.support_)) == best
        assert fitted.result_.objective == pytest.approx(values[best][0], rel=1e-6)
        np.testing.assert_allclose(fitted.coef_[0, list(best)], values[best][1], atol=1e-3)
        assert np.count_nonzero(fitted.coef_) <= 2
        assert fitted.intercept_.tolist() == [0.0]
        relaxed = MeasureClassifier(name, M=2, C=20.0, fit_intercept=False).fit(Z, y)
        ids = tuple(np.flatnonzero(relaxed.support_))
        assert relaxed.result_.bound <= values[best][0] * (1 + 1e-9)
        np.testing.assert_allclose(relaxed.coef_[0, list(ids)], values[ids][1], atol=1e-3)


def relaxed_weights(Z: np.ndarray, losses: np.ndarray, V: np.ndarray, C: float, M: int) -> tuple[float, np.ndarray]:
    """min ½ Σ w_j²/σ_j + C ξ over Σσ ≤ M, 0 ≤ σ ≤ 1, all labellings written out; a last column is always selected."""
    p = Z.shape[1]
    w, sigma, t, xi = cp.Variable(p), cp.Variable(p), cp.Variable(p), cp.Variable(nonneg=True)
    rows = [xi >= losses - (V @ Z) @ w, sigma >= 0, sigma <= 1, cp.sum(sigma[:-1]) <= M, sigma[-1] == 1]
    rows += [cp.quad_over_lin(w[j], sigma[j]) <= t[j] for j in range(p)]
    program = cp.Problem(cp.Minimize(0.5 * cp.sum(t) + C * xi), rows)
    program.solve(solver=cp.CLARABEL, tol_gap_rel=1e-10, tol_gap_abs=1e-10)
    return float(program.value), np.asarray(w.value)


@pytest.mark.slow
def test_keeping_all_is_the_predictor_of_the_relaxation() -> None:
    """FGM_multi of Mao 2013: the weights of the relaxed program, on all features with σ > 0."""
    for seed, name in enumerate(("f1", "error", "roc-auc")):
        Z, y = small(seed)
        losses, V = labellings(name, 2.0 * y - 1.0)
        value, w = relaxed_weights(np.column_stack([Z, np.ones(7)]), losses, V, 20.0, 1)
        fitted = MeasureClassifier(name, M=1, C=20.0, keep="all", gap=1e-8).fit(Z, y)
        np.testing.assert_allclose([*fitted.coef_[0], *fitted.intercept_], w, atol=5e-3)
        assert fitted.result_.relaxed["upper"] == pytest.approx(value, rel=1e-6)
        assert fitted.support_.sum() >= 1
        assert np.all(fitted.coef_[0, ~fitted.support_] == 0.0)
    three = MeasureClassifier(M=2, keep="all").fit(X3, Y3)
    assert three.coef_.shape == (3, 8)
    assert three.support_.sum() > 2
    for given, said in (
        ({"keep": "every"}, "it is 'M' or 'all'"),
        ({"keep": "all", "driver": "branch"}, "solves none"),
    ):
        with pytest.raises(ValueError, match=said):
            MeasureClassifier(**given).fit(X, Y)


@pytest.mark.slow
def test_the_value_is_that_of_scikit_learn() -> None:
    for name, reference in (
        ("f1", lambda f: f1_score(Y, f > 0)),
        ("roc-auc", lambda f: roc_auc_score(Y, f)),
        ("average-precision", lambda f: average_precision_score(Y, f)),
        ("error", lambda f: np.mean((f > 0) != Y)),
    ):
        fitted = MeasureClassifier(name, M=3).fit(X, Y)
        assert fitted.measure_value(X, Y) == pytest.approx(reference(fitted.decision_function(X)))
    fitted = MeasureClassifier("fbeta", beta=2.0, M=3).fit(X, Y)
    assert fitted.measure_value(X, Y) == pytest.approx(fbeta_score(Y, fitted.predict(X), beta=2.0))


def test_k_is_the_number_of_positives_or_twice_it() -> None:
    P = int(Y.sum())
    for k, size in ((None, P), ("2P", 2 * P), (5, 5)):
        fitted = MeasureClassifier("recall-at-k", M=3, k=k).fit(X, Y)
        top = np.argsort(-fitted.decision_function(X), kind="stable")[:size]
        assert fitted.measure_value(X, Y) == pytest.approx(Y[top].sum() / P)
        assert fitted.result_.params.get("k", P) == size
    many = MeasureClassifier("recall-at-k", M=3, k="2P").fit(X, 1 - Y)  # more than all samples
    assert many.measure_value(X, 1 - Y) == 1.0


@pytest.mark.slow
def test_three_classes_are_macro_averaged() -> None:
    labels = np.array(["ash", "birch", "cedar"])
    for name, score in (("f1", lambda y, f: f1_score(y, f > 0)), ("average-precision", average_precision_score)):
        model = MeasureClassifier(name, M=3, scale="standard")
        fitted = clone(model).fit(X3, labels[Y3])
        singles = [clone(model).fit(X3, k == Y3) for k in range(3)]
        assert fitted.coef_.shape == (3, 8)
        np.testing.assert_array_equal(fitted.coef_, np.vstack([single.coef_ for single in singles]))
        np.testing.assert_array_equal(fitted.support_, np.any([single.support_ for single in singles], axis=0))
        assert all(single.support_.sum() <= 3 for single in singles)
        f = fitted.decision_function(X3)
        assert fitted.predict(X3).tolist() == labels[f.argmax(axis=1)].tolist()
        expected = np.mean([score(k == Y3, f[:, k]) for k in range(3)])
        assert fitted.measure_value(X3, labels[Y3]) == pytest.approx(expected)
        assert len(fitted.result_) == 3


@pytest.mark.slow
def test_sparse_scales_bytes_and_pickles() -> None:
    Z = np.where(np.abs(X) > 0.7, X, 0.0)
    for scale in ("none", "standard", "unit"):
        dense = MeasureClassifier(M=3, C=30.0, scale=scale).fit(Z, Y)
        again = MeasureClassifier(M=3, C=30.0, scale=scale).fit(Z.copy(), Y)
        thin = MeasureClassifier(M=3, C=30.0, scale=scale).fit(sparse.csr_array(Z), Y)
        np.testing.assert_array_equal(again.coef_, dense.coef_)
        np.testing.assert_array_equal(thin.support_, dense.support_)
        values = dense.decision_function(Z)
        np.testing.assert_allclose(
            thin.decision_function(sparse.csr_array(Z)), values, atol=1e-3 * np.abs(values).max()
        )
        back = pickle.loads(pickle.dumps(dense))
        np.testing.assert_array_equal(back.decision_function(Z), values)
        plain = MeasureClassifier(M=3, C=30.0, scale=scale, fit_intercept=False).fit(Z, Y)
        assert (plain.intercept_[0] != 0.0) == (scale == "standard")
    inside = MeasureClassifier(M=3, C=30.0, scale="standard").fit(X, Y)
    outside = make_pipeline(StandardScaler(), MeasureClassifier(M=3, C=30.0)).fit(X, Y)
    np.testing.assert_allclose(inside.decision_function(X), outside.decision_function(X), atol=1e-6)


@pytest.mark.slow
def test_a_grid_that_scores_by_the_measure() -> None:
    def scorer(model: Any, Z: np.ndarray, y: np.ndarray) -> float:
        return float(model.measure_value(Z, y))

    model = MeasureClassifier("f1", M=3, scale="standard")
    by_measure, by_name = (
        GridSearchCV(model, {"C": [1.0, 100.0], "M": [1, 3]}, cv=3, scoring=scoring, error_score="raise").fit(X, Y)
        for scoring in (scorer, "f1")
    )
    np.testing.assert_allclose(
        by_measure.cv_results_["mean_test_score"], by_name.cv_results_["mean_test_score"], rtol=1e-12
    )
    assert by_measure.best_score_ > 0.5


def test_names_and_a_limit() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=[f"gene {j}" for j in range(8)])
    fitted = MeasureClassifier(M=2).fit(frame, Y)
    assert set(fitted.result_.selected) <= set(frame.columns)
    assert fitted.transform(frame).shape == (60, len(fitted.result_.selected))
    with pytest.warns(ConvergenceWarning, match="stopped by TIME_LIMIT"):
        MeasureClassifier(M=2, driver="gbd", time_limit=0.0, gap=1e-9).fit(X, Y)
    nothing = MeasureClassifier(M=0).fit(X, Y)
    assert (nothing.support_.sum(), np.abs(nothing.coef_).max(), set(nothing.predict(X))) == (0, 0.0, {0})


def test_refused_in_one_line() -> None:
    for given, message in (
        ({"measure": "f2"}, "measure 'f2' is not known"),
        ({"measure": "fbeta"}, "needs beta"),
        ({"k": 3}, "measure 'f1' has no k"),
        ({"k": "2P"}, "k = '2P'; it is an integer, None or '2P', for precision-at-k and recall-at-k only"),
        ({"measure": "recall-at-k", "k": "3P"}, "k = '3P'"),
        ({"measure": "recall-at-k", "k": 61}, "k = 61 must lie between 1 and 60"),
        ({"C": -1.0}, "C = -1.0 must be a positive number"),
        ({"M": -1}, "M = -1 must lie between 0 and 8"),
        ({"driver": "kelley"}, "cannot carry the loss 'structural'"),
    ):
        with pytest.raises(ValueError, match=message) as caught:
            MeasureClassifier(**given).fit(X, Y)
        assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match="one class only"):
        MeasureClassifier().fit(X, np.ones(60))
    with pytest.raises(TypeError, match="sample_weight"):
        MeasureClassifier().fit(X, Y, sample_weight=np.ones(60))
    with pytest.raises(NotFittedError):
        MeasureClassifier().measure_value(X, Y)
    fitted = MeasureClassifier().fit(X, Y)
    with pytest.raises(ValueError, match="y holds 7, which is none of classes_"):
        fitted.measure_value(X, np.full(60, 7))
    with pytest.raises(ValueError, match="without a positive sample"):
        fitted.measure_value(X, np.zeros(60, dtype=int))
    with pytest.raises(ValueError, match="y has 3 labels for 60 samples"):
        fitted.measure_value(X, Y[:3])
    assert mipfs.MeasureClassifier is MeasureClassifier


@pytest.mark.slow
def test_an_intercept_is_the_weight_of_a_constant_column_beside_the_M() -> None:
    for seed, name in enumerate(("f1", "error")):
        Z, y = small(seed)
        losses, V = labellings(name, 2.0 * y - 1.0)
        wide = np.column_stack([Z, np.full(7, 2.0)])
        values = {
            ids: structural_svm(wide[:, [*ids, 4]], losses, V, 20.0) for ids in itertools.combinations(range(4), 2)
        }
        best = min(values, key=lambda ids: values[ids][0])
        asked = {"M": 2, "C": 20.0, "driver": "branch", "gap": 1e-8, "fit_intercept": True, "intercept_scaling": 2.0}
        for given in (Z, sparse.csr_array(Z)):
            fitted = MeasureClassifier(name, **asked).fit(given, y)
            assert tuple(np.flatnonzero(fitted.support_)) == best
            assert fitted.result_.objective == pytest.approx(values[best][0], rel=1e-6)
            assert fitted.coef_.shape == (1, 4)
            np.testing.assert_allclose(fitted.coef_[0, list(best)], values[best][1][:2], atol=1e-3)
            assert fitted.intercept_[0] == pytest.approx(2.0 * values[best][1][2], abs=2e-3)
            np.testing.assert_allclose(
                fitted.decision_function(given), Z @ fitted.coef_[0] + fitted.intercept_[0], atol=1e-12
            )


@pytest.mark.slow
def test_an_intercept_helps_where_the_classes_are_of_different_sizes() -> None:
    r = np.random.default_rng(0)
    Z = r.standard_normal((400, 6))
    y = (Z[:, 0] + Z[:, 1] > 2.3).astype(int)
    plain = MeasureClassifier(M=2, C=1e4, scale="standard", fit_intercept=False).fit(Z, y)
    shifted = MeasureClassifier(M=2, C=1e4, scale="standard").fit(Z, y)
    assert shifted.support_[:2].all()
    assert shifted.measure_value(Z, y) > 0.9 > plain.measure_value(Z, y) + 0.3


def test_every_class_has_its_own_intercept() -> None:
    fitted = MeasureClassifier(M=3, fit_intercept=True, scale="standard").fit(X3, Y3)
    assert fitted.coef_.shape == (3, 8)
    assert np.unique(fitted.intercept_).size == 3
    assert "(intercept)" not in fitted.result_[0].selected
    assert fitted.score(X3, Y3) > 0.7


@pytest.mark.parametrize("scaling", [0, -1.0, np.inf, "1", True])
def test_a_constant_that_is_none(scaling: Any) -> None:
    with pytest.raises(ValueError, match="intercept_scaling"):
        MeasureClassifier(fit_intercept=True, intercept_scaling=scaling).fit(X, Y)
