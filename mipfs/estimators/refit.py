"""The SVM that an estimator keeps: refitted on the selected features, to full precision and without ambiguity.

A driver solves its SVMs as well as the asked gap needs, so that the last digits of their weights depend on its path.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mipfs.data.instance import Instance
from mipfs.losses import get_loss

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

GAP = 1e-12
"""Relative gap of the refitted SVM."""


def refit(
    data: Instance, ids: Integers, loss: str, C: float, bias: bool, sigma: Array | None = None
) -> tuple[Array, float]:
    """The SVM on the columns `ids`: ½ Σ w_k²/σ_k + L(y∘(Xw + b)).

    Parameters
    ----------
    data : Instance
    ids : (k,) positions of the columns; one that stands there twice has the sum of both weights
    loss : str
    C : float > 0
    bias : bool
    sigma : (k,) numbers > 0, optional
        Ones by default: the plain SVM.

    Returns
    -------
    coef : (p,) weights on the user's scale
    intercept : float, on the user's scale
    """
    c = C * data.sample_weight
    svm = get_loss(loss).Solver(data, c, bias).solve(ids, sigma, tol=GAP)
    b = svm.b
    if loss == "hinge" and bias:
        values = np.asarray(data.X[:, ids] @ svm.w) - float(data.center[ids] @ svm.w)
        b = central_intercept(values, data.y, c)
    coef = np.bincount(ids, svm.w, data.n_features) / data.scale
    return coef, b - float(coef @ data.shift)


def central_intercept(values: Array, y: Array, c: Array) -> float:
    """The middle of all b that minimise Σ c_i max(0, 1 − y_i(f_i + b)): the hinge loss leaves an interval at times.

    Sample i bends the sum at b = y_i − f_i, where its slope grows by c_i, from −Σ of c over the positives: a weighted
    median.

    Parameters
    ----------
    values : (n,) f_i = w'x_i
    y : (n,) of ±1, both of them
    c : (n,) loss weights > 0
    """
    bends = y - values
    order = np.argsort(bends, kind="stable")
    bends, reached = bends[order], np.cumsum(c[order])
    level, slack = float(c[y > 0].sum()), 1e-12 * float(reached[-1])
    low, high = np.minimum(np.searchsorted(reached, [level - slack, level + slack]), bends.size - 1)
    return 0.5 * float(bends[low] + bends[high])
