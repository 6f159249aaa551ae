"""Command lines over mutated files: `python -m tests.fuzz --commands 1000`.

Each is a process of its own, nine of ten forked from one that has loaded the package, every tenth begun as a user
would. Its exit code is one of the contract, what went wrong is one line on standard error, nothing that a terminal or
a browser obeys is in its output, and no half-written file stays. What `mipfs solve` finds, `mipfs verify` accepts.
"""

from __future__ import annotations

import os
import random
import re
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mipfs.plumbing.memory import measure_peak
from mipfs.run.warm_up import ANNOUNCED
from tests import bombs, mutations
from tests.fuzz import BOMB, MOST_HELD, MOST_MEMORY, PATIENCE, another, keep, written
from tests.fuzz_targets import DATA_NAMES, TARGETS, Files, kept

ROOT = Path(__file__).resolve().parents[1]
WALL = 240.0
"""Seconds after which a command hangs, though it takes none of the processor's."""
EXECUTED = 10
"""Every such command is begun as a user would."""
ODD_ARGUMENT = 0.15
"""How often an argument is mutated too."""
REJECTED = 1
CODES = 0, 2, 3, 4
LIMITED = ("--time-limit", "2", "--gap", "1e-3")
BAD_PAGE = re.compile(r"<script>alert|<img src=x|<b>", re.IGNORECASE)
Args = tuple[str, ...]


@dataclass
class Outcome:
    """What a command did: exit code (negative: killed by that signal), output, errors, seconds of the processor, and
    bytes that it held at most."""

    code: int
    out: str
    err: str
    seconds: float
    held: int = 0


def _data(files: Files) -> str:
    """The data file of a folder."""
    if any(name.startswith("s/") for name in files):
        return "s"
    found = next((name for name in DATA_NAMES if name in files), None)
    return found or next(name for name in ("table.csv", "words.csv", "sparse.svm") if name in files)


def on_data(r: random.Random, files: Files) -> Args:
    """A command that reads a data file."""
    data = _data(files)
    solve = ("solve", "fsp-m", data, "-p", "M=1", "-p", "C=1", "--json", "r.json", *LIMITED)
    return r.choice(
        (
            solve,
            (*solve, "--report", "r.html"),
            (*solve, "--scale", "standard"),
            (*solve, "-p", "loss=squared-hinge"),
            ("path", data, "--M", "1:2", "-p", "C=1", "--json", "r.json", *LIMITED),
            ("convert", data, "new.store"),
            ("compare", data, "-p", "M=1", "-p", "C=1", "--json", "r.json", "--time-limit", "2"),
            ("bench", data, "--methods", "information-gain", "--M", "1", "--folds", "2", "--C", "1", "-o", "b.json"),
            ("stability", data, "--M", "1", "--C", "1", "--draws", "2"),
            ("sketch", data, "--method", "uniform", "-r", "2"),
        )
    )


def on_rows(r: random.Random, files: Files) -> Args:
    """A solve that obeys rows."""
    return (
        "solve",
        "fsp-m",
        "table.csv",
        "-p",
        "M=2",
        "-p",
        "C=1",
        "--subject-to",
        "rows.lp",
        "--json",
        "r.json",
        *LIMITED,
    )


def on_result(r: random.Random, files: Files) -> Args:
    """A command that reads a result."""
    data = _data(files)
    return r.choice(
        (
            ("verify", "r.json", data),
            ("verify", "r.json", data),
            ("predict", "r.json", data),
            ("evaluate", "r.json", data),
            ("predict", "r.json", data, "--scores"),
            ("report", "r.json", "-o", "p.html"),
            ("report", "r.json", "-o", "p.html"),
            ("refit", "r.json", data, "--C", "1", "--json", "new.json"),
            ("scorecard", "r.json", data, "--time-limit", "2"),
            ("verify", "r.json", data, "--json", "-"),
        )
    )


def on_study(r: random.Random, files: Files) -> Args:
    """A command that reads a path or a ladder."""
    return r.choice(
        (
            ("report", "r.json", "-o", "p.html"),
            ("predict", "r.json#M=2", "table.csv"),
            ("verify", "r.json#M=2", "table.csv"),
            ("predict", "r.json#best", "table.csv"),
            ("evaluate", "r.json#best", "table.csv"),
        )
    )


ON: Mapping[str, Callable[[random.Random, Files], Args]] = {
    **dict.fromkeys(("svmlight", "csv", "toml", "npz", "parquet", "store"), on_data),
    "lp": on_rows,
    "result": on_result,
    "certificate": on_result,
    "study": on_study,
    "bench": lambda r, files: ("bench", "words.csv", "--resume", "-o", "b.json", "--time-limit", "1"),
    "classes": lambda r, files: r.choice((
        ("predict", "r.json", "d.csv", "--scores"), ("verify", "r.json", "d.csv"), ("evaluate", "r.json", "d.csv"),
    )),
    "card": lambda r, files: ("predict", "c.json", "table.csv", "--scores"),
    "checkpoint": lambda r, files: r.choice((
        ("solve", "fsp-m", "sparse.svm", "-p", "M=3", "-p", "C=1", "--resume", "s.npz", *LIMITED), ("resume", "s.npz"),
    )),
    "points": lambda r, files: r.choice((
        ("path", "table.csv", "--M", "1:2", "-p", "C=1", "--scale", "standard", "--resume", "p.points", *LIMITED),
        ("resume", "p.points"),
    )),
}  # fmt: skip
"""The commands of every target."""
BESIDE: Mapping[str, Files] = {
    "lp": kept("table.csv", "table.toml"),
    "study": kept("table.csv", "table.toml"),
    "bench": kept("words.csv"),
    "card": kept("table.csv", "table.toml"),
    "points": kept("table.csv", "table.toml"),
}
"""What a target's own folder lacks."""


def forked(args: Sequence[str], folder: Path) -> Outcome:
    """A command in a process that is forked from this one."""
    from mipfs.cli import main

    sys.stdout.flush()
    sys.stderr.flush()
    held = _held_of(folder)
    held.unlink(missing_ok=True)
    child = os.fork()
    if child == 0:
        code = 70
        try:
            os.setsid()
            os.chdir(folder)
            _to_files(folder)
            sys.stdout, sys.stderr = (
                os.fdopen(number, "w", closefd=False, encoding="utf-8", errors="surrogateescape") for number in (1, 2)
            )
            _limit()
            with measure_peak() as most:  # on top of what it shares with this process
                code = main(list(args))
            sys.stdout.flush()
            sys.stderr.flush()
            held.write_text(str(most.bytes))
        finally:
            os._exit(code)
    outcome = _awaited(child, folder)
    return replace(outcome, held=int(held.read_text()) if held.exists() else outcome.held)


def executed(args: Sequence[str], folder: Path) -> Outcome:
    """A command as a user begins it."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    child = os.fork()
    if child == 0:
        try:
            os.setsid()
            os.chdir(folder)
            _to_files(folder)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            _limit()
            os.execve(sys.executable, [sys.executable, "-m", "mipfs", *args], environment)
        finally:
            os._exit(70)
    return _awaited(child, folder)


def _held_of(folder: Path) -> Path:
    """Where a forked command writes how many bytes it held."""
    return Path(f"{folder}.held")


def _to_files(folder: Path) -> None:
    """What the process prints goes to files beside the folder."""
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(f"{folder}.{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)


def _limit() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + MOST_MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _highest(child: int) -> int:
    """The most bytes that a process has held since it became the program that it is, 0 where it has ended."""
    try:
        found = re.search(r"^VmHWM:\s*(\d+) kB", Path(f"/proc/{child}/status").read_text(), re.MULTILINE)
    except OSError:
        return 0
    return 0 if found is None else 1024 * int(found[1])


def _awaited(child: int, folder: Path) -> Outcome:
    """What a child did; it is killed with all that it began where it does not end."""
    ends = time.monotonic() + WALL
    held = 0
    while True:
        held = _highest(child) or held  # what it held before it was this program does not count
        done, status, used = os.wait4(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            break
        if time.monotonic() > ends:
            os.killpg(child, signal.SIGKILL)
            _, _, used = os.wait4(child, 0)
            code = -signal.SIGKILL
            break
        time.sleep(0.005)
    said = [Path(f"{folder}.{name}").read_bytes().decode("utf-8", "replace") for name in ("out", "err")]
    return Outcome(code, *said, used.ru_utime + used.ru_stime, held)


def wrong(args: Args, outcome: Outcome, folder: Path) -> str:
    """What is wrong with how a command ended; "" for nothing."""
    code, err = outcome.code, outcome.err
    said = (line for line in err.splitlines() if line != ANNOUNCED)  # where no machine code is kept, and once
    errors = [line for line in said if not line.startswith("mipfs: warning: ")]
    if "Traceback" in err or "internal error" in err:
        return f"internal error: {err.strip()[-300:]}"
    if code not in CODES and not (code == REJECTED and args[0] == "verify" and "rejected" in err):
        return f"exit code {code}: {err.strip()[-300:]}"
    if "not enough memory" in err:
        return f"memory: {err.strip()[-300:]}"
    if code and len(errors) != 1:
        return f"exit code {code} with {len(errors)} lines on standard error: {err[:300]!r}"
    if not code and errors:
        return f"exit code 0, but it said {errors[0][:200]!r}"
    if outcome.seconds > PATIENCE:
        return f"{outcome.seconds:.0f} s of the processor"
    if outcome.held > MOST_HELD:
        return f"memory: {outcome.held >> 20} MB"
    obeyed = [one for one in outcome.out + err if not one.isprintable() and one != "\n"]
    if obeyed:
        return f"a terminal would obey {obeyed[0]!r}"
    pages = [path.name for path in folder.glob("*.html") if BAD_PAGE.search(path.read_text("utf-8"))]
    if pages:
        return f"a browser would obey {pages[0]}"
    left = [path.name for path in folder.iterdir() if path.name.endswith((".part", ".kept"))]
    return f"left behind: {left}" if left else ""


def judged(
    args: Args, files: Files, folder: Path, run: Callable[[Sequence[str], Path], Outcome]
) -> tuple[Outcome, str]:
    """Run a command over files; what it did, and what is wrong."""
    written(files, folder)
    outcome = run(args, folder)
    if outcome.seconds > PATIENCE and outcome.code in CODES:  # the first of its kind, which compiles
        written(files, folder)
        outcome = run(args, folder)
    said = wrong(args, outcome, folder)
    if not said and outcome.code == 0 and args[0] == "solve" and "--json" in args and (folder / "r.json").exists():
        check = ("verify", "r.json", args[2], *(("--subject-to", "rows.lp") if "--subject-to" in args else ()))
        again = run(check, folder)
        said = wrong(check, again, folder)
        refused = again.code == 2 and args[2] == "s"  # a part of the store that the solve had no need of
        if not said and again.code and not refused and "nothing to verify" not in again.err:
            said = f"solved, but verify has exit code {again.code}: {again.err.strip()[:300]}"
    return outcome, said


def command(r: random.Random) -> tuple[str, str, Args, Files]:
    """Target, seed, command line and files of a draw."""
    names = [name for name in ON for _ in range(TARGETS[name].weight)]
    name = r.choice(names)
    seed, files = another(TARGETS[name], r, [])
    files = {**BESIDE.get(name, {}), **files}
    if seed.startswith(BOMB):
        return name, seed, bombs.BOMBS[seed.removeprefix(BOMB)].command, files
    args = ON[name](r, files)
    if r.random() < ODD_ARGUMENT:
        k = r.randrange(1, len(args))
        odd = mutations.mutated(r, "x.txt", os.fsencode(args[k]))[:1000].replace(b"\0", b"")
        args = (*args[:k], os.fsdecode(odd), *args[k + 1 :])
    return name, seed, args, files


def campaign(
    commands: int,
    seed: int,
    corpus: Path | None = None,
    say: Callable[[str], object] = print,
    seconds: float = float("inf"),
) -> list[str]:
    """Run command lines, as many as begin within some seconds; what went wrong."""
    ends = time.monotonic() + seconds
    faults: list[str] = []
    counts: dict[str, Counter[str]] = {}
    most = 0, 0.0
    with tempfile.TemporaryDirectory() as home:
        for number in range(commands):
            if time.monotonic() > ends:
                break
            r = random.Random(f"command {seed} {number}")
            name, start, args, files = command(r)
            outcome, said = judged(args, files, Path(home) / "input", forked if (number + 1) % EXECUTED else executed)
            one = {"commands": 1, f"exit {outcome.code}": 1, "bombs": start.startswith(BOMB), "wrong": bool(said)}
            counts.setdefault(args[0], Counter()).update(one)
            most = max(most[0], outcome.held), max(most[1], outcome.seconds)
            if said:
                own = {file: content for file, content in files.items() if file not in BESIDE.get(name, {})}
                place = (
                    ""
                    if corpus is None or start.startswith(BOMB)
                    else f", kept as {keep(corpus, name, start, own).name}"
                )
                shown = " ".join(arg if len(arg) < 60 else f"{arg[:60]!r}..." for arg in args)
                faults.append(f"command {number} of seed {seed}, {name} from {start}{place}: mipfs {shown!r}: {said}")
                say(faults[-1])
    heads = [
        "commands",
        *sorted({head for count in counts.values() for head in count if head.startswith("exit")}),
        "bombs",
        "wrong",
    ]
    say(f"{'':12}" + "".join(f"{head:>10}" for head in heads))
    total = Counter[str]()
    for name, count in sorted(counts.items()):
        total.update(count)
        say(f"{name[:11]:12}" + "".join(f"{count[head] or '.':>10}" for head in heads))
    say(f"{'all':12}" + "".join(f"{total[head] or '.':>10}" for head in heads))
    say(f"one command held {most[0] >> 20} MB at most, and took {most[1]:.1f} s of the processor")
    return faults
