"""Kills or interrupts commands at random moments, goes on with them, and compares with one that nobody killed.

    python -m tests.killed --runs 200 --seed 1

Every run is a process of its own, forked from one that has loaded the package: the moment of the kill falls into
the work. A run is killed once to three times, by SIGKILL or, where the case says so, SIGINT, and every time what
is there under a final name must be whole: the file that stood there before, or a new one. In the end the command is let
finish. Drivers, paths, benchmarks, stability must then have written what the run has that nobody killed, byte by byte
but for seconds, certificates too.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

PATIENCE = 120.0
"""Seconds after which a run counts as hanging."""
GAP = 1e-4
MEASURED = "seconds", "_ms", "memory_bytes"
"""How fields end that a machine measures."""
INTERRUPTED = 0, 3, 4, 70, 130, -signal.SIGINT
"""Exit codes of what a signal asked to end: with an answer, without one, or before the command began."""


@dataclass(frozen=True)
class Case:
    """A command that is killed, and how it goes on.

    Attributes
    ----------
    name : str
    begin, again : arguments, those of the first call and of every further one while `kept` is not there or is
    kept : str, the file without which it begins anew; "" where the first call goes on by itself
    check : callable, says of two folders what differs, the first of a run that nobody killed
    final : names of files that must be whole at any moment
    ends_with : str, what comes to its place as the last act, whole; a run that is killed after it is done
    by : signals, of which one is drawn for every kill
    """

    name: str
    begin: tuple[str, ...]
    again: tuple[str, ...]
    kept: str
    check: Callable[[Path, Path], str]
    final: tuple[str, ...] = ()
    ends_with: str = ""
    by: tuple[signal.Signals, ...] = (signal.SIGKILL,)


def same_bytes(whole: Path, again: Path) -> str:
    """All that was written, byte by byte: a JSON but for its seconds, certificates and tables whole."""
    one, other = ({path.name: path.read_bytes() for path in folder.glob("r.*")} for folder in (whole, again))
    if one.keys() != other.keys():
        return f"wrote {sorted(other)}, not {sorted(one)}"
    for name in sorted(one, key=lambda name: not name.endswith(".json")):
        if name.endswith(".json"):
            found = next(differences(timeless(json.loads(one[name])), timeless(json.loads(other[name])), name), "")
            if found:
                return found
        elif one[name] != other[name]:
            return f"{name} has other bytes"
    return ""


def timeless(value: Any) -> Any:
    """What a JSON holds, without what was measured by a clock."""
    if isinstance(value, dict):
        return {key: timeless(one) for key, one in value.items() if not key.endswith(MEASURED)}
    return [timeless(one) for one in value] if isinstance(value, list) else value


def differences(one: Any, other: Any, where: str) -> Iterator[str]:
    """Where two values of JSON are not the same text."""
    if isinstance(one, dict) and isinstance(other, dict) and [*one] == [*other]:
        for key, value in one.items():
            yield from differences(value, other[key], f"{where}/{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for k, value in enumerate(one):
            yield from differences(value, other[k], f"{where}/{k}")
    elif json.dumps(one) != json.dumps(other):
        yield f"{where} is {json.dumps(other)[:200]}, not {json.dumps(one)[:200]}"


def same_value(whole: Path, again: Path) -> str:
    """Of any other driver: status, and a value within the asked gap."""
    one, other = (json.loads((folder / "r.json").read_text()) for folder in (whole, again))
    return _within(one, other)


def _within(one: dict[str, object], other: dict[str, object]) -> str:
    if one["status"] != other["status"]:
        return f"status {other['status']}, not {one['status']}"
    bounds = [float(each["bound"]) for each in (one, other)]  # type: ignore[arg-type]
    tops = [_top(each) for each in (one, other)]
    if max(bounds) > min(tops) * (1 + 1e-9):
        return f"bounds {bounds} above values {tops}"
    if max(tops) - min(bounds) > 2.1 * GAP * abs(max(tops)):
        return f"values {tops}, bounds {bounds}: further apart than the gap"
    return ""


def _top(result: dict[str, object]) -> float:
    relaxed = result.get("relaxed")
    if result["status"] == "RELAXED" and isinstance(relaxed, dict):
        return float(relaxed["upper"])
    return float(result["objective"])  # type: ignore[arg-type]


def same_store(whole: Path, again: Path) -> str:
    """A column store, byte by byte."""
    one, other = ({path.name: _digest(path) for path in (folder / "store").iterdir()} for folder in (whole, again))
    return (
        ""
        if one == other
        else f"other files: {sorted(name for name in one | other if one.get(name) != other.get(name))}"
    )


def same_study(whole: Path, again: Path) -> str:
    """The units of a study."""
    found = []
    for folder in (whole, again):
        lines = [line for line in (folder / "study" / "rows.jsonl").read_text().splitlines() if _is_json(line)]
        found.append(sorted(json.loads(line)["unit"] for line in lines))
    return "" if found[0] == found[1] else "other units"


def _is_json(line: str) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


SOLVE = ("--scale", "standard", "--quiet", "--json", "r.json", "--checkpoint", "s.npz", "--checkpoint-every", "0.02")
RESUME = ("resume", "s.npz", "--quiet")
TREE = ("solve", "fsp-m", "hard.svm", "-p", "M=8", "-p", "C=1")
ORDERED = ("solve", "fsp-m", "ordered.svm", *TREE[3:], "-o", "threads=2")
GROUPED = ("solve", "fsp-m", "grouped.svm", "-p", "atoms=groups", *TREE[3:], "-o", "threads=2")
SIDECARS = {
    "ordered": """[[weights.rows]]
coefficients = { x1 = 1.0, x2 = -1.0 }
lower = 0.0
[[weights.rows]]
coefficients = { x3 = 1.0, x4 = 1.0, x5 = 1.0 }
upper = 0.3
""",
    "grouped": "".join(["[groups]\n", *(f'g{k} = ["x{k}", "x{k + 1}"]\n' for k in range(1, 31, 2))]),
}
"""Rows over the weights, and groups, of the data of that name."""
EASY = ("solve", "fsp-m", "data.svm", "-p")
BENDERS = (*EASY, "M=3", *TREE[5:], "--driver", "gbd", *SOLVE)
HINGE = ("solve", "fsp-m", "wide.svm", "-p", "M=10", "-p", "C=0.1", "--driver", "kelley", *SOLVE)
MIXTURE = (*EASY, "M=3", *TREE[5:], "--driver", "kelley", "-o", "restricted=cutting", *SOLVE)
STABILITY = (
    "stability",
    "data.svm",
    "-p",
    "M=3",
    "-p",
    "C=0.1",
    "--draws",
    "20",
    "--quiet",
    "--json",
    "r.json",
)
BOTH = signal.SIGKILL, signal.SIGINT
FINAL = ("r.json", "s.npz")
BENCH = ("bench", "data.svm", "--methods", "information-gain,gbd", "--M", "2,3", "--folds", "3", "--C", "0.01")
CASES = (
    Case("branch", (*TREE, "-o", "threads=1", *SOLVE), RESUME, "s.npz", same_bytes, FINAL),
    Case("branch, two threads", (*TREE, "-o", "threads=2", *SOLVE), RESUME, "s.npz", same_bytes, FINAL),
    Case("branch, logistic", (*TREE, "-p", "loss=logistic", *SOLVE), RESUME, "s.npz", same_bytes, FINAL),
    Case("branch, rows over weights", (*ORDERED, *SOLVE), RESUME, "s.npz", same_bytes, FINAL),
    Case("branch, groups", (*GROUPED, *SOLVE), RESUME, "s.npz", same_bytes, FINAL),
    Case("gbd", BENDERS, RESUME, "s.npz", same_bytes, FINAL, by=BOTH),
    Case("kelley", ("solve", "fgm", "wide.svm", "-p", "M=10", *SOLVE), RESUME, "s.npz", same_bytes, FINAL, by=BOTH),
    Case("kelley, hinge", HINGE, RESUME, "s.npz", same_bytes, FINAL, by=BOTH),
    Case("kelley, mixture", MIXTURE, RESUME, "s.npz", same_bytes, FINAL, by=BOTH),
    Case(
        "two_layer",
        ("solve", "structural", "wide.svm", "-p", "M=10", "-p", "measure=f1", *SOLVE),
        RESUME,
        "s.npz",
        same_bytes,
        FINAL,
        by=BOTH,
    ),
    Case(
        "path",
        ("path", "data.svm", "--M", "1:4", "-p", "C=0.3", "--folds", "2", *SOLVE[:-2]),
        ("resume", "s.npz", "--quiet"),
        "s.npz",
        same_bytes,
        FINAL,
        by=BOTH,
    ),
    Case(
        "bench",
        (*BENCH, "--quiet", "-o", "r.json"),
        (*BENCH, "--quiet", "-o", "r.json", "--resume"),
        "r.json",
        same_bytes,
        ("r.json",),
        by=BOTH,
    ),
    Case("stability", STABILITY, (), "", same_bytes, by=BOTH),
    Case(
        "convert",
        ("convert", "long.svm", "store", "--block-size", "1", "--memory", "16", "--quiet"),
        ("convert", "long.svm", "store", "--block-size", "1", "--memory", "16", "--quiet"),
        "",
        same_store,
        ends_with="store",
    ),
    Case(
        "study",
        ("study", "recovery", "--quick", "-o", "study", "--quiet"),
        ("study", "recovery", "--quick", "-o", "study", "--quiet"),
        "",
        same_study,
    ),
    Case("conic", ("solve", "nmmkl", "data.svm", "-p", "M=3", *SOLVE[:5]), (), "", same_value, ("r.json",)),
    Case(
        "monolithic",
        (*EASY, "M=2", "-p", "C=0.01", "--driver", "monolithic", *SOLVE[:5]),
        (),
        "",
        same_value,
        ("r.json",),
    ),
)


def data_in(folder: Path) -> None:
    """The data of the cases."""
    r = np.random.default_rng(0)
    for name, n, p, noise in (
        ("data", 120, 16, 1.0),
        ("hard", 150, 30, 4.0),
        ("wide", 150, 400, 1.0),
        ("long", 6000, 100, 1.0),
        ("ordered", 120, 24, 4.0),
        ("grouped", 120, 30, 4.0),
    ):
        X = r.normal(size=(n, p))
        y = np.where(X[:, :4].sum(axis=1) + 2.0 * noise * r.normal(size=n) > 0, 1, -1)
        lines = [
            f"{label:+d} " + " ".join(f"{j + 1}:{v:.5g}" for j, v in enumerate(row))
            for label, row in zip(y, X, strict=True)
        ]
        (folder / f"{name}.svm").write_text("\n".join(lines) + "\n")
        if name in SIDECARS:
            named = ", ".join(f'"x{j + 1}"' for j in range(p))
            (folder / f"{name}.toml").write_text(f"{SIDECARS[name]}[features]\nnames = [{named}]\n")


def sources(folder: Path) -> list[Path]:
    """The data of the cases, with what is said beside them."""
    return [*folder.glob("*.svm"), *folder.glob("*.toml")]


def called(
    arguments: Sequence[str],
    folder: Path,
    kill_after: float | None = None,
    most_bytes: int | None = None,
    by: signal.Signals = signal.SIGKILL,
) -> tuple[int | None, str, float]:
    """A command in a forked process: its exit code, None where it was killed; what it said, its seconds.

    No file may grow beyond `most_bytes`. What a signal `by` asks to end is waited for, and its end must be a known one.
    """
    from mipfs.cli import main

    said = folder.with_name(f"{folder.name}.said")
    begin = time.monotonic()
    child = os.fork()
    if child == 0:
        code = 70
        try:
            os.setsid()
            os.chdir(folder)
            handle = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(handle, 1)
            os.dup2(handle, 2)
            sys.stdout, sys.stderr = (os.fdopen(number, "w", closefd=False) for number in (1, 2))
            if most_bytes is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))
            code = main(list(arguments))
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)
    status = _ended(child, PATIENCE if kill_after is None else kill_after)
    if status is None and kill_after is not None and by is not signal.SIGKILL:
        os.kill(child, by)
        status = _ended(child, PATIENCE)
        if status is not None:
            code = os.waitstatus_to_exitcode(status)
            words = said.read_text(errors="replace") if said.exists() else ""
            return (None if code in INTERRUPTED else code), words, time.monotonic() - begin
        kill_after = None
    if status is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # SCIP's and Clarabel's processes too
        os.waitpid(child, 0)
        if kill_after is None:
            return -1, f"no end after {PATIENCE:g} s", time.monotonic() - begin
        return None, "", time.monotonic() - begin
    return os.waitstatus_to_exitcode(status), said.read_text(errors="replace"), time.monotonic() - begin


def warmed(arguments: Sequence[str], folder: Path) -> None:
    """Run a command here: whoever is forked from this process has its machine code then, and is killed in its work."""
    from mipfs.cli import main

    before = os.getcwd()
    os.chdir(folder)
    try:
        with open(os.devnull, "w") as nothing, contextlib.redirect_stdout(nothing), contextlib.redirect_stderr(nothing):
            main(list(arguments))
    finally:
        os.chdir(before)


def _ended(child: int, seconds: float) -> int | None:
    """How a process ended within some seconds; None where it did not."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        time.sleep(0.002)
    return None


def torn(case: Case, folder: Path) -> str:
    """Which file under its final name is not whole."""
    from mipfs.errors import MipfsError
    from mipfs.lab.studies import bench_reading, point_store, reading
    from mipfs.result.state import RunState

    for name in case.final:
        path = folder / name
        if not path.exists():
            continue
        try:
            if case.name == "bench":
                bench_reading.load(path)
            elif name == "r.json":
                reading.load(path)
            elif point_store.is_store(path):
                point_store.began_of(path)
            else:
                RunState.load(path)
        except MipfsError as error:
            return f"{name} is not whole: {error}"
    return ""


def run(case: Case, whole: Path, seconds: float, seed: int, tally: Counter[str]) -> str:
    """Kill a command some times and let it finish; what is wrong in the end, "" for nothing."""
    r = random.Random(f"{case.name} {seed}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for source in sources(whole.parent):
            os.link(source, folder / source.name)
        has_earlier = r.random() < 0.5 and case.kept != "r.json" and "r.json" in case.final
        if has_earlier:  # a good result of an earlier day, which a kill may not lose
            for source in whole.glob("r*"):
                shutil.copy(source, folder / source.name)
        for _ in range(r.randint(1, 3)):
            by = r.choice(case.by)
            code, said, _ = called(_next(case, folder), folder, r.uniform(0.0, 1.05) * seconds, by=by)
            tally["killed" if code is None else "ended before"] += 1
            if code is not None:
                wrong = f"exit code {code}: {said[-300:]}" if code else ""
                return wrong or torn(case, folder) or case.check(whole, folder)
            wrong = torn(case, folder)
            if wrong:
                return wrong
            if case.ends_with and (folder / case.ends_with).exists():  # killed when all was done
                return case.check(whole, folder)
            if has_earlier and not (folder / "r.json").exists():
                return "the earlier result is lost"
            tally["left a checkpoint"] += bool(case.kept) and (folder / case.kept).exists()
            tally["parts left"] += sum(path.name.endswith((".part", ".kept")) for path in folder.iterdir())
        code, said, _ = called(_next(case, folder), folder)
        if code != 0:
            return f"exit code {code}: {said[-300:]}"
        return torn(case, folder) or case.check(whole, folder)


def _next(case: Case, folder: Path) -> tuple[str, ...]:
    return case.again if case.again and (not case.kept or (folder / case.kept).exists()) else case.begin


def campaign(
    runs: int,
    seed: int,
    cases: Sequence[Case] = CASES,
    say: Callable[[str], object] = print,
    seconds: float = float("inf"),
) -> list[str]:
    """Runs over all cases in turn, as many as begin within some seconds, a table, and what went wrong."""
    began = time.monotonic()
    faults: list[str] = []
    tallies = {case.name: Counter[str]() for case in cases}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data_in(folder)
        taken: dict[str, float] = {}
        for case in cases:
            whole = folder / case.name.replace(" ", "-").replace(",", "")
            whole.mkdir()
            for source in sources(folder):
                os.link(source, whole / source.name)
            shutil.copytree(whole, folder / "warm")
            warmed(case.begin, folder / "warm")
            shutil.rmtree(folder / "warm")
            code, said, taken[case.name] = called(case.begin, whole)
            if code != 0:
                raise SystemExit(f"{case.name}: exit code {code}: {said[-2000:]}")
            tallies[case.name]["milliseconds"] = round(1000 * taken[case.name])
            say(f"{case.name}: {taken[case.name]:.2f} s when nobody kills it")
        for number in range(runs):
            if time.monotonic() - began > seconds:
                break
            case = cases[number % len(cases)]
            whole = folder / case.name.replace(" ", "-").replace(",", "")
            wrong = run(case, whole, taken[case.name], 1000 * seed + number, tallies[case.name])
            tallies[case.name]["runs"] += 1
            tallies[case.name]["wrong"] += bool(wrong)
            if wrong:
                faults.append(f"{case.name}, seed {1000 * seed + number}: {wrong}")
                say(faults[-1])
    heads = ("runs", "killed", "left a checkpoint", "ended before", "parts left", "wrong", "milliseconds")
    say(f"{'':24}" + "".join(f"{head:>19}" for head in heads))
    for name, tally in tallies.items():
        say(f"{name:24}" + "".join(f"{tally[head]:19d}" for head in heads))
    total = sum(tallies.values(), Counter[str]())
    say(f"{'all':24}" + "".join(f"{total[head]:19d}" for head in heads))
    return faults


def main() -> int:
    """Run, and return 1 where something went wrong."""
    import mipfs

    assert mipfs.read("instances/wdbc.svm", scale="standard").n_samples  # loads what every command needs
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no run after so many")
    parser.add_argument("--only", choices=[case.name for case in CASES], action="append")
    args = parser.parse_args()
    cases = [case for case in CASES if args.only is None or case.name in args.only]
    faults = campaign(args.runs, args.seed, cases, lambda line: print(line, flush=True), args.seconds)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
