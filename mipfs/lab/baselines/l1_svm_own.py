"""The ℓ1-regularised SVM with its own weights: l1-SVM of Tan 2014, section 6, without a refit."""

from __future__ import annotations

from mipfs.data.instance import Instance
from mipfs.lab.baselines.about import BaselineDescription
from mipfs.lab.baselines.l1_svm import l1_svm_of_size
from mipfs.lab.baselines.linear import Linear, check_weight

ABOUT = BaselineDescription(
    what="an ℓ1-regularised SVM with its own weights, C searched for M features",
    source="Tan 2014, section 6; Yuan et al. 2010",
    sparse="yes, not centred",
    limits="may find fewer than M features; its C is that of M, not the one that is given; penalises the intercept",
    library="LIBLINEAR (scikit-learn)",
)


def fit(data: Instance, M: int, C: float = 1.0, *, bias: bool = True, seed: int = 0) -> Linear:
    """`l1_svm_of_size` as it is: the sparsity decides its loss weight, and `C` does not matter."""
    check_weight(C)
    return l1_svm_of_size(data, M, bias=bias, seed=seed)
