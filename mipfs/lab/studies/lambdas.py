"""Values of λ for FSP-λ from two SVMs: ``mipfs path --lambda auto`` (Aytug 2015, section 5, leaves it open).

A dual vector α proves, whatever σ is, with ω_j = Σ_i α_i y_i x_ij (Aytug 2015, (15)):

    v(σ) + λ Σσ   ≥   g(α) + Σ_j σ_j (λ − ½ ω_j(α)²)

With α of the SVM without features the right side is least at σ = 0, where it is the value, once λ ≥ ½ ω_j² for all j;
with α of the SVM on all features it is least at σ = 1 as long as λ ≤ ½ ω_j² for all j. So

    λ_none = max_j ½ ω_j(α⁰)²    from here on selecting nothing is optimal
    λ_all  = min_j ½ ω_j(α¹)²    up to here selecting everything is

and between them lie the thresholds ½ ω_j(α¹)² of the plain SVM, at which the paper's rule for RMP-λ drops one feature
after the other. The values are a share of these thresholds, evenly over the logarithm of their ranks, and go from the
largest to λ_none in equal ratios. They are where to look, no claim about what is optimal between the two ends.
"""

from __future__ import annotations

import re

import numpy as np

from mipfs.errors import UsageError
from mipfs.inner.subproblem import Subproblem
from mipfs.plumbing.arrays import Array
from mipfs.problem import Problem
from mipfs.widened import widen_problem

COUNT, MOST = 10, 1000
"""Values by default, and at most."""
TOL = 1e-6
"""Relative gap of both SVMs."""
LEAST_SHARE = 1e-12
"""Thresholds below this share of the largest are round-off."""


def thresholds(problem: Problem, sigma: float) -> Array:
    """½ s_j (p,) of the SVM at σ = 0 or σ = 1, s_j = ω_j² (of atoms ‖ω_g‖²): the cut of its dual vector."""
    wide = widen_problem(problem)
    count = problem.atoms.count
    chosen = np.append(np.full(count, sigma), np.ones(wide.atoms.count - count))
    return np.asarray(0.5 * Subproblem(wide).solve(chosen, TOL).cut.slopes[:count])


def lambda_values(problem: Problem, count: int = COUNT) -> tuple[float, ...]:
    """Values of λ from where nothing is selected down to where everything is.

    Parameters
    ----------
    problem : Problem
        Its own ``lam`` takes no part; with rows, M or penalties the two ends are those of the problem without them.
    count : int >= 2, values at most

    Returns
    -------
    tuple of float, descending; the first is λ_none, the last λ_all, or the least threshold that is not 0

    Raises
    ------
    UsageError
        No feature is of any use: every threshold is 0.
    """
    bare = problem.replace(lam=0.0)
    top = float(thresholds(bare, 0.0).max(initial=0.0))
    plain = np.sort(thresholds(bare, 1.0))[::-1]
    plain = plain[plain > LEAST_SHARE * max(top, plain.max(initial=0.0))]
    if not (top > 0.0 and plain.size):
        raise UsageError("lambda = auto: no feature tells the classes apart, so that every lambda selects nothing")
    among = min(plain.size, count - count // 2)
    ranks = np.unique(np.rint(np.geomspace(1.0, plain.size, among)).astype(int))
    low = plain[ranks - 1]
    above = max(0, count - low.size)
    if top <= low[0]:
        return tuple(np.unique(np.append(low, top))[::-1].tolist())
    high = np.geomspace(top, low[0], above + 1)[:above]
    return tuple(dict.fromkeys(np.concatenate([high, low]).tolist()))


def parse_count(text: str) -> int:
    """How many values ``auto`` or ``auto:20`` asks for.

    Raises
    ------
    UsageError
    """
    found = re.fullmatch(r"auto(?::(\d{1,6}))?", text, re.ASCII)
    count = COUNT if found is None or found[1] is None else int(found[1])
    if found is None or not 2 <= count <= MOST:
        raise UsageError(f"lambda = {text}: write numbers separated by commas, auto, or auto:N with N from 2 to {MOST}")
    return count
