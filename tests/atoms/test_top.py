"""The best features without reading every column, against a full sort."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from mipfs.atoms import parts, top
from mipfs.atoms.features import Features
from mipfs.data.instance import Instance


def instance(seed: int, p: int, stored: bool, scale: str = "none") -> Instance:
    r = np.random.default_rng(seed)
    X = sparse.random_array((40, p), density=0.08, rng=r, format="csc")
    X.data = np.round(r.standard_normal(X.nnz), 2)
    y = np.where(np.arange(40) % 3 == 0, 1.0, -1.0)
    return Instance.from_arrays(X if stored else X.toarray(), y, scale=scale)


@pytest.mark.parametrize("scaling", ["none", "norm"])
@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize("B", [1, 7, 60, 10_000])
def test_equals_a_full_sort(monkeypatch: pytest.MonkeyPatch, B: int, stored: bool, scaling: str) -> None:
    monkeypatch.setattr(parts, "KEPT_COLUMNS", 100)
    monkeypatch.setattr(parts, "LEVEL_COLUMNS", 20)
    for scale in ("none", "standard"):
        features = Features(instance(B, 3000, stored, scale), scaling)
        finder = top.TopFeatures(features)
        for seed in range(5):
            v = np.random.default_rng(seed).standard_normal(40) * (10.0**seed)
            v[seed:] *= 0.01  # a few large entries: some columns of small norm win
            ids, sizes = finder.best(v, B)
            scores = features.scores(v)
            order = np.lexsort((np.arange(scores.size), -scores))
            clear = np.all(np.diff(scores[order[: B + 1]]) < -1e-9 * scores.max())
            order = order[scores[order] > 0][:B]
            np.testing.assert_allclose(np.square(sizes), scores[order], rtol=1e-9)
            if clear:
                np.testing.assert_array_equal(ids, order)
            exact = np.abs((features.data.X.toarray() if stored else features.data.X).T @ v)
            exact = np.abs((exact if not np.any(features.data.center) else features.omega(v)) * features.scale)
            assert np.all(np.abs(sizes - np.abs(exact[ids])) <= finder.radius(v) + 1e-300)


def test_nothing_correlates() -> None:
    finder = top.TopFeatures(Features(instance(1, 50, True)))
    ids, sizes = finder.best(np.zeros(40), 5)
    assert ids.size == sizes.size == 0


@pytest.mark.slow
def test_two_python_threads_on_numbas_plainest_layer() -> None:
    """The workqueue layer, all there is where OpenMP is not, aborts the process when two kernels run at once."""
    import os
    import subprocess
    import sys

    code = """
import threading, numpy as np, mipfs
from scipy import sparse
X = sparse.random_array((50, 20_000), density=5e-3, rng=np.random.default_rng(0), format="csc")
data = mipfs.Instance.from_arrays(X, np.where(np.arange(50) % 2, 1.0, -1.0))
problem = mipfs.Problem(data, loss="squared-hinge", bias=False, M=5)
found = [mipfs.solve(problem, "kelley", gap=1e-3).bound]
threads = [threading.Thread(target=lambda: found.extend(mipfs.solve(problem, "kelley", gap=1e-3).bound for _ in "123"))
           for _ in range(3)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert len(found) == 10 and len(set(found)) == 1, found
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "NUMBA_THREADING_LAYER": "workqueue"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
