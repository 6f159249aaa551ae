"""Branching rules of `branch`: which atom a node is split on, one file each.

A rule is a compiled function ``choose(relaxed, places)`` of a `mipfs.kernels.structures.RelaxedNode` and of the places
in it that the node may be split on, which returns one of these. No proof depends on it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from mipfs.errors import UsageError
from mipfs.plumbing.declared import shown
from mipfs.plumbing.registry import entered

RULES = {
    "largest-weight": "mipfs.branching.largest_weight",
    "most-fractional": "mipfs.branching.most_fractional",
}


def check_rule(name: str) -> None:
    """Refuse what is no rule's name.

    Raises
    ------
    UsageError
    """
    entered("mipfs.branching", name, RULES)
    if name not in RULES:
        raise UsageError(f"branching = {shown(name)} is not known; it is one of {', '.join(RULES)}")


def get_rule(name: str) -> Any:
    """The compiled function of a rule.

    Raises
    ------
    UsageError
        No rule of that name, or one that is not compiled.
    """
    check_rule(name)
    rule = import_module(RULES[name]).choose
    if not hasattr(rule, "py_func"):
        raise UsageError(f"branching = {shown(name)}: decorate choose of {RULES[name]} with mipfs.compiled.compiled")
    return rule
