"""The tree of `branch` as arrays, and back: what a limit stopped goes on where it was."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mipfs.drivers.earlier import EarlierTree, split_by_prefix
from mipfs.drivers.pieces import one_after_the_other
from mipfs.drivers.tree import SearchTree
from mipfs.drivers.waiting import of_arrays
from mipfs.errors import UsageError
from mipfs.inner.completions import are_few
from mipfs.inner.unit import NOTHING, ColumnOrder, ExplorationRules, NodeUnit
from mipfs.kernels.structures import LIMITS
from mipfs.kernels.subtree import LEAF
from mipfs.kernels.units import FirstDuals
from mipfs.plumbing.arrays import Array, Arrays
from mipfs.problem import Problem
from mipfs.proof import saved as proofs
from mipfs.run.run import OF_SUMS
from mipfs.selection.derived import derived_bytes, derived_of

NAMES = "tree_", "node_", "proof"
"""How names of arrays begin that are the tree's."""
ABOVE = "above_"
"""How names begin of the tree above a level, which goes on when all is proven up to that."""
TOTALS = (
    "floor",
    "closed_at",
    "n_nodes",
    "steps",
    "stalled",
    "rescued",
    "rounding",
    "enumerated",
    "svms",
    "svm_steps",
    "pace",
    "loss",
    "level",
)
REAL = "floor", "closed_at", "pace", "loss", "level"
"""Those that are no whole numbers."""


def why_none(problem: Problem, options: Any) -> str:
    """Why a run of `branch` has no state that can be kept; empty where it has one."""
    if problem.is_joint:
        return OF_SUMS
    for name in ("active", "validation"):
        if getattr(options, name, None) is not None:
            return f"checkpoint and resume do not go together with {name}; leave one of them out"
    if problem.rows is not None and problem.rows.extra.integer.any():
        return "checkpoint and resume take no whole extra variables with driver 'branch'; driver 'gbd' does"
    if getattr(options, "nodes", "newton") != "newton" or not problem.data.block().is_stored:
        return "checkpoint and resume take nodes = 'newton' and columns that are stored"
    return ""


def of_tree(tree: SearchTree, taken: Sequence[NodeUnit] = ()) -> Arrays:
    """The open nodes and the proof of a tree, and what it has counted; units that are `taken` have open nodes."""
    apart = [unit.nodes for unit in taken if not unit.goes_on] + tree.packed_leaves()
    return {
        "tree_totals": np.array([getattr(tree, name) for name in TOTALS], dtype=float),
        "tree_alive": tree.relaxation.alive,
        "tree_lost": np.array(tree.lost),
        "tree_kept": np.array(tree.run.options.certificate),
        "tree_listed": np.array(tree.run.wants_all),
        **tree.waiting.arrays(apart, tree.relaxation.alive.size),
        "tree_prices": tree.prices.array(),
        "tree_memory": tree.memory,
        "tree_derived": derived_bytes(tree.derived),
        **proofs.save_proof(tree.proof),
    }


def save_tree(tree: SearchTree, earlier: EarlierTree | None = None, taken: Sequence[NodeUnit] = ()) -> Arrays:
    """Everything that the tree needs to go on.

    Parameters
    ----------
    tree : SearchTree
    earlier : EarlierTree, optional, the tree that it began anew after
    taken : units that are being explored, whose nodes count as open; of a run at rest, `handed_out` finds them again
    """
    out = taken if tree.run.is_exact else []
    limits = one_after_the_other([np.empty(0, LIMITS), *(unit.limits for unit in out if not unit.goes_on)])
    kept = of_tree(tree, taken)
    kept |= {"tree_units": np.array([0 if unit.goes_on else len(unit) for unit in out], dtype=np.int64)}
    kept |= {"tree_turns": np.array([_unit_columns(unit) for unit in out], dtype=np.int64).reshape(len(out), 2)}
    told = next((unit.told for unit in out if not unit.is_enumerated), tree.told)
    kept |= {"tree_told": told.memory, "tree_told_rows": np.array(len(told.derived), dtype=np.int64)}
    kept |= {"tree_limits": limits.view(np.float64).reshape(limits.size, len(LIMITS.names or ()))}
    kept |= {f"{ABOVE}{name}": array for name, array in tree.above.items()}
    return kept | ({} if earlier is None else earlier.kept)


def _unit_columns(unit: NodeUnit) -> tuple[int, int]:
    """The columns of a unit's turn; (0, −1) where its nodes are enumerated as a whole, (0, 0) where they are not."""
    return (0, -int(unit.is_enumerated)) if unit.turn is None else unit.turn[:2]


def handed_out(tree: SearchTree, arrays: Arrays) -> list[NodeUnit]:
    """The units that were being explored where a run at rest left its tree, which are explored as they were to be."""
    sizes, turns, limits = arrays["tree_units"], arrays["tree_turns"], arrays["tree_limits"]
    if sizes.ndim != 1 or sizes.dtype != np.int64 or turns.shape != (sizes.size, 2) or turns.dtype != np.int64:
        raise ValueError("units of another kind")
    goes_on = turns[:, 0] > 0
    count = int(sizes.sum())
    of_limits = (
        limits.shape == (count, len(LIMITS.names or ())) and limits.dtype == np.float64 and not np.isnan(limits).any()
    )
    if np.any((sizes < 1) != goes_on) or np.any(sizes < 0) or count > len(tree.waiting) or not of_limits:
        raise ValueError("units of other nodes")
    told = _rules_of_units(tree, arrays["tree_told"], int(arrays["tree_told_rows"]))
    nodes = tree.waiting.take(count, tree.relaxation.alive.size)
    whole = iter(tree.cut(nodes, sizes[~goes_on], limits.view(LIMITS).ravel(), told))
    units = list[NodeUnit]()
    for begin, end in turns.tolist():
        unit = units[-1] if begin > 0 and units else next(whole)
        units.append(unit if end == 0 else _enumeration_unit(tree, unit, begin, end))
    return units


def _enumeration_unit(tree: SearchTree, unit: NodeUnit, begin: int, end: int) -> NodeUnit:
    """A unit as `mipfs.drivers.anchors` makes it, of nodes whose places it may enumerate."""
    M, size = tree.run.problem.M, tree.relaxation.alive.size
    after = begin == 0 if unit.turn is None else unit.turn.end == begin
    fits = end == -1 or (after and begin < end <= size and len(unit) == 1)
    few = are_few(tree.run.problem, tree.run.settings.completions)
    if M is None or not few or not fits or np.any(unit.nodes.heads["inside"] != M - (1 if end < 0 else 2)):
        raise ValueError("nodes that are not enumerated")
    prices = np.zeros((len(unit), tree.prices.rows))
    turn = None if end < 0 else ColumnOrder(begin, end, begin == 0)
    return NodeUnit(unit.nodes, FirstDuals.none(), unit.limits, prices, True, turn)


def _rules_of_units(tree: SearchTree, memory: Array, rows: int) -> ExplorationRules:
    """What units were told that were being explored."""
    if memory.shape != tree.memory.shape or memory.dtype != np.float64 or not 0 <= rows <= len(tree.derived):
        raise ValueError("units that were told something else")
    return ExplorationRules(memory, tree.derived[:rows]) if memory.size or rows else NOTHING


def check_kept(arrays: Arrays, is_wanted: bool) -> None:
    """Refuse to go on to a certificate where the nodes that are done were not kept.

    Raises
    ------
    UsageError
    """
    if is_wanted and not bool(arrays["tree_kept"]):
        raise UsageError(
            "resume: the run was one without a certificate (certificate = False, --no-certificate), and what it has "
            "proven is not in its state; go on without one, or begin the run anew"
        )


def restore_tree(tree: SearchTree, arrays: Arrays) -> None:
    """Fill a tree that was not planted with what `save_tree` kept."""
    for name, value in zip(TOTALS, arrays["tree_totals"].tolist(), strict=True):
        setattr(tree, name, value if name in REAL else int(value))
    proofs.restore_proof(tree.proof, arrays)
    alive = arrays["tree_alive"]
    tree.narrow(alive)
    tree.lost = bool(arrays["tree_lost"])
    derived, memory = derived_of(arrays["tree_derived"]), arrays["tree_memory"]
    # Where a tree goes on above a level it holds these derived rows already, and those found since.
    if len(derived) > len(tree.derived):
        tree.separation.know(derived[len(tree.derived) :])
        tree.strengthen(derived[len(tree.derived) :])
    if memory.shape != tree.memory.shape or memory.dtype != np.float64 or not np.isfinite(memory).all():
        raise ValueError("what another branching rule has learnt")
    tree.remember(memory)
    tree.proof.widen(tree.n_rows)
    prices = arrays["tree_prices"]
    if prices.dtype != np.float64 or prices.shape[1:] != (tree.n_rows - len(tree.derived) + len(derived),):
        raise ValueError("multipliers of other rows")
    tree.prices.add_all(prices)
    nodes = of_arrays(arrays, alive.size)
    heads = nodes.heads
    proofs.check_open(tree.proof, heads["place"])
    if np.any((heads["dual"] < 0) | (heads["dual"] >= len(tree.proof.duals))):
        raise ValueError("a node has a dual vector that is none")
    if np.any((heads["prices"] < -1) | (heads["prices"] >= len(tree.prices))):
        raise ValueError("a node has multipliers that are none")
    is_leaf = heads["why"] == LEAF
    tree.waiting.extend(nodes._replace(heads=heads[~is_leaf]), in_order=True)
    tree.take_leaves(nodes._replace(heads=heads[is_leaf]))
    tree.above = split_by_prefix(arrays, ABOVE)[0]


def go_on_above_level(tree: SearchTree) -> None:
    """Go on above the level up to which all was proven, where the tree stood when that began; it counts on."""
    counted = {name: getattr(tree, name) for name in TOTALS[2:]}
    arrays = tree.above
    tree.begin_anew()
    restore_tree(tree, arrays)
    for name, total in counted.items():
        setattr(tree, name, total)
    tree.level, tree.above = math.inf, {}
