"""Searches for incumbents that go on at once: what one finds depends on what it is asked, and on nothing else."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from mipfs.drivers import gbd
from mipfs.inner.subproblem import Subproblem
from mipfs.problem import Problem
from mipfs.run.aside import Climb, SearchStrand
from mipfs.run.heuristics import Supports
from mipfs.run.run import Run
from tests.climb_cases import drawn, values_of
from tests.drivers.test_swaps import LOSSES, M, P, mask, neighbours

Work = Callable[[], None]


def begun(problem: Problem, count: int) -> tuple[Supports, list[SearchStrand]]:
    """A run whose incumbent is the worst selection of M features, and its strands."""
    supports = Supports(Run(problem, gbd.Options()), Subproblem(problem), tol=1e-8)
    values = {ids: value for ids, value in values_of(problem).items() if len(ids) == M}
    supports.evaluate(mask(max(values, key=values.__getitem__)))
    return supports, [SearchStrand(supports, is_apart=count > 1) for _ in range(count)]


def climbed(problem: Problem, count: int, most: int, order: Callable[[list[Work]], list[Work]]) -> Supports:
    """The supports of a run after a climb by strands that work in some order."""
    supports, strands = begun(problem, count)
    climb = Climb(supports.run, strands)
    while climb.goes_on():
        for work in order([partial(strand.work, lambda _: None, most) for strand in strands]):
            work()
        for strand in strands:
            strand.collect()
    return supports


@pytest.mark.sampled(3)
@pytest.mark.parametrize("given", LOSSES, ids=lambda given: given["loss"])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_climb_that_strands_share_ends_where_no_swap_improves(count: int, given: dict[str, object]) -> None:
    problem = Problem(drawn(3), M=M, C=1.0, **given)  # type: ignore[arg-type]
    values = values_of(problem)
    run = climbed(problem, count, 2, list).run
    assert run.incumbent is not None
    reached = tuple(run.incumbent.selected.tolist())
    assert run.objective == pytest.approx(values[reached], rel=1e-6)
    best = min(values[ids] for ids in neighbours(reached) if ids in values)
    assert run.objective <= best * (1.0 + 1e-6)


def test_the_order_in_which_strands_work_changes_nothing() -> None:
    problem = Problem(drawn(4, 200), M=M, C=1.0)
    first = climbed(problem, 4, 3, list)
    drawn_order = random.Random(1)
    for order in (lambda works: works[::-1], lambda works: drawn_order.sample(works, len(works))):
        again = climbed(problem, 4, 3, order)
        assert list(again.found.items()) == list(first.found.items())
        assert again.run.objective == first.run.objective
        assert again.subproblem.count == first.subproblem.count
        assert len(again.pool) == len(first.pool) > 0


def test_what_a_strand_finds_is_its_own_until_it_is_collected() -> None:
    problem = Problem(drawn(5), M=M, C=5.0)
    values = values_of(problem)
    supports, (one, other) = begun(problem, 2)
    seen, worst = set(supports.found), supports.run.objective
    one.climbs = one.own.searching(mask((7, 8, 9)), np.random.default_rng(0))
    one.work(lambda _: None, 60)
    assert one.own.supports.run.objective < worst
    assert set(supports.found) == seen
    assert supports.run.objective == worst
    assert other.own.supports.run.objective == worst
    found = dict(one.own.supports.found)
    count = supports.subproblem.count
    assert one.collect() > 0
    assert set(supports.found) == seen | set(found)
    assert supports.run.objective == one.own.supports.run.objective
    assert supports.subproblem.count > count
    assert one.collect() == 0  # nothing is taken over twice
    for key, value in found.items():
        ids = tuple(np.flatnonzero(np.unpackbits(np.frombuffer(key, dtype=np.uint8), count=P)).tolist())
        assert value.objective >= values[ids] * (1.0 - 1e-6)
        assert key in other.own.supports.found  # what the run has seen counts as seen beside it
        assert other.own.supports.found[key] == value


def test_a_selection_that_the_run_gave_up_is_given_up_beside_it() -> None:
    problem = Problem(drawn(7), M=M, C=1.0)
    values = {ids: value for ids, value in values_of(problem).items() if len(ids) == M}
    worst, true = max(values.items(), key=lambda item: item[1])
    supports = Supports(Run(problem, gbd.Options()), Subproblem(problem), tol=1e-8)
    supports.evaluate(mask(min(values, key=values.__getitem__)))
    enough = 0.5 * (supports.run.objective + true)
    assert supports.evaluate(mask(worst), enough) is not None
    beside = SearchStrand(supports, is_apart=True).own.supports
    assert beside.evaluate(mask(worst), enough) is None
    assert beside.evaluate(mask(worst)) is not None
