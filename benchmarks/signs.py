"""What it costs to hold weights to signs, proven and in cross-validated error; and what a box does to the root's gap.

    MIPFS_DATA=folder python benchmarks/signs.py              all that is not stored yet, and the report
    MIPFS_DATA=folder python benchmarks/signs.py --sets german    some sets
    python benchmarks/signs.py --report                       the report alone

The hinge loss with a free intercept, columns standardised, one thread. Signs are those that a description of the data
speaks for (`SOURCES`), or those of each feature's own correlation with the label, taken from the training samples.
Results are stored in reports/signs.jsonl line by line; what is stored is not measured again. The report is
reports/signs.md.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from exact_parts.store import ROOT, Line, Store, clocks
from signs_parts.document import document
from signs_parts.sources import BOXES, NAMED, SETS, SIZES, SOURCES, WEIGHTS, key_of
from threadpoolctl import threadpool_limits

import mipfs
from mipfs import FSPClassifier, Problem

STORE, REPORT = ROOT / "reports" / "signs.jsonl", ROOT / "reports" / "signs.md"
GAP = 1e-6
"""Of the proven prices: they are known to about twice as much."""
FOLDS, REPEATS = 5, 4
CV_C = 1.0
Array = npt.NDArray[np.float64]


def data_of(name: str, scale: Any = "standard") -> mipfs.Instance:
    """A shared set."""
    folder = os.environ.get("MIPFS_DATA")
    if folder is None:
        sys.exit("error: MIPFS_DATA is not set; it names the folder of the data sets")
    return mipfs.read(Path(folder, name, "data.svm.gz"), scale=scale)


def names_of(name: str) -> list[str]:
    """The names of the columns, from the file beside the data."""
    return Path(os.environ["MIPFS_DATA"], name, "features.txt").read_text(encoding="utf-8").split()


def signs_of(name: str, kind: str, X: Array, y: Array) -> list[int]:
    """-1, 0 or 1 of every column: those of a source, or of the correlation with the label."""
    if kind == "source":
        return [SOURCES[name].get(one, (0, ""))[0] for one in names_of(name)]
    return [int(one) for one in np.sign((X - X.mean(axis=0)).T @ y)]


def dense(data: mipfs.Instance) -> Array:
    """The columns, unscaled."""
    values = data.block().values
    return np.asarray(values.toarray() if hasattr(values, "toarray") else values)


def solved(problem: Problem, gap: float, limit: float, threads: int = 1) -> tuple[mipfs.Result, dict[str, Any]]:
    """A result, and a line's entries about it; it is verified."""
    with clocks() as spent:
        found = mipfs.solve(problem, "branch", gap=gap, time_limit=limit, threads=threads)
    report = mipfs.verify(found, problem.data)
    entry = {
        "status": found.status.name, "objective": found.objective, "bound": found.bound, "gap": found.gap,
        "weights": dict(found.weights), "nodes": found.counters.get("nodes"), "verified": report.accepted,
        "bound_without_box": report.bound_without_box if report.bound_without_box > -np.inf else None, **spent,
    }  # fmt: skip
    return found, entry


def price(store: Store, name: str, limit: float) -> None:
    """The optimum without signs, and with those of either kind."""
    data = data_of(name)
    raw = dense(data_of(name, "none"))
    for M, C in product(SIZES, WEIGHTS):
        for kind in ("free", "source", "marginal"):
            key = key_of(name, kind, M, C)
            if store.get(key, limit) is not None or (kind == "source" and name not in SOURCES):
                continue
            signs = [0] * data.n_features if kind == "free" else signs_of(name, kind, raw, data.y)
            bounds = {
                one: (0.0, None) if sign > 0 else (None, 0.0)
                for one, sign in zip(data.feature_names, signs, strict=True)
                if sign
            }
            with threadpool_limits(1):
                _, entry = solved(Problem(data, M=M, C=C, weight_bounds=bounds), GAP, limit)
            store.add(key, set=name, suite="price", signs=kind, M=M, C=C, limit=limit, n=data.n_samples,
                      p=data.n_features, signed=len(bounds), **entry)  # fmt: skip
            print(f"{key}: {entry['status']} {entry['objective']:.6g} in {entry['seconds']:.1f} s", flush=True)


def errors(store: Store, name: str, limit: float) -> None:
    """Cross-validated errors: the same folds with and without signs."""
    from sklearn.model_selection import RepeatedStratifiedKFold

    data = data_of(name, "none")
    X, y = dense(data), data.y
    folds = RepeatedStratifiedKFold(n_splits=FOLDS, n_repeats=REPEATS, random_state=0)
    for M, kind in product(SIZES, ("free", "source", "marginal")):
        key = key_of(name, f"cv {kind}", M, CV_C)
        if store.get(key, limit) is not None or (kind == "source" and name not in SOURCES):
            continue
        wrong, closed, against = [], 0, 0
        with clocks() as spent, threadpool_limits(1):
            for train, test in folds.split(X, y):
                signs = None if kind == "free" else signs_of(name, kind, X[train], y[train])
                model = FSPClassifier(M, C=CV_C, scale="standard", monotonic_cst=signs, time_limit=limit)
                model.fit(X[train], y[train])
                wrong.append(float(np.mean(model.predict(X[test]) != y[test])))
                closed += model.result_.status is mipfs.Status.OPTIMAL
                known = np.array(signs_of(name, "source" if name in SOURCES else "marginal", X[train], y[train]))
                against += bool(np.any(known * model.coef_[0] < 0))
        store.add(key, set=name, suite="cv", signs=kind, M=M, C=CV_C, limit=limit, status="OPTIMAL", errors=wrong,
                  closed=closed, against=against, **spent)  # fmt: skip
        print(f"{key}: error {np.mean(wrong):.4f} in {spent['seconds']:.0f} s", flush=True)


def root(problem: Problem, limit: float) -> float | None:
    """The proven bound of the relaxation over the rows with 0 ≤ σ ≤ 1."""
    found = mipfs.solve(problem, "kelley", relaxation="box", gap=1e-6, time_limit=limit, refit=False)
    return None if found.relaxed is None else found.relaxed["lower"]


def boxed(data: mipfs.Instance, size: float) -> Mapping[str, tuple[float, float]]:
    """The same box on every weight of the standardised columns, on the user's scale."""
    return {one: (-size / scale, size / scale) for one, scale in zip(data.feature_names, data.scale, strict=True)}


def boxes(store: Store, name: str, limit: float) -> None:
    """Root gaps with boxes of 1, 2 and 4 times the largest weight of the optimum, and whole proofs in these."""
    data = data_of(name)
    for M in SIZES:
        if data.n_features < M:
            continue
        key = key_of(name, "box 0", M, 1.0)
        problem = Problem(data, M=M, C=1.0)
        stored = store.get(key, limit)
        if stored is None:
            with threadpool_limits(1):
                free, entry = solved(problem, 1e-4, limit)
                largest = max(abs(w) * data.scale[data.index[one]] for one, w in free.weights.items())
                entry |= {"root": root(problem, limit), "largest": float(largest)}
                stored = store.add(key, set=name, suite="box", times=0, M=M, C=1.0, limit=limit, n=data.n_samples,
                                   p=data.n_features, **entry)  # fmt: skip
            print(f"{key}: {stored['status']} {stored['objective']:.6g}, root {stored['root']:.6g}", flush=True)
        for times in BOXES:
            key = key_of(name, f"box {times}", M, 1.0)
            if store.get(key, limit) is not None:
                continue
            inside = problem.replace(weight_bounds=boxed(data, times * stored["largest"]))
            with threadpool_limits(1):
                _, entry = solved(inside, 1e-4, limit)
                line = store.add(key, set=name, suite="box", times=times, M=M, C=1.0, limit=limit, n=data.n_samples,
                                 p=data.n_features, root=root(inside, limit), **entry)  # fmt: skip
            print(f"{key}: {line['status']} {line['objective']:.6g}, root {line['root']:.6g}", flush=True)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    parser.add_argument("--stages", nargs="+", default=("price", "errors", "boxes"))
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for every problem (default 60)")
    parser.add_argument("--report", action="store_true", help="write the report alone")
    asked = parser.parse_args()
    store = Store(STORE)
    for stage, name in product(() if asked.report else asked.stages, asked.sets):
        if stage == "boxes" or name in NAMED:
            {"price": price, "errors": errors, "boxes": boxes}[stage](store, name, asked.limit)
    lines: dict[str, Line] = store.lines()
    REPORT.write_text(document(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
