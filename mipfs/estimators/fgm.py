"""FGMClassifier and FGMSelector: feature generation (Tan 2010, 2014) as a scikit-learn classifier and a selector."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mipfs.estimators.probable import CalibratedMixin
from mipfs.estimators.relaxation import Relaxation, RelaxationClassifier
from mipfs.estimators.samples import keep_parameters


class FGMClassifier(CalibratedMixin, RelaxationClassifier):
    """Linear SVM on the features that the convex relaxation picks: as many samples and features as memory holds.

    The relaxation of `FSPClassifier`'s problem is solved by generating M features at a time (Tan 2010, 2014). It is
    rounded to M features (FGM-B), or all of its features are kept, and an SVM is fitted on them. The value of the
    relaxation is a bound: `result_.gap` says how far the M features are from the best ones at most. More than two
    classes are fitted one against the rest, each with its own features.

    Parameters
    ----------
    M : int >= 0 or None, default 10
        At most M features, or whatever `atoms` are, per class; B in the papers. A number above theirs stands for it,
        None for no limit.
    atoms : str, atoms or None, default None
        What is selected, as in `mipfs.Problem`: None: single features. A name, such as "groups" (whole groups, which
        ``atom_options={"groups": ...}`` gives: name to features, lists, or a label per feature), "pairs" (squares and
        products of features), "splines" (a function of each feature): see `mipfs.atoms.registry.KINDS`. Or atoms that
        were made on data with the same features.
    atom_options : mapping or None, default None
        Of the atoms of that name, such as ``{"knots": 7}``.
    C : float > 0, default 1
        Loss weight.
    T : int or None, default None
        Stop after T iterations, as the papers do (15 in Tan 2014); None: when the gap of the relaxation is closed.
    eps_c, eps_apg : float in [0, 1) or None, default None
        The stops of Tan 2014, section 6.2: once the relaxation falls by no more than this share of itself in an
        iteration (1e-2 there), and (43), once a step of the proximal gradient changes it by no more (1e-4).
    loss : {"squared-hinge", "hinge", "logistic"}, default "squared-hinge"
        ½ max(0, 1 − m)², max(0, 1 − m) or log(1 + e⁻ᵐ) of the margin m. LinearSVC's squared hinge has no ½: its C is
        half of this one.
    bias : bool, default True
        Whether there is an (unpenalised) intercept; the papers have none.
    margin : {"unit", "rho"}, default "unit"
        "rho": the form of Tan 2010 with a free margin, for the squared hinge.
    keep : {"M", "all", "scores"}, default "M"
        "M": the best M features that several rankings lead to. "all": every feature that the relaxation uses, at most
        T·M (FGM). "scores": the M features of largest c_j at the final α, and no others (FGM-B as published).
    debias : float > 0 or None, default None
        C of a plain SVM that is refitted on the kept features; Tan 2014 uses 20. None: M features are fitted at C,
        and all features keep the shrunken weights of the relaxation.
    gap : float in [0, 1), default 1e-3
        Relative gap between the two sides of the relaxation at which it counts as solved.
    time_limit : float or None, default 60
        Seconds per binary problem, after which what was found is kept, with its bound, and a `ConvergenceWarning`
        is given. A limit that strikes makes the outcome depend on the machine's speed; without it, the same data
        give the same bytes.
    scale : {"none", "standard", "unit"}, default "none"
        How columns are scaled before the fit (samples count by their weight, not by that of their class); sparse data
        stay sparse.
        `coef_` is on the scale of X.
    class_weight : mapping of class to float > 0, "balanced" or None, default None
        Multiplies the weight of the samples of a class, in every binary problem. "balanced" is
        n/(K·n_k), with the samples counted by their weights.
    rows : sequence of mipfs.Row, (A, lb, ub), or None, default None
        Linear rows over the selection, ``lb <= A sigma <= ub`` or rows by name (``Row("not both", {"age": 1, "sex": 1},
        -inf, 1)``; a 0-based position will do for a name). They hold for the M features, not for all that the
        relaxation uses (``keep="all"``).
    forced_in, forced_out : sequence of names or 0-based positions, or None, default None
        What must be selected, and what must not.
    cost : mapping of name to float >= 0, (p,) array-like, or None, default None
    budget : float or None, default None
        Σ cost_j σ_j ≤ budget. All four hold for every class where there are more than two.
    monotonic_cst, positive, weight_rows
        Signs of the weights, and rows over them, as those of `FSPClassifier`.
    probability : bool, default False
        Whether `predict_proba` is calibrated on the scores of five folds, five fits more; the logistic loss needs none.
    verbose : bool or int, default False
        Whether incumbent, bound and gap are printed on standard error while it fits, twice a second at most.
    unknown : {"refuse", "none"}, default "refuse"
        What a word of a column of words is, in a prediction, that training did not see: an error, or none of the words
        that it saw, with a `DataWarning` that counts the rows.
    impute : {"median", "most frequent", "level"}, mapping of column to one of these, or None, default None
        What missing values become, as in `mipfs.read`, learnt in `fit`; of an array "median" or "most frequent". None:
        they are an error.
    types : mapping of column to kind, or None, default None
        Columns of a data frame whose text says numbers in another way, as in `mipfs.read`: "date", "currency",
        "percent", "decimal comma".

    Attributes
    ----------
    coef_ : (1, p) or (K, p) ndarray
        Where f is linear: not of functions and products of features.
    intercept_ : (1,) or (K,) ndarray
    classes_ : (K,) ndarray
    support_ : (p,) ndarray of bool
        The kept features; for more than two classes those of any class (``coef_[k]`` shows each class's own).
    atoms_ : (m,) ndarray of str
        The names of the kept atoms; for more than two classes those of any class.
    sigma_ : (1, p) or (K, p) ndarray
        1 for the kept features (or atoms); with ``keep="all"`` their σ in [0, 1]. Not of too many atoms to hold.
    result_ : Result, or list of K Results for more than two classes
        Objective, bound and gap of M features, and the relaxation's two sides under ``relaxed``; with ``keep="all"``
        these M are not polished. Features without a name are called x1, x2, ... there.
    n_iter_ : int
        Iterations, the largest number of all classes.
    n_features_in_ : int
    feature_names_in_ : (p,) ndarray of str, where X had names

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from mipfs import FGMClassifier
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> model = FGMClassifier(M=3, C=0.01, scale="standard").fit(X, y)
    >>> int(model.support_.sum()), model.result_.bound <= model.result_.objective
    (3, True)
    """

    def __init__(
        self,
        M: int | None = 10,
        *,
        C: float = 1.0,
        T: int | None = None,
        eps_c: float | None = None,
        eps_apg: float | None = None,
        loss: str = "squared-hinge",
        bias: bool = True,
        margin: str = "unit",
        keep: str = "M",
        debias: float | None = None,
        gap: float = 1e-3,
        time_limit: float | None = 60.0,
        scale: str = "none",
        class_weight: Mapping[Any, float] | str | None = None,
        rows: Any = None,
        forced_in: Sequence[str | int] | None = None,
        forced_out: Sequence[str | int] | None = None,
        cost: Mapping[str, float] | Sequence[float] | None = None,
        budget: float | None = None,
        atoms: Any = None,
        atom_options: Mapping[str, Any] | None = None,
        monotonic_cst: Any = None,
        positive: bool = False,
        weight_rows: Any = None,
        probability: bool = False,
        verbose: bool | int = False,
        unknown: str = "refuse",
        impute: Any = None,
        types: Mapping[str, str] | None = None,
    ) -> None:
        keep_parameters(self, locals())


class FGMSelector(Relaxation):
    """The features that the convex relaxation picks, for any model that follows.

    The features of `FGMClassifier`, without its classifier: see there.

    Parameters
    ----------
    M, C, T, eps_c, eps_apg, loss, bias, margin, keep, gap, time_limit, scale, class_weight
    rows, forced_in, forced_out, cost, budget, monotonic_cst, positive
        As those of `FGMClassifier`. `scale` does not change what `transform` returns.
    verbose : bool or int, default False
        Whether incumbent, bound and gap are printed on standard error while it fits, twice a second at most.
    unknown : {"refuse", "none"}, default "refuse"
        What a word of a column of words is, in a prediction, that training did not see: an error, or none of the words
        that it saw, with a `DataWarning` that counts the rows.
    impute : {"median", "most frequent", "level"}, mapping of column to one of these, or None, default None
        What missing values become, as in `mipfs.read`, learnt in `fit`; of an array "median" or "most frequent". None:
        they are an error.
    types : mapping of column to kind, or None, default None
        Columns of a data frame whose text says numbers in another way, as in `mipfs.read`: "date", "currency",
        "percent", "decimal comma".

    Attributes
    ----------
    support_ : (p,) ndarray of bool
        The kept features; for more than two classes those of any class.
    sigma_ : (1, p) or (K, p) ndarray
    result_ : Result, or list of K Results for more than two classes
    classes_, n_iter_, n_features_in_, feature_names_in_
        As those of `FGMClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from mipfs import FGMSelector
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> FGMSelector(M=3, C=0.01, scale="standard").fit_transform(X, y).shape
    (569, 3)
    """

    def __init__(
        self,
        M: int | None = 10,
        *,
        C: float = 1.0,
        T: int | None = None,
        eps_c: float | None = None,
        eps_apg: float | None = None,
        loss: str = "squared-hinge",
        bias: bool = True,
        margin: str = "unit",
        keep: str = "M",
        gap: float = 1e-3,
        time_limit: float | None = 60.0,
        scale: str = "none",
        class_weight: Mapping[Any, float] | str | None = None,
        rows: Any = None,
        forced_in: Sequence[str | int] | None = None,
        forced_out: Sequence[str | int] | None = None,
        cost: Mapping[str, float] | Sequence[float] | None = None,
        budget: float | None = None,
        monotonic_cst: Any = None,
        positive: bool = False,
        verbose: bool | int = False,
        unknown: str = "refuse",
        impute: Any = None,
        types: Mapping[str, str] | None = None,
    ) -> None:
        keep_parameters(self, locals())
