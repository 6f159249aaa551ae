"""Benders cuts η ≥ g(α) − ½ Σ s_j(α) σ_j (Aytug 2015, (10)), earned from feasible dual vectors.

s_j is ω_j², of a group the sum over its columns. Of a regulariser other than the ridge it is twice the conjugate,
2h(ω_j): wherever scores are read, ½s_j is what an atom lowers a cut by.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from mipfs.kernels.bound import rounded_down
from mipfs.losses import get_loss
from mipfs.plumbing.arrays import Array
from mipfs.proof.duals import DualStore
from mipfs.proof.labelled import LabelledStore

if TYPE_CHECKING:
    from mipfs.problem import Problem

Dual = tuple[Any, ...]
"""α = k·2^−q as (k, q), or over labellings as (counts, whole, q): what `DualStore` or `LabelledStore` keeps."""


@dataclass(frozen=True, eq=False)
class Cut:
    """v(σ) ≥ constant − ½ slopes'σ for every σ in [0, 1]^p.

    Attributes
    ----------
    constant : float, g(α) rounded down
    slopes : (p,) s(α) rounded up
    dual : Dual, α itself: what a certificate, and a problem of another C, need
    """

    constant: float
    slopes: Array
    dual: Dual

    def __call__(self, sigma: Array) -> float:
        """The cut's value at σ."""
        return self.constant - 0.5 * float(self.slopes @ sigma)


def dual_value_below(loss: ModuleType, alpha: Array, c: Array) -> float:
    """g(α) of a loss, less the rounding error of its sum."""
    return float(rounded_down(loss.dual_value(alpha, c), loss.dual_magnitude(alpha, c), alpha.size))


def scores_of(problem: Problem, v: Array) -> Array:
    """s of every atom (p,) for v = α∘y (n,), as it is computed."""
    if problem.regulariser.is_ridge:
        return problem.atoms.scores(v)
    return 2.0 * problem.regulariser.conjugate(problem.single_features.omega(v))


def scores_above(problem: Problem, v: Array) -> Array:
    """s of every atom (p,) for v = α∘y (n,), rounded up."""
    if problem.regulariser.is_ridge:
        scores = problem.atoms.scores(v)
        return scores + problem.atoms.score_error(v, scores)
    features = problem.single_features
    return 2.0 * problem.regulariser.conjugate_above(features.omega(v), features.omega_error(v))


def cut_from_dual(problem: Problem, alpha: Array, value: float, dual: Dual) -> Cut:
    """The cut of a feasible dual vector, with all rounding errors on the safe side.

    Parameters
    ----------
    problem : Problem
    alpha : (n,) feasible dual vector
    value : float, g(α) rounded down
    dual : Dual, α on its grid
    """
    return Cut(value, scores_above(problem, alpha * problem.data.y), dual)


def cut_of_dual(problem: Problem, dual: Dual) -> Cut:
    """The cut of a dual vector (k, q), of a loss that is a sum over the samples."""
    alpha = decoded(dual)
    return cut_from_dual(problem, alpha, dual_value_below(get_loss(problem.loss), alpha, problem.c_i), dual)


def decoded(dual: Dual) -> Array:
    """α (n,) of a dual vector (k, q)."""
    whole, q = dual
    alpha = whole.astype(float)
    return np.asarray(np.ldexp(alpha, -q, out=alpha))


class CutPool:
    """Cuts in growing arrays, of one problem; they depend on neither its S nor M nor the penalties.

    Parameters
    ----------
    problem : Problem
        Whose cuts these are. `mipfs.run.carry.taken_over` says where else they hold, and as what.

    Attributes
    ----------
    duals : DualStore, LabelledStore or None, the dual vectors of the cuts, compressed
    dual_of : list of int, the position there of every cut's
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._constants = np.empty(0)
        self._slopes = np.empty((0, problem.atoms.count))
        self.duals: DualStore | LabelledStore | None = None
        self.dual_of: list[int] = []
        self.size = 0

    def __len__(self) -> int:
        return self.size

    @property
    def constants(self) -> Array:
        """g of every cut, shape (k,)."""
        return self._constants[: self.size]

    @property
    def slopes(self) -> Array:
        """s of every cut, shape (k, p)."""
        return self._slopes[: self.size]

    def add(self, cut: Cut) -> int:
        """Store a cut; returns its position."""
        if self.size == self._constants.size:
            more = max(1, self.size)
            self._constants = np.concatenate([self._constants, np.empty(more)])
            self._slopes = np.concatenate([self._slopes, np.empty((more, self._slopes.shape[1]))])
        self._constants[self.size] = cut.constant
        self._slopes[self.size] = cut.slopes
        self.dual_of.append(self._keep(cut.dual))
        self.size += 1
        return self.size - 1

    def _keep(self, dual: Dual) -> int:
        """The position of a dual vector among those that are kept."""
        if self.duals is None:
            self.duals = DualStore(dual[0].size) if len(dual) == 2 else LabelledStore(dual[0].shape[1])
        return self.duals.add(*dual)

    def cut(self, i: int) -> Cut:
        """A stored cut, with its dual vector."""
        assert self.duals is not None
        return Cut(float(self._constants[i]), self._slopes[i], self.duals.get(self.dual_of[i]))

    def values(self, sigma: Array) -> Array:
        """Every cut's value at σ, shape (k,)."""
        return self.constants - 0.5 * (self.slopes @ sigma)
