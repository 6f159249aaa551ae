"""``mipfs study``: an experiment of the papers, or one of ours, measured and reported again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mipfs.cli.options import Jobs, Json, Quiet, Report, TotalLimit
from mipfs.errors import UsageError

if TYPE_CHECKING:
    from mipfs.lab.experiments.run import StudyResults

FOLDER = "reports/studies"


def study(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="One of those of --list.", show_default=False)
    ] = None,
    names: Annotated[bool, typer.Option("--list", help="List the studies, and what each is about.")] = False,
    index: Annotated[bool, typer.Option("--index", help="Write the index of all studies that have rows.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="A small subset of the same units: seconds.")] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Measure again what another version or commit of mipfs measured.")
    ] = False,
    time_limit: Annotated[
        float | None,
        typer.Option("--time-limit", metavar="S", help="Begin no unit after S seconds; another call goes on."),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", metavar="DIR", help=f"Folder of rows and report [default: {FOLDER}/NAME]."),
    ] = None,
    jobs: Jobs = None,
    report: Report = None,
    json: Json = None,
    total_limit: TotalLimit = None,
    quiet: Quiet = False,
    seed: Annotated[
        int | None,
        typer.Option("--seed", metavar="N", min=0, help="Of units that are drawn, those of this seed alone."),
    ] = None,
) -> int:
    """Measure and report an experiment of the papers again; what was measured before is kept.

    Rows are appended to rows.jsonl, unit by unit, so that a run that was stopped goes on where it was; so does one with
    --again, which keeps what the code that runs has measured. README.md,
    pictures and rows.csv are made of the rows alone. Data sets are read below the folder of MIPFS_DATA.
    """
    if sum((name is not None, names, index)) != 1:
        raise UsageError("give the name of a study, --list for the names, or --index for the index of their results")
    if time_limit is not None and not time_limit >= 0.0:
        raise UsageError(f"--time-limit {time_limit:g} must be a number of seconds, 0 or more")
    if out is not None and not out.strip():
        raise UsageError("-o is empty; give the folder of the study")
    if name is None:
        return _list_studies(json, quiet) if names else _write_index(Path(out or FOLDER), json, quiet)
    how = {"quick": quick, "time_limit": time_limit, "jobs": jobs, "again": again, "seed": seed}
    return _run(name, Path(out or f"{FOLDER}/{name}"), (json, report), quiet, how)


def _list_studies(json: str | None, quiet: bool) -> int:
    """The studies, a line each."""
    from mipfs.cli.output import check_target, show_table, write_json
    from mipfs.lab.experiments import available, get_study

    check_target(json)
    studies = [get_study(one) for one in available()]
    told = [{"name": s.name, "title": s.title, "source": s.source, "units": len(s.units())} for s in studies]
    write_json({"schema": 1, "studies": told}, json)
    if json != "-" and not quiet:
        lines = [[s.name, s.title, f"{sum(u.quick for u in s.units())} of {len(s.units())}"] for s in studies]
        show_table(["study", "what", "units (quick)"], lines, left=2)
    return 0


def _write_index(folder: Path, json: str | None, quiet: bool) -> int:
    """Write the index of a folder of studies."""
    from mipfs.cli.output import check_target, say, write_json
    from mipfs.lab.experiments.index import write_index

    check_target(json)
    target = write_index(folder)
    write_json({"schema": 1, "index": str(target)}, json)
    if json != "-" and not quiet:
        say(f"written to {target}")
    return 0


def _run(
    name: str,
    folder: Path,
    targets: tuple[str | None, str | None],
    quiet: bool,
    how: Mapping[str, Any],
) -> int:
    from mipfs.cli.output import check_page, check_target
    from mipfs.lab.experiments import get_study
    from mipfs.lab.experiments.run import TABLE, run
    from mipfs.report.progress import progress

    asked = get_study(name)
    json, report = targets
    check_target(json)
    check_page(report, outputs=(json,))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        reason = "it is a file" if isinstance(error, FileExistsError) else str(error).lower()
        raise UsageError(f"-o {folder}: the folder cannot be made: {reason}; name another one") from None
    check_target(str(folder / TABLE), option="-o")
    with progress(f"study {name}:", "units", not quiet) as tell:
        found = run(asked, folder, **how, tell=tell)
    return _write_and_show(found, folder, targets, quiet)


def _write_and_show(found: StudyResults, folder: Path, targets: tuple[str | None, str | None], quiet: bool) -> int:
    """Write and show what there is, and return the exit code."""
    from mipfs.cli.errors import STOPPED_EARLY, complain
    from mipfs.cli.output import say, show_blocks, write_json, write_page
    from mipfs.report.numbers import many

    json, report = targets
    if found.lines:
        found.save(folder)
        write_page(report, found.study.title, found)
    if json is not None:
        write_json(found.document(), json)
    if json != "-" and not quiet:
        show_blocks(found.blocks())
        if found.lines:
            say(f"\nwritten to {folder}")
    for why, count in found.skipped.items():
        complain(f"{many(count, 'unit is', 'units are')} left out: {why}", "warning")
    left = found.asked - found.reached - sum(found.skipped.values())
    if left:
        complain(f"{left} of {found.asked} units are left; the same command goes on with them", "warning")
    if not found.lines:
        return STOPPED_EARLY
    return 0
