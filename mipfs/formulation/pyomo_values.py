"""A classifier in the variables of a Pyomo model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyomo.environ as pyo

from mipfs.data.bounds import FREE
from mipfs.formulation.point import Point
from mipfs.formulation.pyomo_rows import read
from mipfs.problem import Problem


def load(model: Any, point: Point) -> None:
    """Put a classifier into ``select.sigma``, the block ``svm`` and the user's extra variables; fixed ones stay.

    Parameters
    ----------
    model : Pyomo model with an attached problem
    point : Point, on the scale of its data; its extra variables in the order of `pyomo_rows.compile`
    """
    _put(model.select.sigma.values(), point.sigma.round())
    if model.component("svm") is not None:  # RMP has none
        _load_svm(model.svm, model._mipfs.problem, point)
    extras = read(model).extras
    known = [(variable, value) for variable, value in zip(extras, point.extra, strict=True) if value is not None]
    _put([variable for variable, _ in known], [value for _, value in known])


def _load_svm(svm: Any, problem: Problem, point: Point) -> None:
    slacks = point.slacks(problem.loss)
    _put(svm.w.values(), _between_ends(svm.w.values(), point.v))
    _put(svm.t.values(), point.t)
    _put(svm.xi.values(), slacks)
    more: tuple[tuple[str, Any], ...] = (
        ("b", [point.b]),
        ("offset", [point.b - float(problem.data.center @ point.w)]),
        ("rho", [point.rho]),
        ("ell", np.logaddexp(0.0, slacks)),
    )
    for name, value in more:
        component = svm.component(name)
        if component is not None and component.ctype is pyo.Var:  # without a bias b is a parameter
            _put(component.values(), value)


def _between_ends(variables: Iterable[Any], values: Iterable[float]) -> Iterator[float]:
    """Values between the bounds of their variables, which the way from the user's scale may leave by an ulp."""
    for variable, value in zip(variables, values, strict=True):
        low, high = (float(end) if end is not None else none for end, none in zip(variable.bounds, FREE, strict=True))
        yield min(max(float(value), low), high)


def _put(variables: Iterable[Any], values: Iterable[Any]) -> None:
    for variable, value in zip(variables, values, strict=True):
        if not variable.fixed:
            variable.set_value(float(value), skip_validation=True)
