"""BSSSelector and LeverageSelector: columns chosen with a guarantee (Paul 2016), as scikit-learn selectors."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted

from mipfs.data.frames import as_frame
from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.estimators.samples import binary_instances, check_parameters, keep_parameters, scikit_errors, validated
from mipfs.lab.sketch.margin import HingeSolution, solve_svm
from mipfs.lab.sketch.select import Choice, Sketch, choose
from mipfs.plumbing.arrays import Array, Integers, mask_of, scatter


class SketchSelector(SelectorMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the selectors: fits without labels, or by the support vectors of one SVM per class against the rest."""

    r: Any
    supervised: Any
    rank: Any
    C: Any
    bias: Any
    scale: Any
    rescale: Any
    check: Any
    epsilon: Any
    random_state: Any

    @abstractmethod
    def _choice_of_parameters(self) -> Choice:
        """The parameters of the choice."""

    def _choice_by_method(self, method: str, projections: int | None = None) -> Choice:
        """Those by a method."""
        seed, check = self.random_state, self.check
        return Choice(method, self.r, self.rank, projections, self.C, self.bias, seed, check, self.epsilon)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose the columns.

        Parameters
        ----------
        X : (n, p) array-like, data frame or sparse matrix
        y : (n,) array-like of class labels, optional
            Needed where `supervised`; otherwise two classes, where there are two, only say whose margin is measured.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            Bad data, or a parameter out of its range.
        """
        with scikit_errors():
            X = as_frame(X)
        if y is None:
            X = validated(self, X, accept_sparse="csc", dtype=np.float64, order="F")
        else:
            X, y = validated(self, X, y, accept_sparse="csc", dtype=np.float64, order="F")
        with scikit_errors():
            check_parameters(self)
            how = self._choice_of_parameters()
            if self.supervised:
                data, rows, solved = self._support_vectors(X, y, how)
                self._keep(data, choose(data, how, rows=rows, solved=solved))
            else:
                two = y is not None and type_of_target(y) == "binary" and np.unique(y).size == 2
                data = self._instances(X, y)[0] if two else self._strip_labels(X)
                self._keep(data, choose(data, how))
        return self

    def _support_vectors(self, X: Any, y: Any, how: Choice) -> tuple[Instance, Integers, HingeSolution | None]:
        """The data, and the support vectors of any class: what holds for all of them holds for each class's own."""
        if y is None:
            raise UsageError("supervised=True requires y to be passed, but the target y is None")
        check_classification_targets(y)
        instances = self._instances(X, y)
        solved = [solve_svm(one, how.C, how.bias) for one in instances]
        if len(instances) == 1:
            return instances[0], solved[0].support, solved[0]
        return self._strip_labels(X), np.unique(np.concatenate([one.support for one in solved])), None

    def _instances(self, X: Any, y: Any) -> list[Instance]:
        classes, codes = np.unique(y, return_inverse=True)
        return binary_instances(
            X, codes, classes, scale=self.scale, sample_weight=None, class_weight=None, feature_names=self._names()
        )

    def _strip_labels(self, X: Any) -> Instance:
        unknown = np.full(X.shape[0], np.nan)
        return Instance.from_arrays(X, unknown, feature_names=self._names(), scale=self.scale, training=False)

    def _names(self) -> list[str] | None:
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else [str(name) for name in names]

    def _keep(self, data: Instance, sketch: Sketch) -> None:
        """Store what was chosen, in scikit-learn's shapes."""
        p = self.n_features_in_
        self.sketch_ = sketch
        self.guarantee_ = sketch.guarantee
        self.support_ = mask_of(p, sketch.ids)
        self.rescaling_ = scatter(p, sketch.ids, sketch.rescaling / data.scale[sketch.ids])
        self.repeats_ = np.zeros(p, dtype=np.int64)
        self.repeats_[sketch.ids] = sketch.repeats

    def __sklearn_is_fitted__(self) -> bool:
        """Whether a fit came to its end, which sets `repeats_` last."""
        return hasattr(self, "repeats_")

    def _get_support_mask(self) -> npt.NDArray[np.bool_]:
        check_is_fitted(self)
        return self.support_

    def transform(self, X: Any) -> Any:
        """The chosen columns of X, shape (n, k); with ``rescale=True`` each times its entry of `rescaling_`.

        Parameters
        ----------
        X : (n, p) array-like, data frame or sparse matrix
        """
        check_is_fitted(self)
        with scikit_errors():
            X = as_frame(X)
        chosen = super().transform(X)
        return self._scale_columns(chosen, self.rescaling_[self.support_]) if self.rescale else chosen

    def inverse_transform(self, X: Any) -> Any:
        """The columns in their places, shape (n, p), zeros elsewhere; ``rescale=True`` is undone."""
        check_is_fitted(self)
        if self.rescale:
            X = self._scale_columns(X, 1.0 / self.rescaling_[self.support_])
        return super().inverse_transform(X)

    @staticmethod
    def _scale_columns(X: Any, factors: Array) -> Any:
        if sparse.issparse(X):
            return X @ sparse.diags_array(factors.astype(X.dtype, copy=False))
        if isinstance(X, np.ndarray) and X.dtype.kind == "f":
            factors = factors.astype(X.dtype, copy=False)
        return X * factors

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = self.supervised is True
        return tags


class BSSSelector(SketchSelector):
    """Columns that keep margin and radius, chosen deterministically (BSS, Paul 2016).

    r picks, with repeats, of the columns of X leave every eigenvalue of V'DD'V between (1 − √(rank/r))² and
    (1 + √(rank/r))², so that the squared margin of a linear SVM and the squared radius of the data lie, on the rescaled
    columns, between the same multiples of what they were. No labels are needed.

    Parameters
    ----------
    r : int above the rank, or None, default None
        Picks; None: four times the rank, which leaves a quarter of the squared margin at least. At most r columns are
        chosen.
    supervised : bool, default False
        Choose by the support vectors of the SVM on all features: fewer picks will do, and the promise is about the
        margin of the support vectors alone. For more than two classes by those of any class against the rest.
    rank : int or None, default None
        Of the singular directions the leading ones only; the guarantee then says nothing of the others.
    projections : int or None, default None
        Approximate BSS: number of Gaussian projections of the rows, whose singular vectors stand for those of X.
    C : float > 0, default 1
    bias : bool, default True
        The hinge SVM whose support vectors and margin are meant.
    rescale : bool, default False
        Whether `transform` multiplies the columns by `rescaling_`: the guarantee is about these.
    scale : {"none", "standard", "unit"}, default "none"
        How columns are scaled before they are chosen; `rescaling_` is on the scale of X.
    check : bool, default True
        Whether the guarantee is measured, by two to four SVMs and two enclosing balls.
    epsilon : float in (0, 1) or None, default None
        In place of r: the fewest picks that promise squared margin and radius to within this share.
    random_state : int >= 0, default 0
        Of the projections.

    Attributes
    ----------
    support_ : (p,) ndarray of bool
    rescaling_ : (p,) ndarray
        What every chosen column is multiplied by, its scaling included (centring apart, which an intercept takes up).
    repeats_ : (p,) ndarray of int, how often each was picked
    guarantee_ : mipfs.lab.sketch.guarantee.Guarantee
        What was promised and measured; `guarantee_.warnings` says what it does not cover.
    sketch_ : mipfs.lab.sketch.Sketch
    n_features_in_ : int
    feature_names_in_ : (p,) ndarray of str, where X had names

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from mipfs import BSSSelector
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> selector = BSSSelector(rank=5, r=12, scale="standard").fit(X, y)
    >>> selector.transform(X).shape[1] <= 12 and selector.guarantee_.epsilon <= selector.guarantee_.promised.epsilon
    True
    """

    def __init__(
        self,
        r: int | None = None,
        *,
        supervised: bool = False,
        rank: int | None = None,
        projections: int | None = None,
        C: float = 1.0,
        bias: bool = True,
        rescale: bool = False,
        scale: str = "none",
        check: bool = True,
        epsilon: float | None = None,
        random_state: int = 0,
    ) -> None:
        keep_parameters(self, locals())

    def _choice_of_parameters(self) -> Choice:
        return self._choice_by_method("bss" if self.projections is None else "approx-bss", self.projections)


class LeverageSelector(SketchSelector):
    """Columns drawn by their leverage scores (Paul 2016; Dasgupta et al. 2007).

    r independent draws with probability ‖v_j‖²/rank. With probability 99% they keep the squared margin and the squared
    radius up to the ε of `guarantee_.promised`, where r is large enough; the measured ε says what these draws did.

    Parameters
    ----------
    r : int >= 1, or None, default None
        Draws; None: four times the rank. At most r columns are chosen.
    supervised, rank, C, bias, rescale, scale, check, epsilon
        As those of `BSSSelector`.
    random_state : int >= 0, default 0
        Of the draws.

    Attributes
    ----------
    support_, rescaling_, repeats_, guarantee_, sketch_, n_features_in_, feature_names_in_
        As those of `BSSSelector`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from mipfs import LeverageSelector
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> LeverageSelector(r=12, scale="standard", random_state=1).fit_transform(X, y).shape[1] <= 12
    True
    """

    def __init__(
        self,
        r: int | None = None,
        *,
        supervised: bool = False,
        rank: int | None = None,
        C: float = 1.0,
        bias: bool = True,
        rescale: bool = False,
        scale: str = "none",
        check: bool = True,
        epsilon: float | None = None,
        random_state: int = 0,
    ) -> None:
        keep_parameters(self, locals())

    def _choice_of_parameters(self) -> Choice:
        return self._choice_by_method("leverage")
