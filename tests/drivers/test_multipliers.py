"""Multipliers that bound extra variables exactly, in rational arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from mipfs.proof.multipliers import cancel_multipliers
from mipfs.selection.rows import Extras, Rows
from mipfs.selection.selection import Selection


@pytest.mark.parametrize("e", [1, 2, 3])
@pytest.mark.parametrize("seed", range(10))
def test_reduced_costs_of_free_variables_vanish_exactly(seed: int, e: int) -> None:
    """Decimal coefficients: in floats A'y is 1e-16, which on a variable without an end bounds nothing."""
    rng, p = np.random.default_rng(seed), 3
    r = e + 2
    A = np.round(rng.uniform(-4.0, 4.0, (r, p + e)), 1)
    extra = Extras(tuple(f"z{k}" for k in range(e)), np.full(e, -np.inf), np.full(e, np.inf), np.zeros(e, dtype=bool))
    rows = Rows(sparse.csr_array(A), np.zeros(r), np.ones(r), tuple("abcdef"[:r]), ("",) * r, extra)
    kernel = np.linalg.svd(rows.matrix.toarray()[:, p:].T)[2][e:]
    y = rng.normal(size=len(kernel)) @ kernel
    found = cancel_multipliers(Selection(p, None, (), (), rows), y)
    assert found is not None
    exact = [Fraction(v) for v in found]
    for k in range(p, p + e):
        assert sum(Fraction(a) * v for a, v in zip(rows.matrix.toarray()[:, k].tolist(), exact, strict=True)) == 0
    np.testing.assert_allclose([float(v) for v in exact], y, atol=1e-12 * np.abs(y).max())


def test_multipliers_that_need_no_correction_stay_floats() -> None:
    extra = Extras(("z",), np.zeros(1), np.array([np.inf]), np.zeros(1, dtype=bool))
    rows = Rows(
        sparse.csr_array([[1.0, -2.5], [0.5, 1.5]]), np.zeros(2), np.full(2, np.inf), ("a", "b"), ("", ""), extra
    )
    y = np.array([0.3, 0.1])
    assert cancel_multipliers(Selection(1, None, (), (), rows), y) is y


def test_a_reduced_cost_that_is_no_round_off_is_not_corrected_away() -> None:
    """The row a alone would need a lower end of z = ∞: its multiplier must go."""
    extra = Extras(("z",), np.array([-np.inf]), np.zeros(1), np.zeros(1, dtype=bool))
    rows = Rows(sparse.csr_array([[1.0, -2.5]]), np.zeros(1), np.full(1, np.inf), ("a",), ("",), extra)
    found = cancel_multipliers(Selection(1, None, (), (), rows), np.array([0.3]))
    assert found is not None
    assert found[0] == 0
