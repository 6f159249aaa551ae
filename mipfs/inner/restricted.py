"""The restricted problem of the Kelley driver, (P) over the hull of a pool of selections (reduced MKL).

    min over μ in the simplex of  Σ_t μ_t c'σᵗ + v(Σ_t μ_t σᵗ)
  = max over α ∈ A of  g(α) − max_t (½ s(α)'σᵗ − c'σᵗ)                        (Tan 2014, (31) and (35) corrected)

`mipfs.inner.proximal` has Tan's accelerated proximal gradient, for smooth losses without penalties. `Cutting` works
for every loss: Benders cuts in μ, stabilised, with α the combination of the cuts' dual vectors that the last LP's
multipliers give.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from mipfs.errors import NumericalError
from mipfs.inner.subproblem import Subproblem
from mipfs.losses import get_loss
from mipfs.plumbing.arrays import Array, Arrays, Integers, check_positions
from mipfs.plumbing.own_threads import in_own_thread
from mipfs.problem import Problem
from mipfs.proof.cuts import decode_dual, dual_value_of, feasible_dual, scores_above
from mipfs.solvers import highs
from mipfs.solvers.vectors import in_simplex
from mipfs.svm.dyadic import round_dual

SHARE_SLACK = 1e-6
"""By how much a solver may leave σ above 1."""
MAX_CUTS = 2000
"""Cuts after which the cutting planes are taken as they are."""
SAME_MIXTURE = 1e-12
"""Distance up to which two mixtures of a pool are one: the cut there is known."""
STEEP = 1e8
"""Slopes of a cut, relative to the LP's unit, beyond which a multiple of its dual vector is told: HiGHS, which works to
1e-9, loses cuts of another size beside them, and takes none above 1e15."""


@dataclass(frozen=True, eq=False)
class RestrictedSolution:
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

    def arrays(self, name: str) -> Arrays:
        """All but α as arrays, for the state of a run; their names begin with `name`."""
        numbers = np.array([self.upper, self.b])
        return {f"{name}_numbers": numbers, f"{name}_mu": self.mu, f"{name}_ids": self.ids, f"{name}_w": self.w}

    @classmethod
    def taken_up(
        cls, name: str, kept: Mapping[str, npt.NDArray[Any]], pool: SelectionPool, alpha: Array, n_features: int
    ) -> RestrictedSolution | None:
        """What `arrays` kept, over this pool, with its α; None where there was no solution yet."""
        if f"{name}_numbers" not in kept:
            return None
        mu, ids, w = (kept[f"{name}_{part}"] for part in ("mu", "ids", "w"))
        upper, b = kept[f"{name}_numbers"].tolist()
        if math.isnan(upper) or not all(np.isfinite(one).all() for one in (b, w, mu)):
            raise ValueError("a solution is not finite")
        check_positions(ids, n_features)
        if w.shape != ids.shape:
            raise ValueError("a solution has other columns than weights")
        if mu.ndim != 1 or mu.size > pool.most_weights:
            raise ValueError("a solution has more weights than its pool has members")
        return cls(upper, alpha, mu, ids, w, b)


class SelectionPool:
    """The selections generated so far, as positions of atoms and their σ.

    Attributes
    ----------
    is_face : bool, whether all other selections made of their atoms count with them: a `FacePool`
    """

    is_face = False

    @property
    def most_weights(self) -> int:
        """How many weights of its members there may be."""
        return len(self.members)

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

    def kept(self) -> Callable[[], Arrays]:
        """What makes arrays of all selections that there are now, for the state of a run."""
        return partial(_of_members, tuple(self.members), self.is_face)

    def take_up(self, kept: Mapping[str, npt.NDArray[Any]], count: int) -> None:
        """Add the selections that `arrays` kept, of `count` atoms.

        Raises
        ------
        ValueError
            They are of other atoms, or no selections.
        """
        sigma = kept["pool_sigma"]
        if not np.all((sigma >= 0.0) & (sigma <= 1.0 + SHARE_SLACK)):
            raise ValueError("a selection of the pool has a share that is none")
        check_positions(kept["pool_ids"], count)
        if kept["pool_ids"].shape != sigma.shape or int(kept["pool_sizes"].sum()) != sigma.size:
            raise ValueError("the selections of the pool have other sizes")
        parts = (np.split(kept[name], np.cumsum(kept["pool_sizes"]))[:-1] for name in ("pool_ids", "pool_sigma"))
        for ids, sigma in zip(*parts, strict=True):
            self.add(ids, sigma)

    @property
    def used(self) -> Integers:
        """The atoms of any selection, ascending."""
        return np.unique(np.concatenate([ids for ids, _ in self.members]))

    def sparse_mixture(self, mu: Array) -> dict[int, float]:
        """σ = Σ μ_t σᵗ by position, where some member has it; μ of the first members, if others came later."""
        sigma: dict[int, float] = {}
        for weight, (ids, values) in zip(mu.tolist(), self.members[: mu.size], strict=True):
            for g, value in zip(ids.tolist(), values.tolist(), strict=True):
                sigma[g] = sigma.get(g, 0.0) + weight * value
        return sigma

    def mixture(self, mu: Array, count: int) -> Array:
        """σ = Σ μ_t σᵗ, shape (count,)."""
        sigma = np.zeros(count)
        for weight, (ids, values) in zip(mu, self.members, strict=True):
            sigma[ids] += weight * values
        return np.minimum(sigma, 1.0)

    def first(self, count: int) -> SelectionPool:
        """The first of its members, as a pool of its own."""
        part = SelectionPool()
        for member in self.members[:count]:
            part.add(*member)
        return part


def _of_members(members: Sequence[tuple[Integers, Array]], is_face: bool) -> Arrays:
    """Selections as arrays, one behind the other."""
    ids, sigmas = zip(*members, strict=True) if members else ((), ())
    return {
        "pool_sizes": np.array([one.size for one in ids], dtype=np.int64),
        "pool_ids": np.concatenate([*ids, np.empty(0, dtype=np.int64)]),
        "pool_sigma": np.concatenate([*sigmas, np.empty(0)]),
        "pool_is_face": np.array(is_face),
    }


class Restricted(Protocol):
    """A method for the restricted problem."""

    def solve(self, pool: SelectionPool, tol: float, must_stop: Callable[[], bool]) -> RestrictedSolution:
        """Solve to an absolute gap `tol`, warm from the last call on a smaller pool."""

    def kept(self) -> Callable[[], Arrays]:
        """What makes arrays of all that the next call goes on from beside the pool, as it is now."""

    def take_up(self, kept: Mapping[str, npt.NDArray[Any]], pool: SelectionPool) -> None:
        """Have the next call go on from what `kept` made, over the pool of that time.

        Raises
        ------
        ValueError
            It is of another problem or pool.
        """


def feasible(problem: Problem, alpha: Array, *, in_place: bool = False) -> Array:
    """α made feasible exactly; `in_place` where it is not needed any more: its array may become the answer."""
    loss = get_loss(problem.loss)
    if problem.weight_rows:
        return decode_dual(feasible_dual(problem, alpha))
    # Without an intercept y'α = 0 is not asked for, and every entry is rounded by itself, in one array.
    if not problem.bias and not problem.is_joint:
        return round_dual(alpha, loss.top(problem.c_i), alpha if in_place else None)
    whole, q = loss.feasible_dual(alpha, problem.c_i, problem.data.y, problem.bias)
    exact = whole.astype(float)
    return np.asarray(np.ldexp(exact, -q, out=exact))


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

    @in_own_thread
    def solve(self, pool: SelectionPool, tol: float, must_stop: Callable[[], bool]) -> RestrictedSolution:
        """Solve to an absolute gap `tol`, warm from the last call on a smaller pool."""
        problem, t = self.problem, len(pool)
        inner, solved = self._first_mixture(pool)
        # The LP's unit: Σc may be millions of times the value.
        scale = solved.value or 1.0
        best: tuple[float, Array, Any] = (solved.value, inner, solved)
        middle = 0.5 * inner + 0.5 / t
        lp = self._make_master(np.array([float(problem.penalty[ids] @ sigma) for ids, sigma in pool.members]) / scale)
        multiples = [self._add_cut(lp, k, pool, middle, scale) for k in range(len(self._alphas))]
        shares = np.empty(0)
        for _ in range(MAX_CUTS):
            if solved.value < best[0]:
                best = (solved.value, inner, solved)
            self._alphas.append(solved.svm.alpha)
            self._constants.append(dual_value_of(problem, solved.svm.alpha))
            self._slopes.append(solved.cut.slopes)
            multiples.append(self._add_cut(lp, len(multiples), pool, middle, scale))
            solution = highs.solve(lp, stop=must_stop)
            if solution.status == "stopped":
                break
            if solution.values is None or solution.status != "optimal":
                raise NumericalError("HiGHS finds no optimum of the restricted problem's master")
            shares = np.maximum(lp.multipliers()[1:], 0.0)
            if best[0] - solution.bound * scale <= tol or must_stop():
                break
            outer = in_simplex(solution.values[:t])
            if outer is None:
                raise NumericalError("HiGHS finds no weights of the pool that sum to 1")
            before, inner = inner, 0.5 * outer + 0.5 * best[1]
            if float(np.abs(inner - before).max()) <= SAME_MIXTURE:
                # The cut there is known: what is left of the gap is that of the SVM.
                break
            solved = self._solve_one(pool, inner)
        self._mu = best[1]
        columns = problem.atoms.columns(best[2].ids).ids
        return RestrictedSolution(
            best[0], self._combined_dual(shares, multiples, solved), best[1], columns, best[2].svm.w, best[2].svm.b
        )

    def _first_mixture(self, pool: SelectionPool) -> tuple[Array, Any]:
        """Where the cutting planes begin, and the subproblem there: the last mixture, without a share of what is new.

        Where that makes a cut too steep to be of use, what is new has its share of a mixture of equals.
        """
        t, old = len(pool), self._mu.size
        inner = np.append(self._mu, np.full(t - old, 0.0 if old else 1.0 / t))
        solved = self._solve_one(pool, inner)
        if 0 < old < t and float(self._cut_row(solved.cut.slopes, pool).max()) > STEEP * abs(solved.value):
            inner = np.append(self._mu * (old / t), np.full(t - old, 1.0 / t))
            solved = self._solve_one(pool, inner)
        return inner, solved

    def _add_cut(self, lp: highs.HighsModel, k: int, pool: SelectionPool, at: Array, scale: float) -> float:
        """Tell the LP the k-th cut in its unit, and return the multiple t of the dual vector that the cut is of.

            η + Σ_t μ_t ½ s(tα)'σᵗ ≥ g(tα),     s(tα) = t² s(α)

        It is the dual vector itself, but for a cut that is steeper than the LP bears: its multiple that is best at a
        mixture `at`, which shows more there.
        """
        row, constant, multiple = self._cut_row(self._slopes[k], pool), self._constants[k], 1.0
        if float(row.max()) > STEEP * abs(scale):
            multiple = self._best_multiple(self._alphas[k], 2.0 * float(row @ at))
            row, constant = multiple**2 * row, dual_value_of(self.problem, multiple * self._alphas[k])
        lp.add_cut(constant / scale, np.arange(row.size + 1), np.append(row / scale, 1.0))
        return multiple

    def _best_multiple(self, alpha: Array, squares: float) -> float:
        """The t in [0, 1] of about the largest g(tα) − ½ t² squares."""
        known = not self.problem.weight_rows
        found = self._loss.best_multiple(alpha, self.problem.c_i, squares) if known else None
        # The multiple is that of the chord t g(α), which lies below g(tα).
        if found is None:
            found = dual_value_of(self.problem, alpha) / squares
        return float(min(1.0, max(0.0, found)))

    def _combined_dual(self, shares: Array, multiples: Sequence[float], solved: Any) -> Array:
        """The dual vector of the last LP's multipliers; that of the last subproblem where there was no LP."""
        if not shares.sum() > 0.5:
            return feasible(self.problem, solved.svm.alpha)
        held = np.flatnonzero(shares)
        weights = shares[held] / shares.sum() * np.array(multiples)[held]
        return feasible(self.problem, np.einsum("k,kn->n", weights, np.array([self._alphas[k] for k in held])))

    def kept(self) -> Callable[[], Arrays]:
        """What makes arrays of the cuts, the mixture and the subproblem's warm start."""
        begun, alphas, mu, n = self._subproblem.kept(), tuple(self._alphas), self._mu, self.problem.dual_size
        return lambda: {
            **begun(),
            "cut_alphas": np.array(alphas, dtype=float).reshape(-1, n),
            "cut_mu": mu,
        }

    def take_up(self, kept: Mapping[str, npt.NDArray[Any]], pool: SelectionPool) -> None:
        """Go on from what `kept` made: constants and slopes of the cuts are computed again."""
        problem, alphas, mu = self.problem, kept["cut_alphas"], kept["cut_mu"]
        if alphas.shape[1:] != (problem.dual_size,) or mu.ndim != 1 or mu.size > len(pool):
            raise ValueError("cuts of other samples, or more weights than members of the pool")
        for alpha in alphas:
            exact = np.array(alpha, dtype=float)
            if not np.array_equal(exact, feasible(problem, exact)):
                raise ValueError("a cut's dual vector is not feasible")
            self._alphas.append(exact)
            self._constants.append(dual_value_of(problem, exact))
            self._slopes.append(scores_above(problem, exact * problem.dual_signs))
        self._mu = np.array(mu, dtype=float)
        self._subproblem.take_up(kept)

    def _solve_one(self, pool: SelectionPool, mu: Array) -> Any:
        """The subproblem at a mixture of the pool's selections."""
        return self._subproblem.solve(pool.mixture(mu, self.problem.atoms.count), 1e-9)

    def _make_master(self, costs: Array) -> highs.HighsModel:
        """min c'μ + η over the simplex, still without cuts."""
        lp = highs.HighsModel(presolve=False)
        t = costs.size
        lp.add_columns(np.zeros(t), np.ones(t))
        lp.add_column(1.0, -highs.highs_infinity(), highs.highs_infinity())
        lp.set_costs(costs)
        lp.add_row(1.0, 1.0, np.arange(t), np.ones(t))
        return lp

    @staticmethod
    def _cut_row(slopes: Array, pool: SelectionPool) -> Array:
        """½ s'σᵗ of every selection of the pool, shape (t,)."""
        return np.array([0.5 * float(slopes[ids] @ sigma) for ids, sigma in pool.members])
