"""Rows over the weights: what is refused, what is solved (by Clarabel over all selections), every way to state them."""

from __future__ import annotations

import csv
import itertools
import json
import math
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import pyomo.environ as pyo
import pytest

import mipfs
from mipfs import models, weight_rows
from mipfs.atoms import make
from mipfs.data.over_weights import RowEnds, WeightRow, allowance, of_stated, power_above
from mipfs.errors import DataError, MipfsError, RowError, UsageError
from mipfs.lab.baselines import get_baseline
from mipfs.lab.studies.folds import fold
from mipfs.readers.lp_rows import read_weight_rows
from tests import over_weights

ROW: list[Any] = [({"x1": 1.0, "x2": 1.0, "x3": 1.0}, 0.0, 0.0)]
INF = math.inf
TABLE = Path(__file__).parents[1] / "instances" / "credit.csv"


def data(n: int = 40, p: int = 5, scale: Any = "standard", **more: Any) -> mipfs.Instance:
    """Some data on which a zero sum binds."""
    r = np.random.default_rng(7)
    X = r.normal(size=(n, p)) * 10.0 ** r.uniform(-1, 1, p)
    y = np.where(X[:, :3] @ (1.0 / X[:, :3].std(axis=0)) + r.normal(size=n) > 0, 1.0, -1.0)
    return mipfs.Instance.from_arrays(X, y, scale=scale, **more)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ({"x1": 1.0}, "weight_rows is a dict"),
        ([({"x9": 1.0}, 0, 1)], "row 1: no feature is called 'x9'"),
        ([({"intercept": 1.0}, 0, 1)], "row 1: 'intercept': the intercept stands in no row"),
        ([({"x1": 1.0}, 0, 1), ({"x1": 1.0}, 0.5, 1)], "row 2: lower = 0.5 is above 0"),
        ([({"x1": 1.0}, None, -1)], "row 1: upper = -1.0 is below 0"),
        ([({"x1": math.nan}, 0, 1)], "the coefficient of 'x1' is nan"),
        ([({"x1": True}, 0, 1)], "the coefficient of 'x1' is True"),
        ([({"x1": 1e-200}, 0, 1)], "a size from 1e-100"),
        ([({"x1": 1.0}, "0", 1)], "lower is '0'"),
        ([({"x1": 1.0}, 0)], "is no ({name: coefficient}, lower, upper)"),
    ],
)
def test_rows_that_are_none_are_refused(rows: Any, said: str) -> None:
    with pytest.raises(UsageError, match="weight_rows") as raised:
        mipfs.Problem(data(), M=2, weight_rows=rows)
    assert said in str(raised.value)


def test_what_says_nothing_is_left_out() -> None:
    problem = mipfs.Problem(data(), M=2, weight_rows=[({"x1": 0.0}, 0, 0), ({"x1": 1.0}, None, INF), *ROW, *ROW])
    assert problem.weight_rows == (WeightRow((("x1", 1.0), ("x2", 1.0), ("x3", 1.0)), 0.0, 0.0),)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"loss": "squared-hinge", "margin": "rho"}, "rho"),
        ({"loss": "structural", "measure": "f1", "bias": False}, "structural"),
    ],
)
def test_what_is_homogeneous_or_over_labellings_is_refused(more: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        mipfs.Problem(data(), M=2, weight_rows=ROW, **more)


def test_functions_products_and_far_columns_are_refused() -> None:
    for kind in ("pairs", "splines"):
        with pytest.raises(UsageError, match="weight_rows"):
            mipfs.Problem(data(), M=2, weight_rows=ROW, atoms=make(kind, data()))
    with pytest.raises(UsageError, match="weight_rows"):
        far = mipfs.Instance.from_arrays(data(scale="none").block().values * 1e78, data().y)
        mipfs.Problem(far, M=2, C=1e-20, weight_rows=ROW)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["hinge", "squared-hinge", "logistic"])
def test_every_driver_solves_the_same_problem(loss: str) -> None:
    budget = np.array([[2.0, 1.0, 1.0, 2.0, 1.0]])
    more = [({"x1": 1.0, "x4": -0.5}, -0.1, 0.1)]
    problem = mipfs.Problem(data(), M=3, C=1.0, loss=loss, weight_rows=[*ROW, *more], lam=0.2).with_rows(
        budget, -INF, 4
    )
    best = mipfs.solve(problem, gap=1e-6)
    for driver in ("gbd", "monolithic"):
        result = mipfs.solve(problem, driver, gap=1e-6)
        assert result.status is mipfs.Status.OPTIMAL
        assert result.objective == pytest.approx(best.objective, rel=2e-6)
        assert result.selected == best.selected
    for driver in ("kelley", "conic"):
        result = mipfs.solve(problem, driver, gap=1e-5)
        assert result.status in (mipfs.Status.RELAXED, mipfs.Status.OPTIMAL)
        assert result.bound <= best.objective * (1.0 + 1e-6)
        assert result.objective >= best.objective * (1.0 - 1e-6)
        assert result.relaxed is not None
        assert mipfs.verify(result, problem.data).accepted


@pytest.mark.sampled(7)
@pytest.mark.parametrize("driver", ["gbd", "kelley"])
@pytest.mark.parametrize("seed", [5, 8, 21])
def test_both_checkers_accept_what_other_drivers_prove(driver: str, seed: int) -> None:
    with over_weights.remembered():
        over = over_weights.case(seed)
    problem = over.one.problem
    result = mipfs.solve(problem, driver, gap=1e-6)
    found = over_weights.written(result)
    assert found is not None
    document, known = json.loads(found[0]), over_weights.data_of(problem.data)
    assert over_weights.verdicts(document, found[1], problem.data, known)[:2] == ("accepted", "accepted")
    if document["relaxed"]:  # a weight that breaks a row, where only the relaxation has it
        name = next(iter(document["params"]["weight_rows"][0]["coefficients"]))
        document["relaxed"]["weights"][name] = 7.0 + 16.0 * abs(document["relaxed"]["weights"].get(name, 0.0))
        assert "accepted" not in over_weights.verdicts(document, found[1], problem.data, known)[:2]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("driver", ["gbd", "kelley"])
def test_a_run_goes_on_where_it_stood(driver: str, tmp_path: Path) -> None:
    problem = mipfs.Problem(data(60, 8), M=3, C=1.0, weight_rows=ROW)
    gap = 1e-6 if driver == "gbd" else 1e-5
    whole = mipfs.solve(problem, driver, gap=gap)
    with mipfs.start(problem, driver, gap=gap) as session:
        session.step()
        session.step()
        session.state.save(tmp_path / "s.npz")
    again = mipfs.solve(problem, driver, gap=gap, resume=tmp_path / "s.npz")
    assert again.status is whole.status
    assert again.objective == pytest.approx(whole.objective, rel=1e-5)
    assert again.bound == pytest.approx(whole.bound, rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["hinge", "squared-hinge", "logistic"])
def test_every_rung_states_them_and_they_are_in_order(loss: str) -> None:
    problem = mipfs.Problem(data(), M=2, C=1.0, loss=loss, weight_rows=[*ROW, ({"x2": 1.0, "x4": -1.0}, -0.2, None)])
    free = problem.replace(weight_rows=())
    value, without = (
        {name: _declared(name, one) for name in ("plain-svm", "qcqp-ssvm", "sdp-ssvm", "nmmkl", "boolean", "fgm")}
        for one in (problem, free)
    )
    near = 1.0 + 2e-6
    assert value["plain-svm"] <= value["qcqp-ssvm"] * near
    assert value["qcqp-ssvm"] == pytest.approx(value["sdp-ssvm"], rel=2e-6)
    assert value["sdp-ssvm"] <= value["boolean"] * near
    for name in ("nmmkl", "fgm"):
        assert value[name] == pytest.approx(value["boolean"], rel=2e-6)
    assert _declared("decomposed-sdp", problem) == pytest.approx(value["boolean"], rel=2e-5)
    assert all(value[name] > without[name] * (1.0 + 1e-4) for name in value), "the rows bind"
    found = mipfs.compare(problem)
    best = mipfs.solve(problem, gap=1e-6).objective
    assert all(rung.status.startswith(("solved", "optimal")) for rung in found.ladder), found
    assert value["plain-svm"] <= _declared("big-m", problem) * near
    assert found["boolean"].value == pytest.approx(value["boolean"], rel=1e-5)
    assert found["exact"].value == pytest.approx(best, rel=1e-5)
    assert value["boolean"] <= best * near


def _declared(name: str, problem: mipfs.Problem) -> float:
    """What Clarabel says of a formulation of a problem."""
    from mipfs import formulation

    return float(formulation.declare(name, problem).cvxpy.solve(solver="CLARABEL"))


@pytest.mark.slow
def test_the_hull_of_a_selection_with_rows_states_them() -> None:
    problem = mipfs.Problem(data(), M=2, C=1.0, loss="squared-hinge", weight_rows=ROW)
    problem = problem.with_rows(np.array([[1.0, 1.0, 0.0, 0.0, 0.0]]), -INF, 1)
    result = mipfs.solve(problem, "kelley", gap=1e-7)
    assert _declared("fgm", problem) == pytest.approx(result.relaxed["upper"], rel=1e-5)
    assert result.formulation().cvxpy.solve(solver="CLARABEL") == pytest.approx(result.relaxed["upper"], rel=1e-5)


def test_a_declared_row_is_one_of_the_weights_of_scaled_features() -> None:
    from mipfs.atoms.features import Features
    from mipfs.formulation import algebraic_model

    given = data()
    problem = mipfs.Problem(
        given, M=5, C=1.0, weight_rows=ROW, atoms=Features(given, np.array([1.0, 3.0, 0.5, 1.0, 1.0]))
    )
    model = algebraic_model(problem)
    w = mipfs.solve(problem).weights
    for name in given.feature_names:
        factor = given.scale[given.index[name]] / problem.atoms.columns(np.array([given.index[name]])).scale[0]
        model.svm.w[name].set_value(w[name] * factor)
    assert abs(pyo.value(model.svm.weight_rows[1].body)) <= 1e-9 * max(map(abs, w.values()))


@pytest.mark.parametrize("options", [{"nodes": "conic"}, {"active": ("x1", "x2")}, {"relax": "array"}])
def test_options_of_branch_that_know_none_say_so(options: Any) -> None:
    with pytest.raises(UsageError, match=r"rows over the weights|does not take this problem"):
        mipfs.solve(mipfs.Problem(data(), M=2, weight_rows=ROW), "branch", **options)


@pytest.mark.slow
def test_whole_extra_variables_beside_them_have_the_master_of_all() -> None:
    given, best = data(weight_rows=ROW), INF
    model = models.fsp_m(given, M=3)
    model.select.whole = pyo.Var(domain=pyo.Integers, bounds=(0, 2))
    model.select.row = pyo.Constraint(
        expr=model.select.sigma["x1"] + model.select.sigma["x4"] <= 2 * model.select.whole
    )
    model.select.extra_cost.set_value(1.5 * model.select.whole)
    for chosen in itertools.combinations(given.feature_names, 3):
        others = tuple(name for name in given.feature_names if name not in chosen)
        one = mipfs.solve(mipfs.Problem(given, M=3, C=1.0, forced_out=others), gap=1e-7)
        best = min(best, one.objective + 1.5 * bool({"x1", "x4"} & {*one.selected}))
    result = mipfs.solve(model, gap=1e-6)
    assert result.status is mipfs.Status.OPTIMAL
    assert result.objective == pytest.approx(best, rel=2e-6)
    assert mipfs.verify(result, given).accepted


def test_baselines_sketches_and_stacks_say_so() -> None:
    asked = data(weight_rows=ROW)
    with pytest.raises(UsageError, match="no rows over the weights"):
        get_baseline("lpsvm")(asked, M=2)
    with pytest.raises(UsageError, match="no rows over the weights"):
        mipfs.preselect(mipfs.Problem(asked, M=2), "bss:3")
    result = mipfs.solve(mipfs.Problem(asked, M=2, C=0.1))
    with pytest.raises(UsageError, match="no rows over the weights"):
        mipfs.scorecard(result, asked)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("seed", [2, 4, 11, 5008, 80007, 80009])
def test_as_brute_force_and_both_checkers_have_it(seed: int) -> None:
    with over_weights.remembered():
        over = over_weights.case(seed)
    assert over_weights.faults(over, Counter(), 2, np.random.default_rng(seed)) == []


def test_weights_are_brought_into_rows_and_box() -> None:
    rows = (
        WeightRow((("x1", 1.0), ("x2", 1.0), ("x3", 1.0)), 0.0, 0.0),
        WeightRow((("x1", 1.0), ("x4", -2.0)), -0.1, INF),
    )
    index = {f"x{j + 1}": j for j in range(5)}
    ends = RowEnds(rows, index, np.array([1.0, 2.0, 0.5, 3.0, 1.0]), 16.0)
    ids, low, high = np.arange(5), np.array([0.0, -1.0, -9.0, -9.0, -9.0]), np.array([9.0, 9.0, 0.0, 9.0, 9.0])
    w = np.array([0.3, -0.2, -0.7, 2.0, 1.0])
    moved = ends.brought_in(ids, w, (low, high))
    assert np.all((moved >= low) & (moved <= high))
    users = moved / ends.scale
    assert ends.hold(ids, users)
    assert not ends.hold(ids, users + np.array([0.0, 1e-9, 0.0, 0.0, 0.0]))
    assert not ends.hold(ids, users * 2.0**20), "larger than W"
    assert np.array_equal(ends.brought_in(ids, moved, (low, high)), moved)


def test_a_weight_that_a_row_leaves_nothing_takes_no_other_with_it() -> None:
    rows = (WeightRow((("x1", 2.0), ("x2", 1.0)), 0.0, 0.0), WeightRow((("x3", 1.0), ("x4", 1.0)), 0.0, 0.0))
    ends = RowEnds(rows, {f"x{j + 1}": j for j in range(5)}, np.ones(5), 16.0)
    ids, w = np.array([1, 2, 3, 4]), np.array([1e-13, 0.7, -0.7, 2.0])  # x1 is not selected, and so x2 is 0
    moved = ends.brought_in(ids, w, (-INF, INF))
    assert ends.hold(ids, moved)
    assert np.allclose(moved, w, atol=1e-12)


def test_weights_that_rows_leave_nothing_do_not_shrink_for_ever() -> None:
    rows = (
        WeightRow((("x7", 0.13033028614097275), ("x6", -153.58137608702194)), 0.0, 0.0),
        WeightRow((("x6", 4.5), ("x7", 0.07525563236069753), ("x2", -0.23143894300834847)), 0.0, 0.0),
    )
    scale = np.array([5.9, 0.0997, 2.08, 1.0, 1.0, 1.0, 0.0678])
    ends = RowEnds(rows, {f"x{j + 1}": j for j in range(7)}, scale, 16.0)
    ids, w = np.array([0, 1, 2, 6]), np.array([0.4, 1.5e-11, 0.36, 8.7e-12])  # x6 is not selected: x7 is 0, and x2
    moved = ends.brought_in(ids, w, (-INF, INF))
    assert np.array_equal(moved, [0.4, 0.0, 0.36, 0.0])
    assert ends.hold(ids, moved / scale[ids])


@pytest.mark.slow
def test_parity_and_a_zero_sum_on_the_credit_table_are_proven() -> None:
    read = mipfs.read(TABLE, scale="standard")
    with TABLE.open(encoding="utf-8") as file:
        housing = np.array([line["housing"] for line in csv.DictReader(file)])
    rows = [*weight_rows.parity(read, housing, 0.05), *weight_rows.zero_sum(["income", "age", "late payments"])]
    problem = mipfs.Problem(read, M=3, C=1.0, weight_rows=rows)
    result = mipfs.solve(problem)  # was FEASIBLE with a gap of 8%, at 118.19
    assert result.status is mipfs.Status.OPTIMAL
    others = [mipfs.solve(problem, driver, gap=1e-5) for driver in ("gbd", "kelley")]
    assert others[0].objective == pytest.approx(result.objective, rel=1e-4)
    assert others[1].bound <= result.objective
    assert mipfs.verify(result, read).accepted


def test_the_allowance_is_the_least_double_that_is_no_less() -> None:
    coefficients, largest = [1.0, -0.3, 1e3], power_above([0.3, -2.5])
    assert largest == 4.0
    assert power_above([4.0]) == 4.0
    assert power_above([]) == power_above([0.0]) == 0.0
    e = allowance(coefficients, (-0.1, INF), largest)
    exact = Fraction(1, 2**40) * (Fraction(0.1) + 4 * sum(abs(Fraction(a)) for a in coefficients))
    assert Fraction(math.nextafter(e, 0.0)) < exact <= Fraction(e)


def test_helpers() -> None:
    assert weight_rows.zero_sum(["a", "b"]) == [({"a": 1.0, "b": 1.0}, 0.0, 0.0)]
    assert weight_rows.at_least("a", "b") == [({"a": 1.0, "b": -1.0}, 0.0, INF)]
    assert weight_rows.ordered(["a", "b", "c"])[1] == ({"b": -1.0, "c": 1.0}, 0.0, INF)
    for names in ("ab", ["a"], ["a", "a"]):
        with pytest.raises(UsageError, match="names"):
            weight_rows.zero_sum(names)
    weight = np.linspace(0.5, 2.0, 40)
    given = data(sample_weight=weight)
    raw = data(scale="none").block().values
    by = np.array(["u", "v", "w"])[np.arange(40) % 3]
    rows = weight_rows.parity(given, by, 0.2)
    assert len(rows) == 3
    means = [np.average(raw[by == one], axis=0, weights=weight[by == one]) for one in "uvw"]
    found = np.array([rows[1][0][name] for name in given.feature_names])
    assert np.allclose(found, means[0] - means[2], rtol=1e-10)
    assert rows[1][1:] == (-0.2, 0.2)
    for by_, within in ((by[:5], 0.1), (np.zeros(40), 0.1), (np.arange(40), 0.1), (by, -1.0), (by, True)):
        with pytest.raises(UsageError):
            weight_rows.parity(given, by_, within)


def test_parity_holds_for_the_scores() -> None:
    given, by = data(), np.arange(40) < 15
    result = mipfs.solve(mipfs.Problem(given, M=2, C=1.0, weight_rows=weight_rows.parity(given, by, 0.01)))
    w = np.array([result.weights.get(name, 0.0) for name in given.feature_names])
    scores = data(scale="none").block().values @ w
    assert abs(scores[by].mean() - scores[~by].mean()) <= 0.01 + 1e-12
    assert result.status is mipfs.Status.OPTIMAL
    assert "the mean scores of 'False' and 'True' differ by at most 0.01" in result.summary()


@pytest.mark.parametrize("scale", ["none", "standard"])
def test_an_estimator_says_parity_in_words(scale: str) -> None:
    rng = np.random.default_rng(5)
    X = 40.0 + rng.standard_normal((40, 4)) * [1.0, 20.0, 300.0, 0.01]
    labels = np.where(
        X @ [1.0, 0.05, 0.003, 100.0] + rng.standard_normal(40) > np.median(X @ [1.0, 0.05, 0.003, 100.0]), 1, -1
    )
    by = np.arange(40) < 15
    rows = weight_rows.parity(mipfs.Instance.from_arrays(X, labels), by, 0.01)
    classifier = mipfs.FSPClassifier(M=2, scale=scale, weight_rows=rows).fit(X, labels)
    assert "the mean scores of 'False' and 'True' differ by at most 0.01" in classifier.result_.summary()
    scores = classifier.decision_function(X)
    assert abs(scores[by].mean() - scores[~by].mean()) <= 0.01 + 1e-9
    other = mipfs.FSPClassifier(M=2, scale=scale, weight_rows=rows).fit(X[::-1], labels[::-1])
    assert "mean scores" not in other.result_.summary(), "those are not the samples whose means the row is made of"


def test_parity_is_stated_and_both_checkers_recompute_it() -> None:
    with over_weights.remembered():
        given = data(sample_weight=np.linspace(0.5, 2.0, 40))
    by = np.array(["u", "v", "w"])[np.arange(40) % 3]
    result = mipfs.solve(mipfs.Problem(given, M=2, C=1.0, weight_rows=weight_rows.parity(given, by, 0.1)))
    assert any(
        "mean scores of 'u' and 'w' differ by at most 0.1" in said for said in mipfs.verify(result, given).statement
    )
    found = over_weights.written(result)
    assert found is not None
    known = over_weights.data_of(given)

    def judged(change: Any) -> tuple[str, str]:
        document = json.loads(found[0])
        change(document["params"]["weight_rows"][0])
        return over_weights.verdicts(document, found[1], given, known)[:2]

    def marked(at: int, mark: str) -> Any:
        def change(row: Any) -> None:
            samples = row["parity"]["samples"]
            row["parity"]["samples"] = samples[:at] + mark + samples[at + 1 :]

        return change

    assert judged(lambda row: None) == ("accepted", "accepted")
    assert judged(lambda row: row.pop("parity")) == ("accepted", "accepted"), "then it is a row of numbers"
    lies: list[Any] = [
        *(marked(at, mark) for at, mark in ((0, "2"), (1, "1"), (2, "1"), (39, "3"), (39, "00"))),
        lambda row: row["parity"].update(groups=["u"]),
        lambda row: row["parity"].update(groups=["u", "u"]),
        lambda row: row["parity"].update(groups=[1, 2]),
        lambda row: row["parity"].update(groups=None),
        lambda row: row["parity"].update(samples=None),
        lambda row: row["parity"].update(samples="1" * 40),
        lambda row: row["parity"].update(more=1),
        lambda row: row.update(parity=None),
    ]
    assert [judged(lie) for lie in lies] == [("rejected", "rejected")] * len(lies)
    again = mipfs.Problem(given, M=2, C=1.0, weight_rows=of_stated(result.params))
    assert [row.is_parity_of(given) for row in again.rows_over_weights] == [True] * 3
    other = data(n=39)
    assert not any(row.is_parity_of(other) for row in again.rows_over_weights)
    moved = mipfs.Problem(given, M=2, C=1.0, weight_rows=weight_rows.parity(data(), by, 0.1))
    assert "parity" not in mipfs.solve(moved).params["weight_rows"][0], "means without the weights of these samples"


@pytest.mark.slow
def test_folds_and_resamplings_keep_rows_and_bounds_on_the_users_scale() -> None:
    r = np.random.default_rng(1)
    X = r.normal(size=(120, 3)) * np.array([1.0, 100.0, 10.0])
    y = np.where(X @ np.array([1.0, 0.01, 0.05]) + 0.3 * r.normal(size=120) > 0.0, 1.0, -1.0)
    given = mipfs.Instance.from_arrays(X, y, scale="standard")
    by = r.random(120) < 0.4
    zero: list[Any] = [({"x1": 1.0, "x2": 100.0}, 0, 0)]
    bounds = {"x3": (-0.02, 0.02)}
    rows = [*zero, *weight_rows.parity(given, by, 0.05)]
    base = mipfs.Problem(given, M=3, C=1.0, weight_bounds=bounds, weight_rows=rows)
    for number in range(3):
        part = fold(given, 3, 0, number)
        assert part.train.drawn is not None
        samples = part.train.drawn[0]
        result = mipfs.solve(base.on_part(part.train), gap=1e-6)
        shown = part.classifier(result)
        assert shown is not None
        w = np.array([shown["weights"].get(name, 0.0) for name in given.feature_names])
        assert abs(w[0] + 100.0 * w[1]) <= 1e-9 * abs(w[0])
        assert abs(w[2]) == pytest.approx(0.02, rel=1e-9), "the bound binds"
        scores, inside = X[samples] @ w, by[samples]
        assert abs(scores[inside].mean() - scores[~inside].mean()) <= 0.05 + 1e-9
        direct = mipfs.Instance.from_arrays(X[samples], y[samples], scale="standard")
        rows = [*zero, *weight_rows.parity(direct, inside, 0.05)]
        own = mipfs.solve(mipfs.Problem(direct, M=3, C=1.0, weight_bounds=bounds, weight_rows=rows), gap=1e-6)
        assert result.objective == pytest.approx(own.objective, rel=2e-6)
    path = mipfs.path(base, M=[1, 2, 3], folds=3)
    assert len(path.points) == 3
    assert len(mipfs.stability(base, draws=4).sets) == 4


def test_parity_of_a_fold_without_a_group_is_refused() -> None:
    given, by = data(), np.arange(40) == 3
    base = mipfs.Problem(given, M=2, C=1.0, weight_rows=weight_rows.parity(given, by, 0.1))
    with pytest.raises(UsageError, match="no sample of the group 'True'"):
        for number in range(4):
            base.on_part(fold(given, 4, 0, number).train)


@pytest.mark.slow
def test_every_way_to_state_them_is_one_problem(tmp_path: Path) -> None:
    plain = data()
    names = list(plain.feature_names)
    asked = mipfs.Problem(plain, M=2, C=1.0, weight_rows=[*ROW, ({"x1": 1.0, "x2": -0.5}, -0.25, None)])
    best = mipfs.solve(asked).objective
    lines = [",".join([*names, "label"])]
    raw = data(scale="none").block().values
    lines += [",".join([*map(repr, row.tolist()), str(int(sign))]) for row, sign in zip(raw, plain.y, strict=True)]
    (tmp_path / "d.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "d.toml").write_text(
        "[[weights.rows]]\ncoefficients = { x1 = 1, x2 = 1.0, x3 = 1.0 }\nlower = 0\nupper = 0.0\n"
    )
    (tmp_path / "w.lp").write_text("min\nobj: 0 x1\nst\n r: x1 - 0.5 x2 >= -0.25\nend\n")
    read = mipfs.read(tmp_path / "d.csv", scale="standard")
    assert [one.written()["coefficients"] for one in read.weight_rows] == [ROW[0][0]]
    more = read_weight_rows(tmp_path / "w.lp", read)
    assert mipfs.solve(mipfs.Problem(read, M=2, weight_rows=[*read.weight_rows, *more])).objective == best
    model = models.fsp_m(read, M=2)
    scale = dict(zip(names, plain.scale.tolist(), strict=True))
    w = model.svm.w
    model.mine = pyo.Constraint(expr=w["x1"] / scale["x1"] >= 0.5 * w["x2"] / scale["x2"] - 0.25)
    assert mipfs.solve(model).objective == pytest.approx(best, rel=1e-9)
    formulation = models.boolean_relaxation(plain, M=2, loss="hinge", bias=True)
    u = cp.multiply(formulation.variables["w"], 1.0 / plain.scale)
    formulation = formulation.with_constraints([u[0] + u[1] + u[2] == 0, u[0] - 0.5 * u[1] >= -0.25])
    assert mipfs.solve(formulation, "branch").objective == pytest.approx(best, rel=1e-9)
    sklearn = mipfs.FSPClassifier(M=2, scale="standard", weight_rows=[({0: 1, 1: 1, 2: 1}, 0, 0), more[0]])
    assert sklearn.fit(raw, plain.y).result_.objective == best


@pytest.mark.parametrize("signs", [None, {0: 1}], ids=["", "signs"])
@pytest.mark.parametrize("more", [{"M": 3}, {"keep": "all"}, {"keep": "scores"}, {"debias": 5.0}], ids=str)
def test_the_classifier_of_an_estimator_keeps_the_rows(more: dict[str, Any], signs: Any) -> None:
    """What is refitted on the selected features obeys them as the result does: it did not."""
    given = data()
    X, rows = given.X * [1.0, 3.0, 0.2, 1.0, 1.0], [({0: 1.0, 1: -2.0}, 0, 0), ({1: 1.0, 2: 1.0}, None, 0.01)]
    asked = {"C": 0.3, "scale": "standard", "forced_in": [0, 1, 2], "weight_rows": rows, "monotonic_cst": signs}
    kind: Any = mipfs.FSPClassifier if "M" in more else mipfs.FGMClassifier
    model = kind(**asked, **{"M": 3, **more}).fit(X, given.y)
    w = model.coef_[0]
    assert abs(w[0] - 2.0 * w[1]) <= 1e-9 * np.abs(w).max()
    assert w[1] + w[2] <= 0.01 + 1e-9 * np.abs(w).max()
    assert np.abs(w[:2]).min() > 1e-6
    assert signs is None or w[0] >= 0.0
    if "M" in more:  # and it is the classifier of the result
        named = [model.result_.weights[f"x{j + 1}"] for j in range(3)]
        np.testing.assert_allclose(w[:3], named, rtol=1e-3, atol=1e-4)
        assert model.intercept_[0] == pytest.approx(model.result_.intercept, abs=1e-2)


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("st\n r: x1 + x2 >= 1\nend\n", 4, "weights of 0 break this row"),
        ("st\n r: x1 + extra_z >= 0\nend\n", 4, "is no weight"),
        ("st\n r: x1 + x2 >= 0\nbounds\n x1 <= 3\nend\n", 6, "a weight has a bound"),
        ("st\n r: x1 + x2 >= 0\nbinary\n x1\nend\n", 6, "'x1' is to be whole here, and weights are not"),
        ("st\n r: x1 + x2 >= 0\ngeneral\n\n x2 x1\nend\n", 7, "'x2' is to be whole here, and weights are not"),
        ("st\n r: x1 + extra_z >= 0\nbinary\n extra_z\nend\n", 4, "'extra_z' is no weight"),
    ],
)
def test_lp_files_that_say_more_are_refused(text: str, line: int, said: str, tmp_path: Path) -> None:
    path = tmp_path / "w.lp"
    path.write_text("min\nobj: 0 x1\n" + text)
    with pytest.raises(DataError, match=said) as raised:
        read_weight_rows(path, data())
    assert (raised.value.path, raised.value.line) == (path, line)


def test_models_whose_rows_are_none_say_so() -> None:
    given = data()
    for expression, said in (
        (lambda m: m.svm.w["x1"] + m.select.sigma["x1"] <= 1, "outside select"),
        (lambda m: m.svm.w["x1"] - m.svm.w["x2"] >= 1, "leaves out weights that are all 0"),
        (lambda m: m.svm.w["x1"] * m.svm.w["x2"] <= 1, "not linear"),
    ):
        model = models.fsp_m(given, M=2)
        model.mine = pyo.Constraint(expr=expression(model))
        with pytest.raises(RowError, match=said):
            mipfs.solve(model)


def test_a_result_says_them_and_is_posed_again(tmp_path: Path) -> None:
    given = data()
    problem = mipfs.Problem(given, M=2, C=1.0, weight_rows=ROW)
    result = mipfs.solve(problem)
    assert "w(x1) + w(x2) + w(x3) = 0" in result.summary()
    result.save(tmp_path / "r.json")
    stated = json.loads((tmp_path / "r.json").read_text())["params"]["weight_rows"]
    assert stated == [{"coefficients": ROW[0][0], "lower": 0.0, "upper": 0.0, "allowance": stated[0]["allowance"]}]
    report = mipfs.verify(result, given)
    assert report.accepted
    assert any("w(x1) + w(x2) + w(x3) = 0" in line for line in report.statement)
    asked = data(weight_rows=[({"x1": 1.0, "x4": 1.0}, -1.0, 1.0)])
    assert any("w(x1) + w(x4)" in line for line in mipfs.verify(result, asked).differs)
    with pytest.raises(MipfsError, match="weight_rows"):
        mipfs.solve(problem.replace(weight_rows=()), pool=mipfs.solve(problem, pool=_pool(problem)).pool)


def _pool(problem: mipfs.Problem) -> Any:
    from mipfs.proof.cuts import CutPool

    return CutPool(problem)
