"""Leverage scores, projections, pivots and uniform draws against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from mipfs.data.instance import Instance
from mipfs.errors import DataError, UsageError
from mipfs.lab.sketch import METHODS, available, leverage, select
from mipfs.lab.sketch.select import Choice, choose
from tests import sketch_oracles as oracle

R = np.random.default_rng(11)
X = R.standard_normal((6, 25)) * np.exp(R.standard_normal(25))
X[:, 7] = 0.0


def instance(Z: object) -> Instance:
    """A matrix without labels."""
    return Instance.from_arrays(Z, np.full(Z.shape[0], np.nan), training=False)


def test_leverage_scores_are_drawn_as_often_as_they_say() -> None:
    """10,000 draws: every frequency within 4.5 deviations, and χ² near its mean."""
    scores = np.sum(oracle.right_vectors(X) ** 2, axis=1) / 6.0
    found = select(instance(X), "leverage", 10_000, seed=3)
    counts = np.zeros(25)
    counts[found.ids] = found.repeats
    assert counts.sum() == 10_000
    assert counts[7] == 0.0
    deviation = np.sqrt(10_000 * scores * (1.0 - scores))
    assert np.all(np.abs(counts - 10_000 * scores) <= 4.5 * deviation + 1e-9)
    drawn = scores > 0
    chi = np.sum((counts[drawn] - 10_000 * scores[drawn]) ** 2 / (10_000 * scores[drawn]))
    assert abs(chi - 23.0) < 5.0 * np.sqrt(2.0 * 23.0)
    np.testing.assert_allclose(found.rescaling**2, found.repeats / (10_000 * scores[found.ids]), rtol=1e-9)
    assert found.guarantee.epsilon == pytest.approx(oracle.epsilon(X, found.ids, found.rescaling**2), abs=1e-9)
    assert found.guarantee.epsilon < found.guarantee.promised.epsilon < 0.2


def test_leverage_scores_promise_what_one_in_a_hundred_draws_may_break() -> None:
    data, broken, values = instance(X), 0, []
    for seed in range(200):
        found = select(data, "leverage", 60, seed=seed)
        values.append(found.guarantee.epsilon)
        broken += found.guarantee.epsilon > found.guarantee.promised.epsilon
    assert broken <= 3
    assert np.median(values) < leverage.bound(6, 60)
    epsilon, level = leverage.bound(6, 60), np.log(2 * 6 / 0.01) * 5 / 60
    assert epsilon**2 / 2 == pytest.approx(level * (1 + epsilon / 3))
    assert leverage.bound(1, 1) == 0.0


def test_one_direction_is_kept_exactly_by_any_draw() -> None:
    found = select(instance(np.outer([1.0, -2.0], [1.0, 2.0, 3.0])), "leverage", 1, seed=5)
    assert found.guarantee.epsilon == pytest.approx(0.0, abs=1e-12)
    assert found.guarantee.promised.epsilon == 0.0


def test_the_same_seed_draws_the_same() -> None:
    for method in ("leverage", "uniform", "approx-bss"):
        first, again, other = (select(instance(X), method, 24, seed=seed).order.tolist() for seed in (1, 1, 2))
        assert first == again
        assert method == "approx-bss" or first != other


@pytest.mark.slow
def test_uniform_draws_are_different_and_of_weight_p_over_r() -> None:
    found = select(instance(X), "uniform", 10, seed=1)
    assert found.ids.size == 10
    np.testing.assert_allclose(found.rescaling**2, 2.5)
    counts = np.zeros(25)
    for seed in range(300):
        counts[select(instance(X), "uniform", 5, seed=seed, check=False).ids] += 1
    assert np.all(np.abs(counts - 60) < 4.5 * np.sqrt(60 * 0.8))
    with pytest.raises(UsageError, match="r = 26 must be at most 25"):
        select(instance(X), "uniform", 26)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_pivots_are_the_columns_farthest_from_those_before(container: object) -> None:
    rest, expected = X.copy(), []
    for _ in range(6):
        j = int(np.argmax(np.linalg.norm(rest, axis=0)))
        expected.append(j)
        unit = rest[:, j] / np.linalg.norm(rest[:, j])
        rest = rest - np.outer(unit, unit @ rest)
    assert select(instance(container(X)), "rrqr", 4).order.tolist() == expected[:4]
    found = select(instance(container(X)), "rrqr", 9)
    assert found.order.tolist() == expected
    assert found.guarantee.warnings == (
        "6 columns were taken, not 9: they span all others, and pivots beyond them mean nothing",
    )
    assert found.guarantee.promised is None
    np.testing.assert_array_equal(found.rescaling, 1.0)


def test_approximate_bss_becomes_bss_as_projections_grow() -> None:
    r = np.random.default_rng(0)
    Z = r.standard_normal((15, 200)) * np.exp(0.5 * r.standard_normal(200))
    data = instance(Z)
    exact = set(select(data, "bss", 45, check=False).ids.tolist())
    shares = []
    for projections in (15, 60, 500, 20_000):
        alike = []
        for seed in range(4):
            how = Choice("approx-bss", 45, None, projections, 1.0, True, seed, False)
            alike.append(len(exact & set(choose(data, how).ids.tolist())) / 45)
        shares.append(float(np.mean(alike)))
    assert shares == sorted(shares), shares
    assert shares[0] < 0.9, shares
    assert shares[-1] > 0.95, shares


def test_projections_keep_the_guarantee_where_they_keep_the_rank() -> None:
    for projections, sure in ((6, True), (40, True), (3, False)):
        found = select(instance(X), "approx-bss", 24, projections=projections)
        guarantee = found.guarantee
        assert (guarantee.promised is not None) == sure
        assert guarantee.rank == 6
        assert guarantee.epsilon == pytest.approx(oracle.epsilon(X, found.ids, found.rescaling**2), abs=1e-9)
        if sure:
            q = np.sqrt(6 / 24)
            assert guarantee.epsilon <= 2 * q + q * q
        else:
            assert any("does not carry over" in warning for warning in guarantee.warnings)
    deficient = np.random.default_rng(1).standard_normal((9, 2)) @ np.random.default_rng(2).standard_normal((2, 12))
    few = select(instance(deficient), "approx-bss", 20, projections=4, check=False).guarantee
    assert few.promised is not None, "4 projections of rank 2: the rank of the rows is 2"
    assert few.warnings[-1] == "nothing was measured"
    assert select(instance(X), "approx-bss", 24, projections=3, check=False).guarantee.promised is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"method": "bbs"}, "method 'bbs' is not known; did you mean 'bss'?"),
        ({"method": "uniform"}, "uniform has no r of its own; give r, the number of picks"),
        ({"method": "bss", "r": 0}, "r = 0 must be a whole number >= 1"),
        ({"method": "bss", "r": 2.5}, "r = 2.5 must be a whole number"),
        ({"method": "bss", "r": True}, "r = True must be a whole number"),
        ({"method": "bss", "seed": -1}, "seed = -1 must be a whole number >= 0"),
        ({"method": "bss", "rank": 0}, "rank = 0 must be a whole number >= 1"),
        ({"method": "rrqr", "r": 3, "rank": 2}, "rank = 2 has no meaning for rrqr; choose by bss or leverage"),
        ({"method": "bss", "projections": 9}, "projections = 9 has no meaning for bss; choose by approx-bss"),
        ({"method": "approx-bss", "r": 9, "projections": 0}, "projections = 0 must be a whole number >= 1"),
        ({"method": "approx-bss", "r": 5, "projections": 6}, "r = 5 must be above 6, the rank of 6 projections"),
        ({"method": "bss", "C": 0.0}, "C = 0.0 must be a positive number"),
        ({"method": "bss", "C": np.inf}, "C = inf must be a positive number"),
        ({"method": "bss", "supervised": True}, "these data have no labels; give them"),
    ],
)
def test_refused(given: dict, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        select(instance(X), **given)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_every_method_is_listed_and_takes_rows_of_one_sample() -> None:
    assert available() == tuple(METHODS)
    row = instance(np.array([[0.0, 3.0, -4.0]]))
    for method in available():
        found = select(row, method, 3)
        assert set(found.ids.tolist()) <= ({0, 1, 2} if method == "uniform" else {1, 2})
        assert found.guarantee.radius is None, "one point has no radius"


def test_leading_directions_only_and_what_is_said_of_them() -> None:
    found = select(instance(X), "bss", 12, rank=2)
    guarantee = found.guarantee
    assert (guarantee.rank, guarantee.is_whole) == (2, False)
    assert guarantee.epsilon <= guarantee.promised.epsilon
    assert any("leaves out directions" in warning for warning in guarantee.warnings)
    assert "nothing of margins or radii" in guarantee.about
    assert "Squared margin" not in found.summary()
    assert select(instance(X), "bss", 25, rank=99).guarantee.is_whole
    unmeasured = select(instance(X), "bss", 12, rank=2, check=False).guarantee
    assert unmeasured.warnings == (*guarantee.warnings, "nothing was measured")
    assert (unmeasured.promised, unmeasured.is_whole, unmeasured.epsilon) == (guarantee.promised, False, None)
    with pytest.raises(DataError):
        select(instance(np.zeros((2, 2))), "bss", 3, rank=1)
