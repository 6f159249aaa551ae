"""The root of large dense data by the iteration of the batch, alone.

Of one node the matrix κI + A'A of an iteration (`mipfs.kernels.batch`) is factored by Cholesky, anew whenever its
penalties change, five times at most: eigenvectors, which serve many nodes, take as long as thirty of these. All in
float32: no bound rests on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import linalg

from mipfs.inner.array_batch import AFTER, ArrayState, Iteration
from mipfs.inner.batch import MOST_NUMBERS, Batch, RelaxedRoot, has_even_columns, is_long, takes
from mipfs.inner.boolean_node import States, WarmStart
from mipfs.kernels.batch_structures import BatchMatrices, ScoreTerms
from mipfs.kernels.propagation import FREE, INSIDE
from mipfs.losses import get_loss
from mipfs.plumbing.arrays import Integers
from mipfs.plumbing.blocks import LARGE, count_of, cut, run_each
from mipfs.problem import Problem
from mipfs.settings import BatchSettings

Singles = npt.NDArray[np.float32]


def is_large(problem: Problem, count: int, settings: BatchSettings = BatchSettings()) -> bool:
    """Whether the root of a problem over `count` single features, that the kernels carry, is relaxed in this way.

    A step of the interior point takes n·k·min(n, k) products, an iteration 4nk: so where both sides are long, and the
    sizes of columns are not very different.
    """
    n = problem.data.n_samples
    is_even = settings.alone_from <= count <= settings.alone_wide * n and settings.alone_samples <= n
    if not is_even or n * count > MOST_NUMBERS or not is_long(problem, count, settings):
        return False
    loss = get_loss(problem.loss)
    has_arrays = loss.kernels is not None and loss.kernels.arrays is not None
    is_plain = problem.selection.is_plain and not problem.weight_rows
    return has_arrays and is_plain and takes(problem) and has_even_columns(problem)


class ColumnsOnly(Batch):
    """Columns as the batch has them, made in blocks that threads share, without eigenvectors, nor what scores take."""

    def _columns_and_spectrum(self) -> tuple[BatchMatrices, ScoreTerms]:
        data, factor = self.problem.data, self._scale * math.sqrt(self.size)
        values, off = data.block(self._ids).values, self._off[self._ids]
        A, ends = np.empty(values.shape, np.float32), blocks_of(*values.shape)

        def put(block: int) -> None:
            own = slice(*ends[block : block + 2])
            A[own] = (values[own] - off) * factor * data.y[own, None]

        run_each(put, ends.size - 1)
        none = np.empty((0, 0), np.float32)
        return BatchMatrices(A, none, none, none, none), self._score_terms(np.empty((0, off.size)), np.zeros(off.size))


def blocks_of(n: int, k: int) -> Integers:
    """Where the blocks of n rows of k columns begin and end."""
    return cut(np.arange(n + 1), count_of(n, k, n * k / LARGE))


class LoneIteration(Iteration):
    """The iteration of one node, with a matrix that is factored for its penalties.

    Products with all columns are made in blocks, which threads share (`mipfs.plumbing.blocks`).
    """

    def __init__(self, solver: Batch) -> None:
        assert solver.loss.kernels is not None
        assert solver.loss.kernels.arrays is not None
        super().__init__(np, solver, solver.loss.kernels.arrays)
        self.is_wide = self.A.shape[0] < self.A.shape[1]
        self._ends = blocks_of(*self.A.shape)
        self.blocks = self._ends.size - 1
        self._at: float | None = None

    def point_on_graph(self, s: ArrayState, kappa: Any) -> tuple[Any, Any]:
        """x = (κI + A'A)⁻¹(κc + A'd) and A x."""
        self._factor(float(kappa[0, 0]))
        e = kappa * s.c + self._pulled(s.d)
        x = (e - self._pulled(self._solve(self._margins(e)))) / kappa if self.is_wide else self._solve(e)
        return x, self._margins(x)

    def _pulled(self, d: Singles) -> Singles:
        """A'd."""
        parts = np.empty((self.blocks, self.A.shape[1]), np.float32)

        def pull(block: int) -> None:
            own = slice(*self._ends[block : block + 2])
            np.matmul(d[0, own], self.A[own], out=parts[block])

        run_each(pull, self.blocks)
        return np.asarray(parts.sum(axis=0, keepdims=True))

    def _margins(self, x: Singles) -> Singles:
        """A x."""
        m = np.empty((1, self.A.shape[0]), np.float32)

        def put(block: int) -> None:
            own = slice(*self._ends[block : block + 2])
            np.matmul(self.A[own], x[0], out=m[0, own])

        run_each(put, self.blocks)
        return m

    @cached_property
    def _square(self) -> Singles:
        """The lower triangle of A'A, or of AA': made by the first iteration, before which limits are heard."""
        B: Singles = self.A if self.is_wide else self.A.T
        square = np.zeros((B.shape[0], B.shape[0]), np.float32)
        ends = cut(np.square(np.arange(B.shape[0] + 1)), self.blocks)

        def put(block: int) -> None:
            begin, end = ends[block : block + 2]
            square[begin:end, :end] = B[begin:end] @ B[:end].T

        run_each(put, self.blocks)
        return square

    def _factor(self, kappa: float) -> None:
        if kappa != self._at:
            matrix = self._square.copy()
            matrix.flat[:: matrix.shape[0] + 1] += np.float32(kappa)
            self._cholesky = linalg.cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
            self._at = kappa

    def _solve(self, e: Singles) -> Singles:
        return np.asarray(linalg.cho_solve(self._cholesky, e.T, check_finite=False).T)


class LongRoot:
    """A node that is relaxed alone, from nothing.

    Parameters
    ----------
    problem : Problem that `is_large`
    alive : (k,) positions of the features in play
    settings : BatchSettings
    """

    def __init__(self, problem: Problem, alive: Integers, settings: BatchSettings) -> None:
        self.solver = ColumnsOnly(problem, alive, np.zeros(1, dtype=np.int8), settings=settings)
        self.iteration, self.alive, self.most = LoneIteration(self.solver), alive, problem.M

    def relaxed(self, states: States, must_stop: Callable[[], bool]) -> RelaxedRoot | None:
        """Relax it to `BatchSettings.near_root`; None where it does not come near in its iterations.

        Nor where the ridge is lost in the loss, so that float32 has no factor.

        Parameters
        ----------
        states : (k,) FREE, INSIDE or OUTSIDE
        must_stop : asked now and then; what there is by then is returned
        """
        with suppress(linalg.LinAlgError), np.errstate(all="ignore"):
            return self._iterate(states, must_stop)
        return None

    def _iterate(self, states: States, must_stop: Callable[[], bool]) -> RelaxedRoot | None:
        settings, one, s = self.solver.settings, self.iteration, self._from_nothing(states)
        used, lower, upper = 0, -math.inf, math.inf
        while used < settings.most_root and not must_stop():
            one.advance(s, settings.steps)
            used += settings.steps
            best, values = one.evaluate_bounds(s)
            lower, upper = float(best[0]), min(upper, float(values[0]))
            if upper - lower <= settings.near_root * abs(upper):
                break
            one.adapt(s, np.isin([used], settings.adapt * np.array(AFTER)))
        comes_near = upper - lower <= settings.stuck * abs(upper)
        return self._found(s, used) if comes_near or must_stop() else None

    def _from_nothing(self, states: States) -> ArrayState:
        shape, n, k = self.iteration.shape, self.iteration.A.shape[0], states.size
        x, c, w, sigma = (np.zeros((1, k), np.float32) for _ in range(4))
        m, d, alpha, best = (np.zeros((1, n), np.float32) for _ in range(4))
        rx, rm, room, value, intercept = (
            np.full((1, 1), one, np.float32) for one in (shape.rx, shape.rm, self._room(states), 0.0, 0.0)
        )
        free, inside = (states == FREE)[None], (states == INSIDE)[None]
        lower = np.full((1, 1), -np.inf)
        return ArrayState(x, c, w, m, d, alpha, best, sigma, free, inside, value, rx, rm, intercept, room, lower)

    def _room(self, states: States) -> int:
        """How many free features may be in."""
        return states.size if self.most is None else max(0, self.most - int(np.count_nonzero(states == INSIDE)))

    def _found(self, s: ArrayState, used: int) -> RelaxedRoot:
        """Where it is, with the weights themselves and the intercept as the kernels have them."""
        solver, root = self.solver, math.sqrt(self.solver.size)
        w = s.w[0].astype(float) * root
        b = float(s.intercept[0, 0]) - solver.moved_by(self.alive, w)
        warm = WarmStart(w.astype(np.float32), b, 0.5)
        return RelaxedRoot(s.best[0].astype(float) * solver.size, warm, s.sigma[0].astype(float), np.empty(0), used)
