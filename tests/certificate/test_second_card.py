"""The second checker over scorecards: honest ones of every kind are accepted, and a change of any field is refused."""

from __future__ import annotations

import copy
import csv
import hashlib
import json
import math
import random
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from mipfs.cli import main
from tests import two_checkers
from tests.certificate.test_second_reading import judged

KEPT = Path(__file__).parents[1] / "kept_results"
Json = dict[str, Any]
second = two_checkers.second()


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of decimals far from 0 and near it, a flag of two odd values, a word, and weights."""
    path, rng = tmp_path_factory.mktemp("cards") / "d.csv", random.Random(5)
    rows = []
    for _ in range(50):
        far, near, flag = rng.gauss(0, 1), rng.gauss(0, 1), rng.choice([0.3, 17.25])
        good = far - near + 0.1 * flag + rng.gauss(0, 0.5) > 0.7
        word, weight = rng.choice(["a", "b"]), rng.choice([0.5, 1, 2])
        rows.append([f"{1.7e9 + 1000 * far:.2f}", f"{near / 1000:.6f}", flag, word, weight, "yes" if good else "no"])
    with path.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([["far", "near", "flag", "word", "sample_weight", "label"], *rows])
    return path


def made(data: Path, folder: Path, *options: str, bins: int = 0, points: int = 3) -> Path:
    """A card of a result with these options, as the command line writes it."""
    result, card = str(folder / "r.json"), folder / "card.json"
    assert main(["solve", "fsp-m", str(data), *options, "--json", result, "--quiet"]) == 0
    more = ["--bins", str(bins), "--points", str(points), "--gap", "0.01", "--time-limit", "5"]
    assert main(["scorecard", result, str(data), *more, "--json", str(card), "--quiet"]) == 0
    return card


@pytest.fixture(scope="module")
def cards(data: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """By what they are for: columns as they are, cut ones, and signs."""
    found = {}
    for name, options, bins in (
        ("plain", ["-p", "M=3", "--scale", "standard"], 0),
        ("cut", ["-p", "M=3", "--scale", "standard", "-p", "loss=logistic"], 4),
        ("no-bias", ["-p", "M=3", "-p", "bias=false", "--scale", "standard"], 0),
        (
            "signs",
            ["-p", "M=3", "--scale", "standard", "--nonnegative", "far", "--nonpositive", "near", "--positive", "yes"],
            0,
        ),
    ):
        found[name] = made(data, tmp_path_factory.mktemp(name), *options, bins=bins)
    return found


def stated(card: Path) -> Json:
    return json.loads(card.read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def signed(document: Json) -> Json:
    """With the digest of its text, as a forger would put it there."""
    rest = {name: value for name, value in document.items() if name != "sha256"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return rest | {"sha256": hashlib.sha256(text.encode("utf-8")).hexdigest()}


def of_rule_1(document: Json) -> Json:
    """A cut card in the form of the first version, whose totals are whole by either rule."""
    return {name: value for name, value in document.items() if name not in ("version", "bins", "sha256")}


def verdict(card: Path, document: Json, data: Path) -> tuple[str, Any]:
    """On a document beside the certificate of a card."""
    path = card.with_name("forged.json")
    path.write_text(json.dumps(document), encoding="utf-8")
    return judged(path, data)


@pytest.mark.sampled(59)
@pytest.mark.parametrize("bias", ["true", "false"])
@pytest.mark.parametrize("scale", ["none", "standard", "unit"])
@pytest.mark.parametrize("bins", [0, 2, 5])
@pytest.mark.parametrize("loss", ["hinge", "squared-hinge", "logistic"])
@pytest.mark.filterwarnings("ignore::mipfs.DataWarning")
def test_honest_cards_are_accepted(data: Path, tmp_path: Path, loss: str, bins: int, scale: str, bias: str) -> None:
    options = ["-p", "M=2", "-p", f"loss={loss}", "-p", f"bias={bias}", "--scale", scale]
    word, said = judged(made(data, tmp_path, *options, bins=bins), data)
    assert word == "accepted", said
    assert said[0].startswith("accepted: a scorecard by rule 2, ")
    assert "no other points are better" in said[1]
    assert said[2].startswith("its features: OPTIMAL, ")


@pytest.mark.slow
def test_it_accepts_the_cards_that_are_forged_below(cards: dict[str, Path], data: Path) -> None:
    for card in cards.values():
        assert judged(card, data)[0] == "accepted"
    kinds = [line["kind"] for line in stated(cards["plain"])["card"]]
    assert sorted(set(kinds)) == ["scaled", "two values"]
    assert [line["kind"] for line in stated(cards["cut"])["card"]].count("threshold") >= 4
    word, said = verdict(cards["cut"], of_rule_1(stated(cards["cut"])), data)
    assert word == "accepted", said
    assert "the certificate of the features is not beside a card of rule 1: their bound is unchecked" in said


@pytest.mark.sampled(2)
@pytest.mark.parametrize("file", sorted((KEPT / "cards-1").glob("*.json")), ids=lambda path: path.stem)
def test_kept_cards_of_the_first_version(file: Path, tmp_path: Path) -> None:
    name = file.stem.partition("-")[0]
    table = KEPT / "0.1.0" / {"words": "words.csv", "no": "sparse.svm"}.get(name, "table.csv")
    word, said = judged(file, table)
    assert word == "accepted", said
    assert said[0].startswith("accepted: a scorecard by rule 1, ")
    document = stated(file)
    for change in ({"error": document["error"] + 0.01}, {"objective": document["objective"] * 1.001}, {"bins": 0},
                   {"sha256": "0" * 64}, {"version": 1}, {"data_sha256": "0" * 64}, {"kind": "card"}):  # fmt: skip
        (tmp_path / "c.json").write_text(json.dumps(document | change), encoding="utf-8")
        assert judged(tmp_path / "c.json", table)[0] == "rejected", change


def test_the_area_the_objective_and_the_totals_are_those_of_a_count_by_hand(cards: dict[str, Path], data: Path) -> None:
    """Of a card whose columns are cut: points are added up, and nothing is rounded."""
    document, rows = stated(cards["cut"]), list(csv.DictReader(data.open(encoding="utf-8")))
    totals, y = [], [row["label"] == "yes" for row in rows]
    for row in rows:
        total = 0
        for line in document["card"]:
            column, _, word = line["feature"].partition("=")
            value = float(row[column] == word) if word else float(row[column])
            counts = value >= line["threshold"] if line["kind"] == "threshold" else value != line["origin"]
            total += line["points"] * counts
        totals.append(total)
    pairs = [(a > b) + (a == b) / 2 for a, one in zip(totals, y, strict=True) if one
             for b, other in zip(totals, y, strict=True) if not other]  # fmt: skip
    assert math.isclose(document["roc_auc"], sum(pairs) / len(pairs))
    assert sum(part["samples"] for part in document["totals"]) == len(rows)
    assert document["totals"][0]["from"] == min(totals)
    assert second.area_of(totals, [1 if one else -1 for one in y]) == sum(map(Fraction, pairs)) / len(pairs)


def at(*path: str | int, value: Any) -> Callable[[Json], None]:
    """Put a value in a place of a document, or change what is there."""

    def forge(document: Any) -> None:
        for step in path[:-1]:
            document = document[step]
        document[path[-1]] = value(document[path[-1]]) if callable(value) else value

    return forge


def swapped(document: Json) -> None:
    lines = document["card"]
    lines[0], lines[-1] = lines[-1], lines[0]


def merged(document: Json) -> None:
    """Two ranges of totals as one."""
    first, other = document["totals"][:2]
    other |= {"from": first["from"], **{key: first[key] + other[key] for key in ("samples", "positives")}}
    del document["totals"][0]


def moved(document: Json) -> None:
    """A sample from one range of totals to the next."""
    document["totals"][0]["samples"] += 1
    document["totals"][1]["samples"] -= 1


def line_of(kind: str, key: str, value: Any) -> Callable[[Json], None]:
    """Change the first line of a kind."""

    def forge(document: Json) -> None:
        line = next(one for one in document["card"] if one["kind"] == kind)
        line[key] = value(line[key]) if callable(value) else value

    return forge


def closed(document: Json) -> None:
    """As if the gap were closed."""
    document |= {"bound": document["objective"] * 1.0001, "gap": 0.0}


def far(factor: float) -> Callable[[Any], Any]:
    return lambda v: v * factor


FORGED: dict[str, tuple[str, Callable[[Json], None]]] = {
    "schema": ("plain", at("schema", value=2)),
    "kind": ("plain", at("kind", value="card")),
    "version": ("plain", at("version", value=3)),
    "version as a text": ("plain", at("version", value="2")),
    "version 1": ("plain", at("version", value=1)),
    "bins of columns that are not cut": ("plain", at("bins", value=2)),
    "other bins": ("cut", at("bins", value=5)),
    "no bins": ("cut", at("bins", value=0)),
    "one bin": ("plain", at("bins", value=1)),
    "status": ("plain", at("status", value="FEASIBLE")),
    "status of a result": ("plain", at("status", value="INFEASIBLE")),
    "stop_reason": ("plain", at("stop_reason", value=None)),
    "objective": ("plain", at("objective", value=far(1 + 3e-9))),
    "objective of thresholds": ("cut", at("objective", value=far(1 - 3e-9))),
    "bound above": ("plain", closed),
    "bound": ("plain", at("bound", value=far(0.9))),
    "gap": ("plain", at("gap", value=lambda v: v + 3e-9)),
    "asked": ("plain", at("asked", value=1.0)),
    "asked less": ("no-bias", lambda d: d.update(bound=d["objective"] * 0.995, gap=0.005, asked=0.001)),
    "unrounded": ("plain", at("unrounded", value="1")),
    "nodes": ("plain", at("nodes", value=1.5)),
    "seconds": ("plain", at("seconds", value=None)),
    "most_points": ("plain", at("most_points", value=1001)),
    "fewer points": ("plain", at("most_points", value=0)),
    "scale": ("plain", at("scale", value=far(1.001))),
    "scale below 0": ("plain", at("scale", value=far(-1))),
    "intercept": ("plain", at("intercept", value=far(1.001))),
    "intercept without a bias": ("no-bias", at("intercept", value=lambda v: v + 1e-3)),
    "feature": ("plain", at("card", 0, "feature", value="label")),
    "kind of a line": ("plain", at("card", 0, "kind", value="threshold")),
    "origin": ("plain", line_of("scaled", "origin", lambda v: v + 1e-3)),
    "unit": ("plain", line_of("scaled", "unit", far(1 + 1e-6))),
    "unit of two values": ("plain", line_of("two values", "unit", far(1 + 1e-15))),
    "origin of two values": ("plain", line_of("two values", "origin", 0.0)),
    "threshold": ("cut", line_of("threshold", "threshold", far(1 + 1e-12))),
    "threshold of a column": ("plain", at("card", 0, "threshold", value=1.0)),
    "origin of a threshold": ("cut", line_of("threshold", "origin", 1.0)),
    "no threshold": ("cut", line_of("threshold", "threshold", None)),
    "points": ("plain", at("card", 0, "points", value=lambda v: v + 1 if v < 3 else v - 1)),
    "half a point": ("plain", at("card", 0, "points", value=0.5)),
    "too many points": ("plain", at("card", 0, "points", value=4)),
    "points of a threshold": ("cut", line_of("threshold", "points", lambda v: v + 1 if v < 3 else v - 1)),
    "a line less": ("cut", lambda d: d["card"].pop()),
    "a line twice": ("cut", lambda d: d["card"].append(copy.deepcopy(d["card"][0]))),
    "another order": ("cut", swapped),
    "a field of a line": ("plain", at("card", 0, "s", value=lambda _=None: 1.0)),
    "from": ("cut", at("totals", 0, "from", value=lambda v: v + 1e-6)),
    "to": ("cut", at("totals", -1, "to", value=lambda v: v + 1e-6)),
    "samples": ("cut", moved),
    "positives": ("cut", at("totals", 0, "positives", value=lambda v: v + 1)),
    "positives as a double": ("cut", at("totals", 0, "positives", value=float)),
    "decision": ("cut", at("totals", 0, "decision", value=lambda v: {"yes": "no", "no": "yes"}[v])),
    "ranges": ("cut", merged),
    "a range less": ("cut", lambda d: d["totals"].pop()),
    "a field of a range": ("cut", lambda d: d["totals"][0].update(rate=0.5)),
    "error": ("plain", at("error", value=lambda v: v + 3e-9)),
    "roc_auc": ("plain", at("roc_auc", value=lambda v: v - 3e-9)),
    "no area": ("plain", at("roc_auc", value=None)),
    "labels": ("plain", at("labels", value={"negative": "yes", "positive": "no"})),
    "data_sha256": ("plain", at("data_sha256", value="0" * 64)),
    "a field": ("plain", lambda d: d.update(note=1)),
    "a field less": ("plain", lambda d: d.pop("asked")),
    "a trace": ("plain", at("result", "trace", value=[{"gap": 0.1}])),
    "objective of the features": ("plain", at("result", "objective", value=far(1 + 3e-9))),
    "bound of the features": ("plain", at("result", "bound", value=lambda v: v * 1.001 + 1)),
    "certificate of the features": ("plain", at("result", "certificate", "bound", value=lambda v: v * 1.001 + 1)),
    "the digest of the certificate": ("plain", at("result", "certificate", "sha256", value="0" * 64)),
    "scale of a feature": ("plain", at("result", "scaling", "scale", "far", value=far(1 + 1e-9))),
    "M of the features": ("plain", at("result", "params", "M", value=4)),
    "C of the features": ("plain", at("result", "params", "C", value=2.0)),
    "weights of the features": ("plain", at("result", "weights", "far", value=far(1.01))),
    "labels of the features": ("plain", at("result", "labels", value={"negative": "yes", "positive": "no"})),
    "rules": ("plain", at("result", "rules", value=4)),
    "atoms": ("plain", at("result", "atoms", value={})),
    "a margin": ("plain", at("result", "params", "margin", value="rho")),
    "signs": ("signs", lambda d: d["result"]["params"].update(weight_bounds={"far": [None, 0.0]})),
}


@pytest.mark.sampled(7)
@pytest.mark.parametrize("name", FORGED)
def test_a_change_of_any_field_is_refused(cards: dict[str, Path], data: Path, name: str) -> None:
    of, forge = FORGED[name]
    document = stated(cards[of])
    if name == "a field of a line":
        document["card"][0]["s"] = 1.0
    else:
        forge(document)
    assert json.dumps(document) != json.dumps(stated(cards[of]))
    word, why = verdict(cards[of], signed(document), data)
    assert word == "rejected", why
    assert "malformed" not in why


def test_every_field_is_forged() -> None:
    """But for the digest, which has a test of its own."""
    assert {name.split()[0] for name in FORGED} >= second.CARD_FIELDS - {"card", "totals", "result"} | {
        "version",
        "bins",
    }
    assert {name.split()[0] for name in FORGED} >= second.LINE_FIELDS | second.TOTALS_FIELDS


@pytest.mark.parametrize("key", ["points", "samples"])
def test_points_against_a_sign_and_other_samples_are_refused(cards: dict[str, Path], data: Path, key: str) -> None:
    """Signs are those of the result: what its bounds do not leave a weight is no points either."""
    document = stated(cards["signs"])
    if key == "points":
        line = next(one for one in document["card"] if one["feature"] == "far")
        line["points"] = -max(1, line["points"])
        assert verdict(cards["signs"], signed(document), data) == (
            "rejected", "'far' has points below 0, which its weight may not be",
        )  # fmt: skip
    else:
        moved(document)
        assert verdict(cards["signs"], signed(document), data)[0] == "rejected"


def test_the_text_is_what_its_digest_says(cards: dict[str, Path], data: Path) -> None:
    for change in ({"seconds": 1e9}, {"nodes": 123456}, {"sha256": "0" * 64}, {"sha256": None}):
        word, why = verdict(cards["plain"], stated(cards["plain"]) | change, data)
        assert (word, why) == ("rejected", "the card's text was changed (sha256)")
    assert verdict(cards["plain"], signed(stated(cards["plain"]) | {"seconds": 1e9}), data)[0] == "accepted"


def test_other_data_and_another_certificate_are_refused(cards: dict[str, Path], data: Path, tmp_path: Path) -> None:
    text = data.read_text(encoding="utf-8")
    (tmp_path / "d.csv").write_text(text.replace("17.25", "17.5", 1), encoding="utf-8")
    assert judged(cards["plain"], tmp_path / "d.csv")[0] == "rejected"
    for card in ("plain", "cut"):
        (tmp_path / f"{card}.json").write_bytes(cards[card].read_bytes())
    assert judged(tmp_path / "plain.json", data)[0] == "declined"  # nothing beside it
    (tmp_path / "card.cert.npz").write_bytes(cards["cut"].with_name("card.cert.npz").read_bytes())
    assert judged(tmp_path / "plain.json", data) == ("rejected", "the sidecar is another file (sha256)")
    assert judged(tmp_path / "cut.json", data)[0] == "accepted"


@pytest.mark.parametrize(
    ("v", "found"),
    [(0.0, 0.0), (123456789012.5, 123456789012.0), (123456789013.5, 123456789014.0), (-2.5e-7, -2.5e-7),
     (1e12 + 7, 1e12 + 10), (0.1 + 0.2, 0.3), (999999999999.9, 1e12)],
)  # fmt: skip
def test_values_to_12_digits(v: float, found: float) -> None:
    """Of two nearest ones the even one."""
    assert second.to_12_digits(v) == found


def test_thresholds_are_short_and_separate_their_values() -> None:
    for values in ([0.0, 1.0, 2.0, 3.0, 9.0], [1.5, 1.75, 40.125, 1e6], [-3.0, -3.0, -3.0, -1.0, 0.5]):
        for bins in (2, 3, 7):
            found = second.thresholds_due(values, sorted(set(values)), bins)
            assert found == sorted(set(found))
            assert all(min(values) < t <= max(values) for t in found)
    assert second.thresholds_due([1.0, 1.0, 2.0, 4.0], [1.0, 2.0, 4.0], 2) == [2.0]  # 1.5 is no whole number
    assert second.thresholds_due([1.25, 1.5, 2.0, 4.0], [1.25, 1.5, 2.0, 4.0], 2) == [2.0]  # 1.75, in one digit
    assert second.thresholds_due([1.25, 1.5, 1.9, 4.0], [1.25, 1.5, 1.9, 4.0], 2) == [1.7]
