"""Cross-validation folds of an instance: stratified, seeded, each filled in and scaled by its own training part."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.problem import Problem
from mipfs.result.interactions import functions_of, made_of
from mipfs.result.result import Result
from mipfs.run.validation import error_on


@dataclass(frozen=True, eq=False)
class Fold:
    """One fold.

    Attributes
    ----------
    train : Instance
        Scaled anew, as the whole data was: nothing of the test part is in it.
    X : (m, p) test rows, on the scale that `train` takes for the user's
    y : (m,) ndarray of {-1.0, +1.0}
    rows : (m,) positions of the test rows in the whole data
    shift, scale : (p,) of the whole data: the user's value is that of `X` times scale, plus shift
    """

    train: Instance
    X: Any
    y: npt.NDArray[np.float64]
    rows: npt.NDArray[np.int64]
    shift: npt.NDArray[np.float64]
    scale: npt.NDArray[np.float64]

    def error(self, result: Result, problem: Problem) -> float:
        """The error of a result's classifier on the test rows, as validation counts it (`run.validation`)."""
        return error_on(problem, self.y, result.decision_function(self.X))

    def classifier(self, result: Result) -> dict[str, Any] | None:
        """Weights and intercept of a result on the user's scale; None where it takes more than these.

        So it is of functions and products of features, whose columns are made.
        """
        if made_of(result) is not None or functions_of(result) is not None:
            return None
        weights = {name: w / float(self.scale[self.train.index[name]]) for name, w in result.weights.items()}
        moved = math.fsum(w * float(self.shift[self.train.index[name]]) for name, w in weights.items())
        return {"weights": weights, "intercept": result.intercept - moved}


def stratified(data: Instance, k: int, seed: int) -> list[Fold]:
    """`k` folds with both classes in proportion, each row in the test part of one of them.

    Parameters
    ----------
    data : Instance
    k : int, from 2 to the size of the smaller class
    seed : int

    Raises
    ------
    UsageError
        `k` out of its range.
    """
    return [fold(data, k, seed, number) for number in range(check_folds(data, k))]


def fold(data: Instance, k: int, seed: int, number: int) -> Fold:
    """The fold `number` in 0 … k − 1 of those of `stratified`, without the others."""
    check_folds(data, k)
    train, test = _splits(data, k, seed)[number]
    X = data.refilled(train).block().values[test]  # missing values are what the training part says
    shift = np.where(data.center == 0.0, data.shift, 0.0)  # nothing was taken off what is centred implicitly
    return Fold(replace(data.part(train), groups=data.groups), X, data.y[test], test, shift, data.scale)


def fold_of(parts: Sequence[Fold]) -> npt.NDArray[np.int32]:
    """The fold in whose test part each sample is, (n,)."""
    found = np.empty(sum(part.rows.size for part in parts), dtype=np.int32)
    for number, part in enumerate(parts):
        found[part.rows] = number
    return found


def check_folds(data: Instance, k: int) -> int:
    """The number of folds, which must be one."""
    sides = {1: int((data.y > 0).sum()), -1: int((data.y < 0).sum())}
    rare = min(sides, key=lambda side: sides[side])
    if (least := sides[rare]) < 2:
        raise UsageError(f"class {data.labels.of(rare)!s} has {least} sample; folds need 2 of each class at least")
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or not 2 <= k <= least:
        raise UsageError(f"folds = {k!r} must be an integer from 2 to {least}, the size of the smaller class")
    return int(k)


SEEDS = 2**32
"""Seeds of scikit-learn are below; larger ones are taken modulo."""


def _splits(data: Instance, k: int, seed: int) -> list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    """The rows of training and of test of every fold."""
    from sklearn.model_selection import StratifiedKFold

    folds = StratifiedKFold(int(k), shuffle=True, random_state=seed % SEEDS)
    return list(folds.split(np.zeros(data.n_samples), data.y))
