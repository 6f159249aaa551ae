"""One measure for every class: macro averages on the 20 newsgroups, as in Mao 2013, Table 2.

    MIPFS_DATA=folder python benchmarks/classes.py [--classes 20] [--measures f1 recall-at-2p prbep] [--M 200]

Every class against the rest, on the official split; features are the unigrams and bigrams that occur in at least five
training documents. What is compared:

    relaxation     two_layer: the classifier of the convex relaxation, on all features it uses; C = 10, 100 (·n/4)
    M features     the same, rounded to at most M and fitted again
    SVM^perf       the structural SVM for the measure on all features; C = 1, 10 (·n/4)
    l1-SVM         LIBLINEAR's, with an intercept; C = 1, 3, 10

Every method chooses its C by the measure on a third of the training documents and is fitted again on all of them. The
structural loss has no intercept. Recall at 2P labels twice as many documents as there are positive ones, in training
and in testing.

With F1 every class chose the largest C of its grid, 100 for the relaxation and 10 for SVM^perf, so that what is ahead
here is no verdict on selecting for F1. Study `measures` has a larger one on six classes, where all features are ahead
on each and the relaxations are cut off by its limit (`reports/studies/measures`: not shown).

Results are stored in reports/classes.jsonl class by class; what is stored is not measured again. The table is
reports/classes.md. One process, one thread.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from exact_parts.markdown import DASH, table
from exact_parts.store import ROOT, Line, Store
from scipy import sparse
from threadpoolctl import threadpool_limits

import mipfs
from mipfs.data.instance import Instance
from mipfs.lab.baselines.l1_svm import l1_svm
from mipfs.lab.baselines.structural_svm import structural_svm
from mipfs.measures import value
from mipfs.problem import Problem

SET = "news20_bigram"
DOCUMENTS = 5
GAP, T = 1e-2, 100
"""Relative gap at which a solver stops, and iterations of `two_layer`."""
WEIGHTS = {"two_layer": (10.0, 100.0), "SVM^perf": (1.0, 10.0), "l1-SVM": (1.0, 3.0, 10.0)}
MEASURES = {"f1": "f1", "recall-at-2p": "recall-at-k", "prbep": "prbep"}
METHODS = ("relaxation", "M features", "SVM^perf", "l1-SVM")


def load(folder: Path) -> tuple[Any, Any, np.ndarray, np.ndarray]:
    """Training and test documents on the frequent features, and their classes."""
    X = sparse.load_npz(folder / SET / "X.npz").tocsr()
    test, labels = np.load(folder / SET / "is_test.npy"), np.load(folder / SET / "labels.npy")
    train = X[~test].tocsc()
    frequent = np.flatnonzero(np.diff(train.indptr) >= DOCUMENTS)
    return sparse.csc_array(train[:, frequent]), sparse.csr_array(X[test][:, frequent]), labels[~test], labels[test]


def at(name: str, y: np.ndarray) -> int | None:
    """k of the measure on these labels."""
    return min(2 * int((y > 0).sum()), y.size) if name == "recall-at-2p" else None


def fitted(method: str, data: Instance, name: str, weight: float, M: int) -> dict[str, dict[str, Any]]:
    """Weights (position, weight, intercept) of the classifiers that a method leaves, with what it reports."""
    begin, k, C = time.perf_counter(), at(name, data.y), weight * data.n_samples / 4
    if method != "two_layer":
        is_l1 = method == "l1-SVM"
        model = l1_svm(data, weight) if is_l1 else structural_svm(data, MEASURES[name], C, k=k, tol=GAP)
        seconds = time.perf_counter() - begin
        return {method: {"ids": model.ids, "w": model.w, "b": model.b, "seconds": seconds}}
    problem = Problem(data, loss="structural", bias=False, measure=MEASURES[name], k=k, M=M, C=C)
    result = mipfs.solve(problem, "two_layer", gap=GAP, T=T)
    seconds, relaxed, found = time.perf_counter() - begin, result.relaxed, {}
    assert relaxed is not None
    for shown, weights in (("relaxation", relaxed["weights"]), ("M features", result.weights)):
        ids, w = data.columns_of(tuple(weights)), np.array(list(weights.values()))
        found[shown] = {"ids": ids, "w": w, "b": 0.0, "seconds": seconds, "open": result.gap}
        found[shown]["gap"] = 1.0 - relaxed["lower"] / relaxed["upper"]
    return found


def judged(name: str, X: Any, y: np.ndarray, model: dict[str, Any]) -> float:
    """The measure of a classifier on documents."""
    return value(MEASURES[name], y, X[:, model["ids"]] @ model["w"] + model["b"], k=at(name, y))


def measured(data: Instance, test: Any, y: np.ndarray, name: str, M: int) -> list[dict[str, Any]]:
    """Every method on one class, its C chosen on a third of the training documents."""
    order = np.random.default_rng(0).permutation(data.n_samples)
    rows, cut = data.X.tocsr(), 2 * data.n_samples // 3
    part, held = np.sort(order[:cut]), np.sort(order[cut:])
    inner, lines = Instance.from_arrays(sparse.csc_array(rows[part]), data.y[part]), []
    for method, weights in WEIGHTS.items():
        tried = {weight: fitted(method, inner, name, weight, M) for weight in weights}
        for shown in tried[weights[0]]:
            reached = {weight: judged(name, rows[held], data.y[held], tried[weight][shown]) for weight in weights}
            weight = max(weights, key=lambda one: reached[one])
            model = fitted(method, data, name, weight, M)[shown]
            lines.append({"method": shown, "value": judged(name, test, y, model), "n_features": len(model["ids"])})
            lines[-1] |= {"weight": weight, "validation": reached[weight]}
            lines[-1] |= {key: model[key] for key in ("seconds", "gap", "open") if key in model}
    return lines


def document(lines: list[Line]) -> str:
    """The page."""
    measures = [name for name in MEASURES if any(line["measure"] == name for line in lines)]
    classes = sorted({line["group"] for line in lines})
    M = sorted({line["M"] for line in lines})
    rows = []
    for method in METHODS:
        cells, counts, seconds, gaps, left = [], [], [], [], []
        for name in measures:
            found = [
                one for line in lines if line["measure"] == name for one in line["lines"] if one["method"] == method
            ]
            cells.append(f"{100 * np.mean([one['value'] for one in found]):.2f}" if found else DASH)
            counts.append(f"{np.mean([one['n_features'] for one in found]):,.0f}" if found else DASH)
            seconds += [one["seconds"] for one in found]
            gaps += [one["gap"] for one in found if "gap" in one]
            left += [one["open"] for one in found if "open" in one]
        shown = [f"{np.median(found):.1%}" if found else DASH for found in (gaps, left)]
        rows.append([method, *cells, " / ".join(counts), f"{np.median(seconds):.1f}" if seconds else DASH, *shown])
    head = ["method", *(f"{name} (%)" for name in measures), "features", "seconds", "relaxation's gap"]
    head.append("M features' gap")
    about = (__doc__ or "").split("\n\n")
    machine, versions = lines[-1]["machine"], lines[-1]["versions"]
    said = ", ".join(f"{name} {versions[name]}" for name in ("numpy", "scipy", "numba"))
    lead = (
        f"Made by `python benchmarks/classes.py` from `classes.jsonl`. Macro averages over {len(classes)} classes, "
        f"M = {', '.join(map(str, M))}; `seconds`: one fit on all training documents, median; `relaxation's gap`: "
        "between its own two bounds, `M features' gap`: of their objective against the bound on the best M; medians."
    )
    method = "\n\n".join(about[2:6])
    ran = f"Machine: {machine['cores']} cores, {machine['cpu']}, Python {machine['python']}, {said}; one thread."
    return "\n\n".join(["# A measure for every class: what was measured", lead, method, table(head, rows), ran]) + "\n"


def main() -> None:
    """Measure what is not stored, and make the table again."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--classes", type=int, default=20, help="the first so many classes, in sorted order")
    parser.add_argument("--measures", nargs="+", choices=list(MEASURES), default=list(MEASURES))
    parser.add_argument("--M", type=int, default=200)
    parser.add_argument("--store", type=Path, default=ROOT / "reports" / "classes.jsonl")
    a = parser.parse_args()
    folder = os.environ.get("MIPFS_DATA")
    if not folder:
        sys.exit("error: MIPFS_DATA is not set; it names the folder of the data sets")
    store = Store(a.store)
    done = store.lines()
    train, test, names, test_names = load(Path(folder))
    warnings.simplefilter("ignore")  # LIBLINEAR's limit of steps
    with threadpool_limits(1):
        first = Instance.from_arrays(train, np.where(names == names[0], 1.0, -1.0))
        for group in np.unique(names)[: a.classes]:
            data = Instance.from_arrays(first.X, np.where(names == group, 1.0, -1.0))
            y = np.where(test_names == group, 1.0, -1.0)
            for name in a.measures:
                key = f"{group} {name} M={a.M}"
                if key in done:
                    continue
                lines = measured(data, test, y, name, a.M)
                store.add(key, group=str(group), measure=name, M=a.M, n_features=data.n_features, lines=lines)
                shown = ", ".join(f"{one['method']} {one['value']:.3f} ({one['n_features']})" for one in lines)
                print(f"{key}: {shown}", flush=True)
    page = store.path.with_suffix(".md")
    page.write_text(document(list(store.lines().values())), encoding="utf-8")
    print(f"table: {page}")


if __name__ == "__main__":
    main()
