"""The validation stop of Aytug 2015, section 3.4: watch the error of every classifier on other data.

The error is the share of wrong labels, or Δ of the measure of a structural loss (`error_on`).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mipfs.data.instance import Instance
from mipfs.measures import value
from mipfs.measures.judged import error_by
from mipfs.plumbing.arrays import Array
from mipfs.problem import Problem
from mipfs.result.prediction import column_of, scores_on, weights_by_name
from mipfs.result.result import StopReason
from mipfs.run.run import Run


def error_on(problem: Problem, y: Array, scores: Array, by: str | None = None) -> float:
    """The error of a classifier on other data: Δ of a structural loss's measure, else the share of wrong labels.

    Parameters
    ----------
    problem : Problem, whose loss it is
    y : (m,) labels, -1.0 or +1.0
    scores : (m,) f(x_i); above 0 is labelled +1, and measures of a ranking or at k take their order
    by : one of `mipfs.measures.judged.BY`, in place of what the loss says
    """
    if by is not None:
        return error_by(by, y, scores)
    if problem.measure is None:
        return float(np.mean((scores > 0) != (y > 0)))
    found = value(problem.measure, y, scores, beta=problem.beta, k=problem.k)
    return found if problem.measure == "error" else 1.0 - found


class Validator:
    """Keeps the classifier of lowest validation error and stops the run when it no longer improves.

    Parameters
    ----------
    run : Run
    data : Instance
        Validation data with the training data's features; its own scaling is undone.
    patience : int >= 1
        Classifiers without improvement before the run stops.
    """

    def __init__(self, run: Run, data: Instance, patience: int) -> None:
        self.run = run
        self.data = data
        self.patience = patience
        train = run.problem.data
        names = train.feature_names
        p = train.n_features - (train.constant != 0.0)  # a constant column is no column of the data
        self._columns = np.array([column_of(name, j, p, data) for j, name in enumerate(names[:p])], dtype=np.int64)
        is_positive = np.asarray(data.labels.of(data.y)) == np.asarray(train.labels.positive)
        self._y = np.where(is_positive, 1.0, -1.0)
        self._best = np.inf
        self._waited = 0

    def see(self, ids: npt.NDArray[np.int64], w: Array, b: float) -> None:
        """Take note of a classifier: its columns, and weights and intercept on the scaled training data."""
        train = self.run.problem.data
        weights = w / train.scale[ids]
        intercept = b - float(weights @ train.shift[ids])
        if train.constant:
            held = ids < self._columns.size
            intercept += train.constant * float(weights[~held].sum())
            ids = ids[held]
            weights = weights[held]
        scores = scores_on(self.data, self._columns[ids], weights, intercept, train.shift[ids], train.scale[ids])
        error = error_on(self.run.problem, self._y, scores)
        if error < self._best:
            self._best = error
            self._waited = 0
            self.run.outcome.validated = {
                "error": error,
                "iteration": self.run.iteration,
                "selected": [train.feature_names[j] for j in dict.fromkeys(ids.tolist())],
                "weights": weights_by_name(train, ids, weights),
                "intercept": intercept,
            }
            return
        self._waited += 1
        if self._waited >= self.patience:
            self.run.early = StopReason.VALIDATION
