"""What runs say that is decided of single features, against all selections of S by Clarabel, and both checkers.

    python -m tests.known_features --count 300 --seed 1 [--forged 2]
    python -m tests.known_features --case 17

A case is one of `tests.kinds` (groups, signs, boxes, rows, penalties, forced atoms, weights, a loss), or of
`tests.over_weights` (rows over the weights, scaled columns). It is solved three times: by `branch` until it is closed,
by `branch` with few nodes, and by `gbd` or `kelley` with few cuts. Of each result and several gaps no selection within
the limit may lack what is called in every one, or have what is called in none. Where a closed run has a unique optimum,
nothing is open at a gap of 0. Both checkers, of which
the second was written from the page alone, accept all of it, so that nothing is called open that the leaves decide.
Forged ones (a name that stands in another list) are to be refused by both, but those that are called open by the first
alone: an exact checker sees what rounding leaves open.
"""

from __future__ import annotations

import argparse
import copy
import itertools
import json
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import mipfs
from mipfs.check.decided import decide_atoms
from tests import kinds, over_weights
from tests.two_checkers import data_of, remembered, verdicts, written

GAPS = 0.0, 0.01, 0.1
CLOSED = 1e-8
"""What closed runs are asked for: nothing is open at 0 where the leaves reach all but this of the optimum."""
AGREE, APART = 3e-6, 1e-4
"""How far a value of Clarabel may be off, and how far above a unique optimum the others are; relative."""
ROUNDED = -1e-7
"""What rounding may leave undecided: the share of a limit that may be missing."""
WORDS = "every", "none", "open"


def values(one: kinds.Case, value: Callable[[frozenset[int]], float], limit: float) -> dict[frozenset[int], float]:
    """All selections of S whose value may be within a gap of the best, by a reference, with their values.

    Unless atoms cost something a selection is worth no less than one that has more: those are looked at first.
    """
    count = len(one.columns)
    known, best = dict[frozenset[int], float](), np.inf
    is_monotone = "penalties" not in one.kinds
    for size in range(min(one.problem.M, count), -1, -1):
        for chosen in map(frozenset, itertools.combinations(range(count), size)):
            above = [chosen | {j} for j in range(count) if j not in chosen and size < min(one.problem.M, count)]
            if is_monotone and any(known[wide] > best + limit * abs(best) for wide in above):
                known[chosen] = np.inf
                continue
            known[chosen] = value(chosen)
            if _is_allowed(one, chosen):
                best = min(best, known[chosen])
    return {chosen: v for chosen, v in known.items() if _is_allowed(one, chosen)}


def _is_allowed(one: kinds.Case, chosen: frozenset[int]) -> bool:
    A, low, high = one.rows
    total = A[:, sorted(chosen)].sum(axis=1)
    inside = one.forced[0] <= chosen and not one.forced[1] & chosen
    return bool(inside and np.all(total <= high + 1e-9) and np.all(total >= low - 1e-9))


def faults(seed: int, counts: Counter[str], forge: int) -> list[str]:
    """What is wrong with what is decided in a case; nothing."""
    with remembered():
        if seed % 4:
            one = kinds.case(seed)
            value = one.value
        else:
            over = over_weights.case(seed)
            one, value = over.one, over.value
    r = np.random.default_rng([63, seed])
    within = values(one, value, GAPS[-1])
    wrong = list[str]()
    few = int(r.choice([1, 1, 2, 4]))
    other = "gbd" if seed % 3 else "kelley"
    runs: tuple[tuple[str, dict[str, Any]], ...] = (
        ("branch", {"gap": CLOSED}),
        ("branch", {"iteration_limit": few}),
        (other, {"iteration_limit": 2 * few}),
    )
    for driver, more in runs:
        try:
            result = mipfs.solve(one.problem, driver, time_limit=60.0, **more)
        except mipfs.UsageError:  # neither gbd nor kelley carries every kind
            counts[f"refused by {driver}"] += 1
            continue
        what = f"{driver} {result.status.name}"
        counts[what] += 1
        wrong += [f"{what}: {said}" for said in of_result(one, result, within, counts, more.get("gap"))]
        wrong += [f"{what}: {said}" for said in checked(one, result, counts, forge, r)]
    return wrong


def of_result(
    one: kinds.Case, result: Any, within: dict[frozenset[int], float], counts: Counter[str], asked: float | None
) -> list[str]:
    """What enumeration says against a result."""
    if result.decided is None:
        return ["nothing is decided"] if result.has_classifier else []
    wrong = list[str]()
    names = list(one.problem.atoms.names)
    selected = frozenset(one.problem.atoms_of(result.selected).tolist())
    best = min(within.values())
    for gap in GAPS:
        found = result.decided_within(gap)
        every, none, rest = (frozenset(names.index(name) for name in getattr(found, word)) for word in WORDS)
        counts.update({f"every {gap:g}": len(every), f"none {gap:g}": len(none), f"open {gap:g}": len(rest)})
        limit = result.objective + (gap - AGREE) * abs(result.objective)
        allowed = [chosen for chosen, v in within.items() if v <= limit] + [selected]
        wrong += [f"{gap:g}: {sorted(every - s)} not in {sorted(s)}" for s in allowed if not every <= s]
        wrong += [f"{gap:g}: {sorted(none & s)} in {sorted(s)}" for s in allowed if none & s]
        if len(every) + len(none) + len(rest) != len(names):
            wrong.append(f"{gap:g}: not every feature once")
        is_unique = sum(v <= best + APART * abs(best) for v in within.values()) == 1
        if gap == 0.0 and asked is not None and result.status is mipfs.Status.OPTIMAL and is_unique:
            counts["unique"] += 1
            wrong += [f"{sorted(rest)} open beside a unique optimum"] if rest else []
    return wrong


def checked(one: kinds.Case, result: Any, counts: Counter[str], forge: int, r: np.random.Generator) -> list[str]:
    """What the checkers say against a result, or for a forged one."""
    found = written(result)
    if found is None or result.decided is None:
        return []
    document, arrays = json.loads(found[0]), found[1]
    data, known = one.problem.data, data_of(one.problem.data)
    told = verdicts(document, arrays, data, known)
    wrong = [f"checkers: {told}"] if told[:2] != ("accepted", "accepted") else []
    for _ in range(forge):
        lie = copy.deepcopy(document)
        name = forged(lie, r)
        if not name:
            continue
        counts["forged"] += 1
        told = verdicts(lie, arrays, data, known)
        to_open = " to open " in name  # which an exact checker believes
        right = told[0] == "rejected" if to_open else told[:2] == ("rejected", "rejected")
        if not right and lie["decided"] != _rounded(document, arrays, data, lie):
            wrong.append(f"forged {name}: {told}")
    return wrong


def _rounded(document: Any, arrays: Any, data: Any, lie: Any) -> Any:
    """A lie where the leaves decide so at a limit that is smaller by what rounding may be."""
    found = [decide_atoms(document, arrays, data, [entry["gap"]], ROUNDED)[0] for entry in document["decided"]]
    for one, entry in zip(found, lie["decided"], strict=True):
        every, none = ({one.names[j] for j in part.tolist()} for part in (one.every, one.none))
        if not ({*entry["every"]} <= every and {*entry["none"]} <= none):
            return None
    return lie["decided"]


def forged(lie: Any, r: np.random.Generator) -> str:
    """Move a name from its list to another one; what was done."""
    entry = lie["decided"][int(r.integers(len(lie["decided"])))]
    there = [word for word in WORDS if entry[word]]
    word = there[int(r.integers(len(there)))]
    to = [one for one in WORDS if one != word][int(r.integers(2))]
    name = entry[word].pop(int(r.integers(len(entry[word]))))
    entry[to].append(name)
    return f"{name} from {word} to {to} within {entry['gap']:g}"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the campaign; 1 where something was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.known_features", description=__doc__)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case", type=int)
    parser.add_argument("--forged", type=int, default=1, help="forged ones of every result")
    asked = parser.parse_args(argv)
    seeds = range(asked.seed, asked.seed + asked.count) if asked.case is None else [asked.case]
    failed, counts = 0, Counter[str]()
    for seed in seeds:
        wrong = faults(seed, counts, asked.forged)
        failed += bool(wrong)
        if wrong:
            print(f"{seed}: {'; '.join(wrong)}", flush=True)
        if (seed + 1) % 10 == 0:
            print(f"seeds {seeds[0]} to {seed}: {failed} wrong, {counts['forged']} forged", flush=True)
    print(f"{len(seeds)} problems, {failed} wrong; " + ", ".join(f"{name} {n}" for name, n in sorted(counts.items())))
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
