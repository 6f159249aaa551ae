"""The nodes of `branch`, with rows or without: who relaxes them, and the relaxation over the rows' polytope.

    bound = g(α) + y'(row bounds) + min over Σσ ≤ M of (c − ½ s(α) − A'y)'σ        for any α ∈ A and any multipliers y

The interior point finds α and y together, for whatever can be selected. In compiled code prices stand for the rows: at
y a node is a plain one with penalties c − A'y, which is solved from its parent's weights in a fraction of the time,
with the subtree below it. For single features y comes from the parent, takes a Newton step of its own where that pays,
or is found anew here where it seems to lose much (`mipfs.kernels.subtree`); ADMM on many nodes at once, for groups and
boxes, moves y with its iterations (`mipfs.kernels.batch`).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.branching import largest_weight
from mipfs.errors import UsageError
from mipfs.inner.array_batch import ArrayBatch
from mipfs.inner.batch import Batch, RelaxedRoot, leaves_less
from mipfs.inner.batch import carries as batch_carries
from mipfs.inner.boolean import Boolean, KnownClassifier, SolvedRelaxation
from mipfs.inner.boolean_node import (
    FREE,
    INSIDE,
    NEGLIGIBLE_SIGMA,
    OUTSIDE,
    BooleanRelaxation,
    LazyValue,
    States,
    WarmStart,
    carries,
    carries_columns,
)
from mipfs.inner.completions import NodeEnumerator
from mipfs.inner.footpath import Footpath, NodeTolerances, RowsOutcome
from mipfs.inner.long_root import LongRoot, is_large
from mipfs.inner.prices import Pricing, RowPrices
from mipfs.inner.propagation import Propagation
from mipfs.inner.tall import known_classifier, known_classifier_may_pay
from mipfs.inner.unit import NodeUnit, UnitResult
from mipfs.kernels.bound import add_down, gains, screen_atoms
from mipfs.kernels.subtree import STUCK
from mipfs.kernels.units import ExploredPieces
from mipfs.losses import get_loss
from mipfs.plumbing.arrays import Array, Integers
from mipfs.plumbing.forget import forget
from mipfs.plumbing.locks import ProcessLock
from mipfs.problem import Problem
from mipfs.proof.cuts import Cut, cut_of_dual, feasible_dual
from mipfs.selection.derived import ChvatalGomory
from mipfs.settings import BatchSettings, CompletionSettings, NodeSettings, RelaxationSettings

NOTHING: Integers = np.empty(0, dtype=np.int64)

STRENGTHENING = ProcessLock()
"""Who makes a node solver with more rows: threads may ask for one at the same time."""


def prices_suffice(problem: Problem) -> bool:
    """Whether the Newton kernel carries the problem once its rows are prices: it does so without extra variables."""
    assert problem.rows is not None
    if len(problem.rows) > 0:
        return len(problem.rows.extra) == 0 and carries_columns(problem)
    return carries(problem)


def is_rescued(problem: Problem) -> bool:
    """Whether Newton's steps take what ADMM does not bring home."""
    return problem.regulariser.is_monotone and prices_suffice(problem)


def choose_relaxation(problem: Problem, wanted: str | None = None) -> str:
    """What relaxes the nodes below the root: "kernels", "batch" or "interior", the first of these that can, or "array".

    The batch goes before the kernels where it leaves less (`mipfs.inner.batch.leaves_less`).

    Raises
    ------
    UsageError
        What is wanted cannot.
    """
    able = [name for name, can in (("kernels", prices_suffice), ("batch", batch_carries)) if can(problem)]
    able = able if problem.regulariser.is_monotone else []
    able.append("interior")
    loss = get_loss(problem.loss)
    is_plain = problem.selection.is_plain and not problem.weight_rows
    if "batch" in able and is_plain and loss.kernels is not None and loss.kernels.arrays is not None:
        able.append("array")
    if wanted is not None and wanted not in able:
        raise UsageError(f"relax = {wanted!r} does not take this problem; it is {' or '.join(map(repr, able))}")
    if wanted is not None:
        return wanted
    return "batch" if {"kernels", "batch"} <= set(able) and leaves_less(problem) else able[0]


class RowsRelaxation:
    """The node solver on the atoms that are still alive.

    Parameters
    ----------
    problem : Problem with a pointwise loss
    alive : (k,) positions of the atoms that no screening has excluded
    must_stop : asked in the middle of a solve
    stop : as for `BooleanRelaxation`, which solves the plain nodes
    settings : RelaxationSettings, optional
    rule : a branching rule, a compiled function of `mipfs.branching`
    nodes, batch : NodeSettings and BatchSettings, optional, of the compiled nodes
    completions : CompletionSettings, optional, of nodes that are enumerated
    relax : what relaxes the nodes, see `choose_relaxation`; by default the first that carries the problem
    device : where arrays lie, "cpu" or "cuda"
    """

    def __init__(
        self,
        problem: Problem,
        alive: Integers,
        must_stop: Callable[[], bool],
        stop: States,
        settings: RelaxationSettings = RelaxationSettings(),
        rule: Any = largest_weight.choose,
        nodes: NodeSettings = NodeSettings(),
        completions: CompletionSettings = CompletionSettings(),
        *,
        batch: BatchSettings = BatchSettings(),
        relax: str | None = None,
        device: str = "cpu",
    ) -> None:
        self.problem = problem
        self.alive = alive
        self.stop = stop
        self.must_stop = must_stop
        self.settings = settings
        self.rule = rule
        self.loss = get_loss(problem.loss)
        self.M = problem.M
        self.penalty = np.array(problem.penalty[alive])
        self.pricing = Pricing(problem.selection)
        self.propagation = Propagation(problem.selection, alive)
        self.nodes, self.batch, self.relax, self.device = nodes, batch, choose_relaxation(problem, relax), device
        self.kernel = self._subtree_relaxation(alive, stop)
        self.newton = self._fallback_relaxation(alive)
        self.of_completions = completions
        self._known: list[KnownClassifier | None] = []
        self._base = problem
        self._stronger = dict[tuple[int, int], RowsRelaxation]()

    def _subtree_relaxation(self, alive: Integers, stop: States) -> BooleanRelaxation | Batch | None:
        """What explores the subtrees below nodes."""
        if self.relax == "interior":
            return None
        if self.relax == "kernels":
            return BooleanRelaxation(self.problem, alive, stop, self.rule, self.nodes)
        given = self.problem, alive, stop, self.rule, self.nodes
        if self.relax == "array":
            return ArrayBatch(*given, self.batch.of_arrays()).on(self.device)
        return Batch(*given, self.batch)

    def _fallback_relaxation(self, alive: Integers) -> LazyValue[BooleanRelaxation] | None:
        """Newton's steps, for nodes that ADMM does not bring home: made when there is one."""
        if self.relax not in ("batch", "array") or not is_rescued(self.problem):
            return None
        given = self.problem, alive, np.zeros(1, dtype=np.int8), self.rule, self.nodes
        return LazyValue(lambda: BooleanRelaxation(*given))

    def stopped_by(self, stop: States) -> RowsRelaxation:
        """A copy that shares the columns and gives up when `stop` says so."""
        other = copy.copy(self)
        other.must_stop = lambda: bool(stop[0])
        other.stop = stop
        other.kernel = None if self.kernel is None else self.kernel.stopped_by(stop)
        return other

    def strengthen(self, derived: Sequence[ChvatalGomory]) -> RowsRelaxation:
        """The node solver with these rows behind those of its problem, in place of others that it had.

        Copies share what was made, the last two: units know fewer rows than the tree that merges them.
        """
        if len(derived) == len(self.problem.derived) - len(self._base.derived):
            return self
        key = len(derived), self.alive.size
        with STRENGTHENING:
            if key not in self._stronger:
                while len(self._stronger) > 1:
                    self._stronger.pop(next(iter(self._stronger)))
                self._stronger[key] = self._made_stronger(derived)
            other = copy.copy(self._stronger[key])
        other.must_stop, other.stop, other.kernel = self.must_stop, self.stop, self.kernel
        return other

    def _made_stronger(self, derived: Sequence[ChvatalGomory]) -> RowsRelaxation:
        other = self.with_rows_of(self._base.replace(derived=(*self._base.derived, *derived)))
        # It is made here once, before threads ask for it.
        _ = other.boolean
        return other

    def with_rows_of(self, problem: Problem) -> RowsRelaxation:
        """The node solver of a problem that differs in its rows alone."""
        other = copy.copy(self)
        other.problem = problem
        other.pricing = Pricing(other.problem.selection)
        other.propagation = Propagation(other.problem.selection, other.alive)
        other._known = []
        forget(other, RowsRelaxation.boolean)
        return other

    @cached_property
    def completions(self) -> NodeEnumerator:
        """What enumerates nodes; copies share it, if it was made before."""
        return NodeEnumerator(self.problem, self.alive, self.of_completions)

    @cached_property
    def boolean(self) -> Boolean:
        """The interior point; a solve takes a copy, for it keeps what it is at."""
        return Boolean(self.problem, self.must_stop, self.settings, self.pricing)

    @property
    def has_weights(self) -> bool:
        """Whether warm starts hold the weights of single features, not norms."""
        return isinstance(self.kernel, BooleanRelaxation)

    @property
    def _is_long(self) -> bool:
        """Whether the batch relaxes the root, too."""
        return isinstance(self.kernel, Batch) and self.kernel.is_long

    @property
    def _is_large(self) -> bool:
        """Whether the root is relaxed by the batch's iteration, where kernels relax the nodes."""
        return self.relax == "kernels" and is_large(self.problem, self.alive.size, self.batch)

    def _interior_solver(self) -> Boolean:
        solver = copy.copy(self.boolean)
        solver.must_stop = self.must_stop
        return solver

    def coarsen(self, loss: float) -> None:
        """Let explorations round dual vectors to fewer bytes, see `BooleanRelaxation.coarsen`."""
        if self.kernel is not None:
            self.kernel.coarsen(loss)

    def restricted(self, keep: Integers) -> RowsRelaxation:
        """The relaxation over some of the atoms that are alive, at the positions `keep` among them."""
        other = copy.copy(self)
        other.alive, other.penalty = self.alive[keep], self.penalty[keep]
        other.propagation = Propagation(self.problem.selection, other.alive)
        forget(other, RowsRelaxation.completions)
        other._stronger = {}
        if self.kernel is not None:
            other.kernel = other._subtree_relaxation(other.alive, self.kernel.stop)
            other.newton = other._fallback_relaxation(other.alive)
        return other

    def begin_root(self, states: States) -> None:
        """Find what `solve_root` begins with, where that may pay: a limit from here on leaves its bound."""
        after = self.propagation(states)
        may_pay = not self._is_long and known_classifier_may_pay(self.problem, self.settings)
        if after.broken is None and may_pay and not self._is_large:
            self._find_known(after.states)

    def _find_known(self, states: States) -> None:
        interior = self._interior_solver()
        self._known = [known_classifier(interior, self._box_of_states(states)[1])]

    def solve_root(self, states: States, tol: float) -> tuple[RowsOutcome, Cut]:
        """Solve a node to `tol` by the interior point; what it earned and its cut.

        Of dense data long on two sides by the batch, to `BatchSettings.near_root`, where it comes near.
        """
        relaxed = None
        if isinstance(self.kernel, Batch) and self.kernel.is_long:
            relaxed = self.kernel.relaxed(states, self.propagation.sides, self.must_stop)
        elif self._is_large:
            relaxed = LongRoot(self.problem, self.alive, self.batch).relaxed(states, self.must_stop)
        if relaxed is not None:
            return self._of_relaxed(states, relaxed)
        if not self._known:
            self._find_known(states)
        solved = self._interior_solver().solve(*self._box_of_states(states), tol, known=self._known.pop())
        return self._outcome_of_solve(solved, states, np.inf), solved.cut

    def _of_relaxed(self, states: States, relaxed: RelaxedRoot) -> tuple[RowsOutcome, Cut]:
        """What the dual vector of a root earns that the iteration of the batch relaxed."""
        whole, q = self.rounded(relaxed.alpha)
        prices = self.pricing.of(relaxed.y) or self.pricing.none
        bound, inside, out = self.bound(whole, q, prices, states, np.inf)
        outcome = RowsOutcome(bound, whole, q, relaxed.warm, relaxed.sigma, inside, out, relaxed.steps, prices)
        return outcome, self.cut(whole, q)

    def unit_size(self, count: int, least_units: int) -> int:
        """Nodes of a unit of work where `count` are handed out, which are to be `least_units` units."""
        return 1 if self.kernel is None else self.kernel.unit_size(count, least_units)

    @property
    def handed(self) -> int:
        """Nodes that are handed out at a time at least."""
        return self.kernel.settings.handed if isinstance(self.kernel, Batch) else 1

    @property
    def step(self) -> float:
        """What one of its steps counts for, in Newton steps."""
        return self.kernel.settings.step if isinstance(self.kernel, Batch) else 1.0

    @property
    def budget(self) -> int:
        """Nodes that are solved below one at most."""
        return 1 if self.kernel is None else self.kernel.budget

    @property
    def most_numbers(self) -> int:
        """Samples times atoms times nodes that are solved below one at most."""
        return max(1, self.problem.data.n_samples * self.alive.size) * self.budget

    def explore_unit(self, unit: NodeUnit) -> UnitResult:
        """Explore the subtrees below some nodes; those that one way does not bring home are the next one's."""
        if unit.told.derived:
            self = self.strengthen(unit.told.derived)
        if unit.is_enumerated:
            return self.completions.explore(unit, self.propagation.sides, self.stop)
        stages, own = list[ExploredPieces](), unit
        for one in self._relaxers_in_order(unit):
            asked = own.nodes, own.duals, own.limits, self.propagation.sides, own.prices, own.told.memory
            stages.append(one.explore_all(*asked))
            if not np.any(stages[-1].back.heads["why"] == STUCK):
                break
            own = own.stuck(stages[-1])
        return UnitResult(stages[0], stages[1:])

    def _relaxers_in_order(self, unit: NodeUnit) -> Iterator[BooleanRelaxation | Batch | Footpath]:
        """Who relaxes the nodes of a unit, and whoever takes over what the one before does not bring home.

        Prices that seem to lose much are found anew by the interior point alone.
        """
        if self.kernel is not None:
            yield self.kernel
            if self.newton is not None and not unit.is_dear:
                yield self.newton().stopped_by(self.stop)
        yield self.footpath

    @property
    def ways(self) -> list[str]:
        """What relaxes nodes, by their names as of `choose_relaxation`: each what the one before does not bring
        home.
        """
        first = [] if self.kernel is None else [self.relax]
        return [*first, *["kernels"] * (self.newton is not None), "interior"]

    @property
    def footpath(self) -> Footpath:
        """What relaxes nodes by the interior point, one after the other."""
        return Footpath(self.problem, self.alive, self.stop, self.explore, self.rule, self.nodes)

    def explore(self, states: States, warm: WarmStart, alpha: Array, ask: NodeTolerances) -> RowsOutcome:
        """Solve the relaxation of a node by the interior point, to a tolerance or until its fate is clear.

        Parameters
        ----------
        states : (k,) FREE, INSIDE or OUTSIDE of the alive atoms
        warm, alpha, ask : of the parent
        """
        cutoff, share = ask.cutoff, ask.share
        if len(self.problem.selection.rows):
            low, high = self._box_of_states(states)
            whole, q = self.rounded(alpha)
            cost = -gains(self.cut(whole, q).slopes, self.problem.penalty)
            prices, ray = self.pricing.by_lp(cost, low, high)
            sigma = np.zeros(self.alive.size)
            if ray is not None:
                return RowsOutcome(-np.inf, whole, q, warm, sigma, NOTHING, NOTHING, 0, self.pricing.none, ray=ray)
            if prices is not None:
                bound, goes_in, goes_out = self.bound(whole, q, prices, states, cutoff)
                if bound >= cutoff:
                    return RowsOutcome(bound, whole, q, warm, sigma, goes_in, goes_out, 0, prices)

        def enough(lower: float, upper: float) -> bool:
            return lower >= cutoff or (upper < cutoff and upper - lower <= share * (cutoff - upper))

        solved = self._interior_solver().solve(*self._box_of_states(states), ask.tol, enough)
        return self._outcome_of_solve(solved, states, cutoff)

    def bound(
        self, whole: Integers, q: int, prices: RowPrices, states: States, cutoff: float
    ) -> tuple[float, Integers, Integers]:
        """The node's bound by a dual vector and prices, and which free atoms it fixes in and out at the cutoff."""
        g, s = self.scores(whole, q)
        gain = gains(s, prices.penalties(self.problem.penalty)[self.alive])
        inside, free = np.flatnonzero(states == INSIDE), np.flatnonzero(states == FREE)
        return screen_atoms(add_down(g, prices.constant), gain, inside, free, self.M, cutoff)

    def bound_selection(self, alpha: Array, states: States) -> tuple[float, Integers, int]:
        """What the dual vector of an SVM proves of the one selection that a node holds, and that vector on the grid."""
        whole, q = self.rounded(alpha)
        only = np.where(states == INSIDE, INSIDE, OUTSIDE).astype(np.int8)
        return self.bound(whole, q, self.pricing.none, only, np.inf)[0], whole, q

    def scores(self, whole: Integers, q: int) -> tuple[float, Array]:
        """g rounded down and s rounded up (k,) of a dual vector, on the alive atoms."""
        if isinstance(self.kernel, BooleanRelaxation):
            return self.kernel.scores(whole, q)
        cut = self.cut(whole, q)
        return cut.constant, cut.slopes[self.alive]

    def cut(self, whole: Integers, q: int) -> Cut:
        """The Benders cut of a dual vector."""
        return cut_of_dual(self.problem, (whole, q))

    def rounded(self, alpha: Array) -> tuple[Integers, int]:
        """The dual vector on the grid on which box and y'α = 0 hold exactly."""
        return feasible_dual(self.problem, alpha)

    def _box_of_states(self, states: States) -> tuple[Array, Array]:
        low, high = np.zeros(self.problem.atoms.count), np.zeros(self.problem.atoms.count)
        low[self.alive], high[self.alive] = states == INSIDE, states != OUTSIDE
        return low, high

    def _outcome_of_solve(self, solved: SolvedRelaxation, states: States, cutoff: float) -> RowsOutcome:
        assert solved.cut.dual is not None
        whole, q = solved.cut.dual
        prices = self.pricing.of(solved.multipliers)
        assert prices is not None
        bound, goes_in, goes_out = self.bound(whole, q, prices, states, cutoff)
        b = self.kernel.intercept(solved) if isinstance(self.kernel, Batch) else solved.b
        warm = WarmStart(self._alive_weights(solved), b, 0.5)
        return RowsOutcome(bound, whole, q, warm, solved.sigma[self.alive], goes_in, goes_out, solved.steps, prices)

    def _alive_weights(self, solved: SolvedRelaxation) -> npt.NDArray[np.float32]:
        """Weights of the alive features, or norms of the alive atoms."""
        if not self.has_weights:
            return solved.sizes[self.alive].astype(np.float32)
        w = np.zeros(self.problem.atoms.count, dtype=np.float32)
        w[solved.ids] = np.where(solved.sigma[solved.ids] > NEGLIGIBLE_SIGMA, solved.w, 0.0)
        return np.asarray(w[self.alive])
