"""The set S of allowed selections: cardinality, forced features and any linear rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from mipfs.kernels.bound import rounded_down
from mipfs.plumbing.arrays import Array, Mask
from mipfs.selection.derived import ChvatalGomory, rows_of
from mipfs.selection.rows import Extras, Rows
from mipfs.selection.scaled_rows import ScaledRows, scale_rows
from mipfs.settings import OracleSettings

if TYPE_CHECKING:
    from mipfs.selection.extra_costs import ExtraCosts
    from mipfs.selection.lattice import WholeNumbers
    from mipfs.selection.oracle import SelectionOracle

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

    @cached_property
    def given(self) -> Selection:
        """The set as its user states it, without derived rows: the same selections."""
        kept = range(len(self.rows) - len(self.derived))
        return dataclasses.replace(self, rows=self.rows.take(kept), derived=()) if self.derived else self

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
        from mipfs.selection.conflict import smallest_conflict

        return smallest_conflict(self.given, must_stop)
