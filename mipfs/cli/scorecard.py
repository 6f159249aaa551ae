"""``mipfs scorecard``: whole points for the features of a result."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

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
    TotalLimit,
    Words,
    enter,
    files_of,
)
from mipfs.errors import UsageError


def scorecard(
    result_file: ResultFile,
    data_file: DataFile,
    points: Annotated[
        int, typer.Option("--points", metavar="K", help="Points of a column are whole numbers from -K to K.")
    ] = 5,
    bins: Annotated[
        int,
        typer.Option(
            "--bins", metavar="N", help="Cut columns of more than two values into N ranges at their quantiles; 0: none."
        ),
    ] = 0,
    near_optimal: Annotated[
        bool,
        typer.Option(help="Of a result with near-optimal sets (--pool-gap): the best of the cards of all of them."),
    ] = True,
    joint: Annotated[
        bool,
        typer.Option("--joint", help="Choose features and points together, of at most M features; with a proof."),
    ] = False,
    pdo: Annotated[
        float | None,
        typer.Option("--pdo", metavar="D", help="Scores of odds beside totals: D more double the odds."),
    ] = None,
    base_score: Annotated[float, typer.Option("--base-score", metavar="S", help="The score at the base odds.")] = 600.0,
    base_odds: Annotated[
        float, typer.Option("--base-odds", metavar="O", help="Odds of O to 1 at the base score.")
    ] = 50.0,
    cards: Annotated[
        str | None,
        typer.Option(
            "--cards", metavar="FILE", help="Of near-optimal sets: all of their cards, as FILE.csv or FILE.tex."
        ),
    ] = None,
    time_limit: Annotated[float, typer.Option("--time-limit", metavar="SECONDS", help="Stop after so long.")] = 60.0,
    gap: Annotated[float, typer.Option("--gap", metavar="GAP", help="Stop at this relative gap; 0.02 is 2%.")] = 1e-3,
    module: Module = None,
    scale: Scale = None,
    label: Label = None,
    positive: Positive = None,
    words: Words = None,
    json: Json = None,
    report: Report = None,
    total_limit: TotalLimit = None,
    quiet: Quiet = False,
    seed: Seed = 0,
) -> int:
    """A card to print: whole points for the features of a result, the best for them by branch and bound.

    DATA is what the result was solved on. The decision is scale · total + intercept > 0; loss, C and weights of classes
    and samples are the result's, and no points are against a sign that its weights were given.
    """
    from mipfs.cli.checks import data_of
    from mipfs.cli.output import check_page, check_target, say, show_blocks, tell_page, write_json, write_page
    from mipfs.cli.table import check_kind, write_table
    from mipfs.lab import scorecard as card
    from mipfs.plumbing import output_file
    from mipfs.plumbing.signals import hold_signals
    from mipfs.proof.pair import sidecar_of
    from mipfs.result import documents

    enter(module or ())
    inputs = (documents.split_point(result_file)[0], data_file, *files_of(module))
    check_target(json, *inputs, pair=True)
    check_page(report, *inputs, outputs=(json,))
    if cards is not None:
        check_kind("--cards", cards)
        check_target(cards, *inputs, outputs=(json, report), option="--cards")
    result = documents.load_to_pose(result_file)
    data = data_of(result, data_file, scale.value if scale else None, label, positive, words)
    how: dict[str, Any] = {"points": points, "bins": bins, "near_optimal": near_optimal, "joint": joint}
    how |= {"pdo": pdo, "base_score": base_score, "base_odds": base_odds}
    with hold_signals(deliver=False):  # a search hears them by itself; what was found is written
        found = card.scorecard(result, data, **how, time_limit=time_limit, gap=gap)
        if cards is not None:
            if found.among is None:
                raise UsageError(
                    "--cards lists the cards of near-optimal sets, and there are none; solve with --pool-gap 0.05, and "
                    "make the card without --joint and --no-near-optimal"
                )
            write_table(cards, found.among.table())
        if json == "-":
            write_json(found.document(), json)
        elif json is not None:
            found.save(json)
        write_page(report, f"Scorecard of {Path(inputs[0]).name} on {Path(data_file).name}", found)
        if json != "-" and not quiet:
            show_blocks(found.blocks())
            if json is not None:
                proven = found.result.claim is not None or found.result.certificate is not None
                proven = proven and not output_file.is_stream(Path(json))
                whose = "its certificate" if joint else "the certificate of its result"
                beside = f", {whose} to {sidecar_of(Path(json)).name}" if proven else ""
                say(f"\nwritten to {json}{beside}")
            tell_page(report, after=json is not None)
    return 0
