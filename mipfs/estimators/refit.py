"""The SVM that an estimator keeps: refitted on the selected features, to full precision and without ambiguity.

A driver solves its SVMs as well as the asked gap needs, so that the last digits of their weights depend on its path.
"""

from __future__ import annotations

import numpy as np

from mipfs.data.bounds import clip_weights
from mipfs.data.instance import Instance
from mipfs.inner.regularised import RegularisedSolver
from mipfs.inner.subproblem import Subproblem
from mipfs.losses import get_loss
from mipfs.plumbing.arrays import Array, Integers, scatter
from mipfs.problem import Problem

REFIT_GAP = 1e-12
"""Relative gap of the refitted SVM."""


def refit(
    data: Instance, ids: Integers, loss: str, C: float, bias: bool, sigma: Array | None = None
) -> tuple[Integers, Array, float]:
    """The SVM on the columns `ids`: ½ Σ w_k²/σ_k + L(y∘(Xw + b)).

    Parameters
    ----------
    data : Instance
    ids : (k,) positions of the columns; one that stands there twice has the sum of both weights
    loss : str
    C : float > 0
    bias : bool
    sigma : (k,) numbers > 0, optional
        Ones by default: the plain SVM.

    Returns
    -------
    used : (m,) the columns, ascending, each once
    coef : (m,) their weights on the user's scale
    intercept : float, on the user's scale
    """
    c = C * data.sample_weight
    kind = get_loss(loss)
    svm = kind.Solver(data, c, bias).solve(ids, sigma, tol=REFIT_GAP)
    b = svm.b
    if bias:
        b = kind.intercept(data.block(ids).scores(svm.w), data.y, c, b)
    used, coef = _on_users_scale(data, ids, svm.w)
    return used, coef, b - float(coef @ data.shift[used])


def refit_bounded(
    problem: Problem, ids: Integers, sigma: Array, *, debias: float | None = None
) -> tuple[Integers, Array, float]:
    """The SVM on the columns `ids` with the bounds on the weights that the problem has; as `refit`.

    Parameters
    ----------
    problem : Problem with bounds on its weights
    ids : (k,) positions; one that stands there twice has the sum of both weights
    sigma : (k,) numbers in (0, 1]
    debias : float > 0 or None
        The plain SVM with this loss weight.
    """
    asked = problem if debias is None else problem.replace(C=float(debias))
    data = problem.data
    chosen = ids if debias is None else np.unique(ids)
    svm = RegularisedSolver(asked).solve(chosen, sigma if debias is None else None, tol=REFIT_GAP)
    used, whole = _on_users_scale(data, chosen, svm.w)
    names = [data.feature_names[j] for j in used]
    coef = np.asarray(clip_weights(names, whole, problem.weight_bounds or {}), dtype=float)
    b = svm.b
    if problem.bias:
        w = coef * data.scale[used]
        b = get_loss(problem.loss).intercept(data.block(used).scores(w), data.y, asked.c_i, b)
    return used, coef, b - float(coef @ data.shift[used])


def refit_in_rows(
    problem: Problem, atoms: Integers, sigma: Array, *, debias: float | None = None
) -> tuple[Integers, Array, float]:
    """The SVM on some atoms, with the rows over the weights and the bounds that the problem has; as `refit`.

    Parameters
    ----------
    problem : Problem with rows over its weights
    atoms : (k,) positions
    sigma : (k,) numbers in (0, 1]
    debias : float > 0 or None
        With this loss weight, and σ of 1.
    """
    asked = problem if debias is None else problem.replace(C=float(debias))
    share = sigma if debias is None else np.ones(atoms.size)
    solved = Subproblem(asked).solve(scatter(problem.atoms.count, atoms, share), REFIT_GAP)
    used, coef = _on_users_scale(problem.data, solved.ids, solved.svm.w)
    return used, coef, solved.svm.b - float(coef @ problem.data.shift[used])


def _on_users_scale(data: Instance, ids: Integers, w: Array) -> tuple[Integers, Array]:
    """The columns (m,), ascending, each once, and the sums of their weights on the user's scale."""
    used, place = np.unique(ids, return_inverse=True)
    return used, np.bincount(place, w, used.size) / data.scale[used]
