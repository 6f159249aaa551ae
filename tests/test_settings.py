"""Settings: documented, checked, handed in, in the result and its JSON, said once; and they steer."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mipfs
from mipfs import settings
from mipfs.drivers import DRIVERS
from mipfs.drivers.branch import Options
from mipfs.run.run import Run
from mipfs.settings import (
    BranchSettings,
    DriverSettings,
    GbdSettings,
    KelleySettings,
    NodeSettings,
    SwapSettings,
    TreeSettings,
)

DRIVER_RECORDS = (DriverSettings, *DriverSettings.__subclasses__())
STEPS = sorted(
    {type(field.default) for record in DRIVER_RECORDS for field in dataclasses.fields(record)} - {int, float},
    key=lambda one: one.__name__,
)


def problem(seed: int = 0) -> mipfs.Problem:
    r = np.random.default_rng(seed)
    X, y = r.normal(size=(30, 8)), np.where(r.random(30) < 0.5, 1.0, -1.0)
    return mipfs.Problem(mipfs.Instance.from_arrays(X, y), M=2, C=1.0)


def test_every_field_says_what_it_is() -> None:
    assert settings.__file__ is not None
    files, seen = sorted(Path(settings.__file__).parent.glob("*.py")), 0
    trees = [ast.parse(file.read_text(encoding="utf-8")) for file in files]
    for record in (node for tree in trees for node in tree.body if isinstance(node, ast.ClassDef)):
        for field, line in zip(record.body, [*record.body[1:], None], strict=True):
            if isinstance(field, ast.AnnAssign):
                seen += 1
                said = isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant) and line.value.value
                assert isinstance(said, str), f"{record.name}.{ast.unparse(field.target)}"
                assert said.endswith("."), said
    assert seen > 150


@pytest.mark.parametrize("record", [*DRIVER_RECORDS, *STEPS], ids=lambda one: one.__name__)
def test_what_lies_out_of_range_is_refused(record: Any) -> None:
    for field in dataclasses.fields(record):
        for value in (-1, float("nan"), "many"):
            with pytest.raises(mipfs.UsageError, match=field.name):
                record(**{field.name: value})
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(record(), dataclasses.fields(record)[0].name, 1)


def test_numbers_of_nodes_reach_the_kernels_and_change_no_optimum() -> None:
    r = np.random.default_rng(3)
    X = r.normal(size=(60, 20))
    y = np.where(X[:, 0] - X[:, 1] + r.normal(size=60) > 0, 1.0, -1.0)
    asked = mipfs.Problem(mipfs.Instance.from_arrays(X, y), M=5, C=1.0)
    usual = mipfs.solve(asked, "branch")
    other = mipfs.solve(asked, "branch", settings=BranchSettings(nodes=NodeSettings(slice=3, entering=2, aim=0.5)))
    assert usual.status == other.status == mipfs.Status.OPTIMAL
    assert other.objective == pytest.approx(usual.objective, rel=2e-4)
    assert other.counters["newton_steps"] != usual.counters["newton_steps"]
    assert other.settings.changed() == {"nodes.slice": 3, "nodes.entering": 2, "nodes.aim": 0.5}


def test_pairs_that_contradict_are_refused() -> None:
    with pytest.raises(mipfs.UsageError, match="few must not exceed many, 16, not 17"):
        SwapSettings(few=17)
    with pytest.raises(mipfs.UsageError, match="exact must be below stuck"):
        KelleySettings(exact=0.5)


@pytest.mark.parametrize("driver", DRIVERS)
def test_every_driver_has_its_record_and_takes_no_other(driver: str) -> None:
    options = importlib.import_module(DRIVERS[driver]).Options()
    own = type(Run(problem(), options).settings)
    assert own in DRIVER_RECORDS
    other = GbdSettings() if own is not GbdSettings else BranchSettings()
    with pytest.raises(mipfs.UsageError, match=f"{driver!r} takes {own.__name__}, not {type(other).__name__}"):
        mipfs.solve(problem(), driver, settings=other)


def test_they_are_in_the_result_and_its_json(tmp_path: Path) -> None:
    asked = BranchSettings(tree=TreeSettings(batch=3, level=0.5))
    result = mipfs.solve(problem(), "branch", settings=asked)
    assert result.settings is asked
    result.save(tmp_path / "r.json")
    stated = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))["settings"]
    assert (stated["record"], stated["tree"]["batch"], stated["tree"]["level"]) == ("BranchSettings", 3, 0.5)
    again = mipfs.Result.load(tmp_path / "r.json")
    assert again.settings == asked
    assert mipfs.verify(again, problem().data).accepted
    assert mipfs.solve(problem(), "branch").settings == BranchSettings()


def test_files_of_other_versions_are_read() -> None:
    document = json.loads(mipfs.solve(problem(), "branch").to_json())
    older = {name: value for name, value in document.items() if name != "settings"}
    assert mipfs.Result.from_json(json.dumps(older)).settings is None
    newer = {"record": "BranchSettings", "tree": {"batch": 8, "unheard_of": 1}}
    read = mipfs.Result.from_json(json.dumps({**document, "settings": newer}))
    assert read.settings is None
    assert read.stated["settings"] == newer
    with pytest.raises(mipfs.DataError, match="'settings' cannot be"):
        mipfs.Result.from_json(json.dumps({**document, "settings": 3}))


def test_verbose_says_them_once(capsys: pytest.CaptureFixture[str]) -> None:
    mipfs.solve(problem(), "branch", verbose=True, settings=BranchSettings(tree=TreeSettings(batch=3)))
    assert capsys.readouterr().err.count("settings: BranchSettings, tree.batch = 3\n") == 1
    mipfs.solve(problem(), "gbd", verbose=True)
    assert capsys.readouterr().err.count("settings: GbdSettings, all at their defaults\n") == 1


@pytest.mark.slow
def test_they_steer_and_leave_the_answer() -> None:
    r = np.random.default_rng(3)
    X, y = r.normal(size=(60, 20)), np.where(r.random(60) < 0.5, 1.0, -1.0)
    asked = mipfs.Problem(mipfs.Instance.from_arrays(X, y), M=6, C=1.0)
    usual = mipfs.solve(asked, "branch", gap=1e-6)
    for step in (
        TreeSettings(batch=1, level=0.0, near=0.0),
        TreeSettings(batch=64, clear=0.0, roundings=0, rounding_every=7),
    ):
        other = mipfs.solve(asked, "branch", gap=1e-6, settings=BranchSettings(tree=step))
        assert other.status is usual.status is mipfs.Status.OPTIMAL
        assert other.objective == pytest.approx(usual.objective, rel=2e-6)
        assert other.counters != usual.counters
        assert mipfs.verify(other, asked.data).accepted


def test_a_part_of_the_atoms_has_those_of_the_whole() -> None:
    from mipfs.run.part import PartialRun

    asked = BranchSettings(tree=TreeSettings(batch=3))
    whole = Run(problem(), Options(), settings=asked)
    assert PartialRun(whole, np.arange(3)).settings is asked
