"""``mipfs table``: the weights or the near-optimal sets of a result as a table for a paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mipfs.cli.options import Quiet, ResultFile, Seed
from mipfs.errors import UsageError

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
    quiet: Quiet = False,
    seed: Seed = 0,
) -> int:
    """Print the weights of a result, or its near-optimal sets, as CSV or LaTeX."""
    from mipfs.cli.output import check_target
    from mipfs.cli.text import say
    from mipfs.plumbing import output_file
    from mipfs.result import documents
    from mipfs.result.tables import table_of

    kind = None if output is None else Path(output).suffix.lower()
    if kind is not None and kind not in KINDS:
        raise UsageError(f"-o {output}: a table is written as {' or '.join(KINDS)}; give such a name")
    if latex and kind == ".csv":
        raise UsageError(f"--latex: {output} would hold CSV; name it .tex, or leave --latex out")
    check_target(output, documents.split_point(result_file)[0], option="-o")
    found = table_of(documents.load(result_file), "near-optimal" if near_optimal else "weights")
    text = found.latex() if latex or kind == ".tex" else found.csv()
    if output is None:
        print(text, end="")
        return 0
    output_file.save([(Path(output), text.encode())])
    if not quiet:
        say(f"written to {output}")
    return 0
