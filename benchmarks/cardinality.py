"""Exact solutions under a cardinality constraint: the sets, M and C of Bomze, D'Onofrio, Palagi and Peng (2025).

    MIPFS_DATA=folder python benchmarks/cardinality.py            all that is not stored yet, and the report
    MIPFS_DATA=folder python benchmarks/cardinality.py --sets sonar --limit 600    some sets, more seconds each
    python benchmarks/cardinality.py --report                     the report alone

The hinge loss with a free intercept, columns standardised, a relative gap of 1e-4, one thread. Every result is saved
with its certificate and verified from the files. Results are stored in reports/cardinality.jsonl line by line; what is
stored is not measured again, unless it was left open in a smaller limit. The report is reports/cardinality.md.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from itertools import product
from pathlib import Path
from typing import Any

from exact_parts.markdown import table
from exact_parts.store import ROOT, Line, Store, clocks
from threadpoolctl import threadpool_limits

import mipfs
from mipfs import Problem

STORE, REPORT = ROOT / "reports" / "cardinality.jsonl", ROOT / "reports" / "cardinality.md"
SETS = ("pima", "heart_statlog", "australian", "german", "wdbc_sklearn", "ionosphere", "sonar", "colon_alon")
SIZES = (5, 10, 20)
WEIGHTS = (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3)


def key_of(name: str, M: int, C: float) -> str:
    """What a line is stored under."""
    return f"{name} M={M} C={C:g}"


def data_of(name: str) -> Any:
    """A shared set, standardised."""
    folder = os.environ.get("MIPFS_DATA")
    if folder is None:
        sys.exit("error: MIPFS_DATA is not set; it names the folder of the data sets")
    return mipfs.read(Path(folder, name, "data.svm.gz"), scale="standard")


def measured(data: Any, M: int, C: float, limit: float) -> Line:
    """Solve one problem exactly, and verify what was saved; the bound of the relaxation beside."""
    problem = Problem(data, M=M, C=C)
    relaxed = mipfs.solve(problem, "kelley", relaxation="box", gap=1e-6, time_limit=limit, refit=False).relaxed
    with clocks() as spent:
        result = mipfs.solve(problem, "branch", gap=1e-4, time_limit=limit, threads=1)
    with tempfile.TemporaryDirectory() as folder:
        saved = Path(folder, "result.json")
        result.save(saved)
        size = sum(path.stat().st_size for path in Path(folder).iterdir())
        begin = time.perf_counter()
        verdict = mipfs.verify(mipfs.Result.load(saved), data)
        checked = time.perf_counter() - begin
    return {
        "n": data.n_samples, "p": data.n_features, "M": M, "C": C, "limit": limit, "status": result.status.name,
        "objective": result.objective, "bound": result.bound, "gap": result.gap, "selected": list(result.selected),
        "relaxed": None if relaxed is None else relaxed["lower"], "nodes": result.counters.get("nodes"),
        "megabytes": size / 1e6, "verified": verdict.accepted, "verify_seconds": checked, **spent,
    }  # fmt: skip


def run(store: Store, sets: tuple[str, ...], limit: float) -> None:
    """Measure what is missing, a line at a time."""
    for name in sets:
        data = None
        for M, C in product(SIZES, WEIGHTS):
            key = key_of(name, M, C)
            if store.get(key, limit) is not None:
                continue
            data = data_of(name) if data is None else data
            if data.n_features < M:
                break  # every feature may be selected
            with threadpool_limits(1):
                line = store.add(key, set=name, **measured(data, M, C, limit))
            print(f"{key}: {line['status']} gap {line['gap']:.2%} in {line['seconds']:.1f} s", flush=True)


def shown(line: Line | None) -> str:
    """A cell: seconds to the proof, or the gap that is left; the gap of the relaxation in brackets."""
    if line is None:
        return ""
    root = "" if line["relaxed"] is None else f" ({max(0.0, 1.0 - line['relaxed'] / line['objective']):.1%})"
    first = f"{line['seconds']:.2f} s" if line["status"] == "OPTIMAL" else f"**{line['gap']:.1%} left**"
    return first + root


def document(lines: dict[str, Line]) -> str:
    """The report."""
    every = list(lines.values())
    closed = [line for line in every if line["status"] == "OPTIMAL"]
    out = ["# Exact solutions under a cardinality constraint", ""]
    out += ["Made by `MIPFS_DATA=folder python benchmarks/cardinality.py` from `cardinality.jsonl`.", ""]
    if not every:
        return "\n".join(out)
    limits = ", ".join(f"{limit:g}" for limit in sorted({line["limit"] for line in every}))
    out += [
        "The problem of Bomze, D'Onofrio, Palagi and Peng (European Journal of Operational Research, 2025): at most M",
        "features, the hinge loss with a free intercept, columns standardised. They solve it by mixed-integer programs",
        "over decomposed semidefinite relaxations with a commercial solver; here it is `branch`, one thread, to a gap",
        f"of 1e-4, in at most {limits} s. Their decomposed relaxation, as derived in `mipfs/models/decomposed_sdp.py`,",
        "has the value of the Boolean relaxation; its gap to the best classifier found stands in brackets.",
        "",
        f"{len(closed)} of {len(every)} proven optimal; of all, {sum(line['verified'] for line in every)} certificates "
        f"were accepted from the files; the largest has {max(line['megabytes'] for line in every):.1f} MB, the slowest "
        f"check took {max(line['verify_seconds'] for line in every):.1f} s.",
        "",
    ]
    for M in SIZES:
        rows = []
        for name in SETS:
            row = [lines.get(key_of(name, M, C)) for C in WEIGHTS]
            if any(row):
                one = next(line for line in row if line is not None)
                rows.append([name, f"{one['n']} × {one['p']}", *map(shown, row)])
        out += [f"## M = {M}", "", table(["set", "n × p", *(f"C = {C:g}" for C in WEIGHTS)], rows), ""]
    machine, versions = every[-1]["machine"], every[-1]["versions"]
    said = ", ".join(f"{name} {one}" for name, one in versions.items())
    out += [f"Machine: {machine['cores']} cores, {machine['cpu']}, Python {machine['python']}, {said}.", ""]
    return "\n".join(out)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    parser.add_argument("--limit", type=float, default=30.0, help="seconds for every problem (default 30)")
    parser.add_argument("--report", action="store_true", help="write the report alone")
    asked = parser.parse_args()
    store = Store(STORE)
    if not asked.report:
        run(store, tuple(asked.sets), asked.limit)
    REPORT.write_text(document(store.lines()), encoding="utf-8")


if __name__ == "__main__":
    main()
