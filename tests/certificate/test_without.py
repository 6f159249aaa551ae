"""What the leaves of a proof say of the problem without bounds on its weights: never above its optimum."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mipfs
from mipfs.cli import main
from mipfs.data.instance import Instance
from mipfs.problem import Problem
from tests.bounded_cases import case


def boxed(data: Instance, size: float) -> dict[str, tuple[float, float]]:
    return dict.fromkeys(data.feature_names, (-size, size))


@pytest.mark.sampled(11)
@pytest.mark.parametrize("driver", ["branch", "gbd", "kelley"])
@pytest.mark.parametrize("seed", range(300, 312))
def test_no_more_than_the_optimum_without_bounds(seed: int, driver: str) -> None:
    one = case(seed)
    free = replace(one, low=np.full_like(one.low, -math.inf), high=np.full_like(one.high, math.inf))
    best = min(free.values().values())
    found = mipfs.solve(one.problem(), driver, gap=1e-6 if driver != "kelley" else 1e-3)
    report = mipfs.verify(found, one.problem().data)
    assert report.accepted, report.reason
    if all(end in (0.0, math.inf) for end in np.abs(np.concatenate([one.low, one.high])).tolist()):
        assert report.bound_without_box == -math.inf  # signs say what they say
        return
    assert 0.0 <= report.bound_without_box <= best * (1 + 1e-9)
    assert report.bound_without_box <= report.bound


def two_columns() -> tuple[Instance, float]:
    """A column that a box leaves alone, and one that would need a weight beyond the box and would then be better."""
    r = np.random.default_rng(3)
    y = np.where(np.arange(60) % 2, 1.0, -1.0)
    noisy = y * 1.0 + 0.7 * r.normal(size=60)
    small = 0.02 * y + 0.001 * r.normal(size=60)
    data = Instance.from_arrays(np.column_stack([noisy, small]), y, feature_names=["noisy", "small"])
    return data, 2.0


def test_a_box_that_does_not_bind() -> None:
    data, size = two_columns()
    asked: dict[str, Any] = {"M": 1, "C": 1000.0, "gap": 1e-6}
    gap = asked.pop("gap")
    problem = Problem(data, weight_bounds=boxed(data, size), **asked)
    inside = mipfs.solve(problem, gap=gap)
    free = mipfs.solve(Problem(data, **asked), gap=gap)
    assert inside.selected == ("noisy",)
    assert max(map(abs, inside.weights.values())) < size  # no weight reaches its bound,
    assert free.selected == ("small",)  # and yet
    assert free.objective < 0.9 * inside.objective
    report = mipfs.verify(inside, data)
    assert report.accepted
    assert report.bound_without_box <= free.objective
    assert "says nothing about the problem without these bounds" in inside.summary()


def test_a_wide_box_is_none() -> None:
    """Where no dual vector comes near the box the same leaves prove the same."""
    data = mipfs.read("instances/wdbc.svm", scale="standard")
    wide = {name: (-1e6, 1e6) for name in data.feature_names}
    found = mipfs.solve(Problem(data, M=2, C=0.01, weight_bounds=wide))
    report = mipfs.verify(found, data)
    assert report.bound_without_box == report.bound > 0.0
    plain = mipfs.verify(mipfs.solve(Problem(data, M=2, C=0.01)), data)
    assert plain.bound_without_box == -math.inf


def test_nothing_is_said_where_nothing_is_allowed() -> None:
    data, size = two_columns()
    none = Problem(data, M=1, weight_bounds=boxed(data, size)).with_rows([[1.0, 1.0]], 2.0, np.inf)
    found = mipfs.solve(none)
    assert found.status is mipfs.Status.INFEASIBLE
    report = mipfs.verify(found, data)
    assert report.accepted
    assert report.bound_without_box == -math.inf


def test_the_command_says_both(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = str(Path("instances/wdbc.svm").resolve())
    out, told = tmp_path / "r.json", tmp_path / "v.json"
    options = ["-p", "M=2", "-p", "C=0.01", "--scale", "standard", "--quiet"]
    assert main(["solve", "fsp-m", data, *options, "--box", "1", "--json", str(out)]) == 0
    capsys.readouterr()
    assert main(["verify", str(out), data, "--scale", "standard"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "is what the same leaves prove without the bounds on the weights" in said
    assert main(["verify", str(out), data, "--scale", "standard", "--json", str(told)]) == 0
    report = json.loads(told.read_text())
    assert 0.0 <= report["bound_without_box"] <= report["bound"]
    assert main(["solve", "fsp-m", data, *options, "--nonnegative", "worst radius", "--json", str(out)]) == 0
    assert main(["verify", str(out), data, "--json", str(told)]) == 0
    assert json.loads(told.read_text())["bound_without_box"] is None
