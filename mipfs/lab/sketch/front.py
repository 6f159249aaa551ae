"""A few features to begin an exact solve with: ``mipfs solve … --preselect bss:300``, ``mipfs.preselect`` in Python.

α, L   of all features                     what is chosen here is where `mipfs.drivers.growing` begins:
A      the features that are chosen        the optimum over A, its bound for the whole problem,
                                           and what A must take in until the whole is proven
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mipfs.drivers import solve
from mipfs.errors import UsageError
from mipfs.lab.baselines import available as baselines
from mipfs.lab.baselines import get_baseline
from mipfs.lab.sketch.select import METHODS, select
from mipfs.plumbing.declared import Seed, check_arguments
from mipfs.problem import Problem
from mipfs.result.result import Result

MOST_SELECTIONS = 1000
"""Selections that feature generation makes at most until it has used enough features."""


@check_arguments
def preselect(problem: Problem, how: str, *, seed: Seed = 0) -> tuple[str, ...]:
    """Choose features for ``mipfs.solve(problem, "branch", active=…)``.

    Parameters
    ----------
    problem : Problem over single features
    how : str
        ``METHOD:COUNT``, such as "bss:300". A method of `mipfs.sketch` (bss, leverage, approx-bss, rrqr, uniform), with
        COUNT picks or draws; a baseline (`mipfs.baselines.available`), such as rfe, at the problem's C; or fgm, feature
        generation: the features of the relaxation's selections, and then those of largest score.
    seed : int >= 0, of methods that draw

    Returns
    -------
    tuple of str
        Different features, at most COUNT, in the order of the data. Forced features are not added here.

    Raises
    ------
    UsageError
        An unknown method, a count out of its range, or a problem over groups, trees or a structural loss.

    Examples
    --------
    >>> import mipfs
    >>> problem = mipfs.Problem(mipfs.read("instances/wdbc.svm", scale="standard"), M=3, C=0.01)
    >>> begin = mipfs.preselect(problem, "rfe:8")
    >>> result = mipfs.solve(problem, "branch", active=begin)
    >>> len(begin), result.status.name, result.selected == mipfs.solve(problem, "branch").selected
    (8, 'OPTIMAL', True)
    """
    method, count = parse_method(how)
    if not problem.selects_features or problem.is_joint:
        raise UsageError("preselect chooses single features for a loss that is a sum over the samples; leave it out")
    p = problem.data.n_features
    if method == "fgm":
        ids = by_generation(problem, min(count, p))
    elif method in METHODS:
        ids = select(problem.data, method, count, seed=seed, check=False).ids
    else:
        ids = get_baseline(method)(problem.data, min(count, p), problem.C, bias=problem.bias, seed=seed).ids
    names = problem.data.feature_names
    return tuple(names[j] for j in np.sort(ids).tolist())


def parse_method(how: str) -> tuple[str, int]:
    """Method and count.

    Raises
    ------
    UsageError
    """
    known = ("fgm", *METHODS, *baselines())
    method, _, count = how.partition(":")
    if method not in known:
        raise UsageError(f"preselect = {how!r}: {method!r} is unknown; METHOD:COUNT, METHOD one of {', '.join(known)}")
    if not (count.isascii() and count.isdigit() and int(count) >= 1):
        raise UsageError(f"preselect = {how!r}: give a count, such as {method}:300")
    return method, int(count)


def _rated_by(problem: Problem, found: Result) -> npt.NDArray[np.float64]:
    """y∘α to rank features by: the relaxation's, or where no feature is of use to it the difference of the classes."""
    y = problem.data.y
    return np.where(y > 0, 1.0 / np.sum(y > 0), -1.0 / np.sum(y < 0)) if found.alpha is None else found.alpha * y


def by_generation(problem: Problem, count: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Positions (count,) of the features that feature generation finds (Tan 2014, Algorithm 1)."""
    M = problem.M or problem.data.n_features
    found = solve(problem, "kelley", T=min(MOST_SELECTIONS, -(-count // max(1, M)) + 1), refit=False)
    mixed = {} if found.relaxed is None else found.relaxed["sigma"]
    used = problem.data.columns_of(list(mixed))[np.argsort(-np.array([*mixed.values()]), kind="stable")]
    best = problem.atoms.best(_rated_by(problem, found), count)
    return np.asarray([*dict.fromkeys([*used.tolist(), *best.tolist()])], dtype=np.int64)[:count]
