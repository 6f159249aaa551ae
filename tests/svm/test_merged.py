"""Equal sparse samples are one row to the Newton solvers: the same optimum, dual vector and all."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from mipfs import Instance
from mipfs.losses import get_loss
from mipfs.svm.solver import MERGE_ABOVE


@pytest.mark.parametrize("share", [0.05, 0.6])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("loss", ["hinge", "squared-hinge", "logistic"])
def test_equal_samples_are_solved_as_one(loss: str, bias: bool, share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    r = np.random.default_rng([3, int(100 * share), bias])
    n = 4 * MERGE_ABOVE
    X = (r.random((n, 5)) < share).astype(float)
    y = np.where(X[:, 0] - X[:, 1] + r.standard_normal(n) > 0.2, 1.0, -1.0)
    data, c = Instance.from_arrays(sparse.csc_array(X), y), r.uniform(0.01, 2.0, n)
    kind = get_loss(loss)
    sizes = []
    minimise = kind.solver_class.minimise
    monkeypatch.setattr(
        kind.solver_class,
        "minimise",
        lambda self, A, c, *rest, **named: (sizes.append(c.size), minimise(self, A, c, *rest, **named))[1],
    )
    ids = np.array([0, 1, 3])
    merged = kind.Solver(data, c, bias).solve(ids, tol=1e-9)
    assert max(sizes) <= 16
    monkeypatch.setattr("mipfs.svm.solver.MERGE_ABOVE", n + 1)
    plain = kind.Solver(data, c, bias).solve(ids, tol=1e-9)
    assert max(sizes) == n
    assert merged.primal == pytest.approx(plain.primal, rel=1e-8)
    assert merged.gap <= 1e-8
    assert np.all((merged.alpha >= 0.0) & ((loss == "squared-hinge") | (merged.alpha <= c)))
    again = kind.Solver(data, c, bias)
    again.must_stop = lambda: True
    assert again.solve(ids, tol=1e-12).primal >= merged.dual * (1 - 1e-9)


def test_nothing_selected_is_no_case_for_merging() -> None:
    data = Instance.from_arrays(sparse.csc_array(np.eye(2 * MERGE_ABOVE, 3)), np.resize([1.0, -1.0], 2 * MERGE_ABOVE))
    svm = get_loss("hinge").Solver(data, np.ones(2 * MERGE_ABOVE), True).solve(np.array([], dtype=np.int64))
    assert svm.primal == pytest.approx(2 * MERGE_ABOVE)
