"""``mipfs bags``: bags of rows as samples, each with its similarity to every training row, in a file to solve on."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from mipfs.cli.options import DataFile, Json, Label, Positive, Quiet, Scale, Seed, read_options


def bags(
    data_file: DataFile,
    out: Annotated[str, typer.Option("--out", "-o", metavar="FILE.npz", help="The embedded bags, a sample each.")],
    concepts: Annotated[
        str | None,
        typer.Option("--concepts", metavar="TRAIN", help="DATA are new bags: embed them by the rows of TRAIN."),
    ] = None,
    width: Annotated[
        float | None,
        typer.Option(
            "--width", help="Of the similarity; by default the root of the mean squared distance of two rows."
        ),
    ] = None,
    nearest: Annotated[
        int | None, typer.Option("--nearest", metavar="K", help="Keep the similarities to the K nearest rows only.")
    ] = None,
    scale: Scale = None,
    label: Label = None,
    positive: Positive = None,
    json: Json = None,
    quiet: Quiet = False,
    seed: Seed = 0,
) -> int:
    """Embed bags of rows (qid: or a column 'bag') as samples, which solve, predict and evaluate take as DATA."""
    from mipfs import readers
    from mipfs.cli.output import check_target, show_pairs, write_json
    from mipfs.errors import DataError, UsageError
    from mipfs.lab.mil.algorithm import embedded, own_bags
    from mipfs.lab.mil.written import bag_labels, like, save_bags
    from mipfs.plumbing.signals import hold_signals

    if not out.endswith(".npz"):
        raise UsageError(f"-o {out}: embedded bags are written as npz; give a name that ends so")
    check_target(out, data_file, concepts, option="-o")
    check_target(json, data_file, concepts, outputs=(out,))
    train = readers.read(data_file if concepts is None else concepts, **read_options(scale, label, positive))
    bag_data, miles = embedded(train, width=width, nearest=nearest)
    if concepts is None:
        found, names, labels = bag_data.block().values, own_bags(train), bag_labels(train)
    else:
        given: dict[str, Any] = {
            "names": train.feature_names,
            "n_features": train.n_features,
            "remembered": train.label,
        }
        try:
            new = readers.read_new(data_file, labels=train.labels, label=label, **given)
        except DataError:  # new bags need no labels; what else is wrong is met again
            new = readers.read_new(data_file, label=label, **given)
        (found, names), labels = like(new, train, miles), bag_labels(new)
    with hold_signals(deliver=False):
        save_bags(found, labels, out)
        about = {"bags": len(names), "concepts": train.n_samples, "width": miles.width}
        write_json({"schema": 1, **about, "nearest": nearest, "data_sha256": train.sha256, "written": out}, json)
    if json != "-" and not quiet:
        shown = [("bags", str(len(names))), ("concepts", f"{train.n_samples}, x1 to x{train.n_samples}, the rows")]
        known = "none" if labels is None else "of every bag: positive when one of its rows is"
        show_pairs([*shown, ("width", f"{miles.width:.6g}"), ("labels", known), ("written to", out)])
    return 0
