"""When the planted features are found: exact supports and FGM's over sample size, C and noise in the labels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mipfs.data.instance import Instance
from mipfs.lab.baselines.rfe import eliminate
from mipfs.lab.experiments.fits import solve_by
from mipfs.lab.experiments.study import PaperClaim, Row, Study, Unit
from mipfs.lab.experiments.tables import Heading, across, average_pairs, curves, group_rows, mean, of, percent, tabulate
from mipfs.lab.experiments.verdicts import higher, judge_claim
from mipfs.plumbing.arrays import Integers
from mipfs.plumbing.clock import cpu_clock
from mipfs.problem import Problem
from mipfs.report.blocks import HeatMap, ReportBlock

P, M = 60, 6
SAMPLES = (30, 45, 60, 90, 120, 180, 240, 360, 500)
GRID = (0.01, 0.1, 1.0, 10.0)
NOISE = (0.0, 0.1)
CORRELATION = 0.5
NODES, SEEDS = 3000, range(10)
METHODS = ("exact", "fgm", "rfe")
DESIGN = (
    f"Rows are Gaussian with correlation {CORRELATION}^|i − j| between p = {P} columns; y is the sign of the sum of "
    f"M = {M} columns, ten apart, with signs in turn, and is turned around with probability 0 or 0.1. n is from "
    f"{SAMPLES[0]} to {SAMPLES[-1]}, C of four values, ten draws each. A method recovers the planted features where it "
    f"selects these {M} and no others. `exact` is FSP-M with the hinge and a free intercept (at most {NODES} nodes), "
    "`fgm` the relaxation with the squared hinge, rounded, `rfe` drops one feature at a time. M is known to all."
)


def units() -> list[Unit]:
    """Draw by draw."""
    return [
        Unit({"flips": flips, "n": n, "seed": seed}, quick=seed == 0 and n in (60, 240))
        for seed in SEEDS
        for flips in NOISE
        for n in SAMPLES
    ]


def draw_planted(n: int, flips: float, seed: int) -> tuple[Instance, Integers]:
    """Data and the planted positions; smaller n are the first rows of larger ones."""
    random = np.random.default_rng([seed, 17])
    noise = random.standard_normal((SAMPLES[-1], P))
    X = np.empty_like(noise)
    X[:, 0] = noise[:, 0]
    for j in range(1, P):
        X[:, j] = CORRELATION * X[:, j - 1] + np.sqrt(1.0 - CORRELATION**2) * noise[:, j]
    planted = np.arange(M) * (P // M) + P // M // 2
    y = np.sign(X[:, planted] @ np.where(np.arange(M) % 2 == 0, 1.0, -1.0))
    y = np.where(random.random(SAMPLES[-1]) < flips, -y, y)
    return Instance.from_arrays(np.asfortranarray(X[:n]), y[:n]), planted


def measure(unit: Unit) -> list[Row]:
    """Every method at every C."""
    data, planted = draw_planted(unit.params["n"], unit.params["flips"], unit.params["seed"])
    rows: list[Row] = []
    for C in GRID:
        for method in METHODS:
            began = cpu_clock()
            facts: Row = {"proven": None}
            if method == "rfe":
                ids = eliminate(data, [M], C, drop=0)[M]
            elif method == "fgm":
                result = solve_by(Problem(data, loss="squared-hinge", M=M, C=C), "kelley", gap=1e-3)
                ids = data.columns_of(result.selected)
            else:
                result = solve_by(Problem(data, M=M, C=C), "branch", iteration_limit=NODES)
                ids = data.columns_of(result.selected)
                facts = {"proven": result.status.name == "OPTIMAL"}
            hits = int(np.isin(planted, ids).sum())
            row = {"method": method, "C": C, "hits": hits, "recovered": hits == M and len(ids) == M}
            rows.append({**row, **facts, "seconds": cpu_clock() - began})
    return rows


def report(rows: Sequence[Row]) -> list[ReportBlock]:
    """The picture, and the numbers."""
    blocks: list[ReportBlock] = []
    for flips in NOISE:
        some = of(rows, flips=flips)
        if not some:
            continue
        said = "no noise in the labels" if flips == 0.0 else f"{flips:.0%} of the labels turned around"
        blocks.append(Heading(said[0].upper() + said[1:]))
        for method in METHODS[:2]:
            mine = of(some, method=method)
            blocks.append(_phase_diagram(mine, f"Support recovery by {method}, {said}"))
        title = f"Recovery at the best C for each n, {said}"
        best = [row for row in some if row["C"] == _best_C(some, row["method"], row["n"])]
        blocks.append(curves(title, best, "n", "recovered", labels=("n", "share of draws"), spread=False, is_log=True))
        blocks.append(_numbers_block(some))
    return blocks


def _best_C(rows: Sequence[Row], method: str, n: int) -> float:
    """The C at which a method recovers most often at an n."""
    at = group_rows([row for row in rows if row["method"] == method and row["n"] == n], "C")
    return float(max(at, key=lambda key: mean(at[key], "recovered"))[0])


def _phase_diagram(rows: Sequence[Row], title: str) -> ReportBlock:
    cells = [[_zero_if_nan(mean(of(rows, C=C, n=n), "recovered")) for n in SAMPLES] for C in reversed(GRID)]
    names = [f"C = {C:g}" for C in reversed(GRID)]
    note = "The darker, the larger the share of draws in which exactly the planted features are selected."
    return HeatMap(title, names, [str(n) for n in SAMPLES], cells, x_label="n", words=("never", "some"), note=note)


def _zero_if_nan(value: float) -> float:
    return 0.0 if np.isnan(value) else value


def _numbers_block(rows: Sequence[Row]) -> ReportBlock:
    groups = sorted(group_rows(rows, "method", "C").items(), key=lambda item: (METHODS.index(item[0][0]), item[0][1]))
    columns = [
        *across("n", SAMPLES, lambda mine: percent(mean(mine, "recovered"), 0), "n = {}"),
        ("proven", lambda some: percent(mean(some, "proven"), 0)),
    ]
    title = "Share of draws in which exactly the planted features are selected"
    return tabulate(groups, ["method", "C"], columns, title)


def claims(rows: Sequence[Row]) -> list[PaperClaim]:
    """Whether exactness helps recovery: draw by draw, over n, C and noise, since smaller n are part of larger ones."""
    if len(group_rows(rows, "flips", "n", "seed")) < len(SAMPLES) * len(NOISE) * 3:
        return []
    key = ("flips", "n", "seed", "C")
    parts = []
    for other, name in (("fgm", "FGM"), ("rfe", "RFE")):
        words = f"share of the n, C and levels of noise at which exact finds them, less {name}'s, by draw"
        parts.append(higher(words, average_pairs(rows, "exact", other, "recovered", key, ("seed",))))
    share = {m: percent(mean(of(rows, method=m), "recovered"), 0) for m in METHODS}
    best: dict[str, list[Row]] = {m: [] for m in METHODS}
    for flips in NOISE:
        some = of(rows, flips=flips)
        for m in METHODS:
            best[m] += [row for row in some if row["method"] == m and row["C"] == _best_C(some, m, row["n"])]
    at_best = ", ".join(f"{m} {percent(mean(best[m], 'recovered'), 0)}" for m in METHODS)
    details = (
        f"of all of these {', '.join(f'{m} {share[m]}' for m in METHODS)}; at the best C for each n {at_best} "
        "(the exact objective has the hinge, FGM's the squared hinge)"
    )
    said = "The exact support recovers planted features from fewer samples than FGM's or RFE's (ours)"
    return [judge_claim(said, parts, details)]


STUDY = Study("recovery", "When are the planted features found?", "ours", DESIGN, units, measure, report, claims)
