"""Dual vectors on dyadic grids, α = k·2^−q, compressed: most hinge duals are 0 or at the top."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.plumbing.arrays import Array, Integers
from mipfs.plumbing.tape import Tape
from mipfs.readers.duals import WIDEST

Whole = npt.NDArray[np.integer[Any]]
Packed = npt.NDArray[np.uint8] | Sequence[npt.NDArray[np.uint8]]

MOVED = 1 << 6
"""Vectors that are moved to another store together."""


class DualStore:
    """Dual vectors, each compressed at once; read back bit for bit.

    A vector with s non-zeros, i of them below the top of their box, takes n/8 + s/8 + w·i bytes, where w ≤ 7 is the
    width of the largest such integer (7 on the grid of `mipfs.svm.dyadic`), and 21 for its place. The hinge at
    n = 5,000 with 40% at the top and 3% inside: 1.8 kB. A logistic dual is inside everywhere: 7 bytes per sample.

    Parameters
    ----------
    n_samples : int
    top : (n,) float, optional
        Upper ends of the box, the weights c_i. Without it a vector's largest entry counts as the top of all, which
        serves as well where the c_i are equal.
    tape : Tape, optional
        Where the vectors lie; in memory by default.
    """

    def __init__(self, n_samples: int, top: Array | None = None, tape: Tape | None = None) -> None:
        self.n_samples = n_samples
        self._top = None if top is None else np.array(top, dtype=float)
        self._bytes = Tape() if tape is None else tape
        self._start = array("q", [0])
        self._q = array("i")
        self._level = array("q")
        self._width = array("B")

    def __len__(self) -> int:
        return len(self._q)

    @property
    def n_bytes(self) -> int:
        """The bytes that all vectors take."""
        return len(self._bytes)

    @property
    def sizes(self) -> Integers:
        """The bytes of every vector, (D,)."""
        return np.diff(np.array(self._start))

    def add(self, k: Integers, q: int) -> int:
        """Store α = k·2^−q, k (n,) of 0 … 2^53; returns its position."""
        from mipfs.kernels.earned import pack_dual
        from mipfs.kernels.structures import only_read

        k = np.ascontiguousarray(k, dtype=np.int64)
        weighted = self._top is not None
        assert k.shape == (self.n_samples,)
        most = int(k.max(initial=0))
        held = int(np.count_nonzero(k))
        assert k.min(initial=0) >= 0
        assert most <= WIDEST
        room = (k.size + 7) // 8 + (held + 7) // 8 + held * ((most.bit_length() + 7) // 8)
        packed = np.empty(room, dtype=np.uint8)
        end, level, width = pack_dual(
            k, only_read(np.empty(0) if self._top is None else self._top), q, weighted, packed, 0
        )
        self._bytes.append(packed.data[:end])
        self._start.append(len(self._bytes))
        self._q.append(int(q))
        self._level.append(int(level))
        self._width.append(int(width))
        return len(self._q) - 1

    def extend(self, packed: Packed, ends: Whole, q: Whole, level: Whole, width: Whole) -> int:
        """Store packed vectors, one behind the other up to `ends`; returns the position of the first.

        Their bytes may lie in several arrays: joined before, they would be written to fresh memory once more.
        """
        first, offset = len(self._q), len(self._bytes)
        for part in [packed] if isinstance(packed, np.ndarray) else packed:
            self._bytes.extend(part)
        for kept, new in zip(self._ends_grids_levels_widths, (ends + offset, q, level, width), strict=True):
            kept.frombytes(np.ascontiguousarray(new, dtype=kept.typecode).tobytes())
        return first

    def append(self, other: DualStore) -> int:
        """Store the vectors of another store of the same samples and box; returns the position of the first."""
        assert self.n_samples == other.n_samples
        assert (self._top is None) == (other._top is None)
        return self.extend(
            other._bytes.array(),
            np.array(other._start)[1:],
            *(np.array(part) for part in other._ends_grids_levels_widths[1:]),
        )

    def part(self, ids: npt.NDArray[np.integer[Any]]) -> DualStore:
        """The store of some of the vectors, in their order, where this one is."""
        store = DualStore(self.n_samples, self._top, self._bytes.beside())
        for start in range(0, ids.size, MOVED):
            store.extend(*self.packed(ids[start : start + MOVED]))
        return store

    @property
    def _ends_grids_levels_widths(self) -> tuple[array[int], array[int], array[int], array[int]]:
        """Where the vectors end, the first 0 included, their grids, levels and widths."""
        return self._start, self._q, self._level, self._width

    def packed(self, ids: npt.NDArray[np.integer[Any]]) -> tuple[npt.NDArray[np.uint8], Whole, Whole, Whole, Whole]:
        """The vectors `ids` as `extend` takes them: their bytes, and where each ends, q, levels and widths (k,)."""
        start, q, level, width = (np.frombuffer(part, dtype=part.typecode) for part in self._ends_grids_levels_widths)
        first, last = start[ids], start[ids + 1]
        data = self._bytes.read_all(first, last)
        return data, np.cumsum(last - first), q[ids], level[ids], width[ids]

    def get(self, index: int) -> tuple[Integers, int]:
        """k and q of a stored vector.

        Raises
        ------
        ValueError
            Its bytes are too few, as of a state that was forged.
        """
        data = np.frombuffer(self._bytes.read(self._start[index], self._start[index + 1]), dtype=np.uint8)
        q = self._q[index]
        k = np.empty(self.n_samples, dtype=np.int64)
        self._unpack(data, self._level[index], self._width[index], q, k)
        return k, q

    def get_all(self, ids: npt.NDArray[np.integer[Any]]) -> tuple[npt.NDArray[np.int64], Whole]:
        """k (m, n) and q (m,) of many stored vectors, as `get` has them."""
        data, ends, q, level, width = self.packed(ids)
        k = np.empty((ids.size, self.n_samples), dtype=np.int64)
        about = zip(level.tolist(), width.tolist(), q.tolist(), strict=True)
        for one, (top, wide, grid), out in zip(np.split(data, ends[:-1]), about, k, strict=True):
            self._unpack(one, top, wide, grid, out)
        return k, q

    def _unpack(self, data: npt.NDArray[np.uint8], level: int, width: int, q: int, out: Integers) -> None:
        """Write k (n,) of a vector's bytes to `out`."""
        from mipfs.kernels.earned import unpack_dual

        if not unpack_dual(data, level, width, self._top_entries(q), out):
            raise ValueError("a dual vector has too few bytes")

    def _top_entries(self, q: int) -> Integers:
        """k of entries at the top of their box on the grid 2^−q, (n,), or (0,) where `level` says it."""
        if self._top is None:
            return np.empty(0, dtype=np.int64)
        return np.asarray(np.minimum(np.floor(np.ldexp(self._top, q)), float(WIDEST)), dtype=np.int64)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The store as plain arrays, for the sidecar."""
        return {
            "dual_bytes": self._bytes.array(),
            "dual_start": np.array(self._start, dtype=np.int64),
            "dual_q": np.array(self._q, dtype=np.int32),
            "dual_level": np.array(self._level, dtype=np.int64),
            "dual_width": np.array(self._width, dtype=np.uint8),
            "dual_top": np.empty(0) if self._top is None else self._top,
        }
