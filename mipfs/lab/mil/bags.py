"""Bags: which rows belong together, and the label of a bag from those of its rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.errors import DataError
from mipfs.plumbing.arrays import Integers


@dataclass(frozen=True, eq=False)
class Bags:
    """The rows of a table in bags; bags are in the order of their names, rows of a bag in that of the table.

    Attributes
    ----------
    names : (B,) what the bags are called, ascending
    order : (n,) the rows, bag after bag
    starts : (B,) where each bag begins in `order`
    """

    names: npt.NDArray[Any]
    order: Integers
    starts: Integers

    @classmethod
    def of(cls, bags: Any, n: int, what: str = "bags") -> Bags:
        """Group n rows.

        Parameters
        ----------
        bags : (n,) array-like of integers, strings or other names that can be sorted; None: every row by itself
        n : int >= 1, the number of rows

        Raises
        ------
        DataError
            Not one name per row, or names that are missing or cannot be sorted.
        """
        if bags is None:
            rows = np.arange(n, dtype=np.int64)
            return cls(rows, rows, rows)
        given = np.asarray(bags)
        if given.shape != (n,):
            raise DataError(f"{what} has shape {given.shape} for {n} rows", "give every row the name of its bag")
        if given.dtype == object:
            missing = np.flatnonzero([name is None or (isinstance(name, float) and name != name) for name in given])
        else:
            missing = np.flatnonzero(given != given)  # NaN and NaT differ from themselves
        if missing.size:
            raise DataError(f"row {missing[0] + 1} has no bag", "give every row the name of its bag")
        try:
            names, codes = np.unique(given, return_inverse=True)
        except TypeError:
            raise DataError(f"{what} mixes names that cannot be sorted", "give integers or strings") from None
        order = np.argsort(codes, kind="stable").astype(np.int64)
        starts = np.searchsorted(codes[order], np.arange(names.size)).astype(np.int64)
        return cls(names, order, starts)

    def __len__(self) -> int:
        return int(self.starts.size)

    @property
    def n_rows(self) -> int:
        """The rows of all bags."""
        return int(self.order.size)

    def largest(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The largest of every bag's values (n,), shape (B,): with 1 for positive rows, 1 for positive bags."""
        return np.maximum.reduceat(values[self.order], self.starts)

    def classes(self, codes: npt.NDArray[Any], classes: npt.NDArray[Any], training: bool = True) -> npt.NDArray[Any]:
        """The class of every bag, shape (B,), as its position in `classes`.

        Of two classes the last is the positive one, which a bag has as soon as one of its rows has it.

        Parameters
        ----------
        codes : (n,) position of every row's class in `classes`
        classes : (K,) ascending, of which each has a row
        training : bool, default True
            False: some class may be without a bag.

        Raises
        ------
        DataError
            Rows of different classes in one bag, of more than two; or no negative bag in training.
        """
        most = self.largest(codes)
        if classes.size > 2:
            mixed = np.flatnonzero(most != -self.largest(-codes))
            if mixed.size:
                k = int(mixed[0])
                end = self.starts[k + 1] if k + 1 < len(self) else self.n_rows
                held = classes[np.unique(codes[self.order[self.starts[k] : end]])][:2].tolist()
                raise DataError(
                    f"bag {plain(self.names[k])!r} has rows of class {held[0]!r} and of class {held[1]!r}",
                    "of more than two classes a bag must have one",
                )
        if training and np.all(most == classes.size - 1):
            raise DataError(
                f"every bag has a row of class {plain(classes[-1])!r}, which makes it positive",
                "give negative bags too",
            )
        return most


def plain(name: Any) -> Any:
    """A name in a message: 7 rather than np.int64(7)."""
    return name.item() if isinstance(name, np.generic) else name
