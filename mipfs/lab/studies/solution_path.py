"""What `mipfs.path` returns: a point for every problem of the path, as objects, table and JSON."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.lab.studies.between import Between
from mipfs.lab.studies.steps import MovedRow, Place
from mipfs.report.blocks import NamedValues, ReportBlock, Reported, Sentence
from mipfs.report.frame import pandas_for
from mipfs.report.visible import as_json, escape_invisible, finite_or_none
from mipfs.result.gap import relative_gap
from mipfs.result.result import CERTIFICATE_LIMIT, SCHEMA, Result, Status

Value = int | float | tuple[int | float, ...]
"""The value of a path's only axis, or those of all its axes."""


@dataclass(frozen=True, eq=False)
class PathPoint:
    """One problem of a path, solved.

    Attributes
    ----------
    place : mapping of axis to int or float: of M, C or lambda the value; of rows how many steps were added
    result : Result, as the driver returned it
    bound : float
        Earned lower bound: the result's, or a larger one of a point whose optimum is not larger.
    gap_asked : float, the gap at which an answer counts as optimal
    seconds : float, of the solve and of choosing what was carried
    cuts_carried : int, cuts that it began with
    cuts : int, cuts that it added to them
    start : tuple of str, the support that it began from; () for none
    added : str, of rows the names of those that this step added
    cold : Result or None, of the same problem solved without anything carried
    errors : tuple of float, the validation error of every fold; () without folds
    fold_classifiers : tuple of mappings, "weights" and "intercept" of every fold on the user's scale
        () without errors, and where these do not say what a classifier is (functions and products of features).
    """

    place: Place
    result: Result
    bound: float
    gap_asked: float
    seconds: float
    cuts_carried: int
    cuts: int
    start: tuple[str, ...] = ()
    added: str = ""
    cold: Result | None = None
    errors: tuple[float, ...] = ()
    fold_classifiers: tuple[Mapping[str, Any], ...] = ()

    def __repr__(self) -> str:
        from mipfs.lab.studies.path_report import short

        return short(self)

    @property
    def value(self) -> Value:
        """The value on the only axis of the path, or those on all of them, such as (C, M)."""
        values = tuple(self.place.values())
        return values[0] if len(values) == 1 else values

    @property
    def objective(self) -> float:
        """The objective of the point's selection, on the problem's own data."""
        return self.result.objective

    @property
    def selected(self) -> tuple[str, ...]:
        """The names of what is selected."""
        return self.result.selected

    @property
    def gap(self) -> float:
        """(objective − bound)/|objective|: 0 where both are equal, infinite at an objective of 0 otherwise."""
        return relative_gap(self.objective, self.bound)

    @property
    def status(self) -> Status:
        """The result's, or OPTIMAL where the bound of another point closes the gap."""
        return Status.OPTIMAL if self.gap <= self.gap_asked else self.result.status

    @property
    def subproblems(self) -> int:
        """SVMs that were solved."""
        return int(self.result.counters.get("subproblems", 0))

    @property
    def seconds_saved(self) -> float | None:
        """What a cold solve took longer, measured; None where there was none."""
        return None if self.cold is None else self.cold.seconds - self.seconds

    @property
    def error(self) -> float:
        """Mean validation error: of wrong labels, or Δ of the measure of a structural loss; nan without folds."""
        return float(np.mean(self.errors)) if self.errors else math.nan

    @property
    def deviation(self) -> float:
        """Standard deviation of the validation error over the folds (divisor k − 1); nan without folds."""
        return float(np.std(self.errors, ddof=1)) if self.errors else math.nan

    @property
    def standard_error(self) -> float:
        """Of the mean validation error: the deviation divided by √k; nan without folds."""
        return self.deviation / math.sqrt(len(self.errors)) if self.errors else math.nan


@dataclass(frozen=True)
class RowShadowPrice:
    """What a unit of a row's right-hand side bought on average between two values.

    Attributes
    ----------
    tight, loose : float, the values
    least, most : float, by how much the optimum fell per unit: proven; ∓∞ where a bound or an objective is missing
    """

    tight: float
    loose: float
    least: float
    most: float

    @classmethod
    def between(cls, tight: PathPoint, loose: PathPoint, axis: str) -> RowShadowPrice:
        """From the objectives and bounds of two points."""
        here, there = float(tight.place[axis]), float(loose.place[axis])
        known = [math.isfinite(one) for one in (tight.bound, loose.objective, tight.objective, loose.bound)]
        least = (tight.bound - loose.objective) / abs(there - here) if all(known[:2]) else -math.inf
        most = (tight.objective - loose.bound) / abs(there - here) if all(known[2:]) else math.inf
        return cls(here, there, least, most)

    def document(self) -> dict[str, Any]:
        """As the JSON has it."""
        return {"tight": self.tight, "loose": self.loose} | {
            name: finite_or_none(getattr(self, name)) for name in ("least", "most")
        }


@dataclass(frozen=True, eq=False)
class SolutionPath(Reported):
    """What `path` returns.

    Attributes
    ----------
    axis : {"M", "C", "lambda", "rows", "C,M", "end"}
    params : mapping, what was asked, with the list of values under the name of every axis
    driver : str
    points : tuple of PathPoint, in the order that was asked; after Ctrl-C those that were reached
    interrupted : bool
    folds : int or None
    fold : (n,) array of int32 or None, the fold in whose test part each sample is; in the archive, not in the JSON
        Where samples are in several test parts or in none, (k, n) int8: 0 trained on, 1 tested on, 2 neither.
    seed : int, of the folds
    chosen : `least_error` or `one_se`, by the rule that was asked for; None without folds or after Ctrl-C
    least_error
        The value of least validation error, of equal ones the simplest: the smallest C, then the smallest M, the
        largest lambda, the fewest rows. Of the axis "C,M" the pair (C, M).
    one_se
        The simplest value whose validation error is at most one standard error (deviation/√folds) above the least;
        None along rows, none of which is simpler.
    rule : {"least-error", "one-se"}
    command : str or None, the command line that it came from
    certificate : mapping or None, {"file", "sha256"} of the certificates of its points, in a JSON
    file : str or None, where it was saved to or loaded from; not part of the JSON
    row : MovedRow or None, of a frontier the row whose end is the axis, with its name and the side that moves
    between : tuple of Between, sets at values of C between the points, each with a proven gap
    by : str or None, what the errors of the folds are of; None: of labels, or of the measure of a structural loss
    folds_by : str or None, the column that no fold takes apart, or what gave the folds; None of stratified ones
    """

    axis: str
    params: dict[str, Any]
    driver: str
    points: tuple[PathPoint, ...]
    interrupted: bool = False
    folds: int | None = None
    seed: int = 0
    chosen: Value | None = None
    least_error: Value | None = None
    one_se: Value | None = None
    rule: str = "least-error"
    command: str | None = None
    certificate: Mapping[str, Any] | None = None
    file: str | None = None
    fold: npt.NDArray[Any] | None = None
    row: MovedRow | None = None
    between: tuple[Between, ...] = ()
    by: str | None = None
    folds_by: str | None = None

    def __repr__(self) -> str:
        chosen = "" if self.chosen is None else f", chosen {self.chosen}"
        stopped = ", interrupted" if self.interrupted else ""
        seconds = sum(point.seconds for point in self.points)
        points = f"{len(self.points)} point{'' if len(self.points) == 1 else 's'}"
        driver = escape_invisible(self.driver)
        return f"<SolutionPath along {self.axis}, {points}{stopped}{chosen}, {driver}, {seconds:.2f} s>"

    def blocks(self) -> list[ReportBlock]:
        """Of the report: every point, the supports, and what folds chose."""
        from mipfs.lab.studies.path_report import path_blocks

        return path_blocks(self)

    @property
    def axes(self) -> tuple[str, ...]:
        """The names in `axis`."""
        return tuple(self.axis.split(","))

    @property
    def along(self) -> tuple[str, ...]:
        """The axes as they are shown: of a frontier its row's name."""
        return self.axes if self.row is None else (self.row.name,)

    def __getitem__(self, value: Value) -> PathPoint:
        """The point of that M, C, lambda or number of steps of rows, or of that (C, M)."""
        for point in self.points:
            if point.value == value:
                return point
        raise KeyError(value)

    def at(self, C: float, data: Instance, *, selected: Sequence[str] | None = None, M: int | None = None) -> Between:
        """How far from the best a set is at a C between two points: at most `gap`, which is proven.

        The optimum is concave in C, so the chord through the bounds of both points is a bound.

        Parameters
        ----------
        C : float, between the smallest and the largest C of the path
        data : Instance, the data that it was solved on
        selected : sequence of str, optional
            The set; by default the better one of those of the two points.
        M : int, of a path over C and M

        Returns
        -------
        Between

        Raises
        ------
        UsageError
            A path without C, a C outside of it, a set that the problem does not allow; other data, joint losses, the
            ρ-form, atoms that are no single features, and rows with variables of their own.
        """
        from mipfs.lab.studies import between

        return between.at(self, C, data, selected, M)

    @property
    def bought(self) -> tuple[RowShadowPrice, ...]:
        """Between each two neighbours of a frontier what a unit of the row bought on average: at least and at most.

        From the tighter value t to the looser one l, with objectives U and bounds L, the optimum falls by at least
        L(t) − U(l) and by at most U(t) − L(l), of which a unit is the share 1/|l − t|. Empty for any other path.
        """
        if self.row is None:
            return ()
        ordered = sorted(self.points, key=lambda point: self._looseness_key(float(point.place[self.axis])))
        return tuple(RowShadowPrice.between(tight, loose, self.axis) for tight, loose in itertools.pairwise(ordered))

    def _looseness_key(self, value: float) -> float:
        return value if self.row is None else self.row.looser(value)

    @property
    def best(self) -> PathPoint | None:
        """The chosen point: its classifier is that of all data."""
        return None if self.chosen is None else self[self.chosen]

    def table(self) -> list[dict[str, Any]]:
        """A line of plain values for every point; what was not earned or not measured is None."""
        return [
            {
                **point.place,
                **({"added": point.added} if self.axis == "rows" else {}),
                "status": point.status.name,
                "stop_reason": point.result.stop_reason.name,
                **{name: finite_or_none(getattr(point, name)) for name in ("objective", "bound", "gap")},
                "selected": list(point.selected),
                "seconds": point.seconds,
                **{name: getattr(point, name) for name in ("cuts_carried", "cuts", "subproblems", "seconds_saved")},
                "cold_seconds": None if point.cold is None else point.cold.seconds,
                "error": finite_or_none(point.error),
                "deviation": finite_or_none(point.deviation),
                "standard_error": finite_or_none(point.standard_error),
            }
            for point in self.points
        ]

    def to_frame(self) -> Any:
        """`table` as a pandas data frame, a row for every point; what was not earned or not measured is NaN.

        Returns
        -------
        pandas.DataFrame
            Its index is the axis, or a MultiIndex (C, M) of both; ``selected`` holds tuples of names.

        Raises
        ------
        UsageError
            pandas is not installed.
        """
        pandas = pandas_for("SolutionPath.to_frame()")
        frame = pandas.DataFrame([line | {"selected": tuple(line["selected"])} for line in self.table()])
        measured = (
            "objective",
            "bound",
            "gap",
            "seconds_saved",
            "cold_seconds",
            "error",
            "deviation",
            "standard_error",
        )
        kinds = dict.fromkeys(frame.columns.intersection(measured), float)
        return frame.astype(kinds).set_index(list(self.axes)) if len(frame) else frame

    def document(self) -> dict[str, Any]:
        """``{schema, params, points: [...]}``: the lines of `table`, each with its start, errors and whole result.

        The axis "C,M" has C and M in every line, and what is chosen there is ``{"C": ..., "M": ...}``. Where the
        one-standard-error rule was asked for, ``rule``, ``least_error`` and ``one_se`` stand beside ``chosen``.
        """
        points = [
            line
            | {"start": list(point.start), "errors": list(point.errors), **self._of_folds(point)}
            | {"result": point.result.document()}
            for line, point in zip(self.table(), self.points, strict=True)
        ]
        command = {} if self.command is None else {"command": self.command}
        head = {"schema": SCHEMA, **command, "axis": self.axis, "params": self.params, "driver": self.driver}
        validation = {"folds": self.folds, "seed": self.seed, "chosen": self._named_values(self.chosen)}
        if self.rule == "one-se":
            both = {name: self._named_values(getattr(self, name)) for name in ("least_error", "one_se")}
            validation |= {"rule": self.rule, **both}
        elif self.one_se is not None:
            validation["one_se"] = self._named_values(self.one_se)
        validation |= {name: said for name in ("by", "folds_by") if (said := getattr(self, name)) is not None}
        beside: dict[str, Any] = {} if self.certificate is None else {"certificate": dict(self.certificate)}
        if self.row is not None:
            bought = [one.document() for one in self.bought]
            beside |= {"row": {"name": self.row.name, "side": self.row.side}, "bought": bought}
        if self.between:
            beside["between"] = [one.document() for one in self.between]
        return head | validation | {"interrupted": self.interrupted, **beside, "points": points}

    def _of_folds(self, point: PathPoint) -> dict[str, Any]:
        """The classifiers of the folds of a point, where it is known which samples these are."""
        known = self.fold is not None and point.fold_classifiers
        return {"fold_classifiers": [dict(one) for one in point.fold_classifiers]} if known else {}

    def _named_values(self, value: Value | None) -> Any:
        return dict(zip(self.axes, value, strict=True)) if isinstance(value, tuple) else value

    def to_json(self) -> str:
        """`document` as JSON."""
        return as_json(self.document())

    @classmethod
    def load(cls, path: str | Path) -> SolutionPath:
        """Read what `save` wrote, but for the cold solves; a `DataError` names what is odd."""
        from mipfs.lab.studies import reading

        return reading.load_kind(path, cls)

    def shown(self) -> list[ReportBlock]:
        """In a notebook: what was asked and chosen, the charts, and which features are selected where."""
        from mipfs.lab.studies.charts import path_charts, path_supports

        words = [block for block in self.blocks() if isinstance(block, (NamedValues, Sentence))]
        grid = path_supports(self)
        return [*words, *path_charts(self), *([] if grid is None else [grid])]

    def to_csv(self) -> str:
        """`table` as CSV, with a header and a line for every point; names of features are separated by ``;``.

        Of a frontier a line also has what a unit bought from the next tighter value on, `bought_least`, `bought_most`.
        """
        import csv
        import io

        bought = {one.loose: one.document() for one in self.bought}
        lines = []
        for line, point in zip(self.table(), self.points, strict=True):
            shown: dict[str, Any] = line | {"selected": ";".join(line["selected"])}
            if self.row is not None:
                one = bought.get(float(point.place[self.axis]), {})
                shown |= {"bought_least": one.get("least"), "bought_most": one.get("most")}
            lines.append(shown)
        stream = io.StringIO()
        writer = csv.DictWriter(stream, [*(lines[0] if lines else self.axes)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)
        return stream.getvalue()

    def save_csv(self, path: str | Path) -> None:
        """Write `to_csv` to a file.

        Raises
        ------
        UsageError
            It cannot be written.
        """
        from mipfs.plumbing import output_file

        output_file.save([(Path(path), self.to_csv().encode())])

    def plot_path(self, ax: Any = None) -> Any:
        """Draw objective and bound along the path with matplotlib, the gap of every point between them.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; new axes by default. Of a path over C and M every C is drawn into the same axes.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        MissingExtraError
            matplotlib is not installed.
        UsageError
            The path has no points.
        """
        from mipfs.lab.studies.charts import path_charts
        from mipfs.report.axes import draw

        charts = [chart for chart in path_charts(self) if chart.between is not None]
        if not charts:
            raise UsageError("plot_path(): the path has no points to draw")
        for chart in charts:
            ax = draw(chart, ax, "plot_path()")
        return ax

    def plot_supports(self, ax: Any = None) -> Any:
        """Draw which features are selected where, as a heat map; parameters and errors as in `plot_path`."""
        from mipfs.lab.studies.charts import path_supports
        from mipfs.report.axes import draw

        chart = path_supports(self)
        if chart is None:
            raise UsageError("plot_supports(): no point of the path selects a feature")
        return draw(chart, ax, "plot_supports()")

    def save(self, path: str | Path, *, certificate_limit: float = CERTIFICATE_LIMIT) -> None:
        """Write the JSON to a file and the certificates of all points beside it as ``PATH.cert.npz``.

        ``mipfs verify PATH.json#M=4 DATA`` and `mipfs.verify` check a point of what was loaded. A file that cannot be
        written is a `UsageError`, and leaves what was there; `certificate_limit` is that of `Result.save`, for a point.
        """
        from mipfs.lab.studies import point_files

        point_files.save(self, Path(path), 1e6 * certificate_limit)
