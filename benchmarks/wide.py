"""Feature generation on very wide sparse data: seconds and memory of `kelley`, beside what the data itself takes.

    python benchmarks/wide.py                     10⁶ features, 20,000 samples
    python benchmarks/wide.py --features 20000000 --nonzeros 40000000

Columns are drawn by a Zipf law (at most 3,000 non-zeros each), labels by ten of the longer ones. Memory is the peak of
the whole process, less what it was once the data stood in it.
"""

from __future__ import annotations

import argparse
import platform
import resource
import time
from importlib.metadata import version

import numpy as np
import numpy.typing as npt
from scipy import sparse

import mipfs

MOST = 3_000
"""Non-zeros of a column at most."""


def drawn(n: int, p: int, nonzeros: int, seed: int) -> tuple[sparse.csc_array, npt.NDArray[np.float64]]:
    """Columns with 1/rank as many non-zeros, and labels."""
    r = np.random.default_rng(seed)
    share = 1.0 / np.arange(1.0, p + 1.0)
    sizes = np.minimum(np.maximum(1, share * (nonzeros - p) / share.sum()), min(MOST, n)).astype(np.int64)
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    indices = r.integers(0, n, indptr[-1], dtype=np.int32)
    X = sparse.csc_array((r.random(indices.size) + 0.5, indices, indptr), shape=(n, p))
    X.sum_duplicates()
    ids = r.choice(min(p, 200), 10, replace=False)
    signal = np.asarray(X[:, ids] @ r.choice([-2.0, 2.0], 10))
    return X, np.where(signal + 0.5 * r.standard_normal(n) > np.median(signal), 1.0, -1.0)


def peak() -> float:
    """Peak memory of this process so far, MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def main() -> None:
    """Print a line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=20_000)
    parser.add_argument("--features", type=int, default=1_000_000)
    parser.add_argument("--nonzeros", type=int, default=4_000_000)
    parser.add_argument("--M", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    print(f"mipfs {version('mipfs')}, Python {platform.python_version()}, {platform.machine()}")
    X, y = drawn(given.samples, given.features, given.nonzeros, given.seed)
    mipfs.solve(
        mipfs.Problem(mipfs.Instance.from_arrays(X[:, :50], y), loss="squared-hinge", bias=False, M=2), "kelley", T=2
    )
    data = mipfs.Instance.from_arrays(X, y)
    stored, before = (X.data.nbytes + X.indices.nbytes + X.indptr.nbytes) / 2**20, peak()
    begin = time.perf_counter()
    result = mipfs.solve(mipfs.Problem(data, loss="squared-hinge", bias=False, M=given.M, C=1.0), "kelley", T=10)
    seconds = time.perf_counter() - begin
    begin = time.perf_counter()
    for _ in range(10):
        X.T @ y
    passes = time.perf_counter() - begin
    print(
        f"{given.samples} x {X.shape[1]}, {X.nnz} non-zeros, {stored:.0f} MiB; kelley T = 10: {seconds:.1f} s "
        f"(ten products X'v: {passes:.1f} s), peak {peak():.0f} MiB, {peak() - before:.0f} above the data's "
        f"({(peak() - before) * 2**20 / X.shape[1]:.0f} bytes a feature); {result}"
    )


if __name__ == "__main__":
    main()
