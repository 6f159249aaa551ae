"""What a user's own code is made of: a kernel's machine code, or a loss, a regulariser, a measure, atoms.

numba's code of a function holds copies of the kernels that it calls, and the values of the names outside that it reads.
So an edit of a second file, or of a constant in it, is one of the kernel. Kernels of the package have one key over all
their sources (`mipfs.compiled.kept`).
"""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

PACKAGE = Path(__file__).parents[1]
KNOWN = frozenset(("mipfs", "numpy", "numba", "llvmlite", *sys.stdlib_module_names)) - {"__main__"}
"""Packages that are not looked into: the key has their versions."""
PLAIN = int, float, complex, str, bytes, np.generic, type(None)


def is_own_kernel(function: Any) -> bool:
    """Whether a function is none of the package's."""
    return PACKAGE not in Path(inspect.getfile(function)).parents


def hash_of_kernel(function: Any) -> str:
    """A hash over what the machine code of a function is made of, its file included: options stand there.

    Parameters
    ----------
    function : the Python function of a kernel
    """
    path = Path(inspect.getfile(function))
    files = [path.read_bytes()] if path.exists() else []
    return _hash_of([*files, *Ingredients().of_function(function)])


def hash_of_code(*values: Any) -> str:
    """A hash over what functions, classes and objects of a user's own do, wherever they stand in whatever file."""
    parts = Ingredients()
    return _hash_of([part for value in values for part in parts.of(value)])


def _hash_of(parts: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()


class Ingredients:
    """The parts of some code, each once; what it uses of `KNOWN` packages is left out."""

    def __init__(self) -> None:
        self._seen = set[int]()

    def _is_new(self, value: Any, module: str | None) -> bool:
        """Whether a function, class or module is of the user's own, and was not met before."""
        if str(module).partition(".")[0] in KNOWN or id(value) in self._seen:
            return False
        self._seen.add(id(value))
        return True

    def of(self, value: Any, names: Iterable[str] = ()) -> Iterator[bytes]:
        """Those of a value; of a module what stands in it under some names."""
        value = getattr(value, "py_func", value)
        if isinstance(value, FunctionType):
            yield from self.of_function(value)
        elif isinstance(value, ModuleType):
            if self._is_new(value, value.__name__):
                yield from self._of_named({name: getattr(value, name) for name in names if hasattr(value, name)})
        elif isinstance(value, type):
            yield from self._of_class(value)
        elif isinstance(value, np.ndarray):
            yield f"{value.dtype} {value.shape}".encode() + (b"" if value.dtype.hasobject else value.tobytes())
        elif isinstance(value, PLAIN):
            yield f"{type(value).__name__} {value!r}".encode()
        elif isinstance(value, tuple):
            yield f"tuple {len(value)}".encode()
            for one in value:
                yield from self.of(one, names)
        elif dataclasses.is_dataclass(value):
            yield from self._of_named({one.name: getattr(value, one.name) for one in dataclasses.fields(value)})
        elif isinstance(value, property):
            yield from self.of((value.fget, value.fset))
        else:  # of class methods, static methods and cached properties
            inner = getattr(value, "__func__", getattr(value, "func", None))
            if isinstance(inner, FunctionType):
                yield from self.of_function(inner)

    def of_function(self, function: Any) -> Iterator[bytes]:
        """Its code, and what the names in it stand for."""
        if not self._is_new(function, function.__module__):
            return
        codes = [*_codes_of(function.__code__)]
        yield function.__qualname__.encode()
        for code in codes:
            yield code.co_code + " ".join(map(_text_of, code.co_consts)).encode()
        names = sorted({name for code in codes for name in code.co_names})
        yield " ".join(names).encode()
        for name in names:
            if name in function.__globals__:
                yield name.encode()
                yield from self.of(function.__globals__[name], names)
        for value in (*_contents_of(function.__closure__ or ()), *(function.__defaults__ or ())):
            yield from self.of(value, names)

    def _of_class(self, kind: type) -> Iterator[bytes]:
        """Its members, and those of the classes that it is made of."""
        for one in kind.__mro__:
            if self._is_new(one, one.__module__):
                yield from self._of_named({name: value for name, value in vars(one).items() if name[:2] != "__"})

    def _of_named(self, values: dict[str, Any]) -> Iterator[bytes]:
        for name in sorted(values):
            yield name.encode()
            yield from self.of(values[name])


def _codes_of(code: CodeType) -> Iterator[CodeType]:
    """A function's code, and that of the functions within it."""
    yield code
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from _codes_of(one)


def _text_of(constant: Any) -> str:
    """A constant of some code, the same in every process: sets of words have another order in each."""
    if isinstance(constant, CodeType):
        return "code"
    if isinstance(constant, (tuple, frozenset)):
        texts = map(_text_of, constant)
        return f"{type(constant).__name__}({' '.join(texts if isinstance(constant, tuple) else sorted(texts))})"
    return repr(constant)


def _contents_of(cells: Iterable[Any]) -> Iterator[Any]:
    """What stands in the cells of a function; of those that are not filled yet nothing."""
    for cell in cells:
        with suppress(ValueError):
            yield cell.cell_contents
