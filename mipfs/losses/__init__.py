"""The losses, one file each: value, dual set, conjugate and the inner solver."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

from mipfs.errors import UsageError

if TYPE_CHECKING:
    from mipfs.problem import Problem

LOSSES = {
    "hinge": "mipfs.losses.hinge",
    "squared-hinge": "mipfs.losses.squared_hinge",
    "logistic": "mipfs.losses.logistic",
    "structural": "mipfs.losses.structural",
}


def get_loss(name: str) -> ModuleType:
    """The module of a loss by its name.

    Raises
    ------
    UsageError
        No loss of that name.
    """
    import importlib

    if name not in LOSSES:
        raise UsageError(f"loss {name!r} is not known; it is one of {', '.join(LOSSES)}")
    return importlib.import_module(LOSSES[name])


def loss_of(problem: Problem) -> Any:
    """Value and inner solver of a problem's loss: a pointwise loss's module, or its measure's `Structural`."""
    module = get_loss(problem.loss)
    return module.of_problem(problem) if problem.loss == "structural" else module
