"""Locks of the whole process, which a forked child has anew; also those that Python 3.11 has in cached properties."""

from __future__ import annotations

import os
import sys
import threading
from functools import cached_property


class ProcessLock:
    """A lock that lives as long as its module.

    The thread that held it when the process was forked is not in the child: a lock of `threading` would never be let
    go of there.
    """

    def __init__(self) -> None:
        self._renew_lock()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._renew_lock)

    def _renew_lock(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        if self._lock.locked():  # else this is a child that was forked inside the block
            self._lock.release()


def _properties_anew() -> None:
    """In a child: Python 3.11 has a lock in every cached property, one for all objects of its class."""
    ours = [module for name, module in list(sys.modules.items()) if name.partition(".")[0] == "mipfs"]
    kinds = {kind for module in ours for kind in vars(module).values() if isinstance(kind, type)}
    for made in (value for kind in kinds for value in vars(kind).values()):
        if isinstance(made, cached_property) and hasattr(made, "lock"):
            made.lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_properties_anew)
