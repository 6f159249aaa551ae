"""Sparse products of the interior point in parts: what NumPy has, whatever the parts; and they can be interrupted."""

from __future__ import annotations

import threading
import time
from collections import deque

import numpy as np
import pytest
from scipy import sparse

from mipfs.inner import designs
from mipfs.kernels.gram import sparse_gram
from mipfs.plumbing import blocks, own_threads


def drawn(n: int, k: int, density: float, seed: int) -> sparse.csc_array:
    """Columns with rows of very different length, some of them empty."""
    random = np.random.default_rng(seed)
    Z = random.standard_normal((n, k)) * (random.random((n, k)) < density * random.random((n, 1)) * 2.0)
    Z[: n // 10] = 0.0
    Z[-1] = 1.0
    return sparse.csc_array(Z)


def cut_up(monkeypatch: pytest.MonkeyPatch, work: float) -> None:
    """Have blocks of so much work at least, of any data, and short steps within them."""
    monkeypatch.setattr(blocks, "LARGE", -1)
    monkeypatch.setattr(designs, "BLOCK_WORK", work)
    monkeypatch.setattr(designs, "BLOCK_WORK_PER_NUMBER", 0.0)
    monkeypatch.setattr(designs, "NUMBERS_PER_BLOCK", 64)


@pytest.mark.parametrize(("n", "k"), [(200, 30), (30, 200), (5, 3), (1, 1), (0, 4), (4, 0)])
@pytest.mark.parametrize("much", [1.0, np.inf])
def test_parts_add_up(n: int, k: int, much: float, monkeypatch: pytest.MonkeyPatch) -> None:
    cut_up(monkeypatch, much)
    Z = drawn(n, k, 0.2, n + k) if n and k else sparse.csc_array((n, k))
    weights, shares = np.random.default_rng(1).random(n), np.random.default_rng(2).random(k)
    weights[::3] = 0.0
    design, dense = designs.Sparse(Z, lambda: False), Z.toarray()
    assert np.allclose(np.tril(design.gram(weights)), np.tril(dense.T @ (weights[:, None] * dense)))
    assert np.allclose(np.tril(design.outer(shares)), np.tril(dense @ (shares[:, None] * dense.T)))
    assert np.array_equal(design.gram(weights), design.gram(weights))


@pytest.mark.parametrize("much", [1.0, np.inf])
def test_a_product_is_interrupted_between_its_blocks(much: float, monkeypatch: pytest.MonkeyPatch) -> None:
    cut_up(monkeypatch, much)
    asked: list[int] = []

    def must_stop() -> bool:
        assert threading.current_thread() is threading.main_thread()
        asked.append(1)
        return len(asked) == 2

    design = designs.Sparse(drawn(2000, 10, 0.5, 3), must_stop)
    with pytest.raises(designs.Interrupted):
        design.gram(np.ones(2000))
    assert len(asked) == 2


def test_a_block_for_each_thread_and_all_here_where_no_thread_is_to_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    cut_up(monkeypatch, 1.0)
    Z, weights, seen = drawn(2000, 10, 0.5, 3), np.ones(2000), set[int]()
    gram = sparse_gram

    def watched(*given: object) -> None:
        seen.add(threading.get_ident())
        time.sleep(0.001)
        gram(*given)

    monkeypatch.setattr(designs, "sparse_gram", watched)
    design = designs.Sparse(Z, lambda: False)
    with blocks.inside(lambda: 3):
        expected = design.gram(weights)
    assert len(seen) == 3

    def none(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(own_threads, "_idle", deque())
    monkeypatch.setattr(threading.Thread, "start", none)
    with blocks.inside(lambda: 3):
        assert np.array_equal(design.gram(weights), expected)


def test_what_goes_wrong_in_a_block_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    cut_up(monkeypatch, 1.0)
    gram = sparse_gram

    def failing(*given: object) -> None:
        time.sleep(0.001)
        if threading.current_thread() is not threading.main_thread():
            raise MemoryError
        gram(*given)

    monkeypatch.setattr(designs, "sparse_gram", failing)
    with pytest.raises(MemoryError), blocks.inside(lambda: 2):
        designs.Sparse(drawn(2000, 10, 0.5, 3), lambda: False).gram(np.ones(2000))

    def stops() -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(designs, "sparse_gram", gram)
    with pytest.raises(KeyboardInterrupt), blocks.inside(lambda: 2):
        designs.Sparse(drawn(2000, 10, 0.5, 3), stops).gram(np.ones(2000))
