"""Baselines that are another one with something fixed, and the references by dual coordinate descent: a line each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from mipfs.data.instance import Instance
from mipfs.lab.baselines.about import BaselineDescription
from mipfs.lab.baselines.dual_descent import check_all, dual_descent
from mipfs.lab.baselines.l1_logistic import l1_logistic_of_size
from mipfs.lab.baselines.l1_svm import l1_svm_of_size
from mipfs.lab.baselines.linear import Linear, check_weight
from mipfs.lab.baselines.rfe import Drop, rfe

LARGE = 20_000
"""Features from which on the schedule of Tan 2010, section 3.5, is taken, and below it that of section 3.3."""


@dataclass(frozen=True)
class Variant:
    """What a file of a baseline has: its description and its fit."""

    ABOUT: BaselineDescription
    fit: Callable[..., Linear]


def _fit_without_refit(of_size: Callable[..., Linear], data: Instance, M: int, C: float = 1.0, **given: Any) -> Linear:
    """The sparse classifier with its own weights: M decides its loss weight, and `C` does not matter."""
    check_weight(C)
    return of_size(data, M, **given)


def _fit_all(name: str, options: Any, data: Instance, M: int, C: float = 1.0, **given: Any) -> Linear:
    """`dual_descent` on all features, as a reference: M must be p."""
    check_all(data, M, name)
    return dual_descent(data, C, **options, **given)


def _fit_by_schedule(data: Instance, M: int, C: float = 1.0, **given: Any) -> Linear:
    """`rfe` by the schedule of Tan 2010 for as many features as there are."""
    drop: Drop = "tan-large" if data.n_features > LARGE else "tan"
    return rfe(data, M, C, drop=drop, **given)


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
    "rfe-hinge": Variant(
        BaselineDescription(
            what="recursive feature elimination with the hinge, one feature a round",
            source="Guyon et al. 2002; Aytug 2015, section 2",
            limits="p - M + 1 fits: for thousands of features rfe, which drops a fifth of them a round",
            **LIBLINEAR,
        ),
        partial(rfe, drop=1, loss="hinge"),
    ),
    "rfe-tan": Variant(
        BaselineDescription(
            what="recursive feature elimination, 10,000, 100, 10 or 1 features a round as Tan 2010 has it",
            source="Tan 2010, sections 3.3 and 3.5",
            limits="some p/10 fits below 20,000 features, p/100 from there on",
            **LIBLINEAR,
        ),
        _fit_by_schedule,
    ),
    # CD-SVM and CD-LR of Tan 2014, section 6
    "cd-svm": Variant(
        BaselineDescription(
            what="the SVM on all features (squared hinge): a reference, it selects nothing",
            source="Tan 2014, section 6; Hsieh et al. 2008",
            limits=ALL,
            **LIBLINEAR,
        ),
        partial(_fit_all, "cd-svm", {"loss": "squared-hinge"}),
    ),
    "cd-logistic": Variant(
        BaselineDescription(
            what="the logistic regression on all features: a reference, it selects nothing",
            source="Tan 2014, section 6; Yu et al. 2011",
            limits=ALL,
            **LIBLINEAR,
        ),
        partial(_fit_all, "cd-logistic", {"loss": "logistic"}),
    ),
}
"""What `BASELINES` and `REFERENCES` name of this file."""
