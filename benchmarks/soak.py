"""Runs that hold on for minutes: resident memory over time, whether a memory limit holds, and what stands at the end.

    MIPFS_DATA=... python benchmarks/soak.py [--seconds 180] [--only NAME]

`soak` runs the trees of sms_spam_counts and w8a until a time limit and looks at the memory of the process every two
seconds; flat means that the last third holds no more than 5% and 20 MB above the second. `limit` runs trees of many
small nodes until a memory limit, 150 MB above what the process held before; `peak` is the most that it ever held,
saving the result with its certificate included, as a share of the limit.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
EVERY = 2.0
SOAKS = {"sms_spam_counts": (10, 10.0), "w8a": (8, 10.0)}
LIMITS = {"sonar": (12, 1.0), "ionosphere": (10, 10.0)}
"""Data to M and C."""


def held(key: str = "VmRSS") -> float:
    """Megabytes of this process."""
    match = re.search(rf"^{key}:\s*(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    return 0.0 if match is None else int(match.group(1)) / 1024


def watched(run: Callable[[], None]) -> list[tuple[float, float]]:
    """Seconds and megabytes while something runs."""
    curve: list[tuple[float, float]] = []
    begin = time.monotonic()
    over = threading.Event()

    def look() -> None:
        while not over.wait(EVERY):
            curve.append((time.monotonic() - begin, held()))

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    run()
    over.set()
    watcher.join()
    return curve


def one(name: str, kind: str, seconds: float) -> None:
    """One run in this process, and its line."""
    import mipfs
    from mipfs.lab.experiments import sets

    M, C = (SOAKS if kind == "soak" else LIMITS)[name]
    problem = mipfs.Problem(sets.read(name), M=M, C=C)
    mipfs.solve(problem, threads=1, iteration_limit=2, time_limit=20)
    before = held()
    limit = None if kind == "soak" else (before + 150.0) * 1024**2 / 1e9
    found: list[mipfs.Result] = []
    Path("/proc/self/clear_refs").write_text("5")
    with tempfile.TemporaryDirectory() as folder:

        def run() -> None:
            found.append(mipfs.solve(problem, threads=1, time_limit=seconds, memory_limit=limit))
            found[0].save(Path(folder) / "r.json", certificate_limit=50.0)

        curve = watched(run)
        peak = held("VmHWM")
        size = sum(path.stat().st_size for path in Path(folder).iterdir()) / 1e6
        verdict = mipfs.verify(mipfs.Result.load(Path(folder) / "r.json"), problem.data)
    result = found[0]
    print(
        f"{kind} {name}: {result.stop_reason.name} after {result.seconds:.0f} s, "
        f"{result.counters.get('nodes', 0):,} nodes, gap {result.gap:.4f}, files {size:.1f} MB, "
        f"{'accepted' if verdict.accepted else verdict.reason}"
    )
    if limit is None:
        work = [megabytes for second, megabytes in curve if second <= result.seconds]
        third = len(work) // 3
        middle, last = (max(part, default=0.0) for part in (work[third : 2 * third], work[2 * third :]))
        flat = last <= 1.05 * middle + 20.0
        print(
            f"  MB before {before:.0f}, second third {middle:.0f}, last {last:.0f}, peak with saving {peak:.0f}: "
            f"{'flat' if flat else 'GROWS'}"
        )
    else:
        print(f"  limit {limit:.3f} GB, peak {peak * 1024**2 / 1e9:.3f} GB: {peak * 1024**2 / 1e9 / limit:.1%}")
    shown = curve[:: max(1, len(curve) // 15)]
    print("  s:MB " + " ".join(f"{second:.0f}:{megabytes:.0f}" for second, megabytes in shown), flush=True)


def main() -> None:
    """Every case in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seconds", type=float, default=180.0)
    parser.add_argument("--only")
    args = parser.parse_args()
    for kind, cases in (("limit", LIMITS), ("soak", SOAKS)):
        for name in cases:
            if args.only not in (None, name):
                continue
            child = os.fork()
            if child == 0:
                one(name, kind, args.seconds)
                os._exit(0)
            os.waitpid(child, 0)


if __name__ == "__main__":
    main()
