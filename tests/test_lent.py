"""Arrays that a kernel lends or is given: the same numbers, no owner more or less, and its own live until
`hold_until_here`.
"""

from __future__ import annotations

import gc
import sys
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from numba import errors, typeof

from mipfs.compiled import compiled
from mipfs.compiled.lent import hold_until_here, lend_arrays, lent_type
from mipfs.kernels.face_descent import FaceModel
from mipfs.kernels.model_step import minimise_model
from mipfs.kernels.structures import steering_of
from mipfs.settings import NodeSettings


class Pair(NamedTuple):
    first: npt.NDArray[np.float64]
    second: npt.NDArray[np.float64]


@compiled()
def total(values):  # type: ignore[no-untyped-def]
    return values.sum()


@compiled()
def doubled(pair, beside):  # type: ignore[no-untyped-def]
    pair, (record, scale) = lend_arrays((pair, beside))
    found = 0.0
    for t in range(pair.first.size):
        part = pair.second[t:]
        pair.first[t] *= scale
        found += total(part) + record.size
    return found


@compiled()
def filled_once_more(n):  # type: ignore[no-untyped-def]
    own = Pair(np.full(n, 1.0), np.full(n, 2.0))
    pair = lend_arrays(own)
    found = 0.0
    for _ in range(3):
        other = np.full(n, 8.0)  # where the arrays of the pair were, had they been freed
        found += total(other) + total(pair.first) + total(pair.second)
    hold_until_here(own)
    return found


@pytest.mark.slow
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


class Both(NamedTuple):
    pair: Pair
    scales: tuple[npt.NDArray[np.float64], float]
    count: int
    is_last: bool


@compiled()
def added_up(both, t):  # type: ignore[no-untyped-def]
    return both.pair.first[t] + both.pair.second[t] * both.scales[1] + both.scales[0][0] * both.is_last + both.count


@compiled()
def of_both(both):  # type: ignore[no-untyped-def]
    both = lend_arrays(both)
    this, other = both.pair, lend_arrays(Pair(both.pair.second, both.pair.first))
    found = 0.0
    for t in range(this.first.size):
        found += added_up(both, t)
        this, other = other, this
        this.second[t] += 1.0
    return found


@compiled()
def unknown(both):  # type: ignore[no-untyped-def]
    return lend_arrays(both).third


@pytest.mark.slow
def test_tuples_of_tuples_are_lent_by_their_address() -> None:
    """The fields of all kinds, also where what is lent is lent again, changes places, and is handed on."""
    both = Both(Pair(np.array([1.0, 2.0, 4.0]), np.zeros(3)), (np.array([7.0]), 3.0), 5, True)
    arrays = (*both.pair, both.scales[0])
    before = [sys.getrefcount(array) for array in arrays]
    found = of_both(both)
    assert of_both.nopython_signatures
    assert lent_type(typeof(both)).name.startswith("Lent(Both: pair: Lent(Pair: ")  # type: ignore[no-untyped-call]
    again = Both(Pair(np.array([1.0, 2.0, 4.0]), np.zeros(3)), (np.array([7.0]), 3.0), 5, True)
    assert found == of_both.py_func(again) == 7.0 + 3 * 12.0
    assert [one.tolist() for one in both.pair] == [one.tolist() for one in again.pair]
    gc.collect()
    assert [sys.getrefcount(array) for array in arrays] == before
    with pytest.raises(errors.TypingError, match="third"):
        unknown(both)


def test_in_python_nothing_is_lent() -> None:
    given: Any = (np.ones(2), 3)
    assert lend_arrays(given) is given
    assert hold_until_here(given) is None  # type: ignore[func-returns-value]


STEERING = steering_of(NodeSettings())


@pytest.mark.sampled(2)
@pytest.mark.parametrize("prices", [(1.0, 1.0), (1.0, 2.0)])
def test_a_model_step_has_the_owners_of_its_arrays_as_before(prices: tuple[float, float]) -> None:
    """By sweeps and by classes: points of its own are lent to some ten functions, and others' memory is taken."""
    rng = np.random.default_rng(3)
    k = 12
    A, c = rng.standard_normal((30, k + 1)), np.where(np.arange(k) % 2, *prices)
    model = FaceModel(A.T @ A, rng.standard_normal(k + 1), rng.standard_normal(k), 0.5, c, 0, 4, True, 1e-10, STEERING)
    arrays = [one for one in model if isinstance(one, np.ndarray)]
    owners = [sys.getrefcount(array) for array in arrays]
    steps, in_python = [np.empty(k + 1) for _ in range(50)], np.empty(k + 1)
    for out in steps:
        minimise_model(model, 1e-9, 30, out)
    gc.collect()
    assert [sys.getrefcount(array) for array in arrays] == owners
    assert all(np.array_equal(out, steps[0]) for out in steps)
    minimise_model.py_func(model, 1e-9, 30, in_python)
    assert steps[0] == pytest.approx(in_python, rel=1e-6, abs=1e-8)
