"""Thinned step functions look as the whole ones do."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from mipfs.report.thinning import visible_samples

Array = npt.NDArray[np.float64]


def picture(x: Array, y: Array, columns: int, first: float, last: float) -> Array:
    """Least and largest value that a step function has in every column, drawn the slow way, shape (columns, 2)."""
    found = np.full((columns, 2), np.nan)
    known = np.isfinite(y)
    places = np.minimum(((x - first) / (last - first) * columns).astype(int), columns - 1)
    for j in range(columns):
        inside = [k for k in range(x.size) if known[k] and places[k] == j]
        before = [k for k in range(x.size) if places[k] < j]
        values = [y[k] for k in inside] + ([y[before[-1]]] if before and known[before[-1]] else [])
        if values:
            found[j] = min(values), max(values)
    return found


@pytest.mark.parametrize("seed", range(30))
def test_the_picture_is_the_same(seed: int) -> None:
    rng = np.random.default_rng(seed)
    m, columns = int(rng.integers(1, 400)), int(rng.integers(1, 40))
    x = np.sort(rng.choice([rng.uniform(0, 10, m), rng.integers(0, 8, m).astype(float)]))
    y = np.round(rng.normal(size=m), int(rng.integers(0, 3)))
    if seed % 3 == 0:
        y = -np.maximum.accumulate(-y) if seed % 2 else np.maximum.accumulate(y)
    y[: int(rng.integers(0, m + 1)) // 3] = np.nan
    if seed % 5 == 0:
        x[1:] += 1.0  # a gap in time
    kept = visible_samples(x, y, columns)
    assert kept[0] == 0
    assert kept[-1] == m - 1
    assert np.all(np.diff(kept) > 0)
    assert kept.size <= 6 * columns + 2
    ends = float(x[0]), max(float(x[-1]), float(x[0]) + 1e-300)
    whole, thin = picture(x, y, columns, *ends), picture(x[kept], y[kept], columns, *ends)
    np.testing.assert_array_equal(thin, whole)


def test_a_monotone_trace_keeps_two_samples_a_column() -> None:
    x = np.linspace(0.0, 3600.0, 100_000)
    y = np.cumsum(np.random.default_rng(0).exponential(1.0, x.size))
    assert visible_samples(x, y, 1000).size <= 2002
    idle = np.repeat(np.arange(5.0), 20_000)
    assert visible_samples(x, idle, 1000).size <= 6, "a curve of five steps needs five samples and its end"
    assert visible_samples(np.empty(0), np.empty(0), 10).size == 0
    np.testing.assert_array_equal(visible_samples(np.zeros(3), np.array([3.0, 2.0, 2.0]), 10), [0, 1, 2])
