"""Nodes relaxed many at a time: proximal steps, earned bounds, trees beside enumeration, and the SVM with ends."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.optimize import minimize_scalar

import mipfs
from mipfs.atoms.features import Features
from mipfs.atoms.groups import Groups
from mipfs.drivers.waiting import packed
from mipfs.errors import UsageError
from mipfs.inner.batch import Batch, carries
from mipfs.inner.boolean import Boolean
from mipfs.inner.boolean_node import FREE, INSIDE, NO_ROWS, OUTSIDE, Warm
from mipfs.inner.regularised import RegularisedSolver
from mipfs.inner.subproblem import Subproblem
from mipfs.inner.unit import Unit
from mipfs.kernels import batch
from mipfs.kernels.structures import LIMITS
from mipfs.kernels.units import FirstDuals, OpenNodes
from mipfs.losses import get_loss
from mipfs.proof.cuts import scores_above
from mipfs.proof.duals import DualStore
from mipfs.result.status import Status

Array = npt.NDArray[np.float64]
LOSSES = ("hinge", "squared-hinge", "logistic")
KINDS = ("plain", "signs", "box", "groups", "overlapping", "scaled", "costs")
NEVER = np.zeros(1, dtype=np.int8)


def problem_of(kind: str, loss: str, seed: int, n: int = 40, p: int = 8, **options: Any) -> mipfs.Problem:
    """A small problem of one kind; C so that trees have some nodes."""
    r = np.random.default_rng([seed, KINDS.index(kind), LOSSES.index(loss)])
    X = r.normal(size=(n, p))
    y = np.where(X[:, :3].sum(axis=1) + 2.0 * r.normal(size=n) > 0.0, 1.0, -1.0)
    weights = r.uniform(0.3, 3.0, n) if seed % 2 else None
    data = mipfs.Instance.from_arrays(X, y, scale="standard", sample_weight=weights)
    names, more = list(data.feature_names), dict[str, Any]()
    if kind == "signs":
        more["weight_bounds"] = {f: [(0.0, None), (None, 0.0), (None, None)][r.integers(3)] for f in names}
    elif kind == "box":
        more["weight_bounds"] = {f: (-abs(r.normal()) * 0.2, abs(r.normal()) * 0.2) for f in names}
    elif kind == "groups":
        owner = r.integers(0, p - 2, p)
        members = {f"g{g}": np.flatnonzero(owner == g).tolist() for g in np.unique(owner)}
        more["atoms"] = Groups(data, members, "norm")
    elif kind == "overlapping":
        drawn = [r.choice(p, int(r.integers(1, 4)), replace=False).tolist() for _ in range(7)]
        more["atoms"] = Groups(data, {f"g{g}": ids for g, ids in enumerate(drawn)})
    elif kind == "scaled":
        more["atoms"] = Features(data, r.uniform(0.3, 2.0, p))
    elif kind == "costs":
        more["lam"] = r.uniform(0.0, 2.0, p).tolist()
    return mipfs.Problem(data, **({"M": 3, "C": 1.0, "loss": loss, "bias": seed % 3 > 0} | more | options))


def unit_of(problem: mipfs.Problem, states: list[npt.NDArray[np.int8]], cutoff: float = math.inf) -> Unit:
    """A unit of some nodes that begin with α = 0 and w = 0."""
    k, n = problem.atoms.count, problem.data.n_samples
    nodes = [packed(one, Warm(np.zeros(k, np.float32), 0.0, 0.5), -math.inf, t, 0) for t, one in enumerate(states)]
    heads = np.concatenate([one.heads for one in nodes])
    sizes = np.array([one.words.size for one in nodes])
    heads["start"] = np.cumsum(sizes) - sizes
    store = DualStore(n)
    store.add(np.zeros(n, dtype=np.int64), 0)
    data, *numbers = store.packed(np.zeros(len(nodes), dtype=np.int64))
    duals = FirstDuals(np.frombuffer(data, dtype=np.uint8), *(np.asarray(one, dtype=np.int64) for one in numbers))
    limits = np.zeros(len(nodes), LIMITS)
    limits["cutoff"], limits["level"], limits["tol"], limits["share"] = cutoff, math.inf, 2e-6, 4.0
    return Unit(
        OpenNodes(heads, np.concatenate([one.words for one in nodes])), duals, limits, np.zeros((len(nodes), 0))
    )


def value_of(problem: mipfs.Problem, sigma: npt.NDArray[np.bool_]) -> float:
    """v(σ) + c'σ of one selection, by the way that steps of Newton's do not go."""
    subproblem = Subproblem(problem)
    if isinstance(subproblem._solver, RegularisedSolver):
        subproblem._solver._by_newton = lambda *_: None  # type: ignore[method-assign]
    return subproblem.solve(sigma.astype(float), 1e-9).value


@pytest.mark.parametrize("loss", LOSSES)
def test_a_proximal_step_of_a_loss_is_the_least_of_its_function(loss: str) -> None:
    r = np.random.default_rng(0)
    kernels = get_loss(loss).kernels
    m, d = r.normal(size=60).astype(np.float32), (3.0 * r.normal(size=60)).astype(np.float32)
    c, part, relax = r.uniform(0.1, 2.0, 60).astype(np.float32), np.float32(5.0), np.float32(1.6)
    c.flags.writeable = False
    v, before, alpha = 2.0 * m.astype(float) - d, d.copy(), np.empty(60, np.float32)
    kernels.proximal(m, d, c, part, relax, alpha)
    one = np.ones(1)
    for i in range(60):
        value = get_loss(loss).value
        exact = minimize_scalar(
            lambda h: 5.0 * c[i] * value(np.array([h]), one) + 0.5 * (h - v[i]) ** 2,  # noqa: B023
            bounds=(v[i] - 1.0, v[i] + 5.0 * c[i] + 6.0 * abs(v[i]) + 1.0), method="bounded", options={"xatol": 1e-9},
        ).x  # fmt: skip
        assert alpha[i] == pytest.approx(exact - v[i], abs=3e-3)
        assert d[i] == pytest.approx(before[i] + 1.6 * (exact - m[i]), abs=5e-3)


@pytest.mark.parametrize("kind", ["plain", "signs", "box", "groups", "costs"])
def test_the_proximal_step_of_the_weights_is_the_least_of_its_function(kind: str) -> None:
    """No other (σ, w) has a smaller ½ Σ‖w‖²/σ + c'σ + ½ρ‖w − v‖²: compared with points around and at random."""
    r = np.random.default_rng(1)
    problem = problem_of(kind, "hinge", 2)
    k = problem.atoms.count
    solver = Batch(problem, np.arange(k), NEVER)
    _, _, _, _, _, given, _, own = solver._handed(1)
    shape, lanes = given.shape, own.lanes
    q, rx, M = lanes.x.shape[1], 3.0, 3
    v = r.normal(size=q) * (0.3 if kind != "costs" else 3.0)
    lanes.x[0], lanes.c[0] = 0.0, -v
    lanes.states[0], lanes.room[0], lanes.scale[0], lanes.rx[0] = FREE, M, 0.0, rx
    batch.weights_step(shape, lanes, 1)
    w, sigma = lanes.w[0].astype(float), lanes.sigma[0].astype(float)
    owner = np.repeat(np.arange(k), np.diff(shape.first))

    def value(w: Array, sigma: Array) -> float:
        squares = np.bincount(owner, np.square(w), k)
        term = np.divide(squares, sigma, out=np.where(squares > 0.0, np.inf, 0.0), where=sigma > 0.0)
        return float(0.5 * term.sum() + shape.costs @ sigma + 0.5 * rx * np.square(w - v).sum())

    assert sigma.sum() <= M + 1e-3
    low, high = np.maximum(shape.low, -1e6), np.minimum(shape.high, 1e6)
    assert np.all(w >= low * sigma[owner] - 1e-6)
    assert np.all(w <= high * sigma[owner] + 1e-6)
    least = value(w, sigma)
    for scale in (1e-3, 1e-2, 0.1, 1.0):
        for _ in range(300):
            other = np.clip(sigma + scale * r.normal(size=k) * (r.random(k) < 0.4), 1e-6, 1.0)
            if other.sum() > M:
                other *= M / other.sum()
            for point in (rx * v * other[owner] / (1.0 + rx * other[owner]), w + scale * r.normal(size=q)):
                inside = np.clip(point, low * other[owner], high * other[owner])
                assert value(inside, other) >= least - 2e-4 * (1.0 + abs(least))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_relaxation_is_that_of_the_interior_point(kind: str, loss: str) -> None:
    """Bounds of nodes are within 1e-3 of their relaxations, never above, and those that the cut of the vector earns."""
    for seed in range(3):
        problem = problem_of(kind, loss, seed)
        k = problem.atoms.count
        r = np.random.default_rng(seed)
        states = [np.full(k, FREE, dtype=np.int8) for _ in range(3)]
        states[1][r.integers(k)] = INSIDE
        states[2][r.integers(k)] = OUTSIDE
        unit = unit_of(problem, states)
        unit.limits["level"] = -math.inf  # the nodes themselves, and nothing below them
        solver = Batch(problem, np.arange(k), NEVER)
        found = solver.explore_all(unit.nodes, unit.duals, unit.limits, NO_ROWS, unit.prices)
        assert found.totals["solved"].tolist() == [1, 1, 1]
        bounds = [float(found.places["value"][at]) for at in np.flatnonzero(found.places["feature"] >= 0)]
        for one, bound in zip(states, bounds, strict=True):
            low, high = (one == INSIDE).astype(float), (one != OUTSIDE).astype(float)
            exact = Boolean(problem, lambda: False).solve(low, high, 1e-9)
            assert bound <= exact.upper * (1.0 + 1e-9)
            assert bound >= exact.lower - 1.5e-3 * abs(exact.lower)


@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_those_of_the_cuts(kind: str) -> None:
    """The compiled scores of dual vectors equal those of `mipfs.proof.cuts`, which the checkers agree with."""
    problem = problem_of(kind, "hinge", 3)
    k = problem.atoms.count
    solver = Batch(problem, np.arange(k), NEVER)
    given, own = solver._given, solver._handed(0)[7]
    v = np.random.default_rng(0).normal(size=(5, problem.data.n_samples))
    own.earned.v[:5] = v
    batch.scores_above(given.scoring, given.shape.first, own.earned, 5)
    for f in range(5):
        np.testing.assert_allclose(own.earned.s[f], scores_above(problem, v[f]), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
def test_trees_end_at_the_optimum(kind: str, loss: str) -> None:
    """Status, value, bound and support of trees beside the enumeration of all selections; certificates are checked."""
    for seed in range(2):
        problem = problem_of(kind, loss, seed + 4)
        k = problem.atoms.count
        values = {}
        for size in range(problem.M + 1):
            for chosen in itertools.combinations(range(k), size):
                sigma = np.zeros(k, dtype=bool)
                sigma[list(chosen)] = True
                values[chosen] = value_of(problem, sigma)
        best = min(values.values())
        result = mipfs.solve(problem, driver="branch", gap=1e-6, relax="batch", threads=1)
        assert result.status is Status.OPTIMAL
        assert result.objective == pytest.approx(best, rel=1.1e-6)
        assert result.bound <= best * (1.0 + 1e-9)
        assert mipfs.verify(result, problem.data).accepted


@pytest.mark.parametrize(("kind", "seed"), [("groups", 1), ("box", 3), ("plain", 1)])
def test_a_tree_does_not_depend_on_the_threads(kind: str, seed: int) -> None:
    problem = problem_of(kind, "hinge", seed, n=80, p=30, M=5)
    one, two = (mipfs.solve(problem, driver="branch", threads=threads, relax="batch") for threads in (1, 2))
    assert dict(one.counters)["nodes"] > 20
    assert dict(one.counters) == dict(two.counters)
    assert one.bound == two.bound
    assert one.weights == two.weights
    for one_array, two_array in zip(*(result.claim.arrays().values() for result in (one, two)), strict=True):
        np.testing.assert_array_equal(one_array, two_array)


def test_what_takes_too_long_goes_to_the_interior_point() -> None:
    problem = problem_of("box", "hinge", 1, n=60, p=16, M=4)
    settings = mipfs.settings.BranchSettings(batch=mipfs.settings.BatchSettings(most=10, stuck=1e-9))
    result = mipfs.solve(problem, driver="branch", relax="batch", threads=1, settings=settings)
    assert dict(result.counters)["rescued"] > 0
    assert result.status is Status.OPTIMAL
    assert mipfs.verify(result, problem.data).accepted


def test_a_unit_that_is_stopped_gives_its_nodes_back() -> None:
    problem = problem_of("plain", "hinge", 1)
    k = problem.atoms.count
    unit = unit_of(problem, [np.full(k, FREE, dtype=np.int8)] * 2)
    solver = Batch(problem, np.arange(k), np.ones(1, dtype=np.int8))
    found = solver.explore_all(unit.nodes, unit.duals, unit.limits, NO_ROWS, unit.prices)
    assert found.totals["solved"].tolist() == [0, 0]
    assert found.counts.tolist() == [1, 1]
    assert found.back.heads["why"].tolist() == [0, 0]


def test_what_relaxes_is_a_rule_and_an_option() -> None:
    assert carries(problem_of("groups", "hinge", 0))
    assert carries(problem_of("box", "logistic", 0))
    rows = problem_of("groups", "hinge", 0)
    rows = rows.with_rows(np.ones((1, rows.atoms.count)), 1.0, np.inf)
    assert not carries(rows)
    with pytest.raises(UsageError, match="relax = 'batch' does not take this problem; it is 'interior'"):
        mipfs.solve(rows, driver="branch", relax="batch")
    with pytest.raises(UsageError, match="relax = 'kernels'"):
        mipfs.solve(problem_of("box", "hinge", 0), driver="branch", relax="kernels")


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", ["signs", "box"])
def test_the_svm_with_ends_is_that_of_the_interior_point(kind: str, loss: str) -> None:
    for seed in range(4):
        problem = problem_of(kind, loss, seed, n=60, p=8)
        r = np.random.default_rng(seed)
        ids = np.sort(r.choice(8, int(r.integers(1, 7)), replace=False))
        share = r.uniform(0.1, 1.0, ids.size) if seed % 2 else np.ones(ids.size)
        newton, interior = RegularisedSolver(problem), RegularisedSolver(problem)
        interior._by_newton = lambda *_: None  # type: ignore[method-assign]
        found = newton._by_newton(ids, share, 1e-10, None)
        exact = interior.solve(ids, share, tol=1e-8)
        assert found is not None
        assert found.gap <= 1e-10
        assert found.primal == pytest.approx(exact.primal, rel=1e-7)
        low, high = problem.regulariser.at(ids).ends
        assert np.all((found.w >= low * share) & (found.w <= high * share))
        again = newton._by_newton(ids, share, 1e-10, (found.w, found.b, found.alpha, found.rho))
        assert again is not None
        assert again.primal == pytest.approx(found.primal, rel=1e-9)
        assert again.steps <= found.steps
