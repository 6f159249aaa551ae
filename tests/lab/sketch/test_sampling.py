"""Leverage scores, projections, pivots and uniform draws against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from mipfs.data.instance import Instance
from mipfs.errors import DataError, UsageError
from mipfs.lab.sketch import METHODS, approximate_leverage, available, bss, leverage, select
from mipfs.lab.sketch.select import Choice, choose
from mipfs.lab.sketch.source import Source
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


@pytest.mark.slow
def test_leverage_scores_promise_what_one_in_a_hundred_draws_may_break() -> None:
    data, broken, values = instance(X), 0, []
    for seed in range(200):
        found = select(data, "leverage", 60, seed=seed)
        values.append(found.guarantee.epsilon)
        broken += found.guarantee.epsilon > found.guarantee.promised.epsilon
    assert broken <= 3
    assert np.median(values) < leverage.error_bound(6, 60)
    epsilon, level = leverage.error_bound(6, 60), np.log(2 * 6 / 0.01) * 5 / 60
    assert epsilon**2 / 2 == pytest.approx(level * (1 + epsilon / 3))
    assert leverage.error_bound(1, 1) == 0.0


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


@pytest.mark.slow
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


def test_approximate_scores_are_near_the_exact_ones() -> None:
    """Exact where nothing is projected; with few rows of G within a factor; dense or sparse, centred."""
    Z = R.standard_normal((12, 600)) * np.exp(0.5 * R.standard_normal(600))
    exact = np.sum(oracle.right_vectors(Z) ** 2, axis=1)
    found = approximate_leverage.scores(Source(instance(Z)), 1, projections=12)
    assert np.all(np.abs(found / exact - 1) < 0.75)
    assert abs(found.sum() / 12 - 1) < 0.1
    few = approximate_leverage.scores(Source(instance(Z)), 1, projections=6)
    assert np.corrcoef(few, exact)[0, 1] > 0.7
    whole = approximate_leverage.scores(Source(instance(X)), 1)  # fewer columns than rows of S X'
    np.testing.assert_allclose(whole, np.sum(oracle.right_vectors(X) ** 2, axis=1), rtol=1e-8, atol=1e-12)
    thin = np.where(np.abs(Z) > 1.0, Z, 0.0)
    dense, sparse_one = (Instance.from_arrays(one, np.full(12, np.nan), scale="standard", training=False)
                         for one in (thin, sparse.csc_array(thin)))  # fmt: skip
    a, b = (approximate_leverage.scores(Source(one), 3) for one in (dense, sparse_one))
    np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-12)


def test_draws_by_approximate_scores_keep_the_eigenvalues() -> None:
    Z = R.standard_normal((10, 500)) * np.exp(R.standard_normal(500))
    exact = [select(instance(Z), "leverage", 400, seed=s).guarantee.epsilon for s in range(8)]
    found = [select(instance(Z), "approx-leverage", 400, seed=s).guarantee for s in range(8)]
    assert all(one.promised is None for one in found)
    assert np.median([one.epsilon for one in found]) < 2.0 * np.median(exact)
    first, again = (select(instance(Z), "approx-leverage", 40, seed=5) for _ in "ab")
    np.testing.assert_array_equal(first.order, again.order)


@pytest.mark.parametrize("method", ["bss", "leverage"])
def test_the_picks_that_an_epsilon_takes_are_the_fewest(method: str) -> None:
    module = bss if method == "bss" else leverage
    for rank in (1, 6, 30):
        for epsilon in (0.1, 0.5, 0.9):
            r = module.picks_for(rank, epsilon)
            promised = bss.promise_eigenvalues(rank, r).epsilon if method == "bss" else leverage.error_bound(rank, r)
            assert promised <= epsilon * (1 + 1e-12)
            if r > rank + 1:
                fewer = (
                    bss.promise_eigenvalues(rank, r - 1).epsilon
                    if method == "bss"
                    else leverage.error_bound(rank, r - 1)
                )
                assert fewer > epsilon
            assert method == "leverage" or r <= max(rank + 1, 9 * rank / epsilon**2)  # the paper's, Lemma 2
    found = select(instance(X), method, epsilon=0.8)
    assert found.r == module.picks_for(6, 0.8)
    assert found.guarantee.promised.epsilon <= 0.8
    for given, said in (
        ({"r": 9, "epsilon": 0.5}, "r follows from epsilon; give one of them"),
        ({"epsilon": 1.0}, "epsilon = 1.0 must be a positive number below 1"),
    ):
        with pytest.raises(UsageError, match=said):
            select(instance(X), method, **given)
    with pytest.raises(UsageError, match="is promised by no choice of uniform; choose by bss or leverage"):
        select(instance(X), "uniform", epsilon=0.5)
