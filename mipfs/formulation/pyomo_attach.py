"""The `Problem` attached to a Pyomo model, and whether the model outside ``select`` is still as it was built.

Bounds on the weights, and weights that are fixed at 0, are no change: they are read (`pyomo_weights.py`), and so is the
objective (`pyomo_objective.py`).
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyomo.environ as pyo

from mipfs.errors import RowError
from mipfs.problem import Problem

_NAMES = ("Param", "Set", "RangeSet", "Expression", "Suffix", "BuildCheck", "BuildAction", "ExternalFunction")
PASSIVE = frozenset(getattr(pyo, name) for name in _NAMES)
"""Kinds of components that hold data or names only: they may stand anywhere in a model."""
TRANSFORM = "write it as linear rows by pyo.TransformationFactory('gdp.bigm').apply_to(model.select) (or 'gdp.hull')"
"""What is said of a disjunction."""


@dataclass(eq=False)
class Attached:
    """What `attach` remembers: the problem, its selection variables, and the model as it was built."""

    problem: Problem
    sigma: Any
    origins: dict[Any, tuple[Any, str, str]]
    outside: dict[str, dict[Any, tuple[Any, ...]]] = field(default_factory=dict)
    weights: Any = None
    goal: Any = None

    def __deepcopy__(self, memo: dict[int, Any]) -> Attached:
        # A clone of the model shares the immutable problem; the expressions are the clone's own.
        sigma = copy.deepcopy(self.sigma, memo)
        origins = copy.deepcopy(self.origins, memo)
        weights = copy.deepcopy(self.weights, memo)
        goal = copy.deepcopy(self.goal, memo)
        return Attached(self.problem, sigma, origins, copy.deepcopy(self.outside, memo), weights, goal)


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
    model._mipfs = Attached(problem, model.select.sigma, origins, _outside(model), weights, goal)


def seen_again(model: Any) -> None:
    """Take what stands outside ``select`` now for what was built: a cut of ours is no change of a user's."""
    model._mipfs.outside = _outside(model)


def is_under(component: Any, block: Any) -> bool:
    """Whether a component lies in a block, or in a block inside of it."""
    parent = component.parent_block()
    while parent is not None and parent is not block:
        parent = parent.parent_block()
    return parent is block


def _outside(model: Any) -> dict[str, dict[Any, tuple[Any, ...]]]:
    """The state of every component outside ``select``: name -> index -> what must not change."""
    state: dict[str, dict[Any, tuple[Any, ...]]] = {}
    for component in _components(model):
        if component.ctype is pyo.Var:
            state[component.name] = {k: (v.domain, v.lb, v.ub, v.fixed) for k, v in component.items()}
        elif component.ctype is pyo.Constraint:
            state[component.name] = {k: (c.expr, c.active) for k, c in component.items()}
        else:
            state[component.name] = {None: (component.ctype, getattr(component, "active", True))}
    return state


def _components(model: Any) -> Iterator[Any]:
    for block in [model, *model.component_data_objects(pyo.Block, descend_into=True)]:
        if block is model.component("select") or is_under(block, model.component("select")):
            continue
        for component in block.component_objects(descend_into=False):
            if component.ctype not in PASSIVE and component.ctype is not pyo.Objective:
                yield component


def refuse_changes(model: Any, attached: Attached) -> None:
    """Refuse a model that was changed outside ``select``, by the name of the first such component."""
    select = model.component("select")
    if select is None or select.component("sigma") is not attached.sigma:
        raise RowError("select.sigma is not the one that was built; add rows under select, and leave sigma in place")
    if not (select.active and model.active):
        raise RowError("select is deactivated; deactivate single rows instead, for example select.cardinality")
    now = _outside(model)
    before = attached.outside
    for name in now:
        if name not in before:
            hint = (
                f"; {TRANSFORM}"
                if any("Disjunct" in getattr(one[0], "__name__", "") for one in now[name].values())
                else ""
            )
            raise RowError(f"{name} is new outside select; rows and extra variables belong under model.select{hint}")
    weights = None if attached.weights is None else attached.weights.name
    if weights is not None and model.find_component(weights) is not attached.weights:
        raise RowError(f"{weights} is not the one that was built; only what stands under model.select may be changed")
    for name, states in before.items():
        if name not in now:
            raise RowError(f"{name} was removed; only what stands under model.select may be changed")
        if name == weights and states.keys() == now[name].keys():
            continue  # their ends are read
        for key in states.keys() | now[name].keys():
            if not _same(states.get(key), now[name].get(key)):
                where = name if key is None else f"{name}[{key}]"
                if weights is not None and where == "svm.b":
                    raise RowError("svm.b was changed: the intercept has no bounds; bias=False leaves it out")
                raise RowError(f"{where} was changed; only what stands under model.select may be changed")


def _same(before: tuple[Any, ...] | None, now: tuple[Any, ...] | None) -> bool:
    # Expressions are compared by identity: Pyomo never changes one in place.
    if before is None or now is None:
        return before is now
    return all(
        a is b or (not hasattr(a, "is_expression_type") and bool(a == b)) for a, b in zip(before, now, strict=True)
    )
