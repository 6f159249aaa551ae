"""(P) in perspective form, declared in Pyomo: what `fsp_m` and `fsp_lambda` have in common.

    min over σ, w, b, ξ, t   ½ Σ_g t_g + L(ξ) + Σ_g c_g σ_g
    s.t.                     σ ∈ S                               block ``select``
                             ‖w_g‖² ≤ σ_g t_g,   t_g ≥ 0         block ``svm``, ``cone``: a rotated second-order cone
                             y_i f(x_i) + ξ_i ≥ 1                block ``svm``, ``margin``: Aytug 2015, (5) and (6)
                             l_j σ_g ≤ w_j ≤ u_j σ_g             block ``svm``, ``ends``: of bounds on the weights

    hinge           L = Σ_i C_i ξ_i,         ξ ≥ 0               quadratic constraints: SCIP takes it, HiGHS does not
    squared hinge   L = ½ Σ_i C_i ξ_i²,      ξ ≥ 0               and a quadratic objective
    logistic        L = Σ_i C_i ℓ_i,         y_i f(x_i) + ξ_i ≥ 0,   e^(−ℓ_i) + e^(ξ_i − ℓ_i) ≤ 1
                                                                 general nonlinear, convex: SCIP; written as .nl alone

The last row, ``logistic``, is ℓ ≥ log(1 + e^ξ) in a form whose convexity solvers see. For single features w_g is w_j:
σ_j = 0 leaves w_j = 0, and σ_j = 1 leaves t_j ≥ w_j². For binary σ this is Aytug's program with w_j for σ_j w_j, and
for σ in [0, 1] it is the tightest convex relaxation of each pair (σ_j, w_j). For groups and trees w_g are the weights
of the atom's columns, which are multiplied by its λ_g. The ρ-form of Tan 2010 (1) has the variable ``rho`` for the
margin 1 and −ρ in the objective.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.core.expr import LinearExpression
from scipy import sparse

from mipfs.data.names import make_unique
from mipfs.formulation import check
from mipfs.formulation.conic import design_of
from mipfs.formulation.pyomo_attach import attach
from mipfs.formulation.pyomo_model import DeclaredModel
from mipfs.losses import get_loss
from mipfs.plumbing.arrays import terms_of
from mipfs.problem import Problem


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
    model = DeclaredModel(name)
    model.C = pyo.Param(initialize=problem.C, domain=pyo.PositiveReals, mutable=True)
    model.lam = _lambda_parameter(problem)
    if problem.M is not None:
        model.M = pyo.Param(initialize=problem.M, domain=pyo.NonNegativeIntegers, mutable=True)
    model.select = select_block(problem, model.component("M"))
    model.svm = svm_block(problem, model.select.sigma)

    # min  ½ Σ_g t_g + L + Σ_g c_g σ_g + d'u  (− ρ)
    loss = get_loss(problem.loss)
    svm = model.svm
    value = loss.algebraic
    free = loss.has_free_slacks
    names, weights = list(problem.atoms.names), problem.sample_weight.tolist()
    model.objective = pyo.Objective(
        expr=0.5 * pyo.quicksum(svm.t[g] for g in names)
        + model.C * pyo.quicksum(k * value(svm.xi[i], svm.ell[i] if free else None) for i, k in enumerate(weights))
        + _selection_charges(model, problem)
        + model.select.extra_cost
        - (svm.rho if problem.margin == "rho" else 0.0)
    )
    attach(model, problem, svm.w)
    return model


def _lambda_parameter(problem: Problem) -> Any:
    """λ as a parameter: one number, or one of every atom where they differ."""
    own = problem.lam
    if isinstance(own, (int, float)):
        return pyo.Param(initialize=float(own), domain=pyo.NonNegativeReals, mutable=True)
    names = list(problem.atoms.names)
    values = own if isinstance(own, Mapping) else dict(zip(names, own, strict=True))
    each = {g: float(values.get(g, 0.0)) for g in names}
    return pyo.Param(names, initialize=each, domain=pyo.NonNegativeReals, mutable=True)


def _selection_charges(model: Any, problem: Problem) -> Any:
    """Σ (λ_g + the data's own penalty) σ_g."""
    sigma, lam = model.select.sigma, model.lam
    own = problem.data.penalty
    charged = pyo.quicksum(c * sigma[g] for g, c in own.items() if c)
    if lam.is_indexed():
        return pyo.quicksum(lam[g] * sigma[g] for g in sigma) + charged
    return lam * pyo.quicksum(sigma.values()) + charged


def select_block(problem: Problem, M: Any = None) -> Any:
    """The set S: binaries ``sigma`` by the name of the feature (or atom), ``cardinality``, and ``rows`` by their names.

    ``extra_cost``, a mutable expression that stands in the objective, is what the extra variables cost: 0, or what
    ``extra_cost.set_value`` says. `M` is a parameter in place of the problem's number.

    Forced features are fixed binaries: ``sigma[j].unfix()`` frees one, ``rows[name].deactivate()`` drops a row.
    """
    rows = problem.rows
    assert rows is not None
    block = pyo.Block(concrete=True)

    # σ_j ∈ {0, 1}
    block.sigma = pyo.Var(list(problem.atoms.names), domain=pyo.Binary)
    for j in problem.forced_in or ():
        block.sigma[j].fix(1)
    for j in problem.forced_out or ():
        block.sigma[j].fix(0)

    # Σ_j σ_j ≤ M                                                                  Aytug 2015, (11)
    if problem.M is not None:
        block.cardinality = pyo.Constraint(expr=pyo.quicksum(block.sigma.values()) <= (problem.M if M is None else M))

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
    costs = zip(rows.extra.cost.tolist(), columns[len(block.sigma) :], strict=True)
    block.extra_cost = pyo.Expression(expr=pyo.quicksum(d * u for d, u in costs if d))
    if len(rows):
        block.rows = pyo.Constraint(make_unique(rows.names))
        for r, name in enumerate(block.rows.index_set()):
            block.rows[name] = _row_expression(
                sparse.csr_array(rows.matrix[[r]]), columns, float(rows.lb[r]), float(rows.ub[r])
            )
    return block


def svm_block(problem: Problem, sigma: Any) -> Any:
    """The classifier: ``w``, ``b``, ``t`` by feature, ``xi`` by sample, ``cone`` and ``margin``.

    Of groups and trees, ``t`` and ``cone`` are by atom, and ``w`` by atom and feature.
    """
    data = problem.data
    atoms = problem.atoms
    design = design_of(problem)
    loss = get_loss(problem.loss)
    columns = atoms.columns(np.arange(atoms.count))
    atom_names = list(atoms.names)
    names = list(data.feature_names)
    owners = [atom_names[g] for g in columns.atom.tolist()]
    index: list[Any] = owners
    if not problem.selects_features:
        index = [(g, names[j]) for g, j in zip(owners, columns.ids.tolist(), strict=True)]
    X, y = sparse.csr_array(design.X), data.y.tolist()
    block = pyo.Block(concrete=True)
    block.w = pyo.Var(index)
    block.t = pyo.Var(atom_names, domain=pyo.NonNegativeReals)
    block.xi = pyo.Var(range(data.n_samples), domain=pyo.Reals if loss.has_free_slacks else pyo.NonNegativeReals)
    block.b = pyo.Var() if problem.bias else pyo.Param(initialize=0.0)

    # ‖w_g‖² ≤ σ_g t_g
    block.cone = pyo.Constraint(atom_names)  # without a rule: a model that keeps one cannot be pickled
    parts: dict[str, list[Any]] = {g: [] for g in atom_names}
    for g, k in zip(owners, index, strict=True):
        parts[g].append(block.w[k] ** 2)
    for g in atom_names:
        squares = parts[g][0] if len(parts[g]) == 1 else pyo.quicksum(parts[g])
        block.cone[g] = squares <= sigma[g] * block.t[g]

    _add_ends(block, problem, dict(zip(index, columns.ids.tolist(), strict=True)), sigma)
    _add_weight_rows(block, problem, dict(zip(index, columns.scale.tolist(), strict=True)))

    # f(x) = Σ_j w_j x_j + b. Sparse columns are centred here rather than in X, which would fill it:
    # Σ_j w_j (x_j − center_j) + b = Σ_j w_j x_j + offset,  offset = b − Σ_j center_j w_j
    offset = block.b
    if design.center.any():
        block.offset = offset = pyo.Var()
        shift = pyo.quicksum(c * block.w[k] for k, c in zip(index, design.center.tolist(), strict=True))
        block.centre = pyo.Constraint(expr=block.offset == block.b - shift)

    # y_i f(x_i) + ξ_i ≥ 1                                                         Aytug 2015, (5)
    target: Any = int(loss.target)
    if problem.margin == "rho":
        block.rho = target = pyo.Var()  # y_i f(x_i) + ξ_i ≥ ρ                         Tan 2010, (1)
    block.margin = pyo.Constraint(range(data.n_samples))
    for i in range(data.n_samples):
        f = pyo.quicksum(x * block.w[index[k]] for k, x in terms_of(X, i)) + offset
        block.margin[i] = y[i] * f + block.xi[i] >= target

    # ℓ_i ≥ log(1 + e^ξ_i)
    if loss.has_free_slacks:
        block.ell = pyo.Var(range(data.n_samples), domain=pyo.NonNegativeReals)
        block.logistic = pyo.Constraint(range(data.n_samples))
        for i, (xi, ell) in enumerate(zip(block.xi.values(), block.ell.values(), strict=True)):
            block.logistic[i] = pyo.exp(-ell) + pyo.exp(xi - ell) <= 1
    return block


def _row_expression(row: Any, columns: list[Any], lb: float, ub: float) -> Any:
    # A row without terms keeps a zero one: Pyomo refuses constants, and an infeasible row must keep its name.
    terms = [(float(a), columns[k]) for a, k in zip(row.data, row.indices, strict=True)] or [(0.0, columns[0])]
    body = LinearExpression(linear_coefs=[a for a, _ in terms], linear_vars=[v for _, v in terms], constant=0.0)
    if lb == ub:
        return body == lb
    return (None if lb == float("-inf") else lb, body, None if ub == float("inf") else ub)


def _add_weight_rows(block: Any, problem: Problem, factors: dict[Any, float]) -> None:
    """l ≤ Σ_j (a_j/scale_j) λ_j w_j ≤ u, of rows over the weights; one of several atoms is the sum of all its λw.

    `factors` has λ of every weight.
    """
    if not problem.weight_rows:
        return
    data = problem.data
    names = [key[1] if isinstance(key, tuple) else key for key in factors]
    block.weight_rows = pyo.ConstraintList()
    for row in problem.rows_over_weights:
        terms = {name: a / float(data.scale[data.index[name]]) for name, a in row.coefficients}
        each = zip(names, factors.items(), strict=True)
        parts = [terms[name] * factor * block.w[key] for name, (key, factor) in each if name in terms]
        if not parts:
            continue
        body = pyo.quicksum(parts)
        if row.lower == row.upper:
            block.weight_rows.add(body == row.lower)
            continue
        ends = (end if abs(end) < float("inf") else None for end in (row.lower, row.upper))
        low, high = ends
        block.weight_rows.add((low, body, high))


def _add_ends(block: Any, problem: Problem, index: dict[Any, int], sigma: Any) -> None:
    """low_j σ_g ≤ w_j ≤ high_j σ_g, of a box on the weights; `index` has the column of every weight."""
    low, high = (np.broadcast_to(end, problem.data.n_features) for end in problem.regulariser.ends)
    if not np.any(np.isfinite(low) | np.isfinite(high)):
        return
    block.ends = pyo.ConstraintList()
    for k, j in index.items():
        own = sigma[k if problem.selects_features else k[0]]
        if np.isfinite(low[j]):
            block.ends.add(block.w[k] >= float(low[j]) * own)
        if np.isfinite(high[j]):
            block.ends.add(block.w[k] <= float(high[j]) * own)
