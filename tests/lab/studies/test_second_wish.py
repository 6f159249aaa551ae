"""Every order of a second wish, computed for every set of a list by scikit-learn and NumPy alone, ties among them."""

from __future__ import annotations

import itertools
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

import mipfs

LISTS = 24
WISHES = ("cost", "auc", "stability")
COSTS = (0.1, 0.2, 0.3, 0.4)
"""Sums of them are equal as decimals, and as doubles they are not: 0.1 + 0.2 and 0.3."""
NAMES = tuple(f"f{j}" for j in range(5))
DRAWS = 5
NEAR = 1e-4
"""Scores that are nearer to each other may stand in either order: two solvers agree to their tolerances."""


def rows(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    """Features that may stand in for one another, and labels of both classes."""
    X = np.round(rng.normal(size=(n, len(NAMES))), 1)
    X[:, 3] = np.round(X[:, 0] + 0.4 * X[:, 3], 1)
    X[:, 4] = rng.integers(0, 3, n)
    y = np.where(X[:, 0] + 0.5 * X[:, 1] + 0.3 * X[:, 4] + 0.7 * rng.normal(size=n) > 0.3, 1.0, -1.0)
    y[:4] = 1.0, -1.0, 1.0, -1.0
    return X, y


def weights_of(X: Any, y: Any, loss: str, C: float) -> tuple[Any, float]:
    """Weights on the scale of the rows, and the objective, of the SVM on standardised columns (n, k)."""
    if not X.shape[1]:
        P, N = float((y > 0).sum()), float((y < 0).sum())
        least = 2.0 * min(P, N) if loss == "hinge" else P * np.log1p(N / P) + N * np.log1p(P / N)
        return np.zeros(0), C * least
    mean, size = X.mean(axis=0), X.std(axis=0)
    Z = (X - mean) / size
    if loss == "hinge":
        model: Any = SVC(kernel="linear", C=C, tol=1e-6, max_iter=100_000)
        model.fit(Z, y)
        cost = np.maximum(0.0, 1.0 - y * model.decision_function(Z))
    else:
        model = LogisticRegression(C=C, tol=1e-11, max_iter=10_000, solver="newton-cholesky").fit(Z, y)
        cost = np.logaddexp(0.0, -y * model.decision_function(Z))
    w = model.coef_.ravel()
    return w / size, float(0.5 * w @ w + C * cost.sum())


def selected(X: Any, y: Any, loss: str, C: float, M: int) -> tuple[int, ...]:
    """The features with a weight of the best set, by enumeration."""
    sets = itertools.combinations(range(X.shape[1]), M)
    least = min(sets, key=lambda one: weights_of(X[:, one], y, loss, C)[1])
    w, _ = weights_of(X[:, least], y, loss, C)
    return tuple(j for j, v in zip(least, w, strict=True) if abs(v * X[:, j].std()) > 1e-6)


def area_between(scores: Any, y: Any) -> tuple[Fraction, Fraction]:
    """The area under the ROC curve with all near pairs the wrong way round, and the right way."""
    differences = np.subtract.outer(scores[y > 0], scores[y < 0])
    near = NEAR * np.abs(scores).max()
    half = int((differences == 0.0).sum())
    sure, perhaps = int((differences > near).sum()), int((np.abs(differences) <= near).sum()) - half
    of = differences.size
    return Fraction(2 * sure + half, 2 * of), Fraction(2 * sure + 2 * perhaps + half, 2 * of)


def halves(y: Any, seed: int) -> Any:
    """The rows that choose: of each class one half, of a drawn order."""
    rng, found = np.random.default_rng(seed), []
    for side in (-1.0, 1.0):
        order = rng.permutation(np.flatnonzero(y == side))
        found.extend(order[: -(-len(order) // 2)])
    return np.sort(found)


def drawn_sets(X: Any, y: Any, loss: str, C: float, M: int, seed: int) -> list[tuple[int, ...]]:
    """What is selected of every draw: of a half of each class, without replacement."""
    rng, found = np.random.default_rng(seed), []
    for _ in range(DRAWS):
        part = np.sort(
            np.concatenate(
                [rng.choice(own, len(own) // 2, replace=False) for own in map(np.flatnonzero, (y < 0, y > 0))]
            )
        )
        found.append(selected(X[part], y[part], loss, C, M))
    return found


def values_by_hand(
    by: str, sets: list[list[int]], costs: dict[str, float], training: Any, held: Any, asked: dict[str, Any], seed: int
) -> list[tuple[Fraction, Fraction]]:
    """Ends of the value of every set."""
    X, y = training
    loss, C, M = asked["loss"], asked["C"], asked["M"]
    if by == "cost":
        return [(total, total) for total in (sum(Fraction(str(costs[NAMES[j]])) for j in one) for one in sets)]
    if by == "stability":
        drawn = drawn_sets(X, y, loss, C, M, seed)
        shared = [sum(len({*one} & {*other}) for other in drawn) for one in sets]
        return [
            (share, share)
            for share in (Fraction(s, DRAWS * max(len(one), 1)) for s, one in zip(shared, sets, strict=True))
        ]
    chooses = halves(held[1], seed)
    scores = [held[0][:, one] @ weights_of(X[:, one], y, loss, C)[0] for one in sets]
    return [area_between(one[chooses], held[1][chooses]) for one in scores]


@pytest.mark.sampled(37)
@pytest.mark.filterwarnings("ignore:Solver terminated early")
@pytest.mark.parametrize("by", WISHES)
@pytest.mark.parametrize("seed", range(LISTS))
def test_every_set_of_a_list(seed: int, by: Any) -> None:
    rng = np.random.default_rng([65, seed])
    training, held = rows(rng, 50), rows(rng, 24)
    costs = dict(zip(NAMES, rng.choice(COSTS, len(NAMES)).tolist(), strict=True))
    asked = {"loss": ("hinge", "logistic")[seed % 2], "C": float(rng.choice([0.3, 2.0])), "M": int(rng.integers(2, 4))}
    data = mipfs.Instance.from_arrays(*training, feature_names=[*NAMES], scale="standard", cost=costs)
    problem = mipfs.Problem(data, **asked)
    result = mipfs.solve(problem, pool_gap=0.4, gap=0.0)
    new = mipfs.Instance.from_arrays(*held, feature_names=[*NAMES])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = mipfs.prefer(problem, result, by, held_out=new, draws=DRAWS, seed=seed, jobs=1)
    assert result.near_optimal is not None
    supports = result.near_optimal["supports"]
    assert len(supports) > 2
    sets = [[NAMES.index(name) for name in one["selected"]] for one in supports]
    ends = dict(zip(map(tuple, sets), values_by_hand(by, sets, costs, training, held, asked, seed), strict=True))
    objectives = {
        tuple(one): weights_of(training[0][:, one], training[1], asked["loss"], asked["C"])[1] for one in sets
    }
    listed = [tuple(NAMES.index(name) for name in one.selected) for one in found.sets]
    assert sorted(listed) == sorted(map(tuple, sets))
    for one, of in zip(found.sets, listed, strict=True):
        assert one.objective == pytest.approx(objectives[of], rel=1e-5)
        assert float(ends[of][0]) - 1e-12 <= one.value <= float(ends[of][1]) + 1e-12
    sign = 1 if by == "cost" else -1
    for (one, of), (other, follows) in itertools.pairwise(zip(found.sets, listed, strict=True)):
        assert sign * one.value <= sign * other.value
        if ends[of] == ends[follows] and ends[of][0] == ends[of][1]:
            assert one.value == other.value
            assert one.objective <= other.objective
    tied = sum(one.value == found.chosen.value for one in found.sets)
    assert (f"{tied} sets are equal in that" in found.summary()) == (tied > 1)
