"""``mipfs predict``: the classifier of a result, used on new data."""

from __future__ import annotations

from mipfs.cli.options import DataFile, Json, Label, Positive, Quiet, ResultFile, Scale, Seed


def predict(
    result_file: ResultFile,
    data_file: DataFile,
    scale: Scale = None,
    label: Label = None,
    positive: Positive = None,
    json: Json = None,
    quiet: Quiet = False,
    seed: Seed = 0,
) -> int:
    """Print the predicted labels, one per line.

    Labels in DATA are not looked at, and need not be there.
    """
    from mipfs.cli.output import check_target, write_json
    from mipfs.lab.studies import point_files
    from mipfs.readers import read_new
    from mipfs.report.visible import visible
    from mipfs.result.prediction import inputs

    check_target(json, point_files.split(result_file)[0], data_file)
    # --scale and --positive change nothing here: the classifier is on the user's scale and knows its labels.
    result = point_files.load(result_file)
    (names, n_features), remembered = inputs(result), result.label_column
    data = read_new(
        data_file, names=names, n_features=n_features, label=label, remembered=remembered, recipe=result.recipe
    )
    labels = result.predict(data).tolist()
    if json is not None:
        write_json({"schema": 1, "labels": labels}, json)
    if json != "-" and not quiet:
        print("\n".join(visible(str(label)) for label in labels))
    return 0
