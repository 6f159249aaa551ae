"""The subproblem when it must stop: no second method begins once the time is up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mipfs.inner import boolean
from mipfs.inner.subproblem import Subproblem
from mipfs.problem import Problem
from tests.climb_cases import drawn


@pytest.mark.parametrize("loss", ["hinge", "squared-hinge", "logistic"])
def test_what_must_stop_is_not_rescued(loss: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = Problem(drawn(1, 80, 6), M=4, C=100.0, loss=loss)
    sigma = np.ones(6)
    begun: list[Problem] = []

    class Watched(boolean.Boolean):
        def __init__(self, problem: Problem, *more: Any) -> None:
            begun.append(problem)
            super().__init__(problem, *more)

    monkeypatch.setattr(boolean, "Boolean", Watched)
    stopped = Subproblem(problem, must_stop=lambda: True).solve(sigma, 1e-9)
    assert stopped.lower <= stopped.value
    assert not begun
    whole = Subproblem(problem).solve(sigma, 1e-9)
    assert stopped.value >= whole.value * (1 - 1e-8)
    assert stopped.lower <= whole.lower * (1 + 1e-8)
    assert stopped.cut.constant - 0.5 * stopped.cut.slopes.sum() == pytest.approx(stopped.lower, rel=1e-6, abs=1e-6)
