"""The incumbent of a result in the variables of the Pyomo or CVXPY model that it solves.

A model holds the classifier on the scale of its data: σ, the weights of its columns, the intercept, the slacks, and
the user's extra variables. Multipliers of a dual program (α, μ, κ) are no part of a classifier and stay as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mipfs.errors import UsageError
from mipfs.formulation import compile
from mipfs.formulation.program import ClassifierPoint, Formulation
from mipfs.problem import Problem

if TYPE_CHECKING:
    from mipfs.result.result import Result


def load_into(result: Result, model: Any) -> None:
    """Put the incumbent of a result into the variables of a model.

    Parameters
    ----------
    result : Result
    model : Pyomo model of `mipfs.models`, or Formulation

    Raises
    ------
    UsageError
        No classifier was found, or it is one of other features than the model's.
    """
    if not result.has_classifier:
        raise UsageError(f"there is no classifier to load: the status is {result.status.name}")
    if isinstance(model, Problem):
        raise UsageError("a Problem has no variables to load a result into; give a Pyomo model or a Formulation")
    point = point_of(result, compile(model))
    if isinstance(model, Formulation):
        from mipfs.formulation.cvxpy_values import load

        load(model, point)
    else:
        from mipfs.formulation.pyomo_values import load as load_pyomo

        load_pyomo(model, point)


def point_of(result: Result, problem: Problem) -> ClassifierPoint:
    """The classifier of a result on the scale of a problem's data.

    Raises
    ------
    UsageError
        It is one of other features.
    """
    data = problem.data
    atoms = problem.atoms
    sigma = np.zeros(atoms.count)
    on_user_scale = np.zeros(data.n_features)
    sigma[problem.atoms_of(result.selected)] = 1.0
    on_user_scale[data.columns_of(list(result.weights))] = list(result.weights.values())
    w = on_user_scale * data.scale
    b = result.intercept + float(on_user_scale @ data.shift)
    if data.constant:  # the intercept is the weight of the last column
        sigma[-1], w[-1], b = 1.0, b / data.constant, 0.0
    columns = atoms.columns(np.arange(atoms.count))
    chosen = columns.scale * sigma[columns.atom]
    # a feature that several atoms use: of all ways to split its weight the one of least ½ Σ v²
    share = np.bincount(columns.ids, chosen**2, minlength=data.n_features)[columns.ids]
    v = np.divide(chosen * w[columns.ids], share, out=np.zeros(chosen.size), where=share > 0)
    margins = data.y * data.block().scores(w, b)
    rho = -2.0 * result.objective if problem.margin == "rho" else 1.0
    values = [result.extra.get(name, {}).get("value") for name in problem.named_rows().extra.names]
    t = np.bincount(columns.atom, v**2, minlength=atoms.count).astype(float)
    return ClassifierPoint(sigma, v, t, w, b, rho, margins, tuple(values))
