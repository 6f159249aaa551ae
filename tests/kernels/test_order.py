"""Order in compiled code beside numpy's."""

import numpy as np
import pytest

from mipfs.kernels.order import falling, first_up, kth_largest, sift_down, sort_up, sum_of_largest


@pytest.mark.parametrize("n", [1, 2, 3, 17, 200])
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_it_is_that_of_numpy(n: int, ties: bool, seed: int) -> None:
    r = np.random.default_rng([n, ties, seed])
    x = r.integers(-2, 3, n).astype(float) if ties else r.standard_normal(n)
    keys, items = x.copy(), np.arange(n)
    sort_up(keys, items)
    np.testing.assert_array_equal(keys, np.sort(x))
    np.testing.assert_array_equal(x[items], keys)
    np.testing.assert_array_equal(np.sort(items), np.arange(n))
    np.testing.assert_array_equal(x[falling(x)], np.sort(x)[::-1])
    for K in {1, (n + 1) // 2, n}:
        moved = x.copy()
        assert kth_largest(moved, K) == np.sort(x)[::-1][K - 1]
        np.testing.assert_array_equal(np.sort(moved), np.sort(x))
        keys, items = x.copy(), np.arange(n)
        first_up(keys, items, K)
        np.testing.assert_array_equal(keys[:K], np.sort(x)[:K])
        np.testing.assert_array_equal(x[items], keys)
        np.testing.assert_array_equal(np.sort(items), np.arange(n))
        assert sum_of_largest(x.copy(), K) == pytest.approx(np.sort(x)[::-1][:K].sum(), abs=1e-12)
    assert sum_of_largest(x.copy(), 0) == 0.0
    assert sum_of_largest(x.copy(), n + 3) == pytest.approx(x.sum(), abs=1e-12)


def test_nothing_is_in_order() -> None:
    nothing = np.empty(0)
    sort_up(nothing, np.empty(0, np.int64))
    assert falling(nothing).size == 0
    assert sum_of_largest(nothing, 3) == 0.0


@pytest.mark.parametrize("seed", range(20))
def test_an_entry_sinks_to_its_place_in_a_heap(seed: int) -> None:
    r = np.random.default_rng(seed)
    n = 1 + seed % 12
    x = np.sort(r.standard_normal(n))[::-1].copy()  # a heap, but for its root
    x[0] = r.standard_normal()
    keys, items = x.copy(), np.arange(n)
    sift_down(keys, items, 0, n)
    assert all(keys[(t - 1) // 2] >= keys[t] for t in range(1, n))
    np.testing.assert_array_equal(x[items], keys)
