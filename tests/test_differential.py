"""The references against each other and against closed forms, the generator, and that wrong drivers are caught."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable
from math import comb
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler, normalize

from tests import atom_cases, differential, oracles, strategies
from tests.oracles import ExtraVariable, LinearRow
from tests.strategies import Case

GBD = differential.DRIVERS["gbd"]


def svm_of(seed: int) -> tuple[Any, Any, Any, bool]:
    """Columns, labels, weights and bias of a generated case."""
    case = strategies.case(seed)
    return case.scaled, case.y, case.c_i, case.bias


@pytest.mark.filterwarnings("ignore:Solver terminated early")  # libsvm, whose interval then is wide but true
@pytest.mark.parametrize("seed", range(24))
def test_independent_solvers_give_intervals_that_meet(seed: int) -> None:
    Z, y, c_i, bias = svm_of(seed)
    values = [oracles.hinge_value(Z, y, c_i, bias, engine) for engine in ("clarabel", "cvxpy")]
    assert all(value.width <= oracles.RELATIVE_WIDTH for value in values)
    if bias and np.abs(Z).max() < 10:  # libsvm needs minutes on columns of very different units
        values.append(oracles.hinge_value(Z, y, c_i, bias, "libsvm"))
        assert values[-1].width < 1e-4  # it keeps its kernel in single precision
    highest, lowest = max(value.lower for value in values), min(value.upper for value in values)
    assert highest <= lowest * (1 + 1e-11)


@pytest.mark.parametrize("C", [0.25, 0.5, 32.0])
def test_svm_of_two_points_in_closed_form(C: float) -> None:
    # ½w² + 2C max(0, 1 - w): w = min(1, 2C).
    w = min(1.0, 2 * C)
    value = oracles.svm_value(np.array([[1.0], [-1.0]]), np.array([1.0, -1.0]), np.array([C, C]), True)
    assert value.upper == pytest.approx(0.5 * w**2 + 2 * C * (1 - w), rel=1e-9)
    assert value.w[0] == pytest.approx(w, rel=1e-6)


def test_svm_without_columns_in_closed_form() -> None:
    y, c_i, Z = np.array([1.0, 1.0, -1.0]), np.array([0.5, 1.0, 4.0]), np.empty((3, 0))
    assert oracles.svm_value(Z, y, c_i, True).upper == pytest.approx(3.0)
    assert oracles.svm_value(Z, y, c_i, False).upper == pytest.approx(5.5)
    zeros = oracles.svm_value(np.zeros((3, 1)), y, c_i, True)
    assert zeros.upper == pytest.approx(3.0, rel=1e-9)
    assert zeros.lower == pytest.approx(3.0, rel=1e-8)


def test_an_interval_that_is_too_wide_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oracles, "LOSSES", {"hinge": lambda *_: oracles.Value(1.0, 0.9)})
    with pytest.raises(oracles.OracleError, match=r"only accurate to 1\.0e-01"):
        oracles.svm_value(np.eye(2), np.array([1.0, -1.0]), np.ones(2), True)


def test_allowed_supports_by_hand() -> None:
    names = ("a", "b", "c", "d")

    def count(*rows: LinearRow, M: int | None = None, extras: tuple[ExtraVariable, ...] = (), **forced: Any) -> int:
        return len(oracles.allowed_supports(names, M, rows, extras=extras, **forced))

    assert count() == 16
    assert count(M=2) == comb(4, 0) + comb(4, 1) + comb(4, 2)
    assert count(forced_in=["a"], forced_out=["b"]) == 4
    assert count(forced_in=["a"], forced_out=["a"]) == 0
    assert count(LinearRow("a needs b", {"a": 1, "b": -1}, -np.inf, 0)) == 12
    assert count(LinearRow("not both", {"a": 1, "b": 1}, -np.inf, 1)) == 12
    assert count(LinearRow("exactly", dict.fromkeys(names, 1.0), 2, 2)) == 6
    assert count(LinearRow("tenths", {"a": 0.1, "b": 0.2}, 0.3, 0.3)) == 4  # 0.1 + 0.2 > 0.3 in float64
    half = ExtraVariable("h", 0, 4, integer=True)
    even = LinearRow("even", {**dict.fromkeys(names, 1.0), "h": -2.0}, 0, 0)
    assert count(even, extras=(half,)) == 8
    assert count(even, extras=(ExtraVariable("h", 0, 0.75),)) == 1 + 4


def no_short_cuts(case: Case) -> dict[frozenset[int], float]:
    """The value of every allowed support."""
    values = {}
    for support in case.allowed:
        columns = sorted(support)
        values[support] = oracles.svm_value(case.scaled[:, columns], case.y, case.c_i, case.bias).upper
        values[support] += case.penalty[columns].sum()
    return values


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", [s for s in range(60) if strategies.case(s).allowed][:20])
def test_brute_force_passes_over_nothing_that_matters(seed: int) -> None:
    case = strategies.case(seed)
    found = oracles.brute_force(case.scaled, case.y, case.c_i, case.allowed, case.penalty, case.bias)
    values = no_short_cuts(case)
    best = min(values.values())
    assert found.value.upper == pytest.approx(best, rel=1e-9)
    assert found.value.lower <= best <= found.value.upper * (1 + 1e-12)
    assert set(found.optimal) == {support for support, value in values.items() if value <= best * (1 + 1e-7)}


@pytest.mark.slow
def test_the_generator_covers_every_kind_and_stays_small() -> None:
    cases = [strategies.case(seed) for seed in range(300)]
    tags = Counter(tag for case in cases for tag in case.tags)
    assert {*strategies.DATA, *strategies.ROWS, *strategies.LOSSES} <= tags.keys()
    assert min(tags.values()) >= 5
    assert {case.route for case in cases} == {"data", "problem", "matrix"}
    assert all(len(case.names) <= 12 and 2 <= len(case.y) <= 60 and 0.25 <= case.C <= 32 for case in cases)
    assert all(set(case.y) == {-1.0, 1.0} for case in cases)
    infeasible = sum(not case.allowed for case in cases)
    assert 20 <= infeasible <= 90


def test_a_seed_always_gives_the_same_case() -> None:
    one, two = strategies.case(17), strategies.case(17)
    np.testing.assert_array_equal(one.X, two.X)
    assert (one.rows, one.C, one.M, one.tags) == (two.rows, two.C, two.M, two.tags)
    assert not np.array_equal(one.c_i, strategies.case(18).c_i)


def test_scaling_as_the_contract_says() -> None:
    X = np.random.default_rng(0).normal(5.0, 3.0, (20, 3))
    np.testing.assert_allclose(strategies.scaled_as(X, "standard"), StandardScaler().fit_transform(X))
    np.testing.assert_allclose(strategies.scaled_as(X, "unit"), normalize(X, axis=0))
    constant = np.column_stack([X[:, 0], np.full(20, 0.1), np.zeros(20)])
    np.testing.assert_array_equal(strategies.scaled_as(constant, "standard")[:, 1:], constant[:, 1:])
    np.testing.assert_array_equal(strategies.scaled_as(constant, "unit")[:, 2], 0.0)


# A stand-in for a driver that is right, and ways in which it could be wrong --------------------------------


def right_answer(case: Case) -> dict[str, Any]:
    """The JSON that a correct driver would write, from brute force."""
    found = oracles.brute_force(case.scaled, case.y, case.c_i, case.allowed, case.penalty, case.bias)
    columns = sorted(found.optimal[0])
    value = oracles.svm_value(case.scaled[:, columns], case.y, case.c_i, case.bias)
    chosen, Z, X = [case.names[j] for j in columns], case.scaled[:, columns], case.X[:, columns]
    varies = np.ptp(X, axis=0) > 0
    scale = np.array([np.ptp(x) / np.ptp(z) if v else 1.0 for x, z, v in zip(X.T, Z.T, varies, strict=True)])
    shift = X[0] - Z[0] * scale
    user = value.w / scale
    return {
        "status": "OPTIMAL",
        "stop_reason": "GAP_CLOSED",
        "objective": value.upper + float(case.penalty[columns].sum()),
        "bound": found.value.lower,
        "selected": chosen,
        "weights": dict(zip(chosen, user.tolist(), strict=True)),
        "intercept": value.b - float(shift @ user),
        "scaling": {"shift": dict(zip(chosen, shift, strict=True)), "scale": dict(zip(chosen, scale, strict=True))},
    }


def driver_that(case: Case, spoil: Callable[[dict[str, Any]], None]) -> differential.Solve:
    """A stand-in for `mipfs.solve` that gives the right answer, spoilt."""

    def solve(problem: object, **options: object) -> Any:
        document = right_answer(case)
        spoil(document)
        objective, bound = document["objective"], document["bound"]
        return SimpleNamespace(
            status=SimpleNamespace(name=document["status"]),
            stop_reason=SimpleNamespace(name=document["stop_reason"]),
            objective=objective,
            bound=bound,
            gap=max(0.0, objective - bound) / max(1e-10, abs(objective)),
            selected=tuple(document["selected"]),
            trace=[SimpleNamespace(objective=objective, bound=bound)],
            to_json=lambda: json.dumps(document),
        )

    return solve


def a_case_that(holds: Callable[[Case], bool]) -> Case:
    """The first case with an optimum worth getting wrong: several allowed supports, one of them best."""
    for case in map(strategies.case, itertools.count()):
        if len(case.allowed) > 20 and not case.extras and case.scale == "standard" and holds(case):
            trial = differential.Trial(case, GBD, driver_that(case, lambda _: None))
            if len(trial.exact.optimal) == 1 and trial.exact.optimal[0]:
                return case
    raise AssertionError


SPOILT: dict[str, Callable[[dict[str, Any]], None]] = {
    "above the optimum": lambda d: d.update(bound=d["bound"] * (1 + 1e-7)),
    "bound .* off the optimum": lambda d: d.update(bound=d["bound"] * (1 - 1e-5)),
    "objective .* off the optimum": lambda d: d.update(objective=d["objective"] * (1 + 1e-5)),
    "FEASIBLE, GAP_CLOSED": lambda d: d.update(status="FEASIBLE"),
    "OPTIMAL, TIME_LIMIT": lambda d: d.update(stop_reason="TIME_LIMIT"),
    "weights give": lambda d: d.update(intercept=d["intercept"] + 0.1),
    "not selected has a weight|not an allowed|the least that|unique": lambda d: d["selected"].pop(),
}


def test_a_right_driver_passes() -> None:
    case = a_case_that(lambda case: case.bias)
    assert differential.check(case, GBD, driver_that(case, lambda _: None)) == "feasible"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("message", SPOILT)
def test_a_wrong_driver_is_caught(message: str) -> None:
    case = a_case_that(lambda case: case.bias)
    with pytest.raises(AssertionError, match=message):
        differential.check(case, GBD, driver_that(case, SPOILT[message]))


def test_an_infeasible_case_must_name_a_smallest_conflict() -> None:
    case = next(case for case in map(strategies.case, itertools.count()) if "contradiction" in case.tags)
    names = differential.conflict_items(case)

    def claims(conflict: list[str]) -> differential.Solve:
        answer = SimpleNamespace(
            status=SimpleNamespace(name="INFEASIBLE"),
            objective=np.inf,
            to_json=lambda: json.dumps({"conflict": conflict}),
        )
        return lambda problem, **options: answer

    smallest = next(
        list(items)
        for items in itertools.chain.from_iterable(itertools.combinations(names, k) for k in range(1, len(names) + 1))
        if not differential.allowed_by(case, items)
    )
    assert differential.check(case, GBD, claims(smallest)) == "infeasible"
    for wrong in ([], smallest[:-1], names, ["nothing"]):
        if sorted(wrong) != sorted(smallest):
            with pytest.raises(AssertionError):
                differential.check(case, GBD, claims(wrong))


def test_a_failure_prints_how_to_repeat_it(capsys: pytest.CaptureFixture[str]) -> None:
    def broken(problem: object, **options: object) -> Any:
        raise ZeroDivisionError("so far")

    assert differential.main(["--cases", "plain", "--seed", "5", "--seconds", "30"], solve=broken) == 1
    printed = capsys.readouterr().out
    assert "FAILED case 5 (" in printed
    assert "python -m tests.differential --cases plain --case 5 --driver branch" in printed
    assert "ZeroDivisionError: so far" in printed
    assert printed.endswith("0 passed, 2 failed\n")


@pytest.mark.sampled(13)
@pytest.mark.parametrize("seconds", [0.5, pytest.param(2.0, marks=pytest.mark.slow)])
@pytest.mark.parametrize("cases", sorted(differential.CASES))
@pytest.mark.parametrize("driver", ["branch", "gbd"])
def test_agrees_with_brute_force_for_a_few_seconds(
    driver: str, cases: str, seconds: float, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--seconds", str(seconds), "--seed", "1000", "--driver", driver, "--cases", cases]
    assert differential.main(arguments) == 0, capsys.readouterr().out
    printed = capsys.readouterr().out
    assert printed.endswith(" passed, 0 failed\n")
    assert not printed.endswith("\n0 passed, 0 failed\n")


@pytest.mark.slow
@pytest.mark.parametrize("driver", ["branch", "gbd"])
def test_problems_over_atoms_agree_with_brute_force(driver: str) -> None:
    from mipfs import solve

    seen = Counter[str]()
    for seed in range(1, 41):
        case = atom_cases.case(seed)
        seen.update({atom_cases.check(case, differential.DRIVERS[driver], solve), *case.tags})
    assert {*atom_cases.KINDS, *atom_cases.THREADS, "weights", "feasible"} <= seen.keys()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_monolithic_agrees_with_brute_force_on_a_few(seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pyscipopt", reason="the monolithic driver needs SCIP (extra 'scip')")
    assert differential.main(["--cases", "plain", "--case", str(seed), "--driver", "monolithic"]) == 0, (
        capsys.readouterr().out
    )
    assert "1 passed, 0 failed" in capsys.readouterr().out
