"""The formulations, one file each, in the paper's notation.

``models.fsp_m(data, M=5)`` is ``models.fsp_m.build(data, M=5)``: each file defines ``build(data, **params)``,
and its module can be called. A new formulation is a new file here and a line in `mipfs.formulation`.
"""

from __future__ import annotations

import inspect
import sys
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from mipfs import formulation
from mipfs.errors import UsageError
from mipfs.plumbing.on_import import once_imported

if TYPE_CHECKING:
    from mipfs.models.big_m import build as big_m
    from mipfs.models.boolean_relaxation import build as boolean_relaxation
    from mipfs.models.decomposed_sdp import build as decomposed_sdp
    from mipfs.models.fsp_lambda import build as fsp_lambda
    from mipfs.models.fsp_m import build as fsp_m
    from mipfs.models.nmmkl import build as nmmkl
    from mipfs.models.onsvm import build as onsvm
    from mipfs.models.plain_svm import build as plain_svm
    from mipfs.models.qcqp_relaxation import build as qcqp_relaxation
    from mipfs.models.qcqp_ssvm import build as qcqp_ssvm
    from mipfs.models.reduced_mkl import build as reduced_mkl
    from mipfs.models.sdp_ssvm import build as sdp_ssvm
    from mipfs.models.structural_dual import build as structural_dual

__all__ = [
    "big_m",
    "boolean_relaxation",
    "decomposed_sdp",
    "fsp_lambda",
    "fsp_m",
    "nmmkl",
    "onsvm",
    "plain_svm",
    "qcqp_relaxation",
    "qcqp_ssvm",
    "reduced_mkl",
    "sdp_ssvm",
    "structural_dual",
]

_FILES = frozenset(entry.module for entry in formulation.table())


_PYOMO, _CVXPY = "pyomo_solver", "cvxpy_method"
"""What of a modelling language finds this package by its name, a file here each: of Pyomo's a solver, once Pyomo is
imported; of CVXPY's a method of programs, once there is a module that makes one."""


def _register_cvxpy_method() -> None:
    if "cvxpy" in sys.modules:
        import_module(f"{__name__}.{_CVXPY}")


class _Callable(ModuleType):
    """The module of a formulation; calling it builds the formulation."""

    def __call__(self, data: Any, **params: Any) -> Any:
        """Build it; B is another name of M, as in the papers.

        Raises
        ------
        UsageError
            A parameter by both of its names.
        """
        known = inspect.signature(self.build).parameters
        own = dict[str, Any]()
        for given, value in params.items():
            name = formulation.own_name(given, known)
            if name in own:
                raise UsageError(formulation.given_twice_message(name))
            own[name] = value
        return self.build(data, **own)

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self.build)


class _Package(ModuleType):
    """This package; the import system binds a submodule to it by setattr, in whatever way it was imported."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _FILES and isinstance(value, ModuleType):
            value.__class__ = _Callable
        super().__setattr__(name, value)
        if isinstance(value, ModuleType) and name not in (_PYOMO, _CVXPY):
            _register_cvxpy_method()


sys.modules[__name__].__class__ = _Package
_register_cvxpy_method()
once_imported("pyomo.environ", partial(import_module, f"{__name__}.{_PYOMO}"))


def __getattr__(name: str) -> Any:
    if name in _FILES or name == "benders":
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_FILES])
