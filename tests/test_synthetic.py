"""Tan's synthetic problems: their distributions, and what the papers say of them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from mipfs.data.instance import Instance
from mipfs.drivers import solve
from mipfs.errors import UsageError
from mipfs.generators.synthetic import paul_2016, tan_2010, tan_2014
from mipfs.problem import Problem


def test_tan_2010_has_the_stated_moments() -> None:
    made = tan_2010(40_000, 5, 1)
    X, y = made["train"]
    assert X.shape == (40_000, 8)
    assert X.flags.f_contiguous
    assert np.concatenate([y, made["test"][1]]).sum() == 0, "as many of each class"
    assert made["names"] == ("f1", "f2", "f3", "noise1", "noise2", "noise3", "noise4", "noise5")
    assert made["S"].tolist() == [0, 1]
    for sign in (1, -1):
        mean, covariance = X[y == sign].mean(axis=0), np.cov(X[y == sign].T)
        np.testing.assert_allclose(mean, [2 * sign, 0, 0.4 * sign, 0, 0, 0, 0, 0], atol=0.1)
        expected = np.diag([9.01, 9.01, 0.0729, 1, 1, 1, 1, 1])
        expected[0, 1] = expected[1, 0] = 9.0
        np.testing.assert_allclose(covariance, expected, atol=0.25)
    assert np.abs(X[:, 3:6]).max() < np.sqrt(3) < 3 < np.abs(X[:, 6:]).max(), "three uniform, then two Gaussian"


def accuracy(made: dict, ids: list[int] | slice) -> float:
    (X, y), (X_test, y_test) = made["train"], made["test"]
    svm = LinearSVC(C=0.05, fit_intercept=False, random_state=0, max_iter=10_000).fit(X[:, ids], y)
    return svm.score(X_test[:, ids], y_test)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", [0, 1])
def test_tan_2010_is_the_problem_of_the_paper(seed: int) -> None:
    """Figure 2: the pair is ideal, f3 the best single one, and noise beyond 2000 features defeats the SVM on all."""
    made = tan_2010(seed=seed)
    alone = [accuracy(made, [j]) for j in range(10)]
    assert np.argmax(alone) == 2
    assert 0.9 < alone[2] < 0.97
    assert max(alone[0], alone[1]) < 0.8
    assert accuracy(made, [0, 1]) > 0.99
    assert accuracy(made, [0, 2]) < 0.97
    X, y = made["train"]
    assert set(np.argsort(-np.abs(X.T @ y))[:2]) == {0, 2}, "the first top two are not the pair"
    assert accuracy(tan_2010(500, 3000, seed), slice(None)) < 0.9


@pytest.mark.parametrize(("kind", "power"), [("I", 1.0), ("II", 0.3), ("III", 3.0)])
def test_tan_2014(kind: str, power: float) -> None:
    made = tan_2014(300, 5000, 2000, 3, kind=kind, n_test=100)
    (X, y), (X_test, y_test), w, S = made["train"], made["test"], made["w"], made["S"]
    assert (X.shape, X_test.shape, made["M"]) == ((300, 5000), (100, 5000), 2000)
    assert X.flags.f_contiguous
    np.testing.assert_array_equal(np.flatnonzero(w), S)
    np.testing.assert_array_equal(y, np.sign(X @ w))
    np.testing.assert_array_equal(y_test, np.sign(X_test @ w))
    root = np.sort(w[S] ** (1 / power))  # uniform on (0, 1): its distribution function is the diagonal
    assert np.abs(root - (np.arange(2000) + 0.5) / 2000).max() < 0.05
    assert X.mean() == pytest.approx(0, abs=0.005)
    assert X.std() == pytest.approx(1, abs=0.005)


def test_tan_2014_is_seeded_and_its_training_rows_do_not_depend_on_the_test() -> None:
    first, again = tan_2014(20, 30, 4, 5), tan_2014(20, 30, 4, 5, n_test=0)
    np.testing.assert_array_equal(first["train"][0], again["train"][0])
    np.testing.assert_array_equal(first["w"], again["w"])
    assert again["test"][0].shape == (0, 30)
    assert np.any(tan_2014(20, 30, 4, 6)["train"][0] != first["train"][0])
    np.testing.assert_array_equal(tan_2010(9, 2, 3)["test"][0], tan_2010(9, 2, 3)["test"][0])
    with pytest.raises(UsageError, match="type 'IV' is unknown; it is one of I, II, III"):
        tan_2014(20, 30, 4, kind="IV")


def test_paul_2016_has_the_stated_moments() -> None:
    made = paul_2016(20_000, 8, 5, 1)
    X, y = made["train"]
    assert (X.shape, made["M"], made["S"].tolist()) == ((20_000, 8), 5, [0, 1, 2, 3, 4])
    assert X.flags.f_contiguous
    assert y.mean() == pytest.approx(0.0, abs=0.03)
    for sign in (1, -1):
        of_class = X[y == sign]
        np.testing.assert_allclose(of_class.mean(axis=0), [-sign * j for j in (1, 2, 3, 4, 5)] + [0] * 3, atol=0.05)
        np.testing.assert_allclose(np.cov(of_class.T), np.eye(8), atol=0.06)
    np.testing.assert_array_equal(paul_2016(9, 4, 2, 3)["test"][0], paul_2016(9, 4, 2, 3)["test"][0])
    assert np.any(paul_2016(9, 4, 2, 4)["train"][0] != paul_2016(9, 4, 2, 3)["train"][0])
    for seed in range(20):
        assert all(set(part[1].tolist()) == {-1, 1} for part in map(paul_2016(2, 1, 1, seed).get, ("train", "test")))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("n_noise", [100, 1000, 10_000])
def test_feature_generation_finds_the_composite_pair(n_noise: int) -> None:
    drawn = tan_2010(300, n_noise, seed=1)
    X, y = drawn["train"]
    problem = Problem(Instance.from_arrays(X, y), loss="squared-hinge", bias=False, M=2, C=0.1)
    result = solve(problem, "kelley", gap=1e-3)
    # the strong single feature x3 is in the first selection, the pair wins in the end
    assert set(result.selected) == {"x1", "x2"}
