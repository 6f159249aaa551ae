"""Passes over vectors against plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from mipfs.kernels.vectors import add_to, along, copy_to, dot_in_order, scatter_to


@pytest.mark.parametrize("n", [0, 1, 9])
def test_vectors_are_those_of_numpy(n: int) -> None:
    r = np.random.default_rng(n)
    x, y = r.normal(size=n), r.normal(size=n)
    out = np.full(n, 7.0)
    copy_to(x, out)
    np.testing.assert_array_equal(out, x)
    add_to(0.3, y, out)
    np.testing.assert_allclose(out, x + 0.3 * y, atol=1e-15)
    assert dot_in_order(x, y) == pytest.approx(float(x @ y), abs=1e-13)
    along(x, np.append(y, 5.0), 0.3, out)
    np.testing.assert_allclose(out, x + 0.3 * y, atol=1e-15)
    places = r.permutation(3 * n)[:n]
    spread = np.zeros(3 * n)
    scatter_to(x, places, spread)
    np.testing.assert_array_equal(spread[places], x)
    assert np.count_nonzero(spread) == n
