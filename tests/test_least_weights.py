"""Bounds on weights that exclude 0: if selected, at least so much. `python -m tests.least_weights` draws problems."""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import mipfs
from mipfs import Problem, models
from mipfs.check.bounded import BoundedRidge
from mipfs.check.dual_vectors import Duals
from mipfs.data.instance import Instance
from mipfs.errors import DataError, UsageError
from mipfs.formulation.pyomo_rows import compile as compiled
from mipfs.proof.cuts import cut_of_dual, feasible_dual
from mipfs.regularisers.box import Bounds
from tests import least_weights
from tests.bounded_cases import clarabel, declared

BOUNDS: dict[str, Any] = {"x1": (1.5, None), "x2": (None, -0.02), "x3": (6.0, 12.0)}


def small(scale: str = "standard") -> Instance:
    """Three features of different sizes whose weights must matter, and a fourth."""
    r = np.random.default_rng(3)
    X = r.normal(size=(40, 4))
    y = np.where(X[:, 0] - X[:, 1] + r.normal(size=40) > 0.0, 1.0, -1.0)
    return Instance.from_arrays(X * [1.0, 10.0, 0.1, 1.0], y, scale=scale)


def values(data: Instance, loss: str = "squared-hinge") -> dict[tuple[int, ...], float]:
    """v of every selection, by Clarabel."""
    Z, scale = np.asarray(data.stated(np.arange(4))), np.asarray(data.scale)
    ends = np.array([(-np.inf, np.inf)] * 4)
    for name, pair in BOUNDS.items():
        j = data.index[name]
        ends[j] = [absent if end is None else end * scale[j] for end, absent in zip(pair, ends[j], strict=True)]
    found = {}
    for ids in (one for size in range(5) for one in itertools.combinations(range(4), size)):
        program = declared(Z[:, ids], data.y, np.ones(40), loss, True, tuple(ends[list(ids)].T))
        program.solve(**clarabel(1e-9))
        found[ids] = float(program.value)
    return found


@pytest.mark.parametrize(
    "seed", [9, pytest.param(12, marks=pytest.mark.slow), pytest.param(17, marks=pytest.mark.slow)]
)
def test_against_brute_force(seed: int) -> None:
    with least_weights.remembered():
        over = least_weights.case(seed)
    assert least_weights.faults(over, Counter(), 3, np.random.default_rng(seed)) == []


@pytest.mark.slow
def test_a_larger_selection_may_be_worse() -> None:
    data = small()
    found = values(data)
    assert min(v for ids, v in found.items() if len(ids) == 4) > 1.01 * min(found.values())
    problem = Problem(data, M=4, C=1.0, loss="squared-hinge", weight_bounds=BOUNDS)
    for M, least in ((1, 0), (2, 0), (4, 0), (3, 3), (4, 4)):
        asked = problem.replace(M=M)
        asked = asked.with_rows(np.ones((1, 4)), least, M) if least else asked
        result = mipfs.solve(asked, "branch", gap=1e-7)
        best = min(v for ids, v in found.items() if least <= len(ids) <= M)
        assert result.objective == pytest.approx(best, rel=1e-6)
        assert result.bound <= best * (1.0 + 1e-7)
        assert mipfs.verify(result, data).accepted
    assert "x1 >= 1.5 where it is selected" in result.summary()


@pytest.mark.slow
def test_a_list_has_what_costs_something() -> None:
    """A support with one more feature whose weight may not be 0 is no tie: it is listed by itself."""
    data = small()
    best = min((found := values(data)).values())
    problem = Problem(data, M=3, C=1.0, loss="squared-hinge", weight_bounds=BOUNDS)
    result = mipfs.solve(problem, "branch", pool_gap=0.2)
    assert result.near_optimal is not None
    assert result.near_optimal["complete"]
    listed = {tuple(problem.atoms_of(one["selected"]).tolist()) for one in result.near_optimal["supports"]}
    within = {ids for ids, v in found.items() if len(ids) <= 3 and v <= 1.2 * best}
    assert listed == within
    assert any(set(a) < set(b) for a in listed for b in listed)
    assert mipfs.verify(result, data).accepted


def test_in_a_model_the_feature_is_forced_in() -> None:
    data = small()
    wanted = mipfs.solve(Problem(data, M=2, weight_bounds={"x3": (6.0, None)}, forced_in=("x3",)), "branch").objective
    model = models.fsp_m(data, M=2)
    model.svm.w["x3"].setlb(6.0 * float(data.scale[2]))
    problem = compiled(model)
    assert problem.forced_in == ("x3",)
    assert mipfs.solve(model).objective == pytest.approx(wanted, rel=1e-4)
    program = models.boolean_relaxation(data, M=2, loss="hinge", bias=True)
    program = program.with_constraints([program.variables["w"][2] >= 6.0 * float(data.scale[2])])
    assert mipfs.solve(program, "branch").objective == pytest.approx(wanted, rel=1e-4)
    own = compiled(models.fsp_m(data, M=2, weight_bounds=BOUNDS))
    assert own.forced_in == ()
    assert own.weight_bounds == Problem(data, M=2, weight_bounds=BOUNDS).weight_bounds


def test_beside_the_data(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text("a,b,label\n1,2,1\n2,1,0\n3,1,1\n0,4,0\n")
    (tmp_path / "m.toml").write_text("[weights]\nbounds = { a = [0.5, inf] }\n")
    data = mipfs.read(tmp_path / "m.csv")
    assert data.weight_bounds == {"a": (0.5, np.inf)}
    (tmp_path / "m.toml").write_text('[weights]\nnonpositive = ["a"]\nbounds = { a = [0.5, inf] }\n')
    with pytest.raises(DataError, match=r"'a': .* have no weight in common"):
        mipfs.read(tmp_path / "m.csv")


def groups(data: Instance) -> Problem:
    made = mipfs.atoms.make("groups", data, groups={"a": ["x1", "x2"], "b": ["x3", "x4"]})
    return Problem(data, M=1, atoms=made, weight_bounds=BOUNDS)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (groups, "'x1' = .* exclude 0, and go with single features as they are, not groups"),
        (lambda data: Problem(data, weight_bounds=BOUNDS, weight_rows=[({"x1": 1, "x4": -1}, 0, None)]), "name 'x1'"),
        (lambda data: Problem(data, loss="structural", measure="f1", weight_bounds=BOUNDS), "structural"),
        (lambda data: solved(data, "gbd"), "cannot carry bounds on weights that exclude 0; branch can"),
        (lambda data: solved(data, "kelley"), "cannot carry bounds on weights that exclude 0"),
        (lambda data: solved(data, "conic"), "cannot carry bounds on weights that exclude 0"),
        (lambda data: solved(data, "branch", relax="batch"), "it is 'interior'"),
        (lambda data: solved(data, "branch", nodes="conic"), "nodes = 'conic' knows no bounds on weights that exclude"),
        (lambda data: solved(data, "branch", active=("x1",)), "active knows no bounds on weights that exclude 0"),
    ],
)
def test_refused_by_name(asked: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        asked(small())


def solved(data: Instance, driver: str, **options: Any) -> Any:
    return mipfs.solve(Problem(data, M=2, weight_bounds=BOUNDS), driver, **options)


def test_rounded_outward() -> None:
    """The solver and the checker hold no less than h of the ends that are stated, and not much more."""
    r = np.random.default_rng(5)
    p = 6
    for _ in range(40):
        data = Instance.from_arrays(r.normal(size=(8, p)) * 10.0 ** r.uniform(-3, 3, p), np.resize([1.0, -1.0], 8),
                                    scale="standard")  # fmt: skip
        sizes = 10.0 ** r.uniform(-2, 2, p)
        stated = {f: [low, 2.0 * low] if j % 2 else [-2.0 * low, -low]
                  for j, (f, low) in enumerate(zip(data.feature_names, sizes.tolist(), strict=True))}  # fmt: skip
        theirs = BoundedRidge(stated, data)
        ours = Bounds.of({f: (a, b) for f, (a, b) in stated.items()}, data.index, data.scale)
        assert not ours.is_monotone
        assert theirs.excluding == frozenset(range(p))
        low, high = (np.asarray(end) for end in ours.ends)
        near = np.where(low > 0.0, low, -high)
        # where h cancels: ω is half of the end nearest 0
        omega = np.where(low > 0.0, 0.5, -0.5) * near * (1.0 + r.choice([0.0, 1e-15, 0.3, 4.0, -2.0], p))
        above = ours.conjugate_above(omega, np.zeros(p))
        checked = 0.5 * theirs.twice_above(0, omega[None], np.zeros((1, p)))[0]
        for j in range(p):
            exact = theirs.conjugate(j, Fraction(float(omega[j])))
            assert Fraction(float(above[j])) >= exact
            assert Fraction(float(checked[j])) >= exact
            size = abs(exact) + Fraction(float(near[j])) ** 2
            assert max(Fraction(float(above[j])), Fraction(float(checked[j]))) <= exact + size / 2**38


def test_a_dual_vector_of_0_charges_what_is_forced_in() -> None:
    data = small()
    problem = Problem(data, M=2, weight_bounds=BOUNDS)
    cut = cut_of_dual(problem, feasible_dual(problem, np.zeros(40)))
    ends = np.array([1.5, 0.02, 6.0, 0.0]) * np.asarray(data.scale)
    assert cut.constant == 0.0
    assert -0.5 * cut.slopes == pytest.approx(0.5 * ends**2)


def test_a_dual_vector_of_0_proves_what_a_forced_feature_costs() -> None:
    """½l² is far above all that the samples can lose: only α = 0 proves it."""
    data = small()
    bounds = {"x1": (1e60, None)}
    result = mipfs.solve(Problem(data, M=1, forced_in=("x1",), weight_bounds=bounds), "branch")
    assert result.objective == pytest.approx(0.5e120 * float(data.scale[0]) ** 2, rel=1e-9)
    assert mipfs.verify(result, data).accepted


def test_the_checker_rounds_costs_of_both_signs_down() -> None:
    r = np.random.default_rng(7)
    duals: Any = object.__new__(Duals)
    duals.statement, duals.least = SimpleNamespace(excluding=frozenset([0])), 0.0
    scores = r.normal(size=(300, 1)) * 10.0 ** r.uniform(-8, 8, (300, 1))
    penalty = np.abs(r.normal(size=(300, 1)))
    for nothing in (np.array([False]), np.array([True])):
        found = duals.lift(scores, penalty, nothing)
        for cost, c, s in zip(found[:, 0].tolist(), penalty[:, 0].tolist(), scores[:, 0].tolist(), strict=True):
            exact = Fraction(c) - Fraction(s) / 2
            assert Fraction(cost) <= exact or (nothing[0] and cost == c)
            assert Fraction(cost) >= exact - (abs(Fraction(s)) + Fraction(c)) / 2**48 or (nothing[0] and cost == c)
