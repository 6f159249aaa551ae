"""NMMKL as a selector: non-monotonic feature selection by multiple kernel learning (Xu et al. 2009).

    max over α ∈ A of  g(α) − ½ (largest Σ_j σ_j ω_j(α)² with Σσ ≤ M, 0 ≤ σ ≤ 1)

One kernel per feature, whose weights σ_j rank the features; the M largest are kept and the SVM is trained on them. The
program, a QCQP with p quadratic constraints, is `mipfs.models.nmmkl`, of which Tan 2010 and 2014 say that it is
infeasible for many features. It is the Boolean relaxation of (P), so the interior point of `branch`'s root, which takes
features in as they are needed, finds the same σ for any number of them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from mipfs import formulation
from mipfs.data.instance import Instance, SelectDefaults
from mipfs.errors import NumericalError, UsageError
from mipfs.inner.boolean import Boolean
from mipfs.lab.baselines.linear import BaselineDescription, Linear, check_order, check_size, check_weight, plain_svm
from mipfs.plumbing.arrays import Array
from mipfs.problem import Problem
from mipfs.solvers.cones import Canonical

Loss = Literal["hinge", "squared-hinge", "logistic"]
Solver = Literal["interior", "qcqp"]

ABOUT = BaselineDescription(
    what="a kernel a feature: the M largest weights of the Boolean relaxation",
    source="Xu et al. 2009; Tan 2010",
    sparse="yes",
    limits="dense systems of the smaller of samples and features",
    library="own kernels; Clarabel on request",
)
INTERIOR_GAP = 1e-6
"""Relative gap of the interior point."""
MAX_ORDER = 10_000
"""Samples and features at most, the fewer of them: the interior point's systems are of the features in play."""
MAX_WORK, WORK_PER_SECOND = 3e10, 1e9
"""Multiplications per factorisation of a conic program at most, and a second's worth of them."""


def kernel_weights(
    data: Instance,
    M: int,
    C: float = 1.0,
    *,
    bias: bool = True,
    loss: Loss = "hinge",
    solver: Solver = "interior",
) -> tuple[Array, Array]:
    """σ of NMMKL.

    Parameters
    ----------
    data, C, bias, loss, solver : as in `nmmkl`
    M : int in 1 … p

    Returns
    -------
    sigma : (p,) in [0, 1], at most M in all
    scores : (p,) ω_j², which order equal σ
    """
    check_size(M, data.n_features)
    check_weight(C)
    problem = Problem(bare(data), loss=loss, bias=bias, M=int(M), C=float(C))
    if solver == "interior":
        check_order(data, "NMMKL", MAX_ORDER)
        found = Boolean(problem, bool).solve(np.zeros(data.n_features), np.ones(data.n_features), INTERIOR_GAP)
        return found.sigma, found.cut.slopes
    if solver != "qcqp":
        raise UsageError(f"solver = {solver!r} is unknown; it is 'interior' or 'qcqp'")
    declare = formulation.load("nmmkl").declare
    assert declare is not None
    declared = declare(problem)
    solve_conic(declared.cvxpy, "NMMKL as a QCQP")
    alpha = np.maximum(np.asarray(declared.variables["alpha"].value), 0.0)
    omega = data.block().pull(alpha * data.y)
    return np.clip(np.asarray(declared.sigma.value), 0.0, 1.0), np.square(omega)


def bare(data: Instance) -> Instance:
    """The data without penalties, rows and forced features: these methods know none."""
    return replace(data, penalty={}, rows=(), select=SelectDefaults())


def solve_conic(program: object, name: str) -> None:
    """Solve a CVXPY program by Clarabel.

    Raises
    ------
    UsageError
        Too large a program.
    NumericalError
        Clarabel finds no optimum.
    """
    made = Canonical(program)
    if made.work > MAX_WORK:
        raise UsageError(
            f"{name} has {made.size.nonzeros} nonzeros, about {made.work / WORK_PER_SECOND:.0f} s a step of "
            "Clarabel's; give fewer samples or features"
        )
    if made.solve(stop=bool) != "solved":
        raise NumericalError(f"{name}: Clarabel finds no optimum; scale the data")


def nmmkl(
    data: Instance,
    M: int,
    C: float = 1.0,
    *,
    bias: bool = True,
    loss: Loss = "hinge",
    solver: Solver = "interior",
) -> Linear:
    """The M features of the largest kernel weights, and the SVM of the same loss and C on them.

    Parameters
    ----------
    data : Instance
        Its penalties, rows and forced features are not part of the method.
    M : int in 1 … p
        Σσ ≤ M in the program, and M features are kept, ranked by σ_j and then by ω_j² (Tan 2010, section 3.2).
    C : float > 0
        Sample i has C_i = C * sample_weight_i.
    bias : bool, default True
    loss : {"hinge", "squared-hinge", "logistic"}
    solver : {"interior", "qcqp"}
        The interior point on the features that are needed, or the QCQP as it was published, by Clarabel.

    Returns
    -------
    Linear

    Raises
    ------
    UsageError
        A parameter out of its range, or data too large for the solver.
    NumericalError
        Clarabel finds no optimum.

    Source: Xu et al. 2009; Tan 2010, section 3.
    """
    sigma, scores = kernel_weights(data, M, C, bias=bias, loss=loss, solver=solver)
    ids = np.sort(np.lexsort((np.arange(sigma.size), -scores, -np.round(sigma, 6)))[: int(M)])
    return plain_svm(data, ids, C, bias, loss)


def fit(data: Instance, M: int, C: float = 1.0, *, bias: bool = True, seed: int = 0) -> Linear:
    """`nmmkl` as a `mipfs.lab.baselines.Baseline`."""
    return nmmkl(data, M, C, bias=bias)
