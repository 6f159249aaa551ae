"""The first answer on a fresh installation: what the process that answers spends, and what is compiled beside.

    python benchmarks/cold_start.py [--only NAME]

Every kind runs with an empty folder of machine code, then again with what was kept, and once in a folder where the
first kind has run before ("second": both sides' seconds together). Seconds of CPU and the largest memory of a process
are the operating system's; "beside" are the processes that only compile.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KINDS = {
    "dense hinge": ("branch", "{}", ""),
    "sparse hinge": ("branch", "{}", "sparse"),
    "logistic": ("branch", '{"loss": "logistic"}', ""),
    "squared hinge": ("branch", '{"loss": "squared-hinge"}', ""),
    "rows": ("branch", "{}", "rows"),
    "kelley": ("kelley", "{}", ""),
    "gbd": ("gbd", "{}", ""),
    "two_layer": ("two_layer", '{"loss": "structural", "bias": false, "measure": "f1"}', ""),
    "FGMClassifier": ("", "{}", "estimator"),
}
FIRST = "dense hinge"
RUN = """
import json, resource, sys, time
import numpy as np
from scipy import sparse
begun = time.perf_counter()
import mipfs
driver, given, how, wdbc = sys.argv[1:]
data = mipfs.read(wdbc, scale="standard")
if how == "sparse":
    X = np.asarray(data.block().values)
    data = mipfs.Instance.from_arrays(sparse.csc_array(X * (np.abs(X) > 1.5)), data.y)
if how == "estimator":
    from types import SimpleNamespace
    from mipfs.estimators import FGMClassifier
    X = np.asarray(data.block().values)
    found = FGMClassifier(M=5).fit(X, data.y)
    result = SimpleNamespace(objective=float(found.decision_function(X).sum()), status=SimpleNamespace(name="FITTED"))
else:
    problem = mipfs.Problem(data, M=5, C=0.1, **json.loads(given))
    if how == "rows":
        problem = problem.with_rows(np.ones((1, data.n_features)), -np.inf, 4.0)
    result = mipfs.solve(problem, driver, time_limit=20)
mine, others = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
print(json.dumps({
    "cpu": mine.ru_utime + mine.ru_stime, "mb": mine.ru_maxrss / 1024, "beside": others.ru_utime + others.ru_stime,
    "mb beside": others.ru_maxrss / 1024, "wall": time.perf_counter() - begun, "objective": result.objective,
    "status": result.status.name}))
"""


def measured(name: str, folder: str) -> dict[str, float]:
    """One run in a process of its own."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": folder, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", RUN, *KINDS[name], str(ROOT / "instances" / "wdbc.svm")]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(ran.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Print a table: every kind, each cold and then warm."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--only", choices=KINDS, action="append")
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    heads = ("CPU s", "MB", "beside", "MB", "wall", "warm CPU", "second")
    print(f"{'kind':16}" + "".join(f" {head:>8}" for head in heads) + "  status, objective")
    names = parser.parse_args().only or list(KINDS)
    with tempfile.TemporaryDirectory() as folder:
        first, after = Path(folder) / "first", Path(folder) / "after"
        measured(FIRST, str(first))
        for name in names:
            shutil.rmtree(after, ignore_errors=True)
            shutil.copytree(first, after)
            second = measured(name, str(after))
            with tempfile.TemporaryDirectory() as empty:
                cold, warm = measured(name, empty), measured(name, empty)
            same = cold["objective"] == warm["objective"] and cold["status"] == warm["status"]
            spent = (cold["cpu"], cold["mb"], cold["beside"], cold["mb beside"], cold["wall"], warm["cpu"])
            figures = "".join(f" {value:8.1f}" for value in (*spent, second["cpu"] + second["beside"]))
            print(
                f"{name:16}{figures}  {cold['status']} {cold['objective']:.6g}{'' if same else ' OTHER WARM'}",
                flush=True,
            )


if __name__ == "__main__":
    main()
