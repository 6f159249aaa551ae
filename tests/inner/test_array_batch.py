"""Nodes relaxed in arrays of a library: the iteration beside the compiled one, losses beside NumPy's, and trees."""

from __future__ import annotations

import numpy as np
import pytest

import mipfs
from mipfs.errors import MissingExtraError, UsageError
from mipfs.inner.array_batch import ArrayBatch, Iteration, array_library, find_lanes_left
from mipfs.inner.batch import Batch
from mipfs.inner.boolean_node import FREE, INSIDE, NO_ROWS, OUTSIDE
from mipfs.kernels import batch
from mipfs.kernels.batch_structures import Lanes
from mipfs.losses import get_loss
from mipfs.pointers import run
from tests.inner.test_batched_nodes import KINDS, LOSSES, NEVER, problem_of


@pytest.mark.parametrize("loss", LOSSES)
def test_a_loss_in_arrays_is_that_of_its_file(loss: str) -> None:
    r = np.random.default_rng(0)
    own = get_loss(loss)
    one = own.kernels.arrays
    m, c = r.normal(size=(3, 40)), r.uniform(0.1, 2.0, 40)
    alpha = c * r.uniform(0.0, 1.0, (3, 40))
    alpha[:, :2] = 0.0, c[1]
    np.testing.assert_allclose(one.value(np, m, c), [own.value(row, c) for row in m])
    np.testing.assert_allclose(one.dual(np, alpha, c), [own.dual_value(row, c) for row in alpha], rtol=1e-9)
    weight, v = 5.0 * c, r.normal(size=(3, 40))
    h = one.proximal(np, v, weight, m)
    ones = np.ones(1)
    for step in (-1e-3, 1e-3):
        for i, j in np.ndindex(h.shape):
            at, beside = (weight[j] * own.value(np.array([t]), ones) + 0.5 * (t - v[i, j]) ** 2
                          for t in (h[i, j], h[i, j] + step))  # fmt: skip
            assert at <= beside + 1e-6


@pytest.mark.sampled(4)
@pytest.mark.parametrize("n", [40, 6])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_iteration_is_the_compiled_one(kind: str, loss: str, n: int) -> None:
    problem = problem_of(kind, loss, 1, n=n)
    k, B = problem.atoms.count, 4
    r = np.random.default_rng(k)
    solver = ArrayBatch(problem, np.arange(k), NEVER)
    handed = samples, _, rows, _, given, _, own = solver._prepare_exploration(1, NO_ROWS)
    compiled = solver.made(handed)
    lanes = own.lanes
    for array in (lanes.x, lanes.c, lanes.m, lanes.d):
        array[:B] = 0.3 * r.normal(size=array[:B].shape)
    lanes.states[:B], lanes.room[:B], lanes.threshold_start[:B], lanes.used[:B], lanes.cardinality_multiplier[:B] = (
        FREE,
        3,
        0.0,
        10,
        0.0,
    )
    lanes.states[1, 0], lanes.states[2, 1], lanes.room[1], lanes.room[3] = INSIDE, OUTSIDE, 2, 0
    lanes.costs[:B], lanes.rm[:B], lanes.intercept[:B] = given.shape.costs, 0.3, 0.0
    lanes.rx[:B], lanes.lower[:B], lanes.upper[:B] = [1.0, 2.0, 5.0, 3.0], -np.inf, np.inf
    iteration = Iteration(np, solver, get_loss(loss).kernels.arrays)
    state = iteration.enter(lanes, 0, B)
    for steps in (1, 9):
        run(compiled.advance, (given, rows, own, samples.loss, B, steps))
        iteration.advance(state, steps)
        for name in ("x", "c", "w", "m", "d", "alpha", "sigma"):
            np.testing.assert_allclose(getattr(state, name), getattr(lanes, name)[:B], atol=6e-3, err_msg=name)
    run(compiled.evaluate_bounds, (given, samples, rows, own, B))
    lower, upper = iteration.evaluate_bounds(state)
    np.testing.assert_allclose(lower, lanes.lower[:B], rtol=2e-3, atol=2e-3)
    np.testing.assert_allclose(upper, lanes.upper[:B], rtol=2e-3, atol=2e-3)
    lanes.used[:B] = 10
    batch.adapt_penalties(lanes, problem.data.n_samples, 10, B)
    iteration.adapt(state, np.ones(B, dtype=bool))
    np.testing.assert_allclose(state.rx[:, 0], lanes.rx[:B], rtol=2e-2)
    np.testing.assert_allclose(state.rm[:, 0], lanes.rm[:B], rtol=2e-2)


@pytest.mark.sampled(23)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
def test_trees_in_arrays_end_where_compiled_ones_do(kind: str, loss: str) -> None:
    problem = problem_of(kind, loss, 4, n=50, p=14, M=4)
    found, other = (mipfs.solve(problem, "branch", relax=relax, threads=1) for relax in ("array", "batch"))
    assert found.status is other.status is mipfs.Status.OPTIMAL
    assert found.objective == pytest.approx(other.objective, rel=1e-4)
    assert mipfs.verify(found, problem.data).accepted
    two = mipfs.solve(problem, "branch", relax="array", device="cpu", threads=2)
    assert (two.bound, two.counters) == (found.bound, found.counters)


def test_numbers_that_are_too_far_apart_are_for_the_interior_point(monkeypatch: pytest.MonkeyPatch) -> None:
    def divides_by_nothing(*_: object) -> None:
        raise ZeroDivisionError

    problem = problem_of("groups", "hinge", 3, M=2, lam=0.5)
    expected = mipfs.solve(problem, "branch", relax="interior")
    monkeypatch.setattr(batch, "begin", divides_by_nothing)
    result = mipfs.solve(problem, "branch", relax="array", iteration_limit=500)
    assert result.status is expected.status is mipfs.Status.OPTIMAL
    assert result.objective == pytest.approx(expected.objective, rel=1e-4)


def test_what_is_left_is_what_closing_up_leaves() -> None:
    lanes = Lanes.of_size(6, 2, 2, 2, 0)
    lanes.used[:] = np.arange(6)
    done = np.array([1, 3, 4, 0])
    batch.close_up(lanes, done, 3, 6)
    assert find_lanes_left(done[:3], 6).tolist() == lanes.used[:3].tolist()


def test_devices_and_what_arrays_do_not_take() -> None:
    problem = problem_of("groups", "hinge", 0)
    with pytest.raises(UsageError, match="device says where arrays lie"):
        mipfs.solve(problem, "branch", device="cpu")
    with pytest.raises(UsageError, match="relax = 'array' does not take this problem"):
        mipfs.solve(problem_of("groups with rows", "hinge", 0), "branch", relax="array")
    assert array_library("cpu") is np
    assert isinstance(ArrayBatch(problem, np.arange(problem.atoms.count), NEVER), Batch)
    try:
        import cupy  # noqa: F401
    except ImportError:
        with pytest.raises(MissingExtraError, match=r"mipfs\[gpu\]"):
            mipfs.solve(problem, "branch", relax="array", device="cuda")
