"""What a result draws of itself: in a notebook, and with matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from mipfs.errors import UsageError
from mipfs.report.blocks import NamedValues, ReportBlock, Reported, Sentence

if TYPE_CHECKING:
    from mipfs.data.instance import Instance
    from mipfs.result.result import Result


class Plotted(Reported):
    """The pictures of a `Result`."""

    __slots__ = ()

    def shown(self) -> list[ReportBlock]:
        """In a notebook: the numbers of the report, what the status means, and the charts of the page."""
        from mipfs.result.charts import SMALL, gap_chart, supports_chart, weights_chart
        from mipfs.result.words import status_in_words

        result = cast("Result", self)
        numbers = [block for block in result.blocks() if isinstance(block, NamedValues)]
        charts = (gap_chart(result, SMALL), weights_chart(result, SMALL.rows), supports_chart(result, SMALL))
        return [Sentence(status_in_words(result)), *numbers, *(chart for chart in charts if chart is not None)]

    def plot_gap(self, ax: Any = None) -> Any:
        """Draw incumbent and bound against time with matplotlib, the gap between them shaded.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; new axes by default.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        MissingExtraError
            matplotlib is not installed.
        UsageError
            The run left no record.
        """
        from mipfs.report.axes import draw
        from mipfs.result.charts import gap_chart

        chart = gap_chart(cast("Result", self))
        if chart is None:
            raise UsageError("plot_gap(): the run ended before its first record, so there is nothing to draw")
        return draw(chart, ax, "plot_gap()")

    def plot_supports(self, ax: Any = None) -> Any:
        """Draw the near-optimal supports with matplotlib: a heat map of features × supports.

        Parameters, what is returned and errors as in `plot_gap`.

        Raises
        ------
        UsageError
            The run was not asked for near-optimal supports.
        """
        from mipfs.report.axes import draw
        from mipfs.result.charts import supports_chart

        chart = supports_chart(cast("Result", self))
        if chart is None:
            raise UsageError(
                "plot_supports(): the result has no near-optimal supports; solve with pool_gap=0.01 or pool_size=20"
            )
        return draw(chart, ax, "plot_supports()")

    def plot_pair(self, data: Instance, ax: Any = None) -> Any:
        """Draw a classifier of two features with matplotlib: the samples of `data`, the line between the classes and
        the lines of the scores -1 and 1.

        Other parameters, what is returned and errors as in `plot_gap`.

        Raises
        ------
        UsageError
            The classifier is not of two features, or `data` is no instance.
        """
        from mipfs.data.instance import Instance
        from mipfs.report.axes import draw
        from mipfs.result.pair import pair_chart

        if not isinstance(data, Instance):
            raise UsageError("plot_pair(data): give data with labels, as mipfs.read or Instance.from_arrays returns it")
        chart = pair_chart(cast("Result", self), data)
        if chart is None:
            raise UsageError("plot_pair(): the classifier has to be a line in two features; solve with M=2")
        return draw(chart, ax, "plot_pair()")
