"""Provable where it matters: the share of folds at whose chosen M and C the optimum is proven within a minute."""

from __future__ import annotations

from collections.abc import Sequence

from mipfs.data.instance import Instance
from mipfs.errors import NumericalError
from mipfs.lab.experiments import sets
from mipfs.lab.experiments.document import Heading
from mipfs.lab.experiments.exactness import OUTER, SEED, chosen
from mipfs.lab.experiments.fits import solved
from mipfs.lab.experiments.study import Claim, Row, Study, Unit
from mipfs.lab.experiments.tables import DASH, grouped, percent, shown, values
from mipfs.lab.studies.folds import fold
from mipfs.plumbing.clock import cpu_clock
from mipfs.problem import Problem
from mipfs.report.blocks import Block, Table
from mipfs.report.charts import Bar, Bars

MINUTE, WALL, GAP = 60.0, 180.0, 1e-4
CHOICES = ("rfe", "forward")
FIXED = (5, 1.0)
METHODS = (*CHOICES, "fixed")
FEW, MANY = 5, 12
"""Sets from which on the claim is judged, and from which on it may be called refuted."""
DESIGN = (
    f"On the training part of each of {OUTER} folds of the shared sets of at most 10,000 features, M and C are chosen "
    "by one standard error, with the supports of SVM-RFE and with those of forward selection (as in the study "
    "`exactness`, so that the choice does not depend on what can be proven); then FSP-M with the hinge and a free "
    f"intercept is solved at that place, and at M = {FIXED[0]}, C = {FIXED[1]:g} for comparison. Proven: a gap of "
    f"{GAP:g} within {MINUTE:g} CPU seconds on one thread (the run is cut off after {WALL:g} seconds of wall time)."
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
        place = FIXED if way == "fixed" else chosen(way, train)
        if place is None or place[0] > train.n_features:
            continue
        if place not in known:
            known[place] = _solved(train, *place)
        rows.append({"method": way, "p": train.n_features, "M": place[0], "C": place[1], **known[place]})
    return rows


def _solved(train: Instance, M: int, C: float) -> Row:
    began = cpu_clock()
    result = solved(Problem(train, M=M, C=C), "branch", gap=GAP, time_limit=WALL)
    spent = cpu_clock() - began
    proven = result.status.name == "OPTIMAL" and spent <= MINUTE
    if result.status.name != "OPTIMAL" and spent < MINUTE:
        raise NumericalError(f"other work left the run {spent:.0f} CPU seconds of {MINUTE:g} before the wall limit")
    return {"proven": proven, "gap": result.gap, "nodes": result.counters.get("nodes"), "seconds": spent}


def report(rows: Sequence[Row]) -> list[Block]:
    """Shares by set."""
    lines = []
    for (data,), some in grouped(rows, "data").items():
        cells = [str(data), str(some[0]["p"])]
        for way in METHODS:
            mine = [row for row in some if row["method"] == way]
            sizes = sorted({row["M"] for row in mine})
            cells += [_share(mine), ", ".join(map(str, sizes)), shown(max(values(mine, "gap"), default=None), "{:.1e}")]
            cells.append(shown(max(values(mine, "seconds"), default=None), "{:.1f}"))
        lines.append(cells)
    total = ["all", ""]
    bars = []
    for way in METHODS:
        mine = [row for row in rows if row["method"] == way]
        total += [_share(mine), "", "", ""]
        share = sum(row["proven"] for row in mine) / len(mine) if mine else None
        bars.append(Bar(f"M and C by {way}" if way != "fixed" else "M = 5, C = 1", share, percent(share, 0)))
    head = ["data", "p"]
    for way in METHODS:
        head += [f"{way}: proven", "M", "largest gap", "most CPU s"]
    title = "Folds whose problem is proven within a minute"
    return [Heading("Shares"), Table(head, [*lines, total], title), Bars("Share of folds proven in a minute", bars)]


def _share(rows: Sequence[Row]) -> str:
    return f"{sum(row['proven'] for row in rows)} of {len(rows)}" if rows else DASH


def claims(rows: Sequence[Row]) -> list[Claim]:
    """That the exact method is too slow where M is chosen by validation."""
    sets_ = len(grouped(rows, "data"))
    if sets_ < FEW:
        return []
    sizes = [row["p"] for row in rows]
    mine = [row for row in rows if row["method"] == "rfe"]
    fixed = [row for row in rows if row["method"] == "fixed"]
    share, other = (sum(row["proven"] for row in some) / max(1, len(some)) for some in (mine, fixed))
    measured = (
        f"{percent(share, 0)} of {len(mine)} (set, fold) at the M and C that one standard error chooses are proven in "
        f"a minute, of {sets_} sets with {min(sizes)} to {max(sizes)} features; at M = 5, C = 1 {percent(other, 0)}"
    )
    said = "The exact problem is computationally expensive in general, relaxations are needed (Tan 2010, section 2)"
    verdict = "refuted" if share > 0.8 and sets_ >= MANY else "refined" if share > 0.3 else "confirmed"
    return [Claim(said, verdict, measured)]


STUDY = Study("provable", "Provable where it matters", "ours", DESIGN, units, measure, report, claims)
