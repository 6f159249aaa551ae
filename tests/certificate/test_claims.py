"""Accepted means: status, objective and bound are proven for the problem in words; predict uses what the data has."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import mipfs
from mipfs.data.instance import Instance, Labels, Row, SelectDefaults
from mipfs.problem import Problem
from mipfs.result.result import Result
from mipfs.result.words import problem_words, rows_in_words
from mipfs.selection.rows import Extras, Rows
from tests.certificate import attack, honest
from tests.certificate.trees import Arrays, arrays_of, checked, directly, document_of, make_data, no_incumbent
from tests.certificate.truth import Truth, lies


def case(rows: bool = False, **options: Any) -> tuple[Result, Instance]:
    data = make_data(np.random.default_rng(1), n=14, p=4, scale="standard", labels=Labels("no", "yes"))
    problem = Problem(data, M=2)
    made = problem.with_rows([[1, 1, 1, 1]], 0, 3) if rows else problem
    return mipfs.solve(made, "branch", **options), data


def worse(result: Result, data: Instance, rows: bool) -> dict[str, Any]:
    """The JSON of the same problem with a selection that is not optimal, all about it consistent."""
    problem = Problem(data, M=2, forced_in=("x1",))
    other = mipfs.solve(problem.with_rows([[1, 1, 1, 1]], 0, 3) if rows else problem)
    assert other.objective > result.objective * 1.01
    stated = json.loads(other.to_json())
    names = ("objective", "selected", "weights", "intercept", "columns", "scaling")
    return {name: stated[name] for name in names} | {"decided": None}  # up to a worse objective less is decided


# --- status, objective, bound ---------------------------------------------------------------------------------


def test_a_ray_of_subnormal_multipliers_refutes_nothing(tmp_path: Path) -> None:
    """Six rows of decimals that all features together satisfy; their products with 5e-324 round up to the bounds."""
    data = make_data(np.random.default_rng(0), n=12, p=3)
    A = [[0.3, 0.3, 0.3], [0.4, 0.2, 0.3], [0.2, 0.4, 0.3], [0.3, 0.2, 0.4], [0.2, 0.3, 0.4], [0.4, 0.3, 0.2]]
    result = mipfs.solve(Problem(data).with_rows(A, 0.6, np.inf))
    assert mipfs.verify(result, data).accepted

    def empty(document: dict[str, Any]) -> None:
        document |= no_incumbent(document, "INFEASIBLE") | {"bound": None}
        document["certificate"]["bound"] = None

    for unit in (5e-324, 1e-310, 2.0**-501):

        def refute(arrays: Arrays, unit: float = unit) -> None:
            for name, value in (("feature", -1), ("children", -1), ("dual", -2), ("multiplier", 0)):
                arrays[name] = np.full_like(arrays[name][:1], value)
            arrays["multipliers"] = np.full((1, 6), unit)

        report = checked(result, data, tmp_path, refute, empty)
        assert not report.accepted
        assert "nothing shows that leaf 0 holds no selection" in report.reason


@pytest.mark.parametrize("kind", ["tree", "relaxation"])
@pytest.mark.parametrize("rows", [False, True])
def test_no_kind_of_certificate_waives_the_bound_of_the_result(rows: bool, kind: str) -> None:
    result, data = case(rows)
    entry = document_of(result)["certificate"] | {"kind": kind}
    given = worse(result, data, rows)
    report = directly(result, data, **given, status="FEASIBLE", bound=given["objective"], gap=0.0, certificate=entry)
    assert "is not proven" in report.reason
    gone = no_incumbent(document_of(result), "RELAXED") | {"bound": 1e300, "gap": None, "certificate": entry}
    assert "is not proven" in directly(result, data, **gone).reason
    for bound in (float("inf"), "Infinity", "1e999", True, 10**400):
        report = directly(result, data, bound=bound, certificate=entry)
        assert not report.accepted
        assert "no finite number" in report.reason


def test_the_asked_gap_belongs_to_the_document_and_is_said() -> None:
    result, data = case()
    document, given = document_of(result), worse(*case(), False)
    entry = document["certificate"] | {"gap": 0.99}
    gap = (given["objective"] - document["bound"]) / given["objective"]
    report = directly(result, data, **given, gap=gap, certificate=entry)
    assert "not that of the parameters" in report.reason
    assert "OPTIMAL to a gap of 0.0001, but only" in directly(result, data, **given, gap=gap).reason
    report = directly(result, data, **given, gap=gap, certificate=entry, params=document["params"] | {"gap": 0.99})
    assert report.accepted  # true, and said
    assert report.asked == 0.99
    assert report.gap == pytest.approx(gap, rel=1e-6)
    assert "gap of the result" in directly(result, data, gap=0.0).reason


def test_an_objective_beyond_floating_point_is_no_objective() -> None:
    """The square of a weight of 1e300 is infinite, and so would be the allowance on it."""
    result, data = case()
    for weight in (1e200, 1e300):
        report = directly(result, data, weights={name: weight for name in result.weights})
        assert not report.accepted
        assert "beyond floating point" in report.reason


def test_a_relaxation_claims_no_more_than_its_bound() -> None:
    data = make_data(np.random.default_rng(3), n=20, p=6)
    result = mipfs.solve(Problem(data, M=2, C=0.1), "kelley")
    assert mipfs.verify(result, data).accepted
    assert result.relaxed is not None
    for side, factor in (("lower", 1.01), ("upper", 0.9)):
        relaxed = {**result.relaxed, side: result.relaxed[side] * factor}
        assert f"the relaxation's {side} side" in directly(result, data, relaxed=relaxed).reason


@pytest.mark.slow
def test_the_word_of_a_solver_is_told_from_a_proof() -> None:
    pytest.importorskip("pyscipopt", reason="the monolithic driver needs SCIP (extra 'scip')")
    data = make_data(np.random.default_rng(3), n=20, p=5)
    result = mipfs.solve(Problem(data, M=2), "monolithic")
    report = mipfs.verify(result, data)
    assert not report.accepted
    assert "the solver's own word: the certificate shows" in report.reason
    assert report.objective == pytest.approx(result.objective, rel=1e-9)
    low, high = Truth(json.loads(result.to_json()), data).optimum()
    assert -1e-299 <= report.bound <= high
    assert report.objective >= low * (1 - 1e-9)


# --- what predict uses ----------------------------------------------------------------------------------------


def test_everything_that_predict_uses_is_compared_with_the_data() -> None:
    result, data = case()
    document = document_of(result)
    scaling = document["scaling"]
    one, *_ = document["columns"]
    moved = {name: (place + 1) % 4 for name, place in document["columns"].items()}
    swapped = {"negative": "yes", "positive": "no"}
    for what, edit in {
        "is column": {"columns": moved},
        "not those of the selected": {"columns": {one: document["columns"][one]}},
        "label is": {"labels": swapped},
        "features, but the data has": {"n_features": 5},
        "the shift of": {"scaling": scaling | {"shift": {**scaling["shift"], one: 0.5}}},
        "the scale of": {"scaling": scaling | {"scale": {**scaling["scale"], one: 0.5}}},
        "the scale is not that": {"scaling": scaling | {"scale": {}}},
    }.items():
        report = directly(result, data, **edit)
        assert not report.accepted
        assert what in report.reason


# --- near-optimal supports ------------------------------------------------------------------------------------


@pytest.mark.sampled(5)
@pytest.mark.parametrize("driver", ["branch", "gbd"])
@pytest.mark.parametrize("options", [{"pool_gap": 0.8}, {"pool_size": 4}, {"pool_gap": 0.9, "pool_size": 3}])
def test_a_complete_list_is_proven_and_a_shortened_one_is_not(driver: str, options: dict[str, Any]) -> None:
    _, data = case()
    result = mipfs.solve(Problem(data, M=2), driver, **options)
    near = document_of(result)["near_optimal"]
    assert near["complete"]
    assert len(near["supports"]) >= 2
    assert directly(result, data).accepted
    for k in range(1, len(near["supports"])):
        supports = [entry for i, entry in enumerate(near["supports"]) if i != k]
        names = [name for entry in supports for name in entry["selected"]]
        share = {name: names.count(name) / len(supports) for name in names}
        short = near | {"supports": supports, "share": share}
        report = directly(result, data, near_optimal=short)
        assert not report.accepted
        assert "leave room for others" in report.reason
        assert directly(result, data, near_optimal=short | {"complete": False}).accepted


def test_what_is_said_of_near_optimal_supports() -> None:
    result, data = case(pool_gap=0.8)
    near = document_of(result)["near_optimal"]
    first, second, *rest = near["supports"]
    gap = 0.5 * second["gap"]
    lower = second | {"objective": first["objective"] * (1 + gap), "gap": gap}
    for what, supports in {
        "the objective of near-optimal support 2 is": [first, lower, *rest],
        "the incumbent another": [first | {"objective": 0.1}, second, *rest],
        "listed twice": [first, first, second, *rest],
        "in order": [first, *rest[::-1], second] if rest else [second, first],
        "the gap is": [first, second | {"gap": 0.0}, *rest],
        "its weights are not stated": [first, {k: v for k, v in second.items() if k != "weights"}, *rest],
        "supports add nothing": [first, second | {"ties": -1}, *rest],
        "3 features are selected": [first, second | {"selected": ["x1", "x2", "x3"]}, *rest],
    }.items():
        report = directly(result, data, near_optimal=near | {"supports": supports, "complete": False})
        assert not report.accepted
        assert what in report.reason, report.reason
    assert "shares" in directly(result, data, near_optimal=near | {"share": {}}).reason
    above = directly(result, data, near_optimal=near | {"gap": gap, "complete": False})
    assert "lies above the limit" in above.reason
    found = directly(result, data)
    assert found.listed[0].startswith(f"{len(near['supports'])} near-optimal supports, objectives within ")
    assert found.listed[0].endswith("no other is missing")
    ties = [first | {"ties": 3}, second, *rest]
    assert any("weight 0" in one for one in directly(result, data, near_optimal=near | {"supports": ties}).unchecked)


# --- the statement --------------------------------------------------------------------------------------------


def described() -> Instance:
    rows = [Row("pair", {"x1": 1.0, "x3": 0.5}, -np.inf, 1.0, "data.toml:3")]
    select = SelectDefaults(3, ("x2",), ("x4",))
    return make_data(np.random.default_rng(5), n=20, p=5, rows=rows, select=select, penalty={"x1": 0.25})


def test_the_problem_that_was_checked_is_said_in_words() -> None:
    data = described()
    report = mipfs.verify(mipfs.solve(Problem(data, C=0.5)), data)
    assert report.accepted
    assert report.statement == (
        "minimise ½‖w‖² + C Σ max(0, 1 − m_i), C = 0.5, with a free intercept",
        "data: 20 samples, 5 features, scale 'none'",
        "select at most 3 of 5 features; always x2; never x4",
        "labels: 1 is +1 and -1 is -1",
        "rules of reading and scaling: 6",
        "penalties: x1 0.25",
        "row 'pair': x1 + 0.5 x3 <= 1 (data.toml:3)",
    )
    assert report.differs == ()


@pytest.mark.parametrize(
    "asked",
    [
        {"loss": "hinge"},
        {"loss": "logistic", "M": None, "lam": 0.1},
        {"loss": "squared-hinge", "bias": False},
        {"loss": "squared-hinge", "margin": "rho"},
        {"loss": "structural", "measure": "fbeta", "beta": 2.0, "bias": False},
        {"loss": "hinge", "class_weight": {1: 3.0, -1: 0.1}},
    ],
    ids=lambda asked: "-".join(map(str, asked.values())),
)
def test_a_report_says_the_problem_in_the_words_of_the_checker(asked: dict[str, Any]) -> None:
    """Every line of the report that is about the problem alone, and not about the columns or the classes."""
    data = described()
    if "margin" in asked:  # the ρ-form is that of a problem without penalties
        data = dataclasses.replace(data, penalty={})
    result = mipfs.solve(Problem(data, C=0.5, **asked))
    checked = mipfs.verify(result, data)
    assert checked.accepted, checked.reason
    said = [line[0].lower() + line[1:-1] for line in problem_words(result)]
    begins = ("minimise ", "select ", "measure: ", "class weights: ")
    stated = [line for line in said if line.startswith(begins)]
    assert len(stated) == 2 + ("measure" in asked) + ("class_weight" in asked)
    assert stated == [line for line in checked.statement if line.startswith(begins)]
    rows = [f"row {row.name!r}: {row.text} ({row.origin})" for row in rows_in_words(result) if row.name != "M"]
    assert rows == [line for line in checked.statement if line.startswith("row ")] != []


def test_a_problem_that_lacks_what_the_data_asks_for_is_what_its_user_states_and_that_is_said() -> None:
    data = described()
    for problem, said in (
        (Problem(data, rows=Rows.empty(5)), "the data asks for row 'pair': x1 + 0.5 x3 <= 1 (data.toml:3); the result"),
        (Problem(data, forced_in=()), "the data forces 'x2' in; the result's problem does not"),
        (Problem(data, forced_out=()), "the data forces 'x4' out; the result's problem does not"),
    ):
        report = mipfs.verify(mipfs.solve(problem), data)
        assert report.accepted, report.reason
        assert len(report.differs) == 1
        assert report.differs[0].startswith(said)
        assert mipfs.verify(mipfs.solve(problem), data, Rows.empty(5)).accepted  # no rows beside those of the data
    report = mipfs.verify(mipfs.solve(Problem(data, M=2)), data)
    assert report.accepted  # M may be set, and is said
    assert report.differs == ("M is 2; the data asks for 3",)


def test_the_rows_of_a_result_are_compared_with_those_given() -> None:
    from scipy import sparse

    data = described()
    given = Rows(sparse.csr_array([[1.0, 1.0, 1.0, 0.0, 0.0]]), np.array([1.0]), np.array([2.0]), ("some",), ("",))
    own = Problem(data)
    assert own.rows is not None
    result = mipfs.solve(own.replace(rows=own.rows.stack(given)))
    assert mipfs.verify(result, data).accepted
    assert mipfs.verify(result, data, given).accepted
    for rows, reason in (
        (Rows.empty(5), "neither a row of the data nor one of those given"),
        (given.stack(Rows(given.matrix, given.lb, given.ub, ("more",), ("",))), "the given row 'more' is no row"),
        (Rows(given.matrix, given.lb, np.array([3.0]), ("some",), ("",)), "neither a row of the data"),
    ):
        report = mipfs.verify(result, data, rows)
        assert not report.accepted
        assert reason in report.reason


# --- extra variables that are whole numbers ---------------------------------------------------------------------


@pytest.mark.sampled(13)
@pytest.mark.parametrize("driver", ["branch", "gbd", "kelley"])
@pytest.mark.parametrize(("least", "most"), [(0, 3), (3, 3), (1, 1)])
@pytest.mark.parametrize("end", [np.inf, 5.0])
def test_splits_on_whole_extra_variables_show_what_rows_over_them_forbid(
    driver: str, least: int, most: int, end: float, tmp_path: Path
) -> None:
    """An even number of features: with three or one of them nothing is allowed, which no multipliers alone show."""
    data = make_data(np.random.default_rng(14), p=4)
    extra = Extras(("extra_z",), np.zeros(1), np.array([end]), np.array([True]))
    A = sparse.csr_array([[1.0, 1.0, 1.0, 1.0, -2.0], [1.0, 1.0, 1.0, 1.0, 0.0]])
    rows = Rows(A, np.array([0.0, least]), np.array([0.0, most]), ("even", "count"), ("", ""), extra)
    result = mipfs.solve(Problem(data, rows=rows, M=3), driver)
    assert (result.status.name == "INFEASIBLE") == (least == most)
    assert checked(result, data, tmp_path).accepted
    document = json.loads(result.to_json())
    assert lies(document, document, data) == []

    def other(arrays: Arrays) -> None:
        arrays["integer_value"] = np.full(arrays["integer_value"].size, b"1/3")

    def large(arrays: Arrays) -> None:
        arrays["whole"][:, 1] = 2**53

    def continuous(document: dict[str, Any]) -> None:
        document["extra"]["extra_z"]["integer"] = False

    if result.claim is not None and result.claim.proof.arrays()["whole"].size:
        report = checked(result, data, tmp_path, edit=continuous)
        assert "no whole number" in report.reason
        assert "floats do not hold" in checked(result, data, tmp_path, large).reason
    if result.status.name == "INFEASIBLE":
        assert "no whole numbers fit" in checked(result, data, tmp_path, other).reason


# --- honest results -------------------------------------------------------------------------------------------


@pytest.mark.sampled(17)
@pytest.mark.parametrize("seed", range(80))
def test_honest_results_of_every_kind_are_accepted_and_true(seed: int) -> None:
    problem, result = honest.solve(seed)
    if result.claim is None:
        assert result.status.name in ("NO_SOLUTION", "NUMERICAL")
        return
    report = mipfs.verify(result, problem.data)
    assert report.accepted, report.reason
    if problem.loss != "structural" and problem.C <= 10:
        document = json.loads(result.to_json())
        assert lies(document, document, problem.data) == []


@pytest.mark.sampled(13)
@pytest.mark.parametrize("seed", range(108))
def test_honest_results_of_the_other_kinds_are_accepted(seed: int) -> None:
    kind, data, result = honest.any_result(seed)
    if result.claim is not None:
        assert honest.refusals(result, data) == [], kind


@pytest.mark.sampled(12)
@pytest.mark.parametrize("seed", range(40))
def test_a_large_sum_of_weights_against_a_small_objective(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(3, 9)), int(rng.integers(2, 6))
    y = np.where(rng.random(n) > 0.5, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    data = Instance.from_arrays(rng.normal(size=(n, p)) * 1000, y)
    for driver in ("branch", "gbd"):
        report = mipfs.verify(mipfs.solve(Problem(data, M=2, C=1e4), driver), data)
        assert report.accepted, report.reason


# --- attacks --------------------------------------------------------------------------------------------------


@pytest.mark.sampled(13)
@pytest.mark.parametrize("block", range(12))
def test_what_is_accepted_of_mutated_documents_is_true(block: int) -> None:
    for seed in range(20 * block, 20 * (block + 1)):
        document, arrays, how, original, data = attack.attacked(seed)
        report = attack.judge(document, arrays, data)
        assert "\n" not in report.reason
        assert report.accepted == (report.reason == "")
        if report.accepted:
            assert lies(document, original, data) == [], (seed, how)


@pytest.mark.every
@pytest.mark.slow
def test_malformed_documents_give_one_line_and_no_traceback() -> None:
    result, data = case(pool_gap=0.1)
    document, arrays = document_of(result), arrays_of(result)
    for path in attack.places(document):
        for odd in (None, [], {}, "x", -1, 10**400, [[]], float("nan")):
            forged = json.loads(json.dumps(document))
            attack.at(forged, path[:-1])[path[-1]] = odd
            report = attack.judge(forged, arrays, data)
            assert "\n" not in report.reason
            assert report.accepted == (report.reason == "")
