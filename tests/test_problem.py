"""Problem: validation, penalties, rows, and the objective recomputed."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy import sparse

import mipfs
from mipfs import models
from mipfs.data.instance import Instance, Row, SelectDefaults
from mipfs.data.ranges import LARGEST_C, LEAST_C
from mipfs.errors import RowError, UsageError
from mipfs.problem import Problem

X = np.array([[1.0, 2.0, 0.0], [0.5, -1.0, 3.0], [-2.0, 0.0, 1.0], [0.0, 1.0, -1.0]])
Y = np.array([1.0, -1.0, -1.0, 1.0])


def instance(**extra: object) -> Instance:
    return Instance.from_arrays(X, Y, feature_names=["a", "b", "c"], **extra)


def test_no_penalty_is_0_and_not_none() -> None:
    with pytest.raises(UsageError, match="lambda is None; it must be a number"):
        Problem(instance(), lam=None)  # type: ignore[arg-type]


@pytest.mark.parametrize("parameters", [{"M": -1}, {"M": 4}, {"M": 1.5}, {"M": True}, {"C": 0.0}, {"C": -1.0}])
@pytest.mark.parametrize("kind", ["value"])
def test_out_of_range(parameters: dict[str, object], kind: str) -> None:
    name = next(iter(parameters))
    with pytest.raises(UsageError, match=f"^{name} = "):
        Problem(instance(), **parameters)  # type: ignore[arg-type]


@pytest.mark.parametrize("C", [np.nan, np.inf, "1"])
def test_c_must_be_a_number(C: object) -> None:
    with pytest.raises(UsageError, match="must be a positive number"):
        Problem(instance(), C=C)  # type: ignore[arg-type]


@pytest.mark.parametrize("C", [1e300, 1e-300, 10**400, 1.01e-100 / 2, 2.6e19])
def test_c_beyond_floating_point_is_refused_with_the_range(C: float) -> None:
    with pytest.raises(UsageError, match="beyond"):
        Problem(instance(), C=C)
    with pytest.raises(UsageError, match=r"at least 1e-100, and their sum, here 4e\+20, at most 1e\+20"):
        Problem(instance(sample_weight=[1e20, 1e20, 1e20, 1e20]), C=1.0)


@pytest.mark.parametrize("lam", [1e-300, 1e21, np.inf, -1.0])
def test_a_penalty_beyond_floating_point_is_refused(lam: float) -> None:
    with pytest.raises(UsageError, match="penalties must be"):
        Problem(instance(), lam=lam)


@pytest.mark.sampled(11)
@pytest.mark.parametrize("C", [LEAST_C, LARGEST_C / 4])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("loss", ["hinge", "squared-hinge", "logistic", "structural"])
def test_the_ends_of_the_range_are_solved_without_a_false_claim(loss: str, bias: bool, C: float) -> None:
    """w = 0 is feasible: no bound lies above its value, and no classifier that is kept does."""
    if loss == "structural" and bias:
        pytest.skip("it has no bias")
    measure = {"measure": "f1"} if loss == "structural" else {}
    problem = Problem(instance(), loss=loss, bias=bias, M=1, C=C, **measure)  # type: ignore[arg-type]
    for driver in ("branch", "gbd", "kelley", "conic", "two_layer"):
        try:
            result = mipfs.solve(problem, driver, time_limit=5.0)
        except UsageError:
            continue  # the loss is not this driver's
        zero = problem.evaluate([], np.empty(0), 0.0)
        assert np.isfinite(result.objective)
        assert result.bound <= zero * (1 + 1e-9)
        assert result.objective <= zero * (1 + 1e-4) + 1e-12
        if result.claim is not None:
            assert mipfs.verify(result, problem.data).accepted


def test_unknown_loss_and_names() -> None:
    with pytest.raises(UsageError, match="loss 'squared' is not known"):
        Problem(instance(), loss="squared")
    with pytest.raises(UsageError, match="no feature is called 'd'"):
        Problem(instance(), lam={"d": 1.0})
    with pytest.raises(UsageError, match="no feature is called 'z'"):
        Problem(instance(), forced_in=("z",))


def test_penalties_add_up() -> None:
    data = instance(penalty={"b": 0.5})
    np.testing.assert_array_equal(Problem(data).penalty, [0, 0.5, 0])
    np.testing.assert_array_equal(Problem(data, lam=2.0).penalty, [2, 2.5, 2])
    np.testing.assert_array_equal(Problem(data, lam=[1, 2, 3]).penalty, [1, 2.5, 3])
    np.testing.assert_array_equal(Problem(data, lam={"c": 7}).penalty, [0, 0.5, 7])
    with pytest.raises(UsageError, match="lambda of 'a' is -1"):
        Problem(data, lam=-1.0)
    with pytest.raises(UsageError, match="shape"):
        Problem(data, lam=[1.0, 2.0])


def test_data_defaults_and_overrides() -> None:
    data = instance(select=SelectDefaults(2, ("a",), ("c",)), rows=[Row("r", {"a": 1, "b": 1}, -np.inf, 1)])
    problem = Problem(data)
    assert (problem.M, problem.selection.forced_in, problem.selection.forced_out) == (2, (0,), (2,))
    assert problem.selection.rows.names == ("r",)
    free = problem.replace(M=3, forced_in=(), forced_out=(), cardinality=False)
    assert (free.M, free.selection.forced_in, free.selection.forced_out) == (None, (), ())


def test_with_rows() -> None:
    problem = Problem(instance(), M=2).with_rows(sparse.csr_array([[1.0, 0, 1.0]]), -np.inf, [1.0], names=["pair"])
    assert not problem.selection.contains(np.array([True, False, True]))
    assert problem.selection.contains(np.array([True, True, False]))
    more = problem.with_rows([[0, 1.0, 0]], 1, 1)
    assert more.selection.rows.names == ("pair", "row2")
    assert not more.selection.contains(np.array([True, False, False]))
    for bad in ([[1.0, 2.0]], [[np.nan, 0, 0]]):
        with pytest.raises(RowError):
            problem.with_rows(bad, 0, 1)


@pytest.mark.parametrize("scale", ["none", "standard"])
def test_evaluate_is_the_objective(scale: str) -> None:
    weight = np.array([1.0, 2.0, 0.5, 1.0])
    w, b, ids = np.array([0.7, -0.2]), 0.3, np.array([0, 2])
    mean = np.average(X, axis=0, weights=weight)
    deviation = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weight))
    Z = X if scale == "none" else (X - mean) / deviation
    expected = 1.5 + 0.5 + 0.5 * w @ w + 2.0 * weight @ np.maximum(0, 1 - Y * (Z[:, ids] @ w + b))
    for matrix in (X, sparse.csc_array(X)):
        data = Instance.from_arrays(
            matrix, Y, feature_names=["a", "b", "c"], scale=scale, sample_weight=weight, penalty={"c": 0.5}
        )
        problem = Problem(data, C=2.0, lam={"a": 1.5})
        assert problem.evaluate(ids, w, b) == pytest.approx(expected, rel=1e-14)
    assert Problem(instance(), C=2.0).evaluate([], [], 1.0) == pytest.approx(2.0 * 4.0)


@pytest.mark.parametrize("given", ["wdbc.svm", np.ones((3, 2)), None])
def test_data_that_is_no_instance_is_named_with_the_remedy(given: object) -> None:
    for make in (mipfs.Problem, models.fsp_m):
        with pytest.raises(UsageError, match=r"(data = .* must be an Instance: |the data is a \w+; )mipfs.read\("):
            make(given, M=1)  # type: ignore[arg-type]


def test_atoms_are_given_by_their_name_too() -> None:
    data = instance(groups={"both": ["a", "c"]})
    problem = Problem(data, M=1, C=1.0, atoms="groups")  # type: ignore[arg-type]
    assert problem.atoms.names == mipfs.atoms.make("groups", data).names == ("both", "b")
    with pytest.raises(UsageError, match="no atoms are called 'grups'; did you mean 'groups'"):
        Problem(data, M=1, C=1.0, atoms="grups")  # type: ignore[arg-type]


def test_a_problem_without_rows_takes_other_atoms() -> None:
    """The rows that it has none of are over the new atoms; rows that it has are not carried over silently."""
    X = np.random.default_rng(0).normal(size=(12, 3))
    data = Instance.from_arrays(X, np.where(X[:, 0] > 0, 1, -1))
    pairs = Problem(data, M=2).replace(atoms="pairs")
    assert pairs.atoms.names == Problem(data, M=2, atoms="pairs").atoms.names
    with pytest.raises(UsageError, match="are about single features"):
        Problem(dataclasses.replace(data, rows=(Row("r", {"x1": 1.0}, 0.0, 1.0),)), M=2).replace(atoms="pairs")
