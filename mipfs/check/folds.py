"""The errors of a path, computed again from the classifiers of its folds and the rows that these did not see."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from mipfs.check.measure import RANKINGS, StatedMeasure
from mipfs.check.rounding import NEAR, Array, Document, U, number, require
from mipfs.check.several import Archive
from mipfs.data.instance import Instance

FOLDS = "folds.npz"
"""The member of the archive that says in which fold every sample is."""
FOLD, PART = "fold", "part"
"""Its array: the fold in whose test part a sample is; or, fold by fold, where every sample is."""
TRAINED, TESTED, NEITHER = 0, 1, 2
BALANCED, LOG_LOSS = "balanced-accuracy", "log-loss"
BY = ("error", BALANCED, "f1", "roc-auc", "average-precision", LOG_LOSS)
"""What the errors of folds may be of, beside the measure of a structural loss."""
TERMS = 64
"""Units of round-off of a sum of k terms beside k: what turning weights to the user's scale and back adds."""
GONE = "the errors of the folds, and what they choose: the classifiers of the folds are not in the document"

FOUND = "that the classifiers of the folds are what the problem gives there: --recompute solves the folds again"


class Folds:
    """The folds of a path.

    Attributes
    ----------
    where : (k, n) array, where each sample is in every fold; None where the archive does not say
    unchecked : tuple of str, what could not be computed again
    """

    def __init__(self, document: Document, archive: Archive, data: Instance) -> None:
        self.data = data
        self.count = document["folds"]
        content = archive.members.get(FOLDS)
        self.where = None if content is None else self._read(archive, content)
        self.by = document.get("by")
        require(self.by is None or self.by in BY, f"'by' is {self.by!r}")
        points = document["points"]
        bare = [point for point in points if point["errors"] and point.get("fold_classifiers") is None]
        self.unchecked = (*((GONE,) if bare else ()), *((FOUND,) if self.where is not None else ()))
        self._parts: dict[int, tuple[npt.NDArray[np.int64], Instance]] = {}

    def _read(self, archive: Archive, content: bytes) -> npt.NDArray[Any]:
        arrays = archive.arrays(FOLDS, content, (FOLD, PART))
        require(self.count is not None, f"{FOLDS} stands in the archive, and the path has no folds")
        require([*arrays] in ([FOLD], [PART]), f"{FOLDS} holds other arrays than '{FOLD}' or '{PART}' alone")
        n = self.data.n_samples
        if PART in arrays:
            part = arrays[PART]
            require(part.dtype == np.int8 and part.shape == (self.count, n), "'part' is not one byte for every sample")
            known = bool(np.all((part >= TRAINED) & (part <= NEITHER)))
            require(known, "'part' is not 0, 1 or 2 throughout")
            both = bool(np.all(np.any(part == TESTED, axis=1) & np.any(part == TRAINED, axis=1)))
            require(both, "a fold is trained or tested on nothing")
            return part
        fold = arrays[FOLD]
        right = fold.dtype == np.int32 and fold.shape == (n,)
        require(right, "'fold' is not one number of 32 bits for every sample")
        inside = np.array_equal(np.unique(fold), np.arange(self.count))
        require(inside, f"the samples are not in {self.count} folds, none of them empty")
        return np.asarray(fold == np.arange(self.count)[:, None], dtype=np.int8)

    def check_errors(self, point: Document, name: str) -> None:
        """Refuse a point whose errors are not those of its classifiers."""
        stated = point.get("fold_classifiers")
        if stated is None:
            return
        require(self.where is not None, f"{name}: there are classifiers of folds, and the archive has no {FOLDS}")
        params = point["result"]["params"]
        for f, (one, error) in enumerate(zip(stated, point["errors"], strict=True)):
            best, worst = self._fold_error(f, one, params, f"{name}: the classifier of fold {f}")
            right = best - NEAR * max(1.0, best) <= error <= worst + NEAR * max(1.0, worst)
            require(right, f"{name}: the error of fold {f} is {error!r}, and its classifier has {worst!r}")

    def _fold_error(
        self, f: int, stated: Mapping[str, Any], params: Mapping[str, Any], whose: str
    ) -> tuple[float, float]:
        """The error of a classifier on its fold: the least and the largest that rounding leaves open."""
        rows, data = self._fold_part(f)
        weights, b = stated["weights"], number(stated["intercept"], f"{whose}: the intercept")
        unknown = [name for name in weights if name not in data.index]
        require(not unknown, f"{whose}: the data has no feature {unknown[0] if unknown else ''!r}")
        w = np.array([number(one, f"{whose}: a weight") for one in weights.values()])
        ids = np.array([data.index[name] for name in weights], dtype=np.int64)
        values = data.block(ids).values[rows]
        values = np.asarray(values.toarray() if sparse.issparse(values) else values, dtype=float)
        shift = np.where(data.center[ids] == 0.0, data.shift[ids], 0.0)  # of the user's values x = X·scale + shift
        X = values * data.scale[ids] + shift
        scores = X @ w + b
        size = np.abs(X) @ np.abs(w) + np.abs(w) @ np.abs(data.shift[ids]) + (abs(b) if w.size else 0.0)
        off = (w.size + TERMS) * U * size
        require(bool(np.all(np.isfinite(scores + off))), f"{whose}: a value is beyond floating point")
        y = data.y[rows]
        ends = (error_of(params, y, scores + sign * y * off, self.by) for sign in (1.0, -1.0))
        return next(ends), next(ends)

    def _fold_part(self, f: int) -> tuple[npt.NDArray[np.int64], Instance]:
        """The rows of a fold, and the data with its missing values filled by what the other folds say."""
        assert self.where is not None
        if f not in self._parts:
            rows = np.flatnonzero(self.where[f] == TESTED)
            self._parts[f] = rows, self.data.refill(np.flatnonzero(self.where[f] == TRAINED))
        return self._parts[f]


def error_of(params: Mapping[str, Any], y: Array, scores: Array, by: str | None = None) -> float:
    """What `by` says at scores, or Δ of a structural loss's measure, else the share of rows on the wrong side."""
    name = by or params.get("measure")
    wrong = (scores > 0) != (y > 0)
    if name in (None, "error"):
        return float(np.count_nonzero(wrong)) / y.size
    if name == LOG_LOSS:
        return math.fsum(np.logaddexp(0.0, -y * scores).tolist()) / y.size
    both = by is None or bool(np.any(y > 0) and np.any(y < 0))
    require(both, f"a fold tests on one class, and {name!r} needs both")
    if name == BALANCED:
        return 0.5 * math.fsum(float(np.count_nonzero(wrong & one)) / np.count_nonzero(one) for one in (y > 0, y < 0))
    measure = StatedMeasure(params if by is None else {"measure": by}, y)
    if name in RANKINGS:
        return _of_ranking(name, y, scores)
    if name in ("f1", "fbeta"):
        chosen = scores > 0
    else:  # the k of the largest scores; of equal ones the first
        chosen = np.zeros(y.size, dtype=bool)
        chosen[np.argsort(-scores, kind="stable")[: measure.k]] = True
    a, b = int(np.count_nonzero(chosen & (y > 0))), int(np.count_nonzero(chosen & (y < 0)))
    return float(measure.delta(a, b))


def _of_ranking(name: str, y: Array, scores: Array) -> float:
    """1 − the area under the curve, ties a half; or 1 − the average precision."""
    up, down = np.sort(scores[y > 0]), np.sort(scores[y < 0])
    if name == "roc-auc":
        above, not_below = (np.searchsorted(up, down, side=side) for side in ("left", "right"))
        wrong = math.fsum((above + 0.5 * (not_below - above)).tolist())
        return wrong / (up.size * down.size)
    positives = up.size - np.searchsorted(up, up, side="left")
    all_above = positives + down.size - np.searchsorted(down, up, side="left")
    return 1.0 - math.fsum((positives / all_above).tolist()) / up.size
