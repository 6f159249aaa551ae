"""That no whole numbers satisfy rows: against enumeration, and without a solver's word."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from mipfs.errors import NumericalError
from mipfs.selection import lattice
from mipfs.selection.model import SelectionModel
from mipfs.selection.rows import Extras, Rows
from mipfs.selection.selection import Selection
from mipfs.solvers import highs
from tests.test_rows import over, selections

Bits = set[tuple[int, ...]]


def whole(count: int, end: float = np.inf) -> Extras:
    return Extras(tuple(f"z{k}" for k in range(count)), np.full(count, -end), np.full(count, end), np.ones(count, bool))


def enumerated(A: Any, lb: Any, ub: Any, count: int, end: int) -> Bits:
    """The selections beside which some whole numbers of a box satisfy the rows."""
    A = np.array(A, float)
    p = A.shape[1] - count
    z = np.array(list(itertools.product(range(-end, end + 1), repeat=count)))
    found = Bits()
    for bits in itertools.product((0, 1), repeat=p):
        activity = (A[:, :p] @ np.array(bits))[:, None] + A[:, p:] @ z.T
        inside = (activity >= np.array(lb)[:, None]) & (activity <= np.array(ub)[:, None])
        found |= {bits} if inside.all(axis=0).any() else set()
    return found


@pytest.mark.parametrize("count", [1, 2, 3])
def test_selections_are_those_of_enumeration(count: int) -> None:
    rng = np.random.default_rng(count)
    for _ in range(8):
        A = rng.integers(-6, 7, (2, 3 + count))
        A[:, 3:] *= rng.integers(1, 4)
        lb = rng.integers(-3, 3, 2).astype(float)
        ub = lb + rng.integers(0, 2, 2)
        assert selections(over(A, lb, ub, whole(count, 5))) == enumerated(A, lb, ub, count, 5)


PARITY = [[1, 1, 1, -2, 4, 0], [0, 0, 0, 3, -1, -2]]
"""x1 + x2 + x3 = 2 z1 - 4 z2, 3 z1 - z2 = 2 z3: an even number of features, whatever z3 is."""


def test_what_no_tree_of_lps_shows_is_shown_without_a_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    even = {bits for bits in itertools.product((0, 1), repeat=3) if sum(bits) % 2 == 0}
    assert selections(over(PARITY, [0, 0], [0, 0], whole(3))) == even
    monkeypatch.setattr(lattice, "MOST_NUMBERS", 0)
    with pytest.raises(NumericalError, match="remains open"):
        selections(over(PARITY, [0, 0], [0, 0], whole(3)))


def test_several_equations_are_taken_together() -> None:
    # z1 = 2 z3 and x1 = z1 + 2 z2: each alone has whole solutions, together x1 must be even
    rows = [[0, 1, 0, -2], [1, -1, -2, 0]]
    assert selections(over(rows, [0, 0], [0, 0], whole(3))) == {(0,)}
    assert selections(over([[1, -1, -2, 0]], 0, 0, whole(3))) == {(0,), (1,)}


def test_a_word_of_infeasibility_excludes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """HiGHS says of every MILP that it is infeasible: no selection is lost by that."""
    solve = SelectionModel.solve

    def lying(model: SelectionModel, stop: Any = None) -> highs.MilpSolution:
        return highs.MilpSolution("infeasible", None, np.inf) if model.program._is_mip else solve(model, stop)

    monkeypatch.setattr(SelectionModel, "solve", lying)
    S = over(PARITY, [0, 0], [0, 0], whole(3))
    assert selections(S) == {bits for bits in itertools.product((0, 1), repeat=3) if sum(bits) % 2 == 0}
    sigma, bound = S.minimise(np.array([-3.0, -2.0, -1.0]))
    assert sigma is not None
    assert (sigma.tolist(), bound) == ([True, True, False], pytest.approx(-5.0))


@pytest.mark.slow
def test_a_search_over_whole_variables_without_ends_ends() -> None:
    extra = whole(2)
    row = sparse.csr_array([[0.0, 1.0, 0.0, 1.0, 15.0, 27.0]])
    rows = Rows(row, np.array([-18.0]), np.array([-18.0]), ("r",), ("",), extra)
    selection = Selection(4, 2, (), (), rows, ("x1", "x2", "x3", "x4"))
    oracle = selection.oracle()
    found = oracle.repair(np.array([0.3, 0.8, 0.3, 1.3]))
    assert found is not None
    assert not found[[1, 3]].any(), "15 a + 27 b is a multiple of 3"
    assert oracle._integer_model.program._h.getInfo().mip_node_count <= oracle.settings.open_nodes
