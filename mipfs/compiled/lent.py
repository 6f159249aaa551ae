# mypy: disable-error-code="no-untyped-call, attr-defined, import-untyped"
"""Arrays that a kernel lends to what it calls, so that nobody counts who has them.

numba counts the owners of an array by an atomic addition, wherever one is read from a tuple, cut or passed on: a
seventh of the time of a search by `branch`, whose steps hand tuples of arrays to one another. What `lent` gives has no
owner, and neither has what is cut from it. Whoever lends holds the arrays until the last use of what was lent: those
that a kernel is given are held by its caller in Python, those that it makes by itself, up to its call of `held`.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core import cgutils
from numba.extending import lower_builtin, type_callable


def lent(values: Any) -> Any:
    """An array, or the arrays of a tuple, without their owners."""
    return values


def held(values: Any) -> None:
    """Nothing, so late that what was lent is not used any more: numba frees arrays after their last use."""


@type_callable(lent)
def _type_lent(context):  # type: ignore[no-untyped-def]
    def typed(values):  # type: ignore[no-untyped-def]
        return values

    return typed


@type_callable(held)
def _type_held(context):  # type: ignore[no-untyped-def]
    def typed(values):  # type: ignore[no-untyped-def]
        return types.none

    return typed


@lower_builtin(lent, types.Any)
def _lower_lent(context, builder, signature, given):  # type: ignore[no-untyped-def]
    return _without_owner(context, builder, signature.args[0], given[0])


@lower_builtin(held, types.Any)
def _lower_held(context, builder, signature, given):  # type: ignore[no-untyped-def]
    return context.get_dummy_value()


def _without_owner(context: Any, builder: Any, of: Any, value: Any) -> Any:
    if isinstance(of, types.BaseTuple):
        kinds: Any = of
        parts = zip(kinds, cgutils.unpack_tuple(builder, value, len(of)), strict=True)
        return context.make_tuple(builder, of, [_without_owner(context, builder, *part) for part in parts])
    if isinstance(of, types.Array):
        array = context.make_array(of)(context, builder, value)
        array.meminfo = cgutils.get_null_value(array.meminfo.type)
        return array._getvalue()
    return value
