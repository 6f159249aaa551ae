"""The structural SVM of a measure on given columns, all of them by default: SVM^perf (Joachims 2005), as a peer.

    min over w   ½ ‖w‖² + C max over ȳ of [Δ(ȳ) − w'a(ȳ)]₊

It is the inner problem of this package with every σ_j = 1 (M = p), solved by its own bundle; what Mao 2013 compares
with in Table 2, and how the columns that another method has chosen are fitted for a measure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.data.constant import with_constant
from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.lab.baselines.dual_descent import check_all
from mipfs.lab.baselines.linear import BaselineDescription, Linear, check_weight, linear
from mipfs.losses.structural import Structural
from mipfs.measures import get_measure
from mipfs.plumbing.clock import cpu_clock

ABOUT = BaselineDescription(
    what="the structural SVM of F1 on all features (SVM^perf): a reference, it selects nothing",
    source="Joachims 2005; Mao 2013, Table 2",
    sparse="yes",
    limits="M is p; no sample weights; penalises the intercept; bench takes its own measure for F1",
    library="own kernels",
    weighted=False,
)
MEASURE = "f1"
"""The measure where none is asked for, as that of Mao 2013, section 8.4."""
FIT_GAP = 1e-6
"""Relative gap of `fit` and `of_columns`."""


def structural_svm(
    data: Instance,
    measure: str,
    C: float,
    columns: npt.ArrayLike | None = None,
    *,
    beta: float | None = None,
    k: int | None = None,
    sigma: npt.NDArray[np.float64] | None = None,
    tol: float = 1e-4,
    cpu_limit: float = math.inf,
) -> Linear:
    """Solve on the given columns.

    Parameters
    ----------
    data : Instance without sample weights
    measure : one of `mipfs.measures.MEASURES`
    C : float > 0
    columns : (m,) different positions of columns, optional
        By default all of them.
    beta, k : of the measure, see `mipfs.measures.get_measure`
    sigma : (m,) numbers in (0, 1], optional
        Of a relaxation: ½ Σ w_j²/σ_j stands for ½ ‖w‖². Ones by default.
    tol : float > 0
        Relative gap between objective and bound to reach.
    cpu_limit : float, optional
        CPU seconds after which it ends with the gap that it has.

    Returns
    -------
    Linear
        Without an intercept on the scaled data; with objective and bound of this problem.

    Raises
    ------
    UsageError
        A parameter out of its range, or sample weights.

    Source: Joachims 2005, Optimization Problem 4; Mao 2013, (5) with all features.
    """
    check_weight(C)
    if np.any(data.sample_weight != 1.0):
        raise UsageError("a measure is joint over the samples and has no sample weights; leave them out")
    ids = np.arange(data.n_features) if columns is None else np.asarray(columns, dtype=np.int64)
    if ids.ndim != 1 or np.unique(ids).size < ids.size or np.any((ids < 0) | (ids >= data.n_features)):
        raise UsageError(f"columns must be different integers from 0 to {data.n_features - 1}")
    loss = Structural(get_measure(measure, data.y, beta=beta, k=k))
    solver, end = loss.Solver(data, np.full(data.n_samples, float(C)), False), cpu_clock() + cpu_limit
    solver.must_stop = lambda: cpu_clock() >= end
    svm = solver.solve(ids, sigma, tol=tol)
    return linear(data, ids, svm.w, 0.0, float(C), objective=svm.primal, bound=svm.dual)


def of_columns(
    data: Instance,
    ids: npt.NDArray[np.int64],
    C: float,
    measure: str = MEASURE,
    *,
    bias: bool = True,
    beta: float | None = None,
    k: int | None = None,
) -> Linear:
    """The structural SVM on some columns, with C n/4 for C: for the error, that is C for every sample.

    Parameters
    ----------
    data : Instance without sample weights
    ids : (m,) different positions of columns
    C : float > 0
    measure, beta, k : see `mipfs.measures.get_measure`
    bias : bool
        Whether there is an intercept, as the penalised weight of a constant column.
    """
    joint_c = 0.25 * C * data.n_samples
    return with_intercept(data, measure, joint_c, ids, float(bias), beta=beta, k=k, tol=FIT_GAP)


def with_intercept(
    data: Instance,
    measure: str,
    C: float,
    columns: npt.NDArray[np.int64],
    constant: float,
    *,
    sigma: npt.NDArray[np.float64] | None = None,
    **options: Any,
) -> Linear:
    """The structural SVM on some columns, its intercept the penalised weight of a column of `constant`; 0 is for none.

    Parameters
    ----------
    data, measure, C, columns, sigma, and options : as in `structural_svm`
    """
    if constant == 0.0:
        return structural_svm(data, measure, C, columns, sigma=sigma, **options)
    wide = with_constant(data, constant)
    every = np.append(columns, data.n_features)
    parts = None if sigma is None else np.append(sigma, 1.0)
    fitted = structural_svm(wide, measure, C, every, sigma=parts, **options)
    kept = fitted.ids < data.n_features
    return Linear(fitted.ids[kept], fitted.w[kept], fitted.b + constant * float(fitted.w[~kept].sum()), C)


def fit(data: Instance, M: int, C: float = 1.0, *, bias: bool = True, seed: int = 0) -> Linear:
    """The structural SVM of F1 on all features, as a reference: M must be p."""
    check_all(data, M, "svm-perf")
    return of_columns(data, np.arange(data.n_features), C, bias=bias)


def at_relaxation(
    data: Instance, sigma: Mapping[str, float], C: float, measure: str, constant: float = 0.0, **options: Any
) -> Linear:
    """The predictor of a relaxation: the structural SVM at its σ, every feature with σ > 0 kept (Mao 2013, (5)).

    Parameters
    ----------
    data, C, measure, and options : as in `structural_svm`
    sigma : mapping of name to σ in (0, 1]
    constant : float
        Of an intercept, see `with_intercept`.
    """
    parts = np.array([*sigma.values()], dtype=float)
    return with_intercept(data, measure, C, data.columns_of(list(sigma)), constant, sigma=parts, **options)
