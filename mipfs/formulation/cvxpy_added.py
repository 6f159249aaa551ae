"""Rows that are added to a CVXPY formulation: where they would bind nothing, or something else, it is declared anew.

Where σ is a variable of the program and the program is over the box, a row stands in it as it was written. In a dual
program σ is a multiplier, over which a constraint binds nothing; over a pool of selections it would cut their mixtures,
where it leaves out selections. Both are declared anew, of the problem with the row: what CVXPY makes of that program is
what the drivers make of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import cvxpy

from mipfs.errors import NumericalError, UsageError
from mipfs.formulation.cvxpy_attach import MARK, Built, Program, Sigma, added, built_of, reattached
from mipfs.formulation.cvxpy_rows import compile, read_added

if TYPE_CHECKING:
    from mipfs.formulation.program import Formulation
    from mipfs.problem import Problem

_OF_S = ("reduced-mkl", "structural", "big-m")
"""Programs of which more than the rows depends on S: a pool, labellings, big-M."""


def with_rows(formulation: Formulation, constraints: Sequence[Any]) -> Formulation:
    """A formulation with more constraints, declared anew where its program could not hold them.

    Raises
    ------
    RowError
        One of them is no row over σ and variables of the user's own, and the program would have to be declared anew.
    UsageError
        No selection of the pool that the program is over satisfies them.
    """
    built = built_of(formulation)
    if built is None or not _is_declared_anew(formulation, built):
        return _appended(formulation, constraints)
    first, before = formulation, tuple[Any, ...]()
    if built.origin is not None:
        compile(formulation)  # what else was changed is refused
        first, before = built.origin
        constraints = [*added(formulation, built), *constraints]
    every = [*before, *(_over(one, first) for one in constraints)]
    whole = _appended(first, every)
    read = read_added(whole)
    if not len(read.rows):
        return whole
    problem = compile(whole)
    try:
        made = built.declare(problem)
    except UsageError:
        if not _is_empty(problem):
            raise
        return whole  # every driver says INFEASIBLE
    return reattached(made, (first, tuple(every)), read.extras)


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


def _is_declared_anew(formulation: Formulation, built: Built) -> bool:
    """Whether a row would not do in the program what it does in S, or in the box."""
    sigma = formulation.sigma
    is_multiplier = isinstance(sigma, Sigma) and sigma.is_multiplier
    return sigma is not None and (is_multiplier or built.formulation.hull or built.name in _OF_S)


def _appended(formulation: Formulation, constraints: Sequence[Any]) -> Formulation:
    program = formulation.cvxpy
    kind = Program if isinstance(program, Program) else cvxpy.Problem
    return replace(formulation, cvxpy=kind(program.objective, [*program.constraints, *constraints]))


def _over(constraint: Any, first: Formulation) -> Any:
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
