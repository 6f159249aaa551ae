"""The MILES embedding against a plain double loop, whatever its blocks, and what it holds in memory."""

from __future__ import annotations

import itertools
import math
import tracemalloc
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import sparse

from mipfs.errors import UsageError
from mipfs.lab.mil import Bags, Miles, mean_distance, miles

Array = npt.NDArray[np.float64]


def double_loop(X: Array, bags: Any, concepts: Array, width: float, scale: Array) -> Array:
    """(26) and (27) as they stand."""
    names = sorted(set(bags))
    out = np.zeros((len(names), len(concepts)))
    for b, k in itertools.product(range(len(names)), range(len(concepts))):
        rows = [x for x, name in zip(X, bags, strict=True) if name == names[b]]
        out[b, k] = max(math.exp(-math.fsum(((x - concepts[k]) / scale) ** 2) / width**2) for x in rows)
    return out


def draw(seed: int, n: int, K: int, p: int, share: float = 1.0) -> tuple[Array, list[int], Array]:
    r = np.random.default_rng(seed)
    X, Z = r.standard_normal((n, p)), r.standard_normal((K, p))
    X, Z = X * (r.random((n, p)) < share), Z * (r.random((K, p)) < share)
    return X, r.integers(0, max(1, n // 4) + 1, n).tolist(), Z


@pytest.mark.slow
@pytest.mark.parametrize("block", [1, 7, 64, 1 << 21])
@pytest.mark.parametrize("wide", [1, 3, 1024])
def test_equals_the_double_loop_for_every_block(block: int, wide: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(miles, "NUMBERS_PER_BLOCK", block)
    monkeypatch.setattr(miles, "CONCEPTS_PER_BLOCK", wide)
    for seed, (n, K, p) in enumerate([(1, 1, 1), (9, 4, 2), (30, 11, 5)]):
        X, bags, Z = draw(seed, n, K, p, 0.6)
        scale = np.random.default_rng(seed).random(p) + 0.5
        expected = double_loop(X, bags, Z, 1.7, scale)
        stores = [np.asarray, np.asfortranarray, sparse.csr_array, sparse.csc_matrix, sparse.coo_array]
        for store, kept in itertools.product(stores, [np.asarray, sparse.csc_array]):
            found = Miles(kept(Z), 1.7, scale)(store(X), Bags.of(bags, n))
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("block", [1, 25, 1 << 21])
def test_nearest_keeps_the_largest_similarities_of_a_bag(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(miles, "NUMBERS_PER_BLOCK", block)
    X, bags, Z = draw(5, 40, 12, 3)
    full = double_loop(X, bags, Z, 1.3, np.ones(3))
    for k in (1, 3, 11):
        found = Miles(Z, 1.3, nearest=k)(X, Bags.of(bags, 40))
        assert sparse.issparse(found)
        expected = np.zeros_like(full)
        for b in range(len(full)):
            for j in sorted(range(12), key=lambda j, b=b: (-full[b, j], j))[:k]:
                expected[b, j] = full[b, j]
        np.testing.assert_allclose(found.toarray(), expected, rtol=1e-12)
    for k in (12, 100):
        np.testing.assert_allclose(Miles(Z, 1.3, nearest=k)(X, Bags.of(bags, 40)), full, rtol=1e-12)


def test_of_equally_near_concepts_the_first_are_kept() -> None:
    Z = np.array([[1.0], [-1.0], [1.0], [0.5], [-0.5]])  # their mean is no dyadic number
    for store in (np.asarray, sparse.csr_array):
        found = Miles(store(Z), 1.0, nearest=3)(np.zeros((1, 1)), Bags.of(None, 1)).toarray()[0]
        assert np.flatnonzero(found).tolist() == [0, 3, 4]


def test_a_far_origin_costs_no_accuracy() -> None:
    X, bags, Z = draw(8, 25, 9, 4)
    shifted = (np.round(X * 2**10) / 2**10 + 2.0**30, np.round(Z * 2**10) / 2**10 + 2.0**30)
    expected = double_loop(shifted[0], bags, shifted[1], 0.5, np.ones(4))
    np.testing.assert_allclose(Miles(shifted[1], 0.5)(shifted[0], Bags.of(bags, 25)), expected, rtol=1e-5)
    near = double_loop(X + 1e4, bags, Z + 1e4, 0.5, np.ones(4))
    np.testing.assert_allclose(Miles(Z + 1e4, 0.5)(X + 1e4, Bags.of(bags, 25)), near, rtol=1e-11)


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
def test_the_width_is_the_root_mean_square_of_all_distances(store: Any) -> None:
    X, _, _ = draw(2, 17, 1, 6, 0.5)
    scale = np.linspace(0.5, 2.0, 6)
    squares = [math.fsum(((a - b) / scale) ** 2) for a, b in itertools.product(X, X)]
    assert mean_distance(store(X), scale) == pytest.approx(math.sqrt(math.fsum(squares) / 17**2), rel=1e-12)
    with pytest.raises(UsageError, match=r"all rows are the same, .* give width"):
        mean_distance(store(np.full((3, 2), 0.1)))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", ["dense", "sparse", "nearest"])
def test_beside_the_result_a_few_blocks_are_held(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(miles, "NUMBERS_PER_BLOCK", 1 << 16)  # 0.5 MiB
    n, K, p = 5_000, 3_000, 4
    X, bags, Z = draw(1, n, K, p)
    X, Z = (sparse.csr_array(X), sparse.csr_array(Z)) if kind == "sparse" else (X, Z)
    grouped = Bags.of(np.asarray(bags) % 40, n)
    embedding = Miles(Z, 1.0, nearest=5 if kind == "nearest" else None)
    embedding(X[:50], Bags.of(None, 50))
    tracemalloc.start()
    found = embedding(X, grouped)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.shape == (40, K)
    # all distances at once would take 120 MB, the dense result takes 0.96 MB
    assert peak < 8e6


def test_far_bags_are_not_similar_to_anything() -> None:
    found = Miles(np.zeros((2, 1)), 1e-160)(np.array([[1e3], [0.0]]), Bags.of(None, 2))
    assert found.tolist() == [[0.0, 0.0], [1.0, 1.0]]
    assert Miles(np.zeros((0, 1)), 1.0)(np.ones((2, 1)), Bags.of(None, 2)).shape == (2, 0)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"width": 0.0}, "width = 0.0 must be a positive number"),
        ({"width": "wide"}, "width = 'wide' must be"),
        ({"width": np.inf}, "width = inf must be"),
        ({"width": True}, "width = True must be"),
        ({"width": 1.0, "nearest": 0}, "nearest = 0 must be an integer >= 1, or None"),
        ({"width": 1.0, "nearest": 2.5}, "nearest = 2.5 must be"),
    ],
)
def test_bad_parameters(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Miles(np.ones((3, 2)), **given)


def test_other_columns_than_the_concepts_have() -> None:
    with pytest.raises(UsageError, match=r"X has shape \(3, 1\); the concepts need \(n, 2\)"):
        Miles(np.ones((3, 2)), 1.0)(np.ones((3, 1)), Bags.of(None, 3))
