"""Whatever stands in a file: a reader gives a right value or one line that says what is wrong, and soon."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks, limits of memory")
if sys.platform == "linux":
    from tests import fuzz, fuzz_commands

QUICK = ("svmlight", "csv", "toml", "npz", "lp", "result", "certificate", "bench", "rows")
"""Targets whose seeds take no solve."""
KEPT = fuzz.corpus_of() if sys.platform == "linux" else []
MOST_BYTES = 200_000
"""Of the corpus."""


def of(targets: tuple[str, ...], quick: bool) -> list[Path]:
    return [place for place in KEPT if (place.parent.name in targets) is quick]


def named(place: Path) -> str:
    return f"{place.parent.name}-{place.name}"


@pytest.mark.parametrize("place", of(QUICK, True), ids=named)
def test_what_once_failed_is_read_or_refused(place: Path) -> None:
    verdict = fuzz.again(place)
    assert not verdict.is_fault, verdict


@pytest.mark.slow
@pytest.mark.parametrize("place", of(QUICK, False), ids=named)
def test_what_once_failed_and_takes_longer_to_make(place: Path) -> None:
    verdict = fuzz.again(place)
    assert not verdict.is_fault, verdict


def test_the_corpus_is_small() -> None:
    assert sum(path.stat().st_size for path in fuzz.CORPUS.rglob("*") if path.is_file()) < MOST_BYTES


@pytest.mark.sampled(7)
@pytest.mark.parametrize("name", ["svmlight", "csv", "toml", "npz", "lp", "result", "bench"])
def test_mutated_files_are_read_or_refused(name: str) -> None:
    campaign = fuzz.Campaign(name, seed=1, guided=False)
    campaign.run(40)
    assert not campaign.faults
    assert sum(campaign.counts[head] for head in fuzz.HEADS) == 40


@pytest.mark.slow
@pytest.mark.parametrize("name", fuzz.TARGETS if sys.platform == "linux" else [])
def test_many_mutated_files_in_a_process_of_their_own(name: str) -> None:
    campaign = fuzz.Campaign(name, seed=7)
    fuzz.isolated(campaign, 150, seconds=60.0)
    assert not campaign.faults
    assert campaign.counts["value"] + campaign.counts["refused"] > 0


@pytest.mark.every
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_command_lines_over_mutated_files(seed: int) -> None:
    assert fuzz_commands.campaign(50, 100 + seed) == []


def test_a_fault_is_found_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(folder: Path) -> None:
        if b"9" in (folder / "rows.lp").read_bytes():
            raise ZeroDivisionError

    target = fuzz.Target(lambda: {"rows": {"rows.lp": b"a b c\nd\n"}}, broken)
    monkeypatch.setitem(fuzz.TARGETS, "lp", target)  # type: ignore[arg-type]
    monkeypatch.setattr(fuzz, "BOMBED", 0.0)
    campaign = fuzz.Campaign("lp", 1, tmp_path, guided=False)
    campaign.run(200)
    assert campaign.counts["error"] > 0
    (kept,) = (tmp_path / "lp").iterdir()
    assert fuzz.again(kept).kind == "error"


def test_a_reader_that_hangs_or_takes_all_memory_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def hangs(_folder: Path) -> None:
        while True:
            pass

    monkeypatch.setattr(fuzz, "PATIENCE", 0.05)
    files = {"d.svm": b""}
    assert fuzz.judged(fuzz.Target(dict, hangs), files, files, tmp_path / "a").kind == "hang"
    monkeypatch.setattr(fuzz, "PATIENCE", 10.0)
    much = fuzz.Target(dict, lambda _folder: bytearray(fuzz.MOST_MEMORY + (1 << 30)))
    assert fuzz.judged(much, files, files, tmp_path / "b").kind == "memory"
