"""Which driver solves what, where none is named: one table for Python and for the command line.

It is the column ``driver`` of the table of formulations (``mipfs models``). A `Problem` that is no formulation's is
solved by ``branch``, with the structural loss by ``two_layer``; a CVXPY program of a user's own by ``conic``, and like
its problem where it has whole variables. Where extra variables have costs it is ``branch`` in any case: no relaxation
carries these.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from mipfs import formulation
from mipfs.capability import POINTWISE
from mipfs.errors import RowError, UsageError
from mipfs.formulation.program import Formulation
from mipfs.problem import Problem

DEFAULT = "branch"


def default_driver(model: Any, problem: Problem) -> str:
    """The driver of a problem or a model where none is named.

    Parameters
    ----------
    model : Problem, Pyomo model or Formulation
    problem : Problem, the compiled model
    """
    entry = entry_of(model, problem)
    if problem.has_extra_costs:
        return DEFAULT
    if entry is not None:
        return entry.driver
    if isinstance(model, Formulation) and not (model.cvxpy is not None and model.cvxpy.is_mixed_integer()):
        return "conic"
    return "two_layer" if problem.is_joint else DEFAULT


def options_of(model: Any, problem: Problem, driver: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The options that a driver gets for a model beside those that are given: presets, and for ``conic`` the program.

    Raises
    ------
    UsageError
        A formulation whose program needs more than the problem.
    """
    entry = entry_of(model, problem)
    options = dict(entry.preset) if entry is not None and entry.driver == driver else {}
    if driver == "conic" and "declare" not in given:
        if isinstance(model, Formulation):
            options["declare"] = _program_of_model(model)
        elif problem.loss in POINTWISE:
            options["declare"] = _declared_by(entry)
    return options


def entry_of(model: Any, problem: Problem) -> formulation.FormulationEntry | None:
    """The line of the table that a model was declared from; None for a user's own."""
    name = problem.formulation
    if isinstance(model, Formulation):
        from mipfs.formulation.conic import built_of

        built = None if model.cvxpy is None else built_of(model)
        name = None if built is None else built.name
    table = {entry.name: entry for entry in formulation.table()}
    if name is not None and name not in table:
        raise UsageError(f"no formulation is called {name!r}; it is one of {', '.join(table)}")
    return None if name is None else table[name]


def _declared_by(entry: formulation.FormulationEntry | None) -> Any:
    """What declares the program of a formulation that is solved as a `Problem`; the Boolean relaxation by default."""
    if entry is None or entry.name in ("fsp-m", "fsp-lambda"):
        return formulation.load("boolean").declare
    if "pool" in entry.declared:
        raise UsageError(f"{entry.name} needs a pool: give models.{entry.module}(data, pool=...), or another driver")
    return formulation.load(entry.name).declare


def _program_of_model(model: Formulation) -> Any:
    """What gives `conic` the program of a model: itself, or where rows were added the same formulation under them."""

    def declare(problem: Problem) -> Formulation:
        from mipfs.formulation.conic import built_of

        if problem is not model.problem:
            return cast(Formulation, redeclare_for(model, problem))
        # A new Formulation around its parts need not repeat all that it says.
        built = built_of(model)
        return model if built is None else built.formulation

    return declare


def refuse_changes(declare: Any) -> Any:
    """`declare` of a user's own, with what it makes checked: a row that was added there would not be the problem's.

    Raises
    ------
    RowError
        When it is called and adds constraints over the selection.
    """

    def checked(problem: Problem) -> Formulation:
        made: Formulation = declare(problem)
        if formulation.compile(made) is not made.problem:
            raise RowError(
                "the declared program has rows over sigma that its problem lacks; solve the Formulation itself"
            )
        return made

    return checked


def redeclare_for(model: Any, problem: Problem) -> Any:
    """A model of another problem on the same data: a CVXPY formulation declared anew, otherwise the problem itself.

    Parameters
    ----------
    model : Problem, Pyomo model or Formulation
    problem : Problem, such as the compiled model with more rows
    """
    if not isinstance(model, Formulation):
        return problem
    from mipfs.formulation.conic import built_of

    built = built_of(model)
    return replace(model, problem=problem) if built is None else built.declare(problem)
