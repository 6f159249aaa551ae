"""The B features of largest score without reading every column (Step 1 of `kelley` at millions of features)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from mipfs.atoms import parts
from mipfs.atoms.features import Features
from mipfs.data.blocked import Blocked, MemoryPart, Rescaled
from mipfs.kernels.bound import U
from mipfs.plumbing.arrays import Array, Integers


class TopFeatures:
    """Finds the best features again and again for changing v, part after part of the matrix (`mipfs.atoms.parts`).

    Parameters
    ----------
    features : Features
        Data in memory is one part, data in blocks has its own. Of dense or centred data every column is read.
    search : ColumnSearch, optional
        Over the same columns, where others than this process hold them.
    """

    def __init__(self, features: Features, search: parts.ColumnSearch | None = None) -> None:
        self.features = features
        self._search = search or search_of(features)
        if self._search is None:
            center = np.abs(features.data.center) * features.scale
            self.largest_norm: float | None = float(np.max(features.scale * features.norms, initial=0.0))
            self.largest_center = float(np.max(center, initial=0.0))
        else:
            self.largest_norm, self.largest_center = self._search.norm, self._search.center

    def best(self, v: Array, B: int, must_stop: Callable[[], bool] = bool) -> tuple[Integers, Array]:
        """At most B features of largest positive score, and their |λω|; of equal ones the lowest id first."""
        if self._search is None:
            scores = self.features.scores(v)
            ids = parts.largest(scores, B)
            return ids, np.sqrt(scores[ids])
        found = self._search.best(v, B)
        return found.ids, np.sqrt(found.keys) if self._search.squared else found.keys

    def radius(self, v: Array) -> float:
        """A bound on |computed − exact| of every |λω|."""
        gamma = (v.size + 4) * U
        assert self.largest_norm is not None
        norms = self.largest_norm * float(np.linalg.norm(v))
        if self.largest_center > 0.0:
            norms += self.largest_center * float(np.abs(v).sum())
        return 2.0 * gamma * norms


def search_of(features: Features) -> parts.ColumnSearch | None:
    """The search over the parts of the data; None for columns that are made, or dense ones that stand row by row."""
    X = features.data.X
    if isinstance(X, Blocked):
        heads = max(parts.LEVEL_COLUMNS, parts.KEPT_COLUMNS // len(X.parts))
        return parts.LocalParts([scores_of(features, part, heads) for part in range(len(X.parts))])
    if not (sparse.issparse(X) or (isinstance(X, np.ndarray) and X.flags.f_contiguous)):
        return None
    center = features.data.center if np.any(features.data.center * features.scale) else None
    return parts.LocalParts([parts.Scores(MemoryPart(0, X), features.scale, None, center, parts.KEPT_COLUMNS)])


def scores_of(features: Features, number: int, heads: int) -> parts.Scores:
    """What scores one part of data in blocks."""
    return parts.Scores(*told_of(features, number, heads))


def told_of(features: Features, number: int, heads: int) -> tuple[Any, ...]:
    """What it is made of: nothing but the part, so it may be made where that lies."""
    X = features.data.X
    part = X.parts[number] if X.is_sparse or X.scaling == "none" else Rescaled(X.parts[number], X.scaling, X.weights)
    at = slice(part.start, part.stop)
    centred = X.is_sparse and X.scaling == "standard" and bool(np.any(features.data.shift))
    # Of the values as they lie there, which `radius` covers: 3u(|x| + |shift|)/scale an entry (docs/proof.md).
    center = features.data.shift[at] / features.data.scale[at] if centred else None
    return part, features.scale[at], X.divisor(part), center, heads
