"""One fresh process: ``python -m tests.other_users.process MODE``; it prints what we found, as JSON."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable

from tests.other_users import others, ours

FEW = ("branch", "gbd", "kelley", "conic", "monolithic", "kelley without rows", "kelley, wide", "two_layer", "onsvm")
"""Solves for a second time, of every kind."""
SECONDS = 60.0
"""A child that is not done by then hangs."""


def first() -> None:
    """We solve first; then the others do, beside us, and after us; then a forked child does what we did."""
    found = ours.solve()
    _no_threads_of_numba()
    for other in others.all_of(2):
        other()
    others.highs()
    print(json.dumps(found))
    over, told = threading.Event(), list[BaseException]()
    thread = threading.Thread(target=_beside, args=(over, told))
    thread.start()
    try:
        _same(found, ours.solve(names=FEW))
    finally:
        over.set()
        thread.join()
    if told:
        raise told[0]
    if hasattr(os, "fork"):
        _in_a_child(lambda: _same(found, ours.solve(names=FEW)))


def amid() -> None:
    """The others solve first, between any two of our solves, and last, with threads of their own."""
    for other in others.all_of(3):
        other()
    blas = _blas_threads()
    neighbour = others.again_and_again(3)
    found = ours.solve(between=lambda: next(neighbour)())
    for other in others.all_of(3):
        other()
    others.highs()
    assert _blas_threads() == blas
    print(json.dumps(found))


def _beside(over: threading.Event, told: list[BaseException]) -> None:
    try:
        while not over.is_set():
            others.highs(2)
            others.cvxpy()
            time.sleep(0.01)
    except BaseException as error:
        told.append(error)


def _same(found: ours.Found, again: ours.Found) -> None:
    for name, value in again.items():
        assert value == found[name], (name, value, found[name])


def _in_a_child(work: Callable[[], None]) -> None:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            assert status == 0, f"the child ended with {status}"
            return
        time.sleep(0.02)
    os.kill(child, 9)
    raise AssertionError("a forked child waits for ever")


def _blas_threads() -> list[int]:
    from threadpoolctl import threadpool_info

    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def _no_threads_of_numba() -> None:
    """Those of OpenMP would be missing in a forked child, and those of workqueue abort where a user begins some too."""
    import numba

    try:
        layer = numba.threading_layer()
    except ValueError:
        return
    raise AssertionError(f"numba's threads were begun: {layer}")


if __name__ == "__main__":
    {"first": first, "amid": amid}[sys.argv[1]]()
