"""Baselines that are another one with something fixed, and the references by dual coordinate descent: a line each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from mipfs.data.instance import Instance
from mipfs.lab.baselines.dual_descent import Loss, check_all, dual_descent
from mipfs.lab.baselines.l1_logistic import l1_logistic_of_size
from mipfs.lab.baselines.l1_svm import l1_svm_of_size
from mipfs.lab.baselines.linear import BaselineDescription, Linear, check_weight


@dataclass(frozen=True)
class Variant:
    """What a file of a baseline has: its description and its fit."""

    ABOUT: BaselineDescription
    fit: Callable[..., Linear]


def _fit_without_refit(of_size: Callable[..., Linear], data: Instance, M: int, C: float = 1.0, **given: Any) -> Linear:
    """The sparse classifier with its own weights: M decides its loss weight, and `C` does not matter."""
    check_weight(C)
    return of_size(data, M, **given)


def _fit_all(name: str, loss: Loss, data: Instance, M: int, C: float = 1.0, **given: Any) -> Linear:
    """`dual_descent` on all features, as a reference: M must be p."""
    check_all(data, M, name)
    return dual_descent(data, C, loss=loss, **given)


LIBLINEAR: dict[str, Any] = {"sparse": "yes, not centred", "library": "LIBLINEAR (scikit-learn)"}
SPARSE = "may find fewer than M features; its C is that of M, not the one that is given; penalises the intercept"
ALL = "M is p; penalises the intercept; slow to converge on columns of different scales"
VARIANTS = {
    # l1-SVM and l1-LR of Tan 2014, section 6, without a refit
    "l1-svm-own": Variant(
        BaselineDescription(
            what="an ℓ1-regularised SVM with its own weights, C searched for M features",
            source="Tan 2014, section 6; Yuan et al. 2010",
            limits=SPARSE,
            **LIBLINEAR,
        ),
        partial(_fit_without_refit, l1_svm_of_size),
    ),
    "l1-logistic-own": Variant(
        BaselineDescription(
            what="an ℓ1-regularised logistic regression with its own weights, C searched for M features",
            source="Tan 2014, section 6; Yuan et al. 2010",
            limits=SPARSE,
            **LIBLINEAR,
        ),
        partial(_fit_without_refit, l1_logistic_of_size),
    ),
    # CD-SVM and CD-LR of Tan 2014, section 6
    "cd-svm": Variant(
        BaselineDescription(
            what="the SVM on all features (squared hinge): a reference, it selects nothing",
            source="Tan 2014, section 6; Hsieh et al. 2008",
            limits=ALL,
            **LIBLINEAR,
        ),
        partial(_fit_all, "cd-svm", "squared-hinge"),
    ),
    "cd-logistic": Variant(
        BaselineDescription(
            what="the logistic regression on all features: a reference, it selects nothing",
            source="Tan 2014, section 6; Yu et al. 2011",
            limits=ALL,
            **LIBLINEAR,
        ),
        partial(_fit_all, "cd-logistic", "logistic"),
    ),
}
"""What `BASELINES` and `REFERENCES` name of this file."""
