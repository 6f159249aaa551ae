"""The checker of scorecards: honest ones of every kind are accepted, and a change of any field is refused."""

from __future__ import annotations

import copy
import hashlib
import json
import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import mipfs
from mipfs.check.card import CardReport, check_card
from mipfs.check.points import to_digits, users_values
from mipfs.cli import main
from mipfs.errors import DataError
from mipfs.lab.scorecard.columns import to_digits as by_the_maker
from mipfs.readers.arrays import load_arrays
from mipfs.result.verification import claim_of
from tests.schemas import broken, schema

KEPT = Path(__file__).parents[1] / "kept_results"
Json = dict[str, Any]
QUICK = {"points": 3, "time_limit": 2.0, "gap": 0.01}


def table(seed: int, n: int = 60) -> pd.DataFrame:
    """Decimals far from 0 and near it, a flag, and labels."""
    r = np.random.default_rng(seed)
    frame = pd.DataFrame({"far": (1000 + 30 * r.normal(size=n)).round(1), "near": r.normal(size=n).round(3)})
    frame["flag"] = r.integers(0, 2, n)
    score = (frame["far"] - 1000) / 30 + frame["near"] + 1.5 * frame["flag"] + 0.5 * r.normal(size=n)
    return frame.assign(label=np.where(score > 0.8, "yes", "no"))


def read(frame: pd.DataFrame, scale: str = "standard", **options: Any) -> mipfs.Instance:
    return mipfs.read(frame, label="label", positive="yes", scale=scale, **options)


def card_on(data: mipfs.Instance, bins: int = 0, points: int = 3, **options: Any) -> Any:
    result = mipfs.solve(mipfs.Problem(data, **({"M": 3, "C": 1.0} | options)))
    return mipfs.scorecard(result, data, bins=bins, **(QUICK | {"points": points}))


def signed(document: Json) -> Json:
    """With a digest that fits, as the page of the certificate states it."""
    rest = {name: value for name, value in document.items() if name != "sha256"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return rest | {"sha256": hashlib.sha256(text.encode("utf-8")).hexdigest()}


def objective(card: Any, frame: pd.DataFrame, data: mipfs.Instance) -> float:
    """That of the card by hand: of the numbers in its JSON and of the table."""
    document = card.document()
    margins = np.full(len(frame), Fraction(document["intercept"]))
    squares = 0.0
    for line in document["card"]:
        values = frame[line["feature"]].to_numpy(dtype=float)
        scale = float(data.scale[data.index[line["feature"]]])
        if line["threshold"] is not None:
            x = [Fraction(v >= line["threshold"]) for v in values.tolist()]
            share = float(np.mean([float(v) for v in x]))
            size = 1.0 if scale == 1.0 else math.sqrt(share * (1 - share))
        else:
            x = [(Fraction(v) - Fraction(line["origin"])) / Fraction(line["unit"]) for v in values.tolist()]
            size = scale / line["unit"]
        squares += (size * document["scale"] * line["points"]) ** 2
        margins = margins + Fraction(document["scale"]) * line["points"] * np.array(x)
    m = np.where(frame["label"] == "yes", 1, -1) * margins.astype(float)
    params = document["result"]["params"]
    weight = np.array([(params.get("class_weight") or {}).get(label, 1.0) for label in frame["label"]])
    losses = {"hinge": np.maximum(0, 1 - m), "squared-hinge": 0.5 * np.maximum(0, 1 - m) ** 2}
    found = losses.get(params["loss"], np.logaddexp(0.0, -m))
    return float(0.5 * squares + params["C"] * np.sum(weight * data.sample_weight * found))


@pytest.mark.sampled(13)
@pytest.mark.parametrize("scale", ["none", "standard", "unit"])
@pytest.mark.parametrize("bins", [0, 2, 3, 5])
@pytest.mark.parametrize("loss", ["hinge", "squared-hinge", "logistic"])
def test_honest_cards_are_accepted(tmp_path: Path, loss: str, bins: int, scale: str) -> None:
    frame = table(bins)
    data = read(frame, scale)
    weights = {"class_weight": {"yes": 2.0}} if bins == 2 else {}
    signs = {"weight_bounds": {"far": (0.0, None)}} if bins == 3 else {}
    card = card_on(data, bins, loss=loss, bias=bins != 5, **weights, **signs)
    report = mipfs.verify(card, data)
    assert report.accepted, report.reason
    assert report.objective == pytest.approx(objective(card, frame, data), rel=1e-9)
    assert (report.error, report.roc_auc) == (card.error, card.auc)
    assert "not proven" in report.unchecked[0]
    card.save(tmp_path / "c.json")
    document = json.loads((tmp_path / "c.json").read_text())
    assert document == signed(document)
    assert not broken(document, schema("card"))
    assert mipfs.verify(mipfs.read_scorecard(tmp_path / "c.json"), data).accepted


@pytest.mark.parametrize("bins", [0, 3])
def test_raw_tables_words_and_weights(tmp_path: Path, bins: int, capsys: pytest.CaptureFixture[str]) -> None:
    """A recipe, a column of words, weights of samples; by the command line, from the file."""
    frame = table(7).assign(colour=np.random.default_rng(1).choice(["red", "blue"], 60), ident=np.arange(60))
    frame["sample_weight"] = np.random.default_rng(2).uniform(0.5, 2.0, 60).round(2)
    frame.loc[[3, 9], "near"] = np.nan
    data = tmp_path / "raw.csv"
    frame.to_csv(data, index=False)
    common = ["--label", "label", "--positive", "yes", "--scale", "standard", "--drop", "ident", "--impute", "median"]
    saved, card = str(tmp_path / "r.json"), str(tmp_path / "c.json")
    assert main(["solve", "fsp-m", str(data), *common, "-p", "M=3", "-p", "C=1", "--json", saved, "-q"]) == 0
    assert main(["scorecard", saved, str(data), "--bins", str(bins), "--json", card, "-q"]) == 0
    capsys.readouterr()
    assert main(["verify", card, str(data)]) == 0
    said = capsys.readouterr().out
    assert "accepted, by rule 2 of scoring" in said
    assert "(the word of the search, not proven)" in said
    assert said.count("certificate  accepted") == 1
    assert main(["verify", card, str(data), "--json", "-"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["accepted"] is True
    assert report["result"]["accepted"] is True
    assert sum(row["samples"] for row in report["totals"]) == 60
    frame.loc[0, "far"] += 1.0
    frame.to_csv(data, index=False)
    assert main(["verify", card, str(data)]) == 1
    assert "other data" in capsys.readouterr().err


def test_sparse_data_and_a_class_of_several(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = KEPT / "0.1.0"
    card, saved = str(tmp_path / "c.json"), str(tmp_path / "r.json")
    assert main(["scorecard", str(kept / "no-bias.json"), str(kept / "sparse.svm"), "--json", card, "-q"]) == 0
    assert main(["verify", card, str(kept / "sparse.svm")]) == 0
    r = np.random.default_rng(3)
    frame = pd.DataFrame(r.normal(size=(60, 4)), columns=list("abcd")).assign(y=r.choice(["u", "v", "w"], 60))
    frame["a"] += frame["y"] == "u"
    data = tmp_path / "three.csv"
    frame.to_csv(data, index=False)
    asked = ["--label", "y", "--M", "2", "-p", "C=1", "--scale", "standard", "--json", saved, "-q"]
    assert main(["solve", "fsp-m", str(data), *asked]) == 0
    assert main(["scorecard", f"{saved}#u", str(data), "--bins", "3", "--json", card, "-q"]) == 0
    capsys.readouterr()
    assert main(["verify", card, str(data)]) == 0, capsys.readouterr().err
    assert main(["verify", f"{card}#u", str(data)]) == 2
    assert "no parts with names" in capsys.readouterr().err


@pytest.mark.slow
def test_a_card_that_gives_everybody_one_label_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    r = np.random.default_rng(0)
    X = r.normal(size=(200, 2))
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(y=np.where(X[:, 0] > 2.0, 1, -1))
    frame.to_csv(tmp_path / "d.csv", index=False)
    saved, card, data = (str(tmp_path / name) for name in ("r.json", "c.json", "d.csv"))
    assert main(["solve", "fsp-m", data, "--label", "y", "--M", "1", "-p", "C=1", "--json", saved, "-q"]) == 0
    assert main(["scorecard", saved, data, "--bins", "2", "--json", card, "-q"]) == 0
    capsys.readouterr()
    assert main(["verify", card, data]) == 0
    assert "every sample of these data is called -1" in capsys.readouterr().out


@pytest.mark.parametrize("file", sorted((KEPT / "cards-1").glob("*.json")), ids=lambda path: path.stem)
def test_kept_cards_of_the_first_version(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = file.stem.partition("-")[0]
    data = KEPT / "0.1.0" / {"words": "words.csv", "no": "sparse.svm"}.get(name, "table.csv")
    assert main(["verify", str(file), str(data)]) == 0, capsys.readouterr().err
    said = capsys.readouterr().out
    assert "by rule 1 of scoring" in said
    assert "a card of the first version has no certificate" in said
    assert main(["predict", str(file), str(data)]) == 0
    document = json.loads(file.read_text())
    for change in ({"error": document["error"] + 0.01}, {"objective": document["objective"] * 1.001}, {"bins": 0}):
        (tmp_path / "c.json").write_text(json.dumps(document | change))
        assert main(["verify", str(tmp_path / "c.json"), str(data)]) == 1, change
    raised = json.loads(json.dumps(document))  # above what the entry of the certificate says, which is not there
    raised["result"] |= {"bound": raised["result"]["objective"], "gap": 0.0, "status": "OPTIMAL"}
    (tmp_path / "c.json").write_text(json.dumps(raised))
    at_most = raised["result"]["certificate"]["bound"]
    assert main(["verify", str(tmp_path / "c.json"), str(data)]) == int(
        at_most < raised["result"]["objective"] * (1 - 1e-8)
    )
    document["result"]["objective"] *= 1.001
    (tmp_path / "c.json").write_text(json.dumps(document))
    assert main(["verify", str(tmp_path / "c.json"), str(data)]) == 1


# --- Forgeries ---


@pytest.fixture(scope="module")
def honest() -> tuple[dict[int, tuple[Json, Any]], mipfs.Instance]:
    """Cards without and with thresholds, as JSON, with the arrays of their certificates, and their data."""
    data = read(table(1))
    found = {}
    for bins in (0, 3):
        card = card_on(data, bins, weight_bounds={"far": (0.0, None)})
        result, arrays = claim_of(card.result)
        found[bins] = signed(json.loads(json.dumps(card.document() | {"result": result | {"trace": []}}))), arrays
        report = check_card(*found[bins], data)
        assert report.accepted, report.reason
        assert any(line["points"] for line in found[bins][0]["card"])
    return found, data


def line(k: int, **fields: Any) -> Callable[[Json], None]:
    def change(card: Json) -> None:
        for name, value in fields.items():
            card["card"][k][name] = value(card["card"][k][name]) if callable(value) else value

    return change


def put(**fields: Any) -> Callable[[Json], None]:
    def change(card: Json) -> None:
        for name, value in fields.items():
            card[name] = value(card[name]) if callable(value) else value

    return change


def row(k: int, **fields: Any) -> Callable[[Json], None]:
    def change(card: Json) -> None:
        for name, value in fields.items():
            card["totals"][k][name] = value(card["totals"][k][name]) if callable(value) else value

    return change


def inside(**fields: Any) -> Callable[[Json], None]:
    def change(card: Json) -> None:
        for name, value in fields.items():
            card["result"][name] = value(card["result"][name]) if callable(value) else value

    return change


def without(*names: str) -> Callable[[Json], None]:
    def change(card: Json) -> None:
        for name in names:
            del card[name]

    return change


def reordered(card: Json) -> None:
    card["card"] = [card["card"][-1], *card["card"][:-1]]


def more(value: float) -> float:
    return value + 1e-6 * (1.0 + abs(value))


FORGED: Mapping[str, Callable[[Json], None]] = {
    "points": line(-1, points=lambda p: p + 1 if p < 3 else p - 1),
    "points beyond K": line(-1, points=4),
    "points as a float": line(-1, points=float),
    "points against a sign": line(0, points=-1),
    "unit": line(0, unit=more),
    "origin": line(0, origin=more),
    "kind": line(0, kind="two values"),
    "kind of a flag": line(-1, kind="scaled"),
    "feature": line(0, feature="near"),
    "a field of a line": line(0, words="free"),
    "scale": put(scale=more),
    "negative scale": put(scale=lambda value: -value),
    "intercept": put(intercept=more),
    "objective": put(objective=more),
    "objective below": put(objective=lambda value: 0.999 * value),
    "bound above the objective": lambda card: card.update(bound=1.01 * card["objective"], gap=0.0),
    "bound": put(bound=lambda value: 0.5 * value),
    "status": put(status=lambda value: "FEASIBLE" if value == "OPTIMAL" else "OPTIMAL"),
    "status of another kind": put(status="RELAXED"),
    "gap": put(gap=lambda value: value + 0.001),
    "asked": put(asked=-0.1),
    "totals left out": lambda card: card["totals"].pop(),
    "samples of a range": row(0, samples=lambda n: n + 1),
    "positives of a range": row(-1, positives=lambda n: n - 1),
    "end of a range": row(0, **{"from": more}),
    "other end of a range": row(0, to=more),
    "decision": row(0, decision="yes"),
    "error": put(error=lambda value: value + 0.01),
    "roc_auc": put(roc_auc=lambda value: value - 0.01),
    "roc_auc missing": put(roc_auc=None),
    "labels": put(labels={"negative": "yes", "positive": "no"}),
    "labels here and inside": lambda card: [
        one.update(labels={"negative": "yes", "positive": "no"}) for one in (card, card["result"])
    ],
    "data_sha256": put(data_sha256="0" * 64),
    "most_points": put(most_points=0),
    "most_points below the points": lambda card: card.update(
        most_points=max(abs(one["points"]) for one in card["card"]) - 1
    ),
    "bins": put(bins=1),
    "bins as a text": put(bins="3"),
    "order": reordered,
    "a line left out": lambda card: card["card"].pop(),
    "a line twice": lambda card: card["card"].append(dict(card["card"][-1])),
    "a field more": lambda card: card.update(note="best"),
    "a field less": without("nodes"),
    "weights inside": inside(weights=lambda held: {name: 1.01 * w for name, w in held.items()}),
    "order of weights inside": inside(weights=lambda held: dict(reversed([*held.items()]))),
    "selected inside": inside(selected=lambda names: names[:-1]),
    "bound inside": inside(bound=lambda value: 1.1 * value),
    "objective inside": inside(objective=more),
    "history inside": inside(trace=[{"seconds": 0.0, "iteration": 0, "objective": 1.0, "bound": 0.0}]),
    "version deleted": without("version"),
    "version lowered": put(version=1),
    "version raised": put(version=3),
    "version as a float": put(version=2.0),
    "schema": put(schema=2),
    "kind of document": put(kind="result"),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("bins", [0, 3])
@pytest.mark.parametrize("name", FORGED)
def test_a_forged_card_is_refused(honest: Any, name: str, bins: int) -> None:
    """With a digest that the forger computed again, and without."""
    cards, data = honest
    document, arrays = cards[bins]
    forged = copy.deepcopy(document)
    FORGED[name](forged)
    assert json.dumps(forged) != json.dumps(document)
    for one in (signed(forged), forged):
        report = check_card(one, arrays, data)
        assert not report.accepted
        assert report.reason
        assert "malformed" not in report.reason


@pytest.mark.parametrize("change", [more, float.__neg__, lambda value: 1e9, lambda value: None], ids=range(4))
def test_a_forged_threshold_is_refused(honest: Any, change: Callable[[float], Any]) -> None:
    """Even one that decides the data alike, as none lies between: new rows would be decided otherwise."""
    cards, data = honest
    document, arrays = copy.deepcopy(cards[3][0]), cards[3][1]
    for line in document["card"]:
        if line["threshold"] is not None:
            stated, line["threshold"] = line["threshold"], change(line["threshold"])
            report = check_card(signed(document), arrays, data)
            assert not report.accepted
            assert "threshold" in report.reason
            line["threshold"] = stated
    assert check_card(signed(document), arrays, data).accepted


def test_the_certificate_inside_is_checked(honest: Any) -> None:
    cards, data = honest
    document, arrays = cards[0]
    report = check_card(document, "there is none", data)
    assert report.reason == "the result inside: there is none"
    broken_arrays = {name: values for name, values in arrays.items() if name != "dual_bytes"}
    assert not check_card(document, broken_arrays, data).accepted


def test_the_word_of_the_search_is_named_and_not_proven(honest: Any) -> None:
    """What nobody can tell from the data: a bound that fits its gap. The report says whose word it is."""
    cards, data = honest
    document, arrays = copy.deepcopy(cards[0][0]), cards[0][1]
    document |= {"bound": document["objective"], "gap": 0.0, "status": "OPTIMAL", "nodes": 1, "seconds": 0.0}
    report = check_card(signed(document), arrays, data)
    assert report.accepted
    assert "the bound is the word of the search, and not proven" in report.unchecked[0]


def test_whatever_uses_a_changed_card_refuses_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame = table(1)
    frame.to_csv(tmp_path / "d.csv", index=False)
    data = str(tmp_path / "d.csv")
    file = tmp_path / "c.json"
    card_on(mipfs.read(data, label="label", positive="yes", scale="standard"), 3).save(file)
    assert load_arrays(tmp_path / "c.cert.npz")
    assert main(["evaluate", str(file), data]) == 0
    assert main(["report", str(file)]) == 0
    document = json.loads(file.read_text())
    for change in ({"intercept": 0.0}, {"note": "x"}, {"sha256": "0" * 64}):
        file.write_text(json.dumps(document | change))
        capsys.readouterr()
        for command in (["predict", str(file), data], ["evaluate", str(file), data], ["report", str(file)]):
            assert main(command) == 2, command
            said = capsys.readouterr().err
            assert said.count("\n") == 1
            assert "c.json" in said
            assert "the card was changed" in said
            assert "make it anew" in said
        assert main(["verify", str(file), data]) == 1
    rest = {name: value for name, value in document.items() if name != "version"}
    file.write_text(json.dumps(rest))
    with pytest.raises(DataError, match="changed"):
        mipfs.read_scorecard(file)
    file.write_text(json.dumps(signed(document | {"gap": 0.5})))
    with pytest.raises(DataError, match="gap"):
        mipfs.read_scorecard(file)


def test_standard_output_has_the_card_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = KEPT / "0.1.0"
    assert main(["scorecard", str(kept / "hinge.json"), str(kept / "table.csv"), "--json", "-", "-q"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document == signed(document)
    assert not [*tmp_path.iterdir()]


def test_values_and_totals_are_rounded_as_the_maker_rounds_them() -> None:
    r = np.random.default_rng(5)
    values = np.concatenate([r.normal(size=500) * 10.0 ** r.integers(-30, 30, 500), [0.0, 1000.0, 999.9999999999999]])
    for digits in (12, 13):
        np.testing.assert_array_equal(to_digits(values, abs(values), digits), by_the_maker(values, abs(values), digits))
    frame = table(3)
    for scale in ("standard", "unit", "none"):
        data = read(frame, scale)
        for name in ("far", "near", "flag"):
            np.testing.assert_array_equal(users_values(data, data.index[name]), frame[name].to_numpy(dtype=float))


def test_a_report_of_nothing() -> None:
    assert CardReport(False, "no").unchecked == ()
