"""BaselineSelector: every baseline of `mipfs.lab.baselines` as a scikit-learn selector and classifier."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.estimators.atoms import GroupLists, named_groups
from mipfs.estimators.base import LinearClassifier, at_most
from mipfs.estimators.samples import keep_parameters
from mipfs.lab import baselines
from mipfs.lab.baselines.linear import Linear


class BaselineSelector(LinearClassifier):
    """The features that a baseline picks, and the linear SVM on them: what the papers compare with, called alike.

    More than two classes are fitted one against the rest, each with its own M features.

    Parameters
    ----------
    method : str, default "rfe"
        A name of `mipfs.baselines.available()`, or of `mipfs.baselines.references()`: those select nothing and need
        ``M=None``. ``mipfs baselines`` prints what each does and takes.
    M : int >= 1 or None, default 10
        At most M features (per class). A number above p stands for p, None for all.
    C : float > 0, default 1
        Loss weight.
    bias : bool, default True
        Whether there is an intercept.
    seed : int >= 0, default 0
        Of a method that draws.
    groups : mapping, list of lists, (p,) array-like of labels, or None, default None
        Disjoint groups of features, as `GroupFGMClassifier` takes them, for "group-lasso"; M still counts features.
    scale : {"none", "standard", "unit"}, default "none"
        How columns are scaled before the fit (samples count by their weight, not by that of their class); sparse data
        stay sparse.
        `coef_` is on the scale of X.
    class_weight : mapping of class to float > 0, "balanced" or None, default None
        Multiplies the weight of the samples of a class, in every binary problem.

    Attributes
    ----------
    coef_ : (1, p) or (K, p) ndarray
    intercept_ : (1,) or (K,) ndarray
    classes_ : (K,) ndarray
    support_ : (p,) ndarray of bool
        The selected features; for more than two classes those of any class.
    linear_ : mipfs.lab.baselines.linear.Linear, or list of K of them for more than two classes
    n_features_in_ : int
    feature_names_in_ : (p,) ndarray of str, where X had names

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from mipfs import BaselineSelector
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> model = BaselineSelector("rfe", M=3, scale="standard").fit(X, y)
    >>> model.get_feature_names_out().tolist()
    ['radius error', 'worst area', 'worst concave points']
    """

    rows = forced_in = forced_out = cost = budget = None  # what the base hands on, and no baseline keeps

    def __init__(
        self,
        method: str = "rfe",
        *,
        M: int | None = 10,
        C: float = 1.0,
        bias: bool = True,
        seed: int = 0,
        groups: GroupLists | npt.ArrayLike | None = None,
        scale: str = "none",
        class_weight: Mapping[Any, float] | str | None = None,
    ) -> None:
        keep_parameters(self, locals())

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit.

        Parameters
        ----------
        X : (n, p) array-like, data frame or sparse matrix
        y : (n,) array-like of class labels, at least two of them
        sample_weight : (n,) array-like >= 0, optional
            Sample i has the loss weight C·sample_weight_i; samples of weight 0 are left out.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            Bad data, a parameter out of its range, or data that the method cannot take.

        Warns
        -----
        ConvergenceWarning
            LIBLINEAR, or the group lasso, stopped at its limit of steps.
        """
        return super().fit(X, y, sample_weight)

    def _prepare_instances(self, instances: list[Instance]) -> list[Instance]:
        if self.groups is None:
            return instances
        if not baselines.about(self.method).grouped:
            raise UsageError(f"{self.method} selects features and takes no groups; leave groups out")
        named = named_groups(self.groups, instances[0].feature_names)
        names = instances[0].feature_names
        groups = {
            name: tuple(one if isinstance(one, str) else _feature_name_at(names, name, one) for one in members)
            for name, members in named.items()
        }
        return [replace(data, groups=groups) for data in instances]

    def _fit_binary(self, data: Instance) -> Any:
        M = data.n_features if self.M is None else at_most(self.M, data.n_features)
        return baselines.get_baseline(self.method)(data, M, self.C, bias=bool(self.bias), seed=self.seed)

    def _store_fits(self, fits: list[Any]) -> None:
        p = self.n_features_in_
        self.linear_: Linear | list[Linear] = fits[0] if len(fits) == 1 else fits
        self.coef_ = np.array([np.bincount(one.ids, one.w, p) for one in fits])
        self.intercept_ = np.array([one.b for one in fits])
        self.support_ = np.any([np.bincount(one.ids, minlength=p) > 0 for one in fits], axis=0)


def _feature_name_at(names: Any, group: str, position: Any) -> str:
    """The name of a feature at a 0-based position."""
    if isinstance(position, bool) or not isinstance(position, (int, np.integer)) or not 0 <= position < len(names):
        raise UsageError(f"group {group!r} holds {position!r}; positions are from 0 to {len(names) - 1}")
    return str(names[int(position)])
