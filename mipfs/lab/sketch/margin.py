"""The value of the hinge SVM, between two earned bounds, and its support vectors.

Z(X) = max over 0 ≤ α ≤ C, (y'α = 0) of 1'α − ½ ‖X'(α∘y)‖² (Paul 2016, (2)). With all eigenvalues of V'DD'V in [a, b],
a > 0,

    Z(X) / b ≤ Z(XD) ≤ Z(X) / a

for every C: α ← aα is feasible again. So γ² := 1/(2Z) obeys a γ² ≤ γ̃² ≤ b γ²; for separable rows and large C it is the
squared geometric margin of the theorems, as then Z = ½ ‖w‖².
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mipfs.data.block import Block
from mipfs.data.instance import Instance
from mipfs.losses import get_loss
from mipfs.plumbing.arrays import Array, Integers

TOL = 1e-7
"""Relative gap that is asked of the SVM; the interval says what was reached."""
SUPPORT_SHARE = 1e-6
"""Share of the largest α from which on a sample is a support vector: below it stands what the tolerance leaves."""


@dataclass(frozen=True)
class Interval:
    """A number known to lie in [low, high], 0 <= low <= high."""

    low: float
    high: float

    def over(self, other: Interval) -> Interval | None:
        """The ratio of this number to another; None where the other is zero."""
        if other.high <= 0.0:
            return None
        return Interval(self.low / other.high, self.high / other.low if other.low > 0.0 else math.inf)


@dataclass(frozen=True, eq=False)
class HingeSolution:
    """The hinge SVM on some rows.

    Attributes
    ----------
    value : Interval, of Z
    slack : float, the loss of the weights that were found; 0 where they separate the classes with a margin
    support : (s,) positions of the support vectors
    """

    value: Interval
    slack: float
    support: Integers


def solve_svm(data: Instance, C: float, bias: bool) -> HingeSolution:
    """Z and the support vectors of all features; see `mipfs.losses.hinge`."""
    svm = get_loss("hinge").Solver(data, C * data.sample_weight, bias).solve(np.arange(data.n_features), tol=TOL)
    support = np.flatnonzero(svm.alpha > SUPPORT_SHARE * svm.alpha.max(initial=0.0))
    slack = max(0.0, svm.primal - 0.5 * float(svm.w @ svm.w))
    return HingeSolution(Interval(max(0.0, svm.dual), max(svm.primal, svm.dual, 0.0)), slack, support)


def columns(data: Instance, ids: Integers, factors: Array) -> Instance:
    """The columns `ids` of the scaled data, each multiplied by its factor (k,), with the same labels and weights."""
    return Instance.from_arrays(
        centre_columns(data, ids) * factors[None, :], data.y, sample_weight=data.sample_weight, training=False
    )


def centre_columns(data: Instance, ids: Integers) -> Any:
    """The columns `ids` of the scaled data, (n, k): dense where they are centred."""
    block = store_columns(data, ids)
    return block.dense() if block.is_centred else block.values


def store_columns(data: Instance, ids: Integers | None = None) -> Block:
    """The columns `ids`, all by default, in memory: columns that are made are made here."""
    block = data.block(ids)
    return block if block.is_stored else data.block(np.arange(data.n_features))


def rows_of(data: Instance, rows: Integers) -> Instance:
    """Some rows of an instance, with the centre of all."""
    values = store_columns(data).values
    part = values.tocsr()[rows].tocsc() if data.is_sparse else values[rows]
    unscaled = None if data.unscaled is None else data.unscaled.tocsr()[rows].tocsc()
    return replace(
        data,
        X=part,
        unscaled=unscaled,
        y=data.y[rows],
        sample_weight=data.sample_weight[rows],
        bags=None,
        counts=None if data.counts is None else data.counts[rows],
    )
