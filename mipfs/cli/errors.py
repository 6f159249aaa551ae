"""What a user sees when something goes wrong: one line on standard error, and the exit code."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Any, ParamSpec

from mipfs.errors import CertificateWarning, CheckpointWarning, DataWarning, MipfsError
from mipfs.plumbing.signals import InterruptHandler, hearing_signals
from mipfs.report.visible import in_one_line

P = ParamSpec("P")

BAD_USAGE = 2
STOPPED_EARLY = 4


def command(function: Callable[P, int]) -> Callable[P, int]:
    """Make a command return its exit code whatever happens inside it."""

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> int:
        InterruptHandler.any_came = False
        try:
            with warnings.catch_warnings(), hearing_signals():
                warnings.showwarning = _show_warning
                for category in (CertificateWarning, DataWarning):
                    warnings.simplefilter("ignore" if kwargs.get("quiet") else "always", category)
                warnings.simplefilter("always", CheckpointWarning)
                return function(*args, **kwargs)
        except KeyboardInterrupt as error:
            return report(error)
        except Exception as error:  # an import that was struck half-way, say, does not work later either
            return report(KeyboardInterrupt() if InterruptHandler.any_came else error)

    return run


def complain(message: str, kind: str = "error") -> None:
    """Print the one line of an error."""
    with suppress(OSError):  # nobody reads it; the exit code says the rest
        print(f"mipfs: {kind}: {in_one_line(message)}", file=sys.stderr)


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: Any = None,
    line: str | None = None,
) -> None:
    ours = issubclass(category, (CertificateWarning, CheckpointWarning, DataWarning))
    complain(str(message) if ours else f"{category.__name__}: {message}", "warning")


def report(error: BaseException) -> int:
    """Print one line about `error` and return the exit code that belongs to it."""
    if isinstance(error, BrokenPipeError):
        # The reader of our output has gone (`mipfs models | head -1`): nobody is left to tell.
        return 0
    if isinstance(error, KeyboardInterrupt):
        from mipfs.plumbing import total_limit

        ended = "--total-limit ended the command" if total_limit.is_up() else "interrupted"
        complain(f"{ended} before there was anything to show")
        return STOPPED_EARLY
    if os.environ.get("MIPFS_DEBUG"):
        import traceback

        traceback.print_exception(error)
    if isinstance(error, MipfsError):
        complain(str(error))
        return error.exit_code
    if isinstance(error, FileNotFoundError) and not _has_folder():
        complain("the current folder was removed; change to another one")
        return BAD_USAGE
    if isinstance(error, MemoryError):
        complain(f"not enough memory ({error}); give fewer samples or features, or a machine with more of it")
        return BAD_USAGE
    if hasattr(error, "format_message"):  # an error of the option parser
        complain(f"{error.format_message().rstrip('.')}; {_help_hint(error)}")
        return BAD_USAGE
    complain(f"internal error: {type(error).__name__}: {error}; set MIPFS_DEBUG=1 to see the traceback")
    return 1


def _has_folder() -> bool:
    """Whether the current folder is there."""
    try:
        return bool(os.getcwd())
    except FileNotFoundError:
        return False


def _help_hint(error: BaseException) -> str:
    from mipfs.cli.options import PARAMETERS

    name = str(getattr(error, "option_name", "")).removeprefix("--")
    name = {"lambda": "lam"}.get(name, name).replace("-", "_")
    if name in PARAMETERS:
        return f"write -p {'lambda' if name == 'lam' else name}=VALUE"
    context = getattr(error, "ctx", None)
    return f"see `{context.command_path if context else 'mipfs'} --help`"
