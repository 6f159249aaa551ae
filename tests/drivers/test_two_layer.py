"""Two-layer cutting planes against the fully enumerated dual (6), its two bounds, and exact supports by `gbd`."""

from __future__ import annotations

import itertools
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from mipfs.atoms.groups import Groups
from mipfs.cli import main
from mipfs.data.instance import Instance
from mipfs.drivers import solve
from mipfs.errors import UsageError
from mipfs.inner import face_layer
from mipfs.problem import Problem
from mipfs.result.result import Status, StopReason
from mipfs.settings import LayerSettings, TwoLayerSettings
from tests.structural_oracles import cases, labellings, relaxation, selections, structural_svm


def draw(seed: int, n: int = 6, p: int = 4, share: float = 0.4) -> Instance:
    r = np.random.default_rng(seed)
    X = r.standard_normal((n, p))
    y = np.where(X[:, 0] - X[:, 1] + r.standard_normal(n) > np.sqrt(3) * (1 - 2 * share), 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return Instance.from_arrays(X, y)


def problem(data: Instance, name: str = "f1", **given: Any) -> Problem:
    return Problem(data, loss="structural", bias=False, measure=name, **given)


@pytest.mark.sampled(17)
@pytest.mark.parametrize(("name", "given"), cases())
def test_equals_the_enumerated_dual(name: str, given: dict[str, Any]) -> None:
    for seed, (M, C) in enumerate([(1, 2.0), (2, 5.0), (3, 40.0)]):
        data = draw(seed)
        losses, V = labellings(name, data.y, given.get("beta", 1.0), given.get("k"))
        value = relaxation(data.X, losses, V, C, selections(4, M))
        result = solve(problem(data, name, M=M, C=C, **given), "two_layer", gap=1e-7)
        assert result.status in (Status.RELAXED, Status.OPTIMAL)
        assert result.stop_reason is StopReason.GAP_CLOSED
        assert result.relaxed is not None
        # the run ends too when its incumbent meets the bound: that is the better upper end then
        assert min(result.relaxed["upper"], result.objective) == pytest.approx(value, rel=1e-5)
        assert result.relaxed["lower"] == pytest.approx(value, rel=1e-5)
        assert result.bound <= value * (1 + 1e-7) + 1e-8
        assert result.relaxed["upper"] >= value * (1 - 1e-7) - 1e-8
        assert len(result.selected) <= M
        ids = [int(feature[1:]) - 1 for feature in result.selected]
        assert result.objective == pytest.approx(structural_svm(data.X[:, ids], losses, V, C)[0], rel=1e-6)


@pytest.mark.sampled(7)
@pytest.mark.parametrize("seed", range(12))
def test_a_face_ends_at_the_enumerated_relaxation(seed: int) -> None:
    """Penalties, forced features in and out, M up to p, and C from small to large."""
    data, name = draw(seed, 7, 5), ("f1", "roc-auc", "error")[seed % 3]
    losses, V = labellings(name, data.y)
    given: dict[str, Any] = {"lam": [0.02, 0.0, 0.1, 0.05, 0.01]} if seed % 2 else {}
    given |= {"forced_in": ("x4",), "forced_out": ("x1",)} if seed % 4 > 1 else {}
    C, M = 10.0 ** (seed % 5), 1 + seed % 5
    asked = problem(data, name, M=M, C=C, **given)
    allowed = np.array(
        [s for s in itertools.product((0.0, 1.0), repeat=5) if asked.selection.contains(np.array(s) > 0)]
    )
    value = relaxation(data.X, losses, V, C, allowed, asked.penalty)
    result = solve(asked, "two_layer", gap=1e-6)
    assert result.stop_reason is StopReason.GAP_CLOSED
    assert result.bound == pytest.approx(value, rel=1e-5)
    assert result.bound <= value * (1 + 1e-6)
    if result.relaxed is not None:
        assert result.relaxed["upper"] >= value * (1 - 1e-6)
        sigma = result.relaxed["sigma"]
        assert sum(sigma.values()) <= M * (1 + 1e-9)
        assert "x1" not in sigma or "forced_out" not in given
        assert sigma.get("x4") == 1.0 or "forced_in" not in given


def test_groups_share_their_sigma() -> None:
    data = draw(6, 7, 5)
    losses, V = labellings("f1", data.y)
    asked = problem(data, M=2, C=50.0, atoms=Groups(data, {"a": ["x1", "x3"], "b": ["x2"], "c": ["x4", "x5"]}))
    parts = np.array([[1.0, 0, 1, 0, 0], [0, 1, 0, 0, 0], [0, 0, 0, 1, 1]])
    sigmas = np.array([s @ parts for s in itertools.product((0.0, 1.0), repeat=3) if sum(s) <= 2])
    value = relaxation(data.X, losses, V, 50.0, sigmas)
    result = solve(asked, "two_layer", gap=1e-6)
    assert result.relaxed is not None
    assert result.relaxed["lower"] == pytest.approx(value, rel=1e-5)
    assert result.relaxed["upper"] == pytest.approx(value, rel=1e-5)


@pytest.mark.every
@pytest.mark.slow
def test_a_face_needs_fewer_selections_than_a_mixture() -> None:
    """Many fractional features at large C, where a mixture needs about as many selections as there are of them."""
    asked = problem(draw(1, 150, 80, 0.2), M=8, C=5000.0)
    result = solve(asked, "two_layer", gap=1e-4, T=15)
    assert result.stop_reason is StopReason.GAP_CLOSED
    assert result.relaxed is not None
    sigma = np.array(list(result.relaxed["sigma"].values()))
    assert np.count_nonzero((sigma > 1e-3) & (sigma < 1 - 1e-3)) > result.counters["selections"]
    assert sigma.sum() <= 8 * (1 + 1e-9)


@pytest.mark.slow
def test_dropped_labellings_do_not_matter() -> None:
    asked = problem(draw(1, 200, 30, 0.2), M=4, C=500.0)
    kept = solve(asked, "two_layer", gap=1e-5)
    settings = TwoLayerSettings(layer=LayerSettings(drop_above=12, drop_after=4))
    found = solve(asked, "two_layer", gap=1e-5, settings=settings)
    assert found.counters["labellings"] < kept.counters["labellings"]
    assert found.stop_reason is StopReason.GAP_CLOSED
    assert found.bound == pytest.approx(kept.bound, rel=2e-5)
    for before, after in itertools.pairwise(found.trace):
        assert after.bound >= before.bound
        assert after.upper <= before.upper


@pytest.mark.slow
def test_the_inner_layer_hears_the_clock() -> None:
    asked = problem(draw(2, 2000, 400, 0.2), "roc-auc", M=20, C=1e5)
    begin = time.monotonic()
    result = solve(asked, "two_layer", gap=1e-9, time_limit=0.5)
    assert result.stop_reason is StopReason.TIME_LIMIT
    assert time.monotonic() - begin < 4.0
    assert -np.inf < result.bound <= result.objective < np.inf


def test_the_first_step_hears_stop() -> None:
    asked = problem(draw(3, 300, 40, 0.2), M=5, C=1e4)
    assert solve(asked, "two_layer", T=1).counters["masters"] > 10
    times = itertools.count()
    result = solve(asked, "two_layer", stop=lambda: next(times) >= 8)
    assert result.counters["masters"] < 8
    assert result.stop_reason is StopReason.INTERRUPTED
    assert -np.inf < result.bound <= result.objective < np.inf


def test_a_face_holds_all_selections_of_its_atoms() -> None:
    face, ones = face_layer.FacePool(), np.ones(2)
    assert face.add(np.array([3, 5]), ones)
    assert face.add(np.array([2, 5]), ones)
    assert not face.add(np.array([2, 3]), ones)
    assert face.atoms.tolist() == [3, 5, 2]
    assert face.sparse_mixture(np.array([1.0, 0.5, 0.25])) == {3: 1.0, 5: 0.5, 2: 0.25}
    assert face.mixture(np.array([1.0, 0.5, 0.25]), 6).tolist() == [0.0, 0.0, 0.25, 1.0, 0.0, 0.5]
    nothing = face_layer.FacePool()
    assert nothing.add(np.empty(0, dtype=np.int64), np.empty(0))
    assert not nothing.add(np.empty(0, dtype=np.int64), np.empty(0))


def test_penalties_rows_and_forced_features() -> None:
    for seed in range(4):
        data = draw(seed, 7)
        losses, V = labellings("f1", data.y)
        asked = problem(data, M=3, C=10.0, lam=[0.1, 0.02, 0.3, 0.05], forced_in=("x3",))
        asked = asked.with_rows([[1.0, 1.0, 0.0, 0.0]], 1.0, 1.0)
        allowed = np.array(
            [s for s in itertools.product((0.0, 1.0), repeat=4) if asked.selection.contains(np.array(s) > 0)]
        )
        value = relaxation(data.X, losses, V, 10.0, allowed, asked.penalty)
        result = solve(asked, "two_layer", gap=1e-6)
        assert result.relaxed is not None
        assert result.relaxed["lower"] == pytest.approx(value, rel=1e-5)
        assert result.relaxed["upper"] == pytest.approx(value, rel=1e-5)
        assert "x3" in result.selected


@pytest.mark.slow
@pytest.mark.parametrize("name", ["f1", "roc-auc", "average-precision", "precision-at-k"])
def test_both_bounds_are_monotone_and_meet(name: str) -> None:
    data = draw(1, 200, 30, 0.2)
    result = solve(problem(data, name, M=4, C=20.0), "two_layer", gap=1e-4)
    assert result.stop_reason is StopReason.GAP_CLOSED
    for before, after in itertools.pairwise(result.trace):
        assert after.bound >= before.bound
        assert after.upper <= before.upper
        assert after.objective <= before.objective
    last = result.trace[-1]
    assert last.bound <= last.upper <= last.objective * (1 + 1e-9)
    # ε of Theorem 2: the reported solution is within it of the best lower bound
    assert last.upper - last.bound <= 1e-4 * abs(last.upper)
    tighter = solve(problem(data, name, M=4, C=20.0), "two_layer", gap=1e-6)
    assert last.bound <= tighter.trace[-1].upper
    assert tighter.bound <= last.upper


def test_lies_between_relaxation_and_exact_optimum() -> None:
    data = draw(2, 100, 10, 0.3)
    asked = problem(data, M=3, C=20.0)
    relaxed, exact = solve(asked, "two_layer", gap=1e-6), solve(asked, "gbd", gap=1e-6)
    assert exact.status is Status.OPTIMAL
    assert relaxed.bound <= exact.objective * (1 + 1e-9)
    assert relaxed.objective >= exact.bound * (1 - 1e-9)


@pytest.mark.slow
def test_sparse_and_dense_data_agree() -> None:
    data = draw(5, 60, 12)
    X = np.where(np.abs(data.X) > 0.8, data.X, 0.0)
    for scale in ("none", "standard"):
        values = []
        for Z in (X, sparse.csc_array(X)):
            made = Instance.from_arrays(Z, data.y, scale=scale)
            found = solve(problem(made, M=3, C=10.0), "two_layer", gap=1e-6).relaxed
            assert found is not None
            values.append(found["upper"])
        assert values[0] == pytest.approx(values[1], rel=3e-6)


def test_limits_infeasibility_and_options() -> None:
    data = draw(3, 300, 40, 0.2)
    asked = problem(data, M=5, C=50.0)
    one = solve(asked, "two_layer", T=1)
    assert one.stop_reason is StopReason.ITERATION_LIMIT
    assert (one.counters["selections"], one.status) == (1, Status.FEASIBLE)
    assert -np.inf < one.bound < one.objective < np.inf
    begin = time.monotonic()
    result = solve(asked, "two_layer", gap=1e-9, time_limit=0.01)
    assert time.monotonic() - begin < 2.0
    assert result.stop_reason is StopReason.TIME_LIMIT
    assert solve(asked, "two_layer", callback=lambda record: True).stop_reason is StopReason.INTERRUPTED
    empty = solve(asked.with_rows(np.ones((1, 40)), 6, np.inf, names=["six"]), "two_layer")
    assert empty.status is Status.INFEASIBLE
    assert set(empty.conflict) == {"cardinality", "six"}
    with pytest.raises(UsageError, match="T = 0"):
        solve(asked, "two_layer", T=0)
    with pytest.raises(UsageError, match="cannot carry the loss 'hinge'"):
        solve(Problem(data, M=2), "two_layer")
    for driver in ("kelley", "conic", "monolithic"):
        with pytest.raises(UsageError, match="cannot carry the loss 'structural'"):
            solve(asked, driver)


def test_the_same_run_twice_is_the_same() -> None:
    asked = problem(draw(7, 150, 20, 0.2), M=4, C=10.0)
    one, two = (solve(asked, "two_layer") for _ in range(2))
    assert (one.objective, one.bound, one.weights, one.counters) == (
        two.objective,
        two.bound,
        two.weights,
        two.counters,
    )


@pytest.mark.slow
def test_the_right_limits() -> None:
    """One positive, no feature that helps, M = 0, and measures whose loss no labelling brings to 0."""
    X = np.array([[1.0, 0.0], [0.0, 0.0], [-1.0, 0.0], [-2.0, 0.0]])
    y = np.array([1.0, -1.0, -1.0, -1.0])
    one = Instance.from_arrays(X, y)
    for name in ("f1", "precision-at-k", "roc-auc", "average-precision"):
        losses, V = labellings(name, y)
        value = structural_svm(X, losses, V, 100.0)[0]
        for driver in ("two_layer", "gbd"):
            found = solve(problem(one, name, M=1, C=100.0), driver, gap=1e-7)
            assert found.status is Status.OPTIMAL
            assert found.objective == pytest.approx(value, rel=1e-6)
            assert found.selected == ("x1",)
    nothing = Instance.from_arrays(np.zeros((4, 2)), y)  # all scores are equal, whatever w
    for driver in ("two_layer", "gbd"):
        for asked, worst in (
            (problem(nothing, "f1", M=1, C=3.0), 3.0),
            (problem(one, "f1", M=0, C=3.0), 3.0),
            (problem(nothing, "recall-at-k", k=4, M=1, C=3.0), 0.0),
            (problem(one, "precision-at-k", k=4, M=1, C=4.0), 0.125),  # a = 3/2, Δ = 3/4: w = ½
        ):
            found = solve(asked, driver, gap=1e-7)
            assert found.status is Status.OPTIMAL
            assert found.objective == pytest.approx(worst, abs=1e-9)


def test_prediction_is_the_sign_of_the_score() -> None:
    data = draw(8, 80, 6)
    result = solve(problem(data, "average-precision", M=2, C=5.0), "two_layer")
    scores = data.X @ np.array([result.weights.get(f"x{j + 1}", 0.0) for j in range(6)])
    np.testing.assert_allclose(result.decision_function(data.X), scores)
    assert result.intercept == 0.0
    np.testing.assert_array_equal(result.predict(data.X) == 1, scores > 0)
    assert result.params["measure"] == "average-precision"


@pytest.mark.sampled(29)
@pytest.mark.parametrize("seed", range(24))
def test_exact_support_equals_brute_force(seed: int) -> None:
    r = np.random.default_rng(seed)
    M, C = int(r.integers(1, 4)), float(10 ** r.uniform(-0.5, 2))
    data = draw(seed, 8, 5)
    losses, V = labellings("f1", data.y)
    lam = 0.05 * C * (seed % 2)
    values = {
        ids: structural_svm(data.X[:, ids], losses, V, C)[0] + lam * len(ids)
        for size in range(M + 1)
        for ids in itertools.combinations(range(5), size)
    }
    best = min(values.values())
    result = solve(problem(data, M=M, C=C, lam=lam), "gbd", gap=1e-7)
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(best, rel=1e-6)
    assert result.bound <= best * (1 + 1e-9)
    found = tuple(sorted(int(name[1:]) - 1 for name in result.selected))
    assert values[found] == pytest.approx(best, rel=1e-6)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["precision-at-k", "roc-auc", "average-precision"])
def test_exact_supports_of_other_measures(name: str) -> None:
    for seed in range(3):
        data = draw(seed + 50, 6, 4)
        losses, V = labellings(name, data.y)
        best = min(structural_svm(data.X[:, ids], losses, V, 20.0)[0] for ids in itertools.combinations(range(4), 2))
        result = solve(problem(data, name, M=2, C=20.0), "gbd", gap=1e-7)
        assert result.status is Status.OPTIMAL
        assert result.objective == pytest.approx(best, rel=1e-6)


@pytest.mark.every
@pytest.mark.slow
def test_a_medium_instance_is_proven() -> None:
    r = np.random.default_rng(0)
    X = r.standard_normal((500, 50))
    y = np.where(X[:, :5].sum(axis=1) + r.standard_normal(500) > 2.5, 1.0, -1.0)
    result = solve(problem(Instance.from_arrays(X, y), M=5, C=10.0), "gbd", time_limit=120)
    assert result.status is Status.OPTIMAL
    assert result.gap <= 1e-4
    assert set(result.selected) == {"x1", "x2", "x3", "x4", "x5"}


@pytest.mark.parametrize("driver", ["two_layer", "gbd"])
def test_groups_of_features(driver: str) -> None:
    data = draw(4, 7)
    losses, V = labellings("f1", data.y)
    groups = {"a": ["x1", "x3"], "b": ["x2"], "c": ["x4"]}
    asked = problem(data, M=1, C=20.0, atoms=Groups(data, groups))
    values = [structural_svm(data.X[:, ids], losses, V, 20.0)[0] for ids in ([0, 2], [1], [3])]
    result = solve(asked, driver, gap=1e-6)
    if driver == "gbd":
        assert result.status is Status.OPTIMAL
        assert result.objective == pytest.approx(min(values), rel=1e-6)
        assert result.selected == ("abc"[int(np.argmin(values))],)
    else:
        sigmas = np.array([[1.0, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 1]])
        value = relaxation(data.X, losses, V, 20.0, sigmas)
        assert result.bound == pytest.approx(value, rel=1e-5)


def test_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = draw(9, 40, 5)
    rows = [
        f"{int(label)} " + " ".join(f"{j + 1}:{x:.17g}" for j, x in enumerate(row))
        for label, row in zip(data.y, data.X, strict=True)
    ]
    path = tmp_path / "small.svm"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    given = ["solve", "structural", str(path), "-p", "measure=f1", "-p", "M=2", "-p", "C=4"]
    assert main([*given, "--json", "-"]) == 0
    relaxed = json.loads(capsys.readouterr().out)
    assert (relaxed["driver"], relaxed["params"]["measure"], relaxed["params"]["bias"]) == ("two_layer", "f1", True)
    assert main([*given, "--driver", "gbd", "--json", "-"]) == 0
    exact = json.loads(capsys.readouterr().out)
    assert exact["status"] == "OPTIMAL"
    assert relaxed["bound"] <= exact["objective"] <= relaxed["objective"] * (1 + 1e-6)
    for wrong, message in (
        (["-p", "measure=f2"], "measure 'f2' is not known"),
        (["-p", "measure=fbeta"], "needs beta"),
        (["-p", "measure=fbeta", "-p", "beta=0"], "beta = 0.0 must be a positive number"),
        (["-p", "measure=recall-at-k", "-p", "k=41"], "k = 41 must lie between 1 and 40"),
        (["-p", "measure=recall-at-k", "-p", "k=1.5"], "k must be a whole number"),
        ([], "structural needs a value for measure: -p measure=..."),
    ):
        assert main(["solve", "structural", str(path), *wrong]) == 2
        said = capsys.readouterr().err.strip()
        assert message in said
        assert "\n" not in said
