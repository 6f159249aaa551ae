"""The completions of a selection by one more feature, as `mipfs.kernels.completions` rules them out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from mipfs.inner.boolean_node import States, carries
from mipfs.kernels import completions
from mipfs.kernels.augmented_lagrangian import Pace, augmented_lagrangian
from mipfs.kernels.columns import two_at_least
from mipfs.kernels.completions import ABOVE, DONE, FULL, RULED, STOPPED, Candidates, Given, Ruled, Solvers
from mipfs.kernels.newton import Rows, newton
from mipfs.kernels.structures import Grid, Samples, given, steering_of
from mipfs.losses import get_loss
from mipfs.plumbing.arrays import Integers
from mipfs.pointers import Step
from mipfs.problem import Problem
from mipfs.selection.selection import Rows as UserRows
from mipfs.settings import CompletionSettings
from mipfs.svm.dyadic import finest
from mipfs.svm.solver import DENSE_ROWS_ABOVE, TakenOff

__all__ = ["ABOVE", "DONE", "FULL", "STOPPED", "Completions", "Found", "are_few", "first_places"]


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
    return carries(problem) and problem.regulariser.is_ridge


def first_places(problem: Problem) -> int:
    """How many features may be selected beside those that must be."""
    low, _ = problem.selection.sigma_bounds()
    return (problem.atoms.count if problem.M is None else problem.M) - int(np.count_nonzero(low > 0.5))


@dataclass(frozen=True, eq=False)
class Found:
    """What ruled out completions.

    Attributes
    ----------
    left : (m,) int64, the candidates that are left, the one that is furthest from being ruled out first
    why : DONE, ABOVE (the first of `left` is not ruled out), STOPPED or FULL (to be gone on with)
    empty : int, which dual vector rules out the selection itself, −1 for none
    duals : of all vectors, what `DualStore.extend` takes
    solved, steps : SVMs and their Newton steps
    """

    left: Integers
    why: int
    empty: int
    duals: tuple[bytes, Integers, Integers, Integers, Integers]
    solved: int
    steps: int

    @property
    def count(self) -> int:
        """How many dual vectors there are."""
        return int(self.duals[1].size)


class Completions:
    """Rules out completions, for any thread.

    Parameters
    ----------
    problem : Problem with `are_few`
    alive : (k,) positions of the features that no screening has excluded
    stop : (1,) int8, set from outside to give up
    settings : CompletionSettings, optional
    """

    def __init__(
        self, problem: Problem, alive: Integers, stop: States, settings: CompletionSettings = CompletionSettings()
    ) -> None:
        data, loss = problem.data, get_loss(problem.loss)
        self.stop = stop
        self.settings = settings
        self.alive = alive
        self._loss = loss
        c = problem.c_i
        self.size = float(c.max())
        self._samples = Samples(given(data.y), given(c / self.size), loss.kernels.unmade, problem.bias)
        self._grid = Grid(
            given(c), given(loss.top(c)), self.size, bool(np.any(c != c[0])), finest(data.n_samples), np.inf
        )
        self._steering = steering_of(settings)
        everything = alive.size == problem.atoms.count
        block = data.block() if everything else data.block(alive)
        values: Any = block.values
        if block.stays_sparse(DENSE_ROWS_ABOVE):
            part = sparse.csc_array(values)
            off = np.zeros(alive.size)
            raw: Any = (given(part.data), given(part.indices.astype(np.int32)), given(part.indptr.astype(np.int64)))
        else:
            values = values.toarray(order="F") if sparse.issparse(values) else values
            off = np.array(TakenOff(data, problem.bias)[alive], dtype=float)
            raw = given(two_at_least(values))
        if sparse.issparse(values):
            norms = np.sqrt(np.asarray((values * values).sum(axis=0), dtype=float).ravel())
        else:
            norms = np.sqrt(np.einsum("ij,ij->j", values, values))
        center = np.array(block.center, dtype=float)
        penalty = np.array(problem.penalty[alive], dtype=float)
        self._columns = Candidates(raw, given(center), given(norms), given(penalty), given(off))

    @cached_property
    def _made(self) -> tuple[Solvers, Samples]:
        """The SVM's steps, and the loss, in machine code."""
        hinge, smooth = self._steps
        is_smoothed = self._samples.loss.is_smoothed
        made = Solvers(hinge.made(), smooth) if is_smoothed else Solvers(hinge, smooth.made())
        return made, self._samples._replace(loss=self._loss.kernels.made)

    @property
    def _steps(self) -> tuple[Step, Step]:
        """The SVM's steps, not compiled yet."""
        n = self._samples.y.size
        A, u, alpha = np.empty((n, 1)), np.empty(1), np.empty(n)
        state, work = np.zeros(3), np.empty((7, n + 1))
        pace = Pace(0.1, 0.1, 1, 2.0, False)
        hinge = Step.of(augmented_lagrangian, Rows(A, np.empty(n), 1), u, alpha, state, pace, work)
        smooth = Step.of(newton, Rows(A, self._samples.c, 1), self._samples.loss, u, alpha, state, 0.1, 1, work)
        return hinge, smooth

    def kernels(self) -> list[Step]:
        """What is called, not compiled yet."""
        hinge, smooth = self._steps
        ruled = self._room(np.arange(1))
        handed = Given(Solvers(hinge, smooth), self._columns, self._samples, self._grid, self._steering)
        steps = Step.of(completions.complete, handed, np.arange(1), 0.0, ruled, self.stop)
        return [steps, hinge if self._samples.loss.is_smoothed else smooth, *self._loss.kernels.steps]

    def _room(self, left: Integers) -> Ruled:
        n = self._samples.y.size
        each = 8 * n + n // 4 + 4
        most = max(2, min(left.size + 1, self.settings.bytes // each))
        ends, grid, top, width = (np.empty(most, dtype=np.int64) for _ in range(4))
        totals = np.zeros(1, dtype=RULED)
        totals["left"] = left.size
        totals["empty"] = -1
        return Ruled(left.astype(np.int64), np.empty(most * each, dtype=np.uint8), ends, grid, top, width, totals)

    def of(self, inside: Integers, left: Integers, target: float) -> Found:
        """Rule out completions of a selection.

        Parameters
        ----------
        inside : (d,) the selection S, positions among the alive
        left : (m,) the candidates
        target : float, what must be proven of each
        """
        ruled = self._room(left)
        solvers, samples = self._made
        handed = Given(solvers, self._columns, samples, self._grid, self._steering)
        chosen = np.ascontiguousarray(inside, dtype=np.int64)
        completions.complete(handed, chosen, float(target), ruled, self.stop)
        total = ruled.totals[0]
        count = int(total["duals"])
        ends, grid, top, width = (one[:count].copy() for one in (ruled.ends, ruled.grid, ruled.top, ruled.width))
        duals = ruled.packed[: int(total["bytes"])].tobytes(), ends, grid, top, width
        left = ruled.left[: int(total["left"])].copy()
        return Found(left, int(total["why"]), int(total["empty"]), duals, int(total["solved"]), int(total["steps"]))
