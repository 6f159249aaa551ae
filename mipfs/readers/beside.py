"""What stands beside data that does not carry it: labels in y.npy, names in names.txt."""

from __future__ import annotations

import math
import os
import tokenize
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy.typing as npt
from numpy.lib import format as npy

from mipfs.errors import DataError
from mipfs.readers.files import description_of, opened

NAMES = "names.txt"
"""The names of the features, one a line, for formats that have no place for them."""


def labels_of(path: Path, label: str) -> Path:
    """The file of labels of an npz file that holds none: ``y.npy``, or another array by its name."""
    return path.with_name(f"{Path(label).name}.npy")


def names_of(path: Path) -> Path:
    """The file of names in the folder of a data file."""
    return path.with_name(NAMES)


def read_array(path: Path) -> npt.NDArray[Any]:
    """An array that ``numpy.save`` has written.

    Raises
    ------
    DataError
        No such file, no array, Python objects in it, or a file that is longer or shorter than it says.
    """
    with opened(path) as stream:
        try:
            version = npy.read_magic(stream)
            header = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}.get(version)
            if header is None:
                raise ValueError(f"it is of version {version}")
            shape, _, dtype = header(stream)
            if dtype.hasobject:
                raise DataError(
                    "it holds Python objects, which are not loaded",
                    "save numbers or strings: np.save(file, y.astype(str))",
                    path=path,
                )
            if stream.tell() + math.prod(shape) * dtype.itemsize > os.fstat(stream.fileno()).st_size:
                raise ValueError(f"it has fewer bytes than its shape {shape} takes")
            stream.seek(0)
            found: npt.NDArray[Any] = npy.read_array(stream, allow_pickle=False)
            more = stream.read(1)
        except (ValueError, TypeError, SyntaxError, ArithmeticError, MemoryError, tokenize.TokenError) as error:
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            raise DataError(f"not a readable npy file: {reason}", "write it with numpy.save", path=path) from None
    if more:
        raise DataError("there is something behind its array", "write it with numpy.save", path=path)
    return found


def read_names(data: Path) -> tuple[str, ...] | None:
    """The lines of ``names.txt`` beside a data file; None where there is no such file.

    Raises
    ------
    DataError
        Not UTF-8, an empty line, or one that stands there twice; with the line.
    """
    path = names_of(data)
    if not os.path.isfile(path) or path == data:
        return None
    with opened(path) as stream:
        raw = stream.read()
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise DataError("not a text file in UTF-8", "save it as UTF-8", path=path) from None
    lines = [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]
    first: dict[str, int] = {}
    for number, name in enumerate(lines, 1):
        if not name.strip():
            raise DataError("the line has no name", "write one name of a feature a line", path=path, line=number)
        if name in first:
            raise DataError(
                f"{name!r} stands on line {first[name]} already",
                "give every feature its own name",
                path=path,
                line=number,
            )
        first[name] = number
    return tuple(lines)


def where_named(data: Path, given: Sequence[str] | None, beside: Sequence[str] | None) -> str | None:
    """How a message calls the place of the names: those that the .toml gives, or those of ``names.txt``."""
    if given is not None:
        return f"[features] names of {description_of(data).name}"
    return None if beside is None else NAMES


def check_count(data: Path, names: tuple[str, ...], p: int) -> None:
    """Refuse names that are not as many as the features.

    Raises
    ------
    DataError
    """
    if len(names) != p:
        raise DataError(
            f"{len(names)} names for the {p} features of {data.name}",
            "write one name of a feature a line, in the order of the columns",
            path=names_of(data),
        )
