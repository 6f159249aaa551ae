"""The verdict rests on the gap in the user's units, whatever they are, and on nothing that the file says of itself."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import mipfs
from mipfs.check.rounding import CertificateError, above, below, gap_between, number, read_rational, sum_below
from mipfs.check.tree import check
from mipfs.check.verdict import require_closed_gap
from mipfs.data.instance import Instance
from mipfs.errors import DataError
from mipfs.problem import Problem
from mipfs.result.result import Result
from mipfs.selection.rows import Extras, Rows
from tests import draws
from tests.certificate.trees import Arrays, arrays_of, checked, directly, document_of, make_data, no_incumbent
from tests.certificate.truth import Truth

# --- numbers ----------------------------------------------------------------------------------------------------


def test_texts_of_numbers_are_read_exactly_or_not_at_all() -> None:
    assert read_rational(b"-2/1" + b"0" * 324, "m") == Fraction(-2, 10**324)
    assert read_rational(b"3", "m") == 3
    assert read_rational(0.1, "m") == Fraction(0.1)
    for text in (b"1_0", b" 1", b"+1", b"1/-2", b"0x1", b"1/0", b"1e3", b"", b"1/2/3", b"1.5", "٣".encode(), b"nan"):
        with pytest.raises(CertificateError):
            read_rational(text, "m")
    for value in (math.inf, math.nan, True, None):
        with pytest.raises(CertificateError):
            read_rational(value, "m")  # type: ignore[arg-type]
    with pytest.raises(CertificateError, match="no float holds"):
        number(2**53 + 1, "a coefficient")
    assert number(2**60, "a coefficient") == 2.0**60


@pytest.mark.parametrize("seed", range(20))
def test_sums_and_quotients_are_rounded_to_the_side_that_is_asked(seed: int) -> None:
    rng = np.random.default_rng(seed)
    terms = [float(v) for v in rng.normal(size=8) * 10.0 ** rng.integers(-30, 30, 8)]
    exact, found = sum(map(Fraction, terms), Fraction()), sum_below(terms)
    assert Fraction(found) <= exact < Fraction(math.nextafter(found, math.inf))
    third = exact / 3
    assert Fraction(below(third)) <= third <= Fraction(above(third))
    assert math.nextafter(below(third), math.inf) == above(third)
    assert sum_below([0.0, 0.0]) == 0.0 == sum_below([1e300, 1e-300, -1e300, -1e-300])
    assert below(Fraction(10) ** 400) == np.finfo(float).max
    assert above(Fraction(10) ** 400) == math.inf
    assert below(Fraction(1, 10**400)) == 0.0
    assert above(Fraction(1, 10**400)) == 5e-324


def test_the_gap_is_relative_to_the_objective_whatever_its_size() -> None:
    for size in (1e-100, 5e-12, 1.0, 1e20):
        assert gap_between(size, 0.5 * size) == 0.5
        assert gap_between(-0.5 * size, -size) == 1.0
        require_closed_gap("OPTIMAL", size, 1e-15 * size, (1 - 1e-4) * size, 1e-4, "certified")
        with pytest.raises(CertificateError, match=r"only 0\.0002 is"):
            require_closed_gap("OPTIMAL", size, 0.0, (1 - 2e-4) * size, 1e-4, "certified")
        with pytest.raises(CertificateError, match="in doubt"):
            require_closed_gap("OPTIMAL", size, 1e-6 * size, (1 - 1e-4) * size, 1e-4, "certified")
    assert gap_between(0.0, 0.0) == 0.0 == gap_between(-1.0, -1.0)
    assert gap_between(0.0, -1e-300) == math.inf == gap_between(math.inf, 1.0)


# --- multipliers ------------------------------------------------------------------------------------------------


def test_a_multiplier_whose_float_is_zero_shows_nothing(tmp_path: Path) -> None:
    """z in [1000, 5000] and z ≤ 4000: −2e-324 as text has z's part at its exact value, and the row's at 0."""
    data = make_data(np.random.default_rng(0), n=14, p=3)
    extra = Extras(("extra_z",), np.array([1000.0]), np.array([5000.0]), np.array([False]))
    rows = Rows(sparse.csr_array([[0.0, 0.0, 0.0, 1.0]]), np.array([-np.inf]), np.array([4000.0]), ("r",), ("",), extra)
    result = mipfs.solve(Problem(data, rows=rows, M=2))
    assert checked(result, data, tmp_path).accepted

    def empty(document: dict[str, Any]) -> None:
        held = {name: one | {"value": None} for name, one in document["extra"].items()}
        document |= no_incumbent(document, "INFEASIBLE") | {"bound": None, "gap": None, "extra": held}
        document["certificate"]["bound"] = None

    for text in (b"-2/1" + b"0" * 324, b"-1", b"1/3", b"-0"):

        def refute(arrays: Arrays, text: bytes = text) -> None:
            for name, value in (("feature", -1), ("children", -1), ("dual", -2), ("multiplier", 0)):
                arrays[name] = np.full_like(arrays[name][:1], value)
            arrays["whole"], arrays["multipliers"] = np.zeros((0, 2), np.int64), np.array([[text]])

        report = checked(result, data, tmp_path, refute, empty)
        assert not report.accepted
        assert "nothing shows that leaf 0 holds no selection" in report.reason


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", [1, 11, 33])
def test_multipliers_of_any_size_are_computed_with(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(2, 8)), 4
    y = np.where(rng.random(n) < 0.3, 1.0, -1.0)
    y[0] = -y[1]
    X = y[:, None] * (rng.exponential(1.0, (n, p)) + rng.uniform(0.05, 3, p))
    data = Instance.from_arrays(X, y)
    rows = [[5, 3, 2, 1], [1, 1, 0, 0], [1, 5, 2, 2]]
    problem = Problem(data, C=1e-6, M=p, bias=False, lam=0.72).with_rows(rows, -np.inf, [9, 1, 10])
    result = mipfs.solve(problem, "branch")
    for size in (1e-150, 1e-200, 1e-300, 5e-324):
        arrays = arrays_of(result)
        arrays["multipliers"] = -size * np.ones((1, 3))
        arrays["multiplier"] = np.where(arrays["dual"] >= 0, 0, -1).astype(np.int32)
        report = directly(result, data, arrays)
        assert report.accepted, report.reason


# --- the gap, and the status ------------------------------------------------------------------------------------


def stopped() -> tuple[Result, Instance]:
    data = make_data(np.random.default_rng(1), n=30, p=6)
    result = mipfs.solve(Problem(data, M=2, C=1.0), "branch", iteration_limit=0)
    assert result.status.name == "FEASIBLE"
    assert result.gap > 1e-3
    return result, data


@pytest.mark.parametrize("gap", [0.0, 1e-4, 0.9, -1.0, 1e308])
def test_the_gap_that_a_result_states_is_the_checkers(gap: float, tmp_path: Path) -> None:
    result, data = stopped()
    report = checked(result, data, tmp_path, edit=lambda document: document.update(gap=gap))
    assert "the gap of the result is" in report.reason


def test_a_gap_that_differs_by_rounding_or_is_not_stated_is_no_lie(tmp_path: Path) -> None:
    result, data = stopped()
    for gap in (result.gap * (1 + 5e-4), result.gap * (1 - 5e-4), None):
        assert checked(result, data, tmp_path, edit=lambda document, gap=gap: document.update(gap=gap)).accepted
    for bad in ("x", [], True):
        with pytest.raises(DataError, match="'gap' cannot be"):
            checked(result, data, tmp_path, edit=lambda document, bad=bad: document.update(gap=bad))
    with pytest.raises(DataError, match="has no 'gap'"):
        checked(result, data, tmp_path, edit=lambda document: document.pop("gap") and None)


@pytest.mark.parametrize("status", ["NO_SOLUTION", "RELAXED"])
def test_without_an_incumbent_there_is_no_gap(status: str) -> None:
    result, data = stopped()
    gone = no_incumbent(document_of(result), status)
    nothing: dict[str, Any] = {"upper": None, "lower": None, "sigma": {}}
    relaxed = nothing if status == "RELAXED" else None
    for gap in (0.0, result.gap):
        report = directly(result, data, **gone, gap=gap, relaxed=relaxed)
        assert not report.accepted
        assert "there is none" in report.reason or "RELAXED" in report.reason
    assert directly(result, data, **gone, gap=None, relaxed=relaxed).accepted == (status == "NO_SOLUTION")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("n", [40, 200])
def test_a_worse_classifier_of_the_rho_form_is_not_optimal(n: int) -> None:
    """Values of −1/(4v), some 1e-7 here: less than 1e-12·C·n, and less than 1e-10 at a larger C."""
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 6))
    y = np.where(X[:, 0] - X[:, 1] + rng.normal(size=n) > 0, 1.0, -1.0)
    data = Instance.from_arrays(X, y)
    for C in (1e4, 1e7):
        given: dict[str, Any] = {"loss": "squared-hinge", "margin": "rho", "M": 2, "C": C}
        result = mipfs.solve(Problem(data, **given))
        assert mipfs.verify(result, data).accepted
        other = next(name for name in data.feature_names if name not in result.selected)
        worse = mipfs.solve(Problem(data, **given, forced_in=(other,)))
        off = (worse.objective - result.objective) / abs(worse.objective)
        assert off > 1e-3
        stated = json.loads(worse.to_json())
        edits = {name: stated[name] for name in ("objective", "selected", "weights", "intercept", "columns", "scaling")}
        gap = (worse.objective - result.bound) / abs(worse.objective)
        report = directly(result, data, **edits, status="OPTIMAL", gap=gap)
        assert "OPTIMAL to a gap of 0.0001, but only" in report.reason
        higher = directly(result, data, bound=result.objective * (1 - 1e-7), gap=None)
        assert not higher.accepted


def test_values_of_a_trillionth_are_told_apart() -> None:
    data = make_data(np.random.default_rng(2), n=24, p=5)
    result = mipfs.solve(Problem(data, M=2, C=5e-13), gap=1e-6)
    report = mipfs.verify(result, data)
    assert report.accepted, report.reason
    assert report.objective < 1.3e-11
    for name, factor in (("bound", 1 + 1e-6), ("objective", 1 - 1e-6), ("objective", 1 + 1e-6)):
        stated = getattr(result, name) * factor
        assert not directly(result, data, **{name: stated}, gap=None).accepted


@pytest.mark.sampled(5)
@pytest.mark.parametrize("driver", ["kelley", "branch", "gbd", "conic"])
@pytest.mark.parametrize("margin", ["unit", "rho"])
def test_a_run_that_a_limit_stopped_before_a_bound_claims_none(driver: str, margin: str, tmp_path: Path) -> None:
    data = make_data(np.random.default_rng(0), n=30, p=5)
    problem = Problem(data, M=2, C=1.0, loss="squared-hinge", margin=margin)
    for limit in ({"iteration_limit": 0}, {"time_limit": 0.0}):
        result = mipfs.solve(problem, driver, **limit)
        assert result.status.name in ("FEASIBLE", "OPTIMAL")
        report = checked(result, data, tmp_path)
        assert report.accepted, report.reason
        if not math.isfinite(result.bound):
            assert json.loads((tmp_path / "r.json").read_text())["certificate"]["bound"] is None
            assert report.bound == -math.inf
            lifted = directly(result, data, bound=2.0 * result.objective)
            assert "is not proven" in lifted.reason


def test_nothing_allowed_is_claimed_by_its_status_alone() -> None:
    result, data = stopped()
    entry = document_of(result)["certificate"] | {"bound": None}
    gone = no_incumbent(document_of(result), "INFEASIBLE") | {"bound": None, "gap": None, "certificate": entry}
    assert "proves only" in directly(result, data, **gone).reason
    entry = entry | {"bound": 1.0}
    assert not directly(result, data, **gone | {"certificate": entry}).accepted


def test_an_optimum_of_zero_is_proven_exactly() -> None:
    """Recall among all samples is 1 whatever w is: every selection is worth 0, and only 0 bounds it to a gap."""
    rng = np.random.default_rng(0)
    data = Instance.from_arrays(rng.integers(0, 2, (4, 3)).astype(float), [1, -1, 1, -1])
    given: dict[str, Any] = {"loss": "structural", "measure": "recall-at-k", "k": 4, "bias": False}
    result = mipfs.solve(Problem(data, M=1, C=1.0, **given), "branch")
    assert (result.status.name, result.objective, result.bound) == ("OPTIMAL", 0.0, 0.0)
    report = mipfs.verify(result, data)
    assert report.accepted, report.reason
    assert (report.bound, report.gap) == (0.0, 0.0)
    entry = document_of(result)["certificate"] | {"bound": -1e-300}
    from mipfs.check.joint import JOINT
    from mipfs.check.tree import check

    lower = document_of(result) | {"bound": -1e-300, "certificate": entry, "gap": None}
    assert "OPTIMAL to a gap of 0.0001, but only inf" in check(lower, arrays_of(result), data, JOINT).reason


# --- what nobody knows ------------------------------------------------------------------------------------------


@pytest.mark.sampled(11)
@pytest.mark.parametrize(
    "place", ["params", "scaling", "labels", "certificate", "rows", "extra", "near_optimal", "support", "relaxed", ""]
)
def test_a_field_that_the_checker_does_not_know_is_refused(place: str) -> None:
    data = make_data(np.random.default_rng(3), n=20, p=4)
    extra = Extras(("extra_z",), np.zeros(1), np.ones(1), np.array([False]))
    rows = Rows(sparse.csr_array([[1.0, 1.0, 0, 0, 1.0]]), np.zeros(1), np.array([2.0]), ("r",), ("",), extra)
    problem = Problem(data, rows=rows, M=2)
    result = mipfs.solve(problem, "kelley") if place == "relaxed" else mipfs.solve(problem, "branch", pool_gap=0.2)
    assert directly(result, data).accepted
    document = document_of(result)
    holder: dict[str, Any] = {
        "": document, "rows": document["rows"][0], "extra": document["extra"]["extra_z"],
        "support": (document["near_optimal"] or {"supports": [{}]})["supports"][0],
    }.get(place) or document[place]  # fmt: skip
    holder["weight_limits"] = {"x1": [0, 1]}
    report = directly(result, data, **document)
    assert "'weight_limits' is stated, which this checker does not know" in report.reason


def test_what_is_unknown_in_a_file_reaches_the_checker(tmp_path: Path) -> None:
    result, data = stopped()
    report = checked(result, data, tmp_path, edit=lambda document: document.update(weight_bounds={"x1": [0, 1]}))
    assert "'weight_bounds' is stated" in report.reason


# --- relaxations ------------------------------------------------------------------------------------------------


def relaxations() -> list[tuple[Result, Instance]]:
    data = make_data(np.random.default_rng(3), n=20, p=6)
    extra = Extras(("extra_z",), np.zeros(1), np.array([2.0]), np.array([True]))
    A = sparse.csr_array([[1.0, 1, 1, 1, 1, 1, -2.0], [3.0, 2, 1, 3, 2, 1, 0]])
    rows = Rows(A, np.array([0.0, -np.inf]), np.array([0.0, 5.0]), ("even", "budget"), ("", ""), extra)
    plain, with_rows = Problem(data, M=2, C=0.1), Problem(data, M=3, C=0.1, rows=rows)
    given: list[tuple[Problem, str, dict[str, Any]]] = [
        (plain, "kelley", {}),
        (plain.replace(loss="squared-hinge"), "kelley", {}),
        (plain, "conic", {}),
        (with_rows, "kelley", {}),
        (with_rows, "kelley", {"relaxation": "box"}),
        (plain.replace(loss="squared-hinge", margin="rho"), "kelley", {}),
        (plain.replace(loss="structural", measure="f1", bias=False, C=10.0), "two_layer", {}),
    ]
    return [(mipfs.solve(problem, driver, **more), data) for problem, driver, more in given]


def as_relaxed(result: Result) -> dict[str, Any]:
    """The same relaxation without its incumbent."""
    document = document_of(result)
    return document | no_incumbent(document, "RELAXED") | {"gap": None, "extra": document["extra"]}


def says(result: Result, data: Instance, document: dict[str, Any]) -> Any:
    from mipfs.check.joint import JOINT
    from mipfs.check.tree import check

    reading = {"reading": JOINT} if document["params"]["loss"] == "structural" else {}
    return check(document, arrays_of(result), data, **reading)


@pytest.mark.sampled(7)
@pytest.mark.parametrize("k", range(7))
def test_the_upper_side_of_a_relaxation_is_recomputed_where_it_stands(k: int) -> None:
    result, data = relaxations()[k]
    honest = as_relaxed(result)
    for name in honest["extra"]:
        honest["extra"][name] = honest["extra"][name] | {"value": None}
    relaxed = honest["relaxed"]
    assert relaxed["sigma"]
    assert mipfs.verify(result, data).accepted
    if result.relaxed is not None and result.relaxed["upper"] - result.bound <= 1e-4 * abs(result.relaxed["upper"]):
        report = says(result, data, honest)
        assert report.accepted, report.reason
        assert "recomputed" in report.relaxation[0]
    first = next(iter(relaxed["sigma"]))
    larger = relaxed["sigma"] | {first: 0.5 * relaxed["sigma"][first]}
    for what, edit in {
        "upper side": {"upper": relaxed["upper"] - 1e-3 * abs(relaxed["upper"])},
        "nothing shows": {"weights": None},
        "no upper side": {"upper": None},
        "": {"sigma": larger},
        "no weight": {"weights": {}},
        "lower side": {"lower": relaxed["lower"] + 1e-3 * abs(relaxed["upper"])},
    }.items():
        report = says(result, data, honest | {"relaxed": relaxed | edit})
        assert not report.accepted, what
        assert what in report.reason or what == "no weight", report.reason
    bound = {"upper": honest["bound"], "lower": honest["bound"], "sigma": {}}
    assert not says(result, data, honest | {"relaxed": bound}).accepted


def test_every_selection_of_a_mixture_is_one_of_S() -> None:
    result, data = relaxations()[3]
    relaxed = document_of(result)["relaxed"]
    assert len(relaxed["mixture"]) >= 1
    assert directly(result, data).accepted
    one, *rest = relaxed["mixture"]
    for member in (
        one | {"selected": ["x1"]},  # an odd number
        one | {"extra": {"extra_z": 5.0}},
        one | {"extra": None},
        one | {"share": -1.0},
        one | {"share": 0.5 * one["share"]} if rest else one | {"share": 0.0},
    ):
        assert not directly(result, data, relaxed=relaxed | {"mixture": [member, *rest]}).accepted
    assert not directly(result, data, relaxed=relaxed | {"mixture": []}).accepted


def test_the_value_of_a_program_that_is_weaker_than_its_sigma_is_the_solvers_word() -> None:
    pytest.importorskip("cvxpy")
    from mipfs import models

    data = make_data(np.random.default_rng(3), n=20, p=6)
    result = mipfs.solve(models.qcqp_ssvm(data, M=2, C=1.0))
    assert result.status.name in ("FEASIBLE", "OPTIMAL")
    report = mipfs.verify(result, data)
    assert report.accepted, report.reason
    assert any("the word of the solver" in line for line in report.unchecked)


@pytest.mark.slow
def test_a_relaxation_s_value_is_what_the_oracle_has() -> None:
    """R lies between the sides that are shown, and both at the optimum over the simplex of all pairs of features."""
    data = make_data(np.random.default_rng(8), n=16, p=3)
    result = mipfs.solve(Problem(data, M=1, C=1.0, loss="squared-hinge"), "kelley", gap=1e-7)
    assert result.relaxed is not None
    truth, best = Truth(json.loads(result.to_json()), data), np.inf
    from tests.oracles import svm_value

    for a in np.linspace(0, 1, 21):
        for b in np.linspace(0, 1 - a, 21):
            sigma = np.sqrt([a, b, max(0.0, 1 - a - b)])
            best = min(best, svm_value(truth.X * sigma, data.y, truth.c, True, "squared-hinge").upper)
    assert result.relaxed["upper"] <= best * (1 + 1e-6)
    assert result.relaxed["upper"] >= best * (1 - 2e-2)


def test_a_list_that_rounding_left_empty_is_no_reason_to_refuse() -> None:
    """Screening then reached for a limit of infinity: rows that refute a leaf after screening refuted nothing."""
    draw = draws.draw(4792)
    result = mipfs.solve(draw.problem, draw.driver, **draw.options)
    assert result.near_optimal is not None
    assert not result.near_optimal["complete"]
    report = mipfs.verify(result, draw.problem.data)
    assert report.accepted, report.reason


@pytest.mark.parametrize("what", ["shift", "scale"])
def test_the_scaling_stands_there_of_no_feature_too(what: str) -> None:
    data = make_data(np.random.default_rng(3))
    result = mipfs.solve(Problem(data, M=0))
    document, arrays = document_of(result), arrays_of(result)
    assert check(document, arrays, data).accepted
    document["scaling"].pop(what)
    assert not check(document, arrays, data).accepted
