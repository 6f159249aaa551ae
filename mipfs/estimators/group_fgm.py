"""GroupFGMClassifier: feature generation over groups of features (Tan 2014) as a scikit-learn classifier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.atoms.groups import Groups
from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.estimators.base import Fitted
from mipfs.estimators.relaxation import RelaxationClassifier
from mipfs.plumbing.declared import checked

GroupLists = Mapping[str, Sequence[str | int]] | Sequence[Sequence[str | int]]


class GroupFGMClassifier(RelaxationClassifier):
    """Linear SVM on the groups of features that the convex relaxation picks (Tan 2014).

    As `FGMClassifier`, with whole groups selected. A feature in two selected groups has the sum of two weights, each
    penalised on its own.

    Parameters
    ----------
    groups : mapping, list of lists, (p,) array-like of labels, or None
        A mapping of name to features (names or 0-based positions); a list of such lists, called group1, group2, ...;
        or one label per feature, equal ones a group. A feature in no group is never selected. None: every feature
        alone.
    M : int >= 0 or None, default 5
        At most M groups (per class). A number above the number of groups stands for it, None for no limit.
    scaling : {"none", "norm"} or (G,) array-like >= 0, default "none"
        λ_g, by which the columns of a group are multiplied: 1, or 1/‖X_g‖ so that large groups are no cheaper.
    C, T, loss, bias, margin, keep, debias, gap, time_limit, scale, class_weight
    rows, forced_in, forced_out, cost, budget
        As those of `FGMClassifier`; the last five are about groups, by name (``groups_``) or position.

    Attributes
    ----------
    groups_ : tuple of G str
        Names of the groups.
    sigma_ : (1, G) or (K, G) ndarray
        1 for the kept groups; with ``keep="all"`` their σ in [0, 1].
    group_support_ : (G,) ndarray of bool
        The kept groups; for more than two classes those of any class.
    support_ : (p,) ndarray of bool
        The features of these groups.
    coef_, intercept_, classes_, result_, n_iter_, n_features_in_, feature_names_in_
        As those of `FGMClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from mipfs import GroupFGMClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> kinds = ["mean"] * 10 + ["error"] * 10 + ["worst"] * 10
    >>> model = GroupFGMClassifier(kinds, M=1, C=0.01, scale="standard").fit(X, y)
    >>> [name for name, kept in zip(model.groups_, model.group_support_) if kept]
    ['worst']
    """

    def __init__(
        self,
        groups: GroupLists | npt.ArrayLike | None = None,
        *,
        M: int | None = 5,
        C: float = 1.0,
        T: int | None = None,
        loss: str = "squared-hinge",
        bias: bool = True,
        margin: str = "unit",
        keep: str = "M",
        debias: float | None = None,
        gap: float = 1e-3,
        time_limit: float | None = 60.0,
        scale: str = "none",
        scaling: str | npt.ArrayLike = "none",
        class_weight: Mapping[Any, float] | str | None = None,
        rows: Any = None,
        forced_in: Sequence[str | int] | None = None,
        forced_out: Sequence[str | int] | None = None,
        cost: Mapping[str, float] | Sequence[float] | None = None,
        budget: float | None = None,
    ) -> None:
        self.groups = groups
        self.M = M
        self.C = C
        self.T = T
        self.loss = loss
        self.bias = bias
        self.margin = margin
        self.keep = keep
        self.debias = debias
        self.gap = gap
        self.time_limit = time_limit
        self.scale = scale
        self.scaling = scaling
        self.class_weight = class_weight
        self.rows = rows
        self.forced_in = forced_in
        self.forced_out = forced_out
        self.cost = cost
        self.budget = budget

    def _atoms(self, data: Instance) -> Groups:
        return Groups(data, named_groups(self.groups, data.feature_names), self.scaling)

    def _keep(self, fits: list[Fitted]) -> None:
        super()._keep(fits)
        self.groups_ = fits[0].names
        self.group_support_ = np.any(self.sigma_ > 0, axis=0)


def named_groups(groups: Any, feature_names: Sequence[str]) -> Mapping[str, Sequence[str | int]]:
    """Any of the ways to give groups as a mapping of name to features.

    Parameters
    ----------
    groups : mapping, sequence of sequences, (p,) array-like of labels, or None
    feature_names : (p,)

    Raises
    ------
    UsageError
        No groups, or labels that are not p.
    """
    if groups is None:
        return {name: (j,) for j, name in enumerate(feature_names)}
    if isinstance(groups, Mapping):
        return {str(name): _listed(members) for name, members in groups.items()}
    listed = [*checked("groups", groups, Sequence[Any])]
    if listed and all(isinstance(members, (list, tuple, set, np.ndarray)) for members in listed):
        return {f"group{g + 1}": _listed(members) for g, members in enumerate(listed)}
    if len(listed) != len(feature_names):
        raise UsageError(
            f"groups has {len(listed)} labels for {len(feature_names)} features; give one per feature, or lists"
        )
    members: dict[str, list[str | int]] = {}
    for j, label in enumerate(listed):
        members.setdefault(str(label), []).append(j)
    return members


def _listed(members: Any) -> Any:
    """Members in a list; a set in a fixed order, so that the same groups give the same bytes."""
    return members if isinstance(members, str) else sorted(members) if isinstance(members, set) else list(members)
