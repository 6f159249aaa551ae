"""Bounds on the weights by name: against all supports, each by Clarabel; certified; refused where not carried."""

from __future__ import annotations

import itertools
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mipfs
from mipfs import models
from mipfs.check.bounded import BoundedRidge
from mipfs.check.tree import check
from mipfs.data.bounds import both, of_box, of_signs
from mipfs.data.instance import Instance
from mipfs.errors import DataError, UsageError
from mipfs.problem import Problem
from mipfs.regularisers.ridge import RIDGE
from tests.bounded_cases import LOSSES, case, faults

BOUNDS = {"x1": (0.0, None), "x2": (None, 0.0), "x3": (-0.05, 0.1)}


def make(seed: int = 0, scale: Any = "standard", **changes: Any) -> Instance:
    r = np.random.default_rng(seed)
    X = r.normal(size=(40, 5)) * np.array([1.0, 10.0, 0.3, 1.0, 2.0]) + 3.0
    y = np.where(-X[:, 0] + 0.2 * X[:, 1] + X[:, 3] + 3 * X[:, 2] - 9.6 + 0.7 * r.normal(size=40) > 0, 1, -1)
    return Instance.from_arrays(X, y, scale=scale, **changes)


@pytest.mark.sampled(41)
@pytest.mark.parametrize("seed", range(1, 40))
def test_brute_force(seed: int) -> None:
    one = case(seed)
    values = one.values()
    for driver in ("branch", "gbd", "kelley"):
        assert not faults(one, driver, values)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 106))
def test_declared_programs_and_the_ladder(seed: int) -> None:
    one = case(seed)
    problem, best = one.problem(), min(one.values().values())
    found = mipfs.solve(problem, "monolithic", gap=1e-6)
    assert found.objective == pytest.approx(best, rel=1e-5)
    ladder = mipfs.compare(problem)
    values = [ladder[name].value for name in ("plain", "qcqp-ssvm", "boolean", "convex-hull", "exact")]
    assert all(low <= high * (1 + 1e-6) for low, high in itertools.pairwise(values)), values
    assert values[-1] == pytest.approx(best, rel=1e-5)
    assert "cannot carry weight bounds" in ladder["big-m"].status
    assert "cannot carry weight bounds" in ladder["nmmkl"].status


@pytest.mark.parametrize("seed", [3, 4])
def test_near_optimal_supports(seed: int) -> None:
    """All minimal supports within the gap are listed, and no other."""
    one = case(seed)
    values = one.values()
    best = min(values.values())
    limit = best + 0.2 * abs(best)
    least = {s for s, v in values.items() if not any(t < s and values[t] <= v + 1e-6 * abs(v) for t in values)}
    wanted = {s for s in least if values[s] <= limit * (1 - 1e-6)}
    perhaps = {s for s in least if values[s] <= limit * (1 + 1e-6)}
    found = mipfs.solve(one.problem(), pool_gap=0.2, gap=1e-7)
    assert found.near_optimal is not None
    assert found.near_optimal["complete"]
    listed = {frozenset(one.names.index(n) for n in s["selected"]) for s in found.near_optimal["supports"]}
    assert wanted <= listed <= perhaps
    assert mipfs.verify(found, one.problem().data).accepted


@pytest.mark.slow
def test_the_users_scale() -> None:
    """A bound means the same weight however the columns are scaled, and none is left by an ulp."""
    for seed in range(6):
        for scale in ("standard", "unit", "none"):
            data = make(seed, scale)
            found = mipfs.solve(Problem(data, M=3, C=1.0, loss=LOSSES[seed % 3], weight_bounds=BOUNDS), gap=1e-6)
            for name, (low, high) in BOUNDS.items():
                w = found.weights.get(name, 0.0)
                assert low is None or w >= low
                assert high is None or w <= high
            assert found.params["weight_bounds"] == {name: [*ends] for name, ends in BOUNDS.items()}
            assert mipfs.verify(found, data).accepted


def test_a_forged_document_is_refused() -> None:
    data = make(3)
    found = mipfs.solve(Problem(data, M=2, C=1.0, weight_bounds=BOUNDS), gap=1e-6)
    assert found.claim is not None
    document = json.loads(found.to_json()) | dict(found.stated) | {"certificate": found.claim.entry()}
    arrays = found.claim.proof.arrays()
    report = check(document, arrays, data)
    assert report.accepted, report.reason
    assert any("x1 >= 0" in line and "-0.05 <= x3 <= 0.1" in line for line in report.statement), report.statement
    for other in (
        {},
        None,
        {"x1": [0.0, None]},
        {"x1": [None, None], "x2": [None, 0.0], "x3": [-0.05, 0.1]},
        {"x3": [-5e-3, 1e-3], **{f"x{j}": [-1e-6, 1e-6] for j in (1, 2, 4, 5)}},
        {"x1": [0.5, None]},
        {"x1": [1.0, -1.0]},
        {"x1": [0.0]},
        {"x1": ["0", None]},
        {"x1": [False, None]},
        {"x1": [float("nan"), None]},
        {"x9": [0.0, None]},
        [["x1", 0.0, None]],
    ):
        params = {k: v for k, v in document["params"].items() if k != "weight_bounds"}
        forged = document | {"params": params | ({} if other is None else {"weight_bounds": other})}
        assert not check(forged, arrays, data).accepted, other
    both_terms = document["params"] | {"regulariser": {"name": "ridge"}}
    assert not check(document | {"params": both_terms}, arrays, data).accepted
    outside = document | {"weights": document["weights"] | {"x3": 0.1 * (1 + 2**-50)}, "selected": ["x3"]}
    assert not check(outside, arrays, data).accepted


def test_the_checkers_conjugate() -> None:
    """The one in floating point is no less than the exact one anywhere in an interval, and hardly more."""
    data = make(1)
    ends = {"x1": [0.0, None], "x2": [None, 0.0], "x3": [-0.05, 0.1], "x4": [0.0, 0.0]}
    own = BoundedRidge(ends, data)
    r = np.random.default_rng(5)
    omega = r.normal(size=(200, 5)) * 10.0 ** r.uniform(-160, 6, (200, 5))
    radius = np.abs(omega) * 10.0 ** r.uniform(-17, -1, omega.shape) * (r.random(omega.shape) < 0.7)
    found = own.twice_above(0, omega, radius)
    for (_, j), middle, far, above in zip(
        np.ndindex(omega.shape), omega.ravel().tolist(), radius.ravel().tolist(), found.ravel().tolist(), strict=True
    ):
        points = [Fraction(middle) + k * Fraction(far) for k in (-1, 0, 1)]
        exact = max(2 * own.conjugate(j, x) for x in points)
        assert Fraction(above) >= exact
        assert Fraction(above) <= exact * (1 + Fraction(1, 2**40)) + Fraction(1, 2**1000) or far == 0.0 or exact > 0
    assert np.all(own.twice_above(0, np.array([[np.inf] * 5]), np.zeros((1, 5))) == np.inf)
    assert np.array_equal(own.twice_above(3, omega[:, 3:4], radius[:, 3:4]), found[:, 3:4])


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"x1": (2.0, -1.0)}, "lies above the upper one"),
        ({"x1": (float("nan"), 1.0)}, "must be two numbers"),
        ({"x1": (0.0, True)}, "must be two numbers"),
        ({"x1": "01"}, "must be two numbers"),
        ({"x1": 1.0}, "must be two numbers"),
        ({"x1": (0.0, 1e200)}, "of a size from"),
        ({"X1": (0.0, 1.0)}, "no feature is called 'X1'; features are called like 'x1'"),
        ({"intercept": (0.0, 1.0)}, "the intercept has no bounds"),
        ([("x1", 0.0, 1.0)], "weight_bounds is a list"),
    ],
)
def test_bad_bounds(wrong: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        Problem(make(), M=2, weight_bounds=wrong)


def test_what_does_not_go_together() -> None:
    data = make()
    for params, words in (
        ({"margin": "rho", "loss": "squared-hinge", "bias": False}, "that are no signs are not so"),
        ({"loss": "structural", "bias": False, "measure": "roc-area"}, "goes with ½w² alone; leave weight bounds out"),
        ({"atoms": mipfs.atoms.make("splines", data)}, "weight_bounds are about single features"),
        ({"atoms": mipfs.atoms.make("pairs", data)}, "weight_bounds are about single features"),
        ({"regulariser": mipfs.regularisers.get_regulariser("box", high=1.0)}, "weight_bounds go with ½w² alone"),
    ):
        with pytest.raises(UsageError, match=words):
            Problem(data, M=2, weight_bounds=BOUNDS, **params)
    bounded = Problem(data, M=2, weight_bounds=BOUNDS)
    for asked in ({"driver": "two_layer"}, {"driver": "branch", "nodes": "conic"}):
        with pytest.raises(UsageError, match="weight bounds"):
            mipfs.solve(bounded, **asked)
    signs = bounded.replace(weight_bounds={"x1": (0, None)}, margin="rho", loss="squared-hinge", bias=False)
    found = mipfs.solve(signs)
    assert mipfs.verify(found, data).accepted


def test_replacing() -> None:
    data = make()
    bounded = Problem(data, M=2, weight_bounds=BOUNDS)
    assert bounded.replace(weight_bounds={}).regulariser == RIDGE
    assert bounded.replace(C=3.0).regulariser == bounded.regulariser
    assert bounded.replace(data=make(scale="none")).regulariser != bounded.regulariser
    part = bounded.restricted(np.array([1, 3]))
    assert part.weight_bounds == {"x2": (-np.inf, 0.0)}
    assert bounded.restricted(np.array([3, 4])).regulariser == RIDGE
    mine = make(weight_bounds={"x1": (0.0, None)})
    assert Problem(mine, M=2).weight_bounds == {"x1": (0.0, np.inf)}
    assert Problem(mine, M=2, weight_bounds={}).regulariser == RIDGE
    assert mine.part(np.arange(30)).weight_bounds == mine.weight_bounds
    assert models.fsp_m.problem(data, M=2, weight_bounds=BOUNDS).weight_bounds == bounded.weight_bounds


def test_combined() -> None:
    signs = of_signs(["a"], ["b"])
    assert both(signs, of_box(["a", "b", "c"], 2)) == {"a": (0.0, 2.0), "b": (-2.0, 0.0), "c": (-2.0, 2.0)}
    for wrong in (0, -1.0, float("nan"), True, "2"):
        with pytest.raises(UsageError, match="box = "):
            of_box(["a"], wrong)


CSV = "income,debt,age,label\n1,5,30,1\n2,4,20,1\n3,1,40,1\n1,9,31,0\n0.5,8,22,0\n2.5,7,50,0\n3.1,2,45,1\n"


def test_the_description(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text(CSV)
    toml = tmp_path / "m.toml"
    toml.write_text(
        '[weights]\nnonnegative = ["income"]\nnonpositive = ["debt"]\nbounds = { age = [-1.0, inf] }\nbox = 5\n'
    )
    data = mipfs.read(tmp_path / "m.csv", scale="standard")
    assert data.weight_bounds == {"income": (0.0, 5.0), "debt": (-5.0, 0.0), "age": (-1.0, 5.0)}
    found = mipfs.solve(Problem(data, M=2))
    assert mipfs.verify(found, data).accepted
    assert "income can only help (towards 1). debt can only hurt (towards 1)" in found.summary()
    free = mipfs.solve(Problem(data, M=2, weight_bounds={"income": (0.0, 1.0)}))
    report = mipfs.verify(free, data)
    assert report.accepted
    assert [line for line in report.differs if "'income'" in line] == []
    assert [line for line in report.differs if "'debt'" in line]
    for text, words in (
        ('[weights]\nnonnegative = ["incme"]', "did you mean 'income'"),
        ("[weights]\nbounds = { age = [1.0, 2.0] }\nbox = 0.5", "'age': .* have no weight in common"),
        ("[weights]\nbounds = [1.0]", "write bounds = "),
        ("[weights]\nbox = -1", "box = -1"),
        ("[weights]\nsigns = 1", "unknown key 'signs'"),
    ):
        toml.write_text(text)
        with pytest.raises(DataError, match=words):
            mipfs.read(tmp_path / "m.csv", scale="standard")


def test_labels_that_are_words_ask_for_the_class(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text(CSV.replace(",1\n", ",good\n").replace(",0\n", ",bad\n"))
    (tmp_path / "m.toml").write_text('[weights]\nnonnegative = ["income"]\n')
    with pytest.raises(DataError, match="the labels are words"):
        mipfs.read(tmp_path / "m.csv")
    assert mipfs.read(tmp_path / "m.csv", positive="good", scale="none").weight_bounds == {"income": (0.0, np.inf)}
