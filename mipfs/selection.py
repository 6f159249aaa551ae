"""The set S of allowed selections: cardinality, forced features and any linear rows; its linear oracle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from mipfs.errors import RowError
from mipfs.instance import Row

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

ROW_TOLERANCE = 1e-9
"""Violation of a row, relative to max(1, |bound|), that counts as satisfied."""


@dataclass(frozen=True, eq=False)
class Extras:
    """The user's extra variables: names, bounds and which are integer. They carry no cost."""

    names: tuple[str, ...] = ()
    lb: Array = field(default_factory=lambda: np.empty(0))
    ub: Array = field(default_factory=lambda: np.empty(0))
    integer: Mask = field(default_factory=lambda: np.empty(0, bool))

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True, eq=False)
class Rows:
    """Linear rows ``lb <= matrix @ [sigma; extra] <= ub``.

    Attributes
    ----------
    matrix : (r, p + e) csr_array
    lb, ub : (r,) ndarray, -inf and inf when absent
    names, origins : tuple of r str
    extra : Extras, the e extra variables
    """

    matrix: Any
    lb: Array
    ub: Array
    names: tuple[str, ...]
    origins: tuple[str, ...]
    extra: Extras = field(default_factory=Extras)

    def __len__(self) -> int:
        return len(self.names)

    @classmethod
    def empty(cls, n_features: int) -> Rows:
        """No rows over `n_features` features."""
        return cls(sparse.csr_array((0, n_features)), np.empty(0), np.empty(0), (), ())

    @classmethod
    def of(cls, rows: Sequence[Row], index: Mapping[str, int], extra: Extras | None = None) -> Rows:
        """Compile named rows to sparse ones.

        Raises
        ------
        RowError
            A row over a name that is neither a feature nor an extra variable.
        """
        extra = extra or Extras()
        place = {**index, **{name: len(index) + k for k, name in enumerate(extra.names)}}
        data, columns, pointer = [], [], [0]
        for row in rows:
            for name, value in row.terms.items():
                if name not in place:
                    raise RowError(f"row {row.name!r}{_at(row.origin)}: no feature is called {name!r}")
                columns.append(place[name])
                data.append(float(value))
            pointer.append(len(columns))
        matrix = sparse.csr_array((np.array(data, float), columns, pointer), shape=(len(rows), len(place)))
        matrix.sum_duplicates()
        return cls(
            matrix,
            np.array([row.lb for row in rows], float),
            np.array([row.ub for row in rows], float),
            tuple(row.name for row in rows),
            tuple(row.origin for row in rows),
            extra,
        )

    def stack(self, other: Rows) -> Rows:
        """These rows and then `other`'s; extra variables of both, kept apart."""
        p = self.matrix.shape[1] - len(self.extra)
        mine, theirs = self.matrix, other.matrix
        pad = sparse.csr_array((mine.shape[0], len(other.extra)))
        gap = sparse.csr_array((theirs.shape[0], len(self.extra)))
        matrix = sparse.vstack(
            [sparse.hstack([mine, pad]), sparse.hstack([theirs[:, :p], gap, theirs[:, p:]])], format="csr"
        )
        extra = Extras(
            self.extra.names + other.extra.names,
            np.concatenate([self.extra.lb, other.extra.lb]),
            np.concatenate([self.extra.ub, other.extra.ub]),
            np.concatenate([self.extra.integer, other.extra.integer]),
        )
        return Rows(
            sparse.csr_array(matrix),
            np.concatenate([self.lb, other.lb]),
            np.concatenate([self.ub, other.ub]),
            self.names + other.names,
            self.origins + other.origins,
            extra,
        )

    def take(self, keep: Sequence[int]) -> Rows:
        """Some of the rows, with all extra variables."""
        ids = list(keep)
        return Rows(
            self.matrix[ids],
            self.lb[ids],
            self.ub[ids],
            tuple(self.names[i] for i in ids),
            tuple(self.origins[i] for i in ids),
            self.extra,
        )


def lagrangian_bound(
    cost: Array, rows: tuple[Any, Array, Array], low: Array, high: Array, y: Array, scale: float
) -> tuple[float, Array]:
    """A lower bound on min cost'x over rows and box, for any multipliers of the rows; and the reduced costs.

    y'(row bounds) + Σ_j min over [low_j, high_j] of (cost − A'y)_j x_j, less its rounding error (Neumaier and
    Shcherbina 2004). A multiplier that points to an absent bound counts as zero, and so does a reduced cost of
    relative size 1e-9 on an unbounded variable.

    Parameters
    ----------
    cost : (m,) ndarray
    rows : matrix (r, m), lower and upper bounds (r,)
    low, high : (m,) bounds of x
    y : (r,) multipliers
    scale : float, the size of the costs
    """
    matrix, row_lb, row_ub = rows
    limit = np.where(y > 0, row_lb, row_ub)
    y = np.where(np.isfinite(limit), y, 0.0)
    rows_part = float(y @ np.where(np.isfinite(limit), limit, 0.0))
    reduced = cost - matrix.T @ y
    end = np.where(reduced > 0, low, high)
    reduced[~np.isfinite(end) & (np.abs(reduced) <= 1e-9 * scale)] = 0.0
    box = reduced * np.where(reduced != 0.0, end, 0.0)
    size = float(np.abs(y).sum() + np.abs(reduced).sum() + np.abs(cost).sum()) + abs(rows_part)
    return rows_part + float(box.sum()) - 1e-14 * (y.size + 8) * size, reduced


def _at(origin: str) -> str:
    return f" ({origin})" if origin else ""


@dataclass(frozen=True, eq=False)
class Selection:
    """The set S: ``sum sigma <= M``, forced features and rows.

    Parameters
    ----------
    n_features : int
    M : int or None, no cardinality row when None
    forced_in, forced_out : tuple of int
    rows : Rows
    feature_names : sequence of str, for messages
    """

    n_features: int
    M: int | None
    forced_in: tuple[int, ...]
    forced_out: tuple[int, ...]
    rows: Rows
    feature_names: Sequence[str] = ()

    @property
    def is_plain(self) -> bool:
        """Whether cardinality and forced features are all there is (closed forms hold)."""
        return len(self.rows) == 0

    def exceeds(self, low: npt.NDArray[Any]) -> bool:
        """Whether more features are fixed to 1 than the cardinality row allows, low (p,)."""
        return self.M is not None and int(low.sum()) > self.M

    def sigma_bounds(self) -> tuple[Array, Array]:
        """Lower and upper bounds (p,) of sigma after the forced features."""
        lb, ub = np.zeros(self.n_features), np.ones(self.n_features)
        lb[list(self.forced_in)] = 1.0
        ub[list(self.forced_out)] = 0.0
        return lb, ub

    def minimise(
        self, cost: Array, fixed_in: Sequence[int] = (), fixed_out: Sequence[int] = ()
    ) -> tuple[Mask | None, float]:
        """Minimise ``cost @ sigma`` over S with some features fixed.

        Parameters
        ----------
        cost : (p,) ndarray
        fixed_in, fixed_out : positions fixed to 1 and to 0

        Returns
        -------
        sigma : (p,) ndarray of bool, or None when nothing is allowed
        bound : float
            A lower bound on the minimum (inf when nothing is allowed): the closed form's value for a
            plain set, the solver's *dual* bound otherwise.
        """
        lb, ub = self.sigma_bounds()
        lb[list(fixed_in)] = 1.0
        ub[list(fixed_out)] = 0.0
        if self.is_plain:
            return self._minimise_plain(cost, lb, ub)
        if np.any(lb > ub):
            return None, np.inf
        from mipfs.backends import highs

        scale = float(np.abs(cost).max(initial=0.0)) or 1.0
        model = self._oracle
        highs.fix_columns(model, lb, ub)
        highs.set_costs(model, cost / scale)
        solution = highs.solve(model)
        if solution.values is None:
            return None, np.inf if solution.status == "infeasible" else -np.inf
        bound = scale * (solution.bound - 1e-9 * max(1.0, abs(solution.bound)))
        return solution.values[: self.n_features] > 0.5, bound

    def _minimise_plain(self, cost: Array, lb: Array, ub: Array) -> tuple[Mask | None, float]:
        room = self.n_features if self.M is None else self.M
        room -= int(lb.sum())
        if room < 0 or np.any(lb > ub):
            return None, np.inf
        sigma = lb > 0.5
        free = np.flatnonzero((ub > lb) & (cost < 0))
        if 0 < room < free.size:
            free = free[np.argpartition(cost[free], room - 1)[:room]]
        sigma[free[:room]] = True
        return sigma, float(cost[sigma].sum())

    def minimise_relaxed(self, cost: Array) -> tuple[Array | None, float]:
        """Minimise ``cost @ sigma`` over the rows with 0 <= sigma <= 1 (extra variables continuous).

        Returns
        -------
        sigma : (p,) ndarray, or None when nothing is allowed
        bound : float, a lower bound on the minimum from the LP's multipliers
        """
        if self.is_plain:
            sigma, bound = self.minimise(cost)
            return None if sigma is None else sigma.astype(float), bound
        from mipfs.backends import highs

        scale = float(np.abs(cost).max(initial=0.0)) or 1.0
        model, p = self._relaxed_oracle, self.n_features
        highs.set_costs(model, cost / scale)
        solution = highs.solve(model)
        if solution.values is None:
            return None, np.inf if solution.status == "infeasible" else -np.inf
        y = np.array(model.getSolution().row_dual) * scale
        lb, ub = self.sigma_bounds()
        low, high = np.concatenate([lb, self.rows.extra.lb]), np.concatenate([ub, self.rows.extra.ub])
        whole = np.concatenate([cost, np.zeros(len(self.rows.extra))])
        bound, _ = lagrangian_bound(whole, self.all_rows, low, high, y, scale)
        return np.clip(solution.values[:p], 0.0, 1.0), bound

    @cached_property
    def all_rows(self) -> tuple[Any, Array, Array]:
        """Matrix and bounds of all rows, the cardinality row first."""
        rows, p = self.rows, self.n_features
        if self.M is None:
            return rows.matrix, rows.lb, rows.ub
        ones = sparse.csr_array(np.concatenate([np.ones(p), np.zeros(len(rows.extra))])[None, :])
        matrix = sparse.csr_array(sparse.vstack([ones, rows.matrix]))
        return matrix, np.append(-np.inf, rows.lb), np.append(float(self.M), rows.ub)

    @cached_property
    def _relaxed_oracle(self) -> Any:
        from mipfs.backends import highs

        return highs.selection_model(self, relaxed=True)

    @cached_property
    def _oracle(self) -> Any:
        from mipfs.backends import highs

        return highs.selection_model(self)

    @cached_property
    def _without_objective(self) -> Array:
        return np.zeros(self.n_features)

    def contains(self, sigma: Mask) -> bool:
        """Whether sigma is allowed (with some value of the extra variables)."""
        lb, ub = self.sigma_bounds()
        chosen = np.asarray(sigma, dtype=bool)
        if np.any(chosen < lb) or np.any(chosen > ub) or (self.M is not None and chosen.sum() > self.M):
            return False
        if self.is_plain:
            return True
        if len(self.rows.extra):
            ids = np.arange(self.n_features)
            return self.minimise(self._without_objective, ids[chosen], ids[~chosen])[0] is not None
        activity = self.rows.matrix @ chosen.astype(float)
        slack = ROW_TOLERANCE * np.maximum(1.0, np.abs(activity))
        return bool(np.all(activity >= self.rows.lb - slack) and np.all(activity <= self.rows.ub + slack))

    def repair(self, scores: Array) -> Mask | None:
        """The allowed selection of largest total score; None when nothing is allowed.

        Features of score zero are left out unless a row wants them.
        """
        return self.minimise(-np.asarray(scores, dtype=float))[0]

    def conflict(self) -> tuple[str, ...]:
        """The names of a smallest set of rows that no selection satisfies; () when S is not empty."""
        from mipfs.conflict import smallest_conflict

        return smallest_conflict(self)
