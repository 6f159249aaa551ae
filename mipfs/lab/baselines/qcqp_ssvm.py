"""QCQP-SSVM as a selector (Chan, Vasconcelos and Lanckriet 2007).

    min over w, b, t   ½ t + L(y∘(Xw + b))      s.t.  ‖w‖² ≤ t,  ‖w‖₁² ≤ M t

The program is `mipfs.models.qcqp_ssvm`, solved by Clarabel. A feature has a weight only where |ω_j| > 2 μ ‖w‖₁ with μ
the multiplier of the second constraint, so features enter as they violate that, and there may be any number of them;
with μ = 0 the plain SVM is the solution. Its weights are seldom as few as M: the M largest are kept.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mipfs import formulation
from mipfs.data.instance import Instance
from mipfs.lab.baselines.linear import (
    BaselineDescription,
    Linear,
    check_order,
    check_size,
    check_weight,
    linear,
    plain_svm,
)
from mipfs.lab.baselines.nmmkl import Loss, solve_conic
from mipfs.losses import get_loss
from mipfs.plumbing.arrays import Array, scatter
from mipfs.problem import Problem

ABOUT = BaselineDescription(
    what="an SVM with ‖w‖₁² ≤ M ‖w‖², of which the M largest weights are kept",
    source="Chan et al. 2007; Tan 2010",
    sparse="yes",
    limits="a conic program a round",
    library="Clarabel",
)
FIRST_FEATURES, MOST_ENTERING = 200, 200
"""Features in the first program, and new ones that a round adds at most, or as many as there are."""
VIOLATION_SHARE = 1e-4
"""|ω_j| may exceed its limit by this share: what an interior-point method leaves."""
COUNTED_SHARE = 1e-4
"""Tan 2010 and Chan 2007 count the weights of at least this share of the largest one."""


def qcqp_weights(data: Instance, M: int, C: float = 1.0, *, bias: bool = True, loss: Loss = "hinge") -> Linear:
    """The solution of the program itself, on the features that Chan 2007 counts.

    Parameters
    ----------
    data, C, bias, loss : as in `qcqp_ssvm`
    M : int in 1 … p

    Returns
    -------
    Linear
        With its objective; no bound is earned here.
    """
    check_size(M, data.n_features)
    check_weight(C)
    check_order(data, "QCQP-SSVM")
    svm = get_loss(loss).Solver(data, C * data.sample_weight, bias).solve(np.arange(data.n_features), tol=1e-9)
    w = svm.w
    b = svm.b
    value = svm.primal
    if float(np.abs(w).sum()) ** 2 > M * float(w @ w):
        order = np.argsort(-np.abs(w), kind="stable")
        w, b, value = _solve_by_pricing(data, int(M), C, bias, loss, order)
    ids = np.flatnonzero(np.abs(w) > COUNTED_SHARE * np.abs(w).max(initial=0.0))
    return linear(data, ids, w[ids], b, float(C), objective=value)


def _solve_by_pricing(
    data: Instance, M: int, C: float, bias: bool, loss: Loss, order: npt.NDArray[np.int64]
) -> tuple[Array, float, float]:
    """w (p,), b and the objective, by programs over the features that are needed, the first ones in order."""
    p = data.n_features
    declare = formulation.load("qcqp-ssvm").declare
    assert declare is not None
    working = np.sort(order[: max(FIRST_FEATURES, 4 * M)])
    while True:
        problem = Problem(data.only(working), loss=loss, bias=bias, M=min(M, working.size), C=float(C))
        declared = declare(problem)
        solve_conic(declared.cvxpy, "QCQP-SSVM")
        w = scatter(p, working, np.asarray(declared.variables["w"].value))
        b = float(declared.variables["b"].value) if bias else 0.0
        omega = np.abs(data.block().pull(np.asarray(declared.variables["alpha"].value) * data.y))
        omega[working] = 0.0
        # the multiplier of ‖w‖₁² ≤ M t, which is the last constraint
        limit = 2.0 * float(declared.cvxpy.constraints[-1].dual_value) * float(np.abs(w).sum())
        new = np.argsort(-omega, kind="stable")[: max(MOST_ENTERING, working.size)]
        new = new[omega[new] > limit * (1.0 + VIOLATION_SHARE)]
        if not new.size:
            return w, b, float(declared.cvxpy.value)
        working = np.sort(np.concatenate([working, new]))


def qcqp_ssvm(data: Instance, M: int, C: float = 1.0, *, bias: bool = True, loss: Loss = "hinge") -> Linear:
    """The M largest weights of the program, and the SVM of the same loss and C on their features.

    Parameters
    ----------
    data : Instance
        Its penalties, rows and forced features are not part of the method.
    M : int in 1 … p
        M of the program, and the most features that are kept, by |w_j| on the scaled data. Tan 2010 keeps the
        program's own classifier, whose number of features M does not control.
    C : float > 0
        Sample i has C_i = C * sample_weight_i.
    bias : bool, default True
    loss : {"hinge", "squared-hinge", "logistic"}

    Returns
    -------
    Linear

    Raises
    ------
    UsageError
        A parameter out of its range, or more than 3,000 features or 2,000,000 values in play at once.
    NumericalError
        Clarabel finds no optimum.

    Source: Chan, Vasconcelos and Lanckriet 2007 (QCQP-SSVM); Tan 2010, section 3.
    """
    found = qcqp_weights(data, M, C, bias=bias, loss=loss)
    order = np.argsort(-np.abs(found.w * data.scale[found.ids]), kind="stable")
    return plain_svm(data, np.sort(found.ids[order[: int(M)]]), C, bias, loss)


def fit(data: Instance, M: int, C: float = 1.0, *, bias: bool = True, seed: int = 0) -> Linear:
    """`qcqp_ssvm` as a `mipfs.lab.baselines.Baseline`."""
    return qcqp_ssvm(data, M, C, bias=bias)
