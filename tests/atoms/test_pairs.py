"""The best products of features, found without their columns: against brute force over all of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import mipfs
from mipfs.atoms import pair_search, triple_search
from mipfs.atoms.monomials import Monomials
from mipfs.atoms.pair_search import PairSearch
from mipfs.atoms.pairs import Pairs, pairs
from mipfs.atoms.triple_search import TripleSearch
from mipfs.data.instance import Instance
from mipfs.errors import StoppedError, UsageError
from mipfs.problem import Problem
from tests.certificate.monomials import everything


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Blocks so small that every way through them is gone."""

    def cut(r: np.random.Generator) -> None:
        for module, name, most in (
            (pair_search, "LEVEL_FEATURES", 8), (pair_search, "FEATURES_PER_BLOCK", 9),
            (pair_search, "PARTNERS_PER_BLOCK", 9),
            (triple_search, "LEVEL_FEATURES", 4),
        ):  # fmt: skip
            monkeypatch.setattr(module, name, int(r.integers(1, most)))
        monkeypatch.setattr(pair_search, "PAIRS_AT_ONCE", 3)
        monkeypatch.setattr(pair_search, "PRODUCTS_PER_CALL", 5)

    return cut


def drawn(seed: int, largest: int) -> np.ndarray[Any, Any]:
    """Data of all densities and signs, with equal, constant and zero columns, whole numbers, and scales apart."""
    r = np.random.default_rng(seed)
    n, p = int(r.integers(1, 30)), int(r.integers(1, largest))
    X = r.normal(size=(n, p)) * (r.random((n, p)) < r.random()) * 10.0 ** (r.integers(-6, 6, p) * (seed % 8 == 6))
    X = np.abs(X) if seed % 3 == 0 else X
    X = np.round(X) if seed % 4 == 0 else X
    if seed % 5 == 0 and p > 2:
        X[:, 1], X[:, -1] = X[:, 0], seed % 2
    return np.asfortranarray(X)


@pytest.mark.slow
@pytest.mark.parametrize("degree", [2, 3])
def test_equals_brute_force(degree: int, few: Any) -> None:
    for seed in range(100 if degree == 2 else 30):
        r, X = np.random.default_rng([seed, 1]), drawn(seed, 25 if degree == 2 else 10)
        n, p = X.shape
        few(r)
        monomials = Monomials(p, degree, 0.9, (0.0, 0.7)[seed % 2])
        kind = PairSearch if degree == 2 else TripleSearch
        searches = [kind(X, monomials), kind(sparse.csc_array(X), monomials)]
        every = np.arange(monomials.count)
        columns = monomials.columns(lambda used, X=X: X[:, used], every)
        for turn in range(3):
            v = r.normal(size=n) if seed % 7 else np.round(r.normal(size=n))
            B, sizes = int(r.integers(1, 30)), searches[0].sizes(every, v)
            assert np.all(np.abs(sizes - np.abs(columns.T @ v)) <= searches[0].radius(v))
            least = 0.0 if turn < 2 else float(np.median(sizes))
            wanted = np.lexsort((every, -sizes))
            wanted = wanted[(sizes[wanted] > 0) & (sizes[wanted] >= least)][:B]
            for search in searches:  # the second and third time with what was best before
                ids, found = search.search(v, B, least)
                np.testing.assert_array_equal(ids, wanted)
                np.testing.assert_array_equal(found, sizes[wanted])


@pytest.mark.parametrize(("degree", "p", "r"), [(2, 30_000_000, 1.0), (2, 5, 0.0), (3, 300_000, 1.0), (3, 6, 0.0)])
def test_numbers_and_features_belong_together(degree: int, p: int, r: float) -> None:
    monomials = Monomials(p, degree, 1.0, r)
    ids = np.unique(np.random.default_rng(0).integers(0, monomials.count, 2000))
    members = monomials.members(np.concatenate([ids, [0, monomials.count - 1]]))
    np.testing.assert_array_equal(monomials.ids(members[:, ::-1])[:-2], ids)
    assert members.min() >= -1
    assert members.max() == p - 1
    assert np.all(np.diff(members, axis=1) >= 0)


@pytest.mark.parametrize("degree", [2, 3])
@pytest.mark.parametrize("r", [0.0, 0.4])
def test_the_monomials_are_those_of_the_kernel(degree: int, r: float) -> None:
    x, z = np.random.default_rng(1).normal(size=(2, 6))
    monomials = Monomials(6, degree, 1.3, r)
    one, other = (monomials.columns(lambda used, u=u: u[None, used], np.arange(monomials.count))[0] for u in (x, z))
    assert one @ other == pytest.approx((1.3 * x @ z + r) ** degree, rel=1e-12)


def test_names() -> None:
    data = Instance.from_arrays(np.ones((3, 3)), [1, -1, 1], feature_names=["area", "smoothness", "b"])
    atoms = Pairs(data)
    assert len(atoms.names) == atoms.count == 10
    assert sorted(atoms.names) == sorted(everything(atoms.document(np.arange(10))["made"], data)[0])
    assert [atoms.names.position(name) for name in atoms.names] == list(range(10))  # type: ignore[attr-defined]
    index = atoms.data.index
    assert index["smoothness × area"] == index["area × smoothness"]
    assert "area × area × b" not in index
    assert "c²" not in index
    assert "1" not in Pairs(data, r=0.0).data.index
    cubes = Pairs(data, degree=3)
    assert [cubes.names[int(g)] for g in cubes.data.columns_of(["b³", "b × area²", "1"])] == ["b³", "area² × b", "1"]
    assert cubes.parts(cubes.data.columns_of(["b × area²"])) == [["area", "area", "b"]]


def test_columns_are_floats_that_are_said() -> None:
    r = np.random.default_rng(0)
    X = r.normal(size=(20, 4))
    data = Instance.from_arrays(X, np.where(r.random(20) < 0.5, 1, -1))
    for degree in (2, 3):
        atoms = Pairs(data, 0.3, 2.0, degree=degree)
        names, _, columns = everything(atoms.document(np.array([0]))["made"], data)
        found = atoms.data.block(atoms.data.columns_of(names)).dense()
        np.testing.assert_allclose(found, columns, rtol=1e-14)


def test_what_has_no_products_is_refused() -> None:
    data = Instance.from_arrays(np.ones((2, 2)), [1, -1])
    for options, word in (
        ({"gamma": 0.0}, "gamma"), ({"gamma": math.nan}, "gamma"), ({"r": -1.0}, "r = -1"), ({"degree": 4}, "2 or 3"),
        ({"heredity": "both"}, "weak"), ({"heredity": "weak", "r": 0}, "r > 0"),
    ):  # fmt: skip
        with pytest.raises(UsageError, match=word):
            pairs(data, **options)
    for name in ("1", "a × b", "area²"):
        with pytest.raises(UsageError, match="rename"):
            Pairs(Instance.from_arrays(np.ones((2, 2)), [1, -1], feature_names=["b", name]))
    with pytest.raises(UsageError, match="centred"):
        Pairs(Instance.from_arrays(sparse.eye_array(4, format="csc"), [1, -1, 1, -1], scale="standard"))
    with pytest.raises(UsageError, match="scale the data"):
        Pairs(Instance.from_arrays(np.full((2, 2), 1e60), [1, -1]))
    with pytest.raises(UsageError, match="can be numbered"):
        Pairs(Instance.from_arrays(sparse.csc_array((2, 2**28)), [1, -1]))
    for given in ({"lam": 1.0}, {"forced_in": ("x1",)}, {}):
        with pytest.raises(UsageError, match="give M"):
            Problem(data, atoms=Pairs(data), **given)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="other data"):
        Problem(Instance.from_arrays(np.zeros((2, 2)), [1, -1]), atoms=Pairs(data), M=1)


def test_drivers_that_cannot_carry_them_say_who_can() -> None:
    data = Instance.from_arrays(np.random.default_rng(0).normal(size=(10, 3)), [1, -1] * 5)
    for driver in ("gbd", "conic", "two_layer", "monolithic"):
        with pytest.raises(UsageError, match="pairs; branch, kelley can"):
            mipfs.solve(Problem(data, atoms=Pairs(data), M=1, bias=False), driver)
    with pytest.raises(UsageError, match="pairs with heredity; branch can"):
        mipfs.solve(Problem(data, atoms=Pairs(data, heredity="weak"), M=1), "kelley")


def test_other_data_and_parameters() -> None:
    r = np.random.default_rng(0)
    data, other = (Instance.from_arrays(r.normal(size=(10, 3)), [1, -1] * 5) for _ in range(2))
    problem = Problem(data, atoms=Pairs(data, 0.5, heredity="strong"), M=2)
    atoms: Any = problem.replace(data=other, M=1).atoms
    assert (atoms.base, atoms.gamma, atoms.heredity) == (other, 0.5, "strong")
    assert atoms.stamp != problem.atoms.stamp == problem.replace(C=2.0).atoms.stamp
    assert problem.atoms.stamp != Pairs(data, 0.5).stamp
    with pytest.raises(UsageError, match="other features"):
        Pairs(data).on(Instance.from_arrays(np.ones((2, 4)), [1, -1]))


@pytest.mark.slow
def test_a_long_search_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair_search, "PRODUCTS_PER_CALL", 1)
    X = np.asfortranarray(np.random.default_rng(0).normal(size=(9, 12)))
    for stored in (X, sparse.csc_array(X)):
        with pytest.raises(StoppedError):
            PairSearch(stored, Monomials(12, 2, 1.0, 0.0)).search(np.ones(9), 3, must_stop=lambda: True)


def test_degree_three_is_refused_where_it_costs_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triple_search, "MOST_PRODUCTS", 1e3)
    X = np.asfortranarray(np.random.default_rng(0).normal(size=(30, 60)))
    for stored in (X, sparse.csc_array(X)):
        with pytest.raises(UsageError, match="degree 3 over 60 features takes up to"):
            TripleSearch(stored, Monomials(60, 3, 1.0, 0.0)).search(np.ones(30), 3)


@pytest.mark.slow
def test_a_million_million_of_them() -> None:
    """1.4 million columns of few entries: nothing is as long as all products are many."""
    r, p = np.random.default_rng(0), 1_420_000
    X = sparse.random_array((300, p), density=0.0003, rng=r, format="csc")
    X.data[:] = 1.0
    y = np.where(np.arange(300) % 2 == 0, 1.0, -1.0)
    both = np.flatnonzero(y > 0)[::2]
    X = sparse.csc_array(
        sparse.hstack([sparse.csc_array((np.ones(75), (both, np.zeros(75, int))), (300, 1))] * 2 + [X])
    )
    data = Instance.from_arrays(X, y)
    problem = Problem(data, atoms=Pairs(data, r=0.0), M=1, C=0.01, loss="squared-hinge", bias=False)
    assert problem.atoms.count > 1e12
    result = mipfs.solve(problem, "kelley")
    assert result.selected == ("x1 × x2",)
    report = mipfs.verify(result, data)
    assert report.accepted, report.reason
