"""The second checker's measures and made columns, against other ways to compute them."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, permutations, product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.polynomial.hermite import hermgauss
from scipy.interpolate import BSpline
from sklearn.metrics import average_precision_score, f1_score, fbeta_score, precision_score, recall_score, roc_auc_score

from tests import two_checkers

second = two_checkers.second()
NAMES = ("error", "f1", "fbeta", "precision-at-k", "recall-at-k", "prbep", "roc-auc", "average-precision")


def measure(name: str, y: list[int], **params: object) -> Any:
    stated = SimpleNamespace(
        y=y, bias=False, bounds={}, single=True, far=False, data=SimpleNamespace(weights=[1.0] * len(y)), C=Fraction(1)
    )
    more: dict[str, object] = {"measure": name} | ({"beta": 0.7} if name == "fbeta" else {})
    return second.Measure(stated, more | params)


def labellings(name: str, y: list[int], k: int) -> list[list[int]]:
    """All rows of counts: mislabelled samples, or of every order what stands on the wrong side."""
    if name in second.TABLES:
        found = []
        for guess in product((-1, 1), repeat=len(y)):
            if name in ("error", "f1", "fbeta") or guess.count(1) == k:
                found.append([int(a != b) for a, b in zip(guess, y, strict=True)])
        return found
    rows = set()
    for order in permutations(range(len(y))):  # the first is ranked highest
        place = {i: r for r, i in enumerate(order)}
        rows.add(
            tuple(
                sum(y[j] != y[i] and (place[j] < place[i]) == (y[i] > 0) for j in range(len(y))) for i in range(len(y))
            )
        )
    return [list(row) for row in rows]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", range(6))
def test_the_loss_at_given_scores_is_the_largest_over_all_labellings(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    y = [1, 1, -1, -1, -1, 1][: 5 + seed % 2]
    at_k = {"k": 1 + seed % 4} if name.endswith("-at-k") and seed else {}
    found, k = measure(name, y, **at_k), at_k.get("k", y.count(1))
    pairs = y.count(1) * y.count(-1) if name in second.ORDERS else len(y)
    for size in (0.01, 0.3, 3.0):
        scores = [Fraction(float(v)) for v in rng.normal(size=len(y)) * size]
        best = max(
            found.lost(row) - Fraction(2, pairs) * sum(a * c * f for a, c, f in zip(y, row, scores, strict=True))
            for row in labellings(name, y, k)
        )
        assert abs(found.loss(scores) - max(best, 0)) <= Fraction(1, 2**150)


@pytest.mark.sampled(11)
@pytest.mark.parametrize("name", NAMES)
def test_what_a_labelling_loses_is_what_scikit_learn_says(name: str) -> None:
    y = [1, -1, 1, -1, -1, 1]
    found, truth = measure(name, y), [v > 0 for v in y]
    if name in second.TABLES:
        for guess in product((False, True), repeat=6):
            if name not in ("error", "f1", "fbeta") and sum(guess) != 3:
                continue
            counts = [int(a != b) for a, b in zip(guess, truth, strict=True)]
            scored = {
                "error": lambda g: float(np.mean(np.array(g) == truth)), "f1": lambda g: f1_score(truth, g),
                "fbeta": lambda g: fbeta_score(truth, g, beta=0.7),
                "precision-at-k": lambda g: precision_score(truth, g), "recall-at-k": lambda g: recall_score(truth, g),
                "prbep": lambda g: precision_score(truth, g),
            }[name](list(guess))  # fmt: skip
            assert float(found.lost(counts)) == pytest.approx(1 - scored, abs=1e-12)
        return
    for order in permutations(range(6)):
        scores = [-order.index(i) for i in range(6)]
        counts = [sum(y[j] != y[i] and (scores[j] > scores[i]) == (y[i] > 0) for j in range(6)) for i in range(6)]
        scored = (roc_auc_score if name == "roc-auc" else average_precision_score)(truth, scores)
        assert float(found.lost(counts)) == pytest.approx(1 - scored, abs=1e-12)


def test_counts_that_no_labelling_or_order_has_are_refused() -> None:
    y = [1, -1, 1, -1, -1, 1]
    for name, counts in (
        ("f1", [2, 0, 0, 0, 0, 0]), ("prbep", [1, 0, 0, 0, 0, 0]), ("error", [-1, 0, 0, 0, 0, 0]),
        ("roc-auc", [4, 1, 0, 1, 1, 0]), ("roc-auc", [1, 0, 0, 0, 0, 0]), ("average-precision", [3, 1, 0, 1, 0, 0]),
    ):  # fmt: skip
        with pytest.raises(second.Rejected):
            measure(name, y).lost(counts)


@pytest.mark.parametrize("N", [3, 5, 21, pytest.param(101, marks=pytest.mark.slow)])
def test_nodes_of_hermite_are_those_of_numpy(N: int) -> None:
    nodes, weights = hermgauss(N)
    keep = nodes > -1e-9
    found = second.hermite(N)
    assert np.allclose([t for t, _ in found], np.abs(nodes[keep]), rtol=1e-12, atol=1e-12)
    assert np.allclose([u for _, u in found], weights[keep] / np.sqrt(np.pi), rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("degree", range(5))
def test_splines_are_those_of_scipy(degree: int) -> None:
    rng = np.random.default_rng(degree)
    b = np.sort(rng.normal(size=6)).tolist()
    t = [b[0] - (b[1] - b[0]) * k for k in range(degree, 0, -1)] + b
    t += [b[-1] + (b[-1] - b[-2]) * k for k in range(1, degree + 1)]
    for x in rng.uniform(b[0], b[-1], 50):
        found = second.splines_at(float(x), t, degree, len(b))
        wanted = [float(BSpline(t, np.eye(len(t) - degree - 1)[i], degree)(x)) for i in range(len(t) - degree - 1)]
        assert found == pytest.approx(wanted, abs=1e-12)


def test_columns_and_scores_of_additive_hik_are_those_of_the_kernel() -> None:
    rng = np.random.default_rng(2)
    for _ in range(20):
        column = np.round(rng.gamma(1.0, size=12), 1).tolist()
        options = {"levels": [None, 5][int(rng.integers(2))], "shift": bool(rng.integers(2))}
        part = second.Intersection(options, [column]).part(column, None)
        kernel = np.minimum.outer(part.values, part.values)
        columns = np.array(part.columns)
        assert np.allclose(columns.T @ columns, kernel, atol=1e-12)
        v = [int(k) for k in rng.integers(-50, 50, 12)]
        exact = sum(a * b * Fraction(min(x, z)) for a, x in zip(v, part.values, strict=True)
                    for b, z in zip(v, part.values, strict=True))  # fmt: skip
        assert part.score(v, []) == exact


@pytest.mark.parametrize(("name", "kernel"), [
    ("additive-chi2", lambda a, b: 2 * a * b / (a + b)), ("additive-intersection", min),
    ("additive-jensen-shannon", lambda a, b: (a * np.log2((a + b) / a) + b * np.log2((a + b) / b)) / 2),
])  # fmt: skip
def test_homogeneous_columns_come_near_their_kernel(name: str, kernel: Any) -> None:
    column = [0.2, 0.5, 1.0, 1.7, 3.0]
    made = second.Homogeneous(name, {"steps": 50, "interval": 0.05, "shift": False}, [column])
    if name == "additive-intersection":  # whose spectrum falls like 1/f²
        made = second.Homogeneous(name, {"steps": 50, "interval": 0.4, "shift": False}, [column])
    columns = np.array(made.part(column, None).columns)
    for (i, a), (k, b) in combinations(enumerate(column), 2):
        assert columns[:, i] @ columns[:, k] == pytest.approx(float(kernel(a, b)), abs=0.05)


def test_additive_gaussian_comes_near_its_kernel() -> None:
    column = [-1.0, 0.0, 0.4, 1.5]
    columns = np.array(second.Gaussian({"pairs": 10, "width": 1.3, "seed": None}).part(column, None).columns)
    for (i, a), (k, b) in combinations(enumerate(column), 2):
        assert columns[:, i] @ columns[:, k] == pytest.approx(np.exp(-((a - b) ** 2) / (2 * 1.3**2)), abs=1e-9)


@pytest.mark.parametrize(("degree", "r"), [(2, 0.0), (2, 0.5), (3, 1.0), (3, 0.0)])
def test_products_are_the_monomials_of_the_kernel(degree: int, r: float) -> None:
    rng = np.random.default_rng(degree)
    X, gamma = rng.normal(size=(5, 3)), 0.7
    one = object.__new__(second.Products)
    one.degree, one.gamma, one.r, one.raw = degree, Fraction(gamma), Fraction(r), SimpleNamespace(y=[1] * 5)
    one.scaled = X.T.tolist()
    parts = set()
    for choice in product(range(4 if r else 3), repeat=degree):
        parts.add(tuple(sorted(j for j in choice if j < 3)))
    columns = np.array([one.column(part) for part in sorted(parts)])
    assert np.allclose(columns.T @ columns, (gamma * X @ X.T + r) ** degree)
