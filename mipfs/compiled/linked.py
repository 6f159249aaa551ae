# mypy: disable-error-code="no-untyped-call, attr-defined, name-defined, has-type, misc, import-untyped"
"""Kernels that only kernels call are linked into their callers, and are no machine code of their own.

numba optimises and emits every function for itself, with all that it calls, and then again inside each of its callers;
of some 180 functions on the way to a first answer a dozen are entered from Python. Here a function that is met while a
kernel is compiled gets no wrapper for Python and is not emitted: the one that was entered is optimised as a whole,
once, with all that it calls. A kernel that is called from Python later gets its wrapper then, around the code that was
linked.

This holds while a kernel is compiled, under numba's lock; what other packages compile is left as it is. It rests on
how numba is made inside: with a version of it that was not tried, kernels are compiled as numba does it, which takes
longer and gives the same code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any

import numba
from numba import _dynfunc
from numba.core import codegen, dispatcher, sigutils
from numba.core.compiler_lock import global_compiler_lock
from numba.core.environment import Environment, lookup_environment
from numba.core.registry import cpu_target
from numba.core.runtime import rtsys

from mipfs.compiled.replaced import replaced
from mipfs.compiled.shortcuts import shortcuts

TRIED = ((0, 68),)
"""Versions of numba that this was tried with."""
LINKS = numba.version_info.short in TRIED
ENVIRONMENT, WRAPPED = "_ZN08NumbaEnv", "_wrapped"
"""How numba names the global variables that point to a function's Python objects, set once code is emitted; and what we
add for a wrapper's."""


class Linked(codegen.JITCodeLibrary):
    """Code that is optimised and emitted when an address in it is first asked for; linked into other code as it is."""

    _is_emitted = False

    def _optimize_functions(self, module: Any) -> None:
        """As numba does it, of the functions that have code: most are only declared."""
        module.data_layout = self._codegen._data_layout
        for function in module.functions:
            if not function.is_declaration:
                passes, builder = self._codegen._function_pass_manager()
                passes.run(function, builder)

    def finalize(self) -> None:
        """Link the code of what is called; nothing is optimised yet."""
        self._raise_if_finalized()
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalize_dynamic_globals()  # code that holds addresses of this process is not kept
        self._finalized = True

    def has(self, name: str) -> bool:
        """Whether a function of that name is defined here."""
        self._ensure_finalized()
        return self._is_emitted or _defines(self, name)

    def emit(self) -> None:
        """Optimise and make machine code, unless that was done."""
        self._ensure_finalized()
        if self._is_emitted:
            return
        self._is_emitted = True
        self._optimize_final_module()
        self._final_module.verify()
        super()._finalize_final_module()
        for variable in self._final_module.global_variables:
            found = lookup_environment(variable.name) if variable.name.startswith(ENVIRONMENT) else None
            if found is not None:
                self._codegen.set_env(variable.name, found)

    def _finalize_final_module(self) -> None:
        """Code that was kept is ready: what was emitted, or only what is linked."""
        self._is_emitted = getattr(self, "_compiled_object", None) is not None
        self._finalized = True
        if self._is_emitted:
            super()._finalize_final_module()

    def get_pointer_to_function(self, name: str) -> int:
        if not self.has(name):
            return 0
        self.emit()
        return int(super().get_pointer_to_function(name))

    def serialize_using_object_code(self) -> tuple[Any, ...]:
        kept = super().serialize_using_object_code if self._is_emitted else super().serialize_using_bitcode
        return tuple(kept())


def _defines(library: Any, name: str) -> bool:
    """Whether a function of that name stands in the code of a library."""
    try:
        return not library._final_module.get_function(name).is_declaration
    except NameError:
        return False


class _Compiling:
    """How many kernels are being compiled, each for the one before: of the thread that has numba's lock."""

    depth = 0


def is_for_another() -> bool:
    """Whether the kernel that is being compiled is one that another is compiled for."""
    return _Compiling.depth > 1


@contextmanager
def _compiling() -> Iterator[None]:
    """A kernel is compiled, perhaps for another one."""
    if not LINKS:
        yield
        return
    _Compiling.depth += 1
    try:
        if is_for_another():
            yield
        else:
            with _linking():
                yield
    finally:
        _Compiling.depth -= 1


@contextmanager
def _linking() -> Iterator[None]:
    """What numba compiles is `Linked`."""
    target = cpu_target.target_context
    maker = target.codegen()
    executable, callback, set_env = target.get_executable, target.create_cfunc_wrapper, maker.set_env

    def executable_where_entered(library: Any, described: Any, environment: Any) -> Any:
        if not isinstance(library, Linked) or library.has(described.llvm_cpython_wrapper_name):
            return executable(library, described, environment)
        name = described.qualname.rpartition(".")[2]  # a token that stands for the function, and is never called
        return _dynfunc.make_function(described.lookup_module(), name, "", 0, environment, (library,))

    def set_where_emitted(name: str, environment: Any) -> None:
        if maker._engine.get_global_value_address(name):
            set_env(name, environment)

    def callback_where_entered(library: Any, described: Any, *more: Any) -> None:
        if _defines(library, described.llvm_cpython_wrapper_name):  # what numba calls itself gets neither
            callback(library, described, *more)

    with (
        shortcuts(),
        replaced(maker, _library_class=Linked, set_env=set_where_emitted),
        replaced(target, get_executable=executable_where_entered, create_cfunc_wrapper=callback_where_entered),
    ):
        yield


def entered(made: Any, options: Any) -> Any:
    """Code that was made to be linked, with a wrapper for Python around it: nothing is typed or lowered again.

    What the wrapper holds of Python has a name of its own, for the code that is linked elsewhere is without it.

    Parameters
    ----------
    made : numba's CompileResult, without a wrapper
    options : what the kernel is declared with
    """
    target, described = made.target_context.subtarget(enable_nrt=True), copy(made.fndesc)
    described.env_name += WRAPPED
    library = target.codegen().create_library(described.qualname)
    library.enable_object_caching()
    library.add_linking_library(made.library)
    library.add_linking_library(rtsys.library)  # what counts references: this process may have emitted it nowhere else
    held = Environment.from_fndesc(described)
    target.create_cpython_wrapper(library, described, held, None, options.get("nogil", False))
    library.finalize()
    library._final_module.get_function(described.llvm_func_name).linkage = "external"  # its address is asked for
    function = target.get_executable(library, described, held)
    target.insert_user_function(function, described, [library])
    kept = (made.environment, *(made.referenced_envs or ()))
    return made._replace(
        library=library, entry_point=function, fndesc=described, environment=held, metadata={}, referenced_envs=kept
    )


class _Compiler(dispatcher._FunctionCompiler):
    """Without wrappers that nobody calls."""

    linked: Callable[[Any], Any]
    """The code for arguments that was made to be linked; None where there is none."""

    def compile(self, args: Any, return_type: Any) -> Any:
        made = None if is_for_another() or not LINKS else self.linked(args)
        if made is None or return_type not in (None, made.signature.return_type):
            return super().compile(args, return_type)
        return entered(made, self.targetoptions)

    def _customize_flags(self, flags: Any) -> Any:
        flags.no_cfunc_wrapper = True
        flags.no_cpython_wrapper = is_for_another()
        return flags


class Kernel(dispatcher.Dispatcher):
    """A function that numba compiles, as ``njit`` makes it, but for how it is compiled for another kernel."""

    targetdescr = cpu_target

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self._inner = dict[Any, Any]()
        self._entering: Any = None
        self._left: list[Any] = []  # what callers hold of Python by its address, of code that was here before
        made = self._compiler
        self._compiler = _Compiler(made.py_func, made.targetdescr, made.targetoptions, made.locals, made.pipeline_class)
        self._compiler.linked = self._linked

    def _linked(self, args: Any) -> Any:
        if self._entering is None and hasattr(self._cache, "to_link"):
            return self._cache.to_link(args, self.targetctx)
        return self._entering

    def compile(self, sig: Any) -> Any:
        """Compile for the types of a signature, or find the code kept."""
        with global_compiler_lock, _compiling():
            args, _ = sigutils.normalize_signature(sig)
            if is_for_another():
                return super().compile(sig)
            self._entering = self._inner.pop(args, None)
            if self._entering is not None:
                self._left.append(self._entering.environment)
                del self.overloads[args]
            try:
                return super().compile(sig)
            finally:
                self._entering = None

    def add_overload(self, made: Any) -> None:
        """Take up code; Python may call what has a wrapper for it."""
        if not isinstance(made.library, Linked) or made.library.has(made.fndesc.llvm_cpython_wrapper_name):
            super().add_overload(made)
            return
        args = tuple(made.signature.args)
        self.overloads[args] = made
        self._inner[args] = made
