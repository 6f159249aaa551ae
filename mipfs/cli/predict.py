"""``mipfs predict``: the classifier of a result, used on new data."""

from __future__ import annotations

from typing import Annotated

import typer

from mipfs.cli.options import DataFile, Json, Label, Positive, Quiet, ResultFile, Scale, Seed, UnknownWords


def predict(
    result_file: ResultFile,
    data_file: DataFile,
    scale: Scale = None,
    label: Label = None,
    positive: Positive = None,
    scores: Annotated[
        bool, typer.Option("--scores", help="Print f(x) beside each label, as CSV; of a card its total.")
    ] = False,
    probability: Annotated[
        bool, typer.Option("--probability", help="Print the probability of the positive class beside each label, too.")
    ] = False,
    json: Json = None,
    quiet: Quiet = False,
    seed: Seed = 0,
    unknown: UnknownWords = "refuse",
) -> int:
    """Print the predicted labels, one per line; with scores or probabilities a table, as CSV.

    A scorecard's JSON scores too: with --scores its totals stand beside the labels.

    Labels in DATA are not looked at, and need not be there.
    """
    from mipfs.cli.evaluate import card_of, new_rows
    from mipfs.cli.output import check_target, write_json
    from mipfs.cli.several import predict_classes, print_labels
    from mipfs.data.instance import Labels
    from mipfs.errors import UsageError
    from mipfs.result import documents
    from mipfs.result.probability import probabilities

    file, name = documents.split_point(result_file)
    check_target(json, file, data_file)
    held = documents.read_contents(file)
    # --scale and --positive change nothing here: the classifier is on the user's scale and knows its labels.
    if held.kind == documents.CLASSES and name is None:
        if probability:
            raise UsageError(f"{result_file}: --probability is for two classes; leave it out")
        return predict_classes(file, data_file, label, scores, json, quiet, unknown)
    card = card_of(file, held)
    result = documents.load(result_file) if card is None else card.result
    data = new_rows(result, data_file, label, unknown=unknown)
    values = (result if card is None else card).decision_function(data)
    labels = Labels(**result.labels).of(values).tolist()
    columns: dict[str, list[float]] = {"scores": values.tolist()} if scores else {}
    if card is not None and scores:
        columns = {"totals": card.compared(card.totals(data)).tolist()} | columns
        if card.odds is not None:
            columns["odds_scores"] = card.odds_scores(card.totals(data)).tolist()
    if probability:
        found = probabilities(result, values) if card is None else card.probabilities(card.totals(data))
        columns["probabilities"] = found.tolist()
    write_json({"schema": 1, "labels": labels, **columns}, json)
    if json != "-" and not quiet:
        sure = f"probability of {result.labels['positive']}"
        names = {"totals": "total", "scores": "score", "odds_scores": "score of odds", "probabilities": sure}
        print_labels(labels, [names[name] for name in columns], [*columns.values()])
    return 0
