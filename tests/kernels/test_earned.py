"""Dual vectors on the grid, their values and scores against exact rational arithmetic; packing against plain bits."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import sparse

from mipfs.kernels.earned import (
    balance_classes,
    pack_dual,
    remove_surplus,
    scores_above,
    to_grid,
    unpack_dual,
    value_below,
)
from mipfs.kernels.structures import only_read
from tests.kernels.loss_cases import HINGE, LOGISTIC, SQUARED_HINGE, made

Array = npt.NDArray[np.float64]
KINDS = (HINGE, SQUARED_HINGE, LOGISTIC)
SEEDS = range(24)


def drawn(seed: int, kind: int) -> tuple[Array, Array, Array]:
    """α, partly outside its box, box and labels; sizes far apart."""
    r = np.random.default_rng([seed, kind + 1])
    n = int(r.integers(1, 30))
    c = only_read(10.0 ** r.integers(-6, 6) * r.uniform(0.5, 2.0, n))
    alpha = c * r.uniform(-0.2, 1.2, n) * (r.random(n) < 0.8)
    return alpha, c, only_read(np.where(r.random(n) < 0.5, 1.0, -1.0))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_grid_is_in_the_box_and_near(seed: int, kind: int) -> None:
    alpha, top, _ = drawn(seed, kind)
    top = only_read(np.full(top.size, np.inf)) if kind == SQUARED_HINGE else top
    whole = np.empty(alpha.size, np.int64)
    q = int(to_grid(alpha, top, 20 + seed % 20, whole))
    unit = Fraction(2) ** -q
    for a, t, k in zip(alpha.tolist(), top.tolist(), whole.tolist(), strict=True):
        assert k >= 0
        assert kind == SQUARED_HINGE or k * unit <= Fraction(t)
        inside = max(Fraction(0), Fraction(a) if kind == SQUARED_HINGE else min(Fraction(a), Fraction(t)))
        assert abs(k * unit - inside) <= unit
    assert whole.max() <= 2 ** (20 + seed % 20)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", SEEDS)
def test_balance_is_exact_and_only_takes_away(seed: int, kind: int) -> None:
    alpha, top, y = drawn(seed, kind)
    top = only_read(np.full(top.size, np.inf)) if kind == SQUARED_HINGE else top
    whole = np.empty(alpha.size, np.int64)
    q = to_grid(alpha, top, 30, whole)
    before = whole.copy()
    balance_classes(whole, top, q, y)
    assert int((whole * y.astype(np.int64)).sum()) == 0
    assert ((whole >= 0) & (whole <= before)).all()
    positive, negative = before[y > 0].sum(), before[y < 0].sum()
    assert whole.sum() == 2 * min(positive, negative), "no more than the surplus is taken"


@pytest.mark.parametrize("seed", SEEDS)
def test_a_surplus_is_taken_off_one_class_alone(seed: int) -> None:
    r = np.random.default_rng(seed)
    n = 1 + seed
    whole, y = r.integers(0, 1000, n), np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    before, surplus = whole.copy(), int(r.integers(0, whole[y > 0].sum() + 1))
    remove_surplus(whole, np.full(n, np.inf), 0, y, 1.0, surplus)
    assert before[y > 0].sum() - whole[y > 0].sum() == surplus
    assert ((whole >= 0) & (whole <= before)).all()
    np.testing.assert_array_equal(whole[y < 0], before[y < 0])


def exact_value(alpha: Array, c: Array, kind: int) -> Fraction:
    """g(α): Σα, Σα − α²/2c, or the entropy by logarithms of 60 digits."""
    if kind == HINGE:
        return sum(map(Fraction, alpha.tolist()), Fraction(0))
    if kind == SQUARED_HINGE:
        pairs = [(Fraction(a), Fraction(t)) for a, t in zip(alpha.tolist(), c.tolist(), strict=True)]
        return sum((a - a * a / (2 * t) for a, t in pairs), Fraction(0))
    with localcontext() as context:
        context.prec = 60
        total = Decimal(0)
        for a, t in ((Decimal(a), Decimal(t)) for a, t in zip(alpha.tolist(), c.tolist(), strict=True)):
            total -= (a * (a / t).ln() if a > 0 else 0) + ((t - a) * ((t - a) / t).ln() if a < t else 0)
        return Fraction(total)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", SEEDS)
def test_values_are_below_the_exact_one_and_near(seed: int, kind: int) -> None:
    alpha, c, _ = drawn(seed, kind)
    alpha = np.clip(alpha, 0.0, c)
    exact, found = exact_value(alpha, c, kind), Fraction(float(value_below(alpha, c, made(kind))))
    assert found <= exact
    assert exact - found <= Fraction(1e-12) * Fraction(float(c.sum()))


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_scores_are_above_the_exact_ones_and_near(seed: int, is_sparse: bool) -> None:
    r = np.random.default_rng(seed)
    n, k = int(r.integers(1, 20)), int(r.integers(2, 6))
    A = np.asfortranarray(r.normal(size=(n, k)) * (r.random((n, k)) < 0.6) * 10.0 ** r.integers(-8, 8))
    center, v = r.normal(size=k) * (seed % 2), r.normal(size=n)
    part: Any = sparse.csc_array(A)
    triple = part.data, part.indices.astype(np.int32), part.indptr.astype(np.int64)
    X = tuple(only_read(one) for one in triple) if is_sparse else only_read(A)
    columns = r.permutation(k)[: 1 + seed % k].astype(np.int64)
    s = np.empty(columns.size)
    scores_above(X, only_read(center), only_read(np.linalg.norm(A, axis=0)), columns, v, s)
    for j, found in zip(columns.tolist(), s.tolist(), strict=True):
        omega = sum((Fraction(v[i]) * (Fraction(A[i, j]) - Fraction(center[j])) for i in range(n)), Fraction(0))
        size = sum(abs(Fraction(v[i])) * (abs(Fraction(A[i, j])) + abs(Fraction(center[j]))) for i in range(n))
        assert omega**2 <= Fraction(found)
        assert Fraction(found) - omega**2 <= Fraction(1e-12) * size**2


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_packed_can_be_read(seed: int, weighted: bool) -> None:
    """Bits: who is not zero, of these who is at its top; then the others, `width` bytes each, the lowest first."""
    alpha, top, _ = drawn(seed, HINGE)
    n, whole = alpha.size, np.empty(alpha.size, np.int64)
    q = to_grid(alpha, top, 8 + 3 * (seed % 12), whole)
    out, at = np.full(40 + 12 * n, 255, np.uint8), seed % 5
    end, level, width = pack_dual(whole, only_read(top), q, weighted, out, at)
    bits = np.unpackbits(out[at:])
    there = np.flatnonzero(bits[:n])
    flags = -(-n // 8)
    is_top = np.unpackbits(out[at + flags :])[: there.size].astype(bool)
    start = at + flags + -(-there.size // 8)
    numbers = [int.from_bytes(out[t : t + width].tobytes(), "little") for t in range(start, end, max(1, width))]
    found = np.zeros(n, dtype=object)
    found[there[~is_top]] = numbers
    limit = [int(Fraction(t) * Fraction(2) ** q // 1) if weighted else int(level) for t in top.tolist()]
    found[there[is_top]] = [limit[i] for i in there[is_top]]
    assert found.tolist() == whole.tolist()
    assert (level == -1) == weighted
    assert end == start + width * int((~is_top).sum())
    read = np.empty(n, np.int64)
    ends = np.array(limit if weighted else [], np.int64)
    assert unpack_dual(out[at:end], level, width, ends, read)
    assert read.tolist() == whole.tolist()
    assert not any(unpack_dual(out[at:short], level, width, ends, read) for short in range(at, end))
