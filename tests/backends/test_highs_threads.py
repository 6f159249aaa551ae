"""HiGHS under a limit: in several threads at once, and told to stop."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from mipfs.solvers import highs


def knapsack(seed: int, n: int) -> tuple[object, np.ndarray]:
    rng = np.random.default_rng(seed)
    h, weight = highs.new_model(), rng.integers(100, 10_000, (3, n)).astype(float)
    h.addVars(n, np.zeros(n), np.ones(n))
    for row in weight:
        h.addRow(-np.inf, float(row.sum() // 2), n, np.arange(n, dtype=np.int32), row)
    highs.set_costs(h, -weight.sum(axis=0) - rng.integers(1, 50, n))
    import highspy

    h.changeColsIntegrality(n, np.arange(n, dtype=np.int32), np.full(n, highspy.HighsVarType.kInteger))
    return h, weight


def test_models_in_several_threads_do_not_know_of_one_another() -> None:
    def work(seed: int) -> list[str]:
        h, _ = knapsack(seed, 8)
        return [highs.solve(h, deadline=time.monotonic() + 60.0).status for _ in range(40)]

    with ThreadPoolExecutor(4) as pool:
        for said in pool.map(work, range(8)):
            assert said == ["optimal"] * 40


@pytest.mark.parametrize("way", ["deadline", "stop"])
def test_a_hard_model_hears_its_limit_and_can_go_on(way: str) -> None:
    h, _ = knapsack(1, 60)
    began = time.monotonic()
    given = {"deadline": began + 0.3} if way == "deadline" else {"stop": lambda: time.monotonic() > began + 0.3}
    assert highs.solve(h, **given).status == "stopped"  # type: ignore[arg-type]
    assert time.monotonic() - began < 1.5
    highs.set_costs(h, np.ones(60))
    assert highs.solve(h, deadline=time.monotonic() + 60.0).status == "optimal"


@pytest.mark.parametrize("option", ["output_flag", "log_to_console"])
def test_it_says_nothing_not_even_what_it_is(option: str, capfd: pytest.CaptureFixture[str]) -> None:
    h = highs.silent(option)
    h.addVar(0.0, 1.0)
    h.changeColCost(0, -1.0)
    h.run()
    assert h.getInfo().objective_function_value == -1.0
    assert capfd.readouterr() == ("", "")
