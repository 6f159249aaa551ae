"""R²W²: feature scales by gradient descent on the radius/margin bound (Weston, Mukherjee, Chapelle et al. 2000).

    min over s ≥ 0, Σ s_j² = p   R²(s) W²(s)      of the kernel  K_s(x, z) = Σ_j s_j² x_j z_j + (x is z) / C_x

    W²(s) = max over α ≥ 0, y'α = 0 of  2 Σα − α'(K_s∘yy')α          (‖w‖² of the maximal margin)
    R²(s) = max over β ≥ 0, Σβ = 1 of   β'diag K_s − β'K_s β         (the smallest ball around the samples)

The ridge is the quadratic slack of samples that cannot be separated (Chapelle et al. 2002): W² is twice the value of
the SVM of (P) with the squared hinge at σ = s². Both are maxima, so by the envelope theorem

    ∂W²/∂s_j = −2 s_j ω_j(α)²,      ∂R²/∂s_j = 2 s_j (Σ_i β_i x_ij² − (Σ_i β_i x_ij)²)

The features of the smallest s_j are dropped and what is left is scaled anew, until M are left: the variant of Weston
2000 that eliminates. The other one, as Aytug 2015 states it in (2), adds λ Σ_j s_j^p under Σ s_j = M, so that one
descent drives scales to 0; that term is not here, for M alone says how many features are kept.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from mipfs.data.instance import Instance
from mipfs.errors import NumericalError, UsageError
from mipfs.lab.baselines.linear import BaselineDescription, Linear, check_order, check_size, check_weight, plain_svm
from mipfs.losses import get_loss
from mipfs.plumbing.arrays import Array, Integers
from mipfs.report.progress import progress
from mipfs.solvers.cones import conic_solution
from mipfs.solvers.vectors import in_simplex

ABOUT = BaselineDescription(
    what="feature scales by gradient descent on the radius/margin bound, half of them dropped a round",
    source="Weston et al. 2000; Chapelle et al. 2002",
    sparse="yes",
    limits="two quadratic programs a step; what would take an hour is refused",
    library="Clarabel, own kernels",
)
DROP_SHARE, MOST_STEPS = 0.5, 10
"""Share of the features that a round drops, and the steps of the descent in a round at most."""
FACTORS_PER_EVALUATION = 30.0
"""Factorisations per evaluation, for the estimate of the time."""
MOST_SECONDS, WORK_PER_SECOND = 3600.0, 2e9
"""Seconds that are refused, and multiplications a second."""


@dataclass(frozen=True, eq=False)
class Bound:
    """R²W² at some scales.

    Attributes
    ----------
    value, radius, margin : float, R²W², R² and W²
    gradient : (k,) of R²W² by the scales
    """

    value: float
    radius: float
    margin: float
    gradient: Array


class RadiusMargin:
    """The bound on some columns of one data set.

    Parameters
    ----------
    data : Instance
    ids : (k,) positions of the columns
    C : float > 0
        Sample i has C_i = C * sample_weight_i.
    bias : bool
        Whether the SVM has an intercept; the ball has a free centre either way.
    """

    def __init__(self, data: Instance, ids: Integers, C: float, bias: bool) -> None:
        self.data = data
        self.ids = ids
        self.c = float(C) * data.sample_weight
        self.block = data.block(ids)
        self.Z = self.block.values
        self._solver = get_loss("squared-hinge").Solver(data, self.c, bias)

    def at(self, scales: Array) -> Bound:
        """The bound and its gradient at scales (k,) >= 0; a feature of scale 0 has no part in it."""
        on = np.flatnonzero(scales > 0.0)
        svm = self._solver.solve(self.ids[on], np.square(scales[on]), tol=1e-11)
        margin = 2.0 * svm.primal
        beta, radius = self.ball(scales)
        omega = self.block.pull(svm.alpha * self.data.y)
        first = np.asarray(self.Z.T @ beta)  # centres cancel in the variance
        if sparse.issparse(self.Z):
            second = np.asarray(self.Z.power(2).T @ beta)
        else:
            second = np.einsum("i,ij,ij->j", beta, self.Z, self.Z)
        spread = np.maximum(second - np.square(first), 0.0)
        gradient = 2.0 * scales * (margin * spread - radius * np.square(omega))
        return Bound(radius * margin, radius, margin, gradient)

    def ball(self, scales: Array) -> tuple[Array, float]:
        """β and R² of the smallest ball around the samples, by Clarabel.

        Raises
        ------
        NumericalError
            Clarabel finds no optimum.
        """
        n = self.data.n_samples
        Z = self.Z * scales[None, :] if sparse.issparse(self.Z) else self.Z * scales
        if not sparse.issparse(Z):
            Z = Z - Z.mean(axis=0)  # moves all samples alike
        k = int(Z.shape[1])
        squares = np.asarray((Z.power(2) if sparse.issparse(Z) else np.square(Z)).sum(axis=1)).ravel()
        ridge = 1.0 / self.c
        diagonal = squares + ridge
        size = float(diagonal.max())
        simplex = sparse.vstack([np.ones((1, n)), -sparse.eye_array(n)])
        if k < n:  # β'ZZ'β = ‖u‖² with u = Z'β
            P = sparse.block_diag([sparse.diags_array(2.0 * ridge / size), 2.0 * sparse.eye_array(k)])
            Zs = sparse.csr_array(Z / math.sqrt(size))
            A = sparse.vstack(
                [sparse.hstack([Zs.T, -sparse.eye_array(k)]), sparse.hstack([simplex, sparse.csr_array((n + 1, k))])]
            )
            b = np.append(np.zeros(k), np.append(1.0, np.zeros(n)))
            zero = k + 1
            q = np.append(-diagonal, np.zeros(k))
        else:
            G = (Z @ Z.T).toarray() if sparse.issparse(Z) else Z @ Z.T
            P = sparse.csc_array(2.0 * (G + np.diag(ridge)) / size)
            A = simplex
            b = np.append(1.0, np.zeros(n))
            zero = 1
            q = -diagonal
        P = sparse.csc_matrix(sparse.triu(P))
        cones = {"zero": zero, "nonneg": n, "soc": [], "psd": [], "exp": 0}
        found = conic_solution(P, q / size, sparse.csc_matrix(A), b, cones)
        beta = None if found is None else in_simplex(found[0][:n])
        if beta is None:
            raise NumericalError("R²W²: Clarabel does not find the smallest ball; scale the data")
        u = np.asarray(Z.T @ beta)
        return beta, float(beta @ diagonal) - float(u @ u) - float(ridge @ np.square(beta))


def descend_scales(
    data: Instance, ids: Integers, C: float, *, bias: bool = True, steps: int = MOST_STEPS
) -> tuple[Array, Bound]:
    """Descend on R²W² from scales of 1, by L-BFGS-B of SciPy over s = √k u/‖u‖, u ≥ 0.

    Parameters
    ----------
    data, C, bias, steps : as in `r2w2`
    ids : (k,) positions of the columns

    Returns
    -------
    scales : (k,) >= 0, their squares sum to k
    bound : Bound at them
    """
    from scipy.optimize import minimize

    bound = RadiusMargin(data, ids, C, bias)
    first = bound.at(np.ones(ids.size))
    best, least = np.ones(ids.size), first

    def value(u: Array) -> tuple[float, Array]:
        nonlocal best, least
        length = float(np.linalg.norm(u))
        if length == 0.0:
            return math.inf, np.zeros(u.size)
        scales = u * (math.sqrt(u.size) / length)
        found = bound.at(scales)
        if found.value < least.value:
            best = scales
            least = found
        along = found.gradient - u * (float(found.gradient @ u) / length**2)
        return found.value / first.value, along * (math.sqrt(u.size) / length) / first.value

    minimize(value, best, jac=True, method="L-BFGS-B", bounds=[(0.0, None)] * ids.size, options={"maxiter": steps})
    return best, least


def r2w2(
    data: Instance, M: int, C: float = 1.0, *, bias: bool = True, drop: float = DROP_SHARE, steps: int = MOST_STEPS
) -> Linear:
    """Scale, drop the features of the smallest scales, and so on down to M; the SVM on them.

    Parameters
    ----------
    data : Instance
    M : int in 1 … p
    C : float > 0
        Of the quadratic slack, in the bound and in the SVM at the end; sample i has C_i = C * sample_weight_i.
    bias : bool, default True
    drop : float in [0, 1)
        Share of the features that a round drops, one at least; those of scale 0 go in any case, as far as M allows.
        Weston 2000 drops the smallest of them; half is what it takes for thousands of genes.
    steps : int >= 1
        Steps of the descent in a round; the paper takes one where there are many features.

    Returns
    -------
    Linear
        The SVM with the squared hinge on the features that are left.

    Raises
    ------
    UsageError
        A parameter out of its range, or data for which it would take hours.
    NumericalError
        Clarabel does not find a smallest ball.

    Source: Weston, Mukherjee, Chapelle, Pontil, Poggio, Vapnik 2000, section 3; Chapelle, Vapnik, Bousquet, Mukherjee
    2002 for the gradient. R²W² of the plain kernel does not change with the length of s; that it is held, which keeps
    the ridge from being scaled away, is ours.
    """
    check_size(M, data.n_features)
    check_weight(C)
    if not isinstance(drop, (int, float, np.number)) or isinstance(drop, bool) or not 0.0 <= drop < 1.0:
        raise UsageError(f"drop = {drop!r} must lie in [0, 1), the share of the features that a round drops")
    if isinstance(steps, bool) or not isinstance(steps, (int, np.integer)) or steps < 1:
        raise UsageError(f"steps = {steps!r} must be an integer from 1 on")
    check_order(data, "R²W²")
    _check_time(data, int(M), float(drop), int(steps))
    left = np.arange(data.n_features)
    with progress("R²W²", "features dropped") as tell:
        while left.size > M:
            scales, _ = descend_scales(data, left, C, bias=bias, steps=int(steps))
            keep = min(left.size - 1, math.floor((1.0 - drop) * left.size), int(np.count_nonzero(scales)))
            order = np.argsort(-scales, kind="stable")[: max(int(M), keep)]
            left = left[np.sort(order)]
            tell(data.n_features - left.size, data.n_features - int(M))
    return plain_svm(data, left, C, bias, "squared-hinge")


def _check_time(data: Instance, M: int, drop: float, steps: int) -> None:
    """Refuse what would take hours: an evaluation is some factorisations of the smaller of K and X'X."""
    n = data.n_samples
    size = data.n_features
    seconds = 0.0
    while size > M:
        seconds += 1.3 * (steps + 1) * FACTORS_PER_EVALUATION * n * float(min(n, size)) ** 2 / WORK_PER_SECOND
        size = max(M, min(size - 1, math.floor((1.0 - drop) * size)))
    if seconds > MOST_SECONDS:
        raise UsageError(
            f"R²W² on {n} samples would take about {seconds / MOST_SECONDS:.0f} h; a larger drop, fewer steps or fewer "
            "samples take less"
        )


def fit(data: Instance, M: int, C: float = 1.0, *, bias: bool = True, seed: int = 0) -> Linear:
    """`r2w2` as a `mipfs.lab.baselines.Baseline`."""
    return r2w2(data, M, C, bias=bias)
