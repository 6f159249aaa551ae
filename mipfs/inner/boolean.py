"""The Boolean relaxation of (P) with some atoms fixed, from nothing: an interior point on a working set, and pricing.

    R_box = max over α ∈ A of g(α) + min of c'σ − ½ s(α)'σ over the rows of S with 0 ≤ σ ≤ 1

Atoms outside the working set have σ = 0 there. Its α is scaled along its ray to the best multiple, made feasible
exactly and priced over all atoms: that earns the bound, and shows who is missing. Equal samples are merged.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from mipfs.data.matrix import equal_rows
from mipfs.inner.designs import Dense, Interrupted, Sparse, centre_and_scale_columns
from mipfs.inner.end_terms import RowSidesTerms, WithSides
from mipfs.inner.interior import InteriorIterate, InteriorPoint, iterate
from mipfs.inner.iterative import IterativeInteriorPoint, is_worthwhile
from mipfs.inner.prices import Pricing, RowPrices
from mipfs.inner.reduced_system import RowPolytope
from mipfs.inner.watch import ColumnsInPlay, Watch, balance_classes
from mipfs.kernels.bound import add_down, gains, largest, lower
from mipfs.losses import get_loss
from mipfs.losses.terms import Terms
from mipfs.plumbing.arrays import Array, Integers, replace_at, scatter
from mipfs.problem import Problem
from mipfs.proof.cuts import Cut, cut_of_dual, decode_dual, feasible_dual, scores_of
from mipfs.regularisers.base import Regulariser
from mipfs.regularisers.box import Box
from mipfs.regularisers.ridge import RIDGE
from mipfs.settings import RelaxationSettings
from mipfs.svm.solver import DENSE_ROWS_ABOVE, ColumnShift

EQUAL_WIDTH = 1e-9
"""A two-sided row this narrow, relative to its numbers, is an equation to the interior point."""


@dataclass(frozen=True, eq=False)
class SolvedRelaxation:
    """A solved relaxation.

    Attributes
    ----------
    lower : float, the bound that the dual vector earns
    upper : float, the relaxation's objective at (w, b, σ), within round-off
    cut : Cut of the dual vector, with the dual vector itself
    multipliers : (r,) of the user's rows
    ids, w : columns in play and their weights (scaled data, of the atoms' scaled columns)
    b : float, intercept on the centred columns
    sigma : (count,) relaxed σ
    sizes : (count,) ‖w_g‖ of every atom
    steps : int, of the interior point, all rounds
    solved : bool, whether the two bounds met
    """

    lower: float
    upper: float
    cut: Cut
    multipliers: Array
    ids: Integers
    w: Array
    b: float
    sigma: Array
    sizes: Array
    steps: int
    solved: bool


@dataclass(frozen=True, eq=False)
class KnownClassifier:
    """A classifier that is known before.

    Attributes
    ----------
    alpha : its dual vector, of the kinds of samples, in units of the largest weight
    ids, owner : (k,) columns, and the atoms that they are of
    w, b : weights (k,) of the scaled data, intercept on the centred columns
    """

    alpha: Array
    ids: Integers
    owner: Integers
    w: Array
    b: float


def carries(problem: Problem) -> bool:
    """Whether the loss is a sum over the samples."""
    return bool(get_loss(problem.loss).pointwise)


class Boolean:
    """The relaxation of one problem.

    Parameters
    ----------
    problem : Problem with `carries`
    must_stop : asked between products
    settings : RelaxationSettings, optional
    pricing : Pricing of the problem's selections, where that is there already
    """

    def __init__(
        self,
        problem: Problem,
        must_stop: Callable[[], bool],
        settings: RelaxationSettings = RelaxationSettings(),
        pricing: Pricing | None = None,
    ) -> None:
        self.problem = problem
        self.must_stop = must_stop
        self.settings = settings
        data = problem.data
        self.loss = get_loss(problem.loss)
        self.size = float(problem.c_i.max())
        self.off = ColumnShift(data, problem.bias)
        every = np.arange(data.n_samples)
        looked_for = every.size >= settings.merge_above and not must_stop()
        self.first, self.kind = equal_rows(data.block().values, data.y) if looked_for else (every, every)
        self.c = np.bincount(self.kind, problem.c_i) / self.size
        self.y = np.ascontiguousarray(data.y[self.first])
        self.matrix, self.row_lb, self.row_ub = problem.selection.all_rows
        self.pricing = Pricing(problem.selection) if pricing is None else pricing
        self.sides = RowSidesTerms(problem.ends)
        self._last: tuple[InteriorPoint, ColumnsInPlay] | None = None
        self._sparse = self._stays_sparse()
        self._gradients = False
        self._gave_up = self._patient = False

    def solve(
        self,
        low: npt.NDArray[Any],
        high: npt.NDArray[Any],
        tol: float,
        enough: Callable[[float, float], bool] = lambda lower, upper: False,
        known: KnownClassifier | None = None,
    ) -> SolvedRelaxation:
        """Solve the relaxation with some atoms fixed; a copy of this object for every thread.

        Parameters
        ----------
        low, high : (count,) ends of σ, 0 or 1
        tol : relative gap
        enough : asked with a lower and an upper bound whether to stop there
        known : what it begins with (`mipfs.inner.tall`)
        """
        self.low = np.asarray(low, dtype=float)
        self.high = np.asarray(high, dtype=float)
        self.enough = enough
        self._gradients, self._gave_up, self._patient = self._sparse, False, False
        inside, free = np.flatnonzero(self.low > 0.5), np.flatnonzero((self.low < 0.5) & (self.high > 0.5))
        if self.problem.M is not None and inside.size >= self.problem.M:
            free = free[:0]
        start = self.loss.middle(self.c)
        start = balance_classes(start, self.y) if self.problem.bias else start
        start = np.append(start, np.zeros(len(self.sides)))
        best, steps = self._earned_bound(start if known is None else known.alpha, np.zeros(self.row_lb.size)), 0
        if known is not None and self.must_stop():
            return self._stop_early(best, known)
        working = self._first_working_set(best.cut.slopes, free)
        goal = self.settings.loose if working.size < free.size else 0.5 * tol
        upper, kept, self._last = np.inf, None, None
        for _ in range(self.settings.rounds):
            columns = self._columns_in_play(inside, working)
            whole = working.size == free.size
            try:
                value, point = self._solve_restricted(columns, goal, whole)
            except Interrupted:  # the columns were still being made
                if kept is not None:
                    break
                if known is not None:
                    return self._stop_early(best, known)
                self._patient, columns = True, self._columns_in_play(inside, working[:1])
                value, point = self._solve_restricted(columns, goal, False)
            y = self._row_multipliers(point)
            earned = self._earned_bound(point.alpha, y)
            steps, best = steps + point.steps, max(earned, best, key=lambda one: one.lower)
            if kept is None or value < upper:
                upper, kept = value, (point, columns)
            gap = (upper - best.lower) / max(1e-300, abs(upper))
            self._excess = (value - earned.lower) / self.size
            if gap <= tol or self.must_stop() or enough(best.lower, upper):
                break
            missing = self._atoms_to_enter(earned, y, free, working)
            goal, last_goal = max(0.3 * tol, min(0.5 * goal, self.settings.loose * gap)), goal
            if missing.size == 0 and (gap <= self.settings.nearly * tol if self._gave_up else goal == last_goal):
                break
            if self._gave_up and missing.size == 0:
                self._gradients, self._last, goal = False, None, self.settings.loose
                working = self._likely_atoms(earned, y, kept, free)
            if missing.size > self._working_set_growth(working):  # too few told nothing: begin anew
                self._last, goal = None, 0.5 * tol
            working = np.union1d(working, missing)
        assert kept is not None
        point, columns = kept
        sigma = replace_at(self.low, columns.movable, np.clip(point.x[: columns.movable.size], 0.0, 1.0))
        w = point.w * columns.scale
        # Sparse columns are taken as stored.
        away = 0.0 if self._is_implicit(self._columns_of_kinds(columns), columns) else self.off[columns.ids]
        b = point.b - float((away - self.problem.data.center[columns.ids]) @ w) if self.problem.bias else 0.0
        gap = (upper - best.lower) / max(1e-300, abs(upper))
        sizes = np.sqrt(np.bincount(columns.owner, np.square(point.w), minlength=sigma.size))
        return SolvedRelaxation(
            best.lower, upper, best.cut, best.prices.y, columns.ids, w, b, sigma, sizes, steps, gap <= tol
        )

    def _stop_early(self, best: EarnedBound, known: KnownClassifier) -> SolvedRelaxation:
        """What a limit leaves that strikes before the first point: the known classifier, and what its dual earns."""
        sizes = np.sqrt(np.bincount(known.owner, np.square(known.w), minlength=self.low.size))
        most = sizes.size if self.problem.M is None else self.problem.M
        sigma = np.clip(most * sizes / max(float(sizes.sum()), 1e-300), self.low, self.high)
        return SolvedRelaxation(
            best.lower, np.inf, best.cut, best.prices.y, known.ids, known.w, known.b, sigma, sizes, 0, False
        )

    def _first_working_set(self, slopes: Array, free: Integers) -> Integers:
        """The first working set: all that there are, or those of largest score and those that the user's rows name."""
        M = free.size if self.problem.M is None else self.problem.M
        count = max(self.settings.first, 4 * M)
        if free.size <= 2 * count or (free.size <= self.y.size and self.work(free.size) <= self.settings.cheap):
            return free
        best = free[np.argsort(-slopes[free], kind="stable")[:count]]
        assert self.problem.rows is not None
        named = np.unique(self.problem.rows.matrix.indices)
        return np.intersect1d(np.union1d(best, named), free)

    def _working_set_growth(self, working: Integers) -> int:
        """Atoms that come into a working set at a time."""
        return max(self.settings.growth, self.settings.factor * working.size)

    def _stays_sparse(self) -> bool:
        """Whether every atom is one column that stays sparse, and few rows bind them."""
        problem = self.problem
        data = self.problem.data
        implicit = problem.bias or not np.any(data.center)
        few = 2 * self.row_lb.size <= self.settings.interior.rows and problem.selects_features
        few = few and not len(self.sides)
        return bool(few and implicit and data.block().stays_sparse(DENSE_ROWS_ABOVE))

    def work(self, count: int) -> float:
        """Multiplications of a step with `count` columns, about."""
        block = self.problem.data.block()
        n, p = block.shape
        least = min(n, count)
        stays = block.stays_sparse(DENSE_ROWS_ABOVE)
        return float(((block.nnz / p * count) ** 2 / n if stays else n * count * least) + least**3 / 3.0)

    def _atoms_to_enter(self, earned: EarnedBound, y: Array, free: Integers, working: Integers) -> Integers:
        """Atoms outside that the multipliers want in: at most a few times as many as are in, or all there are."""
        outside = np.setdiff1d(free, working, assume_unique=True)
        if outside.size == 0:
            return outside
        # α = 0 was the best multiple: it has no prices.
        if earned.factor**2 == 0.0:
            return outside[: self._working_set_growth(working)]
        worth, price = (all_of[outside] for all_of in self._worth_and_price(earned, y))
        if not np.any(worth > price):
            return outside[:0]
        crowd = np.count_nonzero(worth > price) > self.settings.crowd * free.size
        if crowd and self._gradients and self.problem.data.block().nnz <= self.settings.all_numbers:
            return outside
        near = worth > self.settings.near * price
        order = np.argsort(price[near] - worth[near], kind="stable")
        taken: Integers = outside[near][order[: self._working_set_growth(working)]]
        return taken

    def _worth_and_price(self, earned: EarnedBound, y: Array) -> tuple[Array, Array]:
        """What every atom is worth to the dual vector, and what it costs with the multipliers y of the rows."""
        worth = 0.5 / max(earned.factor**2, 1e-300) * earned.cut.slopes
        return worth, self.problem.penalty - self.matrix.T @ y

    def _likely_atoms(
        self, earned: EarnedBound, y: Array, kept: tuple[InteriorIterate, ColumnsInPlay], free: Integers
    ) -> Integers:
        """Atoms that are in use, or worth a large share of their price."""
        sigma = scatter(self.low.size, kept[1].movable, kept[0].x[: kept[1].movable.size])
        worth, price = self._worth_and_price(earned, y)
        used = sigma[free] > self.settings.used * sigma.max(initial=0.0)
        likely = used | (worth[free] > self.settings.near * price[free])
        order = np.argsort((price - worth)[free][likely], kind="stable")
        found: Integers = np.sort(free[likely][order[: self.settings.likely]])
        return found

    def _columns_in_play(self, inside: Integers, working: Integers) -> ColumnsInPlay:
        atoms = np.concatenate([inside, working])
        columns = self.problem.atoms.columns(atoms)
        atom = columns.atom - inside.size
        return ColumnsInPlay(columns.ids, atoms[columns.atom], np.maximum(atom, -1), columns.scale, working, inside)

    def _columns_of_kinds(self, columns: ColumnsInPlay) -> Any:
        """The columns in play of samples that are all different."""
        part = self.problem.data.block(columns.ids).values
        if self.first.size == self.problem.data.n_samples:
            return part
        return sparse.csc_array(sparse.csr_array(part)[self.first]) if sparse.issparse(part) else part[self.first]

    def _is_implicit(self, part: Any, columns: ColumnsInPlay) -> bool:
        """Whether columns stay sparse, nothing being taken off them: the bias carries what is."""
        if not sparse.issparse(part):
            return False
        n, k = part.shape
        implicit = self.problem.bias or not np.any(self.problem.data.center[columns.ids])
        implicit = implicit and not len(self.sides)
        return bool(implicit and part.nnz < DENSE_ROWS_ABOVE * n * k)

    def _scaled_design(self, columns: ColumnsInPlay, sides: RowSidesTerms) -> Dense | Sparse:
        part = self._columns_of_kinds(columns)
        root = np.sqrt(self.size)
        if self._is_implicit(part, columns):
            Z = sparse.csc_array(part * (columns.scale * root)[None, :])
            Z.data *= self.y[Z.indices]
            return Sparse(Z, self.must_stop)
        part = part.toarray() if sparse.issparse(part) else part
        factors = columns.scale * root, self.y[:, None]
        stop = bool if self._patient else self.must_stop
        Z = centre_and_scale_columns(part, self.off[columns.ids], *factors, must_stop=stop)
        # What is taken off a column is the intercept's, which no row has.
        if len(sides):
            Z = np.asfortranarray(np.vstack([Z, sides.matrix[:, columns.ids].toarray() * factors[0]]))
        return Dense(Z, self.must_stop)

    def _atom_polytope(self, columns: ColumnsInPlay) -> tuple[RowPolytope, Integers, Array]:
        """The rows over the movable atoms and the extra variables, the row that each came from, and its sign."""
        problem = self.problem
        count = self.problem.atoms.count
        extra = problem.selection.rows.extra
        places = np.concatenate([columns.movable, count + np.arange(len(extra))])
        part = self.matrix[:, places].toarray()
        held = np.asarray(self.matrix[:, columns.inside].sum(axis=1), dtype=float).ravel()
        lb, ub = self.row_lb - held, self.row_ub - held
        two_sided = np.isfinite(lb) & np.isfinite(ub)
        wide = np.where(two_sided, ub - lb, np.inf)
        scale = np.abs(part).max(axis=1, initial=0.0) + np.where(two_sided, np.abs(ub), 0.0)
        equal = wide <= EQUAL_WIDTH * scale
        uppers = np.flatnonzero(np.isfinite(ub))
        lowers = np.flatnonzero(np.isfinite(lb) & ~equal)
        A = np.concatenate([part[uppers], -part[lowers]])
        u = np.concatenate([ub[uppers], -lb[lowers]])
        size = np.abs(A).max(axis=1, initial=0.0)
        row = np.concatenate([uppers, lowers])
        sign = np.concatenate([np.full(uppers.size, -1.0), np.ones(lowers.size)])
        most = np.maximum(A[:, : columns.movable.size], 0.0).sum(axis=1)
        bounded = np.all(A[:, columns.movable.size :] == 0.0, axis=1)
        # Rows that cannot bind say nothing.
        keep = (size > 0) & ~(bounded & (most <= u) & ~equal[row])
        A = A[keep]
        u = u[keep]
        row = row[keep]
        sign = sign[keep]
        size = size[keep]
        box = np.zeros(columns.movable.size), np.ones(columns.movable.size)
        ends = extra.box
        low, high = np.concatenate([box[0], ends[0]]), np.concatenate([box[1], ends[1]])
        return RowPolytope(A / size[:, None], u / size, equal[row], low, high), row, sign / size

    def _solve_restricted(self, columns: ColumnsInPlay, goal: float, whole: bool) -> tuple[float, InteriorIterate]:
        """Solve on the columns in play, to a relative gap or until it is enough; its objective, and where it ended.

        `whole`: all atoms are in play, so both bounds are those of the relaxation.
        """
        problem = self.problem
        size = self.size
        sides, regulariser = self._take_sides(columns)
        Z = self._scaled_design(columns, sides)
        last = self._last
        polytope, self._row, self._sign = self._atom_polytope(columns)
        penalty = np.concatenate(
            [problem.penalty[columns.movable] / size, np.zeros(polytope.low.size - columns.movable.size)]
        )
        base = float(problem.penalty[columns.inside].sum())

        def enough(lower: float, upper: float) -> bool:
            return self.must_stop() or (whole and self.enough(size * lower + base, size * upper + base))

        # The intercept stands in no row over the weights.
        signs = np.append(self.y, np.zeros(len(sides)))
        watch = Watch(
            problem, Z, signs, self.c, columns, penalty, polytope, regulariser=regulariser, goal=goal,
            enough=enough, sides=sides,
        )  # fmt: skip
        loss = self._loss_terms(sides) if last is None else last[0].loss
        settings = self.settings.interior
        gradients = self._gradients and isinstance(Z, Sparse) and is_worthwhile(Z.shape, len(polytope.u), settings)
        kind = IterativeInteriorPoint if gradients else InteriorPoint
        method = kind(
            Z, signs, loss, problem.bias, columns.atom, penalty, polytope, regulariser=regulariser, settings=settings
        )
        if last is not None:
            method.resume(last[0], *columns.among(last[1], polytope.low.size), self._excess)
        self._last = method, columns
        with suppress(Interrupted):
            iterate(method, watch)
        met = watch.closed or enough(watch.lower, watch.upper)
        self._gave_up = gradients and not met
        dual = watch.best or method.point
        point = watch.primal or method.point
        w = point.w * np.sqrt(size)
        multipliers = size * dual.multipliers
        return size * watch.upper + base, InteriorIterate(w, point.b, point.x, dual.alpha, multipliers, method.steps)

    def _take_sides(self, columns: ColumnsInPlay) -> tuple[RowSidesTerms, Regulariser]:
        """The rows over the weights, and the regulariser: a box is more rows where every σ is fixed."""
        regulariser = self.problem.regulariser.at(columns.ids)
        if len(self.sides) and not columns.movable.size and isinstance(regulariser, Box):
            low, high = (np.broadcast_to(end, columns.ids.shape) for end in regulariser.ends)
            return self.sides.with_box(columns.ids, low, high), RIDGE
        return self.sides, regulariser.scaled(self.size)

    def _loss_terms(self, sides: RowSidesTerms) -> Terms:
        """The terms of the loss, and of the rows over the weights."""
        own = self.loss.terms_at(self.c)
        return WithSides(own, sides) if len(sides) else own

    def _row_multipliers(self, point: InteriorIterate) -> Array:
        """Multipliers (r,) of `Selection.all_rows`."""
        return np.bincount(self._row, self._sign * point.multipliers, minlength=self.row_lb.size).astype(float)

    def _earned_bound(self, alpha: Array, y: Array) -> EarnedBound:
        """The bound of a dual vector of the kinds (in units of the largest weight), with multipliers y of the rows."""
        problem = self.problem
        count = self.c.size
        spread = problem.c_i * (alpha[:count] / self.c)[self.kind]
        # Balanced first: else rounding takes the surplus off a few samples, and moves ω by their large numbers.
        if problem.bias:
            spread = balance_classes(np.maximum(spread, 0.0), problem.data.y)
        if len(self.sides):
            spread = np.append(spread, self.size * self.sides.of_ends(alpha[count:]))
        factor = 1.0
        scales = problem.regulariser.is_homogeneous and not np.any(problem.penalty) and problem.selection.is_plain
        if scales and not problem.weight_rows:
            exact = decode_dual(self.loss.feasible_dual(spread, problem.c_i, problem.data.y, problem.bias))
            scores = scores_of(problem, exact * problem.data.y)
            multiple = self.loss.best_multiple(exact, problem.c_i, self._best_score_sum(scores))
            if multiple is not None:
                factor = multiple
                spread = multiple * exact
        dual = feasible_dual(problem, spread)
        cut = cut_of_dual(problem, dual)
        cost = -gains(cut.slopes, problem.penalty)
        user = y[int(problem.M is not None) :]
        found = (self._bound_at_prices(cut, prices) for prices in self.pricing.choices(user, cost, self.low, self.high))
        most, prices = max(found, key=lambda one: one[0])
        return EarnedBound(most, cut, y, factor, prices)

    def _bound_at_prices(self, cut: Cut, prices: RowPrices) -> tuple[float, RowPrices]:
        """The bound with some prices of the rows, rounded down, and the prices."""
        free = (self.low < 0.5) & (self.high > 0.5)
        gain = gains(cut.slopes, prices.penalties(self.problem.penalty))
        return lower(add_down(cut.constant, prices.constant), gain, self.low > 0.5, free, self.problem.M), prices

    def _best_score_sum(self, scores: Array) -> float:
        """Sum of the scores of the atoms that the inner minimum takes, penalties aside."""
        held = scores[self.low > 0.5]
        free = scores[(self.low < 0.5) & (self.high > 0.5)]
        room = free.size if self.problem.M is None else self.problem.M - held.size
        return float(held.sum() + largest(free, room).sum())


@dataclass(frozen=True, eq=False)
class EarnedBound:
    """A bound, its cut, the multipliers of all rows, the multiple of α that was taken, and the prices of the rows."""

    lower: float
    cut: Cut
    y: Array
    factor: float
    prices: RowPrices
