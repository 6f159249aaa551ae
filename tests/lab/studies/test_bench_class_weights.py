"""Class weights in `mipfs.bench`: those of the description or of the call, against the same weights of the samples."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mipfs
from mipfs.cli import main
from mipfs.data.instance import Instance, Labels
from mipfs.errors import UsageError
from mipfs.lab.studies.bench_unit import Setting
from tests.lab.studies.test_bench import raw, without_times

WEIGHTS = {"bad": 4.0, "good": 0.5}
METHODS = ["fsp-m", "rfe", "l1-svm", "information-gain", "bss"]


def data(**given: Any) -> Instance:
    return Instance.from_arrays(*raw(), **{"scale": "standard", "labels": Labels("good", "bad"), **given})


def kept(found: Any) -> Any:
    return without_times(json.loads(json.dumps(found.records)))


def by_class() -> np.ndarray:
    return np.where(data().y > 0, 4.0, 0.5)


@pytest.mark.slow
def test_they_are_the_same_as_sample_weights_for_every_method() -> None:
    asked: dict[str, Any] = {"methods": METHODS, "M": [2], "C": [0.05, 1.0], "folds": 3, "inner": 2}
    found = mipfs.bench(data(scale="none"), **asked, class_weight=WEIGHTS)
    same = mipfs.bench(data(scale="none", sample_weight=by_class()), **asked)  # weights of samples count in a scale
    assert kept(found) == kept(same)
    assert kept(found) != kept(mipfs.bench(data(scale="none"), **asked))
    assert "0.5 for good, 4 for bad" in found.summary() or "4 for bad, 0.5 for good" in found.summary()


def test_balanced_is_so_on_the_training_part() -> None:
    setting = Setting.of(data(), ["rfe"], [2], C=[1.0], folds=3, class_weight="balanced")
    for number in range(3):
        train = setting.part(data(), number).train
        weights = setting.weighted(train).sample_weight
        for sign in (1.0, -1.0):
            share = train.n_samples / (2 * np.sum(train.y == sign))
            assert weights[train.y == sign] == pytest.approx(share)


def test_a_method_for_a_measure_leaves_them_out_and_says_so() -> None:
    asked: dict[str, Any] = {"methods": ["svm-perf"], "M": [2], "C": [1.0], "folds": 2, "measure": "f1"}
    found, plain = mipfs.bench(data(), **asked, class_weight=WEIGHTS), mipfs.bench(data(), **asked)
    assert [one["value"] for one in found.records] == [one["value"] for one in plain.records]
    assert all("without the class weights" in one["message"] for one in found.records)
    assert not any(one["message"] for one in plain.records)


@pytest.mark.parametrize("given", [3, [1, 2], "heavy", {"ugly": 2.0}, {"bad": -1.0}])
def test_wrong_ones_are_refused_in_one_line(given: Any) -> None:
    with pytest.raises(UsageError, match="class_weight"):
        mipfs.bench(data(), ["rfe"], [2], class_weight=given)


@pytest.mark.slow
def test_those_of_the_description_hold_and_the_command_says_others(tmp_path: Path) -> None:
    X, y = raw()
    file = tmp_path / "d.csv"
    lines = [
        ",".join([*(f"{v:.6f}" for v in row), "bad" if one > 0 else "good"]) for row, one in zip(X, y, strict=True)
    ]
    file.write_text("\n".join([",".join([*"abcdefgh", "label"]), *lines]) + "\n")
    (tmp_path / "d.toml").write_text("[data]\nclass_weight = { bad = 4.0, good = 0.5 }\n")
    asked = [
        "bench",
        str(file),
        "--scale",
        "standard",
        "--methods",
        "rfe",
        "--M",
        "2",
        "--C",
        "1",
        "--folds",
        "3",
        "-q",
    ]

    def run(name: str, *more: str) -> Any:
        out = tmp_path / f"{name}.json"
        assert main([*asked, "-o", str(out), *more]) == 0
        return json.loads(out.read_text())

    own, none, again = run("own"), run("none", "--class-weight", "none"), run("own", "--resume")
    assert own["params"]["class_weight"] == [["bad", 4.0], ["good", 0.5]]
    assert none["params"]["class_weight"] == []
    assert own["records"] == again["records"]
    read = mipfs.read(file, scale="standard")
    same = mipfs.bench(read, ["rfe"], [2], C=[1.0], folds=3, class_weight=WEIGHTS)
    assert kept(same) == without_times(own["records"])
    plain = mipfs.bench(read, ["rfe"], [2], C=[1.0], folds=3, class_weight={})
    assert kept(plain) == without_times(none["records"])
    assert main([*asked, "-o", str(tmp_path / "own.json"), "--resume", "--class-weight", "bad:2"]) == 2
    assert main([*asked, "-o", str(tmp_path / "x.json"), "--class-weight", "bad=2"]) == 2
