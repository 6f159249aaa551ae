"""A classifier in the variables of a CVXPY formulation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import cvxpy
import numpy as np

from mipfs.formulation.conic import built_of
from mipfs.formulation.cvxpy_rows import read_added
from mipfs.formulation.program import ClassifierPoint, Formulation
from mipfs.plumbing.arrays import scatter


def load(formulation: Formulation, point: ClassifierPoint) -> None:
    """Put a classifier into the variables that a formulation has for it, and into the user's own.

    Parameters
    ----------
    formulation : Formulation
    point : ClassifierPoint, on the scale of its data; its extra variables in the order of `cvxpy_rows.compile`
    """
    problem = formulation.problem
    built = built_of(formulation)
    if "rho" not in formulation.variables:
        point = point.unit()  # the program is declared for a margin of 1
    values: Mapping[str, Any] = {"w": point.w, "b": point.b, "rho": point.rho}
    if built is not None:
        values = built.values(problem, point)
    for name, value in values.items():
        _set_value(formulation.variables.get(name), value, point)
    if isinstance(formulation.sigma, cvxpy.Variable):
        formulation.sigma.value = point.sigma.reshape(formulation.sigma.shape)
    own = 0 if problem.rows is None else len(problem.rows.extra)
    u = [v for v in formulation.cvxpy.variables() if built is not None and v.id in built.variables and v.name() == "u"]
    entries = [(v, k) for v in u for k in range(v.size)] if u else [(None, k) for k in range(own)]
    _put_entries([*entries, *read_added(formulation).extras], point.extra)
    if built is not None and built.extras:  # of a program that was declared anew: the user's own, which u stands for
        _put_entries(list(built.extras), point.extra[own - len(built.extras) : own])


def _set_value(variable: Any, value: Any, point: ClassifierPoint) -> None:
    """Give a variable its value; an expression of one variable gives it to that one."""
    if isinstance(variable, cvxpy.Variable):
        if variable.size == np.size(value):
            variable.save_value(np.reshape(value, variable.shape))
        return
    leaves = variable.variables() if isinstance(variable, cvxpy.Expression) else []
    if len(leaves) != 1:
        return
    (leaf,) = leaves
    if leaf.shape == (point.v.size,):  # the weights of the atoms' columns
        leaf.save_value(point.v)


def _put_entries(entries: list[tuple[Any, int]], values: tuple[float | None, ...]) -> None:
    found: dict[int, tuple[Any, dict[int, float]]] = {}
    for (variable, k), value in zip(entries, values, strict=True):
        if variable is not None and value is not None:
            found.setdefault(variable.id, (variable, {}))[1][k] = value
    for variable, parts in found.values():
        flat = scatter(variable.size, list(parts), list(parts.values()))
        variable.save_value(flat.reshape(variable.shape, order="F"))
