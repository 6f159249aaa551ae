"""El0ps on WDBC, in an interpreter of its own, beside ours on the same problem.

    min Σ loss(m_i) + ‖w‖² + λ‖w‖₀,   m_i = y_i x_i'w

is 2·(P) with penalty λ/2, without a bias, at C = 1 for (1 − m)₊² and C = 1/2 for log(1 + e^(−m)).

    INTERPRETER benchmarks/exact_parts/peer_el0ps.py < request

is the process that runs El0ps; the interpreter needs ``el0ps==0.0.4`` and ``mpich`` from a package index, which are
no part of this project's environment.
"""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

LOSSES = {"squared-hinge": 1.0, "logistic": 0.5}
"""The C of (P) that belongs to each loss."""
LAMBDAS = (20.0, 10.0, 5.0)
GAPS = (1e-8, 1e-4)
"""El0ps's default relative gap, and ours."""
OPTIMA = {
    ("squared-hinge", 20.0): (129.5992913774, (21, 23, 27)),
    ("squared-hinge", 10.0): (97.1727964702, (13, 21, 23, 27)),
    ("logistic", 20.0): (135.7377227497, (23, 27)),
    ("logistic", 10.0): (110.1174044702, (7, 21, 23)),
}
"""Optimum and support (from 0) by brute force."""


def run(store: Any, driver: str, interpreter: str | None, limit: float, gaps: tuple[float, ...]) -> None:
    """Measure both solvers on all the problems; without an interpreter for El0ps, ours only."""
    import mipfs
    from exact_parts.ours import measure
    from exact_parts.store import ROOT

    data = mipfs.read(ROOT / "instances" / "wdbc.svm", scale="standard")
    for gap in gaps:
        for loss, C in LOSSES.items():
            for lam in LAMBDAS:
                problem = mipfs.Problem(data, loss=loss, bias=False, lam=lam / 2.0, C=C)
                name = f"wdbc {loss} lambda={lam:g} gap={gap:g}"
                facts = {"suite": "el0ps", "problem": name, "loss": loss, "lambda": lam, "asked_gap": gap}
                for solver in (driver, *(["el0ps"] if interpreter else [])):
                    key = f"{name} | {solver}"
                    line = store.get(key, limit)
                    if line is None and solver == "el0ps":
                        assert interpreter is not None
                        measured = _ask(interpreter, data.X, data.y, loss, lam, gap, limit)
                        line = store.add(key, **facts, solver=solver, limit=limit, **measured)
                    elif line is None:
                        measured = measure(problem, solver, limit=limit, gap=gap)
                        for value in ("objective", "bound"):
                            measured[value] *= 2.0
                        line = store.add(key, **facts, solver=solver, limit=limit, **measured)
                    print(
                        f"{name:<44} {solver:<8} {line['status']:<11} {line['objective'] or float('nan'):.10f} "
                        f"{line['support']} nodes {line['nodes']} {line['seconds']:.3f} s",
                        flush=True,
                    )


def _ask(interpreter: str, X: Any, y: Any, loss: str, lam: float, gap: float, limit: float) -> dict[str, Any]:
    from exact_parts.store import clocks

    request = pickle.dumps({"X": X, "y": y, "loss": loss, "lam": lam, "gap": gap, "limit": limit})
    with clocks() as spent:
        child = subprocess.run(
            [interpreter, str(Path(__file__).resolve())], input=request, capture_output=True, check=False
        )
    if child.returncode != 0:
        said = child.stderr.decode(errors="replace").strip().splitlines()
        return {"status": f"FAILED: {said[-1] if said else child.returncode}", "objective": None, "support": None} | {
            "nodes": None,
            "seconds": spent["seconds"],
        }
    answer: dict[str, Any] = json.loads(child.stdout.splitlines()[-1])
    return answer | {"others_busy": spent.get("others_busy")}


def main() -> None:
    """The child: El0ps on one problem, compiled on a small one before the clock starts."""
    from importlib.metadata import version

    import numpy as np
    from el0ps.datafit import Logistic, Squaredhinge
    from el0ps.penalty import L2norm
    from el0ps.solver import BnbSolver

    q = pickle.load(sys.stdin.buffer)
    X, y, lam = np.asfortranarray(q["X"]), np.ascontiguousarray(q["y"]), q["lam"]
    datafit = {"squared-hinge": Squaredhinge, "logistic": Logistic}[q["loss"]]
    BnbSolver().solve(datafit(y[::20].copy()), L2norm(1.0), np.asfortranarray(X[::20, :4]), 0.5)
    solver = BnbSolver(relative_gap=q["gap"], time_limit=q["limit"])
    wall, cpu = time.perf_counter(), time.process_time()
    result = solver.solve(datafit(y), L2norm(1.0), X, lam)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    support = np.flatnonzero(result.x)
    value = float(datafit(y).value(X @ result.x) + result.x @ result.x + lam * support.size)
    status = {"optimal": "OPTIMAL", "time_limit": "TIME_LIMIT"}.get(result.status.value, result.status.value)
    answer = {"status": status, "objective": value, "bound": None, "gap": None, "nodes": int(result.iter_count)}
    answer |= {"seconds": wall, "cpu_seconds": cpu, "support": support.tolist()}
    answer |= {"versions": {"el0ps": version("el0ps"), "numpy": version("numpy"), "numba": version("numba")}}
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
