"""Dual coordinate descent on all features: classifiers that select nothing (Tan 2014, section 6: CD-SVM, CD-LR).

    min over w, b   ½ ‖w‖² + Σ_i (C_i/2) max(0, 1 − m_i)²     or     ½ ‖w‖² + Σ_i C_i log(1 + e^(−m_i))

LIBLINEAR (Hsieh et al. 2008; Yu et al. 2011) solves their duals one sample at a time, and penalises the intercept as
any weight. They stand beside the baselines as references: M is the number of all features.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.lab.baselines.linear import Linear, check_size, check_weight, liblinear_matrix, linear
from mipfs.lab.baselines.logistic_regression import TOL, logistic_regression

MAX_STEPS = 5000
"""Passes over the samples at most."""
Loss = Literal["squared-hinge", "logistic"]


def dual_descent(
    data: Instance, C: float, *, loss: Loss = "squared-hinge", bias: bool = True, tol: float = TOL, seed: int = 0
) -> Linear:
    """The classifier on all features.

    Parameters
    ----------
    data : Instance
    C : float > 0
        Sample i has C_i = C * sample_weight_i, of the loss as `mipfs.Problem` has it.
    loss : {"squared-hinge", "logistic"}
    bias : bool, default True
        Whether there is an intercept, half of whose square LIBLINEAR adds to the norm.
    tol : float > 0, of LIBLINEAR
    seed : int, of the order of the samples

    Returns
    -------
    Linear
        On all p features, those of weight zero among them, with the value of its own problem.

    Raises
    ------
    UsageError
        A parameter out of its range, or sparse data that are to be centred.

    Warns
    -----
    ConvergenceWarning
        LIBLINEAR stopped at its limit of steps.
    """
    check_weight(C)
    model = _liblinear_model(loss, C, bias, tol, seed)
    model.fit(liblinear_matrix(data, "dual coordinate descent"), data.y, sample_weight=data.sample_weight)
    w, b = model.coef_[0], float(np.ravel(model.intercept_)[0]) if bias else 0.0
    margins = data.y * data.block().scores(w, b)
    c = C * data.sample_weight
    losses = {
        "squared-hinge": lambda: 0.5 * float(c @ np.square(np.maximum(0.0, 1.0 - margins))),
        "logistic": lambda: float(c @ np.logaddexp(0.0, -margins)),
    }
    value = 0.5 * float(w @ w + b * b) + losses[loss]()
    return linear(data, np.arange(data.n_features), w, b, float(C), objective=value)


def _liblinear_model(loss: str, C: float, bias: bool, tol: float, seed: int) -> Any:
    """LIBLINEAR's problem of the same weights: it has C Σ ξ² where (P) has (C/2) Σ ξ²."""
    from sklearn.svm import LinearSVC

    if loss == "squared-hinge":
        half = 0.5 * float(C)
        return LinearSVC(C=half, dual=True, fit_intercept=bias, tol=tol, max_iter=MAX_STEPS, random_state=seed)
    if loss == "logistic":
        return logistic_regression(C, l1=False, bias=bias, tol=tol, seed=seed)
    raise UsageError(f"loss = {loss!r}: dual coordinate descent is by 'squared-hinge' or 'logistic'")


def check_all(data: Instance, M: int, name: str) -> None:
    """Refuse a number of features that is not all of them.

    Raises
    ------
    UsageError
    """
    check_size(M, data.n_features)
    if data.n_features > M:
        raise UsageError(
            f"{name} selects nothing: it uses all {data.n_features} features, and M = {M} is fewer; "
            f"give M = {data.n_features}, or a method that selects"
        )
