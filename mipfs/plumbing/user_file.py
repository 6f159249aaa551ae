"""A user's own Python: a formulation, a file that defines ``build(data, **params)``, or a module to import."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any

from mipfs.errors import MipfsError, UsageError


def build_of(path: Path) -> Callable[..., Any]:
    """Run a user's file and return its ``build(data, **params)``.

    Raises
    ------
    UsageError
        One line: no such file, an error while it ran, or no such function.
    """
    if not os.path.isfile(path):
        raise UsageError(f"{path}: no such file; give the path of a .py file that defines build(data, **params)")
    build = getattr(_run(path), "build", None)
    if not callable(build):
        raise UsageError(f"{path}: defines no function build(data, **params)")
    if not inspect.signature(build).parameters:
        raise UsageError(f"{path}: build takes no argument; define build(data, **params)")
    return build  # type: ignore[no-any-return]


def one_line(error: BaseException, path: Path) -> UsageError:
    """An error raised while a user's file ran, in one line: where in that file, and what."""
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if Path(f.filename) == path.resolve()]
    where = f"{path}:{lines[-1]}" if lines else str(path)
    text = " ".join(str(error).split())
    return UsageError(f"{where}: {type(error).__name__}: {text}" if text else f"{where}: {type(error).__name__}")


def _run(path: Path) -> ModuleType:
    """Run a user's file as a module of its own."""
    spec = importlib.util.spec_from_file_location(f"_mipfs_user_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Registered before it runs, as an import would: dataclasses and pickling look their module up.
    sys.modules[spec.name] = module
    with running(path):
        spec.loader.exec_module(module)
    return module


def import_user_file(text: str) -> ModuleType:
    """Import a module by its name, or by the path of a .py file, beside which others are then found too.

    By its own name, unlike a formulation: other processes compile its functions, and the checker reads its text.

    Raises
    ------
    UsageError
        One line: no such module, an error while it ran, or another module of that name.
    """
    path = Path(text)
    if path.suffix != ".py":
        with running(path):
            return importlib.import_module(text)
    if not os.path.isfile(path):
        raise UsageError(f"{path}: no such file; give the path of a .py file, or the name of a module")
    folder = str(path.resolve().parent)
    sys.path += [] if folder in sys.path else [folder]
    with running(path):
        module = importlib.import_module(path.stem)
    if Path(str(module.__file__)).resolve() != path.resolve():
        raise UsageError(f"{path}: Python knows another module {path.stem!r}; rename the file")
    return module


@contextmanager
def running(path: Path) -> Iterator[None]:
    """Run what stands in a user's file: what it prints goes to standard error, as standard output may be a document.

    Raises
    ------
    UsageError
        Whatever goes wrong in it, in one line.
    """
    try:
        with redirect_stdout(sys.stderr):
            yield
    except SyntaxError as error:
        where = path if error.lineno is None else f"{error.filename}:{error.lineno}"
        raise UsageError(f"{where}: {error.msg}") from error
    except MipfsError:
        raise
    except (Exception, SystemExit) as error:
        raise one_line(error, path) from error
