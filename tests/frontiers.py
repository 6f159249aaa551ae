"""Random frontiers, each point against all selections by Clarabel.

    python -m tests.frontiers --count 100 --seed 1
    python -m tests.frontiers --case 17

A case is a problem of `tests.kinds` with one row more, at most or at least so much of a cost, or the number of
features, or one of `tests.over_weights` with a row of parity. At every value the objective must be that of enumeration,
the bound not above it; objectives must not rise where more is allowed, nor bounds; what a unit bought between two
values must lie between what is stated; the document must not contradict itself, and each point's certificate be
accepted.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

import mipfs
from mipfs.check.paths import check_stated
from mipfs.check.rounding import refusal_reason
from tests import kinds, over_weights
from tests.known_features import values

GAP, AGREE, ABOVE = 1e-6, 3e-6, 1e-6


def faults(seed: int, counts: Counter[str]) -> list[str]:
    """What is wrong with a frontier."""
    kind = ("at most", "at least", "M", "parity")[seed % 4]
    if kind == "parity":
        return of_parity(seed, counts)
    one = kinds.case(seed)
    r = np.random.default_rng([64, seed])
    problem, count = one.problem, len(one.columns)
    known = values(one, one.value, np.inf)
    cost = r.integers(1, 5, count).astype(float)
    if kind == "M":
        name, asked = "M", sorted({*range(min(count, one.problem.M) + 1)})
    else:
        ends = (-np.inf, 0.0) if kind == "at most" else (0.0, np.inf)
        problem = problem.with_rows([cost], *([end] for end in ends))
        name = problem.rows.names[-1]
        totals = sorted({float(sum(cost[j] for j in chosen)) for chosen in known})
        asked = [float(v) for v in r.permutation(totals)[:5]]
    found = mipfs.frontier(problem, name, asked, gap=GAP, time_limit=60.0)
    counts[kind] += 1
    wrong, truth = [], {}
    for point in found.points:
        end = float(point.value)
        fits = {
            "M": lambda s, end=end: len(s) <= end,
            "at most": lambda s, end=end: sum(cost[j] for j in s) <= end + 1e-9,
            "at least": lambda s, end=end: sum(cost[j] for j in s) >= end - 1e-9,
        }[kind]
        best = min((v for chosen, v in known.items() if fits(chosen)), default=np.inf)
        truth[end] = best
        if not np.isfinite(best):
            counts["infeasible"] += 1
            wrong += [] if point.status is mipfs.Status.INFEASIBLE else [f"{end:g}: {point.status.name}"]
            continue
        counts["points"] += 1
        size = abs(best)
        if point.status is not mipfs.Status.OPTIMAL:
            wrong.append(f"{end:g}: {point.status.name}")
        if abs(point.objective - best) > AGREE * size:
            wrong.append(f"{end:g}: {point.objective!r} for {best!r}")
        if point.bound > best + ABOVE * size:
            wrong.append(f"{end:g}: bound {point.bound!r} above {best!r}")
        report = mipfs.verify(point.result, one.problem.data, jobs=1)
        wrong += [] if report.accepted else [f"{end:g}: {report.reason}"]
    return wrong + of_order(found, truth) + of_document(found)


def of_parity(seed: int, counts: Counter[str]) -> list[str]:
    """What is wrong with a frontier over the ends −ε and ε of a row over the weights."""
    over = over_weights.case(seed)
    terms, *_ = over.rows[0]
    problem = over.one.problem.replace(weight_rows=[(terms, -1.0, 1.0), *over.rows[1:]])
    r = np.random.default_rng([65, seed])
    size = sum(map(abs, terms.values())) / len(terms)
    asked = [0.0, *(float(10.0 ** r.uniform(-3, 0)) * size for _ in range(2))]
    found = mipfs.frontier(problem, "parity", asked, gap=GAP, time_limit=60.0)
    counts["parity"] += 1
    wrong, truth = [], {}
    for point in found.points:
        end = float(point.value)
        moved = [one for one in over.rows[1:] if one[1] is not None and one[2] is not None and -one[1] == one[2] > 0.0]
        still = [one for one in over.rows[1:] if one not in moved]
        there = replace(over, rows=[(terms, -end, end), *((a, -end, end) for a, *_ in moved), *still])
        truth[end] = best = min(map(there.value, over.one.allowed()))
        counts["points"] += 1
        if abs(point.objective - best) > AGREE * abs(best):
            wrong.append(f"{end:g}: {point.objective!r} for {best!r} ({point.status.name})")
        if point.bound > best + ABOVE * abs(best):
            wrong.append(f"{end:g}: bound {point.bound!r} above {best!r}")
        counts[f"parity {point.status.name}"] += 1
        report = mipfs.verify(point.result, over.one.problem.data, jobs=1)
        wrong += [] if report.accepted else [f"{end:g}: {report.reason}"]
    return wrong + of_order(found, truth) + of_document(found)


def of_order(found: Any, truth: dict[float, float]) -> list[str]:
    """What is wrong from one value to the next."""
    wrong = []
    ordered = sorted(found.points, key=lambda point: found.row.looser(float(point.value)))
    for tight, loose in itertools.pairwise(ordered):
        if loose.objective > tight.objective + 1e-7 * abs(tight.objective):
            wrong.append(f"the objective rises from {tight.value:g} to {loose.value:g}")
        if loose.bound > tight.bound and tight.status is not mipfs.Status.INFEASIBLE:
            wrong.append(f"the bound rises from {tight.value:g} to {loose.value:g}")
    for one in found.bought:
        fell = truth[one.tight] - truth[one.loose]
        room = ABOVE * (abs(truth[one.loose]) + 1e-300) / abs(one.loose - one.tight)
        exact = fell / abs(one.loose - one.tight)
        if np.isfinite(fell) and not one.least - room <= exact <= one.most + room:
            wrong.append(f"{one}: bought {exact!r}")
    return wrong


def of_document(found: Any) -> list[str]:
    """What the checker says of the document, and of one that claims that more was bought."""
    document = json.loads(found.to_json())
    check_stated(document)
    for k, one in enumerate(document["bought"]):
        if one["least"] is not None:
            lie = json.loads(found.to_json())
            lie["bought"][k]["least"] += 1e-3 * (abs(one["least"]) + found.points[0].objective)
            told = refusal_reason(partial(check_stated, lie))
            return [] if "bought" in told else [f"what a unit bought is believed: {told!r}"]
    return []


def main(argv: Sequence[str] | None = None) -> int:
    """Run the campaign; 1 where something was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.frontiers", description=__doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case", type=int)
    asked = parser.parse_args(argv)
    seeds = range(asked.seed, asked.seed + asked.count) if asked.case is None else [asked.case]
    failed, counts = 0, Counter[str]()
    for seed in seeds:
        wrong = faults(seed, counts)
        failed += bool(wrong)
        if wrong:
            print(f"{seed}: {'; '.join(wrong)}", flush=True)
        if (seed + 1) % 10 == 0:
            print(f"seeds {seeds[0]} to {seed}: {failed} wrong, {counts['points']} points", flush=True)
    print(f"{len(seeds)} frontiers, {failed} wrong; " + ", ".join(f"{name} {n}" for name, n in sorted(counts.items())))
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
