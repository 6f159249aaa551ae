"""Products of features that nobody stores: what they bring, what a search over all of them costs, and the proven best.

    MIPFS_DATA=folder python benchmarks/interactions.py usps      test error against the number of selected atoms
    MIPFS_DATA=folder python benchmarks/interactions.py search    one search among 1.4 million million, news20_bigram
    MIPFS_DATA=folder python benchmarks/interactions.py exact     the proven best three of all products: WDBC, colon

CPU seconds of this process, on one thread; peak memory of the process. In `usps` every method has its line in METHODS;
C is chosen on a fifth of the training rows, for every method and M. `search` asks again and again along the way of
`kelley`, and compares the best products with those of a plain product of all columns that stand in two rows or more
(`--plain`: minutes); a product with any other column has one term, which is bounded by its row.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

import mipfs
from mipfs import FGMClassifier, PolynomialFGMClassifier
from mipfs.atoms.pairs import Pairs
from mipfs.data.instance import Instance
from mipfs.problem import Problem

SIZES = (2, 5, 10, 20, 40)
GRID = (0.1, 1.0)
METHODS: dict[str, Callable[[], Any]] = {
    "pixels": lambda: FGMClassifier(T=10, time_limit=None),
    "pixels, squares and products": lambda: PolynomialFGMClassifier(T=10, time_limit=None),
}
"""Estimators with M and C."""


def folder() -> Path:
    """Where the data sets are."""
    if "MIPFS_DATA" not in os.environ:
        sys.exit("error: MIPFS_DATA is not set; it names the folder of the data sets")
    return Path(os.environ["MIPFS_DATA"])


def peak() -> float:
    """Peak memory of this process so far, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def usps(_: argparse.Namespace) -> None:
    """Odd digits against even ones: test error of every method at equal numbers of atoms."""
    data = mipfs.read(folder() / "usps" / "data.svm.gz")
    test = np.load(folder() / "usps" / "is_test.npy")
    X, y = np.asarray(data.block().dense()), data.y
    held = np.random.default_rng(0).random(len(y)) < 0.2
    print(f"usps: {np.count_nonzero(~test)} training rows, {np.count_nonzero(test)} test rows, {X.shape[1]} pixels")
    print("| method | M | C | test error | pixels used | CPU s |\n|---|---|---|---|---|---|")
    for M in SIZES:
        for name, make in METHODS.items():
            begin, errors = time.process_time(), []
            for C in GRID:
                model = make().set_params(M=M, C=C).fit(X[~test & ~held], y[~test & ~held])
                errors.append(1.0 - model.score(X[~test & held], y[~test & held]))
            model = clone(model).set_params(C=GRID[int(np.argmin(errors))]).fit(X[~test], y[~test])
            error, used = 1.0 - model.score(X[test], y[test]), int(model.support_.sum())
            seconds = time.process_time() - begin
            print(f"| {name} | {M} | {model.C:g} | {error:.2%} | {used} | {seconds:.1f} |", flush=True)


def news() -> Instance:
    """The training rows of news20_bigram."""
    place = folder() / "news20_bigram"
    train = ~np.load(place / "is_test.npy")
    X = sparse.csr_array(sparse.load_npz(place / "X.npz"))[train]
    return Instance.from_arrays(sparse.csc_array(X), np.load(place / "y.npy")[train].astype(float))


def plain(X: Any, v: np.ndarray[Any, Any], B: int) -> np.ndarray[Any, Any]:
    """The B largest √2 |Σ v x_j x_k| over j < k, (B,), from all co-occurrences."""
    best, weighed = np.zeros(B), sparse.csr_array(sparse.csc_array(X).multiply(v[:, None]))
    for start in range(0, X.shape[1], 2048):
        gram = sparse.coo_array(X[:, start : start + 2048].T @ weighed)
        values = np.abs(gram.data[gram.col > gram.row + start])
        if values.size > B:
            values = np.partition(values, -B)[-B:]
        best = np.sort(np.concatenate([best, values]))[-B:]
    return np.sqrt(2.0) * best[::-1]


def search(args: argparse.Namespace) -> None:
    """Searches along the way of `kelley`, and the pairs of the most frequent columns by a plain product."""
    data = news()
    before = peak()
    problem = Problem(data, atoms=Pairs(data, r=args.r), M=args.B, C=1.0, loss="squared-hinge", bias=False)
    atoms: Any = problem.atoms
    lengths = np.diff(data.X.indptr)
    print(f"news20_bigram: {data.n_samples} rows, {data.n_features} columns, {atoms.count} monomials")
    rows = np.bincount(data.X.indices, minlength=data.n_samples).astype(float)
    print(f"co-occurrences: {float((rows**2).sum()):.3g}; columns of two rows or more: {np.count_nonzero(lengths > 1)}")
    result = mipfs.solve(problem, "kelley", T=args.T)
    last = data.y * (problem.c_i if result.alpha is None else result.alpha)
    print(f"kelley, T = {args.T}: {result}")
    print(f"selected: {', '.join(result.selected)}")
    for what, v in (("first", data.y * problem.c_i), ("last", last)):
        finder = atoms.search()
        for turn in ("cold", "warm"):
            begin = time.process_time()
            ids, sizes = finder.search(v, args.B)
            seconds = time.process_time() - begin
            print(f"{what} dual vector, {turn}: {seconds:.2f} CPU s, {finder.work:.3g} products made", flush=True)
        print(f"  {', '.join(atoms.names[int(g)] for g in ids[:5])}, |omega| from {sizes[0]:.4g} to {sizes[-1]:.4g}")
        if args.plain and what == "last":
            begin = time.process_time()
            best = plain(data.X[:, lengths > 1], v, args.B)
            members = atoms.monomials.members(ids)
            ours = sizes[(members[:, 0] >= 0) & (members[:, 0] != members[:, 1])]
            one = np.sqrt(2.0) * float((np.abs(v) * abs(data.X).max(axis=1).toarray().ravel() ** 2).max())
            same = np.allclose(best[: ours.size], ours, rtol=1e-9) and (
                ours.size == best.size or best[ours.size] <= sizes[-1] * (1 + 1e-9)
            )
            print(
                f"  plain product: {time.process_time() - begin:.0f} CPU s; the same {ours.size} products: {same}; "
                f"one term is at most {one:.4g}"
            )
    begin = time.process_time()
    report = mipfs.verify(result, data)
    print(f"verified: {report.accepted} {report.reason}, {time.process_time() - begin:.1f} CPU s")
    print(f"peak memory: {peak():.2f} GB, of which {before:.2f} GB to read the data")


def exact(args: argparse.Namespace) -> None:
    """The best three of all products, proven; on WDBC compared with the expanded matrix."""
    wdbc = mipfs.read("instances/wdbc.svm", scale="standard")
    colon = mipfs.read(folder() / "colon_alon" / "data.svm.gz", scale="standard")
    print("| data | products | C | status | objective | gap | held | best three | verified | CPU s |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name, data, Cs in (("WDBC", wdbc, (1e-3, 1e-2)), ("colon", colon, (1e-4, 3e-4, 1e-3))):
        for C in Cs:
            problem = Problem(data, atoms=Pairs(data, r=0.0), M=3, C=C)
            begin = time.process_time()
            result = mipfs.solve(problem, time_limit=args.time_limit)
            seconds = time.process_time() - begin
            held, count = len((result.atoms or {})["names"]), problem.atoms.count
            verified = mipfs.verify(result, data).accepted
            print(
                f"| {name} | {count} | {C:g} | {result.status.name} | {result.objective:.6g} | {result.gap:.1e} "
                f"| {held} | {', '.join(result.selected)} | {verified} | {seconds:.1f} |",
                flush=True,
            )
            if count < 1000:
                whole = mipfs.solve(Problem(problem.data.only(np.arange(count)), M=3, C=C), time_limit=args.time_limit)
                print(f"  all {count} columns expanded: {whole.objective:.6g}, {', '.join(whole.selected)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("usps", "search", "exact"))
    parser.add_argument("--B", type=int, default=10, help="monomials at a time (search)")
    parser.add_argument("--T", type=int, default=10, help="iterations of kelley (search)")
    parser.add_argument("--r", type=float, default=0.0, help="of the kernel; 0: squares and products alone (search)")
    parser.add_argument("--plain", action="store_true", help="compare with a plain product (search)")
    parser.add_argument("--time-limit", type=float, default=300.0, help="seconds of every proof (exact)")
    args = parser.parse_args()
    {"usps": usps, "search": search, "exact": exact}[args.part](args)


if __name__ == "__main__":
    main()
