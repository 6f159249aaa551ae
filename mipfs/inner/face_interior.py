"""The restricted problem of `kelley` where S is a cardinality row and forced atoms: over a face of S, for every loss.

The pool's selections are taken with all others that are made of their atoms, as in `mipfs.inner.face_layer`: the
polytope is larger, its value at most the pool's, and both end at the same relaxation. Solved by an interior point
(`mipfs.inner.boolean`), which knows neither scales nor kinks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.inner.boolean import Boolean
from mipfs.inner.face_layer import FacePool
from mipfs.inner.restricted import RestrictedSolution, SelectionPool
from mipfs.plumbing.arrays import Arrays, Integers, mask_of
from mipfs.problem import Problem
from mipfs.proof.cuts import decode_dual


class FaceInterior:
    """The Boolean relaxation on the atoms of a `FacePool`; μ of the solution is σ.

    Parameters
    ----------
    problem : Problem, its S plain, its loss a sum over the samples
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._forced = problem.atoms_of(problem.forced_in or ())

    def solve(self, pool: SelectionPool, tol: float, must_stop: Callable[[], bool]) -> RestrictedSolution:
        """Solve to an absolute gap `tol`; nothing is as long as all atoms are."""
        assert isinstance(pool, FacePool)
        atoms = np.union1d(pool.atoms, self._forced)
        # A dual vector has a multiplier for every row over the weights, whose columns may lie outside of the face.
        if self.problem.weight_rows:
            return self._of_whole(pool, atoms, tol, must_stop)
        part = self.problem.restricted(atoms)
        low, high = part.selection.sigma_bounds()
        solved = Boolean(part, must_stop).solve(low, high, 0.0, lambda lower, upper: upper - lower <= tol)
        assert solved.cut.dual is not None
        whole, q = solved.cut.dual
        alpha = np.ldexp(whole.astype(float), -q)
        ids = self._columns_of_atoms(atoms)[solved.ids]
        return RestrictedSolution(
            solved.upper, alpha, solved.sigma[np.searchsorted(atoms, pool.atoms)], ids, solved.w, solved.b
        )

    def _of_whole(
        self, face: FacePool, atoms: Integers, tol: float, must_stop: Callable[[], bool]
    ) -> RestrictedSolution:
        """Solve the whole problem over the face, with σ = 0 of all other atoms."""
        low, high = self.problem.selection.sigma_bounds()
        high = high * mask_of(self.problem.atoms.count, atoms)
        solved = Boolean(self.problem, must_stop).solve(low, high, 0.0, lambda lower, upper: upper - lower <= tol)
        return RestrictedSolution(
            solved.upper, decode_dual(solved.cut.dual), solved.sigma[face.atoms], solved.ids, solved.w, solved.b
        )

    def kept(self) -> Callable[[], Arrays]:
        """Nothing: it begins anew on every pool."""
        return dict

    def take_up(self, kept: Mapping[str, npt.NDArray[Any]], pool: SelectionPool) -> None:
        """Nothing is gone on from."""

    def _columns_of_atoms(self, atoms: Integers) -> Integers:
        """The columns (k,) of the data that the restricted problem has: those of the atoms, each once, ascending."""
        return np.unique(self.problem.atoms.columns(atoms).ids)
