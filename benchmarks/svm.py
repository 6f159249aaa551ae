"""The hinge SVM on selected columns: ours, cold and warm, against Clarabel (through CVXPY) and libsvm.

    python benchmarks/svm.py [--n-samples 5000] [--repeats 7]

Every solver reaches the relative gap asked for, measured here on its own primal and dual vectors;
libsvm's tolerance is tightened until it does. Times are medians in one process on one BLAS thread.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from mipfs.data.instance import Instance
from mipfs.generators import aytug_one
from mipfs.losses.hinge import LOSS

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.references import svm_reference

GAP = 1e-6


def timed(run: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """Median seconds of `run`, and its last answer."""
    seconds, answer = [], None
    for _ in range(repeats):
        begin = time.perf_counter()
        answer = run()
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds), answer


def gap_of(Z: np.ndarray, y: np.ndarray, c: np.ndarray, w: np.ndarray, b: float, alpha: np.ndarray) -> float:
    """Relative gap of a primal point and a dual vector made feasible."""
    whole, q = LOSS.feasible_dual(np.clip(alpha, 0.0, c), c, y, True)
    exact = np.ldexp(whole.astype(float), -q)
    primal = 0.5 * w @ w + c @ np.maximum(0.0, 1.0 - y * (Z @ w + b))
    pulled = Z.T @ (exact * y)
    return float((primal - exact.sum() + 0.5 * pulled @ pulled) / primal)


def libsvm(Z: np.ndarray, y: np.ndarray, c: np.ndarray, repeats: int) -> tuple[float, float]:
    """Seconds and gap of scikit-learn's SVC at the loosest tolerance that reaches GAP."""
    tol = 1e-2
    while True:
        solver = SVC(kernel="linear", C=c[0], tol=tol, cache_size=1000)
        model = solver.fit(Z, y)
        alpha = np.zeros(y.size)
        alpha[model.support_] = np.abs(model.dual_coef_[0])
        gap = gap_of(Z, y, c, model.coef_[0], float(model.intercept_[0]), alpha)
        if gap <= GAP or tol < 1e-9:
            return timed(partial(solver.fit, Z, y), repeats)[0], gap
        tol /= 3.0


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n-samples", type=int, default=5000)
    parser.add_argument("--n-selected", type=int, default=50)
    parser.add_argument("--repeats", type=int, default=7)
    arguments = parser.parse_args()
    n, k = arguments.n_samples, arguments.n_selected
    X, y = aytug_one(n, 2 * k, k, seed=1)["train"]
    data = Instance.from_arrays(X, y)
    print(f"n = {n}, {k} of {2 * k} columns, relative gap {GAP:g}; medians of {arguments.repeats}")
    print(", ".join(f"{name} {version(name)}" for name in ("numpy", "numba", "scikit-learn", "cvxpy", "clarabel")))
    header = ("C", "cold ms", "warm ms", "Clarabel ms", "libsvm ms", "Clarabel/cold", "libsvm/cold", "cold/warm")
    print("".join(f"{title:>15}" for title in header))
    with threadpool_limits(1, user_api="blas"):
        for C in (0.25, 1.0, 32.0):
            c = np.full(n, C)
            row(data, c, k, arguments.repeats)


def row(data: Instance, c: np.ndarray, k: int, repeats: int) -> None:
    """One line of the table."""
    ids, Z = np.arange(k), np.ascontiguousarray(data.X[:, :k])
    solver = LOSS.Solver(data, c, True)
    solver.solve(ids, tol=GAP)
    cold, base = timed(lambda: solver.solve(ids, tol=GAP), repeats)
    warm = []
    for r in range(0, k, max(1, k // 10)):
        changed = ids.copy()
        changed[r] = k + r
        w = base.w.copy()
        w[r] = 0.0
        start = (w, base.b, base.alpha, base.rho)
        seconds, answer = timed(partial(solver.solve, changed, tol=GAP, start=start), repeats)
        assert answer.gap <= GAP
        warm.append(seconds)
    conic, reference = timed(lambda: svm_reference(Z, data.y, c), max(1, repeats // 3))
    assert base.gap <= GAP
    assert abs(base.primal - reference.value) <= 2e-6 * base.primal
    lib, lib_gap = libsvm(Z, data.y, c, max(1, repeats // 3))
    each = statistics.median(warm)
    cells = (cold * 1e3, each * 1e3, conic * 1e3, lib * 1e3, conic / cold, lib / cold, cold / each)
    print(f"{c[0]:>15g}" + "".join(f"{cell:>15.2f}" for cell in cells) + f"   (libsvm gap {lib_gap:.1e})")


if __name__ == "__main__":
    main()
