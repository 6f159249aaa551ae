"""Every estimator passes scikit-learn's own checks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import mipfs

ESTIMATORS = [
    mipfs.FSPClassifier(),
    mipfs.FGMClassifier(),
    mipfs.FGMSelector(),
    mipfs.GroupFGMClassifier(),
    mipfs.PolynomialFGMClassifier(),
    mipfs.AdditiveFGMClassifier(),
    mipfs.MeasureClassifier(),
    mipfs.BSSSelector(),
    mipfs.LeverageSelector(),
]
AGAIN = [
    mipfs.AdditiveFGMClassifier("splines"),
    mipfs.AdditiveFGMClassifier("hik", map_options={"levels": 9}, M=1),
    mipfs.FSPClassifier(M=2),
    mipfs.FSPClassifier(M=2, shared_support=True),
    mipfs.MeasureClassifier("roc-auc", M=3, scale="standard"),
    mipfs.BSSSelector(supervised=True, rescale=True, scale="standard"),
    mipfs.LeverageSelector(r=20, supervised=True, rescale=True),
]
"""The same classes with other parameters."""


@pytest.mark.sampled(23)
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_conventions(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


@pytest.mark.slow
@pytest.mark.sampled(1)
@parametrize_with_checks(AGAIN)
def test_scikit_learn_conventions_with_parameters(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [mipfs.FSPClassifier(positive=True), mipfs.FGMClassifier(positive=True)],
    expected_failed_checks=lambda _: {"check_classifiers_train": "blobs that weights of 0 or more cannot tell apart"},
)
def test_scikit_learn_conventions_with_signs(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)
