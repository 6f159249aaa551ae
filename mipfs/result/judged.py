"""How good a classifier is, and how sure: probabilities, and what it does on labelled data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from mipfs.data.unknown_words import Unknown

if TYPE_CHECKING:
    from mipfs.result.result import Result


class Judged:
    """What a result says of the classifier that it has."""

    def decision_function(self, X: Any, unknown: Unknown = "refuse") -> npt.NDArray[np.float64]:
        """Its scores, which a result computes."""
        raise NotImplementedError

    def predict_proba(self, X: Any, unknown: Unknown = "refuse") -> npt.NDArray[np.float64]:
        """Probabilities of the two classes, negative first, (n, 2): an estimate, which no proof covers.

        The logistic loss says them by itself, less the logarithm of the class weights' ratio; other losses after
        `mipfs.calibrate`. Parameters as of `decision_function`.

        Raises
        ------
        UsageError
            The loss says none and nothing was calibrated; see `decision_function`.
        """
        from mipfs.result.probability import probabilities

        positive = probabilities(cast("Result", self), self.decision_function(X, unknown))
        return np.column_stack([1.0 - positive, positive])

    def evaluate(self, X: Any, y: Any = None, positive: Any = None) -> dict[str, Any]:
        """How well the classifier does on labelled data: what `mipfs evaluate` prints, and writes as JSON.

        Parameters
        ----------
        X : Instance, data frame, or (n, p) array or sparse matrix
        y : (n,) array-like of the user's labels, optional
            Default: those of the Instance, or of the frame's column that held them in training.
        positive : optional, the class that precision, recall and F1 are about: the result's own by default

        Raises
        ------
        UsageError
            No labels, unknown ones, or see `decision_function`.
        """
        from mipfs.result.score import score, signs_of

        return score(cast("Result", self), X, positive, signs_of(cast("Result", self), X, y))

    def score(self, X: Any, y: Any = None) -> float:
        """The share of right labels; parameters as of `evaluate`."""
        return float(self.evaluate(X, y)["accuracy"])
