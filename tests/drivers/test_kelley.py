"""Feature generation against the declared relaxations (Clarabel), enumeration, and its own two bounds."""

from __future__ import annotations

import itertools
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse

import mipfs
from mipfs import verify
from mipfs.atoms import Atoms
from mipfs.atoms.groups import Groups
from mipfs.atoms.tree import Tree
from mipfs.data.instance import Instance
from mipfs.drivers import solve
from mipfs.errors import UsageError
from mipfs.inner.proximal import Proximal
from mipfs.inner.restricted import Cutting, SelectionPool
from mipfs.losses import get_loss
from mipfs.problem import Problem
from mipfs.result.result import Record, Status, StopReason

LOSSES = ["hinge", "squared-hinge", "logistic"]
ROWS = ["cardinality", "budget", "dependencies", "penalty"]


def draw(seed: int, n: int = 40, p: int = 8, **kwargs: Any) -> Instance:
    r = np.random.default_rng(seed)
    X = r.standard_normal((n, p)) + 0.3
    y = np.where(X @ r.standard_normal(p) + r.standard_normal(n) > 0.5, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return Instance.from_arrays(X, y, **kwargs)


def make(seed: int, loss: str, bias: bool, rows: str) -> Problem:
    r = np.random.default_rng([7, seed])
    problem = Problem(draw(seed), loss=loss, bias=bias, M=3, C=float(2.0 ** r.uniform(-2, 4)))
    if rows == "budget":
        return problem.replace(M=None).with_rows(r.uniform(1, 3, (1, 8)), -np.inf, 5.0)
    if rows == "dependencies":
        A = np.zeros((3, 8))
        A[0, [0, 1]], A[1, [2, 3]], A[2, [4, 5, 6]] = (1, -1), (1, 1), 1
        return problem.replace(M=4).with_rows(A, [-np.inf, -np.inf, 1], [0, 1, np.inf])
    if rows == "penalty":
        return problem.replace(M=None, lam=list(r.uniform(0.1, 2.0, 8)))
    return problem


def loss_of(problem: Problem, margins: Any) -> Any:
    """L(m) in CVXPY, written out."""
    c = problem.c_i
    if problem.loss == "hinge":
        return c @ cp.pos(1 - margins)
    if problem.loss == "squared-hinge":
        return 0.5 * c @ cp.square(cp.pos(1 - margins))
    return c @ cp.logistic(-margins)


def declared(problem: Problem, selections: np.ndarray | None) -> tuple[float, np.ndarray | None]:
    """min of c'σ + v(σ) over the box and rows, or over the hull of the given selections; and the mixture."""
    data, p = problem.data, problem.atoms.count
    sigma, w, t = cp.Variable(p), cp.Variable(p), cp.Variable(p)
    b = cp.Variable() if problem.bias else 0.0
    constraints = [cp.quad_over_lin(w[j], sigma[j]) <= t[j] for j in range(p)]
    mu = None
    if selections is None:
        matrix, lb, ub = problem.selection.all_rows
        low, high = problem.selection.sigma_bounds()
        constraints += [sigma >= low, sigma <= high]
        for r in range(matrix.shape[0]):
            row = matrix[[r]].toarray().ravel()
            constraints += [row @ sigma <= ub[r]] if np.isfinite(ub[r]) else []
            constraints += [row @ sigma >= lb[r]] if np.isfinite(lb[r]) else []
    else:
        mu = cp.Variable(len(selections), nonneg=True)
        constraints += [cp.sum(mu) == 1, sigma == selections.T.astype(float) @ mu]
    margins = cp.multiply(data.y, data.X @ w + b)
    objective = problem.penalty @ sigma + 0.5 * cp.sum(t) + loss_of(problem, margins)
    program = cp.Problem(cp.Minimize(objective), constraints)
    program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
    return float(program.value), None if mu is None else np.asarray(mu.value)


def members(problem: Problem) -> np.ndarray:
    """All selections of S."""
    every = np.array(list(itertools.product([False, True], repeat=problem.atoms.count)))
    return every[[problem.selection.contains(sigma) for sigma in every]]


@pytest.mark.sampled(29)
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", [1, 2])
def test_box_equals_the_declared_relaxation(seed: int, loss: str, bias: bool, rows: str) -> None:
    problem = make(seed, loss, bias, rows)
    result = solve(problem, "kelley", gap=1e-7, relaxation="box")
    value, _ = declared(problem, None)
    assert (result.status, result.stop_reason) == (Status.RELAXED, StopReason.GAP_CLOSED)
    assert result.relaxed is not None
    assert result.relaxed["upper"] == pytest.approx(value, rel=1e-6)
    assert result.bound == result.relaxed["lower"] == pytest.approx(value, rel=1e-6)
    assert result.bound <= value * (1 + 1e-8)
    sigma = np.array([result.relaxed["sigma"].get(name, 0.0) for name in problem.atoms.names])
    matrix, _, ub = problem.selection.all_rows
    assert np.all(matrix @ sigma <= ub + 1e-7)
    check_incumbent(problem, result)
    check_trace(result.trace)


@pytest.mark.sampled(13)
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("loss", LOSSES)
def test_hull_equals_the_declared_hull(loss: str, rows: str) -> None:
    problem = make(3, loss, True, rows)
    result = solve(problem, "kelley", gap=1e-7)
    value, _ = declared(problem, members(problem))
    assert result.status is Status.RELAXED
    assert result.relaxed is not None
    assert result.relaxed["upper"] == pytest.approx(value, rel=1e-6)
    assert result.bound == pytest.approx(value, rel=1e-6)
    exact = solve(problem, "gbd", gap=1e-7)
    assert result.bound <= exact.objective * (1 + 1e-9)
    assert result.objective >= exact.objective * (1 - 1e-9)
    box = solve(problem, "kelley", gap=1e-7, relaxation="box")
    assert box.bound <= result.bound * (1 + 1e-6)


def check_incumbent(problem: Problem, result: Any) -> None:
    """The rounded selection is allowed and its value is what the result says."""
    sigma = np.isin(problem.atoms.names, result.selected)
    assert problem.selection.contains(sigma)
    ids = np.flatnonzero(sigma)
    svm = get_loss(problem.loss).Solver(problem.data, problem.c_i, problem.bias).solve(ids, tol=1e-9)
    assert result.objective == pytest.approx(svm.primal + problem.penalty[ids].sum(), rel=1e-6)


def check_trace(trace: tuple[Record, ...]) -> None:
    """The upper bound never rises, the lower never falls."""
    for before, after in itertools.pairwise(trace):
        assert after.upper <= before.upper
        assert after.bound >= before.bound
        assert after.objective <= before.objective


@pytest.mark.slow
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("loss", LOSSES)
def test_restricted_equals_cvxpy_in_value_mixture_and_dual(loss: str, bias: bool) -> None:
    problem = Problem(draw(11, n=50, p=9), loss=loss, bias=bias, M=3, C=2.0)
    selections = np.zeros((3, 9), dtype=bool)
    for t, ids in enumerate(([0, 1, 2], [2, 3, 4], [5, 6, 8])):
        selections[t, ids] = True
    pool = SelectionPool()
    for sigma in selections:
        assert pool.add(np.flatnonzero(sigma), np.ones(3))
    assert not pool.add(np.array([0, 1, 2]), np.ones(3))
    # max g(α) − γ,  ½‖ω_t(α)‖² ≤ γ for every selection t, α ∈ A: the multipliers of the rows are μ
    data, c, a, level = problem.data, problem.c_i, cp.Variable(50), cp.Variable()
    conjugates = {
        "hinge": cp.sum(a),
        "squared-hinge": cp.sum(a) - cp.sum(cp.multiply(cp.square(a), 1 / (2 * c))),
        "logistic": cp.sum(cp.multiply(c, cp.entr(a / c) + cp.entr(1 - a / c))),
    }
    signed = data.X * data.y[:, None]
    rows = [0.5 * cp.sum_squares(signed[:, sigma].T @ a) <= level for sigma in selections]
    box = [a >= 0, *([] if loss == "squared-hinge" else [a <= c]), *([data.y @ a == 0] if bias else [])]
    program = cp.Problem(cp.Maximize(conjugates[loss] - level), rows + box)
    program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-13, tol_gap_rel=1e-13, tol_feas=1e-13)
    value, mu = float(program.value), np.array([float(np.ravel(row.dual_value)[0]) for row in rows])
    assert declared(problem, selections)[0] == pytest.approx(value, rel=1e-6)
    # the proximal gradient to 5e-6, which is Clarabel's own accuracy here; cutting planes in μ are coarser
    methods = [(Cutting(problem), 1e-4)] + ([] if loss == "hinge" else [(Proximal(problem), 5e-6)])
    for method, close in methods:
        solution = method.solve(pool, 1e-14 * value, lambda: False)
        assert solution.upper == pytest.approx(value, rel=1e-7)
        np.testing.assert_allclose(solution.mu, mu / mu.sum(), atol=close)
        # exponential cones leave Clarabel with fewer digits
        np.testing.assert_allclose(solution.alpha, a.value, atol=1e-4 if loss == "logistic" else 1e-5)
        scores = problem.atoms.scores(solution.alpha * data.y)
        dual = get_loss(loss).dual_value(solution.alpha, c)
        dual -= max(0.5 * float(scores[sigma].sum()) for sigma in selections)
        assert dual == pytest.approx(value, rel=1e-6)


@pytest.mark.sampled(7)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("C", [1e9, 1e11])
def test_cuts_that_are_steeper_than_an_lp_bears(loss: str, C: float) -> None:
    problem = Problem(draw(3, n=20, p=6), loss=loss, M=3, C=C)
    planes, interior = (solve(problem, "kelley", restricted=way, gap=1e-4) for way in ("cutting", "interior"))
    for result in (planes, interior):
        assert (result.status, result.stop_reason) == (Status.RELAXED, StopReason.GAP_CLOSED)
        assert result.relaxed is not None
    assert planes.bound <= interior.relaxed["upper"] * (1 + 1e-9)  # type: ignore[index]
    assert interior.bound <= planes.relaxed["upper"] * (1 + 1e-9)  # type: ignore[index]
    room = Problem(draw(3, n=20, p=6), loss=loss, C=C).with_rows(np.ones((1, 6)), -np.inf, 3.0)
    rows = solve(room, "kelley", gap=1e-4)
    assert rows.status is Status.RELAXED
    assert interior.bound <= rows.relaxed["upper"] * (1 + 1e-9)  # type: ignore[index]
    assert verify(rows, room.data).accepted


def test_cutting_planes_end_where_their_mixture_stays() -> None:
    r = np.random.default_rng(0)
    data = Instance.from_arrays(10.0 ** r.uniform(-6, 6, (12, 1)), np.resize([1.0, -1.0], 12))
    method, pool = Cutting(Problem(data, M=1, C=1e12)), SelectionPool()
    pool.add(np.array([0]), np.ones(1))
    solution = method.solve(pool, 0.0, bool)
    assert solution.mu == pytest.approx([1.0])
    assert method._subproblem.count == 1, "the only mixture that there is"


@pytest.mark.sampled(11)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("stop_at", [1, 2, 4])
def test_interrupting_leaves_valid_bounds(loss: str, stop_at: int) -> None:
    problem = Problem(draw(21, n=60, p=12), loss=loss, M=4, C=4.0)
    optimum = solve(problem, "gbd", gap=1e-7).objective
    way = "auto" if loss == "hinge" else "proximal"  # a face is done in fewer rounds
    result = solve(problem, "kelley", gap=1e-8, restricted=way, callback=lambda record: record.iteration >= stop_at)
    assert result.stop_reason is StopReason.INTERRUPTED
    assert result.status is Status.FEASIBLE
    assert result.bound <= optimum * (1 + 1e-9) <= result.objective * (1 + 2e-9)


def test_the_papers_stop_and_the_limits() -> None:
    problem = Problem(draw(22, p=12), loss="squared-hinge", bias=False, M=3, C=8.0)
    result = solve(problem, "kelley", gap=1e-9, T=2)
    assert result.stop_reason is StopReason.ITERATION_LIMIT
    assert result.relaxed is not None
    assert result.relaxed["selections"] == 2
    assert solve(problem, "kelley", time_limit=0.0).stop_reason is StopReason.TIME_LIMIT
    for options in ({"T": 0}, {"relaxation": "cone"}, {"restricted": "simplex"}):
        with pytest.raises(UsageError):
            solve(problem, "kelley", **options)
    with pytest.raises(UsageError, match="smooth loss"):
        solve(problem.replace(loss="hinge"), "kelley", restricted="proximal")


@pytest.mark.slow
def test_sparse_equals_dense_and_scaled_data() -> None:
    r = np.random.default_rng(3)
    X = r.standard_normal((60, 30)) * (r.random((60, 30)) < 0.15)
    y = np.where(X[:, :5].sum(axis=1) + 0.1 * r.standard_normal(60) > 0, 1.0, -1.0)
    for scale, bias in itertools.product(("none", "standard"), (True, False)):
        values = []
        for matrix in (X, sparse.csc_array(X)):
            data = Instance.from_arrays(matrix, y, scale=scale)
            result = solve(Problem(data, loss="squared-hinge", bias=bias, M=4, C=1.0), "kelley", gap=1e-7)
            assert result.relaxed is not None
            values.append(result.relaxed["upper"])
            mine = sorted(result.relaxed["weights"].items())
        assert values[0] == pytest.approx(values[1], rel=1e-6)
        assert mine


@pytest.mark.sampled(19)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("case", ["constant", "duplicate", "zero", "B > p", "tiny C", "all zero"])
def test_degenerate_columns(case: str, loss: str) -> None:
    data = draw(31, n=30, p=5)
    X, C, M = np.array(data.X), 1.0, 2
    if case == "constant":
        X[:, 0] = 5.0
    elif case == "duplicate":
        X[:, 1] = X[:, 0]
    elif case == "zero":
        X[:, 2] = 0.0
    elif case == "all zero":
        X[:] = 0.0
    elif case == "tiny C":
        C = 1e-12
    else:
        M = 5
    for bias in (True, False):
        problem = Problem(Instance.from_arrays(X, data.y), loss=loss, bias=bias, M=M, C=C)
        result = solve(problem, "kelley", gap=1e-6)
        assert result.status in (Status.RELAXED, Status.OPTIMAL)
        assert result.relaxed is not None or result.status is Status.OPTIMAL
        assert np.isfinite(result.objective)
        assert result.bound <= result.objective
        exact = solve(problem, "gbd", gap=1e-7).objective
        assert result.bound <= exact * (1 + 1e-9)
        assert result.objective >= exact * (1 - 1e-9)


def test_rho_form_is_the_program_of_the_paper() -> None:
    data = draw(41, n=30, p=6)
    problem = Problem(data, loss="squared-hinge", bias=False, M=2, C=3.0, margin="rho")
    result = solve(problem, "kelley", gap=1e-7)
    w, t, rho, sigma = cp.Variable(6), cp.Variable(6), cp.Variable(), cp.Variable(6)
    slack = cp.pos(rho - cp.multiply(data.y, data.X @ w))
    program = cp.Problem(
        cp.Minimize(0.5 * cp.sum(t) + 1.5 * cp.sum_squares(slack) - rho),
        [cp.quad_over_lin(w[j], sigma[j]) <= t[j] for j in range(6)] + [sigma >= 0, sigma <= 1, cp.sum(sigma) <= 2],
    )
    program.solve(solver=cp.CLARABEL)
    assert result.relaxed is not None
    assert result.relaxed["upper"] == pytest.approx(program.value, rel=1e-5)
    assert result.relaxed["lower"] <= result.relaxed["upper"] < 0
    weights = np.array([result.relaxed["weights"].get(f"x{j + 1}", 0.0) for j in range(6)])
    np.testing.assert_allclose(weights, w.value, atol=1e-3)
    exact = solve(problem, "gbd", gap=1e-6)
    assert exact.status is Status.OPTIMAL
    assert result.bound <= exact.objective < 0
    with pytest.raises(UsageError, match="rho"):
        problem.replace(lam=1.0)


def atoms_of(kind: str, data: Instance, scaling: Any) -> Atoms:
    if kind == "disjoint":
        return Groups(data, {"a": [0, 1], "b": [2, 3, 4], "c": [5], "d": [6, 7]}, scaling)
    if kind == "overlapping":
        return Groups(data, {"a": [0, 1, 2], "b": [2, 3], "c": [3, 4, 5], "d": [0, 7], "e": [6]}, scaling)
    # x1 … x8 are leaves 0 … 7; 8 = {0, 1}, 9 = {2, 3}, 10 = {8, 9}, 11 = {4, 5, 6}
    return Tree(data, np.array([8, 8, 9, 9, 11, 11, 11, -1, 10, 10, -1, -1]), scaling=scaling)


@pytest.mark.sampled(23)
@pytest.mark.parametrize("scaling", ["none", "norm"])
@pytest.mark.parametrize("kind", ["disjoint", "overlapping", "tree"])
@pytest.mark.parametrize("loss", LOSSES)
def test_groups_and_trees(loss: str, kind: str, scaling: str) -> None:
    data = draw(51)
    atoms = atoms_of(kind, data, scaling)
    for bias, B in ((True, 2), (False, 3)):
        problem = Problem(data, loss=loss, bias=bias, M=B, C=2.0, atoms=atoms)
        result = solve(problem, "kelley", gap=1e-7)
        if kind == "tree":
            calls, rest = divmod(result.counters["pruned"] + result.counters["scored"], atoms.count)
            assert calls >= 2
            assert rest == 0
        # ½ Σ_g ‖w_g‖²/σ_g + L over 0 ≤ σ ≤ 1, Σσ ≤ B, every group with columns of its own
        sigma, t = cp.Variable(atoms.count), cp.Variable(atoms.count)
        b, scores, cones = (cp.Variable() if bias else 0.0), 0.0, []
        for g in range(atoms.count):
            columns = atoms.columns([g])
            w = cp.Variable(columns.ids.size)
            scores = scores + (data.X[:, columns.ids] * columns.scale) @ w
            cones.append(cp.quad_over_lin(w, sigma[g]) <= t[g])
        margins = cp.multiply(data.y, scores + b)
        objective = cp.Minimize(0.5 * cp.sum(t) + loss_of(problem, margins))
        program = cp.Problem(objective, [*cones, sigma >= 0, sigma <= 1, cp.sum(sigma) <= B])
        program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
        assert result.relaxed is not None
        assert result.relaxed["upper"] == pytest.approx(program.value, rel=1e-6)
        assert result.bound == pytest.approx(program.value, rel=1e-6)
        # the exact optimum over all sets of at most B atoms, by exhaustive search
        solver, best = get_loss(loss).Solver(data, problem.c_i, bias), np.inf
        for ids in itertools.combinations(range(atoms.count), B):
            columns = atoms.columns(ids)
            best = min(best, solver.solve(columns.ids, np.square(columns.scale), tol=1e-10).primal)
        exact = solve(problem, "gbd", gap=1e-7)
        assert exact.status is Status.OPTIMAL
        assert exact.objective == pytest.approx(best, rel=1e-6)
        assert result.bound <= best * (1 + 1e-9) <= result.objective * (1 + 2e-9)
        assert set(result.selected) <= set(atoms.names)


@pytest.mark.slow
@pytest.mark.parametrize(("loss", "bias"), [("squared-hinge", False), ("squared-hinge", True), ("logistic", True)])
@pytest.mark.parametrize("rows", [False, True])
def test_columns_of_very_different_norms_are_handed_over_to_a_method_that_no_scale_stops(
    loss: str, bias: bool, rows: bool
) -> None:
    """The proximal gradient alone ends with half of the gap open, and no new selection to be found."""
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((80, 30))
    X = Z * 10.0 ** rng.uniform(-4, 4, 30)
    y = np.where(Z[:, :3].sum(axis=1) + 0.3 * rng.standard_normal(80) > 0, 1.0, -1.0)
    problem = Problem(Instance.from_arrays(X, y), loss=loss, bias=bias, M=4, C=0.1)
    if rows:
        problem = problem.with_rows(np.eye(1, 30) + np.eye(1, 30, 1), -np.inf, 1.0)
    found = solve(problem, "kelley", time_limit=60)
    other = solve(problem, "kelley", restricted="conic", time_limit=60)
    assert found.stop_reason is StopReason.GAP_CLOSED
    assert found.relaxed is not None
    assert other.relaxed is not None
    assert found.relaxed["upper"] == pytest.approx(other.relaxed["upper"], rel=2e-4)
    assert found.relaxed["lower"] <= other.relaxed["upper"] * (1 + 1e-9)
    assert verify(found, problem.data).accepted
    assert solve(problem, "kelley", restricted="proximal").stop_reason is StopReason.NUMERICAL


def test_the_bound_is_not_below_that_of_no_dual_vector() -> None:
    """The least cost of a selection under rows was rounded down to -1e-12."""
    data = mipfs.read("instances/credit.csv")
    result = mipfs.solve(mipfs.Problem(data, M=3, C=1.0), "kelley", iteration_limit=1)
    assert result.bound == 0.0
    assert mipfs.verify(result, data).bound == 0.0
