"""``mipfs sketch``: columns chosen with a guarantee, and what was measured of it."""

from __future__ import annotations

from typing import Annotated

import typer

from mipfs.cli.options import DataFile, Json, Label, Positive, Quiet, Scale, Seed, read_options


def sketch(
    data_file: DataFile,
    method: Annotated[
        str,
        typer.Option("--method", metavar="NAME", help="bss, leverage, approx-bss, approx-leverage, rrqr or uniform."),
    ] = "bss",
    r: Annotated[
        int | None, typer.Option("--r", metavar="R", help="Picks, repeats included; by default four times the rank.")
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(
            "--epsilon", metavar="E", help="In place of --r, of bss and leverage: what is promised of margins."
        ),
    ] = None,
    supervised: Annotated[
        bool, typer.Option("--supervised", help="Choose by the support vectors of the SVM on all features.")
    ] = False,
    rank: Annotated[
        int | None, typer.Option("--rank", metavar="K", help="The K leading singular directions only.")
    ] = None,
    projections: Annotated[
        int | None,
        typer.Option("--projections", metavar="T", help="Of approx-bss, by default r/4; of approx-leverage 32."),
    ] = None,
    C: Annotated[float, typer.Option("--C", help="Of the hinge SVM whose support vectors and margin are meant.")] = 1.0,
    bias: Annotated[bool, typer.Option("--bias/--no-bias", help="Whether that SVM has an intercept.")] = True,
    check: Annotated[
        bool, typer.Option("--check/--no-check", help="Measure the guarantee, by SVMs and enclosing balls.")
    ] = True,
    out: Annotated[
        str | None, typer.Option("--out", "-o", metavar="FILE.npz", help="Write the chosen columns as data.")
    ] = None,
    rescaled: Annotated[
        bool, typer.Option("--rescaled", help="Write them scaled and rescaled, which the guarantee is about.")
    ] = False,
    scale: Scale = None,
    label: Label = None,
    positive: Positive = None,
    json: Json = None,
    quiet: Quiet = False,
    seed: Seed = 0,
) -> int:
    """Choose columns that keep the margin, with a guarantee that is checked."""
    from mipfs import readers
    from mipfs.cli.output import check_target, say, show_blocks, write_json
    from mipfs.errors import UsageError
    from mipfs.lab import sketch as room
    from mipfs.lab.sketch.written import save_columns
    from mipfs.plumbing.signals import hold_signals
    from mipfs.report.progress import progress

    if rescaled and out is None:
        raise UsageError("--rescaled says how the columns are written; give -o FILE.npz too")
    if out is not None and not out.endswith(".npz"):
        raise UsageError(f"-o {out}: the columns are written as npz; give a name that ends so")
    check_target(json, data_file)
    check_target(out, data_file, outputs=(json,), option="-o")
    data = readers.read(data_file, **read_options(scale, label, positive))
    with progress("picked", "columns", not quiet) as tell:
        found = room.select(
            data,
            method,
            r,
            supervised=supervised,
            rank=rank,
            projections=projections,
            C=C,
            bias=bias,
            seed=seed,
            check=check,
            epsilon=epsilon,
            progress=tell,
        )
    if out is not None and not rescaled and data.scaling != "none":
        # As they stand in the file: undoing the scaling would change their last digits.
        data_out = readers.read(data_file, **{**read_options(scale, label, positive), "scale": "none", "checks": False})
    else:
        data_out = data
    with hold_signals(deliver=False):
        if out is not None:
            save_columns(found, data_out, out, rescaled)
        about = {"data_sha256": data.sha256, "scaling": data.scaling, "written": out, "rescaled": rescaled}
        write_json({**found.document(), **about}, json)
        if json != "-" and not quiet:
            show_blocks(found.blocks())
            for target in (out, json):
                if target is not None:
                    say(f"written to {target}")
    return 0
