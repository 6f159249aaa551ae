"""What every baseline leaves: a linear classifier on few columns; and the search for a wanted number of them.

Also here: what `mipfs baselines` says of a method: a constant ``ABOUT`` in its file.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from mipfs.atoms.features import Features
from mipfs.data.instance import Instance
from mipfs.data.ranges import LARGEST_C, LEAST_C
from mipfs.errors import UsageError
from mipfs.inner.regularised import RegularisedSolver
from mipfs.losses import get_loss
from mipfs.plumbing.arrays import Array, Integers
from mipfs.plumbing.declared import NumberRange, Positive, check_value
from mipfs.problem import Problem
from mipfs.result.prediction import scores_on


@dataclass(frozen=True)
class BaselineDescription:
    """A baseline in words.

    Attributes
    ----------
    what : str, what it does, in a line
    source : str, the papers it is from
    sparse : str, whether it takes sparse data: "yes", "yes, not centred", "no", "made dense"
    limits : str, what it cannot take, or where it becomes slow
    library : str, who does the work
    uses_c : bool, whether the choice of features depends on C
    weighted : bool, whether it takes sample weights on any data
    grouped : bool, whether it selects the data's groups whole
    signed : bool, whether its weights keep the signs that the data's bounds on them are
    """

    what: str
    source: str = "-"
    sparse: str = "-"
    limits: str = "-"
    library: str = "-"
    uses_c: bool = True
    weighted: bool = True
    grouped: bool = False
    signed: bool = False


SEARCH_FACTOR = 4.0
"""Step in C until a wanted number of features is bracketed."""
MOST_FITS = 30
"""Fits of one search at most."""
NARROW_RATIO = 1e-3
"""Ratio of the two ends, less 1, at which the search gives up: no C has a number in between."""
LIBLINEAR_MOST = 1e30
"""Largest value that scikit-learn lets LIBLINEAR have."""
MOST_ORDER = 3_000
"""Largest order of a dense system that is solved over and over: some seconds a step."""


Weight = Annotated[float, NumberRange(LEAST_C, LARGEST_C)]


@dataclass(frozen=True, eq=False)
class Linear:
    """A linear classifier f(x) = w'x + b on some columns.

    Attributes
    ----------
    ids : (k,) int64, ascending positions of the columns
    w : (k,) weights on the user's scale
    b : float, on the user's scale
    C : float, the loss weight that it was fitted with
    objective : float, the value of the method's own problem; inf where it has none
    bound : float, an earned lower bound on that value; -inf where there is none
    """

    ids: Integers
    w: Array
    b: float
    C: float
    objective: float = math.inf
    bound: float = -math.inf

    def scores(self, data: Instance) -> Array:
        """f of every row of an instance with the same columns, shape (n,)."""
        return scores_on(data, self.ids, self.w, self.b)


def linear(data: Instance, ids: Integers, w: Array, b: float, C: float, **values: float) -> Linear:
    """A `Linear` from weights (k,) of the columns `ids` and an intercept on the scaled data."""
    order = np.argsort(ids)
    chosen = np.asarray(ids, dtype=np.int64)[order]
    weights = np.asarray(w, dtype=float)[order] / data.scale[chosen]
    return Linear(chosen, weights, float(b) - float(weights @ data.shift[chosen]), C, **values)


def liblinear_matrix(data: Instance, name: str) -> Any:
    """X as LIBLINEAR takes it: C order or CSR.

    Raises
    ------
    UsageError
        Sparse columns that are centred implicitly, or values that LIBLINEAR does not carry.
    """
    if data.is_sparse and np.any(data.center):
        raise UsageError(f"{name} cannot centre sparse columns; use scale 'unit' or 'none', or dense data")
    values = data.block().values
    X = values.tocsr() if data.is_sparse else np.ascontiguousarray(values)
    if max(float(X.max()), -float(X.min())) > LIBLINEAR_MOST:
        raise UsageError(
            f"{name} carries values up to {LIBLINEAR_MOST:g}; read the data with scale 'standard' or 'unit'"
        )
    return X


def fit_liblinear(
    data: Instance, model: Any, C: float, bias: bool, name: str, loss: Callable[[Array], Array]
) -> Linear:
    """A classifier of LIBLINEAR with an ℓ1 norm, which holds the intercept too, on its non-zero weights.

    Parameters
    ----------
    model : scikit-learn's, not fitted
    name : str, of the method, for messages
    loss : of margins (n,), (n,)
    """
    model.fit(liblinear_matrix(data, name), data.y, sample_weight=data.sample_weight)
    w, b = model.coef_[0], float(np.ravel(model.intercept_)[0]) if bias else 0.0
    lost = float(C * data.sample_weight @ loss(data.y * data.block().scores(w, b)))
    ids = np.flatnonzero(w)
    return linear(data, ids, w[ids], b, float(C), objective=float(np.abs(w).sum()) + abs(b) + lost)


def search_price(fit: Callable[[float], Linear], M: int, least: float) -> Linear:
    """The fit with the most features up to M, C from `least` on; LIBLINEAR's warnings are those of that fit alone."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # far beyond the wanted C
        found, _ = bracket(fit, int(M), 2.0 * least)
    return fit(least if found is None else found.C)  # the same, and warns


def check_size(M: int, p: int) -> None:
    """Refuse a number of features that there cannot be.

    Raises
    ------
    UsageError
    """
    if isinstance(M, bool) or not isinstance(M, (int, np.integer)) or not 1 <= M <= p:
        raise UsageError(f"M = {M!r} must be an integer from 1 to {p}, the number of features")


def check_weight(C: float) -> None:
    """Refuse a loss weight that is none.

    Raises
    ------
    UsageError
    """
    check_value("C", C, Positive)
    check_value("C", C, Weight)


def n_features(found: Linear) -> int:
    """How many features a classifier has."""
    return int(found.ids.size)


def bracket(
    fit: Callable[[float], Linear],
    M: int,
    start: float,
    count: Callable[[Linear], int] = n_features,
    most: float = math.inf,
) -> tuple[Linear | None, Linear | None]:
    """Fits around a wanted number of features along C, by bisection of log C.

    The number of features need not be monotone in C, and may jump over M: what is returned is the best that was met.

    Parameters
    ----------
    fit : fits at a value of C
    M : int >= 1
    start : float > 0, the first C
    count : what M counts, by default the features
    most : float, the largest C to try

    Returns
    -------
    below : the fit with the most features up to M; None where every one had more
    above : the fit with the fewest features beyond M; None where none had more
    """
    below: Linear | None = None
    above: Linear | None = None
    low = 0.0
    high = math.inf
    C = start
    for _ in range(MOST_FITS):
        found = fit(C)
        size = count(found)
        if size <= M:
            below = found if below is None or size >= count(below) else below
            low = C
        else:
            above = found if above is None or size <= count(above) else above
            high = C
        if size == M or (low > 0.0 and high <= low * (1.0 + NARROW_RATIO)):
            break
        if low >= most:
            break
        C = (
            C / SEARCH_FACTOR
            if low == 0.0
            else min(most, C * SEARCH_FACTOR)
            if math.isinf(high)
            else math.sqrt(low * high)
        )
    return below, above


def check_order(data: Instance, name: str, most: int | None = None) -> None:
    """Refuse data on which a method's SVMs would take dense systems that are too large.

    Parameters
    ----------
    name : str, of the method
    most : int, the largest order, `MOST_ORDER` by default; the order is the smaller of samples and features

    Raises
    ------
    UsageError
    """
    m = min(data.n_samples, data.n_features)
    most = MOST_ORDER if most is None else most
    if m > most:
        raise UsageError(
            f"{name} solves dense systems of order {m}: {8e-9 * m * m:.1f} GB and about {m**3 / 1e10:.0f} s a step "
            f"(at most {most}); give fewer samples or features, or take l1-svm or rfe"
        )


def plain_svm(data: Instance, ids: Integers, C: float, bias: bool, loss: str = "squared-hinge") -> Linear:
    """The SVM on the columns `ids`, with a free intercept or none, and the data's bounds on the weights."""
    if data.weight_bounds:
        problem = Problem(data, loss=loss, bias=bias, C=C, atoms=Features(data))
        bounded = RegularisedSolver(problem).solve(ids, tol=1e-9)
        return linear(data, ids, bounded.w, bounded.b, C)
    svm = get_loss(loss).Solver(data, C * data.sample_weight, bias).solve(ids, tol=1e-9)
    return linear(data, ids, svm.w, svm.b, C)
