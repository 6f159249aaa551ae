"""The linear classifiers as ONNX graphs, by skl2onnx (``pip install 'mipfs[onnx]'``), to predict without Python.

    from mipfs.estimators import onnx_export

    graph = onnx_export.to_onnx(model, X[:1])           # of a classifier, or of a pipeline that ends in one
    open("model.onnx", "wb").write(graph.SerializeToString())

The graph computes f = X coef_ + intercept_ in double precision, whatever the type of its input. Its outputs are
``label`` and ``probabilities``: those of `predict_proba` where the classifier has them, otherwise the scores, of two
classes (−f, f).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline

from mipfs.errors import MissingExtraError, UsageError
from mipfs.estimators.base import LinearClassifier
from mipfs.estimators.baseline import BaselineSelector
from mipfs.estimators.fgm import FGMClassifier
from mipfs.estimators.fgm_kinds import GroupFGMClassifier
from mipfs.estimators.fsp import FSPClassifier
from mipfs.estimators.measure import MeasureClassifier
from mipfs.result.probability import SIGMOID

CLASSIFIERS = (FSPClassifier, FGMClassifier, GroupFGMClassifier, MeasureClassifier, BaselineSelector)
"""Those that skl2onnx learns to convert, which are linear in their columns."""


def register() -> None:
    """Have skl2onnx know the linear classifiers, also inside pipelines.

    Raises
    ------
    MissingExtraError
        skl2onnx is not installed.
    """
    try:
        from skl2onnx import update_registered_converter
    except ImportError:
        raise MissingExtraError("skl2onnx", "onnx", "an ONNX graph") from None
    options = {"zipmap": [True, False, "columns"], "nocl": [True, False]}
    for kind in CLASSIFIERS:
        update_registered_converter(kind, f"Mipfs{kind.__name__}", _set_output_types, _write_graph, options=options)


def to_onnx(model: Any, X: Any, **options: Any) -> Any:
    """The ONNX graph of a fitted classifier, or of a pipeline of scikit-learn that ends in one.

    Parameters
    ----------
    model : one of `CLASSIFIERS`, or Pipeline
    X : (n, p) array-like, whose type the input of the graph has; one row is enough
        Where a pipeline has a `ColumnTransformer`, the data frame that it was fitted to: each column is then an input
        of the graph, of shape (n, 1), by its name.
    **options
        Those of `skl2onnx.to_onnx`, such as ``target_opset``.

    Returns
    -------
    onnx.ModelProto
        With the outputs ``label`` and ``probabilities``, a plain (n, K) array of doubles.

    Raises
    ------
    MissingExtraError
        skl2onnx is not installed.
    UsageError
        A model that is no linear classifier, or one with columns of words or isotonic calibration.
    """
    register()
    from skl2onnx import to_onnx as convert

    last = model.steps[-1][1] if isinstance(model, Pipeline) else model
    if not isinstance(last, CLASSIFIERS):
        names = ", ".join(kind.__name__ for kind in CLASSIFIERS)
        raise UsageError(
            f"{type(last).__name__} has no ONNX graph here; it is for {names}, and pipelines that end in one"
        )
    check(last)
    rows = X[:1] if _takes_columns(model) else np.asarray(X)[:1]
    return convert(model, rows, options={id(last): {"zipmap": False}}, **options)


def _takes_columns(model: Any) -> bool:
    """Whether the graph has an input for each column: a pipeline chooses them by name."""
    return isinstance(model, Pipeline) and any(isinstance(step, ColumnTransformer) for _, step in model.steps)


def check(model: LinearClassifier) -> None:
    """Refuse a classifier whose predictions a graph of ours would not give.

    Raises
    ------
    UsageError
    """
    name = type(model).__name__
    if not hasattr(model, "classes_"):
        raise UsageError(f"{name} is not fitted; call fit first")
    if not hasattr(model, "coef_") or model.coef_.shape[1] != model.n_features_in_:
        raise UsageError(f"this {name} is not linear in the columns of X, and has no ONNX graph here")
    if model.impute is not None:
        raise UsageError("missing values have no ONNX graph here; fill them in by a step of the pipeline before")
    if model.types is not None:
        raise UsageError("text that says numbers has no ONNX graph here; make numbers of it before")
    if model._words is not None:
        raise UsageError("columns of words have no ONNX graph here; encode them by a step of the pipeline before")
    if any(one["method"] != SIGMOID for one in _calibrations_of(model)):
        raise UsageError("isotonic calibration has no ONNX graph here; give probability=False, or loss='logistic'")


def _calibrations_of(model: Any) -> list[Any]:
    return list(getattr(model, "_calibrations", None) or [])


def _class_labels(model: Any) -> npt.NDArray[Any]:
    """The labels as a graph has them: texts, or whole numbers.

    Raises
    ------
    UsageError
        Others.
    """
    classes = np.asarray(model.classes_)
    if all(isinstance(label, str) for label in classes.tolist()):
        return classes.astype(object)
    if classes.dtype.kind in "biuf" and np.all(classes == np.round(classes.astype(float))):
        return np.asarray(classes.astype(np.int64))
    raise UsageError("the labels are neither texts nor whole numbers, which is all that an ONNX graph has")


def _set_output_types(operator: Any) -> None:
    """The types of the outputs: skl2onnx calls it."""
    from skl2onnx.common.data_types import DoubleTensorType, Int64TensorType, StringTensorType

    model = operator.raw_operator
    classes = _class_labels(model)
    rows = operator.inputs[0].get_first_dimension()
    kind = StringTensorType if classes.dtype == object else Int64TensorType
    operator.outputs[0].type = kind([rows])
    operator.outputs[1].type = DoubleTensorType([rows, classes.size])


def _write_graph(scope: Any, operator: Any, container: Any) -> None:
    """Write the graph of a classifier: skl2onnx calls it."""
    from onnx import TensorProto
    from skl2onnx.algebra import onnx_ops as ops

    model = operator.raw_operator
    check(model)
    classes, given = _class_labels(model), {"op_version": container.target_opset}
    label, second = operator.outputs
    as_double = ops.OnnxCast(operator.inputs[0], to=TensorProto.DOUBLE, **given)
    product = ops.OnnxMatMul(as_double, np.asarray(model.coef_, dtype=np.float64).T, **given)
    f = ops.OnnxAdd(product, np.asarray(model.intercept_, dtype=np.float64), **given)
    if classes.size == 2:
        positive = ops.OnnxCast(ops.OnnxGreater(f, np.zeros(1), **given), to=TensorProto.INT64, **given)
        place = ops.OnnxReshape(positive, np.array([-1], dtype=np.int64), **given)
    else:
        place = ops.OnnxArgMax(f, axis=1, keepdims=0, **given)
    ops.OnnxGather(classes, place, output_names=[label], **given).add_to(scope, container)
    columns = (
        _probability_nodes(model, f, ops, given)
        if hasattr(model, "predict_proba")
        else _score_nodes(model, f, ops, given)
    )
    ops.OnnxIdentity(columns, output_names=[second], **given).add_to(scope, container)


def _score_nodes(model: Any, f: Any, ops: Any, given: Any) -> Any:
    """f, of two classes (−f, f)."""
    return f if len(model.classes_) > 2 else ops.OnnxConcat(ops.OnnxNeg(f, **given), f, axis=1, **given)


def _probability_nodes(model: Any, f: Any, ops: Any, given: Any) -> Any:
    """Those of `ProbabilityMixin.predict_proba`."""
    weights = np.asarray(model._weights, dtype=np.float64)
    calibrations = _calibrations_of(model)
    if calibrations:
        slopes, offsets = (-np.array([one[name] for one in calibrations], dtype=np.float64) for name in "ab")
        f = ops.OnnxAdd(ops.OnnxMul(f, slopes, **given), offsets, **given)
    elif weights.size == 2:
        f = ops.OnnxAdd(f, np.array([-math.log(weights[1] / weights[0])]), **given)
    found = ops.OnnxSigmoid(f, **given)
    if weights.size == 2:
        return ops.OnnxConcat(ops.OnnxSub(np.ones(1), found, **given), found, axis=1, **given)
    if not calibrations:
        found = ops.OnnxDiv(found, weights, **given)
    total = ops.OnnxReduceSum(found, np.array([1], dtype=np.int64), keepdims=1, **given)
    has_any = ops.OnnxGreater(total, np.zeros(1), **given)
    divisor = ops.OnnxWhere(has_any, total, np.ones(1), **given)
    even = np.full(weights.size, 1.0 / weights.size)
    return ops.OnnxWhere(has_any, ops.OnnxDiv(found, divisor, **given), even, **given)
