"""The report of the study `tan-2014`: bias and recovery, products and functions, groups."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mipfs.lab.experiments.document import Heading
from mipfs.lab.experiments.study import Claim, Row
from mipfs.lab.experiments.tables import (
    DASH,
    Column,
    average,
    averaged,
    count,
    curves,
    grouped,
    mean,
    of,
    tabulated,
    with_error,
)
from mipfs.lab.experiments.verdicts import higher, judged, no_worse, spread, told
from mipfs.report.blocks import Block

CELL = ("part", "kind", "p", "data", "B", "seed", "C")
DRAW = ("part", "kind", "p", "data", "seed")
"""What is drawn once: B and C vary on it."""
ENOUGH = 8
INFORMATIVE = 100
"""Features of the made data that matter."""
COLUMNS = 1024
"""Of the made data, but for Figure 6's."""
IMAGES = "usps"
RANGES = (10, 20, 30, 50, 80, 120, 500)
"""Ends of the ranges of the number of groups; 25 matter."""

ACCURACY: Column = ("accuracy in %", with_error)
SECONDS = average("CPU s", "seconds", "{:.2f}")
CHOSEN = (average("selected", "size", "{:.0f}"), average("of which matter", "recovered", "{:.1f}"), ACCURACY)
"""What the tables say of a choice."""


def report(rows: Sequence[Row]) -> list[Block]:
    """Figures 2 to 6, 13 to 18, as tables, and the curves of the accuracy."""
    blocks: list[Block] = []
    made = of(rows, part="types")
    if made:
        blocks += [Heading("Made data of three types (Figures 2 to 6)"), _types(made)]
        for (kind, p), some in grouped(made, "kind", "p").items():
            drawn = [row for row in some if row["method"] != "all"]
            blocks.append(
                curves(made_title(kind, p), drawn, "B", "accuracy", labels=("B", "test accuracy"), is_log=True)
            )
    expanded = of(rows, part="expansions")
    if expanded:
        blocks += [Heading("Products and functions of features (Figures 13, 14, 17, 18)"), _expansions(expanded)]
        for (data,), some in grouped(expanded, "data").items():
            title = f"{data}: accuracy against B"
            blocks.append(curves(title, some, "B", "accuracy", labels=("B", "test accuracy"), is_log=True))
    groups = of(rows, part="groups")
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


def made_title(kind: str, p: int) -> str:
    """Of the chart of a type of made data."""
    return f"Type {kind}, {p} features: accuracy against B"


def _types(rows: Sequence[Row]) -> Block:
    groups = [
        ((DASH if kind is None else f"{kind}, {p}", B, method), some)
        for (kind, p, B, method), some in grouped(rows, "kind", "p", "B", "method").items()
    ]
    columns = [count("draws"), *CHOSEN, average("iterations", "rounds", "{:.1f}"), SECONDS]
    return tabulated(groups, ["type, features", "B", "method"], columns, left=3)


def _range(size: int) -> int:
    """The end of the range that a number of groups lies in."""
    return next((end for end in RANGES if size <= end), RANGES[-1])


def _groups_by_size(rows: Sequence[Row], wide: str) -> Block:
    ranged = [{**row, "range": _range(row["size"])} for row in rows]
    groups = sorted(grouped(ranged, "range", "method").items())
    chosen = [average("selected", "size", "{:.1f}"), *CHOSEN[1:]]
    title = f"Over all draws, B and C, by the number of groups that are selected{wide}"
    return tabulated(groups, ["groups up to", "method"], [count("fits"), *chosen, SECONDS], title, left=2)


def _expansions(rows: Sequence[Row]) -> Block:
    groups = grouped(rows, "data", "B", "method").items()
    columns = [count("splits"), ACCURACY, average("products among them", "products", "{:.1f}"), SECONDS]
    return tabulated(groups, ["data", "B", "what is selected"], columns, left=3)


def claims(rows: Sequence[Row]) -> list[Claim]:
    """FGM against the ℓ1-SVM, the bias, products, and groups."""
    found = []
    made = of(rows, part="types")
    if len(grouped(made, *CELL)) >= ENOUGH:
        found += [_against_l1(made), _bias(made)]
    expanded = of(rows, part="expansions")
    if len(grouped(expanded, *CELL)) >= ENOUGH:
        found.append(_products(expanded))
        if any(row["method"] == "l1 products" for row in expanded):
            found.append(_one_norm(expanded))
    groups = of(rows, part="groups")
    if len(grouped([row for row in groups if row.get("p") is None], *CELL)) >= ENOUGH:
        found.append(_groups(groups))
    return found


def _paired(rows: Sequence[Row], one: str, other: str, name: str = "accuracy") -> list[tuple[float, float]]:
    """Draw by draw, over B and C."""
    return averaged(rows, one, other, name, CELL, DRAW)


def _against_l1(rows: Sequence[Row]) -> Claim:
    parts = [
        higher("accuracy of FGM less that of the ℓ1-SVM, mean over B", _paired(rows, "fgm", "l1")),
        higher("features that matter", _paired(rows, "fgm", "l1", "recovered"), (1.0, "")),
    ]
    said = "FGM is more accurate than the ℓ1-SVM with as many features, and recovers more (Tan 2014, Figures 2 and 3)"
    details = f"both refitted: {told(_paired(rows, 'fgm unbias', 'l1 unbias'))}"
    return judged(said, parts, details, made_title("I", COLUMNS))


def _bias(rows: Sequence[Row]) -> Claim:
    """Few: as many as matter at most, where the ℓ1-SVM shrinks what it needs; beyond, a refit takes up noise."""
    few, many = ([row for row in rows if (row["size"] <= INFORMATIVE) is small] for small in (True, False))
    parts = [
        higher(f"up to {INFORMATIVE} features, the refitted ℓ1-SVM less its own", _paired(few, "l1 unbias", "l1")),
        higher("with more", _paired(many, "l1 unbias", "l1")),
        no_worse("FGM without a refit is no worse than refitted", _paired(rows, "fgm", "fgm unbias")),
    ]
    return judged("The ℓ1-SVM is biased, a refit helps it; FGM does not need one (Tan 2014, Figure 4)", parts)


def _products(rows: Sequence[Row]) -> Claim:
    """Digits against the other sets, over splits."""
    parts, functions = [], []
    for (data,), some in grouped(rows, "data").items():
        found = _paired(some, "products", "features")
        if data == IMAGES:
            parts.append(higher(f"{data}: accuracy of products less that of features, mean over B", found))
        else:
            parts.append(
                no_worse(f"{data}: features are no worse than products", _paired(some, "features", "products"))
            )
        functions.append(f"{data} {spread(_paired(some, 'functions', 'features'))}")
    details = f"functions of features less features: {', '.join(functions)}"
    return judged("Products improve images much, and do nothing elsewhere (Tan 2014, Figure 14)", parts, details)


def _one_norm(rows: Sequence[Row]) -> Claim:
    """By split of the sets whose products can be stored."""
    said = "FGM over products is more accurate than the ℓ1-SVM over as many (Tan 2014, Figure 14)"
    part = higher("accuracy less that of ℓ1-PSVM, mean over B", _paired(rows, "products", "l1 products"))
    return judged(said, [part], f"less ℓ1-PSVM refitted: {told(_paired(rows, 'products', 'l1 products unbias'))}")


def _groups(every: Sequence[Row]) -> Claim:
    """Figure 15; Figure 16, which is wider, stands beside it."""
    rows, wide = ([row for row in every if (row.get("p") is None) is narrow] for narrow in (True, False))
    hits = {m: mean(of(rows, method=m), "recovered") for m in ("fgm", "group lasso")}
    size = float(np.mean([row["size"] for row in rows if row["method"] == "fgm"]))
    details = (
        f"{size:.0f} groups on average; groups that matter: {hits['fgm']:.1f} against {hits['group lasso']:.1f}; both "
        f"refitted: {told(_paired(rows, 'fgm unbias', 'group lasso unbias'))}"
    )
    if wide:
        details += f"; Figure 16, of more features: {spread(_paired(wide, 'fgm', 'group lasso'))}"
    said = "FGM over groups is more accurate than the group lasso with as many groups (Tan 2014, Figure 15)"
    found = _paired(rows, "fgm", "group lasso")
    return judged(said, [higher("accuracy of FGM less that of the group lasso, mean over B and C", found)], details)
