"""What the machine code of a user's own kernel is made of: its file, and all that numba copies into it from others.

numba's code of a function holds copies of the kernels that it calls, and the values of the names outside that it reads.
So an edit of a second file, or of a constant in it, is one of the kernel. Kernels of the package have one key over all
their sources (`mipfs.compiled.kept`).
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

PACKAGE = Path(__file__).parents[1]
WITH_VERSIONS = ("numpy", "numba", "llvmlite")
"""Packages whose versions are in the key: their functions are not looked into."""


def is_own_kernel(function: Any) -> bool:
    """Whether a function is none of the package's."""
    return PACKAGE not in Path(inspect.getfile(function)).parents


def hash_of(function: Any) -> str:
    """A hash over what the machine code of a function is made of.

    Parameters
    ----------
    function : the Python function of a kernel
    """
    digest, seen = hashlib.sha256(), set[int]()
    for part in _parts_of_function(function, seen):
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()


def _parts_of_function(function: Any, seen: set[int]) -> Iterator[bytes]:
    """The function's file, or where it stands in none its code; and what its names stand for."""
    if id(function) in seen:
        return
    seen.add(id(function))
    path = Path(inspect.getfile(function))
    codes = [*_codes_of(function.__code__)]
    yield function.__qualname__.encode()
    if path.exists():
        yield path.read_bytes()
    else:  # of a notebook, or of a text that was run
        for code in codes:
            yield code.co_code + repr([one for one in code.co_consts if not isinstance(one, CodeType)]).encode()
    names = sorted({name for code in codes for name in code.co_names})
    for name in names:
        if name in function.__globals__:
            yield name.encode()
            yield from _parts_of_value(function.__globals__[name], names, seen)
    for cell in function.__closure__ or ():
        yield from _parts_of_value(cell.cell_contents, names, seen)


def _codes_of(code: CodeType) -> Iterator[CodeType]:
    """A function's code, and that of the functions within it."""
    yield code
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from _codes_of(one)


def _parts_of_value(value: Any, names: list[str], seen: set[int]) -> Iterator[bytes]:
    """What numba copies of a value: a number, a text, an array, or a function and what that is made of."""
    value = getattr(value, "py_func", value)
    if isinstance(value, ModuleType):
        if value.__name__.partition(".")[0] not in WITH_VERSIONS and id(value) not in seen:
            seen.add(id(value))
            for name in names:
                if hasattr(value, name):
                    yield name.encode()
                    yield from _parts_of_value(getattr(value, name), names, seen)
    elif isinstance(value, FunctionType):
        if value.__module__.partition(".")[0] not in WITH_VERSIONS and is_own_kernel(value):
            yield from _parts_of_function(value, seen)
    elif isinstance(value, tuple):
        yield f"tuple {len(value)}".encode()
        for one in value:
            yield from _parts_of_value(one, names, seen)
    elif isinstance(value, np.ndarray):
        yield f"{value.dtype} {value.shape}".encode() + value.tobytes()
    elif isinstance(value, (int, float, complex, str, bytes, np.generic, type(None))):
        yield f"{type(value).__name__} {value!r}".encode()
