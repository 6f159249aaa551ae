"""Every use of the earned bound outside the tree's nodes, beside exact rational arithmetic: numbers of every kind."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import mipfs
from mipfs.atoms.top import TopFeatures
from mipfs.drivers import conic
from mipfs.drivers.master import Master
from mipfs.drivers.most_violated import MostViolated
from mipfs.drivers.searched import SearchedBound
from mipfs.inner.boolean import Boolean
from mipfs.inner.boolean_node import FREE, INSIDE, OUTSIDE
from mipfs.inner.prices import Pricing
from mipfs.inner.propagation import Propagation
from mipfs.inner.rows_node import RowsRelaxation
from mipfs.kernels import bound
from mipfs.kernels import prices as kernel
from mipfs.lab.shelf import milp_master
from mipfs.proof import single
from mipfs.proof.cuts import Cut
from mipfs.proof.multipliers import lagrangian_bound_below
from mipfs.proof.proof import Proof
from mipfs.regularisers.ridge import RIDGE
from mipfs.selection.rows import Rows
from mipfs.selection.selection import Selection, lagrangian_bound
from tests.kernels.test_bound import KINDS, check, exactly, numbers

Array = npt.NDArray[np.float64]
DRAWS = 40
NO_DUAL = np.zeros(1, dtype=np.int64), 0


def said(answer: Any) -> Any:
    """A function that has one answer."""
    return lambda *_: answer


def total(terms: Any) -> Fraction:
    """Σ of numbers, exactly."""
    return sum(map(Fraction, terms), Fraction(0))


def drawn(kind: str, seed: int, rows: int | None = None) -> Iterator[Any]:
    """Cuts, penalties and sets S with forced features: `cut`, `problem`, and what is forced, free, and left of M."""
    r = np.random.default_rng([KINDS.index(kind), seed])
    for _ in range(DRAWS):
        p = int(r.integers(1, 16))
        scores, penalty = np.abs(numbers(r, kind, p)), np.abs(numbers(r, kind, p)) * r.choice([0.0, 1.0])
        scores[scores < 1e-300] = 0.0  # it has no half
        state = r.choice(3, p, p=[0.6, 0.2, 0.2])
        inside, outside = (tuple(np.flatnonzero(state == k).tolist()) for k in (1, 2))
        M = None if r.random() < 0.2 else int(r.integers(len(inside), p + 1))
        taken = Rows.empty(p) if rows is None else given(r, kind, p, rows)
        selection = Selection(p, M, inside, outside, taken)
        room = p if M is None else M - len(inside)
        g = float(r.choice([0.0, 1.0, 0.5 * scores.sum(), np.sort(scores)[-1]]))
        problem = SimpleNamespace(
            penalty=penalty,
            selection=selection,
            M=M,
            atoms=SimpleNamespace(count=p),
            data=SimpleNamespace(n_samples=1),
            weight_rows=(),
            regulariser=RIDGE,
        )
        cut = Cut(g, scores, NO_DUAL)
        yield SimpleNamespace(
            cut=cut, problem=problem, inside=list(inside), free=np.flatnonzero(state == 0).tolist(), room=room, r=r, p=p
        )


def given(r: np.random.Generator, kind: str, p: int, count: int) -> Rows:
    """Rows of integer and of uneven coefficients, some with one end."""
    A = np.where(r.random((count, p)) < 0.5, 0.0, r.choice([1.0, -2.0, 0.3, 1e5, 1e-5], (count, p)))
    low, high = np.sort(r.standard_normal((2, count)) * 3, axis=0)
    low[r.random(count) < 0.4], high[r.random(count) < 0.4] = -np.inf, np.inf
    return Rows.given(A, low, high, None, p)


def value_of(one: Any, scores: Any, penalty: Any) -> tuple[Fraction, Fraction, int]:
    """The bound of scores and penalties, exactly; every rounding that comes before the sum is of ½ s and c."""
    gain = [Fraction(s) / 2 - Fraction(c) for s, c in zip(scores, penalty, strict=True)]
    held, free = [gain[j] for j in one.inside], [gain[j] for j in one.free]
    return exactly(one.cut.constant, held, free, one.room)


@pytest.mark.parametrize("kind", KINDS)
def test_a_cut_over_a_cardinality_row(kind: str) -> None:
    for one in drawn(kind, 0):
        problem, cut = one.problem, one.cut
        exact = value_of(one, cut.slopes, problem.penalty)
        found = [conic.lower(problem, cut), conic.lower_over_hull(problem, cut)]
        pool = SimpleNamespace(constants=np.array([cut.constant]), slopes=cut.slopes[None, :])
        better = milp_master._better_evidence(None, problem, pool, 0)
        assert better is not None
        at = SimpleNamespace(problem=problem, low=np.zeros(one.p), high=np.zeros(one.p))
        at.low[one.inside] = at.high[one.inside] = at.high[one.free] = 1.0
        pricing = Pricing(problem.selection)
        priced, _ = Boolean._bound_at_prices(at, cut, pricing.none)
        for value in (*found, better[0], priced):
            check(value, *exact, times=12)


@pytest.mark.sampled(7)
@pytest.mark.parametrize("kind", KINDS)
def test_the_proof_of_one_cut(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for rows in (None, 2):
        for one in drawn(kind, 1, rows):
            cut, selection = one.cut, one.problem.selection
            monkeypatch.setattr(single, "empty_proof", lambda problem: Proof(1, problem.atoms.count))
            if rows is None:
                found = single.single(one.problem, cut, np.inf).bound
                assert found is not None
                check(found, *value_of(one, cut.slopes, one.problem.penalty), times=12)
            elif one.p <= 10 and kind in ("alike", "ties", "zeros", "negative", "steps"):
                found = single.single(one.problem, cut, np.inf).bound
                cost = [Fraction(c) - Fraction(s) / 2 for s, c in zip(cut.slopes, one.problem.penalty, strict=True)]
                for sigma in np.ndindex(*[2] * one.p):
                    chosen = np.array(sigma, dtype=bool)
                    if selection.contains(chosen):
                        least = Fraction(cut.constant) + sum((cost[j] for j in np.flatnonzero(chosen)), Fraction(0))
                        assert found is not None
                        assert Fraction(found) <= least


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("huge", "wide")])
@pytest.mark.parametrize("way", ["top", "tree", "scores", "rows"])
def test_the_most_violated_selection(way: str, kind: str) -> None:
    for one in drawn(kind, 2):
        problem, sizes, r = one.problem, np.sort(np.sqrt(one.cut.slopes))[::-1], one.r
        M, radius = int(r.integers(0, one.p + 1)), float(r.choice([0.0, 1e-9 * sizes[0], sizes[0]]))
        problem.M, count = M, int(np.count_nonzero(sizes[:M]))
        ids, g = np.arange(count), one.cut.constant
        oracle = SimpleNamespace(
            problem=problem, top=None, _search=None, _by_best=True, _count_candidates=lambda M: M, relaxation="box"
        )
        oracle._of_best = MostViolated._of_best
        if way == "top":
            exact = [(Fraction(s) + Fraction(radius)) ** 2 / 2 for s in sizes[:M]]
            oracle.top = SimpleNamespace(best=said((ids, sizes[:count])), radius=said(radius))
        else:
            squares, error = np.square(sizes), radius * radius
            exact = [(Fraction(s) + Fraction(error)) / 2 for s in squares[:M]]
            problem.atoms.scores = said(squares)
            problem.atoms.score_error = said(np.full(one.p, error))
            problem.atoms.best = said(ids)
            if way == "tree":
                oracle._search = SimpleNamespace(best=said((ids, squares[:count])), error=said(error))
        if way == "rows":
            oracle._by_best, oracle._oracle = False, problem.selection.oracle()
            scores = [Fraction(s) + Fraction(error) for s in squares]
            exact_of = value_of(one, scores, problem.penalty)
        else:
            exact_of = exactly(g, [], exact, M)
        value = MostViolated.selection_of_scores(oracle, np.zeros(1), g)[2]
        check(value, *exact_of, times=8)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("huge", "wide")])
def test_atoms_that_a_search_finds(kind: str) -> None:
    for one in drawn(kind, 3):
        squares = np.sort(one.cut.slopes)[::-1]
        radius = float(one.r.choice([0.0, 1e-9]))
        searched = SearchedBound(one.problem, None, NO_DUAL, None, one.cut.constant, one.inside, squares, radius, None)
        half = [Fraction(s) / 2 for s in squares]
        check(searched.lower, *exactly(one.cut.constant, half, [], 0), times=8)
        size = float(np.sqrt(squares[-1]) * one.r.random())
        last = min((Fraction(size) + Fraction(radius)) ** 2, Fraction(squares[-1])) / 2
        check(searched.least(size), *exactly(one.cut.constant, [*half[:-1], last], [], 0), times=8)


def rational(matrix: Any, y: Any, low: Any, high: Any) -> tuple[list[Fraction], Fraction, Fraction]:
    """A'y and y'(ends), exactly, and the magnitudes of that; a multiplier that points to no end is zero."""
    ends = np.where(y > 0, low, high).tolist()
    used = [Fraction(v) if np.isfinite(end) else Fraction(0) for v, end in zip(y.tolist(), ends, strict=True)]
    columns = matrix.toarray().T.tolist()
    pulled = [total(Fraction(a) * v for a, v in zip(column, used, strict=True)) for column in columns]
    of_rows = [v * Fraction(end) for v, end in zip(used, ends, strict=True) if v]
    return pulled, total(of_rows), total(map(abs, of_rows))


def multipliers(one: Any, count: int) -> Array:
    y = numbers(one.r, "cancelling", count) * one.r.choice([0.0, 1.0, 1e-6], count)
    return y * float(one.r.choice([1.0, max(1.0, float(one.cut.slopes.max()))]))


@pytest.mark.sampled(7)
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("huge", "wide", "tiny")])
def test_multipliers_of_rows(kind: str) -> None:
    for one in drawn(kind, 4, 3):
        selection, problem, cut, g = one.problem.selection, one.problem, one.cut, one.cut.constant
        rows, y = selection.rows, multipliers(one, 3)
        pulled, ends, far = rational(rows.matrix, y, rows.low, rows.high)
        gain = [Fraction(s) / 2 - Fraction(c) for s, c in zip(cut.slopes, problem.penalty, strict=True)]
        low, high = selection.sigma_bounds()
        priced = [a + b for a, b in zip(gain, pulled, strict=True)]
        held, free = [priced[j] for j in one.inside], [priced[j] for j in one.free]
        size = total(cut.slopes.tolist()) + total(problem.penalty.tolist()) + Fraction(abs(g))
        size += total((rows.sizes.T @ np.abs(y)).tolist())
        size += far
        room, count = one.room, one.p + 8
        cost = problem.penalty - 0.5 * cut.slopes
        without = [a - Fraction(c) for a, c in zip(pulled, cost, strict=True)]
        exact = ends + exactly(0.0, [without[j] for j in one.inside], [without[j] for j in one.free], room)[0]
        check(lagrangian_bound_below(selection, y, low, high, cost), exact, size, count, times=40)

        exact = Fraction(g) + ends + exactly(0.0, held, free, room)[0]
        pricing = Pricing(selection)
        prices = pricing.of(y)
        assert prices is not None
        assert Fraction(prices.constant) <= ends
        penalties = prices.penalties(problem.penalty)
        assert all(Fraction(a) <= Fraction(c) - b for a, b, c in zip(penalties, pulled, problem.penalty, strict=True))
        at = SimpleNamespace(problem=problem, low=low, high=high)
        check(Boolean._bound_at_prices(at, cut, prices)[0], exact, size, count, times=40)

        states = np.full(one.p, OUTSIDE, dtype=np.int8)
        states[one.inside], states[one.free] = INSIDE, FREE
        relaxation = SimpleNamespace(
            problem=problem,
            alive=np.arange(one.p),
            M=problem.M,
            scores=said((cut.constant, cut.slopes)),
        )
        cutoff = float(exact + abs(exact) / 8)
        found, goes_in, goes_out = RowsRelaxation.bound(relaxation, np.zeros(1), 0, prices, states, cutoff)
        check(found, exact, size, count, times=40)
        for j, value in [*((j, 0) for j in goes_in), *((j, 1) for j in goes_out)]:
            left = [priced[k] for k in one.free if k != j]
            if not (value == 1 and room <= 0):
                other = exactly(0.0, held + [priced[j]] * value, left, room - value)[0]
                assert Fraction(g) + ends + other >= Fraction(cutoff)

        propagation = Propagation(selection, np.arange(one.p))
        into, scratch, own = np.empty(one.p), np.empty(one.p), y.copy()
        constant = kernel.price(propagation.sides, own, problem.penalty, into, scratch)
        assert Fraction(constant) <= ends
        check(constant, ends, size, count)
        assert all(Fraction(a) <= Fraction(c) - b for a, b, c in zip(into, pulled, problem.penalty, strict=True))

        system = selection.all_rows
        wide = multipliers(one, len(system)) * np.where(np.arange(len(system)) < len(system) - 3, 1e-3, 1.0)
        value, reduced = lagrangian_bound(cost, system, low, high, wide)
        kept = np.where(np.abs(wide) * system.largest <= 1e-12 * np.abs(cost).max(initial=0.0), 0.0, wide)
        pulled, ends, _ = rational(system.matrix, kept, system.low, system.high)
        left = [Fraction(c) - b for c, b in zip(cost, pulled, strict=True)]
        exact = ends + sum((v * Fraction(low[j] if v > 0 else high[j]) for j, v in enumerate(left)), Fraction(0))
        assert Fraction(value) <= exact
        for j in range(one.p):  # the slack is room for one reduced cost at the other end of its box
            if low[j] < high[j]:
                assert Fraction(value) + abs(Fraction(reduced[j])) <= exact + abs(left[j]) or reduced[j] == 0.0


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("huge", "wide", "tiny")])
def test_combined_cuts_of_the_master(kind: str) -> None:
    """Σ μ (g − ½ s'σ) over cuts, with the shares divided by their sum: no bound lies above the best of the cuts."""
    for one in drawn(kind, 5):
        r, p, selection = one.r, one.p, one.problem.selection
        k = int(r.integers(1, 6))
        slopes, constants = np.abs(np.array([numbers(r, kind, p) for _ in range(k)])), numbers(r, kind, k)
        mu = r.random(k) + 0.6
        master = object.__new__(Master)
        master._n_rows, master._row_scales, master._idle, master._cuts = 0, np.ones(k), np.zeros(k), list(range(k))
        master.scale, master.selection, master.penalty = 1.0, selection, one.problem.penalty
        master.extra_cost = selection.rows.extra.cost
        master.pool = SimpleNamespace(slopes=slopes, constants=constants)  # type: ignore[assignment]
        master._lp = SimpleNamespace(multipliers=said(mu))  # type: ignore[assignment]
        master._model = SimpleNamespace(multipliers=said(np.zeros(len(selection.all_rows))))  # type: ignore[assignment]
        low, high = selection.sigma_bounds()
        value, _, evidence = master._safe_bound(SimpleNamespace(lb=low, ub=high))  # type: ignore[arg-type]
        assert evidence is not None
        share = [Fraction(m) / total(mu.tolist()) for m in mu.tolist()]
        g = total(a * Fraction(b) for a, b in zip(share, constants.tolist(), strict=True))
        s = [total(a * Fraction(b) for a, b in zip(share, column, strict=True)) for column in slopes.T.tolist()]
        cost = [Fraction(c) - v / 2 for c, v in zip(one.problem.penalty, s, strict=True)]
        exact = g + sum((v * Fraction(low[j] if v > 0 else high[j]) for j, v in enumerate(cost)), Fraction(0))
        size = sum((a * abs(Fraction(b)) for a, b in zip(share, constants.tolist(), strict=True)), Fraction(0))
        size += sum(s, Fraction(0)) + sum(map(Fraction, one.problem.penalty.tolist()), Fraction(0))
        check(value, exact, size, p + k, times=40)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("huge", "wide", "tiny")])
def test_the_best_cut_of_a_leaf_of_the_master(kind: str) -> None:
    for one in drawn(kind, 7):
        r, p = one.r, one.p
        k = int(r.integers(1, 6))
        slopes, constants = np.abs(np.array([numbers(r, kind, p) for _ in range(k)])), numbers(r, kind, k)
        master, sigma = object.__new__(Master), r.integers(0, 2, p).astype(np.int8)
        master._oracle = SimpleNamespace(contains=said(True))  # type: ignore[assignment]
        values = constants - 0.5 * (slopes @ sigma)
        master.penalty, master.extra_cost = one.problem.penalty, one.problem.selection.rows.extra.cost
        master.pool = SimpleNamespace(slopes=slopes, constants=constants, values=said(values))  # type: ignore[assignment]
        node: Any = SimpleNamespace(lb=sigma, bound=-np.inf, settled=False)
        master._ask_at_leaf(node, np.inf, bool)
        best = int(node.evidence.cuts[0])
        assert best == int(np.argmax(values))
        gain = [Fraction(a) / 2 - Fraction(c) for a, c in zip(slopes[best], one.problem.penalty, strict=True)]
        held = [gain[j] for j in np.flatnonzero(sigma)]
        check(node.bound, *exactly(constants[best], held, [], 0), times=8)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("huge", "wide", "tiny")])
def test_a_dual_vector_near_one_that_was_searched(kind: str) -> None:
    """At α itself, whose scores are known by the bound that they gave: the bound of another is no larger."""
    for one in drawn(kind, 8):
        total_of = float(one.cut.slopes.sum())
        oracle = SimpleNamespace(problem=one.problem, top=object.__new__(TopFeatures))
        oracle.top.largest_norm, oracle.top.largest_center = 1.0, 0.0
        zero = np.zeros(1)
        found = MostViolated._bound_near(oracle, zero, zero, 1.0, total_of, one.cut.constant)
        assert found is not None
        exact = [Fraction(one.cut.constant), -Fraction(total_of) / 2]
        check(found[2], sum(exact, Fraction(0)), sum(map(abs, exact), Fraction(0)), 2, times=8)


def plain_sum(*terms: Any) -> float:
    return float(np.hstack(terms).sum())


def plain_value(value: Any, size: Any, count: Any) -> Any:
    return value


@pytest.mark.parametrize(
    ("module", "name", "mutant"),
    [(conic, "add_down", plain_sum), (milp_master, "add_down", plain_sum), (bound, "rounded_down", plain_value)],
)
def test_a_use_without_its_slack_is_caught(
    module: Any, name: str, mutant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, name, mutant)
    monkeypatch.setattr("mipfs.selection.oracle.add_down", plain_sum)
    with pytest.raises(AssertionError, match="too large"):
        for kind in KINDS:
            test_a_cut_over_a_cardinality_row(kind)


@pytest.mark.slow
def test_the_linear_oracle() -> None:
    for kind in ("alike", "ties", "cancelling", "steps"):
        for rows in (None, 2):
            for one in drawn(kind, 6, rows):
                if one.p > 9:
                    continue
                selection, cost = one.problem.selection, numbers(one.r, kind, one.p)
                sigma, value = selection.minimise(cost)
                allowed = [s for s in np.ndindex(*[2] * one.p) if selection.contains(np.array(s, dtype=bool))]
                totals = [sum((Fraction(cost[j]) for j in range(one.p) if s[j]), Fraction(0)) for s in allowed]
                assert (sigma is None) == (not allowed)
                assert not allowed or Fraction(value) <= min(totals)
                assert not allowed or min(totals) - Fraction(value) <= Fraction(1e-8) * Fraction(np.abs(cost).sum())
                relaxed, below = selection.minimise_relaxed(cost)
                assert relaxed is None or not allowed or Fraction(below) <= min(totals)


@pytest.mark.parametrize("driver", ["branch", "gbd", "kelley"])
@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_a_limit_that_comes_at_once_leaves_what_no_dual_vector_proves(loss: str, driver: str) -> None:
    """That of the first dual vector was below 0 with the logistic loss: -4e12 by gbd, -7e-7 by branch."""
    data = mipfs.read("instances/wdbc.svm", scale="standard")
    problem = mipfs.Problem(data, M=3, C=1e4, loss=loss)
    at_least = np.zeros((1, data.n_features))
    at_least[0, :4] = 1.0
    for one in (problem, problem.with_rows(at_least, 1.0, np.inf), problem.replace(forced_in=("mean area",))):
        result = mipfs.solve(one, driver, time_limit=0.0)
        assert 0.0 <= result.bound <= result.objective
        assert mipfs.verify(result, data).accepted
