"""The library of proven optima: its values by an independent oracle, and its problems solved again as it says.

By default those that take a tenth of a second; MIPFS_OPTIMA=all in the environment solves every one.
"""

from __future__ import annotations

import functools
import importlib.util
import itertools
import os
import shlex
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import mipfs
from mipfs.cli import main
from tests import oracles

ROOT = Path(__file__).resolve().parents[1]
LIBRARY = tomllib.loads((ROOT / "instances" / "optima.toml").read_text(encoding="utf-8"))
INSTANCES = {one["name"]: one for one in LIBRARY["instance"]}
PROBLEMS = {one["name"]: one for one in LIBRARY["problem"]}
ALL = os.environ.get("MIPFS_OPTIMA") == "all"
QUICK, SMALL = 0.1, ("wdbc", "credit", "aytug-one", "tan-2010")
"""Seconds of what is solved again by default, and the families whose data are made in no time."""
GAP = 1e-6


def small(name: str) -> bool:
    return ALL or name.startswith(SMALL)


def again() -> Iterator[str]:
    """The problems to solve again."""
    for name, one in PROBLEMS.items():
        if ALL or (small(name) and one["seconds"] <= QUICK):
            yield name


def params(name: str) -> dict[str, str]:
    """The parameters of ``-p``."""
    words = shlex.split(PROBLEMS[name]["solve"])
    return dict(words[i + 1].split("=") for i, word in enumerate(words) if word == "-p")


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for the whole run: what ``data_of`` made once is still there when the module is entered again."""
    folder = tmp_path_factory.mktemp("optima")
    (folder / "instances").symlink_to(ROOT / "instances")
    return folder


@pytest.fixture
def root(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which the commands of the library run as in the root of the repository."""
    monkeypatch.chdir(folder)
    return folder


@functools.cache
def data_of(instance: str) -> mipfs.Instance:
    """The data, made where they are not shipped."""
    one = INSTANCES[instance]
    if "generate" in one:
        assert main([*shlex.split(one["generate"])[1:], "--quiet"]) == 0
    scale = "standard" if instance == "wdbc" else None
    return mipfs.read(one["file"], **({} if scale is None else {"scale": scale}))


def value_of(name: str, support: list[str]) -> oracles.Value:
    """(P) at a support, by the oracle."""
    data, given = data_of(PROBLEMS[name]["instance"]), params(name)
    columns = [data.index[feature] for feature in support]
    Z = np.asarray(data.X[:, columns].todense() if hasattr(data.X, "todense") else data.X[:, columns])
    Z = Z - data.center[columns]
    c_i = np.full(data.n_samples, float(given["C"]))
    value = oracles.svm_value(Z, data.y, c_i, given["bias"] == "true", given["loss"])
    return value.shifted(float(given.get("lambda", 0.0)) * len(support))


def test_the_library_holds_what_its_script_asks_for() -> None:
    spec = importlib.util.spec_from_file_location("make_optima", ROOT / "instances" / "make_optima.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    sys.modules["make_optima"] = script
    spec.loader.exec_module(script)
    assert [(one.name, one.solve) for one in script.grid()] == [(n, one["solve"]) for n, one in PROBLEMS.items()]
    assert {one.data.name for one in script.grid()} == INSTANCES.keys()
    for one in script.grid():
        assert INSTANCES[one.data.name].get("generate", "") == one.data.generate


@pytest.mark.parametrize("name", PROBLEMS)
def test_what_an_entry_says_agrees_with_itself(name: str) -> None:
    one, given = PROBLEMS[name], params(name)
    assert 0.0 <= one["objective"] - one["bound"] <= GAP * one["objective"]
    assert len(one["support"]) == len(set(one["support"])) <= int(given.get("M", 30))
    assert one["unique"] == ("near" not in one) == ("next" not in one)
    if not one["unique"]:
        assert 2 <= one["near"] <= 20
        assert 0.0 <= one["next"] <= 1e-3


@pytest.mark.slow
def test_the_values_are_those_of_the_oracle(root: Path) -> None:
    """The value of every listed support, by Clarabel or by SciPy."""
    for name, one in PROBLEMS.items():
        if small(name):
            value = value_of(name, one["support"])
            assert one["objective"] == pytest.approx(value.upper, rel=1e-7), name
            assert one["bound"] <= value.upper * (1 + 1e-9), name


@pytest.mark.slow
def test_no_selection_of_credit_is_better(root: Path) -> None:
    """All that its budget, dependencies and counts allow, written out here."""
    costs = {"income": 2, "loan": 1, "loan to income": 1, "age": 1, "years employed": 2, "housing=family": 1}
    costs |= {"housing=own": 1, "housing=rent": 1}
    features = data_of("credit").feature_names
    bureau = {"open accounts", "late payments", "inquiries", "history years"}
    for name in ("credit/hinge/bias/C=1", "credit/squared-hinge/no-bias/C=0.1", "credit/logistic/bias/M=3,C=10"):
        one, values = PROBLEMS[name], {}
        most = int(params(name).get("M", 5))
        for size, rest in ((k, s) for k in range(most) for s in itertools.combinations(features, k)):
            chosen = {"income", *rest}
            if "income" in rest or not bureau & chosen or {"late payments", "inquiries"} <= chosen:
                continue
            if ("loan" not in chosen and "loan to income" in chosen) or {"age", "history years"} <= chosen:
                continue
            if sum(costs.get(feature, 3) for feature in chosen) <= 9:
                values[frozenset(chosen)] = value_of(name, sorted(chosen)).upper
                assert len(chosen) == size + 1
        ranked = sorted(values.values())
        assert one["objective"] == pytest.approx(ranked[0], rel=GAP)
        assert values[frozenset(one["support"])] == pytest.approx(ranked[0], rel=1e-7)
        near = sum(value <= ranked[0] * (1 + 1e-3) for value in ranked)
        assert one.get("near", 1) == near
        if near > 1:
            assert one["next"] == pytest.approx(ranked[1] / ranked[0] - 1.0, rel=1e-2)


def test_the_rows_of_the_wdbc_budget_hold() -> None:
    named = [one for name, one in PROBLEMS.items() if name.endswith("/wdbc-budget")]
    assert len(named) == 11
    for one in named:
        chosen = set(one["support"])
        assert sum(3 if "worst" in f else 2 if "error" in f else 1 for f in chosen) <= 8
        for what in ("texture", "smoothness", "concave points"):
            assert f"worst {what}" not in chosen or f"mean {what}" in chosen
        assert sum(f.split()[0] in ("mean", "worst") and f.split()[1] in ("radius", "perimeter", "area")
                   for f in chosen) <= 1  # fmt: skip


def test_the_rows_of_the_pairs_hold() -> None:
    named = [one for name, one in PROBLEMS.items() if name.endswith("/pairs-20")]
    assert len(named) == 4
    for one in named:
        chosen = {int(feature[1:]) for feature in one["support"]}
        for k in range(1, 20, 2):
            both = (k in chosen) + (k + 1 in chosen)
            assert both <= 1 if k < 11 else both in (0, 2)
        assert sum(k <= 10 for k in chosen) % 2 == 0


@pytest.mark.parametrize(
    ("name", "twice", "columns"),
    [
        ("wdbc/squared-hinge/no-bias/lambda=10,C=1", 129.5992913774, [21, 23, 27]),
        ("wdbc/squared-hinge/no-bias/lambda=5,C=1", 97.1727964702, [13, 21, 23, 27]),
        ("wdbc/logistic/no-bias/lambda=10,C=0.5", 135.7377227497, [23, 27]),
        ("wdbc/logistic/no-bias/lambda=5,C=0.5", 110.1174044702, [7, 21, 23]),
    ],
)
def test_optima_found_by_brute_force_elsewhere(name: str, twice: float, columns: list[int], root: Path) -> None:
    """Σ loss + ‖w‖² + λ‖w‖₀ of El0ps on WDBC, enumerated without this package."""
    one, index = PROBLEMS[name], data_of("wdbc").index
    assert 2.0 * one["objective"] == pytest.approx(twice, rel=1e-9)
    assert [index[feature] for feature in one["support"]] == columns


@pytest.mark.sampled(47)
@pytest.mark.parametrize("name", list(again()))
def test_solved_again(name: str, root: Path) -> None:
    """The listed command proves the listed optimum, with a certificate that holds."""
    one, data = PROBLEMS[name], data_of(PROBLEMS[name]["instance"])
    assert main([*shlex.split(one["solve"])[1:], "--json", "again.json", "--quiet"]) == 0
    result = mipfs.Result.load("again.json")
    where = "" if result.data_sha256 == INSTANCES[one["instance"]]["data_sha256"] else "the data are not the same here"
    assert result.status is mipfs.Status.OPTIMAL
    assert result.objective == pytest.approx(one["objective"], rel=2 * GAP), where
    assert result.bound <= one["objective"] * (1 + 1e-9), where
    assert one["bound"] <= result.objective * (1 + 1e-9), where
    if one.get("next", 1.0) > 2 * GAP:
        assert list(result.selected) == one["support"], where
    assert result.near_optimal is not None
    assert result.near_optimal["complete"] is True
    supports = result.near_optimal["supports"]
    assert len(supports) == one.get("near", 1), where
    if len(supports) > 1:
        assert supports[1]["gap"] == pytest.approx(one["next"], rel=1e-2, abs=2 * GAP)
    assert mipfs.verify(result, data).accepted
