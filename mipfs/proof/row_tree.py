"""Branch-and-bound on min cost'σ + d'z over S, kept in a proof: LPs over the rows, every leaf with its multipliers.

It splits on features first, then on extra variables that are whole numbers: that a row like x1 + x2 + x3 = 2 z leaves
no selection is shown by z ≤ 1 and z ≥ 2. What no such split shows, as variables without bounds have no end of values, a
combination of rows shows that no whole numbers satisfy (`mipfs.selection.lattice`).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np

from mipfs.plumbing.arrays import Array, Mask
from mipfs.plumbing.own_threads import in_own_thread
from mipfs.proof.multipliers import broken_row, cancel_multipliers, farkas_multipliers, lagrangian_bound_below
from mipfs.proof.proof import Proof
from mipfs.selection.model import SelectionModel, selection_model
from mipfs.selection.selection import Selection

Box = tuple[Array, Array]

MOST_LEAVES = 2000
"""Leaves at most to certify one inner minimum over rows."""
WHOLE_DISTANCE = 1e-6
"""Distance from a whole number up to which a relaxed σ_j or extra variable counts as one."""


@in_own_thread
def over_rows(
    proof: Proof,
    root: int,
    box: Box,
    dual: int,
    selection: Selection,
    cost: Array,
    wanted: float,
    must_stop: Callable[[], bool] = bool,
    *,
    is_empty: bool = False,
) -> float:
    """Close an open node of the proof; the bound on cost'σ + d'z that its leaves reach, inf when no selection is in it.

    Parameters
    ----------
    proof : Proof
    root : int, the node
    box : bounds (p,), (p,) of σ there
    dual : int, the dual vector of all leaves
    selection : Selection
    cost : (p,)
    wanted : float
        A node whose bound reaches it is closed; so are all after `MOST_LEAVES` leaves, or where floating point ends.
    must_stop : callable
        Once it says so, what is open is closed as it is.
    is_empty : bool
        Whether all is given up with the first leaf that is not refuted: the extra variables cost nothing then.
    """
    own = selection.rows.extra.cost * (0.0 if is_empty else 1.0)
    scale = max(float(np.abs(cost).max(initial=0.0)), float(np.abs(own).max(initial=0.0))) or 1.0
    first = int(selection.M is not None)
    most = proof.n_nodes
    oracle = selection.oracle()
    model = selection_model(selection, relaxed=True, presolve=False)
    model.program.set_costs(np.append(cost, own * model.columns) / scale)
    least = math.inf
    stack = [(root, *box, selection)]
    while stack:
        node, low, high, part = stack.pop()
        if must_stop():
            proof.close(node, dual)
            least = min(least, lagrangian_bound_below(part, np.zeros(len(part.rows)), low, high, cost, is_ray=is_empty))
            continue
        if _try_close(proof, node, selection, part, low, high):
            continue
        model.program.fix_columns(*_column_bounds(model, selection, part, low, high))
        solution = model.solve()
        y, sigma, extra = np.zeros(len(part.rows)), 0.5 * (low + high), np.zeros(0)
        if solution.status == "infeasible":
            ray = farkas_multipliers(model, part, low, high)
            if ray is not None:
                proof.refute(node, ray)
                continue
        elif solution.values is not None and solution.status == "optimal":
            y, sigma = model.multipliers()[first:] * scale, np.clip(solution.values[: cost.size], low, high)
            extra = solution.values[cost.size : cost.size + len(part.rows.extra)]
        multipliers = cancel_multipliers(part, y, is_ray=is_empty)
        multipliers = np.zeros(y.size) if multipliers is None else multipliers
        bound = lagrangian_bound_below(part, multipliers, low, high, cost, is_ray=is_empty)
        j, k = _choose_split(selection, part, low, high, sigma, extra)
        if bound >= wanted or proof.n_nodes >= most + 2 * MOST_LEAVES:
            j = k = -1
        elif (
            k < 0 <= j
            and _integrality_distance(low, high, sigma).max() <= WHOLE_DISTANCE
            and oracle.surely_contains(sigma > 0.5)
        ):
            j = -1
        if k >= 0:
            value = math.floor(extra[k])
            left, right = proof.split_whole(node, k, value)
            stack += [
                (left, low, high, _selection_within(part, k, ub=value)),
                (right, low, high, _selection_within(part, k, lb=value + 1)),
            ]
        elif j >= 0:
            for value, child in enumerate(proof.split(node, j)):
                ends = low.copy(), high.copy()
                ends[0][j] = ends[1][j] = value
                stack.append((child, *ends, part))
        else:
            proof.close(node, dual, multipliers)
            least = min(least, bound)
        if is_empty and least < math.inf:
            return least
    return least


def least_cost(selection: Selection, sigma: Mask) -> float:
    """A lower bound on what the extra variables cost beside a selection (p,) of S, as such leaves show it."""
    low = np.asarray(sigma, dtype=bool).astype(float)
    return over_rows(Proof(0, low.size), 0, (low, low), -1, selection, np.zeros(low.size), math.inf)


def _try_close(proof: Proof, node: int, selection: Selection, part: Selection, low: Array, high: Array) -> bool:
    """Close a node that a single row, the cardinality or whole numbers rule out, and whether one does."""
    ray = broken_row(part, low, high)
    if ray is not None or part.exceeds(low):
        proof.refute(node, ray)
        return True
    is_tried = node == proof.root or selection.whole_numbers.is_likely_to or bool(np.all(low == high))
    combination = selection.whole_numbers.refutation(*part.box(low, high)) if is_tried else None
    if combination is not None:
        proof.rule_out(node, combination)
    return combination is not None


def _choose_split(
    selection: Selection, part: Selection, low: Array, high: Array, sigma: Array, extra: Array
) -> tuple[int, int]:
    """The feature or else the extra variable that a node is split on, -1 for none: what its LP leaves undecided first.

    Splits on a variable without ends have no end: features beside it go before.
    """
    undecided = _integrality_distance(low, high, sigma)
    j, k = int(np.argmax(undecided)), _most_fractional_extra(part, extra)
    if undecided[j] > WHOLE_DISTANCE:
        return j, -1
    if k >= 0 and not all(math.isfinite(end[k]) for end in part.rows.extra.box):
        atom = selection.whole_numbers.undecided(*part.box(low, high))
        j, k = (atom, -1) if atom >= 0 else (j, k)
    return (-1, k) if k >= 0 else (j if undecided[j] >= 0.0 else -1, -1)


def _integrality_distance(low: Array, high: Array, sigma: Array) -> Array:
    """How far σ is from a whole number where it is not fixed; -1 elsewhere."""
    return np.where(low < high, np.minimum(sigma, 1.0 - sigma), -1.0)


def try_refute(
    proof: Proof, root: int, box: Box, dual: int, selection: Selection, must_stop: Callable[[], bool] = bool
) -> bool:
    """Close an open node of the proof, if that shows that it holds no selection, and whether it does; or it is open."""
    count, cost = proof.n_nodes, np.zeros(selection.n_features)
    if over_rows(proof, root, box, dual, selection, cost, math.inf, must_stop, is_empty=True) == math.inf:
        return True
    proof.reopen(root, count)
    return False


def _column_bounds(model: SelectionModel, selection: Selection, part: Selection, low: Array, high: Array) -> Box:
    """Bounds of the model's columns: those of σ, and of the extra variables what `part` leaves of them."""
    scaled = selection.scaled
    whole = part.rows.extra.integer
    ends = part.rows.extra.box
    return (
        np.concatenate([low, np.where(whole, ends[0] / model.columns, scaled.low)]),
        np.concatenate([high, np.where(whole, ends[1] / model.columns, scaled.high)]),
    )


def _most_fractional_extra(selection: Selection, extra: Array) -> int:
    """The extra variable that should be a whole number and is farthest from one; -1 without one."""
    if not extra.size:
        return -1
    off = np.where(selection.rows.extra.integer & (np.abs(extra) < 2.0**52), np.abs(extra - np.rint(extra)), 0.0)
    return int(np.argmax(off)) if off.max() > WHOLE_DISTANCE else -1


def _selection_within(selection: Selection, k: int, lb: float = -math.inf, ub: float = math.inf) -> Selection:
    """The selections of the set whose k-th extra variable lies between two ends, too."""
    rows = selection.rows
    at = np.arange(len(selection.rows.extra)) == k
    low, high = rows.extra.box
    low, high = np.where(at, np.maximum(low, lb), low), np.where(at, np.minimum(high, ub), high)
    extra = dataclasses.replace(rows.extra, lb=low, ub=high)
    return dataclasses.replace(selection, rows=dataclasses.replace(rows, extra=extra))
