"""Draws as users state them: more rows over more extra variables, in Pyomo, in CVXPY, and programs of one's own.

A draw of `tests.draws` becomes another: rows over up to three whole and real extra variables in place of its own, and
instead of its `Problem` a model that says the same: the algebraic one with rows under ``select``, a formulation of the
table with rows by ``with_constraints``, or a CVXPY program that is written here. What must hold stays what it was.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from tests.draws import Draw, Rng

ROWS, DECLARED = 0.35, 0.5
"""How often rows over more extra variables are drawn, and how often a model instead of a Problem."""
WITH_SIGMA = ("fgm", "boolean", "nmmkl", "big-m", "decomposed-sdp", "reduced-mkl", "structural")
WITHOUT_SIGMA = ("plain-svm", "qcqp-ssvm", "sdp-ssvm", "onsvm")
"""Formulations in CVXPY: those to which rows over σ are added, and those that leave them out."""


def declared(draw: Draw) -> Draw:
    """The draw, or another of its seed with more rows, stated as a model."""
    rng = np.random.default_rng([58, draw.seed])
    problem, count, tags = draw.problem, len(draw.names), list(draw.tags)
    if rng.random() < ROWS:
        problem = problem.replace(rows=rows_over_extras(rng, count))
        kinds = problem.rows.extra.integer
        tags = [tag for tag in tags if tag not in ("rows", "extra variable")] + ["rows over extras"]
        tags += ["whole extra"] * bool(kinds.any()) + ["real extra"] * bool((~kinds).any())
    found = replace(draw, problem=problem)
    if draw.way == "slices" and draw.driver == "branch" and problem.rows.extra.integer.any():
        found = replace(found, way="whole")  # it keeps no state of these
    if rng.random() < DECLARED:
        ways = [_pyomo, _cvxpy, *[_own] * _can_be_ones_own(found)]
        stated, tag = ways[int(rng.integers(len(ways)))](rng, found)
        return replace(found, stated=stated, tags=(*tags, tag))
    return replace(found, tags=tuple(tags))


def rows_over_extras(rng: Rng, count: int) -> Any:
    """Two or three rows over one to three extra variables, whole with bounds, whole without, or real."""
    from mipfs.selection.selection import Extras, Rows

    e, r = int(rng.integers(1, 4)), int(rng.integers(2, 4))
    kinds = [str(rng.choice(["whole", "real"])) for _ in range(e)]
    if rng.random() < 0.2:
        kinds[0] = "any whole"
    low = [-math.inf if kind == "any whole" else float(rng.choice([0.0, -1.0])) for kind in kinds]
    high = [math.inf if kind == "any whole" else float(rng.choice([1.0, 2.0, 2.5])) for kind in kinds]
    A = np.round(rng.uniform(-1.0, 3.0, (r, count + e)), 1)
    A[:, count:] = np.round(rng.uniform(-2.0, 2.0, (r, e)), 1) * (rng.random((r, e)) < 0.7)
    lb, ub = np.full(r, -np.inf), np.full(r, np.inf)
    for i in range(r):
        if rng.random() < 0.3:  # a sum of features that is what whole variables make of it
            A[i, :count] = (rng.random(count) < 0.7).astype(float)
            A[i, count:] = [-float(rng.integers(0, 3)) for _ in kinds]
            lb[i] = ub[i] = float(rng.integers(0, 2))
        elif rng.random() < 0.3:
            lb[i] = round(float(rng.uniform(0.0, 2.0)), 1)
        else:
            ub[i] = round(float(rng.uniform(0.0, 3.0)), 1)
    extra = Extras(
        tuple(f"extra_{k}" for k in range(e)), np.array(low), np.array(high), np.array([k != "real" for k in kinds])
    )
    return Rows(sparse.csr_array(A), lb, ub, tuple(f"r{i}" for i in range(r)), ("",) * r, extra)


# Models ---------------------------------------------------------------------------------------------------


def _bare(problem: Any) -> Any:
    """A problem without the rows and the forced features, which a user then adds."""
    from mipfs.selection.selection import Rows

    return problem.replace(rows=Rows.empty(problem.atoms.count), forced_in=(), forced_out=())


def _pyomo(rng: Rng, draw: Draw) -> tuple[Any, str]:
    """The algebraic model with what stands under ``select``, or the one of its measure's problem."""
    from mipfs import formulation

    problem = draw.problem
    if problem.loss == "structural":
        return _cvxpy(rng, draw)
    model = formulation.algebraic_model(_bare(problem))
    add_rows(model, problem.rows)
    for name in problem.forced_in:
        model.select.sigma[name].fix(1)
    for name in problem.forced_out:
        model.select.sigma[name].setub(0)
    return model, "in Pyomo"


def add_rows(model: Any, rows: Any) -> None:
    """Put rows and their extra variables under ``select`` of a Pyomo model."""
    import pyomo.environ as pyo

    sigma, own = list(model.select.sigma.values()), []
    for k, name in enumerate(rows.extra.names):
        domain = pyo.Integers if rows.extra.integer[k] else pyo.Reals
        low, high = (float(end[k]) if math.isfinite(end[k]) else None for end in (rows.extra.lb, rows.extra.ub))
        variable = pyo.Var(domain=domain, bounds=(low, high))
        model.select.add_component(name, variable)
        own.append(variable)
    for i, row in enumerate(rows.matrix.toarray().tolist()):
        body = sum(a * v for a, v in zip(row, [*sigma, *own], strict=True) if a) + 0.0 * sigma[0]
        low, high = (float(end) if math.isfinite(end) else None for end in (rows.lb[i], rows.ub[i]))
        expr = body == low if low == high else pyo.inequality(low, body, high)
        model.select.add_component(f"row{i}", pyo.Constraint(expr=expr))


def constraints(problem: Any, sigma: Any) -> list[Any]:
    """The rows and the forced features of a problem over a σ in CVXPY."""
    import cvxpy

    cp: Any = cvxpy
    extra, rows = problem.rows.extra, problem.rows
    own = [
        cp.Variable(name=name, integer=bool(extra.integer[k]), bounds=[float(extra.lb[k]), float(extra.ub[k])])
        for k, name in enumerate(extra.names)
    ]
    found = []
    for i, row in enumerate(rows.matrix.toarray()):
        body = row[: problem.atoms.count] @ sigma
        body = body + sum(float(a) * v for a, v in zip(row[problem.atoms.count :], own, strict=True) if a)
        if rows.lb[i] == rows.ub[i]:
            found.append(body == rows.lb[i])
            continue
        found += [body >= rows.lb[i]] if math.isfinite(rows.lb[i]) else []
        found += [body <= rows.ub[i]] if math.isfinite(rows.ub[i]) else []
    at = {name: k for k, name in enumerate(problem.atoms.names)}
    found += [sigma[at[name]] == 1 for name in problem.forced_in]
    return found + [sigma[at[name]] == 0 for name in problem.forced_out]


def _cvxpy(rng: Rng, draw: Draw) -> tuple[Any, str]:
    """A formulation of the table: with rows added, or of the problem with its rows where it has no σ."""
    from mipfs import formulation
    from mipfs.errors import UsageError

    problem = draw.problem
    for name in rng.permutation([*WITH_SIGMA, *WITHOUT_SIGMA]).tolist():
        bare = _bare(problem) if name in WITH_SIGMA else problem
        try:
            formulation.check(bare, name)
        except UsageError:
            continue
        if (
            name in WITHOUT_SIGMA
            and name != "plain-svm"
            and (problem.M is None or (name == "onsvm" and problem.M == 0))
        ):
            continue
        more: tuple[Any, ...] = ()
        if name == "reduced-mkl":
            if not draw.allowed:
                continue
            picked = [draw.allowed[int(k)] for k in rng.integers(len(draw.allowed), size=3)]
            more = ([sorted(one) for one in picked],)
        made = formulation.declare(name, bare, *more)
        rows = constraints(problem, made.sigma) if name in WITH_SIGMA else []
        return made.with_constraints(rows) if rows else made, f"in CVXPY: {name}"
    return problem, "as a Problem"


def _can_be_ones_own(draw: Draw) -> bool:
    problem = draw.problem
    is_real = draw.driver != "conic" or not problem.rows.extra.integer.any()  # it takes programs as they stand
    return bool(problem.selects_features and problem.loss != "structural" and is_real) and not np.any(
        problem.atoms.scale != 1.0
    )


def _own(rng: Rng, draw: Draw) -> tuple[Any, str]:
    """(P) as a user writes it, in perspective form or with big-M, with names for its weights or without."""
    import cvxpy

    from mipfs.formulation import Formulation

    cp: Any = cvxpy
    problem, data = draw.problem, draw.problem.data
    X = (data.X.toarray() if data.is_sparse else np.asarray(data.X)) - data.center
    n, p = X.shape
    is_whole, is_wide = bool(rng.random() < 0.6 and draw.driver != "conic"), bool(rng.random() < 0.3)
    w, b, t, rho = (cp.Variable(p, name="w"), cp.Variable(name="b"), cp.Variable(p, name="t"), cp.Variable(name="rho"))
    sigma = cp.Variable(p, boolean=is_whole, name="sigma")
    has_rho = problem.margin == "rho"
    margins = cp.multiply(data.y, X @ w + (b if problem.bias else 0.0))
    c, goal, rows = draw.c, 0.0, []
    if problem.loss == "logistic":
        goal = c @ cp.logistic(-margins)
    else:
        xi = cp.Variable(n, nonneg=True)
        rows.append(margins + xi >= (rho if has_rho else 1.0))
        goal = c @ xi if problem.loss == "hinge" else 0.5 * cp.sum_squares(cp.multiply(np.sqrt(c), xi))
    if is_wide and not has_rho:
        most = math.sqrt(2.0 * (float(c.sum()) + float(draw.penalty.sum())))  # ½ w_j² is at most what w = 0 is worth
        rows.append(cp.abs(w) <= most * sigma)
        goal = goal + 0.5 * cp.sum_squares(w)
    else:
        rows += [cp.quad_over_lin(w[j], sigma[j]) <= t[j] for j in range(p)]
        goal = goal + 0.5 * cp.sum(t)
    rows += [] if is_whole else [sigma >= 0, sigma <= 1]
    rows += [] if problem.M is None else [cp.sum(sigma) <= problem.M]
    rows += constraints(problem, sigma)
    goal = goal + draw.penalty @ sigma - (rho if has_rho else 0.0)
    named = {"w": w, "b": b} if rng.random() < 0.5 else {}
    named |= {"rho": rho} if has_rho else {}
    program = cp.Problem(cp.Minimize(goal), rows)
    return Formulation(_bare(problem), program, sigma, named), "a program of one's own"
