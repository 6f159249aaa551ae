"""SVM-RFE: recursive feature elimination by the weights of a linear SVM (Guyon, Weston, Barnhill, Vapnik 2002).

    repeat  train the SVM on the features that are left; drop those of least w_j²  until M are left

The supports are nested: a feature that was dropped never comes back, which is what Mao 2013 and Tan 2010 improve on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from mipfs.baselines.linear import Linear, check_size, check_weight, liblinear_matrix, linear
from mipfs.errors import UsageError
from mipfs.instance import Instance
from mipfs.losses import get_loss

Integers = npt.NDArray[np.int64]

DROP = 0.2
"""Share of the features that a round drops; Guyon drops half, which is coarser."""
TOL, MAX_STEPS = 1e-4, 10_000
"""LIBLINEAR's tolerance, and its Newton steps at most."""


def eliminate(
    data: Instance, sizes: Sequence[int], C: float = 1.0, *, bias: bool = True, drop: float = DROP
) -> dict[int, Integers]:
    """Eliminate features down to the smallest of the wanted sizes.

    Parameters
    ----------
    data : Instance
    sizes : sequence of int in 1 … p
        How many features are wanted; one elimination serves all.
    C : float > 0
        Sample i has the weight C * sample_weight_i on its squared hinge.
    bias : bool, default True
        Whether the SVMs have an intercept (lightly penalised, as LIBLINEAR has it).
    drop : float in [0, 1)
        Share of the features that a round drops, one at least; 0: one at a time.

    Returns
    -------
    dict of size to the (size,) ascending positions that were left; ties drop the later feature

    Raises
    ------
    UsageError
        A parameter out of its range, or sparse data that are to be centred.

    Source: Guyon et al. 2002, section 4; Mao 2013, section 8.
    """
    from sklearn.svm import LinearSVC

    p = data.n_features
    for size in sizes:
        check_size(size, p)
    check_weight(C)
    if not sizes:
        raise UsageError("sizes is empty; give at least one number of features")
    if not 0.0 <= drop < 1.0:
        raise UsageError(f"drop = {drop!r} must lie in [0, 1): the share of the features that a round drops")
    X, left, found = liblinear_matrix(data, "SVM-RFE"), np.arange(p), {}
    if data.is_sparse:
        X = X.tocsc()  # rounds choose columns
    wanted = sorted({int(size) for size in sizes}, reverse=True)
    svm = LinearSVC(C=float(C), dual=False, fit_intercept=bias, tol=TOL, max_iter=MAX_STEPS)
    while True:
        if left.size == wanted[0]:
            found[wanted.pop(0)] = left
            if not wanted:
                return found
        svm.fit(X[:, left], data.y, sample_weight=data.sample_weight)
        keep = max(wanted[0], min(left.size - 1, math.floor((1.0 - drop) * left.size)))
        order = np.argsort(-np.abs(svm.coef_[0]), kind="stable")
        left = np.sort(left[order[:keep]])


def rfe(data: Instance, M: int, C: float = 1.0, *, bias: bool = True, drop: float = DROP) -> Linear:
    """SVM-RFE down to M features, and the squared-hinge SVM on them.

    Parameters
    ----------
    data, C, bias, drop : as in `eliminate`
    M : int in 1 … p

    Returns
    -------
    Linear
        With the SVM's exact weights (its intercept is free), and no bound: nothing is proven about the support.

    Raises
    ------
    UsageError
        As `eliminate`.
    """
    return plain_svm(data, eliminate(data, [M], C, bias=bias, drop=drop)[int(M)], C, bias)


def plain_svm(data: Instance, ids: Integers, C: float, bias: bool) -> Linear:
    """The squared-hinge SVM on the columns `ids`, with a free intercept or none."""
    svm = get_loss("squared-hinge").Solver(data, C * data.sample_weight, bias).solve(ids, tol=1e-9)
    return linear(data, ids, svm.w, svm.b, C)
