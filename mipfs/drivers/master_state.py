"""The tree of `gbd` as arrays, and back: what a limit stopped goes on where it was.

The cuts come first (`mipfs.proof.saved`): nodes and the proof name them by position.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mipfs.drivers.earlier import EarlierTree, better, is_asked_for_more, own_arrays, split_by_prefix
from mipfs.drivers.master import Master
from mipfs.drivers.master_node import MasterNode
from mipfs.plumbing.arrays import Arrays
from mipfs.problem import Problem
from mipfs.proof import saved as proofs
from mipfs.proof.cuts import CutPool
from mipfs.proof.evidence import Evidence, EvidenceTree
from mipfs.proof.proof import Multipliers, stored_multipliers
from mipfs.run.heuristics import Supports
from mipfs.run.run import OF_SUMS, Run, refusing_broken_state

TOTALS = ("floor", "closed_at", "n_nodes", "n_lps")


def why_none(problem: Problem, options: Any) -> str:
    """Why a run of `gbd` has no state that can be kept; empty where it has one."""
    if problem.is_joint:
        return OF_SUMS
    if options.validation is not None:
        return "checkpoint and resume do not go together with validation; leave one of them out"
    return ""


def initial_state(pool: CutPool) -> Arrays:
    """What the search needs to begin, with the cuts that it was given."""
    return {**proofs.saved_cuts(pool), "master_begun": np.array(True)}


def is_at_its_beginning(run: Run) -> bool:
    """Whether a run has nothing but what `initial_state` kept."""
    return run.resume is None or "master_begun" in run.resume.arrays


def save_master(master: Master, supports: Supports, rounded: int, earlier: EarlierTree | None = None) -> Arrays:
    """Everything that the search needs to go on.

    Parameters
    ----------
    master : Master with a record
    supports : Supports
    rounded : how often the relaxed σ was rounded in the tree
    earlier : EarlierTree, optional, the tree that it began anew after
    """
    record = master.record
    nodes = master.open_nodes()
    assert record is not None
    used = dict.fromkeys([*record.used, *(node.evidence for node in nodes if node.evidence is not None)])
    number = {evidence: k for k, evidence in enumerate(used)}
    rows, idle = master.rows
    totals = [master.scale, *(getattr(master, name) for name in TOTALS), rounded]
    return {
        **proofs.saved_cuts(master.pool),
        **proofs.save_proof(record.tree),
        **supports.arrays(),
        **_of_evidence([*used]),
        **_of_nodes(nodes, number),
        **({} if earlier is None else earlier.kept),
        "master_totals": np.array(totals, dtype=float),
        "master_used": np.array([len(record.used), record.lost]),
        "master_rows": np.array([rows, idle]),
        "master_columns_basis": master.basis[0],
        "master_rows_basis": master.basis[1],
        **{f"sub_{name}": array for name, array in supports.subproblem.kept()().items()},
        "master_waiting": np.array(master.waiting),
    }


@refusing_broken_state
def resume_master(run: Run, supports: Supports, pool: CutPool) -> tuple[Master | None, int, EarlierTree | None]:
    """The master that a run goes on with, and how often σ was rounded; an earlier tree that proves more as yet.

    No master where the run begins its tree, anew or at last: a MILP per iteration comes before.
    """
    if run.resume is None or "master_totals" not in run.resume.arrays:
        return None, -1, None

    def proof_of(arrays: Arrays) -> Any:
        master = _restore_master(run, pool, arrays)[0]
        assert master.record is not None
        return master.record.finish(master.open_nodes())

    arrays, earlier = own_arrays(run.resume.arrays), EarlierTree.among(run.resume.arrays, proof_of)
    supports.take_up(arrays)
    supports.subproblem.take_up(split_by_prefix(arrays, "sub_")[0])
    master, rounded = _restore_master(run, pool, arrays)
    bound = min(master.bound, run.objective)
    run.raise_bound(bound if earlier is None else max(bound, earlier.bound))
    if not is_asked_for_more(supports.cutoff, master.closed_at):
        return master, rounded, earlier
    cuts = {name: array for name, array in arrays.items() if not name.startswith(("dual_", "found_", "beaten_"))}
    return None, -1, better(earlier, EarlierTree(bound, proof_of(arrays), cuts))


def _restore_master(run: Run, pool: CutPool, arrays: Arrays) -> tuple[Master, int]:
    """The master that `save_master` kept, over the cuts that are in the pool, and how often σ was rounded."""
    problem = run.problem
    record = EvidenceTree(run.problem, pool, lambda: run.must_stop)
    proofs.restore_proof(record.tree, arrays)
    evidence = _read_evidence(arrays)
    count, lost = arrays["master_used"].tolist()
    record.used = evidence[:count]
    record.lost = bool(lost)
    for place, one in enumerate(record.used):
        one.place = place
    scale, *totals, rounded = arrays["master_totals"].tolist()
    inner = np.zeros(problem.atoms.count)
    settings = run.settings.master
    master = Master(problem.selection, problem.penalty, pool, scale, inner, record=record, settings=settings)
    current, following = arrays["master_waiting"].tolist()
    rows, idle = arrays["master_rows"]
    _check_nodes(arrays, problem.atoms.count)
    proofs.check_open(record.tree, arrays["node_numbers"][:, 3].tolist())
    basis = arrays["master_columns_basis"], arrays["master_rows_basis"]
    master.take_up(_read_nodes(arrays, evidence), (current, following), (rows, idle), basis)
    for name, value in zip(TOTALS, totals, strict=True):
        setattr(master, name, int(value) if name.startswith("n_") else value)
    return master, int(rounded)


def _check_nodes(arrays: Arrays, count: int) -> None:
    """Refuse open nodes that are not of `count` atoms.

    Raises
    ------
    ValueError
    """
    is_other = arrays["node_ends"].size and arrays["node_ends"].shape[1:] != (2, count)
    points = (arrays[name] for name in ("node_inner", "node_weights"))
    if is_other or any(one.size and one.shape[1:] != (count,) for one in points):
        raise ValueError("nodes of another number of atoms")
    if not all(np.isfinite(arrays[name]).all() for name in ("node_inner", "node_weights")):
        raise ValueError("a node has a point that is not finite")
    if any(np.isnan(arrays[name]).any() for name in ("node_values", "master_totals")):
        raise ValueError("a node has a bound that is no number")


def _of_evidence(used: Sequence[Evidence]) -> Arrays:
    """What bounds rest on: cuts, shares and multipliers one after the other."""
    shown: list[Multipliers] = [one.multipliers for one in used if one.multipliers is not None]
    return {
        "evidence_count": np.array([one.cuts.size for one in used], dtype=np.int64),
        "evidence_cuts": np.concatenate([np.empty(0, dtype=np.int64), *(one.cuts for one in used)]),
        "evidence_share": np.concatenate([np.empty(0), *(one.share for one in used)]),
        "evidence_shown": np.array([one.multipliers is not None for one in used], dtype=np.bool_),
        "evidence_multipliers": stored_multipliers(shown, max((len(y) for y in shown), default=0)),
    }


def _read_evidence(arrays: Arrays) -> list[Evidence]:
    ends = np.cumsum(arrays["evidence_count"])
    parts = (np.split(arrays[name], ends)[:-1] for name in ("evidence_cuts", "evidence_share"))
    multipliers = iter(proofs.multipliers_of(arrays["evidence_multipliers"]))
    return [
        Evidence(cuts, share, next(multipliers) if shown else None)
        for cuts, share, shown in zip(*parts, arrays["evidence_shown"].tolist(), strict=True)
    ]


def _of_nodes(nodes: Sequence[MasterNode], number: dict[Evidence, int]) -> Arrays:
    """The open nodes; of points and weights, which siblings share, every one once."""
    kept: Arrays = {
        "node_ends": np.array([[node.lb, node.ub] for node in nodes], dtype=np.int8),
        "node_values": np.array([[node.bound, node.previous, node.upper] for node in nodes], dtype=float).reshape(
            -1, 3
        ),
        "node_numbers": np.array(
            [
                [
                    node.depth,
                    node.rounds,
                    node.settled,
                    node.place,
                    -1 if node.evidence is None else number[node.evidence],
                ]
                for node in nodes
            ],
            dtype=np.int64,
        ).reshape(-1, 5),
    }
    for name in ("inner", "weights"):
        arrays = {id(array): array for array in (getattr(node, name) for node in nodes) if array.size}
        places = {key: k for k, key in enumerate(arrays)}
        kept[f"node_{name}"] = np.array([*arrays.values()], dtype=float)
        kept[f"node_{name}_at"] = np.array([places.get(id(getattr(node, name)), -1) for node in nodes], dtype=np.int64)
    return kept


def _read_nodes(arrays: Arrays, evidence: Sequence[Evidence]) -> list[MasterNode]:
    inner = [*arrays["node_inner"]]
    weights = [*arrays["node_weights"], np.empty(0)]
    return [
        MasterNode(
            bound, lb.copy(), ub.copy(), inner[of], depth, rounds, previous, upper, weights[by], bool(settled), place,
            None if shown < 0 else evidence[shown],
        )
        for (bound, previous, upper), (lb, ub), (depth, rounds, settled, place, shown), of, by in zip(
            arrays["node_values"].tolist(), arrays["node_ends"], arrays["node_numbers"].tolist(),
            arrays["node_inner_at"].tolist(), arrays["node_weights_at"].tolist(), strict=True,
        )
    ]  # fmt: skip
