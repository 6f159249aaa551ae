"""Results, paths and ladders drawn with matplotlib: the numbers are those of the result."""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from mipfs.errors import MissingExtraError, UsageError
from tests.lab.page import page_cases as cases


@pytest.fixture
def pyplot() -> Iterator[Any]:
    matplotlib = pytest.importorskip("matplotlib", reason="the extra 'plot' is not installed")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    yield pyplot
    pyplot.close("all")


def test_the_gap(pyplot: Any) -> None:
    result = cases.closed()
    ax = result.plot_gap()
    incumbent, bound = ax.get_lines()
    np.testing.assert_array_equal(incumbent.get_xdata(), [*(r.seconds for r in result.trace), result.seconds])
    for line, name in ((incumbent, "objective"), (bound, "bound")):
        values = [getattr(r, name) for r in (*result.trace, result.trace[-1])]
        np.testing.assert_array_equal(line.get_ydata(), [v if math.isfinite(v) else np.nan for v in values])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["incumbent", "bound"]
    _, mine = pyplot.subplots()
    assert result.plot_gap(ax=mine) is mine
    assert len(mine.get_lines()) == 2
    assert len(cases.long(50_000).plot_gap().get_lines()[0].get_xdata()) < 10_000


def test_the_supports(pyplot: Any) -> None:
    result = cases.closed()
    near = result.near_optimal
    assert near is not None
    ax = result.plot_supports()
    cells = ax.get_images()[0].get_array()
    names = list(near["share"])
    for j, one in enumerate(near["supports"]):
        assert {names[i] for i in np.flatnonzero(cells[:, j])} == set(one["selected"])
    assert ax.get_yticklabels()[0].get_text().startswith(names[0])


def test_the_ladder(pyplot: Any) -> None:
    ladder = cases.ladder()
    ax = ladder.plot_ladder()
    assert [bar.get_width() for bar in ax.patches] == [rung.value for rung in ladder.ladder]
    assert ax.get_lines()[0].get_xdata()[0] == ladder.incumbent
    _, mine = pyplot.subplots()
    assert ladder.plot_ladder(ax=mine) is mine


def test_the_path(pyplot: Any) -> None:
    path = cases.path()
    ax = path.plot_path()
    objective, bound = ax.get_lines()
    np.testing.assert_array_equal(objective.get_xdata(), [point.place["M"] for point in path.points])
    np.testing.assert_array_equal(objective.get_ydata(), [point.objective for point in path.points])
    np.testing.assert_array_equal(bound.get_ydata(), [point.bound for point in path.points])
    cells = path.plot_supports().get_images()[0].get_array()
    assert cells.sum() == sum(len(point.selected) for point in path.points)


def test_a_name_is_no_formula(pyplot: Any) -> None:
    ax = cases.hostile().plot_supports()
    ax.figure.canvas.draw()
    ladder = cases.ladder()
    odd = dataclasses.replace(ladder, ladder=(dataclasses.replace(ladder.ladder[0], name=r"$\frac{a$ _b^"),))
    odd.plot_ladder().figure.canvas.draw()


def test_what_cannot_be_drawn_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="before its first record"):
        cases.nothing().plot_gap()
    with pytest.raises(UsageError, match=r"pool_gap=0\.01"):
        cases.nothing().plot_supports()
    with pytest.raises(UsageError, match="no points"):
        dataclasses.replace(cases.path(), points=()).plot_path()
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for draw in (cases.closed().plot_gap, cases.closed().plot_supports, cases.path().plot_path):
        with pytest.raises(
            MissingExtraError, match=r"needs matplotlib, which is not installed; pip install 'mipfs\[plot\]'"
        ):
            draw()
    with pytest.raises(MissingExtraError, match="plot_ladder"):
        cases.ladder().plot_ladder()
