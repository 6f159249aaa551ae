"""One node of `branch`: the Boolean relaxation with some features fixed, its earned bound, and what it fixes.

    bound = g(α) − ½ Σ_{S₁} s_j − the sum of the K largest positive ½ s_j − c_j of the free features

for a dual vector on the dyadic grid, with every rounding error on the safe side (mathematics of `mipfs.proof.cuts`).
Screening: a feature whose other value would lift this bound to the cutoff is fixed, by one more of these sums each.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
from numba import int64, typeof
from scipy import sparse

from mipfs.atoms.features import omega_radius, sum_error
from mipfs.branching import largest_weight
from mipfs.inner.designs import centre_and_scale_columns, parts_of
from mipfs.kernels import boolean_newton, node, propagation, structures, subtree, units
from mipfs.kernels.columns import Numbers, TwoWays
from mipfs.kernels.face_descent import FaceModel
from mipfs.kernels.model_step import minimise_model
from mipfs.kernels.structures import (
    LIMITS,
    AliveColumns,
    DualGrid,
    ExplorationScratch,
    ExploredPiece,
    LossSamples,
    NodeSteps,
    RowSides,
    only_read,
    steering_of,
)
from mipfs.kernels.units import ExploredPieces, FirstDuals, OpenNodes
from mipfs.losses import get_loss
from mipfs.plumbing.arrays import Array, Integers
from mipfs.pointers import Step
from mipfs.problem import Problem
from mipfs.proof.cuts import decode_dual, dual_value_below
from mipfs.settings import NodeSettings
from mipfs.svm.dyadic import finest_bits
from mipfs.svm.solver import DENSE_ROWS_ABOVE, ColumnShift

States = npt.NDArray[np.int8]

_ONE = np.ones(1)
_INTEGERS = np.zeros(0, dtype=np.int64)
_FLOATS = np.zeros(0)
NO_ROWS = RowSides(np.zeros(1, dtype=np.int64), _INTEGERS, *[_FLOATS] * 5)
FREE, INSIDE, OUTSIDE = propagation.FREE, propagation.INSIDE, propagation.OUTSIDE
"""States of a feature in a node."""
NEGLIGIBLE_SIGMA = 1e-4
"""Features whose σ an interior point leaves below this begin Newton's steps at zero: they would reach it one by one."""
MOST_NODES, EXPLORED_NUMBERS = 32, 20_000_000
"""Nodes of one exploration at most, and what their number times samples and features may come to."""
PLACES_PER_NODE = 64
"""Places of the proof for what rows fix, per node of an exploration on average; one that needs more ends sooner."""
MOST_TOGETHER, SMALL_NUMBERS = 32, 800_000
"""Explorations of one compiled call at most, and what their number times samples and features may come to."""

MOST_NUMBERS = 2**27
"""Numbers up to which dense columns are kept by rows, too."""
MADE: dict[Any, NodeSteps] = {}
"""The steps of explorations by what their types depend on: making those takes 1.5 ms, as long as a small search."""


Handed = tuple[AliveColumns, LossSamples, DualGrid, RowSides, npt.NDArray[Any], ExploredPiece, ExplorationScratch]
"""What `mipfs.kernels.subtree.explore` takes, its steps aside: alive, samples, grid, sides, limits, pieces, work."""


@dataclass(frozen=True, eq=False)
class WarmStart:
    """Where a node's solve begins (the dual vector is stored apart).

    Attributes
    ----------
    w : (k,) float32, weights of the alive features, most of them zero
    b, rho : float, intercept and ρ
    """

    w: npt.NDArray[np.float32]
    b: float
    rho: float


@dataclass(frozen=True, eq=False)
class NodeOutcome:
    """A solved node.

    Attributes
    ----------
    bound : float, earned by the dual vector
    whole, q : (n,) int64 and int, the dual vector α = whole·2^−q
    warm : WarmStart, for the children
    sigma : (k,) σ of the relaxation on the alive features
    fixed_in, fixed_out : positions of the alive features that screening fixes
    steps : Newton steps taken
    """

    bound: float
    whole: Integers
    q: int
    warm: WarmStart
    sigma: Array
    fixed_in: Integers
    fixed_out: Integers
    steps: int


def branching(
    rule: Any,
    atoms: Integers,
    w: Array,
    sigma: Array,
    ends: tuple[float, float] = (0.0, 0.0),
    memory: Array = structures.NO_MEMORY,
) -> tuple[structures.RelaxedNode, Step]:
    """A relaxed node, with bound, cutoff and what the rule knows, and a branching rule for it, not compiled yet."""
    relaxed = structures.RelaxedNode(atoms, w, sigma, *ends, structures.only_read(memory))
    return relaxed, Step.of(rule, relaxed, atoms, returns=int64)


def carries(problem: Problem) -> bool:
    """Whether the kernel can take the problem: what `carries_columns` says, and a plain S."""
    return problem.selection.is_plain and carries_columns(problem)


def carries_columns(problem: Problem) -> bool:
    """Whether it can once S is plain: single unscaled features, a loss and a regulariser it knows.

    Sparse columns are centred implicitly, which only a free bias can absorb.
    """
    data = problem.data
    absorbed = problem.bias or not np.any(data.center) or not data.block().stays_sparse(DENSE_ROWS_ABOVE)
    return bool(problem.atoms.kind == "features" and problem.has_kernels and absorbed)


def coarser_grid(
    bits: int, size: float, norms: Array, scores: int, n: int, loss: float, settings: NodeSettings
) -> tuple[int, float]:
    """Bits of dual vectors of which rounding takes about `loss` off a bound at most, and what `settings.coarse` do.

    size : the largest loss weight;  norms : of the columns;  scores : how many count;  n : samples
    """
    square = scores * (size * float(norms.max(initial=0.0))) ** 2
    if not (loss > 0.0 and square / loss < math.inf and n * size / loss < math.inf):
        return bits, math.inf
    least = max(math.log2(n * size / loss), 0.5 * math.log2(square / loss) if square > 0.0 else 0.0)
    return int(
        min(bits, max(2, math.ceil(least / 8.0)) * 8)
    ), n * size * 2.0**-settings.coarse + square * 4.0**-settings.coarse


Made = TypeVar("Made")


class LazyValue(Generic[Made]):
    """What is made when it is first asked for, once for all copies of who holds it, whatever their thread."""

    def __init__(self, make: Callable[[], Made]) -> None:
        self._make: Callable[[], Made] | None = make
        self._lock = Lock()

    def __call__(self) -> Made:
        with self._lock:
            if self._make is not None:
                self._made = self._make()
                self._make = None
            return self._made


def _sign_columns(part: Any, y: Array, root: float) -> TwoWays:
    """Sparse columns, y∘x scaled."""
    signed = part.data * y[part.indices] * root
    return TwoWays.sparse(sparse.csc_array((signed, part.indices, part.indptr), shape=part.shape))


def _column_squares(X: Array) -> Array:
    """Sum of the squares of every dense column, without a copy of all of them."""
    parts = [np.square(X[:, part]).sum(axis=0) for part in parts_of(X)]
    return np.concatenate([*parts, np.empty(0)])


class BooleanRelaxation:
    """The node solver on the features that are still alive.

    Parameters
    ----------
    problem : Problem with `carries`
    alive : (k,) positions of the features that no screening has excluded
    stop : (1,) int8, set from outside to give up in the middle of a node
    rule : a branching rule, a compiled function of `mipfs.branching`
    settings : NodeSettings, optional

    Notes
    -----
    Holds y∘(X − z) of the alive columns, scaled, by columns and by rows: twice as many bytes as they have in the data.
    """

    def __init__(
        self,
        problem: Problem,
        alive: Integers,
        stop: States,
        rule: Any = largest_weight.choose,
        settings: NodeSettings = NodeSettings(),
    ) -> None:
        data = problem.data
        self.problem = problem
        self.alive = alive
        self.stop = stop
        self.rule = rule
        self.settings = settings
        self._steering = steering_of(settings)
        self._made: dict[bool, NodeSteps] = {}
        self.M = problem.M
        self.loss = get_loss(problem.loss)
        self.penalty = np.array(problem.penalty[alive])
        self.top = self.loss.top(problem.c_i)
        self.size = float(problem.c_i.max())
        self.bits = finest_bits(data.n_samples)
        self.coarse = np.inf
        self._c = problem.c_i / self.size
        self._unmade = LossSamples(only_read(data.y), only_read(self._c), self.loss.kernels.unmade, problem.bias)
        root = np.sqrt(self.size)
        block = data.block(alive)
        self._X, self.center, self._is_centred = block.values, block.center, block.is_centred
        if block.stays_sparse(DENSE_ROWS_ABOVE):
            self._X = part = sparse.csc_array(self._X)
            signed = (data.y, root)
            self._in_play = LazyValue(lambda: (_sign_columns(part, *signed), Numbers.sparse(part)))
            self.norms = np.sqrt(np.asarray((part * part).sum(axis=0), dtype=float).ravel())
        else:
            dense = self._X.toarray() if sparse.issparse(self._X) else self._X
            self._X = whole = np.asfortranarray(dense)
            off = ColumnShift(data, problem.bias)[alive]
            signs = data.y * root
            self._in_play = LazyValue(
                lambda: (
                    TwoWays.dense(centre_and_scale_columns(whole, off, signs[:, None]), MOST_NUMBERS),
                    Numbers.dense(whole.T),
                )
            )
            self.norms = np.sqrt(_column_squares(whole))

    @cached_property
    def samples(self) -> LossSamples:
        """The loss of its nodes, with its functions in machine code."""
        return self._unmade._replace(loss=self.loss.kernels.made)

    def stopped_by(self, stop: States) -> BooleanRelaxation:
        """A copy that shares the columns and gives up when `stop` says so."""
        other = copy.copy(self)
        other.stop = stop
        return other

    def coarsen(self, loss: float) -> None:
        """Let explorations round dual vectors to whole bytes, where that takes at most about `loss` off a bound.

        An entry at the top of its box costs what it loses. The others are where the bound is flat, and cost the square.
        """
        scores = self.alive.size if self.M is None else self.M
        n = self.problem.data.n_samples
        self.bits, self.coarse = coarser_grid(self.bits, self.size, self.norms, scores, n, loss, self.settings)

    @property
    def budget(self) -> int:
        """Nodes of one exploration: some hundredths of a second, whatever the size; independent of the machine."""
        n, k = self.problem.data.n_samples, max(1, self.alive.size)
        return max(1, min(MOST_NODES, EXPLORED_NUMBERS // (n * k)))

    @property
    def together(self) -> int:
        """Explorations of one compiled call at most: several where nodes are so small that Python's part counts."""
        size = self.problem.data.n_samples * max(1, self.alive.size)
        return max(1, min(MOST_TOGETHER, SMALL_NUMBERS // size))

    def unit_size(self, count: int, least_units: int) -> int:
        """Explorations of one call where `count` nodes are handed out, which are to be `least_units` calls."""
        return max(1, min(self.together, count // least_units), min(self.together // 4, count // 4))

    def explore_all(
        self,
        nodes: OpenNodes,
        duals: FirstDuals,
        limits: npt.NDArray[Any],
        sides: RowSides,
        prices: Array,
        memory: Array = structures.NO_MEMORY,
    ) -> ExploredPieces:
        """Explore the subtrees below some open nodes in one compiled call, which lets other threads run.

        Parameters
        ----------
        nodes : OpenNodes
        duals : FirstDuals, the dual vectors that earned their bounds
        limits : (B,) LIMITS
        sides : the user's rows
        prices : (B, rows) the multipliers that earned the bounds
        memory : (k, ·) of the branching rule

        Raises
        ------
        ValueError
            The nodes are those of other atoms.
        """
        count = limits.size
        handed = self._exploration_arguments(count, sides, self._allocate_pieces(count, sides), memory)
        alive, samples, grid, _, unset, pieces, work = handed
        if not self._try_explore(nodes, duals, limits, prices, handed):
            for t in range(count):
                own = slice(t, t + 1)
                piece, scratch = ExploredPiece(*(array[own] for array in pieces)), work._replace(first=work.first[own])
                alone = alive, samples, grid, sides, unset, piece, scratch
                node, dual = nodes._replace(heads=nodes.heads[own]), duals.part(np.array([t]))
                if count == 1 or not self._try_explore(node, dual, limits[own], prices[own], alone):
                    self._give_up(node, dual, prices[own], alone)
        return units.gather_pieces(pieces)

    def _give_up(self, node: OpenNodes, dual: FirstDuals, prices: Array, handed: Handed) -> None:
        """Leave a node as it is, for another."""
        self._lay_out(node, dual, prices, handed)
        piece = ExploredPiece(*(array[0] for array in handed[5]))
        subtree.plant_piece(piece)
        piece.nodes["why"][0] = subtree.STUCK

    def _try_explore(
        self, nodes: OpenNodes, duals: FirstDuals, limits: npt.NDArray[Any], prices: Array, handed: Handed
    ) -> bool:
        """Explore from some nodes; whether it could be done: numbers may be too far apart for Newton's steps."""
        alive, _, grid, sides, _, pieces, work = handed
        has_rows = sides.indptr.size > 1
        if has_rows not in self._made:
            self._made[has_rows] = self._made_for(handed, has_rows)
        self._lay_out(nodes, duals, prices, handed)
        try:
            subtree.explore(self._made[has_rows], alive, self.samples, grid, sides, limits, pieces, work)
        except ZeroDivisionError:
            return False
        return True

    def _lay_out(self, nodes: OpenNodes, duals: FirstDuals, prices: Array, handed: Handed) -> None:
        """Put nodes in the first places of their pieces."""
        _, _, grid, _, _, pieces, work = handed
        units.lay_out_nodes(nodes, duals, grid.c, pieces, work.first)
        pieces.prices[:, 0] = prices

    def _exploration_arguments(
        self, count: int, sides: RowSides, pieces: ExploredPiece, memory: Array = structures.NO_MEMORY
    ) -> Handed:
        """What `explore` takes, steps aside, for `count` explorations: limits and the first dual vectors are unset."""
        c = self.problem.c_i
        most = -1 if self.M is None else self.M
        Z, raw = self._in_play()
        alive = AliveColumns(Z, raw, only_read(self.penalty), only_read(self.center), only_read(self.norms), most)
        grid = DualGrid(
            only_read(c), only_read(self.top), self.size, bool(np.any(c != c[0])), self.bits, float(self.coarse)
        )
        work = ExplorationScratch.of(
            c.size, self.alive.size, sides.indptr.size - 1, self.budget, count, self.stop, self._steering
        )
        return (
            alive,
            self._unmade,
            grid,
            sides,
            np.empty(count, LIMITS),
            pieces,
            work._replace(memory=only_read(memory)),
        )

    def _uncompiled_steps(self, handed: Handed) -> NodeSteps:
        """The steps that `explore` calls by their address, not compiled yet."""
        alive, samples, _, sides, _, _, work = handed
        model = FaceModel(np.empty((1, 1)), work.w, work.w, 0.0, work.w, 0, 0, samples.bias, 0.0, work.steering)
        minimise = Step.of(minimise_model, model, 0.0, 0, work.w, lends=True)
        in_play = structures.InPlay(work.columns, 0, 0, work.costs)
        goal = structures.Goal(0.0, 0.0, 0.0, 0.0, self.stop, work.steering)
        point = structures.RelaxationPoint(work.w, work.best, work.best)
        asked = minimise, alive.Z, samples, in_play, goal, point, work.newton[0]
        relax = Step.of(boolean_newton.relax, *asked, lends=True)
        price = Step.of(node.price_further, alive.Z, samples, sides, work, 0, False, 0, 0.0, lends=True)
        return NodeSteps(relax, minimise, price, branching(self.rule, work.columns, work.w, work.sigma)[1])

    def _made_for(self, handed: Handed, has_rows: bool) -> NodeSteps:
        """The steps in machine code, looked up once a process; that of the prices only where the user has rows."""
        alive, samples, _, sides, *_ = handed
        key = (self.rule, has_rows, typeof((alive.Z, samples, sides)))  # type: ignore[no-untyped-call]
        if key not in MADE:
            relax, minimise, price, branch = self._uncompiled_steps(handed)
            MADE[key] = NodeSteps(relax.made(), minimise.made(), price.made() if has_rows else price, branch.made())
        return MADE[key]

    def kernels(self, has_rows: bool) -> tuple[list[Step], list[Step]]:
        """What explorations call, in two lists that take about as long to compile; nothing is compiled here."""
        handed = self._exploration_arguments(0, NO_ROWS, self._allocate_pieces(0, NO_ROWS))
        steps = self._uncompiled_steps(handed)
        explore = Step.of(subtree.explore, steps, *handed)
        of_units = units.steps(handed[5], self.problem.c_i, handed[6].first)
        prices = [steps.price] * has_rows
        return [explore], [
            steps.relax,
            steps.minimise_model,
            steps.branch,
            *prices,
            *self.loss.kernels.steps,
            *of_units,
        ]

    def _allocate_pieces(self, count: int, sides: RowSides) -> ExploredPiece:
        """Room for some explorations."""
        n = self.problem.data.n_samples
        k = self.alive.size
        rows = sides.indptr.size - 1
        m = self.budget + 1
        places = 3 * m - 2 + (6 * k + PLACES_PER_NODE * self.budget if rows else 0)
        return ExploredPiece.of(count, m, k, rows, places, m * (8 * n + n // 4 + 4))

    def scores(self, whole: Integers, q: int) -> tuple[float, Array]:
        """g rounded down and s rounded up (k,) of a dual vector, on the alive features."""
        alpha = decode_dual((whole, q))
        v = alpha * self.problem.data.y
        omega = np.asarray(self._X.T @ v, dtype=float) if np.any(whole) else np.zeros(self.alive.size)
        if self._is_centred:
            omega -= self.center * float(v.sum())
        s = np.square(omega)
        s += sum_error(s, omega_radius(v, self.norms, np.abs(self.center)), _ONE)
        return dual_value_below(self.loss, alpha, self.problem.c_i), s
