"""ONSVM, the one-norm SVM (Bradley and Mangasarian 1998; Zhu et al. 2003; Aytug 2015, section 2), by HiGHS.

    min over w, b, ξ   ‖w‖₁ + Σ_i C_i ξ_i      s.t.  y_i (w'x_i + b) + ξ_i ≥ 1,  ξ ≥ 0

It is the program of `mipfs.models.onsvm`, which is declared in CVXPY as it stands; here features enter as they are
needed, so there may be any number of them. A vertex has zeros of its own accord; how many depends on C. Signs that the
data asks for are kept.
"""

from __future__ import annotations

import numpy as np

from mipfs.data.instance import Instance
from mipfs.lab.baselines.linear import BaselineDescription, Linear, check_size, check_weight, linear, plain_svm
from mipfs.lab.baselines.one_norm import OneNorm, first_weight, hinge_value, of_size

ABOUT = BaselineDescription(
    what="the ℓ1-norm SVM, a linear program, its weight searched for M, and the SVM on its features",
    source="Bradley and Mangasarian 1998; Aytug 2015",
    sparse="yes",
    limits="linear programs of all samples",
    library="HiGHS",
    uses_c=False,
    signed=True,
)


def onsvm(data: Instance, C: float, *, bias: bool = True, program: OneNorm | None = None) -> Linear:
    """Solve at one C.

    Parameters
    ----------
    data : Instance
    C : float > 0
        Sample i has C_i = C * sample_weight_i.
    bias : bool, default True
        Whether b is free; without it f(x) = w'x.
    program : OneNorm, optional
        That of the same data and bias, for a warm start.

    Returns
    -------
    Linear
        The vertex's own classifier, which is what Aytug 2015 compares with; with its objective, and no bound.

    Raises
    ------
    UsageError
        C out of its range, or more samples than a linear program takes.
    NumericalError
        HiGHS finds no optimum.

    Source: Aytug 2015, section 2, (ONSVM).
    """
    check_weight(C)
    program = OneNorm(data, bias, "ONSVM") if program is None else program
    c = float(C) * data.sample_weight
    vertex = program.solve(c, np.ones(data.n_features))
    value = float(np.abs(vertex.w).sum()) + hinge_value(data, c, vertex.ids, vertex.w, vertex.b)
    return linear(data, vertex.ids, vertex.w, vertex.b, float(C), objective=value)


def onsvm_of_size(data: Instance, M: int, *, bias: bool = True) -> Linear:
    """The ONSVM with the most features up to M, by bisection of C.

    Aytug 2015 goes the other way, and gives the exact method as many features as ONSVM has at its best C.

    Parameters
    ----------
    data, bias : as in `onsvm`
    M : int in 1 … p

    Returns
    -------
    Linear
        Where no C that was tried has M features (their number may jump), the smallest solution beyond without all but
        its M largest weights, and then no objective. Fewer than M features where every solution has fewer.

    Raises
    ------
    UsageError, NumericalError
        As `onsvm`; M out of its range.
    """
    check_size(M, data.n_features)
    program = OneNorm(data, bias, "ONSVM")
    return of_size(lambda C: onsvm(data, C, bias=bias, program=program), int(M), 2.0 * first_weight(data), data.scale)


def fit(data: Instance, M: int, C: float = 1.0, *, bias: bool = True, seed: int = 0) -> Linear:
    """The features of `onsvm_of_size`, whose own weight decides their number, and the hinge SVM of weight C on them."""
    check_weight(C)
    return plain_svm(data, onsvm_of_size(data, M, bias=bias).ids, C, bias, "hinge")
