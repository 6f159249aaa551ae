"""``mipfs refit``: the classifier on features that were selected before, at another C or loss (de-bias)."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

import typer

from mipfs.cli.options import (
    DataFile,
    Json,
    Label,
    Module,
    Positive,
    Quiet,
    Report,
    ResultFile,
    Scale,
    Seed,
    Words,
    enter,
    files_of,
)

GAP = 1e-6
"""Relative gap of the SVM: there is nothing to search."""


def refit(
    result_file: ResultFile,
    data_file: DataFile,
    C: Annotated[float, typer.Option("--C", metavar="C", help="Loss weight; Tan 2014 takes 20.", show_default=False)],
    loss: Annotated[
        str | None, typer.Option("--loss", metavar="NAME", help="Another loss than the result's.", show_default=False)
    ] = None,
    keep_all: Annotated[
        bool, typer.Option("--all", help="Of a relaxation: all features that it uses, not the selected ones.")
    ] = False,
    module: Module = None,
    scale: Scale = None,
    label: Label = None,
    positive: Positive = None,
    words: Words = None,
    json: Json = None,
    report: Report = None,
    quiet: Quiet = False,
    seed: Seed = 0,
) -> int:
    """Fit the SVM anew on the features of a result: a result of its own, with a certificate of its own."""
    import mipfs
    from mipfs.cli.checks import data_of
    from mipfs.cli.output import check_page, check_target, finish
    from mipfs.cli.typed import command_line
    from mipfs.errors import UsageError
    from mipfs.plumbing.signals import hold_signals
    from mipfs.result import documents
    from mipfs.result.posed import posed_again

    enter(module or ())
    inputs = (documents.split_point(result_file)[0], data_file, *files_of(module))
    check_target(json, *inputs, pair=True)
    check_page(report, *inputs, outputs=(json,))
    result = documents.load_to_pose(result_file)
    kept = result.selected
    if keep_all:
        if result.relaxed is None:
            raise UsageError(
                f"{result_file}: --all is for a relaxation, such as that of `mipfs solve fgm`; leave it out"
            )
        kept = tuple(result.relaxed["sigma"])
    data = data_of(result, data_file, scale.value if scale else None, label, positive, words)
    problem = posed_again(result, data, "refit", M=len(kept), forced_in=kept, loss=loss, C=C)
    with hold_signals(deliver=False):
        found = dataclasses.replace(mipfs.solve(problem, "branch", gap=GAP, seed=seed), command=command_line())
        title = f"refit of {Path(inputs[0]).name} on {Path(data_file).name}"
        return finish(found, json, quiet, report=report, title=title)
