"""Several results side by side: what differs between them, how their gaps closed, and who selects what."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mipfs.lab.page.parts import PageCard, anchor, cards, chart_card, status_pill
from mipfs.report.blocks import FAMILY, Curve, Detail, HeatMap, LineChart, Table
from mipfs.report.numbers import list_names, number, percent, time_text
from mipfs.report.thinning import visible_samples
from mipfs.report.visible import escape_text
from mipfs.result.result import Result

LEAST_GAP = 1e-6
"""The smallest gap that the common chart tells apart."""
LOGARITHMIC_RATIO = 10.0
"""How many times longer one run may take than another before the axis of time becomes logarithmic."""
NAMED = {"gap": "asked gap"}
"""Parameters whose name another column has."""
Named = tuple[int, str, Result]
"""Place on the page, name and result."""


def overview(named: Sequence[Named], detail: Detail) -> str:
    """Table, gaps and features of at least two results."""
    differing = _differing_parameters([result.params for _, _, result in named])
    return cards(
        [
            PageCard("Side by side", _comparison_table(named, differing), is_wide=True),
            chart_card("", _gaps_chart(named, detail), is_wide=True),
            chart_card("", _features_heat_map(named, detail), is_wide=True),
        ],
        level=2,
    )


def _differing_parameters(params: Sequence[Mapping[str, Any]]) -> list[str]:
    """The parameters that are not the same in all of them."""
    names = dict.fromkeys(name for one in params for name in one)
    texts = {name: {repr(one.get(name)) for one in params} for name in names}
    return [name for name in names if len(texts[name]) > 1]


def _comparison_table(named: Sequence[Named], differing: Sequence[str]) -> str:
    named_so = [NAMED.get(key, key) for key in differing]
    header = ["result", "status", "objective", "bound", "gap", "selected", "time", "driver", *named_so]
    lines = []
    for k, name, result in named:
        cells = [
            number(result.objective),
            number(result.bound),
            percent(result.gap),
            str(len(result.selected)) if result.has_classifier else "-",
            time_text(result.seconds),
            result.driver,
            *(_cell_text(key, result.params.get(key)) for key in differing),
        ]
        link = (
            f'<th scope="row"><a href="#{anchor(k)}">{escape_text(name)}</a></th><td>{status_pill(result.status)}</td>'
        )
        lines.append(f"<tr>{link}{''.join(f'<td>{escape_text(cell)}</td>' for cell in cells)}</tr>")
    head = "".join(f'<th scope="col">{escape_text(name)}</th>' for name in header)
    return f'<div class="scroll"><table><tr>{head}</tr>{"".join(lines)}</table></div>'


def _cell_text(key: str, value: Any) -> str:
    return percent(value) if key == "gap" and isinstance(value, float) else _short_text(value)


def _short_text(value: Any) -> str:
    text = "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
    text = text.lower() if isinstance(value, bool) else text
    if isinstance(value, (list, tuple)):
        text = ", ".join(map(str, value))
    return text if len(text) <= 40 else f"{text[:39]}…"


def _gaps_chart(named: Sequence[Named], detail: Detail) -> LineChart | None:
    """The gaps of all runs against time, on a common axis."""
    runs = []
    for _, name, result in named:
        seconds = np.array([record.seconds for record in result.trace])
        gaps = np.array([record.gap for record in result.trace], dtype=float)
        if np.isfinite(gaps).any():
            kept = visible_samples(seconds, gaps, detail.columns)
            runs.append((name, seconds[kept], gaps[kept]))
    if len(runs) < 2:
        return None
    runs = runs[: len(FAMILY)]
    x = np.unique(np.concatenate([seconds for _, seconds, _ in runs]))
    curves = []
    for (name, seconds, gaps), role in zip(runs, FAMILY, strict=False):
        places = np.searchsorted(seconds, x, side="right") - 1
        values = np.where((places >= 0) & (x <= seconds[-1]), gaps[np.maximum(places, 0)], np.nan)
        curves.append(Curve(name, [_shown_gap(v) for v in values.tolist()], role, percent=True))
    known = [v for curve in curves for v in curve.y if v is not None]
    ends = [float(seconds[-1]) for _, seconds, _ in runs]
    low = min(1e-4, *(v for v in known)) if known else 1e-4
    note = "" if len(named) == len(runs) else f"{len(runs)} of {len(named)} results have a gap to show here."
    return LineChart(
        "The gaps against time",
        x=x.tolist(),
        curves=curves,
        is_step=True,
        x_label="seconds",
        y_label="gap, logarithmic",
        after=" s",
        is_log=float(x[0]) > 0 and max(ends) > LOGARITHMIC_RATIO * min(ends),
        is_log_y=True,
        limits=(max(LEAST_GAP, low), max(1.0, *known)),
        note=f"{note} A curve ends where its run ended.".strip(),
        table=Table(
            ("result", "last gap", "seconds"),
            [(name, percent(float(gaps[-1])), f"{seconds[-1]:.4g}") for name, seconds, gaps in runs],
        ),
    )


def _shown_gap(gap: float) -> float | None:
    return max(LEAST_GAP, float(f"{gap:.6g}")) if math.isfinite(gap) else None


def _features_heat_map(named: Sequence[Named], detail: Detail) -> HeatMap | None:
    """Features × results."""
    found = [(name, result) for _, name, result in named if result.has_classifier][: detail.supports]
    times: dict[str, int] = {}
    for _, result in found:
        for feature in result.selected:
            times[feature] = times.get(feature, 0) + 1
    if len(found) < 2 or not times:
        return None
    names = sorted(times, key=lambda name: -times[name])
    shown = names[: detail.rows]
    note = (
        "" if len(shown) == len(names) else f"The {len(shown)} features that are selected most often of {len(names)}."
    )
    sets = [frozenset(result.selected) for _, result in found]
    return HeatMap(
        "Which features are selected where",
        rows=shown,
        columns=[str(k + 1) for k in range(len(found))],
        cells=[[1.0 if name in one else 0.0 for one in sets] for name in shown],
        details=[f"{name}: objective {number(result.objective)}" for name, result in found],
        right=[f"{times[name]}/{len(found)}" for name in shown],
        right_title="times",
        x_label="results, in the order of the table",
        note=note,
        table=Table(("result", "features"), [(name, list_names(result.selected)) for name, result in found], left=2),
    )
