"""The gap trace of a run as text: a thinned table and a small plot."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mipfs.result.result import Record


def thin_trace(trace: Sequence[Record], rows: int = 12) -> list[Record]:
    """At most `rows` >= 4 records, with the first and the last.

    Half of them stand at equal steps of the iterations and half where the logarithm of the gap passes equal
    steps: a cutting-plane method often idles for long and then closes the gap in a few iterations.
    """
    if len(trace) <= rows:
        return list(trace)
    levels = [_log_gap(record) for record in trace]
    first = levels[0]
    last = levels[-1]
    half = rows // 2
    chosen = {round(k * (len(trace) - 1) / (half - 1)) for k in range(half)}
    for k in range(1, rows - half + 1):
        wanted = first + (last - first) * k / (rows - half + 1)
        chosen.add(next(i for i, level in enumerate(levels) if level <= wanted))
    return [trace[i] for i in sorted(chosen)]


LEAST_GAP = 1e-4
"""The smallest gap that a plot tells apart; the default gap at which an answer counts as optimal."""


def plot_gap(trace: Sequence[Record], width: int = 64, mark: str = "█") -> str:
    """The relative gap (logarithmic, from 100% down to `LEAST_GAP`) against seconds, as lines of text.

    Parameters
    ----------
    trace : sequence of Record, in order of time
    width : int, of the plot area in characters
    mark : str, one character that fills the area under the curve
    """
    if not trace:
        return ""
    end = max(trace[-1].seconds, 1e-9)
    levels = _per_column(trace, end, width)
    decades = max(1, -math.floor(min(levels)))
    lines = []
    for row in range(2 * decades + 1):
        cells = "".join(mark if level >= -row / 2 else " " for level in levels)
        label = f"{100 * 10.0 ** (-row // 2):g}%" if row % 2 == 0 else ""
        lines.append(f"{label:>8} |{cells}".rstrip())
    lines.append(" " * 9 + "+" + "-" * width)
    lines.append(" " * 10 + "0 s" + f"{end:.3g} s".rjust(width - 3))
    return "\n".join(lines)


def _per_column(trace: Sequence[Record], end: float, width: int) -> list[float]:
    """The log gap in force at the right end of every column of the plot."""
    levels = []
    i = 0
    for column in range(width):
        moment = end * (column + 1) / width
        while i + 1 < len(trace) and trace[i + 1].seconds <= moment + 1e-12:
            i += 1
        levels.append(_log_gap(trace[i]) if trace[i].seconds <= moment + 1e-12 else 0.0)
    return levels


def _log_gap(record: Record) -> float:
    """log10 of the gap, between `LEAST_GAP` and 1 (100%, also where there is no bound or no incumbent yet)."""
    return math.log10(min(1.0, max(LEAST_GAP, record.gap)))
