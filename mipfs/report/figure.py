"""Charts as HTML and SVG, without a library and readable without a script.

The area of a chart is an SVG that is stretched to the room that it gets, strokes keep their width, and all text stands
beside it as HTML: one figure serves a telephone, a wide screen and paper. A script adds values to a pointer and to the
arrow keys; its data is what the figure was drawn from.

Also here: where ticks stand and how they are written.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from mipfs.report.blocks import Bars, Chart, Curve, HeatMap, LineChart, Marks, Mosaic, Scatter, plain
from mipfs.report.visible import escape_invisible, escape_text


@dataclass(frozen=True)
class Scale:
    """An axis from `low` to `high` > `low`, logarithmic or not."""

    low: float
    high: float
    is_log: bool = False

    @classmethod
    def over(cls, values: Sequence[float], *, is_log: bool = False, pad: float = 0.0) -> Scale:
        """An axis on which all values lie, with a margin of `pad` of its length on both sides.

        A logarithmic axis of values that are not positive is a plain one.
        """
        low, high = min(values, default=0.0), max(values, default=1.0)
        if is_log and low > 0:
            a, b = math.log10(low), math.log10(high)
            short = max(0.0, 1.0 - (b - a)) / 2  # a decade at least: what hardly differs is not to look as if it did
            a, b = a - short, b + short
            return cls(10 ** max(-300.0, a - pad * (b - a)), 10 ** min(300.0, b + pad * (b - a)), True)
        if high - low <= 1e-12 * max(abs(low), abs(high), 1e-300):
            half = abs(low) * 0.05 or 1.0
            low, high = low - half, high + half
        most = 1e307
        room = pad * (min(high, most) - max(low, -most))
        return cls(max(-most, low - room), min(most, high + room))

    def place(self, value: float) -> float:
        """Where a value lies, 0 to 1; beyond them outside."""
        if self.is_log:
            low, high = math.log10(self.low), math.log10(self.high)
            return (math.log10(max(value, 1e-300)) - low) / (high - low)
        return (value - self.low) / (self.high - self.low)

    def ticks(self, wanted: int = 6) -> list[float]:
        """Round numbers inside the axis, at most about `wanted`."""
        if self.is_log:
            return self._decade_ticks(wanted)
        step = _round_step((self.high - self.low) / max(1, wanted))
        first = math.ceil(self.low / step - 1e-9)
        found = [step * k for k in range(first, first + 2 * wanted + 2)]
        return [0.0 if abs(value) < step * 1e-9 else value for value in found if value <= self.high + step * 1e-9]

    def _decade_ticks(self, wanted: int) -> list[float]:
        first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
        every = max(1, math.ceil((last - first + 1) / max(1, wanted)))
        found = [10.0**k for k in range(first, last + 1, every)]
        if len(found) >= 3:
            return found
        fine = [a * 10.0**k for k in range(first - 1, last + 1) for a in (1, 2, 5)]
        return [value for value in fine if self.low * (1 - 1e-9) <= value <= self.high * (1 + 1e-9)]


def labels(values: Sequence[float], as_they_are: bool = False) -> list[str]:
    """The ticks as text, each with as many digits as tell it from the next; or as they are."""
    if len(values) < 2 or as_they_are:
        return [f"{value:.6g}" for value in values]
    step = min(abs(b - a) for a, b in pairwise(values))
    size = max(map(abs, values))
    if not 0 < step < math.inf or not size < math.inf:
        return [f"{value:.6g}" for value in values]
    digits = min(15, max(1, math.ceil(math.log10(size) - math.log10(step) - 1e-9) + 1))
    return [f"{value:.{digits}g}" if size >= 1e6 or size < 1e-4 else _plain_decimal(value, step) for value in values]


def _plain_decimal(value: float, step: float) -> str:
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    text = f"{value:.{min(decimals, 12)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _round_step(least: float) -> float:
    """1, 2 or 5 times a power of ten, at least `least`."""
    power = 10.0 ** math.floor(math.log10(max(least, 1e-300)))
    return next(a * power for a in (1.0, 2.0, 5.0, 10.0) if a * power >= least * (1 - 1e-9))


MOST_TICKS = 5
"""Ticks that stand side by side on a narrow screen."""
LEAST_IDLE = 0.04
"""The share of a chart that a run takes to its first record from which on it is shaded."""
LEAST_WORDED = 0.3
"""The share of a chart in which a word has room on a telephone."""
ASIDE = 10.0
"""Units by which curves with whiskers stand apart."""
AREA_UNITS = 1000
"""Units of an area's own axes."""


def figure_style() -> str:
    """The style sheet of figures; colours are properties that a page may set anew."""
    return Path(__file__).with_name("figure.css").read_text(encoding="utf-8")


def figure(chart: Chart) -> str:
    """A chart as an HTML figure; whatever stands in it is escaped."""
    if isinstance(chart, LineChart):
        return _draw_lines(chart)
    if isinstance(chart, Bars):
        return _draw_bars(chart)
    if isinstance(chart, HeatMap):
        return _draw_grid(chart)
    if isinstance(chart, Scatter):
        return _draw_scatter(chart)
    assert isinstance(chart, Mosaic)
    return _draw_mosaic(chart)


def embed_document(document: Any) -> str:
    """A document inside a page: as JSON in which no character can end the element that it stands in."""
    text = json.dumps(document, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return f'<script type="application/json">{text}</script>'


def _visible_texts(document: Any) -> Any:
    """The document with texts as they are shown."""
    if isinstance(document, dict):
        return {name: _visible_texts(one) for name, one in document.items()}
    if isinstance(document, (list, tuple)):
        return [_visible_texts(one) for one in document]
    return escape_invisible(document) if isinstance(document, str) else document


def without_data(text: str) -> str:
    """Figures for where no script will read their data: in a notebook."""
    return re.sub(r'<script type="application/json">[^<]*</script>', "", text)


def _frame_chart(kind: str, title: str, inner: str, note: str, behind: str, data: Any) -> str:
    said = f'<p class="note">{escape_text(note)}</p>' if note else ""
    hidden = "" if data is None else embed_document(_visible_texts(data))
    caption = f"<figcaption>{escape_text(title)}</figcaption>" if title else ""
    return f'<figure class="chart {kind}" data-kind="{kind}">{caption}{inner}{said}{behind}{hidden}</figure>'


def _table_behind(chart: Chart) -> str:
    if chart.table is None:
        return ""
    return (
        f'<details class="behind"><summary>The numbers as a table</summary><div class="scroll">{chart.table.html()}'
        "</div></details>"
    )


# ---- curves ----------------------------------------------------------------------------------------------------


def _draw_lines(chart: LineChart) -> str:
    shown = [v for curve in chart.curves for v in _curve_extent(curve)]
    y = Scale(*chart.limits, chart.is_log_y) if chart.limits else Scale.over(shown, is_log=chart.is_log_y, pad=0.06)
    x = Scale.over(list(chart.x_limits or chart.x), is_log=chart.is_log, pad=0.0 if chart.is_step else 0.04)
    across = list(chart.x) if not chart.is_step and len(chart.x) <= 12 else x.ticks()
    up = y.ticks(5)
    grid = [f"M0 {_vertical_position(y, v):.1f}H{AREA_UNITS}" for v in up]
    parts = [_svg_path("".join(grid), "grid")]
    idle, word = _shade_before_first_record(chart, x)
    parts.append(idle)
    if chart.between is not None:
        parts.append(_draw_band(chart, x, y))
    aside = _curve_offsets(chart.curves)
    parts += [
        drawn
        for curve, by in reversed(list(zip(chart.curves, aside, strict=True)))
        for drawn in _draw_curve(chart, curve, x, y, by)
    ]
    left = [(f"left:{100 * x.place(v):.3f}%", text) for v, text in zip(across, _tick_texts(across, chart), strict=True)]
    as_share = all(curve.percent for curve in chart.curves)
    sides = labels([100 * v if as_share else v for v in up], y.is_log)
    low = [(f"bottom:{100 * y.place(v):.3f}%", text + "%" * as_share) for v, text in zip(up, sides, strict=True)]
    frame = _framed(chart, low, left, _svg_area(_describe_chart(chart), "".join(parts), word))
    lines = [*chart.curves, *chart.hover]
    data = {
        "x": list(chart.x),
        "low": x.low,
        "high": x.high,
        "log": x.is_log,
        "y": [y.low, y.high],
        "before": chart.before,
        "after": chart.after,
        "step": chart.is_step,
        "curves": [{"name": c.name, "role": c.role, "percent": c.percent, "y": plain(c.y)} for c in lines],
    }
    return _frame_chart(
        "lines", chart.title, _legend_html(chart.curves) + frame, chart.note, _table_behind(chart), data
    )


def _shade_before_first_record(chart: LineChart, x: Scale) -> tuple[str, str]:
    """What a run does before its first record, where that takes room: shaded, and said where the word has room."""
    if not chart.is_step or chart.x_limits is None or not chart.x:
        return "", ""
    share = x.place(float(chart.x[0]))
    if share < LEAST_IDLE:
        return "", ""
    drawn = _svg_path(f"M0 0H{AREA_UNITS * share:.2f}V{AREA_UNITS}H0Z", "idle")
    word = f'<span class="idle" style="width:{100 * share:.2f}%">before the first bound</span>'
    return drawn, word if share >= LEAST_WORDED else ""


def _curve_offsets(curves: Sequence[Curve]) -> list[float]:
    """How far each curve is moved aside, so that no whisker hides another."""
    many = len(curves)
    if many < 2 or all(curve.spread is None for curve in curves):
        return [0.0] * many
    return [ASIDE * (k - (many - 1) / 2) for k in range(many)]


def _tick_texts(values: Sequence[float], chart: LineChart) -> list[str]:
    """The ticks of x; those that are points stand as they are."""
    return labels(values, not chart.is_step or chart.is_log)


def _curve_extent(curve: Curve) -> list[float]:
    """The values between which a curve and its whiskers lie."""
    spread = curve.spread if curve.spread is not None else [0.0] * len(curve.y)
    known = [(v, s or 0.0) for v, s in zip(curve.y, spread, strict=True) if _is_known(v) and v is not None]
    return [end for v, s in known for end in (v - s, v + s)]


def _is_known(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def _vertical_position(scale: Scale, value: float) -> float:
    """From the top, a little beyond the frame where the value lies outside of it."""
    return AREA_UNITS * min(2.0, max(-1.0, 1.0 - scale.place(value)))


def _curve_pieces(
    chart: LineChart, curve: Curve, x: Scale, y: Scale, by: float = 0.0
) -> list[list[tuple[float, float]]]:
    """The pieces of a curve between values that are missing, in units of the area."""
    pieces: list[list[tuple[float, float]]] = [[]]
    for at, value in zip(chart.x, curve.y, strict=True):
        if value is None or not math.isfinite(value):
            pieces.append([])
        else:
            pieces[-1].append((AREA_UNITS * x.place(at) + by, _vertical_position(y, value)))
    return [piece for piece in pieces if piece]


def _draw_curve(chart: LineChart, curve: Curve, x: Scale, y: Scale, by: float) -> list[str]:
    drawn = []
    pieces = _curve_pieces(chart, curve, x, y, by)
    for piece in pieces:
        holds = chart.is_step and chart.x_limits is not None and _is_known(curve.y[-1]) and piece is pieces[-1]
        steps = _step_path(piece) + (f"H{AREA_UNITS}" if holds else "") if chart.is_step else _join_piece(piece)
        drawn.append(_svg_path(steps, f"line r-{curve.role}"))
        shown = [(AREA_UNITS if holds else piece[-1][0], piece[-1][1])] if chart.is_step else piece
        if not chart.is_step or piece is pieces[-1]:  # of steps the end, where a run may have one record
            drawn.append(_svg_path("".join(f"M{a:.2f} {b:.2f}h0" for a, b in shown), f"dot r-{curve.role}"))
    if curve.spread is not None:
        ends = zip(chart.x, curve.y, curve.spread, strict=True)
        bars = [
            f"M{AREA_UNITS * x.place(a) + by:.2f} {_vertical_position(y, v - s):.2f}V{_vertical_position(y, v + s):.2f}"
            for a, v, s in ends
            if v is not None and s is not None and math.isfinite(v) and math.isfinite(s)
        ]
        drawn.append(_svg_path("".join(bars), f"whisker r-{curve.role}"))
    return drawn


def _step_path(piece: Sequence[tuple[float, float]]) -> str:
    (a, b), rest = piece[0], piece[1:]
    parts = [f"M{a:.2f} {b:.2f}"]
    above = b
    for a, b in rest:
        parts.append(f"H{a:.2f}")
        if abs(b - above) > 1e-9:
            parts.append(f"V{b:.2f}")
        above = b
    return "".join(parts)


def _join_piece(piece: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{a:.2f} {b:.2f}" for a, b in piece)


def _draw_band(chart: LineChart, x: Scale, y: Scale) -> str:
    """The shaded space between two curves, where both are known."""
    assert chart.between is not None
    top, low = (chart.curves[k].y for k in chart.between)
    both = [k for k in range(len(chart.x)) if _is_known(top[k]) and _is_known(low[k])]
    if len(both) < 2:
        return ""
    drawn = []
    for values in (top, low):
        piece = [(AREA_UNITS * x.place(chart.x[k]), _vertical_position(y, float(values[k] or 0.0))) for k in both]
        drawn.append(
            _step_corners(piece, AREA_UNITS if chart.x_limits is not None else None) if chart.is_step else piece
        )
    return _svg_path(_join_piece([*drawn[0], *reversed(drawn[1])]) + "Z", "band")


def _step_corners(piece: Sequence[tuple[float, float]], end: float | None) -> list[tuple[float, float]]:
    found = [piece[0]]
    for a, b in piece[1:]:
        if abs(b - found[-1][1]) > 1e-9:
            found += [(a, found[-1][1]), (a, b)]
    return [*found, (end or piece[-1][0], found[-1][1])]


def _describe_chart(chart: LineChart) -> str:
    """The chart in a sentence."""
    ends = []
    for curve in chart.curves:
        known = [v for v in curve.y if v is not None and math.isfinite(v)]
        if known:
            first, last = (_write_value(v, curve.percent) for v in (known[0], known[-1]))
            ends.append(f"{curve.name} from {first} to {last}")
    return f"{chart.title or chart.y_label}: {'; '.join(ends)}."


def _write_value(value: float, percent: bool) -> str:
    return f"{100 * value:.3g}%" if percent else f"{value:.6g}"


# ---- points ----------------------------------------------------------------------------------------------------


def _draw_scatter(chart: Scatter) -> str:
    points = [one for one in chart.marks if not one.is_line]
    x = Scale.over([v for one in points for v in one.x], pad=0.04)
    y = Scale.over([v for one in points for v in one.y], pad=0.04)
    across, up = x.ticks(), y.ticks(5)
    parts = [_svg_path("".join(f"M0 {_vertical_position(y, v):.1f}H{AREA_UNITS}" for v in up), "grid")]
    for one in chart.marks:
        piece = [(AREA_UNITS * x.place(a), _vertical_position(y, b)) for a, b in zip(one.x, one.y, strict=True)]
        drawn = _join_piece(piece) if one.is_line else "".join(f"M{a:.1f} {b:.1f}h0" for a, b in piece)
        parts.append(_svg_path(drawn if piece else "", f"{'line' if one.is_line else 'sample'} r-{one.role}"))
    left = [(f"left:{100 * x.place(v):.3f}%", text) for v, text in zip(across, labels(across), strict=True)]
    low = [(f"bottom:{100 * y.place(v):.3f}%", text) for v, text in zip(up, labels(up), strict=True)]
    said = f"{chart.y_label} against {chart.x_label}: {', '.join(f'{len(one.x)} {one.name}' for one in points)}."
    frame = _framed(chart, low, left, _svg_area(said, "".join(parts)))
    return _frame_chart(
        "scatter", chart.title, _legend_html(chart.marks) + frame, chart.note, _table_behind(chart), None
    )


# ---- bars ------------------------------------------------------------------------------------------------------


def _draw_bars(chart: Bars) -> str:
    values = [bar.value for bar in chart.bars if bar.value is not None and math.isfinite(bar.value)]
    both = [-value for value in values] if chart.is_signed else []
    scale = Scale.over([0.0, *values, *both, *([chart.mark[0]] if chart.mark else [])])
    zero = 100 * scale.place(0.0)
    lines = []
    mark = ""
    if chart.mark:
        mark = f'<i class="mark" style="left:{100 * scale.place(chart.mark[0]):.3f}%"></i>'
    for bar in chart.bars:
        fill = ""
        if bar.value is not None and math.isfinite(bar.value):
            end = 100 * scale.place(bar.value)
            left = min(zero, end)
            width = abs(end - zero)
            fill = f'<i class="fill r-{bar.role}" style="left:{left:.3f}%;width:{width:.3f}%"></i>'
        axis = f'<i class="zero" style="left:{zero:.3f}%"></i>' if 0.0 < zero < 100.0 else ""
        said = f' data-tip="{escape_text(bar.detail)}"' if bar.detail else ""
        lines.append(
            f'<li{said}><span class="name">{escape_text(bar.name)}</span>'
            f'<span class="track">{fill}{axis}{mark}</span><span class="value">{escape_text(bar.text)}</span></li>'
        )
    key = f'<p class="key"><span class="k-mark">{escape_text(chart.mark[1])}</span></p>' if chart.mark else ""
    data = {"bars": [{"name": bar.name, "value": plain([bar.value])[0]} for bar in chart.bars]}
    inner = f'{key}<ul class="bars">{"".join(lines)}</ul>'
    return _frame_chart("barred", chart.title, inner, chart.note, _table_behind(chart), data)


# ---- heat maps -------------------------------------------------------------------------------------------------


def _draw_grid(chart: HeatMap) -> str:
    n, m = len(chart.rows), len(chart.columns)
    drawn = "".join(_draw_grid_row(row, k, n, m) for k, row in enumerate(chart.cells))
    rules = "".join(f"M0 {AREA_UNITS * k / n:.2f}H{AREA_UNITS}" for k in range(1, n)) if n else ""
    every = max(1, math.ceil(m / 12))
    ticks = [(f"left:{100 * (j + 0.5) / m:.3f}%", chart.columns[j]) for j in range(0, m, every)]
    names = "".join(f'<span title="{escape_text(name)}">{escape_text(name)}</span>' for name in chart.rows)
    right = "".join(f"<span>{escape_text(text)}</span>" for text in chart.right)
    said = f"{chart.title or 'heat map'}: {n} lines, {m} columns."
    head = f'<div class="rhead">{escape_text(chart.right_title)}</div>' if chart.right else ""
    inner = (
        f'<div class="heat" style="--n:{n};--m:{m}"><div class="names" aria-hidden="true">{names}</div>'
        f"{_svg_area(said, drawn + _svg_path(rules, 'rule'))}"
        f'<div class="right" aria-hidden="true">{right}</div>{head}'
        f"{_axis_below(ticks, chart.x_label)}</div>"
    )
    data = {
        "rows": list(chart.rows),
        "columns": list(chart.columns),
        "details": list(chart.details),
        "words": list(chart.words),
        "cells": [[round(float(v), 6) for v in row] for row in chart.cells],
    }
    return _frame_chart("grid", chart.title, inner, chart.note, _table_behind(chart), data)


def _draw_grid_row(row: Sequence[float], k: int, n: int, m: int) -> str:
    """The cells of a line; equal neighbours are one rectangle."""
    top = AREA_UNITS * k / n
    high = AREA_UNITS / n
    paths: dict[float, list[str]] = {}
    j = 0
    while j < m:
        end = j + 1
        while end < m and row[end] == row[j]:
            end += 1
        if row[j] > 0:
            width = f"{AREA_UNITS * (end - j) / m:.2f}"
            box = f"M{AREA_UNITS * j / m:.2f} {top:.2f}h{width}v{high:.2f}h-{width}z"
            paths.setdefault(round(float(row[j]), 3), []).append(box)
        j = end
    return "".join(
        f'<path class="cell" fill-opacity="{0.15 + 0.85 * min(1.0, share):.3g}" d="{"".join(boxes)}"/>'
        for share, boxes in paths.items()
    )


def _draw_mosaic(chart: Mosaic) -> str:
    lines = []
    for k, (name, *counts) in enumerate(chart.rows):
        whole = max(1, sum(counts))
        cells = "".join(
            f'<td class="{"right-one" if j == k else "wrong-one"}" style="--t:{100 * count / whole:.0f}%">{count}'
            f"<small>{100 * count / whole:.1f}%</small></td>"
            for j, count in enumerate(counts)
        )
        lines.append(f'<tr><th scope="row">{escape_text(name)}</th>{cells}</tr>')
    head = "".join(f'<th scope="col">{escape_text(name)}</th>' for name in chart.header)
    inner = f'<table class="mosaic"><tr><td></td>{head}</tr>{"".join(lines)}</table>'
    return _frame_chart("confusion", chart.title, inner, chart.note, "", None)


# ---- parts -----------------------------------------------------------------------------------------------------


def _framed(
    chart: LineChart | Scatter, low: Sequence[tuple[str, str]], left: Sequence[tuple[str, str]], area: str
) -> str:
    """An area between its axes, with ticks `low` at its left side and `left` below it."""
    wide = max([len(text) for _, text in low], default=1)
    return (
        f'<div class="frame" style="--w:{wide}ch"><div class="ylabel">{escape_text(chart.y_label)}</div>'
        f'<div class="ys" aria-hidden="true">{_tick_spans(low)}</div>{area}{_axis_below(left, chart.x_label)}</div>'
    )


def _svg_area(said: str, drawn: str, word: str = "") -> str:
    """The SVG, what a screen reader says of it, and the places that the script fills."""
    return (
        f'<div class="area" role="img" aria-label="{escape_text(said)}">'
        f'<svg viewBox="0 0 {AREA_UNITS} {AREA_UNITS}" preserveAspectRatio="none" aria-hidden="true" focusable="false">'
        f"{drawn}</svg>{word}</div>"
    )


def _axis_below(ticks: Iterable[tuple[str, str]], label: str) -> str:
    """Ticks and name of the axis of x."""
    return (
        f'<div class="xs" aria-hidden="true">{_tick_spans(ticks)}</div><div class="xlabel">{escape_text(label)}</div>'
    )


def _svg_path(drawn: str, names: str) -> str:
    return f'<path class="{names}" d="{drawn}"/>' if drawn else ""


def _tick_spans(places: Iterable[tuple[str, str]]) -> str:
    """Ticks; every second one of many makes room on a narrow screen."""
    ticks = list(places)
    odd = " class=odd" if len(ticks) > MOST_TICKS else ""
    return "".join(
        f'<span{odd if k % 2 else ""} style="{place}">{escape_text(text)}</span>'
        for k, (place, text) in enumerate(ticks)
    )


def _legend_html(curves: Sequence[Curve] | Sequence[Marks]) -> str:
    names = "".join(f'<span class="r-{c.role}">{escape_text(c.name)}</span>' for c in curves)
    return f'<p class="key">{names}</p>'
