"""What every kind of verification needs: data and rows as they are asked for, one result checked, and what is shown."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mipfs.cli.options import (
    Given,
    parse_params,
    read_options,
    recipe_options,
)
from mipfs.errors import LabelError, MoreClassesError, UsageError
from mipfs.report.visible import finite_or_none

if TYPE_CHECKING:
    from mipfs.check.tree import Report
    from mipfs.data.instance import Instance
    from mipfs.data.recipe import Recipe
    from mipfs.result.result import Result
    from mipfs.selection.selection import Rows

REJECTED = 1
MOST_LINES = 20
"""Lines of the statement that are shown."""


@dataclass(frozen=True)
class ReadingOptions:
    """The data, and how it is read where that is said; the result says the rest."""

    data_file: str
    scale: str | None
    label: str | None
    positive: str | None
    words: Given


@dataclass(frozen=True)
class VerifyRequest:
    """What is verified: `name` in `file`, both together `result_file`; with which rows, and how it is shown."""

    result_file: str
    file: str
    name: str | None
    reading: ReadingOptions
    subject_to: str | None
    model: str | None
    params: tuple[str, ...]
    json: str | None
    quiet: bool
    recompute: bool = False
    jobs: int | None = None


def verify_result(asked: VerifyRequest, document: Mapping[str, Any]) -> int:
    """Check one result, which may be a point of a path; what holds neither is an error that says so."""
    import mipfs
    from mipfs.check.tree import Report
    from mipfs.cli.errors import complain
    from mipfs.cli.output import write_json
    from mipfs.result import documents

    reading = asked.reading
    result = documents.load(asked.result_file)
    try:
        data = data_of(result, *dataclasses.astuple(reading))
    except LabelError as error:
        if reading.label is not None or reading.positive is not None:
            raise
        report = Report(False, f"its labels are not those of the data: {error.message}")
    else:
        rows = rows_of(result, data, asked.subject_to, asked.model, parse_params(asked.params))
        report = mipfs.verify(result, data, rows, verbose=not asked.quiet, jobs=asked.jobs)
        report = dataclasses.replace(report, differs=(*report.differs, *other_recipe(result, reading.data_file)))
    write_json(
        {"schema": 1} | {name: finite_or_none(value) for name, value in dataclasses.asdict(report).items()}, asked.json
    )
    if not report.accepted:
        complain(f"{asked.result_file}: rejected: {report.reason}")
        return REJECTED
    if asked.json != "-" and not asked.quiet:
        show_report(report, result)
    return 0


def data_of(
    result: Result,
    data_file: str,
    scale: str | None,
    label: str | None,
    positive: str | None,
    words: Given = None,
) -> Instance:
    """The data, scaled as the result says and with its labels; of one class of several that class against the rest."""
    from mipfs import readers
    from mipfs.check.known import names_label
    from mipfs.data.instance import Labels
    from mipfs.readers.files import format_of
    from mipfs.readers.store import check
    from mipfs.result.interactions import functions_of

    made = functions_of(result)
    kind = result.scaling["kind"] if made is None else made["scaling"]
    recipe, given = as_found(result, kind, scale, words)
    given |= {"positive": result.labels["positive"]} | read_options(None, label, positive)
    if label is None and result.label_column is not None and format_of(Path(data_file)) != "svmlight":
        given["label"] = result.label_column
    if format_of(Path(data_file)) == "store":
        check(Path(data_file))  # all of it, and that its digest is that of its values
    try:
        return readers.read_as(data_file, recipe, **given)
    except MoreClassesError:
        positive = result.labels["positive"]
        if not Labels(**result.labels).is_rest:
            raise
        classes = readers.read_classes(data_file, recipe, **{k: v for k, v in given.items() if k != "positive"})
        found = [one for one in classes if names_label(positive, one.labels.positive)]
        if not found:
            raise
        return found[0]


def as_found(result: Result, kind: str, scale: str | None, words: Given) -> tuple[Recipe, dict[str, Any]]:
    """What was done to the table of a result, and what `mipfs.read` is told to read it so again, on scale `kind`."""
    from mipfs.data.recipe import Recipe
    from mipfs.data.table_reading import StatedWords

    if scale is not None and scale != kind:
        raise UsageError(f"--scale {scale}: the result is about data with scale {kind!r}; leave the option out")
    given = {"scale": kind, "rules": result.rules, **recipe_options(None, None, None, None, words)}
    if not words:
        given["words"] = StatedWords.of(result.rules, result.read)
    return Recipe.of_document(result.recipe), given


def other_recipe(result: Result, data_file: str) -> list[str]:
    """What the description beside the data asks to be done to the table, where something else was done."""
    from mipfs.data.recipe import Recipe
    from mipfs.readers.sidecar import DataDescription

    beside = DataDescription.beside(Path(data_file))
    asked = Recipe.of(**beside.recipe).document()
    done = Recipe.of_document(result.recipe).document()
    gone = (result.read or {}).get("left_out") or ()
    return [
        *(
            f"the data asks for {'missing' if name == 'marks' else name} = {asked[name]!r}; the result was found with "
            f"{done.get(name, [])!r}"
            for name in asked
            if asked[name] != done.get(name) and asked[name]
        ),
        *(
            f"the data asks for the column of words {name!r}; the result leaves it out"
            for name in beside.words
            if name in gone
        ),
    ]


def rows_of(
    result: Result, data: Instance, subject_to: str | None, model: str | None, params: dict[str, Any]
) -> Rows | None:
    """The rows that must hold beside those of the data: the model's own, and those of an LP file."""
    rows = None
    if subject_to is not None:
        from mipfs.readers.lp_rows import read_rows
        from mipfs.result.verification import groups_of

        rows = read_rows(subject_to, data, groups_of(result))
    if model is None:
        return rows
    from mipfs import formulation

    declared = formulation.compile(formulation.load(model)(data, params)).selection.rows
    own = {(row.name, row.origin) for row in data.rows}
    pairs = enumerate(zip(declared.names, declared.origins, strict=True))
    declared = declared.take([r for r, pair in pairs if pair not in own])
    return declared if rows is None else declared.stack(rows)


def given_rows(result: Result, data: Instance, asked: VerifyRequest) -> dict[str, Any] | None:
    """The rows that a problem must have beside those of the data, as the JSON of a result has them."""
    from mipfs.result.verification import given_of

    rows = rows_of(result, data, asked.subject_to, asked.model, parse_params(asked.params))
    return None if rows is None else given_of(rows, data, result)


def show_report(report: Report, result: Result) -> None:
    """Print the problem that was checked, what is proven of it, and what was not checked."""
    from mipfs.cli.output import Alarm, number, percent, show_pairs
    from mipfs.report.numbers import many
    from mipfs.result.advice import constant_words

    leaves = many(report.n_leaves, "leaf", "leaves")
    duals = many(report.n_duals, "dual vector", "dual vectors")
    lines = [*report.statement[:MOST_LINES]]
    if len(report.statement) > MOST_LINES:
        lines.append(f"and {len(report.statement) - MOST_LINES} more lines, all of them in --json FILE")
    empty = report.bound == math.inf
    pairs = [
        *(("problem" if k == 0 else "", line) for k, line in enumerate(lines)),
        *(("differs", Alarm(line)) for line in report.differs),
        ("certificate", "accepted"),
        ("status", _status_words(report)),
        ("objective", f"{number(report.objective)}  (recomputed)"),
        ("bound", "no selection is allowed  (proven)" if empty else f"{number(report.bound)}  (proven)"),
        ("gap", percent(report.gap)),
        *([("classifier", Alarm(constant))] if (constant := constant_words(result)) else []),
        *([("without bounds", _describe_without(report))] if report.bound_without_box > -math.inf else []),
        *(("relaxation", line) for line in report.relaxation),
        *(("list", line) for line in report.listed),
        *(("decided", line) for line in report.decided),
        ("checked", f"{leaves}, {duals}, {report.seconds:.2f} s"),
        *(("not checked", line) for line in report.unchecked),
    ]
    show_pairs(pairs)


def _describe_without(report: Report) -> str:
    """What the leaves say of the problem without bounds on its weights, which is all that is known of it."""
    from mipfs.report.numbers import number

    return f"{number(report.bound_without_box)} is what the same leaves prove without the bounds on the weights"


def _status_words(report: Report) -> str:
    """The status in words: optimal up to which gap, in red where that is wide."""
    from mipfs.cli.output import Alarm, percent
    from mipfs.report.numbers import WIDE_GAP, with_asked

    if report.status not in ("OPTIMAL", "RELAXED"):
        return with_asked(report.status, report.status, report.asked)
    said = f"{report.status} to the asked gap of {percent(report.asked)}"
    return Alarm(said) if report.asked > WIDE_GAP else said
