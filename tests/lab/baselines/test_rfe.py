"""SVM-RFE against scikit-learn's RFE, and its final SVM against Clarabel."""

from __future__ import annotations

from types import SimpleNamespace

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse
from sklearn.feature_selection import RFE
from sklearn.svm import SVC, LinearSVC

from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.lab import baselines
from mipfs.lab.baselines import rfe_tan
from mipfs.lab.baselines.linear import plain_svm
from mipfs.lab.baselines.rfe import _left_after, eliminate, rfe


def draw(seed: int, n: int = 60, p: int = 12) -> Instance:
    r = np.random.default_rng(seed)
    X = r.standard_normal((n, p)) * r.uniform(0.5, 2.0, p)
    y = np.where(X[:, 0] + X[:, 3] - X[:, 5] + r.standard_normal(n) > 0.3, 1.0, -1.0)
    return Instance.from_arrays(X, y)


@pytest.mark.sampled(13)
@pytest.mark.parametrize("loss", ["squared-hinge", "hinge"])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_one_at_a_time_is_that_of_scikit_learn(seed: int, bias: bool, loss: str) -> None:
    data = draw(seed)
    found = eliminate(data, [5, 3, 1, 12], 0.7, bias=bias, drop=0.0, loss=loss)
    assert set(found) == {1, 3, 5, 12}
    for size, ids in found.items():
        svm = LinearSVC(C=0.35, dual=False, fit_intercept=bias, max_iter=10_000)  # LIBLINEAR has C Σ ξ², we (C/2) Σ ξ²
        if loss == "hinge":  # libsvm's intercept is free, LIBLINEAR's is penalised
            no_intercept = LinearSVC(loss="hinge", C=0.7, fit_intercept=False, max_iter=10_000, random_state=0)
            svm = SVC(kernel="linear", C=0.7, tol=1e-6) if bias else no_intercept
        expected = RFE(svm, n_features_to_select=size, step=1).fit(data.X, data.y).get_support(indices=True)
        np.testing.assert_array_equal(ids, expected)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("loss", ["squared-hinge", "hinge"])
def test_it_eliminates_at_the_C_that_it_refits_with(loss: str) -> None:
    """Greedy elimination by enumeration: the SVM of every round by Clarabel, at the C of the refit."""
    for seed in range(4):
        data, C = draw(seed, 30, 6), 0.05
        left = list(range(6))
        while len(left) > 2:
            w = cp.Variable(len(left))
            slack = cp.pos(1 - cp.multiply(data.y, data.X[:, left] @ w))
            value = C * cp.sum(slack) if loss == "hinge" else 0.5 * C * cp.sum_squares(slack)
            cp.Problem(cp.Minimize(0.5 * cp.sum_squares(w) + value)).solve(solver=cp.CLARABEL)
            left.pop(int(np.argmin(np.abs(w.value))))
        found = rfe(data, 2, C, bias=False, drop=0.0, loss=loss)
        assert found.ids.tolist() == left
        Z, w = data.X[:, left], cp.Variable(2)
        slack = cp.pos(1 - cp.multiply(data.y, Z @ w))
        value = C * cp.sum(slack) if loss == "hinge" else 0.5 * C * cp.sum_squares(slack)
        cp.Problem(cp.Minimize(0.5 * cp.sum_squares(w) + value)).solve(solver=cp.CLARABEL)
        np.testing.assert_allclose(found.w, w.value, atol=1e-5)


@pytest.mark.parametrize(
    ("drop", "expected"),
    [
        ("tan", [225, 215, 205, 200, 199, 198]),
        (1, list(range(225, 197, -1))),
        (9, [225, 216, 207, 198]),
        (np.int64(20), [225, 205]),
        (300, [225]),
        (0.1, [225, 202]),
    ],
)
def test_the_schedules(drop: object, expected: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Of Tan 2010, of a number of features and of a share: the sizes of all rounds down to 197 features."""
    sizes: list[int] = []
    fit = LinearSVC.fit

    def counted(self: LinearSVC, X: np.ndarray, *given: object, **named: object) -> object:
        sizes.append(X.shape[1])
        return fit(self, X, *given, **named)

    monkeypatch.setattr(LinearSVC, "fit", counted)
    eliminate(draw(0, 40, 225), [197], drop=drop)  # type: ignore[arg-type]
    assert sizes == expected


def test_the_schedule_for_millions() -> None:
    """Tan 2010, section 3.5: 10,000 a round while more than 20,000 are left, then 100."""
    sizes = [45_000]
    while sizes[-1] > 19_700:
        sizes.append(_left_after(sizes[-1], "tan-large"))
    assert sizes == [45_000, 35_000, 25_000, 20_000, 19_900, 19_800, 19_700]


def test_tans_schedule_is_that_of_the_papers_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tan 2010: ten and one below 20,000, 100 a round on real-sim to news20.binary, 10,000 on the URL sets alone."""
    drops: list[object] = []
    monkeypatch.setattr(rfe_tan, "rfe", lambda *_, drop, **__: drops.append(drop))
    for p in (7_129, 20_958, 1_355_191, 3_231_961):
        rfe_tan.fit(SimpleNamespace(n_features=p), 10)  # type: ignore[arg-type]
    assert drops == ["tan", 100, 100, "tan-large"]


def test_the_methods_of_the_registry() -> None:
    """Aytug's is scikit-learn's RFE of one at a time with the hinge, Tan's the schedule."""
    data = draw(4, 60, 14)
    svm = SVC(kernel="linear", C=0.3, tol=1e-6)
    expected = RFE(svm, n_features_to_select=3, step=1).fit(data.X, data.y).get_support(indices=True)
    found = baselines.get_baseline("rfe-hinge")(data, 3, 0.3)
    np.testing.assert_array_equal(found.ids, expected)
    np.testing.assert_array_equal(found.w, plain_svm(data, expected, 0.3, True, "hinge").w)
    wide = draw(5, 40, 225)
    one, other = baselines.get_baseline("rfe-tan")(wide, 190, 1.0), rfe(wide, 190, 1.0, drop="tan")
    np.testing.assert_array_equal(one.ids, other.ids)


def test_a_fixed_number_is_that_of_scikit_learn() -> None:
    data = draw(2, 60, 30)
    for step in (1, 4, 7):
        svm = LinearSVC(C=0.5, dual=False, max_iter=10_000)
        expected = RFE(svm, n_features_to_select=5, step=step).fit(data.X, data.y).get_support(indices=True)
        np.testing.assert_array_equal(rfe(data, 5, drop=step).ids, expected)


def test_supports_are_nested_and_the_share_is_kept() -> None:
    data = draw(3, 80, 40)
    found = eliminate(data, [2, 7, 19], 1.0, drop=0.5)
    assert [found[size].size for size in (2, 7, 19)] == [2, 7, 19]
    assert set(found[2]) < set(found[7]) < set(found[19])
    np.testing.assert_array_equal(rfe(data, 7, drop=0.5).ids, eliminate(data, [7], drop=0.5)[7])


@pytest.mark.parametrize("bias", [False, True])
def test_the_final_svm_is_that_of_clarabel(bias: bool) -> None:
    data = draw(8)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, data.n_samples)
    scaled = Instance.from_arrays(data.X * 3.0 + 1.0, data.y, scale="standard", sample_weight=weight)
    found = rfe(scaled, 4, 0.8, bias=bias)
    Z = scaled.X[:, found.ids]
    w, b = cp.Variable(4), cp.Variable()
    margins = cp.multiply(data.y, Z @ w + (b if bias else 0.0))
    loss = 0.5 * cp.sum(cp.multiply(0.8 * weight, cp.square(cp.pos(1 - margins))))
    cp.Problem(cp.Minimize(0.5 * cp.sum_squares(w) + loss)).solve(solver=cp.CLARABEL)
    expected = Z @ w.value + (b.value if bias else 0.0)
    np.testing.assert_allclose(found.scores(scaled), expected, atol=1e-4)
    # weights and intercept are on the user's scale
    raw = Instance.from_arrays(data.X * 3.0 + 1.0, data.y)
    np.testing.assert_allclose(raw.X[:, found.ids] @ found.w + found.b, expected, atol=1e-4)
    np.testing.assert_allclose(found.scores(raw), expected, atol=1e-4)
    assert (found.objective, found.bound) == (np.inf, -np.inf)


def test_sparse_data() -> None:
    data = draw(1, 60, 30)
    X = np.where(np.abs(data.X) > 0.8, data.X, 0.0)
    dense, thin = (Instance.from_arrays(Z, data.y) for Z in (X, sparse.csc_array(X)))
    a, b = rfe(dense, 6), rfe(thin, 6)
    np.testing.assert_array_equal(a.ids, b.ids)
    np.testing.assert_allclose(a.w, b.w, rtol=1e-6)
    centred = Instance.from_arrays(sparse.csc_array(X), data.y, scale="standard")
    with pytest.raises(UsageError, match="SVM-RFE cannot centre sparse columns; use scale 'unit'"):
        rfe(centred, 6)


def test_refused() -> None:
    data = draw(0)
    for sizes, C, drop, message in (
        ([0], 1.0, 0.2, "M = 0 must be an integer from 1 to 12"),
        ([13], 1.0, 0.2, "M = 13"),
        ([2.5], 1.0, 0.2, "M = 2.5"),
        ([], 1.0, 0.2, "sizes is empty"),
        ([2], 0.0, 0.2, r"C = 0.0 must be a positive number"),
        ([2], 1.0, 1.0, r"drop = 1.0 must lie in \[0, 1\)"),
        ([2], 1.0, 2.5, r"drop = 2.5 must lie in \[0, 1\).* or be their number, an integer, or 'tan' or 'tan-large'"),
        ([2], 1.0, True, "drop = True"),
        ([2], 1.0, -1, "drop = -1"),
        ([2], 1.0, "half", "drop = 'half'"),
    ):
        with pytest.raises(UsageError, match=message):
            eliminate(data, sizes, C, drop=drop)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="loss = 'logistic': SVM-RFE eliminates by"):
        eliminate(data, [2], loss="logistic")  # type: ignore[arg-type]
