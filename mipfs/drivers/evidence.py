"""What the nodes of the master's tree rest on, and the proof that is made of it (`mipfs.certificate`).

A node's bound is a combination Σ μ_s (cut s) with multipliers y of the rows. g is concave and every s_j convex in α, so
the dual vector Σ μ_s α_s, rounded to a feasible one, proves at least as much as that combination. During a search only
μ and y are kept; the dual vectors are combined when the certificate is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
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
from mipfs.rows import UNIT_ROUNDOFF
from mipfs.selection import Selection, lagrangian_bound

if TYPE_CHECKING:
    from mipfs.backends.highs import SelectionModel
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
    lost : bool, whether something was used that no dual vector or multiplier at hand shows: there is no certificate
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

    def finish(self, open_nodes: Iterable[Node]) -> Callable[[], Proof] | None:
        """Close what is open; a function that makes the proof, or None when it was lost."""
        for node in open_nodes:
            self.close(node)
        if self.lost:
            return None
        problem, tree, duals = self.problem, self.tree, self.pool.duals
        parts = [([int(self.pool.dual_of[s]) for s in one.cuts], one.share.tolist()) for one in self._used]

        def combined() -> Proof:
            combine = _over_labellings if problem.loss == "structural" else _in_box
            for dual in combine(problem, duals, parts):
                tree.duals.add(*dual)
            return tree

        return combined

    def _keep(self, evidence: Evidence | None) -> Evidence:
        """The evidence with a place among those used."""
        evidence = self._nothing if evidence is None else evidence
        if evidence.place < 0:
            evidence.place = len(self._used)
            self._used.append(evidence)
            self.lost = self.lost or any(self.pool.dual_of[s] < 0 for s in evidence.cuts)
            if evidence.multipliers is not None and len(self.problem.selection.rows.extra):
                evidence.multipliers = cancelled(self.problem.selection, evidence.multipliers)
                self.lost = self.lost or evidence.multipliers is None
        return evidence


def _in_box(problem: Problem, duals: Any, parts: Parts) -> Iterator[Dual]:
    """Combinations Σ share_d α_d of stored dual vectors, rounded to feasible ones."""
    loss, c, y = get_loss(problem.loss), problem.c_i, problem.data.y
    decoded: dict[int, Array] = {}
    for ids, share in parts:
        alpha = np.zeros(c.size)
        for d, weight in zip(ids, share, strict=True):
            if d not in decoded:
                if len(decoded) * c.size > CACHE:
                    decoded.clear()
                k, q = duals.get(d)
                decoded[d] = np.ldexp(k.astype(float), -q)
            alpha += weight * decoded[d]
        yield loss.feasible_dual(alpha, c, y, problem.bias)


def _over_labellings(problem: Problem, duals: Any, parts: Parts) -> Iterator[Dual]:
    """The same of dual vectors over labellings."""
    for ids, share in parts:
        if ids:
            counts, alpha = duals.mixture(ids, share)
            yield counts, *feasible(alpha, problem.C, problem.measured.largest)
        else:
            yield _zero(problem)


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
    rows, ends = selection.rows, selection.rows.extra.box
    bits = COARSE - int(np.ceil(np.log2(max(float(np.abs(y).max(initial=0.0)), 1e-300))))
    for multipliers in (y, np.ldexp(np.rint(np.ldexp(y, bits)), -bits)):
        reduced = -(rows.matrix.T @ multipliers)[selection.n_features :]
        if np.all(np.isfinite(np.where(reduced > 0, *ends)) | (reduced == 0)):
            return multipliers
    return None


def farkas(model: SelectionModel, selection: Selection, low: npt.NDArray[Any], high: npt.NDArray[Any]) -> Array | None:
    """Multipliers (r,) of the user's rows that show that an infeasible LP holds no selection; None when none do."""
    ray = model.ray()
    if ray is None:
        return None
    first = int(selection.M is not None)
    y = np.where(np.abs(ray) > DUST, ray, 0.0)[first:] * model.units[first:]
    return shown_empty(selection, y / max(float(np.abs(y).max(initial=0.0)), 1e-300), low, high)


def broken_row(selection: Selection, low: npt.NDArray[Any], high: npt.NDArray[Any]) -> Array | None:
    """Multipliers (r,) of a single row that holds nowhere between low and high (p,); None when there is none."""
    r = selection.refuted_by(low, high)
    if r < 0:
        return None
    least, _ = selection.rows.activities(*selection.box(low, high))
    y = np.zeros(len(selection.rows))
    y[r] = -1.0 if least[r] > selection.rows.high[r] else 1.0
    return shown_empty(selection, y, low, high)


def shown_empty(selection: Selection, y: Array, low: npt.NDArray[Any], high: npt.NDArray[Any]) -> Array | None:
    """The multipliers (r,), made to bound the extra variables, if they show that no selection lies in a box (p,)."""
    rows, p = selection.rows, selection.n_features
    limit = np.where(y > 0, rows.low, rows.high)
    bounding = cancelled(selection, np.where(np.isfinite(limit), y, 0.0))
    if bounding is None:
        return None
    y, reduced = bounding, -(rows.matrix.T @ bounding)
    sigma, extra = reduced[:p], reduced[p:]
    ends = rows.extra.box
    end = np.where(extra > 0, *ends)
    inside = low > 0.5
    room = p if selection.M is None else selection.M - int(inside.sum())
    free = np.sort(np.minimum(sigma[(low < 0.5) & (high > 0.5)], 0.0))[: max(room, 0)]
    parts = y * np.where(np.isfinite(limit), limit, 0.0)
    total = parts.sum() + sigma[inside].sum() + free.sum() + extra @ np.where(extra != 0, end, 0.0)
    far = np.concatenate([np.ones(p), np.maximum(*(np.where(np.isfinite(side), np.abs(side), 0.0) for side in ends))])
    size = float((rows.sizes.T @ np.abs(y)) @ far) + float(np.abs(parts).sum())
    return y if total > 4.0 * (y.size + p + 8) * UNIT_ROUNDOFF * size else None


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
    cut = cut_from_dual(problem.atoms, alpha, y, value)
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

    scale, oracle = float(np.abs(cost).max(initial=0.0)) or 1.0, selection.oracle()
    whole, first = np.concatenate([cost, np.zeros(len(selection.rows.extra))]), int(selection.M is not None)
    lp = highs.selection_model(selection, relaxed=True)
    lp.h.setOptionValue("presolve", "off")
    highs.set_costs(lp.h, cost / scale)
    least, stack = np.inf, [(proof.root, *selection.sigma_bounds())]
    while stack:
        node, low, high = stack.pop()
        ray = broken_row(selection, low, high)
        if ray is not None or selection.exceeds(low):
            proof.refute(node, ray)
            continue
        highs.fix_columns(lp.h, low, high)
        solution = lp.solve()
        ray = farkas(lp, selection, low, high) if solution.status == "infeasible" else None
        if ray is not None:
            proof.refute(node, ray)
            continue
        if solution.values is None or solution.status != "optimal":
            return None
        y, sigma = lp.multipliers() * scale, np.clip(solution.values[: cost.size], low, high)
        bound = lagrangian_bound(whole, selection.all_rows, *selection.box(low, high), y)[0]
        undecided = np.where(low < high, np.minimum(sigma, 1.0 - sigma), -1.0)
        j = int(np.argmax(undecided))
        done = undecided[j] < 0.0 or (undecided[j] <= WHOLE and oracle.contains(sigma > 0.5))
        if bound >= wanted or done or proof.n_nodes >= 2 * LEAVES:
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
