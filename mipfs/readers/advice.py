"""Advice at once for data that nobody scaled: columns a thousandfold apart make selections odd and proofs long."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from mipfs.errors import DataWarning
from mipfs.plumbing.arrays import Array, Integers

NORM_RATIO = 1e3
"""Ratio of the largest norm of a column to the smallest from which on scaling is advised."""


def advise_scale(X: Any, names: Sequence[str], path: Path) -> None:
    """Warn where columns are of very different sizes.

    Of a sparse matrix the sizes of the non-zeros must be apart too: that a word is rare is no matter of scale.

    Warns
    -----
    DataWarning
    """
    norms, counts, ids = _safe_norms(X)
    used = np.flatnonzero(norms > 0)
    if used.size < 2:
        return
    low, high = used[np.argmin(norms[used])], used[np.argmax(norms[used])]
    sizes = norms[used] / np.sqrt(counts[used])
    if not (norms[high] >= NORM_RATIO * norms[low] and sizes.max() >= NORM_RATIO * sizes.min()):
        return
    warnings.warn(
        f"{path}: the norms of the columns are from {norms[low]:.3g} ({names[ids[low]]!r}) to {norms[high]:.3g} "
        f"({names[ids[high]]!r}), and nothing is scaled; --scale standard (scale='standard' in Python) makes them "
        "comparable, and proofs mostly shorter; --scale none says that this is meant",
        DataWarning,
        stacklevel=6,  # through `read` and what declares it
    )


def _safe_norms(X: Any) -> tuple[Array, Array, Integers]:
    """Euclidean norms (k,) of columns, how many entries they are sums of, and which columns; squares may not overflow.

    Of a sparse matrix these are the columns with entries: there may be a hundred million others.
    """
    if sparse.issparse(X):
        X = X.tocoo()
        ids, columns = np.unique(X.col, return_inverse=True)
        largest = np.zeros(ids.size)
        np.maximum.at(largest, columns, np.abs(X.data))
        counts = np.maximum(np.bincount(columns[X.data != 0], minlength=ids.size), 1)
        unit = np.where(largest > 0, largest, 1.0)
        squares = np.bincount(columns, (X.data / unit[columns]) ** 2, ids.size)
        return largest * np.sqrt(squares), counts.astype(float), ids.astype(np.int64)
    low, high = X.min(axis=0), X.max(axis=0)
    largest = np.maximum(np.abs(low), np.abs(high)).astype(float)
    norms = np.zeros(X.shape[1])
    for j in range(0, X.shape[1], COLUMNS_AT_ONCE):
        part = slice(j, j + COLUMNS_AT_ONCE)
        unit = np.where(largest[part] > 0, largest[part], 1.0)
        scaled = X[:, part] / unit
        norms[part] = largest[part] * np.sqrt(np.einsum("ij,ij->j", scaled, scaled))
    return norms, np.full(X.shape[1], float(X.shape[0])), np.arange(X.shape[1])


COLUMNS_AT_ONCE = 256
"""Columns that are looked at together."""
