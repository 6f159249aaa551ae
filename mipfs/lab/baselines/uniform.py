"""M features drawn uniformly, and the SVM on them: what any method must beat (Paul 2016 samples so as well).

The draws of one seed are nested: the M features of a smaller M are among those of a larger one.
"""

from __future__ import annotations

import numpy as np

from mipfs.data.instance import Instance
from mipfs.lab.baselines.linear import BaselineDescription, Linear, check_size, check_weight, plain_svm

ABOUT = BaselineDescription(
    what="M features drawn uniformly by the seed, and the SVM on them",
    source="Paul 2016",
    sparse="yes",
    limits="none",
    library="NumPy",
    uses_c=False,
)


def fit(data: Instance, M: int, C: float = 1.0, *, bias: bool = True, seed: int = 0) -> Linear:
    """M features drawn without replacement, and the SVM of weight C on them.

    Parameters
    ----------
    data : Instance
    M : int in 1 … p
    C : float > 0
    bias : bool
    seed : int, of the draw

    Raises
    ------
    UsageError
        M or C out of its range.
    """
    check_size(M, data.n_features)
    check_weight(C)
    drawn = np.random.default_rng(seed).permutation(data.n_features)[:M]
    return plain_svm(data, np.sort(drawn).astype(np.int64), C, bias)
