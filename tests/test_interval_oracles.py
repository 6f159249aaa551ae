"""The reference of the campaign against closed forms and the other references, and that the campaign is not blind."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests import differential, oracles
from tests.draws import DATA, LOSSES, MEASURES, Draw, draw
from tests.exact_rows import rows_hold
from tests.interval_oracles import Enumerated, Interval, Svm, whole
from tests.judge import Verdict, gap_of, judged, look

# Its kernels are compiled here, and the differential test of `.ci/run` judges by it.
pytestmark = pytest.mark.slow


def svm_of(seed: int, loss: str, C: float, spread: float = 0.0) -> Svm:
    """Twelve samples of three columns with means of 1e3."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(12, 3))
    y = np.where(X[:, 0] + X[:, 1] > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    c = C * 10.0 ** rng.uniform(-spread, spread, 12)
    return Svm(X + 1e3, np.zeros(3), y, c, [[0], [1], [2]], np.ones(3), loss, bool(seed % 2))


@pytest.mark.parametrize("loss", ["hinge", "squared-hinge", "logistic"])
@pytest.mark.parametrize("seed", range(6))
def test_agrees_with_the_other_references_where_they_can(loss: str, seed: int) -> None:
    svm = svm_of(seed, loss, 2.0)
    for chosen in (frozenset({0}), frozenset({0, 2}), frozenset({0, 1, 2})):
        mine, columns = svm.of(chosen), sorted(chosen)
        theirs = oracles.LOSSES[loss](svm.X[:, columns], svm.y, svm.c, svm.bias, "clarabel")
        assert mine.upper - mine.lower <= 1e-9 * mine.upper
        assert mine.lower <= theirs.upper * (1 + 1e-12)
        assert theirs.lower <= mine.upper * (1 + 1e-12)
        assert svm.quick(chosen) <= mine.upper


@pytest.mark.parametrize("loss", ["hinge", "squared-hinge", "logistic"])
@pytest.mark.parametrize("C", [1e-6, 1e4, 1e12])
@pytest.mark.parametrize("seed", range(4))
def test_is_narrow_where_doubles_are_no_reference(loss: str, C: float, seed: int) -> None:
    svm = svm_of(seed, loss, C, spread=6.0)
    for size in range(4):
        for chosen in itertools.combinations(range(3), size):
            found = svm.of(frozenset(chosen))
            assert found.is_sure, (chosen, found)
            assert found.lower <= found.upper


def test_a_hard_margin_in_closed_form() -> None:
    # x = ±d: w = 1/d, value 1/(2d²), whatever C above; the ρ-form is its −1/(4v).
    for d in (1e-3, 1.0, 1e5):
        X, y, c = np.array([[d], [-d]]), np.array([1.0, -1.0]), np.full(2, 1e12)
        value = Svm(X, np.zeros(1), y, c, [[0]], np.ones(1), "hinge", True)
        found = value.of(frozenset({0}))
        assert found.lower <= 0.5 / d**2 * (1 + 1e-12)
        assert found.upper >= 0.5 / d**2 * (1 - 1e-12)
        assert found.is_sure
        rho = Enumerated(value, [frozenset({0})], np.zeros(1), rho=True).optimum
        assert rho.upper == pytest.approx(-0.5 * d**2)


def test_numbers_become_whole_ones_without_rounding() -> None:
    numbers, shift = whole([0.1, -3.0, 2.0**-60])
    assert [number / 2**shift for number in numbers] == [0.1, -3.0, 2.0**-60]
    assert whole([complex(1.0, 2.0**-80)]) == ([2**80 + 1], 80)


def test_a_wide_interval_is_not_sure() -> None:
    assert Interval(1.0, 1.0 + 1e-9).is_sure
    assert Interval(0.0, 0.0).is_sure
    assert not Interval(0.9, 1.0).is_sure


def test_the_draws_cover_what_they_are_to_cover() -> None:
    draws = [draw(seed) for seed in range(400)]
    tags = {tag for one in draws for tag in one.tags}
    assert {*DATA, *LOSSES, *MEASURES} <= tags
    assert {"weights 1e±6", "extra variable", "penalty", "M = 1", "overlapping", "tree", "C >= 1e7", "C < 1e-2"} <= tags
    assert {"list", "limit", "slices", "branch", "gbd", "kelley", "conic", "two_layer"} <= tags
    again = draw(17)
    np.testing.assert_array_equal(again.problem.data.X, draws[17].problem.data.X)
    assert (again.driver, again.options, again.tags) == (draws[17].driver, draws[17].options, draws[17].tags)
    assert draw(17, ["gbd"]).driver == "gbd"


def test_rows_with_an_extra_variable_by_hand() -> None:
    one = next(d for d in map(draw, itertools.count()) if "extra variable" in d.tags and len(d.names) >= 3)
    rows, count = one.problem.rows, len(one.names)
    found = [rows_hold(rows, frozenset(s), count) for s in itertools.combinations(range(count), 2)]
    by_milp = [
        bool(one.problem.selection.rows.extra) and holds(one, s) for s in itertools.combinations(range(count), 2)
    ]
    assert found == by_milp


def holds(one: Draw, chosen: tuple[int, ...]) -> bool:
    """By SciPy's MILP."""
    rows, names = one.problem.rows, one.names
    A, extra = rows.matrix.toarray(), rows.extra
    everything = [*names, *extra.names]
    terms = [dict(zip(everything, line.tolist(), strict=True)) for line in A]
    linear = [oracles.LinearRow(str(i), terms[i], rows.lb[i], rows.ub[i]) for i in range(len(A))]
    variables = [oracles.ExtraVariable(extra.names[0], extra.lb[0], extra.ub[0], bool(extra.integer[0]))]
    sigma = {name: float(j in chosen) for j, name in enumerate(names)}
    plain = [row for row in linear if not row.terms[extra.names[0]]]
    return all(oracles._holds(row, sigma) for row in plain) and oracles._extras_exist(linear, variables, sigma)


# The judge: a right answer passes, each wrong one is named ------------------------------------------------


def a_draw() -> Draw:
    """One with several selections, all of one size of value."""
    return next(
        one
        for one in map(draw, itertools.count())
        if one.way == "whole" and one.problem.loss == "hinge" and len(one.allowed) > 4 and one.driver == "branch"
        and one.problem.margin == "unit" and one.exact.optimum.upper > 1e-3 and "as given" in one.tags
        and {"C < 1e3", "features"} <= set(one.tags) and not one.penalty.any()
    )  # fmt: skip


SPOILT: dict[str, tuple[str, dict[str, Any]]] = {
    "above the optimum": ("wrong", {"bound": 1 + 1e-7}),
    "is below": ("wrong", {"objective": 1 - 1e-7}),
    "OPTIMAL at a gap": ("above gap", {"bound": 0.5}),
    "in the JSON": ("wrong gap", {"gap": 2.0}),
    "stored weights": ("weights", {"objective": 1 + 1e-5}),
    "FEASIBLE, GAP_CLOSED": ("wrong", {"status": "FEASIBLE"}),
    "INFEASIBLE, but": ("wrong", {"status": "INFEASIBLE"}),
}


@pytest.mark.parametrize("words", SPOILT)
def test_a_wrong_result_is_named(words: str) -> None:
    import json

    from mipfs import solve

    one = a_draw()
    right = solve(one.problem, "branch", gap=1e-9)
    fine = Verdict()
    look(one, right, fine)
    assert not fine.faults
    column, changes = SPOILT[words]
    document = json.loads(right.to_json())
    values = {name: getattr(right, name) for name in ("objective", "bound", "trace", "selected", "near_optimal")}
    status = changes.get("status", "OPTIMAL")
    for name in ("objective", "bound"):
        values[name] *= changes.get(name, 1.0)
    document["gap"] = changes.get("gap", max(0.0, gap_of(values["objective"], values["bound"])))
    spoilt = SimpleNamespace(
        status=SimpleNamespace(name=status), stop_reason=SimpleNamespace(name="GAP_CLOSED"),
        to_json=lambda: json.dumps(document), **values,
    )  # fmt: skip
    verdict = Verdict()
    look(one, spoilt, verdict)
    assert any(found == column and words in said for found, said in verdict.faults), verdict.faults


def test_a_crash_is_a_fault_with_a_line_that_repeats_it(capsys: pytest.CaptureFixture[str]) -> None:
    def broken(*_: object, **__: object) -> Any:
        raise ZeroDivisionError("so far")

    assert differential.main(["--count", "2", "--seed", "7"], solve=broken) == 1
    printed = capsys.readouterr().out
    assert "ZeroDivisionError: so far" in printed
    assert "again: python -m tests.differential --case 8" in printed
    assert printed.endswith("0 passed, 2 failed\n")
    assert "error" in judged(draw(7), broken, broken).counts


@pytest.mark.parametrize("seed", [1, 101, 201])
def test_a_few_problems_of_the_campaign(seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert differential.main(["--count", "25", "--seed", str(seed)]) == 0, capsys.readouterr().out


def test_a_few_problems_among_neighbours(capsys: pytest.CaptureFixture[str]) -> None:
    assert differential.main(["--count", "21", "--seed", "301", "--neighbours"]) == 0, capsys.readouterr().out
