"""The losses, one file each: value, dual set, conjugate and the SVM that solves it, in one object (`base.Loss`)."""

from __future__ import annotations

from typing import Any

from mipfs.errors import UsageError
from mipfs.plumbing.declared import show_value
from mipfs.plumbing.registry import Registry, part_of

LOSSES = Registry(
    "loss",
    {
        "hinge": "mipfs.losses.hinge",
        "squared-hinge": "mipfs.losses.squared_hinge",
        "logistic": "mipfs.losses.logistic",
        "structural": "mipfs.losses.structural",
    },
)

BUILT_IN = tuple(LOSSES)
JOINT, ODDS = ("structural",), ("logistic",)
"""Those of all samples at once, and those whose scores are log odds: what reads results asks, and loads no kernel for
that. Losses of one's own are asked themselves."""


def get_loss(name: str) -> Any:
    """A loss by its name: the ``LOSS`` of its file, a `mipfs.losses.base.Loss`, but for the structural one.

    Raises
    ------
    UsageError
        No loss of that name, or its file has no ``LOSS``.
    """
    if not isinstance(name, str) or name not in LOSSES:
        raise UsageError(f"loss {show_value(name)} is not known; it is one of {', '.join(LOSSES)}")
    said = f"loss {show_value(name)}"
    found = part_of(said, LOSSES[name], "LOSS", "an object of a class of mipfs.losses.base.Loss")
    if isinstance(found, type):
        raise UsageError(f"{said}: LOSS of {LOSSES[name]} is a class; it is an object: LOSS = {found.__name__}()")
    if not hasattr(found, "pointwise"):
        raise UsageError(f"{said}: LOSS of {LOSSES[name]} is no object of a class of mipfs.losses.base.Loss")
    if type(found).__hash__ is None:
        raise UsageError(
            f"{said}: LOSS of {LOSSES[name]} has no hash: @dataclass(frozen=True), or a class without __eq__"
        )
    return found


def is_joint(name: object) -> bool:
    """Whether a name is that of a loss of all samples at once, which is no sum over them."""
    if not isinstance(name, str) or name not in LOSSES:
        return False
    return name in JOINT if name in BUILT_IN else not get_loss(name).pointwise


def says_odds(name: object) -> bool:
    """Whether a name is that of a loss whose scores are log odds (`Loss.says_odds`)."""
    if not isinstance(name, str) or name not in LOSSES:
        return False
    return name in ODDS if name in BUILT_IN else bool(get_loss(name).says_odds)


def loss_of(problem: Any) -> Any:
    """The loss of a `mipfs.problem.Problem`: the structural one is that of its measure."""
    return get_loss(problem.loss).of_problem(problem)
