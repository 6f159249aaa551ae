"""A solve that begins from the result of a problem that was edited since."""

from __future__ import annotations

import gc
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest

import mipfs
from mipfs import models
from mipfs.data.instance import Instance
from mipfs.drivers import last, replanted
from mipfs.drivers.replanted import BoundedNodes
from mipfs.drivers.waiting import pack_open_node, packed_all, unpack_open_node
from mipfs.errors import RowError, UsageError
from mipfs.inner.boolean_node import FREE, INSIDE, OUTSIDE, WarmStart
from mipfs.inner.old_duals import median_intercepts
from mipfs.inner.propagation import Propagation
from mipfs.kernels.bound import earned
from mipfs.problem import Problem
from mipfs.run import warm as warm_start
from mipfs.run.swaps import climb
from tests import edits


@pytest.fixture(scope="module")
def data() -> Instance:
    """Random data, with an optimum that has a rival."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 12)) @ (np.eye(12) + 0.3 * rng.normal(size=(12, 12)))
    y = np.where(X[:, :4] @ rng.normal(size=4) + rng.normal(size=60) > 0, 1, -1)
    return Instance.from_arrays(X, y)


@pytest.fixture(scope="module")
def problem(data: Instance) -> Problem:
    return Problem(data, M=5, C=0.5)


@pytest.fixture(scope="module")
def first(problem: Problem) -> mipfs.Result:
    return mipfs.solve(problem, threads=1)


def _without(problem: Problem, support: tuple[str, ...]) -> Problem:
    row = np.isin(problem.data.feature_names, support).astype(float)
    return problem.with_rows([row], -np.inf, row.sum() - 1.0, ["cut"])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("driver", ["branch", "gbd"])
def test_an_edited_problem_has_its_own_optimum_and_proof(
    driver: str, problem: Problem, first: mipfs.Result, tmp_path: Path
) -> None:
    changed = _without(problem, first.selected)
    first.save(tmp_path / "first.json")
    cold = mipfs.solve(changed, driver)
    for given in (first, tmp_path / "first.json"):
        warm = mipfs.solve(changed, driver, warm=given)
        assert edits.differs(warm, cold) == ""
        assert warm.warm_from is not None
        assert warm.warm_from["changed"] == ["rows"]
        assert mipfs.verify(warm, problem.data).accepted


def test_the_same_problem_asks_for_nothing_more(problem: Problem, first: mipfs.Result) -> None:
    again = mipfs.solve(problem, threads=1, warm=first)
    assert again.warm_from is not None
    assert again.warm_from["changed"] == []
    assert again.warm_from["opened"] <= 0.2 * again.warm_from["leaves"]
    assert again.counters["nodes"] < first.counters["nodes"]


@pytest.mark.parametrize("driver", ["branch", "gbd"])
def test_a_list_of_the_best_sets_goes_on_from_an_earlier_result(
    problem: Problem, first: mipfs.Result, driver: str
) -> None:
    """Until it is full nothing is cut off: the list is that of a solve from nothing."""
    warm, cold = (mipfs.solve(problem, driver, pool_size=4, warm=one) for one in (first, None))
    assert _listed(warm) == _listed(cold)
    assert len(_listed(cold)) == 4
    assert mipfs.verify(warm, problem.data).accepted
    model = models.fsp_m(problem.data, M=5, C=0.5)
    mipfs.solve(model)
    assert _listed(mipfs.solve(model, pool_size=4)) == _listed(cold)


def _listed(result: mipfs.Result) -> set[frozenset[str]]:
    assert result.near_optimal is not None
    return {frozenset(one["selected"]) for one in result.near_optimal["supports"]}


def test_kelley_begins_with_the_old_dual_vector(problem: Problem, first: mipfs.Result) -> None:
    found = mipfs.solve(problem.replace(M=4), "kelley", warm=first)
    assert found.bound == pytest.approx(mipfs.solve(problem.replace(M=4), "kelley").bound, rel=2e-4)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"loss": "squared-hinge"}, "loss"),
        ({"bias": False}, "intercept"),
        ({"class_weight": "balanced"}, "class_weight"),
    ],
)
def test_what_dual_vectors_are_about_may_not_change(
    change: dict[str, Any], said: str, problem: Problem, first: mipfs.Result
) -> None:
    with pytest.raises(UsageError, match=said):
        mipfs.solve(problem.replace(**change), warm=first)


def test_other_data_and_drivers_without_it_are_refused(problem: Problem, first: mipfs.Result) -> None:
    other = Instance.from_arrays(problem.data.block().values + 1.0, problem.data.y)
    with pytest.raises(UsageError, match="other data"):
        mipfs.solve(Problem(other, M=5, C=0.5), warm=first)
    with pytest.raises(UsageError, match="branch, gbd, kelley"):
        mipfs.solve(problem, "conic", warm=first)


def test_a_dual_vector_of_a_file_that_is_none_is_made_one(
    problem: Problem, first: mipfs.Result, tmp_path: Path
) -> None:
    """A forged one proves nothing that is not so: the answer is that of the problem."""
    first.save(tmp_path / "r.json")
    loaded = mipfs.Result.load(tmp_path / "r.json")
    assert loaded.certificate is not None
    place = tmp_path / loaded.certificate["file"]
    arrays = dict(np.load(place))
    arrays["dual_q"] = arrays["dual_q"] - 3  # eight times too large, above every top
    np.savez(place, **arrays)
    object.__setattr__(loaded, "sidecar", place.read_bytes())
    warm = mipfs.solve(problem, warm=loaded, threads=1)
    assert edits.differs(warm, first) == ""
    assert mipfs.verify(warm, problem.data).accepted


@pytest.mark.slow
def test_a_model_goes_on_by_itself_and_its_parameters_are_its_own(data: Instance) -> None:
    model = models.fsp_m(data, M=4, C=0.5)
    begun = mipfs.solve(model)
    assert begun.warm_from is None
    model.select.cut = pyo.Constraint(expr=sum(model.select.sigma[j] for j in begun.selected) <= 3)
    assert (mipfs.solve(model).warm_from or {})["changed"] == ["rows"]
    model.C, model.M, model.lam = 1.0, 3, 0.25
    now = mipfs.problem_of(model)
    assert (now.C, now.M, now.lam) == (1.0, 3, 0.25)
    warm, cold = mipfs.solve(model), mipfs.solve(model, warm=False)
    assert edits.differs(warm, cold) == ""
    assert pyo.value(model.objective) == pytest.approx(cold.objective, rel=1e-4)
    assert last.last_result(model) is warm
    assert last.last_result(model.clone()) is None
    model.del_component(model.C)
    model.C = pyo.Param(initialize=3.0, mutable=True)
    with pytest.raises(RowError, match="C is not the parameter"):
        mipfs.solve(model)
    before = len(last._KEPT)
    del model
    gc.collect()
    assert len(last._KEPT) < before


def test_parameters_of_the_boolean_relaxation(data: Instance) -> None:
    made = models.boolean_relaxation(data, M=4, C=0.5, loss="hinge", bias=True)
    mipfs.solve(made, "branch")
    made.parameters["C"].value, made.parameters["M"].value = 1.0, 3
    found = mipfs.solve(made, "branch")
    assert (found.warm_from or {})["changed"] == ["M", "C"]
    assert edits.differs(found, mipfs.solve(Problem(data, M=3, C=1.0))) == ""
    made.cvxpy.solve()
    assert made.cvxpy.value <= found.objective * (1 + 1e-6)
    made.parameters["M"].value = 2.5
    with pytest.raises(UsageError, match="whole"):
        mipfs.problem_of(made)


@pytest.mark.parametrize("seed", range(20))
def test_many_nodes_are_bounded_and_screened_as_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    m, k, M = 6, 9, int(rng.integers(1, 6))
    gain, base = rng.normal(size=(m, k)), rng.normal(size=m) + 5.0
    states = rng.choice([FREE, FREE, INSIDE, 2 if INSIDE != 2 else 3], size=(m, k)).astype(np.int8)
    cutoff = float(base.mean() + rng.normal())
    every = BoundedNodes.of(base, gain, states, M)
    inside, out = every.screen(cutoff)
    for t in range(m):
        free = np.flatnonzero(states[t] == FREE)
        held = gain[t][states[t] == INSIDE]
        if held.size > M:
            continue
        order = free[np.argsort(-gain[t][free], kind="stable")]
        bound, goes_in, goes_out = earned(base[t], held.tolist(), gain[t][order].tolist(), M - held.size, cutoff)
        assert every.bound[t] == pytest.approx(bound, rel=1e-12)
        assert np.array_equal(np.flatnonzero(inside[t]), np.sort(order[:goes_in]))
        assert np.array_equal(np.flatnonzero(out[t]), np.sort(order[goes_out:]))
    fits = every.room >= 0
    sigma, counting = every.spread(0.2)[fits], every.counting[fits]
    assert np.all((sigma >= 0.0) & (sigma <= 1.0))
    assert np.all(np.diff(sigma, axis=1) <= 0.0)
    assert not np.any(sigma[every.falling[fits] <= 0.0])
    assert np.all(sigma.sum(axis=1) <= every.room[fits] + 1e-9)
    assert np.array_equal(sigma[every.count[fits] < every.room[fits]], counting[every.count[fits] < every.room[fits]])
    assert np.array_equal(counting.sum(axis=1), every.count[fits])


def test_many_nodes_are_given_an_intercept_as_one(problem: Problem) -> None:
    values = np.random.default_rng(3).normal(size=(7, problem.data.n_samples))
    y, c = problem.data.y, np.random.default_rng(4).uniform(0.5, 2.0, problem.data.n_samples)
    for f, b in zip(values, median_intercepts(values, y, c), strict=True):
        loss = [float(c @ np.maximum(0.0, 1.0 - y * (f + at))) for at in (b, *(y - f))]
        assert loss[0] <= min(loss) + 1e-9


def test_many_nodes_are_packed_as_one() -> None:
    rng = np.random.default_rng(0)
    states = rng.integers(0, 3, size=(5, 70)).astype(np.int8)
    w = np.where(rng.random((5, 70)) < 0.2, rng.normal(size=(5, 70)), 0.0).astype(np.float32)
    nodes = packed_all(states, w, np.arange(5.0), 0.5)
    for t in range(5):
        one = pack_open_node(states[t], WarmStart(w[t], float(t), 0.5), 0.0, 0, 0)
        for found, at in ((nodes, t), (one, 0)):
            again, warm = unpack_open_node(found, at, 70)
            assert np.array_equal(again, states[t])
            assert np.array_equal(warm.w, w[t])
            assert (warm.b, warm.rho) == (float(t), 0.5)


@pytest.mark.slow
def test_random_chains_of_edits() -> None:
    """Two; `python -m tests.edits` has hundreds."""

    assert edits.chain(1, 5, Counter()) == []


def test_the_summary_says_what_it_began_from(problem: Problem) -> None:
    first = mipfs.solve(problem, threads=1)  # which no file holds
    assert "warm from" not in first.summary()
    again = mipfs.solve(problem.replace(C=2.0 * problem.C), warm=first)
    assert again.warm_from is not None
    used = "its selection" if again.warm_from["start"] else "nothing of it was of use"
    assert f"the result before, with C changed: {used}" in again.summary()


def test_a_better_incumbent_plants_the_tree_again(monkeypatch: pytest.MonkeyPatch, problem: Problem) -> None:
    """The second time from the beginning, at that cutoff: less of it opens."""
    prices = 1.0 + np.arange(problem.data.n_features) % 3
    before, after = (problem.with_rows([prices], -np.inf, end, ["budget"]) for end in (11.0, 9.0))
    planted, opens = list[tuple[float, int]](), replanted.Replanting._plant_tree

    def plant_tree(self: replanted.Replanting) -> object:
        left = opens(self)
        planted.append((self.cutoff, self.open))
        return left

    def round_leaves(self: replanted.Replanting, *_given: object) -> None:
        climb(self.tree.supports, self.tree.supports.pool)

    monkeypatch.setattr(replanted.Replanting, "_plant_tree", plant_tree)
    monkeypatch.setattr(replanted.Replanting, "_round", round_leaves)
    monkeypatch.setattr(replanted, "climb", lambda *_given, **_named: None)
    first = mipfs.solve(before, threads=1)
    warm = mipfs.solve(after, threads=1, warm=first)
    assert len(planted) == 2
    assert planted[1] < planted[0]
    assert edits.differs(warm, mipfs.solve(after, threads=1)) == ""
    assert warm.claim is not None
    assert mipfs.verify(warm, problem.data).accepted


def test_a_tree_under_a_tighter_budget_is_cut_back(problem: Problem) -> None:
    """Where the row alone shows that a node is empty it is a leaf, whatever the earlier tree has below it."""
    prices = 1.0 + np.arange(problem.data.n_features) % 3
    loose, tight = (problem.with_rows([prices], -np.inf, end, ["budget"]) for end in (8.0, 4.0))
    first = mipfs.solve(loose, threads=1)
    warm = mipfs.solve(tight, threads=1, warm=first)
    assert first.claim is not None
    assert warm.claim is not None
    assert warm.claim.proof.n_nodes < first.claim.proof.n_nodes
    assert edits.differs(warm, mipfs.solve(tight, threads=1)) == ""
    assert mipfs.verify(warm, problem.data).accepted


def test_what_breaks_a_row_by_itself_is_empty(problem: Problem) -> None:
    rng = np.random.default_rng(8)
    rows = rng.integers(-2, 4, size=(3, problem.data.n_features)).astype(float)
    propagation = Propagation(
        problem.with_rows(rows, [-1.0, 2.0, -np.inf], [3.0, np.inf, 4.0]).selection, np.arange(12)
    )
    states = rng.choice(np.array([FREE, INSIDE, OUTSIDE], dtype=np.int8), size=(300, 12))
    is_broken = propagation.room(states) < 0.0
    broken = np.where(is_broken.any(axis=1), is_broken.argmax(axis=1), -1)
    low, high = propagation.sides.ends[3:], propagation.sides.ends[:3]
    for side, one in zip(broken.tolist(), states, strict=True):
        least, most = (rows * (one == INSIDE) + of(rows * (one == FREE), 0.0) for of in (np.minimum, np.maximum))
        breaks = np.append(least.sum(axis=1) > high, -most.sum(axis=1) > low)
        assert side == (int(breaks.argmax()) if breaks.any() else -1)
        assert side < 0 or propagation(one).broken is not None or np.count_nonzero(one == INSIDE) > 5
    assert 0 < np.count_nonzero(broken >= 0) < 300
    whole = states[broken < 0]
    fixed = whole.copy()
    for side, nodes, atoms, values in propagation.fixed_all(fixed):
        row, end = np.vstack([rows, -rows])[side], np.append(high, low)[side]
        for node, atom, value in zip(nodes.tolist(), atoms.tolist(), values.tolist(), strict=True):
            other = np.minimum(row, 0.0) @ (fixed[node] == FREE) + row @ (fixed[node] == INSIDE)
            assert other + (max(row[atom], 0.0) if value == OUTSIDE else -min(row[atom], 0.0)) > end
        assert np.all(fixed[nodes, atoms] == FREE)
        fixed[nodes, atoms] = values
    is_full = np.count_nonzero(whole == INSIDE, axis=1) >= 5
    assert np.all(fixed[is_full] == whole[is_full])
    assert np.count_nonzero(fixed != whole) > 100


def test_of_another_m_or_c_few_dual_vectors_are_made_feasible(
    monkeypatch: pytest.MonkeyPatch, problem: Problem, first: mipfs.Result
) -> None:
    monkeypatch.setattr(warm_start, "MOST_CUTS", 2)
    changed = problem.replace(C=0.9 * problem.C)
    tree = warm_start.warm_of(first, changed, changed).tree
    assert tree is not None
    assert not tree.is_alike
    assert len(tree.duals) == 2


@pytest.mark.slow
def test_an_earlier_tree_is_planted_where_no_atom_is_left() -> None:
    assert edits.chain(216, 300, Counter()) == []


def test_a_relaxation_begins_with_the_support_that_it_is_handed() -> None:
    """Its own rounding led to a worse one, and said that it had none."""
    data = mipfs.read("instances/wdbc.svm", scale="standard")
    problem = mipfs.Problem(data, M=4, C=0.2, loss="squared-hinge", bias=False)
    exact = mipfs.solve(problem, "branch")
    cold, warm = mipfs.solve(problem, "kelley"), mipfs.solve(problem, "kelley", warm=exact)
    assert warm.objective == pytest.approx(exact.objective, rel=1e-9)
    assert warm.objective < 0.995 * cold.objective
    assert warm.warm_from["start"] is True
    assert mipfs.solve(problem, "kelley", warm=exact, rounding="scores").warm_from["start"] is False
