"""A small branch-and-bound that keeps its proof, and ways to tamper with what it leaves."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mipfs.check.tree import Report, check
from mipfs.data.instance import Instance
from mipfs.drivers.branch import Options
from mipfs.losses import get_loss
from mipfs.problem import Problem
from mipfs.proof.cuts import cut_from_dual, dual_value_below
from mipfs.proof.proof import Proof
from mipfs.result.result import Result
from mipfs.result.verification import verify
from mipfs.run.finish import result_of
from mipfs.run.run import Run

Array = npt.NDArray[np.float64]
Arrays = dict[str, npt.NDArray[Any]]
LOSSES = ("hinge", "squared-hinge", "logistic")


def make_data(rng: np.random.Generator, n: int = 40, p: int = 6, X: Any = None, **options: Any) -> Instance:
    X = rng.normal(size=(n, p)) if X is None else X
    y = np.where(np.asarray(X[:, [0, 1]].sum(axis=1)).ravel() + 0.8 * rng.normal(size=X.shape[0]) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return Instance.from_arrays(X, y, **options)


def solve(problem: Problem, gap: float = 1e-6, weighted: bool = False) -> Result:
    """Solve by enumeration in a tree: a node's dual vector is that of the SVM on all features that it leaves."""
    run, p = Run(problem, Options(gap=gap)), problem.atoms.count
    loss = get_loss(problem.loss)
    solver = loss.Solver(problem.data, problem.c_i, problem.bias)
    proof = Proof(problem.data.n_samples, p, problem.c_i if weighted else None)
    lb, ub = problem.selection.sigma_bounds()
    M = p if problem.M is None else problem.M
    run.outcome.proof, bounds, stack = proof, [], [(proof.root, lb.astype(int), ub.astype(int))]
    while stack:
        node, low, high = stack.pop()
        if low.sum() > M or np.any(low > high):
            proof.refute(node)
            continue
        if low.sum() == M:
            high = low
        free, ids = np.flatnonzero(low < high), np.flatnonzero(high)
        svm = solver.solve(ids, tol=1e-12)
        if free.size == 0:
            broken = _broken(problem, low)
            if broken is not None:
                proof.refute(node, broken)
                continue
            run.offer(ids, svm.w, svm.b)
        k, q = loss.feasible_dual(svm.alpha, problem.c_i, problem.data.y, problem.bias)
        dual, alpha = proof.add_dual(k, q), np.ldexp(k.astype(float), -q)
        cut = cut_from_dual(problem, alpha, dual_value_below(loss, alpha, problem.c_i), (k, q))
        cost = problem.penalty - 0.5 * cut.slopes
        gains = np.sort(np.minimum(cost[free], 0.0))[: M - low.sum()]
        bound = cut.constant + cost[low > 0].sum() + gains.sum()
        if free.size == 0 or bound >= run.cutoff + 1e-10 * abs(run.objective):
            proof.close(node, dual)
            bounds.append(bound)
            continue
        children = proof.split(node, int(free[0]))
        for value, child in enumerate(children):
            box = low.copy(), high.copy()
            box[0][free[0]] = box[1][free[0]] = value
            stack.append((child, *box))
    run.raise_bound(min([*bounds, run.objective]))
    run.infeasible, run.interrupted = not bounds, True
    return result_of(run, "branch")


def _broken(problem: Problem, sigma: npt.NDArray[np.int64]) -> Array | None:
    """Multipliers of a row that σ violates."""
    assert problem.rows is not None
    activity = problem.rows.matrix @ sigma
    for r in range(len(problem.rows)):
        if activity[r] < problem.rows.lb[r] or activity[r] > problem.rows.ub[r]:
            y = np.zeros(len(problem.rows))
            y[r] = 1.0 if activity[r] < problem.rows.lb[r] else -1.0
            return y
    return None


def document_of(result: Result) -> dict[str, Any]:
    """The JSON of a result as it would be saved, without the sidecar's name."""
    assert result.claim is not None
    document: dict[str, Any] = json.loads(result.to_json())
    return document | {"certificate": result.claim.entry()}


def no_incumbent(document: dict[str, Any], status: str = "NO_SOLUTION") -> dict[str, Any]:
    """What stands in the JSON of a result without a selection."""
    scaling = {"kind": document["scaling"]["kind"], "shift": {}, "scale": {}}
    gone = {"selected": [], "weights": {}, "columns": {}, "scaling": scaling, "extra": {}}
    return gone | {"objective": None, "intercept": None, "status": status, "decided": None}


def arrays_of(result: Result) -> Arrays:
    """Copies of the sidecar's arrays, to be tampered with."""
    assert result.claim is not None
    return {name: array.copy() for name, array in result.claim.proof.arrays().items()}


def checked(
    result: Result,
    data: Instance,
    folder: Path,
    tamper: Callable[[Arrays], None] | None = None,
    edit: Callable[[dict[str, Any]], None] | None = None,
) -> Report:
    """Save, tamper with sidecar and JSON, put the right SHA-256 back, load and verify."""
    path, sidecar = folder / "r.json", folder / "r.cert.npz"
    result.save(path)
    document = json.loads(path.read_text())
    if tamper is not None:
        with np.load(sidecar) as file:
            arrays = {name: file[name].copy() for name in file.files}
        tamper(arrays)
        with sidecar.open("wb") as out:
            np.savez(out, **arrays)  # type: ignore[arg-type]
        document["certificate"]["sha256"] = hashlib.sha256(sidecar.read_bytes()).hexdigest()
    if edit is not None:
        edit(document)
    path.write_text(json.dumps(document))
    return verify(Result.load(path), data)


def rewritten(result: Result, index: int, change: Callable[[npt.NDArray[np.int64]], None]) -> Callable[[Arrays], None]:
    """Tampering that changes the integers of one dual vector, and nothing else."""
    assert result.claim is not None
    proof = result.claim.proof

    def tamper(arrays: Arrays) -> None:
        other = Proof(proof.duals.n_samples, proof.n_features)
        for place, d in enumerate(proof.needed):
            k, q = proof.dual(int(d))
            if place == index:
                change(k)
            other.add_dual(k, q)
        arrays |= other.duals.arrays()

    return tamper


def damages(name: str) -> tuple[Callable[[Arrays], None], ...]:
    """Ways to damage one array of a sidecar."""

    def remove(arrays: Arrays) -> None:
        del arrays[name]

    def shorten(arrays: Arrays) -> None:
        arrays[name] = arrays[name][:-1]

    def garble(arrays: Arrays) -> None:
        arrays[name] = np.random.default_rng(0).integers(0, 120, arrays[name].shape).astype(arrays[name].dtype)

    return remove, shorten, garble


def directly(result: Result, data: Instance, arrays: Arrays | None = None, **edits: Any) -> Report:
    """Check without files."""
    return check(document_of(result) | edits, arrays_of(result) if arrays is None else arrays, data)
