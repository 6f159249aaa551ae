"""The selection set against enumeration: linear minimisation, membership, smallest conflicts."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import sparse

from mipfs.data.instance import Row
from mipfs.errors import RowError
from mipfs.selection.selection import Extras, Rows, Selection

P = 6


def allowed(selection: Selection) -> list[np.ndarray]:
    """All selections of a set without extra variables, by enumeration."""
    found = []
    matrix = selection.rows.matrix.toarray()
    for bits in itertools.product([0, 1], repeat=selection.n_features):
        sigma = np.array(bits)
        activity = matrix @ sigma
        fits = np.all(activity >= selection.rows.lb - 1e-9) and np.all(activity <= selection.rows.ub + 1e-9)
        fits &= selection.M is None or sigma.sum() <= selection.M
        fits &= all(sigma[j] == 1 for j in selection.forced_in) and all(sigma[j] == 0 for j in selection.forced_out)
        if fits:
            found.append(sigma.astype(bool))
    return found


def random_selection(seed: int, with_rows: bool) -> Selection:
    r = np.random.default_rng(seed)
    count = int(r.integers(1, 4)) if with_rows else 0
    matrix = sparse.csr_array(r.integers(-2, 4, (count, P)).astype(float))
    ub = r.integers(0, 6, count).astype(float)
    lb = np.where(r.random(count) < 0.5, -np.inf, ub - r.integers(0, 4, count))
    rows = Rows(matrix, lb, ub, tuple(f"r{i}" for i in range(count)), ("",) * count)
    M = None if r.random() < 0.3 else int(r.integers(0, P + 1))
    forced = r.permutation(P)
    return Selection(P, M, tuple(forced[: int(r.integers(0, 2))]), tuple(forced[4 : 4 + int(r.integers(0, 2))]), rows)


@pytest.mark.parametrize("with_rows", [False, True])
@pytest.mark.parametrize("seed", range(25))
def test_minimise_equals_enumeration(seed: int, with_rows: bool) -> None:
    selection = random_selection(seed, with_rows)
    r = np.random.default_rng(1000 + seed)
    cost = r.standard_normal(P) * 10.0 ** r.integers(-3, 4)
    everything = allowed(selection)
    for fixed_in, fixed_out in (((), ()), ((1,), (2,))):
        chosen = [s for s in everything if all(s[j] for j in fixed_in) and not any(s[j] for j in fixed_out)]
        sigma, bound = selection.minimise(cost, fixed_in, fixed_out)
        if not chosen:
            assert sigma is None
            assert bound == np.inf
            continue
        best = min(float(cost[s].sum()) for s in chosen)
        assert sigma is not None
        assert selection.contains(sigma)
        assert float(cost[sigma].sum()) == pytest.approx(best, rel=1e-7, abs=1e-9)
        assert best - 1e-6 * max(1.0, np.abs(cost).max()) <= bound <= best + 1e-12 * max(1.0, np.abs(cost).max())
    for bits in itertools.product([False, True], repeat=P):
        assert selection.contains(np.array(bits)) == any(np.array_equal(bits, s) for s in everything)


def test_extra_variables_link_rows() -> None:
    # z integer in 0..1 with x1 + x2 <= 2 z and z + x3 <= 1: x3 excludes x1 and x2
    extra = Extras(("z",), np.array([0.0]), np.array([1.0]), np.array([True]))
    index = {f"x{j + 1}": j for j in range(3)}
    rows = Rows.of(
        [Row("link", {"x1": 1, "x2": 1, "z": -2}, -np.inf, 0.0), Row("shut", {"z": 1, "x3": 1}, -np.inf, 1.0)],
        index,
        extra,
    )
    selection = Selection(3, None, (), (), rows)
    assert selection.contains(np.array([True, True, False]))
    assert selection.contains(np.array([False, False, True]))
    assert not selection.contains(np.array([True, False, True]))
    sigma, bound = selection.minimise(np.array([-2.0, -2.0, -3.0]))
    assert sigma is not None
    np.testing.assert_array_equal(sigma, [True, True, False])
    assert bound == pytest.approx(-4.0, abs=1e-6)


def test_stack_keeps_extra_variables_apart() -> None:
    index = {"x1": 0, "x2": 1}
    one = Extras(("u",), np.zeros(1), np.ones(1), np.array([False]))
    two = Extras(("v",), np.zeros(1), np.full(1, 5.0), np.array([True]))
    first = Rows.of([Row("a", {"x1": 1, "u": 2}, 0, 1)], index, one)
    both = first.stack(Rows.of([Row("b", {"x2": 3, "v": 4}, 0, 2)], index, two))
    np.testing.assert_array_equal(both.matrix.toarray(), [[1, 0, 2, 0], [0, 3, 0, 4]])
    assert both.extra.names == ("u", "v")
    assert both.names == ("a", "b")


def test_unknown_name_in_a_row_is_named() -> None:
    with pytest.raises(RowError, match=r"row 'budget' \(d.toml\): no feature is called 'x9'"):
        Rows.of([Row("budget", {"x9": 1.0}, 0.0, 1.0, "d.toml")], {"x1": 0})


@pytest.mark.parametrize("seed", range(15))
def test_conflict_is_a_smallest_one(seed: int) -> None:
    selection = random_selection(200 + seed, True)
    while allowed(selection):
        seed += 100
        selection = random_selection(200 + seed, True)
    names = selection.conflict()
    items = [*selection.rows.names]
    items += [] if selection.M is None else ["cardinality"]
    items += [f"forced_in[x{j + 1}]" for j in selection.forced_in]
    items += [f"forced_out[x{j + 1}]" for j in selection.forced_out]
    sizes = [
        len(part)
        for size in range(len(items) + 1)
        for part in itertools.combinations(items, size)
        if not allowed(_only(selection, part))
    ]
    assert not allowed(_only(selection, names))
    assert len(names) == min(sizes)


@pytest.mark.parametrize("asked", [0, 3, 10])
def test_a_search_that_must_stop_names_a_conflict(asked: int) -> None:
    """Twenty features of which every two exclude each other, three wanted of every seven: 190 and 14 rows."""
    pairs = np.array(
        [[1.0 if j in (a, b) else 0.0 for j in range(20)] for a, b in itertools.combinations(range(20), 2)]
    )
    wanted = np.array([[1.0 if s <= j < s + 7 else 0.0 for j in range(20)] for s in range(14)])
    low, high = np.r_[np.full(190, -np.inf), np.full(14, 3.0)], np.r_[np.ones(190), np.full(14, np.inf)]
    names = tuple(f"r{k}" for k in range(204))
    selection = Selection(20, None, (), (), Rows(np.vstack([pairs, wanted]), low, high, names, names))
    calls = itertools.count()
    found = selection.conflict(lambda: next(calls) >= asked)
    kept = selection.rows.take([k for k, name in enumerate(names) if name in found])
    assert Selection(20, None, (), (), kept).minimise(np.zeros(20))[0] is None
    assert next(calls) <= asked + 3
    assert asked > 0 or len(found) == 204


def _only(selection: Selection, names: tuple[str, ...]) -> Selection:
    kept = [i for i, name in enumerate(selection.rows.names) if name in names]
    return Selection(
        P,
        selection.M if "cardinality" in names else None,
        tuple(j for j in selection.forced_in if f"forced_in[x{j + 1}]" in names),
        tuple(j for j in selection.forced_out if f"forced_out[x{j + 1}]" in names),
        selection.rows.take(kept),
    )


def test_no_conflict_where_something_is_allowed() -> None:
    assert Selection(3, 1, (0,), (1,), Rows.empty(3)).conflict() == ()
    assert Selection(3, 0, (0,), (), Rows.empty(3)).conflict() == ("cardinality", "forced_in[x1]")
