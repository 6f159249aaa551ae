"""The logistic regression on all features, by dual coordinate descent: CD-LR of Tan 2014, section 6."""

from __future__ import annotations

from mipfs.data.instance import Instance
from mipfs.lab.baselines.about import BaselineDescription
from mipfs.lab.baselines.dual_descent import check_all, dual_descent
from mipfs.lab.baselines.linear import Linear

ABOUT = BaselineDescription(
    what="the logistic regression on all features: a reference, it selects nothing",
    source="Tan 2014, section 6; Yu et al. 2011",
    sparse="yes, not centred",
    limits="M is p; penalises the intercept; slow to converge on columns of different scales",
    library="LIBLINEAR (scikit-learn)",
)


def fit(data: Instance, M: int, C: float = 1.0, *, bias: bool = True, seed: int = 0) -> Linear:
    """`dual_descent` with the logistic loss, as a reference: M must be p."""
    check_all(data, M, "cd-logistic")
    return dual_descent(data, C, loss="logistic", bias=bias, seed=seed)
