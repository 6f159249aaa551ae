"""``mipfs predict`` and ``mipfs evaluate``: the classifier of a result on new data."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from sklearn import metrics

import mipfs
from mipfs.result.result import Result
from tests.cli.outcome import Cli

CREDIT = Path(__file__).resolve().parents[2] / "instances" / "credit.csv"


@pytest.fixture
def result(cli: Cli, tmp_path: Path) -> Path:
    """A classifier of the credit instance."""
    path = tmp_path / "result.json"
    assert cli("solve", "fsp-m", CREDIT, "-p", "M=4", "--quiet", "--json", path).code == 0
    return path


def by_hand(document: dict[str, object], rows: list[dict[str, str]]) -> list[str]:
    """The labels from the JSON's weights and the cells of the table, without any of our readers."""
    labels = []
    for row in rows:
        score = document["intercept"]
        for name, weight in document["weights"].items():  # type: ignore[attr-defined]
            column, is_word, word = name.partition("=")
            value = float(row[column] == word) if is_word else float(row[column])
            score += weight * value
        labels.append("yes" if score > 0 else "no")  # type: ignore[operator]
    return labels


def test_predictions_are_the_users_labels_one_per_line(cli: Cli, result: Path) -> None:
    outcome = cli("predict", result, CREDIT)
    rows = list(csv.DictReader(CREDIT.read_text().splitlines()))
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.splitlines() == by_hand(json.loads(result.read_text()), rows)
    assert json.loads(cli("predict", result, CREDIT, "--json", "-").out)["labels"] == outcome.out.splitlines()


def test_the_label_column_is_remembered(cli: Cli, tmp_path: Path) -> None:
    text = CREDIT.read_text().splitlines()
    header = text[0].split(",")
    at = header.index("repaid")
    renamed = [",".join([*line.split(",")[:at], *line.split(",")[at + 1 :], line.split(",")[at]]) for line in text]
    data, saved = tmp_path / "loans.csv", tmp_path / "r.json"
    data.write_text("\n".join(renamed) + "\n")
    outcome = cli("solve", "fsp-m", data, "-p", "M=3", "--scale", "standard", "--quiet", "--json", saved)
    assert outcome.code == 2
    assert "no column is called 'label'; say which column holds the labels by --label NAME" in outcome.err
    assert "'loan', " in outcome.err
    given = ("--label", "repaid", "--positive", "no", "--scale", "standard")
    assert cli("solve", "fsp-m", data, "-p", "M=3", *given, "--quiet", "--json", saved).code == 0
    assert json.loads(saved.read_text())["read"]["label"] == "repaid"
    assert cli("verify", saved, data).code == 0
    evaluated = cli("evaluate", saved, data, "--json", "-")
    assert json.loads(evaluated.out)["labels"] == {"negative": "yes", "positive": "no"}
    assert json.loads(evaluated.out)["accuracy"] > 0.8
    assert set(cli("predict", saved, data).out.split()) == {"yes", "no"}
    # a file without that column is read as ever
    data.with_name("new.csv").write_text("\n".join([renamed[0].replace("repaid", "label"), *renamed[1:]]) + "\n")
    assert cli("evaluate", saved, data.with_name("new.csv"), "--json", "-").out == evaluated.out
    data.with_name("odd.csv").write_text("\n".join([renamed[0].replace("repaid", "paid"), *renamed[1:]]) + "\n")
    assert "no column is called 'repaid'" in cli("evaluate", saved, data.with_name("odd.csv")).err


def test_a_category_that_training_did_not_see(cli: Cli, tmp_path: Path) -> None:
    data, saved, new = tmp_path / "d.csv", tmp_path / "r.json", tmp_path / "new.csv"
    data.write_text("home,x,label\n" + "".join(f"{'abad'[i % 4]},{i % 3},{i % 2}\n" for i in range(12)))
    assert cli("solve", "fsp-m", data, "-p", "M=1", "--quiet", "--json", saved).code == 0
    new.write_text("home,x,label\na,1,0\nc,1,1\n")
    for command in ("predict", "evaluate"):
        outcome = cli(command, saved, new)
        assert outcome.code == 2
        assert f"{new}: column 'home' is 'c' in row 2, a category that training did not see" in outcome.err
        taken = cli(command, saved, new, "--unknown", "none")
        assert taken.code == 0
        said = f"{new}: column 'home' holds words that training did not see, such as 'c', in 1 row; each counts as none"
        assert said in taken.err
    new.write_text("home,x,label\na,1,0\na,7,1\n")
    assert cli("predict", saved, new).out.splitlines() == ["0", "0"]


def test_predicting_needs_neither_labels_nor_the_other_columns(cli: Cli, result: Path, tmp_path: Path) -> None:
    document = json.loads(result.read_text())
    needed = sorted({name.partition("=")[0] for name in document["weights"]})
    rows = list(csv.DictReader(CREDIT.read_text().splitlines()))[:7]
    new = tmp_path / "new.csv"
    new.write_text("\n".join([",".join(needed), *(",".join(row[name] for name in needed) for row in rows)]) + "\n")
    outcome = cli("predict", result, new)
    assert outcome.out.splitlines() == by_hand(document, rows)
    new.write_text("age\n30\n")
    assert cli("predict", result, new).code == 2


def test_the_scale_option_does_not_change_a_prediction(cli: Cli, result: Path) -> None:
    assert cli("predict", result, CREDIT, "--scale", "unit").out == cli("predict", result, CREDIT).out


def test_an_evaluation_agrees_with_scikit_learn(cli: Cli, result: Path) -> None:
    document = json.loads(cli("evaluate", result, CREDIT, "--label", "repaid", "--json", "-").out)
    rows = list(csv.DictReader(CREDIT.read_text().splitlines()))
    truth, found = [row["repaid"] for row in rows], by_hand(json.loads(result.read_text()), rows)
    assert document["labels"] == {"negative": "no", "positive": "yes"}
    assert document["n_samples"] == len(rows)
    assert document["accuracy"] == pytest.approx(metrics.accuracy_score(truth, found))
    assert document["balanced_accuracy"] == pytest.approx(metrics.balanced_accuracy_score(truth, found))
    assert document["precision"] == pytest.approx(metrics.precision_score(truth, found, pos_label="yes"))
    assert document["recall"] == pytest.approx(metrics.recall_score(truth, found, pos_label="yes"))
    assert document["f1"] == pytest.approx(metrics.f1_score(truth, found, pos_label="yes"))
    (tn, fp), (fn, tp) = metrics.confusion_matrix(truth, found, labels=["no", "yes"]).tolist()
    counts = {"true_positive": tp, "false_negative": fn, "false_positive": fp, "true_negative": tn}
    assert document["confusion"] == counts


def test_the_text_of_an_evaluation_names_the_classes(cli: Cli, result: Path) -> None:
    out = cli("evaluate", result, CREDIT).out
    for words in ("accuracy", "balanced accuracy", "precision", "recall", "f1", "predicted yes", "is no"):
        assert words in out


def test_a_ratio_without_a_denominator_is_null(cli: Cli, small: Path, tmp_path: Path) -> None:
    assert cli("solve", "fsp-m", small, "-p", "M=1", "--json", tmp_path / "r.json").code == 0
    (tmp_path / "negatives.svm").write_text("-1 1:-1\n-1 1:-2\n")
    outcome = cli("evaluate", tmp_path / "r.json", tmp_path / "negatives.svm", "--json", "-")
    document = json.loads(outcome.out)
    assert document["accuracy"] == 1.0
    assert document["recall"] is document["balanced_accuracy"] is document["precision"] is None
    assert "undefined" in cli("evaluate", tmp_path / "r.json", tmp_path / "negatives.svm").out


def test_the_file_and_python_predict_the_same(cli: Cli, result: Path) -> None:
    data = mipfs.read(CREDIT)
    found = mipfs.Result.load(result).predict(data)
    assert found.tolist() == cli("predict", result, CREDIT).out.splitlines()
    assert np.mean(found == data.labels.of(data.y)) > 0.7


def test_an_evaluation_has_the_measure_that_was_asked_for(cli: Cli, small: Path, tmp_path: Path) -> None:
    target = tmp_path / "auc.json"
    cli("solve", "structural", small, "-p", "measure=roc-auc", "-p", "M=1", "-p", "C=20", "--json", target)
    outcome = cli("evaluate", target, small, "--json", "-")
    found = json.loads(outcome.out)["measure"]
    data = mipfs.read(small)
    scores = Result.load(target).decision_function(data)
    assert found["name"] == "roc-auc"
    assert found["value"] == pytest.approx(metrics.roc_auc_score(data.y > 0, scores))
    assert f"{found['value']:.4f}" in cli("evaluate", target, small).out
