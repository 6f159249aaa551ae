"""Kernels of a few lines against plain NumPy: hashes, products, sums and scores of columns, intersections, text."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import sparse

from mipfs.kernels.alike import split_kinds
from mipfs.kernels.gram import hash_dense_rows, mix_hash, scale_lower, sparse_gram, sparse_times
from mipfs.kernels.intersection import hat_coordinates, intersection_scores
from mipfs.kernels.products import (
    ChosenColumns,
    ChosenRows,
    PairScratch,
    StoredColumns,
    column_weights,
    pairs_above,
    products,
    rows_of,
)
from mipfs.kernels.projection import balance_at, project_on_box
from mipfs.kernels.rows import signed_rows
from mipfs.kernels.scores import PARALLEL_CHUNKS, Reach, ScaledColumns, column_sums, dense_pull, magnitudes_in_reach
from mipfs.kernels.statistics import column_statistics
from mipfs.kernels.structures import only_read
from mipfs.kernels.text import DONE, ODD, POWERS, Entries, ParsedLines, count, parse, place_entries, sort_by_column
from mipfs.kernels.vectors import to_boundary

Array = npt.NDArray[np.float64]
SHAPES = [(1, 1), (1, 4), (9, 1), (12, 5), (3, 0)]


def csc(n: int, k: int, *, readonly: bool = True, whole: bool = False) -> tuple[Array, Any]:
    """A matrix, dense and as CSC with 32-bit indices."""
    r = np.random.default_rng([n, k])
    A = (r.integers(-2, 3, (n, k)).astype(float) if whole else r.normal(size=(n, k))) * (r.random((n, k)) < 0.6)
    part: Any = sparse.csc_array(A)
    for one in (part.data, part.indices, part.indptr):
        one.flags.writeable = not readonly
    return A, part


@pytest.mark.parametrize(("n", "k"), SHAPES)
def test_products_of_sparse_rows(n: int, k: int) -> None:
    A, _ = csc(n, k)
    r, major = np.random.default_rng(1), sparse.csr_array(A)
    weights, out = r.normal(size=n) * (r.random(n) < 0.7), np.ones((k, k))
    sparse_gram(major.data, major.indices, major.indptr, weights, 0, n // 2, out)
    sparse_gram(major.data, major.indices, major.indptr, weights, n // 2, n, out)
    np.testing.assert_allclose(np.triu(out), np.triu(1.0 + A.T @ (weights[:, None] * A)), atol=1e-12)
    M, f = r.normal(size=(k, k)), r.random(k)
    wanted = np.tril(M * np.outer(f, f)) + np.triu(M, 1)
    M = np.asfortranarray(M)
    scale_lower(M, f)
    np.testing.assert_allclose(M, wanted, atol=1e-14)


def test_the_step_to_the_boundary() -> None:
    r = np.random.default_rng(2)
    x, d = r.random(40), r.normal(size=40)
    falls = d < 0.0
    assert to_boundary(x, d) == (x[falls] / -d[falls]).min()
    assert to_boundary(x, np.abs(d)) == np.inf
    assert to_boundary(x[:0], d[:0]) == np.inf
    x[np.flatnonzero(falls)[:2]] = np.nan, 0.0  # a number that is none is not passed over
    assert np.isnan(to_boundary(x, d))


def by_hand(bits: int, j: int) -> int:
    """The mixing of SplitMix64, in Python's integers."""
    full = 2**64 - 1
    x = bits ^ ((j + 1) * 0x9E3779B97F4A7C15 & full)
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & full
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & full
    return x ^ (x >> 31)


def test_hashes_of_rows_count_zeros_for_nothing() -> None:
    A = np.array([[1.0, 0.0, -2.5], [0.0, -0.0, 0.0], [1.0, -0.0, -2.5], [-2.5, 0.0, 1.0]])
    bits, out = A.view(np.uint64), np.zeros(4, np.uint64)
    hash_dense_rows(bits, out)
    wanted = [sum(by_hand(int(b), j) for j, b in enumerate(row) if b << np.uint64(1)) % 2**64 for row in bits]
    assert out.tolist() == wanted
    assert out[0] == out[2] != out[3]
    assert int(mix_hash(bits[0, 2], 2)) == by_hand(int(bits[0, 2]), 2)


@pytest.mark.parametrize("seed", range(12))
def test_samples_that_agree_on_every_column_stay_together(seed: int) -> None:
    r = np.random.default_rng(seed)
    n, k = 40, int(r.integers(0, 5))
    A, part = csc(n, k, whole=True)
    kind = r.integers(0, 2, n).astype(np.int32)
    kind = np.unique(kind, return_inverse=True)[1].astype(np.int32)
    before, sizes = kind.copy(), np.bincount(kind).astype(np.int64)
    first, parent = split_kinds(part.data.view(np.uint64), part.indices, part.indptr, kind, sizes, n)
    rows = [(int(b), *a) for b, a in zip(before, A.tolist(), strict=True)]
    order = list(dict.fromkeys(rows))
    assert kind.tolist() == [order.index(row) for row in rows]
    assert first.tolist() == [rows.index(row) for row in order]
    assert parent.tolist() == before[first].tolist()
    if len(order) > 2:
        assert split_kinds(part.data.view(np.uint64), part.indices, part.indptr, before.copy(), sizes, 2)[0].size == 0


@pytest.mark.parametrize("seed", range(8))
def test_intersections_are_sums_of_minima(seed: int) -> None:
    """Scores by suffix sums, and hats whose products are the minima."""
    r = np.random.default_rng(seed)
    n, p = 1 + 2 * seed, 3
    X, v = r.integers(0, 4 + seed, (n, p)) * r.random(), r.normal(size=n)
    starts, knots, rows, levels = [0], list[float](), list[int](), [0]
    for j in range(p):
        for u in np.unique(X[X[:, j] > 0.0, j]):
            knots.append(u)
            rows += np.flatnonzero(X[:, j] == u).tolist()
            levels.append(len(rows))
        starts.append(len(knots))
    out = np.empty(p)
    arrays = np.array(knots), np.array(starts, np.int64), np.array(rows, np.int32), np.array(levels, np.int64)
    intersection_scores(*arrays, v, out)
    for j in range(p):
        gram = np.minimum.outer(X[:, j], X[:, j])
        assert out[j] == pytest.approx(float(v @ gram @ v), rel=1e-9, abs=1e-9)
        own = np.array(knots[starts[j] : starts[j + 1]])
        if own.size == 0:
            continue
        depth = int(np.ceil(np.log2(own.size))) + 2
        columns, values = np.zeros((n, depth), np.int32), np.empty((n, depth))
        counts = np.empty(n, np.int64)
        hat_coordinates(np.ascontiguousarray(X[:, j]), own, columns, values, counts)
        phi = np.zeros((n, own.size))
        for i in range(n):
            phi[i, columns[i, : counts[i]]] = values[i, : counts[i]]
        np.testing.assert_allclose(phi @ phi.T, gram, atol=1e-9 * (1.0 + gram.max()))


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize(("n", "p"), [(1, 2), (20, 6), (9, 1)])
def test_pairs_of_columns(n: int, p: int, whole: bool) -> None:
    A, part = csc(n, p, readonly=False, whole=whole)
    v = np.random.default_rng(2).normal(size=n) * (np.arange(n) % 4 > 0)
    sums = [np.empty(p) for _ in range(4)]
    column_weights(part.data, part.indices, part.indptr, v, *sums)
    plus, minus = np.maximum(v, 0.0), np.maximum(-v, 0.0)
    for found, wanted in zip(sums, (v @ A, v @ A**2, plus @ A**2, minus @ A**2), strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-12)
    q = np.sqrt(np.abs(v) @ A**2)
    order = np.argsort(-q, kind="stable")
    stored = StoredColumns(part.data, part.indices, part.indptr)
    rows = ChosenRows(np.empty(n + 1, np.int64), np.empty(part.nnz, np.int32), np.empty(part.nnz))
    rows_of(stored, order, v, rows)
    for i in range(n):
        own = slice(rows.starts[i], rows.starts[i + 1])
        there = [t for t in range(p) if A[i, order[t]] != 0.0 and v[i] != 0.0]
        assert rows.ranks[own].tolist() == there
        assert rows.values[own].tolist() == A[i, order[there]].tolist()
    products_of = np.abs((A * v[:, None]).T @ A)[np.ix_(order, order)]
    least = float(np.median(products_of[np.triu_indices(p, 1)])) if p > 1 else 0.1
    least = max(least * (1 + 1e-9), 1e-9)
    room = PairScratch(np.empty(p), np.full(p, -1, np.int32), np.empty((p, 2), np.int32), np.empty(p))
    begin, seen = 0, dict[tuple[int, int], float]()
    while begin < p:
        begin, found_now, work = pairs_above(stored, ChosenColumns(order, q[order]), rows, v, least, begin, 10**6, room)
        seen |= {(int(a), int(b)): float(s) for (a, b), s in zip(room.found[:found_now], room.sizes, strict=False)}
        assert work >= 0
    wanted_pairs = {
        (a, b): products_of[a, b] for a, b in itertools.combinations(range(p), 2) if products_of[a, b] >= least
    }
    assert seen.keys() == wanted_pairs.keys()
    assert seen == pytest.approx(wanted_pairs)
    variables = np.array([[-1, j] for j in range(p)] + [[j, p - 1] for j in range(p)])
    out = np.empty(2 * p)
    products(np.asfortranarray(A), variables, v, out)
    np.testing.assert_allclose(out, np.append(v @ A, (v * A[:, -1]) @ A), atol=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_the_nearest_point_of_box_and_balance(seed: int) -> None:
    r = np.random.default_rng(seed)
    n = 2 + seed
    y, top, slope = (
        np.resize([1.0, -1.0], n),
        r.uniform(0.5, 2.0, n),
        np.ones(n) if seed % 2 else r.uniform(0.5, 2.0, n),
    )
    alpha, slope = r.normal(size=n), slope * y
    breaks, found = np.sort(np.append(alpha / slope, (alpha - top) / slope)), np.empty(n)
    project_on_box(only_read(alpha), only_read(slope), only_read(top), only_read(y), breaks, found)
    assert float(y @ found) == pytest.approx(0.0, abs=1e-12)
    assert ((found >= 0.0) & (found <= top)).all()
    assert balance_at(0.3, only_read(alpha), only_read(slope), only_read(top), only_read(y)) == pytest.approx(
        float(y @ np.clip(alpha - 0.3 * slope, 0.0, top))
    )
    for _ in range(50):  # no other feasible point is nearer, in the norm of the slopes
        other = np.clip(found + 0.1 * r.normal(size=n), 0.0, top)
        surplus = float(y @ other)
        i = int(np.argmax(y * np.sign(surplus) * other))
        if y[i] * surplus <= 0.0 or other[i] < abs(surplus):
            continue
        other[i] -= abs(surplus)
        size = 1.0 / np.abs(slope)
        assert size @ (other - alpha) ** 2 >= size @ (found - alpha) ** 2 - 1e-12


@pytest.mark.parametrize("ones", [False, True])
@pytest.mark.parametrize(("n", "k"), SHAPES)
def test_signed_rows_of_sparse_columns(n: int, k: int, ones: bool) -> None:
    A, part = csc(n, k)
    r = np.random.default_rng(3)
    ids, y, scale = r.permutation(k)[: (k + 1) // 2].astype(np.int64), r.choice([-1.0, 1.0], n), r.random((k + 1) // 2)
    stored = int(np.count_nonzero(A[:, ids]))
    triple = signed_rows(part.data, part.indices, part.indptr, ids, y, scale, ones, stored)
    wanted = np.column_stack([A[:, ids] * scale, np.ones(n)])[:, : ids.size + ones] * y[:, None]
    np.testing.assert_allclose(sparse.csr_array(triple, shape=wanted.shape).toarray(), wanted, atol=1e-15)
    for i in range(n):
        assert (np.diff(triple[1][triple[2][i] : triple[2][i + 1]]) > 0).all()


@pytest.mark.parametrize("divided", [False, True])
@pytest.mark.parametrize(("n", "p"), [(1, 1), (12, 90), (9, 3)])
def test_sums_and_scores_of_columns(n: int, p: int, divided: bool) -> None:
    A, part = csc(n, p)
    r = np.random.default_rng(4)
    divisor, scale, v = r.uniform(0.5, 2.0, p), r.random(p), r.normal(size=n)
    stored = ScaledColumns(part.data, part.indices, part.indptr, divisor, divided, scale)
    B = A / divisor if divided else A
    bounds, largest = np.empty(p, np.float32), np.zeros(PARALLEL_CHUNKS)
    column_sums(stored, bounds, largest, 0, PARALLEL_CHUNKS // 2)
    column_sums(stored, bounds, largest, PARALLEL_CHUNKS // 2, PARALLEL_CHUNKS)
    sums = np.abs(B).sum(axis=0) * scale
    assert (bounds.astype(float) >= sums).all()
    np.testing.assert_allclose(bounds, sums, rtol=1e-5)
    assert largest.max() == pytest.approx(float(((B**2).sum(axis=0) * scale**2).max()))
    columns, sizes = r.permutation(p).astype(np.int64), np.full(p, -1.0)
    least = float(np.median(sums)) * float(np.abs(v).max())
    magnitudes_in_reach(stored, Reach(bounds, float(np.abs(v).max()), least), columns, v, sizes, 0, p)
    wanted = np.abs(v @ B) * scale
    for t, j in enumerate(columns):
        is_read = bounds[j] * np.abs(v).max() >= least
        assert sizes[t] == (pytest.approx(wanted[j], abs=1e-12) if is_read else 0.0)
        assert is_read or wanted[j] <= least
    dense, out = np.ascontiguousarray(A.T), np.full(p, 7.0)
    dense_pull(dense, v, out, p // 2, p)
    np.testing.assert_allclose(out[p // 2 :], (v @ A)[p // 2 :], atol=1e-12)
    assert (out[: p // 2] == 7.0).all()


@pytest.mark.parametrize(("n", "k"), [(1, 1), (9, 1), (12, 5), (70, 2)])
def test_statistics_of_columns(n: int, k: int) -> None:
    A, _ = csc(n, k)
    if k > 2:
        A[:, 1], A[:, 2] = 3.0, 1e200 * A[:, 2]
    part = sparse.csc_array(A)
    sums, found = np.empty(k), np.empty((4, k))
    column_statistics(part.data, part.indptr, n, sums, found)
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(sums, np.abs(A).sum(axis=0))
        np.testing.assert_allclose(found[0], (A * A).sum(axis=0))
        kept = np.ptp(A, axis=0) == 0.0
        size = np.abs(A).max(axis=0) + (A == 0.0).all(axis=0)
        np.testing.assert_allclose(found[1], np.where(kept, 0.0, A.mean(axis=0)), atol=1e-14 * size.max())
        np.testing.assert_allclose(found[2], np.where(kept, 1.0, (A / size).std(axis=0) * size))
        norm = np.linalg.norm(A / size, axis=0) * size
        np.testing.assert_allclose(found[3], np.where(norm == 0.0, 1.0, norm))


@pytest.mark.slow
def test_lines_of_text_are_read_as_python_reads_them() -> None:
    text = "+1 1:2 3:-0.5 # c\n\n  -1 qid:7 2:1e3 4:0 5:123456789012345678901234567890\n1\n"
    raw = np.frombuffer(text.encode(), np.uint8)
    samples = ParsedLines(np.empty(9), np.empty(9, np.int64), np.empty(9, np.int64), np.empty(9, np.int64))
    entries, state = Entries(np.empty(9, np.int64), np.empty(9), np.empty((9, 3), np.int64)), np.zeros(6, np.int64)
    assert parse(raw, 0, 9, POWERS, samples, entries, state) == DONE
    assert state.tolist() == [3, 4, 1, 4, 5, raw.size]
    assert samples.labels[:3].tolist() == [1.0, -1.0, 1.0]
    assert samples.bags[:3].tolist() == [-1, 7, -1]
    assert samples.lines[:3].tolist() == [1, 3, 4]
    assert samples.ends[:3].tolist() == [2, 4, 4]
    assert entries.columns[:4].tolist() == [0, 2, 1, 4]
    assert entries.values[:3].tolist() == [2.0, -0.5, 1000.0]
    entry, begin, end = entries.hard[0].tolist()
    assert (entry, float(text.encode()[begin:end])) == (3, 123456789012345678901234567890.0)
    for odd in ("1 2:3 1:4\n", "x 1:2\n", "1 0:2\n", "1 10:1\n", "1 1:2:3\n"):
        state[:] = 0
        assert parse(np.frombuffer(odd.encode(), np.uint8), 0, 9, POWERS, samples, entries, state) == ODD
        assert state[0] == state[5] == 0


@pytest.mark.parametrize("size", [0, 1, 50])
@pytest.mark.parametrize("largest", [3, 5000, 10**7])
def test_entries_are_sorted_by_column_and_put_in_their_places(size: int, largest: int) -> None:
    r = np.random.default_rng([size, largest])
    columns = r.integers(0, largest + 1, size)
    given_, rows = (columns.copy(), np.arange(size), r.normal(size=size)), np.arange(size)
    values = given_[2].copy()
    room = tuple(np.empty_like(one) for one in given_)
    found = room if sort_by_column(*given_, *room, largest) else given_
    order = np.argsort(columns, kind="stable")
    for one, wanted in zip(found, (columns, rows, values), strict=True):
        np.testing.assert_array_equal(one, wanted[order])
    if largest == 3:
        counts = np.zeros(4, np.int64)
        count(columns, counts)
        np.testing.assert_array_equal(counts, np.bincount(columns, minlength=4))
        heads = np.cumsum(counts) - counts
        indices, data = np.empty(size, np.int64), np.empty(size)
        place_entries(columns, 0, rows, values, heads, indices, data)
        np.testing.assert_array_equal(indices, rows[order])
        np.testing.assert_array_equal(data, values[order])
        np.testing.assert_array_equal(heads, np.cumsum(counts))


def test_rows_times_a_vector_are_summed_alike_in_any_blocks() -> None:
    r = np.random.default_rng(3)
    Z = sparse.random(40, 17, 0.3, format="csr", random_state=r)
    v, whole, parts = r.normal(size=17), np.empty(40), np.empty(40)
    given = Z.data, Z.indices.astype(np.int32), Z.indptr.astype(np.int64)
    sparse_times(*given, v, 0, 40, whole)
    for low, high in ((0, 13), (13, 40)):
        sparse_times(*given, v, low, high, parts)
    np.testing.assert_allclose(whole, Z @ v, rtol=1e-13, atol=1e-14)
    np.testing.assert_array_equal(parts, whole)
