"""MILClassifier: bags of rows, labelled for a multivariate measure (Mao 2013, Algorithm 3), for scikit-learn."""

from __future__ import annotations

from typing import Any, Self, cast

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from mipfs.data.frames import as_frame
from mipfs.data.instance import SCALINGS, Instance
from mipfs.data.matrix import as_matrix, scale_columns
from mipfs.errors import UsageError
from mipfs.estimators.base import FittedProblem, solve_problem
from mipfs.estimators.measure import REFIT_GAP, check_keep, constant_of, problem_of, sigma_of
from mipfs.estimators.samples import binary_instances, check_parameters, keep_parameters, scikit_errors
from mipfs.lab.baselines.structural_svm import at_relaxation
from mipfs.lab.mil.algorithm import bag_values, needed_concepts, weights_of
from mipfs.lab.mil.bags import Bags
from mipfs.lab.mil.miles import Miles, mean_distance
from mipfs.plumbing.arrays import Array, scatter


class MILClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Labels bags of rows by their similarities to at most M of the training rows, chosen for a measure.

        f(B) = Σ_k w_k max over x in B of exp(−‖x − z_k‖²/width²)  (+ b with `fit_intercept`)

    (MILES, with the concepts z_k selected for a multivariate measure: Mao 2013, Algorithm 3). Of two classes the last
    is the positive one, and **a bag is positive when one of its rows is**. More than two classes are fitted one
    against the rest, each with its own concepts; a bag must then have one class.

    X and y have a row per instance, and `bags` says which rows belong together. What is predicted has an entry per
    **bag**, in the order of the bags' sorted names (`numpy.unique(bags)`). Without `bags` every row is a bag.
    For grids and cross-validation `bags` is metadata that scikit-learn routes, see Examples.

    Parameters
    ----------
    M : int >= 0 or None, default 10
        At most M concepts (per class). A number above that of the rows stands for it, None for no limit.
    measure : str, default "f1"
        What the bags are labelled for: one of `mipfs.measures.MEASURES`.
    C : float > 0, default 100
        Weight of the loss, which lies in [0, 1] for all bags together.
    beta : float > 0, optional
        Of the measure "fbeta".
    k : int, optional
        Of "precision-at-k" and "recall-at-k"; by default the number of positive bags.
    width : float > 0 or None, default None
        Of the similarity, on the scaled columns. None: the root of the mean squared distance between two rows.
    nearest : int >= 1 or None, default None
        Number of nearest concepts to which a bag's similarities are kept: the embedding becomes sparse, but all
        training rows are kept for predictions.
    scale : {"none", "standard", "unit"}, default "none"
        How columns are scaled before distances are taken.
    driver : str, default "two_layer"
        "two_layer" solves the convex relaxation and rounds; "gbd" and "branch" prove the best M concepts.
    keep : {"M", "all"}, default "M"
        "all": every concept that the relaxation uses, with its own weights; of the driver "two_layer" alone.
    gap : float in [0, 1), default 1e-3
        Relative gap at which the driver stops.
    time_limit : float or None, default 60
        Seconds per binary problem, after which what was found is kept, with a `ConvergenceWarning`.
    fit_intercept : bool, default False
        The paper's f has no intercept. True adds a constant concept, which is always selected, does not count among
        the M, and whose weight is penalised as any other.
    intercept_scaling : float > 0, default 1
        The value of the constant concept: the larger, the less the intercept is penalised.
    verbose : bool or int, default False
        Whether incumbent, bound and gap are printed on standard error while it fits, twice a second at most.

    Attributes
    ----------
    classes_ : (K,) ndarray
    concept_rows_ : (m,) ndarray of int
        Rows of the training data that are concepts with a weight (with `nearest`: all rows).
    concepts_ : (m, p) ndarray or sparse array, these rows
    coef_ : (1, m) or (K, m) ndarray, the weights
    intercept_ : (1,) or (K,) ndarray, zeros without `fit_intercept`
    width_ : float
    result_ : Result, or list of K Results for more than two classes
        Row i of the training data is called x<i + 1> there.
    n_iter_ : int
        Iterations of the driver, the largest of all classes.
    n_features_in_ : int
    feature_names_in_ : (p,) ndarray of str, where X had names

    Examples
    --------
    >>> import numpy as np
    >>> from mipfs import MILClassifier
    >>> X = np.array([[0.0], [5.0], [0.2], [0.1], [5.1], [0.3]])
    >>> bags, y = ["a", "a", "b", "b", "c", "d"], [1, 1, 0, 0, 1, 0]
    >>> model = MILClassifier(M=2).fit(X, y, bags=bags)
    >>> model.predict([[4.9], [0.0], [0.1]], bags=["new", "new", "other"])
    array([1, 0])

    With ``sklearn.set_config(enable_metadata_routing=True)``::

        model = MILClassifier().set_fit_request(bags=True).set_score_request(bags=True)
        search = GridSearchCV(model, {"M": [5, 10]}, cv=GroupKFold())
        search.fit(X, y, bags=bags, groups=bags)
    """

    def __init__(
        self,
        M: int | None = 10,
        *,
        measure: str = "f1",
        C: float = 100.0,
        beta: float | None = None,
        k: int | None = None,
        width: float | None = None,
        nearest: int | None = None,
        scale: str = "none",
        driver: str = "two_layer",
        keep: str = "M",
        gap: float = 1e-3,
        time_limit: float | None = 60.0,
        fit_intercept: bool = False,
        intercept_scaling: float = 1.0,
        verbose: bool | int = False,
    ) -> None:
        keep_parameters(self, locals())

    def fit(self, X: Any, y: Any, bags: Any = None) -> Self:
        """Fit.

        Parameters
        ----------
        X : (n, p) array-like, data frame or sparse matrix, a row per instance
        y : (n,) array-like of class labels, at least two of them
        bags : (n,) array-like of integers or strings, the bag of every row; None: every row is a bag

        Returns
        -------
        self

        Raises
        ------
        ValueError
            Bad data, bags of one class only, or a parameter out of its range.

        Warns
        -----
        ConvergenceWarning
            A limit stopped a driver before its gap was closed; `result_` says how large it is.
        """
        with scikit_errors():
            X = as_frame(X)
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        with scikit_errors():
            check_parameters(self)
            if self.classes_.size < 2:
                raise UsageError(f"y holds one class only, {self.classes_.tolist()[0]!r}; give two at least")
            grouped = Bags.of(bags, X.shape[0])
            labels = grouped.classes(codes, self.classes_)
            self.scale_ = self._column_divisors(X)
            self.width_ = mean_distance(X, self.scale_) if self.width is None else self.width
            embedded = Miles(X, self.width_, self.scale_, self.nearest)(X, grouped)
            instances = binary_instances(
                embedded,
                labels,
                self.classes_,
                scale="none",
                sample_weight=None,
                class_weight=None,
                feature_names=None,
            )
            constant = constant_of(self.fit_intercept, self.intercept_scaling)
            fits = [self._fit_binary(data, constant) for data in instances]
            weights = np.array([fitted.coef for fitted in fits])
            self.intercept_ = np.array([fitted.intercept for fitted in fits])
            self.concept_rows_ = needed_concepts(weights, self.nearest)
        self.concepts_ = X[self.concept_rows_]
        self.coef_ = weights[:, self.concept_rows_]
        self.result_ = fits[0].result if len(fits) == 1 else [fitted.result for fitted in fits]
        self.n_iter_ = max(fitted.n_iter for fitted in fits)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        """Whether a fit came to its end, which sets `n_iter_` last."""
        return hasattr(self, "n_iter_")

    def _column_divisors(self, X: Any) -> Array:
        """What the columns are divided by."""
        if self.scale not in SCALINGS:
            raise UsageError(f"scale = {self.scale!r} is unknown; it is one of {', '.join(SCALINGS)}")
        return np.array(scale_columns(as_matrix(X), self.scale)[3])

    def _fit_binary(self, data: Instance, constant: float) -> FittedProblem:
        check_keep(self.keep, self.driver)
        asked: dict[str, Any] = {"beta": self.beta, "k": self.k}
        problem = problem_of(data, self.measure, self.M, self.C, constant, **asked)
        result, n_iter = solve_problem(problem, self.driver, self)
        weights, intercept = weights_of(result, data.n_features), result.intercept
        if self.keep == "all":
            found = at_relaxation(data, sigma_of(result), problem.C, self.measure, constant, tol=REFIT_GAP, **asked)
            weights, intercept = scatter(data.n_features, found.ids, found.w), found.b
        return FittedProblem(result, weights != 0.0, weights, intercept, n_iter)

    def decision_function(self, X: Any, bags: Any = None) -> Array:
        """Values of f.

        Parameters
        ----------
        X : (n, p) array-like, data frame or sparse matrix
        bags : (n,) array-like, the bag of every row; None: every row is a bag

        Returns
        -------
        (B,) for two classes, where a value above 0 stands for ``classes_[1]``; (B, K) for more. Bags are in the order
        of their sorted names.
        """
        check_is_fitted(self)
        with scikit_errors():
            X = as_frame(X)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        every = self.nearest is not None and self.nearest < self.concept_rows_.size
        with scikit_errors():
            miles = Miles(self.concepts_, self.width_, self.scale_, self.nearest if every else None)
            values: Array = bag_values(miles, self.coef_.T, X, Bags.of(bags, X.shape[0])) + self.intercept_
        return values[:, 0] if self.classes_.size == 2 else values

    def predict(self, X: Any, bags: Any = None) -> npt.NDArray[Any]:
        """Predict the class of every bag, shape (B,); parameters and order as in `decision_function`."""
        values = self.decision_function(X, bags)
        best = (values > 0).astype(np.intp) if values.ndim == 1 else values.argmax(axis=1)
        return cast(npt.NDArray[Any], self.classes_[best])

    def score(self, X: Any, y: Any, bags: Any = None) -> float:
        """The share of bags that get their class.

        Parameters
        ----------
        X : (n, p) array-like, data frame or sparse matrix
        y : (n,) array-like, the class of every row, of those in training
        bags : (n,) array-like, the bag of every row; None: every row is a bag
        """
        return float(accuracy_score(self.bag_classes(y, bags), self.predict(X, bags)))

    def bag_classes(self, y: Any, bags: Any = None) -> npt.NDArray[Any]:
        """The class of every bag from those of its rows, shape (B,), to compare predictions with.

        Parameters
        ----------
        y : (n,) array-like, the class of every row, of those in training
        bags : (n,) array-like, the bag of every row; None: every row is a bag

        Raises
        ------
        ValueError
            A class that was not there in training, or a bag of two classes where there are more than two.
        """
        check_is_fitted(self)
        given = np.asarray(y)
        unknown = np.flatnonzero(~np.isin(given, self.classes_))
        if given.ndim != 1 or unknown.size:
            what = f"shape {given.shape}" if given.ndim != 1 else f"class {given.tolist()[unknown[0]]!r}"
            raise ValueError(f"y has {what}; give every row one of the classes {self.classes_.tolist()}")
        with scikit_errors():
            codes = Bags.of(bags, given.size).classes(np.searchsorted(self.classes_, given), self.classes_, False)
        return cast(npt.NDArray[Any], self.classes_[codes])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
