"""The linear SVM with the squared hinge on all features, by dual coordinate descent: CD-SVM of Tan 2014, section 6."""

from __future__ import annotations

from mipfs.data.instance import Instance
from mipfs.lab.baselines.about import BaselineDescription
from mipfs.lab.baselines.dual_descent import check_all, dual_descent
from mipfs.lab.baselines.linear import Linear

ABOUT = BaselineDescription(
    what="the SVM on all features (squared hinge): a reference, it selects nothing",
    source="Tan 2014, section 6; Hsieh et al. 2008",
    sparse="yes, not centred",
    limits="M is p; penalises the intercept; slow to converge on columns of different scales",
    library="LIBLINEAR (scikit-learn)",
)


def fit(data: Instance, M: int, C: float = 1.0, *, bias: bool = True, seed: int = 0) -> Linear:
    """`dual_descent` with the squared hinge, as a reference: M must be p."""
    check_all(data, M, "cd-svm")
    return dual_descent(data, C, bias=bias, seed=seed)
