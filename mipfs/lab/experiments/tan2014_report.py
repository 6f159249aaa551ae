"""The report of the study `tan-2014`: bias and recovery, products and functions, groups."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mipfs.lab.experiments.document import Heading
from mipfs.lab.experiments.study import Claim, Row
from mipfs.lab.experiments.tables import (
    DASH,
    averaged,
    bounds,
    compared,
    curves,
    difference,
    grouped,
    interval,
    mean,
    pairs,
    shown,
    sign_test,
    standard_error,
)
from mipfs.report.blocks import Block, Table

CELL = ("part", "kind", "p", "data", "B", "seed", "C")
DRAW = ("part", "kind", "p", "data", "seed")
"""What is drawn once: B and C vary on it."""
ENOUGH = 8
INFORMATIVE = 100
"""Features of the made data that matter."""
IMAGES = "usps"
RANGES = (10, 20, 30, 50, 80, 120, 500)
"""Ends of the ranges of the number of groups; 25 matter."""


def report(rows: Sequence[Row]) -> list[Block]:
    """Figures 2 to 6, 13 to 18, as tables, and the curves of the accuracy."""
    blocks: list[Block] = []
    made = [row for row in rows if row["part"] == "types"]
    if made:
        blocks += [Heading("Made data of three types (Figures 2 to 6)"), _types(made)]
        for (kind, p), some in grouped(made, "kind", "p").items():
            drawn = [row for row in some if row["method"] != "all"]
            title = f"Type {kind}, {p} features: accuracy against B"
            blocks.append(curves(title, drawn, "B", "accuracy", labels=("B", "test accuracy"), is_log=True))
    expanded = [row for row in rows if row["part"] == "expansions"]
    if expanded:
        blocks += [Heading("Products and functions of features (Figures 13, 14, 17, 18)"), _expansions(expanded)]
        for (data,), some in grouped(expanded, "data").items():
            title = f"{data}: accuracy against B"
            blocks.append(curves(title, some, "B", "accuracy", labels=("B", "test accuracy"), is_log=True))
    groups = [row for row in rows if row["part"] == "groups"]
    if groups:
        blocks.append(Heading("Groups (Figures 15 and 16)"))
        for (p,), some in grouped(groups, "p").items():
            wide = "" if p is None else f", {p} features"
            drawn = [{**row, "range": _range(row["size"])} for row in some]
            labels = ("groups selected, up to", "test accuracy")
            title = f"Accuracy against groups{wide}"
            blocks += [
                _groups_by_size(some, wide),
                curves(title, drawn, "range", "accuracy", labels=labels, is_log=True),
            ]
    return blocks


def _accuracy(rows: Sequence[Row]) -> str:
    return f"{100 * mean(rows, 'accuracy'):.2f} ± {shown(100 * standard_error(rows, 'accuracy'), '{:.2f}')}"


def _types(rows: Sequence[Row]) -> Block:
    lines = []
    for (kind, p, B, method), some in grouped(rows, "kind", "p", "B", "method").items():
        cells = [DASH if kind is None else f"{kind}, {p}", str(B), str(method), str(len(some))]
        cells += [shown(mean(some, "size"), "{:.0f}"), shown(mean(some, "recovered"), "{:.1f}"), _accuracy(some)]
        lines.append([*cells, shown(mean(some, "rounds"), "{:.1f}"), shown(mean(some, "seconds"), "{:.2f}")])
    head = ["type, features", "B", "method", "draws", "selected", "of which matter", "accuracy in %", "iterations"]
    return Table([*head, "CPU s"], lines, left=3)


def _range(size: int) -> int:
    """The end of the range that a number of groups lies in."""
    return next((end for end in RANGES if size <= end), RANGES[-1])


def _groups_by_size(rows: Sequence[Row], wide: str) -> Block:
    lines = []
    ranged = [{**row, "range": _range(row["size"])} for row in rows]
    for (end, method), some in sorted(grouped(ranged, "range", "method").items()):
        cells = [str(end), str(method), str(len(some)), shown(mean(some, "size"), "{:.0f}")]
        cells += [shown(mean(some, "recovered"), "{:.1f}"), _accuracy(some), shown(mean(some, "seconds"), "{:.2f}")]
        lines.append(cells)
    head = ["groups up to", "method", "fits", "selected", "of which matter", "accuracy in %", "CPU s"]
    title = f"Over all draws, B and C, by the number of groups that are selected{wide}"
    return Table(head, lines, title, left=2)


def _expansions(rows: Sequence[Row]) -> Block:
    lines = []
    for (data, B, method), some in grouped(rows, "data", "B", "method").items():
        cells = [
            str(data),
            str(B),
            str(method),
            str(len(some)),
            _accuracy(some),
            shown(mean(some, "products"), "{:.1f}"),
        ]
        lines.append([*cells, shown(mean(some, "seconds"), "{:.2f}")])
    head = ["data", "B", "what is selected", "splits", "accuracy in %", "products among them", "CPU s"]
    return Table(head, lines, left=3)


def claims(rows: Sequence[Row]) -> list[Claim]:
    """FGM against the ℓ1-SVM, the bias, products, and groups."""
    found = []
    made = [row for row in rows if row["part"] == "types"]
    if len(grouped(made, *CELL)) >= ENOUGH:
        found += [_against_l1(made), _bias(made)]
    expanded = [row for row in rows if row["part"] == "expansions"]
    if len(grouped(expanded, *CELL)) >= ENOUGH:
        found.append(_products(expanded))
    groups = [row for row in rows if row["part"] == "groups"]
    if len(grouped(groups, *CELL)) >= ENOUGH:
        found.append(_groups(groups))
    return found


def _verdict(less: int, more: int) -> str:
    """`less`: how often the paper's side is worse."""
    strong = sign_test(less, more) < 0.05
    return "confirmed" if more > less and strong else "refuted" if less > more and strong else "not shown"


def _counts(rows: Sequence[Row], one: str, other: str) -> tuple[str, int, int]:
    found = averaged(rows, one, other, "accuracy", CELL, DRAW)
    less, more, equal = compared(found)
    text = f"better on {more}, worse on {less}, equal on {equal} (p = {sign_test(less, more):.2g}), {interval(found)}"
    return text, less, more


def _against_l1(rows: Sequence[Row]) -> Claim:
    text, less, more = _counts(rows, "fgm", "l1")
    mine, theirs = (mean([row for row in rows if row["method"] == m], "recovered") for m in ("fgm", "l1"))
    same, _, _ = _counts(rows, "fgm unbias", "l1 unbias")
    measured = (
        f"FGM {text}, of {len(grouped(rows, *DRAW))} draws, mean over B; features that matter: {mine:.1f} against "
        f"{theirs:.1f}; both refitted: FGM {same}"
    )
    said = "FGM is more accurate than the ℓ1-SVM with as many features, and recovers more (Tan 2014, Figures 2 and 3)"
    return Claim(said, _verdict(less, more), measured)


def _bias(rows: Sequence[Row]) -> Claim:
    """Few: as many as matter at most, where the ℓ1-SVM shrinks what it needs; beyond, a refit takes up noise."""
    few = [row for row in rows if row["size"] <= INFORMATIVE]
    many = [row for row in rows if row["size"] > INFORMATIVE]
    theirs, less, more = _counts(few, "l1 unbias", "l1")
    mine, _, _ = _counts(few, "fgm unbias", "fgm")
    beyond = [100 * difference(pairs(many, f"{m} unbias", m, "accuracy", CELL)) for m in ("l1", "fgm")]
    verdict = _verdict(less, more)
    if verdict == "confirmed" and beyond[0] < 0.0:
        verdict = "refined"
    measured = (
        f"up to {INFORMATIVE} features, as many as matter: the ℓ1-SVM refitted {theirs}; FGM refitted {mine}; "
        f"with more features {shown(beyond[0], '{:+.2f}')} and {shown(beyond[1], '{:+.2f}')} points"
    )
    return Claim(
        "The ℓ1-SVM is biased, a refit helps it; FGM does not need one (Tan 2014, Figure 4)", verdict, measured
    )


def _products(rows: Sequence[Row]) -> Claim:
    """Digits against the other sets, over splits."""
    parts, gains, flat = [], {}, {}
    for (data,), some in grouped(rows, "data").items():
        found = averaged(some, "products", "features", "accuracy", CELL, DRAW)
        other = averaged(some, "functions", "features", "accuracy", CELL, DRAW)
        low, high = bounds(found)
        gains[data], flat[data] = low > 0.0, low <= 0.0 <= high
        parts.append(f"{data} {interval(found)} (functions {interval(other)})")
    images, others = gains.pop(IMAGES, False), [flat[data] for data in gains]
    verdict = "confirmed" if images and all(others) else "refined" if images or any(gains.values()) else "not shown"
    measured = f"accuracy of products less that of features, mean over B: {', '.join(parts)}"
    return Claim("Products improve images much, and do nothing elsewhere (Tan 2014, Figure 14)", verdict, measured)


def _groups(rows: Sequence[Row]) -> Claim:
    text, less, more = _counts(rows, "fgm", "group lasso")
    refitted, _, _ = _counts(rows, "fgm unbias", "group lasso unbias")
    hits = {m: mean([row for row in rows if row["method"] == m], "recovered") for m in ("fgm", "group lasso")}
    size = float(np.mean([row["size"] for row in rows if row["method"] == "fgm"]))
    measured = (
        f"FGM {text}, with {size:.0f} groups on average; groups that matter: {hits['fgm']:.1f} against "
        f"{hits['group lasso']:.1f}; both refitted: FGM {refitted}"
    )
    said = "FGM over groups is more accurate than the group lasso with as many groups (Tan 2014, Figure 15)"
    return Claim(said, _verdict(less, more), measured)
