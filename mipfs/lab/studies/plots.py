"""Paths drawn with matplotlib."""

from __future__ import annotations

from typing import Any

from mipfs.errors import UsageError
from mipfs.lab.studies.charts import path_charts, path_supports
from mipfs.lab.studies.solution_path import SolutionPath
from mipfs.report.axes import draw


def plot_path(path: SolutionPath, ax: Any) -> Any:
    """Objective and bound along the path; see `SolutionPath.plot_path`."""
    charts = [chart for chart in path_charts(path) if chart.between is not None]
    if not charts:
        raise UsageError("plot_path(): the path has no points to draw")
    for chart in charts:
        ax = draw(chart, ax, "plot_path()")
    return ax


def plot_supports(path: SolutionPath, ax: Any) -> Any:
    """Which features are selected where; see `SolutionPath.plot_supports`."""
    chart = path_supports(path)
    if chart is None:
        raise UsageError("plot_supports(): no point of the path selects a feature")
    return draw(chart, ax, "plot_supports()")
