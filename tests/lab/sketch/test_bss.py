"""Single-set sparsification against dense linear algebra: potentials, picks, weights and the sharp bound."""

from __future__ import annotations

import re

import numpy as np
import pytest

from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.lab.sketch import bss, select
from mipfs.lab.sketch.source import column_norms, right_vectors
from tests import sketch_oracles as oracle
from tests.sketch_cases import matrix, picks


def instance(X: np.ndarray) -> Instance:
    """A matrix without labels."""
    return Instance.from_arrays(X, np.full(X.shape[0], np.nan), training=False)


@pytest.mark.parametrize("seed", range(12))
def test_the_potentials_are_those_of_dense_linear_algebra_at_every_step(seed: int) -> None:
    r = np.random.default_rng(seed)
    p, rank = int(r.integers(8, 30)), int(r.integers(1, 8))
    V = np.linalg.qr(r.standard_normal((p, rank)))[0]
    count = rank + 1 + int(r.integers(0, 3 * rank))
    state, A = bss.Barriers(rank, count), np.zeros((rank, rank))
    for step in range(count):
        lower, upper = oracle.potentials(V, A, state.low, state.high, state.rise)
        np.testing.assert_allclose(np.einsum("ij,jk,ik->i", V, state.lower, V), lower, rtol=1e-8, atol=1e-12)
        np.testing.assert_allclose(np.einsum("ij,jk,ik->i", V, state.upper, V), upper, rtol=1e-8, atol=1e-12)
        values = np.linalg.eigvalsh(A)
        assert state.phi_low == pytest.approx(np.sum(1.0 / (values - state.low)), rel=1e-9)
        assert state.phi_high == pytest.approx(np.sum(1.0 / (state.high - values)), rel=1e-9)
        j = int(np.argmax(lower - upper))
        t = state.step(V[j])
        assert t == pytest.approx(2.0 / (lower[j] + upper[j]), rel=1e-8)
        A += t * np.outer(V[j], V[j])
        if step < count - 1:
            state.advance()
    assert state.low < np.linalg.eigvalsh(A)[0]
    assert np.linalg.eigvalsh(A)[-1] < state.high


@pytest.mark.parametrize("seed", range(40))
def test_the_picks_are_those_of_the_formulas(seed: int) -> None:
    X = matrix(seed)
    norms = column_norms(X / np.abs(X).max())
    V = right_vectors(X / np.abs(X).max(), norms, None).V
    r = picks(seed, V.shape[1])
    order, weight = bss.sparsify(V, norms, r)
    first = bss.candidate_order(V, norms)
    expected, weights = oracle.bss(V, first, r)
    if order.tolist() != expected:  # only where the two sides of a test are equal up to round-off
        k = next(k for k, (a, b) in enumerate(zip(order, expected, strict=True)) if a != b)
        assert tied(V, r, expected[:k], int(order[k]), expected[k])
        return
    np.testing.assert_allclose(np.bincount(order, weight, X.shape[1]), weights, rtol=1e-7)


def tied(V: np.ndarray, r: int, before: list[int], ours: int, theirs: int) -> bool:
    """Whether one of two picks is a candidate by round-off only."""
    rank = V.shape[1]
    q = np.sqrt(rank / r)
    rise, A = (1.0 + q) / (1.0 - q), np.zeros((rank, rank))
    for tau, j in enumerate(before):
        root = np.sqrt(r * rank)
        lower, upper = oracle.potentials(V, A, tau - root, rise * (tau + root), rise)
        A += 2.0 / (lower[j] + upper[j]) * np.outer(V[j], V[j])
    tau = len(before)
    lower, upper = oracle.potentials(V, A, tau - root, rise * (tau + root), rise)
    off = np.abs(upper - lower)[[ours, theirs]] / upper[[ours, theirs]]
    return bool(off.min() < 1e-9)


@pytest.mark.slow
def test_the_sharp_bound_holds_on_200_matrices() -> None:
    """‖I − V'DD'V‖ ≤ 2q + q², V by NumPy: zero rows, repeated picks, r one above the rank among them."""
    repeated = just_above = with_zeros = 0
    for seed in range(200):
        X = matrix(seed)
        rank = oracle.right_vectors(X / np.abs(X).max()).shape[1]
        r = picks(seed, rank)
        found = select(instance(X), "bss", r)
        q = np.sqrt(rank / r)
        weight = found.rescaling**2
        epsilon = oracle.epsilon(X / np.abs(X).max(), found.ids, weight)
        assert epsilon <= (2.0 * q + q * q) * (1.0 + 1e-6), (seed, r)
        assert found.guarantee.promised is not None
        assert found.guarantee.promised.epsilon == pytest.approx(2.0 * q + q * q)
        assert found.guarantee.rank == rank
        assert found.guarantee.epsilon == pytest.approx(epsilon, abs=1e-6)
        assert found.ids.size <= r == found.order.size == found.repeats.sum()
        zero = ~np.any(X, axis=0)
        assert not np.any(zero[found.ids])
        repeated, just_above = repeated + bool(np.any(found.repeats > 1)), just_above + (r == rank + 1)
        with_zeros += bool(np.any(zero))
    assert min(repeated, just_above, with_zeros) > 15


def test_the_largest_column_is_taken_first_and_the_first_of_equals() -> None:
    X = np.diag([1.0, 3.0, 3.0, 2.0])
    found = select(instance(X), "bss", 5)
    assert found.order.tolist()[:3] == [1, 2, 3]
    assert select(instance(X), "bss", 5).order.tolist() == found.order.tolist()
    assert found.repeats.sum() == 5
    V = np.array([[0.1, 0.2], [0.5, 0.0], [0.0, 0.5], [0.3, 0.3], [0.0, 0.0]])
    norms = np.array([2.0, 2.0 - 4e-16, 2.0 + 4e-16, 7.0, 2.0])
    assert bss.candidate_order(V, norms).tolist() == [3, 1, 2, 0, 4], "by size, then ‖v‖, then position"


def test_all_columns_are_taken_again_when_there_are_fewer_than_picks() -> None:
    X = np.random.default_rng(0).standard_normal((3, 4))
    found = select(instance(X), "bss", 50)
    assert found.ids.tolist() == [0, 1, 2, 3]
    assert found.repeats.sum() == 50
    assert found.repeats.min() > 1


def test_what_is_computed_where_no_row_passes() -> None:
    V = np.linalg.qr(np.random.default_rng(3).standard_normal((9, 2)))[0]
    queue, test = np.arange(9), -np.eye(2)
    assert bss.first_passing(V, queue, test) is None
    assert bss.best(V, queue, test) == int(np.argmin(np.einsum("ij,ij->i", V, V)))
    assert bss.first_passing(V, queue[::-1], np.eye(2)) == 0


def test_blocks_of_rows_do_not_change_the_picks(monkeypatch: pytest.MonkeyPatch) -> None:
    r = np.random.default_rng(5)
    V = np.linalg.qr(r.standard_normal((3000, 6)))[0]
    norms = -np.einsum("ij,ij->i", V, V)  # the least likely first: many rows are looked at
    whole = bss.sparsify(V, norms, 15)[0].tolist()
    monkeypatch.setattr(bss, "FIRST_ROWS", 2)
    monkeypatch.setattr(bss, "MOST_ENTRIES", 12)
    assert bss.sparsify(V, norms, 15)[0].tolist() == whole
    assert whole == oracle.bss(V, bss.candidate_order(V, norms), 15)[0]


@pytest.mark.parametrize("r", [1, 5])
def test_too_few_picks_are_refused(r: int) -> None:
    X = np.random.default_rng(1).standard_normal((5, 9))
    message = f"r = {r} must be above 5, the rank of the matrix; ask for r = 20, or for fewer directions by rank"
    with pytest.raises(UsageError, match=re.escape(message)):
        select(instance(X), "bss", r)


def test_one_above_a_rank_of_120_keeps_every_eigenvalue_apart_from_zero() -> None:
    V = np.linalg.qr(np.random.default_rng(2).standard_normal((600, 120)))[0]
    order, weight = bss.sparsify(V, np.linalg.norm(V, axis=1), 121)
    rows = V[order] * np.sqrt(weight)[:, None]
    values, promised = np.linalg.eigvalsh(rows.T @ rows), bss.promise_eigenvalues(120, 121)
    assert promised.low * (1 - 1e-6) <= values[0]
    assert values[-1] <= promised.high
    assert promised.low > 0
