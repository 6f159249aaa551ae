"""The relaxation by the interior point against the declared conic form: rows, extra variables, groups, trees."""

from __future__ import annotations

import itertools
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse

from mipfs.atoms.features import Features
from mipfs.atoms.groups import Groups
from mipfs.atoms.tree import Tree
from mipfs.data.instance import Instance, Row
from mipfs.inner.boolean import Boolean, SolvedRelaxation
from mipfs.problem import Problem
from mipfs.selection.selection import Extras, Rows

LOSSES = ("hinge", "squared-hinge", "logistic")
ATOMS = ("features", "scaled", "groups", "overlapping", "tree")
EXTRAS = (None, "box", "below", "above", "free")


def draw(seed: int, n: int, p: int, storage: str, scale: str = "none") -> Instance:
    r = np.random.default_rng(seed)
    X: Any = r.standard_normal((n, p)) + 0.3
    if storage == "csc":
        X = sparse.csc_array(X * (r.random((n, p)) < 0.25))
    dense = X.toarray() if sparse.issparse(X) else X
    y = np.where(dense @ r.standard_normal(p) + 0.5 * r.standard_normal(n) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return Instance.from_arrays(X, y, sample_weight=r.uniform(0.5, 2.0, n), scale=scale)


def atoms_of(data: Instance, kind: str, r: np.random.Generator) -> Any:
    p = data.n_features
    if kind == "features":
        return Features(data)
    if kind == "scaled":
        return Features(data, r.uniform(0.3, 2.0, p))
    if kind == "tree":
        parents = np.full(p + 3, -1)
        parents[:p] = p + r.integers(0, 3, p)
        parents[:3] = p + np.arange(3)
        parents[p] = p + 2
        return Tree(data, parents, scaling="norm")
    order = r.permutation(p)
    cut = np.sort(r.choice(np.arange(1, p), size=p // 2, replace=False))
    groups = {f"g{k}": part for k, part in enumerate(np.split(order, cut))}
    if kind == "overlapping":
        groups["wide"] = np.arange(p // 2)
    return Groups(data, groups, scaling=r.uniform(0.3, 2.0, len(groups)))


def rows_of(names: Any, r: np.random.Generator, count: int, extra: str | None) -> Rows:
    """Rows of every kind that a fractional selection, drawn first, satisfies."""
    inside, m = r.uniform(0.05, 0.5, len(names)), len(names)
    ends = {"box": (-1.0, 2.0), "below": (-1.0, np.inf), "above": (-np.inf, 2.0), "free": (-np.inf, np.inf)}
    free = Extras()
    if extra is not None:
        low, high = ends[extra]
        free = Extras(("extra_t", "extra_u"), np.array([low, 0.0]), np.array([high, 3.0]), np.zeros(2, bool))
    rows = []
    for k in range(count):
        a = r.integers(-4, 5, m) * (r.random(m) < 0.6) / 2.0
        terms = {name: float(v) for name, v in zip(names, a, strict=True) if v}
        value = float(a @ inside)
        if extra is not None:
            b = r.integers(-2, 3, 2)
            terms |= {name: float(v) for name, v in zip(free.names, b, strict=True) if v}
            value += float(b @ [0.7, 0.4])
        width = r.uniform(0.0, 0.4, 2)
        lb, ub = [(-np.inf, value), (value, np.inf), (value, value), (value - width[0], value + width[1])][k % 4]
        rows.append(Row(f"r{k}", terms or {names[0]: 0.0}, lb, ub, ""))
    return Rows.of(rows, {name: j for j, name in enumerate(names)}, free)


def declared(problem: Problem, low: Any, high: Any) -> float:
    """The relaxation written down in CVXPY over the columns of every atom, solved by Clarabel."""
    data, atoms, selection = problem.data, problem.atoms, problem.selection
    X = data.X.toarray() if data.is_sparse else data.X
    columns = atoms.columns(np.arange(atoms.count))
    Z = (X - data.center)[:, columns.ids] * columns.scale
    extra = selection.rows.extra
    w, b, x = cp.Variable(columns.ids.size), cp.Variable(), cp.Variable(atoms.count + len(extra))
    margins = cp.multiply(data.y, Z @ w + (b if problem.bias else 0.0))
    loss = {
        "hinge": problem.c_i @ cp.pos(1 - margins),
        "squared-hinge": 0.5 * problem.c_i @ cp.square(cp.pos(1 - margins)),
        "logistic": problem.c_i @ cp.logistic(-margins),
    }[problem.loss]
    norm = cp.sum([0.5 * cp.quad_over_lin(w[np.flatnonzero(columns.atom == g)], x[g]) for g in range(atoms.count)])
    A, lb, ub = selection.all_rows
    A = A.toarray()
    ends = np.concatenate([low, extra.lb]), np.concatenate([high, extra.ub])
    rows = [A[np.isfinite(ub)] @ x <= ub[np.isfinite(ub)], A[np.isfinite(lb)] @ x >= lb[np.isfinite(lb)]]
    for end, side in zip(ends, (1.0, -1.0), strict=True):
        k = np.flatnonzero(np.isfinite(end))
        rows.append(side * x[k] >= side * end[k])
    program = cp.Problem(cp.Minimize(problem.penalty @ x[: atoms.count] + norm + loss), rows)
    for tol in (1e-10, 1e-8):
        try:
            return float(program.solve(solver="CLARABEL", tol_gap_rel=tol, tol_gap_abs=tol, tol_feas=tol))
        except cp.SolverError:
            continue
    raise AssertionError("the reference was not solved")


def check(problem: Problem, low: Any, high: Any, tol: float = 1e-8) -> SolvedRelaxation:
    value = declared(problem, low, high)
    solved = Boolean(problem, lambda: False).solve(low, high, tol)
    size = max(1e-3, abs(value))
    assert solved.lower <= value + 1e-7 * size, (solved.lower, value)
    assert solved.lower >= value - 1e-6 * size, (solved.lower, value, solved.upper, solved.steps)
    return solved


def made(seed: int, loss: str, kind: str, extra: str | None, count: int = 4) -> tuple[Problem, Any, Any]:
    r = np.random.default_rng([7, seed])
    p, n = int(r.integers(5, 11)), int(r.choice([7, 40]))
    data = draw(seed, n, p, str(r.choice(["dense", "csc"])), str(r.choice(["none", "standard"])))
    atoms = atoms_of(data, kind, r)
    m = atoms.count
    lam = [0.0, 0.3, tuple(r.uniform(0, 1.0, m))][int(r.integers(3))]
    M = [None, max(2, m // 2)][int(r.integers(2))]
    problem = Problem(
        data, loss=loss, bias=bool(r.integers(2)), M=M, C=float(r.choice([0.05, 1.0, 20.0])), lam=lam, atoms=atoms
    )
    problem = problem.replace(rows=rows_of(atoms.names, r, count, extra))
    return problem, np.zeros(m), np.ones(m)


@pytest.mark.sampled(41)
@pytest.mark.parametrize(("kind", "extra"), itertools.product(ATOMS, EXTRAS))
@pytest.mark.parametrize("loss", LOSSES)
def test_rows_and_atoms_equal_the_declared_relaxation(loss: str, kind: str, extra: str | None) -> None:
    seed = 100 * LOSSES.index(loss) + 10 * ATOMS.index(kind) + EXTRAS.index(extra)
    check(*made(seed, loss, kind, extra))
