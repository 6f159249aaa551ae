"""Units of the study of thin data and texts, on made data of a hundred rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import mipfs
from mipfs.generators import tan_2014
from mipfs.lab.experiments import tan2014_sparse as study
from mipfs.lab.experiments.study import Row
from mipfs.lab.experiments.tan2014 import T
from mipfs.lab.experiments.tan2014_sparse import claims, report


@pytest.fixture
def parts() -> study.SparseSplit:
    drawn = tan_2014(120, 60, 5, 0, density=0.3, n_test=50)
    (X, y), (X_test, y_test) = drawn["train"], drawn["test"]
    data = mipfs.Instance.from_arrays(X, np.asarray(y, dtype=float))
    return study.SparseSplit(data, X_test.tocsc(), np.asarray(y_test, dtype=float))


@pytest.mark.slow
def test_l1_has_no_more_features_than_fgm(parts: study.SparseSplit) -> None:
    rows = {row["method"]: row for row in study._measure_methods(parts, 2, first=True)}
    assert set(rows) == {"fgm", "slr", "l1", "l1-lr", "fgm unbias", "l1 unbias", "all", "all-lr"}
    for mine, theirs in (("fgm", "l1"), ("slr", "l1-lr")):
        assert 0 < rows[theirs]["size"] <= rows[mine]["size"] <= 2 * T
    assert rows["all"]["size"] <= 60
    assert all(0.0 <= row["accuracy"] <= 1.0 and row["seconds"] >= 0.0 for row in rows.values())


@pytest.mark.slow
def test_growing_rows_keep_the_columns_that_they_have(parts: study.SparseSplit) -> None:
    n = 30
    some = np.random.default_rng([1, 5]).permutation(120)[:n]
    seen = np.unique(sparse.csr_array(parts.data.block().values)[some].indices)
    rows = {row["method"]: row for row in study._measure_growing_rows(parts, n, 1)}
    assert set(rows) == {"fgm", "l1", "all"}
    assert rows["all"]["size"] <= seen.size


def test_reports_and_claims_of_all_parts() -> None:
    rows: list[Row] = []
    for seed in range(3):
        for density in study.DENSITIES:
            place = {"part": "density", "density": density, "seed": seed}
            rows += [{**place, "method": m, "size": 3, "accuracy": a, "seconds": s, "parameter": 1.0}
                     for m, a, s in (("fgm", 0.9, 1.0), ("l1", 0.8, 1.0 + 9.0 * (density >= 0.2)))]  # fmt: skip
        for data in "abc":
            place = {"part": "texts", "data": data, "B": 2, "seed": seed}
            values = {
                "fgm": 0.9,
                "l1": 0.8,
                "fgm unbias": 0.9,
                "l1 unbias": 0.85,
                "slr": 0.9,
                "l1-lr": 0.9,
                "all": 0.95,
            }
            rows += [{**place, "method": m, "size": 3, "accuracy": a, "seconds": 1.0} for m, a in values.items()]
            for n, lead in ((10, 0.1), (20, 0.05)):
                place = {"part": "rows", "data": data, "n": n, "seed": seed}
                values = {"fgm": 0.9, "l1": 0.9 - lead, "all": 0.8}
                rows += [{**place, "method": m, "size": 3, "accuracy": a, "seconds": 1.0} for m, a in values.items()]
    assert [claim.verdict for claim in claims(rows)] == ["confirmed"] * 6  # ℓ1 takes as long as FGM, then tenfold
    assert len(report(rows)) > 8
    worse = [{**row, "accuracy": 1.0 - row["accuracy"]} for row in rows]
    assert claims(worse)[0].verdict == "refuted"
