"""Rows over the weights ``svm.w`` alone that a user put anywhere into a Pyomo model."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pyomo.environ as pyo
from pyomo.core.expr.visitor import identify_variables
from pyomo.repn import generate_standard_repn

from mipfs.errors import RowError
from mipfs.formulation.weight_ends import ModelRow

Rows = list[ModelRow]


def is_over_weights(con: Any, weights: Any) -> bool:
    """Whether a constraint is about weights and nothing else."""
    if weights is None:
        return False
    held = {id(w) for w in weights.values()}
    used = {id(v) for v in identify_variables(con.body, include_fixed=True)}
    return bool(used) and used <= held


def read_added_weight_rows(model: Any, weights: Any, built: Any) -> Rows:
    """The active rows over the weights alone that were not built, as a model has them: on the scale of the data.

    Parameters
    ----------
    model : Pyomo model
    weights : Pyomo Var of the weights, or None
    built : names of the components outside ``select`` that were built

    Raises
    ------
    RowError
        A row that is not linear, has a number that is not finite, or treats copies of a feature apart.
    """
    return [_row_of_constraint(con, weights) for con in _find_rows(model, weights, built)]


def _find_rows(model: Any, weights: Any, built: Any) -> Iterator[Any]:
    for con in model.component_data_objects(pyo.Constraint, active=True, descend_into=True):
        if con.parent_component().name not in built and is_over_weights(con, weights):
            yield con


def _row_of_constraint(con: Any, weights: Any) -> ModelRow:
    """Coefficients by feature, and the ends."""
    lower, body, upper = con.to_bounded_expression(evaluate_bounds=True)
    repn = generate_standard_repn(body, compute_values=True, quadratic=False)
    if repn.nonlinear_expr is not None:
        raise RowError(f"{con.name} is not linear: {con.expr}")
    by_id = {id(w): key for key, w in weights.items()}
    given: dict[str, dict[Any, float]] = {}
    for v, a in zip(repn.linear_vars, repn.linear_coefs, strict=True):
        key = by_id[id(v)]
        copies = given.setdefault(str(key[1] if isinstance(key, tuple) else key), {})
        copies[key] = copies.get(key, 0.0) + float(a)
    number: dict[str, int] = {}
    for key in weights:
        name = str(key[1] if isinstance(key, tuple) else key)
        number[name] = number.get(name, 0) + 1
    for name, copies in given.items():
        if len(set(copies.values())) > 1 or len(copies) < number[name]:
            raise RowError(f"{con.name}: {name!r} stands in several atoms, and its weight is the sum of all copies")
    constant = float(repn.constant)
    ends = (absent if end is None else float(end) - constant for end, absent in ((lower, -math.inf), (upper, math.inf)))
    return {name: next(iter(copies.values())) for name, copies in given.items()}, *ends, con.name
