"""What a user changed in the objective of a CVXPY formulation: fixed charges of features, as costs of its problem.

An objective that is the declared one and further terms, each linear in σ alone, is that of the problem with these
costs, where σ is a variable of the program. In a dual program σ is a multiplier: a term in it would be another problem.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import cvxpy
import numpy as np
from cvxpy.atoms.affine.add_expr import AddExpression

from mipfs.errors import RowError
from mipfs.formulation.charges import REMEDY, with_charges
from mipfs.formulation.cvxpy_attach import Built
from mipfs.problem import Problem

if TYPE_CHECKING:
    from mipfs.formulation.program import Formulation


def with_costs(formulation: Formulation, built: Built, problem: Problem) -> Problem:
    """The problem with the fixed charges that the objective of the program has now.

    Raises
    ------
    RowError
        The objective is not the declared one plus charges >= 0 on sigma.
    """
    goal: Any = formulation.cvxpy.objective
    kind, declared = built.objective
    expression = goal.args[0]
    if expression is declared and type(goal) is kind:
        return problem
    said = f"the objective of {built.name}"
    sigma = built.formulation.sigma
    if type(goal) is not kind:
        raise RowError(f"{said} was changed from {kind.__name__} to {type(goal).__name__}; {REMEDY}")
    own = {v.id for v in built.formulation.cvxpy.variables()}
    if kind is not cvxpy.Minimize or not isinstance(sigma, cvxpy.Variable) or sigma.id not in own:
        raise RowError(
            f"{said} was changed, and sigma is no variable of that program: declare fixed charges as [penalty] of the "
            ".toml, or by lam= of Problem"
        )
    costs = np.zeros(problem.atoms.count)
    for term in _further(expression, declared, said):
        costs += _charges(term, sigma, said)
    totals = problem.penalty + costs
    return with_charges(problem, {problem.atoms.names[int(g)]: float(totals[g]) for g in np.flatnonzero(costs)}, said)


def _further(now: Any, before: Any, said: str) -> list[Any]:
    """The terms that a sum has beyond those of another.

    Raises
    ------
    RowError
        One of the others is missing.
    """
    left = list(_terms(now))
    for term in _terms(before):
        place = next((k for k, one in enumerate(left) if one is term), None)
        if place is None:
            raise RowError(f"{said} was changed; {REMEDY}")
        del left[place]
    return left


def _terms(expression: Any) -> Iterator[Any]:
    if isinstance(expression, AddExpression):
        for one in expression.args:
            yield from _terms(one)
    else:
        yield expression


def _charges(term: Any, sigma: Any, said: str) -> Any:
    """The coefficients (count,) of a term.

    Raises
    ------
    RowError
        It is not affine in σ alone, or has a constant.
    """
    from mipfs.formulation.cvxpy_rows import read_affine

    text = " ".join(str(term).split())
    if any(v.id != sigma.id for v in term.variables()) or not term.is_affine() or term.size != 1:
        raise RowError(f"{said} has the term {text}, which is not linear in sigma alone; {REMEDY}")
    if any(parameter.value is None for parameter in term.parameters()):
        raise RowError(f"{said} has the term {text} with a parameter without a value; give it one")
    row, constant = read_affine(term, sigma, said)
    if constant:
        raise RowError(f"{said} has the constant {constant:g}, which moves no optimum; leave it out")
    return row
