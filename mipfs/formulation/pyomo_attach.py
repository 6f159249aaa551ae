"""The `Problem` attached to a Pyomo model, and whether the model outside ``select`` is still as it was built.

Bounds on the weights, weights that are fixed at 0 and rows over the weights alone are no change: they are read
(`pyomo_rows.py`, `pyomo_weight_rows.py`), and so is the objective, in which
``select.extra_cost`` stands (`pyomo_rows.py`).
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyomo.environ as pyo
from pyomo.core.expr.visitor import identify_variables

from mipfs.errors import RowError
from mipfs.formulation.pyomo_weight_rows import is_over_weights
from mipfs.problem import Problem

_NAMES = ("Param", "Set", "RangeSet", "Expression", "Suffix", "BuildCheck", "BuildAction", "ExternalFunction")
PASSIVE = frozenset(getattr(pyo, name) for name in _NAMES)
"""Kinds of components that hold data or names only: they may stand anywhere in a model."""
TRANSFORM = "write it as linear rows by pyo.TransformationFactory('gdp.bigm').apply_to(model.select) (or 'gdp.hull')"
"""What is said of a disjunction."""


@dataclass(eq=False)
class AttachedProblem:
    """What `attach` remembers: the problem, its selection variables, and the model as it was built.

    Attributes
    ----------
    built : Problem, as it was declared
    parameters : mapping of "C", "lam" and "M" to the model's parameters, of those that it has
    """

    built: Problem
    sigma: Any
    origins: dict[Any, tuple[Any, str, str]]
    outside: dict[str, dict[Any, tuple[Any, ...]]] = field(default_factory=dict)
    weights: Any = None
    goal: Any = None
    extra_cost: Any = None
    parameters: dict[str, Any] = field(default_factory=dict)
    _present: tuple[Any, Problem] | None = None

    @property
    def problem(self) -> Problem:
        """The problem with the present values of the parameters."""
        now = {name: _value(one) for name, one in self.parameters.items()}
        changed = {name: value for name, value in now.items() if value != _parameter_value(self.built, name)}
        if not changed:
            return self.built
        if self._present is None or self._present[0] != changed:
            self._present = changed, self.built.replace(**changed)
        return self._present[1]

    def __deepcopy__(self, memo: dict[int, Any]) -> AttachedProblem:
        # A clone of the model shares the immutable problem; the expressions are the clone's own.
        sigma = copy.deepcopy(self.sigma, memo)
        origins = copy.deepcopy(self.origins, memo)
        weights = copy.deepcopy(self.weights, memo)
        goal = copy.deepcopy(self.goal, memo)
        extra_cost = copy.deepcopy(self.extra_cost, memo)
        parameters = copy.deepcopy(self.parameters, memo)
        outside = copy.deepcopy(self.outside, memo)
        return AttachedProblem(self.built, sigma, origins, outside, weights, goal, extra_cost, parameters)


def _value(parameter: Any) -> Any:
    """What a parameter says now; of the costs of atoms those that are not 0."""
    if parameter.is_indexed():
        return {g: cost for g, one in parameter.items() if (cost := float(pyo.value(one)))}
    return pyo.value(parameter)


def _parameter_value(problem: Problem, name: str) -> Any:
    """The value of a parameter of a problem, as the model's `Param` of that name holds it."""
    value = getattr(problem, name)
    if name != "lam" or isinstance(value, (int, float)):
        return value
    each = value if isinstance(value, Mapping) else dict(zip(problem.atoms.names, value, strict=True))
    return {g: float(cost) for g, cost in each.items() if cost}


def attach(model: Any, problem: Problem, weights: Any = None) -> None:
    """Declare that a Pyomo model is a view of `problem`, as it stands now.

    Parameters
    ----------
    model : pyomo.environ.ConcreteModel
        With a block ``select`` whose ``sigma`` are binaries indexed by feature name.
    problem : Problem
    weights : pyomo Var by feature name, optional
        The weights on the scale of the problem's data, whose bounds are those of the problem.
    """
    origins: dict[Any, tuple[Any, str, str]] = {}
    if model.select.component("rows") is not None and problem.rows is not None:
        built = zip(model.select.rows.items(), problem.rows.names, problem.rows.origins, strict=True)
        origins = {key: (con.expr, name, origin) for (key, con), name, origin in built}
    goals = [one.expr for one in model.component_data_objects(pyo.Objective, active=True)]
    goal = goals[0] if len(goals) == 1 else None
    extra_cost = model.select.component("extra_cost")
    parameters = {name: one for name in ("C", "lam", "M") if (one := model.component(name)) is not None}
    outside = _state_outside_select(model)
    model._mipfs = AttachedProblem(problem, model.select.sigma, origins, outside, weights, goal, extra_cost, parameters)


def seen_again(model: Any, component: Any) -> None:
    """Take a component outside ``select`` as it is now for what was built: a cut of ours is no change of a user's."""
    model._mipfs.outside[component.name] = _state_outside_select(model)[component.name]


def rows_outside(model: Any, attached: AttachedProblem) -> Iterator[Any]:
    """The active rows over the selection that a user put elsewhere in the model than under ``select``."""
    for component in _model_components(model):
        if component.ctype is pyo.Constraint and component.name not in attached.outside:
            yield from (con for con in component.values() if con.active)


def is_under(component: Any, block: Any) -> bool:
    """Whether a component lies in a block, or in a block inside of it."""
    parent = component.parent_block()
    while parent is not None and parent is not block:
        parent = parent.parent_block()
    return parent is block


def _state_outside_select(model: Any) -> dict[str, dict[Any, tuple[Any, ...]]]:
    """The state of every component outside ``select``: name -> index -> what must not change."""
    state: dict[str, dict[Any, tuple[Any, ...]]] = {}
    for component in _model_components(model):
        if component.ctype is pyo.Var:
            state[component.name] = {k: (v.domain, v.lb, v.ub, v.fixed) for k, v in component.items()}
        elif component.ctype is pyo.Constraint:
            state[component.name] = {k: (c.expr, c.active) for k, c in component.items()}
        else:
            state[component.name] = {None: (component.ctype, getattr(component, "active", True))}
    return state


def _model_components(model: Any) -> Iterator[Any]:
    for block in [model, *model.component_data_objects(pyo.Block, active=True, descend_into=True)]:
        if block is model.component("select") or is_under(block, model.component("select")):
            continue
        for component in block.component_objects(descend_into=False):
            if component.ctype not in PASSIVE and component.ctype is not pyo.Objective:
                yield component


def refuse_changes(model: Any, attached: AttachedProblem) -> None:
    """Refuse a model that was changed outside ``select``, by the name of the first such component."""
    select = model.component("select")
    if select is None or select.component("sigma") is not attached.sigma:
        raise RowError("select.sigma is not the one that was built; add rows under select, and leave sigma in place")
    if select.component("extra_cost") is not attached.extra_cost:
        raise RowError(
            "select.extra_cost is not the one that was built, which stands in the objective; change what it says, as "
            "in model.select.extra_cost.set_value(3*model.select.device)"
        )
    _refuse_parameters(model, attached)
    if not (select.active and model.active):
        raise RowError("select is deactivated; deactivate single rows instead, for example select.cardinality")
    now = _state_outside_select(model)
    before = attached.outside
    for name in now:
        if name not in before:
            component = model.find_component(name)
            if component.ctype is pyo.Block:  # what it holds is looked at by itself, if it is active
                continue
            if component.ctype is pyo.Constraint:
                _refuse_mixed(component, select, attached.weights)
                continue
            hint = (
                f"; {TRANSFORM}"
                if any("Disjunct" in getattr(one[0], "__name__", "") for one in now[name].values())
                else ""
            )
            raise RowError(f"{name} is new outside select; extra variables belong under model.select{hint}")
    weights = None if attached.weights is None else attached.weights.name
    if weights is not None and model.find_component(weights) is not attached.weights:
        raise RowError(f"{weights} is not the one that was built; only what stands under model.select may be changed")
    for name, states in before.items():
        if name not in now:
            raise RowError(f"{name} was removed; only what stands under model.select may be changed")
        if name == weights and states.keys() == now[name].keys():
            continue  # their ends are read
        for key in states.keys() | now[name].keys():
            if not _same_entries(states.get(key), now[name].get(key)):
                where = name if key is None else f"{name}[{key}]"
                if weights is not None and where == "svm.b":
                    raise RowError("svm.b was changed: the intercept has no bounds; bias=False leaves it out")
                raise RowError(f"{where} was changed; only what stands under model.select may be changed")


def _refuse_parameters(model: Any, attached: AttachedProblem) -> None:
    """Refuse a parameter that another component took the place of."""
    for name, one in attached.parameters.items():
        if model.component(name) is not one:
            raise RowError(f"{name} is not the parameter that was built; give that a value, as in model.{name} = 2")


def _refuse_mixed(component: Any, select: Any, weights: Any) -> None:
    """Refuse new rows that are about anything but what stands under ``select``, or the weights alone."""
    for con in component.values():
        if not con.active or is_over_weights(con, weights):
            continue
        variables = list(identify_variables(con.body, include_fixed=True))
        others = [v.name for v in variables if not is_under(v, select)]
        if others:
            mixed = len(others) < len(variables)
            what = f"mixes the selection with {others[0]}" if mixed else f"is about {others[0]}"
            raise RowError(f"{con.name} is new outside select and {what}; rows over the selection may stand anywhere")


def _same_entries(before: tuple[Any, ...] | None, now: tuple[Any, ...] | None) -> bool:
    # Expressions are compared by identity: Pyomo never changes one in place.
    if before is None or now is None:
        return before is now
    return all(
        a is b or (not hasattr(a, "is_expression_type") and bool(a == b)) for a, b in zip(before, now, strict=True)
    )
