"""How much of the root's gap stronger relaxations close: all simple disjunctions at once, and samples in clusters.

    MIPFS_DATA=folder python benchmarks/stronger.py disjunctions [--sets heart_statlog ionosphere] [--M 5] [--C 1]
    MIPFS_DATA=folder python benchmarks/stronger.py clusters [--sets heart_statlog australian] [--parts 2 4 8]

Hinge loss, standardised columns. Every line is the root's bound, the stronger one, and the share of the way from the
root to the optimum (or to the best support after --time-limit) that it goes; beside it the bound of `branch` after as
many nodes as the stronger program has copies of the problem, and its nodes to the end.

disjunctions: the largest bound that any cuts from the p disjunctions σ_j = 0 or σ_j = 1 can prove together
(lift-and-project closure, one round): each is a pair of copies of the whole relaxation, homogenised, with equal sums;
one cone program, solved by Clarabel.

clusters: the samples are parted, each part has w, σ and b of its own and its share of the ridge, and multipliers price
what they differ by (Lagrangian decomposition). The selections of the parts are integral, so the bound begins at the
root's or above; a part is solved exactly over all its selections, by cuts, each an SVM on its samples, and the
multipliers take subgradient steps.
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import platform
import sys
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import clarabel
import cvxpy as cp
import numpy as np
import numpy.typing as npt
from real_parts import problems
from scipy import sparse
from sklearn.cluster import KMeans

import mipfs

Array = npt.NDArray[np.float64]
PACKAGES = ("mipfs", "clarabel", "cvxpy", "scikit-learn", "numpy")
MOST_SELECTIONS = 2e6
SHORTER = 0.5
"""What a subgradient step that does not lift the bound leaves of the next one, from the best point on."""


def relaxed(X: Array, y: Array, M: int, C: float) -> tuple[float, Array]:
    """Bound of the Boolean relaxation, and its dual vector (n,)."""
    n, p = X.shape
    w, b, xi, sigma, r = cp.Variable(p), cp.Variable(), cp.Variable(n), cp.Variable(p), cp.Variable(p)
    margins = xi >= 1 - cp.multiply(y, X @ w + b)
    rules = [margins, xi >= 0, sigma <= 1, cp.sum(sigma) <= M, _perspective(r, sigma, w)]
    program = cp.Problem(cp.Minimize(0.5 * cp.sum(r) + C * cp.sum(xi)), rules)
    program.solve(solver=cp.CLARABEL)
    return float(program.value), np.clip(margins.dual_value, 0.0, C)  # type: ignore[arg-type]


def _perspective(r: Any, sigma: Any, w: Any) -> Any:
    """r σ ≥ w², entry by entry."""
    r, sigma, w = (cp.vec(one, order="F") for one in (r, sigma, w))
    return cp.SOC(r + sigma, cp.vstack([2 * w, r - sigma]), axis=0)


def closure(X: Array, y: Array, M: int, C: float) -> float:
    """The bound of all disjunctions σ_j ∈ {0, 1} together."""
    n, p = X.shape
    copies = 2 * p  # 2j: without j; 2j + 1: with it
    W, S, R = (cp.Variable((p, copies)) for _ in range(3))
    b, share, xi = cp.Variable(copies), cp.Variable(copies), cp.Variable((n, copies))
    sigma, w, r, slack, intercept = cp.Variable(p), cp.Variable(p), cp.Variable(p), cp.Variable(n), cp.Variable()
    pairs = sparse.kron(sparse.eye_array(p), np.ones((2, 1)), format="csc")  # (copies, p)
    every, row = np.ones((p, 1)), cp.reshape(share, (1, copies), order="F")
    rules = [
        xi >= np.ones((n, 1)) @ row - (y[:, None] * X) @ W - y[:, None] @ cp.reshape(b, (1, copies), order="F"),
        xi >= 0,
        every @ row >= S,
        cp.sum(S, axis=0) <= M * share,
        _perspective(R, S, W),
        *(
            each @ pairs == cp.reshape(of, (of.size, 1), order="F") @ np.ones((1, p))
            for each, of in ((S, sigma), (W, w), (R, r), (xi, slack))
        ),
        pairs.T @ b == intercept * np.ones(p),
        pairs.T @ share == 1,
        *(S[j, 2 * j] == 0 for j in range(p)),
        *(S[j, 2 * j + 1] == share[2 * j + 1] for j in range(p)),
    ]
    program = cp.Problem(cp.Minimize(0.5 * cp.sum(r) + C * cp.sum(slack)), rules)
    program.solve(solver=cp.CLARABEL)
    return float(program.value)  # type: ignore[arg-type]


class Part:
    """The samples of one cluster, with a share of the ridge; its cuts bound all selections."""

    def __init__(self, X: Array, y: Array, C: float, share: float, selections: Any) -> None:
        self.A, self.y, self.C, self.share, self.selections = y[:, None] * X, y, C, share, selections
        self.alphas: list[tuple[float, Array]] = []
        self.tilt = 0.0

    def begin(self, alpha: Array) -> Array:
        """Take a dual vector as the first cut and for the price of b; returns its X'(α∘y)."""
        self.tilt = float(self.y @ alpha)
        omega = self.A.T @ alpha
        self.alphas.append((float(alpha.sum()), omega))
        return np.asarray(omega)

    def least(self, u: Array, v: Array) -> tuple[float, Array, Array]:
        """The least value over all selections at prices u of w and v of σ: a lower bound, w and σ."""
        values = np.full(self.selections.shape[0], -np.inf)
        for g, omega in self.alphas:
            np.maximum(values, g - self.selections @ (np.square(omega - u) / (2 * self.share) - v), out=values)
        best, w, sigma = np.inf, np.zeros(u.size), np.zeros(u.size)
        while True:
            at = int(np.argmin(values))
            if values[at] >= best - 1e-6 * abs(best):
                return float(values[at]), w, sigma
            chosen = self.selections[[at]].toarray()[0]
            g, omega, weights = self._solve_one(np.flatnonzero(chosen), u)
            self.alphas.append((g, omega))
            cut = np.square(omega - u) / (2 * self.share) - v
            if g - float(chosen @ cut) < best:
                best, w, sigma = g - float(chosen @ cut), weights, chosen
            np.maximum(values, g - self.selections @ cut, out=values)

    def _solve_one(self, ids: Any, u: Array) -> tuple[float, Array, Array]:
        """Σα, X'(α∘y) and w of the part's SVM on some features."""
        n, k = self.y.size, ids.size
        P = sparse.diags_array(np.r_[np.full(k, self.share), np.zeros(n + 1)], format="csc")
        q = np.r_[u[ids], self.tilt, np.full(n, self.C)]
        eye = sparse.eye_array(n)
        upper = sparse.hstack([sparse.csc_array(-self.A[:, ids]), sparse.csc_array(-self.y[:, None]), -eye])
        rows = sparse.vstack([upper, sparse.hstack([sparse.csc_array((n, k + 1)), -eye])], format="csc")
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        bound = np.r_[-np.ones(n), np.zeros(n)]
        solver = clarabel.DefaultSolver(P, q, rows, bound, [clarabel.NonnegativeConeT(2 * n)], settings)
        solution = solver.solve()
        alpha, w = np.clip(np.asarray(solution.z)[:n], 0.0, self.C), np.zeros(u.size)
        w[ids] = np.asarray(solution.x)[:k]
        return float(alpha.sum()), np.asarray(self.A.T @ alpha), w


def selections_of(p: int, M: int) -> Any:
    """All selections of at most M of p features, one a row (CSR)."""
    count = sum(math.comb(p, k) for k in range(M + 1))
    if count > MOST_SELECTIONS:
        sys.exit(f"error: {count:,} selections of {M} of {p} features are too many to hold; --M takes a smaller number")
    chosen = [one for k in range(M + 1) for one in itertools.combinations(range(p), k)]
    starts = np.r_[0, np.cumsum([len(one) for one in chosen])]
    columns = np.fromiter(itertools.chain.from_iterable(chosen), np.int64)
    return sparse.csr_array((np.ones(columns.size), columns, starts), shape=(count, p))


def decomposed(
    X: Array, y: Array, M: int, C: float, labels: Any, target: float, steps: int
) -> list[tuple[float, float, float]]:
    """At the root's multipliers, and after so many subgradient steps: best bound, SVMs a part, seconds."""
    selections, alpha, names = selections_of(X.shape[1], M), relaxed(X, y, M, C)[1], np.unique(labels)
    parts = [Part(X[labels == name], y[labels == name], C, 1.0 / names.size, selections) for name in names]
    pulls = np.array([part.begin(alpha[labels == name]) for part, name in zip(parts, names, strict=True)])
    prices = pulls - pulls.mean(axis=0), np.zeros(pulls.shape)
    told: list[tuple[float, float, float]] = []
    best, damping, began = -np.inf, 1.0, time.perf_counter()
    for _ in range(steps + 1):
        values, w, sigma = zip(*(part.least(*pair) for part, *pair in zip(parts, *prices, strict=True)), strict=True)
        value = sum(values)
        if value > best:
            best, kept = value, prices
            slopes = [np.array(one) - np.mean(one, axis=0) for one in (w, sigma)]
        else:  # again from the best, not as far
            damping *= SHORTER
        told = [
            *told[:1],
            (best, sum(len(part.alphas) - 1 for part in parts) / names.size, time.perf_counter() - began),
        ]
        size = sum(float(np.square(one).sum()) for one in slopes)
        if size < 1e-12 or best >= target * (1 - 1e-5):
            break
        step = damping * (target - best) / size
        prices = kept[0] + step * slopes[0], kept[1] + step * slopes[1]
    return told


def lines(a: argparse.Namespace) -> Iterator[str]:
    """One line for each program."""
    folder = Path(os.environ.get("MIPFS_DATA") or sys.exit("error: set MIPFS_DATA to the folder of the data sets"))
    for name in a.sets:
        what = {"from": "set", "set": name, "scale": "standard", "loss": "hinge", "M": a.M, "C": a.C}
        problem = problems.build(what, folder)
        values = problem.data.block().values
        X, y = np.asarray(values.toarray() if sparse.issparse(values) else values), problem.data.y
        root = relaxed(X, y, a.M, a.C)[0]
        solved = mipfs.solve(problem, "branch", time_limit=a.time_limit)
        best = solved.objective
        end = "nodes to the end" if solved.status == mipfs.Status.OPTIMAL else f"nodes, {solved.gap:.1%} left"
        asked = f"{name} {X.shape[0]}x{X.shape[1]} M={a.M} C={a.C:g}"
        yield f"{asked}: root {root:.4f}, best {best:.4f}, {solved.counters['nodes']} {end}"

        def shown(what: str, bound: float, seconds: float, root: float = root, best: float = best) -> str:
            return f"  {what:<60}{bound:>12.4f}{(bound - root) / max(best - root, 1e-300):>8.1%}{seconds:>9.1f} s"

        for count in (1, 2 * X.shape[1]):
            began = time.perf_counter()
            some = mipfs.solve(problem, "branch", iteration_limit=count, start=tuple(solved.selected))
            yield shown(f"branch, {some.counters['nodes']} nodes", some.bound, time.perf_counter() - began)
        began = time.perf_counter()
        if a.study == "disjunctions":
            bound = closure(X, y, a.M, a.C)
            yield shown(f"all {X.shape[1]} disjunctions, one round", bound, time.perf_counter() - began)
            continue
        for count, kind in itertools.product(a.parts, ("drawn", "k-means")):
            if count == 1 and kind == "k-means":
                continue
            random = np.random.default_rng(a.seed)
            labels = (
                random.permutation(np.arange(y.size) % count)
                if kind == "drawn"
                else KMeans(count, random_state=a.seed, n_init=4).fit_predict(X)
            )
            told = decomposed(X, y, a.M, a.C, labels, best, a.steps)
            for when, (bound, svms, seconds) in zip(("root's multipliers", "the last"), told, strict=False):
                yield shown(f"{count} clusters ({kind}), {when}, {svms:.0f} SVMs each", bound, seconds)


def main() -> None:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", choices=("disjunctions", "clusters"))
    parser.add_argument("--sets", nargs="+", default=["heart_statlog"], metavar="FOLDER", help="below MIPFS_DATA")
    parser.add_argument("--M", type=int, default=5)
    parser.add_argument("--C", type=float, default=1.0)
    parser.add_argument("--parts", type=int, nargs="+", default=[1, 2, 4, 8], help="clusters; 1: the whole problem")
    parser.add_argument("--steps", type=int, default=60, help="of the subgradient method")
    parser.add_argument("--time-limit", type=float, default=60.0, metavar="S", help="for the optimum")
    parser.add_argument("--seed", type=int, default=0)
    a = parser.parse_args()
    print(", ".join(f"{name} {version(name)}" for name in PACKAGES), f"Python {platform.python_version()}", sep="; ")
    for line in lines(a):
        print(line, flush=True)


if __name__ == "__main__":
    main()
