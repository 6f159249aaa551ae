"""`Result.cuts`: rows that hold for every selection, as arrays, as a data frame, and in RMP."""

from __future__ import annotations

import itertools

import numpy as np
import pyomo.environ as pyo
import pytest

import mipfs
from mipfs.errors import UsageError
from mipfs.models import benders
from tests.formulation.test_charges import CHARGES, NAMES, C, best, data, value


@pytest.mark.sampled(2)
@pytest.mark.parametrize("loss", ["hinge", "squared-hinge", "logistic"])
def test_they_hold_and_meet_at_the_optimum(loss: str) -> None:
    problem = mipfs.Problem(data(), M=3, C=C, loss=loss, lam=CHARGES.tolist())
    result = mipfs.solve(problem, "gbd", gap=1e-7, keep_cuts=True)
    cuts = result.cuts
    assert len(cuts) == cuts.constants.size == result.counters["cuts"]
    assert cuts.coefficients.shape == (len(cuts), 5)
    assert cuts.alphas is not None
    for k in range(6):
        for S in itertools.combinations(range(5), k):
            true = value(loss, True, S) + CHARGES[list(S)].sum()
            assert cuts.values([NAMES[j] for j in S]).max() <= true * (1 + 1e-9)
    assert cuts.values(result.selected).max() == pytest.approx(best(loss, True, CHARGES), rel=1e-5)
    frame = cuts.to_frame()
    assert list(frame.columns) == ["constant", *NAMES]
    np.testing.assert_array_equal(frame["constant"], cuts.constants)
    np.testing.assert_array_equal(frame[NAMES].to_numpy(), cuts.coefficients)
    master = benders.rmp(problem, cuts.alphas)
    pyo.SolverFactory("appsi_highs").solve(master)
    assert pyo.value(master.lower) <= result.objective * (1 + 1e-6)
    assert pyo.value(master.lower) == pytest.approx(result.objective, rel=1e-4)


def test_without_them_the_remedy_is_named() -> None:
    problem = mipfs.Problem(data(), M=2, C=C)
    with pytest.raises(UsageError, match="solve with 'gbd' and keep_cuts=True"):
        _ = mipfs.solve(problem).cuts
    with pytest.raises(UsageError, match="no feature is called 'z'"):
        mipfs.solve(problem, "gbd", keep_cuts=True).cuts.values(["z"])


def test_a_measure_has_them_without_dual_vectors() -> None:
    problem = mipfs.Problem(data(), loss="structural", measure="f1", M=2, C=C)
    cuts = mipfs.solve(problem, "gbd", keep_cuts=True).cuts
    assert len(cuts) > 0
    assert cuts.alphas is None
