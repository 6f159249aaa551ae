"""What earlier versions wrote is read and verified, by both checkers, predicts the same, and has the schemas' form."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import chdir
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mipfs
from mipfs.atoms.registry import KINDS
from mipfs.data.recipe import HOWS, TYPES
from mipfs.formulation import table
from mipfs.lab.studies import reading
from mipfs.lab.studies.bench import Bench
from mipfs.lab.studies.ladder import Comparison
from mipfs.lab.studies.solution_path import SolutionPath
from mipfs.losses import LOSSES
from mipfs.measures import MEASURES
from tests import two_checkers
from tests.kept_results import kinds, make
from tests.schemas import NEWEST, broken, schema

HERE = Path(__file__).parent
VERSIONS = sorted(path for path in HERE.iterdir() if path.is_dir() and path.name[0].isdigit())
SECOND: dict[tuple[str, str], set[str]] = {
    ("declined", "a measure of scaled data, whose scaling does not stand in the certificate"): {
        *(name for name in kinds.MEASURES if name.endswith("-no-bias")),
        "measure",
    },
    ("declined", "functions whose waves NumPy draws"): {"gaussian-seed"},
    ("declined", "no text"): {
        *("arrays", "named", "parquet", "stored", "stored-sparse", "stored-recipe", "bags", "bags-sparse", "hik-words"),
    },
    ("rejected", "the solver's word"): {"monolithic"},
}
"""What the second checker says of what it does not accept: a word and why, of results and points of paths."""
UNPROVEN = {"monolithic"}
"""Whose bound is a solver's own word, which `mipfs verify` rejects."""
ALSO = {
    "stored": "plain.csv", "start": "store", "stored-recipe": "recipe.csv", "recipe": "raw-store", 
    "pressed-svmlight": "sparse.svm", "sparse": "pressed.svm.gz", "tabs": "pressed.csv.bz2",
    "decimals": "plain.csv",
}  # fmt: skip
"""Results, and other files that hold the same data."""
TOLERANCE = 1e-6
"""Of numbers that another processor adds up in another order."""


@lru_cache
def kept(version: Path) -> Any:
    """What stands in kept.json."""
    return document(version, "kept")


@lru_cache
def document(version: Path, name: str) -> Any:
    return json.loads((version / f"{name}.json").read_text(encoding="utf-8"))


def kind_of(found: Any) -> str:
    """The kind of a document, which its schema is called by."""
    if found.get("kind") in ("one-vs-rest", "scorecard"):
        return "classes" if found["kind"] == "one-vs-rest" else "card"
    by = {"points": "path", "ladder": "compare", "draws": "stability", "selected": "result"}
    return next((kind for field, kind in by.items() if field in found), "bench")


NAMES = [(version, name) for version in VERSIONS for name in kept(version)]
PARTS = [(version, name, part) for version, name in NAMES for part in kept(version)[name]["parts"]]


def each(*wanted: str) -> Callable[[Any], Any]:
    """Of every document of these kinds."""
    cases = [(version, name) for version, name in NAMES if kind_of(document(version, name)) in wanted]
    ids = [f"{version.name}-{name}" for version, name in cases]
    return pytest.mark.parametrize(("version", "name"), cases, ids=ids)


def close(found: Any, stated: Any) -> bool:
    """Whether a value of JSON has what is stated: later versions say more, and add up in another order."""
    if isinstance(stated, dict):
        return isinstance(found, dict) and all(name in found and close(found[name], stated[name]) for name in stated)
    if isinstance(stated, list):
        return len(found) == len(stated) and all(map(close, found, stated))
    if isinstance(stated, float):
        return isinstance(found, (int, float)) and bool(found == pytest.approx(stated, rel=TOLERANCE, abs=TOLERANCE))
    return bool(found == stated)


@pytest.mark.sampled(37)
@pytest.mark.filterwarnings("ignore::mipfs.DataWarning")  # of columns that are left out, and decimal commas
@pytest.mark.parametrize(
    ("version", "name", "part"), PARTS, ids=[f"{version.name}-{name}{part}" for version, name, part in PARTS]
)
def test_every_part_is_verified_and_predicts_the_same(version: Path, name: str, part: str) -> None:
    entry = kept(version)[name]
    if entry["data"].endswith(".parquet"):
        pytest.importorskip("pyarrow")
    stated = entry["parts"][part]
    with chdir(version):
        found = make.judged(f"{name}.json{part}", entry["data"], entry["options"])
    for said in ("verdict", "predicted", "evaluated"):  # a later version may answer where an earlier one refused
        assert stated[said] is None or close(found[said], stated[said]), (said, found[said], stated[said])
    kind = kind_of(document(version, name))
    is_card = kind == "card" and "joint" not in document(version, name)
    no_verdict = is_card or bool(part and document(version, name).get("shared_support"))
    assert (stated["verdict"] is None) == no_verdict
    assert all(one["accepted"] == (name not in UNPROVEN) for one in found["verdict"] or [])
    status = document(version, name).get("status")
    assert (found["predicted"] is None) == (stated["predicted"] is None) == (status == "INFEASIBLE")


@pytest.mark.filterwarnings("ignore::mipfs.DataWarning")
@pytest.mark.parametrize(
    ("version", "name"),
    [(version, name) for version, name in NAMES if name in ALSO and (version / ALSO[name]).exists()],
)
def test_other_files_of_the_same_data_are_as_good(version: Path, name: str) -> None:
    found = make.said("verify", str(version / f"{name}.json"), str(version / ALSO[name]))
    assert found is not None
    assert found["accepted"]


@pytest.mark.sampled(5)
@each("result")
def test_the_second_checker_says_what_it_did(version: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert second(version / f"{name}.json", version, name, capsys) == word_of(name)


@pytest.mark.sampled(2)
@each("path")
def test_the_second_checker_says_what_it_did_of_points(
    version: Path, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = reading.load(version / f"{name}.json")
    assert isinstance(path, SolutionPath)
    for point in path.points:
        point.result.save(tmp_path / "point.json")
        assert second(tmp_path / "point.json", version, name, capsys) == word_of(name)


@each("path", "classes", "card")
def test_the_second_checker_takes_whole_documents(version: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """But scaled ones whose scaling does not stand in the certificate."""
    word = {"shared": "declined", "classes-measure": "declined"}.get(name, "accepted")
    assert second(version / f"{name}.json", version, name, capsys) == word


def second(file: Path, version: Path, name: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What the second checker says of a file."""
    code = two_checkers.second().main([str(file), str(version / kept(version)[name]["data"])])
    word = capsys.readouterr().out.split(":")[0].split()[0]
    assert code == {"accepted": 0, "rejected": 1, "declined": 2}[word]
    return word


def word_of(name: str) -> str:
    return next((word for (word, _), names in SECOND.items() if name in names), "accepted")


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("version", "name"), NAMES, ids=[f"{version.name}-{name}" for version, name in NAMES])
def test_they_have_the_form_of_the_schema(version: Path, name: str) -> None:
    kind = kind_of(document(version, name))
    if kind in NEWEST:
        assert not broken(document(version, name), schema(kind))
    if kind == "result":
        with np.load(version / f"{name}.cert.npz", allow_pickle=False) as arrays:
            found = {key: {"kind": arrays[key].dtype.kind, "shape": list(arrays[key].shape)} for key in arrays.files}
        assert not broken(found, schema("sidecar"))


@each("card")
def test_cards_count_the_same_samples(version: Path, name: str) -> None:
    stated = document(version, name)["totals"]
    assert mipfs.read_scorecard(version / f"{name}.json").rates() == stated
    predicted = kept(version)[name]["parts"][""]["predicted"]
    totals, labels = np.array(predicted["totals"]), np.array(predicted["labels"])
    inside = [(totals >= row["from"] - 1e-6) & (totals <= row["to"] + 1e-6) for row in stated]
    assert np.sum(inside, axis=0).tolist() == [1] * totals.size
    for row, those in zip(stated, inside, strict=True):
        assert those.sum() == row["samples"]
        assert set(labels[those]) == {row["decision"]}


@each("compare")
def test_ladders_are_read(version: Path, name: str) -> None:
    found = reading.load(version / f"{name}.json")
    assert isinstance(found, Comparison)
    stated = document(version, name)["ladder"]
    assert [(rung.name, rung.value) for rung in found.ladder] == [(rung["name"], rung["value"]) for rung in stated]
    assert stated


@each("bench")
def test_benchmarks_are_read(version: Path, name: str) -> None:
    found = reading.load(version / f"{name}.json")
    assert isinstance(found, Bench)
    stated = document(version, name)["rows"]
    again = [row.document(found.names) for row in found.rows]  # later versions say more
    assert [{key: row[key] for key in one} for row, one in zip(again, stated, strict=True)] == stated
    assert all(one in found.summary() for row in stated for one in [*row["shares"]][:1])


@each("stability")
def test_counts_are_those_of_the_sets(version: Path, name: str) -> None:
    found = document(version, name)
    counts = {one["name"]: one["count"] for one in found["features"]}
    assert counts == {one: sum(one in chosen for chosen in found["sets"]) for one in counts}
    assert {one for chosen in found["sets"] for one in chosen} <= counts.keys()


def test_every_kind_is_kept() -> None:
    names = {name for _, name in NAMES}
    assert names == kinds.COMMANDS.keys() | kinds.MADE.keys()
    assert names >= set().union(*SECOND.values()) | UNPROVEN
    words = set(re.split("[ =,]", " ".join(kinds.COMMANDS.values()))) | {one.atoms for one in kinds.MADE.values()}
    losses = {name for name, module in LOSSES.items() if module.startswith("mipfs.")}  # other tests enter their own
    models = {entry.name for entry in table()}
    assert words >= KINDS.keys() | MEASURES.keys() | losses | models
    assert words >= {"branch", "gbd", "kelley", "two_layer", "conic", "monolithic"}
    assert words >= {one.replace(" ", "_") for one in (*HOWS, *TYPES)}


def test_the_validator_finds_what_is_wrong() -> None:
    honest = document(VERSIONS[0], "hinge")
    wrong: list[tuple[str, Any]] = [
        ("objective", "1"), ("objective", True), ("schema", 2), ("selected", "a"), ("weights", {"a": None}), ("new", 1),
        ("certificate", {"kind": "word", "bound": 1.0, "gap": 0.1}), ("data_sha256", "x"), ("params", {}),
    ]  # fmt: skip
    for name, value in wrong:
        assert broken({**honest, name: value}, schema("result")), name
    assert broken({name: value for name, value in honest.items() if name != "rows"}, schema("result"))
