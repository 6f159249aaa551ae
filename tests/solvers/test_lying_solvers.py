"""A solver that says "solved" with vectors that are no answer is not believed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import highspy
import numpy as np
import pytest
from scipy import sparse

from mipfs.solvers import cones, highs
from tests.solvers.test_highs_statuses import box

LIES = {"NaN": [np.nan, 0.0], "infinite": [np.inf, 0.0], "short": [0.0], "long": [0.0] * 3, "silent": []}


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("name", ["x", "z"])
def test_clarabel_is_not_believed(lie: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    one = sparse.csc_matrix(np.eye(2))
    program = one, np.array([-1.0, -1.0]), one, np.array([0.5, 2.0])
    kinds: dict[str, Any] = {"zero": 0, "nonneg": 2, "soc": [], "psd": [], "exp": 0}
    honest = cones.conic_solution(*program, kinds)
    assert honest is not None
    assert honest[0] == pytest.approx([0.5, 1.0], abs=1e-6)
    answer = cones._solve_by_clarabel(*program, kinds)
    monkeypatch.setattr(cones, "_solve_by_clarabel", lambda *_: {**answer, name: np.array(LIES[lie])})
    assert cones.conic_solution(*program, kinds) is None


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("name", ["col_value", "row_dual"])
@pytest.mark.parametrize("lies", [1, 100])
def test_highs_is_asked_again_and_then_not_believed(
    lie: str, name: str, lies: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, honest, left = box(), highspy.Highs.getSolution, lies

    def lying(h: highspy.Highs) -> Any:
        nonlocal left
        left -= 1
        found = honest(h)
        said = {key: getattr(found, key) for key in ("col_value", "row_dual", "value_valid", "dual_valid")}
        return SimpleNamespace(**{**said, name: LIES[lie]} if left >= 0 else said)

    if (name, lie) in (("row_dual", "short"),):
        model.add_row(-highs.highs_infinity(), 5.0, np.arange(2), np.ones(2))
    monkeypatch.setattr(highspy.Highs, "getSolution", lying)
    if name == "row_dual":  # of one row, or two
        monkeypatch.setitem(LIES, "NaN", [np.nan])
        monkeypatch.setitem(LIES, "infinite", [np.inf])
    assert highs.solve(model).status == ("optimal" if lies == 1 else "failed")
