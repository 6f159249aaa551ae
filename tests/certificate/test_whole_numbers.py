"""Whole variables enter rows exactly, and a leaf shows that no whole numbers satisfy rows: in both checkers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import mipfs
from mipfs.problem import Problem
from mipfs.result.advice import advice_in_words
from mipfs.result.result import Result, StopReason
from mipfs.selection.rows import Extras, Rows
from tests import whole_numbers
from tests.whole_numbers import P, System, data, has_solution, judged, systems, verdicts

Json = dict[str, Any]
Arrays = dict[str, Any]


def seeds(count: int) -> list[Any]:
    """Many problems each: the first with every change, the second with what is slow, the others with every seed."""
    beyond = [pytest.mark.slow], [pytest.mark.slow, pytest.mark.every]
    return [0, *(pytest.param(k, marks=beyond[k > 1]) for k in range(1, count))]


def share(seed: int, whole: int) -> int:
    """How many of `whole` problems a seed draws: a sixth, a third, all."""
    return whole if seed > 1 else whole // (6, 3)[seed]


@pytest.mark.every
@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(8))
def test_answers_are_those_of_other_arithmetic_and_both_checkers_accept_them(seed: int) -> None:
    counts = Counter[str]()
    for k, (system, allowed) in zip(range(share(seed, 60)), systems(100 + seed), strict=False):
        assert not judged(system, allowed, ("branch", "gbd", "kelley")[k % 3], counts), system
    assert counts["with a leaf without whole numbers"] > 0
    assert counts["OPTIMAL"] > 0


@pytest.mark.every
@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(4))
def test_a_false_claim_that_nothing_is_allowed_is_refused_by_both(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = Counter[str]()
    if not seed:
        monkeypatch.setattr(whole_numbers, "LEARNT", 4)
    assert whole_numbers.forged(200 + seed, share(seed, 130), counts) == []
    assert counts["refused by both"] == counts["forged"]
    assert counts["malformed"] == 0


def test_the_oracle_of_unbounded_equations() -> None:
    assert has_solution([[6, 10, -14]], [14])
    assert not has_solution([[6, 10, -14]], [15])
    assert has_solution([[0, 0], [2, 3]], [0, 1])
    assert not has_solution([[0, 0], [2, 3]], [1, 1])
    assert has_solution([[1, 0, -2], [1, 2, 0]], [0, 2])
    assert not has_solution([[1, 0, -2], [1, 2, 0]], [0, 1])


# --- rules 3 ---------------------------------------------------------------------------------------------------


def problem_of(A: Any, lb: Any, ub: Any, *, low: float = -np.inf, M: int = 2, whole: bool = True) -> Problem:
    """Rows over the features of `data` and free extra variables."""
    A = np.atleast_2d(np.array(A, dtype=float))
    e = A.shape[1] - P
    extra = Extras(tuple(f"z{k}" for k in range(e)), np.full(e, low), np.full(e, np.inf), np.full(e, whole))
    names = tuple(f"row {r}" for r in range(len(A)))
    rows = Rows(sparse.csr_array(A), np.atleast_1d(lb), np.atleast_1d(ub), names, ("",) * len(A), extra)
    return Problem(data(), M=M, C=1.0, rows=rows)


def parts(result: Result) -> tuple[Json, Arrays]:
    """The JSON and the arrays of a result, to be changed."""
    assert result.claim is not None
    return json.loads(result.to_json()) | {"certificate": result.claim.entry()}, dict(result.claim.arrays())


def both_in() -> Result:
    """Of 6 z0 + 10 z1 - 14 z2 = 14 + x1 + x2 with both in: 16."""
    problem = problem_of([-1, -1, 0, 0, 6, 10, -14], 14.0, 14.0, low=0.0)
    return mipfs.solve(problem.replace(forced_in=("x1", "x2")))


@pytest.mark.parametrize("rules", [3, 2, 1, None])
def test_values_that_miss_a_row_by_one_satisfy_it_under_no_rules_but_the_first_two(rules: int | None) -> None:
    document, arrays = parts(both_in())
    assert document["status"] == "OPTIMAL"
    document["rows"][0] |= {"lb": 15.0, "ub": 15.0}  # which asks for 17, an odd number
    k = 2 * 10**12
    for name, value in zip(("z0", "z1", "z2"), (5 + 7 * k, 0, 1 + 3 * k), strict=True):
        document["extra"][name]["value"] = float(value)
    document |= {"rules": rules}
    if rules is None:
        del document["rules"]
    first, other, why = verdicts(document, arrays)
    assert first == other == (rules != 3), why
    if rules != 3:
        report = whole_numbers.judge(document, arrays, data())
        assert any("row 0" in words and "forgive 2^-47" in words for words in report.unchecked)
        notes = whole_numbers.second().guarded(
            document, whole_numbers.arrays_of(arrays), whole_numbers.data_of(data())
        )[1]
        assert any("row 0" in words and "2^-47" in words for words in notes[-1])


def test_what_is_forgiven_and_not_used_is_not_said() -> None:
    document, arrays = parts(both_in())
    report = whole_numbers.judge(document | {"rules": 2}, arrays, data())
    assert report.accepted
    assert not any("forgive" in words for words in report.unchecked)


def test_decimals_mean_what_they_say_for_whole_variables() -> None:
    """0.1 z0 + 0.2 z1 - 0.3 z2 = 0 at (1, 1, 1), which doubles miss by 2^-54."""
    A = [[0, 0, 0, 0, 0.1, 0.2, -0.3], [0, 0, 0, 0, 1, 0, 0], [0, 0, 0, 0, 0, 1, 0], [0, 0, 0, 0, 0, 0, 1]]
    result = mipfs.solve(problem_of(A, [0.0, 1, 1, 1], [0.0, 1, 1, 1]))
    assert result.status.name == "OPTIMAL"
    assert {name: one["value"] for name, one in result.extra.items()} == {"z0": 1.0, "z1": 1.0, "z2": 1.0}
    first, other, why = verdicts(*parts(result))
    assert (first, other) == (True, True), why


# --- leaves without whole numbers ------------------------------------------------------------------------------


CASES: dict[str, tuple[Any, Any, Any, set[tuple[int, ...]]]] = {
    "parity": ([0, 0, 0, 0, 6, 10, -14], 15.0, 15.0, set()),
    "one of two": ([-1, -1, 0, 0, 6, 10, -14], 15.0, 15.0, {(0,), (1,), (0, 2), (0, 3), (1, 2), (1, 3)}),
    "large numbers": ([-1, 0, 0, 0, 1234, 8762, -2348], 99.0, 99.0, {(0,), (0, 1), (0, 2), (0, 3)}),
    "two rows": ([[0, 0, 0, 0, 2, 3], [0, 0, 0, 0, 4, 1]], [5.0, 7.0], [5.0, 9.0], set()),
    "costs": ([6, 10, 14, 22], 11.0, 11.0, set()),
    "between": ([-1, 0, 0, 0, 6, 9], 3.5, 4.5, set()),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("driver", ["branch", "gbd"])
@pytest.mark.parametrize("name", CASES)
def test_what_whole_numbers_rule_out_is_proven(name: str, driver: str) -> None:
    A, lb, ub, allowed = CASES[name]
    result = mipfs.solve(problem_of(A, lb, ub), driver, time_limit=20.0)
    assert result.status.name == ("OPTIMAL" if allowed else "INFEASIBLE")
    document, arrays = parts(result)
    first, other, why = verdicts(document, arrays)
    assert (first, other) == (True, True), why
    if allowed:
        values = {ids: whole_numbers.value(tuple(int(j in ids) for j in range(P))) for ids in allowed}
        best = min(values, key=values.__getitem__)
        assert {f"x{j + 1}" for j in best} == {*result.selected}
        assert result.objective == pytest.approx(values[best], rel=1e-4)
    else:
        assert "integer_start" in arrays
        first, other, why = verdicts(document | {"rules": 2}, arrays)  # which have no such leaves
        assert (first, other) == (False, False), why


DAMAGES: dict[str, Callable[[Arrays], Any]] = {
    "another multiplier": lambda a: a.update(integer_value=np.array([b"1/3"])),
    "none": lambda a: a.update(integer_value=np.array([b"0"])),
    "twice": lambda a: a.update(
        integer_row=np.array([0, 0]), integer_value=np.array([b"1/2", b"1/2"]), integer_start=np.array([0, 2])
    ),
    "an absent row": lambda a: a.update(integer_row=np.array([1])),
    "an absent variable": lambda a: a.update(integer_row=np.array([-5])),
    "an end that is missing": lambda a: a.update(integer_row=np.array([-2])),
    "no text": lambda a: a.update(integer_value=np.array([0.5])),
    "a decimal": lambda a: a.update(integer_value=np.array([b"0.5"])),
    "by zero": lambda a: a.update(integer_value=np.array([b"1/0"])),
    "long": lambda a: a.update(integer_value=np.array([b"1" * 500 + b"/" + b"2" * 500])),
    "an array less": lambda a: a.pop("integer_row"),
    "beyond the end": lambda a: a.update(integer_start=np.array([0, 2])),
    "backwards": lambda a: a.update(integer_start=np.array([0, 1, 0])),
    "not from 0": lambda a: a.update(integer_start=np.array([1, 1])),
    "empty": lambda a: a.update(integer_start=np.zeros(0, dtype=np.int64)),
    "no combination": lambda a: a.update(multiplier=np.array([-1], np.int32)),
    "another combination": lambda a: a.update(multiplier=np.array([1], np.int32)),
    "refuted": lambda a: a.update(dual=np.array([-2], np.int32)),
    "a table": lambda a: a.update(integer_value=np.array([[b"1/2"]])),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_combination_is_refused_by_both(name: str) -> None:
    document, arrays = parts(mipfs.solve(problem_of(*CASES["parity"][:3])))
    assert arrays["feature"].size == 1
    DAMAGES[name](arrays)
    first, other, why = verdicts(document, arrays)
    assert (first, other) == (False, False), why


EDITS: dict[str, Callable[[Json], Any]] = {
    "a real variable": lambda d: d["extra"]["z1"].update(integer=False),
    "an even end": lambda d: d["rows"][0].update(lb=16.0, ub=16.0),
    "room": lambda d: d["rows"][0].update(ub=16.0),
    "one end": lambda d: d["rows"][0].update(ub=None),
    "an odd coefficient": lambda d: d["rows"][0]["terms"].update(z0=5.0),
    "nearly": lambda d: d["rows"][0]["terms"].update(z0=6.0 + 2.0**-50),
    "an atom": lambda d: d["rows"][0]["terms"].update(x1=1.0),
    "near enough": lambda d: d["rows"][0].update(lb=16.0 - 2.0**-37, ub=16.0 - 2.0**-37),
}


@pytest.mark.parametrize("name", EDITS)
def test_another_statement_is_not_shown_by_it(name: str) -> None:
    document, arrays = parts(mipfs.solve(problem_of(*CASES["parity"][:3])))
    EDITS[name](document)
    first, other, why = verdicts(document, arrays)
    assert (first, other) == (False, False), why


def test_fixed_atoms_count_by_their_values() -> None:
    """x1 forced in makes 6 z = 5 + x1 hold, and 6 z = 6 + x1 not."""
    for end, status in ((5.0, "OPTIMAL"), (6.0, "INFEASIBLE")):
        result = mipfs.solve(problem_of([-1, 0, 0, 0, 6], end, end).replace(forced_in=("x1",)))
        assert result.status.name == status
        document, arrays = parts(result)
        first, other, why = verdicts(document, arrays)
        assert (first, other) == (True, True), why
        if status == "INFEASIBLE":
            del document["params"]["forced_in"]
            assert verdicts(document, arrays)[:2] == (False, False)


# --- what is said ----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_where_no_proof_is_found_the_words_are_about_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mipfs.selection.lattice.MOST_NUMBERS", 0)
    late = mipfs.solve(problem_of(*CASES["parity"][:3]), time_limit=2.0)
    assert late.status.name == "NO_SOLUTION"
    assert late.stop_reason in (StopReason.NUMERICAL, StopReason.TIME_LIMIT)
    result = replace(late, stop_reason=StopReason.NUMERICAL)
    words = advice_in_words(result)
    assert "more time" in advice_in_words(replace(late, stop_reason=StopReason.TIME_LIMIT))
    assert "C" not in words
    assert "bounds on 'z0', 'z1', 'z2'" in words
    assert "between the two ends of 'row 0'" in words
    assert "whether any selection satisfies the rows is not decided" in result.summary()


def test_multipliers_are_small_and_exact() -> None:
    system = System(((*[Fraction(0)] * P, Fraction(6), Fraction(10)),), ((Fraction(15), Fraction(15)),), False, 2)
    assert system.allowed() == set()
    selection = system.problem().selection
    box = selection.box(np.zeros(P), np.ones(P))
    assert selection.whole_numbers.refutation(*box) == {0: Fraction(1, 2)}
