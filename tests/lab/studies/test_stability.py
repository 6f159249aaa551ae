"""Nogueira's index against its formula written out entry by entry, and its interval against a simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mipfs.errors import UsageError
from mipfs.lab.studies.stability import selection_shares, stability


def naive(Z: np.ndarray) -> tuple[float, float]:
    """Index and variance of a 0/1 matrix (m, p), with loops (Nogueira, Sechidis, Brown 2018)."""
    m, p = Z.shape
    share = [sum(Z[i, j] for i in range(m)) / m for j in range(p)]
    size = [sum(Z[i, j] for j in range(p)) for i in range(m)]
    mean = sum(size) / m
    variance = sum(m / (m - 1) * q * (1 - q) for q in share) / p
    index = 1 - variance / (mean / p * (1 - mean / p))
    phi = []
    for i in range(m):
        first = sum(Z[i, j] * share[j] for j in range(p)) / p
        second = size[i] * mean / p**2
        third = index / 2 * (2 * mean * size[i] / p**2 - size[i] / p - mean / p + 1)
        phi.append((first - second + third) / (mean / p * (1 - mean / p)))
    average = sum(phi) / m
    return index, 4 / m**2 * sum((one - average) ** 2 for one in phi)


@pytest.mark.parametrize("seed", range(30))
def test_the_formulas(seed: int) -> None:
    r = np.random.default_rng(seed)
    m, p = int(r.integers(2, 12)), int(r.integers(2, 25))
    Z = (r.random((m, p)) < r.random(p)).astype(float)
    Z[0, 0], Z[1, 1] = 1.0, 0.0
    found = stability([np.flatnonzero(row) for row in Z], p)
    index, variance = naive(Z)
    assert found is not None
    assert found.index == pytest.approx(index, abs=1e-12)
    reach = 1.959963984540054 * math.sqrt(variance)
    assert (found.lower, found.upper) == pytest.approx((index - reach, index + reach), abs=1e-10)
    ids, share = selection_shares([np.flatnonzero(row) for row in Z])
    assert dict(zip(ids.tolist(), share.tolist(), strict=True)) == {
        j: pytest.approx(Z[:, j].mean()) for j in range(p) if Z[:, j].any()
    }
    assert np.all(np.diff(share) <= 0)


def test_the_ends() -> None:
    same = stability([[0, 3], [3, 0], [0, 3]], 10)
    assert same is not None
    assert (same.index, same.lower, same.upper) == pytest.approx((1.0, 1.0, 1.0))
    apart = stability([[0, 1], [2, 3], [4, 5]], 6)
    assert apart is not None
    assert apart.index == pytest.approx(-1 / 2)  # -1/(m - 1)
    for sets, p in (([[1]], 3), ([[], []], 3), ([[0, 1], [0, 1]], 2)):
        assert stability(sets, p) is None
    with pytest.raises(UsageError, match="different positions from 0 to 2"):
        stability([[0, 3], [1]], 3)
    with pytest.raises(UsageError, match="different positions"):
        stability([[0, 0], [1]], 3)
    with pytest.raises(UsageError, match=r"level = 1\.0 must lie between 0 and 1"):
        stability([[0], [1]], 3, level=1.0)


@pytest.mark.slow
def test_random_sets_are_at_zero_and_the_interval_holds_the_truth() -> None:
    r = np.random.default_rng(0)
    p, m, probability = 20, 100, np.r_[np.full(4, 0.8), np.full(16, 0.1)]
    mean = probability.mean()
    truth = 1 - (probability * (1 - probability)).mean() / (mean * (1 - mean))
    held, random = 0, []
    for _ in range(300):
        found = stability([np.flatnonzero(r.random(p) < probability) for _ in range(m)], p)
        assert found is not None
        held += found.lower <= truth <= found.upper
        other = stability([r.permutation(p)[:6] for _ in range(5)], p)
        assert other is not None
        random.append(other.index)
    assert 0.90 < held / 300 < 0.99
    assert abs(np.mean(random)) < 3 * np.std(random) / math.sqrt(300)
