"""Ways to choose M features, for many M and C at once: what the studies on real data compare."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mipfs.data.instance import Instance
from mipfs.errors import MipfsError
from mipfs.lab.baselines.l1_svm import l1_svm_of_size
from mipfs.lab.baselines.rfe import eliminate
from mipfs.lab.experiments.fits import facts_of, ids_of, solve_by
from mipfs.lab.studies.peers import select_by_splicing
from mipfs.losses import get_loss
from mipfs.plumbing.arrays import Integers
from mipfs.plumbing.clock import cpu_clock
from mipfs.problem import Problem

Place = tuple[int, float]
"""M and C."""
Choice = tuple[Integers, dict[str, Any]]
"""Positions, and what is known beside them."""
Chooser = Callable[[Instance, Sequence[int], Sequence[float], int], dict[Place, Choice]]
"""Takes data, sizes, values of C and a limit of nodes."""
RELAXATION_GAP = 1e-3


def exact(data: Instance, sizes: Sequence[int], grid: Sequence[float], nodes: int) -> dict[Place, Choice]:
    """FSP-M with the hinge by branch and bound, up to a number of nodes."""
    found = {}
    for M, C in itertools.product(sizes, grid):
        result = solve_by(Problem(data, M=M, C=C), "branch", iteration_limit=nodes)
        found[M, C] = np.sort(data.columns_of(result.selected)), facts_of(result)
    return found


def _relaxation_chooser(loss: str) -> Chooser:
    """FGM (Tan 2014): the relaxation with a loss, rounded to M features."""

    def relaxed(data: Instance, sizes: Sequence[int], grid: Sequence[float], nodes: int) -> dict[Place, Choice]:
        def at(M: int, C: float) -> Integers:
            return ids_of(Problem(data, loss=loss, M=M, C=C), "kelley", gap=RELAXATION_GAP)

        return {(M, C): (at(M, C), {}) for M, C in itertools.product(sizes, grid)}

    return relaxed


def elimination(data: Instance, sizes: Sequence[int], grid: Sequence[float], nodes: int) -> dict[Place, Choice]:
    """SVM-RFE with the squared hinge, a fifth of the features a round."""
    found: dict[Place, Choice] = {}
    for C in grid:
        found |= {(M, C): (ids, dict[str, Any]()) for M, ids in eliminate(data, sizes, C).items()}
    return found


def one_norm(data: Instance, sizes: Sequence[int], grid: Sequence[float], nodes: int) -> dict[Place, Choice]:
    """The features of the ℓ1-SVM whose own C leaves M of them."""
    found: dict[Place, Choice] = {}
    for M in sizes:
        ids = l1_svm_of_size(data, M).ids
        found |= {(M, C): (ids, dict[str, Any]()) for C in grid}
    return found


def forward(data: Instance, sizes: Sequence[int], grid: Sequence[float], nodes: int) -> dict[Place, Choice]:
    """One feature after the other: the one of largest |Σ α_i y_i x_ij| at the SVM on those that are there."""
    found = {}
    for C in grid:
        solver = get_loss("hinge").Solver(data, C * data.sample_weight, True)
        ids = np.empty(0, dtype=np.int64)
        while ids.size < max(sizes):
            alpha = solver.solve(ids, tol=1e-6).alpha
            steep = np.abs(data.block().pull(alpha * data.y))
            steep[ids] = -1.0
            ids = np.append(ids, int(np.argmax(steep)))
            if ids.size in sizes:
                found[int(ids.size), C] = np.sort(ids), dict[str, Any]()
    return found


def everything(data: Instance, sizes: Sequence[int], grid: Sequence[float], nodes: int) -> dict[Place, Choice]:
    """All features."""
    return {(data.n_features, C): (np.arange(data.n_features), {}) for C in grid}


def choose_by_splicing(data: Instance, sizes: Sequence[int], grid: Sequence[float], nodes: int) -> dict[Place, Choice]:
    """The best subset of M for logistic regression, by abess (Zhu 2020): features are exchanged while that helps.

    Constant columns, which it refuses, are left out.
    """
    return {(M, C): (ids, dict[str, Any]()) for M in sizes for ids in [select_by_splicing(data, M)] for C in grid}


CHOOSERS: dict[str, Chooser] = {
    "exact": exact,
    "fgm": _relaxation_chooser("squared-hinge"),
    "fgm-hinge": _relaxation_chooser("hinge"),
    "rfe": elimination,
    "l1": one_norm,
    "forward": forward,
    "all features": everything,
}
PEERS: dict[str, Chooser] = {"abess": choose_by_splicing}
"""Of packages that are no dependency."""


def choose(name: str, data: Instance, sizes: Sequence[int], grid: Sequence[float], nodes: int) -> dict[Place, Choice]:
    """The choices of a method; each says the CPU seconds of all together, divided by their number."""
    began = cpu_clock()
    found = (CHOOSERS | PEERS)[name](data, sizes, grid, nodes)
    each = (cpu_clock() - began) / max(1, len(found))
    return {place: (ids, facts | {"seconds": each}) for place, (ids, facts) in found.items()}


def try_choices(
    name: str, data: Instance, sizes: Sequence[int], grid: Sequence[float], nodes: int
) -> dict[Place, Choice]:
    """`choose`, without choices where the package refuses the method."""
    try:
        return choose(name, data, sizes, grid, nodes)
    except MipfsError:
        return {}
