"""Logistic regression by LIBLINEAR, as the installed scikit-learn is asked for it."""

from __future__ import annotations

import inspect
from typing import Any

TOL, MAX_STEPS = 1e-4, 5000
"""LIBLINEAR's tolerance, and its steps at most."""


def logistic_regression(C: float, *, l1: bool, bias: bool, tol: float = TOL, seed: int = 0) -> Any:
    """An unfitted ``LogisticRegression``: by the primal with ‖w‖₁, by dual coordinate descent with ½‖w‖².

    Parameters
    ----------
    C : float > 0
    l1 : bool
    bias : bool, whether there is an intercept, which LIBLINEAR penalises as any weight
    tol : float > 0
    seed : int, of LIBLINEAR's coordinate order
    """
    from sklearn.linear_model import LogisticRegression

    # scikit-learn 1.8 says by the ratio what was said by the name of the penalty before.
    named = inspect.signature(LogisticRegression).parameters["penalty"].default == "l2"
    kind = {"penalty": "l1" if l1 else "l2"} if named else {"l1_ratio": float(l1)}
    return LogisticRegression(
        C=float(C),
        dual=not l1,
        fit_intercept=bias,
        solver="liblinear",
        tol=tol,
        max_iter=MAX_STEPS,
        random_state=seed,
        **kind,
    )
