"""Dual vectors of the structural loss: α = whole·2^−q over labellings, every labelling stored once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.plumbing.arrays import Array, Integers


class LabelledStore:
    """Dual vectors over labellings; read back bit for bit.

    A labelling takes n bytes (4n for a measure of a ranking), a dual vector 12 bytes for every labelling that it uses.

    Parameters
    ----------
    n_samples : int
    like : LabelledStore, optional
        The store whose labellings this one shares; they are kept by both.
    """

    def __init__(self, n_samples: int, like: LabelledStore | None = None) -> None:
        self.n_samples = n_samples
        self._labellings: list[npt.NDArray[Any]] = [] if like is None else like._labellings
        self._place: dict[bytes, int] = {} if like is None else like._place
        self._labels: list[npt.NDArray[np.int32]] = []
        self._whole: list[Integers] = []
        self._q: list[int] = []

    def __len__(self) -> int:
        return len(self._q)

    @property
    def sizes(self) -> Integers:
        """Bytes of every vector, at most: as if no other one used its labellings."""
        width = max((row.nbytes for row in self._labellings), default=0)
        return np.array([part.size * (12 + width) for part in self._labels], dtype=np.int64)

    def add(self, counts: npt.NDArray[Any], whole: Integers, q: int) -> int:
        """Store α = whole·2^−q, whole (m,) of 0 … 2^53, over labellings with counts (m, n); returns its position."""
        assert counts.shape == (whole.size, self.n_samples)
        assert whole.min(initial=0) >= 0
        self._labels.append(np.array([self._position_of_labelling(row) for row in counts], dtype=np.int32))
        self._whole.append(np.asarray(whole, dtype=np.int64))
        self._q.append(int(q))
        return len(self._q) - 1

    def get(self, index: int) -> tuple[npt.NDArray[Any], Integers, int]:
        """Counts (m, n), whole (m,) and q of a stored vector."""
        return self._counts_of_labels(self._labels[index]), self._whole[index], self._q[index]

    def mixture(self, ids: Iterable[int], share: Iterable[float]) -> tuple[npt.NDArray[Any], Array]:
        """Σ_d share_d α_d of stored vectors: counts (m, n) of the labellings in it, and its entries (m,)."""
        alpha = np.zeros(len(self._labellings))
        for d, weight in zip(ids, share, strict=True):
            alpha[self._labels[d]] += weight * np.ldexp(self._whole[d].astype(float), -self._q[d])
        labels = np.flatnonzero(alpha)
        return self._counts_of_labels(labels), alpha[labels]

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The store as plain arrays, for the sidecar; labellings that no vector uses are left out."""
        labels = np.concatenate(self._labels) if self._labels else np.empty(0, dtype=np.int32)
        used, renumbered = np.unique(labels, return_inverse=True)
        return {
            "dual_q": np.array(self._q, dtype=np.int32),
            "dual_start": np.cumsum([0, *(part.size for part in self._labels)]),
            "dual_label": renumbered.astype(np.int32),
            "dual_whole": np.concatenate(self._whole) if self._whole else np.empty(0, dtype=np.int64),
            "labelling": self._counts_of_labels(used),
        }

    def _counts_of_labels(self, labels: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Counts of stored labellings, shape (m, n)."""
        rows = [self._labellings[k] for k in labels]
        return np.array(rows) if rows else np.empty((0, self.n_samples), dtype=np.uint8)

    def _position_of_labelling(self, counts: npt.NDArray[Any]) -> int:
        """Position of a labelling among those stored."""
        key = counts.tobytes()
        if key not in self._place:
            self._place[key] = len(self._labellings)
            self._labellings.append(counts.copy())
        return self._place[key]
