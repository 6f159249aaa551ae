"""Enumeration of nodes with one or two free places: what `mipfs.kernels.enumeration` is handed, and leaves."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numba import boolean
from scipy import sparse

from mipfs.inner.boolean_node import NO_ROWS, States, carries
from mipfs.inner.unit import ColumnOrder, NodeUnit, UnitResult
from mipfs.kernels import enumeration
from mipfs.kernels.columns import two_at_least
from mipfs.kernels.completions import RULED, CompletionColumns, CompletionProblem, RuledOut
from mipfs.kernels.enumeration import EnumerationRequest, UnitPieces
from mipfs.kernels.newton import NewtonPace, SvmRows, newton
from mipfs.kernels.structures import DUAL, PLACE, TOTALS, DualGrid, LossSamples, RowSides, only_read, steering_of
from mipfs.kernels.units import BITS, OPEN_NODE, ExploredPieces, OpenNodes
from mipfs.losses import get_loss
from mipfs.plumbing.arrays import Integers
from mipfs.pointers import Step
from mipfs.problem import Problem
from mipfs.selection.selection import Rows as UserRows
from mipfs.settings import CompletionSettings
from mipfs.svm.dyadic import finest_bits
from mipfs.svm.solver import DENSE_ROWS_ABOVE, ColumnShift

MOST_LEAST = 64
"""Dual vectors for which a unit has room at least."""


def are_few(problem: Problem, settings: CompletionSettings) -> bool:
    """Whether nodes of a problem may be closed by enumeration: few of many features, which kernels carry."""
    assert problem.rows is not None
    if problem.M is None or not 0 < problem.M <= settings.most or not problem.data.block().is_stored:
        return False
    if problem.M > 1 and problem.atoms.count <= problem.data.n_samples:
        return False
    if len(problem.rows) > 0:
        if len(problem.rows.extra) > 0:
            return False
        problem = problem.replace(rows=UserRows.empty(problem.atoms.count), derived=())
    return carries(problem) and problem.regulariser.is_ridge and not problem.weight_rows


def first_places(problem: Problem) -> int:
    """How many features may be selected beside those that must be."""
    low, _ = problem.selection.sigma_bounds()
    return (problem.atoms.count if problem.M is None else problem.M) - int(np.count_nonzero(low > 0.5))


def are_pairs_few(free: Any, settings: CompletionSettings) -> Any:
    """Whether a node with two free places and a number of free atoms is enumerated; of arrays, too."""
    return 0.5 * free * (free - 1.0) <= settings.pairs


class NodeEnumerator:
    """Enumerates nodes, for any thread.

    Parameters
    ----------
    problem : Problem with `are_few`
    alive : (k,) positions of the features that no screening has excluded
    settings : CompletionSettings, optional
    """

    def __init__(self, problem: Problem, alive: Integers, settings: CompletionSettings = CompletionSettings()) -> None:
        data, loss = problem.data, get_loss(problem.loss)
        assert problem.M is not None
        self.M = problem.M
        self.settings = settings
        self.alive = alive
        self._loss = loss
        c = problem.c_i
        self.size = float(c.max())
        self._samples = LossSamples(only_read(data.y), only_read(c / self.size), loss.kernels.unmade, problem.bias)
        self._grid = DualGrid(
            only_read(c),
            only_read(loss.top(c)),
            self.size,
            bool(np.any(c != c[0])),
            finest_bits(data.n_samples),
            np.inf,
        )
        self._steering = steering_of(settings)
        everything = alive.size == problem.atoms.count
        block = data.block() if everything else data.block(alive)
        values: Any = block.values
        if block.stays_sparse(DENSE_ROWS_ABOVE):
            part = sparse.csc_array(values)
            off = np.zeros(alive.size)
            raw: Any = (
                only_read(part.data),
                only_read(part.indices.astype(np.int32)),
                only_read(part.indptr.astype(np.int64)),
            )
        else:
            values = values.toarray(order="F") if sparse.issparse(values) else values
            off = np.array(ColumnShift(data, problem.bias)[alive], dtype=float)
            raw = only_read(two_at_least(values))
        if sparse.issparse(values):
            norms = np.sqrt(np.asarray((values * values).sum(axis=0), dtype=float).ravel())
        else:
            norms = np.sqrt(np.einsum("ij,ij->j", values, values))
        center = np.array(block.center, dtype=float)
        penalty = np.array(problem.penalty[alive], dtype=float)
        self._columns = CompletionColumns(raw, only_read(center), only_read(norms), only_read(penalty), only_read(off))

    @cached_property
    def _compiled(self) -> tuple[Step, LossSamples]:
        """The SVM's steps, and the loss, in machine code."""
        return self._newton.made(), self._samples._replace(loss=self._loss.kernels.made)

    @property
    def _newton(self) -> Step:
        """The SVM's steps, not compiled yet."""
        n = self._samples.y.size
        rows = SvmRows(np.empty((n, 1)), self._samples.c, 1, self._samples.loss)
        return Step.of(newton, rows, np.empty(1), np.empty(n), np.zeros(3), NewtonPace(0.1, 0.1, 1, 2.0))

    def kernels(self) -> list[Step]:
        """What is called, not compiled yet."""
        handed = CompletionProblem(self._newton, self._columns, self._samples, self._grid, self._steering)
        nodes, asked = (
            OpenNodes(only_read(OpenNodes.empty().heads), only_read(OpenNodes.empty().words)),
            self._enumeration_request(None, 0.0),
        )
        stop = np.zeros(1, dtype=np.int8)
        steps = Step.of(
            enumeration.enumerate_nodes,
            handed,
            NO_ROWS,
            nodes,
            asked,
            *self._allocate_pieces(0, asked, 0),
            stop,
            returns=boolean,
        )
        return [steps, self._newton, *self._loss.kernels.steps]

    def _enumeration_request(self, turn: ColumnOrder | None, target: float) -> EnumerationRequest:
        begin, end = (0, 0) if turn is None else turn[:2]
        return EnumerationRequest(self.M, begin, end, float(target), self.settings.leaves)

    def _allocate_pieces(self, count: int, asked: EnumerationRequest, rows: int) -> tuple[UnitPieces, RuledOut]:
        """Room for what is left of `count` nodes, and for dual vectors."""
        n, k, one = self._samples.y.size, self.alive.size, self.settings
        each = 8 * n + n // 4 + 4
        most = max(MOST_LEAST, one.bytes // each)
        selections = count + asked.end - asked.begin
        chains = 2 * k if rows else 0
        places = most + k + 64 + selections * (4 + 2 * one.apart + chains)
        nodes = selections * (one.apart + 1) + count + 1
        totals = np.zeros(count, TOTALS)
        ids, states = np.empty((2, k), dtype=np.int64), np.empty((3, k), dtype=np.int8)
        left = UnitPieces(
            np.empty(places, PLACE), totals, np.empty(nodes, OPEN_NODE),
            np.empty(nodes * (-(-k // BITS) + self.M), dtype=np.int32), np.zeros(1, dtype=np.int64),
            ids[0], ids[1], states[0], states[1], states[2], np.zeros(k, dtype=np.float32),
        )  # fmt: skip
        ruled = RuledOut(
            np.empty(k, dtype=np.int64), np.empty(k + 2, dtype=np.int64),
            np.empty(min(one.apart, one.leaves), dtype=np.int64),
            np.empty(most * each, dtype=np.uint8), np.empty(most, DUAL), np.zeros(1, dtype=RULED),
        )  # fmt: skip
        return left, ruled

    def left_open(self, unit: NodeUnit, sides: RowSides) -> UnitResult:
        """A unit of which nothing is done: the columns of its turn are open nodes."""
        return self.explore(unit, sides, np.full(1, enumeration.OPEN_NODES, dtype=np.int8))

    def explore(self, unit: NodeUnit, sides: RowSides, stop: States) -> UnitResult:
        """Enumerate the nodes of a unit, as far as `stop` (1,) lets it; nothing is found where nothing was to do.

        Raises
        ------
        ValueError
            The nodes are those of other atoms.
        """
        newton_steps, samples = self._compiled
        handed = CompletionProblem(newton_steps, self._columns, samples, self._grid, self._steering)
        nodes = OpenNodes(only_read(unit.nodes.heads), only_read(unit.nodes.words))
        rows = sides.indptr.size - 1
        asked = self._enumeration_request(unit.turn, unit.limits["cutoff"][0])
        left, ruled = self._allocate_pieces(len(unit), asked, rows)
        if not enumeration.enumerate_nodes(handed, sides, nodes, asked, left, ruled, stop):
            raise ValueError("the open nodes are those of other atoms")
        found = _gather_pieces(left, ruled, rows, self.alive.size)
        return UnitResult(found if found.places.size else None, [])


def _gather_pieces(left: UnitPieces, ruled: RuledOut, rows: int, k: int) -> ExploredPieces:
    """What was left of a unit, in arrays of its size."""
    totals = left.totals
    count, n_nodes = int(totals["duals"].sum()) - totals.size, int(totals["nodes"].sum())
    back = OpenNodes(left.heads[:n_nodes].copy(), left.words[: int(left.used[0])].copy())
    packed = ruled.packed[: int(totals["bytes"].sum())].copy()
    return ExploredPieces(
        totals, left.places[: int(totals["places"].sum())].copy(), ruled.duals[:count].copy(), packed,
        np.zeros((count, rows)), back, totals["nodes"].copy(), np.empty((0, k), dtype=np.float32), np.empty(0),
        np.zeros(totals.size, dtype=np.int64), np.zeros(totals.size, dtype=bool),
    )  # fmt: skip
