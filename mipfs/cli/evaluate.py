"""``mipfs evaluate``: how well the classifier of a result does on labelled data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mipfs.cli.options import DataFile, Json, Label, Positive, Quiet, ResultFile, Scale, Seed, UnknownWords
from mipfs.data.unknown_words import Unknown

if TYPE_CHECKING:
    from mipfs.data.instance import Instance
    from mipfs.lab.scorecard.card import Scorecard
    from mipfs.result.documents import FileContents
    from mipfs.result.result import Result


def evaluate(
    result_file: ResultFile,
    data_file: DataFile,
    scale: Scale = None,
    label: Label = None,
    positive: Positive = None,
    json: Json = None,
    quiet: Quiet = False,
    seed: Seed = 0,
    unknown: UnknownWords = "refuse",
) -> int:
    """Print accuracy, confusion, precision, recall, F1, area under the ROC curve, and how far probabilities are off."""
    from mipfs.cli.output import check_target, write_json
    from mipfs.cli.several import evaluate_classes
    from mipfs.result import documents

    file, name = documents.split_point(result_file)
    check_target(json, file, data_file)
    held = documents.read_contents(file)
    if held.kind == documents.CLASSES and name is None:
        return evaluate_classes(file, data_file, label, positive, json, quiet, unknown)
    card = card_of(file, held)
    result = documents.load(result_file) if card is None else card.result
    # --scale changes nothing here: the classifier is on the user's scale.
    if held.kind == documents.CLASSES and name is not None:
        from mipfs.lab.classes import OneVsRest, judged

        data = judged.rows_of_class(OneVsRest.load(file), name, data_file, label, unknown)
    else:
        data = new_rows(result, data_file, label, labelled=True, unknown=unknown)
    document = judge(result, data, card, positive)
    write_json(document, json)
    if json != "-" and not quiet:
        _show(document)
        if card is not None:
            from mipfs.cli.output import show_blocks
            from mipfs.lab.scorecard.judged import judged_table

            show_blocks([judged_table(document["totals"], result.labels)])
    return 0


def judge(result: Result, data: Instance, card: Scorecard | None = None, positive: Any = None) -> dict[str, Any]:
    """What `mipfs.result.score.score` says of a classifier, or of a card by its own scores and probabilities.

    Of a card the shares of every range of totals stand beside it, those of its own positive class.
    """
    from mipfs.result.score import score

    if card is None:
        return score(result, data, positive)
    from mipfs.lab.scorecard.judged import judged_totals

    totals = card.totals(data)
    chances = card.probabilities(totals) if card.has_probabilities else None
    found = score(result, data, positive, values=card.scores(totals), chances=chances)
    return {**found, "totals": judged_totals(card, totals, data.y)}


def card_of(file: str, held: FileContents) -> Scorecard | None:
    """The scorecard in a file; None where it holds something else."""
    from mipfs.result.documents import CARD

    if held.kind != CARD:
        return None
    from mipfs.lab.scorecard import read_scorecard

    return read_scorecard(file)


def new_rows(
    result: Result, path: str, label: str | None, labelled: bool = False, unknown: Unknown = "refuse"
) -> Instance:
    """New rows with what a classifier looks at; with `labelled`, to judge it, their labels too."""
    from mipfs.data.instance import Labels
    from mipfs.readers import read_new
    from mipfs.result.prediction import classifier_inputs, of_known_words

    names, n_features = classifier_inputs(result)
    found = read_new(
        path,
        names=names,
        n_features=n_features,
        labels=Labels(**result.labels) if labelled else None,
        label=label,
        remembered=result.label_column,
        recipe=result.recipe,
    )
    return of_known_words(result, found) if unknown == "none" else found


def _show(document: dict[str, Any]) -> None:
    from mipfs.cli.output import show_pairs, show_table
    from mipfs.result.score import SCORES

    names = [name for name in SCORES if name in document]
    values = [(name, "undefined" if document[name] is None else f"{document[name]:.4f}") for name in names]
    if "measure" in document:
        found = document["measure"]
        values += [(found["name"], "undefined" if found["value"] is None else f"{found['value']:.4f}")]
    values = list(dict(values).items())  # F1 once
    negative, positive = (str(document["labels"][name]) for name in ("negative", "positive"))
    head = [("samples", str(document["n_samples"])), ("positive class", positive)]
    show_pairs([*head, *((SCORES.get(n, n), v) for n, v in values)])
    cells = {name: str(count) for name, count in document["confusion"].items()}
    show_table(
        ("", f"predicted {negative}", f"predicted {positive}"),
        [
            (f"is {negative}", cells["true_negative"], cells["false_positive"]),
            (f"is {positive}", cells["false_negative"], cells["true_positive"]),
        ],
    )
