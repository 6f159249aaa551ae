"""``mipfs bins``: a table cut into thresholds, special codes and missing cells, as candidates of a selection."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mipfs.cli.options import Label, Quiet, Seed
from mipfs.errors import DataWarning, UsageError

if TYPE_CHECKING:
    from mipfs.lab.scorecard.indicators import Indicators, Table

MOST_THRESHOLDS = 1000
RECIPE = ("drop", "use", "types", "impute", "missing")
"""What a description says of a raw table that is for reading it, and not for cutting it."""


def bins(
    table: Annotated[str, typer.Argument(metavar="TABLE.csv", help="A CSV file with a header.", show_default=False)],
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="OUT.csv", help="The table of 0 and 1.", show_default=False)
    ],
    thresholds: Annotated[
        int, typer.Option("--thresholds", metavar="N", help="Thresholds of a column at most, at its quantiles.")
    ] = 4,
    special: Annotated[
        list[str] | None,
        typer.Option("--special", metavar="NAME=A,B", help="Special codes of a column; A,B alone of every column."),
    ] = None,
    features: Annotated[
        int | None, typer.Option("--features", metavar="K", help="Write OUT.lp: at most K columns of the table.")
    ] = None,
    each: Annotated[
        int | None, typer.Option("--each", metavar="T", help="Write OUT.lp: at most T thresholds of a column.")
    ] = None,
    like: Annotated[
        str | None, typer.Option("--like", metavar="OUT.bins.json", help="Cut the table as an earlier one was.")
    ] = None,
    label: Label = None,
    quiet: Quiet = False,
    seed: Seed = 0,
) -> int:
    """Cut the columns of a table into thresholds, special codes and missing cells, each a column of 0 and 1.

    Beside OUT.csv stand OUT.toml, which names the labels, and OUT.bins.json, by which new tables are cut (--like). The
    label is that of TABLE.toml where no other is given; its costs and rows are about its own columns, and stay there.
    """
    from mipfs.cli.output import check_target, say
    from mipfs.lab.scorecard.indicators import Indicators, csv_text, read_table
    from mipfs.plumbing import output_file
    from mipfs.readers.sidecar import DataDescription

    place = Path(output)
    if place.suffix != ".csv":
        raise UsageError(f"-o {output}: the table is written as CSV; give a name that ends in .csv")
    counts = {"--thresholds": thresholds, "--features": features, "--each": each}
    if wrong := [name for name, one in counts.items() if one is not None and not 1 <= one <= MOST_THRESHOLDS]:
        raise UsageError(f"{wrong[0]}: give a whole number from 1 to {MOST_THRESHOLDS}")
    beside = [place.with_suffix(end) for end in (".bins.json", ".toml", ".lp")]
    for one in (place, *beside):
        check_target(str(one), table, like, option="-o")
    cells = read_table(Path(table))
    if like is not None:
        output_file.save([(place, csv_text(Indicators.load(Path(like)).rows(cells)).encode())])
        written = [place]
    else:
        stated = DataDescription.beside(Path(table))
        if unread := [key for key in RECIPE if key in stated.tables.get("data", {})]:
            warnings.warn(
                f"{table}: bins cuts cells as they stand, and [data] {', '.join(unread)} of its .toml is not followed; "
                "leave such columns out of the table, and write numbers in it",
                DataWarning,
                stacklevel=1,
            )
        found = Indicators.of(cells, label or stated.label or "label", thresholds, codes(special or ()))
        texts = [csv_text(found.rows(cells)), f"{found.to_json()}\n", described(found.label, label, stated.positive)]
        words = word_features(found, cells) if features is not None or each is not None else None
        texts += [] if words is None else [found.lp(features, each, words)]
        written = [place, *beside][: len(texts)]
        output_file.save([(one, text.encode()) for one, text in zip(written, texts, strict=True)])
    if not quiet:
        say(f"written to {', '.join(map(str, written))}")
        if like is None and features is not None and each is not None:
            most = max([each, *map(len, (words or {}).values())])
            say(f"next: mipfs solve fsp-m {place} --subject-to {beside[-1]} --M {features * most}")
    return 0


def word_features(found: Indicators, cells: Table) -> dict[str, tuple[str, ...]]:
    """The features that the columns of words of a table that was cut become, by column."""
    import pandas

    from mipfs.estimators.words import groups_of, learn_words

    held = {cut.name: [cut.of(cell, 0)[0] for cell in cells[cut.name]] for cut in found.cuts if cut.is_words}
    words = learn_words(pandas.DataFrame(held, dtype=object)) if held else None
    groups = groups_of(words)
    return {name: groups.get(name, () if name in (words or {}) else (name,)) for name in held}


def described(label: str, asked: str | None, positive: str | float | None) -> str:
    """The .toml of the table: its label, and which of the labels is +1 where the raw table's own .toml says so."""
    lines = ["[data]", f"label = {json.dumps(label)}"]
    if asked is None and positive is not None:
        lines.append(f"positive = {json.dumps(positive)}")
    return "\n".join([*lines, ""])


def codes(given: list[str] | tuple[str, ...]) -> dict[str, tuple[float, ...]]:
    """Special codes by column, "*" of every column.

    Raises
    ------
    UsageError
    """
    found = {}
    for one in given:
        name, mark, listed = one.rpartition("=")
        try:
            found[name if mark else "*"] = tuple(float(code) for code in listed.split(","))
        except ValueError:
            raise UsageError(f"--special {one}: codes are numbers, as in --special income=-9,-8") from None
    return found
