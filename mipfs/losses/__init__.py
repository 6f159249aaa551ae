"""The losses, one file each: value, dual set, conjugate and the inner solver."""

from __future__ import annotations

from types import ModuleType

from mipfs.errors import UsageError

LOSSES = {
    "hinge": "mipfs.losses.hinge",
    "squared-hinge": "mipfs.losses.squared_hinge",
    "logistic": "mipfs.losses.logistic",
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
