"""The intercept of a measure: the weight of a constant column that is selected beside the M, through every door."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import mipfs
from mipfs.atoms.groups import Groups
from mipfs.cli import main
from mipfs.data.instance import Instance
from mipfs.errors import MipfsError, UsageError
from mipfs.estimators.measure import MeasureClassifier
from mipfs.problem import Problem
from mipfs.result.result import Result, Status
from tests.rare_cases import rare, write_csv
from tests.structural_oracles import labellings, structural_svm


def draw(seed: int, n: int = 7, p: int = 4, scale: Any = "none", kind: Any = np.asarray) -> Instance:
    r = np.random.default_rng(seed)
    X = r.standard_normal((n, p)) + 3.0 * (seed % 2)
    y = np.where(X[:, 0] - X[:, 1] + r.standard_normal(n) > 0.4, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return Instance.from_arrays(kind(X), y, scale=scale)


def enumerated(data: Instance, name: str, M: int, C: float, constant: float) -> dict[tuple[int, ...], float]:
    """v(σ) of every selection of at most M features, all labellings written out, with a column of `constant`."""
    losses, V = labellings(name, data.y)
    block = data.block()
    X = block.dense(np.zeros(block.shape[1])) - block.center
    wide = np.column_stack([X, np.full(data.n_samples, constant)])
    p = data.n_features
    chosen = [ids for k in range(M + 1) for ids in itertools.combinations(range(p), k)]
    return {ids: structural_svm(wide[:, [*ids, p]], losses, V, C)[0] for ids in chosen}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("seed", range(8))
def test_branch_equals_brute_force_with_a_constant_column(seed: int, tmp_path: Path) -> None:
    scale = ("none", "standard", "unit")[seed % 3]
    data = draw(seed, scale=scale, kind=sparse.csr_array if seed % 2 else np.asarray)
    name, M, C, constant = ("f1", "roc-auc")[seed // 4], 1 + seed % 2, 10.0 ** (seed / 3), (1.0, 3.0)[seed % 2]
    values = enumerated(data, name, M, C, constant)
    best = min(values.values())
    asked = Problem(data, loss="structural", measure=name, M=M, C=C, intercept_scaling=constant)
    result = mipfs.solve(asked, "branch", gap=1e-7)
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(best, rel=1e-6)
    assert len(result.selected) <= M
    assert values[tuple(sorted(data.columns_of(result.selected).tolist()))] == pytest.approx(best, rel=1e-6)
    assert (result.params["M"], result.params["bias"], result.params["constant"]) == (M, True, constant)
    assert result.n_features == 4
    assert result.data_sha256 == data.sha256
    assert "(intercept)" not in result.to_json()
    report = mipfs.verify(result, data)
    assert report.accepted, report.reason
    result.save(tmp_path / "r.json")
    again = mipfs.verify(Result.load(tmp_path / "r.json"), data)
    assert again.accepted, again.reason
    assert any("the weight u penalised" in line for line in again.statement)


@pytest.mark.parametrize("driver", ["two_layer", "branch", "gbd"])
@pytest.mark.parametrize("given", [{}, {"C": 2.0}])
def test_what_the_intercept_is_cannot_be_forged(driver: str, given: dict[str, Any], tmp_path: Path) -> None:
    data = draw(3)
    result = mipfs.solve(Problem(data, loss="structural", measure="f1", M=2, **{"C": 30.0} | given), driver, gap=1e-6)
    assert mipfs.verify(result, data).accepted
    moved = dataclasses.replace(result, intercept=result.intercept + 0.3)
    assert not mipfs.verify(moved, data).accepted
    for params in ({"constant": 10.0}, {"constant": None}, {"constant": -1.0}, {"bias": False}):
        left = {key: value for key, value in {**result.params, **params}.items() if value is not None}
        assert not mipfs.verify(dataclasses.replace(result, params=left), data).accepted, params


@pytest.mark.sampled(2)
@pytest.mark.parametrize("driver", ["two_layer", "branch"])
def test_forged_constants_bounds_and_names_are_refused(driver: str, tmp_path: Path) -> None:
    data = draw(4, scale="standard")
    result = mipfs.solve(Problem(data, loss="structural", measure="f1", M=2, C=30.0), driver, gap=1e-6)
    result.save(tmp_path / "r.json")
    honest = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))

    def accepted(**changes: Any) -> bool:
        document = json.loads(json.dumps(honest))
        for place, value in changes.items():
            *way, last = place.split("__")
            part = document
            for name in way:
                part = part[name]
            part[last] = value
        (tmp_path / "r.json").write_text(json.dumps(document), encoding="utf-8")
        try:
            return mipfs.verify(Result.load(tmp_path / "r.json"), data).accepted
        except MipfsError:
            return False

    assert accepted()
    for constant in (2.0, 0.5, 0, -1.0, True, "1", [1.0], {}, None, 1e-60, 1e60, 1e-50, 1e50):
        assert not accepted(params__constant=constant), constant
        assert not accepted(params__constant=constant, bound=honest["objective"], objective=honest["objective"] * 0.9)
    assert not accepted(params__bias=False, params__constant=None, intercept=0.0)
    for intercept in (0.0, None, 1e308, -1e308, honest["intercept"] + 0.01):
        assert not accepted(intercept=intercept), intercept
    bound = 1.01 * honest["bound"]
    assert not accepted(bound=bound, certificate__bound=bound)
    assert not accepted(selected=[*honest["selected"], "(intercept)"])
    assert not accepted(params__M=3)
    assert not accepted(n_features=5)
    relaxed = honest.get("relaxed")
    if relaxed is not None:
        assert not accepted(relaxed=relaxed | {"intercept": relaxed["intercept"] + 0.3})
        assert not accepted(relaxed=relaxed | {"upper": 0.9 * relaxed["upper"]})


@pytest.mark.parametrize("driver", ["branch", "gbd"])
def test_a_start_names_features_alone(driver: str) -> None:
    problem = Problem(draw(3), loss="structural", measure="f1", M=2, C=30.0)
    begun = mipfs.solve(problem, driver, start=("x3",), gap=1e-6)
    assert begun.objective == pytest.approx(mipfs.solve(problem, driver, gap=1e-6).objective, rel=1e-5)
    with pytest.raises(UsageError, match="the support x1, x2, x3 does not satisfy the rows"):
        mipfs.solve(problem, driver, start=("x1", "x2", "x3"))


def test_a_free_intercept_is_no_weight_of_a_constant_column() -> None:
    data = draw(3)
    for bias in (True, False):
        result = mipfs.solve(Problem(data, M=1, C=1.0, bias=bias))
        assert mipfs.verify(result, data).accepted
        forged = dataclasses.replace(result, params={**result.params, "constant": 1.0})
        report = mipfs.verify(forged, data)
        assert not report.accepted
        assert "'constant' is stated, which this checker does not know" in report.reason


def test_rows_penalties_and_groups_are_about_the_features_alone() -> None:
    data = draw(5, p=4)
    asked = Problem(data, loss="structural", measure="f1", M=2, C=50.0, lam=0.01)
    asked = asked.with_rows([[1.0, 1.0, 0.0, 0.0]], [-np.inf], [1.0])
    result = mipfs.solve(asked, "branch", gap=1e-7)
    found = set(data.columns_of(result.selected).tolist())
    values = {
        ids: value + 0.01 * len(ids)
        for ids, value in enumerated(data, "f1", 2, 50.0, 1.0).items()
        if not {0, 1} <= set(ids)
    }
    assert result.objective == pytest.approx(min(values.values()), rel=1e-6)
    assert values[tuple(sorted(found))] == pytest.approx(result.objective, rel=1e-6)
    assert mipfs.verify(result, data).accepted
    groups = Groups(data, {"a": [0, 1], "b": [2, 3]})
    grouped = mipfs.solve(Problem(data, loss="structural", measure="f1", M=1, C=50.0, atoms=groups), "branch", gap=1e-7)
    pairs = enumerated(data, "f1", 2, 50.0, 1.0)
    assert grouped.objective == pytest.approx(min(pairs[0, 1], pairs[2, 3]), rel=1e-6)
    assert grouped.selected in {("a",), ("b",)}
    report = mipfs.verify(grouped, data)
    assert report.accepted, report.reason
    with pytest.raises(UsageError, match="take no constant column as an intercept; give bias=False"):
        mipfs.solve(
            Problem(data, loss="structural", measure="f1", M=1, atoms=mipfs.atoms.make("splines", data, knots=3))
        )


@pytest.mark.slow
def test_a_rare_class_is_found_by_default(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without an intercept: OPTIMAL, nothing selected and F1 = 0, whatever C."""
    X, y = rare()
    table = str(write_csv(tmp_path / "fraud.csv", X, y))
    solve = ["solve", "structural", table, "--label", "is_fraud", "-p", "M=3", "-p", "measure=f1", "-p", "C=1000"]
    saved = str(tmp_path / "r.json")
    for driver in ("two_layer", "branch"):
        assert main([*solve, "--driver", driver, "--json", saved]) == 0
        assert "selected    3 of 8 features" in capsys.readouterr().out.replace("selected   3", "selected    3")
        assert main(["verify", saved, table]) == 0
        capsys.readouterr()
        assert main(["evaluate", saved, table, "--json", "-", "--quiet"]) == 0
        assert json.loads(capsys.readouterr().out)["f1"] > 0.5
    assert main([*solve, "-p", "bias=false", "--driver", "branch", "--json", saved]) == 0
    said = capsys.readouterr().out
    assert main(["verify", saved, table]) == 0
    assert "constant: every sample is called 0" in capsys.readouterr().out
    assert "0 of 8 features" in said
    assert "constant: every sample is called 0; to try: an intercept (without bias=false) or a larger C" in said
    model = MeasureClassifier("f1", M=3, C=1000.0, driver="branch").fit(X, y)
    assert model.measure_value(X, y) > 0.5
    assert model.support_.sum() == 3
    assert "3 of 8" in repr(model.result_)


def test_a_constant_classifier_is_called_so_everywhere() -> None:
    X, y = rare()
    data = Instance.from_arrays(X, 2.0 * y - 1.0)
    result = mipfs.solve(Problem(data, loss="structural", bias=False, measure="f1", M=3, C=1000.0), "branch")
    assert "a constant classifier" in repr(result)
    assert "constant: every sample is called -1" in result.summary()
    none = mipfs.solve(Problem(data, M=0))
    assert "M = 0 allows no other" in none.summary()
    stopped = mipfs.solve(Problem(data, M=3), time_limit=0)
    assert "constant: every sample is called -1; no better one was found before the run stopped" in stopped.summary()
    assert "a larger C" not in stopped.summary()


def test_weights_that_are_rounding_are_called_so() -> None:
    """Classes that overlap: the measure's bound at w = 0 is the optimum, and what a driver returns is of size 1e-13."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    data = Instance.from_arrays(X, np.where(rng.random(60) < 0.2, 1.0, -1.0))
    result = mipfs.solve(Problem(data, loss="structural", measure="f1", M=2, C=1000.0), "two_layer")
    assert result.objective == pytest.approx(1000.0, rel=1e-9)
    tiny = dataclasses.replace(result, weights={"x1": 1e-13}, selected=("x1",))
    assert "worth no more than none: its objective is that of no classifier" in tiny.summary()
    assert "fsp-m with -p class_weight=balanced" in tiny.summary()
    assert "worth no more than none" in repr(tiny)
    real = mipfs.solve(Problem(data, M=2, C=1.0))
    assert "worth no more" not in real.summary()


@pytest.mark.slow
def test_paths_ladders_lists_states_and_validation(tmp_path: Path) -> None:
    data = draw(2, n=9)
    problem = Problem(data, loss="structural", measure="f1", M=2, C=40.0)
    values = enumerated(data, "f1", 3, 40.0, 1.0)
    walked = mipfs.path(problem, M=[1, 2, 3], driver="branch", gap=1e-7)
    for point in walked.points:
        best = min(value for ids, value in values.items() if len(ids) <= point.place["M"])
        assert point.objective == pytest.approx(best, rel=1e-6)
        assert mipfs.verify(point.result, data).accepted
    best = min(value for ids, value in values.items() if len(ids) <= 2)
    ladder = mipfs.compare(problem)
    assert ladder.incumbent >= best * (1 - 1e-6)
    assert "(intercept)" not in ladder.selected
    assert ladder.params["M"] == 2
    for rung in ladder.ladder:
        assert not (rung.is_bound and math.isfinite(rung.value)) or rung.value <= best * (1 + 1e-6)
    listed = mipfs.solve(problem, "branch", gap=1e-7, pool_size=3)
    assert listed.near_optimal is not None
    for one in listed.near_optimal["supports"]:
        ids = tuple(sorted(data.columns_of(one["selected"]).tolist()))
        assert one["objective"] == pytest.approx(values[ids], rel=1e-5)
    assert mipfs.verify(listed, data).accepted
    first = mipfs.solve(problem, "two_layer", gap=1e-9, iteration_limit=1, checkpoint=tmp_path / "s.npz")
    second = mipfs.solve(problem, "two_layer", gap=1e-9, resume=tmp_path / "s.npz")
    assert second.bound >= first.bound
    watched = mipfs.solve(problem, "gbd", gap=1e-7, validation=draw(4, n=9))
    assert watched.validated is not None
    assert "(intercept)" not in watched.validated["selected"]
