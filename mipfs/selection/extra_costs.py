"""What the user's extra variables cost at a selection: κ(σ) = min d'z over the z at which σ satisfies the rows.

    (P)  min over (σ, z) in S of  c'σ + d'z + v(σ)  =  min over σ of  c'σ + κ(σ) + v(σ)

The z that are stated are doubles that the rows allow exactly, so that d'z is no less than κ(σ), and it exceeds it by
the rounding of real variables at most. A d that is unbounded below over S is refused: no selection would be the best.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from mipfs.errors import RowError, UndecidedError
from mipfs.kernels.bound import U
from mipfs.plumbing.arrays import Array, Integers, Mask, mask_of, rounded_up, sum_exactly
from mipfs.plumbing.own_threads import in_own_thread
from mipfs.selection.model import SelectionModel, selection_model
from mipfs.solvers import highs

if TYPE_CHECKING:
    from mipfs.selection.selection import Selection

FALLS = 1e-9
"""Σ |d_k z_k| = 1 at most along a ray: one on which d'z falls by more than this leads down without end."""
MOST_KEPT = 100_000
"""Selections whose values are kept."""


@dataclass(frozen=True, eq=False)
class CheapestExtras:
    """The cheapest extra variables that were found at a selection.

    Attributes
    ----------
    values : (e,) z
    cost : float, d'z rounded up
    """

    values: Array
    cost: float


class ExtraCosts:
    """κ(σ) of one selection set; may be asked by several threads.

    Parameters
    ----------
    selection : Selection, whose extra variables cost something
    """

    def __init__(self, selection: Selection) -> None:
        self.selection = selection
        self._oracle = selection.oracle()
        self._known: dict[bytes, CheapestExtras | None] = {}
        self._lock = Lock()

    def at(self, sigma: Mask) -> CheapestExtras | None:
        """The cheapest z beside a selection (p,); None where the rows forbid it.

        Raises
        ------
        UndecidedError
            Neither values at which the rows hold exactly nor a proof that there are none can be found.
        """
        key = np.packbits(np.asarray(sigma, dtype=bool)).tobytes()
        with self._lock:
            if key not in self._known:
                if len(self._known) >= MOST_KEPT:
                    self._known.clear()
                self._known[key] = self._cheapest_extras(np.asarray(sigma, dtype=bool).astype(float))
            return self._known[key]

    def of(self, chosen: Integers) -> float:
        """d'z of the atoms `chosen` (k,), rounded up; ∞ where no z is at hand."""
        try:
            found = self.at(mask_of(self.selection.n_features, chosen))
        except UndecidedError:
            return math.inf
        return math.inf if found is None else found.cost

    @in_own_thread
    def _cheapest_extras(self, chosen: Array) -> CheapestExtras | None:
        values = self._cheapest_by_milp(chosen)
        values = self._oracle.extra_values(chosen) if values is None else values
        return None if values is None else CheapestExtras(values, cost_above(self.selection.rows.extra.cost, values))

    def _cheapest_by_milp(self, chosen: Array) -> Array | None:
        """The cheapest z by HiGHS's word, at which the rows hold exactly; None where it finds none."""
        extra, p = self.selection.rows.extra, chosen.size
        low, high = self._relaxed_ends
        if extra.integer.any():
            self._integer_model.program.fix_columns(chosen, chosen)
            found = self._integer_model.solve()
            if found.values is None:
                return None
            whole = np.rint(found.values[p:]) / self._relaxed_model.columns
            low, high = np.where(extra.integer, whole, low), np.where(extra.integer, whole, high)
        self._relaxed_model.program.fix_columns(np.append(chosen, low), np.append(chosen, high))
        found = self._relaxed_model.solve()
        if found.values is None or found.status != "optimal":
            return None
        return self._oracle.fit_values(chosen, found.values[p:])

    @cached_property
    def _relaxed_ends(self) -> tuple[Array, Array]:
        return self.selection.scaled.low, self.selection.scaled.high

    @cached_property
    def _relaxed_model(self) -> SelectionModel:
        return _with_costs(self.selection, is_relaxed=True)

    @cached_property
    def _integer_model(self) -> SelectionModel:
        model = _with_costs(self.selection, is_relaxed=False)
        model.program.set_option("mip_max_nodes", self._oracle.settings.nodes)
        return model


def _with_costs(selection: Selection, *, is_relaxed: bool) -> SelectionModel:
    """S in HiGHS with the costs of the extra variables alone, the largest of size 1."""
    model = selection_model(selection, relaxed=is_relaxed, presolve=not is_relaxed)
    cost = selection.rows.extra.cost * model.columns
    model.program.set_costs(cost / float(np.abs(cost).max()), selection.n_features)
    return model


def cost_above(cost: Array, values: Array) -> float:
    """d'z (e,), (e,), rounded up."""
    return rounded_up(sum_exactly(values, cost))


def size_of(cost: Array, values: Array) -> float:
    """Σ |d_k z_k|, but for rounding."""
    return float(np.abs(cost) @ np.abs(values)) * (1.0 + 4.0 * (cost.size + 1) * U)


@in_own_thread
def refuse_endless(selection: Selection) -> None:
    """Refuse costs by which the extra variables have no cheapest values: d'z falls along a ray of the rows.

    Raises
    ------
    RowError
        With the names of the variables that move along it.
    """
    rows, part = selection.rows, selection.scaled
    extra = rows.extra
    cost = extra.cost * part.columns
    cost = cost / float(np.abs(cost).max())
    program = highs.HighsModel()
    low, high = extra.box
    program.add_columns(np.where(np.isfinite(low), 0.0, -1.0), np.where(np.isfinite(high), 0.0, 1.0))
    program.set_costs(cost)
    matrix = part.matrix[:, selection.n_features :].tocsr()
    program.add_rows(
        np.where(np.isfinite(rows.lb), 0.0, -highs.highs_infinity()),
        np.where(np.isfinite(rows.ub), 0.0, highs.highs_infinity()),
        matrix,
    )
    found = highs.solve(program)
    if found.values is None or not float(cost @ found.values) < -FALLS:
        return
    moving = [name for name, step in zip(extra.names, found.values.tolist(), strict=True) if abs(step) > FALLS]
    raise RowError(
        f"the costs of {', '.join(map(repr, moving))} are unbounded below: nothing ends how much is saved; give the "
        "variable the end that is missing, or another cost"
    )
