"""Programs with constant parts, reduced: the value that CVXPY finds of the whole program lies between the ends."""

from __future__ import annotations

from typing import Any

import cvxpy
import numpy as np
import pytest

from mipfs.solvers.cones import Canonical

cp: Any = cvxpy
KINDS = ("lp", "qp", "perspective", "norm", "logistic", "psd", "big-m")


def program(kind: str, rng: np.random.Generator) -> tuple[Any, Any, np.ndarray[Any, Any]]:
    """A program, what is fixed of it, and at which values: some of them 0, where perspective cones have no interior."""
    X, c = rng.normal(size=(12, 4)), rng.uniform(0.5, 2.0, 12)
    w, sigma, fixed = cp.Variable(4), cp.Variable(4), cp.Variable(4)
    at = np.where(rng.random(4) < 0.4, 0.0, rng.uniform(0.2, 1.0, 4))
    xi, t = cp.Variable(12, nonneg=True), cp.Variable(4)
    rows = [sigma == fixed, X @ w + xi >= 1, cp.sum(sigma) <= 4]
    goal = c @ xi
    if kind == "lp":
        rows += [cp.abs(w) <= cp.multiply(rng.uniform(0.5, 2.0, 4), sigma)]
    elif kind == "qp":
        goal = goal + 0.5 * cp.sum_squares(w) + cp.sum_squares(xi) - sigma[0]
    elif kind == "perspective":
        rows += [cp.quad_over_lin(w[j], sigma[j]) <= t[j] for j in range(4)]
        goal = goal + 0.5 * cp.sum(t)
    elif kind == "norm":
        rows += [cp.norm(w) <= cp.sum(sigma) + 0.5]
    elif kind == "logistic":
        rows = [sigma == fixed, *(cp.quad_over_lin(w[j], sigma[j]) <= t[j] for j in range(4))]
        goal = c @ cp.logistic(-X @ w) + cp.sum(t)
    elif kind == "psd":
        V = cp.Variable((5, 5), PSD=True)
        rows += [V[:4, 4] == w, V[4, 4] == 1 + cp.sum(sigma)]
        goal = goal + cp.trace(V)
    else:
        rows += [w <= 3 * sigma, -w <= 3 * sigma]
        goal = goal + 0.5 * cp.sum_squares(w)
    return cp.Problem(cp.Minimize(goal), rows), fixed, at


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", KINDS)
def test_the_value_lies_between_the_ends(kind: str, seed: int) -> None:
    made, fixed, at = program(kind, np.random.default_rng([seed, KINDS.index(kind)]))
    said, least, most = Canonical(made).solve_fixed({fixed: at})
    known = {fixed.id: np.where(at == 0.0, 0.0, at)}
    whole = cp.Problem(made.objective, [*made.constraints, fixed == known[fixed.id]])
    value = float(whole.solve(solver=cp.CLARABEL))
    assert said == "solved"
    assert most - least <= 1e-7 * abs(value)
    assert least - 1e-6 * abs(value) <= value <= most + 1e-6 * abs(value)


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_a_weight_of_what_is_not_selected_has_no_value(size: float) -> None:
    w, sigma, t, fixed = cp.Variable(), cp.Variable(), cp.Variable(), cp.Variable(2)
    for link in (cp.quad_over_lin(w, sigma) <= t, cp.abs(w) <= 5 * sigma + 0 * t):
        made = cp.Problem(cp.Minimize(0.5 * t + 1e9), [link, t >= 0, w == fixed[0], sigma == fixed[1]])
        assert Canonical(made).solve_fixed({fixed: np.array([size, 0.0])})[0] == "infeasible"
        said, least, most = Canonical(made).solve_fixed({fixed: np.array([0.0, 0.0])})
        assert (said, least, most) == ("solved", 1e9, 1e9)


def test_what_has_no_least_value_is_said() -> None:
    x, fixed = cp.Variable(2), cp.Variable(1)
    made = cp.Problem(cp.Minimize(-x[0] - x[1]), [x[0] - x[1] <= fixed[0], x[1] - x[0] <= 1])
    said, least, most = Canonical(made).solve_fixed({fixed: np.array([2.0])})
    assert (said, least, most) == ("unbounded", -np.inf, -np.inf)


@pytest.mark.parametrize("C", [1e-4, 1.0, 1e3, 1e6])
def test_an_svm_on_columns_of_unlike_units(C: float) -> None:
    """½‖w‖² + C Σ max(0, 1 − y wx) of two points is known in closed form, in whatever unit the column is."""
    for unit in (1e-4, 1.0, 1e5):
        w, xi, t, sigma, fixed = (
            cp.Variable(),
            cp.Variable(2, nonneg=True),
            cp.Variable(),
            cp.Variable(),
            cp.Variable(1),
        )
        rows = [w * unit + xi >= 1, cp.quad_over_lin(w, sigma) <= t, sigma == fixed[0]]
        made = cp.Problem(cp.Minimize(0.5 * t + C * cp.sum(xi)), rows)
        least, most = Canonical(made).solve_fixed({fixed: np.array([1.0])})[1:]
        best = min(1 / unit, 2 * C * unit)
        value = 0.5 * best**2 + 2 * C * (1 - best * unit)
        assert most - least <= 1e-7 * value
        assert least - 1e-9 * value <= value <= most + 1e-9 * value
