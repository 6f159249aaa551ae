"""FSPClassifier and FGMClassifier over atoms: enumeration by libsvm, predictions from kernels, the older names."""

from __future__ import annotations

import itertools
import pickle
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.preprocessing import PolynomialFeatures
from sklearn.svm import SVC

import mipfs
from mipfs import atoms
from mipfs.atoms.groups import Groups
from mipfs.atoms.made import Made
from mipfs.atoms.tree import Tree
from mipfs.data.instance import Instance

Array = npt.NDArray[np.float64]

GROUPS = [[0, 1], [2], [3, 4], [1, 5]]
P, M, C = 6, 2, 2.0


def data(seed: int = 0, n: int = 50) -> tuple[Array, Array]:
    """Values >= 0, and labels of single features, of one more than linearly, and of a product."""
    r = np.random.default_rng(seed)
    X = np.round(r.gamma(2.0, 0.3, size=(n, P)), 1)
    score = X[:, 0] + 1.5 * X[:, 0] * X[:, 2] - 0.8 * X[:, 4] ** 2 + 0.2 * r.standard_normal(n)
    y = (score > np.median(score)).astype(int)
    y[:2] = 0, 1
    return X, y


def of_columns(blocks: list[list[int]]) -> Any:
    """Kernels of groups of columns, between rows and rows."""
    return lambda A, B, train: [A[:, block] @ B[:, block].T for block in blocks]


def intersection(A: Array, B: Array, train: Array) -> list[Array]:
    """min(a, b), where a new value counts as the nearest of training below it, as that of the exact kernel does."""
    return [np.minimum(A[:, [j]], B[:, j][None, :]) for j in range(P)]


def products(A: Array, B: Array, train: Array) -> list[Array]:
    """Squares and products with the factors of (x'z)²."""
    made = PolynomialFeatures(2, include_bias=False).fit(A)
    powers = made.powers_[P:]
    factor = np.where(powers.max(axis=1) == 2, 1.0, np.sqrt(2.0))
    left, right = (made.transform(Z)[:, P:] * factor for Z in (A, B))
    return [np.outer(left[:, k], right[:, k]) for k in range(len(powers))]


def tree_of(X: Array) -> Tree:
    """Two levels over six features."""
    root = Instance.from_arrays(X, np.resize([1.0, -1.0], len(X)))
    return Tree(root, {"x1": "a", "x2": "a", "x3": "b", "x4": "b", "x5": "b", "x6": "c"})


CASES: dict[str, tuple[Any, Any, Any]] = {
    "none": (None, None, of_columns([[j] for j in range(P)])),
    "features": ("features", None, of_columns([[j] for j in range(P)])),
    "groups": ("groups", {"groups": GROUPS}, of_columns(GROUPS)),
    "groups by labels": ("groups", {"groups": ["a", "b", "a", "c", "c", "b"]}, of_columns([[0, 2], [1, 5], [3, 4]])),
    "groups made": (
        lambda X: Groups(Instance.from_arrays(X, np.resize([1.0, -1.0], len(X))), {"u": [0, 3], "v": [1, 2, 4]}),
        None,
        of_columns([[0, 3], [1, 2, 4]]),
    ),
    "additive-hik": ("additive-hik", None, intersection),
    "pairs": ("pairs", {"r": 0.0}, products),
}
each = pytest.mark.parametrize("name", CASES)


def model_of(name: str, kind: Any, X: Array, **more: Any) -> Any:
    """An estimator over the atoms of a case."""
    given, options, _ = CASES[name]
    given = given(X) if callable(given) else given
    return kind(M, C=C, atoms=given, atom_options=options, **more)


def enumerated(kernels: list[Array], y: Array, M: int = M) -> tuple[float, Any, tuple[int, ...]]:
    """The least objective over all selections, libsvm's machine there, and the selection."""
    signs, best = np.where(y == 1, 1.0, -1.0), (np.inf, None, ())
    for chosen in itertools.combinations(range(len(kernels)), min(M, len(kernels))):
        K = sum(kernels[g] for g in chosen)
        svm = SVC(C=C, kernel="precomputed", tol=1e-5, max_iter=10**6).fit(K, signs)
        alpha, at = svm.dual_coef_.ravel(), svm.support_
        value = 0.5 * alpha @ K[np.ix_(at, at)] @ alpha
        value += C * np.maximum(0.0, 1.0 - signs * svm.decision_function(K)).sum()
        best = min(best, (float(value), svm, chosen), key=lambda one: one[0])  # type: ignore[assignment]
    return best


@pytest.mark.sampled(7)
@each
@pytest.mark.parametrize("packed", [False, True])
def test_the_proven_best_is_that_of_enumeration_and_so_is_what_is_predicted(name: str, packed: bool) -> None:
    X, y = data()
    new = X[::-1][:20] if name == "additive-hik" else data(1, 20)[0]
    kernels = CASES[name][2]
    value, svm, chosen = enumerated(kernels(X, X, X), y)
    fitted = model_of(name, mipfs.FSPClassifier, X, gap=1e-7)
    container = sparse.csr_array if packed else np.asarray
    fitted.fit(container(X), y)
    assert fitted.result_.status.name == "OPTIMAL"
    assert fitted.result_.objective == pytest.approx(value, rel=1e-5)
    assert fitted.result_.bound <= value * (1 + 1e-9)
    assert len(fitted.atoms_) == len(chosen)
    expected = svm.decision_function(sum(kernels(new, X, X)[g] for g in chosen))
    np.testing.assert_allclose(fitted.decision_function(container(new)), expected, atol=3e-3)
    assert fitted.score(container(X), y) == pytest.approx(np.mean((svm.decision_function(
        sum(kernels(X, X, X)[g] for g in chosen)) > 0) == (y == 1)), abs=0.021)  # fmt: skip


@pytest.mark.sampled(7)
@each
def test_parameters_copies_and_pickles(name: str) -> None:
    X, y = data()
    for kind in (mipfs.FSPClassifier, mipfs.FGMClassifier):
        model = model_of(name, kind, X)
        assert clone(model).get_params()["atom_options"] == model.atom_options
        fitted = model.fit(X, y)
        again = pickle.loads(pickle.dumps(fitted))
        np.testing.assert_array_equal(again.decision_function(X), fitted.decision_function(X))
        np.testing.assert_array_equal(clone(model).fit(X, y).decision_function(X), fitted.decision_function(X))
        assert hasattr(fitted, "coef_") == (name not in ("additive-hik", "pairs"))


@pytest.mark.sampled(7)
@each
def test_more_than_two_classes_are_one_against_the_rest(name: str) -> None:
    X, y = data(2)
    y = y + 2 * (X[:, 3] > 1.2)
    y[y == 3] = 2
    fitted = model_of(name, mipfs.FSPClassifier, X).fit(X, y)
    values = fitted.decision_function(X)
    assert values.shape == (50, 3)
    for k in range(3):
        alone = model_of(name, mipfs.FSPClassifier, X).fit(X, y == k)
        np.testing.assert_allclose(values[:, k], alone.decision_function(X), atol=1e-7)
    named = {name for one in fitted.result_ for name in one.selected}
    assert set(fitted.atoms_) == named


def test_a_tree_is_taken_as_it_was_made() -> None:
    X, y = data(3)
    made = tree_of(X)
    members = [np.asarray(made.columns([g]).ids).tolist() for g in range(made.count)]
    scales = [made.columns([g]).scale for g in range(made.count)]
    kernels = [
        (X[:, ids] * scale) @ (X[:, ids] * scale).T for ids, scale in zip(members, scales, strict=True)
    ]  # fmt: skip
    value, _, _ = enumerated(kernels, y)
    fitted = mipfs.FSPClassifier(M, C=C, atoms=made, gap=1e-7).fit(X, y)
    assert fitted.result_.objective == pytest.approx(value, rel=1e-5)
    assert fitted.coef_.shape == (1, P)


def test_splines_and_their_contributions() -> None:
    X, y = data(4)
    fitted = mipfs.FSPClassifier(M, C=C, atoms="splines", atom_options={"knots": 4}, gap=1e-7).fit(X, y)
    made = atoms.make("splines", Instance.from_arrays(X, np.where(y == 1, 1.0, -1.0)), knots=4)
    kernels = [np.asarray(Z @ Z.T) for Z in (_dense(made.expand(np.array([j]))) for j in range(P))]
    value, svm, chosen = enumerated(kernels, y)
    assert fitted.result_.objective == pytest.approx(value, rel=1e-5)
    expected = svm.decision_function(sum(kernels[g] for g in chosen))
    np.testing.assert_allclose(fitted.decision_function(X), expected, atol=3e-3)
    parts = fitted.contributions(X)
    np.testing.assert_allclose(parts.sum(axis=1) + fitted.intercept_[0], fitted.decision_function(X), atol=1e-10)
    assert np.flatnonzero(np.abs(parts).max(axis=0)).tolist() == list(chosen)


def _dense(Z: Any) -> Array:
    return np.asarray(Z.toarray() if sparse.issparse(Z) else Z)


def test_the_older_names_are_the_same_estimators() -> None:
    X, y = data(5)
    pairs: list[tuple[Any, Any]] = [
        (mipfs.GroupFGMClassifier(GROUPS, M=2, scaling="norm"),
         mipfs.FGMClassifier(2, atoms="groups", atom_options={"groups": GROUPS, "scaling": "norm"})),
        (mipfs.AdditiveFGMClassifier("chi2", M=2, map_options={"steps": 2}),
         mipfs.FGMClassifier(2, atoms="additive-chi2", atom_options={"steps": 2})),
        (mipfs.PolynomialFGMClassifier(2, gamma=0.5, r=0.3),
         mipfs.FGMClassifier(2, atoms="pairs", atom_options={"gamma": 0.5, "r": 0.3})),
    ]  # fmt: skip
    for older, newer in pairs:
        older.fit(X, y)
        newer.fit(X, y)
        np.testing.assert_array_equal(older.decision_function(X), newer.decision_function(X))
        np.testing.assert_array_equal(older.support_, newer.support_)
        np.testing.assert_array_equal(older.atoms_, newer.atoms_)
        assert older.result_.bound == newer.result_.bound


def test_rows_costs_and_forced_atoms_are_about_atoms() -> None:
    X, y = data(6)
    groups = {"a": [0, 1], "b": [2, 3], "c": [4, 5]}
    given: dict[str, Any] = {"atoms": "groups", "atom_options": {"groups": groups}, "gap": 1e-7}
    assert mipfs.FSPClassifier(2, forced_in=["c"], **given).fit(X, y).atoms_.tolist()[-1] == "c"
    assert "a" not in mipfs.FSPClassifier(2, forced_out=["a"], **given).fit(X, y).atoms_
    dear = mipfs.FSPClassifier(None, cost={"a": 3.0, "b": 1.0, "c": 1.0}, budget=2.0, **given).fit(X, y)
    assert dear.atoms_.tolist() == ["b", "c"]
    assert mipfs.FSPClassifier(None, lam=1e6, **given).fit(X, y).atoms_.size == 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"atoms": "paris"}, "did you mean 'pairs'"),
        ({"atoms": 3}, "atoms = 3 must be a name"),
        ({"atoms": "splines", "atom_options": {"knot": 3}}, "did you mean 'knots'"),
        ({"atom_options": {"knots": 3}}, "for atoms that are given by their name"),
        ({"atoms": "groups"}, "no groups are given"),
        ({"atoms": "pairs", "forced_in": [0]}, "pairs|products|M as"),
    ],
)
def test_what_is_no_atoms_is_refused(given: dict[str, Any], message: str) -> None:
    X, y = data()
    with pytest.raises(ValueError, match=message):
        mipfs.FSPClassifier(2, **given).fit(X, y)


def test_atoms_whose_columns_are_the_callers_are_refused() -> None:
    X, y = data()

    class Squares(Made):
        names = tuple(f"s{j}" for j in range(P))

        def make(self, ids: Any) -> Array:
            return np.asarray(self.data.block(ids).dense() ** 2)

    given = Squares(Instance.from_arrays(X, np.resize([1.0, -1.0], len(X))))
    with pytest.raises(ValueError, match="atoms = Squares: its columns of new rows are the caller's"):
        mipfs.FSPClassifier(2, atoms=given).fit(X, y)


def test_functions_alone_have_contributions_and_another_fit_forgets_them() -> None:
    X, y = data()
    model = mipfs.FSPClassifier(2).fit(X, y)
    with pytest.raises(ValueError, match="contributions are of functions"):
        model.contributions(X)
    model.set_params(atoms="additive-hik").fit(X, y)
    assert not hasattr(model, "coef_")
    model.set_params(atoms=None).fit(X, y)
    assert model.coef_.shape == (1, P)


def test_a_subclass_with_fewer_parameters_has_the_others_by_default() -> None:
    class Mine(mipfs.FSPClassifier):
        def __init__(self, M: int = 1) -> None:
            super().__init__(M=M, C=0.3)

    X, y = data()
    assert Mine().get_params() == {"M": 1}
    np.testing.assert_array_equal(clone(Mine(2)).fit(X, y).coef_, mipfs.FSPClassifier(2, C=0.3).fit(X, y).coef_)
