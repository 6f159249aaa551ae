"""The charts of a ladder and of a path."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from mipfs.lab.studies.ladder import Comparison, Rung
from mipfs.lab.studies.path_report import cells, error_of, folds_of
from mipfs.lab.studies.solution_path import PathPoint, SolutionPath
from mipfs.lab.studies.steps import place_text
from mipfs.measures.judged import LOG_LOSS
from mipfs.report.blocks import FAMILY, Bar, Bars, Curve, Detail, HeatMap, LineChart, Table
from mipfs.report.numbers import list_names, number, percent
from mipfs.report.visible import finite_or_none
from mipfs.result.result import Status

NAMES = {
    "plain": "the SVM on all features",
    "big-m": "continuous relaxation of the big-M model",
    "qcqp-ssvm": "QCQP relaxation of the sparse SVM",
    "sdp-ssvm": "SDP relaxation of the sparse SVM",
    "nmmkl": "the same as a QCQP: multiple kernel learning (Xu 2009)",
    "decomposed-sdp": "the same as a semidefinite program of a small block a feature (Bomze 2025)",
    "boolean": "Boolean relaxation, 0 ≤ σ ≤ 1",
    "convex-hull": "relaxation over the convex hull of the selections",
    "exact": "the problem itself",
}

PLAIN = ("solved", "optimal")
"""What a rung's status is where nothing else is to be said of it."""
LEAST_GAP = 1e-6
"""The smallest gap that a chart tells apart."""


def ladder_chart(comparison: Comparison) -> Bars:
    """The bound of every rung, and the best classifier's value."""
    known = math.isfinite(comparison.incumbent)
    marks = _status_marks(comparison.ladder)
    bars = [
        Bar(rung.name, finite_or_none(rung.value), _rung_label(rung, marks), _rung_role(rung), _describe_rung(rung))
        for rung in comparison.ladder
    ]
    notes = [
        *(["A bar ends at the bound; what is missing to the dashed line is the gap."] if known else []),
        *(f"{mark} {status}." for status, mark in marks.items()),
    ]
    rows = [
        (
            rung.name,
            NAMES.get(rung.name, ""),
            rung.status,
            number(rung.value),
            percent(rung.gap),
            f"{rung.seconds:.2f}",
            _program_size_text(rung),
        )
        for rung in comparison.ladder
    ]
    return Bars(
        "The ladder of relaxations: what each proves",
        bars,
        mark=(comparison.incumbent, f"best classifier, {number(comparison.incumbent)}") if known else None,
        note=" ".join(notes),
        table=Table(
            ("rung", "what it is", "status", "bound", "gap", "seconds", "constraints × variables"), rows, left=3
        ),
    )


def _rung_role(rung: Rung) -> str:
    return "third" if rung.name == "exact" and rung.status == "optimal" else "bound"


def _rung_label(rung: Rung, marks: Mapping[str, str]) -> str:
    """Bound and gap, and the mark of what the note says of it."""
    mark = f" {marks[rung.status]}" if rung.status in marks else ""
    if not math.isfinite(rung.value):
        return f"no bound{mark}"
    gap = f", gap {percent(rung.gap)}" if math.isfinite(rung.gap) else ""
    return f"{rung.value:.6g}{gap}{mark}"


def _status_marks(ladder: Sequence[Rung]) -> dict[str, str]:
    """A mark for every status of which there is more to say than that the rung was solved."""
    said = dict.fromkeys(rung.status for rung in ladder if rung.status not in PLAIN)
    return {status: "*" * (k + 1) for k, status in enumerate(said)}


def _describe_rung(rung: Rung) -> str:
    size = "" if rung.size is None else f", {_program_size_text(rung)} constraints × variables"
    return f"{NAMES.get(rung.name, rung.name)}: {rung.status}, bound {number(rung.value)}, {rung.seconds:.2f} s{size}"


def _program_size_text(rung: Rung) -> str:
    return "-" if rung.size is None else f"{rung.size['constraints']} × {rung.size['variables']}"


def path_charts(path: SolutionPath) -> list[LineChart]:
    """Objective and bound along the path, the gap of every point and, with folds, the validation error.

    Of a path over C and M one chart for every C, along M; of one value of M one chart, along C.
    """
    return [*value_charts(path), *error_charts(path)]


def value_charts(path: SolutionPath) -> list[LineChart]:
    """Objective, bound and gap along the path."""
    return [chart for leg in _split_into_legs(path) for chart in _charts_of_leg(path, *leg)]


def error_charts(path: SolutionPath) -> list[LineChart]:
    """The validation errors: one chart, of a path over two axes with a curve for each value of the first; without folds
    none.
    """
    legs = [(ordered, of) for ordered, of in _split_into_legs(path) if any(point.errors for point in ordered)]
    groups = [legs[k : k + len(FAMILY)] for k in range(0, len(legs), len(FAMILY))]
    return [_errors_chart(path, group) for group in groups]


def _moved_axes(path: SolutionPath) -> tuple[str, ...]:
    """The axes along which there is more than one value; the inner one of a path of one point."""
    moved = tuple(axis for axis in path.axes if len({point.place[axis] for point in path.points}) > 1)
    return moved or tuple(path.axes[-1:])


def _split_into_legs(path: SolutionPath) -> list[tuple[list[PathPoint], str]]:
    """The points along the inner axis, for every value of the outer one, and what says which."""
    if not path.points:
        return []
    axes = _moved_axes(path)
    axis = axes[-1]
    if len(axes) == 1:
        return [(sorted(path.points, key=lambda point: point.place[axis]), "")]
    outer = axes[0]
    values = dict.fromkeys(point.place[outer] for point in path.points)
    return [
        (
            sorted((p for p in path.points if p.place[outer] == value), key=lambda point: point.place[axis]),
            f"{outer} = {value:g}",
        )
        for value in values
    ]


def _blank_chart(path: SolutionPath, x: Sequence[float]) -> LineChart:
    axis = _moved_axes(path)[-1]
    is_log = axis in ("C", "lambda") and min(x) > 0 and max(x) >= 8 * min(x)
    what = "rows added" if axis == "rows" else axis if path.row is None else path.row.name
    return LineChart("", x=x, curves=(), x_label=what, before=f"{what} = ", is_log=is_log)


def _charts_of_leg(path: SolutionPath, ordered: Sequence[PathPoint], leg: str) -> list[LineChart]:
    """The charts over one axis: values and gaps; `leg` says which of a longer path it is."""
    of = f", {leg}" if leg else ""
    blank = _blank_chart(path, [float(point.place[_moved_axes(path)[-1]]) for point in ordered])
    found = [_values_chart(path, ordered, blank, of)]
    is_open = any(p.gap > p.gap_asked and p.status is not Status.INFEASIBLE for p in ordered)
    if any(math.isfinite(point.gap) for point in ordered) and (is_open or not of):  # of many legs those with a gap
        found.append(_gaps_chart(ordered, blank, of))
    return found


def _values_chart(path: SolutionPath, points: Sequence[PathPoint], blank: LineChart, of: str) -> LineChart:
    """Objective and bound."""
    header, lines = cells(path)
    shown = [line for point, line in zip(path.points, lines, strict=True) if point in points]
    return replace(
        blank,
        title=f"Objective and bound along {blank.x_label}{of}",
        curves=[
            Curve("objective", _values_of(points, lambda point: point.objective), "incumbent"),
            Curve("bound", _values_of(points, lambda point: point.bound), "bound"),
        ],
        between=(0, 1),
        y_label="objective",
        hover=[Curve("gap", _values_of(points, lambda point: point.gap), "third", percent=True)],
        table=Table(header, shown, left=0),
    )


def _gaps_chart(points: Sequence[PathPoint], blank: LineChart, of: str) -> LineChart:
    """The gap of every point."""
    gaps = [None if gap is None else max(LEAST_GAP, gap) for gap in _values_of(points, lambda point: point.gap)]
    asked = percent(max(point.gap_asked for point in points))
    rows = [(_place_text(point), percent(point.gap), point.status.name.lower()) for point in points]
    return replace(
        blank,
        title=f"Gap along {blank.x_label}{of}",
        curves=[Curve("gap", gaps, "third", percent=True)],
        y_label="gap, logarithmic",
        is_log_y=True,
        note=f"Asked was {asked}; a gap below {percent(LEAST_GAP)} is drawn there.",
        table=Table((blank.x_label, "gap", "status"), rows, left=0),
    )


def _errors_chart(path: SolutionPath, legs: Sequence[tuple[Sequence[PathPoint], str]]) -> LineChart:
    """The validation error of the folds."""
    axis = _moved_axes(path)[-1]
    x = sorted({float(point.place[axis]) for points, _ in legs for point in points})
    blank = _blank_chart(path, x)
    curves, rows = [], []
    for k, (points, leg) in enumerate(legs):
        at = {float(point.place[axis]): point for point in points}
        error = [finite_or_none(at[v].error) if v in at else None for v in x]
        spread = [finite_or_none(at[v].standard_error) if v in at else None for v in x]
        role = FAMILY[k] if leg else "second"
        curves.append(
            Curve(leg or f"validation {error_of(path)}", error, role, spread=spread, percent=path.by != LOG_LOSS)
        )
        rows += [
            (_place_text(p), _share_text(p.error), _share_text(p.deviation), _share_text(p.standard_error))
            for p in points
        ]
    return replace(
        blank,
        title=f"Validation {error_of(path)} of {folds_of(path)}",
        curves=curves,
        y_label=error_of(path),
        note=_describe_choice(path),
        table=Table((blank.x_label, error_of(path), "deviation", "standard error"), rows, left=0),
    )


def _share_text(value: float) -> str:
    return f"{value:.4f}" if math.isfinite(value) else "-"


def _describe_choice(path: SolutionPath) -> str:
    text = "Whiskers are one standard error over the folds."
    if path.best is None:
        return text
    rule = "within one standard error of the least" if path.rule == "one-se" else "of least error"
    return f"{text} Chosen: {place_text(path.best.place)}, {rule}."


def _values_of(points: Sequence[PathPoint], of: Callable[[PathPoint], float]) -> list[float | None]:
    return [finite_or_none(of(point)) for point in points]


def path_supports(path: SolutionPath, detail: Detail | None = None) -> HeatMap | None:
    """Features × points: what is selected where, features by how often; None where nothing is selected."""
    detail = detail or Detail()
    points = path.points[: detail.supports]
    times: dict[str, int] = {}
    for point in points:
        for name in point.selected:
            times[name] = times.get(name, 0) + 1
    if not times:
        return None
    names = sorted(times, key=lambda name: -times[name])  # stable: of equals the first selected
    shown = names[: detail.rows]
    sets = [frozenset(point.selected) for point in points]
    left_out = len(path.points) > len(points) or len(names) > len(shown)
    note = (
        f"The {len(shown)} features that are selected most often of {len(names)}, and the first {len(points)} of "
        f"{len(path.points)} points; all of them stand in the JSON."
    )
    rows = [(_place_text(point), str(len(point.selected)), list_names(point.selected)) for point in points]
    return HeatMap(
        "Which features are selected where",
        rows=shown,
        columns=[_place_text(point) for point in points],
        cells=[[1.0 if name in one else 0.0 for one in sets] for name in shown],
        details=[f"{place_text(p.place)}: {p.status.name.lower()}, objective {number(p.objective)}" for p in points],
        right=[f"{times[name]}/{len(points)}" for name in shown],
        right_title="times",
        x_label=", ".join(path.along),
        note=note if left_out else "",
        table=Table((", ".join(path.along), "size", "features"), rows, left=0),
    )


def _place_text(point: PathPoint) -> str:
    return ", ".join(f"{value:g}" for value in point.place.values())
