"""FSV: feature selection by concave minimisation (Bradley and Mangasarian 1998), successive linear programs by HiGHS.

    min over w, b, v   (1 − λ) (mean of ξ over class +1, plus over class −1)  +  λ Σ_j (1 − e^(−a v_j))
    s.t.               y_i (w'x_i + b) + ξ_i ≥ 1,  ξ ≥ 0,  −v ≤ w ≤ v

Σ_j (1 − e^(−a v_j)) is concave and close to the number of non-zeros. The successive linearisation algorithm replaces it
by its tangent at the last v, which leaves a one-norm SVM with the weights r_j = λ a e^(−a v_j), until the objective no
longer falls: after finitely many programs, at a vertex that is a stationary point. Weights depend on the scale of the
features, and so does what a counts as small: scale them alike.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

import numpy as np

from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.lab.baselines.linear import BaselineDescription, Linear, check_size, check_weight, linear, plain_svm
from mipfs.lab.baselines.one_norm import OneNorm, Vertex, hinge_value, largest_score, of_size
from mipfs.plumbing.arrays import Array

Start = Literal["zero", "random"]

ABOUT = BaselineDescription(
    what="a concave approximation of the number of features, by successive linear programs, its weight searched for M",
    source="Bradley and Mangasarian 1998; Rinaldi and Sciandrone 2010",
    sparse="yes",
    limits="linear programs of all samples; features are to be on one scale",
    library="HiGHS",
    uses_c=False,
)
STEEPNESS = 5.0
"""a, as the paper has it (its α)."""
STILL_DECREASE = 1e-9
"""Relative decrease of the linearised objective at which the programs end."""
MOST_PROGRAMS = 100
"""Linear programs at most; some five to ten are usual."""


def fsv(
    data: Instance,
    lam: float,
    *,
    bias: bool = True,
    steepness: float = STEEPNESS,
    start: Start = "zero",
    seed: int = 0,
    program: OneNorm | None = None,
) -> Linear:
    """Solve at one λ by successive linear programs.

    Parameters
    ----------
    data : Instance
    lam : float in (0, 1)
        λ, the weight of the number of features; the paper has [0, 1), and at 0 nothing is selected.
    bias : bool, default True
        Whether b is free; without it f(x) = w'x.
    steepness : float > 0
        a of e^(−a v); 5 in the paper.
    start : {"zero", "random"}
        v of the first tangent: 0, so that the first program is a one-norm SVM, or uniform in [0, 1]ᵖ (the paper's).
    seed : int, of the random start
    program : OneNorm, optional
        That of the same data and bias, for a warm start.

    Returns
    -------
    Linear
        The vertex's own classifier, with the objective above; ``C`` is (1 − λ)/λ.

    Raises
    ------
    UsageError
        A parameter out of its range, or more samples than a linear program takes.
    NumericalError
        HiGHS finds no optimum.

    Source: Bradley and Mangasarian 1998, (FSV) and the successive linearisation algorithm. The means are weighted by
    the sample weights.
    """
    if not isinstance(lam, (int, float, np.number)) or not 0.0 < lam < 1.0:
        raise UsageError(f"lam = {lam!r} must lie strictly between 0 and 1, the weight of the number of features")
    _check(steepness, start)
    program = OneNorm(data, bias, "FSV") if program is None else program
    found = _minimise_concave(program, (1.0 - lam) / lam, steepness, start, seed)
    return replace(found, objective=lam * found.objective)


def _minimise_concave(program: OneNorm, price: float, steepness: float, start: Start, seed: int) -> Linear:
    """Minimise the objective divided by λ, where the losses' price is C = (1 − λ)/λ, by successive linearisation."""
    data = program.data
    p = data.n_features
    c = price * class_means(data)
    v = np.zeros(p) if start == "zero" else np.random.default_rng(seed).uniform(0.0, 1.0, p)
    best = Vertex(np.empty(0, np.int64), np.empty(0), 0.0, c)
    value = math.inf
    for _ in range(MOST_PROGRAMS):
        vertex = program.solve(c, steepness * np.exp(-steepness * v))
        w = vertex.dense(p)
        new = hinge_value(data, c, vertex.ids, vertex.w, vertex.b) - float(np.expm1(-steepness * np.abs(w)).sum())
        if new >= value - STILL_DECREASE * max(1e-12, abs(value)):
            break
        best = vertex
        value = new
        v = np.abs(w)
    return linear(data, best.ids, best.w, best.b, price, objective=value)


def class_means(data: Instance) -> Array:
    """c with c'ξ = mean of ξ over class +1, plus over class −1, (n,); weighted by the sample weights."""
    s = data.sample_weight
    y = data.y
    up, down = float(s[y > 0].sum()), float(s[y < 0].sum())
    return np.asarray(s / np.where(y > 0, max(up, 1e-300), max(down, 1e-300)))


def _check(steepness: float, start: str) -> None:
    if not isinstance(steepness, (int, float, np.number)) or not (math.isfinite(steepness) and steepness > 0):
        raise UsageError(f"steepness = {steepness!r} must be a positive number; Bradley and Mangasarian take 5")
    if start not in ("zero", "random"):
        raise UsageError(f"start = {start!r} is unknown; it is 'zero' or 'random'")


def fsv_of_size(
    data: Instance,
    M: int,
    *,
    bias: bool = True,
    steepness: float = STEEPNESS,
    start: Start = "zero",
    seed: int = 0,
) -> Linear:
    """FSV with M features, by bisection of (1 − λ)/λ.

    Bradley and Mangasarian choose λ by tuning; at a wanted number of features we take the λ that gives it, and where
    no λ that was tried does, the M largest weights of the smallest solution beyond.

    Parameters
    ----------
    data, bias, steepness, start, seed : as in `fsv`
    M : int in 1 … p

    Returns
    -------
    Linear
        With the weights of the fit that they are of, fewer than M features only where every λ leaves fewer.

    Raises
    ------
    UsageError, NumericalError
        As `fsv`; M out of its range.
    """
    check_size(M, data.n_features)
    _check(steepness, start)
    program = OneNorm(data, bias, "FSV")
    first = 2.0 * steepness / (largest_score(data, class_means(data)) or 1.0)  # where the first program has features
    return of_size(lambda price: _minimise_concave(program, price, steepness, start, seed), int(M), first, data.scale)


def fit(data: Instance, M: int, C: float = 1.0, *, bias: bool = True, seed: int = 0) -> Linear:
    """The features of `fsv_of_size`, and the hinge SVM of weight C on them (λ is spent on their number)."""
    check_weight(C)
    return plain_svm(data, fsv_of_size(data, M, bias=bias, seed=seed).ids, C, bias, "hinge")
