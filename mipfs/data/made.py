"""A matrix whose columns are made when they are asked for: to those who take columns of X it is data like any other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mipfs.data.matrix import ByColumns
from mipfs.data.names import Unstored
from mipfs.errors import UsageError
from mipfs.plumbing.arrays import Array, Integers
from mipfs.plumbing.extension import file_of, is_own, told_by_name

NUMBERS_PER_BLOCK = 1 << 22
"""Numbers that are made at a time."""


class MadeMatrix(ByColumns):
    """An (n, p) matrix of float64 of which X[:, ids], X'v, Xw and column means can be asked.

    Parameters
    ----------
    shape : (n, p)
    make : callable, the columns `ids` (k,) as an (n, k) array, or csc_array, of finite numbers; always the same
    is_sparse : bool, default False
        Whether `make` returns sparse columns.
    raw : Instance, optional
        What the columns are made of, for those who make them anew.
    """

    def __init__(
        self, shape: tuple[int, int], make: Callable[[Integers], Any], is_sparse: bool = False, raw: Any = None
    ) -> None:
        self.shape = shape
        self._make = make
        self.is_sparse = is_sparse
        self.raw = raw
        self._step = max(1, NUMBERS_PER_BLOCK // max(1, shape[0]))

    def __getitem__(self, key: tuple[slice, Any]) -> Any:
        rows, columns = key
        assert rows == slice(None), "whole columns are made"
        ids = np.arange(*columns.indices(self.shape[1])) if isinstance(columns, slice) else np.asarray(columns)
        made = self._make(ids.astype(np.int64))
        made = made if self.is_sparse else np.asarray(made, dtype=float, order="F")
        assert made.shape == (self.shape[0], ids.size), f"columns of shape {made.shape} were made"
        return made

    def _block_starts(self) -> range:
        return range(0, self.shape[1], self._step)

    def __rmatmul__(self, v: Array) -> Array:
        return np.concatenate([v @ self[:, start : start + self._step] for start in self._block_starts()], axis=-1)

    def __matmul__(self, w: Array) -> Array:
        used = np.flatnonzero(w)
        parts = (used[start : start + self._step] for start in range(0, used.size, self._step))
        return np.asarray(sum((self[:, ids] @ w[ids] for ids in parts), np.zeros(self.shape[0])))

    def mean(self, axis: int) -> Array:
        """Means of the columns."""
        assert axis == 0
        return self._column_means

    @cached_property
    def _column_means(self) -> Array:
        parts = (self[:, start : start + self._step].mean(axis=0) for start in self._block_starts())
        return np.concatenate([np.asarray(part, dtype=float).ravel() for part in parts])


def checked(what: str, make: Callable[[Integers], Any], n: int) -> Callable[[Integers], Any]:
    """What makes columns: as it is where the package's class does, which is tested, else a `CheckedColumns`."""
    return make if is_own(type(getattr(make, "__self__", None)).__module__) else CheckedColumns(what, make, n)


@dataclass(frozen=True, eq=False)
class CheckedColumns:
    """What a user's own class makes, after it was looked at.

    Parameters
    ----------
    what : str, what makes it, for messages
    make : method, the columns `ids` (k,) as an (n, k) array
    n : int
    """

    what: str
    make: Callable[[Integers], Any]
    n: int

    def __call__(self, ids: Integers) -> Array:
        """The columns `ids` (k,), (n, k).

        Raises
        ------
        UsageError
            Making them fails, or they are no dense array of finite numbers, a column for each.
        """
        with told_by_name(self.what, self.make):
            found = self.make(ids)
        columns, said = np.asarray(found), f"{self.what} of {file_of(self.make)}"
        if columns.dtype.kind not in "biuf" or columns.shape != (self.n, ids.size):
            shown = (
                f"{type(found).__name__} of shape {np.shape(found)} and type {getattr(found, 'dtype', columns.dtype)}"
            )
            wanted = f"a dense array of real numbers, (n, k) = {self.n, ids.size}"
            raise UsageError(f"{said} returns {shown}; it returns {wanted}")
        columns = np.asarray(columns, dtype=float, order="F")
        if not np.all(np.isfinite(columns)):
            i, k = (int(one[0]) for one in np.nonzero(~np.isfinite(columns)))
            raise UsageError(
                f"{said} makes {columns[i, k]} in row {i + 1} of atom {ids[k]}; columns are finite numbers"
            )
        return columns


class GroupNames(Unstored):
    """Names of columns that come group by group: ``name[0]``, ``name[1]``, …; none of them is stored.

    Parameters
    ----------
    groups : sequence of names
    starts : (G + 1,) columns of group g are starts[g] : starts[g + 1]

    >>> names = GroupNames(("a", "b[1]"), np.array([0, 1, 3]))
    >>> list(names), names[2]
    (['a[0]', 'b[1][0]', 'b[1][1]'], 'b[1][1]')
    """

    def __init__(self, groups: Sequence[str], starts: Integers) -> None:
        self.groups = groups
        self.starts = starts

    def __len__(self) -> int:
        return int(self.starts[-1])

    def made(self, j: int) -> str:
        """Name of column j."""
        g = int(np.searchsorted(self.starts, j, "right")) - 1
        return f"{self.groups[g]}[{j - int(self.starts[g])}]"

    def position(self, name: str) -> int | None:
        """The column of that name, None if there is none."""
        group, _, place = name.removesuffix("]").rpartition("[")
        g = self._position_by_name.get(group)
        if g is None or not place.isdecimal() or int(place) >= self.starts[g + 1] - self.starts[g]:
            return None
        j = int(self.starts[g]) + int(place)
        return j if self.made(j) == name else None

    @cached_property
    def _position_by_name(self) -> Mapping[str, int]:
        """Where each group stands."""
        return {name: g for g, name in enumerate(self.groups)}

    def __iter__(self) -> Iterator[str]:
        for g, size in enumerate(np.diff(self.starts).tolist()):
            yield from (f"{self.groups[g]}[{k}]" for k in range(size))
