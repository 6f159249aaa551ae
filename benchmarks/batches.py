"""Kinds of problems whose nodes are relaxed many at a time: signs, boxes, groups, beside the plain problem.

    MIPFS_DATA=... python benchmarks/batches.py [sonar:plain sonar:signs ...] [--limit 20] [--relax batch]

A case is SET:KIND or SET:KIND:LOSS; SET_raw is not standardised. Prints CPU seconds of one thread, and what is left.
Another version is measured by PYTHONPATH. The sets are those of `real_parts`, in the folder that MIPFS_DATA names.
"""

from __future__ import annotations

import argparse
import os
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import mipfs
from mipfs.atoms.groups import Groups

SETS = {
    "sonar": (4, 0.1),
    "ionosphere": (5, 1.0),
    "spambase": (5, 0.1),
    "german": (5, 1.0),
    "madelon": (10, 1.0),
    "wdbc_sklearn": (5, 1.0),
}
"""M and C."""
KINDS = ("plain", "signs", "against", "box", "binds", "ones", "threes", "mixed")


@cache
def data(name: str) -> Any:
    """An instance, standardised unless its name says raw."""
    from sklearn.datasets import load_svmlight_file

    own = name.removesuffix("_raw")
    X, y = load_svmlight_file(str(Path(os.environ["MIPFS_DATA"]) / own / "data.svm.gz"))
    X, y = X.toarray(), np.where(y == np.unique(y)[1], 1.0, -1.0)
    if own == name:
        spread = X.std(axis=0)
        X = (X - X.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    return mipfs.Instance.from_arrays(X, y)


@cache
def weights(name: str) -> Any:
    """The weights of the plain optimum."""
    instance = data(name)
    M, C = SETS[name.removesuffix("_raw")]
    result = mipfs.solve(mipfs.Problem(instance, M=M, C=C), driver="branch", time_limit=60)
    return np.array([result.weights.get(one, 0.0) for one in instance.feature_names])


def kind_of(name: str, kind: str) -> dict[str, Any]:
    """What makes a problem one of a kind."""
    instance = data(name)
    names, p = list(instance.feature_names), instance.n_features
    if kind in ("signs", "against"):
        w = weights(name)
        likely = np.where(w != 0, w, np.asarray(instance.block().values).T @ instance.y)
        sign = np.where(np.arange(p) % 2 == 0, np.where(w >= 0, 1.0, -1.0), 0.0)
        if kind == "against":
            rng = np.random.default_rng(3)
            some = np.union1d(rng.permutation(p)[: p // 3], np.flatnonzero(w)[: max(1, np.count_nonzero(w) // 3)])
            sign = np.zeros(p)
            sign[some] = -np.where(likely[some] >= 0, 1.0, -1.0)
        ends = {1.0: (0.0, None), -1.0: (None, 0.0)}
        return {"weight_bounds": {names[j]: ends[sign[j]] for j in np.flatnonzero(sign)}}
    if kind in ("box", "binds"):
        w = np.abs(weights(name)) if kind == "binds" else np.full(1, 2.0)
        end = float(np.median(w[w != 0]))
        return {"weight_bounds": {one: (-end, end) for one in names}}
    if kind in ("ones", "threes"):
        size = {"ones": 1, "threes": 3}[kind]
        return {"atoms": Groups(instance, {f"g{j}": names[j : j + size] for j in range(0, p, size)})}
    if kind == "mixed":
        rng = np.random.default_rng(5)
        order, ends = rng.permutation(p), np.cumsum(rng.integers(2, 6, p))
        parts = np.split(order, ends[ends < p])
        return {"atoms": Groups(instance, {f"g{g}": [names[j] for j in part] for g, part in enumerate(parts)})}
    return {}


def main() -> None:
    """Solve every case once for the kernels, then timed."""
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    every = [f"{name}:{kind}" for name in ("sonar", "ionosphere", "german", "spambase") for kind in KINDS]
    asked.add_argument("cases", nargs="*", default=every)
    asked.add_argument("--limit", type=float, default=20.0)
    asked.add_argument("--relax")
    given = asked.parse_args()
    options = {"relax": given.relax} if given.relax else {}
    for case in given.cases:
        name, kind, *loss = case.split(":")
        M, C = SETS[name.removesuffix("_raw")]
        more = kind_of(name, kind) | ({"loss": loss[0]} if loss else {})
        problem = mipfs.Problem(data(name), M=M, C=C, **more)
        mipfs.solve(problem, driver="branch", time_limit=0.3, threads=1, **options)
        begun = time.process_time()
        result = mipfs.solve(problem, driver="branch", time_limit=given.limit, threads=1, **options)
        spent, counters = time.process_time() - begun, dict(result.counters)
        print(f"{case:30} {spent:8.3f} CPU s  {100 * result.gap:7.3f}% left  {counters['nodes']:7} nodes", flush=True)


if __name__ == "__main__":
    main()
