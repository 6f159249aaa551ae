"""What the papers compare with, one method each: baselines and peers, never a source of bounds.

A baseline is a file with ``fit(data, M, C=1.0, *, bias=True, seed=0) -> Linear``, and a line in `BASELINES`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from mipfs.data.instance import Instance
from mipfs.plumbing.registry import module_of

if TYPE_CHECKING:
    from mipfs.baselines.linear import Linear

BASELINES = {
    "arom": "mipfs.baselines.arom",
    "fsv": "mipfs.baselines.fsv",
    "l1-svm": "mipfs.baselines.l1_svm",
    "lpsvm": "mipfs.baselines.lpsvm",
    "nmmkl": "mipfs.baselines.nmmkl",
    "onsvm": "mipfs.baselines.onsvm",
    "qcqp-ssvm": "mipfs.baselines.qcqp_ssvm",
    "r2w2": "mipfs.baselines.r2w2",
    "rfe": "mipfs.baselines.rfe",
    "rinaldi": "mipfs.baselines.rinaldi",
}


class Baseline(Protocol):
    """A way to select M features and to fit a linear classifier on them."""

    def __call__(self, data: Instance, M: int, C: float = 1.0, *, bias: bool = True, seed: int = 0) -> Linear:
        """Select at most M features of `data`, with loss weight C; the classifier is on the user's scale.

        Raises
        ------
        UsageError
            M or C out of range, or data that the method cannot take.
        """


def available() -> tuple[str, ...]:
    """The names of the baselines."""
    return tuple(BASELINES)


def get_baseline(name: str) -> Baseline:
    """A baseline by its name.

    Raises
    ------
    UsageError
        No baseline of that name.
    """
    fit: Baseline = module_of("baseline", name, BASELINES).fit
    return fit
