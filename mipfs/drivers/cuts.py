"""Benders cuts η ≥ g(α) − ½ Σ s_j(α) σ_j (Aytug 2015, (10)), earned from feasible dual vectors."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.atoms import Atoms
from mipfs.atoms.features import UNIT_ROUNDOFF
from mipfs.certificate.duals import DualStore
from mipfs.certificate.labelled import LabelledStore

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Dual = tuple[Any, ...]
"""α = k·2^−q as (k, q), or over labellings as (counts, whole, q): what `DualStore` or `LabelledStore` keeps."""


@dataclass(frozen=True, eq=False)
class Cut:
    """v(σ) ≥ constant − ½ slopes'σ for every σ in [0, 1]^p.

    Attributes
    ----------
    constant : float, g(α) rounded down
    slopes : (p,) s(α) rounded up
    dual : Dual, optional, α itself: what a certificate needs
    """

    constant: float
    slopes: Array
    dual: Dual | None = None

    def __call__(self, sigma: Array) -> float:
        """The cut's value at σ."""
        return self.constant - 0.5 * float(self.slopes @ sigma)


def dual_value_below(loss: ModuleType, alpha: Array, c: Array) -> float:
    """g(α) of a loss, less the rounding error of its sum."""
    error = 2.0 * (alpha.size + 8) * UNIT_ROUNDOFF * loss.dual_magnitude(alpha, c)
    return float(loss.dual_value(alpha, c)) - float(error)


def cut_from_dual(atoms: Atoms, alpha: Array, y: Array, value: float) -> Cut:
    """The cut of a feasible dual vector, with all rounding errors on the safe side.

    Parameters
    ----------
    atoms : Atoms
    alpha : (n,) feasible dual vector
    y : (n,) labels
    value : float, g(α) rounded down
    """
    v = alpha * y
    scores = atoms.scores(v)
    return Cut(value, scores + atoms.score_error(v, scores))


class CutPool:
    """Cuts in growing arrays; they depend on neither S nor M nor the penalties.

    Parameters
    ----------
    n_features : int

    Attributes
    ----------
    duals : DualStore, LabelledStore or None, the dual vectors of the cuts that came with one, compressed
    dual_of : list of int, the position there of every cut's; -1 without one
    """

    def __init__(self, n_features: int) -> None:
        self._constants = np.empty(0)
        self._slopes = np.empty((0, n_features))
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
        self.dual_of.append(-1 if cut.dual is None else self._keep(cut.dual))
        self.size += 1
        return self.size - 1

    def _keep(self, dual: Dual) -> int:
        """The position of a dual vector among those that are kept."""
        if self.duals is None:
            self.duals = DualStore(dual[0].size) if len(dual) == 2 else LabelledStore(dual[0].shape[1])
        return self.duals.add(*dual)

    def cut(self, i: int) -> Cut:
        """A stored cut, with its dual vector."""
        dual = self.duals.get(self.dual_of[i]) if self.duals is not None and self.dual_of[i] >= 0 else None
        return Cut(float(self._constants[i]), self._slopes[i], dual)

    def values(self, sigma: Array) -> Array:
        """Every cut's value at σ, shape (k,)."""
        return self.constants - 0.5 * (self.slopes @ sigma)

    def for_smaller_loss(self, ratio: float) -> CutPool:
        """The pool for C′ = ratio·C ≤ C with the hinge loss: α′ = ratio·α has g′ = ratio·g, s′ = ratio²·s.

        For a larger C the cuts hold as they are.
        """
        pool = CutPool(self._slopes.shape[1])
        for g, s in zip(self.constants, self.slopes, strict=True):
            pool.add(Cut(float(g) * ratio - 4 * UNIT_ROUNDOFF * abs(g), s * ratio**2 * (1 + 4 * UNIT_ROUNDOFF)))
        return pool
