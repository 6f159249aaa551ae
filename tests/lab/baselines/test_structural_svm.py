"""The structural SVM on all features, or some, against all labellings written out in CVXPY."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.lab.baselines import get_baseline
from mipfs.lab.baselines.l1_bundle import L1Bundle
from mipfs.lab.baselines.structural_svm import of_columns, structural_svm
from tests.structural_oracles import cases, labellings
from tests.structural_oracles import structural_svm as reference


def draw(seed: int, n: int = 6, p: int = 4) -> tuple[np.ndarray, np.ndarray]:
    r = np.random.default_rng(seed)
    X = r.standard_normal((n, p))
    y = np.where(X[:, 0] + r.standard_normal(n) > 0.3, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return X, y


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("name", "given"), cases())
def test_value_weights_and_bound(name: str, given: dict[str, Any]) -> None:
    for seed, C in enumerate((1.0, 10.0, 60.0)):
        X, y = draw(seed)
        losses, V = labellings(name, y, given.get("beta", 1.0), given.get("k"))
        value, w = reference(X, losses, V, C)
        found = structural_svm(Instance.from_arrays(X, y), name, C, tol=1e-9, **given)
        np.testing.assert_array_equal(found.ids, np.arange(4))
        assert found.objective == pytest.approx(value, rel=1e-7)
        assert found.bound <= value * (1 + 1e-9)
        assert found.bound == pytest.approx(value, rel=1e-7, abs=1e-9)
        np.testing.assert_allclose(found.w, w, atol=1e-4 * max(1.0, np.abs(w).max()))


def test_a_limit_of_cpu_seconds_leaves_a_gap_that_is_said() -> None:
    X, y = draw(7, 60, 20)
    data = Instance.from_arrays(X, y)
    whole, cut = (structural_svm(data, "f1", 100.0, tol=1e-8, cpu_limit=limit) for limit in (1e9, 0.0))
    assert cut.bound < whole.objective * (1 - 1e-3)
    assert cut.objective > whole.objective * (1 + 1e-3)


def test_some_columns_in_any_order_and_on_any_scale() -> None:
    X, y = draw(5, 8, 5)
    losses, V = labellings("f1", y)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    for made in (X, sparse.csc_array(X)):
        data = Instance.from_arrays(made, y, scale="standard")
        found = structural_svm(data, "f1", 20.0, [4, 1], tol=1e-9)
        value, w = reference(Z[:, [1, 4]], losses, V, 20.0)
        np.testing.assert_array_equal(found.ids, [1, 4])
        assert found.objective == pytest.approx(value, rel=1e-7)
        np.testing.assert_allclose(X[:, [1, 4]] @ found.w + found.b, Z[:, [1, 4]] @ w, atol=1e-4)
        np.testing.assert_allclose(found.scores(data), Z[:, [1, 4]] @ w, atol=1e-4)
    nothing = structural_svm(Instance.from_arrays(X, y), "f1", 20.0, [])
    assert (nothing.ids.size, nothing.objective) == (0, pytest.approx(20.0 * losses.max()))


def test_the_reference_of_the_registry_has_the_penalised_weight_of_a_constant_column() -> None:
    """SVM^perf for F1 at C n/4, against all labellings; ``bench`` fits it for its own measure."""
    X, y = draw(7, 8, 3)
    wide = np.column_stack([X, np.ones(8)])
    data = Instance.from_arrays(X, y)
    for measure in ("f1", "error"):
        losses, V = labellings(measure, y)
        value, w = reference(wide, losses, V, 0.25 * 5.0 * 8)
        found = of_columns(data, np.arange(3), 5.0, measure)
        np.testing.assert_allclose([*found.w, found.b], w, atol=2e-3 * max(1.0, np.abs(w).max()))
    one = get_baseline("svm-perf")(data, 3, 5.0)
    np.testing.assert_array_equal(one.w, of_columns(data, np.arange(3), 5.0, "f1").w)
    assert get_baseline("svm-perf")(data, 3, 5.0, bias=False).b == 0.0
    assert value > 0


def test_the_bundle_of_the_registry_is_refitted_on_its_features() -> None:
    r = np.random.default_rng(0)
    X = r.standard_normal((80, 12))
    y = np.where(X[:, :3].sum(axis=1) + 0.5 * r.standard_normal(80) > 1.5, 1.0, -1.0)
    data = Instance.from_arrays(X, y)
    found = get_baseline("l1-bmrm")(data, 3, 1.0)
    assert found.ids.tolist() == L1Bundle(data, "f1").of_size(3).ids.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(found.w, of_columns(data, found.ids, 1.0, "f1").w)


def test_refused() -> None:
    X, y = draw(1)
    data = Instance.from_arrays(X, y)
    for columns in ([1, 1], [4], [-1], [[0, 1]]):
        with pytest.raises(UsageError, match="columns must be different integers from 0 to 3"):
            structural_svm(data, "f1", 1.0, columns)
    with pytest.raises(UsageError, match="C = 0 must be a positive number"):
        structural_svm(data, "f1", 0)
    with pytest.raises(UsageError, match="has no sample weights"):
        structural_svm(Instance.from_arrays(X, y, sample_weight=np.arange(1.0, 7.0)), "f1", 1.0)
    with pytest.raises(UsageError, match="needs beta"):
        structural_svm(data, "fbeta", 1.0)
