"""Whose fault an error is: what a user's own loss, regulariser, rule or separator raises is told by its name."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mipfs.errors import MipfsError, UsageError


def is_own(module: str) -> bool:
    """Whether a module is one of the package."""
    return module == "mipfs" or module.startswith("mipfs.")


def file_of(function: Any) -> str:
    """The file of a function, or its module where it has none, for a message."""
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return getattr(function, "__module__", "?") if code is None else Path(code.co_filename).name


@contextmanager
def told_by_name(what: str, function: Any) -> Iterator[None]:
    """Make an error of a user's function one that names it; errors of the package's files are left as they are.

    Parameters
    ----------
    what : str, the extension and what was called, as users know them: "the loss 'mine': dual_value"
    function : callable, what is called, for its file and line

    Raises
    ------
    UsageError
        One line: what was called, where in its file it failed, and how.
    """
    try:
        yield
    except (MipfsError, MemoryError):
        raise
    except Exception as error:
        if is_own(str(getattr(function, "__module__", ""))):
            raise
        file = file_of(function)
        lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if Path(f.filename).name == file]
        where = f"{file}:{lines[-1]}" if lines else file
        text = " ".join(str(error).split())
        raise UsageError(f"{what} of {where}: {type(error).__name__}{': ' if text else ''}{text}") from error
