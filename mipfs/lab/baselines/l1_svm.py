"""The ℓ1-SVM with the squared hinge (Fung and Mangasarian 2004; LIBLINEAR, Yuan et al. 2010).

    min over w, b   ‖w‖₁ + Σ_i C_i max(0, 1 − y_i (w'x_i + b))²

Its weights have zeros of their own accord; how many depends on C, which is searched for the number that is wanted.
It solves another problem than (P): a baseline, never a bound.
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

ABOUT = BaselineDescription(
    what="the features of an ℓ1-regularised SVM, C searched for M of them, and the SVM on them",
    source="Fung and Mangasarian 2004; Yuan et al. 2010",
    sparse="yes, not centred",
    limits="may find fewer than M features; some 10 fits for each M",
    library="LIBLINEAR (scikit-learn)",
    uses_c=False,
)
TOL, MAX_STEPS = 1e-4, 2000
"""LIBLINEAR's tolerance, and its Newton steps at most."""


def l1_svm(data: Instance, C: float, *, bias: bool = True, tol: float = TOL, seed: int = 0) -> Linear:
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
    from sklearn.svm import LinearSVC

    check_weight(C)
    svm = LinearSVC(
        penalty="l1", dual=False, C=float(C), fit_intercept=bias, tol=tol, max_iter=MAX_STEPS, random_state=seed
    )
    return fit_liblinear(data, svm, C, bias, "the l1-SVM", lambda margins: np.square(np.maximum(0.0, 1.0 - margins)))


def l1_svm_of_size(data: Instance, M: int, *, bias: bool = True, tol: float = TOL, seed: int = 0) -> Linear:
    """The ℓ1-SVM with the most features up to M, by bisection of C.

    Parameters
    ----------
    data, bias, tol, seed : as in `l1_svm`
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
    return search_price(lambda C: l1_svm(data, C, bias=bias, tol=tol, seed=seed), M, _largest_null_C(data, bias))


def _largest_null_C(data: Instance, bias: bool) -> float:
    """The largest C at which every weight is zero, for 2 Σ_i C_i |y_i x_ij| ≤ 1 for all j; 1 where they always are.

    Scikit-learn's `l1_min_c`, of samples that all count as the one of largest weight, and of matrices of zeros.
    """
    slope = max(float(np.abs(data.block().pull(data.y)).max()), abs(float(data.y.sum())) if bias else 0.0)
    return 0.5 / (slope * float(data.sample_weight.max())) if slope > 0 else 1.0


def fit(data: Instance, M: int, C: float = 1.0, *, bias: bool = True, seed: int = 0) -> Linear:
    """The features of `l1_svm_of_size`, whose own weight decides their number, and the SVM of weight C on them."""
    check_weight(C)
    return plain_svm(data, l1_svm_of_size(data, M, bias=bias, seed=seed).ids, C, bias)
