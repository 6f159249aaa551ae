"""Weights of the classes: C_i = C · class weight · sample weight, against scikit-learn and sample weights."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.class_weight import compute_class_weight

import mipfs
from mipfs.data.instance import Instance, Labels
from mipfs.errors import DataError, UsageError
from mipfs.result.result import Result
from tests.certificate.trees import checked
from tests.oracles import svm_value


def rare(n: int = 80, p: int = 5, **given: Any) -> Instance:
    r = np.random.default_rng(4)
    X = r.normal(size=(n, p))
    y = np.where(X[:, 0] - 0.7 * X[:, 1] + 0.8 * r.normal(size=n) > 1.0, 1.0, -1.0)
    return Instance.from_arrays(X, y, labels=Labels("good", "bad"), **given)


def by_sample(data: Instance, good: float, bad: float) -> np.ndarray:
    return np.where(data.y > 0, bad, good)


@pytest.mark.parametrize("given", ["balanced", {"bad": 5, "good": 0.5}, {"bad": 3}])
@pytest.mark.parametrize("loss", ["hinge", "squared-hinge", "logistic"])
def test_they_are_those_of_scikit_learn(loss: str, given: Any) -> None:
    data = rare()
    bias = loss != "squared-hinge"  # liblinear penalises the intercept
    result = mipfs.solve(mipfs.Problem(data, loss=loss, bias=bias, C=0.5, class_weight=given, cardinality=False))
    weight = given if given == "balanced" else {1: given["bad"], -1: given.get("good", 1.0)}
    model = {
        "hinge": SVC(kernel="linear", C=0.5, class_weight=weight, tol=1e-9),
        "squared-hinge": LinearSVC(C=0.25, class_weight=weight, fit_intercept=False, tol=1e-9, max_iter=100000),
        "logistic": LogisticRegression(C=0.5, class_weight=weight, tol=1e-10, max_iter=10000),
    }[loss].fit(data.X, data.y)
    found = [result.weights.get(name, 0.0) for name in data.feature_names]
    np.testing.assert_allclose(found, model.coef_[0], atol=2e-3)
    if bias:
        assert result.intercept == pytest.approx(model.intercept_[0], abs=2e-3)
    weights = compute_class_weight(weight, classes=np.array([-1.0, 1.0]), y=data.y)
    assert result.params["class_weight"] == pytest.approx({"good": weights[0], "bad": weights[1]})


@pytest.mark.parametrize("driver", ["branch", "gbd"])
def test_they_are_the_same_as_sample_weights_and_checked(driver: str, tmp_path: Path) -> None:
    own = np.random.default_rng(1).uniform(0.5, 2.0, 80)
    data = rare(sample_weight=own)
    result = mipfs.solve(mipfs.Problem(data, M=2, C=0.3, class_weight={"bad": 4, "good": 0.75}), driver)
    same = rare(sample_weight=by_sample(data, 0.75, 4.0) * own)
    other = mipfs.solve(mipfs.Problem(same, M=2, C=0.3), driver)
    assert result.selected == other.selected
    assert result.objective == pytest.approx(other.objective, rel=1e-9)
    assert result.data_sha256 == data.sha256 != other.data_sha256
    report = checked(result, data, tmp_path)
    assert report.accepted, report.reason
    assert "class weights: C times 0.75 for good, 4 for bad" in report.statement
    assert "sample i has C times the weights of its class and its own" in report.statement
    assert not report.differs


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (None, "objective"),
        ({"good": 1.0, "bad": 4.5}, ""),
        ({"good": 1.0}, "class weights are not those of"),
        ({"good": 1.0, "bad": 4.0, "ugly": 1.0}, "class weights are not those of"),
        ({"good": 1.0, "bad": 0.0}, "a class weight is not positive"),
        ({"good": 1.0, "bad": -4.0}, "a class weight is not positive"),
    ],
)
def test_forged_class_weights_are_refused(given: Any, reason: str, tmp_path: Path) -> None:
    data = rare()
    result = mipfs.solve(mipfs.Problem(data, M=2, C=0.3, class_weight={"bad": 4}))

    def edit(document: dict[str, Any]) -> None:
        if given is None:
            document["params"].pop("class_weight")
        else:
            document["params"]["class_weight"] = given

    report = checked(result, data, tmp_path, edit=edit)
    assert not report.accepted
    assert reason in report.reason


@pytest.mark.parametrize(
    "given", [3, "balance", {"bad": "5"}, {"bad": True}, {"bad": math.nan}, {"bad": 10**400}, {"bad": 1, "worse": 2}]
)
def test_what_is_no_class_weight(given: Any) -> None:
    with pytest.raises(UsageError, match="class_weight"):
        mipfs.Problem(rare(), M=2, class_weight=given)


def test_a_measure_has_none_and_problems_keep_them() -> None:
    data = rare()
    with pytest.raises(UsageError, match="has no class weights"):
        mipfs.Problem(data, loss="structural", measure="f1", M=2, class_weight="balanced")
    problem = mipfs.Problem(data, M=2, class_weight="balanced").replace(C=2.0)
    assert problem.class_weights == tuple(compute_class_weight("balanced", classes=np.array([-1.0, 1.0]), y=data.y))
    numbered = Instance.from_arrays(data.X, data.y, labels=Labels(0, 1))
    for key in (1, "1", 1.0, np.int64(1)):
        assert mipfs.Problem(numbered, M=2, class_weight={key: 2}).class_weights == (1.0, 2.0)
    with pytest.raises(UsageError, match="twice"):
        mipfs.Problem(numbered, M=2, class_weight={1: 2, "1": 3})
    result = mipfs.solve(problem)
    for odd in ('{"good": 1.0, "bad": true}', '{"bad": null}', "[1.0, 4.0]", '"balanced"'):
        text = result.to_json().replace('"class_weight": {', f'"class_weight": {odd}, "x": {{')
        with pytest.raises(DataError, match=r"'params\.class_weight"):
            Result.from_json(text)
    assert "class weights" in result.summary()


@pytest.mark.parametrize("given", ["balanced", {"bad": 3.3}])
def test_parts_of_a_problem_have_the_same_weights(given: Any) -> None:
    """To the last digit, or a bound of the part would be one of another problem."""
    data = rare(sample_weight=np.random.default_rng(2).uniform(0.1, 3.0, 80))
    problem = mipfs.Problem(data, M=2, class_weight=given)
    ids = np.array([0, 1, 3])
    np.testing.assert_array_equal(problem.restricted(ids).c_i, problem.c_i)
    half = data.part(np.arange(0, 80, 2))
    fewer = problem.restricted(ids, problem.atoms.restricted(ids, half.only(ids)))
    assert fewer.class_weights == problem.class_weights
    for driver in ("kelley", "conic"):
        lower = mipfs.solve(problem, driver, time_limit=20)
        exact = mipfs.solve(problem)
        assert lower.bound <= exact.objective * (1 + 1e-9)
        assert mipfs.verify(lower, data).accepted


NAMED = {"bad": 4.0, "good": 0.5}
DECLARED: dict[str, dict[str, Any]] = {
    "fsp_m": {"M": 2},
    "fsp_lambda": {"lam": 0.5},
    "qcqp_relaxation": {"M": 2},
    "boolean_relaxation": {"M": 2},
    "reduced_mkl": {"M": 2, "pool": [[0, 1], [2, 3], [0, 4]]},
    "nmmkl": {"M": 2},
    "qcqp_ssvm": {"M": 2},
    "sdp_ssvm": {"M": 2},
    "decomposed_sdp": {"M": 2},
    "big_m": {"M": 2, "U": 20.0},
    "plain_svm": {},
    "onsvm": {},
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", DECLARED)
def test_a_declared_model_has_them_as_the_problem_does(name: str) -> None:
    data = rare(40)
    given = {"C": 0.3, **DECLARED[name]}
    model = getattr(mipfs.models, name)(data, **given, class_weight=NAMED)
    same = getattr(mipfs.models, name)(rare(40, sample_weight=by_sample(data, 0.5, 4.0)), **given)
    assert mipfs.problem_of(model).class_weights == (0.5, 4.0)
    np.testing.assert_array_equal(mipfs.problem_of(model).c_i, mipfs.problem_of(same).c_i)
    if name.startswith("fsp"):
        found, other = mipfs.solve(model), mipfs.solve(same)
        assert found.selected == other.selected
        assert found.objective == pytest.approx(other.objective, rel=1e-9)
        assert found.params["class_weight"] == NAMED
        plain = mipfs.solve(getattr(mipfs.models, name)(data, **given))
        assert plain.objective != pytest.approx(found.objective, rel=1e-3)
        best = min(
            svm_value(data.X[:, S], data.y, 0.3 * by_sample(data, 0.5, 4.0), True, "hinge").upper
            + 0.5 * len(S) * (name == "fsp_lambda")
            for k in range(3 if name == "fsp_m" else 6)
            for S in map(list, itertools.combinations(range(5), k))
        )
        assert found.objective == pytest.approx(best, rel=2e-4)
    else:  # the program itself, by Clarabel
        values = [one.cvxpy.solve(solver="CLARABEL") for one in (model, same)]
        assert values[0] == pytest.approx(values[1], rel=1e-6)


def test_a_model_refuses_weights_of_another_kind() -> None:
    with pytest.raises(UsageError, match="class_weight"):
        mipfs.models.fsp_m(rare(), M=2, class_weight=3)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="names 'ugly'"):
        mipfs.models.nmmkl(rare(), M=2, class_weight={"ugly": 3.0})
