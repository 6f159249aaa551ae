"""Dual vectors on dyadic grids, α = k·2^−q, compressed: most hinge duals are 0 or at the top."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.plumbing.arrays import Array, Integers
from mipfs.readers.duals import WIDEST


class DualStore:
    """Dual vectors, each compressed at once; read back bit for bit.

    A vector with s non-zeros, i of them below the top of their box, takes n/8 + s/8 + w·i bytes, where w ≤ 7 is the
    width of the largest such integer (7 on the grid of `mipfs.svm.dyadic`). The hinge at n = 5,000 with 40% at the
    top and 3% inside: 1.8 kB. A logistic dual is inside everywhere: 7 bytes per sample.

    Parameters
    ----------
    n_samples : int
    top : (n,) float, optional
        Upper ends of the box, the weights c_i. Without it a vector's largest entry counts as the top of all, which
        serves as well where the c_i are equal.
    """

    def __init__(self, n_samples: int, top: Array | None = None) -> None:
        self.n_samples = n_samples
        self._top = None if top is None else np.array(top, dtype=float)
        self._bytes = bytearray()
        self._start = [0]
        self._q: list[int] = []
        self._level: list[int] = []
        self._width: list[int] = []

    def __len__(self) -> int:
        return len(self._q)

    @property
    def n_bytes(self) -> int:
        """The bytes that all vectors take."""
        return len(self._bytes)

    @property
    def sizes(self) -> Integers:
        """The bytes of every vector, (D,)."""
        return np.asarray(np.diff(np.array(self._start)), dtype=np.int64)

    def add(self, k: Integers, q: int) -> int:
        """Store α = k·2^−q, k (n,) of 0 … 2^53; returns its position."""
        from mipfs.kernels.earned import pack
        from mipfs.kernels.structures import given

        k = np.ascontiguousarray(k, dtype=np.int64)
        weighted = self._top is not None
        assert k.shape == (self.n_samples,)
        most = int(k.max(initial=0))
        held = int(np.count_nonzero(k))
        assert k.min(initial=0) >= 0
        assert most <= WIDEST
        room = (k.size + 7) // 8 + (held + 7) // 8 + held * ((most.bit_length() + 7) // 8)
        packed = np.empty(room, dtype=np.uint8)
        end, level, width = pack(k, given(np.empty(0) if self._top is None else self._top), q, weighted, packed, 0)
        self._bytes += packed.data[:end]
        self._start.append(len(self._bytes))
        self._q.append(int(q))
        self._level.append(int(level))
        self._width.append(int(width))
        return len(self._q) - 1

    def extend(self, packed: bytes | bytearray, ends: Integers, q: Integers, level: Integers, width: Integers) -> int:
        """Store packed vectors, one behind the other up to `ends`; returns the position of the first."""
        first = len(self._q)
        offset = len(self._bytes)
        self._bytes += packed
        self._start += (ends + offset).tolist()
        self._q += q.tolist()
        self._level += level.tolist()
        self._width += width.tolist()
        return first

    def append(self, other: DualStore) -> int:
        """Store the vectors of another store of the same samples and box; returns the position of the first."""
        assert self.n_samples == other.n_samples
        assert (self._top is None) == (other._top is None)
        numbers = (np.array(part, dtype=np.int64) for part in (other._start[1:], other._q, other._level, other._width))
        return self.extend(other._bytes, *numbers)

    def part(self, ids: npt.NDArray[np.integer[Any]]) -> DualStore:
        """The store of some of the vectors, in their order."""
        store = DualStore(self.n_samples, self._top)
        store.extend(*self.packed(ids))
        return store

    def packed(self, ids: npt.NDArray[np.integer[Any]]) -> tuple[bytes, Integers, Integers, Integers, Integers]:
        """The vectors `ids` as `extend` takes them: their bytes, and where each ends, q, levels and widths (k,)."""
        held = memoryview(self._bytes)
        slices = [held[self._start[i] : self._start[i + 1]] for i in ids]
        ends = np.array([*itertools.accumulate(len(piece) for piece in slices)], dtype=np.int64)
        q, level, width = (
            np.array([of_all[i] for i in ids], dtype=np.int64) for of_all in (self._q, self._level, self._width)
        )
        return b"".join(slices), ends, q, level, width

    def get(self, index: int) -> tuple[Integers, int]:
        """k and q of a stored vector."""
        from mipfs.kernels.earned import unpack

        data = np.frombuffer(bytes(self._bytes[self._start[index] : self._start[index + 1]]), dtype=np.uint8)
        q = self._q[index]
        k = np.empty(self.n_samples, dtype=np.int64)
        unpack(data, self._level[index], self._width[index], self._ends(q), k)
        return k, q

    def _ends(self, q: int) -> Integers:
        """k of entries at the top of their box on the grid 2^−q, (n,), or (0,) where `level` says it."""
        if self._top is None:
            return np.empty(0, dtype=np.int64)
        return np.asarray(np.minimum(np.floor(np.ldexp(self._top, q)), float(WIDEST)), dtype=np.int64)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The store as plain arrays, for the sidecar."""
        return {
            "dual_bytes": np.frombuffer(bytes(self._bytes), dtype=np.uint8),
            "dual_start": np.array(self._start, dtype=np.int64),
            "dual_q": np.array(self._q, dtype=np.int32),
            "dual_level": np.array(self._level, dtype=np.int64),
            "dual_width": np.array(self._width, dtype=np.uint8),
            "dual_top": np.empty(0) if self._top is None else self._top,
        }
