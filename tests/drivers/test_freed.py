"""What a run held is given back when it ends: by counting references, not when Python next looks for cycles."""

from __future__ import annotations

import gc
from collections import Counter
from typing import Any

import numpy as np
import pytest

import mipfs


def held() -> Counter[str]:
    """The objects of the package, by their classes."""
    kinds = (type(one) for one in gc.get_objects())
    return Counter(f"{kind.__module__}.{kind.__qualname__}" for kind in kinds if str(kind.__module__)[:6] == "mipfs.")


@pytest.mark.parametrize("driver", ["branch", "gbd", "kelley"])
@pytest.mark.parametrize("given", [{}, {"iteration_limit": 3}], ids=["closed", "stopped"])
def test_a_run_that_is_over_holds_nothing(driver: str, given: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    data = mipfs.Instance.from_arrays(rng.normal(size=(60, 16)), np.resize([1.0, -1.0], 60))
    for _ in range(2):  # what the first one leaves is loaded once
        before = held()
        gc.disable()
        try:
            problem = mipfs.Problem(data, M=5, C=1.0)
            mipfs.solve(problem, driver, **given)
            del problem
            more = dict(held() - before)
        finally:
            gc.enable()
    assert more == {}
