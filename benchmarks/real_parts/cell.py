"""One cell, in a process of its own: a hang, or memory that runs out, is a recorded failure and not the end of a run.

    python benchmarks/real_parts/cell.py < request

reads a request (JSON: "task" and its arguments, "what": the problem's description) and prints the answer as JSON.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
BEGIN = 180.0
"""Seconds that a cell may take to begin: imports, reading, compiling."""
FIRST_LOOK = 10.0
"""Seconds after which the incumbent is noted."""


def run(request: Mapping[str, Any], wall: float) -> dict[str, Any]:
    """Run a cell in a child process that is ended after `wall` seconds; what ended it stands in ``status``."""
    begin = time.perf_counter()
    child = subprocess.Popen(
        [sys.executable, str(HERE)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        out, err = child.communicate(json.dumps(request), timeout=wall + BEGIN)
    except subprocess.TimeoutExpired:
        return {"status": f"KILLED after {wall + BEGIN:.0f} s", "seconds": None}
    finally:
        if child.poll() is None:
            child.kill()
            child.communicate()
    if child.returncode != 0:
        said = err.strip().splitlines()[-1:] or [""]
        return {"status": f"FAILED ({child.returncode}): {said[0][:200]}", "seconds": None}
    answer: dict[str, Any] = json.loads(out.splitlines()[-1])
    return answer | {"whole_seconds": time.perf_counter() - begin}


def main() -> None:
    """The child."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # solvers may print
    sys.path[:0] = [str(HERE.parents[1]), str(HERE.parents[2])]
    request = json.load(sys.stdin)
    answer = answered(request)
    answer["peak_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0
    from exact_parts.store import plain

    answers.write(json.dumps(plain(answer), allow_nan=False) + "\n")
    answers.flush()


def answered(request: Mapping[str, Any]) -> dict[str, Any]:
    """Run a cell in this process."""
    from real_parts.problems import build

    folder = os.environ.get("MIPFS_DATA")
    problem = build(request["what"], Path(folder) if folder else None)
    facts = {"n": problem.data.n_samples, "p": problem.data.n_features}
    usable = getattr(os, "sched_getaffinity", None)
    facts["usable_cores"] = os.cpu_count() if usable is None else len(usable(0))
    return facts | TASKS[request["task"]](problem, request)


def root(problem: Any, request: Mapping[str, Any]) -> dict[str, Any]:
    """`mipfs.solve(problem, "branch", iteration_limit=1)`: the root with its incumbents, as a user gets it."""
    from exact_parts.store import clocks, code

    import mipfs

    _compiled(problem, "branch")
    with clocks() as spent:
        result = mipfs.solve(problem, "branch", iteration_limit=1, time_limit=request["limit"])
    answer = {"status": "MEASURED", "bound": result.bound, "objective": result.objective, "code": code()}
    return answer | spent | {"counters": dict(result.counters), "stop_reason": result.stop_reason.name}


def reference(problem: Any, request: Mapping[str, Any]) -> dict[str, Any]:
    """The relaxation's value by Clarabel where the program is small enough, else between both sides of our own."""
    from exact_parts.store import clocks

    if problem.data.n_samples * problem.data.n_features <= request["clarabel_size"]:
        from mipfs.errors import MipfsError
        from tests.references import relaxation_reference

        try:
            with clocks() as spent:
                value = relaxation_reference(problem).value
            return {"status": "MEASURED", "by": "Clarabel", "low": value, "high": value} | spent
        except MipfsError:
            pass
    from mipfs.inner.boolean import Boolean

    end = time.perf_counter() + request["limit"]
    with clocks() as spent:
        solved = Boolean(problem, lambda: time.perf_counter() > end).solve(*problem.selection.sigma_bounds(), 1e-6)
    return {"status": "MEASURED", "by": "both sides", "low": solved.lower, "high": solved.upper} | spent


def svm(problem: Any, request: Mapping[str, Any]) -> dict[str, Any]:
    """libsvm (hinge), LIBLINEAR (squared hinge, logistic, and "linear") on all features, at the same C."""
    from exact_parts.store import clocks
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import SVC, LinearSVC

    data, C = problem.data, problem.C
    X = data.X if not hasattr(data.X, "tocsr") else data.X.tocsr()
    if not hasattr(X, "tocsr"):
        X = X - data.center
    if request.get("by") != "liblinear" and problem.loss == "hinge":
        name, model = "libsvm", SVC(kernel="linear", C=C, cache_size=500)
    elif problem.loss == "logistic":
        name, model = "LIBLINEAR", LogisticRegression(C=C, solver="liblinear", max_iter=1000)
    else:
        loss = "hinge" if problem.loss == "hinge" else "squared_hinge"
        name, model = (
            "LIBLINEAR",
            LinearSVC(
                C=C if loss == "hinge" else C / 2, loss=loss, dual="auto" if loss != "hinge" else True, max_iter=10000
            ),
        )
    with clocks() as spent:
        model.fit(X, data.y)
    return {"status": "MEASURED", "by": name} | spent


def solve(problem: Any, request: Mapping[str, Any]) -> dict[str, Any]:
    """`mipfs.solve` with all defaults but the limit (and what the request says), and its certificate checked."""
    from exact_parts.ours import verify
    from exact_parts.store import clocks, code, relative_gap

    import mipfs

    driver = request.get("driver")
    _compiled(problem, driver)
    seen: list[Any] = []
    options = {"threads": request["threads"]} if "threads" in request else {}
    with clocks() as spent:
        result = mipfs.solve(problem, driver, time_limit=request["limit"], observers=[seen.append], **options)
    early = [one.objective for one in seen if one.seconds <= FIRST_LOOK]
    nodes = result.counters.get("nodes")
    root_at = next((one.seconds for one in seen if one.counters.get("nodes", 0) >= 1), None)
    after = [one for one in seen if one.counters.get("nodes", 0) > 1]
    rate = None
    if root_at is not None and after and after[-1].seconds > root_at:
        rate = (after[-1].counters["nodes"] - 1) / (after[-1].seconds - root_at)
    answer = {
        "status": result.status.name,
        "stop_reason": result.stop_reason.name,
        "driver": result.driver,
        "objective": result.objective,
        "bound": result.bound,
        "gap": relative_gap(result.objective, result.bound),
        "nodes": nodes,
        "nodes_per_second": rate,
        "objective_early": min(early, default=None),
        "curve": _curve([(one.seconds, one.bound, one.objective) for one in seen]),
        "code": code(),
    } | spent
    if result.claim is None or request.get("driver") == "monolithic":
        return answer
    with tempfile.TemporaryDirectory() as folder:
        result.save(Path(folder) / "result.json")
        answer["certificate_bytes"] = sum(file.stat().st_size for file in Path(folder).glob("*.npz"))
    return answer | verify(result, problem.data)


def throughput(_problem: Any, request: Mapping[str, Any]) -> dict[str, Any]:
    """Nodes per second of threads and processes at the same time."""
    from exact_parts.store import code

    from real_parts import together

    return together.throughput(request) | {"code": code()}


def _compiled(problem: Any, driver: str | None) -> None:
    """Compile what a run on the problem will call: a solve that stops at once."""
    import mipfs

    if driver != "monolithic":
        mipfs.solve(problem, driver, time_limit=1e-3)


def _curve(points: list[tuple[float, float, float]], count: int = 20) -> list[tuple[float, float, float]]:
    """At most so many of the points, evenly spread."""
    step = max(1, len(points) // count)
    return points[::step]


TASKS: dict[str, Callable[[Any, Mapping[str, Any]], dict[str, Any]]] = {
    "root": root,
    "reference": reference,
    "svm": svm,
    "solve": solve,
    "throughput": throughput,
}

if __name__ == "__main__":
    main()
