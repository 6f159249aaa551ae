"""What only a process of its own can show: start-up time, signals, pipes."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mipfs.cli import main
from tests.cli.attack import noise

WDBC = Path(__file__).resolve().parents[2] / "instances" / "wdbc.svm"
MIPFS = (sys.executable, "-m", "mipfs")


def run(*args: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(args, capture_output=True, text=True, timeout=60, check=False, **options)  # type: ignore[call-overload, no-any-return]


@pytest.mark.slow
def test_help_is_quick() -> None:
    """The best of three, in seconds of the processor where the system counts them; 0.4 s is the aim."""

    def spent() -> float:
        return sum(os.times()[2:4]) if os.name == "posix" else time.perf_counter()

    seconds = []
    for _ in range(3):
        began = spent()
        done = run(*MIPFS, "--help")
        seconds.append(spent() - began)
        assert done.returncode == 0
        assert "solve" in done.stdout
    assert min(seconds) < 0.8


def test_help_and_import_load_nothing_heavy() -> None:
    heavy = ["numpy", "scipy", "pyomo", "cvxpy", "sklearn", "numba", "highspy", "clarabel", "pandas", "rich", "pyarrow"]
    code = (
        "import sys, mipfs\n"
        "assert 'typer' not in sys.modules\n"
        "assert mipfs.__version__ and not set(sys.argv[1:]) & set(sys.modules)\n"
        "from mipfs.cli import main\n"
        "main(['solve', '--help'])\n"
        "print('loaded:', sorted(set(sys.argv[1:]) & set(sys.modules)))\n"
    )
    done = run(sys.executable, "-c", code, *heavy)
    assert done.stderr == ""
    assert done.stdout.endswith("loaded: []\n")


def test_a_process_does_not_work_for_what_it_does_not_need() -> None:
    """Threads of OpenBLAS that wait for work spin for a tenth of a second each, and what is loaded is no garbage."""
    code = (
        "import gc, time, mipfs.cli as cli\n"
        "def call(argv):\n"
        "    import numpy, scipy.linalg.blas\n"
        "    time.sleep(0.3)\n"
        "    print(time.process_time() - time.thread_time(), gc.get_threshold()[0])\n"
        "    return 0\n"
        "cli._run_app = call\n"
        "cli.main()\n"
    )
    unlimited = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    done = run(sys.executable, "-c", code, env=unlimited)
    spun, new = done.stdout.split()
    assert done.stderr == ""
    assert float(spun) < 0.02, "CPU seconds of other threads"
    assert int(new) > 10_000


def test_what_the_user_says_of_waiting_threads_stays_and_so_does_a_process_that_calls_the_command() -> None:
    code = (
        "import gc, os, sys, mipfs.cli as cli\n"
        "before = gc.get_threshold()\n"
        "cli._run_app = lambda argv: print(os.environ.get('OPENBLAS_THREAD_TIMEOUT'), gc.get_threshold() == before) "
        "or 0\n"
        "cli.main(sys.argv[1:] or None)\n"
    )
    unset = {name: value for name, value in os.environ.items() if name != "OPENBLAS_THREAD_TIMEOUT"}
    assert run(sys.executable, "-c", code, "models", env=unset).stdout == "None True\n"
    assert run(sys.executable, "-c", code, env={**unset, "OPENBLAS_THREAD_TIMEOUT": "26"}).stdout == "26 False\n"


@pytest.mark.slow
def test_the_table_of_models_loads_no_modelling_language() -> None:
    code = (
        "import sys\n"
        "from mipfs.cli import main\n"
        "main(['models', '--quiet'])\n"
        "print({'pyomo', 'cvxpy', 'sklearn', 'scipy.stats', 'pandas'} & set(sys.modules))\n"
    )
    done = run(sys.executable, "-c", code)
    assert (done.stdout, done.stderr) == ("set()\n", "")


def work_for(pid: int, seconds: float) -> None:
    """Wait until a process has worked so long: on a busy machine that takes longer than the clock says."""
    stat = Path(f"/proc/{pid}/stat")
    if not stat.exists():
        time.sleep(seconds)
        return

    def worked() -> float:
        user, system = stat.read_text().rsplit(")", 1)[1].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    begun, deadline = worked(), time.monotonic() + 30
    while worked() < begun + seconds and time.monotonic() < deadline:
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
def test_ctrl_c_leaves_the_incumbent(tmp_path: Path) -> None:
    (tmp_path / "long.py").write_text(
        "from pathlib import Path\n"
        "import mipfs\n"
        "def build(data):\n"
        "    Path(__file__).with_name('ready').touch()\n"
        "    return mipfs.Problem(data, M=20, C=1)\n"
    )
    (tmp_path / "noise.svm").write_text(noise(random.Random(0)))
    args = [*MIPFS, "solve", str(tmp_path / "long.py"), str(tmp_path / "noise.svm"), "--gap", "0"]
    with subprocess.Popen([*args, "--json", "-"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 30
        while not (tmp_path / "ready").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        work_for(process.pid, 1.0)
        process.send_signal(signal.SIGINT)
        asked = time.monotonic()
        out, err = process.communicate(timeout=30)
        waited = time.monotonic() - asked
    assert (process.returncode, err) == (0, "")
    document = json.loads(out)
    assert (document["status"], document["stop_reason"]) == ("FEASIBLE", "INTERRUPTED")
    assert document["bound"] <= document["objective"]
    assert waited < 3, "a second, and room for a busy machine"


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs head")
def test_a_reader_that_leaves_early_is_no_error() -> None:
    done = run("bash", "-c", f"set -o pipefail; {sys.executable} -m mipfs models | head -1")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_a_name_that_the_terminal_cannot_show_ends_nothing(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("größe,label\n1,0\n-1,1\n", encoding="utf-8")
    done = run(
        *MIPFS, "solve", "fsp-m", str(tmp_path / "d.csv"), "-p", "M=1", env={**os.environ, "PYTHONIOENCODING": "ascii"}
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "gr??e" in done.stdout


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    import mipfs

    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"mipfs {mipfs.__version__}\n"
    assert main([]) == 0
    assert "Usage: mipfs" in capsys.readouterr().out


@pytest.mark.slow
def test_what_a_library_prints_by_itself_is_not_in_the_json() -> None:
    """HiGHS has printed a line now and then, whatever its options say."""
    code = (
        "import ctypes, sys\n"
        "from mipfs import drivers\n"
        "from mipfs.cli import main\n"
        "solve = drivers.solve\n"
        "def loud(*args, **options):\n"
        "    ctypes.CDLL(None).puts(b'a line of a solver')\n"
        "    return solve(*args, **options)\n"
        "drivers.solve = loud\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    asked = ("solve", "fsp-m", str(WDBC), "--scale", "standard", "-p", "M=1", "-p", "C=0.01")
    done = run(sys.executable, "-c", code, *asked, "--json", "-")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["status"] == "OPTIMAL"
    assert done.stderr == "a line of a solver\n"
