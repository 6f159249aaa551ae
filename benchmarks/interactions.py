"""Products of features that nobody stores: what a search over all of them costs, and the proven best three.

    MIPFS_DATA=folder python benchmarks/interactions.py search    one search among 1.4 million million, news20_bigram
    MIPFS_DATA=folder python benchmarks/interactions.py exact     the proven best three of all products: WDBC, colon

CPU seconds of this process, on one thread; peak memory of the process. `search` asks again and again along the way of
`kelley`, and compares the best products with those of a plain product of all columns that stand in two rows or more
(`--plain`: minutes); a product with any other column has one term, which is bounded by its row. `exact` compares with
enumeration where that fits. What products bring on usps is measured by `additive.py`.
"""

from __future__ import annotations

import argparse
import itertools
import os
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.svm import SVC

import mipfs
from mipfs.atoms.pairs import Pairs
from mipfs.data.instance import Instance
from mipfs.problem import Problem

FEW = 6
"""Features whose products are enumerated."""


def folder() -> Path:
    """Where the data sets are."""
    if "MIPFS_DATA" not in os.environ:
        sys.exit("error: MIPFS_DATA is not set; it names the folder of the data sets")
    return Path(os.environ["MIPFS_DATA"])


def peak() -> float:
    """Peak memory of this process so far, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


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


def enumerated(data: Instance, M: int, C: float) -> tuple[float, tuple[str, ...]]:
    """The least objective of all selections of M of the columns or fewer, each solved by LIBSVM, and its columns."""
    X, y = data.block().dense(), data.y
    least, best = C * 2.0 * min(np.count_nonzero(y > 0), np.count_nonzero(y < 0)), tuple[int, ...]()  # w = 0
    for size in range(1, M + 1):
        for chosen in itertools.combinations(range(data.n_features), size):
            svm = SVC(kernel="linear", C=C, tol=1e-6).fit(X[:, chosen], y)
            short = np.maximum(0.0, 1.0 - y * svm.decision_function(X[:, chosen]))
            value = 0.5 * float(np.square(svm.coef_).sum()) + C * float(short.sum())
            least, best = (value, chosen) if value < least else (least, best)
    return least, tuple(data.feature_names[j] for j in best)


def exact(args: argparse.Namespace) -> None:
    """The best three of all products, proven; compared with enumeration, and with a tree over the expanded matrix."""
    wdbc = mipfs.read(Path(__file__).resolve().parents[1] / "instances" / "wdbc.svm", scale="standard")
    colon = mipfs.read(folder() / "colon_alon" / "data.svm.gz", scale="standard")
    few = wdbc.only(np.arange(20, 20 + FEW))
    print("| data | products | C | status | objective | gap | held | best three | verified | CPU s | compared with |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    tasks = ((f"WDBC, {FEW} features", few, (1e-3, 1e-2)), ("WDBC", wdbc, (1e-3, 1e-2)))
    for name, data, Cs in (*tasks, ("colon", colon, (1e-4, 3e-4, 1e-3))):
        for C in Cs:
            problem = Problem(data, atoms=Pairs(data, r=0.0), M=3, C=C)
            begin = time.process_time()
            result = mipfs.solve(problem, time_limit=args.time_limit)
            seconds = time.process_time() - begin
            held, count, other = len((result.atoms or {})["names"]), problem.atoms.count, ""
            verified = mipfs.verify(result, data).accepted
            if count < 1000:
                written = problem.data.only(np.arange(count))
                if data is few:
                    value, names = enumerated(written, 3, C)
                else:
                    tree = mipfs.solve(Problem(written, M=3, C=C), time_limit=args.time_limit)
                    value, names = tree.objective, tree.selected
                what = "enumeration (LIBSVM)" if data is few else f"all {count} columns written out"
                same = "the same" if set(names) == set(result.selected) else ", ".join(names)
                other = f"{what}: {value:.6g}, {same}"
            print(
                f"| {name} | {count} | {C:g} | {result.status.name} | {result.objective:.6g} | {result.gap:.1e} "
                f"| {held} | {', '.join(result.selected)} | {verified} | {seconds:.1f} | {other} |",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("search", "exact"))
    parser.add_argument("--B", type=int, default=10, help="monomials at a time (search)")
    parser.add_argument("--T", type=int, default=10, help="iterations of kelley (search)")
    parser.add_argument("--r", type=float, default=0.0, help="of the kernel; 0: squares and products alone (search)")
    parser.add_argument("--plain", action="store_true", help="compare with a plain product (search)")
    parser.add_argument("--time-limit", type=float, default=300.0, help="seconds of every proof (exact)")
    args = parser.parse_args()
    {"search": search, "exact": exact}[args.part](args)


if __name__ == "__main__":
    main()
