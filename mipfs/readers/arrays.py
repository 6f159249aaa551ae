"""The arrays of an .npz file, checked before NumPy makes room for them: a header may claim anything."""

from __future__ import annotations

import io
import math
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Container, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy
from scipy import sparse

from mipfs.data.checks import memory
from mipfs.errors import DataError
from mipfs.plumbing.tape import map_array as in_file
from mipfs.plumbing.tape import pieces
from mipfs.readers import room
from mipfs.readers.files import opened

_UNREADABLE = (
    *(ValueError, TypeError, KeyError, ArithmeticError, RuntimeError, MemoryError),
    *(zipfile.BadZipFile, zlib.error, EOFError, SyntaxError, tokenize.TokenError),
)
"""What zipfile and NumPy raise for a damaged or hostile archive (RuntimeError: encrypted, unknown compression)."""

_METHODS = zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED
"""Of which a little can be unpacked at a time; of bzip2 a few bytes become megabytes at once."""
_NOTHING = np.empty(0)
MAPPED_BYTES = 1 << 20
"""Smaller arrays are read at once."""
LOCAL_LENGTHS_AT = 26
"""Where an entry of an archive says how long its name and its extra field are, which its contents follow."""


def write_arrays(
    arrays: Mapping[str, npt.NDArray[Any]],
    stream: IO[bytes],
    compression: int = zipfile.ZIP_STORED,
    mode: Literal["w", "a"] = "w",
) -> None:
    """Write an .npz file, as NumPy's ``savez`` does, from arrays that need not stand in memory; "a" adds to one."""
    with zipfile.ZipFile(stream, mode, compression, allowZip64=True) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                npy.write_array_header_1_0(
                    member, npy.header_data_from_array_1_0(np.ascontiguousarray(array).reshape(array.shape))
                )
                for piece in pieces(array):
                    member.write(piece)


def npz_bytes(arrays: Mapping[str, Any]) -> bytes:
    """The .npz file of small arrays, as `mipfs.read` takes it; it holds no time stamps."""
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def csc_arrays(X: Any) -> dict[str, npt.NDArray[Any]]:
    """The arrays of a sparse matrix, in columns, as SciPy's ``save_npz`` names them."""
    X = sparse.csc_array(X)
    parts = {"data": X.data, "indices": X.indices, "indptr": X.indptr}
    return {"format": np.array("csc"), "shape": np.array(X.shape), **parts}


def load_arrays(
    path: Path,
    content: bytes | None = None,
    *,
    mapped: bool = False,
    known: Container[str] | None = None,
    times: int = room.TIMES,
) -> dict[str, npt.NDArray[Any]]:
    """All arrays of an .npz file by name.

    Parameters
    ----------
    path : Path
    content : bytes, optional, what the file held when it was read before
    mapped : bool, default False
        Large arrays that are stored as they are stay in the file: they are read only.
    known : container of str, optional
        Names of the arrays that are read. Another one is named in what is returned, and empty: it is not looked at.
    times : int
        How much the arrays may take, see `mipfs.readers.room`.

    Raises
    ------
    DataError
        No such file or no archive, something in it that is no plain array, or arrays that take more memory than the
        file may, or this machine has.
    """
    try:
        source = opened(path) if content is None else nullcontext(io.BytesIO(content))
        with source as stream, zipfile.ZipFile(stream) as archive:
            members = _each_once(archive)
            named = [one.filename.removesuffix(".npy") for one in members]
            strangers = {name: _NOTHING for name in named if known is not None and name not in known}
            members = [one for one, name in zip(members, named, strict=True) if name not in strangers]
            needed = _checked_array_sizes(archive, members, stream.seek(0, io.SEEK_END), times, path)
            large = [one for one in members if mapped and _is_mappable(one)]
            kept = {one.filename: found for one in large if (found := _map_array(path, archive, one)) is not None}
            _check_memory(sum(size for name, size in needed.items() if name not in kept), path)
            held = {
                one.filename.removesuffix(".npy"): kept[one.filename] if one.filename in kept else _read(archive, one)
                for one in members
            }
            return {**held, **strangers}
    except _UNREADABLE as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise DataError(f"not a readable npz file: {reason}", "write plain arrays with savez", path=path) from None


def load_members(path: Path, content: bytes) -> dict[str, bytes]:
    """The files that an archive holds, by name: each stands in it as it is, so that together they are no larger.

    Raises
    ------
    DataError
        No archive, one with two files of one name, or one whose files are compressed or lie over one another.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = _each_once(archive)
            packed = [one.filename for one in members if one.compress_type != zipfile.ZIP_STORED]
            if packed:
                raise ValueError(f"{packed[0]!r} is compressed in it")
            if sum(one.file_size for one in members) > len(content):
                raise ValueError("its files are larger than it is")
            return {one.filename: archive.read(one) for one in members}
    except _UNREADABLE as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise DataError(f"not a readable archive: {reason}", "give the file that mipfs wrote", path=path) from None


def _each_once(archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """What an archive holds; of two files of one name every reader takes the one it likes."""
    members = archive.infolist()
    seen = set[str]()
    for one in members:
        name = one.filename.removesuffix(".npy")
        if name in seen:
            raise ValueError(f"{name!r} stands in it twice")
        seen.add(name)
    return members


def _checked_array_sizes(
    archive: zipfile.ZipFile, members: Sequence[zipfile.ZipInfo], size: int, times: int, path: Path
) -> dict[str, int]:
    """The bytes of every array, no more together than those of a file of `size` bytes may be.

    Whatever a member really holds, no more is read of it than it says, and only a little at a time is unpacked.
    """
    for one in members:
        if one.compress_type not in _METHODS:
            raise ValueError(f"{one.filename!r} is compressed in a way that NumPy does not write")
    most = room.most(size, times)
    said = {one.filename: one.file_size for one in members}
    if sum(said.values()) <= most:
        said = {one.filename: _check_size(archive, one) for one in members}
    if sum(said.values()) > most:
        raise room.too_large(path, size, times)
    return said


def _check_memory(needed: int, path: Path) -> None:
    if needed > memory():
        raise DataError(
            f"its arrays would take {needed / 2**30:.3g} GB, and this machine has {memory() / 2**30:.3g}",
            "store what is needed, or use a larger machine",
            path=path,
        )


def _is_mappable(member: zipfile.ZipInfo) -> bool:
    return member.compress_type == zipfile.ZIP_STORED and member.file_size >= MAPPED_BYTES


def _map_array(path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> npt.NDArray[Any] | None:
    """A stored array as it lies in its file; None of one in Fortran's order, which is read as any other."""
    shape, is_fortran, dtype, before = _read_header(archive, member)
    if is_fortran:
        return None
    with path.open("rb") as stream:
        stream.seek(member.header_offset + LOCAL_LENGTHS_AT)
        lengths = stream.read(4)
    at = member.header_offset + LOCAL_LENGTHS_AT + 4 + sum(struct.unpack("<HH", lengths)) + before
    return in_file(path, dtype, at, shape)


def _check_size(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> int:
    """The bytes that an array takes, by its header, which must agree with its file."""
    shape, _, dtype, _ = _read_header(archive, member)
    return math.prod(shape) * max(1, dtype.itemsize)


def _read_header(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """Shape, order, type and the length of the header of an array, which agree with its file."""
    with archive.open(member) as stream:
        version = npy.read_magic(stream)
        if version not in ((1, 0), (2, 0)):
            raise ValueError(f"{member.filename!r} is an array of version {version}")
        header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, is_fortran, dtype = header(stream)
        before = stream.tell()
    if dtype.hasobject:
        raise ValueError("Object arrays cannot be loaded when allow_pickle=False")
    entries = math.prod(shape)
    if min(shape, default=0) < 0 or before + entries * dtype.itemsize != member.file_size:
        raise ValueError(f"{member.filename!r} has {member.file_size} bytes, which is no array of shape {shape}")
    return shape, is_fortran, dtype, before


def _read(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> npt.NDArray[Any]:
    with archive.open(member) as stream:
        return npy.read_array(stream, allow_pickle=False)
