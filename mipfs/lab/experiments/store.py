"""The rows of a study on disk: a line of JSON for every unit, appended when it is measured, and the CSV of all rows."""

from __future__ import annotations

import csv
import io
import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NotRequired, TypedDict

from mipfs.errors import DataError, UsageError
from mipfs.lab.experiments.study import Row, Unit
from mipfs.plumbing import output_file, strict_json, typed_json
from mipfs.plumbing.about import machine, versions
from mipfs.plumbing.typed_json import plain as plain_json
from mipfs.report.visible import in_cell

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
        """Append the rows of a unit, with versions, machine and date; returns the line."""
        line: Line = {"study": self.study, "unit": unit.key, "rows": [plain({**unit.params, **row}) for row in rows]}
        line |= {"cpu_seconds": round(cpu_seconds, 2), "versions": versions(*PACKAGES), "machine": machine()}
        line["date"] = time.strftime("%Y-%m-%d")
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
