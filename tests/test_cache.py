"""Kept machine code: digits do not depend on who compiled it; a numba that keeps it otherwise than is expected."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from numba import config

from mipfs.compiled import cache, compiled, kept


class _Renamed:
    """A class of a numba to come: what saves and loads has other names."""

    def __init__(self, *given: Any) -> None:
        raise AssertionError("it is not to be used")

    def store(self, key: Any, data: Any) -> None:
        """As `save` was."""


class _WithMore(_Renamed):
    """The same names, which take one argument more."""

    def load(self, key: Any, kind: Any) -> None:
        """Ask for a kind."""

    def save(self, key: Any, data: Any, kind: Any) -> None:
        """Keep of a kind."""

    def flush(self) -> None:
        """Nothing."""

    def _load_index(self) -> None:
        """Nothing."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for machine code, where none is yet, and nothing is known of it."""
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))
    known = kept.home, kept.cache_folders, kept.warn_not_kept, cache.is_as_expected, cache.has_failed
    for one in known:
        one.cache_clear()
    yield tmp_path
    for one in known:
        one.cache_clear()


def _thrice(x: float) -> float:
    return 3.0 * x


def _hits() -> tuple[int, bool]:
    """How often a new kernel finds its code on disk, as in another process; whether it is kept in our folders."""
    cache.is_as_expected.cache_clear()
    cache.has_failed.cache_clear()
    kernel = compiled()(_thrice)
    assert kernel(2.0) == 6.0
    return sum(kernel.stats.cache_hits.values()), isinstance(kernel._cache, cache.KernelCache)


def _are_ours(folder: Path) -> list[bool]:
    """Of every file of machine code: whether it lies in our folder."""
    return [path.parent.name == f"mipfs-{kept.key()}" for path in folder.rglob("*.nbc")]


def test_where_all_is_as_expected_code_lies_in_our_folder(folder: Path) -> None:
    assert [_hits(), _hits()] == [(0, True), (1, True)]
    assert _are_ours(folder) == [True]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("IndexDataCacheFile", None),
        ("IndexDataCacheFile", _Renamed),
        ("IndexDataCacheFile", _WithMore),
        ("CompileResult", _Renamed),
        ("rtsys", None),
    ],
)
def test_what_is_missing_or_takes_other_arguments_is_left_to_numba(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, other: Any
) -> None:
    monkeypatch.setattr(cache, name, other)
    assert [_hits(), _hits()] == [(0, False), (1, False)]
    assert _are_ours(folder) == [False]
    assert cache.is_kept(compiled()(_thrice))  # nobody can tell


def test_a_kernel_that_asks_its_cache_otherwise_has_numbas(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Asked:
        def load(self) -> None:
            """What `load_overload` may be called."""

    monkeypatch.setattr("numba.core.dispatcher.NullCache", Asked)
    assert [_hits(), _hits()] == [(0, False), (1, False)]


@pytest.mark.parametrize("error", [TypeError("one argument more"), AttributeError("no such field")])
def test_where_keeping_fails_numba_keeps_it_and_later_processes_ask_numba(
    folder: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    class Fails(cache.IndexDataCacheFile):
        def save(self, key: Any, data: Any) -> None:
            """It takes the right arguments, and something in it does not fit."""
            raise error

    monkeypatch.setattr(cache, "IndexDataCacheFile", Fails)
    assert compiled()(_thrice)(2.0) == 6.0
    assert [_hits(), _hits()] == [(1, False), (1, False)]
    assert _are_ours(folder) == [False]


def test_where_loading_fails_it_is_compiled(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _hits() == (0, True)

    def fails(*_: Any) -> Any:
        raise TypeError("one argument more")

    monkeypatch.setattr(cache.CompileResult, "_rebuild", fails)
    assert _hits() == (0, True)


SVMS = """
import hashlib, sys
import numpy as np
from scipy import sparse
from mipfs.data.instance import Instance
from mipfs.losses import get_loss
for kind in sys.argv[1:]:
    r = np.random.default_rng(3)
    X = r.normal(size=(160, 12))
    y = np.where(X[:, 0] + 2.0 * r.normal(size=160) > 0.0, 1.0, -1.0)
    X = sparse.csc_array(np.where(r.random(X.shape) < 0.3, X, 0.0)) if kind == "sparse" else X
    solver = get_loss("hinge").Solver(Instance.from_arrays(X, y), np.ones(160), True)
    found = [solver.solve(np.arange(k), tol=1e-9) for k in (4, 5, 9)]
    print(kind, hashlib.sha256(b"".join(one.alpha.tobytes() + one.w.tobytes() for one in found)).hexdigest())
"""
"""SVMs on dense and on sparse rows, whose kernels have functions in common, and what they find to the last bit."""


@pytest.mark.every
@pytest.mark.slow
def test_digits_depend_neither_on_who_compiled_nor_on_what_was_loaded_before(tmp_path: Path) -> None:
    found = []
    for order in (["dense", "sparse"], ["dense", "sparse"], ["sparse", "dense"], ["sparse"]):
        command = [sys.executable, "-c", SVMS, *order]
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=500)
        found.append(sorted(done.stdout.splitlines()))
    compiled_there, loaded, in_another_order, one_kind = found
    assert loaded == compiled_there
    assert in_another_order == compiled_there
    assert one_kind == compiled_there[1:]


@pytest.mark.slow
def test_the_code_of_a_sum_is_loaded_before_its_copies(tmp_path: Path) -> None:
    program = (
        "from mipfs.kernels import newton\n"
        "from numba import float64, int64, types\n"
        "vector, places, matrix = (types.Array(one, d, 'C') for one, d in ((float64, 1), (int64, 1), (float64, 2)))\n"
        "newton.newton_matrix.compile((matrix, places, vector, int64, matrix, matrix))\n"
        "print(sum(newton.newton_matrix.stats.cache_hits.values()), sum(newton.add_gram.stats.cache_hits.values()))\n"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", program]
    said = [
        subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=500).stdout
        for _ in range(2)
    ]
    assert said == ["0 0\n", "1 1\n"]
