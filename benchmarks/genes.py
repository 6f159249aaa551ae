"""Few features among thousands: the best one, two or three genes, proven, with certificates that are checked.

    MIPFS_DATA=folder python benchmarks/genes.py [--quick] [--loss hinge] [--limit 900] [--sets colon_alon …] [--M 1 2]

One feature at every C from 0.01 to 1000 on colon_alon, leukemia_golub, prostate_singh and a synthetic 100 × 50,000; two
at C = 1 on the first three; three on colon_alon. `--quick` leaves out two features of prostate_singh, and three.
Seconds and CPU seconds are of the run, kernels compiled before.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import mipfs

SETS = ("colon_alon", "leukemia_golub", "prostate_singh", "synthetic")
EVERY_C = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)


def loaded(name: str) -> mipfs.Instance:
    """A data set, standardised."""
    if name == "synthetic":
        r = np.random.default_rng(0)
        X = r.standard_normal((100, 50_000))
        y = np.where(X[:, :5].sum(axis=1) + r.standard_normal(100) > 0, 1.0, -1.0)
        return mipfs.Instance.from_arrays(X, y, scale="standard")
    return mipfs.read(Path(os.environ["MIPFS_DATA"]) / name / "data.svm.gz", scale="standard")


def line(name: str, data: mipfs.Instance, loss: str, M: int, C: float, limit: float) -> str:
    """A row of the table: one solve, its certificate on disk, and its check."""
    problem = mipfs.Problem(data, loss=loss, M=M, C=C)  # type: ignore[arg-type]
    mipfs.solve(problem, "branch", iteration_limit=1)  # kernels, and the data's own pages
    cpu = time.process_time()
    result = mipfs.solve(problem, "branch", time_limit=limit)
    cpu = time.process_time() - cpu
    with tempfile.TemporaryDirectory() as folder:
        result.save(Path(folder) / "r.json")
        size = sum(path.stat().st_size for path in Path(folder).iterdir()) / 1e6
    report = mipfs.verify(result, data)
    said = "accepted" if report.accepted else f"REFUSED: {report.reason}"
    chosen = " ".join(result.selected)
    figures = f"{result.objective:.6g} | {100 * result.gap:.3g}% | {result.seconds:.2f} | {cpu:.2f} | {size:.2f}"
    return f"| {name} | {M} | {C:g} | {chosen} | {figures} | {report.seconds:.1f} | {said} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--loss", default="hinge")
    parser.add_argument("--limit", type=float, default=900.0)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    parser.add_argument("--M", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--C", nargs="+", type=float, help="in place of the table's")
    given = parser.parse_args()
    if "MIPFS_DATA" not in os.environ and given.sets != ["synthetic"]:
        sys.exit("error: MIPFS_DATA is unset; it names the folder that holds the data sets")
    print("| set | M | C | features | objective | gap left | s | CPU s | certificate MB | check s | verify |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for name in given.sets:
        data = loaded(name)
        for M in given.M:
            is_long = M == 3 or (M == 2 and name == "prostate_singh")
            if (M > 1 and name == "synthetic") or (M == 3 and name != "colon_alon") or (given.quick and is_long):
                continue
            for C in given.C or (EVERY_C if M == 1 else (1.0,)):
                print(line(name, data, given.loss, M, C, given.limit), flush=True)


if __name__ == "__main__":
    main()
