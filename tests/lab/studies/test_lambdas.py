"""Values of λ by themselves: both ends against every selection, thresholds against scikit-learn's SVM."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from sklearn.svm import SVC

import mipfs
from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.lab.studies.lambdas import lambda_values, parse_count, thresholds
from mipfs.problem import Problem
from tests.oracles import brute_force

P = 5


def draw(seed: int, n: int = 30, **given: Any) -> Instance:
    r = np.random.default_rng(seed)
    X = r.standard_normal((n, P)) * r.uniform(0.5, 2.0, P)
    y = np.where(X @ r.standard_normal(P) + r.standard_normal(n) > 0.3, 1.0, -1.0)
    return Instance.from_arrays(X, y, **given)


def values_at(data: Instance, loss: str, bias: bool, lam: float) -> tuple[float, float, float]:
    """The value of selecting nothing, of selecting all, and the least of every selection, each solved alone."""
    c, penalty, every = np.full(data.n_samples, 0.7), np.full(P, lam), range(P)
    values = {}
    for k in range(P + 1):
        for chosen in map(frozenset, itertools.combinations(every, k)):
            values[chosen] = brute_force(data.X, data.y, c, [chosen], penalty, bias, loss=loss).value.upper
    return values[frozenset()], values[frozenset(every)], min(values.values())


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("loss", "bias"), [("hinge", True), ("hinge", False), ("squared-hinge", True), ("logistic", False)]
)
def test_beyond_the_ends_nothing_and_everything_is_optimal(loss: str, bias: bool) -> None:
    for seed in (1, 2):
        data = draw(seed)
        found = lambda_values(Problem(data, C=0.7, loss=loss, bias=bias))
        assert len(found) <= 10
        assert list(found) == sorted(found, reverse=True)
        nothing, _, least = values_at(data, loss, bias, found[0] * (1 + 1e-4))
        assert nothing == pytest.approx(least, rel=1e-6)
        _, everything, least = values_at(data, loss, bias, found[-1] * (1 - 1e-3))
        assert everything == pytest.approx(least, rel=1e-6)
        middle = values_at(data, loss, bias, found[len(found) // 2])
        assert middle[2] < min(middle[:2])


def test_thresholds_are_half_the_squared_weights_of_the_plain_svm() -> None:
    data = draw(3, 60)
    svm = SVC(kernel="linear", C=0.7, tol=1e-8).fit(data.X, data.y)
    expected = 0.5 * np.square(svm.coef_[0])
    np.testing.assert_allclose(thresholds(Problem(data, C=0.7), 1.0), expected, rtol=1e-2, atol=1e-6)
    among = lambda_values(Problem(data, C=0.7), 6)
    assert [np.min(np.abs(one / expected - 1)) < 1e-2 for one in among[-3:]] == [True] * 3


def test_a_path_by_itself() -> None:
    """The first point selects nothing, the last all; its own λ does not matter, a penalty of the data is on top."""
    data = draw(4)
    found = mipfs.path(Problem(data, C=0.7, lam=3.0), lam="auto:5", gap=1e-7)
    assert 2 <= len(found.points) <= 5
    assert found.points[0].selected == ()
    assert found.points[-1].selected == data.feature_names
    assert tuple(point.value for point in found.points) == lambda_values(Problem(data, C=0.7), 5)
    joint = Problem(data, loss="structural", measure="f1", C=100.0)
    assert len(lambda_values(joint)) >= 2


def test_refused() -> None:
    assert [parse_count(one) for one in ("auto", "auto:2", "auto:20")] == [10, 2, 20]
    for text in ("auto:1", "auto:", "automatic", "auto:2000", "1,2"):
        with pytest.raises(UsageError, match="auto, or auto:N with N from 2 to 1000"):
            parse_count(text)
    nothing = Instance.from_arrays(np.zeros((6, 2)), np.resize([1.0, -1.0], 6))
    with pytest.raises(UsageError, match="no feature tells the classes apart"):
        mipfs.path(Problem(nothing), lam="auto")
