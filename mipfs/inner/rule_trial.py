"""A branching rule of one's own, tried in Python before it is compiled: compiled code does not look where it reads.

What it learns is tried too, on made splits: what `learn` does wrong there it would do in the search, hours later.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import numpy as np

from mipfs.branching import RULES, begin_memory, learn_from_splits
from mipfs.errors import UsageError
from mipfs.kernels.structures import SPLIT, RelaxedNode
from mipfs.plumbing.arrays import Integers
from mipfs.plumbing.extension import is_own

SIZES = 1, 2, 7, 30, 200, 1000
"""Atoms in play of the nodes that are tried, beside as many as the problem has: nodes below the root have fewer."""
BEFORE = 3
"""Atoms of the search before those in play: numbers of atoms are no places."""
MOST_PLACES = 1000
"""Places of a node that a rule is shown in Python, where it takes a microsecond for each."""
MOST = 20_000
"""Atoms in play of the largest node that is tried: a rule may go through them all."""
SPLITS = 1, 5, 6
"""Splits of which a rule learns at a time: not as many as it keeps numbers, in one of them at least."""


def check(name: str, rule: Any, columns: int, in_play: int = 1) -> None:
    """Refuse a rule that takes other arguments, writes into its memory or reads beyond an array of a node.

    Nodes of a few sizes are tried, up to that of the problem; the rules of the package are tested instead. What Python
    cannot run is left to the compiler.

    Parameters
    ----------
    name : str, for the message
    rule : compiled function
    columns : int, numbers of its memory of every atom
    in_play : int, atoms that the root may choose from

    Raises
    ------
    UsageError
    """
    if is_own(rule.py_func.__module__):
        return
    said = f"branching = {name!r}: choose of {rule.py_func.__module__}"
    choose = _in_python(rule.py_func, {})
    for q in sorted({size for size in SIZES if size <= max(in_play, 7)} | {max(1, min(in_play, MOST))}):
        for places in _places_of(q):
            relaxed = _made_node(q, columns)
            try:
                inspect.signature(choose).bind(relaxed, places)
            except TypeError as error:
                raise UsageError(f"{said} takes other arguments than (relaxed, places): {error}") from None
            try:
                choose(relaxed, places)
            except IndexError as error:
                raise UsageError(
                    f"{said} reads beyond an array of a node with {q} atoms in play, {places.size} of them places "
                    f"({error}); compiled, it would read anything there"
                ) from None
            except ValueError as error:
                if "read-only" not in str(error):
                    return
                raise UsageError(f"{said} writes into relaxed.memory, which learn alone may do") from None
            except Exception:
                return


def check_learning(name: str, in_play: int = 1) -> None:
    """Refuse a rule that does not learn from made splits; those of the package are tested instead.

    Parameters
    ----------
    name : str
    in_play : int, atoms that the root may choose from

    Raises
    ------
    UsageError
        `learn` fails, returns another array, or leaves a number that is not finite.
    """
    if is_own(RULES[name]):
        return
    for q in sorted({1, 7, max(1, min(in_play, MOST))}):
        for count in SPLITS:
            splits = np.zeros(count, dtype=SPLIT)
            splits["atom"] = np.arange(count) % q
            splits["inside"] = np.arange(count) % 2
            splits["share"] = np.linspace(0.2, 0.8, count)
            splits["gain"] = np.linspace(0.0, 2.0, count)
            learn_from_splits(name, begin_memory(name, q), splits)


def _places_of(q: int) -> Iterator[Integers]:
    """The places of a node: all, or as many as are shown, and the last one alone."""
    yield np.unique(np.linspace(0, q - 1, min(q, MOST_PLACES)).astype(np.int64))
    yield np.arange(q - 1, q)


def _made_node(q: int, columns: int) -> RelaxedNode:
    """A node with q atoms in play; its memory is only read, as that of every node."""
    memory = np.zeros((BEFORE + q, columns))
    memory.flags.writeable = False
    return RelaxedNode(
        np.arange(BEFORE, BEFORE + q), np.linspace(-1.0, 1.0, q), np.linspace(0.2, 0.8, q), 1.0, 2.0, memory
    )


def _in_python(function: Any, known: dict[Any, Callable[..., Any]]) -> Callable[..., Any]:
    """A user's function with the compiled functions of theirs that it calls in Python too, whose reads are looked at.

    known : what was made of functions so far, for those that call one another
    """
    if not isinstance(function, FunctionType):
        return function  # type: ignore[no-any-return]
    if function not in known:
        names = dict(function.__globals__)
        made = FunctionType(function.__code__, names, function.__name__, function.__defaults__, function.__closure__)
        known[function] = made
        for name in function.__code__.co_names:
            own = getattr(names.get(name), "py_func", None)
            if own is not None and not is_own(own.__module__):
                names[name] = _in_python(own, known)
    return known[function]
