"""Charts as HTML: the numbers that they hold, where they are drawn, and that names cannot break out."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from mipfs.report.blocks import Bar, Bars, Chart, Curve, Detail, HeatMap, LineChart, Mosaic, Table, as_html
from mipfs.report.figure import Scale, embed_document, figure, labels
from tests.html_tree import Tree

EVIL = "</script><b onclick='x()'>&\"</details>\u2028"


def data_of(text: str) -> Any:
    found = re.search(r'<script type="application/json">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    return json.loads(found.group(1))


def strings(value: Any) -> Iterator[str]:
    """All strings of a document."""
    if isinstance(value, str):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from strings(item)


@pytest.mark.parametrize("is_log", [False, True])
def test_ticks_are_round_few_and_inside(is_log: bool) -> None:
    rng = np.random.default_rng(1)
    for _ in range(300):
        size = 10.0 ** rng.uniform(-12, 12)
        a, b = np.sort(rng.uniform(0.0 if is_log else -1.0, 1.0, 2)) * size
        scale = Scale.over([float(a), float(b)], is_log=is_log, pad=0.05)
        ticks = scale.ticks(6)
        assert 1 <= len(ticks) <= 14
        assert all(-1e-6 <= scale.place(tick) <= 1 + 1e-6 for tick in ticks)
        assert all(first < second for first, second in pairwise(ticks))
        texts = labels(ticks, is_log)
        assert len(set(texts)) == len(texts)
        for tick, text in zip(ticks, texts, strict=True):
            assert float(text) == pytest.approx(tick, rel=1e-5, abs=1e-9 * size)


@pytest.mark.parametrize("values", [[], [0.0], [5.0, 5.0], [-1e300, 1e300], [1e-300, 2e-300], [1e16, 1e16 + 2]])
def test_odd_axes(values: list[float]) -> None:
    for is_log in (False, True):
        scale = Scale.over(values, is_log=is_log, pad=0.05)
        assert scale.high > scale.low
        assert all(math.isfinite(scale.place(value)) for value in values)
        assert labels(scale.ticks(), is_log) is not None


def test_an_area_is_drawn_where_its_numbers_say() -> None:
    chart = LineChart(
        "T",
        x=[0.0, 1.0, 4.0],
        curves=[Curve("a", [10.0, 6.0, 5.0], "incumbent"), Curve("b", [None, 1.0, 2.0], "bound")],
        is_step=True,
        between=(0, 1),
        limits=(0.0, 10.0),
        x_limits=(0.0, 5.0),
        after=" s",
        hover=[Curve("gap", [math.inf, 0.5, 0.25], percent=True)],
    )
    text = figure(chart)
    drawn = re.findall(r'<path class="line r-(\w+)" d="([^"]*)"', text)
    assert dict(drawn) == {
        "incumbent": "M0.00 0.00H200.00V400.00H800.00V500.00H1000",
        "bound": "M200.00 900.00H800.00V800.00H1000",
    }
    assert "M200.00 400.00L800.00 400.00L800.00 500.00L1000.00 500.00L1000.00 800.00L800.00 800.00" in text
    found = data_of(text)
    assert found["x"] == [0.0, 1.0, 4.0]
    assert [curve["y"] for curve in found["curves"]] == [[10.0, 6.0, 5.0], [None, 1.0, 2.0], [None, 0.5, 0.25]]


def test_bars_and_heat_maps_hold_their_numbers() -> None:
    bars = Bars("B", [Bar("up", 4.0, "4"), Bar("down", -1.0, "-1"), Bar("none", None, "-")], mark=(4.0, "best"))
    text = figure(bars)
    assert re.findall(r"left:([\d.]+)%;width:([\d.]+)%", text) == [("20.000", "80.000"), ("0.000", "20.000")]
    assert [bar["value"] for bar in data_of(text)["bars"]] == [4.0, -1.0, None]
    text = figure(Bars("B", [Bar("down", -2.0, "-2")], is_signed=True))
    assert re.findall(r"left:([\d.]+)%;width:([\d.]+)%", text) == [("0.000", "50.000")]
    cells = [[1.0, 1.0, 0.0, 0.5], [0.0, 0.0, 0.0, 0.0]]
    text = figure(HeatMap("G", ["r", "s"], list("abcd"), cells, right=["75%", "0%"]))
    assert data_of(text)["cells"] == cells
    drawn = re.findall(r'<path class="cell" fill-opacity="([\d.]+)" d="([^"]*)"', text)
    assert drawn == [("1", "M0.00 0.00h500.00v500.00h-500.00z"), ("0.575", "M750.00 0.00h250.00v500.00h-250.00z")]
    text = figure(Mosaic("C", ("predicted a", "predicted b"), [("is a", 3, 1), ("is b", 0, 0)]))
    assert re.findall(r">(\d+)<small>([\d.]+)%", text) == [("3", "75.0"), ("1", "25.0"), ("0", "0.0"), ("0", "0.0")]


@pytest.mark.parametrize(
    "chart",
    [
        LineChart(EVIL, [0.0, 1.0], [Curve(EVIL, [1.0, 2.0])], x_label=EVIL, y_label=EVIL, before=EVIL, note=EVIL),
        Bars(EVIL, [Bar(EVIL, 1.0, EVIL, detail=EVIL)], mark=(2.0, EVIL), table=Table((EVIL,), [(EVIL,)], title=EVIL)),
        HeatMap(EVIL, [EVIL], [EVIL], [[1.0]], [EVIL], [EVIL], EVIL, EVIL, (EVIL, EVIL), EVIL),
        Mosaic(EVIL, (EVIL, EVIL), [(EVIL, 1, 2), (EVIL, 3, 4)], EVIL),
    ],
)
def test_names_are_escaped(chart: Chart) -> None:
    text = as_html([chart])
    tree = Tree(text)
    assert not tree.wrong
    assert not tree.handlers
    assert tree.tags["details"] == (chart.table is not None)
    assert any(one.startswith("</script><b onclick='x()'>") for one in tree.texts)
    for _, content in tree.scripts:
        assert any(said == EVIL for said in strings(json.loads(content)))


def test_what_is_embedded_comes_back() -> None:
    document = {EVIL: [EVIL, 1.5, None], "ü": "\ud800"}
    text = embed_document(document)
    assert text.isascii()
    assert not set("<>&") & set(text.removeprefix('<script type="application/json">').removesuffix("</script>"))
    assert data_of(text) == document


def test_a_terminal_gets_no_charts_and_detail_can_be_halved() -> None:
    assert Bars("B", []).text() == ""
    assert Detail().halve().columns == Detail().columns // 2
    assert "<style>" in as_html([Bars("B", [])])
    assert "<style>" not in as_html([Table(("a",), [("1",)])])
