"""Weights that are no more than rounding are 0, and said to be: by their share of the scores and by the objective."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mipfs
from mipfs.problem import Problem
from mipfs.result.result import Result
from mipfs.run.run import Incumbent
from mipfs.run.stored import as_stored
from tests.certificate.test_second_reading import judged
from tests.exact_objective import exact_objective


def leaking() -> pd.DataFrame:
    """A table with a column that says the class, beside which the others weigh nothing."""
    rng = np.random.default_rng(0)
    bad = rng.random(400) < 0.1
    columns = {name: rng.normal(size=400) for name in "abc"}
    status = np.where(bad, rng.choice(["collection", "written off"], 400), "none")
    return pd.DataFrame({**columns, "status": status, "y": np.where(bad, "default", "paid")})


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A result in which a weight is rounding, and its table."""
    folder = tmp_path_factory.mktemp("leak")
    leaking().to_csv(folder / "leak.csv", index=False)
    data = mipfs.read(folder / "leak.csv", label="y", scale="standard")
    mipfs.solve(Problem(data, M=4, C=0.01, forced_in=["a"])).save(folder / "leak.json")
    return folder / "leak.json", folder / "leak.csv"


def test_what_a_leak_leaves_is_no_weight(saved: tuple[Path, Path]) -> None:
    """A feature that must be selected has no weight, is named, and both checkers find the objective that is stated."""
    path, table = saved
    result = Result.load(path)
    assert result.weightless == ("a",)
    assert "a" in result.selected
    assert "a" not in result.weights
    assert min(map(abs, result.weights.values())) > 0.1
    assert "no weight  a: " in str(result.summary())
    data = mipfs.read(table, label="y", scale="standard")
    exact = exact_objective(result.document(), data)
    assert result.objective == pytest.approx(float(exact), rel=1e-12)
    assert mipfs.verify(result, data).accepted
    assert judged(path, table)[0] == "accepted"


def three(scale: float = 1.0, loss: str = "hinge", **asked: object) -> Problem:
    """Samples at ±1 of a first column, and two columns of noise, the last one of a size."""
    rng = np.random.default_rng(3)
    y = np.where(np.arange(40) % 2, 1.0, -1.0)
    noise = rng.normal(size=(40, 2))
    X = np.column_stack([y * (1.0 + rng.random(40)), noise[:, 0], scale * noise[:, 1]])
    return Problem(mipfs.Instance.from_arrays(X, y, feature_names=["x", "a", "b"]), M=3, loss=loss, **asked)  # type: ignore[arg-type]


def stored_at(problem: Problem, w: list[float], b: float = 0.0):  # type: ignore[no-untyped-def]
    weights = np.array(w)
    chosen = np.arange(problem.atoms.count)
    return as_stored(problem, Incumbent(chosen, weights, b, problem.evaluate(chosen, weights, b)))


@pytest.mark.parametrize("loss", ["hinge", "squared-hinge", "logistic"])
def test_rounding_goes_and_weights_stay(loss: str) -> None:
    """Weights below what the objective can tell are 0; the rest keeps its bits."""
    found = stored_at(three(loss=loss), [1.25, 1e-17, -3e-18])
    assert found.weights == {"x": 1.25}
    assert found.weightless == ("a", "b")


@pytest.mark.slow
def test_a_tiny_weight_of_a_huge_column_is_real() -> None:
    """On a column of 1e12 a weight of 1e-13 is a tenth of the margin, beside one of 1e-13 that is nothing."""
    best = mipfs.solve(three(1e12, C=10.0)).weights
    assert 0.0 < abs(best["b"]) < 1e-11
    found = stored_at(three(1e12, C=10.0), [1.0, 1e-17, best["b"]])
    assert found.weights == {"x": 1.0, "b": best["b"]}
    assert found.weightless == ("a",)


def test_a_small_share_that_the_objective_tells_is_real() -> None:
    """At C = 1e12 the losses of samples at their margin rise by 1e12 times what a weight of 1e-10 was worth."""
    y = np.array([1.0, -1.0, 1.0, -1.0])
    X = np.column_stack([y, 1e-2 * y])
    problem = Problem(mipfs.Instance.from_arrays(X, y), M=2, C=1e12, bias=False)
    whole = stored_at(problem, [1.0 - 1e-12, 1e-10])
    assert set(whole.weights) == {"x1", "x2"}
    assert whole.weightless == ()
    loose = Problem(mipfs.Instance.from_arrays(X, y), M=2, C=1e-6, bias=False)
    assert stored_at(loose, [2.0, 1e-20]).weightless == ("x2",)


def test_of_several_the_least_go_where_not_all_can() -> None:
    """One of two small weights is worth 1e12 times its share: the other one goes alone."""
    y = np.array([1.0, -1.0, 1.0, -1.0])
    X = np.column_stack([y, 1e-2 * y, [1e-3, 1e-3, -1e-3, -1e-3]])
    problem = Problem(mipfs.Instance.from_arrays(X, y), M=3, C=1e12, bias=False)
    found = stored_at(problem, [1.0 - 1e-12, 1e-10, 1e-22])
    assert set(found.weights) == {"x1", "x2"}
    assert found.weightless == ("x3",)


@pytest.mark.parametrize("ends", [(0.0, None), (None, 0.0), (-1e-16, 2.0), (0.0, 0.0)])
def test_bounds_hold(ends: tuple[float | None, float | None]) -> None:
    """0 lies between the ends of every bound."""
    found = stored_at(three(weight_bounds={"a": ends, "x": (0.0, 1.0)}), [1.0, 1e-17, 1e-17])
    assert found.weights == {"x": 1.0}
    assert "b" in found.weightless


def test_groups_keep_their_selection() -> None:
    """A column of a group goes alone; the group is selected as before."""
    data = three().data
    problem = Problem(data, M=1, C=1.0, atoms=mipfs.atoms.make("groups", data, groups={"g": ["x", "a"], "h": ["b"]}))
    found = as_stored(problem, Incumbent(np.array([0]), np.array([1.0, 1e-18]), 0.0, 7.0))
    assert found.weights == {"x": 1.0}
    assert found.weightless == ("a",)


def constants(seed: int) -> tuple[mipfs.Instance, Problem]:
    """Two columns that matter beside constant ones, with a rule over the selection, and the data without those."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(50) % 2, 1.0, -1.0)
    X = np.column_stack([np.full(50, 3.0), rng.normal(size=50) + y, np.zeros(50), rng.normal(size=50) + y])
    names = ["const", "u", "zero", "v"]
    bare = mipfs.Instance.from_arrays(X[:, [1, 3]], y, feature_names=["u", "v"], scale="standard")
    rules = [{}, {"forced_in": ["zero"]}, {"forced_in": ["const", "zero"]}]
    data = mipfs.Instance.from_arrays(X, y, feature_names=names, scale="standard")
    return bare, Problem(data, M=4, C=0.1, loss=["hinge", "squared-hinge"][seed % 2], **rules[seed % 3])  # type: ignore[arg-type]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(6))
def test_what_has_no_weight_is_selected_where_it_must_be_alone(seed: int, tmp_path: Path) -> None:
    """The same optimum as without the columns that cannot matter; `selected` has these where a rule asks for them."""
    bare, problem = constants(seed)
    result = mipfs.solve(problem)
    must = {*problem.forced_in}
    assert {*result.selected} == {"u", "v"} | must
    assert result.weightless is not None
    assert {*result.weightless} == must
    small = mipfs.solve(Problem(bare, M=2, C=0.1, loss=problem.loss))
    assert result.objective == pytest.approx(small.objective, rel=2e-4)
    assert mipfs.verify(result, problem.data).accepted


def test_a_row_that_asks_for_three_has_three() -> None:
    _, problem = constants(0)
    three = problem.with_rows(np.ones((1, 4)), [3.0], [3.0])
    result = mipfs.solve(three)
    assert len(result.selected) == 3
    assert len(result.weightless or ()) == 1
    assert mipfs.verify(result, three.data, three.rows).accepted


@pytest.mark.slow
def test_groups_without_a_weight_go_and_shared_columns_keep_theirs() -> None:
    """A group is taken out as a whole; the column that it shares keeps the weight that the other group gives it."""
    _, plain = constants(1)
    groups = {"a": ["const", "zero"], "b": ["u", "const"], "c": ["v", "u"]}
    problem = Problem(plain.data, M=3, C=0.1, atoms=mipfs.atoms.make("groups", plain.data, groups=groups))
    result = mipfs.solve(problem)
    assert "a" not in result.selected
    assert set(result.weights) <= {"u", "v"}
    assert mipfs.verify(result, plain.data).accepted


@pytest.mark.sampled(2)
@pytest.mark.parametrize("C", [0.1, 1000.0])
@pytest.mark.parametrize("measure", ["f1", "prbep"])
def test_a_measure_without_a_classifier_is_constant(measure: str, C: float) -> None:
    """At an optimum of w = 0 the sign of 1e-17 decided every label; now there is no weight and no intercept."""
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(rng.normal(size=(40, 5)), columns=list("abcde"))
    y = np.where(rng.random(40) < 0.2, 1, -1)
    y[:2] = 1, -1
    frame["y"] = y
    data = mipfs.read(frame, label="y", scale="standard")
    result = mipfs.solve(Problem(data, loss="structural", measure=measure, M=2, C=C), iteration_limit=100)
    assert result.objective == C
    assert dict(result.weights) == {}
    assert result.intercept == 0.0
    assert mipfs.verify(result, data).accepted
    assert result.weightless == result.selected  # whatever it is: all selections are worth the same


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("names", "word"),
    [
        (["a", "status=none"], "'status=none' is said to have no weight, and has one"),
        ([], "'a' is not said to have no weight, and has none"),
        (["a", "b"], "not selected"),
        (["stranger"], "no feature"),
        (["a", "a"], "twice"),
        ("a", "list"),
    ],
)
def test_a_forged_word_is_refused(saved: tuple[Path, Path], tmp_path: Path, names: object, word: str) -> None:
    """That a weight is rounding is said of selected columns without one alone."""
    path, table = saved
    document = json.loads(path.read_text(encoding="utf-8")) | {"weightless": names}
    forged = tmp_path / path.name
    forged.write_text(json.dumps(document), encoding="utf-8")
    (tmp_path / "leak.cert.npz").write_bytes(path.with_suffix(".cert.npz").read_bytes())
    assert judged(forged, table)[0] == "rejected"
    if names == "a":
        with pytest.raises(mipfs.DataError, match="weightless"):
            Result.load(forged)
        return
    report = mipfs.verify(Result.load(forged), mipfs.read(table, label="y", scale="standard"))
    assert not report.accepted
    assert word in report.reason
