"""What is fuzzed: for every reader some small valid folders, what reads one, and what its answer must satisfy.

A folder is a mapping of file names to contents. The seeds are files that the package itself wrote, and short ones
written here; `sealed` mends the checksums that a mutation broke, so that what lies behind them is met too.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import math
import os
import random
import shutil
import tempfile
import warnings
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import mipfs
from mipfs.convert import convert
from mipfs.data.instance import Instance
from mipfs.errors import MipfsError
from tests import mutations

Files = Mapping[str, bytes]
KEPT = Path(__file__).with_name("kept_results") / "0.1.0"
SVM = b"+1 1:1 2:0.5\n-1 1:-1 2:0.25 # why\n+1 1:2 2:1 3:1e-3\n\n-1 1:-2\n"
QID = b"+1 qid:7 1:1 2:0.5\n-1 qid:7 1:-1 2:0.25\n+1 qid:2 1:2\n-1 qid:2 3:-2.5e-1\n"
RAW = (
    b'"id","when","price, net","share",kind,weight_kg,sick\n1,2024-02-29,"$1,234.50",5%,red,3.5,yes\n'
    b'2,2023-12-31,"$2.00",7.5%,blue,NA,no\n3,2020-01-01,"$0.01",,red,1,no\n4,2021-07-04,"$9.99",1%,"a ""b""",2,yes\n'
)
RAW_TOML = (
    b'[data]\nlabel = "sick"\npositive = "yes"\ndrop = ["id"]\nimpute = { share = "median", weight_kg = "level" }\n'
    b'types = { when = "date", "price, net" = "currency", share = "percent" }\nscale = "standard"\n'
    b'class_weight = { yes = 2 }\nsource = "made"\n'
)
RICH_TOML = (
    b'[data]\nlabel = "sick"\npositive = "yes"\nscale = "unit"\n[cost]\na = 1\nb = 2.5\n[penalty]\nb = 0.25\n'
    b'[groups]\nones = ["a", "b"]\n[weights]\nnonnegative = ["a"]\nbounds = { c = [-1, 0.5] }\nbox = 10\n'
    b'[select]\nM = 3\nbudget = 6\nforced_in = ["a"]\nforced_out = ["e"]\nimplies = [["a", "b"]]\n'
    b'conflicts = [["c", "d"]]\nat_most = [{ k = 2, of = ["c", "d", "e"] }]\nat_least = [{ k = 1, of = ["a", "b"] }]\n'
)
LP = (
    b"\\ rows\nminimize\n obj: 0 x1\nsubject to\n budget: 2 a + 3 b - x3 <= 4\n two: -1 <= a + d <= 1.5\n"
    b" more: extra_t - 2 a >= -1e-3\nbounds\n -1 <= extra_t <= 7\n e <= 0\ngeneral\n extra_t\nbinary\n extra_b\nend\n"
)
SMALL_CSV = b"a,b,label\n1,2,x\n3,4,y\n0,1,y\n"
LIMITS = {"time_limit": 2.0}


def _nothing(_folder: Path, _value: Any, _seed: Files) -> str:
    return ""


def _as_they_are(files: Files) -> Files:
    return files


@dataclass(frozen=True)
class Target:
    """One reader.

    Attributes
    ----------
    seeds : callable, gives valid folders by name
    read : callable, reads a folder as a user would, and uses what it read
    wrong : callable, of a folder, what was read and the seed, what is wrong with the answer; "" for nothing
    sealed : callable, gives the folder with its checksums mended
    mutates : whether a file of that name is mutated
    weight : its share of the inputs
    named : whether a message must name one of the files
    """

    seeds: Callable[[], Mapping[str, Files]]
    read: Callable[[Path], Any]
    wrong: Callable[[Path, Any, Files], str] = _nothing
    sealed: Callable[[Files], Files] = _as_they_are
    mutates: Callable[[str], bool] = field(default=lambda name: True)
    weight: int = 1
    named: bool = True


# --- data ----------------------------------------------------------------------------------------------------


def kept(*names: str, **others: str) -> dict[str, bytes]:
    """Files of the kept results, by their own names or others."""
    found = {name: (KEPT / name).read_bytes() for name in names}
    return found | {to.replace("__", "."): (KEPT / name).read_bytes() for to, name in others.items()}


def _packed(text: bytes, name: str) -> dict[str, bytes]:
    import bz2
    import gzip

    return {
        "gz": {f"{name}.gz": gzip.compress(text, mtime=0)},
        "bz2": {f"{name}.bz2": bz2.compress(text)},
    }


def svmlight_seeds() -> dict[str, Files]:
    """Plain, with comments, with bags, compressed."""
    sparse_file = kept("sparse.svm")["sparse.svm"]
    return {"sparse": {"d.svm": sparse_file}, "comments": {"d.svm": SVM}, "bags": {"d.svm": QID},
            "names": {"d.svm": SVM, "names.txt": b"one\ntwo\nthree\n"}} | _packed(SVM, "d.svm")  # fmt: skip


def csv_seeds() -> dict[str, Files]:
    """A table of numbers, one of words, a raw one with its recipe, compressed ones."""
    found: dict[str, Files] = {
        "numbers": kept(d__csv="table.csv", d__toml="table.toml"),
        "words": kept(d__csv="words.csv"),
    }
    return found | {"raw": {"d.csv": RAW, "d.toml": RAW_TOML}, **_packed(SMALL_CSV, "d.csv")}


def toml_seeds() -> dict[str, Files]:
    """Everything that a description may hold."""
    table = kept(d__csv="table.csv")
    names = b'[features]\nnames = ["a", "b c", "d"]\n[cost]\n"b c" = 1\n'
    return {
        "rich": {**table, "d.toml": RICH_TOML},
        "raw": {"d.csv": RAW, "d.toml": RAW_TOML},
        "names": {"d.svm": SVM, "d.toml": names},
    }


def npz_bytes(**arrays: Any) -> bytes:
    """An .npz, always the same bytes."""
    members = []
    for name, value in arrays.items():
        stream = io.BytesIO()
        np.save(stream, np.asarray(value), allow_pickle=False)
        members.append((f"{name}.npy", stream.getvalue()))
    return mutations.packed_as(members)


def npz_seeds() -> dict[str, Files]:
    """Dense, sparse of every format, with labels inside and beside."""
    X = np.array([[1, 0, 0.5], [0, -1, 0], [2, 0, 0], [0, -2, 0.25], [1, 1, 0], [-1, -1, 0]])
    y = np.array([1, -1, 1, -1, 1, -1])
    own = {"feature_names": np.array(["a", "b c", "d"]), "bag": np.array([1, 1, 2, 2, 3, 3])}
    found: dict[str, Files] = {"dense": {"d.npz": npz_bytes(X=X, y=y, **own, sample_weight=np.ones(6))}}
    for kind in ("csr", "csc", "coo", "bsr", "dia"):
        stream = io.BytesIO()
        sparse.save_npz(stream, sparse.csr_array(X).asformat(kind))
        with np.load(io.BytesIO(stream.getvalue())) as loaded:
            found[kind] = {"d.npz": npz_bytes(**dict(loaded), y=y)}
    stream = io.BytesIO()
    np.save(stream, np.array(["no", "yes"])[(y > 0).astype(int)])
    beside = {"y.npy": stream.getvalue(), "names.txt": "één\nb\nc d\n".encode()}
    return {**found, "beside": {"d.npz": npz_bytes(X=X.astype("f4")), **beside}}


def parquet_seeds() -> dict[str, Files]:
    """Numbers, words, dates and missing values."""
    import pyarrow
    import pyarrow.parquet

    def of(**columns: Any) -> bytes:
        stream = io.BytesIO()
        pyarrow.parquet.write_table(pyarrow.table(columns), stream, compression="none")
        return stream.getvalue()

    small = of(a=[1.5, 2, 3, 4], b=[1, 0, 0, 1], label=[1, -1, 1, -1])
    words = of(kind=["red", "blue", "red", "x"], c=[1.0, None, 2.0, 3.0], label=["y", "n", "y", "n"])
    return {"numbers": {"d.parquet": small}, "words": {"d.parquet": words, "d.toml": b'[data]\nimpute = "median"\n'}}


MOST_COMPARED = 1000
"""Columns of a table that are compared."""
DATA_NAMES = ("d.svm", "d.csv", "d.npz", "d.parquet", "d.svm.gz", "d.svm.bz2", "d.csv.gz", "d.csv.bz2", "d")


def read_data(folder: Path) -> Instance:
    """The data file of a folder, and everything of it that is lazy."""
    place = next(folder / name for name in DATA_NAMES if (folder / name).exists())
    data = mipfs.read(place)
    _looked_at(data)
    return data


def _looked_at(data: Instance) -> None:
    values = data.X[:, np.arange(data.n_features)]
    assert values.shape == (data.n_samples, data.n_features), "its matrix has another shape"
    held = values.data if data.is_sparse else np.asarray(values)
    assert np.isfinite(held).all(), "its values are not finite"
    assert set(np.unique(data.y)) <= {-1.0, 1.0}, "its labels are no signs"
    seen = data.feature_names[: 10**6]  # of a hundred million columns the names alone would take minutes
    assert len(set(seen)) == len(seen) == min(data.n_features, 10**6), "its names are not unique"
    assert len(repr(data).splitlines()) == 1, "its repr has several lines"
    assert data.sha256


def wrong_svmlight(folder: Path, data: Instance, _seed: Files) -> str:
    """Where a naive reading of the text gives other numbers, or the chunks of `convert` do."""
    place = next(folder / name for name in DATA_NAMES if (folder / name).exists())
    text = mutations.unpacked(place.read_bytes())[0].decode("utf-8-sig", "replace")
    rows, labels = [], []
    for line in text.split("\n"):
        tokens = line.partition("#")[0].split()
        if tokens:
            labels.append(float(tokens[0]))
            pairs = (token.split(":") for token in tokens[1:] if not token.startswith("qid:"))
            rows.append({int(index): float(value) for index, value in pairs})
    if data.X.shape[0] != len(rows) or [label == max(labels) for label in labels] != (data.y > 0).tolist():
        return "other samples or labels than a naive reading"
    naive = {(i, j - 1): value for i, row in enumerate(rows) for j, value in row.items() if value != 0.0}
    X = data.X.tocoo() if data.is_sparse else sparse.coo_array(np.asarray(data.X))
    held = {(i, j): v for i, j, v in zip(X.row.tolist(), X.col.tolist(), X.data.tolist(), strict=True) if v != 0.0}
    if naive != held:
        return "other values than a naive reading"
    return _converted(folder, place, data)


def wrong_table(folder: Path, data: Instance, _seed: Files) -> str:
    """Where the csv module finds other numbers, or the chunks of `convert` do."""
    place = next(folder / name for name in DATA_NAMES if (folder / name).exists())
    if place.name == "d.csv" and not (folder / "d.toml").exists():
        text = place.read_bytes().decode("utf-8-sig")
        head = text.split("\n")[0]
        if '"' not in text and "#" not in text and "\r" not in text:
            separator = next((one for one in ",;\t|" if one in head), ",")
            header, *rows = [row for row in csv.reader(io.StringIO(text), delimiter=separator) if any(row)]
            places = {name: j for j, name in enumerate(data.feature_names)}
            for k, name in enumerate(header[:MOST_COMPARED]):
                if (j := places.get(name)) is None:
                    continue
                column = data.X[:, [j]].toarray() if data.is_sparse else np.asarray(data.X)[:, [j]]
                if [float(row[k]) for row in rows] != column.ravel().tolist():
                    return f"other values of {name!r} than the csv module finds"
    return _converted(folder, place, data)


def _converted(folder: Path, place: Path, data: Instance) -> str:
    """The data once more by the other way, in pieces; one time in eight, by the contents."""
    if zlib.crc32(place.read_bytes()) % 8:
        return ""
    store = convert(place, folder / "store", block=1, memory=16)
    again = mipfs.read(store)
    same = again.sha256 == data.sha256 and np.array_equal(again.y, data.y)
    names = list(again.feature_names) == list(data.feature_names)
    shutil.rmtree(store)
    return "" if same and names else "a column store of it holds other data"


# --- rows ----------------------------------------------------------------------------------------------------


@cache
def table() -> Instance:
    """The kept table, five features."""
    return mipfs.read(KEPT / "table.csv", scale="standard")


def read_lp(folder: Path) -> Any:
    """Rows over the kept table."""
    from mipfs.readers.lp_rows import read_rows

    return read_rows(folder / "rows.lp", table())


def wrong_rows(_folder: Path, rows: Any, _seed: Files) -> str:
    """Rows that are no numbers, or that the problem cannot take."""
    if not np.isfinite(rows.matrix.data).all() or np.isnan(rows.lb).any() or np.isnan(rows.ub).any():
        return "rows that are no numbers"
    return ""


# --- results -------------------------------------------------------------------------------------------------

PLAIN = (
    *("hinge", "standard", "unit", "logistic", "words", "penalties", "list", "signs", "relaxed", "measure", "stopped"),
    *("infeasible", "variables", "derived", "groups", "tree", "norms", "products", "functions", "rho", "best-three"),
)
"""The kept results that are mutated."""


def data_name(name: str) -> str:
    """The kept data file that a kept result is of."""
    entry = json.loads((KEPT / "kept.json").read_text(encoding="utf-8"))[name]
    return str(entry["data"])


def result_seeds() -> dict[str, Files]:
    """Results of every kind, with their certificates and data."""
    return {name: kept(data_name(name), "table.toml", r__json=f"{name}.json", r__cert__npz=f"{name}.cert.npz")
            for name in PLAIN}  # fmt: skip


def sealed_result(files: Files) -> Files:
    """The digest in the JSON is that of the sidecar."""
    return _sealed_pair(files, "r.json", "r.cert.npz")


def _sealed_pair(files: Files, name: str, sidecar: str) -> Files:
    try:
        document = json.loads(files[name])
        document["certificate"] |= {"sha256": hashlib.sha256(files[sidecar]).hexdigest(), "file": sidecar}
        return {**files, name: json.dumps(document).encode("utf-8", "surrogatepass")}
    except (ValueError, KeyError, TypeError, RecursionError):
        return files


def read_result(folder: Path) -> Any:
    """A result and everything that is done with one but for its proof."""
    from mipfs.lab import page
    from mipfs.lab.studies import reading
    from mipfs.result.result import Result

    result = reading.load(folder / "r.json")
    _shown(result, folder)
    if isinstance(result, Result):
        again = Result.from_json(result.to_json())
        assert again.to_json() == result.to_json(), "it is not the same after it was written and read"
        if result.has_classifier:
            from mipfs.readers import read_new
            from mipfs.result.prediction import classifier_inputs

            used, n_features = classifier_inputs(result)
            data = next(path for path in folder.iterdir() if path.name in ("table.csv", "words.csv", "sparse.svm"))
            new = read_new(data, names=used, remembered=result.label_column, recipe=result.recipe,
                           n_features=n_features if data.suffix == ".svm" else None)  # fmt: skip
            assert len(result.predict(new)) == new.n_samples
    assert len(page.html([page.Item("r", result)])) > 1000
    return result


def _shown(found: Any, _folder: Path) -> None:
    """What is printed obeys nobody."""
    from mipfs.report.blocks import as_html, as_text

    assert len(repr(found).splitlines()) == 1, "its repr has several lines"
    text = found.summary() if hasattr(found, "summary") else as_text(found.blocks())
    assert all(one.isprintable() or one == "\n" for one in text), "its summary holds control characters"
    assert "<script>alert" not in as_html(found.blocks())


def verify_result(folder: Path) -> Any:
    """The verdict on a result; what it is about."""
    from mipfs.result.result import Result

    result = Result.load(folder / "r.json")
    scale = json.loads((folder / "r.json").read_text("utf-8"))["scaling"]["kind"]
    data = next(path for path in folder.iterdir() if path.name in ("table.csv", "words.csv", "sparse.svm"))
    instance = _read_once(data.name, scale)
    report = mipfs.verify(result, instance)
    assert "\n" not in report.reason, "the reason has several lines"
    assert bool(report.reason) != report.accepted
    return report, result, instance


@cache
def _read_once(name: str, scale: Any) -> Instance:
    return mipfs.read(KEPT / name, scale=scale)


def wrong_verdict(folder: Path, found: Any, seed: Files) -> str:
    """A claim that is accepted and false, by enumeration; or by the honest result, where nothing enumerates."""
    from tests.certificate.truth import lies

    report, result, data = found
    if not report.accepted:
        return ""
    document, honest = json.loads((folder / "r.json").read_text("utf-8")), json.loads(seed["r.json"])
    stated = document.get("atoms") or {}
    if "made" in stated or document["params"].get("weight_bounds") or honest["status"] == "RELAXED":
        return _by_the_honest(document, honest)
    assert result is not None
    return "; ".join(lies(document, honest, data))


def _by_the_honest(document: Mapping[str, Any], honest: Mapping[str, Any]) -> str:
    same = all(document["params"].get(name) == honest["params"].get(name) for name in honest["params"])
    if not same or document["rows"] != honest["rows"] or document.get("atoms") != honest.get("atoms"):
        return ""  # another problem, whose optimum nobody knows
    bound, best = document["bound"], honest["objective"]
    best = honest["relaxed"]["upper"] if best is None and honest["relaxed"] else best
    if bound is not None and best is not None and bound > best * (1 + math.copysign(1e-6, best)):
        return f"the bound {bound} lies above the value {best} of the honest result"
    return ""


# --- studies -------------------------------------------------------------------------------------------------


def study_seeds() -> dict[str, Files]:
    """A path with its certificates, a ladder, and a path in which folds have chosen."""
    return {
        "path": kept(r__json="path.json", r__cert__npz="path.cert.npz"),
        "compare": kept(r__json="compare.json"),
    } | {"folds": _made("folds", ("path", "table.csv", "--M", "1:2", "--C", "1", "--folds", "2", "--json", "r.json"))}


def read_study(folder: Path) -> Any:
    """A path or a ladder, its report and its page."""
    from mipfs.lab import page
    from mipfs.lab.studies import reading
    from mipfs.result import documents

    found = reading.load(folder / "r.json")
    _shown(found, folder)
    assert len(page.html([page.Item("r", found)])) > 1000
    if hasattr(found, "points") and found.points:
        documents.load(f"{folder / 'r.json'}#M={found.points[0].result.params['M']}")
    return found


def point_seeds() -> dict[str, Files]:
    """A path with its certificates."""
    return {"path": kept(r__json="path.json", r__cert__npz="path.cert.npz")}


def read_point(folder: Path) -> Any:
    """A point of a path by its name, which reads no other."""
    from mipfs.result import documents

    found = documents.load(f"{folder / 'r.json'}#C=1,M=2")
    _shown(found, folder)
    return found


def bench_seeds() -> dict[str, Files]:
    """A small benchmark."""
    return {"bench": kept(b__json="bench.json")}


def read_bench(folder: Path) -> Any:
    """A benchmark read back and reported as `mipfs bench --resume` does."""
    from mipfs.lab.studies import bench_reading
    from mipfs.lab.studies.bench import Bench

    names = _read_once("words.csv", "none").feature_names
    setting, records, complete = bench_reading.load(folder / "b.json", len(names))
    found = Bench(setting, names, records, not complete)
    _shown(found, folder)
    return found


def classes_seeds() -> dict[str, Files]:
    """One classifier against the rest for each of three classes."""
    r = np.random.default_rng(3)
    lines = [f"{r.normal() + 2 * (k == 0):.3f},{r.normal() + 2 * (k == 1):.3f},{'abc'[k]}" for k in (0, 1, 2) * 5]
    data = {"d.csv": ("u,v,label\n" + "\n".join(lines) + "\n").encode()}
    made = _made("classes", ("solve", "fsp-m", "d.csv", "-p", "M=1", "--json", "r.json"), data)
    return {"classes": made}


def read_classes(folder: Path) -> Any:
    """Classifiers of three classes, verified, and their predictions."""
    from mipfs.lab.classes.one_vs_rest import OneVsRest
    from mipfs.readers import read_new

    found = OneVsRest.load(folder / "r.json")
    _shown(found, folder)
    data = mipfs.readers.read_classes(folder / "d.csv", {})
    reports = found.verify(data)
    new = read_new(folder / "d.csv", names=tuple(data[0].feature_names), label=None, remembered="label")
    assert len(found.predict(new)) == new.n_samples
    return reports


def card_seeds() -> dict[str, Files]:
    """A card of points."""
    made = _made("card", ("solve", "fsp-m", "table.csv", "-p", "M=2", "-p", "C=1", "--json", "r.json"))
    return {"card": _made("card points", ("scorecard", "r.json", "table.csv", "--json", "c.json"), made)}


def read_card(folder: Path) -> Any:
    """A card and its totals."""
    card = mipfs.read_scorecard(folder / "c.json")
    _shown(card, folder)
    data = _read_once("table.csv", "none")
    assert len(card.predict(data)) == data.n_samples
    return card


# --- what is gone on with ------------------------------------------------------------------------------------


@cache
def _made_cached(command: tuple[str, ...], data: tuple[tuple[str, bytes], ...]) -> dict[str, bytes]:
    from mipfs.cli import main

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, content in data:
            place = folder / file
            place.parent.mkdir(exist_ok=True)
            place.write_bytes(content)
        before = os.getcwd()
        os.chdir(folder)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                code = main([*command, "--quiet"])
        finally:
            os.chdir(before)
        assert code == 0, f"{command}: exit code {code}"
        return {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }


def _made(_name: str, command: tuple[str, ...], data: Files | None = None) -> dict[str, bytes]:
    """The folder after a command, which began with some files."""
    files = kept("table.csv", "table.toml", "sparse.svm", "words.csv") if data is None else data
    return dict(_made_cached(command, tuple(sorted(files.items()))))


SOLVES = {
    "branch": ("fsp-m", "sparse.svm", "-p", "M=3", "-p", "C=1"),
    "gbd": ("fsp-m", "sparse.svm", "-p", "M=3", "-p", "C=1", "--driver", "gbd"),
    "list": ("fsp-m", "sparse.svm", "-p", "M=3", "-p", "C=1", "--pool-size", "4"),
    "kelley": ("fgm", "sparse.svm", "-p", "M=3", "-p", "C=1"),
    "two_layer": ("structural", "sparse.svm", "-p", "measure=f1", "-p", "M=2", "-p", "C=10"),
}


def checkpoint_seeds() -> dict[str, Files]:
    """The state of each driver that keeps one, after an iteration."""
    found = {}
    for name, command in SOLVES.items():
        line = ("solve", *command, "-o", "iteration_limit=1", "--checkpoint", "s.npz", "--json", "r.json")
        files = _made(name, line, kept("sparse.svm"))
        found[name] = {file: files[file] for file in ("sparse.svm", "s.npz") if file in files}
    return {name: files for name, files in found.items() if "s.npz" in files}


def sealed_state(files: Files) -> Files:
    """The digest of the arrays mended."""
    from mipfs.readers.arrays import load_arrays
    from mipfs.result.state import RunState

    try:
        arrays = load_arrays(Path("s.npz"), files["s.npz"])
        driver, stamp, _, version, *began = json.loads(arrays.pop("about").tobytes())
        digest = RunState(driver, stamp, arrays).digest
    except (MipfsError, ValueError, TypeError, KeyError, AttributeError):
        return files
    about = np.frombuffer(json.dumps([driver, stamp, digest, version, *began]).encode(), dtype=np.uint8)
    return {**files, "s.npz": npz_bytes(about=about, **arrays)}


@cache
def _sparse() -> Instance:
    return mipfs.read(KEPT / "sparse.svm")


def resume_state(folder: Path) -> Any:
    """The run that a state is of, gone on with."""
    from mipfs.result.state import RunState

    state = RunState.load(folder / "s.npz")
    driver = state.driver
    listing = {"pool_size": 4} if any(name.startswith("listed_") for name in state.arrays) else {}
    problems = {
        "branch": lambda: mipfs.Problem(_sparse(), M=3, C=1.0),
        "gbd": lambda: mipfs.Problem(_sparse(), M=3, C=1.0),
        "kelley": lambda: mipfs.models.qcqp_relaxation(_sparse(), M=3, C=1.0),
        "two_layer": lambda: mipfs.models.structural_dual(_sparse(), measure="f1", M=2, C=10.0),
    }
    problem = problems.get(driver, problems["branch"])()
    return mipfs.solve(problem, driver=driver, resume=str(folder / "s.npz"), **LIMITS, **listing)


def wrong_resumed(_folder: Path, result: Any, _seed: Files) -> str:
    """A bound above what is known, or another list that is called complete, where the checker does not refuse it."""
    found = result.near_optimal
    if found is not None and found["complete"] and mipfs.verify(result, _sparse()).accepted:
        values = [one["objective"] for one in found["supports"]]
        if not np.allclose(values, _listed()[: len(values)], rtol=1e-6) or len(values) != len(_listed()):
            return f"a complete list of {values}, which are {_listed()}"
    best = {"branch": "branch", "gbd": "branch"}.get(result.driver)
    if best is None or not math.isfinite(result.bound):
        return ""
    if result.bound > _optimum() * (1 + 1e-6) and result.claim is not None and mipfs.verify(result, _sparse()).accepted:
        return f"the bound {result.bound} lies above the optimum {_optimum()}"
    return ""


@cache
def _listed() -> list[float]:
    found = mipfs.solve(mipfs.Problem(_sparse(), M=3, C=1.0), pool_size=4).near_optimal
    assert found is not None
    return [one["objective"] for one in found["supports"]]


@cache
def _optimum() -> float:
    return mipfs.solve(mipfs.Problem(_sparse(), M=3, C=1.0)).objective


def points_seeds() -> dict[str, Files]:
    """The points that a path has kept."""
    line = ("path", "table.csv", "--M", "1:2", "-p", "C=1", "--scale", "standard", "--checkpoint", "p.points")
    files = _made("points", (*line, "--json", "r.json"))
    return {"points": {"p.points": files["p.points"]}}


def sealed_points(files: Files) -> Files:
    """The digest of every line mended."""
    from mipfs.plumbing.digest import digest

    parts = (line.partition(b" ")[2] for line in files["p.points"].split(b"\n") if line)
    return {"p.points": b"".join(digest([body]).encode() + b" " + body + b"\n" for body in parts)}


def read_points(folder: Path) -> Any:
    """A path that goes on with what was kept."""
    from mipfs.lab.studies import point_store

    place = folder / "p.points"
    point_store.is_store(place)
    point_store.began_of(place)
    problem = mipfs.Problem(table(), M=1, C=1.0)
    return mipfs.path(problem, M=[1, 2], resume=str(place), time_limit=5.0)


def wrong_points(_folder: Path, found: Any, _seed: Files) -> str:
    """A point whose bound lies above what a path finds by itself, where the checker accepts it."""
    for point in found.points:
        honest = _honest_points()[point.value]
        if point.bound > honest * (1 + 1e-6) and mipfs.verify(point.result, table()).accepted:
            return f"the bound {point.bound} lies above the optimum {honest}"
    return ""


@cache
def _honest_points() -> dict[Any, float]:
    found = mipfs.path(mipfs.Problem(table(), M=1, C=1.0), M=[1, 2])
    return {point.value: point.result.objective for point in found.points}


def store_seeds() -> dict[str, Files]:
    """Column stores: sparse, dense with words, and of a raw table."""
    found = {}
    data: dict[str, Files] = {"sparse": {"d.svm": QID}, "words": kept(d__csv="words.csv"), "raw": csv_seeds()["raw"]}
    for name, files in data.items():
        source = next(file for file in files if file != "d.toml")
        made = _made(name, ("convert", source, "s", "--block-size", "1", "--memory", "16"), files)
        found[name] = {file: content for file, content in made.items() if file.startswith("s/")}
    return found


def sealed_store(files: Files) -> Files:
    """Sizes and checksums in the manifest mended."""
    try:
        document = json.loads(files["s/manifest.json"])
        for name in document["files"]:
            content = files[f"s/{name}"]
            document["files"][name] = [len(content), zlib.crc32(content)]
        return {**files, "s/manifest.json": json.dumps(document).encode("utf-8", "surrogatepass")}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return files


def read_store(folder: Path) -> Any:
    """A store as data, whole."""
    from mipfs.readers import store

    data = mipfs.read(folder / "s")
    _looked_at(data)
    store.check(folder / "s")
    return data


def rows_seeds() -> dict[str, Files]:
    """What a study has measured."""
    line = {
        "study": "s",
        "unit": "k=1",
        "rows": [{"a": 1, "b": "=x"}],
        "cpu_seconds": 1.0,
        "machine": {},
        "versions": {},
    }
    return {"rows": {"rows.jsonl": b"".join(json.dumps({**line, "unit": f"k={k}"}).encode() + b"\n" for k in range(3))}}


def read_rows_of_study(folder: Path) -> Any:
    """The lines of a study, and their table."""
    from mipfs.lab.experiments.run import StudyStore, as_csv

    found = StudyStore(folder / "rows.jsonl", "s").lines()
    return as_csv([row for line in found.values() for row in line["rows"]])


def not_the_table(name: str) -> bool:
    """Files that are no data of a result."""
    return name.startswith("r.")


TARGETS: Mapping[str, Target] = {
    "svmlight": Target(svmlight_seeds, read_data, wrong_svmlight, weight=5),
    "csv": Target(csv_seeds, read_data, wrong_table, weight=5),
    "toml": Target(toml_seeds, read_data, mutates=lambda name: name == "d.toml", weight=5),
    "npz": Target(npz_seeds, read_data, weight=4),
    "parquet": Target(parquet_seeds, read_data, weight=2),
    "lp": Target(lambda: {"rows": {"rows.lp": LP}}, read_lp, wrong_rows, weight=4),
    "result": Target(result_seeds, read_result, sealed=sealed_result, mutates=lambda name: name == "r.json", weight=3),
    "certificate": Target(
        result_seeds, verify_result, wrong_verdict, sealed=sealed_result, mutates=not_the_table, weight=5
    ),
    "study": Target(study_seeds, read_study, mutates=not_the_table, weight=2),
    "point": Target(point_seeds, read_point, mutates=not_the_table, weight=1),
    "bench": Target(bench_seeds, read_bench, weight=2),
    "classes": Target(classes_seeds, read_classes, mutates=not_the_table, weight=1),
    "card": Target(card_seeds, read_card, mutates=lambda name: name == "c.json", weight=2),
    "checkpoint": Target(
        checkpoint_seeds, resume_state, wrong_resumed, sealed_state, lambda name: name == "s.npz", weight=2, named=False
    ),
    "points": Target(points_seeds, read_points, wrong_points, sealed_points, weight=1),
    "store": Target(store_seeds, read_store, sealed=sealed_store, weight=4),
    "rows": Target(rows_seeds, read_rows_of_study, weight=1),
}
"""By name."""


def one_seed(target: Target, r: random.Random) -> tuple[str, Files]:
    """A seed by chance."""
    seeds = cached_seeds(target)
    name = r.choice(sorted(seeds))
    return name, seeds[name]


_SEEDS: dict[int, Mapping[str, Files]] = {}


def cached_seeds(target: Target) -> Mapping[str, Files]:
    """The seeds of a target, made once."""
    if id(target) not in _SEEDS:
        _SEEDS[id(target)] = target.seeds()
    return _SEEDS[id(target)]


def text_of(content: bytes) -> str:
    """Contents as they are printed."""
    return content.decode() if content.isascii() else base64.b64encode(content).decode()
