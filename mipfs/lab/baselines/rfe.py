"""SVM-RFE: recursive feature elimination by the weights of a linear SVM (Guyon, Weston, Barnhill, Vapnik 2002).

    repeat  train the SVM on the features that are left; drop those of least w_j²  until M are left

The supports are nested: a feature that was dropped never comes back, which is what Mao 2013 and Tan 2010 improve on.
The SVM of a round, ½ ‖w‖² + Σ C_i max(0, 1 − m_i) by the hinge or ½ ‖w‖² + Σ (C_i/2) max(0, 1 − m_i)² by the squared
hinge, is the one that is refitted at the end. LIBLINEAR solves the rounds with the squared hinge, and penalises the
intercept as well; with the hinge the rounds are solved here, and the intercept is free, as in Aytug 2015.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.lab.baselines.linear import (
    BaselineDescription,
    Linear,
    check_size,
    check_weight,
    liblinear_matrix,
    plain_svm,
)
from mipfs.losses import get_loss
from mipfs.plumbing.arrays import Array, Integers

ABOUT = BaselineDescription(
    what="recursive feature elimination: the SVM, without the features of least weight, again and again",
    source="Guyon et al. 2002; Tan 2010, section 3",
    sparse="yes, not centred",
    limits="some 5 log(p/M) fits, a fifth of the features dropped after each",
    library="LIBLINEAR (scikit-learn)",
)
DROP_SHARE = 0.2
"""Share of the features that a round drops; Guyon drops half, which is coarser."""
COARSE_DROP, COARSE_ABOVE = 10, 200
"""Tan 2010's schedule, ``drop="tan"``: COARSE_DROP features a round while more than COARSE_ABOVE are left, then one."""
LARGE_DROP, LARGE_ABOVE, LARGE_REST = 10_000, 20_000, 100
"""``drop="tan-large"``, for millions: LARGE_DROP a round while more than LARGE_ABOVE are left, then LARGE_REST."""
SCHEDULES = {"tan": ((COARSE_DROP, COARSE_ABOVE), 1), "tan-large": ((LARGE_DROP, LARGE_ABOVE), LARGE_REST)}
"""Name to (drop, while more than that are left), and the drop from there on."""
TOL, MAX_STEPS = 1e-4, 10_000
"""LIBLINEAR's tolerance, and its steps at most."""
HINGE_TOL = 1e-6
"""Relative gap of a round's SVM with the hinge."""
Loss = Literal["squared-hinge", "hinge"]
Drop = float | Literal["tan", "tan-large"]
"""A share, a number of features (an integer from 1 on), or one of Tan's schedules."""


def eliminate(
    data: Instance,
    sizes: Sequence[int],
    C: float = 1.0,
    *,
    bias: bool = True,
    drop: Drop = DROP_SHARE,
    loss: Loss = "squared-hinge",
    seed: int | None = None,
) -> dict[int, Integers]:
    """Eliminate features down to the smallest of the wanted sizes.

    Parameters
    ----------
    data : Instance
    sizes : sequence of int in 1 … p
        How many features are wanted; one elimination serves all.
    C : float > 0
        Sample i has C_i = C * sample_weight_i, of the loss as `mipfs.Problem` has it.
    bias : bool, default True
        Whether the SVMs have an intercept; LIBLINEAR penalises it lightly in the rounds with the squared hinge.
    drop : float in [0, 1), int >= 1, "tan" or "tan-large"
        Share of the features that a round drops, one at least; 0: one at a time. An integer from 1 on: features
        a round. "tan": ten at a time while more than 200 are left, then one (Tan 2010, section 3.3). "tan-large":
        10,000 at a time while more than 20,000 are left, then 100 (section 3.5).
    loss : {"squared-hinge", "hinge"}
        Guyon's is the hinge.
    seed : deprecated, nothing is drawn any more; it goes in 0.5

    Returns
    -------
    dict of size to the (size,) ascending positions that were left; ties drop the later feature

    Raises
    ------
    UsageError
        A parameter out of its range, or sparse data that are to be centred.

    Source: Guyon et al. 2002, section 4; Mao 2013, section 8.
    """
    p = data.n_features
    for size in sizes:
        check_size(size, p)
    check_weight(C)
    if not sizes:
        raise UsageError("sizes is empty; give at least one number of features")
    check_drop(drop)
    if seed is not None:
        warnings.warn("seed: nothing is drawn any more; leave it out, 0.5 has none", DeprecationWarning, stacklevel=2)
    left, found = np.arange(p), {}
    wanted = sorted({int(size) for size in sizes}, reverse=True)
    weights_of = _make_ranking(data, C, bias, loss)
    while True:
        if left.size == wanted[0]:
            found[wanted.pop(0)] = left
            if not wanted:
                return found
        keep = max(wanted[0], _left_after(left.size, drop))
        order = np.argsort(-np.abs(weights_of(left)), kind="stable")
        left = np.sort(left[order[:keep]])


def _make_ranking(data: Instance, C: float, bias: bool, loss: str) -> Callable[[Integers], Array]:
    """The weights of the SVM on some columns: the squared hinge by LIBLINEAR, the hinge as `plain_svm` does."""
    if loss == "hinge":
        solver = get_loss(loss).Solver(data, C * data.sample_weight, bias)
        return lambda left: np.asarray(solver.solve(left, tol=HINGE_TOL).w)
    if loss != "squared-hinge":
        raise UsageError(f"loss = {loss!r}: SVM-RFE eliminates by 'squared-hinge' or 'hinge'")
    from sklearn.svm import LinearSVC

    X = liblinear_matrix(data, "SVM-RFE")
    if data.is_sparse:
        X = X.tocsc()  # rounds choose columns
    svm: Any = LinearSVC(C=0.5 * float(C), dual=False, fit_intercept=bias, tol=TOL, max_iter=MAX_STEPS)

    def fitted(left: Integers) -> Array:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Liblinear failed to converge")  # a ranking needs no more
            svm.fit(X[:, left], data.y, sample_weight=data.sample_weight)
        return np.asarray(svm.coef_[0])

    return fitted


def check_drop(drop: Any) -> None:
    """Refuse a schedule that is none.

    Raises
    ------
    UsageError
    """
    if isinstance(drop, str) and drop in SCHEDULES:
        return
    number = isinstance(drop, (int, float, np.number)) and not isinstance(drop, (bool, np.bool_))
    if not (number and (0.0 <= drop < 1.0 or (isinstance(drop, (int, np.integer)) and drop >= 1))):
        raise UsageError(
            f"drop = {drop!r} must lie in [0, 1), the share of the features that a round drops, or be their number, "
            "an integer, or 'tan' or 'tan-large'"
        )


def _left_after(size: int, drop: Drop) -> int:
    """How many of `size` features a round leaves."""
    if isinstance(drop, str):
        (coarse, above), fine = SCHEDULES[drop]
        return size - (min(coarse, size - above) if size > above else fine)
    if drop >= 1:
        return size - int(drop)
    return min(size - 1, math.floor((1.0 - drop) * size))


def rfe(
    data: Instance,
    M: int,
    C: float = 1.0,
    *,
    bias: bool = True,
    drop: Drop = DROP_SHARE,
    loss: Loss = "squared-hinge",
    seed: int | None = None,
) -> Linear:
    """SVM-RFE down to M features, and the SVM of the same loss and C on them.

    Parameters
    ----------
    data, C, bias, drop, loss, seed : as in `eliminate`
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
    left = eliminate(data, [M], C, bias=bias, drop=drop, loss=loss, seed=seed)[int(M)]
    return plain_svm(data, left, C, bias, loss)


def fit(data: Instance, M: int, C: float = 1.0, *, bias: bool = True, seed: int = 0) -> Linear:
    """`rfe` as a `mipfs.lab.baselines.Baseline`."""
    return rfe(data, M, C, bias=bias)
