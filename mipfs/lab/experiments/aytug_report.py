"""The report of the study `aytug`: tables and figures of its rows, beside what the paper prints."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from mipfs.lab.experiments.document import Heading
from mipfs.lab.experiments.study import Claim, Row
from mipfs.lab.experiments.tables import (
    DASH,
    compared,
    curves,
    difference,
    grouped,
    interval,
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
HALF = 400
"""Of the 800 features of data set two."""
BINS = np.linspace(0.0, 1.0, 6)
"""Of M/p, in Figure 1."""
ENOUGH, ENOUGH_TWO, ENOUGH_SETS = 18, 5, 7
"""Problems of data set one and two, and real sets, from which on a claim is judged."""


def report(rows: Sequence[Row]) -> list[Block]:
    """Tables 2 and 3, Figures 1 to 3, and what the paper has not: proofs, and the excess of the stop."""
    one = [row for row in rows if row["set"] == 1]
    two = [row for row in rows if row["set"] == 2]
    blocks: list[Block] = []
    if one:
        blocks += [Heading("Data set one: test errors (Table 2)"), _errors(one), _against(one)]
        blocks += [Heading("Overlap with the planted features (Table 3)"), _overlap(one), _cosines(one)]
        blocks += [Heading("By the share of features that matter (Figure 1)"), _figure_one(one)]
        blocks += [Heading("What was proven, and how far 250 cuts were from the optimum"), _proofs(one)]
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
    for number, other in enumerate(("gbd-250", "rfe", "fsv", "onsvm")):
        points: list[float | None] = []
        for low, high in itertools.pairwise(BINS):
            some = [row for row in rows if low < row["M"] / row["p"] <= high]
            found = pairs(some, "exact", other, "test_error", CELL)
            points.append(100 * difference(found) if found else None)
        drawn.append(Curve(f"against {other}", points, FAMILY[number]))
    note = "Below 0 the exact support has the smaller test error. The paper draws GBD-M stopped at 250 cuts."
    title = "Test error of the exact support less the others'"
    return Lines(title, centres, drawn, note=note, x_label="M/p", y_label="percentage points")


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


def claims(rows: Sequence[Row]) -> list[Claim]:
    """What the paper says of its made data, judged."""
    one = [row for row in rows if row["set"] == 1]
    real = [row for row in rows if row["set"] == 3]
    found = [_table_four(real)] if len(grouped(real, "data")) >= ENOUGH_SETS else []
    two = [row for row in rows if row["set"] == 2]
    if len(grouped(two, "M", "seed")) >= ENOUGH_TWO:
        found = [*_figures_two_and_three(two), *found]
    if len(grouped(one, "n", "p", "seed")) < ENOUGH:
        return found
    return [_better(one), _concave(one), _stopped(one), _converged(one), _overlapping(one), _few(one), *found]


def _better(rows: Sequence[Row]) -> Claim:
    found = {method: compared(pairs(rows, method, "rfe", "test_error", CELL)) for method in ("exact", "gbd-250")}
    apart = {method: interval(pairs(rows, method, "rfe", "test_error", CELL)) for method in found}
    less, more, equal = found["gbd-250"]
    wins = less > more and sign_test(less, more) < 0.05
    verdict = "confirmed" if wins else "refuted" if more > less and sign_test(less, more) < 0.05 else "not shown"
    measured = f"stopped at 250 cuts: {less} better, {more} worse, {equal} equal (sign test p = "
    measured += (
        f"{sign_test(less, more):.2g}), error {apart['gbd-250']}; the exact support: {found['exact'][0]} better, "
        f"{found['exact'][1]} worse, {apart['exact']}"
    )
    return Claim(
        "GBD-M is more accurate than RFE: 32 better, 23 worse of 90 (Aytug 2015, section 4)", verdict, measured
    )


def _concave(rows: Sequence[Row]) -> Claim:
    found = pairs(rows, "gbd-250", "fsv", "test_error", CELL)
    less, more, equal = compared(found)
    exact = pairs(rows, "exact", "fsv", "test_error", CELL)
    strong = sign_test(less, more) < 0.05
    most = sum(row["method"] == "exact" and row["C"] == 32.0 for row in rows)
    measured = (
        f"stopped at 250 cuts: {less} better, {more} worse, {equal} equal (p = {sign_test(less, more):.2g}), "
        f"{interval(found)}; the exact support {interval(exact)}. It chose the "
        f"largest C, 32, on {most} of {len(exact)} problems: rows lie in the unit ball, FSV's weights are free"
    )
    said = "GBD-M is more accurate than FSV: 45 better, 39 worse of 90 (Aytug 2015, section 4)"
    verdict = "refuted" if more > less and strong else "confirmed" if less > more and strong else "not shown"
    return Claim(said, verdict, measured)


def _figures_two_and_three(rows: Sequence[Row]) -> list[Claim]:
    """Errors against RFE's over M, and where the time goes."""
    found = pairs(rows, "gbd-250", "rfe", "test_error", CELL)
    less, more, equal = compared(found)
    by, times, slower = [], [], {}
    for (M,), some in sorted(grouped(rows, "M").items()):
        by.append(f"M = {M}: {100 * difference(pairs(some, 'gbd-250', 'rfe', 'test_error', CELL)):+.2f}")
        mine, theirs = (mean([r for r in some if r["method"] == m], "seconds_of_grid") for m in ("gbd-250", "rfe"))
        times.append(f"M = {M}: {mine:.0f} and {theirs:.0f}")
        slower[M] = mine
    exact = [row for row in rows if row["method"] == "exact"]
    strong = sign_test(less, more) < 0.05
    measured = (
        f"stopped at 250 cuts: {less} better, {more} worse, {equal} equal (p = {sign_test(less, more):.2g}), error "
        f"{interval(found)}; {', '.join(by)}; the exact runs prove {_share(exact)} fits"
    )
    verdict = "confirmed" if strong and less > more else "refuted" if strong and more > less else "not shown"
    first = Claim("With 800 features GBD-M beats RFE almost everywhere but at M = 20 (Figure 2)", verdict, measured)
    middle = max(slower, key=lambda M: slower[M])
    said = "GBD-M's burden rises drastically where half of the features are selected, M = 400 of 800 (Figure 3)"
    rises = slower.get(HALF, 0.0) > 2.0 * slower[min(slower)]
    verdict = "confirmed" if rises and middle == HALF else "refined" if rises else "refuted"
    return [first, Claim(said, verdict, f"CPU s over all C, GBD-M of 250 cuts and RFE: {'; '.join(times)}")]


def _table_four(rows: Sequence[Row]) -> Claim:
    found = {other: compared(by_set(rows, "gbd-250", other)) for other in ("rfe", "fsv", "onsvm")}
    counts = ", ".join(f"{other} {less} / {more} / {equal}" for other, (less, more, equal) in found.items())
    exact = compared(by_set(rows, "exact", "rfe"))
    measured = (
        f"{len(grouped(rows, 'data'))} sets, better / worse / equal than {counts}; the exact support against RFE "
        f"{exact[0]} / {exact[1]} / {exact[2]}"
    )
    said = "On real data GBD-M is better than RFE on 7 sets, FSV on 17, ONSVM on 11 of 25; worse on 1, 1, 2 (Table 4)"
    wins = [less > more for less, more, _ in found.values()]
    verdict = "confirmed" if all(wins) else "refined" if any(wins) else "refuted"
    return Claim(said, verdict, measured)


def _stopped(rows: Sequence[Row]) -> Claim:
    found = pairs(rows, "gbd-250", "exact", "test_error", CELL)
    mean_ = difference(found)
    less, more, equal = compared(found)
    excess = max(values(rows, "most_excess"), default=0.0)
    harmless = abs(mean_) < 0.001 and not (more > less and sign_test(less, more) < 0.05)
    measured = (
        f"mean test error after 250 cuts less that of the exact run: {interval(found)} ({less} better, "
        f"{more} worse, {equal} equal), though the objective is up to {percent(excess)} above a proven optimum"
    )
    said = "Stopping after 250 cuts does not harm the test accuracy (Aytug 2015, section 4)"
    return Claim(said, "confirmed" if harmless else "refuted", measured)


def _converged(rows: Sequence[Row]) -> Claim:
    small, large = (
        [row for row in rows if row["method"] == "gbd-250" and (row["p"] == 20) is few] for few in (True, False)
    )
    exact = [row for row in rows if row["method"] == "exact" and row["p"] > 20]
    shares = [sum(row["proven_of_grid"] for row in some) / sum(row["grid"] for row in some) for some in (small, large)]
    proven = sum(row["proven_of_grid"] for row in exact) / sum(row["grid"] for row in exact)
    measured = (
        f"converged within 250 cuts: {percent(shares[0], 0)} of the fits with p = 20, {percent(shares[1], 0)} of those "
        f"with p > 20; branch and bound proves {percent(proven, 0)} of the latter"
    )
    said = "Half of the problems with p = 20 converge within 250 cuts, very few beyond (Aytug 2015, section 4)"
    verdict = "confirmed" if shares[0] >= 0.5 and shares[1] < 0.25 else "refined"
    return Claim(said, verdict, measured)


def _overlapping(rows: Sequence[Row]) -> Claim:
    share = {
        method: float(np.mean([row["overlap"] / row["p"] for row in rows if row["method"] == method]))
        for method in METHODS
    }
    order = sorted(share, key=lambda method: -share[method])
    measured = ", ".join(f"{method} {percent(share[method], 1)}" for method in order)
    verdict = "confirmed" if order[0] == "rfe" else "refuted"
    if order[0] != "rfe" and share[order[0]] - share["rfe"] < 0.005:
        verdict = "refined"
    return Claim("RFE overlaps best with the true features, GBD-M closely follows (Table 3)", verdict, measured)


def _few(rows: Sequence[Row]) -> Claim:
    differences = []
    for few in (True, False):
        some = [row for row in rows if (row["M"] <= 0.2 * row["p"]) is few]
        found = pairs(some, "exact", "rfe", "test_error", CELL)
        differences.append((interval(found), *compared(found)))
    (few_, less, more, equal), (many, *_) = differences
    measured = f"exact less RFE where M ≤ p/5: {few_} ({less} better, {more} worse, {equal} equal), elsewhere {many}"
    if not less + more + equal:
        measured = "no problem with so few was drawn yet"
    said = "GBD-M does worse than others where few features matter, M ≤ p/5 (Figure 1, bin 1)"
    strong = sign_test(less, more) < 0.05
    verdict = "not shown" if not strong else "confirmed" if more > less else "refuted"
    return Claim(said, verdict if less + more + equal else "open", measured)
