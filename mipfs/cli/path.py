"""``mipfs path``: one problem for every M, C, lambda or pair of M and C, or with rows added one after the other."""

from __future__ import annotations

import dataclasses
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mipfs.cli.options import (
    BoxOption,
    Checks,
    DataFile,
    Drop,
    FoldsBy,
    Impute,
    Jobs,
    Json,
    Label,
    Missing,
    Module,
    Nonnegative,
    Nonpositive,
    Param,
    Positive,
    Quiet,
    Report,
    Scale,
    Seed,
    SubjectTo,
    TotalLimit,
    Types,
    Use,
    WeightBounds,
    WeightRows,
    Words,
    bound_weights,
    enter,
    files_of,
    parse_numbers,
    parse_whole,
    pose_problem,
    problem_parameters,
    read_options,
    recipe_options,
    with_weight_rows,
)
from mipfs.errors import UsageError

if TYPE_CHECKING:
    from mipfs.cli.output import OutputTargets
    from mipfs.lab.studies.solution_path import SolutionPath


def path(
    data_file: DataFile,
    param: Param = None,
    M: Annotated[
        str | None, typer.Option("--M", metavar="A:B", help="Every M from A to B, both included, or a list: 1,2,5.")
    ] = None,
    C: Annotated[str | None, typer.Option("--C", metavar="LIST", help="Values of C, separated by commas.")] = None,
    lam: Annotated[
        str | None,
        typer.Option("--lambda", metavar="LIST", help="Values of lambda, separated by commas; auto or auto:N finds N."),
    ] = None,
    rows: Annotated[
        str | None, typer.Option("--rows", metavar="rows.lp", help="The rows of an LP file, added one after the other.")
    ] = None,
    subject_to: SubjectTo = None,
    nonnegative: Nonnegative = None,
    nonpositive: Nonpositive = None,
    weight_bounds: WeightBounds = None,
    box: BoxOption = None,
    weight_rows: WeightRows = None,
    folds: Annotated[
        int | None, typer.Option("--folds", metavar="K", help="Choose by K-fold cross-validation.", show_default=False)
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            "--by",
            metavar="NAME",
            help="By what folds choose: error, balanced-accuracy, f1, roc-auc, average-precision, log-loss.",
        ),
    ] = None,
    one_se: Annotated[
        bool, typer.Option("--one-se", help="Choose the simplest within one standard error of the least error.")
    ] = False,
    between: Annotated[
        int,
        typer.Option("--between", metavar="N", help="Proven gaps at N values of C between each two neighbours."),
    ] = 0,
    cold: Annotated[
        bool, typer.Option("--cold", help="Solve every point also from nothing, to see what was saved.")
    ] = False,
    driver: Annotated[str | None, typer.Option("--driver", metavar="NAME", help="The algorithm.")] = None,
    time_limit: Annotated[
        float | None, typer.Option("--time-limit", metavar="S", help="Stop every point after S seconds.")
    ] = None,
    gap: Annotated[
        float, typer.Option("--gap", metavar="GAP", help="Relative gap at which an answer counts as optimal.")
    ] = 1e-4,
    checkpoint: Annotated[
        str | None,
        typer.Option("--checkpoint", metavar="FILE", help="A new file to keep every point in, to go on with --resume."),
    ] = None,
    resume: Annotated[
        str | None, typer.Option("--resume", metavar="FILE", help="Go on with the path whose points are in FILE.")
    ] = None,
    jobs: Jobs = None,
    folds_by: FoldsBy = None,
    scale: Scale = None,
    label: Label = None,
    positive: Positive = None,
    drop: Drop = None,
    use: Use = None,
    impute: Impute = None,
    types: Types = None,
    missing: Missing = None,
    words: Words = None,
    checks: Checks = None,
    json: Json = None,
    report: Report = None,
    total_limit: TotalLimit = None,
    quiet: Quiet = False,
    seed: Seed = 0,
    module: Module = None,
) -> int:
    """Solve a problem along a path of M, C, lambda or rows, or of M for every C, cuts carried along."""
    import mipfs
    from mipfs import readers
    from mipfs.cli.live_path import live_path
    from mipfs.cli.output import OutputTargets, check_page, check_target
    from mipfs.cli.solve import lp_rows_over, with_lp_rows
    from mipfs.cli.typed import command_line
    from mipfs.plumbing.declared import shown_name
    from mipfs.plumbing.machine import cores
    from mipfs.plumbing.signals import hold_signals

    axes, single = _split_axes(M, C, lam, rows)
    enter(module or ())
    params = problem_parameters(param or (), "path", "atoms")
    recipe = recipe_options(drop, use, impute, types, words, missing, checks, folds_by)
    for name in params.keys() & (axes.keys() | single.keys()):
        shown = shown_name(name)
        raise UsageError(f"-p {shown} and --{shown} are both given; the path sets it, so leave -p {shown} out")
    params |= single
    inputs = (data_file, subject_to, weight_rows, rows, *files_of(module))
    check_target(json, *inputs, pair=True)
    check_page(report, *inputs, resume, outputs=(json, checkpoint))
    if checkpoint is not None:
        check_target(checkpoint, *inputs, outputs=(json,), option="--checkpoint")
    data = readers.read(data_file, **read_options(scale, label, positive, recipe))
    problem = pose_problem(data, params)
    problem = with_lp_rows(problem, subject_to)
    problem = bound_weights(problem, nonnegative, nonpositive, weight_bounds, box, positive=positive)
    problem = with_weight_rows(problem, weight_rows)
    if rows is not None:
        axes["rows"] = lp_rows_over(problem, rows)
    options: dict[str, Any] = {"gap": gap, "seed": seed, "folds": folds, "by": by, "one_se": one_se, "cold": cold}
    options["between"] = between
    if folds is None and data.split is not None:
        options["folds"] = data.split.count
    if time_limit is not None:
        options["time_limit"] = time_limit
    with hold_signals(deliver=False):
        with live_path(quiet) as watchers:
            kept = {"checkpoint": _path_checkpoint(checkpoint), "resume": resume}
            side = cores() if jobs is None else jobs
            found = mipfs.path(problem, driver=driver, jobs=side, **axes, **options, **watchers, **kept)
        found = dataclasses.replace(found, command=command_line())
        return finish_path(found, OutputTargets(json, report, f"A path on {Path(data_file).name}", quiet))


def _split_axes(
    M: str | None, C: str | None, lam: str | None, rows: str | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the path goes over, and the parameters that a single value beside it sets."""
    named: dict[str, Any] = {
        "M": None if M is None else parse_whole(M),
        "C": None if C is None else parse_numbers("C", C),
        "lam": lam if lam is None or lam.startswith("auto") else parse_numbers("lambda", lam),
    }
    axes = {name: values for name, values in named.items() if values is not None}
    single: dict[str, Any] = {}
    for name in ("C", "M", "lam"):
        values = axes.get(name, ())
        if not _has_axis(axes, rows) and not isinstance(values, str) and len(values) == 1:
            single[name] = axes.pop(name)[0]
    if not _has_axis(axes, rows):
        raise UsageError(
            "a path goes over one of --M, --C, --lambda and --rows, or over --M and --C together; "
            "give one, for example --M 1:10, and of the others single values"
        )
    return axes, single


def _has_axis(axes: dict[str, Any], rows: str | None) -> bool:
    """Whether a path can go over these."""
    if rows is not None:
        return not axes
    return len(axes) == 1 or axes.keys() == {"M", "C"}


def _path_checkpoint(file: str | None) -> Any:
    """Where every point is kept, with the command that `mipfs resume` goes on with."""
    from mipfs.cli.typed import ARGUMENTS
    from mipfs.lab.studies.walk import Checkpoint
    from mipfs.result.state import StartCommand

    return None if file is None else Checkpoint(file, StartCommand(tuple(ARGUMENTS.get()), os.getcwd()))


def finish_path(found: SolutionPath, targets: OutputTargets) -> int:
    """Write and show the path, and return the exit code."""
    from mipfs.cli.output import finish_study
    from mipfs.lab.studies.path_report import path_blocks
    from mipfs.result.result import Status

    results = [point.result for point in found.points]
    conflict = None
    nothing = not any(result.has_classifier or result.relaxed for result in results)
    if nothing and results and all(point.status is Status.INFEASIBLE for point in found.points):
        conflict = results[0].conflict
    return finish_study(found, partial(path_blocks, found), targets, conflict=conflict, nothing=nothing)
