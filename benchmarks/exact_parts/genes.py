"""Microarray data, standardised, squared hinge, no bias (as in Tan 2010), with the genes that root screening leaves."""

from __future__ import annotations

import os
from pathlib import Path

import mipfs
from exact_parts.ours import measure
from exact_parts.store import Store

SETS = ("leukemia_golub", "colon_alon", "prostate_singh")
CARDINALITIES = (2, 5, 10, 20)
LEFT = "root_free"
"""The counter of the features that root screening leaves."""


def run(
    store: Store, driver: str, sets: tuple[str, ...], M: tuple[int, ...], C: float, limit: float, proofs: Path | None
) -> None:
    """Solve every set for every M; says so and does nothing where MIPFS_DATA is unset."""
    folder = os.environ.get("MIPFS_DATA")
    if not folder:
        print("genes: skipped, MIPFS_DATA is unset (give the folder that holds the data sets)")
        return
    for name in sets:
        data = None
        for m in M:
            problem = f"{name} M={m} C={C:g}"
            key = f"{problem} | {driver}"
            line = store.get(key, limit)
            if line is None:
                if data is None:
                    data = mipfs.read(Path(folder) / name / "data.svm.gz", scale="standard")
                asked = mipfs.Problem(data, loss="squared-hinge", bias=False, M=m, C=C)
                facts = {"suite": "genes", "problem": problem, "solver": driver, "limit": limit, "asked_gap": 1e-4}
                facts |= {"set": name, "n": data.n_samples, "p": data.n_features, "M": m, "C": C}
                line = store.add(
                    key, **facts, **measure(asked, driver, limit=limit, gap=1e-4, keep=proofs, name=problem)
                )
            gap = "–" if line["gap"] is None else f"{line['gap']:.2e}"
            print(
                f"{problem:<32} {driver:<8} {line['status']:<9} gap {gap} nodes {line['nodes']} "
                f"{line['seconds']:.2f} s, {line['counters'].get(LEFT, '?')} of {line['p']} genes left at the root",
                flush=True,
            )
