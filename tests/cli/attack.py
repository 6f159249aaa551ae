"""Runs malformed command lines, and interrupts sound ones: no traceback, no hang, the right exit code, nothing lost.

``python -m tests.cli.attack --count 500 --signals 50 --seed 1`` does so with processes and prints what went wrong.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.cli.malformed import SVM, Case, cases, standard_files

ROOT = Path(__file__).resolve().parents[2]
HANG = 10.0
"""Seconds after which a command line counts as hanging."""
NOISE = 200, 100
"""Samples and features of data without any signal, which nothing proves in the seconds before the signals."""
LONG = """\
from pathlib import Path
import mipfs
def build(data):
    Path(__file__).with_name("ready").touch()
    return mipfs.Problem(data, M=20, C=1)
"""


def wrong(case: Case, code: int, out: str, err: str, seconds: float, before: dict[str, bytes], folder: Path) -> str:
    """What went wrong, in a few words; "" for nothing."""
    lines = [line for line in err.splitlines() if not line.startswith("mipfs: warning: ")]
    if "Traceback" in err or "internal error" in err:
        return f"internal error: {err.strip().splitlines()[-1]}"
    if code not in case.codes:
        return f"exit code {code}, not {case.codes}: {err.strip()[:200]}"
    if seconds > HANG:
        return f"took {seconds:.0f} s"
    if code != 0 and case.one_line and len(lines) != 1:
        return f"{len(lines)} lines on standard error: {err.strip()[:200]!r}"
    if code == 0 and lines:
        return f"exit code 0, but it said {lines[0][:200]!r}"
    for name in case.kept:
        if name in before and (folder / name).read_bytes() != before[name]:
            return f"{name} was changed"
    left = [path.name for path in folder.iterdir() if path.name.endswith((".part", ".kept"))]
    return f"left behind: {left}" if left else ""


def prepared(case: Case, folder: Path, sound: dict[str, bytes]) -> dict[str, bytes]:
    """Write the files of a case into an empty folder; returns them."""
    files = {**sound, **case.files}
    for name, content in files.items():
        (folder / name).write_bytes(content)
    (folder / "sub").mkdir()
    (folder / "link.svm").symlink_to("d.svm")
    return files


def solved(folder: Path) -> tuple[bytes, bytes]:
    """A sound result and its certificate; what is compiled at first use is compiled then."""
    (folder / "d.svm").write_text(SVM)
    process(("solve", "fsp-m", "d.svm", "-p", "M=1", "-q", "--json", "g.json"), folder, 600.0)
    return (folder / "g.json").read_bytes(), (folder / "g.cert.npz").read_bytes()


def process(args: Sequence[str], folder: Path, patience: float = 60.0) -> tuple[int, str, str]:
    """Run ``mipfs ARGS...`` in a folder: exit code, standard output, standard error."""
    done = subprocess.run(
        [sys.executable, "-m", "mipfs", *args], cwd=folder, capture_output=True, timeout=patience, check=False,
        env=environment(), stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")


def run_all(seed: int, count: int, call: Callable[[Sequence[str], Path], tuple[int, str, str]]) -> list[str]:
    """Run the cases and return what went wrong."""
    failures = []
    with tempfile.TemporaryDirectory() as home:
        base = Path(home) / "sound"
        base.mkdir()
        result, certificate = solved(base)
        for number, case in enumerate(cases(seed, count, result)):
            folder = Path(home) / str(number)
            folder.mkdir()
            before = prepared(case, folder, standard_files(result, certificate))
            began = time.monotonic()
            try:
                code, out, err = call(case.args, folder)
                said = wrong(case, code, out, err, time.monotonic() - began, before, folder)
            except subprocess.TimeoutExpired:
                said = "does not end"
            if said:
                shown = " ".join(arg if len(arg) < 60 else f"{arg[:60]}..." for arg in case.args)
                failures.append(f"{seed}:{number} {case.name}: mipfs {shown!r}: {said}")
            shutil.rmtree(folder)
    return failures


def interrupted(seed: int) -> str:
    """A long run over an earlier result that gets one to three signals; what went wrong, or nothing."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        solved(folder)
        before = {name: (folder / name).read_bytes() for name in ("g.json", "g.cert.npz")}
        (folder / "long.py").write_text(LONG)
        (folder / "noise.svm").write_text(noise(rng))
        args = ["solve", "long.py", "noise.svm", "--gap", "0"]
        sent = [rng.choice((signal.SIGINT, signal.SIGTERM, signal.SIGHUP)) for _ in range(rng.randrange(1, 4))]
        with subprocess.Popen(
            [sys.executable, "-m", "mipfs", *args, "--json", "g.json"], cwd=folder, env=environment(),
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, preexec_fn=heard,
        ) as process:  # fmt: skip
            while not (folder / "ready").exists() and process.poll() is None:
                time.sleep(0.02)
            time.sleep(rng.uniform(0, 4))
            for number in sent:
                process.send_signal(number)
                time.sleep(rng.choice((0.0, 0.001, 0.05, 0.5)))
            began = time.monotonic()
            try:
                err = process.communicate(timeout=60)[1].decode()
            except subprocess.TimeoutExpired:
                process.kill()
                return f"{seed}: {sent}: does not end"
        code, seconds = process.returncode, time.monotonic() - began
        after = {name: (folder / name).read_bytes() for name in before}
        said = f"{seed}: {sent}: exit code {code} after {seconds:.1f} s: {err.strip()[-200:]}"
        document = json.loads(after["g.json"])
        stated = document["certificate"]
        whole = stated is None or stated["sha256"] == hashlib.sha256(after["g.cert.npz"]).hexdigest()
        kept, new = after == before, document["stop_reason"] == "INTERRUPTED" and document["selected"]
        right = (code == 0 and new and whole and not err) or (code == 4 and kept and err.count("\n") == 1)
        return "" if right and seconds < HANG else said


def noise(rng: random.Random) -> str:
    """Labels that have nothing to do with the features."""
    n, p = NOISE
    rows = (" ".join(f"{j + 1}:{rng.gauss(0.0, 1.0):.3f}" for j in range(p)) for _ in range(n))
    return "".join(f"{(-1) ** i:+d} {row}\n" for i, row in enumerate(rows))


def heard() -> None:
    """Undo what a shell does to a process in the background."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def environment() -> dict[str, str]:
    """That of a process which takes this copy of the package."""
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def main() -> int:
    """The cases as processes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--signals", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    failures = run_all(given.seed, given.count, process)
    failures += [said for k in range(given.signals) if (said := interrupted(given.seed + k))]
    print("\n".join(failures))
    print(f"{given.count} malformed and {given.signals} interrupted command lines, {len(failures)} failures")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
