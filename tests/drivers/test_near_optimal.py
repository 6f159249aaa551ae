"""Near-optimal supports against enumeration: every allowed support valued by an oracle that shares no code with us."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np
import pytest

import mipfs
from mipfs.atoms.groups import Groups
from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.losses.base import Loss
from mipfs.problem import Problem
from mipfs.result.result import Result, Status, StopReason
from mipfs.settings import BranchSettings, ListSettings
from tests import oracles, strategies
from tests.draws import draw

LOSSES = ("hinge", "squared-hinge", "logistic")
KINDS = ("cardinality", "penalties", "ties", "rows", "sparse M", "groups")
SEEDS = (101, 102, 104, 106, 107, 108, 109, 116, 119, 124, 126, 127, 128, 130, 133, 139)
Support = frozenset[str]


@functools.cache
def drawn(kind: str, loss: str, bias: bool) -> tuple[Problem, dict[Support, float]]:
    """A problem of six features or groups, and the value of every allowed support."""
    r = np.random.default_rng([KINDS.index(kind), LOSSES.index(loss), bias])
    p = 9 if kind == "groups" else 6
    X = r.standard_normal((25, p))
    if kind == "ties":
        X[:, 4], X[:, 5] = X[:, 0], 0.0
    w = r.standard_normal(p)
    w[[0, 4]] = 3.0
    y = np.where(X @ w + r.standard_normal(25) > 0, 1.0, -1.0)
    names = tuple("abcdefghi"[:p])
    data = Instance.from_arrays(X, y, feature_names=names)
    made: dict[str, Any] = {"data": data, "loss": loss, "bias": bias, "C": 1.5}
    members = {name: [j] for j, name in enumerate(names)}
    penalty = dict.fromkeys(names, 0.0)
    if kind == "penalties":
        penalty = dict(zip(names, r.uniform(0.0, 1.0, p).tolist(), strict=True))
        problem = Problem(**made, lam=penalty)
    elif kind == "groups":
        members = {f"g{k}": [k, k + 3, k + 6] for k in range(3)}
        problem = Problem(**made, M=2, atoms=Groups(data, {g: [names[j] for j in ids] for g, ids in members.items()}))
        penalty = dict.fromkeys(members, 0.0)
    else:
        problem = Problem(**made, M={"cardinality": 3, "ties": 2, "rows": None, "sparse M": 5}[kind])
    cost = r.integers(1, 4, p)
    if kind == "rows":
        problem = problem.with_rows([cost.tolist(), [1, -1, 0, 0, 0, 0]], [-np.inf, -np.inf], [5, 0])
    values = {}
    for size in range((len(members) if problem.M is None else problem.M) + 1):
        for chosen in itertools.combinations(members, size):
            too_dear = sum(cost[members[name][0]] for name in chosen) > 5
            if kind == "rows" and (too_dear or ("a" in chosen and "b" not in chosen)):
                continue
            columns = sorted(j for name in chosen for j in members[name])
            value = oracles.svm_value(X[:, columns], y, problem.c_i, bias, loss)
            values[frozenset(chosen)] = value.upper + sum(penalty[name] for name in chosen)
    return problem, values


def clear_gap(values: dict[Support, float], rank: int) -> float:
    """A gap that lies clearly between the values of two supports, the first of them of about this rank."""
    ranked = np.sort(list(values.values()))
    ranked = np.append(ranked, 1.1 * ranked[-1])
    while ranked[rank] - ranked[rank - 1] < 1e-4 * ranked[0]:
        rank += 1
    return float(0.5 * (ranked[rank - 1] + ranked[rank]) / ranked[0] - 1.0)


def listed(result: Result) -> dict[Support, float]:
    assert result.near_optimal is not None
    supports = result.near_optimal["supports"]
    found = {frozenset(one["selected"]): one["objective"] for one in supports}
    assert len(found) == len(supports), "a support is listed twice"
    objectives = [one["objective"] for one in supports]
    assert objectives == sorted(objectives)
    assert objectives[0] == result.objective
    assert supports[0]["selected"] == list(result.selected)
    for one in supports:
        assert one["gap"] == pytest.approx(one["objective"] / objectives[0] - 1.0, abs=1e-12)
    return found


def smallest(values: dict[Support, float]) -> dict[Support, int]:
    """The supports that add no feature of weight 0 to a smaller one, and how many others of the same value hold each.

    A feature that costs something changes the value, so only the values are looked at.
    """

    def same(inner: Support, outer: Support) -> bool:
        return inner < outer and abs(values[outer] - values[inner]) <= 1e-7 * values[inner]

    kept = [one for one in values if not any(same(other, one) for other in values)]
    return {one: sum(same(one, other) for other in values) for one in kept}


def is_listed(result: Result, values: dict[Support, float], limit: float = np.inf) -> None:
    """The list is that of the supports up to a limit, its values are right, and so are the ties and the shares."""
    found, ties = listed(result), smallest(values)
    expected = {one: values[one] for one in ties if values[one] <= limit}
    assert result.near_optimal is not None
    assert result.near_optimal["complete"] is True
    assert found.keys() == expected.keys()
    counted = {frozenset(one["selected"]): one["ties"] for one in result.near_optimal["supports"]}
    assert counted == {one: ties[one] for one in expected}
    for support, objective in found.items():
        assert objective == pytest.approx(expected[support], rel=1e-6)
    share = result.near_optimal["share"]
    assert share.keys() == frozenset().union(*expected)
    for name, part in share.items():
        assert part == pytest.approx(np.mean([name in support for support in expected]), abs=1e-12)
    assert list(share.values()) == sorted(share.values(), reverse=True)


@pytest.mark.sampled(73)
@pytest.mark.parametrize("driver", ["branch", "gbd"])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
def test_all_supports_within_a_gap(kind: str, loss: str, bias: bool, driver: str) -> None:
    problem, values = drawn(kind, loss, bias)
    for rank in (1, min(6, len(values) - 2)):
        gap = clear_gap(values, rank)
        limit = min(values.values()) * (1 + gap)
        result = mipfs.solve(problem, driver, pool_gap=gap)
        assert (result.status, result.stop_reason) == (Status.OPTIMAL, StopReason.GAP_CLOSED)
        is_listed(result, values, limit)


@pytest.mark.sampled(37)
@pytest.mark.parametrize("driver", ["branch", "gbd"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_best_so_many(kind: str, loss: str, driver: str) -> None:
    """Of equal supports any may stand in the list: then the values are compared."""
    problem, values = drawn(kind, loss, True)
    ranked = sorted(values[support] for support in smallest(values))
    for size in (1, 5, len(values) + 3):
        result = mipfs.solve(problem, driver, pool_size=size)
        found = listed(result)
        assert list(found.values()) == pytest.approx(ranked[:size], rel=1e-6)
        for support, objective in found.items():
            assert objective == pytest.approx(values[support], rel=1e-6)
        assert result.near_optimal is not None
        assert result.near_optimal["complete"] is True
    gap = clear_gap({support: values[support] for support in smallest(values)}, 3)
    both = mipfs.solve(problem, driver, pool_size=2, pool_gap=gap)
    assert list(listed(both).values()) == pytest.approx(ranked[:2], rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_problems_of_every_kind(seed: int) -> None:
    """Scaled, sparse, weighted, with rows, extra variables, forced features, duplicates and constants."""
    case = strategies.case(seed)
    values = {}
    for support in case.allowed:
        columns = sorted(support)
        value = oracles.svm_value(case.scaled[:, columns], case.y, case.c_i, case.bias, case.loss).upper
        values[support] = value + float(case.penalty[columns].sum())
    limit = 1.05 * min(values.values())
    for driver in ("branch", "gbd"):
        result = mipfs.solve(case.problem(), driver, pool_gap=0.05)
        found = {frozenset(map(case.names.index, support)): value for support, value in listed(result).items()}
        wanted = smallest(values)
        assert found.keys() >= {support for support in wanted if values[support] <= limit * (1 - 1e-6)}
        assert found.keys() <= {support for support in wanted if values[support] <= limit * (1 + 1e-6)}
        assert mipfs.verify(result, case.problem().data).accepted
        assert list(found.values()) == pytest.approx([values[support] for support in found], rel=1e-6)


@pytest.mark.slow
def test_a_gap_of_zero_finds_the_ties() -> None:
    """Columns a and e are equal, and one of them alone is the best."""
    for loss in LOSSES:
        problem, values = drawn("ties", loss, True)
        allowed = {support: value for support, value in values.items() if len(support) <= 1}
        limit = min(allowed.values()) * (1 + 1e-8)
        assert {one for one, value in allowed.items() if value <= limit} == {frozenset("a"), frozenset("e")}
        for driver in ("branch", "gbd"):
            is_listed(mipfs.solve(problem.replace(M=1), driver, pool_gap=0.0, gap=1e-7), allowed, limit)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("driver", ["branch", "gbd"])
def test_the_rho_form_measures_the_gap_on_its_own_values(driver: str) -> None:
    """It reports −1/(4v) (mathematics of Tan 2010 (1))."""
    unit, values = drawn("cardinality", "squared-hinge", False)
    rho = {support: -0.25 / value for support, value in values.items()}
    ranked = sorted(rho.values())
    for rank in (1, 4, 20):
        gap = 0.5 * (ranked[rank - 1] + ranked[rank]) / ranked[0]
        result = mipfs.solve(unit.replace(margin="rho"), driver, pool_gap=1.0 - gap)
        assert result.near_optimal is not None
        found = {frozenset(one["selected"]): one["objective"] for one in result.near_optimal["supports"]}
        expected = {support: value for support, value in rho.items() if value <= ranked[0] * gap}
        assert found.keys() == expected.keys()
        assert all(found[support] == pytest.approx(value, rel=1e-6) for support, value in expected.items())
        assert result.near_optimal["supports"][-1]["gap"] <= 1.0 - gap
    with pytest.raises(UsageError, match=r"pool_gap = 1.0 must be in \[0, 1\) for the ρ-form"):
        mipfs.solve(unit.replace(margin="rho"), driver, pool_gap=1.0)


@pytest.mark.sampled(7)
@pytest.mark.parametrize("driver", ["branch", "gbd"])
@pytest.mark.parametrize("kind", ["cardinality", "penalties", "rows"])
def test_a_limit_leaves_an_incomplete_list(kind: str, driver: str) -> None:
    problem, values = drawn(kind, "hinge", True)
    result = mipfs.solve(problem, driver, pool_size=len(values), iteration_limit=1)
    assert result.stop_reason is StopReason.ITERATION_LIMIT
    assert result.near_optimal is not None
    assert result.near_optimal["complete"] is False
    found = listed(result)
    assert len(found) < len(values)
    for support, objective in found.items():
        assert objective == pytest.approx(values[support], rel=1e-6)


def test_a_list_that_a_count_of_nodes_cut_does_not_depend_on_a_clock() -> None:
    """With settings that leave it no time once a clock has stopped a run."""
    problem, values = drawn("cardinality", "hinge", True)
    none = BranchSettings(listing=ListSettings(late_seconds=0.0, late_share=0.0))
    asked = {"pool_size": len(values), "iteration_limit": 1}
    usual, hurried = (mipfs.solve(problem, "branch", **asked, **more) for more in ({}, {"settings": none}))
    assert len(listed(usual)) > 1
    assert hurried.near_optimal == usual.near_optimal


def test_a_gap_that_closed_before_the_list_was_complete_is_optimal_but_says_so() -> None:
    problem, _ = drawn("cardinality", "hinge", True)
    early = mipfs.solve(problem, "branch", pool_size=40, gap=0.9, iteration_limit=1)
    assert early.status is Status.OPTIMAL
    assert early.stop_reason is StopReason.ITERATION_LIMIT
    assert early.near_optimal is not None
    assert early.near_optimal["complete"] is False


@pytest.mark.sampled(5)
@pytest.mark.parametrize("driver", ["branch", "gbd"])
@pytest.mark.parametrize("kind", ["cardinality", "rows"])
def test_the_certificate_of_such_a_run_is_accepted(kind: str, driver: str) -> None:
    problem, values = drawn(kind, "logistic", True)
    result = mipfs.solve(problem, driver, pool_gap=clear_gap(values, 6), gap=1e-6)
    report = mipfs.verify(result, problem.data)
    assert report.accepted, report.reason
    assert report.gap <= 1e-6


@pytest.mark.slow
def test_one_thread_and_two_list_the_same() -> None:
    problem, values = drawn("sparse M", "hinge", True)
    one, two = (mipfs.solve(problem, "branch", pool_gap=clear_gap(values, 10), threads=n) for n in (1, 2))
    assert one.near_optimal == two.near_optimal


def test_the_json_carries_it_and_results_without_it_are_still_read() -> None:
    problem, _ = drawn("rows", "hinge", True)
    result = mipfs.solve(problem, "gbd", pool_size=4)
    text = result.to_json()
    assert Result.from_json(text).near_optimal == result.near_optimal
    plain = mipfs.solve(problem, "gbd")
    assert plain.near_optimal is None
    older = plain.to_json().replace('"near_optimal"', '"another"')
    assert Result.from_json(older).near_optimal is None


@pytest.mark.parametrize("driver", ["branch", "gbd"])
@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("pool_gap", -0.1, "pool_gap = -0.1 must be a number >= 0"),
        ("pool_gap", float("inf"), "pool_gap = inf must be"),
        ("pool_gap", float("nan"), "pool_gap = nan must be"),
        ("pool_size", 0, "pool_size = 0 must be a whole number >= 1"),
        ("pool_size", 2.5, "pool_size = 2.5 must be"),
        ("pool_size", True, "pool_size = True must be"),
    ],
)
def test_what_is_out_of_range_is_refused(option: str, value: Any, message: str, driver: str) -> None:
    with pytest.raises(UsageError, match=message):
        mipfs.solve(drawn("cardinality", "hinge", True)[0], driver, **{option: value})


def test_a_driver_that_finds_none_has_no_such_option() -> None:
    with pytest.raises(UsageError, match="has no option 'pool_gap'"):
        mipfs.solve(drawn("cardinality", "hinge", True)[0], "kelley", pool_gap=0.1)


def test_no_selection_no_list() -> None:
    problem, _ = drawn("cardinality", "hinge", True)
    result = mipfs.solve(problem.with_rows([[1] * 6], [4], [6]), "branch", pool_size=3)
    assert result.status is Status.INFEASIBLE
    assert result.near_optimal is None


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", [1148, 9535])
@pytest.mark.parametrize("share", [1.0, 0.999])
def test_what_is_called_complete_is_shown_to_be(seed: int, share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dual vectors times 0.999 leave an SVM's values 5e-7 apart, which shows no support its place behind another."""
    whole = Loss.feasible_dual
    monkeypatch.setattr(Loss, "feasible_dual", lambda self, alpha, *more: whole(self, share * alpha, *more))
    one = draw(seed)
    result = mipfs.solve(one.problem, one.driver, **one.options)
    assert result.near_optimal is not None
    assert result.near_optimal["complete"] is (share == 1.0)
    assert mipfs.verify(result, one.problem.data).accepted
