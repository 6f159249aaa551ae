"""Independent references for squared hinge and logistic: SciPy minimises the primal, the dual is written out here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq, minimize
from scipy.special import expit, xlogy

Array = npt.NDArray[np.float64]


def squared_hinge_primal(Z: Array, y: Array, c_i: Array, w: Array, b: float) -> float:
    """½‖w‖² + ½ Σ c_i max(0, 1 - m_i)², straight from its definition."""
    return float(0.5 * w @ w + 0.5 * c_i @ np.maximum(0.0, 1.0 - y * (Z @ w + b)) ** 2)


def logistic_primal(Z: Array, y: Array, c_i: Array, w: Array, b: float) -> float:
    """½‖w‖² + Σ c_i log(1 + exp(-m_i)), straight from its definition."""
    return float(0.5 * w @ w + c_i @ np.logaddexp(0.0, -y * (Z @ w + b)))


def _squared_hinge(Z: Array, y: Array, c_i: Array) -> tuple[Any, Any, Any]:
    def alpha(m: Array) -> Array:
        return c_i * np.maximum(0.0, 1.0 - m)

    def curve(m: Array) -> Array:
        return c_i * (m < 1.0)

    def conjugate(a: Array) -> float:
        return float(np.sum(a - a * a / (2.0 * c_i)))

    return alpha, curve, conjugate


def _logistic(Z: Array, y: Array, c_i: Array) -> tuple[Any, Any, Any]:
    def alpha(m: Array) -> Array:
        return c_i * expit(-m)

    def curve(m: Array) -> Array:
        return c_i * expit(m) * expit(-m)

    def conjugate(a: Array) -> float:
        return float(-np.sum(xlogy(a, a / c_i) + xlogy(c_i - a, 1.0 - a / c_i)))

    return alpha, curve, conjugate


def interval(
    primal: Callable[[Array, Array, Array, Array, float], float],
    parts: Callable[[Array, Array, Array], tuple[Any, Any, Any]],
    Z: Array,
    y: Array,
    c_i: Array,
    bias: bool,
) -> tuple[float, float, Array, float]:
    """Upper and lower end of an interval that holds the optimal value, and the primal point of the upper end."""
    alpha_of, curve_of, conjugate = parts(Z, y, c_i)
    k = Z.shape[1]
    off = Z.mean(axis=0) if bias else np.zeros(k)
    A = y[:, None] * np.column_stack([Z - off, np.ones(len(y))] if bias else [Z])
    ridge = np.append(np.ones(k), np.zeros(int(bias)))

    def gradient(u: Array) -> Array:
        return np.asarray(ridge * u - A.T @ alpha_of(A @ u))

    def hessian(u: Array) -> Array:
        return np.asarray(np.diag(ridge + 1e-12) + A.T @ (curve_of(A @ u)[:, None] * A))

    def value(u: Array) -> float:
        return primal(Z - off, y, c_i, u[:k], float(u[k]) if bias else 0.0)

    u = np.zeros(k + int(bias))
    if u.size:
        u = minimize(value, u, jac=gradient, hess=hessian, method="trust-exact", tol=1e-10).x
    for _ in range(20):  # the last digits: plain Newton steps as long as they help
        step = u - np.linalg.solve(hessian(u), gradient(u))
        if not np.linalg.norm(gradient(step)) < np.linalg.norm(gradient(u)):
            break
        u = step
    if bias:  # the best b for this w makes y'α = 0

        def balance(b: float) -> float:
            return float(y @ alpha_of(A[:, :k] @ u[:k] + y * b))

        reach = 1.0 + 2.0 * float(np.abs(A[:, :k] @ u[:k]).max(initial=0.0))
        while balance(-reach) * balance(reach) > 0:
            reach *= 2.0
        u[k] = brentq(balance, -reach, reach, xtol=1e-14, rtol=1e-15)
    alpha = alpha_of(A @ u)
    if bias:
        positive, negative = alpha[y > 0].sum(), alpha[y < 0].sum()
        least = min(positive, negative)
        alpha = alpha * np.where(y > 0, least / positive, least / negative)
    omega = A[:, :k].T @ alpha
    b = float(u[k] - off @ u[:k]) if bias else 0.0
    return primal(Z, y, c_i, u[:k], b), conjugate(alpha) - 0.5 * float(omega @ omega), u[:k], b


def squared_hinge(Z: Array, y: Array, c_i: Array, bias: bool) -> tuple[float, float, Array, float]:
    """The interval of the squared hinge; see `interval`."""
    return interval(squared_hinge_primal, _squared_hinge, Z, y, c_i, bias)


def logistic(Z: Array, y: Array, c_i: Array, bias: bool) -> tuple[float, float, Array, float]:
    """The interval of the logistic loss; see `interval`."""
    return interval(logistic_primal, _logistic, Z, y, c_i, bias)
