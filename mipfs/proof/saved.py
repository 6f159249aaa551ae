"""A proof that still grows, as arrays, and back: for the state of a run that is to go on."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.plumbing.arrays import Arrays, Integers
from mipfs.proof.cuts import CutPool, cut_of_dual
from mipfs.proof.duals import DualStore
from mipfs.proof.proof import OPEN, Combination, Multipliers, Proof, stored_combinations, stored_multipliers
from mipfs.readers.duals import WIDEST

FIELDS = ("_feature", "_children", "_dual", "_multiplier", "_value")


def save_proof(proof: Proof) -> Arrays:
    """The tree with its open nodes, all dual vectors and multipliers."""
    assert isinstance(proof.duals, DualStore)
    kept = {f"proof{name}": getattr(proof, name)[: proof.n_nodes].copy() for name in FIELDS}
    kept["proof_whole"] = np.array(sorted(proof._whole.items()), dtype=np.int64).reshape(-1, 2)
    width = max((len(y) for y in proof._multipliers), default=0)
    kept["proof_multipliers"] = stored_multipliers(proof._multipliers, width)
    every = np.arange(len(proof._combinations), dtype=np.int32)
    combined = stored_combinations(proof._combinations, every >= 0, every, every.copy())
    kept |= {f"proof_{name}": array for name, array in combined.items()}
    return kept | {f"proof_{name}": array for name, array in proof.duals.arrays().items()}


def restore_proof(proof: Proof, arrays: Arrays) -> None:
    """Fill an empty proof of the same problem with what `save_proof` kept."""
    assert isinstance(proof.duals, DualStore)
    count = arrays["proof_feature"].shape[:1]
    if any(arrays[f"proof{name}"].shape != (*count, *getattr(proof, name).shape[1:]) for name in FIELDS):
        raise ValueError("the nodes of the proof have other fields")
    for name in FIELDS:
        setattr(proof, name, arrays[f"proof{name}"].copy())
    proof._size = proof._feature.size
    proof._whole = dict(arrays["proof_whole"].tolist())
    proof.hold(multipliers_of(arrays["proof_multipliers"]))
    proof._combinations = _combinations_of(arrays)
    restored_duals(proof.duals, {name.removeprefix("proof_"): array for name, array in arrays.items()})


def proof_without_tree(proof: Proof, n_open: int, duals: Integers) -> Proof:
    """What goes on without a tree: open nodes 0, 1, …, and these dual vectors, in that order."""
    assert isinstance(proof.duals, DualStore)
    other = Proof(proof.duals.n_samples, proof.n_features, duals=proof.duals.part(duals))
    other._append_nodes(max(0, n_open - 1))
    return other


def check_open(proof: Proof, places: Integers | Sequence[int]) -> None:
    """Refuse open nodes that the restored tree does not have, or has closed, or that stand twice.

    Raises
    ------
    ValueError
    """
    nodes = np.asarray(places, dtype=np.int64)
    if np.any((nodes < 0) | (nodes >= proof.n_nodes)) or np.unique(nodes).size != nodes.size:
        raise ValueError("open nodes that are none")
    if np.any((proof._feature[nodes] >= 0) | (proof._dual[nodes] != OPEN)):
        raise ValueError("nodes are not open")


def restored_duals(duals: DualStore, arrays: Arrays) -> None:
    """Fill an empty store with what `DualStore.arrays` kept.

    Raises
    ------
    ValueError
        These are no vectors, one behind the other.
    """
    assert not len(duals)
    start, held = arrays["dual_start"], arrays["dual_bytes"]
    fields = [arrays[name] for name in ("dual_q", "dual_level", "dual_width")]
    is_whole = start.ndim == 1 and start.size > 0 and all(one.shape == (start.size - 1,) for one in fields)
    if not is_whole or start[0] != 0 or np.any(np.diff(start) < 0) or held.shape != (int(start[-1]),):
        raise ValueError("the dual vectors do not fill their bytes")
    duals.extend(held, start[1:], *fields)


def saved_cuts(pool: CutPool) -> Arrays:
    """The dual vectors of the cuts of a pool."""
    if not len(pool):
        return DualStore(pool.problem.dual_size).arrays()
    assert isinstance(pool.duals, DualStore)
    return pool.duals.part(np.array(pool.dual_of, dtype=np.int64)).arrays()


def restored_cuts(pool: CutPool, arrays: Arrays) -> None:
    """Add to a pool of the same problem the cuts that `saved_cuts` kept."""
    duals = DualStore(pool.problem.dual_size)
    restored_duals(duals, arrays)
    for index in range(len(duals)):
        dual = duals.get(index)
        if not 0 <= int(dual[0].min(initial=0)) <= int(dual[0].max(initial=0)) <= WIDEST:
            raise ValueError("a dual vector has numbers that none has")
        pool.add(cut_of_dual(pool.problem, dual))


def _combinations_of(arrays: Arrays) -> list[Combination]:
    """Combinations of rows as the proof holds them."""
    if "proof_integer_start" not in arrays:
        return []
    start, row = arrays["proof_integer_start"].tolist(), arrays["proof_integer_row"].tolist()
    pairs = [(r, Fraction(text.decode())) for r, text in zip(row, arrays["proof_integer_value"].tolist(), strict=True)]
    return [tuple(pairs[first:last]) for first, last in itertools.pairwise(start)]


def multipliers_of(stored: npt.NDArray[Any]) -> list[Multipliers]:
    """Multipliers as the proof holds them: floats, or rational numbers."""
    if stored.dtype.kind == "f":
        return list(stored)
    rows: Sequence[Sequence[bytes]] = stored.tolist()
    return [tuple(Fraction(text.decode()) for text in row) for row in rows]
