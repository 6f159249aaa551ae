"""scikit-learn classifiers and selectors on top of the drivers."""

from __future__ import annotations

from mipfs.estimators.additive_fgm import AdditiveFGMClassifier
from mipfs.estimators.baseline import BaselineSelector
from mipfs.estimators.fgm import FGMClassifier, FGMSelector
from mipfs.estimators.fsp import FSPClassifier
from mipfs.estimators.group_fgm import GroupFGMClassifier
from mipfs.estimators.measure import MeasureClassifier
from mipfs.estimators.mil import MILClassifier
from mipfs.estimators.polynomial import PolynomialFGMClassifier
from mipfs.estimators.sketch import BSSSelector, LeverageSelector

__all__ = [
    "AdditiveFGMClassifier",
    "BSSSelector",
    "BaselineSelector",
    "FGMClassifier",
    "FGMSelector",
    "FSPClassifier",
    "GroupFGMClassifier",
    "LeverageSelector",
    "MILClassifier",
    "MeasureClassifier",
    "PolynomialFGMClassifier",
]
