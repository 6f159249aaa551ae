"""Where what a tree proves lies: in memory, in a file, nowhere. The answer and the certificate are the same."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mipfs
from mipfs import Instance, Problem, Result, StopReason
from mipfs.drivers import tree_proof
from mipfs.errors import CheckpointWarning, UsageError
from mipfs.plumbing import tape
from mipfs.plumbing.tape import Tape, pieces
from mipfs.proof.duals import DualStore
from mipfs.readers.arrays import load_arrays
from mipfs.result.state import RunState


def hard(n: int = 60, p: int = 30, *, rows: bool = False) -> Problem:
    """Labels of noise: a tree of many nodes."""
    r = np.random.default_rng(5)
    data = Instance.from_arrays(r.standard_normal((n, p)), np.where(r.random(n) < 0.5, 1.0, -1.0))
    problem = Problem(data, M=6, C=1.0)
    return problem.with_rows(r.integers(0, 2, size=(2, p)).astype(float), -np.inf, [3.0, 4.0]) if rows else problem


def arrays_of(result: Result) -> dict[str, Any]:
    """What stands in its certificate."""
    assert result.claim is not None
    return result.claim.arrays()


def assert_same(one: Result, other: Result) -> None:
    assert (one.status, one.objective, one.bound, one.selected) == (
        other.status,
        other.objective,
        other.bound,
        other.selected,
    )


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is written, and forgotten, as soon as it can be."""
    monkeypatch.setattr(tape, "TAIL_BYTES", 64)
    monkeypatch.setattr(tape, "PIECE_BYTES", 100)
    monkeypatch.setattr(tape, "KEPT_BYTES", 30)
    monkeypatch.setattr(tree_proof, "LEAST_LITTER", 0)
    monkeypatch.setattr(tree_proof, "LITTER", 1)


@pytest.mark.parametrize("in_file", [False, True])
def test_a_tape_gives_back_what_was_written(in_file: bool, tmp_path: Path, eager: None) -> None:
    r = np.random.default_rng(0)
    written = Tape(tmp_path if in_file else None)
    whole = b""
    for size in r.integers(0, 150, 40).tolist():
        part = r.bytes(size)
        is_array = size % 2 == 1
        array = np.frombuffer(part, np.uint8).copy()
        assert (written.extend(array) if is_array else written.append(part)) == len(whole)
        whole += part
        lows, highs = np.sort(r.integers(0, len(whole) + 1, (2, 5)), axis=0)
        asked = list(zip(lows.tolist(), highs.tolist(), strict=True))
        assert [written.read(low, high) for low, high in asked] == [whole[low:high] for low, high in asked]
        assert written.read_all(lows, highs).tobytes() == b"".join(whole[low:high] for low, high in asked)
    with pytest.raises(ValueError, match="beyond the end"):
        written.read_all(np.array([0, 1]), np.array([1, len(whole) + 1]))
    assert written.array().tobytes() == whole == b"".join(bytes(piece) for piece in pieces(written.array()))
    assert written.extend(np.arange(5)) == len(whole)
    again = [pickle.loads(pickle.dumps(written)), copy.deepcopy(written)]
    assert all(one.array().tobytes() == whole + np.arange(5).tobytes() for one in again)
    assert not list(tmp_path.iterdir()), "the file has no name"


def test_what_cannot_be_written_stays_in_memory(tmp_path: Path, eager: None, monkeypatch: pytest.MonkeyPatch) -> None:
    written = Tape(tmp_path)
    written.append(bytes(100))
    file = written._file

    class Full:
        """A disk without room."""

        def __getattr__(self, name: str) -> Any:
            return getattr(file, name)

        def write(self, content: Any) -> int:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(written, "_file", Full())
    with pytest.warns(CheckpointWarning, match="No space left"):
        written.append(b"x" * 100)
    written.append(b"y" * 100)
    assert written.array().tobytes() == written.read(0, 300) == bytes(100) + b"x" * 100 + b"y" * 100
    assert written.read(90, 210) == bytes(10) + b"x" * 100 + b"y" * 10
    with pytest.warns(CheckpointWarning, match="stays in memory"):
        assert len(Tape(tmp_path / "none", b"abc")) == 3


def test_a_store_is_the_same_in_memory_and_in_a_file(tmp_path: Path, eager: None) -> None:
    r = np.random.default_rng(1)
    stores = [DualStore(50), DualStore(50, None, Tape(tmp_path))]
    for _ in range(30):
        k = r.integers(0, 2**20, 50) * (r.random(50) < 0.3)
        assert len({store.add(k, 20) for store in stores}) == 1
    some = np.array([3, 29, 0, 7])
    for one, other in ((stores[0], stores[1]), (stores[0].part(some), stores[1].part(some))):
        held, spilled = one.arrays(), other.arrays()
        assert all(np.array_equal(held[name], spilled[name]) for name in held)
        assert isinstance(spilled["dual_bytes"], np.memmap)
        assert np.array_equal(one.get(2)[0], other.get(2)[0])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("rows", [False, True])
def test_a_spilled_proof_is_the_one_in_memory(rows: bool, tmp_path: Path, eager: None) -> None:
    problem = hard(rows=rows)
    held = mipfs.solve(problem, gap=1e-6)
    spilled = mipfs.solve(problem, gap=1e-6, checkpoint=tmp_path / "state", checkpoint_every=1e-6)
    assert_same(spilled, held)
    one, other = arrays_of(held), arrays_of(spilled)
    assert one.keys() == other.keys()
    assert all(np.array_equal(one[name], other[name]) for name in one)
    assert mipfs.verify(spilled, problem.data).accepted


@pytest.mark.slow
@pytest.mark.parametrize("rows", [False, True])
def test_a_spilled_proof_goes_on(rows: bool, tmp_path: Path, eager: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mipfs.readers.arrays.MAPPED_BYTES", 100)
    problem = hard(rows=rows)
    file = tmp_path / "state"
    whole = mipfs.solve(problem, gap=1e-6)
    held = mipfs.solve(problem, gap=1e-6, iteration_limit=60, checkpoint=True)
    stopped = mipfs.solve(problem, gap=1e-6, iteration_limit=60, checkpoint=file)
    assert stopped.stop_reason is StopReason.ITERATION_LIMIT
    assert stopped.state is not None
    assert held.state is not None
    assert stopped.state.digest == RunState.load(file).digest
    names, clocks = stopped.state.arrays.keys(), {"trace", "run_numbers"}  # which hold seconds
    assert names == held.state.arrays.keys()
    assert all(np.array_equal(stopped.state.arrays[one], held.state.arrays[one]) for one in names - clocks)
    last = mipfs.solve(problem, gap=1e-6, checkpoint=file, resume=file)
    again = mipfs.solve(problem, gap=1e-6, checkpoint=True, resume=held.state)
    assert_same(last, again)
    assert (last.status, last.selected) == (whole.status, whole.selected)
    assert last.objective == pytest.approx(whole.objective, rel=1e-9)
    one, other = arrays_of(last), arrays_of(again)
    assert all(np.array_equal(one[name], other[name]) for name in one)
    assert mipfs.verify(last, problem.data).accepted
    assert [path.name for path in tmp_path.iterdir()] == ["state"]


@pytest.mark.sampled(11)
@pytest.mark.parametrize(
    "options", [{}, {"pool_gap": 0.02}, {"iteration_limit": 80}, {"active": ("x1", "x2")}], ids=str
)
@pytest.mark.parametrize("rows", [False, True])
def test_without_a_certificate_the_answer_is_the_same(
    rows: bool, options: dict[str, Any], tmp_path: Path, eager: None
) -> None:
    problem = hard(rows=rows)
    if "active" in options:
        options = {"active": problem.atoms.names[:8]}
    kept = mipfs.solve(problem, gap=1e-6, **options)
    dropped = mipfs.solve(problem, gap=1e-6, certificate=False, **options)
    assert_same(dropped, kept)
    assert dropped.counters["nodes"] == kept.counters["nodes"]
    assert dropped.stop_reason is kept.stop_reason
    assert dropped.claim is None
    dropped.save(tmp_path / "r.json")
    assert [path.name for path in tmp_path.iterdir()] == ["r.json"]
    with pytest.raises(UsageError, match="without --no-certificate"):
        mipfs.verify(Result.load(tmp_path / "r.json"), problem.data)


def test_a_proof_that_nobody_wants_stays_small(eager: None, monkeypatch: pytest.MonkeyPatch) -> None:
    forgotten: list[tuple[int, int]] = []
    forget = tree_proof.TreeProof.moved

    def watched(self: tree_proof.TreeProof, nodes: Any) -> Any:
        before = len(self.proof.duals)
        found = forget(self, nodes)
        forgotten.append((before, len(self.proof.duals)))
        assert len(self.proof.duals) <= max(1, len(nodes)) == self.proof.n_nodes
        return found

    monkeypatch.setattr(tree_proof.TreeProof, "moved", watched)
    mipfs.solve(hard(), gap=1e-6, certificate=False)
    assert sum(before - after for before, after in forgotten) > 100


def test_a_state_without_a_proof_goes_on_without_one(tmp_path: Path, eager: None) -> None:
    problem = hard()
    whole = mipfs.solve(problem, gap=1e-6)
    file = tmp_path / "state"
    mipfs.solve(problem, gap=1e-6, iteration_limit=60, checkpoint=file, certificate=False)
    with pytest.raises(UsageError, match="one without a certificate"):
        mipfs.solve(problem, gap=1e-6, resume=file)
    last = mipfs.solve(problem, gap=1e-6, resume=file, certificate=False)
    assert (last.status, last.selected) == (whole.status, whole.selected)
    assert last.objective == pytest.approx(whole.objective, rel=1e-9)
    mipfs.solve(problem, gap=1e-6, iteration_limit=60, checkpoint=file)
    last = mipfs.solve(problem, gap=1e-6, resume=file, certificate=False)
    assert last.claim is None
    assert last.objective == pytest.approx(whole.objective, rel=1e-9)


KILLED = """
    import os, signal, sys
    from pathlib import Path
    import mipfs
    sys.path.insert(0, {tests!r})
    from mipfs.plumbing import tape
    from test_memory import hard
    tape.TAIL_BYTES = 64

    def kill(record):
        if record.counters["nodes"] > 200:
            os.kill(os.getpid(), signal.SIGKILL)

    mipfs.solve(hard(), gap=1e-6, checkpoint=Path({file!r}), checkpoint_every=1e-6, callback=kill)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
def test_a_killed_run_leaves_its_last_state_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "state"
    code = textwrap.dedent(KILLED).format(tests=os.path.dirname(__file__), file=str(file))
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, timeout=300)
    assert done.returncode == -9, done.stderr.decode()[-500:]
    problem = hard()
    whole = mipfs.solve(problem, gap=1e-6)
    last = mipfs.solve(problem, gap=1e-6, resume=file)
    assert (last.status, last.selected) == (whole.status, whole.selected)
    assert last.objective == pytest.approx(whole.objective, rel=1e-9)
    assert mipfs.verify(last, problem.data).accepted
    assert {path.name for path in tmp_path.iterdir() if not path.name.endswith(".part")} == {"state"}


def test_large_arrays_are_mapped_and_lies_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mipfs.readers.arrays.MAPPED_BYTES", 200)
    kept = {"a": np.arange(100.0), "b": np.arange(3), "c": np.zeros((4, 50), dtype=np.int8)}
    RunState("branch", "stamp", kept).save(tmp_path / "state")
    found = load_arrays(tmp_path / "state", mapped=True)
    assert isinstance(found["a"], np.memmap)
    assert not isinstance(found["b"], np.memmap)
    assert all(np.array_equal(found[name], kept[name]) for name in kept)
    np.savez(tmp_path / "numpy.npz", **kept)  # type: ignore[arg-type]
    assert all(np.array_equal(load_arrays(tmp_path / "numpy.npz", mapped=True)[name], kept[name]) for name in kept)
    content = (tmp_path / "state").read_bytes()
    at = content.index(np.arange(100.0).tobytes())
    (tmp_path / "state").write_bytes(content[: at + 80] + b"\x01" + content[at + 81 :])
    with pytest.raises(mipfs.errors.DataError):
        RunState.load(tmp_path / "state")


def test_an_array_in_fortrans_order_is_read_and_others_are_mapped(tmp_path: Path) -> None:
    r = np.random.default_rng(0)
    arrays = {"rows": r.normal(size=(400, 500)), "columns": np.asfortranarray(r.normal(size=(400, 500)))}
    np.savez(tmp_path / "a.npz", **arrays)  # type: ignore[arg-type]
    found = load_arrays(tmp_path / "a.npz", mapped=True)
    assert list(found) == list(arrays)
    assert [isinstance(array, np.memmap) for array in found.values()] == [True, False]
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
