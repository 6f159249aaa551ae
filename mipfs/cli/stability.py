"""``mipfs stability``: how often a feature is selected on parts of the samples."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from mipfs.cli.options import (
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
    Words,
    enter,
    files_of,
    pose_problem,
    problem_parameters,
    read_options,
    recipe_options,
    with_M_and_C,
)


def stability(
    data_file: DataFile,
    param: Param = None,
    M: ParamM = None,
    C: ParamC = None,
    draws: Annotated[int, typer.Option("--draws", metavar="K", help="Parts of the samples to solve.")] = 50,
    share: Annotated[
        float, typer.Option("--share", metavar="S", help="Share of each class that a draw has, without replacement.")
    ] = 0.5,
    bootstrap: Annotated[
        bool, typer.Option("--bootstrap", help="Draw as many samples as there are, with replacement.")
    ] = False,
    driver: Annotated[str | None, typer.Option("--driver", metavar="NAME", help="The algorithm.")] = None,
    time_limit: Annotated[
        float | None, typer.Option("--time-limit", metavar="S", help="Stop every draw after S seconds.")
    ] = None,
    gap: Annotated[
        float, typer.Option("--gap", metavar="GAP", help="Relative gap at which an answer counts as optimal.")
    ] = 1e-4,
    subject_to: SubjectTo = None,
    jobs: Jobs = None,
    folds_by: FoldsBy = None,
    module: Module = None,
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
) -> int:
    """Solve a problem on many parts of its samples, and print how often each feature is selected."""
    import mipfs
    from mipfs import readers
    from mipfs.cli.output import OutputTargets, check_page, check_target, finish_study
    from mipfs.cli.solve import with_lp_rows
    from mipfs.plumbing.signals import hold_signals
    from mipfs.report.progress import progress

    enter(module or ())
    params = problem_parameters(with_M_and_C(param, M, C), "stability", "atoms")
    recipe = recipe_options(drop, use, impute, types, words, missing, checks, folds_by)
    inputs = (data_file, subject_to, *files_of(module))
    check_target(json, *inputs)
    check_page(report, *inputs, outputs=(json,))
    data = readers.read(data_file, **read_options(scale, label, positive, recipe))
    problem = pose_problem(data, params)
    problem = with_lp_rows(problem, subject_to)
    options: dict[str, Any] = {"gap": gap} | ({} if time_limit is None else {"time_limit": time_limit})
    how: dict[str, Any] = {"draws": draws, "share": share, "bootstrap": bootstrap, "driver": driver, "seed": seed}
    with hold_signals(deliver=False):
        with progress("stability:", "draws", verbose=not quiet) as tell:
            found = mipfs.stability(problem, **how, jobs=jobs, on_draw=tell, **options)
        targets = OutputTargets(json, report, f"Stability of the selection on {Path(data_file).name}", quiet)
        conflict = found.whole.conflict or None
        missed = "any draw of the samples was solved"
        return finish_study(found, found.blocks, targets, conflict=conflict, nothing=not found.sets, missed=missed)
