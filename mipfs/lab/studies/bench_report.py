"""A benchmark as people read it: the report of the command line, of `Bench.summary` and of notebooks."""

from __future__ import annotations

import math
import shlex
from typing import TYPE_CHECKING

from mipfs.lab.studies.bench_setting import COLUMN
from mipfs.lab.studies.bench_unit import DONE
from mipfs.measures.judged import BY, SMALLER_IS_BETTER
from mipfs.report.blocks import NamedValues, ReportBlock, Sentence, Table, Typed
from mipfs.report.charts import FAMILY, Curve, LineChart
from mipfs.report.numbers import first_of

if TYPE_CHECKING:
    from mipfs.lab.studies.bench import Bench
    from mipfs.lab.studies.bench_setting import COLUMN
from mipfs.lab.studies.bench_rows import BenchRow

MOST_NAMED = 5
"""Features of a line that are named."""
MEGA = 1e6


def bench_blocks(found: Bench) -> list[ReportBlock]:
    """What was asked, a line for every method and M, what was said, and which features were chosen most often."""
    setting = found.setting
    rows = found.rows
    asked = len(setting.units())
    pairs = [
        ("data", f"{setting.source or 'arrays'}, {len(found.names)} features, scale {setting.scaling}"),
        (
            "test",
            f"{setting.measure} on {setting.folds} folds{_describe_repeated(found)}, seed "
            f"{setting.seed}{_chosen_by(found)}",
        ),
        ("fits", f"{len(found.records)} of {asked}" if len(found.records) < asked else str(asked)),
    ]
    if setting.class_weight:
        given = setting.class_weight
        said = given if isinstance(given, str) else ", ".join(f"{weight:g} for {label}" for label, weight in given)
        pairs.insert(2, ("class weights", f"{said}, in every fit"))
    blocks: list[ReportBlock] = [NamedValues(pairs), _measure_table(setting.measure, rows), *bench_charts(found)]
    notes = [
        (row.method, _cardinality_text(row), str(count), note) for row in rows for note, count in row.notes.items()
    ]
    if notes:
        blocks.append(Table(("method", "M", "folds", "note"), notes, title="Notes", left=4))
    chosen = [(row.method, _cardinality_text(row), _frequent_features(row, found)) for row in rows if row.shares]
    if chosen:
        blocks.append(
            Table(
                ("method", "M", "features"),
                chosen,
                title="The features that most folds chose, with their share",
                left=3,
            )
        )
    if any(record["status"] != DONE for record in found.records):
        blocks.append(Sentence("\nvalues are means over the folds that are done"))
    sizes = sorted({row.M for row in rows if row.M is not None})
    if sizes:  # it compares, and keeps no classifier
        M = ",".join(map(str, sizes))
        blocks.append(Typed(f"mipfs path DATA --M {M} {_grid_in_words(found)} --json path.json", "\nto use one: "))
        blocks.append(Typed("mipfs predict 'path.json#best' NEW"))
    return blocks


def bench_lead(found: Bench) -> str:
    """Which method is best on the held-out folds, and which are within a standard error of it."""
    known = [row for row in found.rows if row.values]
    if not known:
        return ""
    sign = -1.0 if found.setting.measure in SMALLER_IS_BETTER else 1.0
    best = max(known, key=lambda row: sign * row.value)
    near = [row for row in known if row is not best and sign * (best.value - row.value) <= best.standard_error]
    spread = f" ± {best.standard_error:.4f} (one standard error)" if math.isfinite(best.standard_error) else ""
    said = f"{_name_row(best)} has the best {found.setting.measure} on the folds held out: {best.value:.4f}{spread}."
    if near:
        said += f" Within one standard error of it: {first_of(near, MOST_NAMED, _name_row)}."
    return said


def _name_row(row: BenchRow) -> str:
    return (
        f"{row.method} on all features" if row.M is None else f"{row.method} with {row.M} feature{'s' * (row.M != 1)}"
    )


def _describe_repeated(found: Bench) -> str:
    repeats = found.setting.repeats
    return "" if repeats == 1 else f", {repeats} times (± is that of one time)"


def _grid_in_words(found: Bench) -> str:
    """The values of C and the folds of a path that chooses as the benchmark did."""
    asked = found.setting
    by = f" --by {asked.measure}" if asked.measure in BY and asked.measure != "error" else ""
    if asked.split.startswith(COLUMN):
        by += f" --folds-by {shlex.quote(asked.split.removeprefix(COLUMN).rpartition(' (')[0])}"
    return f"--C {','.join(f'{C:g}' for C in asked.C)} --folds {asked.folds}{by}"


def bench_charts(found: Bench) -> list[LineChart]:
    """The measure, and the seconds of a fit, against the number of features; a reference is a point at all of them."""
    sizes = sorted({row.M for row in found.rows if row.M is not None and row.values})
    if len(sizes) < 2:
        return []
    better = f"Test {found.setting.measure} against the number of features"
    drawn = [("value", better, False), ("seconds", "Seconds of a fit at the chosen C", True)]
    return [_measure_chart(found, sizes, name, title, is_log) for name, title, is_log in drawn]


def _measure_chart(found: Bench, sizes: list[int], name: str, title: str, is_log: bool) -> LineChart:
    """A curve for every method that selects."""
    curves: list[Curve] = []
    line = {(row.method, row.M): row for row in found.rows if row.values}
    for method in found.setting.methods:
        rows = [line.get((method, M)) for M in sizes]
        if any(row is not None for row in rows):
            y = [None if row is None else float(getattr(row, name)) for row in rows]
            spread = None if is_log else [None if row is None else row.standard_error for row in rows]
            curves.append(Curve(method, y, FAMILY[len(curves) % len(FAMILY)], spread))
    return LineChart(title, x=[float(M) for M in sizes], curves=curves, x_label="M", before="M = ", is_log_y=is_log)


def _chosen_by(found: Bench) -> str:
    setting = found.setting
    grid = ", ".join(f"{C:g}" for C in setting.C)
    return f"; C = {grid}" if len(setting.C) == 1 else f"; C of {grid} by {setting.inner} inner folds"


def _measure_table(measure: str, rows: tuple[BenchRow, ...]) -> Table:
    header = (
        "method",
        "M",
        measure,
        "±",
        "features",
        "sparsity",
        "seconds",
        "to choose C",
        "MB",
        "stability",
        "95%",
        "folds",
    )
    return Table(header, [_row_cells(row) for row in rows], title="The methods (± is one standard error)", left=1)


def _row_cells(row: BenchRow) -> tuple[str, ...]:
    found = row.stability
    return (
        row.method,
        _cardinality_text(row),
        _number_text(row.value, ".4f"),
        _number_text(row.standard_error, ".4f"),
        _number_text(row.n_features, ".4g"),
        _number_text(100.0 * row.sparsity, ".4g") + "%" if math.isfinite(row.sparsity) else "-",
        _number_text(row.seconds, ".3g"),
        _number_text(row.choice_seconds, ".3g") if row.choice_seconds else "-",
        "-" if row.memory_bytes is None else _megabytes_text(row.memory_bytes),
        "-" if found is None else f"{found.index:.3f}",
        "-" if found is None else f"{found.lower:.3f} to {found.upper:.3f}",
        str(row.done) if row.done == row.folds else f"{row.done} of {row.folds}",
    )


def _megabytes_text(size: int) -> str:
    """Megabytes; a fit that found its memory free in its own process took next to none of the system's."""
    return "<0.1" if size < 0.1 * MEGA else f"{size / MEGA:.1f}"


def _cardinality_text(row: BenchRow) -> str:
    return "all" if row.M is None else str(row.M)


def _frequent_features(row: BenchRow, found: Bench) -> str:
    """The features in most folds, with their share."""
    return first_of(row.shares, MOST_NAMED, lambda one: f"{found.names[one[0]]} {100 * one[1]:.0f}%")


def _number_text(value: float, form: str) -> str:
    return format(value, form) if math.isfinite(value) else "-"
