"""What runs when it is read: no result, certificate, checkpoint or store is a pickle, or is read as one."""

from __future__ import annotations

import io
import pickle
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mipfs
from mipfs import Instance, Problem
from mipfs.convert import convert
from mipfs.errors import MipfsError
from mipfs.result.state import RunState

SOURCES = Path(mipfs.__file__).parent
BETWEEN_PROCESSES = {
    "compiled/cache.py": "numba's own index of machine code, in a folder that the user alone can write",
    "drivers/workers.py": "from workers of the user's cluster, over lines of our own that only who knows a key opens",
    "formulation/canonical.py": "a copy in memory",
    "formulation/program.py": "a copy in memory",
    "lab/studies/chains.py": "points of its own processes, in a folder of its own that only this user can enter",
    "plumbing/forked.py": "to a process of its own, by a pipe",
    "run/beside.py": "to a process of its own, by a pipe",
    "run/side_by_side.py": "the data of its own processes, in a folder of its own that only this user can enter",
    "solvers/cones.py": "to a process of its own, by a pipe",
    "solvers/scip.py": "to a process of its own, by a pipe",
}
"""Files that unpickle, and whence."""


class Bomb:
    """Touches a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


@pytest.mark.slow
def test_pickles_are_read_only_between_own_processes() -> None:
    reads = re.compile(r"\bimport pickle\b|\bpickle\.loads?\b|Unpickler|allow_pickle=True|\bjoblib\.load\b|\bshelve\b")
    found = {
        path.relative_to(SOURCES).as_posix()
        for path in SOURCES.rglob("*.py")
        if any(reads.search(line) for line in path.read_text(encoding="utf-8").splitlines())
    }
    assert found == BETWEEN_PROCESSES.keys()


@pytest.fixture
def problem() -> Problem:
    """A tiny one."""
    r = np.random.default_rng(0)
    return Problem(Instance.from_arrays(r.normal(size=(20, 3)), np.where(r.random(20) < 0.5, 1.0, -1.0)), M=1)


def planted(path: Path, bomb: Bomb) -> None:
    """Replace the arrays of an .npz, or a .npy, by pickled objects, one after another member kept."""
    stream = io.BytesIO()
    np.save(stream, np.array([bomb], dtype=object), allow_pickle=True)
    if path.suffix == ".npy":
        path.write_bytes(stream.getvalue())
        return
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content if name == "about.npy" else stream.getvalue())


def test_a_hostile_checkpoint_certificate_or_store_runs_nothing(problem: Problem, tmp_path: Path) -> None:
    bomb = Bomb(tmp_path / "went off")
    mipfs.solve(problem, checkpoint=tmp_path / "s.npz").save(tmp_path / "r.json")
    planted(tmp_path / "s.npz", bomb)
    with pytest.raises(MipfsError):
        RunState.load(tmp_path / "s.npz")
    planted(tmp_path / "r.cert.npz", bomb)
    with pytest.raises(MipfsError):
        mipfs.verify(mipfs.Result.load(tmp_path / "r.json"), problem.data).accepted or _refused()
    source = tmp_path / "data.svm"
    source.write_text("+1 1:1 2:3\n-1 1:2\n+1 2:1\n")
    store = convert(source, tmp_path / "store")
    for path in sorted(Path(store).glob("*.npy")):
        planted(path, bomb)
    with pytest.raises(MipfsError):
        mipfs.read(store).block().values  # noqa: B018
    (tmp_path / "p.points").write_bytes(pickle.dumps(bomb))
    with pytest.raises(MipfsError):
        mipfs.path(problem, M=[1], resume=tmp_path / "p.points")
    assert not bomb.path.exists()


def _refused() -> None:
    """A certificate that is refused without an error is refused too."""
    raise MipfsError("refused")
