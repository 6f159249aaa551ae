"""The pruned search of a tree against exhaustive search, and what a tree must look like."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from mipfs.atoms.parts import largest
from mipfs.atoms.tree import Tree
from mipfs.data.instance import Instance
from mipfs.errors import UsageError


def random_tree(seed: int) -> tuple[Instance, np.ndarray, np.ndarray]:
    """Data with zero and duplicate columns, often of few integers (ties), and a forest of long and short branches."""
    r = np.random.default_rng(seed)
    n, p, k = int(r.integers(3, 12)), int(r.integers(1, 40)), int(r.integers(0, 25))
    X = r.integers(-1, 2, (n, p)).astype(float) if r.random() < 0.6 else r.standard_normal((n, p)) * r.exponential(2, p)
    X[:, r.random(p) < 0.2] = 0.0
    X[:, p // 2] = X[:, 0]
    y = np.resize([1.0, -1.0], n)
    data = Instance.from_arrays(sparse.csc_array(X) if r.random() < 0.5 else X, y)
    places = r.permutation(k)  # the order of the inner nodes says who may be above whom, not their numbers
    parent = np.full(p + k, -1)
    for rank in range(1, k):
        if r.random() < 0.9:
            low = 0 if r.random() < 0.7 else max(0, rank - 2)
            parent[p + places[rank]] = p + places[r.integers(low, rank)]
    if k:
        parent[:p] = np.where(r.random(p) < 0.9, p + r.integers(0, k, p), -1)
        while True:  # nodes without a feature below them go
            idle = [g for g in range(p, parent.size) if g not in parent]
            if not idle:
                break
            parent = np.delete(parent, idle[0])
            parent[parent > idle[0]] -= 1
    return data, X, parent


def groups_of(parent: np.ndarray, p: int) -> list[list[int]]:
    """The features below every node, by walking up from every feature."""
    below: list[list[int]] = [[] for _ in parent]
    for j in range(p):
        node = j
        while node >= 0:
            below[node].append(j)
            node = int(parent[node])
    return below


@pytest.mark.sampled(7)
@pytest.mark.parametrize("scaling", ["none", "norm", "random"])
def test_pruned_search_is_exhaustive_search(scaling: str) -> None:
    passed_over = 0
    for seed in range(150):
        data, X, parent = random_tree(seed)
        r = np.random.default_rng(1000 + seed)
        p = data.n_features
        factor = r.uniform(0, 2, parent.size) if scaling == "random" else scaling
        tree = Tree(data, parent, scaling=factor)
        below = groups_of(parent, p)
        v = r.integers(-2, 3, data.n_samples).astype(float)
        by_hand = np.array([tree.scale[g] ** 2 * np.sum((X[:, ids].T @ v) ** 2) for g, ids in enumerate(below)])
        scores = tree.scores(v)
        np.testing.assert_allclose(scores, by_hand, rtol=1e-12, atol=1e-12)
        for B in (0, 1, 2, 5, parent.size, parent.size + 3):
            before = tree.pruned
            found = tree.best(v, B)
            # The order of a sum may differ, but not what the search itself computes.
            ranked = [g for g in np.lexsort((np.arange(parent.size), -scores)) if scores[g] > 0]
            assert found.tolist() == ranked[:B]
            assert tree.pruned == before + tree.last_pruned
            passed_over += tree.last_pruned
        columns = tree.columns(found)
        for at, g in enumerate(found):
            assert sorted(columns.ids[columns.atom == at].tolist()) == below[g]
            assert np.all(columns.scale[columns.atom == at] == tree.scale[g])
        assert tree.sizes.tolist() == [len(ids) for ids in below]
    assert passed_over > 1000


def test_only_the_path_to_the_best_nodes_is_looked_at() -> None:
    depth = 12  # a full binary tree over 4096 features, one of which matters
    p = 2**depth
    X = np.zeros((2, p))
    X[:, 1234] = 1.0, -1.0
    X += 1e-3 * np.random.default_rng(0).standard_normal(X.shape)
    k = p - 1  # heap order: the root is inner node 0, the parent of i is (i − 1) // 2
    heap = np.arange(k + p)
    parent = np.concatenate([p + (heap[k:] - 1) // 2, np.where(heap[:k] == 0, -1, p + (heap[:k] - 1) // 2)])
    tree = Tree(Instance.from_arrays(X, [1, -1]), parent)
    v = np.array([0.5, -0.5])
    found = tree.best(v, depth + 1)
    path, node = [], 1234
    while node >= 0:
        path.append(node)
        node = int(parent[node])
    np.testing.assert_array_equal(found, path[::-1])
    np.testing.assert_array_equal(found, largest(tree.scores(v), depth + 1))
    assert tree.last_pruned == tree.count - tree.visited
    assert tree.visited < 2**6 < tree.count // 100


def test_a_subtree_of_the_very_best_score_so_far_is_kept() -> None:
    """Strictly less, as in Proposition 2: features 0 and 1 tie, and the lower id lies deeper."""
    data = Instance.from_arrays(np.array([[1.0, 1.0], [-1.0, -1.0]]), [1, -1])
    tree = Tree(data, {"x1": "a", "a": "b"})
    v = np.array([1.0, -1.0])
    assert tree.names == ("x1", "x2", "a", "b")
    assert [tree.names[g] for g in tree.best(v, 1)] == ["x1"]
    assert [tree.names[g] for g in tree.best(v, 3)] == ["x1", "x2", "a"]


def test_by_name_and_by_position_are_the_same_tree() -> None:
    r = np.random.default_rng(3)
    data = Instance.from_arrays(r.standard_normal((8, 5)), np.resize([1, -1], 8))
    named = Tree(data, {"x1": "left", "x3": "left", "x2": "right", "left": "top", "right": "top"}, scaling="norm")
    placed = Tree(data, [5, 6, 5, -1, -1, 7, 7, -1], names=["left", "right", "top"], scaling="norm")
    v = r.standard_normal(8)
    assert named.names == placed.names == ("x1", "x2", "x3", "x4", "x5", "left", "right", "top")
    np.testing.assert_array_equal(named.scores(v), placed.scores(v))
    np.testing.assert_array_equal(named.columns([7, 3]).ids, [0, 2, 1, 3])
    assert named.overlapping
    alone = Tree(data, {})
    assert not alone.overlapping
    np.testing.assert_allclose(alone.scores(v), (data.X.T @ v) ** 2)


def test_zero_columns_below_a_node_are_never_looked_at() -> None:
    X = np.zeros((2, 6))
    X[:, 5] = 1.0, 2.0
    tree = Tree(Instance.from_arrays(X, [1, -1]), dict.fromkeys(["x1", "x2", "x3", "x4"], "idle"), scaling="norm")
    assert tree.best(np.ones(2), 9).tolist() == [5]
    assert tree.last_pruned == 4
    assert tree.best(np.zeros(2), 9).size == 0


@pytest.mark.parametrize(
    ("parents", "names", "message"),
    [
        ({"x1": "x2"}, None, "'x2' is a feature and cannot be the parent of 'x1'; features are leaves"),
        ({"x1": "a", "b": "a"}, None, "'b' is neither a feature nor the parent of one"),
        ({"x1": "a", "a": "b", "b": "a"}, None, "node '[ab]' is its own ancestor"),
        ({"a": "a"}, None, "node 'a' is its own ancestor"),
        ([3, -1, -1, -1, -1], None, "node 'node2' has no feature below it"),
        ([3, -1], None, "parents must be integers, one for each of the 3 features"),
        ([0.5, -1, -1], None, "parents must be integers"),
        ([1, -1, -1], None, "the parent of node 0 is 1; it is -1 or from 3 to 2"),
        ([3, 3, 4, -1], None, "the parent of node 2 is 4; it is -1 or from 3 to 3"),
        ([3, -1, -1, -1], ["a", "b"], "2 names for 1 inner nodes"),
        ([3, -1, -1, -1], ["x2"], "node 'x2' has the name of a feature or of another node"),
        ([3, 4, -1, -1, -1], ["a", "a"], "node 'a' has the name of a feature or of another node"),
    ],
)
def test_refused(parents: object, names: list[str] | None, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Tree(Instance.from_arrays(np.eye(3), [1, -1, 1]), parents, names=names)
