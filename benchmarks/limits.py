"""How far a run overshoots its time limit, and what the limit leaves, where samples times features are 10⁸.

    python benchmarks/limits.py [--seconds 5] [--numbers 1e8] [--only PART ...]

Every case runs in a process of its own, which may take 4 GiB. `over` is the clock of the run beyond its limit, `call`
the seconds of the whole call of `mipfs.solve` beyond it, so with what comes before and after that clock. The drivers of
other packages get the largest data that they accept.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MOST_BYTES = 4 << 30
SHAPES = {"tall": 1_000_000, "square": 10_000, "wide": 1_000}
"""Samples of each shape."""
CASES = [
    *((driver, "{}") for driver in ("branch", "gbd", "kelley")),
    ("branch", '{"loss": "logistic"}'),
    ("two_layer", '{"loss": "structural", "bias": false, "measure": "f1"}'),
    ("conic", "{}"),
    ("monolithic", "{}"),
]
OTHERS = {"conic": 4e5, "monolithic": 1e6}
"""Numbers of the data that drivers of other packages get."""
RUN = """
import json, sys, time
import numpy as np
from scipy import sparse
import mipfs
driver, given, kind, n, p, seconds = sys.argv[1:]
n, p, seconds = int(n), int(p), float(seconds)
r = np.random.default_rng(1)
if kind == "sparse":
    X = sparse.random_array((n, p), density=0.02, format="csc", rng=r)
else:
    X = r.standard_normal((n, p), dtype=np.float32).astype(float)
useful = min(10, p)
score = X[:, :useful] @ r.standard_normal(useful)
y = np.where(score + (0.05 if kind == "sparse" else 1.5) * r.standard_normal(n) > 0, 1.0, -1.0)
data = mipfs.Instance.from_arrays(X, y)
del X
small = mipfs.Instance.from_arrays(data.block(np.arange(min(p, 12))).values[:300], y[:300])
def problem(data):
    return mipfs.Problem(data, M=5, C=1.0, **json.loads(given))
mipfs.solve(problem(small), driver, time_limit=2)  # machine code is loaded, or made
asked = problem(data)
begin, cpu = time.perf_counter(), time.process_time()
result = mipfs.solve(asked, driver, time_limit=seconds)
took, cpu = time.perf_counter() - begin, time.process_time() - cpu
print(json.dumps({"over": result.seconds - seconds, "call": took - seconds, "cpu": cpu, "status": result.status.name,
    "stop": result.stop_reason.name, "objective": result.objective, "bound": result.bound}))
"""


def measured(driver: str, given: str, kind: str, size: tuple[int, int], seconds: float) -> dict[str, object]:
    """One run in a process of its own; what it says, or how it ended."""
    command = [sys.executable, "-c", RUN, driver, given, kind, *map(str, size), str(seconds)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    within = ["prlimit", f"--as={MOST_BYTES + (2 << 30)}"] if sys.platform == "linux" else []
    try:
        ran = subprocess.run([*within, *command], env=environment, capture_output=True, text=True, timeout=600)
    except subprocess.TimeoutExpired:
        return {"failed": "no answer in 600 s"}
    if ran.returncode:
        return {"failed": (ran.stderr.strip().splitlines() or [f"exit code {ran.returncode}"])[-1][:100]}
    found: dict[str, object] = json.loads(ran.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Print a line for every driver, kind and shape."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--numbers", type=float, default=1e8)
    parser.add_argument("--only", action="append", default=[], metavar="PART", help="of the line's first words")
    args = parser.parse_args()
    print(f"{'case':44}{'over':>7}{'call':>7}{'CPU':>7}  {'stop':12}{'objective':>12}{'bound':>12}", flush=True)
    for driver, given in CASES:
        for kind in ("dense", "sparse"):
            for shape, n in SHAPES.items():
                numbers = min(args.numbers, OTHERS.get(driver, args.numbers))
                n_here = min(n, int(numbers) // 10)
                p = int(numbers) // n_here
                loss = json.loads(given).get("loss", "hinge")
                name = f"{driver} {loss} {kind} {shape} {n_here:,}x{p:,}"
                if not all(part in name for part in args.only):
                    continue
                said = measured(driver, given, kind, (n_here, p), args.seconds)
                if "failed" in said:
                    print(f"{name:44} {said['failed']}", flush=True)
                else:
                    numbers_of = "{over:7.2f}{call:7.2f}{cpu:7.1f}  {stop:12}{objective:12.6g}{bound:12.6g}"
                    print(f"{name:44}{numbers_of.format(**said)}", flush=True)


if __name__ == "__main__":
    main()
