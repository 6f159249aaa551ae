"""Incumbents: growing a support, rounding a relaxed σ, splicing, and a swap search around the best support."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.inner.boolean_node import WarmStart
from mipfs.inner.subproblem import SolvedSubproblem, Subproblem
from mipfs.kernels.bound import add_down, gains
from mipfs.plumbing.arrays import Array, Integers, Mask, replace_at, scatter
from mipfs.proof.cuts import CutPool
from mipfs.proof.row_tree import least_cost
from mipfs.run.incumbent import Incumbent
from mipfs.run.near_optimal import (
    SEARCH_ALLOWANCE,
    EvaluatedSupports,
    SideSupports,
    check_packed,
    costs_something,
)
from mipfs.run.outcome import SupportValue
from mipfs.run.run import Run
from mipfs.run.validation import Validator
from mipfs.svm.solver import ColumnShift

Listed = list[tuple[Mask, SupportValue]]

SHARP_GAP = 1e-12
"""Relative gap of the classifier that takes the incumbent's place because it needs fewer features."""


class Supports:
    """Evaluates binary selections and offers them to the run.

    Parameters
    ----------
    run : Run
    subproblem : Subproblem
    tol : float, relative gap of the evaluations
    validator : Validator, optional
        Sees every classifier.
    beside : Supports, optional
        Those of a run that this one is beside: what these have evaluated counts as seen (`take_over`).
    """

    def __init__(
        self,
        run: Run,
        subproblem: Subproblem,
        tol: float,
        validator: Validator | None = None,
        beside: Supports | None = None,
    ) -> None:
        self.run = run
        self.subproblem = subproblem
        self.tol = tol
        self.validator = validator
        self.pool = CutPool(run.problem)
        self.found: EvaluatedSupports = EvaluatedSupports(run) if beside is None else SideSupports(run, beside.found)
        self._beaten: dict[bytes, float] = {}
        self._known: Mapping[bytes, float] = {} if beside is None else beside._beaten
        self._count = subproblem.count
        self._padded: dict[bytes, tuple[Mask, Mask]] = {}

    def evaluate(self, sigma: Mask, enough: float = np.inf) -> SolvedSubproblem | None:
        """Solve at a selection of S and offer its classifier; None when that was done before.

        It is given up once its value is known to be `enough` at least, and no less than what is wanted.
        """
        key = np.packbits(sigma).tobytes()
        if enough < np.inf:
            enough = max(enough, self.cutoff)
        if key in self.found or max(one.get(key, -np.inf) for one in (self._beaten, self._known)) >= enough:
            return None
        extra = self.extra_cost(sigma)
        solved = self.subproblem.solve(sigma.astype(float), self.tol, enough - extra)
        if solved.lower + extra >= enough:
            self._beaten[key] = solved.lower + extra
        else:
            self._keep_support(sigma, solved)
        return solved

    def take_over(self, other: Supports) -> None:
        """Take over what other supports have found, beside these, since this was last done."""
        assert isinstance(other.found, SideSupports)
        for key, value in other.found.items():
            if key not in self.found:
                self.found.add(key, value)
        other.found.forget()
        for key, lower in other._beaten.items():
            self._beaten[key] = max(lower, self._beaten.get(key, -np.inf))
        other._beaten.clear()
        self.pool.take(other.pool)
        self.subproblem.count += other.subproblem.count - other._count
        other._count = other.subproblem.count
        best = other.run.incumbent
        if best is not None and other.run.objective < self.run.objective:
            self.run.offer(best.selected, best.w, best.b)

    def offer(self, sigma: Mask, solved: SolvedSubproblem) -> None:
        """Offer a subproblem that was solved at a binary σ, if σ is in S; what is listed is told apart by the best."""
        if self.was_seen(sigma):
            if self.run.wants_all:
                self.found.improve(
                    sigma,
                    self.run.offer(solved.ids, solved.svm.w, solved.svm.b),
                    self._proven_lower_bound(sigma, solved),
                )
        elif self.run.oracle.surely_contains(sigma):
            self._keep_support(sigma, solved)

    def extra_cost(self, sigma: Mask) -> float:
        """What the extra variables cost at a selection; 0 where they cost nothing, or none is found."""
        costs = self.run.problem.selection.extra_costs
        found = 0.0 if costs is None else costs.of(np.flatnonzero(sigma))
        return found if np.isfinite(found) else 0.0

    def _proven_lower_bound(self, sigma: Mask, solved: SolvedSubproblem) -> float:
        """What is proven of a selection: by its dual vector, and of its extra variables, where a list asks for it."""
        if not (self.run.wants_all and self.run.problem.has_extra_costs):
            return solved.lower
        return add_down(solved.lower, least_cost(self.run.problem.selection, sigma))

    def round(self, scores: Array, until: float = np.inf) -> None:
        """Evaluate the selection of S of largest total score, unless it is known to be above `until`."""
        sigma = self.run.oracle.repair(scores)
        if sigma is not None:
            self.evaluate(sigma, np.inf if self.validator is not None else until)

    def offer_largest(self, atoms: Integers, warm: WarmStart, off: ColumnShift) -> None:
        """Offer the largest of the weights of some atoms as they are: an SVM on them may outlast a limit.

        Parameters
        ----------
        atoms : (k,) single features
        warm : their weights, and the intercept
        off : means of the columns: what is left out had its own in the intercept
        """
        problem = self.run.problem
        w = scatter(problem.atoms.count, atoms, warm.w)
        sigma = self.run.oracle.repair(np.abs(w))
        if sigma is not None:
            rest = np.flatnonzero(~sigma & (w != 0.0))
            b = warm.b + float((off[rest] - problem.data.center[rest]) @ w[rest]) if problem.bias else 0.0
            self.run.offer(np.flatnonzero(sigma), w[sigma], b)

    def grow(self) -> None:
        """Evaluate a support that is grown from what S forces in, by the scores at what there is so far.

        Half of what is still to come at a time; where M does not say how much that is, as much again as there is, while
        it pays. A few solves, whatever M is.
        """
        run = self.run
        problem = self.run.problem
        low, high = problem.selection.sigma_bounds()
        sigma = low > 0.5
        last = np.inf
        while not run.must_stop:
            solved = self.subproblem.solve(sigma.astype(float), self.tol)
            self.offer(sigma, solved)
            count = int(np.count_nonzero(sigma))
            most = max(1, count) if problem.M is None else -(-(problem.M - count) // 2)
            value = solved.value + self.extra_cost(sigma)
            if most <= 0 or (problem.M is None and value >= last):
                break
            last = value
            gain = np.where(sigma | (high < 0.5), -np.inf, gains(solved.cut.slopes, problem.penalty))
            best = np.argsort(-gain, kind="stable")[:most]
            best = best[gain[best] > 0.0]
            if not best.size:
                break
            sigma = replace_at(sigma, best, True)
        if not run.must_stop and not run.oracle.surely_contains(sigma):
            self.round(np.square(self.subproblem.weights()))

    def _keep_support(self, sigma: Mask, solved: SolvedSubproblem) -> None:
        key = np.packbits(sigma).tobytes()
        run = self.run
        objective = run.offer(solved.ids, solved.svm.w, solved.svm.b)
        idle = self._idle_atoms(solved, objective) if run.wants_all else np.empty(0, dtype=np.int64)
        self.found.add(key, SupportValue(objective, self._proven_lower_bound(sigma, solved), bool(idle.size)))
        if idle.size:
            without = np.zeros_like(sigma)
            without[idle] = True
            self._padded[key] = sigma, without
        if self.validator is not None:
            self.validator.see(run.problem.atoms.columns(solved.ids).ids, solved.svm.w, solved.svm.b)

    def _idle_atoms(self, solved: SolvedSubproblem, objective: float) -> Integers:
        """The atoms of no cost that S does not force in and whose weight is 0, as far as the value can tell.

        Without an atom of weights w_g the value is higher by ½‖w_g‖²/λ_g² at least: the objective is strongly convex.
        """
        problem = self.run.problem
        ids = solved.ids
        columns = problem.atoms.columns(ids)
        w = np.divide(solved.svm.w, columns.scale, out=np.zeros(columns.ids.size), where=columns.scale > 0.0)
        worth = 0.5 * np.bincount(columns.atom, np.square(w), ids.size)
        low = problem.selection.sigma_bounds()[0][ids]
        return np.asarray(
            ids[(worth <= SEARCH_ALLOWANCE * abs(objective)) & ~costs_something(problem)[ids] & (low < 0.5)]
        )

    def reduce(self) -> None:
        """Evaluate the smallest supports that those with features of weight 0 may be without these.

        One of the latter that turns out to be worth less than any of them counts for itself.
        """
        while self._padded and not self.run.must_stop:
            key, (sigma, idle) = self._padded.popitem()
            least = self._smallest_selection(sigma, idle)
            if np.array_equal(least, sigma):
                self.found.count(key)
                continue
            self.evaluate(least)
            if self.value(sigma) < self.value(least) - SEARCH_ALLOWANCE * abs(self.value(least)):
                self.found.count(key)

    def _smallest_selection(self, sigma: Mask, idle: Mask) -> Mask:
        """The smallest selection of S within `sigma` that has all of it but some idle atoms."""
        if self.run.problem.selection.is_plain:
            return sigma & ~idle
        inside, outside = np.flatnonzero(sigma & ~idle), np.flatnonzero(~sigma)
        least = self.run.oracle.minimise(idle.astype(float), inside.tolist(), outside.tolist())[0]
        return sigma if least is None else least

    def has_ties_only(self, inside: Mask, free: Mask, bound: float, sizes: Array | None = None) -> bool:
        """Whether a node can be closed, for all that it holds is counted: see `EvaluatedSupports.has_ties_only`.

        Parameters
        ----------
        inside, free : (count,) atoms that are fixed to 1, and those that may still be taken
        bound : float, of the node
        sizes : (count,) weights of its relaxation; where those of the free atoms vanish, what is inside is evaluated
        """
        run = self.run
        if not run.wants_all or not bound >= run.cutoff or not np.any(free):
            return False
        idle = sizes is not None and 0.5 * float(np.square(sizes[free]).max()) <= run.settings.listing.idle * abs(bound)
        if idle and not self.was_seen(inside) and run.oracle.surely_contains(inside):
            self.evaluate(inside)
            self.reduce()
        return self.found.has_ties_only(inside, free, bound)

    def listed(self) -> tuple[Listed, bool]:
        """The near-optimal supports as the run leaves them, its incumbent first, and whether none is missing."""
        self.reduce()
        listed = self.found.listed()
        complete = self.found.is_complete(listed) and not self._padded
        return self._after_incumbent(listed), complete

    def _after_incumbent(self, listed: Listed) -> Listed:
        """The list with the incumbent first, in place of which comes what it only adds features of weight 0 to."""
        run = self.run
        if run.incumbent is None or not listed:
            return listed
        first, before, was_optimal = listed[0][0], run.incumbent, run.is_optimal
        places = [k for k, (sigma, _) in enumerate(listed) if np.array_equal(np.flatnonzero(sigma), before.selected)]
        if places:
            first = listed[places[0]][0]
        else:
            solved = self.subproblem.solve(first.astype(float), SHARP_GAP)
            objective = run.problem.evaluate(solved.ids, solved.svm.w, solved.svm.b)
            run.incumbent = Incumbent(solved.ids, solved.svm.w, solved.svm.b, objective)
            if was_optimal and not run.is_optimal:
                run.incumbent = before
        least = run.objective
        others = [(sigma, replace(one, objective=max(one.objective, least))) for sigma, one in listed]
        return sorted(others, key=lambda entry: (entry[1].objective, entry[0] is not first))

    def was_seen(self, sigma: Mask) -> bool:
        """Whether the selection was evaluated before."""
        return np.packbits(sigma).tobytes() in self.found

    def value(self, sigma: Mask) -> float:
        """The objective of a selection that was evaluated."""
        return self.found[np.packbits(sigma).tobytes()].objective

    @property
    def cutoff(self) -> float:
        """Nodes are closed from here on: at the run's cutoff, or above the last support that is wanted."""
        return max(self.run.cutoff, self.found.cutoff)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """What was evaluated, as arrays, for the state of a run."""
        beaten = np.frombuffer(b"".join(self._beaten), dtype=np.uint8)
        return {
            **self.found.arrays(),
            "beaten_keys": beaten.reshape(len(self._beaten), -1) if beaten.size else np.empty((0, 1), dtype=np.uint8),
            "beaten_values": np.array([*self._beaten.values()], dtype=float),
            "padded": np.array([[*one] for one in self._padded.values()], dtype=np.bool_),
        }

    def take_up(self, kept: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go on with what `arrays` kept.

        Raises
        ------
        ValueError
            It is of other atoms.
        """
        count = self.run.problem.atoms.count
        self.found.take_up(kept)
        check_packed(kept["beaten_keys"], -(-count // 8))
        if kept["beaten_values"].ndim != 1 or (kept["padded"].size and kept["padded"].shape[1:] != (2, count)):
            raise ValueError("the supports that were given up are of another number of atoms")
        for key, lower in zip(kept["beaten_keys"], kept["beaten_values"].tolist(), strict=True):
            self._beaten[key.tobytes()] = lower
        for sigma, idle in kept["padded"]:
            self._padded[np.packbits(sigma).tobytes()] = sigma, idle

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
        value = self.value(sigma) if self.was_seen(sigma) else solved.value + self.extra_cost(sigma)
        scores: Array | None = solved.cut.slopes
        del solved  # its vectors over the samples: one solve after the other
        while scores is not None:
            sigma, scores, value = self._best_exchange(sigma, scores, self.subproblem.weights(), value, last)

    def _best_exchange(
        self, sigma: Mask, scores: Array, sizes: Array, value: float, last: int
    ) -> tuple[Mask, Array | None, float]:
        """The largest exchange that improves on `value`, the scores after it and its value; None when none does."""
        run = self.run
        inside, outside = np.flatnonzero(sigma), np.flatnonzero(~sigma)
        least = inside[np.argsort(0.5 * np.square(sizes[inside]) - run.problem.penalty[inside], kind="stable")]
        gain = gains(scores[outside], run.problem.penalty[outside])
        most = outside[np.argsort(-gain, kind="stable")[: inside.size]]
        size = min(-(-inside.size // 2), most.size)
        while size > 0 and not run.must_stop and self.subproblem.count < last:
            exchanged = sigma.copy()
            exchanged[least[:size]], exchanged[most[:size]] = False, True
            solved = self.evaluate(exchanged) if run.oracle.surely_contains(exchanged) else None
            if solved is not None and (found := self.value(exchanged)) < value:
                return exchanged, solved.cut.slopes, found
            solved = None
            size = size // 2
        return sigma, None, value
