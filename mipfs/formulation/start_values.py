"""A support to begin from, out of the values that stand in the variables of a declared model.

Only the support is taken: its classifier is computed anew, so that whatever stands there makes no answer wrong. What is
no support of the set S is left out, with a `StartWarning` that says why.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from mipfs.errors import NumericalError, StartWarning, UsageError
from mipfs.formulation.program import Formulation
from mipfs.problem import Problem

INTEGRALITY = 1e-6
"""How far from 0 or 1 a value of a binary may be: general solvers return such values."""
SMALL = 1e-6
"""A weight of less than this share of the largest is none: general solvers return such values for 0."""


def support_of(model: Any, problem: Problem) -> tuple[str, ...] | None:
    """The support that the values of a model say: σ, or where it has none the weights that are not 0.

    Parameters
    ----------
    model : Pyomo model of `mipfs.models`, or Formulation
    problem : Problem, the compiled model

    Returns
    -------
    tuple of names, or None, after a `StartWarning`, where there is none, or none that the rows allow

    Raises
    ------
    UsageError
        A `Problem`, which has no variables.
    """
    if isinstance(model, Problem):
        raise UsageError("warm_start takes the values of a model's variables; a Problem has none: give start=NAMES")
    try:
        found = _start_support(model, problem)
        _check(problem, found)
    except _BadStart as bad:
        warnings.warn(f"warm start: {bad}; it is left out", StartWarning, stacklevel=3)
        return None
    return found


class _BadStart(Exception):
    """Why values are no start."""


def _start_support(model: Any, problem: Problem) -> tuple[str, ...]:
    sigma, weights = _of_cvxpy(model) if isinstance(model, Formulation) else _of_pyomo(model)
    names = problem.atoms.names
    if sigma is not None and any(value is not None for value in sigma):
        chosen = []
        for name, value in zip(names, sigma, strict=True):
            if value is None or not math.isfinite(value):
                raise _BadStart(f"sigma[{name!r}] has no value, but others have")
            if min(abs(value), abs(value - 1.0)) > INTEGRALITY:
                raise _BadStart(f"sigma[{name!r}] is {value:g}, neither 0 nor 1")
            if value > 0.5:
                chosen.append(name)
        return tuple(chosen)
    if weights is None or all(value is None for value in weights) or not problem.selects_features:
        raise _BadStart("no variable has a value")
    sizes = np.array([math.nan if value is None else abs(value) for value in weights])
    if not np.all(np.isfinite(sizes)):
        raise _BadStart(f"w[{names[int(np.flatnonzero(~np.isfinite(sizes))[0])]!r}] has no value, but others have")
    return tuple(names[int(j)] for j in np.flatnonzero(sizes > SMALL * sizes.max(initial=0.0)))


def _of_pyomo(model: Any) -> tuple[Sequence[Any] | None, Sequence[Any] | None]:
    svm = model.component("svm")
    weights = None if svm is None else [w.value for w in svm.w.values()]
    return [s.value for s in model.select.sigma.values()], weights


def _of_cvxpy(formulation: Formulation) -> tuple[Sequence[Any] | None, Sequence[Any] | None]:
    w = formulation.variables.get("w")
    return _values_of_variable(formulation.sigma), _values_of_variable(w)


def _values_of_variable(variable: Any) -> Sequence[Any] | None:
    value = getattr(variable, "value", None)
    return None if value is None else np.asarray(value, dtype=float).ravel().tolist()


def _check(problem: Problem, names: Sequence[str]) -> None:
    """Refuse a support that is not in S."""
    sigma = np.zeros(problem.atoms.count, dtype=bool)
    sigma[problem.atoms_of(list(names))] = True
    said = ", ".join(names) or "nothing"
    try:
        allowed = problem.selection.oracle().contains(sigma)
    except NumericalError:
        raise _BadStart(f"it cannot be told whether the rows allow {said}") from None
    if not allowed:
        raise _BadStart(f"the rows do not allow the selection of {said}")
