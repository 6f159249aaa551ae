"""What one call of the command line gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Outcome:
    """Exit code, standard output and standard error of one call."""

    code: int
    out: str
    err: str


Cli = Callable[..., Outcome]
