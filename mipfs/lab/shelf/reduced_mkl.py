"""The restricted problem of `kelley` by the solvers of the papers' time, and by an open conic one.

`Conic` declares it in CVXPY (`mipfs.models.reduced_mkl`, Tan 2014, (35) corrected) and solves it by Clarabel, for every
loss and penalty. `SimpleMkl` is Tan 2010, section 2.3: a reduced gradient on μ and an SVM by LIBLINEAR for every step
(`mipfs.lab.shelf.simple_mkl`), for the squared hinge without bias and penalties. Both report a value that was computed
here at a feasible point, and a dual vector that was rounded into the dual set.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs import formulation
from mipfs.atoms import AtomColumns
from mipfs.errors import NumericalError, UsageError
from mipfs.inner.restricted import RestrictedSolution, SelectionPool, feasible
from mipfs.inner.subproblem import Subproblem
from mipfs.lab.shelf.simple_mkl import simple_mkl
from mipfs.losses import get_loss
from mipfs.plumbing.arrays import Array, Arrays, scatter
from mipfs.problem import Problem
from mipfs.solvers.cones import REPEATED_WORK, Canonical

EXACT_GAP = 1e-10
"""Relative gap of the SVM at the mixture that the conic solver found."""


class Conic:
    """The restricted problem by Clarabel, anew for every pool.

    Parameters
    ----------
    problem : Problem with a pointwise loss
    deadline : callable, when the time limit passes, on the clock of ``time.monotonic``, or None
    """

    def __init__(self, problem: Problem, deadline: Callable[[], float | None]) -> None:
        self.problem = problem
        self._deadline = deadline
        self._subproblem = Subproblem(problem)
        self._last: RestrictedSolution | None = None

    def solve(self, pool: SelectionPool, tol: float, must_stop: Callable[[], bool]) -> RestrictedSolution:
        """Solve as tight as Clarabel goes; where it was stopped, the last mixture once more.

        Raises
        ------
        NumericalError
            Clarabel did not solve it.
        """
        problem = self.problem
        count = self.problem.atoms.count
        unit = problem if problem.margin == "unit" else problem.replace(margin="unit")
        declared = formulation.declare(
            "reduced-mkl", unit, [_dense_sigma(ids, sigma, count) for ids, sigma in pool.members]
        )
        status = Canonical(declared.cvxpy).solve(deadline=self._deadline(), stop=must_stop, in_process=REPEATED_WORK)
        if status == "solved":
            mu = np.maximum(np.asarray(declared.variables["mu"].value, dtype=float).ravel(), 0.0)
            alpha = feasible(problem, np.asarray(declared.variables["alpha"].value, dtype=float))
        elif status == "stopped":
            mu = np.zeros(0) if self._last is None else self._last.mu
            alpha = np.zeros(problem.data.n_samples) if self._last is None else self._last.alpha
        else:
            raise NumericalError(f"Clarabel does not solve the restricted problem: {status}")
        mu = np.append(mu, np.zeros(len(pool) - mu.size))
        mu = mu / mu.sum() if mu.sum() > 0.0 else np.full(mu.size, 1.0 / mu.size)
        solved = self._subproblem.solve(pool.mixture(mu, count), EXACT_GAP)
        ids = problem.atoms.columns(solved.ids).ids
        self._last = RestrictedSolution(solved.value, alpha, mu, ids, solved.svm.w, solved.svm.b)
        return self._last

    def kept(self) -> Callable[[], Arrays]:
        """What makes arrays of the last mixture, its dual vector and the subproblem's warm start."""
        begun, last = self._subproblem.kept(), self._last
        return lambda: {
            **begun(),
            **({} if last is None else {**last.arrays("conic"), "conic_alpha": last.alpha}),
        }

    def take_up(self, kept: Mapping[str, npt.NDArray[Any]], pool: SelectionPool) -> None:
        """Go on from what `kept` made."""
        alpha = np.array(kept.get("conic_alpha", ()), dtype=float)
        self._last = RestrictedSolution.taken_up("conic", kept, pool, alpha, self.problem.data.n_features)
        if self._last is not None and alpha.shape != self.problem.c_i.shape:
            raise ValueError("a dual vector is of other samples")
        self._subproblem.take_up(kept)


class SimpleMkl:
    """The restricted problem by SimpleMKL, from the last mixture.

    Parameters
    ----------
    problem : Problem with the squared hinge, no bias and no penalties
    """

    def __init__(self, problem: Problem) -> None:
        if get_loss(problem.loss).slack_degree != 2 or problem.bias or np.any(problem.penalty):
            raise UsageError(
                "restricted = 'simple-mkl' is for the squared hinge without bias and penalties; give bias=False, or "
                "leave restricted at 'auto'"
            )
        self.problem, self._mu, self._upper = problem, np.empty(0), 0.5 * float(problem.c_i.sum())

    def solve(self, pool: SelectionPool, tol: float, must_stop: Callable[[], bool]) -> RestrictedSolution:
        """Solve to an absolute gap `tol`, as far as LIBLINEAR's accuracy reaches."""
        problem = self.problem
        t = len(pool)
        kernels = [_selection_columns(problem, ids, sigma) for ids, sigma in pool.members]
        if not any(kernel.ids.size for kernel in kernels):
            alpha = feasible(problem, problem.c_i)
            return RestrictedSolution(
                self._upper, alpha, np.full(t, 1.0 / t), np.empty(0, dtype=np.int64), np.empty(0), 0.0
            )
        new = t - self._mu.size  # they begin with equal shares, as SimpleMKL has it
        start = np.append(self._mu * (1.0 - new / t), np.full(new, 1.0 / t))
        wide = np.unique(np.concatenate([kernel.ids for kernel in kernels])).size
        found = simple_mkl(
            problem.data, kernels, problem.C, gap=tol / self._upper, start=start,
            newton=wide < problem.data.n_samples, stop=must_stop,
        )  # fmt: skip
        self._mu, self._upper = found.mu, min(self._upper, max(found.objective, 1e-300))
        return RestrictedSolution(
            found.objective, feasible(problem, found.alpha), found.mu, found.columns, found.w, 0.0
        )

    def kept(self) -> Callable[[], Arrays]:
        """What makes arrays of the last mixture and the least value."""
        mu, upper = self._mu, self._upper
        return lambda: {"mkl_mu": mu, "mkl_upper": np.array(upper)}

    def take_up(self, kept: Mapping[str, npt.NDArray[Any]], pool: SelectionPool) -> None:
        """Go on from what `kept` made."""
        mu, upper = np.array(kept["mkl_mu"], dtype=float), float(kept["mkl_upper"])
        if mu.ndim != 1 or mu.size > len(pool) or not np.isfinite(mu).all() or not 0.0 < upper < np.inf:
            raise ValueError("the mixture is of another pool")
        self._mu, self._upper = mu, upper


def _dense_sigma(ids: npt.NDArray[np.int64], sigma: Array, count: int) -> Array:
    """A selection as σ (count,)."""
    return scatter(count, ids, sigma)


def _selection_columns(problem: Problem, ids: npt.NDArray[np.int64], sigma: Array) -> AtomColumns:
    """The columns of a selection, with √σ in their scales."""
    columns = problem.atoms.columns(ids)
    return AtomColumns(columns.ids, columns.atom, columns.scale * np.sqrt(sigma[columns.atom]))
