"""Multipliers of the user's rows: what they show of a selection's box, exactly where extra variables need it."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mipfs.kernels.bound import add_down, lower, rounded_down
from mipfs.plumbing.arrays import Array, scatter
from mipfs.proof.proof import Multipliers
from mipfs.selection.selection import Selection

if TYPE_CHECKING:
    from mipfs.selection.model import SelectionModel


ROUND_OFF_SHARE = 1e-9
"""Entries of a ray, and of what they leave on an extra variable, up to this relative size are round-off."""

UNDERFLOW_ALLOWANCE = 1e-300
"""More than all that underflows where a bound is summed."""


def cancel_multipliers(selection: Selection, y: Array, *, is_ray: bool = False) -> Multipliers | None:
    """Multipliers (r,) of the user's rows that bound the extra variables: y, or y corrected exactly; None if neither.

    The reduced cost of an extra variable must be zero or point to an end that it has, exactly: where that fails by
    round-off, a few of the largest multipliers become rational numbers that make it zero. A ray is about no cost.
    """
    rows = selection.rows
    box = selection.rows.extra.box
    limit = np.where(y > 0, rows.lb, rows.ub)
    exact = [Fraction(v) for v in np.where(np.isfinite(limit), y, 0.0).tolist()]
    columns = [_exact_column(rows.matrix, selection.n_features + k) for k in range(len(rows.extra))]
    costs = [Fraction(0) if is_ray else Fraction(d) for d in rows.extra.cost.tolist()]
    ends = list(zip(np.isfinite(box[0]).tolist(), np.isfinite(box[1]).tolist(), strict=True))
    vanish: list[int] = []
    for attempt in range(len(rows.extra) + 1):
        reduced = [
            d - sum((a * exact[r] for r, a in column.items()), Fraction(0))
            for column, d in zip(columns, costs, strict=True)
        ]
        unbounded = [k for k, v in enumerate(reduced) if v and not ends[k][0 if v > 0 else 1]]
        if not unbounded:
            return y if attempt == 0 else tuple(exact)
        sizes = [
            float(sum((abs(a * exact[r]) for r, a in column.items()), abs(d)))
            for column, d in zip(columns, costs, strict=True)
        ]
        small = (k for k, v in enumerate(reduced) if not all(ends[k]) and abs(float(v)) <= ROUND_OFF_SHARE * sizes[k])
        vanish = sorted({*vanish, *unbounded, *small})
        _make_vanish(exact, [columns[k] for k in vanish], [costs[k] for k in vanish])
        if any(v and not math.isfinite(rows.lb[r] if v > 0 else rows.ub[r]) for r, v in enumerate(exact)):
            return None
    return None


def _are_bounded(selection: Selection, multipliers: Multipliers) -> bool:
    """Whether the reduced cost d − A'π of every extra variable is zero or points to an end that it has, exactly."""
    rows = selection.rows
    ends = rows.extra.box
    limit = np.where(np.array([float(v) for v in multipliers]) > 0, rows.low, rows.high)
    exact = [Fraction(v) if math.isfinite(end) else Fraction(0) for v, end in zip(multipliers, limit, strict=True)]
    for k in np.flatnonzero(~(np.isfinite(ends[0]) & np.isfinite(ends[1]))).tolist():
        column = _exact_column(rows.matrix, selection.n_features + k)
        left = Fraction(float(rows.extra.cost[k])) - sum((a * exact[r] for r, a in column.items()), Fraction(0))
        if left and not math.isfinite(ends[0 if left > 0 else 1][k]):
            return False
    return True


def _exact_column(matrix: Any, j: int) -> dict[int, Fraction]:
    """The non-zeros of column j, by row, as fractions."""
    found = matrix[:, [j]].tocoo()
    return {int(r): Fraction(a) for r, a in zip(found.row, found.data.tolist(), strict=True) if a}


def _make_vanish(y: list[Fraction], columns: list[dict[int, Fraction]], costs: list[Fraction]) -> None:
    """Change as many entries of y, the largest first, as it takes that Σ_r a_r y_r is its cost for every column."""
    equations = [
        (dict(column), sum((a * y[r] for r, a in column.items()), -d)) for column, d in zip(columns, costs, strict=True)
    ]
    pivots: list[tuple[int, dict[int, Fraction], Fraction]] = []
    for column, total in equations:
        for r, row, rest in pivots:  # what the pivots before leave of it
            share = column.get(r, Fraction(0)) / row[r]
            column = {
                i: v for i in {*column, *row} if (v := column.get(i, Fraction(0)) - share * row.get(i, Fraction(0)))
            }
            total -= share * rest
        held = [r for r in column if y[r]]
        if held:
            best = max(held, key=lambda r: abs(column[r] * y[r]))
            pivots.append((best, column, total))
    step: dict[int, Fraction] = {}
    for r, row, rest in reversed(pivots):
        step[r] = (-rest - sum((row[i] * v for i, v in step.items() if i in row), Fraction(0))) / row[r]
    for r, v in step.items():
        y[r] += v


def farkas_multipliers(
    model: SelectionModel, selection: Selection, low: npt.NDArray[Any], high: npt.NDArray[Any]
) -> Multipliers | None:
    """Multipliers (r,) of the user's rows that show that an infeasible LP holds no selection; None when none do."""
    ray = model.ray()
    if ray is None:
        return None
    first = int(selection.M is not None)
    y = np.where(np.abs(ray) > ROUND_OFF_SHARE, ray, 0.0)[first:] * model.units[first:]
    return emptiness_multipliers(selection, y / max(float(np.abs(y).max(initial=0.0)), 1e-300), low, high)


def broken_row(selection: Selection, low: npt.NDArray[Any], high: npt.NDArray[Any]) -> Multipliers | None:
    """Multipliers (r,) of a single row that holds nowhere between low and high (p,); None when there is none."""
    r = selection.refuted_by(low, high)
    if r < 0:
        return None
    least, _ = selection.rows.activities(*selection.box(low, high))
    y = scatter(len(selection.rows), r, -1.0 if least[r] > selection.rows.high[r] else 1.0)
    return emptiness_multipliers(selection, y, low, high)


def emptiness_multipliers(
    selection: Selection, y: Array, low: npt.NDArray[Any], high: npt.NDArray[Any]
) -> Multipliers | None:
    """The multipliers (r,), made to bound the extra variables, if they show that no selection lies in a box (p,)."""
    bounding = cancel_multipliers(selection, y, is_ray=True)
    shows = (
        bounding is not None
        and lagrangian_bound_below(selection, bounding, low, high, is_ray=True) > UNDERFLOW_ALLOWANCE
    )
    return bounding if shows else None


def lagrangian_bound_below(
    selection: Selection,
    multipliers: Multipliers,
    low: npt.NDArray[Any],
    high: npt.NDArray[Any],
    cost: Any = 0.0,
    *,
    is_ray: bool = False,
) -> float:
    """A lower bound on the minimum of cost'σ + d'z over the box and the rows by their multipliers, rounded down.

    A ray is about no d. Where extra variables cost something, multipliers that bound them by round-off alone bound
    nothing: their reduced costs are taken exactly.
    """
    rows = selection.rows
    p = selection.n_features
    ends = selection.rows.extra.box
    y = np.array([float(v) for v in multipliers])
    limit = np.where(y > 0, rows.low, rows.high)
    y = np.where(np.isfinite(limit), y, 0.0)
    limit = np.where(np.isfinite(limit), limit, 0.0)
    own = np.zeros(len(rows.extra)) if is_ray else rows.extra.cost
    whole = np.append(np.zeros(p), own)
    reduced = whole - (rows.matrix.T @ y)
    size = rows.sizes.T @ np.abs(y) + np.abs(whole)
    if own.any() and not _are_bounded(selection, multipliers):
        return -math.inf
    cost = np.broadcast_to(cost, (p,))
    gain = -rounded_down(reduced[:p] + cost, size[:p] + np.abs(cost), y.size + 1)
    end = np.where(reduced[p:] > 0, *ends)  # what round-off leaves on a variable without an end is none
    end = np.where(np.isfinite(end), end, 0.0)
    of_rows = add_down(y * limit, rounded_down(reduced[p:] * end, size[p:] * np.abs(end), y.size))
    return lower(of_rows, gain, low > 0.5, (low < 0.5) & (high > 0.5), selection.M)
