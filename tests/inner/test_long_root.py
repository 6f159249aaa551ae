"""The root of large dense data by the batch's iteration alone, beside the interior point."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

import mipfs
from mipfs.inner.long_root import LoneIteration, LongRoot, is_large
from mipfs.inner.rows_node import RowsRelaxation
from mipfs.kernels.propagation import FREE, INSIDE, OUTSIDE
from mipfs.plumbing.blocks import inside
from mipfs.settings import BatchSettings

SHAPES = {"tall": (240, 120), "wide": (120, 180)}
M = 4
SETTINGS = BatchSettings(long=50, alone_from=100, alone_samples=100)
LOSSES = "hinge", "squared-hinge", "logistic"


def problem_of(loss: str, shape: str = "tall", *, bias: bool = True, lam: float = 0.0) -> mipfs.Problem:
    """Correlated columns whose means are not 0, and labels of four of them."""
    n, p = SHAPES[shape]
    random = np.random.default_rng(3)
    X = random.standard_normal((n, p))
    X[:, 1:] += 0.8 * X[:, :-1]
    chances = 1.0 / (1.0 + np.exp(-X[:, [10, 40, 70, 100]].sum(axis=1)))
    y = np.where(random.random(n) < chances, 1.0, -1.0)
    return mipfs.Problem(mipfs.Instance.from_arrays(X + 0.3, y), M=M, C=1.0, loss=loss, bias=bias, lam=lam)


def relaxation_of(problem: mipfs.Problem, settings: BatchSettings) -> RowsRelaxation:
    everything, stop = np.arange(problem.atoms.count), np.zeros(1, dtype=np.int8)
    return RowsRelaxation(problem, everything, lambda: False, stop, relax="kernels", batch=settings)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("loss", LOSSES)
def test_it_earns_what_the_interior_point_earns(loss: str, shape: str, bias: bool) -> None:
    problem = problem_of(loss, shape, bias=bias)
    states = np.full(problem.atoms.count, FREE, dtype=np.int8)
    for forced, left_out in (([], []), ([3, 40], [10, 11])):
        states[forced], states[left_out] = INSIDE, OUTSIDE
        exact, _ = relaxation_of(problem, replace(SETTINGS, alone_from=1000)).solve_root(states, 1e-7)
        found, cut = relaxation_of(problem, SETTINGS).solve_root(states, 1e-7)
        assert found.steps != exact.steps
        assert found.bound <= exact.bound * (1.0 + 1e-6)
        # A thousand iterations leave the hinge that far.
        assert found.bound == pytest.approx(exact.bound, rel=3e-3 if loss == "hinge" else 1e-3)
        assert cut.dual is not None
        assert found.sigma.sum() == pytest.approx(M, rel=1e-3)
        assert np.all(found.sigma[forced] == 1.0)
        assert np.all(found.sigma[left_out] == 0.0)


@pytest.mark.parametrize("bias", [True, False])
def test_children_begin_with_its_weights(bias: bool) -> None:
    """Of single features the weights themselves and the intercept, as kernels have them: the value there is the
    root's."""
    problem = problem_of("logistic", bias=bias)
    found, _ = relaxation_of(problem, SETTINGS).solve_root(np.full(120, FREE, dtype=np.int8), 1e-7)
    Z = np.asarray(problem.data.X) - problem.data.center
    w, sigma = found.warm.w.astype(float), found.sigma
    is_in = sigma > 1e-6
    margins = problem.data.y * (Z @ w + found.warm.b)
    value = 0.5 * np.sum(np.square(w[is_in]) / sigma[is_in]) + problem.c_i @ np.logaddexp(0.0, -margins)
    assert value == pytest.approx(found.bound, rel=1e-3)


@pytest.mark.parametrize("loss", LOSSES)
def test_penalties_count(loss: str) -> None:
    problem = problem_of(loss, lam=2.0)
    states = np.full(120, FREE, dtype=np.int8)
    exact, _ = relaxation_of(problem, replace(SETTINGS, alone_from=1000)).solve_root(states, 1e-7)
    found, _ = relaxation_of(problem, SETTINGS).solve_root(states, 1e-7)
    assert found.bound == pytest.approx(exact.bound, rel=1e-3)


def test_a_node_that_is_stopped_has_what_it_has() -> None:
    problem, states = problem_of("hinge"), np.full(120, FREE, dtype=np.int8)
    relaxation = relaxation_of(problem, SETTINGS)
    exact, _ = relaxation.solve_root(states, 1e-7)
    for looks in (0, 3):
        asked = iter([False] * looks)
        relaxation.must_stop = lambda asked=asked: next(asked, True)  # type: ignore[misc]
        found, _ = relaxation.solve_root(states, 1e-7)
        assert found.steps == 10 * looks
        assert (found.bound > 0.0) == (looks > 0)
        assert found.bound <= exact.bound * (1.0 + 1e-6)


def test_what_does_not_come_near_is_the_interior_points() -> None:
    problem, states = problem_of("hinge"), np.full(120, FREE, dtype=np.int8)
    short = replace(SETTINGS, most_root=10, stuck=1e-6)
    assert LongRoot(problem, np.arange(120), short).relaxed(states, lambda: False) is None
    exact, _ = relaxation_of(problem, replace(SETTINGS, alone_from=1000)).solve_root(states, 1e-7)
    found, _ = relaxation_of(problem, short).solve_root(states, 1e-7)
    assert found.bound == exact.bound


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("C", [1e-4, 1e3, 1e6, 1e9])
def test_loss_weights_of_any_size(C: float, loss: str) -> None:
    """Where float32 has no factor the root is the interior point's; nothing is said on the way."""
    problem = problem_of(loss).replace(C=C)
    states = np.full(120, FREE, dtype=np.int8)
    exact, _ = relaxation_of(problem, replace(SETTINGS, alone_from=1000)).solve_root(states, 1e-7)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found, _ = relaxation_of(problem, SETTINGS).solve_root(states, 1e-7)
    assert found.bound <= exact.bound * (1.0 + 1e-6)
    assert found.bound == pytest.approx(exact.bound, rel=2e-2)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_point_on_the_graph_minimises(shape: str) -> None:
    """x = (κI + A'A)⁻¹(κc + A'd), whatever penalty comes next; of fewer rows than columns by the matrix of the rows."""
    problem = problem_of("logistic", shape)
    root = LongRoot(problem, np.arange(problem.atoms.count), SETTINGS)
    one, random = root.iteration, np.random.default_rng(0)
    assert isinstance(one, LoneIteration)
    A = one.A.astype(float)
    s = root._from_nothing(np.full(A.shape[1], FREE, dtype=np.int8))
    for kappa in (3.0, 700.0, 3.0):
        s.c, s.d = (random.standard_normal(one.shape).astype(np.float32) for one in (s.c, s.d))
        x, m = one.point_on_graph(s, np.full((1, 1), kappa, np.float32))
        exact = np.linalg.solve(kappa * np.eye(A.shape[1]) + A.T @ A, kappa * s.c[0] + A.T @ s.d[0])
        np.testing.assert_allclose(x[0], exact, atol=1e-4 * np.abs(exact).max())
        np.testing.assert_allclose(m[0], A @ exact, atol=1e-4 * np.abs(A @ exact).max())


def test_threads_share_blocks_to_the_same_bits() -> None:
    random = np.random.default_rng(1)
    X = random.standard_normal((2400, 1300))
    y = np.where(X[:, :4].sum(axis=1) + random.standard_normal(2400) > 0.0, 1.0, -1.0)
    problem = mipfs.Problem(mipfs.Instance.from_arrays(X, y), M=M, C=1.0, loss="logistic")
    states, found = np.full(1300, FREE, dtype=np.int8), []
    for threads in (1, 3):
        with inside(lambda threads=threads: threads):  # type: ignore[misc]
            root = LongRoot(problem, np.arange(1300), SETTINGS)
            assert root.iteration.blocks > 1
            relaxed = root.relaxed(states, lambda: False)
            assert relaxed is not None
            found.append((relaxed.alpha.tobytes(), relaxed.sigma.tobytes(), relaxed.steps))
    assert found[0] == found[1]


def test_which_roots_are() -> None:
    """Of stored dense data long on both sides whose columns are of one order, with no rows."""
    problem = problem_of("hinge")
    assert is_large(problem, 120, SETTINGS)
    assert not is_large(problem, 120)
    assert not is_large(problem, 99, SETTINGS)
    assert not is_large(problem.with_rows(np.ones((1, 120)), -np.inf, 3.0), 120, SETTINGS)
    uneven = mipfs.Instance.from_arrays(np.asarray(problem.data.X) * np.exp(np.arange(120) / 10.0), problem.data.y)
    assert not is_large(mipfs.Problem(uneven, M=M, C=1.0), 120, SETTINGS)
