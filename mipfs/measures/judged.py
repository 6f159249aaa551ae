"""How good scores are: what cross-validation chooses by, and benchmarks report, whatever loss the classifier was of."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.errors import UsageError
from mipfs.measures import MEASURES, get_measure, value

ACCURACY, BALANCED, LOG_LOSS = "accuracy", "balanced-accuracy", "log-loss"
JUDGES = (ACCURACY, BALANCED, LOG_LOSS, *MEASURES)
"""What scores can be judged by."""
SMALLER_IS_BETTER = ("error", LOG_LOSS)
BY = ("error", BALANCED, "f1", "roc-auc", "average-precision", LOG_LOSS)
"""What folds may choose by; of what is to be large the error is 1 less it."""
OF_BOTH = (BALANCED, "f1", "roc-auc", "average-precision")
"""Those of `BY` that need samples of both classes."""


def judged(
    name: str, y: npt.ArrayLike, scores: npt.ArrayLike, *, beta: float | None = None, k: int | None = None
) -> float:
    """The value of one of `JUDGES` on scores f, of which those above 0 stand for +1.

    The balanced accuracy is the mean of the shares of either class that are right. The log-loss is the mean of
    log(1 + exp(−y f)), for which f is taken as log odds: the logistic loss fits f so, and no other loss does.

    Raises
    ------
    UsageError
        An unknown name, a parameter that it lacks or does not have, or one class alone where both are needed.
    """
    signs, given = np.asarray(y, dtype=float), np.asarray(scores, dtype=float)
    if name in MEASURES:
        return value(name, signs, given, beta=beta, k=k)
    check_judge(name, beta=beta, k=k)
    right = (given > 0) == (signs > 0)
    if name == ACCURACY:
        return float(np.mean(right))
    if name == LOG_LOSS:
        return float(np.mean(np.logaddexp(0.0, -signs * given)))
    sides = signs > 0, signs < 0
    if not all(side.any() for side in sides):
        raise UsageError("the balanced accuracy needs samples of both classes")
    return float(np.mean([np.mean(right[side]) for side in sides]))


def error_by(name: str, y: npt.ArrayLike, scores: npt.ArrayLike) -> float:
    """The error of scores by one of `BY`: what is better is smaller."""
    found = judged(name, y, scores)
    return found if name in SMALLER_IS_BETTER else 1.0 - found


def check_judge(name: Any, *, beta: float | None = None, k: int | None = None, n: int = 2) -> None:
    """Refuse what is none of `JUDGES` on `n` samples, and parameters that it has not.

    Raises
    ------
    UsageError, DataError
    """
    if name in MEASURES:
        get_measure(name, np.resize([1.0, -1.0], n), beta=beta, k=k)
    elif name not in JUDGES:
        raise UsageError(f"measure {name!r} is not known; it is one of {', '.join(JUDGES)}")
    elif beta is not None or k is not None:
        raise UsageError(
            f"the {str(name).replace('-', ' ')} has no beta and no k; leave them out, or give another measure"
        )


def check_by(name: Any) -> None:
    """Refuse what folds cannot choose by.

    Raises
    ------
    UsageError
    """
    if name not in BY:
        raise UsageError(f"by = {name!r} is unknown; it is one of {', '.join(BY)}")
