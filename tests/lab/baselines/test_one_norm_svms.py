"""ONSVM, LPSVM by Newton and FSV against their programs in CVXPY, and what makes their supports of a wanted size."""

from __future__ import annotations

import warnings
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse

from mipfs import models
from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.lab.baselines import BASELINES, REFERENCES, get_baseline, one_norm
from mipfs.lab.baselines import fsv as fsv_file
from mipfs.lab.baselines import lpsvm as lpsvm_file
from mipfs.lab.baselines.fsv import class_means, fsv, fsv_of_size
from mipfs.lab.baselines.linear import Linear
from mipfs.lab.baselines.lpsvm import lpsvm, lpsvm_of_size
from mipfs.lab.baselines.one_norm import OneNorm
from mipfs.lab.baselines.onsvm import onsvm, onsvm_of_size


def draw(seed: int, n: int = 40, p: int = 15, **given: Any) -> Instance:
    r = np.random.default_rng(seed)
    X = r.standard_normal((n, p)) * 10.0 ** r.uniform(-1, 1, p) + r.uniform(-1, 1, p)
    y = np.where(X[:, 0] / np.std(X[:, 0]) + r.standard_normal(n) > 0.3, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return Instance.from_arrays(X, y, sample_weight=r.uniform(0.5, 2.0, n), **given)


def dense(found: Linear, p: int) -> np.ndarray:
    w = np.zeros(p)
    w[found.ids] = found.w
    return w


def program(data: Instance, c: np.ndarray, r: np.ndarray, bias: bool) -> tuple[float, np.ndarray]:
    """min Σ r_j |w_j| + Σ c_i ξ_i by Clarabel: its value and w."""
    w, b = cp.Variable(data.n_features), cp.Variable()
    X = data.X.toarray() - data.center if data.is_sparse else data.X
    hinge = cp.pos(1 - cp.multiply(data.y, X @ w + (b if bias else 0.0)))
    value = cp.Problem(cp.Minimize(r @ cp.abs(w) + c @ hinge)).solve(solver=cp.CLARABEL)
    return float(value), w.value


@pytest.mark.sampled(17)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("scale", ["none", "standard"])
@pytest.mark.parametrize("method", [onsvm, lpsvm])
@pytest.mark.parametrize("seed", range(2))
def test_the_value_is_that_of_the_program(seed: int, method: Any, scale: str, bias: bool) -> None:
    wide = draw(seed, 20, 60, scale=scale), draw(seed, 60, 8, scale=scale)
    for data in wide:
        for C in (0.01, 0.3, 5.0):
            value, _ = program(data, C * data.sample_weight, np.ones(data.n_features), bias)
            found = method(data, C, bias=bias)
            assert found.objective == pytest.approx(value, rel=2e-6)
            margins = data.y * found.scores(data)  # recomputed from what the user gets
            own = float(np.abs(found.w * data.scale[found.ids]).sum())
            own += C * float(data.sample_weight @ np.maximum(0.0, 1.0 - margins))
            assert own == pytest.approx(value, rel=2e-6)
            assert found.ids.size <= data.n_samples
            assert bias or scale == "standard" or found.b == 0.0


def test_onsvm_is_the_declared_formulation() -> None:
    data = draw(5, 50, 12, scale="standard")
    declared = models.onsvm(data, C=0.2)
    value = declared.cvxpy.solve(solver=cp.HIGHS)
    found = onsvm(data, 0.2)
    assert found.objective == pytest.approx(value, rel=1e-7)
    np.testing.assert_allclose(dense(found, 12) * data.scale, declared.variables["w"].value, atol=1e-7)


@pytest.mark.parametrize("seed", range(3))
def test_features_that_stay_out_prove_themselves(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Column generation ends with a dual vector of the whole program, warm starts or not."""
    monkeypatch.setattr(one_norm, "FIRST_FEATURES", 3)
    monkeypatch.setattr(one_norm, "MOST_ENTERING", 2)
    data, r = draw(seed, 25, 80), np.random.default_rng(seed).uniform(0.5, 2.0, 80)
    r[7], r[9] = 0.0, np.inf
    warm = OneNorm(data, True, "test")
    for C in (0.05, 3.0, 0.3):
        c = C * data.sample_weight
        found = warm.solve(c, r)
        w = found.dense(80)
        assert w[9] == 0.0
        alpha, omega = found.alpha, data.X.T @ (found.alpha * data.y)
        assert np.all((alpha >= 0.0) & (alpha <= c))
        assert abs(data.y @ alpha) <= 1e-7 * alpha.sum()
        assert np.all(np.abs(omega) <= r + 1e-6)
        hinge = np.maximum(0.0, 1.0 - data.y * (data.X @ w + found.b))
        primal = float(np.abs(w) @ np.where(np.isinf(r), 0.0, r) + c @ hinge)
        assert primal == pytest.approx(alpha.sum(), rel=1e-6)
        assert len(warm.ids) < 80


@pytest.mark.sampled(2)
@pytest.mark.parametrize("bias", [False, True])
def test_sparse_columns_centred_implicitly(bias: bool) -> None:
    data = draw(3, 30, 40)
    X = np.where(np.abs(data.X) > 1.0, data.X, 0.0)
    thin = Instance.from_arrays(sparse.csc_array(X), data.y, scale="standard")
    thick = Instance.from_arrays(X, data.y, scale="standard")
    for method in (onsvm, lpsvm):
        a, b = method(thick, 0.3, bias=bias), method(thin, 0.3, bias=bias)
        assert a.objective == pytest.approx(b.objective, rel=1e-7)
        np.testing.assert_array_equal(a.ids, b.ids)
        np.testing.assert_allclose(a.scores(thick), b.scores(thin), atol=1e-5)


def test_newton_gives_the_solution_of_least_norm() -> None:
    """Two equal columns: every split of their weight is optimal, a vertex takes one, the least norm halves it."""
    data = draw(1, 30, 5, scale="standard")
    single = dense(onsvm(data, 0.5), 5) * data.scale
    j = int(np.argmax(np.abs(single)))
    twice = Instance.from_arrays(np.column_stack([data.X, data.X[:, j]]), data.y, sample_weight=data.sample_weight)
    found = dense(lpsvm(twice, 0.5), 6)
    assert found[j] == pytest.approx(found[5], rel=1e-6)
    merged = found[:5].copy()
    merged[j] += found[5]
    np.testing.assert_allclose(merged, single, atol=1e-5)


@pytest.mark.slow
def test_newton_on_random_programs() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for seed in range(15):
            r = np.random.default_rng(seed)
            data = draw(seed, int(r.integers(4, 40)), int(r.integers(1, 70)))
            C, bias = float(10.0 ** r.uniform(-2, 1)), bool(r.integers(2))
            assert lpsvm(data, C, bias=bias).objective == pytest.approx(onsvm(data, C, bias=bias).objective, rel=2e-6)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("of_size", [onsvm_of_size, lpsvm_of_size, fsv_of_size])
@pytest.mark.parametrize("bias", [False, True])
def test_the_wanted_number_of_features(of_size: Any, bias: bool) -> None:
    data = draw(2, 30, 35, scale="standard")
    most = onsvm(data, 1e3, bias=bias).ids.size
    for M in (1, 4, 7, 35):
        found = of_size(data, M, bias=bias)
        assert 0 < found.ids.size <= M
        assert found.ids.size == M or most < M or of_size is fsv_of_size
        assert np.all(np.diff(found.ids) > 0)
    np.testing.assert_array_equal(found.w, of_size(data, M, bias=bias).w)


def test_sizes_that_jump_keep_the_largest_weights() -> None:
    def at(C: float) -> Linear:
        return Linear(
            np.arange(0 if C < 3.0 else 5), np.array([1.0, 5.0, 2.0, 4.0, 3.0])[: 0 if C < 3.0 else 5], 0.0, C
        )

    scale = np.array([1.0, 1.0, 1.0, 0.1, 1.0])  # of the user's values: the weight on the scaled column is 0.4
    found = one_norm.of_size(at, 3, 1.0, scale)
    assert found.ids.tolist() == [1, 2, 4]
    assert found.w.tolist() == [5.0, 2.0, 3.0]
    tried: list[float] = []

    def never(C: float) -> Linear:
        tried.append(C)
        return Linear(np.empty(0, int), np.empty(0), 0.0, C)

    assert one_norm.of_size(never, 2, 1.0, scale).ids.size == 0
    assert max(tried) <= 1e5
    assert len(tried) == len(set(tried))


@pytest.mark.sampled(7)
@pytest.mark.parametrize("start", ["zero", "random"])
@pytest.mark.parametrize("lam", [0.02, 0.1, 0.5])
def test_fsv_ends_at_a_stationary_vertex(lam: float, start: Any) -> None:
    """No point of the polyhedron is better on the tangent at the end, by a linear program in CVXPY."""
    for seed in range(3):
        data = draw(seed, 40, 12, scale="unit")
        found = fsv(data, lam, start=start, seed=seed)
        w, means = dense(found, 12) * data.scale, (1 - lam) * class_means(data)
        hinge = np.maximum(0.0, 1.0 - data.y * found.scores(data))
        loss, r = float(means @ hinge), lam * 5.0 * np.exp(-5.0 * np.abs(w))
        assert found.objective == pytest.approx(loss + lam * float(np.sum(1 - np.exp(-5.0 * np.abs(w)))), rel=1e-7)
        value, _ = program(data, means, r, True)
        assert loss + float(r @ np.abs(w)) == pytest.approx(value, rel=1e-6, abs=1e-8)
        begin, first = program(data, means, np.full(12, lam * 5.0), True)
        if start == "zero":  # and it is no worse than the one-norm SVM that it begins with
            assert begin > 0.0
            f = 1.0 - np.exp(-5.0 * np.abs(first))
            b = cp.Variable()
            rest = cp.Problem(cp.Minimize(means @ cp.pos(1 - cp.multiply(data.y, data.X @ first + b))))
            assert found.objective <= rest.solve(solver=cp.CLARABEL) + lam * float(f.sum()) + 1e-6


def test_class_means() -> None:
    data = Instance.from_arrays(np.eye(4), [1, -1, -1, -1], sample_weight=[2.0, 1.0, 1.0, 2.0])
    np.testing.assert_allclose(class_means(data), [1.0, 0.25, 0.25, 0.5])


def test_of_size_where_sizes_jump() -> None:
    """0/1 columns enter several at a time, and M of them are kept all the same."""
    r = np.random.default_rng(0)
    column = r.random(40) < 0.5
    X = np.column_stack([np.roll(column, k) for k in range(8)]).astype(float)
    data = Instance.from_arrays(X, np.where(r.random(40) < 0.5, 1.0, -1.0))
    sizes = {onsvm(data, C).ids.size for C in np.geomspace(0.01, 100.0, 60)}
    for M in range(1, 9):
        assert onsvm_of_size(data, M).ids.size == min(M, max(sizes))


def test_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    data = draw(0)
    np.testing.assert_array_equal(lpsvm_of_size(data, 4).ids, onsvm_of_size(data, 4).ids)  # more samples than features
    with pytest.raises(UsageError, match=r"C = 0\.0 must be a positive number"):
        onsvm(data, 0.0)
    with pytest.raises(UsageError, match="M = 16 must be an integer from 1 to 15"):
        onsvm_of_size(data, 16)
    for given, message in (
        ({"lam": 1.0}, r"lam = 1\.0 must lie strictly between 0 and 1"),
        ({"lam": 0.1, "steepness": 0.0}, r"steepness = 0\.0 must be a positive number"),
        ({"lam": 0.1, "start": "ones"}, "start = 'ones' is unknown; it is 'zero' or 'random'"),
    ):
        with pytest.raises(UsageError, match=message):
            fsv_file.fsv(data, **given)  # type: ignore[arg-type]
    monkeypatch.setattr(lpsvm_file, "MAX_SAMPLES", 30)
    with pytest.raises(
        UsageError, match="factors a matrix of 40 x 40, 0 GB; beyond 30 samples take the baseline onsvm"
    ):
        lpsvm(data, 1.0)
    monkeypatch.setattr(one_norm, "MOST_NUMBERS", 500)
    with pytest.raises(UsageError, match="ONSVM solves linear programs of up to 40 samples x 15 features, about 0 GB"):
        onsvm(data, 1.0)


SIGNS = {"x1": (0.0, None), "x2": (None, 0.0), "x3": (0.0, 0.0), "x5": (0.0, None), "x6": (None, 0.0)}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("scale", ["none", "standard"])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_signs_that_the_data_asks_for(seed: int, bias: bool, scale: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The value is that of the program with signs; the refitted SVM keeps them."""
    monkeypatch.setattr(one_norm, "FIRST_FEATURES", 3)
    data = draw(seed, 40, 8, scale=scale, weight_bounds=SIGNS)
    w, b = cp.Variable(8), cp.Variable()
    X, names = data.X, list(data.feature_names)
    sides = [w[names.index(one)] >= 0 for one, ends in SIGNS.items() if ends[0] == 0.0]
    sides += [w[names.index(one)] <= 0 for one, ends in SIGNS.items() if ends[1] == 0.0]
    for C in (0.05, 1.0):
        hinge = cp.pos(1 - cp.multiply(data.y, X @ w + (b if bias else 0.0)))
        value = cp.Problem(cp.Minimize(cp.norm1(w) + C * data.sample_weight @ hinge), sides).solve(solver=cp.CLARABEL)
        found = onsvm(data, C, bias=bias)
        assert found.objective == pytest.approx(value, rel=2e-6)
        for kept in (found, get_baseline("onsvm")(data, 4, 1.0, bias=bias)):
            weights = dict(zip([names[j] for j in kept.ids], kept.w, strict=True))
            for name, (low, high) in SIGNS.items():
                assert low is None or weights.get(name, 0.0) >= 0.0
                assert high is None or weights.get(name, 0.0) <= 0.0


def test_what_keeps_no_bounds_refuses_them() -> None:
    signed, boxed = draw(0, weight_bounds={"x1": (0, None)}), draw(0, weight_bounds={"x1": (-1, 1)})
    for name in (*BASELINES, *REFERENCES):
        if name != "onsvm":
            with pytest.raises(UsageError, match=f"the baseline {name} keeps no bounds on the weights.*take onsvm"):
                get_baseline(name)(signed, 3)
    with pytest.raises(UsageError, match="keeps signs, and no other bounds, such as those of 'x1'"):
        get_baseline("onsvm")(boxed, 3)
