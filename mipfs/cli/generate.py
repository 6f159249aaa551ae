"""``mipfs generate``: instances whose draws are fixed, so that published optima can be repeated."""

from __future__ import annotations

from typing import Annotated

import typer

from mipfs.cli.options import Json, Quiet, Seed

NAMES = "aytug-one, aytug-two, tan-2010, tan-2014, tan-2014-groups, paul-2016, credit or wdbc."


def generate(
    name: Annotated[str, typer.Argument(metavar="NAME", help=NAMES, show_default=False)],
    n_samples: Annotated[int | None, typer.Option("--n-samples", help="Samples of each part.")] = None,
    n_features: Annotated[int | None, typer.Option("--n-features", help="Features.")] = None,
    M: Annotated[
        int | None, typer.Option("--M", help="Features that matter; drawn unless given (tan-2014: 400, paul-2016: 40).")
    ] = None,
    kind: Annotated[str | None, typer.Option("--kind", help="Of tan-2014: I, II or III, how weights fall off.")] = None,
    density: Annotated[
        float | None, typer.Option("--density", help="Of tan-2014: the share of entries that are not zero.")
    ] = None,
    out: Annotated[str, typer.Option("--out", metavar="DIR", help="Folder to write to.")] = ".",
    force: Annotated[bool, typer.Option("--force", help="Replace files that hold something else.")] = False,
    json: Json = None,
    quiet: Quiet = False,
    seed: Seed = 0,
) -> int:
    """Write an instance and the .toml beside it."""
    from mipfs.cli.output import check_target, say, write_json
    from mipfs.generators import write

    check_target(json)
    sizes = {"n_samples": n_samples, "n_features": n_features, "M": M}
    path = write(name, out, **sizes, kind=kind, density=density, seed=seed, force=force)
    if json is not None:
        check_target(json, str(path))  # which is known only now
        write_json({"schema": 1, "name": name, "data": str(path)}, json)
    if json != "-" and not quiet:
        say(str(path))
    return 0
