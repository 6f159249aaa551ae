"""The value of the hinge SVM, between two earned bounds, and its support vectors.

Z(X) = max over 0 ≤ α ≤ C, (y'α = 0) of 1'α − ½ ‖X'(α∘y)‖² (Paul 2016, (2)). With eigenvalues of V'DD'V in [a, b], a > 0,

    Z(X) / b ≤ Z(XD) ≤ Z(X) / a

for every C: α ← aα is feasible again. So γ² := 1/(2Z) obeys a γ² ≤ γ̃² ≤ b γ²; for separable rows and large C it is the
squared geometric margin of the theorems, as then Z = ½ ‖w‖².
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from mipfs.data.instance import Instance
from mipfs.losses import get_loss
from mipfs.sketch.ratio import Interval

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

TOL = 1e-7
"""Relative gap that is asked of the SVM; the interval says what was reached."""
HELD = 1e-9
"""Share of its C_i from which on α_i makes a sample a support vector."""


@dataclass(frozen=True, eq=False)
class Solved:
    """The hinge SVM on some rows.

    Attributes
    ----------
    value : Interval, of Z
    support : (s,) positions of the support vectors
    """

    value: Interval
    support: Integers


def solve_svm(data: Instance, C: float, bias: bool) -> Solved:
    """Z and the support vectors of all features; see `mipfs.losses.hinge`."""
    c = C * data.sample_weight
    svm = get_loss("hinge").Solver(data, c, bias).solve(np.arange(data.n_features), tol=TOL)
    support = np.flatnonzero(svm.alpha > HELD * c)
    return Solved(Interval(max(0.0, svm.dual), max(svm.primal, svm.dual, 0.0)), support)


def columns(data: Instance, ids: Integers, factors: Array) -> Instance:
    """The columns `ids` of the scaled data, each multiplied by its factor (k,), with the same labels and weights."""
    return _instance(taken(data, ids) * factors[None, :], data.y, data.sample_weight)


def taken(data: Instance, ids: Integers) -> Any:
    """The columns `ids` of the scaled data, (n, k): dense where they are centred."""
    X = data.X[:, ids]
    if data.is_sparse and not np.any(data.center[ids]):
        return X
    return X.toarray(order="F") - data.center[ids] if data.is_sparse else X


def rows_of(data: Instance, rows: Integers) -> Instance:
    """Some rows of an instance whose columns are not centred."""
    X = sparse.csc_array(sparse.csr_array(data.X)[rows]) if data.is_sparse else data.X[rows]
    return _instance(X, data.y[rows], data.sample_weight[rows])


def _instance(X: Any, y: Array, weights: Array) -> Instance:
    return Instance.from_arrays(X, y, sample_weight=weights, training=False)
