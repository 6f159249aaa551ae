"""The tree of `branch` as arrays, and back: what a limit stopped goes on where it was."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mipfs.drivers.earlier import Earlier, apart
from mipfs.drivers.pieces import one_after_the_other
from mipfs.drivers.tree import Tree
from mipfs.drivers.waiting import of_arrays
from mipfs.errors import UsageError
from mipfs.inner.unit import Unit
from mipfs.kernels.structures import LIMITS
from mipfs.plumbing.arrays import Arrays
from mipfs.problem import Problem
from mipfs.proof import saved as proofs

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
    "loss",
    "level",
)


def why_none(problem: Problem, options: Any) -> str:
    """Why a run of `branch` has no state that can be kept; empty where it has one."""
    for name in ("active", "validation"):
        if getattr(options, name, None) is not None:
            return f"checkpoint and resume do not go together with {name}; leave one of them out"
    if problem.rows is not None and problem.rows.extra.integer.any():
        return "checkpoint and resume take no whole extra variables with driver 'branch'; driver 'gbd' does"
    if getattr(options, "nodes", "newton") != "newton" or not problem.data.block().is_stored:
        return "checkpoint and resume take nodes = 'newton' and columns that are stored"
    return ""


def of_tree(tree: Tree, taken: Sequence[Unit] = ()) -> Arrays:
    """The open nodes and the proof of a tree, and what it has counted; units that are `taken` have open nodes."""
    return {
        "tree_totals": np.array([getattr(tree, name) for name in TOTALS], dtype=float),
        "tree_alive": tree.relaxation.alive,
        "tree_lost": np.array(tree.lost),
        "tree_kept": np.array(tree.run.options.certificate),
        "tree_listed": np.array(tree.run.wants_all),
        **tree.waiting.arrays([unit.nodes for unit in taken if not unit.goes_on], tree.relaxation.alive.size),
        "tree_prices": tree.prices.array(),
        **proofs.saved(tree.proof),
    }


def saved(tree: Tree, earlier: Earlier | None = None, taken: Sequence[Unit] = ()) -> Arrays:
    """Everything that the tree needs to go on.

    Parameters
    ----------
    tree : Tree
    earlier : Earlier, optional, the tree that it began anew after
    taken : units that are being explored, whose nodes count as open; of a run at rest, `handed_out` finds them again
    """
    out = taken if tree.run.is_exact else []
    limits = one_after_the_other([np.empty(0, LIMITS), *(unit.limits for unit in out)])
    kept = of_tree(tree, taken)
    kept |= {"tree_units": np.array([len(unit) for unit in out], dtype=np.int64)}
    kept |= {"tree_limits": limits.view(np.float64).reshape(limits.size, len(LIMITS.names or ()))}
    kept |= {f"{ABOVE}{name}": array for name, array in tree.above.items()}
    return kept | ({} if earlier is None else earlier.kept)


def handed_out(tree: Tree, arrays: Arrays) -> list[Unit]:
    """The units that were being explored where a run at rest left its tree, which are explored as they were to be."""
    sizes, limits = arrays["tree_units"], arrays["tree_limits"]
    count = int(sizes.sum())
    of_limits = (
        limits.shape == (count, len(LIMITS.names or ())) and limits.dtype == np.float64 and not np.isnan(limits).any()
    )
    if sizes.ndim != 1 or sizes.dtype != np.int64 or np.any(sizes < 1) or count > tree.n_open or not of_limits:
        raise ValueError("units of other nodes")
    return tree.cut(tree.waiting.take(count, tree.relaxation.alive.size), sizes, limits.view(LIMITS).ravel())


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


def restored(tree: Tree, arrays: Arrays) -> None:
    """Fill a tree that was not planted with what `saved` kept."""
    for name, value in zip(TOTALS, arrays["tree_totals"].tolist(), strict=True):
        setattr(tree, name, value if name in ("floor", "closed_at", "loss", "level") else int(value))
    proofs.restored(tree.proof, arrays)
    alive = arrays["tree_alive"]
    tree.narrow(alive)
    tree.lost = bool(arrays["tree_lost"])
    prices = arrays["tree_prices"]
    if prices.dtype != np.float64 or prices.shape[1:] != (tree.prices.rows,):
        raise ValueError("multipliers of other rows")
    tree.prices.add_all(prices)
    nodes = of_arrays(arrays, alive.size)
    heads = nodes.heads
    proofs.check_open(tree.proof, heads["place"])
    if np.any((heads["dual"] < 0) | (heads["dual"] >= len(tree.proof.duals))):
        raise ValueError("a node has a dual vector that is none")
    if np.any((heads["prices"] < -1) | (heads["prices"] >= len(tree.prices))):
        raise ValueError("a node has multipliers that are none")
    tree.waiting.extend(nodes, in_order=True)
    tree.above = apart(arrays, ABOVE)[0]


def risen(tree: Tree) -> None:
    """Go on above the level up to which all was proven, where the tree stood when that began; it counts on."""
    counted = {name: getattr(tree, name) for name in TOTALS[2:]}
    arrays = tree.above
    tree.begin_anew()
    restored(tree, arrays)
    for name, total in counted.items():
        setattr(tree, name, total)
    tree.level, tree.above = math.inf, {}
