"""The set S as a HiGHS model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mipfs.plumbing.arrays import Array, row_of
from mipfs.selection.selection import Selection
from mipfs.solvers import highs


@dataclass(frozen=True, eq=False)
class SelectionModel:
    """The set S in HiGHS: columns sigma, then the extra variables in units of their own; rows in units too.

    Attributes
    ----------
    program : HighsModel
    units : (r,) powers of two, by which every row of S was multiplied (the cardinality row, the first, by 1)
    columns : (e,) powers of two: an extra variable is this times its column
    """

    program: highs.HighsModel
    units: Array
    columns: Array

    def solve(self, stop: Callable[[], bool] | None = None) -> highs.MilpSolution:
        """Run HiGHS until it ends or `stop` says so; `values` are sigma and extra variables as the rows have them."""
        solution = highs.solve(self.program, stop=stop)
        if solution.values is None:
            return solution
        values = solution.values.copy()
        p = self.program.n_columns - self.columns.size
        values[p:] *= self.columns
        return highs.MilpSolution(solution.status, values, solution.bound)

    def multipliers(self, whole: Array | None = None) -> Array:
        """The LP's multipliers (r,) of the rows of S as they stand, the cardinality row first; of `whole`, if known."""
        whole = self.program.multipliers() if whole is None else whole
        return whole[: self.units.size] * self.units

    def ray(self) -> Array | None:
        """HiGHS's Farkas ray (r,) in the model's own units, its largest entry 1; None without one."""
        whole = self.program.ray()
        if whole is None:
            return None
        y = whole[: self.units.size]
        return np.asarray(y / max(float(np.abs(y).max(initial=0.0)), 1e-300))


def selection_model(selection: Selection, *, relaxed: bool = False, presolve: bool = True) -> SelectionModel:
    """The set S as a HiGHS model with zero cost; its rows are implied by those of S (`mipfs.selection.selection`).

    Raises
    ------
    NumericalError
        HiGHS refuses a part of it.
    """
    program = highs.HighsModel(presolve=presolve)
    rows = selection.scaled
    p = selection.n_features
    names = selection.rows.names
    lb, ub = selection.sigma_bounds()
    program.add_columns(np.concatenate([lb, rows.low]), np.concatenate([ub, rows.high]))
    if not relaxed:
        program.make_whole(np.flatnonzero(np.concatenate([np.ones(p, bool), selection.rows.extra.integer])))
    if selection.M is not None:
        program.add_row(-highs.highs_infinity(), float(selection.M), np.arange(p), np.ones(p), "the cardinality row")
    for r, name in enumerate(names):
        program.add_row(float(rows.lb[r]), float(rows.ub[r]), *row_of(rows.matrix, r), f"the row {name!r}")
    units = rows.units if selection.M is None else np.append(1.0, rows.units)
    return SelectionModel(program, units, rows.columns)
