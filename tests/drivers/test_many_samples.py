"""Very many samples: what is done with them piece by piece is the same, and a fit holds few vectors over them."""

from __future__ import annotations

import gc
import tracemalloc
import weakref
from collections.abc import Callable

import numpy as np
import pytest
from scipy import sparse

import mipfs
from mipfs.data.blocked import split_in_memory
from mipfs.data.instance import Instance
from mipfs.drivers.kelley import Options
from mipfs.drivers.most_violated import MostViolated
from mipfs.inner.alike import group_alike_samples
from mipfs.inner.restricted import feasible
from mipfs.losses import get_loss
from mipfs.plumbing import digest
from mipfs.proof.cuts import dual_value_below
from mipfs.proof.duals import DualStore
from mipfs.run.run import Run
from mipfs.svm import dyadic


def drawn(seed: int, n: int, p: int = 40, share: float = 0.06) -> tuple[sparse.csc_array, np.ndarray]:
    """0/1 columns of which the first three decide."""
    r = np.random.default_rng(seed)
    X = sparse.random_array((n, p), density=share, format="csc", rng=r, data_sampler=lambda size: np.ones(size))
    y = np.where(X[:, [0, 1]].sum(axis=1) - X[:, [2]].sum(axis=1) + 0.8 * r.standard_normal(n) > 0, 1.0, -1.0)
    return X, y


@pytest.mark.sampled(29)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("kind", ["sparse", "dense", "blocks", "weighted"])
@pytest.mark.parametrize("loss", ["squared-hinge", "logistic", "hinge"])
def test_pieces_of_the_samples_change_nothing(
    loss: str, kind: str, bias: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = drawn(2, 700)
    weight = np.random.default_rng(1).integers(1, 4, y.size).astype(float) if kind == "weighted" else None
    values = X.toarray() if kind == "dense" else split_in_memory(X, 11) if kind == "blocks" else X
    data = Instance.from_arrays(values, y, sample_weight=weight)
    problem = mipfs.Problem(data, loss=loss, bias=bias, M=3)
    whole = mipfs.solve(problem, "kelley", T=6)
    monkeypatch.setattr(dyadic, "SAMPLES_PER_SLICE", 64)
    monkeypatch.setattr("mipfs.problem.SAMPLES_PER_SLICE", 64)
    found = mipfs.solve(mipfs.Problem(data, loss=loss, bias=bias, M=3), "kelley", T=6)
    assert found.selected == whole.selected
    assert found.objective == pytest.approx(whole.objective, rel=1e-9)
    assert found.bound == pytest.approx(whole.bound, rel=1e-9)
    assert mipfs.verify(found, data).accepted


@pytest.mark.parametrize("top", [None, 0.75])
@pytest.mark.parametrize("seed", range(4))
def test_dual_vectors_are_packed_alike_in_pieces(seed: int, top: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    r, n, q = np.random.default_rng(seed), 101, 20
    k = r.integers(0, 1 << r.integers(1, 20), n)
    k[r.random(n) < 0.4] = 0
    k[r.random(n) < 0.3] = int(0.75 * 2**q)
    k = np.zeros(n, dtype=np.int64) if seed == 3 else k
    ends = None if top is None else np.full(n, top)
    monkeypatch.setattr(dyadic, "SAMPLES_PER_SLICE", 13)
    store = DualStore(n, ends)
    store.add(k, q)
    values = k[k != 0]
    at_top = values == (int(values.max(initial=0)) if top is None else int(0.75 * 2**q))
    inside = values[~at_top]
    width = -(-int(inside.max(initial=0)).bit_length() // 8)
    packed = b"".join(int(one).to_bytes(width, "little") for one in inside)
    assert store._bytes.array().tobytes() == np.packbits(k != 0).tobytes() + np.packbits(at_top).tobytes() + packed
    np.testing.assert_array_equal(store.get(0)[0], k)


def test_arrays_are_hashed_as_their_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digest, "NUMBERS_AT_ONCE", 7)
    y, weight, bags = np.linspace(-1, 1, 50), np.broadcast_to(1.0, (50,)), np.arange(50)
    whole = [y.astype("<f8").tobytes(), weight.astype("<f8").tobytes(), bags.astype("<i8").tobytes()]
    assert digest.digest([b"a", y, weight, bags]) == digest.digest([b"a", *whole])


def test_a_run_is_gone_when_nobody_holds_it() -> None:
    """What it holds of every sample would stay until Python looks for cycles."""
    X, y = drawn(1, 30)
    gc.disable()
    try:
        run = Run(mipfs.Problem(Instance.from_arrays(X, y), M=2), Options())
        asked, left = run.oracle.must_stop, weakref.ref(run)
        assert not asked()
        run.interrupted = True
        assert asked()
        del run
        assert left() is None
        assert not asked()
    finally:
        gc.enable()


def peak(work: Callable[[], object], n: int) -> float:
    """The most that is allocated meanwhile, in vectors of n numbers."""
    work()  # compiles, and what is kept from the first time on
    gc.collect()
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1] / (8 * n)
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_few_vectors_over_the_samples_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    n = 200_000
    monkeypatch.setattr(dyadic, "SAMPLES_PER_SLICE", 1 << 12)
    monkeypatch.setattr("mipfs.problem.SAMPLES_PER_SLICE", 1 << 12)
    monkeypatch.setattr(digest, "NUMBERS_AT_ONCE", 1 << 12)
    X, y = drawn(4, n, 20, 0.01)
    data = Instance.from_arrays(split_in_memory(X, 7), y)
    problem = mipfs.Problem(data, loss="squared-hinge", bias=False, M=3)
    oracle = MostViolated(Run(problem, Options()), "hull")
    alpha = np.full(n, 0.3)

    def asked() -> None:
        oracle._best = -np.inf, None, 1.0
        oracle(alpha)

    assert peak(asked, n) < 1.3  # v, then a multiple of α
    assert (
        oracle.best[0]
        > oracle.selection_of_scores(alpha * y, dual_value_below(get_loss(problem.loss), alpha, problem.c_i))[2]
    )
    assert peak(lambda: feasible(problem, alpha, in_place=True), n) < 0.3
    kinds = group_alike_samples(problem, np.arange(3))
    assert kinds is not None
    assert peak(lambda: kinds.spread(np.ones(kinds.first.size), problem.c_i), n) < 1.3
    assert peak(lambda: problem.evaluate([0, 1], np.ones(2), 0.0), n) < 0.4
    k = np.full(n, 12345)
    k[0] = 12346
    assert peak(lambda: DualStore(n).add(k, 20), n) < 1.3  # a bit and two bytes of every sample, and masks
    assert peak(lambda: Instance.sha256.func(data), n) < 0.1  # type: ignore[attr-defined]
