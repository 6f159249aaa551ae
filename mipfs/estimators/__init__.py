"""scikit-learn classifiers and selectors on top of the drivers."""

from __future__ import annotations

from mipfs.estimators.baseline import BaselineSelector
from mipfs.estimators.fgm import FGMClassifier, FGMSelector
from mipfs.estimators.fgm_kinds import AdditiveFGMClassifier, GroupFGMClassifier, PolynomialFGMClassifier
from mipfs.estimators.fsp import FSPClassifier
from mipfs.estimators.measure import MeasureClassifier
from mipfs.estimators.mil import MILClassifier
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
