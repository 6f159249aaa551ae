"""BSSSelector and LeverageSelector: the choice of `mipfs.lab.sketch`, in scikit-learn's manner."""

from __future__ import annotations

import pickle
import re
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import mipfs
from mipfs.data.instance import Instance
from mipfs.generators.synthetic import paul_2016
from mipfs.lab.sketch import select
from mipfs.lab.sketch.margin import solve_svm

X, Y = make_classification(40, 60, n_informative=5, random_state=3)
Y3 = np.array(["ash", "birch", "cedar"])[np.argsort(np.argsort(X[:, 0])) * 3 // 40]
SELECTORS = [mipfs.BSSSelector(160), mipfs.LeverageSelector(50), mipfs.BSSSelector(60, supervised=True, C=0.5)]
each = pytest.mark.parametrize("given", SELECTORS, ids=["bss", "leverage", "supervised"])


@each
def test_the_columns_are_those_of_select(given: Any) -> None:
    fitted = clone(given).fit(X, Y)
    data = Instance.from_arrays(X, np.where(Y == 1, 1.0, -1.0))
    method = "leverage" if isinstance(given, mipfs.LeverageSelector) else "bss"
    found = select(data, method, given.r, supervised=given.supervised, C=given.C)
    assert fitted.get_support(indices=True).tolist() == found.ids.tolist()
    assert fitted.guarantee_.document() == found.guarantee.document()
    np.testing.assert_array_equal(fitted.repeats_[found.ids], found.repeats)
    np.testing.assert_array_equal(fitted.rescaling_[found.ids], found.rescaling)
    assert fitted.sketch_.document() == found.document()
    np.testing.assert_array_equal(fitted.transform(X), X[:, found.ids])


@each
@pytest.mark.parametrize("scale", ["none", "standard", "unit"])
def test_rescaled_columns_are_those_of_the_guarantee(given: Any, scale: str) -> None:
    shifted = X * np.linspace(0.5, 4.0, 60) + 3.0
    fitted = clone(given).set_params(scale=scale, rescale=True, check=False).fit(shifted, Y)
    data = Instance.from_arrays(shifted, np.where(Y == 1, 1.0, -1.0), scale=scale)
    Z, ids = fitted.transform(shifted), fitted.sketch_.ids
    expected = data.X[:, ids] * fitted.sketch_.rescaling
    difference = Z - expected  # the same up to a shift, which an intercept takes up
    np.testing.assert_allclose(difference, np.broadcast_to(difference[0], Z.shape), atol=1e-10)
    back = fitted.inverse_transform(Z)
    assert back.shape == X.shape
    np.testing.assert_allclose(back[:, ids], shifted[:, ids], rtol=1e-12)
    assert not np.any(np.delete(back, ids, axis=1))


@pytest.mark.sampled(3)
@each
def test_sparse_frames_and_types(given: Any) -> None:
    pd = pytest.importorskip("pandas")
    Z = np.where(np.abs(X) > 0.7, X, 0.0)
    fitted = clone(given).set_params(rescale=True).fit(Z, Y)
    dense = fitted.transform(Z)
    for container in (sparse.csr_array, sparse.csc_matrix):
        other = clone(given).set_params(rescale=True).fit(container(Z), Y)
        np.testing.assert_array_equal(other.get_support(), fitted.get_support())
        found = other.transform(container(Z))
        assert sparse.issparse(found)
        np.testing.assert_allclose(found.toarray(), dense, rtol=1e-9, atol=1e-12)
    assert fitted.transform(Z.astype(np.float32)).dtype == np.float32
    names = [f"gene {j}" for j in range(60)]
    frame = pd.DataFrame(Z, columns=names)
    framed = clone(given).set_params(rescale=True).set_output(transform="pandas").fit(frame, Y)
    assert framed.get_feature_names_out().tolist() == framed.transform(frame).columns.tolist() == framed.sketch_.names
    np.testing.assert_allclose(framed.transform(frame).to_numpy(), dense)
    plain = clone(given).fit(Z, Y)
    assert plain.get_feature_names_out().tolist() == [f"x{j}" for j in plain.get_support(indices=True)]


def test_labels_are_needed_only_where_support_vectors_choose() -> None:
    for given in (mipfs.BSSSelector(160), mipfs.LeverageSelector(50)):
        without = clone(given).fit(X)
        assert without.guarantee_.margin is None
        assert without.guarantee_.radius is not None
        for labels in (Y, Y3, np.linspace(0.0, 1.0, 40), np.ones(40)):
            found = clone(given).fit(X, labels)
            np.testing.assert_array_equal(found.get_support(), without.get_support())
            assert (found.guarantee_.margin is not None) == (labels is Y)
        with pytest.raises(ValueError, match="requires y to be passed"):
            clone(given).set_params(supervised=True).fit(X)
        with pytest.raises(ValueError, match="one class only"):
            clone(given).set_params(supervised=True).fit(X, np.ones(40))


def test_of_several_classes_the_support_vectors_of_any_choose() -> None:
    fitted = mipfs.BSSSelector(160, supervised=True).fit(X, Y3)
    rows = set()
    for label in np.unique(Y3):
        rows |= set(solve_svm(Instance.from_arrays(X, np.where(label == Y3, 1.0, -1.0)), 1.0, True).support.tolist())
    assert fitted.sketch_.support.tolist() == sorted(rows)
    part = select(Instance.from_arrays(X[sorted(rows)], np.full(len(rows), np.nan), training=False), "bss", 160)
    assert fitted.sketch_.order.tolist() == part.order.tolist()
    assert fitted.guarantee_.margin is None


def test_draws_and_projections_follow_their_seed() -> None:
    drawn = [mipfs.LeverageSelector(30, random_state=seed).fit(X).sketch_.order.tolist() for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]
    projected = mipfs.BSSSelector(60, projections=20, random_state=1).fit(X)
    assert projected.sketch_.method == "approx-bss"
    assert projected.guarantee_.promised is None
    leading = mipfs.BSSSelector(20, rank=5).fit(X)
    assert leading.guarantee_.rank == 5


def test_the_default_is_four_picks_for_every_direction() -> None:
    fitted = mipfs.BSSSelector().fit(X, Y)
    assert fitted.sketch_.r == 4 * 40
    assert fitted.guarantee_.promised.low == pytest.approx(0.25)


@pytest.mark.slow
@each
def test_in_a_pipeline_and_a_grid(given: Any) -> None:
    name = type(given).__name__.lower()
    grid = {f"{name}__r": [170, 200], f"{name}__rescale": [False, True]}
    model = make_pipeline(StandardScaler(), clone(given).set_params(check=False), LinearSVC())
    search = GridSearchCV(model, grid, cv=3, error_score="raise").fit(*paul_2016(60, 80, 5)["train"])
    assert search.best_score_ > 0.95
    best = search.best_estimator_
    assert best[-1].coef_.shape[1] == best[1].get_support().sum()


@each
def test_pickled_and_cloned(given: Any) -> None:
    fitted = clone(given).fit(X, Y)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.transform(X), fitted.transform(X))
    assert again.get_params() == given.get_params()
    with pytest.raises(NotFittedError):
        clone(fitted).transform(X)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (mipfs.BSSSelector(40), "r = 40 must be above 40, the rank of the matrix"),
        (mipfs.BSSSelector(1.5), "r = 1.5 must be a whole number"),
        (mipfs.BSSSelector(scale="big"), "scale = 'big' is unknown"),
        (mipfs.BSSSelector(rank=3, projections=4), "rank = 3 has no meaning for approx-bss"),
        (mipfs.LeverageSelector(5, random_state=-1), "seed = -1 must be a whole number >= 0"),
        (mipfs.LeverageSelector(5, C=0), "C = 0.0 must be a positive number"),
    ],
)
def test_bad_parameters_are_one_line(given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        given.fit(X, Y)
    assert "\n" not in str(caught.value)
