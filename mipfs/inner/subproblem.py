"""The subproblem of Benders' decomposition: v(σ), an SVM on the selected columns, and the cut it yields."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.atoms import AtomColumns, column_shares, merge_columns
from mipfs.inner import boolean
from mipfs.inner.regularised import RegularisedSolver
from mipfs.inner.row_svm import RowSolver
from mipfs.losses import loss_of
from mipfs.losses.evaluated import CompensatedWeights
from mipfs.plumbing.arrays import Array, Arrays, Integers, check_positions
from mipfs.problem import Problem
from mipfs.proof.cuts import Cut, Dual, cut_from_dual, decode_dual, value_below
from mipfs.svm.solver import SVM

SUPPORT_SIGMA = 1e-7
"""A fractional σ_j below this is left out of the subproblem (the cut stays valid for every σ)."""
STALLED_GAP_MULTIPLE, STALLED_GAP = 10.0, 1e-6
"""An SVM whose gap stays this many times the asked one, and above this, goes to the interior point."""


@dataclass(frozen=True, eq=False)
class SolvedSubproblem:
    """A solved subproblem.

    Attributes
    ----------
    ids : positions of the atoms with σ > 0
    svm : SVM on their columns (`Atoms.columns`)
    value, lower : float, c'σ + v(σ) as the primal side has it, and as the dual side has it
    earn : what computes the cut
    cut : Cut; it takes a pass over the data, and is computed where it is asked for
    """

    ids: npt.NDArray[np.int64]
    svm: SVM
    value: float
    lower: float
    earn: Callable[[], Cut]

    @cached_property
    def cut(self) -> Cut:
        """The cut of the dual vector."""
        return self.earn()


def compile_for(problem: Problem) -> None:
    """Compile what a run calls of a `Subproblem`: for fractional σ, and for binary ones."""
    subproblem = Subproblem(problem)
    for sigma in (np.full(problem.atoms.count, 0.5), np.arange(problem.atoms.count) < 2):
        subproblem.solve(sigma.astype(float), 1e-6)


class Subproblem:
    """v(σ) of one problem, with a warm start from one call to the next.

    Parameters
    ----------
    problem : Problem
    must_stop : asked in the middle of a solve; what is found by then is a solution, if not to the asked gap
    """

    def __init__(self, problem: Problem, must_stop: Callable[[], bool] = bool) -> None:
        self.problem = problem
        self.must_stop = must_stop
        self.atoms = problem.atoms
        self.loss = loss_of(problem)
        own = problem.regulariser.is_ridge
        self._relaxed = boolean.Boolean(problem, must_stop) if problem.weight_rows else None
        self._with_multipliers = RowSolver(problem) if problem.weight_rows else None
        self._solver = self.loss.Solver(problem.data, problem.c_i, problem.bias) if own else RegularisedSolver(problem)
        self._solver.must_stop = must_stop
        self._weights = np.zeros(problem.data.n_features)
        self._sizes = np.zeros(problem.atoms.count)
        self._last: SVM | None = None
        self._ids: Integers = np.empty(0, dtype=np.int64)
        self.count = 0

    def solve(self, sigma: Array, tol: float, enough: float = np.inf) -> SolvedSubproblem:
        """Solve at σ in [0, 1]^p to a relative gap `tol`, or until the cut proves a value of `enough`."""
        fixed = float(self.problem.penalty @ sigma)
        ids = np.flatnonzero(sigma > SUPPORT_SIGMA)
        columns = self.atoms.columns(ids)
        part = sigma[ids][columns.atom] * np.square(columns.scale)
        start = None
        if self._last is not None:
            start = (self._weights[columns.ids], self._last.b, self._last.alpha, self._last.rho)
        self._solver.enough = enough - fixed
        if self._relaxed is None:
            svm = self._solve_svm(columns.ids, part, tol, start)
        else:
            svm = self._with_rows(self._relaxed, columns, sigma, (fixed, tol, enough))
        stalled = svm.gap > max(STALLED_GAP_MULTIPLE * tol, STALLED_GAP) and svm.dual + fixed < enough
        stalled = stalled and self._relaxed is None
        if stalled and not self.must_stop() and np.all(sigma[ids] == 1.0) and boolean.carries(self.problem):
            svm = self._solve_by_interior_point(svm, sigma, tol)
        self.count += 1
        self._weights[:] = 0.0
        self._sizes[:] = 0.0
        self._weights[columns.ids] = svm.w
        self._ids = columns.ids
        self._sizes[ids] = np.sqrt(np.bincount(columns.atom, np.square(svm.w), minlength=ids.size))
        self._last = svm
        return SolvedSubproblem(ids, svm, fixed + svm.primal, fixed + svm.dual, partial(self._earned_cut, svm))

    def _earned_cut(self, svm: SVM) -> Cut:
        """The cut that a solved SVM's dual vector earns."""
        dual: Dual
        if svm.combination is None:
            g = value_below(self.problem, svm.alpha)
            dual = np.ldexp(svm.alpha, svm.q).astype(np.int64), svm.q
        else:
            g = svm.combination.value_below
            dual = svm.combination.dual
        return cut_from_dual(self.problem, svm.alpha, g, dual)

    def _solve_svm(
        self, ids: npt.NDArray[np.int64], part: Array, tol: float, start: tuple[Array, float, Array, float] | None
    ) -> SVM:
        """The SVM on columns (k,) with their shares σ_j λ_j² (k,)."""
        svm: SVM = self._solver.solve(ids, None if np.all(part == 1.0) else part, tol=tol, start=start)
        return svm

    def _with_rows(
        self, relaxed: boolean.Boolean, columns: AtomColumns, sigma: Array, asked: tuple[float, float, float]
    ) -> SVM:
        """The SVM with rows over the weights, on a selection, its weights brought into the rows: by Newton's steps, or
        by the interior point where these do not bring it home.

        Without columns all weights are 0, and the rows say nothing.

        Parameters
        ----------
        asked : what the selection costs, the tolerance, and the value that is enough
        """
        problem, (fixed, tol, enough) = self.problem, asked
        data = problem.data
        inside = np.flatnonzero(sigma > SUPPORT_SIGMA)
        if not inside.size:
            svm: SVM = self.loss.Solver(data, problem.c_i, problem.bias).solve(inside, tol=tol)
            return replace(svm, alpha=np.append(svm.alpha, np.zeros(problem.ends.count)))
        last, quick = self._last, self._with_multipliers
        assert quick is not None
        quick.must_stop = self.must_stop
        start = None if last is None else (self._weights[columns.ids], last.b, last.alpha, last.rho)
        is_whole = bool(np.all(sigma[inside] == 1.0))
        share = sigma[inside][columns.atom]
        found = quick.by_newton(
            (columns.ids, columns.scale * np.sqrt(share), share), tol, enough - fixed, start,
            lambda w, b: self._evaluate_weights(inside, columns.ids, w, b, None if is_whole else sigma[inside]),
            is_only=not is_whole,
        )  # fmt: skip
        if found is not None:
            return found
        # A cut of α = 0 is one, too.
        if not is_whole:
            return self._of_nothing(columns.ids.size)
        solver = copy.copy(relaxed)
        solver.must_stop = self.must_stop
        solved = solver.solve(sigma, sigma, tol, lambda lower, upper: lower >= enough)
        w, value = self._evaluate_weights(inside, solved.ids, solved.w, solved.b)
        alpha, q = decode_dual(solved.cut.dual), int(solved.cut.dual[1])
        return SVM(w, solved.b, alpha, value, solved.lower - fixed, 0.5, solved.steps, q)

    def _of_nothing(self, count: int) -> SVM:
        """Weights of 0, no intercept, and α = 0: where no better is found beside a fractional selection."""
        problem = self.problem
        value = float(self.loss.value(np.zeros(problem.data.n_samples), problem.c_i))
        return SVM(np.zeros(count), 0.0, np.zeros(problem.dual_size), value, 0.0, 0.5, 0)

    def _evaluate_weights(
        self, atoms: Integers, ids: Integers, w: Array, b: float, sigma: Array | None = None
    ) -> tuple[Array, float]:
        """Weights of the columns of some atoms brought into the rows, and what they cost beside the atoms themselves.

        `sigma` is that of the atoms where some are fractional: the ends of their weights are by so much nearer.
        """
        w = self._brought_in(atoms, ids, w, sigma)
        value = self._objective_value(atoms, ids, w, b, sigma)
        # Numbers too far apart: no weights at all keep every row.
        if not math.isfinite(value):
            w = np.clip(np.zeros(w.size), *self.problem.regulariser.at(ids).ends)
            value = self._objective_value(atoms, ids, w, b, sigma)
        return w, value

    def _objective_value(self, atoms: Integers, ids: Integers, w: Array, b: float, sigma: Array | None) -> float:
        """½ Σ w²/σ and the loss; infinite where a row over the weights is broken."""
        problem = self.problem
        distinct, total = merge_columns(ids, w)
        if not problem.ends.hold(distinct, total / problem.data.scale[distinct]):
            return math.inf
        part = np.ones(atoms.size) if sigma is None else sigma
        value, _ = problem.value_at(atoms, distinct, CompensatedWeights.of(total, b), part, beside=False)
        return value

    def _brought_in(self, atoms: Integers, ids: Integers, w: Array, sigma: Array | None) -> Array:
        """Weights of the columns of some atoms, in the rows over the weights and between their bounds.

        Of a column that stands in several atoms the weights count by their sum, and are moved in proportion: where the
        rows leave that sum nothing, all of them are 0.
        """
        distinct, place = np.unique(ids, return_inverse=True)
        total = np.bincount(place, w, minlength=distinct.size).astype(float)
        low, high = self.problem.regulariser.at(distinct).ends
        if sigma is not None and not self.problem.regulariser.is_ridge:
            room = column_shares(self.atoms.columns(atoms), distinct, sigma)
            low, high = low * room, high * room
        moved = self.problem.ends.brought_in(distinct, total, (low, high))
        if distinct.size == ids.size:
            return np.asarray(moved[place])
        apart = moved / np.bincount(place)
        factor = np.divide(moved, total, out=np.zeros(total.size), where=total != 0.0)
        return np.asarray(np.where(total[place] != 0.0, w * factor[place], apart[place]))

    def _solve_by_interior_point(self, svm: SVM, sigma: Array, tol: float) -> SVM:
        """The SVM by the interior point, where Newton's steps stalled (weights of all sizes, columns of large mean)."""
        solved = boolean.Boolean(self.problem, self.must_stop).solve(sigma, sigma, tol)
        if not solved.upper - solved.lower < svm.gap * abs(solved.upper):
            return svm
        base = float(self.problem.penalty @ sigma)
        q = int(solved.cut.dual[1])
        alpha = decode_dual(solved.cut.dual)
        return SVM(solved.w, solved.b, alpha, solved.upper - base, solved.lower - base, svm.rho, svm.steps, q)

    def kept(self) -> Callable[[], Arrays]:
        """What makes arrays of where the next solve begins, as it is now."""
        return partial(_begun_at, self._last, self._ids, self.count)

    def take_up(self, kept: Mapping[str, npt.NDArray[Any]]) -> None:
        """Begin the next solve where `kept` says.

        Raises
        ------
        ValueError
            That is no place to begin from.
        """
        self.count = int(kept["warm_count"])
        self.start_cold()
        if "warm_w" not in kept:
            return
        ids, w, alpha = kept["warm_ids"], kept["warm_w"], kept["warm_alpha"]
        b, rho = kept["warm_numbers"].tolist()
        check_positions(ids, self._weights.size)
        if (
            w.shape != ids.shape
            or alpha.shape != (self.problem.dual_size,)
            or not all(np.isfinite(one).all() for one in (w, alpha, b, rho))
        ):
            raise ValueError("a warm start is of other columns or samples")
        self._weights[:] = 0.0
        self._weights[ids], self._ids = w, ids
        self._last = SVM(np.array(w), b, np.array(alpha, dtype=float), np.nan, np.nan, rho, 0)

    def start_cold(self) -> None:
        """Begin the next solve cold: where the last had no columns, its ρ is of an end that the next is far from."""
        self._last = None

    def weights(self) -> Array:
        """‖w_g‖ of every atom at the last solve, shape (count,)."""
        return self._sizes.copy()


def _begun_at(last: SVM | None, ids: Integers, count: int) -> Arrays:
    """A warm start as arrays."""
    made: Arrays = {"warm_count": np.array(count)}
    if last is None:
        return made
    return made | {
        "warm_ids": ids, "warm_w": last.w, "warm_alpha": last.alpha, "warm_numbers": np.array([last.b, last.rho])
    }  # fmt: skip
