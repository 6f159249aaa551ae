"""Groups against the matrix written out, CVXPY for shared columns, and clear errors."""

from __future__ import annotations

from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse

import mipfs
from mipfs.atoms.groups import Groups, concatenate_ranges
from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.losses.hinge import LOSS as hinge
from mipfs.problem import Problem


def draw(seed: int, n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    r = np.random.default_rng(seed)
    X = r.standard_normal((n, p)) * r.uniform(0.2, 3.0, p)
    y = np.where(X @ r.standard_normal(p) + 0.5 * r.standard_normal(n) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return X, y


@pytest.mark.parametrize("kind", ["dense", "csc"])
@pytest.mark.parametrize("scale", ["none", "standard"])
@pytest.mark.parametrize("scaling", ["none", "norm"])
def test_scores_and_columns_of_random_groups(kind: str, scale: str, scaling: str) -> None:
    for seed in range(8):
        r = np.random.default_rng(seed)
        X, y = draw(seed, 20, 15)
        X[r.random(X.shape) < 0.6] = 0.0
        X[:, 3] = 0.0
        data = Instance.from_arrays(sparse.csc_array(X) if kind == "csc" else X, y, scale=scale)
        Z = (data.X.toarray() if data.is_sparse else data.X) - data.center
        groups = {f"g{k}": r.choice(15, int(r.integers(1, 6)), replace=False).tolist() for k in range(7)}
        groups["nothing"] = [3]
        atoms = Groups(data, groups, scaling)
        v = r.standard_normal(20)
        parts = [Z[:, ids] for ids in groups.values()]
        norms = [np.linalg.norm(part) for part in parts]
        factor = [(1 / norm if norm else 0.0) if scaling == "norm" else 1.0 for norm in norms]
        expected = np.array([np.sum((f * part.T @ v) ** 2) for f, part in zip(factor, parts, strict=True)])
        np.testing.assert_allclose(atoms.scores(v), expected, rtol=1e-10, atol=1e-14)
        np.testing.assert_allclose(atoms.scale, factor, rtol=1e-13)
        assert (atoms.count, atoms.names) == (8, tuple(groups))
        for B in (1, 3, 20):
            ranked = [g for g in np.argsort(-expected, kind="stable") if expected[g] > 0]
            assert atoms.best(v, B).tolist() == ranked[:B]
            assert 7 not in atoms.best(v, B), "a group of zero columns is never selected"
        chosen = r.permutation(8)[:4]
        columns = atoms.columns(chosen)
        written_out = [
            (j, at, factor[g]) for at, g in enumerate(chosen) for j in groups[f"g{g}" if g < 7 else "nothing"]
        ]
        np.testing.assert_allclose(np.c_[columns.ids, columns.atom, columns.scale], written_out)
        total = np.bincount(columns.atom, np.square(columns.scale * (Z[:, columns.ids].T @ v)))
        np.testing.assert_allclose(total, expected[chosen], rtol=1e-10, atol=1e-14)


def test_single_features_are_groups_of_one() -> None:
    X, y = draw(1, 10, 6)
    data = Instance.from_arrays(X, y)
    atoms = Groups(data, {name: [name] for name in data.feature_names})
    v = np.random.default_rng(0).standard_normal(10)
    np.testing.assert_allclose(atoms.scores(v), (X.T @ v) ** 2)
    assert not atoms.overlapping
    assert Groups(data, {"a": ["x1", 2], "b": [np.int64(2)]}).overlapping


def test_the_groups_of_the_data_are_the_default() -> None:
    X, y = draw(1, 10, 4)
    data = Instance.from_arrays(X, y, groups={"left": ["x1", "x2"], "right": ["x4"]})
    atoms = Groups(data)
    assert atoms.names == ("left", "right", "x3")  # a feature in no group is one itself
    np.testing.assert_array_equal(atoms.columns([1, 0]).ids, [3, 0, 1])
    np.testing.assert_array_equal(atoms.columns([2]).ids, [2])
    assert atoms.on(data).names == atoms.names
    assert Groups(data, {"left": ["x1"]}).names == ("left",)
    with pytest.raises(UsageError, match="a group and a feature in no group are both called 'x3'"):
        Groups(Instance.from_arrays(X, y, groups={"x3": ["x1"]}))
    np.testing.assert_array_equal(atoms.columns([]).ids, [])
    with pytest.raises(UsageError, match="no groups are given, and the data has none"):
        Groups(Instance.from_arrays(X, y))


def test_a_shared_column_is_penalised_as_two_halves() -> None:
    X, y = draw(3, 40, 3)
    data, c = Instance.from_arrays(X, y), np.full(40, 0.05)
    atoms = Groups(data, {"a": [0, 1], "b": [1, 2]}, [1.0, 1.5])
    sigma, columns = np.array([0.7, 0.4]), atoms.columns([0, 1])
    svm = hinge.Solver(data, c, True).solve(columns.ids, sigma[columns.atom] * columns.scale**2, tol=1e-9)
    first, second, b = cp.Variable(2), cp.Variable(2), cp.Variable()
    scores = X[:, [0, 1]] @ first + 1.5 * X[:, [1, 2]] @ second + b
    penalty = 0.5 * (cp.sum_squares(first) / 0.7 + cp.sum_squares(second) / 0.4)
    written = cp.Problem(cp.Minimize(penalty + c @ cp.pos(1 - cp.multiply(y, scores))))
    assert svm.primal == pytest.approx(written.solve(solver=cp.CLARABEL), rel=1e-6)
    weights = np.bincount(columns.ids, svm.w, 3)
    np.testing.assert_allclose(weights, [first.value[0], first.value[1] + 1.5 * second.value[0], 1.5 * second.value[1]],
                               atol=1e-4)  # fmt: skip
    both = Groups(data, {"a": [0, 1], "b": [1, 2]}).columns([0, 1])
    lowered = hinge.Solver(data, c, True).solve(both.ids, tol=1e-9).primal
    once = hinge.Solver(data, c, True).solve(np.arange(3), tol=1e-9).primal
    halves = hinge.Solver(data, c, True).solve(np.arange(3), np.array([1.0, 2.0, 1.0]), tol=1e-9).primal
    assert lowered < once - 1e-4
    assert lowered == pytest.approx(halves, rel=1e-7)


def test_spans() -> None:
    assert concatenate_ranges(np.array([5, 0, 9]), np.array([2, 0, 3])).tolist() == [5, 6, 9, 10, 11]
    assert concatenate_ranges(np.empty(0, int), np.empty(0, int)).tolist() == []


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ({"a": []}, r"group 'a' is \[\]; give a list of one or more features"),
        ({"a": "x1"}, "group 'a' is 'x1'; give a list"),
        ({"a": ["x1", "x9"]}, "group 'a': no feature is called 'x9'; features are called like 'x1'"),
        ({"a": [0, 3]}, "group 'a' holds position 3; positions are from 0 to 2"),
        ({"a": np.array([-1, 0])}, "holds position -1; positions are from 0 to 2"),
        ({"a": [[0], [1, 2]]}, r"group 'a' holds \[0\]; a feature is a name or a position"),
        ({"a": ["x2", 1]}, "group 'a' names 'x2' twice; list each feature once"),
        ({"a": [1, 1]}, "group 'a' names 'x2' twice"),
        ({"a": [0.5]}, "group 'a' holds 0.5; a feature is a name or a position"),
        ({"a": [True]}, "group 'a' holds True"),
    ],
)
def test_refused(groups: dict[str, list[object]], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Groups(Instance.from_arrays(np.eye(3), [1, -1, 1]), groups)


def test_restricted_to_no_group() -> None:
    """A master whose faces use no atom asks for a problem without columns (`mipfs.inner.face_interior`)."""
    X, y = draw(1, 12, 4)
    data = Instance.from_arrays(X, y)
    problem = Problem(data, M=0, C=1.0, atoms=Groups(data, {"a": ["x1", "x2"], "b": ["x3"]}))
    view = problem.restricted(np.empty(0, dtype=np.int64))
    assert (view.atoms.count, view.data.n_features) == (0, 0)
    assert view.evaluate([], np.empty(0), 0.0) == problem.evaluate([], np.empty(0), 0.0) == 12.0


@pytest.mark.parametrize(
    "file", ["groups", "homogeneous", "intersection", "made", "pairs", "registry", "splines", "tree"]
)
def test_what_the_reference_names_is_there_without_a_further_import(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(mipfs.atoms, file, raising=False)  # as in a process that has imported mipfs alone
    assert getattr(mipfs.atoms, file).__name__ == f"mipfs.atoms.{file}"
    assert f"mipfs.atoms.{file}." in (Path(__file__).parents[2] / "docs" / "api.md").read_text()
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = mipfs.atoms.nothing
