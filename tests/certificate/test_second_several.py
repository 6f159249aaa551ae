"""The second checker over paths and several classes: what stands beside their proofs is shown, or refused."""

from __future__ import annotations

import copy
import csv
import hashlib
import io
import json
import random
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mipfs.cli import main
from tests.certificate.test_second_reading import by_rules, judged, packed

Document = dict[str, Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of three classes, one of two, and what the command line writes of them."""
    folder, rng = tmp_path_factory.mktemp("several"), random.Random(3)
    rows = []
    for i in range(60):
        a, b, c = rng.gauss(0, 1), rng.gauss(0, 1), rng.gauss(2, 1)
        town = rng.choice(["Ulm", "Bonn", "Jena"])
        good = a + (town == "Ulm") - b + rng.gauss(0, 0.4)
        label = "lo" if good < -0.6 else "mid" if good < 0.8 else "hi"
        rows.append([f"k{i:03d}", town, f"{a:.3f}", f"{b:.3f}", f"{c:.3f}", label])
    for name, labels in (("three", {}), ("two", {"hi": "yes", "lo": "no", "mid": "no"})):
        with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as stream:
            table = [[*row[:5], labels.get(row[5], row[5])] for row in rows]
            csv.writer(stream).writerows([["key", "town", "a", "b", "c", "label"], *table])
    (folder / "rows.lp").write_text(
        "Subject To\n r1: a + b <= 1\n r2: b + c <= 1\nBinary\n a\n b\n c\nEnd\n", encoding="utf-8"
    )
    for name, command in {
        "M": ["path", "two.csv", "--M", "1:3", "--folds", "3", "--one-se"],
        "CM": ["path", "two.csv", "--M", "1:2", "--C", "0.1,1", "--folds", "3"],
        "lambda": ["path", "two.csv", "-p", "M=3", "--lambda", "0.1,1"],
        "rows": ["path", "two.csv", "-p", "M=2", "--rows", str(folder / "rows.lp")],
        "rest": ["solve", "fsp-m", "three.csv", "-p", "M=2", "--scale", "standard"],
        "shared": ["solve", "fsp-m", "three.csv", "-p", "M=2", "--scale", "none", "--shared-support"],
        "unit": ["solve", "fsp-m", "three.csv", "-p", "M=2", "-p", "bias=false", "--scale", "unit", "--shared-support"],
    }.items():
        words = [str(folder / word) if word.endswith(".csv") else word for word in command]
        assert main([*words, "--json", str(folder / f"{name}.json"), "--quiet"]) == 0
    return folder


def stated(folder: Path, name: str, rules: int = 3) -> Document:
    """A document whose results are of these rules."""
    document = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    for point in document.get("points", []):
        point["result"] = by_rules(point["result"], rules)
    if "results" in document:
        document["results"] = [by_rules(one, rules) for one in document["results"]]
        document["together"] = document["together"] and document["together"] | {"rules": rules}
    return document  # type: ignore[no-any-return]


def members(folder: Path, name: str) -> dict[str, bytes]:
    with zipfile.ZipFile(folder / f"{name}.cert.npz") as archive:
        return {member: archive.read(member) for member in archive.namelist()}


def verdict(
    folder: Path, into: Path, name: str, document: Document, content: bytes | None = None, part: str = ""
) -> Any:
    """The word on a document, and why."""
    content = (folder / f"{name}.cert.npz").read_bytes() if content is None else content
    (into / f"{name}.cert.npz").write_bytes(content)
    if "points" in document:
        document["certificate"]["sha256"] = hashlib.sha256(content).hexdigest()
    (into / f"{name}.json").write_text(json.dumps(document), encoding="utf-8")
    return judged(Path(f"{into / name}.json{part}"), folder / ("two.csv" if "points" in document else "three.csv"))


PARTS = {
    "M": ["", "#M=2", "#best"], "CM": ["", "#M=1,C=0.1", "#C=1,M=2", "#best"], "lambda": ["", "#lambda=0.1"],
    "rows": ["", "#rows=1"], "rest": ["", "#lo"], "shared": ["", "#mid"], "unit": [""],
}  # fmt: skip


@pytest.mark.sampled(7)
@pytest.mark.parametrize("rules", [1, 2, 3])
@pytest.mark.parametrize("name", PARTS)
def test_it_accepts_what_the_command_line_writes(folder: Path, tmp_path: Path, name: str, rules: int) -> None:
    for part in PARTS[name]:
        word, said = verdict(folder, tmp_path, name, stated(folder, name, rules), part=part)
        assert word == "accepted", said
        assert any(line.startswith("left out by the rule") and "'key'" in line for line in said)


def at(*path: str | int, value: Any) -> Callable[[Document], None]:
    """Put a value in a place of a document."""

    def forge(document: Any) -> None:
        for step in path[:-1]:
            document = document[step]
        document[path[-1]] = value(document.get(path[-1])) if callable(value) else value

    return forge


def twice(document: Document) -> None:
    document["points"][1] = copy.deepcopy(document["points"][0])


def another_data(document: Document) -> None:
    """One point with other parameters beside the axis."""
    document["points"][1]["result"]["params"]["gap"] = 0.5
    document["points"][1]["result"]["certificate"]["gap"] = 0.5


def skipped(document: Document) -> None:
    """The last step is called by a larger number, everywhere."""
    document["points"][2]["rows"] = 3
    document["params"]["rows"] = [0, 1, 3]


PATHS: dict[str, tuple[str, Callable[[Document], None]]] = {
    "a status": ("M", at("points", 0, "status", value="FEASIBLE")),
    "an objective": ("M", at("points", 0, "objective", value=lambda v: 0.5 * v)),
    "a bound": ("M", at("points", 0, "bound", value=lambda v: 1.0001 * v)),
    "a gap": ("M", at("points", 1, "gap", value=0.0)),
    "a selection": ("M", at("points", 1, "selected", value=["c"])),
    "a stop reason": ("M", at("points", 1, "stop_reason", value="TIME_LIMIT")),
    "an M": ("M", at("points", 0, "M", value=9)),
    "a C": ("CM", at("points", 0, "C", value=0.2)),
    "a lambda": ("lambda", at("points", 0, "lambda", value=0.2)),
    "a step": ("rows", at("points", 2, "rows", value=1)),
    "a step that is missing": ("rows", skipped),
    "what was added": ("rows", at("points", 1, "added", value="r9")),
    "subproblems": ("M", at("points", 1, "subproblems", value=12345)),
    "a point twice": ("M", twice),
    "a point less": ("M", lambda document: document["points"].pop()),
    "another gap": ("M", another_data),
    "parameters": ("M", at("params", "C", value=2.0)),
    "values": ("M", at("params", "M", value=[1, 2, 3, 4])),
    "a driver": ("M", at("driver", value="gbd")),
    "an error": ("M", at("points", 0, "error", value=0.0)),
    "a deviation": ("M", at("points", 0, "deviation", value=0.3)),
    "a standard error": ("M", at("points", 0, "standard_error", value=0.3)),
    "fewer errors": ("M", at("points", 0, "errors", value=[0.1])),
    "the chosen one": ("M", at("chosen", value=1)),
    "the least error": ("M", at("least_error", value=1)),
    "one standard error": ("CM", at("one_se", value={"C": 1.0, "M": 1})),
    "another rule": ("M", at("rule", value="most")),
    "a chosen step": ("rows", at("chosen", value=1)),
    "a number that is none": ("M", at("points", 1, "result", "params", "lambda", value=False)),
    "a value that is none": ("M", at("params", "M", value=[True, 2, 3])),
    "no least error": ("M", lambda document: document.pop("least_error")),
    "an unknown field": ("M", at("note", value=1)),
    "an unknown field of a point": ("M", at("points", 0, "note", value=1)),
    "the axis": ("M", at("axis", value="C")),
    "the schema": ("M", at("schema", value=2)),
    "the schema of a result": ("M", at("points", 0, "result", "schema", value=2)),
}  # fmt: skip


@pytest.mark.sampled(2)
@pytest.mark.parametrize("what", PATHS)
def test_it_refuses_what_a_path_does_not_show(folder: Path, tmp_path: Path, what: str) -> None:
    name, forge = PATHS[what]
    document = stated(folder, name)
    forge(document)
    word, why = verdict(folder, tmp_path, name, document)
    assert word == "rejected", why


def test_a_bound_may_come_from_a_point_whose_optimum_is_not_larger(folder: Path, tmp_path: Path) -> None:
    document = stated(folder, "M")
    low = document["points"][0]["result"]
    for one in (low, low["certificate"]):  # it claims less than the point of a larger M proves
        one["bound"] = 1.0
    low |= {"status": "FEASIBLE", "gap": None}
    other = document["points"][1]["bound"]
    point = document["points"][0]
    point |= {"bound": other, "gap": (point["objective"] - other) / point["objective"], "status": "FEASIBLE"}
    assert verdict(folder, tmp_path, "M", document)[0] == "accepted"
    assert verdict(folder, tmp_path, "M", document, part="#M=1")[0] == "accepted"
    higher = copy.deepcopy(document)
    higher["points"][0] |= {"bound": other * 1.001, "gap": None}
    assert verdict(folder, tmp_path, "M", higher)[0] == "rejected"
    turned = copy.deepcopy(document)  # and not from a point of a smaller M
    turned["points"][1]["bound"] = turned["points"][0]["objective"] * 0.9
    turned["points"][1]["gap"] = None
    assert verdict(folder, tmp_path, "M", turned)[0] == "rejected"


def with_folds(folder: Path, document: Document) -> bytes:
    """Put classifiers of folds in a path, their errors as NumPy counts them, and the folds in its archive."""
    with (folder / "two.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    y, fold = np.array([row["label"] == "yes" for row in rows]), np.arange(len(rows), dtype=np.int32) % 3
    columns = {name: np.array([float(row[name]) for row in rows]) for name in "abc"}
    for word in ("Bonn", "Jena", "Ulm"):
        columns[f"town={word}"] = np.array([float(row["town"] == word) for row in rows])
    rng = np.random.default_rng(0)
    for point in document["points"]:
        errors, classifiers = [], []
        for k in range(3):
            weights = {name: float(rng.normal()) for name in point["selected"]}
            scores = sum(w * columns[name] for name, w in weights.items()) + 0.25
            classifiers.append({"weights": weights, "intercept": 0.25})
            errors.append(float(np.mean(((scores > 0) != y)[fold == k])))
        spread = float(np.std(errors, ddof=1))
        point |= {"errors": errors, "error": float(np.mean(errors)), "deviation": spread}
        point |= {"standard_error": spread / 3**0.5, "fold_classifiers": classifiers}
    points = document["points"]
    least = min(points, key=lambda point: (round(point["error"], 12), point["M"]))
    limit = round(least["error"] + least["standard_error"], 12)
    one = min(point["M"] for point in points if round(point["error"], 12) <= limit)
    document |= {"least_error": least["M"], "one_se": one, "chosen": one}
    content = io.BytesIO()
    np.savez(content, fold=fold)
    return packed(members(folder, "M") | {"folds.npz": content.getvalue()})


def test_errors_of_folds_are_those_of_their_classifiers(folder: Path, tmp_path: Path) -> None:
    document = stated(folder, "M")
    content = with_folds(folder, document)
    word, said = verdict(folder, tmp_path, "M", document, content)
    assert word == "accepted", said
    assert "not proven" in said[-1]
    for forge in (
        at("points", 0, "fold_classifiers", value=lambda v: v[::-1]),
        at("points", 0, "fold_classifiers", value=lambda v: v[:2]),
        at("points", 1, "fold_classifiers", value=lambda v: [one | {"intercept": 9.0} for one in v]),
        at("points", 1, "fold_classifiers", value=lambda v: [one | {"weights": {"zz": 1.0}} for one in v]),
    ):
        forged = copy.deepcopy(document)
        forge(forged)
        assert verdict(folder, tmp_path, "M", forged, content)[0] == "rejected"
    for fold in (np.zeros(60, np.int32), np.arange(60, dtype=np.int32) % 4, np.arange(59, dtype=np.int32) % 3):
        stream = io.BytesIO()
        np.savez(stream, fold=fold)
        other = packed(members(folder, "M") | {"folds.npz": stream.getvalue()})
        assert verdict(folder, tmp_path, "M", document, other)[0] == "rejected"
    assert verdict(folder, tmp_path, "M", document, packed(members(folder, "M")))[0] == "rejected"


CLASSES: dict[str, tuple[str, Callable[[Document], None]]] = {
    "the status": ("rest", at("status", value="FEASIBLE")),
    "the objective": ("rest", at("objective", value=lambda v: 0.9 * v)),
    "the bound": ("rest", at("bound", value=lambda v: 1.01 * v)),
    "no bound": ("rest", at("bound", value=None)),
    "the gap": ("rest", at("gap", value=0.0)),
    "the selection": ("rest", at("selected", value=["a"])),
    "the bias": ("rest", at("bias", value=False)),
    "the order of classes": ("rest", at("classes", value=lambda v: v[::-1])),
    "a class less": ("rest", at("classes", value=lambda v: v[:2])),
    "a label": ("rest", at("results", value=lambda v: [v[1], v[0], v[2]])),
    "class weights": ("rest", at("class_weight", value={"hi": 2.0, "lo": 1.0, "mid": 1.0})),
    "the certificate": ("rest", at("certificate", "bound", value=0.0)),
    "a certificate in no file": ("rest", lambda document: document["results"][2]["certificate"].pop("file")),
    "an unknown field": ("rest", at("note", value=1)),
    "columns of a class": ("shared", lambda document: document["results"][0]["columns"].update({"a": 4})),
    "a weight of a class": ("shared", lambda document: document["results"][1]["weights"].update({"a": 0.5})),
    "an intercept": ("shared", lambda document: document["results"][1].update({"intercept": 0.5})),
    "an objective of a class": ("shared", lambda document: document["results"][2].update({"objective": 0.5})),
    "a bound of a class": ("shared", lambda document: document["results"][2].update({"bound": 0.0})),
    "a proven class": ("shared", lambda document: document["results"][2].update({"status": "OPTIMAL"})),
    "a selection of a class": ("shared", lambda document: document["results"][0].update({"selected": ["a"]})),
    "parameters of a class": ("shared", lambda document: document["results"][0]["params"].update({"C": 2.0})),
    "scales of a class": ("unit", lambda document: document["results"][0]["scaling"]["scale"].update({"a": 2.0})),
    "the shared objective": ("shared", at("objective", value=lambda v: 0.9 * v)),
    "the shared status": ("shared", at("status", value="NUMERICAL")),
    "the shared selection": ("shared", at("selected", value=["a", "b", "(intercept)"])),
    "an atom": ("shared", lambda document: document["together"]["atoms"]["columns"].reverse()),
    "scales of atoms": ("shared", lambda document: document["together"]["atoms"].update(scale=[9.0] * 7)),
    "the forced intercept": ("shared", lambda document: document["together"]["params"].update(forced_in=[])),
    "not shared": ("shared", at("shared_support", value=False)),
    "other data": ("shared", lambda document: document["together"].update(data_sha256="0" * 64)),
}  # fmt: skip


@pytest.mark.sampled(2)
@pytest.mark.parametrize("what", CLASSES)
def test_it_refuses_what_several_classes_do_not_show(folder: Path, tmp_path: Path, what: str) -> None:
    name, forge = CLASSES[what]
    document = stated(folder, name)
    forge(document)
    word, why = verdict(folder, tmp_path, name, document)
    assert word == "rejected", why


def test_members_are_the_sidecars_of_the_points(folder: Path, tmp_path: Path) -> None:
    for name in ("M", "rest"):
        known = members(folder, name)
        for forged in (
            known | {"0.cert.npz": known["1.cert.npz"]},
            known | {"9.cert.npz": known["1.cert.npz"]},
            {member: content for member, content in known.items() if member != "1.cert.npz"},
        ):
            assert verdict(folder, tmp_path, name, stated(folder, name), packed(forged))[0] == "rejected"
