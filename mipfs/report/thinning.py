"""Thinning a long trace without changing its picture."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mipfs.plumbing.arrays import Array


def visible_samples(x: Array, y: Array, columns: int) -> npt.NDArray[np.int64]:
    """The samples of a step function that its picture needs.

    The axis is cut into columns, narrower than a pixel. Of the samples of a column at which the value changes the
    first, the last, the least and the largest are kept, so that the curve enters and leaves it where it did and covers
    in it what it covered. A monotone step function keeps two.

    Parameters
    ----------
    x : (m,) ndarray, ascending
    y : (m,) ndarray
        Values, each in force until the next sample; not finite where there is none.
    columns : int >= 1

    Returns
    -------
    (k,) ndarray of int, ascending, k <= 6 columns + 2
        With the first and the last sample.
    """
    m = x.size
    if m == 0:
        return np.empty(0, dtype=np.int64)
    known = np.where(np.isfinite(y), y, np.inf)
    changed = np.flatnonzero(np.r_[True, known[1:] != known[:-1]])
    with np.errstate(over="ignore", invalid="ignore"):
        share = np.nan_to_num((x[changed] - x[0]) / max(float(x[-1] - x[0]), 1e-300))
    column = (np.clip(share, 0.0, 1.0) * columns).astype(np.int64).clip(max=columns - 1)
    kind = 2 * column + np.isinf(known[changed])  # where there is no value is no largest one
    order = np.lexsort((known[changed], kind))
    ends = np.concatenate([_run_ends(column), order[_run_ends(kind[order])]])
    return np.unique(np.concatenate([[0, m - 1], changed[ends]]))


def _run_ends(groups: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The places where a run of equal numbers begins or ends."""
    turns = groups[1:] != groups[:-1]
    return np.flatnonzero(np.r_[True, turns] | np.r_[turns, True])
