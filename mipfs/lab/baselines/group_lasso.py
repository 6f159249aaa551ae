"""The group lasso with the logistic loss, by the three algorithms that Tan 2014 compares with (section 7.1).

    min over w, b   Σ_g √|g| ‖w_g‖ + Σ_i C_i log(1 + e^(−y_i (w'x_i + b)))
    dual            max over 0 ≤ α ≤ C, y'α = 0 of  g(α)   s.t.  ‖X_g'(α∘y)‖ ≤ √|g| for all g

``fista``: accelerated proximal gradient (Beck and Teboulle 2009; Liu and Ye 2010), restarted where it overshoots, with
the intercept minimised out; ``bcd``: block coordinate descent (Qin et al. 2010); ``active``: the group that violates
optimality most enters, one at a time, and FISTA solves what is in (Roth and Fischer 2008; Bach 2009). The gap of all
three is that of α_i = C_i/(1 + e^m_i), balanced and shrunk until it is feasible. A feature in no group is one itself.

Also here: the columns of a group lasso, its values and its gap, and FISTA on them; see
`mipfs.lab.baselines.group_lasso`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np
from scipy import sparse
from scipy.special import expit

from mipfs.atoms.groups import Groups, concatenate_ranges
from mipfs.data.block import Block
from mipfs.data.instance import Instance
from mipfs.errors import UsageError
from mipfs.lab.baselines.linear import (
    BaselineDescription,
    Linear,
    bracket,
    check_size,
    check_weight,
    linear,
    n_features,
    plain_svm,
)
from mipfs.losses import get_loss
from mipfs.plumbing.arrays import Array, Integers, replace_at

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


Algorithm = Literal["active", "fista", "bcd"]
ALGORITHMS: tuple[Algorithm, ...] = ("active", "fista", "bcd")

ABOUT = BaselineDescription(
    what="the features (or whole groups of the data) of a logistic group lasso, C searched for M of them, and the SVM",
    source="Tan 2014, section 7; Liu and Ye 2010; Qin et al. 2010; Roth and Fischer 2008",
    sparse="yes",
    limits="disjoint groups; may find fewer than M features; slow on columns of different scales",
    library="own, NumPy and numba",
    uses_c=False,
    grouped=True,
)
TOL, SEARCH_TOL = 1e-6, 1e-4
"""Relative gap of a solution, and of those that a search for a number of features passes."""
MOST_ROUNDS = 100_000
"""Groups that enter and sweeps over them, at most."""
SEARCH_RANGE = 1e4
"""How far beyond the C at which the first group enters a search goes."""
INNER_GAP_SHARE = 0.1
"""Share of the gap over all groups to which those that are in are solved."""
MOST_BLOCK_STEPS, SWEEPS_PER_CHECK = 5, 10
"""Steps of a block at most, and sweeps between two looks at the gap."""


class GroupLasso:
    """The group lasso on one data set; a solution is where the next one begins.

    Parameters
    ----------
    data : Instance
        Sample i has C_i = C * sample_weight_i.
    groups : mapping of name to features, by name or 0-based position, optional
        Disjoint. The data's own by default; features in none of them are groups of their own.
    bias : bool, default True
        Whether there is an (unpenalised) intercept.

    Raises
    ------
    UsageError
        Groups that overlap, or name a feature that is not there.
    """

    def __init__(
        self, data: Instance, groups: Mapping[str, Sequence[str | int]] | None = None, *, bias: bool = True
    ) -> None:
        self.data = data
        self.bias = bias
        self.order, starts = _group_order(data, data.groups if groups is None else groups)
        self.design = GroupDesign.of(data, self.order, starts, bias)
        self._w = np.zeros(self.order.size)

    @property
    def first(self) -> float:
        """The largest C at which every weight is zero; infinite where no feature ever enters."""
        zero = self.design.evaluate_at(
            np.zeros(self.order.size), np.zeros(self.data.n_samples), self.data.sample_weight
        )
        return 1.0 / zero.worst if zero.worst > 0 else math.inf

    def solve(self, C: float, *, algorithm: Algorithm = "active", tol: float = TOL) -> Linear:
        """Solve at one C.

        Parameters
        ----------
        C : float > 0
        algorithm : {"active", "fista", "bcd"}
        tol : float > 0
            Relative gap to reach.

        Returns
        -------
        Linear
            On all features of the groups whose weights are not zero, with objective and, up to round-off, bound.

        Raises
        ------
        UsageError
            A parameter out of its range.

        Warns
        -----
        ConvergenceWarning
            The gap was not reached; objective and bound say how large it is.
        """
        check_weight(C)
        if algorithm not in ALGORITHMS:
            raise UsageError(f"algorithm = {algorithm!r} is not known; it is one of {', '.join(ALGORITHMS)}")
        solvers: dict[str, Callable[[Array, float], LassoSolution]] = {
            "active": self._solve_active_set,
            "fista": lambda c, tol: fista(self.design, c, self._w, tol),
            "bcd": self._coordinate_descent,
        }
        found = solvers[algorithm](C * self.data.sample_weight, tol)
        if found.gap > tol:
            from sklearn.exceptions import ConvergenceWarning

            warnings.warn(f"the group lasso stopped at a gap of {found.gap:.1e}", ConvergenceWarning, stacklevel=2)
        self._w = found.w
        kept = np.flatnonzero(np.repeat(self.design.norms(found.w) > 0, self.design.sizes))
        values = {"objective": found.primal, "bound": found.dual}
        return linear(self.data, self.order[kept], found.w[kept], found.b, float(C), **values)

    def of_size(self, M: int, *, count: Callable[[Linear], int] = n_features, tol: float = SEARCH_TOL) -> Linear:
        """The solution with the most features up to M, by bisection of C.

        Parameters
        ----------
        M : int >= 1
        count : callable
            What M counts; by default the features, of which a group brings all. Tan 2014 counts groups: `n_groups`.
        tol : float > 0
            Relative gap of every solution.

        Returns
        -------
        Linear
            With fewer than M where no C that was tried has as many, even none.
        """
        if not math.isfinite(self.first):
            return self.solve(1.0, tol=tol)
        first = self.first
        below, _ = bracket(lambda C: self.solve(C, tol=tol), M, 2.0 * first, count, SEARCH_RANGE * first)
        if below is not None:
            return below
        self._w = np.zeros(self.order.size)
        return self.solve(self.first, tol=tol)

    def n_groups(self, found: Linear) -> int:
        """How many groups the features of a solution are of."""
        group = np.empty(self.order.size, dtype=np.int64)
        group[self.order] = np.repeat(np.arange(self.design.sizes.size), self.design.sizes)
        return int(np.unique(group[found.ids]).size)

    def _solve_active_set(self, c: Array, tol: float) -> LassoSolution:
        """The most violating group enters, and the groups that are in are solved, until none violates."""
        design = self.design
        w = self._w.copy()
        active = np.flatnonzero(design.norms(w) > 0)
        found = design.evaluate_at(w, design.apply(w), c)
        for _ in range(MOST_ROUNDS):
            part, ids = design.part(active)
            before = found.gap
            solved = fista(
                part, c, w[ids], INNER_GAP_SHARE * min(1.0, before)
            )  # more is of no use to find the next group
            w = np.zeros_like(w)
            w[ids] = solved.w
            found = design.evaluate_at(w, part.apply(solved.w), c, solved.b)
            if found.gap <= tol:
                break
            excess = replace_at(found.pull, active, 0.0)
            most = int(np.argmax(excess))
            if excess[most] > 1.0:
                active = np.append(active, most)
            elif found.gap > 0.9 * before:
                break
        return found

    def _coordinate_descent(self, c: Array, tol: float) -> LassoSolution:
        """Sweeps over the groups, and the intercept after each."""
        from mipfs.kernels.group_descent import Blocks, group_sweep

        design = self.design
        w = self._w.copy()
        lipschitz = 0.25 * design.sums(design.squares(c))
        step = np.divide(1.0, lipschitz, out=np.zeros_like(lipschitz), where=lipschitz > 0)
        f = design.apply(w)
        b = 0.0
        found = None
        for number in range(MOST_ROUNDS):
            f = f + b
            blocks = Blocks(design.stored, design.block.center, design.starts, design.d, step)
            group_sweep(blocks, design.y, c, w, f, MOST_BLOCK_STEPS)
            f -= b
            if number % SWEEPS_PER_CHECK == 0 or found is None:
                f = design.apply(w)  # sums that went on lose digits
                found = design.evaluate_at(w, f, c, b)
                b = found.b
                if found.gap <= tol:
                    break
            else:
                b = design.intercept(f, c, b)
        assert found is not None
        return found


def _group_order(data: Instance, groups: Mapping[str, Sequence[str | int]]) -> tuple[Integers, Integers]:
    """The features in the order of their groups, and where each group starts, the end of the last one at the end."""
    p = data.n_features
    if not groups:
        return np.arange(p), np.arange(p + 1)
    atoms = Groups(data, groups)
    if atoms.overlapping:
        raise UsageError("the group lasso is over disjoint groups; leave overlapping ones out, or use FGM's groups")
    members = atoms.columns(np.arange(atoms.count)).ids
    single = np.setdiff1d(np.arange(p), members)
    sizes = np.concatenate([atoms.sizes, np.ones(single.size, dtype=np.int64)])
    return np.concatenate([members, single]), np.concatenate([[0], np.cumsum(sizes)])


def fit(data: Instance, M: int, C: float = 1.0, *, bias: bool = True, seed: int = 0) -> Linear:
    """The features of a group lasso with at most M of them, whose own C decides how many, and the SVM of weight C.

    The groups are the data's; a group that has more than M features never enters.
    """
    check_size(M, data.n_features)
    check_weight(C)
    return plain_svm(data, GroupLasso(data, bias=bias).of_size(M).ids, C, bias)
