"""A regulariser whose methods fail, or return something else, is refused by name before its first solve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from mipfs.errors import UsageError
from mipfs.regularisers import get_regulariser, trial
from mipfs.regularisers.base import Regulariser


@dataclass(frozen=True)
class Plain(Regulariser):
    """½w², by its formulas."""

    name, formula = "plain", "½w²"

    def value(self, w: Any) -> Any:
        return 0.5 * w * w

    def conjugate(self, omega: Any) -> Any:
        return 0.5 * omega * omega

    def weight(self, omega: Any) -> Any:
        return 1.0 * omega

    def curvature(self, omega: Any) -> Any:
        return np.ones(omega.shape)


class NoFields(Regulariser):
    """One that is no dataclass."""

    name, formula = "plain", "½w²"
    value, conjugate, weight, curvature = Plain.value, Plain.conjugate, Plain.weight, Plain.curvature


@pytest.mark.parametrize("name", trial.METHODS)
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda self, x: float(np.sum(x)), r"returns float for an array of shape \(3,\)"),
        (lambda self, x: x[:, None], r"returns an array of shape \(3, 1\)"),
        (lambda self, x: np.array(["a", "b", "c"]), "returns an array"),
        (lambda self, x: None, "returns NoneType"),
    ],
)
def test_a_method_that_returns_something_else_is_named(
    name: str, wrong: Any, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Plain, name, wrong)
    with pytest.raises(UsageError, match=f"the regulariser 'plain': {name} of test_regulariser_trial.py {message}"):
        trial.check(Plain(), 5)


def test_a_method_that_fails_is_named_with_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Plain, "weight", lambda self, x: x[7:][0])
    with pytest.raises(
        UsageError, match=r"the regulariser 'plain': weight of test_regulariser_trial.py:\d+: IndexError: index 0"
    ):
        trial.check(Plain(), 5)
    monkeypatch.setattr(Plain, "at", lambda self: self)
    with pytest.raises(
        UsageError, match=r"the regulariser 'plain': check or at of test_regulariser_trial.py: TypeError"
    ):
        trial.check(Plain(), 5)


def test_a_class_that_is_no_dataclass_is_named() -> None:
    with pytest.raises(
        UsageError, match=r"the class NoFields of test_regulariser_trial.py is no dataclass.*@dataclass\(frozen"
    ):
        trial.check(NoFields(), 5)


def test_right_ones_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    trial.check(Plain(), 5)
    monkeypatch.setattr(trial, "is_own", lambda module: False)
    for name in ("ridge", "box"):
        for count in (1, 5):
            trial.check(get_regulariser(name), count)
