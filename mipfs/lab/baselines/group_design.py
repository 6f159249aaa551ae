"""The columns of a group lasso, its values and its gap, and FISTA on them; see `mipfs.lab.baselines.group_lasso`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from scipy import sparse
from scipy.special import expit

from mipfs.atoms.groups import concatenate_ranges
from mipfs.data.block import Block
from mipfs.data.instance import Instance
from mipfs.losses import get_loss
from mipfs.plumbing.arrays import Array, Integers

MOST_STEPS, STEPS_PER_CHECK = 10_000, 10
"""Steps of FISTA at most, and steps between two looks at the gap."""
STEP_CONSTANT_DECAY = 0.97
"""How much the step constant falls after every step."""
ROUND_OFF = 1e-12
"""Relative round-off that the line search forgives."""
MOST_NEWTON_STEPS = 100
"""Steps of the search for the intercept at most."""


@dataclass(frozen=True, eq=False)
class LassoSolution:
    """A point of the group lasso.

    Attributes
    ----------
    w : (k,) weights, in the order of the design's columns
    b : float
    primal, dual : float, the two sides of the gap
    pull : (G,) ‖X_g'(α∘y)‖/√|g|; a group with more than 1 violates optimality
    """

    w: Array
    b: float
    primal: float
    dual: float
    pull: Array

    @property
    def gap(self) -> float:
        """(primal − dual)/primal."""
        return (self.primal - self.dual) / max(self.primal, 1e-300)

    @property
    def worst(self) -> float:
        """The largest pull, 0 where there is none."""
        return float(self.pull.max(initial=0.0))


@dataclass(frozen=True, eq=False)
class GroupDesign:
    """Columns in the order of their groups.

    Attributes
    ----------
    block : Block of k columns, its values in Fortran order or CSC
    starts : (G + 1,) first column of every group, and k
    d : (G,) √|g|
    y : (n,)
    bias : bool
    """

    block: Block
    starts: Integers
    d: Array
    y: Array
    bias: bool

    @classmethod
    def of(cls, data: Instance, order: Integers, starts: Integers, bias: bool) -> GroupDesign:
        """The columns `order` of an instance."""
        return cls(_order_block(data.block(order)), starts, np.sqrt(np.diff(starts)), data.y, bias)

    @property
    def sizes(self) -> Integers:
        """Columns of every group, (G,)."""
        return np.diff(self.starts)

    @property
    def stored(self) -> Any:
        """X for the kernels: as it is, or a CSC triple."""
        values = self.block.values
        return (values.data, values.indices, values.indptr) if self.block.is_sparse else values

    def part(self, groups: Integers) -> tuple[GroupDesign, Integers]:
        """Some of the groups, and the positions of their columns."""
        sizes = self.sizes[groups]
        ids = concatenate_ranges(self.starts[groups], sizes)
        starts = np.concatenate([[0], np.cumsum(sizes)])
        block = _order_block(Block(self.block.values[:, ids], self.block.center[ids]))
        return GroupDesign(block, starts, self.d[groups], self.y, self.bias), ids

    def apply(self, w: Array) -> Array:
        """w'x_i, (n,)."""
        return self.block.scores(w)

    def correlations(self, v: Array) -> Array:
        """X'v, (k,)."""
        return self.block.pull(v)

    def squares(self, c: Array) -> Array:
        """Σ_i c_i x_ij² of every column, (k,)."""
        values = self.block.values
        center = self.block.center
        squared = values.multiply(values) if self.block.is_sparse else np.square(values)
        first = np.asarray(values.T @ c)
        sums = np.asarray(squared.T @ c) - center * (2.0 * first - center * c.sum())
        return np.asarray(np.maximum(0.0, sums))

    def sums(self, values: Array) -> Array:
        """Σ over every group of one number a column, (G,)."""
        return cast(Array, np.add.reduceat(values, self.starts[:-1]) if values.size else np.zeros(0))

    def norms(self, w: Array) -> Array:
        """‖w_g‖, (G,)."""
        return np.asarray(np.sqrt(self.sums(np.square(w))))

    def prox(self, w: Array, step: float) -> Array:
        """Every group shrunk by step √|g|."""
        norms = self.norms(w)
        shrink = np.maximum(0.0, 1.0 - step * self.d / np.where(norms > 0, norms, 1.0))
        return np.asarray(w * np.repeat(shrink, self.sizes))

    def loss(self, f: Array, b: float, c: Array) -> float:
        """Σ c_i log(1 + e^(−y_i (f_i + b)))."""
        return float(c @ np.logaddexp(0.0, -self.y * (f + b)))

    def slopes(self, f: Array, b: float, c: Array) -> Array:
        """α_i = c_i/(1 + e^(y_i (f_i + b)))."""
        return np.asarray(c * expit(-self.y * (f + b)))

    def intercept(self, f: Array, c: Array, b: float) -> float:
        """The b of least loss at f, from a first guess: Newton's method between two ends that close in."""
        if not self.bias:
            return 0.0
        low = -math.inf
        high = math.inf
        reach = 1.0
        for _ in range(MOST_NEWTON_STEPS):
            share = expit(-self.y * (f + b))
            slope = float((self.y * c) @ share)
            if abs(slope) <= 1e-15 * float(c @ share):
                break
            low, high = (b, high) if slope > 0 else (low, b)
            curve = float(c @ (share * (1.0 - share)))
            wanted = b + (slope / curve if curve * reach > abs(slope) else math.copysign(reach, slope))
            reach *= 2.0
            if not low < wanted < high:
                wanted = 0.5 * (low + high)
            if not (low < wanted < high and math.isfinite(wanted)):
                break  # no number is left in between
            b = wanted
        return b

    def evaluate_at(self, w: Array, f: Array, c: Array, b: float = 0.0) -> LassoSolution:
        """w with its best intercept, and the bound of its balanced and shrunk α."""
        b = self.intercept(f, c, b)
        alpha = self.slopes(f, b, c)
        if self.bias:  # y'α = 0, whatever digits the intercept lacks
            positive = self.y > 0
            sums = np.array([alpha[~positive].sum(), alpha[positive].sum()])
            shares = np.divide(sums.min(), sums, out=np.zeros(2), where=sums > 0)
            alpha = alpha * shares[positive.astype(int)]
        pull = self.norms(self.correlations(alpha * self.y)) / self.d
        primal = float(self.d @ self.norms(w)) + self.loss(f, b, c)
        dual = get_loss("logistic").dual_value(alpha / max(1.0, float(pull.max(initial=0.0))), c)
        return LassoSolution(w, b, primal, dual, pull)


def _order_block(block: Block) -> Block:
    """A block as the kernels take it: dense in Fortran order, or CSC."""
    values = sparse.csc_array(block.values) if block.is_sparse else np.asfortranarray(block.values)
    return Block(values, np.ascontiguousarray(block.center))


def fista(design: GroupDesign, c: Array, w: Array, tol: float) -> LassoSolution:
    """Accelerated proximal gradient from w to a relative gap, on h(w) = min over b of the loss.

    Parameters
    ----------
    design : GroupDesign
    c : (n,) loss weights
    w : (k,) where it begins
    tol : float > 0
    """
    w_old = w
    f = design.apply(w)
    f_old = f
    found = design.evaluate_at(w, f, c)
    b = found.b
    momentum = 1.0
    L = 0.25 * float(design.squares(c).max(initial=0.0))
    if L == 0.0:
        return found
    for step in range(1, MOST_STEPS + 1):
        if found.gap <= tol:
            break
        ahead = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * momentum * momentum))
        push = (momentum - 1.0) / ahead
        momentum = ahead
        z = w + push * (w - w_old)
        fz = f + push * (f - f_old)
        b = design.intercept(fz, c, b)
        h = design.loss(fz, b, c)
        fall = design.correlations(design.slopes(fz, b, c) * design.y)
        while True:
            new = design.prox(z + fall / L, 1.0 / L)
            f_new = design.apply(new)
            change = new - z
            b_new = design.intercept(f_new, c, b)
            limit = h - float(fall @ change) + 0.5 * L * float(change @ change)
            if design.loss(f_new, b_new, c) <= limit + ROUND_OFF * h:
                break
            L *= 2.0
        if float((z - new) @ (new - w)) > 0:  # it overshoots: no momentum from here
            momentum = 1.0
        w_old = w
        f_old = f
        w = new
        f = f_new
        b = b_new
        L *= STEP_CONSTANT_DECAY
        if step % STEPS_PER_CHECK == 0:
            f = design.apply(w)
            found = design.evaluate_at(w, f, c, b)
    return found
