"""``mipfs path``: one problem for every M, C or lambda, or with rows added one after the other."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mipfs.cli.options import (
    DataFile,
    Json,
    Label,
    Param,
    Positive,
    Quiet,
    Scale,
    Seed,
    SubjectTo,
    problem_parameters,
    read_options,
)

if TYPE_CHECKING:
    from mipfs.solution_path import SolutionPath

_RANGE = re.compile(r"(\d+):(\d+)", re.ASCII)


def path(
    data_file: DataFile,
    param: Param = None,
    M: Annotated[
        str | None, typer.Option("--M", metavar="A:B", help="Every M from A to B, both included, or a list: 1,2,5.")
    ] = None,
    C: Annotated[str | None, typer.Option("--C", metavar="LIST", help="Values of C, separated by commas.")] = None,
    lam: Annotated[
        str | None, typer.Option("--lambda", metavar="LIST", help="Values of lambda, separated by commas.")
    ] = None,
    rows: Annotated[
        str | None, typer.Option("--rows", metavar="rows.lp", help="The rows of an LP file, added one after the other.")
    ] = None,
    subject_to: SubjectTo = None,
    folds: Annotated[
        int | None, typer.Option("--folds", metavar="K", help="Choose by K-fold cross-validation.", show_default=False)
    ] = None,
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
    scale: Scale = None,
    label: Label = None,
    positive: Positive = None,
    json: Json = None,
    quiet: Quiet = False,
    seed: Seed = 0,
) -> int:
    """Solve a problem along a path of M, C, lambda or rows, cuts carried along."""
    import mipfs
    from mipfs import readers
    from mipfs.cli.live_path import live_path
    from mipfs.cli.output import check_target
    from mipfs.cli.solve import with_lp_rows
    from mipfs.errors import UsageError
    from mipfs.readers.lp_rows import read_rows
    from mipfs.signals import held

    axes: dict[str, Any] = {}
    if M is not None:
        axes["M"] = _whole(M)
    if C is not None:
        axes["C"] = _numbers("C", C)
    if lam is not None:
        axes["lam"] = _numbers("lambda", lam)
    if len(axes) + (rows is not None) != 1:
        raise UsageError("a path goes over one of --M, --C, --lambda and --rows; give one, for example --M 1:10")
    params = problem_parameters(param or (), "path")
    for name in params.keys() & axes.keys():
        shown = "lambda" if name == "lam" else name
        raise UsageError(f"-p {shown} and --{shown} are both given; the path sets it, so leave -p {shown} out")
    check_target(json, data_file, subject_to, rows)
    data = readers.read(data_file, **read_options(scale, label, positive))
    problem = mipfs.Problem(data, **params)
    if subject_to is not None:
        problem = with_lp_rows(problem, subject_to)
    if rows is not None:
        axes["rows"] = read_rows(rows, data)
    options: dict[str, Any] = {"gap": gap, "seed": seed, "folds": folds, "cold": cold, "driver": driver}
    if time_limit is not None:
        options["time_limit"] = time_limit
    with held(deliver=False):
        with live_path(quiet) as watchers:
            found = mipfs.path(problem, **axes, **options, **watchers)
        return _finish(found, json, quiet)


def _whole(text: str) -> Sequence[int]:
    """The values of ``--M``."""
    from mipfs.cli.options import whole
    from mipfs.errors import UsageError

    between = _RANGE.fullmatch(text)
    if between is not None:
        first, last = (whole(end, "--M") for end in between.groups())
        if first <= last:
            return range(first, last + 1)
    parts = [part.strip() for part in text.split(",")]
    if not all(re.fullmatch(r"\d+", part, re.ASCII) for part in parts):
        raise UsageError(f"--M {text}: write FIRST:LAST, or whole numbers separated by commas, such as 1:30 or 1,2,5")
    return [whole(part, "--M") for part in parts]


def _numbers(name: str, text: str) -> list[float]:
    """The values of ``--C`` and ``--lambda``."""
    from mipfs.errors import UsageError

    try:
        if "_" not in text:  # Python reads 1_000 as a number
            return [float(part) for part in text.split(",")]
    except ValueError:
        pass
    raise UsageError(f"--{name} {text}: write numbers separated by commas, such as 0.1,1,10")


def _finish(found: SolutionPath, target: str | None, quiet: bool) -> int:
    """Write the JSON where it was asked for, show the path, and return the exit code."""
    from mipfs.cli.errors import STOPPED_EARLY, complain
    from mipfs.cli.output import INFEASIBLE, write_json
    from mipfs.result import Status

    if target is not None:
        write_json(found.document(), target)
    if not any(point.result.has_classifier for point in found.points):
        conflicts = [point.result.conflict for point in found.points if point.status is Status.INFEASIBLE]
        if conflicts and len(conflicts) == len(found.points):
            culprits = ", ".join(repr(name) for name in conflicts[0])
            complain(
                f"no selection satisfies the rows; these contradict each other: {culprits}; drop or relax one of them"
            )
            return INFEASIBLE
        if not any(point.result.relaxed for point in found.points):
            complain("stopped before any classifier was found; raise the limit")
            return STOPPED_EARLY
    if target != "-" and not quiet:
        show_path(found)
        if target is not None:
            print(f"\nwritten to {target}")
    return 0


def show_path(found: SolutionPath) -> None:
    """Print what was asked, a line for every point, and the supports."""
    from mipfs.cli.text import show_pairs, show_table, stated

    total = sum(point.seconds for point in found.points)
    pairs = [
        ("problem", stated(found.params, without=found.axis)),
        ("driver", f"{found.driver}, {total:.2f} s"),
    ]
    if found.points and all(point.cold is not None for point in found.points):
        saved = sum(point.seconds_saved or 0.0 for point in found.points)
        pairs += [("cold", f"{total + saved:.2f} s, so the path saved {saved:.2f} s")]
    if found.interrupted:
        pairs += [("stopped", "interrupted: these are the points that were reached")]
    show_pairs(pairs)
    show_table(*cells(found), title="The path", left=0)
    supports = [(f"{p.value:g}", ", ".join(p.selected) or "-") for p in found.points]
    show_table((found.axis, "features"), supports, title="The supports", left=2)
    if found.best is not None:
        best = found.best
        print(
            f"\nchosen by {found.folds} folds: {found.axis} = {best.value:g}, "
            f"error {best.error:.4f} ± {best.deviation:.4f}"
        )


def cells(found: SolutionPath) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Header and lines of the path's table."""
    from mipfs.cli.text import number, percent

    is_cold = any(point.cold is not None for point in found.points)
    header = [found.axis, "status", "objective", "bound", "gap", "size", "seconds", "carried", "cuts", "subproblems"]
    header += ["cold s", "saved s"] if is_cold else []
    header += ["error", "deviation"] if found.chosen is not None else []
    lines = []
    for p in found.points:
        line = [f"{p.value:g}", p.status.name.lower(), number(p.objective), number(p.bound), percent(p.gap)]
        line += [str(len(p.selected)), f"{p.seconds:.2f}", str(p.cuts_carried), str(p.cuts), str(p.subproblems)]
        if is_cold:
            saved = p.seconds_saved
            line += ["-", "-"] if p.cold is None or saved is None else [f"{p.cold.seconds:.2f}", f"{saved:.2f}"]
        if found.chosen is not None:
            line += [f"{p.error:.4f}", f"{p.deviation:.4f}"] if p.errors else ["-", "-"]
        lines.append(tuple(line))
    return tuple(header), lines
