# mypy: disable-error-code="no-untyped-call, attr-defined, import-untyped"
"""Arrays that a kernel lends to what it calls: nobody counts who has them, and tuples of them are not copied.

numba counts the owners of an array by an atomic addition, wherever one is read from a tuple, cut or passed on: a
seventh of the time of a search by `branch`, whose steps hand tuples of arrays to one another. What `lend_arrays` gives
has no owner, and neither has what is cut from it. Whoever lends holds the arrays until the last use of what was lent:
those that a kernel is given are held by its caller in Python, those that it makes by itself, up to its call of
`hold_until_here`.

And numba passes a tuple number by number, seven to nine of them an array, through every call: most of the time of the
compiler where tuples have dozens. A named tuple that is lent is the address of one that lies in the frame of the
kernel that lends it, so it must not be returned from there. Its fields are read where they are named: a loop that
writes to arrays reads them again in every pass, unless they are named before it.
"""

from __future__ import annotations

import hashlib
from typing import Any

from numba import types
from numba.core import cgutils
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, lower_builtin, lower_getattr_generic, models, register_model, type_callable


def lend_arrays(values: Any) -> Any:
    """An array, or the arrays of a tuple, without their owners."""
    return values


def hold_until_here(values: Any) -> None:
    """Nothing, so late that what was lent is not used any more: numba frees arrays after their last use."""


class BorrowedTuple(types.Type):
    """A named tuple that another kernel's frame holds."""

    def __init__(self, of: Any) -> None:
        self.fields = of.fields
        self.types = tuple(lent_type(kind) for kind in of.types)
        named = ", ".join(f"{field}: {kind}" for field, kind in zip(self.fields, self.types, strict=True))
        super().__init__(f"Lent({of.instance_class.__name__}: {named})")

    @property
    def mangling_args(self) -> tuple[str, tuple[()]]:
        """How the type is called in the names of compiled functions, which are thousands of letters long else."""
        return f"Lent{hashlib.sha256(self.name.encode()).hexdigest()[:16]}", ()


@register_model(BorrowedTuple)
class BorrowedModel(models.OpaqueModel):
    """An address."""


def lent_type(kind: Any) -> Any:
    """What `lend_arrays` makes of a type."""
    if isinstance(kind, types.BaseNamedTuple):
        return BorrowedTuple(kind)
    if isinstance(kind, types.BaseTuple):
        return types.Tuple([lent_type(one) for one in kind])
    return kind


@type_callable(lend_arrays)
def _type_lent(context):  # type: ignore[no-untyped-def]
    return lent_type


@type_callable(hold_until_here)
def _type_held(context):  # type: ignore[no-untyped-def]
    def typed(values):  # type: ignore[no-untyped-def]
        return types.none

    return typed


@infer_getattr
class BorrowedFields(AttributeTemplate):
    """A lent tuple has the fields of the one that it was."""

    key = BorrowedTuple

    def generic_resolve(self, kind, name):  # type: ignore[no-untyped-def, override]
        """The type of a field."""
        return kind.types[kind.fields.index(name)] if name in kind.fields else None


@lower_getattr_generic(BorrowedTuple)
def _lower_field(context, builder, kind, value, name):  # type: ignore[no-untyped-def]
    place = kind.fields.index(name)
    frame = builder.bitcast(value, _frame_of(context, kind).as_pointer())
    field = builder.load(cgutils.gep_inbounds(builder, frame, 0, place))
    return _without_owner(context, builder, kind.types[place], field)


@lower_builtin(lend_arrays, types.Any)
def _lower_lent(context, builder, signature, given):  # type: ignore[no-untyped-def]
    return _lend_value(context, builder, signature.args[0], given[0])


@lower_builtin(hold_until_here, types.Any)
def _lower_held(context, builder, signature, given):  # type: ignore[no-untyped-def]
    return context.get_dummy_value()


def _frame_of(context: Any, kind: BorrowedTuple) -> Any:
    """What a lent tuple lies in."""
    return cgutils.ir.LiteralStructType([context.get_value_type(one) for one in kind.types])


def _lend_value(context: Any, builder: Any, of: Any, value: Any) -> Any:
    """A value as it is lent: arrays without owners, named tuples by their address."""
    if isinstance(of, types.BaseTuple):
        kinds: Any = of
        found = zip(kinds, cgutils.unpack_tuple(builder, value, len(of)), strict=True)
        parts = [_lend_value(context, builder, *part) for part in found]
        kind = lent_type(of)
        if not isinstance(kind, BorrowedTuple):
            return context.make_tuple(builder, kind, parts)
        frame = cgutils.alloca_once(builder, _frame_of(context, kind))
        for place, part in enumerate(parts):
            builder.store(part, cgutils.gep_inbounds(builder, frame, 0, place))
        return builder.bitcast(frame, cgutils.voidptr_t)
    return _without_owner(context, builder, of, value)


def _without_owner(context: Any, builder: Any, of: Any, value: Any) -> Any:
    """An array without its owner, which the compiler then knows; anything else as it is."""
    if isinstance(of, types.Array):
        array = context.make_array(of)(context, builder, value)
        array.meminfo = cgutils.get_null_value(array.meminfo.type)
        return array._getvalue()
    return value
