"""The set S of allowed selections: cardinality, forced features and any linear rows.

Also here: a smallest conflicting set of rows, by name (why no selection is allowed).

Also here: the rows of a selection in numbers that a solver carries: every row and extra variable times a power of
two.

A solver forgives about 1e-9 on a row, drops coefficients below that and refuses those beyond 1e15; scaled, its
tolerance means something about the row. What is scaled is a relaxation of the rows as they stand: terms that even
then are negligible widen the row's bounds instead. Whether the rows hold is decided by `Rows.hold`, on the rows as
they stand.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from mipfs.errors import NumericalError
from mipfs.kernels.bound import rounded_down
from mipfs.plumbing.arrays import Array, Integers, Mask
from mipfs.plumbing.own_threads import in_own_thread
from mipfs.selection.derived import ChvatalGomory, rows_of
from mipfs.selection.rows import Extras, Rows
from mipfs.settings import OracleSettings
from mipfs.solvers import highs

if TYPE_CHECKING:
    from mipfs.selection.extra_costs import ExtraCosts
    from mipfs.selection.lattice import WholeNumbers
    from mipfs.selection.oracle import SelectionOracle


NEGLIGIBLE_BITS = 58
"""A term of at most 2^-58 of the row's largest coefficient lies far below the row's allowance."""
SCALING_ROUNDS = 6
"""Rounds of geometric scaling of rows and columns."""
LEAST_COEFFICIENT, MOST_COEFFICIENT = 2.0**-38, 2.0**45
"""Scaled coefficients lie between these."""
MOST_BOUND = 1e15
"""Scaled bounds lie below this in size; those of variables are left out beyond it."""


@dataclass(frozen=True, eq=False)
class ScaledRows:
    """Rows ``lb <= matrix @ [sigma; extra / columns] <= ub``, implied by the rows that they were made of.

    Attributes
    ----------
    matrix : (r, p + e) csr_array
    lb, ub : (r,) ndarray
    units : (r,) powers of two, what a row was multiplied by
    columns : (e,) powers of two: an extra variable is this times the solver's
    low, high : (e,) bounds of the solver's extra variables
    """

    matrix: Any
    lb: Array
    ub: Array
    units: Array
    columns: Array
    low: Array
    high: Array


def scale_rows(rows: Rows, n_features: int) -> ScaledRows:
    """Scale rows over `n_features` features.

    Raises
    ------
    RowError
        A row whose coefficients, or a bound beside them, are too far apart; by name.
    """
    matrix = rows.matrix
    extra = rows.extra
    p = n_features
    if not len(rows) and not len(extra):  # of many features even their bounds take time
        none = np.empty(0)
        return ScaledRows(matrix, none, none, none, none, none, none)
    low, high = np.concatenate([np.zeros(p), extra.box[0]]), np.concatenate([np.ones(p), extra.box[1]])
    lb, ub = _within_reach(rows, low, high)
    row, column = np.repeat(np.arange(len(rows)), np.diff(matrix.indptr)), matrix.indices
    exponents = _scaling_exponents(np.log2(np.abs(matrix.data)), row, column, matrix.shape, extra.integer)
    reach = np.maximum(*(np.where(np.isfinite(end), np.abs(end), 0.0) for end in (low, high)))
    terms = np.abs(matrix.data) * np.maximum(np.ldexp(1.0, exponents[1]), reach)[column]
    largest = np.zeros(len(rows))
    np.maximum.at(largest, row, terms)
    light = terms < np.ldexp(largest[row], -NEGLIGIBLE_BITS)
    for i in np.flatnonzero(light):
        ends = matrix.data[i] * low[column[i]], matrix.data[i] * high[column[i]]
        if not np.all(np.isfinite(ends)):
            what = f"the coefficient {matrix.data[i]:g} of {extra.names[column[i] - p]!r}, which has no bounds,"
            rows.refuse(int(row[i]), f"{what} is lost beside {np.abs(matrix.data[row == row[i]]).max():g}")
        lb[row[i]] = np.nextafter(lb[row[i]] - max(ends), -np.inf)
        ub[row[i]] = np.nextafter(ub[row[i]] - min(ends), np.inf)
    row = row[~light]
    column = column[~light]
    data = matrix.data[~light]
    units, columns = _scaling_exponents(np.log2(np.abs(data)), row, column, matrix.shape, extra.integer)
    data = np.ldexp(data, units[row] + columns[column])
    for i in np.flatnonzero((np.abs(data) < LEAST_COEFFICIENT) | (np.abs(data) > MOST_COEFFICIENT))[:1]:
        rows.refuse(int(row[i]), "its coefficients are too far from each other and from those of other rows")
    lb, ub = np.ldexp(lb, units), np.ldexp(ub, units)
    for r in np.flatnonzero(
        (np.isfinite(lb) & (np.abs(lb) > MOST_BOUND)) | (np.isfinite(ub) & (np.abs(ub) > MOST_BOUND))
    )[:1]:
        rows.refuse(int(r), f"the bound {rows.ub[r] if np.isfinite(ub[r]) else rows.lb[r]:g} is too far from zero")
    sides = np.ldexp(extra.box[0], -columns[p:]), np.ldexp(extra.box[1], -columns[p:])
    return ScaledRows(
        sparse.csr_array((data, (row, column)), shape=matrix.shape),
        lb,
        np.maximum(lb, ub),
        np.ldexp(1.0, units),
        np.ldexp(1.0, columns[p:]),
        np.where(np.abs(sides[0]) > MOST_BOUND, -np.inf, sides[0]),
        np.where(np.abs(sides[1]) > MOST_BOUND, np.inf, sides[1]),
    )


def _within_reach(rows: Rows, low: Array, high: Array) -> tuple[Array, Array]:
    """Bounds (r,) of the rows: left out where every point of the box keeps them, moved near where none does."""
    least, most = rows.activities(low, high)
    past = np.asarray(rows.sizes.sum(axis=1), dtype=float)
    lb = np.where(rows.low <= least, -np.inf, np.minimum(rows.low, most + past + np.abs(most)))
    ub = np.where(rows.high >= most, np.inf, np.maximum(rows.high, least - past - np.abs(least)))
    return lb, ub


def _scaling_exponents(
    sizes: Array, row: Integers, column: Integers, shape: tuple[int, int], integer: npt.NDArray[np.bool_]
) -> tuple[Integers, Integers]:
    """Exponents of rows (r,) and columns (p + e,) that bring the sizes (log2 of the entries) around 1.

    Those of features and of integer variables are zero: they stay whole.
    """
    rows, columns = np.zeros(shape[0]), np.zeros(shape[1])
    free = np.zeros(shape[1], dtype=bool)
    free[shape[1] - integer.size :] = ~integer
    for sweep in range(SCALING_ROUNDS):
        rows = -_midrange_sizes(sizes + columns[column], row, shape[0])
        if not free.any() or sweep == SCALING_ROUNDS - 1:
            break
        columns = np.where(free, -_midrange_sizes(sizes + rows[row], column, shape[1]), 0.0)
    return np.rint(rows).astype(np.int64), np.rint(columns).astype(np.int64)


def _midrange_sizes(sizes: Array, place: Integers, count: int) -> Array:
    """Halfway between the least and the largest size of every place, 0 where there is none."""
    ends = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(ends[0], place, sizes)
    np.maximum.at(ends[1], place, sizes)
    held = np.isfinite(ends[0])
    return np.where(held, 0.5 * (np.where(held, ends[0], 0.0) + np.where(held, ends[1], 0.0)), 0.0)


__all__ = ["Extras", "Rows", "Selection", "System", "lagrangian_bound"]


DUST = 1e-12
"""Multipliers up to this size, relative to the costs, are a solver's round-off."""
NEARLY = 1e-9
"""A reduced cost of this relative size is the round-off of a zero."""


@dataclass(frozen=True, eq=False)
class System:
    """All rows of S with their allowances, ``low <= matrix @ [sigma; extra] <= high``, the cardinality row first.

    Attributes
    ----------
    matrix : (r, p + e) csr_array
    low, high : (r,) ndarray
    """

    matrix: Any
    low: Array
    high: Array

    def __len__(self) -> int:
        return self.low.size

    def __iter__(self) -> Iterator[Any]:
        return iter((self.matrix, self.low, self.high))

    @cached_property
    def transposed(self) -> Any:
        """The matrix, transposed: a view, which SciPy takes as long to make as to multiply by."""
        return self.matrix.T

    @cached_property
    def sizes(self) -> Any:
        """|matrix|, transposed."""
        return abs(self.matrix).T.tocsr()

    @cached_property
    def largest(self) -> Array:
        """max |a_j| of every row, (r,)."""
        return np.asarray(abs(self.matrix).max(axis=1).toarray(), dtype=float).reshape(-1)

    def usable_multipliers(self, cost: Array, y: Array) -> Array:
        """The multipliers (r,) that a bound on min cost'x rests on: 0 for those at absent ends, and for round-off."""
        is_there = np.isfinite(np.where(y > 0, self.low, self.high))
        dust = np.abs(y) * self.largest <= DUST * float(np.abs(cost).max(initial=0.0))
        return np.where(is_there & ~dust, y, 0.0)


def lagrangian_bound(cost: Array, system: System, low: Array, high: Array, y: Array) -> tuple[float, Array]:
    """A lower bound on min cost'x over rows and box, for any multipliers of the rows; and the reduced costs.

    y'(row bounds) + Σ_j min over [low_j, high_j] of (cost − A'y)_j x_j, less its rounding error (Neumaier and
    Shcherbina 2004), with the multipliers of `System.usable_multipliers`. A reduced cost that is round-off on an
    unbounded variable counts as zero. Half of what is taken off for the reduced costs covers their rounding: the
    other half is room for one of them at the other end of its box, where it fixes a variable.

    Parameters
    ----------
    cost : (m,) ndarray
    system : System of r rows over m variables
    low, high : (m,) bounds of x
    y : (r,) multipliers
    """
    y = system.usable_multipliers(cost, y)
    limit = np.where(y > 0, system.low, system.high)
    parts = y * np.where(np.isfinite(limit), limit, 0.0)
    reduced = cost - system.transposed @ y
    size = np.abs(cost) + system.sizes @ np.abs(y)
    end = np.where(reduced > 0, low, high)
    reduced[~np.isfinite(end) & (np.abs(reduced) <= NEARLY * size)] = 0.0
    box = reduced * np.where(reduced != 0.0, end, 0.0)
    far = np.maximum(*(np.where(np.isfinite(side), np.abs(side), 0.0) for side in (low, high)))
    count = int(np.count_nonzero(parts) + np.count_nonzero(box))
    bound = rounded_down(float(parts.sum() + box.sum()), float(np.abs(parts).sum() + np.abs(box).sum()), count)
    return rounded_down(bound, float(size @ far), y.size), reduced


@dataclass(frozen=True, eq=False)
class Selection:
    """The set S: ``sum sigma <= M``, forced features and rows.

    Parameters
    ----------
    n_features : int
    M : int or None, no cardinality row when None
    forced_in, forced_out : tuple of int
    rows : Rows
        The user's, and behind them those that are derived.
    feature_names : sequence of str, for messages
    derived : sequence of ChvatalGomory, the proofs of the rows that are derived
    """

    n_features: int
    M: int | None
    forced_in: tuple[int, ...]
    forced_out: tuple[int, ...]
    rows: Rows
    feature_names: Sequence[str] = ()
    derived: Sequence[ChvatalGomory] = ()

    @property
    def given(self) -> Selection:
        """The set as its user states it, without derived rows: the same selections."""
        return self._without_derived if self.derived else self

    @cached_property
    def _without_derived(self) -> Selection:
        kept = range(len(self.rows) - len(self.derived))
        return dataclasses.replace(self, rows=self.rows.take(kept), derived=())

    def with_derived(self, derived: Sequence[ChvatalGomory]) -> Selection:
        """The set with derived rows, too; it must have none."""
        assert not self.derived
        rows = self.rows.stack(rows_of(self, derived)) if derived else self.rows
        return dataclasses.replace(self, rows=rows, derived=derived)

    def stated_derived(self) -> list[dict[str, Any]]:
        """The derived rows with their derivations, as a certificate has them."""
        return [one.stated(self.given) for one in self.derived]

    @cached_property
    def whole_numbers(self) -> WholeNumbers:
        """What follows as σ and some extra variables are whole numbers."""
        from mipfs.selection.lattice import WholeNumbers

        return WholeNumbers(self)

    @cached_property
    def extra_costs(self) -> ExtraCosts | None:
        """What the extra variables cost at a selection; None where they cost nothing."""
        from mipfs.selection.extra_costs import ExtraCosts

        return ExtraCosts(self.given) if self.rows.extra.is_costed else None

    @cached_property
    def priced(self) -> Mask:
        """The atoms (p,) on which the cost of extra variables depends: in a row with one that has a cost, or with one
        that another row joins to such a one."""
        p = self.n_features
        on_extra = self.rows.matrix[:, p:]
        known = self.rows.extra.cost != 0.0
        rows = np.zeros(len(self.rows), bool)
        while True:
            rows = np.asarray(abs(on_extra) @ known.astype(float)) > 0.0
            wider = known | (np.asarray(abs(on_extra).T @ rows.astype(float)) > 0.0)
            if np.array_equal(wider, known):
                return np.asarray(abs(self.rows.matrix[:, :p]).T @ rows.astype(float)) > 0.0
            known = wider

    @property
    def is_plain(self) -> bool:
        """Whether cardinality and forced features are all there is (closed forms hold)."""
        return len(self.rows) == 0 and not self.rows.extra.is_costed

    def exceeds(self, low: npt.NDArray[Any]) -> bool:
        """Whether more features are fixed to 1 than the cardinality row allows, low (p,)."""
        return self.M is not None and int(low.sum()) > self.M

    def sigma_bounds(self) -> tuple[Array, Array]:
        """Lower and upper bounds (p,) of sigma after the forced features."""
        lb, ub = np.zeros(self.n_features), np.ones(self.n_features)
        lb[list(self.forced_in)] = 1.0
        ub[list(self.forced_out)] = 0.0
        return lb, ub

    @cached_property
    def all_rows(self) -> System:
        """All rows, the cardinality row first."""
        rows = self.rows
        if self.M is None:
            return System(rows.matrix, rows.low, rows.high)
        ones = sparse.csr_array(np.concatenate([np.ones(self.n_features), np.zeros(len(rows.extra))])[None, :])
        matrix = sparse.csr_array(sparse.vstack([ones, rows.matrix]))
        return System(matrix, np.append(-np.inf, rows.low), np.append(float(self.M), rows.high))

    @cached_property
    def scaled(self) -> ScaledRows:
        """The rows as solvers get them; a row whose numbers are too far apart is a `RowError`."""
        return scale_rows(self.rows, self.n_features)

    @cached_property
    def solver_rows(self) -> Rows:
        """`scale_rows` as rows for another solver, extra variables in its units; rows that always hold are left out."""
        rows = self.rows
        part = self.scaled
        extra = Extras(rows.extra.names, part.low, part.high, rows.extra.integer, rows.extra.cost * part.columns)
        whole = Rows(part.matrix, part.lb, part.ub, rows.names, rows.origins, extra)
        return whole.take(np.flatnonzero(np.isfinite(part.lb) | np.isfinite(part.ub)).tolist())

    def box(self, lb: npt.NDArray[Any], ub: npt.NDArray[Any]) -> tuple[Array, Array]:
        """Bounds (p + e,) of all variables, where those of sigma are `lb` and `ub` (p,)."""
        low, high = self.rows.extra.box
        return np.concatenate([lb, low]), np.concatenate([ub, high])

    def refuted_by(self, lb: npt.NDArray[Any], ub: npt.NDArray[Any]) -> int:
        """One of the rows that holds nowhere in a box of sigma, lb and ub (p,); -1 when every row holds somewhere."""
        return self.rows.refuted_by(*self.box(lb, ub))

    def minimise(
        self, cost: Array, fixed_in: Sequence[int] = (), fixed_out: Sequence[int] = ()
    ) -> tuple[Mask | None, float]:
        """Minimise ``cost @ sigma`` over S; see `SelectionOracle.minimise`, which keeps its solver between calls."""
        return self.oracle().minimise(cost, fixed_in, fixed_out)

    def minimise_relaxed(self, cost: Array) -> tuple[Array | None, float]:
        """Minimise ``cost @ sigma`` over the relaxed S; see `SelectionOracle.minimise_relaxed`."""
        return self.oracle().minimise_relaxed(cost)

    def contains(self, sigma: Mask) -> bool:
        """Whether sigma is allowed (with some value of the extra variables); see `SelectionOracle.contains`."""
        return self.oracle().contains(sigma)

    def repair(self, scores: Array) -> Mask | None:
        """The allowed selection of largest total score; see `SelectionOracle.repair`."""
        return self.oracle().repair(scores)

    def oracle(self, settings: OracleSettings = OracleSettings()) -> SelectionOracle:
        """A new linear oracle over S, with a solver of its own: for one thread."""
        from mipfs.selection.oracle import SelectionOracle

        return SelectionOracle(self, settings)

    def conflict(self, must_stop: Callable[[], bool] = bool) -> tuple[str, ...]:
        """The names of a smallest set of rows that no selection satisfies; () when S is not empty.

        Once `must_stop` says so, those of the smallest set that was found.
        """

        return smallest_conflict(self.given, must_stop)


MAX_ROUNDS = 300
"""Rounds of the search for a minimum set before an irreducible one is accepted."""


@in_own_thread
def smallest_conflict(selection: Selection, must_stop: Callable[[], bool] = bool) -> tuple[str, ...]:
    """The smallest set of rows without a common selection.

    Every minimal conflict meets the complement of every satisfiable set, so a minimum hitting set of
    the complements collected so far is a lower bound on the conflict; when the hitting set is itself
    a conflict, or an irreducible one is as small, it is a smallest one. HiGHS's own irreducible sets are
    for linear programs, and rows over binaries may contradict each other only through integrality.

    Parameters
    ----------
    selection : Selection
    must_stop : callable, optional
        Asked again and again; once it says so, the conflict found so far is returned, however large.

    Returns
    -------
    tuple of str
        Names of rows, ``cardinality``, ``forced_in[name]`` and ``forced_out[name]``; () when satisfiable.
    """
    items = _conflict_items(selection)
    everything = list(range(len(items)))
    if _find_satisfying(selection, items, everything)[0]:
        return ()
    smallest = _drop_superfluous(selection, items, everything, must_stop)
    complements: list[list[int]] = []
    for _ in range(MAX_ROUNDS):
        hit = _hitting_set(complements, len(items), must_stop)
        if hit is None or len(hit) >= len(smallest) or must_stop():
            break
        possible, sigma = _find_satisfying(selection, items, hit)
        if not possible:
            return _item_names(items, hit)
        grown = _find_met(selection, items, sigma) | set(hit)
        for i in everything:
            if i in grown or must_stop():
                continue
            possible, sigma = _find_satisfying(selection, items, [*sorted(grown), i])
            if possible:
                grown |= _find_met(selection, items, sigma) | {i}
        complements.append([i for i in everything if i not in grown])
    return _item_names(items, smallest)


Item = tuple[str, int, str]


def _item_names(items: Sequence[Item], chosen: Sequence[int]) -> tuple[str, ...]:
    """Each name once: the two sides of one row may be two items."""
    return tuple(dict.fromkeys(items[i][2] for i in chosen))


def _conflict_items(selection: Selection) -> list[Item]:
    names = selection.feature_names or tuple(f"x{j + 1}" for j in range(selection.n_features))
    return [
        *(("row", r, name) for r, name in enumerate(selection.rows.names)),
        *([] if selection.M is None else [("cardinality", 0, "cardinality")]),
        *(("in", j, f"forced_in[{names[j]}]") for j in selection.forced_in),
        *(("out", j, f"forced_out[{names[j]}]") for j in selection.forced_out),
    ]


def _find_satisfying(selection: Selection, items: Sequence[Item], keep: Sequence[int]) -> tuple[bool, Mask | None]:
    """Whether some selection meets these items, and one that does, if it was found."""
    chosen = [items[i] for i in keep]
    part = Selection(
        selection.n_features,
        selection.M if any(kind == "cardinality" for kind, _, _ in chosen) else None,
        tuple(j for kind, j, _ in chosen if kind == "in"),
        tuple(j for kind, j, _ in chosen if kind == "out"),
        selection.rows.take([r for kind, r, _ in chosen if kind == "row"]),
    )
    try:
        sigma = part.minimise(np.zeros(selection.n_features))[0]
    except NumericalError:  # what cannot be shown to conflict does not
        return True, None
    return sigma is not None, sigma


def _find_met(selection: Selection, items: Sequence[Item], sigma: Mask | None) -> set[int]:
    """Items that a selection surely meets, whatever the extra variables are."""
    if sigma is None:
        return set()
    rows = selection.rows
    activity = rows.matrix[:, : selection.n_features] @ sigma.astype(float)
    alone = np.diff(rows.matrix[:, selection.n_features :].tocsr().indptr) == 0
    holds = alone & (activity >= rows.lb) & (activity <= rows.ub)

    def is_met(kind: str, place: int) -> bool:
        if kind == "row":
            return bool(holds[place])
        if kind == "cardinality":
            return bool(selection.M is not None and np.count_nonzero(sigma) <= selection.M)
        return bool(sigma[place] == (kind == "in"))

    return {i for i, (kind, place, _) in enumerate(items) if is_met(kind, place)}


def _hitting_set(sets: Sequence[Sequence[int]], size: int, must_stop: Callable[[], bool]) -> list[int] | None:
    """A minimum set of items that meets each of `sets`; None where HiGHS finds none."""
    if not sets:
        return []
    program = highs.HighsModel()
    program.add_columns(np.zeros(size), np.ones(size))
    program.set_costs(np.ones(size))
    program.make_whole(np.arange(size))
    for members in sets:
        program.add_row(1.0, highs.highs_infinity(), np.array(members), np.ones(len(members)))
    found = highs.solve(program, stop=must_stop)
    return None if found.status != "optimal" or found.values is None else np.flatnonzero(found.values > 0.5).tolist()


def _drop_superfluous(
    selection: Selection, items: Sequence[Item], candidates: Sequence[int], must_stop: Callable[[], bool]
) -> list[int]:
    """Drop every item whose absence leaves the rest conflicting, many at a time while that goes well."""
    kept = list(candidates)
    waiting = list(candidates)
    size = max(1, len(candidates) // 2)
    while waiting and not must_stop():
        some = set(waiting[:size])
        rest = [k for k in kept if k not in some]
        if not _find_satisfying(selection, items, rest)[0]:
            kept = rest
            waiting = waiting[size:]
            size = 2 * size
        elif size > 1:
            size = max(1, size // 4)
        else:
            waiting = waiting[1:]
    return kept
