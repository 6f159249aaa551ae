"""The inner layer of `two_layer`: a measure's problem over a pool of selections (Mao 2013, Algorithm 1).

    min over μ in the simplex, x   ½ Σ_t ‖x_t‖²/μ_t + Σ_t μ_t c'σᵗ + C max over ȳ of [Δ(ȳ) − w'a(ȳ)]₊,   w = Σ_t √σᵗ∘x_t

by a bundle of labellings: (16), whose size does not depend on the number of samples, gives α and μ; the labelling that
is most violated near its w is the next one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.inner import minimax
from mipfs.inner.restricted import RestrictedSolution, SelectionPool
from mipfs.measures import Violated
from mipfs.plumbing.arrays import Array, Arrays, Integers
from mipfs.problem import Problem
from mipfs.settings import LayerSettings
from mipfs.svm.bundle import BestPoint, store_most_violated
from mipfs.svm.labellings import Labellings, LabellingsDual, combine_dual, combined_arrays

NEGLIGIBLE_SHARE = 1e-9
"""Share of C below which the interior-point method's α_k is what it leaves of a zero."""


class Bundle:
    """The labellings that a layer keeps, and what it has counted.

    Parameters
    ----------
    problem : Problem
    settings : LayerSettings

    Attributes
    ----------
    dual : LabellingsDual, the last dual vector; at first that of w = 0
    """

    def __init__(self, problem: Problem, settings: LayerSettings) -> None:
        self.problem, self.measure, self.settings = problem, problem.measured, settings
        self.labellings = Labellings(problem.data, self.measure)
        self.labellings.add(self.measure.violated(np.zeros(self.measure.n)))
        self.dual: LabellingsDual = self.labellings.combine(np.array([problem.C]), problem.C)
        # a point of the primal: the weights of the pool or of the atoms, and x in one vector
        self.best: BestPoint[tuple[Array, Array]] = BestPoint((np.empty(0), np.empty(0)))
        self.masters = 0

    def kept(self) -> Callable[[], Arrays]:
        """What makes arrays of labellings, last dual vector, best point and counts, as they are now."""
        labellings, dual, (weights, x) = self.labellings.kept(), self.dual, self.best.point
        numbers = np.array([self.best.upper, self.best.asked, self.masters], dtype=float)
        return lambda: {
            **labellings(),
            **combined_arrays("last_dual", dual),
            "layer_numbers": numbers,
            "layer_weights": weights,
            "layer_x": x,
        }

    def take_up(self, kept: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go on from what `kept` made.

        Raises
        ------
        ValueError
            It is of other samples.
        """
        self.labellings.take_up(kept)
        dual = combine_dual("last_dual", kept, self.measure)
        assert dual is not None
        self.dual = dual
        upper, asked, self.masters = kept["layer_numbers"][0], *map(int, kept["layer_numbers"][1:].tolist())
        weights, x = (np.array(kept[f"layer_{name}"], dtype=float) for name in ("weights", "x"))
        if np.isnan(upper) or any(part.ndim != 1 or not np.isfinite(part).all() for part in (weights, x)):
            raise ValueError("the best point is none")
        self.best = BestPoint((weights, x), float(upper), asked)

    def counters(self, pool: SelectionPool) -> dict[str, int]:
        """Selections, labellings that are kept, oracle calls and solves of (16) so far."""
        labellings = len(self.labellings)
        oracles = self.best.asked
        return {"selections": len(pool), "labellings": labellings, "oracles": oracles, "masters": self.masters}

    def widen(self, weights: int, x: int) -> None:
        """Enlarge the best point by zeros, to `weights` weights and `x` entries of x."""
        old = self.best.point
        self.best.point = (
            np.append(old[0], np.zeros(weights - old[0].size)),
            np.append(old[1], np.zeros(x - old[1].size)),
        )


class BundleMethod(Bundle):
    """Algorithm 1: the problem over a pool of selections, by a bundle of labellings that is kept.

    Parameters
    ----------
    problem : Problem
    settings : LayerSettings
    """

    def __init__(self, problem: Problem, settings: LayerSettings) -> None:
        super().__init__(problem, settings)
        self._solve = minimax.solve
        self._entries: list[tuple[Integers, Array]] = []

    def solve(self, pool: SelectionPool, tol: float, must_stop: Callable[[], bool]) -> RestrictedSolution:
        """Solve to an absolute gap `tol`, warm from the last call on a smaller pool."""
        labellings = self.labellings
        C = self.problem.C
        columns = self._extend_to_pool(pool)
        lower = -math.inf
        alpha = np.zeros(len(labellings))
        if len(labellings) > self.settings.pool_drop_above:
            labellings.drop(self.settings.pool_drop_after, self.settings.pool_drop_above // 2)
        for _ in range(self.settings.pool_rounds):
            blocks = columns.blocks(labellings)
            # Mao 2013, Algorithm 1, step 1: the saddle point over the labellings so far.
            found = self._solve(blocks, labellings.losses, columns.costs, C)
            self.masters += 1
            if found is None:
                break
            given, mu = found
            given *= min(1.0, C / max(given.sum(), 1e-300))
            labellings.mark(given > NEGLIGIBLE_SHARE * C)
            proven = float(labellings.losses @ given) - max(
                0.5 * float(np.sum(np.square(A_t @ given))) - c for A_t, c in zip(blocks, columns.costs, strict=True)
            )
            if proven > lower:
                lower = proven
                alpha = given
            x = polish_dual(blocks, labellings.losses, mu, given, C)
            # Mao 2013, Algorithm 1, step 2: the labellings that w violates most.
            if not self._ask_for_labelling(columns, mu, x, lower + tol) or must_stop():
                break
        if lower > -math.inf:
            self.dual = labellings.combine(np.append(alpha, np.zeros(len(labellings) - alpha.size)), C)
        mu, x = self.best.point
        return RestrictedSolution(
            self.best.upper, self.measure.y * self.dual.v, mu, columns.ids, columns.scale * x, 0.0
        )

    def _extend_to_pool(self, pool: SelectionPool) -> PoolColumns:
        """Take in the selections that are new: their columns, and zeros in the best point."""
        problem = self.problem
        for atoms, sigma in pool.members[len(self._entries) :]:
            columns = problem.atoms.columns(atoms)
            self._entries.append((columns.ids, np.sqrt(sigma[columns.atom]) * columns.scale))
        costs = np.array([float(problem.penalty[atoms] @ sigma) for atoms, sigma in pool.members])
        made = PoolColumns(problem, self._entries, costs)
        if not self.best.point[0].size:
            self.best.point = np.full(len(pool), 1.0 / len(pool)), np.empty(0)
        self.widen(len(pool), made.ids.size)
        return made

    def _ask_for_labelling(self, columns: PoolColumns, mu: Array, x: Array, goal: float) -> bool:
        """Ask for the labelling that is most violated between the best point and (μ, x), or else at (μ, x).

        Returns
        -------
        bool
            Whether it is a new one, and the best point's value still above `goal`.
        """
        C, begin = self.problem.C, self.best.point

        def at(step: float) -> tuple[float, tuple[Array, Array], Violated]:
            here, there = begin[0] + step * (mu - begin[0]), begin[1] + step * (x - begin[1])
            violated = self.measure.violated(columns.scores(there))
            size, here = columns.regulariser(here, there)
            return size + C * max(0.0, violated.value), (here, there), violated

        return store_most_violated(self.best, at, self.labellings, is_closed=lambda: self.best.upper <= goal)


def polish_dual(blocks: list[Array], losses: Array, mu: Array, alpha: Array, C: float) -> Array:
    """x_t = μ_t A_t α for the α that is best for this μ, found by an active set from the given one.

    An interior-point α is right in its value; what is linear in its error, such as w, is not.
    """
    from mipfs.kernels.simplex_qp import PROXIMAL_WEIGHT, maximise_on_simplex

    B = np.vstack([np.sqrt(C * m) * A_t for m, A_t in zip(mu, blocks, strict=True)])
    B = np.column_stack([np.zeros(B.shape[0]), B])
    kept = np.where(alpha > NEGLIGIBLE_SHARE * C, alpha / C, 0.0)
    beta = np.append(max(0.0, 1.0 - kept.sum()), kept)
    maximise_on_simplex(B.T @ B, np.append(0.0, losses), beta, PROXIMAL_WEIGHT)
    return np.concatenate([m * C * (A_t @ beta[1:]) for m, A_t in zip(mu, blocks, strict=True)])


class PoolColumns:
    """The columns of a pool's selections, one selection after the other.

    Parameters
    ----------
    problem : Problem
    entries : (ids, scale) of every selection, scale = √σ∘λ
    costs : (T,) c'σ of every selection
    """

    def __init__(self, problem: Problem, entries: list[tuple[Integers, Array]], costs: Array) -> None:
        self.ids = np.concatenate([ids for ids, _ in entries])
        self.scale = np.concatenate([scale for _, scale in entries])
        self.owner = np.repeat(np.arange(len(entries)), [ids.size for ids, _ in entries])
        self.costs = costs
        self._ends = np.cumsum([ids.size for ids, _ in entries])[:-1]
        self._used, self._places = np.unique(self.ids, return_inverse=True)
        self._block = problem.data.block(self._used)

    def blocks(self, labellings: Labellings) -> list[Array]:
        """A_t of every selection, shape (m_t, K)."""
        A = labellings.block(self._used, self._block.values)[self._places]
        return np.split(self.scale[:, None] * A, self._ends)

    def scores(self, x: Array) -> Array:
        """w'x_i of every sample, shape (n,), for the weights scale∘x."""
        return self._block.scores(np.bincount(self._places, self.scale * x, self._used.size))

    def regulariser(self, mu: Array, x: Array) -> tuple[float, Array]:
        """½ Σ ‖x_t‖²/μ_t + Σ μ_t c_t, and μ: without penalties that of least value, which makes it ½ (Σ ‖x_t‖)²."""
        squares = np.bincount(self.owner, np.square(x), mu.size)
        if not np.any(self.costs):
            norms = np.sqrt(squares)
            total = float(norms.sum())
            return 0.5 * total * total, norms / total if total > 0.0 else mu
        parts = np.divide(squares, mu, out=np.where(squares > 0.0, np.inf, 0.0), where=mu > 0.0)
        return 0.5 * float(parts.sum()) + float(mu @ self.costs), mu
