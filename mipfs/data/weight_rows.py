"""Rows over the weights that are asked for often, as `mipfs.Problem(weight_rows=...)` takes them.

>>> ordered(["low", "middle", "high"])
[({'low': -1.0, 'middle': 1.0}, 0.0, inf), ({'middle': -1.0, 'high': 1.0}, 0.0, inf)]

All are on the user's scale, l ≤ Σ a_j w_j ≤ u with l ≤ 0 ≤ u. A feature that is not selected has the weight 0: an order
of the levels of a category is meant where they are selected together, as a group.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mipfs.data.frames import as_frame
from mipfs.data.instance import Instance
from mipfs.data.over_weights import Parity, ParityRow
from mipfs.errors import UsageError
from mipfs.plumbing.declared import check_value, show_value

Rows = list[Any]
"""Coefficients by name, and the two ends, infinite where there is none."""
MOST_LEVELS = 20
"""Levels of a column that parity takes: there is a row for every pair."""


def zero_sum(names: Sequence[str]) -> Rows:
    """Σ w_j = 0: of parts of a whole, where only their ratios are to matter (in logarithms).

    Parameters
    ----------
    names : sequence of str, features, each once

    Returns
    -------
    list of (coefficients, lower, upper)
    """
    return [(dict.fromkeys(_unique_names(names, 2), 1.0), 0.0, 0.0)]


def at_least(a: str, b: str) -> Rows:
    """w_a ≥ w_b.

    Parameters
    ----------
    a, b : str, two features

    Returns
    -------
    list of (coefficients, lower, upper)
    """
    first, second = _unique_names([a, b], 2)
    return [({first: 1.0, second: -1.0}, 0.0, math.inf)]


def ordered(names: Sequence[str]) -> Rows:
    """w_1 ≤ w_2 ≤ …: the levels of a category, or what has an order otherwise.

    Parameters
    ----------
    names : sequence of str, features, each once, in their order

    Returns
    -------
    list of (coefficients, lower, upper)
    """
    held = _unique_names(names, 2)
    return [({low: -1.0, high: 1.0}, 0.0, math.inf) for low, high in itertools.pairwise(held)]


def parity(data: Instance, by: Any, within: float) -> Rows:
    """The mean scores of any two groups of samples differ by at most `within`.

    f(x) = w'x + b has on group A the mean Σ_j w_j m_Aj + b, where m_Aj is the mean of feature j there, by the weights
    of the samples. A row says −within ≤ Σ_j (m_Aj − m_Bj) w_j ≤ within: neither shifts nor the intercept matter. Folds
    and resamplings make it anew of the samples that they fit.

    Parameters
    ----------
    data : Instance, whose samples are meant
    by : (n,) array-like, the group of every sample: a mask, or a column of any values, which need not be a feature
    within : float >= 0, a difference of scores

    Returns
    -------
    list of (coefficients, lower, upper), one for every pair of groups

    Raises
    ------
    UsageError
        Not one value for every sample, one group alone, more than 20, or a number that is none.
    """
    data = check_value("data", data, Instance)
    if not isinstance(within, (int, float)) or isinstance(within, bool) or not 0.0 <= within < math.inf:
        raise UsageError(f"within = {show_value(within)} must be a number >= 0, a difference of scores")
    groups = np.asarray(as_frame(by)).ravel()
    if groups.shape != (data.n_samples,):
        raise UsageError(f"by has {groups.size} values, for {data.n_samples} samples; give the group of every sample")
    if groups.dtype.kind == "f" and not np.all(np.isfinite(groups)):
        raise UsageError("by has a missing value; say of every sample in which group it is")
    levels, place = np.unique(groups.astype(str) if groups.dtype.kind == "O" else groups, return_inverse=True)
    if not 2 <= levels.size <= MOST_LEVELS:
        said = "one group" if levels.size < 2 else f"{levels.size} groups"
        raise UsageError(f"by has {said}; parity is of 2 to {MOST_LEVELS}, with a row for every pair")
    names = [str(level) for level in levels.tolist()]
    return [
        ParityRow.made(Parity(place, pair, (names[pair[0]], names[pair[1]])), data, float(within))
        for pair in itertools.combinations(range(levels.size), 2)
    ]


def _unique_names(names: Sequence[str], least: int) -> list[str]:
    """Names, each once."""
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise UsageError(f"names = {show_value(names)} must be a list of features")
    held = list(names)
    if len(set(held)) < len(held) or len(held) < least:
        raise UsageError(f"names = {show_value(names)} must be {least} features or more, each once")
    return held
