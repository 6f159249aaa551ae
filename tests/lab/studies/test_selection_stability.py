"""How often a feature is selected on parts of the samples: against draws of scikit-learn's kind, counted by hand."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest

import mipfs
from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.lab.studies import selection_stability
from mipfs.lab.studies.selection_stability import draw_rows, wilson_interval
from mipfs.report.blocks import Bars
from tests.readers.test_raw_table import RECIPE, table


def made(n: int = 60, p: int = 5, **given: Any) -> Instance:
    r = np.random.default_rng(1)
    X = r.normal(size=(n, p))
    return Instance.from_arrays(X, np.where(X[:, 0] + 0.4 * X[:, 1] + 0.5 * r.normal(size=n) > 0.3, 1.0, -1.0), **given)


@pytest.mark.slow
@pytest.mark.parametrize("bootstrap", [False, True])
def test_the_frequencies_are_those_of_the_draws(bootstrap: bool) -> None:
    data = made(scale="standard")
    found = mipfs.stability(mipfs.Problem(data, M=2, C=0.3), draws=8, share=0.6, bootstrap=bootstrap, seed=5)
    rng = np.random.default_rng(5)
    raw = data.X * data.scale + data.shift
    sets = []
    for _ in range(8):
        rows = draw_rows(data, None if bootstrap else 0.6, rng)
        part = Instance.from_arrays(raw[rows], data.y[rows], scale="standard")
        sets.append(mipfs.solve(mipfs.Problem(part, M=2, C=0.3)).selected)
    assert [*map(set, found.sets)] == [*map(set, sets)]
    counts = Counter(name for one in sets for name in one)
    assert {one.name: one.count for one in found.features if one.count} == counts
    assert [one.count for one in found.features] == sorted((one.count for one in found.features), reverse=True)
    for one in found.features:
        wanted = binomtest(one.count, 8).proportion_ci(method="wilson")
        assert (one.frequency, one.lower, one.upper) == pytest.approx((one.count / 8, wanted.low, wanted.high))
    assert {one.name for one in found.features if one.selected} == set(found.whole.selected)
    assert found.proven == 8
    again = mipfs.stability(mipfs.Problem(data, M=2, C=0.3), draws=8, share=0.6, bootstrap=bootstrap, seed=5)
    assert again.sets == found.sets
    document = json.loads(found.to_json())
    assert document["features"] == [vars(one) for one in found.features]
    assert found.to_frame()["count"].tolist() == [one.count for one in found.features]
    assert "proven to be the best of their draw" in found.summary()
    every = [one.name for one in found.features if one.frequency == 1.0]
    assert (f"All {len(found.sets)} draws select {', '.join(every)}" if every else "No feature is in") in found.lead()
    (chart,) = (block for block in found.shown() if isinstance(block, Bars))
    assert [(bar.name, bar.value) for bar in chart.bars] == [(one.name, one.frequency) for one in found.features]


def test_a_draw_has_both_classes_in_proportion() -> None:
    data = made()
    rng = np.random.default_rng(0)
    for share in (0.5, 0.9, None):
        rows = draw_rows(data, share, rng)
        for sign in (-1.0, 1.0):
            own = int(np.sum(data.y == sign))
            assert np.sum(data.y[rows] == sign) == (own if share is None else int(share * own))
        assert (share is None) == (np.unique(rows).size < rows.size)
    assert wilson_interval(0, 5)[1] == 0.0
    assert wilson_interval(5, 5)[2] == 1.0
    assert wilson_interval(0, 0) == (0.0, 0.0, 1.0)


def test_a_draw_fills_in_missing_values_by_itself(tmp_path: Path) -> None:
    """A sample that the bootstrap draws twice counts twice in the median, too."""
    path = tmp_path / "raw.csv"
    path.write_text(table(60))
    data = mipfs.read(path, label="bad", scale="none", **RECIPE)
    rows = draw_rows(data, None, np.random.default_rng(3))
    part = data.part(rows)
    j = data.index["age"]
    filled = {one.name: one for one in data.prepared.filled}["age"]
    known = rows[~np.isin(rows, filled.rows)]
    missing = np.isin(rows, filled.rows)
    assert missing.any()
    assert np.all(part.X[missing, j] == np.median(data.X[known, j]))
    again = part.part(np.arange(part.n_samples))
    np.testing.assert_array_equal(again.X, part.X)


def test_what_is_refused_and_what_ctrl_c_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = mipfs.Problem(made(), M=1)
    for given, message in (
        ({"draws": 1}, "draws = 1"),
        ({"share": 1.0}, "share = 1 must lie between 0 and 1"),
        ({"share": 0.01}, "leaves no sample of a class"),
        ({"share": -1.0}, "share = -1"),
        ({"M": 2}, "M"),
    ):
        with pytest.raises(UsageError, match=message):
            mipfs.stability(problem, **given)
    told: list[int] = []

    def stop(done: int, total: int) -> None:
        told.append(done)
        if done == 3:
            raise KeyboardInterrupt

    left = mipfs.stability(problem, draws=6, on_draw=stop)
    assert told == [1, 2, 3]
    assert len(left.sets) == 3
    assert "3 of 6 draws" in left.summary()
    assert selection_stability.MOST_SHOWN > 3
