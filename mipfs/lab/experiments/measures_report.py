"""The report of the study `measures`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mipfs.lab.experiments.study import PaperClaim, Row
from mipfs.lab.experiments.tables import (
    DASH,
    WHISKERS,
    Heading,
    across,
    average,
    count,
    count_comparisons,
    curves,
    group_rows,
    mean,
    of,
    out_of,
    percent,
    show_number,
    tabulate,
    with_error,
)
from mipfs.lab.experiments.verdicts import ClaimPart, below, higher, judge_claim, lower, occurs
from mipfs.report.blocks import ReportBlock, Table

MEASURES = {"f1": "F1", "recall-at-k": "Rec@2P", "prbep": "PRBEP"}
RIVALS = {"l1": "the ℓ1-SVM's features", "rfe": "RFE's"}
PAPER = {
    "f1": ("55.53", "77.56", "49.61"),
    "recall-at-k": ("93.08", "91.21", "66.32"),
    "prbep": ("80.83", "81.46", "52.14"),
}
"""Table 2, News20: SVM^perf, the method for the measure (1301, 1186, 931 features), FGM (485 features)."""
ENOUGH = 5
OFTEN = 0.95
"""Supports count as nested where at least this share of the steps keeps all features."""
NO_GRID = "which is the best C for them and the last one, so that it gives no verdict"
"""Why F1 is open while all training documents are not measured."""
NESTED = "Share of the steps from M to M + 1 that keep all features"


def report(rows: Sequence[Row]) -> list[ReportBlock]:
    """Table 2, Figure 6, Figure 4."""
    blocks: list[ReportBlock] = []
    news = of(rows, part="news")
    nested, whole = of(rows, part="nested"), of(rows, part="whole")
    if whole:
        blocks += [Heading("20 Newsgroups, all training documents, F1 (Table 2)"), _whole_block(whole)]
    if news:
        blocks += [
            Heading("20 Newsgroups, macro averages (Table 2)"),
            _measures_table(news, own=False),
            _measures_table(news, own=True),
        ]
        blocks += [_weights_block(news)]
        for measure, title in MEASURES.items():
            some = [row for row in _rows_at_best_C(news, own=True) if row["measure"] == measure]
            sizes = sorted({row["M"] for row in some if row["M"] is not None})
            if sizes:
                labels = ("M", f"{title} on the test part")
                drawn = [{**row, "M": M} for row in some for M in sizes if row["M"] in (None, M)]
                blocks.append(curves(against_m(title), drawn, "M", "value", labels=labels, is_log=True))
    if nested:
        blocks += [Heading("Are the supports nested? (Figure 4)"), _report_nested(nested), _nested_steps_block(nested)]
    return blocks


def _whole_block(rows: Sequence[Row]) -> ReportBlock:
    columns = [
        count("classes"),
        ("F1 in % ± one standard error", lambda some: with_error(some, "value")),
        ("on the third", lambda some: percent(mean(some, "validation"), 1)),
        ("C of n/4 (classes)", _chosen_C),
        average("features", "size", "{:.0f}"),
        ("gap", lambda some: percent(mean(some, "gap"), 1)),
        average("CPU s", "seconds", "{:.1f}"),
    ]
    return tabulate(group_rows(rows, "method").items(), ["method"], columns)


def _chosen_C(rows: Sequence[Row]) -> str:
    at = sorted(group_rows(rows, "weight").items())
    return ", ".join(f"{weight:g} ({len(some)})" for (weight,), some in at)


def against_m(title: str) -> str:
    """Of the chart of a measure."""
    return f"{title} against M"


def _nested_steps_block(rows: Sequence[Row]) -> ReportBlock:
    names = {"exact": "proven optima", "fgm": "FGM"}
    drawn = [
        {"M": row["M"] - 1, "nested": float(row["nested"]), "method": names[row["method"]]}
        for row in rows
        if row["method"] == "fgm" or row["proven"]
    ]
    note = (
        "Mean over sets and values of C; of the optima the steps both ends of which are proven, fewer at larger M. "
        f"{WHISKERS}"
    )
    return curves(NESTED, drawn, "M", "nested", labels=("M", "share of the steps"), note=note)


def _rows_at_best_C(rows: Sequence[Row], *, own: bool) -> list[Row]:
    """The rows at the C of the best macro average: of each method and M, or of SVM^perf."""
    chosen = []
    for (measure,), some in group_rows(rows, "measure").items():
        reference = _best_C(of(some, method="all"))
        for _, mine in group_rows(some, "method", "M").items():
            weight = _best_C(mine) if own else reference
            chosen += of(mine, weight=weight)
        assert measure in MEASURES
    return chosen


def _best_C(rows: Sequence[Row]) -> float:
    at = group_rows(rows, "weight")
    return float(max(at, key=lambda key: mean(at[key], "value"))[0])


def _measures_table(rows: Sequence[Row], *, own: bool) -> ReportBlock:
    chosen = _rows_at_best_C(rows, own=own)
    lines = []
    for measure, title in MEASURES.items():
        some = of(chosen, measure=measure)
        whole = {row["class"]: row["value"] for row in some if row["method"] == "all"}
        for (method, M), mine in group_rows(some, "method", "M").items():
            cells = [title, str(method), DASH if M is None else str(M), str(len(mine))]
            cells += [
                f"{mine[0]['weight']:g}",
                f"{100 * mean(mine, 'value'):.2f}",
                show_number(mean(mine, "size"), "{:.0f}"),
            ]
            found = [(row["value"], whole[row["class"]]) for row in mine if row["class"] in whole]
            less, more, _ = count_comparisons(found)
            cells += [DASH if method == "all" else f"{more} / {less}"]
            paper = {"all": PAPER[measure][0], "relaxed": PAPER[measure][1], "fgm": PAPER[measure][2]}
            cells += [paper.get(method, DASH), percent(mean(mine, "gap"), 1)]
            lines.append([*cells, show_number(mean(mine, "seconds"), "{:.1f}")])
    head = ["measure", "method", "M", "classes", "C", "macro average in %", "features"]
    head += ["better / worse than all", "paper", "gap", "CPU s"]
    title = (
        "C best for each method and M on the test part" if own else "C best for SVM^perf on the test part (the paper's)"
    )
    return Table(head, lines, title, left=3)


def _weights_block(rows: Sequence[Row]) -> ReportBlock:
    weights = sorted({row["weight"] for row in rows})
    groups = [
        ((title, *key), mine)
        for measure, title in MEASURES.items()
        for key, mine in group_rows(of(rows, measure=measure), "method", "M").items()
    ]
    columns = across("weight", weights, _with_gap, "C = {:g} n/4")
    title = "Every C: macro average in % (in parentheses the mean gap that was left)"
    return tabulate(groups, ["measure", "method", "M"], columns, title, left=3)


def _with_gap(rows: Sequence[Row]) -> str:
    return f"{100 * mean(rows, 'value'):.1f} ({percent(mean(rows, 'gap'), 1)})"


def _report_nested(rows: Sequence[Row]) -> ReportBlock:
    columns = [
        ("exact: nested", lambda some: out_of(of(some, method="exact"), "nested")),
        ("features kept", lambda some: percent(mean(of(some, method="exact"), "kept"), 0)),
        ("nested where both are proven", lambda some: out_of(of(some, method="exact", proven=True), "nested")),
        ("FGM: nested", lambda some: out_of(of(some, method="fgm"), "nested")),
        ("features kept", lambda some: percent(mean(of(some, method="fgm"), "kept"), 0)),
    ]
    title = "Steps from M to M + 1 at which all features stay"
    return tabulate(group_rows(rows, "data", "C").items(), ["data", "C"], columns, title)


def claims(rows: Sequence[Row]) -> list[PaperClaim]:
    """Table 2 and Figure 4, judged."""
    found = []
    news = of(rows, part="news")
    whole, few, recall = of(rows, part="whole"), of(news, measure="f1"), of(news, measure="recall-at-k")
    if whole or len(group_rows(few, "class")) >= ENOUGH:
        found.append(_claim_f1(whole, few))
    if len(group_rows(recall, "class")) >= ENOUGH:
        found += [_claim_recall(recall), _claim_against_accuracy(news)]
    if len(group_rows(of(news, method="rfe"), "class")) >= ENOUGH:
        found.append(_claim_against_rivals(news))
    nested = of(rows, part="nested")
    if len(group_rows(nested, "data")) >= 3:
        found.append(_figure_four(nested))
    return found


def _claim_f1(rows: Sequence[Row], few: Sequence[Row]) -> PaperClaim:
    """By class, on all training documents; how far the relaxations were solved stands beside."""
    whole = {row["class"]: row["value"] for row in of(rows, method="all")}
    names = {"relaxed": "the relaxation's predictor", "kept": "the SVM on the M features"}
    parts, reached = list[ClaimPart](), [f"all features {percent(mean(of(rows, method='all'), 'value'), 1)}"]
    for method, name in names.items():
        mine = [row for row in of(rows, method=method) if row["class"] in whole]
        found = [(row["value"], whole[row["class"]]) for row in mine]
        parts.append(higher(f"F1 of {name} less that of all features, by class", found))
        reached.append(f"{name} {percent(mean(mine, 'value'), 1)}")
    facts = [
        f"{method} {percent(mean(some, 'last_gain'), 1)} (gap of the final fits {percent(mean(some, 'gap'), 1)})"
        for method in ("all", *names)
        for some in [of(rows, method=method)]
    ]
    said = (
        f"Features selected for F1 reach more than SVM^perf on all features: {PAPER['f1'][1]} against "
        f"{PAPER['f1'][0]} on News20 (Mao 2013, Table 2)"
    )
    beside = f"on 2,000 of the documents {_all_features_at_extreme_C(few)}" if few else ""
    if not rows:
        claim = judge_claim(said, parts, "", against_m(MEASURES["f1"]))
        return replace(claim, measured=f"not on all training documents yet; {beside}, {NO_GRID}", brief="")
    said += f"; here relaxations that are left open by {percent(mean(of(rows, method='relaxed'), 'gap'), 0)} on average"
    details = f"mean F1: {'; '.join(reached)}; gained by the last C on the third: {', '.join(facts)}"
    return judge_claim(said, parts, "; ".join(filter(None, (details, beside))), against_m(MEASURES["f1"]))


def _claim_recall(rows: Sequence[Row]) -> PaperClaim:
    """By class, of the best selection: at SVM^perf's best C, and each at its own."""
    parts, reached = [], []
    for own in (False, True):
        chosen = _rows_at_best_C(rows, own=own)
        whole = {row["class"]: row["value"] for row in chosen if row["method"] == "all"}
        mine = _best_rows(chosen, "kept", "relaxed")
        found = [(row["value"], whole[row["class"]]) for row in mine if row["class"] in whole]
        rule = "each at its own best C" if own else "at SVM^perf's best C"
        words = f"Rec@2P of the best selection less that of all features, by class, {rule}"
        parts.append(lower(rule if own else words, found, less_is_better=False))
        whole_mean = 100 * float(np.mean(list(whole.values())))
        reached.append(
            f"{rule} {100 * mean(mine, 'value'):.1f} ({mine[0]['method']}, M = {mine[0]['M']}) against {whole_mean:.1f}"
        )
    theirs = PAPER["recall-at-k"]
    said = (
        f"For Rec@2P selected features reach less than SVM^perf on News20, {theirs[1]} against {theirs[0]} "
        "(Mao 2013, Table 2; more on Sector)"
    )
    return judge_claim(said, parts, "; ".join([*reached, _all_features_at_extreme_C(rows)]))


def _best_rows(rows: Sequence[Row], *methods: str) -> list[Row]:
    """The rows of the method and M of the largest mean."""
    at = group_rows([row for row in rows if row["method"] in methods], "method", "M")
    return max(at.values(), key=lambda some: mean(some, "value"))


def _claim_against_accuracy(rows: Sequence[Row]) -> PaperClaim:
    """By class: what is selected for the measure against what FGM selects for accuracy, each at its best C and M."""
    parts, reached = [], []
    for measure, title in MEASURES.items():
        some = [row for row in _rows_at_best_C(rows, own=True) if row["measure"] == measure]
        mine, theirs = _best_rows(some, "kept", "relaxed"), _best_rows(some, "fgm")
        words = f"{title} less that of the SVM for {title} on FGM's features, by class"
        parts.append(higher(words, _pair_classes(mine, theirs)))
        paper = f"{PAPER[measure][1]} and {PAPER[measure][2]}"
        reached.append(f"{title} {percent(mean(mine, 'value'), 1)} and {percent(mean(theirs, 'value'), 1)} ({paper})")
    details = (
        f"means, and the paper's: {', '.join(reached)}; FGM's own classifier, which the paper has, is one for accuracy"
    )
    said = "Selecting for the measure reaches more than FGM, which selects for accuracy, on News20 (Mao 2013, Table 2)"
    return judge_claim(said, parts, details)


def _pair_classes(mine: Sequence[Row], theirs: Sequence[Row]) -> list[tuple[float, float]]:
    """The measures of two methods, class by class."""
    other = {row["class"]: row["value"] for row in theirs}
    return [(row["value"], other[row["class"]]) for row in mine if row["class"] in other]


def _claim_against_rivals(rows: Sequence[Row]) -> PaperClaim:
    """By class: the M features for F1, which the figure is about, against each rival's, each at its best C.

    The other measures are told beside; the fewer M first.
    """
    parts, beside, reached = list[ClaimPart](), list[str](), list[str]()
    for (measure, M), some in sorted(
        group_rows(_rows_at_best_C(rows, own=True), "measure", "M").items(),
        key=lambda one: (list(MEASURES).index(one[0][0]), one[0][1] or 0),
    ):
        if M is None:
            continue
        where = f"{MEASURES[measure]} at M = {M}"
        reached.append(where)
        for method, words in RIVALS.items():
            theirs = of(some, method=method)
            found = _pair_classes(of(some, method="kept"), theirs)
            part = higher(f"{where} less that of the SVM on {words}, by class", found)
            if measure == "f1":
                parts.append(part)
            else:
                beside.append(f"{part.said}: {part.figures} ({part.verdict})")
            means = " and ".join(percent(float(value), 1) for value in np.mean(found, axis=0)) if found else DASH
            reached[-1] += f", {method} {means} (its features {mean(theirs, 'size'):.0f})"
    said = (
        "Selecting for the measure outperforms the ℓ1-SVM and SVM-RFE when choosing a small subset of features (Mao "
        "2013, abstract; Figure 7 has F1)"
    )
    return judge_claim(said, parts, "; ".join([*beside, f"means, the rival's second: {'; '.join(reached)}"]))


def _all_features_at_extreme_C(rows: Sequence[Row]) -> str:
    """The best selection against all features at the least and the largest C."""
    weights = sorted({row["weight"] for row in rows})
    parts = []
    for weight in (weights[0], weights[-1]):
        some = of(rows, weight=weight)
        whole = mean(of(some, method="all"), "value")
        at = group_rows([row for row in some if row["method"] in ("kept", "relaxed")], "method", "M")
        best = max(mean(mine, "value") for mine in at.values())
        parts.append(
            f"at C = {weight:g} n/4 the best selection reaches {100 * best:.1f} and all features {100 * whole:.1f}"
        )
    return ", ".join(parts)


def _figure_four(rows: Sequence[Row]) -> PaperClaim:
    """By set: the share of the steps from M to M + 1 at which no feature is lost."""
    exact = [row for row in rows if row["method"] == "exact" and row["proven"]]
    fgm = of(rows, method="fgm")
    lost = [row for row in exact if not row["nested"]]
    sets_ = len(group_rows(exact, "data"))
    said = f"steps between proven optima that lose a feature, on {len(group_rows(lost, 'data'))} of {sets_} sets"
    shares = [mean(some, "nested") for some in group_rows(exact, "data").values()]
    parts = [
        occurs(said, len(lost), len(exact)),
        below("share of a set's steps that keep all features", shares, OFTEN),
    ]
    details = (
        f"it is the problem's, not the method's; between proven optima {percent(mean(exact, 'kept'), 0)} of the "
        f"features stay; of FGM's {len(fgm)} steps "
        f"{percent(mean(fgm, 'nested'), 0)} keep all, and {percent(mean(fgm, 'kept'), 0)} of the features stay"
    )
    said = (
        "Selections are not nested in M, so that elimination, which is monotonic, can miss them (Mao 2013, Figure 4, "
        "of his method's; Tan 2014, section 1); here the best supports"
    )
    return judge_claim(said, parts, details, NESTED)
