"""Cross-validation folds of an instance, each filled in and scaled by its own training part.

They are stratified and seeded; of samples that belong together (`mipfs.data.split`) all are in the same test part; or
they are those that a splitter of scikit-learn, or a list of pairs, gives.
"""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.data.instance import Instance, SelectDefaults
from mipfs.data.split import Pair, Split
from mipfs.errors import UsageError
from mipfs.measures.judged import OF_BOTH
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

    def error(self, result: Result, problem: Problem, by: str | None = None) -> float:
        """The error of a result's classifier on the test rows, as validation counts it (`run.validation`)."""
        return error_on(problem, self.y, result.decision_function(self.X), by)

    def classifier(self, result: Result) -> dict[str, Any] | None:
        """Weights and intercept of a result on the user's scale; None where it takes more than these.

        So it is of functions and products of features, whose columns are made.
        """
        if made_of(result) is not None or functions_of(result) is not None:
            return None
        weights = {name: w / float(self.scale[self.train.index[name]]) for name, w in result.weights.items()}
        moved = math.fsum(w * float(self.shift[self.train.index[name]]) for name, w in weights.items())
        return {"weights": weights, "intercept": result.intercept - moved}


def settle_folds(data: Instance, folds: Any) -> tuple[Instance, int]:
    """The data with the folds that are asked for, and how many these are.

    Parameters
    ----------
    data : Instance
    folds : int, splitter of scikit-learn, or iterable of (training, test)
        Rows as positions or masks. A splitter is told which samples belong together, where the data says it; None takes
        a fold for each of those.

    Raises
    ------
    UsageError
        A number out of its range, or parts that are none.
    """
    if folds is None and data.split is not None:
        folds = data.split.count
    if isinstance(folds, (int, np.integer, str)) or folds is None:
        return data, check_folds(data, folds)
    of = None if data.split is None else data.split.of
    words, splitter = "given parts", None
    if callable(getattr(folds, "split", None)):
        words, splitter = " ".join(str(folds).split()), folds
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # that it takes no groups
                folds = list(folds.split(np.zeros((data.n_samples, 1)), data.labels.of(data.y), of))
        except ValueError as error:
            raise UsageError(f"folds: {words} refuses these samples: {error}") from None
    if not isinstance(folds, Iterable) or getattr(folds, "ndim", 1) == 0:
        raise UsageError(f"folds = {folds!r}: give a number, a splitter of scikit-learn, or pairs (training, test)")
    pairs = [_checked_pair(one, data.n_samples, number) for number, one in enumerate(folds, 1)]
    if len(pairs) < 2:
        raise UsageError(f"folds: {words}: {len(pairs)} in number; give two at least")
    found = replace(data, split=Split(words, of, pairs, splitter))
    return found, check_folds(found, len(pairs))


def _require_memory(data: Instance, what: str) -> None:
    """Refuse parts of the samples of a column store, which is read by columns."""
    if data.is_in_files:
        raise UsageError(
            f"{what} for columns that lie in memory, and those of a column store lie in files; give the file that the "
            "store was made of"
        )


def require_columns(problem: Problem, what: str, remedy: str) -> None:
    """Refuse parts of the samples of a problem whose atoms are made of all its samples, or whose columns lie in files.

    Parameters
    ----------
    problem : Problem
    what : whose parts they are, such as "folds are"
    remedy : what to do

    Raises
    ------
    UsageError
    """
    _require_memory(problem.data, what)
    if problem.atoms.raw is not problem.data:
        made = "for atoms that are columns of the data, and these are made of all its samples"
        raise UsageError(f"{what} {made}; {remedy}")


def inner_folds(train: Instance, splitter: Any, k: int) -> tuple[Instance, int]:
    """A training part with the folds inside it, and how many: by the splitter of the outer ones, if that has a number.

    Parameters
    ----------
    train : Instance
    splitter : of `Split`, or None: `k` folds as `stratify` makes them
    k : int >= 2
    """
    if not isinstance(getattr(splitter, "n_splits", None), (int, np.integer)):
        return train, k
    inside = copy.copy(splitter)
    inside.n_splits = int(k)
    return settle_folds(train, inside)


def stratify(data: Instance, k: int, seed: int) -> list[Fold]:
    """`k` folds with both classes in proportion, each row in the test part of one of them; or those of `settle_folds`.

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
    check_folds(data, k)
    return [_make_fold(data, pair) for pair in _checked_splits(data, k, seed)]


def fold(data: Instance, k: int, seed: int, number: int) -> Fold:
    """The fold `number` in 0 … k − 1 of those of `stratify`, without the others."""
    check_folds(data, k)
    return _make_fold(data, _checked_splits(data, k, seed)[number])


def _make_fold(data: Instance, pair: Pair) -> Fold:
    train, test = pair
    X = data.refill(train).block().values[test]  # missing values are what the training part says
    shift = np.where(data.center == 0.0, data.shift, 0.0)  # nothing was taken off what is centred implicitly
    counted = SelectDefaults(words=data.select.words)
    part = replace(data.part(train), groups=data.groups, words=data.words, select=counted)
    return Fold(part, X, data.y[test], test, shift, data.scale)


TRAINED, TESTED, NEITHER = 0, 1, 2
"""Where a sample is in a fold."""


def fold_of(parts: Sequence[Fold], n: int) -> npt.NDArray[Any]:
    """The fold in whose test part each sample is, (n,) int32, where this says all.

    Otherwise, as where a sample is in several test parts or in none, (k, n) int8 with `TRAINED`, `TESTED` or `NEITHER`.
    """
    where = np.full((len(parts), n), NEITHER, dtype=np.int8)
    for number, part in enumerate(parts):
        assert part.train.drawn is not None
        where[number, part.train.drawn[0]] = TRAINED
        where[number, part.rows] = TESTED
    tested = where == TESTED
    if np.all(tested.sum(axis=0) == 1) and not np.any(where == NEITHER):
        return np.asarray(tested.argmax(axis=0), dtype=np.int32)
    return where


def parts_in(data: Instance, where: npt.NDArray[Any]) -> list[Fold]:
    """The folds that `fold_of` says."""
    if where.ndim == 1:
        where = (where == np.arange(where.max() + 1)[:, None]).astype(np.int8)
    return [_make_fold(data, (np.flatnonzero(one == TRAINED), np.flatnonzero(one == TESTED))) for one in where]


def check_folds(data: Instance, k: Any) -> int:
    """The number of folds, which must be one.

    Raises
    ------
    UsageError
        Another number; the class, or the column, that has too few samples or values for it is named.
    """
    _require_memory(data, "folds are")
    split = data.split
    if split is not None and split.pairs:
        if k != len(split.pairs) or k < 2:
            raise UsageError(f"folds: {split.by} makes {len(split.pairs)} folds; give two at least")
        return int(k)
    sides = {1: int((data.y > 0).sum()), -1: int((data.y < 0).sum())}
    rare = min(sides, key=lambda side: sides[side])
    if (least := sides[rare]) < 2:
        raise UsageError(f"class {data.labels.of(rare)!s} has {least} sample; folds need 2 of each class at least")
    most, why = least, f"the size of the smaller class, {data.labels.of(rare)!s}"
    if split is not None:
        most, why = split.count, f"of {split.by!r} there are as many different values, none of which is taken apart"
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or not 2 <= k <= most:
        raise UsageError(f"folds = {k!r} must be an integer from 2 to {most}: {why}")
    return int(k)


def check_both(parts: Sequence[Fold], by: str | None) -> None:
    """Refuse test parts of one class where `by` needs both.

    Raises
    ------
    UsageError
    """
    for number, part in enumerate(parts, 1) if by in OF_BOTH else ():
        for side, seen in ((1, part.y > 0), (-1, part.y < 0)):
            if not seen.any():
                raise UsageError(
                    f"by = {by!r} needs both classes, and fold {number} of {len(parts)} tests on {part.y.size} "
                    f"samples, none of class {part.train.labels.of(side)!s}; give fewer folds, or by = 'error'"
                )


def _checked_splits(data: Instance, k: int, seed: int) -> Sequence[Pair]:
    """The folds, none of which trains on one class alone, or tests on nothing."""
    pairs = _make_splits(data, k, seed)
    for number, (train, test) in enumerate(pairs, 1) if data.split is not None else ():
        if not test.size:
            raise UsageError(f"fold {number} of {len(pairs)} tests on no sample; give fewer folds")
        for side in (1, -1):
            all_, seen = (int((np.sign(y) == side).sum()) for y in (data.y, data.y[train]))
            if not seen:
                raise UsageError(
                    f"fold {number} of {len(pairs)} trains on no sample of class {data.labels.of(side)!s}, of which "
                    f"there are {all_}; give fewer folds, or others"
                )
    return pairs


def _checked_pair(given: Any, n: int, number: int) -> Pair:
    """A training and a test part as positions."""
    try:
        train, test = (np.asarray(one) for one in given)
    except (TypeError, ValueError):
        raise UsageError(f"folds: fold {number} is no pair (training, test) of samples") from None
    found = [np.flatnonzero(one) if one.dtype == bool and one.shape == (n,) else one for one in (train, test)]
    for one in found:
        whole = one.ndim == 1 and one.size and one.dtype.kind in "iu"
        if not whole or one.min() < 0 or one.max() >= n or np.unique(one).size < one.size:
            raise UsageError(
                f"folds: fold {number} has a part that is no list of different samples from 0 to {n - 1}, or is empty"
            )
    if np.isin(found[0], found[1]).any():
        raise UsageError(f"folds: fold {number} tests on a sample that it is trained on")
    return np.sort(found[0]).astype(np.int64), np.sort(found[1]).astype(np.int64)


SEEDS = 2**32
"""Seeds of scikit-learn are below; larger ones are taken modulo."""


def _make_splits(data: Instance, k: int, seed: int) -> Sequence[Pair]:
    """The rows of training and of test of every fold."""
    from sklearn.model_selection import LeaveOneGroupOut, StratifiedGroupKFold, StratifiedKFold

    split, none = data.split, np.zeros(data.n_samples)
    if split is None:
        return list(StratifiedKFold(int(k), shuffle=True, random_state=seed % SEEDS).split(none, data.y))
    if split.pairs:
        return split.pairs
    if k == split.count:
        return list(LeaveOneGroupOut().split(none, data.y, split.of))
    return list(StratifiedGroupKFold(int(k), shuffle=True, random_state=seed % SEEDS).split(none, data.y, split.of))
