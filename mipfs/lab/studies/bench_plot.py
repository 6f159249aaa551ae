"""A benchmark drawn: the measure and the seconds of a fit against the number of features, by matplotlib."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mipfs.errors import MissingExtraError, UsageError
from mipfs.plumbing import output_file

if TYPE_CHECKING:
    from mipfs.lab.studies.bench import Bench
    from mipfs.lab.studies.bench_rows import BenchRow

FORMATS = (".png", ".svg", ".pdf")
MARK_DISTANCE = 0.006
"""Share of the largest number of features by which methods are drawn beside one another."""
LINES, MARKS = ("-", "--", "-.", ":"), "osD^vP*X"
"""What tells methods apart where colours are out."""


def check_plot(path: Path) -> None:
    """Refuse a plot that cannot be drawn, before hours of work.

    Raises
    ------
    MissingExtraError
        matplotlib is not installed.
    UsageError
        Another suffix.
    """
    if path.suffix.lower() not in FORMATS:
        raise UsageError(f"{path}: a plot is one of {', '.join(FORMATS)}; give such a name")
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise MissingExtraError("matplotlib", "plot", "a plot") from None


def save_plot(found: Bench, path: Path) -> None:
    """Draw a benchmark into a file; see `Bench.plot`."""
    check_plot(path)
    figure = draw_figure(found)
    content = io.BytesIO()
    figure.savefig(content, format=path.suffix[1:].lower(), dpi=150)
    output_file.save([(path, content.getvalue())])


def draw_figure(found: Bench) -> Any:
    """The figure: on the left the measure with one standard error, on the right the seconds of a fit."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    figure = Figure(figsize=(11.0, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    handles = []
    reach = max((row.n_features for row in found.rows if row.values and row.M is not None), default=1.0)
    for number, method in enumerate(found.setting.methods):
        rows = [row for row in found.rows if row.method == method and row.values]
        look: dict[str, Any] = {"color": f"C{number % 10}", "linestyle": LINES[number // 10 % len(LINES)]}
        if rows and rows[0].M is None:
            flat = {**look, "linestyle": ":"}
            handles.append(left.axhline(rows[0].value, label=f"{method} (all features)", **flat))
            right.axhline(rows[0].seconds, **flat)
        elif rows:
            aside = MARK_DISTANCE * reach * (number - 0.5 * (len(found.setting.methods) - 1))
            marked = {**look, "marker": MARKS[number % len(MARKS)]}
            handles.append(_draw_method_curve(left, right, rows, method, aside, marked))
    left.set(xlabel="number of features", ylabel=f"{found.setting.measure} (mean ± one standard error)")
    right.set(xlabel="number of features", ylabel="seconds of a fit", yscale="log")
    for axes in (left, right):
        axes.grid(True, alpha=0.3)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.spines[["top", "right"]].set_visible(False)
    right.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    right.yaxis.set_minor_formatter(FuncFormatter(lambda value, _: f"{value:g}" if f"{value:e}"[0] in "25" else ""))
    figure.suptitle(f"{Path(found.setting.source).name or 'arrays'}, {found.setting.folds} folds")
    if handles:
        figure.legend(handles=handles, loc="outside right center", frameon=False)
    return figure


def _draw_method_curve(
    left: Any, right: Any, rows: list[BenchRow], label: str, aside: float, look: dict[str, Any]
) -> Any:
    """One method: a point for every M, at the mean number of features that it has there; its line, for the legend."""
    ordered = sorted(rows, key=lambda row: row.n_features)
    sizes = [row.n_features for row in ordered]
    errors = [row.standard_error if math.isfinite(row.standard_error) else 0.0 for row in ordered]
    moved = [size + aside for size in sizes]  # error bars that lie upon one another cannot be read
    drawn_ = left.errorbar(moved, [row.value for row in ordered], errors, label=label, capsize=3, **look)
    right.plot(sizes, [max(row.seconds, 1e-6) for row in ordered], **look)
    return drawn_
