"""Single features as atoms: scores, their rounding error in rational arithmetic, the partial sort."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from mipfs.atoms import Atoms
from mipfs.atoms.features import Features, centred_squares
from mipfs.atoms.groups import Groups
from mipfs.atoms.parts import largest
from mipfs.atoms.tree import Tree
from mipfs.data.instance import Instance
from mipfs.errors import UsageError


def draw(seed: int, n: int = 12, p: int = 9, kind: str = "dense", scale: str = "none") -> tuple[Instance, np.ndarray]:
    """An instance with a zero, a constant and a duplicate column, and the matrix that it stands for."""
    r = np.random.default_rng(seed)
    X = r.standard_normal((n, p)) * 10.0 ** r.integers(-3, 4, p) + r.choice([0.0, 50.0], p)
    X[r.random((n, p)) < 0.5] = 0.0
    X[:, 0], X[:, 1], X[:, 2] = 0.0, 3.0, X[:, 3]
    y = np.resize([1.0, -1.0], n)
    data = Instance.from_arrays(sparse.csc_array(X) if kind == "csc" else X, y, scale=scale)
    stored = data.X.toarray() if data.is_sparse else data.X
    return data, stored - data.center


ALL = [(kind, scale) for kind in ("dense", "csc") for scale in ("none", "standard", "unit")]


@pytest.mark.parametrize(("kind", "scale"), ALL)
@pytest.mark.parametrize("scaling", ["none", "norm"])
def test_scores_are_those_of_the_matrix(kind: str, scale: str, scaling: str) -> None:
    data, Z = draw(1, kind=kind, scale=scale)
    v = np.random.default_rng(2).standard_normal(data.n_samples)
    atoms = Features(data, scaling)
    norms = np.linalg.norm(Z, axis=0)
    factor = np.where(norms > 0, 1 / np.where(norms > 0, norms, 1), 0) if scaling == "norm" else np.ones(norms.size)
    np.testing.assert_allclose(atoms.scale, factor, rtol=1e-12)
    np.testing.assert_allclose(atoms.scores(v), (factor * (Z.T @ v)) ** 2, rtol=1e-9, atol=1e-12)
    assert atoms.scores(v)[0] == 0.0
    assert atoms.names == data.feature_names
    columns = atoms.columns([4, 2])
    np.testing.assert_array_equal(columns.ids, [4, 2])
    np.testing.assert_array_equal(columns.atom, [0, 1])
    np.testing.assert_array_equal(columns.scale, atoms.scale[[4, 2]])


@pytest.mark.parametrize(("kind", "scale"), ALL)
def test_norms_in_blocks(kind: str, scale: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for block in (1, 7, 1 << 20):
        monkeypatch.setattr("mipfs.atoms.features._BLOCK", block)
        data, Z = draw(3, kind=kind, scale=scale)
        np.testing.assert_allclose(np.sqrt(centred_squares(data)), np.linalg.norm(Z, axis=0), rtol=1e-13, atol=1e-15)
        stored = data.X.toarray() if data.is_sparse else data.X
        np.testing.assert_allclose(Features(data).norms, np.linalg.norm(stored, axis=0), rtol=1e-13)


def exact_scores(data: Instance, scale: np.ndarray, members: list[list[int]], v: np.ndarray) -> list[Fraction]:
    """λ² Σ_j (Σ_i v_i (x_ij − center_j))² without any rounding."""
    X = data.X.toarray() if data.is_sparse else data.X
    numbers = [Fraction(float(value)) for value in v]
    omega = []
    for j in range(data.n_features):
        center = Fraction(float(data.center[j]))
        omega.append(sum(a * (Fraction(float(x)) - center) for a, x in zip(numbers, X[:, j], strict=True)))
    return [
        Fraction(float(factor)) ** 2 * sum(omega[j] ** 2 for j in ids)
        for factor, ids in zip(scale, members, strict=True)
    ]


@pytest.mark.parametrize(("kind", "scale"), ALL)
@pytest.mark.parametrize("scaling", ["none", "norm"])
def test_the_error_bound_holds_in_rational_arithmetic(kind: str, scale: str, scaling: str) -> None:
    data, _ = draw(4, n=30, kind=kind, scale=scale)
    parents = {"x1": "a", "x2": "a", "x3": "b", "x5": "b", "b": "c", "a": "c"}
    below = {"a": [0, 1], "b": [2, 4], "c": [0, 1, 2, 4]}
    groups = {"one": [5, 6], "two": [0, 1, 2, 3, 4, 5, 6, 7, 8], "zero": [0]}
    alone = [[j] for j in range(data.n_features)]
    tree = Tree(data, parents, scaling=scaling)
    cases: list[tuple[Atoms, list[list[int]]]] = [
        (Features(data, scaling), alone),
        (Groups(data, groups, scaling), list(groups.values())),
        (tree, alone + [below[name] for name in tree.names[data.n_features :]]),
    ]
    for atoms, members in cases:
        for seed in range(3):
            v = np.random.default_rng(seed).standard_normal(data.n_samples) * 10.0 ** (3 * seed - 3)
            computed = atoms.scores(v)
            error = atoms.score_error(v, computed)
            np.testing.assert_array_equal(error, atoms.score_error(v))
            exact = exact_scores(data, atoms.scale, members, v)
            for score, true, radius in zip(computed, exact, error, strict=True):
                assert abs(Fraction(float(score)) - true) <= Fraction(float(radius))
            assert np.all(error <= 1e-9 * (1e6 + computed.max())), "a bound is of use only where it is small"


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0, 1e-300, 1e300]), min_size=1, max_size=300), st.integers(0, 320))
def test_partial_sort_is_the_full_sort(values: list[float], B: int) -> None:
    ranked = sorted(range(len(values)), key=lambda j: (-values[j], j))
    assert largest(np.array(values), B).tolist() == [j for j in ranked if values[j] > 0][:B]


def test_ties_go_to_the_lowest_id_and_zeros_are_left_out() -> None:
    scores = np.zeros(5000)
    scores[[4000, 17, 300, 2999]] = 1.0
    scores[4500] = 2.0
    assert largest(scores, 3).tolist() == [4500, 17, 300]
    assert largest(scores, 5000).tolist() == [4500, 17, 300, 2999, 4000]
    assert largest(scores, 0).size == largest(np.zeros(9), 4).size == 0


def test_best_takes_the_top_of_the_scores() -> None:
    data, Z = draw(5)
    v = np.random.default_rng(0).standard_normal(data.n_samples)
    ranked = np.argsort(-((Z.T @ v) ** 2), kind="stable")
    assert Features(data).best(v, 4).tolist() == ranked[:4].tolist()
    assert 0 not in Features(data).best(v, 100)


def test_a_scaling_of_ones_own_and_tiny_columns() -> None:
    X = np.array([[1e-160, 1.0], [-1e-160, 2.0]])
    data = Instance.from_arrays(X, [1, -1])
    assert Features(data, "norm").scale[0] == 0.0
    assert Features(data, [2.0, 0.0]).scores(np.ones(2))[1] == 0.0
    for wrong in ([1.0], [1.0, -1.0], [1.0, np.nan]):
        with pytest.raises(UsageError, match="give 2 finite numbers >= 0, one for every atom"):
            Features(data, wrong)
    with pytest.raises(UsageError, match="scaling = 'unit' is unknown"):
        Features(data, "unit")
