"""The report of the study `sketch`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial

import numpy as np

from mipfs.lab.experiments.study import PaperClaim, Row
from mipfs.lab.experiments.tables import (
    DASH,
    Heading,
    across,
    average,
    average_pairs,
    count,
    group_rows,
    mean,
    of,
    percent,
    show_number,
    tabulate,
    values,
    with_error,
)
from mipfs.lab.experiments.verdicts import above, higher, judge_claim, lower, no_worse
from mipfs.report.blocks import Bar, Bars, ReportBlock, Table

METHODS = ("bss", "leverage", "leverage-1", "approx-bss", "rrqr", "uniform", "rfe", "lpsvm", "full")
WAYS = ((True, "supervised"), (False, "unsupervised"))
PAPER = {
    ("bss", 40, True): "40, 39, 34, 36, 37",
    ("bss", 50, True): "50, 49, 48, 47, 44",
    ("bss", 40, False): "40, 39, 34, 37, 36",
    ("bss", 50, False): "50, 49, 48, 47, 44",
    ("leverage", 40, True): "40, 39, 37, 36, 34",
    ("leverage", 50, True): "50, 49, 48, 47, 46",
    ("leverage", 40, False): "40, 39, 37, 31, 32",
    ("leverage", 50, False): "50, 49, 48, 31, 47",
    ("rfe", 40, True): "40, 39, 38, 37, 36",
    ("rfe", 50, True): "50, 49, 48, 47, 46",
    ("rfe", 40, False): "40, 39, 38, 37, 36",
    ("rfe", 50, False): "50, 49, 48, 47, 46",
    ("lpsvm", 40, True): "40, 39, 38, 37, 34",
    ("lpsvm", 50, True): "50, 49, 48, 43, 40",
    ("lpsvm", 40, False): "40, 39, 38, 37, 34",
    ("lpsvm", 50, False): "50, 49, 48, 43, 40",
    ("rrqr", 40, True): "40, 30, 29, 28, 27",
    ("rrqr", 50, True): "50, 30, 29, 28, 27",
    ("rrqr", 40, False): "40, 39, 38, 37, 36",
    ("rrqr", 50, False): "50, 40, 39, 38, 37",
}
"""Table 1 of the paper: the five most frequent features, numbered from 1."""
ENOUGH = 3
RELATED = "their presence differs between the classes on documents that were not drawn (Fisher's exact test at 1%)"


def report(rows: Sequence[Row]) -> list[ReportBlock]:
    """Table 1, and the errors on pairs of text classes."""
    blocks: list[ReportBlock] = []
    made = of(rows, part="made")
    text = of(rows, part="text")
    if made:
        often = of(rows, part="made, often")
        blocks += [Heading("Made data (Table 1)"), _often_block(often), _errors_block(made, "M", "relevant features")]
    if text:
        blocks += [Heading("Pairs of text classes (Figures 1 to 3)"), _errors_block(text, "r", "r")]
        most = max(row["r"] for row in text)
        blocks += [_pairs_block(text, most), _errors_chart(text, most)]
    projected = of(rows, part="projections")
    if projected:
        blocks += [Heading("Approximate BSS over its projections (Table 4)"), _projections_block(projected)]
    words = of(rows, part="words")
    if words:
        blocks += [Heading("Words that are always selected (Tables 2 and 3)"), _words_block(words)]
    return blocks


def _words_block(rows: Sequence[Row]) -> ReportBlock:
    lines = []
    for row in rows:
        shown = row.get("words") or DASH
        cells = [row["data"], str(row["seed"]), row["method"], str(row["size"]), percent(row["related"], 0)]
        lines.append([*cells, shown])
    head = ["data", "draw", "method", "words", "of which related", ""]
    return Table(head, lines, f"Related: {RELATED}", left=3)


def _projections_block(rows: Sequence[Row]) -> ReportBlock:
    """Of made data what is found, of texts what is missed."""
    columns = [
        count("choices"),
        average("columns", "size", "{:.0f}"),
        ("error in % ± one standard error", lambda some: with_error(some, "error")),
        ("of the first five relevant", lambda some: percent(_mean_relevant(some), 0)),
        average("CPU s", "seconds", "{:.3f}"),
    ]
    groups = group_rows(rows, "data", "share", "method").items()
    return tabulate(groups, ["data", "r / p", "method"], columns, "Supervised choice", left=3)


def _mean_relevant(rows: Sequence[Row]) -> float:
    """The share of relevant features among the first five of a choice; NaN of texts, and of all features."""
    known = [row for row in rows if row.get("M") is not None and row["first"]]
    return float(np.mean([np.mean([j < row["M"] for j in row["first"]]) for row in known])) if known else np.nan


def _often_block(rows: Sequence[Row]) -> ReportBlock:
    """Table 1: how often a feature is among the five that a method selects most often, over the made data sets."""
    lines = []
    for method in METHODS[:-1]:
        for supervised, way in WAYS:
            for (M,), some in sorted(group_rows(rows, "M").items()):
                mine = of(some, method=method, supervised=supervised)
                if mine:
                    counts = Counter(j + 1 for row in mine for j in row["first"])
                    often = [f"{j} ({times} of {len(mine)})" for j, times in counts.most_common(5)]
                    theirs = PAPER.get((method.removesuffix("-1"), M, supervised), DASH)
                    share = percent(mean(mine, "relevant"), 0)
                    lines.append([method, way, str(M), ", ".join(often), theirs, share])
    head = ["method", "", "relevant", "most often, on how many of the data sets", "paper", "of the five relevant"]
    title = (
        "The five features that are selected most often, over folds and draws; of those that are selected equally "
        "often the first are shown, and all share the last places"
    )
    return Table(head, lines, title, left=5)


def _errors_block(rows: Sequence[Row], by: str, said: str) -> ReportBlock:
    lines = []
    for (value,), some in sorted(group_rows(rows, by).items()):
        for method in METHODS:
            cells = [str(value), method]
            for supervised, _ in WAYS:
                mine = of(some, method=method, supervised=supervised)
                per_set = [{"error": mean(part, "error")} for part in group_rows(mine, "seed").values()]
                cells += [with_error(per_set, "error"), show_number(mean(mine, "size"), "{:.0f}")]
            lines.append(cells)
    head = [said, "method", "supervised", "columns", "unsupervised", "columns"]
    return Table(head, lines, "Out-of-sample error in %, mean over the data sets ± one standard error", left=2)


def _pairs_block(rows: Sequence[Row], r: int) -> ReportBlock:
    groups = group_rows(of(rows, r=r, supervised=True), "seed", "pair").items()
    columns = across("method", METHODS, lambda mine: percent(mean(mine, "error"), 1))
    return tabulate(groups, ["pair", "classes"], columns, f"Supervised, r = {r}: error of each pair", left=2)


def _errors_chart(rows: Sequence[Row], r: int) -> ReportBlock:
    bars = []
    for method in METHODS:
        mine = [row for row in rows if row["method"] == method and row["supervised"] and row["r"] == r]
        if mine:
            value = 100 * mean(mine, "error")
            bars.append(Bar(method, value, f"{value:.1f}% on {mean(mine, 'size'):.0f}"))
    note = "Beside each bar the mean error and the mean number of columns, which some methods keep below what is asked."
    return Bars(bars_title(r), bars, note=note)


def bars_title(r: int) -> str:
    """Of the chart of r columns."""
    return f"Supervised choice of {r} columns, mean error in percent"


def _paired_mean_errors(rows: Sequence[Row], one: str, other: str, name: str = "error") -> list[tuple[float, float]]:
    """The mean errors (or seconds) of two methods (supervised, over r) on every pair of classes."""
    found = []
    for _, some in group_rows([row for row in rows if row["supervised"]], "seed").items():
        both = [mean(of(some, method=method), name) for method in (one, other)]
        if not np.isnan(both).any():
            found.append((both[0], both[1]))
    return found


def claims(rows: Sequence[Row]) -> list[PaperClaim]:
    """What the paper says, judged."""
    text = of(rows, part="text")
    made = of(rows, part="made")
    found = []
    if len(group_rows(made, "M", "seed")) >= ENOUGH:
        found.append(_table_one(made, of(rows, part="made, often")))
    if len(group_rows(text, "seed")) >= ENOUGH:
        found += [_claim_comparable(text), _claim_leverage(text)]
    projected = [row for row in of(rows, part="projections") if row["data"] == "text"]
    if len(group_rows(projected, "seed")) >= ENOUGH:
        found.append(_claim_projections(projected))
    words = of(rows, part="words")
    if len(group_rows(words, "data", "seed")) >= ENOUGH:
        found.append(_claim_words(words))
    return found


def _claim_words(rows: Sequence[Row]) -> PaperClaim:
    """By draw of the documents: the related among BSS's words against all words, and whether leverage has any."""
    known = [row for row in rows if row["related"] is not None]
    found = average_pairs(known, "bss", "all words", "related", ("data", "seed"), ("data", "seed"))
    parts = [higher("BSS: share of related words less that among all words, by draw of documents", found)]
    counts = [f"BSS {mean(of(rows, method='bss'), 'size'):.1f} words"]
    for method, name in (("leverage", "leverage scores"), ("leverage-1", "leverage scores, rank 1")):
        sizes = values(of(rows, method=method), "size")
        parts.append(above(f"{name}: words that are always selected, by draw", sizes, 0.0, "{:.1f}"))
        share = percent(mean(of(known, method=method), "related"), 0)
        counts.append(f"{name} {float(np.mean(sizes)):.1f} ({share} of them related)")
    of_all = f"of {mean(of(rows, method='all words'), 'size'):.0f}, r = {mean(rows, 'r'):.0f}"
    said = (
        "The words that supervised BSS and leverage scores select in all cross-validation experiments are closely "
        "related to the categories (Paul 2016, Tables 2 and 3); here acquisitions in Reuters-21578"
    )
    return judge_claim(said, parts, f"always selected on average: {', '.join(counts)} {of_all}; related: {RELATED}")


def _claim_projections(rows: Sequence[Row]) -> PaperClaim:
    """By pair of classes, over folds and r."""
    most, least = "approx-bss r/2", "approx-bss r/8"
    against = {"bss": "BSS's", "rrqr": "RRQR's", "rfe": "RFE's", "full": "that of all features"}
    words = "error with r/2 projections less that with r/8, by pair of classes, mean over r"
    parts = [lower(words, _paired_mean_errors(rows, most, least))]
    for name, theirs in against.items():
        found = _paired_mean_errors(rows, most, name)
        parts.append(no_worse(f"with r/2 no worse than {theirs}", found, less_is_better=True))
    means = ", ".join(f"{name} {percent(mean(some, 'error'))}" for (name,), some in group_rows(rows, "method").items())
    said = (
        "Approximate BSS gains with more projections, and is comparable to BSS, RRQR, RFE and all features (Paul 2016, "
        "section 5.5 and Table 4); LPSVM was not run, comparable is within a point"
    )
    return judge_claim(
        said, parts, f"mean errors: {means}; here 200 documents and 3,700 to 6,300 words, CCAT is far larger"
    )


def _relevant_share(rows: Sequence[Row], method: str) -> dict[int, float]:
    """The share of relevant features among the five that are selected most often, by seed: both M have its rows."""
    mine = of(rows, method=method, supervised=True)
    return {seed: mean(some, "relevant") for (seed,), some in group_rows(mine, "seed").items()}


def _table_one(rows: Sequence[Row], often: Sequence[Row]) -> PaperClaim:
    """By seed of the made data, against RFE, which the paper's table has at the top."""
    share = {m: _relevant_share(often, m) for m in ("bss", "leverage", "leverage-1", "rfe", "lpsvm", "rrqr")}
    words = "share of the five most often selected that is relevant"
    parts = []
    for method, name in (("bss", "BSS"), ("leverage", "leverage scores"), ("leverage-1", "leverage scores, rank 1")):
        found = [(value, share["rfe"][seed]) for seed, value in share[method].items() if seed in share["rfe"]]
        parts.append(no_worse(f"{name}: {words}, no worse than RFE's, by draw", found))
        words = "that share"
    errors = ", ".join(
        f"{m} {percent(mean(of(rows, method=m, supervised=True), 'error'))}"
        for m in ("bss", "leverage", "leverage-1", "rfe", "full")
    )
    shares = ", ".join(f"{m} {percent(float(np.mean(list(v.values()))), 0)}" for m, v in share.items() if v)
    said = "Supervised BSS and leverage scores find the relevant features as well as any other (Paul 2016, Table 1)"
    return judge_claim(said, parts, f"{shares} of the five are relevant; mean error {errors}")


OTHERS = {"rrqr": "RRQR's", "lpsvm": "LPSVM's", "full": "that of all features", "uniform": "that of uniform draws"}
"""What BSS and leverage scores are to be better than on texts."""


def _claim_comparable(rows: Sequence[Row]) -> PaperClaim:
    """By pair of classes."""
    words = "error of BSS, no worse than RFE's, by pair of classes, mean over r"
    errors = partial(_paired_mean_errors, rows, "bss")
    parts = [
        no_worse(words, errors("rfe"), less_is_better=True),
        no_worse("no worse than that of leverage scores", errors("leverage"), less_is_better=True),
        *(lower(f"less {theirs}", errors(other)) for other, theirs in OTHERS.items()),
    ]
    said = (
        "Supervised BSS is comparable to RFE and leverage scores (here within a point), and better than RRQR, LPSVM, "
        "all features and uniform draws (Paul 2016, Figure 1)"
    )
    known = [row for row in rows if row["supervised"]]
    columns = ", ".join(f"{m} {mean(of(known, method=m), 'size'):.0f}" for m in ("bss", "rfe", "rrqr", "lpsvm"))
    details = f"{len(group_rows(rows, 'seed'))} pairs of classes; columns that are chosen on average: {columns}"
    return judge_claim(said, parts, details, bars_title(max(row["r"] for row in rows)))


def _claim_leverage(rows: Sequence[Row]) -> PaperClaim:
    """By pair of classes."""
    words = "error of leverage scores, no worse than BSS's, by pair of classes, mean over r"
    errors = partial(_paired_mean_errors, rows, "leverage")
    parts = [
        no_worse(words, errors("bss"), less_is_better=True),
        *(lower(f"less {theirs}", errors(other)) for other, theirs in OTHERS.items()),
    ]
    said = (
        "Supervised leverage scores are comparable to BSS, and better than RRQR, LPSVM, all features and uniform draws "
        "(Paul 2016, section 5.3)"
    )
    known = [row for row in rows if row["supervised"]]
    means = ", ".join(f"{m} {percent(mean(of(known, method=m), 'error'), 1)}" for m in METHODS)
    return judge_claim(said, parts, f"mean errors: {means}")
