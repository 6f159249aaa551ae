"""Arrays that a kernel lends or is given: the same numbers, no owner more or less, and its own live until `held`."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from numba.core.runtime import _nrt_python, rtsys

from mipfs.compiled import compiled
from mipfs.compiled.lent import held, lent


class Pair(NamedTuple):
    first: npt.NDArray[np.float64]
    second: npt.NDArray[np.float64]


@compiled()
def total(values):  # type: ignore[no-untyped-def]
    return values.sum()


@compiled()
def doubled(pair, beside):  # type: ignore[no-untyped-def]
    pair, (record, scale) = lent((pair, beside))
    found = 0.0
    for t in range(pair.first.size):
        part = pair.second[t:]
        pair.first[t] *= scale
        found += total(part) + record.size
    return found


@compiled()
def filled_once_more(n):  # type: ignore[no-untyped-def]
    own = Pair(np.full(n, 1.0), np.full(n, 2.0))
    pair = lent(own)
    found = 0.0
    for _ in range(3):
        other = np.full(n, 8.0)  # where the arrays of the pair were, had they been freed
        found += total(other) + total(pair.first) + total(pair.second)
    held(own)
    return found


def test_what_is_lent_are_the_same_arrays() -> None:
    pair, record = Pair(np.array([1.0, 2.0]), np.array([3.0, 4.0])), np.zeros(5)
    before = [sys.getrefcount(array) for array in (*pair, record)]
    assert doubled(pair, (record, 2.0)) == 7.0 + 4.0 + 10.0
    assert pair.first.tolist() == [2.0, 4.0]
    gc.collect()
    assert [sys.getrefcount(array) for array in (*pair, record)] == before


def test_arrays_of_a_kernel_live_until_it_holds_them_no_longer() -> None:
    for n in (1, 10, 1000, 100_000):
        assert filled_once_more(n) == 33.0 * n


def test_in_python_nothing_is_lent() -> None:
    given: Any = (np.ones(2), 3)
    assert lent(given) is given
    assert held(given) is None  # type: ignore[func-returns-value]


@compiled()
def given_back(pair, other):  # type: ignore[no-untyped-def]
    same = pair
    if other.first.size > 2:
        return same
    return other


@compiled()
def set_again(pair, times):  # type: ignore[no-untyped-def]
    found = 0.0
    for _ in range(times):
        copy = pair
        found += total(copy.first)
        copy = Pair(copy.second, np.full(copy.first.size, 2.0))
        found += total(copy.first) + total(copy.second)
    pair = Pair(np.full(3, 1.0), pair.first)
    return found + total(pair.first), pair


@pytest.fixture
def counted() -> Iterator[None]:
    """numba counts what is allocated and freed."""
    _nrt_python.memsys_enable_stats()
    yield
    _nrt_python.memsys_disable_stats()


@pytest.mark.usefixtures("counted")
def test_an_argument_has_no_owner_more_or_less_wherever_it_goes() -> None:
    pair = Pair(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    other = Pair(np.array([5.0, 6.0, 7.0]), np.array([8.0]))
    arrays = (*pair, *other)
    set_again(pair, 1)  # once before anything is counted: its machine code is read
    given_back(pair, other)
    gc.collect()
    before, stats = [sys.getrefcount(array) for array in arrays], rtsys.get_allocation_stats()
    for _ in range(20):
        back, there = given_back(pair, other), given_back(other, pair)
        assert back.first.tolist() == [1.0, 2.0]
        assert there.first.tolist() == [1.0, 2.0]
        found, made = set_again(pair, 3)
        assert found == 3 * (3.0 + 7.0 + 4.0) + 3.0
        assert [array.tolist() for array in made] == [[1.0, 1.0, 1.0], [1.0, 2.0]]
        del back, there, made
    gc.collect()
    after = rtsys.get_allocation_stats()
    assert [sys.getrefcount(array) for array in arrays] == before
    assert after.mi_alloc - stats.mi_alloc == after.mi_free - stats.mi_free
    assert after.alloc - stats.alloc == after.free - stats.free
