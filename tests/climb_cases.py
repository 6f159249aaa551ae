"""Small problems for the searches over supports, and the value of every selection of S."""

from __future__ import annotations

import itertools

import numpy as np

from mipfs.data.instance import Instance
from mipfs.inner.subproblem import Subproblem
from mipfs.problem import Problem


def drawn(seed: int, n: int = 60, p: int = 10) -> Instance:
    """Columns that stand in for each other: what is left out is replaced by a correlated one."""
    r = np.random.default_rng(seed)
    base = r.standard_normal((n, 3))
    X = base[:, r.integers(0, 3, p)] + 0.4 * r.standard_normal((n, p))
    y = np.where(base.sum(axis=1) + 0.3 * r.standard_normal(n) > 0, 1.0, -1.0)
    return Instance.from_arrays(X, y)


def values_of(problem: Problem) -> dict[tuple[int, ...], float]:
    """The objective of every selection of S."""
    found, subproblem, count = {}, Subproblem(problem), problem.atoms.count
    for size in range(1 + (count if problem.M is None else problem.M)):
        for ids in itertools.combinations(range(count), size):
            sigma = np.isin(np.arange(count), ids)
            if problem.selection.contains(sigma):
                found[ids] = subproblem.solve(sigma.astype(float), 1e-8).value
    return found
