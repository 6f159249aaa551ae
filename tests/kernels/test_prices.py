"""Multipliers of rows: what they make of the penalties in exact arithmetic, and their Newton step in plain NumPy."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
from scipy import sparse

from mipfs.kernels.columns import TwoWays
from mipfs.kernels.prices import (
    BindingRows,
    PricedRelaxation,
    bend_of,
    binding_matrix,
    collect_features_in_play,
    curvature_of,
    drop_idle,
    eliminate_rows,
    find_binding_rows,
    measure_missed,
    newton_step_of_multipliers,
    price,
    steps_of,
)
from mipfs.kernels.propagation import INSIDE
from mipfs.kernels.structures import LossSamples, RowSides, only_read, steering_of
from mipfs.settings import NodeSettings, PriceSettings
from tests.kernels.loss_cases import HINGE, LOGISTIC, SQUARED_HINGE, made
from tests.kernels.test_propagation import drawn as drawn_rows
from tests.kernels.test_propagation import selections

Array = npt.NDArray[np.float64]
K = 6


def sides_of(A: Array, low: Array, high: Array) -> RowSides:
    part, zero = sparse.csr_array(A), np.zeros(2 * A.shape[0])
    triple = part.indptr.astype(np.int64), part.indices.astype(np.int64), part.data.astype(float)
    return RowSides(*triple, np.append(high, -low), zero, zero, zero)


@pytest.mark.parametrize("seed", range(60))
def test_idle_rows_lose_their_multipliers(seed: int) -> None:
    A, sides, states, M = drawn_rows(seed)
    if (states == INSIDE).sum() > M:
        return
    y = np.random.default_rng(seed).choice([-1.0, 0.0, 1.0], A.shape[0])
    before, idle = y.copy(), np.empty(2 * A.shape[0], np.bool_)
    drop_idle(sides, M, states, y, idle)
    everything = selections(A, sides, states, M, with_rows=False)
    for r, (old, new) in enumerate(zip(before, y, strict=True)):
        side, at = (1.0, r) if old < 0.0 else (-1.0, r + A.shape[0])
        reached = max((side * float(A[r] @ sigma) for sigma in everything), default=-np.inf)
        assert new == (0.0 if reached <= sides.ends[at] else old)


@pytest.mark.parametrize("seed", range(40))
def test_prices_are_below_the_exact_ones(seed: int) -> None:
    r = np.random.default_rng(seed)
    rows = seed % 5
    A = r.normal(size=(rows, K)) * (r.random((rows, K)) < 0.7) * 10.0 ** r.integers(-6, 6)
    low, high = -r.random(rows), r.random(rows)
    low[r.random(rows) < 0.3] = -np.inf
    y, penalty, priced, sizes = r.normal(size=rows), r.random(K), np.empty(K), np.empty(K)
    asked = y.copy()
    constant = price(sides_of(A, low, high), y, only_read(penalty), priced, sizes)
    ends = np.where(asked < 0.0, high, low)
    np.testing.assert_array_equal(y, np.where(np.isfinite(ends), asked, 0.0))
    exact = sum((Fraction(y[i]) * Fraction(ends[i]) for i in range(rows) if y[i] != 0.0), Fraction(0))
    assert Fraction(float(constant)) <= exact
    assert float(constant) == pytest.approx(float(exact), rel=1e-12, abs=1e-12)
    for j in range(K):
        wanted = Fraction(penalty[j]) - sum((Fraction(A[i, j]) * Fraction(y[i]) for i in range(rows)), Fraction(0))
        assert Fraction(priced[j]) <= wanted + Fraction(2) ** -52 * abs(Fraction(penalty[j]))
        assert priced[j] == pytest.approx(float(wanted), abs=1e-12 * (1.0 + float(np.abs(A[:, j]) @ np.abs(y))))


@pytest.mark.parametrize("seed", range(20))
def test_missed_and_binding_rows(seed: int) -> None:
    r = np.random.default_rng(seed)
    rows = 1 + seed % 4
    A, low, high = r.integers(-2, 3, (rows, K)).astype(float), np.full(rows, -1.0), np.full(rows, 0.4)
    low[0] = high[0]
    y, cols = r.choice([-1.0, 0.0, 0.5], rows), r.permutation(K)[: K - seed % 3].astype(np.int64)
    sigma, dense = r.random(cols.size), np.empty(K)
    whole = np.zeros(K)
    whole[cols] = sigma
    activity = A @ whole
    ends = np.where(y < 0.0, high, low)
    sides = sides_of(A, low, high)
    assert measure_missed(sides, y, cols, sigma, dense) == pytest.approx(float(np.abs(y * (ends - activity)).sum()))
    at = np.full(K, -1)
    at[cols] = np.arange(cols.size)
    found = BindingRows(np.empty(rows, np.int64), *(np.empty(rows) for _ in range(3)), np.empty(rows, np.bool_))
    count = find_binding_rows(sides, y, 2.0, at, sigma, found)
    room = 1e-6 * (1.0 + np.abs(activity))
    upper, lower = (y < 0.0) | (activity > high + room), (y > 0.0) | (activity < low - room)
    which = np.flatnonzero(upper | lower)
    side = np.where(upper[which], 1.0, -1.0)
    wanted = which, side, np.where(side > 0.0, high[which] - activity[which], activity[which] - low[which])
    for one, other in zip(found, (*wanted, -side * y[which] / 2.0, low[which] == high[which]), strict=True):
        np.testing.assert_allclose(one[:count], other, atol=1e-12)


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("seed", range(15))
def test_changes_solve_the_system_of_the_rows_that_stay(seed: int, first: int) -> None:
    r = np.random.default_rng(seed)
    active = 1 + seed % 4
    B = r.normal(size=(active + first, 9))
    S, short, held = B @ B.T, r.normal(size=active), np.abs(r.normal(size=active)) * r.choice([0.0, 1.0, 50.0])
    equal, change = r.random(active) < 0.4, np.empty(active)
    steps_of(S, short, held, equal, first, 3, change)
    assert ((held + change >= -1e-12) | equal).all()
    stays = equal | (held + change > 1e-12)
    if not stays.all():
        return
    whole = np.append(np.zeros(first), -short)
    np.testing.assert_allclose(np.linalg.solve(S, whole)[first:], change, atol=1e-6 * (1.0 + np.abs(change).max()))


@pytest.mark.parametrize("kind", [HINGE, SQUARED_HINGE, LOGISTIC])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_a_step_is_that_of_the_eliminated_system(seed: int, full: bool, bias: bool, kind: int) -> None:
    """(W + G (H + I_in)⁻¹ G' + damping) dλ = Ãσ − u, every row an equation; the first is the cardinality row's."""
    r = np.random.default_rng(seed)
    n, q, rows, size, rho = 14, 5, 2, 3.0, 0.8
    y_label, c = np.resize([1.0, -1.0], n), np.ones(n)
    A, forced = np.asfortranarray(r.normal(size=(n, K))), seed % 2
    cols = r.permutation(K)[:q].astype(np.int64)
    w = r.normal(size=q)
    sigma = np.array([1.0, 0.4, 1.0, 0.0, 0.7])
    w[3] = 0.0
    beta, R = c * r.uniform(0.1, 0.9, n), r.integers(1, 3, (rows, K)).astype(float)
    whole = np.zeros(K)
    whole[cols] = sigma
    ends = R @ whole - r.normal(size=rows)
    y, after = r.normal(size=rows), np.empty(rows)
    relaxed = PricedRelaxation(cols, forced, full, w, sigma, beta, rho, size)
    samples = LossSamples(only_read(y_label), only_read(c), made(kind), bias)
    asked = PriceSettings(held=0.3, inner=0.1)
    steering = steering_of(NodeSettings(prices=asked))["prices"]
    sides, at = sides_of(R, ends, ends), np.empty(K, np.int64)
    Z = TwoWays.dense(A, A.size)
    gain = newton_step_of_multipliers(Z, samples, sides, relaxed, y, steering, at, after)

    # Step by step, beside plain NumPy.
    part = np.array([t for t in range(q) if t < forced or sigma[t] > 0.0])
    fractional = np.array([t >= forced and sigma[t] < 1.0 for t in part])
    J, marks = np.empty(q, np.int64), np.empty(q, np.bool_)
    assert collect_features_in_play.py_func(relaxed, at, J, marks) == part.size
    np.testing.assert_array_equal(J[: part.size], part)
    np.testing.assert_array_equal(marks[: part.size], fractional)
    np.testing.assert_array_equal(at[cols[part]], np.arange(part.size))
    assert (np.delete(at, cols[part]) == -1).all()

    curve = {HINGE: np.full(n, rho), SQUARED_HINGE: c, LOGISTIC: beta * (c - beta) / c}[kind]
    rows_of = np.column_stack([A[:, cols[part]], y_label])[:, : part.size + bias]
    H = rows_of.T @ (curve[:, None] * rows_of)
    found_H = curvature_of(Z, samples, relaxed, part)
    np.testing.assert_allclose(np.tril(found_H), np.tril(H), rtol=1e-9, atol=1e-9)
    H[np.arange(part.size), np.arange(part.size)] += np.where(fractional, 1e-9, 1.0 + 1e-9)

    upper = np.where(y < 0.0, True, ends < R @ whole - 1e-6 * (1.0 + np.abs(R @ whole)))
    side = np.where(upper, 1.0, -1.0)
    signed = side[:, None] * R[:, cols[part]]
    signed = np.vstack([np.ones(part.size), signed]) if full else signed
    bound = BindingRows(np.arange(rows), side, np.empty(rows), np.empty(rows), np.empty(rows, np.bool_))
    np.testing.assert_array_equal(binding_matrix.py_func(sides, bound, rows, int(full), at, part.size), signed)

    length, tau = np.abs(w[part]), np.abs(w[part]) / sigma[part]
    bend = np.where(fractional, length / tau**3, 0.0)
    stiff = np.where(~fractional & (part >= forced), asked.inner / length**2, 0.0)
    G = np.zeros((signed.shape[0], part.size + bias))
    G[:, : part.size] = signed * np.where(fractional, np.sign(w[part]) / tau, 0.0)
    found_G, found_bend, found_stiff = bend_of.py_func(relaxed, part, fractional, signed, asked.inner, found_H)
    np.testing.assert_allclose(np.tril(found_H), np.tril(H), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found_G, G)
    np.testing.assert_allclose(found_bend, bend)
    np.testing.assert_allclose(found_stiff, stiff)

    damping = asked.held * bend + stiff
    S = (signed * bend) @ signed.T + G @ np.linalg.solve(H, G.T) + np.diag((signed**2) @ damping)
    found_S = eliminate_rows.py_func(np.linalg.cholesky(H), G, signed, bend, damping)
    np.testing.assert_allclose(found_S, S, rtol=1e-5, atol=1e-6)
    short = np.where(upper, ends - R @ whole, R @ whole - ends)
    change = np.linalg.solve(S, np.append(np.zeros(int(full)), -short))[int(full) :]
    np.testing.assert_allclose(after, y - side * size * change, rtol=1e-5, atol=1e-6)
    assert gain == pytest.approx(-0.5 * size * float(change @ short), rel=1e-5, abs=1e-8)
    assert gain >= 0.0
