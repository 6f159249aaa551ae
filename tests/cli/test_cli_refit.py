"""``mipfs refit``: the SVM on the features of a result, against scikit-learn's; certified, and refused in one line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.svm import SVC

import mipfs
from tests.cli.outcome import Cli

WDBC = Path(__file__).parents[2] / "instances" / "wdbc.svm"


@pytest.fixture
def relaxed(cli: Cli, tmp_path: Path) -> Path:
    target = tmp_path / "fgm.json"
    args = ("-p", "M=3", "-p", "C=0.1", "-p", "bias=true", "-p", "loss=hinge", "--json", target, "-q")
    assert cli("solve", "fgm", WDBC, "--scale", "standard", *args).code == 0
    return target


@pytest.mark.sampled(2)
@pytest.mark.parametrize("every", [False, True])
def test_the_svm_on_the_features(cli: Cli, tmp_path: Path, relaxed: Path, every: bool) -> None:
    target = tmp_path / "refit.json"
    outcome = cli("refit", relaxed, WDBC, "--C", "20", *(["--all"] if every else []), "--json", target)
    assert (outcome.code, outcome.err) == (0, "")
    before, after = (json.loads(path.read_text()) for path in (relaxed, target))
    wanted = set(before["relaxed"]["sigma"] if every else before["selected"])
    assert set(after["selected"]) == wanted
    data = mipfs.read(WDBC, scale="standard")
    ids = [data.feature_names.index(name) for name in after["selected"]]
    svm = SVC(kernel="linear", C=20.0, tol=1e-8).fit(data.X[:, ids], data.y)
    lost = np.maximum(0.0, 1.0 - data.y * svm.decision_function(data.X[:, ids])).sum()
    value = 0.5 * float(svm.coef_[0] @ svm.coef_[0]) + 20.0 * lost
    assert after["objective"] == pytest.approx(value, rel=1e-5)
    assert cli("verify", target, WDBC).code == 0


@pytest.mark.slow
def test_the_weights_of_the_classes_and_the_signs_of_the_result_hold(cli: Cli, tmp_path: Path) -> None:
    first, target = tmp_path / "first.json", tmp_path / "refit.json"
    asked = ("-p", "M=2", "-p", "class_weight=balanced", "--nonpositive", "worst area", "-q")
    assert cli("solve", "fsp-m", WDBC, "--scale", "standard", *asked, "--json", first).code == 0
    assert cli("refit", first, WDBC, "--C", "20", "--json", target, "-q").code == 0
    before, after = (json.loads(path.read_text())["params"] for path in (first, target))
    assert after["class_weight"] == before["class_weight"] != {}
    assert after["weight_bounds"] == before["weight_bounds"] != {}
    data = mipfs.read(WDBC, scale="standard")
    found = json.loads(target.read_text())
    ids = [data.feature_names.index(name) for name in found["selected"]]
    svm = SVC(kernel="linear", C=20.0, tol=1e-8, class_weight="balanced").fit(data.X[:, ids], data.y)
    weights = 20.0 * data.n_samples / (2.0 * np.where(data.y > 0, (data.y > 0).sum(), (data.y < 0).sum()))
    lost = weights @ np.maximum(0.0, 1.0 - data.y * svm.decision_function(data.X[:, ids]))
    assert found["objective"] == pytest.approx(0.5 * float(svm.coef_[0] @ svm.coef_[0]) + lost, rel=1e-5)
    assert cli("verify", target, WDBC).code == 0


def test_another_loss_and_what_is_refused(cli: Cli, tmp_path: Path, relaxed: Path) -> None:
    target = tmp_path / "r.json"
    assert cli("refit", relaxed, WDBC, "--C", "1", "--loss", "squared-hinge", "--json", target, "-q").code == 0
    assert json.loads(target.read_text())["params"]["loss"] == "squared-hinge"
    for args, said in (
        ((target, WDBC, "--C", "1", "--all"), "--all is for a relaxation"),
        ((target, WDBC, "--C", "0"), "must be a positive number"),
        ((target, WDBC), "Missing option '--C'"),
        ((target, WDBC, "--C", "1", "--json", target), "r.json"),
    ):
        outcome = cli("refit", *args)
        assert (outcome.code, outcome.err.count("\n")) == (2, 1), outcome
        assert said in outcome.err
