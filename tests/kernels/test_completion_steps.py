"""The steps of `mipfs.kernels.completions`, each alone beside NumPy and an SVM that was solved elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

from mipfs.inner.completions import NodeEnumerator
from mipfs.kernels.completions import (
    DONE,
    CompletionProblem,
    advance_to_end,
    complete,
    evaluate_rounded_dual,
    keep,
    place_of,
    write_rows,
)
from tests import oracles
from tests.kernels.test_completions import P, drawn, values_of


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_an_svm_on_a_selection_is_laid_out_solved_proven_and_kept(loss: str) -> None:
    problem, X = drawn(loss, True, "dense")
    completions = NodeEnumerator(problem, np.arange(P))
    steps, samples = completions._compiled
    grid, columns, ids = completions._grid, completions._columns, np.array([1, 3])
    given = CompletionProblem(steps, columns, samples, grid, completions._steering)
    at = place_of(samples, ids.size, P)
    write_rows(columns, ids, samples, grid.size, at)
    y = problem.data.y
    np.testing.assert_allclose(at.A[:, :2], y[:, None] * (X[:, ids] - columns.off[ids]) * np.sqrt(grid.size))
    np.testing.assert_array_equal(at.A[:, 2], y)
    at.state[0] = completions.settings.rho
    advance_to_end(given, at)
    value, size = evaluate_rounded_dual(given, ids, at, grid.bits)
    best = oracles.svm_value(X[:, ids], y, problem.c_i, True, loss).upper
    assert best * (1.0 - 0.01) <= value <= best * (1.0 + 1e-9)
    assert size >= value
    _, ruled = completions._allocate_pieces(1, completions._enumeration_request(None, 0.0), 0)
    assert keep(grid, at, ruled) == 0
    assert (int(ruled.totals["duals"][0]), int(ruled.totals["bytes"][0])) == (1, int(ruled.duals["end"][0]))


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_completions_that_are_worth_more_than_the_target_are_ruled_out(loss: str) -> None:
    problem, X = drawn(loss, True, "dense")
    completions = NodeEnumerator(problem, np.arange(P))
    steps, samples = completions._compiled
    given = CompletionProblem(steps, completions._columns, samples, completions._grid, completions._steering)
    _, with_one = values_of(problem, X, [3])
    target = np.sort(with_one)[0] * (1.0 + 1e-3)
    _, ruled = completions._allocate_pieces(1, completions._enumeration_request(None, 0.0), 0)
    free = np.delete(np.arange(P), 3)
    ruled.left[: free.size] = free
    ruled.totals["left"], ruled.totals["empty"] = free.size, -1
    complete(given, np.array([3]), target, ruled, np.zeros(1, np.int8))
    total = ruled.totals[0]
    assert (total["why"], total["left"]) == (DONE, 0)
    assert sorted(ruled.above[: total["above"]].tolist()) == np.flatnonzero(with_one < target).tolist()
