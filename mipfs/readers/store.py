"""The column store that `mipfs convert` writes: a folder of .npy files, memory-mapped, and a manifest of them.

manifest.json           shape, dtype, labels, source; of every block its columns and the largest Σx² of one; of every
                        file its size and CRC-32
y.npy                   (n,) -1.0 and +1.0;  bags.npy and sample_weight.npy where the data has them
names.json              names of the features, groups and words, where the data names them; of a table which columns of
                        words an option kept, which were left out, and of two words the one that has no feature
recipe.json             what was done to a raw table, and which cells were missing, where it was prepared
description.toml        the .toml that stood beside the data
K.data.npy              block K of the columns: values, or an (n, w) array where the data is dense
K.indices.npy  K.indptr.npy     rows, and where each column begins
K.sums.npy  K.statistics.npy    of every column: Σ|x|, and `mipfs.data.blocked.Statistics`
"""

from __future__ import annotations

import math
import os
import sys
import tokenize
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, NotRequired, TypedDict, cast

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy

from mipfs.data.blocked import Blocked, ColumnPart, Csc, Floats, Statistics, summary
from mipfs.data.instance import Labels
from mipfs.data.recipe import HOWS, Filled, Prepared, Recipe
from mipfs.data.table_reading import TableReading
from mipfs.errors import DataError, UsageError
from mipfs.plumbing.typed_json import FieldError, Such, Texts, read
from mipfs.readers.manifest import AGAIN, Manifest, crc_of_file, document

NAMES, RECIPE = "names.json", "recipe.json"
SAME = 1e-6
"""How far sums may be from the stored ones, relative: another machine adds in another order, and Σ|x| is a float32."""
_UNREADABLE = ValueError, TypeError, OSError, EOFError, SyntaxError, ArithmeticError, MemoryError, tokenize.TokenError
"""What NumPy raises for a file that is no plain array, whatever its header says."""


class StoreFiles:
    """The files of a store: sizes are checked at once, contents when a file is first used.

    Parameters
    ----------
    path : of the store
    manifest : Manifest

    Raises
    ------
    DataError
        A file that is missing, or longer or shorter than it was written; it is named.
    """

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path = path
        self.manifest = manifest
        self._sound = set[str]()
        for name, (size, _) in manifest.files.items():
            try:
                found = os.stat(path / name).st_size
            except OSError as error:
                raise DataError(f"{_name_file(name)} is missing: {error.strerror}", AGAIN, path=path) from None
            if found != size:
                raise DataError(f"{_name_file(name)} has {found} bytes, not {size}", AGAIN, path=path)

    def check(self, name: str) -> Path:
        """The path of a file whose checksum is right.

        Raises
        ------
        DataError
            It is not in the manifest, or another file than the one that was written.
        """
        if name not in self.manifest.files:
            raise DataError(f"{_name_file(name)} is not in the manifest", AGAIN, path=self.path)
        if name not in self._sound:
            if crc_of_file(self.path / name) != self.manifest.files[name][1]:
                raise DataError(f"{_name_file(name)} is damaged: its checksum is wrong", AGAIN, path=self.path)
            self._sound.add(name)
        return self.path / name

    def array(self, name: str, dtype: str, shape: tuple[int, ...] | None = None) -> Any:
        """The mapped array of a file, once its checksum was found right; of that type, and of one dimension or `shape`.

        Raises
        ------
        DataError
        """
        place = self.check(name)
        try:
            found = npy.open_memmap(place, mode="r").view(np.ndarray)
        except _UNREADABLE as error:
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            raise DataError(f"{_name_file(name)} is damaged: {reason}", AGAIN, path=self.path) from None
        if found.ndim != 1 if shape is None else found.shape != shape:
            raise DataError(f"{_name_file(name)} has shape {found.shape}, not {shape or '(k,)'}", AGAIN, path=self.path)
        if found.dtype not in map(np.dtype, dtype.split()):
            raise DataError(f"{_name_file(name)} holds {found.dtype}, not {dtype}", AGAIN, path=self.path)
        return found


def _name_file(name: str) -> str:
    """How messages call a file."""
    number, point, _ = name.partition(".")
    return f"block {int(number)} ({name})" if point and number.isdigit() else name


class FilePart(ColumnPart):
    """A block of columns in the files of a store.

    Parameters
    ----------
    files : StoreFiles
    number : of the block
    """

    is_known = True

    def __init__(self, files: StoreFiles, number: int) -> None:
        start, stop, most = files.manifest.blocks[number]
        super().__init__(start, stop, files.manifest.n_samples)
        self._files = files
        self.number = number
        self._most = float(most) if most < sys.float_info.max else math.inf  # as JSON has it

    def __getstate__(self) -> dict[str, Any]:
        """Without what is mapped: whoever gets it maps anew."""
        return {name: value for name, value in self.__dict__.items() if name not in ("values", "sums", "statistics")}

    def _read_array(self, name: str, dtype: str, *shape: int) -> Any:
        return self._files.array(f"{self.number:05d}.{name}.npy", dtype, shape or None)

    def _broken_block_error(self, why: str) -> DataError:
        return DataError(f"block {self.number} does not hold together: {why}", AGAIN, path=self._files.path)

    @cached_property
    def values(self) -> Csc | Floats:
        """The stored values: no number is missing, and no index leads out of the block."""
        manifest = self._files.manifest
        if manifest.dense:
            full = cast(Floats, self._read_array("data", manifest.dtype, self.n, self.width))
            if not np.isfinite(full).all():
                raise self._broken_block_error("a value is not finite")
            return full
        data, indptr = (
            self._read_array("data", manifest.dtype),
            self._read_array("indptr", "int32 int64", self.width + 1),
        )
        indices = self._read_array("indices", "int32 int64", *data.shape)
        if indptr[0] != 0 or indptr[-1] != data.size or np.any(indptr[1:] < indptr[:-1]):
            raise self._broken_block_error("its columns do not follow one another")
        if data.size and not (indices.min() >= 0 and indices.max() < self.n):
            raise self._broken_block_error("an index leads out of it")
        if not np.isfinite(data).all():
            raise self._broken_block_error("a value is not finite")
        return Csc(data, indices, indptr)

    @cached_property
    def sums(self) -> npt.NDArray[np.float32]:
        """At least Σ_i |x_ij|."""
        return cast(npt.NDArray[np.float32], self._read_array("sums", "float32", self.width))

    @property
    def most(self) -> float:
        """The largest Σ_i x_ij² of a column."""
        return self._most

    @cached_property
    def statistics(self) -> Statistics:
        """What is known of the columns."""
        return Statistics(*self._read_array("statistics", "float64", 4, self.width))


@dataclass(frozen=True, eq=False)
class ColumnStore:
    """An opened store.

    Attributes
    ----------
    X : Blocked
    y : (n,) -1.0 and +1.0
    labels : Labels
    names : list of str, or None
    groups : mapping of a column of words to the names of its features
    others : mapping of a column of two words to the one that has no feature
    bags, sample_weight : (n,) arrays, or None
    label : str or None
    prepared : Prepared or None, what was done to a raw table
    reading : TableReading or None, which columns of words of a table were left out; None where the store does not say
    """

    X: Blocked
    y: npt.NDArray[np.float64]
    labels: Labels
    names: list[str] | None
    groups: dict[str, tuple[str, ...]]
    bags: Any
    sample_weight: Any
    label: str | None
    prepared: Prepared | None = None
    reading: TableReading | None = None
    others: Mapping[str, str] = field(default_factory=dict)


class NamesDocument(TypedDict):
    """names.json."""

    names: list[str]
    groups: dict[str, Texts]
    kept: NotRequired[Texts]
    left_out: NotRequired[Texts]
    others: NotRequired[dict[str, str]]


class FilledEntry(TypedDict):
    """A column whose missing values were filled in, as recipe.json has it; `rows` become an array."""

    name: str
    how: Annotated[str, Such(lambda how: how in HOWS)]
    value: str | int | float
    rows: list[Any]
    features: Texts


class PreparedDocument(TypedDict):
    """recipe.json."""

    filled: list[FilledEntry]
    recipe: dict[str, Any] | None


def open_store(path: Path) -> ColumnStore:
    """Open a column store; nothing of it is read but the manifest, the names and the labels.

    Raises
    ------
    DataError
        A damaged or incomplete store: the file, and the block, are named.
    """
    manifest = Manifest.of(path)
    files = StoreFiles(path, manifest)
    n = (manifest.n_samples,)
    parts = [FilePart(files, k) for k in range(len(manifest.blocks))]
    X = Blocked(
        manifest.n_samples, parts, manifest.nnz, manifest.sha256, is_sparse=not manifest.dense, largest=manifest.largest
    )
    named = _stored_names(files, manifest.n_features) if NAMES in manifest.files else (None, {}, None, {})
    names, groups, reading, others = named
    optional = {
        name: files.array(f"{name}.npy", dtype, n) if f"{name}.npy" in manifest.files else None
        for name, dtype in (("bags", "int64"), ("sample_weight", "float64"))
    }
    prepared = _read_prepared(files) if RECIPE in manifest.files else None
    y = files.array("y.npy", "float64", n)
    if not np.all(np.abs(y) == 1.0) or not -n[0] < float(y.sum()) < n[0]:
        raise DataError("y.npy does not hold signs of two classes", AGAIN, path=path)
    labels = Labels(**manifest.labels)
    return ColumnStore(
        X, y, labels, names, groups, label=manifest.label, prepared=prepared, reading=reading, others=others, **optional
    )


def _stored_names(
    files: StoreFiles, p: int
) -> tuple[list[str], dict[str, tuple[str, ...]], TableReading | None, dict[str, str]]:
    """The names of the features, those that words have become, which columns were left out, and words without one."""
    place = files.check(NAMES)
    stated = document(place, "names")
    try:
        found = read(stated, NamesDocument)
    except FieldError as error:
        raise DataError(f"not the names of a store: {error}", AGAIN, path=place) from None
    names, groups = found["names"], found["groups"]
    known = {*names}
    said = [found[what] for what in ("kept", "left_out") if what in found]
    others = found.get("others", {})
    whole = all(len(groups.get(name, ())) == 1 for name in others)
    whole &= len(known) == p == len(names) and all(map(known.issuperset, groups.values())) and len(said) in (0, 2)
    if not whole:
        raise DataError("not a name for every feature, and groups of these", AGAIN, path=place)
    return names, groups, TableReading(said[0], said[1], is_raw=False) if said else None, others


def _read_prepared(files: StoreFiles) -> Prepared:
    """What was done to the table that the store was made of."""
    place = files.check(RECIPE)
    stated = document(place, "a recipe")
    try:
        found = read(stated, PreparedDocument)
        filled = tuple(_read_filled(one, files.manifest.n_samples) for one in found["filled"])
        return Prepared(Recipe.of_document(found["recipe"]), filled)
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError, UsageError) as error:
        raise DataError(f"not a recipe: {error}", AGAIN, path=place) from None


def _read_filled(one: Mapping[str, Any], n: int) -> Filled:
    """A column whose missing values were filled in."""
    rows = np.array(one["rows"], dtype=np.int64).reshape(-1)
    if rows.size and not (rows.min() >= 0 and rows.max() < n):
        raise ValueError(f"rows of {one['name']!r} that are not there")
    return Filled(one["name"], one["how"], one["value"], rows, one["features"])


def check(path: Path) -> str:
    """Read all of a store: every checksum, and what is said of the values, which is recomputed.

    Raises
    ------
    DataError
        A damaged block, or values that are not those of the manifest.
    """
    from mipfs.data.matrix import Digest

    store = open_store(path)
    digest = Digest(store.X.shape)
    for k, part in enumerate(store.X.parts):
        digest.add(part.whole())
        if not _is_so(part):
            raise DataError(f"what it says of the columns of block {k} is not so", AGAIN, path=path)
    if digest.hexdigest() != store.X.sha256:
        raise DataError("the values are not those that the manifest is about", AGAIN, path=path)
    return store.X.sha256


def _is_so(part: ColumnPart) -> bool:
    """Whether sums and statistics of a part are those of its values, up to the rounding of another machine."""
    sums, found = summary(part.values, part.n)
    told = part.statistics
    size = np.sqrt(found.squares / part.n)
    same = all(
        np.allclose(one, other, rtol=SAME, atol=0.0, equal_nan=True)
        for one, other in ((told.squares, found.squares), (told.norm, found.norm), (part.sums, sums))
    )
    close = all(
        bool(np.all((np.abs(one - other) <= SAME * size) | (one == other)))
        for one, other in ((told.shift, found.shift), (told.spread, found.spread))
    )
    return same and close and part.most >= (1.0 - SAME) * found.squares.max(initial=0.0)
