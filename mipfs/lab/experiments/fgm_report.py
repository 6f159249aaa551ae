"""The report of the study `fgm`: Figures 2 and 3 and Tables 2 to 4 of Tan 2010, and how good FGM was."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mipfs.lab.experiments.document import Heading
from mipfs.lab.experiments.study import Claim, Row
from mipfs.lab.experiments.tables import (
    DASH,
    average,
    averaged,
    count,
    curves,
    difference,
    grouped,
    mean,
    of,
    out_of,
    pairs,
    percent,
    shown,
    tabulated,
    values,
    with_error,
)
from mipfs.lab.experiments.verdicts import above, below, judged, no_worse
from mipfs.report.blocks import Block, Table

GOOD = 2e-4
"""Excess up to which a support counts as optimal: gaps of 1e-4 on both sides."""
MILD = 0.02
"""Mean excess up to which a relaxation is mild."""
MUCH_NOISE = 1000
"""Noise features from which on RFE fails in the paper."""
PAPER = {
    "wdbc_sklearn": {
        "fgm": ("91.11", "91.81", "92.46", "92.47"),
        "fgm-b": ("90.96", "92.44", "92.43", "92.37"),
        "rfe": ("92.15", "92.25", "92.51", "92.51"),
    },
    "leukemia_golub": {
        "fgm": ("91.61", "93.91", "94.37", "95.52"),
        "fgm-b": ("85.75", "95.06", "94.48", "95.75"),
        "rfe": ("88.39", "93.91", "95.63", "95.75"),
    },
    "usps": {
        "fgm": ("90.78", "91.47", "91.23", "91.99"),
        "fgm-b": ("79.69", "81.97", "87.49", "89.60"),
        "rfe": ("80.62", "85.78", "88.82", "90.08"),
    },
}
"""Table 3 of the paper, accuracies in %, by B."""
METHODS = ("exact", "fgm-b", "fgm", "rfe")
CELL = ("data", "seed", "B")
ENOUGH = 20


def report(rows: Sequence[Row]) -> list[Block]:
    """Noise, samples, splits."""
    blocks: list[Block] = []
    for part, x, title, label in (
        ("noise", "noise", "Noise features (Figure 2)", "noise features"),
        ("samples", "n", "Training samples, 2000 features (Figure 3)", "training samples"),
    ):
        some = of(rows, part=part)
        if some:
            blocks += [Heading(title), _made(some, x, label)]
            blocks.append(
                curves(f"Accuracy against {label}", some, x, "accuracy", labels=(label, "test accuracy"), is_log=True)
            )
    splits = of(rows, part="splits")
    if splits:
        blocks += [Heading("Small data sets (Tables 2 to 4)"), _splits(splits)]
        blocks += [Heading("How good was FGM?"), _good(splits)]
    return blocks


def _made(rows: Sequence[Row], x: str, label: str) -> Block:
    columns = [
        count("draws"),
        ("accuracy in %", with_error),
        ("exactly {f1, f2}", lambda some: out_of(some, "recovers")),
        average("features", "size", "{:.1f}"),
        ("proven", lambda some: out_of(some) if some[0]["method"] == "exact" else DASH),
        average("CPU s", "seconds", "{:.2f}"),
    ]
    groups = sorted(grouped(rows, x, "method").items(), key=lambda item: item[0][0])
    return tabulated(groups, [label, "method"], columns, left=2)


def _splits(rows: Sequence[Row]) -> Block:
    lines = []
    for (data,), mine in grouped(rows, "data").items():
        for number, ((B,), some) in enumerate(sorted(grouped(mine, "B").items())):
            for method in METHODS:
                these = of(some, method=method)
                if these:
                    theirs = PAPER.get(data, {}).get(method)
                    cells = [str(data), str(B), method, str(len(these)), with_error(these)]
                    cells += [theirs[number] if theirs is not None else DASH, shown(mean(these, "size"), "{:.1f}")]
                    lines.append([*cells, shown(mean(these, "seconds"), "{:.2f}")])
    head = ["data", "B", "method", "splits", "accuracy in %", "paper", "features", "CPU s"]
    return Table(head, lines, left=3)


def _good(rows: Sequence[Row]) -> Block:
    lines = []
    for (data, B), some in sorted(grouped(rows, "data", "B").items()):
        exact = of(some, method="exact")
        cells = [str(data), str(B), out_of(exact), percent(mean(exact, "gap"), 1)]
        for method in ("fgm-b", "rfe"):
            mine = of(some, method=method)
            excess = values(mine, "excess")
            good = sum(value <= GOOD for value in excess)
            cells += [f"{good} of {len(excess)}", percent(float(np.mean(excess)), 2), percent(max(excess), 1)]
        lines.append(cells)
    head = ["data", "B", "proven", "mean gap left", "FGM-B best", "mean excess", "largest"]
    title = (
        "Excess of the objective above that of the best support known; best: within 0.02% of it. Where the exact run "
        "is not proven, the best is an upper bound only"
    )
    return Table([*head, "RFE best", "mean excess", "largest"], lines, title, left=2)


def claims(rows: Sequence[Row]) -> list[Claim]:
    """What the paper says, judged."""
    made = of(rows, part="noise")
    splits = of(rows, part="splits")
    found = []
    if made:
        found.append(_recovery(made))
    if len(splits) >= ENOUGH:
        found += [_against_rfe(splits), _quality(splits)]
    return found


def _recovery(rows: Sequence[Row]) -> Claim:
    """Per draw, whether exactly the pair is selected."""
    parts = []
    for method, name in (("fgm-b", "FGM-B"), ("rfe", "RFE")):
        found = [float(row["recovers"]) for row in rows if row["method"] == method]
        far = [float(row["recovers"]) for row in rows if row["method"] == method and row["noise"] >= MUCH_NOISE]
        if method == "fgm-b":
            parts.append(above(f"{name} selects exactly the pair, share of the draws", found, 0.5))
        else:
            parts.append(below(f"{name} from {MUCH_NOISE} noise features on", far, 0.5))
    same = mean(of(rows, method="fgm-b"), "accuracy")
    ideal = mean(of(rows, method="ideal"), "accuracy")
    exact = percent(mean(of(rows, method="exact"), "recovers"), 0)
    details = (
        f"up to {max(row['noise'] for row in rows)} noise features; exact {exact} of the draws; accuracy of FGM-B "
        f"{percent(same)}, of the ideal features {percent(ideal)} (the numbers of the made problem are ours)"
    )
    said = "Only FGM-B finds the composite pair whatever the noise, RFE only with little of it (Tan 2010, Figure 2)"
    return judged(said, parts, details)


def _against_rfe(rows: Sequence[Row]) -> Claim:
    names = {"fgm-b": "FGM-B's accuracy is no worse than RFE's", "fgm": "the relaxation's own predictor, more features"}
    parts = [no_worse(words, averaged(rows, m, "rfe", "accuracy", CELL, CELL[:2])) for m, words in names.items()]
    said = "FGM and FGM-B are competitive with or better than RFE on small data sets (Tan 2010, Table 3)"
    sets_ = len(grouped(rows, "data"))
    return judged(said, parts, f"{len(grouped(rows, *CELL[:2]))} splits of {sets_} sets, mean over B")


def _quality(rows: Sequence[Row]) -> Claim:
    """Split by split, over the values of B at which the optimum is proven."""
    proven = {tuple(row[k] for k in CELL) for row in rows if row["method"] == "exact" and row["proven"]}
    some = [row for row in rows if tuple(row[k] for k in CELL) in proven]
    mine = of(some, method="fgm-b")
    splits = [values(part, "excess") for part in grouped(mine, *CELL[:2]).values()]
    excess = values(mine, "excess")
    theirs = percent(float(np.mean(values(of(some, method="rfe"), "excess") or [np.nan])))
    gain = difference(pairs(some, "exact", "fgm-b", "accuracy", CELL))
    parts = [
        below(
            "mean excess of a split's objectives over the optimum", [float(np.mean(e)) for e in splits], MILD, "{:.1%}"
        ),
        above("share of a split's that are optimal", [sum(v <= GOOD for v in e) / len(e) for e in splits], 0.5),
    ]
    details = (
        f"{len(excess)} cells with a proven optimum; largest excess {percent(max(excess, default=np.nan), 1)}, RFE's "
        f"mean {theirs}; the optimum's accuracy less FGM-B's: {shown(100 * gain, '{:+.2f}')} points"
    )
    said = "The relaxation is mild: FGM's support is close to the best one (Tan 2010, section 2.1)"
    return judged(said, parts, details)
