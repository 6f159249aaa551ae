"""Rows over the weights: what is refused, what is solved (by Clarabel over all selections), every way to state them."""

from __future__ import annotations

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
from mipfs.data.over_weights import Ends, WeightRow, allowance, power_above
from mipfs.errors import DataError, MipfsError, RowError, UsageError
from mipfs.lab.baselines import get_baseline
from mipfs.readers.lp_rows import read_weight_rows
from tests import over_weights

ROW: list[Any] = [({"x1": 1.0, "x2": 1.0, "x3": 1.0}, 0.0, 0.0)]
INF = math.inf


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


@pytest.mark.parametrize("driver", ["gbd", "kelley", "two_layer", "conic", "monolithic"])
def test_drivers_that_know_none_say_so(driver: str) -> None:
    with pytest.raises(UsageError, match="rows over the weights"):
        mipfs.solve(mipfs.Problem(data(), M=2, loss="squared-hinge", weight_rows=ROW), driver)


@pytest.mark.parametrize("options", [{"nodes": "conic"}, {"active": ("x1", "x2")}, {"relax": "array"}])
def test_options_of_branch_that_know_none_say_so(options: Any) -> None:
    with pytest.raises(UsageError, match=r"rows over the weights|does not take this problem"):
        mipfs.solve(mipfs.Problem(data(), M=2, weight_rows=ROW), "branch", **options)


def test_whole_extra_variables_beside_them_are_refused() -> None:
    model = models.fsp_m(data(weight_rows=ROW), M=2)
    model.select.whole = pyo.Var(domain=pyo.Integers, bounds=(0, 2))
    model.select.row = pyo.Constraint(expr=model.select.sigma["x1"] <= model.select.whole)
    with pytest.raises(UsageError, match="extra variables that are whole"):
        mipfs.solve(model)


def test_baselines_sketches_and_stacks_say_so() -> None:
    asked = data(weight_rows=ROW)
    with pytest.raises(UsageError, match="no rows over the weights"):
        get_baseline("lpsvm")(asked, M=2)
    with pytest.raises(UsageError, match="no rows over the weights"):
        mipfs.preselect(mipfs.Problem(asked, M=2), "bss:3")
    result = mipfs.solve(mipfs.Problem(asked, M=2, C=0.1))
    with pytest.raises(UsageError, match="no rows over the weights"):
        mipfs.scorecard(result, asked)


@pytest.mark.parametrize("seed", [2, 4, 11, 5008])
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
    ends = Ends(rows, index, np.array([1.0, 2.0, 0.5, 3.0, 1.0]), 16.0)
    ids, low, high = np.arange(5), np.array([0.0, -1.0, -9.0, -9.0, -9.0]), np.array([9.0, 9.0, 0.0, 9.0, 9.0])
    w = np.array([0.3, -0.2, -0.7, 2.0, 1.0])
    moved = ends.brought_in(ids, w, (low, high))
    assert np.all((moved >= low) & (moved <= high))
    users = moved / ends.scale
    assert ends.hold(ids, users)
    assert not ends.hold(ids, users + np.array([0.0, 1e-9, 0.0, 0.0, 0.0]))
    assert not ends.hold(ids, users * 2.0**20), "larger than W"
    assert np.array_equal(ends.brought_in(ids, moved, (low, high)), moved)


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


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("st\n r: x1 + x2 >= 1\nend\n", "weights of 0 break this row"),
        ("st\n r: x1 + extra_z >= 0\nend\n", "is no weight"),
        ("st\n r: x1 + x2 >= 0\nbounds\n x1 <= 3\nend\n", "a weight has a bound"),
        ("st\n r: x1 + x2 >= 0\nbinary\n x1\nend\n", "a weight has a bound"),
    ],
)
def test_lp_files_that_say_more_are_refused(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "w.lp"
    path.write_text("min\nobj: 0 x1\n" + text)
    with pytest.raises(DataError, match=said):
        read_weight_rows(path, data())


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
