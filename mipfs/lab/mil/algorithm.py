"""Multiple-instance learning for a multivariate measure (Mao 2013, Algorithm 3).

    Step 1  embed every bag into its similarities to the training rows, the candidate concepts      (26), (27)
    Step 2  select at most M of the concepts for the measure, by Algorithm 2
    Step 3  f(B) = Σ_k w_k s(z_k, B) over the selected concepts; a bag is positive where f > 0        (28)

The structural loss has no bias, so neither has f.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from mipfs.data.frames import as_frame, is_frame
from mipfs.data.instance import Instance, Labels
from mipfs.drivers import solve
from mipfs.errors import DataError, UsageError
from mipfs.lab.mil.bags import Bags
from mipfs.lab.mil.miles import Miles, mean_distance
from mipfs.lab.sketch.margin import store_columns
from mipfs.plumbing.arrays import Array, Integers, scatter
from mipfs.plumbing.declared import Natural, check_arguments
from mipfs.problem import Problem
from mipfs.result.result import Result


@dataclass(frozen=True, eq=False)
class BagClassifier:
    """What Algorithm 3 returns.

    Attributes
    ----------
    result : Result
        Of the selection among the concepts; concept x<k> is row k of the training data, counted from 1.
    rows : (m,) rows of the training data, from 0, that are the concepts of `miles`
    weights : (m,) their weights
    miles : Miles
        The embedding into the similarities to the selected concepts (with ``nearest``: to all of them).
    labels : Labels
    feature_names : sequence of p str, of the columns in training
    """

    result: Result
    rows: Integers
    weights: Array
    miles: Miles
    labels: Labels
    feature_names: Sequence[str]

    def decision_function(self, X: Any, bags: Any = None) -> Array:
        """f of every bag, in the order of their sorted names, shape (B,).

        Parameters
        ----------
        X : Instance with bags, data frame, or (n, p) array-like or sparse matrix on the user's scale
            Of a data frame the columns of training, by name.
        bags : (n,) array-like, the bag of every row; for an Instance its own

        Raises
        ------
        DataError, UsageError
            No bags, not one per row, or other columns than in training.
        """
        if isinstance(X, Instance):
            return bag_values(self.miles, self.weights, user_values(X), own_bags(X))
        X = as_frame(X)
        if is_frame(X):
            X = self._by_name(X)
        if bags is None:
            raise UsageError("bags is missing: give the name of every row's bag")
        X = X if sparse.issparse(X) else np.asarray(X, dtype=float)
        return bag_values(self.miles, self.weights, X, Bags.of(bags, X.shape[0]))

    def _by_name(self, frame: Any) -> Any:
        """The columns of training (n, p) of a data frame."""
        names = [str(name) for name in frame.columns]
        absent = [name for name in self.feature_names if name not in names]
        if absent:
            raise UsageError(f"the data frame has no column {absent[0]!r}, which the classifier was trained with")
        return frame.iloc[:, [names.index(name) for name in self.feature_names]]

    def predict(self, X: Any, bags: Any = None) -> npt.NDArray[Any]:
        """The label of every bag, as `decision_function` has them, shape (B,)."""
        return self.labels.of(self.decision_function(X, bags))


@check_arguments
def solve_bags(
    data: Instance,
    *,
    measure: str = "f1",
    M: Natural | None = 10,
    C: float = 100.0,
    beta: float | None = None,
    k: int | None = None,
    width: float | None = None,
    nearest: int | None = None,
    driver: str = "two_layer",
    **options: Any,
) -> BagClassifier:
    """Learn to label bags (Mao 2013, Algorithm 3).

    Parameters
    ----------
    data : Instance with bags
    measure, beta, k
        What the bags are labelled for, see `mipfs.Problem`.
    M : int >= 0 or None
        At most M concepts; more than there are rows stands for all.
    C : float > 0
    width : float > 0, optional
        Of the similarity, in the instance's scaling; the root of the mean squared distance of two rows by default.
    nearest : int >= 1, optional
        Number of nearest concepts to which a bag is similar; its similarity to all others is 0.
    driver : str
        "two_layer" solves the convex relaxation and rounds; "gbd" and "branch" prove the best M concepts.
    **options
        Of the driver, such as ``gap`` and ``time_limit``.

    Raises
    ------
    DataError
        No bags, or bags of one class only.
    UsageError
        A parameter out of its range, or no classifier before a limit.
    """
    bag_data, miles = embedded(data, width=width, nearest=nearest)
    M = M if M is None else min(M, bag_data.n_features)
    problem = Problem(bag_data, loss="structural", bias=False, M=M, C=C, measure=measure, beta=beta, k=k)
    result = solve(problem, driver, **options)
    if not result.has_classifier:
        raise UsageError(f"no classifier was found: stopped by {result.stop_reason.name}; give more time")
    weights = weights_of(result, bag_data.n_features)
    rows = needed_concepts(weights[None, :], nearest)
    return BagClassifier(result, rows, weights[rows], restrict_concepts(miles, rows), data.labels, data.feature_names)


@check_arguments
def embedded(data: Instance, *, width: float | None = None, nearest: int | None = None) -> tuple[Instance, Miles]:
    """The bags of an instance as samples, with a feature for every row: for any loss and driver.

    Parameters
    ----------
    data, width, nearest
        As in `solve_bags`.

    Returns
    -------
    Instance
        (B, n): a sample per bag, in the order of their sorted names; feature x<k> is the similarity to row k, from 1.
    Miles
        The embedding, for new bags.

    Raises
    ------
    UsageError
        Sample weights, or rows, forced features, M or penalties of the data, which are not about concepts.
    """
    bags = own_bags(data)
    X = user_values(data)
    asked = data.select
    if np.any(data.sample_weight != 1.0):
        raise UsageError("a bag has no weight of its own; leave the sample weights out")
    if data.rows or data.penalty or asked.forced_in or asked.forced_out or asked.M is not None:
        raise UsageError("the data's rows, forced features, M and penalties are about features, not about concepts")
    codes = bags.classes((data.y > 0).astype(np.int64), np.array([data.labels.negative, data.labels.positive]))
    miles = Miles(X, mean_distance(X, data.scale) if width is None else width, data.scale, nearest)
    y = np.where(codes > 0, 1.0, -1.0)
    return Instance.from_arrays(miles(X, bags), y, labels=data.labels, source=data.source), miles


def own_bags(data: Instance) -> Bags:
    """The bags of an instance.

    Raises
    ------
    DataError
        It has none.
    """
    if data.bags is None:
        raise DataError(
            "the data have no bags",
            "give every row its bag, by qid: in svmlight or in a column called 'bag'",
            path=data.source or None,
        )
    return Bags.of(data.bags, data.n_samples)


def user_values(data: Instance) -> Any:
    """The matrix of an instance on the user's scale, stored as the instance stores it; a column store's in memory."""
    X = store_columns(data).values
    if data.scaling == "none":
        return X
    if data.is_sparse and np.any(data.shift):  # of which some columns are shifted, and some are centred implicitly
        return data.unscaled_of(np.arange(data.n_features))
    return X @ sparse.diags_array(data.scale) if data.is_sparse else X * data.scale + data.shift


def weights_of(result: Result, count: int) -> Array:
    """The weights of a result on all `count` concepts."""
    found: Mapping[str, float] = result.weights
    return scatter(count, [result.columns[name] for name in found], list(found.values()))


def needed_concepts(weights: Array, nearest: int | None) -> Integers:
    """The concepts that a prediction needs: those with a weight (K, n) in any row; all where the nearest are asked."""
    if nearest is not None and nearest < weights.shape[1]:
        return np.arange(weights.shape[1], dtype=np.int64)
    return np.flatnonzero(np.any(weights != 0.0, axis=0)).astype(np.int64)


def restrict_concepts(miles: Miles, rows: Integers) -> Miles:
    """The embedding into some of its concepts."""
    nearest = miles.nearest if rows.size == miles.concepts.shape[0] else None
    return Miles(miles.concepts[rows], miles.width, miles.scale, nearest)


def bag_values(miles: Miles, weights: Array, X: Any, bags: Bags) -> Array:
    """f of every bag, shape (B,) or, for weights (m, K), (B, K)."""
    return np.asarray(miles(X, bags) @ weights)
