"""The bundle of the structural loss: stored labellings ȳ_k, their Δ_k, and the columns a(ȳ_k) = X'v_k as needed.

A dual vector of the structural loss is a combination α of stored labellings, α ≥ 0 and Σα ≤ C. It is rounded to
integers on a dyadic grid, so that both hold as integer identities, and handed on as v = Σ_k α_k v_k, ω = X'v.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.data.instance import Instance
from mipfs.errors import NumericalError
from mipfs.kernels.bound import rounded_down
from mipfs.kernels.kinds import FINEST
from mipfs.measures import Measure, Violated
from mipfs.plumbing.arrays import Array, Arrays, Integers, check_positions
from mipfs.svm.dyadic import BITS, reduce_surplus

NUMBERS_PER_BLOCK = 1 << 22
"""Numbers in a block of labellings that are multiplied at a time."""


@dataclass(frozen=True, eq=False)
class LabellingsDual:
    """A feasible dual vector α_k = whole_k·2^−q over m labellings: α ≥ 0 and Σα ≤ C hold exactly.

    Attributes
    ----------
    counts : (m, n) integers, what every labelling gets wrong (`mipfs.measures.Violated`)
    losses : (m,) Δ of every labelling
    whole : (m,) int64 > 0
    q : int
    v : (n,) Σ_k α_k v_k; the weighted sum of counts is exact, so every entry is off by three roundings at most
    value_below : float, g(α) = Σ α_k Δ_k, rounded down
    """

    counts: npt.NDArray[Any]
    losses: Array
    whole: Integers
    q: int
    v: Array
    value_below: float

    @property
    def dual(self) -> tuple[npt.NDArray[Any], Integers, int]:
        """What determines it, and what a certificate stores."""
        return self.counts, self.whole, self.q


class Labellings:
    """Labellings of one data set, and the rows of A = (a(ȳ_1), …, a(ȳ_K)) of the columns that were asked for.

    Parameters
    ----------
    data : Instance
    measure : Measure
    """

    def __init__(self, data: Instance, measure: Measure) -> None:
        self.data = data
        self.measure = measure
        self.size = 0
        self._counts = np.empty((16, data.n_samples), dtype=measure.count_type)
        self._losses = np.empty(16)
        self._idle = np.zeros(16, dtype=np.int64)
        self._seen: dict[bytes, int] = {}
        self._place = np.full(data.n_features, -1, dtype=np.int64)
        self._columns = np.empty(0, dtype=np.int64)
        self._filled = np.empty(0, dtype=np.int64)
        self._A = np.empty((0, 16))

    def __len__(self) -> int:
        return self.size

    @property
    def losses(self) -> Array:
        """Δ of every labelling, shape (K,)."""
        return self._losses[: self.size]

    @property
    def counts(self) -> npt.NDArray[Any]:
        """What every labelling gets wrong, shape (K, n)."""
        return self._counts[: self.size]

    def add(self, violated: Violated) -> bool:
        """Store a labelling; False when it is there already."""
        key = violated.counts.tobytes()
        if key in self._seen:
            return False
        K = self.size
        room = self._losses.size
        if room == K:
            self._counts = np.concatenate([self._counts, np.empty_like(self._counts)])
            self._losses = np.concatenate([self._losses, np.empty(room)])
            self._idle = np.concatenate([self._idle, np.zeros(room, dtype=np.int64)])
            self._A = np.concatenate([self._A, np.empty_like(self._A)], axis=1)
        self._counts[K], self._losses[K], self._idle[K] = violated.counts, violated.loss, 0
        self._seen[key] = K
        self.size += 1
        return True

    def block(self, ids: Integers, Z: Any = None) -> Array:
        """A of the columns `ids`, shape (len(ids), K): only what is new is computed.

        Parameters
        ----------
        ids : positions of columns of X
        Z : (n, len(ids)) matrix, optional
            ``X[:, ids]`` where the caller has it.
        """
        new = np.unique(ids[self._place[ids] < 0])
        if new.size:
            self._place[new] = self._columns.size + np.arange(new.size)
            self._columns = np.concatenate([self._columns, new])
            self._filled = np.concatenate([self._filled, np.zeros(new.size, dtype=np.int64)])
            self._A = np.concatenate([self._A, np.empty((new.size, self._losses.size))])
        rows = self._place[ids]
        filled = self._filled[rows]
        for start in np.unique(filled[filled < self.size]):
            late = np.flatnonzero(filled == start)
            part = self.data.block(ids[late]).values if Z is None or late.size < ids.size else Z
            center = self.data.center[ids[late]]
            step = max(1, NUMBERS_PER_BLOCK // self.data.n_samples)
            for first in range(int(start), self.size, step):
                V = self.measure.direction(self._counts[first : min(first + step, self.size)])
                fresh = np.asarray(part.T @ V.T)
                if np.any(center):
                    fresh -= np.outer(center, V.sum(axis=1))
                self._A[rows[late], first : first + V.shape[0]] = fresh
        self._filled[rows] = self.size
        return self._A[rows, : self.size]

    def last(self, ids: Integers, Z: Any) -> Array:
        """a of the last labelling and the columns `ids`, shape (len(ids),), where all before it are known."""
        rows = self._place[ids]
        k = self.size - 1
        if np.any(self._filled[rows] != k):
            return self.block(ids, Z)[:, k]
        v = self.measure.direction(self._counts[k])
        column = np.asarray(Z.T @ v) - self.data.center[ids] * v.sum()
        self._A[rows, k], self._filled[rows] = column, self.size
        return np.asarray(column)

    def mark(self, active: npt.NDArray[np.bool_]) -> None:
        """Take note of which labellings had α > 0 in the last master, shape (K,)."""
        idle = self._idle[: self.size]
        idle += 1
        idle[active] = 0

    def drop(self, patience: int, least: int) -> npt.NDArray[np.bool_]:
        """Drop labellings that were inactive in more than `patience` masters, keeping `least` of the most recent.

        Returns
        -------
        (K,) ndarray of bool, which of those before were kept
        """
        idle = self._idle[: self.size]
        keep = idle <= patience
        if np.count_nonzero(keep) < least:
            keep[np.argsort(idle, kind="stable")[:least]] = True
        if np.all(keep):
            return keep
        kept = np.flatnonzero(keep)
        before = np.concatenate([[0], np.cumsum(keep)])
        self._filled = before[self._filled]
        # into arrays of their own: `kept` may have been asked for those before
        self._counts, self._losses, self._idle = (
            _move_entries(array, kept, 0) for array in (self._counts, self._losses, self._idle)
        )
        self._A = _move_entries(self._A, kept, 1)
        self.size = kept.size
        self._seen = {self._counts[k].tobytes(): k for k in range(self.size)}
        return keep

    def kept(self) -> Callable[[], Arrays]:
        """What makes arrays of all that there is now, with A to the bit: its parts are products of their time."""
        held = self._counts[: self.size], self._losses[: self.size], self._columns, self._A[:, : self.size]
        idle, filled = self._idle[: self.size].copy(), self._filled.copy()

        def made() -> Arrays:
            counts, losses, columns, A = held
            known = np.where(np.arange(idle.size) < filled[:, None], A, 0.0)
            return {
                "labelling_counts": counts.copy(), "labelling_losses": losses.copy(), "labelling_idle": idle,
                "labelling_columns": columns, "labelling_filled": filled, "labelling_A": known,
            }  # fmt: skip

        return made

    def take_up(self, kept: Mapping[str, npt.NDArray[Any]]) -> None:
        """Hold what `kept` made, in place of what is held.

        Raises
        ------
        ValueError
            It is of other samples or columns, or its parts do not fit.
        """
        names = "counts", "losses", "idle", "columns", "filled", "A"
        counts, losses, idle, columns, filled, A = (kept[f"labelling_{name}"] for name in names)
        K, n = losses.size, self.data.n_samples
        is_whole = counts.dtype == self._counts.dtype and idle.dtype.kind == filled.dtype.kind == "i"
        fits = counts.shape == (K, n) and idle.shape == (K,) and A.shape == (columns.size, K)
        if not (K and is_whole and fits and filled.shape == columns.shape and np.all((filled >= 0) & (filled <= K))):
            raise ValueError("the labellings are of other samples or columns")
        if not (np.isfinite(losses).all() and np.isfinite(A).all()):
            raise ValueError("a labelling is not finite")
        check_positions(columns, self.data.n_features)
        room = 16
        while room < K:  # as `add` makes it
            room *= 2
        self._counts, self._losses = np.empty((room, n), dtype=counts.dtype), np.empty(room)
        self._idle, self._A = np.zeros(room, dtype=np.int64), np.empty((columns.size, room))
        self._counts[:K], self._losses[:K], self._idle[:K], self._A[:, :K] = counts, losses, idle, A
        self._columns, self._filled, self.size = np.array(columns), np.array(filled), K
        self._place[:] = -1
        self._place[columns] = np.arange(columns.size)
        self._seen = {self._counts[k].tobytes(): k for k in range(K)}

    def combine(self, alpha: Array, C: float) -> LabellingsDual:
        """α (K,) made feasible exactly."""
        whole, q = feasible(alpha, C, self.measure.largest)
        used = np.flatnonzero(whole)
        return combine_labellings(self.measure, self._counts[used].copy(), self._losses[used].copy(), whole[used], q)


def _move_entries(array: npt.NDArray[Any], kept: Integers, axis: int) -> npt.NDArray[Any]:
    """An array of the same size whose first entries along an axis are those `kept` of this one."""
    found = np.zeros_like(array)
    place = (slice(None),) * axis + (slice(kept.size),)
    found[place] = np.take(array, kept, axis=axis)
    return found


def feasible(alpha: Array, C: float, largest: int) -> tuple[Integers, int]:
    """α on a grid on which α ≥ 0 and Σα ≤ C are integer identities, as fine as Σα lets it be: on data that is easy to
    separate that is a small share of C.

    Parameters
    ----------
    alpha : (K,) approximate dual vector
    C : float > 0
    largest : int, the largest count of a labelling: Σ_k whole_k · count fits into an integer of 64 bits

    Returns
    -------
    whole : (K,) int64, α ≈ whole·2^−q
    q : int

    Raises
    ------
    NumericalError
        α is not finite.
    """
    total = float(np.maximum(alpha, 0.0).sum())
    if not math.isfinite(total):
        raise NumericalError("a dual vector leaves floating point: C times the squares of the columns is too large")
    top = min(C, total) if total > 0.0 else C
    q = min(BITS, 61 - largest.bit_length()) - math.frexp(top)[1]
    q = min(q, FINEST - max(0, math.frexp(C)[1]))  # C·2^q is a number
    limit = math.floor(math.ldexp(C, q))
    whole = np.clip(np.rint(np.ldexp(alpha, q)), 0.0, float(limit)).astype(np.int64)
    return reduce_surplus(whole, int(whole.sum()) - limit), q


def combine_labellings(
    measure: Measure, counts: npt.NDArray[Any], losses: Array, whole: Integers, q: int
) -> LabellingsDual:
    """The dual vector of integers `whole` over labellings; its v and its g rounded down."""
    total = np.zeros(measure.n, dtype=np.int64)
    for k in range(whole.size):  # no copy of all counts as 64-bit integers
        total += whole[k] * counts[k].astype(np.int64)
    v = measure.direction(np.ldexp(total.astype(float), -q))
    g = float(np.ldexp(whole.astype(float), -q) @ losses)
    # Δ is off by at most n roundings, the sum by m, whatever their order
    return LabellingsDual(counts, losses, whole, q, v, rounded_down(g, g, measure.n + whole.size))


def combined_arrays(name: str, dual: LabellingsDual) -> Arrays:
    """A dual vector over labellings as arrays whose names begin with `name`."""
    parts = {"counts": dual.counts, "losses": dual.losses, "whole": dual.whole, "q": np.array(dual.q)}
    return {f"{name}_{part}": array for part, array in parts.items()}


def combine_dual(name: str, kept: Mapping[str, npt.NDArray[Any]], measure: Measure) -> LabellingsDual | None:
    """The dual vector that `combined_arrays` kept; None where there is none.

    Raises
    ------
    ValueError
        It is of other samples, or its parts do not fit.
    """
    if f"{name}_q" not in kept:
        return None
    counts, losses, whole = (kept[f"{name}_{part}"] for part in ("counts", "losses", "whole"))
    if counts.shape != (whole.size, measure.n) or losses.shape != whole.shape or np.any(whole < 0):
        raise ValueError("a dual vector is over other labellings")
    return combine_labellings(measure, counts, losses, whole, int(kept[f"{name}_q"]))
