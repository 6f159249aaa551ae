"""PolynomialFGMClassifier: what is kept, and its values on raw rows, against products that are multiplied here."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import PolynomialFeatures

from mipfs import FGMClassifier, PolynomialFGMClassifier

R = np.random.default_rng(0)
X = R.uniform(-1, 1, size=(150, 8))
Y = X[:, 1] * X[:, 5] + 0.5 * X[:, 2] ** 2 > 0.1


def multiplied(model: Any, Z: np.ndarray[Any, Any], gamma: float, r: float) -> np.ndarray[Any, Any]:
    """f on scaled columns, from the columns of each monomial."""
    total = np.full(len(Z), 0.0)
    for members, weight in zip(model.members_, model.coef_[0], strict=True):
        used = members[members >= 0]
        ways = 1.0 if members.size == 2 and members[0] == members[1] else 2.0
        factor = np.sqrt(ways * gamma**used.size * r ** (2 - used.size))
        total += weight * factor * np.prod(Z[:, used], axis=1)
    return total + model.intercept_[0]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("scale", ["none", "standard", "unit"])
@pytest.mark.parametrize("keep", ["M", "all"])
def test_values_are_those_of_the_products(scale: str, keep: str) -> None:
    model = PolynomialFGMClassifier(4, gamma=0.5, r=2.0, scale=scale, keep=keep, T=4, C=5.0).fit(X, Y)
    Z = {"none": X, "standard": (X - X.mean(0)) / X.std(0), "unit": X / np.linalg.norm(X, axis=0)}[scale]
    np.testing.assert_allclose(model.decision_function(X), multiplied(model, Z, 0.5, 2.0), rtol=1e-9, atol=1e-12)
    assert (keep == "all") == (len(model.monomials_) > 4)
    used = np.unique(model.members_[model.members_ >= 0])
    np.testing.assert_array_equal(np.flatnonzero(model.support_), used)
    assert model.transform(X).shape == (150, used.size)


def test_agrees_with_all_products_as_columns() -> None:
    """γ = 1 and r = 0 with columns √2 x_j x_k and x_j², given to FGMClassifier."""
    made = PolynomialFeatures(2, include_bias=False)
    Z = made.fit_transform(X)[:, 8:]
    Z *= np.where((made.powers_[8:] == 2).any(axis=1), 1.0, np.sqrt(2.0))
    model, whole = PolynomialFGMClassifier(3, r=0.0, C=2.0).fit(X, Y), FGMClassifier(3, C=2.0).fit(Z, Y)
    assert model.result_.bound == pytest.approx(whole.result_.bound, rel=2e-3)
    assert model.result_.objective == pytest.approx(whole.result_.objective, rel=1e-6)
    np.testing.assert_allclose(model.decision_function(X), whole.decision_function(Z), rtol=1e-6, atol=1e-8)


@pytest.mark.slow
def test_sparse_rows_frames_pickles_and_grids() -> None:
    Z = np.where(np.abs(X) > 0.5, X, 0.0)
    frame = pd.DataFrame(Z, columns=[f"f{j}" for j in range(8)])
    model = PolynomialFGMClassifier(3, debias=10.0).fit(frame, Y)
    assert all(name.replace("²", "").split(" × ")[0] in frame.columns for name in model.monomials_)
    stored = PolynomialFGMClassifier(3, debias=10.0).fit(sparse.csr_array(Z), Y)
    values = model.decision_function(frame)
    np.testing.assert_allclose(stored.decision_function(sparse.csr_array(Z)), values, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(frame), model.predict(frame))
    grid = GridSearchCV(PolynomialFGMClassifier(T=3), {"M": [1, 2], "gamma": [0.5, 1.0]}, cv=2).fit(X, Y)
    assert grid.best_score_ > 0.6


def test_more_than_two_classes() -> None:
    classes = np.where(X[:, 0] * X[:, 1] > 0.2, "a", np.where(X[:, 2] * X[:, 3] > 0.2, "b", "c"))
    model = PolynomialFGMClassifier(2, C=10.0).fit(X, classes)
    assert model.coef_.shape == (3, len(model.monomials_))
    assert {"x1 × x2", "x3 × x4"} <= set(model.monomials_)
    assert model.decision_function(X).shape == (150, 3)
    assert model.score(X, classes) > 0.6


@pytest.mark.parametrize(
    ("options", "word"),
    [({"M": None}, "M = None must be"), ({"gamma": -1}, "gamma"), ({"degree": 5}, "degree"), ({"keep": "x"}, "keep"),
     ({"debias": 0}, "debias"), ({"M": 2.5}, "a whole number")],
)  # fmt: skip
def test_parameters_out_of_range(options: dict[str, Any], word: str) -> None:
    with pytest.raises(ValueError, match=word):
        PolynomialFGMClassifier(**options).fit(X, Y)
