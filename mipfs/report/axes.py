"""Charts drawn with matplotlib, for papers and notebooks of one's own."""

from __future__ import annotations

from typing import Any

import numpy as np

from mipfs.errors import MissingExtraError
from mipfs.report.blocks import Bars, Chart, Curve, HeatMap, LineChart, Scatter
from mipfs.report.visible import escape_invisible

COLOURS = {
    "bound": "#1f6fc9",
    "incumbent": "#c2521a",
    "upper": "#7a4fb0",
    "first": "#1f6fc9",
    "second": "#c2521a",
    "third": "#1b7f4b",
    "fourth": "#7a4fb0",
    "fifth": "#a3740a",
    "sixth": "#b0306f",
}
"""Those of `figure.css`."""
TEX = str.maketrans(
    {one: f"\\{one}" for one in "$_%{}&#"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
)
"""What TeX obeys, as it shows it."""
MOST_NAMES = 40
"""Columns of a heat map that are named."""


def draw(chart: Chart, ax: Any, method: str) -> Any:
    """Draw a chart on axes.

    Parameters
    ----------
    chart : LineChart, Bars, Scatter or HeatMap
    ax : matplotlib Axes, or None for new ones
    method : what the user called, for the message

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    MissingExtraError
        matplotlib is not installed.
    """
    try:
        from matplotlib import pyplot
    except ImportError:
        raise MissingExtraError("matplotlib", "plot", method) from None
    if ax is None:
        _, ax = pyplot.subplots(layout="constrained")
    if isinstance(chart, LineChart):
        _draw_lines(chart, ax)
    elif isinstance(chart, Bars):
        _draw_bars(chart, ax)
    elif isinstance(chart, Scatter):
        _draw_scatter(chart, ax)
    else:
        assert isinstance(chart, HeatMap)
        _draw_grid(chart, ax)
    return ax


def _curve_values(chart: LineChart, curve: Curve) -> Any:
    """The values of a curve; the last one holds until the end of the axis where steps have one."""
    values = [np.nan if v is None else v for v in curve.y]
    return np.array(values + values[-1:] if chart.is_step and chart.x_limits is not None else values, dtype=float)


def _draw_lines(chart: LineChart, ax: Any) -> None:
    x = np.asarray(chart.x, dtype=float)
    if chart.is_step and chart.x_limits is not None:
        x = np.append(x, chart.x_limits[1])
        ax.set_xlim(*chart.x_limits)
    for curve in chart.curves:
        y = _curve_values(chart, curve)
        look = {"color": COLOURS[curve.role], "label": plain_text(curve.name)}
        dashed = "--" if curve.role == "incumbent" else "-"
        if chart.is_step:
            ax.step(x, y, where="post", linestyle=dashed, **look)
        else:
            ax.plot(x, y, marker="o", linestyle=dashed, **look)
        if curve.spread is not None:
            spread = np.array([np.nan if s is None else s for s in curve.spread], dtype=float)
            ax.errorbar(x, y, yerr=spread, fmt="none", ecolor=look["color"], alpha=0.7)
    if chart.between is not None:
        above, below = (_curve_values(chart, chart.curves[k]) for k in chart.between)
        step = "post" if chart.is_step else None
        ax.fill_between(x, below, above, step=step, color=COLOURS["bound"], alpha=0.12, linewidth=0)
    if chart.is_log:
        ax.set_xscale("log")
    if chart.is_log_y:
        ax.set_yscale("log")
    if chart.limits is not None:
        ax.set_ylim(*chart.limits)
    ax.set(xlabel=plain_text(chart.x_label), ylabel=plain_text(chart.y_label), title=plain_text(chart.title))
    ax.legend()


def _draw_scatter(chart: Scatter, ax: Any) -> None:
    for one in chart.marks:
        look = {"color": COLOURS[one.role], "label": plain_text(one.name)}
        if one.is_line:
            ax.plot(one.x, one.y, **look)
        else:
            ax.scatter(one.x, one.y, s=14, alpha=0.65, marker="s" if one.role == "second" else "o", **look)
    ax.set(xlabel=plain_text(chart.x_label), ylabel=plain_text(chart.y_label), title=plain_text(chart.title))
    ax.legend()


def _draw_bars(chart: Bars, ax: Any) -> None:
    places = np.arange(len(chart.bars))
    widths = [0.0 if bar.value is None else bar.value for bar in chart.bars]
    ax.barh(places, widths, color=[COLOURS[bar.role] for bar in chart.bars])
    end = max([0.0, *widths, *([chart.mark[0]] if chart.mark is not None else [])])
    for place, bar in zip(places, chart.bars, strict=True):
        ax.annotate(plain_text(bar.text), (end, place), xytext=(6, 0), textcoords="offset points", va="center")
    if chart.mark is not None:
        value, name = chart.mark
        ax.axvline(value, color=COLOURS["incumbent"], linestyle="--", label=plain_text(name))
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.06), frameon=False)
    ax.set_yticks(places, [plain_text(bar.name) for bar in chart.bars])
    ax.invert_yaxis()
    ax.margins(x=0.5)  # room for the numbers beside the bars; the axis is marked where bars can be
    begin = min([0.0, *widths])
    ax.set_xticks([tick for tick in ax.get_xticks() if begin - 1e-9 <= tick <= end + 1e-9])
    ax.set_title(plain_text(chart.title))


def _draw_grid(chart: HeatMap, ax: Any) -> None:
    cells = np.array(chart.cells, dtype=float).reshape(len(chart.rows), len(chart.columns))
    ax.imshow(cells, aspect="auto", cmap="Blues", vmin=0.0, vmax=1.0, interpolation="nearest")
    shown = range(0, len(chart.columns), max(1, -(-len(chart.columns) // MOST_NAMES)))
    ax.set_xticks(list(shown), [plain_text(chart.columns[j]) for j in shown])
    beside = [f" ({text})" for text in chart.right] or [""] * len(chart.rows)
    names = [plain_text(f"{name}{text}") for name, text in zip(chart.rows, beside, strict=True)]
    ax.set_yticks(range(len(chart.rows)), names)
    ax.set(xlabel=plain_text(chart.x_label), title=plain_text(chart.title))


def plain_text(text: str) -> str:
    """A text in which a name of the data is no formula: matplotlib takes what stands between dollars for one, and where
    it lets TeX set its texts (``text.usetex``), TeX obeys more."""
    from matplotlib import rcParams

    shown = escape_invisible(text)
    return shown.translate(TEX) if rcParams["text.usetex"] else shown.replace("$", r"\$")
