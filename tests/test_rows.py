"""When a row holds, against fractions of the numbers as they were written; and what a solver gets to see of rows."""

from __future__ import annotations

import itertools
import pickle
import threading
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

import mipfs
from mipfs import Instance, Problem, RowError
from mipfs.errors import NumericalError
from mipfs.selection.model import selection_model
from mipfs.selection.oracle import SelectionOracle
from mipfs.selection.selection import Extras, Rows, Selection
from mipfs.solvers import highs
from tests import strategies

DRIVERS = ("branch", "gbd", "kelley")


def instance() -> Instance:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 3))
    return Instance.from_arrays(X, np.where(X.sum(axis=1) + 0.3 * rng.normal(size=20) > 0, 1, -1))


def selections(selection: Selection) -> set[tuple[int, ...]]:
    oracle = selection.oracle()
    every = itertools.product((0, 1), repeat=selection.n_features)
    return {bits for bits in every if oracle.contains(np.array(bits) > 0)}


def over(A: object, lb: object, ub: object, extra: Extras | None = None, M: int | None = None) -> Selection:
    A, lb, ub = np.atleast_2d(np.array(A, float)), np.atleast_1d(lb), np.atleast_1d(ub)
    names = tuple(f"r{i}" for i in range(len(A)))
    rows = Rows(sparse.csr_array(A), lb, ub, names, ("",) * len(A), extra or Extras())
    return Selection(A.shape[1] - len(rows.extra), M, (), (), rows)


def test_repeated_entries_are_summed_and_zeros_left_out() -> None:
    given = sparse.csr_array((np.array([1.0, 1, 1, 1, 2, -2]), np.array([2, 0, 0, 1, 1, 1]), [0, 6]), shape=(1, 4))
    rows = Rows(given, np.array([-np.inf]), np.array([2.0]), ("r",), ("",))
    assert rows.matrix.has_canonical_format
    np.testing.assert_array_equal(rows.matrix.toarray(), [[2.0, 1.0, 1.0, 0.0]])
    np.testing.assert_array_equal(rows.matrix.indices, [0, 1, 2])
    assert given.nnz == 6


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_matrix_whose_entries_are_not_summed_means_its_sums(driver: str) -> None:
    A = sparse.csr_array((np.ones(5), np.array([0, 0, 1, 2, 2]), np.array([0, 4, 5])), shape=(2, 3))
    plain, given = (Problem(instance()).with_rows(rows, -np.inf, [2, 1]) for rows in (A.toarray(), A))
    result = mipfs.solve(given, driver=driver)
    assert result.objective == pytest.approx(mipfs.solve(plain).objective)
    assert dict(result.rows[0]["terms"]) == {"x1": 2.0, "x2": 1.0, "x3": 1.0}
    assert A.toarray() @ [name in result.selected for name in ("x1", "x2", "x3")] == pytest.approx([2, 0])


@pytest.mark.parametrize("factor", [10.0**k for k in range(-90, 91, 12)] + [3e-8, -1e-8, -7e11])
def test_a_row_means_the_same_in_any_unit(factor: float) -> None:
    base = over([[1, 1, 1, 0], [0, 3, -2, 1]], [-np.inf, 0.0], [2.0, np.inf])
    ends = np.sort([[-np.inf, 2.0 * factor], [0.0, np.inf]] if factor > 0 else [[2 * factor, np.inf], [-np.inf, 0.0]])
    scaled = over(base.rows.matrix.toarray() * factor, ends[:, 0], ends[:, 1])
    assert selections(scaled) == selections(base)
    cost = np.array([-1.0, -3.0, -2.0, 0.5])
    assert scaled.minimise(cost)[1] == pytest.approx(base.minimise(cost)[1])


@pytest.mark.parametrize("short", [1e-4, 1e-7, 1e-10, 1e-11])
def test_a_row_missed_by_little_is_missed(short: float) -> None:
    assert len(selections(over([1, 1, 1], -np.inf, 3 - short))) == 7
    assert selections(over([1, 1, 1], 2 + short, np.inf)) == {(1, 1, 1)}
    assert over([1e-8] * 3, 2e-8 * (1 + short), np.inf, M=2).minimise(np.ones(3)) == (None, np.inf)


def test_decimals_mean_what_they_say() -> None:
    assert (1, 1) in selections(over([0.1, 0.2], -np.inf, 0.3))
    assert selections(over([0.1] * 10, 1.0, np.inf)) == {(1,) * 10}
    assert selections(over([-0.1, -0.7], -0.8, -0.8)) == {(1, 1)}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize(
    ("A", "lb", "ub", "M"),
    [
        ([[1e15, 0, 0], [0, 1, 1]], [-np.inf, -np.inf], [0, 1], None),
        ([[1, 0, 0], [0, 1, 1]], [1e20, -np.inf], [np.inf, 1], None),
        ([[1e-7] * 3], [-np.inf], [2e-7], None),
        ([[1e-8] * 3], [2.9e-8], [np.inf], 2),
        ([[1, 1, 1]], [-np.inf], [3 - 1e-7], None),
        ([[1e9, 1e9, 1]], [-np.inf], [1e9], None),
    ],
)
def test_drivers_hold_rows_that_a_solver_drops_or_bends(
    driver: str, A: list[list[float]], lb: list[float], ub: list[float], M: int | None
) -> None:
    problem = Problem(instance(), M=M).with_rows(A, lb, ub)
    values = {}
    for bits in itertools.product((0, 1), repeat=3):
        held = [sum(Fraction(a) * b for a, b in zip(row, bits, strict=True)) for row in A]
        if all(low <= one <= high for low, one, high in zip(lb, held, ub, strict=True)) and sum(bits) <= (M or 3):
            forced = (
                tuple(f"x{j + 1}" for j in range(3) if bits[j]),
                tuple(f"x{j + 1}" for j in range(3) if not bits[j]),
            )
            values[bits] = mipfs.solve(Problem(instance(), forced_in=forced[0], forced_out=forced[1])).objective
    result = mipfs.solve(problem, driver=driver)
    if not values:
        assert result.status.name == "INFEASIBLE"
        return
    assert result.objective >= min(values.values()) * (1 - 1e-6)
    assert result.bound <= min(values.values()) * (1 + 1e-9)
    assert tuple(int(f"x{j + 1}" in result.selected) for j in range(3)) in values
    if driver != "kelley":
        assert result.objective == pytest.approx(min(values.values()), rel=1e-4)


@pytest.mark.slow
def test_scip_gets_rows_that_it_can_carry() -> None:
    pytest.importorskip("pyscipopt", reason="the monolithic driver needs SCIP (extra 'scip')")
    A = [[2e-9, 1e-9, 1e-9], [0, 0, 1]]
    result = mipfs.solve(Problem(instance()).with_rows(A, -np.inf, [2e-9, 1]), "monolithic", gap=1e-6)
    other = mipfs.solve(Problem(instance()).with_rows([[2, 1, 1]], -np.inf, 2), gap=1e-6)
    assert (result.status.name, result.selected) == ("OPTIMAL", other.selected)
    assert result.objective == pytest.approx(other.objective)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("a", [1e-8, 1e-9, 1e-13])
@pytest.mark.parametrize("driver", DRIVERS)
def test_a_tiny_coefficient_of_a_wide_extra_variable_counts(driver: str, a: float) -> None:
    extra = Extras(("e",), np.array([0.0]), np.array([100 / a]), np.array([False]))
    rows = over([1, 1, 1, -a], -np.inf, 2.0, extra).rows
    free, result = mipfs.solve(Problem(instance())), mipfs.solve(Problem(instance(), rows=rows), driver=driver)
    assert result.objective >= free.objective * (1 - 1e-6)
    assert result.bound <= free.objective * (1 + 1e-9)
    assert result.extra["e"]["value"] is None or 0 <= result.extra["e"]["value"] <= 100 / a


@pytest.mark.parametrize("unit", [1e-11, 1e-3, 1.0, 1e7, 1e11])
def test_an_extra_variable_may_be_in_any_unit(unit: float) -> None:
    # x1 + x2 <= t, 2 x3 <= 3 - t, t in [0, 2]
    extra = Extras(("t",), np.zeros(1), np.array([2.0 * unit]), np.array([False]))
    got = selections(over([[1, 1, 0, -1 / unit], [0, 0, 2, 1 / unit]], -np.inf * np.ones(2), [0.0, 3.0], extra))
    assert got == {bits for bits in itertools.product((0, 1), repeat=3) if bits[0] + bits[1] <= min(2, 3 - 2 * bits[2])}


def test_integer_extra_variables_without_bounds_make_parity() -> None:
    extra = Extras(("z",), np.array([-np.inf]), np.array([np.inf]), np.array([True]))
    even = over([1, 1, 1, 1, -2], 0.0, 0.0, extra)
    assert selections(even) == {bits for bits in itertools.product((0, 1), repeat=4) if sum(bits) % 2 == 0}


def test_values_of_extra_variables_satisfy_the_rows() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        A = rng.integers(-40, 40, (3, 6)) / 10
        extra = Extras(("a", "b"), np.array([-np.inf, 0.0]), np.array([np.inf, 5.0]), np.array([False, False]))
        selection = over(A, np.array([-np.inf, 0.3, 1.1]), np.array([0.7, 0.3, np.inf]), extra)
        oracle = selection.oracle()
        for bits in itertools.product((0, 1), repeat=4):
            values = oracle.completion(np.array(bits) > 0)
            if values is not None:
                assert selection.rows.hold(np.concatenate([bits, values]))


def test_a_bound_lies_below_the_minimum_where_rows_nearly_tie() -> None:
    # HiGHS's own MILP, with presolve, claims a larger minimum.
    A = [[0.0, -0.005, 0.009, 0.001], [-400000.0, 500000.0, -300000.0, -300000.0]]
    selection, rng = over(A, [0.00500000009, -np.inf], [np.inf, -200000.0]), np.random.default_rng(5)
    allowed = [np.array(bits) for bits in itertools.product((0, 1), repeat=4) if bits[2] and not bits[1]]
    assert selections(selection) == {tuple(bits) for bits in allowed}
    oracle = selection.oracle()
    for cost in 1000 * rng.normal(size=(30, 4)):
        sigma, bound = oracle.minimise(cost)
        least = min(float(cost @ bits) for bits in allowed)
        assert sigma is not None
        assert float(cost[sigma].sum()) == pytest.approx(least)
        assert least - 1e-4 <= bound <= least + 1e-9


@pytest.mark.parametrize(
    ("A", "lb", "ub", "says"),
    [
        ([1e200, 1], -np.inf, 1.0, "row 'row1': the coefficient 1e"),
        ([1, np.nan], -np.inf, 1.0, "the coefficient nan"),
        ([1, 1e-200], -np.inf, 1.0, "the coefficient 1e-200"),
        ([1, 1], np.nan, 1.0, "the bound nan"),
        ([1, 1], np.inf, np.inf, "the bound inf"),
        ([1, 1], -np.inf, 1e200, "the bound 1e"),
    ],
)
def test_numbers_out_of_range_are_refused_by_the_name_of_their_row(
    A: list[float], lb: float, ub: float, says: str
) -> None:
    data = Instance.from_arrays(np.eye(2), np.array([1, -1]))
    with pytest.raises(RowError, match=says):
        Problem(data).with_rows(A, lb, ub)


def test_what_a_solver_cannot_carry_is_refused_by_name() -> None:
    extra = Extras(("e", "f"), np.array([-np.inf] * 2), np.array([np.inf] * 2), np.array([True, False]))
    with pytest.raises(RowError, match=r"row 'r0': the coefficient 1e-30 of 'e', which has no bounds"):
        _ = over([1, 1, 1e-30, 0], -np.inf, 1.0, extra).scaled
    empty = Extras(("e",), np.array([0.2]), np.array([0.7]), np.array([True]))
    with pytest.raises(RowError, match="integer extra variable 'e' has no value"):
        over([1, 1], 0.0, 1.0, empty)
    with pytest.raises(RowError, match="valid sparse matrix"):
        wrong = sparse.csr_array((np.ones(1), np.array([0]), np.array([0, 1])), shape=(1, 2))
        wrong.indices[0] = 7
        Rows(wrong, np.zeros(1), np.ones(1), ("r",), ("",))


def test_scaling_is_by_powers_of_two_and_terms_that_are_lost_widen_the_row() -> None:
    selection = over([[3e11, 7e-4], [1e30, 1e3]], [-np.inf, -np.inf], [3e11, 1e30])
    scaled = selection.scaled
    assert np.all(np.frexp(scaled.units)[0] == 0.5)
    np.testing.assert_array_equal(scaled.matrix.toarray()[0] / scaled.units[0], [3e11, 7e-4])
    assert scaled.matrix.toarray()[1, 1] == 0.0
    assert selections(selection) == {(0, 0), (0, 1), (1, 0), (1, 1)}


def test_a_row_that_the_solver_refuses_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    import highspy

    monkeypatch.setattr(highspy.Highs, "addRow", lambda *_: highspy.HighsStatus.kError)
    with pytest.raises(NumericalError, match="does not take over the row 'r0'"):
        selection_model(over([1, 1], 0.0, 1.0))


@pytest.mark.parametrize("driver", [*DRIVERS, "conic"])
def test_a_solver_that_fails_does_not_make_a_problem_infeasible(driver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = Problem(instance(), M=2).with_rows([1, 1, 0], 1, 2)
    mipfs.solve(problem, driver=driver)
    for status in ("failed", "infeasible", "stopped"):
        word = highs.MilpSolution(status, None, np.inf if status == "infeasible" else -np.inf)
        with monkeypatch.context() as patched:
            patched.setattr(highs, "solve", lambda *_, word=word, **__: word)
            result = mipfs.solve(problem, driver=driver)
        assert result.status.name in ("NUMERICAL", "OPTIMAL", "FEASIBLE", "NO_SOLUTION"), status
        assert not result.conflict


def test_unbounded_or_infeasible_is_decided_without_presolve() -> None:
    model = highs.HighsModel()
    model.add_column(1.0, -highs.highs_infinity(), highs.highs_infinity())
    assert highs.solve(model).status == "unbounded"
    model.set_costs(np.zeros(1))
    model.add_row(1.0, 2.0, np.arange(1), np.ones(1))
    model.add_row(3.0, 4.0, np.arange(1), np.ones(1))
    assert highs.solve(model).status == "infeasible"


@pytest.mark.slow
def test_one_problem_in_several_threads() -> None:
    case = next(c for c in map(strategies.case, itertools.count()) if "linear" in c.tags and len(c.allowed) > 10)
    problem = case.problem()
    alone, answers = mipfs.solve(problem, gap=1e-7), []

    def work() -> None:
        answers.extend(mipfs.solve(problem, driver, gap=1e-7).objective for driver in ("branch", "gbd"))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == pytest.approx([alone.objective] * 8, rel=1e-6)
    assert not any(isinstance(value, SelectionOracle) for value in vars(problem.selection).values())
    pickle.loads(pickle.dumps(problem))


@pytest.mark.parametrize("seed", range(40))
def test_badly_scaled_rows_against_fractions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p, r = int(rng.integers(2, 7)), int(rng.integers(1, 4))
    rows: list[tuple[list[Fraction], Fraction, Fraction]] = []
    for _ in range(r):
        a = [Fraction(int(k), 10 ** int(rng.integers(0, 3))) for k in rng.integers(-5, 10, p)]
        value = sum((one for one, bit in zip(a, rng.random(p) < 0.5, strict=True) if bit), Fraction(0))
        factor = Fraction(10) ** int(rng.integers(-12, 13))
        miss = Fraction(int(rng.integers(2)), 10 ** int(rng.integers(4, 10))) * max(map(abs, a))
        rows.append(([factor * one for one in a], factor * (value - 2), factor * (value - miss)))
    A = np.array([[float(one) for one in a] for a, _, _ in rows])
    selection = over(A, [float(low) for _, low, _ in rows], [float(high) for _, _, high in rows])
    allowed = {
        bits
        for bits in itertools.product((0, 1), repeat=p)
        if all(low <= sum(one for one, bit in zip(a, bits, strict=True) if bit) <= high for a, low, high in rows)
    }
    assert selections(selection) == allowed
    cost, oracle = rng.normal(size=p), selection.oracle()
    (sigma, bound), (_, relaxed) = oracle.minimise(cost), oracle.minimise_relaxed(cost)
    least = min((float(cost @ np.array(bits)) for bits in allowed), default=np.inf)
    assert (sigma is None) == (not allowed)
    assert sigma is None or float(cost[sigma].sum()) == pytest.approx(least)
    assert relaxed <= least + 1e-9
    assert bound == pytest.approx(least, abs=1e-7)
