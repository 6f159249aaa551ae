"""One run of our drivers, timed, and its certificate checked beside."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

import mipfs
from exact_parts.store import clocks, code
from mipfs.data.instance import Instance
from mipfs.problem import Problem

_WARM: set[tuple[str, str, bool]] = set()


def measure(
    problem: Problem, driver: str, *, limit: float, gap: float, keep: Path | None = None, name: str = ""
) -> dict[str, Any]:
    """Solve and verify.

    Parameters
    ----------
    problem : Problem
    driver : str
    limit : float, wall seconds
    gap : float in [0, 1)
    keep : Path, optional, a folder for the result and its certificate, so that they can be checked again
    name : str, of the files there

    Returns
    -------
    dict
        ``status stop_reason objective bound gap nodes seconds cpu_seconds others_busy support counters code``, and
        of the check ``verify_seconds verified verify_note``. Compiling is done before the clock starts.
    """
    warm(driver, problem.loss, problem.bias)
    with clocks() as spent:
        result = mipfs.solve(problem, driver, time_limit=limit, gap=gap)
    if result.stop_reason.name == "INTERRUPTED":  # what Ctrl-C left is no measurement
        raise KeyboardInterrupt
    if keep is not None and name:
        keep.mkdir(parents=True, exist_ok=True)
        result.save(keep / f"{name.replace(' ', '_')}_{driver}.json")
    return told(result) | spent | verify(result, problem.data)


def told(result: Any) -> dict[str, Any]:
    """What a line says of a result."""
    counters = dict(result.counters)
    return {
        "status": result.status.name,
        "stop_reason": result.stop_reason.name,
        "objective": result.objective,
        "bound": result.bound,
        "gap": result.gap,
        "nodes": counters.get("nodes"),
        "support": sorted(result.columns[feature] for feature in result.selected),
        "counters": counters,
        "code": code(),
    }


def verify(result: Any, data: Instance) -> dict[str, Any]:
    """Check the certificate: its seconds, and whether it was accepted; both are null where there is none to check."""
    if "verify" not in mipfs.__all__:
        return {"verify_seconds": None, "verified": None, "verify_note": "this version has no verify"}
    begin = time.perf_counter()
    try:
        report = mipfs.verify(result, data)
    except mipfs.UsageError as error:  # a result without a certificate
        return {"verify_seconds": None, "verified": None, "verify_note": str(error)}
    seconds = time.perf_counter() - begin
    return {"verify_seconds": seconds, "verified": bool(report.accepted), "verify_note": str(report.reason or "")}


def warm(driver: str, loss: str, bias: bool) -> None:
    """Compile what is compiled at first use, on a problem of no size."""
    kind = (driver, loss, bias)
    if kind in _WARM:
        return
    r = np.random.default_rng(0)
    X = r.standard_normal((40, 6))
    y = np.where(X[:, 0] + 0.5 * r.standard_normal(40) > 0, 1.0, -1.0)
    result = mipfs.solve(Problem(Instance.from_arrays(X, y), loss=loss, bias=bias, M=2), driver, time_limit=60.0)
    verify(result, Instance.from_arrays(X, y))
    _WARM.add(kind)
