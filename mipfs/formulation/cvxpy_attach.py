"""What a CVXPY formulation was when it was declared, and whether it is still that but for constraints that were added.

The variables of a declared program carry the mark: it survives ``dataclasses.replace``, a new ``cvxpy.Problem`` of
the same parts, a new `Formulation` around it, copies and pickles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import cvxpy

from mipfs.errors import RowError
from mipfs.formulation.point import ClassifierPoint, shared_values
from mipfs.formulation.program import Formulation
from mipfs.problem import Problem

MARK = "_mipfs_built"
Values = Callable[[Problem, ClassifierPoint], Mapping[str, Any]]
"""What of a formulation's variables a classifier gives, by name."""


class Sigma(cvxpy.Variable):
    """σ of a formulation; ``sigma["name"]`` and ``sigma[["name", "name"]]`` are its entries by name.

    Where the program is a dual one, σ is no variable of it but a multiplier: its `value` is then
    ``matrix @ (dual value of row)``. Constraints over it are rows of the selection all the same.

    Parameters
    ----------
    problem : Problem
    row : cvxpy constraint, optional
    matrix : (count, k) matrix, optional
    boolean : bool
    """

    def __init__(self, problem: Problem, row: Any = None, matrix: Any = None, *, boolean: bool = False) -> None:
        self._problem = problem
        self._row = row
        self._matrix = matrix
        self._loaded = (None, None)
        super().__init__(problem.atoms.count, name="sigma", boolean=boolean)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            return super().__getitem__(int(self._problem.atoms_of([key])[0]))
        if isinstance(key, (list, tuple)) and key and all(isinstance(name, str) for name in key):
            return super().__getitem__(self._problem.atoms_of(list(key)))
        return super().__getitem__(key)

    def copy(self, args: Any = None, id_objects: Any = None) -> Any:
        """Itself, or what takes its place; CVXPY asks for it where it makes a solver's form of a program.

        Raises
        ------
        RowError
            It is a multiplier: a constraint over it would bind nothing.
        """
        if self.is_multiplier and not (id_objects and id(self) in id_objects):
            raise RowError(
                "sigma is a multiplier of this dual program, in which a constraint over it binds nothing; add it by "
                "formulation.with_constraints([...]), which declares the program anew, and solve that one's cvxpy"
            )
        return super().copy(args, id_objects)  # type: ignore[no-untyped-call]

    @property
    def is_multiplier(self) -> bool:
        """Whether the program is a dual one, whose multiplier it is."""
        return self._row is not None

    @property
    def names(self) -> Sequence[str]:
        """The names of its entries."""
        return self._problem.atoms.names

    @property
    def value(self) -> Any:
        """σ after a solve."""
        if self._row is None:
            return super().value
        dual = self._row.dual_value
        if self._loaded[0] is not None and self._loaded[1] is self._row.dual_variables[0].value:
            return self._loaded[0]
        return None if dual is None else self._matrix @ dual.ravel()

    @value.setter
    def value(self, value: Any) -> None:
        if self._row is None:
            self.save_value(value)
        else:  # until the program is solved again
            self._loaded = (value, self._row.dual_variables[0].value)


class ConstraintList(list[Any]):
    """The constraints of a declared program; of CVXPY's own list a copy grows, and that would pass a row over."""

    def append(self, _: Any) -> None:
        """Refused, as are its like: `RowError`."""
        raise RowError(
            "the list of constraints of a declared program does not grow; add rows by "
            "formulation.with_constraints([...]), which returns a formulation that has them"
        )

    def extend(self, _: Any) -> None:
        """As `append`."""
        self.append(_)

    def insert(self, _: Any, constraint: Any) -> None:
        """As `append`."""
        self.append(constraint)

    def __iadd__(self, other: Any) -> Self:  # type: ignore[misc]
        self.append(other)
        return self


class DeclaredProgram(cvxpy.Problem):
    """The program of a formulation of the package."""

    @property
    def constraints(self) -> list[Any]:
        """The constraints, a list that does not grow."""
        return ConstraintList(super().constraints)


@dataclass(frozen=True, eq=False)
class BuiltFormulation:
    """A formulation as it was declared.

    Attributes
    ----------
    name : str, its name in the table of formulations
    declare : callable, declares it anew of another problem
    values : callable, what of its variables a classifier gives
    formulation : Formulation
    objective : tuple of the kind of the objective and its expression
    constraints : tuple of (constraint, its arguments)
    variables : frozenset of int, the ids of the program's variables and of σ
    origin : tuple of (Formulation, constraints), or None
        Of a program that was declared anew: the one before, and the rows that were added to it.
    extras : tuple of (variable, int), the user's own entries that are the last extra variables of its problem
    extra_cost : cvxpy expression, or None
        What these cost, of a program that was declared anew with it.
    """

    name: str
    declare: Callable[[Problem], Formulation]
    values: Values
    formulation: Formulation
    objective: tuple[type, Any]
    constraints: tuple[tuple[Any, tuple[Any, ...]], ...]
    variables: frozenset[int]
    origin: tuple[Formulation, tuple[Any, ...]] | None = None
    extras: tuple[tuple[Any, int], ...] = ()
    extra_cost: Any = None


def attach(
    declared: Formulation, name: str, declare: Callable[[Problem], Formulation], values: Values = shared_values
) -> Formulation:
    """Remember what a formulation is; returns it, with a program whose constraints are given.

    Parameters
    ----------
    declared : Formulation
    name : str, of the table of formulations
    declare : callable, declares the same formulation of another problem; to be pickled, so no lambda
    values : callable, its variables' values at a `ClassifierPoint`, by their names in ``variables``; likewise
    """
    program = DeclaredProgram(declared.cvxpy.objective, list(declared.cvxpy.constraints))
    declared = replace(declared, cvxpy=program)
    variables = [*program.variables(), *_expression_leaves(declared.sigma)]
    constraints = tuple((one, tuple(one.args)) for one in program.constraints)
    goal: Any = program.objective
    objective = type(goal), goal.args[0]
    built = BuiltFormulation(
        name, declare, values, declared, objective, constraints, frozenset(v.id for v in variables)
    )
    for variable in variables:
        setattr(variable, MARK, built)
    return declared


def remember_origin(
    declared: Formulation,
    origin: tuple[Formulation, tuple[Any, ...]],
    extras: tuple[tuple[Any, int], ...],
    extra_cost: Any = None,
) -> Formulation:
    """Remember what a formulation was declared anew of; returns it."""
    built = built_of(declared)
    assert built is not None
    built = replace(built, origin=origin, extras=extras, extra_cost=extra_cost)
    for variable in [*declared.cvxpy.variables(), *_expression_leaves(declared.sigma)]:
        setattr(variable, MARK, built)
    return declared


def built_of(formulation: Formulation) -> BuiltFormulation | None:
    """What a formulation of the package was when it was declared; None for a program of a user's own."""
    variables = [*_expression_leaves(formulation.sigma), *formulation.cvxpy.variables()] if formulation.cvxpy else []
    found = {id(getattr(v, MARK)): getattr(v, MARK) for v in variables if hasattr(v, MARK)}
    if len(found) > 1:
        names = " and ".join(sorted(built.name for built in found.values()))
        raise RowError(f"the program mixes variables of two formulations ({names}); declare them apart")
    return next(iter(found.values()), None)


def added_constraints(formulation: Formulation, built: BuiltFormulation) -> list[Any]:
    """The constraints that were added since a formulation was declared; its objective is read apart.

    Raises
    ------
    RowError
        Anything else was changed; the message names it.
    """
    before = built.formulation
    program = formulation.cvxpy
    for name in ("problem", "sigma", "solver", "lagrangian", "is_relaxation"):
        if getattr(formulation, name) is not getattr(before, name) and formulation is not before:
            if name in ("solver", "lagrangian", "is_relaxation") and _is_default(formulation, name):
                continue  # a new Formulation around the same program need not repeat them
            raise RowError(f"the {name} of {built.name} was changed; {_REMEDY}")
    now = {id(one): one for one in program.constraints}
    for one, arguments in built.constraints:
        if id(one) not in now:
            raise RowError(f"the constraint {text_of(one)!r} of {built.name} was dropped; {_REMEDY}")
        if len(one.args) != len(arguments) or any(a is not b for a, b in zip(one.args, arguments, strict=True)):
            raise RowError(f"the constraint {text_of(one)!r} of {built.name} was changed; {_REMEDY}")
    old = {id(one) for one, _ in built.constraints}
    return [one for key, one in now.items() if key not in old]


_REMEDY = "only constraints over sigma and variables of your own may be added"


def text_of(constraint: Any, width: int = 60) -> str:
    """A constraint in one short line: its label, or what it says."""
    label = getattr(constraint, "label", None)
    said = label or (constraint.name() if hasattr(constraint, "name") else repr(constraint))
    text = " ".join(str(said).split())
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _is_default(formulation: Formulation, name: str) -> bool:
    return bool(getattr(formulation, name) == type(formulation).__dataclass_fields__[name].default)


def _expression_leaves(expression: Any) -> Iterator[Any]:
    if isinstance(expression, cvxpy.Expression):
        yield from expression.variables()
