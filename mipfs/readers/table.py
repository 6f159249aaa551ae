"""Table: what a data file holds, before labels are mapped and columns scaled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.data.instance import Labels
from mipfs.data.recipe import Filled, Recipe
from mipfs.data.table_reading import TableReading
from mipfs.plumbing.arrays import Array


@dataclass(frozen=True, eq=False)
class Table:
    """The contents of a data file.

    Attributes
    ----------
    X : (n, p) ndarray in Fortran order or csc_array of float64
    labels : (n,) ndarray of float or str, or None where the file has none
    names : tuple of p str, or None where the file names no features
    groups : mapping of a string column to the names of its one-hot features
    others : mapping of a column of two words to the one that has no feature, as the other's feature says it
    bags : (n,) ndarray of int, or None
    sample_weight : (n,) ndarray, or None
    lines : (n,) ndarray of int, or None
        The line each sample stands on; None for a file without lines.
    label : str, or None
        The column or array that the labels stand in, where it has a name.
    signs : (n,) ndarray of -1.0 and +1.0 with what the two are called, in place of `labels`, or None
    filled : tuple of Filled, the columns whose missing values are filled in
    recipe : Recipe or None, by which the table was prepared before it was stored
    reading : TableReading or None, what a store says of the columns of words of the table that it was made of
    """

    X: Any
    labels: npt.NDArray[Any] | None
    names: tuple[str, ...] | None = None
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    bags: npt.NDArray[np.int64] | None = None
    sample_weight: Array | None = None
    lines: npt.NDArray[np.int64] | None = None
    label: str | None = None
    signs: tuple[Array, Labels] | None = None
    filled: tuple[Filled, ...] = ()
    recipe: Recipe | None = None
    reading: TableReading | None = None
    others: Mapping[str, str] = field(default_factory=dict)

    @property
    def words(self) -> dict[str, tuple[str, ...]]:
        """The words of every column of words, sorted: what stands behind ``column=`` in its features, and others."""
        found = {name: [one[len(name) + 1 :] for one in made] for name, made in self.groups.items()}
        return {name: tuple([self.others[name], *own] if name in self.others else own) for name, own in found.items()}
