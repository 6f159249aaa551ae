"""The arrays of an .npz file, checked before NumPy makes room for them: a header may claim anything."""

from __future__ import annotations

import io
import math
import tokenize
import zipfile
import zlib
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy.typing as npt
from numpy.lib import format as npy

from mipfs.data.checks import memory
from mipfs.errors import DataError
from mipfs.readers.files import opened

_UNREADABLE = (
    *(ValueError, TypeError, KeyError, ArithmeticError, RuntimeError, MemoryError),
    *(zipfile.BadZipFile, zlib.error, EOFError, SyntaxError, tokenize.TokenError),
)
"""What zipfile and NumPy raise for a damaged or hostile archive (RuntimeError: encrypted, unknown compression)."""


def load_arrays(path: Path, content: bytes | None = None) -> dict[str, npt.NDArray[Any]]:
    """All arrays of an .npz file by name.

    Parameters
    ----------
    path : Path
    content : bytes, optional, what the file held when it was read before

    Raises
    ------
    DataError
        No such file or no archive, something in it that is no plain array, or one that does not fit into memory.
    """
    try:
        source = opened(path) if content is None else nullcontext(io.BytesIO(content))
        with source as stream, zipfile.ZipFile(stream) as archive:
            members = archive.infolist()
            needed = sum(_checked(archive, member) for member in members)
            if needed > memory():
                raise DataError(
                    f"its arrays would take {needed / 2**30:.3g} GB, and this machine has {memory() / 2**30:.3g}",
                    "store what is needed, or use a larger machine",
                    path=path,
                )
            return {member.filename.removesuffix(".npy"): _read(archive, member) for member in members}
    except _UNREADABLE as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise DataError(f"not a readable npz file: {reason}", "write plain arrays with savez", path=path) from None


def _checked(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> int:
    """The bytes that an array takes, by its header, which must agree with its file."""
    with archive.open(member) as stream:
        version = npy.read_magic(stream)
        if version not in ((1, 0), (2, 0)):
            raise ValueError(f"{member.filename!r} is an array of version {version}")
        header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, _, dtype = header(stream)
        before = stream.tell()
    if dtype.hasobject:
        raise ValueError("Object arrays cannot be loaded when allow_pickle=False")
    entries = math.prod(shape)
    if min(shape, default=0) < 0 or before + entries * dtype.itemsize != member.file_size:
        raise ValueError(f"{member.filename!r} has {member.file_size} bytes, which is no array of shape {shape}")
    return entries * max(1, dtype.itemsize)


def _read(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> npt.NDArray[Any]:
    with archive.open(member) as stream:
        return npy.read_array(stream, allow_pickle=False)
