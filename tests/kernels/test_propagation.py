"""What rows fix in a node, and which sides are idle, against all selections of the node."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt
import pytest
from scipy import sparse

from mipfs.kernels.propagation import FREE, INSIDE, OUTSIDE, idle_rows, propagate_rows
from mipfs.kernels.structures import RowSides

Array = npt.NDArray[np.float64]
K = 6


def drawn(seed: int) -> tuple[Array, RowSides, npt.NDArray[np.int8], int]:
    """Whole rows over K atoms, their sides, states and M; no row at all where the seed says so."""
    r = np.random.default_rng(seed)
    rows = seed % 4
    A = r.integers(-2, 3, (rows, K)).astype(float)
    high, low = r.integers(-1, 4, rows).astype(float), -r.integers(-1, 4, rows).astype(float)
    high[r.random(rows) < 0.3], low[r.random(rows) < 0.3] = np.inf, -np.inf
    part = sparse.csr_array(A)
    indptr, indices = part.indptr.astype(np.int64), part.indices.astype(np.int64)
    zero = np.zeros(2 * rows)
    sides = RowSides(
        indptr, indices, part.data.astype(float), np.append(high, -low), zero, np.full(2 * rows, 0.5), zero
    )
    states = r.choice([FREE, FREE, FREE, INSIDE, OUTSIDE], K).astype(np.int8)
    return A, sides, states, int(r.integers(1, K + 1))


def selections(A: Array, sides: RowSides, states: npt.NDArray[np.int8], M: int, *, with_rows: bool) -> list[Array]:
    """All σ of a node, with the rows or without."""
    found = []
    for one in itertools.product((0.0, 1.0), repeat=K):
        sigma = np.array(one)
        fits = (sigma[states == INSIDE] == 1.0).all() and (sigma[states == OUTSIDE] == 0.0).all() and sigma.sum() <= M
        activity = A @ sigma
        if fits and (not with_rows or (np.append(activity, -activity) <= sides.ends).all()):
            found.append(sigma)
    return found


@pytest.mark.parametrize("seed", range(120))
def test_nothing_is_fixed_that_a_selection_needs(seed: int) -> None:
    A, sides, states, M = drawn(seed)
    before, atoms, causes = states.copy(), np.empty(K, np.int64), np.empty(K, np.int64)
    everything = selections(A, sides, before, M, with_rows=True)
    found, broken = propagate_rows(sides, M, states, atoms, causes)
    if broken >= 0:
        assert not everything
        return
    fixed = np.flatnonzero(states != before)
    assert sorted(atoms[:found].tolist()) == fixed.tolist()
    for sigma in everything:
        assert (sigma[fixed] == (states[fixed] == INSIDE)).all()
    for k in range(found):  # by one row alone, after what was fixed before it
        now = before.copy()
        now[atoms[:k]] = states[atoms[:k]]
        row, side = causes[k] % A.shape[0], 1.0 if causes[k] < A.shape[0] else -1.0
        other = OUTSIDE if states[atoms[k]] == INSIDE else INSIDE
        now[atoms[k]] = other
        for sigma in selections(A, sides, now, M, with_rows=False):
            assert side * (A[row] @ sigma) > sides.ends[causes[k]]
    if A.shape[0] == 0:
        assert (found, broken) == (0, -1)


@pytest.mark.parametrize("seed", range(120))
def test_idle_sides_are_reached_by_no_selection(seed: int) -> None:
    A, sides, states, M = drawn(seed)
    if (states == INSIDE).sum() > M:
        return
    idle = np.empty(2 * A.shape[0], np.bool_)
    idle_rows(sides, M, states, idle)
    for sigma in selections(A, sides, states, M, with_rows=False):
        activity = np.append(A @ sigma, -(A @ sigma))
        assert (activity[idle] <= sides.ends[idle]).all()
    most = [
        max(float(s * (row @ x)) for x in selections(A, sides, states, M, with_rows=False))
        for s in (1, -1)
        for row in A
    ]
    np.testing.assert_array_equal(idle, np.array(most) <= sides.ends)
