"""What an earlier result leaves to a problem that was edited: a tree, dual vectors, and a support to begin from.

A dual vector α of the new dual set bounds every selection, whatever S, M, rows, costs and bounds on weights are:

    v(σ) ≥ g(α) − Σ_j σ_j h_j(ω_j(α))

so the old ones are evaluated on the new problem and prove there what they prove there. No number of the old result is
taken over. Another C has another dual set: there α is multiplied by C′/C where its box has a top and shrinks, and each
is rounded to a feasible one, as is any vector of a file that turns out to be none. What a dual vector is about (data,
atoms, loss, intercept, the margin's form, weights of classes, rows over the weights) must be the same.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.data.over_weights import rows_document as written_rows
from mipfs.data.rules import EXACT_RULES
from mipfs.errors import DataError, MipfsError, UsageError
from mipfs.losses import get_loss
from mipfs.plumbing.arrays import Array, Integers, replace_at
from mipfs.plumbing.typed_json import plain
from mipfs.problem import Problem
from mipfs.proof.cuts import CutPool, cut_of_dual, decode_dual, dual_top, feasible_dual
from mipfs.proof.duals import DualStore
from mipfs.proof.proof import SCREENED, WITHOUT, Proof
from mipfs.proof.saved import multipliers_of, restored_duals
from mipfs.readers.arrays import load_arrays
from mipfs.readers.duals import WIDEST
from mipfs.result.result import Result, Status
from mipfs.result.sidecar import held_sidecar, state_rows
from mipfs.run.carry import adapt_cuts, carry_cuts, support
from mipfs.run.parameters import parameters

MOST_CUTS = 256
"""Dual vectors of an earlier tree that are looked at for first cuts, from its root on."""
SAME = ("loss", "bias", "margin", "measure", "beta", "k", "constant", "regulariser", "class_weight")
"""Parameters that dual vectors are about."""
EDITED = ("M", "C", "lambda", "penalty", "forced_in", "forced_out", "weight_bounds")
"""Parameters that may be others."""
DAMAGED = LookupError, ValueError, TypeError, ArithmeticError, AssertionError, OSError, DataError
"""What goes wrong where a certificate does not hold together."""


@dataclass(frozen=True, eq=False)
class OldTree:
    """An earlier tree over the atoms, with dual vectors of the new problem.

    Attributes
    ----------
    feature : (m,) atom that a node is split on, `SCREENED`, or −1
    children : (m, 2)
    dual, multiplier : (m,) positions of what bounds a node; −1 for no dual vector, the last one for no multipliers
    multipliers : list of (rows,), of the new problem's rows
    duals : DualStore
    is_alike : bool, whether M and C are those of the new problem: nodes of another M or C close at another depth
    """

    feature: Integers
    children: npt.NDArray[Any]
    dual: Integers
    multiplier: Integers
    multipliers: list[Array]
    duals: DualStore
    is_alike: bool

    @property
    def n_leaves(self) -> int:
        """How many leaves a dual vector bounds."""
        return int(np.count_nonzero((self.feature < 0) & (self.dual >= 0)))


class RunStart:
    """What a run begins with.

    Parameters
    ----------
    problem : Problem, as the driver solves it
    result : Result, which is near it (`why_cold`)
    changed : sequence of str, what was edited
    tree : OldTree, optional

    Attributes
    ----------
    leaves, opened : int or None
        Leaves of the old tree, and those of them that were open nodes of the new one; None where no tree was used.
    """

    def __init__(self, problem: Problem, result: Result, changed: Sequence[str], tree: OldTree | None) -> None:
        self.problem, self.changed, self.tree = problem, tuple(changed), tree
        self.selected = result.selected
        self.kept = result.pool
        self.told = {
            "file": None if result.path is None else result.path.name,
            "objective": result.objective if result.has_classifier else None,
            "bound": result.bound if math.isfinite(result.bound) else None,
            "changed": list(self.changed),
        }
        self.start = self.cuts = 0
        self.leaves: int | None = None
        self.opened: int | None = None

    def used(self, leaves: int, opened: int | None) -> None:
        """Note what the tree was good for; `opened` is None where it was put aside."""
        self.leaves, self.opened = (None, None) if opened is None else (leaves, opened)

    def first(self) -> npt.NDArray[np.bool_] | None:
        """The old support, or the selection of S next to it; None where there is none."""
        problem = self.problem
        always = [problem.atoms.names[-1]] if problem.data.constant else []
        names = tuple(dict.fromkeys([*self.selected, *always]))
        found = support(self._first_cuts(1), problem, names)
        if found is None:
            return None
        self.start = 1
        sigma = np.zeros(problem.atoms.count, dtype=bool)
        sigma[problem.atoms_of(found)] = True
        return sigma

    def pool(self) -> CutPool:
        """The first cuts of a master: those of the dual vectors that bind in the new relaxation."""
        if self.kept is not None and self.problem.is_joint:
            pool = adapt_cuts(self.kept, self.problem)
        else:
            pool = carry_cuts(self._first_cuts(MOST_CUTS), self.problem)
        self.cuts = len(pool)
        return pool

    def alpha(self) -> Array | None:
        """The dual vector to begin a relaxation from; None where there is none."""
        if self.tree is None or not len(self.tree.duals):
            return None
        self.cuts = 1
        return decode_dual(self.tree.duals.get(0))

    def _first_cuts(self, most: int) -> CutPool:
        pool = CutPool(self.problem)
        for d in range(0 if self.tree is None else min(most, len(self.tree.duals))):
            assert self.tree is not None
            pool.add(cut_of_dual(self.problem, self.tree.duals.get(d)))
        return pool

    def document(self) -> dict[str, Any]:
        """``warm_from`` of the result."""
        counts = {"start": bool(self.start), "cuts": self.cuts, "leaves": self.leaves, "opened": self.opened}
        return {**self.told, **counts}

    def line(self) -> str:
        """What the log says."""
        whose = self.told["file"] or "the last result"
        return f"warm from {whose}: {', '.join(self.changed) or 'nothing'} changed"


def why_cold(result: Result, problem: Problem) -> str:
    """Why a result says nothing of a problem, as it was stated; empty where it does."""
    if result.data_sha256 != problem.data.sha256 or result.n_features != problem.data.n_features:
        return "it is one of other data"
    if result.scaling.get("kind") != problem.data.scaling:
        return f"its data was scaled {result.scaling.get('kind')!r}, and not {problem.data.scaling!r}"
    if result.rules != max(problem.data.rules, EXACT_RULES):
        return "it was made by other rules of reading and scaling data"
    if problem.exponent:
        return "columns of such size are computed in another unit"
    if not problem.regulariser.is_monotone:
        return "its bounds on weights exclude 0, of which an earlier tree knows nothing"
    if not (problem.atoms.is_held and problem.atoms.is_checkable):
        return "what is selected is too many to hold"
    now = plain(dict(parameters(problem)))
    for name in SAME:
        before = result.params.get(name, "unit" if name == "margin" else None)
        if plain(before) != now.get(name, "unit" if name == "margin" else None):
            return f"{'the intercept' if name == 'bias' else name} is another one"
    if _over_weights(result.params.get("weight_rows")) != _over_weights(written_rows(problem.rows_over_weights, 1.0)):
        return "weight_rows are others"
    try:
        described = problem.atoms.document(problem.atoms_of(result.selected))
    except MipfsError:
        return "the atoms are others"
    return "" if _json_text(described) == _json_text(result.atoms) else "the atoms are others"


def warm_of(result: Result, problem: Problem, solved: Problem) -> RunStart:
    """What a result leaves to a problem.

    Parameters
    ----------
    result : Result
    problem : Problem, as it was stated
    solved : Problem, as the driver solves it

    Raises
    ------
    UsageError
        It is a result of something else (`why_cold`), or of a file whose certificate does not hold together.
    """
    reason = why_cold(result, problem)
    if reason:
        raise UsageError(f"warm: this result says nothing about the problem, for {reason}; leave warm out")
    try:
        tree = _tree_of(result, solved)
    except DAMAGED as error:
        said = (str(error).splitlines() or [type(error).__name__])[0]
        raise UsageError(
            f"warm: the certificate of the result does not hold together ({said}); leave warm out"
        ) from None
    return RunStart(solved, result, _list_changes(result, problem), tree)


def _list_changes(result: Result, problem: Problem) -> list[str]:
    """What was edited, by name."""
    now = plain(dict(parameters(problem)))
    found = [name for name in EDITED if _json_text(result.params.get(name)) != _json_text(now.get(name))]
    rows = state_rows(problem.named_rows(), problem.atoms.names)
    before = [{**row, "origin": ""} for row in result.rows]
    if _json_text(before) != _json_text([{**row, "origin": ""} for row in rows["rows"]]):
        found.append("rows")
    extra = {name: {k: v for k, v in one.items() if k != "value"} for name, one in result.extra.items()}
    return found + (["extra variables"] if _json_text(extra) != _json_text(rows["extra"]) else [])


def _over_weights(rows: Any) -> str:
    """Rows over the weights without what they are allowed, which goes with C, and without groups."""
    return _json_text([{k: v for k, v in row.items() if k not in ("allowance", "parity")} for row in rows or ()])


def _json_text(said: Any) -> str:
    return json.dumps(plain(said), sort_keys=True, default=str)


def _tree_of(result: Result, problem: Problem) -> OldTree | None:
    """The tree of a result, with dual vectors that are feasible in the problem; None where it has none of that kind."""
    if problem.is_joint or result.status is Status.INFEASIBLE:
        return None
    proof = result.claim.proof if result.claim is not None else _read_proof(result, problem)
    if proof is None or not isinstance(proof.duals, DualStore) or proof.n_features != problem.atoms.count:
        return None
    ratio = problem.C / float(result.params["C"])
    is_alike = ratio == 1.0 and result.params.get("M") == parameters(problem)["M"]
    needed = proof.referred if is_alike else proof.referred[:MOST_CUTS]
    if not needed.size:
        return None
    n, feature = proof.n_nodes, proof._feature[: proof.n_nodes].astype(np.int64)
    children = proof._children[:n]
    _check(feature, children)
    multiplier = proof._multiplier[:n].astype(np.int64)
    is_given = (multiplier >= 0) & (multiplier < len(proof._multipliers)) & (proof._dual[:n] != WITHOUT)
    used, place = np.unique(multiplier[is_given], return_inverse=True)
    kept = [proof._multipliers[k] for k in used.tolist()]
    multipliers = _carried_multipliers(kept, [str(row["name"]) for row in result.rows], problem)
    duals = _feasible_duals(proof.duals, needed, problem, ratio, result.claim is not None)
    multiplier = replace_at(np.full(n, len(kept)), is_given, place)
    dual = proof.number_duals(needed).astype(np.int64)
    return OldTree(feature, children, np.maximum(dual, -1), multiplier, multipliers, duals, is_alike)


def _read_proof(result: Result, problem: Problem) -> Proof | None:
    """The proof that stands in the file beside a result that was loaded; None where there is none."""
    content = held_sidecar(result)
    if content is None:
        return None
    arrays = load_arrays(result.path or Path("certificate"), content)
    if "dual_bytes" not in arrays:
        return None
    top = arrays["dual_top"]
    duals = DualStore(problem.dual_size, top if top.size else None)
    restored_duals(duals, arrays)
    proof = Proof(problem.dual_size, problem.atoms.count, duals=duals)
    size = arrays["feature"].size
    for name in ("feature", "children", "dual", "multiplier"):
        one = np.asarray(arrays[name], dtype=np.int32)
        if one.shape != (size, *getattr(proof, f"_{name}").shape[1:]):
            raise ValueError("the nodes have other fields")
        setattr(proof, f"_{name}", one)
    proof._size, proof._value = size, np.full(size, -np.inf)
    if np.any(proof._dual >= len(duals)):
        raise ValueError("a node has a dual vector that is none")
    _check(proof._feature, proof._children)
    proof.hold(multipliers_of(arrays["multipliers"]))
    return proof


def _check(feature: npt.NDArray[Any], children: npt.NDArray[Any]) -> None:
    """Refuse what is no tree: a child comes after its parent, and has one."""
    own = np.arange(feature.size)
    inner, is_split = feature >= 0, (feature >= 0) & (feature != SCREENED)
    below = children[inner]
    kept = below[below >= 0]
    sound = (
        feature.size > 0
        and np.all((below < 0) | (below > own[inner, None]))
        and np.all(children[inner, 0] >= 0)
        and np.all(children[is_split, 1] >= 0)
        and np.all(kept < feature.size)
        and np.unique(kept).size == kept.size
    )
    if not sound:
        raise ValueError("its nodes are no tree")


def _carried_multipliers(kept: Sequence[Any], before: Sequence[str], problem: Problem) -> list[Array]:
    """Multipliers of the new rows, by the names of the old ones; last those that are all 0."""
    place = {name: r for r, name in reversed([*enumerate(problem.selection.rows.names)])}
    count = len(problem.selection.rows)
    found = []
    for y in kept:
        new = np.zeros(count)
        for name, value in zip(before, y, strict=False):  # those of derived rows stand behind them
            if name in place:
                new[place[name]] = float(value)
        found.append(np.where(np.isfinite(new), new, 0.0))
    return [*found, np.zeros(count)]


def _feasible_duals(duals: DualStore, ids: Integers, problem: Problem, ratio: float, is_own: bool) -> DualStore:
    """Some dual vectors, made feasible where they are not: those of a run of ours on the same dual set are."""
    if is_own and ratio == 1.0:
        return duals.part(ids)
    store = DualStore(problem.dual_size, None if np.all(problem.c_i == problem.c_i[0]) else dual_top(problem))
    n, top = problem.data.n_samples, get_loss(problem.loss).top(problem.c_i)
    y = problem.data.y.astype(np.int64)
    shrinks = ratio < 1.0 and get_loss(problem.loss).has_top
    for d in ids.tolist():
        whole, q = duals.get(d)
        if not 0 <= int(whole.min(initial=0)) <= int(whole.max(initial=0)) <= WIDEST:
            raise ValueError("a dual vector has numbers that none has")
        alpha = decode_dual((whole, q))
        if shrinks:
            whole, q = feasible_dual(problem, ratio * alpha)
        elif np.any(alpha[:n] > top) or (problem.bias and _exact_sum(y * whole[:n]) != 0):
            whole, q = feasible_dual(problem, np.minimum(alpha, np.append(top, alpha[n:])))
        store.add(whole, q)
    return store


def _exact_sum(numbers: Integers) -> int:
    """The sum of whole numbers of 2^53 at most, exactly."""
    high = numbers >> 26
    return (int(high.sum()) << 26) + int((numbers - (high << 26)).sum())
