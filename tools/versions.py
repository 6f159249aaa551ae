"""The versions that the package runs on, each as a stage of its own: ``python3 tools/versions.py STAGE ...``.

    python3.11, python3.12, python3.13, python3.14   the newest dependencies that this Python gets
    oldest     Python 3.11 with the lower bound of every dependency in pyproject.toml
    newest     the newest Python on this machine with the newest dependencies, before their release too
    bare       the wheel alone, where there is no compiler, no make and no repository
    all        all of them, those that this machine cannot have left out, which is said

A stage makes a virtual environment, installs the wheel and what it needs, runs the tests in `TESTS`, and proves and
verifies the shipped data by the installed command. Needs Python 3.11 or newer and a package index; `.ci/run STAGE`
does the same. Nothing of the package is imported here.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
OLDEST, NEWEST = (3, 11), (3, 14)
PYTHONS = [f"python{OLDEST[0]}.{minor}" for minor in range(OLDEST[1], NEWEST[1] + 1)]
STAGES = [*PYTHONS, "oldest", "newest", "bare"]
EXTRAS = ("scip", "parquet", "plot", "dask")
TOOLS = re.compile(r"(pandas|hypothesis|pytest(-\w+)?)>=")
"""Of what developers install: what tests import. The others check text, which does not depend on versions here."""
TESTS = [
    "tests/solvers/test_cones.py",
    "tests/solvers/test_highs_statuses.py",
    "tests/formulation/test_pyomo_rows.py",
    "tests/formulation/test_conic.py",
    "tests/models/test_cvxpy_method.py",
    "tests/models/test_pyomo_solver.py",
    "tests/kernels/test_bound.py",
    "tests/kernels/test_columns.py",
    "tests/readers/test_frames.py",
    "tests/readers/test_parquet.py",
    "tests/readers/test_npz.py",
    "tests/estimators/test_fsp.py",
    "tests/drivers/test_conic_driver.py",
    "tests/drivers/test_monolithic.py",
    "tests/cli/test_cli_solve.py",
    "tests/report/test_plots.py",
    "tests/kept_results",
    "tests/test_pickle.py",
    "tests/test_cache.py",
    "tests/test_kept.py",
    "tests/test_lent.py",
    "tests/test_pointers.py",
]
"""What meets every dependency at its edge: solvers, both modelling languages, readers, plots, scikit-learn, numba."""
BARE_PROGRAMS = ("sh", "uname", "env")
"""What a machine without a compiler still has."""


class NotHereError(Exception):
    """This machine lacks what a stage is about."""


def main(names: list[str]) -> int:
    """Run stages one after the other; the exit code says whether all of them passed."""
    asked = STAGES if names == ["all"] else names
    unknown = [name for name in asked if name not in STAGES]
    if unknown or not asked:
        print(f"no stage {', '.join(unknown) or 'named'}; there are {', '.join(STAGES)}, and all", file=sys.stderr)
        return 2
    said = []
    for name in asked:
        began = time.monotonic()
        print(f"\n== {name}", flush=True)
        try:
            with tempfile.TemporaryDirectory() as scratch:
                word = stage(name, Path(scratch))
        except NotHereError as reason:
            word = f"not here: {reason}"
        except subprocess.CalledProcessError as error:
            word = f"FAILED: {' '.join(map(str, error.cmd))[:200]}"
        said.append((name, word))
        print(f"{time.strftime('%Y-%m-%d')}  {time.monotonic() - began:5.0f} s  {name:10}  {word}", flush=True)
    print("\n== versions")
    for name, word in said:
        print(f"{name:10}  {word}")
    failed = [word for _, word in said if word.startswith("FAILED") or (names != ["all"] and word.startswith("not"))]
    return 1 if failed else 0


def stage(name: str, scratch: Path) -> str:
    """Run one; what it ran on."""
    python = interpreter(name)
    run([python, "-m", "venv", scratch / "venv"])
    inside = scratch / "venv" / ("Scripts" if os.name == "nt" else "bin")
    pip = [inside / "python", "-m", "pip", "--disable-pip-version-check"]
    run([*pip, "wheel", "--quiet", "--no-deps", "--wheel-dir", scratch, ROOT])
    wheel = next(scratch.glob("mipfs-*.whl"))
    if name == "bare":
        run([*pip, "install", "--quiet", "--only-binary", ":all:", wheel], scratch, bare(scratch))
        proven(inside, scratch, bare(scratch))
    else:
        chosen = ["--constraint", constraints(scratch)] if name == "oldest" else ["--upgrade"]
        early = ["--pre"] if name == "newest" else []
        run([*pip, "install", "--quiet", *chosen, *early, f"{wheel}[{','.join(EXTRAS)}]", *tools()])
        run([inside / "python", "-m", "tests.compile"])
        run([inside / "python", "-m", "pytest", "-q", "-m", "not slow", "-n", "auto", "--dist", "worksteal", *TESTS])
        proven(inside, scratch, None)
    return versions(inside / "python")


def interpreter(name: str) -> str:
    """The path of the Python that a stage is about.

    Raises
    ------
    NotHereError
    """
    wanted = {"oldest": PYTHONS[:1], "newest": PYTHONS[::-1], "bare": PYTHONS[::-1]}.get(name, [name])
    for one in wanted:
        for found in found_of(one):
            code = f"import sys, ensurepip; sys.exit('{one}' != 'python%d.%d' % sys.version_info[:2])"
            if subprocess.run([found, "-c", code], capture_output=True, check=False).returncode == 0:
                return found
    raise NotHereError(f"no {' or '.join(wanted)} with its venv module")


def found_of(name: str) -> Iterator[str]:
    """Files that may be a Python: on the path, and where pyenv puts them."""
    on_path = shutil.which(name)
    if on_path:
        yield on_path
    for folder in (os.environ.get("PYENV_ROOT"), Path.home() / ".pyenv"):
        if folder:
            yield from map(str, sorted(Path(folder).glob(f"versions/{name.removeprefix('python')}.*/bin/python")))


def constraints(scratch: Path) -> Path:
    """A file that holds every dependency at the lower bound that pyproject.toml states."""
    stated = [*PROJECT["dependencies"], *(one for extra in EXTRAS for one in PROJECT["optional-dependencies"][extra])]
    lines = [re.sub(r"\[.*?\]", "", one).replace(">=", "==") for one in [*stated, *tools()]]
    place = scratch / "oldest.txt"
    place.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return place


def tools() -> list[str]:
    """What tests import beside the package's own dependencies."""
    return [one for one in PROJECT["optional-dependencies"]["dev"] if TOOLS.match(one)]


def bare(scratch: Path) -> dict[str, str]:
    """The environment of a machine without compiler and make: a path with next to nothing on it."""
    folder = scratch / "bin"
    folder.mkdir(exist_ok=True)
    for program in BARE_PROGRAMS:
        found = shutil.which(program)
        if found and not (folder / program).exists():
            (folder / program).symlink_to(found)
    kept = {key: value for key, value in os.environ.items() if key not in ("CC", "CXX", "PYTHONPATH")}
    return {**kept, "PATH": str(folder), "NUMBA_CACHE_DIR": str(scratch / "compiled")}


def proven(inside: Path, scratch: Path, environment: dict[str, str] | None) -> None:
    """Solve the shipped data by the installed command and verify the proof, from a folder without the repository."""
    for program in ("gcc", "cc", "clang", "make"):
        if environment and shutil.which(program, path=environment["PATH"]):
            raise AssertionError(f"{program} is on the path of a machine that is to have none")
    run([inside / "mipfs", "demo", "--quiet", "--json", "demo.json"], scratch, environment)
    run([inside / "mipfs", "verify", "demo.json", ROOT / "instances" / "wdbc.svm"], scratch, environment)
    if '"status": "OPTIMAL"' not in (scratch / "demo.json").read_text(encoding="utf-8"):
        raise subprocess.CalledProcessError(1, ["mipfs", "demo", "is not OPTIMAL"])


def versions(python: Path) -> str:
    """The versions that an environment has of the package's own dependencies."""
    names = [re.split(r"[>=\[]", one)[0] for one in PROJECT["dependencies"]]
    code = (
        "import platform, importlib.metadata as m, sys; print('Python ' + platform.python_version(), *"
        "(f'{n} {m.version(n)}' for n in sys.argv[1:]), sep=', ')"
    )
    return subprocess.run([python, "-c", code, *names], capture_output=True, text=True, check=True).stdout.strip()


def run(command: list[str | Path], folder: Path = ROOT, environment: dict[str, str] | None = None) -> None:
    """One command, which is printed; its failure is the stage's."""
    print("$", *command, flush=True)
    subprocess.run(command, cwd=folder, env=environment, check=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
