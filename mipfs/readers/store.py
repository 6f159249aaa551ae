"""The column store that `mipfs convert` writes: a folder of .npy files, memory-mapped, and a manifest of them.

manifest.json           shape, dtype, labels, source; of every block its columns and the largest Σx² of one; of every
                        file its size and CRC-32
y.npy                   (n,) -1.0 and +1.0;  bags.npy and sample_weight.npy where the data has them
names.json              names of the features, groups and words, where the data names them
recipe.json             what was done to a raw table, and which cells were missing, where it was prepared
description.toml        the .toml that stood beside the data
K.data.npy              block K of the columns: values, or an (n, w) array where the data is dense
K.indices.npy  K.indptr.npy     rows, and where each column begins
K.sums.npy  K.statistics.npy    of every column: Σ|x|, and `mipfs.data.blocked.Statistics`
"""

from __future__ import annotations

import json
import os
import zlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from mipfs.data.blocked import Blocked, Csc, Floats, Part, Statistics
from mipfs.data.instance import Labels
from mipfs.data.recipe import Filled, Prepared, Recipe
from mipfs.errors import DataError
from mipfs.readers.files import MANIFEST

FORMAT = "mipfs column store"
VERSION = 1
RECIPE = "recipe.json"
_AGAIN = "convert the data again, or fetch the store again"
_PIECE = 1 << 20


def crc(path: Path) -> int:
    """CRC-32 of a file."""
    found = 0
    with path.open("rb") as stream:
        while piece := stream.read(_PIECE):
            found = zlib.crc32(piece, found)
    return found


@dataclass(frozen=True)
class Manifest:
    """What a store says of itself; fields as in manifest.json."""

    n_samples: int
    n_features: int
    nnz: int
    largest: float
    dtype: str
    dense: bool
    labels: dict[str, Any]
    label: str | None
    sha256: str
    source: dict[str, Any]
    blocks: list[list[Any]]
    files: dict[str, list[int]]

    @classmethod
    def of(cls, path: Path) -> Manifest:
        """Read and check the manifest of a store.

        Raises
        ------
        DataError
            No manifest of this version, or one that does not hold together.
        """
        place = path / MANIFEST
        try:
            document = json.loads(place.read_text(encoding="utf-8"))
        except OSError as error:
            raise DataError(f"cannot be read: {error.strerror}", _AGAIN, path=place) from None
        except (ValueError, RecursionError) as error:
            raise DataError(f"not a manifest: {error}", _AGAIN, path=place) from None
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise DataError(f"its format is not {FORMAT!r}", "give a folder that `mipfs convert` made", path=place)
        if document.get("version") != VERSION:
            raise DataError(f"version {document.get('version')!r}; this reads {VERSION}", _AGAIN, path=place)
        try:
            found = cls(**{name: document[name] for name in cls.__dataclass_fields__})
            ends = [0, *(stop for _, stop, _ in found.blocks)]
            sound = [start for start, _, most in found.blocks if most >= 0] == ends[:-1] and ends[
                -1
            ] == found.n_features > 0
            sound = sound and found.dtype in ("float32", "float64") and found.labels.keys() == {"negative", "positive"}
            sizes = [(size, checksum) for size, checksum in found.files.values()]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError(f"not a complete manifest: {error!r}", _AGAIN, path=place) from None
        if not sound or not all(type(number) is int for pair in sizes for number in pair):
            raise DataError("the manifest does not hold together", _AGAIN, path=place)
        return found


class Files:
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
                raise DataError(f"{_named(name)} is missing: {error.strerror}", _AGAIN, path=path) from None
            if found != size:
                raise DataError(f"{_named(name)} has {found} bytes, not {size}", _AGAIN, path=path)

    def array(self, name: str, shape: tuple[int, ...] | None = None) -> Any:
        """The mapped array of a file, once its checksum was found right."""
        if name not in self.manifest.files:
            raise DataError(f"{_named(name)} is not in the manifest", _AGAIN, path=self.path)
        if name not in self._sound:
            if crc(self.path / name) != self.manifest.files[name][1]:
                raise DataError(f"{_named(name)} is damaged: its checksum is wrong", _AGAIN, path=self.path)
            self._sound.add(name)
        try:
            found = np.load(self.path / name, mmap_mode="r", allow_pickle=False).view(np.ndarray)
        except (ValueError, OSError, EOFError) as error:
            raise DataError(f"{_named(name)} is damaged: {error}", _AGAIN, path=self.path) from None
        if shape is not None and found.shape != shape:
            raise DataError(f"{_named(name)} has shape {found.shape}, not {shape}", _AGAIN, path=self.path)
        return found


def _named(name: str) -> str:
    """How messages call a file."""
    number, point, _ = name.partition(".")
    return f"block {int(number)} ({name})" if point and number.isdigit() else name


class FilePart(Part):
    """A block of columns in the files of a store.

    Parameters
    ----------
    files : Files
    number : of the block
    """

    is_known = True

    def __init__(self, files: Files, number: int) -> None:
        start, stop, most = files.manifest.blocks[number]
        super().__init__(start, stop, files.manifest.n_samples)
        self._files = files
        self.number = number
        self._most = float(most)

    def __getstate__(self) -> dict[str, Any]:
        """Without what is mapped: whoever gets it maps anew."""
        return {name: value for name, value in self.__dict__.items() if name not in ("values", "sums", "statistics")}

    def _array(self, name: str, *shape: int) -> Any:
        return self._files.array(f"{self.number:05d}.{name}.npy", shape or None)

    @cached_property
    def values(self) -> Csc | Floats:
        """The stored values."""
        if self._files.manifest.dense:
            return cast(Floats, self._array("data", self.n, self.width))
        data, indptr = self._array("data"), self._array("indptr", self.width + 1)
        indices = self._array("indices", *data.shape)
        if indptr[0] != 0 or indptr[-1] != data.size:
            raise DataError(f"block {self.number} does not hold together", _AGAIN, path=self._files.path)
        return Csc(data, indices, indptr)

    @cached_property
    def sums(self) -> npt.NDArray[np.float32]:
        """At least Σ_i |x_ij|."""
        return cast(npt.NDArray[np.float32], self._array("sums", self.width))

    @property
    def most(self) -> float:
        """The largest Σ_i x_ij² of a column."""
        return self._most

    @cached_property
    def statistics(self) -> Statistics:
        """What is known of the columns."""
        return Statistics(*self._array("statistics", 4, self.width))


@dataclass(frozen=True, eq=False)
class Store:
    """An opened store.

    Attributes
    ----------
    X : Blocked
    y : (n,) -1.0 and +1.0
    labels : Labels
    names : list of str, or None
    groups : mapping of a column of words to the names of its features
    bags, sample_weight : (n,) arrays, or None
    label : str or None
    prepared : Prepared or None, what was done to a raw table
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


def open_store(path: Path) -> Store:
    """Open a column store; nothing of it is read but the manifest, the names and the labels.

    Raises
    ------
    DataError
        A damaged or incomplete store: the file, and the block, are named.
    """
    manifest = Manifest.of(path)
    files = Files(path, manifest)
    n = (manifest.n_samples,)
    parts = [FilePart(files, k) for k in range(len(manifest.blocks))]
    X = Blocked(
        manifest.n_samples, parts, manifest.nnz, manifest.sha256, is_sparse=not manifest.dense, largest=manifest.largest
    )
    names: list[str] | None = None
    groups: dict[str, tuple[str, ...]] = {}
    if "names.json" in manifest.files:
        if crc(path / "names.json") != manifest.files["names.json"][1]:
            raise DataError("names.json is damaged: its checksum is wrong", _AGAIN, path=path)
        document = json.loads((path / "names.json").read_text(encoding="utf-8"))
        names = document["names"]
        groups = {name: tuple(members) for name, members in document["groups"].items()}
    optional = {
        name: files.array(f"{name}.npy", n) if f"{name}.npy" in manifest.files else None
        for name in ("bags", "sample_weight")
    }
    labels = Labels(**manifest.labels)
    prepared = _prepared(path) if RECIPE in manifest.files else None
    y = files.array("y.npy", n)
    return Store(X, y, labels, names, groups, label=manifest.label, prepared=prepared, **optional)


def _prepared(path: Path) -> Prepared:
    """What was done to the table that the store was made of; `open_store` says whether it is in the manifest."""
    place = path / RECIPE
    if crc(place) != Manifest.of(path).files[RECIPE][1]:
        raise DataError(f"{RECIPE} is damaged: its checksum is wrong", _AGAIN, path=path)
    stated = json.loads(place.read_text(encoding="utf-8"))
    filled = tuple(
        Filled(one["name"], one["how"], one["value"], np.array(one["rows"], dtype=np.int64), tuple(one["features"]))
        for one in stated["filled"]
    )
    return Prepared(Recipe.of_document(stated["recipe"]), filled)


def check(path: Path) -> str:
    """Read all of a store: every checksum, and the digest of the values, which is recomputed.

    Raises
    ------
    DataError
        A damaged block, or values that are not those of the manifest.
    """
    from mipfs.data.matrix import Digest

    store = open_store(path)
    digest = Digest(store.X.shape)
    for part in store.X.parts:
        digest.add(part.whole())
        _ = part.sums, part.statistics
    if digest.hexdigest() != store.X.sha256:
        raise DataError("the values are not those that the manifest is about", _AGAIN, path=path)
    return store.X.sha256
