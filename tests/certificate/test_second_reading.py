"""The second checker's reading: damaged, doubled and unknown parts of files, and how tables become columns."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import random
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mipfs
from tests import two_checkers

Document = dict[str, Any]
second = two_checkers.second()


def judged(path: Path, data: Path) -> tuple[str, Any]:
    """Its word on a file, and why."""
    return second.verdict_of(lambda: second.judge(path, data))  # type: ignore[no-any-return]


def by_rules(document: Document, rules: int) -> Document:
    """A document under these rules, whatever version of the package wrote it."""
    document = json.loads(json.dumps(document)) | {"rules": rules}
    read = document["read"]
    if rules == 1:
        read.pop("kept", None)
    else:
        read |= {"kept": read.get("kept", []), "left_out": read.get("left_out", [])}
        document["scaling"].pop("center", None)
    return document  # type: ignore[no-any-return]


def written(folder: Path, document: Document, content: bytes | None = None) -> Path:
    """A document beside its archive, whose digest it names."""
    if content is not None:
        (folder / "r.cert.npz").write_bytes(content)
        document = json.loads(json.dumps(document))
        document["certificate"] |= {"file": "r.cert.npz", "sha256": hashlib.sha256(content).hexdigest()}
    (folder / "r.json").write_text(json.dumps(document), encoding="utf-8")
    return folder / "r.json"


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with a key, a column of three words, a date, an amount and gaps; `r.json` is its result."""
    folder, rng = tmp_path_factory.mktemp("table"), random.Random(3)
    rows = []
    for i in range(90):
        town, x, z = rng.choice(["Ulm", "Bonn", "Jena"]), rng.gauss(0, 1), rng.gauss(0, 1)
        good = 3 * (town == "Ulm") + 2.5 * x + 0.4 * z - 1 + rng.gauss(0, 0.4) > 0
        rows.append([f"k{i:04d}", town, f"{x:.3f}", f"{z:.3f}", "yes" if good else "no"])
    with (folder / "d.csv").open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([["key", "town", "x", "z", "label"], *rows])
    mipfs.solve(mipfs.Problem(mipfs.read(folder / "d.csv", scale="standard"), M=2, C=1.0)).save(folder / "r.json")
    return folder


def stated(table: Path, rules: int = 2) -> Document:
    return by_rules(json.loads((table / "r.json").read_text(encoding="utf-8")), rules)


def sidecar(table: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(table / "r.cert.npz") as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(members: dict[str, bytes]) -> bytes:
    """An archive of arrays, or of certificates, which stand in it as they are."""
    how = zipfile.ZIP_STORED if any(name.endswith(".npz") for name in members) else zipfile.ZIP_DEFLATED
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", how) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


def npy(head: str, body: bytes = b"", version: int = 1) -> bytes:
    text = head.encode("latin-1") + b"\n"
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(text)) + text + body


@pytest.mark.parametrize("rules", [1, 2, 3, 4, 5, 6])
def test_an_honest_table_says_how_it_was_read(table: Path, tmp_path: Path, rules: int) -> None:
    path = written(tmp_path, stated(table, rules), (table / "r.cert.npz").read_bytes())
    word, said = judged(path, table / "d.csv")
    assert word == "accepted", said
    assert f"rules {rules}; column 'label' has the labels 'no' (-1), 'yes' (+1)" in said[1]
    assert said[2] == "left out by the rule for columns of words: 'key'"


@pytest.mark.parametrize("schema", [2, 99, "1", None, True, 1.0])
def test_the_schema_is_the_whole_number_1(table: Path, tmp_path: Path, schema: object) -> None:
    path = written(tmp_path, stated(table) | {"schema": schema}, (table / "r.cert.npz").read_bytes())
    assert judged(path, table / "d.csv") == ("rejected", "schema is not the whole number 1")


@pytest.mark.parametrize("rules", [0, 7, "1", 1.0, True, None])
def test_rules_that_it_does_not_know_are_refused(table: Path, tmp_path: Path, rules: object) -> None:
    path = written(tmp_path, stated(table) | {"rules": rules}, (table / "r.cert.npz").read_bytes())
    word, why = judged(path, table / "d.csv")
    assert (word, "which I do not know" in why) == ("rejected", True)


@pytest.mark.parametrize("name", ["objective", "M", "town", "kind"])
def test_a_name_twice_at_any_depth_is_no_document(table: Path, tmp_path: Path, name: str) -> None:
    path = written(tmp_path, stated(table), (table / "r.cert.npz").read_bytes())
    text = path.read_text(encoding="utf-8")
    assert f'"{name}":' in text
    path.write_text(text.replace(f'"{name}":', f'"{name}": 3, "{name}":', 1), encoding="utf-8")
    assert judged(path, table / "d.csv") == ("rejected", "the JSON has a name twice")


HEADERS = {
    "minus signs": npy("{'descr': '<i4', 'fortran_order': False, 'shape': (" + "-" * 60000 + "1,)}"),
    "brackets": npy("{'descr': '<i4', 'fortran_order': False, 'shape': " + "(" * 4000 + ")}"),
    "a huge shape": npy(
        "{'descr': '<i8', 'fortran_order': False, 'shape': (999999999999999999, 999999999999999999), }"
    ),
    "texts of no bytes": npy("{'descr': '|S0', 'fortran_order': False, 'shape': (999999999999,), }"),
    "shorter than its header": b"\x93NUMPY\x02\x00\xff\xff\xff\x7f{}",
    "no header": b"\x93NUMPY\x01\x00\x00",
    "an object": npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", b"\x80\x04N."),
    "nothing": b"",
}


@pytest.mark.parametrize("what", HEADERS)
def test_damaged_arrays_end_in_a_verdict(table: Path, tmp_path: Path, what: str) -> None:
    content = packed(sidecar(table) | {"dual_q.npy": HEADERS[what]})
    word, why = judged(written(tmp_path, stated(table), content), table / "d.csv")
    assert (word, "dual_q" in why) == ("rejected", True), why


@pytest.mark.slow
def test_bytes_changed_anywhere_end_in_a_verdict(table: Path, tmp_path: Path) -> None:
    """That there is one: nothing but what `verdict_of` knows is raised, whatever the bytes."""
    good, rng = (table / "r.cert.npz").read_bytes(), np.random.default_rng(5)
    for _ in range(60):
        content = bytearray(good)
        for place in rng.integers(len(content), size=int(rng.integers(1, 4))):
            content[place] ^= int(rng.integers(1, 256))
        word, _ = judged(written(tmp_path, stated(table), bytes(content)), table / "d.csv")
        if word == "accepted":  # a date of the archive has changed, or what its members are not read by
            kept = {name: value.values for name, value in second.read_archive(bytes(content)).items()}
            assert kept == {name: value.values for name, value in second.read_archive(good).items()}
    for size in rng.integers(len(good), size=10):
        assert judged(written(tmp_path, stated(table), good[:size]), table / "d.csv")[0] == "rejected"


@pytest.mark.parametrize("name", ["zz.npy", "more.txt", "folder/dual_q.npy", "dual_q", "../version.npy"])
def test_members_that_no_certificate_has_are_refused(table: Path, tmp_path: Path, name: str) -> None:
    content = packed(sidecar(table) | {name: sidecar(table)["version.npy"]})
    word, why = judged(written(tmp_path, stated(table), content), table / "d.csv")
    assert (word, "may not have" in why) == ("rejected", True)


@pytest.mark.slow
def test_an_archive_that_unpacks_to_very_much_is_declined_before_it_is(table: Path, tmp_path: Path) -> None:
    content = packed(sidecar(table) | {"labelling.npy": bytes(300 << 20)})
    assert judged(written(tmp_path, stated(table), content), table / "d.csv")[0] == "declined"


def forged_words(document: Document) -> None:
    document["read"]["words"] = {}


def forged_more_words(document: Document) -> None:
    document["read"]["words"]["town"] = [*document["read"]["words"]["town"], "Rom"]


def left_out(*names: str) -> Callable[[Document], None]:
    def forge(document: Document) -> None:
        document["read"]["left_out"] = list(names)

    return forge


def field(name: str, value: object) -> Callable[[Document], None]:
    def forge(document: Document) -> None:
        document["read"][name] = value

    return forge


FORGED: dict[str, Callable[[Document], None]] = {
    "words removed": forged_words,
    "a word more": forged_more_words,
    "town left out": left_out("key", "town"),
    "a number left out": left_out("key", "z"),
    "what is not there left out": left_out("key", "zz"),
    "the label": field("label", "z"),
    "an unknown field": field("rest", []),
    "a recipe of nothing": field("recipe", None),
}
FORGED_BY_RULES_2: dict[str, Callable[[Document], None]] = {
    "the key not left out": left_out(),
    "no left_out": lambda document: document["read"].pop("left_out"),
    "no kept": lambda document: document["read"].pop("kept"),
    "a number kept": field("kept", ["x"]),
    "kept, and left out": field("kept", ["key"]),
    "a center": lambda document: document["scaling"].update(center={}),
    "no reading": lambda document: document.update(read=None),
}


@pytest.mark.parametrize("rules", [1, 2, 3])
@pytest.mark.parametrize("what", [*FORGED, *FORGED_BY_RULES_2])
def test_a_reading_that_the_file_does_not_give_is_refused(table: Path, tmp_path: Path, what: str, rules: int) -> None:
    if rules == 1 and what in FORGED_BY_RULES_2:
        return
    document = stated(table, rules)
    (FORGED | FORGED_BY_RULES_2)[what](document)
    word, why = judged(written(tmp_path, document, (table / "r.cert.npz").read_bytes()), table / "d.csv")
    assert word == "rejected", why


def test_a_table_without_its_strongest_column_is_another_problem(table: Path, tmp_path: Path) -> None:
    """The forgery of issue 57: solved without a column, which then is said to tell rows apart."""
    rows = list(csv.reader((table / "d.csv").open(encoding="utf-8")))
    for gone in ("town", "x"):
        k = rows[0].index(gone)
        with (tmp_path / "less.csv").open("w", newline="", encoding="utf-8") as stream:
            csv.writer(stream).writerows([row[:k] + row[k + 1 :] for row in rows])
        mipfs.solve(mipfs.Problem(mipfs.read(tmp_path / "less.csv", scale="standard"), M=2, C=1.0)).save(
            tmp_path / "l.json"
        )
        for rules in (1, 2):
            document = by_rules(json.loads((tmp_path / "l.json").read_text(encoding="utf-8")), rules)
            path = written(tmp_path, document, (tmp_path / "l.cert.npz").read_bytes())
            assert judged(path, tmp_path / "less.csv")[0] == "accepted"
            document["read"]["left_out"] = ["key", gone]
            assert judged(written(tmp_path, document), table / "d.csv")[0] == "rejected"


TABLES = {
    "words and gaps": (
        "\ufeffid;town;x;label;w\n1;Ulm;1,5;1;a\n2;\"Bo\nnn\";NA;0;b\n\n3; Jena ;2,5;1;a\n4;?;-1e1;0;b\n5;Ulm;4;1;c\n",
        {"impute": "level"},
    ),
    "row numbers and comments": (
        "# made by hand\n# Unnamed: 0,a,b,label \n0,1,2,-1\n1,3,4,1\n# no, record\n2,0,1,-1\n3,2,2,1\n", {},
    ),
    "types": (
        "a\tb\tc\td\tlabel\n1.234,5\t$ 1,200.50\t12 %\t2024-02-29\tx\n-7\t(30)\t5%\t1.3.2023\ty\n"
        "0,25\t-€2\t0.5\t2020-01-01T12:30:00+01:00\tx\n,5\tUSD 7\t1%\t31.12.1969\ty\n",
        {"types": {"a": "decimal comma", "b": "currency", "c": "percent", "d": "date"}},
    ),
    "drop and most frequent": (
        "a,b,c,bag,sample_weight,label\n1,u,3,q,1,1\n,v,4,q,2,0\n1,,5,p,0.5,1\n2,v,6,r,1,0\n",
        {"impute": "most frequent", "drop": ["c"]},
    ),
    "use and median": (
        "a,b,c,label\n1,2,3,1\n,4,4,0\n3,6,5,1\n4,8,6,0\n10,9,9,1\n",
        {"impute": {"a": "median"}, "use": ["a", "c"]},
    ),
}  # fmt: skip


@pytest.mark.sampled(3)
@pytest.mark.parametrize("what", TABLES)
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_a_table_has_the_digest_that_the_package_gives_it(tmp_path: Path, what: str, ends: str) -> None:
    text, options = TABLES[what]
    path = tmp_path / "t.csv"
    path.write_bytes(text.replace("\n", ends).encode("utf-8"))
    result = mipfs.solve(mipfs.Problem(mipfs.read(path, **options), M=1, C=1.0))  # type: ignore[arg-type]
    document = by_rules(json.loads(result.to_json()), 5)
    known = second.Source(path).data(document)
    assert known.sha256() == document["data_sha256"]
    word, said = second.guarded(document | {"certificate": result.claim.entry()}, arrays(result), known)  # type: ignore[union-attr]
    assert word == "accepted", said


def arrays(result: Any) -> Any:
    return two_checkers.arrays_of(result.claim.arrays())


def test_a_recipe_that_fills_or_drops_otherwise_is_refused(tmp_path: Path) -> None:
    text, options = TABLES["drop and most frequent"]
    path = tmp_path / "t.csv"
    path.write_text(text, encoding="utf-8")
    result = mipfs.solve(mipfs.Problem(mipfs.read(path, **options), M=1, C=1.0))  # type: ignore[arg-type]
    document = by_rules(json.loads(result.to_json()), 5) | {"certificate": result.claim.entry()}  # type: ignore[union-attr]
    for key, value in (
        ("filled", {"a": 2.0, "b": "v"}), ("missing", {"a": 1}), ("drop", []), ("drop", ["label"]), ("drop", ["zz"]),
        ("impute", {"*": "level"}), ("impute", {}), ("types", {"a": "percent"}), ("use", ["a", "b"]), ("use", None, ),
    ):  # fmt: skip
        forged = json.loads(json.dumps(document))
        same = forged["read"]["recipe"][key] == value
        forged["read"]["recipe"][key] = value

        def check(forged: Document = forged) -> Any:
            return second.check(forged, arrays(result), second.Source(path).data(forged))

        assert (second.verdict_of(check)[0] == "accepted") == same, (key, value)


@pytest.mark.parametrize("word", ["1" + 400 * "0", "-1" + 309 * "0", "1e999", "NaN", "-Infinity"])
def test_numbers_beyond_doubles_are_no_document_wherever_they_stand(table: Path, tmp_path: Path, word: str) -> None:
    path = written(tmp_path, stated(table), (table / "r.cert.npz").read_bytes())
    text = path.read_text(encoding="utf-8")
    assert '"seconds": ' in text
    path.write_text(text.replace('"seconds": ', f'"seconds": {word}, "was": ', 1), encoding="utf-8")
    assert judged(path, table / "d.csv")[0] == "rejected"
    assert "the JSON has" in judged(path, table / "d.csv")[1]


@pytest.mark.parametrize("word", ["1e400", "-1e999", "9" * 400])
def test_a_number_beyond_doubles_is_no_document(table: Path, tmp_path: Path, word: str) -> None:
    """In the history of a run, too."""
    path = written(tmp_path, stated(table), (table / "r.cert.npz").read_bytes())
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('"seconds":', f'"seconds": {word}, "found":', 1), encoding="utf-8")
    verdict, why = judged(path, table / "d.csv")
    assert (verdict, "beyond doubles" in why) == ("rejected", True)
