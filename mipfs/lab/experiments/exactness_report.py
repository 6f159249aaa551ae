"""The report of the study `exactness`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mipfs.lab.experiments.document import Heading
from mipfs.lab.experiments.study import PaperClaim, Row
from mipfs.lab.experiments.tables import (
    DASH,
    STANDING,
    across,
    average_pairs,
    difference,
    group_rows,
    mean,
    of,
    out_of,
    pairs,
    percent,
    show_number,
    standing,
    tabulate,
    values,
    with_error,
)
from mipfs.lab.experiments.verdicts import higher, judge_claim, lower, spread
from mipfs.lab.studies.stability import Stability, stability
from mipfs.report.blocks import ReportBlock, Table
from mipfs.report.charts import Bar, Bars

METHODS = ("exact", "fgm", "fgm-hinge", "rfe", "l1", "forward", "abess", "all features")
CELL = ("data", "fold")
ENOUGH = 5
"""Sets from which on a claim is judged."""


def report(rows: Sequence[Row]) -> list[ReportBlock]:
    """Error, F1, stability, size and seconds; and the comparison at the same M and C."""
    own = at_their_own(rows)
    same = at_the_same(rows)
    return [
        Heading("Each method at its own M and C"),
        _errors_block(own),
        _totals_block(own),
        _sizes_block(own),
        _stabilities_block(own),
        Heading("All methods at the M and C of the exact one"),
        _same_place_block(same),
        _by_set(same),
        _error_differences_chart(same),
    ]


def at_their_own(rows: Sequence[Row]) -> list[Row]:
    """The rows at each method's own M and C; those of peers on the folds of which there is more than that."""
    found = of(rows, kind="chosen")
    whole = {(row["data"], row["fold"]) for row in found if row["method"] == "exact"}
    return [row for row in found if (row["data"], row["fold"]) in whole]


def at_the_same(rows: Sequence[Row]) -> list[Row]:
    """The rows at the M and C of the exact method, those of peers among them, with the excess of their objective."""
    same = of(rows, kind="same")
    exact = {
        (row["data"], row["fold"], row["M"], row["C"]): row["objective"] for row in same if row["method"] == "exact"
    }
    for row in rows:
        place = (row["data"], row["fold"], row["M"], row["C"])
        if row["kind"] == "every" and place in exact:
            same.append({**row, "kind": "same", "excess": row["objective"] / exact[place] - 1.0})
    return same


def _errors_block(rows: Sequence[Row]) -> ReportBlock:
    columns = [
        ("p", lambda some: str(some[0]["p"])),
        *across("method", METHODS, lambda mine: with_error(mine, "error", 1)),
    ]
    title = "Test error in %, mean of the outer folds ± one standard error"
    return tabulate(group_rows(rows, "data").items(), ["data"], columns, title)


def _set_means(rows: Sequence[Row], one: str, other: str, name: str) -> list[tuple[float, float]]:
    """The means over the folds of every set, for two methods, of the folds that both have."""
    return average_pairs(rows, one, other, name, CELL, ("data",))


def _totals_block(rows: Sequence[Row]) -> ReportBlock:
    lines = []
    for method in METHODS:
        mine = of(rows, method=method)
        if mine:
            cells = [
                method,
                percent(mean(mine, "error")),
                show_number(mean(mine, "f1")),
                show_number(mean(mine, "size"), "{:.1f}"),
            ]
            cells += [show_number(mean(mine, "seconds"), "{:.2f}"), show_number(mean(mine, "seconds_whole"), "{:.1f}")]
            against = _set_means(rows, "exact", method, "error")
            lines.append(cells + ([DASH] * 3 if method == "exact" else standing(against)))
    head = ["method", "error", "F1", "size", "s of the last fit", "s with the choice", *STANDING]
    title = (
        "Means over all folds of each method (abess lacks some sets, so that its means are those of others; the last "
        "three columns are of the sets that both have)"
    )
    return Table(head, lines, title)


def _sizes_block(rows: Sequence[Row]) -> ReportBlock:
    columns = [
        ("exact proven", lambda some: out_of(of(some, method="exact"))),
        *across("method", METHODS[:-1], lambda mine: show_number(mean(mine, "size"), "{:.1f}")),
    ]
    title = "Number of features that one standard error chose"
    return tabulate(group_rows(rows, "data").items(), ["data"], columns, title)


def stability_by_set(rows: Sequence[Row], method: str) -> dict[str, Stability]:
    """Nogueira's index of a method on every set that has two folds or more."""
    found = {}
    for (data,), some in group_rows(rows, "data").items():
        chosen = [row["selected"] for row in some if row["method"] == method and row["selected"] is not None]
        index = stability(chosen, some[0]["p"]) if len(chosen) > 1 else None
        if index is not None:
            found[str(data)] = index
    return found


def _stabilities_block(rows: Sequence[Row]) -> ReportBlock:
    every = {method: stability_by_set(rows, method) for method in METHODS[:-1]}
    lines = []
    for (data,), _ in group_rows(rows, "data").items():
        cells = [str(data)]
        for found in every.values():
            index = found.get(str(data))
            cells.append(f"{index.index:.2f} [{index.lower:.2f}, {index.upper:.2f}]" if index else DASH)
        lines.append(cells)
    title = "Stability of the support over the folds (Nogueira's index, 95% interval)"
    return Table(["data", *every], lines, title)


def _same_place_block(rows: Sequence[Row]) -> ReportBlock:
    lines = []
    for method in METHODS[1:-1]:
        excess = values(of(rows, method=method), "excess")
        if excess:
            optimal = f"{sum(value <= 2e-4 for value in excess)} of {len(excess)}"
            cells = [method, percent(float(np.mean(excess)), 1), percent(max(excess), 1), optimal]
            lines.append(cells + standing(_set_means(rows, "exact", method, "error")))
    head = ["method", "mean excess", "largest", "as good as exact", *STANDING]
    return Table(head, lines, "Excess: the training objective above that of the exact support")


def _by_set(rows: Sequence[Row]) -> ReportBlock:
    lines = []
    for (data,), some in group_rows(rows, "data").items():
        cells = [str(data), show_number(mean(of(some, method="exact"), "M"), "{:.1f}")]
        for method in METHODS[1:-1]:
            mine = of(some, method=method)
            points = show_number(100 * difference(pairs(some, "exact", method, "error", CELL)), "{:+.1f}")
            cells.append(f"{percent(mean(mine, 'excess'), 1)} ({points})" if mine else DASH)
        lines.append(cells)
    title = "Mean excess of the objective (in parentheses: exact's test error less the method's, points)"
    return Table(["data", "M", *METHODS[1:-1]], lines, title)


def _error_differences_chart(rows: Sequence[Row]) -> ReportBlock:
    bars = []
    for method in METHODS[1:-1]:
        found = _set_means(rows, "exact", method, "error")
        points = 100 * difference(found)
        text = spread(found, (100.0, ""))
        bars.append(Bar(method, points if found else None, text))
    note = "In points; below 0 the exact support has the smaller test error; in brackets the 95% interval over sets."
    return Bars("Test error of exact less the method's at the same M and C", bars, is_signed=True, note=note)


def claims(rows: Sequence[Row]) -> list[PaperClaim]:
    """What exactness buys, and Aytug's claim on real data."""
    own = at_their_own(rows)
    same = at_the_same(rows)
    if len(group_rows(own, "data")) < ENOUGH:
        return []
    excess = of(same, method="rfe")
    first = judge_claim(
        "At the same M and C the exact support has smaller test errors than RFE's (Aytug 2015: the method is more "
        "accurate than benchmark methods)",
        [lower("mean test error of a set less RFE's", _set_means(same, "exact", "rfe", "error"))],
        f"RFE's objective is {percent(mean(excess, 'excess'), 1)} above on average",
    )
    return [first, _claim_against_best_other(own)]


def _claim_against_best_other(own: Sequence[Row]) -> PaperClaim:
    """Against the best of the others in hindsight, which is more than any one of them would reach."""
    rivals = [m for m in METHODS[1:-1] if any(row["method"] == m for row in own)]
    errors = {m: _set_means(own, "exact", m, "error") for m in rivals}
    steady = {m: stability_by_set(own, m) for m in ("exact", *rivals)}
    mean_ = {m: float(np.mean([one.index for one in found.values()])) for m, found in steady.items()}
    best = max(rivals, key=lambda m: difference(errors[m]))
    other = max(rivals, key=lambda m: mean_[m])
    both = [(one.index, steady[other][data].index) for data, one in steady["exact"].items() if data in steady[other]]
    said = "Exactness pays in test error, and in stability, where M and C are chosen by cross-validation (ours)"
    parts = [
        lower(f"mean test error of a set less that of the best of {len(rivals)} others, {best}", errors[best]),
        higher(f"stability less that of the steadiest, {other}", both, (1.0, "")),
    ]
    return judge_claim(
        said, parts, f"mean stability of the sets that each has: {', '.join(f'{m} {mean_[m]:.2f}' for m in steady)}"
    )
