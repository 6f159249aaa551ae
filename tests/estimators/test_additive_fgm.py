"""AdditiveFGMClassifier: contributions add up, frames and classes, bad parameters; atoms= on the command line."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

import mipfs
from mipfs.cli import main

MAPS = ("hik", "chi2", "intersection", "jensen-shannon", "splines")


def rings(seed: int = 0, n: int = 150) -> tuple[np.ndarray, np.ndarray]:
    """Classes that lie around one another in the second and fourth of five features."""
    r = np.random.default_rng(seed)
    X = r.random((n, 5))
    far = np.abs(X[:, 1] - 0.5) + np.abs(X[:, 3] - 0.5)
    return X, np.where(far < 0.35, "inner", np.where(far < 0.6, "middle", "outer"))


@pytest.mark.parametrize("name", MAPS)
def test_contributions_add_up_to_the_decision(name: str) -> None:
    X, y = rings()
    model = mipfs.AdditiveFGMClassifier(name, M=2, C=10.0, time_limit=None).fit(X, y == "inner")
    assert model.support_.tolist() == [False, True, False, True, False]
    parts = model.contributions(X)
    np.testing.assert_allclose(parts.sum(axis=1) + model.intercept_[0], model.decision_function(X), atol=1e-10)
    assert not parts[:, [0, 2, 4]].any()
    np.testing.assert_allclose(model.decision_function(sparse.csr_array(X)), model.decision_function(X), atol=1e-12)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
    assert model.score(X, y == "inner") > LogisticRegression().fit(X, y == "inner").score(X, y == "inner") + 0.05
    moved = X.copy()
    moved[:, [0, 2, 4]] = 7.0
    np.testing.assert_array_equal(model.predict(moved), model.predict(X))


@pytest.mark.slow
def test_many_classes_negative_values_and_what_is_kept() -> None:
    X, y = rings()
    model = mipfs.AdditiveFGMClassifier(M=2, C=10.0, keep="all", T=3, debias=20.0, time_limit=None).fit(X - 0.5, y)
    assert model.decision_function(X - 0.5).shape == (150, 3)
    assert model.result_[0].atoms["made"]["options"]["shift"] is True
    assert model.score(X - 0.5, y) > 0.8
    assert np.isfinite(model.decision_function(X - 9.0)).all(), "values below all of training count as its least"
    scores = cross_val_score(clone(model).set_params(keep="M", debias=None), X, y, cv=2)
    assert scores.min() > 0.6


def test_rows_frames_and_names() -> None:
    pandas = pytest.importorskip("pandas")
    X, y = rings()
    frame = pandas.DataFrame(X, columns=list("abcde"))
    model = mipfs.AdditiveFGMClassifier("splines", M=2, C=10.0, forced_out=["b"], scaling="norm").fit(
        frame, y == "inner"
    )
    assert not model.support_[1]
    assert set(model.result_.selected) <= set("acde")
    np.testing.assert_array_equal(model.predict(frame), model.result_.predict(frame).astype(bool))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"map": "hkk"}, "map = 'hkk' is unknown"),
        ({"map_options": {"knots": 3}}, "no option 'knots'"),
        ({"keep": "some"}, "keep = 'some' is unknown"),
        ({"map_options": {"shift": False}}, "Negative values in data"),
    ],
)
def test_bad_parameters_are_refused(options: dict[str, object], said: str) -> None:
    X, y = rings()
    with pytest.raises(ValueError, match=said):
        mipfs.AdditiveFGMClassifier(**options).fit(X - 0.5, y == "inner")  # type: ignore[arg-type]


@pytest.mark.slow
def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    X, y = rings(n=60)
    path = tmp_path / "rings.csv"
    values = [",".join(map(repr, [*row.tolist(), int(one == "inner")])) for row, one in zip(X, y, strict=True)]
    lines = ["a,b,c,d,e,label", *values]
    path.write_text("\n".join(lines), encoding="utf-8")
    out = str(tmp_path / "r.json")
    solve = ["solve", "fsp-m", str(path), "-p", "M=2", "-p", "C=10", "--quiet"]
    rows = tmp_path / "rows.lp"
    rows.write_text("min\nobj: 0 a\nst\nr: b + a <= 1\nend\n", encoding="utf-8")
    assert main([*solve, "-p", "atoms=splines", "-p", "knots=4", "--subject-to", str(rows), "--json", out]) == 0
    document = json.loads(Path(out).read_text(encoding="utf-8"))
    assert document["atoms"]["made"]["options"] == {"knots": 4, "degree": 3}
    checked = ["verify", out, str(path), "--subject-to", str(rows)]
    for command in (checked, ["predict", out, str(path)], ["evaluate", out, str(path)]):
        assert main(command) == 0
    assert "splines" in capsys.readouterr().out
    for extra, said in (
        (["-p", "atoms=spline"], "did you mean 'splines'?"),
        (["-p", "atoms=splines", "-p", "knot=4"], "did you mean 'knots'?"),
        (["-p", "atoms=splines", "--preselect", "bss:2"], "--preselect is for features of the data"),
        (["-p", "atoms=splines", "--validation", str(path)], "--validation is for features of the data"),
    ):
        assert main([*solve, *extra]) == 2
        assert said in capsys.readouterr().err
    assert main(["solve", "nmmkl", str(path), "-p", "atoms=splines", "--quiet"]) == 2
    assert "atoms= is a parameter of fsp-m, fsp-lambda, fgm, boolean, structural" in capsys.readouterr().err
    assert main(["models"]) == 0
    assert "additive-hik" in capsys.readouterr().out
