"""Classifiers as ONNX graphs: onnxruntime predicts what the classifier does."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from mipfs import (
    AdditiveFGMClassifier,
    BaselineSelector,
    FGMClassifier,
    FSPClassifier,
    GroupFGMClassifier,
    MeasureClassifier,
)
from mipfs.errors import MissingExtraError, UsageError
from mipfs.estimators import onnx_export


def drawn(n_classes: int = 2, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    r = np.random.default_rng(seed)
    X = 3.0 * r.normal(size=(90, 6)) + 5.0
    score = X[:, 0] - 0.8 * X[:, 1] + 0.5 * r.normal(size=90)
    cuts = np.quantile(score, np.linspace(0, 1, n_classes + 1)[1:-1])
    return X, np.searchsorted(cuts, score)


def alike(label: np.ndarray, model: Any, X: np.ndarray) -> bool:
    """Whether labels are the model's, where no two classes have the same score up to rounding."""
    f = model.decision_function(X)
    best = np.sort(f if f.ndim == 2 else np.stack([-f, f], axis=1), axis=1)
    clear = best[:, -1] - best[:, -2] > 1e-9
    assert clear.mean() > 0.9
    return bool(np.all(label[clear] == model.predict(X)[clear]))


def run(graph: Any, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed (mipfs[onnx])")
    session = runtime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    assert [one.name for one in session.get_outputs()] == ["label", "probabilities"]
    label, second = session.run(None, {session.get_inputs()[0].name: X})
    return label, second


MODELS: dict[str, Any] = {
    "fsp": FSPClassifier(M=3, scale="standard"),
    "fsp logistic, class weights": FSPClassifier(M=3, loss="logistic", class_weight="balanced"),
    "fsp calibrated": FSPClassifier(M=2, probability=True),
    "fgm": FGMClassifier(M=2),
    "fgm calibrated": FGMClassifier(M=2, probability=True),
    "groups": GroupFGMClassifier(groups=[[0, 1], [2, 3], [4, 5]], M=1),
    "measure": MeasureClassifier("f1", M=2),
    "baseline": BaselineSelector("rfe", M=2),
}


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", MODELS)
def test_onnxruntime_predicts_the_same(name: str, n_classes: int) -> None:
    pytest.importorskip("skl2onnx", reason="skl2onnx is not installed (mipfs[onnx])")
    X, codes = drawn(n_classes)
    y = codes if name == "fgm" else np.array(["low", "middle", "top"])[codes]
    model = MODELS[name].fit(X, y)
    graph = onnx_export.to_onnx(model, X)
    label, second = run(graph, X)
    assert alike(label, model, X)
    if hasattr(model, "predict_proba"):
        np.testing.assert_allclose(second, model.predict_proba(X), rtol=1e-9, atol=1e-12)
    else:
        f = model.decision_function(X)
        np.testing.assert_allclose(second, f if f.ndim == 2 else np.stack([-f, f], axis=1), rtol=1e-9, atol=1e-9)
    small = X.astype(np.float32)  # another type of input, and the same arithmetic
    label, _ = run(onnx_export.to_onnx(model, small), small)
    assert alike(label, model, small)


def test_a_pipeline_that_ends_in_one() -> None:
    pytest.importorskip("skl2onnx", reason="skl2onnx is not installed (mipfs[onnx])")
    X, y = drawn()
    model = make_pipeline(StandardScaler(), FSPClassifier(M=2)).fit(X, y)
    label, second = run(onnx_export.to_onnx(model, X), X)
    assert label.tolist() == model.predict(X).tolist()
    np.testing.assert_allclose(second[:, 1], model.decision_function(X), rtol=1e-9, atol=1e-9)


def test_what_has_no_such_graph_is_refused_in_one_line() -> None:
    pytest.importorskip("skl2onnx", reason="skl2onnx is not installed (mipfs[onnx])")
    X, y = drawn()
    words = pd.DataFrame({"a": X[:, 0], "kind": np.where(X[:, 1] > 5, "x", "z")})
    odd = FSPClassifier(M=1).fit(X, y)
    odd.classes_ = np.array([0.5, 1.5])
    isotonic = FSPClassifier(M=1, probability=True).fit(X, y)
    isotonic._calibrations = [{"method": "isotonic"}]
    for model, message in (
        (LogisticRegression().fit(X, y), "LogisticRegression has no ONNX graph here"),
        (AdditiveFGMClassifier(M=1).fit(X, y), "AdditiveFGMClassifier has no ONNX graph here"),
        (FSPClassifier(M=1), "is not fitted"),
        (FSPClassifier(M=1).fit(words, y), "columns of words"),
        (odd, "neither texts nor whole numbers"),
        (isotonic, "isotonic calibration"),
        (3, "int has no ONNX graph"),
    ):
        with pytest.raises(UsageError, match=message) as raised:
            onnx_export.to_onnx(model, X)
        assert "\n" not in str(raised.value)


def test_without_skl2onnx_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "skl2onnx", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'mipfs\[onnx\]'"):
        onnx_export.register()


def test_a_frame_whose_columns_a_pipeline_chooses() -> None:
    """Each column is an input by its name, as skl2onnx has it."""
    pytest.importorskip("skl2onnx", reason="skl2onnx is not installed (mipfs[onnx])")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed (mipfs[onnx])")
    r = np.random.default_rng(0)
    frame = pd.DataFrame({"x": r.normal(size=120), "city": r.choice(["a", "b", "c"], 120)})
    y = np.where(frame.x + (frame.city == "a") > 0.5, 1, 0)
    coded = ColumnTransformer(
        [("number", StandardScaler(), ["x"]), ("word", OneHotEncoder(sparse_output=False), ["city"])]
    )
    model = make_pipeline(coded, FSPClassifier(M=2, C=1.0)).fit(frame, y)
    graph = onnx_export.to_onnx(model, frame)
    session = runtime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    label, scores = session.run(None, {name: frame[[name]].to_numpy() for name in frame})
    assert label.tolist() == model.predict(frame).tolist()
    np.testing.assert_allclose(scores[:, 1], model.decision_function(frame), atol=1e-5)
