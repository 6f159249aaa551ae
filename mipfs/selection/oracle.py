"""The linear oracle of S: the best selection for given costs, membership, and the values of extra variables.

Solvers work within tolerances; here nothing rests on their word. A selection is taken only if the rows hold exactly
(`Rows.hold`), one that they forbid is cut off by a cover of the row that it breaks, and that nothing is allowed is
claimed only with a Farkas ray, a row that shows it, or exact arithmetic over whole numbers (`lattice.py`).
"""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from mipfs.errors import NumericalError, StoppedError, UndecidedError
from mipfs.kernels.bound import add_down, trade_gains
from mipfs.plumbing.arrays import Array, Mask, replace_at, row_of, sum_exactly
from mipfs.plumbing.forget import forget
from mipfs.plumbing.own_threads import in_own_thread
from mipfs.selection.model import SelectionModel, selection_model
from mipfs.selection.selection import Selection, lagrangian_bound
from mipfs.selection.whole_points import whole_points
from mipfs.settings import OracleSettings
from mipfs.solvers import highs

CLOSED_GAP = 1e-9
"""Relative gap at which the minimum counts as found."""
WHOLE_DISTANCE = 1e-6
"""Distance from a whole number up to which a solver's value counts as one."""
ACTIVE_DISTANCE = 1e-7
"""Distance from a scaled row's bound at which the row is active."""
RAY_DUST = 1e-9
"""Entries of a ray up to this size, relative to the largest, are round-off."""
AT_BOUND = 1e-8
"""Distance from its bound at which a scaled variable lies there."""
MOST_CORRECTIONS, MOST_CORRECTION_NUMBERS = 6, 4_000_000
"""Corrections of a solver's values at most, and numbers in one of them."""


class SelectionOracle:
    """Linear minimisation over S and membership in it, with HiGHS models that live as long as this object.

    Parameters
    ----------
    selection : Selection

    Attributes
    ----------
    must_stop : callable
        Whether work should be given up. A call that has lasted for `grace` hears it: what it found so far stands.

    Notes
    -----
    For one thread: it holds solvers. `Selection.oracle` makes another one.
    """

    def __init__(self, selection: Selection, settings: OracleSettings) -> None:
        self.selection = selection
        self.settings = settings
        self.must_stop: Callable[[], bool] = bool  # never
        self._last_cost: Array | float | None = None

    def minimise(
        self, cost: Array, fixed_in: Sequence[int] = (), fixed_out: Sequence[int] = ()
    ) -> tuple[Mask | None, float]:
        """Minimise ``cost @ sigma`` over S with some features fixed, whatever extra variables cost.

        Parameters
        ----------
        cost : (p,) ndarray
        fixed_in, fixed_out : positions fixed to 1 and to 0

        Returns
        -------
        sigma : (p,) ndarray of bool, or None when nothing is allowed
        bound : float
            A lower bound on the minimum (inf when nothing is allowed): the closed form's value for a plain set,
            elsewhere the least bound of a tree of LPs, each from its multipliers.

        Raises
        ------
        NumericalError
            The solver fails, or what it says does not stand up to exact arithmetic.
        StoppedError
            It must stop, and has found nothing yet.
        """
        lb, ub = self._fixed_box(fixed_in, fixed_out)
        if self.selection.is_plain:
            return self._minimise_plain(cost, lb, ub)
        late = self._make_clock()
        if self.selection.whole_numbers.refutation(*self.selection.box(lb, ub)) is not None:
            return None, np.inf
        return self._branch_and_bound(
            np.asarray(cost, dtype=float), lb, ub, self._cheapest_by_milp(cost, lb, ub, late), late
        )

    def drop_solvers(self) -> None:
        """Let go of the solvers: what they say next does not depend on what they were asked before."""
        forget(self, SelectionOracle._integer_model, SelectionOracle._relaxed_model)
        self._last_cost = None

    def _make_clock(self) -> Callable[[], bool]:
        """Whether a call that begins now must stop."""
        begin = time.monotonic()
        return lambda: time.monotonic() > begin + self.settings.grace and self.must_stop()

    def _fixed_box(self, inside: Sequence[int], outside: Sequence[int]) -> tuple[Array, Array]:
        lb, ub = self.selection.sigma_bounds()
        lb[list(inside)] = 1.0
        ub[list(outside)] = 0.0
        return lb, ub

    @in_own_thread
    def _cheapest_by_milp(self, cost: Array, lb: Array, ub: Array, late: Callable[[], bool]) -> Mask | None:
        """The cheapest selection in a box (p,) by HiGHS's word, but certainly one of S; None when it finds none."""
        if np.any(lb > ub) or self.selection.refuted_by(lb, ub) >= 0:
            return None
        model = self._integer_model
        model.program.fix_columns(lb, ub)
        model.program.set_costs(cost / (float(np.abs(cost).max(initial=0.0)) or 1.0))
        for _ in range(self.settings.cuts):
            solution = model.solve(late)
            if solution.values is None:
                break
            sigma = solution.values[: lb.size] > 0.5
            if self.surely_contains(sigma):
                return sigma
            self._cut_off(sigma)
        return None

    def _minimise_plain(self, cost: Array, lb: Array, ub: Array) -> tuple[Mask | None, float]:
        room = self.selection.n_features if self.selection.M is None else self.selection.M
        room -= int(lb.sum())
        if room < 0 or np.any(lb > ub):
            return None, np.inf
        sigma = lb > 0.5
        free = np.flatnonzero((ub > lb) & (cost < 0))
        if 0 < room < free.size:
            free = free[np.argpartition(cost[free], room - 1)[:room]]
        sigma[free[:room]] = True
        return sigma, add_down(cost[sigma])

    def minimise_relaxed(self, cost: Array) -> tuple[Array | None, float]:
        """Minimise ``cost @ sigma`` over the rows with 0 <= sigma <= 1 (extra variables continuous).

        Returns
        -------
        sigma : (p,) ndarray, or None when nothing is allowed
        bound : float, a lower bound on the minimum from the LP's multipliers

        Raises
        ------
        NumericalError
            The solver fails, or says that nothing is allowed and cannot show it.
        """
        selection = self.selection
        if selection.is_plain:
            sigma, bound = self.minimise(cost)
            return None if sigma is None else sigma.astype(float), bound
        scale = float(np.abs(cost).max(initial=0.0)) or 1.0
        (lb, ub) = selection.sigma_bounds()
        if np.any(lb > ub) or selection.refuted_by(lb, ub) >= 0:
            return None, np.inf
        box = selection.box(lb, ub)
        solution = self._solve_relaxed(*box, cost / scale)
        if solution.status == "infeasible" and self._is_refuted_by_ray(*box):
            return None, np.inf
        if solution.values is None or solution.status != "optimal":
            raise NumericalError("the solver fails on the relaxed rows")
        return np.clip(solution.values[: selection.n_features], 0.0, 1.0), self._lagrangian_bound(cost, box, scale)[0]

    def nearby(self, sigma: Array, room: float) -> tuple[Array, Array] | None:
        """A point of the rows with 0 <= sigma <= 1, at most `room` away: sigma (p,), and the extra variables (e,).

        None where there is none, or none is found. A plain set has its own way, without a solver.
        """
        (lb, ub), M = self.selection.sigma_bounds(), self.selection.M
        if self.selection.is_plain:
            found, free = np.clip(sigma, lb, ub), lb < ub
            total, most = float(found[free].sum()), np.inf if M is None else M - float(lb[~free].sum())
            found[free] *= min(1.0, most / total) if total > 0.0 else 1.0
            return found, np.empty(0)
        low, high = self.selection.rows.extra.box
        ends = np.maximum(lb, sigma - room), np.minimum(ub, sigma + room)
        solution = self._solve_relaxed(np.concatenate([ends[0], low]), np.concatenate([ends[1], high]))
        if solution.values is None:
            return None
        values = solution.values
        return np.clip(values[: lb.size], *ends), np.clip(values[lb.size :], low, high)

    def contains(self, sigma: Mask) -> bool:
        """Whether sigma is allowed (with some value of the extra variables).

        Raises
        ------
        NumericalError
            Neither values of the extra variables nor a proof that there are none can be found.
        """
        return self.completion(sigma) is not None

    def surely_contains(self, sigma: Mask) -> bool:
        """Whether sigma is allowed, and that is shown: for what only offers selections."""
        try:
            return self.contains(sigma)
        except UndecidedError:
            return False

    def completion(self, sigma: Mask) -> Array | None:
        """The cheapest extra variables (e,) at which sigma satisfies the rows; None when it is not allowed.

        Raises
        ------
        NumericalError
            As `contains`.
        """
        selection = self.selection
        chosen = np.asarray(sigma, dtype=bool).astype(float)
        lb, ub = selection.sigma_bounds()
        if np.any(chosen < lb) or np.any(chosen > ub) or (selection.M is not None and chosen.sum() > selection.M):
            return None
        if selection.is_plain or not len(selection.rows.extra):
            return np.empty(0) if selection.is_plain or selection.rows.hold(chosen) else None
        costs = selection.extra_costs
        if costs is None:
            return self.extra_values(chosen)
        found = costs.at(chosen > 0.5)
        return None if found is None else found.values

    def repair(self, scores: Array) -> Mask | None:
        """The allowed selection of largest total score, as far as HiGHS finds it; None when none is found.

        Features of score zero are left out unless a row wants them.
        """
        cost = -np.asarray(scores, dtype=float)
        (lb, ub) = self.selection.sigma_bounds()
        if self.selection.is_plain:
            return self._minimise_plain(cost, lb, ub)[0]
        try:
            return self._cheapest_by_milp(cost, lb, ub, self._make_clock())
        except NumericalError:  # a heuristic's failure decides nothing
            return None

    @cached_property
    def _integer_model(self) -> SelectionModel:
        """S with whole sigma, and the cuts that exclude what the rows forbid exactly."""
        model, extra = selection_model(self.selection), self.selection.rows.extra
        is_open = bool(np.isinf(np.concatenate([extra.lb, extra.ub])[np.tile(extra.integer, 2)]).any())
        model.program.set_option("mip_max_nodes", self.settings.open_nodes if is_open else self.settings.nodes)
        return model

    @cached_property
    def _relaxed_model(self) -> SelectionModel:
        """S with 0 <= sigma <= 1; without presolve, so that it shows a ray where it is infeasible."""
        return selection_model(self.selection, relaxed=True, presolve=False)

    def _solve_relaxed(
        self, low: Array, high: Array, cost: Array | float = 0.0, stop: Callable[[], bool] | None = None
    ) -> highs.MilpSolution:
        """The cheapest point of the relaxed S in a box (p + e,), or any."""
        model = self._relaxed_model
        units = np.concatenate([np.ones(self.selection.n_features), model.columns])
        if cost is not self._last_cost:
            model.program.set_costs(np.broadcast_to(cost, (self.selection.n_features,)))
            self._last_cost = cost
        model.program.fix_columns(low / units, high / units)
        return model.solve(stop)

    def _is_refuted_by_ray(self, low: Array, high: Array) -> bool:
        """Whether the ray of the relaxed model shows that a box (p + e,) holds nothing."""
        ray = self._relaxed_model.ray()
        if ray is None:
            return False
        y = np.where(np.abs(ray) > RAY_DUST, ray, 0.0) * self._relaxed_model.units
        return lagrangian_bound(np.zeros(low.size), self.selection.all_rows, low, high, y)[0] > 0.0

    @in_own_thread
    def _branch_and_bound(
        self, cost: Array, lb: Array, ub: Array, sigma: Mask | None, late: Callable[[], bool]
    ) -> tuple[Mask | None, float]:
        """Branch-and-bound over LPs in a box (p,): the cheapest selection, at first `sigma`, and an earned bound.

        Without any selection after `nodes` of the settings, whether there is one remains open: a `NumericalError`.
        """
        selection, order, floor, is_decided = self.selection, itertools.count(), np.inf, True
        scale = float(np.abs(cost).max(initial=0.0)) or 1.0
        units = cost / scale
        value = np.inf if sigma is None else float(cost[sigma].sum())
        heap: list[tuple[float, int, Array, Array]] = [(-np.inf, 0, lb, ub)]
        for _ in range(self.settings.nodes):
            closed = value - CLOSED_GAP * (abs(value) + 1e-3 * scale) if sigma is not None else np.inf
            if not heap or heap[0][0] >= closed or late():
                break
            bound, _, lb, ub = heapq.heappop(heap)
            box = selection.box(lb, ub)
            if np.any(lb > ub) or self._is_ruled_out(*box):
                continue
            solution = self._solve_relaxed(*box, units, late)
            if solution.status == "stopped":
                heapq.heappush(heap, (bound, -next(order), lb, ub))
                break
            if solution.status == "infeasible" and self._is_refuted_by_ray(*box):
                continue
            point = 0.5 * (lb + ub)
            if solution.values is not None and solution.status == "optimal":
                point = np.clip(solution.values[: lb.size], lb, ub)
                earned, reduced = self._lagrangian_bound(cost, box, scale)
                bound = max(bound, earned)
                # the other value is no better than `sigma`
                fix = (lb < ub) & (trade_gains(earned, np.abs(reduced), 0.0) >= closed)
                if fix.any():
                    floor = min(floor, closed)
                    lb, ub = np.where(fix & (reduced < 0), 1.0, lb), np.where(fix & (reduced > 0), 0.0, ub)
                    point = np.clip(point, lb, ub)
            undecided = np.where(lb < ub, np.minimum(point, 1.0 - point), -1.0)
            j = int(np.argmax(undecided))
            if undecided[j] <= WHOLE_DISTANCE and (undecided[j] < 0.0 or bound < closed):
                found = point > 0.5
                is_allowed = self._is_allowed(found)
                if is_allowed and float(cost[found].sum()) < value:
                    sigma, value = found, float(cost[found].sum())
                if undecided[j] < 0.0:  # one selection, whose value is known
                    floor = floor if is_allowed is False else min(floor, add_down(cost[found]))
                    is_decided = is_decided and is_allowed is not None
                    continue
            if bound >= min(closed, value):
                floor = min(floor, bound)
                continue
            for side in (0.0, 1.0):
                ends = lb.copy(), ub.copy()
                ends[0][j] = ends[1][j] = side
                heapq.heappush(heap, (bound, -next(order), *ends))
        if heap:
            floor = min(floor, heap[0][0])
        if sigma is None and (heap or not is_decided):
            remains = "whether any selection satisfies the rows remains open: their numbers are too close"
            raise StoppedError("no selection was found before the limit") if late() else UndecidedError(remains)
        return sigma, min(floor, np.inf if sigma is None else add_down(cost[sigma]))

    def _lagrangian_bound(self, cost: Array, box: tuple[Array, Array], scale: float) -> tuple[float, Array]:
        """The bound of the relaxed model's multipliers on the cost (p,), in a box (p + e,); reduced costs (p,)."""
        whole = np.concatenate([cost, np.zeros(len(self.selection.rows.extra))])
        y = scale * self._relaxed_model.multipliers()
        bound, reduced = lagrangian_bound(whole, self.selection.all_rows, *box, y)
        return bound, reduced[: cost.size]

    def _is_ruled_out(self, low: Array, high: Array) -> bool:
        """Whether a box (p + e,) holds nothing, by its cardinality, a single row, or as whole numbers do not fit."""
        selection = self.selection
        if selection.exceeds(low[: selection.n_features]) or selection.rows.refuted_by(low, high) >= 0:
            return True
        return selection.whole_numbers.is_likely_to and selection.whole_numbers.refutation(low, high) is not None

    def _is_allowed(self, sigma: Mask) -> bool | None:
        """Whether a selection is allowed; None where that remains open."""
        try:
            return self.contains(sigma)
        except UndecidedError:
            return None

    def _cut_off(self, sigma: Mask) -> None:
        """Exclude a selection that the rows forbid, with all that break the same row in the same way."""
        r = self.selection.refuted_by(sigma.astype(float), sigma.astype(float))
        if r < 0:  # only some rows together forbid it
            columns, signs, most = np.arange(sigma.size), np.where(sigma, 1.0, -1.0), float(sigma.sum()) - 1.0
        else:
            columns, signs, most = self._violated_cover(r, sigma)
        self._integer_model.program.add_row(-highs.highs_infinity(), most, columns, signs, "a cut")

    def _violated_cover(self, r: int, sigma: Mask) -> tuple[npt.NDArray[np.int64], Array, float]:
        """The extended cover inequality of a row that holds for no extra variables at sigma, exactly.

        With z_j = σ_j or 1 − σ_j the row says Σ |a_j| z_j ≤ capacity; the heaviest z_j = 1 of sigma that exceed it, k
        of them, and all that weigh as much as the heaviest, add up to k − 1 at most.

        Returns
        -------
        columns, signs, most : Σ signs σ ≤ most
        """
        rows, p = self.selection.rows, self.selection.n_features
        stored, a = row_of(rows.matrix, r)
        columns = stored.astype(np.int64)
        low, high = self.selection.box(sigma.astype(float), sigma.astype(float))
        above = sum_exactly(np.where(a > 0, low[columns], high[columns]), a) > rows.high[r]
        a, limit = (a, rows.high[r]) if above else (-a, -rows.low[r])
        outside = columns >= p
        ends = np.where(a > 0, low[columns], high[columns])
        capacity = Fraction(limit) - sum_exactly(ends[outside], a[outside]) - sum_exactly(a[~outside] < 0, a[~outside])
        columns, a = columns[~outside], a[~outside]
        chosen = np.flatnonzero(sigma[columns] == (a > 0))
        chosen = chosen[np.argsort(-np.abs(a[chosen]), kind="stable")]
        weight, k = Fraction(0), 0
        while weight <= capacity:
            weight, k = weight + abs(Fraction(a[chosen[k]])), k + 1
        cover = np.abs(a) >= np.abs(a[chosen[0]])
        cover[chosen[:k]] = True
        signs = np.where(a[cover] > 0, 1.0, -1.0)
        return columns[cover], signs, float(k - 1 - np.count_nonzero(signs < 0))

    @in_own_thread
    def extra_values(self, chosen: Array) -> Array | None:
        """Values (e,) of the extra variables that fit a selection (p,), by branching on the integer ones."""
        selection, p = self.selection, self.selection.n_features
        integer, first, unclear = selection.rows.extra.integer, selection.rows.extra.box, list[tuple[Array, Array]]()
        stack = [first]
        for _ in range(self.settings.extra_nodes):
            if not stack:
                break
            low, high = stack.pop(0)  # breadth first: without bounds one could go down one side for ever
            box = np.concatenate([chosen, low]), np.concatenate([chosen, high])
            if selection.rows.refuted_by(*box) >= 0:
                continue
            solution = self._solve_relaxed(*box)
            if solution.values is None:
                shown = solution.status == "infeasible" and self._is_refuted_by_ray(*box)
                if not shown and selection.whole_numbers.refutation(*box) is None:
                    unclear.append((low, high))
                continue
            values = np.clip(solution.values[p:], low, high)
            off = np.where(integer & (low < high), np.abs(values - np.rint(values)), -1.0)
            if off.max() <= WHOLE_DISTANCE:
                fitted = self.fit_values(chosen, values)
                if fitted is not None:
                    return fitted
            if selection.whole_numbers.refutation(*box) is not None:
                continue
            if low is first[0] and high is first[1]:
                for near in whole_points(selection, *box, values, self.settings.extra_nodes, self._make_clock()):
                    fitted = self.fit_values(chosen, near)
                    if fitted is not None:
                        return fitted
            k = int(np.argmax(off))
            if off[k] < 0.0:
                unclear.append((low, high))
                continue
            below = min(np.floor(values[k]), high[k] - 1.0)
            stack += [(low, _with_bound(high, k, below)), (_with_bound(low, k, below + 1.0), high)]
        if stack or unclear:  # a solver's word that nothing fits is no proof
            raise UndecidedError("whether extra variables can satisfy the rows beside a selection remains open")
        return None

    def fit_values(self, chosen: Array, values: Array) -> Array | None:
        """Values (e,) nearby at which the rows hold; None when they are not found."""
        selection, p = self.selection, self.selection.n_features
        rows, scaled, (low, high) = selection.rows, selection.scaled, selection.rows.extra.box
        values = np.where(rows.extra.integer, np.rint(values), np.clip(values, low, high))
        if np.any(values != np.clip(values, low, high)):
            return None
        for end in (low, high):
            values = np.where(np.abs(values - end) <= AT_BOUND * scaled.columns, end, values)
        inner = ~rows.extra.integer & (values > low) & (values < high)
        for fit in range(MOST_CORRECTIONS):
            free = np.flatnonzero(inner if fit < MOST_CORRECTIONS // 2 else ~rows.extra.integer)
            whole = scaled.columns * np.rint(values / scaled.columns)
            snapped = np.where(np.abs(values - whole) <= AT_BOUND * scaled.columns, whole, values)
            for tried in (values, snapped):  # what should be zero is not a tiny number of the wrong sign
                if rows.hold(np.concatenate([chosen, tried])):
                    return np.asarray(tried)
            x = np.concatenate([chosen, values])
            activity = rows.matrix @ x
            short, past = (rows.lb - activity) * scaled.units, (activity - rows.ub) * scaled.units
            active = np.flatnonzero(np.maximum(short, past) > -ACTIVE_DISTANCE)
            gap = np.where(short > past, short, -past)[active]
            if active.size * free.size > MOST_CORRECTION_NUMBERS:
                return None
            part = scaled.matrix[active][:, p + free].toarray()
            values = values.copy()
            values[free] += np.linalg.lstsq(part, gap, rcond=None)[0] * scaled.columns[free]
            values = np.clip(values, low, high)
        return None


def _with_bound(end: Array, k: int, value: float) -> Array:
    return replace_at(end, k, value)
