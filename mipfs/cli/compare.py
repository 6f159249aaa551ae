"""``mipfs compare``: the ladder of relaxations on one data set."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mipfs.cli.options import (
    DataFile,
    Json,
    Label,
    Param,
    Positive,
    Quiet,
    Report,
    Scale,
    Seed,
    SubjectTo,
    problem_parameters,
    read_options,
)

if TYPE_CHECKING:
    from mipfs.lab.studies.ladder import Comparison
    from mipfs.problem import Problem


def compare(
    data_file: DataFile,
    param: Param = None,
    subject_to: SubjectTo = None,
    rungs: Annotated[
        str | None, typer.Option("--rungs", metavar="NAMES", help="Some of the rungs, separated by commas.")
    ] = None,
    time_limit: Annotated[float, typer.Option("--time-limit", metavar="S", help="Seconds for every rung.")] = 60.0,
    scale: Scale = None,
    label: Label = None,
    positive: Positive = None,
    json: Json = None,
    report: Report = None,
    quiet: Quiet = False,
    seed: Seed = 0,
) -> int:
    """Compare the relaxations of one problem with its exact optimum."""
    import mipfs
    from mipfs import readers
    from mipfs.cli.live import live_table
    from mipfs.cli.options import parse_names
    from mipfs.cli.output import check_page, check_target
    from mipfs.cli.solve import with_lp_rows
    from mipfs.cli.typed import command_line
    from mipfs.lab.studies import ladder
    from mipfs.plumbing.signals import held

    params = problem_parameters(param or (), "compare")
    check_target(json, data_file, subject_to)
    check_page(report, data_file, subject_to, outputs=(json,))
    problem = mipfs.Problem(readers.read(data_file, **read_options(scale, label, positive)), **params)
    if subject_to is not None:
        problem = with_lp_rows(problem, subject_to)
    chosen = None if rungs is None else parse_names(rungs)
    with held(deliver=False):
        with live_table(quiet) as observers:
            comparison = ladder.compare(problem, rungs=chosen, time_limit=time_limit, observers=observers)
        comparison = dataclasses.replace(comparison, command=command_line())
        title = f"The ladder on {Path(data_file).name}"
        return _finish(comparison, problem, json, quiet, report, title)


def _finish(
    comparison: Comparison,
    problem: Problem,
    target: str | None,
    quiet: bool,
    report: str | None = None,
    title: str = "",
) -> int:
    """Write JSON and page where they were asked for, show the ladder, and return the exit code."""
    from mipfs.cli.errors import STOPPED_EARLY, complain
    from mipfs.cli.output import INFEASIBLE, tell_page, write_json, write_page
    from mipfs.cli.text import say, show_blocks
    from mipfs.lab.studies.ladder_report import ladder_blocks

    if target is not None:
        write_json(comparison.document(), target)
    write_page(report, title, comparison)
    if comparison.conflict:
        culprits = ", ".join(repr(name) for name in comparison.conflict)
        complain(f"no selection satisfies the rows; these contradict each other: {culprits}; drop or relax one of them")
        return INFEASIBLE
    if not comparison.selected and comparison.incumbent == float("inf"):
        complain("stopped before any classifier was found; raise the limit")
        return STOPPED_EARLY
    if target != "-" and not quiet:
        show_blocks(ladder_blocks(comparison, len(problem.selection.rows)))
        if target is not None:
            say(f"\nwritten to {target}")
        tell_page(report, after=target is not None)
    return 0
