# mypy: disable-error-code="no-untyped-call, attr-defined, import-untyped, misc"
"""What numba's front end works out and nobody reads, or works out again: it is left out while a kernel is compiled.

None of it is part of the code (`mipfs.compiled.shortcuts` says when this holds).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from functools import cache
from typing import Any

from llvmlite import ir as llvm_ir
from numba.core import base, errors, event, types
from numba.core.base import BaseContext
from numba.core.postproc import PostProcessor, VariableLifetime
from numba.core.target_extension import get_local_target
from numba.core.targetconfig import ConfigStack
from numba.core.transforms import canonicalize_cfg
from numba.core.types import functions
from numba.core.types.abstract import _TypeMetaclass
from numba.core.typing.npydecl import NumpyRulesArrayOperator
from numba.core.utils import order_by_target_specificity

from mipfs.compiled.replaced import replaced

PLAIN = frozenset({types.Integer, types.Float, types.Boolean, types.IntegerLiteral, types.BooleanLiteral, types.Array})
"""Types that are small, as are their hashes: a call with these alone is remembered."""


@contextmanager
def spared() -> Iterator[None]:
    """Leave out what nobody reads.

    - Ten times a function numba computes where its variables live; all but the last are read by generators alone.
    - Of every candidate that does not fit a call an error is written, which is shown if none fits.
    - A call of a built-in function with numbers or arrays is resolved anew wherever it stands.
    - NumPy's loops are looked for before it is seen that an operation has no array.
    - LLVM parses a module for every size of a type that is asked for.
    - Whether an implementation wants to know its line is asked of its signature wherever it is called.
    - What was declared since is looked for, in some twenty registries, wherever numba first fails to find something.
    - Every lock and every step is told to listeners, of whom there are none.
    - Numba's types are classes that others might be registered with as kinds of them, which nobody does.
    """
    with ExitStack() as held:
        for one in (
            replaced(PostProcessor, run=_run),
            replaced(functions.BaseFunction, get_call_type=_Calls().resolved),
            replaced(NumpyRulesArrayOperator, generic=_generic),
            replaced(BaseContext, get_abi_sizeof=_Sizes().of, refresh=_News().refresh),
            replaced(base, _has_loc=cache(base._has_loc)),
            replaced(event, start_event=_start_event, end_event=_end_event, trigger_event=_trigger_event),
            replaced(_TypeMetaclass, __instancecheck__=type.__instancecheck__),
        ):
            held.enter_context(one)
        yield


_RUN = PostProcessor.run


def _run(processor: Any, emit_dels: bool = False, extend_lifetimes: bool = False) -> None:
    """The blocks in order, and where variables live, which is computed when it is asked for."""
    function = processor.func_ir
    if emit_dels or function.is_generator:
        _RUN(processor, emit_dels, extend_lifetimes)
        return
    function.blocks = canonicalize_cfg(function.blocks)
    function.variable_lifetime = VariableLifetime(function.blocks)
    function.generator_info = None


_GET_CALL_TYPE = functions.BaseFunction.get_call_type


class _Calls:
    """Calls of built-in functions, each resolved once for a kernel."""

    def __init__(self) -> None:
        self._found: dict[Any, tuple[Any, Any]] = {}
        self._orders: dict[Any, list[Any]] = {}

        def resolved(function: Any, context: Any, args: Any, kws: Any) -> Any:
            return self._resolved(function, context, args, kws)

        self.resolved = resolved

    def _resolved(self, function: Any, context: Any, args: Any, kws: Any) -> Any:
        """The signature of the first candidate that fits; where none does, numba's own way ends in its error."""
        key = None
        if not kws and all(type(one) in PLAIN for one in args):
            key = function, context, tuple(args), ConfigStack.top_or_none()
            known = self._found.get(key)
            if known is not None:
                signature, function._impl_keys[known[0].args] = known
                return signature
        try:
            plain = tuple([functions._unlit_non_poison(one) for one in args])
            plain_kws = {name: functions._unlit_non_poison(one) for name, one in kws.items()}
        except errors.NumbaError:
            return _GET_CALL_TYPE(function, context, args, kws)
        is_plain = all(one is other for one, other in zip(plain, args, strict=True)) and plain_kws == kws
        for candidate in self._order(function, context):
            template = candidate(context)
            literal, other = (args, kws), (plain, plain_kws)
            choice = (literal, other) if template.prefer_literal else (other, literal)
            for given, named in choice[:1] if is_plain else choice:
                try:
                    signature = template.apply(given, named)
                except errors.NumbaError:
                    continue
                if signature is not None:
                    made = function._impl_keys[signature.args] = template.get_impl_key(signature)
                    if key is not None:
                        self._found[key] = signature, made
                    return signature
        return _GET_CALL_TYPE(function, context, args, kws)

    def _order(self, function: Any, context: Any) -> list[Any]:
        key = get_local_target(context), function.templates
        if key not in self._orders:
            self._orders[key] = order_by_target_specificity(*key, fnkey=function.key[0])
        return self._orders[key]


_GENERIC = NumpyRulesArrayOperator.generic


def _generic(rules: Any, args: Any, kws: Any) -> Any:
    """NumPy's rules, of which numba takes what they say of arrays."""
    if any(isinstance(one, types.ArrayCompatible | types.Optional) for one in args):
        return _GENERIC(rules, args, kws)
    return None


_GET_ABI_SIZEOF = BaseContext.get_abi_sizeof


class _Sizes:
    """Sizes of LLVM's types, by what they are written as."""

    def __init__(self) -> None:
        sizes: dict[tuple[Any, str], int] = {}

        def of(context: Any, kind: llvm_ir.Type) -> int:
            text = str(kind)
            if "%" in text:  # a name, which says nothing of the type
                return int(_GET_ABI_SIZEOF(context, kind))
            if (context, text) not in sizes:
                sizes[context, text] = int(_GET_ABI_SIZEOF(context, kind))
            return sizes[context, text]

        self.of = of


_REFRESH = BaseContext.refresh


class _News:
    """Numba's registries, which are looked through where they have grown."""

    def __init__(self) -> None:
        seen: dict[Any, int] = {}

        def refresh(context: Any) -> None:
            if seen.get(context) != _declared(context):
                _REFRESH(context)
                seen[context] = _declared(context)

        self.refresh = refresh


def _declared(context: Any) -> int:
    """How much is declared in the registries that a context and its typing know."""
    known = (*context._registries.items(), *context.typing_context._registries.items())
    return sum(len(getattr(registry, name)) for registry, loader in known for name in loader.registry_items)


_START_EVENT, _END_EVENT, _TRIGGER_EVENT = event.start_event, event.end_event, event.trigger_event
_NOTHING = nullcontext()


def _start_event(kind: str, data: Any = None) -> None:
    if event._registered.get(kind):
        _START_EVENT(kind, data)


def _end_event(kind: str, data: Any = None, exc_details: Any = None) -> None:
    if event._registered.get(kind):
        _END_EVENT(kind, data, exc_details)


def _trigger_event(kind: str, data: Any = None) -> Any:
    return _TRIGGER_EVENT(kind, data) if event._registered.get(kind) else _NOTHING
