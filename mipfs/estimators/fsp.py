"""FSPClassifier: the exact feature-selecting SVM (FSP-M and FSP-λ of Aytug 2015) as a scikit-learn classifier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mipfs.data.instance import Instance, Row
from mipfs.data.stacked import features_among, scatter_weights, stack_instances, unstack_weights
from mipfs.errors import UsageError
from mipfs.estimators.allowed import names_of, over_weights
from mipfs.estimators.atoms import AtomClassifier, FittedAtoms, fitted_atoms
from mipfs.estimators.base import at_most, solve_problem
from mipfs.estimators.probable import CalibratedMixin
from mipfs.estimators.refit import refit, refit_bounded
from mipfs.estimators.samples import keep_parameters
from mipfs.estimators.signs import signs
from mipfs.plumbing.arrays import mask_of
from mipfs.problem import Problem
from mipfs.shared import shared_problem


class FSPClassifier(CalibratedMixin, AtomClassifier):
    """Linear SVM on the best features, with a proof.

        min over σ ∈ {0,1}ᵖ, w, b of  Σ λ_j σ_j + ½ Σ w_j²/σ_j + L(y∘(Xw + b))   s.t.  Σ σ_j ≤ M

    (Aytug 2015, FSP-M and FSP-λ). More than two classes are fitted one against the rest, each with its own M features.

    Parameters
    ----------
    M : int >= 0 or None, default 5
        At most M features, or whatever `atoms` are, per class. A number above theirs stands for it, None for no limit.
    lam : float, (p,) array-like, or mapping of feature name to float, >= 0, default 0
        Fixed cost of selecting a feature (λ).
    C : float > 0, default 1
        Loss weight.
    loss : {"hinge", "squared-hinge", "logistic"}, default "hinge"
        max(0, 1 − m), ½ max(0, 1 − m)² or log(1 + e⁻ᵐ) of the margin m. LinearSVC's squared hinge has no ½: its C is
        half of this one.
    bias : bool, default True
        Whether there is an (unpenalised) intercept.
    driver : str or None, default None
        The driver that solves it, see `mipfs.solve`; None for the best one.
    gap : float in [0, 1), default 1e-4
        Relative gap at which the selection counts as optimal.
    time_limit : float or None, default 60
        Seconds per binary problem, after which the best classifier so far is kept, with its gap, and a
        `ConvergenceWarning` is given. None: as long as the proof takes. A limit that strikes makes the outcome
        depend on the machine's speed; without it, the same data give the same bytes.
    scale : {"none", "standard", "unit"}, default "none"
        How columns are scaled before the fit (samples count by their weight, not by that of their class); sparse data
        stay sparse.
        `coef_` is on the scale of X.
    class_weight : mapping of class to float > 0, "balanced" or None, default None
        Multiplies the weight of the samples of a class, in every binary problem. "balanced" is
        n/(K·n_k), with the samples counted by their weights.
    rows : sequence of mipfs.Row, (A, lb, ub), or None, default None
        Linear rows over the selection, ``lb <= A sigma <= ub`` or rows by name (``Row("not both", {"age": 1, "sex": 1},
        -inf, 1)``; a 0-based position will do for a name). They hold for the binary selection.
    forced_in, forced_out : sequence of names or 0-based positions, or None, default None
        What must be selected, and what must not.
    cost : mapping of name to float >= 0, (p,) array-like, or None, default None
    budget : float or None, default None
        Σ cost_j σ_j ≤ budget. All four hold for every class where there are more than two.
    atoms : str, atoms or None, default None
        What is selected, as in `mipfs.Problem`: None: single features. A name, such as "groups" (whole groups, which
        ``atom_options={"groups": ...}`` gives: name to features, lists, or a label per feature), "pairs" (squares and
        products of features), "splines" (a function of each feature): see `mipfs.atoms.registry.KINDS`. Or atoms that
        were made on data with the same features. `M`, `lam`, rows and costs are about them.
    atom_options : mapping or None, default None
        Of the atoms of that name, such as ``{"knots": 7}``.
    monotonic_cst : (p,) array-like of -1, 0 and 1, mapping of name or position to these, or None, default None
        1: more of the feature can only raise f, and with it speak for ``classes_[1]``; -1: only lower it. Of single
        features or groups. Of more than two classes a mapping of class to these, each about the f of its class.
    positive : bool, default False
        Whether no weight is below 0, of any class.
    weight_rows : sequence of ({name or position: coefficient}, lower, upper), or None, default None
        Rows over the weights, on the scale of X, ``lower <= sum of coefficient times weight <= upper`` with
        ``lower <= 0 <= upper`` (`mipfs.weight_rows`), of single features and groups. They hold for every class where
        there are more than two, and not with `shared_support`.
    probability : bool, default False
        Whether `predict_proba` is calibrated on the scores of five folds, five fits more; the logistic loss needs none.
    pool_gap, pool_size : float in [0, 1) and int, or None, default None
        Find all supports within this relative gap of the optimum, the best `pool_size` supports, or with both the
        best of those: ``result_.near_optimal``.
    start : sequence of names or 0-based positions, or None, default None
        A selection to begin from.
    shared_support : bool, default False
        Whether all of more than two classes have one selection of at most M features, which each counts once. The
        sum of their objectives is then proven as one problem, ``result_``, and with `bias` every class has an
        intercept that is penalised as a weight of the scaled data is.
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
        The selected features; for more than two classes those of any class (``result_[k].selected`` names each
        class's own).
    atoms_ : (m,) ndarray of str
        The names of the selected atoms; for more than two classes those of any class.
    result_ : Result, or list of K Results for more than two classes without `shared_support`
        Objective, bound, gap, trace and status. Features without a name are called x1, x2, ... there.
    n_iter_ : int
        Iterations of the driver, the largest of all classes.
    n_features_in_ : int, columns of X
    feature_names_in_ : ndarray of str, the names of these columns, where X had names
    columns_ : (p,) ndarray of str, where X had columns of words
        The names of the columns of `coef_` and `support_`, in which ``column=word`` stands for a column of words.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from mipfs import FSPClassifier
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> model = FSPClassifier(M=1, C=0.01, scale="standard").fit(X, y)
    >>> [str(name) for name in model.get_feature_names_out()], model.result_.status.name
    (['worst concave points'], 'OPTIMAL')
    """

    def __init__(
        self,
        M: int | None = 5,
        *,
        lam: float | Sequence[float] | Mapping[str, float] = 0.0,
        C: float = 1.0,
        loss: str = "hinge",
        bias: bool = True,
        driver: str | None = None,
        gap: float = 1e-4,
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
        pool_gap: float | None = None,
        pool_size: int | None = None,
        start: Sequence[str | int] | None = None,
        shared_support: bool = False,
        verbose: bool | int = False,
        unknown: str = "refuse",
        impute: Any = None,
        types: Mapping[str, str] | None = None,
    ) -> None:
        keep_parameters(self, locals())

    def _is_shared(self) -> bool:
        return bool(self.shared_support) and self.classes_.size > 2

    def _proven_instances(self, instances: list[Instance]) -> list[Instance]:
        return [stack_instances(self._signed_instances(instances), self.bias)] if self._is_shared() else instances

    def _signed_instances(self, instances: list[Instance]) -> list[Instance]:
        """The data of all classes with the signs of each; the first has rows of the groups that are forced."""
        first, *others = (
            replace(one, weight_bounds=signs(self.monotonic_cst, self.positive, one, self.classes_))
            for one in instances
        )
        asked = self._forced(first).items()
        rows = [Row.forced(what, name) for what, names in asked for name in names if name not in first.index]
        return [replace(first, rows=(*first.rows, *rows)), *others]

    def _forced(self, data: Instance) -> dict[str, tuple[str, ...]]:
        """What is forced in and out, features and columns of words by name."""
        known = {**data.groups, **data.index}
        given = {"forced_in": self.forced_in, "forced_out": self.forced_out}
        return {what: names_of(names, data.feature_names, what, known) or () for what, names in given.items()}

    def _fit_together(self, instances: list[Instance]) -> list[Any]:
        """All classes as one problem, where they share their support."""
        if not self._is_shared():
            return []
        self._refuse_for_shared()
        names = instances[0].feature_names
        given = {"M": at_most(self.M, len(names)), "C": self.C, "lam": self.lam, "loss": self.loss, "bias": self.bias}
        index = instances[0].index
        for what, asked in self._forced(instances[0]).items():
            if features := tuple(name for name in asked if name in index):
                given[what] = features
        problem = shared_problem(self._signed_instances(instances), **given)
        result, n_iter = solve_problem(problem, self.driver, self)
        chosen = problem.atoms.columns(np.sort(np.array(problem.atoms_of([*result.selected]), dtype=np.int64))).ids
        if problem.weight_bounds:
            used, w, _ = refit_bounded(problem, chosen, np.ones(chosen.size))
        else:
            used, w, _ = refit(problem.data, chosen, problem.loss, problem.C, False)  # to full precision, as all are
        columns = problem.data.feature_names
        exact = {columns[j]: float(value) for j, value in zip(used.tolist(), w, strict=True)}
        ids = np.array([instances[0].index[name] for name in features_among(result.selected)], dtype=np.int64)
        support = mask_of(len(names), ids)
        ones = np.ones(ids.size)
        return [
            FittedAtoms(result, support, scatter_weights(weights, data), b, n_iter, ids, ones, names, None)
            for data, (weights, b) in zip(instances, unstack_weights(instances, exact), strict=True)
        ]

    def _refuse_for_shared(self) -> None:
        """Refuse what a shared support does not take."""
        absent = ("rows", "cost", "budget", "atoms", "atom_options", "pool_gap", "pool_size", "start", "weight_rows")
        odd = [key for key in absent if getattr(self, key) is not None]
        if odd:
            raise UsageError(f"shared_support takes no {odd[0]}; leave one of the two out")
        if not isinstance(self.lam, (int, float)):
            raise UsageError("shared_support takes one number for lam")

    def _store_fits(self, fits: list[Any]) -> None:
        super()._store_fits(fits)
        if self._is_shared():
            self.result_ = fits[0].result

    def _fit_binary(self, data: Instance) -> FittedAtoms:
        atoms = self._make_atoms(data)
        problem = Problem(
            data,
            loss=self.loss,
            bias=self.bias,
            M=at_most(self.M, atoms.count),
            C=self.C,
            lam=self.lam,
            atoms=atoms,
            weight_bounds=self._sign_bounds(data, atoms),
            weight_rows=over_weights(self.weight_rows, data),
            **self._selection_parameters(atoms.names, data.groups if atoms.kind == "features" else {}),
        )
        start = names_of(self.start, atoms.names, "start")
        given = {"pool_gap": self.pool_gap, "pool_size": self.pool_size, "start": start}
        options = {name: value for name, value in given.items() if value is not None}
        found = solve_problem(problem, self.driver, self, **options)
        return fitted_atoms(problem, found, everything=False)
