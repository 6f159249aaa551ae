"""``mipfs table``: weights or near-optimal sets of a result, or the lines of a card, as a table for a paper."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mipfs.cli.options import Json, Quiet, ResultFile, Seed
from mipfs.errors import UsageError

if TYPE_CHECKING:
    from mipfs.result.tables import PrintedTable

KINDS = ".csv", ".tex"


def table(
    result_file: ResultFile,
    near_optimal: Annotated[
        bool, typer.Option("--near-optimal", help="The sets of --pool-gap or --pool-size in place of the weights.")
    ] = False,
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="FILE.csv, or FILE.tex for LaTeX; by default it is printed."
        ),
    ] = None,
    latex: Annotated[bool, typer.Option("--latex", help="Print LaTeX (package booktabs) in place of CSV.")] = False,
    json: Json = None,
    quiet: Quiet = False,
    seed: Seed = 0,
) -> int:
    """Print the weights of a result, its near-optimal sets, or the lines of a scorecard, as CSV or LaTeX."""
    from mipfs.cli.output import check_target, say, write_json
    from mipfs.result import documents

    if output is not None:
        check_kind("-o", output)
    if latex and output is not None and not _is_latex(output):
        raise UsageError(f"--latex: {output} would hold CSV; name it .tex, or leave --latex out")
    file = documents.split_point(result_file)[0]
    check_target(output, file, option="-o")
    check_target(json, file, outputs=(output,))
    found = _table_of(result_file, near_optimal)
    if output is not None:
        write_table(output, found)
    write_json({"schema": 1, "columns": found.columns, "rows": found.rows}, json)
    if json == "-":
        return 0
    if output is None:
        print(found.latex() if latex else found.csv(), end="")
    elif not quiet:
        say(f"written to {output}")
    return 0


def _table_of(result_file: str, near_optimal: bool) -> PrintedTable:
    """Of a result or a scorecard.

    Raises
    ------
    UsageError
    """
    from mipfs.cli.evaluate import card_of
    from mipfs.result import documents
    from mipfs.result.tables import PrintedTable, table_of

    file, _ = documents.split_point(result_file)
    card = card_of(file, documents.read_contents(file))
    if card is None:
        return table_of(documents.load(result_file), "near-optimal" if near_optimal else "weights")
    if near_optimal:
        raise UsageError(
            "a card has no list of near-optimal cards; mipfs scorecard RESULT DATA --cards FILE.csv writes it"
        )
    lines = ((c.feature, c.condition, points) for c, points in zip(card.columns, card.points, strict=True))
    return PrintedTable(("feature", "condition", "points"), tuple(lines))


def check_kind(option: str, output: str) -> None:
    """Refuse a name that says no kind of table.

    Raises
    ------
    UsageError
    """
    if Path(output).suffix.lower() not in KINDS:
        raise UsageError(f"{option} {output}: a table is written as {' or '.join(KINDS)}; give such a name")


def write_table(output: str, table: PrintedTable) -> None:
    """Write a table as its name says."""
    from mipfs.plumbing import output_file

    output_file.save([(Path(output), (table.latex() if _is_latex(output) else table.csv()).encode())])


def _is_latex(output: str) -> bool:
    return Path(output).suffix.lower() == ".tex"
