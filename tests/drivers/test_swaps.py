"""The swap search: it ends where no swap pays, finds what enumeration finds, and stays inside S."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import mipfs
from mipfs.drivers import gbd
from mipfs.inner.subproblem import Subproblem
from mipfs.problem import Problem
from mipfs.run.heuristics import Supports
from mipfs.run.run import Run
from mipfs.run.swaps import Swaps
from mipfs.settings import SwapSettings
from tests.climb_cases import drawn, values_of

P, M = 10, 3
LOSSES: tuple[dict[str, Any], ...] = (
    {"loss": "hinge"},
    {"loss": "squared-hinge", "bias": False},
    {"loss": "logistic", "lam": 0.05},
)


def mask(ids: tuple[int, ...]) -> npt.NDArray[np.bool_]:
    """The selection of some features."""
    sigma = np.zeros(P, dtype=bool)
    sigma[list(ids)] = True
    return sigma


def shaking(swaps: Swaps, random: np.random.Generator) -> Iterator[None]:
    """Restart as long as there is something to restart from."""
    while (yield from swaps.restarting(random)):
        pass


def begun(problem: Problem) -> tuple[Run, Swaps]:
    """A run and its search."""
    run = Run(problem, gbd.Options())
    supports = Supports(run, Subproblem(problem), tol=1e-8)
    return run, Swaps(supports, supports.pool)


def neighbours(ids: tuple[int, ...]) -> set[tuple[int, ...]]:
    """Everything one addition, drop or swap away."""
    inside, outside = set(ids), set(range(P)) - set(ids)
    found = {tuple(sorted(inside | {j})) for j in outside} | {tuple(sorted(inside - {i})) for i in inside}
    return found | {tuple(sorted(inside - {i} | {j})) for i in inside for j in outside}


@pytest.mark.sampled(7)
@pytest.mark.parametrize("given", LOSSES, ids=lambda given: given["loss"])
@pytest.mark.parametrize("rows", [False, True])
def test_it_ends_where_no_addition_drop_or_swap_pays(given: dict[str, Any], rows: bool) -> None:
    assert SwapSettings().many >= P  # every neighbour is tried, or ruled out by a cut
    for seed in range(4):
        problem = Problem(drawn(seed), M=M, C=1.0, **given)
        if rows:
            cost = np.random.default_rng(seed).integers(1, 4, P).astype(float)
            problem = problem.with_rows(cost[None, :], -np.inf, 6.0)
        values = values_of(problem)
        start = max((ids for ids in values if len(ids) == 2), key=lambda ids: values[ids])
        run, swaps = begun(problem)
        for _ in swaps.climbing(mask(start)):
            pass
        assert run.incumbent is not None
        reached = tuple(run.incumbent.selected.tolist())
        assert reached in values
        assert run.objective == pytest.approx(values[reached], rel=1e-6)
        best = min(values[ids] for ids in neighbours(reached) if ids in values)
        assert run.objective <= best * (1.0 + 1e-6)


def test_forced_features_stay_where_they_are() -> None:
    data = drawn(2)
    inside, outside = data.feature_names[0], data.feature_names[1]
    problem = Problem(data, M=M, C=1.0, forced_in=(inside,), forced_out=(outside,))
    run, swaps = begun(problem)
    start = mask((0, 8, 9))
    for _ in swaps.climbing(start):
        pass
    for _ in itertools.islice(shaking(swaps, np.random.default_rng(1)), 60):
        pass
    for key in swaps.supports.found:
        sigma = np.unpackbits(np.frombuffer(key, dtype=np.uint8), count=P).astype(bool)
        assert sigma[0]
        assert not sigma[1]
        assert sigma.sum() <= M
    assert run.objective <= min(value for ids, value in values_of(problem).items()) * 1.05


@pytest.mark.slow
def test_restarts_find_the_optimum_that_a_climb_misses() -> None:
    missed = 0
    for seed in range(8):
        problem = Problem(drawn(seed), M=M, C=5.0)
        best = min(values_of(problem).values())
        run, swaps = begun(problem)
        for _ in swaps.climbing(mask((7, 8, 9)), (1,)):
            pass
        missed += run.objective > best * (1.0 + 1e-6)
        for _ in itertools.islice(shaking(swaps, np.random.default_rng(0)), 200):
            pass
        assert run.objective == pytest.approx(best, rel=1e-6)
    assert missed > 0


def test_restarts_that_the_rows_forbid_end() -> None:
    """No exchange satisfies the row; what they need is in hand soon, and every one of them still lets others go on."""
    row = np.r_[np.ones(2), -np.ones(P - 2)][None, :]
    problem = Problem(drawn(6), M=2, C=1.0).with_rows(row, 2.0, np.inf)
    run, swaps = begun(problem)
    swaps.supports.evaluate(mask((0, 1)))
    assert sum(1 for _ in itertools.islice(shaking(swaps, np.random.default_rng(0)), 300)) == 300
    assert run.incumbent is not None
    assert run.incumbent.selected.tolist() == [0, 1]


def test_cuts_in_hand_are_below_what_they_spare() -> None:
    problem = Problem(drawn(4), M=M, C=1.0, lam=0.05)
    values = values_of(problem)
    _, swaps = begun(problem)
    for _ in swaps.climbing(mask((0, 1, 2)), (swaps.settings.few,)):
        pass
    for ids, value in values.items():
        assert swaps._lower_bound(mask(ids)) <= value * (1.0 + 1e-6)


@pytest.mark.slow
def test_the_search_is_the_same_whatever_the_threads() -> None:
    data = drawn(5, 300, 40)
    one, two = (mipfs.solve(Problem(data, M=6, C=1.0), "branch", threads=threads) for threads in (1, 2))
    assert (one.objective, one.bound, one.selected) == (two.objective, two.bound, two.selected)
    assert one.counters == two.counters


@pytest.mark.parametrize("given", LOSSES, ids=lambda given: given["loss"])
def test_a_selection_is_given_up_once_it_is_beaten_and_may_be_asked_for_again(given: dict[str, Any]) -> None:
    problem = Problem(drawn(7), M=M, C=1.0, **given)
    run, swaps = begun(problem)
    supports, values = swaps.supports, {ids: value for ids, value in values_of(problem).items() if len(ids) == M}
    worst, true = max(values.items(), key=lambda item: item[1])
    supports.evaluate(mask(min(values, key=values.__getitem__)))
    sigma, best = mask(worst), run.objective
    enough = 0.5 * (best + true)
    beaten = supports.evaluate(sigma, enough)
    assert beaten is not None
    assert enough <= beaten.lower <= true * (1.0 + 1e-9)
    assert run.objective == best
    assert not supports.was_seen(sigma)
    solves = supports.subproblem.count
    assert supports.evaluate(sigma, enough) is None
    assert supports.subproblem.count == solves
    again = supports.evaluate(sigma)
    assert again is not None
    assert again.value == pytest.approx(true, rel=1e-6)
    assert supports.was_seen(sigma)


def test_the_first_point_below_enough_is_solved_to_its_end() -> None:
    """What is asked for only ends what cannot win: a value of `enough` that is not reached changes nothing."""
    problem = Problem(drawn(8, 200), M=M, C=1.0)
    whole, part = Subproblem(problem), Subproblem(problem)
    for ids in itertools.combinations(range(6), M):
        sigma = mask(ids).astype(float)
        solved = whole.solve(sigma, 1e-8)
        asked = part.solve(sigma, 1e-8, solved.value * 1.01)
        assert asked.value == pytest.approx(solved.value, rel=2e-8)
        assert asked.value - asked.lower <= 1e-8 * asked.value
