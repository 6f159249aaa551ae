"""The relaxation where a run must stop while its columns are still being made."""

from __future__ import annotations

import numpy as np
import pytest

from mipfs.data.instance import Instance
from mipfs.inner import designs
from mipfs.inner.boolean import Boolean
from mipfs.problem import Problem


@pytest.mark.sampled(2)
@pytest.mark.parametrize("after", range(12))
def test_a_stop_between_any_two_columns_leaves_a_bound(after: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(designs, "NUMBERS_PER_BLOCK", 1)
    r = np.random.default_rng(0)
    X = r.standard_normal((60, 8))
    y = np.where(X[:, 0] + r.standard_normal(60) > 0, 1.0, -1.0)
    problem = Problem(Instance.from_arrays(X, y), M=2, C=0.3)
    whole = Boolean(problem, bool).solve(*problem.selection.sigma_bounds(), 1e-6)
    asked = 0

    def must_stop() -> bool:
        nonlocal asked
        asked += 1
        return asked > after

    stopped = Boolean(problem, must_stop).solve(*problem.selection.sigma_bounds(), 1e-6)
    assert stopped.lower <= whole.upper * (1 + 1e-9)
    assert stopped.upper >= whole.lower * (1 - 1e-9)
    assert np.isfinite(stopped.lower)
