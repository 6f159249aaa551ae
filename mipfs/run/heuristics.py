"""Incumbents: growing a support, rounding a relaxed σ, splicing, and a swap search around the best support."""

from __future__ import annotations

import sys
from bisect import insort
from itertools import islice

import numpy as np
import numpy.typing as npt

from mipfs.inner.subproblem import Solved, Subproblem
from mipfs.proof.cuts import CutPool
from mipfs.run import near_optimal
from mipfs.run.run import Run
from mipfs.run.swaps import FEW, MANY, Swaps
from mipfs.run.validation import Validator

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


class Supports:
    """Evaluates binary selections and offers them to the run.

    Parameters
    ----------
    run : Run
    subproblem : Subproblem
    tol : float, relative gap of the evaluations
    validator : Validator, optional
        Sees every classifier.
    """

    def __init__(self, run: Run, subproblem: Subproblem, tol: float, validator: Validator | None = None) -> None:
        self.run, self.subproblem, self.tol, self.validator = run, subproblem, tol, validator
        self.pool = CutPool(run.problem)
        self.found: dict[bytes, float] = {}
        self._beaten: dict[bytes, float] = {}
        self._values: list[float] = []

    def evaluate(self, sigma: Mask, enough: float = np.inf) -> Solved | None:
        """Solve at a selection of S and offer its classifier; None when that was done before.

        It is given up once its value is known to be `enough` at least, and no less than what is wanted.
        """
        key = np.packbits(sigma).tobytes()
        if enough < np.inf:
            enough = max(enough, self.cutoff)
        if key in self.found or self._beaten.get(key, -np.inf) >= enough:
            return None
        solved = self.subproblem.solve(sigma.astype(float), self.tol, enough)
        if solved.lower >= enough:
            self._beaten[key] = solved.lower
        else:
            self._keep(sigma, solved)
        return solved

    def offer(self, sigma: Mask, solved: Solved) -> None:
        """Offer a subproblem that was solved at a binary σ, if σ is in S."""
        if not self.was_seen(sigma) and self.run.oracle.contains(sigma):
            self._keep(sigma, solved)

    def round(self, scores: Array) -> None:
        """Evaluate the selection of S of largest total score."""
        sigma = self.run.oracle.repair(scores)
        if sigma is not None:
            self.evaluate(sigma)

    def grow(self) -> None:
        """Evaluate a support that is grown from what S forces in, by the scores at what there is so far.

        Half of what is still to come at a time; where M does not say how much that is, as much again as there is, while
        it pays. A few solves, whatever M is.
        """
        run, problem = self.run, self.run.problem
        low, high = problem.selection.sigma_bounds()
        sigma, last = low > 0.5, np.inf
        while not run.must_stop:
            solved = self.subproblem.solve(sigma.astype(float), self.tol)
            self.offer(sigma, solved)
            count = int(np.count_nonzero(sigma))
            most = max(1, count) if problem.M is None else -(-(problem.M - count) // 2)
            if most <= 0 or (problem.M is None and solved.value >= last):
                break
            last = solved.value
            gains = np.where(sigma | (high < 0.5), -np.inf, 0.5 * solved.cut.slopes - problem.penalty)
            best = np.argsort(-gains, kind="stable")[:most]
            best = best[gains[best] > 0.0]
            if not best.size:
                break
            sigma = sigma.copy()
            sigma[best] = True
        if not run.must_stop and not run.oracle.contains(sigma):
            self.round(np.square(self.subproblem.weights()))

    def _keep(self, sigma: Mask, solved: Solved) -> None:
        value = self.run.offer(solved.ids, solved.svm.w, solved.svm.b)
        self.found[np.packbits(sigma).tobytes()] = value
        insort(self._values, value)
        if self.validator is not None:
            columns = self.run.problem.atoms.columns(solved.ids)
            self.validator.see(columns.ids, solved.svm.w, solved.svm.b)

    def was_seen(self, sigma: Mask) -> bool:
        """Whether the selection was evaluated before."""
        return np.packbits(sigma).tobytes() in self.found

    @property
    def cutoff(self) -> float:
        """Nodes are closed from here on: at the run's cutoff, or above the last support that is wanted."""
        return max(self.run.cutoff, near_optimal.wanted_up_to(self.run, self._values))

    def splice(self, begin: Mask | None = None, most: int = sys.maxsize) -> None:
        """Exchange the features of a support that matter least for those outside that violate most, while it pays.

        Half of the support at a time, then half of that, down to one (Zhu et al. 2020, Algorithm 1); a feature inside
        is worth ½ w_j² − c_j, one outside ½ s_j − c_j. A few solves per improvement, whatever M is.

        Parameters
        ----------
        begin : (count,) bool, a selection of S; by default the incumbent's
        most : int, SVMs at most
        """
        run = self.run
        if run.incumbent is None or run.must_stop or most <= 0:
            return
        sigma = run.incumbent.sigma(run.problem.atoms.count) if begin is None else begin
        last = self.subproblem.count + most
        solved = self.subproblem.solve(sigma.astype(float), self.tol)
        self.offer(sigma, solved)
        value = self.found.get(np.packbits(sigma).tobytes(), solved.value)
        scores: Array | None = solved.cut.slopes
        del solved  # its vectors over the samples: one solve after the other
        while scores is not None:
            sigma, scores, value = self._exchanged(sigma, scores, self.subproblem.weights(), value, last)

    def _exchanged(
        self, sigma: Mask, scores: Array, sizes: Array, value: float, last: int
    ) -> tuple[Mask, Array | None, float]:
        """The largest exchange that improves on `value`, the scores after it and its value; None when none does."""
        run, penalty = self.run, self.run.problem.penalty
        inside, outside = np.flatnonzero(sigma), np.flatnonzero(~sigma)
        least = inside[np.argsort(0.5 * np.square(sizes[inside]) - penalty[inside], kind="stable")]
        gains = 0.5 * scores[outside] - penalty[outside]
        most = outside[np.argsort(-gains, kind="stable")[: inside.size]]
        size = min(-(-inside.size // 2), most.size)
        while size > 0 and not run.must_stop and self.subproblem.count < last:
            exchanged = sigma.copy()
            exchanged[least[:size]], exchanged[most[:size]] = False, True
            solved = self.evaluate(exchanged) if run.oracle.contains(exchanged) else None
            if solved is not None and (found := self.found[np.packbits(exchanged).tobytes()]) < value:
                return exchanged, solved.cut.slopes, found
            solved, size = None, size // 2
        return sigma, None, value

    def search(self, pool: CutPool, widths: tuple[int, ...] = (FEW, MANY), most: int = sys.maxsize) -> None:
        """Climb from the incumbent by drops, additions and swaps, for as long as that pays or for `most` SVMs."""
        if self.run.incumbent is not None:
            sigma = self.run.incumbent.sigma(self.run.problem.atoms.count)
            for _ in islice(Swaps(self, pool).climbing(sigma, widths), most):
                pass
