"""The search that compares with an earlier v against the full search, and how much it leaves out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import mipfs
from mipfs import Problem
from mipfs.atoms.parts import largest
from mipfs.atoms.tree import Tree, TreeSearch
from mipfs.data.instance import Instance


def forest(r: np.random.Generator, p: int, k: int) -> np.ndarray:
    """Every feature below one of k inner nodes, and these below one another or roots."""
    parent = np.concatenate([p + r.integers(0, k, p), np.full(k, -1)])
    for g in range(1, k):
        parent[p + g] = p + r.integers(0, g) if r.random() < 0.7 else -1
    while True:
        idle = [g for g in range(p, parent.size) if g not in parent]
        if not idle:
            return parent
        parent = np.delete(parent, idle[0])
        parent[parent > idle[0]] -= 1


@pytest.mark.sampled(11)
@pytest.mark.parametrize("kind", ["dense", "integers", "sparse", "centred"])
@pytest.mark.parametrize("scaling", ["none", "norm", "random"])
def test_any_walk_of_v_gives_what_a_full_search_does(kind: str, scaling: str) -> None:
    scored = saved = 0
    for seed in range(25):
        r = np.random.default_rng([3, seed])
        n, p = int(r.integers(4, 12)), int(r.integers(5, 60))
        X = r.standard_normal((n, p)) * r.exponential(1.0, p)
        if kind == "integers":
            X = r.integers(-1, 2, (n, p)).astype(float)
        X[:, r.random(p) < 0.1] = 0.0
        y = np.resize([1.0, -1.0], n)
        stored = sparse.csc_array(np.where(r.random(X.shape) < 0.5, X, 0.0)) if kind in ("sparse", "centred") else X
        data = Instance.from_arrays(stored, y, scale="standard" if kind == "centred" else "none")
        parent = forest(r, p, int(r.integers(1, 12)))
        tree = Tree(data, parent, scaling=r.uniform(0, 2, parent.size) if scaling == "random" else scaling)
        search, v = TreeSearch(tree), r.standard_normal(n)
        for turn in range(12):
            step = r.standard_normal(n) * 10.0 ** -(turn % 6)
            v = np.round(v + step) if kind == "integers" else v + step
            for B in (1, 3):
                found, scores = search.best(v, B)
                every = tree.scores(v)
                np.testing.assert_allclose(scores, np.sort(every)[::-1][: scores.size], rtol=1e-9, atol=1e-12)
                np.testing.assert_allclose(every[found], scores, rtol=1e-9, atol=1e-12)
                if kind == "integers":  # whole numbers: ties are ties, and the order is the same
                    np.testing.assert_array_equal(found, largest(every, B) if scaling == "none" else found)
                assert search.error(v, float(scores.max(initial=0.0))) >= tree.score_error(v).max(initial=0.0) * (
                    1 - 1e-9
                )
        assert search.scored + search.saved == 24 * tree.count
        scored, saved = scored + search.scored, saved + search.saved
    assert saved > 0.05 * scored


def test_nothing_below_a_node_that_cannot_be_among_the_best_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    r = np.random.default_rng(0)
    X = 0.01 * r.standard_normal((20, 400))
    X[:, :10] *= 100.0  # the first tree of forty
    parent = np.concatenate([400 + np.arange(400) // 10, np.full(40, -1)])
    tree = Tree(Instance.from_arrays(X, np.resize([1.0, -1.0], 20)), parent)
    search, v = TreeSearch(tree), r.standard_normal(20)
    search.best(v, 3)
    assert (search.scored, search.saved) == (440, 0)
    read: list[int] = []
    squares = tree.squares
    monkeypatch.setattr(
        tree, "squares", lambda v, ids=None: read.append(400 if ids is None else ids.size) or squares(v, ids)
    )
    found, _ = search.best(v + 0.01, 3)
    assert read == [10]
    assert search.saved >= 429
    np.testing.assert_array_equal(found, tree.best(v + 0.01, 3))


def test_the_driver_says_how_many_scores_it_saved() -> None:
    r = np.random.default_rng(1)
    X = r.standard_normal((80, 300)) * np.where(np.arange(300) < 30, 1.0, 0.02)
    y = np.where(X[:, :5].sum(axis=1) + 0.5 * r.standard_normal(80) > 0, 1.0, -1.0)
    data = Instance.from_arrays(X, y)
    tree = Tree(data, {f"x{j + 1}": f"g{j // 10}" for j in range(300)})
    problem = Problem(data, loss="squared-hinge", bias=False, M=3, C=0.05, atoms=tree)
    result = mipfs.solve(problem, "kelley", gap=1e-6, restricted="proximal")
    exact = mipfs.solve(problem, "branch")
    assert result.bound <= exact.objective * (1 + 1e-9)
    assert mipfs.verify(result, data).accepted
    assert result.counters["pruned"] > result.counters["scored"]
