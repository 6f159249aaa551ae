"""Every estimator passes scikit-learn's own checks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.utils.estimator_checks import parametrize_with_checks

import mipfs

ESTIMATORS = [
    mipfs.FSPClassifier(),
    mipfs.FSPClassifier(M=2),
    mipfs.FGMClassifier(),
    mipfs.FGMSelector(),
    mipfs.GroupFGMClassifier(),
    mipfs.MeasureClassifier(),
    mipfs.MeasureClassifier("roc-auc", M=3, scale="standard"),
]


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_conventions(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)
