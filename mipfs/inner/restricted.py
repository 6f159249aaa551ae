"""The restricted problem of the Kelley driver, (P) over the hull of a pool of selections (reduced MKL).

    min over μ in the simplex of  Σ_t μ_t c'σᵗ + v(Σ_t μ_t σᵗ)
  = max over α ∈ A of  g(α) − max_t (½ s(α)'σᵗ − c'σᵗ)                        (Tan 2014, (31) and (35) corrected)

`Proximal` is Tan's accelerated proximal gradient, for smooth losses without penalties, where the problem is
min ½(Σ‖w_t‖)² + L and μ_t = ‖w_t‖ / Σ‖w_t‖. `Cutting` works for every loss: Benders cuts in μ, stabilised, with
α the combination of the cuts' dual vectors that the last LP's multipliers give.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from mipfs.inner.alike import alike
from mipfs.inner.subproblem import Subproblem
from mipfs.losses import get_loss
from mipfs.losses.solver import kernel_rows
from mipfs.problem import Problem
from mipfs.solvers import highs

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

STEPS = 15
"""Proximal steps between two looks at the gap, the clock and the interrupt flag."""
MAX_SLICES = 400
"""Slices after which the proximal gradient is taken as it is."""
MAX_CUTS = 2000
"""Cuts after which the cutting planes are taken as they are."""


@dataclass(frozen=True, eq=False)
class Solution:
    """A solved restricted problem.

    Attributes
    ----------
    upper : float, its objective at a feasible point: an upper bound on the relaxation's value
    alpha : (n,) feasible dual vector
    mu : (t,) weights of the pool
    ids : positions of the columns of X, some may stand twice
    w : their weights (scaled data)
    b : float
    """

    upper: float
    alpha: Array
    mu: Array
    ids: Integers
    w: Array
    b: float


class Pool:
    """The selections generated so far, as positions of atoms and their σ."""

    def __init__(self) -> None:
        self.members: list[tuple[Integers, Array]] = []
        self._seen: set[bytes] = set()

    def __len__(self) -> int:
        return len(self.members)

    def add(self, ids: Integers, sigma: Array) -> bool:
        """Add a selection; False when it is there already."""
        key = ids.tobytes() + np.round(sigma, 12).tobytes()
        if key in self._seen:
            return False
        self._seen.add(key)
        self.members.append((ids, sigma))
        return True

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """All selections as arrays, for the state of a run."""
        ids, sigmas = zip(*self.members, strict=True) if self.members else ((), ())
        return {
            "pool_sizes": np.array([one.size for one in ids], dtype=np.int64),
            "pool_ids": np.concatenate([*ids, np.empty(0, dtype=np.int64)]),
            "pool_sigma": np.concatenate([*sigmas, np.empty(0)]),
        }

    def take_up(self, kept: Mapping[str, npt.NDArray[Any]]) -> None:
        """Add the selections that `arrays` kept."""
        ends = np.cumsum(kept["pool_sizes"])[:-1]
        for ids, sigma in zip(np.split(kept["pool_ids"], ends), np.split(kept["pool_sigma"], ends), strict=True):
            self.add(ids, sigma)

    @property
    def used(self) -> Integers:
        """The atoms of any selection, ascending."""
        return np.unique(np.concatenate([ids for ids, _ in self.members]))

    def sparse_mixture(self, mu: Array) -> dict[int, float]:
        """σ = Σ μ_t σᵗ by position, where some member has it."""
        sigma: dict[int, float] = {}
        for weight, (ids, values) in zip(mu.tolist(), self.members, strict=True):
            for g, value in zip(ids.tolist(), values.tolist(), strict=True):
                sigma[g] = sigma.get(g, 0.0) + weight * value
        return sigma

    def mixture(self, mu: Array, count: int) -> Array:
        """σ = Σ μ_t σᵗ, shape (count,)."""
        sigma = np.zeros(count)
        for weight, (ids, values) in zip(mu, self.members, strict=True):
            sigma[ids] += weight * values
        return np.minimum(sigma, 1.0)


class Restricted(Protocol):
    """A method for the restricted problem."""

    def solve(self, pool: Pool, tol: float, must_stop: Callable[[], bool]) -> Solution:
        """Solve to an absolute gap `tol`, warm from the last call on a smaller pool."""


def feasible(problem: Problem, alpha: Array) -> Array:
    """α made feasible exactly."""
    whole, q = get_loss(problem.loss).feasible_dual(alpha, problem.c_i, problem.data.y, problem.bias)
    exact = whole.astype(float)
    return np.asarray(np.ldexp(exact, -q, out=exact))


class Proximal:
    """Accelerated proximal gradient on the primal (Tan 2014, Algorithms 3 and 4), for smooth losses.

    Parameters
    ----------
    problem : Problem
    change : float, optional
        Stop where a step changes the objective by no more than this share (Tan 2014, (43)), whatever the gap is.
    """

    def __init__(self, problem: Problem, change: float | None = None) -> None:
        self.problem, self._change = problem, change
        self._loss = get_loss(problem.loss)
        self._alike = alike(problem, np.empty(0, dtype=np.int64))
        self._y, self._c = problem.data.y, problem.c_i
        self._columns: Integers = np.empty(0, dtype=np.int64)
        self._rows: Any = None
        self._shift = np.empty(0)
        self._x, self._unit = np.zeros(1), 1.0
        self._step = 0.0
        self._entries: list[tuple[Integers, Array]] = []

    def solve(self, pool: Pool, tol: float, must_stop: Callable[[], bool]) -> Solution:
        """Solve to an absolute gap `tol`, warm from the last call on a smaller pool."""
        from mipfs.kernels.proximal import accelerated

        problem = self.problem
        self._extend(pool)
        n = self._y.size
        ids = np.concatenate([ids for ids, _ in self._entries])
        scale = np.concatenate([scale for _, scale in self._entries])
        sizes = [ids.size for ids, _ in self._entries]
        pointer = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        places = np.searchsorted(self._columns, ids)
        alpha, exact, state = np.empty(n), np.empty(n), np.array([self._step, 0.0, 0.0, math.inf, 1.0])
        old, kept = self._x.copy(), np.empty((2, n))
        kind = self._loss.kernel
        for _ in range(MAX_SLICES):
            state[1] = 0.0
            accelerated(
                self._rows, self._y, self._c, kind, problem.bias,
                pointer, places, scale, self._x, old, kept, state, alpha, self._unit, 1e-15,
                -1.0 if self._change is None else self._change, STEPS,
            )  # fmt: skip
            dual, exact = self._dual(alpha, pointer, places, scale)
            closed = self._change is None and state[3] - dual <= tol
            if closed or state[1] == 1.0 or must_stop():
                break
        self._step = float(state[0])
        weights = self._x[:-1]
        norms = np.sqrt(_sums(np.square(weights), pointer))
        total = norms.sum()
        mu = norms / total if total > 0 else np.full(len(pool), 1.0 / len(pool))
        w = scale * weights
        b = float(self._unit * self._x[-1] + self._shift[places] @ w) if problem.bias else 0.0
        if self._alike is not None:
            exact = feasible(problem, self._alike.spread(exact, problem.c_i))
        return Solution(float(state[3]), exact, mu, ids, w, b)

    def _extend(self, pool: Pool) -> None:
        """Take in the selections that are new: their columns, and zero weights for them."""
        problem = self.problem
        fresh = pool.members[len(self._entries) :]
        for atoms, sigma in fresh:
            columns = problem.atoms.columns(atoms)
            self._entries.append((columns.ids, np.sqrt(sigma[columns.atom]) * columns.scale))
        held = np.union1d(self._columns, np.concatenate([ids for ids, _ in self._entries[-len(fresh) :]]))
        if self._rows is None or held.size > self._columns.size:
            self._columns = held
            self._rows, self._shift = self._gathered(held)
        entries = sum(ids.size for ids, _ in self._entries)
        b, self._unit = self._unit * self._x[-1], _largest_spread(self._rows, self._c)
        self._x = np.concatenate([self._x[:-1], np.zeros(entries - self._x.size + 1), [b / self._unit]])
        if self._step == 0.0:
            self._step = 0.05 * float(problem.c_i.sum())

    def _dual(self, alpha: Array, pointer: Integers, places: Integers, scale: Array) -> tuple[float, Array]:
        """Value of the restricted dual at a feasible vector made from −L', and that vector."""
        from mipfs.kernels.proximal import pull

        c, exact = self._c, self._feasible(alpha)
        pulled = np.empty(self._columns.size)
        pull(self._rows, exact, pulled)
        level = float(_sums(np.square(scale * pulled[places]), pointer).max())
        if not self._loss.has_top:  # else the box is in the way of a multiple
            factor = self._loss.best_multiple(exact, c, level)
            if factor is not None and abs(factor - 1.0) > 1e-12:
                exact = self._feasible(factor * exact)
                level *= factor * factor
        return self._loss.dual_value(exact, c) - 0.5 * level, exact

    def _feasible(self, alpha: Array) -> Array:
        """α (of the kinds, where samples are merged) made feasible exactly."""
        whole, q = self._loss.feasible_dual(alpha, self._c, self._y, self.problem.bias)
        return np.asarray(np.ldexp(whole.astype(float), -q))

    def _gathered(self, held: Integers) -> tuple[Any, Array]:
        """The rows of the kernels over the columns `held`, of one sample of every kind where many are alike."""
        problem, merged = self.problem, self._alike
        if merged is not None and not merged.take(held):
            merged = self._alike = None
        if merged is None:
            data, self._c = problem.data.only(held), np.ascontiguousarray(problem.c_i)
        else:
            data, self._c = merged.instance(problem.data.sample_weight), merged.summed(problem.c_i)
        self._y, off = data.y, data.center
        if problem.bias:  # the mean by the weights: a sample of weight two counts as two samples do
            off = data.block().values.T @ (self._c / self._c.sum())
        return kernel_rows(data, np.arange(held.size), None, off, problem.bias, False)


class Cutting:
    """Benders cuts in μ for any loss and penalty; cuts are kept, they hold for every pool.

    Parameters
    ----------
    problem : Problem
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._subproblem = Subproblem(problem)
        self._loss = get_loss(problem.loss)
        self._alphas: list[Array] = []
        self._constants: list[float] = []
        self._slopes: list[Array] = []
        self._mu = np.empty(0)
        # the LP is solved in units of L(0), which may be as small as C
        self._scale = float(problem.c_i.sum())

    def solve(self, pool: Pool, tol: float, must_stop: Callable[[], bool]) -> Solution:
        """Solve to an absolute gap `tol`, warm from the last call on a smaller pool."""
        problem, t = self.problem, len(pool)
        costs = np.array([float(problem.penalty[ids] @ sigma) for ids, sigma in pool.members])
        inner = np.append(self._mu, np.full(t - self._mu.size, 0.0 if self._mu.size else 1.0 / t))
        best: tuple[float, Array, Any] = (math.inf, inner, None)
        lp = self._master(costs / self._scale)
        for slopes, constant in zip(self._slopes, self._constants, strict=True):
            _add_row(lp, self._row(slopes, pool) / self._scale, constant / self._scale)
        for _ in range(MAX_CUTS):
            sigma = pool.mixture(inner, problem.atoms.count)
            solved = self._subproblem.solve(sigma, 1e-9)
            if solved.value < best[0]:
                best = (solved.value, inner, solved)
            self._alphas.append(solved.svm.alpha)
            self._constants.append(self._loss.dual_value(solved.svm.alpha, problem.c_i))
            self._slopes.append(solved.cut.slopes)
            _add_row(lp, self._row(solved.cut.slopes, pool) / self._scale, self._constants[-1] / self._scale)
            solution = highs.solve(lp)
            if solution.values is None or solution.status != "optimal":
                break
            if best[0] - solution.bound * self._scale <= tol or must_stop():
                break
            outer = np.maximum(solution.values[:t], 0.0)
            outer /= outer.sum()
            inner = 0.5 * outer + 0.5 * best[1]
        shares = np.maximum(np.array(lp.getSolution().row_dual)[1:], 0.0)
        alpha = solved.svm.alpha
        if shares.sum() > 0.5:
            kept = np.flatnonzero(shares)
            alpha = np.einsum("k,kn->n", shares[kept] / shares.sum(), np.array([self._alphas[k] for k in kept]))
        self._mu = best[1]
        return Solution(
            best[0], feasible(problem, alpha), best[1], problem.atoms.columns(best[2].ids).ids,
            best[2].svm.w, best[2].svm.b,
        )  # fmt: skip

    def _master(self, costs: Array) -> Any:
        """min c'μ + η over the simplex, still without cuts."""
        lp, t = highs.new_model(), costs.size
        lp.setOptionValue("presolve", "off")
        lp.addVars(t, np.zeros(t), np.ones(t))
        lp.addVar(-highs.infinity(), highs.infinity())
        highs.set_costs(lp, np.append(costs, 1.0))
        lp.addRow(1.0, 1.0, t, np.arange(t, dtype=np.int32), np.ones(t))
        return lp

    @staticmethod
    def _row(slopes: Array, pool: Pool) -> Array:
        """½ s'σᵗ of every selection of the pool, shape (t,)."""
        return np.array([0.5 * float(slopes[ids] @ sigma) for ids, sigma in pool.members])


def _largest_spread(rows: Any, c: Array) -> float:
    """√(Σ_i c_i a_ij² / Σ c_i) of the column of kernel rows with the largest; 1 where all are zero.

    By the weights, so that a sample of weight two counts as two samples do.
    """
    if isinstance(rows, tuple):
        data, columns, pointer = rows
        squares = np.bincount(columns, np.repeat(c, np.diff(pointer)) * np.square(data), 1)
    else:
        squares = np.einsum("i,ij,ij->j", c, rows, rows)
    return math.sqrt(float(squares.max(initial=0.0)) / float(c.sum())) or 1.0


def _sums(values: Array, pointer: Integers) -> Array:
    """Sums over the pieces pointer[t] : pointer[t + 1], which may be empty."""
    owner = np.repeat(np.arange(pointer.size - 1), np.diff(pointer))
    return np.bincount(owner, values, pointer.size - 1).astype(float)


def _add_row(lp: Any, row: Array, constant: float) -> None:
    """η + Σ_t μ_t ½ s'σᵗ ≥ g."""
    columns = np.arange(row.size + 1, dtype=np.int32)
    lp.addRow(constant, highs.infinity(), row.size + 1, columns, np.append(row, 1.0))
