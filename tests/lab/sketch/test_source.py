"""The singular vectors that columns are chosen by: against NumPy, sparse as dense, and what does not fit."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from mipfs.data.instance import Instance
from mipfs.errors import DataError
from mipfs.lab.sketch import select, source
from mipfs.lab.sketch.source import Source
from tests import sketch_oracles as oracle
from tests.sketch_cases import matrix


def instance(X: object, scale: str = "none") -> Instance:
    """A matrix without labels."""
    return Instance.from_arrays(X, np.full(X.shape[0], np.nan), scale=scale, training=False)


@pytest.mark.parametrize("seed", range(30))
def test_v_spans_the_rows_and_is_orthonormal(seed: int) -> None:
    X = matrix(seed)
    found, V = Source(instance(X)), oracle.right_vectors(X / np.abs(X).max())
    basis = found.basis
    assert basis.V.shape == V.shape
    assert basis.left_out == 0.0
    np.testing.assert_allclose(basis.V.T @ basis.V, np.eye(basis.rank), atol=1e-12)
    np.testing.assert_allclose(basis.V @ basis.V.T, V @ V.T, atol=1e-7)
    assert not np.any(basis.V[~np.any(X, axis=0)])
    scaled = X / np.abs(X).max()
    np.testing.assert_allclose(
        found.norms / max(found.norms.max(), 1e-300),
        np.linalg.norm(scaled, axis=0) / np.linalg.norm(scaled, axis=0).max(),
        rtol=1e-12,
    )


@pytest.mark.parametrize("scale", ["none", "standard", "unit"])
@pytest.mark.parametrize("some", [False, True])
def test_sparse_is_dense(scale: str, some: bool) -> None:
    r = np.random.default_rng(2)
    X = np.where(r.random((9, 30)) < 0.3, r.standard_normal((9, 30)), 0.0)
    rows = np.array([0, 2, 3, 7]) if some else None
    ours, dense = (Source(instance(Z, scale), rows) for Z in (sparse.csr_array(X), X))
    assert ours.is_sparse
    np.testing.assert_allclose(ours.norms, np.ldexp(dense.norms, dense.exponent - ours.exponent), atol=1e-12)
    assert ours.basis.rank == dense.basis.rank
    np.testing.assert_allclose(ours.basis.V @ ours.basis.V.T, dense.basis.V @ dense.basis.V.T, atol=1e-10)
    G = r.standard_normal((3, ours.shape[0]))
    np.testing.assert_allclose(ours.project(G), np.ldexp(dense.project(G), dense.exponent - ours.exponent), atol=1e-12)


@pytest.mark.parametrize("scale", ["none", "standard"])
def test_leading_directions_of_a_sparse_matrix_by_arpack(scale: str) -> None:
    r = np.random.default_rng(4)
    X = np.where(r.random((60, 90)) < 0.2, r.standard_normal((60, 90)), 0.0) + 5.0 * (r.random((60, 1)) < 0.3)
    X = np.where(r.random((60, 90)) < 0.5, X, 0.0)
    found, dense = Source(instance(sparse.csc_array(X), scale), rank=4), Source(instance(X, scale), rank=4)
    assert 8 * 4 < 60, "otherwise it is done densely"
    V, W = found.basis.V, dense.basis.V
    np.testing.assert_allclose(V @ V.T, W @ W.T, atol=1e-8)
    np.testing.assert_allclose(V.T @ V, np.eye(4), atol=1e-12)
    assert found.basis.left_out == pytest.approx(dense.basis.left_out, abs=1e-9)
    assert 0.1 < found.basis.left_out < 1.0
    again = Source(instance(sparse.csc_array(X), scale), rank=4)
    np.testing.assert_array_equal(again.basis.V, V)


def test_arpack_on_a_matrix_of_lower_rank_leaves_nothing_out() -> None:
    X = sparse.csr_array(np.kron(np.eye(3), np.ones((20, 30))))
    basis = Source(instance(X), rank=5).basis
    assert basis.rank == 3
    assert basis.left_out == 0.0


def test_columns_of_small_scale_keep_their_direction_and_tiny_ones_are_zero() -> None:
    """In LAPACK's V the row of a column of 1e-13 is noise to three digits; below the rank threshold it is left out."""
    r = np.random.default_rng(0)
    X = r.standard_normal((4, 7))
    X[:, 5], X[:, 6] = 1e-13 * r.standard_normal(4), 1e-20 * r.standard_normal(4)
    V = Source(instance(X)).basis.V
    exact = np.linalg.solve(X @ X.T, X[:, 5])  # v_5·v_5 = x'(XX')⁻¹x, as the rank is 4
    assert V[5] @ V[5] == pytest.approx(X[:, 5] @ exact, rel=1e-9)
    assert not np.any(V[6])
    found = select(instance(X), "bss", 40)
    assert 5 in found.ids
    assert 6 not in found.ids
    # Rescaled it is of the size of the others, and the space is kept as promised: the squared radius shows it.
    assert found.guarantee.radius is not None
    assert found.guarantee.promised is not None
    assert found.guarantee.promised.low <= found.guarantee.radius.high
    assert found.guarantee.radius.low <= found.guarantee.promised.high
    assert not found.guarantee.warnings[1:]


def test_a_tiny_column_does_not_bring_back_a_direction_that_was_left_out() -> None:
    X = np.array([[2.0, 2.0, 2e-30], [1.0, 1.0, 1e-30], [3.0, 3.0, 4e-30], [-3.0, -3.0, 0.0]])
    found = select(instance(X), "bss", 5)
    assert found.ids.tolist() == [0, 1]
    assert found.guarantee.rank == 1


def test_nothing_to_choose_by() -> None:
    with pytest.raises(DataError, match="every value of the matrix is zero"):
        select(instance(np.zeros((3, 4))), "uniform", 2)
    with pytest.raises(DataError, match="every value of the matrix is zero"):
        select(instance(sparse.csr_array((3, 4))), "bss", 2)
    X = sparse.csr_array(np.array([[1.0, 2.0], [0.0, 2.0]]))
    data = instance(X, "standard")  # row means of the columns: half of one row each
    assert Source(data).basis.rank >= 1


def test_what_does_not_fit_is_refused_with_its_memory_and_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    X = sparse.random_array((100, 3000), density=0.01, rng=np.random.default_rng(1), format="csr")
    monkeypatch.setattr(source, "memory", lambda: 4_000_000)
    for method in ("bss", "leverage", "rrqr"):
        with pytest.raises(DataError, match=r"100 rows of 3000 columns: its .* would take .* GB of memory") as caught:
            select(instance(X), method, 500)
        assert "approx-bss" in str(caught.value)
    found = select(instance(X), "bss", 40, rank=10)  # by products with the sparse matrix alone
    assert found.guarantee.rank == 10
    assert not found.guarantee.is_whole
    found = select(instance(X), "approx-bss", 200, projections=50)
    assert found.guarantee.eigenvalues is None
    assert found.guarantee.promised is None
    assert any("would take" in warning for warning in found.guarantee.warnings)
    assert found.guarantee.radius is not None
    monkeypatch.undo()
    monkeypatch.setattr(source, "MOST_SECONDS", 1e-3)
    with pytest.raises(DataError, match=r"its singular vectors would take about 0\.0 hours; choose by approx-bss"):
        select(instance(X), "bss", 500)
