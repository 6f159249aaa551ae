"""The report of the study `tan-2014-sparse`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mipfs.lab.experiments.document import Heading
from mipfs.lab.experiments.study import Claim, Row
from mipfs.lab.experiments.tables import (
    DASH,
    averaged,
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

CELL = ("part", "data", "density", "n", "B", "seed")
DRAW = ("data", "seed")
LOSSES = (("squared hinge", "fgm", "l1", "all"), ("logistic", "slr", "l1-lr", "all-lr"))
SIDES = ("fgm", "l1", "accuracy")
DENSE = 3
"""Densities that count as dense: the upper half."""
ALIKE, MUCH = 2.0, 5.0
"""Ratio of seconds up to which two methods are as fast, and from which on one is much slower."""
ENOUGH, ENOUGH_TEXTS = 6, 3
"""Draws, and sets, from which on a claim is judged."""


def report(rows: Sequence[Row]) -> list[Block]:
    """Figure 7, Figures 8 to 10, Figures 11 and 12."""
    blocks: list[Block] = []
    thin, texts, growing = ([row for row in rows if row["part"] == part] for part in ("density", "texts", "rows"))
    if thin:
        blocks += [Heading("Densities (Figure 7)"), _densities(thin)]
        for name, label, log in (("accuracy", "test accuracy", False), ("seconds", "CPU seconds of one fit", True)):
            title = f"{label.capitalize()} against density"
            labels = ("density", label)
            blocks.append(
                curves(title, thin, "density", name, labels=labels, is_log=True, is_log_y=log, spread=not log)
            )
    if texts:
        blocks += [Heading("Texts (Figures 8 to 10)"), _texts(texts)]
        for (data,), some in grouped(texts, "data").items():
            drawn = [row for row in some if not row["method"].startswith("all")]
            labels = ("B", "test accuracy")
            blocks.append(curves(f"{data}: accuracy against B", drawn, "B", "accuracy", labels=labels, is_log=True))
    if growing:
        blocks += [Heading("More training rows (Figures 11 and 12)"), _rows(growing)]
        for (data,), some in grouped(growing, "data").items():
            title, labels = f"{data}: accuracy against training rows", ("training rows", "test accuracy")
            blocks.append(curves(title, some, "n", "accuracy", labels=labels, is_log=True))
    return blocks


def _accuracy(rows: Sequence[Row]) -> str:
    return f"{100 * mean(rows, 'accuracy'):.2f} ± {shown(100 * standard_error(rows, 'accuracy'), '{:.2f}')}"


def _densities(rows: Sequence[Row]) -> Block:
    lines = []
    for (density, method), some in sorted(grouped(rows, "density", "method").items()):
        cells = [f"{density:g}", str(method), str(len(some)), shown(mean(some, "parameter"), "{:.3g}")]
        cells += [shown(mean(some, "size"), "{:.0f}"), _accuracy(some), shown(mean(some, "seconds"), "{:.2f}")]
        lines.append([*cells, shown(mean(some, "seconds_of_grid"), "{:.1f}")])
    head = ["density", "method", "draws", "mean B or C", "features", "accuracy in %", "CPU s", "CPU s of all"]
    return Table(head, lines, left=2)


def _texts(rows: Sequence[Row]) -> Block:
    lines = []
    for (data, B, method), some in grouped(rows, "data", "B", "method").items():
        whole = str(method).startswith("all")
        cells = [str(data), DASH if whole else str(B), str(method), str(len(some))]
        cells += [shown(mean(some, "size"), "{:.0f}"), _accuracy(some), shown(mean(some, "seconds"), "{:.2f}")]
        lines.append(cells)
    return Table(["data", "B", "method", "splits", "features", "accuracy in %", "CPU s"], lines, left=3)


def _rows(rows: Sequence[Row]) -> Block:
    lines = []
    for (data, n, method), some in sorted(grouped(rows, "data", "n", "method").items()):
        cells = [str(data), str(n), str(method), str(len(some)), shown(mean(some, "size"), "{:.0f}")]
        lines.append([*cells, _accuracy(some), shown(mean(some, "seconds"), "{:.2f}")])
    return Table(["data", "training rows", "method", "draws", "features", "accuracy in %", "CPU s"], lines, left=3)


def claims(rows: Sequence[Row]) -> list[Claim]:
    """What section 6 says of thin data, texts and more rows."""
    found = []
    thin, texts, growing = ([row for row in rows if row["part"] == part] for part in ("density", "texts", "rows"))
    if len(grouped(thin, "density", "seed")) >= ENOUGH:
        found += [_thin(thin), _thin_seconds(thin)]
    if len(grouped(texts, "data")) >= ENOUGH_TEXTS:
        found += [_superior(texts), _biased(texts), _whole(texts)]
    if len(grouped(growing, "data", "seed")) >= ENOUGH - 2:
        found.append(_narrowed(growing))
    return found


def _thin(rows: Sequence[Row]) -> Claim:
    found = pairs(rows, *SIDES, CELL)
    less, more, equal = compared(found)
    parts = []
    for (density,), some in sorted(grouped(rows, "density").items()):
        parts.append(f"{density:g}: {100 * difference(pairs(some, *SIDES, CELL)):+.1f}")
    measured = (
        f"FGM better on {more}, worse on {less}, equal on {equal} of {len(found)} draws and densities "
        f"(p = {sign_test(less, more):.2g}), {interval(found)}; by density {', '.join(parts)} points"
    )
    strong = sign_test(less, more) < 0.05
    verdict = "confirmed" if strong and not less else "refuted" if strong and less > more else "not shown"
    densest = sorted(grouped(rows, "density"))[-DENSE:]
    behind, ahead, _ = compared([p for (d,) in densest for p in pairs(grouped(rows, "density")[d,], *SIDES, CELL)])
    if verdict == "not shown" and ahead > behind and sign_test(behind, ahead) < 0.05:
        verdict = "refined"
    measured += f"; on the {len(densest)} densest better on {ahead}, worse on {behind}"
    return Claim("At every density FGM's best accuracy is above the ℓ1-SVM's (Tan 2014, Figure 7)", verdict, measured)


def _thin_seconds(rows: Sequence[Row]) -> Claim:
    ratios = {}
    for (density,), some in sorted(grouped(rows, "density").items()):
        found = pairs(some, "l1", "fgm", "seconds", CELL)
        ratios[density] = float(np.median([a / max(b, 1e-3) for a, b in found])) if found else np.nan
    text = ", ".join(f"{density:g}: {ratio:.2g}" for density, ratio in ratios.items())
    first, last = ratios[min(ratios)], ratios[max(ratios)]
    alike, slower = 1.0 / ALIKE <= first <= ALIKE, last >= MUCH
    verdict = "confirmed" if alike and slower else "refined" if last > 1.0 > first else "refuted"
    verdict = "refined" if verdict == "refuted" and slower else verdict
    said = "The ℓ1-SVM is as fast as FGM on thin data and much slower on dense ones (Tan 2014, Figure 7)"
    return Claim(said, verdict, f"CPU seconds of one ℓ1 fit over those of one FGM fit, by density: {text}")


def _on_splits(rows: Sequence[Row], one: str, other: str) -> list[tuple[float, float]]:
    """Accuracies of two methods, averaged over B: a pair for every split."""
    return averaged(rows, one, other, "accuracy", CELL, DRAW)


def _by_set(rows: Sequence[Row], one: str, other: str) -> str:
    parts = []
    for (data,), some in grouped(rows, "data").items():
        parts.append(f"{data} {100 * difference(_on_splits(some, one, other)):+.2f}")
    return ", ".join(parts)


def _sets(rows: Sequence[Row], one: str, other: str) -> list[float]:
    return [difference(_on_splits(some, one, other)) for some in grouped(rows, "data").values()]


def _superior(rows: Sequence[Row]) -> Claim:
    parts, every = [], []
    for loss, mine, theirs, _ in LOSSES:
        every += _sets(rows, mine, theirs)
        parts.append(f"{loss}: {_by_set(rows, mine, theirs)} points, mean over B")
    wins, losses = sum(one > 0.001 for one in every), sum(one < -0.001 for one in every)
    verdict = "confirmed" if not losses else "refuted" if losses > wins else "refined"
    said = "On texts FGM is superior or comparable to ℓ1 methods with as many features (Tan 2014, Figure 8)"
    return Claim(said, verdict, f"accuracy of FGM less that of ℓ1, {'; '.join(parts)}")


def _biased(rows: Sequence[Row]) -> Claim:
    theirs, mine = _sets(rows, "l1 unbias", "l1"), _sets(rows, "fgm unbias", "fgm")
    left = _sets(rows, "fgm", "l1 unbias")
    measured = (
        f"refitted less own weights, points: ℓ1 {_by_set(rows, 'l1 unbias', 'l1')}; FGM "
        f"{_by_set(rows, 'fgm unbias', 'fgm')}; FGM less the refitted ℓ1: {_by_set(rows, 'fgm', 'l1 unbias')}"
    )
    helped, needless, above = min(theirs) > 0.0, max(mine) < 0.005, min(left) > 0.0
    verdict = "confirmed" if helped and needless and above else "refined" if max(theirs) > 0.0 else "refuted"
    said = "On texts a refit helps the ℓ1-SVM, not FGM, which stays above it (Tan 2014, Figure 9)"
    return Claim(said, verdict, measured)


def _whole(rows: Sequence[Row]) -> Claim:
    parts, every = [], []
    for (data,), some in grouped(rows, "data").items():
        most = max(row["B"] for row in some if row["method"] == "fgm")
        mine = mean([row for row in some if row["method"] == "fgm" and row["B"] == most], "accuracy")
        whole = mean([row for row in some if row["method"] == "all"], "accuracy")
        size = mean([row for row in some if row["method"] == "fgm" and row["B"] == most], "size")
        every.append(whole - mine)
        parts.append(f"{data} {100 * (whole - mine):+.2f} ({size:.0f} features)")
    verdict = "confirmed" if min(every) > 0 else "refined" if max(every) > 0 else "refuted"
    said = "All features are a bit more accurate than a selection of some hundred (Tan 2014, section 6.3)"
    return Claim(said, verdict, f"all features less FGM with the largest B, points: {', '.join(parts)}")


def _narrowed(rows: Sequence[Row]) -> Claim:
    parts, narrower, better = [], [], []
    for (data,), some in grouped(rows, "data").items():
        at = {n: pairs(mine, "fgm", "l1", "accuracy", CELL) for (n,), mine in sorted(grouped(some, "n").items())}
        whole = {n: pairs(mine, "fgm", "all", "accuracy", CELL) for (n,), mine in sorted(grouped(some, "n").items())}
        few, many = min(at), max(at)
        narrower.append(abs(difference(at[many])) < abs(difference(at[few])))
        better += [difference(one) > 0 for one in whole.values()]
        parts.append(
            f"{data} {100 * difference(at[few]):+.2f} at {few} rows, {100 * difference(at[many]):+.2f} at {many} (less "
            f"all features {100 * difference(whole[few]):+.2f} and {100 * difference(whole[many]):+.2f})"
        )
    said = "FGM's lead over ℓ1 narrows with more rows, and selection beats all features (Tan 2014, Figure 11, kddb)"
    verdict = "confirmed" if all(narrower) and all(better) else "refined" if any(narrower) or any(better) else "refuted"
    return Claim(said, verdict, f"accuracy of FGM less that of ℓ1, points: {'; '.join(parts)}")
