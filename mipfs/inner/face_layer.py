"""The inner layer of `two_layer` where S is a cardinality row and forced atoms: over a face of S, not over a pool.

    min over 0 ≤ σ ≤ 1, Σσ ≤ M, σ = 0 off F, x   ½ Σ_g ‖x_g‖²/σ_g + c'σ + C max over ȳ of [Δ(ȳ) − w'a(ȳ)]₊

F is what the selections found so far are made of. The polytope is the hull of all selections made of F, those of the
pool among them: its value is at most that of Mao 2013, (16), and both end at the same relaxation. A mixture needs about
as many selections as σ has fractional entries; here every selection brings up to M atoms at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.inner.inner_layer import Bundle, PoolColumns
from mipfs.inner.polytope import AtomPolytope
from mipfs.inner.restricted import RestrictedSolution, SelectionPool
from mipfs.inner.saddle import Saddle
from mipfs.measures import Violated
from mipfs.plumbing.arrays import Array, Arrays, Integers, check_positions, scatter
from mipfs.problem import Problem
from mipfs.settings import LayerSettings
from mipfs.svm.bundle import store_most_violated


class FacePool(SelectionPool):
    """The selections generated so far, and with them all others made of their atoms; its weights are σ of the atoms.

    Attributes
    ----------
    atoms : (G,) positions of the atoms, in the order of their arrival
    """

    is_face = True

    @property
    def most_weights(self) -> int:
        """How many weights of its atoms there may be."""
        return int(self.atoms.size)

    def __init__(self) -> None:
        super().__init__()
        self.atoms: Integers = np.empty(0, dtype=np.int64)

    def add(self, ids: Integers, sigma: Array) -> bool:
        """Add a selection; False when it is made of atoms that are there already."""
        fresh = self.take_in(ids)
        return super().add(ids, sigma) and (fresh > 0 or len(self) == 1)

    def kept(self) -> Callable[[], Arrays]:
        """What makes arrays of all selections and atoms that there are now, for the state of a run."""
        members, atoms = super().kept(), self.atoms
        return lambda: {**members(), "pool_atoms": atoms}

    def take_up(self, kept: Mapping[str, npt.NDArray[Any]], count: int) -> None:
        """Add what `arrays` kept, of a face with its atoms in their order."""
        self.atoms = kept.get("pool_atoms", self.atoms)
        check_positions(self.atoms, count)
        if np.unique(self.atoms).size < self.atoms.size:
            raise ValueError("a face has an atom twice")
        super().take_up(kept, count)

    def take_in(self, ids: Integers) -> int:
        """Let atoms be among those that selections are made of; how many were not."""
        fresh = np.setdiff1d(ids, self.atoms)
        self.atoms = np.concatenate([self.atoms, fresh])
        return int(fresh.size)

    @property
    def used(self) -> Integers:
        """The atoms, ascending."""
        return np.sort(self.atoms)

    def sparse_mixture(self, mu: Array) -> dict[int, float]:
        """σ by position; of the first atoms, if others came later."""
        return dict(zip(self.atoms[: mu.size].tolist(), mu.tolist(), strict=True))

    def mixture(self, mu: Array, count: int) -> Array:
        """σ, shape (count,)."""
        return scatter(count, self.atoms, mu)


class FaceLayer(Bundle):
    """Algorithm 1 over a `FacePool`, by a bundle of labellings and the interior-point master `Saddle`.

    Parameters
    ----------
    problem : Problem, its S plain

    Notes
    -----
    Holds the columns of F, and for every labelling its counts (n of them, one to four bytes each) and its rows of A
    (8 bytes for every column that was ever in F); a master takes twice the latter and 24 K² bytes for K labellings.
    """

    def __init__(self, problem: Problem, settings: LayerSettings) -> None:
        super().__init__(problem, settings)
        self._saddle = Saddle(settings.saddle)

    def kept(self) -> Callable[[], Arrays]:
        """What makes arrays of the bundle, and of the master's iterate."""
        bundle, saddle = super().kept(), self._saddle.kept()
        return lambda: {**bundle(), **saddle()}

    def take_up(self, kept: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go on from what `kept` made."""
        super().take_up(kept)
        self._saddle.take_up(kept)

    def solve(self, pool: SelectionPool, tol: float, must_stop: Callable[[], bool]) -> RestrictedSolution:
        """Solve to an absolute gap `tol`, warm from the last call on a smaller face; μ of the solution is σ."""
        labellings = self.labellings
        saddle = self._saddle
        C = self.problem.C
        settings = self.settings
        columns, S = self._extend_to_face(pool)
        lower = -math.inf
        alpha = np.empty(0)
        sharpness = 1.0
        for _ in range(settings.rounds):
            # In units of C: α = Cβ, x = √C σ∘Bβ.
            B = math.sqrt(C) * columns.blocks(labellings)[0]
            gap = min(C, max(tol, self.best.upper - lower)) / C
            # Mao 2013, Algorithm 1, step 1: the saddle point over the labellings so far.
            saddle.solve(B, labellings.losses, S, sharpness * settings.share * gap)
            self.masters += 1
            beta = saddle.beta[1:]
            omega = B @ beta
            proven = C * (float(labellings.losses @ beta) - S.most(S.sums(np.square(omega))))
            if proven > lower:
                lower = proven
                alpha = C * beta
            if self._is_time_to_drop:
                self._keep_dual(alpha)
                alpha = np.empty(0)
            self._drop_idle_labellings(columns.ids.size + 1)
            # Mao 2013, Algorithm 1, step 2: the labellings that w violates most.
            is_new = self._ask_for_labellings(columns, S, math.sqrt(C) * S.spread(saddle.sigma) * omega, must_stop)
            sharpness = 1.0 if is_new else 0.1 * sharpness
            if self.best.upper <= lower + tol or sharpness < settings.exact_saddle or must_stop():
                break
        self._keep_dual(alpha)
        sigma, x = self.best.point
        return RestrictedSolution(
            self.best.upper, self.measure.y * self.dual.v, sigma, columns.ids, columns.scale * x, 0.0
        )

    def _extend_to_face(self, face: SelectionPool) -> tuple[PoolColumns, AtomPolytope]:
        """The columns of the face and its σ, and zeros in the best point for what is new."""
        assert isinstance(face, FacePool)
        problem = self.problem
        selection = self.problem.selection
        found = problem.atoms.columns(face.atoms)
        free = selection.sigma_bounds()[0][face.atoms] < 0.5
        room = selection.n_features if selection.M is None else selection.M
        cost = problem.penalty[face.atoms] / problem.C
        self.widen(free.size, found.ids.size)
        columns = PoolColumns(problem, [(found.ids, found.scale)], np.zeros(1))
        return columns, AtomPolytope(cost, free, room - len(selection.forced_in), found.atom)

    def _ask_for_labellings(
        self, columns: PoolColumns, S: AtomPolytope, x: Array, must_stop: Callable[[], bool]
    ) -> bool:
        """Ask for the labellings that are most violated between the best point and x, and at x; whether one is new."""
        C, begin = self.problem.C, self.best.point[1]

        def at(step: float) -> tuple[float, tuple[Array, Array], Violated]:
            here = begin + step * (x - begin)
            violated = self.measure.violated(columns.scores(here))
            size, sigma = S.least(S.sums(np.square(here)) / C)
            return C * (size + max(0.0, violated.value)), (sigma, here), violated

        return store_most_violated(self.best, at, self.labellings, is_closed=must_stop, both=True)

    def _keep_dual(self, alpha: Array) -> None:
        """Keep a dual vector, which may lack the last labellings; an empty one is kept already."""
        if alpha.size:
            self.dual = self.labellings.combine(
                np.append(alpha, np.zeros(len(self.labellings) - alpha.size)), self.problem.C
            )

    @property
    def _is_time_to_drop(self) -> bool:
        """Whether labellings that were long inactive go now."""
        return self.masters % self.settings.drop_every == 0 and len(self.labellings) > self.settings.drop_above

    def _drop_idle_labellings(self, most: int) -> None:
        """Take note of which labellings are active, `most` at most, and drop those that have long been inactive."""
        labellings = self.labellings
        saddle = self._saddle
        # near the central path β_k s_k = μ: β is about 1/K where s is small, and s about the value where β is
        value = min(1.0, self.best.upper / self.problem.C)
        least = self.settings.active * math.sqrt(saddle.mu / (len(labellings) * max(value, 1e-12)))
        if len(labellings) > most:
            least = max(least, float(np.partition(saddle.beta[1:], -most)[-most]))
        labellings.mark(saddle.beta[1:] >= least)
        if self._is_time_to_drop:
            saddle.keep(labellings.drop(self.settings.drop_after, self.settings.drop_above // 2))
