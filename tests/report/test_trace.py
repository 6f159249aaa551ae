"""The text view of a gap trace."""

from __future__ import annotations

import math

from mipfs.result.result import Record
from mipfs.result.trace import plot_gap, thin_trace


def geometric(n: int, ratio: float = 0.5) -> list[Record]:
    """A run whose gap halves at every iteration, one per second."""
    return [Record(float(i), i, 1.0, 1.0 - ratio**i) for i in range(n)]


def test_a_short_trace_is_kept_whole() -> None:
    trace = geometric(5)
    assert thin_trace(trace, rows=12) == trace
    assert thin_trace([], rows=12) == []


def test_thinning_keeps_both_ends_in_order_and_spreads_over_the_log_gap() -> None:
    # 1,000 iterations that do nothing, then a steep descent: equal steps of time would miss it.
    idle = [Record(i / 1000, i, 1.0, -1.0) for i in range(1000)]
    steep = [Record(1 + r.seconds, 1000 + r.iteration, r.objective, r.bound) for r in geometric(14)]
    kept = thin_trace([*idle, *steep], rows=8)
    assert len(kept) <= 8
    assert kept[0] is idle[0]
    assert kept[-1] is steep[-1]
    assert [r.iteration for r in kept] == sorted(r.iteration for r in kept)
    assert sum(r.iteration >= 1000 for r in kept) >= 4


def test_a_trace_without_incumbent_can_be_thinned_and_drawn() -> None:
    trace = [Record(float(i), i, math.inf, -math.inf) for i in range(30)]
    assert len(thin_trace(trace, rows=5)) <= 5
    assert "100%" in plot_gap(trace)
    assert plot_gap([]) == ""


def test_the_curve_stands_where_the_gap_was() -> None:
    # 100% for 2 s, then 10% for 2 s, then 1%: the columns are a quarter of a second wide.
    trace = [Record(0.0, 0, 1.0, 0.0), Record(2.0, 1, 1.0, 0.9), Record(3.99, 2, 1.0, 0.99), Record(4.0, 3, 1.0, 0.99)]
    lines = plot_gap(trace, width=16, mark="#").splitlines()
    rows = {line.split("|")[0].strip(): line.split("|")[1] for line in lines if "|" in line}
    assert rows["100%"].count("#") == 7
    assert rows["10%"].count("#") == 15
    assert rows["1%"].count("#") == 16
    assert lines[-1].endswith("4 s")
