"""A classifier in the variables of a Pyomo model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyomo.environ as pyo

from mipfs.data.bounds import FREE
from mipfs.formulation.program import ClassifierPoint
from mipfs.formulation.pyomo_rows import read
from mipfs.problem import Problem


def load(model: Any, point: ClassifierPoint) -> None:
    """Put a classifier into ``select.sigma``, the block ``svm`` and the user's extra variables; fixed ones stay.

    Parameters
    ----------
    model : Pyomo model with an attached problem
    point : ClassifierPoint, on the scale of its data; its extra variables in the order of `pyomo_rows.compile`
    """
    for variable, value in values_of(model, point):
        variable.set_value(value, skip_validation=True)


def values_of(model: Any, point: ClassifierPoint) -> list[tuple[Any, float]]:
    """The variables that `load` gives a value, with it."""
    found = list(zip(model.select.sigma.values(), point.sigma.round(), strict=True))
    if model.component("svm") is not None:  # RMP has none
        found += _of_svm(model.svm, model._mipfs.problem, point)
    extras = read(model).extras
    found += [(variable, value) for variable, value in zip(extras, point.extra, strict=True) if value is not None]
    return [(variable, float(value)) for variable, value in found if not variable.fixed]


def _of_svm(svm: Any, problem: Problem, point: ClassifierPoint) -> Iterator[tuple[Any, float]]:
    slacks = point.slacks(problem.loss)
    values: tuple[tuple[str, Any], ...] = (
        ("w", _between_ends(svm.w.values(), point.v)),
        ("t", point.t),
        ("xi", slacks),
        ("b", [point.b]),
        ("offset", [point.b - float(problem.data.center @ point.w)]),
        ("rho", [point.rho]),
        ("ell", np.logaddexp(0.0, slacks)),
    )
    for name, several in values:
        component = svm.component(name)
        if component is not None and component.ctype is pyo.Var:  # without a bias b is a parameter
            yield from zip(component.values(), several, strict=True)


def _between_ends(variables: Iterable[Any], values: Iterable[float]) -> Iterator[float]:
    """Values between the bounds of their variables, which the way from the user's scale may leave by an ulp."""
    for variable, value in zip(variables, values, strict=True):
        low, high = (float(end) if end is not None else none for end, none in zip(variable.bounds, FREE, strict=True))
        yield min(max(float(value), low), high)
