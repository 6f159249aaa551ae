"""Benders cuts η ≥ g(α) − ½ Σ s_j(α) σ_j (Aytug 2015, (10)), earned from feasible dual vectors.

Where there are rows over the weights (`mipfs.data.over_weights`) α goes on behind the samples with the multipliers
ν ≥ 0 of their ends: then g has − ν'o, and ω has + D'ν.

s_j is ω_j², of a group the sum over its columns. Of a regulariser other than the ridge it is twice the conjugate,
2h(ω_j), of a group the sum of these: wherever scores are read, ½s_j is what an atom lowers a cut by.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from mipfs.kernels.bound import U, add_down, rounded_down
from mipfs.losses import get_loss
from mipfs.plumbing.arrays import Array, Integers
from mipfs.proof.duals import DualStore
from mipfs.proof.labelled import LabelledStore
from mipfs.svm.dyadic import on_grid

if TYPE_CHECKING:
    from mipfs.problem import Problem

Dual = tuple[Any, ...]
"""α = k·2^−q as (k, q), or over labellings as (counts, whole, q): what `DualStore` or `LabelledStore` keeps."""
MOST_BITS = 52
"""Bits of the largest multiplier of a row over the weights."""


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


def value_below(problem: Problem, alpha: Array) -> float:
    """g of a dual vector (dual_size,) of a problem, less the rounding error of its sum."""
    n = problem.data.n_samples
    g = dual_value_below(get_loss(problem.loss), alpha[:n], problem.c_i)
    if not problem.weight_rows:
        return g
    cost = problem.ends.cost(alpha[n:])
    return float(add_down(g, -cost - 2.0 * U * cost))


def dual_value_of(problem: Problem, alpha: Array) -> float:
    """g of a dual vector (dual_size,) of a problem, as it is computed."""
    n = problem.data.n_samples
    value = float(get_loss(problem.loss).dual_value(alpha[:n], problem.c_i))
    return value - float(problem.ends.cost(alpha[n:]).sum()) if problem.weight_rows else value


def dual_top(problem: Problem) -> Array:
    """c_i, and of every multiplier of a row over the weights 0, (dual_size,): no entry that is held is at that top.

    Where all c_i are equal so are those: then the largest entry of a vector is the top of all (`DualStore`).
    """
    c = problem.c_i
    if not problem.weight_rows:
        return c
    return np.append(c, np.full(problem.ends.count, c[0] if np.all(c == c[0]) else 0.0))


def feasible_dual(problem: Problem, alpha: Array) -> tuple[Integers, int]:
    """α (dual_size,) on a grid on which its box and y'α = 0 are integer identities; see `mipfs.svm.dyadic`.

    Multipliers have a sign alone, and lie on the grid of the samples, which is made coarser for large ones.
    """
    return feasible_of(problem.loss, problem.c_i, problem.data.y, problem.bias, alpha)


def feasible_of(loss: str, c: Array, y: Array, bias: bool, alpha: Array) -> tuple[Integers, int]:
    """`feasible_dual` of a loss's name, c (n,), y (n,), and whether y'α = 0: all that it asks of a problem."""
    n = c.size
    whole, q = get_loss(loss).feasible_dual(alpha[:n], c, y, bias)
    if alpha.size == n:
        return whole, q
    nu = np.maximum(alpha[n:], 0.0)
    most = math.frexp(float(nu.max(initial=0.0)))[1]
    if most + q > MOST_BITS:
        q = MOST_BITS - most
        whole = on_grid(alpha[:n], get_loss(loss).top(c), y if bias else None, q)
    multipliers = np.rint(np.ldexp(nu, q)).astype(np.int64)
    return np.append(whole, multipliers), q


def scores_of(problem: Problem, v: Array) -> Array:
    """s of every atom (p,) for v = α∘y (n,), as it is computed; behind it the multipliers of rows over the weights."""
    if problem.weight_rows:
        return _scores_with_error(problem, *_omega_with_error(problem, v), 0.0)
    if problem.regulariser.is_ridge:
        return problem.atoms.scores(v)
    features = problem.columns_alone
    return problem.of_atoms(2.0 * problem.regulariser.conjugate(features.omega(v)))


def scores_above(problem: Problem, v: Array) -> Array:
    """s of every atom (p,) for v = α∘y (n,), rounded up; behind it the multipliers of rows over the weights."""
    if problem.weight_rows:
        return _scores_with_error(problem, *_omega_with_error(problem, v), 1.0)
    if problem.regulariser.is_ridge:
        scores = problem.atoms.scores(v)
        return scores + problem.atoms.score_error(v, scores)
    features = problem.columns_alone
    each = 2.0 * problem.regulariser.conjugate_above(features.omega(v), features.omega_error(v))
    if problem.selects_features:
        return each
    return problem.of_atoms(each) * (1.0 + 2.0 * (problem.groups.sizes + 1) * U)


def _omega_with_error(problem: Problem, v: Array) -> tuple[Array, Array]:
    """ω of every column (p,) with the multipliers of rows over the weights, and a bound on its rounding error."""
    n = problem.data.n_samples
    columns, nu = problem.columns_alone, v[n:]
    own, rows = columns.omega(v[:n]), problem.ends.pulled(nu)
    error = columns.omega_error(v[:n]) + problem.ends.pulled_error(nu) + 2.0 * U * (np.abs(own) + np.abs(rows))
    return own + rows, error


def _scores_with_error(problem: Problem, omega: Array, error: Array, share: float) -> Array:
    """s of every atom (count,) of ω (p,); with a share of 1 rounded up, for all that lies within the error."""
    if not problem.regulariser.is_ridge:
        regulariser = problem.regulariser
        each = 2.0 * (regulariser.conjugate_above(omega, error) if share else regulariser.conjugate(omega))
        if problem.selects_features:
            return np.asarray(each)
        return problem.of_atoms(each) * (1.0 + share * 2.0 * (problem.groups.sizes + 1) * U)
    whole = problem.all_columns
    size = np.abs(omega) + share * error
    squares = np.square(size[whole.ids] * whole.scale)
    sums = np.bincount(whole.atom, squares, minlength=problem.atoms.count)
    return np.asarray(sums * (1.0 + share * 2.0 * (whole.ids.size + 16) * U))


def cut_from_dual(problem: Problem, alpha: Array, value: float, dual: Dual) -> Cut:
    """The cut of a feasible dual vector, with all rounding errors on the safe side.

    Parameters
    ----------
    problem : Problem
    alpha : (n,) feasible dual vector
    value : float, g(α) rounded down
    dual : Dual, α on its grid
    """
    return Cut(value, scores_above(problem, alpha * problem.dual_signs), dual)


def cut_of_dual(problem: Problem, dual: Dual) -> Cut:
    """The cut of a dual vector (k, q), of a loss that is a sum over the samples."""
    alpha = decode_dual(dual)
    return cut_from_dual(problem, alpha, value_below(problem, alpha), dual)


def decode_dual(dual: Dual) -> Array:
    """α (n,) of a dual vector (k, q)."""
    whole, q = dual
    alpha = whole.astype(float)
    return np.asarray(np.ldexp(alpha, -q, out=alpha))


class CutPool:
    """Cuts in growing arrays, of one problem; they depend on neither its S nor M nor the penalties.

    Parameters
    ----------
    problem : Problem
        Whose cuts these are. `mipfs.run.carry.adapt_cuts` says where else they hold, and as what.

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
        self.dual_of.append(self._keep_dual(cut.dual))
        self.size += 1
        return self.size - 1

    def take(self, other: CutPool) -> None:
        """Take the cuts of another pool of the same problem, which has none then."""
        for i in range(len(other)):
            self.add(other.cut(i))
        other.duals, other.dual_of, other.size = None, [], 0

    def _keep_dual(self, dual: Dual) -> int:
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
