"""Scores of a part of the columns, which Step 1 of the Kelley driver maps over a matrix: its best, a bound on the rest.

|ω_j| ≤ Σ_i |x_ij| · max |v_i|, and the B-th best |ω| over any few columns is at most the B-th best over all. So a
look at the columns of largest Σ_i |x_ij| yields a level that the B best reach, and a column whose bound is below
that level need not be read. In text nearly all columns are short, and few are read.

A `Scores` holds what one part needs, so that it can live where the part does. `LocalParts` goes through the parts of
this process; whoever keeps them elsewhere gives another `ColumnSearch` (`mipfs.atoms.spread`), which calls
`Scores.best` where they are and `merge_best` on what comes back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from mipfs.data.blocked import ColumnPart, Csc, only_read
from mipfs.plumbing.arrays import Array, Integers
from mipfs.plumbing.own_threads import share

PARALLEL_ENTRIES = 1 << 23
"""Entries, where few of them are read, from which on it is worth waking the other threads."""
PARALLEL_READ_ENTRIES = 1 << 19
"""Entries, where all are read, from which on it is worth waking the other threads: some 100 µs of work for each of
two threads, where waking one takes 20."""
KEPT_COLUMNS, LEVEL_COLUMNS = 1 << 16, 1 << 11
"""Columns of largest Σ_i |x_ij| that are kept at hand, and those of them that set the level."""
_SAMPLED = 64
_TINY = float(np.finfo(float).tiny)
_ONE = np.ones(1)


@dataclass(frozen=True, eq=False)
class BestColumns:
    """The best columns of a part, or of some parts.

    Attributes
    ----------
    ids : (k,) positions in the whole matrix, best first, of equal ones the lowest first
    keys : (k,) by which they are ordered: |λω|, or (λω)² where every column is read
    rest : float, at least the key of every other column
    """

    ids: Integers
    keys: Array
    rest: float = 0.0

    def level(self, B: int) -> float:
        """A key that the B best of all reach, less what keeps ties in."""
        return float(self.keys[B - 1]) * (1.0 - 1e-9) if 0 < B <= self.keys.size else 0.0


NOTHING = BestColumns(np.empty(0, dtype=np.int64), np.empty(0))


def merge_best(found: Sequence[BestColumns], B: int) -> BestColumns:
    """The B best of several parts."""
    ids, keys = (np.concatenate([getattr(one, name) for one in found]) for name in ("ids", "keys"))
    order = np.lexsort((ids, -keys))
    left = float(keys[order[B]]) if order.size > B else 0.0
    return BestColumns(ids[order[:B]], keys[order[:B]], max([left, *(one.rest for one in found)]))


class Scores:
    """s_j = (λ_j ω_j)² of the columns of a part.

    Parameters
    ----------
    part : ColumnPart
    scale : (w,) λ
    divisor : (w,) what stored values are divided by, or None
    center : (w,) what is taken off, or None: then a column of a sparse part is read only where it can be among the best
    heads : columns of largest Σ_i |x_ij| to keep at hand
    threads : that may read them at once; at most as many as numba may have (NUMBA_NUM_THREADS): one for every core

    Attributes
    ----------
    norm, center : the largest λ_j‖x_j‖ and λ_j|center_j|
    most : float, at least |λ_j ω_j| / max |v| of every column; inf where it is not known
    """

    def __init__(
        self,
        part: ColumnPart,
        scale: Array,
        divisor: Array | None,
        center: Array | None,
        heads: int,
        threads: int | None = None,
    ) -> None:
        self.part = part
        self.scale = scale
        self.divisor = divisor
        self._center = center
        self.threads = min(threads or most_threads(), most_threads())
        self.center = 0.0 if center is None else float(np.max(np.abs(center) * scale, initial=0.0))
        values = part.values
        self.screens = isinstance(values, Csc) and center is None
        if not isinstance(values, Csc):
            X = np.asfortranarray(values, dtype=float)
            self.norm = float(np.max(scale * np.sqrt(np.einsum("ij,ij->j", X, X)), initial=0.0))
        elif divisor is None and part.is_known:
            # the sums as they are kept, so that nothing of the columns is read
            one = scale.strides == (0,) or bool(np.all(scale == 1.0))
            self._bounds = part.sums if one else _upper_column_sums(part.sums, scale)
            most = part.most if one else float((part.statistics.squares * scale * scale).max(initial=0.0))
            self.norm = float(np.sqrt(most))
        else:
            self._bounds, self.norm = _sum_columns(values, divisor, scale, self.threads)
        self.most = np.inf
        if self.screens:
            self._heads = largest(self._bounds, heads).astype(np.int32)  # type: ignore[arg-type]  # float32 will do
            self._rest = float(self._bounds[self._heads[-1]]) if self._heads.size == heads else 0.0
            self.most = float(self._bounds[self._heads[0]]) if self._heads.size else 0.0

    def best(self, v: Array, B: int, level: float = 0.0, height: float | None = None) -> BestColumns:
        """At most B columns of largest positive key; those below `level`, which B columns of all parts reach, may lack.

        Parameters
        ----------
        v : (n,)
        B : int >= 0
        level : float, a key
        height : max |v|, where it is known
        """
        if B <= 0:
            return NOTHING
        if not self.screens:
            squares = np.square(self.pull(v))
            keys = squares if self.scale.strides == (0,) else np.square(self.scale) * squares
            ids = largest(keys, B + 1)
            rest = float(keys[ids[B]]) if ids.size > B else 0.0
            return BestColumns(ids[:B] + self.part.start, keys[ids[:B]], rest)
        height = largest_magnitude(v) if height is None else height
        if self.most * height < level:
            return BestColumns(NOTHING.ids, NOTHING.keys, level)
        columns = self._heads
        sizes = self._score_magnitudes(self._heads[:LEVEL_COLUMNS], v, height, level)
        if sizes.size > B:
            level = max(level, float(np.partition(sizes, -B)[-B]) * (1.0 - 1e-9))
        if self._rest * height >= level:
            columns = np.arange(self.part.width, dtype=np.int32)
            sizes = self._score_magnitudes(columns, v, height, level)
        else:
            sizes = np.concatenate([sizes, self._score_magnitudes(columns[LEVEL_COLUMNS:], v, height, level)])
        reached = np.flatnonzero(sizes >= max(level, _TINY))
        order = reached[np.lexsort((columns[reached], -sizes[reached]))[: B + 1]]
        rest = max(level, float(sizes[order[B]]) if order.size > B else 0.0)
        return BestColumns(columns[order[:B]].astype(np.int64) + self.part.start, sizes[order[:B]], rest)

    def pull(self, v: Array) -> Array:
        """ω = X'v of all columns of the part, (w,), without λ; its centre is taken off."""
        from mipfs.kernels.scores import dense_pull

        values = self.part.values
        if isinstance(values, Csc):
            # signs are lost in `magnitudes_in_reach`: the product of SciPy sums a column in the same order
            omega = np.asarray(self._scaled_part(values).T @ v, dtype=float)
        else:
            omega = np.empty(self.part.width)
            columns = only_read(np.asfortranarray(values).T)
            threads = self.threads if columns.size > PARALLEL_READ_ENTRIES else 1
            share(lambda low, high: dense_pull(columns, v, omega, low, high), omega.size, threads)
        shift = float(v.sum()) if self._center is not None else 0.0
        return omega if shift == 0.0 or self._center is None else omega - self._center * shift

    def _scaled_part(self, values: Csc) -> Any:
        found = self.part.whole()
        if self.divisor is not None:
            found.data = found.data / np.repeat(self.divisor, np.diff(values.indptr))
        return found

    def _score_magnitudes(self, columns: npt.NDArray[np.int32], v: Array, height: float, least: float) -> Array:
        """|λω| of some columns, 0 where it is below `least` for sure."""
        from mipfs.kernels.scores import Reach, ScaledColumns, magnitudes_in_reach

        values = self.part.values
        sizes = np.empty(columns.size)
        assert isinstance(values, Csc)
        divisor = _ONE if self.divisor is None else self.divisor
        stored = ScaledColumns(*values, only_read(divisor), self.divisor is not None, only_read(self.scale))
        reach = Reach(only_read(self._bounds), height, least)
        entries = self._count_entries(columns) if columns.size <= KEPT_COLUMNS else values.data.size
        threads = self.threads if entries > PARALLEL_ENTRIES else 1
        share(lambda low, high: magnitudes_in_reach(stored, reach, columns, v, sizes, low, high), columns.size, threads)
        return sizes

    def _count_entries(self, columns: npt.NDArray[np.int32]) -> int:
        pointer = self.part.values[2]
        return int((pointer[columns + 1].astype(np.int64) - pointer[columns]).sum())


class ColumnSearch(Protocol):
    """Finds the best columns of a matrix.

    Attributes
    ----------
    norm, center : the largest λ_j‖x_j‖ and λ_j|center_j|
    squared : whether keys are (λω)²
    """

    norm: float
    center: float
    squared: bool

    def best(self, v: Array, B: int) -> BestColumns:
        """At most B columns of largest positive key."""


class LocalParts:
    """The parts of this process, those of largest columns first: every one hears the level that is reached by then.

    Parameters
    ----------
    parts : Scores of every part
    """

    def __init__(self, parts: Sequence[Scores]) -> None:
        self.parts = sorted(parts, key=lambda one: (-one.most, one.part.start))
        self.norm = max(one.norm for one in parts)
        self.center = max(one.center for one in parts)
        self.squared = not parts[0].screens

    def best(self, v: Array, B: int) -> BestColumns:
        """At most B columns of largest positive key."""
        found = NOTHING
        height = largest_magnitude(v)
        for part in self.parts:
            found = merge_best([found, part.best(v, B, found.level(B), height)], B)
        return found


def most_threads() -> int:
    """How many threads numba may have."""
    from numba import config

    return int(config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]  # made as numba is loaded


def largest_magnitude(v: Array) -> float:
    """max |v|."""
    return max(float(v.max(initial=0.0)), -float(v.min(initial=0.0)))


def largest(scores: Array, B: int) -> Integers:
    """Positions of at most B largest positive scores, best first, of equal ones the lowest first.

    The B-th largest of a sample is at most the B-th largest of all, so only scores that reach it are sorted.
    """
    if B <= 0:
        return np.empty(0, dtype=np.int64)
    floor = 0.0
    for part in (scores[::_SAMPLED], scores):
        if part.size > B and part.size > _SAMPLED:
            kept = part[part >= floor] if floor > 0.0 else part
            floor = max(floor, float(np.partition(kept, -B)[-B]))
    candidates = np.flatnonzero(scores >= floor if floor > 0.0 else scores > 0.0)
    order = np.argsort(-scores[candidates], kind="stable")[:B]
    return candidates[order].astype(np.int64, copy=False)


def _upper_column_sums(sums: npt.NDArray[np.float32], scale: Array) -> npt.NDArray[np.float32]:
    """λ_j Σ_i |x_ij|, a little above, in float32."""
    with np.errstate(over="ignore", under="ignore"):
        bound = sums * scale * (1.0 + 1e-6)
        found = bound.astype(np.float32)
    return np.where(bound > 0, np.maximum(found, np.finfo(np.float32).tiny), np.float32(0.0))


def _sum_columns(
    values: Csc, divisor: Array | None, scale: Array, threads: int
) -> tuple[npt.NDArray[np.float32], float]:
    """λ_j Σ_i |x_ij|, a little above, and the largest λ_j‖x_j‖: a pass over the columns."""
    from mipfs.kernels.scores import PARALLEL_CHUNKS, ScaledColumns, column_sums

    bounds, most = np.empty(values.indptr.size - 1, np.float32), np.empty(PARALLEL_CHUNKS)
    by = only_read(_ONE if divisor is None else divisor)
    stored = ScaledColumns(*values, by, divisor is not None, only_read(scale))
    share(
        lambda first, last: column_sums(stored, bounds, most, first, last),
        PARALLEL_CHUNKS,
        threads if values.data.size > PARALLEL_READ_ENTRIES else 1,
    )
    return bounds, float(np.sqrt(most.max()))
