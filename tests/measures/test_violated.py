"""Most violated labellings and rankings against exhaustive search, with ties; the fast search against the full one."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from mipfs.measures import Violated, get_measure
from tests.structural_oracles import cases, labellings, loss

Array = npt.NDArray[np.float64]


def scores(r: np.random.Generator, n: int, kind: int) -> Array:
    """Random, with ties on a grid, all equal, or far apart."""
    if kind == 0:
        return r.standard_normal(n)
    if kind == 1:
        return r.integers(-2, 3, n) / 4.0
    return np.full(n, 0.25) if kind == 2 else 10.0 * r.standard_normal(n)


def check(violated: Violated, y: Array, f: Array, losses: Array, V: Array, D: float) -> None:
    """The value is the best of all, and belongs to a labelling on the list with that Δ."""
    assert violated.value == pytest.approx(float(np.max(losses - V @ f)), abs=1e-12)
    v = y * violated.counts * 2.0 / D
    match = np.flatnonzero(np.all(np.abs(V - v) < 1e-12, axis=1))
    assert match.size == 1
    assert violated.loss == pytest.approx(losses[match[0]], abs=1e-12)
    assert violated.value == pytest.approx(violated.loss - float(v @ f), abs=1e-12)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("name", "given"), cases())
def test_equals_exhaustive_search(name: str, given: dict[str, Any]) -> None:
    sizes = {"roc-auc": (2, 3, 5, 6), "average-precision": (2, 4, 6)}.get(name, (2, 5, 7, 10))
    for seed, n in enumerate(size for size in sizes for _ in range(2)):
        r = np.random.default_rng(seed)
        P = int(r.integers(1, n))
        y = r.permutation(np.where(np.arange(n) < P, 1.0, -1.0))
        k = min(int(given["k"]), n) if "k" in given else None
        beta = given.get("beta")
        losses, V = labellings(name, y, beta or 1.0, k)
        measure = get_measure(name, y, beta=beta, k=k)
        D = P * (n - P) if name in ("roc-auc", "average-precision") else n
        for trial in range(40):
            f = scores(r, n, trial % 4)
            found = measure.violated(f)
            check(found, y, f, losses, V, D)
            assert np.array_equal(found.counts, measure.violated(f.copy()).counts)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["roc-auc", "average-precision"])
def test_rankings_of_one_positive_or_one_negative(name: str) -> None:
    r = np.random.default_rng(5)
    for y in (np.array([1.0, -1, -1, -1, -1, -1]), np.array([1.0, 1, 1, 1, -1, 1])):
        losses, V = labellings(name, y)
        for trial in range(40):
            f = scores(r, 6, trial % 4)
            check(get_measure(name, y).violated(f), y, f, losses, V, 5.0)


def table(y: Array, f: Array, beta: float) -> float:
    """max over all (a, b) of Δ + h⁺ + h⁻, as one matrix."""
    n, up, down = y.size, np.sort(f[y > 0]), np.sort(f[y < 0])[::-1]
    P, N = up.size, down.size
    a, b = np.arange(P + 1)[:, None], np.arange(N + 1)[None, :]
    delta = 1 - (1 + beta**2) * a / ((1 + beta**2) * a + b + beta**2 * (P - a))
    missed = -2 / n * np.append(0.0, np.cumsum(up))[::-1]
    wrong = 2 / n * np.append(0.0, np.cumsum(down))
    return float((delta + missed[:, None] + wrong[None, :]).max())


@pytest.mark.parametrize("beta", [0.3, 1.0, 1.7, 10.0])
def test_fbeta_equals_the_full_search(beta: float) -> None:
    for seed, (n, share) in enumerate([(50, 0.5), (300, 0.1), (2000, 0.02), (2000, 0.5), (2000, 0.98)]):
        r = np.random.default_rng(seed)
        y = np.where(r.random(n) < share, 1.0, -1.0)
        y[:2] = 1.0, -1.0
        measure = get_measure("fbeta", y, beta=beta)
        adversarial = [
            *(scores(r, n, kind) for kind in range(4)),
            y * r.random(n),
            -y * r.random(n),
            np.linspace(-1, 1, n) ** 3,
            y * 0.5 / n * r.integers(0, n, n),  # near the places where Δ and the scores balance
            np.where(y > 0, 1.0 / (1.0 + r.random(n) * n), -1.0 / (1.0 + r.random(n) * n)),
            1e8 * r.standard_normal(n),
            1e-9 * r.integers(-3, 4, n),
        ]
        for f in adversarial:
            found, size = measure.violated(f), max(1.0, float(np.abs(f).sum()) / n)
            assert found.value == pytest.approx(table(y, f, beta), abs=1e-11 * size)
            labels = np.where(found.counts > 0, -y, y)
            assert found.loss == pytest.approx(loss("fbeta", y, labels, beta), abs=1e-12)


def test_below_one_the_best_b_can_fall_and_the_full_search_is_right() -> None:
    y, f = np.array([1.0, 1.0, -1.0]), np.array([-2.62, 0.5, -0.54])
    assert get_measure("fbeta", y, beta=0.25).violated(f).value == pytest.approx(table(y, f, 0.25), abs=1e-14)


def test_average_precision_equals_the_plain_greedy() -> None:
    for seed in range(30):
        r = np.random.default_rng(seed)
        n = int(r.integers(20, 200))
        y = np.where(r.random(n) < 0.3, 1.0, -1.0)
        y[:2] = 1.0, -1.0
        f = scores(r, n, seed % 4) * 0.3
        P, N = int(np.sum(y > 0)), int(np.sum(y < 0))
        top, others = np.sort(f[y > 0])[::-1], np.sort(f[y < 0])[::-1]
        i, j = np.arange(1, P + 1)[:, None], np.arange(1, N + 1)[None, :]
        delta = (j / (i + j) - (j - 1) / (i + j - 1)) / P - 2 / (P * N) * (top[:, None] - others[None, :])
        best = np.maximum(np.cumsum(delta[::-1], axis=0).max(axis=0), 0.0).sum()
        assert get_measure("average-precision", y).violated(f).value == pytest.approx(best, abs=1e-12)


def test_all_scores_equal() -> None:
    y = np.array([1.0, 1.0, -1.0, -1.0, -1.0])
    expected = {"error": 1.0, "f1": 1.0, "precision-at-k": 1.0, "prbep": 1.0, "roc-auc": 1.0}
    for name, value in expected.items():  # at w = 0 the worst labelling is what there is
        assert get_measure(name, y).violated(np.zeros(5)).value == pytest.approx(value)
    assert get_measure("recall-at-k", y, k=4).violated(np.zeros(5)).value == pytest.approx(0.5)


def test_a_million_samples_below_a_second() -> None:
    n = 1_000_000
    y = np.where(np.arange(n) % 100 == 0, 1.0, -1.0)
    f = np.random.default_rng(0).standard_normal(n) + 0.5 * (y > 0)
    measure = get_measure("f1", y)
    measure.violated(f[:1000].repeat(1000))
    seconds = []
    for _ in range(3):
        begin = time.perf_counter()
        found = measure.violated(f)
        seconds.append(time.perf_counter() - begin)
    assert 0.0 < found.loss <= 1.0
    assert min(seconds) < 1.0
