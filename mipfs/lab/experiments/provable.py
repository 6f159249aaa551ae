"""Provable where it matters: the share of folds at whose chosen M and C the optimum is proven within a minute."""

from __future__ import annotations

from collections.abc import Sequence

from mipfs.data.instance import Instance
from mipfs.errors import NumericalError
from mipfs.lab.experiments import sets
from mipfs.lab.experiments.exactness import OUTER, SEED, choose_place
from mipfs.lab.experiments.fits import solve_by
from mipfs.lab.experiments.study import PaperClaim, Row, Study, Unit
from mipfs.lab.experiments.tables import DASH, Heading, group_rows, mean, of, show_number, values
from mipfs.lab.experiments.verdicts import below, judge_claim
from mipfs.lab.studies.folds import fold
from mipfs.plumbing.clock import cpu_clock
from mipfs.problem import Problem
from mipfs.report.blocks import Bar, Bars, ReportBlock, Table

MINUTE, WALL, GAP = 60.0, 600.0, 1e-4
CHOICES = ("rfe", "forward")
FIXED = (5, 1.0)
METHODS = (*CHOICES, "fixed")
ENOUGH = 5
"""Sets from which on the claim is judged."""
NARROW = 100
"""Features of a narrow set at most."""
NOTE = "M and C chosen by one standard error, with the supports of SVM-RFE."
TITLE = "Share of folds proven in a minute"
DESIGN = (
    f"On the training part of each of {OUTER} folds of the shared sets of at most 10,000 features, M and C are chosen "
    "by one standard error, with the supports of SVM-RFE and with those of forward selection (as in the study "
    "`exactness`, so that the choice does not depend on what can be proven); then FSP-M with the hinge and a free "
    f"intercept is solved at that place, and at M = {FIXED[0]}, C = {FIXED[1]:g} for comparison. Proven: a gap of "
    f"{GAP:g} within {MINUTE:g} CPU seconds on one thread, after which the run is stopped (or after {WALL:g} seconds "
    "of wall time, which makes the unit a failed one)."
)


def units() -> list[Unit]:
    """Set by set, the small ones first, and their folds."""
    return [
        Unit({"data": name, "fold": k}, quick=(name, k) == ("heart_statlog", 0), needs=name)
        for name in sets.SMALL
        for k in range(OUTER)
    ]


def measure(unit: Unit) -> list[Row]:
    """One solve for every way to choose M and C; one where two ways agree."""
    train = fold(sets.read(unit.params["data"]), OUTER, SEED, unit.params["fold"]).train
    rows: list[Row] = []
    known: dict[tuple[int, float], Row] = {}
    for way in METHODS:
        place = FIXED if way == "fixed" else choose_place(way, train)
        if place is None or place[0] > train.n_features:
            continue
        if place not in known:
            known[place] = _solve_provable(train, *place)
        rows.append({"method": way, "p": train.n_features, "M": place[0], "C": place[1], **known[place]})
    return rows


def _solve_provable(train: Instance, M: int, C: float) -> Row:
    began = cpu_clock()
    result = solve_by(Problem(train, M=M, C=C), "branch", gap=GAP, time_limit=WALL, cpu_limit=MINUTE)
    spent = cpu_clock() - began
    proven = result.status.name == "OPTIMAL" and spent <= MINUTE
    if result.status.name != "OPTIMAL" and spent < MINUTE:
        raise NumericalError(f"other work left the run {spent:.0f} CPU seconds of {MINUTE:g} before the wall limit")
    return {"proven": proven, "gap": result.gap, "nodes": result.counters.get("nodes"), "seconds": spent}


def report(rows: Sequence[Row]) -> list[ReportBlock]:
    """Shares by set."""
    lines = []
    for (data,), some in group_rows(rows, "data").items():
        cells = [str(data), str(some[0]["p"])]
        for way in METHODS:
            mine = of(some, method=way)
            sizes = sorted({row["M"] for row in mine})
            cells += [
                _proven_share(mine),
                ", ".join(map(str, sizes)),
                show_number(max(values(mine, "gap"), default=None), "{:.1e}"),
            ]
            cells.append(show_number(max(values(mine, "seconds"), default=None), "{:.1f}"))
        lines.append(cells)
    total = ["all", ""]
    for way in METHODS:
        total += [_proven_share(of(rows, method=way)), "", "", ""]
    bars = [
        Bar(f"{data}, {some[0]['p']} features", mean(some, "proven"), _proven_share(some))
        for (data,), some in group_rows(of(rows, method=CHOICES[0]), "data").items()
    ]
    head = ["data", "p"]
    for way in METHODS:
        head += [f"{way}: proven", "M", "largest gap", "most CPU s"]
    title = "Folds whose problem is proven within a minute"
    return [Heading("Shares"), Table(head, [*lines, total], title), Bars(TITLE, bars, note=NOTE)]


def _proven_share(rows: Sequence[Row]) -> str:
    return f"{sum(row['proven'] for row in rows)} of {len(rows)}" if rows else DASH


def claims(rows: Sequence[Row]) -> list[PaperClaim]:
    """That the exact method is too slow where M is chosen by validation, on narrow sets and on wide ones."""
    if len(group_rows(rows, "data")) < ENOUGH:
        return []
    mine = of(rows, method="rfe")
    parts = []
    for narrow, words in ((False, f"more than {NARROW} features"), (True, "fewer")):
        some = [row for row in mine if (row["p"] <= NARROW) is narrow]
        shares = [mean(part, "proven") for part in group_rows(some, "data").values()]
        parts.append(below(f"share of a set's folds proven in a minute, {words}", shares, 0.5))
    fixed = of(rows, method="fixed")
    sizes = sorted(row["p"] for row in rows)
    details = (
        f"M and C chosen by one standard error: {_proven_share(mine)} folds proven, of sets with {sizes[0]} to "
        f"{sizes[-1]} "
        f"features; at M = {FIXED[0]}, C = {FIXED[1]:g} {_proven_share(fixed)}"
    )
    said = (
        "The exact problem is computationally expensive in general, relaxations are needed (Tan 2010, section 2.1, of "
        f"the squared hinge); here the hinge with a free intercept, M up to {max(row['M'] for row in mine)}"
    )
    return [judge_claim(said, parts, details, TITLE)]


STUDY = Study("provable", "Provable where it matters", "ours", DESIGN, units, measure, report, claims)
