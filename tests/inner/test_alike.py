"""Samples that are alike: kinds by NumPy's sort, weights and dual values as of all samples."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import mipfs
from mipfs.data.blocked import split_in_memory
from mipfs.data.instance import Instance
from mipfs.data.matrix import equal_rows
from mipfs.inner.alike import group_alike_samples
from mipfs.inner.subproblem import Subproblem


def drawn(seed: int, n: int, p: int = 12) -> tuple[sparse.csc_array, np.ndarray]:
    r = np.random.default_rng(seed)
    X = sparse.csc_array(np.where(r.random((n, p)) < 0.15, r.integers(1, 3, (n, p)), 0).astype(float))
    y = np.where(r.random(n) < 0.3 + 0.4 * (np.asarray(X[:, [0]].toarray()).ravel() > 0), 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return X, y


@pytest.mark.parametrize("seed", range(8))
def test_equal_rows_are_those_of_a_sort(seed: int) -> None:
    X, y = drawn(seed, 1 + 40 * seed if seed else 2)
    _, expected = np.unique(np.column_stack([X.toarray(), y]), axis=0, return_inverse=True)
    first, kind = equal_rows(X, y)
    assert first.size == expected.max() + 1
    np.testing.assert_array_equal(np.unique(np.column_stack([kind, expected.ravel()]), axis=0)[:, 0], np.unique(kind))
    np.testing.assert_array_equal(kind[first], np.arange(first.size))
    np.testing.assert_array_equal(X.toarray()[first[kind]], X.toarray())
    np.testing.assert_array_equal(y[first[kind]], y)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", ["squared-hinge", "logistic", "hinge"])
def test_the_value_is_that_of_all_samples(loss: str, weighted: bool) -> None:
    X, y = drawn(3, 900)
    weight = np.random.default_rng(1).integers(1, 4, y.size).astype(float) if weighted else None
    data = Instance.from_arrays(split_in_memory(X, 5), y, sample_weight=weight)
    problem = mipfs.Problem(data, loss=loss, M=3, C=0.5)
    found = group_alike_samples(problem, np.array([0, 3, 5, 7]))
    assert found is not None
    assert not found.take(np.arange(12)) or found.first.size <= 450
    found = group_alike_samples(problem, np.array([3, 7]))
    assert found is not None
    assert found.take(np.array([0, 7, 5]))
    np.testing.assert_array_equal(found.columns, [0, 3, 5, 7])
    np.testing.assert_array_equal(found.rows.toarray()[found.kind], X[:, [0, 3, 5, 7]].toarray())
    small = mipfs.Problem(found.instance(data.sample_weight), loss=loss, M=3, C=0.5)
    whole = mipfs.Problem(Instance.from_arrays(X[:, [0, 3, 5, 7]], y, sample_weight=weight), loss=loss, M=3, C=0.5)
    one, all_of_them = Subproblem(small).solve(np.ones(4), 1e-9), Subproblem(whole).solve(np.ones(4), 1e-9)
    assert one.value == pytest.approx(all_of_them.value, rel=1e-8)
    alpha = found.spread(one.svm.alpha, problem.c_i)
    assert alpha.sum() == pytest.approx(one.svm.alpha.sum())
    np.testing.assert_allclose(
        X[:, [0, 3, 5, 7]].T @ (alpha * y), found.rows.T @ (one.svm.alpha * small.data.y), atol=1e-9
    )


def test_dense_and_centred_data_is_left_as_it_is() -> None:
    X, y = drawn(5, 900)
    assert group_alike_samples(mipfs.Problem(Instance.from_arrays(X.toarray(), y), M=2), np.arange(3)) is None
    assert group_alike_samples(mipfs.Problem(Instance.from_arrays(X, y, scale="standard"), M=2), np.arange(3)) is None


@pytest.mark.sampled(2)
@pytest.mark.parametrize("bias", [False, True])
def test_kelley_finds_what_it_found(bias: bool) -> None:
    """Merged or not, the two sides of the relaxation meet at one value."""
    from mipfs.inner import alike as room

    X, y = drawn(6, 1500, 40)
    data = Instance.from_arrays(X, y)
    values = []
    for above in (500, 10**9):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(room, "MERGE_ABOVE", above)
            problem = mipfs.Problem(data, loss="squared-hinge", bias=bias, M=4, C=0.1)
            result = mipfs.solve(problem, "kelley", gap=1e-6)
            assert mipfs.verify(result, data).accepted
            values.append((result.relaxed["upper"], result.relaxed["lower"], result.objective))
    np.testing.assert_allclose(values[0], values[1], rtol=2e-6)
