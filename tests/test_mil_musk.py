"""The MUSK benchmark on a small made-up set: stored fold by fold, resumed, and its figures agree with scikit-learn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file
from sklearn.metrics import f1_score

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def musk(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import musk as module

    monkeypatch.setattr(module, "FOLDS", 3)
    monkeypatch.setattr(module, "WIDTHS", (1.0,))
    return module


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    r = np.random.default_rng(1)
    names = np.repeat(np.arange(24), 2)
    X, y = r.standard_normal((48, 3)), np.where(names % 2 == 1, 1.0, -1.0)
    X[np.flatnonzero(names % 2 == 1)[::2]] += 4.0
    (tmp_path / "made").mkdir()
    dump_svmlight_file(X, y, str(tmp_path / "made" / "data.svm"), zero_based=False)
    import gzip

    text = (tmp_path / "made" / "data.svm").read_bytes()
    (tmp_path / "made" / "data.svm.gz").write_bytes(gzip.compress(text))
    np.save(tmp_path / "made" / "bags.npy", names)
    return tmp_path


@pytest.mark.slow
def test_folds_are_stored_once_and_shown(musk: Any, folder: Path) -> None:
    store = folder / "musk.jsonl"
    musk.measure(folder, "made", [1], 3, store)
    found = musk.lines(store)
    assert len(found) == 3 * len(musk.METHODS)
    assert all(line["concepts"] <= 3 for line in found if line["method"] != "l1")
    musk.measure(folder, "made", [1], 3, store)
    assert musk.lines(store) == found
    page = musk.document(found)
    assert "## made: 24 bags, 48 rows, M = 3" in page
    for method in musk.METHODS:
        mine = [line["f1"] for line in found if line["method"] == method]
        assert f"| {method} | 3 | {np.mean(mine):.3f} ± {np.std(mine, ddof=1):.3f} |" in page
    assert max(line["f1"] for line in found if line["method"] == "f1") > 0.8


def test_no_test_bag_is_a_concept_and_folds_cover_every_bag_once(musk: Any, folder: Path) -> None:
    rows = musk.Rows(folder / "made")
    seen = []
    for train, test in rows.folds(np.arange(24), 3, 5):
        inside, outside = rows.embedded(train, test, 1.0)
        assert not set(train) & set(test)
        assert inside.shape == (train.size, 2 * train.size)
        assert outside.shape == (test.size, 2 * train.size)
        np.testing.assert_allclose(inside.max(axis=0), 1.0, rtol=1e-12)
        assert outside.max() < 1.0
        seen += test.tolist()
    assert sorted(seen) == list(range(24))


@pytest.mark.slow
def test_pooled_f1_and_the_largest_c(musk: Any) -> None:
    r = np.random.default_rng(2)
    truth, labels = r.choice([-1, 1], (2, 30)), r.choice([-1, 1], (2, 30))
    counts = [
        {"hits_named_true": [int(np.sum((a > 0) & (b > 0))), int(np.sum(b > 0)), int(np.sum(a > 0))]}
        for a, b in zip(truth, labels, strict=True)
    ]
    assert musk.pooled(counts) == pytest.approx(f1_score(truth.ravel(), labels.ravel()))
    E = r.random((40, 15))
    y = np.where(E[:, 0] + 0.3 * r.standard_normal(40) > 0.5, 1.0, -1.0)
    counts_of = [int(np.count_nonzero(musk.by_l1_to(M)(E, y, 1.0)[0])) for M in (1, 4, 15)]
    assert counts_of[0] <= 1 < counts_of[1] <= 4 < counts_of[2]
