"""Claims that were made up by someone who controls the JSON and the sidecar, SHA-256 and all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mipfs
from mipfs.check.result import check_result
from mipfs.data.instance import Instance
from mipfs.errors import DataError
from mipfs.problem import Problem
from mipfs.result.result import Result
from mipfs.result.verification import claim_of
from tests.certificate.trees import LOSSES, Arrays, checked, make_data, no_incumbent

Edit = Callable[[dict[str, Any]], None]


def joint(measure: str = "f1", **given: Any) -> tuple[Result, Instance]:
    data = make_data(np.random.default_rng(1), n=20, p=5, scale=given.pop("scale", "none"))
    problem = Problem(data, loss="structural", bias=False, **({"M": 2, "C": 10.0, "measure": measure} | given))
    return mipfs.solve(problem, "gbd", gap=1e-6), data


def pointwise(loss: str = "hinge", **given: Any) -> tuple[Result, Instance]:
    data = make_data(np.random.default_rng(1), n=30, p=5)
    return mipfs.solve(Problem(data, loss=loss, **({"M": 2} | given)), "gbd", gap=1e-6), data


def params(**changes: Any) -> Edit:
    return lambda document: document["params"].update(changes)


def certificate(**changes: Any) -> Edit:
    return lambda document: document["certificate"].update(changes)


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (params(measure="prbep"), "other parameters"),
        (params(measure="f1"), "other parameters"),
        (params(k=3.0), "no number"),
        (params(k=True), "no number"),
        (params(beta=2.0), "other parameters"),
        (params(M=2.9), "a whole one"),
        (params(bias=0), "true or false"),
        (params(C="10"), "a number"),
        (params(C=1e308), "no positive number"),
        (certificate(kind="foo"), "kind 'foo'"),
        (certificate(gap=float("1e9")), "not that of the parameters"),
    ],
)
def test_another_statement_of_the_problem(edit: Edit, reason: str, tmp_path: Path) -> None:
    result, data = joint("recall-at-k", k=3)
    assert checked(result, data, tmp_path).accepted
    report = checked(result, data, tmp_path, edit=edit)
    assert not report.accepted
    assert reason in report.reason, report.reason


@pytest.mark.parametrize("schema", [0, 2, 1.0, True, None, "1"])
def test_any_other_schema_is_refused_by_the_checker_too(schema: object) -> None:
    """By itself, whatever read the file before."""
    result, data = joint("f1")
    document, arrays = claim_of(result)
    assert check_result(document, arrays, data).accepted
    for other in ({**document, "schema": schema}, {name: v for name, v in document.items() if name != "schema"}):
        assert "schema" in check_result(other, arrays, data).reason


def test_an_M_in_quotes_is_not_even_read(tmp_path: Path) -> None:
    result, data = joint("recall-at-k", k=3)
    with pytest.raises(DataError, match=r"'params\.M' cannot be"):
        checked(result, data, tmp_path, edit=params(M="2"))


def test_a_beta_beyond_floating_point(tmp_path: Path) -> None:
    result, data = joint("fbeta", beta=2.0)
    report = checked(result, data, tmp_path, edit=params(beta=8e153))
    assert "out of its range" in report.reason


@pytest.mark.parametrize("loss", [*LOSSES, "structural"])
def test_multipliers_whose_products_are_no_numbers(loss: str, tmp_path: Path) -> None:
    """A'y = inf − inf, which is neither negative nor anything else: the leaf would prove g(α) alone."""
    ring = np.array([[2.0, -2.0, 0, 0, 0], [0, 2.0, -2.0, 0, 0], [-2.0, 0, 2.0, 0, 0]])
    given: dict[str, Any] = {"bias": False, "measure": "f1", "C": 10.0} if loss == "structural" else {}
    data = make_data(np.random.default_rng(1), n=20, p=5)
    result = mipfs.solve(Problem(data, loss=loss, M=3, **given).with_rows(ring, 0.0, np.inf), "gbd", gap=1e-6)
    assert checked(result, data, tmp_path).accepted

    def tamper(arrays: Arrays) -> None:
        arrays["multipliers"] = np.full((1, 3), 1.7e308)
        arrays["multiplier"][:] = 0

    def edit(document: dict[str, Any]) -> None:
        document["status"], document["bound"] = "FEASIBLE", document["objective"] * 0.999
        document["certificate"]["bound"] = document["bound"]

    assert not checked(result, data, tmp_path, tamper, edit).accepted

    def refute(arrays: Arrays) -> None:
        tamper(arrays)
        for name, value in (("feature", -1), ("children", -1), ("dual", -2), ("multiplier", 0)):
            arrays[name] = np.full_like(arrays[name][:1], value)

    def empty(document: dict[str, Any]) -> None:
        document |= no_incumbent(document, "INFEASIBLE") | {"bound": None}
        document["certificate"]["bound"] = None

    report = checked(result, data, tmp_path, refute, empty)
    assert not report.accepted
    assert "nothing shows" in report.reason


def test_the_bound_of_the_result_is_certified_whatever_the_kind(tmp_path: Path) -> None:
    result, data = pointwise()

    def edit(document: dict[str, Any]) -> None:
        document["certificate"]["kind"], document["bound"] = "relaxation", 1e6

    report = checked(result, data, tmp_path, edit=edit)
    assert not report.accepted
    assert "is not proven" in report.reason


@pytest.mark.sampled(2)
@pytest.mark.parametrize("lifted", ["both", "result's"])
def test_a_large_C_lends_no_room_to_the_bound(lifted: str, tmp_path: Path) -> None:
    """What counts as no gap, 1e-12·C·n, does not count between two bounds, nor between bound and objective."""
    data = make_data(np.random.default_rng(1), n=20, p=5)
    result = mipfs.solve(Problem(data, M=2, C=1e9), "gbd")
    assert checked(result, data, tmp_path).accepted
    more = 0.5e-12 * 1e9 * 20 + 1e-7 * abs(result.objective)

    def edit(document: dict[str, Any]) -> None:
        document["bound"] = max(document["objective"], document["bound"]) + more
        if lifted == "both":
            document["certificate"]["bound"] = document["bound"]

    assert not checked(result, data, tmp_path, edit=edit).accepted


def test_a_large_shift_hides_no_objective(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(20, 4)) + 1e6
    y = np.where(X[:, 0] > 1e6, 1.0, -1.0)
    data = Instance.from_arrays(X, y, scale="standard")
    result = mipfs.solve(Problem(data, loss="structural", bias=False, measure="f1", M=2, C=1e6), "gbd", gap=1e-6)
    assert checked(result, data, tmp_path).accepted

    def edit(document: dict[str, Any]) -> None:
        document["objective"] *= 1 - 1e-6

    assert "objective of the selected" in checked(result, data, tmp_path, edit=edit).reason


@pytest.mark.parametrize("status", ["OPTIMAL", "FEASIBLE"])
def test_nothing_is_optimal_without_an_objective(status: str, tmp_path: Path) -> None:
    result, data = pointwise()

    def edit(document: dict[str, Any]) -> None:
        document |= no_incumbent(document, status)

    assert "without an objective" in checked(result, data, tmp_path, edit=edit).reason


def test_rows_beyond_floating_point_and_names_that_shadow_features(tmp_path: Path) -> None:
    result, data = pointwise()
    one, other = result.selected

    def huge(document: dict[str, Any]) -> None:
        terms = {one: 1e308, other: 1e308}
        document["rows"] = [{"name": "huge", "terms": terms, "lb": None, "ub": 1.1e308, "origin": ""}]

    def shadow(document: dict[str, Any]) -> None:
        document["extra"] = {one: {"lb": 0.0, "ub": 1.0, "integer": False, "value": 0.0}}

    assert "not of a size from 1e-100 to 1e+100" in checked(result, data, tmp_path, edit=huge).reason
    assert "called as a feature" in checked(result, data, tmp_path, edit=shadow).reason


def test_margins_beyond_floating_point(tmp_path: Path) -> None:
    result, data = joint()

    def edit(document: dict[str, Any]) -> None:
        document["weights"] = dict.fromkeys(document["weights"], 1.7e308)

    assert not checked(result, data, tmp_path, edit=edit).accepted


@pytest.mark.sampled(2)
@pytest.mark.parametrize("C", [1e4, 1e6, 1e8])
def test_an_honest_result_at_a_large_C_is_accepted(C: float, tmp_path: Path) -> None:
    for seed in range(3):
        rng = np.random.default_rng(seed)
        data = make_data(rng, X=rng.normal(size=(15, 5)) + 1e3, scale="standard")
        result = mipfs.solve(Problem(data, loss="structural", bias=False, measure="f1", M=2, C=C), "gbd")
        report = checked(result, data, tmp_path)
        assert report.accepted, report.reason
