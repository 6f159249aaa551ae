"""`mipfs.bench`: methods compared on one data set by nested cross-validation, with the stability of what they choose.

Every method at every M is fitted on the training part of each of `folds` stratified folds and tested on the rest. C is
chosen before, of a grid, by `inner` folds of that training part alone, so that no test row has a say in it. Each part
is scaled by its own training rows. A method that is refused, too large or too slow, or falls over, leaves a record that
says so.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mipfs.data.instance import Instance
from mipfs.errors import DataError, UsageError
from mipfs.lab.studies.bench_reading import KIND, SCHEMA, load
from mipfs.lab.studies.bench_rows import BenchRow, rows_of
from mipfs.lab.studies.bench_setting import C_DEFAULT, FitUnit, Setting, comparable_data
from mipfs.lab.studies.bench_unit import Record
from mipfs.lab.studies.bench_work import records as worked
from mipfs.lab.studies.folds import settle_folds
from mipfs.measures.judged import ACCURACY
from mipfs.plumbing import output_file
from mipfs.plumbing.declared import Count, Seed, check_arguments, show_value
from mipfs.plumbing.signals import hearing_signals
from mipfs.report.blocks import ReportBlock, Reported
from mipfs.report.visible import in_json


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
        from mipfs.lab.studies.bench_report import bench_blocks

        return bench_blocks(self)

    def lead(self) -> str:
        """Which method is best on the folds that were held out."""
        from mipfs.lab.studies.bench_report import bench_lead

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
        with hearing_signals(), closing(worked(used, setting, left, jobs=jobs, client=client)) as found:
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
