"""The ℓ1-regularised logistic regression (Tan 2014, section 6; LIBLINEAR, Yuan et al. 2010).

    min over w, b   ‖w‖₁ + Σ_i C_i log(1 + e^(−y_i (w'x_i + b)))

As with the ℓ1-SVM, C decides how many weights are zero, and is searched for the number that is wanted. It solves
another problem than (P): a baseline, never a bound.
"""

from __future__ import annotations

import numpy as np

from mipfs.data.instance import Instance
from mipfs.lab.baselines.linear import (
    BaselineDescription,
    Linear,
    check_size,
    check_weight,
    fit_liblinear,
    plain_svm,
    search_price,
)
from mipfs.lab.baselines.logistic_regression import TOL, logistic_regression

ABOUT = BaselineDescription(
    what="the features of an ℓ1-regularised logistic regression, C searched for M of them, and the SVM on them",
    source="Tan 2014, section 6; Yuan et al. 2010",
    sparse="yes, not centred",
    limits="may find fewer than M features; some 10 fits for each M",
    library="LIBLINEAR (scikit-learn)",
    uses_c=False,
)


def l1_logistic(data: Instance, C: float, *, bias: bool = True, tol: float = TOL, seed: int = 0) -> Linear:
    """Solve at one C by LIBLINEAR.

    Parameters
    ----------
    data : Instance
    C : float > 0
        Sample i has C_i = C * sample_weight_i.
    bias : bool, default True
        Whether there is an intercept, whose absolute value LIBLINEAR adds to the norm.
    tol : float > 0, of LIBLINEAR
    seed : int, of LIBLINEAR's coordinate order

    Returns
    -------
    Linear
        On the features with a non-zero weight.

    Raises
    ------
    UsageError
        C out of its range, or sparse data that are to be centred.

    Warns
    -----
    ConvergenceWarning
        LIBLINEAR stopped at its limit of steps.
    """
    check_weight(C)
    model = logistic_regression(C, l1=True, bias=bias, tol=tol, seed=seed)
    return fit_liblinear(
        data, model, C, bias, "the l1 logistic regression", lambda margins: np.logaddexp(0.0, -margins)
    )


def l1_logistic_of_size(data: Instance, M: int, *, bias: bool = True, tol: float = TOL, seed: int = 0) -> Linear:
    """The ℓ1-regularised logistic regression with the most features up to M, by bisection of C.

    Parameters
    ----------
    data, bias, tol, seed : as in `l1_logistic`
    M : int in 1 … p

    Returns
    -------
    Linear
        With fewer than M features where no C that was tried has as many.

    Raises
    ------
    UsageError
        M out of its range, or sparse data that are to be centred.
    """
    check_size(M, data.n_features)
    return search_price(lambda C: l1_logistic(data, C, bias=bias, tol=tol, seed=seed), M, _largest_null_C(data, bias))


def _largest_null_C(data: Instance, bias: bool) -> float:
    """The largest C at which every weight is zero, for |Σ_i C_i y_i x_ij|/2 ≤ 1 for all j; 1 where they always are."""
    v = data.sample_weight * data.y
    slope = max(float(np.abs(data.block().pull(v)).max()), abs(float(v.sum())) if bias else 0.0)
    return 2.0 / slope if slope > 0 else 1.0


def fit(data: Instance, M: int, C: float = 1.0, *, bias: bool = True, seed: int = 0) -> Linear:
    """The features of `l1_logistic_of_size`, whose own C decides their number, and the SVM of weight C on them."""
    check_weight(C)
    return plain_svm(data, l1_logistic_of_size(data, M, bias=bias, seed=seed).ids, C, bias)
