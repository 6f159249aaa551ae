"""`compare`: the order of the ladder, what every rung says, and what it does when it cannot be climbed."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import mipfs
from mipfs.atoms.groups import Groups
from mipfs.data.instance import Instance, Row, SelectDefaults
from mipfs.errors import UsageError
from mipfs.lab.studies import ladder
from mipfs.models import reduced_mkl
from mipfs.problem import Problem
from mipfs.solvers import cones

P = 6
NAMES = tuple(f"x{j + 1}" for j in range(P))
COSTS = dict(zip(NAMES, (3.0, 2.0, 1.0, 2.0, 4.0, 2.0), strict=True))
ROWS: dict[str, tuple[Row, ...]] = {
    "cardinality": (),
    "budget": (Row("budget", COSTS, -np.inf, 5.0),),
    "dependencies": (
        Row("implies", {"x1": 1.0, "x3": -1.0}, -np.inf, 0.0),
        Row("conflict", {"x2": 1.0, "x3": 1.0}, -np.inf, 1.0),
        Row("odd cycle", {"x4": 2.0, "x5": 2.0, "x6": 2.0}, 1.0, 3.0),
    ),
}
CASES = list(itertools.product(("hinge", "squared-hinge"), (True, False), ROWS, range(3)))


def make(seed: int, rows: str = "cardinality", **parameters: Any) -> Problem:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(12, 30))
    X = rng.normal(size=(n, P)) + rng.normal(size=P)
    if seed == 1:  # zeros, a constant and a duplicate
        X = np.where(rng.random(X.shape) < 0.4, 0.0, X)
        X[:, 3], X[:, 5] = 1.0, X[:, 0]
    y = np.where(X[:, 0] + 0.5 * X[:, 1] + rng.normal(size=n) > np.median(X[:, 0]), 1.0, -1.0)
    y[:2] = 1.0, -1.0
    stored = sparse.csc_array(X) if seed == 1 else X
    data = Instance.from_arrays(stored, y, rows=ROWS[rows], scale="standard" if seed == 2 else "none")
    return Problem(data, **{"M": 2 + seed % 2, "C": (0.1, 1.0, 10.0)[seed % 3], **parameters})


def hull(problem: Problem) -> float:
    """The relaxation over conv S, from the list of all selections."""
    every = (np.array(sigma, dtype=bool) for sigma in itertools.product((0, 1), repeat=P))
    declared = reduced_mkl.declare(problem, [sigma for sigma in every if problem.selection.contains(sigma)])
    assert cones.solve(declared.cvxpy) == "solved"
    return float(declared.cvxpy.value)


def below(lower: float, upper: float) -> bool:
    return lower <= upper + 1e-6 * abs(upper)


@pytest.mark.slow
@pytest.mark.parametrize(("loss", "bias", "rows", "seed"), CASES)
def test_the_order_of_the_ladder(loss: str, bias: bool, rows: str, seed: int) -> None:
    problem = make(seed, rows, loss=loss, bias=bias)
    found = mipfs.compare(problem)
    value = {rung.name: rung.value for rung in found.ladder}
    assert tuple(value) == ladder.RUNGS
    assert all(np.isfinite(v) for v in value.values())
    chain = ("plain", "qcqp-ssvm", "nmmkl", "boolean", "convex-hull", "exact")
    for lower, upper in itertools.pairwise(chain):
        assert below(value[lower], value[upper]), (lower, upper)
    assert value["sdp-ssvm"] == pytest.approx(value["qcqp-ssvm"], rel=1e-6)
    assert value["nmmkl"] == pytest.approx(value["boolean"], rel=1e-6)
    assert value["decomposed-sdp"] == pytest.approx(value["boolean"], rel=1e-6)
    assert below(value["plain"], value["big-m"])
    assert below(value["big-m"], value["exact"])
    assert value["convex-hull"] == pytest.approx(hull(problem), rel=1e-6)
    if rows == "cardinality":
        assert value["convex-hull"] == pytest.approx(value["boolean"], rel=1e-6)
    best = mipfs.solve(problem, gap=1e-8)
    assert found.incumbent == pytest.approx(best.objective, rel=2e-6)
    assert max(value.values()) <= best.objective * (1 + 1e-12)
    for rung in found.ladder:
        assert rung.is_bound
        assert rung.gap == pytest.approx(max(0.0, found.incumbent - rung.value) / abs(found.incumbent), abs=1e-15)
        assert rung.seconds >= 0
        assert rung.size is not None
        assert min(rung.size["variables"], rung.size["constraints"]) >= 1
    without = "solved" if rows == "cardinality" else "solved without the rows"
    for name, wanted in (("plain", without), ("sdp-ssvm", without), ("nmmkl", "solved"), ("exact", "optimal")):
        assert found[name].status == wanted


@pytest.mark.slow
def test_the_hull_is_strictly_above_the_box_where_the_budget_cuts_it() -> None:
    found = mipfs.compare(make(1, "budget", loss="squared-hinge"), rungs=["boolean", "convex-hull"])
    assert found["boolean"].value < found["convex-hull"].value * (1 - 1e-4)


def test_the_json_is_that_of_the_contract() -> None:
    found = mipfs.compare(make(0), rungs=["exact", "plain", "qcqp-ssvm"])
    document = json.loads(found.to_json(), parse_constant=lambda name: pytest.fail(name))
    assert set(document) == {"schema", "params", "incumbent", "ladder", "selected", "conflict"}
    assert document["schema"] == 1
    assert (document["params"]["M"], document["params"]["loss"]) == (2, "hinge")
    assert document["incumbent"] == found.incumbent
    assert [line["name"] for line in document["ladder"]] == ["plain", "qcqp-ssvm", "exact"]
    for line in document["ladder"]:
        assert set(line) == {"name", "is_bound", "value", "gap", "seconds", "size", "status"}
    with pytest.raises(KeyError):
        _ = found["nmmkl"]


def test_rungs_that_need_m_are_skipped_with_the_reason_for_fsp_lambda() -> None:
    problem = make(0, M=None, lam=0.2)
    found = mipfs.compare(problem)
    for name in ("qcqp-ssvm", "sdp-ssvm"):
        assert found[name].status == "skipped: needs M, and the problem has no cardinality row"
        assert (found[name].value, found[name].gap, found[name].size) == (-np.inf, np.inf, None)
    assert found["plain"].status == "solved without the penalties"
    assert found["nmmkl"].value == pytest.approx(found["boolean"].value, rel=1e-6)
    assert below(found["convex-hull"].value, found["exact"].value)
    lines = {line["name"]: line for line in json.loads(found.to_json())["ladder"]}
    assert (lines["sdp-ssvm"]["value"], lines["sdp-ssvm"]["gap"], lines["sdp-ssvm"]["size"]) == (None, None, None)


@pytest.mark.slow
def test_rows_of_pyomo_and_forced_features_are_honoured() -> None:
    import pyomo.environ as pyo

    from mipfs import models

    data = make(0).data
    model = models.fsp_m(data, M=3, C=1.0)
    model.select.budget = pyo.Constraint(expr=sum(COSTS[j] * model.select.sigma[j] for j in NAMES) <= 4)
    model.select.sigma["x6"].fix(1)
    found = mipfs.compare(model)
    costs = np.array([COSTS[name] for name in NAMES])
    same = Problem(data, M=3, C=1.0, forced_in=("x6",)).with_rows(costs, -np.inf, 4.0)
    expected = mipfs.compare(same)
    for rung, other in zip(found.ladder, expected.ladder, strict=True):
        assert rung.value == pytest.approx(other.value, rel=1e-6)
    assert "x6" in found.selected
    assert sum(COSTS[name] for name in found.selected) <= 4
    assert expected["plain"].status == "solved without the rows and forced features"


def test_what_is_too_large_says_so_instead_of_running() -> None:
    rng = np.random.default_rng(0)
    X = sparse.random_array((30, 120_000), density=2e-3, rng=rng, format="csc")
    data = Instance.from_arrays(X, np.where(np.arange(30) % 2, 1.0, -1.0))
    found = mipfs.compare(Problem(data, M=3, loss="squared-hinge", bias=False), time_limit=20)
    for name in ("plain", "big-m", "qcqp-ssvm", "sdp-ssvm", "nmmkl", "decomposed-sdp", "exact"):
        assert found[name].status.startswith("too large: ")
        assert found[name].value == -np.inf
    for name in ("boolean", "convex-hull"):
        assert found[name].status == "solved"
        assert 0 < found[name].value <= found.incumbent
    wide = Instance.from_arrays(rng.normal(size=(20, 90)), np.where(np.arange(20) % 2, 1.0, -1.0))
    assert mipfs.compare(Problem(wide, M=3), rungs=["sdp-ssvm"])["sdp-ssvm"].status.startswith("too large: 90 features")


@pytest.mark.slow
def test_limits_callbacks_and_bad_arguments() -> None:
    problem = make(2)
    idle = mipfs.compare(problem, time_limit=0.0)
    assert {rung.status for rung in idle.ladder} <= {"time limit", "solved", "optimal"}
    assert idle["nmmkl"].status == "time limit"
    assert idle["nmmkl"].value == -np.inf
    stopped = mipfs.compare(problem, callback=lambda _: True)
    assert stopped["plain"].status == "interrupted"
    assert {rung.status for rung in stopped.ladder[1:]} == {"not run: interrupted"}
    assert np.isfinite(stopped.incumbent), "the first rung's first incumbent"
    seen: list[Any] = []
    mipfs.compare(problem, rungs=["plain"], observers=[seen.append])
    assert seen
    with pytest.raises(UsageError, match="rung 'lp' is not known"):
        mipfs.compare(problem, rungs=["lp"])
    with pytest.raises(UsageError, match="time_limit = -1 must be"):
        mipfs.compare(problem, time_limit=-1)
    with pytest.raises(UsageError, match="no problem to solve"):
        mipfs.compare(3)


def test_rows_that_no_selection_satisfies() -> None:
    data = Instance.from_arrays(
        np.eye(4), [1, -1, 1, -1], rows=(Row("more", {"x1": 1.0}, 1.0, np.inf),), select=SelectDefaults(2, (), ("x1",))
    )
    found = mipfs.compare(Problem(data))
    assert set(found.conflict) == {"more", "forced_out[x1]"}
    assert {rung.status for rung in found.ladder} == {"no selection satisfies the rows"}
    assert json.loads(found.to_json())["incumbent"] is None


@pytest.mark.slow
def test_the_rho_form_is_compared_in_its_own_values() -> None:
    unit = make(1, loss="squared-hinge", bias=False)
    rungs = ["plain", "big-m", "nmmkl", "boolean", "exact"]
    one, other = mipfs.compare(unit, rungs=rungs), mipfs.compare(unit.replace(margin="rho"), rungs=rungs)
    for rung in one.ladder:
        if rung.name != "big-m":
            assert other[rung.name].value == pytest.approx(-0.25 / rung.value, rel=1e-5)
    assert other.incumbent == pytest.approx(-0.25 / one.incumbent, rel=1e-5)
    assert other["big-m"].value <= other.incumbent < 0


def test_groups_leave_the_rungs_of_single_features_out() -> None:
    groups = pytest.importorskip("mipfs.atoms.groups")
    data = make(0).data
    atoms = groups.Groups(data, {"a": NAMES[:3], "b": NAMES[2:5], "c": NAMES[5:]})
    found = mipfs.compare(Problem(data, loss="squared-hinge", M=1, atoms=atoms))
    assert found["nmmkl"].status.startswith("skipped: formulation 'nmmkl' cannot carry groups; fsp-m, ")
    for lower, upper in itertools.pairwise(("plain", "boolean", "convex-hull", "exact")):
        assert below(found[lower].value, found[upper].value)


@pytest.mark.slow
def test_compare_is_loaded_only_when_it_is_asked_for() -> None:
    import subprocess
    import sys

    code = "import sys, mipfs; assert 'mipfs.lab.studies.ladder' not in sys.modules; assert callable(mipfs.compare); "
    code += "assert not {'cvxpy', 'pyomo', 'sklearn'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.slow
@pytest.mark.parametrize("rows", ["cardinality", "dependencies"])
@pytest.mark.parametrize("measure", ["f1", "roc-auc"])
def test_the_ladder_of_a_measure(measure: str, rows: str) -> None:
    for seed in range(2):
        problem = make(seed, rows, loss="structural", measure=measure, bias=False, C=30.0)
        found = ladder.compare(problem)
        plain, relaxed, exact = (found[name].value for name in ("plain", "convex-hull", "exact"))
        assert below(plain, relaxed)
        assert below(relaxed, exact)
        assert exact == pytest.approx(found.incumbent, rel=1e-5)
        allowed = (np.array(sigma, dtype=bool) for sigma in itertools.product((0, 1), repeat=P))
        values = [mipfs.solve(problem.replace(rows=None, forced_in=tuple(np.array(NAMES)[sigma]), M=int(sigma.sum())),
                              "gbd").bound for sigma in allowed if problem.selection.contains(sigma)]  # fmt: skip
        assert exact == pytest.approx(min(values), rel=2e-4)
        said = found["boolean"].status
        assert said == "solved" if rows == "cardinality" else said.startswith("skipped")
        assert found["nmmkl"].status.startswith("skipped")
        assert ("without the rows" in found["plain"].status) == (rows == "dependencies")


def test_the_plain_rung_of_a_measure_over_overlapping_groups_is_a_bound() -> None:
    """A column that two groups share is penalised in halves, so the SVM on the plain columns is no bound."""
    data = make(0).data
    groups = Groups(data, {"a": NAMES[:4], "b": NAMES[1:5], "c": NAMES[2:], "d": NAMES[:2]})
    problem = Problem(data, loss="structural", measure="f1", bias=False, C=2.0, M=3, atoms=groups)
    found = ladder.compare(problem)
    joined = Problem(data, loss="structural", measure="f1", bias=False, C=2.0)
    on_columns = mipfs.solve(joined, "gbd").objective
    every = [
        mipfs.solve(problem.replace(forced_in=chosen, M=len(chosen)), "gbd", gap=1e-6).objective
        for size in range(4)
        for chosen in itertools.combinations(groups.names, size)
    ]
    assert found.incumbent == pytest.approx(min(every), rel=1e-5)
    assert on_columns > found.incumbent * 1.01, "the value that was printed as a bound"
    chain = [found[name].value for name in ("plain", "boolean", "convex-hull", "exact")]
    assert all(lower <= upper for lower, upper in itertools.pairwise(chain))
    assert chain[-1] <= min(every) * (1 + 1e-9)
    assert 0 < chain[0] <= chain[1]


@pytest.mark.slow
def test_a_stalled_rung_is_not_called_solved_and_keeps_what_a_weaker_one_has_proven() -> None:
    X = np.zeros((10, 4))
    X[:, 0] = 0, 0, 0, 0.26, -1, 0.24, -0.55, 0, 0, 0
    X[:, 1] = 0, 0, -120000, 0, 280000, 0, 140000, 21000, 0, 0
    X[:, 2] = 6e-7, 0, 0, -2e-6, 0, 0, -9.3e-7, 3.8e-8, 4.7e-7, 0
    X[:, 3] = 0, 0, 0, 0, -34, 0, 68, 0, -70, 0
    data = Instance.from_arrays(sparse.csc_array(X), np.array([1, 1, 1, -1, -1, 1, -1, 1, 1, 1]))
    problem = Problem(data, loss="logistic", M=4, C=0.001963).with_rows(
        [[-1, -4, 0, -1], [2, 5, 4, 3], [1, 0, 1, 0]], -np.inf, [0, 10, 1]
    )
    alone = mipfs.compare(problem, rungs=["boolean"])
    rung = alone["boolean"]
    assert rung.status == "solved" if rung.gap <= ladder.RUNG_GAP else rung.status == "stalled"
    whole = mipfs.compare(problem)
    values = [whole[name].value for name in (*ladder.RELAXATIONS, "exact")]
    assert all(lower <= upper for lower, upper in itertools.pairwise(values))
    assert values[-1] <= whole.incumbent
    for rung in whole.ladder:
        assert rung.status.startswith(("solved", "optimal")) == (rung.gap <= ladder.RUNG_GAP)


def climbed(name: str, lower: float, upper: float = np.inf, **more: Any) -> ladder.RungResult:
    return ladder.RungResult(name, lower, upper, 0.1, None, more.pop("status", "stalled"), **more)


def test_what_the_rungs_say_is_settled_between_them() -> None:
    problem = make(0)
    given = [
        climbed("plain", 5.0, 5.000001, solved="solved without the rows"),
        climbed("big-m", 12.0, 12.0),
        climbed("qcqp-ssvm", -np.inf, ran=False, status="skipped: needs M"),
        climbed("nmmkl", 4.0, 4.5),
        climbed("boolean", 7.0, 8.0),
        climbed("convex-hull", 6.0, 7.000001),
        climbed("exact", 9.0, 10.0, solved="optimal", status="time limit"),
    ]
    found = {rung.name: rung for rung in ladder.settle_rungs(given, 10.0, problem)}
    said = {name: (rung.value, rung.status) for name, rung in found.items()}
    assert said == {
        "plain": (5.0, "solved without the rows"),
        "big-m": (-np.inf, "numerical"),  # 12 is above a classifier of value 10
        "qcqp-ssvm": (-np.inf, "skipped: needs M"),
        "nmmkl": (5.0, "stalled"),  # plain has proven 5, and NMMKL is above it: its own upper bound is wrong
        "boolean": (7.0, "stalled"),
        "convex-hull": (7.0, "solved"),  # what the Boolean rung has proven closes the gap
        "exact": (9.0, "time limit"),
    }
    assert found["exact"].gap == pytest.approx(0.1)
    assert found["big-m"].gap == np.inf
    none = ladder.settle_rungs([climbed("plain", 5.0, 5.0)], np.inf, problem)[0]
    assert (none.value, none.gap, none.status) == (5.0, np.inf, "solved")
    above = ladder.settle_rungs([climbed("exact", 10.0 * (1 + 1e-13), 10.0, solved="optimal")], 10.0, problem)[0]
    assert (above.value, above.status) == (10.0, "optimal"), "round-off is no contradiction, and no bound is above"


def test_the_ladder_as_a_data_frame() -> None:
    pytest.importorskip("pandas")
    rungs = (
        ladder.Rung("plain", True, 1.5, 0.25, 0.1, {"variables": 3}, "solved"),
        ladder.Rung("big-m", True, -np.inf, np.inf, 0.0, None, "skipped: no box"),
    )
    frame = ladder.Comparison({"M": 2}, 2.0, ("x1",), rungs).to_frame()
    assert frame["name"].tolist() == ["plain", "big-m"]
    assert frame["value"].tolist()[0] == 1.5
    assert frame[["value", "gap"]].isna().to_numpy().tolist() == [[False, False], [True, True]]
    assert frame["status"].tolist() == ["solved", "skipped: no box"]
