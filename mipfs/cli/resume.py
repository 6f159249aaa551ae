"""``mipfs resume``: a run whose state was kept goes on, by the command that began it.

That command stands in a file, which may be anybody's: code that it names, and places outside the file's own folder that
it would write to, are shown and refused without ``--trust``.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mipfs.cli.driver_options import Option
from mipfs.cli.options import Json, Quiet, Report, TotalLimit
from mipfs.errors import DataError, UsageError

if TYPE_CHECKING:
    from mipfs.result.state import StartCommand

TAKES = "--json", "--report", "--time-limit", "--memory-limit", "--gap", "--pool-gap", "--pool-size", "--seed"
"""Options that are given anew, each with a value."""
RUNS = "model", "module", "dask"
"""Parameters of a command by which code comes in: a formulation, modules, a scheduler whose answers are pickles."""
WRITES = "json", "report", "write", "checkpoint", "then_json"
"""Parameters of a command that name what it writes."""


def resume(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="What `--checkpoint FILE` of `mipfs solve` or `mipfs path` has kept.")
    ],
    time_limit: Annotated[
        float | None, typer.Option("--time-limit", metavar="S", help="Seconds more; by default as many as before.")
    ] = None,
    memory_limit: Annotated[
        float | None, typer.Option("--memory-limit", metavar="GB", help="Another limit of memory.")
    ] = None,
    gap: Annotated[float | None, typer.Option("--gap", metavar="GAP", help="Another relative gap.")] = None,
    pool_gap: Annotated[
        float | None, typer.Option("--pool-gap", metavar="GAP", help="Find all supports within this relative gap.")
    ] = None,
    pool_size: Annotated[int | None, typer.Option("--pool-size", metavar="K", help="Find the best K supports.")] = None,
    option: Option = None,
    json: Json = None,
    report: Report = None,
    trust: Annotated[
        bool, typer.Option("--trust", help="Run the modules and write to the places that FILE names: it is yours.")
    ] = False,
    total_limit: TotalLimit = None,
    quiet: Quiet = False,
    seed: Annotated[
        int | None, typer.Option("--seed", metavar="N", min=0, help="Another seed of what is left of a solve.")
    ] = None,
) -> int:
    """Go on with a run that a limit, Ctrl-C or a crash has ended; what is given here takes the place of what was."""
    from mipfs.cli import main

    began, command = _start_command_of(file)
    if not began.arguments:
        what = "solve(problem, driver" if command == "solve" else "path(problem, M=..."
        raise UsageError(
            f"{file}: the run was begun in Python, which keeps no command; there "
            f"mipfs.{what}, resume={file!r}) goes on with it"
        )
    if began.arguments[0] != command:
        raise UsageError(
            f"{file}: its command is {began.arguments[0]!r}, and such files are of `mipfs {command}` alone"
        )
    if command == "path" and (option or any(value is not None for value in (memory_limit, pool_gap, pool_size, seed))):
        raise UsageError(f"{file}: a path takes --time-limit and --gap anew; give the others to `mipfs path --resume`")
    named = zip(TAKES, (json, report, time_limit, memory_limit, gap, pool_gap, pool_size, seed), strict=True)
    given = {name: str(value) for name, value in named if value is not None}
    for name in ("--json", "--report"):  # of this folder, not of the first command's
        if given.get(name, "-") != "-":
            given[name] = str(Path(given[name]).absolute())
    place = str(Path(file).absolute())
    options = [text for one in option or () for text in ("-o", one)]
    more = [text for pair in given.items() for text in pair] + ["--quiet"] * quiet
    goes_on = ["--resume", place, *(["--checkpoint", place] if command == "solve" else [])]
    arguments = [*_drop_arguments(began.arguments, given, option or ()), *options, *more, *goes_on]
    if not trust:
        _check_named(file, arguments, began.folder, given)
    try:
        os.chdir(began.folder)  # where the file names of the command are of
    except OSError as error:
        raise UsageError(f"{file}: the run was begun in {began.folder}, {error.strerror}; it goes on there") from None
    return main(arguments)


def _check_named(file: str, arguments: Sequence[str], folder: str, given: Collection[str]) -> None:
    """Refuse code that a file names, and what it would have written outside its own folder.

    The arguments are read as the command itself reads them, so that no way of writing an option goes past this.

    Raises
    ------
    UsageError
    """
    from mipfs.cli.app import app

    group = typer.main.get_command(app)
    command = group.get_command(typer.Context(group), arguments[0])  # type: ignore[attr-defined]
    said = command.make_context(arguments[0], list(arguments[1:])).params
    own = os.path.dirname(os.path.realpath(file))
    found = []
    for name in (*RUNS, *WRITES):
        option = "MODEL" if name == "model" else f"--{name.replace('_', '-')}"
        for value in [] if option in given else _option_values(said.get(name)):
            if name in RUNS and (name != "model" or value.endswith(".py")):
                found.append(f"{option} {value} (which would run)")
            elif name in WRITES and value != "-" and not _is_within(os.path.join(folder, value), own):
                found.append(f"{option} {value} (outside its folder)")
    if found:
        raise UsageError(
            f"{file}: what runs and where it writes is not for a file to say, and this one says {', '.join(found)}; "
            "give another --json or --report, or --trust where the file is yours"
        )


def _option_values(given: str | Sequence[str] | None) -> Sequence[str]:
    """The values of an option, given once, several times, or not."""
    return [given] if isinstance(given, str) else given or ()


def _is_within(path: str, folder: str) -> bool:
    """Whether a file is, or would be, in a folder or below it, at the end of all links."""
    return Path(os.path.realpath(path)).is_relative_to(folder)


def _start_command_of(file: str) -> tuple[StartCommand, str]:
    """How a run began whose state, or a path whose points, are in a file; the command that keeps such files."""
    from mipfs.lab.studies import bench_reading, point_store
    from mipfs.result.state import RunState

    if point_store.is_store(file):
        return point_store.began_of(file), "path"
    try:
        return RunState.load(file).began, "solve"
    except DataError as error:
        try:
            bench_reading.load(file)
        except DataError:
            raise error from None
    raise UsageError(f"{file} holds a benchmark; `mipfs bench DATA --resume -o {file}` goes on with it")


def _drop_arguments(arguments: Sequence[str], given: dict[str, str], options: Sequence[str]) -> list[str]:
    """The arguments of the first command without what is given anew."""
    names = {*given, "--resume", "--checkpoint"}
    anew = {one.partition("=")[0].replace("-", "_") for one in options}
    kept: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        name, equals, value = argument.partition("=")
        if name in names:
            if not equals:
                next(rest, None)
        elif name in ("-o", "--option"):
            value = value if equals else next(rest, "")
            if value.partition("=")[0].replace("-", "_") not in anew:
                kept += ["-o", value]
        else:
            kept.append(argument)
    return kept
