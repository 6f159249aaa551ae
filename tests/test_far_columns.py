"""Columns whose squares leave floating point: solved and checked as their copies near 1, or refused by name."""

from __future__ import annotations

import copy
import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import mipfs
from mipfs.atoms.pairs import Pairs
from mipfs.data import unit
from mipfs.data.instance import Instance
from mipfs.errors import MipfsError, UsageError
from mipfs.estimators import FSPClassifier
from mipfs.lab.baselines import get_baseline
from mipfs.problem import Problem
from mipfs.regularisers import get_regulariser
from tests import far_columns, two_checkers
from tests.certificate import attack
from tests.far_columns import EXPONENTS, times

FAR, TINY = 2.0**300, 2.0**-300


def arrays_of(size: float, seed: int = 0, n: int = 30, p: int = 4) -> tuple[Any, Any]:
    """Samples that two of the features part but for some noise."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-0.9, 0.9, (n, p))
    y = np.where(X[:, 0] - X[:, 1] + 0.3 * rng.normal(size=n) > 0, 1.0, -1.0)
    return X * size, y


def problem_at(size: float, C: float = 2.0, **more: Any) -> Problem:
    """A problem over such samples, with C in the unit of the columns."""
    return Problem(Instance.from_arrays(*arrays_of(size)), C=C / size / size, M=2, **more)


@pytest.mark.sampled(47)
@pytest.mark.parametrize("seed", range(140))
def test_a_far_problem_is_solved_and_checked_as_the_near_one(seed: int) -> None:
    j = EXPONENTS[seed % len(EXPONENTS)]
    problem = far_columns.varied(seed)
    if j < -300:  # where ends of bounds leave 1e100, in the user's unit
        problem = problem.replace(weight_bounds={})
    assert not far_columns.differs(seed, j, problem)


def moved_document(document: Any, arrays: Any, sha256: str, j: int) -> tuple[Any, dict[str, Any]]:
    """A document about columns times 2^j, as it would be stated of those."""
    found, weights = copy.deepcopy(document), []
    supports = (found.get("near_optimal") or {}).get("supports", ())
    holders = [found, found["certificate"], found.get("relaxed") or {}, *supports]
    for holder in holders:
        for name in ("objective", "bound", "upper", "lower"):
            if name in holder:
                holder[name] = times(holder[name], -2 * j)
        weights += [holder] if holder.get("weights") is not None else []
    for holder in weights:
        holder["weights"] = times(holder["weights"], -j)
    for name, power in (("C", -2 * j), ("lambda", -2 * j), ("penalty", -2 * j), ("constant", j), ("weight_bounds", -j)):
        if name in found["params"]:
            found["params"][name] = times(found["params"][name], power)
    found["data_sha256"] = sha256
    stored = dict(arrays) | {"dual_q": arrays["dual_q"] + 2 * j}
    if "dual_top" in arrays:
        stored["dual_top"] = np.ldexp(arrays["dual_top"], -2 * j)
    given = arrays["multipliers"]
    exact = (
        Fraction(one if isinstance(one, float) else one.decode()) / Fraction(4) ** j for one in given.ravel().tolist()
    )
    stored["multipliers"] = np.array([str(one).encode() for one in exact], dtype="S").reshape(given.shape)
    return found, stored


@pytest.mark.sampled(41)
@pytest.mark.parametrize("seed", range(40))
def test_a_forged_result_about_far_columns_has_the_verdict_of_its_near_copy(seed: int) -> None:
    j, problem = EXPONENTS[seed % len(EXPONENTS)], far_columns.varied(1000 + seed)
    start = -int(np.frexp(far_columns.largest(problem))[1])
    with two_checkers.remembered():
        near, far = (far_columns.moved(problem.replace(weight_bounds={}), start + more) for more in (0, j))
    result = mipfs.solve(near, gap=1e-4)
    document, arrays = two_checkers.written(result) or ("", {})
    known = two_checkers.data_of(far.data)
    rng, tried = np.random.default_rng(seed), 0
    for _ in range(15):
        forged, stored = json.loads(document), {name: array.copy() for name, array in arrays.items()}
        rng.choice([attack.one_entry, attack.two_entries, attack.bounds_together])(rng, forged, near.data)
        if rng.random() < 0.3 and stored["dual_q"].size:
            stored["dual_q"][0] += rng.integers(-2, 3)
        try:
            says = attack.judge(forged, dict(stored), near.data)
            there = moved_document(forged, stored, far.data.sha256, j)
        except (TypeError, AttributeError, KeyError, ValueError, OverflowError):
            continue  # nothing that could be moved
        if forged.get("data_sha256") != near.data.sha256:
            continue
        tried += 1
        first, second, why = two_checkers.verdicts(there[0], there[1], far.data, known)
        assert first.startswith("accepted") == says.accepted, (says.reason, why)
        assert second in (first, "declined") or "rounding" in first, why
    assert tried > 3


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.sampled(43)
@pytest.mark.parametrize("seed", [34, 35, 36, 39, 57, 58, 59])
@pytest.mark.parametrize("driver", ["branch", "gbd", "kelley"])
@pytest.mark.parametrize("loss", ["hinge", "squared-hinge"])
def test_huge_columns_have_a_proof_or_are_refused(seed: int, driver: str, loss: str) -> None:
    rng = np.random.default_rng(seed)
    with two_checkers.remembered():
        data = Instance.from_arrays(rng.normal(size=(5, 2)) * 10.0 ** rng.uniform(45, 99), np.array([-1, 1, -1, 1, -1]))
    C = 10.0 ** rng.uniform(-12, 12)
    if 1e20 * 2.0**500 / data.largest / data.largest < C * 4.0 and data.largest > 2.0**250:
        with pytest.raises(UsageError, match="feature 'x"):
            Problem(data, loss=loss, M=1, C=C, bias=False)
        return
    try:
        result = mipfs.solve(Problem(data, loss=loss, M=1, C=C, bias=False), driver, time_limit=1)
    except UsageError as refused:
        reason = str(refused)
    else:
        document, arrays = two_checkers.written(result) or ("", {})
        found = two_checkers.verdicts(json.loads(document), arrays, data, two_checkers.data_of(data))
        assert found[:2] == ("accepted", "accepted"), found
        return
    assert "feature 'x" in reason


@pytest.mark.parametrize("size", [FAR, TINY])
def test_evaluate_predict_and_scores_are_those_of_the_near_copy(size: float) -> None:
    near, far = problem_at(1.0), problem_at(size)
    one, other = mipfs.solve(near), mipfs.solve(far)
    weights = [list(result.weights.values()) for result in (one, other)]
    chosen = near.atoms_of(one.selected)
    found, asked = far.evaluate(chosen, weights[1], other.intercept), near.evaluate(chosen, weights[0], one.intercept)
    assert found * size * size == asked
    assert other.objective * size * size == one.objective
    X = arrays_of(1.0, seed=1)[0]
    assert np.array_equal(one.decision_function(X), other.decision_function(X * size))
    assert np.array_equal(one.predict(X), other.predict(X * size))
    assert other.params["C"] == far.C
    assert other.data_sha256 == far.data.sha256 != near.data.sha256
    assert set(other.scaling["scale"].values()) == {1.0}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("size", [FAR, TINY])
def test_a_path_over_C_and_the_estimator_take_far_columns(size: float) -> None:
    Cs = [0.1, 1.0, 10.0]
    near, far = (mipfs.path(problem_at(one), C=[C / one / one for C in Cs]) for one in (1.0, size))
    for point, other in zip(near.points, far.points, strict=True):
        assert point.result.selected == other.result.selected
        assert math.isclose(point.result.objective, other.result.objective * size * size, rel_tol=1e-4)
    X, y = arrays_of(1.0)
    one, other = (FSPClassifier(M=2, C=2.0 / part / part).fit(X * part, y) for part in (1.0, size))
    assert np.array_equal(one.coef_, other.coef_ * size)
    assert np.array_equal(one.decision_function(X), other.decision_function(X * size))


def test_a_run_on_far_columns_goes_on_and_its_cuts_are_the_users() -> None:
    near, far = problem_at(1.0), problem_at(FAR)
    started = mipfs.solve(far, "gbd", checkpoint=True, iteration_limit=1)
    whole = mipfs.solve(far, "gbd", resume=started.state, keep_cuts=True)
    other = mipfs.solve(near, "gbd", keep_cuts=True)
    assert whole.objective * FAR * FAR == other.objective
    values = whole.cuts.values(whole.selected)
    assert np.all(values <= whole.objective * (1 + 1e-9))
    assert values.max() >= 0.99 * whole.bound
    again = mipfs.solve(far.replace(C=far.C * 3.0), "gbd", pool=whole.pool)
    assert again.objective * FAR * FAR == pytest.approx(mipfs.solve(near.replace(C=6.0), "gbd").objective, rel=1e-4)


@pytest.mark.parametrize("beside", [1.0, 2.0**-200, 2.0**-900])
def test_a_huge_column_beside_others_is_proven_or_refused(beside: float) -> None:
    X, y = arrays_of(1.0)
    X = np.column_stack([X[:, 0] * FAR, X[:, 1] * beside])
    with two_checkers.remembered():
        data = Instance.from_arrays(X, y, feature_names=("huge", "small"))
    with pytest.raises(UsageError, match=r"'huge'.*squares leave floating point"):
        Problem(data, C=1e19)
    problem = Problem(data, C=1.0 / FAR / FAR)
    if beside < 2.0**-700:
        with pytest.raises(MipfsError, match="'small' has values too small beside those of 'huge'"):
            mipfs.solve(problem)
        return
    result = mipfs.solve(problem)
    document, arrays = two_checkers.written(result) or ("", {})
    found = two_checkers.verdicts(json.loads(document), arrays, data, two_checkers.data_of(data))
    assert found[:2] == ("accepted", "accepted"), found
    alone = mipfs.solve(Problem(Instance.from_arrays(X[:, :1] / FAR, y), C=1.0))
    assert math.isclose(result.objective * FAR * FAR, alone.objective, rel_tol=1e-4)


def test_columns_that_say_nothing_at_an_ordinary_C_have_weights_of_no_value() -> None:
    X, y = arrays_of(2.0**-700)
    data = Instance.from_arrays(X, y)
    result = mipfs.solve(Problem(data, C=1.0, M=2))
    assert result.objective == pytest.approx(2.0 * min((y > 0).sum(), (y < 0).sum()), rel=1e-6)
    assert mipfs.verify(result, data).accepted


def test_what_far_columns_cannot_have_is_refused_by_their_name() -> None:
    data = Instance.from_arrays(*arrays_of(FAR))
    C = 1.0 / FAR / FAR
    with pytest.raises(UsageError, match=r"rho.*'x"):
        Problem(data, C=C, loss="squared-hinge", margin="rho")
    with pytest.raises(UsageError, match=r"regulariser 'box'.*'x"):
        Problem(data, C=C, regulariser=get_regulariser("box", low=-1.0, high=1.0))
    with pytest.raises(UsageError, match="intercept_scaling = 1 must"):
        Problem(data, C=C, loss="structural", measure="f1")
    with pytest.raises(UsageError, match=r"'x.*monomials"):
        Pairs(data)
    with pytest.raises(UsageError, match=r"baseline rfe takes no columns.*'x"):
        get_baseline("rfe")(data, 2, C)
    with pytest.raises(UsageError, match=r"comparison.*'x"):
        mipfs.compare(Problem(data, C=C))
    result = mipfs.solve(Problem(data, C=C, M=2))
    with pytest.raises(UsageError, match=r"thresholds.*'x"):
        mipfs.scorecard(result, data, bins=3)
    with pytest.raises(MipfsError, match="'x1' has values beyond"):
        Instance.from_arrays(arrays_of(2.0**400)[0], data.y)


def test_ordinary_columns_are_computed_with_as_they_are() -> None:
    for size in (1.0, 2.0**249, 2.0**-249):
        problem = Problem(Instance.from_arrays(*arrays_of(size)), C=1.0)
        assert problem.exponent == 0
        assert problem.in_unit is problem
    zeros = Problem(Instance.from_arrays(np.zeros((4, 2)), np.array([1.0, -1, 1, -1])))
    assert zeros.in_unit is zeros


@pytest.mark.sampled(11)
@pytest.mark.parametrize("largest", [2.0**260, 2.0**332, 2.0**-251.5, 2.0**-800, 5e-324, 1.7e308])
@pytest.mark.parametrize("C", [1e-300, 1e-180, 1e-20, 1.0, 1e19, 1e150, 1e300])
def test_a_unit_brings_columns_and_C_within_their_ranges(largest: float, C: float) -> None:
    ends = (1e-100, 1e20)
    found = unit.unit_exponents(largest, Fraction(C), Fraction(C) * 10, ends)
    for e in found:
        moved = Fraction(C) * Fraction(4) ** e
        assert Fraction(ends[0]) <= moved
        assert 10 * moved <= Fraction(ends[1])
        assert Fraction(largest) / Fraction(2) ** e < 2**unit.EDGE
    possible = [
        e
        for e in range(-1300, 1300)
        if Fraction(ends[0]) <= Fraction(C) * Fraction(4) ** e <= Fraction(ends[1]) / 10
        and Fraction(largest) / Fraction(2) ** e < 2**unit.EDGE
    ]
    assert set(found) <= set(possible)
    assert bool(found) == bool(possible)
    if found:
        top = math.frexp(largest)[1]
        assert abs(found[0] - top) == min(abs(e - top) for e in possible)
        assert abs(found[-1]) == min(map(abs, possible))


def test_sparse_and_dense_far_columns_are_one_problem() -> None:
    X, y = arrays_of(FAR)
    X[np.abs(X) < 0.4 * FAR] = 0.0
    kinds = (Instance.from_arrays(X, y), Instance.from_arrays(sparse.csc_array(X), y))
    one, other = (mipfs.solve(Problem(data, C=2.0 / FAR / FAR, M=2)) for data in kinds)
    assert one.data_sha256 == other.data_sha256
    assert one.selected == other.selected
    assert math.isclose(one.objective, other.objective, rel_tol=1e-4)
    assert mipfs.verify(one, kinds[1]).accepted
