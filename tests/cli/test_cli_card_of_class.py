"""A card of one of several classes judges data of all of them; of weighed classes it is refused by its cause."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.cli.outcome import Cli


@pytest.fixture
def three(tmp_path: Path) -> Path:
    """Labels "hi", "low" and "mid" by the sum of two of three columns."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    total = X[:, 0] + 0.5 * X[:, 1] + 0.3 * rng.normal(size=40)
    labels = np.where(total > 0.6, "hi", np.where(total < -0.6, "low", "mid"))
    rows = [",".join([*map(repr, x.tolist()), label]) for x, label in zip(X, labels, strict=True)]
    path = tmp_path / "three.csv"
    path.write_text("\n".join(["a,b,c,label", *rows]) + "\n")
    return path


def test_a_card_of_a_class_judges_rows_of_all_classes(cli: Cli, three: Path) -> None:
    classes, card = three.parent / "classes.json", three.parent / "card.json"
    assert cli("solve", "fsp-m", three, "-p", "M=2", "-p", "C=1", "--json", classes).code == 0
    assert cli("scorecard", f"{classes}#hi", three, "--json", card).code == 0
    told = json.loads(cli("evaluate", card, three, "--json", "-").out)
    labels = cli("predict", card, three).out.splitlines()
    truth = [row.split(",")[-1] for row in three.read_text().split()[1:]]
    right = sum((one == "hi") == (guess == "hi") for one, guess in zip(truth, labels, strict=True))
    assert told["n_samples"] == 40
    assert told["accuracy"] == right / 40
    assert told["labels"] == {"negative": "not hi", "positive": "hi"}


def test_rows_without_the_class_keep_the_refusal_of_unknown_labels(cli: Cli, three: Path) -> None:
    classes, card = three.parent / "classes.json", three.parent / "card.json"
    cli("solve", "fsp-m", three, "-p", "M=2", "-p", "C=1", "--json", classes)
    cli("scorecard", f"{classes}#hi", three, "--json", card)
    other = three.parent / "other.csv"
    other.write_text("a,b,c,label\n1,2,3,Hi\n")
    assert "the label 'Hi' is unknown to the classifier" in cli("evaluate", card, other).err


@pytest.mark.parametrize("command", [("scorecard",), ("refit", "--C", "1")])
def test_a_class_whose_samples_are_weighed_by_all_classes_is_not_posed_alone(
    cli: Cli, three: Path, command: tuple[str, ...]
) -> None:
    classes = three.parent / "classes.json"
    weights = ("-p", "class_weight=balanced")
    assert cli("solve", "fsp-m", three, "-p", "M=2", "-p", "C=1", *weights, "--json", classes).code == 0
    found = cli(command[0], f"{classes}#hi", three, *command[1:])
    assert found.code == 2
    assert "its samples were weighed by all classes (class_weight)" in found.err
