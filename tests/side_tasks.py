"""Tasks of `tests/test_side_by_side.py`, apart from it: a process that does them loads no package of the tests."""

from __future__ import annotations

import gc
import os
import signal
import time
import warnings
from typing import Any

from mipfs.errors import UsageError
from mipfs.losses import get_loss
from mipfs.plumbing.machine import cores


def squared(given: float, task: float) -> tuple[float, int]:
    time.sleep(0.2)
    return given * task**2, os.getpid()


def where(_given: Any, _task: Any) -> int:
    time.sleep(0.3)
    return os.getpid()


def begun(_given: Any, _task: Any) -> tuple[int, int, str | None]:
    return os.getpid(), gc.get_threshold()[0], os.environ.get("OPENBLAS_THREAD_TIMEOUT")


def falling(_given: Any, task: int) -> int:
    if task == 2:
        raise UsageError("two is too many")
    return task


def dying(parent: int, task: int) -> int:
    time.sleep(0.1)
    if task == 3 and os.getpid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)
    return task


def warning_of(_given: Any, task: int) -> int:
    time.sleep(0.2)
    warnings.warn(f"warned of {task}", UserWarning, stacklevel=1)
    return os.getpid()


def known_losses(_given: Any, _task: Any) -> tuple[int, bool]:
    time.sleep(0.3)
    return os.getpid(), get_loss("of-a-user") is get_loss("hinge")


def cores_there(_given: Any, _task: Any) -> int:
    return cores()
