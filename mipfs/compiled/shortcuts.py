# mypy: disable-error-code="no-untyped-call, attr-defined, import-untyped, misc"
"""Ways through numba's front end that are shorter, and end in the same code: a tenth of the time that it takes.

They hold while a kernel is compiled, and what other packages compile is left as it is (`mipfs.compiled.linked`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from typing import Any

from numba.core import event, ir
from numba.core.targetconfig import TargetConfig


@contextmanager
def replaced(owner: Any, **others: Any) -> Iterator[None]:
    """Other attributes of an object, a class or a module for a while."""
    own = {name: vars(owner)[name] for name in others if name in vars(owner)}
    for name, other in others.items():
        setattr(owner, name, other)
    try:
        yield
    finally:
        for name in others:
            if name in own:
                setattr(owner, name, own[name])
            else:
                delattr(owner, name)


@contextmanager
def shortcuts() -> Iterator[None]:
    """numba copies no scopes, compares what it is configured for and finds variables quickly, and takes no times.

    - A function that is inlined copies its scope for every block, though all blocks share it.
    - Two configurations are compared for every function that may be meant by a call (130,000 times for the kernels of
      `branch`), by reading twenty properties of both.
    - The variables of a statement are collected some ten times, by looking at what none can be in.
    - Every lock that is taken, and every call of LLVM, is told to the timers of all functions that are being compiled.
    """
    with (
        replaced(ir.Scope, __deepcopy__=lambda scope, _: scope),
        replaced(TargetConfig, __eq__=_are_equal, __hash__=lambda config: _hash_of(config.__class__)),
        replaced(ir.Inst, _rec_list_vars=_variables),
        replaced(event, install_timer=lambda *_: nullcontext()),
    ):
        yield


_EQUAL, _VARIABLES = TargetConfig.__eq__, ir.Inst._rec_list_vars
_WITHOUT = frozenset({ir.Loc, str, int, float, bool, type(None)})


def _are_equal(a: Any, b: Any) -> Any:
    """What numba says, from the values that are set."""
    if type(a) is not type(b):
        return _EQUAL(a, b)
    return a._values == b._values or {**_defaults(a.__class__), **a._values} == {**_defaults(b.__class__), **b._values}


@cache
def _defaults(kind: Any) -> dict[str, Any]:
    return {name: option.default for name, option in kind.options.items()}


@cache
def _hash_of(kind: Any) -> int:
    """numba's hash of any configuration of a kind, which is one over the names of its options."""
    return hash(tuple(sorted(kind.options)))


def _variables(node: Any, value: Any) -> list[Any]:
    """What numba finds in a part of a statement, in the same order."""
    kind = type(value)
    if kind not in (dict, list, tuple):
        return [value] if kind is ir.Var else list(_VARIABLES(node, value))
    found = []
    for one in value.values() if kind is dict else value:
        kind = type(one)
        if kind is ir.Var:
            found.append(one)
        elif kind not in _WITHOUT:
            found.extend(_variables(node, one))
    return found
