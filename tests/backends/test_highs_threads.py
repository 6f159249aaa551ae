"""HiGHS under a limit: in several threads at once, and told to stop."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from mipfs.solvers import highs


def knapsack(seed: int, n: int) -> highs.Model:
    rng = np.random.default_rng(seed)
    model, weight = highs.Model(), rng.integers(100, 10_000, (3, n)).astype(float)
    model.add_columns(np.zeros(n), np.ones(n))
    for row in weight:
        model.add_row(-np.inf, float(row.sum() // 2), np.arange(n), row)
    model.set_costs(-weight.sum(axis=0) - rng.integers(1, 50, n))
    model.make_whole(np.arange(n))
    return model


def test_models_in_several_threads_do_not_know_of_one_another() -> None:
    def work(seed: int) -> list[str]:
        model = knapsack(seed, 8)
        return [highs.solve(model, deadline=time.monotonic() + 60.0).status for _ in range(40)]

    with ThreadPoolExecutor(4) as pool:
        for said in pool.map(work, range(8)):
            assert said == ["optimal"] * 40


@pytest.mark.parametrize("way", ["deadline", "stop"])
def test_a_hard_model_hears_its_limit_and_can_go_on(way: str) -> None:
    model = knapsack(1, 60)
    began = time.monotonic()
    given = {"deadline": began + 0.3} if way == "deadline" else {"stop": lambda: time.monotonic() > began + 0.3}
    assert highs.solve(model, **given).status == "stopped"  # type: ignore[arg-type]
    assert time.monotonic() - began < 1.5
    model.set_costs(np.ones(60))
    assert highs.solve(model, deadline=time.monotonic() + 60.0).status == "optimal"


@pytest.mark.parametrize("option", ["output_flag", "log_to_console"])
def test_it_says_nothing_not_even_what_it_is(option: str, capfd: pytest.CaptureFixture[str]) -> None:
    h = highs.silent(option)
    h.addVar(0.0, 1.0)
    h.changeColCost(0, -1.0)
    h.run()
    assert h.getInfo().objective_function_value == -1.0
    assert capfd.readouterr() == ("", "")
