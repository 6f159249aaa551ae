"""Whose fault an error is: what a user's own loss, regulariser, rule or separator raises is told by its name."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mipfs.errors import MipfsError, UsageError


def is_own(module: str) -> bool:
    """Whether a module is one of the package."""
    return module == "mipfs" or module.startswith("mipfs.")


def file_of(owner: Any) -> str:
    """The name of the file of a function or a class, or its module where it has none, for a message."""
    code = getattr(getattr(owner, "__func__", owner), "__code__", None)
    module = str(getattr(owner, "__module__", "?"))
    path = getattr(sys.modules.get(module), "__file__", None) if code is None else code.co_filename
    return module if path is None else Path(path).name


@contextmanager
def told_by_name(what: str, owner: Any) -> Iterator[None]:
    """Make an error of a user's function one that names it; errors of the package's files are left as they are.

    Parameters
    ----------
    what : str, the extension and what was called, as users know them: "the loss 'mine': dual_value"
    owner : function or class, what is called, for its file

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
        if is_own(str(getattr(owner, "__module__", ""))):
            raise
        file = file_of(owner)
        lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if Path(f.filename).name == file]
        where = f"{file}:{lines[-1]}" if lines else file
        text = " ".join(str(error).split())
        raise UsageError(f"{what} of {where}: {type(error).__name__}{': ' if text else ''}{text}") from error
