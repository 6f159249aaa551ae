"""Values of the measures against scikit-learn, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics

from mipfs.errors import DataError, UsageError
from mipfs.measures import MEASURES, get_measure, value
from tests import structural_oracles

REFERENCES = {
    "error": lambda y, f: metrics.zero_one_loss(y > 0, f > 0),
    "f1": lambda y, f: metrics.f1_score(y > 0, f > 0, zero_division=0.0),
    "roc-auc": lambda y, f: metrics.roc_auc_score(y > 0, f),
    "average-precision": lambda y, f: metrics.average_precision_score(y > 0, f),
}


def draw(seed: int, ties: bool) -> tuple[np.ndarray, np.ndarray]:
    r = np.random.default_rng(seed)
    n = int(r.integers(2, 60))
    y = np.where(r.random(n) < 0.3, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    f = r.integers(-2, 3, n).astype(float) if ties else r.standard_normal(n)
    return y, f


@pytest.mark.sampled(7)
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("name", list(REFERENCES))
def test_equals_scikit_learn(name: str, ties: bool) -> None:
    for seed in range(200):
        y, f = draw(seed, ties)
        assert value(name, y, f) == pytest.approx(REFERENCES[name](y, f), abs=1e-14)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("beta", [0.1, 0.5, 1.0, 2.0, 7.0])
def test_fbeta_equals_scikit_learn(beta: float) -> None:
    for seed in range(100):
        y, f = draw(seed, True)
        expected = metrics.fbeta_score(y > 0, f > 0, beta=beta, zero_division=0.0)
        assert value("fbeta", y, f, beta=beta) == pytest.approx(expected, abs=1e-14)


@pytest.mark.slow
def test_at_k_is_the_precision_and_recall_of_the_k_first() -> None:
    for seed in range(60):
        y, f = draw(seed, seed % 2 == 0)
        P, n = int(np.sum(y > 0)), y.size
        order = sorted(range(n), key=lambda i: (-f[i], i))
        for k in {1, P, min(2 * P, n), n}:
            chosen = np.isin(np.arange(n), order[:k])
            assert value("precision-at-k", y, f, k=k) == pytest.approx(metrics.precision_score(y > 0, chosen))
            assert value("recall-at-k", y, f, k=k) == pytest.approx(metrics.recall_score(y > 0, chosen))
        assert value("prbep", y, f) == value("precision-at-k", y, f) == value("recall-at-k", y, f, k=P)


def test_labels_are_scores_too() -> None:
    y, f = draw(3, False)
    for name in ("error", "f1"):
        assert value(name, y, np.where(f > 0, 1.0, -1.0)) == value(name, y, f)


def test_every_measure_has_a_reference() -> None:
    assert set(MEASURES) == set(structural_oracles.MEASURES)


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("f2", {}, "measure 'f2' is not known; it is one of error, f1"),
        ("fbeta", {}, "needs beta"),
        ("fbeta", {"beta": 0.0}, "beta = 0.0 must be a positive number"),
        ("fbeta", {"beta": -1}, "beta = -1 must be a positive number"),
        ("fbeta", {"beta": np.nan}, "beta = nan"),
        ("fbeta", {"beta": True}, "beta = True"),
        ("f1", {"beta": 1.0}, "measure 'f1' has no beta"),
        ("f1", {"k": 1}, "measure 'f1' has no k"),
        ("precision-at-k", {"k": 0}, "k = 0 must lie between 1 and 4"),
        ("recall-at-k", {"k": 5}, "k = 5 must lie between 1 and 4"),
        ("recall-at-k", {"k": 1.5}, "k = 1.5 must be an integer"),
    ],
)
def test_refused_parameters(name: str, given: dict[str, float], message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        get_measure(name, [1, -1, -1, 1], **given)
    assert "\n" not in str(caught.value)


def test_refused_labels_and_scores() -> None:
    for name in MEASURES:
        given = {"beta": 2.0} if name == "fbeta" else {}
        if name != "error":
            with pytest.raises(DataError, match="without a positive sample"):
                get_measure(name, [-1, -1], **given)
        for y in ([], [0, 1], [[1, -1]]):
            with pytest.raises(DataError, match=r"-1 and \+1"):
                get_measure(name, y, **given)
    for name in ("roc-auc", "average-precision"):
        with pytest.raises(DataError, match="without a negative sample"):
            get_measure(name, [1, 1])
    assert value("f1", [1, 1], [1.0, -1.0]) == pytest.approx(2 / 3)
    with pytest.raises(UsageError, match="2 finite numbers"):
        value("f1", [1, -1], [1.0])
    with pytest.raises(UsageError, match="2 finite numbers"):
        value("f1", [1, -1], [1.0, np.nan])
