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
    from mipfs.lab.studies.ladder import Comparison
    from mipfs.problem import Problem
    from mipfs.result.result import Record, Result

INSTANCE = "wdbc.svm"
SCALE: Scaling = "standard"
PARAMS: dict[str, Any] = {"M": 3, "C": 1.0}
PAGE = "mipfs-demo.html"
RUNG_SECONDS = 20.0
"""Seconds for every rung of the ladder; all of them together take two or three."""


def demo(
    json: Json = None,
    report: Report = None,
    show: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    quiet: Quiet = False,
    seed: Seed = 0,
) -> int:
    """Solve the shipped instance to proven optimality, show the ladder of relaxations, and write the page of it all."""
    from mipfs.cli.live import live_table
    from mipfs.cli.output import check_page, check_target, finish
    from mipfs.cli.typed import command_line
    from mipfs.drivers import solve
    from mipfs.plumbing.signals import hold_signals
    from mipfs.problem import Problem
    from mipfs.readers import read
    from mipfs.result.result import Status

    path = shipped_path(INSTANCE)
    check_target(json, str(path), pair=True)
    talk = json != "-" and not quiet
    if report is None and (talk or show):
        report = _page_folder()
    check_page(report, str(path), outputs=(json,))
    data = read(path, scale=SCALE)
    if talk:
        print(f"FSP-M on {path.name}: {data.n_samples} tumours, {data.n_features} features, scale {SCALE}.")
        print(f"Which {PARAMS['M']} features give the best linear SVM with C = {PARAMS['C']:g}, and is that certain?\n")
    problem = Problem(data, **PARAMS)
    with hold_signals(deliver=False):
        with live_table(quiet) as observers:
            result = solve(problem, seed=seed, observers=observers)
        if talk:
            _show_trace(result.trace)
        result = dataclasses.replace(result, command=command_line())
        code = finish(result, json, quiet)
        if talk and code == 0:
            right = int((result.predict(data) == data.labels.of(data.y)).sum())
            print(
                f"\nThese {len(result.selected)} features classify {right} of the {data.n_samples} tumours correctly."
            )
        ladder = _climb_ladder(problem, quiet, talk) if report is not None and result.status is Status.OPTIMAL else None
        if report is not None:
            _write(report, result, ladder, problem)
    if talk and code == 0:
        _show_next(path)
    if talk and report is not None:
        print(f"\nAll of it on a page to look at: {report}")
    if show and report is not None:
        _open(Path(report))
    return code


def _climb_ladder(problem: Problem, quiet: bool, talk: bool) -> Comparison:
    """The ladder on the same problem: how far are the relaxations from the optimum?"""
    from mipfs.cli.live import live_table
    from mipfs.cli.output import show_blocks
    from mipfs.lab.studies.ladder import compare, ladder_blocks

    if talk:
        print("\nHow far are the convex relaxations from that?", flush=True)
    with live_table(quiet) as observers:
        ladder = compare(problem, time_limit=RUNG_SECONDS, observers=observers)
    if talk:
        show_blocks(ladder_blocks(ladder)[1:])
    return ladder


def _write(report: str, result: Result, ladder: Comparison | None, problem: Problem) -> None:
    """The page: the result, how it does on its own data, and the ladder."""
    from mipfs.lab import page
    from mipfs.result.score import score

    about = {"source": INSTANCE, "trained_on": True}
    measured = {**score(result, problem.data), **about} if result.has_classifier else None
    items = [
        page.Item(f"{PARAMS['M']} features of {INSTANCE}", result, measured),
        *([] if ladder is None else [page.Item("The ladder of relaxations", ladder)]),
    ]
    page.write(report, items, title="mipfs demo")


def _page_folder() -> str:
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


def shipped_path(name: str) -> Path:
    """The path of an instance that ships with the package (a wheel) or the repository (a checkout)."""
    package = Path(__file__).resolve().parents[1]
    inside = package / "instances" / name
    return inside if inside.exists() else (package.parent / "instances" / name)


def _show_trace(trace: Sequence[Record]) -> None:
    from mipfs.cli.output import number, percent, show_table
    from mipfs.result.trace import plot_gap, thin_trace

    rows = [
        (str(r.iteration), f"{r.seconds:.2f}", number(r.objective), number(r.bound), percent(r.gap))
        for r in thin_trace(trace)
    ]
    show_table(("iteration", "seconds", "incumbent", "bound", "gap"), rows, title="How the gap closed", left=0)
    mark = "█" if "utf" in (sys.stdout.encoding or "").lower() else "#"
    print(f"\n{plot_gap(trace, mark=mark)}\n")


def _show_next(path: Path) -> None:
    program = _program_call()
    data = shlex.quote(os.path.relpath(path))
    print("\nNext:")
    print(f"  {program} solve fsp-m {data} --scale {SCALE} -p M=5 -p C=1 --time-limit 60 --json result.json")
    print(f"  {program} verify result.json {data}")
    print(f"  {program} evaluate result.json {data}")
    print(f"  {program} report result.json --data {data} -o result.html")
    print(f"  {program} models")


def _program_call() -> str:
    """How the user can call us again: a virtual environment that is not active is not on the PATH."""
    if shutil.which("mipfs"):
        return "mipfs"
    script = Path(sys.argv[0])
    return shlex.quote(os.path.relpath(script)) if script.name == "mipfs" else "python -m mipfs"
