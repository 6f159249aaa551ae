"""A branching rule of one's own, tried in Python before it is compiled: compiled code does not look where it reads."""

from __future__ import annotations

from typing import Any

import numpy as np

from mipfs.errors import UsageError
from mipfs.kernels.structures import RelaxedNode

SIZES = 1, 2, 7
"""Atoms in play of the nodes that are tried."""
BEFORE = 3
"""Atoms of the search before those in play: numbers of atoms are no places."""


def check(name: str, rule: Any, columns: int) -> None:
    """Refuse a rule that reads beyond an array of a small node; those of the package are tested instead.

    What Python cannot run is left to the compiler.

    Parameters
    ----------
    name : str, for the message
    rule : compiled function
    columns : int, numbers of its memory of every atom

    Raises
    ------
    UsageError
    """
    if rule.py_func.__module__.startswith("mipfs."):
        return
    for q in SIZES:
        atoms, memory = np.arange(BEFORE, BEFORE + q), np.zeros((BEFORE + q, columns))
        relaxed = RelaxedNode(atoms, np.linspace(-1.0, 1.0, q), np.linspace(0.2, 0.8, q), 1.0, 2.0, memory)
        for places in (np.arange(q), np.arange(q - 1, q)):
            try:
                rule.py_func(relaxed, places)
            except IndexError as error:
                raise UsageError(
                    f"branching = {name!r}: choose of {rule.py_func.__module__} reads beyond an array of a node with "
                    f"{q} atoms in play ({error}); compiled, it would read anything there"
                ) from None
            except Exception:
                return
