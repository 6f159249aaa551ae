"""FSPClassifier: the best selection, its proof, and what its parameters mean."""

from __future__ import annotations

import warnings
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import mipfs
from mipfs import FSPClassifier
from mipfs.result.result import Status, StopReason
from tests.oracles import svm_value

Array = npt.NDArray[np.float64]
RNG = np.random.default_rng(15)
N, P = 40, 6
X = RNG.standard_normal((N, P)) * [1.0, 3.0, 0.5, 1.0, 1.0, 1.0] + [0.0, 5.0, 0.0, 0.0, 0.0, 0.0]
Y = np.where(X[:, 0] + 0.5 * (X[:, 1] - 5.0) - X[:, 4] + 0.7 * RNG.standard_normal(N) > 0, "yes", "no")
SIGNS = np.where(Y == "yes", 1.0, -1.0)


def best_value(Z: Array, c_i: Array, M: int, lam: float, bias: bool) -> tuple[float, tuple[int, ...]]:
    """The optimum over every support, by the conic reference of the tests."""
    found = [
        (lam * k + svm_value(Z[:, list(ids)], SIGNS, c_i, bias).upper, ids)
        for k in range(M + 1)
        for ids in combinations(range(P), k)
    ]
    return min(found)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("M", "lam"), [(2, 0.0), (None, 1.5)])
def test_the_selection_is_the_best_of_all(bias: bool, M: int | None, lam: float) -> None:
    weight = RNG.uniform(0.5, 2.0, N)
    model = FSPClassifier(M, lam=lam, C=0.5, bias=bias, scale="standard").fit(X, Y, sample_weight=weight)
    mean = np.average(X, axis=0, weights=weight)
    deviation = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weight))
    Z = (X - mean) / deviation
    value, ids = best_value(Z, 0.5 * weight, P if M is None else M, lam, bias)
    assert model.result_.status is Status.OPTIMAL
    assert model.result_.objective == pytest.approx(value, rel=1e-4)
    assert model.result_.bound <= value * (1 + 1e-9)
    assert tuple(model.get_support(indices=True)) == ids
    # The classifier that the estimator keeps has the optimal value too, at closer quarters.
    w, b = model.coef_[0] * deviation, model.intercept_[0] + model.coef_[0] @ mean
    loss = np.maximum(0.0, 1.0 - SIGNS * (Z @ w + b))
    assert lam * len(ids) + 0.5 * w @ w + 0.5 * weight @ loss == pytest.approx(value, rel=1e-7)
    assert np.all((w != 0) == model.support_)


@pytest.mark.parametrize("loss", ["hinge", "squared-hinge", "logistic"])
def test_the_value_is_that_of_solve(loss: str) -> None:
    data = mipfs.Instance.from_arrays(X, SIGNS, scale="unit")
    result = mipfs.solve(mipfs.Problem(data, loss=loss, M=3, C=2.0))
    model = FSPClassifier(3, C=2.0, loss=loss, scale="unit").fit(X, Y)
    assert model.result_.objective == result.objective
    assert model.result_.bound == result.bound
    assert model.result_.selected == result.selected
    np.testing.assert_allclose(model.decision_function(X), result.decision_function(X), atol=1e-4)
    assert model.result_.predict(X).tolist() == model.predict(X).tolist()


def test_m_beyond_p_is_p_and_none_is_no_limit() -> None:
    all_of_them = FSPClassifier(P, C=0.3).fit(X, Y)
    for M in (100, None):
        np.testing.assert_array_equal(FSPClassifier(M, C=0.3).fit(X, Y).coef_, all_of_them.coef_)


def test_m_zero_leaves_the_intercept() -> None:
    model = FSPClassifier(0).fit(X, Y)
    assert not model.coef_.any()
    majority = "yes" if (Y == "yes").sum() > N / 2 else "no"
    assert set(model.predict(X)) == {majority}


def test_a_penalty_by_name_keeps_a_feature_out() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abcdef"))
    free = FSPClassifier(2, C=0.5).fit(frame, Y)
    dear = FSPClassifier(2, C=0.5, lam={free.result_.selected[0]: 1e3}).fit(frame, Y)
    assert free.result_.selected[0] in free.get_feature_names_out()
    assert free.result_.selected[0] not in dear.get_feature_names_out()


def test_a_limit_warns_and_leaves_bound_and_gap() -> None:
    rng = np.random.default_rng(0)
    Z, y = rng.standard_normal((60, 60)), rng.integers(0, 2, 60)
    with pytest.warns(ConvergenceWarning, match=r"stopped by TIME_LIMIT at a gap of \d+\.\d\d%") as caught:
        model = FSPClassifier(6, time_limit=0.3).fit(Z, y)
    assert caught[0].filename == __file__
    assert model.result_.stop_reason is StopReason.TIME_LIMIT
    assert model.result_.bound < model.result_.objective
    assert 0 < model.support_.sum() <= 6
    with pytest.warns(ConvergenceWarning, match=r"stopped by TIME_LIMIT at a gap of \d+\.\d\d%"):
        at_once = FSPClassifier(6, time_limit=0.0).fit(Z, y).result_
    assert 0.0 <= at_once.bound <= model.result_.objective
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        FSPClassifier(6, gap=0.999).fit(Z, y)


def test_ctrl_c_ends_the_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    from mipfs.run.run import Run

    record = Run.record

    def interrupting(run: Run) -> Any:
        run.interrupted = True
        return record(run)

    monkeypatch.setattr(Run, "record", interrupting)
    rng = np.random.default_rng(0)
    with pytest.raises(KeyboardInterrupt):
        FSPClassifier(6).fit(rng.standard_normal((60, 60)), rng.integers(0, 2, 60))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"M": -1}, "M = -1 must lie between 0 and 6, the number of features"),
        ({"M": 2.5}, "M = 2.5 must be a whole number"),
        ({"C": 0.0}, "C = 0.0 must be a positive number"),
        ({"lam": -1.0}, "lambda of 'x1' is -1"),
        ({"lam": [1.0, 2.0]}, r"lambda has shape \(2,\)"),
        ({"loss": "squared"}, "loss 'squared' is not known"),
        ({"driver": "gdb"}, "driver 'gdb' is not known; did you mean 'gbd'"),
        ({"gap": 2.0}, r"gap = 2.0 must be a number in \[0, 1\)"),
        ({"time_limit": -1.0}, "time_limit = -1.0 must be"),
        ({"scale": "minmax"}, "scale = 'minmax' is unknown"),
    ],
)
def test_a_bad_parameter_is_one_line(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        FSPClassifier(**parameters).fit(X, Y)
    assert "\n" not in str(caught.value)


def test_the_result_survives_its_json() -> None:
    model = FSPClassifier(2, C=0.5).fit(sparse.csr_array(X), Y)
    again = mipfs.Result.from_json(model.result_.to_json())
    assert again.predict(X).tolist() == model.predict(X).tolist()
    assert again.labels == {"negative": "no", "positive": "yes"}


@pytest.mark.parametrize("make", [mipfs.FSPClassifier, mipfs.FGMClassifier, mipfs.FGMSelector])
def test_a_long_fit_shows_itself_where_that_is_asked_for(make: Any, capfd: pytest.CaptureFixture[str]) -> None:
    X, y = np.random.default_rng(0).normal(size=(60, 5)), np.resize([0, 1, 2], 60)
    make(M=2, verbose=1).fit(X, y)
    said = capfd.readouterr().err
    assert [f"class {k} against the rest, {k + 1} of 3" in said for k in range(3)] == [True] * 3
    assert said.count("incumbent") == 3
    make(M=2).fit(X, y)
    assert "incumbent" not in capfd.readouterr().err
