"""Peers of one's own in a benchmark: any selector of `sklearn.feature_selection` by its class, and abess.

A peer chooses columns of the scaled training part, and the SVM of squared hinge at the benchmark's C is fitted on them,
as for every other selector. Names are looked up in scikit-learn's own list and nowhere else: a benchmark that is read
from a file runs no other code.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from inspect import signature
from typing import Any

import numpy as np
from scipy import sparse

from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.lab.baselines.linear import check_size, check_weight, liblinear_matrix, plain_svm
from mipfs.lab.studies.bench_method import BenchMethod, MethodFit, MethodSetting
from mipfs.plumbing.arrays import Integers
from mipfs.plumbing.registry import suggest_name

PREFIX = "sklearn:"
"""Before the name of a class of `sklearn.feature_selection`."""
COUNTS = ("k", "n_features_to_select", "max_features")
"""What such classes call the number of features."""
ABESS = "abess"


def peer(name: str) -> BenchMethod:
    """A peer by its name: sklearn:SelectKBest, sklearn:RFE, sklearn:SequentialFeatureSelector, abess.

    Raises
    ------
    UsageError
        No such class, one that takes no number of features, or a package that is not installed.
    """
    if name == ABESS:
        if find_spec(ABESS) is None:
            raise UsageError("method 'abess' needs the package abess, which is not installed")
        return BenchMethod(name, "best subset by splicing, logistic loss", "Zhu 2020", Peer(name), uses_c=False)
    _class_of(name)
    return BenchMethod(name, "a selector of scikit-learn, and the SVM on its columns", "scikit-learn", Peer(name))


def is_peer(name: str) -> bool:
    """Whether a name is one of a peer."""
    return name == ABESS or name.startswith(PREFIX)


@dataclass(frozen=True)
class Peer:
    """M columns by a peer, and the SVM on them."""

    name: str

    def __call__(self, data: Instance, M: int, C: float, setting: MethodSetting) -> MethodFit:
        check_size(M, data.n_features)
        check_weight(C)
        if np.any(data.sample_weight != data.sample_weight[0]):
            raise UsageError(f"{self.name} does not weigh samples; leave the weights out")
        ids = (
            select_by_splicing(data, M) if self.name == ABESS else _columns_by_selector(self.name, data, M, C, setting)
        )
        return MethodFit(plain_svm(data, ids, C, setting.bias))


def _class_of(name: str) -> tuple[Any, str]:
    """The class of a name, and what it calls the number of features."""
    from sklearn import feature_selection

    wanted = name.removeprefix(PREFIX)
    known = {one: getattr(feature_selection, one) for one in feature_selection.__all__ if one[:1].isupper()}
    counted = {one: [key for key in COUNTS if key in signature(made).parameters] for one, made in known.items()}
    able = sorted(one for one, keys in counted.items() if keys)
    if wanted not in able:
        hint = suggest_name(wanted, able, f"it is one of {', '.join(able)}")
        what = "takes no number of features" if wanted in known else "is no selector of sklearn.feature_selection"
        raise UsageError(f"method {name!r}: {wanted!r} {what}; {hint}")
    return known[wanted], counted[wanted][0]


def _columns_by_selector(name: str, data: Instance, M: int, C: float, setting: MethodSetting) -> Integers:
    """The columns that a selector of scikit-learn leaves, where it needs a classifier with the SVM of squared hinge."""
    from sklearn.svm import LinearSVC

    made, count = _class_of(name)
    given: dict[str, Any] = {count: M}
    parameters = signature(made).parameters
    if "estimator" in parameters:
        given["estimator"] = LinearSVC(C=0.5 * C, dual=False, fit_intercept=setting.bias, random_state=setting.seed)
    if count == "max_features":
        given["threshold"] = -np.inf
    if "random_state" in parameters:
        given["random_state"] = setting.seed
    selector = made(**given).fit(liblinear_matrix(data, name), data.y)
    return np.flatnonzero(selector.get_support()).astype(np.int64)


def select_by_splicing(data: Instance, M: int) -> Integers:
    """The support of M that abess finds; constant columns, which it refuses, are left out."""
    from abess.linear import LogisticRegression

    X = data.block().values
    X = X.toarray() if sparse.issparse(X) else np.asarray(X)
    varying = np.flatnonzero(np.ptp(X, axis=0) > 0)
    weights = np.ravel(LogisticRegression(support_size=M).fit(X[:, varying], (data.y > 0).astype(int)).coef_)
    return varying[np.flatnonzero(weights)].astype(np.int64)
