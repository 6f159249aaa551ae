"""The checks on what stands beside the matrix of an `Instance`: names, labels and weights."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.data.names import Numbered
from mipfs.errors import DataError, UsageError
from mipfs.plumbing.arrays import Array
from mipfs.plumbing.declared import show_value


def as_float(value: Any, name: str) -> float:
    """A parameter as a float; a whole number beyond floating point is a `UsageError`."""
    try:
        return float(value)
    except OverflowError:
        raise UsageError(f"{name} = {show_value(value)} is beyond floating point; give a smaller number") from None


def as_numbers(value: Any, name: str) -> Array:
    """A parameter as an array of numbers."""
    try:
        given = np.asarray(value)
        if given.dtype.kind in "biufO":
            return given.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        pass
    raise UsageError(f"{name} = {show_value(value)} must be a number, or one for each")


def refuse_masked(values: Any, what: str, path: str | None = None) -> None:
    """Refuse an array that masks values as missing: NumPy would compute with what stands beneath the mask.

    Raises
    ------
    DataError
    """
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        place = [int(one) + 1 for one in np.argwhere(np.ma.getmaskarray(values))[0]]
        where = ", ".join(f"{axis} {k}" for axis, k in zip(("row", "column"), place, strict=False))
        raise DataError(f"{what} has a masked value in {where}", "fill what is masked, or leave it out", path=path)


def as_array(X: Any, path: str | None = None) -> npt.NDArray[Any]:
    """X as an array of whatever NumPy finds in it.

    Raises
    ------
    DataError
        A value is masked, or rows differ in length.
    """
    refuse_masked(X, "X", path)
    try:
        return np.asarray(X)
    except ValueError:
        raise DataError("X has rows of different lengths", "give as many values in each", path=path) from None


def label(value: Any) -> None:
    """Refuse a label that a result could not be saved with, and read back as it was.

    Raises
    ------
    DataError
    """
    plain = value.item() if isinstance(value, np.generic) and value.dtype.kind in "biufU" else value
    if not isinstance(plain, (str, int, float)) or (isinstance(plain, float) and not math.isfinite(plain)):
        raise DataError(
            f"a label is {show_value(value)}, of type {type(value).__name__}",
            "give text, numbers or booleans, such as y.astype(str)",
        )


def any_nonzero(values: npt.NDArray[Any]) -> bool:
    """Whether some value is not zero; of one number that stands for all, which costs no memory, this one is asked."""
    repeated = values.size > 0 and all(stride == 0 for stride in values.strides)
    return bool(values.flat[0] if repeated else np.any(values))


def memory() -> int:
    """Bytes of memory that this machine has; of one that does not say it, what 64 bits can address."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 2**63


def feature_names(given: Sequence[str] | None, p: int, path: str | None) -> Sequence[str]:
    """The p unique names; x1 ... xp, which are not stored, where none or just these are given."""
    if isinstance(given, Numbered) and len(given) == p:
        return given
    if given is None or (0 < p == len(given) and given[0] == "x1" and Numbered(p) == tuple(given)):
        return Numbered(p)
    names = given if isinstance(given, Numbered) else tuple(given)
    if len(names) != p:
        raise DataError(f"{len(names)} feature names for {p} features", "give one name per feature", path=path)
    seen: set[str] = set()
    for name in names:
        if not isinstance(name, str) or not name.strip():
            raise DataError(f"{name!r} is no feature name", "give every feature a name", path=path)
        if name in seen:
            raise DataError(f"two features are called {name!r}", "give every feature its own name", path=path)
        seen.add(name)
    return names


def signs(y: npt.ArrayLike, n: int, training: bool, path: str | None) -> Array:
    """The labels as an (n,) array of -1 and +1, of both classes when `training`; otherwise NaN will do too."""
    refuse_masked(y, "y", path)
    try:
        mapped = isinstance(y, np.ndarray) and y.dtype == np.float64 and not y.flags.writeable
        found = np.asarray(y) if mapped else np.array(y, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise DataError("y holds a label that is no number", "map the labels to -1 and +1", path=path) from None
    if found.shape != (n,):
        raise DataError(f"y has shape {found.shape} for {n} samples", "give one label per sample", path=path)
    odd = np.flatnonzero((np.abs(found) != 1) & (training | ~np.isnan(found)))
    if odd.size:
        own = np.unique(found)
        if training and own.size == 2 and not np.isnan(own[1]):  # 0 and 1, say: which is +1 is the caller's word
            raise DataError(
                f"the labels are {own[0]:g} and {own[1]:g}, not -1 and +1",
                f"give numpy.where(y == {own[1]:g}, 1, -1); mipfs.read and the estimators take any two labels",
                path=path,
            )
        raise DataError(f"label {found[odd[0]]:g} in row {odd[0] + 1}", "map the labels to -1 and +1", path=path)
    if training and np.all(found == found[0]):
        raise DataError(f"one class only: every label is {found[0]:+g}", "give samples of both classes", path=path)
    return found


def sample_weights(given: npt.ArrayLike | None, n: int, path: str | None) -> Array:
    """The weights as an (n,) array of positive numbers; ones where none are given."""
    if given is None:
        return np.ones(n)
    refuse_masked(given, "sample_weight", path)
    try:
        weights = np.array(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise DataError("a sample weight is no number", "give positive numbers", path=path) from None
    if weights.shape != (n,):
        raise DataError(f"sample weights of shape {weights.shape} for {n} samples", "give one each", path=path)
    bad = np.flatnonzero(~((weights > 0) & np.isfinite(weights)))
    if bad.size:
        raise DataError(
            f"sample weight {weights[bad[0]]:g} in row {bad[0] + 1}",
            "give finite numbers above 0, or leave the sample out",
            path=path,
        )
    return weights
