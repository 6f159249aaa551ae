"""Roots of hostile data are solved: both sides are computed again from their definitions, and meet."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import sparse

from mipfs.data.instance import Instance
from mipfs.inner.boolean import Boolean, SolvedRelaxation
from mipfs.losses import get_loss
from mipfs.problem import Problem
from tests.references import relaxation_reference

Array = npt.NDArray[np.float64]
LOSSES = ("hinge", "squared-hinge", "logistic")
TOL = 1e-4


def solve(problem: Problem, tol: float = TOL) -> SolvedRelaxation:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return Boolean(problem, lambda: False).solve(*problem.selection.sigma_bounds(), tol)


def primal(problem: Problem, solved: SolvedRelaxation) -> float:
    """½ Σ w_j²/σ_j + L at the point, from the definition; the point itself is checked to be feasible."""
    data, sigma = problem.data, solved.sigma
    assert sigma.min() >= 0.0
    assert sigma.max() <= 1.0
    X = np.asarray(data.X.todense() if sparse.issparse(data.X) else data.X, dtype=float)[:, solved.ids]
    m = data.y * ((X - data.center[solved.ids]) @ solved.w + solved.b)
    c = problem.c_i
    short = np.maximum(0.0, 1.0 - m)
    loss = {"hinge": c @ short, "squared-hinge": 0.5 * c @ short**2, "logistic": c @ np.logaddexp(0.0, -m)}[
        problem.loss
    ]
    # the least Σ w²/σ over Σσ ≤ M by a search for the level, whatever σ was returned
    size, M = np.abs(solved.w), problem.M
    assert M is not None
    low, high = 0.0, float(size.sum()) / max(M, 1)
    for _ in range(200):
        level = 0.5 * (low + high)
        held = np.minimum(1.0, size / max(level, 1e-300)).sum()
        low, high = (level, high) if held > M else (low, level)
    share = np.minimum(1.0, size / max(high, 1e-300))
    return float(loss) + 0.5 * float(np.sum(size[size > 0] ** 2 / share[size > 0]))


def dual(problem: Problem, solved: SolvedRelaxation) -> float:
    """g(α) − ½ Σ of the M largest ω², in long doubles; α is checked to be feasible."""
    whole, q = solved.cut.dual
    data, c = problem.data, problem.c_i.astype(np.longdouble)
    alpha = np.ldexp(whole.astype(np.longdouble), -q)
    assert alpha.min() >= 0
    assert problem.loss == "squared-hinge" or np.all(alpha <= c)
    if problem.bias:
        assert int(np.sum(whole * data.y.astype(np.int64))) == 0
    X = np.asarray(data.X.todense() if sparse.issparse(data.X) else data.X).astype(np.longdouble)
    omega = (X - data.center.astype(np.longdouble)).T @ (alpha * data.y)
    most = np.sort(omega**2)[::-1][: problem.M].sum()
    if problem.loss == "logistic":
        with np.errstate(divide="ignore", invalid="ignore"):
            parts = alpha * np.log(alpha / c), (c - alpha) * np.log1p(-alpha / c)
        g = -sum(np.where(np.isfinite(part), part, 0.0).sum() for part in parts)
    else:
        g = alpha.sum() - (0.5 * (alpha**2 / c).sum() if problem.loss == "squared-hinge" else 0.0)
    return float(g - 0.5 * most)


def check(problem: Problem, tol: float = TOL) -> SolvedRelaxation:
    """Both sides are what they say, and meet."""
    solved = solve(problem, tol)
    low, high = dual(problem, solved), primal(problem, solved)
    assert solved.solved
    assert solved.lower <= low + 1e-12 * abs(low)
    assert high <= solved.upper * (1.0 + 1e-6) + 1e-12
    assert low <= high * (1.0 + 1e-9) + 1e-12
    assert high - solved.lower <= 1.01 * tol * abs(high) + 1e-12
    return solved


def labels(X: Array, seed: int = 5) -> Array:
    score = X[:, :3].sum(axis=1)
    score = (score - score.mean()) / (score.std() or 1.0)
    return np.where(score + 0.5 * np.random.default_rng(seed).standard_normal(len(X)) > 0, 1.0, -1.0)


def numbers(n: int, p: int) -> Array:
    return np.random.default_rng(0).standard_normal((n, p))


def ids() -> tuple[Array, Array]:
    random = np.random.default_rng(1)
    rest = numbers(300, 6)
    X = np.column_stack([rest, np.arange(1.0, 301.0), random.integers(1, 10**9, (300, 2))])
    return X, labels(rest)


def outlier() -> tuple[Array, Array]:
    X = numbers(300, 20)
    y = labels(X)
    X[0] *= 1e6
    return X, y


def scales() -> tuple[Array, Array]:
    X = numbers(300, 20)
    return X * 10.0 ** np.random.default_rng(2).uniform(-8, 8, 20), labels(X)


def rare() -> tuple[Array, Array]:
    return numbers(500, 20), np.where(np.arange(500) < 2, 1.0, -1.0)


def repeated() -> tuple[Array, Array]:
    X = numbers(200, 10)
    return np.hstack([X, X, -2.0 * X, np.zeros((200, 2)), np.full((200, 1), 7.0)]), labels(X)


def separable() -> tuple[Array, Array]:
    X = numbers(200, 30)
    return X, np.where(X[:, 0] + X[:, 1] > 0, 1.0, -1.0)


def binary() -> tuple[Array, Array]:
    X = (np.random.default_rng(3).random((3000, 30)) < 0.1).astype(float)
    return X, labels(X)


def uncentred() -> tuple[Array, Array]:
    X = numbers(270, 13) * np.linspace(1.0, 50.0, 13)
    return np.round(X + 200.0), labels(X)


HOSTILE: dict[str, Callable[[], tuple[Array, Array]]] = {
    "ids": ids,
    "outlier": outlier,
    "scales": scales,
    "rare": rare,
    "repeated": repeated,
    "separable": separable,
    "binary": binary,
    "uncentred": uncentred,
}


@pytest.mark.sampled(29)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_columns(name: str, loss: str) -> None:
    data = Instance.from_arrays(*HOSTILE[name]())
    for bias in (True, False):
        for C in (1e-4, 1.0) if name == "ids" else (1e-4, 1.0, 1e4):
            for M in (1, 5):
                check(Problem(data, loss=loss, bias=bias, M=M, C=C))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("loss", LOSSES)
def test_weights_of_all_sizes(loss: str) -> None:
    X = numbers(300, 20)
    weight = 10.0 ** np.random.default_rng(4).uniform(-6, 6, 300)
    data = Instance.from_arrays(X, labels(X), sample_weight=weight)
    for M in (0, 1, 5):
        check(Problem(data, loss=loss, M=M, C=1e-4))
        check(Problem(data, loss=loss, M=M, C=100.0, bias=False))


@pytest.mark.parametrize("loss", LOSSES)
def test_no_feature_at_all_is_the_loss_of_the_best_constant(loss: str) -> None:
    """With the bias of a class of 100 in 300, from the closed forms."""
    X = numbers(300, 4)
    y = np.where(np.arange(300) < 100, 1.0, -1.0)
    least = {
        "hinge": 2.0 * 100,
        "squared-hinge": 0.5 * 4.0 * 100 * 200 / 300,
        "logistic": 100 * np.log(3.0) + 200 * np.log(1.5),
    }[loss]
    solved = check(Problem(Instance.from_arrays(X, y), loss=loss, M=0, C=1.0))
    assert solved.upper == pytest.approx(least, rel=2 * TOL)
    assert not np.any(solved.w)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("loss", LOSSES)
def test_a_working_set_that_grows_goes_on_where_it_was(loss: str) -> None:
    """400 columns of 60 samples: more than the first working set, and both sides are those over all columns."""
    X = numbers(60, 400)
    data = Instance.from_arrays(X, labels(X))
    solved = check(Problem(data, loss=loss, M=5, C=1.0))
    reference = relaxation_reference(Problem(data, loss=loss, M=5, C=1.0)).value
    assert solved.lower <= reference * (1 + 1e-6)
    assert solved.upper >= reference * (1 - 1e-6)
    ties = (np.random.default_rng(6).random((40, 1500)) < 0.5).astype(float)
    check(Problem(Instance.from_arrays(sparse.csc_array(ties), labels(ties)), loss=loss, M=3, C=10.0))


def test_two_rows_of_many_equal_columns() -> None:
    """min ½ Σ w²/σ + 2 C max(0, 1 − Σ w) over Σσ ≤ M: with Σ w = t it is ½ t²/M, whichever columns share it."""
    X = np.ones((2, 5000)) * np.array([[1.0], [-1.0]])
    solved = check(Problem(Instance.from_arrays(X, np.array([1.0, -1.0])), M=10, C=100.0))
    assert solved.upper == pytest.approx(0.5 / 10, rel=2 * TOL)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_dual_of_a_loss_is_that_of_its_margins(loss: str) -> None:
    """b(α) is the margin at which −α is the loss's slope, by finite differences, and bend's second part is −b'."""
    alpha = np.array([0.1, 0.4, 0.7])
    c = np.array([1.0, 0.5, 2.0])
    point = get_loss(loss).terms_at(c, alpha)
    m = np.broadcast_to(np.asarray(point.bend()[0]), 3)
    value: dict[str, Callable[[Array], Any]] = {
        "hinge": lambda m: np.maximum(0.0, 1.0 - m),
        "squared-hinge": lambda m: 0.5 * np.maximum(0.0, 1.0 - m) ** 2,
        "logistic": lambda m: np.logaddexp(0.0, -m),
    }
    step = 1e-6
    left, right = (c * (value[loss](m + s) - value[loss](m + s - step)) / step for s in (0.0, step))
    assert np.all(-left >= alpha - 1e-5)
    assert np.all(-right <= alpha + 1e-5)
    above, below = (
        np.broadcast_to(np.asarray(get_loss(loss).terms_at(c, alpha + s).bend()[0]), 3) for s in (step, -step)
    )
    assert np.allclose((below - above) / (2 * step), point.bend()[1], rtol=1e-5, atol=1e-8)
