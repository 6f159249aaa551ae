"""Branching rules of `branch`: which atom a node is split on, one file each.

A rule is a compiled function ``choose(relaxed, places)`` of a `mipfs.kernels.structures.RelaxedNode` and of the places
in it that the node may be split on, which returns one of these. No proof depends on it.

A rule that keeps a state has two names more: ``MEMORY``, how many numbers it keeps of every atom, which `choose` reads
in ``relaxed.memory`` (k, MEMORY), zeros at first; and ``learn(memory, splits)``, in Python, which enters in it what the
splits of the last batch were worth (`mipfs.kernels.structures.SPLIT`), in the order of the tree. All nodes of a batch
are split by one memory, so that the tree depends neither on the threads nor on who is done first.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.errors import UsageError
from mipfs.plumbing.declared import show_value
from mipfs.plumbing.extension import file_of, told_by_name
from mipfs.plumbing.registry import Registry, enter_offers, part_of

RULES = Registry(
    "branching rule",
    {
        "largest-weight": "mipfs.branching.largest_weight",
        "most-fractional": "mipfs.branching.most_fractional",
        "pseudo-costs": "mipfs.branching.pseudo_costs",
        "reliability": "mipfs.branching.reliability",
    },
)
Memory = npt.NDArray[np.float64]


def check_rule(name: str) -> None:
    """Refuse what is no rule's name.

    Raises
    ------
    UsageError
    """
    enter_offers("mipfs.branching", name, RULES)
    if name not in RULES:
        raise UsageError(f"branching = {show_value(name)} is not known; it is one of {', '.join(RULES)}")


def get_rule(name: str) -> Any:
    """The compiled function of a rule.

    Raises
    ------
    UsageError
        No rule of that name, or one that is not compiled.
    """
    check_rule(name)
    said = f"branching = {show_value(name)}"
    rule = part_of(said, RULES[name], "choose", "a compiled function choose(relaxed, places)")
    if not hasattr(rule, "py_func"):
        raise UsageError(f"{said}: decorate choose of {RULES[name]} with mipfs.compiled.compiled")
    return rule


def begin_memory(name: str, count: int) -> Memory:
    """The memory (count, MEMORY) of a rule before the first split; (0, 0) of one that keeps nothing.

    Raises
    ------
    UsageError
        It says what it keeps, and not how it learns, or the other way round.
    """
    module = import_module(RULES[name])
    size = getattr(module, "MEMORY", 0)
    if not (isinstance(size, int) and size >= 0) or (size > 0) != hasattr(module, "learn"):
        wanted = "a rule has both MEMORY, a whole number, and learn, or none of them"
        raise UsageError(f"branching = {show_value(name)}: {wanted}; {RULES[name]} has not")
    return np.zeros((count, size)) if size else np.zeros((0, 0))


def learn_from_splits(name: str, memory: Memory, splits: npt.NDArray[Any]) -> Memory:
    """The memory of a rule with what some splits were worth, (s,) SPLIT, in their order; the one before is kept.

    Raises
    ------
    UsageError
        `learn` of a user's own rule fails, returns another array, or leaves a number that is not finite.
    """
    if not (memory.size and splits.size):
        return memory
    fresh = memory.copy()
    learn = import_module(RULES[name]).learn
    said = f"branching = {show_value(name)}: learn(memory, splits)"
    with told_by_name(said, learn):
        returned = learn(fresh, splits)
    if returned is not None and returned is not fresh:
        raise UsageError(
            f"{said} of {file_of(learn)} returns {type(returned).__name__}, which nobody reads: write into memory"
        )
    if not np.isfinite(fresh).all():
        raise UsageError(f"{said} of {file_of(learn)} leaves a number in memory that is not finite")
    return fresh
