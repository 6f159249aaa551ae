"""Steps called by their address: what they do, what they raise, and that arguments of other types are refused."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from numba import float64, int64, njit
from numba.core.errors import TypingError

from mipfs.errors import UsageError
from mipfs.pointers import Step, call_step


class Piece(NamedTuple):
    values: npt.NDArray[np.float64]
    power: int


@njit
def raised(piece, scale):  # type: ignore[no-untyped-def]
    if piece.power < 0:
        raise ZeroDivisionError
    for i in range(piece.values.size):
        piece.values[i] = scale * piece.values[i] ** piece.power


@njit
def all_but_first(step, piece, scale):  # type: ignore[no-untyped-def]
    call_step(step, Piece(piece.values[1:], piece.power), scale)
    return piece.values.sum()


@njit
def whole_scale(step, piece):  # type: ignore[no-untyped-def]
    call_step(step, piece, 2)


@njit
def total(values, power):  # type: ignore[no-untyped-def]
    if power < 0:
        raise ZeroDivisionError
    return (values**power).sum()


@njit
def twice_the_total(step, values, power):  # type: ignore[no-untyped-def]
    return 2.0 * call_step(step, values, power)


@pytest.fixture(scope="module")
def step() -> Step:
    return Step.of(raised, Piece(np.ones(1), 1), 1.0).made()


def test_a_step_works_on_its_callers_arrays(step: Any) -> None:
    piece = Piece(np.array([1.0, 2.0, 3.0]), 2)
    assert all_but_first(step, piece, 10.0) == 131.0
    assert piece.values.tolist() == [1.0, 40.0, 90.0]


def test_what_a_step_raises_reaches_who_called_its_caller(step: Any) -> None:
    with pytest.raises(ZeroDivisionError):
        all_but_first(step, Piece(np.ones(3), -1), 1.0)


def test_arguments_of_other_types_are_refused_before_anything_runs(step: Any) -> None:
    with pytest.raises(TypingError, match="is called with"):
        whole_scale(step, Piece(np.ones(3), 1))


def test_a_step_is_compiled_when_it_is_made() -> None:
    never = njit(raised.py_func)
    assert Step.of(never, Piece(np.ones(1), 1), 1.0).address == 0
    assert not never.overloads


@pytest.mark.slow
def test_a_step_returns_what_it_is_said_to_return() -> None:
    values = np.array([1.0, 2.0, 3.0])
    step: Any = Step.of(total, values, 1, returns=float64).made()
    assert twice_the_total(step, values, 2) == 28.0
    with pytest.raises(ZeroDivisionError):
        twice_the_total(step, values, -1)
    with pytest.raises(UsageError, match=r"total of \S+ must return int64, not float64"):
        Step.of(total, values, 1, returns=int64).made()


def test_a_step_that_is_not_compiled_is_an_error_and_no_crash() -> None:
    piece = Piece(np.ones(2), 1)
    with pytest.raises(SystemError, match="not compiled"):
        all_but_first(Step.of(raised, piece, 1.0), piece, 1.0)
