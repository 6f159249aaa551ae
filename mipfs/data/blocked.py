"""A matrix made of blocks of columns that lie elsewhere: in mapped files, or with other processes.

To those who take columns of X it is data like any other (`Instance.block`); who needs all columns goes through the
parts, one after the other, and never holds two of them. `mipfs.atoms.parts` scores a part.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
from scipy import sparse

from mipfs.data import matrix, unit
from mipfs.data.rules import FIRST_RULES, RULES
from mipfs.errors import UsageError
from mipfs.plumbing.arrays import Array, Integers

Floats = npt.NDArray[np.floating[Any]]

FULL_AT_ONCE = 1 << 20
"""Numbers of columns without implicit zeros that are summed at once."""
CACHED_BYTES = 1 << 23
"""Bytes of columns that were asked for and are kept."""


class Csc(NamedTuple):
    """The columns of a part as they are stored: rows ascending, no zeros."""

    data: Floats
    indices: npt.NDArray[np.integer[Any]]
    indptr: npt.NDArray[np.integer[Any]]


@dataclass(frozen=True, eq=False)
class Statistics:
    """What is known of the columns of a part, as they are stored (not scaled).

    Attributes
    ----------
    squares : (w,) sum of squares
    shift, spread : (w,) of the scaling "standard"
    norm : (w,) the scale of "unit"
    """

    squares: Array
    shift: Array
    spread: Array
    norm: Array


class ColumnPart(ABC):
    """Some columns of a matrix, start … stop − 1, where they lie. A subclass says how to get at them.

    Parameters
    ----------
    start, stop : positions of the columns in the whole
    n : rows

    Attributes
    ----------
    is_known : whether `sums` and `statistics` are at hand without a pass over the values
    """

    is_known = False

    def __init__(self, start: int, stop: int, n: int) -> None:
        self.start, self.stop, self.n = start, stop, n

    @property
    @abstractmethod
    def values(self) -> Csc | Floats:
        """The stored values: a CSC triple, or an (n, w) array in Fortran order; float32 or float64."""

    @property
    @abstractmethod
    def sums(self) -> npt.NDArray[np.float32]:
        """At least Σ_i |x_ij| of every column, and positive where that is; (w,)."""

    @property
    @abstractmethod
    def statistics(self) -> Statistics:
        """What is known of the columns."""

    @property
    def most(self) -> float:
        """The largest Σ_i x_ij² of a column."""
        return float(self.statistics.squares.max(initial=0.0))

    @property
    def width(self) -> int:
        """Number of columns."""
        return self.stop - self.start

    @property
    def full(self) -> Integers:
        """The columns of the part without implicit zeros, from 0."""
        found = self.values
        return matrix.full_columns(found.indptr, self.n) if isinstance(found, Csc) else np.arange(self.width)

    def gather(self, local: Integers) -> Any:
        """The columns `local` (k,) of the part in float64: a csc_array or an (n, k) array in Fortran order."""
        found = self.values
        if not isinstance(found, Csc):
            return np.asfortranarray(found[:, local], dtype=float)
        data, indices, indptr = found
        sizes = np.asarray(indptr[local + 1], dtype=np.int64) - indptr[local]
        ends = np.concatenate([[0], np.cumsum(sizes)])
        values, rows = np.empty(ends[-1]), np.empty(ends[-1], dtype=np.int32)
        for j, low, high in zip(local.tolist(), ends[:-1].tolist(), ends[1:].tolist(), strict=True):
            values[low:high] = data[indptr[j] : indptr[j + 1]]
            rows[low:high] = indices[indptr[j] : indptr[j + 1]]
        return _canonical_csc(values, rows, ends, self.n)

    def whole(self) -> Any:
        """All columns of the part in float64."""
        found = self.values
        if not isinstance(found, Csc):
            return np.asfortranarray(found, dtype=float)
        return _canonical_csc(np.asarray(found.data, dtype=float), found.indices, found.indptr, self.n)


class MemoryPart(ColumnPart):
    """A part in memory.

    Parameters
    ----------
    start : position of its first column in the whole
    values : csc_array in canonical form without zeros, or (n, w) array, of float32 or float64
    """

    def __init__(self, start: int, values: Any) -> None:
        super().__init__(start, start + values.shape[1], values.shape[0])
        self._values: Csc | Floats
        if sparse.issparse(values):
            self._values = Csc(only_read(values.data), only_read(values.indices), only_read(values.indptr))
        else:
            self._values = only_read(np.asfortranarray(values))

    @property
    def values(self) -> Csc | Floats:
        """The stored values."""
        return self._values

    @cached_property
    def _narrow_and_statistics(self) -> tuple[npt.NDArray[np.float32], Statistics]:
        return summary(self._values, self.n)

    @property
    def sums(self) -> npt.NDArray[np.float32]:
        """At least Σ_i |x_ij|."""
        return self._narrow_and_statistics[0]

    @property
    def statistics(self) -> Statistics:
        """What is known of the columns."""
        return self._narrow_and_statistics[1]


class Rescaled(ColumnPart):
    """A dense part on another scale, which is made whenever its values are asked for.

    Parameters
    ----------
    part : ColumnPart, dense
    kind : {"standard", "unit"}
    weights : (n,) ndarray or None, as of `matrix.scale_columns`
    """

    def __init__(self, part: ColumnPart, kind: str, weights: Array | None = None) -> None:
        super().__init__(part.start, part.stop, part.n)
        self.part, self.kind, self.weights = part, kind, weights

    @property
    def values(self) -> Csc | Floats:
        """The scaled values."""
        return cast(Array, matrix.scale_columns(self.part.whole(), self.kind, self.weights)[0])

    @property
    def sums(self) -> npt.NDArray[np.float32]:
        """At least Σ_i |x_ij|."""
        return summary(self.values, self.n)[0]

    @property
    def statistics(self) -> Statistics:
        """What is known of the columns."""
        return summary(self.values, self.n)[1]


class Blocked(matrix.ByColumns, matrix.StoredMatrix):
    """An (n, p) matrix of float64 in parts: X[:, ids], X'v, Xw and means can be asked, and the parts themselves.

    Parameters
    ----------
    n : rows
    parts : SparseSplit, one after the other, all sparse or all dense
    nnz : stored numbers
    sha256 : `mipfs.data.matrix.digest` of the values as they are stored
    scaling : {"none", "standard", "unit"}
        Columns are scaled when they are asked for, as `matrix.scale_columns` does it.
    is_sparse : bool, optional
        What the parts are, where it is known without a look at them.
    largest : float
        At least every |x_ij| as it is stored, where it is known.
    rules : int, of scaling (`mipfs.data.rules`)
    weights : (n,) ndarray or None, as of `matrix.scale_columns`
    """

    def __init__(
        self,
        n: int,
        parts: Sequence[ColumnPart],
        nnz: int,
        sha256: str,
        scaling: str = "none",
        is_sparse: bool | None = None,
        largest: float = np.inf,
        *,
        rules: int = RULES,
        weights: Array | None = None,
    ) -> None:
        self.parts, self.nnz, self.sha256, self.scaling, self.rules = parts, nnz, sha256, scaling, rules
        self.weights = weights
        self._weighed: dict[int, tuple[Array, Array]] = {}
        self.starts = np.array([part.start for part in parts] + [parts[-1].stop], dtype=np.int64)
        self.shape = n, int(self.starts[-1])
        self.is_sparse = isinstance(parts[0].values, Csc) if is_sparse is None else is_sparse
        self.largest = largest
        self._kept: OrderedDict[int, Any] = OrderedDict()
        self._bytes = 0

    def __getstate__(self) -> dict[str, Any]:
        """Without the columns that are kept."""
        return {**self.__dict__, "_kept": OrderedDict(), "_bytes": 0}

    def scaled(self, kind: str, weights: Array | None = None) -> tuple[Blocked, Array, Array, Array]:
        """The matrix scaled in another way, with center, shift and scale (p,) as `matrix.scale_columns` has them."""
        if kind == "none":
            p = self.shape[1]
            zero, one = np.broadcast_to(0.0, (p,)), np.broadcast_to(1.0, (p,))
            return self, zero, zero, one
        return self._with(kind, self.rules, weights)

    def by_rules(self, rules: int, weights: Array | None = None) -> tuple[Blocked, Array, Array, Array]:
        """`scaled` as it is, by another version of the rules."""
        return self._with(self.scaling, rules, weights)

    def _with(self, kind: str, rules: int, weights: Array | None) -> tuple[Blocked, Array, Array, Array]:
        p = self.shape[1]
        about = self.shape[0], self.parts, self.nnz, self.sha256, kind, self.is_sparse, self.largest
        out = Blocked(*about, rules=rules, weights=weights)
        shift, scale, center = np.zeros(p), np.empty(p), np.broadcast_to(0.0, (p,))
        for part in self.parts:
            at = slice(part.start, part.stop)
            if kind == "standard":
                shift[at], scale[at] = out.moments(part)
            else:
                scale[at] = part.statistics.norm
        if self.is_sparse and kind == "standard":
            full = np.empty(0, dtype=np.int64) if rules == FIRST_RULES else self._columns_without_zeros
            center = matrix.center_of(full, shift, scale)
        return out, center, shift, scale

    @cached_property
    def _columns_without_zeros(self) -> Integers:
        """The columns without implicit zeros."""
        return np.concatenate([part.start + part.full for part in self.parts])

    def divisor(self, part: ColumnPart) -> Array | None:
        """What the stored values of a sparse part are divided by, (w,); None where they are as they stand."""
        if self.scaling == "none" or not self.is_sparse:
            return None
        return self.moments(part)[1] if self.scaling == "standard" else part.statistics.norm

    def moments(self, part: ColumnPart) -> tuple[Array, Array]:
        """Shift and scale of the columns of a part under "standard", (w,) each: known, or by a pass over it, once."""
        if self.weights is None:
            return part.statistics.shift, part.statistics.spread
        if part.start not in self._weighed:
            whole = part.whole()
            self._weighed[part.start] = (
                matrix.moments_csc(whole, "standard", self.weights)
                if self.is_sparse
                else matrix.scale_columns(whole, "standard", self.weights)[2:]
            )
        return self._weighed[part.start]

    def piece(self, part: ColumnPart) -> Any:
        """All columns of a part, scaled: csc_array or array in Fortran order."""
        return self._scale_columns(part, part.whole(), slice(None))

    def pieces(self) -> Iterator[tuple[int, Any]]:
        """Every part: the position of its first column, and its columns."""
        for part in self.parts:
            yield part.start, self.piece(part)

    def __getitem__(self, key: tuple[Any, Any]) -> Any:
        rows, columns = key if isinstance(key, tuple) else (key, slice(None))
        if not (isinstance(rows, slice) and rows == slice(None)):
            raise UsageError("data in blocks of columns is read by columns; take rows before `mipfs convert`")
        p = self.shape[1]
        ids = np.arange(*columns.indices(p)) if isinstance(columns, slice) else np.asarray(columns, dtype=np.int64)
        return self._gather_columns(np.where(ids < 0, ids + p, ids))

    def _gather_columns(self, ids: Integers) -> Any:
        """The columns `ids`, each from the kept ones or from its part."""
        found: dict[int, Any] = {j: self._kept[j] for j in ids.tolist() if j in self._kept}
        missing = np.array(sorted({*ids.tolist()} - found.keys()), dtype=np.int64)
        owner = np.searchsorted(self.starts, missing, "right") - 1
        for k in np.unique(owner).tolist():
            part, inside = self.parts[k], missing[owner == k]
            local = inside - part.start
            values = self._scale_columns(part, part.gather(local), local)
            for t, j in enumerate(inside.tolist()):
                found[j] = values[:, [t]]
                self._cache_column(j, found[j])
        if not ids.size:
            return sparse.csc_array((self.shape[0], 0)) if self.is_sparse else np.empty((self.shape[0], 0))
        columns = [found[j] for j in ids.tolist()]
        if not self.is_sparse:
            return np.asfortranarray(np.hstack(columns))
        data, rows = (np.concatenate([getattr(one, name) for one in columns]) for name in ("data", "indices"))
        ends = np.concatenate([[0], np.cumsum([one.nnz for one in columns])])
        return _canonical_csc(data, rows, ends, self.shape[0])

    def _cache_column(self, j: int, column: Any) -> None:
        size = column.data.nbytes + column.indices.nbytes if self.is_sparse else column.nbytes
        if size > CACHED_BYTES:
            return
        self._kept[j], self._bytes = column, self._bytes + size
        while self._bytes > CACHED_BYTES:
            _, old = self._kept.popitem(last=False)
            self._bytes -= old.data.nbytes + old.indices.nbytes if self.is_sparse else old.nbytes

    def _scale_columns(self, part: ColumnPart, values: Any, local: Any) -> Any:
        """The columns `local` of a part, scaled."""
        if self.scaling == "none":
            return values
        if not self.is_sparse:
            return matrix.scale_columns(values, self.scaling, self.weights)[0]
        divisor = self.divisor(part)
        assert divisor is not None
        if self.scaling == "unit" or self.rules == FIRST_RULES:
            values.data = values.data / np.repeat(divisor[local], np.diff(values.indptr))
            return values
        return matrix.place_columns(values, self.moments(part)[0][local], divisor[local])[0]

    def as_stored(self, ids: Integers) -> Any:
        """The columns `ids`, not scaled."""
        return Blocked(self.shape[0], self.parts, self.nnz, self.sha256, is_sparse=self.is_sparse)[:, ids]

    def mean(self, axis: int) -> Array:
        """Means of the columns."""
        assert axis == 0
        return np.concatenate([np.asarray(M.mean(axis=0), dtype=float).ravel() for _, M in self.pieces()])

    def squares(self) -> Array:
        """Σ_i x_ij² of every column, not centred, (p,)."""
        if self.scaling == "none":
            return np.concatenate([part.statistics.squares for part in self.parts])
        parts = (M.power(2) if self.is_sparse else np.square(M) for _, M in self.pieces())
        return np.concatenate([np.asarray(part.sum(axis=0), dtype=float).ravel() for part in parts])

    def counts(self) -> Integers:
        """Stored numbers of every column, (p,)."""
        found = []
        for part in self.parts:
            values = part.values
            sizes = np.diff(values.indptr) if isinstance(values, Csc) else np.full(part.width, self.shape[0])
            found.append(sizes.astype(np.int64))
        return np.concatenate(found)

    def too_large(self) -> int | None:
        """The first column with a value that may be beyond 2^EDGE; None without one. Files are in no other unit."""
        most = 2.0**unit.EDGE
        if self.scaling == "none" and self.largest < most:
            return None
        for part in self.parts:
            scale = self.divisor(part)
            size = np.sqrt(part.statistics.squares) / (1.0 if scale is None else scale)
            far = size >= most
            if (self.is_sparse or self.scaling == "none") and far.any():
                return int(part.start + far.argmax())
        return None

    def too_small(self, kind: str, shift: Array, scale: Array) -> int | None:
        """The first column that is too small to be scaled, as `matrix.too_small` has it."""
        for part in self.parts:
            at = slice(part.start, part.stop)
            small, stays = scale[at] < matrix.SMALLEST, (scale[at] == 1.0) & (shift[at] == 0.0)
            stays &= (part.sums > 0) & (part.statistics.squares == 0.0)  # values whose squares underflow
            local = np.flatnonzero(stays)
            small[local[matrix.is_lost(part.gather(local), kind)]] = True
            if small.any():
                return int(part.start + small.argmax())
        return None

    def __rmatmul__(self, v: Array) -> Array:
        return np.concatenate([np.asarray(M.T @ v.T, dtype=float) for _, M in self.pieces()]).T

    def __matmul__(self, w: Array) -> Array:
        total = np.zeros(self.shape[0])
        for part in self.parts:
            used = np.flatnonzero(w[part.start : part.stop])
            if used.size:
                whole = used.size == part.width
                values = self.piece(part) if whole else self._scale_columns(part, part.gather(used), used)
                total += values @ w[part.start + used]
        return total


def only_read(values: Any) -> Any:
    """A view that cannot be written to: kernels are then compiled for one type of mapped and of held arrays."""
    values = values.view()
    values.flags.writeable = False
    return values


def split_in_memory(X: Any, width: int) -> Blocked:
    """A matrix in memory as blocks of `width` columns: for tests, and for workers that hold theirs."""
    parts = [MemoryPart(start, X[:, start : start + width]) for start in range(0, X.shape[1], width)]
    nnz = int(X.nnz) if sparse.issparse(X) else X.size
    return Blocked(X.shape[0], parts, nnz, matrix.digest(X))


def summary(values: Csc | Floats, n: int) -> tuple[npt.NDArray[np.float32], Statistics]:
    """Σ|x| and the statistics of the columns of a part; shift and scale are those of `matrix.scale_columns`, to the
    bit.
    """
    from mipfs.kernels.statistics import column_statistics

    if isinstance(values, Csc):
        w = values.indptr.size - 1
        one, found = np.empty(w), np.empty((4, w))
        column_statistics(values.data, values.indptr, n, one, found)
        full = matrix.full_columns(values.indptr, n)
        step = max(1, FULL_AT_ONCE // n)
        for ids in (full[start : start + step] for start in range(0, full.size, step)):  # as dense columns, to the bit
            X = np.array([values.data[values.indptr[j] : values.indptr[j + 1]] for j in ids.tolist()], dtype=float).T
            found[1:3, ids], found[3, ids] = matrix.column_moments(X, "standard"), matrix.column_moments(X, "unit")[1]
    else:
        X = np.asfortranarray(values, dtype=float)
        one, found = np.abs(X).sum(axis=0), np.empty((4, X.shape[1]))
        found[0] = np.einsum("ij,ij->j", X, X)
        found[1:3] = matrix.scale_columns(X, "standard")[2:]
        found[3] = matrix.scale_columns(X, "unit")[3]
    with np.errstate(over="ignore", under="ignore"):
        sums = (one * (1.0 + 1e-6)).astype(np.float32)
    least = np.finfo(np.float32).tiny  # what is positive stays so
    return np.where(one > 0, np.maximum(sums, least), np.float32(0.0)), Statistics(*found)


def split_ranges(counts: Integers, most: int) -> list[tuple[int, int]]:
    """Ranges of columns of at most `most` numbers each, at least one column."""
    ends = np.cumsum(counts)
    cuts, start = [0], 0
    while start < counts.size:
        reached = int(np.searchsorted(ends, (ends[start - 1] if start else 0) + most, "right"))
        start = min(max(start + 1, reached), start + MOST_COLUMNS)
        cuts.append(start)
    return list(itertools.pairwise(cuts))


MOST_COLUMNS = 1 << 20
"""Columns of a part at most: what is computed of every one of them is one block too."""


def _canonical_csc(
    data: Array, indices: npt.NDArray[np.integer[Any]], ends: npt.NDArray[Any], n: int
) -> sparse.csc_array:
    """Canonical columns."""
    narrow = ends[-1] <= np.iinfo(np.int32).max
    found = sparse.csc_array(
        (data, np.asarray(indices), np.asarray(ends, dtype=np.int32 if narrow else np.int64)),
        shape=(n, len(ends) - 1),
    )
    found.has_canonical_format = True
    return found
