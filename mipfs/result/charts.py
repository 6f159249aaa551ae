"""The charts of a result: how its gap closed, its features, and its near-optimal supports as a heat map."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.plumbing.arrays import Array
from mipfs.report.blocks import Bar, Bars, Curve, Detail, HeatMap, LineChart, Mosaic, Table
from mipfs.report.numbers import list_names, number, percent
from mipfs.report.thinning import visible_samples
from mipfs.result.gap import relative_gap
from mipfs.result.interactions import functions_of
from mipfs.result.near_report import answer_sentence
from mipfs.result.prediction import weight_by_feature
from mipfs.result.result import Record, Result

EARLY_SHARE = 0.02
"""The share of a run after which its curves are worth a frame: first incumbents may be a thousand times the last."""
MOST_HEIGHT = 4.0
"""How much taller the frame may become by what came before."""
MOST_LISTED = 1000
"""Weights that a table has."""
SMALL = Detail(columns=500, records=40, rows=30, supports=60)
"""How much of a result a notebook shows: it is saved with every output."""
CLIPPED = "What lies beyond the frame belongs to the first moments of the run and stands in the table."


def gap_chart(result: Result, detail: Detail | None = None) -> LineChart | None:
    """Incumbent and bound against time; None without a record.

    Parameters
    ----------
    result : Result
    detail : Detail, optional
        How many columns the curves are thinned to, and how many records the table has.
    """
    detail = detail or Detail()
    trace = result.trace
    if not trace:
        return None
    seconds = _trace_column(trace, "seconds")
    columns = [("incumbent", "objective", "incumbent"), ("bound", "bound", "bound")]
    if any(math.isfinite(record.upper) for record in trace):
        columns.insert(1, ("relaxation, upper side", "upper", "upper"))
    values = {role: _trace_column(trace, field) for _, field, role in columns}
    values = {role: each for role, each in values.items() if np.isfinite(each).any()}
    if not values:
        return None
    parts = [visible_samples(seconds, each, detail.columns) for each in values.values()]
    kept = np.unique(np.concatenate(parts))
    curves = [
        Curve(name, _list_values(values[role][kept]), role, percent=False)
        for name, _, role in columns
        if role in values
    ]
    roles = [curve.role for curve in curves]
    both = {"incumbent", "bound"} <= set(roles)
    limits, clipped = _shown_limits(seconds, list(values.values()))
    gaps = [_round_gap(relative_gap(trace[k].objective, trace[k].bound)) for k in kept.tolist()]
    notes = [CLIPPED] if clipped else []
    if kept.size < len(trace):
        notes.append(
            f"{len(trace):,} records, drawn from the {kept.size:,} at which the picture changes: both curves are step "
            f"functions, and no step that is wider than a {detail.columns:,}th of the frame is left out."
        )
    return LineChart(
        "How the gap closed",
        x=[float(seconds[k]) for k in kept],
        curves=curves,
        is_step=True,
        between=(roles.index("incumbent"), roles.index("bound")) if both else None,
        x_label="seconds",
        y_label="objective",
        after=" s",
        limits=limits,
        x_limits=(0.0, max(result.seconds, float(seconds[-1]))),
        hover=[Curve("gap", gaps, "third", percent=True)] if both else [],
        note=" ".join(notes),
        table=_trace_table(trace, kept, detail.records),
    )


def _trace_column(trace: Sequence[Record], name: str) -> Array:
    values = np.array([getattr(record, name) for record in trace], dtype=float)
    values[~np.isfinite(values)] = math.nan
    return values


def _list_values(values: Array) -> list[float | None]:
    return [value if math.isfinite(value) else None for value in values.tolist()]


def _round_gap(gap: float) -> float | None:
    return float(f"{gap:.6g}") if math.isfinite(gap) else None


def _shown_limits(seconds: Array, columns: Sequence[Array]) -> tuple[tuple[float, float], bool]:
    """What is shown of the values, and whether that leaves some out."""
    everything = np.concatenate([each[np.isfinite(each)] for each in columns])
    begin = seconds[0] + EARLY_SHARE * (seconds[-1] - seconds[0])
    first = max(0, int(np.searchsorted(seconds, begin, side="right")) - 1)
    later = np.concatenate([each[first:][np.isfinite(each[first:])] for each in columns])
    low, high = float(everything.min()), float(everything.max())
    if later.size:
        a, b = float(later.min()), float(later.max())
        room = max(b - a, 0.02 * max(abs(a), abs(b)), 1e-12)
        if high - low > MOST_HEIGHT * room:
            return (max(low, a - 0.25 * room), min(high, b + 0.25 * room)), True
    room = 0.06 * max(high - low, 1e-3 * max(abs(low), abs(high)), 1e-9)
    return (low - room, high + room), False


def _trace_table(trace: Sequence[Record], kept: npt.NDArray[np.int64], most: int) -> Table:
    """The records that are drawn, every k-th of them where they are too many."""
    shown = kept[np.unique(np.linspace(0, kept.size - 1, max(2, most)).round().astype(int))]
    rows = [
        (f"{r.seconds:.4g}", str(r.iteration), number(r.objective), number(r.bound), percent(r.gap))
        for r in (trace[k] for k in shown.tolist())
    ]
    title = "" if len(rows) == len(trace) else f"{len(rows)} of {len(trace):,} records; all of them stand in the JSON"
    return Table(("seconds", "iteration", "incumbent", "bound", "gap"), rows, title=title, left=0)


def supports_chart(result: Result, detail: Detail | None = None) -> HeatMap | None:
    """Features × near-optimal supports; None where the run was not asked for them."""
    found = result.near_optimal
    detail = detail or Detail()
    if found is None or not found["supports"] or not found["share"]:
        return None
    supports = found["supports"]
    share = found["share"]
    names = list(share)[: detail.rows]
    said = answer_sentence(found)
    shown = supports[: detail.supports]
    sets = [frozenset(one["selected"]) for one in shown]
    notes = []
    if len(shown) < len(supports) or len(names) < len(share):
        notes.append(
            f"The best {len(shown)} of {len(supports)} supports and the {len(names)} most frequent of {len(share)} "
            "features; all of them stand in the JSON."
        )
    details = [
        f"support {k + 1}: objective {number(one['objective'])}, {_above_best_in_words(one)}"
        for k, one in enumerate(shown)
    ]
    rows = [(number(one["objective"]), percent(one["gap"]), list_names(one["selected"])) for one in shown]
    return HeatMap(
        f"{said[0].upper()}{said[1:]}",
        rows=names,
        columns=[str(k + 1) for k in range(len(shown))],
        cells=[[1.0 if name in one else 0.0 for one in sets] for name in names],
        details=details,
        right=[f"{100 * share[name]:.3g}%" for name in names],
        right_title="share",
        x_label="supports, the best first",
        note=" ".join(notes),
        table=Table(("objective", "above", "features"), rows, left=0),
    )


def presence_chart(result: Result, most: int = 60) -> Bars | None:
    """Which features stand in all of the near-optimal supports, in some, and how many in none; None without a list."""
    found = result.near_optimal
    if found is None or len(found["supports"]) < 2 or not found["share"]:
        return None
    count, share = len(found["supports"]), found["share"]
    times = {name: round(part * count) for name, part in share.items()}
    in_all = [name for name, one in times.items() if one == count]
    bars = [
        Bar(name, share[name], f"all {count}" if one == count else f"{one} of {count}",
            "first" if one == count else "second", f"{name}: in {one} of {count} near-optimal supports")
        for name, one in list(times.items())[:most]
    ]  # fmt: skip
    rest = result.n_features - len(share) if result.atoms is None else 0
    said = f"{len(in_all)} in all of them, {len(share) - len(in_all)} in some" + (f", {rest} in none" * (rest > 0))
    proven = "A feature in all of them has no substitute within the gap; one in some can be replaced."
    is_proven = found["complete"] and found["gap"] is not None and (found["size"] is None or count < found["size"])
    rows = [(name, "all" if one == count else "some", f"{one} of {count}") for name, one in times.items()]
    return Bars(
        f"Features of the near-optimal supports: {said}",
        bars,
        note=proven if is_proven else "Of the supports that are listed: there may be others.",
        table=Table(("feature", "in", "supports"), rows, left=2),
    )


def _above_best_in_words(one: dict[str, float]) -> str:
    return "the best" if one["gap"] == 0 else f"{percent(one['gap'])} above the best"


def weights_chart(result: Result, most: int = 60) -> Bars | None:
    """The selected features with their weights, and the share of the near-optimal supports that they stand in.

    Bars are weights on the scaled data, the weight times the scale of the column, so that columns can be compared; the
    numbers beside them are on the user's scale. None without a classifier.
    """
    if not result.has_classifier or not (result.selected or result.weights):
        return None
    scale = result.scaling.get("scale", {})
    share = (result.near_optimal or {}).get("share", {})
    is_scaled = result.scaling.get("kind") != "none"
    made = functions_of(result) is not None
    weights = weight_by_feature(result) if made else result.weights
    names = list(result.selected) if set(weights) <= set(result.selected) else list(weights)
    worth = {name: weights.get(name, 0.0) * scale.get(name, 1.0) for name in names}
    names.sort(key=lambda name: -abs(worth[name]))
    bars = []
    rows = []
    for name in names:
        weight = weights.get(name, 0.0)
        part = f"{100 * share[name]:.3g}% of the near-optimal supports" if name in share else ""
        said = f"{name}: weight {number(weight)}" + (f", {number(worth[name])} per scaled unit" if is_scaled else "")
        beside = f"{weight:.5g}" + (f" · {100 * share[name]:.3g}%" if name in share else "")
        bars.append(
            Bar(name, worth[name], beside, "first" if weight >= 0 else "fourth", said + _of_part_in_words(part))
        )
        line = [name, number(weight), *([number(worth[name])] if is_scaled else [])]
        rows.append((*line, *([f"{100 * share[name]:.3g}%" if name in share else "-"] if share else [])))
    value = "norm of its function" if made else "weight"
    header = ["feature", value, *(["on the scaled data"] if is_scaled else []), *(["share"] if share else [])]
    title = f"{MOST_LISTED} of {len(rows):,} weights; all of them stand in the JSON" if len(rows) > MOST_LISTED else ""
    rows = [*rows[:MOST_LISTED], ("(intercept)", number(result.intercept), *[""] * (len(header) - 2))]
    what = "on the scaled data, which can be compared" if is_scaled else "per unit of each column (nothing was scaled)"
    note = f"The numbers are weights on your scale, the bars weights {what}; to the right: towards "
    note += f"{result.labels['positive']}, to the left: towards {result.labels['negative']}."
    if made:
        note = "The numbers are the norms of the functions of the selected features."
    if not set(names) <= set(result.selected):
        note += f" Selected: {list_names(result.selected)}."
    if share:
        note += " The share is that of the near-optimal supports in which a feature stands."
    if len(names) > most:
        note += f" The {most} largest of {len(names)}; the others stand in the table."
    return Bars(
        "Selected features", bars[:most], is_signed=True, note=note, table=Table(tuple(header), rows, title=title)
    )


def _of_part_in_words(part: str) -> str:
    return f", in {part}" if part else ""


def confusion_chart(score: Mapping[str, Any], labels: tuple[str, str]) -> Mosaic:
    """The confusion of `mipfs.result.score.score`; `labels` are negative and positive, as the user calls them."""
    counts = score["confusion"]
    negative, positive = labels
    return Mosaic(
        "",
        (f"predicted {negative}", f"predicted {positive}"),
        [
            (f"is {negative}", counts["true_negative"], counts["false_positive"]),
            (f"is {positive}", counts["false_negative"], counts["true_positive"]),
        ],
    )
