"""(P) in perspective form, declared in Pyomo: what `fsp_m` and `fsp_lambda` have in common.

    min over σ, w, b, ξ, t   ½ Σ_j t_j + Σ_i C_i ℓ(ξ_i) + Σ_j c_j σ_j
    s.t.                     σ ∈ S                               block ``select``
                             w_j² ≤ σ_j t_j,   t_j ≥ 0           block ``svm``, ``cone``: a rotated second-order cone
                             y_i f(x_i) + ξ_i ≥ 1,   ξ_i ≥ 0     block ``svm``, ``margin``: Aytug 2015, (5) and (6)

σ_j = 0 leaves w_j = 0, and σ_j = 1 leaves t_j ≥ w_j²: for binary σ this is Aytug's program with w_j for σ_j w_j,
and for σ in [0, 1] it is the tightest convex relaxation of each pair (σ_j, w_j).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pyomo.environ as pyo
from pyomo.core.expr import LinearExpression
from scipy import sparse

from mipfs.backends.pyomo_attach import attach
from mipfs.formulation import check, check_size
from mipfs.problem import Problem

# ℓ(ξ) of (P). The margins are the same for every loss that is a function of ξ_i = max(0, 1 − y_i f(x_i)).
LOSSES: dict[str, Callable[[Any], Any]] = {
    "hinge": lambda xi: xi,
}


def perspective(problem: Problem, name: str = "P") -> Any:
    """Declare (P) in perspective form.

    Parameters
    ----------
    problem : Problem
    name : str, of the model

    Returns
    -------
    pyomo.environ.ConcreteModel
        `problem` is attached to it (`mipfs.problem_of`).

    Raises
    ------
    UsageError
        A loss that has no such form, or data too large for an algebraic model.
    """
    check(problem, "fsp-m")
    check_size(problem.data)
    model = pyo.ConcreteModel(name)
    model.select = select_block(problem)
    model.svm = svm_block(problem, model.select.sigma)

    # min  ½ Σ_j t_j + Σ_i C_i ℓ(ξ_i) + Σ_j c_j σ_j
    ell, names = LOSSES[problem.loss], problem.data.feature_names
    model.objective = pyo.Objective(
        expr=0.5 * pyo.quicksum(model.svm.t[j] for j in names)
        + pyo.quicksum(c * ell(model.svm.xi[i]) for i, c in enumerate(problem.c_i.tolist()))
        + pyo.quicksum(c * model.select.sigma[j] for j, c in zip(names, problem.penalty.tolist(), strict=True) if c)
    )
    attach(model, problem)
    return model


def select_block(problem: Problem) -> Any:
    """The set S: binaries ``sigma`` by feature name, ``cardinality``, and ``rows`` by their names.

    Forced features are fixed binaries: ``sigma[j].unfix()`` frees one, ``rows[name].deactivate()`` drops a row.
    """
    data, rows = problem.data, problem.rows
    assert rows is not None
    block = pyo.Block(concrete=True)

    # σ_j ∈ {0, 1}
    block.sigma = pyo.Var(list(data.feature_names), domain=pyo.Binary)
    for j in problem.forced_in or ():
        block.sigma[j].fix(1)
    for j in problem.forced_out or ():
        block.sigma[j].fix(0)

    # Σ_j σ_j ≤ M                                                                  Aytug 2015, (11)
    if problem.M is not None:
        block.cardinality = pyo.Constraint(expr=pyo.quicksum(block.sigma.values()) <= problem.M)

    # lb ≤ A σ + E u ≤ ub, u the extra variables; the budget Σ_j β_j σ_j ≤ B of section 2 is such a row
    columns = list(block.sigma.values())
    if len(rows.extra):
        extra = rows.extra
        block.extra = pyo.Var(list(extra.names))
        for k, u in enumerate(block.extra.values()):
            u.domain = pyo.Integers if extra.integer[k] else pyo.Reals
            u.setlb(float(extra.lb[k]))
            u.setub(float(extra.ub[k]))
        columns += block.extra.values()
    if len(rows):
        block.rows = pyo.Constraint(_unique(rows.names))
        for r, name in enumerate(block.rows.index_set()):
            block.rows[name] = _row(sparse.csr_array(rows.matrix[[r]]), columns, float(rows.lb[r]), float(rows.ub[r]))
    return block


def svm_block(problem: Problem, sigma: Any) -> Any:
    """The classifier: ``w`` and ``t`` by feature name, ``b``, ``xi`` by sample, ``cone`` and ``margin``."""
    data = problem.data
    names = list(data.feature_names)
    X, y = sparse.csr_array(data.X), data.y.tolist()
    block = pyo.Block(concrete=True)
    block.w = pyo.Var(names)
    block.t = pyo.Var(names, domain=pyo.NonNegativeReals)
    block.xi = pyo.Var(range(data.n_samples), domain=pyo.NonNegativeReals)
    block.b = pyo.Var() if problem.bias else pyo.Param(initialize=0.0)

    # w_j² ≤ σ_j t_j
    block.cone = pyo.Constraint(names)  # without a rule: a model that keeps one cannot be pickled
    for j in names:
        block.cone[j] = block.w[j] ** 2 <= sigma[j] * block.t[j]

    # f(x) = Σ_j w_j x_j + b. Sparse columns are centred here rather than in X, which would fill it:
    # Σ_j w_j (x_j − center_j) + b = Σ_j w_j x_j + offset,  offset = b − Σ_j center_j w_j
    offset = block.b
    if data.center.any():
        block.offset = offset = pyo.Var()
        shift = pyo.quicksum(c * block.w[j] for j, c in zip(names, data.center.tolist(), strict=True))
        block.centre = pyo.Constraint(expr=block.offset == block.b - shift)

    # y_i f(x_i) + ξ_i ≥ 1                                                         Aytug 2015, (5)
    block.margin = pyo.Constraint(range(data.n_samples))
    for i in range(data.n_samples):
        start, stop = X.indptr[i], X.indptr[i + 1]
        entries = zip(X.indices[start:stop].tolist(), X.data[start:stop].tolist(), strict=True)
        f = pyo.quicksum(x * block.w[names[j]] for j, x in entries) + offset
        block.margin[i] = y[i] * f + block.xi[i] >= 1
    return block


def _row(row: Any, columns: list[Any], lb: float, ub: float) -> Any:
    # A row without terms keeps a zero one: Pyomo refuses constants, and an infeasible row must keep its name.
    terms = [(float(a), columns[k]) for a, k in zip(row.data, row.indices, strict=True)] or [(0.0, columns[0])]
    body = LinearExpression(linear_coefs=[a for a, _ in terms], linear_vars=[v for _, v in terms], constant=0.0)
    if lb == ub:
        return body == lb
    return (None if lb == float("-inf") else lb, body, None if ub == float("inf") else ub)


def _unique(names: Iterable[str]) -> list[str]:
    """The names, a repeated one with its number."""
    seen: dict[str, int] = {}
    unique = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        unique.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return unique
