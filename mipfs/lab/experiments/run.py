"""A study being run: unit by unit, each stored as soon as it is measured, until all are or the time is over.

Also here: the rows of a study on disk: a line of JSON for every unit, appended when it is measured, and the CSV of
all rows.
"""

from __future__ import annotations

import csv
import io
import json
import os
import time
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NotRequired, TypedDict

from threadpoolctl import threadpool_limits

from mipfs.errors import DataError, MipfsError, UsageError
from mipfs.lab.experiments import sets
from mipfs.lab.experiments.study import PaperClaim, Row, Study, Unit
from mipfs.lab.experiments.tables import Heading, page_blocks, render_markdown, render_pictures
from mipfs.lab.experiments.verdicts import SHORT
from mipfs.plumbing import output_file, strict_json, typed_json
from mipfs.plumbing.about import commit, machine, versions
from mipfs.plumbing.clock import cpu_clock
from mipfs.plumbing.signals import hearing_signals, hold_signals
from mipfs.plumbing.typed_json import plain as plain_json
from mipfs.report.blocks import NamedValues, ReportBlock, Reported, Sentence, Table
from mipfs.report.numbers import many
from mipfs.report.visible import in_cell
from mipfs.run.side_by_side import LostFit, run_tasks

PACKAGES = ("mipfs", "numpy", "scipy", "numba", "scikit-learn", "highspy")
DIGITS = 10
"""Significant digits of a stored number: more of them differ from machine to machine."""

Line = dict[str, Any]


class StudyStore:
    """What was measured of a study; the last line of a unit counts.

    Parameters
    ----------
    path : Path, made where it is missing
    study : str, the name of the study
    """

    def __init__(self, path: Path, study: str) -> None:
        self.path, self.study = path, study

    def lines(self) -> dict[str, Line]:
        """The last line of every unit; a line that was torn by a kill is left out.

        Raises
        ------
        DataError
            A line that is whole, and none of this study.
        """
        found: dict[str, Line] = {}
        if not self.path.is_file():
            return found
        for number, text in enumerate(self.path.read_bytes().split(b"\n"), 1):
            try:
                line = strict_json.parse_json(text.decode("utf-8"))
            except ValueError:
                continue  # torn by a kill
            try:
                line = typed_json.read(line, LineEntry)
            except typed_json.FieldError as error:
                raise DataError(f"is no line of a study: {error}", "remove it", path=self.path, line=number) from None
            if line.get("study", self.study) != self.study:
                remedy = "give each study a folder of its own"
                raise DataError(f"is of the study {line['study']!r}", remedy, path=self.path, line=number)
            found[line["unit"]] = line
        return found

    def add(self, unit: Unit, rows: Sequence[Row], cpu_seconds: float) -> Line:
        """Append the rows of a unit, with versions, machine, date and commit; returns the line."""
        line: Line = {"study": self.study, "unit": unit.key, "rows": [plain({**unit.params, **row}) for row in rows]}
        line |= {"cpu_seconds": round(cpu_seconds, 2), "versions": versions(*PACKAGES), "machine": machine()}
        line["date"] = time.strftime("%Y-%m-%d")
        if commit() is not None:
            line["commit"] = commit()
        text = json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n"
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with output_file.alone(self.path.absolute().parent), open(self.path, "ab") as file:
                torn = file.tell() > 0 and not self.path.read_bytes().endswith(b"\n")
                file.write((("\n" if torn else "") + text).encode())
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise UsageError(f"{self.path} cannot be written: {reason}; name another folder with -o DIR") from None
        return line


class LineEntry(TypedDict):
    """A line: a unit and its rows, and how and when they were measured."""

    study: NotRequired[str]
    unit: str
    rows: list[dict[str, Any]]
    cpu_seconds: float
    versions: dict[str, Any]
    machine: dict[str, Any]
    date: NotRequired[str]
    commit: NotRequired[str]


def as_csv(rows: Sequence[Row]) -> str:
    """The rows as CSV; a column for every name that some row has, in the order in which they come."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(map(in_cell, names))
    writer.writerows([_csv_cell(row.get(name)) for name in names] for row in rows)
    return text.getvalue()


def _csv_cell(value: Any) -> Any:
    if isinstance(value, list):
        value = " ".join(map(str, value))
    return "" if value is None else in_cell(value)


def plain(value: Any) -> Any:
    """JSON's own types: numbers of `DIGITS` digits, null for what is not finite."""
    return json.loads(json.dumps(plain_json(value)), parse_float=lambda text: float(f"{float(text):.{DIGITS}g}"))


ROWS, TABLE, PAGE = "rows.jsonl", "rows.csv", "README.md"
"""The files of a study's folder, beside its pictures."""
SCHEMA = 1
FEW_VALUES = 17
"""Values of a parameter by which units that are left are counted: the shared sets."""
PLAIN = ("part", "data")
"""Parameters whose values need no name before them."""


@dataclass(frozen=True, eq=False)
class StudyResults(Reported):
    """What a study has found so far.

    Attributes
    ----------
    study : Study
    lines : sequence of dict, of the store, one for every unit that was measured
    asked, reached : int, units of this call (those of ``--quick``, or all), and how many of them are done
    total : int, units of the full design
    skipped : mapping of a reason to the number of units
    interrupted : bool, by Ctrl-C
    """

    study: Study
    lines: Sequence[Mapping[str, Any]]
    asked: int
    reached: int
    total: int
    skipped: Mapping[str, int]
    interrupted: bool = False

    @property
    def rows(self) -> list[Row]:
        """All rows, unit by unit, as the CSV has them."""
        return [dict(row) for line in self.lines for row in line["rows"]]

    @property
    def good(self) -> list[Row]:
        """The rows of what did not fail."""
        return [row for row in self.rows if "failed" not in row]

    @cached_property
    def claims(self) -> list[PaperClaim]:
        """What the rows say of the paper's claims."""
        return list(self.study.claims(self.good)) if self.good else []

    def blocks(self) -> list[ReportBlock]:
        """The report."""
        head: list[ReportBlock] = [Sentence(self.study.design), NamedValues(self._run_facts())]
        if not self.good:
            return [*head, Sentence("Nothing was measured yet.")]
        claims = [
            [claim.said, claim.verdict, "; ".join(filter(None, (claim.measured, claim.details)))]
            for claim in self.claims
        ]
        if claims:
            head += [Heading("Claims"), Sentence(SHORT), Table(["claim", "verdict", "measured"], claims, left=3)]
        return [*head, *self.study.report(self.good)]

    def shown(self) -> list[ReportBlock]:
        """The report as a page shows it."""
        return page_blocks(self.blocks())

    def _run_facts(self) -> list[tuple[str, str]]:
        """What was run, and on what."""
        cpu = sum(line["cpu_seconds"] for line in self.lines)
        done = f"{len(self.lines)} of {self.total} units of the full design, {cpu:,.0f} CPU seconds together"
        facts = [
            ("command", f"`mipfs study {self.study.name}`"),
            ("source", self.study.source),
            ("measured", done),
        ]
        left = self._unmeasured_in_words()
        if left:
            facts.append(("not measured", f"{left}, for lack of time; the same command goes on with them"))
        facts += [("left out", f"{count} units: {why}") for why, count in self.skipped.items()]
        failed = len(self.rows) - len(self.good)
        if failed:
            facts.append(("failed", f"{failed} rows, which the CSV names"))
        every = [line["machine"] for line in self.lines] or [machine()]
        kinds = dict.fromkeys(_describe_machine(one) for one in every)
        facts.append(("machine", "; ".join(kinds)))
        used: dict[str, dict[str, None]] = {}
        for packages in [line["versions"] for line in self.lines] or [versions(*PACKAGES)]:
            for name, number in packages.items():
                used.setdefault(name, {})[number] = None
        facts.append(
            ("versions", ", ".join(f"{name} {' and '.join(sorted(numbers))}" for name, numbers in used.items()))
        )
        commits = Counter(line.get("commit", "not kept") for line in self.lines)
        counted = [f"{one}: {many(count, 'unit', 'units')}" for one, count in commits.items()]
        facts.append(("commit of the code", ", ".join(counted)))
        facts.append(("seconds", "CPU seconds of one process, one thread; other work shared the machine"))
        return facts

    def _unmeasured_in_words(self) -> str:
        """Units that are not measured, counted by the first parameter of few values."""
        units = list(self.study.units())
        done = {line["unit"] for line in self.lines}
        by = next((name for name in units[0].params if _count_values(units, name) <= FEW_VALUES), "") if units else ""
        counts: dict[Any, list[int]] = {}
        for unit in units:
            count = counts.setdefault(unit.params.get(by), [0, 0])
            count[0] += unit.key not in done
            count[1] += 1
        named = by if by not in PLAIN else ""
        parts = [f"{named} {value}: {left} of {of}".strip() for value, (left, of) in counts.items() if left]
        return ", ".join(parts)

    def document(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "schema": SCHEMA,
            "kind": "study",
            "name": self.study.name,
            "done": len(self.lines),
            "units": self.total,
            "interrupted": self.interrupted,
            "skipped": dict(self.skipped),
            "claims": [vars(claim) for claim in self.claims],
            "rows": self.rows,
        }

    def save(self, folder: Path) -> None:
        """Write the report, its pictures and the CSV beside the rows."""
        blocks = self.blocks()
        text = f"# {self.study.title}\n\n" + render_markdown(blocks)
        files = {PAGE: text.encode(), TABLE: as_csv(self.rows).encode(), **render_pictures(blocks)}
        with hold_signals(deliver=False):
            output_file.save([(folder / name, content) for name, content in files.items()])


def _count_values(units: Sequence[Unit], name: str) -> int:
    """How many values a parameter has."""
    return len({unit.params.get(name) for unit in units})


def _describe_machine(said: Mapping[str, Any]) -> str:
    return f"{said['cores']} cores, {said['cpu']}, {said['memory_gib']} GiB, Python {said['python']}"


def run(
    study: Study,
    folder: Path,
    *,
    quick: bool = False,
    time_limit: float | None = None,
    tell: Callable[[int, int], None] | None = None,
    jobs: int | None = None,
    again: bool = False,
    seed: int | None = None,
) -> StudyResults:
    """Measure the units of a study that its folder does not have yet.

    Parameters
    ----------
    study : Study
    folder : Path, which holds the rows; made where it is missing
    quick : bool, the small subset only
    time_limit : float, optional
        Wall seconds after which no other unit begins; what is left is done by the next call.
    tell : callable, optional, hears how many units are done, of how many
    jobs : int >= 1, optional, units side by side, one thread each; by default as many as there are cores
    again : bool
        Measure those too that the code of another version or commit measured, where what they need is here.
    seed : int, optional
        Of the units that are drawn, those of this seed alone; units without a seed are measured whatever it is.

    Returns
    -------
    StudyResults
        After Ctrl-C too, with the units that were reached.

    Raises
    ------
    UsageError
        No unit has the seed.
    """
    check_folder(folder)
    store = StudyStore(folder / ROWS, study.name)
    every = list(study.units())
    asked = _asked_units([unit for unit in every if unit.quick or not quick], seed)
    before = store.lines()
    kept = {key for key, line in before.items() if not again or is_of_this_code(line)}
    skipped: dict[str, int] = {}
    left: list[Unit] = []
    for unit in asked:
        why = _missing_requirement(unit) if unit.key not in kept else ""
        if why and unit.key in before:
            kept.add(unit.key)
        elif why:
            skipped[why] = skipped.get(why, 0) + 1
        elif unit.key not in kept:
            left.append(unit)
    began = time.monotonic()
    interrupted = False

    def has_time() -> bool:
        return time_limit is None or time.monotonic() - began < time_limit

    try:
        with hearing_signals(), closing(run_tasks(_store_unit, (study, store), left, jobs, more=has_time)) as found:
            for number, (_, line) in enumerate(found, 1):
                if isinstance(line, LostFit):
                    raise line
                if tell is not None:
                    tell(len(asked) - len(left) + number, len(asked))
    except KeyboardInterrupt:
        interrupted = True
    done = store.lines()
    lines = [done[unit.key] for unit in every if unit.key in done]
    reached = sum(unit.key in kept or done.get(unit.key) != before.get(unit.key) for unit in asked)
    return StudyResults(study, lines, len(asked), reached, len(every), skipped, interrupted)


def _asked_units(units: Sequence[Unit], seed: int | None) -> Sequence[Unit]:
    """Of units that are drawn those of a seed, where one is asked for; the others as they are.

    Raises
    ------
    UsageError
        No unit is left.
    """
    if seed is None:
        return units
    asked = [unit for unit in units if unit.params.get("seed", seed) == seed]
    if units and not asked:
        seeds = sorted({unit.params["seed"] for unit in units})
        raise UsageError(f"--seed {seed}: the units have seed {', '.join(map(str, seeds))}; give one of them, or none")
    return asked


def is_of_this_code(line: Mapping[str, Any]) -> bool:
    """Whether this version of the package measured a line, and this commit where it runs from a checkout."""
    return line["versions"].get("mipfs") == versions("mipfs")["mipfs"] and commit() in (None, line.get("commit"))


def _missing_requirement(unit: Unit) -> str:
    """Why a unit cannot be measured here; empty where it can."""
    if unit.package and find_spec(unit.package) is None:
        return f"{unit.package} is not installed"
    return sets.missing(unit.needs) if unit.needs else ""


def check_folder(folder: Path) -> None:
    """Refuse a folder whose own files the report would replace.

    Raises
    ------
    UsageError
    """
    if (folder / ROWS).exists():
        return
    for name in (PAGE, TABLE):
        if (folder / name).exists():
            raise UsageError(f"{folder} holds a {name} that is none of a study; give the study a folder of its own")


def _store_unit(given: tuple[Study, StudyStore], unit: Unit) -> Line:
    """Measure a unit and store it, in whatever process: Ctrl-C then loses none that is finished."""
    study, store = given
    measured = _measure_unit(study, unit)
    with hold_signals():
        return store.add(unit, *measured)


def _measure_unit(study: Study, unit: Unit) -> tuple[Sequence[Row], float]:
    """The rows of a unit and its CPU seconds; what the package refuses is a row that says so.

    Raises
    ------
    KeyboardInterrupt
        A signal came, maybe to something that took it as a limit: its rows would be no measurement.
    """
    began = cpu_clock()
    with hearing_signals() as strike, threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            rows = study.measure(unit)
        except MipfsError as error:
            rows = [{"failed": str(error).splitlines()[0]}]
    if strike.has_been:
        raise KeyboardInterrupt
    return rows, cpu_clock() - began


def load_results(study: Study, folder: Path) -> StudyResults:
    """What a folder holds of a study, nothing measured."""
    done = StudyStore(folder / ROWS, study.name).lines()
    every = list(study.units())
    lines = [done[unit.key] for unit in every if unit.key in done]
    return StudyResults(study, lines, len(every), len(lines), len(every), {})
