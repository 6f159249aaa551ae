"""``mipfs compare``: the ladder of relaxations on one data set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from mipfs.cli.options import DataFile, Json, Label, Positive, Quiet, Scale, Seed, parse_params, read_options

if TYPE_CHECKING:
    from mipfs.instance import Instance
    from mipfs.ladder import Comparison
    from mipfs.problem import Problem

PARAMETERS = ("M", "C", "lam", "loss", "bias", "margin")


def compare(
    data_file: DataFile,
    param: Annotated[
        list[str] | None,
        typer.Option("--param", "-p", metavar="KEY=VALUE", help="M, C, lambda, loss, bias or margin, e.g. -p M=5."),
    ] = None,
    subject_to: Annotated[
        str | None, typer.Option("--subject-to", metavar="rows.lp", help="More rows over the selection, an LP file.")
    ] = None,
    rungs: Annotated[
        str | None, typer.Option("--rungs", metavar="NAMES", help="Some of the rungs, separated by commas.")
    ] = None,
    time_limit: Annotated[float, typer.Option("--time-limit", metavar="S", help="Seconds for every rung.")] = 60.0,
    scale: Scale = None,
    label: Label = None,
    positive: Positive = None,
    json: Json = None,
    quiet: Quiet = False,
    seed: Seed = 0,
) -> int:
    """Compare the relaxations of one problem with its exact optimum."""
    from mipfs import ladder, readers
    from mipfs.cli.live import live_table
    from mipfs.cli.options import parse_names
    from mipfs.cli.output import check_target

    params = parse_params(param or ())
    check_target(json)
    data = readers.read(data_file, **read_options(scale, label, positive))
    problem = _problem(data, params, subject_to)
    chosen = None if rungs is None else parse_names(rungs)
    with live_table(quiet) as observers:
        comparison = ladder.compare(problem, rungs=chosen, time_limit=time_limit, observers=observers)
    return _finish(comparison, problem, json, quiet)


def _problem(data: Instance, params: dict[str, Any], subject_to: str | None) -> Problem:
    """The problem that the parameters and the LP file declare."""
    from mipfs.cli.solve import with_lp_rows
    from mipfs.errors import UsageError
    from mipfs.formulation import ALIASES
    from mipfs.problem import Problem

    given: dict[str, Any] = {}
    for key, value in params.items():
        name = ALIASES.get(key, key)
        if name not in PARAMETERS:
            raise UsageError(f"compare has no parameter {key!r}; it takes M, C, lambda, loss, bias, margin")
        if name in given:
            raise UsageError(f"{key!r} is another name of {name!r}, which is given too")
        given[name] = value
    problem = Problem(data, **given)
    return problem if subject_to is None else with_lp_rows(problem, subject_to)


def _finish(comparison: Comparison, problem: Problem, target: str | None, quiet: bool) -> int:
    """Write the JSON where it was asked for, show the ladder, and return the exit code."""
    from mipfs.cli.errors import STOPPED_EARLY, complain
    from mipfs.cli.output import INFEASIBLE, write_json

    if target is not None:
        write_json(comparison.document(), target)
    if comparison.conflict:
        culprits = ", ".join(repr(name) for name in comparison.conflict)
        complain(f"no selection satisfies the rows; these contradict each other: {culprits}; drop or relax one of them")
        return INFEASIBLE
    if not comparison.selected and comparison.incumbent == float("inf"):
        complain("stopped before any classifier was found; raise the limit")
        return STOPPED_EARLY
    if target != "-" and not quiet:
        _show(comparison, problem)
        if target is not None:
            print(f"\nwritten to {target}")
    return 0


def _show(comparison: Comparison, problem: Problem) -> None:
    from mipfs.cli.text import number, percent, show_pairs, show_table

    asked = ("M", "C", "lambda", "loss", "bias")
    show_pairs(
        [
            ("problem", ", ".join(f"{name} = {_text(comparison.params[name])}" for name in asked)),
            ("incumbent", f"{number(comparison.incumbent)} with {len(comparison.selected)} features"),
            ("rows", str(len(problem.selection.rows))),
        ]
    )
    lines = [
        (rung.name, rung.status, number(rung.value), percent(rung.gap), f"{rung.seconds:.2f}", _size(rung.size))
        for rung in comparison.ladder
    ]
    show_table(("rung", "status", "bound", "gap", "seconds", "size"), lines, title="The ladder", left=2)


def _size(size: Any) -> str:
    return "-" if size is None else f"{size['constraints']} x {size['variables']}"


def _text(value: Any) -> str:
    if isinstance(value, list):
        return "one per feature"
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
