"""The relaxed master of Benders' decomposition (Aytug 2015, RMP): HiGHS LPs in one branch-and-cut tree.

    RMP  min c'σ + d'z + η  s.t.  (σ, z) ∈ S,  η ≥ g(α_s) − ½ s(α_s)'σ for every stored cut s

One LP is kept alive; cuts are added to it as rows and hold in every node, so no node is ever solved
twice for want of a cut. Bounds never rest on HiGHS's word: from the LP's multipliers (μ for the cuts,
y for the rows of S) the combined cut and the rows are summed again here,

    Σ μ_s g_s + y'(row bounds) + Σ_j min over the node's box of (c − ½ Σ μ_s s_s − A'y)_j σ_j,

which is a lower bound for any μ ≥ 0 with Σμ = 1 and any y (Neumaier and Shcherbina 2004).
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from mipfs.drivers.master_node import CutPoint, MasterNode
from mipfs.errors import UndecidedError
from mipfs.inner.epigraph import Epigraph
from mipfs.kernels.bound import add_down, gains, rounded_down, trade_gains
from mipfs.plumbing.arrays import Array, Integers, Mask
from mipfs.plumbing.forget import forget
from mipfs.plumbing.own_threads import in_own_thread
from mipfs.proof.cuts import Cut, CutPool
from mipfs.proof.evidence import Evidence, EvidenceTree
from mipfs.proof.multipliers import broken_row, farkas_multipliers
from mipfs.proof.proof import Multipliers
from mipfs.selection.model import SelectionModel, selection_model
from mipfs.selection.selection import Selection, lagrangian_bound
from mipfs.settings import MasterSettings
from mipfs.solvers import highs

NO_BASIS: highs.Statuses = np.empty(0, dtype=np.int8)


class Master:
    """The relaxed master and its tree.

    Parameters
    ----------
    selection : Selection
    penalty : (p,) c of (P)
    pool : CutPool with at least one cut
    scale : float > 0
        Size of the objective; the LP is solved in units of it.
    inner : (p,) a point of the polytope of S to stabilise the first cuts
    record : EvidenceTree, optional, keeps what the closed nodes rest on
    start : a bound on all of S, and what it rests on, optional
    settings : MasterSettings

    Attributes
    ----------
    floor, closed_at : float, the least bound of the nodes that are done, and of those that more could be said of
    """

    def __init__(
        self,
        selection: Selection,
        penalty: Array,
        pool: CutPool,
        scale: float,
        inner: Array,
        *,
        record: EvidenceTree | None = None,
        start: tuple[float, Evidence] | None = None,
        settings: MasterSettings,
    ) -> None:
        self.record = record
        self.settings = settings
        self.selection = selection
        self.penalty = penalty
        self.extra_cost = selection.rows.extra.cost
        self._beside = 0.0  # d'z at the last LP
        self.pool = pool
        self.scale = scale
        self._oracle = selection.oracle()
        self._make_lp(np.arange(len(pool)), np.zeros(len(pool), dtype=np.int64), (NO_BASIS, NO_BASIS))
        self._worked = 0
        self._order = itertools.count()
        self._heap: list[tuple[float, int, MasterNode]] = []
        self._plunge: MasterNode | None = None
        self._current: MasterNode | None = None
        self.floor = self.closed_at = math.inf
        self.n_nodes = self.n_lps = 0
        lb, ub = selection.sigma_bounds()
        bound, evidence = (-math.inf, None) if start is None else start
        self._push_node(MasterNode(bound, lb.astype(np.int8), ub.astype(np.int8), inner, evidence=evidence))

    def _make_lp(self, cuts: Integers, idle: Integers, basis: tuple[highs.Statuses, highs.Statuses]) -> None:
        """Make the LP, whose rows are these cuts, at a basis."""
        self._epigraph = Epigraph(self.selection, self.penalty, self.scale, relaxed=True)
        self._model, self._lp, self._n_rows = self._epigraph.model, self._epigraph.program, self._epigraph.first
        self._cuts: list[int] = cuts.tolist()
        self._row_scales = self._epigraph.add_all(self.pool.constants[cuts], self.pool.slopes[cuts])
        self._idle = idle.copy()
        self._lp.begin_at(*basis)
        self._made_at: tuple[highs.Statuses, highs.Statuses] | None = basis

    def comes_to_rest(self, numbers: int) -> bool:
        """Make the LP anew where it stands, now and then; `numbers` are what the last cut has read of the data.

        What HiGHS says next then depends on its rows and its basis alone: of the bases that it has seen before it keeps
        factors and weights, which are no part of a state. By the work that was done, not by the clock, so that a run
        that goes on comes to rest where another one did.
        """
        settings = self.settings
        self._worked += settings.step_numbers + numbers
        if self._worked < settings.rest * (settings.step_numbers + len(self._cuts) * (self.penalty.size + 1)):
            return False
        self._worked = 0
        self._oracle.drop_solvers()
        forget(self, type(self)._rows_alone)
        self._make_lp(np.array(self._cuts, dtype=np.int64), self._idle, self._lp.basis())
        return True

    @property
    def bound(self) -> float:
        """Lower bound on (P): the least bound over open and closed nodes."""
        waiting = [node.bound for node in (self._current, self._plunge) if node is not None]
        if self._heap:
            waiting.append(self._heap[0][0])
        return min(waiting, default=math.inf) if not math.isfinite(self.floor) else min([*waiting, self.floor])

    @property
    def exhausted(self) -> bool:
        """Whether the tree has no open node any more."""
        return not self._heap and self._plunge is None and self._current is None

    def add(self, cut: Cut) -> None:
        """Add a Benders cut as a row."""
        self._insert_cut(self.pool.add(cut))

    def learn(self, separated: Array, upper: float, weights: Array) -> None:
        """What the subproblem said at the last point: its value (with penalties) and |w| there."""
        if self._current is not None:
            self._current.inner = separated
            self._current.upper = upper + self._beside
            self._current.weights = weights

    @in_own_thread
    def relax(
        self,
        cutoff: float,
        must_stop: Callable[[], bool],
        deadline: float | None,
        is_done: Callable[[MasterNode], bool] = lambda node: False,
    ) -> CutPoint | None:
        """Solve node LPs until one wants a cut; None when the tree is exhausted or the run must stop.

        Parameters
        ----------
        cutoff : float
            Nodes whose bound reaches it are closed.
        is_done : callable
            Whether a node can be closed below it, for nothing in it is asked for.
        """
        self._made_at = None
        while not must_stop():
            if self._current is None:
                self._current = self._pop_node(cutoff)
                if self._current is None:
                    return None
                self.n_nodes += 1
                if self._has_no_whole_numbers(self._current):
                    continue
            node = self._current
            if not node.free.any():
                leaf = self._ask_at_leaf(node, cutoff, must_stop)
                if leaf is not None:
                    return leaf
                continue
            if is_done(node):
                self._close(node)
                continue
            sigma = self._solve(node, cutoff, must_stop, deadline)
            if sigma is None or not node.free.any():
                continue
            integral = bool(np.all(np.minimum(sigma, 1.0 - sigma) <= self.settings.integral))
            if node.rounds and (self._is_spent(node, cutoff) or (integral and self._is_known(node, sigma))):
                self._branch_node(node, sigma)
                continue
            node.previous = node.bound
            node.rounds = node.rounds + 1
            if integral:
                sigma = np.rint(sigma)
                return CutPoint(sigma, sigma, True)
            return CutPoint(sigma, 0.5 * (sigma + self._inner_point(node)), False)
        return None

    def _ask_at_leaf(self, node: MasterNode, cutoff: float, must_stop: Callable[[], bool]) -> CutPoint | None:
        """A node with one selection left: ask once for its cut, then close it; drop it where S forbids it."""
        sigma = node.lb.astype(float)
        is_allowed = self._is_allowed(sigma > 0.5)
        # Nothing was solved: the node's own bound stands.
        if is_allowed is None:
            self._close(node, is_final=True)
            return None
        if not is_allowed:
            if not self._is_empty(node) and not self._refute(node, None):
                self._close(node, is_final=True)
            return None
        if self.extra_cost.any():
            return self._leaf_with_costs(node, cutoff, must_stop)
        best = int(np.argmax(self.pool.values(sigma)))
        gain = gains(self.pool.slopes[best, node.lb > 0], self.penalty[node.lb > 0])
        bound = add_down(float(self.pool.constants[best]), -gain)
        if bound > node.bound:
            node.bound = bound
            node.evidence = Evidence(np.array([best]), np.ones(1))
        if node.settled or node.bound >= cutoff:
            self._close(node, is_final=node.settled)
            return None
        node.settled = True
        return CutPoint(sigma, sigma, True)

    def _leaf_with_costs(self, node: MasterNode, cutoff: float, must_stop: Callable[[], bool]) -> CutPoint | None:
        """A selection beside which extra variables cost something: once its cut is there, a tree over these closes it.

        The leaves of that tree all rest on the selection's best cut, each on multipliers of its own.
        """
        sigma = node.lb.astype(float)
        if not node.settled:
            node.settled = True
            return CutPoint(sigma, sigma, True)
        if must_stop():
            return None
        assert self.record is not None
        best = int(np.argmax(self.pool.values(sigma)))
        constant = float(self.pool.constants[best])
        cost = -gains(self.pool.slopes[best], self.penalty)
        evidence = Evidence(np.array([best]), np.ones(1))
        ends = node.bound - constant, cutoff - constant
        shown = self.record.close_over_rows(node, evidence, sigma, cost, *ends)
        if shown > -math.inf:
            node.bound = add_down(constant, shown)
            self._note_closed(node.bound, is_final=True)
            self._current = None
        elif not must_stop():
            self._close(node, is_final=True)
        return None

    def _is_allowed(self, sigma: Mask) -> bool | None:
        """Whether a selection is allowed; None where that remains open."""
        try:
            return self._oracle.contains(sigma)
        except UndecidedError:
            return None

    def _close(self, node: MasterNode, *, is_final: bool = False) -> None:
        """Keep the bound of a node that is done; `is_final` where nothing can lift it further."""
        self._note_closed(node.bound, is_final=is_final)
        if self.record is not None:
            self.record.close(node)
        self._current = None

    def _note_closed(self, bound: float, *, is_final: bool = False) -> None:
        self.floor = min(self.floor, bound)
        if not is_final:
            self.closed_at = min(self.closed_at, bound)

    def _refute(self, node: MasterNode, ray: Multipliers | None) -> bool:
        """Drop a node without any selection, by its cardinality or by a Farkas ray; whether that could be shown."""
        if self.record is not None and not self.record.refute(node, ray):
            return False
        self._current = None
        return True

    def _has_no_whole_numbers(self, node: MasterNode) -> bool:
        """Whether no whole numbers satisfy the rows in a node; then it is dropped."""
        whole = self.selection.whole_numbers
        combination = whole.refutation(*self.selection.box(node.lb, node.ub)) if whole.is_likely_to else None
        if combination is None:
            return False
        if self.record is not None:
            self.record.rule_out(node, combination)
        self._current = None
        return True

    def open_nodes(self) -> list[MasterNode]:
        """The nodes that are not done: the one in hand first, the one that comes next, those of least bound."""
        waiting = [node for node in (self._current, self._plunge) if node is not None]
        return [*waiting, *(node for _, _, node in sorted(self._heap, key=lambda entry: entry[:2]))]

    @property
    def rows(self) -> tuple[Integers, Integers]:
        """The cuts that are rows of the LP, and for how many LPs each was not binding."""
        return np.array(self._cuts, dtype=np.int64), self._idle.copy()

    @property
    def basis(self) -> tuple[highs.Statuses, highs.Statuses]:
        """Statuses of the columns and of the rows: those that the LP was made at, as long as it was not solved."""
        return self._lp.basis() if self._made_at is None else self._made_at

    @property
    def waiting(self) -> tuple[bool, bool]:
        """Whether a node is in hand, and whether one comes next."""
        return self._current is not None, self._plunge is not None

    def take_up(
        self,
        nodes: Sequence[MasterNode],
        waiting: tuple[bool, bool],
        rows: tuple[Integers, Integers],
        basis: tuple[highs.Statuses, highs.Statuses],
    ) -> None:
        """Go on with the open nodes, the rows and the basis of another master, in place of its own root."""
        left = list(nodes)
        self._current, self._plunge = (left.pop(0) if there else None for there in waiting)
        self._heap = []
        for node in left:
            self._push_node(node)
        self._make_lp(*rows, basis)

    def _inner_point(self, node: MasterNode) -> Array:
        """The node's inner point, moved into its box and under its cardinality row."""
        inner = np.clip(node.inner, node.lb, node.ub)
        if self.selection.M is not None:
            fixed = float(node.lb.sum())
            room = self.selection.M - fixed
            held = float(inner.sum()) - fixed
            if held > max(room, 0.0):
                inner = np.where(node.free, inner * max(room, 0.0) / held, inner)
        return inner

    def _is_spent(self, node: MasterNode, cutoff: float) -> bool:
        """Whether more cuts at this node are not worth it."""
        root = node.depth == 0
        settings = self.settings
        if node.rounds >= (settings.root_rounds if root else settings.rounds):
            return True
        if not math.isfinite(cutoff):
            cutoff = node.upper
        distance = max(cutoff - node.bound, 1e-300)
        if root:
            return node.upper - node.bound <= settings.root_progress * max(distance, abs(node.upper) * 1e-3)
        return node.rounds >= 2 and node.bound - node.previous < settings.progress * distance

    @staticmethod
    def _is_known(node: MasterNode, sigma: Array) -> bool:
        """Whether the last cut was taken at this selection: what its bound lacks is the SVM's own gap."""
        return bool(np.array_equal(np.rint(sigma), node.inner))

    def _solve(
        self, node: MasterNode, cutoff: float, must_stop: Callable[[], bool], deadline: float | None
    ) -> Array | None:
        """The node's LP with violated pool cuts; None when the node was closed or the run must stop."""
        self._lp.fix_columns(node.lb.astype(float), node.ub.astype(float))
        while True:
            solution = highs.solve(self._lp, deadline=deadline, stop=must_stop)
            self.n_lps += 1
            if solution.status == "infeasible" and self._is_empty(node):
                return None
            if must_stop():
                return None
            if solution.values is None or solution.status != "optimal":
                self._lp.start_cold()
                self._branch_node(node, self._inner_point(node))
                return None
            p = self.selection.n_features
            sigma = np.clip(solution.values[:p], 0.0, 1.0)
            self._beside = float(self.extra_cost @ (solution.values[p:-1] * self._model.columns))
            bound, reduced, evidence = self._safe_bound(node)
            if bound > node.bound:
                node.bound = bound
                node.evidence = evidence
            if node.bound >= cutoff:
                self._close(node)
                return None
            self._fix_by_reduced_cost(node, bound, reduced, cutoff, evidence)
            if not self._separate_pool(sigma, solution.values[-1]):
                return sigma

    def _is_empty(self, node: MasterNode) -> bool:
        """Whether a node whose LP is said to be infeasible holds no selection; then it is dropped.

        The rows alone must say so: at C of 1e9 the cuts beside them lead the solver astray.
        """
        selection = self.selection
        ray = broken_row(selection, node.lb, node.ub)
        empty = ray is not None or selection.exceeds(node.lb)
        if not empty and not selection.is_plain:
            self._rows_alone.program.fix_columns(node.lb.astype(float), node.ub.astype(float))
            if self._rows_alone.solve().status == "infeasible":
                ray = farkas_multipliers(self._rows_alone, selection, node.lb, node.ub)
                empty = ray is not None
        if empty:
            self._refute(node, ray)
        return empty

    @cached_property
    def _rows_alone(self) -> SelectionModel:
        """HiGHS's model of the relaxed S, without cuts."""
        return selection_model(self.selection, relaxed=True, presolve=False)

    def _safe_bound(self, node: MasterNode) -> tuple[float, Array, Evidence | None]:
        """The bound of the LP's multipliers, summed again, errors on the safe side; reduced costs (p,); evidence."""
        duals = self._lp.multipliers()
        mu = np.maximum(duals[self._n_rows :], 0.0) / self._row_scales
        self._idle = np.where(mu > 0.0, 0, self._idle + 1)
        binding = np.flatnonzero(mu)
        total = mu[binding].sum()
        if not total > 0.5:
            return -math.inf, np.zeros(self.selection.n_features), None
        share = mu[binding] / total
        ids = np.array(self._cuts)[binding]
        y = self._model.multipliers(duals) * self.scale
        slopes = 0.5 * (share @ self.pool.slopes[ids])
        cost = np.concatenate([self.penalty - slopes, self.extra_cost])
        # The proof stores these multipliers, so the bound must rest on them and not on the solver's.
        y = self.selection.all_rows.usable_multipliers(cost, y)
        bound, reduced = lagrangian_bound(cost, self.selection.all_rows, *self.selection.box(node.lb, node.ub), y)
        constants = share * self.pool.constants[ids]
        # the shares add up to one but for 1 + γ, and every slope is a sum of as many terms as the constant
        size = 3.0 * (float(np.abs(constants).sum()) + float(slopes.sum()))
        bound = add_down(bound, rounded_down(float(constants.sum()), size, ids.size))
        multipliers = None if self.selection.is_plain else y[int(self.selection.M is not None) :]
        return bound, reduced[: self.selection.n_features], Evidence(ids, share, multipliers)

    def _fix_by_reduced_cost(
        self, node: MasterNode, bound: float, reduced: Array, cutoff: float, evidence: Evidence | None
    ) -> None:
        """Fix features whose other value would lift the bound to the cutoff."""
        if not (math.isfinite(cutoff) and math.isfinite(bound)):
            return
        other = trade_gains(bound, np.abs(reduced), 0.0)
        fix = node.free & (other >= cutoff)
        if fix.any():
            self._note_closed(float(other[fix].min()))
            if self.record is not None and evidence is not None:
                features = np.flatnonzero(fix)
                self.record.fix(node, features, (reduced[features] < 0).astype(np.int64), evidence)
            node.ub[fix & (reduced > 0)] = 0
            node.lb[fix & (reduced < 0)] = 1

    def _separate_pool(self, sigma: Array, eta: float) -> bool:
        """Take violated cuts that had left back into the LP; whether there were any."""
        if len(self._cuts) == len(self.pool):
            return False
        violation = self.pool.values(sigma) / self.scale - eta
        violation[self._cuts] = -math.inf
        worst = np.argsort(-violation)[: self.settings.pool_cuts]
        worst = worst[violation[worst] > 1e-7]
        for i in worst:
            self._insert_cut(int(i))
        return worst.size > 0

    def _insert_cut(self, i: int) -> None:
        """Make cut i of the pool a row of the LP."""
        largest = self._epigraph.add(float(self.pool.constants[i]), self.pool.slopes[i])
        self._cuts.append(i)
        self._row_scales = np.append(self._row_scales, largest)
        self._idle = np.append(self._idle, 0)

    def _purge_idle_cuts(self) -> None:
        """Let cuts that have not been binding for long leave the LP."""
        idle = np.flatnonzero(self._idle > self.settings.idle)
        if idle.size < 20 or idle.size == len(self._cuts):
            return
        self._lp.delete_rows(idle + self._n_rows)
        keep = np.setdiff1d(np.arange(len(self._cuts)), idle)
        self._cuts = [self._cuts[i] for i in keep]
        self._idle = self._idle[keep]
        self._row_scales = self._row_scales[keep]

    def _branch_node(self, node: MasterNode, sigma: Array) -> None:
        """Split on the feature of largest |w_j| among the undecided ones, or of all; plunge into σ_j = 1."""
        self._current = None
        free = np.flatnonzero(node.free)
        if free.size == 0:
            self._close(node)
            return
        point = node.inner[free]
        undecided = np.minimum(point, 1.0 - point)
        fractional = np.minimum(sigma[free], 1.0 - sigma[free])
        size = np.abs(node.weights[free]) if node.weights.size else np.ones(free.size)
        j = int(free[np.lexsort((fractional, undecided, size, np.where(undecided > 0.02, size, 0.0)))[-1]])
        places = (0, 0) if self.record is None else self.record.split(node, j)
        for value in (0, 1):
            lb, ub = node.lb.copy(), node.ub.copy()
            lb[j] = ub[j] = value
            if self.selection.M is not None and lb.sum() >= self.selection.M:
                ub = lb.copy() if lb.sum() == self.selection.M else ub
            child = MasterNode(
                node.bound, lb, ub, node.inner, node.depth + 1, weights=node.weights,
                place=places[value], evidence=node.evidence,
            )  # fmt: skip
            if value:
                self._plunge = child
            else:
                self._push_node(child)
        self._purge_idle_cuts()

    def _push_node(self, node: MasterNode) -> None:
        heapq.heappush(self._heap, (node.bound, next(self._order), node))

    def _pop_node(self, cutoff: float) -> MasterNode | None:
        """The child of the last branching, or the open node of least bound."""
        while True:
            if self._plunge is not None:
                node = self._plunge
                self._plunge = None
            elif self._heap:
                node = heapq.heappop(self._heap)[2]
            else:
                return None
            if node.bound < cutoff:
                return node
            self._close(node)
