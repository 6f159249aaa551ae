"""What a GPU does for the tree: the relaxation in CuPy's arrays beside all cores of the same machine, in five minutes.

    python benchmarks/gpu.py [--device cuda] [--cores SECONDS] [--only WORD ...] [--json FILE]

For dense data with two long sides (`real_parts.problems.peers`), and real sets where MIPFS_DATA names their folder: the
gap that all cores leave after `--cores` seconds, by the driver's own rule of who relaxes; when the device, with
``relax="array"``, came to that gap, if it did within as many seconds; nodes a second of both. On a machine without a
GPU ``--device cpu`` shows that the script runs.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from pathlib import Path
from typing import Any

from batches import DATA

LARGEST, SHARE = "n = p = 6,000, C = 1, logistic", 0.75
"""A case that gets a share of the seconds: the whole script ends within five minutes."""
CASES = (
    "n = p = 2,000, C = 1, logistic", "n = p = 2,000, C = 1, hinge", LARGEST,
    "madelon, M = 10", "usps, M = 5", "sonar, M = 10",
)  # fmt: skip
"""Of the cases of `batches`."""


def timed(problem: Any, seconds: float, target: float | None, **options: Any) -> dict[str, Any]:
    """Gap and nodes after some seconds, or when a gap was reached."""
    import mipfs

    begin, reached = time.perf_counter(), list[float]()

    def reaches(record: Any) -> bool:
        if target is not None and record.gap <= target and not reached:
            reached.append(time.perf_counter() - begin)
        return bool(reached)

    result = mipfs.solve(problem, "branch", time_limit=seconds, callback=reaches, **options)
    took = time.perf_counter() - begin
    return {"gap": result.gap, "nodes": result.counters.get("nodes"), "seconds": took, "reached": reached}


def device_of(name: str) -> str:
    """What the device is called."""
    if name == "cpu":
        return f"{platform.processor() or platform.machine()}, NumPy"
    import cupy

    return str(cupy.cuda.runtime.getDeviceProperties(0)["name"].decode())


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--cores", type=float, default=20.0, metavar="SECONDS")
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    print(f"{device_of(asked.device)} beside {os.cpu_count()} cores; nodes/s in brackets")
    found = {}
    for name in CASES:
        if asked.only and not any(word in name for word in asked.only):
            continue
        if not (name.startswith("n = p") or os.environ.get("MIPFS_DATA")):
            print(f"{name}: MIPFS_DATA is unset", file=sys.stderr)
            continue
        problem = DATA[name]()
        seconds = asked.cores * (SHARE if name == LARGEST else 1.0)
        for options in ({}, {"relax": "array", "device": asked.device}):  # kernels are compiled, the device awake
            timed(problem, 1.0, None, **options)
        cores = timed(problem, seconds, None)
        device = timed(problem, seconds, cores["gap"], relax="array", device=asked.device)
        found[name] = {"cores": cores, "device": device}
        at = f"there after {device['reached'][0]:.1f} s" if device["reached"] else f"{100 * device['gap']:.2f}% left"
        rates = [one["nodes"] / one["seconds"] for one in (cores, device)]
        print(
            f"{name:30s} cores {100 * cores['gap']:6.2f}% left after {cores['seconds']:.0f} s ({rates[0]:,.0f}), "
            f"device {at} ({rates[1]:,.0f})",
            flush=True,
        )
    if asked.json:
        asked.json.write_text(json.dumps(found, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
