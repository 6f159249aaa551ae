"""Column stores: the same instance as of the file itself, whatever happens on the way."""

from __future__ import annotations

import bz2
import dataclasses
import gzip
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import mipfs
from mipfs.cli import main
from mipfs.convert import convert
from mipfs.convert import finish as second
from mipfs.convert import transpose as room
from mipfs.convert.spill import EntryBuffer
from mipfs.errors import DataError, LabelError, UsageError
from mipfs.readers import svmlight, table_chunks
from mipfs.readers.store import check
from mipfs.readers.svmlight import read_svmlight

INSTANCES = Path(__file__).parents[2] / "instances"


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces, runs and blocks so small that there are many of each."""
    monkeypatch.setattr(svmlight, "PIECE", 700)
    monkeypatch.setattr(table_chunks, "CELLS", 40)
    monkeypatch.setattr(room, "MB", 1)  # "megabytes" are bytes then
    monkeypatch.setattr(room, "LEAST_MEMORY", 1)
    monkeypatch.setattr(EntryBuffer, "capacity", property(lambda _: 150, lambda _, value: None), raising=False)


def text(seed: int, n: int = 60, p: int = 40) -> str:
    r = random.Random(seed)
    numbers = [
        lambda: "1", lambda: repr(r.random()), lambda: f"{r.gauss(0, 1):.3g}", lambda: f"{r.random():.25f}",
        lambda: "+.5", lambda: "5.", lambda: f"{r.random() * 10.0 ** r.randint(-300, 70):e}", lambda: "0",
        lambda: "-0.0", lambda: "1e-400",
    ]  # fmt: skip
    lines = []
    for i in range(n):
        if r.random() < 0.1:
            lines.append(r.choice(["", "# a comment", "  \t"]))
        ids = sorted(r.sample(range(1, p + 1), r.randint(0, 9)))
        pairs = " ".join(f"{j}:{r.choice(numbers)()}" for j in ids)
        lines.append(
            f"{r.choice(['', ' '])}{['1', '-1', '+1', '-1.0'][i % 4]} {pairs}{r.choice(['', ' ', chr(13), ' # c'])}"
        )
    return "\n".join(lines) + r.choice(["", "\n"])


def same(one: Any, other: Any) -> None:
    """Two instances hold the same to the bit."""
    assert one.sha256 == other.sha256
    assert (one.labels, one.label, one.groups, one.words) == (other.labels, other.label, other.groups, other.words)
    assert list(one.feature_names) == list(other.feature_names)
    assert one.is_sparse == other.is_sparse
    X, Z = one.X, other.X[:, :]
    np.testing.assert_array_equal(X.toarray() if one.is_sparse else X, Z.toarray() if one.is_sparse else Z)
    np.testing.assert_array_equal(one.y, other.y)
    np.testing.assert_array_equal(one.sample_weight, other.sample_weight)
    assert (one.bags is None) == (other.bags is None)
    if one.bags is not None:
        np.testing.assert_array_equal(one.bags, other.bags)


@pytest.mark.sampled(3)
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("seed", range(3))
def test_svmlight_round_trip(tmp_path: Path, seed: int) -> None:
    source = tmp_path / "a.svm"
    source.write_text(text(seed))
    convert(source, tmp_path / "s", block=300 + 900 * seed)
    same(mipfs.read(source), mipfs.read(tmp_path / "s"))
    assert check(tmp_path / "s") == mipfs.read(tmp_path / "s").X.sha256
    for suffix, pack in ((".gz", gzip.compress), (".bz2", bz2.compress)):
        packed = tmp_path / f"a.svm{suffix}"
        packed.write_bytes(pack(source.read_bytes()))
        convert(packed, tmp_path / f"s{suffix}", block=2000)
        same(mipfs.read(source), mipfs.read(tmp_path / f"s{suffix}"))


def test_as_scikit_learn_reads_it(tmp_path: Path) -> None:
    from sklearn.datasets import load_svmlight_file

    source = tmp_path / "a.svm"
    source.write_text(text(11, 200, 300))
    convert(source, tmp_path / "s")
    X, y = load_svmlight_file(str(source), n_features=mipfs.read(source).n_features)
    data = mipfs.read(tmp_path / "s")
    np.testing.assert_array_equal(data.X[:, :].toarray(), X.toarray())
    np.testing.assert_array_equal(data.y, y)


@pytest.mark.parametrize("scale", ["none", "standard", "unit"])
def test_shipped_instances(tmp_path: Path, scale: Any) -> None:
    for name in ("wdbc.svm", "credit.csv"):
        source = INSTANCES / name
        if not source.exists():
            continue
        store = convert(source, tmp_path / f"{name}-store")
        one, other = mipfs.read(source, scale=scale), mipfs.read(store, scale=scale)
        same(one, other)
        rows, others = ([dataclasses.replace(row, origin="") for row in data.rows] for data in (one, other))
        assert (rows, one.cost, one.select) == (others, other.cost, other.select)


@pytest.mark.usefixtures("small")
def test_tables_round_trip(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    rows = [
        f"{i * 1.5},{['red', 'blue', 'green', 'Blue'][i % 4]},{['yes', 'no'][i % 2]},{i % 5},{1 + i % 2},{i // 4}"
        for i in range(60)
    ]
    source = tmp_path / "b.csv"
    source.write_text("size,color,label,v,sample_weight,bag\n" + "\n".join(rows) + "\n")
    same(mipfs.read(source), mipfs.read(convert(source, tmp_path / "s1")))
    other = tmp_path / "b.parquet"
    pytest.importorskip("pyarrow")
    pandas.read_csv(source).to_parquet(other, row_group_size=7)
    same(mipfs.read(other), mipfs.read(convert(other, tmp_path / "s2")))
    source.write_text(";size;y\n" + "\n".join(f"{i};{i * i}.5;{'ab'[i % 2]}" for i in range(50)))
    with pytest.warns(mipfs.errors.DataWarning):
        same(mipfs.read(source, label="y"), mipfs.read(convert(source, tmp_path / "s3", label="y")))


def test_npz_round_trip(tmp_path: Path) -> None:
    r = np.random.default_rng(0)
    X, y = sparse.random_array((50, 30), density=0.1, rng=r, format="csc"), np.where(np.arange(50) % 2, 1, -1)
    np.savez(
        tmp_path / "a.npz", format=np.array("csc"), shape=X.shape, data=X.data, indices=X.indices, indptr=X.indptr, y=y
    )
    np.savez(tmp_path / "b.npz", X=X.toarray(), y=y, feature_names=np.array([f"f{j}" for j in range(30)]))
    for name in ("a", "b"):
        same(mipfs.read(tmp_path / f"{name}.npz"), mipfs.read(convert(tmp_path / f"{name}.npz", tmp_path / f"s{name}")))


def test_float32_is_the_rounded_data(tmp_path: Path) -> None:
    source = tmp_path / "a.svm"
    source.write_text("1 1:0.1 2:3\n-1 2:0.7 5:1e-60\n1 3:5\n")
    data = mipfs.read(convert(source, tmp_path / "s", dtype="float32"))
    assert data.n_features == 5
    expected = np.float64(np.float32(mipfs.read(source).block().dense()))
    np.testing.assert_array_equal(data.block(np.arange(5)).dense(), expected)
    source.write_text("1 1:0.1 2:3\n-1 2:1e39\n")
    with pytest.raises(DataError, match=r"a\.svm:2: the value 1e\+39 is beyond float32"):
        convert(source, tmp_path / "t", dtype="float32")


@pytest.mark.parametrize(
    "content",
    ["1 1:2\n-1 2:x\n", "1 1:2\n-1 2:1_0\n", "1 2:2 1:3\n-1 1:1\n", "1 0:2\n", "abc 1:2\n", "1 1:2 1:3\n", "1 1:inf\n",
     "1 1:nan\n", "nan 1:1\n", "1 1:1e999\n", "1 1:1\n-1 qid:x 1:1\n", "1 1:1\n-1 qid:3 1:1\n", "1 1\n", "1 1:\n",
     "1 99999999999999999999:1\n", "1 300000000:1\n", "", "\n# only\n", "1 1:2 # c\n-1 1:2\n 1:3\n"],
)  # fmt: skip
def test_what_is_refused_is_refused_alike(tmp_path: Path, content: str) -> None:
    source = tmp_path / "a.svm"
    source.write_text(content)
    with pytest.raises(DataError) as one:
        read_svmlight(source)
    with pytest.raises(DataError) as other:
        convert(source, tmp_path / "s")
    assert str(one.value).split("; write one per line")[0][:60] == str(other.value)[:60] or one.value.line is None
    assert one.value.line == other.value.line
    assert not (tmp_path / "s").exists()


def test_labels(tmp_path: Path) -> None:
    source = tmp_path / "a.svm"
    source.write_text("1 1:2\n2 1:1\n\n3 1:1\n")
    with pytest.raises(LabelError, match=r"a\.svm:4: more than two labels: 3 after 1 and 2"):
        convert(source, tmp_path / "s")
    source.write_text("1 1:2\n1 1:1\n")
    with pytest.raises(LabelError, match="one class only"):
        convert(source, tmp_path / "s")
    source.write_text("1 1:2\n2 1:1\n")
    store = convert(source, tmp_path / "s")
    assert mipfs.read(store).y.tolist() == [-1, 1]
    flipped = mipfs.read(store, positive="1")
    assert (flipped.y.tolist(), flipped.labels.positive) == ([1, -1], 1)
    assert flipped.sha256 == mipfs.read(source, positive=1).sha256
    with pytest.raises(LabelError, match="not one of the labels"):
        mipfs.read(store, positive="7")
    with pytest.raises(UsageError, match="chosen by `mipfs convert --label`"):
        mipfs.read(store, label="z")


def killed(source: Path, store: Path, after: float) -> tuple[int, float]:
    """Convert in another process, and kill that; its return code, and for how many seconds it has converted."""
    code = (
        "import sys; from mipfs.readers import svmlight; from mipfs.convert import transpose as room\n"
        "from mipfs.convert.spill import EntryBuffer\n"
        "svmlight.PIECE = 3000; room.MB = 1\n"
        "EntryBuffer.capacity = property(lambda _: 400, lambda _, value: None)\n"
        "print('begun', flush=True); room.convert(sys.argv[1], sys.argv[2], block=4000)"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(source), str(store)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()  # what comes before, the imports, is not killed
    begin = time.monotonic()
    try:
        process.wait(after)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
    return process.wait(), time.monotonic() - begin


@pytest.mark.every
@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no such signal")
def test_killed_at_random_moments(tmp_path: Path) -> None:
    """Each time it is called again it goes on, and the end is the same files, byte for byte."""
    source, r = tmp_path / "a.svm", random.Random(5)
    source.write_text(text(5, 4000, 400))
    code, whole = killed(source, tmp_path / "whole", 600.0)
    assert code == 0
    kills = 0
    for number in range(4):
        store = tmp_path / f"s{number}"
        while killed(source, store, r.uniform(0.0, 0.5 * whole))[0] != 0:
            kills += 1
            assert kills < 200, "it makes no headway"
            if store.exists():  # killed behind the last step
                break
        if store.with_name(f"{store.name}.unfinished").exists():
            assert killed(source, store, 600.0)[0] == 0
        assert sorted(os.listdir(store)) == sorted(os.listdir(tmp_path / "whole"))
        for name in os.listdir(store):
            assert (store / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name
        assert not store.with_name(f"{store.name}.unfinished").exists()
        shutil.rmtree(store)
    assert kills >= 2


@pytest.mark.sampled(2)
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("stage", ["run", "block", "last"])
def test_stopped_and_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str) -> None:
    """The same by an error at a chosen moment: what was done is not done again."""
    source = tmp_path / "a.svm"
    source.write_text(text(3, 300))
    convert(source, tmp_path / "whole", block=400)
    room_of, name = {
        "run": (EntryBuffer, "write"),
        "block": (second, "_write_block"),
        "last": (second, "_write_samples"),
    }[stage]
    real, calls = getattr(room_of, name), [0]

    def failing(*given: Any) -> Any:
        calls[0] += 1
        if calls[0] == (1 if stage == "last" else 3):
            raise KeyboardInterrupt
        return real(*given)

    monkeypatch.setattr(room_of, name, failing)
    with pytest.raises(KeyboardInterrupt):
        convert(source, tmp_path / "s", block=400)
    assert not (tmp_path / "s").exists()
    before, calls[0] = calls[0], 10
    convert(source, tmp_path / "s", block=400)
    assert calls[0] > 10 or stage == "last"
    assert before <= 3
    for one in os.listdir(tmp_path / "whole"):
        assert (tmp_path / "s" / one).read_bytes() == (tmp_path / "whole" / one).read_bytes(), one


@pytest.mark.usefixtures("small")
def test_a_source_that_changed_begins_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "a.svm"
    source.write_text(text(3, 100))
    with monkeypatch.context() as patch:
        patch.setattr(second, "_write_samples", lambda *given: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            convert(source, tmp_path / "s")
    source.write_text(text(4, 130))
    same(mipfs.read(source), mipfs.read(convert(source, tmp_path / "s")))


def test_what_is_there_is_not_written_over(tmp_path: Path) -> None:
    source = tmp_path / "a.svm"
    source.write_text("1 1:2\n-1 2:1\n")
    convert(source, tmp_path / "s")
    with pytest.raises(UsageError, match="exists already"):
        convert(source, tmp_path / "s")
    with pytest.raises(UsageError, match="dtype"):
        convert(source, tmp_path / "t", dtype="int8")
    with pytest.raises(DataError, match="this is a folder"):
        convert(tmp_path / "s", tmp_path / "t")


def test_a_conversion_that_failed_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """But what there is to go on with, where the data is not what is wrong."""
    source = tmp_path / "a.svm"
    with pytest.raises(DataError, match="no such file"):
        convert(source, tmp_path / "new" / "s")
    assert not list(tmp_path.iterdir())
    wrong = {"1 1:2\n-1 2:x\n": {}, "1 1:2\n1 2:1\n": {}, "1 1:2\n-1 2:1\n": {"drop": ["a"]}, "": {}}
    for content, given in wrong.items():
        source.write_text(content)
        with pytest.raises((DataError, UsageError)):
            convert(source, tmp_path / "s", **given)
        assert [path.name for path in tmp_path.iterdir()] == ["a.svm"]
    source.write_text(text(3, 100))
    with monkeypatch.context() as patch:
        patch.setattr(second, "_write_samples", interrupted)
        with pytest.raises(KeyboardInterrupt):
            convert(source, tmp_path / "s")
    away = source.rename(tmp_path / "away.svm")
    with pytest.raises(DataError, match="no such file"):
        convert(source, tmp_path / "s")
    assert (tmp_path / "s.unfinished" / "state.json").exists()
    away.rename(source)
    with monkeypatch.context() as patch:
        patch.setattr(EntryBuffer, "write", interrupted)  # what was read is not read again
        same(mipfs.read(source), mipfs.read(convert(source, tmp_path / "s")))


def interrupted(*_: Any) -> None:
    """Whoever gets here is stopped by a Ctrl-C."""
    raise KeyboardInterrupt


@pytest.mark.parametrize("seed", range(3))
def test_of_several_that_write_one_store_one_does(tmp_path: Path, seed: int) -> None:
    """The others are told so in a word, and the store is that of the file."""
    (tmp_path / "d.svm").write_text(text(seed))
    told, made = list[BaseException](), list[Path]()

    def write() -> None:
        try:
            made.append(convert(tmp_path / "d.svm", tmp_path / "d.store"))
        except BaseException as error:
            told.append(error)

    threads = [threading.Thread(target=write) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made
    assert all(isinstance(one, UsageError) for one in told), told
    assert not (tmp_path / "d.store.unfinished").exists()
    assert mipfs.read(tmp_path / "d.store").sha256 == mipfs.read(tmp_path / "d.svm").sha256


def test_damage_is_named(tmp_path: Path) -> None:
    source = tmp_path / "a.svm"
    source.write_text(text(3, 200, 100))
    for name in (
        "00000.data.npy",
        "00000.indices.npy",
        "00000.indptr.npy",
        "00000.sums.npy",
        "00000.statistics.npy",
        "y.npy",
    ):
        store = convert(source, tmp_path / name)
        raw = bytearray((store / name).read_bytes())
        raw[-3] ^= 4
        (store / name).write_bytes(raw)
        called = "block 0" if name != "y.npy" else r"y\.npy"
        with pytest.raises(DataError, match=f"{called}.*damaged"):
            check(store)
        (store / name).write_bytes(raw[:-1])
        with pytest.raises(DataError, match=f"{called}.*bytes, not"):
            mipfs.read(store)
        (store / name).unlink()
        with pytest.raises(DataError, match=f"{called}.*missing"):
            mipfs.read(store)


def test_a_solve_on_a_damaged_block_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "a.svm"
    source.write_text(text(3, 200, 100))
    store = convert(source, tmp_path / "s")
    data = mipfs.read(store)
    raw = bytearray((store / "00000.data.npy").read_bytes())
    raw[-3] ^= 4
    (store / "00000.data.npy").write_bytes(raw)
    with pytest.raises(DataError, match="block 0"):
        mipfs.solve(mipfs.Problem(data, loss="squared-hinge", bias=False, M=2), "kelley", T=2)


@pytest.mark.parametrize(
    "change", [{"version": 9}, {"format": "x"}, {"blocks": [[0, 3, 1.0]]}, {"nnz": None, "blocks": 3}]
)
def test_a_manifest_that_is_none(tmp_path: Path, change: dict[str, Any]) -> None:
    source = tmp_path / "a.svm"
    source.write_text(text(3))
    store = convert(source, tmp_path / "s")
    document = json.loads((store / "manifest.json").read_text())
    (store / "manifest.json").write_text(json.dumps(document | change))
    with pytest.raises(DataError, match=r"manifest\.json"):
        mipfs.read(store)
    (store / "manifest.json").write_text("{")
    with pytest.raises(DataError, match="not a manifest"):
        mipfs.read(store)


@pytest.mark.slow
def test_one_column(tmp_path: Path) -> None:
    source = tmp_path / "a.svm"
    source.write_text("1 1:2\n-1\n1 1:1\n-1 1:-1\n")
    same(mipfs.read(source), mipfs.read(convert(source, tmp_path / "s")))
    result = mipfs.solve(mipfs.Problem(mipfs.read(tmp_path / "s"), loss="squared-hinge", bias=False, M=1), "kelley")
    assert result.selected == ("x1",)


@pytest.mark.slow
def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, store, result = str(INSTANCES / "wdbc.svm"), str(tmp_path / "wdbc"), str(tmp_path / "r.json")
    assert main(["convert", source, store, "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["n_features"] == 30
    documents = []
    for data in (source, store):
        options = ["-p", "M=3", "-p", "C=0.1", "--scale", "standard", "--json", result, "--quiet"]
        assert main(["solve", "fgm", data, *options]) == 0
        documents.append(json.loads(Path(result).read_text()))
        for other in (source, store):
            assert main(["verify", result, other, "--quiet"]) == 0
            assert main(["evaluate", result, other, "--quiet"]) == 0
    assert documents[0]["selected"] == documents[1]["selected"]
    assert documents[0]["bound"] == documents[1]["bound"]
    capsys.readouterr()
    assert main(["convert", source, store]) == 2
    assert "exists already" in capsys.readouterr().err
    assert main(["convert", str(tmp_path / "no.svm"), str(tmp_path / "t")]) == 2
    raw = bytearray((Path(store) / "00000.data.npy").read_bytes())
    raw[-3] ^= 4
    (Path(store) / "00000.data.npy").write_bytes(raw)
    capsys.readouterr()
    assert main(["verify", result, store]) == 2
    assert "block 0 (00000.data.npy) is damaged" in capsys.readouterr().err


@pytest.mark.parametrize(
    "said",
    [
        None,
        "[data]\n",
        "[features]\nnames = ['a', 'b']\n",
        "cost.a = 3\n[features]\nnames = ['a', 'b']\n",
        "[cost]\nscale = 2\n[features]\nnames = ['a', 'scale']\n[ data ] # as it is\r\nlicence = 'none'\r\n",
        "[data]\nscale = 'none' # raw\nlicence = 'none'\n",
    ],
)
def test_a_store_says_how_it_is_to_be_scaled(tmp_path: Path, said: str | None) -> None:
    source = tmp_path / "d.svm"
    source.write_text("1 1:1 2:3\n-1 1:2\n1 2:5\n")
    if said is not None:
        (tmp_path / "d.toml").write_text(said, newline="")
    raw = mipfs.read(source, scale="standard")
    assert main(["convert", str(source), str(tmp_path / "s"), "--scale", "standard", "-q"]) == 0
    found = mipfs.read(tmp_path / "s")
    assert (found.scaling, found.sha256, [*found.cost]) == ("standard", raw.sha256, [*raw.cost])
    assert mipfs.read(tmp_path / "s", scale="none").scaling == "none"


def test_a_scale_that_no_description_can_be_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, store = tmp_path / "d.svm", tmp_path / "s"
    source.write_text("1 1:1 2:3\n-1 1:2\n1 2:5\n")
    (tmp_path / "d.toml").write_text("data = { scale = 'none', licence = 'none' }\n")
    assert main(["convert", str(source), str(store), "--scale", "unit", "-q"]) == 2
    said = f'{tmp_path / "d.toml"}: the scale cannot be written into it; write scale = "unit"'
    assert said in capsys.readouterr().err
    assert not store.exists()
    (tmp_path / "s.toml").write_text("[data]\nlicence = 'none'\n")
    assert main(["convert", str(source), str(store), "--scale", "unit", "-q"]) == 2
    assert f'{store}.toml: describes the store; write scale = "unit" into its [data]' in capsys.readouterr().err
    assert main(["convert", str(source), str(store), "-q"]) == 0


def test_folds_and_draws_of_a_store_are_refused_before_anything_is_solved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = str(convert(INSTANCES / "credit.csv", tmp_path / "store"))
    asked = ("--M", "2", "--C", "1")
    for command in (
        ("solve", "fsp-m", store, *asked, "--calibrate", "3"),
        ("path", store, "--M", "1:2", "--C", "1", "--folds", "3"),
        ("stability", store, *asked, "--draws", "2"),
        ("bench", store, *asked, "--methods", "fgm", "-o", str(tmp_path / "b.json")),
    ):
        assert main([*command, "-q"]) == 2
        out, err = capsys.readouterr()
        assert not out
        assert err.strip().endswith("give the file that the store was made of")


def test_names_beside_the_data_are_those_of_the_store(tmp_path: Path) -> None:
    (tmp_path / "d.svm").write_text("+1 1:1 2:0.5\n-1 1:-1 2:2\n")
    np.savez(tmp_path / "e.npz", X=np.eye(2), y=np.array([1, -1]))
    (tmp_path / "names.txt").write_text("age\nprice, net\n")
    for name in ("d.svm", "e.npz"):
        data, again = mipfs.read(tmp_path / name), mipfs.read(convert(tmp_path / name, tmp_path / f"{name}.store"))
        assert tuple(again.feature_names) == tuple(data.feature_names) == ("age", "price, net")
        assert again.sha256 == data.sha256
    for name, options in (("d.svm", {"n_features": 3}), ("e.npz", {})):
        (tmp_path / "names.txt").write_text("age\nprice, net\n" if options else "age\n")
        with pytest.raises(DataError, match="names"):
            convert(tmp_path / name, tmp_path / "other.store", **options)
