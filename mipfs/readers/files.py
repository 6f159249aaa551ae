"""What a path says: the format of the data, its compression, and where its description stands."""

from __future__ import annotations

import bz2
import gzip
import io
import os
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Annotated, cast

from mipfs.errors import DataError
from mipfs.plumbing.declared import NumberRange
from mipfs.readers.room import Unpacking, most_features

FORMATS = {
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
    ".txt": "svmlight",
    ".binary": "svmlight",  # how LIBSVM's collection names its two-class files
    "": "svmlight",
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".npz": "npz",
    **dict.fromkeys((".t", ".tr", ".val", ".test", ".scale"), "svmlight"),  # parts of LIBSVM's collection: a9a.t
    **dict.fromkeys((".pq", ".parq"), "parquet"),
}
UNPACK = "unpack it first, or pack it by gzip or bzip2"
AS_TABLE = "write it as CSV or Parquet, or give mipfs.read the data frame that holds it"
ELSEWHERE = {
    **dict.fromkeys((".xz", ".zip", ".zst", ".7z", ".tar", ".tgz", ".z"), UNPACK),
    **dict.fromkeys((".xls", ".xlsx", ".ods"), "save the sheet as CSV in UTF-8"),
    **dict.fromkeys(
        (".feather", ".arrow", ".json", ".jsonl", ".arff", ".pkl", ".pickle", ".sas7bdat", ".dta"), AS_TABLE
    ),
    **dict.fromkeys((".rds", ".rda", ".rdata"), "write it in R by write.csv(data, FILE, row.names = FALSE)"),
    ".npy": "numpy.savez(FILE, X=X, y=y) holds a matrix and its labels, and Instance.from_arrays(X, y) takes arrays",
    ".mat": "numpy.savez(FILE, X=X, y=y) holds a matrix and its labels; scipy.io.loadmat reads them",
}
"""What to do with a file of another format."""
MAX_FEATURES = 100_000_000
"""A larger index or shape is taken for an error: its matrix alone would need gigabytes. Of a small file fewer are read
(`mipfs.readers.room.most_features`)."""
Width = Annotated[int, NumberRange(1, MAX_FEATURES)]
"""How many features a file is said to have."""
MANIFEST, DESCRIPTION = "manifest.json", "description.toml"
"""In a column store: what makes a folder one, and the .toml that stood beside its data."""
_PACKED = (".gz", ".bz2")
AT_ONCE = 1 << 16
"""Bytes that are unpacked at a time."""


def plain_name(path: Path) -> Path:
    """The path without the suffix of a compression: ``data.svm`` of ``data.svm.gz``; a folder is a `DataError`."""
    if os.path.isdir(path):
        raise DataError(f"this is a folder without {MANIFEST}", "give a data file or a column store", path=path)
    return path.with_suffix("") if path.suffix.lower() in _PACKED else path


def format_of(path: Path) -> str:
    """The format that the suffix stands for: svmlight, csv, parquet or npz; "store" for a folder that is one.

    Raises
    ------
    DataError
        An unknown suffix, or a compression that the format does not take.
    """
    if os.path.isfile(path / MANIFEST):
        return "store"
    plain = plain_name(path)
    suffix = plain.suffix.lower()
    if suffix not in FORMATS:
        known = ", ".join(name for name in FORMATS if name)
        remedy = ELSEWHERE.get(suffix, f"use one of {known}")
        raise DataError(f"no data format has the suffix {suffix!r}", remedy, path=path)
    kind = FORMATS[suffix]
    if plain != path and kind in ("parquet", "npz"):
        raise DataError(f"{suffix} is compressed in itself", f"unpack it to {plain.name}", path=path)
    return kind


def description_of(path: Path) -> Path:
    """The .toml that describes the data: the same stem in the same folder; of a store its own, where it has none."""
    if os.path.isfile(path / MANIFEST):
        beside = path.with_name(f"{path.name}.toml")
        return beside if os.path.exists(beside) else path / DESCRIPTION
    return plain_name(path).with_suffix(".toml")


def features_limit(path: Path) -> int:
    """How many features a file of this size may have by its largest index, or by the shape that it states."""
    try:
        return most_features(os.stat(path).st_size, MAX_FEATURES)
    except (OSError, ValueError):  # whoever opens it says so
        return MAX_FEATURES


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for reading bytes, unpacking .gz and .bz2 on the way.

    Raises
    ------
    DataError
        No such file, no permission, a device, or a damaged compressed file: also from reads inside the block.
    """
    with _explain_errors(path, _open) as stream:
        yield stream


@contextmanager
def plainly_opened(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for reading its bytes as they are stored, compressed or not; it raises what `opened` raises."""
    with _explain_errors(path, lambda one: one.open("rb")) as stream:
        yield stream


@contextmanager
def _explain_errors(path: Path, how: Callable[[Path], IO[bytes]]) -> Iterator[IO[bytes]]:
    try:
        try:
            mode = os.stat(path).st_mode
        except ValueError as error:  # a name that no file can have
            raise DataError(f"cannot be read: {error}", "check the path", path=path) from None
        if stat.S_ISCHR(mode):
            raise DataError("this is a terminal or a device, which has no end", "give a file", path=path)
        with how(path) as stream:
            yield stream
    except FileNotFoundError:
        raise DataError("no such file", "check the path", path=path) from None
    except (EOFError, zlib.error):
        raise DataError("the compressed file is truncated or damaged", "fetch or pack it again", path=path) from None
    except OSError as error:
        reason = error.strerror or str(error)  # a bad gzip header has no strerror
        raise DataError(f"cannot be read: {reason}", "check the file", path=path) from None


def _open(path: Path) -> IO[bytes]:
    raw = path.open("rb")
    match path.suffix.lower():
        case ".gz":
            return in_bounds(cast(IO[bytes], gzip.GzipFile(fileobj=raw, mode="rb")), path, raw.tell, raw)
        case ".bz2":
            return in_bounds(cast(IO[bytes], bz2.BZ2File(raw, "rb")), path, raw.tell, raw)
        case _:
            return raw


def in_bounds(stream: IO[bytes], path: Path, packed: Callable[[], int], beneath: IO[bytes] | None = None) -> IO[bytes]:
    """A stream of unpacked bytes that ends in a `DataError` beyond what the file may unpack to, see `Unpacking`."""
    return cast(IO[bytes], io.BufferedReader(Unpacking(stream, path, packed, beneath), AT_ONCE))


def check_unpacked(path: Path) -> None:
    """Unpack a compressed file to its end, and keep nothing: for readers that hold far more than the bytes of a text.

    Raises
    ------
    DataError
        As `opened`.
    """
    if path.suffix.lower() in _PACKED:
        with opened(path) as stream:
            while stream.read(AT_ONCE):
                pass
