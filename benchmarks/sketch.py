"""BSS (Paul 2016): ours against a straightforward NumPy form of the same steps, on the same machine.

    python benchmarks/sketch.py [--n-features 50000] [--rank 250] [--r 500] [--steps 25]
    MIPFS_DATA=folder python benchmarks/sketch.py --sets colon_alon leukemia_golub prostate_singh --r 300

The straightforward form computes both potentials of all rows at every step; it is timed for so many steps (--steps 0:
all of them), and its time for all r is that times r/steps. Both must take the same columns as far as it goes. Times are
CPU seconds of one BLAS thread, from the singular vectors on.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

import mipfs
from mipfs.lab.sketch.bss import candidate_order, promise_eigenvalues, sparsify
from mipfs.lab.sketch.guarantee import eigenvalues
from mipfs.lab.sketch.picks import gathered
from mipfs.lab.sketch.source import Basis, Source

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.sketch_oracles import bss


def main() -> None:
    """Print a line for every matrix."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n-features", type=int, default=50_000)
    parser.add_argument("--rank", type=int, default=250)
    parser.add_argument("--r", type=int, default=500)
    parser.add_argument("--steps", type=int, default=25, help="of the straightforward form; 0: all r")
    parser.add_argument("--sets", nargs="+", metavar="FOLDER", help="gene sets below MIPFS_DATA, standardised")
    a = parser.parse_args()
    folder = os.environ.get("MIPFS_DATA")
    if a.sets and not folder:
        sys.exit("error: MIPFS_DATA is not set; it names the folder of the data sets")
    print(", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy")))
    header = ("matrix", "p", "rank", "r", "ours s", "NumPy s", "NumPy/ours", "epsilon", "promised")
    print("".join(f"{title:>16}" for title in header))
    with threadpool_limits(1, user_api="blas"):
        if not a.sets:
            X = np.random.default_rng(0).standard_normal((a.rank, a.n_features))
            X *= np.exp(np.random.default_rng(1).standard_normal(a.n_features))  # columns of different size
            Q = np.linalg.qr(X.T)[0]
            row("lognormal", Basis(Q, np.ones(a.rank), 0.0), np.linalg.norm(X, axis=0), a.r, a.steps)
        for name in a.sets or ():
            source = Source(mipfs.read(Path(str(folder)) / name / "data.svm.gz", scale="standard"))
            row(name, source.basis, source.norms, a.r, a.steps)


def row(name: str, basis: Basis, norms: np.ndarray, r: int, asked: int) -> None:
    """One line of the table."""
    steps = asked or r
    begin = time.process_time()
    order, weight = sparsify(basis.V, norms, r)
    ours = time.process_time() - begin
    begin = time.process_time()
    theirs, _ = bss(basis.V, candidate_order(basis.V, norms), r, steps)
    numpy = (time.process_time() - begin) * r / steps
    assert order[:steps].tolist() == theirs, "the two forms took different columns"
    found = eigenvalues(basis, gathered(order, weight))
    epsilon, bound = max(1.0 - found.low, found.high - 1.0), promise_eigenvalues(basis.rank, r).epsilon
    assert epsilon <= bound * (1.0 + 1e-9)
    cells = [f"{ours:.2f}", f"{numpy:.1f}", f"{numpy / ours:.0f}", f"{epsilon:.3f}", f"{bound:.3f}"]
    print("".join(f"{cell:>16}" for cell in (name, str(norms.size), str(basis.rank), str(r), *cells)), flush=True)


if __name__ == "__main__":
    main()
