"""The fuzzer: mutated files before every reader, in this process and as real command lines.

    python -m tests.fuzz --seed 1 --inputs 20000                    # every reader, its share of the inputs
    python -m tests.fuzz --seed 1 --inputs 2000 --targets csv,toml  # some of them
    python -m tests.fuzz --seed 1 --commands 1000                   # `mipfs ...` as processes, over such files
    python -m tests.fuzz --atheris --inputs 20000 --targets csv     # guided by atheris, where that is installed
    python -m tests.fuzz --again FOLDER                             # an input that was kept, once more

An input is a folder of small files, one of which is mutated (`tests.mutations`); what reads it, and what must hold of
the answer, says `tests.fuzz_targets`. A reader gives a value or raises a `MipfsError` of one line that names the file,
within `PATIENCE` seconds, `MOST_HELD` bytes of memory, measured for every input, and `MOST_MEMORY` of addresses, and a
value must be right. Inputs that reach new lines of the package are mutated further; one in a hundred is a file that
would take far more than its bytes (`tests.bombs`). Whatever else fails is kept below ``--corpus`` by target and digest,
where a test replays it.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
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
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import mipfs
from mipfs.errors import MipfsError, NumericalError
from mipfs.plumbing.memory import measure_peak
from mipfs.report.visible import in_one_line
from tests import bombs, mutations
from tests.fuzz_targets import TARGETS, Files, Target, cached_seeds

CORPUS = Path(__file__).with_name("corpus")
"""Every input that ever failed."""
PATIENCE = 10.0
"""Seconds of the processor after which a reader hangs."""
STARVED = 60.0
"""Of these, after how many on the wall a reader hangs that takes no time of the processor."""
MOST_MEMORY = 3 << 30
"""Bytes of addresses that a reader may take on top of what the process has."""
MOST_HELD = 1 << 30
"""Bytes of memory that it may hold at once, on top of what the process held before."""
BOMBED = 0.01
"""How often an input is a file of `tests.bombs`."""
BOMB = "bomb "
"""What the name of its seed begins with."""
MOST_MESSAGE = 1500
"""Characters of a message."""
SEALED = 0.7
"""How often checksums are mended where there are some."""
FURTHER = 0.4
"""How often an input that reached new lines is taken, and not a seed."""
REFUSED = 0.2
"""How often an input that was refused is mutated further, where it reached new lines."""
MOST_KEPT = 300
"""Inputs of a target that are mutated further; the oldest give way."""
FELL_OVER = 70
"""Exit code of a process in which the fuzzer, and not a reader, did so."""
PACKAGE = str(Path(mipfs.__file__).parent)
WATCHED = tuple(
    os.path.join(PACKAGE, *name.split("/"))
    for name in (
        "readers",
        "result",
        "lab/experiments",
        "lab/studies",
        "lab/classes",
        "lab/scorecard",
        "check",
        "data",
        "convert",
        "proof",
    )
)
"""Where new lines count."""


class Hang(BaseException):
    """Too long."""


def _hung(_number: int, _frame: FrameType | None) -> None:
    raise Hang


@contextlib.contextmanager
def limited() -> Iterator[None]:
    """Too long is a `Hang`, and too much memory a MemoryError."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if sys.platform == "linux" else 0
    handler = signal.signal(signal.SIGPROF, _hung)
    faulthandler.dump_traceback_later(STARVED * PATIENCE, exit=True)
    try:
        if pages:
            resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MOST_MEMORY, before[1]))
        signal.setitimer(signal.ITIMER_PROF, PATIENCE)
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, handler)
        faulthandler.cancel_dump_traceback_later()
        resource.setrlimit(resource.RLIMIT_AS, before)


class Lines:
    """Which lines of the package were met, by its code objects."""

    def __init__(self) -> None:
        self.met: set[tuple[CodeType, int]] = set()
        self.new = 0

    def _call(self, frame: FrameType, _event: str, _arg: Any) -> Any:
        return self._line if frame.f_code.co_filename.startswith(WATCHED) else None

    def _line(self, frame: FrameType, _event: str, _arg: Any) -> Any:
        place = frame.f_code, frame.f_lineno
        if place not in self.met:
            self.met.add(place)
            self.new += 1
        return self._line

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Count the new lines of the block in `new`."""
        self.new = 0
        sys.settrace(self._call)
        try:
            yield
        finally:
            sys.settrace(None)


@dataclass
class Verdict:
    """What came of an input: "value", "refused", or a fault with its words; what reading it held and took at most."""

    kind: str
    words: str = ""
    held: int = 0
    seconds: float = 0.0

    @property
    def is_fault(self) -> bool:
        return self.kind not in ("value", "refused")


def written(files: Files, folder: Path) -> None:
    """The files of an input in an empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, content in files.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)


def judged(target: Target, files: Files, seed: Files, folder: Path, lines: Lines | None = None) -> Verdict:
    """Read an input and judge the answer."""
    written(files, folder)
    value: Any = None
    began = time.process_time()
    with measure_peak() as most:
        found, value = _read(target, folder, lines)
    held, seconds = most.bytes or 0, time.process_time() - began
    if found.kind == "hang" and lines:  # what looks at every line takes its time too: a megabyte of empty ones is read
        return judged(target, files, seed, folder)  # in a second without
    if held > MOST_HELD and not found.is_fault:
        found = Verdict("memory", f"{held >> 20} MB")
    if found.kind == "value":
        found = _right(target, folder, value, seed)
    return replace(found, held=held, seconds=seconds)


def _read(target: Target, folder: Path, lines: Lines | None) -> tuple[Verdict, Any]:
    """What came of reading a folder, and the value."""
    try:
        with warnings.catch_warnings(), limited(), lines.watched() if lines else contextlib.nullcontext():
            warnings.simplefilter("ignore")
            return Verdict("value"), target.read(folder)
    except MipfsError as error:
        return _refusal(error, target, folder), None
    except Hang:
        return Verdict("hang", f"more than {PATIENCE:g} s"), None
    except MemoryError as error:
        return Verdict("memory", _where(error)), None
    except Exception as error:
        return Verdict("error", _where(error)), None


def _right(target: Target, folder: Path, value: Any, seed: Files) -> Verdict:
    """Whether a value is right."""
    try:
        with warnings.catch_warnings(), limited():
            warnings.simplefilter("ignore")
            wrong = target.wrong(folder, value, seed)
    except (Exception, Hang) as error:
        return Verdict("unjudged", _where(error))
    return Verdict("wrong", wrong) if wrong else Verdict("value")


def _refusal(error: MipfsError, target: Target, folder: Path) -> Verdict:
    """Of an error of the package: one line, which names a file."""
    said = str(error)
    line = in_one_line(said)
    if len(line) > MOST_MESSAGE:
        return Verdict("message", f"{len(line)} characters: {line[:200]}")
    if len(line.splitlines()) != 1:
        return Verdict("message", f"several lines: {said!r}")
    names = {str(folder), *(part for path in folder.rglob("*") for part in path.relative_to(folder).parts)}
    if target.named and not isinstance(error, NumericalError) and not any(name in said for name in names):
        return Verdict("message", f"no file is named: {said}")
    return Verdict("refused", said)


def _where(error: BaseException) -> str:
    """An error and the line of the package that it came from."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/tests/fuzz.py" not in frame.filename]
    ours = [frame for frame in frames if frame.filename.startswith(PACKAGE)] or frames
    place = f"{os.path.relpath(ours[-1].filename, Path(PACKAGE).parent)}:{ours[-1].lineno}" if ours else ""
    return f"{type(error).__name__}: {str(error)[:200]} ({place})"


def seed_of(target: Target, name: str) -> Files:
    """The seed that an input comes from."""
    return bombs.made(name.removeprefix(BOMB)) if name.startswith(BOMB) else cached_seeds(target)[name]


def another(target: Target, r: random.Random, pool: Sequence[tuple[str, Files]]) -> tuple[str, Files]:
    """A mutated input, and the seed that it comes from; at times a bomb as it is."""
    large = bombs.of_target(next((name for name, one in TARGETS.items() if one is target), ""))
    if large and r.random() < BOMBED:
        name = f"{BOMB}{r.choice(large)}"
        return name, seed_of(target, name)
    seeds = cached_seeds(target)
    if pool and r.random() < FURTHER:
        name, files = pool[r.randrange(len(pool))]
    else:
        name = r.choice(sorted(seeds))
        files = seeds[name]
    names = [file for file in sorted(files) if target.mutates(file)]
    changed = dict(files)
    for _ in range(r.choice((1, 1, 1, 1, 2))):
        file = r.choice(names)
        changed[file] = mutations.mutated(r, file, changed[file])
    return name, dict(target.sealed(changed)) if r.random() < SEALED else changed


@dataclass
class Campaign:
    """The inputs of one target, one after the other.

    Attributes
    ----------
    name : of the target
    seed : int
    corpus : Path or None, where what fails is kept
    guided : whether inputs that reach new lines are mutated further
    """

    name: str
    seed: int
    corpus: Path | None = None
    guided: bool = True
    counts: Counter[str] = field(default_factory=Counter)
    faults: dict[str, str] = field(default_factory=dict)

    def run(self, inputs: int, first: int = 0, seconds: float = float("inf"), current: Path | None = None) -> None:
        """Go through inputs, from the number `first` on; `current` is a file that always holds the number."""
        target, lines = TARGETS[self.name], Lines() if self.guided else None
        pool: list[tuple[str, Files]] = []
        with tempfile.TemporaryDirectory() as home:
            folder = Path(home) / "input"
            if lines is not None:
                for files in cached_seeds(target).values():
                    judged(target, files, files, folder, lines)
            ends = time.monotonic() + seconds
            for number in range(first, first + inputs):
                if time.monotonic() > ends:
                    break
                if current is not None:
                    current.write_text(f"{self.name} {number}")
                r = random.Random(f"{self.name} {self.seed} {number}")
                name, files = another(target, r, pool)
                if current is not None:
                    written(files, current.with_name("input"))
                verdict = judged(target, files, seed_of(target, name), folder, lines)
                self.counts[verdict.kind] += 1
                self.took(verdict, name)
                if verdict.is_fault:
                    self.fault(number, name, files, verdict)
                elif name.startswith(BOMB):
                    continue
                elif lines is not None and lines.new and (verdict.kind == "value" or r.random() < REFUSED):
                    pool = [*pool, (name, files)][-MOST_KEPT:]
            self.counts["lines"] = len(lines.met) if lines else 0

    def add(self, counts: Mapping[str, int]) -> None:
        """Add what another process counted."""
        for head, value in counts.items():
            most = head.startswith("most")
            self.counts[head] = max(self.counts[head], value) if most else self.counts[head] + value

    def took(self, verdict: Verdict, name: str) -> None:
        """Remember the most that an input held and took."""
        self.counts["bombs"] += name.startswith(BOMB)
        for head, value in (("most MB", verdict.held >> 20), ("most ms", int(1000 * verdict.seconds))):
            self.counts[head] = max(self.counts[head], value)

    def fault(self, number: int, name: str, files: Files, verdict: Verdict) -> None:
        """Remember what failed, and keep its first input."""
        key = f"{verdict.kind}: {verdict.words}"
        place = key[key.rfind("(") :] if verdict.kind in ("error", "memory") else key[:40]
        if place in self.faults:
            return
        kept = (
            ""
            if self.corpus is None or name.startswith(BOMB)
            else f", kept as {keep(self.corpus, self.name, name, files).name}"
        )
        self.faults[place] = f"{self.name}, input {number} of seed {self.seed}, from {name}{kept}: {key}"
        print(self.faults[place], flush=True)


def keep(corpus: Path, target: str, seed: str, files: Files) -> Path:
    """What differs of an input from its seed, in a folder of the corpus."""
    original = cached_seeds(TARGETS[target])[seed]
    digest = hashlib.sha256()
    changed = {name: content for name, content in sorted(files.items()) if original.get(name) != content}
    for name, content in changed.items():
        digest.update(name.encode() + content)
    folder = corpus / target / f"{seed}-{digest.hexdigest()[:8]}"
    for name, content in changed.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    return folder


def kept_input(folder: Path) -> tuple[Target, Files, Files]:
    """Target, files and seed of an input that was kept."""
    target = TARGETS[folder.parent.name]
    seeds = cached_seeds(target)
    name = folder.name.rpartition("-")[0]
    seed = seeds.get(name, {})
    changed = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return target, {**seed, **changed}, seed


def corpus_of(folder: Path = CORPUS) -> list[Path]:
    """The inputs that were kept."""
    return sorted(place for place in folder.glob("*/*") if place.is_dir() and place.parent.name in TARGETS)


def again(folder: Path) -> Verdict:
    """Judge an input that was kept."""
    target, files, seed = kept_input(folder)
    with tempfile.TemporaryDirectory() as home:
        return judged(target, files, seed, Path(home) / "input")


def shares(names: Sequence[str], inputs: int) -> Mapping[str, int]:
    """How many inputs each target gets."""
    total = sum(TARGETS[name].weight for name in names)
    return {name: max(1, round(inputs * TARGETS[name].weight / total)) for name in names}


def isolated(campaign: Campaign, inputs: int, seconds: float) -> None:
    """Run a campaign in a forked process, again from the next input where one ended it."""
    first = 0
    with tempfile.TemporaryDirectory() as home:
        current = Path(home) / "current"
        while first < inputs:
            reading, writing = os.pipe()
            child = os.fork()
            if child == 0:
                _child(campaign, inputs - first, first, seconds, current, writing)
            os.close(writing)
            with os.fdopen(reading, "rb") as stream:
                text = stream.read().decode()
            _, status = os.waitpid(child, 0)
            if text:
                counts, faults = json.loads(text)
                campaign.add(counts)
                campaign.faults.update(faults)
                return
            if status >> 8 == FELL_OVER:
                raise SystemExit("the fuzzer itself fell over")
            number = int(current.read_text().split()[1])
            files = {path.relative_to(current.with_name("input")).as_posix(): path.read_bytes()
                     for path in current.with_name("input").rglob("*") if path.is_file()}  # fmt: skip
            campaign.counts.update({"crash": 1, "lost": number - first})
            seeds = cached_seeds(TARGETS[campaign.name])
            name = max(seeds, key=lambda one: sum(seeds[one].get(file) == files[file] for file in files))
            campaign.fault(number, name, files, Verdict("crash", f"the process ended with {status}"))
            first = number + 1


def _child(campaign: Campaign, inputs: int, first: int, seconds: float, current: Path, writing: int) -> None:
    code = FELL_OVER
    try:
        campaign.counts = Counter()  # of the faults the first ones stay known
        campaign.run(inputs, first, seconds, current)
        with os.fdopen(writing, "wb") as stream:
            stream.write(json.dumps([campaign.counts, campaign.faults]).encode())
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


HEADS = ("value", "refused", "error", "wrong", "hang", "memory", "message", "unjudged", "crash", "lost")
BESIDE_HEADS = ("bombs", "most MB", "most ms", "lines")
"""What is counted beside what came of an input; of the most the largest."""


def table(campaigns: Sequence[Campaign]) -> str:
    """What came of the inputs, by target, and the most memory and time of the processor that one took."""
    every = (*HEADS, *BESIDE_HEADS)
    rows = [("target", "inputs", *every)]
    for one in campaigns:
        inputs = sum(one.counts[head] for head in HEADS)
        rows.append((one.name, str(inputs), *(str(one.counts[head] or ".") for head in every)))
    totals = {head: (max if head.startswith("most") else sum)(one.counts[head] for one in campaigns) for head in every}
    rows.append(("all", str(sum(totals[head] for head in HEADS)), *(str(totals[head] or ".") for head in every)))
    return "\n".join(f"{row[0]:14}" + "".join(f"{cell:>9}" for cell in row[1:]) for row in rows)


def fuzz(
    names: Sequence[str], inputs: int, seed: int, seconds: float = float("inf"), corpus: Path | None = None
) -> int:
    """Campaigns over targets, each in a process of its own, and their table; how many faults there were."""
    campaigns = []
    for name, count in shares(names, inputs).items():
        with tempfile.TemporaryDirectory() as home:  # what they import is imported once
            for files in cached_seeds(TARGETS[name]).values():
                judged(TARGETS[name], files, files, Path(home) / "input")
        campaigns.append(Campaign(name, seed, corpus))
        isolated(campaigns[-1], count, seconds / len(names))
        print(f"{name}: {dict(campaigns[-1].counts)}", flush=True)
    print(table(campaigns))
    return sum(len(one.faults) for one in campaigns)


def main() -> int:
    """Run, and return 1 where something failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--inputs", type=int, default=0, help="in this process")
    parser.add_argument("--commands", type=int, default=0, help="as processes")
    parser.add_argument("--targets", default=",".join(TARGETS), help=f"some of {', '.join(TARGETS)}")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no input after so many")
    parser.add_argument("--corpus", type=Path, default=None, help="where what fails is kept, such as tests/corpus")
    parser.add_argument("--again", type=Path, action="append", default=[], help="an input that was kept")
    parser.add_argument("--atheris", action="store_true", help="let atheris choose the mutations")
    args = parser.parse_args()
    names = args.targets.split(",")
    faults = 0
    for folder in args.again:
        verdict = again(folder)
        print(f"{folder}: {verdict.kind} {verdict.words}")
        faults += verdict.is_fault
    if args.inputs and args.atheris:
        from tests import fuzz_atheris

        faults += fuzz_atheris.guided(names, args.inputs, args.seed, args.corpus)
    elif args.inputs:
        faults += fuzz(names, args.inputs, args.seed, args.seconds, args.corpus)
    if args.commands:
        from tests import fuzz_commands

        faults += len(fuzz_commands.campaign(args.commands, args.seed, args.corpus, seconds=args.seconds))
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main())
