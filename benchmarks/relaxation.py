"""Feature generation against LIBLINEAR, SimpleMKL and Clarabel, each pair in one run.

    MIPFS_DATA=folder python benchmarks/relaxation.py [--only news dense type-one memory estimator] [--repeats 3]

news      news20_bigram (11,314 × 1,691,494, real text with its own test split), or a generated problem of that shape
dense     a dense 4,096 × 65,536 problem with planted features (Tan 2014, section 6.2.3)
type-one  Tan 2014's dense 4,096 × 4,096 Type I problem against SimpleMKL and Clarabel on the same pool
memory    peak memory of the news run above the level after imports, in units of the CSC arrays
estimator FGMClassifier on news20_bigram, farm_ads and pcmac (MIPFS_DATA) as a user calls it, in CPU seconds and units
          of ten passes X'v over the same CSR matrix, with LIBLINEAR's ℓ1-SVM beside it

Times are medians; ratios are peer / ours.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.svm import LinearSVC, l1_min_c

from mipfs.data.instance import Instance
from mipfs.drivers import solve
from mipfs.estimators import FGMClassifier
from mipfs.problem import Problem
from mipfs.readers import read

Split = tuple[Any, np.ndarray, Any, np.ndarray]


def timed(run: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """Median seconds of `run`, and its last answer."""
    seconds, answer = [], None
    for _ in range(repeats):
        begin = time.perf_counter()
        answer = run()
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds), answer


def news() -> Split:
    """Training and test part of news20_bigram, or of a generated problem of that shape."""
    folder = os.environ.get("MIPFS_DATA")
    if folder and (Path(folder) / "news20_bigram").is_dir():
        path = Path(folder) / "news20_bigram"
        X, y = sparse.load_npz(path / "X.npz").tocsr(), np.load(path / "y.npy").astype(float)
        test = np.load(path / "is_test.npy").astype(bool)
        print("news20_bigram")
    else:
        print("a generated problem of the shape of news20_bigram (MIPFS_DATA is unset or has no news20_bigram)")
        r = np.random.default_rng(0)
        n, p, per_row = 18846, 1691494, 432
        columns = np.minimum((p * r.random((n, per_row)) ** 6).astype(np.int64), p - 1)
        values = r.uniform(0.5, 1.5, (n, per_row)) / per_row**0.5
        X = sparse.csr_array((values.ravel(), columns.ravel(), np.arange(0, n * per_row + 1, per_row)), shape=(n, p))
        X.sum_duplicates()
        w = np.zeros(p)
        w[r.integers(0, 3000, 300)] = r.standard_normal(300)
        scores = X @ w
        y, test = np.where(scores > np.median(scores), 1.0, -1.0), np.arange(n) >= 11314
    return sparse.csc_array(X[~test]), y[~test], sparse.csr_array(X[test]), y[test]


def ours(data: Instance, B: int, T: int, C: float) -> Any:
    """Feature generation with T selections of B features, squared hinge, no bias."""
    problem = Problem(data, loss="squared-hinge", bias=False, M=B, C=C)
    return solve(problem, "kelley", T=T, gap=1e-4, refit=False)


def accuracy(result: Any, X: Any, y: np.ndarray) -> tuple[int, float, np.ndarray]:
    """Features used, share of test rows that are right, positions of the features."""
    ids = np.array([int(name[1:]) - 1 for name in result.relaxed["weights"]], dtype=np.int64)
    w = np.array(list(result.relaxed["weights"].values()))
    return ids.size, float(np.mean((X[:, ids] @ w > 0) == (y > 0))), ids


def lasso(X: Any, y: np.ndarray, wanted: int) -> float:
    """The C at which LIBLINEAR's ℓ1-SVM keeps about `wanted` features, by bisection (not timed)."""
    low, high = 1e-4, 1e2
    for _ in range(14):
        C = (low * high) ** 0.5
        count = int(np.count_nonzero(l1(X, y, C).coef_))
        if abs(count - wanted) <= 0.03 * wanted:
            return C
        low, high = (C, high) if count < wanted else (low, C)
    return C


def l1(X: Any, y: np.ndarray, C: float) -> Any:
    """LIBLINEAR's ℓ1-regularised squared-hinge SVM."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return LinearSVC(penalty="l1", dual=False, C=C, fit_intercept=False).fit(X, y)


def run_news(repeats: int) -> None:
    """The table of the text problem."""
    X, y, X_test, y_test = news()
    seconds, data = timed(lambda: Instance.from_arrays(X, y), repeats)
    v = np.random.default_rng(0).standard_normal(y.size)
    bare = timed(lambda: X.T @ v, 11)[0]
    rows = sparse.csr_array(X)
    scattered = timed(lambda: rows.T @ v, 11)[0]
    print(f"n, p, nonzeros: {X.shape[0]}, {X.shape[1]}, {X.nnz}; instance checked in {seconds:.3f} s")
    print(f"one pass X.T @ v: {bare * 1e3:.1f} ms by columns, {scattered * 1e3:.1f} ms by rows (CSR)")
    ours(data, 10, 2, 10.0)
    fgm, result = timed(lambda: ours(data, 10, 10, 10.0), repeats)
    k, right, _ = accuracy(result, X_test, y_test)
    print(f"B = 10, T = 10: {fgm:.3f} s, {k} features, {right:.1%}; {fgm / (10 * bare):.2f} × ten passes by columns")
    liblinear = sparse.csr_matrix(X)
    titles = ("wanted", "ours s", "features", "test", "LIBLINEAR s", "features", "test", "ratio")
    print("".join(f"{title:>12}" for title in titles))
    for wanted, B, T in ((115, 24, 5), (250, 52, 5), (500, 110, 5)):
        fgm, result = timed(partial(ours, data, B, T, 10.0), repeats)
        k, right, _ = accuracy(result, X_test, y_test)
        C = lasso(liblinear, y, wanted)
        peer, model = timed(partial(l1, liblinear, y, C), repeats)
        kept = int(np.count_nonzero(model.coef_))
        peer_right = float(np.mean((X_test @ model.coef_[0] > 0) == (y_test > 0)))
        print(f"{wanted:>12}{fgm:>12.3f}{k:>12}{right:>12.1%}", end="")
        print(f"{peer:>12.3f}{kept:>12}{peer_right:>12.1%}{peer / fgm:>12.1f}")


def text(name: str) -> tuple[Any, np.ndarray] | None:
    """The training rows of a set of MIPFS_DATA in CSR, as scikit-learn users hold them; None where it is not there."""
    place = Path(os.environ.get("MIPFS_DATA", "")) / name
    if name == "news20_bigram" and (place / "X.npz").is_file():
        train = ~np.load(place / "is_test.npy").astype(bool)
        return sparse.csr_matrix(sparse.load_npz(place / "X.npz").tocsr()[train]), np.load(place / "y.npy")[train]
    if not (place / "data.svm.gz").is_file():
        return None
    data = read(place / "data.svm.gz", scale="none")
    return sparse.csr_matrix(data.block().values), data.y


def cpu(run: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """Least CPU seconds of `run`, which other work on the machine does not lengthen much, and its last answer."""
    seconds, answer = [], None
    for _ in range(repeats):
        begin = time.process_time()
        answer = run()
        seconds.append(time.process_time() - begin)
    return min(seconds), answer


def run_estimator(repeats: int) -> None:
    """Fits as users make them: ten selections and all their features, and the gap closed with M features."""
    ways: dict[str, dict[str, Any]] = {
        "T = 10, keep all": {"T": 10, "keep": "all"},
        "gap 1e-3": {},
        "1e-2": {"gap": 1e-2},
    }
    for name in ("news20_bigram", "farm_ads", "pcmac"):
        found = text(name)
        if found is None:
            print(f"{name}: not in MIPFS_DATA")
            continue
        X, y = found
        v = np.random.default_rng(0).standard_normal(y.size)
        passes = cpu(lambda X=X, v=v: [X.T @ v for _ in range(10)], repeats)[0]  # type: ignore[misc]
        peer = cpu(partial(l1, X, y, 1.0), repeats)[0]
        print(
            f"{name}: ten passes {passes:.4f} s; LIBLINEAR (ℓ1, C = 1) {peer:.2f} s, {peer / passes:.1f} × the passes"
        )
        for way, options in ways.items():
            for bias in (False, True):
                fit = partial(FGMClassifier(M=10, bias=bias, time_limit=None, **options).fit, X, y)
                FGMClassifier(M=10, bias=bias, T=2).fit(X[: min(400, y.size), :2000], np.arange(min(400, y.size)) % 2)
                seconds, model = cpu(fit, repeats)
                result = model.result_
                print(
                    f"  {way:17}{'bias' if bias else 'no bias':8} {seconds:.3f} s, {seconds / passes:.2f} × passes; "
                    f"{model.support_.sum()} features, {model.n_iter_} rounds, bound {result.bound:.3f}, relaxation at "
                    f"most {result.relaxed['upper']:.3f}, objective of 10 features {result.objective:.2f}",
                    flush=True,
                )


def run_dense(repeats: int) -> None:
    """Planted features in a dense problem."""
    from mipfs.generators.synthetic import tan_2014

    drawn = tan_2014(4096, 65536, 400, seed=1, n_test=1024)
    (X, y), (X_test, y_test), planted = drawn["train"], drawn["test"], set(drawn["S"].tolist())
    data = Instance.from_arrays(X, y)
    fgm, result = timed(lambda: ours(data, 40, 5, 10.0), repeats)
    k, right, ids = accuracy(result, X_test, y_test)
    hits = len(planted & set(ids.tolist()))
    print(
        f"dense 4096 × 65536, 400 planted: ours {fgm:.2f} s, {k} features, {hits} planted, test {right:.1%}", flush=True
    )
    low = float(l1_min_c(X, y, loss="squared_hinge", fit_intercept=False))  # below it no feature enters
    high = 4.0 * low
    for _ in range(6):  # the C at which it keeps about as many features
        C = (low * high) ** 0.5
        begin = time.perf_counter()
        model = l1(X, y, C)
        peer = time.perf_counter() - begin
        kept = np.flatnonzero(model.coef_[0])
        if 0.8 * k <= kept.size <= 1.3 * k:
            break
        low, high = (C, high) if kept.size < k else (low, C)
    peer_hits = len(planted & set(kept.tolist()))
    right = float(np.mean((X_test @ model.coef_[0] > 0) == (y_test > 0)))
    print(f"  LIBLINEAR (ℓ1, C = {C:.2g}) {peer:.2f} s, {kept.size} features, {peer_hits} planted, test {right:.1%}")
    print(f"  ratio {peer / fgm:.1f}")


def run_type_one(repeats: int) -> None:
    """The restricted problem: the same pool, the same objective, three solvers."""
    from mipfs.drivers.kelley import Options
    from mipfs.drivers.most_violated import MostViolated
    from mipfs.generators.synthetic import tan_2014
    from mipfs.inner.proximal import Proximal
    from mipfs.inner.restricted import SelectionPool, feasible
    from mipfs.lab.shelf.simple_mkl import simple_mkl
    from mipfs.run.run import Run

    X, y = tan_2014(4096, 4096, 400, seed=1, n_test=0)["train"]
    data, C, B, T = Instance.from_arrays(X, y), 10.0, 50, 5
    problem = Problem(data, loss="squared-hinge", bias=False, M=B, C=C)

    def generate() -> tuple[SelectionPool, float, float]:
        """Feature generation; seconds are of the last restricted problem's pool built up step by step."""
        most_violated, method, pool = MostViolated(Run(problem, Options()), "hull"), Proximal(problem), SelectionPool()
        alpha, value = feasible(problem, problem.c_i), float(np.sum(problem.c_i))
        spent = 0.0
        for _ in range(T):
            ids, sigma, _ = most_violated(alpha)
            pool.add(ids, sigma)
            begin = time.perf_counter()
            solution = method.solve(pool, 1e-5 * value, lambda: False)
            spent += time.perf_counter() - begin
            alpha, value = solution.alpha, solution.upper
        return pool, value, spent

    generate()
    whole, (pool, value, spent) = timed(generate, repeats)
    print(f"Type I 4096 × 4096, B = {B}, T = {T}, C = {C:g}: objective {value:.6f}")
    print(f"  ours {whole:.3f} s for all {T} rounds, {spent:.3f} s of it in restricted problems")
    members = [ids for ids, _ in pool.members]

    def fresh() -> float:
        """Ours on the final pool alone, from zero."""
        return Proximal(problem).solve(pool, 1e-5 * value, lambda: False).upper

    alone, again = timed(fresh, repeats)
    print(f"  ours on the last pool from zero: {alone:.3f} s, objective {again:.6f}")
    for newton in (True, False):
        begin = time.perf_counter()
        mixture = simple_mkl(data, members, C, gap=1e-4, time_limit=120.0, newton=newton)
        spent = time.perf_counter() - begin
        kind = "primal Newton" if newton else "dual coordinate descent"
        reached = "" if mixture.gap <= 1e-4 else " and not there yet"
        print(f"  SimpleMKL with LIBLINEAR's {kind}: {spent:.2f} s, {mixture.svms} SVMs,", end=" ")
        print(f"objective {mixture.objective:.6f}, gap {mixture.gap:.1e};", end=" ")
        print(f"ratio {spent / alone:.0f}{reached}", flush=True)
    peer, reference = clarabel(data, members, C)
    print(f"  Clarabel on the same pool: {peer:.2f} s, objective {reference:.6f}; ratio {peer / alone:.0f}")


def clarabel(data: Instance, members: list[np.ndarray], C: float) -> tuple[float, float]:
    """min ½(Σ‖w_t‖)² + (C/2) Σ ξ² declared in CVXPY: seconds (with the modelling layer) and value."""
    import cvxpy as cp

    begin = time.perf_counter()
    w = [cp.Variable(ids.size) for ids in members]
    total = cp.Variable()
    scores = sum(np.ascontiguousarray(data.X[:, ids]) @ part for ids, part in zip(members, w, strict=True))
    slack = cp.Variable(data.n_samples, nonneg=True)
    program = cp.Problem(
        cp.Minimize(0.5 * cp.square(total) + 0.5 * C * cp.sum_squares(slack)),
        [cp.multiply(data.y, scores) >= 1 - slack, sum(cp.norm(part) for part in w) <= total],
    )
    program.solve(solver=cp.CLARABEL)
    return time.perf_counter() - begin, float(program.value)


def peak() -> float:
    """Peak resident memory of this process in KiB (Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith("VmHWM")))


def memory_child(folder: str, queue: Any) -> None:
    """Peak memory above the level after imports: the data and the whole run."""
    r = np.random.default_rng(0)
    small = Instance.from_arrays(
        sparse.random_array((40, 60), density=0.1, rng=r, format="csc"), np.tile([1.0, -1.0], 20)
    )
    ours(small, 3, 2, 1.0)  # imports and compiled kernels
    Path("/proc/self/clear_refs").write_text("5")  # the peak so far was the parent's, or an import's
    before = peak()
    parts = [np.load(Path(folder) / f"{name}.npy") for name in ("data", "indices", "indptr", "y")]
    X = sparse.csc_array(tuple(parts[:3]), shape=(parts[3].size, parts[2].size - 1))
    ours(Instance.from_arrays(X, parts[3]), 100, 5, 10.0)
    queue.put((before, peak(), sum(part.nbytes for part in parts[:3]) / 1024))


def run_memory() -> None:
    """Peak memory of the text problem, measured in a process of its own that loads nothing but the CSC arrays."""
    X, y, _, _ = news()
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    with tempfile.TemporaryDirectory() as folder:
        for name, part in (("data", X.data), ("indices", X.indices), ("indptr", X.indptr), ("y", y)):
            np.save(Path(folder) / f"{name}.npy", part)
        child = context.Process(target=memory_child, args=(folder, queue))
        child.start()
        before, after, arrays = queue.get()
        child.join()
    print(f"CSC arrays {arrays / 1024:.0f} MiB; peak after imports {before / 1024:.0f} MiB, after data and run")
    print(f"{after / 1024:.0f} MiB: {(after - before) / arrays:.2f} × the CSC arrays, the data itself included")


def main() -> None:
    """Run the parts that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = {
        "news": lambda a: run_news(a.repeats),
        "dense": lambda a: run_dense(a.repeats),
        "type-one": lambda a: run_type_one(a.repeats),
        "memory": lambda a: run_memory(),
        "estimator": lambda a: run_estimator(a.repeats),
    }
    parser.add_argument("--only", nargs="+", choices=list(parts), default=list(parts))
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    print(
        ", ".join(
            f"{name} {version(name)}" for name in ("numpy", "scipy", "numba", "scikit-learn", "cvxpy", "clarabel")
        )
    )
    for part in arguments.only:
        parts[part](arguments)


if __name__ == "__main__":
    main()
