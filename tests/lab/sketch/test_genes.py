"""The theorems as inequalities on the shared gene sets, and the sharp bound on other real matrices."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import mipfs
from mipfs.lab.sketch import select
from tests import sketch_oracles as oracle

needs_data = pytest.mark.skipif("MIPFS_DATA" not in os.environ, reason="MIPFS_DATA is unset")
INSTANCES = Path(__file__).parents[3] / "instances"


def real(name: str, scale: str) -> mipfs.Instance:
    """A set below MIPFS_DATA."""
    return mipfs.read(Path(os.environ["MIPFS_DATA"]) / name / "data.svm.gz", scale=scale)


@needs_data
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "supervised"), [("colon_alon", False), ("leukemia_golub", True), ("prostate_singh", False)]
)
def test_margin_and_radius_on_genes(name: str, supervised: bool) -> None:
    data = real(name, "standard")
    for method in ("bss", "leverage", "approx-bss"):
        for r in (150, 1200):
            found = select(data, method, r, supervised=supervised, seed=1)
            guarantee = found.guarantee
            eigenvalues, margin, radius = guarantee.eigenvalues, guarantee.margin, guarantee.radius
            assert eigenvalues.low * (1 - 1e-6) <= margin.high
            assert margin.low <= eigenvalues.high * (1 + 1e-6)
            assert margin.high <= margin.low * (1 + 1e-4)
            if not supervised:
                assert eigenvalues.low * (1 - 1e-6) <= radius.high
                assert radius.low <= eigenvalues.high * (1 + 1e-6)
            if method == "leverage":
                continue
            promised, q = guarantee.promised, np.sqrt(guarantee.rank / r)
            if promised is None:  # r/4 projections are fewer than the rank
                assert method == "approx-bss"
                assert r // 4 < guarantee.rank
                continue
            assert promised.low == pytest.approx((1 - q) ** 2)
            assert promised.low * (1 - 1e-6) <= eigenvalues.low
            assert guarantee.epsilon <= (2 * q + q * q) * (1 + 1e-6)


@needs_data
@pytest.mark.slow
@pytest.mark.parametrize("scale", ["none", "standard", "unit"])
@pytest.mark.parametrize("name", ["australian", "german", "heart_statlog", "ionosphere", "pima", "sonar", "spambase"])
def test_the_sharp_bound_on_real_matrices(name: str, scale: str) -> None:
    data = real(name, scale)
    X = data.X.toarray() - data.center if data.is_sparse else data.X
    rank = oracle.right_vectors(X).shape[1]
    for r in (rank + 1, 2 * rank, 12 * rank):
        found, q = select(data, "bss", r, check=False), np.sqrt(rank / r)
        assert oracle.epsilon(X, found.ids, found.rescaling**2) <= (2 * q + q * q) * (1 + 1e-6)
        assert found.guarantee.promised.epsilon == pytest.approx(2 * q + q * q)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("file", "scale"), [("wdbc.svm", "none"), ("wdbc.svm", "standard"), ("credit.csv", "unit")])
def test_the_sharp_bound_on_the_shipped_data(file: str, scale: str) -> None:
    data = mipfs.read(INSTANCES / file, scale=scale)
    rank = oracle.right_vectors(data.X).shape[1]
    for r in (rank + 1, 2 * rank, 12 * rank):
        found, q = select(data, "bss", r), np.sqrt(rank / r)
        assert oracle.epsilon(data.X, found.ids, found.rescaling**2) <= (2 * q + q * q) * (1 + 1e-6)
        assert found.guarantee.promised.low * (1 - 1e-6) <= found.guarantee.margin.high
        assert found.guarantee.radius.low <= found.guarantee.promised.high
