"""The shipped losses as kernels take them, by number, for tests that are crossed with all three."""

from __future__ import annotations

from mipfs.kernels.loss import LossSteps
from mipfs.losses import get_loss

HINGE, SQUARED_HINGE, LOGISTIC = range(3)
NAMES = ("hinge", "squared-hinge", "logistic")


def made(kind: int) -> LossSteps:
    """The compiled functions of a loss."""
    kernels = get_loss(NAMES[kind]).kernels
    assert kernels is not None
    return kernels.made
