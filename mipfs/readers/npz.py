"""npz: the arrays of SciPy's ``save_npz`` plus ``y``, or dense ``X`` and ``y``."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from mipfs.errors import DataError
from mipfs.instance import nearest
from mipfs.readers.files import opened
from mipfs.readers.table import Table

_OWN = ("feature_names", "bag", "sample_weight")
_SPARSE = ("format", "shape", "data", "indices", "indptr", "row", "col", "coords", "offsets", "_is_array")


def read_npz(path: Path, label: str | None = None, labelled: bool = True) -> Table:
    """Read an npz file.

    It holds a sparse matrix as `scipy.sparse.save_npz` stores it, or a dense ``X``; the labels ``y`` (another
    name by `label`); and, where they are wanted, ``feature_names``, ``bag`` and ``sample_weight``.

    Raises
    ------
    DataError
        Not an npz file, a missing or unknown array, pickled objects, shapes that disagree.
    """
    label = "y" if label is None else label
    try:
        with opened(path) as stream, np.load(stream, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
    except (ValueError, zipfile.BadZipFile, TypeError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"not a readable npz file: {reason}", "write plain arrays with savez", path=path) from None
    known = (label, "X", *_OWN) if "X" in arrays else (label, *_OWN, *_SPARSE)
    for name in arrays:
        if name not in known:
            message = f"the array {name!r} means nothing here"
            raise DataError(message, f"leave it out ({nearest(name, known)})", path=path)
    X = arrays["X"] if "X" in arrays else _sparse(path, arrays)
    if X.ndim != 2:
        raise DataError(f"X has {X.ndim} dimensions", "give a matrix of samples by features", path=path)
    n, p = X.shape
    if label not in arrays and labelled:
        raise DataError(f"no array is called {label!r}", "store the labels under that name", path=path)
    for name, length in ((label, n), ("bag", n), ("sample_weight", n), ("feature_names", p)):
        if name in arrays and arrays[name].shape != (length,):
            message = f"{name!r} has shape {arrays[name].shape} beside a matrix of shape {(n, p)}"
            raise DataError(message, f"give {length} entries", path=path)
    names = arrays.get("feature_names")
    return Table(
        X,
        _labels(arrays[label], label, path) if label in arrays else None,
        None if names is None else tuple(str(name) for name in names),
        bags=arrays.get("bag"),
        sample_weight=arrays.get("sample_weight"),
    )


def _sparse(path: Path, arrays: dict[str, Any]) -> Any:
    if "format" not in arrays:
        remedy = "store X, or add y to the arrays of scipy.sparse.save_npz"
        raise DataError(f"no matrix among the arrays {', '.join(map(repr, arrays)) or 'none'}", remedy, path=path)
    try:
        with opened(path) as stream:
            return sparse.load_npz(stream)
    except (ValueError, KeyError, NotImplementedError, TypeError) as error:
        raise DataError(f"the sparse matrix is damaged: {error}", "store it again", path=path) from None


def _labels(values: npt.NDArray[Any], label: str, path: Path) -> npt.NDArray[Any]:
    if values.dtype.kind in "biuf":
        numbers = values.astype(np.float64)
        bad = np.flatnonzero(~np.isfinite(numbers))
        if bad.size:
            message = f"{label!r} is {numbers[bad[0]]} in row {bad[0] + 1}"
            raise DataError(message, "give every sample a finite label", path=path)
        return numbers
    if values.dtype.kind != "U":
        raise DataError(f"{label!r} holds values of type {values.dtype}", "give numbers or strings", path=path)
    return values
