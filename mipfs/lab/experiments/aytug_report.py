"""The report of the study `aytug`: tables and figures of its rows, beside what the paper prints."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from mipfs.lab.experiments.study import Row
from mipfs.lab.experiments.tables import (
    DASH,
    WHISKERS,
    Column,
    Heading,
    across,
    average,
    average_pairs,
    count,
    count_comparisons,
    curves,
    difference,
    group_rows,
    interval,
    mean,
    of,
    out_of,
    pairs,
    percent,
    show_number,
    sign_test,
    standard_error,
    tabulate,
    values,
    with_error,
)
from mipfs.report.blocks import FAMILY, Curve, LineChart, ReportBlock, Table

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
ANGLES = ("gbd-250", "rfe", "onsvm", "fsv")
"""Methods whose ŵ'w the paper prints."""
DIFFERENCE = "Test error after 250 cuts less the others'"
STOPPED = "Test error after 250 cuts less the exact run's"
EXCESS = "Objective after 250 cuts above the proven optimum"
HALF = 400
"""Of the 800 features of data set two."""
CUTS = 250
"""Where the paper stops."""
BINS = np.linspace(0.0, 1.0, 6)
"""Of M/p, in Figure 1."""


def report(rows: Sequence[Row]) -> list[ReportBlock]:
    """Tables 2 and 3, Figures 1 to 3, and what the paper has not: proofs, and the excess of the stop."""
    one = of(rows, set=1)
    two = of(rows, set=2)
    blocks: list[ReportBlock] = []
    if one:
        blocks += [
            Heading("Data set one: test errors (Table 2)"),
            _errors_block(one),
            _against_others_block(one),
            _by_size_block(one),
        ]
        blocks += [Heading("Overlap with the planted features (Table 3)"), _overlap_block(one), _cosines_block(one)]
        blocks += [Heading("By the share of features that matter (Figure 1)"), _figure_one(one)]
        blocks += [Heading("What was proven, and how far 250 cuts were from the optimum"), _proofs_block(one)]
        blocks += [_excess_block(one), _report_stopped(one)]
    if two:
        blocks += [Heading("Data set two (Figures 2 and 3)"), _two_methods_block(two)]
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
    loop = of(rows, set=4)
    if loop:
        blocks += [Heading("The published loop, a MILP for every cut (Table 1)"), _loop_block(loop)]
    real = [*of(rows, set=3), *of(rows, set=5)]
    if of(rows, set=3):
        blocks += [
            Heading("Real data (Tables 4 and 5)"),
            _real_data_block(real),
            _wins_block(real),
            _seconds_block(real),
        ]
    return blocks


def _real_data_block(rows: Sequence[Row]) -> ReportBlock:
    columns = [
        ("n × p", lambda some: f"{some[0]['n']} × {some[0]['p']}"),
        ("M", _range_of_M),
        ("splits", lambda some: str(len(group_rows(some, "seed")))),
        *across("method", (*METHODS, "gbd-lambda"), _with_error),
        ("its features", _features_of_lambda),
    ]
    return tabulate(group_rows(rows, "data").items(), ["data"], columns, "Mean test error in % ± one standard error", 2)


def _range_of_M(rows: Sequence[Row]) -> str:
    sizes = sorted({row["M"] for row in of(rows, set=3)})
    return str(sizes[0]) if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"


def _features_of_lambda(rows: Sequence[Row]) -> str:
    sizes = sorted({row["features"] for row in of(rows, method="gbd-lambda")})
    return f"{sizes[0]} to {sizes[-1]}" if sizes else DASH


def _loop_block(rows: Sequence[Row]) -> ReportBlock:
    columns = [
        count("problems"),
        ("proven", lambda some: out_of(some)),
        ("gap left", lambda some: percent(mean(some, "gap"))),
        average("MILPs", "milps", "{:.0f}"),
        ("test error in %", _with_error),
        average("s", "seconds", "{:.1f}"),
    ]
    title = "500 rows: the loop and one tree stopped after 250 cuts, and branch and bound, at the same C"
    return tabulate(sorted(group_rows(rows, "p", "C", "method").items()), ["p", "C", "method"], columns, title, left=3)


def _by_size_block(rows: Sequence[Row]) -> ReportBlock:
    def against(other: str) -> Column:
        return f"less {other}'s", lambda some: interval(pairs(some, "gbd-250", other, "test_error", CELL))

    groups = [((f"{n} × {p}",), some) for (n, p), some in sorted(group_rows(rows, "n", "p").items())]
    columns = [against(other) for other in METHODS if other not in ("exact", "gbd-250")]
    columns += [(f"ŵ'w, {name}", cell) for name, cell in across("method", ANGLES, _mean_angle)]
    title = "By size: GBD-M's test error less the others', and the angle with the planted hyperplane"
    return tabulate(groups, ["n × p"], columns, title)


def _mean_angle(rows: Sequence[Row]) -> str:
    return show_number(mean(rows, "cosine"), "{:.4f}")


def _wins_block(rows: Sequence[Row]) -> ReportBlock:
    lines = []
    for method in ("exact", "gbd-250"):
        for other, theirs in TABLE_FOUR.items():
            less, more, equal = count_comparisons(by_set(rows, method, other))
            cells = [f"{method} against {other}", str(less), str(more), str(equal), f"{sign_test(less, more):.2g}"]
            lines.append([*cells, theirs if method == "gbd-250" else DASH])
    head = ["mean test error", "sets: better", "worse", "equal", "sign test p", "paper (GBD-M, 25 sets)"]
    return Table(head, lines)


def _seconds_block(rows: Sequence[Row]) -> ReportBlock:
    columns = [
        ("exact: proven (all C)", lambda some: _proven_share(of(some, method="exact"))),
        ("at the chosen C", lambda some: out_of(of(some, method="exact"))),
        *across("method", METHODS, _seconds_of_grid),
    ]
    title = "What was proven, and CPU seconds over all values of C (Table 5)"
    return tabulate(group_rows(rows, "data").items(), ["data"], columns, title)


def _seconds_of_grid(rows: Sequence[Row]) -> str:
    return show_number(mean(rows, "seconds_of_grid"), "{:.1f}")


def by_set(rows: Sequence[Row], one: str, other: str) -> list[tuple[float, float]]:
    """The mean test errors of two methods on every real set."""
    return average_pairs(rows, one, other, "test_error", ("data", "seed"), ("data",))


def _errors_block(rows: Sequence[Row]) -> ReportBlock:
    groups = [((f"{n} × {p}",), some) for (n, p), some in sorted(group_rows(rows, "n", "p").items())]
    columns = [
        ("problems", lambda some: str(len(group_rows(some, "n", "p", "seed")))),
        *across("method", METHODS, _with_error),
    ]
    title = "Mean test error in % ± one standard error"
    return tabulate([*groups, (("all",), rows)], ["n × p"], columns, title)


def _with_error(rows: Sequence[Row]) -> str:
    return with_error(rows, "test_error")


def _against_others_block(rows: Sequence[Row]) -> ReportBlock:
    lines = []
    for method in ("exact", "gbd-250"):
        for other in METHODS:
            if other in ("exact", method):
                continue
            found = pairs(rows, method, other, "test_error", CELL)
            less, more, equal = count_comparisons(found)
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
    return Table(head, lines, "Pairs of methods on the same problems: the first less the second")


def _overlap_block(rows: Sequence[Row]) -> ReportBlock:
    groups = sorted(group_rows(rows, "p", "n").items())
    columns = across(
        "method", METHODS, lambda mine: f"{mean(mine, 'overlap'):.1f} ({sum(row['match'] for row in mine)})"
    )
    title = "Mean overlap, p less the Hamming distance (exact matches in parentheses)"
    return tabulate(groups, ["p", "n"], columns, title, left=2)


def _cosines_block(rows: Sequence[Row]) -> ReportBlock:
    shares = [{**row, "overlap": row["overlap"] / row["p"]} for row in rows]
    groups = [((method,), mine) for method in METHODS if (mine := of(shares, method=method))]
    columns = [
        average("mean ŵ'w", "cosine", "{:.4f}"),
        ("paper", lambda mine: COSINES.get(mine[0]["method"], DASH)),
        ("overlap", lambda mine: percent(mean(mine, "overlap"), 1)),
        ("exact matches", lambda mine: percent(mean(mine, "match"), 0)),
        average("features", "features", "{:.1f}"),
    ]
    return tabulate(groups, ["method"], columns, "Angle between the found and the planted hyperplane")


def _figure_one(rows: Sequence[Row]) -> ReportBlock:
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
    return LineChart(DIFFERENCE, centres, drawn, note=note, x_label="M/p", y_label="percentage points")


def _proofs_block(rows: Sequence[Row]) -> ReportBlock:
    groups = [((f"{n} × {p}",), some) for (n, p), some in sorted(group_rows(rows, "n", "p").items())]
    seconds = {"exact": "s exact", "gbd-250": "s 250 cuts", "rfe": "s RFE"}
    columns = [
        ("exact: proven (all C)", lambda some: _proven_share(of(some, method="exact"))),
        ("at the chosen C", lambda some: out_of(of(some, method="exact"))),
        ("250 cuts: converged (all C)", lambda some: _proven_share(of(some, method="gbd-250"))),
        ("mean excess", lambda some: percent(mean(of(some, method="gbd-250"), "mean_excess"), 3)),
        ("largest excess", lambda some: percent(max(values(of(some, method="gbd-250"), "most_excess"), default=None))),
        *((seconds[method], cell) for method, cell in across("method", seconds, _seconds_of_grid)),
    ]
    title = "Excess: objective after 250 cuts above the proven optimum; seconds over all C"
    return tabulate(groups, ["n × p"], columns, title)


def _proven_share(rows: Sequence[Row]) -> str:
    return f"{sum(row['proven_of_grid'] for row in rows)} of {sum(row['grid'] for row in rows)}" if rows else DASH


def _two_methods_block(rows: Sequence[Row]) -> ReportBlock:
    columns = [
        count("problems"),
        ("test error in %", _with_error),
        average("overlap of 800", "overlap", "{:.1f}"),
        average("ŵ'w", "cosine", "{:.4f}"),
        ("gap left", lambda some: percent(mean(some, "gap"))),
        ("s of all C", _seconds_of_grid),
    ]
    return tabulate(sorted(group_rows(rows, "M", "method").items()), ["M", "method"], columns, left=2)


def _excess_block(rows: Sequence[Row]) -> ReportBlock:
    """How far the stop is above the proven optimum."""
    stopped = [row for row in rows if row["method"] == "gbd-250" and row["most_excess"] is not None]
    drawn = [{**row, "n": f"n = {row['n']}", "excess": 100.0 * row["most_excess"]} for row in stopped]
    note = f"The largest excess over C, mean over the problems. {WHISKERS}"
    return curves(EXCESS, drawn, "p", "excess", "n", labels=("p", "largest excess in %"), note=note)


def _report_stopped(rows: Sequence[Row]) -> ReportBlock:
    """What the stop costs in test error."""
    drawn = [
        {"p": p, "n": f"n = {n}", "less": 100 * (a - b)}
        for (n, p), some in group_rows(rows, "n", "p").items()
        for a, b in pairs(some, "gbd-250", "exact", "test_error", CELL)
    ]
    note = f"Mean over the problems; above 0 the exact run has the smaller test error. {WHISKERS}"
    return curves(STOPPED, drawn, "p", "less", "n", labels=("p", "percentage points"), note=note)
