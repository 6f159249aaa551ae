"""``mipfs compare``: the ladder of relaxations on one data set."""

from __future__ import annotations

import dataclasses
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from mipfs.cli.options import (
    BoxOption,
    Checks,
    DataFile,
    Drop,
    Impute,
    Json,
    Label,
    Missing,
    Module,
    Nonnegative,
    Nonpositive,
    Param,
    ParamC,
    ParamM,
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
    parse_names,
    pose_problem,
    problem_parameters,
    read_options,
    recipe_options,
    with_M_and_C,
    with_weight_rows,
)


def compare(
    data_file: DataFile,
    param: Param = None,
    M: ParamM = None,
    C: ParamC = None,
    subject_to: SubjectTo = None,
    nonnegative: Nonnegative = None,
    nonpositive: Nonpositive = None,
    weight_bounds: WeightBounds = None,
    box: BoxOption = None,
    weight_rows: WeightRows = None,
    rungs: Annotated[
        str | None, typer.Option("--rungs", metavar="NAMES", help="Some of the rungs, separated by commas.")
    ] = None,
    time_limit: Annotated[float, typer.Option("--time-limit", metavar="S", help="Seconds for every rung.")] = 60.0,
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
    """Compare the relaxations of one problem with its exact optimum."""
    from mipfs import readers
    from mipfs.cli.live import live_table
    from mipfs.cli.output import OutputTargets, check_page, check_target, finish_study
    from mipfs.cli.solve import with_lp_rows
    from mipfs.cli.typed import command_line
    from mipfs.lab.studies import ladder
    from mipfs.lab.studies.ladder import ladder_blocks
    from mipfs.plumbing.signals import hold_signals

    enter(module or ())
    params = problem_parameters(with_M_and_C(param, M, C), "compare", "atoms")
    recipe = recipe_options(drop, use, impute, types, words, missing, checks)
    inputs = (data_file, subject_to, weight_rows, *files_of(module))
    check_target(json, *inputs)
    check_page(report, *inputs, outputs=(json,))
    problem = pose_problem(readers.read(data_file, **read_options(scale, label, positive, recipe)), params)
    problem = with_lp_rows(problem, subject_to)
    problem = bound_weights(problem, nonnegative, nonpositive, weight_bounds, box, positive=positive)
    problem = with_weight_rows(problem, weight_rows)
    chosen = None if rungs is None else parse_names(rungs)
    with hold_signals(deliver=False):
        with live_table(quiet) as observers:
            comparison = ladder.compare(problem, rungs=chosen, time_limit=time_limit, observers=observers)
        comparison = dataclasses.replace(comparison, command=command_line())
        title = f"The ladder on {Path(data_file).name}"
        blocks = partial(ladder_blocks, comparison, len(problem.selection.rows))
        nothing = not comparison.selected and comparison.incumbent == float("inf")
        conflict = comparison.conflict or None
        targets = OutputTargets(json, report, title, quiet)
        return finish_study(comparison, blocks, targets, conflict=conflict, nothing=nothing)
