"""Every field of a path and of several classes is proven, computed again or refused, or named as history.

The tables are over the fields that a document has: a field that the writer gets tomorrow is forged by these tests too.
"""

from __future__ import annotations

import copy
import hashlib
import io
import json
import zipfile
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mipfs
from mipfs.check import paths
from mipfs.check.classes import check_classes
from mipfs.check.paths import check_path
from mipfs.check.several import DocumentReport
from mipfs.check.tree import NEVER
from mipfs.cli import main
from mipfs.lab.studies.solution_path import SolutionPath
from mipfs.plumbing import strict_json
from mipfs.readers import read_classes
from mipfs.readers.arrays import npz_bytes
from tests.schemas import broken, schema

PATHS: dict[str, list[str]] = {
    "M": ["--M", "1:2", "--folds", "3"],
    "C": ["--C", "0.1,1", "-p", "M=2", "--folds", "3", "--one-se", "--scale", "standard"],
    "C,M": ["--M", "1:2", "--C", "0.1,1", "--folds", "3"],
    "lambda": ["--lambda", "auto:3", "--folds", "3"],
    "rows": ["--rows", "rows.lp", "-p", "M=2", "--folds", "3"],
    "f1": ["--M", "1:2", "-p", "loss=structural", "-p", "measure=f1", "--folds", "3"],
    "average precision": ["--M", "1:2", "-p", "loss=structural", "-p", "measure=average-precision", "--folds", "3"],
    "no folds": ["--M", "1:2"],
    "between": ["--M", "1:2", "--C", "0.1,1", "--between", "1"],
}
CLASSES: dict[str, list[str]] = {
    "one a class": ["--M", "1"],
    "shared": ["--M", "1", "--shared-support"],
    "shared, scaled": ["--M", "2", "--shared-support", "--scale", "standard", "-p", "class_weight=balanced"],
    "shared, no bias": ["--M", "1", "--shared-support", "--scale", "standard", "-p", "bias=false"],
}
HISTORY = {
    *("driver", "seconds", "counters", "trace", "versions", "command", "settings", "stop_reason", "bound_source"),
    *("cuts_carried", "cuts", "seconds_saved", "cold_seconds", "start", "seed", "interrupted", "warm_from"),
}
"""What `verify` names as unchecked where it shows a document; a wrong kind is refused of some of these all the same."""


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data of two and of three classes, and a file of rows."""
    folder = tmp_path_factory.mktemp("documents")
    r = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 10)
    X = r.normal(size=(30, 3))
    X[:, 0] += 1.5 * y
    X[:, 1] -= 0.7 * y
    for name, labels in (("three.csv", y), ("two.csv", y > 0)):
        lines = [",".join([*map(repr, map(float, row)), str(int(label))]) for row, label in zip(X, labels, strict=True)]
        (folder / name).write_text("\n".join(["a,b,c,label", *lines]) + "\n")
    rows = "Minimize\n obj:\nSubject To\n one: a + b <= 1\n two: b + c <= 1\nBounds\nEnd\n"
    (folder / "rows.lp").write_text(rows)
    return folder


Made = tuple[dict[str, Any], bytes]


@pytest.fixture(scope="module")
def made(room: Path) -> Callable[[str], Made]:
    """The document of a name and its archive; each is made once."""
    kept: dict[str, Made] = {}

    def of(name: str) -> Made:
        if name not in kept:
            file = room / f"{len(kept)}.json"
            if name in PATHS:
                asked = [str(room / one) if one == "rows.lp" else one for one in PATHS[name]]
                command = ["path", str(room / "two.csv"), *asked]
            else:
                command = ["solve", "fsp-m", str(room / "three.csv"), *CLASSES[name]]
            assert main([*command, "--json", str(file), "--quiet"]) == 0
            kept[name] = strict_json.parse_json(file.read_text()), file.with_suffix(".cert.npz").read_bytes()
        document, content = kept[name]
        return copy.deepcopy(document), content

    return of


@lru_cache
def data_of(file: Path, scale: str) -> Any:
    """The data of two classes, or that of every class against the rest."""
    if file.name == "two.csv":
        return mipfs.read(file, label="label", scale=scale)
    return read_classes(file, {}, label="label", scale=scale)


def checked(room: Path, name: str, document: Any, content: bytes, part: str | None = None) -> DocumentReport:
    """What the checker says of a document of that name."""
    scale = "standard" if "standard" in (PATHS | CLASSES)[name] else "none"
    check, file = (check_path, "two.csv") if name in PATHS else (check_classes, "three.csv")
    return check(document, Path("d.cert.npz"), content, data_of(room / file, scale), part)


def forged(value: Any) -> Iterator[Any]:
    """Other values in the place of one: of its kind, a little and much off, and of other kinds."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield from (value + 1, value + 0.5, True)
    elif isinstance(value, float):
        yield from (value * 1.01 + 0.01, value - 0.25 * abs(value) - 0.01, str(value))
    elif isinstance(value, str):
        yield from (f"{value}x", 1.0)
    elif isinstance(value, list):
        yield from ([*value, "c"], value[1:] if value else ["a"], {"a": 1})
    elif isinstance(value, dict):
        yield from ({**value, "strange": 1.0}, dict(list(value.items())[1:]) if value else {"a": 1.0})
    else:
        yield from (0.125, "x", ["a"])


def at(document: Any, place: tuple[Any, ...]) -> Any:
    for one in place:
        document = document[one]
    return document


@pytest.mark.sampled(7)
@pytest.mark.parametrize("name", [*PATHS, *CLASSES])
def test_honest_documents_are_accepted(room: Path, made: Callable[[str], Made], name: str) -> None:
    document, content = made(name)
    report = checked(room, name, document, content)
    assert report.accepted, report.reason
    proven = [one.report for one in report.parts]
    assert all(one is not None and one.accepted for one in proven)
    assert len(proven) == (len(document["points"]) if name in PATHS else 3 if name == "one a class" else 1)


@pytest.mark.sampled(11)
@pytest.mark.parametrize("name", PATHS)
def test_every_field_of_a_path_is_checked(room: Path, made: Callable[[str], Made], name: str) -> None:
    document, content = made(name)
    # of sets between points a shorter list says less
    places: list[tuple[Any, ...]] = [(field,) for field in document if field not in ("points", "command", "between")]
    places += [("between", 0, field) for field in document.get("between", [{}])[0]]
    places += [("points", 0, field) for field in document["points"][0] if field != "result"]
    places += [("params", field) for field in document["params"]]
    places += [("certificate", field) for field in document["certificate"]]
    if document["folds"]:
        places += [("points", 1, "errors", 0)]
    wrong = []
    for place in places:
        for value in forged(at(document, place)):
            bent = copy.deepcopy(document)
            at(bent, place[:-1])[place[-1]] = value
            if bent != document and checked(room, name, bent, content).accepted and place[-1] not in HISTORY:
                wrong.append((place, value))
    gone = [place for place in places if place[-1] not in {*HISTORY, *OPTIONAL}]
    for place in gone:
        bent = copy.deepcopy(document)
        del at(bent, place[:-1])[place[-1]]
        if checked(room, name, bent, content).accepted:
            wrong.append((place, "left out"))
    assert not wrong


OPTIONAL = ("rule", "least_error", "one_se", "fold_classifiers")
"""Fields that an older path has not: without them less is said, and what is unchecked is named."""


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", CLASSES)
def test_every_field_of_several_classes_is_checked(room: Path, made: Callable[[str], Made], name: str) -> None:
    document, content = made(name)
    shared = document["shared_support"]
    places = [(field,) for field in document if field not in ("results", "together", "command")]
    of_class = [field for field in document["results"][2] if field not in HISTORY]
    places += [("results", 2, field) for field in of_class]
    places += [("results", 2, inner, field) for inner in ("params", "scaling", "columns", "weights") for field in
               document["results"][2][inner]]  # fmt: skip
    if shared:
        places += [("together", field) for field in document["together"] if field not in HISTORY]
        places += [("together", "params", field) for field in document["together"]["params"]]
        places += [("together", "atoms", field) for field in document["together"]["atoms"]]
    wrong = []
    for place in places:
        for value in forged(at(document, place)):
            bent = copy.deepcopy(document)
            at(bent, place[:-1])[place[-1]] = value
            report = checked(room, name, bent, content)
            is_less = place[-1] == "decided" and value in [[one] for one in at(document, place) or ()]  # true as it is
            if bent != document and report.accepted and NEVER.get(place[-1]) not in report.unchecked and not is_less:
                wrong.append((place, value))
    assert not wrong


@pytest.mark.parametrize("name", [*PATHS, *CLASSES])
def test_unknown_fields_schemas_and_members_are_refused(room: Path, made: Callable[[str], Made], name: str) -> None:
    document, content = made(name)
    results = document["points"] if name in PATHS else document["results"]
    result = results[0]["result"] if name in PATHS else results[0]
    for where in (document, results[0], result, result["params"]):
        where["strange"] = 0
        assert not checked(room, name, document, content).accepted
        del where["strange"]
    for other in (True, 1.0, 2, "1", None):
        for where in (document, result):
            where["schema"] = other
            assert "schema" in checked(room, name, document, content).reason
            where["schema"] = 1
    assert checked(room, name, document, content).accepted
    more = with_member(content, "strange.npz", b"")
    assert not checked(room, name, restamped(document, more), more).accepted
    assert not checked(room, name, document, b"PK").accepted
    assert not checked(room, name, document, content[:-30]).accepted


def with_member(content: bytes, name: str, inside: bytes) -> bytes:
    stream = io.BytesIO(content)
    with zipfile.ZipFile(stream, "a") as archive:
        archive.writestr(name, inside)
    return stream.getvalue()


def without_member(content: bytes, name: str) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as archive, zipfile.ZipFile(stream, "w") as left:
        for one in archive.infolist():
            if one.filename != name:
                left.writestr(one, archive.read(one))
    return stream.getvalue()


def restamped(document: dict[str, Any], content: bytes) -> dict[str, Any]:
    """A path with the digest of another archive."""
    if "points" not in document:
        return document
    return document | {"certificate": document["certificate"] | {"sha256": hashlib.sha256(content).hexdigest()}}


def test_an_unknown_array_of_a_sidecar_is_refused(room: Path, made: Callable[[str], Made]) -> None:
    name = "no folds"
    document, content = made(name)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        arrays = dict(np.load(io.BytesIO(archive.read("0.cert.npz"))))
    for stranger in ("strange", "labelling"):  # the second is one of measures
        inside = npz_bytes(arrays | {stranger: np.zeros(1)})
        other = with_member(without_member(content, "0.cert.npz"), "0.cert.npz", inside)
        bent = restamped(document, other)
        bent["points"][0]["result"]["certificate"]["sha256"] = hashlib.sha256(inside).hexdigest()
        assert stranger in checked(room, name, bent, other).reason


def test_errors_are_those_of_the_classifiers_of_the_folds(room: Path, made: Callable[[str], Made]) -> None:
    name = "M"
    document, content = made(name)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        fold = np.load(io.BytesIO(archive.read("folds.npz")))["fold"]
    data = mipfs.read(room / "two.csv", label="label")
    for point in document["points"]:  # by hand: the share of wrong signs
        for f, (one, error) in enumerate(zip(point["fold_classifiers"], point["errors"], strict=True)):
            scores = sum(w * data.X[:, data.index[name]] for name, w in one["weights"].items()) + one["intercept"]
            wrong = ((scores > 0) != (data.y > 0))[fold == f]
            assert error == pytest.approx(wrong.mean(), abs=1e-12)
    first = copy.deepcopy(document)
    one = first["points"][0]["fold_classifiers"][0]  # the other way round: what was right is wrong
    one["weights"] = {feature: -w for feature, w in one["weights"].items()}
    one["intercept"] *= -1.0
    assert "the error of fold 0" in checked(room, name, first, content).reason
    for other in (np.roll(fold, 1), fold[:-1], fold + 1, fold.astype(np.int64), np.zeros_like(fold)):
        bent = with_member(without_member(content, "folds.npz"), "folds.npz", npz_bytes({"fold": other}))
        assert not checked(room, name, restamped(document, bent), bent).accepted
    gone = without_member(content, "folds.npz")
    assert not checked(room, name, restamped(document, gone), gone).accepted  # there are classifiers of folds
    for point in document["points"]:
        del point["fold_classifiers"]
    old = checked(room, name, restamped(document, gone), gone)  # as paths were written before
    assert old.accepted
    assert any("classifiers of the folds are not in" in line for line in old.unchecked)


def test_a_bound_of_another_point_is_proven_there(room: Path, made: Callable[[str], Made]) -> None:
    name = "rows"
    document, content = made(name)
    best = max(document["points"], key=lambda point: point["result"]["bound"])
    last = document["points"][-1]
    last["bound"] = best["result"]["bound"]
    last["gap"] = (last["objective"] - last["bound"]) / last["objective"]
    report = checked(room, name, document, content, "rows=2")
    assert report.accepted, report.reason
    document["points"][0]["bound"] = best["result"]["bound"] * 1.0001  # fewer rows: no other point proves it
    assert not checked(room, name, document, content).accepted


def test_the_rows_of_a_file_are_those_of_a_step(room: Path, made: Callable[[str], Made]) -> None:
    document, content = made("rows")
    file = room / "steps.json"
    file.write_text(json.dumps(document))
    file.with_suffix(".cert.npz").write_bytes(content)
    rows, data = str(room / "rows.lp"), str(room / "two.csv")
    codes = [main(["verify", f"{file}#rows={k}", data, "--subject-to", rows, "-q"]) for k in range(3)]
    assert codes == [1, 1, 0]  # the last step has all rows of the file, and its bound may be that of the step before
    assert main(["verify", str(file), data, "--subject-to", rows, "-q"]) == 2
    assert main(["verify", str(file), data, "-q"]) == 0


def test_a_name_stands_once_at_every_depth(room: Path, made: Callable[[str], Made]) -> None:
    document, _ = made("M")
    text = json.dumps(document)
    for name in ("schema", "objective", "weights", "label", "kind", "sha256", "errors", "M"):
        twice = text.replace(f'"{name}":', f'"{name}": null, "{name}":', 1)
        assert twice != text
        with pytest.raises(ValueError, match="stands twice"):
            strict_json.parse_json(twice)


@pytest.mark.sampled(7)
@pytest.mark.parametrize("name", ["M", "C", "C,M", "lambda", "rows", "f1"])
def test_the_folds_are_solved_again(
    room: Path, made: Callable[[str], Made], name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    document, content = made(name)
    file = room / "again.json"
    file.write_text(json.dumps(document))
    file.with_suffix(".cert.npz").write_bytes(content)
    assert main(["verify", str(file), str(room / "two.csv"), "--recompute"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    count = sum(len(point["errors"]) for point in document["points"])
    assert f"solved again: {count} errors agree" in out
    zero = {"weights": {}, "intercept": 1.0}  # an honest error of another classifier
    measure = document["params"].get("measure")
    if measure is None:
        data = mipfs.read(room / "two.csv", label="label")
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            fold = np.load(io.BytesIO(archive.read("folds.npz")))["fold"]
        for point in document["points"]:
            point["fold_classifiers"] = [zero] * 3
            point["errors"] = [float(np.mean(data.y[fold == f] < 0)) for f in range(3)]
            summary = paths._error_summary(point["errors"])
            point |= summary
        first = paths.StatedPath(document)
        least, simplest = first._recomputed_choice()
        _choose(document, least, simplest)
        file.write_text(json.dumps(document))
        assert main(["verify", str(file), str(room / "two.csv")]) == 0, capsys.readouterr().err
        assert main(["verify", str(file), str(room / "two.csv"), "--recompute"]) == 1
        assert "solved again" in capsys.readouterr().err


def _choose(document: dict[str, Any], least: Any, simplest: Any) -> None:
    axes = document["axis"].split(",")

    def stated(place: Any) -> Any:
        return None if place is None else dict(zip(axes, place, strict=True)) if len(axes) > 1 else place[0]

    right = {
        "chosen": simplest if document.get("rule") == "one-se" else least,
        "one_se": simplest,
        "least_error": least,
    }
    document.update({name: stated(place) for name, place in right.items() if name in document})


@pytest.mark.parametrize("name", ["M", "one a class", "shared"])
def test_what_contradicts_itself_is_refused_where_it_is_read(
    room: Path, made: Callable[[str], Made], name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    document, content = made(name)
    where = document["points"][0] if name == "M" else document
    where["objective"] = 12.345
    file = room / "lie.json"
    file.write_text(json.dumps(document))
    file.with_suffix(".cert.npz").write_bytes(content)
    assert main(["report", str(file), "-o", str(room / "lie.html")]) != 0
    assert "lie.json" in (said := capsys.readouterr().err)
    assert "'objective' is 12.345" in said
    part = "M=1" if name == "M" else "1"
    data = str(room / ("two.csv" if name == "M" else "three.csv"))
    assert main(["predict", f"{file}#{part}", data]) != 0
    assert "'objective' is 12.345" in capsys.readouterr().err
    assert main(["verify", f"{file}#{part}", data]) == 1


def test_what_carries_no_proof_says_so(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = room / "none.json"
    for document, words in (
        ({"schema": 1, "ladder": []}, "a ladder"),
        ({"schema": 1, "kind": "bench"}, "a benchmark"),
        ({"schema": 1, "kind": "bootstrap", "sets": []}, "a stability report"),
        ({"schema": 1, "method": "bss", "guarantee": {}}, "a choice of columns"),
    ):
        file.write_text(json.dumps(document))
        for command in ("predict", "evaluate"):
            assert main([command, str(file), str(room / "two.csv")]) == 2
            assert f"{file} holds {words}" in capsys.readouterr().err
        assert main(["verify", str(file), str(room / "two.csv")]) == 2
        said = capsys.readouterr().err
        assert words in said
        assert "carries a proof" in said
        assert "mipfs solve" in said


def test_a_path_that_was_resumed_or_saved_again_has_its_folds(tmp_path: Path) -> None:
    r = np.random.default_rng(2)
    y = np.where(r.random(60) < 0.5, 1, -1)
    entries = [[(j, r.normal() + (one if j < 2 else 0)) for j in range(8) if r.random() < 0.4] for one in y]
    rows = [f"{one:+d} " + " ".join(f"{j + 1}:{v:.3f}" for j, v in row) for one, row in zip(y, entries, strict=True)]
    data = tmp_path / "s.svm"
    data.write_text("\n".join(rows) + "\n")
    asked = ["path", str(data), "--M", "1:2", "--folds", "3", "--scale", "standard", "-q"]  # sparse, and centred
    first, second, third = (tmp_path / f"{name}.json" for name in ("first", "second", "third"))
    assert main([*asked, "--checkpoint", str(tmp_path / "kept"), "--json", str(first)]) == 0
    assert main([*asked, "--resume", str(tmp_path / "kept"), "--json", str(second)]) == 0
    SolutionPath.load(second).save(third)
    found = [json.loads(file.read_text())["points"] for file in (first, second, third)]
    classifiers = [[point["fold_classifiers"] for point in points] for points in found]
    assert classifiers[0] == classifiers[1] == classifiers[2]
    for file in (first, second, third):
        assert main(["verify", str(file), str(data), "-q", "--recompute"]) == 0


def test_the_page_says_what_is_not_checked(room: Path, made: Callable[[str], Made]) -> None:
    for name, words in (("M", "the folds&#x27; classifiers"), ("no folds", "the seed"), ("shared", "the driver")):
        document, content = made(name)
        file = room / "page.json"
        file.write_text(json.dumps(document))
        file.with_suffix(".cert.npz").write_bytes(content)
        assert main(["report", str(file), "-o", str(room / "page.html"), "-q"]) == 0
        said = (room / "page.html").read_text().partition("Not checked by")[2][:200]
        assert words in said, said


@pytest.mark.parametrize("name", ["M", "one a class", "shared"])
def test_documents_have_the_form_of_their_schema(made: Callable[[str], Made], name: str) -> None:
    document, _ = made(name)
    assert not broken(document, schema("path" if name == "M" else "classes"))


def test_a_document_of_the_first_rules_may_say_that_its_classes_have_intercepts(
    room: Path, made: Callable[[str], Made]
) -> None:
    """From the second rules on it is compared; before, what was said is no part of any problem."""
    document, content = made("one a class")
    assert document["bias"] is True
    for result in document["results"]:
        result["params"]["bias"] = False
    assert "'bias' is True, and False of the class 0" in checked(room, "one a class", document, content).reason
    for result in document["results"]:
        del result["rules"]
    assert "'bias'" not in checked(room, "one a class", document, content).reason
    document["bias"] = False
    document["results"][0]["params"]["bias"] = True
    assert "'bias' is False, and True of the class 0" in checked(room, "one a class", document, content).reason
