"""SCIP on the perspective form of FSP-M, built straight through PySCIPOpt and run in a process of its own.

    min ½ Σ t_j + C Σ ξ_i   s.t.   w_j² ≤ σ_j t_j,   y_i (x_i'w + b) + ξ_i ≥ 1,   Σ σ_j ≤ M,   σ binary

(Aytug 2015, FSP-M, with w_j for σ_j w_j.) SCIP runs on its defaults, on one thread, and its clock counts CPU
seconds, so that other work on the machine does not count against it. Its time excludes the building of the model.

    python benchmarks/exact_parts/scip.py < request

is that process: it reads a pickled request and prints the answer as one line of JSON.
"""

from __future__ import annotations

import json
import os
import pickle
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ONE_THREAD = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
PATIENCE = 4.0
"""A process that takes this many times the limit on the wall clock, and five minutes, is ended."""


def solve(X: Any, y: Any, M: int, C: float, *, time_limit: float, gap: float, link: bool = False) -> dict[str, Any]:
    """Solve one problem in a child process.

    Parameters
    ----------
    X : (n, p) ndarray
    y : (n,) ndarray of {-1, +1}
    M : int, features at most
    C : float, weight of the hinge loss
    time_limit : float, CPU seconds by SCIP's clock
    gap : float, relative gap at which SCIP ends
    link : bool, add the rows |w_j| ≤ W σ_j with W = √(2 L(0)), which hold for every optimal w

    Returns
    -------
    dict
        ``status objective bound nodes seconds cpu_seconds process_cpu_seconds support scip``; ``seconds`` is the
        wall time of SCIP's solve, ``cpu_seconds`` its CPU time by its own clock, ``process_cpu_seconds`` what the
        system counts for the whole process (Python and the building of the model as well).
    """
    request = pickle.dumps({"X": X, "y": y, "M": M, "C": C, "time_limit": time_limit, "gap": gap, "link": link})
    child = subprocess.Popen(
        [sys.executable, str(Path(__file__).resolve())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, **ONE_THREAD},
    )
    try:
        out, _ = child.communicate(request, timeout=PATIENCE * time_limit + 300.0)
    except subprocess.TimeoutExpired:
        return {"status": "KILLED", "seconds": PATIENCE * time_limit + 300.0, "cpu_seconds": time_limit}
    finally:
        if child.poll() is None:
            child.kill()
            child.wait()
    if child.returncode != 0:
        return {"status": f"FAILED (exit code {child.returncode})", "seconds": None, "cpu_seconds": None}
    answer: dict[str, Any] = json.loads(out.splitlines()[-1])
    return answer


def main() -> None:
    """The child: build, solve, answer."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # SCIP prints to standard output
    answers.write(json.dumps(_run(**pickle.load(sys.stdin.buffer))) + "\n")
    answers.flush()


def _run(X: Any, y: Any, M: int, C: float, time_limit: float, gap: float, link: bool) -> dict[str, Any]:
    from pyscipopt import Model, quicksum

    n, p = X.shape
    scip = Model()
    scip.hideOutput()
    scip.setParams(
        {
            "limits/gap": gap,
            "limits/time": time_limit,
            "timing/clocktype": 1,
            "lp/threads": 1,
            "parallel/maxnthreads": 1,
        }
    )
    sigma = [scip.addVar(vtype="B") for _ in range(p)]
    w = [scip.addVar(lb=None) for _ in range(p)]
    t = [scip.addVar(lb=0.0) for _ in range(p)]
    xi = [scip.addVar(lb=0.0) for _ in range(n)]
    b = scip.addVar(lb=None)
    scip.setObjective(0.5 * quicksum(t) + C * quicksum(xi))
    scip.addCons(quicksum(sigma) <= M)
    for j in range(p):
        scip.addCons(w[j] * w[j] <= sigma[j] * t[j])
    for i in range(n):
        row = (float(y[i]) * X[i]).tolist()
        scip.addCons(quicksum(a * v for a, v in zip(row, w, strict=True)) + float(y[i]) * b + xi[i] >= 1)
    if link:
        W = (2.0 * C * 2.0 * min((y > 0).sum(), (y < 0).sum())) ** 0.5  # ½‖w‖² ≤ v ≤ min over b = ±1 of L(yb)
        for j in range(p):
            scip.addCons(w[j] <= W * sigma[j])
            scip.addCons(-w[j] <= W * sigma[j])
    begin = time.perf_counter()
    scip.optimize()
    wall = time.perf_counter() - begin
    used = resource.getrusage(resource.RUSAGE_SELF)
    found = scip.getNSols() > 0
    bound = scip.getDualbound()
    return {
        "status": {"gaplimit": "OPTIMAL", "optimal": "OPTIMAL", "timelimit": "TIME_LIMIT"}.get(
            scip.getStatus(), scip.getStatus()
        ),
        "objective": scip.getPrimalbound() if found else None,
        "bound": bound if abs(bound) < scip.infinity() else None,
        "nodes": int(scip.getNTotalNodes()),
        "seconds": wall,
        "cpu_seconds": scip.getSolvingTime(),
        "process_cpu_seconds": used.ru_utime + used.ru_stime,
        "support": [j for j in range(p) if scip.getVal(sigma[j]) > 0.5] if found else None,
        "versions": {"scip": f"{scip.getMajorVersion()}.{scip.getMinorVersion()}.{scip.getTechVersion()}"},
    }


if __name__ == "__main__":
    main()
