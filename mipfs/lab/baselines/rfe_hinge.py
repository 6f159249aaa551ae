"""SVM-RFE as Guyon 2002 and Aytug 2015 have it: the SVM with the hinge, and one feature dropped a round."""

from __future__ import annotations

from mipfs.data.instance import Instance
from mipfs.lab.baselines.linear import BaselineDescription, Linear
from mipfs.lab.baselines.rfe import rfe

ABOUT = BaselineDescription(
    what="recursive feature elimination with the hinge, one feature a round",
    source="Guyon et al. 2002; Aytug 2015, section 2",
    sparse="yes",
    limits="p - M + 1 fits: for thousands of features rfe, which drops a fifth of them a round",
)


def fit(data: Instance, M: int, C: float = 1.0, *, bias: bool = True, seed: int = 0) -> Linear:
    """`rfe` with the hinge and ``drop=1``."""
    return rfe(data, M, C, bias=bias, drop=1, loss="hinge")
