"""The report of the study `aytug`: tables and figures of its rows, beside what the paper prints."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from mipfs.lab.experiments.document import Heading
from mipfs.lab.experiments.study import Row
from mipfs.lab.experiments.tables import (
    DASH,
    WHISKERS,
    compared,
    curves,
    difference,
    grouped,
    mean,
    pairs,
    percent,
    shown,
    sign_test,
    standard_error,
    values,
)
from mipfs.report.blocks import Block, Table
from mipfs.report.charts import FAMILY, Curve, Lines

METHODS = ("exact", "gbd-250", "rfe", "fsv", "onsvm", "information-gain")
CELL = ("set", "n", "p", "seed", "M")
COSINES = {"gbd-250": "0.9966", "rfe": "0.9959", "onsvm": "0.9939", "fsv": "0.9928"}
"""The paper's mean of ŵ'w over its 90 problems."""
TABLE_FOUR = {
    "rfe": "better 7, worse 1",
    "fsv": "better 17, worse 1",
    "onsvm": "better 11, worse 2",
    "information-gain": DASH,
}
"""Of 25 data sets, as the text of the paper counts them."""
DIFFERENCE = "Test error after 250 cuts less the others'"
EXCESS = "Objective after 250 cuts above the proven optimum"
HALF = 400
"""Of the 800 features of data set two."""
BINS = np.linspace(0.0, 1.0, 6)
"""Of M/p, in Figure 1."""


def report(rows: Sequence[Row]) -> list[Block]:
    """Tables 2 and 3, Figures 1 to 3, and what the paper has not: proofs, and the excess of the stop."""
    one = [row for row in rows if row["set"] == 1]
    two = [row for row in rows if row["set"] == 2]
    blocks: list[Block] = []
    if one:
        blocks += [Heading("Data set one: test errors (Table 2)"), _errors(one), _against(one)]
        blocks += [Heading("Overlap with the planted features (Table 3)"), _overlap(one), _cosines(one)]
        blocks += [Heading("By the share of features that matter (Figure 1)"), _figure_one(one)]
        blocks += [Heading("What was proven, and how far 250 cuts were from the optimum"), _proofs(one), _excess(one)]
    if two:
        blocks += [Heading("Data set two (Figures 2 and 3)"), _two(two)]
        blocks.append(curves("Data set two: test error", two, "M", "test_error", labels=("M", "test error")))
        blocks.append(
            curves(
                "Data set two: CPU seconds over all values of C",
                two,
                "M",
                "seconds_of_grid",
                labels=("M", "CPU seconds"),
                spread=False,
                is_log_y=True,
            )
        )
    real = [row for row in rows if row["set"] == 3]
    if real:
        blocks += [Heading("Real data (Tables 4 and 5)"), _real(real), _wins(real), _seconds(real)]
    return blocks


def _real(rows: Sequence[Row]) -> Block:
    lines = []
    for (data,), some in grouped(rows, "data").items():
        sizes = sorted({row["M"] for row in some})
        between = str(sizes[0]) if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
        cells = [str(data), f"{some[0]['n']} × {some[0]['p']}", between, str(len(grouped(some, "seed")))]
        lines.append(cells + [_with_error(some, method) for method in METHODS])
    return Table(["data", "n × p", "M", "splits", *METHODS], lines, "Mean test error in % ± one standard error", left=2)


def _wins(rows: Sequence[Row]) -> Block:
    lines = []
    for method in ("exact", "gbd-250"):
        for other, theirs in TABLE_FOUR.items():
            less, more, equal = compared(by_set(rows, method, other))
            cells = [f"{method} against {other}", str(less), str(more), str(equal), f"{sign_test(less, more):.2g}"]
            lines.append([*cells, theirs if method == "gbd-250" else DASH])
    head = ["mean test error", "sets: better", "worse", "equal", "sign test p", "paper (GBD-M, 25 sets)"]
    return Table(head, lines)


def _seconds(rows: Sequence[Row]) -> Block:
    lines = []
    for (data,), some in grouped(rows, "data").items():
        exact = [row for row in some if row["method"] == "exact"]
        cells = [str(data), _share(exact), f"{sum(bool(row['proven']) for row in exact)} of {len(exact)}"]
        for method in METHODS:
            cells.append(shown(mean([row for row in some if row["method"] == method], "seconds_of_grid"), "{:.1f}"))
        lines.append(cells)
    title = "What was proven, and CPU seconds over all values of C (Table 5)"
    return Table(["data", "exact: proven (all C)", "at the chosen C", *METHODS], lines, title)


def by_set(rows: Sequence[Row], one: str, other: str) -> list[tuple[float, float]]:
    """The mean test errors of two methods on every real set."""
    found = []
    for some in grouped(rows, "data").values():
        both = pairs(some, one, other, "test_error", ("data", "seed"))
        if both:
            found.append((float(np.mean([a for a, _ in both])), float(np.mean([b for _, b in both]))))
    return found


def _errors(rows: Sequence[Row]) -> Block:
    lines = []
    for (n, p), some in sorted(grouped(rows, "n", "p").items()):
        cells = [f"{n} × {p}", str(len(grouped(some, "seed")))]
        lines.append(cells + [_with_error(some, method) for method in METHODS])
    lines.append(["all", str(len(grouped(rows, "n", "p", "seed")))] + [_with_error(rows, m) for m in METHODS])
    return Table(["n × p", "problems", *METHODS], lines, "Mean test error in % ± one standard error")


def _with_error(rows: Sequence[Row], method: str) -> str:
    mine = [row for row in rows if row["method"] == method]
    if not mine:
        return DASH
    error = standard_error(mine, "test_error")
    return f"{100 * mean(mine, 'test_error'):.2f} ± {shown(100 * error, '{:.2f}')}"


def _against(rows: Sequence[Row]) -> Block:
    lines = []
    for method in ("exact", "gbd-250"):
        for other in METHODS:
            if other in ("exact", method):
                continue
            found = pairs(rows, method, other, "test_error", CELL)
            less, more, equal = compared(found)
            said = {"rfe": "32 better, 23 worse", "fsv": "45 better, 39 worse"}
            theirs = said.get(other, DASH) if method == "gbd-250" else DASH
            p_value = f"{sign_test(less, more):.2g}"
            lines.append(
                [
                    f"{method} against {other}",
                    str(less),
                    str(more),
                    str(equal),
                    percent(difference(found)),
                    p_value,
                    theirs,
                ]
            )
    head = ["test error", "better", "worse", "equal", "mean difference", "sign test p", "paper (GBD-M, of 90)"]
    return Table(head, lines, "Pairs of methods on the same problems")


def _overlap(rows: Sequence[Row]) -> Block:
    lines = []
    for (p, n), some in sorted(grouped(rows, "p", "n").items()):
        cells = [str(p), str(n)]
        for method in METHODS:
            mine = [row for row in some if row["method"] == method]
            cells.append(f"{mean(mine, 'overlap'):.1f} ({sum(row['match'] for row in mine)})" if mine else DASH)
        lines.append(cells)
    head = ["p", "n", *METHODS]
    return Table(head, lines, "Mean overlap, p less the Hamming distance (exact matches in parentheses)", left=2)


def _cosines(rows: Sequence[Row]) -> Block:
    lines = []
    for method in METHODS:
        mine = [row for row in rows if row["method"] == method]
        if mine:
            overlap = float(np.mean([row["overlap"] / row["p"] for row in mine]))
            cells = [method, f"{mean(mine, 'cosine'):.4f}", COSINES.get(method, DASH), percent(overlap, 1)]
            lines.append([*cells, percent(mean(mine, "match"), 0), shown(mean(mine, "features"), "{:.1f}")])
    head = ["method", "mean ŵ'w", "paper", "overlap", "exact matches", "features"]
    return Table(head, lines, "Angle between the found and the planted hyperplane")


def _figure_one(rows: Sequence[Row]) -> Block:
    centres = [float(c) for c in 0.5 * (BINS[1:] + BINS[:-1])]
    drawn = []
    for number, other in enumerate(("exact", "rfe", "fsv", "onsvm")):
        points: list[float | None] = []
        errors: list[float | None] = []
        for low, high in itertools.pairwise(BINS):
            some = [row for row in rows if low < row["M"] / row["p"] <= high]
            found = [{"less": 100 * (a - b)} for a, b in pairs(some, "gbd-250", other, "test_error", CELL)]
            points.append(mean(found, "less") if found else None)
            errors.append(standard_error(found, "less") if len(found) > 1 else None)
        drawn.append(Curve(f"against {other}", points, FAMILY[number], errors))
    note = (
        f"Below 0 Benders decomposition, stopped after 250 cuts, has the smaller test error. {WHISKERS} A bin in which "
        "no problem lies has no point."
    )
    return Lines(DIFFERENCE, centres, drawn, note=note, x_label="M/p", y_label="percentage points")


def _proofs(rows: Sequence[Row]) -> Block:
    lines = []
    for (n, p), some in sorted(grouped(rows, "n", "p").items()):
        exact = [row for row in some if row["method"] == "exact"]
        stopped = [row for row in some if row["method"] == "gbd-250"]
        excess = values(stopped, "most_excess")
        lines.append(
            [
                f"{n} × {p}",
                _share(exact),
                f"{sum(bool(row['proven']) for row in exact)} of {len(exact)}",
                _share(stopped),
                percent(mean(stopped, "mean_excess"), 3),
                percent(max(excess), 2) if excess else DASH,
                shown(mean(exact, "seconds_of_grid"), "{:.1f}"),
                shown(mean(stopped, "seconds_of_grid"), "{:.1f}"),
                shown(mean([row for row in some if row["method"] == "rfe"], "seconds_of_grid"), "{:.1f}"),
            ]
        )
    head = ["n × p", "exact: proven (all C)", "at the chosen C", "250 cuts: converged (all C)"]
    head += ["mean excess", "largest excess", "s exact", "s 250 cuts", "s RFE"]
    return Table(head, lines, "Excess: objective after 250 cuts above the proven optimum; seconds over all C")


def _share(rows: Sequence[Row]) -> str:
    return f"{sum(row['proven_of_grid'] for row in rows)} of {sum(row['grid'] for row in rows)}" if rows else DASH


def _two(rows: Sequence[Row]) -> Block:
    lines = []
    for (M, method), some in sorted(grouped(rows, "M", "method").items()):
        gap = mean(some, "gap")
        lines.append(
            [
                str(M),
                str(method),
                str(len(some)),
                f"{100 * mean(some, 'test_error'):.2f} ± {shown(100 * standard_error(some, 'test_error'), '{:.2f}')}",
                shown(mean(some, "overlap"), "{:.1f}"),
                shown(mean(some, "cosine"), "{:.4f}"),
                percent(gap, 2),
                shown(mean(some, "seconds_of_grid"), "{:.1f}"),
            ]
        )
    head = ["M", "method", "problems", "test error in %", "overlap of 800", "ŵ'w", "gap left", "s of all C"]
    return Table(head, lines, left=2)


def _excess(rows: Sequence[Row]) -> Block:
    """How far the stop is above the proven optimum."""
    stopped = [row for row in rows if row["method"] == "gbd-250" and row["most_excess"] is not None]
    drawn = [{**row, "n": f"n = {row['n']}", "excess": 100.0 * row["most_excess"]} for row in stopped]
    labels = ("p", "largest excess over C in %")
    return curves(EXCESS, drawn, "p", "excess", "n", labels=labels)
