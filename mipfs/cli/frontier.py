"""``mipfs frontier``: what a row costs, the proven optimum for every value of its right-hand side."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

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
    parse_numbers,
    problem_parameters,
    read_options,
    recipe_options,
    with_M_and_C,
    with_weight_rows,
)
from mipfs.errors import UsageError

MOST_VALUES = 10_000
"""Values that FIRST:LAST:STEP may stand for."""


def frontier(
    data_file: DataFile,
    row: Annotated[
        str, typer.Option("--row", metavar="NAME", help="The row whose right-hand side moves, such as budget; or M.")
    ],
    values: Annotated[
        str,
        typer.Option("--values", metavar="A:B:STEP", help="Its values from A to B, both included, or a list: 1,2,5."),
    ],
    param: Param = None,
    M: ParamM = None,
    C: ParamC = None,
    subject_to: SubjectTo = None,
    nonnegative: Nonnegative = None,
    nonpositive: Nonpositive = None,
    weight_bounds: WeightBounds = None,
    box: BoxOption = None,
    weight_rows: WeightRows = None,
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
    csv: Annotated[
        str | None, typer.Option("--csv", metavar="FILE", help="Write a line for every value as CSV.")
    ] = None,
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
    """What a row costs: the proven optimum for every right-hand side of a budget, or of any other row."""
    import mipfs
    from mipfs import readers
    from mipfs.cli.live_path import live_path
    from mipfs.cli.output import OutputTargets, check_page, check_target
    from mipfs.cli.path import finish_path
    from mipfs.cli.solve import with_lp_rows
    from mipfs.cli.typed import command_line
    from mipfs.plumbing.signals import hold_signals

    enter(module or ())
    params = problem_parameters(with_M_and_C(param, M, C), "frontier")
    recipe = recipe_options(drop, use, impute, types, words, missing, checks)
    inputs = (data_file, subject_to, weight_rows, *files_of(module))
    check_target(json, *inputs, pair=True)
    check_page(report, *inputs, outputs=(json,))
    if csv is not None:
        check_target(csv, *inputs, outputs=(json, report), option="--csv")
    data = readers.read(data_file, **read_options(scale, label, positive, recipe))
    problem = with_lp_rows(mipfs.Problem(data, **params), subject_to)
    problem = bound_weights(problem, nonnegative, nonpositive, weight_bounds, box, positive=positive)
    problem = with_weight_rows(problem, weight_rows)
    options: dict[str, Any] = {"gap": gap, "seed": seed, "cold": cold}
    if time_limit is not None:
        options["time_limit"] = time_limit
    with hold_signals(deliver=False):
        with live_path(quiet) as watchers:
            found = mipfs.frontier(problem, row, parse_steps(values), driver=driver, **options, **watchers)
        found = dataclasses.replace(found, command=command_line())
        if csv is not None:
            found.save_csv(csv)
        return finish_path(found, OutputTargets(json, report, f"What {row} costs on {Path(data_file).name}", quiet))


def parse_steps(text: str) -> list[float]:
    """The values of ``--values``: A:B:STEP with both ends, A:B in steps of 1, or a list."""
    parts = text.split(":")
    if len(parts) == 1:
        return parse_numbers("values", text)
    ends = [number for part in parts for number in parse_numbers("values", part)]
    first, last, step = (*ends, 1.0)[:3] if len(ends) == len(parts) in (2, 3) else (math.nan,) * 3
    if not (math.isfinite(first) and math.isfinite(last) and 0.0 < step < math.inf and first <= last):
        raise UsageError(f"--values {text}: write FIRST:LAST:STEP, such as 5:50:5, or numbers separated by commas")
    # In decimals, as they were written: 0.1:0.5:0.1 ends at 0.5.
    begin, end, by = (Fraction(str(one)) for one in (first, last, step))
    count = int((end - begin) / by) + 1
    if count > MOST_VALUES:
        raise UsageError(f"--values {text} stands for {count} values; at most {MOST_VALUES} are solved at a time")
    return [float(begin + k * by) for k in range(count)]
