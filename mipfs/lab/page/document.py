"""The page: one HTML file that needs nothing else, and that nothing in its data can make do anything.

Its policy lets one script run, the one that is in it, and nothing be fetched from anywhere.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mipfs.errors import UsageError
from mipfs.lab.classes import OneVsRest
from mipfs.lab.page.lead import heading
from mipfs.lab.page.of_classes import classes_html
from mipfs.lab.page.of_result import result_html
from mipfs.lab.page.of_study import comparison_html, path_html, reported_html
from mipfs.lab.page.parts import anchor, article
from mipfs.lab.page.side_by_side import overview
from mipfs.lab.scorecard import Scorecard
from mipfs.lab.studies.bench import Bench
from mipfs.lab.studies.ladder import Comparison
from mipfs.lab.studies.solution_path import SolutionPath
from mipfs.plumbing import output_file
from mipfs.plumbing.declared import check_arguments, check_fields
from mipfs.report import figure
from mipfs.report.blocks import Reported
from mipfs.report.charts import Chart, Detail
from mipfs.report.visible import escape_text
from mipfs.result.result import Result

MOST_BYTES = 2_000_000
"""Bytes of a page."""
MOST_HALVINGS = 5
"""How often the detail may be halved until the page fits."""
KINDS = {
    Result: "Result",
    SolutionPath: "Path",
    Comparison: "Ladder of relaxations",
    OneVsRest: "Several classes",
    Bench: "Benchmark",
    Scorecard: "Scorecard",
}


@dataclass(frozen=True, eq=False)
class Item:
    """One result, path, ladder, or anything else with a report.

    Attributes
    ----------
    name : str, its heading
    study : Result, SolutionPath, Comparison, or another `Reported`
    score : mapping, sequence of mappings, or None
        On held-out data (`mipfs.result.score.score`); of a path one for every point, {} where it has no classifier.
    picture : Chart or None
        Of a result of two features (`mipfs.result.pair.pair_chart`).
    """

    name: str
    study: Reported
    score: Any = None
    picture: Chart | None = None

    def __post_init__(self) -> None:
        check_fields(self, "name", "study")


def html(items: Sequence[Item], title: str = "") -> str:
    """The page of one or several items.

    Parameters
    ----------
    items : sequence of Item
    title : str, of the page; by default what the only item found, or how many there are

    Returns
    -------
    str
        An HTML document below `MOST_BYTES` bytes: long traces and long lists are shown in less detail until it is.

    Raises
    ------
    UsageError
        No items, or too many for one page.
    """
    if not items:
        raise UsageError("a page needs at least one result")
    detail = Detail()
    for _ in range(MOST_HALVINGS):
        text = _page_html(items, detail, title)
        if len(text.encode()) <= MOST_BYTES:
            return text
        detail = detail.halve()
    raise UsageError(f"the page would be larger than {MOST_BYTES / 1e6:g} MB; give fewer results")


@check_arguments
def write(path: str | Path, items: Sequence[Item], title: str = "") -> int:
    """Write the page of `html` to a file, and return its size in bytes.

    Raises
    ------
    UsageError
        As `html`, or the file cannot be written; what stood there before is as it was.
    """
    content = html(items, title).encode()
    output_file.save([(Path(path), content)])
    return len(content)


def _page_html(items: Sequence[Item], detail: Detail, title: str) -> str:
    one = len(items) == 1
    named = [(k, item.name, item.study) for k, item in enumerate(items) if isinstance(item.study, Result)]
    together = overview(named, detail) if len(named) > 1 else ""
    headings = [title or heading(item.study, item.name) if one else item.name for item in items]
    parts = [
        article(k, name, _article_html(item, detail, 2 if one else 3), 1 if one else 2)
        for k, (item, name) in enumerate(zip(items, headings, strict=True))
    ]
    made = f" · {escape_text(items[0].name)}" if one and headings[0] != items[0].name else ""
    title = title or (items[0].name if one else f"{len(items)} results")
    links = "".join(f'<li><a href="#{anchor(k)}">{escape_text(item.name)}</a></li>' for k, item in enumerate(items))
    charts = " Charts can be read with a pointer, and with the arrow keys once they have the focus."
    charts *= any("<figure" in part for part in (together, *parts))
    top = "" if one else f'<h1>{escape_text(title)}</h1><nav aria-label="Results"><ul>{links}</ul></nav>'
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n{_content_security_policy()}\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape_text(title)} – "
        f"mipfs</title>\n<style>{figure.figure_style()}{_read_asset('page.css')}</style>\n</head>\n"
        '<body class="mipfs">\n<a class="skip" href="#main">Skip to the content</a>\n'
        f'<header><p class="made">mipfs: features selected with a proof{_kinds_text(items)}{made}</p>{top}</header>\n'
        f'<main id="main">{together}{"".join(parts)}</main>\n'
        f"<footer>The JSON that this page was made from has its numbers in full precision.{charts}</footer>\n"
        f"<script>{_read_asset('page.js')}</script>\n</body>\n</html>\n"
    )


def _kinds_text(items: Sequence[Item]) -> str:
    kinds = dict.fromkeys(KINDS.get(type(item.study), "Report") for item in items)
    return f" · {escape_text(', '.join(kinds).lower())}"


def _article_html(item: Item, detail: Detail, level: int) -> str:
    if isinstance(item.study, Result):
        score: Mapping[str, Any] | None = item.score
        return result_html(item.study, score, detail, level, item.picture)
    if isinstance(item.study, SolutionPath):
        return path_html(item.study, item.score, detail, level)
    if isinstance(item.study, OneVsRest):
        return classes_html(item.study, item.score, detail, level)
    if isinstance(item.study, Comparison):
        return comparison_html(item.study, level)
    return reported_html(item.study, item.score, level)


def _content_security_policy() -> str:
    """Nothing is fetched, and no other script than ours runs."""
    digest = base64.b64encode(hashlib.sha256(_read_asset("page.js").encode()).digest()).decode()
    rules = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'"
    return f'<meta http-equiv="Content-Security-Policy" content="{rules}; form-action \'none\'">'


def _read_asset(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")
