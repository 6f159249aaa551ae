"""A CVXPY program as a Pyomo model: the solver's form of it, min ½ x'Px + q'x with b − Ax in a product of cones."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from typing import Any

import cvxpy
import numpy as np
import pyomo.environ as pyo
from scipy import sparse

from mipfs.data.names import make_unique
from mipfs.formulation.conic import Sigma
from mipfs.formulation.program import Formulation
from mipfs.formulation.pyomo_model import DeclaredModel
from mipfs.plumbing.arrays import terms_of
from mipfs.solvers.cones import Canonical


def pyomo_of(declared: Formulation) -> Any:
    """The Pyomo model of the program of a formulation, of the same value and sense.

    Parameters
    ----------
    declared : Formulation
        Its boolean and integer variables are binary and integer ones of the model.

    Returns
    -------
    pyomo.environ.ConcreteModel
        With ``x`` by the names of the program's variables, ``s`` of the cones, ``rows`` and ``cones``.
    """
    program, whole = _without_integers(declared.cvxpy)
    canonical = Canonical(program)
    columns = canonical.data["param_prob"].var_id_to_col
    names = _column_names(program, columns, canonical.data["c"].size)
    maximise = type(program.objective).__name__ == "Maximize"
    model = DeclaredModel(declared.problem.formulation or "program")
    model.x = pyo.Var(names)
    x = list(model.x.values())
    for key, k, domain in whole:
        x[columns[key] + k].domain = domain
    sign = -1.0 if maximise else 1.0
    cost = pyo.quicksum(c * x[k] for k, c in enumerate((sign * canonical.data["c"]).tolist()) if c)
    P = sparse.coo_array(canonical._upper_or_zero_matrix("P"))  # its upper triangle
    entries = zip(*(place.tolist() for place in P.coords), P.data.tolist(), strict=True)
    quadratic = pyo.quicksum(sign * (0.5 if i == j else 1.0) * a * x[i] * x[j] for i, j, a in entries)
    sense = pyo.maximize if maximise else pyo.minimize
    model.objective = pyo.Objective(expr=cost + quadratic + sign * canonical.offset, sense=sense)
    _add_cone_rows(model, canonical, x)
    return model


def _without_integers(program: Any) -> tuple[Any, list[tuple[int, int, Any]]]:
    """A copy of a program with its variables relaxed, and those that were not: id, place in it, domain."""
    if not program.is_mixed_integer():
        return program, []
    copied = pickle.loads(pickle.dumps(program))
    whole = []
    for v in copied.variables():
        for name, domain in (("boolean", pyo.Binary), ("integer", pyo.Integers)):
            which = v.attributes[name]
            if which:
                places = range(v.size) if which is True else np.ravel(getattr(v, f"{name}_idx")).tolist()
                whole += [(v.id, k, domain) for k in places]
                v.attributes[name] = False
    # a new program: the copy remembers that it had integers
    return cvxpy.Problem(copied.objective, list(copied.constraints)), whole


def _column_names(program: Any, columns: dict[int, int], size: int) -> list[str]:
    """Names of the columns: those of the program's variables, and numbers for what CVXPY adds."""
    names = [f"aux{k + 1}" for k in range(size)]
    for v in program.variables():
        if v.id not in columns:
            continue
        entries: Sequence[Any] = range(v.size)
        if isinstance(v, Sigma):
            entries = v.names
        start = columns[v.id]
        names[start : start + v.size] = [v.name()] if v.size == 1 else [f"{v.name()}[{entry}]" for entry in entries]
    return make_unique(names)


def _add_cone_rows(model: Any, canonical: Canonical, x: list[Any]) -> None:
    """``rows``: the equations and inequalities, and s = b − Ax of the cones; ``cones``: what holds of s."""
    A, b = sparse.csr_array(canonical.data["A"]), canonical.data["b"].tolist()
    sizes = canonical.cones
    linear = sizes["zero"] + sizes["nonneg"]
    model.rows = pyo.ConstraintList()
    model.cones = pyo.ConstraintList()
    model.s = pyo.Var(range(linear, len(b)))

    def activity(r: int) -> Any:
        return pyo.quicksum(a * x[k] for k, a in terms_of(A, r))

    for r in range(len(b)):
        if A.indptr[r] == A.indptr[r + 1]:
            if r >= linear:
                model.s[r].fix(b[r])
        elif r < linear:
            model.rows.add(activity(r) == b[r] if r < sizes["zero"] else activity(r) <= b[r])
        else:
            model.rows.add(model.s[r] + activity(r) == b[r])
    place = iter([model.s[r] for r in range(linear, len(b))])
    for size in sizes["soc"]:
        head, *rest = _take_next(place, size)
        if not head.fixed:
            head.setlb(0.0)
        model.cones.add(pyo.quicksum(part**2 for part in rest) <= head**2)
    for order in sizes["psd"]:
        _add_semidefinite_cone(model, list(_take_next(place, order * (order + 1) // 2)), order)
    for _ in range(sizes["exp"]):
        _add_exponential_cone(model, *_take_next(place, 3))


def _take_next(place: Iterator[Any], count: int) -> list[Any]:
    return [next(place) for _ in range(count)]


def _add_semidefinite_cone(model: Any, triangle: list[Any], order: int) -> None:
    """The upper triangle by columns, off the diagonal times √2, is that of LLᵀ."""
    name = f"L{len(list(model.component_objects(pyo.Var)))}"
    L = pyo.Var([(i, j) for i in range(order) for j in range(i + 1)])
    model.add_component(name, L)
    for i in range(order):
        L[i, i].setlb(0.0)
    pairs = [(i, j) for j in range(order) for i in range(j + 1)]
    for entry, (i, j) in zip(triangle, pairs, strict=True):
        product = pyo.quicksum(L[i, k] * L[j, k] for k in range(i + 1))
        model.cones.add(entry == (1.0 if i == j else np.sqrt(2.0)) * product)


def _add_exponential_cone(model: Any, x: Any, y: Any, z: Any) -> None:
    """y exp(x/y) ≤ z with y > 0."""
    if y.fixed and y.value > 0:
        model.cones.add(y.value * pyo.exp(x / y.value) <= z)
    elif z.fixed and z.value > 0:
        y.setlb(0.0)
        model.cones.add(x + y * pyo.log(y) - float(np.log(z.value)) * y <= 0.0)
    else:
        y.setlb(0.0)
        z.setlb(0.0)
        model.cones.add(x + y * pyo.log(y) - y * pyo.log(z) <= 0.0)
