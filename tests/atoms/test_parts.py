"""Columns in blocks: the same selections, bounds and traces as in memory, and every best column found."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import mipfs
from mipfs.atoms import parts
from mipfs.atoms.features import Features
from mipfs.atoms.top import TopFeatures, scores_of
from mipfs.data import matrix
from mipfs.data.blocked import split_in_memory, split_ranges
from mipfs.data.instance import Instance


def drawn(seed: int, n: int = 100, p: int = 90) -> tuple[Any, Any]:
    r = np.random.default_rng(seed)
    X = sparse.random_array((n, p), density=0.1, rng=r).toarray()
    X = np.where(X != 0, np.round(r.standard_normal((n, p)), 2), 0.0)
    X[:, :3], X[:, 4], X[:, 5] = 1.0, 0.0, X[:, 6]
    X[:, 7] *= 1e-6
    y = np.where(X[:, [20, 30, 50]].sum(axis=1) + 0.3 * r.standard_normal(n) > 0, 1.0, -1.0)
    return sparse.csc_array(X), y


def without_times(found: Any) -> Any:
    if isinstance(found, dict):
        return {name: without_times(value) for name, value in found.items() if name != "seconds"}
    return [without_times(value) for value in found] if isinstance(found, list) else found


def solved(data: Instance, **changes: Any) -> Any:
    problem = mipfs.Problem(data, **{"loss": "squared-hinge", "bias": False, "M": 4} | changes)
    return mipfs.solve(problem, "kelley", T=3)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("scale", ["none", "standard", "unit"])
@pytest.mark.parametrize("dense", [False, True])
def test_the_same_bytes_as_in_memory(dense: bool, scale: Any) -> None:
    X, y = drawn(1)
    X = X.toarray() if dense else X
    one = Instance.from_arrays(X, y, scale=scale)
    first = solved(one)
    for width in (1, 64):
        other = Instance.from_arrays(split_in_memory(X, width), y, scale=scale)
        assert (other.sha256, other.is_sparse) == (one.sha256, one.is_sparse)
        second = solved(other)
        assert without_times(json.loads(first.to_json())) == without_times(json.loads(second.to_json()))
        for data in (one, other):
            report = mipfs.verify(second, data)
            assert report.accepted, report.reason


@pytest.mark.sampled(2)
@pytest.mark.parametrize("changes", [{"bias": True}, {"loss": "hinge", "bias": True}, {"loss": "logistic"}])
def test_other_losses(changes: dict[str, Any]) -> None:
    X, y = drawn(2)
    one, other = Instance.from_arrays(X, y), Instance.from_arrays(split_in_memory(X, 40), y)
    first, second = solved(one, **changes), solved(other, **changes)
    assert without_times(json.loads(first.to_json())) == without_times(json.loads(second.to_json()))
    assert mipfs.verify(second, other).accepted


@pytest.mark.parametrize("scaling", ["none", "norm"])
@pytest.mark.parametrize("scale", ["none", "standard", "unit"])
def test_every_best_column_is_found(monkeypatch: pytest.MonkeyPatch, scale: Any, scaling: Any) -> None:
    monkeypatch.setattr(parts, "KEPT_COLUMNS", 40)
    monkeypatch.setattr(parts, "LEVEL_COLUMNS", 5)
    X, y = drawn(3, p=400)
    features = Features(Instance.from_arrays(split_in_memory(X, 90), y, scale=scale), scaling)
    whole = Features(Instance.from_arrays(X, y, scale=scale), features.scale if scaling == "norm" else "none")
    top, same = TopFeatures(features), TopFeatures(whole)
    for seed in range(6):
        v = np.random.default_rng(seed).standard_normal(y.size) * 10.0**seed
        v[seed:] *= 0.01
        for B in (1, 9, 70, 1000):
            ids, sizes = top.best(v, B)
            expected, values = same.best(v, B)
            np.testing.assert_array_equal(ids, expected)
            if scale == "standard":  # of the values as they lie there
                np.testing.assert_allclose(sizes, values, rtol=0.0, atol=top.radius(v))
            else:
                np.testing.assert_array_equal(sizes, values)
        scored = [scores_of(features, k, 5) for k in range(len(features.data.X.parts))]
        for one in scored:  # the bound on the rest holds
            found = one.best(v, 3)
            inside = np.setdiff1d(np.arange(one.part.start, one.part.stop), found.ids)
            key = features.scores(v)[inside] if not one.screens else np.sqrt(features.scores(v)[inside])
            assert key.max(initial=0.0) <= found.rest * (1 + 1e-12) + 1e-300
            assert parts.merge_best([found, parts.NOTHING], 2).rest >= found.keys[2]


def test_columns_of_tiny_numbers_are_not_taken_for_nothing() -> None:
    """Σ|x| below the least float32 bounded ω by zero, and the best column was not looked at."""
    X, y = drawn(4)
    for data in (Instance.from_arrays(X * 1e-60, y), Instance.from_arrays(split_in_memory(X * 1e-60, 33), y)):
        _, sizes = TopFeatures(Features(data)).best(y, 5)
        np.testing.assert_allclose(sizes, np.sort(np.abs(X.T @ y))[::-1][:5] * 1e-60, rtol=1e-12)


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("kind", ["standard", "unit"])
def test_scales_are_those_of_memory(kind: str, dense: bool) -> None:
    X, _ = drawn(5)
    X = X.toarray(order="F") if dense else X
    values, center, shift, scale = matrix.scale_columns(X, kind)
    for width in (1, 17, 999):
        found = split_in_memory(X, width).scaled(kind)
        for one, other in zip(found[1:], (center, shift, scale), strict=True):
            np.testing.assert_array_equal(one, other)
        whole = found[0][:, :]
        np.testing.assert_array_equal(whole if dense else whole.toarray(), values if dense else values.toarray())


def test_products_and_columns() -> None:
    X, _ = drawn(6)
    blocks, r = split_in_memory(X, 13), np.random.default_rng(0)
    v, w = r.standard_normal((X.shape[0], 3)), r.standard_normal(X.shape[1])
    np.testing.assert_allclose(blocks.T @ v, X.T @ v, atol=1e-12)
    np.testing.assert_allclose(v.T @ blocks, v.T @ X, atol=1e-12)
    np.testing.assert_allclose(blocks @ w, X @ w, atol=1e-12)
    np.testing.assert_allclose(blocks.mean(axis=0), X.mean(axis=0), atol=1e-14)
    np.testing.assert_allclose(blocks.squares(), X.power(2).sum(axis=0), atol=1e-12)
    ids = np.array([70, 3, 3, 0, -1])
    for _ in range(2):  # the second time they are at hand
        np.testing.assert_array_equal(blocks[:, ids].toarray(), X.toarray()[:, ids])
    assert blocks[:, np.empty(0, dtype=np.int64)].shape == (X.shape[0], 0)


@pytest.mark.slow
def test_float32_values_are_those_exactly_and_sums_are_double() -> None:
    X, y = drawn(7)
    narrow = sparse.csc_array(X).astype(np.float32)
    one = Instance.from_arrays(narrow.astype(float), y)
    other = Instance.from_arrays(split_in_memory(narrow, 50), y)
    assert without_times(json.loads(solved(one).to_json())) == without_times(json.loads(solved(other).to_json()))


def test_rows_are_refused_kindly() -> None:
    X, y = drawn(8)
    with pytest.raises(mipfs.MipfsError, match="read by columns"):
        Instance.from_arrays(split_in_memory(X, 50), y).part(np.arange(5))


def test_split_covers_all_columns() -> None:
    r = np.random.default_rng(0)
    for _ in range(50):
        counts = r.integers(0, 9, r.integers(1, 40))
        ranges = split_ranges(counts, int(r.integers(1, 30)))
        assert [ranges[0][0], ranges[-1][1]] == [0, counts.size]
        assert all(a[1] == b[0] for a, b in itertools.pairwise(ranges))
        assert all(stop > start for start, stop in ranges)
