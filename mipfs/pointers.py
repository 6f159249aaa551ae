# mypy: disable-error-code="no-untyped-call, attr-defined, import-untyped"
"""Compiled functions called through their address: a step that numba does not compile again inside each of its callers.

numba optimises and emits a function together with everything that it calls. A large step that runs once a node, or
once a Newton iteration, is handed to its caller as a `Step` instead, and called by `call_step`; the type of a `Step` is
the signature of its function, so that arguments of other types are refused when the caller is compiled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from llvmlite import ir
from numba import typeof, types
from numba.core import cgutils, errors, typing
from numba.core.compiler_lock import global_compiler_lock
from numba.extending import NativeValue, intrinsic, models, register_model, typeof_impl, unbox

from mipfs.compiled import compiled
from mipfs.compiled.lent import lend_arrays, lent_type
from mipfs.errors import UsageError


class StepType(types.Type):
    """The type of the address of a compiled function of some argument types, and of what it returns."""

    def __init__(self, arguments: tuple[types.Type, ...], returns: types.Type = types.none) -> None:
        self.arguments = arguments
        self.returns = returns
        super().__init__(name=f"Step{arguments} -> {returns}")


@register_model(StepType)
class _Address(models.PrimitiveModel):
    """An address is an integer of 64 bits."""

    def __init__(self, manager: Any, of: StepType) -> None:
        super().__init__(manager, of, ir.IntType(64))


@dataclass(frozen=True, eq=False)
class Step:
    """The machine code of a compiled function for some arguments.

    Parameters
    ----------
    function : a function decorated with `mipfs.compiled.compiled`
    type : StepType
    address : int; 0 for a step that is not compiled, which its caller must not take
    """

    function: Any
    type: StepType
    address: int = 0

    @classmethod
    def of(cls, function: Any, *arguments: Any, returns: types.Type = types.none, lends: bool = False) -> Step:
        """A function for arguments of the types of those given, or of what `lend_arrays` makes of them; not compiled
        yet.
        """
        kinds = (typeof(value) for value in arguments)
        return cls(function, StepType(tuple(lent_type(kind) if lends else kind for kind in kinds), returns))

    def made(self) -> Step:
        """The step in machine code, which is compiled now where none is kept.

        Raises
        ------
        UsageError
            It is a user's own, and does not compile, or returns something else.
        """
        name = f"{self.function.__name__} of {self.function.py_func.__module__}"
        with global_compiler_lock:
            try:
                self.function.compile(self.type.arguments)
            except errors.NumbaError as error:
                if self.function.py_func.__module__.startswith("mipfs."):
                    raise
                said = [line.strip() for line in str(error).splitlines() if line.strip()]
                raise UsageError(f"{name} does not compile: {' '.join(said[1:3])}") from error
            code = self.function.overloads[self.type.arguments]
            if code.signature.return_type != self.type.returns:
                raise UsageError(f"{name} must return {self.type.returns}, not {code.signature.return_type}")
            return Step(self.function, self.type, code.library.get_pointer_to_function(code.fndesc.llvm_func_name))


@typeof_impl.register(Step)
def _type_of_step(value: Step, context: Any) -> StepType:
    return value.type


@unbox(StepType)
def _unbox_step(of, value, c):  # type: ignore[no-untyped-def]
    attribute = c.pyapi.object_getattr_string(value, "address")
    address = c.pyapi.long_as_longlong(attribute)
    c.pyapi.decref(attribute)
    return NativeValue(address, is_error=cgutils.is_not_null(c.builder, c.pyapi.err_occurred()))


@intrinsic
def call_step(context, step, *arguments):  # type: ignore[no-untyped-def]
    """Call a step with its arguments."""
    if not isinstance(step, StepType):
        raise errors.TypingError(f"{step} is called, which is no step")
    return _make_call(step, step, arguments)


def caller(of: StepType) -> Any:
    """`call_step` for addresses that are plain integers, of functions with arguments of some types.

    What is called from Python many times takes integers: numba tells the type of a tuple of steps in 17 µs.
    """

    @intrinsic
    def call_at(context, address, *arguments):  # type: ignore[no-untyped-def]
        return _make_call(of, address, arguments)

    return call_at


@intrinsic
def copy_memory(context, address, found, at, count):  # type: ignore[no-untyped-def]
    """Copy `count` bytes that lie at an address to an array of bytes, from `at` on; nobody looks whether they fit."""

    def lowered(context, builder, signature, values):  # type: ignore[no-untyped-def]
        address, found, at, count = values
        to = context.make_array(signature.args[1])(context, builder, found).data
        of = builder.inttoptr(address, to.type)
        cgutils.raw_memcpy(builder, builder.gep(to, [at]), of, count, 1)
        return context.get_dummy_value()

    bytes_found = types.Array(types.uint8, 1, "C")
    return typing.signature(types.none, types.int64, bytes_found, types.int64, types.int64), lowered


@compiled(nogil=True)
def run(step, arguments):  # type: ignore[no-untyped-def]
    """Call a step from Python, with arguments that are lent to it."""
    return call_step(step, *lend_arrays(arguments))


def _make_call(of: StepType, address: Any, arguments: tuple[Any, ...]) -> tuple[Any, Any]:
    """Signature and code of a call of a function at an address, refused where the arguments are not of its types."""
    given = tuple(types.unliteral(one) for one in arguments)
    if given != of.arguments:
        raise errors.TypingError(f"a step of {of.arguments} is called with {given}")

    def lowered(context, builder, signature, values):  # type: ignore[no-untyped-def]
        address, pack = values
        with cgutils.if_unlikely(builder, cgutils.is_null(builder, address)):
            context.call_conv.return_user_exc(builder, SystemError, ("a step is called that is not compiled",))
        held = zip(cgutils.unpack_tuple(builder, pack), signature.args[1], of.arguments, strict=True)
        cast = [context.cast(builder, value, was, to) for value, was, to in held]
        convention = context.call_conv
        kind = convention.get_function_type(of.returns, of.arguments)
        function = builder.inttoptr(address, ir.PointerType(kind))
        status, found = convention.call_function(builder, function, of.returns, of.arguments, cast)
        with cgutils.if_unlikely(builder, status.is_error):
            convention.return_status_propagate(builder, status)
        return context.get_dummy_value() if of.returns == types.none else found

    return typing.signature(of.returns, address, types.StarArgTuple(arguments)), lowered
