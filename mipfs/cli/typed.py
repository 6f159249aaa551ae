"""The command line as it was typed, for whoever wants a result again."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextvars import ContextVar

ARGUMENTS: ContextVar[Sequence[str]] = ContextVar("ARGUMENTS", default=())
"""What stands behind ``mipfs`` in this call."""
OUTPUTS = ("--json", "--report", "--write", "--checkpoint")
FLAGS = ("--quiet", "-q", "--open")


def command_line() -> str | None:
    """The command line without where its outputs went; None where nothing was typed.

    What no text can hold, bytes of a file name, is a question mark.
    """
    arguments = list(ARGUMENTS.get())
    kept = []
    skip = False
    for argument in arguments:
        if skip or argument in OUTPUTS:
            skip = not skip
        elif argument not in FLAGS and not argument.startswith(tuple(f"{name}=" for name in OUTPUTS)):
            kept.append(argument)
    text = shlex.join(["mipfs", *kept])
    return text.encode("utf-8", "replace").decode() if arguments else None
