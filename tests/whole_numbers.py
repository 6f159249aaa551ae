"""Rows over σ and whole variables that often no whole numbers satisfy: answers and proofs against other arithmetic.

    python -m tests.whole_numbers --systems 500 --forged 500

A system has one to three rows, equations and inequalities, with common divisors among their coefficients, decimals, and
at times a real variable with two ends. Beside every selection it is decided without the package: over bounded whole
variables by enumeration, over unbounded ones by the divisors of minors (Heger 1858). Then the answer of a driver is the
least of the allowed selections, or INFEASIBLE, and both checkers accept its certificate.

A forged document claims INFEASIBLE of a system that has a selection, by a combination of rows: one that shows it of
another system, or a random one. Both checkers refuse it.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from scipy import sparse

import mipfs
from mipfs.data.instance import Instance
from mipfs.problem import Problem
from mipfs.selection.rows import Extras, Rows
from tests.certificate.attack import judge
from tests.certificate.trees import no_incumbent
from tests.two_checkers import arrays_of, data_of, remembered, second

Rng = np.random.Generator
P = 4
"""Features."""
END = 6
"""Of bounded whole variables, of both signs."""
DELTA = Fraction(1, 2**40)
LEARNT = 20
"""Proofs that a forger takes from."""
SLACK = 1e-5
"""Relative: how far an objective may be above the least value, which a run with another gap has found."""


@dataclass(frozen=True)
class System:
    """lb ≤ A (σ, z) + b x ≤ ub over whole z and one real x, which is in the row `real` alone, and Σσ ≤ M.

    Attributes
    ----------
    A : rows over σ and z, rational
    ends : pairs of ends, None where there is none
    is_bounded : whether −END ≤ z ≤ END, or any whole numbers
    real : (row, coefficient, lower, upper) of x, or None
    """

    A: tuple[tuple[Fraction, ...], ...]
    ends: tuple[tuple[Fraction | None, Fraction | None], ...]
    is_bounded: bool
    M: int
    real: tuple[int, Fraction, Fraction, Fraction] | None = None

    @property
    def count(self) -> int:
        """Whole variables."""
        return len(self.A[0]) - P

    def allowed(self) -> set[tuple[int, ...]] | None:
        """The selections that some values satisfy, exactly; None where the method that is known does not say."""
        found = set()
        for bits in itertools.product((0, 1), repeat=P):
            if sum(bits) <= self.M:
                is_allowed = self._is_allowed(bits)
                if is_allowed is None:
                    return None
                found |= {bits} if is_allowed else set()
        return found

    def _is_allowed(self, bits: Sequence[int]) -> bool | None:
        ends = []
        for r, (row, (low, high)) in enumerate(zip(self.A, self.ends, strict=True)):
            a, part = max(map(abs, row)), sum((v for v, bit in zip(row, bits, strict=False) if bit), Fraction(0))
            least = None if low is None else low - DELTA * (a + abs(low)) - part
            most = None if high is None else high + DELTA * (a + abs(high)) - part
            if self.real is not None and self.real[0] == r:
                terms = sorted(self.real[1] * end for end in self.real[2:])
                least, most = (None if least is None else least - terms[1]), (None if most is None else most - terms[0])
            ends.append((least, most))
        if self.is_bounded:
            return self._enumerated(ends)
        return self._by_minors(ends)

    def _enumerated(self, ends: Sequence[tuple[Fraction | None, Fraction | None]]) -> bool:
        """Over a box: the last variable lies between what the others leave of it."""
        for z in itertools.product(range(-END, END + 1), repeat=self.count - 1):
            first, last = Fraction(-END), Fraction(END)
            for row, (low, high) in zip(self.A, ends, strict=True):
                known = sum((a * v for a, v in zip(row[P:-1], z, strict=True)), Fraction(0))
                a = row[-1]
                sides = [None if low is None else low - known, None if high is None else high - known]
                if a == 0:
                    if (sides[0] is not None and sides[0] > 0) or (sides[1] is not None and sides[1] < 0):
                        first = last + 1
                    continue
                sides = [None if side is None else side / a for side in (sides if a > 0 else sides[::-1])]
                first = first if sides[0] is None else max(first, sides[0])
                last = last if sides[1] is None else min(last, sides[1])
            if math.ceil(first) <= math.floor(last):
                return True
        return False

    def _by_minors(self, ends: Sequence[tuple[Fraction | None, Fraction | None]]) -> bool | None:
        """Over all whole numbers: whether the divisors of the minors of A are those of A with the right side.

        Every row in whole numbers must lie between ends that leave it one of them, or a few, which are tried.
        """
        rows, choices = [], []
        for row, (low, high) in zip(self.A, ends, strict=True):
            unit = math.lcm(*(v.denominator for v in row))
            if low is None or high is None or unit > 10:
                return None
            first, last = math.ceil(low * unit), math.floor(high * unit)
            if last - first > 60:
                return None
            rows.append([int(v * unit) for v in row[P:]])
            choices.append(range(first, last + 1))
        if math.prod(map(len, choices)) > 400:
            return None
        return any(has_solution(rows, right) for right in itertools.product(*choices))

    def problem(self) -> Problem:
        """The problem over the fixed data."""
        e = self.count + (self.real is not None)
        A = np.zeros((len(self.A), P + e))
        for r, row in enumerate(self.A):
            A[r, : len(row)] = [float(v) for v in row]
        low, high, kinds = [-np.inf] * self.count, [np.inf] * self.count, [True] * self.count
        if self.is_bounded:
            low, high = [-END] * self.count, [END] * self.count
        if self.real is not None:
            A[self.real[0], -1] = float(self.real[1])
            low, high, kinds = [*low, float(self.real[2])], [*high, float(self.real[3])], [*kinds, False]
        lb = [-np.inf if one is None else float(one) for one, _ in self.ends]
        ub = [np.inf if one is None else float(one) for _, one in self.ends]
        names = tuple(f"r{r}" for r in range(len(self.A)))
        extra = Extras(tuple(f"z{k}" for k in range(e)), np.array(low), np.array(high), np.array(kinds))
        rows = Rows(sparse.csr_array(A), np.array(lb), np.array(ub), names, ("",) * len(names), extra)
        return Problem(data(), M=self.M, C=1.0, rows=rows)


def has_solution(A: Sequence[Sequence[int]], b: Sequence[int]) -> bool:
    """Whether A z = b has a solution in whole numbers: same rank, and the largest minors have one divisor."""
    wide = [[*row, right] for row, right in zip(A, b, strict=True)]
    for size in range(len(A), -1, -1):
        of_wide = divisor_of_minors(wide, size)
        if of_wide:
            return divisor_of_minors(A, size) == of_wide
    raise AssertionError


def divisor_of_minors(A: Sequence[Sequence[int]], size: int) -> int:
    """The greatest common divisor of the minors of a size; 1 for those of size 0."""
    found = 0
    for rows in itertools.combinations(range(len(A)), size):
        for columns in itertools.combinations(range(len(A[0])), size):
            found = math.gcd(found, determinant([[A[r][c] for c in columns] for r in rows]))
    return found


def determinant(A: Sequence[Sequence[int]]) -> int:
    """By the first row."""
    if not A:
        return 1
    below = [[[*row[:c], *row[c + 1 :]] for row in A[1:]] for c in range(len(A))]
    return sum((-1) ** c * A[0][c] * determinant(below[c]) for c in range(len(A)))


@cache
def data() -> Instance:
    """The data of all systems."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(24, P))
    y = np.where(X @ [1.0, 0.7, -0.4, 0.2] + 0.5 * rng.normal(size=24) > 0, 1.0, -1.0)
    with remembered():
        return Instance.from_arrays(X, y)


@cache
def value(bits: tuple[int, ...]) -> float:
    """What a selection is worth."""
    names = [f"x{j + 1}" for j in range(P)]
    inside, outside = ([name for name, bit in zip(names, bits, strict=True) if bit == one] for one in (1, 0))
    return mipfs.solve(Problem(data(), C=1.0, forced_in=inside, forced_out=outside), gap=1e-7).objective


def system_of(rng: Rng) -> System:
    """A random system."""
    count, r = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    is_bounded = bool(rng.random() < 0.4)
    A, ends = [], []
    for _ in range(r):
        unit = Fraction(1, int(rng.choice([1, 1, 1, 10])))
        g = int(rng.choice([1, 2, 2, 3, 4, 6, 7]))
        sigma = [unit * int(v) for v in rng.integers(-3, 4, P) * rng.integers(0, 2, P) * rng.choice([1, 1, g])]
        z = [unit * g * int(v) for v in rng.integers(-9, 10, count)]
        if not any(z):
            z[0] = unit * g
        end = unit * int(rng.integers(-30, 31))
        width = unit * int(rng.choice([0, 0, 0, 1, 2]))
        pair: tuple[Fraction | None, Fraction | None] = (end, end + width)
        if is_bounded and rng.random() < 0.3:
            pair = (pair[0], None) if rng.random() < 0.5 else (None, pair[1])
        A.append(tuple(sigma + z))
        ends.append(pair)
    real = None
    if rng.random() < 0.25:
        low = Fraction(int(rng.integers(-4, 4)), 8)
        real = int(rng.integers(r)), Fraction(int(rng.integers(1, 4))), low, low + Fraction(int(rng.integers(0, 3)), 8)
    return System(tuple(A), tuple(ends), is_bounded, int(rng.integers(1, P + 1)), real)


def systems(seed: int) -> Iterator[tuple[System, set[tuple[int, ...]]]]:
    """Random systems with the selections that they allow: some of every second one, none of the others."""
    rng, is_wanted = np.random.default_rng(seed), True
    while True:
        system = system_of(rng)
        allowed = system.allowed()
        if allowed is not None and bool(allowed) == is_wanted:
            is_wanted = not is_wanted
            yield system, allowed


def verdicts(document: Any, arrays: Any) -> tuple[bool, bool, str]:
    """Whether the checkers accept, and what they say."""
    report = judge(document, dict(arrays), data())
    try:
        word, why = second().guarded(document, arrays_of(arrays), data_of(data()))
    except second().Rejected as error:
        word, why = "rejected", str(error)
    return report.accepted, word == "accepted", f"first: {report.reason!r}; second: {why!r}"


def judged(system: System, allowed: set[tuple[int, ...]], driver: str, counts: Counter[str]) -> str:
    """What is wrong with the answer of a driver; "" when nothing is."""
    result = mipfs.solve(system.problem(), driver, time_limit=20.0)
    status = result.status.name
    counts[status] += 1
    if status in ("NO_SOLUTION", "NUMERICAL"):
        return ""
    if (status == "INFEASIBLE") != (not allowed):
        return f"{status}, but allowed are {sorted(allowed)}"
    if allowed:
        best = min(map(value, allowed))
        bits = tuple(int(f"x{j + 1}" in result.selected) for j in range(P))
        if bits not in allowed:
            return f"{bits} is not allowed"
        if status == "OPTIMAL" and abs(result.objective - best) > SLACK * best + 1e-4 * best:
            return f"OPTIMAL {result.objective}, not {best}"
        if result.bound > best * (1.0 + SLACK):
            return f"the bound {result.bound} lies above {best}"
    if result.claim is None:
        return "no certificate"
    document = json.loads(result.to_json()) | {"certificate": result.claim.entry()}
    arrays = result.claim.arrays()
    counts["with a leaf without whole numbers"] += "integer_start" in arrays
    first, other, why = verdicts(document, arrays)
    return "" if first and other else why


# --- forged --------------------------------------------------------------------------------------------------


@dataclass
class Forger:
    """Claims INFEASIBLE of systems that have a selection.

    Attributes
    ----------
    shown : combinations of rows that show it of other systems, with the numbers of their rows and variables
    """

    rng: Rng
    shown: list[tuple[System, dict[str, Any], dict[str, Any]]] = field(default_factory=list)

    def learn(self, system: System) -> None:
        """Take in the proof of a system that is infeasible."""
        result = mipfs.solve(system.problem(), "branch", time_limit=20.0)
        if result.status.name != "INFEASIBLE" or result.claim is None:
            return
        arrays = result.claim.arrays()
        if "integer_start" in arrays:
            document = json.loads(result.to_json()) | {"certificate": result.claim.entry()}
            self.shown.append((system, document, arrays))

    def near(self) -> tuple[System, dict[str, Any]] | None:
        """A system next to one that is infeasible, which has a selection, and the proof of the other one."""
        system, _, arrays = self.shown[int(self.rng.integers(len(self.shown)))]
        A, ends = [list(row) for row in system.A], list(system.ends)
        r = int(self.rng.integers(len(A)))
        unit = Fraction(1, math.lcm(*(v.denominator for v in A[r])))
        kind = int(self.rng.integers(5))
        low, high = ends[r]
        if kind == 0:
            step = unit * int(self.rng.integers(-8, 9))
            ends[r] = (None if low is None else low + step, None if high is None else high + step)
        elif kind == 1 and low is not None and high is not None:
            ends[r] = low - unit * int(self.rng.integers(4)), high + unit * int(self.rng.integers(4))
        elif kind == 2:
            A[r][int(self.rng.integers(len(A[r])))] += unit * int(self.rng.integers(-4, 5))
        elif kind == 3:
            x = Fraction(1, 8) * int(self.rng.integers(1, 9))
            system = replace(system, real=(r, Fraction(1), -x, x))
        else:
            A[r] = [v + unit * int(w) for v, w in zip(A[r], self.rng.integers(-2, 3, len(A[r])), strict=True)]
        if not all(map(any, A)):
            return None
        other = replace(system, A=tuple(map(tuple, A)), ends=tuple(ends))
        return (other, arrays) if other.allowed() else None

    def random(self, system: System) -> dict[str, Any]:
        """A proof with one leaf, whose combination is made up."""
        _, _, arrays = self.shown[int(self.rng.integers(len(self.shown)))]
        held = [r for r in range(-2 - system.count, len(system.A)) if self.rng.random() < 0.6] or [0]
        texts = [f"{self.rng.integers(-9, 10)}/{self.rng.integers(1, 60)}".encode() for _ in held]
        one = np.array([-1], np.int32)
        return dict(arrays) | {
            "feature": one, "children": np.array([[-1, -1]], np.int32), "dual": np.array([-3], np.int32),
            "multiplier": np.array([0], np.int32), "whole": np.zeros((0, 2), np.int64),
            "multipliers": np.zeros((0, len(system.A))),
            "integer_start": np.array([0, len(held)]), "integer_row": np.array(held), "integer_value": np.array(texts),
        }  # fmt: skip

    def claim(self, system: System) -> dict[str, Any]:
        """The JSON that says that a system is infeasible."""
        _, document, _ = self.shown[0]
        rows = system.problem().named_rows()
        from mipfs.result.sidecar import state_rows

        said = state_rows(rows, data().feature_names)
        extra = {name: one | {"value": None} for name, one in said["extra"].items()}
        params = {**document["params"], "M": system.M}
        return {**document, **no_incumbent(document, "INFEASIBLE"), **said, "extra": extra, "params": params}


def forged(seed: int, wanted: int, counts: Counter[str]) -> list[str]:
    """Forge documents, and what was accepted of them."""
    wrong: list[str] = []
    forger = Forger(np.random.default_rng([seed, 1]))
    known = systems(seed)
    while len(forger.shown) < LEARNT:
        system, allowed = next(known)
        if not allowed:
            forger.learn(system)
    for system, document, arrays in forger.shown:  # what claims it of the system itself is accepted
        first, other, why = verdicts(forger.claim(system), arrays)
        assert (first, other) == (True, True), (why, document["rows"])
    while counts["forged"] < wanted:
        if counts["forged"] % 2:
            found = forger.near()
            if found is None:
                continue
            system, arrays = found
        else:
            system, allowed = next(known)
            if not allowed:
                continue
            arrays = forger.random(system)
        if len(system.A) != arrays["multipliers"].shape[1] and arrays["multipliers"].size:
            continue
        counts["forged"] += 1
        first, other, why = verdicts(forger.claim(system), arrays)
        malformed = "malformed" in why or "Error" in why
        counts["refused by both"] += not first and not other
        counts["malformed"] += malformed
        if counts["forged"] % 25 == 0:
            print(f"{counts['forged']} forged, {counts['refused by both']} refused by both", flush=True)
        if first or other:
            wrong.append(f"{system}: accepted by {'both' if first and other else 'one'}: {why}")
    return wrong


def main(argv: list[str] | None = None) -> int:
    """Run as many of both as asked; 1 where anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--systems", type=int, default=500)
    parser.add_argument("--forged", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args(argv)
    counts, wrong = Counter[str](), list[str]()
    for k, (system, allowed) in zip(range(asked.systems), systems(asked.seed), strict=False):
        counts["infeasible"] += not allowed
        found = judged(system, allowed, ("branch", "gbd", "branch", "kelley")[k % 4] if k % 8 else "branch", counts)
        wrong += [f"{system}: {found}"] if found else []
        if k % 25 == 24:
            print(f"{k + 1} systems, {len(wrong)} wrong", flush=True)
    wrong += forged(asked.seed, asked.forged, counts) if asked.forged else []
    print(", ".join(f"{name}: {count}" for name, count in counts.items()))
    print(*wrong, f"{len(wrong)} wrong", sep="\n")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
