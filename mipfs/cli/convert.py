"""``mipfs convert``: data as a column store, which opens at once and may be larger than memory."""

from __future__ import annotations

from typing import Annotated, Any, cast

import typer

from mipfs.cli.options import (
    Drop,
    Impute,
    Json,
    Label,
    Missing,
    Positive,
    Quiet,
    Scaling,
    Seed,
    Types,
    Use,
    Words,
    recipe_options,
)


def convert(
    data_file: Annotated[
        str, typer.Argument(metavar="DATA", help="An svmlight, CSV, Parquet or npz file.", show_default=False)
    ],
    store: Annotated[str, typer.Argument(metavar="STORE", help="The folder to be made.", show_default=False)],
    dtype: Annotated[str, typer.Option("--dtype", metavar="TYPE", help="float64 or float32.")] = "float64",
    block: Annotated[int, typer.Option("--block-size", metavar="MB", help="Megabytes of a block of columns.")] = 32,
    memory: Annotated[int, typer.Option("--memory", metavar="MB", help="Megabytes to sort in at a time.")] = 1024,
    n_features: Annotated[
        int | None, typer.Option("--n-features", metavar="P", help="Of svmlight: more than the largest index.")
    ] = None,
    scale: Annotated[
        Scaling | None,
        typer.Option("--scale", help="Scaling that the store's description asks for; its values stay as they are."),
    ] = None,
    label: Label = None,
    positive: Positive = None,
    drop: Drop = None,
    use: Use = None,
    impute: Impute = None,
    types: Types = None,
    missing: Missing = None,
    words: Words = None,
    json: Json = None,
    quiet: Quiet = False,
    seed: Seed = 0,
) -> int:
    """Write DATA as a column store, a folder that every command takes as DATA. Called again it goes on where it was."""
    from mipfs.cli.output import check_target, show_pairs, write_json
    from mipfs.convert import convert as write
    from mipfs.plumbing.signals import hearing_signals
    from mipfs.readers.manifest import Manifest
    from mipfs.report.progress import progress

    check_target(json, data_file)
    with (
        hearing_signals(),
        progress("converting:", "done", not quiet) as tell,
    ):  # what is done by a Ctrl-C is gone on with
        place = write(
            data_file, store, dtype=cast(Any, dtype), block=block, memory=memory, label=label, positive=positive,
            scale=scale.value if scale else None, n_features=n_features, progress=tell,
            **recipe_options(drop, use, impute, types, words, missing),
        )  # fmt: skip
    found = Manifest.of(place)
    about = {"n_samples": found.n_samples, "n_features": found.n_features, "nnz": found.nnz, "dtype": found.dtype}
    write_json({"schema": 1, "store": str(place), **about, "blocks": len(found.blocks), "source": found.source}, json)
    if json != "-" and not quiet:
        kind = "dense" if found.dense else f"{found.nnz} non-zeros"
        pairs = [("store", str(place)), ("samples", str(found.n_samples)), ("features", str(found.n_features))]
        show_pairs([*pairs, ("values", f"{kind}, {found.dtype}"), ("blocks", str(len(found.blocks)))])
    return 0
