"""What is promised and what was measured: against references, and where a promise says less than it seems to."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from mipfs.data.instance import Instance
from mipfs.data.made import MadeMatrix
from mipfs.generators.synthetic import paul_2016
from mipfs.lab.sketch import Sketch, available, select
from mipfs.lab.sketch.margin import solve_svm
from tests import sketch_oracles as oracle
from tests.lab.sketch.test_ball import reference as ball
from tests.references import svm_reference


def drawn(seed: int, n: int = 12, p: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """A matrix and labels of both classes."""
    r = np.random.default_rng(seed)
    X = r.standard_normal((n, p)) * np.exp(0.7 * r.standard_normal(p)) + 0.3 * r.standard_normal(p)
    y = np.where(r.random(n) < 0.5, -1.0, 1.0)
    y[:2] = [1.0, -1.0]
    return X, y


def rescaled(found: Sketch, X: np.ndarray) -> np.ndarray:
    """The columns that the guarantee is about."""
    return X[:, found.ids] * found.rescaling


@pytest.mark.sampled(17)
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("bias", [True, False])
def test_margin_and_radius_are_measured_and_keep_their_promises(seed: int, bias: bool) -> None:
    """Theorems 3 and 5 as inequalities, on values of Clarabel's: with C = 0.05 there is slack, with 100 none."""
    X, y = drawn(seed)
    C = (0.05, 100.0)[seed % 2]
    data = Instance.from_arrays(X, y)
    for method in available():
        found = select(data, method, 36 if method == "uniform" else 60, C=C, bias=bias, seed=seed)
        guarantee, Z = found.guarantee, rescaled(found, X)
        c = np.full(12, C)
        ratio = svm_reference(X, y, c, bias=bias).value / svm_reference(Z, y, c, bias=bias).value
        assert guarantee.margin is not None
        assert guarantee.margin == guarantee.margin_all
        assert guarantee.margin.low * (1 - 1e-6) <= ratio <= guarantee.margin.high * (1 + 1e-6)
        assert guarantee.margin.high <= guarantee.margin.low * (1 + 1e-5)
        assert guarantee.radius is not None
        assert guarantee.radius.high == pytest.approx(ball(Z) / ball(X), rel=1e-5)
        assert guarantee.eigenvalues is not None
        least, most = guarantee.eigenvalues.low * (1 - 1e-6), guarantee.eigenvalues.high * (1 + 1e-6)
        assert least <= guarantee.margin.high
        assert guarantee.margin.low <= most, "what was measured is a certificate for any method"
        assert least <= guarantee.radius.high
        assert guarantee.radius.low <= most
        assert guarantee.epsilon == pytest.approx(oracle.epsilon(X, found.ids, found.rescaling**2), abs=1e-9)
        if "bss" in method:
            assert guarantee.promised.low * (1 - 1e-9) <= guarantee.eigenvalues.low
            assert guarantee.eigenvalues.high <= guarantee.promised.high * (1 + 1e-9)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("seed", range(8))
def test_supervised_columns_keep_the_margin_of_the_support_vectors(seed: int) -> None:
    """Theorem 1: the SVM on the support vectors, in all features and in the chosen ones."""
    X, y = drawn(seed, n=25)
    C = (0.05, 100.0)[seed % 2]
    data = Instance.from_arrays(X, y)
    reference = svm_reference(X, y, np.full(25, C))
    support = np.flatnonzero(reference.alpha > 1e-5 * reference.alpha.max())
    found = select(data, "bss", 60, supervised=True, C=C)
    assert found.support.tolist() == support.tolist()
    assert found.supervised
    Z, c = rescaled(found, X)[support], np.full(support.size, C)
    ratio = svm_reference(X[support], y[support], c).value / svm_reference(Z, y[support], c).value
    guarantee = found.guarantee
    q = np.sqrt(guarantee.rank / 60)
    assert guarantee.rank == np.linalg.matrix_rank(X[support])
    assert (1 - q) ** 2 <= ratio <= (1 + q) ** 2
    assert guarantee.margin.low * (1 - 1e-6) <= ratio <= guarantee.margin.high * (1 + 1e-6)
    on_all = reference.value / svm_reference(rescaled(found, X), y, np.full(25, C)).value
    assert guarantee.margin_all.high == pytest.approx(on_all, rel=1e-5)
    assert guarantee.radius.high == pytest.approx(ball(rescaled(found, X)) / ball(X), rel=1e-5)
    assert any(f"by {support.size} of 25 samples: nothing is promised" in one for one in guarantee.warnings)


def test_the_supervised_counterexample_shows_its_warning() -> None:
    """Points ±1/√p and ±50e_p: the support vectors are kept to ε = 0.083, the two others meet in the origin."""
    p = 400
    first, last = np.full(p, 1.0 / np.sqrt(p)), 50.0 * np.eye(p)[-1]
    X, y = np.array([first, -first, last, -last]), np.array([1.0, -1.0, 1.0, -1.0])
    found = select(Instance.from_arrays(X, y), "bss", 12, supervised=True, C=100.0)
    guarantee = found.guarantee
    assert found.support.tolist() == [0, 1]
    assert guarantee.epsilon == pytest.approx(1.0 / 12.0)
    assert guarantee.margin.low == pytest.approx(11.0 / 12.0, rel=1e-6)
    assert guarantee.margin.low >= guarantee.promised.low
    assert oracle.separable(X, y)
    assert not oracle.separable(rescaled(found, X), y), "margin 0 on all the data"
    assert guarantee.margin_all.high < 0.003
    warning = guarantee.warnings[-1]
    assert "chosen by 2 of 4 samples: nothing is promised of the margin on the others, nor of the radius" in warning
    assert "on all samples 0.00249 of the squared margin is left, on the support vectors at least 0.917" in warning
    assert "samples that the SVM separated without slack need some now" in warning
    assert f"Warning: {warning}." in found.summary()


def test_the_squared_margin_is_the_geometric_one_of_separable_rows() -> None:
    X, y = drawn(3)
    reference = svm_reference(X, y, np.full(12, 1e4))
    solved = solve_svm(Instance.from_arrays(X, y), 1e4, True)
    assert 0.5 / solved.value.high == pytest.approx(0.5 / reference.value, rel=1e-6)
    assert 1.0 / (reference.w @ reference.w) == pytest.approx(0.5 / solved.value.high, rel=1e-5)
    assert solved.slack <= 1e-6 * solved.value.high


def test_warnings_where_promises_are_empty() -> None:
    X, y = drawn(1)
    data = Instance.from_arrays(X, y)
    few = select(data, "bss", 13).guarantee
    assert any("at most nine times the rank 12" in one and "is empty" in one for one in few.warnings)
    assert few.promised.low > 0
    assert not select(data, "bss", 12 * 9 + 1).guarantee.warnings
    draws = select(data, "leverage", 20, seed=1).guarantee
    assert any("the promise is empty: 20 draws are too few for 12 directions" in one for one in draws.warnings)
    missed = select(data, "uniform", 5).guarantee
    assert missed.eigenvalues.low == pytest.approx(0.0, abs=1e-12)
    assert any("miss some directions altogether" in one for one in missed.warnings)
    assert missed.about.startswith("nothing is promised")


def test_without_labels_there_is_no_margin_and_the_rest_is_the_same() -> None:
    X, y = drawn(2)
    with_labels = select(Instance.from_arrays(X, y), "bss", 40)
    without = select(Instance.from_arrays(X, np.full(12, np.nan), training=False), "bss", 40)
    assert without.order.tolist() == with_labels.order.tolist()
    assert without.guarantee.margin is None
    assert without.guarantee.radius == with_labels.guarantee.radius
    assert without.document()["guarantee"]["margin"] is None


@pytest.mark.parametrize("scale", ["none", "standard"])
@pytest.mark.parametrize("supervised", [True, False])
def test_sparse_data_have_the_same_guarantee(scale: str, supervised: bool) -> None:
    r = np.random.default_rng(3)
    X = np.where(r.random((20, 60)) < 0.3, r.standard_normal((20, 60)), 0.0)
    y = np.where(X[:, :5].sum(axis=1) + 0.1 * r.standard_normal(20) > 0, 1.0, -1.0)
    dense, thin = (
        select(Instance.from_arrays(Z, y, scale=scale), "bss", 90, supervised=supervised)
        for Z in (X, sparse.csr_array(X))
    )
    assert thin.order.tolist() == dense.order.tolist()
    for name in ("eigenvalues", "margin", "margin_all", "radius"):
        ours, theirs = getattr(thin.guarantee, name), getattr(dense.guarantee, name)
        np.testing.assert_allclose([ours.low, ours.high], [theirs.low, theirs.high], rtol=1e-6)


def test_made_columns_are_made_and_chosen() -> None:
    X, y = drawn(4)
    data = Instance.from_arrays(X, y)
    made = replace(data, X=MadeMatrix(X.shape, lambda ids: X[:, ids]))
    for supervised in (False, True):
        ours, stored = (select(one, "bss", 60, supervised=supervised) for one in (made, data))
        assert ours.document() == stored.document()


def test_the_document_is_json_and_a_sketch_is_picklable() -> None:
    X, y = drawn(5)
    found = select(Instance.from_arrays(X, y), "bss", 40, supervised=True)
    text = json.dumps(found.document(), allow_nan=False)
    again = json.loads(text)
    assert again["schema"] == 1
    assert again["positions"] == found.ids.tolist()
    assert again["selected"] == [f"x{j + 1}" for j in found.ids]
    assert sum(again["repeats"]) == len(again["order"]) == 40
    assert again["guarantee"]["promised"]["paper_epsilon"] == pytest.approx(3 * np.sqrt(found.guarantee.rank / 40))
    copied = pickle.loads(pickle.dumps(found))
    assert copied.document() == found.document()
    assert "<table>" in found._repr_html_()


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "r"), [(0, 30), (1, 40)])
@pytest.mark.parametrize("M", [40, 50])
def test_the_columns_chosen_most_often_on_pauls_data_are_the_relevant_ones(M: int, seed: int, r: int) -> None:
    """Table 1: ten folds, repeated; supervised, r = 30 and 40, C = 1. Ties go to the larger column, as in BSS."""
    from sklearn.model_selection import StratifiedKFold

    from mipfs.lab.sketch.select import Choice, choose

    X, y = paul_2016(200, 1000, M, seed)["train"]
    counts = {name: np.zeros(1000) for name in ("bss", "leverage")}
    for fold, (train, _) in enumerate(StratifiedKFold(10, shuffle=True, random_state=seed).split(X, y)):
        data = Instance.from_arrays(X[train], y[train])
        rows = solve_svm(data, 1.0, True).support
        for name, draws in (("bss", 1), ("leverage", 10)):
            for draw in range(draws):
                how = Choice(name, r, None, None, 1.0, True, 100 * fold + draw, False)
                counts[name][choose(data, how, rows=rows).ids] += 1
    norms = np.linalg.norm(X, axis=0)
    for name, count in counts.items():
        five = np.lexsort((-norms, -count))[:5]
        assert np.all(five < M), (name, seed, five + 1)
    assert np.lexsort((-norms, -counts["bss"]))[0] == M - 1, "the best feature is always there"
