"""The parts that a page is made of, as HTML; whatever is given as text is escaped here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from mipfs.report.blocks import ReportBlock
from mipfs.report.visible import escape_text
from mipfs.result.interactions import group_counts, groups_of, made_of
from mipfs.result.prediction import classifier_inputs
from mipfs.result.result import Result, Status

CLASSES = {
    Status.OPTIMAL: "s-good",
    Status.FEASIBLE: "s-open",
    Status.NO_SOLUTION: "s-open",
    Status.RELAXED: "s-plain",
    Status.INFEASIBLE: "s-bad",
    Status.NUMERICAL: "s-bad",
}


@dataclass(frozen=True)
class PageCard:
    """A part with a heading of its own; a wide one takes the whole line."""

    title: str
    html: str
    is_wide: bool = False


def pill(status: str, name: str) -> str:
    """A status as a coloured word; `name` is one of `CLASSES`' values."""
    return f'<span class="pill {name}">{escape_text(status)}</span>'


def status_pill(status: Status) -> str:
    """The status as a pill, coloured by what it says."""
    return pill(status.name, CLASSES[status])


def tiles(pairs: Iterable[tuple[str, str, str]]) -> str:
    """Figures side by side: name, value and a remark."""
    cells = []
    for name, value, remark in pairs:
        small = f"<small>{escape_text(remark)}</small>" if remark else ""
        cells.append(f"<div><dt>{escape_text(name)}</dt><dd>{escape_text(value)}{small}</dd></div>")
    return f'<dl class="tiles">{"".join(cells)}</dl>' if cells else ""


def to_try(ways: str) -> str:
    """What may help, in a box; "" for nothing."""
    return f'<div class="try" role="note"><strong>What to try:</strong> {escape_text(ways)}.</div>' if ways else ""


def cards(found: Iterable[PageCard | None], level: int) -> str:
    """The cards that there are, with headings of that level; two stand side by side, one that is left over is wide."""
    shown = [card for card in found if card is not None and card.html]
    beside = 0
    for k, card in enumerate(shown):
        beside = 0 if card.is_wide else beside + 1
        if beside % 2 and (k + 1 == len(shown) or shown[k + 1].is_wide):
            shown[k] = replace(card, is_wide=True)
            beside = 0
    parts = []
    for card in shown:
        wide = ' class="wide"' if card.is_wide else ""
        heading = f"<h{level}>{escape_text(card.title)}</h{level}>" if card.title else ""
        parts.append(f"<section{wide}>{heading}{card.html}</section>")
    return f'<div class="cards">{"".join(parts)}</div>' if parts else ""


def chart_card(title: str, *blocks: ReportBlock | None, is_wide: bool = False) -> PageCard | None:
    """A card of charts or tables; None without any."""
    found = [block.html() for block in blocks if block is not None]
    return PageCard(title, "".join(found), is_wide) if found else None


def lines(texts: Sequence[str]) -> str:
    """Sentences below one another."""
    return f'<ul class="plain">{"".join(f"<li>{escape_text(text)}</li>" for text in texts)}</ul>' if texts else ""


def describe_unchecked(words: str) -> str:
    """What the page shows and `mipfs verify` does not check, in a line."""
    return f'<p class="facts">Not checked by <code>mipfs verify</code>: {escape_text(words)}.</p>'


def code(text: str) -> str:
    """Lines as they are typed."""
    return f"<pre><code>{chr(10).join(map(escape_text, text.split(chr(10))))}</code></pre>"


def mark_code(text: str) -> str:
    """A text whose names in backticks are code."""
    return re.sub("`([^`]*)`", r"<code>\1</code>", escape_text(text))


def measured_card(parts: Sequence[str], is_seen: bool) -> PageCard:
    """How well a classifier does on data; `is_seen` where it was trained on them."""
    note = '<p class="note">On data that it has not seen it does worse as a rule.</p>' if is_seen else ""
    title = "On the data it was trained on" if is_seen else "On held-out data"
    return PageCard(title, "".join([*parts, note]), is_wide=True)


def not_measured(saved: str) -> PageCard:
    """How to get what a reader looks for first, of a result in a file."""
    said = "Not measured yet. This page with how well it predicts data that it has not seen:"
    return PageCard("On held-out data", f"<p>{said}</p>{code(f'mipfs report {saved} --data TEST')}", is_wide=True)


def anchor(k: int) -> str:
    """The identifier of the k-th article."""
    return f"item-{k + 1}"


def article(k: int, heading: str, inner: str, level: int) -> str:
    """One result, path or ladder."""
    return f'<article id="{anchor(k)}"><header><h{level}>{escape_text(heading)}</h{level}></header>{inner}</article>'


def describe_selected(result: Result) -> str:
    """What is selected, in the plural."""
    return "features" if groups_of(result) is None else "groups"


def size_words(result: Result) -> str:
    """How many features, or atoms that were made of them, are selected, and of how many."""
    made = made_of(result)
    if groups_of(result) is not None:
        selected, groups, _ = group_counts(result)
        return f"{selected} of {groups}"
    return f"{len(result.selected)} of {classifier_inputs(result)[1] if made is None else made['count']}"
