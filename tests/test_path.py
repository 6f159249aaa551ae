"""`mipfs.path` against enumeration, and what it does at its edges."""

from __future__ import annotations

import dataclasses
import itertools
import json
import signal
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import mipfs
from mipfs.atoms.features import Features
from mipfs.atoms.groups import Groups
from mipfs.atoms.tree import Tree
from mipfs.check.paths import check_path
from mipfs.data.instance import Instance, Row, SelectDefaults
from mipfs.errors import UsageError
from mipfs.lab.studies.folds import stratify
from mipfs.lab.studies.walk import _tighten_bounds, least_error, one_standard_error
from mipfs.problem import Problem
from mipfs.result.result import Result, Status
from mipfs.selection.selection import Extras, Rows
from tests.oracles import LinearRow, allowed_supports, brute_force

P = 6
NAMES = tuple(f"x{j + 1}" for j in range(P))
GAP = 1e-7
HEAD = ("schema", "axis", "params", "driver", "folds", "seed", "chosen", "interrupted")
LINE = [
    *("status", "stop_reason", "objective", "bound", "gap", "selected", "seconds", "cuts_carried", "cuts"),
    *(
        "subproblems",
        "seconds_saved",
        "cold_seconds",
        "error",
        "deviation",
        "standard_error",
        "start",
        "errors",
        "fold_classifiers",
        "result",
    ),
]


def draw(seed: int, n: int = 40, **more: Any) -> Instance:
    r = np.random.default_rng(seed)
    X = r.standard_normal((n, P))
    y = np.where(X @ r.standard_normal(P) + r.standard_normal(n) > 0, 1.0, -1.0)
    return Instance.from_arrays(X, y, **more)


def optimum(problem: Problem, rows: Sequence[LinearRow] = ()) -> float:
    data = problem.data
    allowed = allowed_supports(NAMES, problem.M, rows)
    c_i = np.full(data.n_samples, problem.C)
    return brute_force(data.X, data.y, c_i, allowed, problem.penalty, problem.bias, loss=problem.loss).value.upper


def check(point: Any, value: float) -> None:
    assert point.status is Status.OPTIMAL
    assert point.objective == pytest.approx(value, rel=1e-6)
    assert point.bound <= value * (1 + 1e-8)
    assert point.bound == pytest.approx(value, rel=1e-6)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("loss", ["hinge", "squared-hinge", "logistic"])
def test_every_M_is_that_of_enumeration(loss: str) -> None:
    problem = Problem(draw(1), C=0.7, loss=loss)
    found = mipfs.path(problem, M=[3, 0, 1, 2, 6], gap=GAP)
    assert [point.value for point in found.points] == [3, 0, 1, 2, 6]
    for point in found.points:
        check(point, optimum(problem.replace(M=point.value)))
        assert len(point.selected) <= point.value
        assert point.result.params["M"] == point.value
    assert found[0].cuts_carried == 0
    assert all(found[M].cuts_carried > 0 for M in (1, 2, 3, 6))
    assert set(found[2].selected) <= set(found[3].start)


@pytest.mark.sampled(7)
@pytest.mark.parametrize("loss", ["hinge", "squared-hinge", "logistic"])
@pytest.mark.parametrize("bias", [True, False])
def test_every_C_is_that_of_enumeration(loss: str, bias: bool) -> None:
    problem = Problem(draw(2), M=2, loss=loss, bias=bias)
    found = mipfs.path(problem, C=[1, 0.05, 20.0], gap=GAP)
    for point, C in zip(found.points, (1.0, 0.05, 20.0), strict=True):
        check(point, optimum(problem.replace(C=C)))
    assert (found[0.05].cuts_carried, found[20.0].cuts_carried > 0) == (0, True)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("loss", ["hinge", "squared-hinge"])
def test_every_pair_of_C_and_M_is_that_of_enumeration(loss: str) -> None:
    problem = Problem(draw(2), loss=loss)
    found = mipfs.path(problem, M=[3, 1], C=[2.0, 0.05, 0.4], gap=GAP)
    assert (found.axis, found.params["C"], found.params["M"]) == ("C,M", [2.0, 0.05, 0.4], [3, 1])
    assert [point.value for point in found.points] == list(itertools.product([2.0, 0.05, 0.4], [3, 1]))
    for point, line in zip(found.points, found.table(), strict=True):
        C, M = line["C"], line["M"]
        check(point, optimum(problem.replace(M=M, C=C)))
        assert (point.value, point.place) == ((C, M), {"C": C, "M": M})
        assert (point.result.params["C"], point.result.params["M"]) == (C, M)
        assert (point.cuts_carried == 0) == (point.value == (0.05, 1)), "the walk begins at the small end of both"
    assert found[0.4, 1].start == found[0.05, 1].selected, "a leg begins with what its M left at the C before"
    assert set(found[0.4, 1].selected) <= set(found[0.4, 3].start)


def test_every_lambda_is_that_of_enumeration() -> None:
    problem = Problem(draw(3), C=1.0)
    found = mipfs.path(problem, lam=np.array([0.0, 0.5, 2.0, 50.0]), gap=GAP)
    for point in found.points:
        check(point, optimum(problem.replace(lam=point.value)))
    assert found[50.0].cuts_carried == 0, "the walk begins at the large end"


@pytest.mark.slow
def test_rows_one_after_the_other_are_those_of_enumeration() -> None:
    problem = Problem(draw(4), M=3, C=1.0)
    plain = [
        LinearRow("first", dict.fromkeys(NAMES[:3], 1.0), -np.inf, 1.0),
        LinearRow("second", dict.fromkeys(NAMES[2:], 1.0), -np.inf, 1.0),
        LinearRow("third", {"x1": 1.0, "x6": 1.0}, 1.0, np.inf),
    ]
    index = {name: j for j, name in enumerate(NAMES)}
    rows = Rows.of([Row(r.name, r.terms, r.lb, r.ub) for r in plain], index)
    found = mipfs.path(problem, rows=rows, gap=GAP)
    assert [point.value for point in found.points] == [0, 1, 2, 3]
    assert [point.added for point in found.points] == ["", "first", "second", "third"]
    for point in found.points:
        check(point, optimum(problem, plain[: point.value]))
    triples = [(rows.matrix[[k]], rows.lb[k], rows.ub[k]) for k in range(3)]
    again = mipfs.path(problem, rows=triples, gap=GAP)
    assert [p.objective for p in again.points] == pytest.approx([p.objective for p in found.points], rel=1e-6)
    assert again.points[2].added == "row2"
    stacked = mipfs.path(problem, rows=[rows.take([0]), rows.take([1, 2])], gap=GAP)
    assert stacked.points[2].objective == pytest.approx(found.points[3].objective, rel=1e-6)
    assert stacked.points[2].added == "second, third"


def test_rows_share_their_extra_variables() -> None:
    """Σ σ over x1…x3 = extra, Σ σ over x4…x6 = extra: equally many of both, which apart says nothing."""
    matrix = sparse.csr_array(np.array([[1.0, 1, 1, 0, 0, 0, -1], [0, 0, 0, 1, 1, 1, -1]]))
    extra = Extras(("extra_k",), np.zeros(1), np.full(1, 3.0), np.ones(1, bool))
    rows = Rows(matrix, np.zeros(2), np.zeros(2), ("left", "right"), ("", ""), extra)
    found = mipfs.path(Problem(draw(5), M=4, C=1.0), rows=rows)
    places = [draw(5).index[name] for name in found[2].selected]
    assert sum(j < 3 for j in places) == sum(j >= 3 for j in places)


def test_bounds_hold_when_points_are_cut_short() -> None:
    problem = Problem(draw(6, n=80), C=1.0)
    found = mipfs.path(problem, M=range(1, 6), gap=0.0, iteration_limit=3)
    assert any(point.status is Status.FEASIBLE for point in found.points)
    for point in found.points:
        value = optimum(problem.replace(M=point.value))
        assert point.result.bound <= point.bound <= value * (1 + 1e-9)
        assert point.objective >= value * (1 - 1e-9)
    bounds, objectives = [p.bound for p in found.points], [p.objective for p in found.points]
    assert bounds == sorted(bounds, reverse=True)
    assert all(later <= earlier * (1 + 1e-7) for earlier, later in itertools.pairwise(objectives))


@pytest.mark.slow
def test_bounds_over_C_and_M_hold_when_points_are_cut_short() -> None:
    problem, values = Problem(draw(6, n=80)), ([0.5, 0.52, 0.55], [1, 2, 3, 4])
    found = mipfs.path(problem, C=values[0], M=values[1], gap=0.0, iteration_limit=2)
    for point in found.points:
        value = optimum(problem.replace(M=point.place["M"], C=point.place["C"]))
        assert point.result.bound <= point.bound <= value * (1 + 1e-9)
        assert point.objective >= value * (1 - 1e-9)
    bounds = np.array([point.bound for point in found.points]).reshape(3, 4)
    assert np.all(np.diff(bounds, axis=0) >= 0.0)
    assert np.all(np.diff(bounds, axis=1) <= 0.0)


@pytest.mark.parametrize(
    ("axes", "from_where"),
    [
        ({"M": [1, 2, 3]}, [0, 1, 2]),
        ({"C": [1.0, 2.0, 3.0]}, [0, 0, 0]),
        ({"lambda": [2.0, 1.0, 0.0]}, [0, 1, 2]),
        ({"rows": [0, 1, 2]}, [0, 0, 0]),
        ({"C": [1.0, 1.0, 2.0], "M": [2, 1, 3]}, [0, 0, 2]),
    ],
)
def test_the_bound_of_another_point_is_taken_over_from_the_right_side(
    axes: dict[str, list[float]], from_where: list[int]
) -> None:
    """Bounds 7, 5 and 3: each may rise to the largest of a point that is easier in every axis."""
    point = mipfs.path(Problem(draw(6), C=1.0), M=[1], gap=GAP).points[0]
    points = [
        dataclasses.replace(point, bound=bound, place={axis: values[k] for axis, values in axes.items()})
        for k, bound in enumerate((7.0, 5.0, 3.0))
    ]
    assert [p.bound for p in _tighten_bounds(points)] == [(7.0, 5.0, 3.0)[k] for k in from_where]
    blind = [dataclasses.replace(points[0], bound=-np.inf), *points[1:]]
    assert _tighten_bounds(blind)[0].bound == (5.0 if from_where in ([0, 1, 2],) else -np.inf)


def test_a_path_through_selections_that_cannot_be() -> None:
    rows = (Row("two", dict.fromkeys(NAMES, 1.0), 2.0, np.inf),)
    found = mipfs.path(Problem(draw(7, rows=rows, select=SelectDefaults(M=4)), C=1.0), M=[1, 2, 3])
    assert [point.status for point in found.points] == [Status.INFEASIBLE, Status.OPTIMAL, Status.OPTIMAL]
    line = found.table()[0]
    assert (line["objective"], line["bound"], line["gap"], line["selected"]) == (None, None, None, [])


def test_the_cold_solve_measures_what_was_saved() -> None:
    found = mipfs.path(Problem(draw(8), C=1.0), M=[1, 2, 3], cold=True, gap=GAP)
    for point, line in zip(found.points, found.table(), strict=True):
        assert point.cold is not None
        assert point.cold.objective == pytest.approx(point.objective, rel=1e-6)
        assert point.cold.counters["cuts"] + point.cuts_carried >= point.cuts
        assert line["seconds_saved"] == line["cold_seconds"] - line["seconds"]
    assert mipfs.path(Problem(draw(8)), M=[1]).table()[0]["seconds_saved"] is None


def test_the_json_says_all_and_its_results_are_results(tmp_path: Path) -> None:
    found = mipfs.path(Problem(draw(9), C=0.5), M=[2, 1], folds=3, seed=4)
    found.save(tmp_path / "path.json")
    document = json.loads((tmp_path / "path.json").read_text(), parse_constant=pytest.fail)
    assert (document["schema"], document["axis"], document["params"]["M"]) == (1, "M", [2, 1])
    assert (document["folds"], document["seed"], document["chosen"]) == (3, 4, found.chosen)
    for line, point in zip(document["points"], found.points, strict=True):
        assert (line["M"], line["objective"], line["error"]) == (point.value, point.objective, point.error)
        result = Result.from_json(json.dumps(line["result"]))
        assert result.weights == point.result.weights
    assert set(document) == {*HEAD, "one_se", "certificate", "points"}
    assert list(document["points"][0]) == ["M", *LINE]
    with pytest.raises(UsageError, match="cannot be written"):
        found.save(tmp_path / "no" / "path.json")


@pytest.mark.slow
def test_cross_validation_is_that_of_a_plain_loop() -> None:
    data = draw(10, n=90, scale="standard")
    found = mipfs.path(Problem(data, C=0.3), M=[1, 2, 3, 4], folds=3, seed=2, gap=GAP)
    for point in found.points:
        errors = []
        for fold in stratify(data, 3, 2):
            alone = mipfs.solve(Problem(fold.train, M=point.value, C=0.3), gap=GAP)
            errors.append(np.mean(np.where(alone.decision_function(fold.X) > 0, 1.0, -1.0) != fold.y))
        assert point.errors == pytest.approx(errors)
        assert point.error == pytest.approx(np.mean(errors))
        assert point.deviation == pytest.approx(np.std(errors, ddof=1))
    least = min(point.error for point in found.points)
    assert found.chosen == min(p.value for p in found.points if p.error == pytest.approx(least))
    assert found.best is not None
    check(found.best, optimum(Problem(data, M=found.best.value, C=0.3)))


@pytest.mark.slow
@pytest.mark.parametrize("measure", ["f1", "roc-auc", "error"])
def test_folds_of_a_measure_choose_by_it(measure: str) -> None:
    """By misclassification an imbalanced set would have another choice; the values are scikit-learn's."""
    from sklearn.metrics import f1_score, roc_auc_score

    rng = np.random.default_rng(6)
    X = rng.normal(size=(150, 5)) + 0.6
    y = np.where(X[:, 0] - X[:, 1] + 0.4 * rng.normal(size=150) > 1.5, 1.0, -1.0)
    data = Instance.from_arrays(X, y)
    asked = {"loss": "structural", "measure": measure, "bias": False, "C": 30.0}
    found = mipfs.path(Problem(data, **asked), M=[1, 2, 3], folds=3, seed=2, gap=1e-3, driver="gbd")
    for point in found.points:
        errors = []
        for fold in stratify(data, 3, 2):
            alone = mipfs.solve(Problem(fold.train, M=point.value, **asked), "gbd", gap=1e-3)
            scores = alone.decision_function(fold.X)
            wrong = np.mean((scores > 0) != (fold.y > 0))
            values = {"f1": 1 - f1_score(fold.y, np.where(scores > 0, 1.0, -1.0)), "error": wrong}
            errors.append(values[measure] if measure in values else 1 - roc_auc_score(fold.y, scores))
        assert point.errors == pytest.approx(errors)
    least = min(point.error for point in found.points)
    assert found.chosen == min(p.value for p in found.points if p.error == pytest.approx(least))
    word = "error" if measure == "error" else f"1 − {measure}"
    assert f"{word} {least:.4f}" in found.summary()


def plain_choice(errors: dict[Any, list[float]]) -> tuple[Any, Any]:
    """Where the error is least and where one standard error above it is allowed, of values from the simplest on."""
    means = {value: statistics.fmean(list_) for value, list_ in errors.items()}
    least = next(value for value, mean in means.items() if mean <= min(means.values()) + 1e-10)
    most = means[least] + statistics.stdev(errors[least]) / len(errors[least]) ** 0.5
    return least, next(value for value, mean in means.items() if mean <= most + 1e-10)


@pytest.mark.slow
@pytest.mark.parametrize(
    "axes",
    [
        {"C": [1.0, 0.003, 0.1], "M": [1, 3, 2]},
        {"M": [3, 2, 1, 4]},
        {"C": [1.0, 0.003, 0.1]},
        {"lam": [0.0, 6.0, 1.0, 30.0]},
    ],
)
def test_the_one_standard_error_point_is_that_of_a_plain_loop(axes: dict[str, list[Any]]) -> None:
    data, loss = draw(36, n=60, scale="standard"), "squared-hinge"  # the hinge may leave the intercept an interval
    problem = Problem(data, loss=loss)
    found = mipfs.path(problem, **axes, folds=4, seed=3, one_se=True, gap=GAP)
    simplest_first = [sorted(values, reverse=name == "lam") for name, values in axes.items()]
    errors: dict[Any, list[float]] = {}
    for place in itertools.product(*simplest_first):
        value = place if len(axes) > 1 else place[0]
        for fold in stratify(data, 4, 3):
            alone = mipfs.solve(Problem(fold.train, loss=loss).replace(**dict(zip(axes, place, strict=True))), gap=GAP)
            wrong = np.where(alone.decision_function(fold.X) > 0, 1.0, -1.0) != fold.y
            errors.setdefault(value, []).append(float(np.mean(wrong)))
        assert found[value].errors == pytest.approx(errors[value])
        assert found[value].standard_error == pytest.approx(statistics.stdev(errors[value]) / 2.0)
    assert (found.least_error, found.one_se) == plain_choice(errors)
    assert (found.chosen, found.rule) == (found.one_se, "one-se")
    assert found.one_se != found.least_error, "an instance that tells the rules apart"
    document = json.loads(found.to_json())
    named = (lambda value: dict(zip(axes, value, strict=True))) if len(axes) > 1 else (lambda value: value)
    assert set(document) == {*HEAD, "points", "rule", "least_error", "one_se"}
    assert (document["rule"], document["chosen"]) == ("one-se", named(found.one_se))
    assert (document["least_error"], document["one_se"]) == (named(found.least_error), named(found.one_se))
    plain = mipfs.path(problem, **axes, folds=4, seed=3, gap=GAP)
    assert (plain.chosen, plain.least_error, plain.one_se) == (found.least_error, found.least_error, found.one_se)


@pytest.mark.parametrize("seed", range(20))
def test_the_choice_among_drawn_errors_is_that_of_a_plain_loop(seed: int) -> None:
    """Shares of small folds, so that ties and points just at the limit are common."""
    r = np.random.default_rng(seed)
    solved = mipfs.path(Problem(draw(1), C=0.7), M=[1]).points[0]
    lost = dataclasses.replace(solved.result, objective=np.inf)
    points, errors = [], {}
    for M in range(1, 9):
        wrong = [float(e) for e in r.integers(0, 4, 5) / 8]
        reached, found = r.random() < 0.8, r.random() < 0.8
        point = dataclasses.replace(solved, place={"M": M}, errors=tuple(wrong) if reached else ())
        points.append(point if found else dataclasses.replace(point, result=lost))
        if reached and found:
            errors[M] = wrong
    least, simplest = least_error(points), one_standard_error(points)
    assert least is not None
    assert simplest is not None
    assert (least.value, simplest.value) == plain_choice(errors)
    nothing = [dataclasses.replace(point, errors=()) for point in points]
    assert (least_error(nothing), one_standard_error(nothing)) == (None, None)


def test_along_rows_there_is_a_least_error_and_no_simplest() -> None:
    rows = [([[1.0] * P], [0.0], [2.0])]
    found = mipfs.path(Problem(draw(5), M=3, C=1.0), rows=rows, folds=2)
    assert (found.chosen, found.one_se) == (found.least_error, None)
    assert found.chosen is not None


@pytest.mark.slow
def test_infeasible_pairs_are_not_chosen() -> None:
    rows = (Row("two", dict.fromkeys(NAMES, 1.0), 2.0, np.inf),)
    problem = Problem(draw(7, rows=rows, select=SelectDefaults(M=4)))
    found = mipfs.path(problem, C=[0.1, 1.0], M=[1, 2, 3], folds=3, one_se=True)
    for point in found.points:
        assert point.status is (Status.INFEASIBLE if point.place["M"] == 1 else Status.OPTIMAL)
        assert (point.errors == ()) == (point.place["M"] == 1)
    assert found.best is not None
    errors = {point.value: list(point.errors) for point in found.points if point.errors}
    assert (found.least_error, found.chosen) == plain_choice(errors)


@pytest.mark.slow
def test_equal_errors_choose_the_simplest() -> None:
    X = np.random.default_rng(0).standard_normal((40, P))
    X[:, 0] = np.where(np.arange(40) % 2, 5.0, -5.0)
    data = Instance.from_arrays(X, np.sign(X[:, 0]))
    assert mipfs.path(Problem(data), M=[3, 2, 1], folds=4).chosen == 1
    assert mipfs.path(Problem(data, M=2), C=[1.0, 0.1], folds=4).chosen == 0.1
    assert mipfs.path(Problem(data), lam=[0.0, 0.001], folds=4).chosen == 0.001


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "nothing is given"),
        ({"M": [1], "lam": [1.0]}, "M and lam is given"),
        ({"C": [1], "rows": []}, "C and rows is given"),
        ({"M": [1], "C": [1.0], "lam": [1.0]}, "M and C and lam is given"),
        ({"M": [1, 1], "C": [1.0]}, "M = 1 is given twice"),
        ({"M": [1], "C": []}, "path over C needs at least one value"),
        ({"M": [1], "one_se": True}, "give folds too"),
        ({"rows": [], "one_se": True, "folds": 2}, "which added rows have not"),
        ({"M": []}, "needs at least one value"),
        ({"M": [1, 2, 1]}, "M = 1 is given twice"),
        ({"M": 3}, "M = 3 must be a list of whole numbers"),
        ({"M": [9]}, "M = 9 must lie between 0 and 6"),
        ({"M": [1.5]}, "M = 1.5 must be a whole number"),
        ({"C": [1.0, -1.0]}, "C = -1.0 must be a positive number"),
        ({"C": ["a"]}, "C = 'a' must be a positive number"),
        ({"lam": [-1.0]}, "penalties must be finite"),
        ({"rows": [1]}, "rows of a path"),
        ({"M": [1], "pool": None}, "pool is what a path carries along"),
        ({"M": [1], "tim_limit": 1}, "did you mean 'time_limit'"),
        ({"M": [1], "driver": "gdb"}, "did you mean 'gbd'"),
        ({"M": [1], "folds": 99}, "folds = 99"),
    ],
)
def test_bad_usage(given: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        mipfs.path(Problem(draw(0)), **given)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", ["scaled", "groups", "tree"])
def test_folds_solve_the_same_problem_on_their_own_data(kind: str) -> None:
    data = draw(0, scale="standard")

    def on(part: Instance) -> Problem:
        atoms: Any = {
            "scaled": lambda: Features(part, np.array([1e-3, 2.0, 1.0, 1e-3, 1e-3, 0.5])),
            "groups": lambda: Groups(part, {"a": ["x1", "x2"], "b": ["x2", "x3"], "c": ["x4", "x5"]}, [1.0, 0.3, 2.0]),
            "tree": lambda: Tree(part, {"x1": "u", "x2": "u", "u": "v", "x3": "v"}),
        }[kind]()
        return Problem(part, atoms=atoms)

    found = mipfs.path(on(data), M=[1, 2], folds=3, seed=1, gap=GAP)
    for point in found.points:
        alone = [mipfs.solve(on(fold.train).replace(M=point.value), gap=GAP) for fold in stratify(data, 3, 1)]
        assert point.errors == pytest.approx(
            [fold.error(one, Problem(data)) for fold, one in zip(stratify(data, 3, 1), alone, strict=True)]
        )


def test_an_interrupt_keeps_what_was_reached() -> None:
    problem, begun = Problem(draw(11), C=1.0), []

    def begin(about: str) -> None:
        begun.append(about)

    def interrupt(_record: object) -> None:
        if begun[-1] == "M = 3":
            begun.append("once: a second Ctrl-C would not wait")
            signal.raise_signal(signal.SIGINT)

    found = mipfs.path(problem, M=range(1, 6), on_begin=begin, observers=[interrupt], folds=2)
    assert found.interrupted
    assert [point.value for point in found.points] == [1, 2, 3]
    assert (found.chosen, found.best) == (None, None)
    assert found[3].bound <= optimum(problem.replace(M=3)) * (1 + 1e-9) <= found[3].objective * (1 + 2e-9)

    def stop(_point: object) -> None:
        raise KeyboardInterrupt

    between = mipfs.path(problem, M=range(1, 6), on_point=stop)
    assert (between.interrupted, [point.value for point in between.points]) == (True, [1])

    def in_fold(about: str) -> None:
        if about.startswith("fold 2"):
            raise KeyboardInterrupt

    def in_second_leg(about: str) -> None:
        if about == "C = 1, M = 2":
            raise KeyboardInterrupt

    pairs = mipfs.path(problem, C=[1.0, 0.1], M=[2, 1, 3], folds=2, one_se=True, on_begin=in_second_leg)
    assert (pairs.interrupted, pairs.chosen, pairs.least_error, pairs.one_se) == (True, None, None, None)
    assert [point.value for point in pairs.points] == [(1.0, 1), (0.1, 2), (0.1, 1), (0.1, 3)]
    assert json.loads(pairs.to_json())["one_se"] is None

    late = mipfs.path(problem, M=[1, 2], folds=2, on_begin=in_fold)
    assert (late.interrupted, len(late.points), late.chosen, late.points[0].errors) == (True, 2, None, ())


@pytest.mark.slow
def test_a_driver_that_takes_no_cuts_walks_cold() -> None:
    pytest.importorskip("pyscipopt")
    found = mipfs.path(Problem(draw(12, n=20), C=1.0), M=[1, 2], driver="monolithic")
    assert [point.cuts_carried for point in found.points] == [0, 0]
    for point in found.points:
        assert point.objective == pytest.approx(optimum(Problem(draw(12, n=20), C=1.0, M=point.value)), rel=2e-4)


@pytest.mark.slow
def test_the_same_path_twice_is_the_same() -> None:
    first, again = (mipfs.path(Problem(draw(13)), M=[1, 2, 3], folds=2, seed=1).table() for _ in range(2))
    clock = ("seconds", "seconds_saved", "cold_seconds")
    drop = [[{k: v for k, v in line.items() if k not in clock} for line in table] for table in (first, again)]
    assert drop[0] == drop[1]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("driver", [None, "branch"])
@pytest.mark.parametrize("kind", ["splines", "pairs"])
def test_a_path_goes_over_atoms_that_are_made(kind: str, driver: str | None, tmp_path: Path) -> None:
    """Their search grows over parts of them and takes no pool: the path carries supports alone."""
    data = draw(3, scale="standard")
    base = Problem(data, M=1, C=0.3, loss="squared-hinge", atoms=mipfs.atoms.make(kind, data))
    found = mipfs.path(base, M=[1, 2], driver=driver, gap=1e-6)
    for point in found.points:
        alone = mipfs.solve(dataclasses.replace(base, M=point.place["M"]), driver, gap=1e-6)
        assert point.status is Status.OPTIMAL
        assert point.objective == pytest.approx(alone.objective, rel=3e-6)
        assert mipfs.verify(point.result, data).accepted
    found.save(tmp_path / "p.json")
    document = json.loads((tmp_path / "p.json").read_text())
    content = (tmp_path / "p.cert.npz").read_bytes()
    report = check_path(document, tmp_path / "p.cert.npz", content, data)
    assert report.accepted, report.reason
    with pytest.raises(UsageError, match="folds are for atoms that are columns of the data"):
        mipfs.path(base, M=[1, 2], driver=driver, folds=3)
    with pytest.raises(UsageError, match="draws of the samples are for atoms that are columns of the data"):
        mipfs.stability(base, draws=3)
    with pytest.raises(UsageError, match="a calibration is for atoms that are columns of the data"):
        mipfs.calibrate(base, mipfs.solve(base, driver), folds=3)
    with pytest.raises(UsageError, match=r"^pool_gap is for columns that lie in memory"):
        mipfs.path(base, M=[1, 2], driver=driver, pool_gap=0.2)


def test_a_path_takes_the_features_to_begin_with() -> None:
    base = Problem(draw(3), M=1, C=0.3)
    found = mipfs.path(base, M=[1, 2], driver="branch", active=("x1",), gap=1e-6)
    whole = mipfs.path(base, M=[1, 2], driver="branch", gap=1e-6)
    assert [one.objective for one in found.points] == pytest.approx([one.objective for one in whole.points], rel=3e-6)
