"""What the leaves decide of single features: the bounds behind it, the result's part, and forged ones.

`python -m tests.known_features` holds hundreds of problems against enumeration.
"""

from __future__ import annotations

import copy
import itertools
import json
import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import mipfs
from mipfs.check.completions import CompletionCheck, OpenCompletions
from mipfs.check.one_more import given_each
from mipfs.check.possible import PossibleAtoms
from mipfs.check.row_by_row import RowByRow
from tests.two_checkers import second, verdicts

DATA = "instances/credit.csv"


def test_bounds_with_one_atom_more_fixed_are_the_least_over_these_selections() -> None:
    rng = np.random.default_rng(3)
    for _ in range(300):
        p = int(rng.integers(1, 6))
        M = int(rng.integers(0, p + 1))
        state = rng.choice([-1, -1, 0, 1], size=p).astype(np.int8)
        cost, base = rng.integers(-4, 4, size=p).astype(float), float(rng.integers(-3, 3))
        rooms = [s for s in itertools.product((0, 1), repeat=p) if sum(s) <= M]
        inside = np.array([s for s in rooms if np.all((state < 0) | (state == s))]).reshape(-1, p)
        if not inside.size:
            continue
        values = base + inside @ cost
        found = given_each(np.array([base]), cost[None], state[None], M)
        assert found.whole[0] == pytest.approx(values.min(), abs=1e-9)
        for j, (at, v) in itertools.product(range(p), ((found.at_zero, 0), (found.at_one, 1))):
            assert at[0, j] == pytest.approx(values[inside[:, j] == v].min(initial=np.inf), abs=1e-9)


def test_a_row_with_costs_without_an_end_says_nothing() -> None:
    found = given_each(np.array([0.0, -np.inf]), np.array([[-np.inf, 1.0]] * 2), np.array([[-1, -1]] * 2, np.int8), 2)
    assert np.all(found.whole == -np.inf)
    assert np.all(found.at_one[1] == -np.inf)


def test_rows_by_themselves_fix_what_each_of_them_implies_until_nothing_changes() -> None:
    """Against all selections that one end of one row allows."""
    rng = np.random.default_rng(5)
    fixed = emptied = known = asked = 0
    for _ in range(300):
        p, r = int(rng.integers(2, 7)), int(rng.integers(1, 4))
        M = int(rng.integers(1, p + 1))
        A = rng.integers(-2, 3, size=(r, p)).astype(float)
        lower = np.where(rng.random(r) < 0.5, -np.inf, rng.integers(-2, 3, size=r))
        upper = np.where(rng.random(r) < 0.4, np.inf, rng.integers(-1, 4, size=r))
        extra = sparse.csr_array((np.array([1.0]), ([0], [0])), shape=(r, 1)) * float(rng.random() < 0.2)
        A = sparse.csr_array(sparse.hstack([sparse.csr_array(A), extra]))
        statement: Any = SimpleNamespace(A=A, lb=lower, ub=upper, p=p, M=M)
        given = rng.choice([-1, -1, -1, 0, 1], size=(4, p)).astype(np.int8)
        row_by_row = RowByRow(statement)
        state, is_empty = row_by_row.fix(given)
        sure = row_by_row.surely_leave_some(state)
        if row_by_row.terms:
            by_zero, by_one = row_by_row._hold_without_more(given)
        dense = A.toarray()
        alone = [k for k in range(r) if dense[k, :p].any() and not dense[k, p]]
        rows = [(sign * dense[k, :p], sign * end[k]) for k in alone for sign, end in ((1, upper), (-1, lower))]
        rows += [(np.ones(p), float(M))] if rows else []
        for node in range(4):
            inside = given[node] == 1
            if not rows:
                assert np.all(sure)
                continue
            assert np.all(by_zero[node] == all(inside @ a <= end for a, end in rows))
            for j in range(p):
                more = inside | (np.arange(p) == j)
                assert by_one[node, j] == all(more @ a <= end for a, end in rows)
            wanted, left = given[node].copy(), True
            before = None
            while left and not np.array_equal(before, wanted):
                before = wanted.copy()
                for a, end in rows:
                    every = np.array(list(itertools.product((0, 1), repeat=p)), dtype=np.int8)
                    every = every[np.all((wanted < 0) | (every == wanted), axis=1)]
                    every = every[every @ a <= end]
                    left = left and len(every) > 0
                    if left:
                        wanted = np.where(np.ptp(every, axis=0) == 0, every[0], wanted).astype(np.int8)
            assert is_empty[node] == (not left)
            if left:
                np.testing.assert_array_equal(state[node], wanted)
            for value, j in itertools.product((0, 1), np.flatnonzero(state[node] < 0) if left else ()):
                further = state[[node]]
                further[0, j] = value
                leaves_some = not row_by_row.fix(further)[1][0]
                assert leaves_some or not sure[value][node, j]
                known += int(sure[value][node, j])
                asked += 1
            fixed += int(left and np.any(wanted != given[node]))
            emptied += not left
    assert min(fixed, emptied) > 50
    assert 0.7 * asked < known < asked  # the others are fixed and looked at


def test_many_vectors_rule_out_what_they_do_one_after_the_other() -> None:
    """The completions of a selection, and it itself; the minimum over what is left is that of `given_each`."""
    rng = np.random.default_rng(7)
    onlies = closed = 0
    for _ in range(2000):
        p, count = int(rng.integers(1, 6)), int(rng.integers(1, 6))
        base, cost = rng.integers(1, 4, size=count).astype(float), rng.integers(-2, 2, size=(p, count)).astype(float)
        found = OpenCompletions(1.5, np.arange(p))
        half = int(rng.integers(0, count + 1))
        for part in (slice(0, half), slice(half, count)):
            found.rule_out(base[part], (base + cost)[found.free][:, part])
        state: Any = np.full((1, p), -1, np.int8)
        is_left = True
        for k in range(count):
            given = given_each(base[k, None], cost[None, :, k], state, 1)
            is_left = is_left and bool(given.whole[0] < 1.5)
            free = state[0] < 0
            state[0, free & (given.at_zero[0] >= 1.5)] = 1
            state[0, free & (given.at_one[0] >= 1.5)] = 0
        assert is_left == (found.is_open or found.free.size > 0)
        if is_left:
            only = np.flatnonzero(state[0] == 1)
            np.testing.assert_array_equal(only, [] if found.only is None else [found.only])
            np.testing.assert_array_equal(np.flatnonzero(state[0] != 0), found.free)
        onlies, closed = onlies + (found.only is not None), closed + (not is_left)
    assert min(onlies, closed) > 100


@pytest.mark.parametrize("M", [1, 2])
def test_chains_decide_what_their_nodes_do_one_after_the_other(M: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(M)
    chains = 0
    whole = PossibleAtoms._screen_chains

    def counted(self: Any, *given: Any) -> Any:
        nonlocal chains
        found = whole(self, *given)
        chains += int(found.sum())
        return found

    for trial in range(6):
        X = 30.0 * rng.normal(size=(14, 60)) ** 3
        wide = mipfs.Instance.from_arrays(X, np.resize([1.0, -1.0], 14))
        costs = 3.0 * rng.random(60) if trial % 2 else 0.0
        problem = mipfs.Problem(wide, M=M, C=1e3 if trial < 3 else 0.01, lam=costs)
        if trial % 3 == 2:
            problem = problem.with_rows(rng.integers(1, 4, size=(1, 60)).astype(float), -np.inf, 2.0 * M, ["r"])
        with monkeypatch.context() as patched:
            patched.setattr(PossibleAtoms, "_screen_chains", counted)
            together = mipfs.solve(problem, "branch", threads=1).decided
            patched.setattr(CompletionCheck, "of", lambda *given: None)
            alone = mipfs.solve(problem, "branch", threads=1).decided
        assert together == alone is not None
    assert chains > 10


@pytest.fixture(scope="module")
def data() -> mipfs.Instance:
    return mipfs.read(DATA, scale="standard")


@pytest.fixture(scope="module")
def stopped(data: mipfs.Instance) -> Any:
    return mipfs.solve(mipfs.Problem(data, M=4, C=1.0), iteration_limit=2, gap=0.0)


def test_a_stopped_run_says_what_is_decided_and_both_checkers_recompute_it(
    data: mipfs.Instance, stopped: Any, tmp_path: Path
) -> None:
    (at_zero, nearby) = stopped.decided
    assert (at_zero.gap, nearby.gap) == (0.0, 0.01)
    assert {*nearby.every} <= {*at_zero.every} <= {*stopped.selected}
    names = [*at_zero.every, *at_zero.none, *at_zero.open]
    assert sorted(names) == sorted(data.feature_names)
    assert at_zero.of(at_zero.none[0]) == "none"
    assert "What the proof decides of the features" in stopped.summary()
    stopped.save(tmp_path / "r.json")
    loaded = mipfs.Result.load(tmp_path / "r.json")
    assert loaded.decided == stopped.decided == pickle.loads(pickle.dumps(stopped)).decided
    assert len(mipfs.verify(loaded, data, jobs=1).decided) == 2
    with pytest.raises(mipfs.UsageError, match=r"only 0, 0\.01"):
        loaded.decided_within(0.5)
    assert stopped.decided_within(0.005).gap == 0.005


def test_what_the_leaves_do_not_show_is_refused_and_so_is_what_they_do_and_is_called_open(
    data: mipfs.Instance, stopped: Any
) -> None:
    document = json.loads(stopped.to_json()) | {"certificate": stopped.claim.entry()}
    arrays, known = stopped.claim.arrays(), second().Source(Path(DATA)).data(document)

    def said(change: Any) -> tuple[str, str]:
        lie = copy.deepcopy(document)
        change(lie["decided"])
        return verdicts(lie, arrays, data, known)[:2]

    def moved(word: str, to: str, k: int) -> Any:
        return lambda decided: decided[k][to].append(decided[k][word].pop())

    assert said(lambda decided: None) == ("accepted", "accepted")
    assert said(lambda decided: decided.pop(0)) == ("accepted", "accepted")
    for lie in (
        moved("open", "every", 1),
        moved("open", "none", 1),
        moved("none", "every", 0),
        lambda decided: decided.reverse(),
        lambda decided: decided[0]["none"].pop(),
        lambda decided: decided[0].update(gap=-0.1),
        lambda decided: decided[0].update(none=None, open=None),
        lambda decided: decided[0].update(limit=1.0),
        lambda decided: decided.clear(),
    ):
        assert said(lie) == ("rejected", "rejected")
    assert said(moved("none", "open", 0)) == ("rejected", "accepted")  # an exact checker sees what rounding leaves open


def test_beside_a_unique_optimum_nothing_is_open(data: mipfs.Instance) -> None:
    result = mipfs.solve(mipfs.Problem(data, M=4, C=1.0), gap=1e-8)
    found = result.decided_within()
    assert (sorted(found.every), found.open) == (sorted(result.selected), ())


def test_a_certificate_that_is_cut_says_what_it_implies_itself(data: mipfs.Instance, tmp_path: Path) -> None:
    result = mipfs.solve(mipfs.Problem(data, M=4, C=1.0), iteration_limit=20, gap=0.0)
    with pytest.warns(mipfs.errors.CertificateWarning):
        result.save(tmp_path / "r.json", certificate_limit=0.004)
    loaded = mipfs.Result.load(tmp_path / "r.json")
    assert mipfs.verify(loaded, data, jobs=1).accepted
    assert loaded.decided is not None


def test_where_nothing_may_be_selected_all_is_decided() -> None:
    bare = mipfs.Instance.from_arrays(np.random.default_rng(0).normal(size=(12, 3)), np.repeat([-1.0, 1.0], 6))
    found = mipfs.solve(mipfs.Problem(bare, M=0, C=1.0)).decided_within()
    assert (found.every, found.none) == ((), ("x1", "x2", "x3"))


def test_nothing_is_decided_without_a_certificate(data: mipfs.Instance) -> None:
    result = mipfs.solve(mipfs.Problem(data, M=2, C=0.1), certificate=False)
    assert result.decided is None
    with pytest.raises(mipfs.UsageError, match="says nothing of single features"):
        result.decided_within()
