"""Charts of the benchmarks as SVG files, for the reports: by matplotlib, the same bytes for the same numbers."""

from __future__ import annotations

from pathlib import Path

from mipfs.report.axes import draw
from mipfs.report.blocks import LineChart


def write(path: Path, *charts: LineChart) -> None:
    """Write charts side by side, their texts as texts."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot, ticker

    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "mipfs", "font.family": "sans-serif"}):
        figure, axes = pyplot.subplots(
            1, len(charts), figsize=(5.4 * len(charts), 3.6), layout="constrained", squeeze=False
        )
        for chart, ax in zip(charts, axes[0], strict=True):
            draw(chart, ax, "write")
            if ax.get_yscale() == "log":  # less than two decades: numbers, not powers
                ax.yaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
                ax.yaxis.set_major_formatter("{x:g}")
                ax.yaxis.set_minor_formatter(ticker.NullFormatter())
            if ax.get_legend() is not None:
                ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
        figure.savefig(path, metadata={"Date": None})
        pyplot.close(figure)
