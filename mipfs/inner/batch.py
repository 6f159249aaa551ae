"""Nodes of `branch` relaxed many at a time by ADMM, and the subtrees below them: for every kind of single features and
groups, with the user's rows over σ as prices, and those over the weights as samples of infinite weight.

All nodes share the columns, so an iteration of B of them is a few matrix products with matrices that never change; what
a problem is stands in two proximal steps (`mipfs.kernels.batch`). Bounds are earned as everywhere: by a dual vector on
the dyadic grid, its scores in float64 with every rounding error on the safe side.

Products are made by one thread of BLAS, of shapes that depend on the unit of work alone: so do their bits, on one kind
of processor.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import boolean, int64
from scipy import linalg

from mipfs.atoms.features import centred_squares
from mipfs.branching import largest_weight
from mipfs.inner.boolean import SolvedRelaxation
from mipfs.inner.boolean_node import NO_ROWS, PLACES_PER_NODE, States, WarmStart, branching, coarser_grid
from mipfs.kernels import batch, subtree, units
from mipfs.kernels.batch_structures import (
    AliveAtoms,
    BatchMatrices,
    BatchProblem,
    BatchScratch,
    BatchShape,
    BatchSteps,
    ExplorationState,
    FinishedDuals,
    Lanes,
    ScoreTerms,
)
from mipfs.kernels.structures import (
    LIMITS,
    NO_MEMORY,
    DualGrid,
    ExplorationScratch,
    ExploredPiece,
    LossSamples,
    RowSides,
    only_read,
    steering_of,
)
from mipfs.kernels.units import ExploredPieces, FirstDuals, OpenNodes
from mipfs.kernels.weights_step import SigmaRows
from mipfs.losses import get_loss
from mipfs.plumbing.arrays import Array, Integers
from mipfs.pointers import Step
from mipfs.problem import Problem
from mipfs.proof.cuts import dual_top
from mipfs.regularisers.box import Box
from mipfs.settings import BatchSettings, NodeSettings
from mipfs.svm.dyadic import finest_bits
from mipfs.svm.solver import ColumnShift

MADE: dict[Any, BatchSteps] = {}
"""The steps in machine code, by their branching rule: everything else of them has one type."""
KINDS = "features", "scaled features", "groups", "tree"
"""Atoms whose columns are stored."""
MOST_NUMBERS, MOST_SQUARE = 2**26, 2**24
"""Numbers of the columns that are held twice, and of the matrix whose eigenvectors are."""
MOST_LONG, MOST_COLUMNS, MOST_SPREAD = 2**23, 2048, 1.0
"""Numbers of the columns, columns (whose eigenvectors take a second then), and spread of the logarithms of their norms
up to which the batch goes before the kernels, see `leaves_less`."""
MOST_HELD, LEAST_DEAR = 60.0, 1000
"""Loss weight times squared norm of a column up to which a dual box that is closed leaves the tree few nodes, and the
columns from which on eigenvectors take longer than those."""
FAR = 3e38
"""What is infinite, in float32."""
OF_ENDS = 5.0
"""How long the row of an end is, in A, in units of what rows of margins are on average."""
WIDEST = 1e12
"""The largest number of the columns, in units of the largest loss weight: squares of more leave float32."""

Handed = tuple[LossSamples, DualGrid, SigmaRows, npt.NDArray[Any], BatchProblem, ExploredPiece, ExplorationState]
"""What `mipfs.kernels.batch.explore` is handed."""


def takes(problem: Problem) -> bool:
    """Whether the batch knows the problem's kind: stored atoms, rows without extra variables, ½w² with or without a
    box, a loss that has a proximal step, and no numbers that leave float32."""
    loss, block = get_loss(problem.loss), problem.data.block()
    is_known = problem.regulariser.is_ridge or isinstance(problem.regulariser, Box)
    has_step = loss.pointwise and loss.kernels is not None and loss.kernels.proximal is not None
    is_stored = problem.atoms.kind in KINDS and block.is_stored and not len(problem.selection.rows.extra)
    is_near = problem.data.largest * math.sqrt(float(problem.c_i.max())) <= WIDEST
    return bool(has_step and is_known and is_stored and is_near)


def carries(problem: Problem) -> bool:
    """Whether the batch takes the problem, and its columns are few enough to be held once more."""
    if not takes(problem):
        return False
    n, count = problem.dual_size, problem.atoms.columns(np.arange(problem.atoms.count)).ids.size
    return n * count <= MOST_NUMBERS and min(n, count) ** 2 <= MOST_SQUARE


def is_long(problem: Problem, count: int, settings: BatchSettings) -> bool:
    """Whether data are dense and long on two sides, over `count` atoms: there an iteration on many nodes gains most."""
    return not problem.data.block().is_sparse and min(problem.data.n_samples, count) >= settings.long


def leaves_less(problem: Problem) -> bool:
    """Whether the batch leaves less than the kernels, of a problem that both take: of dense data long on two sides.

    Not where columns are more than samples, or of very different size: there an iteration brings little. And not where
    the tree ends in less time than the eigenvectors take: α ≤ tc holds the squares s_j small where c‖x_j‖² is.
    """
    data, count, loss = problem.data, problem.atoms.count, get_loss(problem.loss)
    is_small = count <= min(data.n_samples, MOST_COLUMNS) and data.n_samples * count <= MOST_LONG
    if not (is_small and is_long(problem, count, BatchSettings())):
        return False
    if not has_even_columns(problem):
        return False
    squares = centred_squares(data)
    held = float(problem.c_i.max()) * loss.max_slope * float(np.median(squares[squares > 0.0]))
    return not (loss.has_top and count >= LEAST_DEAR and held <= MOST_HELD)


def has_even_columns(problem: Problem) -> bool:
    """Whether the sizes of the columns are not very different."""
    squares = centred_squares(problem.data)
    sizes = np.log(squares[squares > 0.0])
    return bool(sizes.size) and 0.5 * float(sizes.std()) <= MOST_SPREAD


class RelaxedRoot(NamedTuple):
    """A node that was relaxed alone.

    alpha : (N,) its best dual vector;  warm : norms of the weights of the atoms, and the intercept
    sigma : (k,);  y : (rows,) multipliers of the user's rows;  steps : iterations
    """

    alpha: Array
    warm: WarmStart
    sigma: Array
    y: Array
    steps: int


class Batch:
    """The node solver on the atoms that are still alive, beside `mipfs.inner.boolean_node.BooleanRelaxation`.

    Parameters
    ----------
    problem : Problem with `carries`
    alive : (k,) positions of the atoms that no screening has excluded
    stop : (1,) int8, set from outside to give up in the middle of a node
    rule : a branching rule, a compiled function of `mipfs.branching`
    nodes : NodeSettings, optional, of what compiled nodes have in common
    settings : BatchSettings, optional

    Notes
    -----
    Holds the columns of the alive atoms in float64, as they are stored, and y∘(X − z) in float32; below both the ends
    of rows over the weights, which count as samples whose margin is d'w (N are both together). Of a group with
    ends that are no signs the iteration takes σ by the end of its first column alone: its points and bounds hold, but
    may not meet, and then the node goes to the interior point.
    """

    def __init__(
        self,
        problem: Problem,
        alive: Integers,
        stop: States,
        rule: Any = largest_weight.choose,
        nodes: NodeSettings = NodeSettings(),
        settings: BatchSettings = BatchSettings(),
    ) -> None:
        self.problem, self.alive, self.stop, self.rule = problem, alive, stop, rule
        self.nodes = nodes
        self.is_long = is_long(problem, alive.size, settings)
        self.settings = settings.of_long() if self.is_long else settings
        self._steering = steering_of(nodes)
        self.loss = get_loss(problem.loss)
        self.size = float(problem.c_i.max())
        self.bits, self.coarse = finest_bits(problem.data.n_samples), math.inf
        columns = problem.atoms.columns(alive)
        order = np.argsort(columns.atom, kind="stable")
        self._ids, self._scale = columns.ids[order], columns.scale[order]
        self._first = np.append(0, np.cumsum(np.bincount(columns.atom, minlength=alive.size)))
        self._off = ColumnShift(problem.data, problem.bias)
        self._ends_matrix = problem.ends.matrix[:, self._ids].toarray()
        self._end_sizes = self._sizes_of_ends()
        penalty = only_read(np.array(problem.penalty[alive], dtype=float))
        most = -1 if problem.M is None else problem.M
        self.given = BatchProblem(
            AliveAtoms(only_read(self._first), penalty, most),
            self._batch_shape(),
            *self._columns_and_spectrum(),
            steering_of(self.settings),
        )

    def _sizes_of_ends(self) -> Array:
        """The factor of every end of a row over the weights, in A: so that it is as long as `OF_ENDS` margins' rows."""
        lengths: Array = np.linalg.norm(self._ends_matrix * (self._scale * math.sqrt(self.size)), axis=1)
        if not lengths.size:
            return lengths
        squares = np.square(self._scale) * centred_squares(self.problem.data)[self._ids]
        margins = math.sqrt(self.size * float(squares.sum()) / self.problem.data.n_samples)
        return np.asarray(np.where(lengths > 0.0, OF_ENDS * margins / np.where(lengths > 0.0, lengths, 1.0), 1.0))

    def _batch_shape(self) -> BatchShape:
        """What all nodes share, beside matrices."""
        problem, settings, size = self.problem, self.settings, self.size
        root = math.sqrt(size)
        low, high = (end / root for end in self._ends_of_columns(problem.regulariser.ends))
        costs = np.asarray(problem.penalty[self.alive] / size)
        top = np.minimum(self.loss.top(problem.c_i) / size, FAR)
        most = max(1, self.alive.size // 4) if problem.M is None else max(1, min(problem.M, self.alive.size))
        low, high = np.maximum(low, -FAR), np.minimum(high, FAR)
        has_ends = bool(np.any((low != 0.0) & (low > -FAR)) or np.any((high != 0.0) & (high < FAR)))
        return BatchShape(
            only_read(self._first),
            _as_float32(low),
            _as_float32(high),
            _as_float32(costs),
            bool(np.any(costs != 0.0)),
            has_ends,
            _as_float32(problem.c_i / size),
            _as_float32(top),
            _as_float32(problem.data.y),
            np.float32(settings.of_weights * max(1, self.alive.size) / most),
            np.float32(settings.of_margins),
            np.float32(settings.over),
            problem.bias,
            _as_float32(-np.minimum(problem.ends.offsets * self._end_sizes, FAR)),
            only_read(problem.ends.offsets),
            only_read(self._end_sizes),
        )

    def _ends_of_columns(self, ends: tuple[Any, Any]) -> tuple[Array, Array]:
        """Ends of the weights of the columns in play, from those of all features."""
        p = self.problem.data.n_features
        low, high = (np.broadcast_to(np.asarray(end, dtype=float), p)[self._ids] for end in ends)
        return low, high

    def _columns_and_spectrum(self) -> tuple[BatchMatrices, ScoreTerms]:
        """The columns, eigenvectors of the smaller of A'A and AA', and what scores are made of."""
        problem, root = self.problem, math.sqrt(self.size)
        block = problem.data.block(self._ids)
        X = np.ascontiguousarray(block.values.toarray() if block.is_sparse else block.values, dtype=float)
        A = (X - self._off[self._ids]) * (self._scale * root) * problem.data.y[:, None]
        if problem.weight_rows:
            A = np.vstack([A, self._ends_matrix * (self._scale * root) * self._end_sizes[:, None]])
            X = np.vstack([X, self._ends_matrix])
        return self._spectrum(A), self._score_terms(X, np.asarray(block.center, dtype=float))

    @staticmethod
    def _spectrum(A: Array) -> BatchMatrices:
        """The columns, and eigenvectors of the smaller of A'A and AA'; of large ones in float32, in half the time."""
        is_wide = A.shape[0] < A.shape[1]
        square: Any = A @ A.T if is_wide else A.T @ A
        square = _as_float32(square) if square.shape[0] >= LEAST_DEAR else square
        values, V = linalg.eigh(square, driver="evd", check_finite=False)
        values, back, across = np.maximum(values, 0.0), np.empty((0, 0)), np.empty((0, 0))
        if is_wide:
            back, across = V.T @ A, values[:, None] * V.T
        return BatchMatrices(*(_as_float32(one) for one in (A, V, back, across, values)))

    def _score_terms(self, X: Array, center: Array) -> ScoreTerms:
        """What scores are made of: radii as of `Features.omega_error` and `Groups.score_error`."""
        regulariser = self.problem.regulariser
        squares, centers = np.square(X).sum(axis=0), np.square(center)
        ends = self._ends_of_columns(regulariser.ends if regulariser.is_ridge else regulariser.forgiven)  # type: ignore[attr-defined]
        if regulariser.is_ridge:  # of atoms
            squares, centers = (_sums_per_atom(one, self._first) for one in (squares, centers))
        elif self._ids.size > self.alive.size:
            # A sum over k columns rounds k times: so much more radius.
            room = 1.0 + np.repeat(np.diff(self._first), np.diff(self._first)) / self.problem.dual_size
            squares, centers = squares * np.square(room), centers * np.square(room)
        scale = self._scale[self._first[:-1]] if self._ids.size else np.zeros(self.alive.size)
        low, high = (only_read(np.ascontiguousarray(end)) for end in ends)
        norms, centers = only_read(np.sqrt(squares)), only_read(np.sqrt(centers))
        scale = only_read(np.ascontiguousarray(scale))
        n = self.problem.data.n_samples
        return ScoreTerms(only_read(X), only_read(center), low, high, norms, centers, scale, regulariser.is_ridge, n)

    def stopped_by(self, stop: States) -> Batch:
        """A copy that shares the columns and gives up when `stop` says so."""
        other = copy.copy(self)
        other.stop = stop
        return other

    def coarsen(self, loss: float) -> None:
        """Let explorations round dual vectors to whole bytes, see
        `mipfs.inner.boolean_node.BooleanRelaxation.coarsen`.
        """
        scoring, count = self.given.scoring, self.alive.size
        norms = (
            scoring.norms * scoring.scale
            if scoring.is_ridge
            else np.sqrt(_sums_per_atom(scoring.norms**2, self._first))
        )
        scores = count if self.problem.M is None else self.problem.M
        n = self.problem.data.n_samples
        self.bits, self.coarse = coarser_grid(self.bits, self.size, norms, scores, n, loss, self.nodes)

    @property
    def budget(self) -> int:
        """Nodes that are solved below one at most."""
        return self.settings.below

    def unit_size(self, count: int, _least_units: int) -> int:
        """Nodes of a unit where `count` are handed out."""
        settings = self.settings
        size = max(settings.least, min(settings.lanes, count // settings.units))
        # Of long data few nodes make two units: an iteration of ten lanes takes little longer than one of five.
        return min(size, max(1, -(-count // 2))) if self.is_long else size

    def intercept(self, solved: SolvedRelaxation) -> float:
        """The intercept of a solved relaxation, on the columns as they are centred here."""
        return solved.b + self.moved_by(solved.ids, solved.w)

    def moved_by(self, ids: Integers, w: Array) -> float:
        """What the intercept of weights of some features is larger by on the columns as they are centred here."""
        return float((self._off[ids] - self.problem.data.center[ids]) @ w)

    def explore_all(
        self,
        nodes: OpenNodes,
        duals: FirstDuals,
        limits: npt.NDArray[Any],
        sides: RowSides,
        prices: Array,
        memory: Array = NO_MEMORY,
    ) -> ExploredPieces:
        """Explore the subtrees below some open nodes.

        Parameters
        ----------
        nodes, duals, limits, sides, prices, memory : as of `mipfs.inner.boolean_node.BooleanRelaxation.explore_all`
        """
        samples, grid, of_rows, own_limits, of_problem, pieces, own = self.laid_out(nodes, duals, limits, sides, prices)
        own = own._replace(work=own.work._replace(memory=only_read(memory)))
        handed = samples, grid, of_rows, own_limits, of_problem, pieces, own
        try:
            self._explore_compiled(handed)
        except ZeroDivisionError:
            # Numbers are too far apart: the nodes are for others.
            units.lay_out_nodes(nodes, duals, grid.c, pieces, np.empty((limits.size, self.problem.dual_size)))
            subtree.plant_all(pieces)
            pieces.nodes["why"][:, 0] = subtree.STUCK
        return units.gather_pieces(pieces)

    def _explore_compiled(self, handed: Handed) -> None:
        """Explore in one compiled call, which lets other threads run."""
        batch.explore(self.made(handed), handed)

    def laid_out(
        self, nodes: OpenNodes, duals: FirstDuals, limits: npt.NDArray[Any], sides: RowSides, prices: Array
    ) -> Handed:
        """What `mipfs.kernels.batch` takes, with open nodes in the first places of their pieces, and their limits."""
        handed = _, grid, _, own_limits, _, pieces, own = self._prepare_exploration(limits.size, sides)
        first = np.empty((limits.size, self.problem.dual_size))
        units.lay_out_nodes(nodes, duals, grid.c, pieces, first)
        own_limits[:] = limits
        own.room.kept[:, 0], pieces.prices[:, 0] = first / self.size, prices
        return handed

    def relaxed(self, states: States, sides: RowSides, must_stop: Callable[[], bool]) -> RelaxedRoot | None:
        """Relax one node from nothing, such as the root; None where it does not come near in its iterations.

        Parameters
        ----------
        states : (k,) FREE, INSIDE or OUTSIDE
        sides : the user's rows
        must_stop : asked now and then; what there is by then is returned
        """
        settings, meets = self.settings, False
        handed = self.of_one(states, sides)
        steps, lanes = self.made(handed), handed[-1].lanes
        try:
            while not (meets or must_stop()) and lanes.used[0] < settings.most_root:
                meets = batch.relax(steps, handed, settings.near_root, 2 * settings.steps)
        except ZeroDivisionError:
            return None
        if not (meets or must_stop()) and lanes.upper[0] - lanes.lower[0] > settings.stuck * abs(lanes.upper[0]):
            return None
        sizes = np.sqrt(_sums_per_atom(np.square(lanes.w[0].astype(float)), self._first)) * math.sqrt(self.size)
        alpha, sigma = lanes.best[0].astype(float) * self.size, lanes.sigma[0].astype(float)
        alpha[self.problem.data.n_samples :] *= self._end_sizes
        warm = WarmStart(sizes.astype(np.float32), float(lanes.intercept[0]), 0.5)
        return RelaxedRoot(alpha, warm, sigma, lanes.best_row_multipliers[0].copy(), int(lanes.used[0]))

    def of_one(self, states: States, sides: RowSides) -> Handed:
        """What `relax` takes, with one node of these states, from nothing."""
        handed = _, _, _, limits, _, pieces, own = self._prepare_exploration(1, sides)
        pieces.states[0, 0], pieces.weights[0, 0], pieces.nodes["bound"][0, 0] = states, 0.0, -math.inf
        # No limit cuts this exploration short.
        own.room.kept[0, 0], limits[0] = 0.0, (math.inf, math.inf, 0.0, 0.0, 0.0, 0.0)
        lanes = own.lanes
        lanes.used[0], lanes.best[0], lanes.w[0], lanes.sigma[0], lanes.intercept[0] = 0, 0.0, 0.0, 0.0, 0.0
        return handed

    def steps(self, handed: Handed) -> BatchSteps:
        """The steps that are called by their address, not compiled yet."""
        samples, grid, rows, limits, given_, pieces, own = handed
        nothing = np.empty(0)
        branch = branching(self.rule, np.empty(0, dtype=np.int64), nothing, nothing)[1]
        begin = given_, grid, rows, limits, pieces, own, 0
        end = branch, samples, grid, rows.sides, limits, given_, pieces, own
        return BatchSteps(
            Step.of(batch.begin, *begin, returns=int64, lends=True),
            Step.of(batch.advance, given_, rows, own, samples.loss, 0, given_.rules["steps"], lends=True),
            Step.of(batch.evaluate_bounds, given_, samples, rows, own, 0, lends=True),
            Step.of(batch.end, *end, lends=True),
            branch,
        )

    def made(self, handed: Handed) -> BatchSteps:
        """The steps in machine code, looked up once a process."""
        if self.rule not in MADE:
            MADE[self.rule] = BatchSteps(*(step.made() for step in self.steps(handed)))
        return MADE[self.rule]

    def _prepare_exploration(self, count: int, sides: RowSides) -> Handed:
        """What `explore` takes, with the loss's functions in machine code."""
        samples, *_ = handed = self.handed(count, sides)
        assert self.loss.kernels is not None
        return samples._replace(loss=self.loss.kernels.made), *handed[1:]

    def handed(self, count: int, sides: RowSides = NO_ROWS) -> Handed:
        """What `explore` takes, for `count` explorations: limits and the first dual vectors are unset."""
        problem, B, m = self.problem, self.settings.lanes, self.settings.below + 1
        n, q, k = problem.dual_size, self._ids.size, self.alive.size
        c = dual_top(problem)
        own_c = only_read(problem.c_i / self.size)
        samples = LossSamples(only_read(problem.data.y), own_c, self.loss.kernels.unmade, problem.bias)
        top = only_read(self.loss.top(problem.c_i))
        grid = DualGrid(only_read(c), top, self.size, bool(np.any(c != c[0])), self.bits, float(self.coarse))
        sizes = q, self.given.factor.values.size, q, n, n, n
        e, s, omega, t, a, margins = (np.empty((B, size), np.float32) for size in sizes)
        kept = np.empty((count, m + 1, n), np.float32)
        room = BatchScratch(e, s, omega, t, a, margins, np.empty(B, np.int64), kept)
        whole, numbers = np.empty((B, n), np.int64), np.empty(B, np.int64)
        earned = FinishedDuals(whole, numbers, np.empty(B), np.empty((B, n)), np.empty((B, q)), np.empty((B, k)))
        rows = sides.indptr.size - 1
        work = ExplorationScratch.of(n, k, rows, m, 0, self.stop, self._steering)
        own = ExplorationState(Lanes.of_size(B, n, q, k, rows), room, earned, work)
        places = 3 * m - 2 + (6 * k + PLACES_PER_NODE * m if rows else 0)
        pieces = ExploredPiece.of(count, m, k, rows, places, m * (8 * n + n // 4 + 4))
        of_rows = SigmaRows(sides, self.given.alive.penalty, self.size)
        return samples, grid, of_rows, np.empty(count, LIMITS), self.given, pieces, own

    def kernels(self) -> tuple[list[Step], list[Step]]:
        """What explorations call, in two lists that take about as long to compile; nothing is compiled here."""
        handed = self.handed(0)
        _, grid, _, _, _, pieces, own = handed
        steps = self.steps(handed)
        explore = Step.of(batch.explore, steps, handed)
        alone = Step.of(batch.relax, steps, handed, 0.0, 0, returns=boolean)
        of_units = units.steps(pieces, grid.c, own.earned.v)
        of_loss = self.loss.kernels.steps
        further = [steps.evaluate_bounds, steps.end, steps.branch]
        return [explore, steps.begin, steps.advance], [alone, *further, *of_loss, *of_units]


def _as_float32(array: Array) -> npt.NDArray[np.float32]:
    """An array in float32, which a kernel only reads."""
    return only_read(np.ascontiguousarray(array, dtype=np.float32))


def _sums_per_atom(values: Array, first: Integers) -> Array:
    """Sums of values (q,) over the columns of every atom."""
    return np.add.reduceat(values, first[:-1]) if values.size else np.zeros(first.size - 1)
