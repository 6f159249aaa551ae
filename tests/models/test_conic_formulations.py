"""The CVXPY pages: every program against its formula written again in NumPy, SciPy or plain CVXPY."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import cvxpy
import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog, minimize_scalar

from mipfs import models
from mipfs.data.instance import Instance, Row, SelectDefaults
from mipfs.errors import UsageError
from mipfs.formulation import load
from mipfs.formulation.program import Formulation, TooLargeError
from mipfs.inner.subproblem import Subproblem
from mipfs.models import (
    big_m,
    boolean_relaxation,
    decomposed_sdp,
    nmmkl,
    onsvm,
    plain_svm,
    qcqp_relaxation,
    qcqp_ssvm,
    reduced_mkl,
    sdp_ssvm,
)
from mipfs.problem import Problem
from mipfs.selection.selection import Extras, Rows
from mipfs.solvers import cones

cp: Any = cvxpy
Array = np.ndarray
LOSSES = ("hinge", "squared-hinge", "logistic")
P = 6
NAMES = tuple(f"x{j + 1}" for j in range(P))
BUDGET = (
    Row("budget", dict(zip(NAMES, (3.0, 2.0, 1.0, 2.0, 4.0, 2.0), strict=True)), -np.inf, 5.0),
    Row("implies", {"x1": 1.0, "x3": -1.0}, -np.inf, 0.0),
)
CASES = [(loss, bias, seed) for seed, (loss, bias) in enumerate(itertools.product(LOSSES, (True, False)))]


def make(seed: int, **parameters: Any) -> Problem:
    rng = np.random.default_rng(seed)
    n = 20
    X = rng.normal(size=(n, P)) + rng.normal(size=P)
    y = np.where(X[:, 0] + 0.5 * X[:, 1] + 0.8 * rng.normal(size=n) > X[:, 0].mean(), 1.0, -1.0)
    keys = ("rows", "select", "scale", "penalty")
    extra = {name: parameters.pop(name) for name in keys if name in parameters}
    stored = sparse.csc_array(np.where(np.abs(X) < 0.5, 0.0, X)) if parameters.pop("sparse", False) else X
    data = Instance.from_arrays(stored, y, sample_weight=rng.uniform(0.5, 2.0, n), counts=np.ones(n), **extra)
    return Problem(data, **{"C": 0.7, **parameters})


def dense(problem: Problem) -> Array:
    X = problem.data.X
    return (X.toarray() if problem.data.is_sparse else X) - problem.data.center


def loss_value(problem: Problem, w: Array, b: float) -> float:
    """L at a classifier, from the table of the losses."""
    m, c = problem.data.y * (dense(problem) @ w + b), problem.c_i
    if problem.loss == "hinge":
        return float(c @ np.maximum(0, 1 - m))
    if problem.loss == "squared-hinge":
        return float(0.5 * c @ np.maximum(0, 1 - m) ** 2)
    return float(c @ np.log1p(np.exp(-m)))


def conjugate(problem: Problem, alpha: Array) -> float:
    """g(α), from the table of the losses."""
    c = problem.c_i
    if problem.loss == "hinge":
        return float(alpha.sum())
    if problem.loss == "squared-hinge":
        return float(alpha.sum() - (alpha**2 / (2 * c)).sum())
    return -float(np.sum(alpha * np.log(alpha / c) + (c - alpha) * np.log(1 - alpha / c)))


def solve(declared: Formulation) -> float:
    assert cones.solve(declared.cvxpy) == "solved"
    assert declared.cvxpy.is_dcp()
    return float(declared.cvxpy.value)


def omega(declared: Formulation) -> Array:
    """ω of the solver's α, which must lie in the dual set."""
    problem, alpha = declared.problem, np.asarray(declared.variables["alpha"].value)
    assert alpha.min() > -1e-7
    if problem.loss != "squared-hinge":
        assert np.all(alpha <= problem.c_i + 1e-7)
    if problem.bias:
        assert abs(problem.data.y @ alpha) < 1e-6
    return np.asarray(dense(problem).T @ (alpha * problem.data.y))


def point(declared: Formulation) -> tuple[Array, float]:
    b = float(declared.variables["b"].value)
    assert declared.problem.bias or b == 0.0
    return np.asarray(declared.variables["w"].value), b


@pytest.mark.parametrize(("loss", "bias", "seed"), CASES)
def test_plain_svm_meets_its_own_dual(loss: str, bias: bool, seed: int) -> None:
    declared = plain_svm.declare(make(seed, loss=loss, bias=bias, sparse=seed % 2 == 1, scale="standard"))
    value = solve(declared)
    w, b = point(declared)
    assert 0.5 * w @ w + loss_value(declared.problem, w, b) == pytest.approx(value, rel=1e-7)
    s = omega(declared) ** 2
    alpha = np.clip(declared.variables["alpha"].value, 1e-12, None)
    assert conjugate(declared.problem, alpha) - 0.5 * s.sum() == pytest.approx(value, rel=1e-6)
    assert declared.sigma is None


def largest_gain(w: Array, M: int) -> float:
    """max over u of ωᵀu − ½ max(‖u‖², ‖u‖₁²/M): the least over θ of the maximum with θ‖u‖² + (1 − θ)‖u‖₁²/M."""
    size = np.sort(np.abs(w))[::-1]

    def gain(theta: float) -> float:
        # u_j = (|ω_j| − τ)₊/θ with τ = (1 − θ) ‖u‖₁/M: for k active ones τ = r Σ_k |ω| / (1 + r k), r = (1 − θ)/(θM).
        r = (1 - theta) / (theta * M)
        taus = [r * size[:k].sum() / (1 + r * k) for k in range(1, size.size + 1)]
        tau = max(taus)
        u = np.maximum(0.0, size - tau) / theta
        return float(0.5 * size @ u)

    return float(minimize_scalar(gain, bounds=(1e-6, 1.0), method="bounded", options={"xatol": 1e-12}).fun)


@pytest.mark.parametrize(("loss", "bias", "seed"), CASES)
def test_qcqp_and_sdp_have_the_value_of_both_formulas(loss: str, bias: bool, seed: int) -> None:
    problem = make(seed + 1, loss=loss, bias=bias, M=2, C=3.0)
    qcqp, sdp = qcqp_ssvm.declare(problem), sdp_ssvm.declare(problem)
    value = solve(qcqp)
    assert solve(sdp) == pytest.approx(value, rel=1e-7)
    for declared in (qcqp, sdp):
        w, b = point(declared)
        norm = max(w @ w, np.abs(w).sum() ** 2 / 2)
        assert 0.5 * norm + loss_value(problem, w, b) == pytest.approx(value, rel=1e-6)
        alpha = np.clip(declared.variables["alpha"].value, 1e-12, None)
        assert conjugate(problem, alpha) - largest_gain(omega(declared), 2) == pytest.approx(value, rel=1e-5)
    w, W = np.asarray(sdp.variables["w"].value), np.asarray(sdp.variables["W"].value)
    assert np.linalg.eigvalsh(W - np.outer(w, w)).min() > -1e-6
    assert np.abs(W).sum() <= 2 * np.trace(W) * (1 + 1e-6)


@pytest.mark.parametrize("sigma", [0.0, 1e-3, 0.3, 0.9, 1.0])
@pytest.mark.parametrize("complement", [False, True])
def test_a_block_is_the_perspective_of_a_square(sigma: float, complement: bool) -> None:
    """The least W of (1, w, σ; w, W, w; σ, w, σ) ⪰ 0 is w²/σ, and so it is with v = 1 − σ and w v = 0."""
    w, v = 0.8, 1.0 - sigma if complement else sigma
    lifted = 0.0 if complement else w

    def least(W: float) -> float:
        return float(np.linalg.eigvalsh(np.array([[1.0, w, v], [w, W, lifted], [v, lifted, v]])).min())

    if sigma == 0.0:
        assert least(1e6) < -1e-9  # w = 0 is all that it allows
    else:
        assert least(w * w / sigma * (1 + 1e-6)) > -1e-12
        assert least(w * w / sigma * (1 - 1e-3)) < -1e-9


@pytest.mark.parametrize(("loss", "bias", "seed"), CASES)
def test_the_decomposed_relaxation_has_the_value_of_the_boolean_one(loss: str, bias: bool, seed: int) -> None:
    """With rows and penalties too; its σ, w and W are those of a perspective."""
    problem = make(seed + 1, loss=loss, bias=bias, M=3, C=3.0, lam=0.05)
    problem = problem.with_rows(np.array([3.0, 2.0, 1.0, 2.0, 4.0, 2.0][:P]), -np.inf, 4.0)
    small, boolean = decomposed_sdp.declare(problem), boolean_relaxation.declare(problem)
    assert solve(small) == pytest.approx(solve(boolean), rel=1e-6)
    sigma, w, W = (np.asarray(one.value) for one in (small.sigma, small.variables["w"], small.variables["W"]))
    assert (W * sigma >= w * w - 1e-6).all()


def cheapest(problem: Problem, cost: Array) -> float:
    """min of costᵀσ over the rows of S with 0 ≤ σ ≤ 1, by SciPy."""
    rows = problem.selection.rows
    A, e = rows.matrix.toarray(), len(rows.extra)
    blocks, limits = [A, -A], [rows.ub, -rows.lb]
    if problem.M is not None:
        blocks.append(np.append(np.ones(P), np.zeros(e))[None, :])
        limits.append(np.array([float(problem.M)]))
    matrix, limit = np.vstack(blocks), np.concatenate(limits)
    keep = np.isfinite(limit)
    lower, upper = problem.selection.sigma_bounds()
    extra = rows.extra  # the ends of whole variables are whole
    low, high = (
        np.where(extra.integer, np.ceil(extra.lb), extra.lb),
        np.where(extra.integer, np.floor(extra.ub), extra.ub),
    )
    bounds = [*zip(lower, upper, strict=True), *zip(low, high, strict=True)]
    answer = linprog(np.append(cost, np.zeros(e)), A_ub=matrix[keep], b_ub=limit[keep], bounds=bounds)
    assert answer.status == 0
    return float(answer.fun)


def selections() -> list[tuple[str, dict[str, Any]]]:
    extra = Extras(("u", "v"), np.array([0.0, -np.inf]), np.array([1.5, np.inf]), np.array([True, False]))
    index = {name: j for j, name in enumerate(NAMES)}
    with_extras = Rows.of(
        [
            Row("modules", {"x1": 1.0, "x2": 1.0, "x4": 1.0, "u": -1.0}, -np.inf, 0.0),
            Row("level", {"x1": 1.0, "x5": -2.0, "v": 1.0}, 0.5, 0.5),
            Row("cap", {"v": 1.0}, -0.25, 1.0),
        ],
        index,
        extra,
    )
    return [
        ("cardinality", {"M": 2}),
        ("penalties", {"lam": 0.3}),
        ("everything", {}),
        ("rows", {"M": 3, "rows": BUDGET, "penalty": {"x2": 0.2}}),
        ("forced", {"select": SelectDefaults(2, ("x4",), ("x1",))}),
        ("extras", {"M": 3, "extras": with_extras}),
    ]


@pytest.mark.sampled(7)
@pytest.mark.parametrize(("kind", "given"), selections(), ids=[name for name, _ in selections()])
@pytest.mark.parametrize(("loss", "bias", "seed"), CASES)
def test_nmmkl_and_the_boolean_relaxation_are_one(
    loss: str, bias: bool, seed: int, kind: str, given: dict[str, Any]
) -> None:
    arguments = dict(given)
    extras = arguments.pop("extras", None)
    problem = make(seed + 10, loss=loss, bias=bias, sparse=seed % 2 == 0, scale="unit", C=4.0, **arguments)
    problem = problem if extras is None else problem.replace(rows=extras)
    dual, primal = nmmkl.declare(problem), boolean_relaxation.declare(problem)
    value = solve(primal)
    assert solve(dual) == pytest.approx(value, rel=1e-7)
    for declared in (dual, primal):
        sigma = np.asarray(declared.sigma.value)
        assert np.all((sigma > -1e-6) & (sigma < 1 + 1e-6))
        assert problem.M is None or sigma.sum() <= problem.M + 1e-6
        alpha = np.clip(declared.variables["alpha"].value, 1e-12, None)
        inner = cheapest(problem, problem.penalty - 0.5 * omega(declared) ** 2)
        assert conjugate(problem, alpha) + inner == pytest.approx(value, rel=1e-6)
    w, b = point(primal)
    sigma = np.clip(primal.sigma.value, 1e-12, 1)
    recomputed = problem.penalty @ sigma + 0.5 * np.sum(w**2 / sigma) + loss_value(problem, w, b)
    assert recomputed == pytest.approx(value, rel=1e-5)
    assert np.asarray(dual.sigma.value) @ problem.penalty == pytest.approx(problem.penalty @ sigma, abs=1e-3)


POOL: list[Any] = [["x1", "x2"], [1, 2], np.arange(P) >= 4, np.array([0.5, 0.0, 0.0, 1.0, 0.0, 0.0])]


def sigma_of_pool() -> Array:
    sigmas = np.zeros((4, P))
    sigmas[0, :2] = sigmas[1, 1:3] = sigmas[2, 4:] = 1.0
    sigmas[3, [0, 3]] = 0.5, 1.0
    return sigmas


@pytest.mark.sampled(2)
@pytest.mark.parametrize("lam", [0.0, 0.4])
@pytest.mark.parametrize(("loss", "bias", "seed"), CASES)
def test_reduced_mkl_dual_primal_and_the_formulas(loss: str, bias: bool, seed: int, lam: float) -> None:
    problem = make(seed + 20, loss=loss, bias=bias, lam=lam, sparse=seed % 2 == 1, C=2.0)
    dual = reduced_mkl.declare(problem, POOL)
    primal = reduced_mkl.declare(problem, POOL, "primal")
    value = solve(dual)
    assert solve(primal) == pytest.approx(value, rel=1e-7)
    sigmas, c = sigma_of_pool(), sigma_of_pool() @ problem.penalty
    for declared in (dual, primal):
        mu = np.asarray(declared.variables["mu"].value)
        assert mu.min() > -1e-7
        assert mu.sum() == pytest.approx(1.0, abs=1e-6)
        assert declared.sigma.value == pytest.approx(sigmas.T @ mu, abs=1e-9)
        alpha = np.clip(declared.variables["alpha"].value, 1e-12, None)
        worst = float(np.max(0.5 * sigmas @ omega(declared) ** 2 - c))
        assert conjugate(problem, alpha) - worst == pytest.approx(value, rel=1e-6)
    assert dual.variables["mu"].value == pytest.approx(primal.variables["mu"].value, abs=1e-3)
    assert dual.variables["alpha"].value == pytest.approx(np.asarray(primal.variables["alpha"].value), abs=1e-3)
    if lam == 0.0:  # Tan 2014 (31) as it stands: ½ (Σ_t ‖w_t‖)² + L
        counts = (sigmas > 0).sum(axis=1)
        parts = np.split(np.asarray(primal.variables["w_t"].value), np.cumsum(counts)[:-1])
        norms = np.array([np.linalg.norm(part) for part in parts])
        w = np.zeros(P)
        for sigma, part in zip(sigmas, parts, strict=True):
            w[sigma > 0] += np.sqrt(sigma[sigma > 0]) * part
        _, b = point(primal)
        assert primal.variables["w"].value == pytest.approx(w, abs=1e-9)
        assert 0.5 * norms.sum() ** 2 + loss_value(problem, w, b) == pytest.approx(value, rel=1e-6)
        assert dual.variables["mu"].value == pytest.approx(norms / norms.sum(), abs=1e-3)


def test_reduced_mkl_over_all_selections_is_the_relaxation_over_a_cardinality_row() -> None:
    for loss, bias, seed in CASES:
        problem = make(seed, loss=loss, bias=bias, M=2)
        pool = [list(ids) for ids in itertools.combinations(range(P), 2)]
        whole = solve(qcqp_relaxation.declare(problem, pool))
        assert whole == pytest.approx(solve(qcqp_relaxation.declare(problem)), rel=1e-7)
        assert solve(reduced_mkl.declare(problem, pool[:3])) >= whole * (1 - 1e-9)


def test_a_pool_of_one_selection_is_an_svm_and_an_empty_selection_has_no_weights() -> None:
    problem = make(3, loss="squared-hinge", bias=False, lam=0.5)
    weights = problem.data.sample_weight
    for pool, columns in (([[0, 3]], [0, 3]), ([[]], []), ([np.zeros(P)], [])):
        X = dense(problem)[:, columns] if columns else np.zeros((20, 1))
        alone = Instance.from_arrays(X, problem.data.y, sample_weight=weights)
        expected = solve(plain_svm.declare(Problem(alone, loss="squared-hinge", bias=False, C=0.7)))
        for form in ("dual", "primal"):
            declared = reduced_mkl.declare(problem, pool, form)  # type: ignore[arg-type]
            assert solve(declared) == pytest.approx(expected + 0.5 * len(columns), rel=1e-7)


@pytest.mark.parametrize("pool", [[], [["nobody"]], [[0, 0]], [[P]], [np.ones(3)], [np.full(P, 1.5)], ["x1"], [[[0]]]])
def test_bad_pools_are_refused(pool: Any) -> None:
    with pytest.raises(UsageError):
        reduced_mkl.declare(make(0), pool)


def test_pools_as_text() -> None:
    problem = make(0)
    found = reduced_mkl.selections(problem, "x1, x3; x2")
    assert [np.flatnonzero(sigma).tolist() for sigma in found] == [[0, 2], [1]]
    with pytest.raises(UsageError, match="form = 'other'"):
        reduced_mkl.declare(problem, POOL, "other")  # type: ignore[arg-type]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("loss", "bias", "seed"), CASES)
def test_big_m_is_exact_in_binaries_and_its_bound_is_that_of_its_multipliers(loss: str, bias: bool, seed: int) -> None:
    problem = make(seed + 30, loss=loss, bias=bias, M=2, C=5.0, lam=0.1 * (seed % 2), rows=BUDGET)
    relaxed = big_m.declare(problem)
    value = solve(relaxed)
    W, sigma = big_m.implied_bounds(problem), np.asarray(relaxed.sigma.value)
    w, b = point(relaxed)
    assert np.all(np.abs(w) <= W * sigma + 1e-6)
    recomputed = problem.penalty @ sigma + 0.5 * w @ w + loss_value(problem, w, b)
    assert recomputed == pytest.approx(value, rel=1e-6)
    kappa = np.maximum(0.0, relaxed.variables["kappa"].value)
    excess = np.maximum(0.0, np.abs(omega(relaxed)) - kappa)
    alpha = np.clip(relaxed.variables["alpha"].value, 1e-12, None)
    inner = cheapest(problem, problem.penalty - kappa * W)
    assert conjugate(problem, alpha) - 0.5 * excess @ excess + inner == pytest.approx(value, rel=1e-6)

    # Every solution of value at most U obeys W: here all selections, U the worst of those that are allowed.
    values: dict[tuple[int, ...], tuple[float, Array]] = {}
    for ids in itertools.chain.from_iterable(itertools.combinations(range(P), k) for k in range(3)):
        chosen = np.isin(np.arange(P), ids)
        if not problem.selection.contains(chosen):
            continue
        fixed = problem.replace(forced_in=tuple(NAMES[j] for j in ids), M=len(ids))
        svm = boolean_relaxation.declare(fixed)
        values[ids] = solve(svm), np.asarray(svm.variables["w"].value)
    for U in (min(v for v, _ in values.values()), max(v for v, _ in values.values())):
        limits = big_m.implied_bounds(problem, U * (1 + 1e-7))
        assert limits.max() <= np.sqrt(2 * U) * (1 + 1e-6)
        for reached, weights in values.values():
            assert reached > U * (1 + 1e-7) or np.all(np.abs(weights) <= limits + 1e-5)
    assert value <= min(v for v, _ in values.values()) * (1 + 1e-7)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("bias", [True, False])
def test_big_m_in_binaries_is_the_problem_itself(bias: bool) -> None:
    pytest.importorskip("pyscipopt")
    problem = make(5, loss="squared-hinge", bias=bias, M=2, C=2.0)
    program = big_m.declare(problem, binary=True)
    program.cvxpy.solve(solver=cp.SCIP)
    best = min(
        solve(boolean_relaxation.declare(problem.replace(forced_in=tuple(NAMES[j] for j in ids))))
        for ids in itertools.combinations(range(P), 2)
    )
    assert program.cvxpy.value == pytest.approx(best, rel=1e-4)
    with pytest.raises(UsageError, match="integer variables"):
        cones.Canonical(program.cvxpy)


def test_big_m_refuses_what_is_no_upper_bound_and_rows_without_a_selection() -> None:
    problem = make(0, M=2)
    with pytest.raises(UsageError, match="no value of a classifier"):
        big_m.declare(problem, U=0.5 * solve(plain_svm.declare(problem)))
    never = problem.with_rows(np.ones(P), P + 1.0, np.inf)
    with pytest.raises(UsageError, match="no selection satisfies the rows"):
        big_m.declare(never)


@pytest.mark.parametrize("bias", [True, False])
def test_onsvm_is_the_linear_program(bias: bool) -> None:
    problem = make(40, bias=bias, sparse=bias, scale="standard")
    declared = onsvm.declare(problem)
    assert cones.Canonical(declared.cvxpy).solve_linear() == "solved"
    X, y, n = dense(problem), problem.data.y, problem.data.n_samples
    free = [y[:, None]] if bias else []
    columns = np.hstack([y[:, None] * X, -y[:, None] * X, np.eye(n), *free])
    cost = np.concatenate([np.ones(2 * P), problem.c_i, np.zeros(len(free))])
    bounds = [(0, None)] * (2 * P + n) + [(None, None)] * len(free)
    answer = linprog(cost, A_ub=-columns, b_ub=-np.ones(n), bounds=bounds)
    assert declared.cvxpy.value == pytest.approx(answer.fun, rel=1e-8)
    w = np.asarray(declared.variables["w"].value)
    assert np.any(w == 0.0), "a vertex has zeros"
    alpha = np.asarray(declared.variables["alpha"].value)
    assert np.max(np.abs(X.T @ (alpha * y))) <= 1 + 1e-8
    assert not declared.is_relaxation
    with pytest.raises(UsageError, match="cannot carry the loss"):
        onsvm.declare(make(0, loss="logistic"))


BUILDS: dict[str, Callable[..., Any]] = {
    "fgm": models.qcqp_relaxation,
    "reduced-mkl": models.reduced_mkl,
    "nmmkl": models.nmmkl,
    "qcqp-ssvm": models.qcqp_ssvm,
    "sdp-ssvm": models.sdp_ssvm,
    "decomposed-sdp": models.decomposed_sdp,
    "big-m": models.big_m,
    "plain-svm": models.plain_svm,
    "onsvm": models.onsvm,
}


@pytest.mark.parametrize("name", BUILDS)
def test_build_problem_and_declare_agree(name: str) -> None:
    data = make(7).data
    params: dict[str, Any] = {"C": 2.0, "bias": name == "fgm"}
    params |= {"pool": "x1, x2; x3"} if name == "reduced-mkl" else {"M": 2}
    built, loaded = BUILDS[name](data, **params), load(name)
    assert isinstance(built, Formulation)
    assert (built.problem.C, built.problem.bias) == (2.0, name == "fgm")
    assert built.problem.loss == ("squared-hinge" if name in ("fgm", "reduced-mkl") else "hinge")
    problem = loaded(data, params)
    assert isinstance(problem, Problem)
    options = loaded.options(params)
    declare = options["declare"] if name != "fgm" else loaded.declare
    assert solve(declare(problem)) == pytest.approx(solve(built), rel=1e-9)


def test_parameters_that_are_options_of_the_driver_are_no_part_of_the_problem() -> None:
    loaded = load("fgm")
    assert loaded.options({"B": 2, "T": 5}) == {"T": 5}
    assert loaded(make(0).data, {"B": 2, "T": 5, "margin": "rho"}).margin == "rho"
    assert loaded.options({"M": 2}) == {}


def test_what_cannot_be_declared_is_refused() -> None:
    for page in (qcqp_ssvm, sdp_ssvm):
        with pytest.raises(UsageError, match="needs M"):
            page.declare(make(0))
    wide = Instance.from_arrays(sparse.csc_array((4, 3001)), [1, -1, 1, -1])
    for declare in (plain_svm.declare, qcqp_ssvm.declare, sdp_ssvm.declare, nmmkl.declare, qcqp_relaxation.declare):
        with pytest.raises(TooLargeError):
            declare(Problem(wide, M=2))
    from mipfs.atoms.features import Features

    problem = make(0, M=2)
    scaled = problem.replace(atoms=Features(problem.data, scaling=np.full(P, 2.0)))
    with pytest.raises(UsageError, match="cannot carry scaled features"):
        nmmkl.declare(scaled)


def test_big_m_rests_on_no_sum_of_the_svm_that_is_too_rough(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(6, 5))
    problem = Problem(Instance.from_arrays(X, np.resize([1.0, -1.0], 6)), M=4, C=1e10)
    before = Subproblem.solve

    def rough(self: Subproblem, *given: Any, **more: Any) -> Any:
        solved = before(self, *given, **more)
        return replace(solved, svm=replace(solved.svm, dual=solved.svm.dual + 1e3))

    known = big_m.implied_bounds(problem)
    monkeypatch.setattr(Subproblem, "solve", rough)
    assert big_m.implied_bounds(problem) == pytest.approx(known)
