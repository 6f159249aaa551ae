"""The group lasso: all three algorithms against its program in CVXPY, and its search for a number of features."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.lab.baselines.group_lasso import ALGORITHMS, GroupLasso, fit

GROUPS = {f"g{k}": tuple(f"x{j + 1}" for j in range(4 * k, 4 * k + 4)) for k in range(3)}
MEMBERS = [list(range(4 * k, 4 * k + 4)) for k in range(3)] + [[j] for j in range(12, 16)]


def draw(seed: int, stored: Any = np.asarray, scale: str = "none", **given: Any) -> Instance:
    r = np.random.default_rng(seed)
    X = r.normal(size=(50, 16)) * r.uniform(0.5, 2.0, 16) + 0.8
    X = np.where(np.abs(X) > 0.5, X, 0.0)
    X[:, 7], X[:, 13] = 0.0, X[:, 12]  # a zero column, and one that is there twice
    y = np.where(X[:, :3].sum(axis=1) + r.normal(size=50) > 2.0, 1.0, -1.0)
    return Instance.from_arrays(stored(X), y, sample_weight=r.uniform(0.5, 2.0, 50), scale=scale, **given)


def least(data: Instance, members: list[list[int]], C: float, bias: bool) -> float:
    X = data.X.toarray() if data.is_sparse else data.X
    w, b = cp.Variable(16), cp.Variable()
    margins = cp.multiply(data.y, (X - data.center) @ w + (b if bias else 0.0))
    norms = cp.sum([np.sqrt(len(ids)) * cp.norm(w[ids]) for ids in members])
    loss = C * data.sample_weight @ cp.logistic(-margins)
    return float(cp.Problem(cp.Minimize(norms + loss)).solve(solver=cp.CLARABEL))


@pytest.mark.sampled(11)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("stored", "scale"), [(np.asarray, "none"), (sparse.csc_array, "standard")])
@pytest.mark.parametrize("grouped", [True, False])
def test_value_and_gap_of_every_algorithm(bias: bool, stored: Any, scale: str, grouped: bool) -> None:
    data = draw(1, stored, scale)
    members = MEMBERS if grouped else [[j] for j in range(16)]
    value = least(data, members, 0.4, bias)
    for algorithm in ALGORITHMS:
        found = GroupLasso(data, GROUPS if grouped else None, bias=bias).solve(0.4, algorithm=algorithm, tol=1e-8)
        assert found.objective == pytest.approx(value, rel=1e-6)
        assert found.bound == pytest.approx(value, rel=1e-6)
        assert found.bound <= found.objective
        # The classifier is the one whose value that is, on the user's scale.
        w = np.zeros(16)
        w[found.ids] = found.w * data.scale[found.ids]
        norms = sum(np.sqrt(len(ids)) * np.linalg.norm(w[ids]) for ids in members)
        loss = 0.4 * data.sample_weight @ np.logaddexp(0.0, -data.y * found.scores(data))
        assert norms + loss == pytest.approx(found.objective, rel=1e-10)
        for ids in members:
            assert np.isin(ids, found.ids).all() or not np.isin(ids, found.ids).any()


@pytest.mark.slow
def test_the_first_c_and_the_wanted_number() -> None:
    data = draw(2, groups=GROUPS)
    lasso = GroupLasso(data)
    assert lasso.solve(0.999 * lasso.first).ids.size == 0
    assert lasso.solve(1.01 * lasso.first).ids.size > 0
    sizes = {GroupLasso(data).solve(lasso.first * C, tol=1e-6).ids.size for C in np.geomspace(1.0, 300.0, 40)}
    for M in (1, 4, 5, 9, 16):
        found = lasso.of_size(M, tol=1e-6)
        assert max(size for size in sizes if size <= M) <= found.ids.size <= M
    by_groups = lasso.of_size(2, count=lasso.n_groups)
    assert lasso.n_groups(by_groups) == 2
    assert fit(data, 5, 0.3).ids.size <= 5


@pytest.mark.slow
def test_data_on_which_nothing_is_to_be_found() -> None:
    y = np.resize([1.0, -1.0], 12)
    zero = Instance.from_arrays(np.zeros((12, 3)), y)
    assert fit(zero, 2).ids.size == 0
    alone = Instance.from_arrays(np.where(y > 0, 1.0, -1.0)[:, None] * 1e6, y)
    assert fit(alone, 1).ids.tolist() == [0]


def test_what_cannot_be_is_refused() -> None:
    data = draw(3)
    with pytest.raises(UsageError, match="disjoint groups"):
        GroupLasso(data, {"a": ["x1", "x2"], "b": ["x2"]})
    with pytest.raises(UsageError, match="algorithm = 'ista' is not known"):
        GroupLasso(data).solve(1.0, algorithm="ista")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"C = 0\.0 must be a positive number"):
        GroupLasso(data).solve(0.0)
    with pytest.raises(UsageError, match="M = 0 must be an integer"):
        fit(data, 0)


def test_a_gap_that_is_left_open_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mipfs.lab.baselines.group_lasso.MOST_STEPS", 10)
    lasso, value = GroupLasso(draw(4)), least(draw(4), [[j] for j in range(16)], 5.0, True)
    with pytest.warns(ConvergenceWarning, match="stopped at a gap of"):
        found = lasso.solve(5.0, algorithm="fista", tol=1e-9)
    assert found.bound <= value <= found.objective
