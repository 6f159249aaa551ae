"""``mipfs demo``: the main job on the shipped instance."""

from __future__ import annotations

import dataclasses
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mipfs.cli.errors import complain
from mipfs.cli.options import Json, Quiet, Report, Seed
from mipfs.errors import UsageError

if TYPE_CHECKING:
    from mipfs.data.instance import Scaling
    from mipfs.result.result import Record

INSTANCE = "wdbc.svm"
SCALE: Scaling = "standard"
PARAMS: dict[str, Any] = {"M": 3, "C": 1.0}
PAGE = "mipfs-demo.html"


def demo(
    json: Json = None,
    report: Report = None,
    show: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    quiet: Quiet = False,
    seed: Seed = 0,
) -> int:
    """Solve the shipped instance to proven optimality, and write the page of it."""
    from mipfs.cli.live import live_table
    from mipfs.cli.output import check_page, check_target, finish, write_page
    from mipfs.cli.typed import command_line
    from mipfs.drivers import solve
    from mipfs.plumbing.signals import held
    from mipfs.problem import Problem
    from mipfs.readers import read

    path = shipped(INSTANCE)
    check_target(json, str(path), pair=True)
    check_page(report, str(path), outputs=(json,))
    data = read(path, scale=SCALE)
    talk = json != "-" and not quiet
    if report is None and (talk or show):
        report = _place()
    if talk:
        print(f"FSP-M on {path.name}: {data.n_samples} tumours, {data.n_features} features, scale {SCALE}.")
        print(f"Which {PARAMS['M']} features give the best linear SVM with C = {PARAMS['C']:g}, and is that certain?\n")
    with held(deliver=False):
        with live_table(quiet) as observers:
            result = solve(Problem(data, **PARAMS), seed=seed, observers=observers)
        if talk:
            _show_trace(result.trace)
        result = dataclasses.replace(result, command=command_line())
        code = finish(result, json, quiet)
    if talk and code == 0:
        right = int((result.predict(data) == data.labels.of(data.y)).sum())
        print(f"\nThese {len(result.selected)} features classify {right} of the {data.n_samples} tumours correctly.")
        _show_next(path)
    write_page(report, f"mipfs demo: {PARAMS['M']} features of {path.name}", result)
    if talk and report is not None:
        print(f"\nAll of it on a page to look at: {report}")
    if show and report is not None:
        _open(Path(report))
    return code


def _place() -> str:
    """Where the page goes that nobody named: the current folder, or a temporary one where that cannot be written."""
    from mipfs.plumbing import output_file

    for folder in (Path(), Path(tempfile.gettempdir())):
        try:
            output_file.check(folder / PAGE)
        except UsageError:
            continue
        return str(folder / PAGE)
    raise UsageError(f"{PAGE} can be written neither here nor in {tempfile.gettempdir()}; say where with --report FILE")


def _open(page: Path) -> None:
    """Open the page in the browser, or say that there is none."""
    import webbrowser

    if not webbrowser.open(page.resolve().as_uri()):
        complain(f"no browser was found to open {page}; open it in one yourself", "warning")


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
