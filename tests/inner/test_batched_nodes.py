"""Nodes relaxed many at a time: earned bounds, trees beside enumeration, and the SVM with ends."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import mipfs
from mipfs.atoms.features import Features
from mipfs.atoms.groups import Groups
from mipfs.drivers.waiting import pack_open_node
from mipfs.errors import UsageError
from mipfs.inner.batch import Batch, carries
from mipfs.inner.boolean import Boolean
from mipfs.inner.boolean_node import FREE, INSIDE, NO_ROWS, OUTSIDE, WarmStart
from mipfs.inner.propagation import Propagation
from mipfs.inner.regularised import RegularisedSolver
from mipfs.inner.rows_node import RowsRelaxation, choose_relaxation
from mipfs.inner.subproblem import Subproblem
from mipfs.inner.unit import NodeUnit
from mipfs.kernels import batch
from mipfs.kernels.structures import LIMITS
from mipfs.kernels.units import FirstDuals, OpenNodes
from mipfs.proof.duals import DualStore
from mipfs.result.status import Status
from mipfs.selection.rows import Extras, Row, Rows

Array = npt.NDArray[np.float64]
LOSSES = ("hinge", "squared-hinge", "logistic")
KINDS = ("plain", "signs", "box", "groups", "overlapping", "scaled", "costs")
WITH_ROWS = tuple(f"{kind} with rows" for kind in KINDS)
OVER = tuple(f"{kind} over weights" for kind in KINDS)
NEVER = np.zeros(1, dtype=np.int8)


def problem_of(kind: str, loss: str, seed: int, n: int = 40, p: int = 8, **options: Any) -> mipfs.Problem:
    """A small problem of one kind; C so that trees have some nodes."""
    if kind in WITH_ROWS:
        return with_rows(problem_of(KINDS[WITH_ROWS.index(kind)], loss, seed, n, p, **options), seed)
    if kind in OVER:
        return over_weights(problem_of(KINDS[OVER.index(kind)], loss, seed, n, p, **options), seed)
    r = np.random.default_rng([seed, KINDS.index(kind), LOSSES.index(loss)])
    X = r.normal(size=(n, p))
    y = np.where(X[:, :3].sum(axis=1) + 2.0 * r.normal(size=n) > 0.0, 1.0, -1.0)
    weights = r.uniform(0.3, 3.0, n) if seed % 2 else None
    data = mipfs.Instance.from_arrays(X, y, scale="standard", sample_weight=weights, counts=np.ones(n))
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


def with_rows(problem: mipfs.Problem, seed: int) -> mipfs.Problem:
    """The problem with a budget, at least one of some, an implication, and in every third case all M places taken."""
    r = np.random.default_rng(seed)
    k, M = problem.atoms.count, problem.M
    cost = r.uniform(0.2, 2.0, k).round(1)
    some, pair = (r.random(k) < 0.5) | (np.arange(k) == 0), np.where(np.arange(k) == 1, 1.0, 0.0)
    pair[2] = -1.0
    A = np.array([cost, some.astype(float), pair, np.ones(k)])
    low, high = (
        [-np.inf, 1.0, -np.inf, M if seed % 3 == 2 else 0.0],
        [np.sort(cost)[:M].sum() * 1.5, np.inf, 0.0, np.inf],
    )
    return problem.with_rows(A, low, high)


def over_weights(problem: mipfs.Problem, seed: int) -> mipfs.Problem:
    """The problem with rows over the weights: two-sided, of one end, and in every second case a zero sum; signs and
    boxes stay with single features."""
    r = np.random.default_rng(seed)
    names = problem.data.feature_names
    drawn = [dict(zip(names, r.normal(size=len(names)).round(2).tolist(), strict=True)) for _ in range(2)]
    rows = [(drawn[0], -0.05, 0.1), (drawn[1], None, 0.0), ({names[0]: 1.0, names[1]: 1.0, names[2]: 1.0}, 0.0, 0.0)]
    return problem.replace(weight_rows=rows[: 2 + seed % 2])


def unit_of(problem: mipfs.Problem, states: list[npt.NDArray[np.int8]], cutoff: float = math.inf) -> NodeUnit:
    """A unit of some nodes that begin with α = 0 and w = 0."""
    k, n = problem.atoms.count, problem.dual_size
    nodes = [
        pack_open_node(one, WarmStart(np.zeros(k, np.float32), 0.0, 0.5), -math.inf, t, 0)
        for t, one in enumerate(states)
    ]
    heads = np.concatenate([one.heads for one in nodes])
    sizes = np.array([one.words.size for one in nodes])
    heads["start"] = np.cumsum(sizes) - sizes
    store = DualStore(n)
    store.add(np.zeros(n, dtype=np.int64), 0)
    duals = FirstDuals.of_store(*store.packed(np.zeros(len(nodes), dtype=np.int64)))
    limits = np.zeros(len(nodes), LIMITS)
    limits["cutoff"], limits["level"], limits["tol"], limits["share"] = cutoff, math.inf, 2e-6, 4.0
    return NodeUnit(
        OpenNodes(heads, np.concatenate([one.words for one in nodes])),
        duals,
        limits,
        np.zeros((len(nodes), len(problem.selection.rows))),
    )


def value_of(problem: mipfs.Problem, sigma: npt.NDArray[np.bool_]) -> float:
    """v(σ) + c'σ of one selection, by the way that steps of Newton's do not go."""
    subproblem = Subproblem(problem)
    if isinstance(subproblem._solver, RegularisedSolver):
        subproblem._solver._by_newton = lambda *_: None  # type: ignore[method-assign]
    return subproblem.solve(sigma.astype(float), 1e-9).value


@pytest.mark.sampled(59)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS + WITH_ROWS + OVER[:4])
def test_a_relaxation_is_that_of_the_interior_point(kind: str, loss: str) -> None:
    """Bounds of nodes are within 1e-3 of their relaxations, never above, and those that the cut of the vector earns.

    With rows most are: an atom of no weight leaves σ, and so what a miss costs, open; with those over the weights some
    nodes take all iterations.
    """
    near = list[bool]()
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
        sides = Propagation(problem.selection, np.arange(k)).sides
        found = solver.explore_all(unit.nodes, unit.duals, unit.limits, sides, unit.prices)
        assert found.totals["solved"].tolist() == [1, 1, 1]
        ends = np.cumsum(found.counts)
        for t, one in enumerate(states):
            bounds = found.back.heads["bound"][ends[t] - found.counts[t] : ends[t]].tolist()
            if not bounds:  # the rows leave its children one selection, or none
                continue
            assert len(set(bounds)) == 1
            bound = bounds[0]
            low, high = (one == INSIDE).astype(float), (one != OUTSIDE).astype(float)
            exact = Boolean(problem, lambda: False).solve(low, high, 1e-9)
            assert bound <= exact.upper * (1.0 + 1e-9)
            near.append(bool(bound >= exact.lower - 1.5e-3 * abs(exact.lower)))
    assert sum(near) >= (len(near) if kind in KINDS else 0.7 * len(near))


@pytest.mark.sampled(43)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS + WITH_ROWS)
def test_trees_end_at_the_optimum(kind: str, loss: str) -> None:
    """Status, value, bound and support of trees beside the enumeration of all selections; certificates are checked."""
    for seed in range(2 if kind in KINDS else 1):
        problem = problem_of(kind, loss, seed + 4)
        k = problem.atoms.count
        values = {}
        for size in range(problem.M + 1):
            for chosen in itertools.combinations(range(k), size):
                sigma = np.zeros(k, dtype=bool)
                sigma[list(chosen)] = True
                if problem.selection.contains(sigma):
                    values[chosen] = value_of(problem, sigma)
        best = min(values.values())
        result = mipfs.solve(problem, driver="branch", gap=1e-6, relax="batch", threads=1)
        assert result.status is Status.OPTIMAL
        assert result.objective == pytest.approx(best, rel=1.1e-6)
        assert result.bound <= best * (1.0 + 1e-9)
        assert mipfs.verify(result, problem.data).accepted


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("kind", "seed"), [("groups", 1), ("box", 3), ("plain", 1), ("signs with rows", 2)])
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


@pytest.mark.parametrize("M", [0, 2])
def test_nodes_that_are_given_up_again_and_again_are_split_by_the_tree(M: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where numbers are too far apart for every node, the interior point alone finds the optimum."""

    def divides_by_nothing(*_: Any) -> None:
        raise ZeroDivisionError

    problem = problem_of("groups", "hinge", 3, M=M, lam=0.5)
    expected = mipfs.solve(problem, gap=1e-4, relax="interior")
    monkeypatch.setattr(batch, "explore", divides_by_nothing)
    result = mipfs.solve(problem, gap=1e-4, relax="batch", iteration_limit=500)
    assert (result.status, expected.status) == (Status.OPTIMAL, Status.OPTIMAL)
    assert result.objective == pytest.approx(expected.objective, rel=1e-4)


@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_selected_where_all_are_too_dear(seed: int) -> None:
    problem = problem_of("groups", "hinge", seed, M=0, lam=50.0)
    result = mipfs.solve(problem, gap=1e-4, iteration_limit=20)
    assert result.status is Status.OPTIMAL
    assert result.selected == ()


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
    assert carries(problem_of("groups with rows", "hinge", 0))
    assert choose_relaxation(problem_of("plain over weights", "hinge", 0)) == "batch"
    assert choose_relaxation(problem_of("plain with rows", "hinge", 0)) == "kernels"
    rows = problem_of("groups", "hinge", 0)
    index = {name: at for at, name in enumerate(rows.atoms.names)}
    extra = Extras(("e",), np.zeros(1), np.ones(1), np.zeros(1, dtype=bool))
    rows = rows.replace(rows=Rows.of([Row("r", {rows.atoms.names[0]: 1.0, "e": 1.0}, 1.0, np.inf)], index, extra))
    assert not carries(rows)
    with pytest.raises(UsageError, match="relax = 'batch' does not take this problem; it is 'interior'"):
        mipfs.solve(rows, driver="branch", relax="batch")
    with pytest.raises(UsageError, match="relax = 'kernels'"):
        mipfs.solve(problem_of("box", "hinge", 0), driver="branch", relax="kernels")


def dense(n: int, p: int, seed: int, spread: float = 0.0) -> mipfs.Instance:
    """Dense data, a few of whose columns tell; norms of the columns differ by a factor of e^spread."""
    r = np.random.default_rng(seed)
    X = r.normal(size=(n, p))
    y = np.where(X[:, :4].sum(axis=1) + r.normal(size=n) > 0.0, 1.0, -1.0)
    return mipfs.Instance.from_arrays(X * np.exp(spread * r.normal(size=p)), y)


def test_dense_data_long_on_two_sides_go_to_the_batch() -> None:
    long = mipfs.Problem(dense(420, 400, 1), M=3, C=1.0)
    assert choose_relaxation(long) == "batch"
    assert choose_relaxation(long, "kernels") == "kernels"
    assert choose_relaxation(mipfs.Problem(dense(399, 400, 1), M=3, C=1.0)) == "kernels"
    assert choose_relaxation(mipfs.Problem(dense(420, 450, 1), M=3, C=1.0)) == "kernels"
    assert choose_relaxation(mipfs.Problem(dense(2049, 2049, 1), M=3, C=1.0)) == "kernels"
    assert choose_relaxation(mipfs.Problem(dense(420, 400, 1, spread=2.0), M=3, C=1.0)) == "kernels"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("loss", LOSSES)
def test_a_long_root_is_that_of_the_interior_point(loss: str) -> None:
    problem = mipfs.Problem(dense(420, 400, 2), M=4, C=0.1, loss=loss)
    states = np.full(400, FREE, dtype=np.int8)
    found = dict[str, Any]()
    for relax in ("batch", "kernels"):
        relaxation = RowsRelaxation(problem, np.arange(400), lambda: False, NEVER, relax=relax)
        found[relax], cut = relaxation.solve_root(states, 1e-6)
        assert found[relax].bound <= found["batch"].bound * (1.0 + 1e-3)
        assert cut.dual is not None
    assert found["batch"].bound <= found["kernels"].bound * (1.0 + 1e-6)
    assert found["batch"].bound == pytest.approx(found["kernels"].bound, rel=1e-3)
    assert found["batch"].sigma.sum() == pytest.approx(4.0, abs=1e-2)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("loss", LOSSES)
def test_a_long_tree_ends_where_that_of_the_kernels_does(loss: str) -> None:
    data = dense(420, 400, 3)
    problem = mipfs.Problem(data, M=4, C=0.01, loss=loss)
    one, other = mipfs.solve(problem, "branch", threads=1), mipfs.solve(problem, "branch", threads=2)
    by_kernels = mipfs.solve(problem, "branch", relax="kernels")
    assert one.status is by_kernels.status is Status.OPTIMAL
    assert one.objective == pytest.approx(by_kernels.objective, rel=1e-4)
    assert one.bound == other.bound
    assert one.counters == other.counters
    assert mipfs.verify(one, data).accepted


@pytest.mark.parametrize("loss", LOSSES)
def test_the_best_single_feature_of_long_data_is_found_where_all_nodes_are_enumerated(loss: str) -> None:
    data = dense(420, 400, 5)
    problem = mipfs.Problem(data, M=1, C=0.1, loss=loss)
    assert choose_relaxation(problem) == "batch"
    result = mipfs.solve(problem, "branch", threads=1)
    assert result.status is Status.OPTIMAL
    # The labels are made of the first four.
    alone = (mipfs.Instance.from_arrays(data.block().dense()[:, [j]], data.y) for j in range(4))
    each = [mipfs.solve(mipfs.Problem(one, M=1, C=0.1, loss=loss), "branch").objective for one in alone]
    assert result.objective == pytest.approx(min(each), rel=1e-4)
    assert mipfs.verify(result, data).accepted


def test_a_long_root_that_is_stopped_leaves_what_it_has() -> None:
    problem = mipfs.Problem(dense(420, 400, 4), M=4, C=1.0)
    relaxation = RowsRelaxation(problem, np.arange(400), lambda: True, NEVER, relax="batch")
    outcome, _ = relaxation.solve_root(np.full(400, FREE, dtype=np.int8), 1e-6)
    assert np.isfinite(outcome.bound)
    assert outcome.bound <= 0.0
    result = mipfs.solve(problem, "branch", time_limit=1e-3)
    assert result.bound >= 0.0
    assert mipfs.verify(result, problem.data).accepted


@pytest.mark.sampled(2)
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


def test_what_a_worker_was_sent_may_be_read_only_or_a_part_of_more() -> None:
    """The steps are compiled for arrays as the tree makes them; those of a message are of other types."""
    problem = problem_of("groups", "hinge", 2)
    k = problem.atoms.count
    unit = unit_of(problem, [np.full(k, FREE, dtype=np.int8)] * 2, cutoff=1e9)
    solver, found = Batch(problem, np.arange(k), NEVER), []
    sent = unit.limits.copy()
    sent.flags.writeable = False
    for limits in (unit.limits, sent, np.repeat(unit.limits, 2)[::2]):
        answer = solver.explore_all(unit.nodes, unit.duals, limits, NO_ROWS, unit.prices)
        found.append([one.tobytes() for one in answer[:5]])
    assert found[0] == found[1] == found[2]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", ["plain over weights", "box over weights", "overlapping over weights"])
def test_the_svm_with_rows_over_the_weights_is_that_of_the_interior_point(kind: str, loss: str) -> None:
    """Newton's steps with multipliers bring it home, as near as the allowance of rows lets both values come."""
    for seed in range(3):
        problem = problem_of(kind, loss, seed, n=60)
        r = np.random.default_rng(seed)
        newton, interior = Subproblem(problem), Subproblem(problem)
        assert interior._with_multipliers is not None
        interior._with_multipliers.solve = lambda *_: None  # type: ignore[method-assign]
        for _ in range(2):  # the second one begins where the first one ends
            sigma = np.zeros(problem.atoms.count)
            sigma[r.choice(sigma.size, 3, replace=False)] = 1.0
            found, exact = newton.solve(sigma, 1e-9), interior.solve(sigma, 1e-9)
            assert exact.lower * (1.0 - 1e-9) <= found.value <= exact.value * (1.0 + 1e-8)
            assert found.lower <= exact.value * (1.0 + 1e-9)
            assert found.svm.gap <= 1e-8
            assert found.svm.alpha.size == problem.dual_size
