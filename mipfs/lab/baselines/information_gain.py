"""The features of largest information gain, and the SVM on them: Aytug 2015's filter (section 4).

    gain of x_j  =  H(y) − H(y | x_j)  =  Σ over v, y of  p(v, y) log [p(v, y) / (p(v) p(y))]

Columns of sparse data are events: x_j is whether the feature is there (x_ij ≠ 0), as it is for the words of texts, and
the gain is exact. Of dense data, a column of at most √n different values is discrete and its gain exact as well; every
other one is continuous, and its gain an estimate by neighbours (Ross 2014, scikit-learn's ``mutual_info_classif``),
which needs no bins. (WEKA, which Aytug used, bins continuous columns by a rule of its own.) Gains are in nats, and
scaling the columns does not change them.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import xlogy

from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.lab.baselines.linear import BaselineDescription, Linear, check_size, check_weight, plain_svm
from mipfs.plumbing.arrays import Array, Integers

ABOUT = BaselineDescription(
    what="the features of largest mutual information with the label, and the SVM on them",
    source="Aytug 2015, section 4; Ross 2014",
    sparse="yes",
    limits="a dense continuous column takes a millisecond; sample weights on sparse or discrete columns only",
    library="scikit-learn (continuous columns)",
    uses_c=False,
    weighted=False,
)
VALUES_PER_BLOCK = 1 << 22
"""Values whose codes are held at a time."""


def information_gain(data: Instance, *, seed: int = 0) -> Array:
    """The information gain of every feature.

    Parameters
    ----------
    data : Instance
        Samples count by their weights.
    seed : int
        Of the noise by which the estimate of continuous columns tells equal values apart.

    Returns
    -------
    (p,) gains in nats, >= 0

    Raises
    ------
    UsageError
        Sample weights beside continuous columns: the estimate by neighbours counts samples.
    """
    if data.is_sparse:
        return _of_events(data)
    gains = np.zeros(data.n_features)
    values = np.asarray(data.block().values)
    discrete = np.zeros(data.n_features, dtype=bool)
    step = max(1, VALUES_PER_BLOCK // data.n_samples)
    for start in range(0, data.n_features, step):
        part = slice(start, start + step)
        codes = _value_ranks(values[:, part])
        few = codes.max(axis=0) < math.isqrt(data.n_samples)
        discrete[part] = few
        gains[np.flatnonzero(few) + start] = _of_codes(codes[:, few], data.y, data.sample_weight)
    rest = np.flatnonzero(~discrete)
    if rest.size:
        if np.any(data.sample_weight != data.sample_weight[0]):
            name = data.feature_names[rest[0]]
            raise UsageError(
                f"information gain of the continuous column {name!r} cannot weigh samples; leave the weights out"
            )
        from sklearn.feature_selection import mutual_info_classif

        gains[rest] = mutual_info_classif(values[:, rest], data.y, discrete_features=False, random_state=seed)
    return gains


def _of_events(data: Instance) -> Array:
    """Gains of x_ij ≠ 0, from the weights of the samples that have the feature, by class."""
    there = data.block().values.astype(bool).astype(float)
    positive = data.y > 0
    weight = data.sample_weight
    counts = np.empty((2, 2, data.n_features))
    for k, members in enumerate((~positive, positive)):
        counts[1, k] = there.T @ np.where(members, weight, 0.0)
        counts[0, k] = max(0.0, float(weight[members].sum())) - counts[1, k]
    return _information_gain(np.maximum(counts, 0.0))


def _value_ranks(X: Array) -> Integers:
    """The rank of every value among the different ones of its column, shape as X."""
    order = np.argsort(X, axis=0, kind="stable")
    ordered = np.take_along_axis(X, order, axis=0)
    ranks = np.zeros(X.shape, dtype=np.int64)
    np.cumsum(ordered[1:] != ordered[:-1], axis=0, out=ranks[1:])
    codes = np.empty_like(ranks)
    np.put_along_axis(codes, order, ranks, axis=0)
    return codes


def _of_codes(codes: Integers, y: Array, weight: Array) -> Array:
    """Gains of discrete columns (n, k)."""
    k = codes.shape[1]
    if not k:
        return np.zeros(0)
    levels = int(codes.max()) + 1
    cells = (codes * 2 + (y > 0)[:, None]) * k + np.arange(k)
    counts = np.bincount(cells.ravel(), np.repeat(weight, k), levels * 2 * k)
    return _information_gain(counts.astype(float).reshape(levels, 2, k))


def _information_gain(counts: Array) -> Array:
    """H(y) − H(y|x) from weights (levels, 2, k) of every column's values and classes."""
    share = counts / counts.sum(axis=(0, 1))
    values = share.sum(axis=1)
    classes = share.sum(axis=0)
    gains = xlogy(share, share).sum(axis=(0, 1)) - xlogy(values, values).sum(axis=0) - xlogy(classes, classes).sum(0)
    return np.asarray(np.maximum(gains, 0.0))


def fit(data: Instance, M: int, C: float = 1.0, *, bias: bool = True, seed: int = 0) -> Linear:
    """The M features of largest `information_gain`, of equal ones the first, and the SVM of weight C on them."""
    check_size(M, data.n_features)
    check_weight(C)
    order = np.argsort(-information_gain(data, seed=seed), kind="stable")
    return plain_svm(data, np.sort(order[:M]).astype(np.int64), C, bias)
