"""The interior point by conjugate gradients against the one that factors, and against the declared relaxation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from mipfs.data.instance import Instance, Row
from mipfs.inner.boolean import Boolean, SolvedRelaxation
from mipfs.inner.designs import Sparse
from mipfs.inner.interior import InteriorPoint
from mipfs.inner.iterative import IterativeInteriorPoint
from mipfs.inner.reduced_system import RowPolytope, cardinality
from mipfs.losses import get_loss
from mipfs.problem import Problem
from mipfs.regularisers.ridge import RIDGE
from mipfs.selection.selection import Rows
from mipfs.settings import InteriorSettings, RelaxationSettings
from tests.references import relaxation_reference

LOSSES = ("hinge", "squared-hinge", "logistic")
NEVER_CHEAP = RelaxationSettings(cheap=0.0, interior=InteriorSettings(least=20))
"""Small problems take the way of large ones."""
FACTORED = RelaxationSettings(cheap=0.0, interior=InteriorSettings(least=10**6))
"""They are solved by the interior point that factors."""


def text(seed: int, n: int, p: int, scale: str = "standard") -> Instance:
    """Counts with columns of one entry, equal and empty ones, and frequent ones."""
    r = np.random.default_rng(seed)
    often = 0.3 / np.arange(1, p + 1) ** 0.8
    X = (r.random((n, p)) < often) * r.integers(1, 4, (n, p)).astype(float)
    X[:, p // 2] = X[:, p // 2 + 1]
    X[:, -1] = 0.0
    X[:, -40:-20] = 0.0
    X[r.integers(0, n, 20), np.arange(p - 40, p - 20)] = 1.0
    y = np.where(X[:, :20] @ r.standard_normal(20) + 0.3 * r.standard_normal(n) > 0.0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return Instance.from_arrays(sparse.csc_array(X), y, sample_weight=r.uniform(0.5, 2.0, n), scale=scale)


def solved_both(problem: Problem, low: Any = None) -> tuple[SolvedRelaxation, SolvedRelaxation]:
    count = problem.atoms.count
    low = np.zeros(count) if low is None else low
    method = Boolean(problem, lambda: False, NEVER_CHEAP)
    ours = method.solve(low, np.ones(count), 1e-6)
    assert method._last is not None
    assert isinstance(method._last[0], IterativeInteriorPoint)
    theirs = Boolean(problem, lambda: False, FACTORED).solve(low, np.ones(count), 1e-7)
    return ours, theirs


def agree(ours: SolvedRelaxation, theirs: SolvedRelaxation) -> None:
    size = max(1e-3, abs(theirs.upper))
    assert ours.solved
    assert ours.lower <= theirs.upper + 1e-9 * size
    assert theirs.lower <= ours.upper + 1e-9 * size
    assert ours.upper - ours.lower <= 1e-6 * size
    assert abs(ours.lower - theirs.lower) <= 2e-6 * size


@pytest.mark.sampled(11)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("C", "M"), [(0.01, 5), (1.0, 10), (100.0, 3)])
def test_it_equals_the_factors(loss: str, C: float, M: int) -> None:
    problem = Problem(text(M, 220, 260), loss=loss, M=M, C=C)
    agree(*solved_both(problem))


@pytest.mark.parametrize("loss", LOSSES)
def test_without_an_intercept(loss: str) -> None:
    problem = Problem(text(1, 150, 200, "none"), loss=loss, M=4, C=0.5, bias=False)
    agree(*solved_both(problem))


@pytest.mark.parametrize("loss", LOSSES)
def test_penalties_fixed_atoms_and_rows(loss: str) -> None:
    data = text(2, 150, 200)
    r, names = np.random.default_rng(3), data.feature_names
    budget = Row("budget", {names[j]: float(r.uniform(0.5, 2.0)) for j in range(200)}, -np.inf, 9.0, "")
    few = Row("few", {names[j]: 1.0 for j in range(30)}, 1.0, 3.0, "")
    rows = Rows.of([budget, few], {name: j for j, name in enumerate(names)})
    problem = Problem(data, loss=loss, C=0.5, M=8, lam=r.uniform(0.0, 0.1, 200)).replace(rows=rows)
    low = np.zeros(200)
    low[[3, 50]] = 1.0
    agree(*solved_both(problem, low))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("loss", LOSSES)
def test_the_declared_relaxation(loss: str) -> None:
    problem = Problem(text(4, 80, 90), loss=loss, M=5, C=0.3)
    value = relaxation_reference(problem).value
    solved = Boolean(problem, lambda: False, NEVER_CHEAP).solve(np.zeros(90), np.ones(90), 1e-6)
    assert value * (1 - 2e-6) <= solved.lower <= value * (1 + 1e-6)


def test_unequal_scales() -> None:
    data = text(5, 150, 200, "none")
    X = sparse.csc_array(data.X * (10.0 ** np.linspace(-3.0, 3.0, 200))[None, :])
    for loss in LOSSES:
        problem = Problem(Instance.from_arrays(X, data.y), loss=loss, M=5, C=0.1)
        agree(*solved_both(problem))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("loss", LOSSES)
def test_where_gradients_fail_factors_go_on(loss: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = Problem(text(6, 200, 300), loss=loss, M=5, C=0.3)
    few = RelaxationSettings(cheap=0.0, interior=InteriorSettings(least=20, products=1))
    method = Boolean(problem, lambda: False, few)
    monkeypatch.setattr(IterativeInteriorPoint, "step", lambda self: InteriorPoint.step(self) and self.steps < 6)
    ours = method.solve(np.zeros(300), np.ones(300), 1e-6)
    assert method._last is not None
    assert not isinstance(method._last[0], IterativeInteriorPoint)
    monkeypatch.undo()
    theirs = Boolean(problem, lambda: False).solve(np.zeros(300), np.ones(300), 1e-7)
    agree(ours, theirs)


def test_a_direction_is_that_of_the_factors() -> None:
    exact = InteriorSettings(roughest=1e-11, finest=1e-11)
    r = np.random.default_rng(7)
    n, k = 60, 90
    y = np.where(r.random(n) < 0.5, 1.0, -1.0)
    Z = Sparse(sparse.csc_array(r.standard_normal((n, k)) * (r.random((n, k)) < 0.1)), lambda: False)
    A = np.concatenate([np.ones((1, k)), r.standard_normal((2, k))])
    polytopes = [
        cardinality(k, 7),
        cardinality(k, None),
        RowPolytope(A, np.array([7.0, 1.0, 0.3]), np.array([False, False, True]), np.zeros(k), np.ones(k)),
    ]
    for polytope in polytopes:
        for bias in (True, False):
            points = []
            for kind in (IterativeInteriorPoint, InteriorPoint):
                loss = get_loss("hinge").terms_at(np.ones(n), np.full(n, 0.5))
                method = kind(Z, y, loss, bias, np.arange(k), np.zeros(k), polytope, regulariser=RIDGE, settings=exact)
                for _ in range(4):
                    assert method.step()
                points.append(method.point)
            for name in ("w", "b", "x", "alpha", "multipliers"):
                np.testing.assert_allclose(
                    getattr(points[0], name), getattr(points[1], name), rtol=1e-6, atol=1e-7, err_msg=name
                )


def test_it_can_be_stopped() -> None:
    problem = Problem(text(8, 200, 300), loss="hinge", M=5, C=1.0)
    asked = 0

    def must_stop() -> bool:
        nonlocal asked
        asked += 1
        return asked > 60

    solved = Boolean(problem, must_stop, NEVER_CHEAP).solve(np.zeros(300), np.ones(300), 1e-9)
    assert not solved.solved
    assert np.isfinite(solved.lower)
    assert asked < 75
