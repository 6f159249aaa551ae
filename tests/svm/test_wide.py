"""The SVM on thousands of sparse columns: conjugate gradients in place of systems, from 1e-4 to 1e6 in C."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.svm import SVC

from mipfs import Instance
from mipfs.kernels import newton
from mipfs.losses import get_loss

N, P = 600, 1_500


def texts() -> Instance:
    """Counts of words, most of them rare, in two kinds of documents."""
    r = np.random.default_rng(8)
    often = 8.0 / (3.0 + np.arange(P))
    X = r.poisson(often * np.exp(0.5 * r.standard_normal((N, P)))).astype(float)
    y = np.where(X[:, :40] @ r.standard_normal(40) + r.standard_normal(N) > 0.0, 1.0, -1.0)
    return Instance.from_arrays(sparse.csc_array(X), y)


@pytest.mark.parametrize("C", [1e-4, 0.01, 1.0, 1e6])
@pytest.mark.parametrize("loss", ["hinge", "squared-hinge", "logistic"])
def test_every_column_is_solved_to_its_gap(loss: str, C: float) -> None:
    data = texts()
    svm = get_loss(loss).Solver(data, np.full(N, C), True).solve(np.arange(P), tol=1e-7)
    assert svm.gap <= 1e-7  # of values that are recomputed: a proof
    assert svm.steps <= 600
    if loss == "hinge":
        X = data.block().values
        theirs = SVC(kernel="linear", C=C, tol=1e-5).fit(X, data.y)
        w, b = np.asarray(theirs.coef_.todense()).ravel(), float(theirs.intercept_[0])
        value = 0.5 * w @ w + C * np.maximum(0.0, 1.0 - data.y * (X @ w + b)).sum()
        assert svm.dual <= value
        assert svm.primal <= value * (1.0 + 1e-6)


def test_no_system_is_solved_where_gradients_lead_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """As Python: no Newton's step forms a matrix."""
    r = np.random.default_rng(1)
    X = sparse.random_array((60, 900), density=0.01, rng=r, format="csr")
    A = X.data, X.indices.astype(np.int32), X.indptr.astype(np.int64)

    def never(*_: object) -> None:
        raise AssertionError("a system was formed")

    monkeypatch.setattr(newton, "direction_by_columns", never)
    monkeypatch.setattr(newton, "direction_by_rows", never)
    monkeypatch.setattr(newton, "gradients_at_most", lambda *_: 200)
    out, curve, g = np.empty(900), r.random(60) + 0.5, r.standard_normal(900)
    newton.newton_direction.py_func(A, np.arange(60), curve, g, 900, out, np.empty((60, 900)), True)
    M = np.eye(900) + (X.T * curve) @ X.toarray()
    assert np.linalg.norm(M @ out + g) <= 1e-2 * np.linalg.norm(g)
    with pytest.raises(AssertionError, match="a system"):
        newton.newton_direction.py_func(A, np.arange(60), curve, g, 900, out, np.empty((60, 900)), False)


@pytest.mark.parametrize(("n", "k", "steps"), [(200, 20, 50), (2_000, 500, 40), (2_000, 2_000, 2), (20_000, 4_000, 2)])
def test_a_limit_is_heard_between_few_of_the_steps_that_take_long(
    n: int, k: int, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def taken(_rows: object, _u: object, _alpha: object, state: np.ndarray, pace: newton.NewtonPace) -> None:
        asked.append(pace.steps)
        state[1] = 1.0

    monkeypatch.setattr(newton, "newton", taken)
    solver = get_loss("hinge").Solver(texts(), np.ones(N), True)
    A = np.empty(0), np.empty(0, np.int32), np.zeros(n + 1, np.int64)
    solver.minimise(A, np.ones(n), k, np.zeros(k), np.zeros(n), rho=0.5, tol=1e-7, careful=False)
    assert asked == [steps]
