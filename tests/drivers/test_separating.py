"""Rows that a separator finds during the search: they hold for S, are broken, restrict nothing, and are proven."""

from __future__ import annotations

import itertools
import json
import signal
import sys
import time
import types
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mipfs
from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.problem import Problem
from mipfs.result.result import Status
from mipfs.result.status import StopReason
from mipfs.selection.derived import ChvatalGomory, derived_bytes, derived_of
from mipfs.selection.selection import Extras, Rows
from mipfs.separators import SEPARATORS
from mipfs.separators.covers import separate
from mipfs.settings import BranchSettings, SeparationSettings
from tests.oracles import brute_force
from tests.two_checkers import data_of, remembered, verdicts, written

P = 9


def budgeted(seed: int, p: int = P, n: int = 40, M: int | None = 5, **more: Any) -> Problem:
    """A problem with a budget, and a second row that asks for something."""
    r = np.random.default_rng([62, seed])
    X = r.normal(size=(n, p))
    y = np.where(X[:, :4].sum(axis=1) + 1.5 * r.normal(size=n) > 0.0, 1, -1)
    costs = r.integers(3, 40, p) / 8.0
    A = np.array([costs, -np.round(r.uniform(0.5, 2.0, p), 2)])
    given = Problem(Instance.from_arrays(X, y), M=M, **({"C": 1.0} | more))
    return given.with_rows(A, -np.inf, [float(0.35 * costs.sum()), -0.5])


def allowed(problem: Problem) -> list[list[int]]:
    """All selections of S."""
    p = problem.atoms.count
    each = itertools.chain.from_iterable(itertools.combinations(range(p), k) for k in range((problem.M or p) + 1))
    return [[*s] for s in each if problem.selection.contains(np.isin(np.arange(p), s))]


@pytest.mark.sampled(13)
@pytest.mark.parametrize("seed", range(12))
def test_covers_hold_for_all_selections_and_are_broken(seed: int) -> None:
    """Of relaxations at random costs, which are where a cut is asked for; Σ over C ≤ |C| − 1 on every selection."""
    problem, r = budgeted(seed, M=None), np.random.default_rng(seed)
    rows, count, every = problem.selection.rows, 0, allowed(problem)
    for _ in range(10):
        costs = rows.matrix[[0]].toarray().ravel()
        order = np.argsort(-r.uniform(0.5, 1.5, P) / costs)
        sigma, left = np.zeros(P), float(rows.ub[0])
        for j in order:  # the greedy of the fractional knapsack
            sigma[j] = min(1.0, left / costs[j])
            left -= sigma[j] * costs[j]
        for one in separate(problem.selection.given, sigma):
            terms, end = one.derived(problem.selection.given)
            assert sum(value * sigma[j] for j, value in terms.items()) > end
            for chosen in every:
                assert sum(terms.get(j, 0) for j in chosen) <= end
            count += 1
            (back,) = derived_of(derived_bytes([one]))
            assert back.derived(problem.selection.given) == (terms, end)
    assert count > 0


@pytest.mark.sampled(13)
@pytest.mark.parametrize("loss", ["hinge", "logistic"])
@pytest.mark.parametrize("seed", range(6))
def test_the_answer_is_that_of_all_selections_and_both_checkers_derive_the_rows(seed: int, loss: str) -> None:
    with remembered():
        problem = budgeted(seed, loss=loss)
    data, known = problem.data, data_of(problem.data)
    best = brute_force(
        data.X, data.y, problem.c_i, [*map(frozenset, allowed(problem))], problem.penalty, True, loss=loss
    ).value.upper
    found = mipfs.solve(problem, "branch", gap=1e-6, separate="covers")
    assert found.status is Status.OPTIMAL
    assert found.objective == pytest.approx(best, rel=1e-6)
    assert found.bound <= best * (1 + 1e-8)
    pair = written(found)
    assert pair is not None
    document, arrays = json.loads(pair[0]), pair[1]
    assert verdicts(document, arrays, data, known)[:2] == ("accepted", "accepted")
    derived = document["certificate"].get("derived", [])
    for at in range(len(derived)):  # a row that does not follow is refused by both
        forged = [{**one, "ub": one["ub"] - (k == at)} for k, one in enumerate(derived)]
        lie = {**document, "certificate": {**document["certificate"], "derived": forged}}
        assert verdicts(lie, arrays, data, known)[:2] == ("rejected", "rejected")


@pytest.mark.slow
def test_covers_are_found_below_the_root() -> None:
    """There σ is near to 0 and 1: at the root it is spread over many features, and breaks few covers."""
    below = 0
    for seed in (100, 102):
        problem = budgeted(seed, p=24, n=60, M=None, C=0.5)
        whole = mipfs.solve(problem, "branch", gap=1e-6, separate="covers")
        alone = mipfs.solve(problem, "branch", gap=1e-6)
        assert whole.objective == pytest.approx(alone.objective, rel=2e-6)
        assert mipfs.verify(whole, problem.data).accepted
        assert whole.claim is not None
        below += len(whole.claim.entry().get("derived", []))
    assert below > 0


@pytest.mark.slow
def test_a_run_that_was_stopped_goes_on_with_its_rows(tmp_path: Path) -> None:
    problem = budgeted(3, p=26, n=60, M=None, C=0.5)
    options: dict[str, Any] = {"gap": 1e-6, "separate": "covers", "branching": "pseudo-costs"}
    whole = mipfs.solve(problem, "branch", **options)
    state = tmp_path / "state"
    mipfs.solve(problem, "branch", iteration_limit=20, checkpoint=state, **options)
    found = mipfs.solve(problem, "branch", resume=state, **options)
    assert found.status is Status.OPTIMAL
    assert found.objective == whole.objective
    assert found.counters["nodes"] == whole.counters["nodes"]
    assert mipfs.verify(found, problem.data).accepted


def test_what_has_nothing_to_separate_is_refused_by_name() -> None:
    problem = budgeted(0)
    plain = Problem(problem.data, M=3)
    with pytest.raises(UsageError, match="separate is for problems with rows"):
        mipfs.solve(plain, "branch", separate="covers")
    with pytest.raises(UsageError, match="separate = 'cover' is not known; it is one of covers"):
        mipfs.solve(problem, "branch", separate="cover")
    with pytest.raises(UsageError, match="separate takes all atoms at once"):
        mipfs.solve(problem, "branch", separate="covers", active=("x1",))
    with pytest.raises(UsageError, match="nodes = 'conic' knows no rows that are separated"):
        mipfs.solve(problem, "branch", separate="covers", nodes="conic")
    extra = Rows(
        np.append(np.ones(P), -1.0)[None], np.array([-np.inf]), np.array([2.0]), ("r",), ("",),
        Extras(("z",), np.array([0.0]), np.array([2.0]), np.array([False])),
    )  # fmt: skip
    with pytest.raises(UsageError, match="separate takes no extra variables"):
        mipfs.solve(plain.replace(rows=extra), "branch", separate="covers")


def entered(monkeypatch: pytest.MonkeyPatch, asked: Any) -> None:
    """A separator of the name "own"."""
    module = types.ModuleType("own_separator")
    module.separate = asked  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "own_separator", module)
    monkeypatch.setitem(SEPARATORS, "own", "own_separator")


def test_a_separator_that_writes_into_the_set_changes_no_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = budgeted(2)
    before = mipfs.solve(problem, "branch")

    def writes(selection: Any, sigma: Any) -> Any:
        selection.rows.high[:] = 0.0
        selection.rows.ub[:] = 0.0
        selection.rows.matrix.data[:] = 7.0
        sigma[:] = 1.0
        return []

    entered(monkeypatch, writes)
    for separate_by in ("own", None):
        found = mipfs.solve(problem, "branch", separate=separate_by)
        assert (found.status, found.objective) == (Status.OPTIMAL, pytest.approx(before.objective, rel=1e-12))
        assert mipfs.verify(found, problem.data).accepted


def test_what_a_separator_yields_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = budgeted(2)
    entered(monkeypatch, lambda selection, sigma: [(1, 2)])
    with pytest.raises(UsageError, match="it yields derivations"):
        mipfs.solve(problem, "branch", separate="own")
    entered(monkeypatch, lambda selection, sigma: None)
    assert mipfs.solve(problem, "branch", separate="own").status is Status.OPTIMAL
    entered(monkeypatch, None)
    with pytest.raises(UsageError, match="has no function separate"):
        mipfs.solve(problem, "branch", separate="own")


def row_of(problem: Problem) -> ChvatalGomory:
    """A row that follows from the first of the user's."""
    return ChvatalGomory({0: Fraction(1, 100)})


@pytest.mark.parametrize("ending", ["cap", "time", "signal"])
def test_a_separator_without_end_is_cut_off(monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    """By how many derivations are looked at, by the time limit, and by a signal, each of them alone."""
    problem, yielded = budgeted(2), [0]

    def endless(selection: Any, sigma: Any) -> Any:
        while yielded[0] < 300_000:  # a test that fails ends too
            yielded[0] += 1
            if ending == "signal" and yielded[0] == 2000:
                time.sleep(1.0)  # beyond the patience with a first step
                signal.raise_signal(signal.SIGTERM)
            yield row_of(problem)

    entered(monkeypatch, endless)
    mipfs.solve(problem, "branch")  # kernels are met
    few = SeparationSettings(looked_at=50 if ending == "cap" else 10**9)
    limit = 0.5 if ending == "time" else None
    found = mipfs.solve(
        problem, "branch", separate="own", threads=1, time_limit=limit, settings=BranchSettings(separation=few)
    )
    if ending == "cap":
        assert found.status is Status.OPTIMAL
        assert yielded[0] % 50 == 0
    else:
        expected = StopReason.TIME_LIMIT if ending == "time" else StopReason.INTERRUPTED
        assert found.stop_reason is expected
        assert 0 < yielded[0] < 300_000
    assert found.counters["rows_added"] == 0
    assert mipfs.verify(found, problem.data).accepted


def test_a_separator_that_fails_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = budgeted(2)

    def alone(selection: Any) -> Any:
        return []

    def late(selection: Any, sigma: Any) -> Any:
        yield row_of(problem)
        raise KeyError("x")

    for asked, message in ((alone, "TypeError: .*takes 1 positional"), (late, "KeyError: 'x'"), (lambda *_: 3, "iter")):
        entered(monkeypatch, asked)
        with pytest.raises(UsageError, match=rf"separate = 'own': separate\(selection, sigma\) of .*: .*{message}"):
            mipfs.solve(problem, "branch", separate="own")


def test_a_derivation_that_does_not_fit_names_the_separator(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = budgeted(2)
    for one, message in (
        (ChvatalGomory({99: Fraction(1)}), "a derived row has a multiplier of row 99 at an end that it does not have"),
        (ChvatalGomory({0: Fraction(1)}, bounds={0: Fraction(-1)}), "a derived row has a negative multiplier"),
        ("a row", "the separator yields 'a row'"),
    ):
        entered(monkeypatch, lambda selection, sigma, one=one: [one])
        with pytest.raises(UsageError, match=f"separate = 'own': {message}"):
            mipfs.solve(problem, "branch", separate="own")


def test_the_rows_that_were_added_are_counted() -> None:
    problem = budgeted(2, p=24, n=60, M=None, C=0.5)
    found = mipfs.solve(problem, "branch", separate="covers")
    assert found.claim is not None
    assert found.counters["rows_added"] >= len(found.claim.entry().get("derived", []))
    assert "rows_added" not in mipfs.solve(problem, "branch", iteration_limit=1).counters
