"""What the nodes of the master's tree rest on, and the proof that is made of it (`mipfs.certificate`).

A node's bound is a combination Σ μ_s (cut s) with multipliers y of the rows. g is concave and every s_j convex in α, so
the dual vector Σ μ_s α_s, rounded to a feasible one, proves at least as much as that combination. During a search only
μ and y are kept; the dual vectors are combined when the certificate is written.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mipfs.certificate.labelled import LabelledStore
from mipfs.certificate.proof import Proof
from mipfs.drivers.cuts import CutPool, Dual, cut_from_dual, dual_value_below
from mipfs.losses import get_loss
from mipfs.losses.labellings import Combination, feasible
from mipfs.problem import Problem
from mipfs.selection import Selection, lagrangian_bound

if TYPE_CHECKING:
    from mipfs.drivers.master import Node

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Parts = list[tuple[list[int], list[float]]]
"""Positions of dual vectors and their shares, combination after combination."""

SLACK = 5e-10
"""The rounding of a combined dual vector may cost this much of the bound, relative: the claim lies below it."""
CACHE = 1 << 25
"""Numbers in the decoded dual vectors that are kept while combinations are made."""
LEAVES = 500
"""Leaves at most to certify one inner minimum over rows."""
WHOLE = 1e-6
"""Distance from 0 or 1 up to which a relaxed σ_j counts as integral."""
DUST = 1e-9
"""Entries of a ray up to this size, relative to the largest, are round-off."""
COARSE = 36
"""Bits of multipliers that must cancel exactly on an extra variable without a bound."""


@dataclass(eq=False)
class Evidence:
    """Cuts by position, their shares (sum 1), and the multipliers (r,) of the user's rows; no cuts: α = 0."""

    cuts: Integers
    share: Array
    multipliers: Array | None = None
    place: int = -1


class Record:
    """The tree as it grows, with evidence in place of dual vectors.

    Parameters
    ----------
    problem : Problem
    pool : CutPool

    Attributes
    ----------
    lost : bool, whether something was used that no multiplier at hand shows: there is no certificate
    """

    def __init__(self, problem: Problem, pool: CutPool) -> None:
        self.problem, self.pool, self.lost = problem, pool, False
        self.tree = empty_proof(problem, pool.duals)
        self._used: list[Evidence] = []
        self._nothing = Evidence(np.empty(0, dtype=np.int64), np.empty(0))

    def split(self, node: Node, feature: int) -> tuple[int, int]:
        """Places of the children of a node."""
        return self.tree.split(node.place, feature)

    def close(self, node: Node) -> None:
        """Close a node with what its bound rests on."""
        evidence = self._keep(node.evidence)
        self.tree.close(node.place, evidence.place, evidence.multipliers)

    def fix(self, node: Node, features: Integers, values: Integers, evidence: Evidence) -> None:
        """Fix features of a node; the evidence rules their other values out."""
        evidence = self._keep(evidence)
        node.place = self.tree.fix(node.place, features, values, evidence.place, evidence.multipliers)

    def refute(self, node: Node, ray: Array | None) -> None:
        """Close a node without a selection: by its cardinality, or by a Farkas ray."""
        self.lost = self.lost or (ray is None and not self.problem.selection.exceeds(node.lb))
        self.tree.refute(node.place, ray)

    def finish(self, open_nodes: Iterable[Node]) -> Combined | None:
        """Close what is open; what makes the proof, or None when it was lost."""
        for node in open_nodes:
            self.close(node)
        if self.lost:
            return None
        parts = [([int(self.pool.dual_of[s]) for s in one.cuts], one.share.tolist()) for one in self._used]
        return Combined(dual_set(self.problem), self.tree, self.pool.duals, parts)

    def _keep(self, evidence: Evidence | None) -> Evidence:
        """The evidence with a place among those used."""
        evidence = self._nothing if evidence is None else evidence
        if evidence.place < 0:
            evidence.place = len(self._used)
            self._used.append(evidence)
            if evidence.multipliers is not None and len(self.problem.selection.rows.extra):
                evidence.multipliers = cancelled(self.problem.selection, evidence.multipliers)
                self.lost = self.lost or evidence.multipliers is None
        return evidence


@dataclass(frozen=True, eq=False)
class Combined:
    """The tree of a search, which makes the proof when it is called: plain data, so that a result can be pickled.

    Attributes
    ----------
    dual_set : Box or Simplex, where the combinations are rounded to
    tree : Proof, still without dual vectors
    duals : DualStore, LabelledStore or None, those of the cuts
    parts : Parts, a combination for every dual vector that the tree refers to
    """

    dual_set: Box | Simplex
    tree: Proof
    duals: Any
    parts: Parts

    def __call__(self) -> Proof:
        """The proof, with its dual vectors; the tree at hand stays as it is, so several threads may ask."""
        proof = copy.copy(self.tree)
        proof.duals = copy.deepcopy(self.tree.duals)
        for dual in self.dual_set.combinations(self.duals, self.parts):
            proof.duals.add(*dual)
        return proof


@dataclass(frozen=True, eq=False)
class Box:
    """The dual set of a loss that is a sum over the samples: its name, c (n,), y (n,), and whether y'α = 0."""

    loss: str
    c: Array
    y: Array
    bias: bool

    def combinations(self, duals: Any, parts: Parts) -> Iterator[Dual]:
        """Combinations Σ share_d α_d of stored dual vectors, rounded to feasible ones."""
        loss, decoded = get_loss(self.loss), dict[int, Array]()
        for ids, share in parts:
            alpha = np.zeros(self.c.size)
            for d, weight in zip(ids, share, strict=True):
                if d not in decoded:
                    if len(decoded) * self.c.size > CACHE:
                        decoded.clear()
                    k, q = duals.get(d)
                    decoded[d] = np.ldexp(k.astype(float), -q)
                alpha += weight * decoded[d]
            yield loss.feasible_dual(alpha, self.c, self.y, self.bias)


@dataclass(frozen=True, eq=False)
class Simplex:
    """The dual set of a structural loss, Σα ≤ C over labellings; `nothing` is α = 0, `largest` that of the measure."""

    C: float
    largest: int
    nothing: Dual

    def combinations(self, duals: Any, parts: Parts) -> Iterator[Dual]:
        """Combinations Σ share_d α_d of stored dual vectors, rounded to feasible ones."""
        for ids, share in parts:
            if ids:
                counts, alpha = duals.mixture(ids, share)
                yield counts, *feasible(alpha, self.C, self.largest)
            else:
                yield self.nothing


def dual_set(problem: Problem) -> Box | Simplex:
    """The dual set of a problem, by the few numbers that say what it is."""
    if problem.loss == "structural":
        return Simplex(problem.C, problem.measured.largest, _zero(problem))
    return Box(problem.loss, problem.c_i, problem.data.y, problem.bias)


def _zero(problem: Problem) -> Dual:
    """α = 0."""
    n = problem.data.n_samples
    if problem.loss == "structural":
        return np.empty((0, n), dtype=np.uint8), np.empty(0, dtype=np.int64), 0
    return np.zeros(n, dtype=np.int64), 0


def empty_proof(problem: Problem, duals: Any = None) -> Proof:
    """A proof without nodes; `duals`: where the dual vectors of a structural loss come from, if they exist."""
    n, count = problem.data.n_samples, problem.atoms.count
    if problem.loss == "structural":
        return Proof(n, count, duals=LabelledStore(n, duals))
    return Proof(n, count, None if np.all(problem.c_i == problem.c_i[0]) else problem.c_i)


def cancelled(selection: Selection, y: Array) -> Array | None:
    """Multipliers (r,) of the user's rows that bound the extra variables: y, or y on a coarse grid; None if neither.

    The reduced cost of an extra variable without a bound must be zero or point to its other end, exactly.
    """
    extra, rows = selection.rows.extra, selection.rows
    bits = COARSE - int(np.ceil(np.log2(max(float(np.abs(y).max(initial=0.0)), 1e-300))))
    for multipliers in (y, np.ldexp(np.rint(np.ldexp(y, bits)), -bits)):
        reduced = -(rows.matrix.T @ multipliers)[selection.n_features :]
        if np.all(np.isfinite(np.where(reduced > 0, extra.lb, extra.ub)) | (reduced == 0)):
            return multipliers
    return None


def farkas(lp: Any, selection: Selection, low: npt.NDArray[Any], high: npt.NDArray[Any]) -> Array | None:
    """Multipliers (r,) of the user's rows that show that an infeasible LP holds no selection; None when none do."""
    _, found, values = lp.getDualRay()
    rows, p = selection.rows, selection.n_features
    if not found:
        return None
    y = np.array(values)[int(selection.M is not None) :][: len(rows)]
    y /= max(float(np.abs(y).max(initial=0.0)), 1e-300)
    limit = np.where(y > 0, rows.lb, rows.ub)
    bounding = cancelled(selection, np.where(np.isfinite(limit) & (np.abs(y) > DUST), y, 0.0))
    if bounding is None:
        return None
    y, reduced = bounding, -(rows.matrix.T @ bounding)
    sigma, extra = reduced[:p], reduced[p:]
    end = np.where(extra > 0, rows.extra.lb, rows.extra.ub)
    inside = low > 0.5
    room = p if selection.M is None else selection.M - int(inside.sum())
    free = np.sort(np.minimum(sigma[(low < 0.5) & (high > 0.5)], 0.0))[: max(room, 0)]
    total = y @ np.where(np.isfinite(limit), limit, 0.0) + sigma[inside].sum() + free.sum()
    total += extra @ np.where(extra != 0, end, 0.0)
    return y if total > 1e-9 * (1.0 + np.abs(sigma).sum()) else None


def single(problem: Problem, given: Array | Combination | None, wanted: float) -> Proof | None:
    """The proof of one dual vector (None: α = 0), as far as `wanted` (its lower(α)) where that can be reached.

    With rows the inner minimum is a MILP: a tree of LPs, each with its multipliers, all on the same dual vector. What
    it proves stands in `Proof.bound`: less than `wanted` after `LEAVES` leaves, or where extra variables are integer.
    """
    selection, c, y, proof = problem.selection, problem.c_i, problem.data.y, empty_proof(problem)
    dual: Dual
    if isinstance(given, Combination):
        alpha, value, dual = y * given.v, given.value_below, given.dual
    elif given is None:
        alpha, value, dual = np.zeros(y.size), 0.0, _zero(problem)
    else:
        loss = get_loss(problem.loss)
        k, q = loss.feasible_dual(given, c, y, problem.bias)
        alpha = np.ldexp(k.astype(float), -q)
        value, dual = dual_value_below(loss, alpha, c), (k, q)
    cut = cut_from_dual(problem.atoms, alpha, y, value, dual)
    cost, place = problem.penalty - 0.5 * cut.slopes, proof.duals.add(*dual)
    if selection.is_plain:
        inner: float | None = selection.minimise(cost)[1]
        proof.close(proof.root, place)
    else:
        inner = _over_rows(proof, place, selection, cost, wanted - cut.constant - 1e-10 * abs(wanted))
    if inner is None:
        return None
    proof.bound = cut.constant + inner - 1e-14 * (abs(cut.constant) + abs(inner))
    return proof


def emptiness(problem: Problem) -> Proof | None:
    """The proof that S is empty; None when `LEAVES` leaves do not show it, or only integer extra variables do."""
    selection, proof = problem.selection, empty_proof(problem)
    low, high = selection.sigma_bounds()
    if selection.is_plain or np.any(low > high):
        proof.refute(proof.root)
        return proof
    dual = proof.duals.add(*_zero(problem))
    return proof if _over_rows(proof, dual, selection, np.zeros(problem.atoms.count), np.inf) == np.inf else None


def _over_rows(proof: Proof, dual: int, selection: Selection, cost: Array, wanted: float) -> float | None:
    """Branch-and-bound on min cost'σ over S, kept in the proof; the bound that its leaves reach, None without one."""
    from mipfs.backends import highs

    scale, extra = float(np.abs(cost).max(initial=0.0)) or 1.0, selection.rows.extra
    whole, first = np.concatenate([cost, np.zeros(len(extra))]), int(selection.M is not None)
    lp = highs.selection_model(selection, relaxed=True)
    lp.setOptionValue("presolve", "off")
    highs.set_costs(lp, cost / scale)
    least, stack = np.inf, [(proof.root, *selection.sigma_bounds())]
    while stack:
        node, low, high = stack.pop()
        highs.fix_columns(lp, low, high)
        solution = highs.solve(lp)
        if solution.status == "infeasible":
            ray = farkas(lp, selection, low, high)
            if ray is None and not (selection.M is not None and low.sum() > selection.M):
                return None
            proof.refute(node, ray)
            continue
        if solution.values is None or solution.status != "optimal":
            return None
        y, sigma = np.array(lp.getSolution().row_dual) * scale, solution.values[: cost.size]
        ends = np.concatenate([low, extra.lb]), np.concatenate([high, extra.ub])
        bound = lagrangian_bound(whole, selection.all_rows, *ends, y, scale)[0]
        j = int(np.argmax(np.minimum(sigma, 1.0 - sigma)))
        if bound >= wanted or not WHOLE < sigma[j] < 1.0 - WHOLE or proof.n_nodes >= 2 * LEAVES:
            multipliers = cancelled(selection, y[first:])
            if multipliers is None:
                return None
            proof.close(node, dual, multipliers)
            least = min(least, bound)
            continue
        for value, child in enumerate(proof.split(node, j)):
            box = low.copy(), high.copy()
            box[0][j] = box[1][j] = value
            stack.append((child, *box))
    return least
