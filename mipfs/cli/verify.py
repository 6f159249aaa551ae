"""``mipfs verify``: check the certificate of a result against the raw data."""

from __future__ import annotations

from typing import Annotated

import typer

from mipfs.cli.checks import ReadingOptions, VerifyRequest, verify_result
from mipfs.cli.options import (
    DataFile,
    Json,
    Label,
    Module,
    Param,
    ParamC,
    ParamM,
    Positive,
    Quiet,
    ResultFile,
    Scale,
    Seed,
    SubjectTo,
    Words,
    enter,
    files_of,
    with_M_and_C,
)
from mipfs.errors import UsageError

Model = Annotated[
    str | None, typer.Option("--model", metavar="MODEL.py", help="The file that declared further rows, with its -p.")
]


def verify(
    result_file: ResultFile,
    data_file: DataFile,
    scale: Scale = None,
    label: Label = None,
    positive: Positive = None,
    words: Words = None,
    subject_to: SubjectTo = None,
    model: Model = None,
    param: Param = None,
    M: ParamM = None,
    C: ParamC = None,
    module: Module = None,
    json: Json = None,
    quiet: Quiet = False,
    seed: Seed = 0,
    recompute: Annotated[
        bool, typer.Option("--recompute", help="Of a path, solve the folds again and compare their errors.")
    ] = False,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", metavar="N", min=1, help="Processes that check the leaves; by default one a core."),
    ] = None,
) -> int:
    """Check a result against DATA: status, objective, bound, what predict uses; and print the problem in words.

    With --subject-to the rows of the result must be those of the data and of that file, and no others. Where a .py file
    declared rows too, --model and its -p say so. A loss of your own is entered by --module; of its file nothing is
    believed but its class Stated.
    """
    from mipfs.cli.output import check_target
    from mipfs.cli.several import refuse_unproven, verify_classes, verify_path
    from mipfs.cli.verify_card import verify_card
    from mipfs.result import documents

    file, name = documents.split_point(result_file)
    check_target(json, file, data_file, subject_to, model, *files_of(module))
    enter(module or ())
    params = with_M_and_C(param, M, C)
    if params and model is None:
        raise UsageError("-p: the parameters of a result stand in it; -p is for the .py file that --model names")
    reading = ReadingOptions(data_file, scale.value if scale else None, label, positive, words)
    asked = VerifyRequest(
        result_file, file, name, reading, subject_to, model, tuple(params), json, quiet, recompute, jobs
    )
    held = documents.read_contents(file)
    if recompute and held.document and held.kind != documents.PATH:
        raise UsageError("--recompute solves the folds of a path again; leave it out")
    # A function a kind; what holds no result, nor is named within, is told apart by `documents.load`.
    kinds = {documents.CLASSES: verify_classes, documents.CARD: verify_card, documents.PATH: verify_path}
    kinds |= dict.fromkeys(documents.UNPROVEN, refuse_unproven)
    return kinds.get(held.kind, verify_result)(asked, held.document)
