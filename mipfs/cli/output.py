"""How a result is shown, written and turned into an exit code.

Also here: tables for people: rich where a terminal shows them, plain aligned text where they are piped.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mipfs.cli.errors import BAD_USAGE, STOPPED_EARLY, complain
from mipfs.errors import DataError, UsageError
from mipfs.plumbing import output_file
from mipfs.plumbing.signals import hold_signals
from mipfs.proof.pair import check_other, sidecar_of
from mipfs.readers.beside import labels_of, names_of
from mipfs.readers.files import description_of
from mipfs.report.blocks import Alarm, NamedValues, ReportBlock, Table
from mipfs.report.numbers import number, percent, state_parameters
from mipfs.report.visible import as_json, escape_invisible
from mipfs.result.result import CERTIFICATE_LIMIT, Result, Status, StopReason

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mipfs.data.instance import Instance
    from mipfs.report.blocks import Reported


__all__ = ["Alarm", "number", "percent", "say", "show_blocks", "show_pairs", "show_table", "state_parameters"]


def say(text: str) -> None:
    """Print a line on standard output, below an empty one where it begins with one."""
    head = text.lstrip("\n")
    print("\n" * (len(text) - len(head)) + escape_invisible(head))


def show_blocks(blocks: Iterable[ReportBlock]) -> None:
    """Print the parts of a report on standard output."""
    for block in blocks:
        if isinstance(block, Table) and sys.stdout.isatty():
            _show_rich(block)
        elif isinstance(block, NamedValues) and sys.stdout.isatty():
            _show_coloured(block)
        else:
            print(block.text(), end="")


def show_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, title: str = "", left: int = 1) -> None:
    """Print a table on standard output; the first `left` columns are aligned to the left, numbers to the right."""
    show_blocks([Table(header, rows, title, left)])


def show_pairs(pairs: Sequence[tuple[str, str]]) -> None:
    """Print ``name  value`` lines, aligned."""
    show_blocks([NamedValues(pairs)])


def _show_coloured(block: NamedValues) -> None:
    """Lines of names and values, those that alarm in red."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    for (_, given), (name, value) in zip(block.pairs, block.columns(), strict=True):
        line = Text(name).append(value, style="bold red" if isinstance(given, Alarm) else "")
        console.print(line, soft_wrap=True)


def _show_rich(block: Table) -> None:
    """A table with a frame, without one where that is too wide, as plain text where numbers would still be cut."""
    from rich.box import HEAVY_HEAD
    from rich.console import Console
    from rich.table import Table as Framed
    from rich.text import Text

    console = Console()
    (header, *rows) = block.visible()
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    least = [min(width, FOLDED_WIDTH) if i < block.left else width for i, width in enumerate(widths)]
    if sum(least) + len(least) > console.width:
        print(block.text(), end="")
        return
    framed = sum(least) + 3 * len(least) + 1 <= console.width
    table = Framed(
        title=Text(escape_invisible(block.title)) if block.title else None,
        title_justify="left",
        box=HEAVY_HEAD if framed else None,
        padding=(0, 1) if framed else (0, 1, 0, 0),
        pad_edge=framed,
    )
    for i, name in enumerate(header):
        words = i < block.left
        table.add_column(
            Text(name), justify="left" if words else "right", overflow="fold", no_wrap=not words, min_width=least[i]
        )
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)


FOLDED_WIDTH = 24
"""Characters at which a column of words may be folded; numbers never are."""


INFEASIBLE = 3


def finish(
    result: Result,
    target: str | None,
    quiet: bool,
    certificate_limit: float = CERTIFICATE_LIMIT,
    report: str | None = None,
    title: str = "",
    beside: Reported | None = None,
    data: Instance | None = None,
) -> int:
    """Write the JSON and the page where they were asked for, show the result to people, and return the exit code.

    What cannot be written is still shown, so that a full disk does not take it. `beside` is another report, which is
    shown below it; a page of two features has a picture of `data`.
    """
    stood = target is not None and os.path.isfile(target)
    try:
        if target == "-":
            print(result.to_json(), flush=True)
        elif target is not None:
            save_somewhere(target, partial(result.save, certificate_limit=certificate_limit))
        write_page(report, title, result, beside, data)
    except UsageError:
        if target != "-" and not quiet and (result.has_classifier or result.relaxed is not None):
            show_result(result)
            sys.stdout.flush()
        raise
    if result.status is Status.INFEASIBLE:
        return _count_contradicted(result.conflict)
    if not result.has_classifier and result.relaxed is None:
        return _explain_nothing(result)
    if target != "-" and not quiet:
        show_result(result)
        show_blocks([] if beside is None else beside.blocks())
        if target is not None:
            certificate = "" if result.certificate is None else f", its certificate to {result.certificate['file']}"
            _say_written(f"{target}{certificate}", stood)
        tell_page(report, after=target is not None)
    return 0


class OutputTargets(NamedTuple):
    """Where JSON (`-`: standard output) and page of a study go, the title of that, and whether nothing is shown."""

    json: str | None = None
    report: str | None = None
    title: str = ""
    quiet: bool = False


def finish_study(
    study: Any,
    blocks: Callable[[], Sequence[ReportBlock]],
    targets: OutputTargets,
    *,
    conflict: Sequence[str] | None,
    nothing: bool,
    missed: str = "any classifier was found",
) -> int:
    """Write a path or a ladder where that was asked for, show it, and return the exit code.

    Parameters
    ----------
    study : SolutionPath or Comparison
    blocks : callable, what is shown
    targets : OutputTargets
    conflict : names of rows that contradict each other where no selection satisfies them; else None
    nothing : whether there is neither a classifier nor a relaxation
    missed : before what it was stopped, where there is nothing
    """
    stood = targets.json is not None and os.path.isfile(targets.json)
    if targets.json not in (None, "-") and hasattr(study, "save"):
        save_somewhere(targets.json, study.save)
    elif targets.json is not None:
        write_json(study.document(), targets.json)
    write_page(targets.report, targets.title, study)
    if conflict is not None:
        return _count_contradicted(conflict)
    if nothing:
        complain(f"stopped before {missed}; let it run for longer, or raise the limit")
        return STOPPED_EARLY
    if targets.json != "-" and not targets.quiet:
        show_blocks(blocks())
        if targets.json is not None:
            _tell_written(study, targets.json, stood)
        tell_page(targets.report, after=targets.json is not None)
    return 0


def _say_written(what: str, stood: bool) -> None:
    """Say what was written, and whether a file stood there."""
    say(f"\nwritten to {what}")
    if stood:
        say("what stood there is replaced")


def _tell_written(study: Any, target: str, stood: bool) -> None:
    """Say where a study and the certificates of its points are, and how the point that folds chose is used."""
    file = getattr(study, "file", None)
    beside = "" if file is None else f", the certificates of its points to {sidecar_of(Path(file)).name}"
    _say_written(f"{target}{beside}", stood)
    if file is not None:
        from mipfs.lab.studies.point_files import use_of

        for k, line in enumerate(use_of(study).splitlines()):
            say(f"{'' if k else 'to use what was chosen: '}{line}")


def _count_contradicted(rows: Sequence[str]) -> int:
    culprits = ", ".join(map(repr, rows))
    complain(f"no selection satisfies the rows; these contradict each other: {culprits}; drop or relax one of them")
    return INFEASIBLE


def write_page(
    target: str | None,
    title: str,
    study: Reported,
    beside: Reported | None = None,
    data: Instance | None = None,
) -> None:
    """Write the page of one result, path, ladder, or anything else with a report, where it was asked for.

    `beside` is a report that stands below it; of a result of two features, `data` are drawn.
    """
    if target is not None:
        from mipfs.lab import page
        from mipfs.result.pair import pair_chart
        from mipfs.result.result import Result

        below = [] if beside is None else [page.Item("The second wish", beside)]
        picture = pair_chart(study, data) if isinstance(study, Result) and data is not None else None
        page.write(target, [page.Item(title, study, picture=picture), *below])


def tell_page(target: str | None, after: bool) -> None:
    """Say where the page is; `after` another line that says where something is."""
    if target is not None:
        say(f"{'' if after else chr(10)}page written to {target}")


def show_result(result: Result) -> None:
    """Print status, numbers and the selected features with their weights."""
    from mipfs.result.summary import summary_blocks

    show_blocks(summary_blocks(result))


def check_target(
    target: str | None,
    *inputs: str | None,
    outputs: Sequence[str | None] = (),
    pair: bool = False,
    option: str = "--json",
) -> None:
    """Refuse a target that cannot be written, or that something else is, before hours of work are lost to it.

    Parameters
    ----------
    target : the value of the option
    inputs : files that the command reads; beside data its description is read too, beside a result its certificate
    outputs : files that the command writes besides; beside the first of them a certificate may be written
    pair : whether a certificate is written beside the target
    option : its name, for the message
    """
    if target is None or target == "-":
        return
    _refuse_other_output(target, outputs, option)
    path = Path(target)
    read = [other for name in inputs if name is not None for other in (Path(name), *_read_beside(Path(name)))]
    try:
        output_file.check(path, read)
        if pair and not output_file.is_stream(path):
            output_file.check(sidecar_of(path), read)
            check_other(path)
    except UsageError as error:
        raise UsageError(f"{option} {error}") from None


def check_page(
    target: str | None, *inputs: str | None, outputs: Sequence[str | None] = (), option: str = "--report"
) -> None:
    """Refuse a place for the page as `check_target` does, or where another output goes.

    Parameters
    ----------
    outputs : as of `check_target`
    """
    if target is None:
        return
    if target == "-":
        raise UsageError(f"{option} -: a page is read by a browser; give a file, such as page.html")
    check_target(target, *inputs, outputs=outputs, option=option)


def _refuse_other_output(target: str, outputs: Sequence[str | None], option: str) -> None:
    """Refuse a target where another output goes."""
    named = [Path(name) for name in outputs if name is not None and name != "-"]
    beside = [sidecar_of(Path(name)) for name in outputs[:1] if name is not None and name != "-"]
    for other in (*named, *beside):
        if os.path.realpath(other) == os.path.realpath(target) and not output_file.is_stream(other):
            raise UsageError(f"{option} {target}: another output of this command goes there; give it another name")


def _read_beside(path: Path) -> list[Path]:
    """What is read along with a data file or a result."""
    try:
        return [description_of(path), sidecar_of(path), names_of(path), labels_of(path, "y")]
    except (DataError, UsageError, ValueError):
        return []  # no data file at all: its reader will say so


def save_somewhere(target: str, save: Callable[[str], object]) -> None:
    """Save to a target; where its folder has vanished since it was checked, into a new folder here, or a temporary one.

    Raises
    ------
    UsageError
        Nothing stands at the target; where the work is, the message says.
    """
    try:
        save(target)
    except UsageError as error:
        if output_file.has_folder(Path(target)):
            raise
        try:
            folder = tempfile.mkdtemp(prefix="mipfs-", dir=os.getcwd())
        except OSError:
            folder = tempfile.mkdtemp(prefix="mipfs-")
        place = os.path.join(folder, Path(target).name)
        save(place)
        raise UsageError(f"{target}: its folder is gone ({error}); what it was to hold is saved as {place}") from None


def write_json(document: Mapping[str, Any], target: str | None) -> None:
    """Write any other JSON document to a file, or to standard output for ``-``; nowhere for None."""
    if target is None:
        return
    text = as_json(document)
    with hold_signals(deliver=False):
        if target == "-":
            print(text, flush=True)
        else:
            save_somewhere(target, lambda place: output_file.save([(Path(place), f"{text}\n".encode())]))


def _explain_nothing(result: Result) -> int:
    if result.status is Status.NUMERICAL:
        complain("the numbers are too large or too ill-scaled for a trustworthy answer; try --scale standard")
        return BAD_USAGE
    complain(why_nothing(result))
    return STOPPED_EARLY


def why_nothing(result: Result) -> str:
    """What ended a run before it had a classifier, and the remedy."""
    from mipfs.result.summary import BECAUSE

    remedy = "let it run for longer" if result.stop_reason is StopReason.INTERRUPTED else "raise the limit"
    return f"{BECAUSE[result.stop_reason]} before any classifier was found; {remedy}"
