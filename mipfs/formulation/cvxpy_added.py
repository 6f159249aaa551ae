"""Rows that are added to a CVXPY formulation: where they would bind nothing, or something else, it is declared anew.

Where σ is a variable of the program and the program is over the box, a row stands in it as it was written. In a dual
program σ is a multiplier, over which a constraint binds nothing; over a pool of selections it would cut their mixtures,
where it leaves out selections. Both are declared anew, of the problem with the row: what CVXPY makes of that program is
what the drivers make of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import cvxpy

from mipfs.errors import NumericalError, UsageError
from mipfs.formulation.conic import (
    MARK,
    BuiltFormulation,
    DeclaredProgram,
    Sigma,
    added_constraints,
    built_of,
    remember_origin,
)
from mipfs.formulation.cvxpy_rows import RowsReading, compile, extra_costs, read_added
from mipfs.formulation.program import Formulation
from mipfs.problem import Problem

_OF_S = ("reduced-mkl", "structural", "big-m")
"""Programs of which more than the rows depends on S: a pool, labellings, big-M."""


def with_rows(formulation: Formulation, constraints: Sequence[Any], extra_cost: Any = None) -> Formulation:
    """A formulation with more constraints, and what variables in them cost, declared anew where its program could not
    hold them.

    Raises
    ------
    RowError
        One of them is no row over σ and variables of the user's own, and the program would have to be declared anew.
    UsageError
        No selection of the pool that the program is over satisfies them.
    """
    built = built_of(formulation)
    if built is not None and extra_cost is not None:
        own = [v.name() for v in extra_cost.variables() if v.id in built.variables]
        if own:
            raise UsageError(f"extra_cost is about {', '.join(own)}; it is linear in variables of your own alone")
    if built is None or not _is_declared_anew(formulation, built):
        if extra_cost is not None and (built is None or formulation.sigma is None):
            name = "a program of your own" if built is None else built.name
            raise UsageError(f"{name} takes no extra_cost; give a Problem whose rows have extra variables with costs")
        return _check_costs(_append_constraints(formulation, constraints, extra_cost), extra_cost)
    first, before = formulation, tuple[Any, ...]()
    if built.origin is not None:
        compile(formulation)  # what else was changed is refused
        first, before = built.origin
        extra_cost = _sum_of_optional(built.extra_cost, extra_cost)
        constraints = [*added_constraints(formulation, built), *constraints]
    every = [*before, *(_rewrite_over_sigma(one, first) for one in constraints)]
    whole = _append_constraints(first, every)
    read = read_added(whole)
    if not len(read.rows):
        return _check_costs(_append_constraints(first, every, extra_cost), extra_cost)
    problem = _price_extras(compile(whole), read, extra_cost)
    try:
        made = built.declare(problem)
    except UsageError:
        if not _is_empty(problem):
            raise
        return whole  # every driver says INFEASIBLE
    return remember_origin(made, (first, tuple(every)), read.extras, extra_cost)


def relaxation(formulation: Formulation) -> str:
    """Which relaxation the value of a formulation's program belongs to, in words."""
    built = None if formulation.cvxpy is None else built_of(formulation)
    if built is None:
        return "a program of your own"
    if not built.formulation.is_relaxation:
        return "a baseline"
    if built.name == "structural" and not built.formulation.hull:
        return "the relaxation over its pool of selections and labellings"
    if built.name == "reduced-mkl":
        return "the relaxation over its pool of selections"
    if built.formulation.hull:
        return "the relaxation over the hull of S"
    if formulation.sigma is None:
        return "a relaxation that leaves out rows and costs"
    if formulation.sigma.attributes["boolean"]:
        return "the problem itself"
    how = "the big-M relaxation" if built.name == "big-m" else "the relaxation"
    return f"{how} over the box, 0 <= sigma <= 1 and the rows"


def _is_declared_anew(formulation: Formulation, built: BuiltFormulation) -> bool:
    """Whether a row would not do in the program what it does in S, or in the box."""
    sigma = formulation.sigma
    is_multiplier = isinstance(sigma, Sigma) and sigma.is_multiplier
    return sigma is not None and (is_multiplier or built.formulation.hull or built.name in _OF_S)


def _append_constraints(formulation: Formulation, constraints: Sequence[Any], extra_cost: Any = None) -> Formulation:
    program = formulation.cvxpy
    kind = DeclaredProgram if isinstance(program, DeclaredProgram) else cvxpy.Problem
    goal = (
        program.objective
        if extra_cost is None
        else cvxpy.Minimize(_sum_of_optional(program.objective.args[0], extra_cost))
    )
    return replace(formulation, cvxpy=kind(goal, [*program.constraints, *constraints]))


def _sum_of_optional(one: Any, other: Any) -> Any:
    """The sum of two expressions, each of which may be None."""
    if one is None or other is None:
        return one if other is None else other
    return one + other


def _check_costs(made: Formulation, extra_cost: Any) -> Formulation:
    """A formulation whose costs were found to be ones of extra variables, at once and not when it is solved."""
    if extra_cost is not None:
        compile(made)
    return made


def _price_extras(problem: Problem, read: RowsReading, extra_cost: Any) -> Problem:
    """The problem, whose last extra variables were read, with what they cost."""
    if extra_cost is None:
        return problem
    rows = problem.rows
    assert rows is not None
    costs = extra_costs(extra_cost, read.extras, "extra_cost")
    kept = rows.extra.cost.copy()
    kept[kept.size - costs.size :] += costs
    return problem.replace(rows=replace(rows, extra=replace(rows.extra, cost=kept)))


def _rewrite_over_sigma(constraint: Any, first: Formulation) -> Any:
    """A constraint over the σ of a formulation that was declared anew of `first`, over the σ of `first`."""
    known = {}
    for v in constraint.variables():
        built = getattr(v, MARK, None)
        if isinstance(v, Sigma) and built is not None and built.origin is not None and built.origin[0] is first:
            known[id(v)] = first.sigma
    if not known:
        return constraint
    copy = constraint.tree_copy(known)
    copy.set_label(constraint.label)
    return copy


def _is_empty(problem: Problem) -> bool:
    try:
        return problem.selection.minimise(problem.penalty)[0] is None
    except NumericalError:
        return False
