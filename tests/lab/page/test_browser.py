"""The page in a real browser: no complaints, values at the pointer and the keys, narrow and dark."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from mipfs.lab import page
from mipfs.report.numbers import number, percent
from mipfs.result.score import score
from tests.lab.page import page_cases as cases
from tests.lab.page.browser import Browser, browser, executable

pytestmark = pytest.mark.skipif(executable() is None, reason="no Chromium on the PATH (MIPFS_CHROMIUM names one)")
TIP = "[...document.querySelectorAll('.tip:not([hidden])')].map(tip => tip.innerText).join('|')"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with contextlib.ExitStack() as stack:
        try:
            found = stack.enter_context(browser())
        except (AssertionError, OSError) as error:
            pytest.skip(f"{executable()} does not start here: {error}")
        yield found


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    result = cases.closed()
    measured = {**score(result, cases.credit()), "source": "credit.csv"}
    page.write(folder / "closed.html", [page.Item("closed", result, measured)])
    page.write(folder / "infeasible.html", [page.Item("infeasible", cases.infeasible())])
    page.write(folder / "path.html", [page.Item("path", cases.path())])
    page.write(folder / "ladder.html", [page.Item("ladder", cases.ladder())])
    page.write(folder / "hostile.html", [page.Item(cases.EVIL, cases.hostile())])
    wide = cases.hostile("unbroken" * 60 + "مرحبا")
    page.write(folder / "wide.html", [page.Item("x" * 300, wide), page.Item("y" * 300, wide)])
    page.write(folder / "several.html", [page.Item("a", result), page.Item("b", cases.long(1000))])
    page.write(folder / "long.html", [page.Item("long", cases.long(100_000))])
    return folder


NAMES = ("closed", "infeasible", "path", "ladder", "hostile", "several", "wide", "long")


@pytest.mark.sampled(7)
@pytest.mark.parametrize("name", NAMES)
def test_it_opens_without_a_complaint_at_any_width(chromium: Browser, pages: Path, name: str) -> None:
    for width, scheme in ((1280, "light"), (400, "dark")):
        chromium.size(width, 900, scheme)
        chromium.open(pages / f"{name}.html")
        assert chromium.complaints() == []
        assert chromium.run("document.documentElement.scrollWidth <= innerWidth"), "nothing is cut off"
        assert chromium.run("document.title") != "owned"
        ink, paper = chromium.run("(s => [s.color, s.backgroundColor])(getComputedStyle(document.body))")
        bright = [sum(int(part) for part in colour[4:-1].split(",")) for colour in (ink, paper)]
        assert (bright[0] < bright[1]) == (scheme == "light")


def test_the_pointer_reads_the_values(chromium: Browser, pages: Path) -> None:
    result = cases.closed()
    chromium.size(1280, 900)
    chromium.open(pages / "closed.html")
    first = result.trace[0].seconds / result.seconds  # before it there is nothing to read
    for share in (0.99, *(share for share in (0.75, 0.6) if share > first)):
        chromium.hover("figure.lines .area", share, 0.5)
        record = [r for r in result.trace if r.seconds <= share * result.seconds][-1]
        said = chromium.run(TIP)
        assert f"incumbent {number(record.objective)}" in said
        assert f"bound {number(record.bound)}" in said
        assert f"gap {percent(record.gap)}" in said
    near = result.near_optimal
    assert near is not None
    features, supports = list(near["share"]), near["supports"]
    for i, j in ((0, 0), (len(features) - 1, len(supports) - 1), (4, 1)):
        chromium.hover("figure.grid .area", (j + 0.5) / len(supports), (i + 0.5) / len(features))
        inside = features[i] in supports[j]["selected"]
        assert chromium.run(TIP).split("\n") == [
            features[i],
            "selected" if inside else "not selected",
            f"support {j + 1}: objective {number(supports[j]['objective'])}, "
            + ("the best" if j == 0 else f"{percent(supports[j]['gap'])} above the best"),
        ]
    chromium.hover("ul.bars .track", 0.5, 0.5, 1)
    assert "weight" in chromium.run(TIP)
    chromium.open(pages / "path.html")
    point = cases.path().points[-1]
    chromium.hover("figure.lines .area", 0.95, 0.5, 1)  # behind the validation error
    assert chromium.run(TIP).split("\n")[0] == f"M = {point.value}"
    assert f"objective {number(point.objective)}" in chromium.run(TIP)
    assert chromium.complaints() == []


def test_the_keys_read_the_values_to_a_screen_reader(chromium: Browser, pages: Path) -> None:
    chromium.open(pages / "closed.html")
    said = "document.activeElement.getAttribute('aria-valuetext')"
    chromium.run("document.querySelector('figure.lines .area').focus()")
    trace = cases.closed().trace
    chromium.press("End")
    assert f"bound {number(trace[-1].bound)}" in chromium.run(said)
    chromium.press("ArrowLeft")
    assert f"bound {number(trace[-2].bound)}" in chromium.run(said)
    chromium.press("Home")
    assert f"incumbent {number(trace[0].objective)}" in chromium.run(said)
    assert chromium.run("document.activeElement.getAttribute('role')") == "slider"
    chromium.press("Escape")
    assert chromium.run(TIP) == ""
    chromium.run("document.querySelector('figure.grid .area').focus()")
    for key in ("ArrowRight", "ArrowRight", "ArrowDown"):
        chromium.press(key)
    near = cases.closed().near_optimal
    assert near is not None
    assert chromium.run(said).startswith(list(near["share"])[1])
    assert "support 2:" in chromium.run(said)


@pytest.mark.slow
def test_a_long_run_is_a_page_of_few_elements(chromium: Browser, pages: Path) -> None:
    assert (pages / "long.html").stat().st_size < page.document.MOST_BYTES
    chromium.size(1280, 900)
    chromium.open(pages / "long.html")
    count = int(chromium.run("document.querySelectorAll('*').length"))
    assert 0 < count < 5000
    # A trace is thinned to the columns of a screen.
    drawn = "Math.max(...[...document.querySelectorAll('path')].map(path => path.getAttribute('d').length))"
    assert 0 < int(chromium.run(drawn)) < 500_000


@pytest.mark.slow
def test_it_is_whole_without_scripts_and_on_paper(chromium: Browser, pages: Path) -> None:
    chromium.call("Emulation.setScriptExecutionDisabled", value=True)
    chromium.open(pages / "closed.html")
    assert chromium.complaints() == []
    chromium.call("Emulation.setScriptExecutionDisabled", value=False)
    paper = chromium.call("Page.printToPDF", printBackground=False)["data"]
    assert len(paper) > 20_000
