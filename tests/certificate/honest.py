"""Honest results of every kind on tiny problems: losses, rows, extra variables, atoms, weights, penalties, drivers.

As a script it solves many and asks the checker to accept each:  python -m tests.certificate.honest 0:2000
"""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

import numpy as np
from scipy import sparse

import mipfs
from mipfs.atoms.features import Features
from mipfs.atoms.groups import Groups
from mipfs.atoms.tree import Tree
from mipfs.data.instance import Instance, Row, SelectDefaults
from mipfs.problem import Problem
from mipfs.result.result import Result
from mipfs.selection.selection import Extras, Rows

Rng = np.random.Generator
LOSSES = ("hinge", "squared-hinge", "logistic", "structural")
ATOMS = ("features", "features", "norm", "groups", "overlapping", "tree")
MEASURES = ("error", "f1", "prbep", "roc-auc", "average-precision")


def data_of(rng: Rng, structural: bool) -> Instance:
    """Six to fourteen samples of three to five features: dense or sparse, scaled or not, with rows of their own."""
    n, p = int(rng.integers(6, 9) if structural else rng.integers(8, 15)), int(rng.integers(3, 6))
    X: Any = rng.normal(size=(n, p)) * 10.0 ** rng.integers(-1, 2, p) + rng.choice([0.0, 0.0, 20.0])
    y = np.where(X[:, 0] - X[:, 1] + rng.normal(size=n) > np.median(X[:, 0] - X[:, 1]), 1.0, -1.0)
    y[:2] = 1.0, -1.0
    if rng.random() < 0.3:
        X = sparse.csc_array(np.where(rng.random((n, p)) < 0.5, X, 0.0))
    names = tuple(f"f{j + 1}" for j in range(p))
    more: dict[str, Any] = {}
    if rng.random() < 0.3 and not structural:
        more["sample_weight"] = rng.uniform(0.3, 3.0, n)
    if rng.random() < 0.3:
        more["penalty"] = {names[1]: round(float(rng.uniform(0.0, 0.5)), 2)}
    if rng.random() < 0.2:
        more["rows"] = (Row("own", {names[0]: 1.0, names[2]: 1.0}, -np.inf, 1.0, "data.toml"),)
        more["select"] = SelectDefaults(None, (names[1],) if rng.random() < 0.5 else (), ())
    labels = mipfs.data.instance.Labels("no", "yes") if rng.random() < 0.5 else None
    scale = str(rng.choice(["none", "standard", "unit"]))
    return Instance.from_arrays(X, y, feature_names=names, scale=scale, labels=labels, **more)  # type: ignore[arg-type]


def atoms_of(rng: Rng, kind: str, data: Instance) -> Any:
    """What is selected."""
    p, names = data.n_features, data.feature_names
    scaling = "norm" if rng.random() < 0.4 else "none"
    if kind == "features":
        return Features(data)
    if kind == "norm":
        return Features(data, "norm")
    if kind == "groups":
        return Groups(data, {"g1": names[:2], "g2": names[2:3], "g3": names[3:] or names[:1]}, scaling)
    if kind == "overlapping":
        return Groups(data, {f"g{j}": (names[j], names[(j + 1) % p]) for j in range(p)}, scaling)
    return Tree(data, {names[0]: "left", names[1]: "left", "left": "top", names[2]: "top"}, scaling=scaling)


def rows_of(rng: Rng, p: int) -> Rows:
    """One to three rows with decimal coefficients, at times over an extra variable with one bound, both or none."""
    r, e = int(rng.integers(1, 4)), int(rng.random() < 0.4)
    A = np.round(rng.uniform(-1.0, 3.0, (r, p + e)), 1)
    lb, ub = np.full(r, -np.inf), np.full(r, np.inf)
    for i in range(r):
        if e and i == 0 and rng.random() < 0.3:  # a sum that must be even, or a multiple of three
            A[i], A[i, p], lb[i], ub[i] = 1.0, -float(rng.integers(2, 4)), 0.0, 0.0
        elif rng.random() < 0.3:
            lb[i] = round(float(rng.uniform(0.0, 2.5)), 1)
        else:
            ub[i] = round(float(rng.uniform(0.0, 3.0)), 1)
    extra = Extras()
    if e:
        low, high = rng.choice([0.0, -np.inf]), rng.choice([1.5, np.inf])
        extra = Extras(("extra_z",), np.array([low]), np.array([high]), np.array([rng.random() < 0.5]))
    named = tuple(f"r{i}" for i in range(r))
    return Rows(sparse.csr_array(A), lb, ub, named, ("",) * r, extra)


def problem_of(seed: int) -> Problem:
    """A tiny problem of any kind."""
    rng = np.random.default_rng(seed)
    loss, kind = str(rng.choice(LOSSES, p=[0.4, 0.25, 0.2, 0.15])), str(rng.choice(ATOMS))
    data = data_of(rng, loss == "structural")
    bare = kind in ("groups", "overlapping", "tree")
    if bare:
        data = Instance.from_arrays(
            data.X * data.scale if not data.is_sparse else data.X, data.y, feature_names=data.feature_names,
            sample_weight=data.sample_weight, labels=data.labels,
        )  # fmt: skip
    atoms = atoms_of(rng, kind, data)
    p = atoms.count
    more: dict[str, Any] = {"bias": False, "measure": str(rng.choice(MEASURES))} if loss == "structural" else {}
    if loss != "structural":
        more["bias"] = bool(rng.random() < 0.6)
    rho = loss == "squared-hinge" and not data.penalty and rng.random() < 0.4
    lam = 0.0 if rho or rng.random() < 0.6 else round(float(rng.uniform(0.0, 0.3)), 2)
    problem = Problem(
        data, loss=loss, atoms=atoms, C=10.0 ** float(rng.integers(-2, 4)), lam=lam,
        margin="rho" if rho else "unit", M=int(rng.integers(0, p + 1)) if rng.random() < 0.8 else None, **more,
    )  # fmt: skip
    if rng.random() < 0.5:
        assert problem.rows is not None
        problem = problem.replace(rows=problem.rows.stack(rows_of(rng, p)))
    return problem


def drivers_of(problem: Problem) -> list[str]:
    """The drivers that carry a problem."""
    if problem.loss == "structural":
        return ["branch", "gbd", "two_layer"]
    return ["branch", "gbd", "kelley", "conic"]


def solve(seed: int, problem: Problem | None = None) -> tuple[Problem, Result]:
    """An honest result: any driver, any gap, near-optimal supports at times."""
    rng, made = np.random.default_rng([seed, 1]), problem_of(seed) if problem is None else problem
    weights = {"branch": 4.0, "gbd": 3.0, "kelley": 3.0, "conic": 0.6, "two_layer": 2.0}
    names = drivers_of(made)
    chances = np.array([weights[name] for name in names])
    driver = str(rng.choice(names, p=chances / chances.sum()))
    options: dict[str, Any] = {"gap": float(rng.choice([1e-6, 1e-4, 1e-2, 0.3]))}
    if driver in ("branch", "gbd"):
        if rng.random() < 0.3:
            options |= {"pool_gap": 0.05} if rng.random() < 0.5 else {"pool_size": 3}
        if rng.random() < 0.1:
            options["iteration_limit"] = int(rng.integers(0, 4))
    if driver == "branch":
        options["threads"] = 1
    return made, mipfs.solve(made, driver, **options)


def main(argv: list[str]) -> int:
    """Solve the seeds FROM:TO and verify each; returns how many were rejected."""
    start, stop = (int(part) for part in argv[0].split(":"))
    kinds, rejected = Counter[str](), 0
    for seed in range(start, stop):
        problem, result = solve(seed)
        if result.claim is None:
            kinds["nothing to verify"] += 1
            continue
        report = mipfs.verify(result, problem.data)
        kinds[f"{result.driver} {result.status.name}"] += 1
        if not report.accepted:
            rejected += 1
            words = (type(problem.atoms).__name__, problem.loss, problem.margin)
            print(f"seed {seed}: {result.driver} {words} {result.status.name} {report.reason}")
    print(f"{rejected} of {stop - start} rejected", dict(kinds.most_common()))
    return rejected


if __name__ == "__main__":
    sys.exit(min(1, main(sys.argv[1:])))
