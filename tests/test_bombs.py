"""Files that would take far more than their bytes: refused in one line, or read, within bounds of memory and time.

Every command runs in a process of its own; what it held at most is the operating system's count.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mipfs
from mipfs.convert import convert
from mipfs.errors import DataError, UsageError
from mipfs.readers import room
from mipfs.readers.arrays import load_arrays
from mipfs.readers.csv_file import read_csv
from mipfs.readers.npz import read_npz
from mipfs.readers.sidecar import DataDescription

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks, limits of memory")
if sys.platform == "linux":
    from tests import bombs, fuzz, fuzz_commands

ROOT = Path(__file__).parents[1]


@pytest.mark.sampled(47)
@pytest.mark.parametrize("name", bombs.BOMBS if sys.platform == "linux" else [])
def test_a_bomb_is_refused_or_read_within_bounds(name: str, tmp_path: Path) -> None:
    bomb = bombs.BOMBS[name]
    outcome, said = fuzz_commands.judged(bomb.command, bombs.made(name), tmp_path / "input", fuzz_commands.forked)
    assert said == ""
    assert outcome.code == bomb.code, outcome.err
    assert bomb.says in outcome.err
    assert outcome.held < fuzz.MOST_HELD


BOTH = [name for name in (bombs.BOMBS if sys.platform == "linux" else ()) if name.startswith("certificate: ")]
BOTH = [name for name in BOTH if "vectors" not in name]  # which plain Python computes with for minutes


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", BOTH)
def test_the_second_checker_follows_the_same_rule(name: str, tmp_path: Path) -> None:
    fuzz.written(bombs.made(name), tmp_path / "input")
    line = "import resource, runpy, sys; resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30)); sys.argv.pop(0)\n"
    line += "runpy.run_path(sys.argv[0], run_name='__main__')"
    checker = str(ROOT / "tools" / "second_checker.py")
    done = subprocess.run(
        [sys.executable, "-c", line, checker, "r.json", "table.csv"],
        cwd=tmp_path / "input",
        capture_output=True,
        text=True,
        timeout=60.0,
        check=False,
    )
    assert done.returncode in (1, 2), done.stderr
    assert done.stdout.startswith(("rejected: ", "declined: too large"))


def test_what_is_allowed_follows_the_bytes_of_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(room.VARIABLE, raising=False)
    assert room.most(1_000_000) == 2**26 + 100_000_000
    assert room.most(1_000_000, room.PROOF_TIMES) == 2**26 + 32_000_000
    assert room.most_features(0, 10**8) == 2**22
    monkeypatch.setenv(room.VARIABLE, "2")
    assert room.most(1_000_000) == 2e9
    assert room.most(10**8) == 2**26 + 10**10
    monkeypatch.setenv(room.VARIABLE, "much")
    with pytest.raises(UsageError, match="give a number of gigabytes"):
        room.most(0)


@pytest.mark.slow
def test_more_is_read_where_the_user_allows_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "FREE", 1000)
    file = tmp_path / "d.csv.gz"
    file.write_bytes(gzip.compress(b"a,label\n" + b"1,x\n0,y\n" * 100_000))
    with pytest.raises(DataError, match=r"MIPFS_UNPACK=8 in the environment"):
        read_csv(file)
    with pytest.raises(DataError, match=r"MIPFS_UNPACK=8 in the environment"):
        convert(file, tmp_path / "store")
    monkeypatch.setenv(room.VARIABLE, "0.01")
    assert read_csv(file).X.shape == (200_000, 1)


def test_honest_archives_of_any_size_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "FREE", 0)
    X = np.random.default_rng(1).normal(size=(40, 20_000))
    y = np.where(X[:, 0] > 0, 1, -1)
    for how in (np.savez, np.savez_compressed):
        how(tmp_path / "d.npz", X=X, y=y)
        assert np.array_equal(read_npz(tmp_path / "d.npz").X, X)
    np.savez_compressed(tmp_path / "d.npz", X=np.zeros((40, 20_000)), y=y)
    with pytest.raises(DataError, match="unpack to is more than"):
        read_npz(tmp_path / "d.npz")


def test_an_array_that_nobody_knows_is_named_and_not_read(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "a.npz", one=np.arange(3), other=np.zeros(1000))
    found = load_arrays(tmp_path / "a.npz", known=("one",))
    assert found["one"].tolist() == [0, 1, 2]
    assert found["other"].size == 0


@pytest.mark.parametrize(
    "text",
    [
        "[data]\nsource = 'a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q.r.s.t'\n",
        '[data]\nsource = """a.b.c.d.e.f.g.h.i.j.k\n.l.m.n.o.p.q.r.s.t \\""" "" a.b"""\n',
        "# a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q.r.s.t\n[data]\nlabel = 'y' # a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q.r.s.t\n",
        "[cost]\n" + "".join(f"x{k} = {k}.5\n" for k in range(100)),
        "[generator]\na.b.c.d.e.f = [1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 9.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5]\n",
    ],
)
def test_dots_that_separate_no_keys_are_read(text: str, tmp_path: Path) -> None:
    (tmp_path / "d.toml").write_text(text)
    assert DataDescription.beside(tmp_path / "d.csv").tables


def test_words_of_any_length_are_those_of_the_file(tmp_path: Path) -> None:
    words = ["b" * 100, "a", "c" * 70, "a", "b" * 100, "\u00e9" * 65]
    (tmp_path / "d.csv").write_text("w,label\n" + "".join(f"{w},{k % 2}\n" for k, w in enumerate(words)))
    found = read_csv(tmp_path / "d.csv")
    assert found.groups == {"w": tuple(f"w={word}" for word in sorted({*words}))}
    X = found.X.toarray() if hasattr(found.X, "toarray") else found.X
    assert [sorted({*words})[j] for j in np.argmax(X, axis=1)] == words


def test_a_certificate_made_by_the_package_is_far_below_the_bound(tmp_path: Path) -> None:
    data = mipfs.read(ROOT / "instances" / "credit.csv", scale="standard")
    mipfs.solve(mipfs.Problem(data, M=3, C=1.0)).save(tmp_path / "r.json")
    entry = json.loads((tmp_path / "r.json").read_text())["certificate"]
    content = (tmp_path / entry["file"]).read_bytes()
    held = load_arrays(tmp_path / entry["file"], content)
    assert sum(array.nbytes for array in held.values()) < room.PROOF_TIMES * len(content)
