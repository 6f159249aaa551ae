"""The tree of `branch` as arrays, and back: what a limit stopped goes on where it was."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.drivers.earlier import Earlier
from mipfs.drivers.tree import Tree
from mipfs.drivers.tree_proof import Node
from mipfs.errors import UsageError
from mipfs.inner.boolean_node import Warm
from mipfs.problem import Problem
from mipfs.proof import saved as proofs

Arrays = dict[str, npt.NDArray[Any]]

TOTALS = ("floor", "closed_at", "n_nodes", "steps", "stalled", "rescued", "rounded", "loss")


def why_none(problem: Problem, options: Any) -> str:
    """Why a run of `branch` has no state that can be kept; empty where it has one."""
    for name in ("pool_gap", "pool_size", "active", "validation"):
        if getattr(options, name, None) is not None:
            return f"checkpoint and resume do not go together with {name}; leave one of them out"
    if problem.rows is not None and problem.rows.extra.integer.any():
        return "checkpoint and resume take no whole extra variables with driver 'branch'; driver 'gbd' does"
    if getattr(options, "nodes", "newton") != "newton" or not problem.data.block().is_stored:
        return "checkpoint and resume take nodes = 'newton' and columns that are stored"
    return ""


def saved(tree: Tree, earlier: Earlier | None = None, taken: Sequence[Node] = ()) -> Arrays:
    """Everything that the tree needs to go on.

    Parameters
    ----------
    tree : Tree
    earlier : Earlier, optional, the tree that it began anew after
    taken : nodes that are being explored, and count as open
    """
    nodes = [*taken, *tree.open()]
    alive = tree.relaxation.alive
    n_rows = tree.relaxation.propagation.count
    warm = [node.warm for node in nodes]
    weights = [np.flatnonzero(one.w) for one in warm]
    kept: Arrays = {
        "tree_totals": np.array([getattr(tree, name) for name in TOTALS], dtype=float),
        "tree_alive": alive,
        "node_bound": np.array([node.bound for node in nodes], dtype=float),
        "node_place": np.array([[node.place, node.dual] for node in nodes], dtype=np.int64).reshape(-1, 2),
        "node_states": np.array([node.states for node in nodes], dtype=np.int8).reshape(len(nodes), alive.size),
        "warm_count": np.array([ids.size for ids in weights], dtype=np.int64),
        "warm_ids": np.concatenate([*weights, np.empty(0, dtype=np.int64)]).astype(np.int32),
        "warm_w": np.concatenate(
            [*(one.w[ids] for one, ids in zip(warm, weights, strict=True)), np.empty(0, np.float32)]
        ),
        "warm_b": np.array([[one.b, one.rho] for one in warm], dtype=float).reshape(-1, 2),
        "node_prices": np.array([node.y for node in nodes], dtype=float).reshape(len(nodes), n_rows),
        "node_age": np.array([node.age for node in nodes], dtype=np.int64),
        "node_anew": np.array([node.anew for node in nodes], dtype=np.bool_),
        "tree_lost": np.array(tree.lost),
        "tree_kept": np.array(tree.run.options.certificate),
    }
    return kept | proofs.saved(tree.proof) | ({} if earlier is None else earlier.kept)


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
        setattr(tree, name, value if name in ("floor", "closed_at", "loss") else int(value))
    proofs.restored(tree.proof, arrays)
    alive = arrays["tree_alive"]
    tree.narrow(alive)
    sizes = alive.size, tree.relaxation.propagation.count
    if (*arrays["node_states"].shape[1:], *arrays["node_prices"].shape[1:]) != sizes:
        raise ValueError("nodes of another size")
    proofs.check_open(tree.proof, arrays["node_place"][:, 0].tolist())
    if np.any(arrays["node_place"][:, 1] >= len(tree.proof.duals)):
        raise ValueError("a node has a dual vector that is none")
    tree.lost = bool(arrays["tree_lost"])
    ends = np.cumsum(arrays["warm_count"])
    for k, (bound, place, states) in enumerate(
        zip(arrays["node_bound"].tolist(), arrays["node_place"].tolist(), arrays["node_states"], strict=True)
    ):
        part = slice(ends[k] - arrays["warm_count"][k], ends[k])
        w = np.zeros(states.size, dtype=np.float32)
        w[arrays["warm_ids"][part]] = arrays["warm_w"][part]
        warm = Warm(w, *arrays["warm_b"][k].tolist())
        y = arrays["node_prices"][k].copy()
        age = int(arrays["node_age"][k])
        anew = bool(arrays["node_anew"][k])
        tree.push(Node(bound, place[0], place[1], states.copy(), warm, y=y, age=age, anew=anew))
