"""``mipfs bins``: a table cut into thresholds, special codes and missing cells, as candidates of a selection."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from json import dumps as as_text  # an option is called json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mipfs.cli.options import Json, Label, Positive, Quiet, Scaling, Seed
from mipfs.errors import DataWarning, UsageError

if TYPE_CHECKING:
    from mipfs.lab.scorecard.indicators import Indicators, Table

MOST_THRESHOLDS = 1000
USUAL_THRESHOLDS = 4
RECIPE = ("drop", "use", "types", "impute", "missing")
"""What a description says of a raw table that is for reading it, and not for cutting it."""


@dataclass(frozen=True)
class _Cut:
    """How a table is cut that no other one is like; None where nothing was asked for.

    Attributes
    ----------
    label, positive, scale : what its description says
    special : special codes, as `codes` reads them
    thresholds : of a column at most
    features, each : what its rows allow: columns of the table, and thresholds of each
    """

    label: str | None
    positive: str | None
    scale: Scaling | None
    special: list[str] | None
    thresholds: int | None
    features: int | None
    each: int | None

    def check(self, like: str | None) -> None:
        """Refuse counts out of their range, and all that an earlier cut has decided.

        Raises
        ------
        UsageError
        """
        stated = [name for name, one in vars(self).items() if one is not None]
        if like is not None and stated:
            raise UsageError(f"--{stated[0]}: the table is cut as {like} says; leave it out, or leave --like out")
        for name in ("thresholds", "features", "each"):
            if name in stated and not 1 <= getattr(self, name) <= MOST_THRESHOLDS:
                raise UsageError(f"--{name}: give a whole number from 1 to {MOST_THRESHOLDS}")


def bins(
    table: Annotated[str, typer.Argument(metavar="TABLE.csv", help="A CSV file with a header.", show_default=False)],
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="OUT.csv", help="The table of 0 and 1.", show_default=False)
    ],
    thresholds: Annotated[
        int | None,
        typer.Option(
            "--thresholds",
            metavar="N",
            help=f"Thresholds of a column at most, at its quantiles; {USUAL_THRESHOLDS} where nothing is said.",
        ),
    ] = None,
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
    scale: Annotated[
        Scaling | None, typer.Option("--scale", help="Scaling that OUT.toml asks for; columns of 0 and 1 need none.")
    ] = None,
    label: Label = None,
    positive: Positive = None,
    json: Json = None,
    quiet: Quiet = False,
    seed: Seed = 0,
) -> int:
    """Cut the columns of a table into thresholds, special codes and missing cells, each a column of 0 and 1.

    Beside OUT.csv stand OUT.toml, which names the labels, and OUT.bins.json, by which new tables are cut (--like). The
    label is that of TABLE.toml where no other is given; its costs and rows are about its own columns, and stay there.
    """
    from mipfs.cli.output import check_target, say, write_json
    from mipfs.lab.scorecard.indicators import Indicators, csv_text, read_table
    from mipfs.plumbing import output_file

    place = Path(output)
    if place.suffix != ".csv":
        raise UsageError(f"-o {output}: the table is written as CSV; give a name that ends in .csv")
    asked = _Cut(label, positive, scale, special, thresholds, features, each)
    asked.check(like)
    beside = [place.with_suffix(end) for end in (".bins.json", ".toml", ".lp")]
    for one in (place, *beside):
        check_target(str(one), table, like, option="-o")
    check_target(json, table, like, outputs=(output, *map(str, beside)))
    cells = read_table(Path(table))
    if like is not None:
        texts, most = [csv_text(Indicators.load(Path(like)).rows(cells))], None
    else:
        texts, most = _cut_anew(Path(table), cells, asked)
    written = [place, *beside][: len(texts)]
    output_file.save([(one, text.encode()) for one, text in zip(written, texts, strict=True)])
    if like is None and beside[-1] not in written:
        _warn_of_old_rows(beside[-1], place)
    write_json({"schema": 1, "written": [str(one) for one in written], "M": most}, json)
    if json != "-" and not quiet:
        say(f"written to {', '.join(map(str, written))}")
        if most is not None:
            say(f"next: mipfs solve fsp-m {place} --subject-to {beside[-1]} --M {most}")
    return 0


def _warn_of_old_rows(rows: Path, table: Path) -> None:
    """Say that the rows beside a table, if there are any, are not those of its cut."""
    if rows.exists():
        warnings.warn(
            f"{rows} is of an earlier cut and was left as it is: its rows may be about other columns than {table} has "
            "now; write it anew with --features or --each, or remove it",
            DataWarning,
            stacklevel=2,
        )


def _cut_anew(table: Path, cells: Table, asked: _Cut) -> tuple[list[str], int | None]:
    """The texts of the files for a table that no other is like; the most columns that its rows allow, where they say.

    Raises
    ------
    UsageError, LabelError
    """
    import numpy as np

    from mipfs.lab.scorecard.indicators import Indicators, csv_text, number
    from mipfs.readers.columns import Table as Columns
    from mipfs.readers.labels import map_labels
    from mipfs.readers.sidecar import DataDescription

    stated = DataDescription.beside(table)
    if unread := [key for key in RECIPE if key in stated.tables.get("data", {})]:
        warnings.warn(
            f"{table}: bins cuts cells as they stand, and [data] {', '.join(unread)} of its .toml is not followed; "
            "leave such columns out of the table, and write numbers in it",
            DataWarning,
            stacklevel=1,
        )
    label, features, each = asked.label or stated.label or "label", asked.features, asked.each
    found = Indicators.of(cells, label, asked.thresholds or USUAL_THRESHOLDS, codes(asked.special or ()))
    positive = stated.positive if asked.label is None and asked.positive is None else asked.positive
    if positive is not None:
        numbers = [*map(number, cells[label])]  # as a reader has them
        map_labels(Columns(None, np.array(cells[label] if None in numbers else numbers)), positive, table)
    texts = [csv_text(found.rows(cells)), f"{found.to_json()}\n", described(label, positive, asked.scale)]
    if features is None and each is None:
        return texts, None
    words = word_features(found, cells)
    texts.append(found.lp(features, each, words))
    return texts, None if features is None or each is None else features * max([each, *map(len, words.values())])


def word_features(found: Indicators, cells: Table) -> dict[str, tuple[str, ...]]:
    """The features that the columns of words of a table that was cut become, by column."""
    import pandas

    from mipfs.estimators.words import groups_of, learn_words
    from mipfs.lab.scorecard.indicators import word_of

    held = {cut.name: [*map(word_of, cells[cut.name])] for cut in found.cuts if cut.is_words}
    words = learn_words(pandas.DataFrame(held, dtype=object)) if held else None
    groups = groups_of(words)
    return {name: groups.get(name, () if name in (words or {}) else (name,)) for name in held}


def described(label: str, positive: str | float | None, scale: Scaling | None) -> str:
    """The .toml of the table: its label, which of the labels is +1 and how it is scaled, where somebody says so."""
    stated = {"label": label, "positive": positive, "scale": scale}
    return "\n".join(["[data]", *(f"{key} = {as_text(one)}" for key, one in stated.items() if one is not None), ""])


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
