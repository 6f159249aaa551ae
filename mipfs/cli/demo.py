"""``mipfs demo``: the main job on the shipped instance."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mipfs.cli.options import Json, Quiet, Seed

if TYPE_CHECKING:
    from mipfs.data.instance import Scaling
    from mipfs.result.result import Record

INSTANCE = "wdbc.svm"
SCALE: Scaling = "standard"
PARAMS: dict[str, Any] = {"M": 3, "C": 1.0}


def demo(json: Json = None, quiet: Quiet = False, seed: Seed = 0) -> int:
    """Solve the shipped instance to proven optimality."""
    from mipfs.cli.live import live_table
    from mipfs.cli.output import check_target, finish
    from mipfs.drivers import solve
    from mipfs.plumbing.signals import held
    from mipfs.problem import Problem
    from mipfs.readers import read

    path = shipped(INSTANCE)
    check_target(json, str(path), pair=True)
    data = read(path, scale=SCALE)
    talk = json != "-" and not quiet
    if talk:
        print(f"FSP-M on {path.name}: {data.n_samples} tumours, {data.n_features} features, scale {SCALE}.")
        print(f"Which {PARAMS['M']} features give the best linear SVM with C = {PARAMS['C']:g}, and is that certain?\n")
    with held(deliver=False):
        with live_table(quiet) as observers:
            result = solve(Problem(data, **PARAMS), seed=seed, observers=observers)
        if talk:
            _show_trace(result.trace)
        code = finish(result, json, quiet)
    if talk and code == 0:
        right = int((result.predict(data) == data.labels.of(data.y)).sum())
        print(f"\nThese {len(result.selected)} features classify {right} of the {data.n_samples} tumours correctly.")
        _show_next(path)
    return code


def shipped(name: str) -> Path:
    """The path of an instance that ships with the package (a wheel) or the repository (a checkout)."""
    package = Path(__file__).resolve().parents[1]
    inside, beside = package / "instances" / name, package.parent / "instances" / name
    return inside if inside.exists() else beside


def _show_trace(trace: Sequence[Record]) -> None:
    from mipfs.cli.text import number, percent, show_table
    from mipfs.result.trace import plot_gap, thin

    rows = [
        (str(r.iteration), f"{r.seconds:.2f}", number(r.objective), number(r.bound), percent(r.gap))
        for r in thin(trace)
    ]
    show_table(("iteration", "seconds", "incumbent", "bound", "gap"), rows, title="How the gap closed", left=0)
    mark = "█" if "utf" in (sys.stdout.encoding or "").lower() else "#"
    print(f"\n{plot_gap(trace, mark=mark)}\n")


def _show_next(path: Path) -> None:
    program, data = _program(), shlex.quote(os.path.relpath(path))
    print("\nNext:")
    print(f"  {program} solve fsp-m {data} --scale {SCALE} -p M=5 -p C=1 --time-limit 60 --json result.json")
    print(f"  {program} verify result.json {data}")
    print(f"  {program} evaluate result.json {data}")
    print(f"  {program} models")


def _program() -> str:
    """How the user can call us again: a virtual environment that is not active is not on the PATH."""
    if shutil.which("mipfs"):
        return "mipfs"
    script = Path(sys.argv[0])
    return shlex.quote(os.path.relpath(script)) if script.name == "mipfs" else "python -m mipfs"
