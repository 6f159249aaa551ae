"""What a user changed in the objective of a CVXPY formulation: charges of features, and costs of the user's variables.

An objective that is the declared one and further terms, each linear in σ alone, is that of the problem with these
costs, where σ is a variable of the program. In a dual program σ is a multiplier: a term in it would be another problem.
A term that is linear in variables of the user's own, which rows tie to σ, is what these cost:
`Formulation.with_constraints` puts it there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import cvxpy
import numpy as np
from cvxpy.atoms.affine.add_expr import AddExpression

from mipfs.errors import RowError
from mipfs.formulation.charges import REMEDY, with_charges
from mipfs.formulation.cvxpy_attach import BuiltFormulation
from mipfs.formulation.program import Formulation
from mipfs.plumbing.arrays import Array
from mipfs.problem import Problem


def with_costs(
    formulation: Formulation, built: BuiltFormulation, problem: Problem, extras: Sequence[tuple[Any, int]]
) -> tuple[Problem, Array]:
    """The problem with the fixed charges that the objective of the program has now; costs (e,) of the user's variables.

    Raises
    ------
    RowError
        The objective is not the declared one plus charges >= 0 on sigma, and costs of variables that rows are about.
    """
    own_costs = np.zeros(len(extras))
    goal: Any = formulation.cvxpy.objective
    kind, declared = built.objective
    expression = goal.args[0]
    if expression is declared and type(goal) is kind:
        return problem, own_costs
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
    for term in _added_terms(expression, declared, said):
        if term.variables() and not any(v.id in own for v in term.variables()):
            own_costs += extra_costs(term, extras, said)
        else:
            costs += _sigma_coefficients(term, sigma, said)
    totals = problem.penalty + costs
    charges = {problem.atoms.names[int(g)]: float(totals[g]) for g in np.flatnonzero(costs)}
    return with_charges(problem, charges, said), own_costs


def extra_costs(term: Any, extras: Sequence[tuple[Any, int]], said: str) -> Array:
    """The coefficients (e,) of a term that is linear in variables of the user's own, which rows are about.

    Raises
    ------
    RowError
        It is not, or it has a constant.
    """
    from mipfs.formulation.cvxpy_rows import read_linear

    text = " ".join(str(term).split())
    if not term.is_affine() or term.size != 1:
        raise RowError(f"{said} has the term {text}, which is not linear in variables of your own")
    if any(parameter.value is None for parameter in term.parameters()):
        raise RowError(f"{said} has the term {text} with a parameter without a value; give it one")
    places = {v.id: at for at, (v, k) in reversed([*enumerate(extras)]) if k == 0}
    strange = [v.name() for v in term.variables() if v.id not in places]
    if strange:
        tied = f"no constraint ties {', '.join(strange)} to sigma, as one of an extra variable does"
        raise RowError(f"{said} has the term {text}, which is not linear in sigma alone; {tied}")
    row, constant = read_linear(term, places, len(extras), said)
    if constant:
        raise RowError(f"{said} has the constant {constant:g}, which moves no optimum; leave it out")
    return row


def _added_terms(now: Any, before: Any, said: str) -> list[Any]:
    """The terms that a sum has beyond those of another.

    Raises
    ------
    RowError
        One of the others is missing.
    """
    left = list(_summands(now))
    for term in _summands(before):
        place = next((k for k, one in enumerate(left) if one is term), None)
        if place is None:
            raise RowError(f"{said} was changed; {REMEDY}")
        del left[place]
    return left


def _summands(expression: Any) -> Iterator[Any]:
    if isinstance(expression, AddExpression):
        for one in expression.args:
            yield from _summands(one)
    else:
        yield expression


def _sigma_coefficients(term: Any, sigma: Any, said: str) -> Any:
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
