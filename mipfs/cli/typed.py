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
    """The command line without where its outputs went and what it went on from; None where nothing was typed.

    What no text can hold, bytes of a file name, is a question mark.
    """
    arguments = list(ARGUMENTS.get())
    outputs = OUTPUTS if arguments[:1] == ["bench"] else (*OUTPUTS, "--resume")  # there a flag without a value
    kept = []
    skip = False
    for argument in arguments:
        if skip or argument in outputs:
            skip = not skip
        elif argument not in FLAGS and not argument.startswith(tuple(f"{name}=" for name in outputs)):
            kept.append(argument)
    text = shlex.join(["mipfs", *kept])
    return text.encode("utf-8", "replace").decode() if arguments else None
