"""What the studies have in common: a support by a method, the SVM on it, and how it does on other rows.

Also here: ways to choose M features, for many M and C at once: what the studies on real data compare.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mipfs.data.instance import Instance
from mipfs.errors import MipfsError, NumericalError
from mipfs.lab.baselines.l1_svm import l1_svm_of_size
from mipfs.lab.baselines.linear import Linear, plain_svm
from mipfs.lab.baselines.rfe import eliminate
from mipfs.lab.studies.peers import select_by_splicing
from mipfs.losses import get_loss
from mipfs.plumbing.arrays import Array, Integers
from mipfs.plumbing.clock import cpu_clock
from mipfs.problem import Problem
from mipfs.result.result import Result, StopReason

GREEDY_TOL = 1e-6
"""Relative gap of the SVMs whose gradients a greedy choice looks at."""
Matrix = Any
"""(n, p), dense or CSR."""


@dataclass(frozen=True, eq=False)
class StudyFit:
    """A classifier on few columns.

    Attributes
    ----------
    linear : Linear
    seconds : float, CPU
    facts : dict of what else is known, such as status and gap of a driver
    """

    linear: Linear
    seconds: float
    facts: dict[str, Any] = field(default_factory=dict)


def solve_by(problem: Problem, driver: str, *, cpu_limit: float = math.inf, **options: Any) -> Result:
    """A driver's result, on one thread where the driver has more.

    Parameters
    ----------
    problem : Problem
    driver : str
    cpu_limit : float, optional
        CPU seconds after which the run is stopped: other work on the machine does not shorten it, as it does a limit
        of wall seconds.
    **options
        Of the driver.

    Raises
    ------
    KeyboardInterrupt
        Ctrl-C: what was found until then is no measurement.
    NumericalError
        There is no classifier.
    """
    from mipfs.drivers import solve

    if driver == "branch":
        options.setdefault("threads", 1)
    end = cpu_clock() + cpu_limit
    result = solve(problem, driver, stop=lambda: cpu_clock() >= end, **options)
    if result.stop_reason is StopReason.INTERRUPTED and cpu_clock() < end:
        raise KeyboardInterrupt
    if not result.has_classifier:
        raise NumericalError(f"{driver} found no classifier: {result.status.name}")
    return result


def select_greedily(data: Instance, C: float, worth: Callable[[Array, Integers], Array]) -> Integers:
    """Add the column of the largest worth to a hinge SVM, one after the other, while one is worth more than 0.

    Parameters
    ----------
    data : Instance
    C : float > 0
    worth : callable
        Of the squared gradients (p,) and the columns that are in: what each column is worth.
    """
    solver, ids = get_loss("hinge").Solver(data, C * data.sample_weight, True), np.empty(0, dtype=np.int64)
    while True:
        found = worth(np.square(data.block().pull(solver.solve(ids, tol=GREEDY_TOL).alpha * data.y)), ids)
        found[ids] = 0.0
        best = int(np.argmax(found))
        if found[best] <= 0.0:
            return ids
        ids = np.sort(np.append(ids, best))


def facts_of(result: Result) -> dict[str, Any]:
    """Whether a result is proven to be optimal, its objective and gap, and the MILPs of the published Benders loop."""
    facts = {"proven": result.status.name == "OPTIMAL", "objective": result.objective, "gap": result.gap}
    return facts | ({"milps": result.counters["milps"]} if "milps" in result.counters else {})


def ids_of(problem: Problem, driver: str, **options: Any) -> Integers:
    """The columns that a driver selects, ascending."""
    return np.sort(problem.data.columns_of(solve_by(problem, driver, **options).selected))


def relaxed_predictor(data: Instance, result: Result, C: float) -> Linear:
    """The predictor of a relaxation, on all features that it uses."""
    if result.relaxed is None:
        raise NumericalError("the relaxation has no predictor")
    ids = data.columns_of(tuple(result.relaxed["weights"]))
    order = np.argsort(ids)
    w = np.array(list(result.relaxed["weights"].values()), dtype=float)
    return Linear(ids[order], w[order], float(result.relaxed["intercept"]), C)


def relaxed_gap(result: Result) -> float | None:
    """The gap between the two sides of a relaxation, relative to the upper one."""
    assert result.relaxed is not None
    upper, lower = float(result.relaxed["upper"]), float(result.relaxed["lower"])
    return (upper - lower) / upper if upper > 0 else None


def scale_rows(X: Array, train: Integers) -> Array:
    """Rows with columns that have mean 0 and deviation 1 on the training rows."""
    scale = X[train].std(axis=0)
    return np.asarray((X - X[train].mean(axis=0)) / np.where(scale > 0, scale, 1.0))


def fit_by_driver(problem: Problem, driver: str, loss: str | None = None, **options: Any) -> StudyFit:
    """The support that a driver leaves, and the SVM of the problem's loss on it (or of another one)."""
    began = cpu_clock()
    result = solve_by(problem, driver, **options)
    ids = np.sort(problem.data.columns_of(result.selected))
    spent = cpu_clock() - began
    fitted = plain_svm(problem.data, ids, problem.C, problem.bias, loss or problem.loss)
    return StudyFit(fitted, spent, facts_of(result))


def fit_chosen(
    data: Instance, C: float, choose: Callable[[], Integers], *, bias: bool = True, loss: str = "hinge"
) -> StudyFit:
    """The SVM on columns that a function chooses; its seconds are those of the choice and the SVM."""
    began = cpu_clock()
    fitted = plain_svm(data, np.sort(np.asarray(choose(), dtype=np.int64)), C, bias, loss)
    return StudyFit(fitted, cpu_clock() - began)


def scores(linear: Linear, X: Matrix) -> Array:
    """f(x) of every row of a matrix."""
    return np.asarray(X[:, linear.ids] @ linear.w).ravel() + linear.b


def error(linear: Linear, X: Matrix, y: Array) -> float:
    """The share of rows on the wrong side; a score of 0 is wrong."""
    return float(np.mean(y * scores(linear, X) <= 0.0))


def f1(linear: Linear, X: Matrix, y: Array) -> float:
    """F1 of the class +1; 0 where no row is called so and none is."""
    called = scores(linear, X) > 0.0
    hits = float(np.sum(called & (y > 0)))
    either = float(np.sum(called) + np.sum(y > 0))
    return 2.0 * hits / either if either else 0.0


def objective(data: Instance, linear: Linear, C: float) -> float:
    """½ ‖w‖² + C Σ ξ of the hinge SVM on a classifier's columns, on the scale of the data."""
    w = linear.w * data.scale[linear.ids]
    margins = data.y * linear.scores(data)
    return float(0.5 * w @ w + C * data.sample_weight @ np.maximum(0.0, 1.0 - margins))


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
