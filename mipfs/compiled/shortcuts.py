# mypy: disable-error-code="no-untyped-call, attr-defined, import-untyped, misc"
"""Ways through numba's front end that are shorter: a tenth of the time that it takes.

They end in the same code, but for counts of owners that go up and down again while the caller holds what is counted.
They hold while a kernel is compiled, and what other packages compile is left as it is (`mipfs.compiled.linked`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from typing import Any

from numba.core import event, ir
from numba.core.lowering import Lower
from numba.core.runtime.context import NRTContext
from numba.core.targetconfig import TargetConfig

from mipfs.compiled.replaced import replaced
from mipfs.compiled.spared import spared


@contextmanager
def shortcuts() -> Iterator[None]:
    """numba copies no scopes, compares what it is configured for and finds variables quickly, and takes no times.

    - A function that is inlined copies its scope for every block, and every place in the source, though all share them.
    - Two configurations are compared for every function that may be meant by a call (130,000 times for the kernels of
      `branch`), by reading twenty properties of both.
    - The variables of a statement are collected some ten times, by looking at what none can be in.
    - Every lock that is taken, and every call of LLVM, is told to the timers of all functions that are being compiled.
    - The owners in a value are looked for part by part, also in types that have none.
    - An argument's owners are counted up at its first line and down after its last, though its caller holds it all
      along; for tuples of many arrays that is a tenth of the code, which LLVM then finds to be superfluous.
    """
    with (
        replaced(ir.Scope, __deepcopy__=lambda scope, _: scope),
        replaced(ir.Loc, __deepcopy__=lambda place, _: place),
        replaced(TargetConfig, __eq__=_are_equal, __hash__=lambda config: _hash_of(config.__class__)),
        replaced(ir.Inst, _rec_list_vars=_variables),
        replaced(event, install_timer=lambda *_: nullcontext()),
        replaced(NRTContext, get_meminfos=_owners),
        replaced(Lower, lower_assign=_lower_assign, storevar=_storevar, delvar=_delvar, incref=_incref, decref=_decref),
        spared(),
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


_LOWER_ASSIGN, _STOREVAR, _DELVAR, _INCREF, _DECREF = (
    Lower.lower_assign, Lower.storevar, Lower.delvar, Lower.incref, Lower.decref
)  # fmt: skip


def _lower_assign(lower: Any, kind: Any, statement: Any) -> Any:
    return _uncounted(lower, statement.target.name, lambda: _LOWER_ASSIGN(lower, kind, statement))


def _storevar(lower: Any, value: Any, name: str, argidx: int | None = None) -> None:
    _uncounted(lower, name, lambda: _STOREVAR(lower, value, name, argidx))


def _delvar(lower: Any, name: str) -> None:
    _uncounted(lower, name, lambda: _DELVAR(lower, name))


def _incref(lower: Any, kind: Any, value: Any) -> None:
    if not getattr(lower, "is_uncounted", False):
        _INCREF(lower, kind, value)


def _decref(lower: Any, kind: Any, value: Any) -> None:
    if not getattr(lower, "is_uncounted", False):
        _DECREF(lower, kind, value)


def _uncounted(lower: Any, name: str, do: Callable[[], Any]) -> Any:
    """What numba does with a variable, without counting its owners where it is borrowed."""
    if not hasattr(lower, "borrowed"):
        lower.borrowed = _borrowed(lower.blocks)
    lower.is_uncounted = name in lower.borrowed
    try:
        return do()
    finally:
        lower.is_uncounted = False


def _borrowed(blocks: dict[int, Any]) -> set[str]:
    """Variables that are an argument, or a copy of one, wherever they are set; the caller holds what they name.

    Not one that is returned: the caller of the function becomes an owner of that.
    """
    assigned = [one for block in blocks.values() for one in block.find_insts(ir.Assign)]
    times = Counter(one.target.name for one in assigned)
    given_back = {one.value.name for block in blocks.values() for one in block.find_insts(ir.Return)}
    once = [one for one in assigned if times[one.target.name] == 1 and one.target.name not in given_back]
    found = {one.target.name for one in once if isinstance(one.value, ir.Arg)}
    copies = [one for one in once if isinstance(one.value, ir.Var)]
    while more := {one.target.name for one in copies if one.value.name in found} - found:
        found |= more
    return found


_OWNERS = NRTContext.get_meminfos


def _owners(context: Any, builder: Any, kind: Any, value: Any) -> list[Any]:
    """The owners of what a value consists of; nothing is looked at for a type that has none."""
    return list(_OWNERS(context, builder, kind, value)) if _is_owned(context._context.data_model_manager, kind) else []


@cache
def _is_owned(models: Any, kind: Any) -> bool:
    return bool(models[kind].contains_nrt_meminfo())
