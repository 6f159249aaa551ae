"""From scikit-learn's X, y and weights to the binary instances of one-versus-rest."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import validate_data

from mipfs.data.frames import is_frame
from mipfs.data.instance import Instance, Labels, Scaling
from mipfs.data.matrix import refuse_wide, too_wide
from mipfs.errors import MipfsError
from mipfs.plumbing.arrays import Array, Integers
from mipfs.plumbing.declared import arguments_of


@contextmanager
def scikit_errors() -> Iterator[None]:
    """Turn the package's own errors into the ValueError that scikit-learn's conventions ask for."""
    try:
        yield
    except MipfsError as error:
        raise ValueError(str(error)) from None


def validated(model: Any, X: Any, *args: Any, **options: Any) -> Any:
    """As scikit-learn's `validate_data`; a sparse matrix of too many columns is named, and what missing values ask for.

    Raises
    ------
    ValueError
    """
    with scikit_errors():
        refuse_wide(X)
    try:
        return validate_data(model, X, *args, **options)
    except MemoryError:
        if not sparse.issparse(X):
            raise
        raise ValueError(str(too_wide(*X.shape))) from None
    except ValueError as error:
        if "could not convert string" in str(error) and not is_frame(X):
            remedy = "columns of words are for data frames; give one (set_output(transform='pandas') of a step before)"
            raise ValueError(f"{error}: {remedy}") from None
        if "Input X contains NaN" not in str(error) or getattr(model, "impute", "") is not None:
            raise
        raise ValueError("Input X contains NaN; fill missing values in, or give impute='median'") from None


def refuse_missing_labels(y: Any) -> None:
    """Refuse labels of which some are None, or not a number among words.

    Raises
    ------
    ValueError
    """
    labels = np.asarray(y)
    is_words = labels.dtype == object and labels.ndim == 1
    gone = [i for i, one in enumerate(labels.tolist()) if one is None or one != one] if is_words else []
    if gone:
        some = "a missing value" if len(gone) == 1 else f"{len(gone)} missing values"
        raise ValueError(f"y holds {some}, the first in row {gone[0] + 1}; leave these rows out, or label them")


def keep_parameters(model: Any, given: Mapping[str, Any]) -> None:
    """Keep the arguments of a constructor, its ``locals()``, under their names: what scikit-learn asks of it."""
    for name, value in given.items():
        if name != "self":
            setattr(model, name, value)


def check_parameters(model: Any) -> None:
    """Refuse parameters of an estimator that are not of the kinds that its constructor declares.

    Raises
    ------
    UsageError
    """
    arguments_of(type(model).__init__, model.get_params(deep=False))


def sample_weights(given: Any, n: int) -> Array:
    """The sample weights as an (n,) array of finite numbers >= 0; ones where none are given.

    Raises
    ------
    ValueError
        Another shape, a negative weight or one that is not finite, or zeros only.
    """
    if given is None:
        return np.ones(n)
    weights = np.asarray(given, dtype=float)
    if weights.ndim == 0:
        weights = np.full(n, float(weights))
    if weights.shape != (n,):
        raise ValueError(f"sample_weight has shape {weights.shape} for {n} samples; give one weight per sample")
    bad = np.flatnonzero(~((weights >= 0) & np.isfinite(weights)))
    if bad.size:
        raise ValueError(f"sample_weight[{bad[0]}] is {weights[bad[0]]:g}; weights must be finite and >= 0")
    if not np.any(weights):
        raise ValueError("every sample_weight is zero; give some samples a positive weight")
    return weights


def class_weights(given: Mapping[Any, float] | str | None, classes: npt.NDArray[Any], totals: Array) -> Array:
    """The weight of every class, shape (K,).

    Parameters
    ----------
    given : mapping of class to weight, "balanced" or None
    classes : (K,)
    totals : (K,) sum of the sample weights of each class

    Notes
    -----
    "balanced" is Σ totals/(K·totals_k): scikit-learn's n/(K·n_k) with the samples counted by their weights, so that a
    weight of 2 is the same as a sample that stands there twice.
    """
    if given is None:
        return np.ones(classes.size)
    if isinstance(given, str) and given == "balanced":
        return cast(Array, totals.sum() / (classes.size * totals))
    weights = np.asarray(compute_class_weight(given, classes=classes, y=classes), dtype=float)
    bad = np.flatnonzero(~((weights > 0) & np.isfinite(weights)))
    if bad.size:
        found = f"class_weight of class {_show_label(classes[bad[0]])} is {weights[bad[0]]:g}"
        raise ValueError(f"{found}; it must be finite and > 0")
    return weights


def binary_instances(
    X: Any,
    codes: Integers,
    classes: npt.NDArray[Any],
    *,
    scale: Scaling,
    sample_weight: Any,
    class_weight: Mapping[Any, float] | str | None,
    feature_names: Sequence[str] | None,
) -> list[Instance]:
    """One instance for two classes (the last one is +1), one per class against the rest for more.

    Parameters
    ----------
    X : (n, p) ndarray or CSC matrix of float64
    codes : (n,) position of every sample's class in `classes`
    classes : (K,) labels
    scale : {"none", "standard", "unit"}
    sample_weight : (n,) array-like >= 0, or None
        Samples of weight 0 are left out.
    class_weight : mapping, "balanced" or None
        Multiplies the weight of every sample of the class, in every binary problem.
    feature_names : sequence of p str, or None

    Raises
    ------
    ValueError
        Fewer than two classes, a class without a sample of positive weight, or bad weights.
    DataError, UsageError
        See `Instance.from_arrays`.
    """
    if classes.size < 2:
        raise ValueError(f"y holds one class only, {_show_label(classes[0])}; give samples of at least two classes")
    weights = sample_weights(sample_weight, codes.size)
    totals = np.bincount(codes, weights, classes.size).astype(float)
    empty = np.flatnonzero(totals == 0)
    if empty.size:
        found = f"class {_show_label(classes[empty[0]])} has no sample of positive weight"
        raise ValueError(f"{found}; leave its samples out")
    counts, weights = weights, weights * class_weights(class_weight, classes, totals)[codes]
    if not np.all(weights):
        kept = np.flatnonzero(weights)
        X, codes, weights, counts = X[kept], codes[kept], weights[kept], counts[kept]

    def signs(k: int) -> Array:
        return np.where(codes == k, 1.0, -1.0)

    if classes.size == 2:
        pairs = [Labels(classes[0], classes[1])]
        positive = [1]
    else:
        pairs = [Labels(f"not {label}", label) for label in classes]
        positive = list(range(classes.size))
    # One validation and one scaling serve all: the instances share the matrix.
    about: dict[str, Any] = {"feature_names": feature_names, "scale": scale, "sample_weight": weights, "counts": counts}
    first = Instance.from_arrays(X, signs(positive[0]), labels=pairs[0], **about)
    others = zip(positive[1:], pairs[1:], strict=True)
    return [first, *(dataclasses.replace(first, y=signs(k), labels=labels) for k, labels in others)]


def _show_label(label: Any) -> str:
    """A class in a message: 1 and 'yes' rather than np.int64(1)."""
    return repr(label.item() if isinstance(label, np.generic) else label)
