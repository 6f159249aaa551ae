"""AROM: approximation of the zero norm by multiplicative updates (Weston, Elisseeff, Schölkopf, Tipping 2003).

    z ← (1, …, 1);  repeat  w ← min ½ ‖w‖² + L(margins of f(x) = w'(z∘x) + b);  z ← z∘w

Every turn minimises an approximation of Σ ln|z_j| under the loss; features whose factor falls to zero are gone. In the
weights u = z∘w of x itself a turn is min ½ Σ u_j²/z_j² + L, the SVM of (P) at σ = z², so a fixed point has
u_j ω_j(α) = 1 on its features. With the ℓ1 norm in place of ½‖w‖² it is a linear program with weights 1/z_j.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.lab.baselines.linear import BaselineDescription, Linear, check_order, check_size, check_weight, plain_svm
from mipfs.lab.baselines.one_norm import OneNorm
from mipfs.lab.baselines.rfe import Loss
from mipfs.losses import get_loss
from mipfs.plumbing.arrays import Array

Norm = Literal["l2", "l1"]

ABOUT = BaselineDescription(
    what="the SVM on features scaled by its own last weights, again and again, until M factors are left",
    source="Weston et al. 2003; Tan 2010",
    sparse="yes",
    limits="dense systems of the smaller of samples and features",
    library="own kernels",
)
MOST_TURNS = 500
"""Updates at most."""
ZERO_SHARE = 1e-8
"""A factor below this share of the largest one is zero: from there it would be squared at every turn."""
STILL_CHANGE = 1e-9
"""Largest change of a factor, relative to the largest one, at a fixed point."""


def factors(
    data: Instance,
    M: int,
    C: float,
    *,
    bias: bool = True,
    norm: Norm = "l2",
    loss: Loss = "squared-hinge",
    turns: int = MOST_TURNS,
) -> tuple[Array, Array]:
    """Update z until at most M factors are left or none changes.

    Parameters
    ----------
    data, C, bias, norm, loss, turns : as in `arom`
    M : int >= 0
        0: until a fixed point.

    Returns
    -------
    z : (p,) absolute factors, zeros exact
    last : (p,) those of the turn before
    """
    p = data.n_features
    c = C * data.sample_weight
    solver = get_loss(loss).Solver(data, c, bias)
    program = OneNorm(data, bias, "l1-AROM") if norm == "l1" else None
    z = last = np.ones(p)
    for _ in range(turns):
        ids = np.flatnonzero(z)
        new = np.zeros(p)
        if ids.size <= M or not ids.size:
            break
        if program is None:
            new[ids] = np.abs(solver.solve(ids, np.square(z[ids]), tol=1e-10).w)
        else:
            with np.errstate(divide="ignore"):
                new = np.abs(program.solve(c, 1.0 / z).dense(p))
        new[new <= ZERO_SHARE * new.max(initial=0.0)] = 0.0
        change = float(np.abs(new - z).max())
        z, last = new, z
        if change <= STILL_CHANGE * float(z.max(initial=0.0)):
            break
    return z, last


def arom(
    data: Instance,
    M: int,
    C: float = 1.0,
    *,
    bias: bool = True,
    norm: Norm = "l2",
    loss: Loss = "squared-hinge",
    turns: int = MOST_TURNS,
) -> Linear:
    """AROM down to M features, and the plain SVM on them.

    Parameters
    ----------
    data : Instance
    M : int in 1 … p
        The updates stop once at most M factors are left (Weston 2003, section 3). Those that the last update took
        away stay in, by their size before it, as far as M goes; where a fixed point comes first, the M largest factors.
    C : float > 0
        Weight of the loss, in the updates too; sample i has C_i = C * sample_weight_i.
    bias : bool, default True
    norm : {"l2", "l1"}
        l2-AROM or l1-AROM; the latter's turns are linear programs with the hinge loss.
    loss : {"squared-hinge", "hinge"}
        Of the SVMs. The paper has hard margins, and for data that are not separable a ridge on the kernel, which is
        the squared hinge.
    turns : int >= 1, updates at most

    Returns
    -------
    Linear
        The SVM of the same loss on the features. l1-AROM refits with `loss`, too.

    Raises
    ------
    UsageError
        A parameter out of its range, or more than 3,000 samples and features both.

    Source: Weston, Elisseeff, Schölkopf, Tipping 2003, l1-AROM and l2-AROM.
    """
    check_size(M, data.n_features)
    check_weight(C)
    if norm not in ("l2", "l1"):
        raise UsageError(f"norm = {norm!r} is unknown; it is 'l2' or 'l1'")
    if loss not in ("squared-hinge", "hinge"):
        raise UsageError(f"loss = {loss!r}: AROM fits by 'squared-hinge' or 'hinge'")
    if isinstance(turns, bool) or not isinstance(turns, (int, np.integer)) or turns < 1:
        raise UsageError(f"turns = {turns!r} must be an integer from 1 on")
    check_order(data, "AROM")
    z, last = factors(data, int(M), C, bias=bias, norm=norm, loss=loss, turns=int(turns))
    order = np.lexsort((np.arange(z.size), -last, -z))[:M]
    return plain_svm(data, np.sort(order[last[order] > 0.0]), C, bias, loss)


def fit(data: Instance, M: int, C: float = 1.0, *, bias: bool = True, seed: int = 0) -> Linear:
    """l2-AROM as a `mipfs.lab.baselines.Baseline`."""
    return arom(data, M, C, bias=bias)
