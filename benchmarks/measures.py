"""Selecting for F1 on an imbalanced text task, against selecting for accuracy; and the speed of the F1 oracle.

    python benchmarks/measures.py text       ten splits of Reuters-21578, acq against the rest (MIPFS_DATA: its folder)
    python benchmarks/measures.py oracle     the most violated labelling at n = 1,000,000, and against the O(PN) search
    python benchmarks/measures.py table      reports/measures.md from what is stored

A run can be stopped at any moment and started again: what is stored in reports/measures.jsonl is not measured again.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from exact_parts.store import ROOT, Store
from measures_table import document
from scipy import sparse
from sklearn.datasets import load_svmlight_file
from threadpoolctl import threadpool_limits

import mipfs
from mipfs.data.instance import Instance
from mipfs.lab.baselines.l1_bundle import L1Bundle
from mipfs.lab.baselines.l1_svm import l1_svm_of_size
from mipfs.lab.baselines.linear import Linear, linear, plain_svm
from mipfs.lab.baselines.rfe import eliminate
from mipfs.lab.baselines.structural_svm import structural_svm
from mipfs.measures import get_measure, value
from mipfs.measures.fbeta import divide_and_conquer, full_search
from mipfs.problem import Problem

SET, P = "reuters21578_acq_unigram", 35405
TRAIN, SHARE = 4000, 0.04
"""Training samples of a split, and the share of positives in both parts."""
SIZES = (10, 50)
WEIGHTS, F1_WEIGHTS = (1.0, 10.0, 100.0), (10.0, 100.0, 1000.0)
"""C of the squared hinge; C of the measure in units of n/4, where the two are comparable: v(C) = ¼ v_hinge(4C/n)."""
ALL_WEIGHTS = (1.0, 10.0, 100.0)
"""The same on all features, where less weight separates the classes."""
GAP, T = 1e-2, 60
"""Relative gap and iterations at which a driver stops, the same for F1 and for accuracy; no limit of time."""


@dataclass(frozen=True)
class Setting:
    """What validation chooses: the loss weight of the selection, whether there is a bias, and the final fit."""

    weight: float
    bias: bool
    fit: str = "own"
    fit_weight: float = 0.0


def split(X: Any, y: np.ndarray, seed: int) -> tuple[Instance, Instance]:
    """Training and test data with the share of positives that is asked for: positives are left out at random."""
    r = np.random.default_rng(seed)
    positive, negative = r.permutation(np.flatnonzero(y > 0)), r.permutation(np.flatnonzero(y < 0))
    a, b = round(SHARE * TRAIN), round((1 - SHARE) * TRAIN)
    rest = round((negative.size - b) * SHARE / (1 - SHARE))
    train = np.concatenate([positive[:a], negative[:b]])
    test = np.concatenate([positive[a : a + rest], negative[b:]])
    return part(X, y, r.permutation(train)), part(X, y, test)


def part(X: Any, y: np.ndarray, rows: np.ndarray) -> Instance:
    """Some rows as an instance."""
    return Instance.from_arrays(sparse.csc_array(X[rows]), y[rows])


def folds(data: Instance, seed: int) -> tuple[Instance, Instance]:
    """Two thirds to fit and one third to choose by, both with all their share of positives."""
    r = np.random.default_rng(1000 + seed)
    inside = [r.permutation(np.flatnonzero(data.y * sign > 0)) for sign in (1, -1)]
    rows = data.X.tocsr()
    return (
        part(rows, data.y, np.concatenate([ids[: 2 * ids.size // 3] for ids in inside])),
        part(rows, data.y, np.concatenate([ids[2 * ids.size // 3 :] for ids in inside])),
    )


def by_driver(data: Instance, M: int, weight: float, bias: bool, loss: str) -> Linear:
    """The M features that a relaxation picks, and the classifier of (P) on them."""
    if loss == "structural":
        C = weight * data.n_samples / 4
        problem, driver = Problem(data, loss=loss, bias=False, M=M, C=C, measure="f1"), "two_layer"
    else:
        C = weight
        problem, driver = Problem(data, loss=loss, bias=bias, M=M, C=C), "kelley"
    result = mipfs.solve(problem, driver, gap=GAP, T=T, polish=True)
    ids = data.columns_of(result.selected)
    w = np.array([result.weights.get(name, 0.0) for name in result.selected])
    # weights of a result are on the user's scale, which is that of the data here
    return linear(data, ids, w, result.intercept, C, objective=result.objective, bound=result.bound)


METHODS: dict[str, list[tuple[float, bool]]] = {
    "two_layer for F1": [(weight, False) for weight in F1_WEIGHTS],
    "FGM": [(weight, bias) for weight in WEIGHTS for bias in (False, True)],
    "SVM-RFE": [(weight, bias) for weight in WEIGHTS for bias in (False, True)],
    "l1-SVM": [(0.0, False), (0.0, True)],
    "l1 bundle for F1": [(0.0, False)],
}
"""Loss weight and bias of every setting that validation chooses from; C of the ℓ1 methods follows from M."""


def select(method: str, data: Instance, sizes: Iterable[int], weight: float, bias: bool) -> dict[int, Linear]:
    """The selections of a method with one setting, and their own classifiers, by M."""
    if method == "SVM-RFE":
        found = eliminate(data, sorted(sizes), weight, bias=bias)
        return {M: plain_svm(data, ids, weight, bias) for M, ids in found.items()}
    if method == "l1-SVM":
        return {M: l1_svm_of_size(data, M, bias=bias) for M in sizes}
    if method == "l1 bundle for F1":
        bundle = L1Bundle(data, "f1")
        return {M: bundle.of_size(M, tol=GAP) for M in sizes}
    loss = "structural" if method == "two_layer for F1" else "squared-hinge"
    return {M: by_driver(data, M, weight, bias, loss) for M in sizes}


def fits(data: Instance, found: Linear, bias: bool) -> dict[tuple[str, float], Callable[[], Linear]]:
    """The classifiers on the columns of a selection: its own, plain SVMs, and structural SVMs for F1."""
    made: dict[tuple[str, float], Callable[[], Linear]] = {("own", 0.0): lambda: found}
    if found.ids.size:
        for weight in WEIGHTS:
            made["plain", weight] = partial(plain_svm, data, found.ids, weight, bias)
        for weight in F1_WEIGHTS:
            C = weight * data.n_samples / 4
            made["F1", weight] = partial(structural_svm, data, "f1", C, found.ids, tol=1e-3)
    return made


def f1(model: Linear, data: Instance) -> float:
    """F1 of the sign of f."""
    return value("f1", data.y, model.scores(data))


def run_split(X: Any, y: np.ndarray, seed: int, method: str, sizes: tuple[int, ...]) -> list[dict[str, Any]]:
    """Choose the settings on a third of the training data, fit on all of it, and measure on the test data."""
    train, test = split(X, y, seed)
    fit_part, choose_part = folds(train, seed)
    best: dict[tuple[int, str], tuple[float, Setting]] = {}
    for weight, bias in METHODS[method]:
        for M, found in select(method, fit_part, sizes, weight, bias).items():
            for (name, fit_weight), make in fits(fit_part, found, bias).items():
                reached = f1(make(), choose_part)
                if reached > best.get((M, name), (-1.0,))[0]:
                    best[M, name] = reached, Setting(weight, bias, name, fit_weight)
    lines, made = [], {}
    for (M, name), (reached, setting) in sorted(best.items()):
        key = M, setting.weight, setting.bias
        if key not in made:
            begin = time.perf_counter()
            made[key] = select(method, train, [M], setting.weight, setting.bias)[M], time.perf_counter() - begin
        found, seconds = made[key]
        make = fits(train, found, setting.bias).get((name, setting.fit_weight))
        model = found if make is None else make()  # nothing was selected: there is nothing to fit
        lines.append(
            {"M": M, "fit": name, "f1": f1(model, test), "train_f1": f1(model, train), "validation_f1": reached}
            | {"n_features": int(found.ids.size), "weight": setting.weight, "bias": setting.bias}
            | {"fit_weight": setting.fit_weight, "objective": found.objective, "bound": found.bound}
            | {"select_seconds": seconds}
        )
    return lines


def all_features(X: Any, y: np.ndarray, seed: int) -> dict[str, Any]:
    """SVM^perf: the structural SVM for F1 on all features."""
    train, test = split(X, y, seed)
    fit_part, choose_part = folds(train, seed)
    models = [(w, structural_svm(fit_part, "f1", w * fit_part.n_samples / 4, tol=1e-2)) for w in ALL_WEIGHTS]
    weight = max(models, key=lambda pair: f1(pair[1], choose_part))[0]
    model = structural_svm(train, "f1", weight * train.n_samples / 4, tol=1e-2)
    return {"M": P, "fit": "own", "f1": f1(model, test), "train_f1": f1(model, train), "weight": weight}


def text(store: Store, seeds: list[int], sizes: tuple[int, ...]) -> None:
    """The text study."""
    folder = os.environ.get("MIPFS_DATA")
    if not folder:
        sys.exit("error: MIPFS_DATA is not set; it names the folder of the data sets")
    X, y = load_svmlight_file(str(Path(folder) / SET / "data.svm.gz"), n_features=P)
    X = X.tocsr()
    done = store.lines()
    for method, seed in [(m, s) for s in seeds for m in METHODS] + [("SVM^perf", s) for s in seeds]:
        key = f"text {method} seed={seed}" + ("" if method == "SVM^perf" else f" M={','.join(map(str, sizes))}")
        if key in done:
            continue
        begin = time.perf_counter()
        everything = method == "SVM^perf"
        lines = [all_features(X, y, seed)] if everything else run_split(X, y, seed, method, sizes)
        seconds = time.perf_counter() - begin
        store.add(key, suite="text", method=method, seed=seed, lines=lines, seconds=seconds)
        shown = ", ".join(f"M={one['M']} {one['fit']} {one['f1']:.3f}" for one in lines)
        print(f"{key}: {shown} ({seconds:.0f} s)", flush=True)


def oracle(store: Store, repeats: int) -> None:
    """The F1 oracle at a million samples, and both searches at 20,000."""
    for n, share in ((1_000_000, 0.01), (20_000, 0.01), (20_000, 0.5)):
        r = np.random.default_rng(0)
        y = np.where(np.arange(n) < round(share * n), 1.0, -1.0)
        measure = get_measure("f1", y)
        for kind, scores in (("normal", r.standard_normal(n) + 0.5 * y), ("all equal", np.zeros(n))):
            measure.violated(scores)
            line = {"n": n, "share": share, "scores": kind, "oracle_seconds": median(measure.violated, repeats, scores)}
            _, _, up, down = measure.sorted(scores)  # type: ignore[attr-defined]
            line["search_seconds"] = median(divide_and_conquer, repeats, up, down, 1.0)
            if n <= 20_000:
                full_search(up[-2:], down[:2], 1.0)
                assert divide_and_conquer(up, down, 1.0) == full_search(up, down, 1.0)
                line["full_search_seconds"] = median(full_search, repeats, up, down, 1.0)
            store.add(f"oracle n={n} share={share} {kind}", suite="oracle", **line)
            print(line)


def median(call: Callable[..., Any], repeats: int, *given: Any) -> float:
    """Median seconds."""
    seconds = []
    for _ in range(repeats):
        begin = time.perf_counter()
        call(*given)
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds)


def main() -> None:
    """Run what was asked for, and make the table again."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["text", "oracle", "table"])
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(1, 11)))
    parser.add_argument("--M", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument(
        "--store", type=Path, default=ROOT / "reports" / "measures.jsonl", help="where results are kept"
    )
    a = parser.parse_args()
    store = Store(a.store)
    warnings.simplefilter("ignore")  # LIBLINEAR's limit of steps, far beyond the wanted C
    with threadpool_limits(1):
        try:
            if a.command == "text":
                text(store, a.seeds, tuple(a.M))
            elif a.command == "oracle":
                oracle(store, a.repeats)
        except KeyboardInterrupt:
            print("stopped; the same command goes on from here")
    if lines := store.lines():
        table = store.path.with_suffix(".md")
        table.write_text(document(list(lines.values())), encoding="utf-8")
        print(f"table: {table}")


if __name__ == "__main__":
    main()
