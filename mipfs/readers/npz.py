"""npz: the arrays of SciPy's ``save_npz`` plus ``y``, or dense ``X`` and ``y``, which may stand in y.npy beside."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from mipfs.data.instance import misspelling_hint
from mipfs.errors import DataError, LabelError
from mipfs.plumbing.arrays import Arrays
from mipfs.readers.arrays import load_arrays
from mipfs.readers.beside import labels_of, read_array
from mipfs.readers.columns import Label, Table, label_among
from mipfs.readers.files import features_limit
from mipfs.readers.room import MORE

_OWN = ("feature_names", "bag", "sample_weight")
_SPARSE = ("format", "shape", "data", "indices", "indptr", "row", "col", "coords", "offsets", "_is_array")
_AGAIN = "store it again"


def read_npz(path: Path, label: Label = None, labelled: bool = True) -> Table:
    """Read an npz file.

    It holds a sparse matrix as `scipy.sparse.save_npz` stores it, or a dense ``X``; the labels ``y`` (another
    name by `label`); and, where they are wanted, ``feature_names``, ``bag`` and ``sample_weight``. Labels that it does
    not hold are those of ``y.npy`` (``LABEL.npy``) in the same folder.

    Raises
    ------
    DataError
        Not an npz file, a missing or unknown array, pickled objects, shapes that disagree, indices out of range.
    """
    arrays = load_arrays(path)
    label = label_among("y" if label is None else label, tuple(arrays))
    beside = labels_of(path, label)
    if label not in arrays and os.path.isfile(beside):
        arrays[label], source = read_array(beside), beside
    else:
        source = path
    known = (label, "X", *_OWN) if "X" in arrays else (label, *_OWN, *_SPARSE)
    for name in arrays:
        if name not in known:
            hint = misspelling_hint(name, known)
            remedy = f"leave it out ({hint})"
            if not hint.startswith("did you mean"):
                remedy = (
                    "an npz file holds X, or what scipy.sparse.save_npz writes, and the labels as y or under the name "
                    "that --label gives: numpy.savez(FILE, X=X, y=y)"
                )
            raise DataError(f"the array {name!r} means nothing here", remedy, path=path)
    if "X" not in arrays and "format" not in arrays:
        raise DataError(
            f"no matrix among the arrays {', '.join(map(repr, arrays)) or 'none'}",
            "store X, or add y to the arrays of scipy.sparse.save_npz",
            path=path,
        )
    shape = arrays["X"].shape if "X" in arrays else _checked_shape(arrays, path)
    if len(shape) != 2:
        raise DataError(f"X has {len(shape)} dimensions", "give a matrix of samples by features", path=path)
    n, p = shape
    if label not in arrays and labelled:
        remedy = f"say by --label which of these holds the labels: {', '.join(map(repr, arrays))}"
        raise LabelError(
            f"no array is called {label!r}, and no {beside.name} stands beside it",
            f"{remedy}; or save them there",
            path=path,
        )
    for name, length in ((label, n), ("bag", n), ("sample_weight", n), ("feature_names", p)):
        if name in arrays and arrays[name].shape != (length,):
            raise DataError(
                f"{name!r} has shape {arrays[name].shape} beside a matrix of shape {(n, p)}",
                f"give {length} entries",
                path=source if name == label else path,
            )
    names = arrays.get("feature_names")
    return Table(
        arrays["X"] if "X" in arrays else _checked_csc(arrays, n, p, path),
        _checked_labels(arrays[label], label, source) if label in arrays else None,
        None if names is None else tuple(_checked_texts(names, "feature_names", path)),
        bags=arrays.get("bag"),
        sample_weight=arrays.get("sample_weight"),
        label=label if label in arrays else None,
    )


def _checked_shape(arrays: Arrays, path: Path) -> tuple[int, ...]:
    """The shape of the sparse matrix, before anything is made of it."""
    shape = arrays.get("shape")
    if shape is None or shape.dtype.kind not in "iu" or shape.ndim != 1 or np.any(shape < 0):
        raise DataError("the sparse matrix is damaged: it has no shape", _AGAIN, path=path)
    limit = features_limit(path)
    for size, what in zip(shape.tolist(), ("samples", "features"), strict=False):
        if size > limit:
            raise DataError(
                f"the sparse matrix has {size} {what}, and at most {limit} are read of so small a file",
                f"correct its shape, {MORE}",
                path=path,
            )
    return tuple(shape.tolist())


def _checked_csc(arrays: Arrays, n: int, p: int, path: Path) -> Any:
    """The matrix in CSC, every index checked: SciPy takes them as they are, and its kernels write where they lead."""
    try:
        return _build_matrix(arrays, n, p).tocsc()
    except (ValueError, KeyError, TypeError, IndexError) as error:
        reason = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise DataError(f"the sparse matrix is damaged: {reason}", _AGAIN, path=path) from None


def _build_matrix(arrays: Arrays, n: int, p: int) -> Any:
    kind = arrays["format"].item()
    kind = kind.decode("ascii") if isinstance(kind, bytes) else kind
    data = arrays["data"]
    if kind in ("csr", "csc"):
        outer, inner = (n, p) if kind == "csr" else (p, n)
        parts = (data, *_check_compressed(arrays, outer, inner, data.shape))
        return (sparse.csr_array if kind == "csr" else sparse.csc_array)(parts, shape=(n, p))
    if kind == "bsr":
        if data.ndim != 3 or 0 in data.shape[1:] or n % data.shape[1] or p % data.shape[2]:
            raise ValueError(f"blocks of shape {data.shape[1:]} do not make up a matrix of shape {(n, p)}")
        parts = (data, *_check_compressed(arrays, n // data.shape[1], p // data.shape[2], data.shape[:1]))
        return sparse.bsr_array(parts, shape=(n, p))
    if kind == "coo":
        row, col = arrays["coords"] if "coords" in arrays else (arrays["row"], arrays["col"])
        pair = (_checked_indices(row, n, data.shape, "row"), _checked_indices(col, p, data.shape, "col"))
        return sparse.coo_array((data, pair), shape=(n, p))
    if kind == "dia":
        offsets = _checked_indices(arrays["offsets"].astype(np.int64) + n, n + p, data.shape[:1], "offsets") - n
        if data.ndim != 2 or np.unique(offsets).size < offsets.size:
            raise ValueError("its diagonals are no matrix, or two of them are one")
        return sparse.dia_array((data[:, :p], offsets), shape=(n, p)).tocoo()
    raise ValueError(f"no format is called {kind!r}")


def _check_compressed(
    arrays: Arrays, outer: int, inner: int, stored: tuple[int, ...]
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """indices and indptr of `outer` rows (or columns) of `inner` entries."""
    indptr, indices = arrays["indptr"], _checked_indices(arrays["indices"], inner, stored, "indices")
    if indptr.dtype.kind not in "iu" or indptr.shape != (outer + 1,):
        raise ValueError(f"indptr has shape {indptr.shape} and type {indptr.dtype}; {outer + 1} integers are needed")
    if indptr[0] != 0 or np.any(indptr[1:] < indptr[:-1]) or indptr[-1] > indices.size:
        raise ValueError(f"indptr does not rise from 0 to at most {indices.size}, the number of entries")
    return indices, indptr


def _checked_indices(found: npt.NDArray[Any], size: int, stored: tuple[int, ...], name: str) -> npt.NDArray[Any]:
    """Integers from 0 to `size` - 1, one for every stored entry."""
    if found.dtype.kind not in "iu" or found.shape != stored or len(stored) != 1:
        raise ValueError(f"{name} has shape {found.shape} and type {found.dtype} beside data of shape {stored}")
    if found.size and not (found.min() >= 0 and found.max() < size):
        worst = found[np.flatnonzero((found < 0) | (found >= size))[0]]
        raise ValueError(f"{name} holds {worst}, which is not from 0 to {size - 1}")
    return found


def _checked_labels(values: npt.NDArray[Any], label: str, path: Path) -> npt.NDArray[Any]:
    if values.dtype.kind in "biuf":
        numbers = values.astype(np.float64)
        bad = np.flatnonzero(~np.isfinite(numbers))
        if bad.size:
            raise DataError(
                f"{label!r} is {numbers[bad[0]]} in row {bad[0] + 1}", "give every sample a finite label", path=path
            )
        return numbers
    if values.dtype.kind != "U":
        raise DataError(f"{label!r} holds values of type {values.dtype}", "give numbers or strings", path=path)
    _checked_texts(values, label, path)
    return values


def _checked_texts(values: npt.NDArray[Any], name: str, path: Path) -> list[str]:
    """The strings of an array, whose bytes may be none."""
    try:
        if values.dtype.kind == "U":
            _check_characters(values)
        texts = [str(value) for value in values]
        "".join(texts).encode()
    except (ValueError, SystemError):
        raise DataError(f"{name!r} holds a character that is none", "write its strings again", path=path) from None
    return texts


def _check_characters(values: npt.NDArray[Any]) -> None:
    """Refuse numbers that no character has: NumPy makes a string of them that fails wherever it is used."""
    order = values.dtype.byteorder.replace("|", "=")
    numbers = np.frombuffer(values.tobytes(), dtype=f"{order}u4")
    if numbers.size and numbers.max() > sys.maxunicode:
        raise ValueError("no character")
