"""Calibrated probabilities of one proven classifier: the map is fitted to scores of folds that were not trained on.

It is scikit-learn's ``CalibratedClassifierCV(ensemble=False)``: the problem is solved on the training part of every
fold, features selected anew, and the scores of the test parts say together what a score is worth. The classifier stays
the one that was proven; its probabilities are an estimate, and no proof covers them.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np

from mipfs import drivers
from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.lab.studies.folds import fold, require_columns, settle_folds
from mipfs.plumbing.arrays import Array, Integers
from mipfs.plumbing.declared import Count, Seed, check_arguments
from mipfs.problem import Problem
from mipfs.result.advice import ends_all
from mipfs.result.probability import fit_calibration
from mipfs.result.result import Result
from mipfs.run.parameters import check_result_of
from mipfs.run.side_by_side import in_order, jobs_of, limits_of


@check_arguments
def calibrate(
    model: Any, result: Result, *, folds: Any = 5, seed: Seed = 0, jobs: Count | None = None, **options: Any
) -> Result:
    """The result with a calibration of its scores, for `Result.predict_proba`.

    Parameters
    ----------
    model : Problem, Pyomo model of a formulation, or Formulation, that the result is of
    result : Result
    folds : int >= 2, splitter of scikit-learn, or iterable of (training, test)
        Folds, on each of which the problem is solved once more: see `mipfs.path`. No sample may be tested on twice; one
        that none tests on is left out.
    seed : int
        Of the folds.
    jobs : int >= 1, optional
        Folds that are solved side by side, by default as many as there are cores; the numbers do not depend on it.
    **options
        Of the result's driver, such as ``time_limit`` in seconds for every fold, and ``gap``.

    Raises
    ------
    UsageError
        Another problem's result, one without a classifier, folds out of their range, or a fold without a classifier.
    KeyboardInterrupt
        Ctrl-C.
    """
    from mipfs.formulation import compile as compile_model

    problem = compile_model(model)
    if not result.has_classifier:
        raise UsageError(f"there is no classifier to calibrate: the status is {result.status.name}")
    check_result_of(problem, result)
    require_columns(problem, "a calibration is", "loss = 'logistic' says probabilities without one")
    data, count = settle_folds(problem.data, folds)
    tested = np.zeros(data.n_samples, dtype=np.int64)
    for _, test in () if data.split is None else data.split.pairs:
        tested[test] += 1
    if np.any(tested > 1):
        raise UsageError("folds: a sample is tested on twice, and calibration takes one score of each; do not repeat")
    scores = np.full(data.n_samples, np.nan)
    side = jobs_of(jobs, count)
    asked = problem, data, count, result.driver, {**limits_of(options, side), "seed": seed}
    with closing(in_order(_score_fold, asked, range(count), side)) as found:
        for rows, values in found:
            scores[rows] = values
    known = np.isfinite(scores)
    weight, y = data.sample_weight[known], data.y[known]
    if np.unique(y).size < 2:
        raise UsageError("folds: their test parts have samples of one class alone; give others")
    alike = bool(np.all(weight == weight[0]))
    return replace(result, calibration=fit_calibration(scores[known], y, count, None if alike else weight))


def _score_fold(given: tuple[Problem, Instance, int, str, dict[str, Any]], number: int) -> tuple[Integers, Array]:
    """The rows of a fold that its training part is without, and what the classifier of that part makes of them."""
    problem, data, folds, driver, options = given
    part = fold(data, folds, options["seed"], number)
    found = drivers.solve(problem.on_part(part.train), driver, **options)
    if ends_all(found):
        raise KeyboardInterrupt
    if not found.has_classifier:
        raise UsageError(f"fold {number + 1} of {folds} has no classifier: {found.status.name}; give it more time")
    return part.rows, found.decision_function(part.X)
