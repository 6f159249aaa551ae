"""Rinaldi and Sciandrone (2010): the SVM for the classifier, concave minimisation for its zeros, by turns.

    repeat  w, b ← the SVM on the features that are left
            leave out the samples that it misclassifies
            w ← a vertex of  min Σ_j f'(|w̄_j|) |w_j|  s.t.  y_i (w'x_i + b) ≥ 1  on the others,  w̄ the SVM's weights
            keep the features with w_j ≠ 0  until there are no fewer of them

The linear program is a step of Frank and Wolfe's method on Σ f(|w_j|), f concave and near the number of non-zeros:
log(v + δ), or 1 − e^(−a v) as in FSV. Where the turns end above the wanted number of features, or would jump below it,
the RFE variant goes on by recursive elimination.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import numpy.typing as npt

from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.lab.baselines.linear import BaselineDescription, Linear, check_order, check_size, check_weight, plain_svm
from mipfs.lab.baselines.one_norm import OneNorm, Vertex, first_weight
from mipfs.lab.baselines.rfe import DROP_SHARE, Drop, eliminate
from mipfs.losses import get_loss
from mipfs.plumbing.arrays import Array, Integers

Concave = Literal["log", "exp"]
Variant = Literal["rfe", "concave"]

ABOUT = BaselineDescription(
    what="SVM and concave minimisation by turns, then elimination, down to M",
    source="Rinaldi and Sciandrone 2010",
    sparse="yes",
    limits="linear programs of all samples",
    library="HiGHS",
)
OFFSET_SHARE = 1e-3
"""δ of log(v + δ), as a share of the largest weight."""
STEEPNESS = 5.0
"""a of 1 − e^(−a v), v as a share of the largest weight."""
PRICE_FACTOR, MOST_ATTEMPTS = 100.0, 5
"""Factor of the price of a missed margin until none is missed, and how often it grows at most."""
MISSED_MARGIN = 1e-7
"""A margin may be short of 1 by so much."""


def rinaldi(
    data: Instance,
    M: int,
    C: float = 1.0,
    *,
    bias: bool = True,
    variant: Variant = "rfe",
    concave: Concave = "log",
    drop: Drop = DROP_SHARE,
    seed: int = 0,
) -> Linear:
    """Select by turns down to M features, and fit the SVM on them.

    Parameters
    ----------
    data : Instance
    M : int in 1 … p
    C : float > 0
        Of all SVMs; sample i has C_i = C * sample_weight_i.
    bias : bool, default True
    variant : {"rfe", "concave"}
        "concave": the turns alone; where they end above M, the M largest weights of the last SVM are kept, and where
        they end below, fewer than M. "rfe": from the last set of at least M features on, SVM-RFE down to M.
    concave : {"log", "exp"}
        f; weights are measured against the largest one.
    drop : float in [0, 1), int >= 1, or "tan"
        What a round of the elimination drops, see `mipfs.lab.baselines.rfe.eliminate`.
    seed : int, unused

    Returns
    -------
    Linear
        The hinge SVM on the features.

    Raises
    ------
    UsageError
        A parameter out of its range, more than 3,000 samples and features both, or more samples than a linear
        program takes.
    NumericalError
        HiGHS finds no optimum.

    Source: Rinaldi and Sciandrone 2010, as Aytug 2015, section 2, describes it; to stop at M is ours.
    """
    check_size(M, data.n_features)
    check_weight(C)
    if variant not in ("rfe", "concave"):
        raise UsageError(f"variant = {variant!r} is unknown; it is 'rfe' or 'concave'")
    if concave not in ("log", "exp"):
        raise UsageError(f"concave = {concave!r} is unknown; it is 'log' or 'exp'")
    check_order(data, "Rinaldi and Sciandrone's method")
    sets = turns(data, int(M), C, bias=bias, concave=concave)
    left = sets[-1]
    if variant == "rfe":
        left = next(ids for ids in reversed(sets) if ids.size >= M)
        if left.size > M:
            found = eliminate(data.only(left), [M], C, bias=bias, drop=drop, loss="hinge")
            left = left[found[int(M)]]
    elif left.size > M:
        w, _ = _hinge_svm(data, left, C, bias)
        left = np.sort(left[np.argsort(-np.abs(w), kind="stable")[:M]])
    return plain_svm(data, left, C, bias, "hinge")


def turns(data: Instance, M: int, C: float, *, bias: bool, concave: Concave = "log") -> list[Integers]:
    """The features that are left, all of them first, until at most M are or a turn takes none away.

    Raises
    ------
    UsageError, NumericalError
        As `rinaldi`.
    """
    program = OneNorm(data, bias, "Rinaldi and Sciandrone's method")
    p = data.n_features
    sets: list[Integers] = [np.arange(p)]
    while sets[-1].size > M:
        left = sets[-1]
        w, b = _hinge_svm(data, left, C, bias)
        kept = data.y * data.block(left).scores(w, b) > 0.0
        r = np.full(p, np.inf)
        r[left] = slopes(np.abs(w), concave)
        vertex = separating(program, kept, r, data)
        if not 0 < vertex.ids.size < left.size:  # none, where one class alone is left
            break
        sets.append(vertex.ids)
    return sets


def slopes(v: Array, concave: Concave) -> Array:
    """f'(v) of weights >= 0, divided by the largest."""
    top = float(v.max(initial=0.0))
    share = v / top if top > 0.0 else v
    r = 1.0 / (share + OFFSET_SHARE) if concave == "log" else np.exp(-STEEPNESS * share)
    return np.asarray(r / r.max())


def separating(program: OneNorm, kept: npt.NDArray[np.bool_], r: Array, data: Instance) -> Vertex:
    """A vertex of min Σ r_j |w_j| with margins of 1 on the kept samples, which some w separates.

    A price on what a margin misses is exact once no multiplier reaches it; it grows until then.
    """
    price = first_weight(data)
    for _ in range(MOST_ATTEMPTS):
        vertex = program.solve(np.where(kept, price, 0.0), r)
        f = data.block(vertex.ids).scores(vertex.w, vertex.b)
        if float(np.maximum(0.0, 1.0 - data.y * f)[kept].max(initial=0.0)) <= MISSED_MARGIN:
            break
        price *= PRICE_FACTOR
    return vertex


def _hinge_svm(data: Instance, ids: Integers, C: float, bias: bool) -> tuple[Array, float]:
    """The hinge SVM on columns, on the scaled data."""
    svm = get_loss("hinge").Solver(data, C * data.sample_weight, bias).solve(ids, tol=1e-9)
    return svm.w, svm.b if math.isfinite(svm.b) else 0.0


def fit(data: Instance, M: int, C: float = 1.0, *, bias: bool = True, seed: int = 0) -> Linear:
    """`rinaldi` with its RFE variant as a `mipfs.lab.baselines.Baseline`."""
    return rinaldi(data, M, C, bias=bias, seed=seed)
