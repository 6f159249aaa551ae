"""Whole documents as the command line writes them: tables, paths, several classes and cards, each with its data.

`base(kind, k)` is the k-th honest one; `verdicts` puts a document, changed or not, before both checkers as files.
"""

from __future__ import annotations

import copy
import csv
import hashlib
import io
import json
import random
import tempfile
import warnings
import zipfile
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from mipfs.cli import main as command

Json = dict[str, Any]
Members = dict[str, bytes]
KINDS = ("table", "path", "classes", "card")
BASES = 40
"""Honest documents of each kind that are changed."""
QUIET = ["--quiet"]


@dataclass
class Base:
    """An honest document.

    Attributes
    ----------
    kind : one of `KINDS`
    folder : where its data lies
    text : of the CSV
    document : the JSON
    members : what the archive beside it holds: sidecars of a path or of classes, else arrays
    asked : the command that wrote it
    other : of a table, what was solved without one of its columns, and that column
    """

    kind: str
    folder: Path
    text: str
    document: Json
    members: Members
    asked: list[str]
    other: tuple[str, Json, Members] | None = None


@lru_cache(maxsize=1)
def room() -> tempfile.TemporaryDirectory[str]:
    """Where all of them lie until the process ends."""
    return tempfile.TemporaryDirectory(prefix="documents")


def table(rng: random.Random, classes: int) -> tuple[list[str], list[list[str]], dict[str, str]]:
    """A table with a key, words, numbers and gaps; names, rows, and what its columns hold."""
    n = rng.choice([24, 30, 44])
    kinds = {"key": "key", "town": "word", "a": "number", "b": "number", "c": "number", "rate": "percent"}
    for name, chance in (("key", 0.8), ("town", 0.7), ("c", 0.5), ("rate", 0.4)):
        if rng.random() > chance:
            del kinds[name]
    gaps = rng.choice([0.0, 0.0, 0.1])
    names = [name for name in kinds if rng.random() < 2]
    rng.shuffle(names)
    labels = rng.choice([["no", "yes", "maybe"], ["1", "0", "2"], ["lo", "hi", "mid"]])[:classes]
    rows = []
    for i in range(n):
        town, a, b = rng.choice(["Ulm", "Bonn", "Jena"]), rng.gauss(0, 1), rng.gauss(0, 1)
        good = a + 0.8 * (town == "Ulm") - 0.6 * b + rng.gauss(0, 0.4)
        label = labels[(good > 0.2) + (classes > 2 and good > 1.0)]
        cells = {
            "key": f"k{i:03d}", "town": town, "a": f"{a:.2f}", "b": f"{10 + 3 * b:.1f}", "c": str(rng.randrange(5)),
            "rate": f"{rng.randrange(100)}%",
        }  # fmt: skip
        own = [cells[name] for name in names]
        own = ["" if rng.random() < gaps and name != "key" else cell for name, cell in zip(names, own, strict=True)]
        rows.append([*own, label])
    for i, label in enumerate([*labels, *labels, *labels, *labels]):
        rows[i][-1] = label
    role = rng.choice(["label", "label", "good"])
    if rng.random() < 0.25:
        rows = [[*row, rng.choice(["0.5", "1", "2"])] for row in rows]
        return [*names, role, "sample_weight"], rows, kinds
    return [*names, role], rows, kinds


def options(rng: random.Random, header: list[str], rows: list[list[str]], kinds: dict[str, str]) -> list[str]:
    """How the table is read, for the command line."""
    found = ["--label", "good"] if "good" in header else []
    if any("" in row for row in rows):
        found += ["--impute", rng.choice(["median", "most frequent", "level"])]
    if "rate" in kinds:
        found += ["--types", "rate=percent"]
    turn = rng.random()
    if turn < 0.2:
        found += ["--drop", "b"]
    elif turn < 0.3 and "town" in kinds and "rate" not in kinds:
        found += ["--use", "town,a"]
    elif turn < 0.4 and "key" in kinds:
        found += ["--words", "key"]
    return [*found, "--scale", rng.choice(["none", "standard", "unit"])]


def few(asked: list[str], kinds: dict[str, str], most: int) -> int:
    """An M that is there and that the reference can enumerate: keys that are kept are many features."""
    there = len(kinds) - ("key" in kinds) - ("--drop" in asked)
    return 1 if "--words" in asked else min(most, there)


def written(folder: Path, name: str, *words: str) -> None:
    """What a command writes as NAME.json in a folder."""
    said = io.StringIO()
    with warnings.catch_warnings(), redirect_stdout(said), redirect_stderr(said):
        warnings.simplefilter("ignore")
        code = command([*words, "--json", str(folder / f"{name}.json"), *QUIET])
    if code != 0:
        raise RuntimeError(f"{words}: {said.getvalue()}")


def loaded(folder: Path, name: str) -> tuple[Json, Members]:
    """A document and the members of its archive."""
    document = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    return document, unpacked((folder / f"{name}.cert.npz").read_bytes())


def unpacked(content: bytes) -> Members:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(members: Members) -> bytes:
    """A zip file of these."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return stream.getvalue()


@lru_cache(maxsize=4 * BASES)
def base(kind: str, k: int) -> Base:
    """The k-th honest document of a kind."""
    rng = random.Random(f"{kind} {k}")
    folder = Path(room().name) / f"{kind}{k}"
    folder.mkdir()
    header, rows, kinds = table(rng, 3 if kind == "classes" else 2)
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows([header, *rows])
    (folder / "d.csv").write_text(stream.getvalue(), encoding="utf-8", newline="")
    asked = options(rng, header, rows, kinds)
    data, loss = str(folder / "d.csv"), rng.choice(["hinge", "hinge", "squared-hinge", "logistic"])
    problem = ["-p", f"loss={loss}", *(["-p", "bias=false"] if rng.random() < 0.25 else [])]
    other = None
    if kind == "path":
        written(folder, "r", "path", data, *asked, *problem, *_axis(rng, folder, asked, kinds))
    else:
        C, most = rng.choice(["0.1", "1", "10"]), few(asked, kinds, rng.choice([1, 2, 3]))
        shared = ["--shared-support"] if kind == "classes" and rng.random() < 0.5 else []
        weighted = ["-p", "class_weight=balanced"] if rng.random() < 0.2 else []
        rest = [*problem, *weighted, *shared, "-p", f"M={most}", "-p", f"C={C}"]
        listed = ["--pool-gap", "0.1"] if kind == "table" and rng.random() < 0.2 else []
        written(folder, "r", "solve", "fsp-m", data, *asked, *rest, *listed)
        if kind == "table" and "--drop" not in asked and "--use" not in asked and most < few(asked, kinds, 9):
            written(folder, "o", "solve", "fsp-m", data, *asked, "--drop", "a", *rest)
            other = ("a", *loaded(folder, "o"))
    if kind == "card":
        (folder / "r.json").rename(folder / "s.json")
        bins = ["--bins", rng.choice(["0", "2", "3"]), "--points", rng.choice(["2", "3"]), "--gap", "0.01"]
        written(folder, "r", "scorecard", str(folder / "s.json"), data, *bins, "--time-limit", "2")
    return Base(kind, folder, stream.getvalue(), *loaded(folder, "r"), asked, other)


def _axis(rng: random.Random, folder: Path, asked: list[str], kinds: dict[str, str]) -> list[str]:
    """What a path goes along, and its folds."""
    most = few(asked, kinds, 2)
    found = {
        "M": ["--M", f"1:{most}", "-p", "C=1"],
        "C": ["--C", "0.1,1", "-p", f"M={most}"],
        "C,M": ["--M", f"1:{most}", "--C", "0.1,1"],
        "lambda": ["--lambda", "0.1,1", "-p", f"M={most}", "-p", "C=1"],
        "rows": ["--rows", str(folder / "rows.lp"), "-p", f"M={most}", "-p", "C=1"],
    }[rng.choice(["M", "C", "C,M", "lambda", "rows"])]
    if "--rows" in found:
        terms = "a + b" if "--drop" not in asked and "--use" not in asked else "a"
        lines = f"Subject To\n r1: {terms} <= 1\n r2: a >= 1\nEnd\n"
        (folder / "rows.lp").write_text(lines, encoding="utf-8")
    if rng.random() < 0.75:
        found += ["--folds", "3", *(["--one-se"] if rng.random() < 0.4 and "--rows" not in found else [])]
    return found


# --- what stands beside --------------------------------------------------------------------------------------


def signed(kind: str, document: Json, members: Members) -> bytes:
    """Put the digests of these members in a document; returns the archive."""
    content = packed(members)
    if kind in ("path", "classes"):
        results = [point["result"] for point in document["points"]] if kind == "path" else list(proofs(document))
        for k, result in enumerate(results):
            member = members.get(f"{k}.cert.npz")
            if isinstance(result.get("certificate"), dict) and member is not None:
                result["certificate"]["sha256"] = hashlib.sha256(member).hexdigest()
        if kind == "path":
            document["certificate"]["sha256"] = hashlib.sha256(content).hexdigest()
        else:
            document["certificate"] = copy.deepcopy(results[0]["certificate"])
        return content
    result = document["result"] if kind == "card" else document
    result["certificate"]["sha256"] = hashlib.sha256(content).hexdigest()
    if kind == "card" and "sha256" in document:
        sign_card(document)
    return content


def sign_card(document: Json) -> None:
    """The digest of a card's own text."""
    rest = {name: value for name, value in document.items() if name != "sha256"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    document["sha256"] = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def proofs(document: Json) -> list[Json]:
    """The results of several classes that have proofs."""
    return [document["together"]] if document["shared_support"] else document["results"]


# --- before the checkers -------------------------------------------------------------------------------------


def put(found: Base, document: Json, content: bytes) -> Path:
    """Write a document and its archive beside the data."""
    folder = found.folder / "changed"
    folder.mkdir(exist_ok=True)
    (folder / "r.json").write_text(json.dumps(document), encoding="utf-8")
    (folder / "r.cert.npz").write_bytes(content)
    return folder / "r.json"


def first(path: Path, data: Path) -> tuple[str, str]:
    """ "accepted", "rejected" or "unusable", with all that the command says of it; a traceback is raised."""
    said = io.StringIO()
    with warnings.catch_warnings(), redirect_stdout(said), redirect_stderr(said):
        warnings.simplefilter("ignore")
        code = command(["verify", str(path), str(data)])
    return {0: "accepted", 1: "rejected"}.get(code, "unusable"), said.getvalue()


def predicted(path: Path, data: Path, place: str = "") -> list[str] | str:
    """The labels that the package gives the rows by a document, or why it gives none."""
    said, errors = io.StringIO(), io.StringIO()
    with warnings.catch_warnings(), redirect_stdout(said), redirect_stderr(errors):
        warnings.simplefilter("ignore")
        code = command(["predict", f"{path}{place}", str(data)])
    return said.getvalue().splitlines() if code == 0 else errors.getvalue()
