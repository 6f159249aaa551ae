"""What shows the objectives of near-optimal supports: weights from above, and a dual vector each from below.

The supports were evaluated during the search, where only their values were kept: here each is solved once more.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.inner.subproblem import SolvedSubproblem, Subproblem
from mipfs.proof.cuts import Dual
from mipfs.proof.evidence import no_dual
from mipfs.proof.row_tree import least_cost
from mipfs.result.result import StopReason
from mipfs.run.incumbent import Incumbent
from mipfs.run.run import Run
from mipfs.run.stored import StoredClassifier, as_stored

LISTED_GAP = 1e-9
"""Relative gap to which a listed support is solved."""
PROVEN_ACCURACY = 5e-7
"""A support is listed only where its dual vector proves its objective to this, relative: the checker asks for 1e-6."""


def values_by_name(run: Run, sigma: npt.NDArray[np.bool_]) -> dict[str, float] | None:
    """Values of the extra variables at which a selection satisfies the rows; None without such variables."""
    extra = run.problem.named_rows().extra
    if not len(extra):
        return None
    found = run.oracle.completion(sigma)
    assert found is not None, "a selection of S satisfies the rows"
    return dict(zip(extra.names, map(float, found), strict=True))


@dataclass(frozen=True, eq=False)
class ListedSupport:
    """A listed support.

    Attributes
    ----------
    found, stored : its classifier as it was solved, and as it is stored
    dual : Dual, proves the value from below
    """

    found: Incumbent
    stored: StoredClassifier
    dual: Dual


def show_supports(run: Run, supports: Iterable[npt.NDArray[np.bool_]]) -> Iterator[ListedSupport]:
    """The supports with their classifiers and dual vectors; without those whose objective rounding leaves in doubt.

    A run that was stopped ends soon: it shows as many as it comes to, or, where a count of nodes stopped it and no
    clock, as many as its search took SVMs. A better classifier becomes the incumbent.
    """
    problem = run.problem
    subproblem = Subproblem(run.problem)
    settings = run.settings.listing
    spent = max(settings.late_seconds, settings.late_share * run.elapsed)
    is_counted = run.stop() is StopReason.ITERATION_LIMIT
    late = math.inf if run.closed or is_counted else time.monotonic() + spent
    most = max(settings.counting, run.counters.get("subproblems", 0)) if is_counted else None
    for sigma in islice(supports, most):
        if time.monotonic() > late:
            return
        solved = subproblem.solve(sigma.astype(float), LISTED_GAP)
        found = _classifier_of_support(run, sigma, solved)
        least = solved.cut(sigma.astype(float))
        proven = float(problem.penalty[sigma].sum()) + max(0.0, least)
        if problem.has_extra_costs:
            proven += least_cost(problem.selection, sigma)
        stored = as_stored(problem, found)
        if stored.objective - proven <= PROVEN_ACCURACY * abs(stored.objective):
            yield ListedSupport(found, stored, solved.cut.dual if least > 0.0 else no_dual(problem))


def _classifier_of_support(run: Run, sigma: npt.NDArray[np.bool_], solved: SolvedSubproblem) -> Incumbent:
    """The classifier of a support: the incumbent, or what was solved."""
    value = run.offer(solved.ids, solved.svm.w, solved.svm.b)
    best: Any = run.incumbent
    if np.array_equal(best.sigma(sigma.size), sigma):
        return Incumbent(best.selected, best.w, best.b, best.objective)
    return Incumbent(solved.ids, solved.svm.w, solved.svm.b, value)
