"""A command imports nothing from the folder that it is started in, and neither does any process that it starts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mipfs.cli import main
from mipfs.plumbing import machine
from mipfs.run import beside

INSTANCES = Path(__file__).resolve().parents[2] / "instances"
LIBRARIES = (
    "numpy", "scipy", "numba", "llvmlite", "highspy", "clarabel", "cvxpy", "pyomo", "pyscipopt", "joblib",
    "cloudpickle", "sklearn", "threadpoolctl", "typer", "rich", "mipfs", "models", "sitecustomize",
    "usercustomize",
)  # fmt: skip
CREDIT = "credit.csv"


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """A folder of data, and of files that have the name of every module and say that they ran."""
    folder, ran = tmp_path / "foreign", tmp_path / "ran"
    folder.mkdir()
    ran.mkdir()
    for name in (CREDIT, "credit.toml"):
        (folder / name).write_bytes((INSTANCES / name).read_bytes())
    for name in {*sys.stdlib_module_names, *LIBRARIES}:
        said = f"open({str(ran / name)!r}, 'w').close()\nraise ImportError('planted')\n"
        (folder / f"{name}.py").write_text(said)
    return folder


def those_that_ran(foreign: Path) -> list[str]:
    return sorted(path.name for path in (foreign.parent / "ran").iterdir())


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    [
        ("solve", "fsp-m", CREDIT, "--M", "2", "--json", "r.json"),
        ("solve", "fsp-m", CREDIT, "--M", "2", "--driver", "monolithic"),
        ("solve", "qcqp-ssvm", CREDIT, "--M", "2", "--time-limit", "60"),
        ("compare", CREDIT, "--M", "2"),
        ("stability", CREDIT, "--M", "2", "--draws", "2"),
        ("bench", CREDIT, "--methods", "fgm", "--M", "2", "--folds", "2", "--jobs", "2"),
        ("path", CREDIT, "--M", "1:2"),
    ],
    ids=lambda line: " ".join(line[:2]) + " " + line[-1],
)
def test_a_command_in_a_folder_of_foreign_modules(line: tuple[str, ...], foreign: Path) -> None:
    if "monolithic" in line:
        pytest.importorskip("pyscipopt")
    script = foreign.parent / "started.py"  # as the installed `mipfs`: Python looks in its folder, not in the current
    script.write_text("from mipfs.cli import main\nmain()\n")
    done = subprocess.run(
        [sys.executable, script, *line, "--quiet"],
        cwd=foreign,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert those_that_ran(foreign) == []
    assert "planted" not in done.stderr
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_the_package_run_as_a_module_forgets_the_folder_where_it_was_found(foreign: Path) -> None:
    """`python -m` itself has looked there: what Python needs for that, and the package, are those of the folder."""
    for path in foreign.glob("*.py"):
        if path.stem not in {"numpy", "scipy", "numba", "typer", "tomllib", "csv", "secrets"}:
            path.unlink()
    done = subprocess.run(
        [sys.executable, "-m", "mipfs", "solve", "fsp-m", CREDIT, "--M", "2", "--quiet"],
        cwd=foreign, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert those_that_ran(foreign) == []
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_a_process_that_compiles_beside_looks_nowhere_else(foreign: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(foreign)
    ended: list[tuple[int, int]] = []
    beside.compile_beside([[("os", "getpid", ())]], lambda: False, on_end=lambda k, code: ended.append((k, code)))
    assert ended == [(0, 0)]
    assert those_that_ran(foreign) == []


def test_the_environment_of_a_caller_is_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:

    for before in (None, "", "yes"):
        monkeypatch.delenv(machine.SAFE_PATH, raising=False)
        if before is not None:
            monkeypatch.setenv(machine.SAFE_PATH, before)
        with machine.safe_path():
            assert os.environ[machine.SAFE_PATH] == "1"
        assert os.environ.get(machine.SAFE_PATH) == before
        assert main(["models", "--quiet"]) == 0
        assert os.environ.get(machine.SAFE_PATH) == before
