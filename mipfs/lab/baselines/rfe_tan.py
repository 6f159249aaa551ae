"""SVM-RFE as Tan 2010 runs it: the squared hinge, and fewer features a round as fewer are left."""

from __future__ import annotations

from mipfs.data.instance import Instance
from mipfs.lab.baselines.about import BaselineDescription
from mipfs.lab.baselines.linear import Linear
from mipfs.lab.baselines.rfe import Drop, rfe

LARGE = 20_000
"""Features from which on the schedule of Tan 2010, section 3.5, is taken, and below it that of section 3.3."""

ABOUT = BaselineDescription(
    what="recursive feature elimination, 10,000, 100, 10 or 1 features a round as Tan 2010 has it",
    source="Tan 2010, sections 3.3 and 3.5",
    sparse="yes, not centred",
    limits="some p/10 fits below 20,000 features, p/100 from there on",
    library="LIBLINEAR (scikit-learn)",
)


def fit(data: Instance, M: int, C: float = 1.0, *, bias: bool = True, seed: int = 0) -> Linear:
    """`rfe` by the schedule for as many features as there are."""
    drop: Drop = "tan-large" if data.n_features > LARGE else "tan"
    return rfe(data, M, C, bias=bias, drop=drop, seed=seed)
