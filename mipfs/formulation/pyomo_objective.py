"""What a user changed in the objective of a Pyomo model: fixed charges of features, as costs of its problem.

An objective that is the one that was built plus Σ_j c_j σ_j is that of the problem with these costs, c of (P), which
every driver and the certificate have. It is compared coefficient by coefficient; what else differs is refused by name.
"""

from __future__ import annotations

import math
from typing import Any

import pyomo.environ as pyo
from pyomo.core.expr.visitor import identify_variables
from pyomo.repn import generate_standard_repn

from mipfs.errors import RowError
from mipfs.formulation.charges import REMEDY, with_charges
from mipfs.formulation.pyomo_attach import AttachedProblem
from mipfs.problem import Problem

Terms = dict[tuple[int, ...], float]
"""Ids of the variables of a monomial (none for the constant), and its coefficient."""


def with_costs(model: Any, attached: AttachedProblem, problem: Problem) -> Problem:
    """The problem with the fixed charges that the objective of the model has now.

    Raises
    ------
    RowError
        The objective is not the one that was built plus charges >= 0 on sigma; the message names what differs.
    """
    goals = list(model.component_data_objects(pyo.Objective, active=True, descend_into=True))
    if attached.goal is None and not goals:
        return problem
    if len(goals) != 1 or attached.goal is None:
        names = " and ".join(goal.name for goal in goals) or "none"
        raise RowError(f"the model must have one active objective, and has {names}; {REMEDY}")
    (goal,) = goals
    if goal.sense != pyo.minimize:
        raise RowError(f"{goal.name} is maximised; the objective is minimised")
    if goal.expr is attached.goal:
        return problem
    sigma = list(attached.sigma.values())
    column = {id(s): j for j, s in enumerate(sigma)}
    named: dict[int, Any] = {}
    before, now = (_monomials_of(goal.name, expression, named) for expression in (attached.goal, goal.expr))
    for key in before.keys() | now.keys():
        if len(key) == 1 and key[0] in column:
            continue
        if before.get(key, 0.0) != now.get(key, 0.0):
            raise RowError(_refusal_message(goal.name, key, named, attached, before.get(key, 0.0), now.get(key, 0.0)))
    changed = {}
    for name, s in zip(problem.atoms.names, sigma, strict=True):
        cost = now.get((id(s),), 0.0)
        if cost != before.get((id(s),), 0.0):
            changed[name] = cost
    return with_charges(problem, changed, goal.name)


def _monomials_of(name: str, expression: Any, named: dict[int, Any]) -> Terms:
    """A polynomial of degree two at most as its monomials; fixed variables count as variables."""
    try:
        fixed = []
        for v in identify_variables(expression, include_fixed=True):
            named[id(v)] = v
            if v.fixed:
                fixed.append(v)
        for v in fixed:
            v.fixed = False
        try:
            repn = generate_standard_repn(expression, compute_values=True, quadratic=True)
        finally:
            for v in fixed:
                v.fixed = True
    except (ValueError, TypeError, ZeroDivisionError, OverflowError, AttributeError) as error:
        raise RowError(f"{name} cannot be evaluated: {' '.join(str(error).split())}") from error
    if repn.nonlinear_expr is not None:
        raise RowError(f"{name} is not that which was built plus charges that are linear in sigma; {REMEDY}")
    found: Terms = {(): float(repn.constant)}
    monomials: list[tuple[tuple[int, ...], Any]] = [
        ((id(v),), a) for v, a in zip(repn.linear_vars, repn.linear_coefs, strict=True)
    ]
    pairs = zip(repn.quadratic_vars, repn.quadratic_coefs, strict=True)
    monomials += [(tuple(sorted((id(u), id(v)))), a) for (u, v), a in pairs]
    for key, a in monomials:
        found[key] = found.get(key, 0.0) + float(a)
    if not all(map(math.isfinite, found.values())):
        raise RowError(f"{name} has a coefficient that is not finite; {REMEDY}")
    return {key: a for key, a in found.items() if a}


def _refusal_message(
    goal: str, key: tuple[int, ...], named: dict[int, Any], attached: AttachedProblem, before: float, now: float
) -> str:
    """What is said of a monomial that differs."""
    if not key:
        return f"{goal} has the constant {now:g}, which moves no optimum; leave it out"
    variables = [named[one] for one in key]
    text = " * ".join(v.name for v in variables)
    own = [v for v in variables if v.name.startswith("select.") and v.parent_component() is not attached.sigma]
    if own and len(key) == 1:
        return (
            f"{goal} charges {text}: state what extra variables cost as "
            f"model.select.extra_cost.set_value({now:g}*model.{text}), which stands in the objective already"
        )
    changed = f"now {now:g}, {before:g} as built"
    return f"the coefficient of {text} in {goal} was changed ({changed}); {REMEDY}"
