"""What a result says of products of features: in the names, the scale and the columns of the user's own data."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from mipfs.atoms.implicit import ensure_one
from mipfs.atoms.pairs import Pairs
from mipfs.proof.evidence import empty_proof, no_dual
from mipfs.proof.proof import Proof
from mipfs.result.sidecar import state_rows
from mipfs.run.run import Run


def describe_pairs(run: Run) -> dict[str, Any]:
    """The fields of the `Result` of a run over `Pairs` that are about the data and the atoms.

    Columns, shift and scale are those of the features that the selected products are made of.
    """
    atoms = cast(Pairs, run.problem.atoms)
    base = atoms.base
    held = run.outcome.held
    chosen = np.empty(0, dtype=np.int64) if run.incumbent is None else run.incumbent.selected
    held = ensure_one(np.unique(chosen)) if held is None else held
    members = atoms.monomials.members(chosen)
    used = np.unique(members[members >= 0]).tolist()
    names = base.feature_names
    rows = run.problem.restricted(held).named_rows()
    return {
        "columns": {names[j]: j for j in used},
        "n_features": base.n_features,
        "scaling": {
            "kind": base.scaling,
            "shift": {names[j]: float(base.shift[j]) for j in used},
            "scale": {names[j]: float(base.scale[j]) for j in used},
        },
        "data_sha256": base.sha256,
        "rows": tuple(state_rows(rows, [atoms.names[int(g)] for g in held])["rows"]),
        "atoms": atoms.document(held),
    }


def bare_proof(run: Run) -> Proof:
    """The proof of α = 0, for a run over atoms that are searched that was stopped before it had another."""
    chosen = np.empty(0, dtype=np.int64) if run.incumbent is None else run.incumbent.selected
    held = run.outcome.held = ensure_one(np.unique(chosen))
    proof = empty_proof(run.problem, held=held)
    proof.outside = proof.duals.add(*no_dual(run.problem))
    proof.close(proof.root, proof.outside)
    proof.bound = 0.0
    return proof
