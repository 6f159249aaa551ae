"""The gap that the papers call very hard to measure: relaxations against the proven optimum, over M and C, per set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mipfs.data.instance import Instance
from mipfs.errors import MipfsError
from mipfs.lab.experiments import sets
from mipfs.lab.experiments.fits import solve_by
from mipfs.lab.experiments.study import PaperClaim, Row, Study, Unit
from mipfs.lab.experiments.tables import (
    DASH,
    WHISKERS,
    Heading,
    across,
    average,
    count,
    curves,
    group_rows,
    of,
    out_of,
    percent,
    tabulate,
    values,
)
from mipfs.lab.experiments.verdicts import below, judge_claim
from mipfs.lab.studies.ladder import compare
from mipfs.plumbing.clock import cpu_clock
from mipfs.problem import Problem
from mipfs.report.blocks import ReportBlock

SIZES, GRID = (1, 2, 3, 5, 8, 12), (0.01, 0.1, 1.0, 10.0)
NODES = 5000
RUNGS = ("plain", "big-m", "qcqp-ssvm", "sdp-ssvm", "nmmkl", "boolean")
CONIC_ENTRIES = 4000
"""Entries of the data up to which the conic rungs, of which a program takes seconds, are solved as well."""
EXACT_GAP = 1e-6
MILD = 0.1
"""A gap that counts as mild at most; the paper names none."""
ENOUGH = 5
"""Sets from which on the claim is judged."""
DESIGN = (
    "Of every set, M and C: the value of the relaxations as a share of the optimum of FSP-M with the squared hinge and "
    "no intercept (the problem that FGM relaxes) and of FSP-M with the hinge and a free intercept (Aytug's). The "
    f"optimum is that of branch and bound with at most {NODES} nodes and a gap of {EXACT_GAP:g}; where it is not "
    "proven, the gap is at least what the proven bound leaves below it, which is what is counted. The conic rungs are "
    f"solved on sets of at most {CONIC_ENTRIES:,} entries: elsewhere a theorem orders them (QCQP = SDP ≤ NMMKL = "
    "Boolean, where a cardinality is the only row). The Boolean relaxation 0 ≤ σ ≤ 1 is what FGM solves (its "
    f"convex hull is the same here). The rows of {', '.join(sets.UNIT)} have length one: C of 0.01 and 0.1 leave w "
    "close to 0 there, so that every bound is close to the optimum."
)


def units() -> list[Unit]:
    """Set by set, the small ones first."""
    return [
        Unit({"data": name, "loss": loss, "C": C}, quick=(name, C) == ("heart_statlog", 0.1), needs=name)
        for name in sets.SMALL
        for loss in ("squared-hinge", "hinge")
        for C in GRID
    ]


def measure(unit: Unit) -> list[Row]:
    """Every rung for every M."""
    data = sets.read(unit.params["data"])
    sizes = [M for M in SIZES if data.n_features > M]
    return [row for M in sizes for row in _measure_gaps(data, M, unit.params["C"], unit.params["loss"])]


def _measure_gaps(data: Instance, M: int, C: float, loss: str) -> list[Row]:
    problem = Problem(data, loss=loss, bias=loss == "hinge", M=M, C=C)
    began = cpu_clock()
    result = solve_by(problem, "branch", iteration_limit=NODES, gap=EXACT_GAP)
    best, bound = result.objective, max(result.bound, 0.0)
    proven = result.status.name == "OPTIMAL"
    shared: Row = {"n": data.n_samples, "p": data.n_features, "M": M, "proven": proven}
    spent = cpu_clock() - began
    values = {"value": bound, "best": best, "gap": _relative_gap(best, bound), "seconds": spent}
    rows: list[Row] = [{**shared, "rung": "exact", **values}]
    rungs = RUNGS if data.n_samples * data.n_features <= CONIC_ENTRIES else ("boolean",)
    for name in rungs:
        began = cpu_clock()
        try:
            rung = compare(problem, rungs=(name,), time_limit=None).ladder[0]
        except MipfsError:
            continue
        if not rung.is_bound or rung.value is None or not np.isfinite(rung.value):
            continue
        spent = cpu_clock() - began
        value = max(0.0, float(rung.value))
        gap = max(0.0, (min(best, bound) - value) / best) if best > 0 and not proven else _relative_gap(best, value)
        rows.append({**shared, "rung": name, "value": value, "best": best, "gap": gap, "seconds": spent})
    return rows


def _relative_gap(best: float, bound: float) -> float:
    return max(0.0, (best - bound) / best) if best > 0 else 0.0


def report(rows: Sequence[Row]) -> list[ReportBlock]:
    """The gap of the Boolean relaxation by set, and of all rungs."""
    blocks: list[ReportBlock] = []
    for loss, whose in (("squared-hinge", "FGM's problem"), ("hinge", "Aytug's problem")):
        some = of(rows, loss=loss)
        boolean = of(some, rung="boolean")
        if not boolean:
            continue
        blocks += [Heading(f"{loss}: {whose}"), _rungs_block(some), _by_set(some)]
        drawn = [{**row, "C": f"C = {row['C']:g}", "gap": 100 * row["gap"]} for row in boolean]
        note = f"Mean over sets; where an optimum is not proven, the least that its gap can be. {WHISKERS}"
        blocks.append(curves(gap_title(loss), drawn, "M", "gap", "C", labels=("M", "gap in %"), note=note))
    return blocks


def gap_title(loss: str) -> str:
    """Of the chart of a loss."""
    return f"Gap of the Boolean relaxation, {loss}"


def _rungs_block(rows: Sequence[Row]) -> ReportBlock:
    groups = [((name,), mine) for name in (*RUNGS, "exact") if (mine := of(rows, rung=name))]
    columns = [
        count("cells"),
        ("proven", lambda mine: str(len(of(mine, proven=True)))),
        *(
            (head, _of_gaps(of_all))
            for head, of_all in (("median gap", np.median), ("mean", np.mean), ("largest", np.max))
        ),
        ("below 1%", lambda mine: f"{sum(gap < 0.01 for gap in values(mine, 'gap'))} of {len(values(mine, 'gap'))}"),
        average("mean CPU s", "seconds", "{:.2f}"),
    ]
    title = "Gap of the bounds to the optimum (unproven: at least), over all sets, M and C"
    return tabulate(groups, ["rung"], columns, title)


def _of_gaps(of_all: Callable[[list[float]], Any]) -> Callable[[Sequence[Row]], str]:
    return lambda rows: percent(float(of_all(values(rows, "gap"))), 1)


def _by_set(rows: Sequence[Row]) -> ReportBlock:
    columns = [
        ("n × p", lambda some: f"{some[0]['n']} × {some[0]['p']}"),
        ("proven", lambda some: out_of(of(some, rung="exact"))),
        *across("C", GRID, _range_of_gaps, "C = {:g}"),
    ]
    title = "Boolean relaxation: least and largest gap over M"
    return tabulate(group_rows(rows, "data").items(), ["data"], columns, title, left=2)


def _range_of_gaps(rows: Sequence[Row]) -> str:
    gaps = values(of(rows, rung="boolean"), "gap")
    return f"{percent(min(gaps), 1)} to {percent(max(gaps), 1)}" if gaps else DASH


def claims(rows: Sequence[Row]) -> list[PaperClaim]:
    """That the relaxation is mild, by set."""
    boolean = of(rows, rung="boolean")
    some = of(boolean, loss="squared-hinge")
    if len(group_rows(some, "data")) < ENOUGH:
        return []
    gaps = values(some, "gap")
    medians = [float(np.median(values(mine, "gap"))) for mine in group_rows(some, "data").values()]
    hinge = values(of(boolean, loss="hinge"), "gap")
    small = percent(float(np.mean([gap < 0.01 for gap in gaps])), 0)
    closed = {(row["data"], row["M"], row["C"]) for row in of(rows, rung="exact", loss="squared-hinge", proven=True)}
    known = [row for row in some if (row["data"], row["M"], row["C"]) in closed]
    alone = [float(np.median(values(mine, "gap"))) for mine in group_rows(known, "data").values()]
    words = f"{len(some) - len(known)} of {len(some)} cells are not proven and have the least that their gap can be"
    parts = [
        below(f"median gap of a set over M and C ({words})", medians, MILD, "{:.1%}"),
        below("over proven cells alone", alone, MILD, "{:.1%}"),
    ]
    details = (
        f"{len(gaps)} cells: median gap {percent(float(np.median(gaps)), 1)}, largest {percent(max(gaps), 1)}, below "
        f"1% in {small} of them; with the hinge and an intercept median {percent(float(np.median(hinge)), 1)}"
    )
    said = (
        "The convex relaxation of the 0-1 problem is mild (Tan 2010, section 2.1); its gap is very hard to measure "
        "(Tan 2014, Remark 1)"
    )
    return [judge_claim(said, parts, details, gap_title("squared-hinge"))]


STUDY = Study(
    "gap",
    "The gap of the relaxations, measured",
    "ours; the ladder of relaxations of Tan 2010 and 2014",
    DESIGN,
    units,
    measure,
    report,
    claims,
)
