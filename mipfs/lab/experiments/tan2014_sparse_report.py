"""The report of the study `tan-2014-sparse`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mipfs.lab.experiments.document import Heading
from mipfs.lab.experiments.study import PaperClaim, Row
from mipfs.lab.experiments.tables import (
    DASH,
    Column,
    average,
    average_pairs,
    count,
    curves,
    difference,
    group_rows,
    mean,
    of,
    pairs,
    tabulate,
    with_error,
)
from mipfs.lab.experiments.verdicts import above_ratio, below_ratio, higher, judge_claim, lower, no_worse
from mipfs.report.blocks import ReportBlock

CELL = ("part", "data", "density", "n", "B", "seed")
DRAW = ("data", "seed")
LOSSES = (("squared hinge", "fgm", "l1", "all"), ("logistic", "slr", "l1-lr", "all-lr"))
SIDES = ("fgm", "l1", "accuracy")
DENSE = 3
"""Densities that count as dense: the upper half."""
TWICE, MUCH, LEAST_SECONDS = 2.0, 5.0, 1e-3
"""Ratios of seconds up to which a method is as fast and from which on it is much slower, and what is none."""
SHOWN = "farm_ads"
"""The set whose chart stands at the top of the index."""
ENOUGH, ENOUGH_TEXTS = 6, 3
"""Draws, and sets, from which on a claim is judged."""

FITTED: tuple[Column, ...] = (
    average("features", "size", "{:.0f}"),
    ("accuracy in %", with_error),
    average("CPU s", "seconds", "{:.2f}"),
)
"""What the tables say of a fit."""


def report(rows: Sequence[Row]) -> list[ReportBlock]:
    """Figure 7, Figures 8 to 10, Figures 11 and 12."""
    blocks: list[ReportBlock] = []
    thin, texts, growing = (of(rows, part=part) for part in ("density", "texts", "rows"))
    if thin:
        blocks += [Heading("Densities (Figure 7)"), _densities_block(thin)]
        for name, label, log in (("accuracy", "test accuracy", False), ("seconds", "CPU seconds of one fit", True)):
            title = f"{label[0].upper()}{label[1:]} against density"
            labels = ("density", label)
            blocks.append(
                curves(title, thin, "density", name, labels=labels, is_log=True, is_log_y=log, spread=not log)
            )
    if texts:
        blocks += [Heading("Texts (Figures 8 to 10)"), _texts_block(texts)]
        for (data,), some in group_rows(texts, "data").items():
            drawn = [row for row in some if not row["method"].startswith("all")]
            labels = ("B", "test accuracy")
            blocks.append(curves(text_title(data), drawn, "B", "accuracy", labels=labels, is_log=True))
    if growing:
        blocks += [Heading("More training rows (Figures 11 and 12)"), _training_rows_block(growing)]
        for (data,), some in group_rows(growing, "data").items():
            title, labels = f"{data}: accuracy against training rows", ("training rows", "test accuracy")
            blocks.append(curves(title, some, "n", "accuracy", labels=labels, is_log=True))
    return blocks


def text_title(data: str) -> str:
    """Of the chart of a set."""
    return f"{data}: accuracy against B"


def _densities_block(rows: Sequence[Row]) -> ReportBlock:
    groups = sorted(group_rows(rows, "density", "method").items())
    parameter, spent = (
        average("mean B or C", "parameter", "{:.3g}"),
        average("CPU s of all", "seconds_of_grid", "{:.1f}"),
    )
    return tabulate(groups, ["density", "method"], [count("draws"), parameter, *FITTED, spent], left=2)


def _texts_block(rows: Sequence[Row]) -> ReportBlock:
    groups = [
        ((data, DASH if method.startswith("all") else B, method), some)
        for (data, B, method), some in group_rows(rows, "data", "B", "method").items()
    ]
    return tabulate(groups, ["data", "B", "method"], [count("splits"), *FITTED], left=3)


def _training_rows_block(rows: Sequence[Row]) -> ReportBlock:
    groups = sorted(group_rows(rows, "data", "n", "method").items())
    return tabulate(groups, ["data", "training rows", "method"], [count("draws"), *FITTED], left=3)


def claims(rows: Sequence[Row]) -> list[PaperClaim]:
    """What section 6 says of thin data, texts and more rows."""
    found = []
    thin, texts, growing = (of(rows, part=part) for part in ("density", "texts", "rows"))
    if len(group_rows(thin, "density", "seed")) >= ENOUGH:
        found += [_claim_thin_data(thin), _thin_seconds(thin)]
    if len(group_rows(texts, "data")) >= ENOUGH_TEXTS:
        found += [_claim_superior(texts), _claim_biased(texts), _claim_all_features(texts)]
    if len(group_rows(growing, "data", "seed")) >= ENOUGH - 2:
        found.append(_claim_narrowed(growing))
    return found


def _split_by_density(rows: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """Rows of the thinner and of the denser half of the densities."""
    densities = sorted({row["density"] for row in rows})
    dense = densities[-DENSE:]
    return [row for row in rows if row["density"] not in dense], [row for row in rows if row["density"] in dense]


def _claim_thin_data(rows: Sequence[Row]) -> PaperClaim:
    thin, dense = (pairs(some, *SIDES, CELL) for some in _split_by_density(rows))
    parts = [
        higher("accuracy of FGM less that of the ℓ1-SVM, draws of the three thinner densities", thin),
        higher("of the three denser ones", dense),
    ]
    by = [
        f"{density:g}: {100 * difference(pairs(some, *SIDES, CELL)):+.1f}"
        for (density,), some in sorted(group_rows(rows, "density").items())
    ]
    said = "At every density FGM's best accuracy is above the ℓ1-SVM's (Tan 2014, Figure 7)"
    return judge_claim(said, parts, f"points by density {', '.join(by)}")


def _thin_seconds(rows: Sequence[Row]) -> PaperClaim:
    """Ratios of one fit."""
    sides = [pairs(some, "l1", "fgm", "seconds", CELL) for some in _split_by_density(rows)]
    ratios = [[max(a, LEAST_SECONDS) / max(b, LEAST_SECONDS) for a, b in found] for found in sides]
    at = {
        density: pairs(some, "l1", "fgm", "seconds", CELL) for (density,), some in group_rows(rows, "density").items()
    }
    by = [
        f"{density:g}: {float(np.median([a / max(b, LEAST_SECONDS) for a, b in found])):.2g}"
        for density, found in sorted(at.items())
    ]
    parts = [
        below_ratio("CPU seconds of the ℓ1-SVM over FGM's, draws of the three thinner densities", ratios[0], TWICE),
        above_ratio("of the three denser ones", ratios[1], MUCH),
    ]
    said = "The ℓ1-SVM is as fast as FGM on thin data and much slower on dense ones (Tan 2014, Figure 7)"
    details = (
        f"as fast: at most twice the seconds; much slower: at least {MUCH:g} times; means of ratios are geometric; "
        "median ratio by density"
    )
    return judge_claim(said, parts, f"{details} {', '.join(by)}")


def _on_splits(rows: Sequence[Row], one: str, other: str) -> list[tuple[float, float]]:
    """Accuracies of two methods, averaged over B: a pair for every split of every set."""
    return average_pairs(rows, one, other, "accuracy", CELL, DRAW)


def _by_set(rows: Sequence[Row], one: str, other: str) -> str:
    return ", ".join(
        f"{data} {100 * difference(_on_splits(some, one, other)):+.2f}"
        for (data,), some in group_rows(rows, "data").items()
    )


def _claim_superior(rows: Sequence[Row]) -> PaperClaim:
    parts, by = [], []
    for loss, mine, theirs, _ in LOSSES:
        words = f"{loss}: accuracy of FGM, no worse than that of ℓ1 by split, mean over B"
        parts.append(no_worse(words, _on_splits(rows, mine, theirs)))
        by.append(f"{loss}: {_by_set(rows, mine, theirs)}")
    said = "On texts FGM is superior or comparable to ℓ1 methods with as many features (Tan 2014, Figure 8)"
    return judge_claim(
        said, parts, f"accuracy of FGM less that of ℓ1 by set, points: {'; '.join(by)}", text_title(SHOWN)
    )


def _claim_biased(rows: Sequence[Row]) -> PaperClaim:
    parts = [
        higher(
            "accuracy of the ℓ1-SVM refitted less its own, by split, mean over B", _on_splits(rows, "l1 unbias", "l1")
        ),
        no_worse("FGM is no worse than refitted", _on_splits(rows, "fgm", "fgm unbias")),
        no_worse("FGM is no worse than the refitted ℓ1-SVM", _on_splits(rows, "fgm", "l1 unbias")),
    ]
    details = (
        f"by set, points: ℓ1 refitted {_by_set(rows, 'l1 unbias', 'l1')}; FGM refitted "
        f"{_by_set(rows, 'fgm unbias', 'fgm')}; FGM less the refitted ℓ1 {_by_set(rows, 'fgm', 'l1 unbias')}"
    )
    said = "On texts a refit helps the ℓ1-SVM, not FGM, which stays above it (Tan 2014, Figure 9)"
    return judge_claim(said, parts, details)


def _claim_all_features(rows: Sequence[Row]) -> PaperClaim:
    found, sizes = [], dict[str, list[float]]()
    for (data, _), some in group_rows(rows, *DRAW).items():
        most = max((row["B"] for row in some if row["method"] == "fgm"), default=0)
        mine = [row for row in some if row["method"] == "fgm" and row["B"] == most]
        whole = of(some, method="all")
        if mine and whole:
            found.append((mean(whole, "accuracy"), mean(mine, "accuracy")))
            sizes.setdefault(data, []).append(mean(mine, "size"))
    features = ", ".join(f"{data} {float(np.mean(size)):.0f}" for data, size in sizes.items())
    said = "All features are a bit more accurate than a selection of up to 300 (Tan 2014, section 6.3)"
    part = higher("accuracy of all features less that of FGM with the largest B, by split", found)
    return judge_claim(said, [part], f"features of that selection: {features}")


def _claim_narrowed(rows: Sequence[Row]) -> PaperClaim:
    """Draw by draw: the lead at the fewest rows against that at the most, and all features at every number of rows."""
    narrowed, whole, by = [], [], []
    for (data,), some in group_rows(rows, "data").items():
        few, many = min(row["n"] for row in some), max(row["n"] for row in some)
        for mine in group_rows(some, "seed").values():
            lead = [pairs(of(mine, n=n), *SIDES, CELL) for n in (few, many)]
            if all(lead):
                narrowed.append((abs(difference(lead[1])), abs(difference(lead[0]))))
            whole += average_pairs(mine, "fgm", "all", "accuracy", CELL, DRAW)
        at = group_rows(some, "n")
        leads = [f"{n} rows {100 * difference(pairs(at[n,], *SIDES, CELL)):+.2f}" for n in (few, many)]
        by.append(f"{data} {', '.join(leads)}")
    parts = [
        lower(
            "gap between the accuracies of FGM and ℓ1, at the most rows less that at the fewest, by draw",
            narrowed,
            words=("narrower", "wider"),
        ),
        higher("accuracy of FGM less that of all features, by draw, mean over the numbers of rows", whole),
    ]
    said = "FGM and ℓ1 draw closer with more rows, and selection beats all features (Tan 2014, Figure 11, kddb)"
    return judge_claim(said, parts, f"FGM less ℓ1, points: {'; '.join(by)}")
