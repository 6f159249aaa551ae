"""The cache of machine code: its key, its place, what is removed; and that no run compiles after its clock began."""

from __future__ import annotations

import importlib
import logging
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from mipfs.compiled import kept
from mipfs.compiled.made_of import hash_of_kernel
from mipfs.run import warm_up

ROOT = Path(__file__).resolve().parents[1]
RUN = """
import os, sys
import numpy as np
from numba import njit
from scipy import sparse
import mipfs, mipfs.drivers
from mipfs import Instance, Problem

storage, *cases = sys.argv[1:]
# Every case in a process of its own, which has met no kernel yet: its parent has started numba, no more.
njit(lambda x: x)(1.0)
mipfs.drivers.capabilities()
for case in cases:
    child = os.fork()
    if not child:
        loss, driver = case.split()
        break
    if os.waitpid(child, 0)[1] != 0:
        print(case, "failed", flush=True)
else:
    sys.exit()
from mipfs.compiled.cache import KernelCache
clock, late, load = [], [], KernelCache.load_overload

def loading(self, *given):
    # The first call with new types: compiled where it is not kept.
    late.extend((str(self._function), str(given[0])) for _ in clock)
    return load(self, *given)

class Run(mipfs.drivers.session.Run):
    def __init__(self, *given, **more):
        super().__init__(*given, **more)
        clock.append(driver)

KernelCache.load_overload = loading
mipfs.drivers.session.Run = Run
rng = np.random.default_rng(0)
X = rng.normal(size=(60, 40)) * (rng.random((60, 40)) < (0.1 if storage == "sparse" else 1.0))
y = np.where(X[:, :5].sum(axis=1) + 0.3 * rng.normal(size=60) > 0, 1.0, -1.0)
data = Instance.from_arrays(sparse.csc_array(X) if storage == "sparse" else X, y)
kind = {"bias": False, "measure": "f1"} if loss == "structural" else {}
problem = Problem(data, loss=loss, M=4, **kind)
for asked in (problem, problem.with_rows(np.ones((1, 40)), 1, 3), problem.replace(lam=0.01)):
    mipfs.solve(asked, driver)
    clock.clear()
print(case, late, flush=True)
"""


def test_the_key_is_over_every_file_that_machine_code_depends_on(tmp_path: Path) -> None:
    files = {path.relative_to(kept.PACKAGE).as_posix() for path in kept.sources()}
    assert {"kernels/newton.py", "kernels/kinds.py", "kernels/boolean_newton.py", "kernels/scores.py"} <= files
    users = {p for p in kept.PACKAGE.rglob("*.py") if "\n@compiled(" in p.read_text(encoding="utf-8")}
    assert users <= set(kept.sources())
    assert not [p for p in kept.PACKAGE.rglob("*.py") if "@njit" in p.read_text(encoding="utf-8")]
    (tmp_path / "compiled.py").touch()
    (tmp_path / "a.py").write_text("from mipfs.compiled import compiled\nfrom mipfs.b import TWO\n", encoding="utf-8")
    (tmp_path / "b.py").write_text("TWO = 2\n", encoding="utf-8")
    (tmp_path / "c.py").write_text("THREE = 3\n", encoding="utf-8")
    assert [path.name for path in kept.sources(tmp_path)] == ["a.py", "b.py", "compiled.py"]
    before = kept.version.__wrapped__(tmp_path)
    (tmp_path / "c.py").write_text("THREE = 4\n", encoding="utf-8")
    assert kept.version.__wrapped__(tmp_path) == before
    (tmp_path / "b.py").write_text("TWO = 3\n", encoding="utf-8")
    assert kept.version.__wrapped__(tmp_path) != before


@pytest.mark.slow
def test_an_edit_in_one_file_reaches_the_kernels_of_another(tmp_path: Path) -> None:
    package = tmp_path / "mipfs"
    package.mkdir()
    (package / "__init__.py").touch()
    shutil.copytree(kept.PACKAGE / "compiled", package / "compiled")
    inner = "from mipfs.compiled import compiled\n@compiled()\ndef inner():\n    return {}\n"
    outer = inner.replace("@", "from mipfs.a import inner\n@").replace("inner():", "outer():").replace("{}", "inner()")
    (package / "b.py").write_text(outer, encoding="utf-8")
    said = []
    for value in (1, 2):
        (package / "a.py").write_text(inner.format(value), encoding="utf-8")
        code = "from mipfs.b import outer; print(outer(), sum(outer.stats.cache_hits.values()))"
        for _ in range(2):
            environment = {**os.environ, "PYTHONPATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
            ran = subprocess.run(
                [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True, cwd=tmp_path
            )
            said.append(ran.stdout.split())
    assert said == [["1", "0"], ["1", "1"], ["2", "0"], ["2", "1"]]
    assert len({path.parent for path in (tmp_path / "cache").rglob("*.nbi")}) == 2


OWN = {
    "values": "A, B, UNUSED = 1.0, (2.0, 3), 4.0\n",
    "helper": "from mipfs.compiled import compiled\nimport values\n"
    "@compiled()\ndef helped():\n    return values.B[1]\n",
    "mine": "from mipfs.compiled import compiled\nfrom values import A\nfrom helper import helped\n"
    "@compiled()\ndef mine():\n    return A + helped()\n",
}
"""A kernel of one's own, with a constant of another file and a kernel of a third, which reads the first."""


def test_an_edit_in_a_second_file_of_ones_own_reaches_a_kernel(tmp_path: Path) -> None:
    """The code of a loss went on running with the old value of a constant in another file: a wrong OPTIMAL."""
    changes = (
        ("values", "A, ", "A, "), ("values", "1.0", "10.0"), ("values", "3)", "30)"), ("values", "4.0", "5.0"),
        ("helper", "values.B[1]", "-values.B[1]"), ("mine", "A +", "A -"),
    )  # fmt: skip
    said, texts = [], dict(OWN)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(kept.PACKAGE.parent)])}
    environment |= {"XDG_CACHE_HOME": str(tmp_path / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
    code = "from mine import mine; print(mine(), sum(mine.stats.cache_hits.values()))"
    for name, old, new in (("mine", "A", "A"), *changes):
        assert old in texts[name]
        texts[name] = texts[name].replace(old, new)
        for file, text in texts.items():
            (tmp_path / f"{file}.py").write_text(text, encoding="utf-8")
        ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
        said.append(ran.stdout.split())
    assert said == [
        ["4.0", "0"], ["4.0", "1"], ["13.0", "0"], ["40.0", "0"], ["40.0", "1"], ["-20.0", "0"], ["40.0", "0"],
    ]  # fmt: skip


def test_a_kernel_that_stands_in_no_file_is_known_by_its_code() -> None:
    """That of a cell of a notebook, at the same line as another of its name."""

    def made(body: str, **names: object) -> str:
        exec(compile(f"def choose():\n    return {body}\n", "<cell>", "exec"), names)
        return hash_of_kernel(names["choose"])

    assert made("1") == made("1")
    assert made("a", a=np.arange(3)) == made("a", a=np.arange(3), b=2)
    values = 1, 1.0, "1", (1,), None, np.arange(3), np.ones(3), np.int8(1)
    found = [made("1"), made("2"), *(made("a", a=value) for value in values)]
    assert len({*found}) == len(found)


def test_a_hash_of_code_is_the_same_in_every_process() -> None:
    """A set of words in it has another order in each."""
    code = (
        "from mipfs.compiled.made_of import hash_of_code\n"
        "def f(x):\n    return x in {'a', 'b', 'c', 'd'} or (lambda y: y in {1, ('e', frozenset())})(x)\n"
        "def g():\n    return lambda: late\n    late = 1\n"
        "print(hash_of_code(f, g()))\n"
    )
    ran = [
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=kept.PACKAGE.parent,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in "123"
    ]  # fmt: skip
    assert len(ran[0]) > 60
    assert len({*ran}) == 1


def test_machine_code_of_other_sources_is_removed_after_a_while(tmp_path: Path) -> None:
    mine, fresh, old, other = (tmp_path / name for name in ("mipfs-1", "mipfs-2", "mipfs-3", "elsewhere"))
    for folder in (mine, fresh, old, other):
        folder.mkdir()
    long_ago = time.time() - 2 * kept.KEPT_SECONDS
    for folder in (mine, old, other):
        os.utime(folder, (long_ago, long_ago))
    kept.remove_stale(mine)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["elsewhere", "mipfs-1", "mipfs-2"]


def test_compiling_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    numba = importlib.import_module("numba")
    with caplog.at_level(logging.INFO, logger="mipfs"), warm_up.announce_compiling():
        for value in (1, 1.0):
            numba.njit(lambda x: x + 1)(value)
    assert len(caplog.records) == 1
    assert "compiling" in caplog.text
    caplog.clear()
    with caplog.at_level(logging.INFO, logger="mipfs"), warm_up.announce_compiling():
        pass
    assert not caplog.records


LOADED = [
    *(f"{loss} {driver}" for loss in ("hinge", "squared-hinge", "logistic") for driver in ("branch", "kelley")),
    "hinge gbd", "logistic gbd", "squared-hinge conic", "structural two_layer", "structural branch",
]  # fmt: skip
"""A loss and the driver that takes it."""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.parametrize(
    ("storage", "cases"),
    [
        ("dense", LOADED[::2]),
        pytest.param("sparse", LOADED[1::2], marks=pytest.mark.slow),
        pytest.param("dense", LOADED[1::2], marks=pytest.mark.slow),
        pytest.param("sparse", LOADED[::2], marks=pytest.mark.slow),
    ],
    ids=["dense", "sparse", "dense again", "sparse again"],
)
def test_no_kernel_is_met_for_the_first_time_after_the_clock_began(storage: str, cases: list[str]) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", RUN, storage, *cases]
    ran = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert ran.stdout.splitlines() == [f"{case} []" for case in cases], ran.stdout + ran.stderr
