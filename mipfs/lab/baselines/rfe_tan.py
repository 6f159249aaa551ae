"""SVM-RFE as Tan 2010 runs it: the squared hinge, and fewer features a round as fewer are left."""

from __future__ import annotations

from mipfs.data.instance import Instance
from mipfs.lab.baselines.linear import BaselineDescription, Linear
from mipfs.lab.baselines.rfe import LARGE_REST, Drop, rfe

LARGE, MILLIONS = 20_000, 2_000_000
"""Features from which on 100 a round are dropped, and 10,000: the sets of section 3.5 with 100 a round have 20,958 to
1,355,191, and the two with 10,000 have 3,231,961."""

ABOUT = BaselineDescription(
    what="recursive feature elimination, 10,000, 100, 10 or 1 features a round as Tan 2010 has it",
    source="Tan 2010, sections 3.3 and 3.5",
    sparse="yes, not centred",
    limits="some p/10 fits below 20,000 features, p/100 to two million, p/10,000 + 200 beyond",
    library="LIBLINEAR (scikit-learn)",
)


def fit(data: Instance, M: int, C: float = 1.0, *, bias: bool = True, seed: int = 0) -> Linear:
    """`rfe` by the schedule for as many features as there are."""
    p = data.n_features
    drop: Drop = "tan-large" if p > MILLIONS else LARGE_REST if p > LARGE else "tan"
    return rfe(data, M, C, bias=bias, drop=drop)
