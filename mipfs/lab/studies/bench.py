"""`mipfs.bench`: methods compared on one data set by nested cross-validation, with the stability of what they choose.

Every method at every M is fitted on the training part of each of `folds` stratified folds and tested on the rest. C is
chosen before, of a grid, by `inner` folds of that training part alone, so that no test row has a say in it. Each part
is scaled by its own training rows. A method that is refused, too large or too slow, or falls over, leaves a record that
says so.

Also here: a benchmark as people read it: the report of the command line, of `Bench.summary` and of notebooks.

Also here: where the units of a benchmark are done: here one after the other, in processes, or by a Dask client.
"""

from __future__ import annotations

import json
import math
import os
import shlex
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mipfs.data.instance import Instance
from mipfs.errors import DataError, UsageError
from mipfs.lab.studies import bench_unit
from mipfs.lab.studies.bench_reading import KIND, SCHEMA, load
from mipfs.lab.studies.bench_rows import BenchRow, rows_of
from mipfs.lab.studies.bench_unit import C_DEFAULT, COLUMN, DONE, FitUnit, Record, Setting, comparable_data
from mipfs.lab.studies.folds import settle_folds
from mipfs.measures.judged import ACCURACY, BY, SMALLER_IS_BETTER
from mipfs.plumbing import output_file
from mipfs.plumbing.cluster import check_client
from mipfs.plumbing.declared import Count, Seed, check_arguments, show_value
from mipfs.plumbing.signals import hearing_signals
from mipfs.report.blocks import FAMILY, Curve, LineChart, NamedValues, ReportBlock, Reported, Sentence, Table, Typed
from mipfs.report.numbers import first_of
from mipfs.report.visible import in_json
from mipfs.run.side_by_side import LostFit, run_tasks

ENDED = "its process was ended by the system, mostly for lack of memory"


def measured_records(
    data: Instance, setting: Setting, units: Sequence[FitUnit], *, jobs: int | None = None, client: Any = None
) -> Generator[Record, None, None]:
    """The record of every unit, as they come.

    Parameters
    ----------
    data, setting : as for `mipfs.lab.studies.bench_unit.run`
    units : sequence of FitUnit
    jobs : int >= 1, optional
        Processes, by default as many as there are cores, of which this is one. Where 2 or more are asked for, a process
        that dies (out of memory) is a record of the unit that it was at.
    client : dask.distributed.Client, optional
        Takes the units instead; what its workers run in threads keeps no time limit but that of the drivers.

    Raises
    ------
    UsageError
        `jobs` out of its range, or a client that is none.
    """
    if client is not None:
        check_client(client)
        yield from _of_client(data, setting, units, client)
        return
    with closing(run_tasks(_run_unit, (data, setting), units, jobs, here=jobs is None)) as found:
        for k, record in found:
            yield bench_unit.lost_record(units[k], ENDED) if isinstance(record, LostFit) else record


def _run_unit(given: tuple[Instance, Setting], unit: FitUnit) -> Record:
    return bench_unit.run(*given, unit)


def _of_client(
    data: Instance, setting: Setting, units: Sequence[FitUnit], client: Any
) -> Generator[Record, None, None]:
    from distributed import as_completed

    there = client.scatter(data, broadcast=True)
    futures = {client.submit(bench_unit.run, there, setting, unit, pure=False): unit for unit in units}
    try:
        for future in as_completed(list(futures)):
            error = future.exception()
            yield (
                future.result()
                if error is None
                else bench_unit.lost_record(futures[future], f"the worker failed: {error}")
            )
    finally:
        client.cancel(list(futures))


MOST_NAMED = 5
"""Features of a line that are named."""
MEGA = 1e6


def bench_blocks(found: Bench) -> list[ReportBlock]:
    """What was asked, a line for every method and M, what was said, and which features were chosen most often."""
    setting = found.setting
    rows = found.rows
    count = len(setting.units())
    pairs = [
        ("data", f"{setting.source or 'arrays'}, {len(found.names)} features, scale {setting.scaling}"),
        (
            "test",
            f"{setting.measure} on {setting.folds} folds{_describe_repeated(found)}, seed "
            f"{setting.seed}{_chosen_by(found)}",
        ),
        ("fits", f"{len(found.records)} of {count}" if len(found.records) < count else str(count)),
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
        asked = f"--scale {setting.scaling} --M {M} {_grid_in_words(found)}"
        blocks.append(Typed(f"mipfs path DATA {asked} --json path.json", "\nto use one: "))
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
    """The values of C, the weights and the folds of a path that chooses as the benchmark did."""
    asked = found.setting
    grid = ",".join(f"{C:g}" if float(f"{C:g}") == C else repr(float(C)) for C in asked.C)
    weights = asked.class_weight
    if weights is not None and not isinstance(weights, str):
        weights = ",".join(f"{label}:{weight!r}" for label, weight in weights) or "none"
    more = "" if asked.bias else " -p bias=false"
    more += "" if weights is None else f" -p {shlex.quote(f'class_weight={weights}')}"
    by = f" --by {asked.measure}" if asked.measure in BY and asked.measure != "error" else ""
    if asked.split.startswith(COLUMN):
        by += f" --folds-by {shlex.quote(asked.split.removeprefix(COLUMN).rpartition(' (')[0])}"
    seed = f" --seed {asked.seed}" if asked.seed else ""
    return f"--C {grid}{more} --folds {asked.folds}{by}{seed}"


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


@dataclass(frozen=True, eq=False)
class Bench(Reported):
    """What `bench` returns.

    Attributes
    ----------
    setting : Setting
        What was asked.
    names : sequence of p str, the features
    records : tuple of dict
        One for every unit that was done, fold by fold; see `mipfs.lab.studies.bench_unit.run`.
    interrupted : bool
    """

    setting: Setting
    names: Sequence[str]
    records: tuple[Record, ...]
    interrupted: bool = False

    def __repr__(self) -> str:
        asked = len(self.setting.units())
        stopped = ", interrupted" if self.interrupted else ""
        return f"<Bench of {len(self.setting.methods)} methods, {len(self.records)} of {asked} fits{stopped}>"

    @property
    def complete(self) -> bool:
        """Whether every unit was done."""
        return len(self.records) == len(self.setting.units())

    @property
    def rows(self) -> tuple[BenchRow, ...]:
        """A line for every method and M."""
        return rows_of(self.setting, self.records, len(self.names))

    def blocks(self) -> list[ReportBlock]:
        """Of the report: the table, what failed, and the features that were chosen most often."""

        return bench_blocks(self)

    def lead(self) -> str:
        """Which method is best on the folds that were held out."""

        return bench_lead(self)

    def document(self) -> dict[str, Any]:
        """``{schema, kind, complete, params, features, rows: [...], records: [...]}``, plain values only."""
        return {
            "schema": SCHEMA,
            "kind": KIND,
            "complete": self.complete,
            "params": self.setting.document(),
            "n_features": len(self.names),
            "rows": [row.document(self.names) for row in self.rows],
            "records": list(self.records),
        }

    def to_json(self) -> str:
        """`document` as JSON, every row and record in a line."""
        parts = []
        for key, value in self.document().items():
            if isinstance(value, list):
                parts.append(f'  "{key}": [' + ",".join(f"\n    {_as_json_text(one)}" for one in value) + "\n  ]")
            else:
                parts.append(f'  "{key}": {_as_json_text(value)}')
        return "{\n" + ",\n".join(parts) + "\n}"

    def save(self, path: str | Path) -> None:
        """Write the JSON to a file; one that cannot be written is a `UsageError`, and leaves what was there."""
        output_file.save([(Path(path), f"{self.to_json()}\n".encode())])

    def plot(self, path: str | Path) -> None:
        """Draw the measure and the seconds against the number of features, as .png, .svg or .pdf.

        Raises
        ------
        MissingExtraError
            matplotlib is not installed.
        UsageError
            Another suffix, or a file that cannot be written.
        """
        from mipfs.lab.studies.bench_plot import save_plot

        save_plot(self, Path(path))


@check_arguments
def bench(
    data: Instance,
    methods: Sequence[str],
    M: Sequence[int],
    *,
    C: Sequence[float] = C_DEFAULT,
    folds: Any = 10,
    inner: int = 3,
    repeats: int = 1,
    measure: str = ACCURACY,
    beta: float | None = None,
    k: int | None = None,
    bias: bool = True,
    seed: Seed = 0,
    time_limit: float | None = 60.0,
    ideal: Sequence[str] = (),
    class_weight: Any = None,
    jobs: Count | None = None,
    client: Any = None,
    records: Sequence[Mapping[str, Any]] = (),
    on_record: Callable[[Bench], object] | None = None,
) -> Bench:
    """Compare methods that select features, by nested cross-validation.

    Parameters
    ----------
    data : Instance
        Rows, forced features, penalties and bounds on weights are left out: hardly a baseline keeps them.
    methods : sequence of names of `mipfs.lab.studies.bench_methods.methods`
    M : sequence of int in 1 … p
        Numbers of features. References (cd-svm, cd-logistic) take all of them, once.
    C : sequence of float > 0
        Loss weights, of which inner folds choose; with one there is nothing to choose.
    folds : int >= 2, splitter of scikit-learn, or iterable of (training, test)
        Outer folds: see `mipfs.path`.
    inner : int >= 2
        Folds of every training part by which C is chosen: stratified, and by the column of `folds_by` as the outer
        ones; where a splitter keeps to the order of time these do not.
    repeats : int >= 1
        How often the outer folds are drawn anew; what a method draws at random is drawn anew for every fold.
    measure : "accuracy", "balanced-accuracy", "log-loss" or one of `mipfs.measures.MEASURES`
        What C is chosen by, and what is reported.
    beta, k : of the measure
    bias : bool, default True
    seed : int
        Of the folds and the methods.
    time_limit : float or None
        Seconds for every fit. A driver keeps its best classifier then, and its row says so; another method has none.
    ideal : sequence of str
        The features that matter where they are known, for the reference "svm-ideal".
    class_weight : mapping of label to float > 0, "balanced" or None
        Weights of the classes in every fit, "balanced" on its training part; None takes the data's own, ``{}`` none.
        The measure that is reported counts every test row once; methods that fit for a measure leave them out.
    jobs : int >= 1, optional
        Processes; every fit has one thread of linear algebra, and the same outcome.
    client : dask.distributed.Client, optional
        Takes the fits instead.
    records : iterable of dict
        Of an earlier benchmark of the same setting, such as ``Bench.records``: they are not done again.
    on_record : callable, optional
        Receives the `Bench` so far after every record.

    Returns
    -------
    Bench
        After Ctrl-C too, with the records that were reached.

    Raises
    ------
    UsageError
        A value that is unknown, out of its range or there twice.

    Examples
    --------
    >>> import mipfs
    >>> data = mipfs.read("instances/credit.csv", scale="standard")
    >>> found = mipfs.bench(data, ["information-gain", "uniform"], [2], C=[0.1], folds=3)
    >>> [(row.method, row.done, row.n_features) for row in found.rows]
    [('information-gain', 3, 2.0), ('uniform', 3, 2.0)]
    """
    used, count = settle_folds(comparable_data(data), folds)
    setting = Setting.of(
        used, methods, M, C=C, folds=count, inner=inner, measure=measure, beta=beta, k=k, bias=bias, seed=seed,
        time_limit=time_limit, repeats=repeats, ideal=ideal, class_weight=class_weight,
    )  # fmt: skip
    units = setting.units()
    done = {unit_of(record): dict(record) for record in records}
    left = [unit for unit in units if unit not in done]
    interrupted = False

    def so_far() -> Bench:
        return Bench(setting, used.feature_names, tuple(done[unit] for unit in units if unit in done), interrupted)

    try:
        with hearing_signals(), closing(measured_records(used, setting, left, jobs=jobs, client=client)) as found:
            for record in found:
                done[unit_of(record)] = record
                if on_record is not None:
                    on_record(so_far())
    except KeyboardInterrupt:
        interrupted = True
    return so_far()


def _as_json_text(value: Any) -> str:
    return in_json(json.dumps(value, ensure_ascii=False, allow_nan=False))


def unit_of(record: Mapping[str, Any]) -> FitUnit:
    """The unit that a record is of.

    Raises
    ------
    UsageError
        It says of none.
    """
    if not (isinstance(record, Mapping) and {"method", "M", "fold"} <= record.keys()):
        raise UsageError(f"{show_value(record)} is no record of a benchmark; give those of `Bench.records`")
    return FitUnit(record["method"], record["M"], record["fold"])


def records_of(path: str | Path, data: Instance, asked: Mapping[str, Any]) -> tuple[Record, ...]:
    """The records of a saved benchmark, to go on with; none where there is no such file.

    Parameters
    ----------
    path : where it was saved
    data : Instance
    asked : mapping, the arguments of `bench` beside the data; methods and M may be others than those of the file

    Raises
    ------
    DataError, UsageError
        The file is no benchmark, or one of other data or another setting.
    """
    if not os.path.exists(path):
        return ()
    theirs, records, _ = load(path, data.n_features)
    used, count = settle_folds(comparable_data(data), asked.get("folds", 10))
    Setting.of(used, **{**asked, "folds": count}).check_shared(theirs, str(path))
    return records


def check_no_benchmark(path: str | Path) -> None:
    """Refuse to begin anew over a benchmark, finished or not: it took long.

    Raises
    ------
    UsageError
    """
    if not os.path.isfile(path):
        return
    try:
        _, records, complete = load(path)
    except DataError:
        return  # some other file, which is replaced as any output is
    if not complete:
        raise UsageError(
            f"{path} holds an unfinished benchmark of {len(records)} fits; go on with --resume, or remove it"
        )
    raise UsageError(
        f"{path} holds a finished benchmark of {len(records)} fits; name another file, or remove it (--resume shows it)"
    )
