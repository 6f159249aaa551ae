"""What one row over the weights costs: CPU seconds of one thread with a row of parity, and without.

    MIPFS_DATA=folder python benchmarks/parity.py [--loss hinge] [--only WORD ...]

The groups are the samples above and below the median of the column that tells most of the labels (where that is one of
them, above and below its mean); the row holds their mean scores apart by half of what they are without it. Each problem
is solved once before it is timed, then three times, of which the least counts.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from typing import Any

import numpy as np
from batches import SETS, problem_of, read

SECONDS, TIMES = 60.0, 3


def halved(data: Any, result: Any) -> list[Any]:
    """The row of parity, within half of the distance of the mean scores of a result."""
    from mipfs import weight_rows

    X = np.asarray(data.stated(np.arange(data.n_features)), dtype=float)
    with np.errstate(invalid="ignore"):  # of columns of one value
        told = np.abs(np.corrcoef(X.T, data.y)[-1, :-1])
    column = X[:, int(np.argmax(np.nan_to_num(told)))]
    by = column > np.median(column)
    by = by if 0 < by.sum() < by.size else column > column.mean()
    terms = weight_rows.parity(data, by, 1.0)[0][0]
    apart = abs(sum(terms.get(name, 0.0) * w for name, w in result.weights.items()))
    return list(weight_rows.parity(data, by, 0.5 * apart))


def timed(problem: Any) -> tuple[float, Any]:
    """The least CPU seconds of some runs, and what came of the last one."""
    import mipfs

    spent = list[float]()
    for at in range(TIMES + 1):
        begin = time.process_time()
        result = mipfs.solve(problem, "branch", threads=1, gap=1e-4, time_limit=SECONDS)
        spent += [time.process_time() - begin] if at else []
    return min(spent), result


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--loss", default="hinge")
    parser.add_argument("--only", nargs="*", default=list(SETS))
    asked = parser.parse_args()
    if not os.environ.get("MIPFS_DATA"):
        sys.exit("error: MIPFS_DATA is unset; it names the folder that holds the data sets")
    print(f"{'':12}{'without':>16}{'with the row':>16}{'times':>7}{'objectives':>24}")
    for name, (M, C) in SETS.items():
        if name not in asked.only:
            continue
        data = read(name, "standard")
        plain, result = timed(problem_of(data, M, C, asked.loss))
        own, other = timed(problem_of(data, M, C, asked.loss, weight_rows=halved(data, result)))
        nodes = [f"{one:.2f} ({of.counters.get('nodes')})" for one, of in ((plain, result), (own, other))]
        values = f"{result.objective:.3f} {other.objective:.3f}"
        print(f"{name:12}{nodes[0]:>16}{nodes[1]:>16}{own / plain:7.2f}{values:>24}", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
