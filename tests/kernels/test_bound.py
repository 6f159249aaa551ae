"""The earned bound, in each of its uses, beside exact rational arithmetic: right whatever is drawn, and not loose."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from mipfs.kernels import bound, earned, node
from mipfs.kernels.propagation import FREE, INSIDE, OUTSIDE

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
u = Fraction(1, 2**53)
DRAWS = 60
KINDS = ("alike", "wide", "ties", "cancelling", "negative", "zeros", "tiny", "huge", "steps")


@dataclass
class Case:
    """A node: what the gains are taken off, gains of the forced atoms and then of the free ones, and the cutoff."""

    g: float
    gains: Array
    forced: int
    room: int
    cutoff: float

    @property
    def M(self) -> int:
        return self.forced + self.room

    @property
    def inside(self) -> Integers:
        return np.arange(self.forced)

    @property
    def free(self) -> Integers:
        return np.arange(self.forced, self.gains.size)


def exactly(g: Any, held: Any, free: Any, room: int) -> tuple[Fraction, Fraction, int]:
    """The bound, the sum of the magnitudes that enter, and how many they are."""
    best = sorted((Fraction(v) for v in free if v > 0), reverse=True)[: max(room, 0)]
    terms = [Fraction(g), *(-Fraction(v) for v in held), *(-v for v in best)]
    return sum(terms, Fraction(0)), sum(map(abs, terms), Fraction(0)), len(terms)


def check(value: float, exact: Fraction, size: Fraction, count: int, times: int = 4) -> None:
    """A value is at most the exact one, and not further below it than the stated multiple of its magnitudes."""
    assert np.isfinite(value)
    assert Fraction(value) <= exact, f"{value!r} is {float(Fraction(value) - exact)!r} too large"
    assert exact - Fraction(value) <= times * (count + 8) * u * size


def numbers(r: np.random.Generator, kind: str, k: int) -> Array:
    """Gains of a kind."""
    signs = r.choice([-1.0, 1.0], k)
    drawn: dict[str, Callable[[], Array]] = {
        "alike": lambda: r.standard_normal(k),
        "wide": lambda: signs * 10.0 ** r.uniform(-300, 300, k),
        "ties": lambda: r.integers(-2, 3, k) * 0.1,
        "cancelling": lambda: signs * r.choice([1e8, 1e8 + 1.0, 1.0, 1e-8], k) * r.uniform(0.9, 1.1, k),
        "negative": lambda: -(10.0 ** r.uniform(-3, 3, k)),
        "zeros": lambda: np.where(r.random(k) < 0.7, 0.0, r.standard_normal(k)),
        "tiny": lambda: signs * 10.0 ** r.uniform(-323, -290, k),
        "huge": lambda: signs * 10.0 ** r.uniform(290, 300, k),
        "steps": lambda: signs * (1.0 + r.integers(0, 4, k) * 2.0**-52),
    }
    return drawn[kind]()


def cases(kind: str, seed: int, draws: int = DRAWS) -> Iterator[Case]:
    """Nodes, some of them without free atoms, or without forced ones, or without room."""
    r = np.random.default_rng([KINDS.index(kind), seed])
    for _ in range(draws):
        k = int(r.integers(0, 30))
        forced = int(r.choice([0, k, r.integers(0, k + 1)]))
        room = int(r.choice([0, k - forced, r.integers(0, k + 3)]))
        gain = numbers(r, kind, k)
        exact, size, _ = exactly(0.0, gain[:forced], gain[forced:], room)
        g = float(r.choice([0.0, float(-exact), float(size), float(-exact) * (1 + 2.0**-52), 1.0]))
        value = exactly(g, gain[:forced], gain[forced:], room)[0]
        near = [float(value)] + [float(value) + abs(float(v)) for v in gain[:3]]
        cutoff = float(r.choice([np.inf, -np.inf, np.nan, *near, near[-1] * (1 + 2.0**-52)]))
        yield Case(g, gain, forced, room, cutoff)


def right(case: Case, j: int, value: int) -> bool:
    """Whether no selection of a node with σ_j = value is better than the cutoff, exactly."""
    held, free = case.gains[: case.forced].tolist(), np.delete(case.gains, [*range(case.forced), j]).tolist()
    if value == 1 and case.room <= 0:
        return True
    least = exactly(case.g, held + [case.gains[j]] * value, free, case.room - value)[0]
    return least >= Fraction(case.cutoff)


def check_node(case: Case, value: float, goes_in: Any, goes_out: Any) -> None:
    """A bound and what it fixes."""
    check(value, *exactly(case.g, case.gains[: case.forced], case.gains[case.forced :], case.room))
    fixed = [*((int(j), 0) for j in goes_in), *((int(j), 1) for j in goes_out)]
    assert not fixed or np.isfinite(case.cutoff)
    assert len({j for j, _ in fixed}) == len(fixed)
    assert all(j >= case.forced and right(case, j, other) for j, other in fixed)


def of_core(case: Case, function: Any = bound.earned) -> tuple[float, Integers, Integers]:
    order = case.forced + np.argsort(-case.gains[case.forced :], kind="stable")
    found = function(case.g, case.gains[: case.forced], case.gains[order], case.room, case.cutoff)
    return found[0], order[: found[1]], order[found[2] :]


def of_compiled(case: Case) -> tuple[float, Integers, Integers]:
    return of_core(case, earned.earned)


def of_arrays(case: Case) -> tuple[float, Integers, Integers]:
    return bound.screen_atoms(case.g, case.gains, case.inside, case.free, case.M, case.cutoff)


def of_kernel(case: Case) -> tuple[float, Integers, Integers]:
    """In a node of the compiled tree, from scores and penalties."""
    fixed, every = np.full(case.gains.size, 7, dtype=np.int8), np.arange(case.gains.size)
    scores, penalty = 2.0 * np.maximum(case.gains, 0.0), np.maximum(-case.gains, 0.0)
    case.gains = bound.gains(scores, penalty)
    found = node.node_bound(case.g, scores, penalty, every, case.forced, case.room, case.cutoff, fixed)
    assert np.all(fixed[: case.forced] == 7)
    assert set(np.unique(fixed[case.forced :])) <= {FREE, INSIDE, OUTSIDE}
    return found, np.flatnonzero(fixed == INSIDE), np.flatnonzero(fixed == OUTSIDE)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("use", [of_core, of_compiled, of_arrays, of_kernel])
def test_a_node_and_what_it_fixes(use: Any, kind: str) -> None:
    for case in cases(kind, 0):
        check_node(case, *use(case))


@pytest.mark.parametrize("kind", KINDS)
def test_compiled_nodes_are_those_of_python(kind: str) -> None:
    for case in cases(kind, 1):
        plain, compiled = of_core(case), of_compiled(case)
        assert plain[0] == compiled[0]
        assert [sorted(part) for part in plain[1:]] == [sorted(part) for part in compiled[1:]]
        in_kernel, in_python = of_kernel(case), of_arrays(case)
        assert in_kernel[0] == in_python[0]
        assert [part.tolist() for part in in_kernel[1:]] == [part.tolist() for part in in_python[1:]]


@pytest.mark.parametrize("kind", KINDS)
def test_gains_of_a_node_are_rounded_up(kind: str) -> None:
    r = np.random.default_rng(5)
    for _ in range(DRAWS):
        scores, penalty = np.abs(numbers(r, kind, 20)), numbers(r, kind, 20)
        penalty[:5] = 0.5 * scores[:5] * (1 + r.integers(-2, 3, 5) * 2.0**-52)
        scores = np.where(scores < 2.0**-1020, 0.0, scores)  # a score that underflows has no half
        for score, cost, found in zip(scores, penalty, bound.gains(scores, penalty), strict=True):
            exact = Fraction(score) / 2 - Fraction(cost)
            assert exact <= Fraction(found) <= exact + 4 * u * abs(exact)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", KINDS)
def test_the_bound_alone_and_with_each_atom(kind: str) -> None:
    for case in cases(kind, 2):
        M = None if case.room >= case.free.size and case.cutoff > 0 else case.M
        value = bound.lower(case.g, case.gains, case.inside, case.free, M)
        held, free = case.gains[: case.forced].tolist(), case.gains[case.forced :].tolist()
        found = exactly(case.g, held, free, case.room)
        check(value, *found)
        masks = np.isin(np.arange(case.gains.size), case.inside), np.isin(np.arange(case.gains.size), case.free)
        assert bound.lower(case.g, case.gains, *masks, M) == value
        each = bound.bounds_with_each_in(case.g, case.gains, case.inside, case.free, M)
        assert np.all(each[: case.forced] == value)
        for j in range(case.free.size):
            if case.room <= 0:
                assert each[case.forced + j] == np.inf
            else:
                least = exactly(case.g, [*held, free[j]], free[:j] + free[j + 1 :], case.room - 1)[0]
                check(each[case.forced + j], least, found[1] + 3 * abs(Fraction(free[j])), found[2])


@pytest.mark.parametrize("kind", KINDS)
def test_sums_are_rounded_down(kind: str) -> None:
    r = np.random.default_rng(3)
    for _ in range(DRAWS):
        terms = numbers(r, kind, int(r.integers(1, 40)))
        exact = [Fraction(v) for v in terms.tolist()]
        check(bound.add_down(*terms[:2], terms[2:]), sum(exact, Fraction(0)), sum(map(abs, exact)), len(exact))


@pytest.mark.filterwarnings("ignore:overflow")
def test_what_overflows_proves_nothing() -> None:
    assert bound.earned(1.0, [1e308, 1e308], [], 0, 5.0) == (-np.inf, 0, 0)
    assert bound.earned(1.0, [-1e308, -1e308], [1.0], 0, 5.0) == (-np.inf, 0, 1)
    assert bound.earned(np.nan, [1.0], [1.0], 1, 5.0) == (-np.inf, 0, 1)
    assert bound.add_down(1.0, np.inf) == np.inf
    assert bound.add_down(1e308, 1e308) == -np.inf
    assert bound.add_down(-np.inf, np.inf) == -np.inf
    assert bound.add_down(np.nan, 1.0) == -np.inf


# Mutants: what the checks above are worth


def without_slack(value: Any, size: Any, count: Any) -> Any:
    return value


def after_cancellation(value: Any, size: Any, count: Any) -> Any:
    return value - 2.0 * (count + 8) * bound.U * abs(value)


def untraded(value: Any, leaves: Any, enters: Any) -> Any:
    return value + leaves - enters


@pytest.mark.sampled(2)
@pytest.mark.parametrize("mutant", [without_slack, after_cancellation])
@pytest.mark.parametrize("use", [of_core, of_arrays])
def test_a_bound_without_its_slack_is_caught(use: Any, mutant: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bound, "rounded_down", mutant)
    caught = set()
    for kind in KINDS:
        for case in cases(kind, 0):
            value = use(case)[0]
            exact = exactly(case.g, case.gains[: case.forced], case.gains[case.forced :], case.room)[0]
            if Fraction(value) > exact:
                caught.add(kind)
    assert {"alike", "wide", "cancelling", "huge"} <= caught


def test_what_is_fixed_without_slack_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A large gain beside a small bound: the comparison itself rounds, up to the cutoff."""
    case = Case(0.75 * 2.0**-52, np.array([-1.0]), 0, 1, 1.0 + 2.0**-52)
    assert not right(case, 0, 1)
    assert of_core(case)[2].size == 0
    monkeypatch.setattr(bound, "trade_gains", untraded)
    assert of_core(case)[2].size == 1


def test_gains_that_are_not_rounded_up_are_caught() -> None:
    r = np.random.default_rng(5)
    scores, penalty = r.random(1000), r.random(1000)
    found = zip(scores.tolist(), penalty.tolist(), (0.5 * scores - penalty).tolist(), strict=True)
    assert any(Fraction(gain) < Fraction(s) / 2 - Fraction(c) for s, c, gain in found)
