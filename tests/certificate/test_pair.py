"""RESULT.json and RESULT.cert.npz belong together at every moment: whoever is ended in a save, whoever else saves."""

from __future__ import annotations

import functools
import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mipfs
from mipfs.data.instance import Instance
from mipfs.problem import Problem
from mipfs.proof import pair
from mipfs.result.result import Result
from tests.two_checkers import second

STEPS = ("link", "replace", "unlink", "fsync")


@functools.cache
def data() -> Instance:
    r = np.random.default_rng(5)
    X = r.normal(size=(20, 4))
    return Instance.from_arrays(X, np.where(X[:, 0] + r.normal(size=20) > 0, 1, -1))


@functools.cache
def solved(C: float) -> Result:
    return mipfs.solve(Problem(data(), M=2, C=C))


def loaded(path: Path) -> Result:
    """What stands there, which must be one of the two results with its own certificate."""
    result = Result.load(path)
    report = mipfs.verify(result, data())
    assert report.accepted, report.reason
    assert result.objective in {solved(C).objective for C in (1.0, 7.0)}
    return result


def ended(result: Result, path: Path, step: str, place: int) -> int:
    """Save in a process that is ended before the so many-th call of a step, as SIGKILL does; its exit code."""
    child = os.fork()
    if child == 0:
        real, calls = getattr(os, step), 0

        def strikes(*args: Any, **options: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == place:
                os._exit(9)
            return real(*args, **options)

        setattr(os, step, strikes)
        try:
            result.save(path)
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="a process is ended in the middle")
@pytest.mark.parametrize("step", STEPS)
def test_a_process_that_is_ended_at_any_step_leaves_a_pair(step: str, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    solved(7.0).save(path)
    solved(1.0).save(path)
    for place in range(1, 20):
        code = ended(solved(7.0), path, step, place)
        assert code in (0, 9)
        loaded(path)
        if code == 0:
            break
        assert ended(solved(7.0), path, step, place) in (0, 9)  # once more, over what the first one left
        loaded(path)
        solved(1.0).save(path)
        assert loaded(path).objective == solved(1.0).objective
    assert place > 1
    assert code == 0
    assert sorted(file.name for file in tmp_path.glob("*.npz")) == ["r.cert.npz"]


def test_the_certificate_of_the_json_is_found_under_its_second_name(tmp_path: Path) -> None:
    """As it stands when a process was ended between the two files."""
    path = tmp_path / "r.json"
    solved(1.0).save(path)
    document, content = path.read_bytes(), (tmp_path / "r.cert.npz").read_bytes()
    entry = loaded(path).certificate
    assert entry is not None
    solved(7.0).save(path)
    path.write_bytes(document)
    with pytest.raises(AssertionError, match="its SHA-256 differs"):
        loaded(path)
    second = tmp_path / f"r.{entry['sha256'][: pair.DIGEST_DIGITS]}.cert.npz"
    second.write_bytes(content)
    assert loaded(path).objective == solved(1.0).objective
    other = tmp_path / "r.0123456789ab.cert.npz"
    other.write_bytes(b"the user's own")
    solved(7.0).save(path)
    assert loaded(path).objective == solved(7.0).objective
    assert other.read_bytes() == b"the user's own"
    assert not second.exists()


@pytest.mark.slow
def test_whoever_reads_while_others_save_sees_pairs(tmp_path: Path) -> None:
    path, over, readings = tmp_path / "r.json", threading.Event(), 0
    solved(1.0).save(path)

    def saving(C: float) -> None:
        while not over.is_set():
            Result.save(solved(C), path)

    threads = [threading.Thread(target=saving, args=(C,)) for C in (1.0, 7.0)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(150):
            loaded(path)
            readings += 1
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert readings == 150
    loaded(path)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["r.cert.npz", "r.json"]


def test_a_large_certificate_stays_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "r.json"
    solved(1.0).save(path)
    assert Result.load(path).sidecar is not None
    monkeypatch.setattr(pair, "SMALL_BYTES", 10)
    assert Result.load(path).sidecar is None
    loaded(path)
    again = Result.load(path)
    solved(7.0).save(path)
    again.save(tmp_path / "s.json")  # its certificate is gone: it says so
    assert "its SHA-256 differs" in mipfs.verify(again, data()).reason


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a process is ended in the middle")
def test_at_every_step_both_checkers_accept_what_stands_there(tmp_path: Path) -> None:
    rows = [" ".join(f"{j + 1}:{x!r}" for j, x in enumerate(row)) for row in data().block().dense().tolist()]
    file, path = tmp_path / "data.svm", tmp_path / "r.json"
    file.write_text("".join(f"{label:+.0f} {row}\n" for label, row in zip(data().y, rows, strict=True)))
    read = mipfs.read(file)
    old, new = (mipfs.solve(Problem(read, M=2, C=C)) for C in (1.0, 7.0))
    words, objectives, place, code = set(), set(), 0, 9
    while code == 9:
        place += 1
        old.save(path)
        code = ended(new, path, "replace", place)
        said = Result.load(path)
        assert mipfs.verify(said, read).accepted
        words.add(second().verdict_of(lambda: second().judge(path, file))[0])
        objectives.add(said.objective)
    assert place == 3, "before each of the two moves, and not at all"
    assert words == {"accepted"}
    assert objectives == {old.objective, new.objective}
    forged = path.read_text().replace(Result.load(path).certificate["sha256"], "../" * 21 + "x")  # type: ignore[index]
    path.write_text(forged)
    assert second().verdict_of(lambda: second().judge(path, file))[0] == "rejected"
