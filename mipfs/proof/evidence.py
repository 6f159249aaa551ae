"""What the nodes of the master's tree rest on, and the proof that is made of it (`mipfs.proof.proof`).

A node's bound is a combination Σ μ_s (cut s) with multipliers y of the rows. g is concave and every s_j convex in α, so
the dual vector Σ μ_s α_s, rounded to a feasible one, proves at least as much as that combination. During a search only
μ and y are kept; the dual vectors are combined when the certificate is written.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from mipfs.plumbing.arrays import Array, Integers
from mipfs.plumbing.tape import Tape
from mipfs.problem import Problem
from mipfs.proof.cuts import CutPool, Dual, decode_dual, dual_top, dual_value_of, feasible_of, scores_of
from mipfs.proof.duals import DualStore
from mipfs.proof.labelled import LabelledStore
from mipfs.proof.multipliers import cancel_multipliers
from mipfs.proof.proof import Multipliers, Proof
from mipfs.proof.row_tree import over_rows, try_refute
from mipfs.svm.labellings import feasible

Parts = list[tuple[list[int], list[float]]]
"""Positions of dual vectors and their shares, combination after combination."""

COMBINED_SLACK = 5e-10
"""The rounding of a combined dual vector may cost this much of the bound, relative: the claim lies below it."""
WIDE_WEIGHT_RATIO = 1e5
"""Largest weight over smallest from which on that rounding is measured: one grid has to hold all of α."""
CACHED_NUMBERS = 1 << 25
"""Numbers in the decoded dual vectors that are kept while combinations are made."""


@dataclass(eq=False)
class Evidence:
    """Cuts by position, their shares (sum 1), and the multipliers (r,) of the user's rows; no cuts: α = 0."""

    cuts: Integers
    share: Array
    multipliers: Multipliers | None = None
    place: int = -1


def no_evidence() -> Evidence:
    """That of α = 0, which no cut stands behind."""
    return Evidence(np.empty(0, dtype=np.int64), np.empty(0))


class EvidenceNode(Protocol):
    """What is asked of a node of the master's tree: its bound and what that rests on, its fixings, its place here."""

    bound: float
    lb: npt.NDArray[np.int8]
    ub: npt.NDArray[np.int8]
    place: int
    evidence: Evidence | None


class EvidenceTree:
    """The tree as it grows, with evidence in place of dual vectors.

    Parameters
    ----------
    problem : Problem
    pool : CutPool
    must_stop : callable, whether to give up showing that a node holds no selection

    Attributes
    ----------
    lost : bool, whether something was used that no multiplier at hand shows: there is no certificate
    used : list of Evidence, in the order of the dual vectors that the tree refers to
    """

    def __init__(self, problem: Problem, pool: CutPool, must_stop: Callable[[], bool] = bool) -> None:
        self.problem = problem
        self.must_stop = must_stop
        self.pool = pool
        self.lost = False
        self.tree = empty_proof(problem, pool.duals)
        self.used: list[Evidence] = []
        self._nothing = no_evidence()

    def split(self, node: EvidenceNode, feature: int) -> tuple[int, int]:
        """Places of the children of a node, which keeps what its own bound rests on."""
        places = self.tree.split(node.place, feature)
        if node.evidence is not None and not len(self.problem.selection.rows.extra):
            evidence = self._keep_evidence(node.evidence)
            self.tree.keep_bound(node.place, evidence.place, node.bound, evidence.multipliers)
        return places

    def close(self, node: EvidenceNode) -> None:
        """Close a node of the proof with the combination of cuts and the multipliers that its bound rests on."""
        evidence = self._keep_evidence(node.evidence)
        self.tree.close(node.place, evidence.place, evidence.multipliers)

    def fix(self, node: EvidenceNode, features: Integers, values: Integers, evidence: Evidence) -> None:
        """Fix features of a node; the evidence rules their other values out."""
        evidence = self._keep_evidence(evidence)
        node.place = self.tree.fix(node.place, features, values, evidence.place, evidence.multipliers)

    def refute(self, node: EvidenceNode, ray: Multipliers | None) -> bool:
        """Close a node without a selection, if its cardinality, a Farkas ray, or a tree of its rows shows that."""
        if ray is not None or self.problem.selection.exceeds(node.lb):
            self.tree.refute(node.place, ray)
            return True
        box = (node.lb.astype(float), node.ub.astype(float))
        dual = self._keep_evidence(None).place
        return try_refute(self.tree, node.place, box, dual, self.problem.selection, self.must_stop)

    def close_over_rows(
        self, node: EvidenceNode, evidence: Evidence, sigma: Array, cost: Array, least: float, wanted: float
    ) -> float:
        """Close a node of one selection (p,) by a tree over the extra variables; what that shows of cost'σ + d'z.

        The evidence has no multipliers: every leaf of the tree has its own. The node stays open, and −∞ is returned,
        where the run must stop, or where it shows less than `least`; what reaches `wanted` is enough.
        """
        place = self._keep_evidence(evidence).place
        count = self.tree.n_nodes
        box = sigma, sigma
        shown = over_rows(self.tree, node.place, box, place, self.problem.selection, cost, wanted, self.must_stop)
        if shown >= least and not self.must_stop():
            return shown
        self.tree.reopen(node.place, count)
        return -math.inf

    def rule_out(self, node: EvidenceNode, combination: Mapping[int, Fraction]) -> None:
        """Close a node where a combination of rows leaves no whole numbers."""
        self.tree.rule_out(node.place, combination)

    def finish(self, open_nodes: Iterable[EvidenceNode]) -> CombinedProof | None:
        """Close what is open; what makes the proof, or None when it was lost."""
        for node in open_nodes:
            self.close(node)
        if self.lost:
            return None
        parts = [([int(self.pool.dual_of[s]) for s in one.cuts], one.share.tolist()) for one in self.used]
        return CombinedProof(dual_set(self.problem), self.tree, self.pool.duals, parts)

    def _keep_evidence(self, evidence: Evidence | None) -> Evidence:
        """The evidence, numbered among those that the proof uses; in place of none the one that proves nothing."""
        evidence = self._nothing if evidence is None else evidence
        if evidence.place < 0:
            evidence.place = len(self.used)
            self.used.append(evidence)
            if evidence.multipliers is not None and len(self.problem.selection.rows.extra):
                y = np.array([float(v) for v in evidence.multipliers])
                evidence.multipliers = cancel_multipliers(self.problem.selection, y)
                self.lost = self.lost or evidence.multipliers is None
        return evidence


@dataclass(frozen=True, eq=False)
class CombinedProof:
    """The tree of a search, which makes the proof when it is called: plain data, so that a result can be pickled.

    Attributes
    ----------
    dual_set : DualBox or DualSimplex, where the combinations are rounded to
    tree : Proof, still without dual vectors
    duals : DualStore, LabelledStore or None, those of the cuts
    parts : Parts, a combination for every dual vector that the tree refers to
    """

    dual_set: DualBox | DualSimplex
    tree: Proof
    duals: Any
    parts: Parts

    def __call__(self) -> Proof:
        """The proof, with its dual vectors; the tree at hand stays as it is, so several threads may ask."""
        needed = self.tree.needed
        return self.tree.referring(needed, self.some(needed))

    def copy_trimmed(self, bound: float) -> CombinedProof:
        """A copy whose tree is trimmed to a bound."""
        return replace(self, tree=self.tree.copy_trimmed(bound))

    def some(self, ids: Iterable[int]) -> Any:
        """A store of the dual vectors `ids`, combined from those of the cuts."""
        store = copy.deepcopy(self.tree.duals)
        for dual in self.dual_set.combinations(self.duals, [self.parts[d] for d in ids]):
            store.add(*dual)
        return store

    def rounding(self, problem: Problem) -> float:
        """What rounding costs the bound, at most, where weights are so far apart that the slack may not cover it."""
        if not isinstance(self.dual_set, DualBox) or np.max(problem.c_i) <= WIDE_WEIGHT_RATIO * np.min(problem.c_i):
            return 0.0
        return max(
            (self.dual_set.cost(problem, *pair) for pair in self.dual_set.rounded(self.duals, self.parts)), default=0.0
        )


@dataclass(frozen=True, eq=False)
class DualBox:
    """The dual set of a loss that is a sum over the samples: its name, c (n,), y (n,), whether y'α = 0, and how many
    multipliers of rows over the weights stand behind α.
    """

    loss: str
    c: Array
    y: Array
    bias: bool
    multipliers: int = 0

    def combinations(self, duals: Any, parts: Parts) -> Iterator[Dual]:
        """Combinations Σ share_d α_d of stored dual vectors, rounded to feasible ones."""
        return (dual for _, dual in self.rounded(duals, parts))

    def rounded(self, duals: Any, parts: Parts) -> Iterator[tuple[Array, Dual]]:
        """The combinations before and after they are rounded."""
        size = self.c.size + self.multipliers
        cached = dict[int, Array]()
        for ids, share in parts:
            alpha = np.zeros(size)
            for d, weight in zip(ids, share, strict=True):
                if d not in cached:
                    if len(cached) * size > CACHED_NUMBERS:
                        cached.clear()
                    cached[d] = decode_dual(duals.get(d))
                alpha += weight * cached[d]
            yield alpha, feasible_of(self.loss, self.c, self.y, self.bias, alpha)

    def cost(self, problem: Problem, alpha: Array, dual: Dual) -> float:
        """How much lower than α a rounded dual vector may lie on any selection."""
        near, signs = decode_dual(dual), problem.dual_signs
        worse = np.maximum(scores_of(problem, near * signs) - scores_of(problem, alpha * signs), 0.0)
        chosen = worse if problem.M is None else np.sort(worse)[::-1][: problem.M]
        return max(0.0, dual_value_of(problem, alpha) - dual_value_of(problem, near) + 0.5 * float(chosen.sum()))


@dataclass(frozen=True, eq=False)
class DualSimplex:
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


def dual_set(problem: Problem) -> DualBox | DualSimplex:
    """The dual set of a problem, by the few numbers that say what it is."""
    if problem.is_joint:
        return DualSimplex(problem.C, problem.measured.largest, no_dual(problem))
    return DualBox(problem.loss, problem.c_i, problem.data.y, problem.bias, problem.dual_size - problem.data.n_samples)


def no_dual(problem: Problem) -> Dual:
    """α = 0."""
    if problem.is_joint:
        return np.empty((0, problem.data.n_samples), dtype=np.uint8), np.empty(0, dtype=np.int64), 0
    return np.zeros(problem.dual_size, dtype=np.int64), 0


def empty_proof(problem: Problem, duals: Any = None, held: Integers | None = None, tape: Tape | None = None) -> Proof:
    """A proof without nodes.

    Parameters
    ----------
    problem : Problem
    duals : optional, where the dual vectors of a structural loss come from, if they exist
    held : (k,) ascending, optional, the atoms that it is over; all by default
    tape : Tape, optional, where the dual vectors of other losses will lie; in memory by default
    """
    n = problem.data.n_samples
    count = problem.atoms.count if held is None else held.size
    if problem.is_joint:
        return Proof(n, count, duals=LabelledStore(n, duals))
    top = None if np.all(problem.c_i == problem.c_i[0]) else dual_top(problem)
    return Proof(n, count, top, DualStore(problem.dual_size, top, tape))
